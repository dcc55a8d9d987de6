"""Files that would run code: they write a canary."""

import builtins
import functools
import io
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import ClusterData

from chaos.trials import Trial

__all__ = ["code_kinds"]


class Call:
    """Pickled, it names a function and its arguments."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None) -> None:
        self.call = (function, arguments) if state is None else (function, arguments, state)

    def __call__(self) -> None:
        """Only what can be called can stand for a function in a pickle."""

    def __reduce__(self) -> Any:
        return self.call


Make = Callable[[Path, Path], Any]


def _cluster(path: Path, canary: Path) -> Any:
    """ClusterData is on torch's list of safe names, and opens a second pickle."""
    (path.parent / "part_1").mkdir(exist_ok=True)
    torch.save(Call(os.mkdir, str(canary)), path.parent / "part_1" / "metis.pt")
    graph = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))
    return Call(ClusterData, graph, 1, False, str(path.parent))


def _second(path: Path, canary: Path) -> Any:
    torch.save(Call(os.mkdir, str(canary)), path.parent / "second.bin")
    load = functools.partial(torch.load, weights_only=False)
    return Call(load, str(path.parent / "second.bin"))


_OBJECTS: dict[str, Make] = {
    "os.mkdir": lambda path, canary: Call(os.mkdir, str(canary)),
    "os.system": lambda path, canary: Call(os.system, f"touch {canary}"),
    "builtins.eval": lambda path, canary: Call(eval, f"open({str(canary)!r}, 'w')"),
    "builtins.exec": lambda path, canary: Call(exec, f"open({str(canary)!r}, 'w')"),
    "builtins.open": lambda path, canary: Call(open, str(canary), "w"),
    "subprocess.Popen": lambda path, canary: Call(subprocess.Popen, ["touch", str(canary)]),
    "subprocess.check_output": lambda path, canary: Call(
        subprocess.check_output, ["touch", str(canary)]
    ),
    "getattr chain": lambda path, canary: Call(
        Call(getattr, Call(__import__, "os"), "mkdir"), str(canary)
    ),
    "shutil.copytree": lambda path, canary: Call(shutil.copytree, path.parent, canary),
    "pathlib and write": lambda path, canary: Call(Call(getattr, canary, "mkdir")),
    "torch.load": _second,
    "torch.save": lambda path, canary: Call(torch.save, [1], str(canary)),
    "numpy.save": lambda path, canary: Call(np.save, str(canary), np.ones(1)),
    "numpy.fromfile": lambda path, canary: Call(np.fromfile, str(path)),
    "ClusterData": _cluster,
    "HeteroData": lambda path, canary: HeteroData(),
    "class object": lambda path, canary: [Data, dict, Exception],
    "sys.exit": lambda path, canary: Call(sys.exit, 3),
    "builtins.input": lambda path, canary: Call(builtins.input),
    "builtins.breakpoint": lambda path, canary: Call(builtins.breakpoint),
    "in a list of graphs": lambda path, canary: [
        Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0).long()),
        Call(os.mkdir, str(canary)),
    ],
    "as an attribute": lambda path, canary: [Data(x=Call(os.mkdir, str(canary)))],
    "as a key": lambda path, canary: {"format": 1, (1, Call(os.mkdir, str(canary))): 2},
    "in a checkpoint": lambda path, canary: {
        "format": 1, "config": Call(os.mkdir, str(canary)), "task": None, "model": {},
    },
    "object array": lambda path, canary: np.array([Call(os.mkdir, str(canary))], dtype=object),
    "tensor with state": lambda path, canary: Call(
        torch.Tensor, state={"__setstate__": Call(os.mkdir, str(canary))}
    ),
}  # fmt: skip
_TORCH = ("graphs.pt", "legacy.pt", "graph.pt", "folder/b.pt", "run/best.ckpt", "run/last.ckpt")
_TORCH += ("cached zinc", "kept omniglot", "official CLUSTER", "pyg TUDataset processed")


def _saved(make: Make, old: bool = False) -> Callable[[Path, Path], None]:
    def write(path: Path, canary: Path) -> None:
        torch.save(make(path, canary), path, _use_new_zipfile_serialization=not old)

    return write


def _pickled(make: Make, protocol: int = 2) -> Callable[[Path, Path], None]:
    return lambda path, canary: _write(path, pickle.dumps(make(path, canary), protocol))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _raw(name: str) -> Callable[[Path, Path], None]:
    """A pickle that is written by hand."""

    def write(path: Path, canary: Path) -> None:
        text = str(canary).encode()
        programs = {
            "protocol 0": b"cos\nmkdir\n(V" + text + b"\ntR.",
            "INST": b"(V" + text + b"\nios\nmkdir\n.",
            "OBJ": b"(cos\nmkdir\nV" + text + b"\no.",
            "STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x05mkdir\x93(V" + text + b"\ntR.",
            "dotted name": b"\x80\x04\x8c\x02os\x8c\x0bpath.os.mkdir\x93(V" + text + b"\ntR.",
            "NEWOBJ": b"\x80\x02cpathlib\nPath\n(V" + text + b"\nt\x81.",
            "extension": b"\x80\x02\x82\x01.",
            "persistent id": b"\x80\x02V" + text + b"\nQ.",
            "BUILD of a function": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n}V_function\n"
            b"cos\nmkdir\nsb.",
        }
        path.write_bytes(programs[name])

    return write


_RAW = ("protocol 0", "INST", "OBJ", "STACK_GLOBAL", "dotted name", "NEWOBJ", "extension")
_RAW += ("persistent id", "BUILD of a function")


def _in_zip(name: str) -> Callable[[Path, Path], None]:
    """The same in the zip file of torch."""

    def write(path: Path, canary: Path) -> None:
        _raw(name)(path, canary)
        program = path.read_bytes()
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("archive/data.pkl", program)
            file.writestr("archive/byteorder", "little")
            file.writestr("archive/version", "3\n")
            file.writestr("archive/constants.pkl", program)
            file.writestr("archive/code/__torch__.py", f"import os\nos.mkdir({str(canary)!r})\n")

    return write


def _object_array(path: Path, canary: Path) -> None:
    array = np.array([Call(os.mkdir, str(canary))], dtype=object)
    names = ("n", "e", "x", "edge_index", "edge_attr", "y", "train_n", "c", "x_val", "train_mask")
    out = io.BytesIO()
    np.savez(out, **dict.fromkeys(names, array))
    path.write_bytes(out.getvalue())


def _npy_of_objects(path: Path, canary: Path) -> None:
    with open(path, "wb") as file:
        np.save(file, np.array([Call(os.mkdir, str(canary))], dtype=object))


def _npy_header(text: str) -> Callable[[Path, Path], None]:
    def write(path: Path, canary: Path) -> None:
        header = text.replace("CANARY", str(canary)).encode("latin1") + b"\n"
        member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)
        with zipfile.ZipFile(path, "w") as file:
            for name in ("n", "e", "x", "edge_index", "y", "train_n", "c", "x_val"):
                file.writestr(f"{name}.npy", member)

    return write


_HEADERS = {
    "call in a header": "{'descr': '<i8', 'fortran_order': False, "
    "'shape': (__import__('os').mkdir('CANARY'),)}",
    "call as a descr": "{'descr': __import__('os').mkdir('CANARY'), "
    "'fortran_order': False, 'shape': (1,)}",
}
_YAML = {
    "!!python/object/apply": "!!python/object/apply:os.mkdir ['CANARY']",
    "!!python/object/new": "!!python/object/new:os.mkdir ['CANARY']",
    "!!python/name": "!!python/name:os.system",
    "!!python/module": "!!python/module:os",
    "!!python/tuple": "!!python/tuple [1, 2]",
    "a tag as a value": "seed: !!python/object/apply:os.mkdir ['CANARY']",
    "a tag as a key": "? !!python/object/apply:os.mkdir ['CANARY']\n: 1",
}


def _text(text: str) -> Callable[[Path, Path], None]:
    return lambda path, canary: _write(path, text.replace("CANARY", str(canary)).encode())


def _zip_slip(member: str) -> Callable[[Path, Path], None]:
    def write(path: Path, canary: Path) -> None:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(member.replace("CANARY", str(canary)), b"slipped")

    return write


def _beside(path: Path, canary: Path) -> None:
    """PyG compares this file with the transform of the dataset."""
    torch.save(Call(os.mkdir, str(canary)), path.with_name("pre_transform.pt"))


def code_kinds() -> Iterator[Trial]:
    """Kinds of files that try to run code, or to write outside."""
    yield Trial("code in pre_transform.pt", "pyg TUDataset processed", _beside, False)
    for format_ in _TORCH:
        for name, make in _OBJECTS.items():
            yield Trial(f"names {name}", format_, _saved(make, format_ == "legacy.pt"), False)
        for name in _RAW:
            yield Trial(f"pickle of {name}", format_, _in_zip(name), False)
    for name in _RAW:
        yield Trial(f"pickle of {name}", "legacy.pt", _raw(name), False)
        yield Trial(f"pickle of {name}", "mini-imagenet.pkl", _raw(name), False)
    for name, make in _OBJECTS.items():
        yield Trial(f"names {name}", "mini-imagenet.pkl", _pickled(make), False)
        yield Trial(f"pickle in its place, names {name}", "graphs.npz", _pickled(make, 4), False)
    for format_ in ("graphs.npz", "graph.npz", "zinc12k.npz", "tsp.npz", "cifar_fs_100.npz"):
        yield Trial("object arrays", format_, _object_array, False)
        yield Trial("npy of objects", format_, _npy_of_objects, False)
        for name, text in _HEADERS.items():
            yield Trial(name, format_, _npy_header(text), False)
    for format_ in ("--config", "run/config.yaml"):
        for name, text in _YAML.items():
            yield Trial(name, format_, _text(text), False)
    for format_ in ("omniglot.zip", "graphs.npz", "graphs.pt"):
        for name in ("../CANARY", "CANARY", "..\\..\\CANARY", "C:\\CANARY", "a/../../CANARY"):
            member = name.replace("/CANARY", "/CANARY.txt") if name != "CANARY" else name
            yield Trial(f"zip slip {name}", format_, _zip_slip(member), False)

"""Hostile and broken files of arrays, tensors, weights and images."""

import functools
import io
import json
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny_runs import molecules
from torch import Tensor
from torch_geometric.data import Data

from chaos.trials import Trial
from fognn.data import write_graphs

__all__ = ["array_kinds"]

Write = Callable[[Path, Path], None]


# Tensors -----------------------------------------------------------------------------------------
def _conj(value: Tensor) -> Tensor:
    return torch.complex(value.float(), value.float()).conj()


_TENSORS: dict[str, Callable[[Tensor], Any]] = {
    "meta": lambda t: t.to("meta"),
    "quantised": lambda t: torch.quantize_per_tensor(t.float(), 0.1, 0, torch.qint8),
    "sparse coo": lambda t: t.float().to_sparse(),
    "sparse csr": lambda t: torch.atleast_2d(t.float()).to_sparse_csr(),
    "nested": lambda t: torch.nested.nested_tensor([t.float().flatten(), torch.ones(3)]),
    "expanded": lambda t: torch.zeros(1, dtype=t.dtype).expand(2**33),
    "expanded to 2**60": lambda t: torch.zeros(1, dtype=t.dtype).expand(2**30, 2**30),
    "expanded a little": lambda t: torch.zeros(1, dtype=t.dtype).expand(t.shape),
    "complex": lambda t: torch.complex(t.float(), t.float()),
    "conj view": _conj,
    "neg view": lambda t: _conj(t).imag,
    "float8": lambda t: t.float().to(torch.float8_e4m3fn),
    "float16": lambda t: t.half(),
    "bfloat16": lambda t: t.bfloat16(),
    "float64": lambda t: t.double(),
    "bool": lambda t: t.bool(),
    "uint16": lambda t: t.to(torch.uint16),
    "uint64": lambda t: t.abs().to(torch.uint64),
    "negative stride of numpy": lambda t: np.flip(t.numpy()),
    "parameter": lambda t: torch.nn.Parameter(t.float()),
    "no rows": lambda t: t[:0],
    "no dimension": lambda t: t.flatten()[0],
    "nine dimensions": lambda t: t.reshape(*[1] * 8, -1),
    "one row more": lambda t: torch.cat([t, t[:1]]),
    "transposed": lambda t: torch.atleast_2d(t).t(),
    "text": lambda t: "text",
    "list": lambda t: t.tolist(),
    "None": lambda t: None,
    "dict": lambda t: {"a": t},
}
_VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "2**40": lambda t: _with(t.long(), 2**40),
    "2**62": lambda t: _with(t.long(), 2**62),
    "2**63 - 1": lambda t: _with(t.long(), 2**63 - 1),
    "-1": lambda t: _with(t.long(), -1),
    "-2**63": lambda t: _with(t.long(), -(2**63)),
    "1e30": lambda t: _with(t.float(), 1e30),
    "3e38": lambda t: _with(t.float(), 3e38),
    "nan": lambda t: _with(t.float(), float("nan")),
    "inf": lambda t: _with(t.float(), float("inf")),
    "-inf": lambda t: _with(t.float(), float("-inf")),
    "all nan": lambda t: torch.full(t.shape, float("nan")),
    "1e-45": lambda t: _with(t.float(), 1e-45),
    "999,999": lambda t: _with(t.long(), 999_999),
}


def _with(tensor: Tensor, value: float) -> Tensor:
    tensor = tensor.clone()
    tensor.view(-1)[-1] = value
    return tensor


def _graphs(name: str, change: Callable[[Tensor], Any], every: bool = False) -> Write:
    def write(path: Path, canary: Path) -> None:
        graphs = molecules(12, classes=2 if name == "y" else 0)
        for graph in graphs if every else graphs[-1:]:
            graph[name] = change(graph[name])
        torch.save(graphs, path)

    return write


def _content(make: Callable[[], Any]) -> Write:
    return lambda path, canary: torch.save(make(), path)


def _edge(**more: Any) -> Data:
    return Data(**{"x": torch.ones(3, 2), "edge_index": torch.tensor([[0, 1], [1, 2]])} | more)


def _cyclic() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


def _deep(levels: int) -> list[Any]:
    own: list[Any] = []
    for _ in range(levels):
        own = [own]
    return own


_LISTS: dict[str, Callable[[], Any]] = {
    "5 million tokens": lambda: [
        _edge(x=torch.arange(5_000_000), y=torch.ones(1)),
        *(_edge(x=torch.arange(3)),) * 11,
    ],
    "a million tokens, all of them used": lambda: [
        _edge(x=torch.arange(1_000_000), y=torch.ones(1)) for _ in range(10)
    ],
    "edge labels in a graph without edges": lambda: [
        *(_edge(y=torch.tensor([0, 1])) for _ in range(10)),
        _edge(edge_index=torch.zeros(2, 0).long(), y=torch.zeros(0).long()),
    ],
    "edge labels in graphs without edges": lambda: [
        _edge(edge_index=torch.zeros(2, 0).long(), y=torch.zeros(0).long()) for _ in range(10)
    ],
    "graphs without nodes": lambda: [Data(x=torch.ones(0, 1), edge_index=torch.ones(2, 0).long())],
    "no graphs": lambda: [],
    "no graphs in a dict": lambda: {},
    "None": lambda: None,
    "a number": lambda: 7,
    "a text": lambda: "graphs",
    "a tensor": lambda: torch.ones(3),
    "lists of lists of graphs": lambda: [[_edge()], [_edge()]],
    "a list that is in itself": _cyclic,
    "a list of 200 levels": lambda: _deep(200),
    "100,000 empty lists": lambda: [[] for _ in range(100_000)],
    "one graph": lambda: [_edge(y=torch.ones(1))],
    "two graphs": lambda: [_edge(y=torch.ones(1))] * 2,
    "graphs of other kinds": lambda: [_edge(y=torch.ones(1)), _edge(x=torch.ones(3, 5))],
    "a graph without edge_index": lambda: [Data(x=torch.ones(3, 1), y=torch.ones(1))] * 10,
    "num_nodes of 2**40": lambda: [_edge(x=None, num_nodes=2**40, y=torch.ones(1))] * 10,
    "num_nodes of -1": lambda: [_edge(x=None, num_nodes=-1, y=torch.ones(1))] * 10,
    "a text as num_nodes": lambda: [_edge(x=None, num_nodes="x", y=torch.ones(1))] * 10,
    "an edge to node 2**62": lambda: [
        Data(edge_index=torch.tensor([[0], [2**62]]), y=torch.ones(1)) for _ in range(10)
    ],
    "an edge to node 2**31": lambda: [
        Data(edge_index=torch.tensor([[0], [2**31]]), y=torch.ones(1)) for _ in range(10)
    ],
    "x of 2**17 columns": lambda: [
        _edge(x=torch.zeros(3, 2**17), y=torch.ones(1)) for _ in range(10)
    ],
    "y of no columns": lambda: [_edge(y=torch.ones(1, 0)) for _ in range(10)],
    "y of 100,000 columns": lambda: [_edge(y=torch.rand(1, 100_000)) for _ in range(10)],
    "x of no columns": lambda: [_edge(x=torch.ones(3, 0), y=torch.ones(1)) for _ in range(10)],
    "names of control characters": lambda: [
        _edge(**{"\x1b[31m": torch.ones(1), "<script>": 1, "a\nb": 2}, y=torch.ones(1))
        for _ in range(10)
    ],
    "slices beyond the data": lambda: (
        _edge(y=torch.ones(1)).to_dict(),
        {"x": torch.tensor([0, 2**40]), "edge_index": torch.tensor([0, 9]), "y": torch.arange(2)},
        Data,
    ),
    "slices that go backwards": lambda: (
        _edge(y=torch.ones(1)).to_dict(),
        {"x": torch.tensor([0, 3, 1]), "edge_index": torch.tensor([0, 2, 1]), "y": torch.arange(3)},
        Data,
    ),
    "slices that are texts": lambda: (_edge().to_dict(), {"x": "x", "y": None}, Data),
}
_MASKED: dict[str, dict[str, Any]] = {
    "masks that overlap": {m: torch.ones(40).bool() for m in ("train_mask", "val_mask")},
    "masks of 2": {"train_mask": torch.full((40,), 2)},
    "masks of nan": {"train_mask": torch.full((40,), float("nan"))},
    "masks of another length": {"train_mask": torch.ones(7).bool()},
    "masks without nodes": {"train_mask": torch.ones(0).bool()},
    "no mask selects a node": {"train_mask": torch.zeros(40).bool()},
    "a mask of 2**33 rows": {"train_mask": torch.zeros(1).bool().expand(2**33)},
    "a class of 2**62": {"y": torch.arange(40) + 2**62},
    "a class of 2**40": {"y": torch.arange(40) * 2**40},
    "no class": {"y": torch.full((40,), -1)},
    "y of nan": {"y": torch.full((40,), float("nan"))},
    "y of another length": {"y": torch.zeros(3).long()},
    "x of nan": {"x": torch.full((40, 5), float("nan"))},
    "x of another length": {"x": torch.ones(3, 5)},
    "an edge to node 40": {"edge_index": torch.tensor([[0], [40]])},
    "an edge to node -1": {"edge_index": torch.tensor([[0], [-1]])},
    "no edges": {"edge_index": torch.zeros(2, 0).long()},
    "edges of floats": {"edge_index": torch.zeros(2, 3)},
}


def _masked(changes: dict[str, Any]) -> Write:
    def write(path: Path, canary: Path) -> None:
        mask = torch.zeros(40).bool()
        mask[:20] = True
        graph = {
            "x": torch.rand(40, 5), "y": torch.arange(40) % 2, "train_mask": mask,
            "edge_index": torch.randint(0, 40, (2, 60)),
            "val_mask": ~mask & (torch.arange(40) < 30), "test_mask": torch.arange(40) >= 30,
        }  # fmt: skip
        torch.save(Data(**graph | changes), path)

    return write


# Files of arrays ---------------------------------------------------------------------------------
def _npy(shape: str, descr: str = "'<i8'", payload: bytes = bytes(64), version: int = 1) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + payload


_MEMBERS = {
    "shape of 2**62": _npy("(4611686018427387904,)"),
    "shape of 2**33": _npy("(8589934592,)"),
    "shape of 2**70": _npy(f"({2**70},)"),
    "shape that overflows": _npy("(4294967296, 4294967296, 2)"),
    "negative shape": _npy("(-1,)"),
    "shape of a text": _npy("'x'"),
    "shape of floats": _npy("(1.5,)"),
    "shape of True": _npy("(True,)"),
    "shape of 1,000 dimensions": _npy("(" + "1," * 1000 + ")"),
    "shape in deep brackets": _npy("(" * 500 + "1" + ")" * 500),
    "shape of very deep brackets": _npy("(" * 90_000 + ")" * 90_000, version=2),
    "header that is not closed": _npy("(1,"),
    "header of an expression": _npy("(2**40,)"),
    "header of a comprehension": _npy("[0 for x in (1,)]"),
    "dtype of objects": _npy("(1,)", "'|O'"),
    "dtype of texts": _npy("(2,)", "'<U4'"),
    "dtype of huge texts": _npy("(2,)", "'<U500000000'"),
    "dtype of times": _npy("(8,)", "'<M8[s]'"),
    "dtype of complex numbers": _npy("(4,)", "'<c16'"),
    "dtype of records": _npy("(4,)", "[('a', '<i8'), ('b', '<i8')]"),
    "dtype that is unknown": _npy("(4,)", "'<q99'"),
    "dtype of no bytes": _npy("(2147483648,)", "'|V0'"),
    "dtype of float128": _npy("(4,)", "'<f16'"),
    "dtype of big endian": _npy("(8,)", "'>i8'"),
    "version 9": _npy("(8,)", version=9),
    "more bytes than its shape says": _npy("(1,)"),
    "fewer bytes than its shape says": _npy("(9,)"),
    "no array": b"not an array",
    "nothing": b"",
}
_NAMES = {
    "graphs.npz": ("n", "e", "x", "edge_index", "y"),
    "graph.npz": ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"),
    "zinc12k.npz": tuple(f"train_{k}" for k in ("n", "e", "x", "edge_index", "edge_attr", "y")),
    "tsp.npz": ("n", "c", "t"),
    "cifar_fs_100.npz": ("x_val", "c_val"),
}


def _member(format_: str, content: bytes, number: int) -> Write:
    """All arrays of a file, or one of them, are replaced."""

    def write(path: Path, canary: Path) -> None:
        with zipfile.ZipFile(path) as file:
            members = {name: file.read(name) for name in file.namelist()}
        names = _NAMES[format_]
        chosen = names if number < 0 else names[number % len(names) :][:1]
        members |= {f"{name}.npy": content for name in chosen}
        with zipfile.ZipFile(path, "w") as file:
            for name, data in members.items():
                file.writestr(name, data)

    return write


def _bomb(name: str, size: int) -> Write:
    """A member of zeros that is a thousand times as small as what it unfolds to."""

    def write(path: Path, canary: Path) -> None:
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
            file.open(name, "w", force_zip64=True) as member,
        ):
            member.write(_npy(f"({size // 8},)", payload=b""))
            for _ in range(size >> 24):
                member.write(bytes(1 << 24))

    return write


def _declared(path: Path, canary: Path) -> None:
    """A zip file whose member declares 128 TiB."""
    write_graphs(path.with_name("valid.npz"), molecules(12))
    content = bytearray(path.with_name("valid.npz").read_bytes())
    path.with_name("valid.npz").unlink()
    place = content.rindex(b"PK\x01\x02")
    content[place + 24 : place + 28] = b"\xfe\xff\xff\xff"
    path.write_bytes(content)


def _flags(flag: int, method: int | None = None) -> Write:
    """Encrypted members, or an unknown compression."""

    def write(path: Path, canary: Path) -> None:
        content = bytearray(path.read_bytes())
        for magic, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = -1
            while (at := content.find(magic, at + 1)) >= 0:
                content[at + place] |= flag
                if method is not None:
                    content[at + place + 2 : at + place + 4] = struct.pack("<H", method)
        path.write_bytes(content)

    return write


def _twice(path: Path, canary: Path) -> None:
    with zipfile.ZipFile(path) as file:
        members = [(name, file.read(name)) for name in file.namelist()]
    with zipfile.ZipFile(path, "w") as file:
        for name, content in [*members, *members]:
            file.writestr(name, content)


# Pickles of arrays -------------------------------------------------------------------------------
def _pickle(content: Any, protocol: int = 2) -> Write:
    return lambda path, canary: path.write_bytes(pickle.dumps(content, protocol)) and None


def _program(content: bytes) -> Write:
    return lambda path, canary: path.write_bytes(content) and None


_IMAGES = np.zeros((2, 84, 84, 3), np.uint8)
_LAUGHS = b"]q\x00" + b"".join(
    b"](" + (b"h" + bytes([level])) * 10 + b"eq" + bytes([level + 1]) for level in range(20)
)
_PICKLES: dict[str, Write] = {
    "lists that unfold to 10**20": _program(b"\x80\x02" + _LAUGHS + b"."),
    "range of 2**40": _program(b"\x80\x02cbuiltins\nrange\n\x8a\x06\0\0\0\0\0\x01\x85R."),
    "bytes of 2**40": _program(b"\x80\x02cbuiltins\nbytes\n\x8a\x06\0\0\0\0\0\x01\x85R."),
    "a place of 2**32": _program(b"\x80\x02]r\xff\xff\xff\xff."),
    "a place of 2**62": _program(b"]p4611686018427387904\n."),
    "a text of 2**31 bytes": _program(b"\x80\x02X\xff\xff\xff\x7fabc."),
    "bytes of 2**63": _program(b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc."),
    "an integer of 2**31 bytes": _program(b"\x80\x02\x8b\xff\xff\xff\x7f1."),
    "an integer of 100,000 digits": _program(b"L" + b"9" * 100_000 + b"L\n."),
    "a frame of 2**63": _program(b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f]."),
    "a list of 100,000 levels": _program(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."),
    "a list in itself": _program(b"\x80\x02]q\x00h\x00a."),
    "a tuple in itself": _program(b"\x80\x02]q\x00h\x00\x85a."),
    "no stop": _program(b"\x80\x02]"),
    "an empty stack": _program(b"\x80\x02a."),
    "protocol 99": _program(b"\x80\x63]."),
    "no images": _pickle({"image_data": _IMAGES[:0], "class_dict": {}}),
    "no classes": _pickle({"image_data": _IMAGES, "class_dict": {}}),
    "an image in no class": _pickle({"image_data": _IMAGES, "class_dict": {"a": [0]}}),
    "image 2**62": _pickle({"image_data": _IMAGES, "class_dict": {"a": [0, 2**62]}}),
    "image 10**100": _pickle({"image_data": _IMAGES, "class_dict": {"a": [0, 10**100]}}),
    "image -1": _pickle({"image_data": _IMAGES, "class_dict": {"a": [0, -1]}}),
    "image True": _pickle({"image_data": _IMAGES, "class_dict": {"a": [0, True]}}),
    "image nan": _pickle({"image_data": _IMAGES, "class_dict": {"a": [0, float("nan")]}}),
    "classes of numbers": _pickle({"image_data": _IMAGES, "class_dict": {0: [0], 1: [1]}}),
    "classes of None": _pickle({"image_data": _IMAGES, "class_dict": {None: [0], "None": [1]}}),
    "classes in a list": _pickle({"image_data": _IMAGES, "class_dict": [[0, 1]]}),
    "images of floats": _pickle({"image_data": _IMAGES.astype(float), "class_dict": {"a": [0]}}),
    "images of another size": _pickle({"image_data": _IMAGES[:, :3], "class_dict": {"a": [0, 1]}}),
    "images of four channels": _pickle({"image_data": np.zeros((2, 84, 84, 4), np.uint8)}),
    "names of scripts": _pickle({"image_data": _IMAGES, "class_dict": {"<script>\n\0": [0, 1]}}),
}


# Weights -----------------------------------------------------------------------------------------
def _header(change: Callable[[dict[str, Any]], Any]) -> Write:
    """Changes the header of a file of safetensors."""

    def write(path: Path, canary: Path) -> None:
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        changed = change(header)
        text = changed if isinstance(changed, bytes) else json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])

    return write


def _first(header: dict[str, Any], **values: Any) -> None:
    next(v for k, v in header.items() if k != "__metadata__").update(values)


_WEIGHTS: dict[str, Write] = {
    "a header of 2**63 bytes": lambda path, canary: path.write_bytes(
        b"\xff" * 7 + b"\x7f" + path.read_bytes()[8:]
    ) and None,
    "a header of 200 MB": lambda path, canary: path.write_bytes(
        (200_000_000).to_bytes(8, "little") + b" " * 1000
    ) and None,
    "a header of deep JSON": _header(lambda h: b'{"a":' * 50_000),
    "a header of a list": _header(lambda h: b"[]"),
    "no tensors": _header(lambda h: b"{}"),
    "an unknown dtype": _header(lambda h: _first(h, dtype="X99")),
    "a dtype of text": _header(lambda h: _first(h, dtype="STR")),
    "a shape of 2**62": _header(lambda h: _first(h, shape=[2**62])),
    "a shape that overflows": _header(lambda h: _first(h, shape=[2**40, 2**40])),
    "a negative shape": _header(lambda h: _first(h, shape=[-1])),
    "offsets beyond the file": _header(lambda h: _first(h, data_offsets=[0, 2**40])),
    "offsets that go backwards": _header(lambda h: _first(h, data_offsets=[64, 0])),
    "tensors on each other": _header(lambda h: _first(h, data_offsets=[4, 8])),
    "another name": _header(lambda h: h.update(other=h.pop(list(h)[-1])) and None),
    "a name twice": _header(lambda h: json.dumps(h)[:-1].encode() + b', "a": 1, "a": 1}'),
    "a pickle in its place": lambda path, canary: torch.save({"a": torch.ones(1)}, path),
}  # fmt: skip


# Images ------------------------------------------------------------------------------------------
def _chunk(kind: bytes, content: bytes) -> bytes:
    sum_ = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + sum_


def png(width: int, height: int, depth: int = 8, colour: int = 2, more: bytes = b"") -> bytes:
    """A PNG with any header and some zeros as its pixels."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    pixels = zlib.compress(bytes(100_000))
    parts = _chunk(b"IHDR", header) + more + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def _picture(kind: str, mode: str = "RGB", size: tuple[int, int] = (105, 105)) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new(mode, size).save(out, kind)
    return out.getvalue()


@functools.cache
def _pictures() -> dict[str, bytes]:
    text = b"a\0\0" + zlib.compress(bytes(80_000_000))
    return {
        "0 x 0": png(0, 0),
        "100,000 x 100,000": png(100_000, 100_000),
        "12,000 x 12,000": png(12_000, 12_000),
        "2**31 x 2**31": png(2**31 - 1, 2**31 - 1),
        "2**31 x 1": png(2**31 - 1, 1),
        "a depth of 3 bits": png(105, 105, 3),
        "colour type 9": png(105, 105, 8, 9),
        "a palette that is missing": png(105, 105, 8, 3),
        "too few pixels": png(105, 1050),
        "a text that unfolds to 80 MB": png(105, 105, more=_chunk(b"zTXt", text)),
        "a profile that unfolds to 80 MB": png(105, 105, more=_chunk(b"iCCP", text)),
        "a chunk without an end": png(105, 105)[:60],
        "half of it": _picture("PNG")[: len(_picture("PNG")) // 2],
        "a gif": _picture("GIF", "P"),
        "a bmp": _picture("BMP"),
        "a tiff": _picture("TIFF"),
        "an ico": _picture("ICO", size=(32, 32)),
        "an eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 105 105\n(x) run\n",
        "an svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="105" height="105"/>',
        "a pdf": b"%PDF-1.4\n",
        "mode 1": _picture("PNG", "1"),
        "mode I;16": _picture("PNG", "I;16"),
        "mode CMYK": _picture("JPEG", "CMYK"),
        "mode LA": _picture("PNG", "LA"),
        "1 x 1": _picture("PNG", size=(1, 1)),
        "only a jpeg's beginning": b"\xff\xd8\xff\xe0",
        "nothing": b"",
    }


def _drawing(content: bytes) -> Write:
    def write(path: Path, canary: Path) -> None:
        with zipfile.ZipFile(path) as file:
            members = [(name, file.read(name)) for name in file.namelist()]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(members[0][0], content)
            for name, data in members[1:]:
                file.writestr(name, data)

    return write


def array_kinds() -> Iterator[Trial]:
    """All kinds of this file."""
    for name in ("x", "edge_index", "edge_attr", "y"):
        for kind, change in _TENSORS.items():
            yield Trial(f"{kind} as {name}", "graphs.pt", _graphs(name, change), False)
            yield Trial(f"{kind} as every {name}", "graphs.pt", _graphs(name, change, True), False)
        for kind, value in _VALUES.items():
            yield Trial(f"{kind} in {name}", "graphs.pt", _graphs(name, value, True), False)
    for kind, make in _LISTS.items():
        yield Trial(kind, "graphs.pt", _content(make), False)
    for kind, changes in _MASKED.items():
        yield Trial(kind, "graph.pt", _masked(changes), False)
    for format_ in _NAMES:
        for number, (kind, content) in enumerate(_MEMBERS.items()):
            yield Trial(kind, format_, _member(format_, content, number), False)
            yield Trial(f"{kind}, all arrays", format_, _member(format_, content, -1), False)
        yield Trial("a bomb of 256 MB", format_, _bomb(f"{_NAMES[format_][0]}.npy", 2**28), False)
        yield Trial("a member twice", format_, _twice, False)
    yield Trial("a member of 4 GB that is not there", "graphs.npz", _declared, False)
    for format_ in ("graphs.npz", "graphs.pt", "omniglot.zip", "run/best.ckpt"):
        yield Trial("encrypted members", format_, _flags(1), False)
        yield Trial("unknown compression", format_, _flags(0, 99), False)
        yield Trial("wrong compression", format_, _flags(0, 12), False)
    yield Trial("a bomb of 256 MB", "graphs.pt", _bomb("archive/data.pkl", 2**28), False)
    for kind, write in _PICKLES.items():
        yield Trial(kind, "mini-imagenet.pkl", write, False)
    for kind, write in _WEIGHTS.items():
        yield Trial(kind, "net/model.safetensors", write, False)
        yield Trial(kind, "kept weights", write, False)
    for kind, content in _pictures().items():
        for format_ in ("mini-imagenet.jpg", "query image", "support image"):
            yield Trial(kind, format_, _program(content), False)
        yield Trial(kind, "omniglot.zip", _drawing(content), False)

r"""Reads the public benchmark's pickles without dgl, and runs nothing that they name."""

import io
import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fognn.datasets.files import SourceError

__all__ = ["OfficialGraph", "load_official"]


class OfficialGraph(NamedTuple):
    r"""One graph of an official file, as plain tensors."""

    src: Tensor  # [E], int64
    dst: Tensor  # [E], int64
    ndata: dict[str, Tensor]  # the rows are nodes
    edata: dict[str, Tensor]  # the rows are edges, in the order of src and dst
    labels: Tensor  # per node, per graph or per edge, as the dataset has it


def load_official(path: Path) -> dict[str, list[OfficialGraph]]:
    r"""Reads :obj:`SBM_PATTERN.pkl`, :obj:`SBM_CLUSTER.pkl`, :obj:`ZINC.pkl` or
    :obj:`TSP.pkl` of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ code.

    The files come in two layouts, and both are read: the first release
    (dgl 0.4.2, :class:`dgl.graph.DGLGraph`) and the present one at
    ``https://data.dgl.ai/dataset/benchmarking-gnns/`` (dgl 0.5.2,
    :class:`dgl.heterograph.DGLHeteroGraph`, edges in COO or CSR).

    A pickle can name any function and have it called. So the unpickler knows a
    short list of names, hands out an inert stand-in for each, and refuses a
    file at the first other name: nothing that a file names is ever imported or
    called. The storages of tensors are pickles of their own and get the same
    treatment. (A crafted file can still ask for much memory.)

    .. note::
        The layouts are written down from dgl's and the benchmark's public
        sources. The tests build such files from classes of the same names and
        states; the real files, 50 MB to 500 MB each, were not at hand.

    Args:
        path (Path): The official file.

    Returns:
        The lists of graphs under the keys :obj:`"train"`, :obj:`"val"` and
        :obj:`"test"`, in the order in which the authors *wrote* them. Their
        own loader of :obj:`TSP.pkl` takes the second list for the test set.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            content = _Unpickler(file, _NAMES).load()
        if not isinstance(content, list) or len(content) < 3:
            raise TypeError("the file must hold a list of train, val and test")
        return {
            split: _graphs(_state(dataset, *_DATASETS))
            for split, dataset in zip(("train", "val", "test"), content[:3], strict=True)
        }
    except _RefusedError as error:
        raise SourceError(
            f"{path} is refused, it names {error}, which no official file needs: "
            "get the file from its official address"
        ) from error
    except FileNotFoundError as error:
        raise SourceError(f"{path} is not there: name an existing file") from error
    except _MALFORMED as error:
        raise SourceError(
            f"{path} is not a whole official pickle ({type(error).__name__}: {error}): "
            "get the file again from its official address"
        ) from error


# What Python's unpickler and our own checks raise for broken and for crafted files.
_MALFORMED = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


class _RefusedError(Exception):
    r"""A name that is not on the list."""


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, names: dict[str, Any]) -> None:
        super().__init__(file)
        self.names = names

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.names[f"{module}.{name}"]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


class _StorageUnpickler(_Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        return pid


class _Object:
    r"""Stands for an instance of a dgl class: it only keeps its state."""

    __slots__ = ("state",)
    state: Any

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Call:
    r"""Stands for a function. A pickle may call it but cannot alter it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise TypeError("a function has no state")


class _Ignored(dict[Any, Any]):
    r"""Stands for the raw records that the SBM files drag along."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        r"""Their state is the dictionary itself, once more."""


class _Dtype:
    r"""Stands for a numpy dtype; numbers only, so no object can hide in a scalar."""

    __slots__ = ("dtype",)

    def __init__(self, spec: str, align: bool = False, copy: bool = True) -> None:
        if not re.fullmatch(r"b1|[iu][1248]|f[248]", spec):
            raise _RefusedError(f"numpy.dtype({spec!r})")
        self.dtype = np.dtype(spec)

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise ValueError(f"byte order {state[1]!r}")
        self.dtype = self.dtype.newbyteorder(state[1])


def _scalar(dtype: _Dtype, data: bytes) -> Any:
    return np.frombuffer(data, dtype.dtype, count=1)[0]


def _bytearray(data: bytes) -> bytes:
    if not isinstance(data, bytes):
        raise TypeError("a bytearray must be made of bytes")
    return data


def _new_object(cls: Any) -> _Object:
    if cls not in (_CLASSES[_INDEX], _CLASSES[_STATES]):
        raise TypeError("an object of dgl's library must be a graph index")
    return _CLASSES[_INDEX]() if cls is _CLASSES[_INDEX] else _CLASSES[_STATES]()


def _getattr(owner: Any, name: Any) -> _Call:
    # The one use in dgl's files: the bound class method that rebuilds a column's scheme.
    if owner is not _CLASSES["dgl.frame.Scheme"] or name != "_reconstruct_scheme":
        raise _RefusedError(f"builtins.getattr(..., {name!r})")
    return _Call(lambda shape, dtype: None)


def _load_from_bytes(data: bytes) -> Tensor:
    r"""Reads a storage in torch's old format: five pickles, then length and raw values."""
    if not isinstance(data, bytes):
        raise TypeError("a storage must be made of bytes")
    file = io.BytesIO(data)
    magic, version, system, storage, keys = (
        _StorageUnpickler(file, _STORAGES).load() for _ in range(5)
    )
    if magic != 0x1950A86A20F9469CFC6C or version != 1001 or not system["little_endian"]:
        raise ValueError("a storage has an unknown header")
    kind, dtype, key, _, count, view = storage
    if kind != "storage" or not isinstance(dtype, torch.dtype) or keys != [key] or view is not None:
        raise ValueError("a storage has an unknown descriptor")
    values = data[file.tell() + 8 :]
    if int.from_bytes(data[file.tell() : file.tell() + 8], "little") != count or (
        len(values) != count * dtype.itemsize
    ):
        raise ValueError("a storage is cut short")
    return (
        torch.frombuffer(bytearray(values), dtype=dtype) if count else torch.empty(0, dtype=dtype)
    )


def _rebuild_tensor(
    storage: Tensor, offset: int, size: Any, stride: Any, requires_grad: bool, *_: Any
) -> Tensor:
    # A stride of 0 could blow up a small file; nothing official is larger than its storage.
    if math.prod(size) > storage.numel():
        raise ValueError("a tensor is larger than its storage")
    return storage.as_strided(size, stride, offset).contiguous()


_GRAPH_04, _INDEX_04 = "dgl.graph.DGLGraph", "dgl.graph_index.GraphIndex"
_GRAPHS_05 = ("dgl.heterograph.DGLHeteroGraph", "dgl.heterograph.DGLGraph")
_INDEX = "dgl.heterograph_index.HeteroGraphIndex"
_STATES = "dgl.heterograph_index.HeteroPickleStates"
_DATASETS = ("data.SBMs.load_SBMsDataSetDGL", "data.molecules.MoleculeDGL", "data.TSP.TSP")
_CLASSES: dict[str, type[_Object]] = {
    name: type(name, (_Object,), {"__slots__": ()})
    for name in (
        *(_GRAPH_04, _INDEX_04, *_GRAPHS_05, _INDEX, _STATES, *_DATASETS),
        *("dgl.frame.Frame", "dgl.frame.FrameRef", "dgl.frame.Column", "dgl.frame.Scheme"),
        *("dgl.utils.Index", "dgl.init.zero_initializer"),
    )
}
_NAMES: dict[str, Any] = {
    **_CLASSES,
    "__main__.DotDict": _Ignored,
    "builtins.bytearray": _Call(_bytearray),
    "builtins.getattr": _Call(_getattr),
    "builtins.slice": slice,
    "collections.OrderedDict": _Call(dict),
    "dgl._ffi.object._new_object": _Call(_new_object),
    "numpy.core.multiarray.scalar": _Call(_scalar),
    "numpy._core.multiarray.scalar": _Call(_scalar),
    "numpy.dtype": _Dtype,
    "torch._utils._rebuild_tensor_v2": _Call(_rebuild_tensor),
    "torch.storage._load_from_bytes": _Call(_load_from_bytes),
}
_STORAGES: dict[str, Any] = {
    "torch.DoubleStorage": torch.float64,
    "torch.FloatStorage": torch.float32,
    "torch.HalfStorage": torch.float16,
    "torch.LongStorage": torch.int64,
    "torch.IntStorage": torch.int32,
    "torch.ShortStorage": torch.int16,
    "torch.CharStorage": torch.int8,
    "torch.ByteStorage": torch.uint8,
    "torch.BoolStorage": torch.bool,
}


def _state(thing: Any, *names: str) -> Any:
    if not isinstance(thing, _Object) or type(thing).__name__ not in names:
        raise TypeError(f"expected {' or '.join(names)}, got {type(thing).__name__}")
    return thing.state


def _graphs(state: dict[str, Any]) -> list[OfficialGraph]:
    for key in ("node_labels", "graph_labels", "edge_labels"):
        if key in state:
            pairs = zip(state["graph_lists"], state[key], strict=True)
            return [_graph(graph, torch.as_tensor(labels)) for graph, labels in pairs]
    raise KeyError("no labels")


def _graph(graph: Any, labels: Tensor) -> OfficialGraph:
    state = _state(graph, _GRAPH_04, *_GRAPHS_05)
    if type(graph).__name__ == _GRAPH_04:
        num_nodes, *_, src, dst = _state(state["_graph"], _INDEX_04)
        src, dst = (_state(index, "dgl.utils.Index") for index in (src, dst))
        ndata, edata = _frame(state["_node_frame"]), _frame(state["_edge_frame"])
    else:
        (nodes,), (edges,) = state["_node_frames"], state["_edge_frames"]
        num_nodes = _state(nodes, "dgl.frame.Frame")["_num_rows"]
        _, _, arrays = _state(_state(state["_graph"], _INDEX), _STATES)
        src, dst = arrays if len(arrays) == 2 else _from_csr(*arrays)
        ndata, edata = _frame(nodes), _frame(edges)
    src, dst = src.long(), dst.long()
    if src.dim() != 1 or src.shape != dst.shape:
        raise ValueError("a graph has edges of unequal ends")
    if src.numel() and not 0 <= min(src.min(), dst.min()) <= max(src.max(), dst.max()) < num_nodes:
        raise ValueError(f"a graph of {num_nodes} nodes has an edge to a node that is not there")
    for values, rows in [(v, num_nodes) for v in ndata.values()] + [
        (v, src.numel()) for v in edata.values()
    ]:
        if len(values) != rows:
            raise ValueError(f"a graph has a feature of {len(values)} rows, it must have {rows}")
    return OfficialGraph(src, dst, ndata, edata, labels)


def _from_csr(indptr: Tensor, dst: Tensor, edge_ids: Tensor) -> tuple[Tensor, Tensor]:
    src = torch.arange(indptr.numel() - 1).repeat_interleave(indptr.long().diff())
    if edge_ids.numel() == 0:
        return src, dst
    order = edge_ids.long().argsort()
    return src[order], dst[order]


def _frame(frame: Any) -> dict[str, Tensor]:
    state = _state(frame, "dgl.frame.Frame", "dgl.frame.FrameRef")
    rows = slice(None)
    if "_frame" in state:
        rows = _state(state["_index"], "dgl.utils.Index")
        state = _state(state["_frame"], "dgl.frame.Frame")
    columns = {name: _state(col, "dgl.frame.Column") for name, col in state["_columns"].items()}
    for name, column in columns.items():
        if column.get("index") is not None:
            raise ValueError(f"the feature {name!r} is a selection of rows")
    # dgl 0.4 calls the tensor "data", dgl 0.5 "storage".
    return {
        name: col["data" if "data" in col else "storage"][rows] for name, col in columns.items()
    }

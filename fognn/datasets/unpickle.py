r"""Reads the public benchmark's pickles without dgl, and runs nothing that they name."""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fognn.datasets.dgl_graphs import CLASSES, OfficialGraph, graphs_of, new_object
from fognn.datasets.safe_pickle import Call, Dtype, RefusedError, SafeUnpickler, one_sentence

__all__ = ["OfficialGraph", "load_official"]


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
    with one_sentence(path, "official pickle"):
        with open(path, "rb") as file:
            content = SafeUnpickler(file, _NAMES).load()
        if not isinstance(content, list) or len(content) < 3:
            raise TypeError("the file must hold a list of train, val and test")
        splits = zip(("train", "val", "test"), content[:3], strict=True)
        return {split: graphs_of(dataset) for split, dataset in splits}


class _StorageUnpickler(SafeUnpickler):
    def persistent_load(self, pid: Any) -> Any:
        return pid


class _Ignored(dict[Any, Any]):
    r"""Stands for the raw records that the SBM files drag along."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        r"""Their state is the dictionary itself, once more."""


def _scalar(dtype: Dtype, data: bytes) -> Any:
    return np.frombuffer(data, dtype.dtype, count=1)[0]


def _bytearray(data: bytes) -> bytes:
    if not isinstance(data, bytes):
        raise TypeError("a bytearray must be made of bytes")
    return data


def _getattr(owner: Any, name: Any) -> Call:
    # The one use in dgl's files: the bound class method that rebuilds a column's scheme.
    if owner is not CLASSES["dgl.frame.Scheme"] or name != "_reconstruct_scheme":
        raise RefusedError(f"builtins.getattr(..., {name!r})")
    return Call(lambda shape, dtype: None)


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


_NAMES: dict[str, Any] = {
    **CLASSES,
    "__main__.DotDict": _Ignored,
    "builtins.bytearray": Call(_bytearray),
    "builtins.getattr": Call(_getattr),
    "builtins.slice": slice,
    "collections.OrderedDict": Call(dict),
    "dgl._ffi.object._new_object": Call(new_object),
    "numpy.core.multiarray.scalar": Call(_scalar),
    "numpy._core.multiarray.scalar": Call(_scalar),
    "numpy.dtype": Dtype,
    "torch._utils._rebuild_tensor_v2": Call(_rebuild_tensor),
    "torch.storage._load_from_bytes": Call(_load_from_bytes),
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

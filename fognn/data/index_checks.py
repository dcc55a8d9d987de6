"""The check that all graphs of a dataset have the same attributes, so that each fits one tensor."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data


def check_alike(i: int, item: Data, first: Data) -> None:
    r"""Raises a :class:`ValueError` unless graph :obj:`i` has the attributes of the first one."""
    if set(item.keys()) != set(first.keys()) or type(item) is not type(first):
        raise ValueError(
            f"PackedLoader: dataset[{i}] is a {type(item).__name__} with {sorted(item.keys())}, "
            f"it must be like dataset[0], a {type(first).__name__} with {sorted(first.keys())}"
        )
    for key in list(first.keys()):
        mine, model = _kind(item, key), _kind(first, key)
        if mine is None:
            raise ValueError(
                f"PackedLoader: dataset[{i}]: {key!r} must be a dense tensor, a number or a "
                f"string, got {type(item[key]).__name__}"
            )
        if mine != model:
            raise ValueError(
                f"PackedLoader: dataset[{i}]: {key!r} is {mine}, "
                f"it must be like that of dataset[0], {model}"
            )


def _kind(item: Data, key: str) -> str | None:
    r"""Type and shape of an attribute, which must be the same for all graphs; :obj:`None` if it
    cannot be packed."""
    value = item[key]
    if isinstance(value, Tensor):
        if value.layout != torch.strided:
            return None
        shape: list[Any] = list(value.shape)
        dim = item.__cat_dim__(key, value)
        if shape and dim is not None:
            shape[dim] = "*"
        return f"{value.dtype} {shape}".replace("'", "")
    if isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return None
    return type(value).__name__

r"""Graphs in a file of torch, read without running anything that the file names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.edge_index import CatMetadata, SortOrder

from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE
from fognn.utils.torch_files import RefusedNameError, load_torch

__all__ = ["load_pt"]

_WANTED = (
    "save a list of Data (of a dataset, list(dataset)) with torch.save, or write the graphs with "
    "fognn.datasets.write_graphs"
)


def load_pt(path: Path) -> list[Any] | dict[str, Any]:
    r"""Reads a :obj:`.pt` file: the graphs in it, unchecked, or a dict of flat tensors.

    A file that names anything but :class:`~torch_geometric.data.Data` and what belongs to it is
    refused. (PyG's own reader would fall back to running it.)

    Args:
        path (Path): The file.
    """
    try:
        return _graphs_in(load_torch(path, _NAMES))
    except _NoGraphsError as error:
        raise ValueError(f"{path} holds {error}: {_WANTED}") from error
    except RefusedNameError as error:
        raise FileError(
            f"{path} is refused, it names {error.name}, which no graph needs: {_WANTED}"
        ) from error
    except DAMAGE as error:
        what = f"{type(error).__name__}: {str(error).splitlines()[0]}" if str(error) else "cut off"
        raise FileError(f"{path} is not a whole .pt file of graphs ({what}): {_WANTED}") from error


class _NoGraphsError(Exception):
    r"""The file is whole and harmless, and no graphs are in it."""


def _graphs_in(content: Any) -> list[Any] | dict[str, Any]:
    if isinstance(content, dict):
        return content
    if isinstance(content, Batch):
        if not hasattr(content, "_slice_dict"):
            raise _NoGraphsError("a Batch that does not know where its graphs begin")
        content = content.to_data_list()
    elif isinstance(content, Data):
        content = [content]
    elif _is_collated(content):
        dataset = InMemoryDataset()
        first = content[0]
        dataset._data = Data.from_dict(first) if isinstance(first, dict) else first
        dataset.slices = content[1]
        content = [dataset.get(index) for index in range(dataset.len())]
    if not isinstance(content, list | tuple):
        raise _NoGraphsError(f"a {type(content).__name__}")
    # What a file can do to an object of PyG, it shall not do beyond this line.
    return [Data.from_dict(item.to_dict()) if type(item) is Data else item for item in content]


def _is_collated(content: Any) -> bool:
    return (
        isinstance(content, tuple)
        and len(content) in (2, 3)
        and isinstance(content[0], Data | dict)
        and isinstance(content[1], dict | None)
    )


def _new_batch(*_: type) -> Any:
    return Batch(_base_cls=Data)


class _BatchMaker:
    r"""Stands for the object whose call makes a batch: torch calls only what is on the list."""

    def __new__(cls) -> Callable[..., Any]:  # type: ignore[misc]
        return _new_batch


_NAMES: list[Any] = [
    *(Data, DataEdgeAttr, DataTensorAttr, GlobalStorage),
    *(Batch, type(_new_batch()), _new_batch),
    (_BatchMaker, "torch_geometric.data.batch.DynamicInheritanceGetter"),
    *(EdgeIndex, SortOrder, CatMetadata),
]

r"""The graphs of dgl, as pickles keep them, without dgl."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["CLASSES", "DglObject", "OfficialGraph", "graphs_of", "new_object"]


class OfficialGraph(NamedTuple):
    r"""One graph of an official file, as plain tensors."""

    src: Tensor  # [E], int64
    dst: Tensor  # [E], int64
    ndata: dict[str, Tensor]  # the rows are nodes
    edata: dict[str, Tensor]  # the rows are edges, in the order of src and dst
    labels: Tensor  # per node, per graph or per edge, as the dataset has it


class DglObject:
    r"""Stands for an instance of a dgl class: it only keeps its state."""

    __slots__ = ("state",)
    state: Any

    def __setstate__(self, state: Any) -> None:
        self.state = state


_GRAPH_04, _INDEX_04 = "dgl.graph.DGLGraph", "dgl.graph_index.GraphIndex"
_GRAPHS_05 = ("dgl.heterograph.DGLHeteroGraph", "dgl.heterograph.DGLGraph")
_INDEX = "dgl.heterograph_index.HeteroGraphIndex"
_STATES = "dgl.heterograph_index.HeteroPickleStates"
_DATASETS = ("data.SBMs.load_SBMsDataSetDGL", "data.molecules.MoleculeDGL", "data.TSP.TSP")
# The stand-ins of the classes that official files name.
CLASSES: dict[str, type[DglObject]] = {
    name: type(name, (DglObject,), {"__slots__": ()})
    for name in (
        *(_GRAPH_04, _INDEX_04, *_GRAPHS_05, _INDEX, _STATES, *_DATASETS),
        *("dgl.frame.Frame", "dgl.frame.FrameRef", "dgl.frame.Column", "dgl.frame.Scheme"),
        *("dgl.utils.Index", "dgl.init.zero_initializer"),
    )
}


def new_object(cls: Any) -> DglObject:
    r"""Stands for the function of dgl that makes an empty object of its library."""
    if cls not in (CLASSES[_INDEX], CLASSES[_STATES]):
        raise TypeError("an object of dgl's library must be a graph index")
    return CLASSES[_INDEX]() if cls is CLASSES[_INDEX] else CLASSES[_STATES]()


def graphs_of(dataset: Any) -> list[OfficialGraph]:
    r"""The graphs of one split, checked.

    Args:
        dataset (DglObject): The stand-in of the benchmark's dataset.
    """
    state = _state(dataset, *_DATASETS)
    for key in ("node_labels", "graph_labels", "edge_labels"):
        if key in state:
            pairs = zip(state["graph_lists"], state[key], strict=True)
            return [_graph(graph, torch.as_tensor(labels)) for graph, labels in pairs]
    raise KeyError("no labels")


def _state(thing: Any, *names: str) -> Any:
    if not isinstance(thing, DglObject) or type(thing).__name__ not in names:
        raise TypeError(f"expected {' or '.join(names)}, got {type(thing).__name__}")
    return thing.state


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

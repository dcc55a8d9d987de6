from typing import Any

import pytest
import torch
from torch import Tensor

from fognn.datasets.dgl_graphs import CLASSES, graphs_of, new_object

# The bytes of whole files are read in test_unpickle.py; here is what the states mean.


def make(name: str, state: Any) -> Any:
    thing = CLASSES[name]()
    thing.__setstate__(state)
    return thing


def frame(rows: int, **features: Tensor) -> Any:
    columns = {key: make("dgl.frame.Column", {"storage": t}) for key, t in features.items()}
    return make("dgl.frame.Frame", {"_columns": columns, "_num_rows": rows})


def graph(arrays: list[Tensor], nodes: Any, edges: Any) -> Any:
    states = make("dgl.heterograph_index.HeteroPickleStates", (1, b"", arrays))
    return make(
        "dgl.heterograph.DGLGraph",
        {
            "_graph": make("dgl.heterograph_index.HeteroGraphIndex", states),
            "_node_frames": [nodes],
            "_edge_frames": [edges],
        },
    )


def dataset(*graphs: Any, **labels: Any) -> Any:
    return make("data.TSP.TSP", {"graph_lists": list(graphs), **labels})


SRC, DST = torch.tensor([2, 0, 1]), torch.tensor([0, 1, 2])


@pytest.mark.parametrize("key", ["node_labels", "graph_labels", "edge_labels"])
def test_graphs_of(key: str) -> None:
    one = graph([SRC, DST], frame(3, feat=torch.ones(3, 2)), frame(3, d=torch.arange(3)))
    (got,) = graphs_of(dataset(one, **{key: [[1, 0, 1]]}))
    assert torch.equal(got.src, SRC)
    assert torch.equal(got.dst, DST)
    assert got.ndata["feat"].shape == (3, 2)
    assert got.edata["d"].tolist() == [0, 1, 2]
    assert got.labels.tolist() == [1, 0, 1]


def test_csr_gives_the_edges_in_the_order_of_their_ids() -> None:
    # Rows 0, 1, 2 have the edges to 1, 2, 0; they were added as 2->0, 0->1, 1->2.
    arrays = [torch.tensor([0, 1, 2, 3]), torch.tensor([1, 2, 0]), torch.tensor([1, 2, 0])]
    (got,) = graphs_of(dataset(graph(arrays, frame(3), frame(3)), edge_labels=[[0, 0, 0]]))
    assert (got.src.tolist(), got.dst.tolist()) == (SRC.tolist(), DST.tolist())


def test_selected_rows_are_refused() -> None:
    column = make("dgl.frame.Column", {"storage": torch.ones(3), "index": torch.arange(3)})
    nodes = make("dgl.frame.Frame", {"_columns": {"feat": column}, "_num_rows": 3})
    with pytest.raises(ValueError, match="'feat' is a selection of rows"):
        graphs_of(dataset(graph([SRC, DST], nodes, frame(3)), edge_labels=[[0]]))


def test_new_object_makes_indices_only() -> None:
    index = CLASSES["dgl.heterograph_index.HeteroGraphIndex"]
    assert type(new_object(index)) is index
    with pytest.raises(TypeError, match="must be a graph index"):
        new_object(CLASSES["dgl.frame.Frame"])

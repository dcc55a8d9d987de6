import numpy as np
import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data

from fognn.data.graph_checks import GraphList, tensor_of


def graph(nodes: int = 3, edges: int = 4, **other) -> Data:
    edge_index = torch.arange(2 * edges).reshape(2, edges) % nodes
    return Data(**{"x": torch.ones(nodes, 2), "edge_index": edge_index, **other})


def test_a_graph_comes_out_as_int64_and_float32_without_the_rest():
    graphs = GraphList()
    item = graph(
        x=torch.zeros(3, 2, dtype=torch.float64, requires_grad=True),
        edge_index=EdgeIndex([[0, 1], [1, 2]], dtype=torch.int32),
        edge_attr=torch.tensor([True, False]),
        y=3,
        pos=torch.zeros(3),
        name="benzene",
        num_nodes=3,
    )
    graphs.add("here", item)
    (found,) = graphs.graphs
    assert sorted(found.keys()) == ["edge_attr", "edge_index", "x", "y"]
    assert found.x.dtype == torch.float32
    assert not found.x.requires_grad
    assert type(found.edge_index) is torch.Tensor
    assert found.edge_index.dtype == found.edge_attr.dtype == found.y.dtype == torch.int64
    assert found.edge_index.tolist() == [[0, 1], [1, 2]]
    assert found.y.tolist() == [3]
    assert item.x.dtype == torch.float64  # the given graph is not touched


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (3, "must be a Data with one graph, got int"),
        (Batch.from_data_list([graph()]), "must be a Data with one graph, got DataBatch"),
        (Data(edge_index=torch.zeros(2, 0).long()), "must have x .* or num_nodes.* num_nodes=0"),
        (Data(x=torch.ones(1, 1)), r"must have edge_index, it has only \['x'\]"),
        (graph(x=[1, 2, 3]), "x must be a dense tensor of numbers, got list"),
        (graph(x=torch.ones(3, 3).to_sparse()), "x must be a dense .* got torch.sparse_coo"),
        (graph(x=torch.ones(3, dtype=torch.cfloat)), "x must be a dense tensor of numbers"),
        (graph(x=torch.tensor(1.0)), r"x must have a row for each of its nodes.* got \[\]"),
        (graph(0, 0), r"each of its nodes, at least one, got \[0, 2\]"),
        (graph(num_nodes=4), r"x must have a row for each of its 4 nodes, got \[3, 2\]"),
        (graph(edge_index=torch.zeros(2, 4)), "edge_index must hold integers, got torch.float32"),
        (graph(edge_index=torch.zeros(2, 4).bool()), "edge_index must hold integers, got torch.b"),
        (graph(edge_index=torch.zeros(4, 2).long()), r"have shape \[2, edges\], got \[4, 2\]"),
        (graph(edge_index=torch.zeros(2).long()), r"have shape \[2, edges\], got \[2\]"),
        (graph(edge_index=torch.tensor([[0], [3]])), r"edge_index must lie in 0\.\.2, .* got 3"),
        (graph(edge_index=torch.tensor([[0], [-1]])), r"edge_index must lie in 0\.\.2, .* got -1"),
        (graph(edge_attr=torch.ones(5, 1)), r"edge_attr must have one entry for each of 4 edges"),
        (graph(edge_attr=torch.tensor(1)), r"edge_attr must have one entry for each of 4 edges"),
        (graph(y=torch.ones(5)), r"y must have one row, .* 3 nodes, .* 4 edges.* got shape \[5\]"),
        (graph(x=torch.tensor([1, 2, torch.nan])), "x must be finite, got NaN or infinity in row"),
        (graph(edge_attr=torch.tensor([1, 2, torch.inf, 0])), "edge_attr must be finite.* row 2"),
        (graph(y=torch.tensor([torch.inf])), "y must be finite, got NaN or infinity in row 0"),
        (graph(y=torch.tensor([1e300], dtype=torch.float64)), "y must be finite"),
    ],
)
def test_what_is_wrong_is_named(item, message):
    with pytest.raises(ValueError, match=f"^here.*{message}"):
        GraphList().add("here", item)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (graph(x=torch.ones(3, 5)), r"two has x float32 \[\*, 5\], it must .* x float32 \[\*, 2\]"),
        (graph(x=torch.ones(3, 2).long()), r"two has x int64 \[\*, 2\], it must"),
        (graph(y=1), r"two has x float32 \[\*, 2\], y int64 \[\*\], it must"),
        (graph(edge_attr=torch.ones(4)), r"two has x .*, edge_attr float32 \[\*\], it must"),
    ],
)
def test_graphs_must_be_alike(second, message):
    graphs = GraphList()
    graphs.add("one", graph())
    graphs.add("larger", graph(7, 2))
    with pytest.raises(ValueError, match=message):
        graphs.add("two", second)
    assert len(graphs.graphs) == 2


def test_the_level_of_y_is_what_fits_all_graphs():
    graphs = GraphList()
    assert graphs.level == "graph"
    graphs.add("one", graph(1, 1, y=torch.ones(1)))
    assert graphs.level == "graph"
    graphs.add("two", graph(4, 4, y=torch.ones(4)))
    assert graphs.level == "node"
    graphs.add("three", graph(4, 3, y=torch.ones(3)))
    assert graphs.level == "edge"
    with pytest.raises(ValueError, match="four: y must have one row, or"):
        graphs.add("four", graph(4, 3, y=torch.ones(4)))


@pytest.mark.parametrize("dtype", ["<i2", ">i4", "u1", "u8", "?", "<f2", ">f8"])
def test_tensor_of_arrays(dtype):
    found = tensor_of("here", "x", np.array([0, 1], dtype=dtype))
    assert found.dtype == (torch.float32 if "f" in dtype else torch.int64)
    assert found.tolist() == [0, 1]


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([None])])
def test_tensor_of_arrays_without_numbers(array):
    with pytest.raises(ValueError, match=f"here: x must be .* of numbers, got {array.dtype}"):
        tensor_of("here", "x", array)

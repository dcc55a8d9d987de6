import pytest
import torch
from torch.utils.data import Subset
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset

from fognn.data import PackedLoader
from fognn.data.columns import read_columns

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


class Collated(InMemoryDataset):
    def __init__(self, graphs: list[Data], transform=None) -> None:
        super().__init__(transform=transform)
        self.data, self.slices = self.collate(graphs)


def graph(**kwargs) -> Data:
    return Data(**{"x": torch.zeros(3, 2), "edge_index": EDGES, **kwargs})


def test_collated_tensors_are_not_copied():
    dataset = Collated([graph(), graph()])
    columns = read_columns(dataset).columns
    for key in ("x", "edge_index"):
        assert columns[key].values.data_ptr() == dataset._data[key].data_ptr()
    assert dataset._data_list is None


class Paired(Data):
    """Two graphs in one, of which the second has its own way of counting."""

    def __inc__(self, key, value, *args, **kwargs):
        return self.x_t.size(0) if key == "index_t" else super().__inc__(key, value)

    def __cat_dim__(self, key, value, *args, **kwargs):
        own = {"wide": 1, "stacked": None}
        return own[key] if key in own else super().__cat_dim__(key, value)


@pytest.mark.parametrize("kind", [list, Collated])
def test_a_graph_class_with_its_own_rules(kind):
    graphs = [
        Paired(
            x=torch.zeros(3, 1),
            edge_index=EDGES,
            x_t=torch.arange(float(n)),
            index_t=torch.arange(n).flip(0),
            wide=torch.arange(2.0 * n).reshape(2, n),
            stacked=torch.arange(5) + n,
        )
        for n in (2, 4)
    ]
    (mine,) = PackedLoader(kind(graphs), 2)
    theirs = Batch.from_data_list(graphs)
    assert isinstance(mine, Paired)
    for key in ("index_t", "wide", "x_t", "stacked"):
        assert torch.equal(mine[key], theirs[key])
    assert mine.index_t.tolist() == [1, 0, 5, 4, 3, 2]
    assert mine.stacked.shape == (2, 5)
    assert torch.equal(mine[1].stacked, graphs[1].stacked)


@pytest.mark.filterwarnings("ignore:Unable to accurately infer 'num_nodes'")
def test_collated_graphs_that_need_a_look_at_each_item():
    bare = [Data(edge_index=EDGES), Data(edge_index=EDGES[:, :1])]
    followed = [graph(s=torch.zeros(2), s_batch=torch.tensor([0, 1])) for _ in range(2)]
    for graphs in (bare, followed):
        (mine,) = PackedLoader(Collated(graphs), 2)
        theirs = Batch.from_data_list(graphs)
        assert mine.ptr.tolist() == theirs.ptr.tolist()
        if "s_batch" in theirs:
            assert mine.s_batch.tolist() == theirs.s_batch.tolist() == [0, 1, 2, 3]
    for value in ({"a": torch.zeros(1)}, torch.eye(3).to_sparse(), [torch.zeros(1)]):
        dataset = Collated([graph(z=value), graph(z=value)])
        with pytest.raises(ValueError, match="'z' must be a dense tensor"):
            PackedLoader(dataset, 1)
    words = Collated([graph(z="a"), graph(z="b")])
    (batch,) = PackedLoader(words, 2)
    assert batch.z == ["a", "b"]
    assert [item.z for item in batch.to_data_list()] == ["a", "b"]


def test_dataset_with_its_own_get():
    class Shifted(Collated):
        def get(self, idx):
            data = super().get(idx)
            data.x = data.x + idx
            return data

    (batch,) = PackedLoader(Shifted([graph(), graph()]), 2)
    assert batch.x[:, 0].tolist() == [0, 0, 0, 1, 1, 1]


def test_one_graph_dataset_and_subset():
    (batch,) = PackedLoader(Collated([graph()]), 5)
    assert batch.num_graphs == 1
    graphs = [graph(y=torch.tensor([i])) for i in range(5)]
    (batch,) = PackedLoader(Subset(Collated(graphs), [4, 1]), 2)
    assert batch.y.tolist() == [4, 1]
    (batch,) = PackedLoader(Collated(graphs)[[3, 3, 0]], 3)
    assert batch.y.tolist() == [3, 3, 0]


def test_edge_index_objects_and_short_integers():
    wrapped = graph(edge_index=EdgeIndex(EDGES, sparse_size=(3, 3)))
    short = graph(edge_index=EDGES.to(torch.int32))
    for item in (wrapped, short):
        (batch,) = PackedLoader([item], 1)
        assert batch.edge_index.dtype == torch.int64
        assert batch.edge_index.tolist() == [[2, 0, 1], [0, 1, 2]]


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ([], "at least one graph"),
        (7, "InMemoryDataset or a list of Data"),
        ([graph(), HeteroData()], r"dataset\[1\] must be one graph"),
        ([Batch.from_data_list([graph()])], r"dataset\[0\] must be one graph"),
        ([graph(), graph(y=torch.zeros(1))], r"dataset\[1\] must be one graph"),
        ([graph(), graph(x=torch.zeros(3, 4))], "graphs of one form"),
        ([graph(z={"a": 1})], "'z' must be a dense tensor"),
        ([graph(z=torch.eye(3).to_sparse())], "'z' must be a dense tensor"),
        ([graph(ptr=torch.zeros(2))], "'ptr'"),
        ([Data(x=torch.zeros(3, 1))], "must have an edge_index"),
        ([graph(edge_index=EDGES.float())], r"edge_index must be integers"),
        ([graph(edge_index=EDGES.T)], r"edge_index must be integers"),
        ([graph(x=torch.zeros(3, 2, device="meta"))], "'x' must be on the CPU"),
        ([graph(), graph(edge_index=EDGES + 1)], r"dataset\[1\]: edge 2 -> 3"),
    ],
)
def test_bad_datasets(dataset, message):
    with pytest.raises(ValueError, match=message):
        PackedLoader(dataset, 1)


def test_moved_by_a_tensor():
    class Bipartite(Data):
        def __inc__(self, key, value, *args, **kwargs):
            return torch.tensor([[1], [2]]) if key == "pairs" else super().__inc__(key, value)

    with pytest.raises(ValueError, match=r"'pairs' .*__inc__"):
        PackedLoader([Bipartite(x=torch.zeros(3, 1), edge_index=EDGES, pairs=EDGES)], 1)

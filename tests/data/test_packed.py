import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import Subset
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_add_pool

from fognn.data import ZINC, PackedLoader
from fognn.data.pack import read_columns


class Collated(InMemoryDataset):
    """A list of graphs in PyG's own collated form."""

    def __init__(self, graphs: list[Data], transform=None) -> None:
        super().__init__(transform=transform)
        self.data, self.slices = self.collate(graphs)


@st.composite
def edge_lists(draw, nodes: int) -> Tensor:
    """Any edges: unsorted, directed or not, with loops and repeated edges, or none."""
    if nodes == 0:
        return torch.empty(2, 0, dtype=torch.int64)
    end = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(end, end), max_size=12))
    if draw(st.booleans()):
        pairs = pairs + [(v, u) for u, v in pairs]
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t().contiguous()


@st.composite
def graph_lists(draw) -> list[Data]:
    """Graphs of 0 to 7 nodes with attributes of every level. Each value differs from all others,
    so that nothing that is put in a wrong place goes unseen."""
    graphs, count = [], 0.0
    for number in range(draw(st.integers(1, 6))):
        n = draw(st.integers(0, 7))
        edge_index = draw(edge_lists(n))
        e = edge_index.size(1)
        # Never as many as nodes or edges: PyG and we take such an attribute for theirs.
        extra = n + e + draw(st.integers(1, 3))

        def fresh(*shape: int) -> Tensor:
            nonlocal count
            out = torch.arange(torch.Size(shape).numel()).reshape(shape) + count
            count += out.numel()
            return out

        graphs.append(
            Data(
                x=fresh(n, 2),
                edge_index=edge_index,
                edge_attr=fresh(e, 3),
                y=fresh(1),
                edge_label=fresh(e),
                node_label=fresh(n),
                total=fresh(1)[0],
                number=number,
                extra=fresh(extra, 2),
            )
        )
    return graphs


def by_target(graph: Data) -> Data:
    """The graph with its edges sorted by target and then by source, in plain Python."""
    source, target = graph.edge_index.tolist()
    order = torch.tensor(
        sorted(range(len(source)), key=lambda i: (target[i], source[i])), dtype=torch.int64
    )
    out = graph.clone()
    for key in ("edge_index", "edge_attr", "edge_label"):
        if key in graph:
            out[key] = graph[key][..., order] if key == "edge_index" else graph[key][order]
    return out


def ring(n: int, **kwargs) -> Data:
    nodes = torch.arange(n)
    half = torch.stack([nodes, (nodes + 1) % n])
    return Data(x=torch.randn(n, 3), edge_index=torch.cat([half, half.flip(0)], 1), **kwargs)


def assert_same_values(mine: Data, theirs: Data) -> None:
    assert set(mine.keys()) == set(theirs.keys())
    for key in list(theirs.keys()):
        if isinstance(theirs[key], Tensor):
            got = mine[key].as_tensor() if isinstance(mine[key], EdgeIndex) else mine[key]
            assert got.dtype == theirs[key].dtype, key
            assert torch.equal(got, theirs[key]), key
        else:
            assert mine[key] == theirs[key], key


def assert_same_form(mine: tuple, theirs: tuple) -> None:
    (ptr1, index1), perm1 = mine
    (ptr2, index2), perm2 = theirs
    assert torch.equal(ptr1, ptr2)
    assert torch.equal(index1, index2)
    assert (perm1 is None) == (perm2 is None)
    if perm1 is not None:
        assert torch.equal(perm1, perm2)


@given(graphs=graph_lists(), batch_size=st.integers(1, 4), collated=st.booleans())
def test_batches_equal_those_of_pyg(graphs, batch_size, collated):
    dataset = Collated(graphs) if collated else graphs
    loader = PackedLoader(dataset, batch_size)
    expected = list(DataLoader([by_target(graph) for graph in graphs], batch_size))
    assert len(loader) == len(expected)
    for mine, theirs in zip(loader, expected, strict=True):
        assert isinstance(mine, Batch)
        assert isinstance(mine, Data)
        assert_same_values(mine, theirs)
        assert mine.num_graphs == theirs.num_graphs
        assert mine.num_nodes == theirs.num_nodes
        assert mine.num_edges == theirs.num_edges


@given(graphs=graph_lists(), batch_size=st.integers(1, 4))
def test_edge_index_is_filled_like_a_fresh_one(graphs, batch_size):
    for batch in PackedLoader(graphs, batch_size):
        edge_index = batch.edge_index
        edge_index.validate()
        assert edge_index.sort_order == "col"
        assert edge_index.sparse_size() == (batch.num_nodes, batch.num_nodes)
        for part in ("_indptr", "_T_perm", "_T_indptr"):
            assert getattr(edge_index, part) is not None
        assert None not in edge_index._T_index

        pairs = edge_index.tolist()
        undirected = sorted(zip(*pairs, strict=True)) == sorted(zip(*pairs[::-1], strict=True))
        assert edge_index.is_undirected == undirected

        plain = edge_index.as_tensor().clone()
        size = edge_index.sparse_size()
        fresh = EdgeIndex(plain, sparse_size=size, sort_order="col").fill_cache_()
        assert_same_form(edge_index.get_csc(), fresh.get_csc())
        # fill_cache_() leaves open how repeated edges are ordered, a stable sort does not.
        by_source, perm = EdgeIndex(plain, sparse_size=size).sort_by("row", stable=True)
        assert_same_form(edge_index.get_csr(), (by_source.get_csr()[0], perm))
        assert torch.equal(torch.stack(edge_index._T_index), by_source.as_tensor())
        (rowptr, _), _ = fresh.get_csr()
        assert torch.equal(edge_index._T_indptr, rowptr)
        if torch.unique(plain, dim=1).size(1) == plain.size(1) < 16:
            assert_same_form(edge_index.get_csr(), fresh.get_csr())


def test_nothing_is_sorted_when_batching(monkeypatch):
    loader = PackedLoader([ring(n) for n in range(3, 9)], 3)

    def refuse(*args, **kwargs):
        raise AssertionError("sorted")

    for owner in (torch, Tensor):
        for name in ("sort", "argsort", "unique"):
            monkeypatch.setattr(owner, name, refuse)
    with pytest.raises(AssertionError, match="sorted"):
        EdgeIndex([[0, 1], [1, 0]]).sort_by("col")
    for batch in loader:
        batch.edge_index.get_csr()
        batch.edge_index.get_csc()


@given(graphs=graph_lists())
def test_a_batch_comes_apart_again(graphs):
    (batch,) = PackedLoader(graphs, len(graphs))
    for mine, graph in zip(batch.to_data_list(), graphs, strict=True):
        theirs = by_target(graph)
        # As in PyG, numbers and single values come back as tensors of length one.
        for key in ("total", "number"):
            assert mine[key].tolist() == [theirs[key]]
            del mine[key], theirs[key]
        edge_index = mine.edge_index.validate()
        n = graph.num_nodes
        assert edge_index.sparse_size() == (n, n)
        fresh = EdgeIndex(theirs.edge_index, sparse_size=(n, n), sort_order="col")
        assert_same_form(edge_index.get_csr(), fresh.get_csr())
        assert_same_form(edge_index.get_csc(), fresh.get_csc())
        assert_same_values(mine, theirs)


@given(
    graphs=graph_lists(),
    chosen=st.lists(st.integers(0, 5), min_size=1, max_size=8),
)
def test_a_subset_is_respected(graphs, chosen):
    chosen = [i % len(graphs) for i in chosen]
    subset = Collated(graphs).index_select(chosen) if len(graphs) > 1 else graphs * len(chosen)
    (mine,) = PackedLoader(subset, len(chosen))
    theirs = Batch.from_data_list([by_target(graphs[i]) for i in chosen])
    assert_same_values(mine, theirs)


def test_shuffle_is_a_function_of_seed_and_epoch():
    graphs = [Data(x=torch.tensor([[i]]), edge_index=torch.empty(2, 0).long()) for i in range(30)]

    def seen(loader: PackedLoader) -> list[int]:
        return [int(v) for batch in loader for v in batch.x[:, 0]]

    loader = PackedLoader(graphs, 7, shuffle=True, seed=5)
    first = seen(loader)
    assert sorted(first) == list(range(30))
    assert first != list(range(30))
    assert seen(loader) == first
    loader.set_epoch(1)
    second = seen(loader)
    assert second != first
    resumed = PackedLoader(graphs, 7, shuffle=True, seed=5)
    resumed.set_epoch(1)
    assert seen(resumed) == second
    assert seen(PackedLoader(graphs, 7, shuffle=True, seed=6)) != first


def test_ranks_get_equally_many_batches():
    graphs = [ring(3, y=torch.tensor([i])) for i in range(11)]
    loaders = [PackedLoader(graphs, 2, rank=rank, world_size=3) for rank in range(3)]
    seen = [[batch.y.tolist() for batch in loader] for loader in loaders]
    assert seen == [[[0, 3], [6, 9]], [[1, 4], [7, 10]], [[2, 5], [8, 0]]]
    assert [len(loader) for loader in loaders] == [2, 2, 2]


def test_graphs_without_features():
    empty = torch.empty(2, 0, dtype=torch.int64)
    graphs = [Data(edge_index=empty, num_nodes=n) for n in (1, 0, 3)]
    graphs.append(Data(edge_index=torch.tensor([[1], [0]]), num_nodes=2))
    for dataset in (graphs, Collated(graphs)):
        (batch,) = PackedLoader(dataset, 4)
        assert batch.num_nodes == 6
        assert batch.ptr.tolist() == [0, 1, 1, 4, 6]
        assert batch.batch.tolist() == [0, 2, 2, 2, 3, 3]
        assert batch.edge_index.tolist() == [[5], [4]]
        assert "x" not in batch
        assert batch.edge_attr is None
        assert [graph.num_nodes for graph in batch.to_data_list()] == [1, 0, 3, 2]


def test_pyg_layers_take_a_batch():
    torch.manual_seed(0)
    graphs = [ring(n) for n in (3, 5, 4)]
    (mine,) = PackedLoader(graphs, 3)
    theirs = Batch.from_data_list(graphs)
    conv = GCNConv(3, 4)
    out = global_add_pool(conv(mine.x, mine.edge_index), mine.batch)
    expected = global_add_pool(conv(theirs.x, theirs.edge_index), theirs.batch)
    torch.testing.assert_close(out, expected)
    moved = mine.to("meta")
    assert moved.x.device.type == moved.edge_index.device.type == "meta"


def test_collated_tensors_are_not_copied():
    dataset = Collated([ring(3), ring(4)])
    _, columns = read_columns(dataset)
    for key in ("x", "edge_index"):
        assert columns[key].values.data_ptr() == dataset._data[key].data_ptr()
    assert dataset._data_list is None


@pytest.mark.filterwarnings("ignore:Unable to accurately infer 'num_nodes'")
def test_datasets_that_are_read_item_by_item():
    class Shifted(Collated):
        def get(self, idx):
            data = super().get(idx)
            data.x = data.x + idx
            return data

    graphs = [ring(n, y=torch.tensor([n])) for n in range(3, 8)]
    double = Collated(graphs, transform=lambda data: data.update({"x": 2 * data.x}))
    for dataset in (
        Shifted(graphs),
        double,
        Subset(Collated(graphs), [4, 1]),
        Collated(graphs[:1]),
    ):
        (mine,) = PackedLoader(dataset, 5)
        theirs = Batch.from_data_list([by_target(dataset[i]) for i in range(len(dataset))])
        assert_same_values(mine, theirs)
    bare = [
        Data(edge_index=torch.tensor([[0, 1], [1, 2]])),
        Data(edge_index=torch.tensor([[0], [1]])),
    ]
    (mine,) = PackedLoader(Collated(bare), 2)
    assert mine.ptr.tolist() == [0, 3, 5]


def test_edge_index_objects_and_short_integers():
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    for edge_index in (EdgeIndex(edges, sparse_size=(3, 3)), edges.to(torch.int32)):
        (batch,) = PackedLoader([Data(x=torch.zeros(3, 1), edge_index=edge_index)], 1)
        assert batch.edge_index.dtype == torch.int64
        assert batch.edge_index.tolist() == [[2, 0, 1], [0, 1, 2]]


def with_(**values) -> Data:
    return Data(**{"x": torch.zeros(3, 1), "edge_index": torch.tensor([[0, 1], [1, 2]]), **values})


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ([], "at least one graph"),
        ([with_(), HeteroData()], r"dataset\[1\] must be a Data"),
        ([with_(), with_(y=torch.zeros(1))], r"dataset\[1\] must be a Data"),
        ([Batch.from_data_list([with_()])], "'batch' cannot be packed"),
        ([with_(z=torch.eye(3).to_sparse())], "'z' cannot be packed"),
        ([with_(edge_label_index=torch.zeros(2, 1).long())], "'edge_label_index' cannot be packed"),
        ([Data(x=torch.zeros(3, 1))], "must have an edge_index"),
        ([with_(edge_index=torch.zeros(2, 1))], "edge_index must be integers"),
        ([with_(), with_(edge_index=torch.tensor([[2], [3]]))], r"dataset\[1\]: edge 2 -> 3"),
    ],
)
def test_bad_datasets(dataset, message):
    with pytest.raises(ValueError, match=message):
        PackedLoader(dataset, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"batch_size": 0}, {"batch_size": 2.0}, {"rank": 2, "world_size": 2}, {"world_size": 0}],
)
def test_bad_arguments(wrong):
    with pytest.raises(ValueError, match=f"PackedLoader: {next(iter(wrong))} must be"):
        PackedLoader([ring(3)] * 3, **{"batch_size": 1, **wrong})


def test_real_zinc(real_data, tmp_path):
    dataset = ZINC(tmp_path, "val", data=real_data)
    batches = zip(PackedLoader(dataset, 128), DataLoader(dataset, 128), strict=True)
    for mine, theirs in batches:
        # The house stores edges by target and then by source: nothing moves.
        assert_same_values(mine, theirs)
        assert mine.edge_index.validate().is_undirected
    assert mine.num_graphs == 1000 % 128


def test_batches_are_independent_and_can_be_sent():
    graphs = [ring(n, y=torch.tensor([n])) for n in range(3, 8)]
    batches = list(PackedLoader(graphs, 2))
    assert [batch.num_graphs for batch in batches] == [2, 2, 1]
    assert [batch.y.tolist() for batch in batches] == [[3, 4], [5, 6], [7]]
    sent = pickle.loads(pickle.dumps(batches[1]))
    assert_same_values(sent, batches[1])
    assert sent.num_graphs == 2
    assert sent[1].num_nodes == 6
    assert_same_form(sent.edge_index.get_csr(), batches[1].edge_index.get_csr())

import torch
from torch_geometric.data import Data

from fognn.data.pack import Pack


def test_levels_are_recognised_from_sizes():
    graphs = [
        Data(
            x=torch.zeros(n, 2),
            edge_index=torch.randint(0, n, (2, e)),
            edge_attr=torch.zeros(e),
            y=torch.zeros(e),
            label=torch.zeros(n),
            target=torch.zeros(1, 3),
            many=torch.zeros(n + e),
        )
        for n, e in ((3, 4), (2, 2), (5, 3))
    ]
    assert Pack(graphs).levels == {
        "x": "node",
        "edge_attr": "edge",
        "y": "edge",
        "label": "node",
        "target": "graph",
        "many": "own",
    }


def test_the_name_decides_where_sizes_do_not():
    ring = torch.tensor([[2, 0, 1], [1, 2, 0]])
    graph = Data(
        x=torch.arange(3.0), edge_index=ring, edge_attr=torch.arange(3.0), y=torch.arange(3.0)
    )
    pack = Pack([graph])
    assert pack.levels == {"x": "node", "edge_attr": "edge", "y": "node"}
    batch = pack.collate(torch.tensor([0, 0]))
    assert batch.edge_attr.tolist() == [2, 0, 1, 2, 0, 1]
    assert batch.y.tolist() == batch.x.tolist() == [0, 1, 2, 0, 1, 2]


def test_batches_do_not_share_memory_with_the_pack():
    graph = Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    pack = Pack([graph, graph])
    first = pack.collate(torch.tensor([0]))
    first.x += 1
    first.edge_index.as_tensor().zero_()
    second = pack.collate(torch.tensor([0]))
    assert second.x.sum() == 0
    assert second.edge_index.tolist() == [[1, 0], [0, 1]]

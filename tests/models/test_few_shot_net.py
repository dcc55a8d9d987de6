from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Dropout2d
from torch.nn.functional import cross_entropy
from torch_geometric.nn import DenseGraphConv

from fognn.models import FewShotNet
from fognn.nn import AdjacencyMLP, DenseFOG

KINDS = ["gnn", "fog", "gnn+fog"]


def tasks(batch: int = 2, shots: int = 1, size: int = 20):
    torch.manual_seed(0)
    label = torch.stack([torch.randperm(5 * shots) % 5 for _ in range(batch)])
    support = torch.randn(batch, 5 * shots, 1, size, size)
    return support, label, torch.randn(batch, 1, size, size)


def net(kind: str, **settings) -> FewShotNet:
    torch.manual_seed(0)
    return FewShotNet(kind, embedding=8, image_size=20, image_channels=1, **settings)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shots", [1, 5])
def test_logits(kind: str, shots: int) -> None:
    network = net(kind)
    out = network(*tasks(shots=shots))
    assert out.shape == (2, 5)
    out.logsumexp(1).sum().backward()
    # The adjacency's last bias shifts all scores alike: a softmax does not see it.
    idle = {n for n, p in network.named_parameters() if p.grad is None}
    assert not idle


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbours", ["learnt", "all"])
def test_the_order_of_the_support_set_changes_nothing(kind: str, neighbours: str) -> None:
    network = net(kind, neighbours=neighbours).eval()
    support, label, query = tasks()
    order = torch.randperm(5)
    torch.testing.assert_close(
        network(support[:, order], label[:, order], query), network(support, label, query)
    )


def literal_linear(linear: Any, x: list[Tensor]) -> list[Tensor]:
    return [linear.weight @ row + linear.bias for row in x]


def literal_norm(x: list[Tensor], eps: float = 1e-5) -> list[Tensor]:
    """Batch norm in training, before it has learnt a scale or a shift."""
    mean = sum(x) / len(x)
    var = sum((row - mean) ** 2 for row in x) / len(x)
    return [(row - mean) / (var + eps).sqrt() for row in x]


def literal_adjacency(adjacency: AdjacencyMLP, graphs: list[list[Tensor]]) -> list[Tensor]:
    """a_vu: softmax over u of MLP(|x_v - x_u|), with the self entry masked out."""
    rows = [(v - u).abs() for graph in graphs for v in graph for u in graph]
    for number, layer in enumerate(adjacency.mlp):
        if number % 3 == 0:
            rows = literal_linear(layer, rows)
        elif number % 3 == 1:
            rows = literal_norm(rows)
        else:
            rows = [torch.where(row > 0, row, 0.01 * row) for row in rows]
    found = []
    for graph in graphs:
        n = len(graph)
        scores, rows = torch.cat(rows[: n * n]).view(n, n).exp(), rows[n * n :]
        scores = scores * (1 - torch.eye(n, dtype=scores.dtype))
        found.append(scores / scores.sum(1, keepdim=True))
    return found


def literal_fog(fog: DenseFOG, graphs: list[list[Tensor]], a: list[Tensor]) -> list[Tensor]:
    """p_v = W_vu (sum_u a_vu h_v (x) h_u) + b, with every product written out."""
    h_v = [row for graph in graphs for row in graph]
    h_v = literal_norm([row.clamp_min(0) for row in literal_linear(fog.lin_1, h_v)])
    h_u = literal_norm([row.clamp_min(0) for row in literal_linear(fog.lin_2, h_v)])
    found, first = [], 0
    for graph, weight in zip(graphs, a, strict=True):
        for v in range(len(graph)):
            total = torch.zeros(fog.h1 * fog.h2, dtype=weight.dtype)
            for u in range(len(graph)):
                if u != v:
                    total += weight[v, u] * torch.kron(h_v[first + v], h_u[first + u])
            found += literal_linear(fog.lin_vu, [total])
        first += len(graph)
    return found


def literal_gnn(conv: DenseGraphConv, graphs: list[list[Tensor]], a: list[Tensor]) -> list[Tensor]:
    """q_v = V (x_v || sum_u a_vu x_u)."""
    weight = torch.cat([conv.lin_root.weight, conv.lin_rel.weight], dim=1)
    bias = conv.lin_root.bias if conv.lin_rel.bias is None else conv.lin_rel.bias
    found = []
    for graph, own in zip(graphs, a, strict=True):
        for v in range(len(graph)):
            total = sum(own[v, u] * graph[u] for u in range(len(graph)) if u != v)
            found.append(weight @ torch.cat([graph[v], total]) + bias)
    return found


def literal_logits(network: FewShotNet, neighbours: str, x: Tensor) -> Tensor:
    """The graph network of the paper, node by node, in training."""
    graphs = [list(graph) for graph in x]
    for layer in network.gnn.layers:
        a = literal_adjacency(layer.adjacency, graphs)
        ones = [torch.ones_like(own) for own in a]
        parts = []
        if layer.fog is not None:
            parts.append(literal_fog(layer.fog, graphs, a if neighbours == "learnt" else ones))
        if layer.conv is not None:
            parts.append(literal_gnn(layer.conv, graphs, a))
        new = literal_norm([torch.cat(both) for both in zip(*parts, strict=True)])
        new = [torch.where(row > 0, row, 0.01 * row) for row in new]
        nodes = len(graphs[0])
        graphs = [
            [torch.cat([old, new[nodes * g + v]]) for v, old in enumerate(graph)]
            for g, graph in enumerate(graphs)
        ]
    a = literal_adjacency(network.gnn.adjacency, graphs)
    out = literal_gnn(network.gnn.last, graphs, a)
    return torch.stack(out[:: len(graphs[0])])  # node 0 is the query


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbours", ["learnt", "all"])
def test_the_literal_equations(kind: str, neighbours: str) -> None:
    network = net(kind, neighbours=neighbours, hidden=6).double()
    without_dropout(network)
    support, label, query = (part.double() for part in tasks(batch=3))
    images = torch.cat([support.flatten(0, 1), query])
    feature = network.cnn(images)
    code = torch.zeros(3, 5, 5, dtype=torch.float64)
    for task in range(3):
        for image in range(5):
            code[task, image, int(label[task, image])] = 1.0
    known = torch.cat([feature[:15].view(3, 5, -1), code], dim=-1)
    asked = torch.cat([feature[15:], torch.zeros(3, 5, dtype=torch.float64)], dim=-1)
    x = torch.cat([asked.unsqueeze(1), known], dim=1)
    torch.testing.assert_close(
        network(support, label.long(), query), literal_logits(network, neighbours, x)
    )


def without_dropout(network: FewShotNet) -> None:
    for module in network.modules():
        if isinstance(module, Dropout2d):
            module.p = 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shots", [1, 3])
def test_queries_that_share_a_support_set(kind: str, shots: int) -> None:
    """Outputs, gradients and running statistics are those of a task for each query."""
    shared = net(kind).double()
    without_dropout(shared)
    apart = deepcopy(shared)
    support, label, _ = tasks(shots=shots)
    support = support.double()
    query = torch.randn(2, 4, 1, 20, 20, dtype=torch.float64)
    target = torch.randint(5, (8,))
    out = shared(support, label, query)
    assert out.shape == (2, 4, 5)
    expected = apart(
        support.repeat_interleave(4, 0), label.repeat_interleave(4, 0), query.flatten(0, 1)
    )
    torch.testing.assert_close(out.flatten(0, 1), expected)
    cross_entropy(out.flatten(0, 1), target).backward()
    cross_entropy(expected, target).backward()
    for (name, one), other in zip(shared.named_parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, msg=name)
    for one, other in zip(shared.buffers(), apart.buffers(), strict=True):
        torch.testing.assert_close(one, other)
    shared.eval()
    first = shared(support, label, query[:, :1])
    torch.testing.assert_close(shared(support, label, query)[:, :1], first)  # they do not meet


def test_bad_input() -> None:
    network = net("gnn")
    support, label, query = tasks()
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        network(support, label + 1, query)
    for wrong in ((support[0], label), (support, label[:, :-1])):
        with pytest.raises(ValueError, match=r"support must have shape \[batch, images, C, H, W\]"):
            network(*wrong, query)
    with pytest.raises(ValueError, match="FewShotNet: n_way must be a positive int, got 0"):
        FewShotNet("gnn", n_way=0)

import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given, settings
from torch_geometric import EdgeIndex

from fognn.nn import GatedGCNConv


def literal(conv: GatedGCNConv, x_source, x_target, edge_index, e):
    """The equations, a loop over nodes and edges."""

    def linear(lin, value):
        return value @ lin.weight.t() + lin.bias

    hat = torch.zeros_like(e)
    for i, (u, v) in enumerate(edge_index.t().tolist()):
        hat[i] = linear(conv.lin_A, x_target[v]) + linear(conv.lin_B, x_source[u])
        hat[i] = hat[i] + linear(conv.lin_C, e[i])
    bn = conv.norm_e.module
    mean, var = bn.running_mean, bn.running_var
    if conv.training and len(e) > 1:
        mean, var = hat.mean(0), hat.var(0, unbiased=False)
    normed = torch.relu((hat - mean) / (var + bn.eps).sqrt() * bn.weight + bn.bias)
    sigma = torch.sigmoid(hat if conv.gate == "before" else normed)
    out = []
    for v in range(len(x_target)):
        edges = [i for i in range(len(e)) if edge_index[1, i] == v]
        q = linear(conv.lin_U, x_target[v])
        if edges:
            below = sum(sigma[i] for i in edges) + 1e-6
            q = q + sum(
                sigma[i] / below * linear(conv.lin_V, x_source[edge_index[0, i]]) for i in edges
            )
        out.append(q if conv.lin_W is None else linear(conv.lin_W, q))
    return torch.stack(out), e + normed


@pytest.mark.parametrize("gate", ["before", "after"])
@pytest.mark.parametrize("out_channels", [None, 2])
@settings(max_examples=40)
@given(graph=graphs(bipartite=True))
def test_equals_the_equations(gate: str, out_channels, graph: Graph) -> None:
    torch.manual_seed(graph.seed % 2**31)
    conv = GatedGCNConv(3, out_channels, gate).double()
    x_source = graph.randn(graph.num_sources, 3).requires_grad_()
    x_target = graph.randn(graph.num_targets, 3).neg().requires_grad_()
    e = graph.randn(graph.num_edges, 3).add(1).requires_grad_()
    leaves = [x_source, x_target, e, *conv.parameters()]
    results = []
    for compute in (conv, lambda *args: literal(conv, *args)):
        if compute is conv:
            q, edges = conv((x_source, x_target), graph.edge_index, e)
        else:
            q, edges = compute(x_source, x_target, graph.edge_index, e)
        loss = q.sin().sum() + edges.cos().sum()
        grads = torch.autograd.grad(loss, leaves, materialize_grads=True)
        results.append([q, edges, *grads])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-8, atol=1e-8)


def test_edge_features_keep_the_users_order() -> None:
    torch.manual_seed(0)
    conv, x = GatedGCNConv(3).eval(), torch.randn(5, 3)
    edge_index, e = torch.randint(0, 5, (2, 12)), torch.randn(12, 3)
    q, edges = conv(x, edge_index, e)
    for order in ("row", "col"):
        ordered, perm = EdgeIndex(edge_index, sparse_size=(5, 5)).sort_by(order)
        q_ordered, edges_ordered = conv(x, ordered, e[perm])
        torch.testing.assert_close(q_ordered, q)
        torch.testing.assert_close(edges_ordered, edges[perm])


@pytest.mark.parametrize("gate", ["before", "after"])
@pytest.mark.parametrize("own_norm", [False, True])
def test_without_edge_output_the_nodes_are_the_same(gate: str, own_norm: bool) -> None:
    torch.manual_seed(0)
    conv = GatedGCNConv(3, gate=gate)
    last = GatedGCNConv(3, gate=gate, edge_output=False)
    last.load_state_dict(conv.state_dict())
    if own_norm:  # which no operator computes
        for layer in (conv, last):
            layer.norm_e.module = torch.nn.BatchNorm1d(3, momentum=0.2)
            layer.norm_e.allow_single_element = False
    x, edge_index, e = torch.randn(5, 3), torch.randint(0, 5, (2, 12)), torch.randn(12, 3)
    out = last(x, edge_index, e)
    assert isinstance(out, torch.Tensor)
    torch.testing.assert_close(out, conv(x, edge_index, e)[0])
    if gate == "before":  # nobody asked the norm
        assert not last.norm_e.module.running_mean.any()


@pytest.mark.parametrize("gate", ["before", "after"])
def test_edges_that_are_all_alike(gate: str) -> None:
    torch.manual_seed(0)
    conv = GatedGCNConv(3, gate=gate)
    x, edge_index = torch.randn(5, 3), torch.randint(0, 5, (2, 12))
    row = torch.randn(1, 3, requires_grad=True)
    results = []
    for e in (row, row.expand(12, 3)):
        q, edges = conv(x, edge_index, e)
        (grad,) = torch.autograd.grad(q.sin().sum() + edges.cos().sum(), row)
        results.append((q, edges, grad))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_repr_and_bad_input() -> None:
    assert str(GatedGCNConv(3, 2)) == "GatedGCNConv(3, 2, gate=before)"
    assert GatedGCNConv(3).lin_W is None
    x, edge_index = torch.randn(5, 3), torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="edge_attr must have 3 channels, got 4"):
        GatedGCNConv(3)(x, edge_index, torch.randn(2, 4))
    with pytest.raises(ValueError, match="edge_attr must have one entry for each of 2 edges"):
        GatedGCNConv(3)(x, edge_index, torch.randn(3, 3))
    with pytest.raises(ValueError, match="gate must be one of 'before', 'after', got 'never'"):
        GatedGCNConv(3, gate="never")

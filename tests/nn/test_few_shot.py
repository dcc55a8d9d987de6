import pytest
import torch
from torch import Tensor

from fognn.nn import FOG, AdjacencyMLP, DenseFOG, FewShotLayer, ImageEncoder


def test_adjacency_is_a_softmax_over_the_others() -> None:
    torch.manual_seed(0)
    mlp, x = AdjacencyMLP(7, hidden=4), torch.randn(3, 5, 7)
    a = mlp(x)
    assert a.shape == (3, 5, 5)
    torch.testing.assert_close(a.sum(-1), torch.ones(3, 5))
    assert torch.equal(a.diagonal(dim1=1, dim2=2), torch.zeros(3, 5))
    mlp.eval()
    a = mlp(x)
    for v, u, w in ((0, 1, 2), (4, 3, 0)):
        scores = [mlp.mlp((x[1, v] - x[1, n]).abs().unsqueeze(0)) for n in (u, w)]
        torch.testing.assert_close(a[1, v, u] / a[1, v, w], (scores[0] - scores[1]).exp().squeeze())


def sparse_fog(fog: DenseFOG, x: Tensor, adj: Tensor | None) -> Tensor:
    """The same by the sparse layer: every other node of the graph is a neighbour."""
    batch, nodes, channels = x.shape
    twin = FOG(fog.in_channels, fog.out_channels, fog.h1, fog.h2).double()
    twin.load_state_dict(fog.state_dict())
    twin.train(fog.training)
    target, source = (~torch.eye(nodes, dtype=torch.bool)).nonzero().t()
    offset = torch.arange(batch).repeat_interleave(len(source)) * nodes
    edge_index = torch.stack([source.repeat(batch), target.repeat(batch)]) + offset
    weight = None if adj is None else adj[:, target, source].flatten()
    return twin(x.reshape(-1, channels), edge_index, weight).view(batch, nodes, -1)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("learnt", [True, False])
def test_dense_fog_equals_sparse_fog(training: bool, learnt: bool) -> None:
    torch.manual_seed(0)
    fog = DenseFOG(7, 3, 2, 4).double().train(training)
    x = torch.randn(3, 5, 7, dtype=torch.float64)
    adj = None
    if learnt:
        adj = torch.rand(3, 5, 5, dtype=torch.float64)
        adj.diagonal(dim1=1, dim2=2).zero_()
    torch.testing.assert_close(fog(x, adj), sparse_fog(fog, x, adj))


@pytest.mark.parametrize("kind", ["gnn", "fog", "gnn+fog"])
@pytest.mark.parametrize("neighbours", ["learnt", "all"])
def test_layer(kind: str, neighbours: str) -> None:
    torch.manual_seed(0)
    layer, x = FewShotLayer(7, 6, kind, neighbours), torch.randn(3, 5, 7)
    out = layer(x)
    assert torch.equal(out[..., :7], x)
    a, parts = layer.adjacency(x), []
    if layer.fog is not None:
        parts.append(layer.fog(x, a if neighbours == "learnt" else None))
    if layer.conv is not None:
        weight = torch.cat([layer.conv.lin_root.weight, layer.conv.lin_rel.weight], dim=1)
        bias = sum(
            lin.bias for lin in (layer.conv.lin_root, layer.conv.lin_rel) if lin.bias is not None
        )
        parts.append(torch.cat([x, a @ x], dim=-1) @ weight.t() + bias)
    q = torch.cat(parts, dim=-1).flatten(0, 1)
    normed = (q - q.mean(0)) / (q.var(0, unbiased=False) + 1e-5).sqrt()
    expected = torch.nn.functional.leaky_relu(normed).view(3, 5, 6)
    torch.testing.assert_close(out[..., 7:], expected, rtol=1e-4, atol=1e-4)
    layer.reset_parameters()


@pytest.mark.parametrize(("size", "colours"), [(84, 3), (32, 3), (28, 1), (20, 1)])
def test_image_encoder(size: int, colours: int) -> None:
    encoder = ImageEncoder(16, size, colours)
    assert encoder(torch.randn(4, colours, size, size)).shape == (4, 16)
    encoder.reset_parameters()


def test_image_encoder_of_the_paper() -> None:
    encoder = ImageEncoder()
    assert encoder.lin.in_channels == 6400
    weights = 9 * (3 * 64 + 64 * 96 + 96 * 128 + 128 * 256)
    norms = 2 * (64 + 96 + 128 + 256 + 128)
    assert sum(p.numel() for p in encoder.parameters()) == weights + norms + 6400 * 128 + 128


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"x must have shape \[batch, nodes, 7\], .* got \[5, 7\]"):
        AdjacencyMLP(7)(torch.randn(5, 7))
    with pytest.raises(ValueError, match="at least 2 nodes, got"):
        AdjacencyMLP(7)(torch.randn(3, 1, 7))
    with pytest.raises(ValueError, match=r"x must have shape \[batch, nodes, 7\]"):
        DenseFOG(7, 3, 2, 4)(torch.randn(3, 5, 6))
    with pytest.raises(ValueError, match=r"adj must have shape \[3, 5, 5\], got \[3, 5, 4\]"):
        DenseFOG(7, 3, 2, 4)(torch.randn(3, 5, 7), torch.ones(3, 5, 4))
    with pytest.raises(ValueError, match="image_size must be at least 20, got 19"):
        ImageEncoder(16, 19)
    with pytest.raises(ValueError, match=r"image must have shape \[images, 3, 84, 84\], got"):
        ImageEncoder()(torch.randn(2, 3, 28, 28))
    with pytest.raises(ValueError, match="kind must be one of 'gnn', 'fog', 'gnn\\+fog'"):
        FewShotLayer(7, 6, "cnn")


def test_dense_fog_has_no_edge_features() -> None:
    with pytest.raises(ValueError, match="DenseFOG: edge_dim must be None, got 3"):
        DenseFOG(4, 5, edge_dim=3)(torch.randn(2, 6, 4))

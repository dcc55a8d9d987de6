"""Layers of the few-shot networks, on batches of small, fully connected graphs.

The layout is that of `"Few-Shot Learning with Graph Neural Networks"
<https://arxiv.org/abs/1711.04043>`_: one graph a task, one node an image, features
``[batch, nodes, channels]``.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import BatchNorm2d, Conv2d, Dropout2d, LeakyReLU, MaxPool2d, Module, Sequential
from torch_geometric.nn import BatchNorm, DenseGraphConv, Linear

from fognn.nn.fog import FOG
from fognn.nn.graph_layer import Resettable
from fognn.nn.norms import Repeats, repeated_norm
from fognn.utils import checks


class AdjacencyMLP(Resettable):
    r"""A learnt adjacency: the softmax, over the other nodes, of an MLP of the absolute difference
    of features.

    .. math::
        a_{vu} = \textrm{softmax}_{u \neq v} \, \textrm{MLP}(|\mathbf{x}_v - \mathbf{x}_u|)

    The MLP has widths :math:`C, 2h, 2h, h, h, 1`, with BatchNorm and LeakyReLU after the first
    four Linears.

    Args:
        in_channels (int): Size of each input sample.
        hidden (int, optional): The width :math:`h`. (default: :obj:`96`)
    """

    def __init__(self, in_channels: int, hidden: int = 96) -> None:
        super().__init__()
        self.in_channels = checks.positive_int("AdjacencyMLP", "in_channels", in_channels)
        self.hidden = checks.positive_int("AdjacencyMLP", "hidden", hidden)
        self.out_channels = 1
        widths = [in_channels, 2 * hidden, 2 * hidden, hidden, hidden]
        layers: list[Module] = []
        for width, wider in pairwise(widths):
            layers += [Linear(width, wider), BatchNorm(wider), LeakyReLU()]
        self.mlp = Sequential(*layers, Linear(hidden, 1))

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 3 or x.size(1) < 2 or x.size(2) != self.in_channels:
            raise ValueError(
                f"AdjacencyMLP: x must have shape [batch, nodes, {self.in_channels}], and at least "
                f"2 nodes, got {list(x.shape)}"
            )
        batch, nodes, channels = x.shape
        # The difference is symmetric, so each pair passes the MLP once. It counts twice in the
        # batch norms, and the zero difference of a node to itself once for each node.
        v, u = torch.triu_indices(nodes, nodes, 1, device=x.device)
        pairs = len(v)
        number = torch.arange(pairs, device=x.device)
        signs = x.new_zeros(pairs + 1, nodes)
        signs[number, v], signs[number, u] = 1.0, -1.0
        difference = (signs @ x.transpose(0, 1).reshape(nodes, -1)).abs_().view(-1, channels)
        repeats = Repeats((pairs * batch, batch), (2, nodes))
        score = through(self.mlp, difference, repeats).view(pairs + 1, batch)
        place = torch.full((nodes, nodes), pairs, device=x.device)
        place[v, u] = place[u, v] = number
        score = score.index_select(0, place.flatten()).t().view(batch, nodes, nodes)
        self_entry = torch.eye(nodes, dtype=torch.bool, device=x.device)
        return score.masked_fill(self_entry, float("-inf")).softmax(dim=-1)


class DenseFOG(FOG):
    r"""FOG on a batch of dense graphs.

    .. math::
        \mathbf{p}_v = \mathbf{W}_{vu} \Big( \tilde{\mathbf{h}}_v \otimes
        \sum_{u \neq v} a_{vu} \tilde{\mathbf{h}}_u \Big)

    Arguments, parameters and state are those of :class:`FOG`, without :obj:`edge_dim`. With
    :obj:`adj=None`, every :math:`a_{vu}` is 1.

    Shapes:
        - **inputs:** node features :math:`(B, N, F_{in})`, weights :math:`(B, N, N)` *(optional)*
        - **outputs:** node features :math:`(B, N, C_p)`
    """

    def forward(self, x: Tensor, adj: Tensor | None = None) -> Tensor:  # type: ignore[override]
        if self.edge_dim is not None:
            raise ValueError(f"DenseFOG: edge_dim must be None, got {self.edge_dim}")
        if x.dim() != 3 or x.size(2) != self.in_channels != -1:
            width = "channels" if self.in_channels == -1 else self.in_channels
            shape = list(x.shape)
            raise ValueError(f"DenseFOG: x must have shape [batch, nodes, {width}], got {shape}")
        batch, nodes, channels = x.shape
        if adj is not None and tuple(adj.shape) != (batch, nodes, nodes):
            raise ValueError(
                f"DenseFOG: adj must have shape {[batch, nodes, nodes]}, got {list(adj.shape)}"
            )
        h_v = self.shrink(x.reshape(-1, channels))
        h_u = self.shrink_again(h_v).t().reshape(batch, nodes, -1)
        h_sum = h_u.sum(dim=1, keepdim=True) - h_u if adj is None else adj @ h_u
        return self.correlate(h_v, h_sum.flatten(0, 1)).view(batch, nodes, -1)


class FewShotLayer(Resettable):
    r"""A layer of the few-shot networks: a learnt adjacency, a host or FOG or both, norm and
    LeakyReLU. The result is concatenated to the input.

    Args:
        in_channels (int): Size of each input sample.
        out_channels (int): Number of channels that are concatenated to it.
        kind (str): :obj:`"gnn"`: :math:`\mathbf{V} (\mathbf{x}_v \Vert \sum_u a_{vu}
            \mathbf{x}_u)`; :obj:`"fog"`: :class:`DenseFOG`; :obj:`"gnn+fog"`: half of each.
        neighbours (str, optional): The weights of FOG's sum: :obj:`"learnt"`, the learnt
            adjacency, which the paper's parameter counts imply; or :obj:`"all"`, all equal to 1.
            (default: :obj:`"learnt"`)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kind: str, neighbours: str = "learnt"
    ) -> None:
        super().__init__()
        checks.one_of("FewShotLayer", "kind", kind, ("gnn", "fog", "gnn+fog"))
        checks.one_of("FewShotLayer", "neighbours", neighbours, ("learnt", "all"))
        self.in_channels = checks.positive_int("FewShotLayer", "in_channels", in_channels)
        self.out_channels = checks.positive_int("FewShotLayer", "out_channels", out_channels)
        self.neighbours = neighbours
        p = {"gnn": 0, "fog": out_channels, "gnn+fog": out_channels // 2}[kind]
        self.adjacency = AdjacencyMLP(in_channels)
        self.fog = DenseFOG(in_channels, p, act_first=True) if p else None  # as in the paper
        self.conv = DenseGraphConv(in_channels, out_channels - p) if p < out_channels else None
        self.norm = BatchNorm(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        a = self.adjacency(x)
        parts = []
        if self.fog is not None:
            parts.append(self.fog(x, a if self.neighbours == "learnt" else None))
        if self.conv is not None:
            parts.append(self.conv(x, a))
        out = torch.cat(parts, dim=-1)
        normed = self.norm(out.flatten(0, 1)).view_as(out)
        return torch.cat([x, F.leaky_relu(normed)], dim=-1)


class ImageEncoder(Resettable):
    r"""The convolutional network that computes the features of an image: four convolutions of 64,
    96, 128 and 256 channels, each with BatchNorm, max-pooling and LeakyReLU, and a Linear.

    Args:
        out_channels (int, optional): Size of each output sample. (default: :obj:`128`)
        image_size (int, optional): Height and width of the images. (default: :obj:`84`)
        image_channels (int, optional): Number of colour channels. (default: :obj:`3`)

    Shapes:
        - **inputs:**
          images :math:`(N, C_{image}, H, W)`, and, if some of them occur several times in the
          batch that they stand for, their :class:`~fognn.nn.norms.Repeats` *(optional)*
        - **outputs:** features :math:`(N, F_{out})`
    """

    def __init__(
        self, out_channels: int = 128, image_size: int = 84, image_channels: int = 3
    ) -> None:
        super().__init__()
        self.in_channels = checks.positive_int("ImageEncoder", "image_channels", image_channels)
        self.out_channels = checks.positive_int("ImageEncoder", "out_channels", out_channels)
        self.image_size = checks.positive_int("ImageEncoder", "image_size", image_size)
        side = ((image_size // 2 - 2) // 2) // 2 // 2
        if side < 1:
            raise ValueError(f"ImageEncoder: image_size must be at least 20, got {image_size}")
        self.conv = Sequential(
            *_convolution(image_channels, 64, padding=1),
            *_convolution(64, 96, padding=0),
            *_convolution(96, 128, padding=1),
            Dropout2d(0.4),
            *_convolution(128, 256, padding=1),
            Dropout2d(0.5),
        )
        self.conv.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.lin = Linear(256 * side * side, out_channels)
        self.norm = BatchNorm(out_channels)

    def forward(self, image: Tensor, repeats: Repeats | None = None) -> Tensor:
        expected = [self.in_channels, self.image_size, self.image_size]
        if image.dim() != 4 or list(image.shape[1:]) != expected:
            raise ValueError(
                f"ImageEncoder: image must have shape [images, {', '.join(map(str, expected))}], "
                f"got {list(image.shape)}"
            )
        repeats = repeats or Repeats((len(image),), (1,))
        # Convolutions, norms and pools on the CPU are faster with the channels last.
        image = image.contiguous(memory_format=torch.channels_last)
        feature = self.lin(through(self.conv, image, repeats).flatten(1))
        return repeated_norm(self.norm, feature, repeats)


def through(layers: Sequential, x: Tensor, repeats: Repeats) -> Tensor:
    r"""Runs layers on distinct rows; dropout draws one mask for a row and its repetitions."""
    for layer in layers:
        norm = isinstance(layer, BatchNorm | BatchNorm2d)
        x = repeated_norm(layer, x, repeats) if norm else layer(x)
    return x


def _convolution(in_channels: int, out_channels: int, padding: int) -> list[Module]:
    return [
        Conv2d(in_channels, out_channels, kernel_size=3, padding=padding, bias=False),
        BatchNorm2d(out_channels),
        MaxPool2d(2),
        LeakyReLU(0.2),
    ]

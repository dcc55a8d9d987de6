"""Heads: from the features of a network's layers to outputs on nodes, edges or graphs."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, ModuleList, ReLU, Sequential
from torch_geometric.nn import Linear, global_add_pool, global_mean_pool

from fognn.nn.graph_layer import Resettable
from fognn.ops import Adjacency, add_ends
from fognn.utils import checks


class Head(Resettable):
    """The base of both heads, with outputs on each node, edge or graph, the level. The readout is
    how the nodes of a graph are pooled: by their ``"mean"`` or ``"sum"``."""

    reads_all = False
    """Whether the head reads the features of all layers, each with one of its ``heads``, or only
    of the last, with its ``mlp``."""
    heads: ModuleList
    mlp: Sequential

    def __init__(self, channels: int, out_channels: int, level: str, readout: str) -> None:
        super().__init__()
        self.in_channels = channels
        self.out_channels = out_channels
        self.level = level
        self.readout = readout

    def forward(
        self,
        states: list[Tensor],
        adj: Adjacency,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        pool = global_mean_pool if self.readout == "mean" else global_add_pool
        mlps = list(self.heads) if self.reads_all else [self.mlp]
        outs = []
        for mlp, x in zip(mlps, states[-len(mlps) :], strict=True):
            layers = [mlp]
            if self.level == "graph":
                x = pool(x, batch, batch_size)
            elif self.level == "edge":
                # A Linear of both ends, source first, is one product for each end on the nodes.
                first, _, *layers = mlp.children()  # a Linear and a ReLU
                assert isinstance(first, Linear)
                of_source, of_target = first.weight.chunk(2, dim=1)
                x = add_ends(adj, F.linear(x, of_source), F.linear(x, of_target, first.bias))
            for layer in layers:
                x = layer(x)
            outs.append(x)
        return outs[0] if len(outs) == 1 else torch.stack(outs).sum(dim=0)


class MLPHead(Head):
    r"""An MLP of the last layer's features, with ReLU between three Linears.

    Its widths are :math:`C, \lfloor C/2 \rfloor, \lfloor C/4 \rfloor, F_{out}`; on edges, where
    the two ends are concatenated, :math:`2C, C, \lfloor C/2 \rfloor, F_{out}`. The second of them
    can be chosen: :obj:`hidden`.
    """

    def __init__(
        self,
        channels: int,
        out_channels: int,
        level: str,
        readout: str = "mean",
        hidden: int | None = None,
    ) -> None:
        super().__init__(channels, out_channels, level, readout)
        width = 2 * channels if level == "edge" else channels
        if width < 4:
            raise ValueError(f"MLPHead: channels must be at least 4, got {channels}")
        hidden = width // 2 if hidden is None else checks.positive_int("MLPHead", "hidden", hidden)
        self.mlp = Sequential(
            Linear(width, hidden),
            ReLU(),
            Linear(hidden, width // 4),
            ReLU(),
            Linear(width // 4, out_channels),
        )


class JumpingHead(Head):
    """The sum of one small head for the features of each layer and of the encoder, as in GIN: a
    Linear, or on edges :math:`2C, C, F_{out}` with ReLU between."""

    reads_all = True

    def __init__(
        self, channels: int, out_channels: int, level: str, num_states: int, readout: str = "sum"
    ) -> None:
        super().__init__(channels, out_channels, level, readout)
        self.heads = ModuleList(self._one() for _ in range(num_states))
        self._scale()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self._scale()

    def _scale(self) -> None:
        if self.readout == "mean":  # of heads, too: the first loss is not that of huge logits
            with torch.no_grad():
                for value in self.heads.parameters():
                    value.div_(len(self.heads))

    def _one(self) -> Module:
        if self.level != "edge":
            return Linear(self.in_channels, self.out_channels)
        width = self.in_channels
        return Sequential(Linear(2 * width, width), ReLU(), Linear(width, self.out_channels))


class OutputScale(Module):
    """Returns standardised values to the unit of the targets, by their means and deviations."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))

    def forward(self, y: Tensor) -> Tensor:
        return y * self.std + self.mean

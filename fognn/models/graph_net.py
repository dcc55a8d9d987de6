"""The network on graphs, and the encoders of its inputs."""

import torch
from torch import Tensor
from torch.nn import EmbeddingBag, Module, ModuleList
from torch_geometric.nn import BatchNorm, Linear
from torch_geometric.nn.inits import reset
from torch_geometric.typing import Adj

from fognn.models.heads import Head
from fognn.nn import Block
from fognn.nn.graph_layer import Resettable
from fognn.ops import adjacency
from fognn.utils import checks


class TokenEncoder(Module):
    """The sum of a learnt vector for each column of tokens, such as PyG's features of atoms."""

    first: Tensor

    def __init__(self, num_tokens: int | tuple[int, ...], channels: int, name: str = "x") -> None:
        super().__init__()
        self.num_tokens = (num_tokens,) if isinstance(num_tokens, int) else tuple(num_tokens)
        self.name = name
        # One table for all columns: the tokens of a column begin where those before it end.
        self.embedding = EmbeddingBag(sum(self.num_tokens), channels, mode="sum")
        ends = torch.tensor(self.num_tokens).cumsum(0)
        self.register_buffer("first", ends - torch.tensor(self.num_tokens), persistent=False)
        self._scale()

    def reset_parameters(self) -> None:
        self.embedding.reset_parameters()
        self._scale()

    def _scale(self) -> None:
        with torch.no_grad():  # so that the sum has the variance of a single column
            self.embedding.weight.div_(len(self.num_tokens) ** 0.5)

    def forward(self, token: Tensor) -> Tensor:
        token = token.unsqueeze(1) if token.dim() == 1 else token
        integers = token.dtype in (torch.int64, torch.int32)
        if token.dim() != 2 or token.size(1) != len(self.num_tokens) or not integers:
            raise ValueError(
                f"{self.name} must hold {len(self.num_tokens)} columns of integer tokens, got "
                f"{token.dtype} of shape {list(token.shape)}"
            )
        for column, number in enumerate(self.num_tokens):  # else it is a token of another column
            wrong = checks.outside(token[:, column], number)
            if wrong is not None:
                where = f" in column {column}" if len(self.num_tokens) > 1 else ""
                raise ValueError(
                    f"{self.name} must hold tokens in 0..{number - 1}{where}, got {wrong}"
                )
        if not token.size(0):
            return self.embedding.weight.new_zeros(0, self.embedding.embedding_dim)
        return self.embedding(token + self.first)


class FeatureEncoder(Resettable):
    """A Linear of the features."""

    def __init__(self, in_channels: int, channels: int, name: str = "x") -> None:
        super().__init__()
        self.name = name
        self.lin = Linear(in_channels, channels)

    def forward(self, feature: Tensor) -> Tensor:
        feature = feature.unsqueeze(1) if feature.dim() == 1 else feature
        lin = self.lin
        checks.features("GraphNet", self.name, feature, lin.in_channels, lin.weight.dtype)
        return self.lin(feature)


def new_encoder(
    tokens: int | tuple[int, ...] | None, features: int | None, channels: int, name: str
) -> Module:
    """Returns the encoder of tokens, or else of features; errors have the name of the input."""
    if tokens is not None:
        return TokenEncoder(tokens, channels, name)
    assert features is not None
    return FeatureEncoder(features, channels, name)


class ConstantEncoder(FeatureEncoder):
    r"""A Linear of the constant 1, for edges without features: one row for all edges."""

    def __init__(self, channels: int) -> None:
        super().__init__(1, channels)

    def forward(self) -> Tensor:  # type: ignore[override]
        return self.lin(self.lin.weight.new_ones(1, 1))


class WalkEncoder(Resettable):
    """BatchNorm and a Linear of the random-walk encodings of nodes, one column for each step."""

    def __init__(self, steps: int, channels: int) -> None:
        super().__init__()
        self.in_channels = steps
        self.norm = BatchNorm(steps, allow_single_element=True)
        self.lin = Linear(steps, channels)

    def forward(self, rwse: Tensor) -> Tensor:
        return self.lin(self.norm(rwse))


class GraphNet(Module):
    r"""An encoder, blocks and a head: the form of all of the paper's networks on graphs.

    :func:`fognn.models.create_model` builds one from a name.

    Args:
        encoder (torch.nn.Module): From node inputs to :math:`C` channels.
        blocks (list of Block): The layers, each from :math:`C` to :math:`C` channels.
        head (torch.nn.Module): From the layers' features to outputs.
        edge_encoder (torch.nn.Module, optional): From edge inputs to :math:`C` channels, for
            layers that take edge features. (default: :obj:`None`)
        scale (torch.nn.Module, optional): Applied to the outputs, see
            :class:`fognn.models.heads.OutputScale`. (default: :obj:`None`)
        shared_edges (bool, optional): If set to :obj:`True`, the layers have an argument
            :obj:`edge_attr` and do not return new edge features. (default: :obj:`False`)
        walk_encoder (torch.nn.Module, optional): From random-walk encodings of nodes to :math:`C`
            channels, which are added to the encoded nodes. (default: :obj:`None`)

    Shapes:
        - **inputs:**
          node inputs, tokens :math:`(|\mathcal{V}|)` or features :math:`(|\mathcal{V}|, F_{in})`,
          edge indices :math:`(2, |\mathcal{E}|)` or sparse :math:`(|\mathcal{V}|,
          |\mathcal{V}|)`,
          edge inputs *(ignored by networks without edge features)*,
          the graph of each node :math:`(|\mathcal{V}|)` and the number of graphs, for outputs on
          graphs *(optional, default: one graph)*,
          random-walk encodings :math:`(|\mathcal{V}|, K)` *(ignored by networks without a*
          :obj:`walk_encoder` *)*
        - **outputs:** :math:`(|\mathcal{V}|, F_{out})`, :math:`(|\mathcal{E}|, F_{out})` in the
          order of the given edges, or :math:`(|\mathcal{G}|, F_{out})`
    """

    def __init__(
        self,
        encoder: Module,
        blocks: list[Block],
        head: Head,
        edge_encoder: Module | None = None,
        scale: Module | None = None,
        shared_edges: bool = False,
        walk_encoder: Module | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.edge_encoder = edge_encoder
        self.blocks = ModuleList(blocks)
        self.head = head
        self.scale = scale
        self.shared_edges = shared_edges
        self.walk_encoder = walk_encoder

    def reset_parameters(self) -> None:
        for part in (self.encoder, self.edge_encoder, self.walk_encoder, self.head, self.blocks):
            reset(part)

    def forward(
        self,
        x: Tensor,
        edge_index: Adj,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        rwse: Tensor | None = None,
    ) -> Tensor:
        h = self.encoder(x)
        if self.walk_encoder is not None:
            if rwse is None or rwse.size(0) != h.size(0):
                raise ValueError(
                    f"GraphNet: rwse must be the random-walk encodings of {h.size(0)} nodes, got "
                    f"{None if rwse is None else list(rwse.shape)}"
                )
            h = h + self.walk_encoder(rwse)
        given = adjacency(edge_index, h.size(0))
        # The layers do not sort the edges again; but an explainer's mask has the user's order.
        explained = any(getattr(block, "explain", None) is not None for block in self.blocks)
        adj = given if explained else given._replace(perm=None)
        e: Tensor | None = None
        if isinstance(self.edge_encoder, ConstantEncoder):
            e = self.edge_encoder()
        elif self.edge_encoder is not None:
            if edge_attr is None:
                raise ValueError("edge_attr must be given: this network uses edge features")
            checks.per_edge("GraphNet", "edge_attr", edge_attr, given.num_edges)
            e = self.edge_encoder(edge_attr if explained else given.sort(edge_attr))

        states = [h]
        for block in self.blocks:
            if e is None:
                out = block(h, adj)
            elif self.shared_edges:
                out = block(h, adj, edge_attr=e)
            else:
                out = block(h, adj, e)
            h, e = (out, e) if isinstance(out, Tensor) else out
            # Without gradients, features that the head does not read are freed here.
            states = [*states, h] if self.head.reads_all else [h]
        out = self.head(states, adj, batch, batch_size)
        if self.scale is not None:
            out = self.scale(out)
        return given.unsort(out) if self.head.level == "edge" else out

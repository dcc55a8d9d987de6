"""The layers that the benchmarks compare with: the same equations, with the same weights, as they
are written without this package: plain PyTorch, or PyG's :class:`MessagePassing`."""

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import MessagePassing, global_mean_pool

from fognn.models import GraphNet
from fognn.models.heads import MLPHead
from fognn.nn import FOG, GatedGCNConv, WithFOG
from fognn.ops import Adjacency


class LiteralFOG(FOG):
    """The paper's equation as it stands: a Kronecker product for each edge, then a sum."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h_v = self.norm_1(self.lin_1(x).relu())
        h_u = self.norm_2(self.lin_2(h_v).relu())
        source, target = edge_index
        product = (h_v[target].unsqueeze(2) * h_u[source].unsqueeze(1)).flatten(1)
        total = product.new_zeros(x.size(0), product.size(1)).index_add_(0, target, product)
        return self.lin_vu(total)


class PlainGatedGCN(GatedGCNConv):
    """Gather, sigmoid and ``index_add_``."""

    def forward(self, x: Tensor, edge_index: Tensor | Adjacency, edge_attr: Tensor):
        if isinstance(edge_index, Adjacency):
            source, target = edge_index.source, edge_index.target
        else:
            source, target = edge_index
        edge_attr = edge_attr.expand(source.size(0), -1)
        hat = self.lin_A(x)[target] + self.lin_B(x)[source] + self.lin_C(edge_attr)
        sigma = hat.sigmoid()
        above = torch.zeros_like(x).index_add_(0, target, sigma * self.lin_V(x)[source])
        below = torch.zeros_like(x).index_add_(0, target, sigma)
        out = self.lin_U(x) + above / (below + 1e-6)
        if self.lin_W is not None:
            out = self.lin_W(out)
        return out, edge_attr + self.norm_e(hat).relu()


class PlainEdgeHead(MLPHead):
    """The MLP on the concatenated ends of every edge."""

    def forward(self, states, adj, batch=None, batch_size=None):
        x = states[-1]
        return self.mlp(torch.cat([x[adj.source], x[adj.target]], dim=1))


class PyGFOG(MessagePassing):
    """FOG as a message for each edge."""

    def __init__(self, ours: FOG) -> None:
        super().__init__(aggr="sum")
        self.ours = ours

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.ours.norm_1(self.ours.lin_1(x).relu())
        small = self.ours.norm_2(self.ours.lin_2(h).relu())
        return self.ours.lin_vu(self.propagate(edge_index, h=h, small=small))

    def message(self, h_i: Tensor, small_j: Tensor) -> Tensor:
        return (h_i.unsqueeze(2) * small_j.unsqueeze(1)).flatten(1)


class PyGGatedGCN(MessagePassing):
    """GatedGCN with edge features as a message for each edge."""

    def __init__(self, ours: GatedGCNConv) -> None:
        super().__init__(aggr="sum")
        self.ours = ours

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        ours = self.ours
        a, b, v = ours.lin_A(x), ours.lin_B(x), ours.lin_V(x)
        hat = self.edge_updater(edge_index, a=a, b=b, e=ours.lin_C(edge_attr))
        above, below = self.propagate(edge_index, v=v, sigma=hat.sigmoid()).chunk(2, dim=1)
        out = ours.lin_U(x) + above / (below + 1e-6)
        if ours.lin_W is not None:
            out = ours.lin_W(out)
        return out, edge_attr + ours.norm_e(hat).relu()

    def edge_update(self, a_i: Tensor, b_j: Tensor, e: Tensor) -> Tensor:
        return a_i + b_j + e

    def message(self, v_j: Tensor, sigma: Tensor) -> Tensor:
        return torch.cat([sigma * v_j, sigma], dim=1)


class PyGNet(Module):
    """A network of GatedGCN-E+FOG for graphs, its weights shared with ours."""

    def __init__(self, ours: GraphNet) -> None:
        super().__init__()
        self.ours = ours
        convs = [block.conv for block in ours.blocks]
        assert all(isinstance(conv, WithFOG) for conv in convs)
        self.fogs = torch.nn.ModuleList(PyGFOG(conv.fog) for conv in convs)
        self.gated = torch.nn.ModuleList(PyGGatedGCN(conv.conv) for conv in convs)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor, size: int
    ) -> Tensor:
        h, e = self.ours.encoder(x), self.ours.edge_encoder(edge_attr)
        for fog, gated, block in zip(self.fogs, self.gated, self.ours.blocks, strict=True):
            p = fog(h, edge_index)
            q, e = gated(h, edge_index, e)
            h = h + block.norm(torch.cat([p, q], dim=1)).relu()
        return self.ours.head.mlp(global_mean_pool(h, batch, size))

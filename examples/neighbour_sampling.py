"""Trains FOG layers on sampled neighbourhoods of one large graph, a few hundred nodes at a time.

    python examples/neighbour_sampling.py
    python examples/neighbour_sampling.py --network fog --fanout 15 10 5
    python examples/neighbour_sampling.py --sampler pyg

A batch is a set of nodes (seeds), some in-neighbours of theirs, some of those, and so on. The last
layer is needed at the seeds alone, the one before it at their neighbours too: each layer is called
as on a bipartite graph, ``conv((x, x[:targets]), adj_t)``, with fewer nodes than the one before.

FOG sums over neighbours. A sum over 5 of 50 of them is ten times too small, so each sampled edge
has the weight (in-degree / sampled in-edges). The weights are the values of ``adj_t``, which every
layer here takes (they do not change a mean). The same network then runs on the whole graph, where
it is evaluated.

``--sampler plain`` is a sampler in torch, below: it reads all in-edges of the nodes of a hop, which
is fast enough for thousands of nodes a batch. ``--sampler pyg`` is PyG's NeighborLoader, written in
C++. It needs pyg-lib or torch-sparse, which are not dependencies of fognn: wheels for some versions
of torch are at https://data.pyg.org/whl; for others, with a C++ compiler,

    pip install --no-build-isolation torch-scatter torch-sparse
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleList
from torch_geometric.data import Data
from torch_geometric.nn import BatchNorm

from fognn import FOG, WithFOG
from fognn.nn import GCNConv, SAGEConv
from fognn.ops import Adjacency, adjacency

NETWORKS = ("fog", "gcn+fog", "sage+fog")


class Blocks(NamedTuple):
    """A sampled neighbourhood, as NeighborLoader numbers it: nodes and edges hop by hop, seeds
    first, edges sorted by target. A layer needs the first of both.

    Args:
        node (Tensor): The index of each node in the graph.
        edge_index (Tensor): Sources and targets, numbered as in ``node``.
        weight (Tensor): The weight of each edge.
        nodes (list[int]): The number of nodes within 0, 1, ... hops.
        edges (list[int]): The number of edges that end within 0, 1, ... hops.
    """

    node: Tensor
    edge_index: Tensor
    weight: Tensor
    nodes: list[int]
    edges: list[int]

    def adj_t(self, hop: int, dtype: torch.dtype) -> Tensor:
        """The edges that end within ``hop`` hops: a matrix of targets x sources."""
        count = self.edges[hop]
        source, target = self.edge_index[:, :count]
        size = (self.nodes[hop], self.nodes[hop + 1])
        ptr = F.pad(torch.bincount(target, minlength=size[0]).cumsum(0), (1, 0))
        weight = self.weight[:count].to(dtype)
        return torch.sparse_csr_tensor(ptr, source, weight, size, check_invariants=False)


def blocks_of(node: Tensor, edge_index: Tensor, seeds: int, hops: int, degree: Tensor) -> Blocks:
    """Reads off where hops begin. (pyg-lib tells; torch-sparse does not. A node's in-edges are
    sampled once, when its hop comes, and new nodes are numbered as they are found.)

    Args:
        node: The number in the graph of each node, seeds first.
        edge_index: Sources and targets, numbered as in ``node``.
        seeds: The number of seeds.
        hops: The number of hops.
        degree: The in-degree in the graph of each node of ``node``.
    """
    source, target = edge_index
    if bool((target[1:] < target[:-1]).any()):
        raise ValueError("edge_index must be sorted by target, hop by hop")
    nodes, edges = [seeds], []
    for _ in range(hops):
        edges.append(int(torch.searchsorted(target, nodes[-1])))
        farthest = int(source[: edges[-1]].max()) + 1 if edges[-1] else 0
        nodes.append(max(nodes[-1], farthest))
    sampled = torch.bincount(target, minlength=node.size(0))
    weight = degree[target] / sampled[target]
    return Blocks(node, edge_index, weight, nodes, edges)


class SampledNet(Module):
    """An encoder, layers with norm, ReLU and residual, a head: on blocks or on a whole graph."""

    def __init__(
        self, network: str, in_channels: int, channels: int, classes: int, layers: int
    ) -> None:
        super().__init__()
        self.encoder = Linear(in_channels, channels)
        self.convs = ModuleList(_layer(network, channels) for _ in range(layers))
        self.norms = ModuleList(BatchNorm(channels) for _ in range(layers))
        self.head = Linear(channels, classes)

    def forward(self, x: Tensor, graph: Blocks | Adjacency | Tensor) -> Tensor:
        h = self.encoder(x)
        for number, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            if isinstance(graph, Blocks):
                hop = len(self.convs) - 1 - number
                target = h[: graph.nodes[hop]]
                out = conv((h, target), graph.adj_t(hop, h.dtype))
            else:
                target, out = h, conv(h, graph)
            h = target + norm(out).relu()
        return self.head(h)


def _layer(network: str, channels: int) -> Module:
    if network == "fog":
        return FOG(channels, channels)
    half = channels // 2
    # Not GraphSAGE's maximum: over some of the neighbours it is smaller, and no weight mends that.
    host: Module = SAGEConv(channels, channels - half, aggr="mean")
    if network == "gcn+fog":
        # The symmetric norm needs the in-degrees of the sources, which a sample does not have.
        host = GCNConv(channels, channels - half, norm="mean")
    return WithFOG(host, half)


class PlainSampler:
    """Uniform samples of in-neighbours, none twice, in plain torch."""

    def __init__(self, edge_index: Tensor, num_nodes: int, fanout: list[int], seed: int) -> None:
        with torch.no_grad():  # no transpose is needed
            self.graph = adjacency(edge_index, num_nodes)
        self.degree = self.graph.ptr.diff()
        self.fanout = fanout
        self.generator = torch.Generator().manual_seed(seed)
        self.place = torch.full((num_nodes,), -1)

    def sample(self, seeds: Tensor) -> Blocks:
        """The blocks of these nodes, which must be different ones. A fan-out of -1 takes all."""
        found, ends = [seeds], []
        self.place[seeds] = torch.arange(seeds.size(0))
        count, first = seeds.size(0), 0
        for fanout in self.fanout:
            source, row = self._in_edges(found[-1], fanout)
            new = source[self.place[source] < 0].unique()
            self.place[new] = torch.arange(count, count + new.size(0))
            ends.append(torch.stack([self.place[source], row + first]))
            first, count = count, count + new.size(0)
            found.append(new)
        node = torch.cat(found)
        self.place[node] = -1
        edge_index = torch.cat(ends, dim=1)
        return blocks_of(node, edge_index, seeds.size(0), len(self.fanout), self.degree[node])

    def _in_edges(self, node: Tensor, fanout: int) -> tuple[Tensor, Tensor]:
        """Sources of sampled in-edges, and for each the place of its target in ``node``."""
        degree = self.degree[node]
        row = torch.arange(node.size(0)).repeat_interleave(degree)
        start = degree.cumsum(0) - degree
        rank = torch.arange(row.size(0)) - start[row]
        edge = self.graph.ptr[node][row] + rank
        if fanout >= 0:
            # In a random order within each row, the first few.
            key = row + torch.rand(row.size(0), generator=self.generator, dtype=torch.float64)
            chosen = key.argsort()[rank < fanout]
            edge, row = edge[chosen], row[chosen]
        return self.graph.source[edge], row

    def batches(self, nodes: Tensor, size: int) -> Iterator[Blocks]:
        order = torch.randperm(nodes.size(0), generator=self.generator)
        for seeds in nodes[order].split(size):
            yield self.sample(seeds)


def pyg_batches(data: Data, nodes: Tensor, fanout: list[int], size: int) -> Iterator[Blocks]:
    """The same from NeighborLoader."""
    from torch_geometric.loader import NeighborLoader

    loader = NeighborLoader(data, fanout, input_nodes=nodes, batch_size=size, shuffle=True)
    for batch in loader:
        yield blocks_of(
            batch.n_id, batch.edge_index, batch.batch_size, len(fanout), batch.in_degree
        )


def generated_graph(nodes: int, degree: int, classes: int, channels: int, seed: int) -> Data:
    """Nodes of a few classes, of which the features alone tell little: in-neighbours are of the
    same class in two cases of three."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(nodes) % classes
    target = torch.arange(nodes).repeat_interleave(degree)
    source = torch.randint(0, nodes, target.shape, generator=generator)
    same = torch.rand(target.shape, generator=generator) < 2 / 3
    own_class = (source - source % classes + y[target]) % (nodes - nodes % classes)
    source = torch.where(same, own_class, source)
    x = torch.randn(nodes, channels, generator=generator)
    x[torch.arange(nodes), y] += 1
    edge_index = torch.stack([source, target])
    in_degree = torch.bincount(target, minlength=nodes)
    train = torch.rand(nodes, generator=generator) < 0.5
    return Data(x=x, y=y, edge_index=edge_index, in_degree=in_degree, train=train, num_nodes=nodes)


@torch.no_grad()
def accuracy(net: SampledNet, data: Data, nodes: Tensor) -> float:
    """On the whole graph at once."""
    net.eval()
    right = net(data.x, data.edge_index)[nodes].argmax(1) == data.y[nodes]
    return float(right.double().mean())


def train_epoch(
    net: SampledNet, adam: torch.optim.Optimizer, data: Data, batches: Iterator[Blocks]
) -> float:
    """The mean loss of the epoch's seeds."""
    net.train()
    total = count = 0.0
    for blocks in batches:
        seeds = blocks.node[: blocks.nodes[0]]
        adam.zero_grad()
        loss = F.cross_entropy(net(data.x[blocks.node], blocks), data.y[seeds])
        loss.backward()
        adam.step()
        total, count = total + loss.item() * seeds.size(0), count + seeds.size(0)
    return total / count


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sampler", choices=("plain", "pyg"), default="plain")
    parser.add_argument("--network", choices=NETWORKS, default="gcn+fog")
    parser.add_argument("--fanout", type=int, nargs="+", default=[10, 5], help="one for each layer")
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--degree", type=int, default=20, help="in-neighbours of a node")
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=256, help="seeds of a batch")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    args = options()
    if args.sampler == "pyg":
        from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

        if not WITH_PYG_LIB and not WITH_TORCH_SPARSE:
            raise SystemExit(
                "neighbour_sampling: --sampler pyg needs pyg-lib or torch-sparse, and neither is "
                "installed. Wheels: https://data.pyg.org/whl; or, with a C++ compiler: pip install "
                "--no-build-isolation torch-scatter torch-sparse; or take --sampler plain."
            )
    torch.manual_seed(args.seed)
    classes = 5
    data = generated_graph(args.nodes, args.degree, classes, channels=16, seed=args.seed)
    train, test = data.train.nonzero().flatten(), (~data.train).nonzero().flatten()
    net = SampledNet(args.network, 16, args.channels, classes, layers=len(args.fanout))
    adam = torch.optim.Adam(net.parameters(), args.lr)
    sampler = PlainSampler(data.edge_index, args.nodes, args.fanout, args.seed)
    print(f"{args.nodes:,} nodes, {data.num_edges:,} edges, {args.network}, fan-out {args.fanout}")
    for epoch in range(args.epochs):
        if args.sampler == "pyg":
            batches = pyg_batches(data, train, args.fanout, args.batch_size)
        else:
            batches = sampler.batches(train, args.batch_size)
        loss = train_epoch(net, adam, data, batches)
        print(f"epoch {epoch}: loss {loss:.4f}, test accuracy {accuracy(net, data, test):.4f}")


if __name__ == "__main__":
    main()

"""The batches and networks that the benchmarks measure: random graphs with the numbers of nodes and
edges of a real batch of each dataset, random features and random targets."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from measure import Action
from on_pyg import PyGNet
from torch import Tensor
from torch.nn import Module
from torch_geometric import EdgeIndex

from fognn.experiments import build, rows
from fognn.experiments.rows import get_row
from fognn.models import TASKS


def pattern_batch(graphs: int = 128, nodes: int = 117, density: float = 0.4347) -> Tensor:
    """Edges of random undirected graphs with PATTERN's numbers of nodes and edges, in the order
    in which PyG's loader gives them: by graph, then by source."""
    generator = torch.Generator().manual_seed(0)
    parts = []
    for graph in range(graphs):
        upper = torch.rand(nodes, nodes, generator=generator).triu(1)
        upper = (upper > 1 - density).triu(1)
        parts.append((upper | upper.t()).nonzero().t() + graph * nodes)
    return torch.cat(parts, dim=1).contiguous()


def molecule_batch(graphs: int = 128, atoms: int = 23) -> Tensor:
    """Edges of rings with branches, as many as in a batch of ZINC."""
    generator = torch.Generator().manual_seed(0)
    parts = []
    for graph in range(graphs):
        # Each atom hangs on one of the two before it; two more bonds close rings.
        back = torch.randint(1, 3, (atoms - 1,), generator=generator)
        new = torch.arange(1, atoms)
        bonds = torch.stack([new, (new - back).clamp(min=0)])
        rings = torch.tensor([[0, 9], [5, 15]]) + torch.randint(0, 3, (2, 2), generator=generator)
        bonds = torch.cat([bonds, rings], dim=1)
        parts.append(torch.cat([bonds, bonds.flip(0)], dim=1) + graph * atoms)
    return torch.cat(parts, dim=1)


def tour_batch(graphs: int = 16, cities: int = 275, neighbours: int = 25) -> Tensor:
    """Edges from each city's nearest neighbours, as many as in a batch of TSP."""
    generator = torch.Generator().manual_seed(0)
    parts = []
    for graph in range(graphs):
        place = torch.rand(cities, 2, generator=generator)
        near = torch.cdist(place, place).argsort(dim=1)[:, 1 : neighbours + 1]
        target = torch.arange(cities).repeat_interleave(neighbours)
        parts.append(torch.stack([near.flatten(), target]) + graph * cities)
    return torch.cat(parts, dim=1)


def sorted_edges(edge_index: Tensor, num_nodes: int, undirected: bool = True) -> EdgeIndex:
    """The edges as the packed loader gives them: sorted by target, both pointers filled."""
    edges = EdgeIndex(edge_index, sparse_size=(num_nodes, num_nodes), is_undirected=undirected)
    return edges.sort_by("col")[0].fill_cache_()


class Problem(NamedTuple):
    """The arguments of a network's training step and the loss of its output. ``unsorted`` holds the
    edges in the order in which PyG's loader gives them."""

    x: Tensor
    edges: EdgeIndex
    unsorted: Tensor
    rest: tuple[Any, ...]
    loss: Callable[[Tensor], Tensor]

    @property
    def arguments(self) -> tuple[Any, ...]:
        return (self.x, self.edges, *self.rest)

    @property
    def plain_arguments(self) -> tuple[Any, ...]:
        """The same, with the sorted edges as a plain tensor."""
        return (self.x, self.edges.as_tensor(), *self.rest)


# Edges of a batch, nodes in a graph, and whether each edge has its reverse.
_BATCHES: dict[str, tuple[Callable[[], Tensor], int, bool]] = {
    "PATTERN": (pattern_batch, 117, True),
    "ZINC": (molecule_batch, 23, True),
    "TSP": (tour_batch, 275, False),
    # 13 nodes and 132 edges a graph
    "IMDB-MULTI": (lambda: pattern_batch(128, 13, 0.846), 13, True),
}


def problem(dataset: str) -> Problem:
    """A batch of a dataset's size with random inputs and targets."""
    make, nodes, undirected = _BATCHES[dataset]
    unsorted = make()
    graphs = int(unsorted.max()) // nodes + 1
    count = graphs * nodes
    task = TASKS[dataset.lower()]
    x = _random(count, task.node_tokens, task.node_channels)
    assert x is not None
    edge_attr = _random(unsorted.size(1), task.edge_tokens, task.edge_channels)
    batch = torch.arange(graphs).repeat_interleave(nodes)
    answers = {"node": count, "edge": unsorted.size(1), "graph": graphs}[task.level]
    if task.out_channels == 1:
        y = torch.randn(answers, 1)
    else:
        y = torch.randint(0, task.out_channels, (answers,))

    def loss(out: Tensor) -> Tensor:
        return F.l1_loss(out, y) if task.out_channels == 1 else F.cross_entropy(out, y)

    edges = sorted_edges(unsorted, count, undirected)
    return Problem(x, edges, unsorted, (edge_attr, batch, graphs), loss)


def _random(count: int, tokens: int | None, channels: int | None) -> Tensor | None:
    if tokens is not None:
        return torch.randint(0, tokens, (count,))
    return None if channels is None else torch.rand(count, channels)


def pattern_problem(edges: EdgeIndex) -> Problem:
    """Random tokens and classes for PATTERN's networks, on edges that are there already."""
    x = torch.randint(0, 3, (edges.num_rows,))
    y = torch.randint(0, 2, (edges.num_rows,))
    return Problem(x, edges, edges.as_tensor(), (), lambda out: F.cross_entropy(out, y))


def networks(dataset: str) -> dict[str, Module]:
    """The networks of a dataset's table by name. The paper's GCN and GCN+FOG have different norms;
    here both have the mean, so that they differ in FOG alone."""
    found = [row for row in rows(dataset=dataset) if row.table < 5]
    return {row.model: build(row, **({"norm": "mean"} if row.norm else {})) for row in found}


def zinc_pair() -> tuple[Module, Module, Problem]:
    """GatedGCN-E+FOG for ZINC, the same network on PyG's MessagePassing, and a batch."""
    batch = problem("ZINC")
    net = build(get_row("zinc/gatedgcn-e+fog"))
    return net, PyGNet(copy.deepcopy(net)), batch


def training(net: Module, loss: Callable[[Tensor], Tensor], *args: Any) -> Action:
    """A network's forward and backward, without the optimizer's step."""

    def action() -> None:
        loss(net(*args)).backward()
        net.zero_grad()

    return action

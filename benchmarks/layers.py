"""Layers and networks compared with PyG's and with plain PyTorch, on a batch like PATTERN's.

Prints ratios from one run: medians of interleaved repeats, forwards and backwards.

    python benchmarks/layers.py
    python benchmarks/layers.py --repeats 21 --json results/layers.json
"""

import argparse
import copy
from typing import Any

import torch
import torch_geometric.nn as pyg
from measure import Action, medians, parser, peak_memory, report, save
from on_pyg import LiteralFOG, PlainEdgeHead, PlainGatedGCN
from problems import (
    networks,
    pattern_batch,
    pattern_problem,
    sorted_edges,
    tour_batch,
    training,
    zinc_pair,
)
from torch import Tensor
from torch.nn import Module, ReLU, Sequential
from torch_geometric import EdgeIndex

from fognn.experiments import build
from fognn.experiments.rows import get_row
from fognn.nn import FOG, GATConv, GatedGCNConv, GCNConv, GINConv, SAGEConv, WithFOG
from fognn.ops import adjacency


def step(module: Module, x: Tensor, *args: Any) -> Action:
    """Forwards and backwards, to the parameters and to the features."""

    def outputs() -> tuple[Tensor, ...]:
        out = module(x, *args)
        return (out,) if isinstance(out, Tensor) else out

    with torch.no_grad():
        grads = [torch.randn_like(out) for out in outputs()]

    def action() -> None:
        torch.autograd.backward(outputs(), grads)
        # Here and not before the next step, whose peak of memory would be lower by what it frees.
        module.zero_grad()
        for value in (x, *args):
            if isinstance(value, Tensor):
                value.grad = None

    return action


@torch.no_grad()
def agree(
    name: str, ours: Module, theirs: Module, our_args: tuple[Any, ...], their_args: tuple[Any, ...]
) -> None:
    """Raises if two modules whose speed is compared do not agree to 1e-5 of the largest value in
    double precision (in single precision their rounding errors are larger)."""

    def double(value: Any) -> Any:
        if isinstance(value, list):
            return [double(v) for v in value]
        floating = isinstance(value, Tensor) and value.is_floating_point()
        return value.double() if floating else value

    results = []
    for module, arguments in ((ours, our_args), (theirs, their_args)):
        out = copy.deepcopy(module).double()(*map(double, arguments))
        results.append((out,) if isinstance(out, Tensor) else out)
    for got, wanted in zip(*results, strict=True):
        error = float((got - wanted).abs().max() / wanted.abs().max())
        assert error < 1e-5, f"{name}: differs by {error:.1e}"


def literal_table(edges: EdgeIndex, plain: Tensor, repeats: int) -> list[dict[str, Any]]:
    x = torch.randn(edges.num_rows, 144, requires_grad=True)
    fog, literal = FOG(144, 144, 16, 8, act_first=True), LiteralFOG(144, 144, 16, 8)
    literal.load_state_dict(fog.state_dict())
    _check_equal(fog, literal, x, edges, plain)
    seconds = medians({"fog": step(fog, x, edges), "literal": step(literal, x, plain)}, repeats)
    return [
        {
            "what": "FOG(144, 144, 16, 8), times faster than literal",
            "ratio": seconds["literal"] / seconds["fog"],
            "goal": ">= 30",
            "ms": seconds["fog"] * 1e3,
        }
    ]


def _check_equal(fog: FOG, literal: FOG, x: Tensor, edges: EdgeIndex, plain: Tensor) -> None:
    """In float64: in float32 the literal sum is off by 3e-5, and ours by 1e-6."""
    with torch.no_grad():
        expected = copy.deepcopy(literal).double()(x.double(), plain)
        difference = copy.deepcopy(fog).double()(x.double(), edges) - expected
        assert difference.abs().max() / expected.abs().max() < 1e-12


def host_table(edges: EdgeIndex, plain: Tensor, repeats: int) -> list[dict[str, Any]]:
    def mlp(width: int) -> Module:
        parts = pyg.Linear(width, width), torch.nn.BatchNorm1d(width), ReLU()
        return Sequential(*parts, pyg.Linear(width, width))

    # PyG's own layers, set to compute the same thing: no self loops, the same widths.
    pairs = {
        "GCN": (GCNConv(146, 146, "sym"), pyg.GCNConv(146, 146, add_self_loops=False), 10),
        "GIN": (GINConv(110, 110), pyg.GINConv(mlp(110), train_eps=True), 10),
        "GAT": (
            GATConv(152, 19, 8),
            pyg.GATConv(152, 19, heads=8, add_self_loops=False, bias=False),
            5,
        ),
        "GraphSAGE-max": (SAGEConv(89, 89), pyg.SAGEConv(89, 89, aggr="max", project=True), 5),
    }
    table = []
    for name, (ours, theirs, goal) in pairs.items():
        x = torch.randn(edges.num_rows, ours.in_channels, requires_grad=True)
        actions = {
            "sorted": step(ours, x, edges),
            "plain": step(ours, x, plain),
            "pyg": step(theirs, x, plain),
        }
        seconds = medians(actions, repeats)
        table.append(
            {
                "what": f"{name}({ours.in_channels}), times faster than PyG on a plain edge_index",
                "ratio": seconds["pyg"] / seconds["sorted"],
                "goal": f">= {goal}",
                "ratio, ours on a plain edge_index too": seconds["pyg"] / seconds["plain"],
                "ms": seconds["sorted"] * 1e3,
            }
        )
    return table


def beside_table(edges: EdgeIndex, plain: Tensor, repeats: int) -> list[dict[str, Any]]:
    """FOG beside PyG's own layers: half of the channels each, against the layer alone."""
    makers = {
        "GCNConv": lambda q: pyg.GCNConv(160, q),
        "GATConv": lambda q: pyg.GATConv(160, q // 8, heads=8),
        "SAGEConv(max)": lambda q: pyg.SAGEConv(160, q, aggr="max", project=True),
    }
    x = torch.randn(edges.num_rows, 160, requires_grad=True)
    table = []
    for name, make in makers.items():
        actions = {
            "alone": step(make(160), x, plain),
            "beside": step(WithFOG(make(80), FOG(160, 80, 12, 6)), x, plain),
        }
        seconds = medians(actions, max(repeats // 3, 3))
        table.append(
            {
                "what": f"WithFOG({name}(160, 80), FOG)'s time, times that of {name}(160, 160)",
                "ratio": seconds["beside"] / seconds["alone"],
                "goal": "",
                "ms": seconds["beside"] * 1e3,
            }
        )
    return table


def network_table(edges: EdgeIndex, repeats: int) -> list[dict[str, Any]]:
    problem = pattern_problem(edges)
    nets = networks("PATTERN")

    hosts = ["GCN", "GIN", "GAT", "GraphSAGE", "GatedGCN"]
    pairs = [("FOG", "GCN", 1.0), *((f"{host}+FOG", host, 1.1) for host in hosts)]
    table = []
    for ours, theirs, goal in pairs:
        actions = {
            name: training(nets[name], problem.loss, *problem.arguments) for name in (ours, theirs)
        }
        few = max(repeats // 3, 3) if theirs == "GatedGCN" else repeats
        seconds = medians(actions, few)
        table.append(
            {
                "what": f"{ours} network's time, times that of {theirs}'s",
                "ratio": seconds[ours] / seconds[theirs],
                "goal": f"<= {goal}",
                "ms": seconds[ours] * 1e3,
            }
        )
    return table


def _faster(
    what: str, seconds: dict[str, float], goal: float, than: str = "plain"
) -> dict[str, Any]:
    return {
        "what": f"{what}, times faster than {than}",
        "ratio": seconds["plain"] / seconds["ours"],
        "goal": f">= {goal:g}",
        "ms": seconds["ours"] * 1e3,
    }


def _leaner(what: str, ours: Action, plain: Action) -> dict[str, Any]:
    peaks = peak_memory(ours), peak_memory(plain)
    return {
        "what": f"{what}, peak memory, times that of plain",
        "ratio": peaks[0] / peaks[1],
        "goal": "<= 0.5",
        "ms": f"{peaks[0] / 1e6:.0f} MB",
    }


def gated_table(edges: EdgeIndex, plain: Tensor, repeats: int) -> list[dict[str, Any]]:
    """GatedGCN with edge features compared with gather, sigmoid and ``index_add_``, and with the
    three products of its Linear on edges, which every form of it needs."""
    channels, few = 70, max(repeats // 3, 3)
    x = torch.randn(edges.num_rows, channels, requires_grad=True)
    e = torch.randn(edges.size(1), channels, requires_grad=True)
    ours = GatedGCNConv(channels)
    theirs = copy.deepcopy(ours)
    theirs.__class__ = PlainGatedGCN
    sorted_plain = edges.as_tensor()
    agree("GatedGCN", ours, theirs, (x, edges, e), (x, sorted_plain, e))
    floor = torch.nn.Linear(channels, channels)
    actions = {
        "ours": step(ours, x, edges, e),
        "plain": step(theirs, x, sorted_plain, e),
        "floor": step(floor, e),
    }
    seconds = medians(actions, few)
    name = f"GatedGCN({channels}) with edge features"
    table = [
        _faster(name, seconds, 3),
        _leaner(name, actions["ours"], actions["plain"]),
        {
            "what": f"{name}, times the three products of its Linear on edges",
            "ratio": seconds["ours"] / seconds["floor"],
            "goal": "<= 2",
            "ms": seconds["floor"] * 1e3,
        },
    ]

    net = build(get_row("pattern/gatedgcn"))
    plain_net = copy.deepcopy(net)
    for block in plain_net.blocks:
        block.conv.__class__ = PlainGatedGCN
    problem = pattern_problem(edges)
    given = problem.arguments
    agree("the network of GatedGCN", net, plain_net, given, given)
    actions = {
        "ours": training(net, problem.loss, *given),
        "plain": training(plain_net, problem.loss, *given),
    }
    name = "the paper's network of 4 layers"
    table.append(_faster(name, medians(actions, few), 3))
    table.append(_leaner(name, actions["ours"], actions["plain"]))
    return table


def head_table(repeats: int) -> list[dict[str, Any]]:
    """The head on edges of TSP, whose first Linear is computed as two on the nodes."""
    plain = tour_batch()
    num_nodes = int(plain.max()) + 1
    adj = adjacency(sorted_edges(plain, num_nodes, undirected=False), num_nodes)
    head = build(get_row("tsp/gcn")).head
    theirs = copy.deepcopy(head)
    theirs.__class__ = PlainEdgeHead
    x = torch.randn(num_nodes, head.in_channels, requires_grad=True)
    agree("the head of TSP", head, theirs, ([x], adj), ([x], adj))

    def action(module: Module) -> Action:
        grad = torch.randn(adj.num_edges, 2)

        def run() -> None:
            module([x], adj).backward(grad)
            module.zero_grad()
            x.grad = None

        return run

    actions = {"ours": action(head), "plain": action(theirs)}
    name = f"the head on edges of TSP ({adj.num_edges:,} edges, {head.in_channels} channels)"
    return [
        _faster(name, medians(actions, repeats), 3),
        _leaner(name, actions["ours"], actions["plain"]),
    ]


def molecule_table(repeats: int) -> list[dict[str, Any]]:
    """A step on a batch of small graphs, where the number of calls matters more than the edges."""
    net, theirs, problem = zinc_pair()
    given, plain = problem.arguments, problem.plain_arguments
    agree("the network on ZINC", net, theirs, given, plain)
    actions = {
        "ours": training(net, problem.loss, *given),
        "plain": training(theirs, problem.loss, *plain),
    }
    many, threads = 3 * repeats, torch.get_num_threads()
    size = f"{problem.x.size(0):,} nodes, {problem.edges.size(1):,} edges"
    table = []
    for count in sorted({1, threads}):
        torch.set_num_threads(count)
        what = f"GatedGCN-E+FOG on ZINC ({size}), threads: {count}"
        table.append(_faster(what, medians(actions, many), 2, "on PyG's MessagePassing"))
    torch.set_num_threads(threads)
    return table


def memory_table(nodes: int) -> list[dict[str, Any]]:
    """Peak memory at 10 times the edges between the same nodes, beyond the edge list itself."""
    table = []
    for name, kind in {"FOG": FOG, "literal FOG": LiteralFOG}.items():
        peaks = []
        for count in (10 * nodes, 100 * nodes):
            edges = sorted_edges(torch.randint(0, nodes, (2, count)), nodes)
            x = torch.randn(nodes, 144, requires_grad=True)
            peaks.append(peak_memory(step(kind(144, 144, 16, 8), x, edges)))
        table.append(
            {
                "what": f"{name}(144, 144, 16, 8), peak memory at 10 times the edges",
                "ratio": peaks[1] / peaks[0],
                "goal": "<= 1.05" if name == "FOG" else "",
                f"MB at {10 * nodes:,} edges": peaks[0] / 1e6,
                f"MB at {100 * nodes:,} edges": peaks[1] / 1e6,
            }
        )
    return table


def set_up(description: str) -> tuple[argparse.Namespace, Tensor, EdgeIndex]:
    """The options, and a batch like PATTERN's: as PyG's loader gives it, and sorted."""
    options = parser(description)
    options.add_argument("--graphs", type=int, default=128, help="graphs in the batch")
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    plain = pattern_batch(args.graphs)
    edges = sorted_edges(plain, int(plain.max()) + 1)
    print(
        f"{edges.num_rows:,} nodes, {plain.size(1):,} edges, {args.threads} threads, "
        f"medians of {args.repeats} interleaved repeats"
    )
    return args, plain, edges


def main() -> None:
    args, plain, edges = set_up(__doc__)
    tables = {}
    for title, table in (
        ("FOG against the literal equation", lambda: literal_table(edges, plain, args.repeats)),
        ("Hosts against PyG's layers", lambda: host_table(edges, plain, args.repeats)),
        ("GatedGCN", lambda: gated_table(edges, plain, args.repeats)),
        ("Head on edges", lambda: head_table(args.repeats)),
        ("Small graphs", lambda: molecule_table(args.repeats)),
        ("FOG beside PyG's layers", lambda: beside_table(edges, plain, args.repeats)),
        ("Networks of the paper (PATTERN)", lambda: network_table(edges, args.repeats)),
        ("Peak memory against edges", lambda: memory_table(78 * args.graphs)),
    ):
        tables[title] = table()
        report(title, tables[title])
    if args.json:
        save(args.json, tables)


if __name__ == "__main__":
    main()

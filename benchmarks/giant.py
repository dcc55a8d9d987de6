"""One giant graph, all of it at once: a forward pass of FOG networks on millions of nodes.

The graph is an R-MAT (Chakrabarti, Zhan, Faloutsos 2004: skewed degrees, as in the web), made here
in pieces and straight into CSR by target with 32-bit indices: the list of edges never exists, and
without gradients no transpose is needed. Two ways to the same answers:

- ``plain``: the network as it is, ``net(tokens, adjacency)``.
- ``rows``: a block at a time, and within it some hundred thousand nodes at a time, each written
  over its own input. Beside the features of one layer there are only what neighbours see of it:
  h2 channels for FOG, and for GCN as many as it gives.

Each case runs in a process of its own, so that its peak memory is its own (VmHWM: all that the
process ever had, torch and the interpreter too). A case that would not fit is left out, and why is
in the table. Where both ways ran, their answers are compared, on every thousandth node.

    python benchmarks/giant.py
    python benchmarks/giant.py --adjacency --json results/giant.json
    python benchmarks/giant.py --channels 128 --ways rows
    python benchmarks/giant.py --nodes 20000 --edges 200000 --check
"""

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import free_memory, parser, report, save
from numba import njit
from torch import Tensor
from torch.nn import Module

from fognn.models import Task, create_model
from fognn.models.graph_net import GraphNet
from fognn.nn import FOG, GCNConv, WithFOG
from fognn.ops import Adjacency, adjacency, spmm

NETWORKS = ("fog", "gcn+fog")
TOKENS, CLASSES = 28, 16
PIECE = 1 << 22  # edges that are made at a time
QUADRANTS = (0.57, 0.19, 0.19, 0.05)  # the Graph 500's
RESERVE = 3 << 30  # bytes that are left to others
EVERY = 1000  # one answer in so many is compared


def edge_pieces(nodes: int, edges: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Sources and targets of an R-MAT, int32, the same at every call.

    Two levels of the recursion are one draw from a table of 16 places. Numbers below a power of
    two are scaled to ``nodes``, so that it may be any number.
    """
    levels = math.ceil(math.log2(max(nodes, 2)) / 2)
    both = np.outer(QUADRANTS, QUADRANTS).ravel()
    bounds = np.round(np.cumsum(both) * 2**16).astype(np.int64)
    place = np.repeat(np.arange(16), np.diff(bounds, prepend=0))
    first, second = place // 4, place % 4  # a quadrant is a bit of the source, a bit of the target
    source_bits = (first // 2 * 2 + second // 2).astype(np.int64)
    target_bits = (first % 2 * 2 + second % 2).astype(np.int64)
    for piece in range(-(-edges // PIECE)):
        count = min(PIECE, edges - piece * PIECE)
        generator = np.random.default_rng([seed, piece])
        source, target = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for _ in range(levels):
            draw = generator.integers(0, 2**16, count, dtype=np.uint16)
            source = source * 4 + source_bits[draw]
            target = target * 4 + target_bits[draw]
        yield tuple((end * nodes >> 2 * levels).astype(np.int32) for end in (source, target))


@njit(cache=False)
def _place(source, target, free, out):  # type: ignore[no-untyped-def]
    for edge in range(source.shape[0]):
        place = free[target[edge]]
        out[place] = source[edge]
        free[target[edge]] = place + 1


def giant_graph(nodes: int, edges: int, seed: int) -> Adjacency:
    """CSR by counting: the edges are made twice, once to count them and once to place them."""
    degree = np.zeros(nodes, np.int32)
    for _, target in edge_pieces(nodes, edges, seed):
        degree += np.bincount(target, minlength=nodes).astype(np.int32)
    ptr = np.zeros(nodes + 1, np.int32 if edges < 2**31 else np.int64)
    np.cumsum(degree, out=ptr[1:])
    source, free = np.empty(edges, ptr.dtype), ptr[:-1].copy()
    for piece in edge_pieces(nodes, edges, seed):
        _place(*piece, free, source)
    return Adjacency(torch.from_numpy(ptr), torch.from_numpy(source))


def tokens_of(adj: Adjacency) -> Tensor:
    """The input token of each node: the order of magnitude of its in-degree."""
    return (adj.ptr.diff() + 1).log2().to(torch.int32).clamp_(max=TOKENS - 1)


def network(name: str, channels: int, layers: int, seed: int) -> GraphNet:
    """A network whose norms have the statistics of a small graph of the same kind.

    The hubs of a giant one are larger, and sums grow with them: an answer at a hub is a large
    number. Both ways therefore add in the same order.
    """
    torch.manual_seed(seed)
    task = Task("node", CLASSES, node_tokens=TOKENS)
    # By rows: the symmetric norm needs the degrees of all sources.
    norm = {"norm": "mean"} if name.startswith("gcn") else {}
    net = create_model(name, task, channels=channels, layers=layers, **norm)
    norms = [module for module in net.modules() if isinstance(module, torch.nn.BatchNorm1d)]
    for norm in norms:
        norm.momentum = None  # the plain mean over all batches seen, of which there is one
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
        torch.nn.init.normal_(norm.bias, std=0.1)
    small = giant_graph(20_000, 200_000, seed)
    with torch.no_grad():
        net.train()(tokens_of(small), small)
    assert isinstance(net, GraphNet)
    return net.eval()


@torch.no_grad()
def infer_by_rows(net: GraphNet, token: Tensor, adj: Adjacency, rows: int) -> Tensor:
    """Computes ``net.eval()(token, adj)`` with one tensor of nodes x channels.

    Once the neighbours' view of all nodes is there, a node's new features depend on its old ones
    alone, and take their place. In training this would be wrong: the norms' statistics are over
    all nodes.
    """
    spans = [(i, min(i + rows, adj.num_targets)) for i in range(0, adj.num_targets, rows)]
    x = torch.empty(adj.num_targets, net.head.in_channels)
    for start, end in spans:
        x[start:end] = net.encoder(token[start:end])
    for block in net.blocks:
        conv = block.conv
        parts = [conv.fog, conv.conv] if isinstance(conv, WithFOG) else [conv]
        seen = [torch.empty(x.size(0), _width_seen(part)) for part in parts]
        for start, end in spans:
            for part, z in zip(parts, seen, strict=True):
                z[start:end] = _seen(part, x[start:end])
        for start, end in spans:
            piece = _rows(adj, start, end)
            old = x[start:end]
            outputs = [_output(part, old, piece, z) for part, z in zip(parts, seen, strict=True)]
            h = block.norm(torch.cat(outputs, dim=1) if len(outputs) > 1 else outputs[0])
            old += block.act(h)
        del seen
    answer = torch.empty(x.size(0), net.head.out_channels)
    for start, end in spans:
        answer[start:end] = net.head([x[start:end]], adj)
    return answer


def _rows(adj: Adjacency, start: int, end: int) -> Adjacency:
    ptr = adj.ptr[start : end + 1]
    return Adjacency(ptr - ptr[0], adj.source[int(ptr[0]) : int(ptr[-1])])


def _width_seen(conv: Module) -> int:
    return conv.h2 if isinstance(conv, FOG) else conv.out_channels  # type: ignore[return-value]


def _seen(conv: Module, x: Tensor) -> Tensor:
    """The vectors of these nodes that a layer sums over neighbours."""
    if isinstance(conv, FOG):
        return conv.shrink_again(conv.shrink(x)).t()
    assert isinstance(conv, GCNConv)
    assert conv.norm == "mean"  # the symmetric one asks for the degrees of sources
    return conv.lin(x)


def _output(conv: Module, x: Tensor, adj: Adjacency, seen: Tensor) -> Tensor:
    if isinstance(conv, FOG):
        return conv.correlate(conv.shrink(x), spmm(adj, seen))
    assert isinstance(conv, GCNConv)
    return spmm(adj, seen, reduce="mean").add_(conv.bias)


def bytes_needed(args: argparse.Namespace, channels: int, way: str) -> int:
    """An estimate from above. The plain network holds every layer's features (its head may ask
    for them), and within a block the layer's output, the norm's and the sum."""
    features = 4 * args.nodes * channels
    graph = 4 * (args.nodes + args.edges)
    held = args.layers + 3 if way == "plain" else 2.5
    return int(held * features) + 4 * args.nodes * (CLASSES + 1) + graph + (1 << 30)


def peak_rss() -> int:
    """Bytes that this process had at most. (Not getrusage's, which a child takes over from the
    process that started it.)"""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def run_case(args: argparse.Namespace, folder: Path, case: str) -> dict[str, Any]:
    """One case in this process; its row of the table."""
    torch.set_num_threads(args.threads)
    start = time.perf_counter()
    if case == "graph":
        adj = giant_graph(args.nodes, args.edges, args.seed)
        row = {"seconds": time.perf_counter() - start, "peak GiB": peak_rss() / 2**30}
        np.save(folder / "ptr.npy", adj.ptr.numpy())
        np.save(folder / "source.npy", adj.source.numpy())
        degree = adj.ptr.diff()
        return row | {"largest in-degree": int(degree.max()), "without": int((degree == 0).sum())}
    adj = Adjacency(*(torch.from_numpy(np.load(folder / f"{n}.npy")) for n in ("ptr", "source")))
    if case.startswith("adjacency"):
        edge_index = torch.stack([adj.source, adj.target]).to(getattr(torch, case.split()[1]))
        before = peak_rss()
        del adj
        start = time.perf_counter()
        with torch.no_grad():
            adjacency(edge_index, args.nodes)
        row = {"seconds": time.perf_counter() - start, "peak GiB": peak_rss() / 2**30}
        return row | {"peak GiB before": before / 2**30}
    name, way = case.split()
    (channels,) = args.channels
    net = network(name, channels, args.layers, args.seed)
    token = tokens_of(adj)
    seconds = []
    for _ in range(args.repeats):
        start = time.perf_counter()
        if way == "rows":
            answer = infer_by_rows(net, token, adj, args.rows)
        else:
            with torch.no_grad():
                answer = net(token, adj)
        seconds.append(time.perf_counter() - start)
        assert torch.isfinite(answer[::EVERY]).all()
    np.save(folder / f"{name} {way}.npy", answer[::EVERY].numpy())
    middle = float(np.median(seconds))
    return {
        "seconds": middle,
        "million edges/s": args.layers * args.edges / middle / 1e6,
        "peak GiB": peak_rss() / 2**30,
        "graph GiB": 4 * (args.nodes + args.edges) / 2**30,
        "features of a layer GiB": 4 * args.nodes * channels / 2**30,
    }


def start_case(
    args: argparse.Namespace, folder: Path, case: str, channels: int = 1
) -> dict[str, Any]:
    """One case in a process of its own."""
    command = [sys.executable, __file__, "--case", case, "--folder", str(folder)]
    for name in ("nodes", "edges", "layers", "rows", "seed", "repeats", "threads"):
        command += [f"--{name}", str(getattr(args, name))]
    command += ["--channels", str(channels)]
    env = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    return json.loads(done.stdout.splitlines()[-1])


def difference(first: Path, second: Path) -> float:
    """The largest difference of the two ways' answers, relative to the largest answer."""
    plain, rows = np.load(first), np.load(second)
    return float(np.abs(plain - rows).max() / np.abs(plain).max())


def check(args: argparse.Namespace) -> None:
    """The graph is the one of its list of edges, and both ways give the same answers."""
    adj = giant_graph(args.nodes, args.edges, args.seed)
    pieces = list(edge_pieces(args.nodes, args.edges, args.seed))
    edge_index = torch.from_numpy(np.stack([np.concatenate(e) for e in zip(*pieces, strict=True)]))
    with torch.no_grad():
        expected = adjacency(edge_index, args.nodes)
    assert torch.equal(adj.ptr, expected.ptr)
    assert torch.equal(adj.source, expected.source)
    token = tokens_of(adj)
    for name, channels in itertools.product(NETWORKS, args.channels):
        net = network(name, channels, args.layers, args.seed)
        with torch.no_grad():
            plain = net(token, adj)
        off = 0.0
        for rows in (args.nodes // 7 + 1, args.nodes):
            rowwise = infer_by_rows(net, token, adj, rows)
            off = max(off, float((plain - rowwise).abs().max() / plain.abs().max()))
        assert off < 1e-5, f"{name}: the two ways differ by {off:.2g}"
        print(f"{name}, {channels} channels: both ways agree to {off:.1e} of the largest answer")


def measure_all(args: argparse.Namespace, folder: Path) -> dict[str, list[dict[str, Any]]]:
    size = f"{args.nodes:,} nodes, {args.edges:,} edges"
    making, title = f"Making the graph: {size}", f"Inference: {size}, {args.layers} layers"
    tables: dict[str, list[dict[str, Any]]] = {making: [], title: []}
    what = "R-MAT in pieces, straight into CSR"
    tables[making].append({"what": what, **start_case(args, folder, "graph")})
    report(making, tables[making])
    for dtype, width in (("int32", 4), ("int64", 8)) if args.adjacency else ():
        row: dict[str, Any] = {"what": f"adjacency() of a [2, E] tensor, {dtype}"}
        # The tensor, its making, the sorted sources, keys and permutation, and torch's sort.
        needed = args.edges * (5 * width + 40)
        if needed > free_memory() - RESERVE:
            row["skipped"] = f"needs about {needed / 2**30:.1f} GiB"
        else:
            row |= start_case(args, folder, f"adjacency {dtype}")
        tables[making].append(row)
        report(making, [row])
    for channels, name in itertools.product(args.channels, args.networks):
        for way in args.ways:
            row = {"network": name, "channels": channels, "way": way}
            needed = bytes_needed(args, channels, way)
            if needed > min(free_memory() - RESERVE, args.limit * 2**30):
                row["skipped"] = f"needs about {needed / 2**30:.1f} GiB"
            else:
                row |= start_case(args, folder, f"{name} {way}", channels)
            tables[title].append(row)
            report(title, [row])
        answers = [folder / f"{name} {way}.npy" for way in ("plain", "rows")]
        if all(file.exists() for file in answers):
            tables[title][-1]["difference"] = difference(*answers)
            report(title, tables[title][-1:])
        for file in answers:
            file.unlink(missing_ok=True)
    return tables


def options() -> argparse.Namespace:
    out = parser(__doc__)
    out.set_defaults(repeats=1)
    out.add_argument("--nodes", type=int, default=10_000_000)
    out.add_argument("--edges", type=int, default=100_000_000)
    out.add_argument("--channels", type=int, nargs="+", default=(32, 64))
    out.add_argument("--layers", type=int, default=3)
    out.add_argument("--rows", type=int, default=1 << 18, help="nodes at a time")
    out.add_argument("--seed", type=int, default=0)
    out.add_argument("--limit", type=float, default=20, help="GiB that a case may take at most")
    out.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    out.add_argument("--ways", nargs="+", choices=("plain", "rows"), default=("plain", "rows"))
    out.add_argument("--adjacency", action="store_true", help="also from a plain edge_index")
    out.add_argument("--check", action="store_true", help="compare the ways in full, time nothing")
    out.add_argument("--case", help=argparse.SUPPRESS)
    out.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return out.parse_args()


def main() -> None:
    args = options()
    if args.case:
        print(json.dumps(run_case(args, args.folder, args.case)))
        return
    torch.set_num_threads(args.threads)
    if args.check:
        check(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        tables = measure_all(args, Path(folder))
    if args.json:
        save(args.json, tables)


if __name__ == "__main__":
    main()

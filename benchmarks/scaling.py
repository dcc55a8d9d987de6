"""Growth of the cost of a layer: with the edges, with the channels, and with FOG's inner widths.

A step (forwards and backwards, to the parameters and to the features) of FOG, GCN, GCN+FOG and of
FOG as the paper writes it, a Kronecker product for each edge. Every node has the same number of
in-edges, from random sources.

- against edges between 10,000 nodes, so that only the cost of the edges grows;
- against edges, 10 for each node, so that the graph grows as a whole;
- against channels, on 10,000 nodes and 1,000,000 edges, with the paper's inner widths;
- against h2 and against h1 alone: the slope b of ``seconds = a + b * edges``, which for FOG
  follows h2 and for the paper's equation h1 * h2.

Prints medians of interleaved repeats, peak memory beyond the graph (torch's own count), and the
exponents k of ``c * edges ** k``, fitted where the edges dominate. What would not fit into memory
is not tried; the table says so. Each graph has a process of its own. With ``--json`` every graph
is written down as soon as it is measured, and the same command resumes from there, if commit and
threads are the same (delete the file if you changed code without a commit).

    python benchmarks/scaling.py --quick
    python benchmarks/scaling.py --json results/scaling.json --plot docs/scaling.svg
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from layers import LiteralFOG
from measure import (
    Action,
    commit_of_code,
    fitted_exponent,
    free_memory,
    medians,
    parser,
    peak_memory,
    report,
    save,
)
from torch import Tensor
from torch.nn import Module

from fognn.nn import FOG, GCNConv, WithFOG
from fognn.ops import Adjacency
from fognn.ops.adjacency import transpose

NODES, DEGREE, WIDTH = 10_000, 10, 144
RESERVE = 3 << 30  # bytes that are left to others
FIXED, GROWING = f"edges, {NODES:,} nodes", f"edges, {DEGREE} a node"
CHANNELS, INNER = "channels", "inner widths"
MEASURED, EXPONENTS, SLOPES = "Measured", "Exponents", "Slopes against inner widths"
Row = dict[str, Any]


def decades(first: int, last: int) -> Iterator[int]:
    """1, 3, 10, 30, ... times ``first``, up to ``last``."""
    while first <= last:
        yield first
        if 3 * first <= last:
            yield 3 * first
        first *= 10


def points(max_edges: int) -> list[tuple[str, int, int, int]]:
    """The measurements: series, nodes, edges, channels."""
    out = [(FIXED, NODES, edges, WIDTH) for edges in decades(NODES, max_edges)]
    out += [(GROWING, edges // DEGREE, edges, WIDTH) for edges in decades(10_000, max_edges)]
    middle = min(1_000_000, max_edges)
    widths = (16, 32, 64, 128, 256, 512) if max_edges >= 1_000_000 else (16, 64, 256)
    out += [(CHANNELS, NODES, middle, channels) for channels in widths]
    inner = decades(3 * NODES, min(30_000_000, max_edges))
    out += [(INNER, NODES, edges, WIDTH) for edges in inner]
    return out


def layers_of(series: str, edges: int, channels: int) -> dict[str, Module]:
    if series == INNER:
        fogs = [(16, h2) for h2 in (2, 4, 8, 16)] + [(h1, 8) for h1 in (4, 8, 32)]
        both: dict[str, Module] = {
            f"FOG(h1={h1}, h2={h2})": FOG(channels, channels, h1, h2, act_first=True)
            for h1, h2 in fogs
        }
        # A million edges show what an edge costs that costs so much.
        for h1, h2 in fogs if edges <= 1_000_000 else ():
            name = f"FOG as written(h1={h1}, h2={h2})"
            both[name] = LiteralFOG(channels, channels, h1, h2)
        return both
    half = channels // 2
    return {
        "FOG": FOG(channels, channels, act_first=True),
        "GCN": GCNConv(channels, channels),
        "GCN+FOG": WithFOG(GCNConv(channels, half), half),
        "FOG as written": LiteralFOG(channels, channels),
    }


def random_graph(nodes: int, edges: int) -> Adjacency:
    """In 32 bits, which halves what an edge takes, with its transpose."""
    degree = edges // nodes
    ptr = torch.arange(0, edges + 1, degree, dtype=torch.int32)
    source = torch.randint(0, nodes, (edges,), dtype=torch.int32)
    t_ptr, t_target, _ = transpose(ptr, source, nodes)
    return Adjacency(ptr, source, None, t_ptr, t_target)  # t_perm is for weights


def memory_limit() -> int:
    """Bytes that an estimate may come to: others get their share, and a step may take more."""
    return int(0.8 * (free_memory() - RESERVE))


def bytes_needed(layer: Module | None, nodes: int, edges: int, channels: int) -> int:
    """An estimate: of the features and the graph with its sort, or of a layer's step."""
    if layer is None:
        return 4 * nodes * channels * 3 + 40 * edges
    needed = 4 * nodes * channels * 5
    if isinstance(layer, LiteralFOG):  # ends, product, its gradient, a product of that
        needed += 4 * edges * (3 * layer.h1 * layer.h2 + 2 * (layer.h1 + layer.h2))
    return needed


def step(layer: Module, x: Tensor, edge_index: Any, grad: Tensor) -> Action:
    def action() -> None:
        layer(x, edge_index).backward(grad)
        # Now and not before the next step: what that frees would be taken off its memory.
        layer.zero_grad()
        x.grad = None

    return action


def measure_point(series: str, nodes: int, edges: int, channels: int, repeats: int) -> list[Row]:
    """The rows of one graph, measured in this process."""
    torch.manual_seed(0)
    layers = layers_of(series, edges, channels)
    place = {"series": series, "nodes": nodes, "edges": edges, "channels": channels}

    def skipped(name: str, layer: Module | None) -> Row | None:
        needed = bytes_needed(layer, nodes, edges, channels)
        if needed <= memory_limit():
            return None
        why = f"needs about {needed / 2**30:.1f} GiB of memory"
        return {**place, "layer": name, "ms": None, "peak MB": None, "repeats": 0, "skipped": why}

    # Before the graph is there: features and a step of the leanest layer have to fit, too.
    total = bytes_needed(None, nodes, edges, channels)
    total += bytes_needed(GCNConv(channels, channels), nodes, edges, channels)
    if total > memory_limit():
        why = f"graph and features need about {total / 2**30:.1f} GiB of memory"
        empty = {"ms": None, "peak MB": None, "repeats": 0, "skipped": why}
        return [{**place, "layer": name, **empty} for name in layers]

    adj = random_graph(nodes, edges)
    x = torch.randn(nodes, channels, requires_grad=True)
    grad = torch.randn(nodes, channels)
    rows: list[Row] = []
    actions: dict[str, Action] = {}
    plain = None
    for name, layer in layers.items():
        row = skipped(name, layer)
        if row is not None:
            rows.append(row)
            continue
        if isinstance(layer, LiteralFOG) and plain is None:
            plain = torch.stack([adj.source, adj.target])
        edge_index = plain if isinstance(layer, LiteralFOG) else adj
        actions[name] = step(layer, x, edge_index, grad)

    start = time.perf_counter()
    for action in actions.values():
        action()
    # Where a round of all steps takes long, three of them have to do.
    repeats = repeats if time.perf_counter() - start < 2 else min(repeats, 3)
    seconds = medians(actions, repeats)
    for name, action in actions.items():
        measured = {"ms": seconds[name] * 1e3, "peak MB": peak_memory(action) / 1e6}
        rows.append({**place, "layer": name, **measured, "repeats": repeats, "skipped": ""})
    return rows


def start_point(point: tuple[str, int, int, int], args: argparse.Namespace) -> list[Row]:
    """The rows of one graph, measured in a process of its own."""
    command = [sys.executable, __file__, "--point", json.dumps(point)]
    command += ["--repeats", str(args.repeats), "--threads", str(args.threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
    return json.loads(done.stdout.splitlines()[-1])


def line(x: list[float], y: list[float]) -> tuple[float, float]:
    """``a, b`` of ``y = a + b * x`` with a and b at least 0, each point weighing by its ratio and
    not by its size, so that the small ones have a say in a."""
    scale = 1 / np.array(y)
    sides = np.stack([scale, scale * np.array(x)], axis=1)
    a, b = np.linalg.lstsq(sides, np.ones(len(x)), rcond=None)[0]
    if a < 0:
        a, b = 0.0, sides[:, 1].sum() / (sides[:, 1] ** 2).sum()
    return float(a), float(b)


def series_of(rows: list[Row], series: str) -> dict[str, list[Row]]:
    """The measured rows of each layer."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["series"] == series and row["ms"] is not None:
            found.setdefault(row["layer"], []).append(row)
    return found


def exponents(rows: list[Row]) -> list[Row]:
    """Fitted where what grows dominates: it is two thirds of the time, or more, by the fit of a
    line. Against channels: from 64 on."""
    out = []
    for series, axis in ((FIXED, "edges"), (GROWING, "edges"), (CHANNELS, "channels")):
        for layer, own in series_of(rows, series).items():
            chosen = own
            if axis == "channels":
                chosen = [row for row in own if row["channels"] >= 64]
            elif len(own) > 2:
                a, b = line([r["edges"] for r in own], [r["ms"] for r in own])
                chosen = [row for row in own if b * row["edges"] >= 2 * a]
            row: Row = {"against": series, "layer": layer}
            x = [r[axis] for r in chosen]
            enough = len(set(x)) > 1
            for what, name in (("ms", "exponent of time"), ("peak MB", "exponent of memory")):
                row[name] = fitted_exponent(x, [r[what] for r in chosen]) if enough else None
            row["points"] = f"{min(x):.0e}..{max(x):.0e} ({len(x)})" if enough else "too few"
            out.append(row)
    return out


def slopes(rows: list[Row]) -> list[Row]:
    """The cost of an edge at given inner widths."""
    out = []
    for layer, own in series_of(rows, INNER).items():
        if len(own) < 2:
            continue
        a, b = line([r["edges"] for r in own], [r["ms"] for r in own])
        h1, h2 = (int(part.split("=")[1].rstrip(")")) for part in layer.split(","))
        per_edge = b * 1e6
        row = {"layer": layer, "h1": h1, "h2": h2, "ms without edges": a, "ns an edge": per_edge}
        row |= {"ns / h2": per_edge / h2, "ns / (h1 h2)": per_edge / (h1 * h2)}
        out.append({**row, "largest edges": max(r["edges"] for r in own)})
    return out


def draw(rows: list[Row], path: Path) -> None:
    """Time and peak memory, one above the other, against edges twice and against channels."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    looks = {  # told apart without colour, too
        "FOG as written": ("#D55E00", "s"),
        "GCN": ("#8C8C8C", "D"),
        "GCN+FOG": ("#009E73", "^"),
        "FOG": ("#0072B2", "o"),
    }
    columns = {
        FIXED: ("edges", f"edges between {NODES:,} nodes"),
        GROWING: ("edges", f"edges, {DEGREE} for each node"),
        CHANNELS: ("channels", "channels (10,000 nodes, 1,000,000 edges)"),
    }
    middles = {row["edges"] for row in rows if row["series"] == CHANNELS}
    columns[CHANNELS] = (
        "channels",
        f"channels ({NODES:,} nodes, {max(middles, default=0):,} edges)",
    )
    measures = {"ms": ("time of a step (s)", 1e-3), "peak MB": ("peak memory of a step (GB)", 1e-3)}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "fognn", "font.size": 9}):
        figure = Figure(figsize=(10.5, 6.6), layout="constrained")
        axes = figure.subplots(2, 3, sharex="col", sharey="row")
        for column, (series, (axis, label)) in enumerate(columns.items()):
            found = series_of(rows, series)
            for level, (what, (unit, scale)) in enumerate(measures.items()):
                ax = axes[level][column]
                for layer, (colour, marker) in looks.items():
                    own = found.get(layer, [])
                    x, y = [r[axis] for r in own], [r[what] * scale for r in own]
                    ax.plot(x, y, marker=marker, color=colour, label=layer, markersize=4)
                ax.set_xscale("log", base=2 if axis == "channels" else 10)
                ax.set_yscale("log")
                ax.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
                ax.spines[["top", "right"]].set_visible(False)
                if column == 0:
                    ax.set_ylabel(unit)
                if level == 1:
                    ax.set_xlabel(label)
                if axis == "channels":
                    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.stem}.tmp{path.suffix}")
        figure.savefig(temporary, metadata={"Date": None} if path.suffix == ".svg" else None)
        temporary.replace(path)


def measured_before(args: argparse.Namespace) -> list[Row]:
    """Rows of an earlier call that was stopped, or that went less far."""
    if args.json is None or not args.json.exists():
        return []
    record = json.loads(args.json.read_text(encoding="utf-8"))
    if (record["commit"], record["threads"]) != (commit_of_code(), args.threads):
        return []
    return record["tables"][MEASURED]


def options() -> argparse.Namespace:
    out = parser(__doc__)
    out.add_argument("--max-edges", type=int, default=100_000_000)
    out.add_argument("--quick", action="store_true", help="100,000 edges at most, one repeat")
    out.add_argument("--plot", type=Path, help="also draw it: a .svg or .png file")
    out.add_argument("--point", type=json.loads, help=argparse.SUPPRESS)
    args = out.parse_args()
    if args.quick:
        args.max_edges, args.repeats = min(args.max_edges, 100_000), 1
    return args


def main() -> None:
    args = options()
    torch.set_num_threads(args.threads)
    if args.point:
        print(json.dumps(measure_point(*args.point, args.repeats)))
        return
    rows = measured_before(args)
    done = {(r["series"], r["nodes"], r["edges"], r["channels"]) for r in rows}
    for point in points(args.max_edges):
        if point in done:
            continue
        new = start_point(point, args)
        report(f"{point[0]}: {point[1]:,} nodes, {point[2]:,} edges", new)
        rows += new
        if args.json:
            save(args.json, {MEASURED: rows})
    tables = {MEASURED: rows, EXPONENTS: exponents(rows), SLOPES: slopes(rows)}
    for title in (EXPONENTS, SLOPES):
        if tables[title]:
            report(title, tables[title])
    if args.json:
        save(args.json, tables)
    if args.plot:
        draw(rows, args.plot)


if __name__ == "__main__":
    main()

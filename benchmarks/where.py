"""The time of a training step on a batch of molecules by kind of operation: GatedGCN-E+FOG on ZINC,
ours and the same network on PyG's MessagePassing.

Times are torch's profiler's own ("self") times, which add up to the whole step; profiling makes a
step a little slower. Kinds are named by what an operation does, not by who calls it.

    python benchmarks/where.py --threads 1 --json results/where.json
"""

from typing import Any

import torch
from measure import Action, parser, report, save
from problems import training, zinc_pair
from torch.profiler import ProfilerActivity, profile

KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm", "aten::linear"),
    "the gated sum, norm and residual of edges": ("gated_edges",),
    "other operators of ours": ("fognn::", "GeneratedBackwardFor_fognn"),
    "gather, scatter, index": ("index", "gather", "scatter", "embedding"),
    "norms of torch": ("batch_norm",),
    "copies, zeros, cat": ("copy", "fill_", "zero_", "cat", "clone", "empty", "contiguous"),
    "sums and means": ("aten::sum", "aten::mean", "aten::div"),
    "element by element": (
        "aten::add",
        "aten::mul",
        "aten::sub",
        "aten::neg",
        "clamp",
        "relu",
        "threshold",
        "sigmoid",
        "aten::abs",
        "sgn",
    ),
}


def kind_of(name: str) -> str:
    """The first kind whose words the operation's name has."""
    for kind, words in KINDS.items():
        exact = kind == "matrix products"
        if any(name == word if exact else word in name for word in words):
            return kind
    return "views, autograd and the rest"


def by_kind(action: Action, steps: int) -> dict[str, tuple[float, float]]:
    """Milliseconds and calls a step of each kind."""
    for _ in range(3):
        action()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        for _ in range(steps):
            action()
    out: dict[str, tuple[float, float]] = {}
    for event in prof.key_averages():
        kind = kind_of(event.key)
        milliseconds, calls = out.get(kind, (0.0, 0.0))
        milliseconds += event.self_cpu_time_total / 1e3 / steps
        out[kind] = (milliseconds, calls + event.count / steps)
    return out


def main() -> None:
    args = parser(__doc__).parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    net, pyg, problem = zinc_pair()
    steps = 3 * args.repeats
    ours = by_kind(training(net, problem.loss, *problem.arguments), steps)
    theirs = by_kind(training(pyg, problem.loss, *problem.plain_arguments), steps)
    table: list[dict[str, Any]] = []
    for kind in (*KINDS, "views, autograd and the rest"):
        mine, other = ours.get(kind, (0.0, 0.0)), theirs.get(kind, (0.0, 0.0))
        table.append(
            {
                "kind": kind,
                "ms, ours": mine[0],
                "calls, ours": round(mine[1]),
                "ms, PyG": other[0],
                "calls, PyG": round(other[1]),
            }
        )
    total = [sum(value[0] for value in part.values()) for part in (ours, theirs)]
    calls = [round(sum(value[1] for value in part.values())) for part in (ours, theirs)]
    whole = {"kind": "all", "ms, ours": total[0], "calls, ours": calls[0]}
    table.append({**whole, "ms, PyG": total[1], "calls, PyG": calls[1]})
    title = f"A step of GatedGCN-E+FOG on ZINC, {args.threads} threads"
    report(title, table)
    if args.json:
        save(args.json, {title: table})


if __name__ == "__main__":
    main()

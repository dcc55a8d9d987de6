"""The time of a training step without one of numba's loops, relative to the step with it.

Each loop must make a whole step (forward and backward) of some network of the paper at least 1.2
times faster, or it is removed. Prints ratios from one run: medians of interleaved repeats, with one
thread (processor time, which other processes on the machine do not change) and with two (elapsed
time). "Without" runs the same equations in torch.

    python benchmarks/loops.py
    python benchmarks/loops.py --repeats 15 --json results/loops.json
"""

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from measure import Action, medians, parser, report, save
from problems import problem, training
from torch.nn import Module

from fognn.experiments import build
from fognn.experiments.rows import get_row
from fognn.ops import kernels

# The operators that have loops, and the networks where they should show most.
NETWORKS = {
    "gated_edges": ["limits/gatedgcn-imdb-multi", "zinc/gatedgcn-e+fog", "tsp/gatedgcn-e"],
    "add_ends": ["tsp/gin", "tsp/fog"],
    "max_rows": ["pattern/graphsage", "tsp/graphsage+fog"],
}


# The modules that ask whether they can run.
ASKED = {"gated_edges": "fognn.nn.gated_gcn_conv", "add_ends": "fognn.ops.spmm"}


class _NoLoops:
    """The kernels, except that there is no loop."""

    def __getattr__(self, name: str) -> Any:
        return (lambda *tensors: False) if name == "has_loops" else getattr(kernels, name)


@contextmanager
def without(operator: str) -> Iterator[None]:
    """Lets one operator run in torch."""
    if operator == "max_rows":  # the only loop of GraphSAGE
        patch = mock.patch.object(kernels, "has_loops", return_value=False)
    else:
        module = importlib.import_module(ASKED[operator])
        patch = mock.patch.object(module, "kernels", _NoLoops())
    with patch:
        yield


def step_without(operator: str, step: Action) -> Action:
    def action() -> None:
        with without(operator):
            step()

    return action


def measured(operator: str, name: str, repeats: int) -> dict[str, Any]:
    torch.manual_seed(0)
    row = get_row(name)
    batch, net = problem(row.dataset), build(row)
    assert isinstance(net, Module)
    step = training(net, batch.loss, *batch.arguments)
    line: dict[str, Any] = {"loop": operator, "network": name}
    for threads, clock in ((1, time.process_time), (2, time.perf_counter)):
        torch.set_num_threads(threads)
        actions = {"with": step, "without": step_without(operator, step)}
        seconds = medians(actions, repeats, clock)
        line[f"ratio, threads: {threads}"] = seconds["without"] / seconds["with"]
        line[f"ms, threads: {threads}"] = seconds["with"] * 1e3
    return line


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    args = options.parse_args()
    table = []
    for operator in args.only:
        for name in NETWORKS[operator]:
            table.append(measured(operator, name, args.repeats))
            print(table[-1], flush=True)
    title = "Time of a step without a loop, relative to the step with it (goal: 1.2 or more)"
    report(title, table)
    if args.json:
        save(args.json, {title: table})


if __name__ == "__main__":
    main()

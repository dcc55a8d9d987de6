"""The effect of settings on a step: threads, memory, torch.compile, sorted edges.

Each setting is a process of its own, because most are read when torch is loaded. The processes
take turns, round after round; the table gives, for each network, the time of a step relative to
that with the defaults: the median over rounds of each process's median step. Below 1 is faster.

    python benchmarks/settings.py
    python benchmarks/settings.py --rounds 3 --json results/settings.json
"""

import ctypes.util
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import torch
from measure import parser, report, save
from problems import problem, training

from fognn.experiments import build
from fognn.experiments.rows import get_row

THREADS = os.cpu_count() or 1


def settings() -> dict[str, dict[str, str]]:
    """Environments by name, all beside the defaults: all cores' threads, sorted edges."""
    out: dict[str, dict[str, str]] = {"defaults": {}}
    out["1 thread"] = {"OMP_NUM_THREADS": "1"}
    out["huge pages (THP_MEM_ALLOC_ENABLE=1)"] = {"THP_MEM_ALLOC_ENABLE": "1"}
    large = str(1 << 32)
    out["malloc keeps memory (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_)"] = {
        "MALLOC_TRIM_THRESHOLD_": large,
        "MALLOC_MMAP_THRESHOLD_": large,
    }
    jemalloc = ctypes.util.find_library("jemalloc")
    if jemalloc is not None:
        out["jemalloc (LD_PRELOAD)"] = {"LD_PRELOAD": jemalloc}
    out["torch.compile"] = {"FOGNN_BENCHMARK_COMPILE": "1"}
    out["a plain edge_index, sorted in every step"] = {"FOGNN_BENCHMARK_PLAIN": "1"}
    out["no loops of numba (FOGNN_PLAIN=1)"] = {"FOGNN_PLAIN": "1"}
    return out


NETWORKS = [
    ("PATTERN", "FOG", 5),
    ("PATTERN", "GCN+FOG", 5),
    ("PATTERN", "GatedGCN", 2),
    ("ZINC", "GCN+FOG", 15),
    ("ZINC", "GatedGCN-E+FOG", 15),
]


def one_process(dataset: str, model: str, steps: int) -> float:
    """The median step of a network, in this process."""
    torch.manual_seed(0)
    net: Any = build(get_row(f"{dataset}/{model}".lower()))
    batch = problem(dataset)
    # In the order of PyG's loader, so that sorting is a part of the step.
    edges = batch.unsorted if os.environ.get("FOGNN_BENCHMARK_PLAIN") else batch.edges
    if os.environ.get("FOGNN_BENCHMARK_COMPILE"):
        net = torch.compile(net)
    action = training(net, batch.loss, batch.x, edges, *batch.rest)
    seconds = []
    for i in range(steps + 3):
        start = time.perf_counter()
        action()
        if i >= 3:
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def measured(environment: dict[str, str], network: tuple[str, str, int]) -> float:
    command = [sys.executable, __file__, "--one", json.dumps(network)]
    result = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return float(result.stdout.split()[-1])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3, help="processes for each setting")
    options.add_argument("--one", help="measure one network in this process, and print it")
    args = options.parse_args()
    if args.one:
        print(one_process(*json.loads(args.one)))
        return
    environments = settings()
    table: list[dict[str, Any]] = [{"setting": name} for name in environments]
    for network in NETWORKS:
        seconds: dict[str, list[float]] = {name: [] for name in environments}
        for _ in range(args.rounds):
            for name, environment in environments.items():
                seconds[name].append(measured(environment, network))
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        title = f"{network[1]}, {network[0]}"
        for line in table:
            ratio = medians[line["setting"]] / medians["defaults"]
            line[title] = ratio if line["setting"] != "defaults" else 1.0
        print(f"{title}: {medians['defaults'] * 1e3:.1f} ms a step with the defaults", flush=True)
    report(f"Time of a step, relative to the defaults ({THREADS} threads)", table)
    if args.json:
        save(args.json, {"Time of a step, relative to the defaults": table})


if __name__ == "__main__":
    main()

"""The time that the training loop adds to the bare forward, backward and optimiser step.

The loop is ``fognn.training.fit`` itself: loader, seeds, metrics, progress, checkpoints, files.
Validation is left out of both sides. After each epoch of the loop the same network makes the same
number of bare steps, on batches that are cut already; so the two take turns on a noisy machine.
Prints the share that the loop adds, the median over epochs, from one run. PATTERN is a fifth of its
training split, so that the files that are written once an epoch weigh five times what they weigh in
the paper's runs; ZINC is the whole one, where FOGNN_DATA names a folder with it.

    FOGNN_DATA=/data python benchmarks/training.py
    FOGNN_DATA=/data python benchmarks/training.py --repeats 15 --json results/training.json
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from measure import parser, report, save

from fognn.experiments import protocol
from fognn.training import Config, fit, loop
from fognn.training.data import RunData, task_of
from fognn.training.networks import untrained_model
from fognn.training.objective import forward_batch, loss_of

FRACTIONS = {"PATTERN": 0.2, "ZINC": 1.0}
MODELS = ("FOG", "GCN", "GCN+FOG")


class Bare:
    """Steps without a loop around them."""

    def __init__(self, config: Config) -> None:
        self.net = untrained_model(config, task_of(config.data)).train()
        self.loss = config.training.loss
        # The optimiser of the loop: the loop is what is measured.
        self.adam = torch.optim.Adam(self.net.parameters(), config.training.lr, fused=True)
        self.batches = list(RunData(config).loader("train"))

    def epoch(self) -> float:
        start = time.perf_counter()
        for batch in self.batches:
            loss = loss_of(self.loss, *forward_batch(self.net, batch))
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()
        return time.perf_counter() - start


def shares(config: Config) -> dict[str, float]:
    """Seconds of an epoch, bare and in the loop, and the share that the loop adds."""
    bare, pairs = Bare(config), []

    start = time.perf_counter()

    def measure(_: Config, row: dict[str, Any], quiet: bool) -> None:
        nonlocal start
        looped = time.perf_counter() - start - row["val_seconds"]
        pairs.append((bare.epoch(), looped))
        start = time.perf_counter()

    original, loop.show_epoch = loop.show_epoch, measure
    try:
        with tempfile.TemporaryDirectory() as folder:
            fit(config, Path(folder) / "run", quiet=True)
    finally:
        loop.show_epoch = original
    kept = pairs[1:] or pairs  # the first warms up
    return {
        "bare s": statistics.median(bare for bare, _ in kept),
        "loop s": statistics.median(looped for _, looped in kept),
        "added %": 100 * statistics.median(looped / bare - 1 for bare, looped in kept),
    }


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--shrink", type=float, default=1.0, help="of the data, for a quick look")
    options.add_argument("--datasets", nargs="*", default=list(FRACTIONS), choices=list(FRACTIONS))
    args = options.parse_args()
    table = []
    for data in args.datasets:
        for model in MODELS:
            values = {
                "data.fraction": FRACTIONS[data] * args.shrink,
                "training.epochs": args.repeats + 1,
                "training.lr": 1e-4,  # no plateau in these few epochs
                "machine.threads": args.threads,
            }
            torch.set_num_threads(args.threads)
            config = protocol(data, model, 0, values)
            table.append({"data": data, "network": model, **shares(config), "goal %": 10})
    title = f"What the loop adds to the bare steps of an epoch ({args.threads} threads)"
    report(title, table)
    if args.json:
        save(args.json, {title: table})


if __name__ == "__main__":
    main()

r"""The speed of runs, measured on a few steps, and the fastest number of runs at a time."""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fognn.experiments.processes import Process, cores, end, last_line, send, spawn, with_threads
from fognn.training import Config, TrainingError
from fognn.training.data import Loader
from fognn.training.data import folds_of as count_folds
from fognn.training.evaluation import forward_batch
from fognn.training.fabric import make_fabric, threads_of, without_denormals
from fognn.training.loop import Parts
from fognn.training.objective import Meter, loss_of, std_of
from fognn.training.optimizer import make_optimizer

__all__ = ["Pace", "Workers", "fastest_workers", "folds_of", "measure", "paces"]

SECONDS = 2.0


@dataclass(frozen=True)
class Pace:
    r"""The speed of a run.

    Args:
        train_step (float): Seconds per training step.
        val_step (float): Seconds per validation batch.
        train_batches (int): Number of training steps in an epoch.
        val_batches (int): Number of validation batches in an epoch.
    """

    train_step: float
    val_step: float
    train_batches: int
    val_batches: int

    @property
    def epoch(self) -> float:
        r"""Seconds per epoch."""
        return self.train_step * self.train_batches + self.val_step * self.val_batches


def paces(configs: list[Config], seconds: float = SECONDS) -> list[Pace | str]:
    r"""Measures the speed of runs that are trained at the same time, each in its own process.

    Args:
        configs (list): The runs. They are trained for a few steps, and nothing is saved.
        seconds (float, optional): The time to measure for; at least two steps are measured.
            (default: :obj:`2.0`)

    Returns:
        For each run, its speed, or the reason why it could not be measured.
    """
    with tempfile.TemporaryDirectory() as folder:
        processes: list[Process] = []
        logs = []
        try:
            for number, config in enumerate(configs):
                content = with_threads(config).to_dict()
                request = {"job": "measure", "config": content, "seconds": seconds}
                logs.append(Path(folder) / str(number))
                with open(logs[-1], "wb") as log:
                    process = spawn(request, stdout=subprocess.PIPE, stderr=log)
                processes.append(process)
            # Wait until all processes are ready, so that they are measured at the same time.
            for process in processes:
                _line(process)
            for process in processes:
                send(process, "go")
            found: list[Pace | str] = []
            for process, log_file in zip(processes, logs, strict=True):
                if text := _line(process):
                    found.append(Pace(**json.loads(text)))
                else:
                    code = process.wait()
                    found.append(last_line(log_file) or f"its process ended with exit code {code}")
            return found
        finally:
            for process in processes:
                end(process)


@dataclass(frozen=True)
class Workers:
    r"""A number of runs at a time, and their speed.

    Args:
        workers (int): Number of runs at a time.
        rate (float): Training steps per second, of all runs together.
    """

    workers: int
    rate: float

    def __str__(self) -> str:
        return f"{self.workers} at a time: {self.rate:.1f} steps/s"


def fastest_workers(
    config: Config, runs: int, measured: Callable[[list[Config]], list[Pace | str]] = paces
) -> list[Workers]:
    r"""Measures numbers of runs at a time on this machine; returns them, the fastest first.

    Measured are one run, two, four, and so on to one for each core, each with one thread.

    Args:
        config (Config): The run to measure.
        runs (int): Number of runs to train, the maximum number of runs at a time.
        measured (Callable, optional): Measures runs that are trained at the same time.
            (default: :func:`paces`)
    """
    most = min(cores(), runs)
    tried, reason = [], ""
    for workers in sorted({most} | {2**n for n in range(most.bit_length()) if 2**n <= most}):
        found = measured([config] * workers)
        reasons = [pace for pace in found if isinstance(pace, str)]
        if reasons:  # too many for the memory, or the run fails in any case
            reason = reasons[0]
            break
        rate = sum(1 / pace.train_step for pace in found if isinstance(pace, Pace))
        tried.append(Workers(workers, rate))
    if not tried:
        raise TrainingError(f"workers 'auto': the first run could not be measured: {reason}")
    return sorted(tried, key=lambda found: -found.rate)


@without_denormals()
def measure(config: Config, seconds: float, ready: Callable[[], None]) -> Pace:
    r"""Measures the speed of a run in this process.

    Args:
        config (Config): The run. Of a run over folds, the first fold is measured; of a run with
            several ranks, one rank with the whole batch.
        seconds (float): The time to measure for; at least two steps are measured.
        ready (Callable): Called after the data are loaded and the first step is done.
    """
    config = replace(config, machine=replace(config.machine, ranks=1))
    if count_folds(config.data):
        config = replace(config, data=replace(config.data, fold=1))
    training = config.training
    with threads_of(config.machine):
        parts, fabric = Parts.of(config), make_fabric(config)
        net: Any = torch.compile(parts.net, dynamic=True) if config.machine.compile else parts.net
        adam = make_optimizer(config, parts.net.parameters())
        model, optimizer = fabric.setup(net, adam)
        meter, std = Meter(training, parts.classes, fabric), std_of(parts.task)

        def score(batch: Any) -> torch.Tensor:
            prediction, target = forward_batch(model, fabric.to_device(batch))
            loss = loss_of(training.loss, prediction, target, fabric, std)
            meter.update(prediction, target, loss)
            loss.item()
            return loss

        def train(batch: Any) -> None:
            loss = score(batch)
            optimizer.zero_grad()
            fabric.backward(loss)
            if training.clip is not None:
                fabric.clip_gradients(
                    model, optimizer, max_norm=training.clip, error_if_nonfinite=False
                )
            optimizer.step()

        steps = _again(parts.train)
        train(next(steps))
        ready()
        train_step = _timed(train, steps, seconds)
        model.eval()
        with torch.no_grad():
            val_step = _timed(score, _again(parts.val), seconds / 4)
    return Pace(train_step, val_step, len(parts.train), len(parts.val))


def folds_of(config: Config) -> int:
    r"""Returns the number of folds that a run trains; 1 without folds."""
    return count_folds(config.data) or 1


def _timed(step: Callable[[Any], Any], batches: Iterator[Any], seconds: float) -> float:
    done, start = 0, time.perf_counter()
    while done < 2 or time.perf_counter() - start < seconds:
        step(next(batches))
        done += 1
    return (time.perf_counter() - start) / done


def _again(loader: Loader) -> Iterator[Any]:
    r"""Yields the batches of a loader, epoch after epoch, so that the time at the start of an epoch
    is measured, too."""
    epoch = 0
    while True:
        loader.set_epoch(epoch)
        yield from loader
        epoch += 1


def _line(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()

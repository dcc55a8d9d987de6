r"""The machine of a run: versions, commit, devices, processes (Lightning's Fabric), threads."""

import inspect
import multiprocessing
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException
from torch.nn.parallel import DistributedDataParallel

from fognn import __version__
from fognn.data.sources import cache_dir, data_dir
from fognn.training.config import Config, MachineConfig
from fognn.utils.errors import Stopped, TrainingError
from fognn.utils.own_code import import_asked

# Runs of a clone add to its ledgers and weights, which changes no code.
_ADDED = (":(exclude)results", ":(exclude)weights")
_PACKAGES = ("torch", "torch_geometric", "lightning_fabric", "torchmetrics", "numpy")


def environment() -> dict[str, Any]:
    r"""Returns versions, commit, threads and machine, as in ``result.json``."""
    versions = {"fognn": __version__, "python": platform.python_version()}
    versions |= {package: version(package) for package in _PACKAGES}
    versions["torch"] = torch.__version__  # with the build, such as +cpu
    cpu = platform.processor() or platform.machine()
    machine = {"system": platform.platform(), "cpu": cpu, "cores": cores()}
    threads = torch.get_num_threads()
    return {"versions": versions, "commit": commit(), "threads": threads, "machine": machine}


def report_environment() -> str:
    r"""Returns the environment as text, for ``fognn info``."""
    content = environment()
    lines = content.pop("versions") | content.pop("machine") | content
    lines |= {"device": device_of("auto"), "data folder": data_dir(), "cache": cache_dir()}
    return "\n".join(f"{name:<18}{value}" for name, value in lines.items())


def cores() -> int:
    r"""Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def commit() -> str | None:
    r"""Returns the commit of the clone that fognn runs from, if any, and whether files differ."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    git = ["git", "-C", str(root)]
    status = [*git, "status", "--porcelain", "-uno", "--", ".", *_ADDED]
    try:
        head = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True)
        changed = subprocess.check_output(status, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.strip() + (" with changes" if changed.strip() else "")


def peak_memory(device: str) -> int | None:
    r"""Returns the most bytes that this process has had: of tensors on CUDA, else of memory."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status")  # of Linux
    # Not ru_maxrss, which Linux carries over from the process that started this one.
    found = re.search(r"VmHWM:\s+(\d+)", status.read_text("utf-8") if status.exists() else "")
    return int(found[1]) * 1024 if found else None


def device_of(name: str) -> str:
    r"""Returns the device to train on: ``"auto"`` is the fastest that this machine has."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    found = [*(device for device in there if there[device]), "cpu"]
    if name not in ("auto", *found):
        has = ", ".join(found)
        raise ValueError(f"device must be one that this machine has ({has}), got {name!r}")
    return found[0] if name == "auto" else name


def by_torchrun() -> bool:
    r"""Returns whether torchrun has started this process."""
    return torch.distributed.is_torchelastic_launched()


def rank() -> int:
    r"""Returns the rank of this process under torchrun; 0 without torchrun."""
    return int(os.environ["RANK"]) if by_torchrun() else 0


def make_fabric(config: Config) -> Fabric:
    r"""Returns the Fabric of this process, or one that can start ``machine.ranks`` of them."""
    ranks, nodes = config.machine.ranks, 1
    if by_torchrun():
        ranks, nodes = int(os.environ["WORLD_SIZE"]), int(os.environ["GROUP_WORLD_SIZE"])
        config.with_values({"machine.ranks": ranks})  # raises if they cannot share a batch
    # A broadcast of buffers at each forward would hang in evaluation, where a rank can have a batch
    # more; torch renamed the option. Weights of GatedGCN's last edge output get no gradient.
    known = inspect.signature(DistributedDataParallel).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    options: dict[str, Any] = {name: False, "find_unused_parameters": True}
    start: Any = "popen" if by_torchrun() else "spawn"
    fabric = Fabric(
        accelerator=device_of(config.machine.device),
        devices=ranks // nodes,
        num_nodes=nodes,
        strategy=DDPStrategy(start_method=start, **options) if ranks > 1 else "auto",
        precision=config.precision,
    )
    if config.machine.ranks == 1 or by_torchrun():
        fabric.launch()
    return fabric


def on_ranks(config: Config, function: Callable[..., Any], **arguments: Any) -> Any:
    r"""Calls ``function(fabric, **arguments)`` on each rank; returns the result of the first."""
    fabric = make_fabric(config)
    if config.machine.ranks == 1 or by_torchrun():
        return function(fabric, **arguments)
    try:
        # Not as arguments of launch, which searches them for modules, and fails for a Config.
        return fabric.launch(partial(_on_rank, function=function, arguments=arguments))
    except (ProcessExitedException, ProcessRaisedException) as error:
        reason = str(error).strip().splitlines()[-1]
        raise TrainingError(f"a rank ended ({reason}): the same command resumes the run") from error
    except KeyboardInterrupt as error:  # which the ranks get, too
        for child in multiprocessing.active_children():
            child.join()
        raise Stopped("stopped: the same command resumes the run") from error


def _on_rank(fabric: Fabric, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    import_asked()
    return function(fabric, **arguments)


@contextmanager
def threads_of(machine: MachineConfig) -> Iterator[None]:
    r"""Sets torch's number of threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(machine.threads or max(1, before // machine.ranks))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def without_denormals() -> Iterator[None]:
    r"""Flushes denormal numbers (below 1e-38), which double the time of an epoch on a CPU, to 0."""
    before = bool(torch.tensor(1e-39) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)

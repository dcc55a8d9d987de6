r"""Devices, processes and threads, with Lightning's Fabric."""

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies.ddp import DDPStrategy
from torch.nn.parallel import DistributedDataParallel

from fognn.training.config import Config, MachineConfig
from fognn.training.environment import cores, device_of

__all__ = ["check_threads", "make_fabric", "rank", "threads_of", "without_denormals", "world"]


_FEWEST_THREADS = 64  # allowed on any machine


def world() -> tuple[int, int]:
    r"""Returns the numbers of processes and of machines that torchrun started; ``(1, 1)`` without
    torchrun."""
    if not torch.distributed.is_torchelastic_launched():
        return 1, 1
    return int(os.environ["WORLD_SIZE"]), int(os.environ["GROUP_WORLD_SIZE"])


def rank() -> int:
    r"""Returns the rank of this process under torchrun; 0 without torchrun."""
    return int(os.environ["RANK"]) if torch.distributed.is_torchelastic_launched() else 0


def make_fabric(config: Config, logger: Any = None) -> Fabric:
    r"""Returns a Fabric for this process, alone or one of several that torchrun started.

    Args:
        config (Config): The run, with its device and precision.
        logger (Logger, optional): A logger of Lightning. (default: :obj:`None`)
    """
    world_size, nodes = world()
    if config.training.batch_size % world_size:
        raise ValueError(
            f"config: training.batch_size must be a multiple of the number of ranks, got "
            f"{config.training.batch_size} and {world_size}"
        )
    fabric = Fabric(
        accelerator=device_of(config.machine.device),
        devices=world_size // nodes,
        num_nodes=nodes,
        strategy=_ddp() if world_size > 1 else "auto",
        precision=config.precision,
        loggers=logger,
    )
    fabric.launch()
    return fabric


def _ddp() -> DDPStrategy:
    r"""Returns the strategy for several ranks, without the broadcast of buffers at each forward.

    Buffers are equal on all ranks anyway (see :func:`~fognn.training.sync_norm.synchronise`), and
    the broadcast would hang in evaluation, where one rank can have one batch more than another.
    """
    # Torch renamed the option, and warns about the old name.
    known = inspect.signature(DistributedDataParallel).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    # The edge output of GatedGCN's last layer is not used, so some weights get no gradient.
    options: dict[str, Any] = {name: False, "find_unused_parameters": True}
    return DDPStrategy(**options)


def check_threads(machine: MachineConfig) -> None:
    r"""Raises if a run has many more threads than this machine has cores. Thousands of threads wait
    for each other without end, or exceed what the system allows, which ends the process.

    The limit depends on the machine, so a :class:`~fognn.training.Config` of another one can be
    read.

    Args:
        machine (MachineConfig): The machine of the run.
    """
    here = cores()
    most = max(_FEWEST_THREADS, 4 * here)
    if machine.threads is not None and machine.threads > most:
        raise ValueError(
            f"config: machine.threads must be at most {most} on this machine, which has {here} "
            f"cores, got {machine.threads}"
        )


@contextmanager
def threads_of(machine: MachineConfig) -> Iterator[None]:
    r"""Sets torch's number of threads within the block.

    Args:
        machine (MachineConfig): The machine of the run.
    """
    check_threads(machine)
    before = torch.get_num_threads()
    torch.set_num_threads(machine.threads or max(1, before // machine.ranks))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def without_denormals() -> Iterator[None]:
    r"""Flushes denormal numbers (below 1e-38) to 0 within the block, on the CPU.

    Weight decay produces many of them, because a weight that gets no gradient shrinks in each step.
    A product with a denormal number takes about 100 times as long, and an epoch twice as long.
    A thread inherits the setting from the thread that starts it; threads that torch has started
    before are not affected.
    """
    before = bool(torch.tensor(1e-39) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)

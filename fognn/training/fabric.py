r"""Devices, processes and threads, through Lightning's Fabric."""

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies.ddp import DDPStrategy
from torch.nn.parallel import DistributedDataParallel

from fognn.training.config import Config
from fognn.training.environment import device_of

__all__ = ["make_fabric", "rank", "threads_of", "without_denormals", "world"]


def world() -> tuple[int, int]:
    r"""The number of processes that torchrun started, and of machines; one if it did not."""
    if not torch.distributed.is_torchelastic_launched():
        return 1, 1
    return int(os.environ["WORLD_SIZE"]), int(os.environ["GROUP_WORLD_SIZE"])


def rank() -> int:
    r"""The number of this process among those that torchrun started; 0 if it did not."""
    return int(os.environ["RANK"]) if torch.distributed.is_torchelastic_launched() else 0


def make_fabric(config: Config, logger: Any = None) -> Fabric:
    r"""Lightning's Fabric for this process: alone, or one of several that torchrun started.

    Args:
        config: Names device and precision.
        logger: A logger of Lightning.
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
    r"""Gradients are shared, buffers are not: they are the same in all ranks (see
    :func:`~fognn.training.sync_norm.synchronise`), and to send them at each forward would hang
    where one rank has a batch more to evaluate than another."""
    # Torch gave the option another name, and warns of the old one.
    known = inspect.signature(DistributedDataParallel).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    # Nothing reads the edge features of GatedGCN's last layer: some weights get no gradient.
    options: dict[str, Any] = {name: False, "find_unused_parameters": True}
    return DDPStrategy(**options)


@contextmanager
def threads_of(config: Config) -> Iterator[None]:
    r"""Sets the number of threads of torch, and sets it back."""
    before = torch.get_num_threads()
    torch.set_num_threads(config.machine.threads or max(1, before // config.machine.ranks))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def without_denormals() -> Iterator[None]:
    r"""Numbers too small for a float's full precision (below 1e-38) become 0, on the CPU.

    Weight decay makes many of them: a weight that nothing reads shrinks for ever. A product with
    them takes a hundred times as long, and an epoch twice. Threads have the setting from the one
    that starts them: those that torch has started before go on as they were.
    """
    before = bool(torch.tensor(1e-39) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)

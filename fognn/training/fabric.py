r"""Devices, processes and threads, with Lightning's Fabric."""

import inspect
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException
from torch.nn import Module, SyncBatchNorm
from torch.nn.parallel import DistributedDataParallel

from fognn.training.config import Config, MachineConfig
from fognn.training.environment import device_of
from fognn.utils.errors import FognnError, Stopped, TrainingError
from fognn.utils.own_code import import_asked

__all__ = [
    "by_torchrun",
    "make_fabric",
    "on_ranks",
    "rank",
    "share_buffers",
    "threads_of",
    "with_norms",
    "without_denormals",
]


def by_torchrun() -> bool:
    r"""Returns whether torchrun has started this process."""
    return torch.distributed.is_torchelastic_launched()


def rank() -> int:
    r"""Returns the rank of this process under torchrun; 0 without torchrun."""
    return int(os.environ["RANK"]) if by_torchrun() else 0


def make_fabric(config: Config) -> Fabric:
    r"""Returns a Fabric for this process, alone or one of those that torchrun has started; or one
    that can start ``machine.ranks`` processes, see :func:`on_ranks`.

    Args:
        config (Config): The run, with its device and precision.
    """
    ranks, nodes = config.machine.ranks, 1
    if by_torchrun():
        ranks, nodes = int(os.environ["WORLD_SIZE"]), int(os.environ["GROUP_WORLD_SIZE"])
    if config.training.batch_size % ranks:
        raise ValueError(
            f"config: training.batch_size must be a multiple of the number of ranks, got "
            f"{config.training.batch_size} and {ranks}"
        )
    fabric = Fabric(
        accelerator=device_of(config.machine.device),
        devices=ranks // nodes,
        num_nodes=nodes,
        strategy=_ddp() if ranks > 1 else "auto",
        precision=config.precision,
    )
    if ranks == 1 or by_torchrun():
        fabric.launch()
    return fabric


def _ddp() -> DDPStrategy:
    r"""Returns the strategy for several ranks, without the broadcast of buffers at each forward,
    which would hang in evaluation, where one rank can have one batch more than another."""
    # Torch renamed the option, and warns about the old name.
    known = inspect.signature(DistributedDataParallel).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    # The edge output of GatedGCN's last layer is not used, so some weights get no gradient.
    options: dict[str, Any] = {name: False, "find_unused_parameters": True}
    return DDPStrategy(start_method="popen" if by_torchrun() else "spawn", **options)


def on_ranks(config: Config, function: Callable[..., Any], *arguments: Any) -> Any:
    r"""Calls ``function(fabric, *arguments)`` on each rank; returns the result of the first.

    Args:
        config (Config): The run.
        function (Callable): The function.
        *arguments: Its other arguments.
    """
    fabric = make_fabric(config)
    if config.machine.ranks == 1 or by_torchrun():
        return function(fabric, *arguments)
    try:
        # Not as arguments of launch, which searches them for modules, and fails for a Config.
        found = fabric.launch(partial(_on_rank, function=function, arguments=arguments))
    except (ProcessExitedException, ProcessRaisedException) as error:
        reason = str(error).strip().splitlines()[-1]
        raise TrainingError(
            f"a rank ended ({reason}), so the others were stopped: the same command resumes the "
            "run after its last finished epoch"
        ) from error
    except KeyboardInterrupt as error:  # which the ranks get, too
        for child in multiprocessing.active_children():
            child.join()
        raise Stopped("stopped: the same command resumes the run") from error
    if isinstance(found, BaseException):
        raise found
    return found


def _on_rank(fabric: Fabric, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    # An error is returned, because the process that started the ranks would get its text only.
    import_asked()
    try:
        return function(fabric, *arguments)
    except (ValueError, ImportError, FognnError, Stopped) as error:
        if fabric.global_rank:
            print(f"fognn: rank {fabric.global_rank}: {error}", file=sys.stderr, flush=True)
        return error


def with_norms(net: Module, fabric: Fabric) -> Module:
    r"""Returns the network of one of several ranks. On GPUs, norms over the batch have the
    statistics of all ranks (:class:`torch.nn.SyncBatchNorm`), on CPUs those of their own rank.

    Args:
        net (torch.nn.Module): The network.
        fabric (Fabric): The devices and ranks.
    """
    if fabric.world_size > 1 and fabric.device.type == "cuda":
        return SyncBatchNorm.convert_sync_batchnorm(net)
    return net


def share_buffers(net: Module, fabric: Fabric) -> None:
    r"""Gives all ranks the buffers of the first, which is the one that writes the checkpoints.

    Args:
        net (torch.nn.Module): The network.
        fabric (Fabric): The devices and ranks.
    """
    if fabric.world_size > 1:
        for buffer in net.buffers():
            torch.distributed.broadcast(buffer, 0)


@contextmanager
def threads_of(machine: MachineConfig) -> Iterator[None]:
    r"""Sets torch's number of threads within the block.

    Args:
        machine (MachineConfig): The machine of the run.
    """
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

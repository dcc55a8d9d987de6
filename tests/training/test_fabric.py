import warnings
from pathlib import Path

import pytest
import torch
from lightning.fabric.strategies.ddp import DDPStrategy
from tiny_runs import tiny
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from fognn.training import fabric as module
from fognn.training import fit
from fognn.training.fabric import (
    check_threads,
    make_fabric,
    rank,
    threads_of,
    without_denormals,
    world,
)


def launched(monkeypatch: pytest.MonkeyPatch, **variables: int) -> None:
    """As torchrun sets the environment of its processes."""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))


def test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a batch system sets for another program is not ours.
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("RANK", "5")
    assert world() == (1, 1)
    assert rank() == 0


def test_started_by_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch, WORLD_SIZE=8, GROUP_WORLD_SIZE=2, RANK=5)
    assert world() == (8, 2)
    assert rank() == 5


def test_a_batch_must_be_shared_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch, WORLD_SIZE=3, GROUP_WORLD_SIZE=1, RANK=0)
    with pytest.raises(
        ValueError, match=r"batch_size must be a multiple of the number of ranks, got 4 and 3"
    ):
        make_fabric(tiny())


@pytest.mark.parametrize(
    ("precision", "parameters", "answers"),
    [
        ("32-true", torch.float32, torch.float32),
        ("64-true", torch.float64, torch.float64),
        ("bf16-mixed", torch.float32, torch.bfloat16),
    ],
)
def test_precision(precision: str, parameters: torch.dtype, answers: torch.dtype) -> None:
    seen = []

    class Net(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = super().forward(x)
            seen.append(out.dtype)
            return out

    fabric = make_fabric(tiny(precision=precision))
    net = fabric.setup(Net(2, 2))
    net(torch.ones(1, 2))
    assert next(net.parameters()).dtype == parameters
    assert seen == [answers]


def test_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_fabric(tiny(machine__device="cpu")).device.type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"device must be one that this machine has .* got 'cuda'"):
        make_fabric(tiny(machine__device="cuda"))


def test_ranks_do_not_send_buffers_at_a_forward() -> None:
    """They would wait for each other where one has no batch to evaluate. No second process is
    needed to see it: a group of one has the same options."""
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    try:
        strategy = module._ddp()
        assert isinstance(strategy, DDPStrategy)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            wrapped = DistributedDataParallel(nn.BatchNorm1d(2), **strategy._ddp_kwargs)
        assert not wrapped.broadcast_buffers
        assert not wrapped.will_sync_module_buffers()
        wrapped(torch.randn(3, 2)).sum().backward()
        assert next(wrapped.parameters()).grad is not None
        # Its reducer must not be the last to hold the group: it frees it with Python's lock, for
        # which a thread of gloo may wait (a hang that was seen once).
        del wrapped
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("before", "threads", "ranks", "expected"),
    [(2, 3, 1, 3), (2, None, 1, 2), (4, None, 2, 2), (1, None, 2, 1), (4, 3, 2, 3)],
)
def test_threads(before: int, threads: int | None, ranks: int, expected: int) -> None:
    here = torch.get_num_threads()
    config = tiny(machine__threads=threads, machine__ranks=ranks)
    torch.set_num_threads(before)
    try:
        with threads_of(config.machine):
            assert torch.get_num_threads() == expected
        assert torch.get_num_threads() == before
        with pytest.raises(KeyError), threads_of(config.machine):
            raise KeyError
        assert torch.get_num_threads() == before
    finally:
        torch.set_num_threads(here)


def test_numbers_that_are_slow_to_compute_with_become_0() -> None:
    small = torch.full((3,), 1e-30)
    assert (small * 1e-10 > 0).all()
    with without_denormals():
        assert (small * 1e-10 == 0).all()
        with without_denormals():
            assert (small * 1e-10 == 0).all()
        assert (small * 1e-10 == 0).all(), "the inner one leaves it as it was"
        assert (small * 1e-5 > 0).all()
    assert (small * 1e-10 > 0).all()
    with pytest.raises(KeyError), without_denormals():
        raise KeyError
    assert (small * 1e-10 > 0).all()


@pytest.mark.parametrize("threads", [1000, 4000, 2**40])
def test_too_many_threads(tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fognn.training.fabric.cores", lambda: 2)
    before = torch.get_num_threads()
    config = tiny(machine__threads=threads)
    words = rf"machine\.threads must be at most 64 on this machine, .* 2 cores, got {threads}"
    with pytest.raises(ValueError, match=words):
        fit(config, tmp_path / "run", quiet=True)
    with pytest.raises(ValueError, match=words), threads_of(config.machine):
        pass
    assert not (tmp_path / "run").exists()
    assert torch.get_num_threads() == before
    monkeypatch.setattr("fognn.training.fabric.cores", lambda: 500)
    check_threads(tiny(machine__threads=2000).machine)
    with pytest.raises(ValueError, match="at most 2000 on this machine"):
        check_threads(tiny(machine__threads=2001).machine)

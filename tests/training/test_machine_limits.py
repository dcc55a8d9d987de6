import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, tiny

from fognn.training import TrainingError, fit, loop
from fognn.training import machine_limits as module
from fognn.training.machine_limits import BusyCores, is_out_of_memory, out_of_memory

CPU = (
    "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)"
)
CUDA = "CUDA out of memory. Tried to allocate 20.50 GiB. GPU 0 has a total capacity of 8.00 GiB"
ERRORS = [
    (RuntimeError(CPU), " for a tensor of 4 GiB"),
    (torch.OutOfMemoryError(CUDA), " for a tensor of 20.50 GiB"),
    (MemoryError(), ""),
]


@pytest.mark.parametrize(("error", "largest"), ERRORS)
def test_the_message(error: Exception, largest: str) -> None:
    assert is_out_of_memory(error)
    text = str(out_of_memory(error, tiny(), "runs/a"))
    assert text.startswith(f"out of memory{largest}: train with a smaller batch (--batch-size 2,")
    text = str(out_of_memory(error, tiny(training__batch_size=1), "runs/a"))
    assert "a smaller network (--set model.channels=" in text
    text = str(out_of_memory(error, tiny(training__batch_size=6, machine__ranks=2), "runs/a"))
    assert "--batch-size 2, it was 6" in text, "a multiple of the ranks"


def test_what_torch_raises_here() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    assert not is_out_of_memory(ValueError("out of memory"))
    assert not is_out_of_memory(TrainingError("out of memory"))


@pytest.mark.parametrize(("error", "largest"), ERRORS)
def test_a_batch_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, largest: str
) -> None:
    real = loop.answer

    def full(model: Any, batch: Any) -> Any:
        if batch.num_graphs > 2:
            raise error
        return real(model, batch)

    monkeypatch.setattr(loop, "answer", full)
    folder = tmp_path / "run"
    with pytest.raises(TrainingError, match=rf"out of memory{largest}: ") as caught:
        fit(tiny(), folder, quiet=True)
    assert str(caught.value) in (folder / "log.txt").read_text()
    # The remedy works.
    found = re.search(r"--batch-size (\d+), .* in another folder than (\S+)\)?$", str(caught.value))
    assert found is not None
    assert found[2] == str(folder)
    fit(tiny(training__batch_size=int(found[1])), tmp_path / "other", quiet=True)


def test_a_network_that_is_too_large(tmp_path: Path) -> None:
    words = r"^out of memory.*, before the training: .*model\.channels"
    with pytest.raises(TrainingError, match=words):
        fit(tiny("gcn", model__channels=2**40), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


class Clock:
    """Each look at the time takes a second, of which the processor works a part."""

    def __init__(self, part: float) -> None:
        self.now, self.part = 0.0, part

    def perf_counter(self) -> float:
        self.now += 1
        return self.now

    def process_time(self) -> float:
        return self.part * self.now


@pytest.mark.parametrize(("threads", "part", "warned"), [(2, 0.2, 1), (2, 0.3, 0), (1, 0.2, 0)])
def test_cores_that_others_use(
    monkeypatch: pytest.MonkeyPatch, threads: int, part: float, warned: int
) -> None:
    monkeypatch.setattr(module, "time", Clock(part))
    busy = BusyCores(threads)
    found = [text for _ in range(50) if (text := busy.message())]
    assert len(found) == warned
    if warned:
        assert "used 2.0 seconds of processor time with 2 threads" in found[0]
        assert "--threads 1" in found[0]


def test_a_run_says_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", Clock(0.1))
    monkeypatch.setattr(module, "_ENOUGH", 1.5)
    with pytest.warns(UserWarning, match="--threads 1 may be faster") as caught:
        fit(tiny(machine__threads=2), tmp_path / "two", quiet=True)
    assert sum("--threads 1" in str(one.message) for one in caught) == 1
    assert (tmp_path / "two" / "log.txt").read_text().count("--threads 1") == 1
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*--threads 1")
        fit(tiny(machine__threads=1), tmp_path / "one", quiet=True)
    assert len(metrics(tmp_path / "one")) == 3

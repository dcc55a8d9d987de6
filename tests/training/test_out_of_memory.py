"""Each message names what helps, with the options of its command, and following it works."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import molecules, tiny

from fognn.cli import main
from fognn.experiments import protocol
from fognn.experiments.child import reason_of
from fognn.training import Config, TrainingError, evaluate, evaluation, fit, loop, predict
from fognn.training.out_of_memory import (
    data_too_large,
    evaluation_too_large,
    network_too_large,
    prediction_too_large,
    training_too_large,
)

FULL = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes")


def one_graph(path: Path, **values: Any) -> Config:
    nodes, generator = 90, np.random.default_rng(0)
    parts = np.arange(nodes) % 3
    np.savez(
        path,
        x=generator.normal(size=(nodes, 5)).astype(np.float32),
        edge_index=generator.integers(0, nodes, (2, 300)),
        y=generator.integers(0, 2, nodes),
        **{f"{name}_mask": parts == n for n, name in enumerate(("train", "val", "test"))},
    )
    usual = {"epochs": 1, "model.channels": 8, "model.layers": 2, "machine.threads": 1}
    return protocol(str(path), "gcn", 0, usual | values)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets each batch of more nodes than a limit fail, in training and in evaluation."""
    real = evaluation.answer

    def use(nodes: int) -> None:
        def answer(model: Any, batch: Any) -> Any:
            if batch.num_nodes > nodes:
                raise FULL
            return real(model, batch)

        for place in (loop, evaluation):
            monkeypatch.setattr(place, "answer", answer)
        monkeypatch.setattr("fognn.training.prediction.answer", answer)

    return use


def followed(config: Config, text: str) -> Config:
    """The run with the settings that a message names; 4 for those without a value."""
    pairs = re.findall(r"--set ([\w.]+)=([\w.,]+)", text)
    pairs += [("training.batch_size", n) for n in re.findall(r"--batch-size (\d+)", text)]
    pairs += [("data.neighbors", n) for n in re.findall(r"--neighbors ([\d,]+)", text)]
    assert pairs
    values = {name: 4 if value == "..." else value for name, value in pairs}
    numbers = {n: int(v) if str(v).isdecimal() else v for n, v in values.items()}
    return config.with_values(numbers)


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_a_batch_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: str
) -> None:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    real = evaluation.answer
    # The first step of two, the evaluation after them, or that of the test split.
    at, calls = {"train": 1, "val": 3, "test": 4}[split], 0

    def answer(model: Any, batch: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise FULL
        return real(model, batch)

    monkeypatch.setattr(loop, "answer", answer)
    monkeypatch.setattr(evaluation, "answer", answer)
    folder, config = tmp_path / "run", tiny(training__epochs=1)
    with pytest.raises(TrainingError, match=r"^out of memory for a tensor of 4 KiB") as caught:
        fit(config, folder, quiet=True)
    text = str(caught.value)
    assert re.search(r"\d+ nodes and [\d,]+ edges: train with a smaller batch", text)
    assert text.endswith(f"(--batch-size 2, it was 4), in another folder than {folder}")
    assert text in (folder / "log.txt").read_text()
    fit(followed(config, text), tmp_path / "other", quiet=True)


def test_one_graph_needs_neighbourhoods_or_fewer_channels(
    tmp_path: Path, limit: Callable[[int], None]
) -> None:
    config = one_graph(tmp_path / "graph.npz")
    limit(89)
    with pytest.raises(TrainingError, match="sampled neighbourhoods") as caught:
        fit(config, tmp_path / "run", quiet=True)
    text = str(caught.value)
    assert "--neighbors 10,10 --set model.norm=mean" in text
    assert "--batch-size" not in text
    first, _, second = text.partition(" or a smaller network")
    sampled = followed(config, first).with_values({"training.batch_size": 2, "neighbors": "2,2"})
    fit(sampled, tmp_path / "sampled", quiet=True)
    limit(90)
    fit(followed(config, second), tmp_path / "smaller", quiet=True)


def test_sampled_neighbourhoods(tmp_path: Path) -> None:
    values = {"data.neighbors": [8, -1], "model.norm": "mean"}
    many = one_graph(tmp_path / "graph.npz", **values, batch_size=32)
    assert "--batch-size 16, it was 32" in str(training_too_large(many, "a")("out"))
    one = many.with_values({"batch_size": 1})
    text = str(training_too_large(one, "a")("out"))
    assert "fewer neighbours (--neighbors 4,10)" in text
    fit(followed(one, text), tmp_path / "run", quiet=True)


def few(k_shot: int, n_way: int, batch_size: int) -> Config:
    values = {"data.k_shot": k_shot, "data.n_way": n_way, "training.batch_size": batch_size}
    return protocol("cifar-fs", "gnn", 0, values)


@pytest.mark.parametrize(
    ("config", "lower"),
    [
        (few(5, 5, 8), "--batch-size 4, it was 8"),
        (few(5, 5, 1), "--set data.k_shot=2) or a smaller network (--set model.embedding="),
        (few(1, 5, 1), "--set data.n_way=2) or a smaller network (--set model.embedding="),
        (tiny(training__batch_size=1), "a smaller network (--set model.channels=...)"),
        (tiny(training__batch_size=6, machine__ranks=2), "--batch-size 2, it was 6"),
    ],
)
def test_what_training_can_lower(config: Config, lower: str) -> None:
    text = str(training_too_large(config, "runs/a")("out of memory"))
    assert lower in text
    followed(config, text)


def test_runs_of_sweeps_have_other_options() -> None:
    error = training_too_large(tiny(), "runs/a")("out of memory")
    text = reason_of(error, "zinc/gcn-seed0")
    assert "train with a smaller batch (--set training.batch_size=2, it was 4)" in text
    assert "--workers" in text
    assert "--batch-size" not in text
    assert "compare with a smaller batch (--set" in reason_of(error, "compare/mine/gcn-seed0")
    one = training_too_large(tiny(training__batch_size=1), "runs/a")("out of memory")
    assert "(--set model.channels=...)" in reason_of(one, "zinc/gcn-seed0")
    for error in (one, network_too_large(tiny())("out of memory")):
        text = reason_of(error, "compare/mine/gcn-seed0")
        assert "(--budget ...)" in text
        assert "model.channels" not in text, "which a comparison does not take"
    assert reason_of(ValueError("a\nb"), "zinc/gcn-seed0") == "ValueError: a b"


def test_data_and_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = str(data_too_large(tiny(data__fraction=0.5))("out of memory"))
    assert "before the training: train on a part of the data (--set data.fraction=0.25)" in text
    assert "a machine with more memory" in str(data_too_large(few(1, 5, 1))("out of memory"))
    words = r"^out of memory.*, before the training: train with .*model\.channels"
    with pytest.raises(TrainingError, match=words):
        fit(tiny("gcn", model__channels=2**40), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()
    # The file does not fit; a smaller one does.
    torch.save(molecules(60), tmp_path / "large.pt")
    torch.save(molecules(40), tmp_path / "small.pt")
    real = "fognn.training.own_data.read_own_data"
    read = __import__("fognn.training.own_data", fromlist=["x"]).read_own_data

    def reads(path: str, *columns: Any) -> Any:
        if "large" in path:
            raise MemoryError
        return read(path, *columns)

    monkeypatch.setattr(real, reads)
    with pytest.raises(TrainingError, match=r"large\.pt is too large .* name a file with fewer"):
        protocol(str(tmp_path / "large.pt"), "gcn")
    protocol(str(tmp_path / "small.pt"), "gcn")


def test_evaluate_and_predict(tmp_path: Path, limit: Callable[[int], None]) -> None:
    torch.save(molecules(40), tmp_path / "mine.pt")
    values: dict[str, Any] = {"epochs": 1, "model.channels": 8, "machine.threads": 1}
    run = fit(protocol(str(tmp_path / "mine.pt"), "gcn", 0, values), tmp_path / "run", quiet=True)
    limit(20)
    with pytest.raises(TrainingError, match=r"nodes .*: evaluate with a smaller batch") as caught:
        evaluate(run.folder, batch_size=4)
    size = re.search(r"--batch-size (\d+), it was 4", str(caught.value))
    assert size is not None
    evaluate(run.folder, batch_size=int(size[1]))
    source, output = tmp_path / "mine.pt", tmp_path / "out.csv"
    with pytest.raises(TrainingError, match=r"predict with a .*\(--batch-size 20, it was 40"):
        predict(run.folder, source, output)
    assert not output.exists()
    assert predict(run.folder, source, output, batch_size=2) == 40


@pytest.mark.parametrize(
    ("device", "helps"),
    [("cpu", "with a machine with more"), ("cuda", "with --device cpu or a machine with")],
)
def test_one_graph_after_the_training(tmp_path: Path, device: str, helps: str) -> None:
    config = one_graph(tmp_path / "graph.npz")
    text = str(evaluation_too_large(config, device)("out of memory"))
    assert f"evaluate {helps}" in text
    assert "--batch-size" not in text
    assert f"predict {helps}" in str(prediction_too_large(1, device)("out of memory"))


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["fognn", *arguments])
    with pytest.raises(SystemExit):
        main()


def test_fognn_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path))

    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("fognn.report.data.read_molecules", full)
    run_main(monkeypatch, "data", "big.csv", "--draw", "0")
    assert capsys.readouterr().err == (
        "fognn: out of memory: big.csv is too large for this machine, name a file with fewer or "
        "smaller graphs\n"
    )
    monkeypatch.setattr("fognn.report.data.count", full)
    run_main(monkeypatch, "data", "cluster", "--draw", "0")
    assert "out of memory: read one split (--split test)" in capsys.readouterr().err
    run_main(monkeypatch, "data", "cluster", "--draw", "0", "--split", "test")
    assert "out of memory: this needs a machine with more memory" in capsys.readouterr().err
    # A command that has no remedy of its own.
    monkeypatch.setattr("fognn.report.tables.report_models", full)
    run_main(monkeypatch, "models")
    assert capsys.readouterr().err.startswith("fognn: out of memory: this needs a machine")


# Room for half a GiB beside what the imports and the data take.
PROGRAM = """
import resource, sys
from pathlib import Path
from fognn.training import Config, fit
from fognn.training.data import open_split
config = Config.read(Path(sys.argv[1]))
open_split(config, "train"), open_split(config, "val")
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**29,) * 2)
try:
    fit(config, sys.argv[2], quiet=True)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_a_limit_of_the_system(tmp_path: Path) -> None:
    config = tiny("gcn", model__channels=20_000, model__layers=1, training__epochs=1)
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "config.yaml"), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout.startswith("MemoryLimitError out of memory for a tensor of "), done.stderr
    assert re.search(r"train with (a smaller|fewer)", done.stdout)

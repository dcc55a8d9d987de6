"""What ``make demo`` runs, but for the training, which has tests of its own."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fognn

MakeRun = Callable[..., Path]
DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_demo(
    make_run: MakeRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[tuple[Any, ...]] = []
    tests = {"gcn": 53.89, "gcn+fog": 57.1}

    def train(data: str, model: str, **settings: Any) -> SimpleNamespace:
        folder = Path(settings.pop("folder"))
        asked.append((data, model, settings))
        if not folder.exists():  # as the trainer does: what is finished is taken as it is
            make_run(str(folder.relative_to(tmp_path)), model, [40.0, 40.5, 40.2], tests[model])
        return SimpleNamespace(folder=folder)

    monkeypatch.setattr(fognn, "train", train, raising=False)
    arguments = ["--output", str(tmp_path / "out"), "--epochs", "3", "--fraction", "0.02"]
    monkeypatch.setattr(sys, "argv", ["demo.py", *arguments])
    for _ in range(2):
        runpy.run_path(str(DEMO), run_name="__main__")
    # The two differ in FOG alone.
    rate = {"training.schedule": "step", "training.step": 1, "training.factor": 0.5}
    rate |= {"model.norm": "mean"}
    settings = {"seed": 0, "fraction": 0.02, "epochs": 3, "values": rate}
    assert asked == [("cluster", "gcn", settings), ("cluster", "gcn+fog", settings)] * 2
    report = tmp_path / "out" / "report.html"
    text = report.read_text(encoding="utf-8")
    assert "<h1>GCN and GCN+FOG on 2 % of CLUSTER</h1>" in text
    assert "gcn+fog ended 3.21 percentage points better than gcn" in text
    printed = capsys.readouterr().out
    assert report.as_uri() in printed
    assert "53.89" in printed
    assert "57.10" in printed


@pytest.mark.parametrize(("option", "value"), [("--fraction", "2"), ("--epochs", "0")])
def test_settings_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: str
) -> None:
    # Here the trainer is the real one.
    output = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["demo.py", "--output", str(output), option, value])
    with pytest.raises(SystemExit, match=f"demo: .*{option[2:]} must be .*, got {value}"):
        runpy.run_path(str(DEMO), run_name="__main__")
    assert not output.exists()

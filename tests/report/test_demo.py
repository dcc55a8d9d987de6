"""What ``make demo`` runs, except the training, which has tests of its own."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from run_folders import write_run

import fognn.training
from fognn.training import Config, Result
from fognn.training.config_section import flat

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
SCORES = {"gcn": (53.5, 54.0), "gcn+fog": (57.0, 57.4)}


def test_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []

    def fit(config: Config, folder: Path) -> Result:
        asked.append(flat(config.to_dict()))
        if not folder.exists():  # as the trainer does: a finished run is only read
            write_run(folder, config, SCORES[config.model.name][config.seed])
        return Result.read(folder)

    monkeypatch.setattr(fognn.training, "fit", fit)
    arguments = ["--output", str(tmp_path / "out"), "--epochs", "3", "--seeds", "2"]
    monkeypatch.setattr(sys, "argv", ["demo.py", *arguments])
    for _ in range(2):
        runpy.run_path(str(DEMO), run_name="__main__")
    assert [(own["model.name"], own["seed"]) for own in asked] == [
        *(("gcn", 0), ("gcn", 1), ("gcn+fog", 0), ("gcn+fog", 1)),
    ] * 2
    # The two differ in FOG alone, and in the width that makes up for its parameters.
    host, fog = asked[0], asked[2]
    different = {name for name in host | fog if host.get(name) != fog.get(name)}
    of_fog = {"model.h1", "model.h2", "model.fog_channels"}
    assert different == {"model.name", "model.channels", *of_fog}
    report = tmp_path / "out" / "report" / "index.html"
    text = report.read_text(encoding="utf-8")
    assert "<h1>gcn and gcn+fog on PATTERN</h1>" in text
    assert "gcn+fog is better than gcn: balanced accuracy 57.200 against 53.750 %" in text
    printed = capsys.readouterr().out
    assert report.as_uri() in printed
    assert "gcn+fog on PATTERN, seed 1" in printed


@pytest.mark.parametrize(
    ("option", "value"), [("--fraction", "2"), ("--epochs", "0"), ("--seeds", "0")]
)
def test_settings_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: str
) -> None:
    # Here the trainer is the real one.
    output = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["demo.py", "--output", str(output), option, value])
    got = "none" if option == "--seeds" else value
    with pytest.raises(SystemExit, match=rf"demo: .* must .*, got {got}"):
        runpy.run_path(str(DEMO), run_name="__main__")
    assert not output.exists()

"""The table of controls: rows, shared runs, the paired difference, and the site."""

import csv
import dataclasses
import io
import re
from importlib import import_module
from pathlib import Path

import pytest
import torch
from kept_runs import use_tiny_data
from ledger_entries import entry

from fognn.experiments import Row, config_of, get_row, rows
from fognn.experiments.comparison import compare
from fognn.experiments.kept import enter
from fognn.experiments.ledger import Ledger
from fognn.experiments.protocols import command_of, protocol
from fognn.experiments.rows import build, model_settings, name_of
from fognn.experiments.rows import _rows, rows_of
from fognn.experiments.tables import _known_runs, plan, run_folder, runs_of
from fognn.experiments.kept import verify
from fognn.models import TASKS, count_parameters, equal_size
from fognn.models.weights import read_weights
from fognn.report.measurements import read_measurements
from fognn.report.site import build_site
from fognn.report.site.pages import table_context
from fognn.report.tables import report_table
from fognn.training import fit

CONTROLS = rows_of("controls")
KRON = [row for row in CONTROLS if not row.reference]


def size(row: Row) -> int:
    with torch.device("meta"):
        return count_parameters(build(row))


def test_the_rows() -> None:
    names = [row.id.removeprefix("controls/") for row in CONTROLS]
    kinds = ("kron", "kron-mean", "kron-neighbours", "hadamard", "concat")
    hosts = ("wider", "deeper")
    assert names == [
        *(f"zinc-gcn-{name}" for name in (*kinds, "own", *hosts)),
        *(f"zinc-gin-{name}" for name in (*kinds, *hosts)),
        *(f"zinc-alone-{name}" for name in kinds),
        *("zinc-pna", "zinc-film", "zinc-gatv2"),
        *(f"{data}-gcn-{name}" for data in ("pattern", "cluster") for name in (*kinds, *hosts)),
    ]
    assert [row.id for row in KRON] == [row.id for row in CONTROLS if row.control == "kron"]
    assert all(row.fraction == (None if row.dataset == "ZINC" else 0.2) for row in CONTROLS)


@pytest.mark.parametrize("row", CONTROLS, ids=lambda row: row.id)
def test_a_control_differs_from_its_reference_in_the_network_only(row: Row) -> None:
    reference = get_row(row.reference or row.id)
    assert config_of(row).training == config_of(reference).training
    assert config_of(row).data == config_of(reference).data
    assert size(row) == row.params
    assert abs(size(row) - size(reference)) <= 0.01 * size(reference)
    settings = model_settings(reference) | {
        key: value for key, value in row.settings.items() if key == "degrees"
    }
    control = row.control or name_of(row)
    name, own = equal_size(control, name_of(reference), TASKS[row.dataset.lower()], **settings)
    mine = model_settings(row)
    assert (name, own | {"fog_kind": None}) == (name_of(row), mine | {"fog_kind": None})
    assert row.control == "kron" or mine.get("fog_kind") == own.get("fog_kind")


def test_the_kron_rows_are_rows_of_the_paper() -> None:
    for row in KRON:
        table = row.dataset.lower()
        (paper,) = rows(dataset=row.dataset, model=row.model, table={"zinc": 3}.get(table))
        assert size(row) == paper.params
        config = config_of(row).with_values({"data.fraction": 1.0})
        assert config == config_of(paper)
        assert (row.table, row.mean, row.sd) == (None, None, None)
    (run,) = plan("controls", ["zinc-gcn-kron"])
    assert [twin.table for twin in runs_of(run.config)] == ["zinc", "widths", "controls"]
    assert run.folder(Path("runs")) == Path("runs/zinc/gcn+fog-seed0")
    assert not run.keeps_weights, "they are kept for the table zinc"
    (run,) = plan("controls", ["zinc-gcn-concat"])
    assert run_folder(run.config) == Path("runs/controls/zinc-gcn-concat-seed0")
    assert run.label == "GCN+FOG, concat"
    assert run.keeps_weights
    (run,) = plan("controls", ["pattern-gcn-concat"])
    assert run.label == "GCN+FOG, concat, 20 % of PATTERN"


def test_names_and_commands() -> None:
    assert [run.name for run in plan("controls", ["*gin-w*"], 2)] == [
        "zinc-gin-wider-seed0", "zinc-gin-wider-seed1",
    ]  # fmt: skip
    (run,) = plan("controls", ["zinc-pna"])
    assert protocol("zinc", "pna") == run.config
    assert command_of(run.config) == "fognn train zinc pna --seed 0"
    (run,) = plan("controls", ["pattern-gcn-hadamard"])
    command = command_of(run.config)
    assert "--set data.fraction=0.2" in command
    assert run.is_own
    assert not run.keeps_weights, "trained on a fraction of the data"
    assert "--set model.fog_kind=hadamard" in command
    # A variant of the paper's rows is none of a control.
    assert not any(run.variant for run in plan("controls"))


def add(results: Path, name: str, figures: list[float], **values: object) -> None:
    ledger = Ledger(results / "controls.jsonl")
    for run, figure in zip(plan("controls", [name], len(figures), **values), figures, strict=True):
        ledger.add(entry(run, figure))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    add(tmp_path, "zinc-gcn-kron", [0.30, 0.32, 0.31])
    add(tmp_path, "zinc-gcn-concat", [0.34, 0.35, 0.36])
    add(tmp_path, "zinc-gcn-wider", [0.29])
    add(tmp_path, "zinc-pna", [0.28, 0.29])
    add(tmp_path, "zinc-gin-concat", [0.40])
    add(tmp_path, "pattern-gcn-kron", [85.0, 86.0])
    add(tmp_path, "pattern-gcn-concat", [84.0, 84.5])
    return tmp_path


def test_the_paired_difference_is_kron_minus_control(results: Path) -> None:
    entries = Ledger(results / "controls.jsonl").entries()
    lines = {line.row.removeprefix("controls/"): line for line in compare("controls", entries)}
    concat = lines["zinc-gcn-concat"].paired
    assert concat is not None
    assert (concat.host, concat.pairs, concat.over) == ("GCN+FOG, kron", 3, "seed")
    assert concat.difference == pytest.approx(-0.04)
    assert concat.interval is not None
    assert concat.interval[0] < -0.04 < concat.interval[1] < 0
    assert lines["zinc-gcn-wider"].paired.difference == pytest.approx(0.01)
    assert lines["zinc-gcn-wider"].paired.interval is None
    assert lines["zinc-pna"].paired.difference == pytest.approx(0.025)
    assert lines["pattern-gcn-concat"].paired.difference == pytest.approx(1.25)
    assert lines["zinc-gcn-kron"].paired is None
    assert lines["zinc-gin-concat"].paired is None, "its reference is not measured"


def test_a_changed_run_is_compared_with_the_same_change(results: Path) -> None:
    add(results, "zinc-gcn-concat", [0.5], epochs=3)
    lines = compare("controls", Ledger(results / "controls.jsonl").entries())
    (short,) = [line for line in lines if line.changed]
    assert short.paired is None
    add(results, "zinc-gcn-kron", [0.4], epochs=3)
    lines = compare("controls", Ledger(results / "controls.jsonl").entries())
    short = next(line for line in lines if line.changed and line.paper.reference)
    assert short.paired.difference == pytest.approx(-0.1)


def test_the_table(results: Path) -> None:
    text = report_table("controls", results, "markdown")
    zinc, pattern, cluster = text.split("\n\n**")
    assert zinc.startswith("**ZINC: MAE, lower is better; not in the paper.**")
    found = {
        cells[0]: cells[1:]
        for line in zinc.splitlines()
        if line.startswith("| ") and (cells := line.strip("| ").split(" | "))
    }
    assert found["network"][3] == "kron - control"
    assert found["GCN+FOG, concat"][0] == "102,977"
    assert found["GCN+FOG, concat"][3].startswith("-0.040 [-0.0")
    assert found["GCN+FOG, concat"][3].endswith("3 seeds")
    assert found["GCN, wider"][3] == "+0.010, 1 seed: no interval"
    assert found["GCN+FOG, kron"][3] == "–"
    assert found["GIN+FOG, concat"][3] == "no common run"
    notes = " ".join(text.split())
    assert "kron - control: mean difference over the runs that both have" in notes
    assert "quoted from the public benchmark" not in notes
    assert "first 20 % of each split" in " ".join(pattern.split())
    assert "first 20 %" not in " ".join(zinc.split())
    assert "CLUSTER" in cluster
    record = list(csv.DictReader(io.StringIO(report_table("controls", results, "csv"))))
    values = {row["network"]: row["kron_minus_control"] for row in record if row["data"] == "ZINC"}
    assert float(values["GCN+FOG, concat"]) == pytest.approx(-0.04)
    for form in ("text", "latex"):
        assert "GATv2" in report_table("controls", results, form)


def test_the_table_minus_a_control(results: Path) -> None:
    text = report_table("controls", results, minus="zinc-gcn-concat")
    found = {line.split("  ")[0]: line for line in text.partition("\n\nHere:")[0].splitlines()}
    assert "row - zinc-gcn-concat" in found["network"]
    assert "+0.040 [" not in text
    assert re.search(r" -0\.040 \[-0\.0\d\d, -0\.0\d\d\], 3 seeds ", found["GCN+FOG, kron"])
    assert re.search(r" – +\d+ ", found["GCN+FOG, concat"])  # the row itself, with its epochs
    assert "row - zinc-gcn-concat: mean difference" in text
    assert "GIN+FOG, concat 0.005 and 0.01" in " ".join(text.split())
    assert "PATTERN" in text
    assert text.count("row - ") == 2
    csv = report_table("controls", results, "csv", minus="zinc-gcn-concat")
    assert ",row_minus_zinc-gcn-concat,low,high," in csv.splitlines()[0]


def test_the_site(results: Path, tmp_path: Path) -> None:
    add(results, "zinc-gcn-hadamard", [0.20, 0.23, 0.22])
    context = table_context("controls", read_measurements(results))
    assert context["summary"].endswith(
        "FOG had a better result than 2 of 5 controls, and a worse one than 3. A 95 % interval "
        "over three seeds or more excludes 0 for 1 of the better results and for 1 of the worse "
        "ones."
    )
    assert "kron − control" in context["how"].replace("\u00a0", " ")
    (zinc, *_) = context["datasets"]
    assert "kron\u00a0−\u00a0control" in zinc["header"]
    assert [figure.name for figure in zinc["figures"]] == ["results-0", "effect-0"]
    assert all(figure.wide for figure in zinc["figures"])
    build_site(results, tmp_path / "site")
    assert "GCN+FOG, concat" in (tmp_path / "site" / "controls.html").read_text()


def test_a_run_is_entered_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_data(monkeypatch)
    small = tuple(
        dataclasses.replace(row, epochs=2) if row in CONTROLS else row
        for row in _rows("extra_rows")
    )
    # fognn.experiments has a function of this name
    module = import_module("fognn.experiments.rows")
    monkeypatch.setattr(module, "_rows", lambda name: small if "own" in name else _rows(name))
    monkeypatch.setattr("fognn.experiments.tables._known_runs", _known_runs.__wrapped__)
    monkeypatch.chdir(tmp_path)
    names = ["zinc-gcn-kron", "zinc-gcn-concat", "zinc-pna"]
    for run in plan("controls", names, values={"machine.threads": 1}):
        folder = run.folder(Path("runs"))
        fit(run.config, folder, quiet=True)
        assert enter(folder, "results") == [run.key]
    assert [check.outcome for check in verify(["controls"]).checks()] == ["ok"] * 3
    kept = read_weights(Path("weights/controls/zinc-gcn-concat.safetensors"))
    assert kept.config["model"]["fog_kind"] == "concat"
    assert "no interval" in report_table("controls", Path("results"))

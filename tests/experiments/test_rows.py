"""The rows of the paper and of our own, and their networks."""

import csv
from pathlib import Path

import pytest
import torch

from fognn.experiments import Row, build, config_of, extra_rows, get_row, rows
from fognn.experiments.rows import model_settings, name_of, rows_of
from fognn.experiments.tables import TABLES, plan, run_folder, runs_of
from fognn.models import TASKS, count_parameters, create_model, equal_size
from fognn.nn import FOG, GATConv, GatedGCNConv, GCNConv, SAGEConv
from fognn.training.data import task_of
from fognn.training.networks import untrained_model

ROWS = rows()
CONTROLS = rows_of("controls")
IMAGES = [row for row in extra_rows() if row.few_shot]


def size(row: Row) -> int:
    with torch.device("meta"):
        net = build(row)
    return count_parameters(net.gnn if row.few_shot else net)  # type: ignore[arg-type]


def test_there_are_72_rows() -> None:
    assert [sum(row.table == t for row in ROWS) for t in range(1, 8)] == [11, 11, 13, 13, 6, 8, 10]
    assert len({row.id for row in [*ROWS, *extra_rows()]}) == 72 + len(extra_rows())
    rows().clear()
    assert len(rows()) == 72


def test_rows_can_be_picked() -> None:
    (row,) = rows(table=3, model="gcn+fog")
    assert (row.dataset, row.params, row.mean, row.sd) == ("ZINC", 102809, 0.307, 0.013)
    assert (row.h1, row.h2, row.p, row.q, row.channels) == (12, 6, 79, 79, (158,))
    assert len(rows(dataset="imdb-multi")) == 5
    with pytest.raises(ValueError, match=r"rows: dataset must be one of PATTERN, .*'mnist'"):
        rows(dataset="mnist")
    with pytest.raises(ValueError, match="'zinc/gnc'"):
        get_row("zinc/gnc")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_network_of_a_row(row: Row) -> None:
    """The printed number of parameters and the row's settings, by any of its names."""
    assert size(row) == row.params
    net = build(row)
    fogs = [module for module in net.modules() if isinstance(module, FOG)]
    assert bool(fogs) == ("FOG" in row.model)
    assert {fog.act_first for fog in fogs} <= {True}, "the paper's form: ReLU before batch norm"
    if row.few_shot:
        assert tuple(m.in_channels for m in net.gnn.layers) == row.channels[:-1]  # type: ignore
        return
    assert {(fog.h1, fog.h2, fog.out_channels) for fog in fogs} <= {(row.h1, row.h2, row.p)}
    assert len(net.blocks) == row.layers  # type: ignore[arg-type]
    heads = tuple(m.heads for m in net.modules() if isinstance(m, GATConv))
    assert heads == (row.heads or ())
    norms = {m.norm for m in net.modules() if isinstance(m, GCNConv)}
    assert norms == {"GCN": {"mean"}, "GCN+FOG": {"sym"}}.get(row.model, set())
    # create_model, the row, and the run of ``fognn train`` build the same.
    config = config_of(row)
    trained = untrained_model(config, task_of(config.data))
    named = create_model(config.model.name, task_of(config.data), **config.model.settings)
    assert str(named) == str(net) == str(trained)


def test_variants_of_the_paper() -> None:
    (gcn,) = rows(table=3, model="GCN+FOG")
    (sage,) = rows(table=3, model="GraphSAGE")
    (gated,) = rows(table=3, model="GatedGCN-E")
    for net, kind, name, value in (
        (build(gcn, norm="mean"), GCNConv, "norm", "mean"),
        (build(sage, aggr="mean"), SAGEConv, "aggr", "mean"),
        (build(gated, gate="after"), GatedGCNConv, "gate", "after"),
    ):
        assert {getattr(m, name) for m in net.modules() if isinstance(m, kind)} == {value}
    assert count_parameters(build(sage, benchmark=True)) == sage.params
    with pytest.raises(ValueError, match="aggr"):
        build(gcn, aggr="mean")


@pytest.mark.parametrize("row", CONTROLS, ids=lambda row: row.id)
def test_a_control_differs_from_its_reference_in_the_network_only(row: Row) -> None:
    reference = get_row(row.reference or row.id)
    assert config_of(row).training == config_of(reference).training
    assert config_of(row).data == config_of(reference).data
    assert size(row) == row.params
    assert abs(size(row) - size(reference)) <= 0.01 * size(reference)
    degrees = {key: value for key, value in row.settings.items() if key == "degrees"}
    name, own = equal_size(
        row.control or name_of(row),
        name_of(reference),
        TASKS[row.dataset.lower()],
        **model_settings(reference) | degrees,
    )
    mine = model_settings(row)
    assert (name, own | {"fog_kind": None}) == (name_of(row), mine | {"fog_kind": None})


def test_the_references_are_rows_of_the_paper() -> None:
    for row in CONTROLS:
        if not row.reference:
            (paper,) = rows(dataset=row.dataset, model=row.model, table=TABLES[
                row.dataset.lower()
            ].number)  # fmt: skip
            assert config_of(row).with_values({"data.fraction": 1.0}) == config_of(paper)
    (run,) = plan("controls", ["zinc-gcn-kron"])
    assert [twin.table for twin in runs_of(run.config)] == ["zinc", "widths", "controls"]
    assert run.folder(Path("runs")) == Path("runs/zinc/gcn+fog-seed0")
    assert not run.keeps_weights, "they are kept for the table zinc"
    (run,) = plan("controls", ["pattern-gcn-concat"])
    assert (run.label, run.keeps_weights) == ("GCN+FOG, concat, 20 % of PATTERN", False)
    (run,) = plan("controls", ["zinc-gcn-concat"])
    assert run_folder(run.config) == Path("runs/controls/zinc-gcn-concat-seed0")
    assert run.keeps_weights


@pytest.mark.parametrize("row", IMAGES, ids=lambda row: row.id)
def test_our_own_images_have_the_papers_network(row: Row) -> None:
    shots = row.dataset.rpartition("-")[2]
    (paper,) = rows(dataset=f"miniImageNet-5way-{shots}", model=row.model)
    assert size(row) == paper.params
    config, training = config_of(row), config_of(row).training
    assert (config.data.n_query, config.data.episodes) == (row.n_query, row.episodes) == (5, 600)
    steps = (training.epochs * training.steps, training.step * training.steps)
    assert (training.steps, *steps) == (row.steps, row.epochs, row.step)
    assert training.batch_size * row.n_query == paper.batch_size  # queries


def test_equal_to_the_sheet_that_they_came_from(real_data: Path) -> None:
    """The paper's sheet lies beside the real data, not in the project."""
    sheet = real_data.parent / "paper" / "rows.csv"
    if not sheet.exists():
        pytest.skip(f"needs {sheet}")
    names = {"cp": "p", "cq": "q", "paper_mean": "mean", "paper_sd": "sd"}
    lines = list(csv.DictReader(sheet.open(encoding="utf-8")))
    for line, row in zip(lines, ROWS, strict=True):
        table, _, title = line.pop("table").partition(" ")
        assert (int(table), title) == (row.table, row.title)
        for key, text in line.items():
            value = getattr(row, names.get(key, key))
            if isinstance(value, tuple):
                assert tuple(int(n) for n in text.split(",")) == value
            elif isinstance(value, int | float) and not (key == "dropout" and text == ""):
                assert float(text) == value, (key, row)
            elif key not in ("dropout", "note"):
                assert text == (value or ""), (key, row)

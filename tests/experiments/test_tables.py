import json
from pathlib import Path

import pytest

from fognn.experiments import config_of, protocol, rows
from fognn.experiments.rows import get_row, rows_of
from fognn.experiments.tables import TABLES, plan, run_folder
from fognn.models import count_parameters
from fognn.training.data import task_of
from fognn.training.networks import untrained_model


def slugs(table: str, **options: object) -> list[str]:
    return [run.slug for run in plan(table, **options)]  # type: ignore[arg-type]


def test_the_papers_tables() -> None:
    numbers = {name: table.number for name, table in TABLES.items() if table.number is not None}
    assert numbers == {
        "pattern": 1, "cluster": 2, "zinc": 3, "tsp": 4, "few-shot": 5, "widths": 6, "limits": 7,
    }  # fmt: skip
    for name, number in numbers.items():
        assert rows_of(name) == rows(table=number)
    runs = [run for name in numbers for run in plan(name, ours=False)]
    # Each of the 72 rows is one run, by its own protocol.
    assert sorted(run.row for run in runs) == sorted(row.id for row in rows())
    for run in runs:
        assert run.config == config_of(get_row(run.row)) == run.protocol


@pytest.mark.parametrize("table", TABLES)
def test_no_two_runs_have_one_name(table: str) -> None:
    runs = plan(table, seeds=2)
    for name in ("key", "label"):
        seen = [getattr(run, name) for run in runs]
        assert len(set(seen)) == len(seen) // (2 if name == "label" else 1)
    folders = {run.folder(Path("runs")) for run in runs}
    assert len(folders) == len(runs)
    assert folders == {run_folder(run.config) for run in runs}
    # Names that are safe on any disk and in any shell.
    assert all(set(run.slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789+-") for run in runs)


def test_variants_are_behind_their_rows() -> None:
    assert slugs("zinc", models=["gcn*", "graphsage*", "gatedgcn-e*"]) == [
        "gcn", "gcn-sym", "gcn+fog", "gcn+fog-mean",
        "gatedgcn-e", "gatedgcn-e-after", "gatedgcn-e+fog", "gatedgcn-e+fog-after",
        "graphsage", "graphsage-mean", "graphsage+fog", "graphsage+fog-mean",
    ]  # fmt: skip
    assert (len(plan("zinc")), len(plan("zinc", ours=False))) == (13 + 8, 13)
    # The host has no sum of FOG over neighbours, which can be read in two ways.
    assert slugs("few-shot", models=["*1shot*"]) == [
        "fog-1shot", "fog-1shot-all", "gnn-1shot", "gnn+fog-1shot", "gnn+fog-1shot-all",
    ]  # fmt: skip
    for table in ("widths", "controls", "omniglot"):  # no host in the table, or our own rows
        assert not any(run.variant for run in plan(table))
    first, *_ = plan("zinc", ["gcn+fog-mean"], [3])
    assert (first.key, first.label) == ("zinc/gcn+fog-mean-seed3", "GCN+FOG (norm=mean)")
    for run in plan("zinc"):
        found = count_parameters(untrained_model(run.config, task_of(run.config.data)))
        # The equation's GraphSAGE has no Linear before its mean.
        assert (
            found <= run.paper.params if run.variant == "aggr=mean" else found == run.paper.params
        )
        name, _, value = run.variant.partition("=")
        assert not name or run.config.model.settings[name] == value


def test_what_differs_from_the_protocol_has_a_digest() -> None:
    plain, *_ = plan("zinc", ["gcn"])
    small, *_ = plan("zinc", ["gcn"], fraction=0.1, epochs=20)
    assert small.key == f"zinc/gcn-seed0-{small.config.digest()}"
    assert (small.config.data.fraction, small.config.training.epochs) == (0.1, 20)
    assert small.protocol == plain.config
    assert plain.follows_protocol
    assert not small.follows_protocol
    # Where it runs, and a value that is the row's own, do not make it another run.
    here, *_ = plan("zinc", ["gcn"], values={"machine.threads": 1, "data.folder": "x"})
    same, *_ = plan("zinc", ["gcn"], fraction=1.0, values={"training.lr": 1e-3})
    assert here.key == same.key == plain.key == "zinc/gcn-seed0"
    configs = [protocol("zinc", "gcn", 0, {"training.lr": lr}) for lr in (0.5, 0.25)]
    configs += [protocol("imdb-multi", "gin", 0, {"data.fold": fold}) for fold in (1, 2)]
    runs = {json.dumps(config.identity(), sort_keys=True): run_folder(config) for config in configs}
    assert len(set(runs.values())) == 4


def test_models_and_seeds() -> None:
    # In the table's order, each once, for any order and overlap of the names.
    assert slugs("zinc", models=["GIN", "fog", "g?n"]) == ["fog", "gcn", "gin"]
    # The name of a network selects all its rows of the paper.
    assert len(plan("widths", ["gcn+fog"])) == 4
    names = [run.key for run in plan("zinc", ["gcn", "fog"], 2, ours=False)]
    assert names == ["zinc/fog-seed0", "zinc/gcn-seed0", "zinc/fog-seed1", "zinc/gcn-seed1"]
    assert [run.config.seed for run in plan("zinc", ["gcn"], [7, 3])] == [7, 3]


def test_errors_name_the_argument() -> None:
    for options, named in (
        ({"table": "zink"}, "table 'zink'"),
        ({"models": ["gcn", "gcn+fug"]}, r"models 'gcn\+fug'"),
        ({"models": ["gcn-sym"], "ours": False}, "'gcn-sym'"),
        ({"seeds": 0}, "seeds"),
        ({"values": {"seed": 3}}, "'seed'"),
        ({"values": {"training.rl": 3}}, "training.rl"),
    ):
        with pytest.raises(ValueError, match=named):
            plan(**{"table": "zinc"} | options)  # type: ignore[arg-type]

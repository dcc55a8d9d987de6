import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fognn.experiments import config_of, rows
from fognn.experiments.rows import get_row, rows_of
from fognn.experiments.tables import TABLES, TableRun, check_table, plan
from fognn.models import count_parameters
from fognn.training.checkpoint import untrained_model
from fognn.training.data import task_of


def slugs(table: str, **options: object) -> list[str]:
    return [run.slug for run in plan(table, **options)]  # type: ignore[arg-type]


def test_the_papers_tables() -> None:
    numbers = {name: table.number for name, table in TABLES.items() if table.number is not None}
    assert numbers == {
        "pattern": 1, "cluster": 2, "zinc": 3, "tsp": 4, "few-shot": 5, "widths": 6, "limits": 7,
    }  # fmt: skip
    assert list(TABLES) == [*numbers, "omniglot", "cifar-fs", "controls", "modern"], (
        "our own come last"
    )
    for name, table in TABLES.items():
        assert any(row.title.split()[0] in table.title for row in rows_of(name))
    for name, number in numbers.items():
        assert rows_of(name) == rows(table=number)
    runs = [run for name in numbers for run in plan(name, ours=False)]
    # Each of the 72 rows is one run, by its own protocol.
    assert sorted(run.row for run in runs) == sorted(row.id for row in rows())
    for run in runs:
        assert run.variant == ""
        assert run.config == config_of(get_row(run.row)) == run.own
        assert run.paper is get_row(run.row)
        assert TABLES[run.table].number == run.paper.table


@pytest.mark.parametrize("table", TABLES)
def test_no_two_runs_have_one_name(table: str) -> None:
    runs = plan(table, seeds=2)
    for name in ("key", "name", "label"):
        seen = [getattr(run, name) for run in runs]
        assert len(set(seen)) == len(seen) // (2 if name == "label" else 1)
    folders = {run.folder(Path("runs")) for run in runs}
    assert len(folders) == len(runs)
    # Names that are safe on any disk and in any shell.
    assert all(set(run.slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789+-") for run in runs)


def test_names() -> None:
    first, *_ = plan("zinc", ["gcn+fog-mean"], [3])
    assert (first.slug, first.name) == ("gcn+fog-mean", "gcn+fog-mean-seed3")
    assert first.key == "zinc/gcn+fog-mean-seed3"
    assert first.folder(Path("runs")) == Path("runs/zinc/gcn+fog-mean-seed3")
    assert (first.label, first.variant) == ("GCN+FOG (norm=mean)", "norm=mean")
    assert slugs("few-shot", ours=False)[:2] == ["fog-1shot", "gnn-1shot"]
    assert slugs("widths")[:2] == ["gcn+fog-c158", "gcn+fog-c138"]
    assert slugs("limits", models=["gin*"]) == [
        "gin-zinc-without-node-features", "gin+fog-zinc-without-node-features",
        "gin-imdb-multi", "gin+fog-imdb-multi",
    ]  # fmt: skip
    labels = [run.label for name in ("few-shot", "widths", "limits") for run in plan(name)]
    assert {"GNN+FOG, 5-shot", "GCN+FOG, C=76", "GIN, IMDB-MULTI"} <= set(labels)


def test_ours_stand_behind_their_rows() -> None:
    assert slugs("zinc", models=["gcn*", "graphsage*", "gatedgcn-e*"]) == [
        "gcn", "gcn-sym", "gcn+fog", "gcn+fog-mean",
        "gatedgcn-e", "gatedgcn-e-after", "gatedgcn-e+fog", "gatedgcn-e+fog-after",
        "graphsage", "graphsage-mean", "graphsage+fog", "graphsage+fog-mean",
    ]  # fmt: skip
    assert len(plan("zinc")) == 13 + 8
    assert len(plan("zinc", ours=False)) == 13
    # Without a host in the table there is nothing to compare a variant with.
    assert not [run for run in plan("widths") if run.variant]
    # The host has no sum of FOG over neighbours, which can be read in two ways.
    assert slugs("few-shot", models=["*1shot*"]) == [
        "fog-1shot", "fog-1shot-all", "gnn-1shot", "gnn+fog-1shot", "gnn+fog-1shot-all",
    ]  # fmt: skip
    assert len(plan("few-shot")) == 6 + 4
    assert len(plan("few-shot", ours=False)) == 6
    both = plan("few-shot", ["gnn+fog-5shot*"])
    assert [run.config.model.settings.get("neighbours") for run in both] == [None, "all"]
    assert [layer.neighbours for layer in untrained_model(both[1].config, None).gnn.layers] == [
        "all", "all",
    ]  # fmt: skip
    settings = {run.variant: run.config.model.settings for run in plan("zinc")}
    assert settings["norm=sym"]["norm"] == "sym"
    assert settings["norm=mean"]["norm"] == "mean"
    assert settings["aggr=mean"]["aggr"] == "mean"
    assert settings["gate=after"]["gate"] == "after"


@pytest.mark.parametrize("table", ["zinc", "limits"])
def test_ours_are_networks(table: str) -> None:
    for run in plan(table):
        found = count_parameters(untrained_model(run.config, task_of(run.config.data)))
        # The equation's GraphSAGE has no Linear before its mean.
        if run.variant == "aggr=mean":
            assert found < run.paper.params
        else:
            assert found == run.paper.params


def test_seeds_first_a_whole_table() -> None:
    runs = plan("zinc", ["gcn", "fog"], 2)
    assert [run.name for run in runs] == ["fog-seed0", "gcn-seed0", "fog-seed1", "gcn-seed1"]
    assert [run.config.seed for run in plan("zinc", ["gcn"], [7, 3])] == [7, 3]


def test_what_differs_from_the_protocol_has_a_digest() -> None:
    plain, *_ = plan("zinc", ["gcn"])
    small, *_ = plan("zinc", ["gcn"], fraction=0.1, epochs=20)
    assert small.name == f"gcn-seed0-{small.config.digest()}"
    assert (small.config.data.fraction, small.config.training.epochs) == (0.1, 20)
    assert small.own == plain.config
    # Where it runs, and a value that is the row's own, do not make it another run.
    here, *_ = plan("zinc", ["gcn"], values={"machine.threads": 1, "data.folder": "x"})
    same, *_ = plan("zinc", ["gcn"], fraction=1.0, values={"training.lr": 1e-3})
    assert here.name == same.name == plain.name == "gcn-seed0"
    assert here.config.machine.threads == 1
    other, *_ = plan("zinc", ["gcn"], values={"training.lr": 1e-2})
    assert len({run.key for run in (plain, small, other)}) == 3


def test_models() -> None:
    assert slugs("zinc", models=["GCN"]) == ["gcn"]
    # The paper's rows of GCN have a norm, too, and may be called by it.
    assert slugs("zinc", models=["*-sym"]) == ["gcn-sym", "gcn+fog"]
    assert slugs("zinc", models=["*-mean"]) == [
        "gcn", "gcn+fog-mean", "graphsage-mean", "graphsage+fog-mean",
    ]  # fmt: skip
    # In the table's order, each once, for any order and overlap of the names.
    assert slugs("zinc", models=["gin", "fog", "g?n"]) == ["fog", "gcn", "gin"]
    # The name of a network stands for all its rows of the paper.
    assert len(plan("widths", ["gcn+fog"])) == 4
    assert slugs("widths", models=["gcn+fog-c76"]) == ["gcn+fog-c76"]
    assert slugs("limits", models=["gatedgcn"]) == [
        "gatedgcn-zinc-without-node-features", "gatedgcn-imdb-multi",
    ]  # fmt: skip


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"plan: table .*'zink'; .*'zinc'\?"):
        plan("zink")
    with pytest.raises(ValueError, match=r"fetch: table must be .*got None"):
        check_table("fetch", None)
    with pytest.raises(ValueError, match=r"models must .*'gcn\+fug'; did you mean gcn\+fog"):
        plan("zinc", ["gcn", "gcn+fug"])
    with pytest.raises(ValueError, match=r"models must be rows of the table, got '\?'; known: fog"):
        plan("zinc", ["?"])
    with pytest.raises(ValueError, match="got 'gcn-sym'"):
        plan("zinc", ["gcn-sym"], ours=False)
    with pytest.raises(ValueError, match="models must be a list of names, got 'gcn'"):
        plan("zinc", "gcn")
    with pytest.raises(ValueError, match=r"models must be a list of names, got \[\]"):
        plan("zinc", [])
    with pytest.raises(ValueError, match="values must not have 'seed'"):
        plan("zinc", values={"seed": 3})
    with pytest.raises(ValueError, match=r"values must not have 'data.fraction'"):
        plan("zinc", fraction=0.5, values={"data.fraction": 0.1})
    with pytest.raises(ValueError, match=r"data\.fraction .*above 0"):
        plan("zinc", fraction=0.0)
    with pytest.raises(ValueError, match=r"training.epochs must be an int of at least 1"):
        plan("zinc", epochs=0)
    with pytest.raises(ValueError, match=r"unknown setting 'training.rate'"):
        plan("zinc", values={"training.rate": 1})


@pytest.mark.parametrize("seeds", [0, -1, True, 1.5, "3", [], [-1], [1, 1], [True], ["0"], None])
def test_bad_seeds(seeds: object) -> None:
    with pytest.raises(ValueError, match="plan: seeds must"):
        plan("zinc", seeds=seeds)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4, unique=True))
def test_any_seeds(seeds: list[int]) -> None:
    assert [run.config.seed for run in plan("zinc", ["gcn"], seeds)] == seeds


def test_a_run_travels_between_processes() -> None:
    run = plan("limits", fraction=0.5)[-1]
    again = pickle.loads(pickle.dumps(run))
    assert isinstance(again, TableRun)
    assert (again, again.key) == (run, run.key)


def test_a_run_that_no_table_has_now_keeps_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a variant of another version, in a line of the ledger."""
    (run,) = plan("zinc", ["gcn-sym"])
    assert run.keeps_weights
    monkeypatch.setattr("fognn.experiments.tables.runs_of", lambda config: [])
    assert run.keeps_weights

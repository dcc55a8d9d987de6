import dataclasses
import statistics
from pathlib import Path
from typing import Any

import pytest
from ledger_entries import entry, fold_entry

from fognn.experiments.comparison import TableLine, compare
from fognn.experiments.ledger import Ledger, LedgerEntry, ledger_entry
from fognn.experiments.rows import rows, rows_of
from fognn.experiments.tables import TABLES, plan
from fognn.training import Result, fit


def runs(table: str, model: str, figures: list[float], **options: Any) -> list[LedgerEntry]:
    planned = plan(table, [model], len(figures), **options)
    return [entry(run, figure) for run, figure in zip(planned, figures, strict=True)]


def line_of(lines: list[TableLine], label: str) -> TableLine:
    found = [line for line in lines if line.label == label]
    assert len(found) == 1, [line.label for line in lines]
    return found[0]


@pytest.mark.parametrize("table", TABLES)
def test_without_runs_it_is_the_papers_table(table: str) -> None:
    lines = compare(table, [])
    assert [line.paper for line in lines] == rows_of(table)
    for line in lines:
        assert (line.paper_mean, line.paper_sd) == (line.paper.mean, line.paper.sd)
        assert (line.mean, line.sd, line.paired, line.ours) == (None, None, None, False)


def test_mean_and_spread_over_seeds() -> None:
    values = [0.46, 0.47, 0.45]
    line = line_of(compare("zinc", runs("zinc", "gcn", values)[::-1]), "GCN")
    assert line.seeds == (0, 1, 2)
    assert line.values == tuple(values)
    assert line.mean == pytest.approx(0.46)
    assert line.sd == pytest.approx(0.01)
    assert line.difference == pytest.approx(0.46 - 0.459)
    assert line.off == ()
    alone = line_of(compare("zinc", runs("zinc", "gcn", [0.5])), "GCN")
    assert (alone.mean, alone.sd, alone.off) == (0.5, None, ("3 s.d.", "5 %"))


@pytest.mark.parametrize(
    ("at", "over", "wanted"),
    [("last", "batches", 0.5), ("last", "items", 0.501), ("best", "batches", 0.502),
     ("best", "items", 0.503)],
)  # fmt: skip
def test_which_figure(at: str, over: str, wanted: float) -> None:
    entries = runs("zinc", "gcn", [0.5]) + runs("zinc", "gcn+fog", [0.25])
    entries[1].result["test"]["best"]["items"] = 0.0
    lines = compare("zinc", entries, at, over)
    assert line_of(lines, "GCN").mean == wanted
    paired = line_of(lines, "GCN+FOG").paired
    assert paired is not None
    fog = 0.0 if (at, over) == ("best", "items") else wanted - 0.25
    assert paired.difference == pytest.approx(fog - wanted)


def test_fog_and_host() -> None:
    entries = [
        *runs("zinc", "gcn", [0.46, 0.44]),
        *runs("zinc", "gcn+fog", [0.30, 0.32, 0.31]),
        *runs("zinc", "graphsage-mean", [0.42]),
        *runs("zinc", "graphsage+fog-mean", [0.35]),
        *runs("zinc", "gin+fog", [0.40]),
        *runs("zinc", "fog", [0.36]),
    ]
    lines = compare("zinc", entries)
    pairs = {line.label: line.paired for line in lines if line.entries}
    paired = {label: pair for label, pair in pairs.items() if pair}
    assert list(paired) == ["GCN+FOG", "GraphSAGE+FOG (aggr=mean)"]
    plain, mean = paired.values()
    assert (plain.host, plain.pairs) == ("GCN", 2)
    assert plain.difference == pytest.approx(-0.14)
    assert plain.interval is not None
    assert plain.interval == pytest.approx((-0.14 - 12.7062 * 0.02, -0.14 + 12.7062 * 0.02), 1e-4)
    # Each variant has its own host.
    assert (mean.host, mean.interval) == ("GraphSAGE (aggr=mean)", None)
    assert mean.difference == pytest.approx(-0.07)


def test_like_is_compared_with_like() -> None:
    models = {"gcn": [0.46], "gcn-sym": [0.42], "gcn+fog": [0.30], "gcn+fog-mean": [0.35]}
    entries = {model: runs("zinc", model, values) for model, values in models.items()}

    def hosts(*measured: str) -> dict[str, str]:
        lines = compare("zinc", [run for model in measured for run in entries[model]])
        return {line.label: line.paired.host for line in lines if line.paired}

    assert hosts(*models) == {"GCN+FOG": "GCN (norm=sym)", "GCN+FOG (norm=mean)": "GCN"}
    # The paper's GCN is the mean one, its GCN+FOG is not: as in its table, if there is no other.
    assert hosts("gcn", "gcn+fog") == {"GCN+FOG": "GCN"}
    assert hosts("gcn-sym", "gcn+fog-mean") == {}


def test_minus_a_row() -> None:
    entries = runs("zinc", "gcn", [0.4, 0.5, 0.6]) + runs("zinc", "gcn-sym", [0.3, 0.3, 0.3])
    entries += runs("zinc", "gin", [0.45]) + runs("zinc", "gcn", [0.1], values={"training.lr": 0.1})
    lines = compare("zinc", entries, minus="gcn")
    assert line_of(lines, "GCN").paired is None  # the row itself
    sym = line_of(lines, "GCN (norm=sym)").paired
    assert (sym.host, sym.pairs, sym.difference) == ("GCN", 3, pytest.approx(-0.2))
    half = 4.302653 * 0.1 / 3**0.5
    assert sym.interval == pytest.approx((-0.2 - half, -0.2 + half), abs=1e-6)
    assert line_of(lines, "GIN").paired.difference == pytest.approx(0.05)
    assert line_of(lines, "GCN [training.lr=0.1]").paired.difference == pytest.approx(-0.3)
    assert line_of(lines, "GAT").paired is None
    assert line_of(compare("zinc", entries, minus="GCN-sym"), "GCN").paired.difference > 0


def test_minus_is_of_one_dataset() -> None:
    entries = runs("controls", "zinc-gcn-wider", [0.3]) + runs("controls", "zinc-pna", [0.2])
    entries += runs("controls", "pattern-gcn-wider", [85.0])
    lines = compare("controls", entries, minus="zinc-gcn-wider")
    assert line_of(lines, "PNA").paired.difference == pytest.approx(-0.1)
    assert [line.label for line in lines if line.paired] == ["PNA"]


@pytest.mark.parametrize(
    ("minus", "message"),
    [
        ("gcm", "compare: minus must be rows of the table, got 'gcm'; did you mean gcn"),
        ("gcn*", r"compare: minus must be one row, got 'gcn\*', which are gcn, gcn-sym, gcn\+fog"),
        ("gat", "compare: minus must be a row with runs, got 'gat', which has none"),
        ("gcn-sym", "compare: minus must be a row with runs, got 'gcn-sym', which has none"),
    ],
)
def test_minus_must_be_one_measured_row(minus: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare("zinc", runs("zinc", "gcn", [0.4]), minus=minus)


def test_ours_have_no_printed_figure() -> None:
    lines = compare("zinc", runs("zinc", "gcn-sym", [0.4]))
    line = line_of(lines, "GCN (norm=sym)")
    assert line.ours
    assert (line.paper_mean, line.paper_sd, line.difference, line.off) == (None, None, None, ())
    labels = [line.label for line in lines]
    assert labels.index("GCN (norm=sym)") == labels.index("GCN") + 1
    # Only what was measured: the other variants are not the paper's to miss.
    assert len(lines) == 13 + 1


def test_runs_of_another_protocol_are_not_mixed() -> None:
    small = {"fraction": 0.1, "epochs": 20}
    entries = [
        *runs("zinc", "gcn", [0.5]),
        *runs("zinc", "gcn", [0.9, 0.8], **small),
        *runs("zinc", "gcn+fog", [0.7, 0.7], **small),
    ]
    lines = compare("zinc", entries)
    assert line_of(lines, "GCN").values == (0.5,)
    changed = "[data.fraction=0.1, training.epochs=20]"
    host = line_of(lines, f"GCN {changed}")
    assert host.ours
    assert host.values == (0.9, 0.8)
    assert host.changed == ("data.fraction=0.1", "training.epochs=20")
    assert (host.paper_mean, host.difference) == (None, None)
    fog = line_of(lines, f"GCN+FOG {changed}")
    assert fog.paired is not None
    assert (fog.paired.host, fog.paired.pairs) == (host.label, 2)
    assert line_of(lines, "GCN+FOG").paired is None


def test_where_it_ran_does_not_matter() -> None:
    values = {"machine.threads": 3, "data.folder": "/somewhere"}
    line = line_of(compare("zinc", runs("zinc", "gcn", [0.5], values=values)), "GCN")
    assert line.values == (0.5,)


def test_a_searched_rate_is_still_the_papers_row() -> None:
    searched = runs("zinc", "gcn+fog", [0.30], values={"training.lr": 5e-3})
    lines = compare("zinc", [*runs("zinc", "gcn", [0.5]), *searched])
    line = line_of(lines, "GCN+FOG [training.lr=0.005]")
    assert line.ours
    assert line.difference == pytest.approx(0.30 - 0.307)
    assert line.paired is not None
    assert (line.paired.host, line.paired.difference) == ("GCN", pytest.approx(-0.2))
    # The host with the same change goes before the host as printed.
    own = runs("zinc", "gcn", [0.6], values={"training.lr": 5e-3})
    lines = compare("zinc", [*runs("zinc", "gcn", [0.5]), *searched, *own])
    paired = line_of(lines, "GCN+FOG [training.lr=0.005]").paired
    assert paired is not None
    assert paired.host == "GCN [training.lr=0.005]"


def test_the_printed_figures_of_imdb_are_counts_of_graphs() -> None:
    # So they are averages over items, and not over batches of 128 and 22 graphs.
    for row in rows(dataset="IMDB-MULTI"):
        graphs = row.mean / 100 * 1500
        assert graphs == pytest.approx(round(graphs), abs=0.0076)


@pytest.mark.parametrize("at", ["last", "best"])
def test_folds(at: str) -> None:
    planned = plan("limits", ["gin*imdb*"])
    best = [48.0, 50.0, 46.0], [50.0, 52.0, 54.0]
    last = [44.0, 45.0, 46.0], [30.0, 40.0, 50.0]
    entries = [fold_entry(*each) for each in zip(planned, best, last, strict=True)]
    lines = compare("limits", entries, at, "batches")
    host, fog = line_of(lines, "GIN, IMDB-MULTI"), line_of(lines, "GIN+FOG, IMDB-MULTI")
    assert (host.mean, host.sd) == (48.0, entries[0].result["spread"]["best"]["items"])
    assert (host.held_out, host.held_out_sd) == (45.0, 1.0)
    assert (fog.mean, fog.sd) == (52.0, statistics.stdev(best[1]))
    assert (fog.held_out, fog.held_out_sd) == (40.0, 10.0)
    assert fog.difference == pytest.approx(52.0 - 47.933)
    assert fog.paired is not None
    assert (fog.paired.difference, fog.paired.note) == (pytest.approx(4.0), "3 folds")
    # The other dataset of the table has nothing to do with it.
    other = runs("limits", "gin-zinc-without-node-features", [1.3])
    found = line_of(compare("limits", [*entries, *other]), "GIN, ZINC without node features")
    assert (found.mean, found.held_out) == (1.3, None)


def test_folds_of_several_seeds() -> None:
    planned = plan("limits", ["gin-imdb-multi"], 2)
    entries = [
        fold_entry(planned[0], [48.0, 50.0], [44.0, 46.0]),
        fold_entry(planned[1], [40.0, 50.0], [30.0, 40.0]),
    ]
    line = line_of(compare("limits", entries), "GIN, IMDB-MULTI")
    assert (line.mean, line.held_out) == (47.0, 40.0)
    assert line.sd == pytest.approx((2**0.5 + 50**0.5) / 2)


def test_no_run_counts_twice() -> None:
    (own,) = runs("zinc", "gcn", [0.5])
    again = dataclasses.replace(own, key="zinc/gcn-seed0-again")
    with pytest.raises(ValueError, match=r"entries must not .*, got 'zinc/gcn-seed0' and"):
        compare("zinc", [own, again])


def test_lines_of_another_table() -> None:
    (own,) = runs("zinc", "gcn", [0.5])
    with pytest.raises(ValueError, match=r"entries must be of table 'tsp', got 'zinc/gcn-seed0'"):
        compare("tsp", [own])
    for row in (0, -1, 72):
        with pytest.raises(ValueError, match=f"of table 'zinc', row {row}"):
            compare("zinc", [dataclasses.replace(own, row=row)])


def test_a_config_that_cannot_be_read() -> None:
    (own,) = runs("zinc", "gcn", [0.5])
    with pytest.raises(ValueError, match=r"ledger line 'zinc/gcn-seed0': config: .*must be given"):
        compare("zinc", [dataclasses.replace(own, config={"model": {"name": "gcn"}})])


def test_an_older_config_lacks_what_came_later() -> None:
    (own,) = runs("zinc", "gcn", [0.5])
    del own.config["data"]["skip_bad"], own.config["precision"]
    assert line_of(compare("zinc", [own]), "GCN").values == (0.5,)


def test_a_variant_that_is_not_planned() -> None:
    (own,) = runs("zinc", "gin", [0.5])
    config = own.config | {"model": own.config["model"] | {"norm": "layer"}}
    later = dataclasses.replace(own, variant="norm=layer", config=config)
    lines = compare("zinc", [*runs("zinc", "gin+fog", [0.4]), later])
    assert [line.label for line in lines if line.entries] == ["GIN (norm=layer)", "GIN+FOG"]


@pytest.mark.parametrize(
    ("options", "name"),
    [({"at": "first"}, "at"), ({"over": "epochs"}, "over"), ({"table": "zink"}, "table")],
)
def test_errors_name_the_argument(options: dict[str, str], name: str) -> None:
    with pytest.raises(ValueError, match=f"compare: {name} must be "):
        compare(**{"table": "zinc", "entries": [], **options})  # type: ignore[arg-type]


def test_real_runs_of_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """From training to the comparison, with nothing in between replaced."""
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    values = {"training.batch_size": 4, "machine.threads": 1}
    ledger = Ledger(tmp_path / "cluster.jsonl")
    found = {}
    for run in plan("cluster", ["gin", "gin+fog"], 2, 0.0008, 1, values=values):
        result = fit(run.config, run.folder(tmp_path), quiet=True)
        assert isinstance(result, Result)
        assert result.test is not None
        found[run.paper.model, run.config.seed] = result.test["best"]["items"]
        ledger.add(ledger_entry(run, run.folder(tmp_path)))
    lines = [line for line in compare("cluster", ledger.entries(), "best", "items") if line.entries]
    assert [line.paper.model for line in lines] == ["GIN", "GIN+FOG"]
    for line in lines:
        assert line.values == (found[line.paper.model, 0], found[line.paper.model, 1])
        assert line.parameters == line.paper.params
    differences = [found["GIN+FOG", seed] - found["GIN", seed] for seed in (0, 1)]
    assert lines[1].paired is not None
    assert lines[1].paired.difference == pytest.approx(statistics.fmean(differences))

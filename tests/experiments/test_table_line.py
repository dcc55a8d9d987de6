from dataclasses import replace

import pytest
from ledger_entries import entry, fold_entry

from fognn.experiments.table_line import TableLine, mean_of
from fognn.experiments.tables import plan


def test_mean() -> None:
    assert mean_of([1.0, 2.0]) == 1.5
    assert mean_of([]) is None


def test_nothing_measured() -> None:
    line = TableLine("zinc", "zinc/gcn", "", "GCN", paper_mean=0.459, paper_sd=0.006)
    assert line.paper.model == "GCN"
    assert (line.seeds, line.folds, line.off, line.ours) == ((), 0, (), False)
    for name in ("mean", "sd", "difference", "parameters", "epochs", "seconds_per_epoch"):
        assert getattr(line, name) is None


def test_what_the_runs_say() -> None:
    one, two = plan("zinc", ["gcn"], 2)
    entries = (entry(one, 0.5), entry(two, 0.5, epochs=5, seconds_per_epoch=2.5))
    line = TableLine("zinc", "zinc/gcn", "", "GCN", (), entries)
    assert line.seeds == (0, 1)
    assert line.parameters == 103077
    assert (line.epochs, line.seconds_per_epoch) == (3.5, 2.0)
    imdb = plan("limits", ["gin-imdb-multi"])[0]
    folded = TableLine(
        "limits", imdb.row, "", "GIN", (), (fold_entry(imdb, [1.0, 2.0], [1.0, 2.0]),)
    )
    assert folded.folds == 2


def test_ours() -> None:
    assert TableLine("zinc", "zinc/gcn", "norm=sym", "").ours
    assert TableLine("zinc", "zinc/gcn", "", "", ("data.fraction=0.1",)).ours


@pytest.mark.parametrize(
    ("mean", "paper", "sd", "off"),
    [
        (0.475, 0.459, 0.006, ()),
        (0.443, 0.459, 0.006, ()),
        (0.480, 0.459, 0.006, ("3 s.d.",)),
        (0.438, 0.459, 0.006, ("3 s.d.",)),  # better than printed is off, too
        (0.500, 0.459, 0.006, ("3 s.d.", "5 %")),
        (0.330, 0.362, 0.016, ("5 %",)),
        (85.5, 85.663, 0.025, ("3 s.d.",)),
        (-1.0, 1.0, 0.1, ("3 s.d.", "5 %")),
    ],
)
def test_off(mean: float, paper: float, sd: float, off: tuple[str, ...]) -> None:
    line = TableLine("zinc", "zinc/gcn", "", "", mean=mean, paper_mean=paper, paper_sd=sd)
    assert line.difference == mean - paper
    assert line.off == off
    assert replace(line, changed=("data.fraction=0.1",)).off == ()

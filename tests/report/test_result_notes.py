import dataclasses
from typing import Any

import pytest
from ledger_entries import entry, fold_entry

from fognn.paper.comparison import TableLine, compare
from fognn.paper.ledger import LedgerEntry
from fognn.paper.tables import plan
from fognn.report.result_notes import commits_of, direction, metric_of, notes_of, numbers_of


def runs(table: str, model: str, count: int, **options: Any) -> list[LedgerEntry]:
    return [
        entry(run, 0.4 + 0.01 * k) for k, run in enumerate(plan(table, [model], count, **options))
    ]


def notes(entries: list[LedgerEntry], table: str = "zinc", hidden: int = 0, **figure: str) -> str:
    lines = lines_of(entries, table, **figure)
    at, over = figure.get("at", "last"), figure.get("over", "batches")
    return " ".join(notes_of(lines, at, over, hidden, numbers_of(lines)))


def lines_of(entries: list[LedgerEntry], table: str = "zinc", **figure: str) -> list[TableLine]:
    lines = compare(table, entries, **figure)
    data = {line.paper.dataset for line in lines if line.entries}
    return [line for line in lines if not data or line.paper.dataset in data]


@pytest.mark.parametrize(
    ("table", "name", "good"),
    [("zinc", "MAE", "lower"), ("tsp", "F1", "higher"), ("few-shot", "accuracy (%)", "higher"),
     ("pattern", "balanced accuracy (%)", "higher")],
)  # fmt: skip
def test_metric(table: str, name: str, good: str) -> None:
    lines = compare(table, [])
    assert metric_of(lines).axis == name
    assert direction(lines) == f"{good} is better"


def test_nothing_measured() -> None:
    assert notes([]) == "Nothing is measured yet: see fognn reproduce zinc --help."


def test_which_figure() -> None:
    text = notes(runs("zinc", "gin", 1))
    assert "on the test split at the last epoch, averaged over batches" in text
    text = notes(runs("zinc", "gin", 1), at="best", over="items")
    assert "at the epoch with the best validation metric, over all items at once" in text


def test_too_few_seeds_is_said() -> None:
    assert "Each row is of 1 seed: no s.d., no interval" in notes(runs("zinc", "gin", 1))
    text = notes(runs("zinc", "gin", 3))
    assert "Each row is of 3 seeds. ±: s.d. over seeds." in text
    assert "no interval" not in text
    text = notes(runs("zinc", "gin", 3) + runs("zinc", "gat", 1))
    assert "Rows are of 1 to 3 seeds." in text
    assert "One seed gives no s.d. and no interval." in text


def test_pairs() -> None:
    assert "FOG - host" not in notes(runs("zinc", "gin", 3))
    one = notes(runs("zinc", "gin", 1) + runs("zinc", "gin+fog", 1))
    assert "FOG - host: mean difference over the runs that both have." in one
    two = notes(runs("zinc", "gin", 2) + runs("zinc", "gin+fog", 2))
    assert "with a 95 % interval by Student's t." in two


def test_folds() -> None:
    planned = plan("limits", ["gin*imdb*"])
    text = notes([fold_entry(run, [40.0, 50.0], [30.0, 35.0]) for run in planned], "limits")
    assert "best epoch of their mean curve, over all items" in text
    assert "the figure is optimistic. Held out: at the last epoch" in text
    assert "on the test split" not in text
    assert "Each row is of 1 seed. ±: s.d. over 2 folds." in text
    assert "an interval over folds is too narrow" in text


def test_ours_and_missing() -> None:
    text = notes(runs("zinc", "gcn-sym", 1) + runs("zinc", "gin", 1, fraction=0.1))
    assert "†: ours" in text
    assert "[1]: data.fraction=0.1." in text
    assert "Not measured by the paper's protocol: FOG; GCN; GCN+FOG; GAT;" in text
    assert "figures of GCN are quoted, and those of the mean over neighbours" in text
    assert "GraphSAGE takes the maximum over neighbours" in text
    whole = [own for run in plan("zinc", ours=False) for own in [entry(run, run.paper.mean)]]
    text = notes(whole)
    assert "†" not in text
    assert "Not measured" not in text
    assert "!" not in text
    # No word about networks that the table does not have.
    assert "GraphSAGE" not in notes(runs("limits", "gin-imdb-multi", 1), "limits")


def test_off_is_explained() -> None:
    assert "!: more than 3 printed s.d., or 5 %, away" in notes(runs("zinc", "gcn+fog", 1))


def test_a_search() -> None:
    own = runs("zinc", "gin", 1)
    assert "Not shown: 11 runs that a search tried and did not pick." in notes(own, hidden=11)
    assert "Not shown" not in notes(own)


def test_few_shot_counts_more_parameters() -> None:
    text = notes(runs("few-shot", "gnn-1shot", 1), "few-shot")
    assert "the paper counts its graph part" in text


def test_where_it_comes_from() -> None:
    first, second = runs("zinc", "gin", 2)
    text = notes([first, second])
    assert text.endswith("Commit 01234567; CPU Abacus 3000, 1 thread a run.")
    changed = second.result | {"commit": "fedcba9876 with changes, 0011223344", "threads": 2}
    text = notes([first, dataclasses.replace(second, result=changed)])
    assert "Commit 01234567, fedcba98 with changes and 00112233; " in text
    assert text.endswith("CPU Abacus 3000, 1 thread a run; CPU Abacus 3000, 2 threads a run.")
    unknown = second.result | {"commit": None}
    assert "and not known" in notes([first, dataclasses.replace(second, result=unknown)])


def test_each_commit_is_named_once() -> None:
    made = ["0123456789", "0123456789, fedcba9876 with changes", "fedcba9876", None]
    found = commits_of({"commit": commit} for commit in made)
    assert found == ["01234567", "fedcba98 with changes", "fedcba98", "not known"]


def test_numbers() -> None:
    entries = [
        *runs("zinc", "gin", 1),
        *runs("zinc", "gin", 1, epochs=3),
        *runs("zinc", "gat", 1, epochs=3),
        *runs("zinc", "gat", 1, fraction=0.5),
    ]
    assert numbers_of(lines_of(entries)) == {
        ("data.fraction=0.5",): "[1]",
        ("training.epochs=3",): "[2]",
    }

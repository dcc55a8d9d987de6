"""Lines of the ledger of a comparison."""

import dataclasses
import json
from pathlib import Path

import pytest
from compared_runs import compared_entry

from fognn.experiments.compared import Compared, chosen_entries, display_name
from fognn.experiments.ledger import Ledger, LedgerEntry, ledger_of
from fognn.experiments.protocols import protocol
from fognn.experiments.search import choose, grid


def run(lr: float = 0.01, seed: int = 0, data: str = "zinc") -> Compared:
    config = protocol(data, "gin+fog", seed, {"lr": lr, "weight_decay": 0.0})
    return Compared("compare/zinc", "gin-5000", "fog", "GIN+FOG", config)


def test_keys() -> None:
    one, two = run(), run(0.001, 4)
    assert one.slug == two.slug
    assert one.key == f"compare/zinc/{one.slug}-lr0.01-seed0"
    assert two.key == f"compare/zinc/{one.slug}-lr0.001-seed4"
    assert one.search_key == two.search_key == f"compare/zinc/{one.slug}"
    assert one.folder(Path("runs")) == Path("runs/compare/zinc") / one.name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *(("gatedgcn-e+fog", "GatedGCN-E+FOG"), ("graphsage", "GraphSAGE"), ("fog", "FOG")),
        *(("mine", "mine"), ("mine+fog", "mine+FOG")),
    ],
)
def test_names(model: str, name: str) -> None:
    assert display_name(model) == name


def test_a_comparison_may_have_the_name_of_a_table(tmp_path: Path) -> None:
    entry = compared_entry(run(), 0.2, 0.3)
    ledger = ledger_of("compare/zinc", tmp_path)
    ledger.add(entry)
    assert ledger.path == tmp_path / "compare" / "zinc.jsonl"
    assert ledger.entries() == [entry]
    # An older line has no memory.
    del entry.result["peak_memory"]
    ledger.add(entry)
    assert ledger.entries() == [entry]
    with pytest.warns(UserWarning, match=r"table must be 'zinc', got 'compare/zinc'"):
        assert Ledger(ledger.path).entries() == []  # as if it were the ledger of the table


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("key", "compare/zinc/../x", "key must be compare/zinc/ and a name"),
        ("key", "compare/tsp/x", "key must be compare/zinc/ and a name"),
        ("table", "compare/../zinc", r"table must be 'compare/zinc'"),
        ("table", "zinc", r"table must be 'compare/zinc'"),
        ("variant", "sym", "variant must be empty or 'fog', got 'sym'"),
    ],
)
def test_lines_that_cannot_be(tmp_path: Path, name: str, value: str, match: str) -> None:
    good = compared_entry(run(), 0.2, 0.3)
    bad = dataclasses.replace(good, **{name: value})
    ledger = ledger_of("compare/zinc", tmp_path)
    ledger.add(compared_entry(run(seed=1), 0.2, 0.3))
    with open(ledger.path, "a") as file:
        file.write(json.dumps(bad.to_dict()) + "\n")
    with pytest.warns(UserWarning, match=match):
        (kept,) = ledger.entries()
    assert kept.seed == 1


def test_chosen_entries() -> None:
    def entry(lr: float, seed: int) -> LedgerEntry:
        return compared_entry(run(lr, seed), lr, 1 - lr)

    entries = [entry(lr, seed) for lr in (0.1, 0.01) for seed in (0, 1)]
    trials = grid(run(), [(rate, 0.0) for rate in (0.1, 0.01, 0.5)])
    choice = choose(run(), entries, trials, failed=[trials[2].key])
    assert choice is not None
    assert (choice.lr, choice.key) == (0.01, run().search_key)
    assert [trial.score for trial in choice.tried] == [0.1, 0.01, None]
    assert chosen_entries(entries, [choice]) == entries[2:]
    assert chosen_entries(entries, []) == []
    assert choose(run(), [], trials, failed=[trial.key for trial in trials]) is None

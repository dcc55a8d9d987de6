"""The committed ledgers: any reader can repeat each line."""

import json
import re
import shlex
from pathlib import Path

import pytest

from fognn.experiments import build, get_row, protocol
from fognn.experiments.ledger import LedgerEntry, kept_name, ledger_of
from fognn.experiments.search import choices_of, with_rates
from fognn.experiments.tables import TABLES, TableRun, other_key
from fognn.models import count_parameters
from fognn.models.weights import read_weights
from fognn.training import Config
from fognn.training.config import assignments
from fognn.utils.files import sha256_of

RESULTS = Path(__file__).parents[1] / "results"
WEIGHTS = RESULTS.with_name("weights")
# The campaign has hostile archives with members such as C:\\CANARY.
MACHINE = re.compile(r"[\" =](/(work|tmp|root|home|Users)/|[A-Z]:\\\\(?!CANARY))")
ENTRIES = [
    entry
    for path in sorted(RESULTS.glob("*.jsonl"))
    for entry in ledger_of(path.stem, RESULTS).entries()
]


def test_there_are_some() -> None:
    assert len(ENTRIES) >= 26


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.key)
def test_a_line_can_be_repeated(entry: LedgerEntry) -> None:
    config = Config.from_dict(entry.config)
    program, verb, data, model, *options = shlex.split(entry.result["command"])
    assert (program, verb, options[0]) == ("fognn", "train", "--seed")
    assert protocol(data, model, int(options[1]), assignments(options[3::2])) == config
    assert re.fullmatch(r"[0-9a-f]{16}", entry.result["fingerprint"])
    assert all(re.fullmatch(r"[0-9a-f]{40}", text) for text in entry.result["commit"].split(", "))
    if entry.table not in TABLES:  # runs.jsonl
        assert entry.key == other_key(config)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.table in TABLES], ids=lambda e: e.key)
def test_a_line_is_of_its_row(entry: LedgerEntry) -> None:
    config = Config.from_dict(entry.config)
    run = TableRun(entry.table, entry.row, entry.variant, entry.label, config)
    assert entry.key == run.key
    # By the row's protocol, on a fraction of the data, or with settings that a search tried.
    values = {"data.fraction": run.protocol.data.fraction}
    if config.data.fraction == run.protocol.data.fraction and not run.follows_protocol:
        searches = choices_of(entry.table, RESULTS).entries()
        found = [c for c in searches if (c.row, c.variant) == (entry.row, entry.variant)]
        assert len(found) <= 1
        for choice in found:
            tried = {trial.key for trial in choice.tried}
            chosen = with_rates(run, choice.lr, choice.weight_decay)
            assert entry.key in tried or chosen.key == entry.key
        if not found:  # or a host with the settings of the network with FOG
            fog = get_row(f"{entry.row}+fog")
            assert (config.training.lr, config.training.weight_decay) == (fog.lr, fog.weight_decay)
        own = run.protocol.training
        values |= {"training.lr": own.lr, "training.weight_decay": own.weight_decay}
    assert config.with_values(values).identity() == run.protocol.identity()
    row = get_row(entry.row)
    printed = row.params if row.table else count_parameters(build(row))
    assert entry.result["parameters"] == printed


def test_weights_and_ledger_belong_together() -> None:
    """Both ways: each file has its line, each checksum its file. `fognn verify --all` evaluates
    them."""
    named = {WEIGHTS / f"{kept_name(e)}.safetensors": e for e in ENTRIES if e.weights}
    files = {path for path in WEIGHTS.rglob("*") if path.is_file()}
    if WEIGHTS.exists():  # it is in git, and in no package
        assert files == named.keys()
    assert sum(path.stat().st_size for path in files) < 40e6
    for path in files:
        entry, weights = named[path], read_weights(path)
        assert entry.config["data"]["fraction"] == 1.0
        assert sha256_of(path) == entry.weights
        assert (weights.key, weights.seed) == (entry.key, entry.seed)
        folds = entry.result["folds"]
        shown = {"last": "epochs", "best": "best_epoch"}[TABLES[entry.table].at]
        assert weights.epoch == (folds[0] if folds else entry.result)[shown]
        config = weights.config | {"data": weights.config["data"] | {"fold": None}}
        assert Config.from_dict(config).differences(Config.from_dict(entry.config)) == []
        assert not MACHINE.search(json.dumps([weights.config, weights.task]))


@pytest.mark.parametrize("path", sorted(RESULTS.rglob("*.json*")), ids=lambda path: path.name)
def test_no_path_of_a_machine(path: Path) -> None:
    assert not MACHINE.search(path.read_text())
    if path.suffix == ".jsonl":
        assert all(json.loads(line)["key"] for line in path.read_text().splitlines())


@pytest.mark.parametrize(
    "path", sorted((RESULTS / "compare").glob("*.jsonl")), ids=lambda path: path.stem
)
def test_a_comparison_is_fair(path: Path) -> None:
    entries = ledger_of(f"compare/{path.stem}", RESULTS).entries()
    assert len(entries) == len(path.read_text().splitlines()), "all lines are valid"
    assert len({entry.result["fingerprint"] for entry in entries}) == 1, "the same splits"
    sizes: dict[tuple[str, str], set[int]] = {}
    rates: dict[tuple[str, str], set[float]] = {}
    for entry in entries:
        network = entry.row, entry.variant
        sizes.setdefault(network, set()).add(entry.result["parameters"])
        if entry.seed == 0:
            rates.setdefault(network, set()).add(entry.config["training"]["lr"])
        assert entry.result["command"].startswith(f"fognn train {shlex.quote(entry.data)} ")
    assert len({frozenset(tried) for tried in rates.values()}) == 1, "the same tries"
    for (row, variant), (size,) in sizes.items():
        budget = int(row.rpartition("-")[2])
        assert abs(size - budget) <= 0.01 * budget
        assert not variant or size <= min(sizes[row, ""])
    alike = {
        json.dumps({k: v for k, v in entry.config["training"].items() if k != "lr"})
        for entry in entries
    }
    assert len(alike) == 1, "the same training"

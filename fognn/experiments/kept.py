r"""The kept weights, ``weights/TABLE/ROW.safetensors``: :func:`add_to_ledger` writes them with the
line of a finished run, :func:`verify` evaluates them and compares with the line.

Of all runs of a row by its own protocol, on all of the data, the weights of the lowest seed are
kept, and its ledger line has the checksum of the file. They are those of the epoch whose
figure the table shows, the last one, or the best one for few-shot images. So that all files
together stay small, only those of the first fold are kept of a run over folds, and a run that
several tables have is kept for the first of them only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fognn.experiments.ledger import LedgerEntry, ledger_entry, ledger_of, readable
from fognn.experiments.rows import TABLES, get_row
from fognn.experiments.tables import Run, TableRun, portable
from fognn.models import Task
from fognn.models.weights import SUFFIX, Weights, write_weights
from fognn.training import Config, evaluate
from fognn.training.checkpoint import read_checkpoint
from fognn.utils import checks
from fognn.utils.errors import FognnError
from fognn.utils.files import sha256_of, user_path

FOLD = 1  # the fold whose weights are kept, of a run over folds
# What no other training of the same run has in common with it.
_FIGURES = ("train", "val", "test", "epochs", "seconds")


def add_to_ledger(run: Run, folder: Path, results: Path, weights: str | Path | None = None) -> None:
    r"""Adds a finished run to the ledger of its table, and keeps its weights if no lower seed of
    its row has some. Without the checkpoint of that epoch in the run folder, the line has none. If
    the process is killed between the two files, the same call repairs the line."""
    entry = ledger_entry(folder, run)
    file = _weights_folder(weights, results) / f"{kept_name(entry)}{SUFFIX}"

    def change(lines: list[LedgerEntry]) -> list[LedgerEntry]:
        before = next((line for line in lines if line.key == entry.key), entry)
        same = all(before.result.get(name) == entry.result.get(name) for name in _FIGURES)
        new = before if same else entry  # a copied run folder is as new as the copy
        others = [
            line
            for line in lines
            if (line.row, line.variant) == (run.row, run.variant) and line.seed != entry.seed
        ]
        others = [line for line in others if line.weights]
        lowest = all(line.seed > entry.seed for line in others)
        if not lowest or not isinstance(run, TableRun) or not run.keeps_weights:
            return [new]
        if new.weights and file.is_file():
            return [new]
        checksum = _write(file, entry, folder)
        if checksum is None:
            return [new]
        without = [line.model_copy(update={"weights": None}) for line in others]
        return [new.model_copy(update={"weights": checksum}), *without]

    ledger_of(run.table, results).change(change)


def _weights_folder(weights: str | Path | None, results: str | Path) -> Path:
    r"""Returns the given folder of the weights, or ``weights`` beside the ledgers."""
    if weights is not None:
        return user_path(weights)
    return user_path(results).absolute().with_name("weights")


def kept_name(entry: LedgerEntry) -> str:
    r"""Returns the name of the weights of a run, such as ``"zinc/gcn+fog"``: its key without the
    seed."""
    return entry.key.removesuffix(f"-seed{entry.seed}")


def _write(file: Path, entry: LedgerEntry, folder: Path) -> str | None:
    r"""Writes the weights of a run and returns their checksum; :obj:`None` if it has no
    checkpoint."""
    folds = entry.result.get("folds") or []
    at = TABLES[entry.table].at
    checkpoint = (folder / f"fold-{FOLD}" if folds else folder) / f"{at}.ckpt"
    if not checkpoint.exists():
        return None
    result = folds[FOLD - 1] if folds else entry.result
    epoch = result["epochs"] if at == "last" else result["best_epoch"]
    content = read_checkpoint(checkpoint)
    settings = portable(Config.from_dict(content["config"])).to_dict()
    task = None if content["task"] is None else Task(**content["task"]).to_dict()
    write_weights(file, Weights(entry.key, entry.seed, epoch, settings, task, content["model"]))
    return sha256_of(file)


@dataclass(frozen=True)
class Check:
    r"""The verification of the weights of one row: its figures over batches and over items in the
    ledger and here, or why they could not be measured."""

    name: str
    seed: int | None  # None if no line names the file
    digits: int  # with which tables show the figures
    ledger: tuple[float, ...]
    here: tuple[float, ...] = ()
    problem: str = ""

    @property
    def ok(self) -> bool:
        r"""Whether the figures differ by at most half a unit of the last printed digit."""
        return not self.problem and all(
            abs(one - other) <= 0.5 * 10**-self.digits
            for one, other in zip(self.ledger, self.here, strict=True)
        )


def verify(
    tables: Sequence[str] | None = None,
    results: str | Path = "results",
    weights: str | Path | None = None,
    data: str | Path | None = None,
    device: str = "auto",
) -> Iterator[Check]:
    r"""Evaluates the kept weights of tables (by default all), one network after another, and
    compares with the ledgers. A network that cannot be evaluated, or a file that no line of the
    ledger names, is a :class:`Check` with a problem."""
    for table in tables or ():
        checks.known("verify", "table", table, TABLES)
    results = readable(user_path(results))
    if not results.is_dir():
        raise ValueError(f"verify: results must be a folder with ledgers, got {str(results)!r}")
    place = _weights_folder(weights, results)
    folder = None if data is None else user_path(data)
    named = set()
    for table in dict.fromkeys(tables or TABLES):
        for entry in ledger_of(table, results).entries():
            if entry.weights:
                file = place / f"{kept_name(entry)}{SUFFIX}"
                named.add(file)
                yield _check(entry, file, folder, device)
    for file in sorted(place.rglob(f"*{SUFFIX}")):
        if file not in named and file.parent.name in (tables or TABLES):
            name = file.relative_to(place).with_suffix("").as_posix()
            yield Check(name, None, 0, (), problem="no line of the ledger names this file")


def _check(entry: LedgerEntry, file: Path, data: Path | None, device: str) -> Check:
    # Of a run over folds, the figures of the fold whose weights are kept.
    folds = entry.result.get("folds") or []
    result = next((fold for fold in folds if fold["fold"] == FOLD), entry.result)
    split = "val" if result["test"] is None else "test"
    overs = ("batches", "items")
    figures = tuple(result[split][TABLES[entry.table].at][over] for over in overs)
    check = Check(kept_name(entry), entry.seed, get_row(entry.row).digits, figures)
    if not file.is_file():
        return replace(check, problem=f"{file} is missing")
    if sha256_of(file) != entry.weights:
        return replace(check, problem=f"{file}: its checksum is not that of the ledger")
    try:
        scores = evaluate(file, split, None, device, None, data)
    except (FognnError, ValueError, OSError, RuntimeError) as error:  # data that are not here
        return replace(check, problem=" ".join(f"not evaluated: {error}".split()))
    metric = entry.result["metric"]
    return replace(check, here=tuple(scores[f"{metric}_{over}"] for over in overs))

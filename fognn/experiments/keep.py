r"""Finished runs in the ledgers, and the weights of each row's first seed in
``weights/TABLE/ROW.safetensors``.

Of all runs of a row by its own protocol, on all of the data, whose run folders were seen, the
weights of the one with the lowest seed are kept, and its ledger line has the checksum of the file.
They are those of the epoch whose figure the table shows, the last one, or the best one for few-shot
images. So that all files together stay small, only those of the first fold are kept of a run over
folds, and a run that several tables have is kept for the first of them only.
"""

import os
import warnings
from dataclasses import replace
from pathlib import Path

from fognn.experiments.ledger import LedgerEntry, ledger_entry, ledger_of, run_entry
from fognn.experiments.tables import TABLES, Planned, portable, runs_of
from fognn.models.weights import SUFFIX, Weights, write_weights
from fognn.training import Config, Result
from fognn.training.checkpoint import read_checkpoint, rebuild
from fognn.utils.files import DAMAGE, remove_left, sha256_of, user_path

__all__ = ["FOLD", "add_run", "enter", "kept_name", "weights_beside"]

FOLD = 1  # the fold whose weights are kept, of a run over folds
# What no other training of the same run has in common with it.
_OWN = ("train", "val", "test", "epochs", "seconds")


def enter(folder: str | Path, results: str | Path, weights: str | Path | None = None) -> list[str]:
    r"""Adds a finished run to the ledger of each table that has it, with its weights, or to
    ``runs.jsonl``.

    Args:
        folder (str): The run folder.
        results (str): The folder of the ledgers.
        weights (str, optional): The folder of the weights. (default: see :func:`weights_beside`)

    Returns:
        The keys of the lines.
    """
    folder, results = user_path(folder), user_path(results)
    path = folder.resolve()
    if path.parent.parent.name == "compare" and "-lr" in path.name:
        raise ValueError(
            f"collect: RUN must not be a run of a comparison, got {str(folder)!r}: fognn compare "
            f"with --runs {path.parents[2]} enters it"
        )
    try:
        Result.read(folder)  # raises unless the run has finished
        planned = runs_of(Config.read(folder / "config.yaml"))
        for run in planned:
            add_run(run, folder, results, weights)
        if planned:
            return [run.key for run in planned]
        entry = run_entry(folder)
        ledger_of(entry.table, results).add(entry)
    except ValueError as error:
        if str(folder) in str(error):
            raise
        raise ValueError(f"{folder}: {error}") from error
    return [entry.key]


def add_run(
    planned: Planned, folder: Path, results: Path, weights: str | Path | None = None
) -> None:
    r"""Adds a finished run to the ledger of its table. If it is trained by its row's own protocol
    on all of the data, and no line with a lower seed has weights, also keeps its weights, see
    :attr:`~fognn.experiments.tables.Planned.keeps_weights`.

    Without the checkpoint of that epoch in the run folder, the line has no weights. If the process
    is killed between the two files, the same call repairs the line.

    Args:
        planned (Planned): The run.
        folder (Path): The run folder.
        results (Path): The folder of the ledgers.
        weights (str, optional): The folder of the weights. (default: see :func:`weights_beside`)
    """
    entry = ledger_entry(planned, folder)
    place = weights_beside(results) if weights is None else user_path(weights)
    file = place / planned.table / f"{planned.slug}{SUFFIX}"

    def change(lines: list[LedgerEntry]) -> list[LedgerEntry]:
        before = next((line for line in lines if line.key == entry.key), None)
        same = before if before is not None and _is_same(before, entry) else None
        # A copied run folder is as new as the copy.
        new = replace(entry, finished=same.finished, more=same.more) if same else entry
        if not planned.keeps_weights or (same and same.weights and _is_file(file, same.weights)):
            return [new]
        row = (entry.row, entry.variant)
        holders = [line for line in lines if line.weights and (line.row, line.variant) == row]
        if any(line.seed < entry.seed for line in holders):
            return [new]
        checksum = _write(file, entry, folder)
        if checksum is None:
            if before in holders and not same:
                file.unlink(missing_ok=True)  # of the earlier training
            return [new]
        others = [line.with_weights(None) for line in holders if line.key != entry.key]
        return [new.with_weights(checksum), *others]

    ledger_of(planned.table, results).change(change)


def weights_beside(results: str | Path) -> Path:
    r"""Returns the default folder of the weights: ``weights``, beside the folder of the ledgers, so
    that ledgers in another folder have their own weights."""
    return Path(os.path.abspath(user_path(results))).with_name("weights")


def kept_name(entry: LedgerEntry) -> str:
    r"""Returns the name of the weights of a run, such as ``"zinc/gcn+fog"``: its key without the
    seed."""
    return entry.key.removesuffix(f"-seed{entry.seed}")


def _is_same(one: LedgerEntry, other: LedgerEntry) -> bool:
    return all(one.result.get(name) == other.result.get(name) for name in _OWN)


def _is_file(file: Path, checksum: str) -> bool:
    return file.is_file() and sha256_of(file) == checksum


def _write(file: Path, entry: LedgerEntry, folder: Path) -> str | None:
    r"""Writes the weights of a run and returns their checksum; :obj:`None` if it has no usable
    checkpoint."""
    folds = entry.result.get("folds") or []
    at = TABLES[entry.table].at
    checkpoint = (folder / f"fold-{FOLD}" if folds else folder) / f"{at}.ckpt"
    if not checkpoint.exists():
        return None
    result = folds[FOLD - 1] if folds else entry.result
    epoch = result["epochs"] if at == "last" else result["best_epoch"]
    try:
        content = read_checkpoint(checkpoint)
        net, config, task = rebuild(content)  # raises for a network of another version
        # The checkpoint of the best epoch has no state of the training.
        found = len(content["state"]["history"]) if at == "last" else content["epoch"]
        if found != epoch:
            raise ValueError(f"{checkpoint} must be of epoch {epoch}, the {at} one, got {found}")
    except DAMAGE as error:
        warnings.warn(f"{entry.key}: its weights are not kept: {error}", stacklevel=2)
        return None
    fields = None if task is None else task.to_dict()
    kept = Weights(
        entry.key, entry.seed, epoch, portable(config).to_dict(), fields, net.state_dict()
    )
    remove_left(file)
    write_weights(file, kept)
    return sha256_of(file)

r"""Finished runs in the ledgers, and the weights of each row's first seed in
``weights/TABLE/ROW.safetensors``.

Of all runs of a row by its own protocol, on all of the data, the weights of the one with the lowest
seed are kept, and its ledger line has the checksum of the file. They are those of the epoch whose
figure the table shows, the last one, or the best one for few-shot images. So that all files
together stay small, only those of the first fold are kept of a run over folds, and a run that
several tables have is kept for the first of them only.
"""

import warnings
from pathlib import Path

from fognn.experiments.ledger import LedgerEntry, ledger_entry, ledger_of
from fognn.experiments.rows import TABLES
from fognn.experiments.tables import Run, TableRun, portable
from fognn.models.weights import SUFFIX, Weights, write_weights
from fognn.training.checkpoint import read_checkpoint, rebuild
from fognn.utils.errors import FognnError
from fognn.utils.files import sha256_of, user_path

__all__ = ["FOLD", "add_to_ledger", "kept_name", "weights_beside"]

FOLD = 1  # the fold whose weights are kept, of a run over folds
# What no other training of the same run has in common with it.
_FIGURES = ("train", "val", "test", "epochs", "seconds")


def add_to_ledger(
    run: Run, folder: Path, results: Path, weights: str | Path | None = None
) -> LedgerEntry:
    r"""Adds a finished run to the ledger of its table. If it is trained by its row's own protocol
    on all of the data, and no line with a lower seed has weights, also keeps its weights.

    Without the checkpoint of that epoch in the run folder, the line has no weights. If the process
    is killed between the two files, the same call repairs the line.
    """
    entry = ledger_entry(run, folder)
    place = weights_beside(results) if weights is None else user_path(weights)
    file = place / f"{kept_name(entry)}{SUFFIX}"

    def change(lines: list[LedgerEntry]) -> list[LedgerEntry]:
        before = next((line for line in lines if line.key == entry.key), None)
        same = before is not None and _is_same(before, entry)
        # A copied run folder is as new as the copy.
        new = before if before is not None and same else entry
        if not isinstance(run, TableRun) or not run.keeps_weights:
            return [new]
        if new.weights and file.is_file() and sha256_of(file) == new.weights:
            return [new]
        row = (entry.row, entry.variant)
        holders = [line for line in lines if line.weights and (line.row, line.variant) == row]
        if any(line.seed < entry.seed for line in holders):
            return [new.with_weights(None)]
        checksum = _write(file, entry, folder)
        if checksum is None and before in holders and not same:
            file.unlink(missing_ok=True)  # of the earlier training
        if checksum is None:
            return [new]
        others = [line.with_weights(None) for line in holders if line.key != entry.key]
        return [new.with_weights(checksum), *others]

    ledger_of(run.table, results).change(change)
    return entry


def weights_beside(results: str | Path) -> Path:
    r"""Returns the default folder of the weights: ``weights``, beside the folder of the ledgers, so
    that ledgers in another folder have their own weights."""
    return user_path(results).absolute().with_name("weights")


def kept_name(entry: LedgerEntry) -> str:
    r"""Returns the name of the weights of a run, such as ``"zinc/gcn+fog"``: its key without the
    seed."""
    return entry.key.removesuffix(f"-seed{entry.seed}")


def _is_same(one: LedgerEntry, other: LedgerEntry) -> bool:
    return all(one.result.get(name) == other.result.get(name) for name in _FIGURES)


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
    except (FognnError, ValueError, KeyError, OSError, RuntimeError) as error:
        warnings.warn(f"{entry.key}: its weights are not kept: {error}", stacklevel=2)
        return None
    fields = None if task is None else task.to_dict()
    kept = Weights(
        entry.key, entry.seed, epoch, portable(config).to_dict(), fields, net.state_dict()
    )
    write_weights(file, kept)
    return sha256_of(file)

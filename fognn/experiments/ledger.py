r"""The ledger of measured runs: one line for each finished run in ``results/TABLE.jsonl``. Runs
that are not in the paper's tables are in ``results/runs.jsonl``, those of ``fognn compare`` in
``results/compare/NAME.jsonl``."""

import json
import math
import re
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fognn.experiments.json_lines import JsonLines, KeyedLine
from fognn.experiments.protocols import command_of
from fognn.experiments.rows import TABLES, rows_of
from fognn.experiments.tables import Run, TableRun, other_key, portable
from fognn.training import Config, Result
from fognn.training.data import data_fingerprint
from fognn.training.objective import HIGHER_IS_BETTER
from fognn.training.run_folder import TIMES, read_metrics

__all__ = [
    "COMPARE",
    "Ledger",
    "LedgerEntry",
    "ledger_entry",
    "ledger_of",
    "readable",
    "relabelled",
    "run_entry",
]

COMPARE = "compare/"  # the beginning of the table of a comparison
COLUMNS = ("epoch", "lr", "train_loss", "val_loss", "train", "val", "seconds")
_DIGITS = 7  # significant digits of a curve: enough for any plot
_NAME = re.compile(r"[a-z0-9][a-z0-9+._=-]*")


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


_Count = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(ge=0)]


class _Scores(_Strict):
    loss: float | None  # one that overflowed is written as null
    items: float
    batches: float
    interval: float | None = None


class _Epochs(_Strict):
    last: _Scores
    best: _Scores


class _Fold(_Strict):
    fold: int
    val: _Epochs
    test: _Epochs | None


class RunResult(_Strict):
    r"""The content of ``result.json`` that tables, pages and sweeps read, see
    :class:`fognn.training.Result`."""

    metric: str
    higher_is_better: bool
    parameters: _Count
    epochs: _Count
    best_epoch: _Count
    seconds: _Seconds
    seconds_per_epoch: _Seconds
    stopped: str
    command: str
    device: str
    train: dict[str, dict[str, float | None]] | None
    val: _Epochs
    test: _Epochs | None
    spread: _Epochs | None = None
    folds: list[_Fold] | None = None
    threads: int | None = None
    peak_memory: int | None = None
    commit: str | None = None
    fingerprint: str | None = None
    machine: dict[str, Any] | None = None
    versions: dict[str, Any] | None = None


def _result(content: dict[str, Any]) -> dict[str, Any]:
    RunResult.model_validate(content)
    return content


class LedgerEntry(KeyedLine):
    r"""A line of the ledger: one finished run.

    Args:
        key (str): The unique name of the run, :attr:`fognn.experiments.tables.Run.key`.
        table (str): Its table, ``"compare/NAME"`` or ``"runs"``.
        row (str): The id of its row, such as ``"zinc/gcn+fog"``; empty in ``"runs"``.
        variant (str): As in :class:`fognn.experiments.tables.Run`.
        label (str): As in :class:`fognn.experiments.tables.Run`.
        model (str): Name of the network.
        data (str): Name of the dataset.
        seed (int): The seed.
        config (dict): All settings, as in ``config.yaml``, without folders.
        result (dict): As in ``result.json``, see :class:`fognn.training.Result`; its ``command``
            repeats the run from a fresh clone.
        curve (dict): Lists with a number for each epoch: ``"epoch"``, ``"lr"``, ``"train_loss"``,
            ``"val_loss"``, ``"train"`` and ``"val"`` (the metric over items), ``"seconds"``. A
            number that is not finite is :obj:`None`.
        finished (str): The time of its end, in ISO format and UTC.
        weights (str, optional): The SHA-256 of the file of its weights, if they are kept, see
            :mod:`fognn.experiments.keep`. (default: :obj:`None`)
    """

    table: str
    row: str
    variant: str
    label: str
    model: str
    data: str
    seed: int
    config: dict[str, Any]
    result: Annotated[dict[str, Any], AfterValidator(_result)]
    curve: dict[str, list[float | int | None]]
    finished: str
    weights: Annotated[str | None, Field(pattern=r"^[0-9a-f]{64}$")] = None

    @cached_property
    def run(self) -> Config:
        r"""The configuration of the run."""
        return Config.from_dict(self.config)

    def same(self) -> tuple[str, ...]:
        identity = json.dumps(self.run.identity(), sort_keys=True)
        return self.key, f"{self.row} {self.variant} {self.data} {identity}"

    def with_weights(self, checksum: str | None) -> "LedgerEntry":
        r"""Returns the line with another checksum of weights."""
        return self.model_copy(update={"weights": checksum})

    @model_validator(mode="after")
    def _consistent(self) -> "LedgerEntry":
        training, result = self.run.training, self.result
        wanted = {"seed": self.run.seed, "result.metric": training.metric}
        wanted |= {"result.higher_is_better": HIGHER_IS_BETTER[training.metric]}
        for name, value in wanted.items():
            got = self.seed if name == "seed" else result[name.partition(".")[2]]
            if got != value:
                raise ValueError(f"{name} must be {value!r}, as in config, got {got!r}")
        for name in COLUMNS:
            if len(self.curve.get(name, ())) != result["epochs"]:
                raise ValueError(f"curve.{name} must have {result['epochs']} numbers")
        if self.table != "runs":
            self._in_table()
        return self

    def _in_table(self) -> None:
        place, _, name = self.key.rpartition("/")
        # Pages and files of weights are named after the key.
        if place != self.table or not _NAME.fullmatch(name):
            raise ValueError(f"key must be {self.table}/ and a name, got {self.key!r}")
        if self.table.startswith(COMPARE):
            if not _NAME.fullmatch(self.table.removeprefix(COMPARE)):
                raise ValueError(f"table must be {COMPARE} and a name, got {self.table!r}")
        elif self.table not in TABLES or self.row not in {row.id for row in rows_of(self.table)}:
            raise ValueError(f"row must be one of table {self.table!r}, got {self.row!r}")
        else:
            metric = self.table_run.protocol.training.metric  # raises for an unknown variant
            if metric != self.run.training.metric:
                raise ValueError(f"config.training.metric must be that of the row, {metric!r}")

    @property
    def table_run(self) -> TableRun:
        r"""The run of the table."""
        return TableRun(self.table, self.row, self.variant, self.label, self.run)


class Ledger(JsonLines[LedgerEntry]):
    r"""The finished runs of a table. Several processes can add lines at the same time.

    Args:
        path (Path): The file, such as ``results/zinc.jsonl``. It need not exist.
        table (str, optional): The table. (default: the file's name without its suffix)
    """

    def __init__(self, path: str | Path, table: str | None = None) -> None:
        super().__init__(path, LedgerEntry)
        self.table = self.path.stem if table is None else table

    def entries(self) -> list[LedgerEntry]:
        r"""Returns all runs, in the order of the file. A line that is invalid, or of another
        version, is skipped with a warning."""
        return self.read()

    def check(self, line: LedgerEntry) -> None:
        if line.table != self.table:
            raise ValueError(f"table must be {self.table!r}, got {line.table!r}")


def ledger_of(table: str, results: str | Path) -> Ledger:
    r"""Returns the ledger of a table, or of the runs that are not in the paper's tables.

    Args:
        table (str): One of :obj:`fognn.experiments.rows.TABLES`, ``"compare/NAME"`` or ``"runs"``.
        results (str): The folder of the ledgers.
    """
    return Ledger(Path(results) / f"{table}.jsonl", table)


def readable(results: str | Path) -> Path:
    r"""Returns the folder to read ledgers from: the given one; if that is the default ``results``
    and is not in the working directory, that of the clone, or else the committed ledgers that the
    installed package has. New lines are always written to the given one."""
    results = Path(results)
    clone = Path(__file__).parents[2]
    if results != Path("results") or results.is_dir():
        return results
    if (clone / "pyproject.toml").is_file() and (clone / "results").is_dir():
        return clone / "results"
    kept = Path(str(files("fognn").joinpath("kept", "results")))
    return kept if kept.is_dir() else results


def ledger_entry(run: Run, folder: Path) -> LedgerEntry:
    r"""Returns the ledger line of a finished run.

    Args:
        run (Run): The run.
        folder (Path): The run folder.

    Raises:
        ValueError: If the folder holds another run, or one that has not finished.
    """
    result, config = Result.read(folder), Config.read(Path(folder) / "config.yaml")
    differences = config.differences(run.config)
    if differences:
        raise ValueError(
            f"folder {str(folder)!r} must hold {run.key}, but it holds another run "
            f"({'; '.join(differences[:4])}, in the folder and as planned)"
        )
    names = {name: getattr(run, name) for name in ("key", "table", "row", "variant", "label")}
    return _entry(folder, config, result, names)


def run_entry(folder: Path) -> LedgerEntry:
    r"""Returns the ledger line of any finished run, for ``runs.jsonl``."""
    result, config = Result.read(folder), Config.read(Path(folder) / "config.yaml")
    names = dict.fromkeys(("row", "variant"), "")
    names |= {"key": other_key(config), "table": "runs", "label": config.model.name}
    return _entry(folder, config, result, names)


def relabelled(entry: LedgerEntry, run: Run) -> LedgerEntry:
    r"""Returns the ledger line of the same run for another table that has it."""
    names = {name: getattr(run, name) for name in ("key", "table", "row", "variant", "label")}
    # The file of the weights is that of the other table.
    return entry.model_copy(update=names | ({} if run.key == entry.key else {"weights": None}))


def _entry(folder: Path, config: Config, result: Result, names: dict[str, str]) -> LedgerEntry:
    shared = portable(config)
    # JSON has no NaN. A fold's loss can be NaN at the best epoch of the mean curve.
    content = json.loads(result.model_dump_json(), parse_constant=lambda _: None)
    # Without paths of this machine: the command repeats the run from any clone.
    content |= {"command": command_of(config), "data": shared.data.name}
    content["fingerprint"] = result.fingerprint or data_fingerprint(config)
    history = read_metrics(folder)
    if len(history) != result.epochs:
        raise ValueError(f"{folder} has {result.epochs} epochs, but {len(history)} in metrics.csv")
    finished = datetime.fromtimestamp((Path(folder) / "result.json").stat().st_mtime, UTC)
    return LedgerEntry(
        **names,
        model=config.model.name,
        data=shared.data.name,
        seed=config.seed,
        config=shared.to_dict(),
        result=content,
        curve=_curve(history, config.training.metric),
        finished=finished.isoformat(timespec="seconds"),
    )


def _curve(history: list[dict[str, Any]], metric: str) -> dict[str, list[Any]]:
    names = {name: name for name in ("lr", "train_loss", "val_loss")}
    names |= {split: f"{split}_{metric}_items" for split in ("train", "val")}
    return {
        "epoch": [row["epoch"] for row in history],
        **{new: [_rounded(row[old]) for row in history] for new, old in names.items()},
        "seconds": [_rounded(sum(row[name] for name in TIMES)) for row in history],
    }


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None

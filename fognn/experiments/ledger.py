r"""The ledger of measured runs: one line for each finished run in ``results/TABLE.jsonl``. Runs
that are not in the paper's tables are in ``results/runs.jsonl``, those of ``fognn compare`` in
``results/compare/NAME.jsonl``."""

import json
import math
import re
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from filelock import FileLock
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from fognn.experiments.protocols import command_of
from fognn.experiments.rows import TABLES, rows_of
from fognn.experiments.tables import Run, TableRun, other_key, portable
from fognn.training import Config, Result
from fognn.training.data import data_fingerprint
from fognn.training.run_folder import TIMES, read_metrics
from fognn.utils.errors import first_problem
from fognn.utils.files import write_whole

__all__ = [
    "COMPARE",
    "JsonLines",
    "KeyedLine",
    "LedgerEntry",
    "ledger_entry",
    "ledger_of",
    "readable",
    "relabelled",
    "run_entry",
]

COMPARE = "compare/"  # the beginning of the table of a comparison
_COLUMNS = ("epoch", "lr", "train_loss", "val_loss", "train", "val", "seconds")
_DIGITS = 7  # significant digits of a curve: enough for any plot
_NAME = re.compile(r"[a-z0-9][a-z0-9+._=-]*")
_TIMEOUT = 120.0  # seconds to wait for the lock of a file; a write takes milliseconds


class KeyedLine(BaseModel):
    r"""A line with a unique key. Fields of a later version are kept."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False)

    key: str

    def dump(self) -> bytes:
        r"""Returns the line: its own fields in their order, without those that are :obj:`None` by
        default, then others; nested keys are sorted."""
        fields = type(self).model_fields
        content = {k: v for k, v in self.model_dump().items() if v is not None or k not in fields}
        parts = (
            f"{json.dumps(name)}: {json.dumps(value, sort_keys=True, allow_nan=False)}"
            for name, value in content.items()
        )
        return ("{" + ", ".join(parts) + "}").encode()


Line = TypeVar("Line", bound=KeyedLine)


class JsonLines(Generic[Line]):
    r"""A file with one JSON object per line and unique keys, to which several processes can write.

    The file need not exist. It is replaced in one step, so readers need no lock; writers take one.
    An invalid line, such as one of another version, is skipped with a warning, and stays in the
    file as it is.
    """

    def __init__(self, path: str | Path, kind: type[Line]) -> None:
        self.path = Path(path)
        self.kind = kind

    def entries(self) -> list[Line]:
        r"""Returns the valid lines, in the order of the file."""
        return [line for _, line in self._lines() if line is not None]

    def add(self, line: Line) -> None:
        r"""Adds a line, or replaces the one with the same key."""
        self.change(lambda _: [line])

    def change(self, function: Callable[[list[Line]], Sequence[Line]]) -> None:
        r"""Adds or replaces several lines in one step, while no other process writes: a function
        takes the valid lines and returns the new ones."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=_TIMEOUT):
            lines = self._lines()
            changed = function([line for _, line in lines if line is not None])
            new = {line.key: line.dump() for line in changed}
            # Other lines keep their text, so that those of a later version lose nothing.
            texts = [raw if line is None else new.pop(line.key, raw) for raw, line in lines]
            texts += new.values()
            if texts != [raw for raw, _ in lines]:
                with write_whole(self.path) as temporary:
                    temporary.write_bytes(b"".join(text + b"\n" for text in texts))

    def _lines(self) -> list[tuple[bytes, Line | None]]:
        found: list[tuple[bytes, Line | None]] = []
        seen: dict[str, int] = {}
        # Not splitlines(), which also splits at characters that may occur within a JSON string.
        data = self.path.read_bytes() if self.path.exists() else b""
        for number, raw in enumerate(data.split(b"\n"), 1):
            if not raw.strip():
                continue
            try:
                line = self.kind.model_validate_json(raw)
                if seen.setdefault(line.key, number) != number:
                    raise ValueError(f"it has the same key as line {seen[line.key]}")
                found.append((raw.strip(), line))
            except ValueError as error:
                problem = first_problem(error) if isinstance(error, ValidationError) else error
                warnings.warn(f"{self.path}, line {number}, is skipped: {problem}", stacklevel=2)
                found.append((raw, None))
        return found


def _valid_result(content: dict[str, Any]) -> dict[str, Any]:
    Result.model_validate(content, strict=True)
    return content


class LedgerEntry(KeyedLine):
    r"""A line of the ledger: one finished run."""

    table: str  # "compare/NAME" for a comparison, "runs" for a run that is in no table
    row: str  # the id of its row, such as "zinc/gcn+fog"
    variant: str
    label: str
    model: str
    data: str
    seed: int
    config: dict[str, Any]  # all settings, as in config.yaml, without folders
    # As in result.json; the command repeats the run from a fresh clone.
    result: Annotated[dict[str, Any], AfterValidator(_valid_result)]
    # Numbers of each epoch, the metric over items; None if one is not finite.
    curve: dict[str, list[float | int | None]]
    finished: str  # in ISO format and UTC
    # The SHA-256 of the file of its weights, if they are kept, see fognn.experiments.kept.
    weights: Annotated[str | None, Field(pattern=r"^[0-9a-f]{64}$")] = None

    @cached_property
    def run(self) -> Config:
        r"""The configuration of the run."""
        return Config.from_dict(self.config)

    @property
    def table_run(self) -> TableRun:
        r"""The run of the table."""
        return TableRun(self.table, self.row, self.variant, self.label, self.run)

    @model_validator(mode="after")
    def _consistent(self) -> "LedgerEntry":
        figures = (self.seed, self.result["metric"])
        if figures != (self.run.seed, self.run.training.metric):
            raise ValueError(f"seed and metric must be those of config, got {figures}")
        if any(len(self.curve.get(name, ())) != self.result["epochs"] for name in _COLUMNS):
            raise ValueError(f"curve must have {', '.join(_COLUMNS)} of each epoch")
        place, _, name = self.key.rpartition("/")
        if self.table == "runs":
            return self
        # Pages and files of weights are named after the key.
        if place != self.table or not _NAME.fullmatch(name):
            raise ValueError(f"key must be {self.table}/ and a name, got {self.key!r}")
        comparison = _NAME.fullmatch(self.table.removeprefix(COMPARE))
        known = self.table in TABLES and self.row in {row.id for row in rows_of(self.table)}
        if not (comparison if self.table.startswith(COMPARE) else known):
            raise ValueError(f"row must be one of table {self.table!r}, got {self.row!r}")
        return self


def ledger_of(table: str, results: str | Path) -> JsonLines[LedgerEntry]:
    r"""Returns the ledger of a table (``"zinc"``, ``"compare/NAME"`` or ``"runs"``, for runs that
    are not in the paper's tables) in the folder of the ledgers."""
    return JsonLines(Path(results) / f"{table}.jsonl", LedgerEntry)


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
    r"""Returns the ledger line of a finished run; raises if the folder holds another run, or one
    that has not finished."""
    result, config = Result.read(folder), Config.read(Path(folder) / "config.yaml")
    differences = config.differences(run.config)
    if differences:
        raise ValueError(
            f"folder {str(folder)!r} must hold {run.key}, but it holds another run "
            f"({'; '.join(differences[:4])}, in the folder and as planned)"
        )
    return _entry(folder, config, result, _names(run))


def run_entry(folder: Path) -> LedgerEntry:
    r"""Returns the ledger line of any finished run, for ``runs.jsonl``."""
    result, config = Result.read(folder), Config.read(Path(folder) / "config.yaml")
    names = {"key": other_key(config), "table": "runs", "row": "", "variant": ""}
    return _entry(folder, config, result, names | {"label": config.model.name})


def relabelled(entry: LedgerEntry, run: Run) -> LedgerEntry:
    r"""Returns the ledger line of the same run for another table that has it."""
    # The file of the weights is that of the other table.
    return entry.model_copy(
        update=_names(run) | ({} if run.key == entry.key else {"weights": None})
    )


def _names(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in ("key", "table", "row", "variant", "label")}


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
    metric = config.training.metric
    columns = {"lr": "lr", "train_loss": "train_loss", "val_loss": "val_loss"}
    columns |= {split: f"{split}_{metric}_items" for split in ("train", "val")}
    curve = {new: [_rounded(row[old]) for row in history] for new, old in columns.items()}
    finished = datetime.fromtimestamp((Path(folder) / "result.json").stat().st_mtime, UTC)
    return LedgerEntry(
        **names,
        model=config.model.name,
        data=shared.data.name,
        seed=config.seed,
        config=shared.to_dict(),
        result=content,
        curve={
            "epoch": [row["epoch"] for row in history],
            **curve,
            "seconds": [_rounded(sum(row[name] for name in TIMES)) for row in history],
        },
        finished=finished.isoformat(timespec="seconds"),
    )


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None

r"""The ledger of measured runs: one line for each finished run in ``results/TABLE.jsonl``. Runs
that are not in the paper's tables are in ``results/runs.jsonl``, those of ``fognn compare`` in
``results/compare/NAME.jsonl``."""

import json
import math
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from filelock import FileLock
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator

from fognn.experiments.protocols import command_of
from fognn.experiments.tables import Run, TableRun, other_key, portable
from fognn.training import Config, Result
from fognn.training.data import data_fingerprint
from fognn.training.run_folder import TIMES, read_metrics
from fognn.utils.errors import first_problem
from fognn.utils.files import write_whole

COMPARE = "compare/"  # the beginning of the table of a comparison
_DIGITS = 7  # significant digits of a curve: enough for any plot


class KeyedLine(BaseModel):
    r"""A line with a unique key. Fields of a later version are kept."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False)

    key: str

    def dump(self) -> bytes:
        r"""Returns the line, without fields that are :obj:`None`."""
        content = {name: value for name, value in self.model_dump().items() if value is not None}
        return json.dumps(content, allow_nan=False).encode()


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
        with FileLock(self.path.with_name(f".{self.path.name}.lock")):
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
        keys: set[str] = set()
        # Not splitlines(), which also splits at characters that may occur within a JSON string.
        data = self.path.read_bytes() if self.path.exists() else b""
        for number, raw in enumerate(data.split(b"\n"), 1):
            if not raw.strip():
                continue
            try:
                line = self.kind.model_validate_json(raw)
                if line.key in keys:
                    raise ValueError(f"there is another line with the key {line.key!r}")
                keys.add(line.key)
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
    weights: str | None = None

    @cached_property
    def run(self) -> Config:
        r"""The configuration of the run."""
        return Config.from_dict(self.config)

    @property
    def table_run(self) -> TableRun:
        r"""The run of the table."""
        return TableRun(self.table, self.row, self.variant, self.label, self.run)

    @model_validator(mode="after")
    def _has_its_metric(self) -> "LedgerEntry":
        if self.result["metric"] != self.run.training.metric:
            raise ValueError(f"result.metric must be that of config, got {self.result['metric']!r}")
        return self


def ledger_of(table: str, results: str | Path) -> JsonLines[LedgerEntry]:
    r"""Returns the ledger of a table (``"zinc"``, ``"compare/NAME"`` or ``"runs"``)."""
    return JsonLines(Path(results) / f"{table}.jsonl", LedgerEntry)


def readable(results: str | Path) -> Path:
    r"""Returns the folder to read ledgers from: the given one; if that is the default and does not
    exist, that of the clone, or of the installed package."""
    if Path(results) != Path("results") or Path(results).is_dir():
        return Path(results)
    clone = Path(__file__).parents[2]
    if (clone / "pyproject.toml").is_file():
        return clone / "results"
    return Path(str(files("fognn").joinpath("kept", "results")))


def ledger_entry(folder: Path, run: Run | None = None) -> LedgerEntry:
    r"""Returns the ledger line of a finished run: of a table, or else for ``runs.jsonl``."""
    folder = Path(folder)
    result, config = Result.read(folder), Config.read(folder / "config.yaml")
    shared, metric, history = portable(config), config.training.metric, read_metrics(folder)
    # JSON has no NaN. A fold's loss can be NaN at the best epoch of the mean curve.
    content = json.loads(result.model_dump_json(), parse_constant=lambda _: None)
    # Without paths of this machine: the command repeats the run from any clone.
    content |= {"command": command_of(config), "data": shared.data.name}
    content["fingerprint"] = result.fingerprint or data_fingerprint(config)
    columns = {"lr": "lr", "train_loss": "train_loss", "val_loss": "val_loss"}
    columns |= {split: f"{split}_{metric}_items" for split in ("train", "val")}
    curve = {new: [_rounded(row[old]) for row in history] for new, old in columns.items()}
    finished = datetime.fromtimestamp((folder / "result.json").stat().st_mtime, UTC)
    names = {"key": other_key(config), "table": "runs", "row": "", "variant": ""}
    return LedgerEntry(
        **(names | {"label": config.model.name} if run is None else _names(run)),
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


def relabelled(entry: LedgerEntry, run: Run) -> LedgerEntry:
    r"""Returns the ledger line of the same run for another table that has it."""
    # The file of the weights is that of the other table.
    return entry.model_copy(update=_names(run) | {"weights": None})


def _names(run: Run) -> dict[str, str]:
    return {name: getattr(run, name) for name in ("key", "table", "row", "variant", "label")}


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None

r"""The ledger of measured runs: one line for each finished run in ``results/TABLE.jsonl``. Runs
that are not in the paper's tables are in ``results/runs.jsonl``, those of ``fognn compare`` in
``results/compare/NAME.jsonl``.

Beside it are the kept weights, ``weights/TABLE/ROW.safetensors``. Of all runs of a row by its own
protocol, on all of the data, those of the lowest seed are kept, at the epoch whose figure the table
shows. So that all files together stay small, a run over folds keeps those of its first fold, and a
run that several tables have is kept for the first of them."""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Generic, TypeVar

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from fognn.experiments.protocols import command_of
from fognn.experiments.rows import TABLES, get_row
from fognn.experiments.tables import Run, TableRun, other_key, portable
from fognn.models import Task
from fognn.models.weights import SUFFIX, Weights, write_weights
from fognn.training import Config, Result, evaluate
from fognn.training.data import data_fingerprint
from fognn.training.networks import read_checkpoint
from fognn.training.run_folder import TIMES, read_metrics
from fognn.utils import checks
from fognn.utils.errors import FognnError, first_problem
from fognn.utils.files import sha256_of, user_path, write_whole

COMPARE = "compare/"  # the beginning of the table of a comparison


class KeyedLine(BaseModel):
    r"""A line with a unique key about a run or a search. Fields of a later version are kept."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False)

    key: str
    table: str  # "compare/NAME" for a comparison, "runs" for a run that is in no table
    row: str  # the id of its row, such as "zinc/gcn+fog"
    variant: str
    label: str

    def dump(self) -> bytes:
        r"""Returns the line, without fields that are :obj:`None`."""
        content = {name: value for name, value in self.model_dump().items() if value is not None}
        return json.dumps(content, allow_nan=False).encode()


Line = TypeVar("Line", bound=KeyedLine)


class JsonLines(Generic[Line]):
    r"""A file with one JSON object per line and unique keys, to which several processes can write:
    it is replaced in one step, so readers need no lock. An invalid line, such as one of another
    version, is skipped with a warning, and stays in the file as it is."""

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


class LedgerEntry(KeyedLine):
    r"""A line of the ledger: one finished run."""

    model: str
    data: str
    seed: int
    config: dict[str, Any]  # all settings, as in config.yaml, without folders
    result: dict[str, Any]  # as in result.json; the command repeats the run from a fresh clone
    curve: dict[str, list[float | int | None]]  # of each epoch, over items; None if not finite
    finished: str  # in ISO format and UTC
    weights: str | None = None  # the SHA-256 of the file of its weights, if they are kept

    @cached_property
    def run(self) -> Config:
        r"""The configuration of the run."""
        return Config.from_dict(self.config)

    @model_validator(mode="after")
    def _is_whole(self) -> "LedgerEntry":
        metric = Result.model_validate(self.result, strict=True).metric
        if metric != self.run.training.metric:
            raise ValueError(f"result.metric must be that of config, got {metric!r}")
        return self


def ledger_of(table: str, results: str | Path) -> JsonLines[LedgerEntry]:
    r"""Returns the ledger of a table (``"zinc"``, ``"compare/NAME"`` or ``"runs"``)."""
    return JsonLines(Path(results) / f"{table}.jsonl", LedgerEntry)


def readable(results: str | Path, pattern: str = "*.jsonl") -> Path:
    r"""Returns the folder to read ledgers from: the given one; if that is the default and has no
    files of the pattern, that of the clone, or of the installed package."""
    if Path(results) != Path("results") or any(Path(results).glob(pattern)):
        return Path(results)
    clone = Path(__file__).parents[2]
    if (clone / "pyproject.toml").is_file():
        return clone / "results"
    return Path(str(files("fognn").joinpath("kept", "results")))


def ledger_entry(folder: Path, run: Run | None = None) -> LedgerEntry:
    r"""Returns the ledger line of a finished run: of a table, or else for ``runs.jsonl``."""
    result, config = Result.read(folder), Config.read(folder / "config.yaml")
    shared, metric, history = portable(config), config.training.metric, read_metrics(folder)
    # JSON has no NaN. A fold's loss can be NaN at the best epoch of the mean curve.
    content = json.loads(result.model_dump_json(), parse_constant=lambda _: None)
    content |= {"command": command_of(config), "data": shared.data.name}
    content["fingerprint"] = result.fingerprint or data_fingerprint(config)
    columns: dict[str, Sequence[str]] = {n: (n,) for n in ("lr", "train_loss", "val_loss")}
    columns |= {split: (f"{split}_{metric}_items",) for split in ("train", "val")}
    columns["seconds"] = TIMES
    curve = {"epoch": [row["epoch"] for row in history]}
    for name, summed in columns.items():
        curve[name] = [_rounded(sum(row[one] for one in summed)) for row in history]
    finished = datetime.fromtimestamp((folder / "result.json").stat().st_mtime, UTC)
    names = {"key": other_key(config), "table": "runs", "row": "", "variant": ""}
    return LedgerEntry(
        **(names | {"label": config.model.name} if run is None else names_of(run)),
        model=config.model.name,
        data=shared.data.name,
        seed=config.seed,
        config=shared.to_dict(),
        result=content,
        curve=curve,
        finished=finished.isoformat(timespec="seconds"),
    )


def names_of(run: Run) -> dict[str, str]:
    r"""Returns the fields of a line that name its run."""
    return {name: getattr(run, name) for name in ("key", "table", "row", "variant", "label")}


def _rounded(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


# --- kept weights ---

# What no other training of the same run has in common with it.
_FIGURES = ("train", "val", "test", "epochs", "seconds")


def add_to_ledger(run: Run, folder: Path, results: Path) -> None:
    r"""Adds a finished run to the ledger of its table, and keeps its weights, if the run folder has
    the checkpoint and no lower seed of its row has some. If the process is killed between the two
    files, the same call repairs the line."""
    entry = ledger_entry(folder, run)
    file = weights_of(results) / f"{kept_name(entry)}{SUFFIX}"

    def change(lines: list[LedgerEntry]) -> list[LedgerEntry]:
        before = next((line for line in lines if line.key == entry.key), entry)
        same = all(before.result.get(name) == entry.result.get(name) for name in _FIGURES)
        new = before if same else entry  # a copied run folder is as new as the copy
        alike = [line for line in lines if (line.row, line.variant) == (run.row, run.variant)]
        others = [line for line in alike if line.weights and line.seed != entry.seed]
        lowest = all(line.seed > entry.seed for line in others)
        kept = new.weights and file.is_file()
        wanted = isinstance(run, TableRun) and run.keeps_weights and lowest and not kept
        checksum = _write(file, entry, folder) if wanted else None
        if checksum is None:
            return [new]
        without = [line.model_copy(update={"weights": None}) for line in others]
        return [new.model_copy(update={"weights": checksum}), *without]

    ledger_of(run.table, results).change(change)


def weights_of(results: str | Path) -> Path:
    r"""Returns the folder of the weights: ``weights``, beside the ledgers."""
    return user_path(results).absolute().with_name("weights")


def kept_name(entry: LedgerEntry) -> str:
    r"""Returns the name of the weights of a run: its key without the seed, ``"zinc/gcn+fog"``."""
    return entry.key.removesuffix(f"-seed{entry.seed}")


def _kept_result(entry: LedgerEntry) -> dict[str, Any]:
    r"""Returns the result of the kept weights: of a run over folds, that of its first fold."""
    return (entry.result.get("folds") or [entry.result])[0]


def _write(file: Path, entry: LedgerEntry, folder: Path) -> str | None:
    r"""Writes the weights of a run, if it has a checkpoint, and returns their checksum."""
    result, at = _kept_result(entry), TABLES[entry.table].at
    checkpoint = (folder / "fold-1" if entry.result.get("folds") else folder) / f"{at}.ckpt"
    if not checkpoint.exists():
        return None
    epoch = result["epochs"] if at == "last" else result["best_epoch"]
    content = read_checkpoint(checkpoint)
    settings = portable(Config.from_dict(content["config"])).to_dict()
    task = None if content["task"] is None else Task(**content["task"]).to_dict()
    write_weights(file, Weights(entry.key, entry.seed, epoch, settings, task, content["model"]))
    return sha256_of(file)


@dataclass(frozen=True)
class Check:
    r"""The figures of a row's weights, over batches and over items, in the ledger and here."""

    name: str
    seed: int | None  # None if no line names the file
    digits: int  # with which tables show the figures
    ledger: tuple[float, ...]
    here: tuple[float, ...] = ()
    problem: str = ""  # why they could not be measured

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
    data: str | Path | None = None,
    device: str = "auto",
) -> Iterator[Check]:
    r"""Evaluates the kept weights of tables (by default all), and compares with the ledgers. A
    network that cannot be evaluated, or a file that no line names, is one with a problem."""
    for table in tables or ():
        checks.known("verify", "table", table, TABLES)
    results = readable(user_path(results))
    if not results.is_dir():
        raise ValueError(f"verify: results must be a folder with ledgers, got {str(results)!r}")
    place = weights_of(results)
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
    result = _kept_result(entry)
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

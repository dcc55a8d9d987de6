r"""The run folder: its lock, its files, and the result in ``result.json``."""

import math
import statistics
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import torch
from filelock import FileLock, Timeout
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from fognn.training.config import Config
from fognn.training.environment import environment, peak_memory
from fognn.training.objective import LOWER_IS_BETTER
from fognn.utils.errors import Stopped, TrainingError, first_problem
from fognn.utils.files import write_whole

TIMES = ("train_seconds", "val_seconds")
# The result first: a kill in between leaves a run that is not finished.
_FILES = ("result.json", "last.ckpt", "best.ckpt", "metrics.csv", "log.txt", "config.yaml")
# JSON has no NaN: the ledger has null for a score that is not finite.
_Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
Scores = dict[str, dict[str, _Number]]


class Result(BaseModel):
    r"""The result of a finished run, with its scores in :attr:`metrics`. The best epoch is the one
    with the best validation metric over items. Training scores are those of weights that change."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    folder: Path = Field(default=Path(), exclude=True)  # not in result.json
    command: str  # that repeats or resumes the run
    data: str
    model: str
    seed: int
    parameters: int  # the number of those that are trained
    metric: str
    higher_is_better: bool
    epochs: int = Field(ge=1)
    best_epoch: int = Field(ge=1)
    stopped: str  # "rate" (the learning rate fell below min_lr, in all folds) or "epochs"
    seconds_per_epoch: float  # median, with validation
    seconds: float  # of all epochs, with validation
    train: Scores  # "last" and "best" epoch: the "loss", the metric over "batches" and "items"
    val: Scores
    test: Scores | None
    device: str
    threads: int
    ranks: int
    versions: dict[str, str]
    commit: str | None  # or several; None if fognn was not run from a clone
    machine: dict[str, Any]
    spread: Scores | None = None  # standard deviations over folds
    folds: list[dict[str, Any]] = []
    fingerprint: str = ""  # of the graphs, or images, of all splits
    peak_memory: int | None = None  # of the process, or of tensors on CUDA, in bytes
    initial_weights: str = ""  # where those of a network that is a Python object come from
    majority_class: bool = False  # the test metric is that of the most frequent class for all

    @field_validator("train", "val", "test")
    @classmethod
    def _complete(cls, scores: Scores | None) -> Scores | None:
        for at in ("last", "best"):
            if scores is not None and not {"loss", "items", "batches"} <= scores.get(at, {}).keys():
                raise ValueError(f"{at} must have loss, items and batches")
        return scores

    @property
    def metrics(self) -> dict[str, float]:
        r"""All scores in one flat dict: ``"test/mae"`` and ``"test/loss"`` are those at the best
        epoch, over all items; ``"test/mae/last/batches"`` names the epoch (``last`` or ``best``)
        and what the metric is averaged over (``batches`` or ``items``). Few-shot images also have
        ``"test/accuracy/best/interval"``, the half-width of the 95 % interval."""
        found: dict[str, float] = {}
        for split in ("train", "val", "test"):
            name = f"{split}/{self.metric}"
            for at, scores in (getattr(self, split) or {}).items():
                if at == "best":
                    found |= {name: scores["items"], f"{split}/loss": scores["loss"]}
                found |= {f"{name}/{at}/{over}": scores[over] for over in scores if over != "loss"}
        return found

    def save(self) -> None:
        r"""Writes ``result.json`` into the folder."""
        _write(self.folder / "result.json", self.model_dump_json(indent=2) + "\n")

    @classmethod
    def read(cls, folder: str | Path) -> "Result":
        r"""Reads the result of a run folder; raises unless the run has finished."""
        path = Path(folder) / "result.json"
        if not path.is_file():
            raise ValueError(f"{folder} is not a finished run: it has no result.json")
        try:
            read = cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise ValueError(
                f"{path} is not a valid result ({first_problem(error)}): remove it and train again"
            ) from error
        return read.model_copy(update={"folder": path.parent})

    def __str__(self) -> str:
        unit = " %" if "accuracy" in self.metric else ""
        split, scores = ("val", self.val) if self.test is None else ("test", self.test)
        parts = []
        for at in ("last", "best"):
            within = f" ± {scores[at]['interval']:.2f}" if "interval" in scores[at] else ""
            parts.append(f"at the {at} epoch {scores[at]['items']:.4f}{within}{unit}")
        only = ", which is that of the most frequent class for all" if self.majority_class else ""
        return (
            f"{self.model} on {self.data}, seed {self.seed}: {split} "
            f"{self.metric.replace('_', ' ')} {' and '.join(parts)}{only} ({self.epochs} epochs, "
            f"best {self.best_epoch}, {self.parameters:,} parameters)"
        )


@dataclass
class State:
    r"""The progress of a run."""

    history: list[dict[str, Any]] = field(default_factory=list)  # the rows of metrics.csv
    best_epoch: int = 0  # that of best.ckpt, from 1
    stopped: str = ""  # why the training ended, see Result; empty if it has not
    commits: list[str] = field(default_factory=list)  # of fognn, that trained the run

    def to_dict(self) -> dict[str, Any]:
        r"""Returns tensors and plain values, for a checkpoint."""
        rows = pd.DataFrame(self.history)  # one tensor is saved much faster than its numbers
        tensor = torch.tensor(rows.to_numpy(float))
        return vars(self) | {"history": tensor, "names": list(rows.columns)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "State":
        r"""Builds the state from the result of :meth:`to_dict`."""
        rows = pd.DataFrame(content["history"].numpy(), columns=content["names"])
        history = rows.astype({"epoch": int}).to_dict("records")
        return cls(history, content["best_epoch"], content["stopped"], content["commits"])

    def is_best(self, metric: str) -> bool:
        r"""Returns whether the last epoch has the best validation metric over items so far."""
        *before, last = (row[f"val_{metric}_items"] for row in self.history)
        finite = [value for value in before if math.isfinite(value)]
        lower = metric in LOWER_IS_BETTER
        return not finite or (last < min(finite) if lower else last > max(finite))


def summarise(
    config: Config, folder: Path, state: State, test: Scores | None, **rest: Any
) -> Result:
    r"""Builds a result from the epochs, the scores of the test split, and its other fields."""
    metric = config.training.metric
    rows = {"last": state.history[-1], "best": state.history[state.best_epoch - 1]}
    seconds = [sum(row[name] for name in TIMES) for row in state.history]
    return Result(
        folder=folder,
        data=config.data.name,
        model=config.model.name,
        seed=config.seed,
        metric=metric,
        higher_is_better=metric not in LOWER_IS_BETTER,
        epochs=len(state.history),
        best_epoch=state.best_epoch,
        stopped=state.stopped,
        seconds_per_epoch=statistics.median(seconds),
        seconds=sum(seconds),
        train={at: epoch_scores(row, metric, "train") for at, row in rows.items()},
        val={at: epoch_scores(row, metric, "val") for at, row in rows.items()},
        test=test,
        peak_memory=peak_memory(rest["device"]),
        majority_class=test is not None and "majority" in test["best"],
        **(environment() | {"commit": ", ".join(state.commits) or None} | rest),
    )


def epoch_scores(row: dict[str, Any], metric: str, split: str) -> dict[str, float]:
    r"""Returns the scores of a split from a row of ``metrics.csv``."""
    over = {kind: row[f"{split}_{metric}_{kind}"] for kind in ("batches", "items")}
    return {"loss": row[f"{split}_loss"]} | over


class RunFolder(AbstractContextManager["RunFolder"]):
    r"""The folder of a run, locked for one process; with :obj:`again`, an old run is removed."""

    def __init__(self, path: Path, config: Config, again: bool = False) -> None:
        self.path, self.config_file = path, path / "config.yaml"
        check_folder(path, config, longer=True)
        path.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(path / ".lock")
        try:
            self.lock.acquire(timeout=0)
        except Timeout as error:
            raise TrainingError(f"{path} is in use: another process trains in it") from error
        old = [path / name for name in _FILES if again]
        for left in (*old, *path.glob(".tmp-*")):  # of a process that was killed while it wrote
            left.unlink(missing_ok=True)
        if not self.config_file.exists():
            _write(self.config_file, config.to_yaml())

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, TrainingError | Stopped):
            self.log(str(error))
        self.lock.release()

    def extend(self, config: Config) -> None:
        r"""Gives the run more epochs, if ``config`` has more."""
        if Config.read(self.config_file).training.epochs < config.training.epochs:
            # First: a kill in between leaves an interrupted run.
            (self.path / "result.json").unlink(missing_ok=True)
            _write(self.config_file, config.to_yaml())

    def log(self, text: str) -> None:
        r"""Appends a line with the time to ``log.txt``."""
        with open(self.path / "log.txt", "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {text}\n")

    def write_metrics(self, history: list[dict[str, Any]]) -> None:
        r"""Writes ``metrics.csv``, one line for each epoch."""
        _write(self.path / "metrics.csv", pd.DataFrame(history).to_csv(index=False, na_rep="nan"))


def _write(path: Path, text: str) -> None:
    with write_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_folder(path: Path, config: Config, longer: bool = False) -> None:
    r"""Raises unless the folder is new, empty or the folder of this run; with :obj:`longer`, also
    of one with fewer epochs, unless the learning rates depend on their number."""
    if not (path / "config.yaml").exists():
        for part in path.glob("*"):  # a run that was killed at its start leaves .tmp- files
            if not part.name.startswith((".tmp-", ".lock")):
                raise ValueError(
                    f"folder must be new, empty or of this run, got {str(path)!r}, which has "
                    f"{part.name!r} and no config.yaml"
                )
        return
    there = Config.read(path / "config.yaml")
    epochs = config.training.epochs
    if longer and there.training.epochs < epochs and there.training.schedule != "cosine":
        there = there.with_values({"training.epochs": epochs})
    if differences := there.differences(config):
        raise ValueError(
            f"folder {str(path)!r} holds another run ({'; '.join(differences[:4])}, in the folder "
            "and as requested): name another folder"
        )


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    r"""Reads ``metrics.csv``: one dict of numbers for each epoch."""
    texts = pd.read_csv(folder / "metrics.csv", dtype=str, keep_default_na=False)
    return texts.astype(float).astype({"epoch": int}).to_dict("records")

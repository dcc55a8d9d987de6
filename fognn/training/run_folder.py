r"""The run folder: its files, and its lock."""

import csv
import io
import sys
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fognn.training.config import Config
from fognn.training.result import Result
from fognn.utils.errors import TrainingError
from fognn.utils.files import write_whole

__all__ = ["RunFolder", "check_folder", "finished", "in_use", "read_metrics"]

TIMES = ("train_seconds", "val_seconds")
# The result first: a kill in between leaves a run that is not finished.
_FILES = ("result.json", "last.ckpt", "best.ckpt", "metrics.csv", "log.txt", "config.yaml")


class RunFolder:
    r"""The folder of a run, locked by one process at a time.

    Args:
        path (Path): The folder. It is created if it does not exist.
        config (Config): The run. A run with fewer epochs can be in the folder, see :meth:`extend`.
        again (bool, optional): If set to :obj:`True`, removes what the folder has of the run.
            (default: :obj:`False`)

    Raises:
        ValueError: If the folder is not empty and not of this run.
        TrainingError: If another process has locked it.
    """

    def __init__(self, path: Path, config: Config, again: bool = False) -> None:
        self.path = path
        check_folder(path, config, longer=True)
        path.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(path / ".lock")
        try:
            self.lock.acquire(timeout=0)
        except Timeout as error:
            raise TrainingError(f"{path} is in use: another process trains in it") from error
        # Temporary files of a process that was killed while it wrote.
        for left in path.glob(".tmp-*"):
            left.unlink(missing_ok=True)
        for name in _FILES if again else ():
            (path / name).unlink(missing_ok=True)
        if not self.config_file.exists():
            self._write(self.config_file, config.to_yaml())

    def has_fewer_epochs(self, config: Config) -> bool:
        r"""Returns whether ``config.yaml`` has fewer epochs than ``config``."""
        return Config.read(self.config_file).training.epochs < config.training.epochs

    def extend(self, config: Config) -> None:
        r"""Gives the run more epochs. The result is removed first, so that a process that
        is killed in between leaves an interrupted run, with the old or with the new number of
        epochs, and never the result of one with the configuration of the other.

        Args:
            config (Config): The run, with the new number of epochs.
        """
        (self.path / "result.json").unlink(missing_ok=True)
        self._write(self.config_file, config.to_yaml())

    def close(self) -> None:
        r"""Releases the lock."""
        self.lock.release()

    @property
    def config_file(self) -> Path:
        r"""The configuration."""
        return self.path / "config.yaml"

    @property
    def last(self) -> Path:
        r"""The checkpoint of the last epoch, to resume from."""
        return self.path / "last.ckpt"

    @property
    def best(self) -> Path:
        r"""The checkpoint of the best epoch, with the weights only."""
        return self.path / "best.ckpt"

    def log(self, text: str) -> None:
        r"""Appends a line with the time to ``log.txt``."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with open(self.path / "log.txt", "a", encoding="utf-8") as file:
            file.write(f"{stamp}  {text}\n")

    def write_metrics(self, history: list[dict[str, Any]]) -> None:
        r"""Writes ``metrics.csv``, one line for each epoch."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(history[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)
        self._write(self.path / "metrics.csv", text.getvalue())

    @staticmethod
    def _write(path: Path, text: str) -> None:
        with write_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def check_folder(path: Path, config: Config, longer: bool = False) -> None:
    r"""Raises unless the folder is new, empty or the folder of this run. Writes nothing.

    Args:
        path (Path): The folder.
        config (Config): The run.
        longer (bool, optional): If set to :obj:`True`, the folder can also be that of a run with
            fewer epochs and otherwise the same settings. With the schedule ``"cosine"`` that
            raises: the learning rates of the epochs before depend on the number of epochs.
            (default: :obj:`False`)
    """
    file = path / "config.yaml"
    if not file.exists():
        if path.exists() and not path.is_dir():
            raise ValueError(f"folder must not be a file, got {str(path)!r}")
        foreign = [p.name for p in path.iterdir()] if path.exists() else []
        # A run that was killed before it wrote its first file may have left these.
        foreign = [name for name in foreign if not name.startswith((".tmp-", ".lock"))]
        if foreign:
            raise ValueError(
                f"folder must be new, empty or the folder of this run, got {str(path)!r}, which "
                f"has {foreign[0]!r} and no config.yaml"
            )
        return
    there, epochs = Config.read(file), config.training.epochs
    before = there.training.epochs
    if longer and before < epochs:
        there = there.with_values({"training.epochs": epochs})
    differences = there.differences(config)
    if longer and before < epochs and not differences and config.training.schedule == "cosine":
        raise ValueError(
            f"config: training.epochs must be {before} for the run in {str(path)!r}, because the "
            f"learning rates of the schedule 'cosine' depend on it, got {epochs}: name another "
            "folder to train a new run"
        )
    if differences:
        raise ValueError(
            f"folder {str(path)!r} holds another run ({'; '.join(differences[:4])}, in the folder "
            "and as requested): name another folder, or remove this one"
        )


def in_use(path: Path) -> bool:
    r"""Returns whether a process trains in the folder."""
    if not (path / ".lock").exists():
        return False
    lock = FileLock(path / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def finished(path: Path, config: Config) -> Result | None:
    r"""Returns the result of a run that has no epoch left to train; :obj:`None` if it is new,
    interrupted, or has fewer epochs than requested.

    Args:
        path (Path): The run folder, which :func:`check_folder` has accepted.
        config (Config): The run.
    """
    if not (path / "result.json").exists():
        return None
    result = Result.read(path)
    if Config.read(path / "config.yaml").training.epochs >= config.training.epochs:
        print(f"fognn: already finished in {path}; --again trains it anew", file=sys.stderr)
        return result
    if result.stopped != "rate":
        return None
    print(
        f"fognn: already finished in {path}: its learning rate fell below "
        f"{config.training.min_lr:g} after {result.epochs} epochs, so more of them change nothing; "
        "--again trains it anew",
        file=sys.stderr,
    )
    return result


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    r"""Reads ``metrics.csv``: one dict of numbers for each epoch."""
    path = folder / "metrics.csv"
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return [
                {name: int(text) if name == "epoch" else float(text) for name, text in row.items()}
                for row in csv.DictReader(file)
            ]
    except FileNotFoundError as error:
        raise ValueError(f"{path} does not exist: the run has not finished an epoch yet") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} must have a number in each cell: {error}") from error

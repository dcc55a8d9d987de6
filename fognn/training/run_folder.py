r"""The folder of a run: what is in it, and who may write to it."""

import csv
import io
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fognn.training.config import Config
from fognn.utils.errors import TrainingError
from fognn.utils.files import disk_error, write_whole

__all__ = ["RunFolder", "check_folder", "read_metrics"]

TIMES = ("train_seconds", "val_seconds")


class RunFolder:
    r"""The folder of one run, held by one process at a time.

    Args:
        path: The folder. It is made if it is not there; one of another configuration is refused.
        config: The run.
    """

    def __init__(self, path: Path, config: Config) -> None:
        self.path = path
        check_folder(path, config)
        try:
            path.mkdir(parents=True, exist_ok=True)
            self.lock = FileLock(path / ".lock")
            self.lock.acquire(timeout=0)
        except Timeout as error:
            raise TrainingError(f"{path} is in use: another process trains in it") from error
        except OSError as error:
            raise disk_error(path, error) from error
        # A process that was killed while it wrote leaves its temporary file behind.
        for left in path.glob(".tmp-*"):
            left.unlink(missing_ok=True)
        if not self.config_file.exists():
            self._write(self.config_file, config.to_yaml())

    def close(self) -> None:
        self.lock.release()

    @property
    def config_file(self) -> Path:
        return self.path / "config.yaml"

    @property
    def last(self) -> Path:
        return self.path / "last.ckpt"

    @property
    def best(self) -> Path:
        return self.path / "best.ckpt"

    def log(self, text: str) -> None:
        r"""Adds a line with the time to ``log.txt``."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        try:
            with open(self.path / "log.txt", "a", encoding="utf-8") as file:
                file.write(f"{stamp}  {text}\n")
        except OSError as error:
            raise disk_error(self.path / "log.txt", error) from error

    def write_metrics(self, history: list[dict[str, Any]]) -> None:
        r"""Writes ``metrics.csv``, one line an epoch."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(history[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)
        self._write(self.path / "metrics.csv", text.getvalue())

    @staticmethod
    def _write(path: Path, text: str) -> None:
        with write_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def check_folder(path: Path, config: Config) -> None:
    r"""Refuses a folder that is not empty and not this run's; changes nothing."""
    file = path / "config.yaml"
    if not file.exists():
        if path.exists() and not path.is_dir():
            raise ValueError(f"folder must not be a file, got {str(path)!r}")
        foreign = [p.name for p in path.iterdir()] if path.exists() else []
        # What a run that was killed before its first file may have left.
        foreign = [name for name in foreign if not name.startswith((".tmp-", ".lock"))]
        if foreign:
            raise ValueError(
                f"folder must be empty, new, or that of this run; {str(path)!r} holds "
                f"{foreign[0]!r} and no config.yaml"
            )
        return
    differences = Config.read(file).differences(config)
    if differences:
        raise ValueError(
            f"folder {str(path)!r} holds another run ({'; '.join(differences[:4])}, there "
            "and here): name another folder, or remove this one"
        )


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    r"""The rows of ``metrics.csv``, as numbers."""
    path = folder / "metrics.csv"
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return [
                {name: int(text) if name == "epoch" else float(text) for name, text in row.items()}
                for row in csv.DictReader(file)
            ]
    except FileNotFoundError as error:
        raise ValueError(f"{path} is not there: the run has not finished an epoch yet") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} must hold a number in each place: {error}") from error

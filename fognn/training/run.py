r"""Training of a run with one or several ranks, and over one or all folds."""

import signal
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import torch
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from fognn.training.checkpoint import content_of, read_checkpoint, untrained_model
from fognn.training.config import Config
from fognn.training.data import folds_of, task_of
from fognn.training.environment import device_of
from fognn.training.fabric import check_threads, rank
from fognn.training.folds import fit_folds
from fognn.training.given import is_given
from fognn.training.loggers import check_logger
from fognn.training.loop import LostRankError, check_ranks, fit_one
from fognn.training.own_data import check_own, is_own
from fognn.training.result import Result
from fognn.training.run_folder import check_folder, finished
from fognn.utils.errors import FileError, Stopped, TrainingError
from fognn.utils.files import user_path
from fognn.utils.own_code import import_asked

__all__ = ["fit"]

_INTERVAL = 0.2  # seconds after which the launcher looks at the ranks again


def fit(
    config: Config,
    folder: str | Path,
    command: str | None = None,
    quiet: bool = False,
    logger: str | None = None,
) -> Result:
    r"""Trains a run, resumes an interrupted one, or reads a finished one. A run with fewer epochs
    and otherwise the same settings is resumed, too: the result is that of a run which had the new
    number of epochs from the beginning.

    Args:
        config (Config): The run.
        folder (str): The run folder. It must be new, empty or the folder of this run.
        command (str, optional): The command that repeats the run, for messages and
            ``result.json``. (default: ``fognn train --config FOLDER/config.yaml -o FOLDER``)
        quiet (bool, optional): If set to :obj:`True`, shows no progress. (default: :obj:`False`)
        logger (str, optional): ``"tensorboard"``, ``"mlflow"`` or ``"wandb"``, in addition to
            ``metrics.csv``. (default: :obj:`None`)

    Returns:
        The result.

    Raises:
        ValueError: If a setting is invalid, or the folder is not empty and not of this run.
        TrainingError: If the loss is not finite, a rank ends, or another process uses the folder.
        Stopped: If the run was interrupted (Ctrl-C or SIGTERM); its state is saved.
    """
    folder = user_path(folder)
    if command is None:
        command = f"fognn train --config {folder / 'config.yaml'} -o {folder}"
    if not (folder / "result.json").exists():  # raises before the folder is created
        device_of(config.machine.device)
        check_threads(config.machine)
        if is_own(config.data):
            check_own(config)
        if logger is not None:
            check_logger(logger)
    if folds_of(config.data):
        return fit_folds(
            config, folder, command, lambda part, place: fit(part, place, command, quiet, logger)
        )
    started = torch.distributed.is_torchelastic_launched()
    if config.machine.ranks > 1 and not started:
        if is_given(config.data.name) or is_given(config.model.name):
            raise ValueError(
                "config: machine.ranks must be 1 for data or a network that are Python objects, or "
                f"start the program with torchrun, got {config.machine.ranks}"
            )
        return _fit_ranks(config, folder, command, quiet, logger)
    return fit_one(config, folder, command, quiet, logger)


def _fit_ranks(
    config: Config, folder: Path, command: str, quiet: bool, logger: str | None
) -> Result:
    r"""Starts the ranks with torch's own launcher, which torchrun uses, and waits for them."""
    # Checks here raise one error, before each rank would raise its own.
    check_folder(folder, config, longer=True)
    done = finished(folder, config)
    if done is not None:
        return done
    untrained_model(config, task_of(config.data))
    last = folder / "last.ckpt"
    if last.exists():
        saved = read_checkpoint(last)
        with content_of(last):
            batch = saved["state"]["batch"]
        check_ranks(folder, batch, config.machine.ranks)
    settings = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=config.machine.ranks,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        monitor_interval=_INTERVAL,
    )
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        elastic_launch(settings, _rank)(config.to_dict(), str(folder), command, quiet, logger)
    except SignalException as error:
        raise Stopped(
            f"stopped, the state after the last finished epoch is saved in {folder}; to resume: "
            f"{command}"
        ) from error
    except ChildFailedError as error:
        number, failure = _cause(error)
        raise TrainingError(
            f"rank {number} of {config.machine.ranks} ended ({_reason(failure.exitcode)}), so the "
            f"others were stopped; the checkpoint of the last finished epoch is in {folder}; to "
            f"resume: {command}"
        ) from error
    finally:
        # The launcher does not restore the signal handlers.
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)
    return Result.read(folder)


def _rank(
    content: dict[str, Any], folder: str, command: str, quiet: bool, logger: str | None
) -> None:
    try:
        import_asked()
        fit_one(Config.from_dict(content), Path(folder), command, quiet, logger)
    except (ValueError, ImportError, FileError, TrainingError, Stopped) as error:
        # One line, because the launcher would print the traceback of each rank.
        print(f"fognn: rank {rank()}:", error, file=sys.stderr, flush=True)
        if isinstance(error, LostRankError):
            # The launcher names one of the ranks that ended since its last look. It should find the
            # lost one alone, and stops this one then.
            time.sleep(5 * _INTERVAL)
        sys.exit(1)


def _cause(error: ChildFailedError) -> tuple[int, ProcessFailure]:
    r"""Returns the rank that failed first, and its failure. A rank that lost another one may abort
    before the launcher has looked, so an abort counts only if there is nothing else."""
    others = {n: f for n, f in error.failures.items() if f.exitcode != -signal.SIGABRT}
    return min((others or error.failures).items(), key=lambda item: item[1].timestamp)


def _reason(exit_code: int) -> str:
    return f"killed by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"exit {exit_code}"

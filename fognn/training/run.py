r"""Training of a run, over one or all folds."""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn import Module

from fognn.data import UserData
from fognn.data.opening import PYTHON
from fognn.training.config import Config
from fognn.training.data import (
    RunData,
    check_user_data,
    data_fingerprint,
    is_user_data,
    joint_fingerprint,
)
from fognn.training.environment import device_of, on_ranks
from fognn.training.loop import show, train_run
from fognn.training.networks import untrained_model
from fognn.training.objective import LOWER_IS_BETTER
from fognn.training.run_folder import (
    Result,
    RunFolder,
    Scores,
    State,
    check_folder,
    epoch_scores,
    read_metrics,
    summarise,
)
from fognn.utils import checks
from fognn.utils.files import user_path


def fit(
    config: Config,
    folder: str | Path,
    *,
    data: UserData | None = None,
    module: Module | None = None,
    command: str | None = None,
    quiet: bool = False,
    logger: str | None = None,
    again: bool = False,
) -> Result:
    r"""Trains a run, resumes an interrupted one, or reads a finished one. A run with fewer epochs
    and otherwise the same settings is resumed, too, with the result of a run that had them all.

    Args:
        config (Config): The run.
        folder (str): The run folder. It must be new, empty or the folder of this run.
        data (UserData, optional): The user's data, whose name ``config`` has, if they are open.
        module (torch.nn.Module, optional): The user's network, of which a copy is trained.
            ``config`` has its :func:`~fognn.training.networks.module_name`.
        command (str, optional): The command that repeats the run, for messages and
            ``result.json``. (default: ``fognn train --config FOLDER/config.yaml -o FOLDER``)
        quiet, logger, again (optional): As in :func:`fognn.train`.
    """
    folder = user_path(folder)
    if command is None:
        command = f"fognn train --config {folder / 'config.yaml'} -o {folder}"
        if config.data.name.startswith(PYTHON) or config.model.name.startswith(PYTHON):
            command = f"fognn.train(data, model, seed={config.seed}, ...), with the same objects"
    check_folder(folder, config, longer=True)
    if (folder / "result.json").exists() and not again:
        done, before = Result.read(folder), Config.read(folder / "config.yaml")
        there = is_user_data(config.data) and (data or Path(config.data.name).exists())
        if before.training.epochs >= config.training.epochs or done.stopped == "rate":
            if there and done.fingerprint not in ("", data_fingerprint(config, data)):
                raise ValueError(
                    f"data {config.data.name!r} have changed since the run in {folder} was "
                    "finished: name another folder, or train it anew (--again)"
                )
            show(f"fognn: already finished in {folder}; --again trains it anew")
            return done
    # Before the folder is created.
    device_of(config.machine.device)
    opened = RunData(config, data)
    for part in opened.folds or [config]:
        check_user_data(part, opened.user)
    if logger is not None:
        checks.one_of("train", "logger", logger, ("tensorboard",))
    rest: dict[str, Any] = {"module": module, "command": command}
    rest |= {"quiet": quiet, "logger": logger, "again": again}
    if not opened.folds:
        return on_ranks(config, train_run, data=opened, folder=folder, **rest)
    untrained_model(config, opened.task, module)  # raises for an invalid setting
    with RunFolder(folder, config, again) as run:
        run.extend(config)
        results = []
        for fold, part in enumerate(opened.folds, 1):
            results.append(fit(part, folder / f"fold-{fold}", data=opened.user, **rest))
            run.log(f"fold {fold}: {results[-1]}")
        result, history = _mean_result(config, folder, command, results)
        run.write_metrics(history)
        result.save()
        run.log(str(result))
        return result


def _mean_result(
    config: Config, folder: Path, command: str, results: list[Result]
) -> tuple[Result, list[dict[str, Any]]]:
    r"""Returns the mean of the folds and its curve, whose best epoch is that of the result."""
    metric, curves = config.training.metric, [read_metrics(result.folder) for result in results]
    # With a plateau, folds can end at different epochs: the mean ends with the shortest.
    history = [
        {name: statistics.fmean(row[name] for row in rows) for name in rows[0]}
        | {"epoch": rows[0]["epoch"]}
        for rows in zip(*curves, strict=False)
    ]
    curve = [row[f"val_{metric}_items"] for row in history]
    best = curve.index((min if metric in LOWER_IS_BETTER else max)(curve))
    tests = [result.test for result in results if result.test is not None]
    # As in the paper; test scores, with holdout, are those at each fold's own best epoch.
    vals = [
        {"last": result.val["last"], "best": epoch_scores(rows[best], metric, "val")}
        for result, rows in zip(results, curves, strict=True)
    ]
    stopped = "rate" if all(result.stopped == "rate" for result in results) else "epochs"
    commits = list(dict.fromkeys(result.commit for result in results if result.commit))
    shared = {"parameters", "device", "ranks", "threads", "initial_weights"}
    result = summarise(
        config,
        folder,
        State(history, best + 1, stopped, commits),
        _each(tests, statistics.fmean) if tests else None,
        command=command,
        spread=_each(tests or vals, lambda values: float(np.std(values, ddof=1))),
        fingerprint=joint_fingerprint(result.fingerprint for result in results),
        folds=[
            {"fold": fold, "val": val, "test": result.test, "epochs": result.epochs}
            for fold, (val, result) in enumerate(zip(vals, results, strict=True), 1)
        ],
        **results[0].model_dump(include=shared),
    )
    return result, history


def _each(scores: list[Scores], function: Callable[[list[float]], float]) -> Scores:
    names = ("loss", "batches", "items")
    return {
        at: {name: function([score[at][name] for score in scores]) for name in names}
        for at in scores[0]
    }

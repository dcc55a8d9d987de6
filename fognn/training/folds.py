r"""Runs over all folds of a dataset: one run for each fold, and their mean."""

import dataclasses
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fognn.training.checkpoint import untrained_model
from fognn.training.config import Config
from fognn.training.data import folds_of, joint_fingerprint, task_of
from fognn.training.objective import HIGHER_IS_BETTER
from fognn.training.result import Result, Scores, summarise
from fognn.training.run_folder import RunFolder, check_folder, finished, read_metrics

__all__ = ["fit_folds"]


def fit_folds(config: Config, folder: Path, fit: Callable[..., Result], **rest: Any) -> Result:
    r"""Trains all folds one after another, or resumes an interrupted run.

    The folder has a run folder for each fold, and the mean of their curves in ``metrics.csv``. The
    best epoch is that of the mean curve, as in the paper, where all folds have the same number of
    epochs.

    Args:
        config (Config): The run, with ``data.fold=None``.
        folder (Path): The run folder.
        fit (Callable): :func:`fognn.training.fit`, for one fold.
        **rest: Its other arguments.
    """
    check_folder(folder, config, longer=True)
    done = None if rest["again"] else finished(folder, config)
    if done is not None:
        return done
    # Raises for an invalid setting before the folder is created.
    untrained_model(config, task_of(config.data, rest["data"]), rest["module"])
    run = RunFolder(folder, config, rest["again"])
    try:
        if run.has_fewer_epochs(config):
            run.extend(config)
        results = []
        for fold in range(1, folds_of(config.data, rest["data"]) + 1):
            part = dataclasses.replace(config, data=dataclasses.replace(config.data, fold=fold))
            results.append(fit(part, folder / f"fold-{fold}", **rest))
            run.log(f"fold {fold}: {results[-1]}")
        curves = [read_metrics(result.folder) for result in results]
        history = _mean_curve(curves)
        run.write_metrics(history)
        result = _mean_result(config, folder, rest["command"], history, curves, results)
        result.save()
        run.log(str(result))
        return result
    finally:
        run.close()


def _mean_curve(curves: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    # With a plateau, folds can end at different epochs: the mean ends with the shortest.
    return [
        {
            name: rows[0][name] if name == "epoch" else statistics.fmean(row[name] for row in rows)
            for name in rows[0]
        }
        for rows in zip(*curves, strict=False)
    ]


def _mean_result(
    config: Config,
    folder: Path,
    command: str,
    history: list[dict[str, Any]],
    curves: list[list[dict[str, Any]]],
    results: list[Result],
) -> Result:
    metric = config.training.metric
    curve = [row[f"val_{metric}_items"] for row in history]
    best = (max if HIGHER_IS_BETTER[metric] else min)(curve)
    best_epoch = curve.index(best) + 1
    tests = [result.test for result in results if result.test is not None]
    test = _each(tests, statistics.fmean) if tests else None
    # Validation scores of all folds are taken at the best epoch of the mean curve, as in the paper;
    # test scores, with holdout, at each fold's own best epoch.
    at_best = [curve[best_epoch - 1] for curve in curves]
    vals = [
        {
            "last": result.val["last"],
            "best": {
                "loss": row["val_loss"],
                **{kind: row[f"val_{metric}_{kind}"] for kind in ("batches", "items")},
            },
        }
        for result, row in zip(results, at_best, strict=True)
    ]
    first = results[0]
    return summarise(
        config,
        folder,
        command,
        history,
        best_epoch,
        test,
        stopped="rate" if all(result.stopped == "rate" for result in results) else "epochs",
        parameters=first.parameters,
        device=first.device,
        ranks=first.ranks,
        threads=first.threads,
        initial_weights=first.initial_weights,
        commit=", ".join(dict.fromkeys(r.commit for r in results if r.commit)) or None,
        spread=_each(tests or vals, _spread),
        fingerprint=joint_fingerprint(result.fingerprint for result in results),
        folds=[
            {"fold": fold, "val": val, "test": result.test, "epochs": result.epochs}
            for fold, (val, result) in enumerate(zip(vals, results, strict=True), 1)
        ],
    )


def _spread(values: list[float]) -> float:
    return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan


def _each(scores: list[Scores], function: Callable[[list[float]], float]) -> Scores:
    return {
        at: {name: function([score[at][name] for score in scores]) for name in scores[0][at]}
        for at in scores[0]
    }

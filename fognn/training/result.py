r"""What a finished run found, as it stands in ``result.json``."""

import json
import statistics
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from fognn.training.config import Config
from fognn.training.environment import environment
from fognn.training.problem import HIGHER_IS_BETTER
from fognn.utils.files import write_whole

__all__ = ["Result", "Scores", "summarise"]

Scores = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Result:
    r"""What a finished run found.

    ``train``, ``val`` and ``test`` are scores at the ``"last"`` and at the ``"best"`` epoch: each
    has the ``"loss"``, and the metric averaged over ``"batches"`` and over ``"items"``. Those of
    training are taken while the weights change, those of the others at the end of the epoch.
    The best epoch is that of the best validation metric over items; ``test`` was looked at once,
    after the training, and is :obj:`None` where there is no test split.

    Args:
        folder: The run folder.
        command: The command that repeats the run.
        data: Name of the dataset.
        model: Name of the network.
        seed: Its seed.
        parameters: Number of trainable parameters.
        metric: Name of the metric.
        higher_is_better: Whether more of it is better.
        epochs: How many epochs were trained.
        best_epoch: The best one, from 1.
        stopped: Why it ended: ``"rate"`` fell below its end, or all ``"epochs"`` were done.
        seconds_per_epoch: The median time of an epoch, validation included.
        seconds: The time of all epochs.
        train, val, test: See above.
        device, threads, ranks, versions, commit, machine: What it ran on.
        folds: The results of the folds, of a run over all of them.
        spread: The standard deviations over folds, like ``val``.
    """

    folder: Path
    command: str
    data: str
    model: str
    seed: int
    parameters: int
    metric: str
    higher_is_better: bool
    epochs: int
    best_epoch: int
    stopped: str
    seconds_per_epoch: float
    seconds: float
    train: Scores
    val: Scores
    test: Scores | None
    device: str
    threads: int
    ranks: int
    versions: dict[str, str]
    commit: str | None
    machine: dict[str, Any]
    spread: Scores | None = None
    folds: list[dict[str, Any]] = field(default_factory=list)

    def save(self) -> None:
        r"""Writes ``result.json`` into the folder."""
        content = asdict(self)
        del content["folder"]
        with write_whole(self.folder / "result.json") as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: str | Path) -> "Result":
        r"""Reads the result of a run folder."""
        path = Path(folder) / "result.json"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            known = {entry.name for entry in fields(cls)}
            return cls(
                **{"folder": Path(folder)} | {k: v for k, v in content.items() if k in known}
            )
        except FileNotFoundError as error:
            raise ValueError(f"{folder} holds no finished run: result.json is not there") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no result of fognn: {error}") from error

    def __str__(self) -> str:
        name = self.metric.replace("_", " ")
        unit = " %" if "accuracy" in self.metric else ""
        split = "val" if self.test is None else "test"
        scores = self.val if self.test is None else self.test
        parts = [f"{at} epoch {scores[at]['items']:.4f}{unit}" for at in ("last", "best")]
        return (
            f"{self.model} on {self.data}, seed {self.seed}: {split} {name} at the "
            f"{' and at the '.join(parts)} ({self.epochs} epochs, best {self.best_epoch}, "
            f"{self.parameters:,} parameters)"
        )


def summarise(
    config: Config,
    folder: Path,
    command: str,
    history: list[dict[str, Any]],
    best_epoch: int,
    test: Scores | None,
    **rest: Any,
) -> Result:
    r"""The result of a run, from its epochs.

    Args:
        config: The run.
        folder: Its folder.
        command: The command that repeats it.
        history: One row an epoch, as in ``metrics.csv``.
        best_epoch: The best one, from 1.
        test: Scores on the test split.
        **rest: The other fields of :class:`Result`.
    """
    metric = config.training.metric

    def scores(split: str) -> Scores:
        return {
            at: {
                "loss": row[f"{split}_loss"],
                **{kind: row[f"{split}_{metric}_{kind}"] for kind in ("batches", "items")},
            }
            for at, row in (("last", history[-1]), ("best", history[best_epoch - 1]))
        }

    seconds = [row["train_seconds"] + row["val_seconds"] for row in history]
    return Result(
        folder=folder,
        command=command,
        data=config.data.name,
        model=config.model.name,
        seed=config.seed,
        metric=metric,
        higher_is_better=HIGHER_IS_BETTER[metric],
        epochs=len(history),
        best_epoch=best_epoch,
        seconds_per_epoch=statistics.median(seconds),
        seconds=sum(seconds),
        train=scores("train"),
        val=scores("val"),
        test=test,
        **(environment() | rest),
    )

r"""The result of a finished run, stored in ``result.json``."""

import math
import statistics
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from fognn.training.config import Config
from fognn.training.environment import environment, peak_memory
from fognn.training.objective import HIGHER_IS_BETTER
from fognn.utils.errors import first_problem
from fognn.utils.files import write_whole

__all__ = ["Result", "Scores", "summarise"]

# JSON has no NaN: the ledger has null for a score that is not finite.
_Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
Scores = dict[str, dict[str, _Number]]


class Result(BaseModel):
    r"""The result of a finished run, with its scores in :attr:`metrics`.

    The best epoch is the one with the best validation metric over items. The test split is
    evaluated after the training, at the last and at the best epoch. Training scores are
    accumulated during an epoch, while the weights change; validation scores are computed at its
    end.

    Args:
        folder (Path): The run folder. It is not in ``result.json``.
        command (str): The command that repeats or resumes the run.
        data (str): Name of the dataset.
        model (str): Name of the network.
        seed (int): The seed.
        parameters (int): Number of trainable parameters.
        metric (str): Name of the metric.
        higher_is_better (bool): Whether a higher metric is better.
        epochs (int): Number of trained epochs.
        best_epoch (int): The best epoch, from 1.
        stopped (str): Why the training ended: ``"rate"`` (the learning rate fell below
            ``min_lr``, in all folds of a run over folds) or ``"epochs"``.
        seconds_per_epoch (float): Median time of an epoch in seconds, with validation.
        seconds (float): Total time of all epochs in seconds, with validation.
        train (dict): Scores at the ``"last"`` and the ``"best"`` epoch: the ``"loss"``, and the
            metric over ``"batches"`` and over ``"items"``.
        val (dict): The same for the validation split.
        test (dict, optional): The same for the test split, if there is one.
        device (str): The device that it was trained on.
        threads (int): Number of threads of each process.
        ranks (int): Number of processes.
        versions (dict): Versions of the libraries.
        commit (str, optional): Commit, or commits, of fognn, if it was run from a clone.
        machine (dict): Operating system, processor, number of cores and memory.
        spread (dict, optional): Standard deviations over folds, for a run over folds.
        folds (list): Results of the folds, for a run over folds.
        fingerprint (str): Checksum of the graphs, or images, of all splits.
        peak_memory (int, optional): Largest memory of the process in bytes, with the libraries and
            the data; on CUDA, the largest memory that tensors had on the device.
        initial_weights (str): Where the weights of a network that was given as a Python object
            come from; empty for a network by name.
        majority_class (bool): Whether the test metric at the best epoch is that of an answer that
            is always the most frequent class.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    folder: Path = Field(default=Path(), exclude=True)
    command: str
    data: str
    model: str
    seed: int
    parameters: int
    metric: str
    higher_is_better: bool
    epochs: int = Field(ge=1)
    best_epoch: int = Field(ge=1)
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
    folds: list[dict[str, Any]] = []
    fingerprint: str = ""
    peak_memory: int | None = None
    initial_weights: str = ""
    majority_class: bool = False

    @field_validator("train", "val", "test", "spread")
    @classmethod
    def _complete(cls, scores: Scores | None) -> Scores | None:
        if scores is None:
            return None
        for at in ("last", "best"):
            missing = {"loss", "items", "batches"} - scores.get(at, {}).keys()
            if missing:
                raise ValueError(f"{at} must have {', '.join(sorted(missing))}")
        return scores

    @field_validator("metric")
    @classmethod
    def _known(cls, metric: str) -> str:
        if metric not in HIGHER_IS_BETTER:
            raise ValueError(f"must be one of {', '.join(HIGHER_IS_BETTER)}")
        return metric

    @property
    def metrics(self) -> dict[str, float]:
        r"""All scores in one flat dict.

        ``"test/mae"`` and ``"test/loss"`` are the scores of the network that :func:`fognn.load`
        returns: at the best epoch, over all items. The metric is also given at the last and at the
        best epoch, over batches and over items: ``"test/mae/last/batches"``,
        ``"test/mae/last/items"``, ``"test/mae/best/batches"`` and ``"test/mae/best/items"``. The
        same keys exist for ``train`` and ``val``. Few-shot images have the half-width of the 95 %
        interval over test episodes, too: ``"test/accuracy/best/interval"``.
        """
        found = {}
        for split in ("train", "val", "test"):
            scores = getattr(self, split)
            if scores is not None:
                found[f"{split}/{self.metric}"] = scores["best"]["items"]
                found[f"{split}/loss"] = scores["best"]["loss"]
                for at in ("last", "best"):
                    for over in [key for key in scores[at] if key != "loss"]:
                        found[f"{split}/{self.metric}/{at}/{over}"] = scores[at][over]
        return found

    def save(self) -> None:
        r"""Writes ``result.json`` into the folder."""
        with write_whole(self.folder / "result.json") as temporary:
            temporary.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")

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
                f"{path} is not a valid result ({first_problem(error)}): remove it and train the "
                "run again, which resumes from last.ckpt"
            ) from error
        return read.model_copy(update={"folder": Path(folder)})

    def __str__(self) -> str:
        name = self.metric.replace("_", " ")
        unit = " %" if "accuracy" in self.metric else ""
        split = "val" if self.test is None else "test"
        scores = self.val if self.test is None else self.test
        only = " = the most frequent class for all" if self.majority_class else ""
        parts = []
        for at in ("last", "best"):
            within = f" ± {scores[at]['interval']:.2f}" if "interval" in scores[at] else ""
            parts.append(f"{at} epoch {scores[at]['items']:.4f}{within}{unit}")
        return (
            f"{self.model} on {self.data}, seed {self.seed}: {split} {name} at the "
            f"{' and at the '.join(parts)} {only} ({self.epochs} epochs, best {self.best_epoch}, "
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
    r"""Builds the result of a run from its epochs.

    Args:
        config (Config): The run.
        folder (Path): The run folder.
        command (str): The command that repeats the run.
        history (list): One dict for each epoch, as in ``metrics.csv``.
        best_epoch (int): The best epoch, from 1.
        test (dict, optional): Scores of the test split, if there is one.
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

    best = {} if test is None else test["best"]
    gap = abs(best.get("items", 0.0) - best.get("majority", math.inf))
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
        peak_memory=peak_memory(rest["device"]),
        majority_class=gap < 1e-6,
        **(environment() | rest),
    )

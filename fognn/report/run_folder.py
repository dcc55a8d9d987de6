r"""What a run left in its folder: settings, a line for each epoch, and at last the result."""

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from fognn.report.metric import METRICS, Metric
from fognn.report.run_files import TIMES, check_result, read_config, read_metrics, read_result

__all__ = ["Run", "read_run"]


@dataclass(frozen=True)
class Run:
    r"""A run, finished or not.

    Args:
        folder (Path): Where it was read from.
        config (dict): All settings, as :obj:`config.yaml` nests them.
        metric_name (str): One of :obj:`METRICS`.
        columns (dict): The columns of :obj:`metrics.csv`, a number for each epoch; one
            that was not measured is NaN.
        result (dict, optional): What :obj:`result.json` holds; :obj:`None` while the
            run has not finished.
    """

    folder: Path
    config: dict[str, Any]
    metric_name: str
    columns: dict[str, list[float]]
    result: dict[str, Any] | None = None

    @property
    def model(self) -> str:
        return str(self.config["model"]["name"])

    @property
    def data(self) -> str:
        return str(self.config["data"]["name"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @property
    def metric(self) -> Metric:
        return METRICS[self.metric_name]

    @property
    def epochs(self) -> int:
        r"""How many epochs have ended."""
        return len(self.columns["epoch"])

    def loss(self, split: str) -> list[float]:
        r"""The loss of each epoch on :obj:`"train"` or :obj:`"val"`."""
        return self.columns[f"{split}_loss"]

    def curve(self, split: str, over: str = "items") -> list[float]:
        r"""The metric of each epoch on :obj:`"train"` or :obj:`"val"`, averaged over
        :obj:`"items"` or :obj:`"batches"`."""
        return self.columns[f"{split}_{self.metric_name}_{over}"]

    def test(self, when: str, over: str) -> float | None:
        r"""The metric on the test split, if it was measured: at the :obj:`"best"` validation epoch
        or at the :obj:`"last"` one, averaged over :obj:`"items"` or :obj:`"batches"`."""
        if self.result is None or self.result["test"] is None:
            return None
        value = float(self.result["test"][when][over])
        return value if math.isfinite(value) else None

    @property
    def best_epoch(self) -> int | None:
        r"""The epoch with the best validation metric, so far if the run has not finished."""
        if self.result is not None:
            return int(self.result["best_epoch"])
        finite = [(v, epoch) for epoch, v in enumerate(self.curve("val"), 1) if math.isfinite(v)]
        sign = 1 if self.metric.higher_is_better else -1
        return max(finite, key=lambda pair: sign * pair[0])[1] if finite else None

    @property
    def seconds_per_epoch(self) -> float | None:
        r"""The median time of an epoch, training and validation."""
        if self.result is not None:
            return float(self.result["seconds_per_epoch"])
        return median(self.seconds) if self.epochs else None

    @property
    def seconds(self) -> list[float]:
        r"""The time of each epoch, training and validation."""
        return list(map(sum, zip(*(self.columns[name] for name in TIMES), strict=True)))


def read_run(folder: str | Path) -> Run:
    r"""Reads the folder of a run that has finished, or that has ended its first epoch.

    Args:
        folder (str or Path): A folder with :obj:`config.yaml`, :obj:`metrics.csv` and, if the
            run has finished, :obj:`result.json`.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} must be the folder of a run, there is no such folder")
    config = read_config(folder / "config.yaml")
    # In this order: a run that ends between the two reads has all its epochs in the second file.
    result_file = folder / "result.json"
    result = read_result(result_file) if result_file.exists() else None
    metrics_file = folder / "metrics.csv"
    name, columns = read_metrics(metrics_file)
    if result is not None:
        check_result(result_file, result, name)
        if result["epochs"] != len(columns["epoch"]):
            raise ValueError(
                f"{result_file} is of {result['epochs']} epochs, but {metrics_file} has "
                f"{len(columns['epoch'])}: the two files are not of the same run"
            )
    return Run(folder, config, name, columns, result)

r"""The files of a run folder, read with care: each error names the file and what is wrong in it."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import yaml

from fognn.report.metric import METRICS

__all__ = ["TIMES", "check_result", "read_config", "read_metrics", "read_result"]

TIMES = ("train_seconds", "val_seconds")
_OVER = ("batches", "items")


def _text(file: Path) -> str:
    if not file.is_file():
        raise ValueError(f"{file.parent} must be the folder of a run, it has no file {file.name}")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} must be a text file in UTF-8 ({error})") from error


def read_config(file: Path) -> dict[str, Any]:
    r"""The settings of a run, nested as they are in the file."""
    text = _text(file)
    try:
        # Through JSON: then it is a plain tree with names as keys, whatever YAML allows.
        config = json.loads(json.dumps(yaml.safe_load(text), default=str))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{file} is no YAML file of settings ({error})") from error
    for section in ("data", "model"):
        part = config.get(section) if isinstance(config, dict) else None
        if not isinstance(part, dict) or not isinstance(part.get("name"), str):
            raise ValueError(f"{file} must name {section}.name, it does not")
    if type(config.get("seed")) is not int:
        raise ValueError(f"{file}: seed must be an int, got {config.get('seed')!r}")
    return dict(config)


def read_metrics(file: Path) -> tuple[str, dict[str, list[float]]]:
    r"""The metric's name, and a number for each epoch in each column."""
    try:
        lines = list(csv.reader(io.StringIO(_text(file), newline="")))
    except csv.Error as error:
        raise ValueError(f"{file} is no csv file ({error})") from error
    if not lines:
        raise ValueError(f"{file} must have a header, it is empty")
    header = lines[0]
    names = [name for name in METRICS if f"val_{name}_items" in header]
    if len(names) != 1:
        known = ", ".join(f"val_{name}_items" for name in METRICS)
        raise ValueError(f"{file} must have exactly one of the columns {known}")
    sums = [f"{split}_{names[0]}_{over}" for split in ("train", "val") for over in _OVER]
    for column in ("epoch", "train_loss", "val_loss", *sums, *TIMES):
        if header.count(column) != 1:
            raise ValueError(f"{file} must have one column {column}, got {header.count(column)}")
    columns: dict[str, list[float]] = {name: [] for name in header}
    for number, line in enumerate(lines[1:], 1):
        if len(line) != len(header):
            raise ValueError(
                f"{file}, line {number + 1}: must have {len(header)} fields, got {len(line)}"
            )
        for name, cell in zip(header, line, strict=True):
            columns[name].append(_number(f"{file}, line {number + 1}", name, cell))
        if columns["epoch"][-1] != number:
            raise ValueError(f"{file}, line {number + 1}: epoch must be {number}, got {line[0]!r}")
    return names[0], columns


def _number(where: str, name: str, cell: str) -> float:
    try:
        return float(cell) if cell.strip() else math.nan
    except ValueError as error:
        raise ValueError(f"{where}: {name} must be a number, got {cell!r}") from error


def read_result(file: Path) -> dict[str, Any]:
    r"""What a finished run says of itself; see :func:`check_result`."""
    text = _text(file)
    try:
        result = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is no JSON file ({error})") from error
    if not isinstance(result, dict):
        raise ValueError(f"{file} must hold an object, got {type(result).__name__}")
    return result


def check_result(file: Path, result: dict[str, Any], metric: str) -> None:
    r"""Refuses a result that is not whole, or that has another metric than :obj:`metric`."""
    if result.get("metric") != metric:
        raise ValueError(
            f"{file}: metric must be {metric!r} as in metrics.csv, got {result.get('metric')!r}"
        )
    for name in ("parameters", "epochs", "best_epoch"):
        if type(result.get(name)) is not int or result[name] < 0:
            raise ValueError(f"{file}: {name} must be an int, got {result.get(name)!r}")
    if not 1 <= result["best_epoch"] <= result["epochs"]:
        raise ValueError(
            f"{file}: best_epoch must be in 1 to {result['epochs']}, got {result['best_epoch']}"
        )
    if not _is_number(result.get("seconds_per_epoch")):
        got = result.get("seconds_per_epoch")
        raise ValueError(f"{file}: seconds_per_epoch must be a number, got {got!r}")
    for split in ("train", "val", "test"):
        if split == "test" and result.get("test", split) is None:
            continue  # a run that did not look at the test split
        for when in ("last", "best"):
            for what in ("loss", *_OVER):
                value: Any = result
                for key in (split, when, what):
                    value = value.get(key) if isinstance(value, dict) else None
                if not _is_number(value):
                    raise ValueError(
                        f"{file}: {split}.{when}.{what} must be a number, got {value!r}"
                    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

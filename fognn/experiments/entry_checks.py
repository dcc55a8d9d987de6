r"""Checks of a ledger line: all that tables, reports and sweeps read of it."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fognn.experiments.rows import rows_of
from fognn.experiments.tables import TABLES, Planned
from fognn.training import Config
from fognn.training.objective import HIGHER_IS_BETTER

__all__ = ["COLUMNS", "COMPARE", "check_content"]

COMPARE = "compare/"  # the beginning of the table of a comparison

COLUMNS = ("epoch", "lr", "train_loss", "val_loss", "train", "val", "seconds")
_NAME = re.compile(r"[a-z0-9][a-z0-9+._=-]*")
_MOST = 2**63  # of an integer
_LARGEST = 1e300  # of a number in a curve: the mean of a few is finite
_FIGURE = 1e100  # of a figure in a table: the squares for its standard deviation are finite
_DEPTH = 20  # of nested dicts and lists


def check_content(content: Mapping[str, Any], table: str) -> tuple[str, ...]:
    r"""Raises a :class:`ValueError` that names the first field that is missing or invalid.

    Args:
        content (dict): A line, whose fields have the types of
            :class:`~fognn.experiments.ledger.LedgerEntry`.
        table (str): The table of the ledger.

    Returns:
        What tells the run from others of the table.
    """
    # A text with half of a surrogate pair cannot be written to a page.
    json.dumps(content, ensure_ascii=False).encode()
    for name in ("seed", "config", "result", "curve"):
        _plain(content[name], name)
    known = table in (*TABLES, "runs") or table.startswith(COMPARE)
    if known and content["table"] != table:
        raise ValueError(f"table must be {table!r}, got {content['table']!r}")
    config = _config(content)
    if content["table"].startswith(COMPARE):
        _compared(content)
    elif content["table"] != "runs":
        _row(content, config)
    _weights(content, config)
    _result(content["result"], config)
    _curve(content["curve"], content["result"]["epochs"])
    identity = json.dumps(config.identity(), sort_keys=True)
    return content["row"], content["variant"], content["data"], identity


def _config(content: Mapping[str, Any]) -> Config:
    config = Config.from_dict(content["config"])
    if config.seed != content["seed"]:
        raise ValueError(f"seed must be that of config, {config.seed}, got {content['seed']}")
    return config


def _compared(content: Mapping[str, Any]) -> None:
    table, key = content["table"], content["key"]
    if not _NAME.fullmatch(table.removeprefix(COMPARE)):
        raise ValueError(f"table must be {COMPARE} and a name of a-z, 0-9, +._=-, got {table!r}")
    place, _, name = key.rpartition("/")
    if place != table or not _NAME.fullmatch(name):
        raise ValueError(f"key must be {table}/ and a name of a-z, 0-9, +._=-, got {key!r}")
    if content["variant"] not in ("", "fog"):
        raise ValueError(f"variant must be empty or 'fog', got {content['variant']!r}")


def _row(content: Mapping[str, Any], config: Config) -> None:
    table, row, key = content["table"], content["row"], content["key"]
    if table not in TABLES:
        raise ValueError(f"table must be one of {', '.join(TABLES)} or runs, got {table!r}")
    if row not in {known.id for known in rows_of(table)}:
        raise ValueError(f"row must be one of the table {table!r}, got {row!r}")
    if key.partition("/")[0] != table or not _NAME.fullmatch(key.partition("/")[2]):
        raise ValueError(f"key must be {table}/ and a name of a-z, 0-9, +._=-, got {key!r}")
    # Raises for a variant that is no setting of the network.
    own = Planned(table, row, content["variant"], content["label"], config).own
    if own.training.metric != config.training.metric:
        raise ValueError(
            f"config.training.metric must be that of the row, {own.training.metric!r}, got "
            f"{config.training.metric!r}"
        )


def _weights(content: Mapping[str, Any], config: Config) -> None:
    if "weights" not in content:
        return
    checksum, table, key = content["weights"], content["table"], content["key"]
    if type(checksum) is not str or not re.fullmatch(r"[0-9a-f]{64}", checksum):
        raise _wrong("weights", "a SHA-256 of 64 hexadecimal digits", content, "weights")
    planned = Planned(table, content["row"], content["variant"], content["label"], config)
    if table not in TABLES or not planned.is_own:
        raise ValueError(
            f"weights must be left out of a run that differs from its row's protocol, got {key!r}"
        )
    if key != planned.key:  # which names the file
        raise ValueError(f"key must be {planned.key!r} with weights, got {key!r}")


def _result(result: Mapping[str, Any], config: Config) -> None:
    if result.get("metric") != config.training.metric:
        raise _wrong(
            "result.metric", f"that of config, {config.training.metric!r}", result, "metric"
        )
    for name in ("parameters", "epochs", "best_epoch"):
        if type(result.get(name)) is not int or result[name] < 1:
            raise _wrong(f"result.{name}", "a positive int", result, name)
    if result["best_epoch"] > result["epochs"]:
        raise _wrong("result.best_epoch", f"at most {result['epochs']}", result, "best_epoch")
    for name in ("seconds", "seconds_per_epoch"):
        if not _is_number(result.get(name)) or result[name] < 0:
            raise _wrong(f"result.{name}", "a number of seconds", result, name)
    higher = HIGHER_IS_BETTER[config.training.metric]
    if result.get("higher_is_better") is not higher:
        raise _wrong("result.higher_is_better", str(higher).lower(), result, "higher_is_better")
    for name in ("stopped", "command", "device"):
        if type(result.get(name)) is not str:
            raise _wrong(f"result.{name}", "a text", result, name)
    for name, kind in _OPTIONAL.items():
        if result.get(name) is not None and type(result[name]) is not kind:
            raise _wrong(f"result.{name}", f"null or of type {kind.__name__}", result, name)
    for split in ("train", "val", "test"):
        if split not in result:
            raise ValueError(f"result.{split} must be given, or be null")
        if result[split] is not None or split == "val":
            _scores(result[split], f"result.{split}", loose=split == "train")
    if result.get("spread") is not None:
        _scores(result["spread"], "result.spread")
    for number, fold in enumerate(result.get("folds") or [], 1):
        where = f"result.folds, the {number}. of them"
        if not isinstance(fold, dict) or type(fold.get("fold")) is not int:
            raise ValueError(f"{where} must have its number as fold, got {_short(fold)}")
        for split in ("val", "test"):
            if fold.get(split) is not None or result[split] is not None:
                _scores(fold.get(split), f"{where}: {split}")


_OPTIONAL: dict[str, type] = {
    **{
        "threads": int,
        "ranks": int,
        "peak_memory": int,
        "commit": str,
        "fingerprint": str,
        "folds": list,
    },
    **{"machine": dict, "versions": dict},
}


def _scores(scores: Any, where: str, loose: bool = False) -> None:
    for at in ("last", "best"):
        if not isinstance(scores, dict) or not isinstance(scores.get(at), dict):
            raise ValueError(f"{where}.{at} must be given, got {_short(scores)}")
        for over in ("loss", "items", "batches"):
            value = scores[at].get(over)
            # A loss that overflowed is written as null.
            if value is None and over in scores[at] and (loose or over == "loss"):
                continue
            if not _is_number(value) or abs(value) > _FIGURE:
                raise _wrong(f"{where}.{at}.{over}", "a finite number", scores[at], over)
        interval = scores[at].get("interval")
        if interval is not None and not (_is_number(interval) and 0 <= interval <= _FIGURE):
            raise _wrong(f"{where}.{at}.interval", "null or at least 0", scores[at], "interval")


def _curve(curve: Mapping[str, Any], epochs: int) -> None:
    for name in COLUMNS:
        column = curve.get(name)
        if not isinstance(column, list) or len(column) != epochs:
            raise _wrong(f"curve.{name}", f"a list of {epochs} numbers", curve, name)
        for value in column:
            if not (_is_number(value) or (value is None and name != "epoch")):
                raise ValueError(f"curve.{name} must have numbers or null, got {_short(value)}")


def _plain(value: Any, name: str, depth: int = 0) -> None:
    r"""Raises for a number that does not fit into 64 bits, and for deep nesting."""
    if isinstance(value, int) and abs(value) >= _MOST:
        raise ValueError(f"{name} must be below 2**63, got an integer of {value.bit_length()} bits")
    if isinstance(value, float) and not abs(value) <= _LARGEST:
        raise ValueError(f"{name} must be finite and at most {_LARGEST:g}, got {value}")
    if depth > _DEPTH:
        raise ValueError(f"{name} must be nested at most {_DEPTH} deep")
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for part, inner in parts:
        if isinstance(inner, (int, float, dict, list)):
            _plain(inner, f"{name}.{part}" if isinstance(value, dict) else name, depth + 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and type(value) is not bool and math.isfinite(value)


def _wrong(name: str, wanted: str, holder: Mapping[str, Any], key: str) -> ValueError:
    got = _short(holder[key]) if key in holder else "nothing"
    return ValueError(f"{name} must be {wanted}, got {got}")


def _short(value: Any) -> str:
    return repr(value)[:60]

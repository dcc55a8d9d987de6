r"""The targets of the user's data: their kind, found from the values or given."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fognn.utils import checks

if TYPE_CHECKING:
    import pandas as pd

TASKS = ("auto", "regression", "classification")
_GAPS = ("", "na", "n/a", "nan", "null", "none")
_WORDS = {"yes": "1", "no": "0", "true": "1", "false": "0"}
_FEW = 20  # classes that are found without task="classification",
_ROWS = 5  # and rows for each of them
_PER_VALUE = 1000  # classes or tokens for each one that occurs


@dataclass(frozen=True)
class Targets:
    r"""The kind of the targets."""

    kind: str  # "values" (numbers), "yes/no" (columns of 0 and 1) or "classes" (one of several)
    columns: int  # the number of values, of yes/no columns, or of classes
    names: tuple[str, ...] = ()  # of the columns
    classes: tuple[str, ...] = ()  # their names
    gaps: int = 0  # the number of missing values

    @property
    def labels(self) -> tuple[str, ...]:
        r"""The names of the classes or columns; their numbers if they have none."""
        names = self.classes if self.kind == "classes" else self.names
        return names or tuple(map(str, range(self.columns)))

    def __str__(self) -> str:
        what = {
            "values": "numbers (regression)",
            "yes/no": "yes or no (classification)",
            "classes": f"{self.columns} classes (classification)",
        }[self.kind]
        shown = ", ".join(self.names[:4]) + (", ..." if len(self.names) > 4 else "")
        columns = f"{shown}: " if shown else ""
        if self.columns > 1 and self.kind != "classes":
            columns += f"{self.columns} columns of "
        return f"{columns}{what}{f', {self.gaps:,} missing' if self.gaps else ''}"


def targets_from_cells(
    columns: "Mapping[str, Sequence[str]] | pd.DataFrame", task: str = "auto"
) -> tuple[Targets, Tensor, dict[int, str]]:
    r"""Finds the kind of the targets in columns of a csv file.

    * Yes or no: 0 and 1, ``yes`` and ``no`` or ``true`` and ``false`` in all columns.
    * Classes: one column with the whole numbers from 0 to at most 19, each in five rows on average;
      with ``task="classification"``, each different number or text of a column is a class.
    * Values: all other columns of numbers, and with ``task="regression"`` any numbers.

    A single column of lists, such as ``[0, 1, 1]``, is taken as several columns.

    Returns them; the values, NaN for gaps, ``[rows]`` or ``[rows, columns]`` (int64 for classes, -1
    for gaps); and for each row that does not fit, by its number, the reason.
    """
    import pandas as pd

    checks.one_of("targets", "task", task, TASKS)
    cells = pd.DataFrame(columns).map(str.strip)
    lower = cells.map(str.lower)
    gap, names = lower.isin(_GAPS), tuple(cells)
    lists = lower.map(lambda text: text.startswith("["))
    if len(names) == 1 and lists.any(axis=None) and (lists | gap).all(axis=None):
        return targets_from_cells(_split_lists(names[0], cells[names[0]].tolist()), task)
    numbers, gaps = lower.replace(_WORDS).map(_finite), int(gap.to_numpy().sum())
    if gap.all(axis=None):
        raise ValueError(f"column {', '.join(map(repr, names))} must have a value, all are missing")
    fits = gap | numbers.isin([0, 1])
    yes_no = bool(fits.all(axis=None))
    if len(names) == 1 and not yes_no and task != "regression":
        (name,) = names
        plain = cells[name].map(_finite)  # one number, such as 1 and 1.0, is one class
        keys = cells[name].where(plain.isna(), plain.map("{:.15g}".format))
        classes = _classes(name, keys, ~gap[name], plain, task == "classification")
        if classes:
            y = torch.tensor(pd.Index(classes).get_indexer(keys.where(~gap[name])))
            return Targets("classes", len(classes), names, classes, gaps), y, {}
    if task == "classification" and not yes_no:
        name = next(name for name in names if not fits[name].all())
        raise ValueError(
            f"column {name!r} must hold yes or no (0 and 1), because several columns are "
            f"learnt by classification, got {cells[name][~fits[name]].iloc[0]!r}"
        )
    hint = "; data.task=classification takes each text as a class" if len(names) == 1 else ""
    bad: dict[int, str] = {}
    for name in names:
        for row, cell in cells[name][numbers[name].isna() & ~gap[name]].items():
            reason = f"column {name!r} must be a finite number, or yes or no, got {cell!r}"
            bad.setdefault(row, reason + hint)
    y = torch.tensor(numbers.to_numpy("float32"))
    y[list(bad)] = math.nan
    kind = "yes/no" if yes_no and task != "regression" else "values"
    return Targets(kind, len(names), names, gaps=gaps), y[:, 0] if len(names) == 1 else y, bad


def _split_lists(name: str, texts: Sequence[str]) -> dict[str, list[str]]:
    r"""Returns the columns of a column of lists, of which some are missing."""
    rows = [text.strip("[]").split(",") if text.startswith("[") else [] for text in texts]
    width = max(map(len, rows))
    for n, row in enumerate(rows):
        if row and len(row) != width:
            raise ValueError(f"column {name!r}, row {n} must have {width} values, got {len(row)}")
    return {f"{name}_{n}": [row[n] if row else "" for row in rows] for n in range(width)}


def _finite(text: str) -> float:
    r"""Returns the finite number that a text is, or NaN."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _classes(
    name: str, keys: "pd.Series", known: "pd.Series", numbers: "pd.Series", asked: bool
) -> tuple[str, ...]:
    r"""Returns the names of the classes of a column; nothing if it holds numbers."""
    found, whole = set(keys[known]), bool(numbers[known].notna().all())
    if not asked:
        first = set(map(str, range(len(found))))
        many = 2 < len(found) <= min(_FEW, len(keys) / _ROWS)
        return tuple(sorted(found, key=int)) if found == first and many else ()
    if not 2 <= len(found) <= max(2, len(keys) // 2):
        raise ValueError(
            f"column {name!r} must have at least 2 classes, and at most one for every two rows, "
            f"got {len(found):,} different values"
        )
    return tuple(sorted(found, key=float if whole else None))


def targets_from_tensors(
    where: str, ys: Sequence[Tensor], task: str = "auto", unlabelled: bool = False
) -> tuple[Targets, list[Tensor]]:
    r"""Finds the kind of the targets of graphs.

    Integers in one dimension are classes, and in several columns of 0 and 1 they are yes or no.
    Floating point numbers are yes or no if all of them are 0 or 1, and values otherwise; NaN is a
    missing value, and so is the class -1 if nodes may be ``unlabelled``. Returns them, and :obj:`y`
    of each graph: int64 for classes, float32 otherwise."""
    checks.one_of("targets", "task", task, TASKS)
    if all(y.dim() == 2 and y.size(1) == 1 for y in ys):
        ys = [y.squeeze(1) for y in ys]
    joined = torch.cat(list(ys))
    if joined.dim() > 2:
        raise ValueError(f"{where}: y must have one or two dimensions, got {joined.dim()}")
    floating, one = joined.is_floating_point(), joined.dim() == 1
    missing = joined.isnan() if floating else (joined == -1) & unlabelled
    if bool(missing.all()):
        raise ValueError(f"{where}: y must have a value, all are missing")
    known, gaps = joined[~missing], int(missing.sum())
    yes_no = bool(((known == 0) | (known == 1)).all())
    whole = not floating or (not gaps and bool((known == known.round()).all()))
    if task == "regression":
        kind = "values"
    elif one and whole and (not floating or (task == "classification" and not yes_no)):
        kind = "classes"
    else:
        kind = "yes/no" if yes_no else "values"
    wrong_values = kind == "values" and (not floating or task == "classification")
    if (wrong_values and task != "regression") or (kind == "classes" and int(known.min()) < 0):
        raise ValueError(
            f"{where}: y must be classes from 0 in a single dimension, or 0 and 1 in several "
            f"columns, or floating point values without task=classification; got {known.dtype} "
            f"from {known.min():g}, shape {list(ys[0].shape)}"
        )
    if kind == "classes":
        ys = [y.to(torch.int64) for y in ys]
        return Targets(kind, max(2, count_values(where, "y", ys)), gaps=gaps), ys
    columns = joined.shape[1:].numel()
    return Targets(kind, columns, gaps=gaps), [y.to(torch.float32) for y in ys]


def count_values(where: str, name: str, values: Sequence[Tensor]) -> int:
    r"""Returns the number of classes, or of tokens: the largest one that occurs, plus 1. A number
    that is far above the others, such as an identifier or a hash, raises a :class:`ValueError`."""
    most = max((int(value.max()) for value in values if value.numel()), default=0) + 1
    if most > _PER_VALUE:
        different = torch.cat([value.reshape(-1) for value in values]).unique().numel()
        if most > _PER_VALUE * different:
            raise ValueError(
                f"{where}: {name} of integers must be numbered from 0 without large gaps, got "
                f"{most - 1} among {different:,} different ones"
            )
    return most

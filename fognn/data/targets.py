r"""The targets of the user's data: their kind, found from the values or given."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fognn.utils import checks

TASKS = ("auto", "regression", "classification")
_GAPS = ("", "na", "n/a", "nan", "null", "none")
_WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
_FEW = 20  # classes that are found without task="classification",
_ROWS = 5  # and rows for each of them
_PER_VALUE = 1000  # classes or tokens for each one that occurs

Cell = float | str | None


@dataclass(frozen=True)
class Targets:
    r"""The kind of the targets."""

    kind: str  # "values" (numbers), "yes/no" (columns of 0 and 1) or "classes" (one of several)
    columns: int  # the number of values, of yes/no columns, or of classes
    names: tuple[str, ...] = ()  # of the columns
    classes: tuple[str, ...] = ()  # their names
    gaps: int = 0  # the number of missing values

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


def cell_of(text: str) -> Cell:
    r"""Returns the value of a cell of a csv file: a number, :obj:`None` for a gap, or the text."""
    word = text.strip()
    if word.lower() in _GAPS:
        return None
    try:
        value = float(word)
    except ValueError:
        return word
    return value if math.isfinite(value) else word


def targets_from_cells(
    columns: Mapping[str, Sequence[str]], task: str = "auto"
) -> tuple[Targets, Tensor, dict[int, str]]:
    r"""Finds the kind of the targets in columns of a csv file.

    * Yes or no: 0 and 1, ``yes`` and ``no`` or ``true`` and ``false`` in all columns.
    * Classes: one column with the whole numbers from 0 to at most 19, each in five rows on average;
      with ``task="classification"``, each different number or text of a column is a class.
    * Values: all other columns of numbers, and with ``task="regression"`` any numbers.

    Returns:
        The targets; the values, NaN for gaps, ``[rows]`` or ``[rows, columns]`` (int64 for classes,
        -1 for gaps); and for each row that does not fit, by its number, the reason.
    """
    checks.one_of("targets", "task", task, TASKS)
    cells = {name: list(map(cell_of, column)) for name, column in columns.items()}
    numbers = {name: list(map(_number, column)) for name, column in cells.items()}
    names, flat = tuple(columns), [cell for column in numbers.values() for cell in column]
    gaps = sum(cell is None for cell in flat)
    if gaps == len(flat):
        raise ValueError(f"column {', '.join(map(repr, names))} must have a value, all are missing")
    yes_no = all(cell in (None, 0.0, 1.0) for cell in flat)
    if len(names) == 1 and not yes_no and task != "regression":
        classes = _classes(names[0], cells[names[0]], task == "classification")
        if classes:
            place = {key: number for number, key in enumerate(classes)}
            y = torch.tensor([-1 if c is None else place[_key(c)] for c in cells[names[0]]])
            return Targets("classes", len(classes), names, classes, gaps), y, {}
    if task == "classification" and not yes_no:
        wrong = next((n, c) for n, cs in numbers.items() for c in cs if c not in (None, 0.0, 1.0))
        raise ValueError(
            f"column {wrong[0]!r} must hold yes or no (0 and 1), because several columns are "
            f"learnt by classification, got {wrong[1]!r}"
        )
    hint = "; data.task=classification takes each text as a class" if len(names) == 1 else ""
    bad: dict[int, str] = {}
    for name, column in numbers.items():
        for row, cell in enumerate(column):
            if isinstance(cell, str):
                reason = f"column {name!r} must be a finite number, or yes or no, got {cell!r}"
                bad.setdefault(row, reason + hint)
    values = [
        [cell if isinstance(cell, float) else math.nan for cell in column]
        for column in numbers.values()
    ]
    y = torch.tensor(values, dtype=torch.float64).t().to(torch.float32)
    y[list(bad)] = math.nan
    kind = "yes/no" if yes_no and task != "regression" else "values"
    return Targets(kind, len(names), names, gaps=gaps), y[:, 0] if len(names) == 1 else y, bad


def _number(cell: Cell) -> Cell:
    return _WORDS.get(cell.lower(), cell) if isinstance(cell, str) else cell


def _key(cell: float | str) -> str:
    return f"{cell:g}" if isinstance(cell, float) else cell


def _classes(name: str, cells: Sequence[Cell], asked: bool) -> tuple[str, ...]:
    r"""Returns the names of the classes of a column; nothing if it holds numbers."""
    found = {cell for cell in cells if cell is not None}
    numbers = all(isinstance(cell, float) for cell in found)
    if not asked:
        whole = numbers and found == set(map(float, range(len(found))))
        many = 2 < len(found) <= min(_FEW, len(cells) / _ROWS)
        return tuple(map(str, range(len(found)))) if whole and many else ()
    if not 2 <= len(found) <= max(2, len(cells) // 2):
        raise ValueError(
            f"column {name!r} must have at least 2 classes, and at most one for every two rows, "
            f"got {len(found):,} different values"
        )
    keys = sorted(found) if numbers else sorted(map(_key, found))
    return tuple(dict.fromkeys(_key(key) for key in keys))


def targets_from_tensors(
    where: str, ys: Sequence[Tensor], task: str = "auto", unlabelled: bool = False
) -> tuple[Targets, list[Tensor]]:
    r"""Finds the kind of the targets of graphs.

    Integers in one dimension are classes, and in several columns of 0 and 1 they are yes or no.
    Floating point numbers are yes or no if all of them are 0 or 1, and values otherwise; NaN is a
    missing value, and so is the class -1 if nodes may be ``unlabelled``.

    Returns:
        The targets; and :obj:`y` of each graph: int64 for classes, float32 otherwise.
    """
    checks.one_of("targets", "task", task, TASKS)
    if all(y.dim() == 2 and y.size(1) == 1 for y in ys):
        ys = [y.squeeze(1) for y in ys]
    joined = torch.cat(list(ys))
    if joined.dim() > 2:
        raise ValueError(
            f"{where}: y must have one or two dimensions, got shape {list(ys[0].shape)}"
        )
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

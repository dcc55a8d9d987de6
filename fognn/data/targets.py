r"""The targets of the user's own data: their kind, found from the values or given."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fognn.data.graph_checks import count_values
from fognn.utils import checks

__all__ = ["KINDS", "TASKS", "Targets", "cell_of", "targets_from_cells", "targets_from_tensors"]

TASKS = ("auto", "regression", "classification")
KINDS = ("values", "yes/no", "classes")
_GAPS = ("", "na", "n/a", "nan", "null", "none")
_WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
_FEW = 20  # classes that are found without task="classification",
_ROWS = 5  # and rows for each of them
_MOST = 1000  # classes of a column

Cell = float | str | None


@dataclass(frozen=True)
class Targets:
    r"""The kind of the targets.

    Args:
        kind (str): ``"values"`` (numbers to predict), ``"yes/no"`` (one or several columns of 0 and
            1) or ``"classes"`` (one of several).
        columns (int): Number of values, of yes/no columns, or of classes.
        names (tuple, optional): The names of the columns. (default: :obj:`()`)
        classes (tuple, optional): The names of the classes. (default: :obj:`()`)
        gaps (int, optional): Number of missing values. (default: :obj:`0`)
    """

    kind: str
    columns: int
    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    gaps: int = 0

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


def cell_of(text: str | None) -> Cell:
    r"""Returns the value of a cell of a csv file: a number, :obj:`None` for a gap, or the text."""
    word = (text or "").strip()
    if word.lower() in _GAPS:
        return None
    if word.lower() in _WORDS:
        return word
    try:
        value = float(word)
    except ValueError:
        return word
    return value if math.isfinite(value) else word


def targets_from_cells(
    columns: Mapping[str, Sequence[Cell]], task: str = "auto"
) -> tuple[Targets, Tensor, dict[int, str]]:
    r"""Finds the kind of the targets in columns of a csv file.

    * Yes or no: 0 and 1, ``yes`` and ``no`` or ``true`` and ``false`` in all columns.
    * Classes: one column with the whole numbers from 0 to at most 19, each in five rows on average;
      with ``task="classification"``, each different number or text of a column is a class.
    * Values: all other columns of numbers, and with ``task="regression"`` any numbers.

    Args:
        columns (dict): The cells of each column, from :func:`cell_of`.
        task (str, optional): ``"auto"``, ``"regression"`` or ``"classification"``.
            (default: :obj:`"auto"`)

    Returns:
        The targets; the values, NaN for gaps, ``[rows]`` or ``[rows, columns]`` (int64 for classes,
        -1 for gaps); and for each row that does not fit, by its number, the reason.
    """
    checks.one_of("targets", "task", task, TASKS)
    names = tuple(columns)
    cells = {name: [_number(cell) for cell in column] for name, column in columns.items()}
    if all(cell is None for column in cells.values() for cell in column):
        raise ValueError(f"column {', '.join(map(repr, names))} must have a value, all are missing")
    yes_no = all(cell in (None, 0.0, 1.0) for column in cells.values() for cell in column)
    gaps = sum(cell is None for column in cells.values() for cell in column)
    if len(names) == 1 and not yes_no and task != "regression":
        classes = _classes(names[0], columns[names[0]], task == "classification")
        if classes:
            place = {key: number for number, key in enumerate(classes)}
            y = torch.tensor([-1 if c is None else place[_key(c)] for c in columns[names[0]]])
            return Targets("classes", len(classes), names, classes, gaps), y, {}
    if task == "classification" and not yes_no:
        wrong = next((n, c) for n, cs in cells.items() for c in cs if c not in (None, 0.0, 1.0))
        raise ValueError(
            f"column {wrong[0]!r} must hold yes or no (0 and 1), because several columns are "
            f"learnt by classification, got {wrong[1]!r}"
        )
    bad: dict[int, str] = {}
    for name, column in cells.items():
        for row, cell in enumerate(column):
            if isinstance(cell, str):
                bad.setdefault(
                    row,
                    f"column {name!r} must be a finite number, or yes or no, got {cell!r}"
                    + ("; --task classification takes each text as a class" * (len(names) == 1)),
                )
    values = [
        [math.nan if cell is None or row in bad else cell for row, cell in enumerate(column)]
        for column in cells.values()
    ]
    y = torch.tensor(values, dtype=torch.float64).t().to(torch.float32)
    y = y[:, 0] if len(names) == 1 else y
    kind = "yes/no" if yes_no and task != "regression" else "values"
    return Targets(kind, len(names), names, gaps=gaps), y, bad


def _number(cell: Cell) -> Cell:
    return _WORDS.get(cell.lower(), cell) if isinstance(cell, str) else cell


def _key(cell: float | str) -> str:
    return f"{cell:g}" if isinstance(cell, float) else cell.strip()


def _classes(name: str, cells: Sequence[Cell], asked: bool) -> tuple[str, ...]:
    r"""Returns the names of the classes of a column; nothing if it holds numbers."""
    found = {cell for cell in cells if cell is not None}
    numbers = all(isinstance(cell, float) for cell in found)
    if not asked:
        whole = numbers and found == set(map(float, range(len(found))))
        many = 2 < len(found) <= min(_FEW, len(cells) / _ROWS)
        return tuple(map(str, range(len(found)))) if whole and many else ()
    if len(found) < 2 or len(found) > min(_MOST, max(2, len(cells) // 2)):
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
    missing value.

    Args:
        where (str): The beginning of error messages.
        ys (list): :obj:`y` of each graph, ``[rows]`` or ``[rows, columns]``.
        task (str, optional): As in :func:`targets_from_cells`. (default: :obj:`"auto"`)
        unlabelled (bool, optional): Whether the class -1 is a missing value.
            (default: :obj:`False`)

    Returns:
        The targets; and :obj:`y` of each graph: int64 for classes, float32 otherwise.
    """
    checks.one_of("targets", "task", task, TASKS)
    if all(y.dim() == 2 and y.size(1) == 1 for y in ys):
        ys = [y.squeeze(1) for y in ys]
    joined = torch.cat(list(ys))
    if joined.dim() > 2:
        raise ValueError(
            f"{where}, graph 0: y must have one or two dimensions, got shape {list(ys[0].shape)}"
        )
    floating = joined.is_floating_point()
    missing = joined.isnan() if floating else (joined == -1) & unlabelled
    if bool(missing.all()):
        raise ValueError(f"{where}: y must have a value, all are missing")
    known = joined[~missing]
    yes_no = bool(((known == 0) | (known == 1)).all())
    if task == "classification" and floating and joined.dim() == 1 and not yes_no:
        if not bool((known == known.round()).all()):
            first = float(known[known != known.round()][0])
            raise ValueError(f"{where}: y must be classes for classification, got {first:g}")
        if bool(missing.any()):
            raise ValueError(f"{where}: y must be integers for classes with missing values")
        return targets_from_tensors(where, [y.to(torch.int64) for y in ys], task)
    if task != "regression" and not floating and joined.dim() == 1:
        if bool((known < 0).any()):
            graph = next(n for n, y in enumerate(ys) if y.numel() and int(y.min()) < 0)
            raise ValueError(
                f"{where}, graph {graph}: y of integers must be classes from 0, got "
                f"{int(known.min())}; values to learn must be floating point"
            )
        classes = max(2, count_values(where, "y", list(ys)))
        return Targets("classes", classes, gaps=int(missing.sum())), list(ys)
    if not yes_no and task != "regression" and (not floating or task == "classification"):
        raise ValueError(
            f"{where}, graph 0: y of integers must be classes from 0 in a single dimension, or 0 "
            f"and 1 in several columns, got shape {list(ys[0].shape)}; values to learn must be "
            "floating point"
        )
    kind = "yes/no" if yes_no and task != "regression" else "values"
    columns = joined.shape[1:].numel()
    return Targets(kind, columns, gaps=int(missing.sum())), [y.to(torch.float32) for y in ys]

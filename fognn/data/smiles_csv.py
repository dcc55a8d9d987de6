r"""Molecules in a csv file with a header: one molecule a line, as a SMILES string."""

import csv
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from fognn.data.molecules import smiles_to_graph
from fognn.data.targets import Targets, cell_of, targets_from_cells

__all__ = ["BadLine", "MoleculeTable", "column_names", "read_molecules", "read_smiles_csv"]

_PAUSE = 10.0  # seconds between two lines of progress


class BadLine(NamedTuple):
    r"""A line of a csv file from which no graph can be made."""

    line: int
    smiles: str
    reason: str


@dataclass(frozen=True)
class MoleculeTable:
    r"""The molecules of a csv file.

    Args:
        graphs (list): A graph for each molecule, with :obj:`y` if targets were read.
        rows (list): The row of each molecule, counted from 0 without the header.
        total (int): Number of lines, also of those that were left out.
        targets (Targets, optional): The kind of the targets. (default: :obj:`None`)
        splits (list, optional): The text of the split column, for each molecule.
            (default: :obj:`[]`)
        bad (list, optional): The lines that cannot be read. (default: :obj:`[]`)
        unlabelled (int, optional): Number of lines without any target, which are left out.
            (default: :obj:`0`)
    """

    graphs: list[Data]
    rows: list[int]
    total: int
    targets: Targets | None = None
    splits: list[str] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)
    unlabelled: int = 0


class _Row(NamedTuple):
    line: int
    smiles: str
    cells: list[str | None]
    split: str


def read_molecules(
    path: str | Path,
    smiles_column: str = "smiles",
    target_columns: Sequence[str] = (),
    split_column: str | None = None,
    task: str = "auto",
    skip_bad: bool = False,
    features: str = "pyg",
) -> MoleculeTable:
    r"""Reads the molecules of a csv file with a header. A file that takes long shows its progress
    on standard error.

    Args:
        path (str or Path): The csv file.
        smiles_column (str, optional): The column of the SMILES strings.
            (default: :obj:`"smiles"`)
        target_columns (list, optional): The columns that become :obj:`y`. (default: :obj:`()`)
        split_column (str, optional): The column that assigns molecules to splits.
            (default: :obj:`None`)
        task (str, optional): The kind of the targets, see
            :func:`fognn.data.targets.targets_from_cells`. (default: :obj:`"auto"`)
        skip_bad (bool, optional): If :obj:`False`, the first bad line raises a
            :class:`ValueError`. If :obj:`True`, bad lines are left out, with a warning.
            (default: :obj:`False`)
        features (str, optional): As in :func:`fognn.data.smiles_to_graph`.
            (default: :obj:`"pyg"`)
    """
    path = Path(path)
    rows = list(_rows(path, smiles_column, target_columns, split_column))
    targets, y, bad_targets = None, torch.empty(0), dict[int, str]()
    if target_columns and rows:
        columns = {
            name: [cell_of(row.cells[place]) for row in rows]
            for place, name in enumerate(target_columns)
        }
        try:
            targets, y, bad_targets = targets_from_cells(columns, task)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    graphs, kept, splits = list[Data](), list[int](), list[str]()
    bad: list[BadLine] = []
    unlabelled = 0
    shown = time.monotonic()
    for number, row in enumerate(rows):
        if time.monotonic() - shown > _PAUSE:
            shown = time.monotonic()
            print(f"{path}: read to line {row.line:,}", file=sys.stderr, flush=True)
        try:
            if number in bad_targets:
                raise ValueError(bad_targets[number])
            graph = smiles_to_graph(row.smiles, features)
        except ValueError as error:
            if not skip_bad:
                raise ValueError(f"{path}, line {row.line}: {error}") from error
            bad.append(BadLine(row.line, row.smiles, str(error)))
            continue
        if targets is not None:
            if _missing(y[number]):
                unlabelled += 1
                continue
            graph.y = y[number : number + 1]
        graphs.append(graph)
        kept.append(number)
        if split_column is not None:
            splits.append(row.split)
    if bad:
        warnings.warn(
            f"{path}: {len(bad)} of {len(rows)} lines were skipped, "
            f"the first is line {bad[0].line}: {bad[0].reason}",
            stacklevel=2,
        )
    return MoleculeTable(graphs, kept, len(rows), targets, splits, bad, unlabelled)


def read_smiles_csv(
    path: str | Path,
    smiles_column: str = "smiles",
    target_column: str | None = None,
    skip_bad: bool = False,
    features: str = "pyg",
) -> tuple[list[Data], list[BadLine]]:
    r"""Reads the molecules of a csv file with a header.

    Args:
        path (str or Path): The csv file.
        smiles_column (str, optional): The column of the SMILES strings.
            (default: :obj:`"smiles"`)
        target_column (str, optional): The column, or columns with commas between them, that become
            :obj:`y`: numbers and yes/no are float32, ``[1]`` or ``[1, columns]`` with NaN for gaps;
            classes are int64, ``[1]``. (default: :obj:`None`)
        skip_bad (bool, optional): If :obj:`False`, the first bad line raises a
            :class:`ValueError`. If :obj:`True`, bad lines are left out and returned, with a
            warning. (default: :obj:`False`)
        features (str, optional): As in :func:`smiles_to_graph`. (default: :obj:`"pyg"`)

    Returns:
        The graphs, and the lines that cannot be read. Lines without a target are left out.
    """
    columns = column_names(path, target_column) if target_column is not None else ()
    table = read_molecules(path, smiles_column, columns, skip_bad=skip_bad, features=features)
    return table.graphs, table.bad


def column_names(path: str | Path, text: str) -> tuple[str, ...]:
    r"""Returns the columns that a text names: one column, or several with commas between them.

    Args:
        path (str or Path): The csv file; a column of it may have commas in its name.
        text (str): The text.
    """
    with _opened(Path(path)) as reader:
        header = reader.fieldnames or ()
    if text in header:
        return (text,)
    names = tuple(name.strip() for name in text.split(","))
    if len(set(names)) < len(names) or not all(names):
        raise ValueError(f"{path}: target_column must name each column once, got {text!r}")
    return names


def _missing(y: Tensor) -> bool:
    return bool(y.isnan().all()) if y.is_floating_point() else int(y) == -1


@contextmanager
def _opened(path: Path) -> Iterator["csv.DictReader[str]"]:
    if not path.is_file():
        raise ValueError(f"read_smiles_csv: path must name a file, got {str(path)!r}")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            yield csv.DictReader(file, strict=True)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a csv file in UTF-8: {error}") from error


def _rows(
    path: Path, smiles_column: str, target_columns: Sequence[str], split_column: str | None
) -> Iterator[_Row]:
    with _opened(path) as reader:
        columns: Sequence[str] = reader.fieldnames or ()
        wanted = [("smiles_column", smiles_column), ("split_column", split_column)]
        wanted += [("target_column", name) for name in target_columns]
        for argument, column in wanted:
            if column is not None and column not in columns:
                raise ValueError(
                    f"{path}: {argument} must be one of {list(columns)}, got {column!r}"
                )
        for row in reader:
            split = row[split_column] if split_column is not None else ""
            cells = [row[name] for name in target_columns]
            yield _Row(reader.line_num, (row[smiles_column] or "").strip(), cells, split or "")

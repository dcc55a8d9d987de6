r"""Molecules in a csv file with a header: one molecule a line, as a SMILES string."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch_geometric.data import Data

from fognn.data.molecules import smiles_to_graph
from fognn.data.targets import Targets, targets_from_cells
from fognn.utils.files import user_path

if TYPE_CHECKING:
    import pandas as pd


class BadLine(NamedTuple):
    r"""A line of a csv file from which no graph can be made."""

    line: int
    smiles: str
    reason: str


@dataclass
class MoleculeTable:
    r"""The molecules of a csv file."""

    graphs: list[Data]  # one for each molecule, with y if targets were read
    rows: list[int]  # the row of each molecule, counted from 0 without the header
    total: int  # the number of lines, also of those that were left out
    targets: Targets | None = None
    splits: list[str] = field(default_factory=list)  # the text of the split column
    bad: list[BadLine] = field(default_factory=list)  # the lines that cannot be read
    unlabelled: int = 0  # the number of lines without any target, which are left out


def is_csv(path: str | Path) -> bool:
    r"""Returns whether a name ends in ``.csv`` or ``.csv.gz``."""
    return str(path).lower().endswith((".csv", ".csv.gz"))


def read_molecules(
    path: str | Path,
    smiles_column: str = "smiles",
    target_column: str | None = None,
    split_column: str | None = None,
    task: str = "auto",
    skip_bad: bool = False,
    features: str = "pyg",
) -> MoleculeTable:
    r"""Reads the molecules of a csv file with a header, which may be compressed (``.csv.gz``).

    Args:
        path (str or Path): The csv file.
        smiles_column (str, optional): The column of the SMILES strings; its case does not count if
            only one column has the name. (default: :obj:`"smiles"`)
        target_column (str, optional): The column, or columns with commas between them, that become
            :obj:`y`. (default: :obj:`None`)
        split_column (str, optional): The column that assigns molecules to splits.
            (default: :obj:`None`)
        task (str, optional): The kind of the targets, see
            :func:`fognn.data.targets.targets_from_cells`. (default: :obj:`"auto"`)
        skip_bad (bool, optional): If :obj:`False`, the first bad line raises a
            :class:`ValueError`. If :obj:`True`, bad lines are left out. (default: :obj:`False`)
        features (str, optional): As in :func:`fognn.data.smiles_to_graph`.
            (default: :obj:`"pyg"`)
    """
    path = user_path(path)
    table = read_table(path)
    columns = list(table.columns)
    smiles = table[_column(path, columns, "--smiles-column", smiles_column)].str.strip()
    names = [] if target_column is None else _target_columns(path, columns, target_column)
    splits = None
    if split_column is not None:
        splits = table[_column(path, columns, "--split-column", split_column)]
    targets, y, bad_targets = None, torch.empty(0), dict[int, str]()
    if names and len(table):
        targets, y, bad_targets = targets_from_cells(table[names], task)
    found = MoleculeTable([], [], len(table), targets)
    for row, text in enumerate(smiles):
        try:
            if row in bad_targets:
                raise ValueError(bad_targets[row])
            graph = smiles_to_graph(text, features)
        except ValueError as error:
            if not skip_bad:
                raise ValueError(
                    f"{path}, line {row + 2}: {error}; --skip-bad (skip_bad=True) skips such lines"
                ) from error
            found.bad.append(BadLine(row + 2, text, str(error)))
            continue
        if targets is not None:
            if bool((y[row].isnan() if y.is_floating_point() else y[row] == -1).all()):
                found.unlabelled += 1
                continue
            graph.y = y[row : row + 1]
        found.graphs.append(graph)
        found.rows.append(row)
        if splits is not None:
            found.splits.append(splits[row])
    return found


def read_table(path: Path) -> "pd.DataFrame":
    r"""Reads a csv file as text, with empty cells as ``""``."""
    import pandas as pd

    if not path.is_file():
        raise ValueError(f"{path} must be a csv file, there is none")
    try:
        # Without index_col, a comma at the end of each line would shift all columns.
        return pd.read_csv(
            path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False
        )
    except (ValueError, OSError, EOFError) as error:  # pandas' own errors are ValueErrors
        raise ValueError(f"{path} must be a csv file in UTF-8: {error}") from error


def _column(path: Path, columns: Sequence[str], option: str, name: str) -> str:
    alike = [column for column in columns if column.strip().lower() == name.strip().lower()]
    if name in columns:
        return name
    if len(alike) == 1:
        return alike[0]
    raise ValueError(
        f"{path}: {option} must be one of its columns, {', '.join(columns)}, got {name!r}"
    )


def _target_columns(path: Path, columns: Sequence[str], text: str) -> list[str]:
    r"""Returns the columns that a text names; a column may have commas in its name."""
    if text in columns:
        return [text]
    names = [_column(path, columns, "--target-column", part.strip()) for part in text.split(",")]
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: --target-column must name each column once, got {text!r}")
    return names

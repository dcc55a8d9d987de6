"""The molecules of examples/ can be read, and both columns can be learned."""

import csv
from pathlib import Path

import pytest

from fognn.data import open_user_data

FILE = Path(__file__).parents[2] / "examples" / "molecules.csv"


def test_columns() -> None:
    with open(FILE, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len({row["smiles"] for row in rows}) == 200
    for row in rows:
        assert row["soluble"] == str(int(float(row["solubility"]) > -2))
    assert 40 < sum(row["soluble"] == "1" for row in rows) < 160


@pytest.mark.parametrize("column", ["solubility", "soluble"])
def test_every_molecule_is_read(column: str) -> None:
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    assert len(open_user_data(FILE, target=column).graphs) == 200


def test_the_source_is_named() -> None:
    text = (FILE.parent / "README.md").read_text(encoding="utf-8")
    assert "GLambard/Molecules_Dataset_Collection" in text
    assert "MIT License" in (FILE.parent / "molecules.LICENSE").read_text(encoding="utf-8")

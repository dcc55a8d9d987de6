import csv

import pytest
import torch

from fognn.data.smiles_csv import column_names, read_molecules, read_smiles_csv

pytest.importorskip("rdkit.Chem")

GOOD = "name,smiles,value\na,CCO,1.5\nb,c1ccccc1,-2\n"


def write(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "molecules.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_read_smiles_csv(tmp_path):
    path = write(tmp_path, GOOD, "utf-8-sig")  # as spreadsheets write it
    graphs, bad = read_smiles_csv(path, target_column="value")
    assert [graph.smiles for graph in graphs] == ["CCO", "c1ccccc1"]
    assert [graph.y.tolist() for graph in graphs] == [[1.5], [-2.0]]
    assert graphs[0].y.dtype == torch.float32
    assert bad == []
    graphs, _ = read_smiles_csv(path)
    assert "y" not in graphs[0]


BROKEN = (
    'smiles,y,note\nCCO,1.5,\nC1CC,2,\nCC,3,"two\nlines"\n[Fe+9],4,\nCCC,much,\nCCCC,inf,\nO,5,\n\n'
)


def test_broken_line_is_named(tmp_path):
    path = write(tmp_path, BROKEN)
    with pytest.raises(ValueError, match=r"molecules.csv, line 3: .*'C1CC'"):
        read_smiles_csv(path, target_column="y")


def test_skip_bad_keeps_the_rest_and_says_how_many(tmp_path):
    path = write(tmp_path, BROKEN)
    with pytest.warns(UserWarning, match=r"4 of 7 lines were skipped, the first is line 3: .*C1CC"):
        graphs, bad = read_smiles_csv(path, target_column="y", skip_bad=True)
    assert [graph.smiles for graph in graphs] == ["CCO", "CC", "O"]
    # TableLine 4 has a field of two lines, so the next row is line 6.
    assert [(line.line, line.smiles) for line in bad] == [
        *((3, "C1CC"), (6, "[Fe+9]")),
        *((7, "CCC"), (8, "CCCC")),
    ]
    assert "formal_charge 9" in bad[1].reason
    assert "column 'y' must be a finite number, or yes or no, got 'much'" in bad[2].reason


def test_gaps_and_short_lines(tmp_path):
    text = "smiles,y,z\nCC,1.5,2\nCCC,,3\nCCCC,4\nC,NaN,n/a\nO\n"
    table = read_molecules(write(tmp_path, text), target_columns=("y", "z"))
    values = torch.cat([graph.y for graph in table.graphs])
    assert torch.equal(values.nan_to_num(-9), torch.tensor([[1.5, 2], [-9, 3], [4, -9]]))
    assert (table.rows, table.total, table.unlabelled) == ([0, 1, 2], 5, 2)
    assert table.targets.gaps == 6


def test_all_targets_missing(tmp_path):
    with pytest.raises(ValueError, match=r"molecules\.csv: column 'y' must have a value, all are"):
        read_smiles_csv(write(tmp_path, "smiles,y\nCC\nC,\n"), target_column="y")


def test_columns_with_commas(tmp_path):
    path = write(tmp_path, 'smiles,"a,b",c,a\nC,1,2,3\n')
    assert column_names(path, "a,b") == ("a,b",)
    assert column_names(path, "a, c") == ("a", "c")
    with pytest.raises(ValueError, match="target_column must name each column once, got 'a,a'"):
        column_names(path, "a,a")


def test_rows_are_those_of_the_input(tmp_path):
    path = write(tmp_path, BROKEN)
    with pytest.warns(UserWarning, match="2 of 7 lines were skipped"):
        table = read_molecules(path, skip_bad=True)
    with open(path, newline="") as file:
        every = [row["smiles"] for row in csv.DictReader(file)]
    assert [every[row] for row in table.rows] == [graph.smiles for graph in table.graphs]
    assert table.rows == [0, 2, 4, 5, 6]


@pytest.mark.parametrize(
    ("text", "encoding", "message"),
    [
        (
            GOOD,
            "utf-8",
            r"smiles_column must be one of \['name', 'smiles', 'value'\], got 'SMILES'",
        ),
        ("", "utf-8", r"smiles_column must be one of \[\], got 'SMILES'"),
        ("SMILES\nCÖ\n", "latin-1", "must be a csv file in UTF-8"),
        ('SMILES\n"CC\n', "utf-8", "must be a csv file in UTF-8: unexpected end"),
    ],
)
def test_bad_csv(tmp_path, text, encoding, message):
    with pytest.raises(ValueError, match=message):
        read_smiles_csv(write(tmp_path, text, encoding), smiles_column="SMILES")


def test_target_column_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"target_column must be one of .*, got 'logp'"):
        read_smiles_csv(write(tmp_path, GOOD), target_column="logp")


def test_missing_csv(tmp_path):
    with pytest.raises(ValueError, match=r"path must name a file, got '.*none.csv'"):
        read_smiles_csv(tmp_path / "none.csv")

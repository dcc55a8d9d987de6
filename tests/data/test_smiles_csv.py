import gzip

import pytest
import torch

from fognn.data import open_user_data, read_molecules

pytest.importorskip("rdkit.Chem")

GOOD = "name,smiles,value\na,CCO,1.5\nb,c1ccccc1,-2\n"
BROKEN = (
    'smiles,y,note\nCCO,1.5,\nC1CC,2,\nCC,3,"two\nlines"\n[Fe+9],4,\nCCC,much,\nCCCC,inf,\nO,5,\n\n'
)


def write(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "molecules.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_read_molecules(tmp_path):
    path = write(tmp_path, GOOD, "utf-8-sig")  # as spreadsheets write it
    table = read_molecules(path, target_column="value")
    assert [graph.smiles for graph in table.graphs] == ["CCO", "c1ccccc1"]
    assert [graph.y.tolist() for graph in table.graphs] == [[1.5], [-2.0]]
    assert table.graphs[0].y.dtype == torch.float32
    assert (table.bad, table.rows, table.total) == ([], [0, 1], 2)
    assert "y" not in read_molecules(path).graphs[0]


def test_compressed_files(tmp_path):
    path = tmp_path / "molecules.csv.gz"
    path.write_bytes(gzip.compress(GOOD.encode()))
    assert [graph.smiles for graph in read_molecules(path).graphs] == ["CCO", "c1ccccc1"]
    data = open_user_data(path, target="value")
    assert [graph.y.item() for graph in data.graphs] == [1.5, -2]


@pytest.mark.parametrize("name", ["SMILES", "Smiles", " smiles"])
def test_the_column_of_smiles_in_any_case(tmp_path, name):
    path = write(tmp_path, GOOD.replace("smiles", name))
    assert len(read_molecules(path, target_column="VALUE").graphs) == 2


def test_a_column_that_is_not_there(tmp_path):
    path = write(tmp_path, GOOD)
    for wrong in ({"target_column": "logp"}, {"target_column": ""}, {"smiles_column": "s"}):
        option = f"--{next(iter(wrong)).replace('_', '-')}"
        with pytest.raises(ValueError, match=f"{option} must be .*name, smiles, value"):
            read_molecules(path, **wrong)
    with pytest.raises(ValueError, match=r"--target-column must be .*name, smiles, value"):
        open_user_data(path)
    # With both there, only the exact name will do.
    with pytest.raises(ValueError, match="--smiles-column"):
        read_molecules(write(tmp_path, "SMILES,Smiles\nC,C\n"))


def test_a_broken_line_is_named_and_the_way_to_skip_it(tmp_path):
    path = write(tmp_path, BROKEN)
    with pytest.raises(ValueError, match=r"molecules.csv, line 3: .*'C1CC'.*--skip-bad"):
        read_molecules(path, target_column="y")
    table = read_molecules(path, target_column="y", skip_bad=True)
    assert [graph.smiles for graph in table.graphs] == ["CCO", "CC", "O"]
    assert (table.rows, table.total) == ([0, 2, 6], 7)
    assert [line.smiles for line in table.bad] == ["C1CC", "[Fe+9]", "CCC", "CCCC"]
    assert "column 'y' must be a finite number, or yes or no, got 'much'" in table.bad[2].reason


def test_gaps_and_short_lines(tmp_path):
    text = "smiles,y,z\nCC,1.5,2\nCCC,,3\nCCCC,4\nC,NaN,n/a\nO\n"
    table = read_molecules(write(tmp_path, text), target_column="y,z")
    values = torch.cat([graph.y for graph in table.graphs])
    assert torch.equal(values.nan_to_num(-9), torch.tensor([[1.5, 2], [-9, 3], [4, -9]]))
    assert (table.rows, table.total, table.unlabelled) == ([0, 1, 2], 5, 2)
    assert table.targets.gaps == 6


def test_labels_that_are_lists(tmp_path):
    """Ten in one column, as in published molecule tables, are ten targets."""
    lines = [f'{"C" * (n + 1)},"{[(n >> bit) & 1 for bit in range(10)]}"' for n in range(40)]
    path = write(tmp_path, "\n".join(["smiles,labels", *lines, "CCO,"]))
    table = read_molecules(path, target_column="labels")
    assert (table.targets.kind, table.targets.columns) == ("yes/no", 10)
    assert table.targets.names[:2] == ("labels_0", "labels_1")
    assert table.graphs[5].y.tolist() == [[1, 0, 1, 0, 0, 0, 0, 0, 0, 0]]
    assert table.unlabelled == 1
    with pytest.raises(ValueError, match="'labels', row 1 must have 2 values"):
        read_molecules(
            write(tmp_path, 'smiles,labels\nC,"[0, 1]"\nC,[1]\n'), target_column="labels"
        )


def test_columns_with_commas(tmp_path):
    path = write(tmp_path, 'smiles,"a,b",c,a\nC,1,2,3\n')
    assert read_molecules(path, target_column="a,b").targets.names == ("a,b",)
    assert read_molecules(path, target_column="a, c").targets.names == ("a", "c")
    with pytest.raises(ValueError, match="--target-column must name each column once"):
        read_molecules(path, target_column="a,a")


def test_bad_csv(tmp_path):
    with pytest.raises(ValueError, match="must be a csv file in UTF-8"):
        read_molecules(write(tmp_path, "SMILES\nCÖ\n", "latin-1"))
    with pytest.raises(ValueError, match=r"none\.csv must be a csv file"):
        read_molecules(tmp_path / "none.csv")
    with pytest.raises(ValueError, match=r"column 'y' must have a value"):
        read_molecules(write(tmp_path, "smiles,y\nCC\nC,\n"), target_column="y")

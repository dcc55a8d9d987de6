import csv
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import from_smiles

from fognn.data import ZINC
from fognn.data.molecules import (
    ATOM_COLUMNS,
    ATOMS,
    BOND_COLUMNS,
    smiles_to_graph,
)

Chem = pytest.importorskip("rdkit.Chem")

# As the issue and the public benchmark list them.
OFFICIAL = (
    "C, O, N, F, C H1, S, Cl, O -, N H1 +, Br, N H3 +, N H2 +, N +, N -, S -, I, P, O H1 +, "
    "N H1 -, O +, S +, P H1, P H2, C H2 -, P +, S H1 +, C H1 -, P H1 +"
)


def csv_rows(real_data, split):
    with open(real_data / "zinc" / f"zinc12k_{split}.csv", newline="") as file:
        yield from csv.DictReader(file)


def test_tokens_are_the_official_ones():
    assert ", ".join(ATOMS) == OFFICIAL
    assert len(set(ATOMS)) == 28


@pytest.mark.parametrize("split", ["val", "test"])
def test_real_molecules_have_the_tokens_of_zinc(tmp_path, real_data, split):
    """The graphs of the SMILES strings are those of the prepared file, with their order."""
    data = ZINC(tmp_path, split, data=real_data)
    for graph, row in zip(data, csv_rows(real_data, split), strict=True):
        made = smiles_to_graph(row["smiles"], "zinc")
        for key in ("x", "edge_index", "edge_attr"):
            assert torch.equal(graph[key], made[key]), row


def test_pyridine_and_pyrrole():
    graph = smiles_to_graph("c1ccncc1C#N", "zinc")
    assert graph.x.tolist() == [0, 0, 0, 2, 0, 0, 0, 2]
    assert graph.edge_attr.dtype == torch.int64
    # A ring of six with alternating bonds, one single bond, one triple bond.
    assert sorted(graph.edge_attr.tolist()) == [1] * 8 + [2] * 6 + [3] * 2
    assert graph.edge_index.tolist() == [
        [1, 5, 0, 2, 1, 3, 2, 4, 3, 5, 0, 4, 6, 5, 7, 6],
        [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 6, 6, 7],
    ]
    assert graph.smiles == "c1ccncc1C#N"
    # The hydrogen of an aromatic nitrogen is not explicit once the ring is kekulised.
    assert smiles_to_graph("c1cc[nH]c1", "zinc").x.tolist() == [0, 0, 0, 2, 0]


@pytest.mark.parametrize("features", ["pyg", "zinc"])
def test_one_atom(features):
    graph = smiles_to_graph("C", features)
    assert graph.edge_index.shape == (2, 0)
    assert graph.edge_index.dtype == torch.int64
    assert graph.validate()


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        ("C[Se]C", r"atom 1 \(counted from 0\) of 'C\[Se\]C' is 'Se', .*; known are C, O, N, F,"),
        ("CC[13CH4]", "valid SMILES .*valence"),
        ("[Na+].C", r"atom 0 .* is 'Na \+'"),
        ("C[O+2]C", r"atom 1 .* is 'O \+2'"),
        ("C$C", r"'C\$C' has a bond .*; known are SINGLE, DOUBLE and TRIPLE"),
        ("C1CC", "smiles must be a valid SMILES string, got 'C1CC': it cannot be parsed"),
        ("CC(C)(C)(C)C", "valence for atom # 1 C, 5, is greater than permitted"),
        ("c1cccc1", "kekulize"),
        ("", "smiles must be a non-empty string, got ''"),
        (" ", "smiles must be a non-empty string, got ' '"),
        (None, "smiles must be a non-empty string, got None"),
    ],
)
def test_bad_smiles(smiles, message, capfd):
    with pytest.raises(ValueError, match=message):
        smiles_to_graph(smiles, "zinc")
    assert capfd.readouterr() == ("", "")  # the error says it, RDKit need not


@pytest.mark.parametrize(
    "smiles", ["CC[NH2]", "C[Se]C", "[Na+].C", "C$C", "F/C=C/F", "[Cu-3]", "OC[C@@H](N)C", "[H][H]"]
)
def test_any_atom_and_bond_with_the_features_of_pyg(smiles):
    graph, pyg = smiles_to_graph(smiles), from_smiles(smiles)
    assert torch.equal(graph.x, pyg.x)
    assert torch.equal(graph.edge_index, pyg.edge_index)
    assert torch.equal(graph.edge_attr, pyg.edge_attr)
    assert (graph.x < torch.tensor(ATOM_COLUMNS)).all()
    assert (graph.edge_attr < torch.tensor(BOND_COLUMNS)).all()


def test_atoms_that_pyg_does_not_have():
    with pytest.raises(ValueError, match=r"\[Fe\+9\]"):
        smiles_to_graph("[Fe+9]")


@settings(deadline=None)
@given(
    smiles=st.text("CNOScno()[]=#123+-@H%./\\ ", max_size=12) | st.text(max_size=5),
    features=st.sampled_from(["pyg", "zinc"]),
)
def test_any_text_gives_a_graph_or_a_value_error(smiles, features):
    try:
        graph = smiles_to_graph(smiles, features)
    except ValueError:
        return
    molecule = Chem.MolFromSmiles(smiles)
    assert graph.num_nodes == molecule.GetNumAtoms()
    assert graph.num_edges == 2 * molecule.GetNumBonds()
    assert graph.is_undirected()
    assert features == "pyg" or graph.x.max() < 28


def test_without_rdkit_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ImportError, match=r"pip install \"fognn\[chem\]\""):
        smiles_to_graph("C")

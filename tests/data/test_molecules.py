import csv
import itertools
import sys

import networkx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import from_smiles

from fognn.data.molecules import (
    ATOM_COLUMNS,
    ATOMS,
    BOND_COLUMNS,
    _longest_ring,
    penalised_logp,
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


@pytest.mark.parametrize("token", range(28))
def test_each_token(token):
    symbol, *rest = ATOMS[token].split()
    smiles = f"[{symbol}{''.join(rest)}]" if rest else symbol
    assert smiles_to_graph(smiles, "zinc").x.tolist() == [token]


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
        ("C$C", r"bond of atoms 0 and 1 .* is QUADRUPLE.*; known are SINGLE, DOUBLE and TRIPLE"),
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


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        ("[Fe+9]", r"atom 0 \(counted from 0\) of '\[Fe\+9\]' has formal_charge 9.*-5 to 6"),
        ("C1CC", "it cannot be parsed"),
    ],
)
def test_atoms_that_pyg_does_not_have(smiles, message):
    with pytest.raises(ValueError, match=message):
        smiles_to_graph(smiles)


def test_unknown_features():
    with pytest.raises(ValueError, match=r"features must be one of .*got 'ogb'"):
        smiles_to_graph("C", "ogb")


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


# The label of ZINC


def test_penalised_logp_is_the_published_label(real_data):
    for row in itertools.islice(csv_rows(real_data, "test"), 300):
        assert penalised_logp(row["smiles"]) == pytest.approx(float(row["y"]), abs=1e-6)


@pytest.mark.slow
def test_penalised_logp_of_all_molecules(real_data):
    for split in ("train", "val", "test"):
        for row in csv_rows(real_data, split):
            assert penalised_logp(row["smiles"]) == pytest.approx(float(row["y"]), abs=1e-6), row


def test_longest_ring_is_that_of_networkx_and_of_the_label(real_data):
    large = [row for row in csv_rows(real_data, "train") if float(row["cycle"]) < 0]
    assert len(large) > 50
    for row in [*large, *itertools.islice(csv_rows(real_data, "val"), 100)]:
        molecule = Chem.MolFromSmiles(row["smiles"])
        graph = networkx.Graph(Chem.GetAdjacencyMatrix(molecule))
        rings = networkx.cycle_basis(graph, root=0)
        longest = _longest_ring(molecule)
        assert longest == max(map(len, rings), default=0)
        assert -max(0, longest - 6) == float(row["cycle"])


def test_longest_ring_of_several_pieces():
    assert _longest_ring(Chem.MolFromSmiles("CCO.C1CCCCCCC1.C1CC1")) == 8
    assert _longest_ring(Chem.MolFromSmiles("CCO")) == 0

import io
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from fognn.datasets.molecules import ATOMS, read_smiles_csv, smiles_to_graph
from fognn.report.molecule_drawing import graph_to_molecule, has_rdkit, molecule_png, molecule_svg

Chem = pytest.importorskip("rdkit.Chem")


def flat(smiles: str) -> str:
    """RDKit's own name of a molecule, without stereochemistry, which graphs do not hold."""
    return Chem.MolToSmiles(Chem.MolFromSmiles(smiles), isomericSmiles=False)


@pytest.mark.parametrize(
    "smiles", ["C", "CCO", "c1ccncc1C#N", "c1cc[nH]c1", "C[NH+](C)CC(=O)[O-]", "CS(=O)(=O)N"]
)
def test_there_and_back(smiles: str) -> None:
    assert Chem.MolToSmiles(graph_to_molecule(smiles_to_graph(smiles))) == flat(smiles)


def test_there_and_back_for_zinc(real_data: Path) -> None:
    graphs, _ = read_smiles_csv(real_data / "zinc" / "zinc12k_test.csv")
    for graph in graphs[:300]:
        assert Chem.MolToSmiles(graph_to_molecule(graph)) == flat(graph.smiles)


@pytest.mark.parametrize("token", range(len(ATOMS)))
def test_every_atom_can_be_drawn(token: int) -> None:
    graph = smiles_to_graph("CC")
    graph.x = torch.tensor([token, 0])
    atom = graph_to_molecule(graph).GetAtomWithIdx(0)
    symbol, *rest = ATOMS[token].split()
    assert atom.GetSymbol() == symbol
    assert atom.GetFormalCharge() == rest.count("+") - rest.count("-")
    assert ElementTree.fromstring(molecule_svg(graph)).tag.endswith("svg")


def test_what_chemistry_forbids_is_drawn(capfd: pytest.CaptureFixture[str]) -> None:
    graph = smiles_to_graph("C#N")
    graph.x = torch.tensor([3, 3])  # a triple bond of two fluorines
    assert molecule_svg(graph).startswith("<svg")
    assert capfd.readouterr().err == ""


def test_png() -> None:
    from PIL import Image

    with Image.open(io.BytesIO(molecule_png(smiles_to_graph("CCO"), 200))) as image:
        image.load()
        assert image.size == (200, 200)
        assert len(image.convert("L").getcolors()) > 2  # not a blank sheet


def test_has_rdkit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_rdkit()
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert not has_rdkit()

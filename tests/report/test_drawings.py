"""Drawings as files, and molecules."""

import io
import re
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from torch_geometric.data import Data

from fognn.data.molecules import ATOMS, smiles_to_graph
from fognn.data.sbm import CLUSTER, PATTERN
from fognn.data.smiles_csv import read_smiles_csv
from fognn.report.drawings.drawing import KINDS, Drawing, check_output, save_drawing
from fognn.report.drawings.molecules import graph_to_molecule, has_rdkit, molecule_png, molecule_svg

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("rdkit")


def item(kind: str, folder: Path) -> Any:
    if kind == "pattern":
        return PATTERN(folder, num_graphs=1)[0]
    if kind == "cluster":
        return CLUSTER(folder, num_graphs=1)[0]
    if kind == "molecule":
        return smiles_to_graph("CC(=O)Oc1ccccc1C(=O)O", "zinc")
    if kind == "images":
        return torch.rand(3, 1, 28, 28)
    ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    if kind == "tour":
        square = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
        return Data(x=square, edge_index=ring, y=torch.ones(8, dtype=torch.int64))
    return Data(x=torch.ones(4, 1), edge_index=ring, y=torch.tensor([2]))


def drawing(kind: str, folder: Path, many: int = 3) -> Drawing:
    return Drawing(
        kind, f"A {kind}", [f"item {i}" for i in range(many)], [item(kind, folder)] * many
    )


def pixels(content: bytes) -> Any:
    with Image.open(io.BytesIO(content)) as image:
        image.load()
        assert image.format == "PNG"
        return image.convert("RGB")


@pytest.mark.parametrize("kind", KINDS)
def test_png(tmp_path: Path, kind: str) -> None:
    path = save_drawing(drawing(kind, tmp_path), tmp_path / "x.png")
    image = pixels(path.read_bytes())
    assert min(image.size) > 200
    # Something is drawn below the title, in each of the three panels (or rows).
    width, height = image.size
    for third in range(3):
        if kind == "images":
            box = (0, height * (3 + 2 * third) // 10, width, height * (5 + 2 * third) // 10)
        else:
            box = (width * third // 3, height // 3, width * (third + 1) // 3, height)
        assert len(image.crop(box).getcolors(1 << 24)) > 4, third


@pytest.mark.parametrize("kind", KINDS)
def test_html_carries_all_in_itself(tmp_path: Path, kind: str) -> None:
    path = save_drawing(drawing(kind, tmp_path), tmp_path / "x.html", "<table></table>")
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert f"<title>A {kind}</title>" in text
    assert "<table></table>" in text
    if kind == "molecule":
        assert text.count("<svg") == text.count("</svg>") == 3
        assert "<figcaption>item 2</figcaption>" in text
    else:
        (inside,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
        assert min(pixels(b64decode(inside)).size) > 200
    # Names of XML are no addresses; nothing is loaded.
    assert not re.search(r'(src|href)="(?!data:)', text)


def test_molecules_without_rdkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = drawing("molecule", tmp_path)
    monkeypatch.setitem(sys.modules, "rdkit", None)
    text = save_drawing(it, tmp_path / "x.html").read_text()
    assert "RDKit is not installed" in text
    assert "fognn[chem]" in text
    assert "<svg" not in text
    assert "data:image/png" in text


def test_one_and_many(tmp_path: Path) -> None:
    for many in (1, 5):
        path = save_drawing(drawing("network", tmp_path, many), tmp_path / f"{many}.png")
        assert pixels(path.read_bytes()).size[0] > 700


@pytest.mark.parametrize("name", ["x", "x.jpg", "x.svg", ".png"])
def test_bad_ending(name: str) -> None:
    with pytest.raises(ValueError, match=r"output must end in \.png or \.html, got"):
        check_output(Path(name))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Drawing("tree", "t", ["a"], [None]), "kind must be one of pattern, .*, got 'tree'"),
        (Drawing("tour", "t", [], []), "items must be at least one"),
        (Drawing("tour", "t", ["a"], [None, None]), "as many as captions, got 2 and 1"),
    ],
)
def test_bad_drawing(tmp_path: Path, bad: Drawing, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        save_drawing(bad, tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


def test_failure_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_text("old")
    with pytest.raises(AttributeError):
        save_drawing(Drawing("tour", "t", ["a"], [None]), tmp_path / "x.png")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


# Molecules

Chem = pytest.importorskip("rdkit.Chem")


def flat(smiles: str) -> str:
    """RDKit's own name of a molecule, without stereochemistry, which graphs do not hold."""
    return Chem.MolToSmiles(Chem.MolFromSmiles(smiles), isomericSmiles=False)


@pytest.mark.parametrize(
    "smiles", ["C", "CCO", "c1ccncc1C#N", "c1cc[nH]c1", "C[NH+](C)CC(=O)[O-]", "CS(=O)(=O)N"]
)
def test_there_and_back(smiles: str) -> None:
    assert Chem.MolToSmiles(graph_to_molecule(smiles_to_graph(smiles, "zinc"))) == flat(smiles)


def test_there_and_back_for_zinc(real_data: Path) -> None:
    graphs, _ = read_smiles_csv(real_data / "zinc" / "zinc12k_test.csv", features="zinc")
    for graph in graphs[:300]:
        assert Chem.MolToSmiles(graph_to_molecule(graph)) == flat(graph.smiles)


@pytest.mark.parametrize("token", range(len(ATOMS)))
def test_every_atom_can_be_drawn(token: int) -> None:
    graph = smiles_to_graph("CC", "zinc")
    del graph.smiles  # which would be drawn instead
    graph.x = torch.tensor([token, 0])
    atom = graph_to_molecule(graph).GetAtomWithIdx(0)
    symbol, *rest = ATOMS[token].split()
    assert atom.GetSymbol() == symbol
    assert atom.GetFormalCharge() == rest.count("+") - rest.count("-")
    assert ElementTree.fromstring(molecule_svg(graph)).tag.endswith("svg")


def test_what_chemistry_forbids_is_drawn(capfd: pytest.CaptureFixture[str]) -> None:
    graph = smiles_to_graph("C#N", "zinc")
    del graph.smiles
    graph.x = torch.tensor([3, 3])  # a triple bond of two fluorines
    assert molecule_svg(graph).startswith("<svg")
    assert capfd.readouterr().err == ""


def test_a_molecule_with_atoms_that_zinc_does_not_have() -> None:
    graph = Data(x=torch.zeros(3, 9, dtype=torch.int64), smiles="C[Si](C)(C)C[Se]")
    text = molecule_svg(graph)
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert text.count("class='bond-") >= 5


def test_a_molecule_as_png() -> None:
    from PIL import Image

    with Image.open(io.BytesIO(molecule_png(smiles_to_graph("CCO"), 200))) as image:
        image.load()
        assert image.size == (200, 200)
        assert len(image.convert("L").getcolors()) > 2  # not a blank sheet


def test_has_rdkit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_rdkit()
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert not has_rdkit()


def test_a_molecule_that_is_too_large_to_draw() -> None:
    pytest.importorskip("rdkit")
    graph = smiles_to_graph("C1CC1" * 300)
    assert "<svg" in molecule_svg(graph)
    assert len(molecule_svg(graph)) < len(molecule_svg(smiles_to_graph("C1CC1" * 10)))
    assert molecule_png(graph)

"""Pictures of graphs, molecules and images."""

import io
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from fognn.data.molecules import ATOMS, smiles_to_graph
from fognn.report.drawings import KINDS, _to_molecule, save_drawing

Image = pytest.importorskip("PIL.Image")
Chem = pytest.importorskip("rdkit.Chem")
INSIDE = re.compile(r'src="data:image/png;base64,([^"]+)"')


def item(kind: str) -> Any:
    if kind == "molecule":
        return smiles_to_graph("CC(=O)Oc1ccccc1C(=O)O", "zinc")
    if kind == "images":
        return torch.rand(3, 1, 28, 28)
    ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    if kind == "tour":
        square = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
        return Data(x=square, edge_index=ring, y=torch.ones(8, dtype=torch.int64))
    return Data(x=torch.ones(4, 1), edge_index=ring, y=torch.tensor([0, 1, 1, 0]))


def drawn_panels(content: bytes, by_rows: bool) -> list[bool]:
    """Whether each third of a picture has more than the background."""
    with Image.open(io.BytesIO(content)) as image:
        assert image.format == "PNG"
        width, height = image.size
        found = []
        for third in range(3):
            box = (width * third // 3, 0, width * (third + 1) // 3, height)
            if by_rows:
                box = (0, height * third // 3, width, height * (third + 1) // 3)
            found.append(len(image.convert("RGB").crop(box).getcolors(1 << 24)) > 4)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_as_picture_and_as_page(tmp_path: Path, kind: str) -> None:
    items, captions = [item(kind)] * 3, ["one", "two", "three"]
    save_drawing(tmp_path / "x.png", kind, "A title", items, captions)
    assert all(drawn_panels((tmp_path / "x.png").read_bytes(), kind == "images"))
    save_drawing(tmp_path / "x.html", kind, "A <b>", items, captions, ["n"], [["1,000"]])
    text = (tmp_path / "x.html").read_text()
    assert "<title>A &lt;b&gt;</title>" in text
    assert "<td>1,000</td>" in text
    (inside,) = INSIDE.findall(text)
    assert all(drawn_panels(b64decode(inside), kind == "images"))
    assert "http" not in text


@pytest.mark.parametrize("smiles", ["CC(=O)Oc1ccccc1C(=O)O", "C[NH+](C)CC#N", "[O-]C(=O)CS"])
def test_a_graph_with_zincs_tokens_is_the_molecule_again(smiles: str) -> None:
    found = _to_molecule(smiles_to_graph(smiles, "zinc"), Chem)
    assert Chem.MolToSmiles(found) == Chem.CanonSmiles(smiles)


def test_every_token_of_zinc_and_what_chemistry_forbids_can_be_drawn(tmp_path: Path) -> None:
    none = {"edge_index": torch.empty(2, 0).long(), "edge_attr": torch.empty(0).long()}
    graphs = [Data(x=torch.tensor([token]), **none) for token in range(len(ATOMS))]
    star = torch.tensor([[0] * 6 + list(range(1, 7)), list(range(1, 7)) + [0] * 6])
    graphs.append(Data(x=torch.zeros(7).long(), edge_index=star, edge_attr=torch.ones(12).long()))
    large = smiles_to_graph("C" * 600)
    large.smiles = "C" * 600  # which is not drawn: RDKit would take minutes
    graphs.append(large)
    save_drawing(tmp_path / "x.png", "molecule", "t", graphs, [""] * len(graphs))

"""Pictures of graphs, molecules and images."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from fognn.data.molecules import ATOMS, smiles_to_graph
from fognn.report.data import _molecule, check_picture, draw

Image = pytest.importorskip("PIL.Image")
Chem = pytest.importorskip("rdkit.Chem")


def item(kind: str) -> Data:
    if kind == "molecule":
        return smiles_to_graph("CC(=O)Oc1ccccc1C(=O)O", "zinc")
    ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    if kind == "tour":
        square = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
        return Data(x=square, edge_index=ring, y=torch.ones(8, dtype=torch.int64))
    return Data(x=torch.ones(4, 1), edge_index=ring, y=torch.tensor([0, 1, 1, 0]))


def drawn_thirds(path: Path) -> list[bool]:
    """Whether each third of a picture has more than the background."""
    with Image.open(path) as image:
        assert image.format == "PNG"
        width, height = image.size
        thirds = [(width * n // 3, 0, width * (n + 1) // 3, height) for n in range(3)]
        colors = [image.convert("RGB").crop(box).getcolors(1 << 24) for box in thirds]
    return [len(found) > 4 for found in colors]


@pytest.mark.parametrize("kind", ["molecule", "tour", "pattern", "cluster", "network"])
def test_each_kind(tmp_path: Path, kind: str) -> None:
    draw(tmp_path / "x.png", kind, "A title", [item(kind)] * 4)
    assert all(drawn_thirds(tmp_path / "x.png"))
    draw(tmp_path / "one.png", kind, "A title", [item(kind)])
    assert drawn_thirds(tmp_path / "one.png")[0]


@pytest.mark.parametrize("smiles", ["CC(=O)Oc1ccccc1C(=O)O", "C[NH+](C)CC#N", "[O-]C(=O)CS"])
def test_a_graph_with_zincs_tokens_is_the_molecule_again(smiles: str) -> None:
    graph = smiles_to_graph(smiles, "zinc")
    del graph.smiles
    assert Chem.MolToSmiles(_molecule(graph, Chem)) == Chem.CanonSmiles(smiles)


def test_every_token_of_zinc_and_what_chemistry_forbids_can_be_drawn(tmp_path: Path) -> None:
    none: dict[str, Any] = {"edge_index": torch.empty(2, 0).long(), "edge_attr": torch.empty(0)}
    graphs = [Data(x=torch.tensor([token]), **none) for token in range(len(ATOMS))]
    star = torch.tensor([[0] * 6 + list(range(1, 7)), list(range(1, 7)) + [0] * 6])
    graphs.append(Data(x=torch.zeros(7).long(), edge_index=star, edge_attr=torch.ones(12).long()))
    large = smiles_to_graph("C" * 600)
    large.smiles = "C" * 600  # which is not drawn: RDKit would take minutes
    graphs.append(large)
    for begin in range(0, len(graphs), 8):
        draw(tmp_path / "x.png", "molecule", "t", graphs[begin : begin + 8])


def test_a_wrong_suffix() -> None:
    with pytest.raises(ValueError, match=r"output must end in \.png, got 'x\.pdf'"):
        check_picture(Path("x.pdf"))

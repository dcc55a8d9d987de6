"""Pictures of graphs, molecules and images, and the output of ``fognn data``."""

import io
import re
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from fognn.data import CLUSTER, PATTERN
from fognn.data.catalog import CATALOG, dataset_info
from fognn.data.molecules import ATOMS, smiles_to_graph
from fognn.report.data import DrawOptions, report_csv, report_dataset, report_datasets
from fognn.report.drawings import KINDS, _to_molecule, save_drawing

Image = pytest.importorskip("PIL.Image")
Chem = pytest.importorskip("rdkit.Chem")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def item(kind: str, folder: Path) -> Any:
    if kind in ("pattern", "cluster"):
        return {"pattern": PATTERN, "cluster": CLUSTER}[kind](folder, num_graphs=1)[0]
    if kind == "molecule":
        return smiles_to_graph("CC(=O)Oc1ccccc1C(=O)O", "zinc")
    if kind == "images":
        return torch.rand(3, 1, 28, 28)
    ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    if kind == "tour":
        square = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
        return Data(x=square, edge_index=ring, y=torch.ones(8, dtype=torch.int64))
    return Data(x=torch.ones(4, 1), edge_index=ring, y=torch.tensor([2]))


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
    items, captions = [item(kind, tmp_path)] * 3, ["one", "two", "three"]
    save_drawing(tmp_path / "x.png", kind, "A title", items, captions)
    assert all(drawn_panels((tmp_path / "x.png").read_bytes(), kind == "images"))
    save_drawing(tmp_path / "x.html", kind, "A <b>", items, captions, ["n"], [["1,000"]])
    text = (tmp_path / "x.html").read_text()
    assert "<title>A &lt;b&gt;</title>" in text
    assert "<td>1,000</td>" in text
    (inside,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert all(drawn_panels(b64decode(inside), kind == "images"))
    assert "http" not in text


def test_molecules_without_rdkit_are_plain_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    save_drawing(tmp_path / "x.png", "molecule", "t", [item("network", tmp_path)] * 3, ["a"] * 3)
    assert all(drawn_panels((tmp_path / "x.png").read_bytes(), False))


@pytest.mark.parametrize("smiles", ["CC(=O)Oc1ccccc1C(=O)O", "C[NH+](C)CC#N", "[O-]C(=O)CS"])
def test_a_graph_with_zincs_tokens_is_the_molecule_again(smiles: str) -> None:
    found = _to_molecule(smiles_to_graph(smiles, "zinc"), Chem)
    assert Chem.MolToSmiles(found) == Chem.CanonSmiles(smiles)


def test_every_token_of_zinc_and_what_chemistry_forbids_can_be_drawn(tmp_path: Path) -> None:
    graphs = [
        Data(x=torch.tensor([token]), edge_index=torch.empty(2, 0, dtype=torch.long),
             edge_attr=torch.empty(0, dtype=torch.long))
        for token in range(len(ATOMS))
    ]  # fmt: skip
    star = torch.tensor([[0] * 6 + list(range(1, 7)), list(range(1, 7)) + [0] * 6])
    graphs.append(Data(x=torch.zeros(7).long(), edge_index=star, edge_attr=torch.ones(12).long()))
    save_drawing(tmp_path / "x.png", "molecule", "t", graphs, [""] * len(graphs))


def test_a_protein_is_not_drawn(tmp_path: Path) -> None:
    graph = smiles_to_graph("C" * 600)
    graph.smiles = "C" * 600
    save_drawing(tmp_path / "x.png", "molecule", "t", [graph], ["large"])  # in no time


def test_only_png_and_html() -> None:
    with pytest.raises(ValueError, match="output must end"):
        DrawOptions(output=Path("x.gif"))


# --- fognn data ---


def cells(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.split("\n") if line.startswith(f"{name}  ")]
    return line[len(name) :].split()


def test_all_datasets(tmp_path: Path) -> None:
    lines = report_datasets(tmp_path).split("\n")
    assert [line.split()[0] for line in lines[2:]] == [entry.name for entry in CATALOG]


def test_zinc_beside_the_published_numbers(real_data: Path, tmp_path: Path) -> None:
    def page(seed: int) -> str:
        options = DrawOptions(2, tmp_path / "out.html", seed)
        text = "\n".join(report_dataset(dataset_info("zinc"), "test", real_data, options))
        assert cells(text, "label, s.d.") == ["2.0180", "2.0180"]
        assert text.endswith(f"drawn: {tmp_path / 'out.html'}")
        return (tmp_path / "out.html").read_text()

    assert page(0) == page(0)
    assert page(0) != page(1)
    assert "<td>2.0180</td>" in page(0)


def test_images_and_an_unknown_split(real_data: Path, tmp_path: Path) -> None:
    list(report_dataset(dataset_info("cifar-fs"), "test", real_data, DrawOptions(1)))
    assert (tmp_path / "cifar-fs-test.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="split"):
        list(report_dataset(dataset_info("zinc"), "x"))


def test_a_csv_of_molecules(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("smiles,y,z\nCCO,1.5,\nCC,2,0\nnot one,1,1\nc1ccccc1,,\n")
    with pytest.raises(ValueError, match="line 4"):
        list(report_csv(path, target_column="y,z"))
    text = "\n".join(report_csv(path, target_column="y,z", skip_bad=True, draw=DrawOptions(2)))
    assert "skipped line 4" in text
    assert "1 molecules without a target" in text.replace(",", "")
    assert cells(text, "graphs") == ["2"]
    assert (tmp_path / "mine.png").exists()

import sys
from pathlib import Path

import pytest

from fognn.data.catalog import CATALOG, dataset_info
from fognn.data.smiles_csv import read_smiles_csv
from fognn.report.drawings import DrawOptions, report_csv, report_dataset, report_datasets
from fognn.report.drawings.data_report import _molecule_caption


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def cells(text: str, name: str) -> list[str]:
    """The cells of a table's row."""
    (line,) = [line for line in text.split("\n") if line.startswith(f"{name}  ")]
    return line[len(name) :].split()


def test_all_datasets(tmp_path: Path, cache: Path) -> None:
    lines = report_datasets(tmp_path).split("\n")
    assert lines[0].split() == ["name", "task", "size", "licence", "source", "here?"]
    assert [line.split()[0] for line in lines[2:]] == [entry.name for entry in CATALOG]
    assert lines[2].endswith("generated")
    assert lines[4].endswith("no")
    assert not cache.exists()


def test_real_data_are_here(real_data: Path) -> None:
    assert report_datasets(real_data).count("data folder") == 5


def test_zinc_beside_the_published_numbers(real_data: Path, tmp_path: Path) -> None:
    options = DrawOptions(2, tmp_path / "out.html")
    text = "\n".join(report_dataset(dataset_info("zinc"), data=real_data, draw=options))
    pairs = [many for many in ("10,000", "1,000", "1,000", "12,000") for _ in "hp"]
    assert cells(text, "graphs") == pairs
    assert cells(text, "label, mean")[:2] == ["0.0153", "0.0153"]
    assert cells(text, "edges, mean")[-2:] == ["49.831", "49.831"]
    assert text.endswith(f"drawn: {tmp_path / 'out.html'}")
    page = (tmp_path / "out.html").read_text()
    assert page.count("<svg") == 2
    assert "<td>0.0153</td>" in page


def test_one_split_and_the_seed(real_data: Path, tmp_path: Path) -> None:
    def page(seed: int) -> str:
        options = DrawOptions(2, tmp_path / "out.html", seed)
        text = "\n".join(report_dataset(dataset_info("zinc"), "test", real_data, options))
        assert cells(text, "label, s.d.") == ["2.0180", "2.0180"]
        return (tmp_path / "out.html").read_text()

    assert page(0) == page(0)
    assert page(0) != page(1)


def test_generated_is_said_once(tmp_path: Path) -> None:
    first = list(report_dataset(dataset_info("cluster"), "val"))
    assert first[0] == (
        "CLUSTER is not in the cache yet: it is generated now, which takes seconds."
    )
    again = list(report_dataset(dataset_info("cluster"), "val"))
    assert again == first[1:]
    assert cells("\n".join(again), "classes") == ["6"]
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]  # nothing is drawn unasked


@pytest.mark.parametrize("name", ["imdb-multi", "cifar-fs"])
def test_others(real_data: Path, name: str, tmp_path: Path) -> None:
    text = "\n".join(report_dataset(dataset_info(name), data=real_data, draw=DrawOptions(1)))
    assert text.endswith(f"drawn: {name}.png")
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_bad_split() -> None:
    with pytest.raises(ValueError, match="split of ZINC must be one of train, val, test, got 'x'"):
        list(report_dataset(dataset_info("zinc"), "x"))
    with pytest.raises(ValueError, match="split of IMDB-MULTI must be one of all, got 'train'"):
        list(report_dataset(dataset_info("imdb-multi"), "train"))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"many": -1}, "many must be at least 0, got -1"),
        ({"seed": -1}, r"seed must be in \[0, 2\*\*64\), got -1"),
        ({"output": Path("x.gif")}, "output must end in .png or .html"),
    ],
)
def test_bad_options(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DrawOptions(**bad)  # type: ignore[arg-type]


# The molecules of a user


def write(tmp_path: Path, *lines: str) -> Path:
    (tmp_path / "my.csv").write_text("\n".join(["smiles,y", *lines]))
    return tmp_path / "my.csv"


def test_csv(tmp_path: Path) -> None:
    path = write(tmp_path, "CCO,1", "CC#N,3")
    text = "\n".join(report_csv(path, target_column="y", draw=DrawOptions()))
    assert cells(text, "nodes, mean") == ["3.0000"]
    assert cells(text, "label, mean") == ["2.0000"]
    assert text.endswith("drawn: my.png")
    assert (tmp_path / "my.png").stat().st_size > 10_000


def test_broken_line_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    path = write(tmp_path, "CCO,1", "CC(,1")
    with pytest.raises(ValueError, match=r"my\.csv, line 3: .*'CC\('"):
        list(report_csv(path, draw=DrawOptions()))
    assert [file.name for file in tmp_path.iterdir()] == ["my.csv"]


@pytest.mark.filterwarnings("error")
def test_skip_bad_says_how_many(tmp_path: Path) -> None:
    lines = list(report_csv(write(tmp_path, "CCO,1", *["CC(,1"] * 12), skip_bad=True))
    assert lines[0].startswith("skipped line 3: smiles must be a valid SMILES string")
    assert lines[10:12] == ["... and 2 more", "12 of 13 lines were skipped"]
    assert cells(lines[12], "graphs") == ["1"]


def test_no_molecule_is_left(tmp_path: Path) -> None:
    for lines in ([], ["CC(,1"]):
        with pytest.raises(ValueError, match=r"my\.csv must hold a molecule"):
            list(report_csv(write(tmp_path, *lines), skip_bad=True))


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "CCO,1")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    # Who did not ask for a drawing still gets the numbers; who did is told before the work.
    text = "\n".join(report_csv(path, draw=DrawOptions()))
    assert "nothing is drawn: drawings need matplotlib" in text
    assert "fognn[report]" in text
    with pytest.raises(ImportError, match=r"fognn\[report\]"):
        DrawOptions(output=tmp_path / "x.png")


def test_a_csv_with_several_targets_and_gaps(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    path = tmp_path / "a.csv"
    path.write_text("smiles,a,b\nCCO,1,\nCC,0,1\nC,,\n")
    lines = list(report_csv(path, target_column="a,b"))
    assert lines[0] == "target a, b: 2 columns of yes or no (classification), 3 missing"
    assert lines[1] == "1 molecules without a target are left out"
    assert "nan" not in lines[2]
    captions = _molecule_caption(0, read_smiles_csv(path, target_column="a,b")[0][0])
    assert captions == "CCO, y = 1, –"

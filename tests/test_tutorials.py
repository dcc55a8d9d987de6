"""The notebooks of docs/tutorials are whole, small, and run."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def test_there_are_tutorials() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["cora", "molecules", "paper_row"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_whole_and_small(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < 20_000
    for cell in notebook.cells:
        assert all(len(line) <= 100 for line in cell.source.splitlines())
        for output in cell.get("outputs", ()):
            assert output.output_type != "error"
            assert output.get("name") != "stderr"  # warnings name paths of a machine


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if path.stem == "molecules":
        pytest.importorskip("rdkit")
    if path.stem == "cora":  # or it downloads the graph
        request.getfixturevalue("real_data")
    # "!fognn ..." is the command of the interpreter that runs the tests.
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    notebook = nbformat.read(path, as_version=4)
    # A cell that raises fails the test; a command that fails must be looked for in what it printed.
    notebook = NotebookClient(
        notebook,
        timeout=1800,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    printed = "".join(
        output.get("text", "")
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    assert "fognn: " not in printed.replace("fognn: warning:", ""), printed
    assert {
        "cora": "GAT+FOG  ",
        "molecules": "predictions.csv: 3 predictions",
        "paper_row": "GCN+FOG [1] †",
    }[path.stem] in printed

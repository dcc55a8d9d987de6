"""The wheel and the sdist: what is in them, and that the wheel installs and works."""

import ast
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import fognn

ROOT = Path(__file__).parents[1]


def run(*command: object, cwd: Path = ROOT) -> str:
    words = [str(word) for word in command]
    # What is imported is what is installed.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_citation_names_paper_and_software() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == fognn.__version__
    assert citation["license"] == "MIT"
    paper = citation["preferred-citation"]
    assert paper["title"].startswith("Feature Correlation Aggregation")
    assert [author["family-names"] for author in paper["authors"]] == [
        "Zhou", "Zhang", "Fang", "Petersson", "Harandi",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both, built without the network: hatchling is installed."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.mark.slow
def test_twine_accepts_both(packages: Path) -> None:
    (wheel,), (sdist,) = packages.glob("*.whl"), packages.glob("*.tar.gz")
    assert (
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist).count("PASSED") == 2
    )


@pytest.mark.slow
def test_the_wheel_has_the_package_alone_and_the_sdist_everything(packages: Path) -> None:
    (wheel,), (sdist,) = packages.glob("*.whl"), packages.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"fognn"}
    assert {
        "fognn/py.typed",
        "fognn/experiments/rows.toml",
        "fognn/experiments/extra_rows.toml",
    } <= set(names)
    kept = {"fognn/kept/weights/zinc/gcn+fog.safetensors", "fognn/kept/results/zinc.jsonl"}
    assert kept <= set(names)
    assert not [name for name in names if "kept/weights/controls" in name]
    assert wheel.stat().st_size < 10_000_000
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"results/zinc.jsonl", "docs/index.md", "mkdocs.yml", "CITATION.cff", "Makefile"}
    assert wanted <= inside
    assert {"tests/test_packaging.py", "constraints.txt", "LICENSE"} <= inside


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(packages: Path, tmp_path: Path) -> None:
    """fognn comes from the wheel. To download no torch, its dependencies are those of the running
    interpreter, through a .pth file; that all of them are declared is another test."""
    (wheel,) = packages.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    folder = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    run(folder / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    purelib = run(
        folder / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
    ).strip()
    # The folder comes after the environment's own, and .pth files within it (an editable install
    # of fognn) are not followed.
    (Path(purelib) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    code = (
        "import fognn, torch; from fognn import FOG; "
        "print(fognn.__file__, FOG(4, 8)(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]])).shape)"
    )
    printed = run(folder / "python", "-c", code, cwd=tmp_path)
    assert printed.startswith(purelib)
    assert "torch.Size([3, 8])" in printed
    assert run(folder / "fognn", "--version", cwd=tmp_path) == f"fognn {fognn.__version__}\n"
    # Outside a clone the figures and the weights are those of the package.
    figures = run(folder / "fognn", "table", "zinc", "--csv", cwd=tmp_path)
    assert figures == run(sys.executable, "-m", "fognn", "table", "zinc", "--csv")
    code = "import fognn; fognn.create_model('gcn+fog', 'zinc', pretrained=True); print('loaded')"
    assert run(folder / "python", "-c", code, cwd=tmp_path) == "loaded\n"


def test_imports_are_declared() -> None:
    """Each library that fognn imports is a dependency, or in an extra; layers and networks need the
    dependencies only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(name for extra in extras.values() for name in extra)]
    known = {entry.replace("-", "_").partition(">")[0].lower() for entry in declared}
    known |= {"yaml", "pil", "fognn", *sys.stdlib_module_names}
    for path in (ROOT / "fognn").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                assert name.partition(".")[0].lower() in known, f"{path.name} imports {name}"

"""The command as a user runs it: its output, what it writes and its exit code."""

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import fognn
from fognn.cli import main

CSV = "name,smiles,sol\na,CCO,0.5\nb,CC(C,1\nc,CC#N,1.5\nd,[Au],2\n"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def process(*arguments: str) -> Done:
    """A process of its own, which takes seconds to load torch."""
    environment = {**os.environ, "PYTHONPATH": str(Path(fognn.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "fognn", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """The same in this process, for the many cases."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main replaces it

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["fognn", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        code = left.value.code
        assert code is None or isinstance(code, int)
        return Done(code or 0, *capfd.readouterr())

    return run


def written(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "here").iterdir())


def assert_one_line(done: Done, message: str) -> None:
    assert done.returncode == 1
    assert re.fullmatch(rf"fognn: .*{message}.*\n", done.stderr), done.stderr


# In a process


def test_version() -> None:
    assert process("--version") == (0, f"fognn {fognn.__version__}\n", "")


def test_a_dataset_in_a_process(real_data: Path, tmp_path: Path) -> None:
    done = process("data", "zinc", "--data", str(real_data), "--draw", "2", "-o", "z.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^label, mean +0\.0153 +0\.0153 ", done.stdout, re.M)
    assert (tmp_path / "here" / "z.png").read_bytes().startswith(b"\x89PNG")


def test_an_error_in_a_process(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(CSV)
    done = process("data", str(tmp_path / "mine.csv"))
    assert_one_line(done, r"mine\.csv, line 3: smiles must be .*'CC\(C'")
    assert done.stdout == ""
    assert written(tmp_path) == []


def test_wrong_usage_in_a_process() -> None:
    done = process("data", "--nothing")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "No such option" in done.stderr


def test_output_into_a_closed_pipe() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(fognn.__file__).parents[1])}
    command = f"{sys.executable} -m fognn data | true"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, env=environment, check=False
    )
    assert "Traceback" not in done.stderr


# In this process


@pytest.mark.parametrize("command", [[], ["data"], ["generate"], ["generate", "tsp"]])
def test_every_help_has_an_example(run, command: list[str]) -> None:
    done = run(*command, "--help")
    assert done.returncode == 0
    assert re.search(rf"Examples?:\s+{' '.join(['fognn', *command])}", done.stdout)


def test_list(run, tmp_path: Path) -> None:
    done = run("data")
    assert done.returncode == 0
    assert done.stderr == ""
    assert re.search(r"^ZINC +graphs to penalised logP .* no$", done.stdout, re.M)
    assert re.search(r"^PATTERN .* generated$", done.stdout, re.M)
    assert written(tmp_path) == []


def test_list_with_data(run, real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_option = run("data", "--data", str(real_data)).stdout
    assert re.search(r"^ZINC .* data folder$", by_option, re.M)
    monkeypatch.setenv("FOGNN_DATA", str(real_data))
    assert run("data").stdout == by_option


def test_zinc(run, real_data: Path, tmp_path: Path) -> None:
    done = run("data", "zinc", "--data", str(real_data), "--draw", "3", "-o", "z.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^label, mean +0\.0153 +0\.0153 ", done.stdout, re.M)
    assert done.stdout.endswith("drawn: z.html\n")
    assert (tmp_path / "here" / "z.html").read_text().count("</svg>") == 3
    # Without -o the drawing has the dataset's name.
    done = run("data", "ZINC", "--split", "val", "--data", str(real_data))
    assert done.stdout.endswith("drawn: zinc-val.png\n")
    assert written(tmp_path) == ["z.html", "zinc-val.png"]


def test_generated_on_a_fresh_machine(run, tmp_path: Path) -> None:
    done = run("data", "pattern", "--split", "val", "--draw", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("PATTERN is not in the cache yet: it is generated now")
    assert re.search(r"^graphs +2,000 +2,000$", done.stdout, re.M)
    assert written(tmp_path) == []


def test_own_molecules(run, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    assert_one_line(run("data", str(path)), r"mine\.csv, line 3: smiles must be .*'CC\(C'")
    assert written(tmp_path) == []
    done = run("data", str(path), "--skip-bad", "--target-column", "sol", "-o", "mine.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert "skipped line 3: " in done.stdout
    assert "2 of 4 lines were skipped" in done.stdout
    assert re.search(r"^label, mean +1\.0000$", done.stdout, re.M)
    assert written(tmp_path) == ["mine.png"]


def test_other_columns(run, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("molecule;x,structure\n1,CCO\n")
    done = run("data", str(path), "--smiles-column", "structure", "--draw", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert_one_line(
        run("data", str(path)), "smiles_column must be one of .*structure.*got 'smiles'"
    )


def test_unknown_atom_is_named_with_what_is_known(run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("smiles\n[Au]\n")
    done = run("data", str(tmp_path / "mine.csv"))
    assert_one_line(done, "line 2: atom 0 .*is 'Au', which is not known; known are C, O, N")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "zink"], "name must be one of PATTERN, .*got 'zink'"),
        (["data", "zinc"], r"zinc/zinc12k\.npz .*set FOGNN_DATA"),
        (["data", "zinc", "--split", "valid"], "split of ZINC must be one of train, val, test"),
        (["data", "zinc", "--data", "/nowhere"], "data must name an existing folder"),
        (["data", "zinc", "-o", "x.jpg"], r"output must end in \.png or \.html"),
        (["data", "zinc", "--seed", "-1"], "seed must be in"),
        (["data", "nothing.csv"], "path must name a file, got 'nothing.csv'"),
        (["data", "miniimagenet"], "ImageNet's licence"),
        (["generate", "tsp", "--graphs", "2", "-o", "x.npy"], r"path must be .*\.npz"),
        (["generate", "tsp", "--graphs", "2", "--split", "x", "-o", "x.npz"], "split must be one"),
    ],
)
def test_expected_errors_are_one_line(run, tmp_path: Path, arguments, message: str) -> None:
    done = run(*arguments)
    assert_one_line(done, message)
    assert done.stdout == ""
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nothing"], "No such option"),
        (["trane"], "No such command"),
        (["data", "--draw", "x"], "--draw"),
        (["data", "zinc", "--draw", "-1"], "--draw"),
        (["data", "zinc", "--skip-bad"], "--skip-bad has no meaning here: zinc is not a csv file"),
        (["data", "zinc", "--draw", "0", "-o", "x.png"], "-o has no meaning here"),
        (["data", "x.csv", "--split", "val"], "--split has no meaning here"),
        (["data", "-o", "x.png"], "-o has no meaning here: all datasets are listed"),
        (["generate", "tsp"], "--graphs|--output"),
    ],
)
def test_wrong_usage(run, tmp_path: Path, arguments, message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert re.search(message, done.stderr)
    assert "Traceback" not in done.stderr
    assert written(tmp_path) == []


def test_damaged_file_is_one_line(run, tmp_path: Path) -> None:
    (tmp_path / "data" / "zinc").mkdir(parents=True)
    (tmp_path / "data" / "zinc" / "zinc12k.npz").write_bytes(b"PK\x03\x04 cut short")
    done = run("data", "zinc", "--data", str(tmp_path / "data"))
    assert_one_line(done, r"zinc12k\.npz is not a whole \.npz file")
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "module", "extra"),
    [
        (["data", "../mine.csv"], "rdkit", "chem"),
        (["data", "zinc", "-o", "x.png"], "matplotlib.figure", "report"),
        (["generate", "tsp", "--graphs", "1", "-o", "x.npz"], "fast_tsp", "tsp"),
    ],
)
def test_a_missing_extra_is_one_line(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments, module: str, extra: str
) -> None:
    (tmp_path / "mine.csv").write_text(CSV)
    monkeypatch.setitem(sys.modules, module, None)
    assert_one_line(run(*arguments), rf'pip install "fognn\[{extra}\]"')
    assert written(tmp_path) == []


def test_warning_is_one_line(run, tmp_path: Path) -> None:
    (tmp_path / "data" / "imdb_multi").mkdir(parents=True)
    (tmp_path / "data" / "imdb_multi" / "IMDBMULTI.txt").write_text("1\n2 0\n0 1 1\n0 1 0\n")
    done = run("data", "imdb-multi", "--data", str(tmp_path / "data"), "--draw", "0")
    assert done.returncode == 0
    assert re.fullmatch(r"fognn: warning: .*is not the official file.*\n", done.stderr)


def test_generate_tsp(run, tmp_path: Path) -> None:
    arguments = ["generate", "tsp", "--graphs", "3", "--seconds", "0.01", "--fewest", "30"]
    arguments += ["--most", "40", "--workers", "1", "--split", "val", "-o", "d/tsp/tsp_val.npz"]
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (0, "d/tsp/tsp_val.npz: 3 instances\n")
    done = run("data", "tsp", "--split", "val", "--data", "d", "--draw", "1")
    assert done.returncode == 0
    assert re.search(r"^graphs +3 +1,000$", done.stdout, re.M)
    assert "tsp-val.png" in written(tmp_path)


def test_looking_at_data_loads_no_training_and_no_chemistry() -> None:
    program = (
        "import sys, fognn.cli, fognn.report.data_report\n"
        "bad = ('rdkit', 'PIL', 'matplotlib', 'fast_tsp', 'lightning', 'ray')\n"
        "print([m for m in sys.modules if m.split('.')[0] in bad or m == 'fognn.training'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"

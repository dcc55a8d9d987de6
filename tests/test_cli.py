"""The command as a user runs it: its output, what it writes and its exit code."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch
import yaml
from command_line import Done, Run

import fognn
from fognn.models import list_models

ROOT = Path(fognn.__file__).parents[1]
CSV = "name,smiles,sol\na,CCO,0.5\nb,CC(C,1\nc,CC#N,1.5\nd,[Au+9],2\n"
COMMANDS = ["train", "predict", "compare", "reproduce", "table", "report", "verify", "data"]
COMMANDS += ["models", "info"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def process(*arguments: str) -> subprocess.Popen[str]:
    """A process of its own, which takes seconds to load torch."""
    return subprocess.Popen(
        [sys.executable, "-m", "fognn", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def written() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def assert_one_line(done: Done, message: str) -> None:
    assert done.returncode == 1
    assert re.fullmatch(rf"fognn: .*{message}.*\n", done.stderr), done.stderr


# --- help, wrong usage, errors ---


def test_a_process_has_version_errors_and_exit_code() -> None:
    out, err = process("--version").communicate(timeout=60)
    assert (out, err) == (f"fognn {fognn.__version__}\n", "")
    Path("mine.csv").write_text(CSV)
    child = process("data", "mine.csv")
    out, err = child.communicate(timeout=60)
    assert_one_line(Done(child.returncode, out, err), r"line 3.*'CC\(C'")
    assert written() == ["mine.csv"]


def test_help_does_not_import_torch() -> None:
    program = "import sys, fognn.cli; print([m for m in sys.modules if m in ('torch', 'rdkit')])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"


def test_the_commands(run: Run) -> None:
    shown = run("--help").stdout.partition("Commands:")[2]
    assert re.findall(r"^  (\w+) ", shown, re.M) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example_and_defaults(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert re.search(rf"Examples?:\s+fognn {command}", done.stdout)
    optional = re.findall(r"^  -\S+ <(?:int|float)[^\n]*(?:\n {6,}[^\n]*)*", done.stdout, re.M)
    assert all("[" in text for text in optional), optional


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nothing"], "No such option"),
        (["trane"], "No such command"),
        (["data", "x.csv", "--split", "val"], "--split"),
        (["train", "cluster", "gcn", "--seed", "-1"], "--seed"),
        (["train", "cluster", "gcn", "--lr", "fast"], "--lr"),
        (["predict", "run", "x.csv"], "--output"),
        (["predict", "run"], "INPUT"),
        (["reproduce", "zinc", "--rates", "0.1"], "--search"),
        (["table", "zinc", "--csv", "--latex"], "--latex"),
        (["verify"], "--all"),
    ],
)
def test_wrong_usage(run: Run, arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert written() == []


SMALL = ["train", "cluster", "gcn", "--batch-size", "4", "--set", "data.fraction=0.0008"]
SMALL += ["--set", "machine.threads=1", "--set", "model.channels=8"]
PREDICT = ["predict", "nowhere", "x.csv", "-o", "y.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "zink"], "'zink'"),
        (["data", "zinc", "--split", "valid"], "split.*'valid'"),
        (["data", "nothing.csv"], "nothing.csv"),
        (["data", "miniimagenet"], "miniimagenet"),
        (["train"], "data and model"),
        (["train", "zink", "gcn"], "'zink'"),
        (["train", "cluster", "gcm"], "'gcm'.*gcn"),
        (["train", "nothing.csv", "gcn", "--target-column", "x"], "nothing.csv"),
        (["train", "nothing.npz", "gcn"], "nothing.npz"),
        (["train", "--config", "nothing.yaml"], "nothing.yaml"),
        ([*SMALL, "--epochs", "0"], "training.epochs.*0"),
        ([*SMALL, "--lr", "-1"], "training.lr.*-1"),
        ([*SMALL, "--batch-size", "0"], "training.batch_size"),
        ([*SMALL, "--device", "tpu"], "device.*'tpu'"),
        ([*SMALL, "--set", "data.fraction=2"], "data.fraction.*2"),
        ([*SMALL, "--set", "model.hh=3"], "hh"),
        ([*SMALL, "--set", "training.speed=3"], "training.speed"),
        ([*SMALL, "--set", "training.lr"], "training.lr"),
        ([*SMALL, "--logger", "comet"], "logger.*'comet'"),
        ([*SMALL, "--recipe", "old"], "recipe.*'old'"),
        (PREDICT, "run.*'nowhere'"),
        (["models", "x*"], r"'x\*'"),
        (["reproduce", "zink"], "'zinc'"),
        (["reproduce", "zinc", "--search", "--rates", "a"], "rates"),
        (["reproduce", "cluster", "--workers", "many"], "workers"),
        (["table", "zink"], "'zinc'"),
        (["table", "zinc", "--minus", "gat-x"], "minus.*'gat-x'"),
        (["table", "claims", "--minus", "gcn"], "minus"),
        (["verify", "znic"], "'znic'"),
        (["report", "-o", "site", "--results", "none"], "none"),
        (["report", "nothing", "-o", "site"], "nothing"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    run: Run, arguments: list[str], message: str
) -> None:
    assert_one_line(run(*arguments), message)
    assert written() == []


def test_a_missing_extra_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.csv").write_text(CSV)
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert_one_line(run("data", "mine.csv"), r'pip install "fognn\[chem\]"')


def test_a_warning_is_shown_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def app(**_: str) -> None:
        for text in ("dead\nunits", "other", "dead\nunits"):
            with warnings.catch_warnings():  # Python forgets what it has shown
                warnings.simplefilter("always")
                warnings.warn(text, stacklevel=2)
        sys.exit(0)

    monkeypatch.setattr(sys.modules["fognn.cli.options"], "app", app)
    for _ in range(2):  # a command each
        assert run("verify").stderr == "fognn: warning: dead units\nfognn: warning: other\n"


# --- data, models, info ---


def test_all_datasets(run: Run) -> None:
    done = run("data")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^ZINC .* download$", done.stdout, re.M)
    assert re.search(r"^PATTERN .* generated$", done.stdout, re.M)
    assert written() == []


def test_zinc(run: Run, real_data: Path) -> None:
    done = run("data", "zinc", "--data", str(real_data))
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^label, mean +0\.0153 +0\.0153 ", done.stdout, re.M)
    done = run("data", "ZINC", "--split", "val", "--data", str(real_data))
    assert (done.returncode, written()) == (0, [])
    done = run("data", "zinc", "--split", "val", "-o", "z.png", "--data", str(real_data))
    assert (done.stdout.endswith("drawn: z.png\n"), written()) == (True, ["z.png"])


def test_own_molecules(run: Run) -> None:
    Path("mine.csv").write_text(CSV)
    assert_one_line(run("data", "mine.csv"), r"line 3.*'CC\(C'")
    done = run("data", "mine.csv", "--skip-bad")
    assert done.returncode == 0
    assert re.search(r"^graphs +2$", done.stdout, re.M)
    assert written() == ["mine.csv"]


def test_own_graphs_are_described(run: Run) -> None:
    """Sizes, the kind of the target, the balance of the classes, and the splits."""
    shutil.copy(ROOT / "examples" / "molecules.csv", "m.csv")
    done = run("data", "m.csv", "--target-column", "soluble")
    assert done.returncode == 0
    for text in (r"graphs +200", r"target of each graph +.*yes", r"share of yes +0\.\d+"):
        assert re.search(rf"^.*{text}", done.stdout, re.M), text
    sizes = [int(n) for n in re.findall(r"^split \w+ +(\d+)$", done.stdout, re.M)]
    assert sum(sizes) == 200
    assert len(sizes) == 3


def test_models_and_info(run: Run, tmp_path: Path) -> None:
    done = run("models")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(re.search(rf"^{re.escape(name)}\b", done.stdout, re.M) for name in list_models())
    assert not re.search(r"^gcn\b(?!\+)", run("models", "*+fog").stdout, re.M)
    done = run("info")
    assert re.search(rf"^torch +{re.escape(torch.__version__)}$", done.stdout, re.M)
    assert re.search(rf"^cache +{re.escape(str(tmp_path / 'cache'))}$", done.stdout, re.M)
    assert written() == []


# --- train, predict ---


def scores(folder: Path) -> list[dict[str, str]]:
    """metrics.csv without what the clock decides."""
    with open(folder / "metrics.csv", newline="") as file:
        return [
            {name: text for name, text in row.items() if "seconds" not in name}
            for row in csv.DictReader(file)
        ]


def interrupted(arguments: list[str], folder: Path, lines: int, number: signal.Signals) -> Done:
    """A process that gets a signal once metrics.csv has so many lines."""
    child = process(*arguments)
    try:
        deadline = time.monotonic() + 120
        while child.poll() is None and time.monotonic() < deadline:
            file = folder / "metrics.csv"
            if file.exists() and len(file.read_text().splitlines()) >= lines:
                child.send_signal(number)
                break
            time.sleep(0.005)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait(timeout=60)
    return Done(child.returncode, out, err)


def test_killed_then_interrupted_it_resumes(run: Run, here: Path) -> None:
    arguments = [*SMALL, "--epochs", "150", "-o", "run"]
    done = interrupted(arguments, here / "run", 3, signal.SIGKILL)
    assert done.returncode == -signal.SIGKILL, done.stderr
    first = len(scores(here / "run"))
    assert 2 <= first < 150

    done = interrupted(arguments, here / "run", first + 3, signal.SIGINT)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("fognn: ")
    assert last.endswith(shlex.join(["fognn", *arguments]))
    assert len(scores(here / "run")) < 150

    done = run(*arguments, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    run(*SMALL, "--epochs", "150", "-o", "whole", "--quiet")
    assert scores(here / "run") == scores(here / "whole")


@pytest.fixture
def trained(run: Run) -> Path:
    """A run on the molecules of a csv file."""
    shutil.copy(ROOT / "examples" / "molecules.csv", "mine.csv")
    command = "train mine.csv gin+fog --target-column solubility --epochs 2 -o run --quiet --seed 3"
    done = run(*command.split(), "--set", "model.channels=8", "--lr", "0.01")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "run"
    assert written() == ["mine.csv", "run"], "nothing but the run"
    return Path("run")


def test_options_settings_and_a_run_again(run: Run, trained: Path) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text())
    assert (config["seed"], config["data"]["target"]) == (3, "solubility")
    assert (config["training"]["lr"], config["model"]["channels"]) == (0.01, 8)
    before = {path.name: path.stat().st_mtime_ns for path in trained.iterdir()}
    repeat = ["train", "--config", "run/config.yaml", "-q"]
    done = run(*repeat, "-o", "run")
    assert done.returncode == 0
    assert "--again" in done.stdout + done.stderr, "it says that nothing was trained"
    assert {path.name: path.stat().st_mtime_ns for path in trained.iterdir()} == before
    done = run(*repeat, "-o", "run", "--lr", "0.5")
    assert done.returncode == 1
    assert "training.lr: 0.01 and 0.5" in done.stderr
    assert run(*repeat, "-o", "again").returncode == 0
    assert scores(Path("again")) == scores(trained)


def test_predict(run: Run, trained: Path) -> None:
    Path("new.csv").write_text("name,molecule\na,CCO\nb,CC(C\nc,CC#N\n")
    arguments = ["predict", "run", "new.csv", "-o", "out.csv"]
    assert_one_line(run(*arguments), "--smiles-column.*molecule")
    arguments += ["--smiles-column", "molecule"]
    assert_one_line(run(*arguments), r"line 3.*--skip-bad")
    done = run(*arguments, "--skip-bad")
    assert (done.returncode, done.stdout) == (0, "out.csv: 2 predictions\n")
    rows = list(csv.DictReader(io.StringIO(Path("out.csv").read_text())))
    assert [row["smiles"] for row in rows] == ["CCO", "CC#N"]

    result = json.loads((trained / "result.json").read_text())
    done = run("predict", "run", "--split", "test", "-o", "test.csv")
    seen = dict(re.findall(r"^(test_\w+): (\S+)$", done.stdout, re.M))
    assert float(seen["test_mae_items"]) == pytest.approx(result["test"]["best"]["items"], rel=1e-4)
    rows = list(csv.DictReader(io.StringIO(Path("test.csv").read_text())))
    (truth,) = [name for name in rows[0] if name not in ("row", "smiles", "prediction")]
    errors = [abs(float(row[truth]) - float(row["prediction"])) for row in rows]
    assert sum(errors) / len(errors) == pytest.approx(result["test"]["best"]["items"], rel=1e-3)

    for wrong in (["--checkpoint", "first"], ["--device", "tpu"]):
        done = run("predict", "run", "--split", "test", *wrong)
        assert_one_line(done, f"{wrong[0][2:]}.*{wrong[1]}")
    assert_one_line(run("predict", "run", "--split", "valid"), "split.*'valid'")


def test_kept_weights_by_name(run: Run) -> None:
    Path("m.csv").write_text("smiles\nCCO\nc1ccccc1O\n")
    done = run("predict", "zinc/gcn+fog", "m.csv", "-o", "a.csv")
    assert (done.returncode, done.stdout) == (0, "a.csv: 2 predictions\n"), done.stderr
    assert_one_line(run("predict", "zinc/nothing", "m.csv", "-o", "a.csv"), "'zinc/nothing'")


def test_verify(run: Run, here: Path, real_data: Path) -> None:
    """The kept weights of two rows; then one file is damaged and one is missing."""
    shutil.copytree(ROOT / "weights" / "zinc", "weights/zinc")
    Path("results").mkdir()
    lines = (ROOT / "results" / "zinc.jsonl").read_text().splitlines()
    names = ("gcn", "gat")
    kept = [
        line
        for line in lines
        if (entry := json.loads(line)).get("weights") and entry["label"] in ("GCN", "GAT")
    ]
    Path("results/zinc.jsonl").write_text("\n".join(kept) + "\n")
    for path in Path("weights/zinc").iterdir():
        if path.stem not in names:
            path.unlink()
    done = run("verify", "zinc", "--data", str(real_data))
    assert done.returncode == 0, done.stdout + done.stderr
    figure = r"(\d\.\d{3}  \d\.\d{3})"
    assert len(re.findall(rf"^zinc/\w+ +\d +{figure} +\1 +ok$", done.stdout, re.M)) == 2
    Path("weights/zinc/gcn.safetensors").write_bytes(b"no weights")
    Path("weights/zinc/gat.safetensors").rename("weights/zinc/other.safetensors")
    done = run("verify", "--all", "--data", str(real_data))
    assert done.returncode == 1
    assert "0 of 3 networks" in done.stdout


# --- tables ---

TABLE_OF_SECONDS = ["--fraction", "0.0008", "--epochs", "1", "--set", "training.batch_size=4"]


def test_a_table_from_runs_to_site(run: Run) -> None:
    command = ["reproduce", "cluster", "--models", "gcn,gcn+fog", *TABLE_OF_SECONDS, "-q"]
    done = run(*command, "--dry-run")
    assert done.stdout.count("fognn train cluster gcn") == 2
    assert written() == []
    done = run(*command)
    assert done.returncode == 0, done.stderr
    lines = Path("results/cluster.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["model"] for line in lines) == ["gcn", "gcn+fog"]
    done = run(*command)
    assert Path("results/cluster.jsonl").read_text().splitlines() == lines
    assert "GCN+FOG [1]" in run("table", "cluster").stdout
    done = run("report", "-o", "site")
    assert done.returncode == 0, done.stderr
    assert "GCN+FOG" in Path("site/cluster.html").read_text()
    folders = [str(path.parent) for path in sorted(Path("runs").rglob("result.json"))]
    done = run("report", *folders, "-o", "comparison")
    assert (done.returncode, done.stdout) == (0, "comparison/index.html\n"), done.stderr
    assert "gcn+fog" in Path("comparison/index.html").read_text()


def test_a_search(run: Run) -> None:
    command = ["reproduce", "cluster", "--models", "gin", "--no-ours", "--quiet", *TABLE_OF_SECONDS]
    done = run(*command, "--search", "--rates", "0.01,0.002", "--decays", "0")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^GIN: lr 0\.0(1|02), weight decay 0$", done.stdout, re.M)
    (line,) = Path("results/searches/cluster.jsonl").read_text().splitlines()
    tried = [(trial["lr"], trial["weight_decay"]) for trial in json.loads(line)["tried"]]
    assert tried == [(0.01, 0), (0.002, 0)]
    # A search on a part of the data is not that of the row.
    assert re.search(r"^GIN .* not run; not run ", run("table", "rates").stdout, re.M)

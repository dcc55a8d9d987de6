"""The command as a user runs it: its output, what it writes and its exit code."""

import contextlib
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
from command_line import Done

import fognn
from fognn.cli import main
from fognn.models import list_models
from fognn.training import Config

CSV = "name,smiles,sol\na,CCO,0.5\nb,CC(C,1\nc,CC#N,1.5\nd,[Au+9],2\n"


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


HELP = [
    *("data", "train", "evaluate", "predict", "export", "models", "info", "generate"),
    *("reproduce", "table", "report"),
]


@pytest.mark.parametrize("command", [[], *([name] for name in HELP)])
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


def test_an_atom_that_pyg_does_not_have_is_named(run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("smiles\n[Au]\n[Au+9]\n")
    done = run("data", str(tmp_path / "mine.csv"))
    assert_one_line(done, r"line 3: atom 0 .*of '\[Au\+9\]' has formal_charge 9")


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
        (["data", "zinc", "--skip-bad"], "--skip-bad has no effect here: zinc is not a csv file"),
        (["data", "zinc", "--draw", "0", "-o", "x.png"], "-o has no effect here"),
        (["data", "x.csv", "--split", "val"], "--split has no effect here"),
        (["data", "-o", "x.png"], "-o has no effect here: all datasets are listed"),
        (["train", "cluster", "gcn", "--seed", "-1"], "--seed"),
        (["train", "cluster", "gcn", "--lr", "fast"], "--lr"),
        (["train", "cluster", "gcn", "more"], "more"),
        (["predict", "run", "x.csv"], "--output"),
        (["predict", "run"], "INPUT"),
        (["evaluate"], "Missing argument 'RUN'"),
        (["export", "run"], "--folder"),
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


def test_a_warning_is_shown_once(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def app(**_: str) -> None:
        for text in ("dead\nunits", "other", "dead\nunits"):
            with warnings.catch_warnings():  # Python forgets what it has shown
                warnings.simplefilter("always")
                warnings.warn(text, stacklevel=2)
        sys.exit(0)

    # Of the module: fognn.cli has the object of this name.
    monkeypatch.setattr(sys.modules["fognn.cli.app"], "app", app)
    for _ in range(2):  # a command each
        assert run("verify").stderr == "fognn: warning: dead units\nfognn: warning: other\n"


def test_looking_at_data_loads_no_training_and_no_chemistry() -> None:
    program = (
        "import sys, fognn.cli, fognn.report.drawings\n"
        "bad = ('rdkit', 'PIL', 'matplotlib', 'lightning_fabric', 'ray')\n"
        "print([m for m in sys.modules if m.split('.')[0] in bad or m == 'fognn.training.loop'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


# Training

SMALL = ["train", "cluster", "gcn", "--fraction", "0.0008", "--batch-size", "4", "--threads", "1"]
SMALL += ["--set", "model.channels=8"]
MOLECULES = [*("CCO", "CC", "CCC", "CCN", "C=C", "C#N", "CCCl", "CCBr", "c1ccccc1", "CO")] * 2


def scores(folder: Path) -> list[dict[str, str]]:
    """metrics.csv without what the clock decides."""
    with open(folder / "metrics.csv", newline="") as file:
        return [
            {name: text for name, text in row.items() if "seconds" not in name}
            for row in csv.DictReader(file)
        ]


def interrupted(arguments: list[str], folder: Path, lines: int, number: signal.Signals) -> Done:
    """A process that gets a signal once metrics.csv has so many lines."""
    child = subprocess.Popen(
        [sys.executable, "-m", "fognn", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(fognn.__file__).parents[1])},
    )
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


def test_killed_then_interrupted_it_goes_on(run, tmp_path: Path) -> None:
    folder = tmp_path / "here" / "run"
    arguments = [*SMALL, "--epochs", "150", "-o", "run"]
    done = interrupted(arguments, folder, 3, signal.SIGKILL)
    assert done.returncode == -signal.SIGKILL, done.stderr
    first = len(scores(folder))
    assert 2 <= first < 150

    done = interrupted(arguments, folder, first + 3, signal.SIGINT)
    assert done.returncode == 130, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    again = re.escape(shlex.join(["fognn", *arguments]))
    last = done.stderr.splitlines()[-1]
    assert re.fullmatch(
        rf"fognn: stopped in epoch \d+ after batch \d of 2, the state is saved in run; "
        rf"to resume: {again}",
        last,
    )
    assert f"resumes after epoch {first}\n" in done.stderr
    assert f"epoch {first + 1}/150: loss " in done.stderr, "a line an epoch, no terminal"
    assert len(scores(folder)) < 150

    done = run(*arguments, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    run(*SMALL, "--epochs", "150", "-o", "whole", "--quiet")
    assert scores(folder) == scores(tmp_path / "here" / "whole")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the molecules of a csv file, made once."""
    place = tmp_path_factory.mktemp("trained")
    lines = [f"{smiles},{number % 10}" for number, smiles in enumerate(MOLECULES)]
    (place / "mine.csv").write_text("\n".join(["smiles,sol", *lines]))
    command = f"train {place}/mine.csv gin+fog --target-column sol --epochs 2 -o run --quiet"
    command += " --set model.channels=8 --lr 0.01 --seed 3 --weight-decay 0.1 --precision 64-true"
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.setattr(warnings, "showwarning", warnings.showwarning)  # main replaces it
        patch.chdir(place)
        patch.setattr(sys, "argv", ["fognn", *command.split()])
        with pytest.raises(SystemExit) as left:
            main()
    assert not left.value.code
    assert re.fullmatch(r"gin\+fog on .*mine\.csv, seed 3: test mae at .*\nrun\n", out.getvalue())
    result = json.loads((place / "run" / "result.json").read_text())
    assert result["command"] == f"fognn {command}"
    return place / "run"


@pytest.fixture
def trained(once: Path, tmp_path: Path) -> Path:
    """A copy of it, for each test."""
    return Path(shutil.copytree(once, tmp_path / "here" / "run"))


def test_options_are_in_the_config(trained: Path) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text())
    assert (config["seed"], config["precision"]) == (3, "64-true")
    assert config["data"]["target"] == "sol"
    assert config["training"]["lr"] == 0.01
    assert config["training"]["weight_decay"] == 0.1
    assert config["training"]["epochs"] == 2
    assert config["model"]["channels"] == 8


def test_evaluate(run, trained: Path) -> None:
    result = json.loads((trained / "result.json").read_text())
    for split in ("val", "test"):
        for at in ("last", "best"):
            done = run("evaluate", "run", "--split", split, "--checkpoint", at)
            assert (done.returncode, done.stderr) == (0, "")
            seen = dict(line.split(": ") for line in done.stdout.splitlines())
            assert list(seen) == [
                f"{split}_{name}" for name in ("loss", "mae_batches", "mae_items")
            ]
            assert float(seen[f"{split}_loss"]) == pytest.approx(
                result[split][at]["loss"], rel=1e-5
            )
            items = result[split][at]["items"]
            assert float(seen[f"{split}_mae_items"]) == pytest.approx(items, rel=1e-5)


def test_predict(run, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("name,molecule\na,CCO\nb,CC(C\nc,CC#N\n")
    arguments = ["predict", "run", str(tmp_path / "new.csv"), "-o", "out.csv"]
    assert_one_line(run(*arguments), "smiles_column must be one of .*'molecule'")
    arguments += ["--smiles-column", "molecule"]
    assert_one_line(run(*arguments), r"new\.csv, line 3: smiles must be .*'CC\(C'")
    assert written(tmp_path) == ["run"]
    done = run(*arguments, "--skip-bad")
    assert (done.returncode, done.stdout) == (0, "out.csv: 2 predictions\n")
    lines = (tmp_path / "here" / "out.csv").read_text().splitlines()
    assert lines[0] == "row,smiles,prediction"
    assert [line.split(",")[1] for line in lines[1:]] == ["CCO", "CC#N"]


def test_export(run, trained: Path, tmp_path: Path) -> None:
    done = run("export", "run", "-o", "hub")
    assert (done.returncode, done.stdout) == (0, "hub\n")
    folder = tmp_path / "here" / "hub"
    assert json.loads((folder / "config.json").read_text())
    weights = fognn.load(folder).state_dict().values()
    for mine, twin in zip(fognn.load(trained).state_dict().values(), weights, strict=True):
        torch.testing.assert_close(twin, mine, check_dtype=False, rtol=1e-6, atol=0)


def test_repeated_from_its_config_alone(run, trained: Path, tmp_path: Path) -> None:
    done = run("train", "--config", "run/config.yaml", "-o", "again", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert scores(tmp_path / "here" / "again") == scores(trained)


def test_a_finished_run_is_read(run, trained: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in trained.iterdir()}
    done = run("train", "--config", "run/config.yaml", "-o", "run")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gin+fog on ")
    assert {path.name: path.stat().st_mtime_ns for path in trained.iterdir()} == before


def test_another_run_is_not_overwritten(run, trained: Path) -> None:
    done = run("train", "--config", "run/config.yaml", "-o", "run", "--lr", "0.5")
    assert_one_line(done, r"folder 'run' holds another run \(training\.lr: 0\.01 and 0\.5")


def test_folders_have_names(run, tmp_path: Path) -> None:
    done = run(*SMALL, "--epochs", "1", "--seed", "2")
    assert done.returncode == 0
    assert re.search(r"^gcn on CLUSTER in runs/cluster/gcn-seed2-\w{8}: begins$", done.stderr, re.M)
    assert re.search(r"^epoch 1/1: loss .* left$", done.stderr, re.M)
    (name,) = [path.name for path in (tmp_path / "here" / "runs" / "cluster").iterdir()]
    assert done.stdout.endswith(f"runs/cluster/{name}\n")
    line = json.loads((tmp_path / "here" / "results" / "runs.jsonl").read_text())
    assert line["key"] == f"cluster/{name}"
    run(*SMALL, "--epochs", "1", "--seed", "3", "--no-ledger", "-q")
    assert len((tmp_path / "here" / "results" / "runs.jsonl").read_text().splitlines()) == 1
    run("collect", *map(str, (tmp_path / "here" / "runs" / "cluster").iterdir()))
    assert len((tmp_path / "here" / "results" / "runs.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "data and model must be given, or config"),
        (["train", "cluster"], "data and model must be given, or config"),
        (["train", "zink", "gcn"], "must be one of PATTERN, .*got 'zink'"),
        (["train", "cluster", "gcm"], "'gcm'.*gcn"),
        (["train", "zinc", "gcn"], r"zinc12k\.npz .*set FOGNN_DATA"),
        (["train", "zinc", "gcn", "--data", "/nowhere"], "data must name an existing folder"),
        (["train", "cluster", "fewshot-fog"], "model"),
        (["train", "nothing.csv", "gcn", "--target-column", "x"], "nothing.csv"),
        (["train", "nothing.npz", "gcn"], "nothing.npz"),
        (["train", "--config", "nothing.yaml"], "nothing.yaml does not exist"),
        (
            ["train", "zinc", "gcn", "--config", "x.yaml"],
            "config must be .*gcn",
        ),
        ([*SMALL, "--epochs", "0"], "training.epochs must be .*0"),
        ([*SMALL, "--lr", "-1"], "training.lr must be .*above 0, got -1"),
        ([*SMALL, "--lr", "nan"], "training.lr must be .*above 0, got nan"),
        ([*SMALL, "--weight-decay", "-1"], "training.weight_decay must be .*at least 0, got -1"),
        ([*SMALL, "--batch-size", "0"], "training.batch_size must be"),
        ([*SMALL, "--fraction", "2"], "data.fraction must be .*above 0 and at most 1, got 2"),
        ([*SMALL, "--threads", "0"], "machine.threads must be"),
        ([*SMALL, "--ranks", "3"], "batch_size must be a multiple of machine.ranks, got 4 and 3"),
        ([*SMALL, "--device", "tpu"], "machine.device must be one of .*'tpu'"),
        ([*SMALL, "--device", "cuda"], "device must be one that this machine has .*'cuda'"),
        ([*SMALL, "--precision", "8"], "precision must be one of .*'8'"),
        ([*SMALL, "--set", "model.hh=3"], "no setting 'hh'"),
        ([*SMALL, "--set", "training.speed=3"], "'training.speed'"),
        ([*SMALL, "--set", "training.lr"], "'training.lr'"),
        ([*SMALL, "--set", "training.lr=fast"], "training.lr.*'fast'"),
        ([*SMALL, "--logger", "comet"], "logger must be one of .*'comet'"),
        ([*SMALL, "--logger", "wandb"], "logger 'wandb' is not installed: pip install wandb"),
        (["evaluate", "nowhere"], "run must be a run folder or a checkpoint, got 'nowhere'"),
        (["predict", "nowhere", "x.csv", "-o", "y.csv"], "run must be .*got 'nowhere'"),
        (["export", "nowhere", "-o", "hub"], "run must be .*got 'nowhere'"),
        (["models", "x*"], r"'x\*'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("this machine has it")
    done = run(*arguments)
    assert_one_line(done, message)
    assert done.stdout == ""
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "run", "--split", "valid"], "split must be one of .*'valid'"),
        (["evaluate", "run", "--checkpoint", "first"], "checkpoint must be one of .*'first'"),
        (["evaluate", "run", "--device", "tpu"], "device must be .*'tpu'"),
        (["evaluate", "run/best.ckpt", "--threads", "0"], "threads must be"),
        (["predict", "run", "nothing.csv", "-o", "y.csv"], "nothing.csv"),
        (["predict", "run", "nothing.npz", "-o", "y.csv"], "nothing.npz"),
        (["predict", "run", "x.xlsx", "-o", "y.csv"], "x.xlsx"),
        (["predict", "run", "x.csv", "-o", "y.csv", "--batch-size", "0"], "batch_size must be"),
    ],
)
def test_bad_input_of_a_trained_run(run, trained: Path, tmp_path: Path, arguments, message) -> None:
    done = run(*arguments)
    assert_one_line(done, message)
    assert done.stdout == ""
    assert written(tmp_path) == ["run"]


def test_models(run) -> None:
    done = run("models")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(re.search(rf"^{re.escape(name)}\b", done.stdout, re.M) for name in list_models())
    fog = run("models", "*+fog").stdout
    assert re.search(r"^gcn\+fog\b", fog, re.M)
    assert not re.search(r"^gcn\b(?!\+)", fog, re.M)


def test_info(run, tmp_path: Path) -> None:
    done = run("info")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(rf"^torch +{re.escape(torch.__version__)}$", done.stdout, re.M)
    assert re.search(rf"^threads +{torch.get_num_threads()}$", done.stdout, re.M)
    assert re.search(rf"^cache +{re.escape(str(tmp_path / 'cache'))}$", done.stdout, re.M)
    assert written(tmp_path) == []


TABLE_OF_SECONDS = ["--fraction", "0.0008", "--epochs", "1", "--set", "training.batch_size=4"]


def test_a_table_from_runs_to_site(run, tmp_path: Path) -> None:
    command = [
        "reproduce",
        "cluster",
        "--models",
        "gcn,gcn+fog",
        "--workers",
        "2",
        *TABLE_OF_SECONDS,
    ]
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 of 2 runs are finished: 0 skipped, 2 trained in")
    lines = Path("results/cluster.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["model"] for line in lines) == ["gcn", "gcn+fog"]
    assert "2 skipped, 0 trained in" in run(*command).stdout
    assert Path("results/cluster.jsonl").read_text().splitlines() == lines
    shown = {form: run("table", "cluster", *form).stdout for form in ((), ("--csv",))}
    assert "GCN+FOG [1]" in shown[()]
    assert len(list(csv.reader(io.StringIO(shown["--csv",])))) > 13
    done = run("report", "-o", "site")
    assert done.returncode == 0, done.stderr
    assert "GCN+FOG" in Path("site/cluster.html").read_text()
    folders = [str(path.parent) for path in sorted(Path("runs").rglob("result.json"))]
    done = run("report", *folders, "-o", "comparison")
    assert (done.returncode, done.stdout) == (0, "comparison/index.html\n"), done.stderr
    assert "gcn+fog" in Path("comparison/index.html").read_text()


def test_a_search_of_a_smaller_grid(run) -> None:
    command = ["reproduce", "cluster", "--models", "gcn", "--no-ours", "--quiet"]
    command += [*TABLE_OF_SECONDS, "--rates", "0.01,0.002", "--decays", "0"]
    done = run(*command)
    assert done.returncode == 2
    assert "--rates, --decays and --pairs need --search" in done.stderr
    done = run(*command, "--search")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^GCN: lr 0\.0(1|02), weight decay 0$", done.stdout, re.M)
    for line in Path("results/searches/cluster.jsonl").read_text().splitlines():
        tried = json.loads(line)["tried"]
        assert [(trial["lr"], trial["weight_decay"]) for trial in tried] == [(0.01, 0), (0.002, 0)]
    # A search on a part of the data is not that of the row.
    done = run("table", "rates")
    assert done.returncode == 0, done.stderr
    assert "fognn reproduce cluster --search" in " ".join(done.stdout.split())
    assert re.search(r"^GCN .* not run; not run ", done.stdout, re.M)


def test_a_search_of_the_settings_of_host_and_fog(run) -> None:
    command = ["reproduce", "cluster", "--models", "gin,gin+fog", "--no-ours", "--seeds", "2"]
    command += ["--search", "--pairs", "--export", "slurm"]  # its jobs are the tries
    done = run(*command, "--rates", "0.01")
    assert done.returncode == 2
    assert "--pairs has its own settings; leave out --rates and --decays" in done.stderr
    done = run(*command)
    assert done.returncode == 0, done.stderr
    tried = [Config.read(path) for path in Path("slurm/configs").rglob("*.yaml")]
    # Table 2 of the paper, on the first seed.
    assert sorted(
        (c.model.name, c.training.lr, c.training.weight_decay, c.seed) for c in tried
    ) == [
        ("gin", 0.001, 0.0, 0),
        ("gin", 0.01, 1e-6, 0),
        ("gin+fog", 0.001, 0.0, 0),
        ("gin+fog", 0.01, 1e-6, 0),
    ]


def test_a_job_array(run) -> None:
    done = run("reproduce", "zinc", "--models", "fog", "--seeds", "3", "--export", "slurm")
    assert done.returncode == 0, done.stderr
    assert "--array=0-2%" in Path("slurm/array.sh").read_text()
    assert (
        "exec fognn reproduce zinc --models fog --seeds 3\n" in Path("slurm/ledger.sh").read_text()
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["reproduce", "zink"], 1, "did you mean 'zinc'"),
        (["reproduce", "zinc", "--models", "gcm"], 1, "models must be rows of the table"),
        (["reproduce", "zinc", "--export", "pbs"], 2, "--export must be slurm"),
        (["reproduce", "zinc", "--search", "--rates", "a"], 1, "rates must be numbers"),
        (["reproduce", "zinc", "--search", "--decays", "-1"], 1, "weight_decay must be"),
        (["reproduce", "cluster", "--workers", "many", *TABLE_OF_SECONDS], 1, "workers must be"),
        (["reproduce", "few-shot"], 1, "put miniimagenet/mini-imagenet-cache-train.pkl"),
        (["table", "zink"], 1, "did you mean 'zinc'"),
        (["table", "zinc", "--csv", "--latex"], 2, "only one of --latex and --csv"),
        (["table", "zinc", "--at", "noon"], 1, "at must be one of"),
        (["table", "zinc", "--minus", "gcn"], 1, "minus must be a row with runs, got 'gcn'"),
        (["table", "claims", "--minus", "gcn"], 1, "minus needs a table of rows"),
        (["report", "-o", "site"], 1, "results must be a folder with ledgers"),
        (["report", "nothing", "-o", "site"], 1, "nothing is not a finished run"),
        (["report", "x", "--results", "y", "-o", "site"], 2, "--results has no effect"),
    ],
)
def test_wrong_tables(run, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert not list((tmp_path / "here").iterdir())

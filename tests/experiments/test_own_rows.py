"""Tables of our own: rows that the paper does not have, in the same commands."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from tiny_own_rows import small_plan, use_small_rows

import fognn
from fognn.experiments import Row, config_of, extra_rows, get_row, protocol, rows
from fognn.experiments.comparison import compare
from fognn.experiments.kept import add_run, enter
from fognn.experiments.ledger import Ledger
from fognn.experiments.rows import build, name_of
from fognn.experiments.rows import rows_of
from fognn.experiments.tables import TABLES, plan, run_folder, runs_of
from fognn.experiments.kept import verify
from fognn.models import count_parameters
from fognn.models.weights import read_weights
from fognn.training import evaluate, fit

OWN = [row for row in extra_rows() if row.few_shot]
TABLE = {"omniglot": ("Omniglot", 28, 1), "cifar-fs": ("CIFAR-FS", 32, 3)}
PAPER = "miniImageNet-5way-"


# --- rows ---


def test_the_rows() -> None:
    assert [row.id for row in OWN] == [
        *(f"omniglot/{name}-1shot" for name in ("fog", "gnn", "gnn+fog")),
        *(f"cifar-fs/{name}-1shot" for name in ("fog", "gnn", "gnn+fog")),
        *(f"cifar-fs/{name}-5shot" for name in ("gnn", "gnn+fog")),
    ]
    assert not {row.id for row in OWN} & {row.id for row in rows()}
    assert [row for table in TABLE for row in rows_of(table)] == OWN
    assert get_row("omniglot/gnn+fog-1shot") in OWN
    for row in OWN:
        assert (row.table, row.params, row.mean, row.sd) == (None, None, None, None)
        assert row.dataset.startswith(f"{row.title}-5way-")
    published = {row.id: (row.published, row.published_by) for row in OWN if row.published}
    assert published == {"omniglot/gnn-1shot": (99.2, "Garcia and Bruna (ICLR 2018)")}


def test_networks_that_are_compared_differ_in_one_thing() -> None:
    for table in TABLE:
        for shots in (1, 5):
            own = [row for row in rows_of(table) if row.dataset.endswith(f"{shots}shot")]
            configs = [config_of(row) for row in own]
            assert all(config.training == configs[0].training for config in configs)
            assert all(config.data == configs[0].data for config in configs)


@pytest.mark.parametrize("row", OWN, ids=lambda row: row.id)
def test_the_network_is_that_of_the_papers_row(row: Row) -> None:
    data, size, colours = TABLE[row.id.partition("/")[0]]
    shots = row.dataset.rpartition("-")[2]
    (paper,) = rows(dataset=f"{PAPER}{shots}", model=row.model)
    assert count_parameters(build(row).gnn) == paper.params
    for name in ("layers", "channels", "h1", "h2", "p", "q"):
        assert getattr(row, name) == getattr(paper, name)
    config = config_of(row, seed=3)
    assert config.model.settings == {"layers": 3, "image_size": size, "image_channels": colours}
    assert (config.data.name, f"{config.data.k_shot}shot") == (data, shots)
    assert (config.data.n_query, config.data.episodes) == (row.n_query, row.episodes) == (5, 600)
    training = config.training
    assert training.steps == row.steps
    assert (training.epochs * training.steps, training.step * training.steps) == (
        row.epochs, row.step,
    )  # fmt: skip
    assert training.batch_size * row.n_query == paper.batch_size  # queries
    assert protocol(row.dataset.lower(), name_of(row), 3) == config


def test_a_name_with_settings_is_the_rows_own_run() -> None:
    shots = {"data.n_way": 5, "data.k_shot": 1}
    config = protocol("omniglot", "fewshot-gnn+fog", 0, shots)
    assert config == config_of(get_row("omniglot/gnn+fog-1shot"))
    assert run_folder(config) == Path("runs/omniglot/gnn+fog-1shot-seed0")
    (run,) = runs_of(config)
    assert (run.table, run.label, run.is_own) == ("omniglot", "GNN+FOG, 1-shot", True)
    five = protocol("cifar-fs", "gnn", 2, {"data.k_shot": 5})
    assert run_folder(five) == Path("runs/cifar-fs/gnn-5shot-seed2")
    changed = protocol("omniglot", "fewshot-gnn+fog", 0, {"data.n_query": 1})
    assert changed.data.n_query == 1
    assert runs_of(changed) == []


def test_other_numbers_of_classes_and_shots() -> None:
    first = protocol("omniglot", "gnn")
    twenty = protocol("omniglot", "fewshot-gnn", 0, {"data.n_way": 20})
    assert (twenty.data.n_way, twenty.data.k_shot, twenty.data.n_query) == (20, 1, 5)
    assert (twenty.training, twenty.model) == (first.training, first.model)
    assert protocol("omniglot-20way-5shot", "gnn").training == first.training, "the only one"
    # FOG has no row with 5 shots on CIFAR-FS.
    five = protocol("cifar-fs", "gnn", 0, {"data.k_shot": 5})
    fog = protocol("cifar-fs-5way-5shot", "fog")
    assert fog.training == five.training
    assert (fog.data, fog.model.settings) == (five.data, five.model.settings)
    assert runs_of(fog) == []
    mini = protocol("miniimagenet-20way-5shot", "gnn")
    assert (mini.data.n_query, mini.data.episodes, mini.training.steps) == (1, 2000, 1000)


def test_a_plan_has_no_variants() -> None:
    for table in TABLE:
        assert [run.row for run in plan(table)] == [row.id for row in rows_of(table)]
        assert TABLES[table].number is None
    assert [run.key for run in plan("omniglot", ["gnn*"], 2)] == [
        f"omniglot/{name}-1shot-seed{seed}" for seed in (0, 1) for name in ("gnn", "gnn+fog")
    ]


# --- runs ---


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger and weights of two trained rows of CIFAR-FS."""
    place = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        use_small_rows(patch)
        patch.chdir(place)
        for run in small_plan(place / "data", ["gnn-1shot", "gnn+fog-1shot"]):
            folder = run.folder(Path("runs"))
            fit(run.config, folder, quiet=True)
            assert enter(folder, "results") == [run.key]
    return place


@pytest.fixture
def place(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_small_rows(monkeypatch)
    for name in ("runs", "results", "weights"):
        shutil.copytree(ready / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOGNN_DATA", str(ready / "data"))
    monkeypatch.setenv("FOGNN_WEIGHTS", "weights")
    return tmp_path


def test_a_run_in_the_ledger(place: Path) -> None:
    entries = Ledger(Path("results/cifar-fs.jsonl")).entries()
    assert [entry.row for entry in entries] == ["cifar-fs/gnn-1shot", "cifar-fs/gnn+fog-1shot"]
    command = "fognn train cifar-fs-5way-1shot fewshot-gnn --seed 0"
    assert entries[0].result["command"].startswith(command)
    lines = compare("cifar-fs", entries)
    assert [line.row for line in lines] == [row.id for row in rows_of("cifar-fs")]
    gnn, fog = lines[1], lines[2]
    assert gnn.mean == entries[0].result["test"]["best"]["items"]
    assert (gnn.paper_mean, gnn.difference, gnn.off, gnn.ours) == (None, None, (), False)
    assert fog.paired is not None
    assert fog.paired.host == "GNN, 1-shot"


def test_the_weights_of_the_best_epoch_are_kept(place: Path) -> None:
    for entry in Ledger(Path("results/cifar-fs.jsonl")).entries():
        weights = read_weights(place / "weights" / f"{entry.row}.safetensors")
        assert weights.epoch == entry.result["best_epoch"]
        best = torch.load(f"runs/{entry.key}/best.ckpt")["model"]
        assert all(torch.equal(value, best[name]) for name, value in weights.tensors.items())


def test_weights_by_name(place: Path) -> None:
    net = fognn.load("cifar-fs/gnn+fog-1shot")
    best = fognn.load("runs/cifar-fs/gnn+fog-1shot-seed0")
    assert all(map(torch.equal, net.state_dict().values(), best.state_dict().values()))
    fognn.load("cifar-fs/gnn+fog-1shot", "best")
    with pytest.raises(ValueError, match=r"checkpoint must be 'best' .*got 'last'"):
        fognn.load("cifar-fs/gnn+fog-1shot", "last")
    scores = evaluate("cifar-fs/gnn+fog-1shot")
    result = json.loads(Path("runs/cifar-fs/gnn+fog-1shot-seed0/result.json").read_text())
    assert scores["accuracy_items"] == pytest.approx(result["test"]["best"]["items"])


@pytest.mark.parametrize(("at", "outcome"), [("last", "ok"), ("best", "DIFFERS")])
def test_verify_compares_the_best_epoch(place: Path, at: str, outcome: str) -> None:
    assert [check.outcome for check in verify(["cifar-fs", "omniglot"]).checks()] == ["ok", "ok"]
    path = Path("results/cifar-fs.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["result"]["test"][at]["items"] += 0.02
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    first, _ = verify(["cifar-fs"]).checks()
    assert (first.outcome, first.digits) == (outcome, 2)


def test_another_epoch_than_the_best_is_not_kept(place: Path) -> None:
    (run,) = small_plan(place / "data", ["gnn-1shot"])
    folder = run.folder(place / "runs")
    content = torch.load(folder / "best.ckpt")
    torch.save(content | {"epoch": content["epoch"] + 1}, folder / "best.ckpt")
    with pytest.warns(UserWarning, match=r"best\.ckpt must be of epoch"):
        add_run(run, folder, place / "again" / "results")
    (line,) = Ledger(place / "again" / "results" / "cifar-fs.jsonl").entries()
    assert line.weights is None
    (folder / "best.ckpt").unlink()
    add_run(run, folder, place / "again" / "results")
    assert not (place / "again" / "weights").exists()


def test_the_interval_of_a_line(place: Path) -> None:
    path = Path("results/cifar-fs.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]

    def write(interval: object) -> None:
        lines[0]["result"]["test"]["best"]["interval"] = interval
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    write(0.31)
    entries = Ledger(path).entries()
    line = compare("cifar-fs", entries)[1]
    assert (line.sd, line.interval, line.plus_minus) == (None, 0.31, 0.31)
    assert compare("cifar-fs", entries, over="batches")[1].interval is None
    write(None)
    assert compare("cifar-fs", Ledger(path).entries())[1].interval is None
    for wrong in (-1.0, "0.3", True, 1e200):
        write(wrong)
        with pytest.warns(UserWarning, match=r"result\.test\.best\.interval must be"):
            assert len(Ledger(path).entries()) == 1

import shlex
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import molecules

from fognn.data.catalog import CATALOG
from fognn.data.graph_files import write_graphs
from fognn.experiments import Row, config_of, get_row, protocol, rows
from fognn.experiments.protocols import command_of
from fognn.experiments.rows import name_of
from fognn.experiments.tables import TABLES, plan, runs_of
from fognn.models import list_models
from fognn.training import TrainingConfig
from fognn.training.config import assignments
from fognn.training.data import PLAIN_ZINC, task_of
from fognn.training.networks import untrained_model

ROWS = rows()
MODELS = [name for name in list_models() if not name.startswith("fewshot-")]
GRAPHS = [entry.name for entry in CATALOG if entry.kind != "images"] + [PLAIN_ZINC]
# The tables' metrics, as the paper's text explains them.
OBJECTIVES = {
    "PATTERN": ("balanced_cross_entropy", "balanced_accuracy"),
    "CLUSTER": ("balanced_cross_entropy", "balanced_accuracy"),
    "ZINC": ("l1", "mae"),
    PLAIN_ZINC: ("l1", "mae"),
    "TSP": ("cross_entropy", "f1"),
    "IMDB-MULTI": ("cross_entropy", "accuracy"),
    "miniImageNet-5way-1shot": ("cross_entropy", "accuracy"),
    "miniImageNet-5way-5shot": ("cross_entropy", "accuracy"),
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_row_is_a_run(row: Row) -> None:
    config = config_of(row, seed=3)
    training = config.training
    assert (config.seed, config.precision, config.data.fraction) == (3, "32-true", 1)
    assert (training.loss, training.metric) == OBJECTIVES[row.dataset]
    for name in ("lr", "weight_decay", "batch_size", "schedule"):
        assert getattr(training, name) == getattr(row, name)
    if row.schedule == "plateau":
        assert (training.patience, training.min_lr) == (row.patience, row.min_lr)
    else:  # the paper's iterations are steps here
        unit = training.steps if row.few_shot else 1
        assert (training.epochs * unit, training.step * unit) == (row.epochs, row.step)
    # Names lead to the first row of the data and the network.
    twins = [other for other in ROWS if (other.dataset, other.model) == (row.dataset, row.model)]
    expected = config_of(twins[0], seed=2)
    assert protocol(row.dataset.lower(), row.model.upper(), 2) == expected
    assert protocol(row.dataset, name_of(row), 2) == expected


@pytest.mark.parametrize("data", GRAPHS)
def test_networks_without_a_row(data: str) -> None:
    """They are trained as FOG is on these data."""
    known = {name_of(row) for row in ROWS if row.dataset == data} | {"pna", "film", "gatv2"}
    for model in [name for name in MODELS if name not in known]:
        config = protocol(data, model)
        if data != "ZINC":
            assert config.training == protocol(data, "fog").training
        assert config.model.settings["dropout"] == rows(dataset=data, model="fog")[0].dropout
        if not model.startswith("gatedgcn-e") or data in ("ZINC", PLAIN_ZINC, "TSP"):
            untrained_model(config, task_of(config.data))


def test_names_of_shots() -> None:
    five = protocol("miniimagenet-5way-5shot", "gnn")
    assert (five.data.name, five.data.n_way, five.data.k_shot) == ("miniImageNet", 5, 5)
    assert (five.training.batch_size, five.training.epochs) == (40, 90)
    assert five == protocol("miniImageNet", "fewshot-gnn", 0, {"data.k_shot": 5})
    other = protocol("Omniglot-20way-5shot", "gnn+fog")
    assert (other.data.name, other.data.n_way, other.data.k_shot) == ("Omniglot", 20, 5)
    assert other.training == protocol("Omniglot", "gnn").training, "there are rows with one shot"
    assert untrained_model(other, None).n_way == 20
    shots = {"data.n_way": 5, "data.k_shot": 1}
    own = protocol("omniglot", "fewshot-gnn+fog", 0, shots)
    assert own == config_of(get_row("omniglot/gnn+fog-1shot"))
    assert [run.key for run in runs_of(own)] == ["omniglot/gnn+fog-1shot-seed0"]
    # FOG has no row with 5 shots on CIFAR-FS.
    gnn, fog = (
        protocol("cifar-fs", "gnn", 0, {"data.k_shot": 5}),
        protocol("cifar-fs-5way-5shot", "fog"),
    )
    assert (fog.training, fog.data) == (gnn.training, gnn.data)
    assert runs_of(fog) == []


@pytest.mark.parametrize(
    ("data", "model", "values", "named"),
    [
        ("zinc", "gcn-fog", {}, r"model 'gcn-fog'; did you mean 'gcn\+fog'"),
        ("mnist", "gcn", {}, "'mnist'"),
        ("mnist-5way-1shot", "gnn", {}, "'mnist'"),
        ("omniglot", "gcn", {}, "model"),
        ("zinc", "fewshot-gnn", {}, "model"),
        ("zinc", "gcn", {"training.rl": 1}, r"training\.rl"),
        ("zinc", "gcn", {"training.lr": -1}, r"training\.lr|\blr\b"),
        ("zinc", "gcn", {"data.fraction": 2}, "fraction"),
        ("omniglot", "gnn", {"data.k_shot": 0}, "k_shot"),
        ("none.npz", "gim", {}, "model 'gim'"),
        ("graphs", "gcn", {}, "'graphs'"),
    ],
)
def test_errors(data: str, model: str, values: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        protocol(data, model, 0, values)


def test_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_graphs(tmp_path / "values.npz", molecules(12))
    write_graphs(tmp_path / "my classes.npz", molecules(12, classes=3))
    write_graphs(tmp_path / "graphs" / "a.npz", molecules(12))
    monkeypatch.chdir(tmp_path)
    config = protocol("values.npz", "GIN", 1, {"training.lr": 0.1})
    assert config.data.name == str(tmp_path / "values.npz"), "a run may be resumed from anywhere"
    assert config.training == TrainingConfig("l1", "mae", lr=0.1)
    assert protocol("./graphs", "gcn").data.name == str(tmp_path / "graphs")
    # The command repeats the run, from the folder in which it was called.
    for name, values in (
        ("my classes.npz", {"fraction": 0.5, "model.channels": 8}),
        ("graphs/a.npz", {"model.fog_act_first": True}),
        ("./graphs", {}),
    ):
        config = protocol(name, "gin+fog", 2, values)
        _, _, data, model, *options = shlex.split(command_of(config))
        assert data == name
        assert protocol(data, model, 2, assignments(options[3::2])) == config
    assert protocol("my classes.npz", "gin").training.loss == "cross_entropy"


@pytest.mark.parametrize("table", TABLES)
def test_the_command_of_a_run_gives_the_run(table: str) -> None:
    values = {"machine.threads": 1, "training.lr": 0.25, "data.fold": None}
    others = ("widths", "controls", "modern")  # not the first rows with their data and network
    for run in plan(table, seeds=[3]) + plan(table, seeds=[0], values=values):
        program, verb, data, model, *options = shlex.split(command_of(run.config))
        assert (program, verb, options[:2]) == ("fognn", "train", ["--seed", str(run.config.seed)])
        given = protocol(data, model, int(options[1]), assignments(options[3::2]))
        assert given == run.config
        if run.follows_protocol and run.config.seed and not run.variant and table not in others:
            assert not options[2:], "a row of the paper needs no setting"

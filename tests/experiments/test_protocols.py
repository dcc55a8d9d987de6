import shlex
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import molecules
from torch.nn import Conv2d

from fognn.data.catalog import CATALOG
from fognn.data.graph_files import write_graphs
from fognn.experiments import Row, config_of, extra_rows, protocol, rows
from fognn.experiments.protocols import command_of
from fognn.experiments.rows import name_of
from fognn.experiments.tables import TABLES, plan
from fognn.models import count_parameters, list_models
from fognn.training import TrainingConfig
from fognn.training.checkpoint import untrained_model
from fognn.training.data import PLAIN_ZINC, few_shot, task_of
from fognn.training.settings import assignments

ROWS = rows()
GRAPH_MODELS = [name for name in list_models() if not name.startswith("fewshot-")]
FEW_SHOT = [name for name in list_models() if name.startswith("fewshot-")]
GRAPHS = [entry.name for entry in CATALOG if entry.kind != "images"] + [PLAIN_ZINC]
IMAGES = [entry.name for entry in CATALOG if entry.kind == "images"]
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


def name(row: Row) -> str:
    return f"{row.table}-{row.dataset}-{row.model}-{row.channels[0]}"


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_every_row_is_a_run(row: Row) -> None:
    config = config_of(row, seed=3)
    training = config.training
    assert config.seed == 3
    assert config.precision == "32-true"
    assert (training.loss, training.metric) == OBJECTIVES[row.dataset]
    assert training.lr == row.lr
    assert training.weight_decay == row.weight_decay
    assert training.batch_size == row.batch_size
    assert training.schedule == row.schedule
    assert training.factor == 0.5
    if row.schedule == "plateau":
        assert (training.patience, training.min_lr) == (row.patience, row.min_lr)
    elif row.few_shot:
        # The paper's iterations are steps here.
        assert training.epochs * training.steps == row.epochs
        assert training.step * training.steps == row.step
    else:
        assert (training.epochs, training.step) == (row.epochs, row.step)
    assert config.data.fraction == 1
    assert (config.data.fold, config.data.holdout) == (None, False)
    net = untrained_model(config, task_of(config.data))
    counted = net.gnn if row.few_shot else net
    assert count_parameters(counted) == row.params
    if not row.few_shot:
        assert config.model.settings["dropout"] == row.dropout


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_names_lead_to_the_row(row: Row) -> None:
    twins = [other for other in ROWS if other.dataset == row.dataset and other.model == row.model]
    expected = config_of(twins[0], seed=2)
    assert protocol(row.dataset, row.model, 2) == expected
    assert protocol(row.dataset.lower(), row.model.upper(), 2) == expected
    assert protocol(row.dataset, name_of(row), 2) == expected


def test_of_two_rows_the_first_table_counts() -> None:
    """Table 6 tries other widths of FOG in networks of table 3."""
    for model in ("GCN+FOG", "GatedGCN-E+FOG"):
        found = rows(dataset="zinc", model=model)
        assert len(found) > 1
        assert found[0].table == 3
        assert protocol("zinc", model) == config_of(found[0])
    networks = {str(config_of(row).model) for row in rows(dataset="zinc")}
    assert len(networks) >= 19, "of 21 rows, table 6 repeats at most two"


@pytest.mark.parametrize("data", GRAPHS)
@pytest.mark.parametrize("model", GRAPH_MODELS)
def test_every_network_has_a_run_on_every_dataset(data: str, model: str) -> None:
    config = protocol(data, model)
    assert config.model.name == model
    assert config.data.name == data
    assert (config.training.loss, config.training.metric) == OBJECTIVES[data]
    alike = [*rows(dataset=data), *(row for row in extra_rows() if row.dataset == data)]
    found = [row for row in alike if name_of(row) == model]
    if not found:
        # Without a row it is trained as FOG is on these data.
        assert config.training == protocol(data, "fog").training
        assert config.model.settings["channels"] == 64
        assert config.model.settings["dropout"] == rows(dataset=data, model="fog")[0].dropout
        task = task_of(config.data)
        if model.startswith("gatedgcn-e") and data in ("PATTERN", "CLUSTER", "IMDB-MULTI"):
            with pytest.raises(ValueError, match="without edge features take 'gatedgcn"):
                untrained_model(config, task)
        else:
            assert len(untrained_model(config, task).blocks) == 4


def test_some_pairs_have_no_row() -> None:
    pairs = {(row.dataset, name_of(row)) for row in ROWS}
    missing = {(data, model) for data in GRAPHS for model in GRAPH_MODELS} - pairs
    assert ("PATTERN", "gatedgcn-e") in missing
    assert ("IMDB-MULTI", "gcn") in missing


@pytest.mark.parametrize("data", IMAGES)
@pytest.mark.parametrize("model", FEW_SHOT)
def test_every_few_shot_network_has_a_run_on_every_set_of_images(data: str, model: str) -> None:
    config = protocol(data, model)
    assert few_shot(config.data)
    assert (config.data.n_way, config.data.k_shot) == (5, 1)
    net = untrained_model(config, task_of(config.data))
    size, colours = {"miniImageNet": (84, 3), "CIFAR-FS": (32, 3), "Omniglot": (28, 1)}[data]
    first = next(module for module in net.cnn.modules() if isinstance(module, Conv2d))
    assert first.in_channels == colours
    if data != "miniImageNet":
        assert config.model.settings["image_size"] == size
        assert config.model.settings["image_channels"] == colours
        queries = config.training.batch_size * config.data.n_query
        assert queries == 100, "as on miniImageNet, 1 shot"
    (row,) = rows(dataset="miniImageNet-5way-1shot", model=model.removeprefix("fewshot-"))
    assert count_parameters(net.gnn) == row.params


def test_names_of_shots() -> None:
    five = protocol("miniimagenet-5way-5shot", "gnn")
    assert (five.data.name, five.data.n_way, five.data.k_shot) == ("miniImageNet", 5, 5)
    assert five.training.batch_size == 40
    assert five.training.epochs == 90
    assert five == protocol("miniImageNet", "fewshot-gnn", 0, {"data.k_shot": 5})
    other = protocol("Omniglot-20way-5shot", "gnn+fog")
    assert (other.data.name, other.data.n_way, other.data.k_shot) == ("Omniglot", 20, 5)
    assert other.model.name == "fewshot-gnn+fog"
    assert other.training == protocol("Omniglot", "gnn").training, "there are rows with one shot"
    assert untrained_model(other, None).n_way == 20
    ten = protocol("cifar-fs-5way-10shot", "gnn")
    assert ten.training == protocol("CIFAR-FS", "fog").training
    mini = protocol("miniImageNet-5way-10shot", "gnn")
    assert mini.training == protocol("miniImageNet", "fog").training
    assert protocol("miniImageNet", "gnn").training.lr == 0.001


def test_overrides() -> None:
    values = {
        "training.lr": 0.5,
        "model.h1": 8,
        "data.fraction": 0.1,
        "machine.threads": 2,
        "precision": "64-true",
        "seed": 4,
    }
    base, config = protocol("zinc", "gcn+fog"), protocol("zinc", "gcn+fog", 0, values)
    assert config.training.lr == 0.5
    assert config.model.settings == base.model.settings | {"h1": 8}
    assert (config.data.fraction, config.machine.threads) == (0.1, 2)
    assert (config.precision, config.seed) == ("64-true", 4)
    assert config.training == TrainingConfig(**(vars(base.training) | {"lr": 0.5}))
    assert values["seed"] == 4, "the caller's mapping is left alone"
    row = rows(table=3, model="GCN+FOG")[0]
    assert config_of(row, norm="mean").model.settings == base.model.settings | {"norm": "mean"}


@pytest.mark.parametrize(
    ("data", "model", "values", "message"),
    [
        ("zinc", "gcn-fog", {}, r"model .*'gcn-fog'; did you mean 'gcn\+fog'"),
        ("zinc", "transformer", {}, r"model .*'transformer'; known: fog, gcn"),
        ("mnist", "gcn", {}, "name must be one of PATTERN, .*got 'mnist'"),
        ("mnist-5way-1shot", "gnn", {}, "name must be one of PATTERN, .*got 'mnist'"),
        ("omniglot", "gcn", {}, "model must be a 'fewshot-' .* Omniglot, got 'gcn'"),
        ("zinc", "fewshot-gnn", {}, "model must be no 'fewshot-' .* ZINC, got 'fewshot-gnn'"),
        ("zinc", "gnn", {}, r"model .*'gnn'; did you mean"),
        ("zinc", "gcn", {"training.rl": 1}, r"unknown setting 'training.rl'; did you mean"),
        ("zinc", "gcn", {"rate": 1}, r"unknown setting 'rate'"),
        ("zinc", "gcn", {"training.lr": -1}, r"training\.lr .*above 0, got -1"),
        ("zinc", "gcn", {"data.fraction": 2}, r"data\.fraction .*above 0 and at most 1"),
        (
            "zinc",
            "gcn",
            {"training.epochs": 1.5},
            r"training\.epochs .*int.*got 1\.5",
        ),
        ("omniglot", "gnn", {"data.k_shot": 0}, r"data\.k_shot must be"),
    ],
)
def test_errors(data: str, model: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        protocol(data, model, 0, values)


def test_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_graphs(tmp_path / "values.npz", molecules(12))
    write_graphs(tmp_path / "classes.npz", molecules(12, classes=3))
    (tmp_path / "a.csv").write_text("\n".join(["smiles,y", *["CCO,1"] * 12]))
    monkeypatch.chdir(tmp_path)
    config = protocol("values.npz", "GIN", 1, {"training.lr": 0.1})
    assert config.data.name == str(tmp_path / "values.npz"), "a run may be resumed from anywhere"
    assert config.model.name == "gin"
    assert config.training == TrainingConfig("l1", "mae", lr=0.1)
    assert protocol("classes.npz", "gin").training == TrainingConfig("cross_entropy", "accuracy")
    f1 = protocol("classes.npz", "gin", 0, {"training.metric": "balanced_accuracy"})
    assert f1.training.metric == "balanced_accuracy"
    assert protocol("a.csv", "gin", 0, {"data.target": "y"}).data.target == "y"
    with pytest.raises(ValueError, match=r"data\.target must name the column"):
        protocol("a.csv", "gin")
    with pytest.raises(ValueError, match=r"model .*'gim'; did you mean 'gin'"):
        protocol("none.npz", "gim")
    with pytest.raises(ValueError, match=r"unknown setting 'data.tarrget'; did you mean"):
        protocol("a.csv", "gin", 0, {"data.tarrget": "y"})


def test_a_folder_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "graphs").mkdir()
    write_graphs(tmp_path / "graphs" / "a.npz", molecules(12))
    monkeypatch.chdir(tmp_path)
    assert protocol("./graphs", "gcn").data.name == str(tmp_path / "graphs")
    with pytest.raises(ValueError, match="name must be one of"):
        protocol("graphs", "gcn")


def test_settings_of_images_change_nothing_for_graphs() -> None:
    config = protocol("cluster", "gcn+fog", 0, {"data.n_way": 3})
    assert config.data.n_way == 3
    assert config.training == protocol("cluster", "gcn+fog").training


@pytest.mark.parametrize("table", TABLES)
def test_the_command_of_a_run_gives_the_run(table: str) -> None:
    values = {"machine.threads": 1, "training.lr": 0.25, "data.fold": None}
    others = ("widths", "controls", "modern")  # not the first rows with their data and network
    for run in plan(table, seeds=[3]) + plan(table, seeds=[0], values=values):
        program, verb, data, model, *options = shlex.split(command_of(run.config))
        assert (program, verb, options[:2]) == ("fognn", "train", ["--seed", str(run.config.seed)])
        assert set(options[2::2]) <= {"--set"}
        given = protocol(data, model, int(options[1]), assignments(options[3::2]))
        assert given == run.config
        if run.config == run.own and not run.variant and table not in others:
            assert not options[2:], "a row of the paper needs no setting"


def test_the_norm_of_fog_on_ones_own_file(tmp_path: Path) -> None:
    write_graphs(tmp_path / "graphs.npz", molecules(12))
    for model, first in (("gin+fog", False), ("fog", False), ("gin", None)):
        config = protocol(str(tmp_path / "graphs.npz"), model)
        assert config.model.settings.get("fog_act_first") is first
        assert "fog_act_first" not in command_of(config)
    changed = protocol(str(tmp_path / "graphs.npz"), "fog", 0, {"model.fog_act_first": True})
    assert "model.fog_act_first=true" in command_of(changed)


def test_the_command_of_ones_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_graphs(tmp_path / "my classes.npz", molecules(12, classes=3))
    values = {"fraction": 0.5, "model.channels": 8}
    config = protocol(str(tmp_path / "my classes.npz"), "gin", 2, values)
    _, _, data, model, *options = shlex.split(command_of(config))
    assert data == "my classes.npz"
    monkeypatch.chdir(tmp_path)
    assert protocol(data, model, 2, assignments(options[3::2])) == config

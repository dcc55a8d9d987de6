"""The task, the objective and the identity of a user's data in a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import molecules, open_split
from torch_geometric.data import Data

import fognn
from fognn.data import open_user_data
from fognn.data.graph_files import write_graphs
from fognn.data.molecules import ATOM_COLUMNS, BOND_COLUMNS
from fognn.experiments import protocol
from fognn.models import Task
from fognn.training import DataConfig, Result, evaluate, fit
from fognn.training.data import is_user_data, open_data, task_of, user_objective
from fognn.training.networks import untrained_model
from fognn.training.objective import forward_batch

SMALL: dict[str, Any] = {
    "epochs": 2, "batch_size": 8, "threads": 1, "quiet": True, "model.channels": 8,
}  # fmt: skip
INT, FLOAT = torch.int64, torch.float32


@pytest.mark.parametrize(
    ("name", "own"),
    [("ZINC", False), ("a.txt", False), ("a.csv", True), ("a.PT", True), ("graphs/", True)],
)
def test_what_is_user_data(name: str, own: bool) -> None:
    assert is_user_data(DataConfig(name)) == own


def changed(**values: Any) -> list[Data]:
    """Graphs with some attributes made anew: a shape with N or E, and a number of values."""
    graphs = molecules(60)
    for number, graph in enumerate(graphs):
        graph.x %= 20
        graph.x[0] = 19
        sizes = {"N": graph.num_nodes, "E": graph.num_edges}
        for name, (kind, shape, high) in values.items():
            full = [sizes.get(size, size) for size in shape]
            ints = torch.arange(torch.Size(full).numel()).reshape(full) + number
            graph[name] = (ints % high).to(kind)
    return graphs


@pytest.mark.parametrize(
    ("values", "expected", "metric"),
    [
        ({}, Task("graph", 1, 20, edge_tokens=4), "mae"),
        ({"y": (FLOAT, [1, 3], 9)}, Task("graph", 3, 20, edge_tokens=4), "mae"),
        ({"y": (INT, ["N"], 5)}, Task("node", 5, 20, edge_tokens=4), "accuracy"),
        ({"y": (INT, ["N"], 2)}, Task("node", 2, 20, edge_tokens=4), "roc_auc"),
        ({"y": (INT, ["E"], 3)}, Task("edge", 3, 20, edge_tokens=4), "accuracy"),
        ({"y": (INT, [1], 2)}, Task("graph", 2, 20, edge_tokens=4), "roc_auc"),
        ({"edge_attr": (FLOAT, ["E", 2], 9)}, Task("graph", 1, 20, edge_channels=2), "mae"),
        ({"x": (FLOAT, ["N"], 9)}, Task("graph", 1, node_channels=1, edge_tokens=4), "mae"),
    ],
)
def test_the_task_and_the_objective(values: dict[str, Any], expected: Task, metric: str) -> None:
    data = open_user_data(changed(**values))
    config = DataConfig(data.name)
    found = task_of(config, data).to_dict()
    assert (found.pop("mean", None) is None) == (found.pop("std", None) is None)
    assert found.pop("readout", "mean") == "mean"
    assert found == expected.to_dict()
    assert user_objective(config, data)["metric"] == metric


def test_molecules_have_all_atoms_and_standardised_values(tmp_path: Path) -> None:
    lines = [f"{'C' * n},{n}" for n in range(1, 13)]
    (tmp_path / "a.csv").write_text("\n".join(["smiles,y", *lines]))
    config = DataConfig(str(tmp_path / "a.csv"), target="y")
    data = open_data(config)
    task = task_of(config, data)
    y = data.targets_of(data.splits()["train"])
    assert (task.node_tokens, task.edge_tokens) == (ATOM_COLUMNS, BOND_COLUMNS)
    assert (task.mean, task.std) == ((pytest.approx(y.mean()),), (pytest.approx(y.std(0, False)),))


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (molecules, {"loss": "cross_entropy", "metric": "accuracy"}, r"training\.loss"),
        (molecules, {"data.neighbors": 3}, r"data\.neighbors"),
        (lambda n: molecules(n, classes=3), {"metric": "f1"}, r"training\.metric"),
    ],
)
def test_settings_that_do_not_fit(
    tmp_path: Path, make: Callable[[int], list[Data]], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fognn.train(make(20), "gcn", folder=tmp_path / "run", **SMALL, **settings)
    assert not (tmp_path / "run").exists()


def parts(*sizes: int) -> dict[str, list[Data]]:
    graphs, found, first = molecules(sum(sizes)), {}, 0
    for split, size in zip(("train", "val", "test"), sizes, strict=True):
        found[split], first = graphs[first : first + size], first + size
    return found


def test_another_split_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same graphs, divided in another way, in each kind of folder."""
    monkeypatch.chdir(tmp_path)
    first = fognn.train(parts(24, 4, 4), "gcn", **SMALL)
    second = fognn.train(parts(8, 4, 20), "gcn", **SMALL)
    assert first.folder != second.folder
    assert (first.fingerprint, first.test) != (second.fingerprint, second.test)
    assert "split: 8 train, 4 val, 20 test" in (second.folder / "log.txt").read_text()
    own = fognn.train(parts(24, 4, 4), "gcn", folder="own", **SMALL)
    assert own.test == first.test
    with pytest.raises(ValueError, match=r"holds another run \(data\.name"):
        fognn.train(parts(8, 4, 20), "gcn", folder="own", **SMALL)


@pytest.mark.parametrize("finished", [True, False])
def test_a_changed_file_is_another_run(tmp_path: Path, finished: bool) -> None:
    file, run = tmp_path / "graphs.npz", tmp_path / "run"
    write_graphs(file, molecules(20))
    values = {"training.epochs": 2, "model.channels": 8, "training.batch_size": 8}
    config = protocol(str(file), "gcn", 0, values)
    fit(config, run, quiet=True)
    if not finished:
        (run / "result.json").unlink()
    write_graphs(file, molecules(20, seed=1))
    with pytest.raises(ValueError, match=r"data '.*graphs\.npz' have changed since"):
        fit(config, run, quiet=True)


def unbalanced(seed: int = 0) -> Data:
    """One graph with 80 % of one class, which the features tell only in part."""
    generator = torch.Generator().manual_seed(seed)
    y = (torch.arange(100) % 5 == 0).long()
    mask = torch.arange(100) // 5 % 4
    return Data(
        x=y.view(-1, 1) + 0.8 * torch.randn(100, 1, generator=generator),
        edge_index=torch.stack([torch.arange(100), torch.arange(100)]),
        y=y,
        train_mask=mask < 2,
        val_mask=mask == 2,
        test_mask=mask == 3,
    )


def test_two_classes_are_judged_by_their_order(tmp_path: Path) -> None:
    result = fognn.train(unbalanced(), "gcn", folder=tmp_path / "a", **SMALL | {"epochs": 20})
    assert result.metric == "roc_auc"
    assert result.metrics["test/roc_auc"] > 0.6
    assert not result.majority_class
    always = fognn.train(
        unbalanced(), "gcn", folder=tmp_path / "b", metric="accuracy", **SMALL | {"lr": 1e-9}
    )
    assert always.majority_class == (always.metrics["test/accuracy"] == pytest.approx(80))
    assert always.majority_class == ("most frequent class" in str(Result.read(tmp_path / "b")))


def test_a_split_with_one_class_is_judged_by_accuracy(tmp_path: Path) -> None:
    graph = unbalanced()
    graph.y[graph.val_mask] = 0
    result = fognn.train(graph, "gcn", folder=tmp_path / "a", **SMALL)
    assert result.metric == "accuracy"
    log = (result.folder / "log.txt").read_text()
    assert "accuracy and not ROC-AUC, because the val split has only one class" in log
    with pytest.raises(ValueError, match=r"training\.metric must be accuracy"):
        fognn.train(graph, "gcn", folder=tmp_path / "b", metric="roc_auc", **SMALL)


def test_gin_begins_with_a_sane_loss(tmp_path: Path) -> None:
    lines = [f"{'CCO' * n}{'N' * (n % 2)},{n % 2}" for n in range(2, 30)]
    (tmp_path / "a.csv").write_text("\n".join(["smiles,y", *lines]))
    for name in ("gin", "gin+fog"):
        config = protocol(str(tmp_path / "a.csv"), name, 0, {"data.target": "y"})
        net = untrained_model(config, task_of(config.data))
        for batch in open_split(config, "train"):
            out, y = forward_batch(net, batch)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(out, y.view_as(out))
            assert float(loss) < 1.5


def test_one_graph_and_objects_are_scored_as_the_result_says(tmp_path: Path) -> None:
    result = fognn.train(molecules(40), "gcn+fog", folder=tmp_path / "a", **SMALL)
    assert result.data.startswith("python:")
    with pytest.raises(ValueError, match="Python object"):
        evaluate(tmp_path / "a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "data must be .*got int"),
        ([], "data must be"),
        ({"train": []}, "train, val"),
    ],
)
def test_wrong_objects(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fognn.train(data, "gcn", folder=tmp_path / "a", **SMALL)
    assert not (tmp_path / "a").exists()

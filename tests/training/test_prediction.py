"""Predictions for new graphs and molecules, and for a split of a run's data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_images import tiny_images, write_cifar
from tiny_runs import molecules
from torch_geometric.data import Data

import fognn
from fognn.data.graph_files import write_graphs
from fognn.data.molecules import smiles_to_graph
from fognn.experiments import protocol
from fognn.models import PretrainedNet, Task
from fognn.training import (
    Config,
    DataConfig,
    ModelConfig,
    TrainingConfig,
    evaluate,
    export,
    fit,
    load,
)
from fognn.training.networks import untrained_model, write_checkpoint

SMALL = {"training.epochs": 1, "training.batch_size": 8, "model.channels": 8, "machine.threads": 1}
SMILES = ["CCO", "C1CC1", "CC(=O)O", "C#N", "CCN", "COC", "CCC", "CCCC", "CF", "CBr", "CCl", "CS"]


def edge_graphs(count: int, seed: int = 0) -> list[Data]:
    """Graphs with features and classes on their edges, which lie in no order."""
    graphs = molecules(count, seed)
    for number, graph in enumerate(graphs):
        generator = torch.Generator().manual_seed(number)
        graph.x = torch.randn(graph.num_nodes, 2, generator=generator)
        graph.edge_attr = torch.randn(graph.num_edges, 3, generator=generator)
        graph.y = torch.randint(0, 3, (graph.num_edges,), generator=generator)
    return graphs


def node_graphs(count: int, seed: int = 0) -> list[Data]:
    graphs = molecules(count, seed)
    for number, graph in enumerate(graphs):
        generator = torch.Generator().manual_seed(number)
        graph.y = torch.randint(0, 4, (graph.num_nodes,), generator=generator)
    return graphs


def value_graphs(count: int, seed: int = 0) -> list[Data]:
    graphs = molecules(count, seed)
    for number, graph in enumerate(graphs):
        graph.y = torch.full((1, 2), float(number))
    return graphs


KINDS: dict[str, tuple[Callable[..., list[Data]], str]] = {
    "value": (molecules, "gin+fog"),
    "values": (value_graphs, "gatedgcn-e"),
    "node classes": (node_graphs, "gat"),
    "edge classes": (edge_graphs, "gatedgcn-e+fog"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained run of each kind."""
    folder = tmp_path_factory.mktemp("runs")
    for kind, (make, model) in KINDS.items():
        write_graphs(folder / f"{kind}.npz", make(40, 0))
        values = SMALL | {"data.rwse": 4 * (kind == "value")}
        fit(protocol(str(folder / f"{kind}.npz"), model, 0, values), folder / kind, quiet=True)
    lines = [f"{text},{n},{n % 2}" for n, text in enumerate(SMILES * 3)]
    (folder / "a.csv").write_text("\n".join(["smiles,logp,active", "C(,3,1", *lines]) + "\n")
    for target in ("logp", "active"):
        values = SMALL | {"data.target": target, "data.skip_bad": True}
        fit(protocol(str(folder / "a.csv"), "gcn", 0, values), folder / target, quiet=True)
    return folder


def by_hand(run: Path, graph: Data) -> torch.Tensor:
    """The network alone with one graph, whose edges are as they were given."""
    net: Any = load(run)
    if getattr(net, "walk_encoder", None) is None:
        return net(graph.x, graph.edge_index, graph.edge_attr).detach()
    from fognn.data.user_data import random_walk_transform

    walks = random_walk_transform(net.walk_encoder.in_channels)(graph).rwse
    return net(graph.x, graph.edge_index, graph.edge_attr, rwse=walks).detach()


@pytest.mark.parametrize("kind", KINDS)
def test_each_graph_as_the_network_alone(runs: Path, kind: str) -> None:
    graphs = KINDS[kind][0](7, 5)
    for graph in graphs:
        if not graph.x.is_floating_point():
            graph.x %= 20
    outputs = torch.cat([by_hand(runs / kind, graph) for graph in graphs])
    found = fognn.predict(runs / kind, graphs, batch_size=3)
    counts = [len(by_hand(runs / kind, graph)) for graph in graphs]
    assert found.places["graph"] == [n for n, count in enumerate(counts) for _ in range(count)]
    if "class" in kind:
        expected: Any = outputs.softmax(1).numpy()
        np.testing.assert_allclose(found.probabilities, expected, rtol=1e-4, atol=1e-5)
        assert found.values.tolist() == expected.argmax(1).tolist()
        assert found.names == tuple(map(str, range(outputs.size(1))))
    else:
        np.testing.assert_allclose(
            found.values.reshape(outputs.shape), outputs.numpy(), rtol=1e-4, atol=1e-4
        )
    if "edge" in kind:
        sources = [int(v) for graph in graphs for v in graph.edge_index[0]]
        assert found.places["source"] == sources


def test_smiles_classes_and_a_csv(runs: Path, tmp_path: Path) -> None:
    found = fognn.predict(runs / "active", SMILES)
    logits = torch.cat([by_hand(runs / "active", smiles_to_graph(s, "pyg")) for s in SMILES])
    chances = logits.sigmoid().flatten().numpy()
    np.testing.assert_allclose(found.probabilities, chances, rtol=1e-4, atol=1e-5)
    assert found.values.tolist() == (chances > 0.5).astype(int).tolist()
    assert (found.names, found.places["smiles"]) == (("active",), SMILES)
    found.to_csv(tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv")
    assert list(table) == ["row", "smiles", "class", "probability_0", "probability_1"]
    np.testing.assert_allclose(table["probability_1"], chances, rtol=1e-4, atol=1e-5)


def test_the_result_of_a_training_is_a_run(tmp_path: Path) -> None:
    result = fognn.train(molecules(40), "gcn", 0, tmp_path / "run", quiet=True, **SMALL)
    graphs = molecules(5, seed=1)
    expected = fognn.predict(tmp_path / "run", graphs).values
    np.testing.assert_array_equal(fognn.predict(result, graphs).values, expected)
    weights = load(tmp_path / "run").state_dict()
    assert all(
        torch.equal(value, weights[name]) for name, value in load(result).state_dict().items()
    )


def test_a_split_with_its_truth(runs: Path) -> None:
    found = fognn.predict(runs / "logp", split="test")
    scores = evaluate(runs / "logp", "test")
    assert np.abs(found.values - found.truth).mean() == pytest.approx(scores["mae_items"], rel=1e-4)
    assert list(found.to_frame()) == ["row", "smiles", "prediction", "truth"]


def test_skipped_lines_are_remembered(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("smiles\nCCO\nC1CC\nCN\n")
    found = fognn.predict(runs / "logp", tmp_path / "in.csv")
    assert (found.places["row"], found.places["smiles"]) == ([0, 2], ["CCO", "CN"])
    with pytest.raises(ValueError, match="line 3"):
        fognn.predict(runs / "logp", tmp_path / "in.csv", skip_bad=False)


@pytest.mark.parametrize("neighbors", [None, [3, 2]])
def test_nodes_of_one_graph(tmp_path: Path, neighbors: list[int] | None) -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(40) % 3
    x = torch.randn(40, 3, generator=generator)
    edge_index = torch.randint(40, (2, 150), generator=generator)
    write_graphs(tmp_path / "graph.npz", [Data(x=x, edge_index=edge_index, y=y)])
    values = SMALL | {"data.neighbors": neighbors, "model.layers": 2}
    fit(protocol(str(tmp_path / "graph.npz"), "gin+fog", 0, values), tmp_path / "run", quiet=True)
    assert len(fognn.predict(tmp_path / "run", tmp_path / "graph.npz")) == 40
    found = fognn.predict(tmp_path / "run", split="test")
    assert found.truth.tolist() == [int(y[node]) for node in found.places["node"]]
    scores = evaluate(tmp_path / "run", "test")
    right = 100 * np.mean(found.values == found.truth)
    assert right == pytest.approx(scores["accuracy_items"])


def test_edges_of_a_split_are_those_of_their_targets(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for _ in range(30):
        pairs = torch.cartesian_prod(torch.arange(6), torch.arange(6)).t()
        edges = pairs[:, torch.randperm(36, generator=generator)[:14]]  # in any order
        x = torch.randn(6, 3, generator=generator)
        graphs.append(Data(x=x, edge_index=edges, y=(edges[0] > edges[1]).long()))
    write_graphs(tmp_path / "edges.npz", graphs)
    fit(protocol(str(tmp_path / "edges.npz"), "gcn", 0, SMALL), tmp_path / "run", quiet=True)
    found = fognn.predict(tmp_path / "run", split="test")
    ends = zip(found.places["source"], found.places["target"], strict=True)
    assert found.truth.tolist() == [int(source > target) for source, target in ends]
    assert len(set(found.places["graph"])) == 3


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (None, {}, "source"),
        (SMILES, {"split": "test"}, "source"),
        (SMILES, {}, "source"),
        ("CCO", {}, r"source .* \[.CCO.\]"),
        (molecules(2), {"batch_size": 0}, "batch_size"),
        (molecules(2), {"device": "tpu"}, "device"),
        ([Data(x=torch.full((2,), 99), edge_index=torch.zeros(2, 1).long())], {}, "99"),
        ("none.npz", {}, "none.npz"),
        (None, {"split": "dev"}, "split"),
    ],
)
def test_wrong_arguments(runs: Path, source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, fognn.utils.errors.FileError), match=message):
        fognn.predict(runs / "node classes", source, **options)


def test_few_shot_networks_do_not_predict(tmp_path: Path) -> None:
    fit(tiny_images(write_cifar(tmp_path), training__epochs=1), tmp_path / "run", quiet=True)
    with pytest.raises(ValueError, match="run must not be of a few-shot network"):
        fognn.predict(tmp_path / "run", molecules(2))


def untrained(path: Path, data: str, **rest: Any) -> Path:
    """A checkpoint of a network as it was drawn."""
    task = Task("graph", 1, node_tokens=28, edge_tokens=4)
    training = TrainingConfig("l1", "mae")
    config = Config(DataConfig(data), ModelConfig("gcn", {"channels": 8}), training, **rest)
    net = untrained_model(config, task)
    net = net.double() if config.precision == "64-true" else net
    write_checkpoint(path, config, task, {"model": net.state_dict()})
    return path


def test_the_features_and_the_precision_are_those_of_the_training(tmp_path: Path) -> None:
    smiles = ["CCO", "CCC"]
    plain = fognn.predict(untrained(tmp_path / "a.ckpt", "ZINC-without-node-features"), smiles)
    zinc = fognn.predict(untrained(tmp_path / "b.ckpt", "ZINC"), smiles).values
    assert plain.values[0] == plain.values[1] == zinc[1], "carbon is atom 0"
    assert zinc[0] != zinc[1]
    double = fognn.predict(untrained(tmp_path / "c.ckpt", "ZINC", precision="64-true"), smiles)
    np.testing.assert_allclose(double.values, zinc, rtol=1e-4)


def test_an_exported_folder(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert export(runs / "active", tmp_path / "net") == tmp_path / "net"
    graph = smiles_to_graph("CCO", "pyg")
    for net in (PretrainedNet.from_pretrained(tmp_path / "net"), load(tmp_path / "net")):
        out = net(graph.x, graph.edge_index, graph.edge_attr).detach()
        torch.testing.assert_close(out, by_hand(runs / "active", graph))
    card = (tmp_path / "net" / "README.md").read_text()
    assert "Trained on `a.csv`, with seed 0. Test " in card
    assert str(runs) not in card, "the user's folder is of no use to others"
    with pytest.raises(ValueError, match="folder must be new or empty"):
        export(runs / "active", tmp_path / "net")
    monkeypatch.setattr("fognn.models.weights.json.dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # after the weights are written
        export(runs / "active", tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["net"], "whole or not at all"

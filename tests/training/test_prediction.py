import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_images import tiny_images, write_cifar
from tiny_runs import molecules, tiny
from torch_geometric.data import Data

from fognn.data.graph_files import write_graphs
from fognn.data.molecules import smiles_to_graph
from fognn.experiments import protocol
from fognn.models import Task
from fognn.training import ModelConfig, TrainingConfig, fit, load, predict
from fognn.training.checkpoint import untrained_model, write_checkpoint
from fognn.training.config import Config, DataConfig
from fognn.training.prediction import predict_graphs
from fognn.utils.errors import FileError

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
        del graph.edge_attr
    return graphs


def value_graphs(count: int, seed: int = 0) -> list[Data]:
    graphs = molecules(count, seed)
    for number, graph in enumerate(graphs):
        graph.y = torch.full((1, 2), float(number))
    return graphs


def class_graphs(count: int, seed: int = 0) -> list[Data]:
    return molecules(count, seed, classes=3)


KINDS: dict[str, tuple[Callable[..., list[Data]], str]] = {
    "value": (molecules, "gin+fog"),
    "values": (value_graphs, "gatedgcn-e"),
    "graph classes": (class_graphs, "gcn+fog"),
    "node classes": (node_graphs, "gat"),
    "edge classes": (edge_graphs, "gatedgcn-e+fog"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained run of each kind."""
    folder = tmp_path_factory.mktemp("runs")
    for kind, (make, model) in KINDS.items():
        graphs = make(40, 0)
        path = folder / f"{kind}.npz"
        write_graphs(path, graphs)
        fit(protocol(str(path), model, 0, SMALL), folder / kind, quiet=True)
    lines = [f"{text},{number}" for number, text in enumerate(SMILES)]
    (folder / "zinc.csv").write_text("\n".join(["smiles,value", *lines]))
    config = protocol(str(folder / "zinc.csv"), "gcn", 0, SMALL | {"data.target": "value"})
    fit(config, folder / "smiles", quiet=True)
    return folder


def table(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def known(graphs: list[Data]) -> list[Data]:
    """The graphs with no other tokens than those that the networks were trained on."""
    for graph in graphs:
        if not graph.x.is_floating_point():
            graph.x %= 20
    return graphs


def by_hand(run: Path, graph: Data) -> torch.Tensor:
    """The network alone with one graph, whose edges are as they were given."""
    net = load(run)
    with torch.no_grad():
        return net(graph.x, graph.edge_index, graph.edge_attr)


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_network_says_graph_by_graph(runs: Path, tmp_path: Path, kind: str) -> None:
    graphs = known(KINDS[kind][0](7, 5))
    write_graphs(tmp_path / "new.npz", graphs)
    lines = predict(runs / kind, tmp_path / "new.npz", tmp_path / "out.csv", batch_size=3)
    rows = table(tmp_path / "out.csv")
    assert lines == len(rows)
    outputs = [by_hand(runs / kind, graph) for graph in graphs]
    assert [int(row["graph"]) for row in rows] == [
        number for number, output in enumerate(outputs) for _ in output
    ]
    expected = torch.cat(outputs)
    columns = [name for name in rows[0] if name.startswith(("prediction", "probability"))]
    found = torch.tensor([[float(row[name]) for name in columns] for row in rows])
    if "classes" in kind:
        assert columns == [f"probability_{c}" for c in range(expected.size(1))]
        assert [int(row["class"]) for row in rows] == expected.argmax(1).tolist()
        expected = expected.softmax(1)
    else:
        assert columns == (["prediction_0", "prediction_1"] if kind == "values" else ["prediction"])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert found.std(0).max() > 0, "a network that says the same of everything shows nothing"
    if kind == "node classes":
        assert [int(row["node"]) for row in rows] == [n for g in graphs for n in range(len(g.x))]


def test_edges_keep_their_order(runs: Path, tmp_path: Path) -> None:
    (graph,) = edge_graphs(1, 3)
    order = torch.randperm(graph.num_edges, generator=torch.Generator().manual_seed(1))
    other = Data(x=graph.x, edge_index=graph.edge_index[:, order], edge_attr=graph.edge_attr[order])
    del graph.y
    rows = []
    for one in (graph, other):
        write_graphs(tmp_path / "new.npz", [one])
        predict(runs / "edge classes", tmp_path / "new.npz", tmp_path / "out.csv")
        rows.append(table(tmp_path / "out.csv"))
        ends = [(int(row["source"]), int(row["target"])) for row in rows[-1]]
        assert ends == [tuple(edge) for edge in one.edge_index.t().tolist()]
    for place, row in zip(order.tolist(), rows[1], strict=True):
        probability = pytest.approx(float(rows[0][place]["probability_1"]), abs=1e-5)
        assert float(row["probability_1"]) == probability


def test_the_batch_size_and_the_checkpoint(runs: Path, tmp_path: Path) -> None:
    graphs = known(molecules(9, 5))
    write_graphs(tmp_path / "new.npz", graphs)
    found = []
    for size in (1, 4, 128):
        predict(runs / "value", tmp_path / "new.npz", tmp_path / "out.csv", "last", batch_size=size)
        found.append([float(row["prediction"]) for row in table(tmp_path / "out.csv")])
    assert found[0] == pytest.approx(found[2], abs=1e-5)
    assert found[1] == pytest.approx(found[2], abs=1e-5)
    predict(runs / "value" / "last.ckpt", tmp_path / "new.npz", tmp_path / "out.csv")
    assert [float(row["prediction"]) for row in table(tmp_path / "out.csv")] == found[2]


def test_molecules(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("\n".join(["name,molecule", "a,CCO", "b,C=CC#N"]))
    with pytest.raises(ValueError, match=r"smiles_column must be one of .*'name', 'molecule'"):
        predict(runs / "smiles", tmp_path / "in.csv", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    count = predict(
        runs / "smiles", tmp_path / "in.csv", tmp_path / "out.csv", smiles_column="molecule"
    )
    assert count == 2
    rows = table(tmp_path / "out.csv")
    assert list(rows[0]) == ["row", "smiles", "prediction"]
    assert [row["smiles"] for row in rows] == ["CCO", "C=CC#N"]
    for row in rows:
        expected = float(by_hand(runs / "smiles", smiles_to_graph(row["smiles"])))
        assert float(row["prediction"]) == pytest.approx(expected, abs=1e-5)


def test_bad_lines_of_molecules(runs: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("smiles\nCCO\nC1CC\nC[Fe+9]\nCN\n")
    output.write_text("old")
    with pytest.raises(ValueError, match=r"in\.csv, line 3: smiles must be a valid SMILES"):
        predict(runs / "smiles", source, output)
    assert output.read_text() == "old"
    with pytest.warns(UserWarning, match="2 of 4 lines were skipped, the first is line 3"):
        assert predict(runs / "smiles", source, output, skip_bad=True) == 2
    # The rows of the input, so that predictions can be joined to it.
    assert [(row["row"], row["smiles"]) for row in table(output)] == [("0", "CCO"), ("3", "CN")]
    source.write_text("smiles\n")
    with pytest.raises(ValueError, match="source must have at least one molecule"):
        predict(runs / "smiles", source, output)


def wrong(change: Callable[[Data], Any]) -> list[Data]:
    graphs = edge_graphs(2)
    for graph in graphs:
        change(graph)
        del graph.y
    return graphs


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (wrong(lambda g: g.update({"x": g.x[:, :1]})), "x must have 2 .*got"),
        (wrong(lambda g: g.update({"x": torch.zeros(len(g.x)).long()})), "x must .*floating point"),
        (wrong(lambda g: g.update({"edge_attr": g.edge_attr[:, :2]})), "edge_attr must have 3"),
        (wrong(lambda g: g.pop("edge_attr")), "edge_attr"),
    ],
)
def test_graphs_of_another_kind(
    runs: Path, tmp_path: Path, graphs: list[Data], message: str
) -> None:
    write_graphs(tmp_path / "new.npz", graphs)
    with pytest.raises(ValueError, match=message):
        predict(runs / "edge classes", tmp_path / "new.npz", tmp_path / "out.csv")
    assert not list(tmp_path.glob("*.csv")) + list(tmp_path.glob(".tmp-*"))


def test_tokens_that_the_network_does_not_know(runs: Path, tmp_path: Path) -> None:
    graphs = molecules(2)
    graphs[1].x[0] = 99
    write_graphs(tmp_path / "new.npz", graphs)
    with pytest.raises(ValueError, match=r"x must hold tokens in 0\.\.\d+, got 99"):
        predict(runs / "value", tmp_path / "new.npz", tmp_path / "out.csv")


def test_wrong_arguments(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("smiles\nCCO\n")
    write_graphs(tmp_path / "in.npz", known(molecules(2)))
    output = tmp_path / "out.csv"
    with pytest.raises(ValueError, match=r"predict: batch_size must be .* got 0"):
        predict(runs / "value", tmp_path / "in.npz", output, batch_size=0)
    with pytest.raises(ValueError, match=r"source must be a \.pt or .* not on molecules"):
        predict(runs / "node classes", tmp_path / "in.csv", output)
    with pytest.raises(ValueError, match=r"source must be a \.pt or .* not on molecules"):
        predict(runs / "edge classes", tmp_path / "in.csv", output)
    with pytest.raises(FileError, match=r"none\.npz is not there"):
        predict(runs / "value", tmp_path / "none.npz", output)
    with pytest.raises(ValueError, match=r"end in \.pt or \.npz, got .*in\.xlsx"):
        predict(runs / "value", tmp_path / "in.xlsx", output)
    with pytest.raises(ValueError, match=r"device must be one that this machine has .* got 'tpu'"):
        predict(runs / "value", tmp_path / "in.npz", output, device="tpu")
    with pytest.raises(ValueError, match="run must be a run folder or a checkpoint"):
        predict(tmp_path, tmp_path / "in.npz", output)
    assert not output.exists()


def test_few_shot_networks_do_not_predict(tmp_path: Path) -> None:
    fit(tiny_images(write_cifar(tmp_path), training__epochs=1), tmp_path / "run", quiet=True)
    with pytest.raises(
        ValueError, match=r"run must not .*few-shot.*predict_images.*fognn\.load\(run\)"
    ):
        predict(tmp_path / "run", tmp_path / "in.npz", tmp_path / "out.csv")


def untrained(path: Path, data: str, **rest: Any) -> Path:
    """A checkpoint of a network as it was drawn."""
    task = Task("graph", 1, node_tokens=28, edge_tokens=4)
    config = Config(
        DataConfig(data), ModelConfig("gcn", {"channels": 8}), TrainingConfig("l1", "mae"), **rest
    )
    net = untrained_model(config, task)
    if config.precision == "64-true":
        net.double()
    write_checkpoint(path, config, task, {"model": net.state_dict()})
    return path


def test_without_node_features_all_atoms_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("smiles\nCCO\nCCC\n")
    predictions = {}
    for name in ("ZINC", "ZINC-without-node-features"):
        run = untrained(tmp_path / f"{name}.ckpt", name)
        predict(run, tmp_path / "in.csv", tmp_path / "out.csv")
        predictions[name] = [float(row["prediction"]) for row in table(tmp_path / "out.csv")]
    first, second = predictions["ZINC-without-node-features"]
    assert first == second == predictions["ZINC"][1], "carbon is atom 0"
    assert predictions["ZINC"][0] != first


def test_double_precision(tmp_path: Path) -> None:
    run = untrained(tmp_path / "a.ckpt", "ZINC", precision="64-true")
    (tmp_path / "in.csv").write_text("smiles\nCCO\n")
    predict(run, tmp_path / "in.csv", tmp_path / "out.csv")
    expected = by_hand(run, smiles_to_graph("CCO", "zinc"))
    assert expected.dtype == torch.float64
    (row,) = table(tmp_path / "out.csv")
    assert float(row["prediction"]) == pytest.approx(float(expected), abs=1e-12)
    features = edge_graphs(3)
    task = Task("edge", 3, node_channels=2, edge_channels=3)
    config = protocol("tsp", "gcn")
    net = untrained_model(config, task).double().eval()
    outputs = list(predict_graphs(net, features, task, device="cpu"))
    assert [len(output) for output in outputs] == [graph.num_edges for graph in features]
    assert outputs[0].dtype == torch.float64


def test_a_dataset_by_name(tmp_path: Path) -> None:
    """Nodes of CLUSTER, from a file as a user has it."""
    fit(tiny(training__epochs=1), tmp_path / "run", quiet=True)
    graph = Data(x=torch.tensor([0, 3, 6]), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    torch.save([graph], tmp_path / "in.pt")
    assert predict(tmp_path / "run", tmp_path / "in.pt", tmp_path / "a" / "out.csv") == 3
    rows = table(tmp_path / "a" / "out.csv")
    assert list(rows[0]) == ["graph", "node", "class", *(f"probability_{c}" for c in range(6))]
    for row in rows:
        total = sum(float(row[f"probability_{c}"]) for c in range(6))
        assert total == pytest.approx(1, abs=1e-5)

"""``fognn.compare``: what is equal, what is chosen, and the answer."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from compared_runs import fake_training
from tiny_runs import molecules
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCNConv, global_mean_pool

import fognn
from fognn.data import write_graphs
from fognn.experiments.compare import networks
from fognn.experiments.ledger import ledger_of
from fognn.experiments.search import choices_of
from fognn.experiments.tables import Run
from fognn.models import count_parameters
from fognn.models.registry import new_model
from fognn.nn import WithFOG
from fognn.training.config import assignments
from fognn.training.data import open_data, task_of

SHORT: dict[str, Any] = {"epochs": 2, "threads": 1, "quiet": True, "rates": [0.01]}
Fake = Callable[..., list[Run]]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_graphs("graphs.npz", molecules(30))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    def use(scores: Any) -> list[Run]:
        trained: list[Run] = []
        train = fake_training(scores, trained)
        monkeypatch.setattr("fognn.experiments.reproduce.Sweep.train", train)
        return trained

    return use


def fog(run: Run) -> bool:
    return run.variant == "fog"


def test_both_networks_differ_in_one_thing() -> None:
    values = {"model.layers": 3, "training.epochs": 4}
    planned = networks("graphs.npz", ["gcn", "gin"], 6000, values)
    assert [run.label for run in planned] == ["GCN", "GCN+FOG", "GIN", "GIN+FOG"]
    assert {run.table for run in planned} == {"compare/graphs"}
    task = task_of(planned[0].config.data, open_data(planned[0].config.data))
    for host, with_fog in (planned[:2], planned[2:]):
        one, other = host.config, with_fog.config
        assert (one.training, one.data, one.seed) == (other.training, other.data, other.seed)
        assert one.model.settings["layers"] == other.model.settings["layers"] == 3
        sizes = [
            count_parameters(new_model(c.model.name, task, **c.model.settings))
            for c in (one, other)
        ]
        assert all(abs(size - 6000) <= 60 for size in sizes)
        assert sizes[1] <= sizes[0]
    moved = networks("./graphs.npz", ["gcn"], 6000, {"data.folder": "x", "model.layers": 3})
    assert moved[0].key.startswith("compare/graphs/gcn-")


def test_each_network_takes_its_best_rate_for_all_seeds(fake: Fake) -> None:
    def scores(run: Run) -> tuple[float, float]:
        rate, seed = run.config.training.lr, run.config.seed
        val = abs(rate - (0.001 if fog(run) else 0.003)) + (0.1 if fog(run) else 0.2)
        return val, 0.30 + 0.01 * seed if fog(run) else 0.40 + 0.013 * seed

    trained = fake(scores)
    result = fognn.compare("graphs.npz", ["gin"], 4, 6000, quiet=True)
    assert {c.label: c.lr for c in result.choices} == {"GIN": 0.003, "GIN+FOG": 0.001}
    assert choices_of("compare/graphs", "results").entries() == list(result.choices)
    assert len(trained) == 2 * (3 + 3), "three rates with the first seed, then three more seeds"
    host, with_fog = result.frame.itertuples()
    assert (host.values, host.verdict) == (pytest.approx((0.40, 0.413, 0.426, 0.439)), "")
    assert with_fog.paired == pytest.approx(-0.1045)
    assert (with_fog.verdict, with_fog.pairs, with_fog.figure) == ("better", 4, "test.best.items")
    assert result.sentence.startswith("GIN+FOG is better than GIN by 0.10")
    assert "over 4 seeds. The intervals are over training seeds of one split." in result.sentence
    assert result.winner == "GIN+FOG"
    assert result.folder == Path(f"runs/compare/graphs/{result.folder.name}")  # type: ignore
    assert "trains it" in str(result), "its folder is on another machine"
    trained.clear()
    again = fognn.compare("graphs.npz", ["gin"], 4, 6000, quiet=True)
    assert (trained, again.sentence) == ([], result.sentence)


def test_few_seeds_and_networks_that_fail(fake: Fake) -> None:
    fake(lambda run: (0.1, 0.3 if fog(run) else 0.4))
    one = fognn.compare("graphs.npz", ["gcn"], 1, 6000, quiet=True)
    assert list(one.frame["verdict"]) == ["", "maybe better"]
    assert "one or two seeds decide nothing" in one.sentence
    fake(lambda run: "no luck" if fog(run) or run.config.training.lr == 0.003 else (0.1, 0.4))
    failed = fognn.compare("graphs.npz", ["gin"], 1, 6000, quiet=True, name="failing")
    assert [note.partition(" ")[0] for note in failed.notes] == ["GIN"] + 3 * ["GIN+FOG"]
    assert all(note.endswith("seed0): no luck") for note in failed.notes)
    assert failed.sentence.startswith("No host has runs with and without FOG")


@pytest.mark.parametrize("form", ["list", "dict", "file"])
def test_any_data(form: str) -> None:
    graphs = molecules(30)
    data = {"train": graphs[:18], "val": graphs[18:24], "test": graphs[24:]}
    given: Any = {"list": graphs, "dict": data, "file": "graphs.npz"}[form]
    result = fognn.compare(given, ["gcn"], 1, 4000, **SHORT)
    assert list(result.frame["network"]) == ["GCN", "GCN+FOG"]
    assert len(ledger_of(f"compare/{result.runs.name}", "results").entries()) == 2
    assert result.folder is not None
    assert (result.folder / "result.json").exists()
    assert f"fognn predict {result.folder}" in str(result)
    assert sorted(path.name for path in Path().iterdir()) == ["graphs.npz", "results", "runs"]
    if form == "file":  # the commands that repeat its runs work
        entry = result.entries[0]
        words = shlex.split(entry.result["command"])
        assert words[:4] == ["fognn", "train", "graphs.npz", "gcn"]
        again = fognn.train(words[2], words[3], 0, "again", quiet=True, **assignments(words[7::2]))
        assert again.val == entry.result["val"]


class Net(Module):
    def __init__(self, conv: Module) -> None:
        super().__init__()
        self.inputs, self.conv, self.out = Linear(4, 8), conv, Linear(8, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        h = self.conv(self.inputs(x), edge_index).relu()
        return self.out(global_mean_pool(h, batch))


def labelled(count: int, ones: int) -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.tensor([[0, 1, 2, 1], [1, 0, 1, 2]])
    return [
        Data(
            x=torch.randn(3, 4, generator=generator),
            edge_index=edge_index,
            y=torch.tensor([int(number % count < ones)]),
        )
        for number in range(count)
    ]


def test_pairs_of_own_networks() -> None:
    pair = Net(GCNConv(8, 8)), Net(WithFOG(GCNConv(8, 4), 4))
    data = {"train": labelled(20, 10), "val": labelled(10, 5), "test": labelled(10, 5)}
    before = [value.clone() for value in pair[0].parameters()]
    result = fognn.compare(data, [pair], 2, **SHORT)
    assert list(result.frame["network"]) == ["net", "net+FOG"]
    assert list(result.frame["host"]) == ["", "net"]
    assert all(map(torch.equal, before, pair[0].parameters())), "a copy is trained"
    first, second = (entry.result["val"] for entry in result.entries[:2])
    assert first != second, "each seed has weights of its own"
    assert result.folder is not None
    best = pair[1] if result.winner == "net+FOG" else pair[0]
    assert f"fognn.predict({str(result.folder)!r}, graphs, module=" in str(result)
    assert len(fognn.predict(result.folder, data["test"], module=best)) == 10


def test_a_network_that_learns_nothing_is_named() -> None:
    graphs = labelled(20, 16)
    data = {"train": graphs, "val": graphs, "test": graphs}
    result = fognn.compare(data, ["gcn"], 1, 4000, metric="accuracy", **SHORT | {"rates": [1e-9]})
    constant = [e.label for e in result.entries if e.result["majority_class"]]
    for name in constant:
        assert f"{name} only predicts the most frequent class." in result.notes
    assert all("most frequent" in note for note in result.notes)


def test_changed_data_need_another_name() -> None:
    fognn.compare("graphs.npz", ["gcn"], 1, 4000, **SHORT)
    write_graphs("graphs.npz", molecules(30, seed=1))
    with pytest.raises(ValueError, match="have changed since"):
        fognn.compare("graphs.npz", ["gcn"], 1, 4000, **SHORT)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hosts": "gcn"}, "hosts"),
        ({"hosts": []}, "hosts"),
        ({"hosts": [(Net, Net)]}, "hosts"),
        ({"hosts": [Net(GCNConv(8, 8))]}, "hosts"),
        ({"seeds": 0}, "seeds"),
        ({"rates": [0.1, -1]}, "rates"),
        ({"data": molecules(3), "workers": 2}, "workers"),
        ({"data": HeteroData()}, "data"),
        ({"data": (molecules(20), molecules(5))}, "data|train|tuple"),
        ({"data": "omniglot"}, "data"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_wrong_argument_is_named(changes: dict[str, Any], named: str) -> None:
    arguments = {"data": "graphs.npz", "hosts": ["gcn"], "budget": 4000} | changes
    with pytest.raises((ValueError, TypeError), match=named) as error:
        fognn.compare(**arguments)
    assert "\n" not in str(error.value)
    assert not Path("runs").exists()

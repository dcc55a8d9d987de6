"""Networks that are given as Python objects: their identity, and their first weights."""

import linecache
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import molecules
from torch_geometric.nn import GCNConv, global_mean_pool

import fognn
from fognn.training.networks import module_name

SMALL: dict[str, Any] = {"epochs": 2, "batch_size": 8, "threads": 1, "quiet": True}
SOURCE = """
class Net(torch.nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p
        self.embedding = torch.nn.Embedding(28, 8)
        self.conv = GCNConv(8, 8)
        self.lin = torch.nn.Linear(8, 1)
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x, edge_index, batch):
        h = act(self.conv(self.embedding(x), edge_index))
        return self.scale * self.lin(global_mean_pool(h, batch))

def act(h):
    return h.relu()
"""


def net_of(source: str = SOURCE, **arguments: Any) -> torch.nn.Module:
    """A network from its source, as a cell of a notebook defines it."""
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {
        "torch": torch,
        "GCNConv": GCNConv,
        "global_mean_pool": global_mean_pool,
        "__name__": "notebook",
    }
    exec(compile(source, name, "exec"), space)
    made: Any = space["Net"]
    return made(**arguments)


def test_the_name_is_that_of_the_source_and_the_weights_that_stay() -> None:
    net = net_of()
    name = module_name(net)
    assert module_name(net_of()) == name, "the seed draws other weights, not these"
    others = [
        net_of(SOURCE.replace("h.relu()", "h * 0")),  # of a function that it calls
        net_of(SOURCE.replace("self.scale *", "2 * self.scale *")),
        net_of(p=0.5),  # in no repr and no weights
    ]
    scaled = net_of()
    with torch.no_grad():
        scaled.get_parameter("scale").fill_(3)  # which no reset_parameters sets
    assert len({name, *map(module_name, [*others, scaled])}) == 5
    kept = module_name(net, keep_weights=True)
    assert kept == module_name(net, keep_weights=True) != name
    assert module_name(net_of(), keep_weights=True) != kept


def test_an_edited_network_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graphs = molecules(30)
    first = fognn.train(graphs, net_of(), **SMALL)
    assert "already finished" not in capsys.readouterr().err
    assert fognn.train(graphs, net_of(), **SMALL) == first
    line = f"fognn: already finished in {first.folder}; --again trains it anew"
    assert line in capsys.readouterr().err
    edited = net_of(SOURCE.replace("h.relu()", "h * 0"))
    second = fognn.train(graphs, edited, **SMALL)
    assert second.folder != first.folder
    assert second.val != first.val
    with pytest.raises(ValueError, match=r"holds another run \(model\.name"):
        fognn.train(graphs, edited, folder=first.folder, **SMALL)
    assert "already finished" not in capsys.readouterr().err
    again = fognn.train(graphs, net_of(), again=True, **SMALL)
    assert again.val == first.val
    assert "begins" in (again.folder / "log.txt").read_text()
    assert len((again.folder / "log.txt").read_text().splitlines()) == len(
        (second.folder / "log.txt").read_text().splitlines()
    )


def test_seeds_start_from_their_own_weights_or_from_the_given(tmp_path: Path) -> None:
    graphs, net = molecules(30), net_of()
    options: dict[str, Any] = SMALL | {"epochs": 1, "lr": 1e-12}

    def trained(place: str, **more: Any) -> tuple[torch.Tensor, str]:
        result = fognn.train(graphs, net, folder=tmp_path / place, **options, **more)
        loaded = fognn.load(tmp_path / place, module=net_of())
        return loaded.get_parameter("lin.weight"), result.initial_weights

    (one, text), (other, _), (same, _) = (
        trained("a", seed=0), trained("b", seed=1), trained("c", seed=0)
    )  # fmt: skip
    assert not torch.allclose(one, other, atol=1e-4)
    assert torch.equal(one, same)
    assert "seed 0" in text
    assert "scale" in text, "it has no reset_parameters"
    assert "first weights: from seed 0" in (tmp_path / "a" / "log.txt").read_text()
    kept, text = trained("d", seed=1, keep_weights=True)
    torch.testing.assert_close(kept, net.get_parameter("lin.weight"), atol=1e-6, rtol=0)
    assert "as given" in text


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (torch.nn.Linear, {}, "model .* got the class Linear"),
        (3, {}, "model .* got 3"),
        (torch.nn.LazyLinear(2), {}, "lazy"),
        ("gcn", {"keep_weights": True}, "keep_weights"),
        ("gcn", {"channels": 32}, r"'model\.channels'"),
        (net_of(), {"model.channels": 8}, "channels"),
    ],
)
def test_wrong_networks(model: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fognn.train(molecules(12), model, **SMALL, **settings)


def test_without_source_the_folder_must_be_named(tmp_path: Path) -> None:
    space: dict[str, Any] = {"torch": torch, "__name__": "typed"}
    exec("class Net(torch.nn.Linear):\n    def forward(self, x): return super().forward(x)", space)
    with pytest.raises(ValueError, match="folder must be given for Net"):
        module_name(space["Net"](7, 6))
    assert module_name(space["Net"](7, 6), folder_named=True).startswith("python:net-")

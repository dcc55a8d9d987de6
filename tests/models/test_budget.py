import pytest
from torch_geometric.nn import TAGConv

from fognn.models import TASKS, Task, count_parameters, create_model, register_host
from fognn.models.budget import budget_settings
from fognn.models.hosts import HOSTS

BUILT_IN = ("gcn", "gat", "gatedgcn", "gatedgcn-e", "gin", "graphsage", "fog")


def sizes(host: str, task: Task, budget: int, **settings: int) -> dict[str, int]:
    found = budget_settings(host, task, budget, **settings)
    return {
        name: count_parameters(create_model(name, task, **(settings | own)))
        for name, own in found.items()
    }


# One budget a task: each case builds a hundred networks.
@pytest.mark.parametrize(
    ("task", "budget"), [("zinc", 5_000), ("tsp", 31_000), ("cluster", 100_000)]
)
@pytest.mark.parametrize("host", BUILT_IN)
def test_both_networks_are_within_one_per_cent(host: str, task: str, budget: int) -> None:
    if (host, task) == ("gatedgcn-e", "cluster"):
        pytest.skip("CLUSTER has no edge features")
    found = sizes(host, TASKS[task], budget)
    assert list(found) == ([host] if host == "fog" else [host, f"{host}+fog"])
    for size in found.values():
        assert abs(size - budget) <= 0.01 * budget
    assert found.get(f"{host}+fog", 0) <= found[host]


def test_the_fine_widths_are_settings_of_the_networks() -> None:
    usual = create_model("gcn", "zinc", channels=20)
    assert usual.head.mlp[0].out_channels == 10
    wide = create_model("gcn", "zinc", channels=20, head_channels=13)
    assert [wide.head.mlp[0].out_channels, wide.head.mlp[2].out_channels] == [13, 5]
    gin = create_model("gin", "zinc", channels=20, hidden=33)
    assert gin.blocks[0].conv.lin_V.out_channels == 33
    with pytest.raises(ValueError, match=r"'gin' has no setting 'head_channels'; known: hidden"):
        create_model("gin", "zinc", head_channels=3)
    with pytest.raises(ValueError, match=r"hidden must be a positive int, got 0"):
        create_model("gin", "zinc", hidden=0)


def test_a_host_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("own-tag", "own-even"):
        monkeypatch.setitem(HOSTS, name, HOSTS["gcn"])
        monkeypatch.delitem(HOSTS, name)
    register_host("own-tag")(TAGConv)

    @register_host("own-even")
    def even(in_channels: int, out_channels: int) -> TAGConv:
        if out_channels % 6:
            raise ValueError(f"out_channels must be a multiple of 6, got {out_channels}")
        return TAGConv(in_channels, out_channels)

    for name in ("own-tag", "own-even"):
        found = sizes(name, TASKS["zinc"], 40_000)
        assert all(abs(size - 40_000) <= 400 for size in found.values())
        assert found[f"{name}+fog"] <= found[name]


@pytest.mark.parametrize("host", ["gin", "gcn"])
def test_a_budget_that_is_too_small_names_the_nearest(host: str) -> None:
    task = Task("graph", 1, node_channels=1000)
    with pytest.raises(ValueError, match=r"budget must be .* got 2000; the nearest is (\d+)$") as e:
        budget_settings(host, task, 2000)
    assert 4000 < int(str(e.value).split()[-1]) < 5000


def test_a_host_that_needs_edge_features() -> None:
    with pytest.raises(ValueError, match=r"edge_tokens or edge_channels for 'gatedgcn-e'"):
        budget_settings("gatedgcn-e", TASKS["cluster"], 50_000)

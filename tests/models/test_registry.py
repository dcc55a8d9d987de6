import pytest

from fognn import create_model, list_models
from fognn.models import FewShotNet, GraphNet, Task, count_parameters

TASK = Task("graph", out_channels=3, node_channels=4, edge_channels=2)


def test_list_models() -> None:
    graph_models = [name for name in list_models() if not name.startswith("fewshot")]
    assert len(graph_models) == 13
    assert list_models("*fog*") == [name for name in list_models() if "fog" in name]
    assert list_models("GAT*") == ["gat", "gat+fog", "gatedgcn", "gatedgcn+fog", "gatedgcn-e",
                                   "gatedgcn-e+fog"]  # fmt: skip
    assert list_models("nothing*") == []


@pytest.mark.parametrize("name", list_models())
def test_every_name_is_a_network(name: str) -> None:
    if name.startswith("fewshot"):
        assert isinstance(create_model(name), FewShotNet)
        with pytest.raises(ValueError, match="task must be None for"):
            create_model(name, "zinc")
    else:
        network = create_model(name, TASK)
        assert isinstance(network, GraphNet)
        assert network.blocks[0].channels == 64
        assert isinstance(create_model(name.upper(), TASK), GraphNet)


def test_near_names_are_suggested() -> None:
    with pytest.raises(ValueError, match=r"got 'gcn\+fgo'; did you mean 'gcn\+fog'"):
        create_model("gcn+fgo", "zinc")
    with pytest.raises(ValueError, match="task must be a known one, got 'zink'; did you mean 'zi"):
        create_model("gcn", "zink")
    with pytest.raises(ValueError, match=r"got 'transformer'.*known: fog, gcn, "):
        create_model("transformer", "zinc")
    with pytest.raises(ValueError, match="task must be a Task or one of pattern, cluster"):
        create_model("gcn")


def test_settings() -> None:
    net = create_model("gat+fog", TASK, channels=40, layers=2, fog_channels=8, h1=3, h2=5, heads=4)
    fog = net.blocks[0].conv.fog
    assert (fog.h1, fog.h2, fog.out_channels) == (3, 5, 8)
    assert [block.conv.conv.heads for block in net.blocks] == [4, 1]
    assert count_parameters(net) == sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("gcn+fog", {"fog_channels": 64}, r"fog_channels must lie in 1\.\.63, .*, got 64"),
        ("gcn+fog", {"fog_channels": 100}, r"fog_channels must lie in 1\.\.63, .*, got 100"),
        ("gcn+fog", {"fog_channels": 0}, r"fog_channels must lie in 1\.\.63, .*, got 0"),
        ("fog", {"fog_channels": 32}, "fog_channels must be 64, like channels, for 'fog' alone"),
        ("gcn", {"h1": 3}, "fog_channels, h1 and h2 must be None for 'gcn'"),
        ("gcn+fog", {"h2": 0}, "FOG: h2 must be a positive int, got 0"),
        ("gcn+fog", {"channels": 0}, "channels must be a positive int, got 0"),
        ("gcn+fog", {"layers": 0}, "layers must be a positive int, got 0"),
        ("gcn+fog", {"dropout": 1.5}, r"dropout must lie in \[0, 1\), got 1.5"),
        ("gcn+fog", {"heads": 4}, r"'gcn\+fog' has no setting 'heads'; known: norm"),
        ("gcn", {"norm": "both"}, "norm must be one of"),
        ("gat", {"heads": 7}, "heads must divide out_channels=64, got 7"),
    ],
)
def test_bad_settings(name: str, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_model(name, TASK, **settings)


def test_edge_features_need_a_task_that_has_them() -> None:
    with pytest.raises(ValueError, match=r"without edge features take 'gatedgcn\+fog'"):
        create_model("gatedgcn-e+fog", "cluster")

import pytest
import torch
from torch_geometric.nn import BatchNorm

from fognn.experiments import Row, build, config_of, rows
from fognn.models import count_parameters, create_model
from fognn.nn import FOG, GATConv, GatedGCNConv, GCNConv, SAGEConv
from fognn.training.checkpoint import untrained_model
from fognn.training.data import task_of

ROWS = rows()


def name(row: Row) -> str:
    return f"{row.table}-{row.dataset}-{row.model}-{row.channels[0]}"


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_the_number_of_parameters_is_the_printed_one(row: Row) -> None:
    network = build(row)
    counted = network.gnn if row.few_shot else network
    assert count_parameters(counted) == row.params


@pytest.mark.parametrize("row", [row for row in ROWS if not row.few_shot], ids=name)
def test_the_settings_are_those_of_the_row(row: Row) -> None:
    network = build(row)
    blocks = list(network.blocks)
    assert len(blocks) == row.layers
    assert {block.channels for block in blocks} == {row.channels[0]}
    assert {block.dropout for block in blocks} == {row.dropout}
    fogs = [m for m in network.modules() if type(m).__name__ == "FOG"]
    assert {(f.h1, f.h2, f.out_channels) for f in fogs} <= {(row.h1, row.h2, row.p)}
    assert len(fogs) == (row.layers if row.h1 else 0)
    heads = tuple(m.heads for m in network.modules() if isinstance(m, GATConv))
    assert heads == (row.heads or ())
    if row.fc1:
        widths = [lin.out_channels for lin in network.head.mlp if hasattr(lin, "out_channels")]
        assert widths[:2] == [row.fc1, row.fc2]
    level = network.head.level
    assert row.readout == (network.head.readout if level == "graph" else level)
    norms = {m.norm for m in network.modules() if isinstance(m, GCNConv)}
    assert norms == {"GCN": {"mean"}, "GCN+FOG": {"sym"}}.get(row.model, set())


@pytest.mark.parametrize("row", [row for row in ROWS if row.few_shot], ids=name)
def test_the_few_shot_widths_are_those_of_the_row(row: Row) -> None:
    network = build(row)
    assert tuple(m.in_channels for m in network.gnn.layers) == row.channels[:-1]
    for layer in network.gnn.layers:
        if layer.fog is not None:
            assert (layer.fog.h1, layer.fog.h2) == (row.h1, row.h2)
    assert (layer.fog is not None) == ("FOG" in row.model)


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_fog_has_the_paper_s_form(row: Row) -> None:
    """ReLU before batch norm: not the default of the layer."""
    fogs = [module for module in build(row).modules() if isinstance(module, FOG)]
    assert bool(fogs) == ("FOG" in row.model)
    for fog in fogs:
        assert fog.act is None
        assert fog._relu
        assert fog.act_first is True
        for norm in (fog.norm_1, fog.norm_2):
            assert isinstance(norm, BatchNorm)
            assert norm.module.eps == 1e-5
    config = config_of(row)
    assert not {"fog_norm", "fog_act", "fog_eps"} & config.model.settings.keys()
    assert config.model.settings.get("fog_act_first") is (
        True if fogs and not row.few_shot else None
    )


def test_other_readings_of_the_paper() -> None:
    def kinds(network, kind):
        return [m for m in network.modules() if isinstance(m, kind)]

    (gcn,) = rows(table=3, model="GCN+FOG")
    assert {m.norm for m in kinds(build(gcn, norm="mean"), GCNConv)} == {"mean"}
    (sage,) = rows(table=3, model="GraphSAGE")
    assert {m.aggr for m in kinds(build(sage, aggr="mean"), SAGEConv)} == {"mean"}
    benchmark = build(sage, benchmark=True)
    assert count_parameters(benchmark) == sage.params
    assert all(block.act is None for block in benchmark.blocks)
    (gated,) = rows(table=3, model="GatedGCN-E")
    assert {m.gate for m in kinds(build(gated, gate="after"), GatedGCNConv)} == {"after"}
    with pytest.raises(ValueError, match=r"'gcn\+fog' has no setting 'aggr'; known: norm"):
        build(gcn, aggr="mean")


@pytest.mark.parametrize("row", [row for row in ROWS if not row.few_shot], ids=name)
def test_one_name_one_network(row: Row) -> None:
    """create_model, the row, and the run of ``fognn train`` build the same."""
    config = config_of(row)
    task = task_of(config.data)
    trained = untrained_model(config, task)
    settings: dict = {"channels": row.channels[0], "layers": row.layers, "dropout": row.dropout}
    if row.model == "GCN":
        settings["norm"] = row.norm  # the quoted figures are those of the mean
    named = create_model(config.model.name, task, **settings)
    assert str(named) == str(build(row)) == str(trained)
    shapes = [{k: v.shape for k, v in net.state_dict().items()} for net in (named, trained)]
    assert shapes[0] == shapes[1]


def test_the_norm_of_a_row_has_its_reason() -> None:
    assert {(row.model, row.norm) for row in ROWS if row.norm} == {
        ("GCN", "mean"),
        ("GCN+FOG", "sym"),
    }
    assert all("norm: " in row.note for row in ROWS if row.norm)
    blocks = create_model("gcn", "zinc").blocks
    assert [block.conv.norm for block in blocks] == ["sym"] * 4


def test_two_builds_differ_but_for_the_seed() -> None:
    torch.manual_seed(0)
    first = build(ROWS[0])
    torch.manual_seed(0)
    second = build(ROWS[0])
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)

"""FOG's layers in GraphGym, by their names in a config."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset

pytest.importorskip("yacs", reason="GraphGym needs yacs")

from torch_geometric import graphgym
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import assert_cfg, cfg, set_cfg
from torch_geometric.graphgym.models.layer import LayerConfig
from torch_geometric.graphgym.train import GraphGymDataModule

import fognn.graphgym
from fognn.nn import FOG

NAMES = [
    "fogconv", "gcnconv_fog", "sageconv_fog", "gatconv_fog", "ginconv_fog", "generalconv_fog",
    "generaledgeconv_fog", "gatedgcnconv_fog",
]  # fmt: skip

CONFIG = """
out_dir: {out}
dataset:
  format: fognn_test
  name: triangles
  task: graph
  task_type: classification
  node_encoder: false
  edge_dim: 16
share:
  num_splits: 3
train:
  batch_size: 8
  epoch_resume: -1
  enable_ckpt: false
model:
  type: gnn
  loss_fun: cross_entropy
  graph_pooling: mean
gnn:
  layers_pre_mp: 1
  layers_mp: 2
  layers_post_mp: 1
  dim_inner: 16
  layer_type: {layer}
  stage_type: skipsum
  batchnorm: true
  act: relu
  dropout: 0.1
optim:
  optimizer: adam
  base_lr: 0.01
  max_epoch: 2
fog:
  channels: {channels}
  eps: 0.01
"""


def graphs(count: int = 24) -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    out = []
    for i in range(count):
        edge_index = torch.randint(0, 6, (2, 14), generator=generator)
        x = torch.randn(6, 5, generator=generator)
        e = torch.randn(14, 16, generator=generator)
        out.append(Data(x=x, edge_index=edge_index, edge_attr=e, y=torch.tensor([i % 2])))
    return out


class Triangles(InMemoryDataset):
    def __init__(self) -> None:
        super().__init__()
        self.data, self.slices = self.collate(graphs())
        ends = torch.arange(24).split([16, 4, 4])
        for split, index in zip(("train", "val", "test"), ends, strict=True):
            self._data[f"{split}_graph_index"] = index


@register.register_loader("fognn_test")
def load(format: str, name: str, dataset_dir: str):  # GraphGym asks every loader
    return Triangles() if format == "fognn_test" else None


@pytest.fixture
def config(tmp_path: Path):
    def read(layer: str, channels: int = 0) -> None:
        path = tmp_path / "config.yaml"
        path.write_text(CONFIG.format(out=tmp_path, layer=layer, channels=channels))
        set_cfg(cfg)
        cfg.merge_from_file(str(path))
        assert_cfg(cfg)
        cfg.run_dir, cfg.accelerator = str(tmp_path), "cpu"

    yield read
    set_cfg(cfg)


def fogs(model: torch.nn.Module) -> list[FOG]:
    return [module for module in model.modules() if isinstance(module, FOG)]


@pytest.mark.parametrize("layer", NAMES)
def test_a_config_builds_a_network_that_learns(config, layer: str) -> None:
    torch.manual_seed(0)
    config(layer)
    model = graphgym.create_model(to_device=False, dim_in=5, dim_out=2)
    assert [fog.out_channels for fog in fogs(model)] == [16 if layer == "fogconv" else 8] * 2
    assert fogs(model)[0].norm_1.module.eps == 0.01
    [optimizer], _ = model.configure_optimizers()
    losses = []
    for _ in range(30):
        loss = model.training_step(Batch.from_data_list(graphs()))["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    # The last layer's edge features are not read.
    unused = [n for n, p in model.named_parameters() if p.grad is None]
    assert all("norm_e" in name for name in unused)


def test_a_run_of_graphgym(config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch.manual_seed(0)
    monkeypatch.chdir(tmp_path)
    config("gcnconv_fog", channels=4)
    data = GraphGymDataModule()
    cfg.share.dim_in, cfg.share.dim_out = 5, 2
    model = graphgym.create_model(to_device=False)
    assert [fog.out_channels for fog in fogs(model)] == [4, 4]
    before = fogs(model)[0].lin_vu.weight.clone()
    graphgym.train(model, data, logger=False, trainer_config={"enable_progress_bar": False})
    assert not torch.equal(before, fogs(model)[0].lin_vu.weight)


def test_the_layer_is_fog_and_the_host(config) -> None:
    config("gcnconv_fog")
    layer = register.layer_dict["gcnconv_fog"](LayerConfig(dim_in=5, dim_out=16)).eval()
    batch = graphs()[0]
    p = layer.fog(batch.x, batch.edge_index)
    q = layer.host.model(batch.x, batch.edge_index)
    assert q.shape == (6, 8)
    torch.testing.assert_close(layer(batch).x, torch.cat([p, q], dim=1))
    cfg.fog.edge_dim = 16
    layer = register.layer_dict["fogconv"](LayerConfig(dim_in=5, dim_out=16)).eval()
    batch = graphs()[0]
    expected = layer.fog(batch.x, batch.edge_index, edge_attr=batch.edge_attr)
    torch.testing.assert_close(layer(batch).x, expected)
    cfg.fog.channels = 16
    with pytest.raises(ValueError, match=r"gcnconv_fog: fog.channels must lie in 1\.\.15, got 16"):
        register.layer_dict["gcnconv_fog"](LayerConfig(dim_in=5, dim_out=16))


def test_register_another_layer(config) -> None:
    config("gcnconv_fog")
    register.layer_dict["mine"] = register.layer_dict["sageconv"]
    try:
        fognn.graphgym.register_with_fog("mine")
        layer = register.layer_dict["mine_fog"](LayerConfig(dim_in=5, dim_out=16))
        assert layer(graphs()[0]).x.shape == (6, 16)
        with pytest.raises(KeyError, match="mine_fog"):
            fognn.graphgym.register_with_fog("mine")
    finally:
        del register.layer_dict["mine"], register.layer_dict["mine_fog"]
    with pytest.raises(ValueError, match=r"register_with_fog: name .* got 'gcncon'; did you mean"):
        fognn.graphgym.register_with_fog("gcncon")

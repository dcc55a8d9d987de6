r"""FOG in GraphGym: after an import of this file, a config can name layers with FOG in
``gnn.layer_type``. Copy it to ``graphgym/custom_graphgym``. It needs ``pip install yacs``.

``fogconv`` is FOG alone. ``gcnconv_fog``, ``sageconv_fog``, ``gatconv_fog``, ``ginconv_fog``,
``generalconv_fog`` and ``generaledgeconv_fog`` are GraphGym's layers with FOG beside them;
:func:`register_with_fog` does the same for any other layer. All have ``gnn.dim_inner`` channels in
total. The config has a group ``fog``: ``channels`` is FOG's part of them (0: half), and ``eps``,
``act_first`` and ``edge_dim`` (0: none) are arguments of :class:`fognn.FOG`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.nn import Module
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import LayerConfig

from fognn import FOG


class WithFOGLayer(Module):
    """FOG, beside a layer of GraphGym if there is one, on a batch."""

    def __init__(self, host: Callable[..., Module] | None, layer: LayerConfig, **kwargs: Any):
        super().__init__()
        p = layer.dim_out if host is None else cfg.fog.channels or layer.dim_out // 2
        options = {"eps": float(cfg.fog.eps), "act_first": bool(cfg.fog.act_first)}
        self.fog = FOG(layer.dim_in, p, edge_dim=cfg.fog.edge_dim or None, **options)
        self.host: Module | None = None
        if host is not None:
            self.host = host(replace(layer, dim_out=layer.dim_out - p), **kwargs)

    def forward(self, batch: Any) -> Any:
        edge_attr = batch.edge_attr if self.fog.edge_dim is not None else None
        out = self.fog(batch.x, batch.edge_index, edge_attr=edge_attr)
        if self.host is not None:
            batch = self.host(batch)
            out = torch.cat([out, batch.x], dim=-1)
        batch.x = out
        return batch


def register_with_fog(name: str) -> None:
    """Registers the layer ``{name}_fog``: a layer of GraphGym's registry with FOG beside it."""
    host = register.layer_dict[name]
    register.register_layer(f"{name}_fog", lambda layer, **kw: WithFOGLayer(host, layer, **kw))


def set_fog_config(config: Any) -> None:
    config.fog = type(config)()
    config.fog.channels = 0
    config.fog.eps = 1e-5
    config.fog.act_first = False
    config.fog.edge_dim = 0


register.register_config("fog", set_fog_config)
set_fog_config(cfg)  # GraphGym has filled its config before this import
register.register_layer("fogconv", lambda layer, **kw: WithFOGLayer(None, layer, **kw))
for _name in ("gcnconv", "sageconv", "gatconv", "ginconv", "generalconv", "generaledgeconv"):
    register_with_fog(_name)

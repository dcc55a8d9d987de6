r"""FOG in GraphGym: an import of this module registers layers that a config can name in
``gnn.layer_type``.

``fogconv`` is FOG alone. ``gcnconv_fog``, ``sageconv_fog``, ``gatconv_fog``, ``ginconv_fog``,
``generalconv_fog`` and ``generaledgeconv_fog`` are GraphGym's layers with FOG beside them, and
``gatedgcnconv_fog`` is :class:`fognn.nn.GatedGCNConv` with FOG beside it, for node and edge
features of ``gnn.dim_inner`` channels. :func:`register_with_fog` does the same for any other layer.
All have ``gnn.dim_inner`` channels in total. The config has a group ``fog``:

- ``fog.channels``: FOG's part of the channels; 0 is half of them. (default: 0)
- ``fog.eps``: The :math:`\epsilon` of FOG's norms. (default: 1e-5)
- ``fog.act_first``: Whether FOG's activation is before its norm, as in the paper. (default: False)
- ``fog.edge_dim``: Size of the edge features in FOG; 0 is none. (default: 0)
"""

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import torch
from torch.nn import Module
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import LayerConfig

from fognn.nn import FOG, GatedGCNConv
from fognn.utils import checks

if find_spec("yacs") is None:  # without it GraphGym has no config, and only warns
    raise ImportError("fognn.graphgym needs yacs, as GraphGym does: pip install yacs")

__all__ = ["register_with_fog"]


def register_with_fog(name: str) -> None:
    r"""Registers the layer ``{name}_fog``: a layer of GraphGym with FOG beside it.

    Args:
        name (str): A name of GraphGym's registry of layers. The layer must map ``batch.x`` to
            the ``dim_out`` channels of its configuration.
    """
    checks.known("register_with_fog", "name", name, register.layer_dict)
    _register(f"{name}_fog", register.layer_dict[name])


def _register(name: str, host: Callable[..., Module] | None) -> None:
    def make(layer_config: LayerConfig, **kwargs: Any) -> Module:
        return _Layer(name, host, layer_config, **kwargs)

    register.register_layer(name, make)


class _Layer(Module):
    """FOG, beside a layer of GraphGym if there is one, on a batch."""

    def __init__(
        self,
        name: str,
        host: Callable[..., Module] | None,
        layer_config: LayerConfig,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        dim_out, p = layer_config.dim_out, cfg.fog.channels
        self.host: Module | None = None
        if host is None:
            p = dim_out
        else:
            p = p or dim_out // 2
            if not 1 <= p < dim_out:
                raise ValueError(f"{name}: fog.channels must lie in 1..{dim_out - 1}, got {p}")
            self.host = host(replace(layer_config, dim_out=dim_out - p), **kwargs)
        self.fog = FOG(
            layer_config.dim_in,
            p,
            edge_dim=cfg.fog.edge_dim or None,
            eps=float(cfg.fog.eps),
            act_first=bool(cfg.fog.act_first),
        )

    def forward(self, batch: Any) -> Any:
        edge_attr = batch.edge_attr if self.fog.edge_dim is not None else None
        out = self.fog(batch.x, batch.edge_index, edge_attr=edge_attr)
        if self.host is not None:
            batch = self.host(batch)
            out = torch.cat([out, batch.x], dim=-1)
        batch.x = out
        return batch


class _GatedGCN(Module):
    def __init__(self, layer_config: LayerConfig, **kwargs: Any) -> None:
        super().__init__()
        self.model = GatedGCNConv(layer_config.dim_in, layer_config.dim_out)

    def forward(self, batch: Any) -> Any:
        batch.x, batch.edge_attr = self.model(batch.x, batch.edge_index, batch.edge_attr)
        return batch


def _set_config(config: Any) -> None:
    config.fog = type(config)()
    config.fog.channels = 0
    config.fog.eps = 1e-5
    config.fog.act_first = False
    config.fog.edge_dim = 0


register.register_config("fog", _set_config)
_set_config(cfg)  # GraphGym has filled its config before this import
_register("fogconv", None)
_register("gatedgcnconv_fog", _GatedGCN)
for _name in ("gcnconv", "sageconv", "gatconv", "ginconv", "generalconv", "generaledgeconv"):
    register_with_fog(_name)

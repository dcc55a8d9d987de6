import math
from dataclasses import dataclass
from typing import Any

from torch_geometric.nn.resolver import activation_resolver

from fognn.nn import FOG, FOGControl
from fognn.nn.fog_controls import FOG_KINDS
from fognn.utils import checks


@dataclass(frozen=True)
class FOGSettings:
    r"""The settings of FOG in a network, see :func:`fognn.models.create_model`."""

    fog_channels: int | None = None
    h1: int | None = None
    h2: int | None = None
    fog_kind: str = "kron"
    fog_norm: str = "batch_norm"
    fog_act: str = "relu"
    fog_eps: float | None = None
    fog_act_first: bool = False

    def __post_init__(self) -> None:
        checks.one_of("create_model", "fog_kind", self.fog_kind, FOG_KINDS)
        checks.one_of("create_model", "fog_norm", self.fog_norm, ("batch_norm", "layer_norm"))
        eps, act = self.fog_eps, self.fog_act
        number = isinstance(eps, int | float) and not isinstance(eps, bool)
        if eps is not None and not (number and 0 < eps < math.inf):
            raise ValueError(f"create_model: fog_eps must be a positive number, got {eps!r}")
        if not isinstance(self.fog_act_first, bool):
            raise ValueError(
                f"create_model: fog_act_first must be a bool, got {self.fog_act_first!r}"
            )
        try:
            known = isinstance(act, str) and activation_resolver(act) is not None
        except (ValueError, TypeError):
            known = False
        if not known:
            raise ValueError(
                f"create_model: fog_act must be the name of an activation, such as 'gelu', got "
                f"{act!r}"
            )

    def channels_of(self, name: str, channels: int) -> int:
        r"""Returns FOG's part of the channels of a network."""
        p = self.fog_channels
        if name == "fog":
            if p not in (None, channels):
                raise ValueError(
                    f"create_model: fog_channels must be {channels}, like channels, for {name!r} "
                    f"alone, got {p}"
                )
            return channels
        p = channels // 2 if p is None else p
        if isinstance(p, bool) or not isinstance(p, int) or not 1 <= p < channels:
            raise ValueError(
                f"create_model: fog_channels must lie in 1..{channels - 1}, below channels, got "
                f"{p!r}"
            )
        return p

    def layer(self, channels: int, out_channels: int, edge_dim: int | None) -> FOG:
        r"""Returns a layer."""
        own: dict[str, Any] = {
            "norm": self.fog_norm,
            "act": self.fog_act,
            "eps": self.fog_eps,
            "act_first": self.fog_act_first,
            "edge_dim": edge_dim,
        }
        if self.fog_kind == "kron":
            return FOG(channels, out_channels, self.h1, self.h2, **own)
        return FOGControl(channels, out_channels, self.h1, self.h2, self.fog_kind, **own)

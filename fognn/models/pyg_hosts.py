r"""Layers of PyG as hosts: ``film``, ``gatv2`` and ``pna``."""

from collections.abc import Sequence

import torch
from torch.nn import Module
from torch_geometric.nn import FiLMConv, GATv2Conv, PNAConv

from fognn.models.own_host import register_host
from fognn.utils import checks

__all__ = ["film", "gatv2", "pna"]


@register_host("film")
def film(in_channels: int, out_channels: int) -> Module:
    r"""PyG's :class:`~torch_geometric.nn.conv.FiLMConv` with its defaults: a message
    :math:`\textrm{ReLU}(\gamma_v \odot \mathbf{W} \mathbf{x}_u + \beta_v)`, whose scale and shift
    are linear in :math:`\mathbf{x}_v`, and their mean over neighbours."""
    return FiLMConv(in_channels, out_channels)


@register_host("gatv2", act="elu")
def gatv2(in_channels: int, out_channels: int, heads: int = 8) -> Module:
    r"""PyG's :class:`~torch_geometric.nn.conv.GATv2Conv`, without self loops, as all hosts.

    Args:
        in_channels (int): Size of each input sample.
        out_channels (int): Size of each output sample.
        heads (int, optional): Number of attention heads, which are concatenated; it must divide
            :obj:`out_channels`. (default: :obj:`8`)
    """
    checks.positive_int("gatv2", "heads", heads)
    if out_channels % heads:
        raise ValueError(f"gatv2: heads must divide out_channels={out_channels}, got {heads}")
    return GATv2Conv(in_channels, out_channels // heads, heads, add_self_loops=False)


@register_host("pna")
def pna(in_channels: int, out_channels: int, degrees: Sequence[int] = (0, 1)) -> Module:
    r"""PyG's :class:`~torch_geometric.nn.conv.PNAConv` with the aggregators and scalers of its
    paper: mean, minimum, maximum and standard deviation, each at its own scale and multiplied and
    divided by the logarithm of the degree.

    Args:
        in_channels (int): Size of each input sample.
        out_channels (int): Size of each output sample.
        degrees (list of int, optional): The number of nodes of the training graphs with 0, 1, 2,
            ... in-edges. The mean of their logarithms is the unit of the logarithm of the degree.
            (default: :obj:`(0, 1)`, one neighbour)
    """
    right = isinstance(degrees, (list, tuple)) and all(
        type(count) is int and 0 <= count < 2**53 for count in degrees
    )
    if not right or not any(degrees[1:]):
        raise ValueError(
            "pna: degrees must be the number of nodes with 0, 1, 2, ... in-edges, and have a node "
            f"with an in-edge, got {degrees!r}"
        )
    aggregators, scalers = ["mean", "min", "max", "std"], ["identity", "amplification"]
    # Its values are read, also where modules are built without values.
    histogram = torch.tensor(degrees, device="cpu")
    return PNAConv(in_channels, out_channels, aggregators, [*scalers, "attenuation"], deg=histogram)

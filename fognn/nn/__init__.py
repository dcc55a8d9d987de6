r"""Layers with weights: FOG, its five hosts, the wrapper that joins them, and blocks."""

from fognn.nn.block import Block, FeedForward
from fognn.nn.few_shot import AdjacencyMLP, DenseFOG, FewShotLayer, ImageEncoder
from fognn.nn.fog import FOG, fog_widths
from fognn.nn.fog_controls import FOGControl
from fognn.nn.gat_conv import GATConv
from fognn.nn.gated_gcn_conv import GatedGCNConv
from fognn.nn.gcn_conv import GCNConv
from fognn.nn.gin_conv import GINConv
from fognn.nn.sage_conv import SAGEConv
from fognn.nn.with_fog import WithFOG

__all__ = [
    "FOG",
    "AdjacencyMLP",
    "Block",
    "DenseFOG",
    "FOGControl",
    "FeedForward",
    "FewShotLayer",
    "GATConv",
    "GCNConv",
    "GINConv",
    "GatedGCNConv",
    "ImageEncoder",
    "SAGEConv",
    "WithFOG",
    "fog_widths",
]

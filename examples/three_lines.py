"""FOG beside a layer of PyG: the three lines."""

import torch
from torch_geometric.nn import GATConv

from fognn import WithFOG

x, edge_index = torch.randn(100, 64), torch.randint(0, 100, (2, 500))

gat = GATConv(64, 8, heads=4)
conv = WithFOG(gat, 32)
out = conv(x, edge_index)

print(conv)
print(f"{tuple(x.shape)} -> {tuple(out.shape)}: 32 channels of FOG, 32 of GAT")

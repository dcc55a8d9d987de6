import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import ModuleList
from torch_geometric.nn import DenseGraphConv

from fognn.nn import AdjacencyMLP, FewShotLayer, ImageEncoder
from fognn.nn.graph_layer import Resettable
from fognn.nn.norms import Repeats
from fognn.utils import checks


class FewShotGNN(Resettable):
    """From node features to the logits of node 0, by layers whose inputs have the ``widths``."""

    def __init__(
        self, widths: list[int], out_channels: int, kind: str, hidden: int, neighbours: str
    ) -> None:
        super().__init__()
        self.layers = ModuleList(FewShotLayer(w, hidden, kind, neighbours) for w in widths[:-1])
        self.adjacency = AdjacencyMLP(widths[-1])
        self.last = DenseGraphConv(widths[-1], out_channels)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.last(x, self.adjacency(x))[:, 0]


class FewShotNet(Resettable):
    r"""Classifies a query image by a few labelled images (the support set). A convolutional network
    computes the features of each image, a node, and a graph network classifies the query.

    Args:
        kind (str): :obj:`"gnn"`, :obj:`"fog"` or :obj:`"gnn+fog"`.
        n_way (int, optional): Number of classes in a task. (default: :obj:`5`)
        embedding (int, optional): Channels of an image's features. (default: :obj:`128`)
        image_size (int, optional): Height and width of the images. (default: :obj:`84`)
        image_channels (int, optional): Number of colour channels. (default: :obj:`3`)
        hidden (int, optional): Channels that each layer adds. (default: :obj:`48`)
        layers (int, optional): Number of layers. All but the last are of the :obj:`kind`.
            (default: :obj:`3`)
        neighbours (str, optional): See :class:`fognn.nn.FewShotLayer`. (default: :obj:`"learnt"`)

    Shapes:
        - **inputs:**
          support images :math:`(B, S, C, H, W)`, their labels :math:`(B, S)` in
          :math:`0..n_{way}-1`, query images :math:`(B, C, H, W)` or, with several queries for each
          support set, :math:`(B, Q, C, H, W)`
        - **outputs:** logits :math:`(B, n_{way})` or :math:`(B, Q, n_{way})`

    Each query is a graph of its own, with the support set: queries do not see each other. In
    training, outputs and gradients are those of a batch in which the support set is repeated for
    each query, except for dropout, which draws one mask for an image and its repetitions.
    """

    def __init__(
        self,
        kind: str,
        n_way: int = 5,
        embedding: int = 128,
        image_size: int = 84,
        image_channels: int = 3,
        hidden: int = 48,
        layers: int = 3,
        neighbours: str = "learnt",
    ) -> None:
        super().__init__()
        checks.positive_int("FewShotNet", "layers", layers)
        self.n_way = checks.positive_int("FewShotNet", "n_way", n_way)
        self.cnn = ImageEncoder(embedding, image_size, image_channels)
        widths = [embedding + n_way + layer * hidden for layer in range(layers)]
        self.gnn = FewShotGNN(widths, n_way, kind, hidden, neighbours)

    def forward(self, support: Tensor, label: Tensor, query: Tensor) -> Tensor:
        several = query.dim() == 5
        if support.dim() != 5 or query.dim() not in (4, 5) or label.shape != support.shape[:2]:
            raise ValueError(
                "FewShotNet: support must have shape [batch, images, C, H, W], label "
                "[batch, images] and query [batch, C, H, W] or [batch, queries, C, H, W], got "
                f"{list(support.shape)}, {list(label.shape)} and {list(query.shape)}"
            )
        query = query if several else query.unsqueeze(1)
        batch, images = label.shape
        queries = query.size(1)
        # The support set passes the CNN once, and stands for one copy of it for each query.
        image = torch.cat([support.flatten(0, 1), query.flatten(0, 1)])
        repeats = Repeats((batch * images, batch * queries), (queries, 1))
        feature = self.cnn(image, repeats)
        code = F.one_hot(label.long(), self.n_way).to(feature.dtype)
        known = torch.cat([feature[: batch * images].view(batch, images, -1), code], dim=-1)
        known = known.unsqueeze(1).expand(-1, queries, -1, -1)
        asked = F.pad(feature[batch * images :], (0, self.n_way))  # the query has no label
        x = torch.cat([asked.view(batch, queries, 1, -1), known], dim=2)
        out = self.gnn(x.flatten(0, 1))
        return out.view(batch, queries, -1) if several else out

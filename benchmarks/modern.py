"""The training step of a modern network (edge features, feed-forward blocks, random-walk encodings,
10 layers, at most 105,000 parameters) against the same network on PyG's layers: GINEConv, and FOG
with a Kronecker product for each edge as a :class:`MessagePassing`.

    python benchmarks/modern.py --repeats 9

Both have the same weights and, before anything is measured, must give the same numbers and
gradients. Batches have PATTERN's or ZINC's numbers of nodes and edges, with random tokens on nodes
and edges.
"""

import copy
from typing import Any

import torch
import torch.nn.functional as F
from measure import medians, parser, report, save
from problems import molecule_batch, pattern_batch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric import EdgeIndex
from torch_geometric.nn import GINEConv, MessagePassing, global_add_pool

from fognn import create_model
from fognn.models import GraphNet, Task, count_parameters
from fognn.nn import FOG, GINConv, WithFOG

STEPS = 20
TASK = Task("graph", 1, node_tokens=28, edge_tokens=4, encodings=STEPS)
SETTINGS = {
    "layers": 10,
    "ffn": 2,
    "edge_features": True,
    "readout": "sum",
    "head": "mlp",
}
NETWORKS = {
    "gin": {"channels": 40, "head_channels": 26},
    "gin+fog": {"channels": 43, "head_channels": 20, "fog_act": "tanh", "fog_act_first": False},
}


class PyGFOG(MessagePassing):
    """FOG with edge features as a message for each edge."""

    def __init__(self, ours: FOG) -> None:
        super().__init__(aggr="sum")
        self.ours = ours

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        h = self.ours.norm_1(self.ours.lin_1(x)).tanh()
        small = self.ours.norm_2(self.ours.lin_2(h)).tanh()
        e = self.ours.lin_e(edge_attr)
        return self.ours.lin_vu(self.propagate(edge_index, h=h, small=small, e=e))

    def message(self, h_i: Tensor, small_j: Tensor, e: Tensor) -> Tensor:
        return (h_i.unsqueeze(2) * (small_j + e).unsqueeze(1)).flatten(1)


class PyGNet(Module):
    """The network on PyG's layers, its weights those of ours."""

    def __init__(self, ours: GraphNet) -> None:
        super().__init__()
        self.ours = ours
        self.hosts, self.fogs = ModuleList(), ModuleList()
        for block in ours.blocks:
            conv: Any = block.conv
            host: GINConv = conv.conv if isinstance(conv, WithFOG) else conv
            layers = (host.lin_V, host.norm, torch.nn.ReLU(), host.lin_U)
            weights = _weights(layers)
            gine = GINEConv(torch.nn.Sequential(*layers), train_eps=True)
            gine.nn.load_state_dict(weights)  # GINEConv has reset its layers
            gine.eps = host.eps
            self.hosts.append(gine)
            if isinstance(conv, WithFOG):
                self.fogs.append(PyGFOG(conv.fog))

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        batch: Tensor,
        size: int,
        rwse: Tensor,
    ) -> Tensor:
        ours = self.ours
        h = ours.encoder(x) + ours.walk_encoder(rwse)
        e = ours.edge_encoder(edge_attr)
        for number, (gine, block) in enumerate(zip(self.hosts, ours.blocks, strict=True)):
            q = gine(h, edge_index, e)
            if self.fogs:
                q = torch.cat([self.fogs[number](h, edge_index, e), q], dim=1)
            h = block.feed_forward(h + block.norm(q).relu())
        return ours.head.mlp(global_add_pool(h, batch, size))


def _weights(layers: tuple[Module, ...]) -> dict[str, Tensor]:
    return {
        f"{number}.{name}": value.clone()
        for number, layer in enumerate(layers)
        for name, value in layer.state_dict().items()
    }


def problem(edges: Tensor, nodes: int) -> tuple[tuple[Any, ...], tuple[Any, ...], Tensor]:
    """The arguments of our network (sorted edges), those of PyG's, and the targets."""
    count = int(edges.max()) + 1
    graphs = -(-count // nodes)
    count = graphs * nodes
    x, edge_attr = torch.randint(0, 28, (count,)), torch.randint(0, 4, (edges.size(1),))
    rest = (torch.arange(graphs).repeat_interleave(nodes), graphs, torch.rand(count, STEPS))
    order = edges[1].argsort(stable=True)
    ours = EdgeIndex(
        edges[:, order], sparse_size=(count, count), sort_order="col", is_undirected=True
    ).fill_cache_()
    theirs = (x, edges, edge_attr, *rest)
    return (x, ours, edge_attr[order], *rest), theirs, torch.randn(graphs, 1)


def check_alike(ours: Module, theirs: Module, problem_: tuple[Any, Any, Tensor]) -> None:
    """Raises unless both networks give the same numbers and gradients, in float64."""
    mine, other, y = problem_
    results = []
    for net, arguments in ((ours, mine), (theirs, other)):
        net = copy.deepcopy(net).double()
        arguments = (*arguments[:-1], arguments[-1].double())
        out = net(*arguments)
        F.l1_loss(out, y.double()).backward()
        inner = net if isinstance(net, GraphNet) else net.ours
        results.append((out, inner.encoder.embedding.weight.grad))
    torch.testing.assert_close(results[0], results[1], rtol=1e-6, atol=1e-9)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graphs", type=int, default=128, help="graphs in a batch")
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    batches = {"PATTERN": (pattern_batch, 117), "ZINC": (molecule_batch, 23)}
    rows = []
    for dataset, (make, nodes) in batches.items():
        torch.manual_seed(0)
        mine, other, y = problem(make(args.graphs), nodes)
        small = problem(make(2), nodes)
        for name, widths in NETWORKS.items():
            torch.manual_seed(0)
            ours = create_model(name, TASK, **SETTINGS, **widths)
            assert count_parameters(ours) <= 105_000
            theirs = PyGNet(copy.deepcopy(ours))
            check_alike(ours, theirs, small)

            def step(net: Module, arguments: tuple[Any, ...], y: Tensor = y) -> None:
                F.l1_loss(net(*arguments), y).backward()
                net.zero_grad()

            seconds = medians(
                {
                    "fognn": lambda net=ours, a=mine: step(net, a),
                    "PyG": lambda net=theirs, a=other: step(net, a),
                },
                args.repeats,
            )
            rows.append(
                {
                    "batch": dataset,
                    "network": name,
                    "parameters": count_parameters(ours),
                    "fognn ms": 1000 * seconds["fognn"],
                    "PyG ms": 1000 * seconds["PyG"],
                    "times faster": seconds["PyG"] / seconds["fognn"],
                }
            )
    title = "Step of a modern network"
    report(title, rows)
    if args.json:
        save(args.json, {title: rows})


if __name__ == "__main__":
    main()

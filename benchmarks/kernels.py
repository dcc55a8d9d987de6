"""The kernels that torch has for sums and maxima over edges.

Prints times relative to the one that fognn uses, on a batch like PATTERN's.

    python benchmarks/kernels.py
    python benchmarks/kernels.py --repeats 21 --json results/kernels.json
"""

from typing import Any

import torch
from layers import set_up
from measure import Action, medians, report, save
from torch import Tensor

from fognn.nn import FOG
from fognn.ops import Adjacency, adjacency, kernels, spmm


def relative(what: str, actions: dict[str, Action], repeats: int) -> dict[str, Any]:
    """Times relative to the first action, which is ours."""
    seconds = medians(actions, repeats)
    ours = next(iter(actions))
    row: dict[str, Any] = {"what": what, "ms, ours": seconds[ours] * 1e3}
    return row | {f"x {name}": seconds[name] / seconds[ours] for name in list(actions)[1:]}


def sums(ptr: Tensor, index: Tensor, plain: Tensor, repeats: int) -> list[dict[str, Any]]:
    nodes, table = ptr.size(0) - 1, []
    ones = torch.ones(index.size(0))
    size = (nodes, nodes)
    matrix = torch.sparse_csr_tensor(ptr, index, ones, size, check_invariants=False)
    for channels in (8, 64, 146):
        x = torch.randn(nodes, channels)

        def scatter(x: Tensor = x) -> Tensor:
            return torch.zeros_like(x).index_add_(0, plain[1], x[plain[0]])

        actions: dict[str, Action] = {
            "embedding_bag": lambda x=x: kernels.sum_rows(x, ptr, index, None),
            "torch.sparse.mm": lambda x=x: matrix @ x,
            "torch.sparse.mm with a reduction": lambda x=x: torch.sparse.mm(matrix, x, "sum"),
            "gather and index_add_": scatter,
        }
        table.append(relative(f"sum of {channels} channels", actions, repeats))
    return table


def maxima(ptr: Tensor, index: Tensor, repeats: int) -> list[dict[str, Any]]:
    nodes, table = ptr.size(0) - 1, []
    few = torch.randn(3, 89).relu()
    inputs = {
        "random": torch.randn(nodes, 89),
        "after ReLU": torch.randn(nodes, 89).relu(),
        "three kinds of node": few[torch.randint(0, 3, (nodes,))],
    }
    for name, x in inputs.items():
        actions: dict[str, Action] = {
            "loop": lambda x=x: kernels.max_rows(x, ptr, index),
            "torch.sparse.mm with positions": lambda x=x: max_of_torch(x, ptr, index),
            "gather and scatter_reduce": lambda x=x: kernels._max_plain(x, ptr, index),
        }
        table.append(relative(f"max of 89 channels, {name}", actions, repeats))
    return table


def max_of_torch(x: Tensor, ptr: Tensor, index: Tensor) -> Tensor:
    """torch.sparse's maximum, which records positions only for a gradient."""
    values = torch.ones(index.size(0))
    matrix = torch.sparse_csr_tensor(ptr, index, values, (ptr.size(0) - 1, x.size(0)))
    return torch.sparse.mm(matrix, x.detach().requires_grad_(), "amax")


class RowsFOG(FOG):
    """FOG with nodes in the first dimension throughout, and the whole Kronecker product held."""

    def forward(self, x: Tensor, adj: Adjacency) -> Tensor:
        h = self.norm_1(self.lin_1(x).relu())
        h_sum = spmm(adj, self.norm_2(self.lin_2(h).relu()))
        return self.lin_vu((h.unsqueeze(2) * h_sum.unsqueeze(1)).flatten(1))


def layouts(adj: Adjacency, repeats: int) -> list[dict[str, Any]]:
    table = []
    for widths in ((144, 144, 16, 8), (160, 80, 12, 6), (98, 49, 9, 4)):
        x = torch.randn(adj.num_targets, widths[0], requires_grad=True)
        ours, rows = FOG(*widths, act_first=True), RowsFOG(*widths)
        actions: dict[str, Action] = {
            "nodes last": lambda m=ours, x=x: m(x, adj).sum().backward(),
            "nodes first": lambda m=rows, x=x: m(x, adj).sum().backward(),
        }
        table.append(relative(f"{ours}, forwards and backwards", actions, repeats))
    return table


def main() -> None:
    args, plain, edges = set_up(__doc__)
    (ptr, index), _ = edges.get_csc()
    tables = {
        "Sums": sums(ptr, index, plain, args.repeats),
        "Maxima, and where they came from": maxima(ptr, index, args.repeats),
        "FOG's layout": layouts(adjacency(edges, edges.num_rows), args.repeats),
    }
    for title, table in tables.items():
        report(title, table)
    if args.json:
        save(args.json, tables)


if __name__ == "__main__":
    main()

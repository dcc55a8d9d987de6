"""The time of a step of host+FOG with parts of FOG left out.

Prints each step's time relative to the host's, on a batch like PATTERN's (medians, forwards and
backwards). Parts that are left out are replaced by zeros or by repeating other features, so only
the time of such a network has a meaning.

    python benchmarks/parts.py
    python benchmarks/parts.py --json results/parts.json
"""

from typing import Any

import torch
from layers import set_up
from measure import Action, medians, report, save
from problems import Problem, networks, pattern_problem
from torch import Tensor
from torch.nn import Module

from fognn.nn import FOG
from fognn.ops import adjacency, spmm

PARTS = ["the host's half alone", "first Linear", "norms and second Linear", "sum", "all"]


def partial_forward(fog: FOG, x: Tensor, edge_index: Any, part: str) -> Tensor:
    """FOG up to a part; the rest of the output is filled by repeating what there is."""
    number = PARTS.index(part)
    nodes, width = x.size(0), fog.out_channels
    if number == 0:
        return x.new_zeros(nodes, width)
    if number == 1:
        h = torch.addmm(fog.lin_1.bias.unsqueeze(1), fog.lin_1.weight, x.t()).t()
    else:
        shrunk = fog.shrink(x)
        again = fog.shrink_again(shrunk).t()
        if number == 3:
            again = spmm(adjacency(edge_index, nodes), again)
        h = torch.cat([shrunk.t(), again], dim=1)
    return h.repeat(1, -(-width // h.size(1)))[:, :width]


def step(network: Module, problem: Problem, part: str) -> Action:
    def action() -> None:
        for module in network.modules():
            if isinstance(module, FOG):
                module.__dict__.pop("forward", None)
                if part != "all":
                    module.__dict__["forward"] = lambda x, adj, fog=module, **_: partial_forward(
                        fog, x, adj, part
                    )
        network.zero_grad()
        problem.loss(network(*problem.arguments)).backward()

    return action


def main() -> None:
    args, _, edges = set_up(__doc__)
    problem = pattern_problem(edges)
    table = []
    for host in ("GCN", "GIN", "GraphSAGE"):
        nets = networks("PATTERN")
        both = nets[f"{host}+FOG"]
        actions = {"host": step(nets[host], problem, "all")}
        actions |= {part: step(both, problem, part) for part in PARTS}
        seconds = medians(actions, args.repeats)
        row: dict[str, Any] = {"network": f"{host}+FOG", "ms, host": seconds["host"] * 1e3}
        for part in PARTS:
            sign = "" if part in (PARTS[0], "all") else "+ "
            row[sign + part] = seconds[part] / seconds["host"]
        table.append(row)
    tables = {"Time relative to the host's network, FOG up to a part": table}
    for title, rows_ in tables.items():
        report(title, rows_)
    if args.json:
        save(args.json, tables)


if __name__ == "__main__":
    main()

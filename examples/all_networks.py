"""Builds all 72 networks of the paper and trains each for a few real steps on a small generated
batch: forwards, loss, backwards, Adam with the row's own rate and decay.

    python examples/all_networks.py
    python examples/all_networks.py --table 3

The last column is the median time of a step, relative to the network's host (the same network
without FOG; for FOG alone, GCN) on the same batch, the two taking turns.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module

from fognn.experiments import Row, build, rows
from fognn.models import TASKS, count_parameters

Step = Callable[[], Tensor]

# Graphs in the batch, nodes in a graph, neighbours of a node: a small part of a real batch.
SIZES = {"pattern": (16, 117, 50), "cluster": (16, 117, 36), "zinc": (128, 23, 2),
         "tsp": (4, 275, 25), "imdb-multi": (128, 13, 10)}  # fmt: skip


def random_graphs(graphs: int, nodes: int, degree: int) -> tuple[Tensor, Tensor]:
    """Edges of random graphs, each node with `degree` sources in its own graph, and the graph of
    each node."""
    target = torch.arange(graphs * nodes).repeat_interleave(degree)
    source = torch.randint(0, nodes, target.shape) + target // nodes * nodes
    return torch.stack([source, target]), torch.arange(graphs).repeat_interleave(nodes)


def graph_step(row: Row, network: Module) -> Step:
    """One training step on graphs with about the dataset's numbers of nodes and neighbours."""
    name = "zinc" if row.dataset.startswith("ZINC") else row.dataset.lower()
    task = TASKS[name]
    graphs, nodes, degree = SIZES[name]
    edge_index, batch = random_graphs(graphs, nodes, degree)
    count = batch.size(0)
    if task.node_tokens is not None:
        x = torch.randint(0, task.node_tokens, (count,))
    else:
        x = torch.rand(count, task.node_channels or 1)
    edge_attr = None
    if task.edge_tokens is not None:
        edge_attr = torch.randint(0, task.edge_tokens, (edge_index.size(1),))
    elif task.edge_channels is not None:
        edge_attr = torch.rand(edge_index.size(1), task.edge_channels)
    answers = {"node": count, "edge": edge_index.size(1), "graph": graphs}[task.level]

    def loss() -> Tensor:
        out = network(x, edge_index, edge_attr, batch, graphs)
        if row.metric == "mae":
            return F.l1_loss(out.squeeze(1), torch.zeros(answers))
        return F.cross_entropy(out, torch.arange(answers) % task.out_channels)

    return loss


def few_shot_step(row: Row, network: Module) -> Step:
    shots = 5 if "5shot" in row.dataset else 1
    support, label = torch.randn(1, 5 * shots, 3, 84, 84), torch.arange(5).repeat(1, shots)
    query, answer = torch.randn(1, 3, 84, 84), torch.tensor([0])
    return lambda: F.cross_entropy(network(support, label, query), answer)


def training(row: Row, network: Module) -> Step:
    torch.manual_seed(0)
    optimiser = torch.optim.Adam(network.parameters(), row.lr, weight_decay=row.weight_decay)
    loss = few_shot_step(row, network) if row.few_shot else graph_step(row, network)

    def step() -> Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        optimiser.step()
        return value.detach()

    return step


def host_of(row: Row) -> Row | None:
    """The same network without FOG, from the same table or from the dataset's main one."""
    name = "GCN" if row.model == "FOG" else row.model.removesuffix("+FOG")
    if row.few_shot and row.model == "FOG":
        name = "GNN"
    found = [r for r in rows() if r.dataset == row.dataset and r.model == name]
    return found[0] if found and "FOG" in row.model else None


def relative_time(step: Step, host: Step, repeats: int) -> float:
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for action, times in zip((step, host), seconds, strict=True):
            start = time.perf_counter()
            action()
            times.append(time.perf_counter() - start)
    return statistics.median(seconds[0]) / statistics.median(seconds[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", type=int, help="only this table of the paper, 1 to 7")
    parser.add_argument("--repeats", type=int, default=5, help="timed steps of each network")
    args = parser.parse_args()

    header = f"{'model':<16}{'data':<28}{'parameters':>11}{'printed':>11}{'loss':>14}{'time':>7}"
    print(f"{header}\n{'-' * len(header)}")
    wrong = 0
    for row in rows(table=args.table):
        network = build(row)
        counted = count_parameters(network.gnn if row.few_shot else network)
        step = training(row, network)
        losses = [float(step()) for _ in range(3)]
        host = host_of(row)
        ratio = ""
        if host is not None:
            # The paper's GCN has another norm than its GCN+FOG; here they differ in FOG alone.
            alike = {"norm": row.norm} if row.norm and host.norm else {}
            host_step = training(host, build(host, **alike))
            host_step()
            ratio = f"{relative_time(step, host_step, args.repeats):.2f}"
        wrong += counted != row.params
        print(
            f"{row.model:<16}{row.dataset:<28}{counted:>11,}{row.params:>11,}"
            f"{losses[0]:>7.3f}{losses[-1]:>7.3f}{ratio:>7}",
            flush=True,
        )
    print(f"\n{len(rows(table=args.table))} networks, {wrong} with another number of parameters")
    print("loss: of the first and of the third step; time: of a step, relative to the host's")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()

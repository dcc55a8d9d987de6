"""The step of the few-shot network against the straightforward form of the same step.

Straightforward: each query is a task with its own copy of the support set, all images of which pass
the CNN, and the adjacency network runs on all ordered pairs of nodes. fognn: the support set of an
episode passes the CNN once for all its queries, and the adjacency network runs on each pair once.
"shared support" has only the first of the two.

Prints ratios from one run: medians of interleaved repeats of a whole step (forward, backward, Adam)
of GNN+FOG in single precision, on random images. Then the largest differences of the logits and of
the loss in training mode, without dropout: in double precision, in single precision, and, for
comparison, the rounding error of the straightforward form itself (single against double).

    python benchmarks/few_shot.py
    python benchmarks/few_shot.py --repeats 9 --threads 1 --json results/few_shot.json
"""

from copy import deepcopy
from typing import NamedTuple

import torch
import torch.nn.functional as F
from measure import Action, medians, parser, report, save
from torch import Tensor
from torch.nn import Dropout2d
from torch.optim import Adam

from fognn.data import Tasks
from fognn.models import FewShotNet
from fognn.nn import AdjacencyMLP


class Case(NamedTuple):
    name: str
    size: int
    colours: int
    shots: int
    episodes: int


QUERIES, WAYS = 5, 5
CASES = [
    Case("Omniglot, 1 shot", 28, 1, 1, 20),
    Case("CIFAR-FS, 1 shot", 32, 3, 1, 20),
    Case("CIFAR-FS, 5 shots", 32, 3, 5, 8),
    Case("miniImageNet, 5 shots", 84, 3, 5, 2),
]


def adjacency(module: AdjacencyMLP, x: Tensor) -> Tensor:
    """The learnt adjacency from all ordered pairs."""
    nodes, channels = x.shape[1:]
    difference = (x.unsqueeze(2) - x.unsqueeze(1)).abs()
    score = module.mlp(difference.view(-1, channels)).view(-1, nodes, nodes)
    itself = torch.eye(nodes, dtype=torch.bool)
    return score.masked_fill(itself, float("-inf")).softmax(dim=-1)


def graph_network(net: FewShotNet, support: Tensor, label: Tensor, query: Tensor) -> Tensor:
    """The logits from the features of all tasks."""
    code = F.one_hot(label, net.n_way).to(support.dtype)
    known = torch.cat([support, code], dim=-1)
    x = torch.cat([F.pad(query, (0, net.n_way)).unsqueeze(1), known], dim=1)
    for layer in net.gnn.layers:
        a = adjacency(layer.adjacency, x)
        out = torch.cat([layer.fog(x, a), layer.conv(x, a)], dim=-1)
        normed = layer.norm(out.flatten(0, 1)).view_as(out)
        x = torch.cat([x, F.leaky_relu(normed)], dim=-1)
    return net.gnn.last(x, adjacency(net.gnn.adjacency, x))[:, 0]


def straightforward(net: FewShotNet, tasks: Tasks) -> Tensor:
    """The logits, with a copy of the support set for each query."""
    support = tasks.support.repeat_interleave(QUERIES, 0)
    label = tasks.support_labels.repeat_interleave(QUERIES, 0)
    query = tasks.query.flatten(0, 1)
    image = torch.cat([query.unsqueeze(1), support], dim=1)
    encoder = net.cnn
    feature = encoder.norm(encoder.lin(encoder.conv(image.flatten(0, 1)).flatten(1)))
    feature = feature.view(*image.shape[:2], -1)
    return graph_network(net, feature[:, 1:], label, feature[:, 0])


def shared_support(net: FewShotNet, tasks: Tasks) -> Tensor:
    """The logits, with all ordered pairs, but each image through the CNN once."""
    episodes, images = tasks.support_labels.shape
    image = torch.cat([tasks.support.flatten(0, 1), tasks.query.flatten(0, 1)])
    feature = net.cnn(image)
    support = feature[: episodes * images].view(episodes, images, -1)
    return graph_network(
        net,
        support.repeat_interleave(QUERIES, 0),
        tasks.support_labels.repeat_interleave(QUERIES, 0),
        feature[episodes * images :],
    )


def fognns(net: FewShotNet, tasks: Tasks) -> Tensor:
    """The logits by the network itself."""
    return net(tasks.support, tasks.support_labels, tasks.query).flatten(0, 1)


def new_network(case: Case) -> FewShotNet:
    torch.manual_seed(0)
    net = FewShotNet("gnn+fog", WAYS, image_size=case.size, image_channels=case.colours)
    for module in net.modules():
        if isinstance(module, Dropout2d):
            module.p = 0.0
    return net.train()


def draw(case: Case) -> Tasks:
    generator = torch.Generator().manual_seed(0)
    shape = (case.colours, case.size, case.size)
    label = torch.arange(WAYS).repeat_interleave(case.shots).repeat(case.episodes, 1)
    return Tasks(
        torch.rand(case.episodes, WAYS * case.shots, *shape, generator=generator),
        label,
        torch.rand(case.episodes, QUERIES, *shape, generator=generator),
        torch.randint(WAYS, (case.episodes, QUERIES), generator=generator),
    )


def step(form, case: Case, contiguous: bool = False) -> Action:
    net, tasks = new_network(case), draw(case)
    if contiguous:  # the layout of torch's own layers
        net = net.to(memory_format=torch.contiguous_format)
    optimizer = Adam(net.parameters(), lr=1e-4, fused=True)

    def action() -> None:
        optimizer.zero_grad()
        F.cross_entropy(form(net, tasks), tasks.query_labels.flatten()).backward()
        optimizer.step()

    return action


def differences(case: Case) -> dict[str, float]:
    net, tasks = new_network(case), draw(case)
    target = tasks.query_labels.flatten()
    double = Tasks(
        tasks.support.double(), tasks.support_labels, tasks.query.double(), tasks.query_labels
    )
    with torch.no_grad():
        exact = straightforward(deepcopy(net).double(), double)
        ours = fognns(deepcopy(net).double(), double)
        plain_32 = straightforward(deepcopy(net), tasks)
        ours_32 = fognns(deepcopy(net), tasks)

    def loss(logits: Tensor) -> Tensor:
        return F.cross_entropy(logits, target)

    def largest(one: Tensor, other: Tensor) -> float:
        return float((one - other).abs().max())

    return {
        "logits, 64 bit": largest(ours, exact),
        "logits, 32 bit": largest(ours_32, plain_32),
        "loss, 32 bit": largest(loss(ours_32), loss(plain_32)),
        "rounding of fognn": largest(ours_32, exact),
        "rounding of straightforward": largest(plain_32, exact),
    }


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--cases", type=int, default=len(CASES), help="only the first cases")
    options.add_argument("--episodes", type=int, help="episodes in a batch")
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    times, numbers = [], []
    for case in CASES[: options.cases]:
        if options.episodes:
            case = case._replace(episodes=options.episodes)
        seconds = medians(
            {
                "straightforward": step(straightforward, case, contiguous=True),
                "shared support": step(shared_support, case),
                "fognn": step(fognns, case),
            },
            options.repeats,
        )
        name = f"{case.name}, {case.episodes} episodes of {QUERIES} queries"
        ratios = {
            f"{key}, times faster": seconds["straightforward"] / seconds[key]
            for key in ("shared support", "fognn")
        }
        milliseconds = {f"{key} ms": 1e3 * value for key, value in seconds.items()}
        times.append({"case": name, **milliseconds, **ratios})
        numbers.append({"case": name, **differences(case)})
    tables = {"A training step of GNN+FOG": times, "Largest differences": numbers}
    for title, table in tables.items():
        report(title, table)
    if options.json:
        save(options.json, tables)


if __name__ == "__main__":
    main()

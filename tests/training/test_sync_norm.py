"""Ranks are real processes: this file, run as a program. One start does all that a number of ranks
is asked for, case by case, and the tests then look at what came out."""

import copy
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch_geometric.nn as pyg_nn
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._dynamo.utils import counters
from torch.nn import BatchNorm1d, BatchNorm2d, Linear, Module, ReLU, Sequential
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.data import Data

from fognn.data import PackedLoader
from fognn.models import create_model
from fognn.training.sync_norm import synchronise

SECONDS = 60
STEPS = 2
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
MODELS = ["gcn+fog", "gatedgcn-e+fog", "gin+fog"]


# What is computed: the same functions by one process with the whole batch and by ranks.


@dataclass(frozen=True)
class Case:
    """One norm. ``counts`` are the nodes, or images, of each rank."""

    counts: tuple[int, ...]
    layout: str = "rows"
    channels: int = 7
    dtype: torch.dtype = torch.float64
    pyg: bool = False
    affine: bool = True
    tracked: bool = True
    momentum: float | None = 0.1
    frozen: str = ""  # x, or weight: what needs no gradient
    shift: float = 0.0

    def norm(self) -> Module:
        kind: type[Module] = BatchNorm2d if self.layout in ("images", "last") else BatchNorm1d
        options = {"momentum": self.momentum, "affine": self.affine}
        options["track_running_stats"] = self.tracked
        if self.pyg:
            kind, options["allow_single_element"] = pyg_nn.BatchNorm, True
        norm = kind(self.channels, **options).to(self.dtype)
        torch.manual_seed(0)
        for parameter in norm.parameters():
            torch.nn.init.normal_(parameter)
        for name, buffer in norm.named_buffers():
            if name.endswith(("mean", "var")):
                torch.nn.init.uniform_(buffer, 0.5, 1.5)
        if self.frozen == "weight":
            next(norm.parameters()).requires_grad_(False)
        return norm

    def batch(self, step: int, rank: int | None = None) -> tuple[Tensor, Tensor]:
        """The input and the gradient of the loss by the output: of a rank, or of all."""
        torch.manual_seed(step)
        extra = {"images": (3, 2), "last": (3, 2), "sequences": (4,)}
        shape = (sum(self.counts), self.channels, *extra.get(self.layout, ()))
        # Ranks differ in mean and spread, or their own statistics would nearly do.
        rows = torch.arange(sum(self.counts)).view(-1, *[1] * (len(shape) - 1))
        x = torch.randn(shape, dtype=torch.float64) * (1 + rows / 5) + rows / 3 + self.shift
        both = [part.to(self.dtype) for part in (x, torch.randn(shape, dtype=torch.float64))]
        if rank is not None:
            both = [part.split(self.counts)[rank] for part in both]
        return self.laid_out(both[0]).requires_grad_(self.frozen != "x"), self.laid_out(both[1])

    def laid_out(self, part: Tensor) -> Tensor:
        if self.layout == "columns":  # as FOG: [1, C, N]
            return part.t().contiguous().unsqueeze(0)
        if self.layout == "transposed":  # [N, C], a walk along nodes
            return part.t().contiguous().t()
        if self.layout == "last":
            return part.contiguous(memory_format=torch.channels_last)
        if self.layout == "spread":  # every second row of something larger
            return part.repeat_interleave(2, dim=0)[::2]
        return part.contiguous()

    def run(self, norm: Module, rank: int | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for step in range(STEPS):
            x, grad = self.batch(step, rank)
            y = norm(x)
            found[f"output {step}"] = y.detach().clone()
            if y.requires_grad:
                # In place, as the activations after every norm of ours.
                y.mul_(2).backward(grad)
            found[f"grad_x {step}"] = x.grad
        for name, parameter in norm.named_parameters():
            found[f"grad {name}"] = parameter.grad
        return found | {f"buffer {name}": buffer for name, buffer in norm.named_buffers()}


def cases(ranks: int) -> dict[str, Case]:
    named = {
        "equal": Case((6,) * ranks),
        "unequal": Case((3, 14, 5)[:ranks]),
        "one channel": Case((6,) * ranks, channels=1),
        "one on rank 0": Case((1, 9, 4)[:ranks]),
        "none on rank 0": Case((0, 11, 3)[:ranks]),
        "none on the last rank": Case((11, 2, 0)[-ranks:]),
        "all on rank 0": Case((8, *[0] * (ranks - 1))),
        "one each": Case((1,) * ranks),
        "pyg": Case((4, 7, 3)[:ranks], pyg=True),
        "pyg, one on rank 0": Case((1, 9, 4)[:ranks], pyg=True),
        "pyg, none on rank 0": Case((0, 9, 4)[:ranks], pyg=True),
        "pyg, one each": Case((1,) * ranks, pyg=True),
        "pyg, one in all": Case((0, 1, 0)[:ranks], pyg=True),
        "pyg, none in all": Case((0,) * ranks, pyg=True),
        "none in all": Case((0,) * ranks),
        "no affine": Case((5, 3, 4)[:ranks], affine=False),
        "no running statistics": Case((5, 3, 4)[:ranks], tracked=False),
        "cumulative momentum": Case((5, 3, 4)[:ranks], momentum=None),
        "frozen input": Case((5, 3, 4)[:ranks], frozen="x"),
        "frozen weight": Case((5, 3, 4)[:ranks], frozen="weight"),
        "float32": Case((50, 70, 60)[:ranks], dtype=torch.float32),
        "float32, columns": Case((50, 70, 60)[:ranks], "columns", dtype=torch.float32),
    }
    for layout in ("columns", "transposed", "spread", "sequences", "images", "last"):
        named[layout] = Case((4, 6, 5)[:ranks], layout)
    for layout in ("columns", "images"):
        named[f"{layout}, none on rank 0"] = Case((0, 6, 5)[:ranks], layout)
    draw = random.Random(ranks)
    for number in range(25):
        counts = [draw.randint(0, 4) for _ in range(ranks)]
        counts[draw.randrange(ranks)] += 2
        layout = draw.choice(["rows", "columns", "images"])
        named[f"drawn {number}"] = Case(tuple(counts), layout, draw.randint(1, 9))
    return named


def molecules(count: int, seed: int) -> list[Data]:
    """Random graphs with tokens as in ZINC; the last is a single atom without a bond."""
    torch.manual_seed(seed)
    graphs = []
    for number in range(count):
        nodes = 1 if number == count - 1 else int(torch.randint(2, 12, ()))
        pairs = torch.combinations(torch.arange(nodes))
        bonds = pairs[torch.rand(len(pairs)) < 3 / nodes].t()
        graphs.append(
            Data(
                x=torch.randint(28, (nodes,)),
                edge_index=torch.cat([bonds, bonds.flip(0)], dim=1),
                edge_attr=torch.randint(1, 4, (bonds.size(1),)).repeat(2),
                y=torch.randn(1, dtype=torch.float64),
            )
        )
    return graphs


def fit(model: Module, ranks: int, rank: int | None = None) -> list[dict[str, Tensor]]:
    """The gradients of two batches: a usual one, and one of a graph a rank, where the last rank has
    one node and no edge."""
    shared = {"rank": rank, "world_size": ranks} if rank is not None else {}
    share = 1 if rank is not None else ranks
    found = []
    for graphs in (molecules(6 * ranks, seed=1), molecules(ranks, seed=2)):
        batch_size = len(graphs) // ranks * share
        (batch,) = PackedLoader(graphs, batch_size, **shared)
        model.zero_grad()
        answer = model(batch.x, batch.edge_index, batch.edge_attr, batch.batch, batch.num_graphs)
        (answer.squeeze(1) - batch.y).abs().mean().backward()
        # The last norm of GatedGCN's edges gets no gradient: its output is not used.
        grads = {name: value.grad for name, value in model.named_parameters()}
        found.append({name: grad.clone() for name, grad in grads.items() if grad is not None})
    return found


def network(name: str) -> Module:
    torch.manual_seed(0)
    return create_model(name, "zinc", channels=32).double()


class Small(Module):
    # A bias before a norm has a gradient of zero: there is nothing to compare but rounding.
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.before = Linear(5, 7, bias=False)
        self.norm = BatchNorm1d(7)
        self.after = Linear(7, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.norm(self.before(x)).relu_())


def mixed(model: Module, x: Tensor) -> list[Tensor]:
    """Under autocast the norm gets bfloat16 and has weights of float32."""
    with torch.autocast("cpu", torch.bfloat16):
        y = model(x)
    y.float().square().sum().backward()
    grads = [parameter.grad for parameter in model.parameters()]
    return [y.detach(), model.norm.running_mean, model.norm.running_var, *grads]


def small_batch(rank: int | None, ranks: int) -> Tensor:
    torch.manual_seed(1)
    x = torch.randn(12 * ranks, 5) + 2
    return x if rank is None else x.chunk(ranks)[rank]


# What a rank does.


class Calls:
    """Counts the calls of the process group, by standing in its way."""

    def __init__(self) -> None:
        self.made: list[str] = []
        for name in ("all_gather", "all_reduce"):
            setattr(dist, name, self.counted(name, getattr(dist, name)))

    def counted(self, name: str, call: Any) -> Any:
        def counting(*args: Any, **kwargs: Any) -> Any:
            self.made.append(name)
            return call(*args, **kwargs)

        return counting


def refusal(norm: Module, x: Tensor) -> str:
    try:
        synchronise(norm)(x)
    except ValueError as error:
        return str(error)
    return "nothing was refused"


def one_rank(rank: int, ranks: int) -> dict[str, Any]:
    calls, found = Calls(), {}
    for name, case in cases(ranks).items():
        print(name, flush=True)
        calls.made.clear()
        found[name] = case.run(synchronise(case.norm()), rank)
        found[name]["calls"] = list(calls.made)
    print("evaluation", flush=True)
    case = Case((5,) * ranks)
    calls.made.clear()
    found["evaluation"] = case.run(synchronise(case.norm()).eval(), rank)
    found["evaluation"]["calls"] = list(calls.made)
    print("a large mean", flush=True)
    case = Case((50,) * ranks, momentum=1.0, shift=1e8)
    found["a large mean"] = case.run(synchronise(case.norm()), rank)
    print("refusals", flush=True)
    found["one value"] = refusal(BatchNorm1d(3), torch.randn(int(rank == 0), 3))
    found["channels"] = refusal(BatchNorm1d(3), torch.randn(4, 2))
    found["dimensions"] = refusal(BatchNorm2d(3), torch.randn(4, 3))
    print("autocast", flush=True)
    found["autocast"] = mixed(synchronise(Small()), small_batch(rank, ranks))
    print("compiled", flush=True)
    net = synchronise(Small())
    answer = torch.compile(net, backend="aot_eager")(small_batch(rank, ranks))
    answer.square().sum().backward()
    found["compiled"] = [answer.detach(), *(p.grad for p in net.parameters())]
    found["graphs"] = counters["stats"]["unique_graphs"]
    for name in MODELS:
        print(name, flush=True)
        model = DistributedDataParallel(synchronise(network(name)), find_unused_parameters=True)
        found[name] = {"grads": fit(model, ranks, rank), "state": model.module.state_dict()}
    return found


def main(rank: int, ranks: int, folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=(folder / "meeting").as_uri(),
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=SECONDS),
    )
    torch.save(one_rank(rank, ranks), folder / f"{rank}.pt")
    dist.destroy_process_group()


def start(ranks: int, folder: Path) -> list[dict[str, Any]]:
    """Runs the ranks. If one waits for ever, or fails, says in which case each of them was."""
    logs = [folder / f"{rank}.txt" for rank in range(ranks)]
    started = []
    for rank, log in enumerate(logs):
        command = [sys.executable, __file__, str(rank), str(ranks), str(folder)]
        with log.open("w") as out:
            started.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT))
    deadline = time.monotonic() + SECONDS
    try:
        codes = [process.wait(max(0.0, deadline - time.monotonic())) for process in started]
    except subprocess.TimeoutExpired:
        codes = ["late"]
    finally:
        for process in started:
            process.kill()
            process.wait()
    if codes != [0] * ranks:
        said = "\n".join(
            f"rank {rank}: ...{log.read_text()[-2000:]}" for rank, log in enumerate(logs)
        )
        pytest.fail(f"{ranks} ranks ended with {codes}\n{said}")
    return [torch.load(folder / f"{rank}.pt") for rank in range(ranks)]


# Three processes import for as long as the rest of this file takes.
@pytest.fixture(
    scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)], ids=["2 ranks", "3 ranks"]
)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return start(request.param, tmp_path_factory.mktemp("ranks"))


# The tests.


def close(actual: Tensor, expected: Tensor, tolerance: float, what: str) -> None:
    torch.testing.assert_close(
        actual, expected, rtol=tolerance, atol=tolerance, msg=lambda text: f"{what}: {text}"
    )


@pytest.mark.parametrize("name", cases(2))
def test_ranks_compute_what_torch_computes_with_the_whole_batch(found: Any, name: str) -> None:
    case = cases(len(found))[name]
    expected = case.run(case.norm())
    mine = [ranks[name] for ranks in found]
    tolerance = TOLERANCE[case.dtype]
    along = 2 if case.layout.endswith("columns") else 0
    for key, value in expected.items():
        what = f"{key} of {case}"
        parts = [found_here[key] for found_here in mine]
        if value is None:
            assert parts == [None] * len(mine), what
        elif key.startswith(("output", "grad_x")):
            assert [part.size(along) for part in parts] == list(case.counts), what
            close(torch.cat(parts, dim=along), value, tolerance, what)
        elif key.startswith("grad"):
            close(torch.stack(parts).sum(dim=0), value, tolerance * sum(case.counts), what)
        else:
            close(parts[0], value, tolerance, what)
            assert all(part.equal(parts[0]) for part in parts), f"ranks differ: {what}"


@pytest.mark.parametrize("name", cases(2))
def test_every_rank_calls_once_forwards_and_once_backwards(found: Any, name: str) -> None:
    case = cases(len(found))[name]
    backwards = ["all_reduce"] if sum(case.counts) > 1 else []
    for ranks in found:
        assert ranks[name]["calls"] == ["all_gather", *backwards] * STEPS


def test_evaluation_is_torch_to_the_bit_without_collective_calls(found: Any) -> None:
    case = Case((5,) * len(found))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the ranks: the number of threads decides the last bits
    try:
        for rank, ranks in enumerate(found):
            calls = ranks["evaluation"].pop("calls")
            assert calls == []
            for key, value in case.run(case.norm().eval(), rank).items():
                assert value.equal(ranks["evaluation"][key]), key
    finally:
        torch.set_num_threads(threads)


def test_a_large_mean_leaves_the_variance_right(found: Any) -> None:
    # The sum of squares would lose every digit here: 1e8 squared has an ulp of 2.
    case = Case((50,) * len(found), momentum=1.0, shift=1e8)
    x, _ = case.batch(STEPS - 1)
    expected = (x - 1e8).detach().var(dim=0)
    for ranks in found:
        close(ranks["a large mean"]["buffer running_var"], expected, 1e-6, "variance")


def test_all_ranks_raise_together(found: Any) -> None:
    for ranks in found:
        message = ranks["one value"]
        assert message.startswith("SyncBatchNorm1d: input must have more than 1 value per channel")
        assert message.endswith(f"got 1 on all {len(found)} ranks together")
        assert ranks["channels"] == "SyncBatchNorm1d: input must have 3 channels, got 2"
        assert ranks["dimensions"] == "expected 4D input (got 2D input)"


def test_autocast(found: Any) -> None:
    expected = mixed(Small(), small_batch(None, len(found)))
    answers = torch.cat([ranks["autocast"][0] for ranks in found])
    assert answers.dtype == expected[0].dtype == torch.bfloat16
    close(answers, expected[0], 2e-2, "answers")
    for ranks in found:
        # Statistics of half precision would be off by 4e-3.
        close(ranks["autocast"][1], expected[1], 1e-6, "mean")
        close(ranks["autocast"][2], expected[2], 1e-6, "variance")
    for number, value in enumerate(expected[3:], start=3):
        total = torch.stack([ranks["autocast"][number] for ranks in found]).sum(dim=0)
        assert total.dtype == value.dtype
        assert (total - value).norm() < 1e-2 * value.norm(), f"gradient {number - 3}"


def test_a_compiled_model(found: Any) -> None:
    net = Small()
    answer = net(small_batch(None, len(found)))
    answer.square().sum().backward()
    assert [ranks["graphs"] for ranks in found] == [2] * len(found)  # before the norm and after it
    close(torch.cat([ranks["compiled"][0] for ranks in found]), answer, 1e-5, "answers")
    for number, (name, parameter) in enumerate(net.named_parameters(), start=1):
        total = torch.stack([ranks["compiled"][number] for ranks in found]).sum(dim=0)
        close(total, parameter.grad, 1e-4, name)


@pytest.mark.parametrize("name", MODELS)
def test_ddp_gives_the_gradients_of_one_rank_with_the_whole_batch(found: Any, name: str) -> None:
    model = network(name)
    for batch, expected in enumerate(fit(model, len(found))):
        for ranks in found:
            grads = ranks[name]["grads"][batch]
            assert [key.removeprefix("module.") for key in grads] == list(expected)
            for key, value in expected.items():
                what = f"batch {batch}, {key}"
                assert value.isfinite().all(), what
                close(grads[f"module.{key}"], value, 1e-10, what)
    for ranks in found:
        assert list(ranks[name]["state"]) == list(model.state_dict())
        for key, value in model.state_dict().items():
            close(ranks[name]["state"][key], value, 1e-10, key)


@pytest.mark.parametrize("name", MODELS)
def test_unsynchronised_ranks_would_give_other_gradients(name: str) -> None:
    # Without it, the test above could pass for a batch whose halves happen to be alike.
    whole = fit(network(name), 2)[0]
    halves = [fit(network(name), 2, rank)[0] for rank in range(2)]
    apart = max(
        float((value - (halves[0][key] + halves[1][key]) / 2).abs().max())
        for key, value in whole.items()
    )
    assert apart > 1e-3


@pytest.fixture
def group_of_one(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group(
        "gloo", init_method=(tmp_path / "meeting").as_uri(), rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


def same_bits(case: Case) -> None:
    expected, actual = case.run(case.norm()), case.run(synchronise(case.norm()))
    assert list(actual) == list(expected)
    for key, value in expected.items():
        assert actual[key] is value is None or actual[key].equal(value), f"{key} of {case}"


@given(
    st.builds(
        Case,
        counts=st.tuples(st.integers(2, 9)),
        layout=st.sampled_from(["rows", "columns", "transposed", "images", "last"]),
        channels=st.integers(1, 9),
        dtype=st.sampled_from([torch.float32, torch.float64]),
        affine=st.booleans(),
        momentum=st.sampled_from([None, 0.1, 1.0]),
    )
)
def test_without_a_group_it_is_torch_to_the_bit(case: Case) -> None:
    same_bits(case)


@pytest.mark.parametrize("nodes", [0, 1, 2, 5])
def test_without_a_group_it_is_pyg_to_the_bit(nodes: int) -> None:
    same_bits(Case((nodes,), pyg=True))


@pytest.mark.usefixtures("group_of_one")
@pytest.mark.parametrize("pyg", [False, True], ids=["torch", "pyg"])
def test_with_one_rank_it_is_torch_to_the_bit(pyg: bool) -> None:
    same_bits(Case((5,), pyg=pyg))


@pytest.mark.parametrize("name", [*MODELS, "fewshot-gnn+fog"])
def test_it_shares_everything_and_keeps_the_names(name: str) -> None:
    settings = {"image_size": 20} if name.startswith("fewshot") else {"task": "zinc"}
    model = create_model(name, **settings)
    plain = copy.deepcopy(model)
    before = dict(model.named_parameters()) | dict(model.named_buffers())
    assert synchronise(synchronise(model)) is model
    after = dict(model.named_parameters()) | dict(model.named_buffers())
    assert all(after[key] is value for key, value in before.items())
    assert list(model.state_dict()) == list(plain.state_dict())
    norms = [type(m).__name__ for m in model.modules() if "BatchNorm" in type(m).__name__]
    assert norms
    assert all(norm.startswith("Sync") for norm in norms), norms
    # Checkpoints go both ways.
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    plain.load_state_dict(model.state_dict())
    model.load_state_dict(plain.state_dict())


def test_a_norm_in_two_places_stays_one() -> None:
    norm = BatchNorm1d(3)
    model = synchronise(Sequential(norm, ReLU(), norm))
    assert model[0] is model[2] is norm
    assert synchronise(norm) is norm
    assert repr(pyg_nn.BatchNorm(3)).replace("BatchNorm", "SyncBatchNorm") == repr(
        synchronise(pyg_nn.BatchNorm(3))
    )


class Renormed(BatchNorm1d):
    pass


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"model must be a torch.nn.Module, got str"):
        synchronise("gcn+fog")
    norm = BatchNorm1d(3)
    with pytest.raises(ValueError, match=r"1 must be a BatchNorm1d.*got LazyBatchNorm1d"):
        synchronise(Sequential(norm, torch.nn.LazyBatchNorm1d()))
    assert type(norm) is BatchNorm1d  # whole or not at all
    with pytest.raises(ValueError, match=r"synchronise: model must be a BatchNorm1d.*got Renormed"):
        synchronise(Renormed(3))


def test_torchs_own_synchronised_norm_is_left_alone() -> None:
    norm = torch.nn.SyncBatchNorm(3)
    assert type(synchronise(norm)) is torch.nn.SyncBatchNorm


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))

"""AdamW, the cosine schedule with warm-up, and gradients of a limited norm."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, open_split, tiny
from torch.optim.lr_scheduler import CosineAnnealingLR

from fognn.training import Config, Result, TrainingConfig, fit, loop
from fognn.training.data import task_of
from fognn.training.loop import cosine_factor
from fognn.training.networks import read_checkpoint

MODERN = {
    "training__optimizer": "adamw",
    "training__schedule": "cosine",
    "training__warmup": 1,
    "training__clip": 0.5,
    "training__weight_decay": 0.1,
    "training__min_lr": 0.0,
    "model__dropout": 0.3,
}


def test_rates_of_a_cosine() -> None:
    training = TrainingConfig(
        "l1", "mae", schedule="cosine", lr=0.1, min_lr=0.01, warmup=2, epochs=5
    )
    rates = [0.1 * cosine_factor(training, 10, step) for step in range(51)]
    torch.testing.assert_close(
        torch.tensor(rates[:20]), torch.linspace(0.005, 0.1, 20)
    )  # never 0: the first step moves, too
    # Afterwards it is torch's cosine, whose recursive form rounds differently.
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    theirs = CosineAnnealingLR(optimizer, T_max=30, eta_min=0.01)
    expected = []
    for _ in range(31):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()
    torch.testing.assert_close(torch.tensor(rates[20:]), torch.tensor(expected))
    assert rates[-1] == pytest.approx(0.01)


def test_the_rates_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rate for each step; the column has that of the first step of an epoch."""
    seen = []
    original = torch.optim.AdamW.step

    def step(self: torch.optim.AdamW, *rest: Any) -> Any:
        seen.append(self.param_groups[0]["lr"])
        return original(self, *rest)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    config = tiny(**MODERN)
    fit(config, tmp_path / "run", quiet=True)
    cosine = [1e-3 * (1 + math.cos(math.pi * part)) / 2 for part in (0, 0.25, 0.5, 0.75)]
    assert seen == pytest.approx([5e-4, 1e-3, *cosine])
    assert [float(row["lr"]) for row in metrics(tmp_path / "run")] == seen[::2]


def test_a_cosine_cannot_be_extended(tmp_path: Path) -> None:
    result = fit(tiny(**MODERN), tmp_path / "run", quiet=True)
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    longer = tiny(**MODERN, training__epochs=5)
    with pytest.raises(ValueError, match=r"training\.epochs: 3 and 5"):
        fit(longer, tmp_path / "run", quiet=True)
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    assert Result.read(tmp_path / "run") == result
    # As the message says: in another folder.
    assert fit(longer, tmp_path / "other", quiet=True).epochs == 5


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_weight_decay(tmp_path: Path, optimizer: str) -> None:
    """One step from scratch moves by the rate times the sign of the gradient: with L2 in it (Adam),
    or without, and the weights shrink by the rate times the decay (AdamW)."""
    values = {"training__weight_decay": 0.1, "training__epochs": 1, "training__batch_size": 8}
    config = tiny("gcn", training__optimizer=optimizer, training__schedule="none", **values)
    fit(config, tmp_path / "run", quiet=True)
    after = read_checkpoint(tmp_path / "run" / "last.ckpt")["model"]
    net, gradients = _gradients(config)
    for name, before in net.items():
        gradient, kept = gradients[name] + 0.1 * before, 1.0
        if optimizer == "adamw":
            gradient, kept = gradients[name], 1 - 1e-3 * 0.1
        clear = gradient.abs() > 1e-6
        expected = before * kept - 1e-3 * gradient.sign()
        torch.testing.assert_close(after[name][clear], expected[clear], rtol=0, atol=2e-5)


def _gradients(config: Config) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    net = loop.untrained_model(config, task_of(config.data))
    (batch,) = open_split(config, "train")
    out = net.train()(batch.x, batch.edge_index, None, batch.batch, batch.num_graphs)
    loop.loss_of("balanced_cross_entropy", out, batch.y).backward()
    named = dict(net.named_parameters())
    grads = {name: p.grad for name, p in named.items() if p.grad is not None}
    return {name: named[name].detach() for name in grads}, grads


def test_gradients_are_clipped(tmp_path: Path) -> None:
    """Adam's first moment after one step is a tenth of the gradient that it got."""
    values = {"training__epochs": 1, "training__batch_size": 8, "training__schedule": "none"}
    config = tiny("gcn", training__clip=0.01, training__weight_decay=0.0, **values)
    fit(config, tmp_path / "run", quiet=True)
    saved = read_checkpoint(tmp_path / "run" / "last.ckpt")["optimizer"]["state"]
    _, gradients = _gradients(config)
    norm = torch.cat([value.flatten() for value in gradients.values()]).norm()
    assert norm > 0.01
    moments = [saved[number]["exp_avg"] for number in sorted(saved)]
    for moment, gradient in zip(moments, gradients.values(), strict=True):
        torch.testing.assert_close(moment, 0.1 * gradient * 0.01 / norm, rtol=1e-4, atol=1e-8)

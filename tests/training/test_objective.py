import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from lightning.fabric import Fabric

from fognn.training import TrainingConfig
from fognn.training.objective import Meter, loss_of

FABRIC = Fabric(accelerator="cpu", devices=1)
BATCHES = st.lists(st.integers(1, 40), min_size=1, max_size=5)


def meter(loss: str, metric: str, classes: int) -> Meter:
    return Meter(TrainingConfig(loss, metric), classes, FABRIC)


def test_l1_is_torchs() -> None:
    prediction, target = torch.randn(7, 1), torch.randn(7)
    expected = F.l1_loss(prediction.squeeze(1), target)
    torch.testing.assert_close(loss_of("l1", prediction, target), expected)


def test_cross_entropy_is_torchs() -> None:
    prediction, target = torch.randn(7, 3), torch.randint(0, 3, (7,))
    expected = F.cross_entropy(prediction, target)
    torch.testing.assert_close(loss_of("cross_entropy", prediction, target), expected)


@given(st.integers(2, 50), st.integers(2, 6), st.integers(0, 1000))
def test_balanced_cross_entropy_is_the_benchmarks(nodes: int, classes: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    prediction = torch.randn(nodes, classes, generator=generator)
    target = torch.randint(0, classes, (nodes,), generator=generator)
    # As in the public benchmark: each class has the weight (V - n_class) / V within the batch, an
    # absent class 0.
    weight = torch.zeros(classes)
    for c in target.unique():
        weight[c] = (nodes - (target == c).sum()) / nodes
    loss = loss_of("balanced_cross_entropy", prediction, target)
    if len(target.unique()) == 1:  # 0 / 0 in torch
        assert loss == 0
    else:
        torch.testing.assert_close(loss, F.cross_entropy(prediction, target, weight))


def recalls(answer: np.ndarray, target: np.ndarray) -> float:
    return float(np.mean([np.mean(answer[target == c] == c) for c in np.unique(target)]))


def f1(answer: np.ndarray, target: np.ndarray) -> float:
    true = np.sum((answer == 1) & (target == 1))
    total = np.sum(answer == 1) + np.sum(target == 1)
    return float(2 * true / total) if total else 0.0


@pytest.mark.parametrize(
    ("metric", "literal", "scale"),
    [
        ("accuracy", lambda a, t: float(np.mean(a == t)), 100),
        ("balanced_accuracy", recalls, 100),
        ("f1", f1, 1),
    ],
)
def test_class_metrics_are_their_definitions(metric: str, literal, scale: float) -> None:
    torch.manual_seed(0)
    it = meter("cross_entropy", metric, 2)
    answers, targets, values = [], [], []
    for size in (5, 30, 12):
        prediction, target = torch.randn(size, 2), torch.arange(size) % 2
        answer = prediction.argmax(1)
        it.update(prediction, target, torch.tensor(float(size)))
        answers.append(answer.numpy())
        targets.append(target.numpy())
        values.append(literal(answer.numpy(), target.numpy()))
    scores = it.compute()
    assert scores["loss"] == pytest.approx((5 + 30 + 12) / 3)
    assert scores["batches"] == pytest.approx(scale * np.mean(values))
    whole = literal(np.concatenate(answers), np.concatenate(targets))
    assert scores["items"] == pytest.approx(scale * whole)
    assert scores["batches"] != pytest.approx(scores["items"]), "the batches must differ in size"


@given(BATCHES, st.integers(0, 100))
def test_mae_over_batches_and_over_items(sizes: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    it = meter("l1", "mae", 1)
    errors = []
    for size in sizes:
        prediction = torch.randn(size, 1, generator=generator)
        target = torch.randn(size, generator=generator)
        it.update(prediction, target, loss_of("l1", prediction, target))
        errors.append((prediction.squeeze(1) - target).abs())
    scores = it.compute()
    assert scores["items"] == pytest.approx(float(torch.cat(errors).mean()), rel=1e-5)
    assert scores["batches"] == pytest.approx(float(np.mean([e.mean() for e in errors])), rel=1e-5)
    assert scores["loss"] == pytest.approx(scores["batches"], rel=1e-5)


@given(BATCHES, st.integers(0, 4))
def test_a_meter_goes_on_from_its_state(sizes: list[int], cut: int) -> None:
    parts = [(torch.randn(n, 3), torch.randint(0, 3, (n,))) for n in sizes]
    whole, first = (meter("cross_entropy", "balanced_accuracy", 3) for _ in range(2))
    second = meter("cross_entropy", "balanced_accuracy", 3)
    for prediction, target in parts:
        whole.update(prediction, target, prediction.sum())
    for prediction, target in parts[:cut]:
        first.update(prediction, target, prediction.sum())
    second.load_state_dict(first.state_dict())
    for prediction, target in parts[cut:]:
        second.update(prediction, target, prediction.sum())
    assert second.compute() == whole.compute()

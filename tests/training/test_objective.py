import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from lightning_fabric import Fabric

from fognn.training import TrainingConfig
from fognn.training.objective import Meter, loss_of

FABRIC = Fabric(accelerator="cpu", devices=1)
BATCHES = st.lists(st.integers(1, 40), min_size=1, max_size=5)


def meter(loss: str, metric: str, classes: int) -> Meter:
    return Meter(TrainingConfig(loss, metric), classes, FABRIC)


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


def test_missing_values_do_not_count() -> None:
    prediction, target = torch.randn(7, 3, requires_grad=True), torch.randn(7, 3)
    target[torch.rand(7, 3) < 0.4] = torch.nan
    known = ~target.isnan()
    for name, torchs in (("l1", F.l1_loss), ("mse", F.mse_loss)):
        expected = torchs(prediction[known], target[known])
        torch.testing.assert_close(loss_of(name, prediction, target), expected)
    yes = (target > 0).float().masked_fill(~known, torch.nan)
    expected = F.binary_cross_entropy_with_logits(prediction[known], yes[known])
    loss = loss_of("bce", prediction, yes)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert bool((prediction.grad[~known] == 0).all())
    assert bool((prediction.grad[known] != 0).all())
    nothing = loss_of("bce", prediction, torch.full((7, 3), torch.nan))
    assert float(nothing) == 0


@pytest.mark.parametrize("name", ["l1", "mse"])
def test_the_loss_is_that_of_standardised_values(name: str) -> None:
    prediction, target, std = torch.randn(7, 2), torch.randn(7, 2), torch.tensor([2.0, 0.1])
    expected = loss_of(name, prediction / std, target / std)
    torch.testing.assert_close(loss_of(name, prediction, target, std=std), expected)


def auc(score: np.ndarray, target: np.ndarray) -> float:
    """How often a yes has a higher score than a no; half for equal ones."""
    pairs = [(p > n) + (p == n) / 2 for p in score[target == 1] for n in score[target == 0]]
    return float(np.mean(pairs))


def average_precision(score: np.ndarray, target: np.ndarray) -> float:
    """The precision at each threshold, weighted by the recall that it adds."""
    total, last = 0.0, 0.0
    for threshold in sorted(set(score), reverse=True):
        taken = score >= threshold
        recall = target[taken].sum() / target.sum()
        total += (recall - last) * target[taken].mean()
        last = recall
    return float(total)


@pytest.mark.parametrize(
    ("metric", "literal"), [("roc_auc", auc), ("average_precision", average_precision)]
)
@given(sizes=BATCHES, seed=st.integers(0, 1000), columns=st.integers(1, 3))
def test_ranking_metrics_of_yes_no_columns(
    metric: str, literal, sizes: list[int], seed: int, columns: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    count = sum(sizes)
    # Large and equal scores, which a sigmoid would make equal, and gaps.
    score = torch.randint(-5, 6, (count, columns), generator=generator) * 20.0
    target = torch.randint(0, 2, (count, columns), generator=generator).float()
    target[torch.rand(count, columns, generator=generator) < 0.2] = torch.nan
    own = meter("bce", metric, columns)
    for some, answers in zip(score.split(sizes), target.split(sizes), strict=True):
        own.update(some, answers, torch.zeros(()))
    expected = [
        literal(score[known, c].numpy(), target[known, c].numpy())
        for c in range(columns)
        if len(target[known := ~target[:, c].isnan(), c].unique()) == 2
    ]
    found = own.compute()
    assert found["batches"] == pytest.approx(found["items"], nan_ok=True)
    assert found["items"] == pytest.approx(np.mean(expected) if expected else np.nan, nan_ok=True)


def test_ranking_metrics_of_classes() -> None:
    prediction, target = torch.randn(30, 3), torch.arange(30) % 3
    own = meter("cross_entropy", "roc_auc", 3)
    own.update(prediction, target, torch.zeros(()))
    chances = prediction.softmax(1).numpy()
    expected = np.mean([auc(chances[:, c], (target == c).numpy()) for c in range(3)])
    assert own.compute()["items"] == pytest.approx(expected)
    two = meter("cross_entropy", "roc_auc", 2)
    two.update(prediction[:, :2], target % 2, torch.zeros(()))
    difference = (prediction[:, 1] - prediction[:, 0]).numpy()
    assert two.compute()["items"] == pytest.approx(auc(difference, (target % 2).numpy()))


def test_classes_of_yes_no_columns_and_rmse() -> None:
    score = torch.tensor([[1.0, -2.0], [-1.0, 3.0]])
    target = torch.tensor([[1.0, 1.0], [torch.nan, 1.0]])
    own = meter("bce", "accuracy", 2)
    own.update(score, target, torch.zeros(()))
    assert own.compute()["items"] == pytest.approx(200 / 3)
    own = meter("mse", "rmse", 2)
    own.update(score, target, torch.zeros(()))
    assert own.compute()["items"] == pytest.approx(np.sqrt((0 + 9 + 4) / 3))

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fognn.data.targets import Targets, targets_from_cells, targets_from_tensors


def found(task="auto", **columns):
    return targets_from_cells(columns, task)


@pytest.mark.parametrize("text", ["", " ", "NaN", "N/A", "null", "None"])
def test_gaps(text):
    targets, y, bad = found(a=["1", text, "2.5"])
    assert (targets.gaps, bad) == (1, {})
    assert y[1].isnan()


@pytest.mark.parametrize(
    ("texts", "task", "kind", "values"),
    [
        (["1.5", "2"], "auto", "values", [1.5, 2]),
        (["0", "1", "1"], "auto", "yes/no", [0, 1, 1]),
        (["yes", "No", "TRUE", "false"], "auto", "yes/no", [1, 0, 1, 0]),
        (["0", "1.0"], "regression", "values", [0, 1]),
        (["0", "1"], "classification", "yes/no", [0, 1]),
        (["0", "2", "1"] * 5, "auto", "classes", [0, 2, 1] * 5),
        (["0", "2", "1"] * 4, "auto", "values", [0, 2, 1] * 4),
        (["0", "2", "1"], "regression", "values", [0, 2, 1]),
        (["0", "3", "1"], "auto", "values", [0, 3, 1]),
        (["1", "2", "3"], "auto", "values", [1, 2, 3]),
        (["low", "high", "low", "high"], "classification", "classes", [1, 0, 1, 0]),
        (["7", "-1", "7", "-1"], "classification", "classes", [1, 0, 1, 0]),
    ],
)
def test_the_kind_of_a_column(texts, task, kind, values):
    targets, y, bad = found(task, a=texts)
    assert (targets.kind, targets.names, bad) == (kind, ("a",), {})
    assert y.tolist() == values
    assert y.dtype == (torch.int64 if kind == "classes" else torch.float32)


def test_names_of_classes():
    targets, y, _ = found("classification", a=["low", "", "high", "low", "high"])
    assert targets == Targets("classes", 2, ("a",), ("high", "low"), gaps=1)
    assert y.tolist() == [1, -1, 0, 1, 0]
    assert str(targets) == "a: 2 classes (classification), 1 missing"


def test_several_columns():
    targets, y, _ = found(a=["1", "", "0"], b=["0", "1", "1"])
    assert targets == Targets("yes/no", 2, ("a", "b"), gaps=1)
    assert y.shape == (3, 2)
    assert math.isnan(y[1, 0])
    assert str(targets) == "a, b: 2 columns of yes or no (classification), 1 missing"
    targets, y, _ = found(a=["1", "0"], b=["0", "2.5"])
    assert targets.kind == "values"
    with pytest.raises(ValueError, match=r"column 'b' must hold yes or no .* got '2\.5'"):
        found("classification", a=["1", "0"], b=["0", "2.5"])


def test_text_is_a_bad_row_or_a_class():
    _, _, bad = found(a=["1.5", "much", "2"])
    assert list(bad) == [1]
    assert "column 'a' must be a finite number, or yes or no, got 'much'" in bad[1]
    assert "data.task=classification" in bad[1]


@pytest.mark.parametrize("texts", [["x", "x"], ["a", "b", "c"], [str(n / 7) for n in range(50)]])
def test_too_few_or_too_many_classes(texts):
    with pytest.raises(ValueError, match="column 'a' must have at least 2 classes"):
        found("classification", a=texts)


def test_all_missing():
    with pytest.raises(ValueError, match="column 'a', 'b' must have a value, all are missing"):
        found(a=["", "nan"], b=["", ""])


@given(
    st.lists(st.text(max_size=4), min_size=1, max_size=6), st.sampled_from(["auto", "regression"])
)
def test_any_column_has_a_kind_unless_all_are_missing(texts, task):
    plain = [text.strip() for text in texts]
    gaps = [text.lower() in ("", "na", "n/a", "nan", "null", "none") for text in plain]
    if all(gaps):
        with pytest.raises(ValueError, match="column 'a'"):
            found(task, a=texts)
        return
    targets, y, bad = found(task, a=texts)
    assert len(y) == len(texts)
    for row, (text, gap) in enumerate(zip(plain, gaps, strict=True)):
        if targets.kind == "classes":
            assert int(y[row]) == (-1 if gap else targets.classes.index(f"{float(text):g}"))
        elif row in bad:
            assert not gap
            assert math.isnan(y[row])
        else:
            assert gap == math.isnan(y[row])
            value = {"yes": 1, "no": 0, "true": 1, "false": 0}.get(text.lower(), text)
            assert gap or y[row] == pytest.approx(float(value), rel=1e-6)


@pytest.mark.parametrize(
    ("ys", "task", "expected"),
    [
        ([torch.tensor([2]), torch.tensor([0])], "auto", Targets("classes", 3)),
        ([torch.tensor([[2]]), torch.tensor([[0]])], "auto", Targets("classes", 3)),
        ([torch.tensor([2]), torch.tensor([0])], "regression", Targets("values", 1)),
        ([torch.tensor([1.0]), torch.tensor([0.0])], "auto", Targets("yes/no", 1)),
        ([torch.tensor([1.0]), torch.tensor([0.0])], "regression", Targets("values", 1)),
        ([torch.tensor([3.0]), torch.tensor([0.0])], "classification", Targets("classes", 4)),
        ([torch.tensor([[1.0, math.nan]])] * 2, "auto", Targets("yes/no", 2, gaps=2)),
        ([torch.tensor([[1, 0, 1]])], "auto", Targets("yes/no", 3)),
        ([torch.tensor([[0.5, 2.0]])], "auto", Targets("values", 2)),
    ],
)
def test_tensors(ys, task, expected):
    targets, new = targets_from_tensors("graphs", ys, task)
    assert targets == expected
    dtype = torch.int64 if expected.kind == "classes" else torch.float32
    assert all(y.dtype == dtype for y in new)


@pytest.mark.parametrize(
    ("ys", "task", "message"),
    [
        (
            [torch.tensor([0]), torch.tensor([-1])],
            "auto",
            "classes from 0 .* from -1",
        ),
        ([torch.tensor([[0, 2]])], "auto", r"0 and 1 in several columns.* shape \[1, 2\]"),
        ([torch.tensor([0.5])], "classification", "y must be classes"),
        ([torch.tensor([[0.5, 1.0]])], "classification", "y must be classes"),
        ([torch.tensor([math.nan])], "auto", "all are missing"),
        ([torch.zeros(1, 2, 2)], "auto", "one or two dimensions"),
        ([torch.tensor([0])], "rank", "task must be one of .*got 'rank'"),
    ],
)
def test_bad_tensors(ys, task, message):
    with pytest.raises(ValueError, match=message):
        targets_from_tensors("graphs", ys, task)


def test_unlabelled_nodes():
    targets, _ = targets_from_tensors("graph", [torch.tensor([0, -1, 2])], unlabelled=True)
    assert targets == Targets("classes", 3, gaps=1)

import csv
from pathlib import Path

import pytest

from fognn.experiments import Row, rows


def test_there_are_72_rows() -> None:
    assert len(rows()) == 72
    assert all(isinstance(row, Row) for row in rows())
    assert [sum(row.table == t for row in rows()) for t in range(1, 8)] == [
        11,
        11,
        13,
        13,
        6,
        8,
        10,
    ]


def test_rows_can_be_picked() -> None:
    (row,) = rows(table=3, model="gcn+fog")
    assert (row.dataset, row.params, row.mean, row.sd) == ("ZINC", 102809, 0.307, 0.013)
    assert (row.h1, row.h2, row.p, row.q, row.channels) == (12, 6, 79, 79, (158,))
    assert len(rows(dataset="imdb-multi")) == 5
    with pytest.raises(
        ValueError, match=r"rows: dataset must be one of PATTERN, CLUSTER, .*'mnist'"
    ):
        rows(dataset="mnist")


def test_a_caller_cannot_spoil_the_rows() -> None:
    rows().clear()
    assert len(rows()) == 72
    with pytest.raises(AttributeError):
        rows()[0].params = 1


def test_settings_make_sense() -> None:
    for row in rows():
        assert row.schedule in ("plateau", "step")
        assert (row.patience is not None) == (row.schedule == "plateau")
        assert (row.epochs is not None) == (row.schedule == "step")
        if row.p and row.q:
            assert row.few_shot or row.p + row.q == row.channels[0]


def test_equal_to_the_sheet_that_they_came_from(real_data: Path) -> None:
    """The paper's sheet lies beside the real data, not in the project."""
    sheet = real_data.parent / "paper" / "rows.csv"
    if not sheet.exists():
        pytest.skip(f"needs {sheet}")
    lines = list(csv.DictReader(sheet.open(encoding="utf-8")))
    assert len(lines) == 72
    names = {"cp": "p", "cq": "q", "paper_mean": "mean", "paper_sd": "sd"}
    for line, row in zip(lines, rows(), strict=True):
        table, _, title = line.pop("table").partition(" ")
        assert (int(table), title) == (row.table, row.title)
        for key, text in line.items():
            value = getattr(row, names.get(key, key))
            if isinstance(value, tuple):
                assert tuple(int(n) for n in text.split(",")) == value
            elif isinstance(value, int | float) and not (key == "dropout" and text == ""):
                assert float(text) == value, (key, row)
            elif key == "note" and row.norm is not None:
                assert value.startswith("norm: "), "the sheet has no norms"
            elif key != "dropout":
                assert text == (value or ""), (key, row)

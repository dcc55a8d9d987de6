import re

import pytest

from fognn.models import list_models
from fognn.paper import rows
from fognn.paper.build import name_of
from fognn.report.models_report import report_models


def table(text: str) -> dict[str, str]:
    """The second column by the first, below the two lines of the header."""
    header, rule, *lines = text.splitlines()
    assert re.split(r"\s{2,}", header) == ["network", "parameters in the paper"]
    assert set(rule) == {"-", " "}
    return dict(line.split(maxsplit=1) for line in lines)


def test_every_network_with_every_size() -> None:
    found = table(report_models())
    assert list(found) == list_models()
    for row in rows():
        if row.table != 6:
            assert f"{row.dataset} {row.params:,}" in found[name_of(row)].split(", "), row


def test_the_printed_numbers() -> None:
    (line,) = table(report_models("gcn+fog")).items()
    # Tables 1 to 4, in their order; ZINC's is that of table 3, not of a variant in table 6.
    assert line == ("gcn+fog", "PATTERN 101,026, CLUSTER 101,830, ZINC 102,809, TSP 93,465")


def test_a_dataset_stands_once() -> None:
    for text in table(report_models()).values():
        names = [part.split()[0] for part in text.split(", ")]
        assert len(names) == len(set(names))


def test_patterns() -> None:
    assert list(table(report_models("fewshot-*"))) == list_models("fewshot-*")
    assert list(table(report_models("GAT"))) == ["gat"]
    with pytest.raises(ValueError, match=r"pattern must match a network, got 'resnet.'"):
        report_models("resnet*")


def test_a_network_without_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fognn.report.models_report.list_models", lambda pattern: ["new"])
    assert table(report_models()) == {"new": "no row"}

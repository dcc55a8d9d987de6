"""Tables as text, Markdown and LaTeX, and the list of networks."""

import re

import pytest

from fognn.experiments import rows
from fognn.experiments.row_net import name_of
from fognn.models import list_models
from fognn.report.tables.forms import as_latex, as_markdown, as_text
from fognn.report.tables.models import report_models

# --- table forms ---


HEADER = ["network", "MAE (%)", "FOG - host"]
ROWS = [["GCN_1 & co", "0.3 ± 0.1", "-0.1 [-0.2, +0.1], 2 seeds"], ["GIN †", "–", "a|b"]]
NOTES = ["100 % of {all} #1 $ a_b.", "x" * 90 + " and more words."]


def test_text() -> None:
    assert as_text("Title.", HEADER, ROWS, NOTES, [1, 2]) == (
        "Title.\n\n"
        "network       MAE (%)                  FOG - host\n"
        "----------  ---------  --------------------------\n"
        "GCN_1 & co  0.3 ± 0.1  -0.1 [-0.2, +0.1], 2 seeds\n"
        "GIN †               –                         a|b\n\n"
        "100 % of {all} #1 $ a_b.\n" + "x" * 90 + " and more\nwords."
    )


def test_markdown() -> None:
    lines = as_markdown("A_title.", HEADER, ROWS, NOTES, [1]).split("\n")
    assert lines[0] == r"**A\_title.**"
    assert lines[2] == "| network | MAE (%) | FOG - host |"
    assert lines[3] == "| --- | ---: | --- |"
    assert lines[5] == r"| GIN † | – | a\|b |"
    # As many cells in each line, or it is no table.
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines[2:6]} == {4}
    assert lines[4].startswith(r"| GCN\_1 & co |")
    assert lines[7].startswith(r"100 % of {all} #1 $ a\_b.")
    items = as_markdown("T", HEADER, ROWS, ["word " * 19 + "- 1. "] * 3).split("\n")[7:]
    assert not [line for line in items if re.match(r"[-+*] |\d+\. ", line)], "no list begins"
    assert max(map(len, items)) <= 101


def test_latex() -> None:
    text = as_latex("Title.", HEADER, ROWS, NOTES, [1, 2])
    assert r"\begin{tabular}{lrr}" in text
    assert r"GCN\_1 \& co & 0.3 $\pm$ 0.1 & $-$0.1 [$-$0.2, +0.1], 2 seeds \\" in text
    assert r"GIN \dag{} & -- & a\textbar{}b \\" in text
    assert r"network & MAE (\%) & FOG $-$ host \\" in text
    assert r"100 \% of \{all\} \#1 \$ a\_b." in text
    lines = text.split("\n")
    body = lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")]
    counts = {len(re.findall(r"(?<!\\)&", line)) for line in body if line != r"\midrule"}
    assert counts == {2}
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    # TeX without a font for them shows nothing.
    assert text.isascii()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\\b", r"a\textbackslash{}b"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("<3>", r"\textless{}3\textgreater{}"),
        ("ZINC-without 1e-05 a-1", "ZINC-without 1e-05 a-1"),
        ("-1", "$-$1"),
        ("[1]", "{}[1]"),  # after the end of a line it would be a length
    ],
)
def test_letters_of_latex(text: str, wanted: str) -> None:
    assert f"{wanted} & b \\\\" in as_latex("t", ["a", "b"], [[text, "b"]], [])


# --- models report ---


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
    monkeypatch.setattr("fognn.report.tables.models.list_models", lambda pattern: ["new"])
    assert table(report_models()) == {"new": "no row"}

import re

import pytest

from fognn.report.table_forms import as_latex, as_markdown, as_text

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
    assert lines[7].startswith(r"100 % of {all} #1 $ a\_b. xxx")


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

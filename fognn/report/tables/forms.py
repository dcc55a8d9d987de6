r"""A table with its caption, as text, in Markdown, in LaTeX and as csv."""

import csv
import io
import re
from collections.abc import Sequence
from textwrap import fill

from fognn.report.text import text_table

__all__ = ["as_latex", "as_markdown", "as_text", "in_form"]

_WIDTH = 100  # of sentences, in letters
Rows = Sequence[Sequence[str]]
_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "–": "--",
    "†": r"\dag{}",
    "×": r"$\times$",
}


def in_form(
    form: str,
    title: str,
    header: Sequence[str],
    rows: Rows,
    notes: Sequence[str],
    right: Sequence[int] = (),
) -> str:
    r"""The table as ``"text"``, ``"markdown"``, ``"latex"``, or ``"csv"``, which has neither title
    nor notes; see :func:`as_text`."""
    if form == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        return text.getvalue().rstrip("\n")
    return _AS[form](title, header, rows, notes, right)


def as_text(
    title: str, header: Sequence[str], rows: Rows, notes: Sequence[str], right: Sequence[int] = ()
) -> str:
    r"""Columns side by side, with the title above and the notes below.

    Args:
        title (str): The title.
        header (sequence of str): The names of the columns.
        rows (sequence): The rows.
        notes (sequence of str): Sentences about it.
        right (sequence of int, optional): The columns that are aligned to the right.
            (default: none)
    """
    wrapped = [fill(note, _WIDTH) for note in notes]
    return "\n".join([title, "", text_table(header, rows, right), "", *wrapped])


def as_markdown(
    title: str, header: Sequence[str], rows: Rows, notes: Sequence[str], right: Sequence[int] = ()
) -> str:
    r"""The same in Markdown; see :func:`as_text`."""
    marks = ["---:" if column in right else "---" for column in range(len(header))]
    lines = [header, marks, *rows]
    table = ["| " + " | ".join(map(_markdown, line)) + " |" for line in lines]
    # A wrapped line must not begin like an item of a list.
    text = fill(" ".join(map(_markdown, notes)), _WIDTH, break_on_hyphens=False)
    text = re.sub(r"^([-+!]|\d+[.)]) ", r"\\\1 ", text, flags=re.MULTILINE)
    return "\n".join([f"**{_markdown(title)}**", "", *table, "", text])


def as_latex(
    title: str, header: Sequence[str], rows: Rows, notes: Sequence[str], right: Sequence[int] = ()
) -> str:
    r"""The same in LaTeX, which needs the package ``booktabs``; see :func:`as_text`."""
    columns = "".join("r" if column in right else "l" for column in range(len(header)))
    lines = [" & ".join(map(_latex, line)) + r" \\" for line in [header, *rows]]
    caption = " ".join(_latex(text) for text in [title, *notes])
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


_AS = {"text": as_text, "markdown": as_markdown, "latex": as_latex}


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_<|])", r"\\\1", text)


def _latex(text: str) -> str:
    escaped = "".join(_LATEX.get(letter, letter) for letter in text)
    # A hyphen before a number, or on its own, is a minus; an opening bracket after \\ would be
    # read as its argument.
    escaped = re.sub(r"(?<!\S)-(?=[\d\s])|(?<=\[)-(?=\d)", "$-$", escaped)
    return f"{{}}{escaped}" if escaped.startswith("[") else escaped

r"""Words, numbers, and a table as text, Markdown, LaTeX or csv."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill

from fognn.experiments.wording import NONE, joined

__all__ = [
    "FORMS",
    "Table",
    "capital",
    "mebibytes",
    "number",
    "percents",
    "shortened",
    "text_table",
]

FORMS = ("text", "markdown", "latex", "csv")
_WIDTH = 100  # of sentences, in letters
_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    **{"±": r"$\pm$", "–": "--", "†": r"\dag{}", "×": r"$\times$", "−": "$-$"},
}


def capital(text: str) -> str:
    r"""The text with its first letter in upper case; the others stay as they are."""
    return text[:1].upper() + text[1:]


def mebibytes(size: int | None) -> str:
    r"""A number of bytes as ``412 MiB``; a dash for :obj:`None`."""
    return NONE if size is None else f"{size / 2**20:,.0f} MiB"


def number(value: float, digits: int = 4) -> str:
    r"""An :obj:`int` in groups of three digits, a :obj:`float` with :obj:`digits` decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def percents(fractions: Iterable[float]) -> str:
    r"""``2 % and 20 %``: fractions in ascending order, each once."""
    return joined([f"{100 * fraction:g} %" for fraction in sorted(set(fractions))])


def shortened(text: str, most: int) -> str:
    r"""The text with at most as many characters; what is left out in the middle is an ellipsis."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def text_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> str:
    r"""A table of plain text whose columns are as wide as their longest cell.

    Args:
        header (sequence of str): The names of the columns.
        rows (iterable): The rows.
        right (sequence of int, optional): The columns that are aligned to the right.
            (default: none)
    """
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


@dataclass(frozen=True)
class Table:
    r"""A table with its title and its notes.

    Args:
        title (str): The title.
        header (list): The names of the columns.
        rows (list): The rows, a text for each column.
        notes (list): Sentences about it.
        right (sequence of int): The columns that are aligned to the right.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str]
    right: Sequence[int] = ()

    def to(self, form: str) -> str:
        r"""The table in one of :obj:`FORMS`; csv has neither title nor notes."""
        if form == "csv":
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
            return text.getvalue().rstrip("\n")
        if form == "markdown":
            return self._markdown()
        if form == "latex":
            return self._latex()
        notes = [fill(note, _WIDTH) for note in self.notes]
        table = text_table(self.header, self.rows, self.right)
        return "\n".join([self.title, "", table, "", *notes])

    def _markdown(self) -> str:
        marks = ["---:" if column in self.right else "---" for column in range(len(self.header))]
        lines = [self.header, marks, *self.rows]
        table = ["| " + " | ".join(map(_markdown, line)) + " |" for line in lines]
        text = fill(" ".join(map(_markdown, self.notes)), _WIDTH, break_on_hyphens=False)
        # A wrapped line must not begin like an item of a list.
        text = re.sub(r"^([-+!]|\d+[.)]) ", r"\\\1 ", text, flags=re.MULTILINE)
        return "\n".join([f"**{_markdown(self.title)}**", "", *table, "", text])

    def _latex(self) -> str:
        columns = "".join("r" if n in self.right else "l" for n in range(len(self.header)))
        header, *rows = (
            " & ".join(map(_latex, line)) + r" \\" for line in [self.header, *self.rows]
        )
        caption = " ".join(map(_latex, [self.title, *self.notes]))
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"]
        lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule", *rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_<|])", r"\\\1", text)


def _latex(text: str) -> str:
    escaped = "".join(_LATEX.get(letter, letter) for letter in text)
    # A hyphen before a number, or on its own, is a minus; an opening bracket after \\ would be
    # read as its argument.
    escaped = re.sub(r"(?<!\S)-(?=[\d\s])|(?<=\[)-(?=\d)", "$-$", escaped)
    return f"{{}}{escaped}" if escaped.startswith("[") else escaped

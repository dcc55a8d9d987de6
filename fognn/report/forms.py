r"""Output in each form: a table as text, Markdown, LaTeX or csv, and pages from templates, which
open from disk, without a server and without the internet."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from fognn import __version__
from fognn.utils.files import user_path, write_whole

FORMS = ("text", "markdown", "latex", "csv")
_WIDTH = 100  # of sentences, in letters
_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
        **{"±": r"$\pm$", "–": "--", "†": r"\dag{}", "×": r"$\times$", "−": "$-$"},
    }
)
_SCRIPT = "plotly.min.js"
_MENU = {"index": "overview", "compare": "other data", "runs": "other runs"}


def capital(text: str) -> str:
    r"""Returns the text with its first letter in upper case; the others stay as they are."""
    return text[:1].upper() + text[1:]


def text_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> str:
    r"""Returns a table of plain text whose columns are as wide as their longest cell."""
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    signs = [">" if column in right else "<" for column in range(len(widths))]
    form = "  ".join(f"{{:{sign}{width}}}" for sign, width in zip(signs, widths, strict=True))
    return "\n".join(form.format(*line).rstrip() for line in lines)


@dataclass(frozen=True)
class Table:
    r"""A table with its title and its notes."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str]
    right: Sequence[int] = ()

    def to(self, form: str) -> str:
        r"""Returns the table in one of :obj:`FORMS`; csv has neither title nor notes."""
        if form == "csv":
            frame = pd.DataFrame(self.rows, columns=self.header)
            return str(frame.to_csv(index=False, lineterminator="\n")).rstrip("\n")
        if form == "latex":
            columns = "".join("r" if n in self.right else "l" for n in range(len(self.header)))
            rows = [[cell.translate(_LATEX) for cell in row] for row in self.rows]
            frame = pd.DataFrame(rows, columns=[name.translate(_LATEX) for name in self.header])
            caption = " ".join([self.title, *self.notes]).translate(_LATEX)
            return frame.to_latex(index=False, column_format=columns, caption=caption).rstrip("\n")
        if form == "markdown":
            marks = ["---:" if n in self.right else "---" for n in range(len(self.header))]
            head, *body = [list(map(_markdown, line)) for line in [self.header, *self.rows]]
            table = [f"| {' | '.join(line)} |" for line in [head, marks, *body]]
            below = _markdown(" ".join(self.notes))
            return "\n".join([f"**{_markdown(self.title)}**", "", *table, "", below])
        text = text_table(self.header, self.rows, self.right)
        return "\n".join([self.title, "", text, "", *(fill(note, _WIDTH) for note in self.notes)])


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_<|])", r"\\\1", text)


def check_output(output: str | Path) -> Path:
    r"""Returns the folder for pages; raises if it has an ``index.html`` that is not a report's."""
    output = user_path(output)
    if output.exists() and not output.is_dir():
        raise ValueError(f"report: output must be a folder, got the file {output}")
    if (output / "index.html").exists() and not (output / _SCRIPT).exists():
        raise ValueError(f"report: output must not be a folder with other pages, got {output}")
    return output


def write_pages(output: str | Path, pages: Iterable[tuple[str, str, dict[str, Any]]]) -> Path:
    """Writes a folder of pages, each with its name, template and context, and the script of their
    plots; other files stay as they are. Returns ``index.html``."""
    from plotly.offline import get_plotlyjs

    output, pages = check_output(output), list(pages)
    templates = Environment(
        loader=PackageLoader("fognn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    menu = {name: _MENU.get(name, name) for name, *_ in pages}
    files = {_SCRIPT: get_plotlyjs()}
    for name, template, context in pages:
        page = templates.get_template(f"{template}.html")
        files[f"{name}.html"] = page.render(context, here=name, menu=menu, version=__version__)
    for name, text in files.items():
        with write_whole(output / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return output / "index.html"

r"""A page of drawings: one HTML file that contains its pictures and its style."""

import base64
from collections.abc import Sequence
from html import escape

from fognn.report.style import STYLE, colours
from fognn.report.text import shortened

__all__ = ["figure_png", "figure_svg", "page", "table_html"]

_LONGEST = 120  # characters of a caption that are shown; the others are in its title
_ROOT = f"""
:root {{ color-scheme: light dark; {colours(dark=False)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {colours(dark=True)} }} }}
.panels {{ display: flex; flex-wrap: wrap; gap: 1rem; align-items: start; }}
/* A long caption, such as a SMILES string, breaks anywhere and does not widen its figure. */
.panels figcaption {{ contain: inline-size; overflow-wrap: anywhere; }}
"""


def page(title: str, note: str, table: str, figures: Sequence[str], style: str = "") -> str:
    r"""The text of a page.

    Args:
        title (str): The title.
        note (str): A line below the title.
        table (str): A table in HTML, or an empty string.
        figures (sequence of str): Figures in HTML, side by side.
        style (str, optional): Further rules of the style sheet. (default: none)
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_ROOT}{STYLE}{style}</style>\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="first">{escape(note)}</p>\n'
        f'{table}\n<div class="panels">\n{"".join(figures)}</div>\n</body>\n</html>\n'
    )


def figure_png(content: bytes, caption: str) -> str:
    r"""A figure with the bytes of a PNG file."""
    data = base64.b64encode(content).decode("ascii")
    return _figure(f'<img alt="{escape(caption)}" src="data:image/png;base64,{data}">', caption)


def figure_svg(content: str, caption: str) -> str:
    r"""A figure with the text of an SVG element."""
    labelled = f'<svg role="img" aria-label="{escape(caption)}"'
    return _figure(content.replace("<svg", labelled, 1), caption)


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""A table with a header."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
    # On a narrow screen the table scrolls sideways, not the page.
    return f'<div class="wide" tabindex="0">{table}</div>'


def _figure(content: str, caption: str) -> str:
    shown = shortened(caption, _LONGEST)
    title = f' title="{escape(caption)}"' if shown != caption else ""
    return f"<figure>{content}<figcaption{title}>{escape(shown)}</figcaption></figure>\n"

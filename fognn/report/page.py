r"""Pages that need nothing but themselves: one HTML file, pictures inside."""

import base64
from collections.abc import Sequence
from html import escape

__all__ = ["figure_png", "figure_svg", "page", "table_html"]

_STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; }
p { color: #444; margin: .2rem 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
.panels { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; border: 1px solid #ddd; border-radius: 4px; padding: .5rem; }
figure img, figure svg { max-width: 100%; height: auto; display: block; }
figcaption { font-size: .9rem; margin-top: .3rem; }
"""


def page(title: str, note: str, table: str, figures: Sequence[str]) -> str:
    r"""A whole page.

    Args:
        title (str): Its title.
        note (str): A line below it.
        table (str): A table in HTML, or nothing.
        figures (sequence of str): Figures in HTML.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<p>{escape(note)}</p>\n{table}\n"
        f'<div class="panels">\n{"".join(figures)}</div>\n</body>\n</html>\n'
    )


def figure_png(content: bytes, caption: str) -> str:
    r"""A picture that the page carries in itself."""
    inside = base64.b64encode(content).decode("ascii")
    return _figure(f'<img alt="{escape(caption)}" src="data:image/png;base64,{inside}">', caption)


def figure_svg(content: str, caption: str) -> str:
    r"""A drawing that the page carries in itself."""
    return _figure(content, caption)


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""A table with a header."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


def _figure(content: str, caption: str) -> str:
    return f"<figure>{content}<figcaption>{escape(caption)}</figcaption></figure>\n"

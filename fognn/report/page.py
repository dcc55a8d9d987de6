r"""Pages that need nothing but themselves: one HTML file, pictures inside, light or dark as the
reader's screen is."""

import base64
from collections.abc import Sequence
from html import escape

from fognn.report.plots import LINES

__all__ = [
    "STYLE",
    "colours",
    "figure_png",
    "figure_svg",
    "page",
    "panels",
    "paragraph",
    "points",
    "section",
    "table_html",
]

PAPER = ("#ffffff", "#16181b")  # light, dark
_INK, _SOFT, _RULE = ("#1a1a1a", "#e8e8e6"), ("#4a4a4a", "#b4b6b8"), ("#d9d9d9", "#3c4045")


def colours(dark: bool) -> str:
    r"""The colours of a page as CSS variables, for a light screen or for a :obj:`dark` one."""
    pairs = {"paper": PAPER, "ink": _INK, "soft": _SOFT, "rule": _RULE}
    pairs |= {f"line-{number}": pair for number, pair in enumerate(LINES)}
    return " ".join(f"--{name}: {pair[dark]};" for name, pair in pairs.items())


_ROOT = f"""
:root {{ color-scheme: light dark; {colours(dark=False)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {colours(dark=True)} }} }}
"""
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 1180px; margin: 2rem auto; padding: 0 1rem; -webkit-text-size-adjust: 100%; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; }
p { color: var(--soft); margin: .2rem 0 1rem; max-width: 48rem; }
li { color: var(--soft); }
.points { padding-left: 1.2rem; max-width: 48rem; margin: .2rem 0 1rem; }
p.first { color: var(--ink); font-size: 1.15rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid var(--rule); }
th { vertical-align: bottom; }
td { white-space: nowrap; }
th[colspan] { text-align: left; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.panels { display: flex; flex-wrap: wrap; gap: 1rem; }
.plots { display: grid; gap: 1rem;
         grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
figure { margin: 0; border: 1px solid var(--rule); border-radius: 4px; padding: .5rem;
         max-width: 100%; box-sizing: border-box; }
figure img, figure svg { max-width: 100%; height: auto; display: block; }
.plots figure svg { width: 100%; max-width: 33rem; margin: 0 auto; }
.plots svg *, .legend svg * { stroke-linejoin: round; }
.plots text { font-family: system-ui, sans-serif !important; }
figcaption { font-size: .9rem; margin-top: .3rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; padding: 0;
          margin: 1.5rem 0 .6rem; }
.legend li { color: var(--ink); display: flex; align-items: center; gap: .5rem; }
.legend svg { flex: none; }
pre { overflow-x: auto; border: 1px solid var(--rule); border-radius: 4px; padding: .6rem .8rem;
      font-size: .9rem; }
summary { cursor: pointer; color: var(--soft); }
@media (max-width: 30rem) { body { margin: 1rem auto; } th, td { padding: .3rem .5rem; } }
"""


def page(title: str, note: str, parts: Sequence[str]) -> str:
    r"""A whole page.

    Args:
        title (str): Its title.
        note (str): What is to be seen, below the title.
        parts (sequence of str): What follows, in HTML.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_ROOT}{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{paragraph(note, first=True)}\n"
        f"{chr(10).join(parts)}\n</body>\n</html>\n"
    )


def paragraph(text: str, first: bool = False) -> str:
    r"""A paragraph; the :obj:`first` one is the one to read if no other."""
    kind = ' class="first"' if first else ""
    return f"<p{kind}>{escape(text)}</p>"


def points(texts: Sequence[str]) -> str:
    r"""Sentences one below the other."""
    return f'<ul class="points">\n{"".join(f"<li>{escape(text)}</li>" for text in texts)}\n</ul>'


def section(title: str, parts: Sequence[str]) -> str:
    r"""A part of the page with a title of its own."""
    return f"<section>\n<h2>{escape(title)}</h2>\n{chr(10).join(parts)}\n</section>"


def panels(figures: Sequence[str], kind: str = "panels") -> str:
    r"""Figures side by side: :obj:`"panels"` of their own size, or :obj:`"plots"` as wide as there
    is room."""
    return f'<div class="{kind}">\n{"".join(figures)}</div>'


def figure_png(content: bytes, caption: str) -> str:
    r"""A picture that the page carries in itself."""
    inside = base64.b64encode(content).decode("ascii")
    return _figure(f'<img alt="{escape(caption)}" src="data:image/png;base64,{inside}">', caption)


def figure_svg(content: str, caption: str) -> str:
    r"""A drawing that the page carries in itself."""
    spoken = f'<svg role="img" aria-label="{escape(caption)}"'
    return _figure(content.replace("<svg", spoken, 1), caption)


def table_html(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    above: Sequence[tuple[str, int]] = (),
) -> str:
    r"""A table with a header.

    Args:
        header (sequence of str): The names of the columns.
        rows (sequence): The rows.
        above (sequence, optional): Names for columns together, each with how many.
    """
    spans = "".join(f'<th colspan="{many}">{escape(cell)}</th>' for cell, many in above)
    head = f"<tr>{spans}</tr>\n" if above else ""
    head += f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in header)}</tr>"
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    table = f"<table>\n<thead>{head}</thead>\n<tbody>\n{body}</tbody>\n</table>"
    # On a narrow screen the table moves sideways, not the page.
    return f'<div class="wide" tabindex="0">{table}</div>'


def _figure(content: str, caption: str) -> str:
    return f"<figure>{content}<figcaption>{escape(caption)}</figcaption></figure>\n"

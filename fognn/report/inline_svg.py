r"""A figure of matplotlib as a drawing inside a page, in the page's own colours and letters."""

import io
import re
from typing import Any

from fognn.report.plots import INK, LINES, RULE, line_colour

__all__ = ["inline_svg"]

# matplotlib knows no names of CSS: it draws in colours that stand for them.
_VARIABLES = {INK: "var(--ink)", RULE: "var(--rule)"} | {
    line_colour(series): f"var(--line-{series})" for series in range(len(LINES))
}


def inline_svg(figure: Any, name: str) -> str:
    r"""The text of an SVG that changes its colours with those of the page.

    Text stays text, in the page's font.

    Args:
        figure (Figure): The figure, drawn in the colours of :mod:`fognn.report.plots`.
        name (str): A word that no other drawing on the page has.
    """
    from matplotlib import rc_context

    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"inline_svg: name must be a word of a-z, 0-9 and -, got {name!r}")
    buffer = io.StringIO()
    # The same figure gives the same text.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True)
    text = buffer.getvalue()
    # Inside a page these have no place, or no meaning.
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"| version="[^"]*"', "", text)
    # Identifiers are those of the whole page.
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    return text

r"""Hook of mkdocs that turns LaTeX into MathML while the site is built.

Browsers draw MathML themselves, so pages need neither a script nor the network.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves in a page, with its option "generic".
_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\(?:\((?P<inline>.*?)\\\)|\[(?P<block>.*?)\\\])</\1>',
    re.DOTALL,
)


def to_mathml(content: str) -> str:
    r"""Replaces each formula in a page of HTML by MathML."""

    def replace(match: re.Match[str]) -> str:
        display = "inline" if match["block"] is None else "block"
        latex = html.unescape(match["inline"] or match["block"]).strip()
        mathml = convert(latex, display=display)
        # What it does not know, it leaves as text.
        if unknown := re.search(r"<m\w+>(&|\\[^<]*)</m", mathml):
            raise ValueError(f"latex2mathml does not know {unknown[1]!r}, in {latex!r}")
        return mathml

    return _FORMULA.sub(replace, content)


def on_page_content(html: str, **_: Any) -> str:
    r"""Called by mkdocs with the content of each page."""
    return to_mathml(html)

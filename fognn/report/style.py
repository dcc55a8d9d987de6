r"""The colours and the basic style sheet of all pages, light and dark."""

__all__ = ["LINES", "PAPER", "STYLE", "colours"]

# Pairs of a colour on a light page and on a dark one.
PAPER = ("#ffffff", "#16181b")
_INK, _SOFT, _RULE = ("#1a1a1a", "#e8e8e6"), ("#4a4a4a", "#b4b6b8"), ("#d9d9d9", "#3c4045")
# Okabe and Ito's colours that are dark enough for thin lines on white, each with a brighter one
# of the same hue.
LINES = (
    *(("#0072B2", "#56B4E9"), ("#D55E00", "#FF9142"), ("#009E73", "#2CD3A0")),
    *(("#CC79A7", "#E8A9CB"), ("#000000", "#F2F2F2"), ("#8C8C8C", "#A6A6A6")),
)


def colours(dark: bool) -> str:
    r"""The colours of a page as CSS variables, for a light screen or for a :obj:`dark` one."""
    pairs = {"paper": PAPER, "ink": _INK, "soft": _SOFT, "rule": _RULE}
    pairs |= {f"line-{number}": pair for number, pair in enumerate(LINES)}
    return " ".join(f"--{name}: {pair[dark]};" for name, pair in pairs.items())


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 1180px; margin: 2rem auto; padding: 0 1rem; -webkit-text-size-adjust: 100%; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; }
p { color: var(--soft); margin: .2rem 0 1rem; max-width: 48rem; }
p.first { color: var(--ink); font-size: 1.15rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid var(--rule); }
th { vertical-align: bottom; }
td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
figure { margin: 0; border: 1px solid var(--rule); border-radius: 4px; padding: .5rem;
         max-width: 100%; box-sizing: border-box; }
figure img, figure svg { max-width: 100%; height: auto; display: block; }
figcaption { font-size: .9rem; margin-top: .3rem; }
@media (max-width: 30rem) { body { margin: 1rem auto; } th, td { padding: .3rem .5rem; } }
"""

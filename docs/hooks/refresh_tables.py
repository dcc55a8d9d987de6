"""Writes the tables of README and docs anew from the ledgers in ``results/``.

    python docs/hooks/refresh_tables.py

A table stands between ``<!-- fognn table NAME --markdown -->`` and ``<!-- end -->``, without the
notes below it. In the README, ``<!-- rows of: ... -->`` keeps rows, links and columns, and takes
their cells from the table. ``<!-- verdicts -->`` is the table of ZINC's controls.
"""

import re
from pathlib import Path

from fognn.experiments import get_row
from fognn.report.claims import read_frames
from fognn.report.tables import report_table

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_REFERENCES = {
    "controls/zinc-gcn-kron": "GCN+FOG",
    "controls/zinc-gin-kron": "GIN+FOG",
    "controls/zinc-alone-kron": "FOG",
}
_DECIDED = {"better": "**better**, ", "worse": "**worse**, "}


def refreshed(text: str) -> str:
    """The text of a page with the tables of today's ledgers."""
    for marker, change in (
        (r"fognn table ([\w-]+) --markdown", _table),
        (r"rows of: fognn table ([\w-]+) --markdown", _rows),
        ("verdicts", _verdicts),
    ):
        pattern = rf"(?P<open><!-- {marker} -->)\n(?P<body>.*?)\n?<!-- end -->"
        text = re.sub(pattern, _between(change), text, flags=re.DOTALL)
    return text


def _between(change):
    return lambda found: f"{found['open']}\n{change(found)}\n<!-- end -->"


def _table(found: re.Match[str]) -> str:
    lines = report_table(found[2], ROOT / "results", "markdown").splitlines()
    shown = [line for line in lines if line.startswith(("|", "**"))]
    # A title is a paragraph of its own.
    return "\n".join(f"\n{line}\n" if line.startswith("**") else line for line in shown).strip()


def _rows(found: re.Match[str]) -> str:
    table = report_table(found[2], ROOT / "results", "markdown")
    header, _, *rows = [_cells(line) for line in table.splitlines() if line.startswith("|")]
    measured = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    first, line, *shown = found["body"].splitlines()
    columns = _cells(first)[1:]
    new = []
    for row in shown:
        link = _cells(row)[0]
        name = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", link)
        new.append(f"| {' | '.join([link, *(measured[name][column] for column in columns)])} |")
    return "\n".join([first, line, *new])


def _verdicts(_: re.Match[str]) -> str:
    found: dict[str, dict[str, str]] = {}
    for line in read_frames(ROOT / "results")["controls"].itertuples():
        row = get_row(line.row)
        if row.reference in _REFERENCES and line.host and not line.changed:
            name = f"`{row.control}`" if row.control else row.model
            cell = f"{_DECIDED.get(line.verdict, '')}{line.paired:+.3f}"
            found.setdefault(name, {})[row.reference] = cell
    lines = [
        f"| FOG - control | {' | '.join(_REFERENCES.values())} |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, cells in found.items():
        lines.append(f"| {name} | {' | '.join(cells.get(one, '–') for one in _REFERENCES)} |")
    return "\n".join(lines)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(refreshed(page.read_text(encoding="utf-8")), encoding="utf-8")

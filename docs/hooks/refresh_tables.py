"""Writes the tables of README and docs anew from the ledgers in ``results/``.

    python docs/hooks/refresh_tables.py

A table stands between ``<!-- fognn table NAME --markdown -->`` and ``<!-- end -->``; in the README,
``<!-- rows of: ... -->`` keeps its rows, links and columns, and takes their cells from the table.
"""

import re
from pathlib import Path

from fognn.report.tables import report_table

ROOT = Path(__file__).parents[2]
_END = r"\n(.*?)\n<!-- end -->"


def main() -> None:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        for marker, change in (("fognn", _table), ("rows of: fognn", _rows)):
            pattern = rf"<!-- {marker} table ([\w-]+) --markdown -->" + _END
            text = re.sub(pattern, change, text, flags=re.DOTALL)
        path.write_text(text, encoding="utf-8")


def _table(found: re.Match[str]) -> str:
    table = report_table(found[1], ROOT / "results", "markdown").strip("\n")
    return found[0].replace(found[2], table)


def _rows(found: re.Match[str]) -> str:
    table = report_table(found[1], ROOT / "results", "markdown")
    header, _, *rows = [_cells(line) for line in table.splitlines() if line.startswith("|")]
    measured = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    first, line, *shown = found[2].splitlines()
    columns = _cells(first)[1:]
    new = []
    for row in shown:
        link = _cells(row)[0]
        name = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", link)
        new.append(f"| {' | '.join([link, *(measured[name][column] for column in columns)])} |")
    return found[0].replace(found[2], "\n".join([first, line, *new]))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


if __name__ == "__main__":
    main()

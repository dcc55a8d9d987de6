"""Writes the tables of README and docs anew from the ledgers in ``results/``.

    python docs/hooks/refresh_tables.py

A table stands between ``<!-- fognn table NAME --markdown -->`` and ``<!-- end -->``; in the README,
``<!-- rows of: ... -->`` keeps its rows, links and columns, and takes their cells from the table.
``<!-- claims -->`` is the short table of claims, ``<!-- verdicts -->`` that of ZINC's controls,
``<!-- results/chaos.json -->`` that of the campaign.
"""

import json
import re
from pathlib import Path

from fognn.experiments import get_row
from fognn.report.claims import judge, read_frames
from fognn.report.tables import report_table

ROOT = Path(__file__).parents[2]
_END = r"\n(.*?)\n?<!-- end -->"
_CLAIMS = "docs/results.md#claims"
_PLACES = {
    "pattern": "docs/results.md#pattern",
    "cluster": "docs/results.md#cluster",
    "zinc": "docs/results.md#zinc",
    "tsp": "docs/results.md#tsp",
    "widths": "docs/results.md#widths",
    "limits": "docs/results.md#imdb-multi",
}
_GROUPS = {
    "hold here": ("better",),
    "do not hold here": ("worse",),
    "not decided: too few runs, or intervals with 0": (
        *("partly", "inconclusive", "maybe better", "maybe worse"),
    ),
    "not measured yet": ("not measured",),
}
_REFERENCES = {
    "controls/zinc-gcn-kron": "GCN+FOG",
    "controls/zinc-gin-kron": "GIN+FOG",
    "controls/zinc-alone-kron": "FOG",
}
_DECIDED = {"better": "**better**, ", "worse": "**worse**, "}


def main() -> None:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        for marker, change in (("fognn", _table), ("rows of: fognn", _rows)):
            pattern = rf"<!-- {marker} table ([\w-]+) --markdown -->" + _END
            text = re.sub(pattern, change, text, flags=re.DOTALL)
        for marker, table in (
            ("results/chaos.json", chaos_table),
            ("claims", claims_table),
            ("verdicts", verdicts_table),
        ):
            if f"<!-- {marker} -->" in text:
                new = f"<!-- {marker} -->\n{table()}\n<!-- end -->"
                pattern = rf"<!-- {marker} -->" + _END
                text = re.sub(pattern, lambda _, new=new: new, text, flags=re.DOTALL)
        path.write_text(text, encoding="utf-8")


def _table(found: re.Match[str]) -> str:
    table = report_table(found[1], ROOT / "results", "markdown").strip("\n")
    return f"<!-- fognn table {found[1]} --markdown -->\n{table}\n<!-- end -->"


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


def chaos_table() -> str:
    """The counts of ``results/chaos.json``, in markdown."""
    parts = json.loads((ROOT / "results" / "chaos.json").read_text(encoding="utf-8"))
    head = ("part", "trials", "same result", "one line", "another valid input", "findings")
    lines = [f"| {' | '.join(head)} | commit |", "| --- " + "| ---: " * 5 + "| --- |"]
    for part in ("kills", "sweeps", "writers", "disks", "hostile", "fuzz"):
        if part not in parts:
            continue
        for name, counts in sorted(parts[part]["counts"].items()):
            cells = [counts.get(key, 0) for key in ("same", "line", "done", "finding")]
            numbers = " | ".join(f"{number:,}" for number in (sum(cells), *cells))
            lines.append(f"| {name} | {numbers} | `{parts[part]['commit'][:8]}` |")
    return "\n".join(lines)


def claims_table() -> str:
    """The paper's claims by verdict, in markdown; each that is measured is a link."""
    judged = judge(read_frames(ROOT / "results"))
    lines = [f"| the paper's [{len(judged)} claims]({_CLAIMS}) | |", "| --- | --- |"]
    for name, verdicts in _GROUPS.items():
        group = [judgement.claim for judgement in judged if judgement.verdict in verdicts]
        links = [f"[{claim.text}]({_PLACES.get(claim.table, _CLAIMS)})" for claim in group]
        if "not measured" in verdicts and group:
            links = [f"[{len(group)}]({_CLAIMS})"]
        lines.append(f"| {name} | {'; '.join(links) or 'none'} |")
    return "\n".join(lines)


def verdicts_table() -> str:
    """Whether FOG is better than each control on ZINC, and the difference, in markdown."""
    found: dict[str, dict[str, str]] = {}
    for line in read_frames(ROOT / "results")["controls"].itertuples():
        row = get_row(line.row)
        if row.reference in _REFERENCES and line.host and not line.changed:
            name = f"`{row.control}`" if row.control else row.model
            cell = f"{_DECIDED.get(line.verdict, '')}{line.paired:+.3f}"
            found.setdefault(name, {})[row.reference] = cell
    lines = [
        f"| FOG - control | {' | '.join(_REFERENCES.values())} |",
        "| --- " + "| ---: " * 3 + "|",
    ]
    for name, cells in found.items():
        lines.append(f"| {name} | {' | '.join(cells.get(one, '–') for one in _REFERENCES)} |")
    return "\n".join(lines)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


if __name__ == "__main__":
    main()

import re
from pathlib import Path

import pytest

from fognn.report.tables import report_table

ROOT = Path(__file__).parents[1]
TABLE = re.compile(r"<!-- fognn table ([\w-]+) --markdown -->\n(.*?)\n<!-- end -->", re.DOTALL)
SHOWN = [
    pytest.param(table, text, id=f"{path.name}-{table}")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for table, text in TABLE.findall(path.read_text(encoding="utf-8"))
]


def test_the_readme_shows_what_was_measured() -> None:
    assert {"README.md-zinc", "README.md-limits"} <= {str(shown.id) for shown in SHOWN}


@pytest.mark.parametrize(("table", "text"), SHOWN)
def test_a_table_is_what_the_ledger_says(table: str, text: str) -> None:
    assert text in report_table(table, ROOT / "results", "markdown")

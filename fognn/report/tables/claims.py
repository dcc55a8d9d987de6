r"""The claims of the paper and what the measurements say: the command ``fognn table claims``."""

from pathlib import Path

from fognn.experiments.tables import TABLES
from fognn.report.claims import RULE, judge_all
from fognn.report.measurements import read_measurements
from fognn.report.tables.forms import in_form
from fognn.report.text import NONE

__all__ = ["claims_table"]

_HEADER = ["claim of the paper", "table", "here", "comparisons"]


def claims_table(results: Path, form: str = "text") -> str:
    r"""A row for each claim: whether it holds here, and how much of it is measured.

    Args:
        results (Path): The folder of the ledgers.
        form (str, optional): As in :func:`~fognn.report.tables.report_table`.
            (default: :obj:`"text"`)
    """
    rows = [
        [
            judgement.claim.text,
            str(TABLES[judgement.claim.table].number),
            judgement.text,
            judgement.measured or NONE,
        ]
        for judgement in judge_all(read_measurements(results))
    ]
    notes = [RULE, "fognn report makes a page with all comparisons."]
    return in_form(form, "Claims of the paper, measured here.", _HEADER, rows, notes)

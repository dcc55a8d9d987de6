r"""All comparisons of ``results/compare`` in one table: the command ``fognn table compare``."""

from pathlib import Path

from fognn.report.measurements import read_comparisons
from fognn.report.site.compare_answer import NetworkRow, network_rows
from fognn.report.tables.forms import in_form
from fognn.report.text import NONE

__all__ = ["comparisons_table"]

_HEADER = [
    "data",
    "host",
    "metric",
    "alone",
    "with FOG",
    "FOG − host",
    "95 % interval",
    "over",
]


def comparisons_table(results: Path, form: str = "text") -> str:
    r"""A row for each host of each comparison: the host, the host with FOG, and their difference.

    Args:
        results (Path): The folder of the ledgers.
        form (str, optional): As in :func:`~fognn.report.tables.report_table`.
            (default: :obj:`"text"`)
    """
    rows = []
    for name, (entries, _) in sorted(read_comparisons(results).items()):
        found = network_rows(entries)
        alone = {(row.label, row.note): row for row in found if row.host is None}
        for row in found:
            if row.host is not None and (row.host, row.note) in alone:
                rows.append(_cells(name, alone[row.host, row.note], row))
    if not rows:
        raise ValueError(f"results must have a comparison, {results}/compare has none")
    title = "Hosts with and without FOG, at the same number of parameters."
    notes = [
        "The test split at the best validation epoch, mean ± standard deviation; higher is better "
        "for accuracy and ROC-AUC, lower for MAE and RMSE. The difference is between runs of the "
        "same seed (or fold), with its 95 % interval by Student's t; folds share training data, so "
        "that theirs is too narrow. * the interval over three seeds or more "
        "does not contain 0."
    ]
    return in_form(form, title, _HEADER, rows, notes, range(3, 7))


def _cells(name: str, host: NetworkRow, fog: NetworkRow) -> list[str]:
    metric, paired = fog.metric, fog.paired
    interval = (metric.interval(paired.interval) if paired else "") or NONE
    star = " *" if fog.verdict in ("better", "worse") else ""
    return [
        name,
        f"{host.label} ({fog.note})" if fog.note else host.label,
        metric.axis,
        *(_score(row) for row in (host, fog)),
        NONE if paired is None else metric.signed(paired.difference) + star,
        interval,
        NONE if paired is None else paired.note.partition(":")[0],
    ]


def _score(row: NetworkRow) -> str:
    sd = "" if row.sd is None else f" ± {row.metric.number(row.sd)}"
    return f"{row.metric.number(row.score)}{sd}"

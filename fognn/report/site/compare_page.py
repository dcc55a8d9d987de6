r"""The content of the page of a comparison of networks with and without FOG."""

from collections.abc import Sequence
from typing import Any

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.search import Choice
from fognn.report.metric import METRICS
from fognn.report.site.compare_answer import AT, OVER, network_rows, sentence_of
from fognn.report.site.run_comparison import View, runs_context
from fognn.report.text import joined

__all__ = ["COMPARED", "comparison_context", "comparison_link"]

COMPARED = View(AT, OVER, searched=("training.lr",))


def comparison_context(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> dict[str, Any]:
    r"""The page of a comparison: that of its runs, with the answer and the learning rates.

    Args:
        entries (sequence of LedgerEntry): The runs with the chosen learning rates.
        choices (sequence of Choice): The search of each network.
    """
    context = runs_context(entries, COMPARED)
    part = context["datasets"][0]
    part["findings"].insert(0, context["summary"])
    part["searches"] = _searches(choices)
    return context | {"title": _title(entries), "summary": sentence_of(network_rows(entries))}


def comparison_link(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> dict[str, str]:
    r"""The title and the answer of a comparison, for the front page."""
    return {"title": _title(entries), "summary": sentence_of(network_rows(entries))}


def _title(entries: Sequence[LedgerEntry]) -> str:
    hosts = dict.fromkeys(entry.label.removesuffix("+FOG") for entry in entries)
    return f"{joined(list(hosts))}, with and without FOG, on {entries[0].data}"


def _searches(choices: Sequence[Choice]) -> dict[str, Any]:
    rates = sorted({trial.lr for choice in choices for trial in choice.tried}, reverse=True)
    rows = []
    for choice in choices:
        metric = METRICS[choice.metric]
        scores = {
            trial.lr: "failed" if trial.score is None else metric.number(trial.score)
            for trial in choice.tried
        }
        cells = [scores.get(rate, "") + " *" * (rate == choice.lr) for rate in rates]
        rows.append([choice.label, *cells])
    axis = joined(list(dict.fromkeys(METRICS[choice.metric].axis for choice in choices)))
    return {
        "how": (
            "Each network tried the same learning rates with the first seed. The one with the best "
            "validation metric at its best epoch, marked with a star, was taken for all seeds. The "
            "test split was not used."
        ),
        "caption": f"Validation {axis} of each learning rate",
        "header": ["network", *(f"{rate:g}" for rate in rates)],
        "rows": rows,
    }

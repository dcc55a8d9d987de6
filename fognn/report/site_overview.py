r"""What the front page shows: the claims with their verdicts, and the tables."""

from collections.abc import Sequence
from typing import Any

from fognn.paper.tables import TABLES
from fognn.report.result_notes import commits_of
from fognn.report.run_groups import NONE
from fognn.report.site_claims import claims
from fognn.report.site_measurements import Measurements
from fognn.report.site_numbers import interval, signed
from fognn.report.site_verdicts import VERDICTS, Comparison, Judgement, judge
from fognn.report.words import capital, joined, many

__all__ = ["overview_context"]

_COUNTS = {
    "holds": ("holds here", "hold here"),
    "fails": ("does not", "do not"),
    "unclear": ("is not clear", "are not clear"),
    "once": ("was seen once", "were seen once"),
    "against": ("was seen once the other way", "were seen once the other way"),
    "missing": ("is not measured yet", "are not measured yet"),
}
_HEADER = [
    "better, says the paper",
    "than",
    "advantage here",
    "95 % interval",
    "pairs",
    "in the paper",
]


def overview_context(measurements: Measurements) -> dict[str, Any]:
    r"""What the template of the front page needs.

    Args:
        measurements (Measurements): What was measured.
    """
    judged = [judge(claim, measurements) for claim in claims()]
    return {
        "title": "Second-order message passing, measured again",
        "summary": _summary(judged),
        "how": (
            "A claim is a set of comparisons between two networks, each over the seeds that both "
            "have. It holds here if the 95 % interval of every difference lies on the paper's side "
            "of 0, and does not if one lies on the other side. With one seed there is no interval: "
            "then it was seen once, whichever way, and that is not sure."
        ),
        "made": _made(measurements),
        "claims": [_claim(j) for j in judged if j.verdict != "missing"],
        "waiting": [_claim(j) for j in judged if j.verdict == "missing"],
        "tables": [_table(name, measurements) for name in TABLES],
        "figures": [],
        "sortable": True,
    }


def _summary(judged: Sequence[Judgement]) -> str:
    counts = {
        verdict: sum(judgement.verdict == verdict for judgement in judged) for verdict in _COUNTS
    }
    parts = [f"{count} {_COUNTS[verdict][count > 1]}" for verdict, count in counts.items() if count]
    return f"Of {many(len(judged), 'claim')} of the paper, {joined(parts)}."


def _claim(judgement: Judgement) -> dict[str, Any]:
    return {
        "text": judgement.claim.text,
        "quote": judgement.claim.quote,
        "table": judgement.claim.table,
        "kind": judgement.verdict,
        "verdict": capital(judgement.text) + ".",
        "sure": judgement.sure,
        "header": _HEADER,
        "rows": [_comparison(comparison) for comparison in judgement.comparisons],
    }


def _comparison(comparison: Comparison) -> list[str]:
    metric, paired = comparison.metric, comparison.paired
    advantage = comparison.advantage
    return [
        comparison.better.label,
        comparison.than.label,
        NONE if advantage is None else signed(advantage, metric),
        interval(comparison.interval, metric) or NONE,
        VERDICTS["missing"] if paired is None else paired.note,
        signed(comparison.printed, metric),
    ]


def _table(name: str, measurements: Measurements) -> dict[str, Any]:
    lines = measurements.tables[name]
    rows = [line for line in lines if not line.ours]
    seeds = [len(line.entries) for line in rows]
    return {
        "name": name,
        "title": capital(TABLES[name].title),
        "number": TABLES[name].number,
        "measured": sum(map(bool, seeds)),
        "rows": len(rows),
        "runs": sum(len(line.entries) for line in lines),
        "most": max(seeds),
        "fewest": min(seeds),
    }


def _made(measurements: Measurements) -> str:
    r"""How many runs there are, when they were made, and from which commits."""
    entries = list(measurements.entries())
    if not entries:
        return ""
    days = sorted({entry.finished[:10] for entry in entries})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    hours = sum(entry.result["seconds"] for entry in entries) / 3600
    devices = joined(sorted({str(entry.result["device"]).upper() for entry in entries}))
    return (
        f"It rests on {many(len(entries), 'finished run')} ({span}; {hours:,.1f} hours of training "
        f"on {devices}, from commit {joined(commits_of(entry.result for entry in entries))})."
    )

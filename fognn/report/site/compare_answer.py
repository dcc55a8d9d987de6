r"""The answer of a comparison: the figures of each network, and a sentence."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.pairing import Paired, paired_difference
from fognn.experiments.scores import peak_memory, score_of, validation_of
from fognn.report.claims import FEW, verdict_of
from fognn.report.metric import METRICS, Metric
from fognn.report.site.run_page import settings_of
from fognn.report.text import capital, joined, pluralize

__all__ = ["AT", "OVER", "NetworkRow", "network_rows", "sentence_of", "winner_of"]

# The figures of a comparison: those of the network that fognn.load and fognn predict take.
AT, OVER = "best", "items"
# Settings in which the networks of a comparison may differ: their own, and the chosen rate.
_OWN = ("model.", "training.lr", "seed", "machine.", "data.folder")


@dataclass(frozen=True)
class NetworkRow:
    r"""The figures of a network.

    Args:
        label (str): Its name, such as ``"GIN+FOG"``.
        entries (tuple): Its runs with the chosen learning rate, in the order of the seeds.
        score (float): The mean of the metric over seeds, on the test split at the best validation
            epoch, over all items; without a test split, on the validation split.
        sd (float, optional): Its standard deviation over seeds, or over folds; :obj:`None` for one
            seed.
        validation (float): The mean of the validation metric at the best epoch.
        metric (Metric): The metric.
        host (str, optional): The label of its host, for a network with FOG.
            (default: :obj:`None`)
        paired (Paired, optional): The difference to its host. (default: :obj:`None`)
        note (str, optional): The settings that tell it from the same network in another
            comparison of the same name. (default: :obj:`""`)
    """

    label: str
    entries: tuple[LedgerEntry, ...]
    score: float
    sd: float | None
    validation: float
    metric: Metric
    host: str | None = None
    paired: Paired | None = None
    note: str = ""

    @property
    def parameters(self) -> int:
        r"""Number of trainable parameters."""
        return int(self.entries[0].result["parameters"])

    @property
    def lr(self) -> float:
        r"""The chosen learning rate."""
        return float(self.entries[0].config["training"]["lr"])

    @property
    def seconds_per_epoch(self) -> float:
        r"""The mean time of an epoch in seconds."""
        return statistics.fmean(entry.result["seconds_per_epoch"] for entry in self.entries)

    @property
    def peak_memory(self) -> int | None:
        r"""The largest memory in bytes; :obj:`None` if it was not measured."""
        return peak_memory(self.entries)

    @property
    def verdict(self) -> str:
        r"""``"better"``, ``"worse"`` or ``"cannot be told"`` than its host; ``"not sure"`` on
        one or two seeds; empty without a host."""
        if self.host is None:
            return ""
        return _VERDICTS[verdict_of(self.paired, self.metric)]


_VERDICTS = {
    **{"holds": "better", "fails": "worse", "unclear": "cannot be told"},
    **{"seen": "not sure", "against": "not sure", "missing": "not measured"},
}


def network_rows(entries: Sequence[LedgerEntry]) -> list[NetworkRow]:
    r"""Returns a row for each network of a comparison; one with FOG has its difference to its host.

    Args:
        entries (sequence of LedgerEntry): The runs with the chosen learning rates.
    """
    groups: dict[tuple[str, str, str], list[LedgerEntry]] = {}
    for entry in entries:
        groups.setdefault((_training(entry), entry.row, entry.variant), []).append(entry)
    several = {group[:2] for group in groups}
    rows = []
    for (training, row, variant), own in groups.items():
        own.sort(key=lambda entry: entry.seed)
        scores = [score_of(entry, AT, OVER) for entry in own]
        values = [score.value for score in scores]
        spreads = [score.spread for score in scores if score.spread is not None]
        sd = statistics.fmean(spreads) if spreads else None
        if not spreads and len(values) > 1:
            sd = statistics.stdev(values)
        host = groups.get((training, row, "")) if variant else None
        paired = paired_difference(host[0].label, own, host, AT, OVER) if host else None
        alike = [group for group in several if group[1].rpartition("-")[0] == _host(row)]
        note = f"{_budget(row):,} parameters" if len(alike) > 1 else ""
        rows.append(
            NetworkRow(
                own[0].label,
                tuple(own),
                statistics.fmean(values),
                sd,
                statistics.fmean(validation_of(entry) for entry in own),
                METRICS[own[0].result["metric"]],
                host[0].label if host else None,
                paired,
                note,
            )
        )
    return rows


def sentence_of(rows: Sequence[NetworkRow]) -> str:
    r"""Returns the answer in a sentence: for each host whether FOG is better, worse, or whether it
    cannot be told.

    Args:
        rows (sequence of NetworkRow): The networks.
    """
    with_fog = [row for row in rows if row.paired is not None]
    if not with_fog:
        return "No host has runs with and without FOG, so there is nothing to compare."
    parts = [_finding(row) for row in with_fog if row.verdict != "cannot be told"]
    unclear = [row for row in with_fog if row.verdict == "cannot be told"]
    if unclear and parts:
        parts.append(
            f"on {joined([f'{row.host}{_note(row)}' for row in unclear])} it cannot be told"
        )
    elif unclear:
        each = [f"on {row.host}{_note(row)} {_amount(row, signed=True)}" for row in unclear]
        over = joined(list(dict.fromkeys(_over(row) for row in unclear)))
        parts.append(f"it cannot be told whether FOG helps ({joined(each)}, over {over})")
    text = capital("; ".join(parts)) if unclear and len(parts) == 1 else "; ".join(parts)
    few = [row.paired for row in with_fog if row.paired and row.verdict == "not sure"]
    if few:
        folds = any(paired.over == "fold" for paired in few)
        why = "folds share training data" if folds else "another seed may show the opposite"
        text += f"; {FEW}: {why}"
    return f"{text}."


def winner_of(rows: Sequence[NetworkRow]) -> NetworkRow | None:
    r"""Returns the network with the best validation metric, the mean over seeds; :obj:`None`
    without networks. The test split is not used."""
    if not rows:
        return None
    best = max if rows[0].metric.higher_is_better else min
    return best(rows, key=lambda row: row.validation)


def _finding(row: NetworkRow) -> str:
    assert row.paired is not None
    ahead = row.metric.advantage(row.paired.difference, 0.0) > 0
    verb = "was" if row.verdict == "not sure" else "is"
    return (
        f"{row.label}{_note(row)} {verb} {'better' if ahead else 'worse'} by {_amount(row)} over "
        f"{_over(row)}"
    )


def _amount(row: NetworkRow, signed: bool = False) -> str:
    r"""The difference with half its interval, to two digits of the latter, and its unit."""
    assert row.paired is not None
    difference, ends = row.paired.difference, row.paired.interval
    half = None if ends is None else (ends[1] - ends[0]) / 2
    # Equal differences of all seeds have an interval of rounding errors.
    scale = half if half and half > 1e-4 * abs(difference) else abs(difference)
    digits = min(8, max(0, 1 - math.floor(math.log10(scale)))) if scale else 1
    text = f"{abs(difference):.{digits}f}"
    if signed and float(text):
        text = f"{'−' if difference < 0 else '+'}{text}"
    if half is not None:
        text += f" ± {half:.{digits}f}"
    label = row.metric.label
    return f"{text} points of {label}" if row.metric.percent else f"{text} {label}"


def _over(row: NetworkRow) -> str:
    assert row.paired is not None
    return pluralize(row.paired.pairs, row.paired.over)


def _note(row: NetworkRow) -> str:
    return f" ({row.note})" if row.note else ""


def _training(entry: LedgerEntry) -> str:
    r"""The settings that the networks of a comparison have in common, as text."""
    return str(sorted((k, v) for k, v in settings_of(entry).items() if not k.startswith(_OWN)))


def _host(row: str) -> str:
    return row.rpartition("-")[0]


def _budget(row: str) -> int:
    text = row.rpartition("-")[2]
    return int(text) if text.isdecimal() else 0

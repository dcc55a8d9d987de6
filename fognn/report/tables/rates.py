r"""How much of each gain is due to learning rates: the command ``fognn table rates``."""

from pathlib import Path

from fognn.experiments.fair import FairPair, Side, fair_pairs
from fognn.experiments.pairing import Paired
from fognn.experiments.search import choices_of
from fognn.experiments.tables import TABLES
from fognn.report.metric import METRICS, Metric
from fognn.report.tables.forms import in_form
from fognn.report.text import NONE, pluralize

__all__ = ["rates_table"]

_HEADER = [
    "host",
    "paper: host, FOG",
    "FOG − host",
    "chosen: host, FOG",
    "FOG − host, equal tries",
    "due to settings",
    "tries each",
]


def rates_table(results: Path, form: str = "text") -> str:
    r"""A row for each host: its difference to the host with FOG at the paper's settings, and where
    both chose learning rate and weight decay among the same tries, on validation.

    Args:
        results (Path): The folder of the ledgers.
        form (str, optional): As in :func:`~fognn.report.tables.report_table`.
            (default: :obj:`"text"`)
    """
    searched = [name for name in TABLES if choices_of(name, results).path.exists()]
    parts = []
    for name in searched or ["zinc"]:
        pairs = fair_pairs(name, results)
        if not pairs:
            continue
        metric = METRICS[pairs[0].host.planned.config.training.metric]
        title = (
            f"{TABLES[name].title}: {metric.axis}, {metric.direction}; how much of each gain is "
            "due to settings? Ours, not in the paper."
        )
        rows = [_cells(pair, metric) for pair in pairs]
        parts.append(in_form(form, title, _HEADER, rows, [_note(name)], range(1, len(_HEADER))))
    return "\n\n".join(parts)


def _cells(pair: FairPair, metric: Metric) -> list[str]:
    sides = (pair.host, pair.fog)
    tries = NONE
    if pair.host.tried and pair.fog.tried:
        same = pair.host.tried == pair.fog.tried
        tries = str(len(pair.host.tried)) if same else "not equal"
    own, chosen = ("; ".join(map(text, sides)) for text in (_own, _chosen))
    return [
        pair.host.planned.label,
        own,
        _difference(pair.printed, metric),
        chosen,
        _difference(pair.fair, metric),
        "nothing" if pair.settings and own == chosen else _difference(pair.settings, metric),
        tries,
    ]


def _setting(lr: float, decay: float) -> str:
    return f"{lr:g}" if decay == 0 else f"{lr:g} / {decay:g}"


def _own(side: Side) -> str:
    training = side.planned.config.training
    return _setting(training.lr, training.weight_decay)


def _chosen(side: Side) -> str:
    if side.choice is None:
        return "not run"
    return _setting(side.choice.lr, side.choice.weight_decay)


def _difference(paired: Paired | None, metric: Metric) -> str:
    if paired is None:
        return "not run"
    text = metric.signed(paired.difference)
    if paired.interval is not None:
        text += f" {metric.interval(paired.interval)}"
    return f"{text}, {pluralize(paired.pairs, paired.over)}"


def _note(table: str) -> str:
    return (
        "Settings: learning rate, and after a slash the weight decay, if there is one. The paper "
        "gives hosts and hosts with FOG different ones. Chosen: by validation over items, each "
        "run at its best epoch, the first seed, among the same tries for both "
        f"(fognn reproduce {table} --search). Due to settings: the first difference minus the "
        "second, over the seeds that have both; nothing, if the paper's settings are chosen. "
        "Intervals are of 95 %, by Student's t; one seed has none."
    )

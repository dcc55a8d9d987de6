r"""Any finished runs as one :class:`pandas.DataFrame`, for the page that compares them."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fognn.experiments.differences import difference_of
from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.results import add_difference, figures_of, typed
from fognn.experiments.wording import METRICS, NONE, joined, pluralize
from fognn.report.text import mebibytes
from fognn.training.settings import flat

__all__ = ["finding", "network_rows", "runs_frame", "settings_of"]

_AT, _OVER = "last", "batches"
# Settings that do not make two runs different: the seed and the machine.
_SAME = ("seed", "machine.", "data.folder")


def settings_of(entry: LedgerEntry) -> dict[str, str]:
    r"""The settings that make a run what it is, as text."""
    settings = flat(entry.config)
    return {name: str(v) for name, v in settings.items() if not name.startswith(_SAME)}


def runs_frame(entries: Sequence[LedgerEntry]) -> pd.DataFrame:
    r"""Returns a row for each network, with columns as in :mod:`fognn.experiments.results`.

    Runs that differ only in their seed or in the machine are one row. A network with FOG is
    compared with the same network without it, the one with the most settings in common; two rows
    that are no such pair are compared with each other.

    Args:
        entries (list): Runs on one dataset.
    """
    groups: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        groups.setdefault(str(sorted(settings_of(entry).items())), []).append(entry)
    lines = []
    for own in groups.values():
        alike = [g[0] for g in groups.values() if g[0].label == own[0].label]
        lines.append(
            {
                **{"table": "runs", "row": "", "data": own[0].data, "ours": False},
                "network": own[0].label + _difference(own[0], alike),
                "metric": own[0].result["metric"],
                **figures_of(own, _AT, _OVER),
            }
        )
    hosts = [_host(line, lines) for line in lines]
    if len(lines) == 2 and hosts == [None, None]:
        hosts[1] = lines[0]
    for line, host in zip(lines, hosts, strict=True):
        add_difference(line, host, False, _AT, _OVER)
    return typed(lines)


def _difference(entry: LedgerEntry, others: Sequence[LedgerEntry]) -> str:
    r"""The settings that tell a network from others of the same name."""
    mine, every = settings_of(entry), [settings_of(other) for other in others]
    names = dict.fromkeys(name for each in every for name in each)
    own = [
        f"{name} {mine.get(name, NONE)}"
        for name in names
        if len({each.get(name, NONE) for each in every}) > 1
    ]
    return f" ({', '.join(own)})" if own else ""


def _host(line: dict[str, Any], lines: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    one = line["entries"][0]
    hosts = [other for other in lines if one.model == f"{other['entries'][0].model}+fog"]

    def unequal(host: dict[str, Any]) -> int:
        mine, theirs = settings_of(one), settings_of(host["entries"][0])
        return sum(mine.get(name) != theirs.get(name) for name in mine | theirs)

    return min(hosts, key=unequal, default=None)


def finding(line: Any, frame: pd.DataFrame) -> str:
    r"""What a row says of its host, in sentences: the verdict, and whether it is that of FOG alone.

    Args:
        line (tuple): A row of :func:`runs_frame` that has a host.
        frame (DataFrame): All rows.
    """
    host = next(other for other in frame.itertuples() if other.network == line.host)
    found, metric = difference_of(line), METRICS[line.metric]
    if found is None:
        return f"{line.network} and {line.host} have no seed in common."
    text = (
        f"{line.network} against {line.host}: {line.verdict}, {metric.label} "
        f"{metric.number(line.mean)} and {metric.number(host.mean)} ({metric.direction}), "
        f"difference {metric.signed(found.value)} {metric.interval(found.low, found.high)}"
    ).rstrip()
    text += f" over {pluralize(found.pairs, f'common {found.over}')}."
    mine, theirs = settings_of(line.entries[0]), settings_of(host.entries[0])
    names = (name for name in mine | theirs if not name.startswith("model."))
    unequal = [name for name in names if mine.get(name) != theirs.get(name)]
    if unequal:
        pairs = [f"{name} ({mine.get(name)} and {theirs.get(name)})" for name in unequal]
        text += f" They also differ in {joined(pairs)}."
    return text


def network_rows(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    r"""The header and the rows of a table of networks, for a page."""
    metric = METRICS[frame["metric"].iloc[0]]
    split = "validation" if frame["figure"].iloc[0].startswith("val") else "test"
    header = ["network", "parameters", "learning rate", f"{split} {metric.axis}", "seeds"]
    header += ["difference", "95 % interval", "verdict", "epochs", "s/epoch", "memory"]
    rows = []
    for line in frame.itertuples():
        found = difference_of(line)
        spread = "" if pd.isna(line.sd) else f" ± {metric.number(line.sd)}"
        note = getattr(line, "note", "")
        memory = None if pd.isna(line.peak_memory) else int(line.peak_memory)
        rows.append(
            [
                f"{line.network} ({note})" if note else line.network,
                f"{line.parameters:,}",
                f"{line.lr:g}",
                f"{metric.number(line.mean)}{spread}",
                str(len(line.seeds)),
                NONE if found is None else metric.signed(found.value),
                (metric.interval(found.low, found.high) if found else "") or NONE,
                line.verdict or NONE,
                f"{line.epochs:.0f}",
                f"{line.seconds_per_epoch:.2f}",
                mebibytes(memory),
            ]
        )
    return header, rows

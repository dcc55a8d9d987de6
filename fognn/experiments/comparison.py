r"""Comparison of the measured figures with those that the paper prints."""

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.pairing import Paired, paired_difference
from fognn.experiments.rows import get_row
from fognn.experiments.scores import check_result, held_out_of, score_of
from fognn.experiments.table_line import TableLine, mean_of
from fognn.experiments.tables import (
    TABLES,
    TableRun,
    host_variant,
    is_host,
    label_of,
    plan,
    row_named,
    variant_of,
)
from fognn.training import Config
from fognn.training.settings import flat
from fognn.utils import checks

__all__ = ["Paired", "TableLine", "compare"]

# The paper searched these for each row: a run with other values is still compared with the paper.
SEARCHED = ("training.lr", "training.weight_decay")
# Settings that may differ between the runs of a line: the seed, and the machine.
_IGNORED = ("seed", "machine.", "data.folder")


def compare(
    table: str,
    entries: Sequence[LedgerEntry],
    at: str | None = None,
    over: str | None = None,
    minus: str | None = None,
) -> list[TableLine]:
    r"""Returns a line for each row of a table, measured or not, and for each measured variant of
    ours, in the order of the table.

    The figures are those of the test split. IMDB-MULTI has none: there, as in the paper, the figure
    is that of the best epoch of the mean curve over the held-out folds, regardless of :obj:`at` and
    :obj:`over`. It is the average over items, because the paper's figures for it are multiples of
    1 / 1,500, the number of graphs.

    Args:
        table (str): One of :obj:`fognn.experiments.rows.TABLES`.
        entries (list): The lines of the ledger.
        at (str, optional): The epoch of the figures: ``"last"``, or ``"best"`` for the best
            validation metric. (default: that of the table)
        over (str, optional): The average of the figures: over ``"batches"``, as in the public
            benchmark, or over ``"items"``. (default: that of the table)
        minus (str, optional): A row, named as in :func:`fognn.experiments.tables.plan`, which is
            subtracted from all rows of its dataset. (default: the host of a network with FOG; a
            control is subtracted from its reference)
    """
    at, over = TABLES[table].at if at is None else at, TABLES[table].over if over is None else over
    checks.one_of("compare", "at", at, ("last", "best"))
    checks.one_of("compare", "over", over, ("batches", "items"))
    places = {(p.row, p.variant): place for place, p in enumerate(plan(table))}
    groups: dict[tuple[str, str, tuple[str, ...]], list[LedgerEntry]] = {
        (row, variant, ()): [] for row, variant in places if not variant
    }
    for entry in entries:
        _check(table, entry)
        changed = tuple(_changes(entry))
        groups.setdefault((entry.row, entry.variant, changed), []).append(entry)
    lines = [_line(table, *key, group, at, over) for key, group in groups.items()]
    # A variant of a later version is not in the plan, and is sorted after those that are.
    lines.sort(
        key=lambda line: (
            places[line.row, ""],
            places.get((line.row, line.variant), len(places)),
            line.changed,
        )
    )
    if minus is not None:
        return _minus(minus, lines, at, over)
    return [_with_host(line, lines, at, over) for line in lines]


def _check(table: str, entry: LedgerEntry) -> None:
    if entry.table != table or entry.row not in {run.row for run in plan(table)}:
        raise ValueError(
            f"compare: entries must be of table {table!r}, got {entry.key!r} of table "
            f"{entry.table!r}, row {entry.row}"
        )
    check_result(entry)


def _changes(entry: LedgerEntry) -> list[str]:
    r"""Returns the settings in which a run differs from the protocol of its row."""
    try:
        config = Config.from_dict(entry.config)
        own = TableRun(entry.table, entry.row, entry.variant, entry.label, config).protocol
    except ValueError as error:
        raise ValueError(f"ledger line {entry.key!r}: {error}") from error
    mine, theirs = _compared(flat(config.to_dict())), _compared(flat(own.to_dict()))
    return [
        f"{name}={mine.get(name)}"
        for name in dict.fromkeys([*mine, *theirs])
        if mine.get(name) != theirs.get(name)
    ]


def _compared(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if not name.startswith(_IGNORED)}


def _line(
    table: str,
    row: str,
    variant: str,
    changed: tuple[str, ...],
    entries: list[LedgerEntry],
    at: str,
    over: str,
) -> TableLine:
    entries = sorted(entries, key=lambda entry: entry.seed)
    for one, other in itertools.pairwise(entries):
        if one.seed == other.seed:
            raise ValueError(
                "compare: entries must not have two runs of the same row and seed, got "
                f"{one.key!r} and {other.key!r}"
            )
    printed = get_row(row)
    label = label_of(printed, variant)
    line = TableLine(
        table, row, variant, f"{label} [{', '.join(changed)}]" if changed else label, changed
    )
    if not variant and _unsearched(changed) == ():
        line = replace(line, paper_mean=printed.mean, paper_sd=printed.sd)
    if not entries:
        return line
    scores = [score_of(entry, at, over) for entry in entries]
    values = tuple(score.value for score in scores)
    spreads = [score.spread for score in scores if score.spread is not None]
    held_out = [found for entry in entries if (found := held_out_of(entry)) is not None]
    return replace(
        line,
        entries=tuple(entries),
        values=values,
        mean=statistics.fmean(values),
        sd=mean_of(spreads) if spreads else statistics.stdev(values) if values[1:] else None,
        interval=scores[0].interval if len(scores) == 1 else None,
        held_out=mean_of(score.value for score in held_out),
        held_out_sd=mean_of(score.spread for score in held_out if score.spread is not None),
    )


def _unsearched(changed: Iterable[str]) -> tuple[str, ...]:
    return tuple(text for text in changed if text.partition("=")[0] not in SEARCHED)


def _with_host(line: TableLine, lines: list[TableLine], at: str, over: str) -> TableLine:
    r"""Returns the line with its difference to the same network without FOG, the host.

    The host is that with the same variant; or, if both are the paper's own rows, the host of the
    paper. A control has the difference of the row that it is a control of and the control.
    """
    if line.paper.reference:
        return _with_reference(line, lines, at, over)
    hosts = [
        host
        for host in lines
        if is_host(host.paper, line.paper)
        and (_alike(host, line) or not (host.variant or line.variant))
        and _unsearched(host.changed) == _unsearched(line.changed)
        and host.entries
    ]
    if not hosts or not line.entries:
        return line
    # Host and line may have different learning rates and decays, each from its own search; a host
    # with equal ones is preferred.
    host = max(hosts, key=lambda host: (_alike(host, line), host.changed == line.changed))
    paired = paired_difference(host.label, line.entries, host.entries, at, over)
    return replace(line, paired=paired)


def _with_reference(line: TableLine, lines: list[TableLine], at: str, over: str) -> TableLine:
    r"""Returns the line of a control with the difference "reference minus control"."""
    for other in lines:
        same = _unsearched(other.changed) == _unsearched(line.changed)
        if other.row == line.paper.reference and same and other.entries and line.entries:
            found = paired_difference(other.label, other.entries, line.entries, at, over)
            return replace(line, paired=found)
    return line


def _minus(name: str, lines: list[TableLine], at: str, over: str) -> list[TableLine]:
    r"""Returns the lines with their differences to the row of that name."""
    row, variant = row_named("compare: minus", lines[0].table, name)
    named = [line for line in lines if (line.row, line.variant, line.changed) == (row, variant, ())]
    if not named or not named[0].entries:
        raise ValueError(f"compare: minus must be a row with runs, got {name!r}, which has none")
    (base,) = named
    return [
        replace(line, paired=paired_difference(base.label, line.entries, base.entries, at, over))
        if line is not base and line.paper.dataset == base.paper.dataset
        else line
        for line in lines
    ]


def _alike(host: TableLine, line: TableLine) -> bool:
    return variant_of(host.paper, host.variant) == host_variant(line.paper, line.variant)

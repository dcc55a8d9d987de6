r"""The measured figures as one :class:`pandas.DataFrame`, with one row for each network.

:func:`table_frame` is a table of the paper or of our own, :func:`networks_frame` the networks of
``fognn compare`` or of any other runs. Their columns are:

* ``table``, ``row``, ``variant``, ``data``, ``network`` (its label); of tables also ``ours`` and
  ``changed``, the settings that are not those of the row's protocol (a tuple of texts such as
  ``"data.fraction=0.1"``), with ``fraction`` where it is the only one;
* ``metric``, ``figure`` (such as ``test.last.batches``), ``parameters``, ``lr``, ``epochs``,
  ``seconds_per_epoch``, ``peak_memory``, ``commits``, ``folds``;
* ``seeds``, ``values`` and ``entries`` (tuples, one item for each run), and over them ``mean``,
  ``sd`` (over ``sd_over``, seeds or folds), ``interval`` (of one seed of few-shot images, over test
  episodes), and ``validation``;
* ``paper_mean``, ``paper_sd``, ``difference`` (measured minus printed), ``off`` (the limits that it
  exceeds), ``held_out`` and ``held_out_sd``: of the paper's rows;
* ``host`` (the network that it is compared with), ``paired`` (their difference over the seeds that
  both have), ``low`` and ``high`` (its 95 % interval), ``pairs`` and ``paired_over`` (``"seed"`` or
  ``"fold"``), and ``verdict``. What is not known is NaN or empty.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.differences import (
    NONE,
    estimate,
    figure_of,
    paired_difference,
    value_of,
    verdict_of,
)
from fognn.experiments.ledger import LedgerEntry, ledger_of, readable
from fognn.experiments.protocols import config_of
from fognn.experiments.rows import TABLES, get_row
from fognn.experiments.search import SEARCHED, choices_of, without_trials
from fognn.experiments.tables import TableRun, is_host, label_of, plan, same_variant, slug_of
from fognn.training.config import flat
from fognn.utils import checks

Group = tuple[str, str, tuple[str, ...]]  # a row, a variant of it, and the changed settings
Line = dict[str, Any]  # a row of the frame


def table_frame(
    table: str,
    results: str | Path = "results",
    at: str | None = None,
    over: str | None = None,
    minus: str | None = None,
) -> pd.DataFrame:
    r"""Returns all networks of a table, measured or not, and each measured variant of ours, in the
    order of the table, without the trials of searches.

    The figures are those of the test split at an epoch (``"last"`` or ``"best"``), the mean over
    ``"batches"``, as in the public benchmark, or over ``"items"``; without a test split, see
    :func:`fognn.experiments.differences.figure_of`. ``minus`` names a row to subtract from all rows
    of its dataset, in place of the host (for a control, of its reference).
    """
    checks.known("table", "name", table, TABLES)
    at, over = at or TABLES[table].at, over or TABLES[table].over
    checks.one_of("table", "at", at, ("last", "best"))
    checks.one_of("table", "over", over, ("batches", "items"))
    results = readable(results)
    choices = choices_of(table, results).entries()
    places = {(run.row, run.variant): place for place, run in enumerate(plan(table))}
    groups: dict[Group, list[LedgerEntry]] = {
        (row, variant, ()): [] for row, variant in places if not variant
    }
    for entry in without_trials(ledger_of(table, results).entries(), choices):
        if entry.table != table:
            raise ValueError(f"table: {entry.key} must be a run of table {table!r}")
        groups.setdefault((entry.row, entry.variant, _changes(entry)), []).append(entry)
    # A variant of a later version is not in the plan, and comes after those that are.
    order = sorted(groups, key=lambda g: (places[g[0], ""], places.get(g[:2], len(places)), g[2]))
    lines = [_line(table, group, groups[group], at, over) for group in order]
    measured = [line for line in lines if line["entries"] and not line["changed"]]
    named = {slug_of(line["row"], line["variant"]): line for line in measured}
    if minus is not None:
        checks.known("table", "minus", minus, named)
    for line in lines:
        other, first = _pair(line, lines) if minus is None else (named[minus], False)
        if other is line or (other is not None and other["data"] != line["data"]):
            other = None
        add_difference(line, other, first, at, over)
    frame = _typed(lines)
    frame["difference"] = frame["mean"] - frame["paper_mean"]
    frame["off"] = [_off(line) for line in frame.itertuples()]
    return frame


def _changes(entry: LedgerEntry) -> tuple[str, ...]:
    r"""Returns the settings in which a run differs from the protocol of its row."""
    usual = TableRun(entry.table, entry.row, entry.variant, entry.label, entry.run).protocol
    mine, theirs = flat(entry.run.identity()), flat(usual.identity())
    return tuple(f"{k}={mine.get(k)}" for k in mine | theirs if mine.get(k) != theirs.get(k))


def _line(table: str, group: Group, entries: Sequence[LedgerEntry], at: str, over: str) -> Line:
    row, variant, changed = group
    paper = get_row(row)
    label = label_of(paper, variant)
    printed = not variant and not _unsearched(changed)
    name, _, value = changed[0].partition("=") if len(changed) == 1 else ("", "", "")
    return {
        "table": table,
        "row": row,
        "variant": variant,
        "changed": changed,
        "fraction": float(value) if name == "data.fraction" else None,
        "data": paper.dataset,
        "network": f"{label} [{', '.join(changed)}]" if changed else label,
        "ours": bool(variant or changed),
        "paper_mean": paper.mean if printed else None,
        "paper_sd": paper.sd if printed else None,
        "metric": config_of(paper).training.metric,
        **figures_of(entries, at, over),
    }


def _off(line: Any) -> str:
    r"""Returns the limits that a difference to the paper exceeds, so that it needs an explanation:
    three printed standard deviations, and 5 % of the printed mean. Changed settings are one."""
    if line.changed or pd.isna(line.paper_sd):
        return ""
    limits = {"3 s.d.": 3 * line.paper_sd, "5 %": 0.05 * abs(line.paper_mean)}
    return " and ".join(name for name, limit in limits.items() if abs(line.difference) > limit)


def figures_of(entries: Sequence[LedgerEntry], at: str, over: str) -> Line:
    r"""Returns the figures of the runs of one network, by column."""
    entries = sorted(entries, key=lambda entry: entry.seed)
    results = [entry.result for entry in entries]
    seeds = tuple(entry.seed for entry in entries)
    if len(set(seeds)) < len(seeds):
        twice = ", ".join(entry.key for entry in entries)
        raise ValueError(f"two runs of a network have the same seed and settings: {twice}")
    split, at, over = figure_of(results[0], at, over) if results else ("", at, over)
    values = tuple(value_of(result, at, over) for result in results)
    mean, sd, *_ = estimate(values) if values else (None, None)
    folded = [result["spread"] for result in results if result.get("spread")]
    held_out = [result for result in results if result["test"] is None]
    folds = min((len(result.get("folds") or ()) for result in results), default=0)
    interval = None
    if folded:
        sd = _mean([spread[at][over] for spread in folded])
    elif len(results) == 1 and over == "items":
        interval = results[0][split][at].get("interval")
    commits = dict.fromkeys(str(result.get("commit")) for result in results)
    return {
        "figure": f"{split}.{at}.{over}" if results else "",
        "parameters": results[0]["parameters"] if results else None,
        "lr": entries[0].config["training"]["lr"] if entries else None,
        "mean": mean,
        "sd": sd,
        "sd_over": "" if sd is None else "folds" if folds else "seeds",
        "interval": interval,
        "validation": _mean([r["val"]["best"]["items"] for r in results]),
        "held_out": _mean([r["val"]["last"]["items"] for r in held_out]),
        "held_out_sd": _mean([r["spread"]["last"]["items"] for r in held_out if r.get("spread")]),
        "seeds": seeds,
        "values": values,
        "folds": folds,
        "epochs": _mean([result["epochs"] for result in results]),
        "seconds_per_epoch": _mean([result["seconds_per_epoch"] for result in results]),
        "peak_memory": max((r.get("peak_memory") or 0 for r in results), default=0) or None,
        "commits": " ".join(commits),
        "entries": tuple(entries),
    }


def _mean(values: Sequence[float]) -> float | None:
    return estimate(values).mean if values else None


def _unsearched(changed: Sequence[str]) -> tuple[str, ...]:
    return tuple(text for text in changed if text.partition("=")[0] not in SEARCHED)


def _pair(line: Line, lines: Sequence[Line]) -> tuple[Line | None, bool]:
    r"""Returns the row that a row is compared with, and whether that one comes first: for a control
    its reference, from which it is subtracted; for a network with FOG the host with the same
    variant, or, if both are the paper's own rows, the host of the paper."""
    paper = get_row(line["row"])
    wanted = _unsearched(line["changed"])
    same = [one for one in lines if _unsearched(one["changed"]) == wanted and one["entries"]]
    if paper.reference:
        return next((one for one in same if one["row"] == paper.reference), None), True
    hosts = []
    for host in same:
        own = get_row(host["row"])
        alike = same_variant(own, host["variant"], paper, line["variant"])
        if is_host(own, paper) and (alike or not (host["variant"] or line["variant"])):
            # Rates and decays may differ, each from its own search; equal ones are preferred.
            hosts.append((alike, host["changed"] == line["changed"], host))
    return max(hosts, key=lambda found: found[:2], default=(None,))[-1], False


def add_difference(line: Line, other: Line | None, first: bool, at: str, over: str) -> None:
    r"""Adds the columns of the difference to another row; ``first`` if that is the first of it."""
    found = None
    if other is not None and line["entries"]:
        one, two = (other, line) if first else (line, other)
        found = paired_difference(one["entries"], two["entries"], at, over)
    line["host"] = other["network"] if other is not None and found else ""
    names = ("paired", "low", "high", "pairs", "paired_over")
    line |= zip(names, found or (None, None, None, None, ""), strict=True)
    decides = line.get("fraction") is None
    line["verdict"] = verdict_of(found, line["metric"], decides) if found else ""


def _typed(lines: Sequence[Line]) -> pd.DataFrame:
    frame = pd.DataFrame(lines)
    kinds = dict.fromkeys([name for name in frame if frame[name].isna().all()], "float64")
    kinds |= dict.fromkeys(("parameters", "pairs", "peak_memory"), "Int64")
    return frame.astype({name: kind for name, kind in kinds.items() if name in frame})


_OWN = ("model.", *SEARCHED)  # in which a host and the host with FOG may differ


def networks_frame(
    entries: Sequence[LedgerEntry], at: str = "best", over: str = "items"
) -> pd.DataFrame:
    r"""Returns the networks of some runs, by default at the epoch of the network that
    :func:`fognn.load` returns, each with the difference to its host if they differ in nothing but
    the network, learning rate and weight decay.

    Runs that differ only in their seed or in the machine are one network. The names of networks
    with the same label also have the settings in which they differ.
    """
    groups: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        groups.setdefault(str(_settings(entry)), []).append(entry)
    firsts = [own[0] for own in groups.values()]
    lines = []
    for own in groups.values():
        first, mine = own[0], _settings(own[0])
        alike = [_settings(other) for other in firsts if other.label == first.label]
        names = [name for name in mine if len({one.get(name, NONE) for one in alike}) > 1]
        note = ", ".join(f"{name} {mine[name]}" for name in names)
        line = {name: getattr(first, name) for name in ("table", "row", "variant", "data")}
        line["network"] = f"{first.label} ({note})" if note else first.label
        line["metric"] = first.result["metric"]
        lines.append(line | figures_of(own, at, over))
    for line in lines:
        add_difference(line, _host(line, lines), False, at, over)
    return _typed(lines)


def _settings(entry: LedgerEntry) -> dict[str, str]:
    r"""Returns the settings that make a network what it is, as text."""
    found = sorted(flat(entry.run.identity()).items())
    return {name: str(value) for name, value in found if name != "seed"}


def _host(line: Line, lines: Sequence[Line]) -> Line | None:
    fog = line["entries"][0]
    mine, found = _settings(fog), []
    for other in lines:
        host = other["entries"][0]
        theirs = _settings(host)
        differing = [name for name in mine | theirs if mine.get(name) != theirs.get(name)]
        named = fog.model == f"{host.model}+fog" or (fog.variant, host.variant) == ("fog", "")
        if named and host.row == fog.row and all(n.startswith(_OWN) for n in differing):
            found.append((-len(differing), other))
    return max(found, key=lambda pair: pair[0], default=(0, None))[1]

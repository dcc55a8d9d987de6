r"""The notes below a table of results: which figure it shows, and what limits it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fognn.experiments.rows import get_row
from fognn.experiments.wording import joined, pluralize
from fognn.report.text import percents

__all__ = ["notes_of", "numbers_of"]

_EPOCHS = {"last": "the last epoch", "best": "the epoch with the best validation metric"}
_AVERAGES = {
    "batches": "averaged over batches, as in the public benchmark",
    "items": "over all items at once",
}
# Where the paper's equations are not what its figures, or its parameter counts, say.
_READINGS = {
    "GCN": "The paper's figures of GCN are quoted from the public benchmark, which takes the mean "
    "over neighbours; GCN+FOG has the symmetric norm of the paper's equation here, and is compared "
    "with GCN of the same norm where that was run. Which norm the printed GCN+FOG has is not "
    "decided.",
    "GraphSAGE": "GraphSAGE takes the maximum over neighbours, as the parameter counts say and "
    "the paper's equation does not.",
}


def numbers_of(lines: Sequence[Any]) -> dict[tuple[str, ...], str]:
    r"""A number for all lines whose settings were changed in the same way: ``[1]``."""
    changes = dict.fromkeys(line.changed for line in lines if line.changed)
    return {changed: f"[{number}]" for number, changed in enumerate(changes, 1)}


def notes_of(
    lines: Sequence[Any],
    at: str,
    over: str,
    hidden: int,
    numbers: Mapping[tuple[str, ...], str],
    difference: str,
) -> list[str]:
    r"""Sentences: which figure is shown, of how many seeds, what is ours, what is off, and what is
    missing.

    Args:
        lines (list): The rows of one dataset, of a frame of :mod:`fognn.experiments.results`.
        at (str): Which epoch's test figure they show.
        over (str): Which average.
        hidden (int): The number of runs of a search that it did not pick.
        numbers (mapping): The numbers of changed settings: see :func:`numbers_of`.
        difference (str): What is subtracted from what: ``"FOG - host"``.
    """
    if not any(line.entries for line in lines):
        nothing = f"Nothing is measured yet: see fognn reproduce {lines[0].table} --help."
        return [nothing, *_published(lines)]
    notes = [_figure(lines, at, over), *_seeds(lines), *_pairs(lines, difference), *_marks(lines)]
    notes += _published(lines)
    notes += [f"{number}: {', '.join(changed)}." for changed, number in numbers.items()]
    missing = [line.network for line in lines if not line.entries]
    if missing:
        whose = "the row's" if _ours(lines) else "the paper's"
        notes.append(f"Not measured by {whose} protocol: {'; '.join(missing)}.")
    if hidden:
        notes.append(f"Not shown: {pluralize(hidden, 'run')} that a search tried and did not pick.")
    return [*notes, *_origin(lines)]


def _figure(lines: Sequence[Any], at: str, over: str) -> str:
    tested = {entry.result["test"] is not None for line in lines for entry in line.entries}
    notes = []
    if True in tested:
        few_shot = any(get_row(line.row).few_shot for line in lines)
        split = "episodes of the test classes" if few_shot else "the test split"
        notes.append(f"Here: on {split} at {_EPOCHS[at]}, {_AVERAGES[over]}.")
    rows = [get_row(line.row) for line in lines]
    fractions = [row.fraction for row in rows if row.fraction]
    if fractions:
        notes.append(f"Trained and tested on the first {percents(fractions)} of each split.")
    if False in tested:
        notes.append(
            "Here: on the held-out folds at the best epoch of their mean curve, over all items, as "
            "in the paper; that epoch was chosen on these folds, so the figure is optimistic. Held "
            "out: at the last epoch, which nothing chose."
        )
    return " ".join(notes)


def _seeds(lines: Sequence[Any]) -> list[str]:
    counts = sorted({len(line.seeds) for line in lines if line.entries})
    folds = max(line.folds for line in lines)
    over = f"over {folds} folds" if folds else "over seeds"
    intervals = any(pd.notna(line.interval) for line in lines)
    if counts[-1] == 1:
        notes = ["Each row is of 1 seed."]
        if not folds:
            none = "no s.d. over seeds" if intervals else "no s.d., no interval"
            notes[0] = f"Each row is of 1 seed: {none}; a difference may be chance."
    elif len(counts) == 1:
        notes = [f"Each row is of {counts[0]} seeds."]
    else:
        notes = [f"Rows are of {counts[0]} to {counts[-1]} seeds."]
    if intervals:
        notes.append(
            "±, with one seed: the 95 % interval over the test episodes, the paper's form, which "
            "says nothing about other seeds."
        )
    if any(pd.notna(line.sd) for line in lines):
        notes.append(f"±{', with several seeds' * intervals}: s.d. {over}.")
    if counts[0] == 1 < counts[-1] and not folds and not intervals:
        notes.append("One seed gives no s.d. and no interval.")
    return notes


def _pairs(lines: Sequence[Any], difference: str) -> list[str]:
    paired = [line for line in lines if line.host]
    if not paired:
        return []
    intervals = any(pd.notna(line.low) for line in paired)
    text = f"{difference}: mean difference over the runs that both have"
    notes = [text + ", with a 95 % interval by Student's t" * intervals + "."]
    if any(line.paired_over == "fold" for line in paired):
        notes.append("Folds share their training graphs, so an interval over folds is too narrow.")
    rates = {line.network: line.lr for line in lines}
    unequal = [
        f"{line.network} {line.lr:g} and {rates[line.host]:g}"
        for line in paired
        if line.lr != rates[line.host]
    ]
    if unequal:
        notes.append(
            "These pairs have unequal learning rates, so that their difference has more than one "
            f"cause: {'; '.join(unequal)}."
        )
    return notes


def _marks(lines: Sequence[Any]) -> list[str]:
    notes = []
    ours = [line for line in lines if line.ours]
    if ours and _ours(lines):
        notes.append("†: other settings than the row's.")
    elif ours:
        notes.append("†: ours, not in the paper: another reading, or other settings.")
    hosts = {get_row(line.row).model.removesuffix("+FOG") for line in lines}
    if not _ours(lines):
        notes += [text for name, text in _READINGS.items() if name in hosts]
    if any(line.off for line in lines):
        notes.append(
            "!: more than 3 printed s.d., or 5 %, away from the paper's figure; see "
            "docs/results.md."
        )
    if any(get_row(line.row).few_shot and line.entries for line in lines):
        notes.append("Parameters are those of the whole network; the paper counts its graph part.")
    return notes


def _ours(lines: Sequence[Any]) -> bool:
    r"""Whether it is a table of our own."""
    return all(get_row(line.row).table is None for line in lines)


def _published(lines: Sequence[Any]) -> list[str]:
    notes = []
    for line in lines:
        row = get_row(line.row)
        if row.published is None or line.ours:
            continue
        text = (
            f"{line.network} is published at {row.published:.{row.digits}f} by {row.published_by}"
        )
        if line.entries:
            text += f"; the difference here is {line.mean - row.published:+.{row.digits}f}"
        notes.append(f"{text}.")
    return notes


def _origin(lines: Sequence[Any]) -> list[str]:
    r"""Which code and which machines."""
    results = [entry.result for line in lines for entry in line.entries]
    machines = dict.fromkeys(
        f"{str(result.get('device')).upper()} {(result.get('machine') or {}).get('cpu')}, "
        f"{pluralize(result.get('threads') or 1, 'thread')} a run"
        for result in results
    )
    texts = [result.get("commit") or "not known" for result in results]
    # A run that was resumed with other code has several: "0123abcd, 4567cdef with changes".
    parts = [part.partition(" ") for text in texts for part in text.split(", ")]
    commits = dict.fromkeys(name[:8] + space + rest for name, space, rest in parts)
    return [f"Commit {joined(list(commits))}; {'; '.join(machines)}."]

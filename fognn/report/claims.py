r"""The claims of the paper's text, and the verdicts of the measurements on them."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.differences import Difference, paired_difference, verdict_of
from fognn.experiments.results import table_frame
from fognn.experiments.rows import get_row
from fognn.experiments.tables import TABLES
from fognn.experiments.wording import CLAIMS, METRICS, NONE, Metric, joined, pluralize
from fognn.report.text import Table, percents

__all__ = ["Claim", "Comparison", "Judgement", "claims", "claims_table", "judge", "read_frames"]

RULE = (
    "A claim is a set of comparisons between two networks, each over the seeds that both have. It "
    "holds here if all of them are measured and the 95 % interval of every difference lies on the "
    "paper's side of 0, and does not if one lies on the other side. One or two seeds decide "
    "nothing: their differences are seen, and not sure. Where there are only runs on a fraction of "
    "the data, they are shown, and are not sure either. All networks have the paper's settings: "
    "where learning rates are unequal, a difference is not FOG's alone (fognn table rates has "
    "ZINC's pairs with equal tries)."
)
Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Claim:
    r"""A statement of the paper that a measurement can contradict.

    A network is named by its path: ``"zinc/ZINC/GCN+FOG"``, and with the number of its parameters
    where a table has it more than once, ``"widths/ZINC/GCN+FOG/25847"``.

    Args:
        text (str): The claim.
        quote (str): The paper's words.
        pairs (tuple): Pairs of networks; the paper says that the first is better.
    """

    text: str
    quote: str
    pairs: tuple[tuple[str, str], ...]

    @property
    def table(self) -> str:
        r"""The table that it is about."""
        return self.pairs[0][0].partition("/")[0]


@cache
def claims() -> tuple[Claim, ...]:
    r"""All claims, in the order of the paper's tables."""
    text = files("fognn.report").joinpath("claims.toml").read_text(encoding="utf-8")
    found = []
    for entry in tomllib.loads(text)["claim"]:
        pairs = tuple(
            (_path(where, better), _path(where, than))
            for where in entry["where"]
            for better, than in entry["pairs"]
        )
        found.append(Claim(entry["text"], entry["quote"], pairs))
    return tuple(found)


def _path(where: str, name: str) -> str:
    r"""A whole path begins with a table's name, which no network has."""
    return name if name.count("/") > 1 else f"{where}/{name}"


@dataclass(frozen=True)
class Comparison:
    r"""Two networks, of which the paper says that the first is better.

    Args:
        better (tuple): The first, a row of a frame of :mod:`fognn.experiments.results`.
        than (tuple): The second.
        difference (Difference, optional): The measured difference over the seeds of both.
    """

    better: Any
    than: Any
    difference: Difference | None

    @property
    def metric(self) -> Metric:
        return METRICS[self.better.metric]

    @property
    def verdict(self) -> str:
        r"""As in :func:`fognn.experiments.differences.verdict_of`."""
        return verdict_of(self.difference, self.better.metric, pd.isna(self.better.fraction))

    def cells(self) -> list[str]:
        r"""The two networks, by how much the first is better, the interval, the number of pairs,
        the paper's difference and the learning rates, as text."""
        metric, found = self.metric, self.difference
        # A claim names rows of the paper only, which have a mean.
        means = [get_row(line.row).mean or 0.0 for line in (self.better, self.than)]
        printed = metric.advantage(means[0], means[1])
        names = [self.better.network, self.than.network]
        if found is None:
            return [*names, NONE, NONE, CLAIMS["not measured"], metric.signed(printed), NONE]
        interval = NONE
        if found.low is not None and found.high is not None:
            ends = sorted((metric.advantage(found.low), metric.advantage(found.high)))
            interval = metric.interval(*ends)
        advantage = metric.signed(metric.advantage(found.value))
        rates = f"{self.better.lr:g}, {self.than.lr:g}"
        return [*names, advantage, interval, found.note, metric.signed(printed), rates]


@dataclass(frozen=True)
class Judgement:
    r"""A claim and its comparisons, measured or not."""

    claim: Claim
    comparisons: tuple[Comparison, ...]

    @property
    def measured(self) -> list[Comparison]:
        return [one for one in self.comparisons if one.difference is not None]

    @property
    def verdict(self) -> str:
        r"""One of :obj:`fognn.experiments.wording.CLAIMS`."""
        each = {comparison.verdict for comparison in self.comparisons}
        if each == {"better", "not measured"}:
            return "partly"
        return next(verdict for verdict in CLAIMS if verdict in each)

    @property
    def text(self) -> str:
        r"""The verdict in words, with the fraction of the data if it is not on all of them."""
        text = CLAIMS[self.verdict]
        fractions = [one.better.fraction for one in self.measured]
        parts = [fraction for fraction in fractions if pd.notna(fraction)]
        if parts:
            text += (
                f", {'in part ' * (len(parts) < len(fractions))}on {percents(parts)} of the data"
            )
        return text

    @property
    def coverage(self) -> str:
        r"""The number of comparisons and of seeds behind the verdict, and how many comparisons are
        of networks with unequal learning rates; empty if there are none."""
        if not self.measured:
            return ""
        total = pluralize(len(self.comparisons), "comparison")
        text = f"{len(self.measured)} of {total} measured, {_pairs(self.measured)}"
        unequal = sum(one.better.lr != one.than.lr for one in self.measured)
        return f"{text}; unequal learning rates in {unequal}" if unequal else text


def read_frames(results: Path) -> dict[str, pd.DataFrame]:
    r"""Reads all tables; a ledger that does not exist has no runs."""
    if not results.is_dir():
        raise ValueError(f"results must be a folder with ledgers, there is no folder {results}")
    return {table: table_frame(table, results) for table in TABLES}


def judge(frames: Frames) -> list[Judgement]:
    r"""Returns all claims with their comparisons, in the order of the paper's tables: on all of the
    data, or on the largest fraction of it that both networks are measured on.

    Args:
        frames (dict): The result of :func:`read_frames`.
    """
    found = []
    for claim in claims():
        comparisons = []
        for names in claim.pairs:
            better, than = (_find(name, frames) for name in names)
            pairs = [(better, than), *_parts(better, than, frames)]
            tried = [_compare(*pair, frames) for pair in pairs]
            comparisons.append(next((one for one in tried if one.difference), tried[0]))
        found.append(Judgement(claim, tuple(comparisons)))
    return found


def claims_table(frames: Frames) -> Table:
    r"""A row for each claim: whether it holds here, and how much of it is measured."""
    header = ["claim of the paper", "table", "here", "comparisons"]
    cells = [
        [one.claim.text, str(TABLES[one.claim.table].number), one.text, one.coverage or NONE]
        for one in judge(frames)
    ]
    notes = [RULE, "fognn report makes a page with all comparisons."]
    return Table("Claims of the paper, measured here.", header, cells, notes)


def _find(path: str, frames: Frames) -> Any:
    r"""The row of the paper of that path; of runs with the paper's settings and runs with searched
    ones, the former."""
    table, data, model, *parameters = path.split("/")
    found = []
    for line in frames[table].itertuples():
        paper = get_row(line.row)
        same = (paper.dataset, paper.model) == (data, model)
        if same and pd.notna(line.paper_mean) and parameters in ([], [str(paper.params)]):
            found.append(line)
    if len({line.row for line in found}) != 1:
        raise ValueError(f"path must name one row of the paper, got {path!r}")
    return next((line for line in found if line.entries), found[0])


def _parts(better: Any, than: Any, frames: Frames) -> list[tuple[Any, Any]]:
    r"""Both networks on the same fraction of the data, the largest one first."""
    parts = []
    for line in (better, than):
        frame = frames[line.table]
        own = frame[(frame["row"] == line.row) & (frame["variant"] == "")]
        fractions = own[own["fraction"].notna()]
        parts.append({part.fraction: part for part in fractions.itertuples()})
    # A host is looked for among the variants, too: it may be measured where its row is not.
    return [(parts[0][part], parts[1].get(part, than)) for part in sorted(parts[0], reverse=True)]


def _compare(better: Any, than: Any, frames: Frames) -> Comparison:
    table = TABLES[better.table]
    if better.host and get_row(better.row).model == f"{get_row(than.row).model}+FOG":
        # The paper's GCN has another norm than its GCN+FOG: the host has the same norm.
        frame = frames[better.table]
        same = frame[(frame["network"] == better.host) & (frame["data"] == better.data)]
        than = next(same.itertuples(), than)
    fractions = {None if pd.isna(one.fraction) else one.fraction for one in (better, than)}
    if len(fractions) > 1:
        return Comparison(better, than, None)
    return Comparison(
        better, than, paired_difference(better.entries, than.entries, table.at, table.over)
    )


def _pairs(measured: Sequence[Comparison]) -> str:
    r"""``"1 seed each"``, ``"2 to 10 seeds each"``."""
    texts = []
    for over, added in (("seed", ""), ("fold", " of one seed")):
        found = [one.difference for one in measured if one.difference]
        counts = sorted({difference.pairs for difference in found if difference.over == over})
        if counts:
            span = f"{counts[0]} to " if len(counts) > 1 else ""
            texts.append(f"{span}{pluralize(counts[-1], over)}{added} each")
    return joined(texts)

r"""The claims of the paper's text, and the verdicts of the measurements on them.

``claims.toml`` names the networks of each claim by their paths: ``"zinc/ZINC/GCN+FOG"``, and where
a table has a network more than once with its parameters, ``"widths/ZINC/GCN+FOG/25847"``.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.differences import (
    METRICS,
    NONE,
    Difference,
    joined,
    paired_difference,
    pluralize,
    verdict_of,
)
from fognn.experiments.results import table_frame
from fognn.experiments.rows import TABLES, get_row
from fognn.report.forms import Table

RULE = (
    "A claim is a set of comparisons between two networks, each over the seeds that both have. It "
    "holds here if all of them are measured and the 95 % interval of every difference lies on the "
    "paper's side of 0, and does not if one lies on the other side. One or two seeds decide "
    "nothing: their differences are seen, and not sure. Where there are only runs on a fraction of "
    "the data, they are shown, and are not sure either. All networks have the paper's settings: "
    "where learning rates are unequal, a difference is not FOG's alone (fognn table rates has "
    "ZINC's pairs with equal tries)."
)
# What the verdicts mean, in the order in which they decide: one that is worse is enough.
CLAIMS = {
    "worse": "does not hold here",
    "maybe worse": "seen the other way, not sure",
    "inconclusive": "inconclusive",
    "maybe better": "seen, not sure",
    "partly": "holds where measured",
    "better": "holds here",
    "not measured": "not measured yet",
}
Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Comparison:
    r"""Two networks, of which the paper says that the first is better."""

    better: Any
    than: Any
    difference: Difference | None

    @property
    def verdict(self) -> str:
        return verdict_of(self.difference, self.better.metric, pd.isna(self.better.fraction))

    @property
    def cells(self) -> list[str]:
        r"""The row of the comparison in the site's table of the claim."""
        metric, found = METRICS[self.better.metric], self.difference
        # A claim names rows of the paper only, which have a mean.
        means = [get_row(line.row).mean or 0.0 for line in (self.better, self.than)]
        printed = metric.signed(metric.advantage(*means))
        names = [self.better.network, self.than.network]
        if found is None:
            return [*names, NONE, NONE, CLAIMS["not measured"], printed, NONE]
        ends = sorted((metric.advantage(found.low), metric.advantage(found.high)))
        interval = metric.interval(*ends) or NONE
        advantage = metric.signed(metric.advantage(found.value))
        rates = f"{self.better.lr:g}, {self.than.lr:g}"
        return [*names, advantage, interval, found.note, printed, rates]


@dataclass(frozen=True)
class Judgement:
    r"""A claim of the paper with its comparisons, measured or not."""

    text: str
    quote: str
    table: str
    comparisons: tuple[Comparison, ...]

    @property
    def measured(self) -> list[Comparison]:
        return [one for one in self.comparisons if one.difference is not None]

    @property
    def verdict(self) -> str:
        r"""One of :obj:`CLAIMS`."""
        each = {comparison.verdict for comparison in self.comparisons}
        if each == {"better", "not measured"}:
            return "partly"
        return next(verdict for verdict in CLAIMS if verdict in each)

    @property
    def here(self) -> str:
        r"""The verdict in words, with the fraction of the data if it is not on all of them, and
        what limits it."""
        text, measured = CLAIMS[self.verdict], self.measured
        fractions = [one.better.fraction for one in measured]
        parts = sorted({fraction for fraction in fractions if pd.notna(fraction)})
        if parts:
            data = joined([f"{100 * fraction:g} %" for fraction in parts])
            some = "in part " if any(map(pd.isna, fractions)) else ""
            text += f", {some}on {data} of the data"
        if self.verdict == "better" and self.unequal:
            text += ", at the paper's unequal rates"
        return text

    @property
    def unequal(self) -> int:
        r"""How many of the measured comparisons are of networks with unequal learning rates."""
        return sum(one.better.lr != one.than.lr for one in self.measured)

    @property
    def coverage(self) -> str:
        r"""The number of comparisons and of seeds behind the verdict; empty if there are none."""
        if not self.measured:
            return ""
        total = pluralize(len(self.comparisons), "comparison")
        text = f"{len(self.measured)} of {total} measured, {_pairs(self.measured)}"
        return f"{text}; unequal learning rates in {self.unequal}" if self.unequal else text


def read_frames(results: Path) -> dict[str, pd.DataFrame]:
    r"""Reads all tables; a ledger that does not exist has no runs."""
    if not results.is_dir():
        raise ValueError(f"results must be a folder with ledgers, there is no folder {results}")
    return {table: table_frame(table, results) for table in TABLES}


def judge(frames: Frames) -> list[Judgement]:
    r"""Returns all claims with their comparisons, in the order of the paper's tables: on all of the
    data, or on the largest fraction of it that both networks are measured on."""
    text = files("fognn.report").joinpath("claims.toml").read_text(encoding="utf-8")
    found = []
    for claim in tomllib.loads(text)["claim"]:
        pairs = [
            [name if name.count("/") > 1 else f"{where}/{name}" for name in pair]
            for where in claim["where"]
            for pair in claim["pairs"]
        ]
        compared = tuple(_measured(better, than, frames) for better, than in pairs)
        table = claim["where"][0].partition("/")[0]
        found.append(Judgement(claim["text"], claim["quote"], table, compared))
    return found


def claims_table(frames: Frames) -> Table:
    r"""Returns a row for each claim: whether it holds here, and how much of it is measured."""
    header = ["claim of the paper", "table", "here", "comparisons"]
    cells = [
        [one.text, str(TABLES[one.table].number), one.here, one.coverage or NONE]
        for one in judge(frames)
    ]
    notes = [RULE, "fognn report makes a page with all comparisons."]
    return Table("Claims of the paper, measured here.", header, cells, notes)


def _measured(better: str, than: str, frames: Frames) -> Comparison:
    r"""Returns the comparison of two networks on all of the data, or on the largest part."""
    whole, host = _find(better, frames), _find(than, frames)
    mine, theirs = _parts(whole, frames), _parts(host, frames)
    # A host is looked for among the variants, too: it may be measured where its row is not.
    pairs = [(mine[part], theirs.get(part, host)) for part in sorted(mine, reverse=True)]
    tried = [_compare(*pair, frames) for pair in [(whole, host), *pairs]]
    return next((one for one in tried if one.difference), tried[0])


def _find(path: str, frames: Frames) -> Any:
    r"""Returns the row of that path; runs with the paper's settings before those with searched."""
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


def _parts(line: Any, frames: Frames) -> dict[float, Any]:
    r"""Returns the same network on fractions of the data."""
    frame = frames[line.table]
    own = frame[(frame["row"] == line.row) & (frame["variant"] == "") & frame["fraction"].notna()]
    return {part.fraction: part for part in own.itertuples()}


def _compare(better: Any, than: Any, frames: Frames) -> Comparison:
    if better.host and get_row(better.row).model == f"{get_row(than.row).model}+FOG":
        # The paper's GCN has another norm than its GCN+FOG: the host has the same norm.
        frame = frames[better.table]
        same = frame[(frame["network"] == better.host) & (frame["data"] == better.data)]
        than = next(same.itertuples(), than)
    table, found = TABLES[better.table], None
    if pd.Series([better.fraction, than.fraction]).nunique(dropna=False) == 1:
        found = paired_difference(better.entries, than.entries, table.at, table.over)
    return Comparison(better, than, found)


def _pairs(measured: Sequence[Comparison]) -> str:
    r"""Returns ``"1 seed each"``, ``"2 to 10 seeds each"``."""
    texts = []
    found = [one.difference for one in measured if one.difference]
    for over, added in (("seed", ""), ("fold", " of one seed")):
        counts = [difference.pairs for difference in found if difference.over == over]
        if counts:
            span = f"{min(counts)} to " if len(set(counts)) > 1 else ""
            texts.append(f"{span}{pluralize(max(counts), over)}{added} each")
    return joined(texts)

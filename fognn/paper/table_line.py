r"""A line of a table: what was printed, and what was measured."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from fognn.paper.ledger import LedgerEntry
from fognn.paper.pairing import Paired
from fognn.paper.rows import Row, get_row

__all__ = ["TableLine", "mean_of"]


@dataclass(frozen=True)
class TableLine:
    r"""A row of a table, or our variant of it: what was printed, and what was measured.

    Args:
        table, row, variant, label: As in :class:`fognn.paper.tables.Planned`.
        changed: Where its runs do not follow the row's own protocol, as
            ``("data.fraction=0.1",)``.
        entries: The runs, by their seeds.
        values: The figure of each.
        mean: Their mean.
        sd: Their standard deviation, :obj:`None` of one seed. Of runs over folds, that over folds,
            as the paper has it (of several seeds, its mean).
        held_out: Of runs over folds, the mean at the last epoch, which was chosen by nobody.
        held_out_sd: Its standard deviation over folds.
        paper_mean, paper_sd: What the paper prints; :obj:`None` where this is not its row.
        paired: The difference to the same network without FOG, where there is one.
    """

    table: str
    row: str
    variant: str
    label: str
    changed: tuple[str, ...] = ()
    entries: tuple[LedgerEntry, ...] = ()
    values: tuple[float, ...] = ()
    mean: float | None = None
    sd: float | None = None
    held_out: float | None = None
    held_out_sd: float | None = None
    paper_mean: float | None = None
    paper_sd: float | None = None
    paired: Paired | None = None

    @property
    def paper(self) -> Row:
        r"""The row of the paper that it is or varies."""
        return get_row(self.row)

    @property
    def ours(self) -> bool:
        r"""Whether it is not the paper's row by the paper's protocol."""
        return bool(self.variant or self.changed)

    @property
    def folds(self) -> int:
        r"""Over how many folds its runs went, 0 for none."""
        return min((len(entry.result.get("folds") or ()) for entry in self.entries), default=0)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(entry.seed for entry in self.entries)

    @property
    def parameters(self) -> int | None:
        r"""The number of trainable parameters, as counted; :obj:`None` without runs."""
        return self.entries[0].result["parameters"] if self.entries else None

    @property
    def seconds_per_epoch(self) -> float | None:
        return mean_of(entry.result["seconds_per_epoch"] for entry in self.entries)

    @property
    def epochs(self) -> float | None:
        r"""The mean number of epochs."""
        return mean_of(entry.result["epochs"] for entry in self.entries)

    @property
    def difference(self) -> float | None:
        r"""Measured minus printed mean."""
        if self.mean is None or self.paper_mean is None:
            return None
        return self.mean - self.paper_mean

    @property
    def off(self) -> tuple[str, ...]:
        r"""By which rules the difference is too large to accept without a reason: more than three
        of the printed s.d. (``"3 s.d."``), or of the printed mean more than ``"5 %"``."""
        if self.difference is None or self.paper_mean is None or self.paper_sd is None:
            return ()
        limits = {"3 s.d.": 3 * self.paper_sd, "5 %": 0.05 * abs(self.paper_mean)}
        return tuple(name for name, limit in limits.items() if abs(self.difference) > limit)


def mean_of(values: Iterable[float]) -> float | None:
    r"""The mean, of nothing :obj:`None`."""
    found = list(values)
    return statistics.fmean(found) if found else None

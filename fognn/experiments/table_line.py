r"""A line of a table: printed and measured figures."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.pairing import Paired
from fognn.experiments.rows import Row, get_row

__all__ = ["TableLine", "mean_of"]


@dataclass(frozen=True)
class TableLine:
    r"""A row of a table, or our variant of it, with its printed and its measured figures.

    Args:
        table (str): As in :class:`fognn.experiments.tables.TableRun`.
        row (str): As in :class:`fognn.experiments.tables.TableRun`.
        variant (str): As in :class:`fognn.experiments.tables.TableRun`.
        label (str): The label of :class:`fognn.experiments.tables.TableRun`, with :obj:`changed`.
        changed (tuple, optional): The settings in which its runs differ from the row's protocol,
            such as ``("data.fraction=0.1",)``. (default: :obj:`()`)
        entries (tuple, optional): The runs, sorted by seed. (default: :obj:`()`)
        values (tuple, optional): The figure of each run. (default: :obj:`()`)
        mean (float, optional): The mean of the figures. (default: :obj:`None`)
        sd (float, optional): The standard deviation of the figures; :obj:`None` for a single seed.
            For runs over folds, the standard deviation over folds, as in the paper (for several
            seeds, the mean of those). (default: :obj:`None`)
        interval (float, optional): For a single seed of few-shot images, half of the 95 %
            confidence interval of the figure over the test episodes. (default: :obj:`None`)
        held_out (float, optional): For runs without a test split, the mean of the validation
            figures at the last epoch, which was not chosen by any figure. (default: :obj:`None`)
        held_out_sd (float, optional): Its standard deviation over folds. (default: :obj:`None`)
        paper_mean (float, optional): The printed mean, if it is a row of the paper.
            (default: :obj:`None`)
        paper_sd (float, optional): The printed standard deviation, if it is a row of the paper.
            (default: :obj:`None`)
        paired (Paired, optional): The difference to the same network without FOG; for a control,
            the difference of its reference and the control. (default: :obj:`None`)
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
    interval: float | None = None
    held_out: float | None = None
    held_out_sd: float | None = None
    paper_mean: float | None = None
    paper_sd: float | None = None
    paired: Paired | None = None

    @property
    def paper(self) -> Row:
        r"""The row, of the paper or of our own, that it is or varies."""
        return get_row(self.row)

    @property
    def ours(self) -> bool:
        r"""Whether it is a variant of ours, or differs from the row's protocol."""
        return bool(self.variant or self.changed)

    @property
    def fraction(self) -> float | None:
        r"""The fraction of the data, if its runs differ from the row's protocol only in that."""
        if len(self.changed) != 1:
            return None
        name, _, value = self.changed[0].partition("=")
        return float(value) if name == "data.fraction" else None

    @property
    def plus_minus(self) -> float | None:
        r"""The number that tables show after the ±: :attr:`sd`, or :attr:`interval`."""
        return self.interval if self.sd is None else self.sd

    @property
    def folds(self) -> int:
        r"""The number of folds of its runs; 0 without folds."""
        return min((len(entry.result.get("folds") or ()) for entry in self.entries), default=0)

    @property
    def seeds(self) -> tuple[int, ...]:
        r"""The seeds of its runs."""
        return tuple(entry.seed for entry in self.entries)

    @property
    def parameters(self) -> int | None:
        r"""The number of trainable parameters of its runs; :obj:`None` without runs."""
        return self.entries[0].result["parameters"] if self.entries else None

    @property
    def lr(self) -> float | None:
        r"""The learning rate of its runs; :obj:`None` without runs."""
        return self.entries[0].config["training"]["lr"] if self.entries else None

    @property
    def seconds_per_epoch(self) -> float | None:
        r"""The mean time of an epoch in seconds."""
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
        r"""The limits that the difference exceeds, so that it needs an explanation: three printed
        standard deviations (``"3 s.d."``), and 5 % of the printed mean (``"5 %"``). Changed
        settings are an explanation."""
        if self.changed:
            return ()
        if self.difference is None or self.paper_mean is None or self.paper_sd is None:
            return ()
        limits = {"3 s.d.": 3 * self.paper_sd, "5 %": 0.05 * abs(self.paper_mean)}
        return tuple(name for name, limit in limits.items() if abs(self.difference) > limit)


def mean_of(values: Iterable[float]) -> float | None:
    r"""Returns the mean; :obj:`None` without values."""
    found = list(values)
    return statistics.fmean(found) if found else None

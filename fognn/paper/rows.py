"""The rows of the paper's tables, as typed objects."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fognn.utils import checks


@dataclass(frozen=True)
class Row:
    r"""One row of one of the paper's tables: what was built, how it was trained, what was printed.

    Args:
        id: Its name, as ``"zinc/gcn+fog"``, which never changes.
        table: The number of the table.
        title: What the table is about.
        dataset: The dataset, as the paper calls it.
        model: The network, as the paper calls it.
        params: The printed number of parameters (of the graph part, for few-shot).
        layers: The number of layers.
        channels: The width of each layer; one number stands for all of them.
        readout: Where the answers are: ``"node"``, ``"edge"``, ``"query"``, or how a graph's nodes
            are pooled.
        lr: The first learning rate.
        weight_decay: The L2 weight.
        schedule: ``"plateau"``, with ``patience`` and ``min_lr``, or ``"step"``, with ``step`` and
            ``epochs`` (iterations, for few-shot).
        batch_size: Graphs, or tasks, in a batch.
        metric: ``"accuracy"`` in %, ``"mae"`` or ``"f1"``.
        mean: The printed mean over seeds.
        sd: The printed standard deviation.
        h1: FOG's :math:`C_{h1}`.
        h2: FOG's :math:`C_{h2}`.
        p: FOG's output channels beside a host, or alone.
        q: The host's output channels beside FOG.
        fc1: Width of the head's first hidden layer.
        fc2: Width of the head's second hidden layer.
        heads: The attention heads of each layer.
        norm: Of GCN: ``"sym"`` or ``"mean"``.
        note: Where the paper contradicts itself, and which side is right.
    """

    id: str
    table: int
    title: str
    dataset: str
    model: str
    params: int
    layers: int
    channels: tuple[int, ...]
    readout: str
    lr: float
    weight_decay: float
    schedule: str
    batch_size: int
    metric: str
    mean: float
    sd: float
    h1: int | None = None
    h2: int | None = None
    p: int | None = None
    q: int | None = None
    fc1: int | None = None
    fc2: int | None = None
    heads: tuple[int, ...] | None = None
    norm: str | None = None
    patience: int | None = None
    min_lr: float | None = None
    epochs: int | None = None
    step: int | None = None
    dropout: float = 0.0
    note: str = ""

    @property
    def few_shot(self) -> bool:
        return self.readout == "query"


def rows(
    table: int | None = None, dataset: str | None = None, model: str | None = None
) -> list[Row]:
    r"""The 72 rows of the paper's tables, in their order, or those that match.

    Args:
        table: The number of a table.
        dataset: A dataset, as the paper calls it, in any case.
        model: A network, as the paper calls it, in any case.
    """
    found = list(_rows())
    for name, value in (("table", table), ("dataset", dataset), ("model", model)):
        if value is None:
            continue
        wanted = str(value).lower()
        kept = [row for row in found if str(getattr(row, name)).lower() == wanted]
        if not kept:
            known = ", ".join(dict.fromkeys(str(getattr(row, name)) for row in found))
            raise ValueError(f"rows: {name} must be one of {known}, got {value!r}")
        found = kept
    return found


def get_row(id: str) -> Row:
    r"""The row with a name, as ``"zinc/gcn+fog"``."""
    for row in _rows():
        if row.id == id:
            return row
    checks.known("get_row", "id", id, [row.id for row in _rows()])
    raise AssertionError


@cache
def _rows() -> tuple[Row, ...]:
    text = files("fognn.paper").joinpath("rows.toml").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text)["row"]
    for entry in entries:
        for name in entry.keys() & {"channels", "heads"}:
            entry[name] = tuple(entry[name])
    return tuple(Row(**entry) for entry in entries)

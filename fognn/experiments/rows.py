"""The rows of the paper's tables, and of our own. No module is imported that needs torch."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Table:
    r"""A table of the paper, or of our own."""

    number: int | None  # in the paper
    title: str
    at: str = "last"  # the epoch whose figures it shows, and whose weights are kept: or "best"
    over: str = "batches"  # the average that it shows: or "items"
    difference: str = "FOG - host"  # the paired difference that it shows


TABLES = {
    "pattern": Table(1, "SBM PATTERN"),
    "cluster": Table(2, "SBM CLUSTER"),
    "zinc": Table(3, "ZINC"),
    "tsp": Table(4, "TSP"),
    # As in few-shot learning: the network with the best validation accuracy is kept.
    "few-shot": Table(5, "few-shot learning on miniImageNet", "best", "items"),
    "widths": Table(6, "widths on ZINC"),
    "limits": Table(7, "the limits: ZINC without node features, and IMDB-MULTI"),
    "omniglot": Table(None, "few-shot learning on Omniglot", "best", "items"),
    "cifar-fs": Table(None, "few-shot learning on CIFAR-FS", "best", "items"),
    "controls": Table(
        None, "controls of FOG on ZINC, PATTERN and CLUSTER", difference="kron - control"
    ),
    "modern": Table(None, "a modern network on ZINC", "best", "items"),
}

# Image size, and number of channels.
IMAGES = {"miniImageNet": (84, 3), "CIFAR-FS": (32, 3), "Omniglot": (28, 1)}


@dataclass(frozen=True, kw_only=True)
class Row:
    r"""A row of one of the paper's tables: the network, its training and the printed figures; or a
    row of our own, without printed figures. Names of datasets and networks are the paper's."""

    id: str  # "zinc/gcn+fog": the name of its table in TABLES, and in the table; never changes
    title: str
    dataset: str
    model: str
    layers: int
    channels: tuple[int, ...]  # of each layer; a single number is that of all layers
    readout: str  # "node", "edge", "query", or the pooling of a graph
    lr: float
    weight_decay: float
    schedule: str  # "plateau", "step" or "cosine"
    batch_size: int  # graphs, or few-shot episodes
    metric: str
    table: int | None = None  # of the paper
    params: int | None = None  # as printed: of the graph part, for few-shot
    mean: float | None = None
    sd: float | None = None
    h1: int | None = None
    h2: int | None = None
    p: int | None = None  # channels of FOG
    q: int | None = None  # channels of the host beside it
    fc1: int | None = None  # widths of the head
    fc2: int | None = None
    heads: tuple[int, ...] | None = None
    norm: str | None = None  # of GCN: "sym" or "mean"
    patience: int | None = None
    min_lr: float | None = None
    epochs: int | None = None  # iterations, for few-shot; so is step
    step: int | None = None
    steps: int | None = None  # iterations in an epoch, for few-shot
    n_query: int | None = None
    episodes: int | None = None
    dropout: float = 0.0
    note: str = ""  # contradictions within the paper, and how they were resolved
    published: float | None = None  # a figure of another publication
    published_by: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of the network
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of the configuration
    fraction: float | None = None  # of each split
    inputs: str = ""  # what is left out of the inputs
    control: str = ""  # what a control changes
    reference: str = ""  # the id of the row that it is a control of

    @property
    def few_shot(self) -> bool:
        r"""Whether it is a row of few-shot learning."""
        return self.readout == "query"

    @property
    def digits(self) -> int:
        r"""The number of decimals with which tables show its figures."""
        return 2 if self.few_shot else 3


def rows(
    table: int | None = None, dataset: str | None = None, model: str | None = None
) -> list[Row]:
    r"""Returns the 72 rows of the paper's tables in their order, or those of a table (by number), a
    dataset and a network, as named in the paper; case is ignored."""
    found = list(_rows("rows"))
    for name, value in (("table", table), ("dataset", dataset), ("model", model)):
        if value is not None:
            known = dict.fromkeys(str(getattr(row, name)) for row in found)
            found = [row for row in found if str(getattr(row, name)).lower() == str(value).lower()]
            if not found:
                raise ValueError(f"rows: {name} must be one of {', '.join(known)}, got {value!r}")
    return found


def get_row(id: str) -> Row:
    r"""Returns the row with an id, such as ``"zinc/gcn+fog"``: one of the paper's, or of our own,
    such as ``"omniglot/gnn+fog-1shot"``."""
    known = {row.id: row for row in all_rows()}
    if id not in known:
        raise ValueError(f"get_row: unknown row {id!r}, known: {', '.join(known)}")
    return known[id]


def extra_rows() -> list[Row]:
    r"""Returns the rows of our own tables, which the paper does not have."""
    return list(_rows("extra_rows"))


def all_rows() -> list[Row]:
    r"""Returns the rows of the paper, then those of our own."""
    return [*rows(), *extra_rows()]


def rows_of(table: str) -> list[Row]:
    r"""Returns the rows of one of :obj:`TABLES`."""
    return [row for row in all_rows() if row.id.partition("/")[0] == table]


def name_of(row: Row) -> str:
    r"""Returns the name of a row's network in :func:`fognn.list_models`."""
    return f"fewshot-{row.model}".lower() if row.few_shot else row.model.lower()


def model_settings(row: Row) -> dict[str, Any]:
    r"""Returns the settings of a row's network, as :func:`fognn.create_model` takes them."""
    if row.few_shot:
        # The images of the paper's rows have the size that the networks have by default.
        return {"layers": row.layers} | ({} if row.table else image_settings(row.dataset))
    own: dict[str, Any] = {"channels": row.channels[0], "layers": row.layers}
    own["dropout"] = row.dropout
    if row.h1 is not None:
        own |= {"h1": row.h1, "h2": row.h2, "fog_channels": row.p}
    if row.model.endswith("FOG"):
        own["fog_act_first"] = True
    if row.norm is not None:
        own["norm"] = row.norm
    if row.heads is not None:
        own["heads"] = row.heads[0]
    return own | dict(row.settings)


def image_settings(dataset: str) -> dict[str, Any]:
    r"""Returns the size and the channels of a dataset's images, as settings of a network; its name
    may end in the numbers of classes and of shots."""
    size, channels = IMAGES[next(name for name in IMAGES if dataset.startswith(name))]
    return {"image_size": size, "image_channels": channels}


# What a row of our own takes over from the row of the paper that it is like.
_TRAINING = (
    *("title", "dataset", "readout", "metric", "batch_size", "dropout", "lr", "weight_decay"),
    *("schedule", "patience", "min_lr", "epochs", "step"),
)
_NETWORK = ("layers", "channels", "h1", "h2", "p", "q", "fc1", "fc2", "heads", "norm")


def _like(entry: dict[str, Any]) -> dict[str, Any]:
    r"""Returns an entry with the training of the row of the paper that its key ``like`` names, and,
    if it has the same network, with the widths of that network."""
    like = entry.pop("like", None)
    if like is None:
        return entry
    paper = next(row for row in _rows("rows") if row.id == like)
    names = [*_TRAINING, *(_NETWORK if entry["model"] == paper.model else ())]
    return {name: getattr(paper, name) for name in names} | entry


@cache
def _rows(name: str) -> tuple[Row, ...]:
    text = files("fognn.experiments").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text)["row"]
    for entry in entries:
        for name in entry.keys() & {"channels", "heads"}:
            entry[name] = tuple(entry[name])
    return tuple(Row(**_like(entry)) for entry in entries)

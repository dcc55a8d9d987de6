"""The rows of the paper's tables, and of our own."""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Table:
    r"""A table of the paper, or of our own.

    Args:
        number (int, optional): Its number in the paper; :obj:`None` for a table of our own.
        title (str): Its subject.
        at (str, optional): The epoch whose figures it shows, and whose weights are kept:
            ``"last"``, or ``"best"`` for the best validation metric. (default: :obj:`"last"`)
        over (str, optional): The average that it shows: over ``"batches"`` or over ``"items"``.
            (default: :obj:`"batches"`)
        difference (str, optional): The paired difference that it shows: of each network with FOG
            and its host, or of FOG and each of its controls. (default: :obj:`"FOG - host"`)
    """

    number: int | None
    title: str
    at: str = "last"
    over: str = "batches"
    difference: str = "FOG - host"


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


@dataclass(frozen=True, kw_only=True)
class Row:
    r"""A row of one of the paper's tables: the network, its training and the printed figures; or a
    row of our own, without printed figures.

    Args:
        id (str): The unique name, such as ``"zinc/gcn+fog"``, which never changes: the name of its
            table in :obj:`TABLES`, and its name in the table.
        title (str): The subject of the table.
        dataset (str): The dataset, as named in the paper.
        model (str): The network, as named in the paper.
        layers (int): Number of layers.
        channels (tuple): The width of each layer; a single number is the width of all layers.
        readout (str): The outputs of the network: ``"node"``, ``"edge"``, ``"query"``, or the
            pooling of the nodes of a graph.
        lr (float): The initial learning rate.
        weight_decay (float): The weight of the L2 penalty.
        schedule (str): ``"plateau"``, with ``patience`` and ``min_lr``, ``"step"``, with ``step``
            and ``epochs``, or ``"cosine"``, with ``min_lr`` and ``epochs``.
        batch_size (int): Number of graphs, or few-shot episodes, in a batch.
        metric (str): ``"accuracy"`` in %, ``"mae"`` or ``"f1"``.
        table (int, optional): The number of the table; :obj:`None` for a row of our own.
            (default: :obj:`None`)
        params (int, optional): The printed number of parameters (of the graph part, for few-shot);
            for a control, the number that its network has. (default: :obj:`None`)
        mean (float, optional): The printed mean over seeds. (default: :obj:`None`)
        sd (float, optional): The printed standard deviation. (default: :obj:`None`)
        h1 (int, optional): FOG's :math:`C_{h1}`. (default: :obj:`None`)
        h2 (int, optional): FOG's :math:`C_{h2}`. (default: :obj:`None`)
        p (int, optional): FOG's output channels. (default: :obj:`None`)
        q (int, optional): The host's output channels, with FOG. (default: :obj:`None`)
        fc1 (int, optional): Width of the head's first hidden layer. (default: :obj:`None`)
        fc2 (int, optional): Width of the head's second hidden layer. (default: :obj:`None`)
        heads (tuple, optional): Number of attention heads of each layer. (default: :obj:`None`)
        norm (str, optional): GCN's norm: ``"sym"`` or ``"mean"``. (default: :obj:`None`)
        patience (int, optional): As in :class:`fognn.training.TrainingConfig`.
            (default: :obj:`None`)
        min_lr (float, optional): As in :class:`fognn.training.TrainingConfig`.
            (default: :obj:`None`)
        epochs (int, optional): Maximum number of epochs (iterations, for few-shot).
            (default: :obj:`None`)
        step (int, optional): Epochs (iterations, for few-shot) between two reductions of the
            learning rate. (default: :obj:`None`)
        steps (int, optional): Number of iterations in an epoch, for few-shot.
            (default: :obj:`None`)
        n_query (int, optional): Number of queries in an episode, for few-shot.
            (default: :obj:`None`)
        episodes (int, optional): Number of episodes to validate and to test on, for few-shot.
            (default: :obj:`None`)
        dropout (float, optional): The probability of dropout. (default: :obj:`0.0`)
        note (str, optional): Contradictions within the paper, and how they were resolved.
            (default: :obj:`""`)
        published (float, optional): A figure of another publication. (default: :obj:`None`)
        published_by (str, optional): That publication. (default: :obj:`""`)
        settings (dict, optional): Further settings of the network, as
            :func:`fognn.models.create_model` takes them. (default: :obj:`{}`)
        values (dict, optional): Further settings of the run by name, such as
            ``{"training.clip": 1.0}``. (default: :obj:`{}`)
        fraction (float, optional): Fraction of each split to use. (default: :obj:`None`)
        inputs (str, optional): The inputs of the network, if other rows of its table with the same
            network have more, such as ``"atoms only"``. (default: :obj:`""`)
        control (str, optional): What distinguishes a row of the table ``controls`` from others with
            the same network, such as ``"concat"``. (default: :obj:`""`)
        reference (str, optional): The id of the row that a control is compared with.
            (default: :obj:`""`)
    """

    id: str
    title: str
    dataset: str
    model: str
    layers: int
    channels: tuple[int, ...]
    readout: str
    lr: float
    weight_decay: float
    schedule: str
    batch_size: int
    metric: str
    table: int | None = None
    params: int | None = None
    mean: float | None = None
    sd: float | None = None
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
    steps: int | None = None
    n_query: int | None = None
    episodes: int | None = None
    dropout: float = 0.0
    note: str = ""
    published: float | None = None
    published_by: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    fraction: float | None = None
    inputs: str = ""
    control: str = ""
    reference: str = ""

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
    r"""Returns the 72 rows of the paper's tables in their order, or those that match.

    Args:
        table (int, optional): The number of a table. (default: :obj:`None`)
        dataset (str, optional): A dataset, as named in the paper; case is ignored.
            (default: :obj:`None`)
        model (str, optional): A network, as named in the paper; case is ignored.
            (default: :obj:`None`)
    """
    found = list(_rows("rows"))
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
    r"""Returns the rows of a table.

    Args:
        table (str): One of :obj:`TABLES`.
    """
    return [row for row in all_rows() if row.id.partition("/")[0] == table]


# What a row of our own takes over from the row of the paper that it is like.
_TRAINING = (
    *("title", "dataset", "readout", "metric", "batch_size", "dropout", "lr", "weight_decay"),
    *("schedule", "patience", "min_lr", "epochs", "step"),
)
_NETWORK = ("layers", "channels", "h1", "h2", "p", "q", "fc1", "fc2", "heads", "norm")


def _like(entry: dict[str, Any]) -> dict[str, Any]:
    r"""Returns an entry with the training of the row of the paper that its key ``like`` names, and,
    if it has the same network, with the widths of that network."""
    if "like" not in entry:
        return entry
    paper = next(row for row in _rows("rows") if row.id == entry["like"])
    names = [*_TRAINING, *(_NETWORK if entry["model"] == paper.model else ())]
    values = dataclasses.asdict(paper)
    own = {name: value for name, value in entry.items() if name != "like"}
    return {name: values[name] for name in names} | own


@cache
def _rows(name: str) -> tuple[Row, ...]:
    text = files("fognn.experiments").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text)["row"]
    for entry in entries:
        for name in entry.keys() & {"channels", "heads"}:
            entry[name] = tuple(entry[name])
    return tuple(Row(**_like(entry)) for entry in entries)

r"""A table of the paper as a set of runs."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from fognn.paper.build import model_settings
from fognn.paper.protocols import config_of
from fognn.paper.rows import Row, get_row, rows
from fognn.training import Config
from fognn.training.config import setting_name
from fognn.training.data import PLAIN_ZINC
from fognn.training.own_data import is_file
from fognn.utils import checks

__all__ = [
    "TABLES",
    "Planned",
    "Table",
    "check_table",
    "label_of",
    "other_key",
    "plan",
    "reading_of",
    "run_folder",
    "runs_of",
]


@dataclass(frozen=True)
class Table:
    r"""A table of the paper.

    Args:
        number: Its number in the paper.
        title: What it is about.
    """

    number: int
    title: str


TABLES = {
    "pattern": Table(1, "SBM PATTERN"),
    "cluster": Table(2, "SBM CLUSTER"),
    "zinc": Table(3, "ZINC"),
    "tsp": Table(4, "TSP"),
    "few-shot": Table(5, "few-shot learning on miniImageNet"),
    "widths": Table(6, "widths on ZINC"),
    "limits": Table(7, "the limits: ZINC without node features, and IMDB-MULTI"),
}
# Other readings of the paper, each beside the row that it varies (and a host's beside the same with
# FOG): its equations say these, and its figures, its parameter counts or the public benchmark's
# code say what the rows are. GCN+FOG is as in the equation, and ours is the mean.
_OURS = {
    "GCN": {"norm": "sym"},
    "GCN+FOG": {"norm": "mean"},
    "GraphSAGE": {"aggr": "mean"},
    "GatedGCN": {"gate": "after"},
    "GatedGCN-E": {"gate": "after"},
}


@dataclass(frozen=True)
class Planned:
    r"""One run of a table.

    Args:
        table: One of :obj:`TABLES`.
        row: The id of the row that it is or varies.
        variant: Nothing for the paper's own row; else what we changed in its network, as
            ``"norm=sym"``.
        label: What it is called in the table, as ``"GCN (norm=sym)"``.
        config: The run, complete.
    """

    table: str
    row: str
    variant: str
    label: str
    config: Config

    @property
    def paper(self) -> Row:
        r"""The row of the paper."""
        return get_row(self.row)

    @property
    def own(self) -> Config:
        r"""The run by the paper's protocol, with the same seed and variant."""
        return config_of(self.paper, self.config.seed, **_settings(self.variant))

    @property
    def slug(self) -> str:
        r"""A short name that no other row of the table has, as ``"gcn-sym"``."""
        return _slug(self.paper, self.variant)

    @property
    def name(self) -> str:
        r"""``"gcn-sym-seed0"``; with a digest of its settings where it does not follow the
        row's own protocol."""
        name = f"{self.slug}-seed{self.config.seed}"
        changed = self.config.identity() != self.own.identity()
        return f"{name}-{self.config.digest()}" if changed else name

    @property
    def key(self) -> str:
        r"""What the ledger knows it by."""
        return f"{self.table}/{self.name}"

    def folder(self, root: Path) -> Path:
        r"""Its run folder, where all of them are in :obj:`root`."""
        return run_folder(self.config, root)


def runs_of(config: Config) -> list[Planned]:
    r"""The runs of the paper's tables that a configuration is: none, one, or two, because tables 3
    and 6 share rows."""
    found = _known_runs().get(config.with_values({"seed": 0}).digest(), ())
    return [
        Planned(table, row.id, variant, label_of(row, variant), config)
        for table, row, variant in found
    ]


def run_folder(config: Config, root: str | Path = "runs") -> Path:
    r"""The default folder of a run: ``runs/zinc/gcn+fog-seed0`` for a run of the paper's tables;
    for any other, and on your own files, with a digest of its settings:
    ``runs/zinc/gcn+fog-seed0-1f2e3d4c``."""
    for run in runs_of(config):
        return Path(root) / run.key
    return Path(root) / other_key(config)


def other_key(config: Config) -> str:
    r"""The key, and the folder, of a run that is not of the paper's tables."""
    name = Path(config.data.name).stem if is_file(config.data) else config.data.name
    return f"{name}/{config.model.name}-seed{config.seed}-{config.digest()}".lower()


@cache
def _known_runs() -> dict[str, list[tuple[str, Row, str]]]:
    found: dict[str, list[tuple[str, Row, str]]] = {}
    for table in TABLES:
        for row, variant in _candidates(table, ours=True):
            digest = config_of(row, 0, **_settings(variant)).digest()
            found.setdefault(digest, []).append((table, row, variant))
    return found


def plan(
    table: str,
    models: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 1,
    fraction: float | None = None,
    epochs: int | None = None,
    ours: bool = True,
    values: Mapping[str, Any] | None = None,
) -> list[Planned]:
    r"""The runs of a table: all rows of the first seed, then all of the next.

    Args:
        table: One of :obj:`TABLES`.
        models: Only these rows: slugs, or shell patterns for them, as ``["gcn", "*fog*"]``; the
            name of a network stands for all its rows of the paper. GCN's may say their norm:
            ``"gcn+fog-sym"`` is the paper's row, too.
        seeds: How many seeds, from 0, or which.
        fraction: How much of each split is used.
        epochs: The most epochs.
        ours: Whether our own readings of a row stand beside it.
        values: Any setting by its dotted name, as ``{"training.batch_size": 4}``.
    """
    check_table("plan", table)
    changes: dict[str, Any] = {"data.fraction": fraction, "training.epochs": epochs}
    changes = {name: value for name, value in changes.items() if value is not None}
    values = {setting_name(name): value for name, value in (values or {}).items()}
    for name in values:
        if name == "seed":
            raise ValueError("plan: values must not name the seed, which seeds decides")
        if name in changes:
            raise ValueError(f"plan: values must not name {name!r}, which is given already")
    changes |= values
    chosen = _filtered(_candidates(table, ours), models)
    return [
        Planned(
            table,
            row.id,
            variant,
            label_of(row, variant),
            config_of(row, seed, **_settings(variant)).with_values(changes),
        )
        for seed in _seeds(seeds)
        for row, variant in chosen
    ]


def check_table(owner: str, table: object) -> None:
    r"""Raises unless it is the name of a table."""
    checks.known(owner, "table", table, TABLES)


def _candidates(table: str, ours: bool) -> list[tuple[Row, str]]:
    r"""The rows of a table and their variants."""
    found = rows(table=TABLES[table].number)
    # Table 6 has no host to compare a variant with: there the paper's rows stand alone.
    hosts = {(row.dataset, row.model) for row in found}
    chosen = []
    for row in found:
        host = row.model.removesuffix("+FOG")
        chosen.append((row, ""))
        if ours and (row.dataset, host) in hosts:
            other = _OURS.get(row.model, _OURS.get(host, {}))
            chosen += [(row, f"{name}={value}") for name, value in other.items()]
    return chosen


def _filtered(
    candidates: list[tuple[Row, str]], models: Sequence[str] | None
) -> list[tuple[Row, str]]:
    if models is None:
        return candidates
    if isinstance(models, str) or not models:
        raise ValueError(f"plan: models must be a list of names, got {models!r}")
    names = {chosen: _names(*chosen) for chosen in candidates}
    wanted = [str(model).lower() for model in models]
    for given, pattern in zip(models, wanted, strict=True):
        if not any(_matches(own, [pattern]) for own in names.values()):
            known = list(dict.fromkeys(name for own in names.values() for name in own))
            near = difflib.get_close_matches(pattern, known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
            raise ValueError(f"plan: models must be rows of the table, got {given!r}; {hint}")
    return [chosen for chosen in candidates if _matches(names[chosen], wanted)]


def _names(row: Row, variant: str) -> list[str]:
    named = [_slug(row, variant), _slug(row, reading_of(row, variant))]
    return named + ([] if variant else [row.model.lower()])


def _matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    if isinstance(seeds, int):
        return list(range(checks.positive_int("plan", "seeds", seeds)))
    if isinstance(seeds, str) or not isinstance(seeds, Sequence) or not seeds:
        raise ValueError(f"plan: seeds must be a number of seeds or a list of them, got {seeds!r}")
    for seed in seeds:
        checks.int_in_range("plan", "seeds", seed, 0)
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"plan: seeds must differ, got {list(seeds)}")
    return list(seeds)


def _settings(variant: str) -> dict[str, str]:
    name, _, value = variant.partition("=")
    return {name: value} if name else {}


def _slug(row: Row, variant: str) -> str:
    slug, value = row.id.partition("/")[2], variant.partition("=")[2]
    return f"{slug}-{value}" if value else slug


def label_of(row: Row, variant: str) -> str:
    r"""What a row, or our variant of it, is called in its table."""
    place = _place(row)
    name = f"{row.model}, {place}" if place else row.model
    return f"{name} ({variant})" if variant else name


def reading_of(row: Row, variant: str) -> str:
    r"""How a row, or our variant of it, reads what the paper leaves open: ``"norm=sym"``, or
    nothing where it is silent."""
    norm = model_settings(row).get("norm")
    return variant or (f"norm={norm}" if norm else "")


def _place(row: Row) -> str:
    r"""What tells a row from others of its table with the same network."""
    if row.few_shot:
        return row.dataset.rpartition("-")[2].replace("shot", "-shot")
    if row.table == TABLES["widths"].number:
        return f"C={row.channels[0]}"
    if row.table == TABLES["limits"].number:
        return "ZINC without node features" if row.dataset == PLAIN_ZINC else row.dataset
    return ""

r"""The runs of the tables of the paper and of our own, and of comparisons."""

import fnmatch
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from fognn.data.opening import PYTHON
from fognn.data.pyg_datasets import PREFIX
from fognn.experiments.protocols import config_of
from fognn.experiments.rows import TABLES, Row, get_row, model_settings, rows_of
from fognn.training import Config
from fognn.training.config import setting_name
from fognn.training.data import PLAIN_ZINC, is_user_data, user_data_name
from fognn.utils import checks

# Our variants of rows, where the paper can be read in two ways: the rows follow its figures or the
# public benchmark's code, the variants its equations (for GCN+FOG it is the opposite). A host's
# variant applies to the host with FOG, too.
_VARIANTS = {
    "GCN": "norm=sym",
    "GCN+FOG": "norm=mean",
    "GraphSAGE": "aggr=mean",
    "GatedGCN": "gate=after",
    "GatedGCN-E": "gate=after",
}
# FOG in few-shot networks: a sum over neighbours with learnt weights, which the parameter counts
# imply, or the plain sum of the equation. The host has no such variant.
_FEW_SHOT_VARIANT = "neighbours=all"


@dataclass(frozen=True)
class Run(ABC):
    r"""One of many runs: of a table, see :class:`TableRun`, or of a comparison."""

    table: str  # one of TABLES, or "compare/NAME"
    row: str  # the id of its row
    variant: str  # the setting of the network that we changed: "norm=sym"; empty for the row itself
    label: str  # its name in the table: "GCN (norm=sym)"
    config: Config

    @property
    @abstractmethod
    def key(self) -> str:
        r"""The unique name of the run in the ledger, such as ``"zinc/gcn-sym-seed0"``."""

    @property
    def search_key(self) -> str:
        r"""The unique name of the search for its learning rate."""
        return self.key

    def folder(self, root: Path) -> Path:
        r"""Returns its run folder in the folder of all run folders."""
        return Path(root) / self.key

    def with_values(self, values: Mapping[str, Any]) -> Self:
        r"""Returns the run with other settings."""
        return replace(self, config=self.config.with_values(values))


class TableRun(Run):
    r"""One run of a table."""

    @property
    def paper(self) -> Row:
        r"""The row, of the paper or of our own."""
        return get_row(self.row)

    @property
    def protocol(self) -> Config:
        r"""The configuration by the row's protocol, with the same seed and variant."""
        return config_of(self.paper, self.config.seed, **_settings(self.variant))

    @property
    def follows_protocol(self) -> bool:
        r"""Whether it is trained by the row's own protocol."""
        return self.config.identity() == self.protocol.identity()

    @property
    def keeps_weights(self) -> bool:
        r"""Whether its weights can be kept: it is trained by the row's own protocol, on all of the
        data, and no earlier table has the same run."""
        first = next((run.table for run in runs_of(self.config)), self.table)
        whole = self.config.data.fraction == 1.0
        return self.follows_protocol and whole and first == self.table

    @property
    def slug(self) -> str:
        r"""The short name of its row and variant, unique in the table, such as ``"gcn-sym"``."""
        return slug_of(self.row, self.variant)

    @property
    def key(self) -> str:
        r"""The slug with the seed; if settings differ from the protocol's, with their digest."""
        key = f"{self.table}/{self.slug}-seed{self.config.seed}"
        return key if self.follows_protocol else f"{key}-{self.config.digest()}"

    def folder(self, root: Path) -> Path:
        return run_folder(self.config, root)


class ComparedRun(Run):
    r"""One run of a comparison. Its row is the host with the budget, such as ``"gin-100000"``, and
    its variant ``"fog"`` for the network with FOG."""

    @property
    def search_key(self) -> str:
        r"""The network, with a digest of all settings but the learning rate and the seed."""
        # Without paths: a clone with the ledger does not train the runs again.
        same = portable(self.config).with_values({"training.lr": 1.0, "seed": 0})
        return f"{self.table}/{self.config.model.name}-{same.digest()}".replace(":", "-")

    @property
    def key(self) -> str:
        return f"{self.search_key}-lr{self.config.training.lr:g}-seed{self.config.seed}"


def runs_of(config: Config) -> list[TableRun]:
    r"""Returns the runs of the tables with this configuration; some tables share rows."""
    found = _known_runs().get(config.with_values({"seed": 0}).digest(), ())
    return [replace(run, config=config) for run in found]


@cache
def _known_runs() -> dict[str, list[TableRun]]:
    found: dict[str, list[TableRun]] = {}
    for table in TABLES:
        for run in _first_runs(table):
            found.setdefault(run.config.digest(), []).append(run)
    return found


def run_folder(config: Config, root: str | Path = "runs") -> Path:
    r"""Returns the default folder of a run: ``runs/zinc/gcn+fog-seed0`` for a run of the tables,
    and ``runs/zinc/gcn+fog-seed0-1f2e3d4c``, with a digest of its settings, for any other."""
    known = runs_of(config)
    return Path(root) / (known[0].key if known else other_key(config))


def other_key(config: Config) -> str:
    r"""Returns the key, and the folder, of a run that is not in the tables."""
    model = config.model.name.removeprefix(PYTHON)
    return f"{data_slug(config)}/{model}-seed{config.seed}-{config.digest()}".lower()


def data_slug(config: Config) -> str:
    r"""Returns the name of the data of a run without prefixes, folders and suffixes."""
    name = config.data.name
    if name.startswith(PREFIX):
        return name.removeprefix(PREFIX).replace("/", "-")
    if is_user_data(config.data) and not name.startswith(PYTHON):
        return Path(name.removesuffix(".gz")).stem
    return name.removeprefix(PYTHON)


def portable(config: Config) -> Config:
    r"""Returns the configuration without folders of this machine, as in the ledger."""
    named: dict[str, str | None] = {"data.folder": None}
    if is_user_data(config.data):
        named["data.name"] = user_data_name(config.data)
    return config.with_values(named)


def plan(
    table: str,
    models: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 1,
    fraction: float | None = None,
    epochs: int | None = None,
    ours: bool = True,
    values: Mapping[str, Any] | None = None,
) -> list[TableRun]:
    r"""Returns the runs of a table: all rows with the first seed, then all with the next.

    ``models`` selects rows by slug, shell pattern (``"*fog*"``), or the name of their network;
    ``ours`` adds our variants of rows; ``values`` changes settings.
    """
    changes = {setting_name(name): value for name, value in (values or {}).items()}
    if "seed" in changes:
        raise ValueError("plan: values must not have 'seed', which is an argument")
    given = {"data.fraction": fraction, "training.epochs": epochs}
    changes |= {name: value for name, value in given.items() if value is not None}
    if isinstance(seeds, int):
        seeds = range(checks.positive_int("plan", "seeds", seeds))
    chosen = [run for run in _first_runs(table) if ours or not run.variant]
    if models is not None:
        chosen = _filtered(chosen, models)
    return [run.with_values(changes | {"seed": seed}) for seed in seeds for run in chosen]


def _first_runs(table: str) -> list[TableRun]:
    r"""Returns the runs of a table with seed 0: each row, followed by its variant."""
    checks.known("plan", "table", table, TABLES)
    found = rows_of(table)
    # Table 6 has no hosts to compare a variant with, so it has no variants.
    hosts = {(row.dataset, row.model) for row in found}
    runs = []
    for row in found:
        host = row.model.removesuffix("+FOG")
        own = _VARIANTS.get(row.model) or _VARIANTS.get(host)
        if row.few_shot and row.model.endswith("FOG"):
            own = _FEW_SHOT_VARIANT
        compared = row.table is not None and (row.dataset, host) in hosts
        for variant in ["", own] if own and compared else [""]:
            config = config_of(row, 0, **_settings(variant))
            runs.append(TableRun(table, row.id, variant, label_of(row, variant), config))
    return runs


def _filtered(runs: Sequence[TableRun], patterns: Sequence[str]) -> list[TableRun]:
    named = [(run.slug, run) for run in runs]
    named += [(run.paper.model.lower(), run) for run in runs if not run.variant]  # by its network
    found: set[str] = set()
    for pattern in map(str.lower, patterns):
        fits = {run.slug for name, run in named if fnmatch.fnmatchcase(name, pattern)}
        if not fits:
            checks.known("plan", "models", pattern, dict.fromkeys(name for name, _ in named))
        found |= fits
    return [run for run in runs if run.slug in found]


def _settings(variant: str) -> dict[str, str]:
    name, _, value = variant.partition("=")
    return {name: value} if name else {}


def slug_of(row: str, variant: str) -> str:
    r"""Returns the name of a row, or of our variant of it, without its table: ``"gcn-sym"``."""
    slug, value = row.partition("/")[2], variant.partition("=")[2]
    return f"{slug}-{value}" if value else slug


def label_of(row: Row, variant: str) -> str:
    r"""Returns the name of a row, or of our variant of it, in its table."""
    place = ""  # what distinguishes it from others of its table with the same network
    if row.control and row.fraction:
        place = f"{row.control}, {100 * row.fraction:g} % of {row.dataset}"
    elif row.control or row.inputs:
        place = row.control or row.inputs
    elif row.few_shot:
        place = row.dataset.rpartition("-")[2].replace("shot", "-shot")
    elif row.table == TABLES["widths"].number:
        place = f"C={row.channels[0]}"
    elif row.table == TABLES["limits"].number:
        place = "ZINC without node features" if row.dataset == PLAIN_ZINC else row.dataset
    name = f"{row.model}, {place}" if place else row.model
    return f"{name} ({variant})" if variant else name


def is_host(host: Row, row: Row) -> bool:
    r"""Whether the first row is that of the same network without FOG, and not a control."""
    return (
        f"{host.model}+FOG" == row.model
        and (host.dataset, host.inputs) == (row.dataset, row.inputs)
        and not host.reference
    )


def same_variant(host: Row, variant: str, row: Row, own: str) -> bool:
    r"""Whether FOG alone is the difference of a host's variant and a variant of a row with FOG."""
    shared = own.replace(_FEW_SHOT_VARIANT, "")  # the host does not have this variant of FOG
    return _setting(host, variant) == _setting(row, shared)


def _setting(row: Row, variant: str) -> str:
    norm = model_settings(row).get("norm")
    return variant or (f"norm={norm}" if norm else "")

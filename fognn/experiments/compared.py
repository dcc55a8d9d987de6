r"""The networks of a comparison: each host, and the host with FOG, of the same size."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fognn.data import UserData
from fognn.experiments.ledger import COMPARE, LedgerEntry
from fognn.experiments.protocols import default_settings, protocol
from fognn.experiments.rows import rows
from fognn.experiments.search import Choice
from fognn.experiments.tables import Run, data_slug, portable
from fognn.models.budget import budget_settings
from fognn.models.hosts import HOSTS
from fognn.models.registry import has_fog
from fognn.training import Config, ModelConfig
from fognn.training.data import task_of
from fognn.training.environment import device_of
from fognn.training.user_data import is_user_data
from fognn.utils import checks

# The budget determines these, and the search the learning rate.
_SOLVED = ("model.channels", "model.head_channels", "model.hidden", "model.fog_channels")


class ComparedRun(Run):
    r"""One run of a comparison. Its row is the host with the budget, such as ``"gin-100000"``, and
    its variant ``"fog"`` for the network with FOG."""

    @property
    def slug(self) -> str:
        r"""The network, with a digest of all settings but the learning rate and the seed."""
        # Without paths: a clone with the ledger does not train the runs again.
        same = portable(self.config).with_values({"training.lr": 1.0, "seed": 0})
        return f"{self.config.model.name}-{same.digest()}".replace(":", "-")

    @property
    def name(self) -> str:
        r"""The slug with the learning rate and the seed."""
        return f"{self.slug}-lr{self.config.training.lr:g}-seed{self.config.seed}"

    @property
    def search_key(self) -> str:
        return f"{self.table}/{self.slug}"

    def with_seed(self, seed: int) -> "ComparedRun":
        r"""Returns the same run with another seed."""
        return replace(self, config=self.config.with_values({"seed": seed}))


def chosen_entries(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> list[LedgerEntry]:
    r"""Returns the runs of a comparison with the chosen learning rates."""
    rates = {choice.key: choice.lr for choice in choices}
    return [
        entry
        for entry in entries
        if rates.get(entry.key.rpartition("-lr")[0]) == entry.config["training"]["lr"]
    ]


def networks(
    data: str,
    hosts: Sequence[str | tuple[str, str]],
    budget: int = 100_000,
    values: Mapping[str, Any] | None = None,
    name: str | None = None,
    opened: UserData | None = None,
) -> list[ComparedRun]:
    r"""Returns each host and the host with FOG, with seed 0 and trained alike: by
    :func:`fognn.experiments.protocol` for FOG on these data. The arguments are those of
    :func:`fognn.compare`, with whole names of settings; a pair of own networks is their names."""
    values = values or {}
    for key in values:
        if key in ("seed", "data.name") or key in _SOLVED:
            raise ValueError(f"compare: {key} must not be given, the comparison sets it")
    for host in hosts:
        if isinstance(host, str):
            checks.known("compare", "hosts", host, ["fog", *HOSTS])
    of_model = {key: value for key, value in values.items() if key.startswith("model.")}
    others = {key: value for key, value in values.items() if key not in of_model}
    base = protocol(data, "fog", 0, others, opened)
    device_of(base.machine.device)
    task = task_of(base.data, opened)
    if task is None:
        raise ValueError(f"compare: data must be graphs, got {data!r}, which are images")
    usual = {key: base.model.settings[key] for key in ("layers", "dropout")}
    usual |= {key.removeprefix("model."): value for key, value in of_model.items()}
    table = COMPARE + _name(base, name)
    found = []
    for host in hosts:
        if not isinstance(host, str):
            label = host[0].partition(":")[2].rpartition("-")[0]  # the class
            for model, fog in zip(host, ("", "fog"), strict=True):
                config = replace(base, model=ModelConfig(model, {}))
                name_of = f"{label}+FOG" if fog else label
                found.append(ComparedRun(table, f"{label.lower()}-0", fog, name_of, config))
            continue
        for model, widths in budget_settings(host, task, budget, **usual).items():
            settings = _form(base, model, opened) | usual | widths
            settings |= default_settings(model, settings)
            fog = "fog" if has_fog(model) and host != "fog" else ""
            config = replace(base, model=ModelConfig(model, settings))
            found.append(ComparedRun(table, f"{host}-{budget}", fog, _display(model), config))
    return found


def _form(base: Config, model: str, opened: UserData | None) -> dict[str, Any]:
    r"""Returns the order of FOG's norm and activation, that of FOG alone on these data, and on the
    user's own data the norm of GCN and the readout of GIN."""
    form = {"fog_act_first": base.model.settings["fog_act_first"]} if has_fog(model) else {}
    if not is_user_data(base.data):
        return form
    values = {f"data.{key}": value for key, value in vars(base.data).items() if key != "name"}
    settings = protocol(base.data.name, model, 0, values, opened).model.settings
    return form | {key: settings[key] for key in ("norm", "readout") if key in settings}


def _display(model: str) -> str:
    r"""Returns a network's name as the paper writes it: ``"GatedGCN-E+FOG"``."""
    written = {row.model.lower(): row.model for row in rows() if not row.few_shot}
    host, plus, _ = model.partition("+fog")
    return written.get(host, "FOG" if host == "fog" else host) + ("+FOG" if plus else "")


def _name(config: Config, name: str | None) -> str:
    if name is None:
        name = re.sub(r"[^a-z0-9._-]+", "-", data_slug(config).lower()).strip("-._") or "data"
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise ValueError(f"compare: name must be of a-z, 0-9, '.', '_' and '-', got {name!r}")
    return name

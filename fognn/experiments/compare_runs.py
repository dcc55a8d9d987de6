r"""The runs of ``fognn compare``: networks with and without FOG of the same size."""

import itertools
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fognn.data.pyg_datasets import PREFIX
from fognn.experiments.compared import Compared, display_name, table_of
from fognn.experiments.ledger import LedgerEntry, ledger_of
from fognn.experiments.pool import Outcome, Summary
from fognn.experiments.protocols import protocol
from fognn.experiments.recipes import default_settings
from fognn.experiments.reproduce import unfinished
from fognn.experiments.search import Choice
from fognn.experiments.search_runs import search, trials
from fognn.experiments.tables import Planned
from fognn.models.budget import budget_settings
from fognn.models.registry import BUILT_IN, HOSTS, has_fog
from fognn.training import Config, ModelConfig
from fognn.training.config import setting_name
from fognn.training.data import data_fingerprint, task_of
from fognn.training.environment import device_of
from fognn.training.user_data import is_user_data, user_data_name
from fognn.utils import checks
from fognn.utils.own_code import asked

__all__ = ["RATES", "Measured", "measure", "networks", "seconds_of"]

RATES = (3e-3, 1e-3, 3e-4)
# The budget determines these, and the search the learning rate.
_SOLVED = ("model.channels", "model.head_channels", "model.hidden", "model.fog_channels")
_UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Measured:
    r"""The finished runs of a comparison.

    Args:
        networks (tuple): The networks, each with its first seed and any learning rate.
        choices (tuple): The search of each network; of those whose runs did not all fail.
        entries (tuple): Ledger lines of all seeds with the chosen learning rates, in the order of
            the networks and of the seeds.
        failed (tuple): Outcomes of the runs that failed.
        seeds (int): Number of seeds.
    """

    networks: tuple[Compared, ...]
    choices: tuple[Choice, ...]
    entries: tuple[LedgerEntry, ...]
    failed: tuple[Outcome, ...]
    seeds: int


def networks(
    data: str,
    hosts: Sequence[str],
    budget: int = 100_000,
    values: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> list[Compared]:
    r"""Returns the networks of a comparison, each with seed 0: each host and the host with FOG,
    trained alike.

    The layers, the dropout and the training are those of :func:`fognn.experiments.protocol` for
    FOG on
    these data.

    Args:
        data (str): A dataset by name, or your own data, as in :func:`fognn.train`.
        hosts (list): The hosts, such as ``["gcn", "gin"]``; ``"fog"`` is FOG alone.
        budget (int, optional): The number of parameters, see
            :func:`fognn.models.budget.budget_settings`. (default: :obj:`100_000`)
        values (dict, optional): Settings to change, by name. (default: :obj:`None`)
        name (str, optional): The name of the comparison.
            (default: that of the dataset, or of the file)
    """
    checks.positive_int("compare", "budget", budget)
    values = {setting_name(key): value for key, value in (values or {}).items()}
    for key in values:
        if key in ("seed", "data.name") or key in _SOLVED:
            raise ValueError(f"compare: values must not have {key!r}, which the comparison sets")
    _check_hosts(hosts)
    of_model = {key: value for key, value in values.items() if key.startswith("model.")}
    others = {key: value for key, value in values.items() if key not in of_model}
    base = protocol(str(data), "fog", 0, others)
    device_of(base.machine.device)
    task = task_of(base.data)
    if task is None:
        raise ValueError(f"compare: data must be graphs, got {data!r}, which are images")
    usual = {key: base.model.settings[key] for key in ("layers", "dropout")}
    usual |= {key.removeprefix("model."): value for key, value in of_model.items()}
    table = table_of(_name(base, name))
    found = []
    for host in hosts:
        for model, widths in budget_settings(host, task, budget, **usual).items():
            fog = "fog" if model.endswith("+fog") else ""
            own = _form(base, model) | usual | widths
            config = replace(base, model=ModelConfig(model, own | default_settings(model, own)))
            found.append(Compared(table, f"{host}-{budget}", fog, display_name(model), config))
    return found


def _form(base: Config, model: str) -> dict[str, Any]:
    r"""Returns the order of FOG's norm and activation, that of FOG alone on these data, and on the
    user's own data the norm of GCN."""
    form = {"fog_act_first": base.model.settings["fog_act_first"]} if has_fog(model) else {}
    if not is_user_data(base.data):
        return form
    values = {f"data.{key}": value for key, value in vars(base.data).items() if key != "name"}
    settings = protocol(base.data.name, model, 0, values).model.settings
    return form | {key: settings[key] for key in ("norm",) if key in settings}


def measure(
    networks: Sequence[Compared],
    runs: Path,
    results: Path,
    train: Callable[[list[Planned]], Summary],
    seeds: int | None = 5,
    rates: Sequence[float] = RATES,
    seconds: float | None = None,
    workers: int = 1,
    clock: Callable[[], float] = time.monotonic,
) -> Measured:
    r"""Trains all networks: every learning rate with the first seed, then the other seeds with the
    rate that has the best validation metric.

    Args:
        networks (list): The networks, from :func:`networks`.
        runs (Path): The folder of the run folders.
        results (Path): The folder of the ledgers.
        train (Callable): Trains runs and adds them to the ledgers.
        seeds (int, optional): Number of seeds, the largest with :obj:`seconds`; :obj:`None` for as
            many as the time allows. (default: :obj:`5`)
        rates (list, optional): The learning rates. (default: :obj:`(3e-3, 1e-3, 3e-4)`)
        seconds (float, optional): The time of the comparison. After the search, one more seed of
            all networks is trained as long as the time that the last one took is left.
            (default: :obj:`None`)
        workers (int, optional): Number of runs at a time, for the time of the first such round.
            (default: :obj:`1`)
        clock (Callable, optional): Returns the time in seconds.
            (default: :obj:`time.monotonic`)
    """
    if seeds is not None:
        checks.positive_int("compare", "seeds", seeds)
    _check_rates(rates)
    begin = clock()
    decay = networks[0].config.training.weight_decay
    settings = [(rate, decay) for rate in rates]
    _check_data(trials(networks, lambda _: settings), results)
    failed: list[Outcome] = []
    skipped: list[str] = []

    def train_all(some: list[Planned]) -> Summary:
        summary = train(some)
        failed.extend(summary.failed)
        skipped.extend(summary.skipped)
        return summary

    chosen, choices = search(networks, results, train_all, lambda _: settings, skip_failed=True)
    done = 1
    if chosen and seconds is None and seeds is not None:
        train_all([_with_seed(run, seed) for seed in range(1, seeds) for run in chosen])
        done = seeds
    elif chosen and seconds is not None:
        lines = {entry.key: entry for entry in _entries(networks, results)}
        needed = (clock() - begin) / len(rates)
        if skipped:  # the search did not take its whole time here
            needed = sum(lines[run.key].result["seconds"] for run in chosen) / workers
        for seed in itertools.count(1) if seeds is None else range(1, seeds):
            runs_of_seed = [_with_seed(run, seed) for run in chosen]
            todo = unfinished(runs_of_seed, runs, results)
            start = clock()
            if todo and start - begin + needed > seconds:
                break
            train_all(runs_of_seed)
            if len(todo) == len(runs_of_seed):
                needed = clock() - start
            done = seed + 1
    lines = {entry.key: entry for entry in _entries(networks, results)}
    keys = [_with_seed(run, seed).key for run in chosen for seed in range(done)]
    entries = tuple(lines[key] for key in keys if key in lines)
    return Measured(tuple(networks), tuple(choices), entries, tuple(failed), done)


def seconds_of(text: str) -> float:
    r"""Returns the seconds of a time such as ``"30m"``, ``"1.5h"`` or ``"90s"``."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh])\s*", text)
    if found is None or not float(found[1]):
        raise ValueError(
            f"compare: time must be a number with s, m or h, such as 30m, got {text!r}"
        )
    return float(found[1]) * _UNITS[found[2]]


def _check_hosts(hosts: Sequence[str]) -> None:
    if isinstance(hosts, str) or not hosts:
        raise ValueError(f"compare: hosts must be a list of names, got {hosts!r}")
    for host in hosts:
        if str(host).endswith("+fog"):
            raise ValueError(
                f"compare: hosts must be named without FOG, which is added to each, got {host!r}"
            )
        checks.known("compare", "hosts", host, ["fog", *HOSTS])
        if host != "fog" and host not in BUILT_IN and asked() is None:
            raise ValueError(
                f"compare: hosts must be known to the worker processes, too: import the file that "
                f"registers {host!r} (--import, or the argument import_file)"
            )
    if len(set(hosts)) < len(hosts):
        raise ValueError(f"compare: hosts must differ, got {', '.join(hosts)}")


def _check_rates(rates: Sequence[float]) -> None:
    numbers = [rate for rate in rates if isinstance(rate, (int, float)) and 0 < rate < 1e6]
    if not numbers or len(set(numbers)) < len(rates):
        raise ValueError(f"compare: rates must be different positive numbers, got {list(rates)}")


def _check_data(planned: Sequence[Planned], results: Path) -> None:
    r"""Raises if the ledger has runs of the comparison with other data of the same name."""
    config = planned[0].config
    keys = {run.key for run in planned}
    known = {
        entry.result.get("fingerprint")
        for entry in ledger_of(planned[0].table, results).entries()
        if entry.key in keys
    } - {None}
    if known and is_user_data(config.data) and known != {data_fingerprint(config)}:
        raise ValueError(
            f"data {config.data.name!r} have changed since the runs of the comparison in "
            f"{results / planned[0].table}.jsonl: give the comparison another name (--name)"
        )


def _entries(networks: Sequence[Compared], results: Path) -> list[LedgerEntry]:
    return ledger_of(networks[0].table, results).entries()


def _with_seed(run: Planned, seed: int) -> Planned:
    return replace(run, config=run.config.with_values({"seed": seed}))


def _name(config: Config, name: str | None) -> str:
    if name is None:
        stem = config.data.name
        if is_user_data(config.data):
            stem = Path(user_data_name(config.data).removeprefix(PREFIX).replace("/", "-")).stem
        name = re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._") or "data"
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise ValueError(f"compare: name must be of a-z, 0-9, '.', '_' and '-', got {name!r}")
    return name

r"""Comparison of networks with and without FOG on any data: ``fognn compare``."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from torch.nn import Module

from fognn.data import UserData, open_user_data
from fognn.data.catalog import dataset_info
from fognn.data.opening import PYTHON
from fognn.data.statistics import describe
from fognn.experiments.differences import METRICS, networks_table, pluralize, sentence_of
from fognn.experiments.ledger import COMPARE, LedgerEntry, ledger_of
from fognn.experiments.protocols import default_settings, protocol
from fognn.experiments.reproduce import reproduce
from fognn.experiments.results import networks_frame
from fognn.experiments.rows import rows
from fognn.experiments.search import Choice, trials
from fognn.experiments.tables import ComparedRun, data_slug
from fognn.models.budget import budget_settings
from fognn.models.hosts import BUILT_IN, HOSTS
from fognn.models.registry import has_fog
from fognn.training import Config, ModelConfig
from fognn.training.config import DataConfig, setting_name
from fognn.training.data import PLAIN_ZINC, data_fingerprint, is_user_data, open_data, task_of
from fognn.training.environment import device_of
from fognn.training.networks import module_name
from fognn.utils import checks
from fognn.utils.files import user_path
from fognn.utils.own_code import asked
from fognn.utils.own_code import import_file as import_python_file

__all__ = ["CompareResult", "compare"]

Host = str | tuple[str, str]  # or the names of a pair of own networks
RATES = (3e-3, 1e-3, 3e-4)
# The budget determines these, and the search the learning rate.
_SOLVED = ("model.channels", "model.head_channels", "model.hidden", "model.fog_channels")


@dataclass(frozen=True)
class CompareResult:
    r"""The result of :func:`compare`; ``str(result)`` is the table with the answer."""

    frame: pd.DataFrame  #: The figures, see :func:`fognn.experiments.results.networks_frame`.
    sentence: str  #: The answer: for each host whether FOG is better, worse, or inconclusive.
    choices: tuple[Choice, ...]  #: The search of each network for its learning rate.
    notes: tuple[str, ...]  #: A line for each run or network that failed or learnt nothing.
    seeds: int  #: Number of seeds.
    winner: str | None  #: The network with the best validation metric.
    folder: Path | None  #: The run folder of its best seed by the validation metric.
    runs: Path  #: The folder of the run folders of the comparison.
    about: dict[str, Any]  #: The data, see :func:`fognn.data.statistics.describe`.

    @property
    def entries(self) -> list[LedgerEntry]:
        r"""The ledger lines of the runs with the chosen learning rates."""
        return [entry for entries in self.frame.get("entries", ()) for entry in entries]

    def __str__(self) -> str:
        lines = []
        if len(self.frame):
            first = self.frame.iloc[0]
            metric, seeds = METRICS[first["metric"]], pluralize(self.seeds, "seed")
            at = f"{metric.label} at the best validation epoch, {metric.direction}"
            lines += [f"{first['data']}: {at}; {seeds}", ""]
            lines += [networks_table(self.frame).to_string(index=False), ""]
        lines += [*self.notes, *[""] * bool(self.notes), self.sentence]
        if self.winner is not None and self.folder is not None:
            lines.append(f"Best on the validation split: {self.winner}. To predict with it:")
            lines.append(f"  {self._command(self.folder)}")
        return "\n".join(lines)

    def _command(self, folder: Path) -> str:
        best = next(e for e in self.entries if e.key.rpartition("/")[2] == folder.name)
        if not folder.exists():  # measured on another machine
            return f"{best.result['command']} trains it"
        place = folder / "fold-1" if (folder / "fold-1").is_dir() else folder
        if best.model.startswith(PYTHON):
            return f"fognn.predict({str(place)!r}, graphs, module=network)"
        words = ["fognn", "predict", str(place), "INPUT", "-o", "predictions.csv"]
        return shlex.join([*words, "--import", str(asked())] if asked() else words)


def compare(
    data: Any,
    hosts: Sequence[str | tuple[Module, Module]] = ("gcn", "gin"),
    seeds: int = 5,
    budget: int = 100_000,
    *,
    rates: Sequence[float] | None = None,
    name: str | None = None,
    workers: int | Literal["auto"] = 1,
    ray: str | None = None,
    shared: bool = False,
    runs: str | Path = "runs",
    results: str | Path = "results",
    import_file: str | Path | None = None,
    quiet: bool = False,
    command: str = "the same call",
    **settings: Any,
) -> CompareResult:
    r"""Compares each host with the same host beside FOG, on any data.

    Both have the same number of parameters, within 1 % of :obj:`budget`, the same splits, seeds,
    epochs and optimiser, and both try the same learning rates: each with the first seed, of which
    the best by the validation metric is taken for all seeds. Finished runs are not trained again,
    and unfinished ones are resumed, see :func:`fognn.experiments.reproduce`.

    .. code-block:: python

        result = fognn.compare(dataset, hosts=["gcn", "gin"], seeds=5)
        print(result.sentence)
        result.frame[["network", "mean", "sd", "paired", "low", "high", "verdict"]]

    Args:
        data (str or object): A dataset by name, your own file, or a Python object, as in
            :func:`fognn.train`.
        hosts (list, optional): The hosts, such as ``["gcn", "gin"]``; ``"fog"`` is FOG alone, and
            :func:`fognn.models.register_host` adds your own. Or pairs of your own networks,
            ``(network, network_with_fog)``, which keep their sizes.
            (default: :obj:`("gcn", "gin")`)
        seeds (int, optional): Number of seeds. (default: :obj:`5`)
        budget (int, optional): Number of parameters of each network. (default: :obj:`100_000`)
        rates (list, optional): The learning rates. (default: :obj:`(3e-3, 1e-3, 3e-4)`, or
            ``lr`` if that is given)
        name (str, optional): Name of the comparison: its runs are in ``RUNS/compare/NAME`` and
            its ledger is ``RESULTS/compare/NAME.jsonl``.
            (default: that of the dataset, or of the file)
        workers, ray, shared (optional): As in :func:`fognn.experiments.reproduce`. Python objects
            need one worker, the default.
        runs (str, optional): The folder of the run folders. (default: :obj:`"runs"`)
        results (str, optional): The folder of the ledgers. (default: :obj:`"results"`)
        import_file (str, optional): A Python file that registers hosts of your own.
        quiet (bool, optional): Shows no progress. (default: :obj:`False`)
        command (str, optional): The command that resumes the comparison, for messages.
        **settings (optional): Settings of :class:`~fognn.training.Config` for all networks, as in
            :func:`fognn.train`.
    """
    if import_file is not None:
        import_python_file(import_file)
    checks.positive_int("compare", "seeds", seeds)
    values = {setting_name(key): value for key, value in settings.items()}
    rates = _rates(values.pop("training.lr", None), rates)
    named, given = _named(hosts)
    alone = workers == 1 and ray is None
    registered_here = not asked() and not {*named} <= {"fog", *BUILT_IN}
    if not alone and (given or registered_here or not isinstance(data, str | Path)):
        raise ValueError(
            "compare: workers must be 1 for Python objects and hosts of this program; data in a "
            f"file, and --import (import_file) of the hosts' file, take several, got {workers!r}"
        )
    source, opened = _opened(data, values)
    planned = networks(source, named, budget, values, name, opened)
    if opened is not None and alone:  # other processes open the file
        for run in planned:
            given.setdefault(run.config.model.name, {})["data"] = opened
    runs, results, table = user_path(runs), user_path(results), planned[0].table
    tries = [(rate, planned[0].config.training.weight_decay) for rate in rates]
    _check_data(trials(planned, tries), results, opened)
    summary = reproduce(
        [run.with_values({"seed": seed}) for seed in range(seeds) for run in planned],
        runs,
        results,
        workers,
        ray,
        quiet,
        settings=tries,
        shared=shared,
        command=command,
        given=given,
    )
    lines = {entry.key: entry for entry in ledger_of(table, results).entries()}
    frame = networks_frame([lines[run.key] for run in summary.planned if run.key in lines])
    winner, folder = None, None
    if len(frame):  # the best by validation: the test split is not used
        advantage = METRICS[frame["metric"].iloc[0]].advantage
        best = frame.loc[frame["validation"].map(advantage).idxmax()]
        entry = max(best["entries"], key=lambda e: advantage(e.result["val"]["best"]["items"]))
        winner, folder = str(best["network"]), runs / entry.key
    return CompareResult(
        frame,
        sentence_of(frame),
        tuple(summary.choices),
        tuple(_notes(planned, summary.failed, frame)),
        seeds,
        winner,
        folder,
        runs / table,
        _about(planned[0].config.data, opened),
    )


def networks(
    data: str,
    hosts: Sequence[Host],
    budget: int = 100_000,
    values: Mapping[str, Any] | None = None,
    name: str | None = None,
    opened: UserData | None = None,
) -> list[ComparedRun]:
    r"""Returns each host and the host with FOG, with seed 0 and trained alike: by the protocol for
    FOG on these data. ``values`` has whole names of settings."""
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
            for model, fog, end in zip(host, ("", "fog"), ("", "+FOG"), strict=True):
                config = replace(base, model=ModelConfig(model, {}))
                found.append(ComparedRun(table, f"{label.lower()}-0", fog, label + end, config))
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
    if is_user_data(base.data):
        values = {f"data.{key}": value for key, value in vars(base.data).items() if key != "name"}
        settings = protocol(base.data.name, model, 0, values, opened).model.settings
        form |= {key: settings[key] for key in ("norm", "readout") if key in settings}
    return form


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


def _opened(data: Any, values: Mapping[str, Any]) -> tuple[str, UserData | None]:
    r"""Returns the name of the data, and the user's data, opened."""
    if not isinstance(data, str | Path):
        opened = open_user_data(data, task=values.get("data.task", "auto"))
        return opened.name, opened
    fields = {k.removeprefix("data."): v for k, v in values.items() if k.startswith("data.")}
    config = DataConfig(str(data), **fields)
    return str(data), open_data(config) if is_user_data(config) else None


def _about(config: DataConfig, opened: UserData | None) -> dict[str, Any]:
    if opened is not None:
        return describe(opened, config.split, config.fold)
    dataset = dataset_info("zinc" if config.name == PLAIN_ZINC else config.name)
    return {"task": dataset.task, "size": dataset.size}


def _check_data(runs: Sequence[ComparedRun], results: Path, data: UserData | None) -> None:
    r"""Raises if the ledger has runs of the comparison with other data of the same name."""
    config, ledger = runs[0].config, ledger_of(runs[0].table, results)
    keys = {run.key for run in runs}
    known = {e.result.get("fingerprint") for e in ledger.entries() if e.key in keys} - {None}
    if known and is_user_data(config.data) and known != {data_fingerprint(config, data)}:
        raise ValueError(
            f"compare: data {config.data.name!r} have changed since the runs in {ledger.path}: "
            "give another name (--name)"
        )


def _notes(
    planned: Sequence[ComparedRun], failed: Mapping[str, str], frame: pd.DataFrame
) -> list[str]:
    r"""Returns a line for each run that failed, and each network that learnt nothing."""
    lines = []
    for run in planned:
        own = [key for key in failed if key.startswith(f"{run.search_key}-lr")]
        lines += [f"{run.label} failed ({key.rpartition('/')[2]}): {failed[key]}" for key in own]
    for line in frame.itertuples():
        if any(entry.result.get("majority_class") for entry in line.entries):
            lines.append(f"{line.network} only predicts the most frequent class.")
    return lines


def _named(hosts: Sequence[Any]) -> tuple[list[Host], dict[str, dict[str, Any]]]:
    r"""Returns the names of the hosts, and the user's own networks by their names."""
    if isinstance(hosts, str) or not isinstance(hosts, Sequence) or not hosts:
        raise ValueError(f"compare: hosts must be a list, got {hosts!r}")
    named: list[Host] = []
    given: dict[str, dict[str, Any]] = {}
    for host in hosts:
        if isinstance(host, str):
            named.append(host.lower())
            continue
        pair = tuple(host) if isinstance(host, tuple | list) else (host,)
        if len(pair) != 2 or not all(isinstance(net, Module) for net in pair):
            kinds = ", ".join(getattr(net, "__name__", type(net).__name__) for net in pair)
            raise ValueError(
                "compare: hosts must be names, or pairs of a network and the same with FOG "
                f"(objects of torch.nn.Module), got {kinds}"
            )
        names = (module_name(pair[0]), module_name(pair[1]))
        given |= {name: {"module": net} for name, net in zip(names, pair, strict=True)}
        named.append(names)
    return list(dict.fromkeys(named)), given


def _rates(lr: float | None, rates: Sequence[float] | None) -> Sequence[float]:
    r"""Returns the learning rates to try: the given ones, or the one of the settings."""
    if lr is not None and rates is not None:
        raise ValueError(f"compare: lr must not be given with rates, got {lr} and {rates}")
    found = [lr] if lr is not None else list(RATES if rates is None else rates)
    if not found or not all(isinstance(rate, int | float) and rate > 0 for rate in found):
        raise ValueError(f"compare: rates must be positive numbers, got {found}")
    return list(dict.fromkeys(found))

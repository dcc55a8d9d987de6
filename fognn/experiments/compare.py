r"""Comparison of networks with and without FOG on any data: ``fognn compare``."""

import itertools
import math
import re
import shlex
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from torch.nn import Module

from fognn.data import UserData, open_user_data
from fognn.experiments.compared import ComparedRun, chosen_entries, needs_import, networks
from fognn.experiments.differences import Difference, difference_of
from fognn.experiments.ledger import LedgerEntry, ledger_of
from fognn.experiments.pool import Outcome, Progress, Summary
from fognn.experiments.reproduce import reproduce, unfinished
from fognn.experiments.results import compare_frame
from fognn.experiments.search import Choice, search, trials
from fognn.experiments.wording import FEW, METRICS, NONE, joined, pluralize
from fognn.training.config import DataConfig, setting_name
from fognn.training.data import data_fingerprint
from fognn.training.user_data import is_user_data, open_data
from fognn.training.user_module import module_name
from fognn.utils import checks
from fognn.utils.files import user_path
from fognn.utils.own_code import asked
from fognn.utils.own_code import import_file as import_python_file

__all__ = ["CompareResult", "compare", "sentence_of", "winner_of"]

RATES = (3e-3, 1e-3, 3e-4)
_UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class CompareResult:
    r"""The result of :func:`compare`; ``str(result)`` is the table with the answer.

    Args:
        frame (DataFrame): The figures of each network, see
            :func:`fognn.experiments.results.compare_frame`.
        sentence (str): The answer: for each host whether FOG is better or worse, or whether the
            comparison is inconclusive.
        choices (tuple): The search of each network for its learning rate.
        notes (tuple): A line for each run or network that failed, and for the number of seeds that
            a given time allowed.
        seeds (int): Number of seeds.
        winner (str, optional): The network with the best validation metric.
        folder (Path, optional): The run folder of the winner's best seed by the validation metric.
        runs (Path): The folder of the run folders of the comparison.
    """

    frame: pd.DataFrame
    sentence: str
    choices: tuple[Choice, ...]
    notes: tuple[str, ...]
    seeds: int
    winner: str | None
    folder: Path | None
    runs: Path

    @property
    def entries(self) -> list[LedgerEntry]:
        r"""The ledger lines of the runs with the chosen learning rates."""
        return [entry for entries in self.frame.get("entries", ()) for entry in entries]

    def __str__(self) -> str:
        lines = [self._table(), ""] if len(self.frame) else []
        lines += [*self.notes, *[""] * bool(self.notes), self.sentence]
        if self.winner is not None and self.folder is not None:
            lines.append(f"Best on the validation split: {self.winner}. To predict with it:")
            lines.append(f"  {self._command(self.folder)}")
        return "\n".join(lines)

    def _table(self) -> str:
        metric = METRICS[self.frame["metric"][0]]
        split = "validation" if self.frame["figure"][0].startswith("val") else "test"
        rows = []
        for line in self.frame.itertuples():
            gap, sd = (
                difference_of(line),
                "" if pd.isna(line.sd) else f" ± {metric.number(line.sd)}",
            )
            memory = NONE if pd.isna(line.peak_memory) else f"{line.peak_memory / 2**20:,.0f} MiB"
            rows.append(
                {
                    "network": f"{line.network} ({line.note})" if line.note else line.network,
                    "parameters": f"{line.parameters:,}",
                    "lr": f"{line.lr:g}",
                    f"{split} {metric.axis}": f"{metric.number(line.mean)}{sd}",
                    "FOG − host": NONE if gap is None else metric.signed(gap.value),
                    "95 % interval": metric.interval(gap.low, gap.high) or NONE if gap else NONE,
                    "verdict": line.verdict or NONE,
                    "s an epoch": f"{line.seconds_per_epoch:.2f}",
                    "peak memory": memory,
                }
            )
        title = (
            f"{self.frame['data'][0]}: {metric.label} at the best validation epoch, "
            f"{metric.direction}; {pluralize(self.seeds, 'seed')}"
        )
        return f"{title}\n\n{pd.DataFrame(rows).to_string(index=False)}"

    def _command(self, folder: Path) -> str:
        if not folder.exists():  # measured on another machine
            best = next(entry for entry in self.entries if folder == self.runs / _name(entry))
            return f"{best.result['command']} trains it"
        place = folder / "fold-1" if (folder / "fold-1").is_dir() else folder
        words = ["fognn", "predict", str(place), "INPUT", "-o", "predictions.csv"]
        return shlex.join([*words, "--import", str(asked())] if asked() else words)


def compare(
    data: Any,
    hosts: Sequence[str | tuple[Module, Module]] = ("gcn", "gin"),
    seeds: int | None = None,
    budget: int = 100_000,
    *,
    rates: Sequence[float] | None = None,
    time: str | float | None = None,
    name: str | None = None,
    workers: int | Literal["auto"] = 1,
    ray: str | None = None,
    shared: bool | None = None,
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
        seeds (int, optional): Number of seeds; the largest number if :obj:`time` is given.
            (default: :obj:`5`, or as many as :obj:`time` allows)
        budget (int, optional): Number of parameters of each network. (default: :obj:`100_000`)
        rates (list, optional): The learning rates. (default: :obj:`(3e-3, 1e-3, 3e-4)`, or
            ``lr`` if that is given)
        time (str, optional): The time that the comparison may take, such as ``"30m"``; one more
            seed is trained as long as it fits. (default: :obj:`None`)
        name (str, optional): Name of the comparison: its runs are in ``RUNS/compare/NAME`` and
            its ledger is ``RESULTS/compare/NAME.jsonl``.
            (default: that of the dataset, or of the file)
        workers (int or str, optional): As in :func:`fognn.experiments.reproduce`. Python objects
            need :obj:`1`. (default: :obj:`1`)
        ray (str, optional): As in :func:`fognn.experiments.reproduce`. (default: :obj:`None`)
        shared (bool, optional): As in :func:`fognn.experiments.reproduce`. (default: :obj:`None`)
        runs (str, optional): The folder of the run folders. (default: :obj:`"runs"`)
        results (str, optional): The folder of the ledgers. (default: :obj:`"results"`)
        import_file (str, optional): A Python file that registers hosts of your own.
            (default: :obj:`None`)
        quiet (bool, optional): If set to :obj:`True`, shows no progress. (default: :obj:`False`)
        command (str, optional): The command that resumes the comparison, for messages.
            (default: :obj:`"the same call"`)
        **settings (optional): Settings of :class:`~fognn.training.Config` for all networks, as in
            :func:`fognn.train`.
    """
    if import_file is not None:
        import_python_file(import_file)
    seconds = _seconds(time)
    seeds = 5 if seeds is None and seconds is None else seeds
    if seeds is not None:
        checks.positive_int("compare", "seeds", seeds)
    settings, rates = _rates(settings, rates)
    named = [_host(host) for host in _listed(hosts)]
    nets: dict[str, dict[str, Any]] = {
        name: {"module": net}
        for names, pair in zip(named, hosts, strict=True)
        for name, net in (zip(names, pair, strict=True) if isinstance(names, tuple) else ())
    }
    objects = not isinstance(data, str | Path) or any(isinstance(h, tuple) for h in named)
    if (workers != 1 or ray is not None) and (objects or needs_import(named)):
        raise ValueError(
            "compare: workers must be 1 for Python objects and hosts of this program; data in a "
            f"file, and --import (import_file) of the hosts' file, take several, got {workers!r}"
        )
    source, opened = _opened(data, settings)
    planned = networks(source, named, budget, settings, name, opened)
    if opened is not None and workers == 1 and ray is None:  # other processes open the file
        nets = {run.config.model.name: {"data": opened} for run in planned} | {
            model: given | {"data": opened} for model, given in nets.items()
        }
    runs, results = user_path(runs), user_path(results)
    progress = Progress(len(planned) * (len(rates) + (seeds or 1) - 1), quiet)

    def train(some: list[ComparedRun]) -> Summary:
        options = {"shared": shared, "command": command, "progress": progress, "given": nets}
        return reproduce(some, runs, results, workers, ray, quiet, **options)  # type: ignore[arg-type]

    comparison = _Comparison(planned, runs, results, train, rates, opened)
    done = comparison.run(seeds, seconds, workers if isinstance(workers, int) else 1)
    frame = compare_frame(comparison.chosen_entries(done))
    notes = comparison.notes()
    if time is not None:
        notes.append(f"{pluralize(done, 'seed')} in the time of {time}")
    winner = winner_of(frame)
    return CompareResult(
        frame,
        sentence_of(frame),
        tuple(comparison.choices),
        tuple(notes),
        done,
        None if winner is None else str(winner.network),
        None if winner is None else runs / planned[0].table / _name(_best_entry(winner)),
        runs / planned[0].table,
    )


class _Comparison:
    r"""The runs of a comparison: every learning rate with the first seed, then the other seeds with
    the rate that has the best validation metric."""

    def __init__(
        self,
        planned: Sequence[ComparedRun],
        runs: Path,
        results: Path,
        train: Callable[[list[ComparedRun]], Summary],
        rates: Sequence[float],
        data: UserData | None,
    ) -> None:
        self.planned, self.runs, self.results, self.train = planned, runs, results, train
        self.data = data
        decay = planned[0].config.training.weight_decay
        self.settings = [(rate, decay) for rate in rates]
        self.choices: list[Choice] = []
        self.chosen: list[ComparedRun] = []
        self.failed: list[Outcome] = []
        self.skipped: list[str] = []
        self._check_data()

    def run(self, seeds: int | None, seconds: float | None, workers: int) -> int:
        r"""Trains all runs, within a time if it is given, and returns the number of seeds."""
        begin = clock.monotonic()
        self.chosen, self.choices = search(
            self.planned, self.results, self._train, lambda _: self.settings, skip_failed=True
        )
        if not self.chosen:
            return 1
        if seconds is None:
            assert seeds is not None
            self._train([_seeded(run, seed) for seed in range(1, seeds) for run in self.chosen])
            return seeds
        lines = {entry.key: entry for entry in self._entries()}
        needed = (clock.monotonic() - begin) / len(self.settings)
        if self.skipped:  # the search did not take its whole time here
            needed = sum(lines[run.key].result["seconds"] for run in self.chosen) / workers
        done = 1
        for seed in itertools.count(1) if seeds is None else range(1, seeds):
            some = [_seeded(run, seed) for run in self.chosen]
            todo, start = unfinished(some, self.runs, self.results), clock.monotonic()
            if todo and start - begin + needed > seconds:
                break
            self._train(some)
            if len(todo) == len(some):
                needed = clock.monotonic() - start
            done = seed + 1
        return done

    def chosen_entries(self, seeds: int) -> list[LedgerEntry]:
        r"""Returns the ledger lines with the chosen rates, in the order of networks and seeds."""
        lines = {entry.key: entry for entry in self._entries()}
        keys = [_seeded(run, seed).key for run in self.chosen for seed in range(seeds)]
        return chosen_entries([lines[key] for key in keys if key in lines], self.choices)

    def notes(self) -> list[str]:
        r"""Returns a line for each network or run that failed."""
        lines, chosen = [], {choice.key for choice in self.choices}
        for run in self.planned:
            own = [one for one in self.failed if one.job.key.startswith(f"{run.search_key}-lr")]
            if own and run.search_key not in chosen:
                lines.append(f"{run.label} failed at all learning rates: {own[0].reason}")
                continue
            for one in own:
                config = one.job.config
                where = f"a learning rate of {config.training.lr:g}, seed {config.seed}"
                lines.append(f"{run.label} failed at {where}: {one.reason}")
        return lines + self._majority()

    def _majority(self) -> list[str]:
        r"""Returns a line for each network that only predicts the most frequent class."""
        same = {e.label for e in self._entries() if e.result.get("majority_class")}
        return [
            f"{label} predicts the most frequent class for all of the test split." for label in same
        ]

    def _train(self, some: list[ComparedRun]) -> Summary:
        summary = self.train(some)
        self.failed += summary.failed
        self.skipped += summary.skipped
        return summary

    def _entries(self) -> list[LedgerEntry]:
        return ledger_of(self.planned[0].table, self.results).entries()

    def _check_data(self) -> None:
        r"""Raises if the ledger has runs of the comparison with other data of the same name."""
        config = self.planned[0].config
        keys = {run.key for run in trials(self.planned, lambda _: self.settings)}
        known = {e.result.get("fingerprint") for e in self._entries() if e.key in keys} - {None}
        if known and is_user_data(config.data) and known != {data_fingerprint(config, self.data)}:
            raise ValueError(
                f"compare: data {config.data.name!r} have changed since the runs in "
                f"{self.results / self.planned[0].table}.jsonl: give another name (--name)"
            )


def _opened(data: Any, settings: Mapping[str, Any]) -> tuple[str, UserData | None]:
    r"""Returns the name of the data, and the user's data, opened."""
    values = {setting_name(key): value for key, value in settings.items()}
    values = {key: value for key, value in values.items() if key.startswith("data.")}
    if not isinstance(data, str | Path):
        opened = open_user_data(data, task=values.get("data.task", "auto"))
        return opened.name, opened
    config = DataConfig(str(data))
    if not is_user_data(config):
        return str(data), None
    fields = {key.removeprefix("data."): value for key, value in values.items()}
    return str(data), open_data(DataConfig(str(data), **fields))


def winner_of(frame: pd.DataFrame) -> Any:
    r"""Returns the row of the network with the best validation metric, the mean over seeds;
    :obj:`None` without networks. The test split is not used."""
    if not len(frame):
        return None
    validation, higher = frame["validation"], METRICS[frame["metric"].iloc[0]].higher_is_better
    return frame.loc[validation.idxmax() if higher else validation.idxmin()]


def sentence_of(frame: pd.DataFrame) -> str:
    r"""Returns the answer in a sentence: for each host whether FOG is better or worse, or whether
    the comparison is inconclusive, and what its intervals are over.

    Args:
        frame (DataFrame): The networks, from :func:`fognn.experiments.results.compare_frame`.
    """
    lines = list(frame.itertuples()) if len(frame) else []
    found = [(line, gap) for line in lines if (gap := difference_of(line)) is not None]
    if not found:
        return "No host has runs with and without FOG, so there is nothing to compare."
    sure = [(line, gap) for line, gap in found if line.verdict != "inconclusive"]
    parts = [_finding(line, gap) for line, gap in sure]
    unclear = [(line, gap) for line, gap in found if line.verdict == "inconclusive"]
    each = [f"{line.host}{_note(line)} ({_amount(line, gap, True)})" for line, gap in unclear]
    if each:
        over = joined(list(dict.fromkeys(_over(gap) for _, gap in unclear)))
        parts.append(f"with and without FOG, {joined(each)} over {over}: inconclusive")
    text = "; ".join(parts)
    few = [gap for line, gap in found if line.verdict.startswith("maybe")]
    folds = any(gap.over == "fold" for _, gap in found)
    if few:
        why = "folds share training data" if folds else "another seed may show the opposite"
        text += f"; {FEW}: {why}"
    text = f"{text[:1].upper()}{text[1:]}."
    if all(gap.low is None for _, gap in found):
        return text
    split = "folds, which share training data" if folds else "training seeds of one split"
    return f"{text} The intervals are over {split}."


def _finding(line: Any, gap: Difference) -> str:
    verb = "was" if line.verdict.startswith("maybe") else "is"
    adjective = line.verdict.removeprefix("maybe ")
    how = f"{verb} {adjective} than {line.host} by {_amount(line, gap)} over {_over(gap)}"
    return f"{line.network}{_note(line)} {how}"


def _amount(line: Any, gap: Difference, signed: bool = False) -> str:
    r"""The difference with half its interval, to two digits of the latter, and its unit."""
    half = None if gap.low is None or gap.high is None else (gap.high - gap.low) / 2
    # Equal differences of all seeds have an interval of rounding errors.
    scale = half if half and half > 1e-4 * abs(gap.value) else abs(gap.value)
    digits = min(8, max(0, 1 - math.floor(math.log10(scale)))) if scale else 1
    text = f"{abs(gap.value):.{digits}f}"
    if signed and float(text):
        text = f"{'−' if gap.value < 0 else '+'}{text}"
    text += "" if half is None else f" ± {half:.{digits}f}"
    metric = METRICS[line.metric]
    return f"{text} points of {metric.label}" if metric.percent else f"{text} {metric.label}"


def _over(gap: Difference) -> str:
    return pluralize(gap.pairs, gap.over)


def _note(line: Any) -> str:
    return f" ({line.note})" if line.note else ""


def _best_entry(line: Any) -> LedgerEntry:
    best = max if METRICS[line.metric].higher_is_better else min
    found: LedgerEntry = best(line.entries, key=lambda e: e.result["val"]["best"]["items"])
    return found


def _name(entry: LedgerEntry) -> str:
    return entry.key.rpartition("/")[2]


def _seeded(run: ComparedRun, seed: int) -> ComparedRun:
    return replace(run, config=run.config.with_values({"seed": seed}))


def _listed(hosts: Any) -> list[Any]:
    if isinstance(hosts, str) or not isinstance(hosts, Sequence) or not hosts:
        raise ValueError(f"compare: hosts must be a list, got {hosts!r}")
    return list(hosts)


def _host(host: Any) -> str | tuple[str, str]:
    if isinstance(host, str):
        return host.lower()
    pair = tuple(host) if isinstance(host, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(net, Module) for net in pair):
        raise ValueError(
            "compare: hosts must be names, or pairs of a network and the same with FOG "
            f"(torch.nn.Module), got {type(host).__name__}"
        )
    return module_name(pair[0], False, False), module_name(pair[1], False, False)


def _rates(
    settings: dict[str, Any], rates: Sequence[float] | None
) -> tuple[dict[str, Any], Sequence[float]]:
    r"""Takes ``lr`` from the settings, which is the only rate if it is given."""
    given = [settings[name] for name in ("lr", "training.lr") if name in settings]
    if given and rates is not None:
        raise ValueError(f"compare: lr must not be given with rates, got {given[0]} and {rates}")
    rest = {name: v for name, v in settings.items() if name not in ("lr", "training.lr")}
    found = given or (RATES if rates is None else rates)
    numbers = {rate for rate in found if isinstance(rate, int | float) and 0 < rate < 1e6}
    if not found or len(numbers) < len(found):
        raise ValueError(f"compare: rates must be different positive numbers, got {list(found)}")
    return rest, found


def _seconds(time: str | float | None) -> float | None:
    r"""Returns the seconds of a time such as ``"30m"``, ``"1.5h"`` or ``"90s"``."""
    if not isinstance(time, str):
        return None if time is None else float(time)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh])\s*", time)
    if found is None or not float(found[1]):
        raise ValueError(
            f"compare: time must be a number with s, m or h, such as 30m, got {time!r}"
        )
    return float(found[1]) * _UNITS[found[2]]

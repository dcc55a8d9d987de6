r"""Comparison of networks with and without FOG on any data: ``fognn compare``."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fognn.experiments.compare_runs import RATES, Measured, measure, networks, seconds_of
from fognn.experiments.pool import Summary
from fognn.experiments.reproduce import reproduce
from fognn.experiments.search import Choice
from fognn.experiments.tables import Planned
from fognn.report.site.build import build_comparison_report, check_output
from fognn.report.site.compare_answer import NetworkRow, network_rows, sentence_of, winner_of
from fognn.report.text import NONE, mebibytes, pluralize, text_table
from fognn.utils.files import user_path
from fognn.utils.own_code import asked, import_file

__all__ = ["CompareResult", "compare"]

_HEADER = ["network", "parameters", "lr"]
_COSTS = ["s an epoch", "peak memory"]


@dataclass(frozen=True)
class CompareResult:
    r"""The result of :func:`compare`; ``str(result)`` is the table with the answer.

    Args:
        rows (tuple): The figures of each network, see
            :class:`~fognn.report.site.compare_answer.NetworkRow`.
        sentence (str): The answer: for each host whether FOG is better, worse, or whether it
            cannot be told.
        choices (tuple): The search of each network for its learning rate.
        notes (tuple): A line for each run or network that failed, for missing pages, and for the
            number of seeds that a given time allowed.
        seeds (int): Number of seeds.
        winner (NetworkRow, optional): The network with the best validation metric.
        folder (Path, optional): The run folder of the winner's best seed by the validation metric.
        report (Path, optional): The page.
    """

    rows: tuple[NetworkRow, ...]
    sentence: str
    choices: tuple[Choice, ...]
    notes: tuple[str, ...]
    seeds: int
    winner: NetworkRow | None
    folder: Path | None
    report: Path | None

    def __str__(self) -> str:
        lines = [self._table()] if self.rows else []
        lines += [*self.notes, "", self.sentence]
        if self.winner is not None and self.folder is not None:
            lines.append(f"Best on the validation split: {self.winner.label}. To predict with it:")
            lines.append(f"  {self._command(self.folder)}")
        return "\n".join(lines)

    def _table(self) -> str:
        first = self.rows[0]
        metric = first.metric
        split = "validation" if first.entries[0].result["test"] is None else "test"
        header = [*_HEADER, f"{split} {metric.axis}", "FOG − host", "95 % interval", *_COSTS]
        rows = []
        for row in self.rows:
            sd = "" if row.sd is None else f" ± {metric.number(row.sd)}"
            paired = row.paired
            rows.append(
                [
                    f"{row.label} ({row.note})" if row.note else row.label,
                    f"{row.parameters:,}",
                    f"{row.lr:g}",
                    f"{metric.number(row.score)}{sd}",
                    NONE if paired is None else metric.signed(paired.difference),
                    (metric.interval(paired.interval) if paired else "") or NONE,
                    f"{row.seconds_per_epoch:.2f}",
                    mebibytes(row.peak_memory),
                ]
            )
        title = (
            f"{first.entries[0].data}: {metric.label} at the best validation epoch, "
            f"{metric.direction}; {pluralize(self.seeds, 'seed')}"
        )
        return f"{title}\n\n{text_table(header, rows, right=(1, 2, 3, 4, 6, 7))}"

    def _command(self, folder: Path) -> str:
        if not folder.exists():  # measured on another machine
            assert self.winner is not None
            return f"{_best_entry(self.winner).result['command']} trains it"
        place = folder / "fold-1" if (folder / "fold-1").is_dir() else folder
        own = asked()
        return shlex.join(
            ["fognn", "predict", str(place), "INPUT", "-o", "predictions.csv"]
            + (["--import", own] if own else [])
        )


def compare(
    data: str | Path,
    hosts: Sequence[str] = ("gcn", "gin"),
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
    output: str | Path | None = None,
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

    Args:
        data (str): A dataset by name, or your own data, as in :func:`fognn.train`.
        hosts (list, optional): The hosts, such as ``["gcn", "gin"]``; ``"fog"`` is FOG alone.
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
        workers (int or str, optional): As in :func:`fognn.experiments.reproduce`. (default:
        :obj:`1`)
        ray (str, optional): As in :func:`fognn.experiments.reproduce`. (default: :obj:`None`)
        shared (bool, optional): As in :func:`fognn.experiments.reproduce`. (default: :obj:`None`)
        runs (str, optional): The folder of the run folders. (default: :obj:`"runs"`)
        results (str, optional): The folder of the ledgers. (default: :obj:`"results"`)
        output (str, optional): The folder of the pages.
            (default: ``RUNS/compare/NAME/report``)
        import_file (str, optional): A Python file that registers hosts of your own, see
            :func:`fognn.models.register_host`. (default: :obj:`None`)
        quiet (bool, optional): If set to :obj:`True`, shows no progress. (default: :obj:`False`)
        command (str, optional): The command that resumes the comparison, for messages.
            (default: :obj:`"the same call"`)
        **settings (optional): Settings of :class:`~fognn.training.Config` for all networks, as in
            :func:`fognn.train`.
    """
    if import_file is not None:
        _import(import_file)
    seconds = None if time is None else seconds_of(time) if isinstance(time, str) else float(time)
    seeds = 5 if seeds is None and seconds is None else seeds
    settings, rates = _rates(settings, rates)
    planned = networks(str(data), [str(host).lower() for host in hosts], budget, settings, name)
    runs, results = user_path(runs), user_path(results)
    pages = runs / planned[0].table / "report" if output is None else user_path(output)

    check_output("compare", pages)  # before hours of training

    def train(some: list[Planned]) -> Summary:
        return reproduce(some, runs, results, workers, ray, quiet, shared=shared, command=command)

    count = workers if isinstance(workers, int) else 1
    found = measure(planned, runs, results, train, seeds, rates, seconds, count)
    notes = [f"{pluralize(found.seeds, 'seed')} in the time of {time}"] if time is not None else []
    return _result(found, runs, pages, notes)


def _result(found: Measured, runs: Path, pages: Path, notes: list[str]) -> CompareResult:
    rows = network_rows(found.entries)
    winner = winner_of(rows)
    notes, report = [*_failures(found), *notes], None
    if rows:
        try:
            report = build_comparison_report(found.entries, found.choices, pages)
        except ImportError as error:  # an optional dependency; the answer does not need it
            notes.append(f"No pages: {error}")
    return CompareResult(
        tuple(rows),
        sentence_of(rows),
        found.choices,
        tuple(notes),
        found.seeds,
        winner,
        None if winner is None else runs / _best_entry(winner).key,
        report,
    )


def _rates(
    settings: dict[str, Any], rates: Sequence[float] | None
) -> tuple[dict[str, Any], Sequence[float]]:
    r"""Takes ``lr`` from the settings, which is the only rate if it is given."""
    given = [settings[name] for name in ("lr", "training.lr") if name in settings]
    if given and rates is not None:
        raise ValueError(f"compare: lr must not be given with rates, got {given[0]} and {rates}")
    rest = {name: v for name, v in settings.items() if name not in ("lr", "training.lr")}
    return rest, given or (RATES if rates is None else rates)


def _best_entry(row: NetworkRow) -> Any:
    best = max if row.metric.higher_is_better else min
    return best(row.entries, key=lambda entry: entry.result["val"]["best"]["items"])


def _failures(found: Measured) -> list[str]:
    chosen = {choice.key for choice in found.choices}
    lines = []
    for run in found.networks:
        own = [o for o in found.failed if o.job.key.startswith(f"{run.search_key}-lr")]
        if own and run.search_key not in chosen:
            lines.append(
                f"{run.label} failed at all learning rates and is left out: {own[0].reason}"
            )
            continue
        lines += [
            f"{run.label} failed at a learning rate of {outcome.job.config.training.lr:g}, seed "
            f"{outcome.job.config.seed}: {outcome.reason}"
            for outcome in own
        ]
    return lines


_import = import_file  # compare has an argument of this name

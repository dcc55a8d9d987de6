r"""The search for learning rate and weight decay: the grid, which is the paper's or another one,
and the choice."""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from fognn.experiments.comparison import SEARCHED
from fognn.experiments.jsonl_file import JsonlFile
from fognn.experiments.ledger import LedgerEntry, ledger_of
from fognn.experiments.scores import validation_of
from fognn.experiments.tables import Planned

__all__ = [
    "DECAYS",
    "GRID",
    "RATES",
    "Choice",
    "Choices",
    "Setting",
    "Trial",
    "choices_file",
    "choose",
    "grid",
    "table_entries",
    "with_choice",
    "without_trials",
]

RATES = (1e-2, 5e-3, 1e-3, 5e-4)
DECAYS = (1e-3, 1e-6, 0.0)
# A learning rate and a weight decay.
Setting = tuple[float, float]
# The grid of the paper.
GRID: tuple[Setting, ...] = tuple(itertools.product(RATES, DECAYS))


@dataclass(frozen=True)
class Trial:
    r"""One run of a search.

    Args:
        key (str): The key of its line in the ledger.
        lr (float): Its learning rate.
        weight_decay (float): Its weight decay.
        score (float, optional): Its validation metric over items, at its best epoch; :obj:`None`
            if the run failed.
    """

    key: str
    lr: float
    weight_decay: float
    score: float | None


@dataclass(frozen=True)
class Choice:
    r"""The trials of a search and its choice: the trial with the best validation metric over items,
    each at its own best epoch. The test split is not used.

    Args:
        key (str): The key of the run with the row's own learning rate and weight decay, see
            :attr:`fognn.experiments.tables.Planned.search_key`.
        table (str): As in :class:`fognn.experiments.tables.Planned`.
        row (str): As in :class:`fognn.experiments.tables.Planned`.
        variant (str): As in :class:`fognn.experiments.tables.Planned`.
        label (str): As in :class:`fognn.experiments.tables.Planned`.
        seed (int): The seed of all trials.
        metric (str): Name of the metric.
        higher_is_better (bool): Whether a higher metric is better.
        lr (float): The chosen learning rate.
        weight_decay (float): The chosen weight decay.
        tried (tuple): All trials, in the order of the grid.
        figure (str, optional): The figure that was compared. (default: :obj:`"val.best.items"`)
    """

    key: str
    table: str
    row: str
    variant: str
    label: str
    seed: int
    metric: str
    higher_is_better: bool
    lr: float
    weight_decay: float
    tried: tuple[Trial, ...]
    figure: str = "val.best.items"

    @property
    def picked(self) -> Trial:
        r"""The chosen trial."""
        wanted = (self.lr, self.weight_decay)
        return next(trial for trial in self.tried if (trial.lr, trial.weight_decay) == wanted)


def grid(planned: Planned, settings: Sequence[Setting] = GRID) -> list[Planned]:
    r"""Returns a run for each pair of a learning rate and a weight decay.

    Args:
        planned (Planned): The run to vary. The run with its own learning rate and weight decay
            keeps its key, so it is not trained twice.
        settings (list, optional): The learning rates and weight decays. (default: the paper's
            grid)
    """
    return [_with_values(planned, lr, decay) for lr, decay in settings]


def choose(
    planned: Planned,
    entries: Sequence[LedgerEntry],
    trials: Sequence[Planned] | None = None,
    failed: Collection[str] = (),
) -> Choice | None:
    r"""Chooses learning rate and weight decay by the validation metric; the first of the grid if
    several are equal.

    Args:
        planned (Planned): The argument of :func:`grid`.
        entries (list): Lines of the ledger, with all runs of the grid.
        trials (list, optional): The runs of the grid. (default: the paper's grid)
        failed (list, optional): Keys of trials that failed, which are not chosen.
            (default: :obj:`()`)

    Returns:
        The choice; :obj:`None` if all trials failed.
    """
    known = {entry.key: entry for entry in entries}
    trials = grid(planned) if trials is None else trials
    missing = [trial.key for trial in trials if trial.key not in {*known, *failed}]
    if missing:
        raise ValueError(
            f"choose: entries must have all {len(trials)} runs of the search of {planned.key!r}, "
            f"{len(missing)} are missing, such as {missing[0]!r}"
        )
    tried = tuple(
        Trial(
            trial.key,
            trial.config.training.lr,
            trial.config.training.weight_decay,
            validation_of(known[trial.key]) if trial.key in known else None,
        )
        for trial in trials
    )
    finished = {trial.key: trial.score for trial in tried if trial.score is not None}
    if not finished:
        return None
    higher = known[next(iter(finished))].result["higher_is_better"]
    key = (max if higher else min)(finished, key=lambda key: finished[key])
    best = next(trial for trial in tried if trial.key == key)
    return Choice(
        planned.search_key,
        planned.table,
        planned.row,
        planned.variant,
        planned.label,
        planned.config.seed,
        planned.config.training.metric,
        higher,
        best.lr,
        best.weight_decay,
        tried,
    )


def with_choice(planned: Planned, choice: Choice) -> Planned:
    r"""Returns a run with the learning rate and the weight decay that a search chose for its row.

    Args:
        planned (Planned): The run.
        choice (Choice): The choice for its row.
    """
    if any(getattr(planned, name) != getattr(choice, name) for name in ("table", "row", "variant")):
        raise ValueError(f"with_choice: choice must be of {planned.key!r}, got {choice.key!r}")
    return _with_values(planned, choice.lr, choice.weight_decay)


def _with_values(planned: Planned, lr: float, decay: float) -> Planned:
    config = planned.config.with_values(dict(zip(SEARCHED, (lr, decay), strict=True)))
    return replace(planned, config=config)


def choices_file(results: Path, table: str) -> Path:
    r"""Returns the file of a table's searches."""
    return Path(results) / "searches" / f"{table}.jsonl"


class Choices:
    r"""The file of a table's searches, one line for each.

    Args:
        path (Path): The file, see :func:`choices_file`. It need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lines = JsonlFile(self.path, lambda content: _check(_choice(content)))

    def all(self) -> list[Choice]:
        r"""Returns all searches, in the order of the file. An invalid line is skipped with a
        warning."""
        return [_choice(content) for content in self._lines.read()]

    def add(self, choice: Choice) -> None:
        r"""Adds a search, or replaces the one with the same key."""
        self._lines.put(asdict(choice))


def _check(choice: Choice) -> None:
    for name in ("table", "row", "variant", "label", "metric"):
        if not isinstance(getattr(choice, name), str):
            raise ValueError(f"{name} must be a text, got {getattr(choice, name)!r}")
    for trial in choice.tried:
        numbers = (trial.lr, trial.weight_decay, 0.0 if trial.score is None else trial.score)
        if not isinstance(trial.key, str) or not all(type(n) in (int, float) for n in numbers):
            raise ValueError(f"tried must have a key and three numbers each, got {trial}")


def _choice(content: dict[str, Any]) -> Choice:
    try:
        tried = tuple(Trial(**_known(Trial, trial)) for trial in content["tried"])
        choice = Choice(**_known(Choice, content) | {"tried": tried})
        choice.picked  # noqa: B018, raises StopIteration if it is not one of the trials
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        raise ValueError("must be a search with its trials and its choice") from error
    return choice


def _known(kind: type, content: dict[str, Any]) -> dict[str, Any]:
    # Fields of a later version are ignored.
    names = [entry.name for entry in fields(kind)]
    return {name: value for name, value in content.items() if name in names}


def without_trials(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> list[LedgerEntry]:
    r"""Returns the entries without the trials of searches; chosen trials, and those with the row's
    own learning rate and weight decay, are kept.

    Args:
        entries (list): Lines of the ledger.
        choices (list): The searches.
    """
    tried = {trial.key for choice in choices for trial in choice.tried}
    kept = {key for choice in choices for key in (choice.key, choice.picked.key)}
    return [entry for entry in entries if entry.key not in tried - kept]


def table_entries(results: Path, table: str) -> list[LedgerEntry]:
    r"""Returns the runs of a table from its ledger, without the trials of searches.

    Args:
        results (Path): The folder of the ledgers.
        table (str): One of :obj:`fognn.experiments.tables.TABLES`, or ``"compare/NAME"``.
    """
    entries = ledger_of(table, results).entries()
    return without_trials(entries, Choices(choices_file(results, table)).all())

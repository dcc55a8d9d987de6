r"""The paper's search for a rate and a decay: what to try, and what to take."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fognn.paper.comparison import SEARCHED
from fognn.paper.jsonl_file import JsonlFile
from fognn.paper.ledger import Ledger, LedgerEntry
from fognn.paper.scores import validation_of
from fognn.paper.tables import Planned

__all__ = [
    "DECAYS",
    "RATES",
    "Choice",
    "Choices",
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


@dataclass(frozen=True)
class Trial:
    r"""One run of a search.

    Args:
        key: Its line in the ledger.
        lr: Its learning rate.
        weight_decay: Its L2 weight.
        score: Its validation metric over items, at its best epoch.
    """

    key: str
    lr: float
    weight_decay: float
    score: float


@dataclass(frozen=True)
class Choice:
    r"""What a search tried, and what it picked: the best validation metric over items, each run at
    its own best epoch. The test split has no part in it.

    Args:
        key: The run that was searched for, with the row's own rate and decay.
        table, row, variant, label: As in :class:`fognn.paper.tables.Planned`.
        seed: The seed of all trials.
        metric: Name of the metric.
        higher_is_better: Whether more of it is better.
        lr: The rate that was picked.
        weight_decay: The decay that was picked.
        tried: All trials, in the order of the grid.
        figure: What was compared.
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
        r"""The trial that was picked."""
        wanted = (self.lr, self.weight_decay)
        return next(trial for trial in self.tried if (trial.lr, trial.weight_decay) == wanted)


def grid(planned: Planned) -> list[Planned]:
    r"""A run with each of the paper's rates and decays, else like the given one.

    Args:
        planned: A row on one seed. Of its own rate and decay it has the same name as before, so
            that run is not trained twice.
    """
    return [_with_values(planned, rate, decay) for rate in RATES for decay in DECAYS]


def choose(planned: Planned, entries: Sequence[LedgerEntry]) -> Choice:
    r"""Picks a rate and a decay by validation alone; of equal ones the first of the grid.

    Args:
        planned: What :func:`grid` was made of.
        entries: The ledger's, with all runs of the grid.
    """
    known = {entry.key: entry for entry in entries}
    trials = grid(planned)
    missing = [trial.key for trial in trials if trial.key not in known]
    if missing:
        raise ValueError(
            f"choose: entries must hold all {len(trials)} runs of the search of {planned.key!r}, "
            f"{len(missing)} are missing, as {missing[0]!r}"
        )
    tried = tuple(
        Trial(
            trial.key,
            trial.config.training.lr,
            trial.config.training.weight_decay,
            validation_of(known[trial.key]),
        )
        for trial in trials
    )
    higher = known[trials[0].key].result["higher_is_better"]
    best = (max if higher else min)(tried, key=lambda trial: trial.score)
    return Choice(
        planned.key,
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
    r"""A run with the rate and the decay that a search picked for its row."""
    if any(getattr(planned, name) != getattr(choice, name) for name in ("table", "row", "variant")):
        raise ValueError(f"with_choice: choice must be of {planned.key!r}, got {choice.key!r}")
    return _with_values(planned, choice.lr, choice.weight_decay)


def _with_values(planned: Planned, rate: float, decay: float) -> Planned:
    config = planned.config.with_values(dict(zip(SEARCHED, (rate, decay), strict=True)))
    return Planned(planned.table, planned.row, planned.variant, planned.label, config)


def choices_file(results: Path, table: str) -> Path:
    r"""Where the choices of a table are, apart from its ledger."""
    return Path(results) / "searches" / f"{table}.jsonl"


class Choices:
    r"""The searches of a table, one line each.

    Args:
        path: The file: see :func:`choices_file`. It need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lines = JsonlFile(self.path)

    def all(self) -> list[Choice]:
        r"""All searches, in the order in which they were added."""
        return [
            _choice(content, f"{self.path}, {content['key']}") for content in self._lines.read()
        ]

    def add(self, choice: Choice) -> None:
        r"""Adds a search, in the place of an earlier one of the same run."""
        self._lines.put(asdict(choice))


def _choice(content: dict[str, Any], where: str) -> Choice:
    try:
        tried = tuple(Trial(**_known(Trial, trial)) for trial in content["tried"])
        choice = Choice(**_known(Choice, content) | {"tried": tried})
        choice.picked  # noqa: B018, it must be among those that were tried
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        raise ValueError(f"{where}: must be a search with what it tried and picked") from error
    return choice


def _known(kind: type, content: dict[str, Any]) -> dict[str, Any]:
    # What a later version adds does not hinder.
    names = [entry.name for entry in fields(kind)]
    return {name: value for name, value in content.items() if name in names}


def without_trials(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> list[LedgerEntry]:
    r"""The entries without runs that were only tried: those that a search did not pick, and that
    do not have the row's own rate and decay either."""
    tried = {trial.key for choice in choices for trial in choice.tried}
    kept = {key for choice in choices for key in (choice.key, choice.picked.key)}
    return [entry for entry in entries if entry.key not in tried - kept]


def table_entries(results: Path, table: str) -> list[LedgerEntry]:
    r"""The runs of a table, from its ledger: what a search only tried is not among them."""
    entries = Ledger(results / f"{table}.jsonl").entries()
    return without_trials(entries, Choices(choices_file(results, table)).all())

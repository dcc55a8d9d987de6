r"""The runs of a search for learning rates and weight decays."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fognn.experiments.ledger import ledger_of
from fognn.experiments.pool import Summary
from fognn.experiments.search import (
    GRID,
    Choice,
    Choices,
    Setting,
    choices_file,
    choose,
    grid,
    with_choice,
)
from fognn.experiments.tables import Planned
from fognn.utils.files import user_path

__all__ = ["Settings", "search", "trials"]

# Returns the learning rates and weight decays to try for a run.
Settings = Callable[[Planned], Sequence[Setting]]


def _paper_grid(planned: Planned) -> Sequence[Setting]:
    return GRID


def trials(planned: Sequence[Planned], settings: Settings = _paper_grid) -> list[Planned]:
    r"""Returns all runs of the searches for the rows of ``planned``, each with its first seed.

    Args:
        planned (list): The runs of a table.
        settings (Callable, optional): As in :func:`search`. (default: the paper's grid)
    """
    return [trial for run in _first_seeds(planned) for trial in grid(run, settings(run))]


def search(
    planned: Sequence[Planned],
    results: str | Path,
    train: Callable[[list[Planned]], Summary],
    settings: Settings = _paper_grid,
    skip_failed: bool = False,
) -> tuple[list[Planned], list[Choice]]:
    r"""Tries learning rates and weight decays for each row on its first seed, chooses by the
    validation metric, and writes the choices into ``results/searches``.

    Args:
        planned (list): The runs of a table.
        results (str): The folder of the ledgers.
        train (Callable): Trains runs and adds them to the ledgers.
        settings (Callable, optional): Returns the learning rates and weight decays to try for a
            run. (default: the paper's grid)
        skip_failed (bool, optional): If set to :obj:`True`, a trial that fails is not chosen, and
            a row whose trials all fail is left out. (default: :obj:`False`, which raises)

    Returns:
        The runs with the chosen learning rates and weight decays, and the choices.
    """
    results = user_path(results)
    summary = train(trials(planned, settings))
    if summary.failed and not skip_failed:
        raise ValueError(f"search: all runs must finish before one can be chosen; {summary}")
    choices = {}
    for run in _first_seeds(planned):
        failed = {outcome.job.key for outcome in summary.failed}
        entries = ledger_of(run.table, results).entries()
        choice = choose(run, entries, grid(run, settings(run)), failed)
        if choice is not None:
            Choices(choices_file(results, run.table)).add(choice)
            choices[_row(run)] = choice
    chosen = [with_choice(run, choices[_row(run)]) for run in planned if _row(run) in choices]
    return chosen, list(choices.values())


def _row(run: Planned) -> tuple[str, str, str]:
    return run.table, run.row, run.variant


def _first_seeds(planned: Sequence[Planned]) -> list[Planned]:
    first: dict[tuple[str, str, str], Planned] = {}
    for run in planned:
        first.setdefault(_row(run), run)
    return list(first.values())

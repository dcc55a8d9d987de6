r"""The runs of the paper's search for learning rates and weight decays."""

from collections.abc import Callable
from pathlib import Path

from fognn.paper.ledger import ledger_of
from fognn.paper.search import Choice, Choices, choices_file, choose, grid, with_choice
from fognn.paper.tables import Planned
from fognn.sweep.pool import Summary
from fognn.utils.files import user_path

__all__ = ["search", "trials"]


def trials(planned: list[Planned]) -> list[Planned]:
    r"""Returns all runs of the searches for the rows of ``planned``, each with its first seed."""
    return [trial for run in _first_seeds(planned) for trial in grid(run)]


def search(
    planned: list[Planned],
    results: str | Path,
    train: Callable[[list[Planned]], Summary],
) -> tuple[list[Planned], list[Choice]]:
    r"""Trains the paper's grid of learning rates and weight decays for each row on its first seed,
    chooses by the validation metric, and writes the choices into ``results/searches``.

    Args:
        planned (list): The runs of a table.
        results (str): The folder of the ledgers.
        train (Callable): Trains runs and adds them to the ledgers.

    Returns:
        The runs with the chosen learning rates and weight decays, and the choices.
    """
    results = user_path(results)
    summary = train(trials(planned))
    if summary.failed:
        raise ValueError(f"search: all runs must finish before one can be chosen; {summary}")
    choices = {}
    for run in _first_seeds(planned):
        choice = choose(run, ledger_of(run.table, results).entries())
        Choices(choices_file(results, run.table)).add(choice)
        choices[_row(run)] = choice
    return [with_choice(run, choices[_row(run)]) for run in planned], list(choices.values())


def _row(run: Planned) -> tuple[str, str, str]:
    return run.table, run.row, run.variant


def _first_seeds(planned: list[Planned]) -> list[Planned]:
    first: dict[tuple[str, str, str], Planned] = {}
    for run in planned:
        first.setdefault(_row(run), run)
    return list(first.values())

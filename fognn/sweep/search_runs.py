r"""The paper's search for rates and decays, as runs."""

from collections.abc import Callable
from pathlib import Path

from fognn.paper.ledger import ledger_of
from fognn.paper.search import Choice, Choices, choices_file, choose, grid, with_choice
from fognn.paper.tables import Planned
from fognn.sweep.pool import Summary

__all__ = ["search", "trials"]


def trials(planned: list[Planned]) -> list[Planned]:
    r"""All runs of the searches of some rows, each on the first of its seeds."""
    return [trial for run in _first_seeds(planned) for trial in grid(run)]


def search(
    planned: list[Planned],
    results: str | Path,
    train: Callable[[list[Planned]], Summary],
) -> tuple[list[Planned], list[Choice]]:
    r"""Trains the paper's grid for each row on its first seed, picks by validation alone, and
    writes what was picked into ``results/searches``.

    Args:
        planned: The runs of a table.
        results: The folder of the ledgers.
        train: Trains runs and writes them into the ledgers.

    Returns:
        The runs with the rates and decays that were picked, and the choices.
    """
    results = Path(results).expanduser()
    summary = train(trials(planned))
    if summary.failed:
        raise ValueError(f"search: all runs must end before one can be picked; {summary}")
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

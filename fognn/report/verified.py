r"""The lines of the command ``fognn verify``."""

import sys
from collections.abc import Sequence

from fognn.experiments.verification import Check, Verification
from fognn.report.text import NONE, joined
from fognn.training.progress import Display

__all__ = ["show_verification"]


def show_verification(found: Verification) -> bool:
    r"""Evaluates kept weights, with a line for each network as soon as it is evaluated, a bar in a
    terminal, and a summary.

    Args:
        found (Verification): The weights.

    Returns:
        Whether all networks have the figures of the ledger.
    """
    names = found.names
    width = max(map(len, ["network", *names]))
    checks: list[Check] = []
    # While a bar is shown, rich writes printed lines to its own console, standard error.
    display = Display(quiet=not sys.stdout.isatty())
    try:
        task = None
        if display.bars is not None:
            task = display.bars.add_task("networks", total=len(names), note="")
        if names:
            print(f"{'network':<{width}}  seed  {'ledger':<15}  here")
        for check in found.checks():
            checks.append(check)
            print(_line(check, width), flush=True)
            if display.bars is not None and task is not None:
                display.bars.update(task, advance=1)
    finally:
        display.close()
    print(_summary(found, checks))
    return all(check.ok for check in checks)


def _line(check: Check, width: int) -> str:
    seed = NONE if check.seed is None else str(check.seed)
    cells = [_figures(figures, check.digits) for figures in (check.ledger, check.here)]
    return f"{check.name:<{width}}  {seed:>4}  {cells[0]:<15}  {cells[1]:<15}  {check.outcome}"


def _figures(figures: Sequence[float], digits: int) -> str:
    return "  ".join(f"{value:.{digits}f}" for value in figures) or NONE


def _summary(found: Verification, checks: Sequence[Check]) -> str:
    same = sum(check.ok for check in checks)
    text = (
        f"{same} of {len(checks)} networks agree with the ledger to the last printed digit, over "
        "batches and over items"
    )
    wrong = [check.name for check in checks if not check.ok]
    lines = [text, *([f"not: {joined(wrong)}"] if wrong else [])]
    if found.without:
        lines.append(f"measured, without weights: {', '.join(found.without)}")
    return "\n".join(lines)

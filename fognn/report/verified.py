r"""The lines of the command ``fognn verify``."""

from collections.abc import Iterable, Sequence

from fognn.experiments.kept import Check
from fognn.experiments.wording import NONE, joined

__all__ = ["show_verification"]

_WIDTH = 28  # of the names of networks


def show_verification(found: Iterable[Check]) -> bool:
    r"""Prints a line for each network as soon as it is evaluated, then a summary.

    Args:
        found (iterable): The result of :func:`fognn.experiments.kept.verify`.

    Returns:
        Whether all networks have the figures of the ledger.
    """
    checks: list[Check] = []
    for check in found:
        if not checks:
            print(f"{'network':<{_WIDTH}}  seed  {'ledger':<15}  here")
        seed = NONE if check.seed is None else str(check.seed)
        ledger, here = (_figures(each, check.digits) for each in (check.ledger, check.here))
        outcome = check.problem or ("ok" if check.ok else "DIFFERS")
        print(f"{check.name:<{_WIDTH}}  {seed:>4}  {ledger:<15}  {here:<15}  {outcome}", flush=True)
        checks.append(check)
    wrong = [check.name for check in checks if not check.ok]
    print(
        f"{len(checks) - len(wrong)} of {len(checks)} networks agree with the ledger to the last "
        "printed digit, over batches and over items"
    )
    if wrong:
        print(f"not: {joined(wrong)}")
    return not wrong


def _figures(figures: Sequence[float], digits: int) -> str:
    return "  ".join(f"{value:.{digits}f}" for value in figures) or NONE

r"""The lines of the command ``fognn verify``."""

from collections.abc import Sequence

from fognn.experiments.kept import Check, Verification
from fognn.experiments.wording import NONE, joined

__all__ = ["show_verification"]


def show_verification(found: Verification) -> bool:
    r"""Evaluates kept weights and prints a line for each network as soon as it is evaluated, then a
    summary.

    Args:
        found (Verification): The weights.

    Returns:
        Whether all networks have the figures of the ledger.
    """
    width = max(map(len, ["network", *found.names]))
    if found.names:
        print(f"{'network':<{width}}  seed  {'ledger':<15}  here")
    checks: list[Check] = []
    for check in found.checks():
        seed = NONE if check.seed is None else str(check.seed)
        ledger, here = (_figures(each, check.digits) for each in (check.ledger, check.here))
        line = f"{check.name:<{width}}  {seed:>4}  {ledger:<15}  {here:<15}  {check.outcome}"
        print(line, flush=True)
        checks.append(check)
    wrong = [check.name for check in checks if not check.ok]
    print(
        f"{len(checks) - len(wrong)} of {len(checks)} networks agree with the ledger to the last "
        "printed digit, over batches and over items"
    )
    if wrong:
        print(f"not: {joined(wrong)}")
    if found.without:
        print(f"measured, without weights: {', '.join(found.without)}")
    return not wrong


def _figures(figures: Sequence[float], digits: int) -> str:
    return "  ".join(f"{value:.{digits}f}" for value in figures) or NONE

r"""Controls of a network with FOG, with as many parameters as it has."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from fognn.models.budget import TOLERANCE, parameters_of, sizes_near
from fognn.models.registry import FOG_SETTINGS, HOSTS
from fognn.models.task import Task
from fognn.nn import fog_widths
from fognn.nn.fog_controls import FOG_KINDS
from fognn.utils import checks

__all__ = ["equal_size"]

_WIDTHS = (*FOG_SETTINGS, "channels", "head_channels", "hidden")
# Widths that are tried on each side of the nearest ones.
_WINDOW = 2


def equal_size(control: str, name: str, task: Task, **settings: Any) -> tuple[str, dict[str, Any]]:
    r"""Returns a control of a network with FOG: another network with the same number of parameters,
    within 1 %.

    Args:
        control (str): The control. A ``kind`` of :class:`fognn.nn.FOGControl`: the same network
            with that kind, where only the inner widths ``h1`` and ``h2`` change, and their ratio as
            little as possible (for ``"hadamard"`` they are equal). ``"wider"``: the host without
            FOG, with more channels. ``"deeper"``: the host without FOG and with twice as many
            layers. Or another host, such as ``"pna"``, without FOG. The channels of hosts are too
            coarse, so that ``head_channels``, or ``hidden`` of GIN, is adjusted as well.
        name (str): The network, such as ``"gcn+fog"``.
        task (Task): The inputs and outputs.
        **settings (optional): The settings of the network, and those that only the other host has.

    Returns:
        The name of the control's network, and its settings.

    Raises:
        ValueError: If there are no such widths; the message names the nearest number of
            parameters. If the network does not take the settings.
    """
    checks.known("equal_size", "name", name, ["fog", *(f"{host}+fog" for host in HOSTS)])
    own = HOSTS.get(name.removesuffix("+fog"))
    allowed = ["wider", "deeper"] * (own is not None)
    checks.known("equal_size", "control", control, [*FOG_KINDS, *allowed, *HOSTS])
    host = control if control in HOSTS else name.removesuffix("+fog")
    of_host = HOSTS[host].options if host in HOSTS else ()
    # Those of the other host alone do not belong to the network.
    given = own.options if own else ()
    reference = {
        key: value for key, value in settings.items() if key in given or key not in of_host
    }
    budget = parameters_of(name, task, reference)
    if control in FOG_KINDS:
        return name, settings | _inner_widths(control, name, task, budget, settings)
    kept = {
        key: value
        for key, value in settings.items()
        if key not in _WIDTHS and (key not in given or key in of_host)
    }
    if control == "deeper":
        kept["layers"] = 2 * settings.get("layers", 4)
    best = min(sizes_near(host, task, budget, kept), key=lambda size: size.cost)
    return host, kept | best.settings


def _inner_widths(
    kind: str, name: str, task: Task, budget: int, settings: Mapping[str, Any]
) -> dict[str, Any]:
    channels = settings.get("channels", 64)
    usual = channels if name == "fog" else channels // 2
    widths = fog_widths(settings.get("fog_channels") or usual)
    h1, h2 = (settings.get(key) or width for key, width in zip(("h1", "h2"), widths, strict=True))
    if kind.startswith("kron"):
        return {"fog_kind": kind, "h1": h1, "h2": h2}
    ratio = 1.0 if kind == "hadamard" else h2 / h1

    def count(first: int, second: int) -> int:
        changed = {**settings, "fog_kind": kind, "h1": first, "h2": second}
        return parameters_of(name, task, changed)

    def second(first: int) -> int:
        return max(1, round(ratio * first))

    near = _last(lambda first: count(first, second(first)) <= budget)
    found: list[tuple[float, int, int, int]] = []
    for one in range(max(1, near - _WINDOW), near + _WINDOW + 1):
        around = 0 if kind == "hadamard" else _WINDOW
        for two in range(max(1, second(one) - around), second(one) + around + 1):
            size = count(one, two)
            # As in budget_settings: a ratio that changes by a factor of e counts as one per cent.
            cost = 100 * abs(size - budget) / budget + abs(math.log(two / one / ratio))
            found.append((cost, size, one, two))
    _, size, one, two = min(found)
    if abs(size - budget) > TOLERANCE * budget:
        raise ValueError(
            f"equal_size: settings must leave {kind!r} a width with {budget} parameters within "
            f"1 %; the nearest is {size}"
        )
    return {"fog_kind": kind, "h1": one, "h2": two}


def _last(true: Callable[[int], bool]) -> int:
    r"""Returns the largest positive int for which a condition holds that holds up to some int; 1 if
    there is none."""
    low, high = 1, 2
    while true(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if true(middle) else (low, middle)
    return low

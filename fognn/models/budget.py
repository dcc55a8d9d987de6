r"""Widths of networks for a number of parameters: a host with and without FOG, and controls."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from fognn.models.registry import FOG_SETTINGS, HOSTS, count_parameters, create_model, head_of
from fognn.models.task import Task
from fognn.nn import fog_widths
from fognn.nn.fog_controls import FOG_KINDS
from fognn.utils import checks

__all__ = ["budget_settings", "equal_size"]

TOLERANCE = 0.01
# Fewer channels leave nothing for the layers of the MLP at the end.
_FEWEST = 4
# Channels that are tried on each side of the nearest ones without a fine setting.
_WINDOW = 5
# A fine setting that is changed by a factor of e counts as this many per cent of the budget.
_STRETCH = 1.0
# A host may take only some widths: GAT with 8 heads beside FOG one in 16.
_GAP = 64


_WIDTHS = (*FOG_SETTINGS, "channels", "head_channels", "hidden")


class Size(NamedTuple):
    r"""A network near a budget. The cost is its distance from the budget in per cent, and that of
    the adjusted width from its default."""

    parameters: int
    cost: float
    settings: dict[str, int]


def budget_settings(
    host: str, task: Task, budget: int, **settings: Any
) -> dict[str, dict[str, int]]:
    r"""Returns the widths with which a host and the host with FOG each have a number of parameters
    within 1 % of :obj:`budget`, FOG not more than the host.

    The width of all layers, ``channels``, is too coarse for this: one more channel can be 3 % more
    parameters. Therefore one more width is adjusted: ``head_channels``, or ``hidden`` of GIN with
    its own head; see :func:`create_model`. It stays as near to its default as possible.

    Args:
        host (str): A host, such as ``"gcn"``, or ``"fog"``.
        task (Task): The inputs and outputs.
        budget (int): The number of parameters.
        **settings (optional): Other settings of :func:`create_model`.

    Returns:
        The settings of each network, by its name: ``"gcn"`` and ``"gcn+fog"``, or ``"fog"`` alone.
    """
    checks.positive_int("budget_settings", "budget", budget)
    if host == "fog":
        return {
            host: min(sizes_near(host, task, budget, settings), key=lambda size: size.cost).settings
        }
    hosts = sizes_near(host, task, budget, settings)
    with_fog = sizes_near(f"{host}+fog", task, budget, settings)
    pairs = [(one, two) for one in hosts for two in with_fog if two.parameters <= one.parameters]
    if not pairs:  # each alone can be reached
        nearest = max(size.parameters for size in hosts)
        raise ValueError(
            f"budget must be a number of parameters that {host!r} and '{host}+fog' both can have "
            f"within 1 %, with FOG not the larger, got {budget}; {host!r} can have {nearest}, but "
            f"'{host}+fog' at least {min(size.parameters for size in with_fog)}"
        )
    one, two = min(pairs, key=lambda pair: pair[0].cost + pair[1].cost)
    return {host: one.settings, f"{host}+fog": two.settings}


def sizes_near(name: str, task: Task, budget: int, settings: dict[str, Any]) -> list[Size]:
    r"""Returns the sizes of a network within 1 % of the budget; raises if there are none."""
    host = HOSTS.get(name.removesuffix("+fog"))
    fine = "hidden" if head_of(host, settings.get("head")) == "jumping" else "head_channels"
    found: list[Size] = []
    nearest: int | None = None
    for channels, one in _candidates(name, task, budget, settings):
        default = _default(name, task, channels, fine)
        two = parameters_of(name, task, settings | {"channels": channels, fine: default + 1})
        step = two - one  # the number of parameters is affine in the fine setting
        wanted = default + (budget - one) / step
        for width in {max(1, math.floor(wanted)), max(1, math.ceil(wanted))}:
            size = one + (width - default) * step
            if nearest is None or abs(size - budget) < abs(nearest - budget):
                nearest = size
        reach = math.ceil(TOLERANCE * budget / step)
        for width in range(max(1, round(wanted) - reach), round(wanted) + reach + 1):
            size = one + (width - default) * step
            if abs(size - budget) <= TOLERANCE * budget:
                cost = 100 * abs(size - budget) / budget
                cost += _STRETCH * abs(math.log(width / default))
                # At its default the setting is left out.
                own = {"channels": channels} | ({fine: width} if width != default else {})
                found.append(Size(size, cost, own))
    if not found:
        raise ValueError(
            f"budget must be a number of parameters that {name!r} can have within 1 %, got "
            f"{budget}; the nearest is {nearest}"
        )
    return found


def _candidates(
    name: str, task: Task, budget: int, settings: dict[str, Any]
) -> list[tuple[int, int]]:
    r"""Returns the channels for which the network with its default widths is near the budget, each
    with the number of parameters."""

    def count(channels: int) -> int | None:
        try:
            return parameters_of(name, task, settings | {"channels": channels})
        except ValueError:  # such as channels that the heads do not divide
            return None

    def valid(begin: int, step: int = 1) -> Iterator[tuple[int, int]]:
        for channels in range(begin, max(_FEWEST - 1, begin + step * _GAP), step):
            size = count(channels)
            if size is not None:
                yield channels, size

    first = next(valid(_FEWEST), None)
    if first is None:
        # Raises the network's own error, such as that of a host that needs edge features.
        create_model(name, task, **(settings | {"channels": _GAP}))
        raise ValueError(f"{name!r} must take a number of channels up to {_FEWEST + _GAP}")
    low = high = first[0]
    while (size := next(valid(high), None)) is not None and size[1] < budget:
        low, high = size[0], size[0] * 2
    while high - low > 1:
        middle = (low + high) // 2
        size = next(valid(middle), None)
        if size is None or size[0] >= high or size[1] >= budget:
            high = middle
        else:
            low = size[0]
    window = range(max(_FEWEST, low - _WINDOW), low + _WINDOW + 1)
    inside = [(channels, own) for channels in window if (own := count(channels)) is not None]
    below = next(valid(window.start - 1, -1), None) if window.start > _FEWEST else None
    above = next(valid(window.stop), None)
    return [*inside, *(found for found in (below, above) if found is not None)]


def _default(name: str, task: Task, channels: int, fine: str) -> int:
    if fine == "head_channels":
        return channels if task.level == "edge" else channels // 2
    return channels - channels // 2 if name.endswith("+fog") else channels


def parameters_of(name: str, task: Task, settings: dict[str, Any]) -> int:
    r"""Returns the number of parameters. For settings that the network does not take it raises the
    error of :func:`create_model`."""
    with torch.device("meta"):  # nothing is allocated or initialised
        return count_parameters(create_model(name, task, **settings))


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
    kind: str, name: str, task: Task, budget: int, settings: dict[str, Any]
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
    for one in range(max(1, near - 2), near + 2 + 1):
        around = 0 if kind == "hadamard" else 2
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

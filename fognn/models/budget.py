r"""Widths of networks for a number of parameters: a host with and without FOG, and controls."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch

from fognn.models.hosts import FOG_SETTINGS, HOSTS
from fognn.models.registry import Task, count_parameters, head_of, host_of, new_model
from fognn.nn import fog_widths
from fognn.nn.fog_controls import FOG_KINDS
from fognn.utils import checks

TOLERANCE = 0.01
# Fewer channels leave nothing for the layers of the MLP at the end.
_FEWEST = 4
# Channels that are tried on each side of the nearest ones without a fine setting.
_WINDOW = 5
# A host may take only some widths: GAT with 8 heads beside FOG one in 16.
_GAP = 64

_WIDTHS = (*FOG_SETTINGS, "channels", "head_channels", "hidden")


class Size(NamedTuple):
    """A network near a budget. The cost is its distance from the budget in per cent, and that of
    the adjusted width from its default: a factor of e counts as one per cent."""

    parameters: int
    cost: float
    settings: dict[str, int]


def budget_settings(
    host: str, task: Task, budget: int, **settings: Any
) -> dict[str, dict[str, int]]:
    """Returns, by their names, the widths with which a host and the host with FOG each have a
    number of parameters within 1 % of the budget, FOG not more than the host.

    One more channel can be 3 % more parameters, so that one finer width is adjusted as well, as
    little as possible: ``head_channels``, or ``hidden`` of GIN with its own head.
    """
    checks.positive_int("budget_settings", "budget", budget)
    hosts = sizes_near(host, task, budget, settings)
    if host == "fog":
        return {host: min(hosts, key=lambda size: size.cost).settings}
    with_fog = sizes_near(f"{host}+fog", task, budget, settings)
    pairs = [(one, two) for one in hosts for two in with_fog if two.parameters <= one.parameters]
    if not pairs:  # each alone can be reached
        raise ValueError(
            f"budget must be a number of parameters that {host!r} and '{host}+fog' both can have "
            f"within 1 %, with FOG not the larger, got {budget}"
        )
    one, two = min(pairs, key=lambda pair: pair[0].cost + pair[1].cost)
    return {host: one.settings, f"{host}+fog": two.settings}


def sizes_near(name: str, task: Task, budget: int, settings: dict[str, Any]) -> list[Size]:
    """Returns the sizes of a network within 1 % of the budget; raises if there are none."""
    jumping = head_of(host_of(name), settings.get("head")) == "jumping"
    fine = "hidden" if jumping else "head_channels"
    sizes: list[Size] = []
    for channels, one in _candidates(name, task, budget, settings):
        if jumping:
            default = channels - channels // 2 if name.endswith("+fog") else channels
        else:
            default = channels if task.level == "edge" else channels // 2
        two = parameters_of(name, task, settings | {"channels": channels, fine: default + 1})
        step = two - one  # the number of parameters is affine in the fine setting
        middle = max(1, round(default + (budget - one) / step))
        reach = math.ceil(TOLERANCE * budget / step)
        for width in range(max(1, middle - reach), middle + reach + 1):
            size = one + (width - default) * step
            cost = 100 * abs(size - budget) / budget + abs(math.log(width / default))
            # At its default the setting is left out.
            own = {"channels": channels} | ({fine: width} if width != default else {})
            sizes.append(Size(size, cost, own))
    found = [size for size in sizes if abs(size.parameters - budget) <= TOLERANCE * budget]
    if not found:
        nearest = min((size.parameters for size in sizes), key=lambda size: abs(size - budget))
        raise ValueError(
            f"budget must be a number of parameters that {name!r} can have within 1 %, got "
            f"{budget}; the nearest is {nearest}"
        )
    return found


def _candidates(
    name: str, task: Task, budget: int, settings: dict[str, Any]
) -> list[tuple[int, int]]:
    """Returns channels with which the network is near the budget, each with its parameters."""

    def valid(widths: Iterable[int]) -> Iterator[tuple[int, int]]:
        for channels in widths:
            try:
                yield channels, parameters_of(name, task, settings | {"channels": channels})
            except ValueError:  # such as channels that the heads do not divide
                continue

    def from_(begin: int) -> tuple[int, int] | None:
        return next(valid(range(begin, begin + _GAP)), None)

    # Without any, the network's own error, as of a host that needs edge features.
    first = from_(_FEWEST) or (_GAP, parameters_of(name, task, settings | {"channels": _GAP}))
    low = _last(lambda channels: (from_(channels) or (0, budget))[1] < budget, first[0])
    start, stop = max(_FEWEST, low - _WINDOW), low + _WINDOW + 1
    below = islice(valid(range(start - 1, max(_FEWEST, start - _GAP) - 1, -1)), 1)
    above = islice(valid(range(stop, stop + _GAP)), 1)
    return [*valid(range(start, stop)), *below, *above]


def parameters_of(name: str, task: Task, settings: dict[str, Any]) -> int:
    """Returns the number of parameters of a network."""
    with torch.device("meta"):  # nothing is allocated or initialised
        return count_parameters(new_model(name, task, **settings))


def equal_size(control: str, name: str, task: Task, **settings: Any) -> tuple[str, dict[str, Any]]:
    r"""Returns the name and the settings of a control of a network with FOG: another network with
    the same number of parameters, within 1 %.

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
    """
    checks.known("equal_size", "name", name, ["fog", *(f"{host}+fog" for host in HOSTS)])
    own = host_of(name)
    allowed = ["wider", "deeper"] * (own is not None)
    checks.known("equal_size", "control", control, [*FOG_KINDS, *allowed, *HOSTS])
    host = control if control in HOSTS else name.removesuffix("+fog")
    of_host = HOSTS[host].options if host in HOSTS else ()
    given = own.options if own else ()
    # Those of the other host alone do not belong to the network.
    reference = {k: value for k, value in settings.items() if k in given or k not in of_host}
    budget = parameters_of(name, task, reference)
    if control in FOG_KINDS:
        return name, settings | _inner_widths(control, name, task, budget, settings)
    shared = {k: value for k, value in settings.items() if k in of_host or k not in given}
    kept = {k: value for k, value in shared.items() if k not in _WIDTHS}
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
        return parameters_of(name, task, settings | {"fog_kind": kind, "h1": first, "h2": second})

    def second(first: int) -> int:
        return max(1, round(ratio * first))

    near = _last(lambda first: count(first, second(first)) <= budget)
    found: list[tuple[float, int, int, int]] = []
    for one in range(max(1, near - 2), near + 2 + 1):
        around = 0 if kind == "hadamard" else 2
        for two in range(max(1, second(one) - around), second(one) + around + 1):
            size = count(one, two)
            cost = 100 * abs(size - budget) / budget + abs(math.log(two / one / ratio))
            found.append((cost, size, one, two))
    _, size, one, two = min(found)
    if abs(size - budget) > TOLERANCE * budget:
        raise ValueError(
            f"equal_size: settings must leave {kind!r} a width with {budget} parameters within "
            f"1 %; the nearest is {size}"
        )
    return {"fog_kind": kind, "h1": one, "h2": two}


def _last(true: Callable[[int], bool], low: int = 1) -> int:
    """Returns the last int from the lowest on up to which a condition holds."""
    high = 2 * low
    while true(high):
        high *= 2
    return low + bisect_left(range(low + 1, high), True, key=lambda width: not true(width))

r"""Widths of networks for a number of parameters."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from fognn.models.registry import HOSTS, create_model, head_of
from fognn.models.summary import count_parameters
from fognn.models.task import Task
from fognn.utils import checks

__all__ = ["TOLERANCE", "budget_settings"]

TOLERANCE = 0.01
# Fewer channels leave nothing for the layers of the MLP at the end.
_FEWEST = 4
# Channels that are tried on each side of the nearest ones without a fine setting.
_WINDOW = 5
# A fine setting that is changed by a factor of e counts as this many per cent of the budget.
_STRETCH = 1.0
# A host may take only some widths: GAT with 8 heads beside FOG one in 16.
_GAP = 64


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

    Raises:
        ValueError: If there are no such widths. The message names the nearest number of
            parameters.
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
    r"""Returns the sizes of a network within 1 % of the budget; raises if there are none.

    Args:
        name (str): The network.
        task (Task): The inputs and outputs.
        budget (int): The number of parameters.
        settings (dict): Other settings of :func:`create_model`.
    """
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


def parameters_of(name: str, task: Task, settings: Mapping[str, Any]) -> int:
    r"""Returns the number of parameters. For settings that the network does not take it raises the
    error of :func:`create_model`."""
    with torch.device("meta"):  # nothing is allocated or initialised
        return count_parameters(create_model(name, task, **settings))

r"""Runs side by side: their settings, which of these differ, and which runs differ only in the
seed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fognn.report.run_folder import Run

__all__ = ["NONE", "Group", "differing", "group_runs", "settings"]

NONE = "–"  # in the place of a value that is not there
# Where a run was made, and from which dice: not what was made.
_NOT_WHAT = ("seed", "machine.", "data.folder")
_MOST_SETTINGS = 2  # in a label


@dataclass(frozen=True)
class Group:
    r"""Runs of the same network and the same settings, but for the seed.

    Args:
        label (str): A name that no other group has.
        runs (tuple of Run): The runs.
    """

    label: str
    runs: tuple[Run, ...]

    @property
    def model(self) -> str:
        return self.runs[0].model

    def tests(self, when: str, over: str) -> list[float]:
        r"""The test results of the runs that have one; see :meth:`Run.test`."""
        return [value for run in self.runs if (value := run.test(when, over)) is not None]


def settings(run: Run) -> dict[str, str]:
    r"""All settings of a run as text, with dotted names."""
    # Here, because whoever draws data need not wait for Lightning.
    from fognn.training.config_section import flat

    return {name: _value(value) for name, value in flat(run.config).items()}


def differing(every: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    r"""Of what is known of each of several runs: what is not the same in all, with all values."""
    names = dict.fromkeys(name for each in every for name in each)
    columns = {name: [each.get(name, NONE) for each in every] for name in names}
    return {name: values for name, values in columns.items() if len(set(values)) > 1}


def group_runs(runs: Sequence[Run]) -> list[Group]:
    r"""Puts runs together that differ only in the seed, in the order in which they came.

    A group is named after its network; if that does not tell it from the others, after the
    settings that do.
    """
    together: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in runs:
        together.setdefault(tuple(sorted(_what(settings(run)).items())), []).append(run)
    groups = list(together.values())
    return [Group(_label(group, groups), tuple(group)) for group in groups]


def _label(group: list[Run], groups: list[list[Run]]) -> str:
    first = group[0]
    alike = [other[0] for other in groups if other[0].model == first.model]
    if len(alike) == 1:
        return first.model
    distinct = _what(differing([settings(run) for run in alike]))
    if len(distinct) > _MOST_SETTINGS:
        return f"{first.model} ({first.folder})"
    mine = settings(first)
    return f"{first.model} ({', '.join(f'{name} {mine.get(name, NONE)}' for name in distinct)})"


def _what(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if not name.startswith(_NOT_WHAT)}


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)

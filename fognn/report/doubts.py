r"""What a better number costs, and why it may not be the last word."""

from collections.abc import Sequence
from statistics import quantiles

from fognn.report.run_folder import Run
from fognn.report.run_groups import Group, differing, settings
from fognn.report.words import capital, joined, many

__all__ = ["cost", "doubts"]

# What a time depends on, beside the network.
_MACHINE = ("machine", "device", "threads", "ranks")
_STEADY = 1.5  # the most that times of a machine without other work differ by


def cost(a: Group, b: Group) -> str:
    r"""The parameters and the time of :obj:`a` beside those of :obj:`b`, as far as they are known
    and can be compared."""
    one, other = a.runs[0], b.runs[0]
    parts = []
    if one.result is not None and other.result is not None:
        counts = one.result["parameters"], other.result["parameters"]
        parts.append(f"has {counts[0]:,} parameters against {counts[1]:,}")
    if one.seconds_per_epoch and other.seconds_per_epoch and _machine(one) == _machine(other):
        ratio = one.seconds_per_epoch / other.seconds_per_epoch
        parts.append(f"takes {ratio:.2f} times as long for an epoch")
        parts[-1] += _busy(one, other)
    return f"As to cost, {a.label} {joined(parts)}." if parts else ""


def _busy(*runs: Run) -> str:
    r"""Whether the epochs of a run took so different times that no time is to be trusted."""
    spread = max(_time_spread(run) for run in runs)
    if spread < _STEADY:
        return ""
    return (
        f" (but the epochs of one and the same run differ {spread:.1f}-fold in time: the machine "
        "had other work)"
    )


def _time_spread(run: Run) -> float:
    r"""The third quartile of an epoch's times, times the first: one slow epoch is no matter."""
    times = [seconds for seconds in run.seconds if seconds > 0]
    if len(times) < 2:
        return 1.0
    first, _, third = quantiles(times, n=4, method="inclusive")
    return third / first


def _machine(run: Run) -> list[object]:
    known = run.result or {}
    return [run.config.get("machine"), *(known.get(name) for name in _MACHINE)]


def doubts(groups: Sequence[Group]) -> list[str]:
    r"""Why the numbers may not be the last word, in sentences."""
    runs = [run for group in groups for run in group.runs]
    return [
        sentence
        for sentence in (_other_data(runs), _left_out(groups), _small(groups), _short(groups))
        if sentence
    ]


def _other_data(runs: Sequence[Run]) -> str:
    names = [
        n
        for n in differing(list(map(settings, runs)))
        if n.startswith("data.") and n != "data.folder"
    ]
    if not names:
        return ""
    return f"The runs did not see the same data (see {joined(names)}): they cannot be compared."


def _left_out(groups: Sequence[Group]) -> str:
    tested = [len(group.tests("best", "items")) for group in groups]
    parts = [
        f"{len(group.runs) - count} of {many(len(group.runs), 'run')} of {group.label}"
        for group, count in zip(groups, tested, strict=True)
        if 0 < count < len(group.runs)
    ]
    if not all(tested) or not parts:
        return ""  # then the test split decides nothing
    return f"Left out, because there is no test result yet: {joined(parts)}."


def _small(groups: Sequence[Group]) -> str:
    runs = [run for group in groups for run in group.runs]
    few = ["one seed"] if any(len({run.seed for run in g.runs}) == 1 for g in groups) else []
    fraction = min(float(run.config["data"].get("fraction") or 1.0) for run in runs)
    few += [f"{100 * fraction:.3g} % of the graphs"] if fraction < 1 else []
    if not few:
        return ""
    verb = "is" if few == ["one seed"] else "are"
    return (
        f"{capital(joined(few))} {verb} no proof: another seed, or more data, may turn the order "
        "around."
    )


def _short(groups: Sequence[Group]) -> str:
    late = [g.label for g in groups if any(r.epochs and r.best_epoch == r.epochs for r in g.runs)]
    return (
        f"The last epoch was the best of {joined(late)}: longer training may help." if late else ""
    )

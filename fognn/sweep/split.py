r"""How many runs at a time, and with how many threads each: found by trying."""

from collections.abc import Callable
from dataclasses import dataclass

from fognn.sweep.pace import Pace, paces
from fognn.sweep.processes import cores, share_of
from fognn.training import Config, TrainingError

__all__ = ["Split", "fastest_split"]


@dataclass(frozen=True)
class Split:
    r"""A way to share the cores.

    Args:
        workers: How many runs at a time.
        threads: Threads of each.
        rate: Training steps a second, of all of them together.
    """

    workers: int
    threads: int
    rate: float

    def __str__(self) -> str:
        return f"{self.workers} x {self.threads} threads: {self.rate:.1f} steps/s"


def fastest_split(
    config: Config, runs: int, measured: Callable[[list[Config], int], list[Pace | str]] = paces
) -> list[Split]:
    r"""The ways to share this machine's cores, the fastest first.

    One run with all threads, two with half of them each, four, and so on to one thread each, are
    measured for some steps. On small graphs threads wait for each other more than they help, so
    that many runs with a thread each usually do more.

    Args:
        config: The run to measure with.
        runs: How many runs there are: more at a time is not tried.
        measured: Measures runs side by side.
    """
    most = min(cores(), runs)
    tried, reason = [], ""
    for workers in sorted({most} | {2**n for n in range(most.bit_length()) if 2**n <= most}):
        threads = share_of(workers)
        found = measured([config] * workers, threads)
        reasons = [pace for pace in found if isinstance(pace, str)]
        if reasons:  # as many do not fit into the memory, or the run cannot run at all
            reason = reasons[0]
            break
        rate = sum(1 / pace.train_step for pace in found if isinstance(pace, Pace))
        tried.append(Split(workers, threads, rate))
    if not tried:
        raise TrainingError(f"workers: the first run could not be measured: {reason}")
    return sorted(tried, key=lambda split: -split.rate)

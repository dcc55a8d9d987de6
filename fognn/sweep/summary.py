r"""What a sweep did."""

from dataclasses import dataclass

from fognn.sweep.pool import Outcome
from fognn.training.progress import duration

__all__ = ["Summary"]


@dataclass(frozen=True)
class Summary:
    r"""What a sweep did. As text, it is what a user reads at the end.

    Args:
        trained: The runs that were finished now.
        skipped: Those that were finished before.
        failed: Those that failed twice.
        seconds: How long it took.
    """

    trained: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: tuple[Outcome, ...]
    seconds: float

    def __str__(self) -> str:
        total = len(self.trained) + len(self.skipped) + len(self.failed)
        done = total - len(self.failed)
        lines = [
            f"{done} of {total} runs are finished: {len(self.skipped)} were before, "
            f"{len(self.trained)} now, in {duration(self.seconds)}"
        ]
        for outcome in self.failed:
            lines.append(f"failed twice: {outcome.job.key}: {outcome.reason}")
            if outcome.log is not None:
                lines.append(f"  what it printed: {outcome.log}")
        if self.failed:
            lines.append("the same command tries those again, from their last checkpoints")
        return "\n".join(lines)

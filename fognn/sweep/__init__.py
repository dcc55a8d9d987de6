r"""Many runs: on this machine, on a Ray cluster, or as a SLURM job array."""

from fognn.sweep.estimate import Estimate, estimate
from fognn.sweep.pool import Summary
from fognn.sweep.reproduce import reproduce, unfinished
from fognn.sweep.slurm import export_slurm

__all__ = ["Estimate", "Summary", "estimate", "export_slurm", "reproduce", "unfinished"]

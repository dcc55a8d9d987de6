r"""The random numbers of a step."""

import hashlib

__all__ = ["step_seed"]


def step_seed(seed: int, epoch: int, batch: int, rank: int = 0) -> int:
    r"""The seed of the random numbers (of dropout) that one rank draws in one step.

    It is a fixed function of where the run stands, so that a resumed run draws the same numbers
    and a checkpoint need not hold the state of any generator.
    """
    text = f"{seed} {epoch} {batch} {rank}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1

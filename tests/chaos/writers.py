"""Many processes that write to one ledger, and are killed while they do."""

import random
import time
from pathlib import Path

from ledger_entries import entry

from chaos.commands import Child, fork
from chaos.findings import Counts
from fognn.experiments.ledger import Ledger, LedgerEntry
from fognn.experiments.tables import plan

__all__ = ["verdict", "writer_trials"]

_WRITERS = 8
_SEEDS = 40


def writer_trials(counts: Counts, folder: Path, seed: int, trials: int) -> None:
    """Lets eight processes at a time add lines to a ledger, of which half are killed.

    A line that a process has added before it was killed must be there, once, as it was given.

    Args:
        counts: Where the trials are counted.
        folder: An empty folder to work in.
        seed: Seed of the moments.
        trials: Number of ledgers.
    """
    rng = random.Random(seed)
    planned = [run for run in plan("zinc", seeds=_SEEDS) if not run.variant]
    for number in range(trials):
        path = folder / str(number) / "zinc.jsonl"
        entries = [entry(run, rng.random()) for run in rng.sample(planned, 6 * _WRITERS)]
        parts = [entries[first::_WRITERS] for first in range(_WRITERS)]
        children = [_writer(path, part, writer) for writer, part in enumerate(parts)]
        for child in rng.sample(children, _WRITERS // 2):
            time.sleep(rng.uniform(0, 0.1))
            if child.poll() is None:
                child.kill()
                children.remove(child)
        for child in children:
            while child.poll() is None:
                time.sleep(0.01)
        counts.add("writers", "ledger", verdict(path, entries), [path.parent])


def _writer(path: Path, entries: list[LedgerEntry], number: int) -> Child:
    def work() -> None:
        for one in entries:
            Ledger(path).add(one)
            with open(path.parent / f"added-{number}.txt", "a") as file:
                file.write(f"{one.key}\n")

    path.parent.mkdir(parents=True, exist_ok=True)
    return fork(work, path.parent, path.parent / f"output-{number}")


def verdict(path: Path, entries: list[LedgerEntry]) -> str:
    errors = "".join(file.read_text() for file in path.parent.glob("output-*/err.txt"))
    if errors:
        return f"a writer fails: {errors.strip()[-200:]}"
    given = {one.key: one for one in entries}
    found = Ledger(path).entries()
    if len(path.read_text().splitlines()) != len(found) or any(given[e.key] != e for e in found):
        return "a line is there twice, or is not as it was given"
    added = {line for file in path.parent.glob("added-*") for line in file.read_text().split()}
    lost = added - {one.key for one in found}
    return f"{sorted(lost)[0]} is lost" if lost else "same"

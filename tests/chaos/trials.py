"""Trials of the campaign. Each returns how it ended: ``same`` (the result of a run that nothing
disturbed) or ``line`` (one line that says what is wrong); else it raises a ``FindingError``."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch_geometric.data import Data

import fognn
from fognn.data import write_graphs

TIMEOUT = 600.0
SETTINGS = {
    "data.fraction": 0.0008,
    "training.batch_size": 4,
    "training.epochs": 8,
    "model.channels": 16,
    "model.fog_channels": 8,
    "model.h1": 4,
    "model.h2": 2,
    "model.dropout": 0.3,
    "machine.threads": 1,
}
SETS = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
TRAIN = ["train", "cluster", "gcn+fog", "-q", *SETS, "-o", "run"]
COMPARE = "compare graphs.npz --hosts gcn --seeds 2 --budget 2000 --rates 0.01 --workers 2 -q"
SWEEP = [*COMPARE.split(), "--set", "training.epochs=3"]
WRITER = """
import sys
from fognn.experiments.ledger import JsonLines, KeyedLine
ledger = JsonLines(sys.argv[1], KeyedLine)
for number in range(int(sys.argv[3])):
    ledger.add(KeyedLine(key=f"{sys.argv[2]}-{number}", table="", row="", variant="", label=""))
    print(number, flush=True)
"""


class FindingError(Exception):
    """A trial that ended in another way than it must."""


def start(folder: Path, words: list[str], limit: int = 0) -> "subprocess.Popen[str]":
    """Starts ``fognn ...``; no file that it writes may grow beyond ``limit`` bytes."""
    most = (limit, resource.RLIM_INFINITY)
    return subprocess.Popen(
        [sys.executable, "-m", "fognn", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(fognn.__file__).parents[1])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, most) if limit else None,
    )


def finish(process: "subprocess.Popen[str]") -> str:
    """Waits for a command; returns ``same`` for success, ``line`` for an error of one line."""
    _, errors = process.communicate(timeout=TIMEOUT)
    lines = [line for line in errors.splitlines() if line.startswith("fognn:")]
    if "Traceback" in errors or process.returncode not in (0, 1):
        raise FindingError(f"exit code {process.returncode}: {errors[-2000:]}")
    if process.returncode == 1 and not lines:
        raise FindingError(f"no line: {errors[-2000:]}")
    return "line" if process.returncode else "same"


def kill(process: "subprocess.Popen[str]") -> None:
    """Ends a command and its workers at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(folder / "last.ckpt", weights_only=True)["model"]
    return found


def check_same(folder: Path, whole: Path) -> None:
    mine, other = weights(folder), weights(whole)
    if mine.keys() != other.keys() or not all(torch.equal(mine[k], other[k]) for k in mine):
        raise FindingError(f"{folder} has other bits than {whole}")


def wait(process: "subprocess.Popen[str]", there: Callable[[], bool]) -> None:
    """Waits until a command has begun its work, so that a kill does not only hit its imports."""
    end = time.monotonic() + TIMEOUT
    while process.poll() is None and not there():
        if time.monotonic() > end:
            kill(process)
            raise FindingError("no progress")
        time.sleep(0.002)


def prepare(folder: Path) -> None:
    """Writes what the trials compare with: a run and a comparison that nothing disturbed."""
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for _ in range(40):
        half = torch.randint(8, (2, 12), generator=generator)
        edge_index = torch.cat([half, half.flip(0)], dim=1)
        x = torch.randn(8, 3, generator=generator)
        graphs.append(Data(x=x, edge_index=edge_index, y=x.mean().view(1)))
    write_graphs(folder / "graphs.npz", graphs)
    for words in (TRAIN, SWEEP):
        if finish(start(folder, words)) != "same":
            raise FindingError(f"{words} without any disturbance")


def kills(whole: Path, folder: Path, draw: random.Random) -> str:
    """Kills a training at random moments; the last one ends in the bits of the undisturbed run."""
    for _ in range(draw.randint(1, 3)):
        process = start(folder, TRAIN)
        log = folder / "run" / "log.txt"
        size = log.stat().st_size if log.exists() else 0
        wait(process, lambda log=log, size=size: log.exists() and log.stat().st_size > size)  # type: ignore[misc]
        time.sleep(draw.random() * 0.5)
        kill(process)
    how = finish(start(folder, TRAIN))
    check_same(folder / "run", whole / "run")
    return how


def results_of(folder: Path) -> dict[str, object]:
    (ledger,) = (folder / "results" / "compare").glob("*.jsonl")
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    if len({line["key"] for line in lines}) < len(lines):
        raise FindingError(f"{ledger} has a key twice")
    return {line["key"]: line["result"]["test"]["best"]["items"] for line in lines}


def sweeps(whole: Path, folder: Path, draw: random.Random) -> str:
    """Kills a comparison with two workers; the same command ends with the same ledger."""
    (folder / "graphs.npz").write_bytes((whole / "graphs.npz").read_bytes())
    process = start(folder, SWEEP)
    wait(process, lambda: any((folder / "runs").rglob("last.ckpt")))
    time.sleep(draw.random() * 3)
    kill(process)
    how = finish(start(folder, SWEEP))
    if results_of(folder) != results_of(whole):
        raise FindingError("the comparison has other results")
    return how


def writers(whole: Path, folder: Path, draw: random.Random) -> str:
    """Several processes add to one ledger, half of them are killed: no line is lost or torn."""
    path = folder / "ledger.jsonl"
    code = [sys.executable, "-c", WRITER, str(path)]
    processes = [
        subprocess.Popen([*code, str(name), "20"], stdout=subprocess.PIPE, text=True)
        for name in range(4)
    ]
    time.sleep(2 + draw.random() * 3)
    for process in processes[::2]:
        process.kill()
    said = [process.communicate(timeout=TIMEOUT)[0].splitlines() for process in processes]
    keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    wanted = {f"{name}-{number}" for name, numbers in enumerate(said) for number in numbers}
    if len(set(keys)) < len(keys) or not wanted <= set(keys):
        raise FindingError(f"lines are lost or twice: {sorted(wanted - set(keys))}")
    return "same"


def disks(whole: Path, folder: Path, draw: random.Random) -> str:
    """No file may grow beyond a limit, as on a full disk: one line, and the run resumes after."""
    size = (whole / "run" / "last.ckpt").stat().st_size
    how = finish(start(folder, TRAIN, limit=draw.randint(100, size)))
    if list(folder.rglob(".tmp-*")):
        raise FindingError("a temporary file is left")
    if finish(start(folder, TRAIN)) != "same":
        raise FindingError("it does not resume when there is space again")
    check_same(folder / "run", whole / "run")
    return how


# Each entry point: the command, the file in it that is changed.
ENTRIES: list[tuple[list[str], str]] = [
    (["predict", "run", "graphs.npz", "-o", "out.csv"], "run/best.ckpt"),
    (["train", "--config", "run/config.yaml", "-o", "new", "-q"], "run/config.yaml"),
    (TRAIN, "run/last.ckpt"),
    (TRAIN, "run/result.json"),
    (SWEEP, "graphs.npz"),
    (["train", "molecules.csv", "gcn", "-q", "--epochs", "2", "-o", "new"], "molecules.csv"),
]


def files(whole: Path, folder: Path, draw: random.Random) -> str:
    """Truncates or changes a file that a command reads: one line, or a result."""
    words, name = draw.choice(ENTRIES)
    subprocess.run(["cp", "-r", f"{whole}/run", f"{whole}/graphs.npz", str(folder)], check=True)
    if words is TRAIN and name.endswith("last.ckpt"):
        (folder / "run" / "result.json").unlink()
    lines = [f"{'C' * n}O,{n}" for n in range(1, 31)]
    (folder / "molecules.csv").write_text("\n".join(["smiles,y", *lines]) + "\n")
    content = bytearray((folder / name).read_bytes())
    if draw.random() < 0.5:
        del content[draw.randrange(len(content)) :]
    else:
        for _ in range(draw.randint(1, 20)):
            content[draw.randrange(len(content))] = draw.randrange(256)
    (folder / name).write_bytes(bytes(content))
    how = finish(start(folder, words))
    if name.endswith("last.ckpt") and how == "same":
        check_same(folder / "run", whole / "run")
    return how

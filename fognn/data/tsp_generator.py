r"""Random instances of the travelling salesman problem, with good tours."""

import hashlib
import multiprocessing
import os
import shutil
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from tqdm import tqdm

from fognn.data.split_dataset import read_npz
from fognn.utils import checks
from fognn.utils.files import write_whole

__all__ = ["generate_tsp", "random_instance"]

_STREAMS = {"train": 8, "val": 9, "test": 10}  # PATTERN and CLUSTER have 0 to 7
_CHUNK = 16  # instances a file of the parts folder: an interruption loses at most these
# The solver wants integers of 16 bits; the longest distance in the square is sqrt(2).
_SCALE = 46_000


class _Chunk(NamedTuple):
    path: Path
    start: int
    stop: int
    split: str
    seed: int
    nodes: tuple[int, int]
    seconds: float


def random_instance(
    index: int, split: str = "train", seed: int = 0, nodes: tuple[int, int] = (50, 500)
) -> NDArray[np.float32]:
    r"""Draws the points of one instance, uniform in the unit square.

    They depend on the arguments alone, on every machine and with every version of a library: the
    words of Philox4x64-10, whose key and counter are set directly, become integers and 24-bit
    fractions without rounding.

    Args:
        index (int): The number of the instance.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        seed (int, optional): The seed. (default: :obj:`0`)
        nodes (tuple, optional): The smallest and the largest number of points; all numbers
            between them are equally likely. (default: :obj:`(50, 500)`)

    Returns:
        Coordinates, ``[n, 2]``.
    """
    philox = np.random.Philox(
        key=np.array([seed, _STREAMS[split]], dtype=np.uint64),
        counter=np.array([0, index, 0, 0], dtype=np.uint64),
    )
    low, high = nodes
    n = low + (int(philox.random_raw()) * (high - low + 1) >> 64)
    words = philox.random_raw(2 * n) >> np.uint64(40)
    return (words.astype(np.float32) * np.float32(2.0**-24)).reshape(n, 2)


def generate_tsp(
    path: str | Path,
    num_graphs: int,
    split: str = "train",
    seed: int = 0,
    nodes: tuple[int, int] = (50, 500),
    seconds: float = 0.1,
    workers: int | None = None,
) -> Path:
    r"""Generates instances and solves them with `fast-tsp
    <https://github.com/shmulvad/fast-tsp>`_.

    The file has the format that :class:`~fognn.data.TSP` reads: :obj:`n` (points of an
    instance), :obj:`c` (all coordinates) and :obj:`t` (all tours, in visiting order). Instances
    depend on the seed only; tours depend on the solver, its time and the machine.

    A folder :obj:`{path}.parts-...` beside the file holds what is solved so far. Called again with
    the same arguments after an interruption, the function resumes from there. An existing file that
    was made with the same arguments is left as it is.

    Args:
        path (str or Path): The file to write, ending in :obj:`.npz`.
        num_graphs (int): The number of instances.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`: the stream of the
            seed. (default: :obj:`"train"`)
        seed (int, optional): The seed. (default: :obj:`0`)
        nodes (tuple, optional): The smallest and the largest number of points.
            (default: :obj:`(50, 500)`)
        seconds (float, optional): The solver's time for each instance. (default: :obj:`0.1`)
        workers (int, optional): The number of processes. (default: one a core)
    """
    path, owner = Path(path), "generate_tsp"
    if path.suffix != ".npz":
        raise ValueError(f"{owner}: path must end in .npz, got {str(path)!r}")
    checks.positive_int(owner, "num_graphs", num_graphs)
    checks.one_of(owner, "split", split, tuple(_STREAMS))
    checks.int_in_range(owner, "seed", seed, 0)
    if not 3 <= nodes[0] <= nodes[1] < 2**15:  # tours are stored in 16 bits
        raise ValueError(f"{owner}: nodes must have 3 <= smallest <= largest < 32768, got {nodes}")
    if not seconds > 0:
        raise ValueError(f"{owner}: seconds must be a positive number, got {seconds}")
    _find_tour(np.ones((3, 3), dtype=np.uint16), 0.001)  # a missing solver raises here
    # Parts of another setting must not be used.
    setting = f"split {split}, seed {seed}, nodes {nodes[0]} to {nodes[1]}, seconds {seconds}"
    digest = hashlib.sha256(setting.encode()).hexdigest()[:12]
    parts = path.with_name(f"{path.name}.parts-{digest}")
    setting = f"num_graphs {num_graphs}, {setting}"
    chunks = []
    for start in range(0, num_graphs, _CHUNK):
        stop = min(start + _CHUNK, num_graphs)
        part = parts / f"{start}-{stop}.npz"
        chunks.append(_Chunk(part, start, stop, split, seed, nodes, seconds))
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if path.exists():
            made = str(read_npz(path, ["setting"])[0])
            if made != setting:
                raise ValueError(
                    f"{owner}: path must be a new file, got {path}, made with {made}, not {setting}"
                )
            return path
        todo = [chunk for chunk in chunks if not chunk.path.exists()]
        done = num_graphs - sum(chunk.stop - chunk.start for chunk in todo)
        # Not fork, which torch's threads do not survive.
        context = multiprocessing.get_context("spawn")
        count = max(1, min(workers or os.cpu_count() or 1, len(todo)))
        with (
            tqdm(desc=path.name, initial=done, total=num_graphs, disable=None) as bar,
            ProcessPoolExecutor(count, mp_context=context) as pool,
        ):
            if count == 1:
                for chunk in todo:
                    bar.update(_solve(chunk))
            else:
                for future in as_completed([pool.submit(_solve, chunk) for chunk in todo]):
                    bar.update(future.result())
        arrays = [read_npz(chunk.path, "nct") for chunk in chunks]
        n, c, t = (np.concatenate(values) for values in zip(*arrays, strict=True))
        with write_whole(path) as temporary:
            np.savez_compressed(temporary, n=n, c=c, t=t, setting=np.array(setting))
        shutil.rmtree(parts)
    return path


def _find_tour(costs: NDArray[np.uint16], seconds: float) -> list[int]:
    try:
        from fast_tsp import find_tour
    except ImportError as error:
        raise ImportError(
            'generate_tsp needs fast-tsp, which is not installed: pip install "fognn[tsp]"'
        ) from error
    return list(find_tour(costs, duration_seconds=seconds))


def _solve(chunk: _Chunk) -> int:
    points, tours = [], []
    for index in range(chunk.start, chunk.stop):
        c = random_instance(index, chunk.split, chunk.seed, chunk.nodes)
        wide = c.astype(np.float64)
        distances = np.sqrt(((wide[:, None] - wide[None]) ** 2).sum(-1))
        costs = np.rint(distances * _SCALE).astype(np.uint16)
        points.append(c)
        tours.append(np.array(_find_tour(costs, chunk.seconds), dtype=np.int16))
    with write_whole(chunk.path) as temporary:
        np.savez(
            temporary,
            n=np.array([len(tour) for tour in tours], dtype=np.int16),
            c=np.concatenate(points),
            t=np.concatenate(tours),
        )
    return chunk.stop - chunk.start

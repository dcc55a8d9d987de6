r"""Trained weights that are kept with the project: one safetensors file for each row of the paper's
tables and of our own, ``weights/TABLE/ROW.safetensors``.

A file holds the network of the epoch whose figure the table shows, which is the last one, or the
best one for few-shot images, and in its metadata all that is needed to build and to evaluate it.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.nn import Module

from fognn.models.registry import has_fog, list_models, new_model
from fognn.models.task import TASKS, Task
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import user_path, write_whole

__all__ = [
    "SUFFIX",
    "Weights",
    "kept_file",
    "loading_errors",
    "pretrained_model",
    "read_weights",
    "weights_folders",
    "write_weights",
]

SUFFIX = ".safetensors"
FORMAT = 1
# One entry, because safetensors writes several in an order that differs between processes.
_ENTRY = "fognn"
_FIELDS = ("key", "seed", "epoch", "config", "task")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9+._=-]*")


@dataclass(frozen=True)
class Weights:
    r"""A trained network as data.

    Args:
        key (str): The key of its run in the ledger, such as ``"zinc/gcn+fog-seed0"``.
        seed (int): The seed of the run.
        epoch (int): The number of trained epochs, up to the one whose weights these are.
        config (dict): The configuration of the run, see :meth:`fognn.training.Config.to_dict`; for
            a run over folds, that of the first fold.
        task (dict, optional): The fields of its :class:`~fognn.models.Task`; :obj:`None` for
            few-shot images.
        tensors (dict): The state of the network.
    """

    key: str
    seed: int
    epoch: int
    config: dict[str, Any]
    task: dict[str, Any] | None
    tensors: dict[str, Tensor]

    @property
    def model(self) -> str:
        r"""The name of the network."""
        return str(self.config["model"]["name"])

    @property
    def settings(self) -> dict[str, Any]:
        r"""The settings of the network."""
        # Files that were written without the key have the paper's order.
        usual = {"fog_act_first": True} if has_fog(self.model) else {}
        return usual | {k: v for k, v in self.config["model"].items() if k != "name"}


def write_weights(path: Path, weights: Weights) -> None:
    r"""Writes a file of weights, atomically. The same weights give the same bytes."""
    content = {"format": FORMAT} | {name: getattr(weights, name) for name in _FIELDS}
    tensors = {name: value.detach().cpu().contiguous() for name, value in weights.tensors.items()}
    data = save(tensors, {_ENTRY: json.dumps(content, sort_keys=True)})
    with write_whole(path) as temporary:
        temporary.write_bytes(data)


def read_weights(path: Path) -> Weights:
    r"""Reads a file of weights; raises a :class:`FileError` if it is no such file."""
    if not path.is_file():
        raise FileError(f"{path} does not exist")
    with loading_errors(path):
        with safe_open(path, "pt") as file:
            content = json.loads((file.metadata() or {})[_ENTRY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if content["format"] != FORMAT:
            raise ValueError(f"its format must be {FORMAT}, got {content['format']}")
        weights = Weights(**{name: content[name] for name in _FIELDS}, tensors=tensors)
        checks.known("weights", "model", weights.model, list_models())
        return weights


@contextmanager
def loading_errors(path: Path) -> Iterator[None]:
    r"""Raises a :class:`FileError` that names the file for an error that a wrong file causes within
    the block."""
    try:
        yield
    except FileError:
        raise
    except SafetensorError as error:
        raise FileError(f"{path} is truncated or corrupt: {error}") from error
    except (ValueError, TypeError, RuntimeError, LookupError, AttributeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise FileError(f"{path} holds no network that fognn can load: {reason}") from error


def weights_folders() -> list[Path]:
    r"""Returns the folders in which weights are looked up by name, in order: that of the
    environment variable ``FOGNN_WEIGHTS``, ``weights`` of the clone that fognn runs from,
    ``weights`` of the working directory, and those of the installed package."""
    given = os.environ.get("FOGNN_WEIGHTS")
    clone = Path(__file__).parents[2]
    return [
        *([user_path(given)] if given else []),
        # An installed package lies beside others, whose folder could have this name.
        *([clone / "weights"] if (clone / "pyproject.toml").is_file() else []),
        Path("weights"),
        Path(str(files("fognn").joinpath("kept", "weights"))),
    ]


def kept_file(name: str | Path) -> Path | None:
    r"""Returns the file of the weights with a name, such as ``"zinc/gcn+fog"``, or :obj:`None` if
    it has another form. A file or folder that exists under this name comes first: a file of weights
    is returned."""
    path = user_path(name)
    if path.exists():
        return path if path.suffix == SUFFIX and path.is_file() else None
    wanted = Path(name).as_posix().lower()
    if not _NAME.fullmatch(wanted):
        return None
    file = _find(wanted)
    if file is None:
        raise ValueError(
            f"run must be a run folder, a checkpoint or the name of kept weights, got "
            f"{str(name)!r}; {_kept_here()}"
        )
    return file


def _find(*names: str) -> Path | None:
    paths = (folder / f"{name}{SUFFIX}" for folder in weights_folders() for name in names)
    return next((path for path in paths if path.is_file()), None)


def _kept_here() -> str:
    found = {
        path.relative_to(folder).as_posix().removesuffix(SUFFIX)
        for folder in weights_folders()
        for path in folder.glob(f"*/*{SUFFIX}")
    }
    return f"kept here: {', '.join(sorted(found)) or 'none'} (FOGNN_WEIGHTS names another folder)"


def pretrained_model(name: str, task: str | Task | None, settings: Mapping[str, Any]) -> Module:
    r"""Returns the network of kept weights, in training mode, see
    :func:`fognn.models.create_model`, for one of the paper's tasks."""
    known = [key for key, own in TASKS.items() if task == own or str(task).lower() == key]
    if not known:
        raise ValueError(
            f"create_model: task must be one of {', '.join(TASKS)} with pretrained=True, got "
            f"{task!r}; fognn.load loads any kept weights by name"
        )
    # IMDB-MULTI is a part of the paper's table of limits.
    file = _find(f"{known[0]}/{name.lower()}", f"limits/{name.lower()}-{known[0]}")
    if file is None:
        raise ValueError(
            f"create_model: no weights for {name.lower()} on {known[0]}; {_kept_here()}"
        )
    weights = read_weights(file)
    for key, value in settings.items():
        own = weights.settings.get(key)
        if value != own:
            raise ValueError(
                f"create_model: {key} must be {own!r}, as in {file}, with pretrained=True, got "
                f"{value!r}"
            )
    with loading_errors(file):
        task = None if weights.task is None else Task(**weights.task)
        net = new_model(weights.model, task, **weights.settings)
        net.load_state_dict(weights.tensors)
    return net

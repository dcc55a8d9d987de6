r"""Trained networks as files: the weights that are kept with the project,
``weights/TABLE/ROW.safetensors``, and folders in the format of the Hugging Face hub.

A kept file holds the network of the epoch whose figure the table shows, the last one, or the best
one for few-shot images, and in its metadata all that is needed to build and to evaluate it.
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
from safetensors.torch import load_file, save
from torch import Tensor
from torch.nn import Module

from fognn.models.registry import TASKS, Task, has_fog, list_models, new_model
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import user_path, write_whole

SUFFIX = ".safetensors"
FORMAT = 1
# One entry, because safetensors writes several in an order that differs between processes.
_ENTRY = "fognn"
_FIELDS = ("key", "seed", "epoch", "config", "task")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9+._=-]*")


@dataclass(frozen=True)
class Weights:
    """A trained network as data."""

    key: str  # of its run in the ledger, such as "zinc/gcn+fog-seed0"
    seed: int
    epoch: int  # the number of trained epochs, up to the one whose weights these are
    config: dict[str, Any]  # of the run; for a run over folds, that of the first fold
    task: dict[str, Any] | None  # the fields of its Task; None for few-shot images
    tensors: dict[str, Tensor]

    @property
    def model(self) -> str:
        """The name of the network."""
        return str(self.config["model"]["name"])

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the network."""
        settings = _with_order(self.model, self.config["model"])
        return {key: value for key, value in settings.items() if key != "name"}


def _with_order(model: str, settings: dict[str, Any]) -> dict[str, Any]:
    # Files that were written without the setting have the paper's order.
    return ({"fog_act_first": True} if has_fog(model) else {}) | settings


def write_weights(path: Path, weights: Weights) -> None:
    """Writes a file of weights, atomically. The same weights give the same bytes."""
    content = {"format": FORMAT} | {name: getattr(weights, name) for name in _FIELDS}
    _write(path, weights.tensors, {_ENTRY: json.dumps(content, sort_keys=True)})


def _write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with write_whole(path) as temporary:
        temporary.write_bytes(save(tensors, metadata))


def read_weights(path: Path) -> Weights:
    """Reads a file of weights; raises a :class:`FileError` if it is no such file."""
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
    """Raises a :class:`FileError` that names the file for an error that a wrong file causes."""
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
    """Returns the folders in which weights are looked up by name, in order."""
    given, clone = os.environ.get("FOGNN_WEIGHTS"), Path(__file__).parents[2]
    found = [user_path(given)] if given else []
    if (clone / "pyproject.toml").is_file():  # not a folder beside an installed package
        found.append(clone / "weights")
    return [*found, Path("weights"), Path(str(files("fognn").joinpath("kept", "weights")))]


def kept_file(name: str | Path) -> Path | None:
    """Returns the file of the weights with a name, such as ``"zinc/gcn+fog"``, or :obj:`None` if it
    has another form. A file or folder that exists under this name comes first."""
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
    """Returns the network of kept weights, see :func:`fognn.models.create_model`."""
    known = [key for key, own in TASKS.items() if task == own or str(task).lower() == key]
    if not known:
        raise ValueError(
            f"create_model: task must be one of {', '.join(TASKS)} with pretrained=True, got "
            f"{task!r}; fognn.load loads any kept weights by name"
        )
    name, place = name.lower(), known[0]
    # IMDB-MULTI is a part of the paper's table of limits.
    file = _find(f"{place}/{name}", f"limits/{name}-{place}")
    if file is None:
        raise ValueError(f"create_model: no weights for {name} on {place}; {_kept_here()}")
    weights = read_weights(file)
    for key, value in settings.items():
        own = weights.settings.get(key)
        if value != own:
            raise ValueError(f"create_model: {key} must be {own!r}, as in {file}, got {value!r}")
    with loading_errors(file):
        task = None if weights.task is None else Task(**weights.task)
        net = new_model(weights.model, task, **weights.settings)
        net.load_state_dict(weights.tensors)
    return net


class PretrainedNet(Module):
    r"""A network of :func:`~fognn.models.create_model` that can be saved to a folder in the format
    of the Hugging Face hub and loaded from it: :obj:`config.json`, :obj:`model.safetensors` and a
    model card, :obj:`README.md`. The weights are those of the network itself, :obj:`net.module`.
    Nothing uses the internet.

    .. code-block:: python

        net = PretrainedNet("gcn+fog", "zinc", channels=90)
        net.module.load_state_dict(trained.state_dict())
        net.save_pretrained("my-network")
        net = PretrainedNet.from_pretrained("my-network")

    Args:
        name (str): The name of a network, as in :func:`~fognn.models.create_model`.
        task (str, Task or dict, optional): The task, as there, or its fields as a dictionary.
            (default: :obj:`None`)
        **settings (optional): The settings, as there: numbers, strings and booleans.
    """

    def __init__(
        self, name: str, task: str | Task | dict[str, Any] | None = None, **settings: Any
    ) -> None:
        super().__init__()
        if isinstance(task, str):
            task = TASKS.get(task.lower(), task)
        elif isinstance(task, dict):
            task = Task(**task)
        if has_fog(name):
            settings.setdefault("fog_act_first", False)
        self.module = new_model(name, task, **settings)
        fields = task.to_dict() if isinstance(task, Task) else None
        self.model_config: dict[str, Any] = {"name": name.lower(), "task": fields, **settings}

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        r"""Calls the network."""
        return self.module(*args, **kwargs)

    def save_pretrained(
        self, folder: str | Path, title: str = "A graph network", training: str = ""
    ) -> None:
        r"""Writes the folder. The model card has a title, and a sentence about the training."""
        place = user_path(folder)
        _write(place / "model.safetensors", self.module.state_dict(), {"format": "pt"})
        config = json.dumps(self.model_config, indent=2, sort_keys=True)
        card = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
        card = card.format(title=title, training=training)
        for name, text in (("config.json", config), ("README.md", card)):
            with write_whole(place / name) as temporary:
                temporary.write_text(text, encoding="utf-8")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> "PretrainedNet":
        r"""Loads a network from a folder, in evaluation mode. For a network of the hub,
        ``huggingface_hub.snapshot_download`` returns the folder."""
        place = user_path(folder)
        if not (place / "config.json").is_file():
            raise ValueError(
                "PretrainedNet: folder must be one that save_pretrained has written, got "
                f"{str(folder)!r}"
            )
        with loading_errors(place):
            config = json.loads((place / "config.json").read_text(encoding="utf-8"))
            net = cls(**_with_order(config["name"], config))
            net.module.load_state_dict(load_file(place / "model.safetensors"))
        return net.eval()

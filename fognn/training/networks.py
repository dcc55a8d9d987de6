r"""The network of a run: built by name or from the user's object, saved, loaded and exported."""

import copy
import hashlib
import inspect
import re
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.parameter import is_lazy
from torch_geometric.data import Data

from fognn.data.opening import PYTHON
from fognn.models import Task
from fognn.models.registry import new_model
from fognn.models.weights import PretrainedNet, kept_file, loading_errors, read_weights
from fognn.ops import Adjacency
from fognn.training.config import Config
from fognn.training.data import user_data_name
from fognn.training.run_folder import Result
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import user_path, write_whole

FORMAT = 1
_LIBRARIES = {"torch", "torch_geometric", "fognn", "builtins", "typing", "abc"}
_INTERNAL = set(vars(Module()))


def untrained_model(config: Config, task: Task | None, module: Module | None = None) -> Module:
    r"""Returns the network of a run, or a copy of the user's, initialised with the run's seed."""
    name = config.model.name
    if module is None and name.startswith(PYTHON):
        raise ValueError(
            f"network {name!r} was given as a Python object: call fognn.train with the same object "
            "to resume its run, or fognn.load(run, module=network) to load its weights"
        )
    if module is not None and not name.startswith(PYTHON):
        raise ValueError(f"module must be None for the network {name!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if module is None:
            return new_model(name, task, **_arguments(config, task))
        if task is None:
            raise ValueError("train: model must be the name of a network for few-shot images")
        for key in config.model.settings.keys() - {"keep_weights"}:
            raise ValueError(f"train: model.{key} must not be given with a network of your own")
        net = copy.deepcopy(module)
        if not config.model.settings.get("keep_weights"):
            _reset(net)
        return GivenNet(net, task)


def _arguments(config: Config, task: Task | None) -> dict[str, Any]:
    return ({"n_way": config.data.n_way} if task is None else {}) | config.model.settings


def write_checkpoint(path: Path, config: Config, task: Task | None, state: dict[str, Any]) -> None:
    r"""Writes a checkpoint: what rebuilds the network, and its state, such as ``"model"``."""
    whole = {"format": FORMAT, "config": config.to_dict(), "task": task and asdict(task), **state}
    with write_whole(path) as temporary:
        torch.save(whole, temporary)


def read_checkpoint(path: Path) -> dict[str, Any]:
    r"""Reads a checkpoint; no code that it names is run."""
    if not Path(path).is_file():
        raise ValueError(f"{path} does not exist: the run has not finished an epoch yet")
    try:
        with zipfile.ZipFile(path) as parts:  # torch does not compare the checksums
            if parts.testzip() is not None:
                raise zipfile.BadZipFile("wrong checksum")
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}")
    except Exception as error:  # whatever torch and pickle raise for broken bytes
        raise FileError(
            f"{path} is truncated or corrupt, or of another version of fognn "
            f"({type(error).__name__}): remove the run and train it again"
        ) from error
    return content


def rebuild(
    content: dict[str, Any], module: Module | None = None
) -> tuple[Module, Config, Task | None]:
    r"""Returns the trained network of a checkpoint, its configuration and its task."""
    config = Config.from_dict(content["config"], "checkpoint")
    task = None if content["task"] is None else Task(**content["task"])
    model = untrained_model(config, task, module)
    if config.precision == "64-true":
        model.double()
    model.load_state_dict(content["model"])
    return model.eval(), config, task


def load(
    run: str | Path | Result, checkpoint: str | None = None, module: Module | None = None
) -> Module:
    r"""Loads the trained network of a run, in evaluation mode.

    Args:
        run (str or Result): What :func:`fognn.train` returned, a run folder, a checkpoint in one, a
            folder of :func:`fognn.training.export`, or the name of kept weights, such as
            ``"zinc/gcn+fog"``; a folder of that name comes first. The weights are searched as in
            :func:`fognn.create_model`.
        checkpoint (str, optional): ``"best"`` for the epoch with the best validation metric, or
            ``"last"``. (default: :obj:`"best"`; for kept weights the one that is kept)
        module (torch.nn.Module, optional): The network that was given to :func:`fognn.train`, to
            load its weights.
    """
    run = run.folder if isinstance(run, Result) else run
    if module is None and (user_path(run) / "config.json").is_file():
        return PretrainedNet.from_pretrained(run)
    net: Any = load_run(run, checkpoint, module)[0]
    if module is None:
        return net
    module.load_state_dict(net.module.state_dict())
    return module.eval()


def load_run(
    run: str | Path | Result, checkpoint: str | None = None, module: Module | None = None
) -> tuple[Module, Config, Task | None]:
    r"""Loads the network like :func:`load`, and its configuration and task."""
    run = run.folder if isinstance(run, Result) else run
    kept, path = kept_file(run), user_path(run)
    if kept is None:
        if not path.is_file():
            checks.one_of("load", "checkpoint", checkpoint or "best", ("best", "last"))
            if not (path / "config.yaml").is_file():
                raise ValueError(f"run must be a run folder or a checkpoint, got {str(run)!r}")
            if (path / "fold-1").is_dir():
                raise ValueError(f"run must name one fold like {run}/fold-1, got {str(run)!r}")
            path /= f"{checkpoint or 'best'}.ckpt"
        return rebuild(read_checkpoint(path), module)
    weights = read_weights(kept)
    epoch = "best" if weights.task is None else "last"
    checks.one_of("load", "checkpoint", checkpoint or epoch, (epoch,))
    content = {"config": weights.config, "task": weights.task, "model": weights.tensors}
    with loading_errors(kept):
        return rebuild(content, module)


def export(run: str | Path, folder: str | Path, checkpoint: str | None = None) -> Path:
    r"""Writes the network of a run as a Hugging Face folder: ``config.json``,
    ``model.safetensors`` (float32) and a model card with the data and the score of the run.
    Nothing is uploaded. :class:`fognn.models.PretrainedNet` and :func:`load` read it.

    Args:
        run, checkpoint: As in :func:`fognn.load`.
        folder (str): The folder to write, new or empty. It is written whole or not at all.
    """
    folder = user_path(folder)
    if folder.is_file() or any(folder.glob("*")):
        raise ValueError(f"export: folder must be new or empty, got {str(folder)!r}")
    net, config, task = load_run(run, checkpoint)
    name = config.model.name
    exported = PretrainedNet(name, task, **_arguments(config, task))
    exported.module.load_state_dict(net.state_dict())
    data = user_data_name(config.data)  # without its folder, which is of no use to others
    text = f"Trained on `{data}`, with seed {config.seed}."
    if checkpoint in (None, "best") and (user_path(run) / "result.json").exists():
        result = Result.read(user_path(run))
        split = "val" if result.test is None else "test"
        score = result.metrics[f"{split}/{result.metric}"]
        text += f" {split.capitalize()} {result.metric.replace('_', ' ')}: {score:.4f}."
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".tmp-", dir=folder.parent) as temporary:
        whole = Path(temporary, folder.name)
        exported.save_pretrained(whole, f"{name} for {data}", text)
        if folder.exists():
            folder.rmdir()
        whole.rename(folder)
    return folder


def module_name(module: Module, keep_weights: bool = False, folder_named: bool = False) -> str:
    r"""Returns the name of a network in a run, with a hash of what defines it: the source of the
    user's classes, their attributes, and the weights that the seed does not set anew."""
    if not isinstance(module, Module):
        got = f"the class {module.__name__}" if isinstance(module, type) else repr(module)
        raise ValueError(f"train: model must be a name or a torch.nn.Module, got {got}")
    kind = type(module).__name__
    if any(is_lazy(value) for value in [*module.parameters(), *module.buffers()]):
        raise ValueError(f"train: model must know its widths, got the lazy {kind}: call it once")
    digest = hashlib.sha256(repr(module).encode())
    try:
        for text in _texts(module):
            digest.update(text.encode())
    except (OSError, TypeError) as error:
        if not folder_named:
            raise ValueError(
                f"train: folder must be given for {kind}, whose source is not available"
            ) from error
    one, other = copy.deepcopy(module), copy.deepcopy(module)
    with torch.random.fork_rng(devices=[]):
        for seed, part in enumerate(() if keep_weights else (one, other)):
            torch.manual_seed(seed)
            _reset(part)
    others = other.state_dict()
    for name, value in one.state_dict().items():
        fixed = isinstance(value, Tensor) and torch.equal(value, others[name])
        digest.update(f"{name} {_content(value) if fixed else list(value.shape)}".encode())
    return f"{PYTHON}{kind}-{digest.hexdigest()[:8]}".lower()


def first_weights(module: Module, config: Config) -> str:
    r"""Returns where the first weights of a user's network come from, for ``result.json``."""
    if config.model.settings.get("keep_weights"):
        return "as given (keep_weights=True)"
    able = [part for part in module.modules() if hasattr(part, "reset_parameters")]
    reset = {id(value) for part in able for value in part.parameters()}
    kept = [name for name, value in module.named_parameters() if id(value) not in reset]
    text = f"from seed {config.seed}, by reset_parameters"
    return f"{text}; as given, without reset_parameters: {', '.join(kept)}" if kept else text


def _reset(module: Module) -> None:
    # The inner parts first: a module may set those of its parts in its own way.
    for part in reversed(list(module.modules())):
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()  # type: ignore[operator]


def _texts(module: Module) -> Iterator[str]:
    seen: set[Any] = set()
    for name, part in module.named_modules():
        own = not _of_library(type(part))
        for cls in type(part).__mro__:
            yield from _source(cls, seen)
        for key, value in sorted(vars(part).items()):
            if key not in _INTERNAL and (own or not key.startswith("_")):
                yield f"{name} {key} {_content(value)}"
                yield from _source(value, seen)


def _source(thing: Any, seen: set[Any]) -> Iterator[str]:
    r"""Yields the source of a user's class or function, and of those that it uses."""
    if not isinstance(thing, FunctionType | type) or thing in seen or _of_library(thing):
        return
    seen.add(thing)
    if isinstance(thing, type):  # a notebook has the source of functions, not that of classes
        for name, value in vars(thing).items():
            value = getattr(value, "__func__", getattr(value, "fget", value))
            if isinstance(value, FunctionType):
                yield from _source(value, seen)
            elif not name.startswith("__"):
                yield f"{name} {_content(value)}"
        return
    yield inspect.getsource(thing)
    found = inspect.getclosurevars(thing)
    for name, value in sorted({**found.globals, **found.nonlocals}.items()):
        yield from _source(value, seen)
        if isinstance(value, int | float | str | tuple):
            yield f"{name} {value!r}"


def _of_library(thing: Any) -> bool:
    return str(thing.__module__).partition(".")[0] in _LIBRARIES


def _content(value: Any) -> str:
    if isinstance(value, Tensor):
        array = value.detach().cpu().contiguous().flatten()
        data = array.view(torch.uint8).numpy().tobytes() if array.numel() else b""
        return f"{list(value.shape)} {value.dtype} {hashlib.sha256(data).hexdigest()}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


class GivenNet(Module):
    r"""A user's network, called like :class:`~fognn.models.GraphNet`, with checked outputs."""

    def __init__(self, module: Module, task: Task) -> None:
        super().__init__()
        self.module, self.task = module, task
        self.names = list(inspect.signature(module.forward).parameters)
        self.takes_data = len(self.names) == 1 and self.names[0] not in ("x", "edge_index")

    def forward(
        self,
        x: Tensor,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        rwse: Tensor | None = None,
    ) -> Tensor:
        if isinstance(edge_index, Adjacency):
            adj = edge_index
            edge_index = torch.stack([adj.unsort(adj.source), adj.unsort(adj.target)])
        values = {"x": x, "edge_index": edge_index, "edge_attr": edge_attr, "batch": batch}
        values["rwse"] = rwse
        if self.takes_data:
            out = self.module(Data(**values))
        else:
            values["batch_size"] = batch_size
            out = self.module(**{name: values[name] for name in self.names if name in values})
        rows = {"graph": batch_size or 1, "node": x.size(0), "edge": edge_index.size(1)}
        shape = [rows[self.task.level], self.task.out_channels]
        found = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
        if found != shape and [*found, 1] != shape:
            raise ValueError(
                f"train: model must return a tensor of shape {shape}, with a row for each "
                f"{self.task.level}, got {found}"
            )
        return out.view(shape)

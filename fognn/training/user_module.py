r"""A network that the user gives as a Python object: its name, its first weights, its call."""

import copy
import hashlib
import inspect
import re
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.parameter import is_lazy
from torch_geometric.data import Data

from fognn.data.opening import PYTHON
from fognn.models import Task
from fognn.ops import Adjacency
from fognn.training.config import Config

_LIBRARIES = {"torch", "torch_geometric", "fognn", "builtins", "typing", "abc"}
_INTERNAL = set(vars(Module()))


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


def untrained_module(module: Module, task: Task | None, settings: dict[str, Any]) -> "GivenNet":
    r"""Returns a copy of a user's network, initialised unless it has ``keep_weights``."""
    if task is None:
        raise ValueError("train: model must be the name of a network for few-shot images")
    for key in settings.keys() - {"keep_weights"}:
        raise ValueError(f"train: model.{key} must not be given with a network of your own")
    net = copy.deepcopy(module)
    if not settings.get("keep_weights"):
        _reset(net)
    return GivenNet(net, task)


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

r"""Data and networks that are given to :func:`fognn.train` as Python objects."""

import copy
import hashlib
import inspect
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data, Dataset

from fognn.data.own_data import OwnData, data_of_parts
from fognn.data.splits import SPLITS
from fognn.models import Task
from fognn.ops import Adjacency

__all__ = [
    "GIVEN",
    "give_data",
    "give_module",
    "given_data",
    "given_module",
    "is_given",
    "load_given",
]

GIVEN = "python:"
# By name, for this process: a run folder has the names only.
_DATA: dict[tuple[str, str], OwnData] = {}
_GRAPHS: dict[str, dict[str, list[Data]]] = {}
_MODULES: dict[str, Module] = {}
_ARGUMENTS = ("x", "edge_index", "edge_attr", "batch", "batch_size", "rwse")


def is_given(name: str) -> bool:
    r"""Returns whether a name stands for a Python object."""
    return name.startswith(GIVEN)


def give_data(data: Any) -> str:
    r"""Keeps a dataset for the runs of this process and returns its name, with a checksum.

    Args:
        data (Dataset, list, Data or dict): A dataset of PyG or a list of
            :class:`~torch_geometric.data.Data`; one graph, with masks if it has them; or a dict
            with a dataset for each of ``"train"``, ``"val"`` and ``"test"``.
    """
    if isinstance(data, Mapping):
        if set(data) != set(SPLITS):
            raise ValueError(
                f"train: data must have the keys {', '.join(SPLITS)}, got "
                f"{', '.join(map(str, data))}"
            )
        parts = {split: _graphs(data[split], f"data[{split!r}]") for split in SPLITS}
        kind = type(data["train"]).__name__
    else:
        parts = {"all": _graphs(data, "data")}
        kind = type(data).__name__
    digest = 0
    for part in parts.values():
        for graph in part:
            content = graph.to_dict()
            for key in sorted(content):
                if isinstance(content[key], Tensor):
                    array = content[key].detach().cpu().contiguous()
                    digest = zlib.crc32(array.view(torch.uint8).numpy().tobytes(), digest)
    count = sum(map(len, parts.values()))
    name = f"{GIVEN}{kind}-{count}-{digest:08x}".lower()
    _GRAPHS[name] = parts
    return name


def given_data(name: str, task: str) -> OwnData:
    r"""Returns the data that :func:`give_data` keeps under a name.

    Args:
        name (str): The name.
        task (str): As in :func:`fognn.data.own_data.read_own_data`.
    """
    if name not in _GRAPHS:
        raise ValueError(
            f"data {name!r} were given as a Python object: call fognn.train with the same object, "
            "which resumes the run"
        )
    if (name, task) not in _DATA:
        _DATA[name, task] = data_of_parts("data", _GRAPHS[name], task)
    return _DATA[name, task]


def _graphs(data: Any, where: str) -> list[Data]:
    if isinstance(data, Data):
        return [data]
    if not isinstance(data, Dataset | Sequence) or isinstance(data, str) or not len(data):
        raise ValueError(
            f"train: {where} must be a PyG dataset, a list of Data or one Data, got "
            f"{type(data).__name__}"
        )
    return [data[number] for number in range(len(data))]


def give_module(module: Module) -> str:
    r"""Keeps a copy of a network for the runs of this process and returns its name.

    Args:
        module (torch.nn.Module): The network. Its :meth:`forward` takes some of ``x``,
            ``edge_index``, ``edge_attr``, ``batch``, ``batch_size`` and ``rwse`` by these names,
            or a single :class:`~torch_geometric.data.Data`.
    """
    text = repr(module) + str([(name, list(p.shape)) for name, p in module.state_dict().items()])
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    name = f"{GIVEN}{type(module).__name__}-{digest}".lower()
    _MODULES[name] = copy.deepcopy(module)
    return name


def given_module(name: str, task: Task | None, settings: Mapping[str, Any]) -> Module:
    r"""Returns a copy of the network that :func:`give_module` keeps under a name.

    Args:
        name (str): The name.
        task (Task, optional): The outputs that the network must have.
        settings (dict): Settings of the network, of which it has none.
    """
    for key in settings:
        raise ValueError(f"train: model.{key} must not be given with a network of your own")
    if name not in _MODULES:
        raise ValueError(
            f"network {name!r} was given as a Python object: call fognn.train with the same object "
            "to resume its run, or fognn.load(run, module=network) to load its weights"
        )
    if task is None:
        raise ValueError("train: model must be the name of a network for few-shot images")
    return GivenNet(copy.deepcopy(_MODULES[name]), task)


def load_given(module: Module, content: dict[str, Any], run: str) -> Module:
    r"""Loads the weights of a checkpoint into a user's network; returns it in evaluation mode.

    Args:
        module (torch.nn.Module): The network.
        content (dict): The checkpoint.
        run (str): The run, for error messages.
    """
    name = str(content["config"]["model"]["name"])
    if not is_given(name):
        raise ValueError(
            f"load: module must be None for {run!r}, whose network has the name {name!r}"
        )
    weights = {key.removeprefix("module."): value for key, value in content["model"].items()}
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(
            f"load: module must be the network that {run!r} was trained with, got another one: "
            f"{' '.join(str(error).split())[:200]}"
        ) from error
    return module.eval()


class GivenNet(Module):
    r"""A user's network, called like :class:`~fognn.models.GraphNet`.

    Args:
        module (torch.nn.Module): The network.
        task (Task): The outputs that it must have.
    """

    def __init__(self, module: Module, task: Task) -> None:
        super().__init__()
        self.module = module
        self.task = task
        self.names = list(inspect.signature(module.forward).parameters)
        self.takes_data = len(self.names) == 1 and self.names[0] not in ("x", "edge_index")
        required = [
            name
            for name, parameter in inspect.signature(module.forward).parameters.items()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        unknown = [name for name in required if name not in _ARGUMENTS]
        if unknown and not self.takes_data:
            raise ValueError(
                f"train: model.forward must take some of {', '.join(_ARGUMENTS)}, or one Data, but "
                f"{type(module).__name__}.forward needs {unknown[0]!r}"
            )

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
        given = (x, edge_index, edge_attr, batch, batch_size, rwse)
        values = dict(zip(_ARGUMENTS, given, strict=True))
        if self.takes_data:
            del values["batch_size"]
            out = self.module(Data(**values))
        else:
            out = self.module(**{name: values[name] for name in self.names if name in values})
        sizes = {"graph": batch_size, "node": x.size(0), "edge": edge_index.size(1)}
        rows = sizes[self.task.level]
        if isinstance(out, Tensor) and out.dim() == 1 and self.task.out_channels == 1:
            out = out.unsqueeze(1)
        wanted = out.size(0) if rows is None and isinstance(out, Tensor) else rows
        if not isinstance(out, Tensor) or out.shape != (wanted, self.task.out_channels):
            found = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise ValueError(
                f"train: model must return a tensor with a row for each {self.task.level} and "
                f"{self.task.out_channels} columns, {[wanted, self.task.out_channels]}, got {found}"
            )
        return out

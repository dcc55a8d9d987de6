r"""All that decides a run, as data: read from and written to ``config.yaml``."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fognn.training.values import as_mapping, flat, make, unknown
from fognn.utils import checks

__all__ = ["Config", "DataConfig", "MachineConfig", "ModelConfig", "TrainingConfig"]

LOSSES = ("l1", "cross_entropy", "balanced_cross_entropy")
METRICS = ("mae", "accuracy", "balanced_accuracy", "f1")
PRECISIONS = ("32-true", "64-true", "16-mixed", "bf16-mixed")


@dataclass(frozen=True)
class DataConfig:
    r"""Which graphs.

    Args:
        name: A dataset of :obj:`fognn.datasets.CATALOG`, or a file of one's own: a csv of
            molecules, or graphs as :func:`fognn.datasets.read_graphs` takes them.
        fraction: How much of each split is used, its first graphs.
        seed: The seed of generated graphs, and of the splits of one's own file.
        fold: Which of the folds is held out, from 1; :obj:`None` for all of them in turn.
        holdout: Of datasets with folds: choose the best epoch on a fold of its own, the next
            one, so that the held-out fold is looked at once, at the end.
        n_way: Of images: classes in a task.
        k_shot: Of images: labelled images of each class.
        episodes: Of images: tasks to validate and to test on.
        target: Of a csv file: the column to learn.
        smiles: Of a csv file: the column of the molecules.
        skip_bad: Of a csv file: leave out the lines that are broken.
        folder: The folder with real files. It says where the data lie, not which they are.
    """

    name: str
    fraction: float = 1.0
    seed: int = 0
    fold: int | None = None
    holdout: bool = False
    n_way: int = 5
    k_shot: int = 1
    episodes: int = 2000
    target: str | None = None
    smiles: str = "smiles"
    skip_bad: bool = False
    folder: str | None = None

    def __post_init__(self) -> None:
        _number(self, "fraction", 0, 1)
        for name, low in (("seed", 0), ("n_way", 2), ("k_shot", 1), ("episodes", 1)):
            checks.int_in_range("config", f"data.{name}", getattr(self, name), low)
        if self.fold is not None:
            checks.int_in_range("config", "data.fold", self.fold, 1)


@dataclass(frozen=True)
class ModelConfig:
    r"""Which network: a name of :func:`fognn.list_models`, and its settings."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingConfig:
    r"""How it is trained: Adam, with L2 in the gradient.

    Args:
        loss: ``"l1"``, ``"cross_entropy"``, or ``"balanced_cross_entropy"``, in which each class
            has the weight :math:`(V - n_c) / V` within the batch.
        metric: ``"mae"``, ``"accuracy"``, ``"balanced_accuracy"`` (the mean of the classes'
            recalls) or ``"f1"`` (of class 1). Accuracies are in per cent.
        batch_size: Graphs, or tasks, in a step, over all ranks together.
        epochs: The most epochs.
        steps: Of images: steps that make an epoch.
        lr: The first learning rate.
        weight_decay: The L2 weight.
        schedule: ``"plateau"`` shrinks the rate when the validation loss has not fallen for
            ``patience`` epochs and ends the training when the rate falls below ``min_lr``;
            ``"step"`` shrinks it every ``step`` epochs; ``"none"`` leaves it.
        factor: By how much the rate shrinks.
        patience: See ``schedule``.
        min_lr: See ``schedule``.
        step: See ``schedule``.
    """

    loss: str
    metric: str
    batch_size: int = 128
    epochs: int = 1000
    steps: int = 1000
    lr: float = 1e-3
    weight_decay: float = 0.0
    schedule: str = "plateau"
    factor: float = 0.5
    patience: int = 10
    min_lr: float = 1e-5
    step: int = 50

    def __post_init__(self) -> None:
        checks.one_of("config", "training.loss", self.loss, LOSSES)
        checks.one_of("config", "training.metric", self.metric, METRICS)
        if (self.loss == "l1") != (self.metric == "mae"):
            raise ValueError(
                f"config: training.metric must fit training.loss, got {self.metric!r} with "
                f"{self.loss!r}"
            )
        checks.one_of("config", "training.schedule", self.schedule, ("plateau", "step", "none"))
        for name, low in (("batch_size", 1), ("epochs", 1), ("steps", 1), ("step", 1)):
            checks.int_in_range("config", f"training.{name}", getattr(self, name), low)
        checks.int_in_range("config", "training.patience", self.patience, 0)
        for name, high in (("lr", math.inf), ("factor", 1)):
            _number(self, name, 0, high)
        for name in ("weight_decay", "min_lr"):
            _number(self, name, 0, math.inf, zero=True)


@dataclass(frozen=True)
class MachineConfig:
    r"""Where it runs. A run may move to another machine, so this does not decide which run it is;
    but only the same device, threads, ranks and compiler give the same bits.

    Args:
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        threads: Threads of each process; :obj:`None` for torch's own choice, shared between ranks.
        ranks: Processes that share each batch.
        compile: Whether the network goes through :func:`torch.compile`.
    """

    device: str = "auto"
    threads: int | None = None
    ranks: int = 1
    compile: bool = False

    def __post_init__(self) -> None:
        checks.one_of("config", "machine.device", self.device, ("auto", "cpu", "cuda", "mps"))
        checks.int_in_range("config", "machine.ranks", self.ranks, 1)
        if self.threads is not None:
            checks.int_in_range("config", "machine.threads", self.threads, 1)


@dataclass(frozen=True)
class Config:
    r"""A run: a folder with the same configuration is the same run.

    Args:
        data: Which graphs.
        model: Which network.
        training: How it is trained.
        seed: Of the weights, the order of the graphs and dropout.
        precision: ``"32-true"``, ``"64-true"``, ``"16-mixed"`` or ``"bf16-mixed"``.
        machine: Where it runs.
    """

    data: DataConfig
    model: ModelConfig
    training: TrainingConfig
    seed: int = 0
    precision: str = "32-true"
    machine: MachineConfig = field(default_factory=MachineConfig)

    def __post_init__(self) -> None:
        checks.int_in_range("config", "seed", self.seed, 0)
        checks.one_of("config", "precision", self.precision, PRECISIONS)
        if self.training.batch_size % self.machine.ranks:
            raise ValueError(
                f"config: training.batch_size must be a multiple of machine.ranks, got "
                f"{self.training.batch_size} and {self.machine.ranks}"
            )

    def to_dict(self) -> dict[str, Any]:
        r"""Nested mappings of plain values, as in ``config.yaml``."""
        content = dataclasses.asdict(self)
        model = content["model"]
        content["model"] = {"name": model["name"], **model["settings"]}
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], where: str = "config") -> "Config":
        r"""The opposite of :meth:`to_dict`; unknown and missing keys are errors that name them."""
        parts = dict(as_mapping(content, where))
        sections: dict[str, Any] = {}
        for section, kind in _SECTIONS.items():
            if section in parts:
                values = dict(as_mapping(parts.pop(section), f"{where}: {section}"))
                if kind is ModelConfig:
                    values = {"name": values.pop("name", None), "settings": values}
                sections[section] = make(kind, values, f"{where}: {section}.")
        return make(cls, sections | parts, f"{where}: ")

    def with_values(self, values: Mapping[str, Any]) -> "Config":
        r"""A copy with some values changed, by their dotted names: ``{"model.h1": 8}``."""
        content = self.to_dict()
        for name, value in values.items():
            section, dot, key = name.partition(".")
            known = [section for section in content if section in _SECTIONS]
            if dot and section in known and key:
                if section != "model" and key not in content[section]:
                    raise ValueError(unknown(name, [f"{section}.{k}" for k in content[section]]))
                content[section][key] = value
            elif not dot and name in content and name not in known:
                content[name] = value
            else:
                names = [f"{s}.{k}" for s in known for k in content[s]]
                raise ValueError(unknown(name, [*names, "seed", "precision"]))
        return Config.from_dict(content)

    def identity(self) -> dict[str, Any]:
        r"""What makes it this run and no other: everything but where it runs."""
        content = self.to_dict()
        del content["machine"], content["data"]["folder"]
        return content

    def digest(self) -> str:
        r"""A short name of :meth:`identity`. Settings at their default do not count, so a setting
        that a later version adds changes no name."""
        blank = Config(DataConfig(""), ModelConfig(""), TrainingConfig("l1", "mae")).identity()
        defaults = flat(blank)
        own = {k: v for k, v in flat(self.identity()).items() if v != defaults.get(k)}
        return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:8]

    def differences(self, other: "Config") -> list[str]:
        r"""Where the identities differ, as ``training.lr: 0.001 here, 0.01 there``."""
        mine, theirs = flat(self.identity()), flat(other.identity())
        return [
            f"{name}: {mine.get(name)!r} and {theirs.get(name)!r}"
            for name in dict.fromkeys([*mine, *theirs])
            if mine.get(name) != theirs.get(name)
        ]

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.to_dict(), sort_keys=False)

    @classmethod
    def read(cls, path: Path) -> "Config":
        r"""Reads a ``config.yaml``."""
        try:
            content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ValueError(f"config: {path} is not there") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ValueError(f"config: {path} must be a YAML file: {error}") from error
        return cls.from_dict(content, str(path))


_SECTIONS = {
    "data": DataConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
    "machine": MachineConfig,
}


def _number(part: Any, name: str, low: float, high: float, zero: bool = False) -> None:
    value = getattr(part, name)
    fits = value >= low if zero else value > low
    if not (math.isfinite(value) and fits and value <= high):
        section = type(part).__name__.removesuffix("Config").lower()
        upper = "" if math.isinf(high) else f" and at most {high}"
        least = f"at least {low}" if zero else f"above {low}"
        raise ValueError(f"config: {section}.{name} must be {least}{upper}, got {value!r}")

r"""The configuration of a run. The keys of ``config.yaml``, the arguments of :func:`fognn.train`
and the names of ``fognn train --set`` are derived from the fields here."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from fognn.models.registry import has_fog
from fognn.utils import checks
from fognn.utils.errors import first_problem

# Metrics of the order of all items, which a single batch does not have.
RANKING = ("roc_auc", "average_precision")
# YAML 1.1 reads 1e-3, without a point, as a text, so numbers are not strict.
Number = Annotated[float, Field(strict=False, allow_inf_nan=False)]
Positive = Annotated[Number, Field(gt=0)]
AtLeastZero = Annotated[Number, Field(ge=0)]
Fraction = Annotated[Number, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Index = Annotated[int, Field(ge=0)]


def _hops(value: Any) -> Any:
    if isinstance(value, str | int):
        return [int(part) for part in str(value).split(",")]
    return list(value) if isinstance(value, tuple) else value


Hops = Annotated[list[int] | None, BeforeValidator(_hops)]

_STRICT = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


@dataclass(frozen=True, config=_STRICT)
class DataConfig:
    r"""The data of a run."""

    name: str
    """A dataset by name (pyg:CLASS/NAME for one of PyG), a csv file of molecules, or a file or
    folder of graphs."""
    fraction: Fraction = 1.0
    """Fraction of each split to use, from its beginning."""
    seed: Index = 0
    """Seed of generated graphs, and of the random split of your own data."""
    fold: Count | None = None
    """IMDB-MULTI: the fold to hold out, from 1, else all in turn. One graph: its split, from 1."""
    holdout: bool = False
    """IMDB-MULTI: choose the best epoch on the next fold, so that the held-out fold is a test."""
    n_way: Annotated[int, Field(ge=2)] = 5
    """Few-shot images: number of classes in a task."""
    k_shot: Count = 1
    """Few-shot images: number of labelled images of each class."""
    n_query: Count = 1
    """Few-shot images: number of queries of an episode, each a task of its own."""
    episodes: Count = 2000
    """Few-shot images: number of episodes to validate and to test on."""
    target: str | None = None
    """csv file: the column to learn, or several columns with commas between them."""
    task: Literal["auto", "regression", "classification"] = "auto"
    """Your own data: regression or classification, if auto finds the wrong one."""
    split: str | None = None
    """Your own data: random (8 : 1 : 1), scaffold for molecules, all splits of one graph as folds,
    or a .json or .csv file with the items of each split. [the data's own, else random]"""
    split_column: str | None = None
    """csv file: the column that has train, val or test for each molecule."""
    rwse: Index = 0
    """Steps of the random walks whose return probabilities are added to each node's features."""
    neighbors: Hops = None
    """One graph: sample at most so many neighbours of a node in each hop, such as 15,10."""
    smiles: str = "smiles"
    """csv file: the column of the SMILES strings."""
    skip_bad: bool = False
    """csv file: skip lines that cannot be read."""
    folder: str | None = None
    """Folder with the files of the datasets, else $FOGNN_DATA."""


@dataclass(frozen=True, config=_STRICT)
class ModelConfig:
    r"""The network of a run: its name and settings, as in :func:`fognn.create_model`."""

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        if has_fog(self.name):
            self.settings.setdefault("fog_act_first", False)


@dataclass(frozen=True, config=_STRICT)
class TrainingConfig:
    r"""The training of a run: by default Adam, with L2 in the gradient."""

    loss: Literal["l1", "mse", "cross_entropy", "balanced_cross_entropy", "bce"]
    """l1 or mse (numbers), bce (yes/no), cross_entropy, or balanced_cross_entropy (class weights
    (V - n_c) / V)."""
    metric: Literal[
        "mae", "rmse", "accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision"
    ]
    """mae or rmse (numbers); accuracy, balanced_accuracy (mean recall of the classes), f1 (of class
    1), roc_auc or average_precision (each the mean over columns or classes)."""
    batch_size: Count = 128
    """Graphs, few-shot episodes, or nodes with sampled neighbours, in a batch of all ranks."""
    epochs: Count = 1000
    """Maximum number of epochs."""
    steps: Count = 1000
    """Few-shot images: number of steps in an epoch."""
    lr: Positive = 1e-3
    """Initial learning rate; for cosine, the highest."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """adam (weight decay in the gradient, as an L2 penalty) or adamw (decoupled weight decay)."""
    weight_decay: AtLeastZero = 0.0
    """Weight of the L2 penalty, or of the decoupled decay of adamw."""
    clip: Positive | None = None
    """Largest norm of the gradient of all weights together; a longer one is scaled to it."""
    schedule: Literal["plateau", "step", "cosine", "none"] = "plateau"
    """plateau (reduce the learning rate after PATIENCE epochs without a lower validation loss, stop
    below MIN_LR), step (reduce it every STEP epochs), cosine (in each step: linearly up to LR over
    WARMUP epochs, then half a cosine to MIN_LR at the end of the last epoch) or none."""
    warmup: Index = 0
    """cosine: epochs in which the learning rate rises linearly to its highest value."""
    factor: Fraction = 0.5
    """Factor by which the learning rate is multiplied when it is reduced."""
    patience: Index = 10
    """Epochs without improvement before the learning rate is reduced."""
    min_lr: AtLeastZero = 1e-5
    """plateau: learning rate below which the training stops; cosine: learning rate at the end."""
    step: Count = 50
    """Epochs between two reductions of the learning rate."""

    def __post_init__(self) -> None:
        if (self.loss in ("l1", "mse")) != (self.metric in ("mae", "rmse")):
            raise ValueError(f"metric must fit loss, got {self.metric!r} with {self.loss!r}")
        if self.schedule != "cosine" and self.warmup:
            raise ValueError(f"warmup must be 0 with schedule {self.schedule!r}, got {self.warmup}")
        if self.schedule == "cosine" and self.warmup >= self.epochs:
            raise ValueError(f"warmup must be below epochs, got {self.warmup} and {self.epochs}")
        if self.schedule == "cosine" and self.min_lr > self.lr:
            raise ValueError(f"min_lr must not be above lr, got {self.min_lr} and {self.lr}")


@dataclass(frozen=True, config=_STRICT)
class MachineConfig:
    r"""The machine that a run is trained on, which is not part of its identity. A run that is
    resumed on another machine has the same bits only with the same values."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """auto, cpu, cuda or mps."""
    threads: Count | None = None
    """Number of threads of each process."""
    ranks: Count = 1
    """Number of processes that share each batch."""
    compile: bool = False
    """Compile the network with torch.compile."""


@dataclass(frozen=True, config=_STRICT)
class Config:
    r"""The configuration of a run. Two runs with the same :meth:`identity` are the same run."""

    data: DataConfig
    model: ModelConfig
    training: TrainingConfig
    seed: Index = 0
    """Seed of the weights, the order of the graphs and dropout."""
    precision: Literal["32-true", "64-true", "16-mixed", "bf16-mixed"] = "32-true"
    """32-true, 64-true, 16-mixed or bf16-mixed."""
    machine: MachineConfig = Field(default_factory=MachineConfig)

    def __post_init__(self) -> None:
        if self.training.batch_size % self.machine.ranks:
            raise ValueError(
                "training.batch_size must be a multiple of machine.ranks, got "
                f"{self.training.batch_size} and {self.machine.ranks}"
            )

    def to_dict(self) -> dict[str, Any]:
        r"""Returns nested dicts of plain values, as in ``config.yaml``."""
        content = dataclasses.asdict(self)
        content["model"] |= content["model"].pop("settings")
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], where: str = "config") -> "Config":
        r"""Builds a configuration from the result of :meth:`to_dict`."""
        parts = dict(_mapping(content, where))
        for name, kind in SECTIONS.items():
            if name in parts:
                values = dict(_mapping(parts[name], f"{where}: {name}"))
                if kind is ModelConfig:
                    if has_fog(values.get("name")):  # the default of files without the key
                        values.setdefault("fog_act_first", True)
                    values = {"name": values.pop("name", None), "settings": values}
                parts[name] = _validated(kind, values, where, f"{name}.")
        return _validated(cls, parts, where)

    def with_values(self, values: Mapping[str, Any]) -> "Config":
        r"""Returns a copy with some settings changed, as in ``{"model.h1": 8, "lr": 1e-3}``."""
        content = self.to_dict()
        for name, value in values.items():
            *section, key = setting_name(name).split(".", 1)
            (content[section[0]] if section else content)[key] = value
        if has_fog(content["model"]["name"]):  # also if the name is new
            content["model"].setdefault("fog_act_first", False)
        return Config.from_dict(content)

    def identity(self) -> dict[str, Any]:
        r"""Returns the settings that define the run: all but the machine and the data folder."""
        content = self.to_dict()
        del content["machine"], content["data"]["folder"]
        return content

    def digest(self) -> str:
        r"""Returns a hash of :meth:`identity`, of 8 hexadecimal digits. Settings at their default
        are left out, so that new ones do not change it."""
        defaults = _DEFAULTS | {"model.fog_act_first": True}  # in files without it
        own = {k: v for k, v in flat(self.identity()).items() if v != defaults.get(k)}
        return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:8]

    def differences(self, other: "Config") -> list[str]:
        r"""Returns the settings that differ, as ``["training.lr: 0.001 and 0.01"]``."""
        mine, theirs = flat(self.identity()), flat(other.identity())
        pairs = {name: (mine.get(name), theirs.get(name)) for name in mine | theirs}
        return [f"{name}: {a!r} and {b!r}" for name, (a, b) in pairs.items() if a != b]

    def to_yaml(self) -> str:
        r"""Returns the text of ``config.yaml``."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False)

    @classmethod
    def read(cls, path: Path) -> "Config":
        r"""Reads a ``config.yaml``."""
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ValueError(f"config: {path} must be a YAML file: {error}") from error
        return cls.from_dict(content, str(path))


def _mapping(content: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise ValueError(f"{where} must be a mapping of names to values, got {content!r}")
    return content


def _validated(kind: Any, values: Mapping[str, Any], where: str, prefix: str = "") -> Any:
    try:
        return kind(**values)
    except ValidationError as error:
        raise ValueError(f"{where}: {first_problem(error, prefix)}") from error


SECTIONS: dict[str, Any] = {
    "data": DataConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
    "machine": MachineConfig,
}


def flat(content: Mapping[str, Any]) -> dict[str, Any]:
    r"""Flattens nested mappings into one dict with dotted names."""
    entries: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            entries |= {f"{key}.{name}": inner for name, inner in flat(value).items()}
        else:
            entries[key] = value
    return entries


_DEFAULTS = flat(Config(DataConfig(""), ModelConfig(""), TrainingConfig("l1", "mae")).to_dict())
# Without model.*, which create_model checks.
_NAMES = [name for name in _DEFAULTS if not name.startswith("model.")]
SETTING_NAMES = sorted(_NAMES, key=lambda name: "." in name)


def setting_name(name: str) -> str:
    r"""Returns the dotted name of a setting: ``"training.lr"`` for ``"lr"``, which is unique."""
    if name in SETTING_NAMES or (name.startswith("model.") and name != "model."):
        return name
    found = [known for known in SETTING_NAMES if known.partition(".")[2] == name != "name"]
    if len(found) != 1:
        checks.known("config", "setting", name, [*SETTING_NAMES, f"model.{name}"])
    return found[0]


def setting_help(name: str) -> str:
    r"""Returns the description of a setting with its default, by its dotted name."""
    part, _, key = name.rpartition(".")
    field = SECTIONS.get(part, Config).__pydantic_fields__[key]
    default = "" if field.is_required() else f" [{field.default}]"
    return f"{' '.join((field.description or '').split())}{default}"


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    r"""Parses ``["model.h1=8"]`` to ``{"model.h1": 8}``; values are YAML."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not name or not equals:
            raise ValueError(f"set must be NAME=VALUE, such as model.h1=8, got {text!r}")
        try:
            parsed = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"set: the value of {name} must be YAML, got {value!r}") from error
        # YAML takes 1e-2 for a text. Fields of other sections have a type, which converts it.
        if name.startswith("model.") and re.fullmatch(r"\d+e[-+]?\d+", str(parsed)):
            parsed = float(parsed)
        values[name] = parsed
    return values

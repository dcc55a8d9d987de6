r"""The configuration of a run. A setting is defined by its field here, and only here: the keys of
``config.yaml``, the arguments of :func:`fognn.train` and the options of ``fognn train`` are derived
from the fields."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field

from fognn.models.registry import has_fog
from fognn.training.config_section import (
    AtLeastZero,
    Count,
    Index,
    Number,
    Positive,
    as_mapping,
    flat,
    load_yaml,
    section,
    unknown_setting,
)
from fognn.utils.files import read_text

__all__ = [
    "SECTIONS",
    "Config",
    "DataConfig",
    "MachineConfig",
    "ModelConfig",
    "TrainingConfig",
    "setting_name",
]

Fraction = Annotated[Number, Field(gt=0, le=1)]


def _neighbors(value: Any) -> Any:
    found = value
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        found = [int(part) if part.lstrip("-").isdecimal() else part for part in parts]
    elif type(value) is int:
        found = [value]
    elif isinstance(value, tuple):
        found = list(value)
    right = isinstance(found, list) and found != []
    if value is None or (right and all(type(k) is int and (k > 0 or k == -1) for k in found)):
        return found
    raise ValueError(
        "config: data.neighbors must be a positive int for each hop, such as 15,10, or -1 for all "
        f"neighbours, got {value!r}"
    )


Neighbors = Annotated[list[int] | None, BeforeValidator(_neighbors)]


@section
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
    """IMDB-MULTI: the fold to hold out, from 1; all folds in turn if not given. One graph with
    several splits: the number of the split, from 1."""
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
    split: Literal["random", "scaffold", "all"] | None = None
    """Your own data: random (8 : 1 : 1), scaffold for molecules, or all splits of one graph, as
    folds; if not given, the data's own (first) split, else random."""
    split_column: str | None = None
    """csv file: the column that has train, val or test for each molecule."""
    rwse: Index = 0
    """Steps of the random walks whose return probabilities are added to each node's features, such
    as 20; 0 for none. They are computed once and kept with the dataset."""
    neighbors: Neighbors = None
    """One graph: sample at most so many neighbours of a node in each hop, such as 15,10; if not
    given, the whole graph is a batch."""
    smiles: str = "smiles"
    """csv file: the column of the SMILES strings."""
    skip_bad: bool = False
    """csv file: skip lines that cannot be read."""
    folder: str | None = None
    """Folder with the files of the datasets, else $FOGNN_DATA."""


@section
class ModelConfig:
    r"""The network of a run: a name of :func:`fognn.list_models`, and the settings that
    :func:`fognn.create_model` takes for it."""

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        if has_fog(self.name):
            self.settings.setdefault("fog_act_first", False)


@section
class TrainingConfig:
    r"""The training of a run: by default Adam, with L2 in the gradient."""

    loss: Literal["l1", "mse", "cross_entropy", "balanced_cross_entropy", "bce"]
    """Loss: l1 or mse (numbers), bce (yes/no), cross_entropy, or balanced_cross_entropy (class
    weights (V - n_c) / V)."""
    metric: Literal[
        "mae", "rmse", "accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision"
    ]
    """Metric: mae or rmse (numbers); accuracy, balanced_accuracy (mean recall of the classes), f1
    (of class 1), roc_auc or average_precision (each the mean over columns or classes)."""
    batch_size: Count = 128
    """Number of graphs, few-shot episodes, or nodes with sampled neighbours, in a batch, over all
    ranks."""
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
    """Largest norm of the gradient of all weights together; a longer gradient is scaled to it. If
    not given, gradients are not changed."""
    schedule: Literal["plateau", "step", "cosine", "none"] = "plateau"
    """plateau (reduce the learning rate after PATIENCE epochs without a lower validation loss, stop
    below MIN_LR), step (reduce it every STEP epochs), cosine (change it in each step: linearly up
    to LR over WARMUP epochs, then as half a cosine to MIN_LR at the end of the last epoch) or
    none."""
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
            raise ValueError(
                f"config: training.metric must fit training.loss, got {self.metric!r} with "
                f"{self.loss!r}"
            )
        if self.schedule != "cosine":
            if self.warmup:
                raise ValueError(
                    "config: training.warmup must be 0 unless training.schedule is 'cosine', got "
                    f"{self.warmup} with {self.schedule!r}"
                )
            return
        if self.warmup >= self.epochs:
            raise ValueError(
                "config: training.warmup must be below training.epochs, got "
                f"{self.warmup} and {self.epochs}"
            )
        if self.min_lr > self.lr:
            raise ValueError(
                "config: training.min_lr must not be above training.lr with the schedule 'cosine', "
                f"got {self.min_lr} and {self.lr}"
            )


@section
class MachineConfig:
    r"""The machine that a run is trained on. It is not part of a run's identity: a run can be
    resumed on another machine. Results are bitwise reproducible only with the same device, threads,
    ranks and compile setting."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """auto, cpu, cuda or mps."""
    threads: Count | None = None
    """Number of threads of each process."""
    ranks: Count = 1
    """Number of processes that share each batch."""
    compile: bool = False
    """Compile the network with torch.compile."""


@section
class Config:
    r"""The configuration of a run. Two runs with the same :meth:`identity` are the same run.

    Args:
        data (DataConfig): The data.
        model (ModelConfig): The network.
        training (TrainingConfig): The training.
        seed (int, optional): Seed of the weights, the order of the graphs and dropout.
            (default: :obj:`0`)
        precision (str, optional): Precision of the weights and of the arithmetic.
            (default: :obj:`"32-true"`)
        machine (MachineConfig, optional): The machine that it is trained on.
    """

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
                f"config: training.batch_size must be a multiple of machine.ranks, got "
                f"{self.training.batch_size} and {self.machine.ranks}"
            )

    def to_dict(self) -> dict[str, Any]:
        r"""Returns nested dicts of plain values, as in ``config.yaml``."""
        content = dataclasses.asdict(self)
        model = content["model"]
        content["model"] = {"name": model["name"], **model["settings"]}
        return dict(content)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], where: str = "config") -> "Config":
        r"""Builds a configuration from the result of :meth:`to_dict`.

        Args:
            content (dict): Nested dicts of plain values.
            where (str, optional): The prefix of error messages. (default: :obj:`"config"`)

        Raises:
            ValueError: If a setting is unknown, missing or invalid.
        """
        parts = dict(as_mapping(content, where))
        try:
            for name, kind in SECTIONS.items():
                if name in parts:
                    values = dict(as_mapping(parts[name], f"config: {name}"))
                    if kind is ModelConfig:
                        if has_fog(values.get("name")):  # the default of files without the key
                            values.setdefault("fog_act_first", True)
                        values = {"name": values.pop("name", None), "settings": values}
                    parts[name] = kind(**values)
            return cls(**parts)
        except ValueError as error:
            if where == "config":
                raise
            raise ValueError(str(error).replace("config:", f"{where}:", 1)) from None

    def with_values(self, values: Mapping[str, Any]) -> "Config":
        r"""Returns a copy with some settings changed.

        Args:
            values (dict): Settings by name, as :func:`setting_name` takes them:
                ``{"model.h1": 8, "lr": 1e-3}``.
        """
        content = self.to_dict()
        for name, value in values.items():
            part, dot, key = setting_name(name).partition(".")
            if dot:
                content[part][key] = value
            else:
                content[part] = value
        if has_fog(content["model"]["name"]):  # also if the name is new
            content["model"].setdefault("fog_act_first", False)
        return Config.from_dict(content)

    def identity(self) -> dict[str, Any]:
        r"""Returns the settings that define the run: all but those of the machine and the data
        folder."""
        content = self.to_dict()
        del content["machine"], content["data"]["folder"]
        return content

    def digest(self) -> str:
        r"""Returns a hash of :meth:`identity`, of 8 hexadecimal digits. Settings at their default
        are left out, so a setting that a later version adds does not change it;
        ``model.fog_act_first`` is left out if it is :obj:`True`, as in files without it."""
        blank = Config(DataConfig(""), ModelConfig(""), TrainingConfig("l1", "mae")).identity()
        defaults = flat(blank)
        defaults["model.fog_act_first"] = True
        own = {k: v for k, v in flat(self.identity()).items() if v != defaults.get(k)}
        return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:8]

    def differences(self, other: "Config") -> list[str]:
        r"""Returns the settings in which the identities differ, as
        ``["training.lr: 0.001 and 0.01"]``."""
        mine, theirs = flat(self.identity()), flat(other.identity())
        return [
            f"{name}: {mine.get(name)!r} and {theirs.get(name)!r}"
            for name in dict.fromkeys([*mine, *theirs])
            if mine.get(name) != theirs.get(name)
        ]

    def to_yaml(self) -> str:
        r"""Returns the text of ``config.yaml``."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False)

    @classmethod
    def read(cls, path: Path) -> "Config":
        r"""Reads a ``config.yaml``."""
        try:
            text = read_text(path)
        except FileNotFoundError as error:
            raise ValueError(f"config: {path} does not exist") from error
        try:
            return cls.from_dict(load_yaml(text), str(path))
        except (yaml.YAMLError, RecursionError) as error:
            raise ValueError(f"config: {path} must be a YAML file: {error}") from error
        except ValueError as error:
            named = str(path) in str(error)
            raise ValueError(str(error) if named else f"config: {path}: {error}") from error


SECTIONS: dict[str, Any] = {
    "data": DataConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
    "machine": MachineConfig,
}
# Without the sections themselves, and without model.*, which create_model checks.
_NAMES = [
    *("seed", "precision"),
    *(
        f"{name}.{field.name}"
        for name, kind in SECTIONS.items()
        for field in dataclasses.fields(kind)
        if name != "model"
    ),
]


def setting_name(name: str) -> str:
    r"""Returns the dotted name of a setting: ``"training.lr"`` for ``"lr"``.

    Args:
        name (str): The dotted name, or its last part if that is unique. Settings of the network
            are always dotted, as ``"model.h1"``.
    """
    if name in _NAMES or (name.startswith("model.") and name != "model."):
        return name
    found = [known for known in _NAMES if known.partition(".")[2] == name != "name"]
    if len(found) == 1:
        return found[0]
    raise ValueError(unknown_setting(name, [*_NAMES, "model.NAME"]))

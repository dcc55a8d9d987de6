r"""Networks as folders of the Hugging Face hub."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor
from torch.nn import Module

try:
    from huggingface_hub import PyTorchModelHubMixin
except ImportError as error:
    raise ImportError(
        'PretrainedNet needs huggingface_hub: install it with pip install "fognn[hub]"'
    ) from error

from fognn import __version__
from fognn.models.registry import has_fog, new_model
from fognn.models.summary import count_parameters, summary
from fognn.models.task import TASKS, Task
from fognn.models.tensor_file import check_sizes, whole_network
from fognn.utils.errors import FileError
from fognn.utils.files import disk_error, user_path

__all__ = ["PretrainedNet"]

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
_TEMPLATE = """---
{{ card_data }}
---

# {{ title }}

A graph network with {{ parameters }} parameters, built with [PyG](https://pyg.org) and fognn
{{ version }}.{% if training %} {{ training }}{% endif %} To load it, with this folder in place of
`FOLDER`:

```python
from fognn.models import PretrainedNet

net = PretrainedNet.from_pretrained("FOLDER")
```

The same network with new weights:

```python
{{ recipe }}
```

```text
{{ layers }}
```
"""
# Arguments of the mixin that have no meaning for a folder.
_DOWNLOAD = {"revision", "cache_dir", "force_download", "local_files_only", "token"}


class PretrainedNet(  # type: ignore[call-arg]
    Module,
    PyTorchModelHubMixin,
    library_name="fognn",
    tags=["graph-machine-learning", "fognn"],
    model_card_template=_TEMPLATE,
):
    r"""A network of :func:`~fognn.models.create_model` that can be saved to a folder and loaded
    from it: :obj:`config.json`, :obj:`model.safetensors` and a model card, :obj:`README.md`.

    It is a :class:`huggingface_hub.PyTorchModelHubMixin`. The weights are those of the network
    itself, :obj:`net.module`. Only :meth:`push_to_hub` uses the internet.

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
        for key, value in settings.items():
            if not isinstance(value, bool | int | float | str | None):
                raise ValueError(
                    f"PretrainedNet: {key} must be a number, a string or a boolean, because it is "
                    f"written to {CONFIG}, got {type(value).__name__}"
                )
        super().__init__()
        if isinstance(task, dict):
            task = Task(**task)
        if has_fog(name):
            settings.setdefault("fog_act_first", False)
        self.module = new_model(name, task, **settings)
        if isinstance(task, str):
            task = TASKS[task.lower()]
        # The mixin writes this to config.json and passes it to __init__ again.
        self._hub_mixin_config: dict[str, Any] = {
            "name": name.lower(),
            "task": None if task is None else task.to_dict(),
            **settings,
        }

    @property
    def model_config(self) -> dict[str, Any]:
        r"""The arguments of the network, as in :obj:`config.json`."""
        return self._hub_mixin_config

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        r"""Calls the network."""
        return self.module(*args, **kwargs)

    def save_pretrained(
        self,
        save_directory: str | Path,
        push_to_hub: bool = False,
        repo_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        r"""Saves the network to a folder. If this fails, a network that is already there stays as
        it is. An existing model card is kept.

        Args:
            save_directory (str or Path): The folder, which is created if it does not exist.
            push_to_hub (bool, optional): If set to :obj:`True`, uploads the network to the hub.
                (default: :obj:`False`)
            repo_id (str, optional): Its name on the hub. (default: the name of the folder)
            **kwargs (optional): Arguments of the mixin's method.
        """
        folder = user_path(save_directory)
        if folder.exists() and not folder.is_dir():
            raise ValueError(
                f"PretrainedNet: save_directory must be a folder, got the file {str(folder)!r}"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".tmp-", dir=folder) as staging:
                super().save_pretrained(staging, **kwargs)
                _move(Path(staging), folder)
        except OSError as error:
            raise disk_error(folder, error) from error
        except SafetensorError as error:
            raise FileError(
                f"{folder} could not be written ({error}): is the disk full?"
            ) from error
        if push_to_hub:
            self.push_to_hub(repo_id or folder.resolve().name, **kwargs)  # type: ignore[operator]

    def generate_model_card(
        self, *args: Any, data: str | None = None, training: str = "", **kwargs: Any
    ) -> Any:
        r"""The model card, from the network's own data.

        Args:
            *args: Arguments of the mixin's method.
            data (str, optional): The name of the data. (default: that of the task, if it is one of
                the paper's)
            training (str, optional): Sentences about the training: data, targets, scores. Both are
                passed as ``save_pretrained(folder, model_card_kwargs={"training": ...})``.
                (default: :obj:`""`)
            **kwargs: Arguments of the mixin's method.
        """
        settings = dict(self.model_config)
        name, fields = settings.pop("name"), settings.pop("task")
        task: Any = None if fields is None else Task(**fields)
        known = next((key for key, known in TASKS.items() if known == task), None)
        given = [repr(name)] if task is None else [repr(name), repr(known or task)]
        data = data or known
        given += [f"{key}={value!r}" for key, value in settings.items()]
        return super().generate_model_card(
            *args,
            title=f"{name} for {data}" if data else name,
            training=training,
            parameters=f"{count_parameters(self.module):,}",
            version=__version__,
            recipe=f"PretrainedNet({', '.join(given)})",
            layers=summary(self.module),
            **kwargs,
        )

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, map_location: str = "cpu", **kwargs: Any
    ) -> "PretrainedNet":
        r"""Loads a network from a folder, in evaluation mode.

        The name of a repository on the hub is not accepted, so that a misspelt folder causes no
        download: :func:`huggingface_hub.snapshot_download` returns a folder for a name.

        Args:
            pretrained_model_name_or_path (str or Path): The folder.
            map_location (str, optional): The device of the network. (default: :obj:`"cpu"`)
            **kwargs (optional): Arguments of the mixin's method.
        """
        folder = user_path(pretrained_model_name_or_path)
        if not folder.is_dir():
            raise ValueError(
                "PretrainedNet: pretrained_model_name_or_path must be a folder, got "
                f"{str(folder)!r}; for a name on the hub, pass the folder that "
                "huggingface_hub.snapshot_download(name) returns"
            )
        for key in kwargs.keys() - _DOWNLOAD:
            raise ValueError(
                f"PretrainedNet: {key} must not be given, {CONFIG} holds all settings; got "
                f"{kwargs[key]!r}"
            )
        config = _checked(folder)
        with whole_network(folder):
            check_sizes(folder / WEIGHTS, config, CONFIG)
            return super().from_pretrained(str(folder), map_location=map_location, **kwargs)

    @classmethod
    def _from_pretrained(
        cls, *, model_id: str, map_location: str, **arguments: Any
    ) -> "PretrainedNet":
        # The mixin's own method would load the weights into the wrapper, not into the network that
        # it saved, accept the weights of another network, and print.
        if has_fog(arguments["name"]):  # folders that were written without the key
            arguments.setdefault("fog_act_first", True)
        net = cls(**{key: value for key, value in arguments.items() if key not in _DOWNLOAD})
        cls._load_as_safetensor(net.module, str(Path(model_id, WEIGHTS)), "cpu", strict=True)
        return net.to(map_location).eval()


def _move(staging: Path, folder: Path) -> None:
    for path in staging.iterdir():
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
    # Without its config a folder cannot be loaded: new weights never stand beside an old config.
    (folder / CONFIG).unlink(missing_ok=True)
    os.replace(staging / WEIGHTS, folder / WEIGHTS)
    if not (folder / CARD).exists():
        os.replace(staging / CARD, folder / CARD)
    os.replace(staging / CONFIG, folder / CONFIG)


def _checked(folder: Path) -> dict[str, Any]:
    r"""Returns the content of the folder's config; raises if a file or a key is missing."""
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise FileError(
                f"PretrainedNet: {folder} must hold {name}, as save_pretrained writes it; for a "
                "run folder, use fognn.load"
            )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(
            f"{folder / CONFIG} is no whole JSON file ({error}): save the network again"
        ) from error
    if not isinstance(config, dict) or not {"name", "task"} <= config.keys():
        found = sorted(config)[:10] if isinstance(config, dict) else type(config).__name__
        raise FileError(f"{folder / CONFIG} must have the keys 'name' and 'task', got {found}")
    return config

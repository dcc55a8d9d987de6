r"""A network in a folder, as the Hugging Face hub keeps it."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.nn import Module

try:
    import huggingface_hub  # noqa: F401
except ImportError as error:
    raise ImportError(
        'PretrainedNet needs huggingface_hub: install it with pip install "fognn[hub]"'
    ) from error
from torch_geometric.nn.model_hub import PyGModelHubMixin

from fognn import __version__
from fognn.models.hub_folder import CONFIG, WEIGHTS, check_folder, load_weights, move_into
from fognn.models.registry import create_model
from fognn.models.summary import count_parameters, summary
from fognn.models.task import TASKS, Task

__all__ = ["PretrainedNet"]

_TEMPLATE = """---
{{ card_data }}
---

# {{ title }}

A graph network with {{ parameters }} parameters, built with [PyG](https://pyg.org) and fognn. To
load it, with this folder in place of `FOLDER`:

```python
from fognn.models import PretrainedNet

net = PretrainedNet.from_pretrained("FOLDER")
```

How it was built:

```python
{{ recipe }}
```

```text
{{ layers }}
```
"""
# The mixin passes these on, and in a folder they have no meaning.
_MIXIN_KEYS = {
    *("model_id", "revision", "cache_dir", "force_download", "local_files_only", "token"),
    *("use_auth_token", "proxies", "resume_download"),
}


class PretrainedNet(  # type: ignore[call-arg]
    Module,
    PyGModelHubMixin,
    library_name="fognn",
    tags=["graph-machine-learning", "fognn"],
    model_card_template=_TEMPLATE,
):
    r"""A network of :func:`~fognn.models.create_model` that can be saved to a folder and loaded
    from it: :obj:`config.json`, :obj:`model.pth` and a model card, :obj:`README.md`.

    The folder is the one that PyG's :class:`~torch_geometric.nn.model_hub.PyGModelHubMixin`
    writes, with a complete recipe in it. :obj:`model.pth` holds the weights of the bare network,
    so ``create_model(...).load_state_dict(torch.load("model.pth"))`` works too. Nothing here uses
    the internet, save :meth:`push_to_hub`.

    .. code-block:: python

        net = PretrainedNet("gcn+fog", "zinc", channels=90)
        net.module.load_state_dict(trained.state_dict())
        net.save_pretrained("my-network")
        net = PretrainedNet.from_pretrained("my-network")

    Args:
        name: As in :func:`~fognn.models.create_model`.
        task: As there: a :class:`Task`, the name of one, or for few-shot networks none.
        **settings: As there: numbers, strings and booleans.
    """

    def __init__(self, name: str, task: str | Task | None = None, **settings: Any) -> None:
        for key, value in settings.items():
            if not isinstance(value, bool | int | float | str | None):
                raise ValueError(
                    f"PretrainedNet: {key} must be a number, a string or a boolean, as it goes to "
                    f"{CONFIG}, got {type(value).__name__}"
                )
        Module.__init__(self)
        # The mixin saves the weights of what stands under this name.
        self.module = create_model(name, task, **settings)
        if isinstance(task, str):
            task = TASKS[task.lower()]
        task_name = next((key for key, known in TASKS.items() if known == task), "")
        PyGModelHubMixin.__init__(self, name.lower(), task_name, settings)
        # What the mixin makes of the settings leaves out booleans, the name and the task.
        self.model_config: dict[str, Any] = {
            "library": "fognn",
            "version": __version__,
            "name": name.lower(),
            "task": None if task is None else asdict(task),
            "settings": settings,
            "parameters": count_parameters(self.module),
        }

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        r"""As the network's own."""
        return self.module(*args, **kwargs)

    def save_pretrained(
        self,
        save_directory: str | Path,
        push_to_hub: bool = False,
        repo_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        r"""Saves the network to a folder. When it fails, what was there is as it was; a model card
        that is there already is kept.

        Args:
            save_directory: The folder. It is made if it is not there.
            push_to_hub: Whether the network goes to the Hugging Face hub too.
            repo_id: Its name there. (default: the name of the folder)
            **kwargs: As in the mixin.
        """
        folder = Path(save_directory).expanduser()
        if folder.exists() and not folder.is_dir():
            raise ValueError(
                f"PretrainedNet: save_directory must be a folder, got the file {str(folder)!r}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(prefix=".tmp-", dir=folder) as staging:
                super().save_pretrained(staging, **kwargs)
                move_into(folder, Path(staging))
        except RuntimeError as error:  # torch's word for a full disk
            raise OSError(f"{folder} could not be written ({error}): is the disk full?") from error
        if push_to_hub:
            self.push_to_hub(repo_id or folder.resolve().name, **kwargs)  # type: ignore[operator]

    def generate_model_card(self, *args: Any, **kwargs: Any) -> Any:
        r"""The text of :obj:`README.md`."""
        config, data = self.model_config, self.dataset_name
        task = data or (None if config["task"] is None else Task(**config["task"]))
        given = [repr(value) for value in (config["name"], task) if value is not None]
        given += [f"{key}={value!r}" for key, value in config["settings"].items()]
        return super().generate_model_card(
            *args,
            title=f"{config['name']} for {data}" if data else config["name"],
            parameters=f"{config['parameters']:,}",
            recipe=f"PretrainedNet({', '.join(given)})",
            layers=summary(self.module),
            **kwargs,
        )

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, map_location: str = "cpu", **kwargs: Any
    ) -> "PretrainedNet":
        r"""Loads a network from a folder, ready to predict (:meth:`~torch.nn.Module.eval`).

        A name on the hub is not taken, so that a folder with a wrong name does not go to the
        internet: :meth:`huggingface_hub.snapshot_download` gives a folder for a name.

        Args:
            pretrained_model_name_or_path: The folder.
            map_location: The device that the network goes to.
            **kwargs: As in the mixin.
        """
        folder = Path(pretrained_model_name_or_path).expanduser()
        if not folder.is_dir():
            raise ValueError(
                f"PretrainedNet: pretrained_model_name_or_path must be a folder, got "
                f"{str(folder)!r}; for a name on the hub, give what "
                "huggingface_hub.snapshot_download(name) returns"
            )
        check_folder(folder)
        return super().from_pretrained(str(folder), map_location=map_location, **kwargs)

    # The mixin's own swaps two arguments, lets a file with other weights pass, and reads weights
    # with a function that falls back to running the file.
    @classmethod
    def _from_pretrained(
        cls, *, model_id: str, config: dict[str, Any], map_location: str, **rest: Any
    ) -> "PretrainedNet":
        for key, value in rest.items():
            # The mixin passes on all that is in the config, too.
            if key not in _MIXIN_KEYS and not (key in config and config[key] == value):
                raise ValueError(
                    f"PretrainedNet: {key} must not be given, {CONFIG} holds all settings; "
                    f"got {value!r}"
                )
        try:
            task = None if config["task"] is None else Task(**config["task"])
            net = cls(config["name"], task, **config["settings"])
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{Path(model_id, CONFIG)} describes no network of fognn {__version__} (it "
                f"was written by {config['version']}): {error}"
            ) from error
        load_weights(net.module, Path(model_id, WEIGHTS))
        return net.to(map_location).eval()

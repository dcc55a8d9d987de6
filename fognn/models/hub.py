r"""Networks as folders of the Hugging Face hub."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.nn import Module

try:
    from huggingface_hub import PyTorchModelHubMixin
except ImportError as error:
    raise ImportError(
        'PretrainedNet needs huggingface_hub: install it with pip install "fognn[hub]"'
    ) from error

from fognn.models.registry import has_fog, new_model
from fognn.models.task import TASKS, Task
from fognn.models.weights import loading_errors
from fognn.utils.files import user_path

__all__ = ["PretrainedNet"]

_CARD = """---
{{ card_data }}
---

# {{ title | default("A graph network", true) }}

Built with [PyG](https://pyg.org) and fognn. {{ training | default("", true) }} To load it, with
this folder in place of `FOLDER`:

```python
from fognn.models import PretrainedNet

net = PretrainedNet.from_pretrained("FOLDER")
```
"""


class PretrainedNet(  # type: ignore[call-arg]
    Module,
    PyTorchModelHubMixin,
    library_name="fognn",
    tags=["graph-machine-learning", "fognn"],
    model_card_template=_CARD,
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

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, map_location: str = "cpu", **kwargs: Any
    ) -> "PretrainedNet":
        r"""Loads a network from a folder, in evaluation mode. The name of a repository on the hub
        is not accepted, so that a misspelt folder causes no download:
        :func:`huggingface_hub.snapshot_download` returns a folder for a name.

        Args:
            pretrained_model_name_or_path (str or Path): The folder.
            map_location (str, optional): The device of the network. (default: :obj:`"cpu"`)
            **kwargs (optional): Arguments of the mixin's method.
        """
        folder = user_path(pretrained_model_name_or_path)
        if not (folder / "config.json").is_file():
            raise ValueError(
                "PretrainedNet: pretrained_model_name_or_path must be a folder that "
                f"save_pretrained has written, got {str(folder)!r}"
            )
        with loading_errors(folder):
            return super().from_pretrained(str(folder), map_location=map_location, **kwargs)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, map_location: str, **_: Any) -> "PretrainedNet":
        # The mixin's own method would load the weights into the wrapper, not into the network that
        # it saved, and accept the weights of another network.
        config = json.loads(Path(model_id, "config.json").read_text(encoding="utf-8"))
        if has_fog(config["name"]):  # folders that were written without the key
            config.setdefault("fog_act_first", True)
        net = cls(**config)
        weights = str(Path(model_id, "model.safetensors"))
        cls._load_as_safetensor(net.module, weights, "cpu", strict=True)
        return net.to(map_location).eval()

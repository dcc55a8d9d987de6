r"""A trained network as a folder of the Hugging Face hub."""

from pathlib import Path

from fognn.training.checkpoint import model_arguments
from fognn.training.loading import load_run

__all__ = ["export"]


def export(run: str | Path, folder: str | Path, checkpoint: str = "best") -> Path:
    r"""Writes the network of a run to a folder in the layout of the Hugging Face hub, offline:
    ``config.json``, ``model.safetensors`` (float32) and a model card.
    :class:`fognn.models.PretrainedNet` loads it.

    Args:
        run (str or Path): A run folder, or a checkpoint in one.
        folder (str or Path): The folder to write.
        checkpoint (str, optional): ``"best"`` or ``"last"``. (default: :obj:`"best"`)
    """
    from fognn.models import PretrainedNet

    net, config, task = load_run(run, checkpoint)
    twin = PretrainedNet(config.model.name, task, **model_arguments(config, task))
    twin.module.load_state_dict(net.state_dict())
    twin.save_pretrained(folder)
    return Path(folder)

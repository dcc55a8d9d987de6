r"""A trained network as a folder of the Hugging Face hub."""

from pathlib import Path

from fognn.training.checkpoint import load_run, model_arguments

__all__ = ["export"]


def export(run: str | Path, folder: str | Path, checkpoint: str = "best") -> Path:
    r"""Writes the network of a run into a folder as the Hugging Face hub keeps it, offline:
    ``config.json``, the weights in float32, a model card. :class:`fognn.models.PretrainedNet`
    reads it.

    Args:
        run: A run folder, or a checkpoint in one.
        folder: Where.
        checkpoint: ``"best"`` or ``"last"``.
    """
    from fognn.models import PretrainedNet

    net, config, task = load_run(run, checkpoint)
    twin = PretrainedNet(config.model.name, task, **model_arguments(config, task))
    twin.module.load_state_dict(net.state_dict())
    twin.save_pretrained(folder)
    return Path(folder)

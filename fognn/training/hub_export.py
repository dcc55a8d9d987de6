r"""Export of a trained network as a Hugging Face folder."""

from pathlib import Path

from fognn.training.checkpoint import load_run, model_arguments

__all__ = ["export"]


def export(run: str | Path, folder: str | Path, checkpoint: str = "best") -> Path:
    r"""Writes the network of a run as a Hugging Face folder: ``config.json``,
    ``model.safetensors`` (float32) and a model card. Nothing is uploaded.
    :class:`fognn.models.PretrainedNet` reads it.

    Args:
        run (str): A run folder, or a checkpoint in one.
        folder (str): The folder to write.
        checkpoint (str, optional): ``"best"`` or ``"last"``. (default: :obj:`"best"`)

    Returns:
        The folder.
    """
    from fognn.models import PretrainedNet

    net, config, task = load_run(run, checkpoint)
    exported = PretrainedNet(config.model.name, task, **model_arguments(config, task))
    exported.module.load_state_dict(net.state_dict())
    exported.save_pretrained(folder)
    return Path(folder)

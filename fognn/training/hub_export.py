r"""Export of a trained network as a Hugging Face folder."""

from pathlib import Path

from fognn.training.checkpoint import load_run, model_arguments
from fognn.training.config import Config
from fognn.training.result import Result
from fognn.training.user_data import is_user_data, user_data_name
from fognn.utils.files import user_path

__all__ = ["export"]


def export(run: str | Path, folder: str | Path, checkpoint: str | None = None) -> Path:
    r"""Writes the network of a run as a Hugging Face folder: ``config.json``,
    ``model.safetensors`` (float32) and a model card, with the data, the targets and the test score
    of the run. Nothing is uploaded. :class:`fognn.models.PretrainedNet` reads it.

    Args:
        run (str): A run folder, a checkpoint in one, or the name of kept weights, such as
            ``"zinc/gcn+fog"``, see :func:`fognn.load`.
        folder (str): The folder to write.
        checkpoint (str, optional): ``"best"`` or ``"last"``. (default: :obj:`"best"`;
            for kept weights the one that is kept, see :func:`fognn.load`)

    Returns:
        The folder.
    """
    from fognn.models import PretrainedNet

    net, config, task = load_run(run, checkpoint)
    exported = PretrainedNet(config.model.name, task, **model_arguments(config, task))
    exported.module.load_state_dict(net.state_dict())
    path = user_path(run)
    trained, at = (path.parent, path.stem) if path.is_file() else (path, checkpoint or "best")
    # Without its folder, which is of no use to others.
    data = user_data_name(config.data) if is_user_data(config.data) else None
    card = {"data": data, "training": _training(config, data, trained, at)}
    exported.save_pretrained(folder, model_card_kwargs=card)
    return Path(folder)


def _training(config: Config, data: str | None, folder: Path, at: str) -> str:
    r"""Returns the sentences of the model card about the training."""
    text = f"Trained on {_code(data or config.data.name)}"
    if config.data.target is not None:
        names = [_code(name.strip()) for name in config.data.target.split(",")]
        text += f" to predict the column{'' if len(names) == 1 else 's'} {', '.join(names)}"
    text += f", with seed {config.seed}."
    if config.data.rwse:
        text += (
            f" Its argument `rwse` is PyG's AddRandomWalkPE of {config.data.rwse} steps of each "
            "node."
        )
    if not (folder / "result.json").exists() or at not in ("best", "last"):
        return text  # the run has not finished
    result = Result.read(folder)
    epoch = result.best_epoch if at == "best" else result.epochs
    split, scores = ("Test", result.test) if result.test else ("Validation", result.val)
    metric = result.metric.replace("_", " ")
    unit = " %" if "accuracy" in result.metric else ""
    return f"{text} {split} {metric} after epoch {epoch}: {scores[at]['items']:.4f}{unit}."


def _code(text: str) -> str:
    return f"`{text.replace('`', ' ')}`"

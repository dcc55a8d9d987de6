r"""A trained network from its run."""

from pathlib import Path

from torch.nn import Module

from fognn.models import Task
from fognn.training.checkpoint import read_checkpoint, rebuild
from fognn.training.config import Config
from fognn.utils import checks

__all__ = ["load", "load_run"]


def load(run: str | Path, checkpoint: str = "best") -> Module:
    r"""The trained network of a run, in evaluation mode, ready to predict.

    Args:
        run: A run folder, a checkpoint in one, or a folder of :func:`fognn.training.export`.
        checkpoint: ``"best"``, the best validation epoch, or ``"last"``.
    """
    if (Path(run).expanduser() / "config.json").is_file():
        from fognn.models import PretrainedNet

        return PretrainedNet.from_pretrained(run)
    return load_run(run, checkpoint)[0]


def load_run(run: str | Path, checkpoint: str = "best") -> tuple[Module, Config, Task | None]:
    r"""The network like :func:`load`, and how it was made."""
    path = Path(run).expanduser()
    if path.is_file():
        return rebuild(read_checkpoint(path))
    checks.one_of("load", "checkpoint", checkpoint, ("best", "last"))
    if not (path / "config.yaml").is_file():
        raise ValueError(f"run must be a run folder or a checkpoint, got {str(run)!r}")
    if (path / "fold-1").is_dir():
        raise ValueError(f"run {str(run)!r} has a network for each fold: name one, as {run}/fold-1")
    return rebuild(read_checkpoint(path / f"{checkpoint}.ckpt"))

r"""The folder of a saved network: what must be in it, and how it gets there."""

import json
import os
from pathlib import Path
from pickle import UnpicklingError

from torch import Tensor
from torch.nn import Module

from fognn.utils.torch_files import load_torch

__all__ = ["CARD", "CONFIG", "WEIGHTS", "check_folder", "load_weights", "move_into"]

# The names that the hub, PyG and their users know.
CONFIG, WEIGHTS, CARD = "config.json", "model.pth", "README.md"
_KEYS = {"library", "version", "name", "task", "settings", "parameters"}
_DAMAGE = (
    *(OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, RuntimeError),
    *(ArithmeticError, UnpicklingError),
)


def move_into(folder: Path, staging: Path) -> None:
    r"""Moves a network's files into :obj:`folder`; a model card that is there is kept.

    Args:
        folder: Where they go.
        staging: Where they are, complete, on the same disk.
    """
    for path in staging.iterdir():
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
    # Without its config a folder is refused: new weights never stand beside an old config.
    (folder / CONFIG).unlink(missing_ok=True)
    os.replace(staging / WEIGHTS, folder / WEIGHTS)
    if not (folder / CARD).exists():
        os.replace(staging / CARD, folder / CARD)
    os.replace(staging / CONFIG, folder / CONFIG)


def check_folder(folder: Path) -> None:
    r"""Raises a :class:`ValueError` unless the files are there and the config is one of ours."""
    path = folder / CONFIG
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise ValueError(
                f"PretrainedNet: {folder} must hold {name}, as save_pretrained writes it; for the "
                "folder of a run, take fognn.load"
            )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path} is no whole JSON file ({error}): save the network again"
        ) from error
    keys = set(config) if isinstance(config, dict) else set()
    if keys != _KEYS or config["library"] != "fognn":
        raise ValueError(
            f"{path} is not of fognn: it must have {sorted(_KEYS)}, got {sorted(keys)[:10]}"
        )
    if not isinstance(config["settings"], dict) or not isinstance(config["task"], dict | None):
        raise ValueError(f"{path}: settings and task must be JSON objects, or task null")


def load_weights(net: Module, path: Path) -> None:
    r"""Loads weights into a network, or raises a :class:`ValueError` if they are not just its own.

    Args:
        net: The network.
        path: A file with its state dict.
    """
    try:
        state = load_torch(path)
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} is no whole file of weights ({reason})") from error
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise ValueError(f"{path} must hold a dict of tensors, got {type(state).__name__}")
    expected = {key: list(value.shape) for key, value in net.state_dict().items()}
    found = {key: list(value.shape) for key, value in state.items()}
    if found == expected:
        net.load_state_dict(state)
        return
    missing = [key for key in expected if key not in found]
    extra = [key for key in found if key not in expected]
    other = [
        f"{key} {shape}, not {expected[key]}"
        for key, shape in found.items()
        if key in expected and shape != expected[key]
    ]
    raise ValueError(
        f"{path} holds the weights of another network: missing {_few(missing)}; extra "
        f"{_few(extra)}; of another shape {_few(other)}"
    )


def _few(names: list[str]) -> str:
    return (
        ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or "none"
    )

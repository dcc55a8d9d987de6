r"""Checks of networks in safetensors files, which may be damaged or hostile."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from fognn import __version__
from fognn.utils.errors import FileError

__all__ = ["check_sizes", "whole_network"]

_SMALL = 128  # a size that need not be one of a tensor
_VALUES = ("mean", "std", "degrees")  # numbers that are no sizes
# Exceptions that a damaged or foreign file causes in json, safetensors, torch and the networks.
_DAMAGE = (
    *(ValueError, TypeError, RuntimeError, LookupError, AttributeError, ArithmeticError),
    *(OSError, MemoryError, RecursionError, SafetensorError),
)


@contextmanager
def whole_network(path: Path) -> Iterator[None]:
    r"""Raises a :class:`FileError` of one line for any exception that a damaged, foreign or hostile
    file causes within the block.

    Args:
        path (Path): The file or folder of the network.
    """
    try:
        yield
    except FileError:
        raise
    except _DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = reason if len(reason) <= 300 else f"{reason[:300]} ..."
        raise FileError(
            f"{path} holds no whole network of fognn {__version__}: {reason}"
        ) from error


def check_sizes(weights: Path, config: Mapping[str, Any], where: str) -> None:
    r"""Raises for a network that would fill the memory before its weights are compared: each size
    must be one of a tensor of the file, or small.

    Args:
        weights (Path): The safetensors file.
        config (dict): The settings and the task of the network.
        where (str): The place of the settings, for the error.
    """
    with safe_open(weights, "pt") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    largest = max([_SMALL, *(size for shape in shapes for size in shape)])
    for key, value in _numbers(config):
        most = len(shapes) if key == "layers" else largest
        if not abs(value) <= most:
            raise ValueError(
                f"{where}: {key} must be at most {most}, as in {weights.name}, got "
                f"{str(value)[:20]}"
            )


def _numbers(config: Any, name: str = "") -> Iterator[tuple[str, float]]:
    r"""Yields the sizes in a config, with their names."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            if key not in _VALUES:
                yield from _numbers(value, key)
    elif isinstance(config, list):
        yield name, len(config)
        for value in config:
            yield from _numbers(value, name)
    elif isinstance(config, int | float) and not isinstance(config, bool):
        yield name, config

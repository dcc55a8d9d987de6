r"""Names of a package that are imported when they are first used.

Torch takes seconds to import, which ``fognn --help`` need not wait for.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    r"""Gives the ``__getattr__`` of a package.

    Args:
        package (str): The package, ``__name__``.
        modules (dict): The names of each module, by its name within the package.
    """
    places = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name in places:
            return getattr(import_module(f"{package}.{places[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get

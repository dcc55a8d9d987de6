r"""Lazy imports: torch takes seconds to import, and ``fognn --help`` does not need it."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    r"""Returns a ``__getattr__`` for a package that imports its names when they are first used;
    ``modules`` maps each of its modules to the names that it defines."""
    places = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name in places:
            return getattr(import_module(f"{package}.{places[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get

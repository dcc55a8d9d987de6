r"""Command line options made from the fields of the configuration."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, get_args, get_origin

import typer

from fognn.training.config import SECTIONS, Config

__all__ = ["setting_options"]

# Options that are not named like their field, to be clearer or because two sections have the name.
_OPTIONS = {
    "data.folder": "--data",
    "data.seed": "--data-seed",
    "data.smiles": "--smiles-column",
    "data.target": "--target-column",
}


def setting_options(command: Callable[..., None]) -> Callable[..., None]:
    r"""Decorator that adds an option for each setting, except those of the network, to a command.
    The command gets the given ones as a dict ``settings``, by their dotted names."""
    own = inspect.signature(command).parameters
    names = {name.replace(".", "_"): name for name in _settings()}
    options = [
        inspect.Parameter(
            key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(name)
        )
        for key, name in names.items()
    ]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        chosen = {names[key]: given.pop(key) for key in names}
        settings = {name: value for name, value in chosen.items() if value is not None}
        command(**given, settings=settings)

    kept = [parameter for parameter in own.values() if parameter.name != "settings"]
    with_options.__signature__ = inspect.Signature([*kept, *options])  # type: ignore[attr-defined]
    return with_options


def _settings() -> dict[str, tuple[Any, str]]:
    r"""Returns the section and the field of each setting, by its dotted name."""
    found: dict[str, tuple[Any, str]] = {"precision": (Config, "precision")}
    for section, kind in SECTIONS.items():
        if section != "model":
            found |= {f"{section}.{f.name}": (kind, f.name) for f in fields(kind)}
    del found["data.name"]  # an argument of the command, not an option
    return found


def _option(name: str) -> Any:
    section, field = _settings()[name]
    option = _OPTIONS.get(name, "--" + field.replace("_", "-"))
    annotation = section.__pydantic_fields__[field].annotation
    kind = next(
        (k for k in get_args(annotation) if k in (int, float, bool, str) or get_origin(k)),
        annotation,
    )
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if kind not in (int, float, bool):
        kind = str
    # An explicit name, so that typer adds no --no-... option: all flags are off by default.
    return Annotated[kind | None, typer.Option(option, help=section.__pydantic_fields__[field].description)]

r"""The settings of a run that have an option of their own; ``--set`` takes all of them."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["setting_options"]

_OPTIONS: dict[str, tuple[type, str, str]] = {
    "training.epochs": (int, "--epochs", "Maximum number of epochs."),
    "training.lr": (float, "--lr", "Initial learning rate."),
    "training.batch_size": (int, "--batch-size", "Number of graphs in a batch."),
    "data.target": (
        *(str, "--target-column"),
        "csv file: the column to learn, or several with commas between them.",
    ),
    "data.split": (
        *(str, "--split"),
        "Your own data: random, scaffold for molecules, or all splits of one graph. [the data's]",
    ),
    "data.skip_bad": (bool, "--skip-bad", "csv file: skip lines that cannot be read."),
    "data.folder": (
        *(Path, "--data"),
        "Folder with the files of the datasets. [$FOGNN_DATA]",
    ),
    "machine.device": (str, "--device", "cpu, cuda or mps. [the fastest]"),
}


def setting_options(command: Callable[..., None]) -> Callable[..., None]:
    r"""Decorator that adds these options to a command, which gets the given ones as a dict
    ``settings``, by their dotted names."""
    keys = {name.replace(".", "_"): name for name in _OPTIONS}
    options = [
        inspect.Parameter(
            key,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind | None, typer.Option(option, help=text)],
        )
        for key, (kind, option, text) in zip(keys, _OPTIONS.values(), strict=True)
    ]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        chosen = {keys[key]: given.pop(key) for key in keys}
        command(**given, settings={n: value for n, value in chosen.items() if value is not None})

    kept = [p for p in inspect.signature(command).parameters.values() if p.name != "settings"]
    with_options.__signature__ = inspect.Signature([*kept, *options])  # type: ignore[attr-defined]
    return with_options

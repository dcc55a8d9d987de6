r"""The application, its entry point, and options that several commands have."""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from typer import Exit, Option, Typer
from typer.core import TyperGroup

from fognn.utils.errors import FognnError, Stopped


class _Commands(TyperGroup):
    r"""Ends a command with exit code 130 and one line if a run was interrupted."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Stopped as stop:
            print("fognn:", stop, file=sys.stderr)
            raise Exit(130) from stop


app = Typer(
    cls=_Commands,
    help="Second-order message passing on graphs.\n\nExample: fognn data zinc",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    r"""Runs the command. Errors that a user can cause are printed on one line; exit code 1."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        # Python forgets what it has shown whenever any code changes its filters.
        if (text := _line(message)) not in shown:
            shown.add(text)
            print("fognn: warning:", text, file=sys.stderr)

    warnings.showwarning = show
    try:
        app(prog_name="fognn")
    # ImportError: an optional dependency is not installed.
    except (ValueError, ImportError, OSError, FognnError) as error:
        print("fognn:", _line(error), file=sys.stderr)
        sys.exit(1)


def _line(message: object) -> str:
    return " ".join(str(message).split())


def _version(asked: bool) -> None:
    if asked:
        from fognn import __version__

        print(f"fognn {__version__}")
        raise Exit


@app.callback()
def _common(
    version: bool = Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


_DATA = "Folder with the files of the datasets. [$FOGNN_DATA]"
DataFolder = Annotated[Path | None, Option("--data", help=_DATA)]
Device = Annotated[str, Option(help="auto, cpu, cuda or mps.")]
Import = Annotated[
    Path | None,
    Option("--import", help="A Python file to import first, which may register hosts."),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress.")]
Ray = Annotated[str | None, Option(help="Train on a Ray cluster: its address, or local.")]
Results = Annotated[Path, Option(help="The folder of the ledgers.")]
Runs = Annotated[Path, Option(help="The folder of the run folders.")]
Shared = Annotated[bool, Option("--shared", help="Ray: all machines share the run folders.")]
Workers = Annotated[str, Option(help="Runs at a time; auto: the number of cores.")]
Change = Annotated[
    list[str] | None,
    Option("--set", help="Any setting, such as model.layers=8; fognn train --settings lists them."),
]

# Settings of a run that have an option of their own.
_SETTINGS: dict[str, tuple[type, str, str]] = {
    "training.epochs": (int, "--epochs", "Maximum number of epochs. [as in the paper]"),
    "training.lr": (float, "--lr", "Initial learning rate. [as in the paper]"),
    "training.batch_size": (int, "--batch-size", "Graphs in a batch. [as in the paper]"),
    "data.target": (str, "--target-column", "csv file: the column to learn, or a,b,c for several."),
    "data.split": (
        *(str, "--split"),
        "Your data: random, scaffold, a file, or all splits of one graph. [the data's, or random]",
    ),
    "data.skip_bad": (bool, "--skip-bad", "csv file: skip lines that give no graph."),
    "data.folder": (Path, "--data", _DATA),
    "machine.device": (str, "--device", "cpu, cuda or mps. [the fastest]"),
}


def setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds these options and ``--set`` to a command, which gets the given settings as a dict."""
    keys = {name.replace(".", "_"): name for name in _SETTINGS}
    kinds = [Annotated[kind | None, Option(o, help=text)] for kind, o, text in _SETTINGS.values()]
    options = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for key, kind in zip([*keys, "change"], [*kinds, Change], strict=True)
    ]

    @functools.wraps(command)
    def with_options(change: list[str] | None = None, **given: Any) -> None:
        from fognn.training.config import assignments

        chosen = {name: given.pop(key) for key, name in keys.items()}
        settings = {name: value for name, value in chosen.items() if value is not None}
        command(**given, settings=settings | assignments(change or ()))

    own = [p for p in inspect.signature(command).parameters.values() if p.name != "settings"]
    with_options.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    return with_options


def machines(workers: str, ray: str | None, shared: bool) -> dict[str, Any]:
    r"""Returns the arguments that say where runs are trained."""
    count = int(workers) if workers.isdigit() else workers
    return {"workers": count, "ray": ray, "shared": shared}


def numbers(name: str, text: str | None) -> list[float] | None:
    """Returns the numbers of an option, such as ``0.003,0.001``."""
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(f"{name} must be numbers, such as 0.003,0.001, got {text!r}") from error

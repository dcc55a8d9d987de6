r"""The application, its entry point, and options that several commands have."""

import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from fognn.utils.errors import FognnError
from fognn.utils.files import user_path

__all__ = [
    "App",
    "Checkpoint",
    "DataFolder",
    "Device",
    "Import",
    "RunFolder",
    "Threads",
    "app",
    "import_own",
    "main",
    "numbers",
]

Command = TypeVar("Command", bound=Callable[..., Any])


class App(typer.Typer):
    r"""An application whose paths may begin with ``~`` or ``~user``, which a shell does not replace
    in ``--runs=~/runs``."""

    def command(self, *arguments: Any, **options: Any) -> Callable[[Command], Command]:
        register = super().command(*arguments, **options)

        def decorate(function: Command) -> Command:
            @functools.wraps(function)
            def expanded(**given: Any) -> Any:
                return function(**{name: _expanded(name, value) for name, value in given.items()})

            register(expanded)
            return function

        return decorate


def _expanded(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_expanded(name, one) for one in value]
    if name == "data_folder" and value is not None:  # a setting, which is a text
        return type(value)(user_path(value))
    return user_path(value) if isinstance(value, Path) else value


app = App(
    help="Second-order message passing on graphs.\n\nExample: fognn data zinc",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    r"""Runs the command. Errors that a user can cause are printed on one line; exit code 1."""
    warnings.showwarning = _each_once()
    try:
        app(prog_name="fognn")
    # ImportError: an optional dependency is not installed.
    except (ValueError, ImportError, OSError, FognnError) as error:
        _fail(error)


def _fail(error: object) -> NoReturn:
    print("fognn:", " ".join(str(error).split()), file=sys.stderr)
    sys.exit(1)


def _each_once() -> Callable[..., None]:
    r"""Returns a function that prints a warning on one line, and the same text only once. Python
    forgets what it has shown whenever any code changes its filters."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            print("fognn: warning:", text, file=sys.stderr)

    return show


def _version(asked: bool) -> None:
    if asked:
        from fognn import __version__

        print(f"fognn {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


DataFolder = Annotated[
    Path | None,
    typer.Option("--data", help="Folder with the files of the datasets, else $FOGNN_DATA."),
]


Workers = Annotated[str, typer.Option(help="Runs at a time; auto: the number of cores.")]
Ray = Annotated[str | None, typer.Option(help="Train on a Ray cluster: its address, or local.")]
Shared = Annotated[bool, typer.Option("--shared", help="Ray: all machines share the run folders.")]
Runs = Annotated[Path, typer.Option(help="The folder of the run folders.")]
Results = Annotated[Path, typer.Option(help="The folder of the ledgers.")]
WeightsFolder = Annotated[
    Path | None,
    typer.Option("--weights", help="The folder of the weights. [weights, beside the ledgers']"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Import = Annotated[
    Path | None,
    typer.Option("--import", help="A Python file to import first, which may register hosts."),
]


def import_own(path: Path | None) -> None:
    r"""Imports the file of the option ``--import``, if it is given."""
    if path is not None:
        from fognn.utils.own_code import import_file

        import_file(path)


Threads = Annotated[int | None, typer.Option(help="Number of threads.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Checkpoint = Annotated[
    str | None,
    typer.Option(help="best (validation metric) or last (epoch). [best; last for kept weights]"),
]
RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="A run folder, a checkpoint in one, or kept weights by name, such as zinc/gcn+fog.",
    ),
]


@contextmanager
def exit_if_stopped() -> Iterator[None]:
    r"""Ends the command with exit code 130 and a line if a run was interrupted."""
    from fognn.utils.errors import Stopped

    try:
        yield
    except Stopped as stop:
        print("fognn:", stop, file=sys.stderr)
        raise typer.Exit(130) from stop


def numbers(name: str, text: str) -> list[float]:
    r"""Returns the numbers of an option, such as ``0.003,0.001``.

    Args:
        name (str): The option, for the message of an error: ``"compare: rates"``.
        text (str): Its value.
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(f"{name} must be numbers, such as 0.003,0.001, got {text!r}") from error

r"""HTML pages from templates: they open from disk, without a server and without the internet."""

import shutil
import uuid
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from fognn import __version__
from fognn.utils.files import write_whole

__all__ = ["check_output", "render", "save_page", "write_pages"]

_MARK = "plotly.min.js"  # a folder with this file is an earlier report


@cache
def _templates() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError(
            'pages need jinja2, which is not installed: pip install "fognn[train]"'
        ) from error
    environment = Environment(
        loader=PackageLoader("fognn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["version"] = __version__
    return environment


def render(template: str, **context: Any) -> str:
    r"""The text of a page.

    Args:
        template (str): A file of ``fognn/report/templates``, without its suffix.
        **context: The values that it names.
    """
    text: str = _templates().get_template(f"{template}.html").render(context)
    return text


def save_page(path: Path, template: str, **context: Any) -> None:
    r"""Writes one page that needs no other file; whole or not at all."""
    text = render(template, **context)
    with write_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_output(output: str | Path) -> Path:
    r"""Returns the folder; raises unless it is new, empty or an earlier report."""
    output = Path(output)
    if output.exists() and not output.is_dir():
        raise ValueError(f"report: output must be a folder, got the file {output}")
    if output.is_dir() and any(output.iterdir()) and not (output / _MARK).is_file():
        raise ValueError(
            "report: output must be a new folder, an empty one or an earlier report, got "
            f"{output}, which contains other files"
        )
    return output


def write_pages(output: str | Path, pages: Iterable[tuple[str, str, dict[str, Any]]]) -> Path:
    r"""Writes a folder of pages with the script of their plots, whole or not at all.

    Args:
        output (str or Path): The folder; see :func:`check_output`.
        pages (iterable): The name of each page without its suffix, its template and its context.

    Returns:
        The page ``index.html``.
    """
    from plotly.offline import get_plotlyjs

    output = check_output(output).resolve()
    fresh, old = (output.with_name(f".tmp-{uuid.uuid4().hex}-{output.name}") for _ in range(2))
    try:
        fresh.mkdir(parents=True)
        (fresh / _MARK).write_text(get_plotlyjs(), encoding="utf-8")
        for name, template, context in pages:
            text = render(template, here=name, **context)
            (fresh / f"{name}.html").write_text(text, encoding="utf-8")
        if output.exists():
            output.rename(old)
        fresh.rename(output)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return output / "index.html"

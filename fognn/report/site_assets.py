r"""The scripts and styles of the site, copied into it: it needs no network."""

import json
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

from fognn.report.page import STYLE, colours

__all__ = ["write_assets"]

# What the site shows in the place of DESIGN's own two colours: a link that is text needs more
# contrast than a line.
_LINK = ("#005a9c", "#7cc4f0")  # light, dark


def write_assets(folder: Path) -> None:
    r"""Writes all scripts and styles.

    Args:
        folder (Path): The folder, which is made.
    """
    folder.mkdir(parents=True)
    (folder / "plotly.min.js").write_bytes(_file("plotly", "plotly/package_data/plotly.min.js"))
    (folder / "tables.css").write_bytes(_file("itables", "itables/html/dt_bundle.css"))
    script = _file("itables", "itables/html/dt_bundle.js").decode("utf-8")
    (folder / "tables.js").write_text(_module(script), encoding="utf-8")
    templates = files("fognn.report").joinpath("templates")
    for name in ("theme.js", "site.js"):
        (folder / name).write_bytes(templates.joinpath(name).read_bytes())
    own = templates.joinpath("site.css").read_text(encoding="utf-8")
    (folder / "site.css").write_text(_themes() + STYLE + own, encoding="utf-8")


def _file(package: str, path: str) -> bytes:
    # Not through importlib.resources, which would import the package: only its file is wanted.
    try:
        found = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError as error:
        raise ImportError(
            f'the report needs {package}, which is not installed: pip install "fognn[report]"'
        ) from error
    if not found.is_file():
        version = distribution(package).version
        raise ImportError(
            f"{package} {version} has no {path}: install the version of fognn[report]"
        )
    return found.read_bytes()


def _module(script: str) -> str:
    r"""A script that offers a module as ``window.fognnTables``, a promise.

    A browser does not load modules from disk, but it does from a page's own memory.
    """
    text = json.dumps(script).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return (
        f"window.fognnTables = import(URL.createObjectURL(new Blob([{text}], "
        '{ type: "text/javascript" })));\n'
    )


def _themes() -> str:
    r"""Light and dark: as the screen is, unless the reader chose."""
    light, dark = (f"{colours(which)} --link: {_LINK[which]};" for which in (False, True))
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        "@media (prefers-color-scheme: dark) "
        f'{{ :root:not([data-theme="light"]) {{ color-scheme: dark; {dark} }} }}\n'
        f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}\n'
    )

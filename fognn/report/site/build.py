r"""Writes the pages: a folder that opens from disk, without a network connection."""

import json
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

from fognn import __version__
from fognn.experiments.ledger import LedgerEntry, run_entry
from fognn.experiments.search import Choice
from fognn.experiments.tables import TABLES
from fognn.report.measurements import RUNS, Measurements, read_measurements, run_page
from fognn.report.site.compare_page import COMPARED, comparison_context, comparison_link
from fognn.report.site.pages import overview_context, table_context
from fognn.report.site.run_comparison import runs_context
from fognn.report.site.run_page import run_context
from fognn.report.style import STYLE, colours
from fognn.utils.files import disk_error

__all__ = [
    "build_comparison_report",
    "build_run_report",
    "build_site",
    "check_output",
    "write_assets",
]

Page = tuple[str, str, dict[str, Any]]  # path, template, context
_MENU = {
    **{"index": "Overview", "pattern": "PATTERN", "cluster": "CLUSTER", "zinc": "ZINC"},
    **{"tsp": "TSP", "few-shot": "Few-shot", "widths": "Widths", "limits": "Limits"},
    **{"omniglot": "Omniglot", "cifar-fs": "CIFAR-FS", "controls": "Controls", "modern": "Modern"},
}
_MARK = "assets/site.js"  # a folder with this file is an earlier report
_LINK = ("#005a9c", "#7cc4f0")  # light, dark: text needs more contrast than a line


def build_site(results: str | Path, output: str | Path) -> Path:
    r"""Writes the site, whole or not at all: a front page with the paper's claims, a page for each
    table, one for each comparison on other data, one for the runs that are in no table, and one
    for each run.

    Args:
        results (str or Path): The folder with the ledgers, ``zinc.jsonl`` and the others. Nothing
            else is read.
        output (str or Path): The folder to write. It replaces an earlier report; a folder with
            other files raises a :class:`ValueError`.

    Returns:
        The front page.
    """
    check_output("build_site", Path(output))
    measurements = read_measurements(Path(results))
    return _write(
        Path(output),
        _site_pages(measurements),
        name="FOG, measured again",
        menu=_MENU | ({RUNS: "Other runs"} if measurements.runs else {}),
        source="the ledgers of the measured runs and the paper's printed figures",
    )


def build_run_report(runs: Sequence[str | Path], output: str | Path) -> Path:
    r"""Writes a report that compares finished runs, whole or not at all: a page with their table,
    curves and settings, and a page for each run.

    Args:
        runs (sequence of str or Path): The run folders.
        output (str or Path): The folder to write, as in :func:`build_site`.

    Returns:
        The page that compares the runs.
    """
    check_output("build_run_report", Path(output))
    if not runs:
        raise ValueError("build_run_report: runs must name at least one run folder, got none")
    entries = [run_entry(Path(folder)) for folder in runs]
    return _write(
        Path(output),
        _runs_pages(entries, "index"),
        name="fognn",
        menu={"index": "Comparison"},
        source="run folders",
    )


def build_comparison_report(
    entries: Sequence[LedgerEntry], choices: Sequence[Choice], output: str | Path
) -> Path:
    r"""Writes the report of a comparison, whole or not at all: a page with its table, curves,
    learning rates and settings, and a page for each run.

    Args:
        entries (sequence of LedgerEntry): The runs with the chosen learning rates.
        choices (sequence of Choice): The search of each network.
        output (str or Path): The folder to write, as in :func:`build_site`.

    Returns:
        The page of the comparison.
    """
    check_output("build_comparison_report", Path(output))
    return _write(
        Path(output),
        _comparison_pages("index", entries, choices),
        name="fognn compare",
        menu={"index": "Comparison"},
        source="the ledger of the comparison",
    )


def _site_pages(measurements: Measurements) -> Iterator[Page]:
    linked = [
        {"page": f"{_page(name)}.html"} | comparison_link(*own)
        for name, own in measurements.comparisons.items()
    ]
    overview = overview_context(measurements) | {"comparisons": linked}
    yield "index.html", "index", {"here": "index", **overview}
    for name, own in measurements.comparisons.items():
        yield from _comparison_pages(_page(name), *own)
    for table in TABLES:
        yield f"{table}.html", "table", {"here": table, **table_context(table, measurements)}
        for line in measurements.tables[table]:
            for entry in line.entries:
                title = f"{line.label} on {line.paper.dataset}"
                context = run_context(title, entry, TABLES[table].at, TABLES[table].over)
                yield run_page(entry), "run", {"here": table, **context}
    if measurements.runs:
        title = "Runs that are in no table"
        yield from _runs_pages(measurements.runs, RUNS, title=title)


def _runs_pages(entries: Sequence[LedgerEntry], here: str, **changed: str) -> Iterator[Page]:
    yield f"{here}.html", "table", {"here": here, **runs_context(entries), **changed}
    for entry in entries:
        title = f"{entry.model} on {entry.data}"
        yield run_page(entry), "run", {"here": here, **run_context(title, entry)}


def _page(name: str) -> str:
    return f"compare-{name}"


def _comparison_pages(
    here: str, entries: Sequence[LedgerEntry], choices: Sequence[Choice]
) -> Iterator[Page]:
    yield f"{here}.html", "table", {"here": here, **comparison_context(entries, choices)}
    for entry in entries:
        title = f"{entry.label} on {entry.data}"
        context = run_context(title, entry, COMPARED.at, COMPARED.over)
        yield run_page(entry), "run", {"here": here, **context}


def _write(output: Path, pages: Iterable[Page], **site: Any) -> Path:
    with _whole_folder(output) as folder:
        write_assets(folder / "assets")
        for path, template, context in pages:
            page = _templates().get_template(f"{template}.html")
            text = page.render(
                root="../" * path.count("/"), version=__version__, site=site, **context
            )
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    return output / "index.html"


@cache
def _templates() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError(
            'the report needs jinja2, which is not installed: pip install "fognn[report]"'
        ) from error
    return Environment(
        loader=PackageLoader("fognn.report.site"), autoescape=True, undefined=StrictUndefined
    )


def check_output(function: str, output: Path) -> None:
    r"""Raises unless a report can be written: a new folder, an empty one or an earlier report."""
    if output.exists() and not output.is_dir():
        raise ValueError(f"{function}: output must be a folder, got the file {output}")
    if output.is_dir() and any(output.iterdir()) and not (output / _MARK).is_file():
        raise ValueError(
            f"{function}: output must be a new folder, an empty one or an earlier report, got "
            f"{output}, which contains other files"
        )


@contextmanager
def _whole_folder(output: Path) -> Iterator[Path]:
    r"""A folder beside :obj:`output` that replaces it when the block ends without an error."""
    output = output.resolve()
    fresh, old = (output.with_name(f".tmp-{uuid.uuid4().hex}-{output.name}") for _ in range(2))
    try:
        fresh.mkdir(parents=True)
        yield fresh
        if output.exists():
            output.rename(old)
        fresh.rename(output)
    except OSError as error:
        if old.exists() and not output.exists():
            old.rename(output)
        raise disk_error(output, error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def write_assets(folder: Path) -> None:
    r"""Writes the scripts and style sheets into a new folder."""
    folder.mkdir(parents=True)
    (folder / "plotly.min.js").write_bytes(_file("plotly", "plotly/package_data/plotly.min.js"))
    (folder / "tables.css").write_bytes(_file("itables", "itables/html/dt_bundle.css"))
    script = _file("itables", "itables/html/dt_bundle.js").decode("utf-8")
    (folder / "tables.js").write_text(_module(script), encoding="utf-8")
    templates = files("fognn.report.site").joinpath("templates")
    for name in ("theme.js", "site.js"):
        (folder / name).write_bytes(templates.joinpath(name).read_bytes())
    own = templates.joinpath("site.css").read_text(encoding="utf-8")
    (folder / "site.css").write_text(_themes() + STYLE + own, encoding="utf-8")


def _file(package: str, path: str) -> bytes:
    # Not through importlib.resources, which would import the package for one of its files.
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

    A browser does not load modules from disk, but it does from a blob.
    """
    text = json.dumps(script).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return (
        f"window.fognnTables = import(URL.createObjectURL(new Blob([{text}], "
        '{ type: "text/javascript" })));\n'
    )


def _themes() -> str:
    r"""Light and dark: as the screen's setting, unless the reader chose one."""
    light, dark = (f"{colours(which)} --link: {_LINK[which]};" for which in (False, True))
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        "@media (prefers-color-scheme: dark) "
        f'{{ :root:not([data-theme="light"]) {{ color-scheme: dark; {dark} }} }}\n'
        f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}\n'
    )

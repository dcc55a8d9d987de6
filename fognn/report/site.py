r"""The report: a static site that opens from disk, with no network."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fognn import __version__
from fognn.paper.tables import TABLES
from fognn.report.site_assets import write_assets
from fognn.report.site_measurements import Measurements, read_measurements, run_page
from fognn.report.site_overview import overview_context
from fognn.report.site_runs import run_context
from fognn.report.site_tables import table_context
from fognn.utils.files import disk_error

__all__ = ["build_site"]

_MENU = [
    ("pattern", "PATTERN"), ("cluster", "CLUSTER"), ("zinc", "ZINC"), ("tsp", "TSP"),
    ("few-shot", "Few-shot"), ("widths", "Widths"), ("limits", "Limits"),
]  # fmt: skip
_MARK = "assets/site.js"  # what tells a site of ours from a folder of somebody's


def build_site(results: str | Path, output: str | Path) -> Path:
    r"""Writes the report, whole or not at all: a front page with the paper's claims, a page a
    table, a page a run.

    Args:
        results (str or Path): The folder with the ledgers, ``zinc.jsonl`` and the others. Nothing
            else is read.
        output (str or Path): The folder of the site, which takes the place of an earlier one.
            A folder that holds something else is refused.
    """
    results, output = Path(results), Path(output)
    _check_output(output)
    measurements = read_measurements(results)
    with _whole_folder(output) as folder:
        write_assets(folder / "assets")
        for path, context in _pages(measurements):
            _write(folder, path, context)
    return output / "index.html"


def _pages(measurements: Measurements) -> Iterator[tuple[str, dict[str, Any]]]:
    r"""The path of each page and what it shows."""
    yield "index.html", {"here": "index", **overview_context(measurements)}
    for table in TABLES:
        yield f"{table}.html", {"here": table, **table_context(table, measurements)}
        for line in measurements.tables[table]:
            for entry in line.entries:
                yield run_page(entry), {"here": table, **run_context(line, entry)}


def _write(folder: Path, path: str, context: dict[str, Any]) -> None:
    depth = path.count("/")
    kind = "run" if depth else "index" if context["here"] == "index" else "table"
    text = (
        _templates()
        .get_template(f"{kind}.html")
        .render(root="../" * depth, menu=_MENU, version=__version__, **context)
    )
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")


@cache
def _templates() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError(
            'the report needs jinja2, which is not installed: pip install "fognn[report]"'
        ) from error
    return Environment(
        loader=PackageLoader("fognn.report"), autoescape=True, undefined=StrictUndefined
    )


def _check_output(output: Path) -> None:
    if output.exists() and not output.is_dir():
        raise ValueError(f"build_site: output must be a folder, got the file {output}")
    if output.is_dir() and any(output.iterdir()) and not (output / _MARK).is_file():
        raise ValueError(
            f"build_site: output must be a new folder, an empty one or an earlier report, got "
            f"{output}, which holds something else"
        )


@contextmanager
def _whole_folder(output: Path) -> Iterator[Path]:
    r"""A folder beside :obj:`output` that takes its place when the block ends well."""
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

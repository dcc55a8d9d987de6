"""The site as files, and as a reader sees it in a real browser."""

import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from run_folders import write_run
from site_example import write_ledger
from wcag import contrast

import fognn.report.site.build as build_module
from fognn.experiments import protocol
from fognn.experiments.tables import TABLES
from fognn.report.site import build_run_report, build_site
from fognn.report.site.build import write_assets

# Nothing may leave the machine, and no first-run page may come up.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several seeds, one seed, missing rows, rows of ours, folds, widths."""
    results = tmp_path_factory.mktemp("results")
    write_ledger(results, "zinc", ["gcn*", "gatedgcn-e", "gatedgcn-e+fog"], 2)
    write_ledger(results, "zinc", ["gat"], 1)
    write_ledger(results, "zinc", ["gcn"], 1, ours=False, fraction=0.1)
    write_ledger(results, "widths", ["gcn+fog-c76", "gcn+fog-c158"], 1)
    write_ledger(results, "limits", ["gin*-imdb-multi"], 1)
    front = build_site(results, tmp_path_factory.mktemp("out") / "site")
    assert front.name == "index.html"
    return front.parent


class Links(HTMLParser):
    """All addresses and identifiers of a page, and whether its elements are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.links += [value for key in ("href", "src") if (value := found.get(key))]
        self.ids += [value for key in ("id",) if (value := found.get(key))]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_page_is_whole_and_every_link_leads_somewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert {page.stem for page in site.glob("*.html")} == {"index", *TABLES}
    assert len(list(site.glob("runs/*/*.html"))) == 18
    for page in pages:
        text = page.read_text(encoding="utf-8")
        found = Links(text)
        assert found.open == [], page
        assert len(set(found.ids)) == len(found.ids), page
        assert not re.search(r"https?://", text), page
        for link in found.links:
            if link.startswith("data:"):
                continue
            path, _, anchor = link.partition("#")
            assert not path or (page.parent / unquote(path)).is_file(), (page, link)
            assert not anchor or anchor in found.ids, (page, link)


def test_figures_open_pages_that_are_there(site: Path) -> None:
    text = (site / "zinc.html").read_text(encoding="utf-8")
    figures = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text)
    targets = {
        target
        for figure in figures
        for trace in json.loads(figure)["data"]
        for target in trace.get("customdata", [])
    }
    assert len(targets) == 14
    for target in targets:
        assert (site / unquote(target)).is_file(), target


def test_it_is_small(site: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 10e6


def test_an_earlier_report_is_replaced_whole(tmp_path: Path) -> None:
    results, output = tmp_path / "results", tmp_path / "deep" / "site"
    results.mkdir()
    build_site(results, output)
    assert not (output / "runs").exists()
    write_ledger(results, "zinc", ["gcn"], ours=False)
    (output / "stale.html").write_text("of an earlier version")
    build_site(results, output)
    assert (output / "runs/zinc/gcn-seed0.html").is_file()
    assert not (output / "stale.html").exists()
    assert [path.name for path in output.parent.iterdir()] == ["site"]


def test_a_failure_leaves_the_earlier_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "site"
    (tmp_path / "results").mkdir()
    build_site(tmp_path / "results", output)
    before = (output / "index.html").read_text(encoding="utf-8")

    def fail(*_: Any) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(build_module, "table_context", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        build_site(tmp_path / "results", output)
    assert (output / "index.html").read_text(encoding="utf-8") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "site"]


def test_what_is_somebody_elses_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="output must be a new folder, an empty one or an earlier"):
        build_site(tmp_path, tmp_path / "thesis")
    with pytest.raises(ValueError, match="output must be a folder, got the file"):
        build_site(tmp_path, tmp_path / "file")
    with pytest.raises(ValueError, match="results must be a folder"):
        build_site(tmp_path / "nowhere", tmp_path / "site")
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"
    assert not (tmp_path / "site").exists()


def test_a_damaged_line_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "zinc.jsonl").write_text('{"key": "zinc/x"\n')
    write_ledger(tmp_path, "zinc", ["gcn"])
    with pytest.warns(UserWarning, match=r"zinc\.jsonl, line 1: must be"):
        build_site(tmp_path, tmp_path / "site")
    assert (tmp_path / "site/runs/zinc/gcn-seed0.html").is_file()


# --- scripts and styles ---


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "assets"
    write_assets(folder)
    return folder


def test_all_is_there_and_small_enough(assets: Path) -> None:
    names = {path.name for path in assets.iterdir()}
    assert names == {"plotly.min.js", "tables.js", "tables.css", "site.css", "site.js", "theme.js"}
    assert sum(path.stat().st_size for path in assets.iterdir()) < 8e6
    assert "plotly.js v" in (assets / "plotly.min.js").read_text(encoding="utf-8")[:200]


def test_nothing_is_loaded_from_elsewhere(assets: Path) -> None:
    for name in ("site.css", "tables.css"):
        text = (assets / name).read_text(encoding="utf-8")
        assert not re.findall(r"@import|url\(\s*['\"]?(?:https?:)?//", text), name


def test_the_module_of_tables_is_whole(assets: Path) -> None:
    text = (assets / "tables.js").read_text(encoding="utf-8")
    start, end = text.index("[") + 1, text.rindex("]")
    module = json.loads(text[start:end])
    assert module.encode() == build_module._file("itables", "itables/html/dt_bundle.js")
    assert re.search(r"export\s*\{[^}]*as default", module)


@pytest.mark.parametrize("dark", [False, True])
def test_links_can_be_read(assets: Path, dark: bool) -> None:
    light_part, dark_part = (assets / "site.css").read_text(encoding="utf-8").split("@media", 1)
    part = dark_part.split("}")[0] if dark else light_part
    found = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-fA-F]{6});", part))
    assert contrast(found["link"], found["paper"]) > 4.5


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ImportError, match=r"itables .* has no itables/html/nothing\.js"):
        build_module._file("itables", "itables/html/nothing.js")

    def none(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(build_module, "distribution", none)
    with pytest.raises(ImportError, match=r"report needs plotly.*fognn\[report\]"):
        write_assets(tmp_path / "assets")


# --- in a browser ---


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium here")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


class Reader:
    """A reader's window: it remembers what the console said, and who was asked for what."""

    def __init__(self, browser: Any, site: Path, dark: bool = False, width: int = 1280) -> None:
        self.site = site
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("requestfailed", lambda request: self.said.append(request.url[:200]))
        self.asked: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url.partition(":")[0]))

    def open(self, path: str) -> Any:
        self.page.goto((self.site / path).as_uri())
        self.page.wait_for_function(
            "[...document.querySelectorAll('.plot')].every(p => p.closest('[hidden]') ||"
            " p.dataset.drawn) && (!document.querySelector('table.sortable') ||"
            " document.documentElement.dataset.sortable)"
        )
        return self.page


@pytest.fixture
def reader(browser: Any, site: Path) -> Iterator[Reader]:
    reader = Reader(browser, site)
    yield reader
    reader.context.close()


@pytest.mark.slow
def test_every_kind_of_page_loads_without_a_word(reader: Reader) -> None:
    for path in (
        "index.html",
        *(f"{table}.html" for table in TABLES),
        "runs/zinc/gcn+fog-seed0.html",
    ):
        reader.open(path)
    assert reader.said == []
    assert set(reader.asked) <= {"file", "data", "blob"}


def test_a_click_on_a_heading_sorts_by_number(reader: Reader) -> None:
    page = reader.open("zinc.html")

    def column(number: int) -> list[float]:
        texts = page.eval_on_selector_all(
            "table.comparison tbody tr", f"rows => rows.map(r => r.cells[{number}].innerText)"
        )
        return [float(text.split()[0].replace(",", "")) for text in texts if text != "–"]

    def sort(name: str, direction: str) -> None:
        page.locator("table.comparison thead th", has_text=name).click()
        page.wait_for_selector(f"th[aria-sort={direction}]:has-text('{name}')")

    before = column(2)
    assert before not in (sorted(before), sorted(before, reverse=True))
    sort("measured", "ascending")
    assert column(2) == sorted(before)
    sort("measured", "descending")
    assert column(2) == sorted(before, reverse=True)
    # By the number and not as text: 94,477 is less than 101,668.
    sort("parameters", "ascending")
    assert column(1) == sorted(column(1))
    assert column(1)[0] == 94477


def test_a_run_opens_from_the_table_and_from_a_plot(reader: Reader) -> None:
    page = reader.open("zinc.html")
    page.get_by_role("link", name="GCN+FOG, seed 1", exact=True).click()
    page.wait_for_selector("h1:text('GCN+FOG on ZINC, seed 1')")
    assert "training.lr" in page.inner_text("main")
    page.wait_for_selector("#run-loss .scatterlayer .js-line")
    page = reader.open("zinc.html")
    target = page.evaluate("document.getElementById('results-0').data[1].customdata[0]")
    page.evaluate(
        "document.getElementById('results-0').emit('plotly_click',"
        f" {{points: [{{customdata: '{target}'}}]}})"
    )
    page.wait_for_url(f"**/{target}")
    assert reader.said == []


def test_the_theme_follows_the_screen_and_the_button(browser: Any, site: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    axis = "getComputedStyle(document.querySelector('#results-0 .xtick text')).fill"
    light, dark = "rgb(255, 255, 255)", "rgb(22, 24, 27)"
    reader = Reader(browser, site, dark=True)
    page = reader.open("zinc.html")
    assert page.evaluate(paper) == dark
    assert page.evaluate(axis) == "rgb(232, 232, 230)"
    page.get_by_role("button", name="Show the page in light colours").click()
    assert page.evaluate(paper) == light
    page.wait_for_function(f"{axis} === 'rgb(26, 26, 26)'")
    reader.open("index.html")  # it stays as it was chosen
    assert page.evaluate(paper) == light
    page.get_by_role("button", name="Show the page in dark colours").click()
    assert page.evaluate(paper) == dark
    assert reader.said == []
    reader.context.close()


@pytest.mark.slow
def test_curves_can_be_chosen(reader: Reader) -> None:
    page = reader.open("zinc.html")
    shown = page.locator(".choice:not([hidden])")
    assert "GatedGCN-E and GatedGCN-E+FOG" in shown.inner_text()
    page.get_by_label("Networks").select_option(label="GCN (norm=sym) and GCN+FOG")
    assert "Training loss of GCN (norm=sym) and GCN+FOG" in shown.inner_text()
    page.wait_for_selector(".choice:not([hidden]) .scatterlayer .js-line")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["index.html", "zinc.html", "runs/zinc/gcn+fog-seed0.html"])
def test_a_phone_does_not_scroll_sideways(browser: Any, site: Path, path: str) -> None:
    reader = Reader(browser, site, width=390)
    page = reader.open(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert reader.said == []
    reader.context.close()


@pytest.mark.slow
def test_claims_unfold(reader: Reader) -> None:
    page = reader.open("index.html")
    claim = page.locator("article", has_text="On ZINC, FOG helps GCN")
    assert not claim.locator("table").is_visible()
    claim.locator("summary").click()
    assert "GCN+FOG" in claim.locator("table").inner_text()
    claim.get_by_role("link", name="All of the table").click()
    page.wait_for_url("**/zinc.html")


@pytest.mark.slow
def test_all_controls_have_names_and_plots_have_words(reader: Reader) -> None:
    for path in ("index.html", "zinc.html", "runs/zinc/gcn+fog-seed0.html"):
        page = reader.open(path)
        nameless = page.evaluate(
            "[...document.querySelectorAll('main a, button, select, .plot')].filter(e =>"
            " !(e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.innerText.trim())).length"
        )
        assert nameless == 0
        assert page.locator("h1").count() == 1
        assert page.locator("table:not(:has(caption))").count() == 0


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of four run folders."""
    folder = tmp_path_factory.mktemp("runs")
    runs = []
    for model, tests in {"gcn": (50.0, 51.0), "gcn+fog": (55.0, 56.5)}.items():
        for seed, test in enumerate(tests):
            config = protocol("cluster", model, seed, {"data.fraction": 0.1})
            runs.append(write_run(folder / f"{model}-{seed}", config, test))
    return build_run_report(runs, folder / "report").parent


@pytest.mark.parametrize("dark", [False, True])
def test_runs_compared_on_a_phone(browser: Any, comparison: Path, dark: bool) -> None:
    reader = Reader(browser, comparison, dark=dark, width=360)
    page = reader.open("index.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(22, 24, 27)" if dark else "rgb(255, 255, 255)"
    )
    assert page.locator(".plot .scatterlayer .js-line").count() == 3 * 6  # 4 seeds and 2 means
    assert page.locator("table:not(:has(caption))").count() == 0
    page.get_by_role("link", name="gcn+fog, seed 1").click()
    page.wait_for_selector("h1:text('gcn+fog on CLUSTER, seed 1')")
    page.wait_for_selector("#run-loss .scatterlayer .js-line")
    page.get_by_role("link", name="Back to the comparison").click()
    page.wait_for_url("**/index.html")
    page.wait_for_selector(".plot .scatterlayer .js-line")
    assert reader.said == []
    assert set(reader.asked) <= {"file", "data", "blob"}
    reader.context.close()

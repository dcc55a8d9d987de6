import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fognn.report.page import PAPER
from fognn.report.plots import LINES
from fognn.report.run_folder import read_run
from fognn.report.run_report import compare_runs, runs_table

MakeRun = Callable[..., Path]
CURVE = [20.0, 35.0, 41.0, 40.5, 41.5, 41.0]


@pytest.fixture
def two(make_run: MakeRun) -> list[Path]:
    return [
        make_run("a", "gcn", CURVE, (53.89, 53.8, 53.5, 53.4), parameters=101_655, seconds=1.71),
        make_run(
            "b", "gcn+fog", CURVE, (57.1, 57.0, 56.5, 56.4), parameters=101_830, seconds=2.09,
            config={"training.lr": 0.005, "model.h1": 12},
        ),
    ]  # fmt: skip


class Cells(HTMLParser):
    """All tables of a page, as lists of rows of text; and all that it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.loads: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        self.inside = tag in ("td", "th")
        here = [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        self.loads += [value for value in here if not value.startswith("#")]
        self.loads += [tag] if tag in ("script", "link", "iframe", "object", "embed") else []

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.tables[-1][-1][-1] += data


def test_page(two: list[Path], tmp_path: Path) -> None:
    path = compare_runs(two, tmp_path / "new" / "report.html", "GCN & FOG")
    assert path == tmp_path / "new" / "report.html"
    text = path.read_text(encoding="utf-8")
    cells = Cells(text)
    assert cells.loads == []
    assert "http" not in text
    assert "url(" not in re.sub(r"url\(#", "", text)
    assert "<h1>GCN &amp; FOG</h1>" in text
    first = re.search(r'<p class="first">(.*?)</p>', text)
    assert first
    assert "gcn+fog ended 3.21 percentage points better than gcn" in first[1]
    assert "One seed and 10 % of the graphs are no proof" in text

    results, differences, same_settings, facts, same_facts = cells.tables
    assert results[0] == ["", "test balanced accuracy (%)", ""]
    assert results[2:] == [
        ["gcn", "0", "101,655", "53.89", "53.80", "53.50", "53.40", "6", "5", "1.71"],
        ["gcn+fog", "0", "101,830", "57.10", "57.00", "56.50", "56.40", "6", "5", "2.09"],
    ]
    assert differences == [
        ["setting", "gcn, seed 0", "gcn+fog, seed 0"],
        ["model.name", "gcn", "gcn+fog"],
        ["training.lr", "0.01", "0.005"],
        ["model.h1", "–", "12"],
    ]
    assert ["training.batch_size", "128"] in same_settings
    assert facts[1:] == [["folder", *map(str, two)]]
    for fact in (["commit", "b6506b8" * 5], ["torch", "2.13.0"], ["threads", "2"]):
        assert fact in same_facts
    commands = re.search(r"<pre>(.*?)</pre>", text, re.DOTALL)
    assert commands
    assert unescape(commands[1]).split("\n") == [
        "fognn train cluster gcn --seed 0 --folder a",
        "fognn train cluster gcn+fog --seed 0 --folder b",
    ]


def test_plots(two: list[Path], tmp_path: Path) -> None:
    text = compare_runs(two, tmp_path / "x.html", "t").read_text()
    metric, loss = re.findall(r"<figure>(.*?)</figure>", text, re.DOTALL)
    for plot, label in ((metric, "balanced accuracy (%)"), (loss, "cross-entropy loss (nats)")):
        assert f">{label}</text>" in plot
        assert ">epoch</text>" in plot
        lines = re.findall(r'<path d="[^"]*" clip-path="[^"]*" style="([^"]*line-[^"]*)"', plot)
        # Of both runs: training, dashed, and validation.
        assert sorted((re.findall(r"--line-\d", s)[0], "dasharray" in s) for s in lines) == [
            (f"--line-{series}", dashed) for series in (0, 1) for dashed in (False, True)
        ]
    legend = re.search(r'<ul class="legend">(.*?)</ul>', text, re.DOTALL)
    assert legend
    assert re.findall(r"</svg>\s*([^<]+)</li>", legend[1]) == [
        "gcn", "gcn+fog", "validation", "training",
    ]  # fmt: skip
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(set(ids)) == len(ids)


def test_running_and_hostile(make_run: MakeRun, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    a = make_run("a", evil, CURVE, finished=False, config={"model.x": evil})
    b = make_run("b", "gcn", CURVE, 50.0, result={"commit": None, "command": f"run {evil}"})
    text = compare_runs([a, b], tmp_path / "x.html", evil).read_text()
    assert "<script" not in text
    cells = Cells(text)
    row = cells.tables[0][2]
    assert row[0] == evil
    assert row[2:] == ["–", "–", "–", "–", "–", "6, not finished", "5", "2.00"]
    assert "There is no test result of" in text


def test_seeds_and_copies_can_be_told_apart(make_run: MakeRun, tmp_path: Path) -> None:
    folders = [make_run(name, "gcn", CURVE, 50.0) for name in ("a", "b")]
    folders.append(make_run("c", "gcn", CURVE, 51.0, seed=1))
    text = compare_runs(folders, tmp_path / "x.html", "t").read_text()
    header = Cells(text).tables[1][0][1:]
    assert len(set(header)) == 3
    legend = re.search(r'<ul class="legend">(.*?)</ul>', text, re.DOTALL)
    assert legend
    assert legend[1].count("<li>") == 3  # one network, validation, training


def test_runs_table_of_an_error(make_run: MakeRun) -> None:
    header, rows = runs_table([read_run(make_run("a", "gcn", [0.5], 0.41234, metric="mae"))])
    assert len(header) == len(rows[0])
    assert dict(zip(header, rows[0], strict=True))["best, items"] == "0.4123"


@pytest.mark.parametrize("name", ["x", "x.png", "x.htm", ".html"])
def test_bad_output(two: list[Path], tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"output must end in \.html, got"):
        compare_runs(two, tmp_path / name, "t")


def test_bad_folders(make_run: MakeRun, two: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "x.html"
    output.write_text("old")
    with pytest.raises(ValueError, match="folders must be two or more, got 1"):
        compare_runs(two[:1], output, "t")
    with pytest.raises(ValueError, match="folders must differ, got"):
        compare_runs([two[0], two[0].parent / "." / "a"], output, "t")
    other = make_run("zinc", "gcn", [1.0], 1.0, config={"data.name": "ZINC"})
    with pytest.raises(ValueError, match=r"the same data, got CLUSTER in .*a and ZINC in .*zinc"):
        compare_runs([two[0], other], output, "t")
    other = make_run("f1", "gcn", [1.0], 1.0, metric="f1")
    with pytest.raises(ValueError, match=r"same metric, got balanced_accuracy in .* and f1 in"):
        compare_runs([two[0], other], output, "t")
    with pytest.raises(ValueError, match="must be the folder of a run"):
        compare_runs([two[0], tmp_path / "nothing"], output, "t")
    assert output.read_text() == "old"


def test_without_matplotlib(
    two: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "fognn\[report\]"'):
        compare_runs(two, tmp_path / "x.html", "t")
    assert not (tmp_path / "x.html").exists()


# Looks at the page in a frame as wide as a phone, and says what it sees.
LOOK = """<!DOCTYPE html><body><iframe src="report.html" width="360" height="800"></iframe>
<pre id="seen"></pre><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const style = selector => view.getComputedStyle(page.querySelector(selector));
  const box = element => element.getBoundingClientRect();
  const plot = page.querySelector(".plots svg");
  const labels = [...page.querySelectorAll(".plots text")];
  const line = [...plot.querySelectorAll("path")].find(
    path => (path.getAttribute("style") || "").includes("--line-1"));
  document.getElementById("seen").textContent = JSON.stringify({
    loaded: view.performance.getEntriesByType("resource").map(entry => entry.name),
    width: page.documentElement.clientWidth,
    needed: page.documentElement.scrollWidth,
    background: style("body").backgroundColor,
    stroke: view.getComputedStyle(line).stroke,
    plot: [box(plot).width, box(plot).height],
    letters: Math.min(...labels.map(text => parseFloat(view.getComputedStyle(text).fontSize)
      * plot.getScreenCTM().a)),
    outside: labels.filter(text => {
      const inner = box(text), outer = box(text.closest("svg"));
      return inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
    }).map(text => text.textContent),
  });
};
</script></body>"""


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


@pytest.mark.parametrize("dark", [False, True])
def test_in_a_browser(two: list[Path], tmp_path: Path, dark: bool) -> None:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip(f"needs a browser: none of {', '.join(names)} is installed")
    compare_runs(two, tmp_path / "report.html", "GCN and GCN+FOG")
    (tmp_path / "look.html").write_text(LOOK)
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}", "--allow-file-access-from-files",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=5000",
        "--dump-dom", (tmp_path / "look.html").as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout)
    assert found, done.stderr
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    assert seen["loaded"] == []
    assert seen["needed"] == seen["width"] <= 360  # the page does not move sideways
    assert seen["background"] == rgb(PAPER[dark])
    assert seen["stroke"] == rgb(LINES[1][dark])
    width, height = seen["plot"]
    assert 280 < width < 360
    assert 0.6 < height / width < 0.8
    assert seen["letters"] > 9  # pixels
    assert seen["outside"] == []

"""Pages: of all ledgers, of run folders, and of comparisons."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from run_folders import write_run

from fognn.experiments.tables import TABLES, plan
from fognn.report.forms import check_output, write_pages
from fognn.report.site import build_run_report, build_site

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(RESULTS, tmp_path_factory.mktemp("site") / "pages").parent


class Page(HTMLParser):
    """The ids, links and addresses of a page; raises if an element is not closed."""

    OPEN = ("meta", "link", "img", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.addresses += [found[name] or "" for name in ("href", "src") if name in found]
        if tag not in self.OPEN:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_for_each_table_and_all_links_lead_somewhere(site: Path) -> None:
    pages = {path.stem for path in site.glob("*.html")}
    assert pages == {"index", *TABLES, "compare", "runs"}
    for path in site.glob("*.html"):
        page = Page(path.read_text(encoding="utf-8"))
        assert len(page.ids) == len(set(page.ids)), path
        for address in page.addresses:
            assert address == "data:," or (site / address).is_file(), (path, address)


def test_every_plot_has_its_figure(site: Path) -> None:
    for path in site.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        plots = re.findall(r'<div class="plot" id="([^"]+)"', text)
        pattern = r'<script type="application/json" id="([^"]+)-figure">(.*?)</script>'
        figures = dict(re.findall(pattern, text, re.DOTALL))
        assert sorted(plots) == sorted(figures), path
        for figure in figures.values():
            assert json.loads(figure)["data"]
    assert 'id="effect-0"' in (site / "zinc.html").read_text(encoding="utf-8")


def test_what_the_front_page_and_a_table_say(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    assert "19 claims of the paper" in front
    assert "holds here, at the paper&#39;s unequal rates" in front
    zinc = (site / "zinc.html").read_text(encoding="utf-8")
    assert "0.328 ± 0.028" in zinc
    assert "Learning rates are unequal in 6" in zinc
    assert "fognn train zinc gcn+fog --seed 0" in zinc
    other = (site / "compare.html").read_text(encoding="utf-8")
    assert "GCN+FOG against GCN: worse" in other
    assert "training seeds of one split" in other


def test_an_empty_folder_of_ledgers(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    page = build_site(tmp_path / "results", tmp_path / "site")
    assert page.read_text().count("not measured yet") > 19


def test_runs_are_compared_and_their_settings_named(tmp_path: Path) -> None:
    folders = []
    for model, lr in (("gcn", 0.01), ("gcn+fog", 0.01), ("gcn+fog", 0.001)):
        (planned,) = plan("zinc", [model], [0], ours=False)
        config = planned.config.with_values({"training.lr": lr})
        folders.append(tmp_path / f"{model}-{lr}")
        write_run(folders[-1], config, 0.4 + lr)
    text = build_run_report(folders, tmp_path / "report").read_text()
    Page(text)
    assert "gcn+fog (training.lr 0.001)" in text
    assert "gcn+fog (training.lr 0.01)" in text
    assert "was worse than gcn by" in text, "the error of the pair at one rate is higher"
    with pytest.raises(ValueError, match="nothing"):
        build_run_report([tmp_path / "nothing"], tmp_path / "other")


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "best.ckpt").write_text("weights")
    for _ in range(2):
        context = {"title": "t", "summary": "", "claims": [], "parts_": [], "more": []}
        write_pages(tmp_path, [("index", "table", context)])
    assert (tmp_path / "runs" / "best.ckpt").read_text() == "weights"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text("a page of the user")
    for place in ("other", "runs/best.ckpt"):
        with pytest.raises(ValueError, match="output"):
            check_output(tmp_path / place)

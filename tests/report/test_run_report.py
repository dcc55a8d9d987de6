"""The page that compares run folders, and the page of the other runs in the site."""

import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from run_folders import write_run
from site_example import write_ledger

from fognn.experiments import protocol
from fognn.experiments.ledger import Ledger, run_entry
from fognn.report.site import build_run_report, build_site
from fognn.report.site.run_comparison import runs_context

MakeRun = Callable[..., Path]
EQUAL = {"model.norm": "sym", "training.lr": 0.01, "training.weight_decay": 0.0}


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Writes a run folder; both networks have the same settings unless ``values`` change them."""

    def make(
        model: str,
        seed: int,
        test: float | None,
        data: str = "cluster",
        values: dict[str, Any] | None = None,
        **more: Any,
    ) -> Path:
        number = len(list(tmp_path.glob("run*")))
        equal = EQUAL if data == "cluster" else {}
        config = protocol(data, model, seed, equal | (values or {}))
        return write_run(tmp_path / f"run{number}", config, test, **more)

    return make


def context(*folders: Path) -> dict[str, Any]:
    return runs_context([run_entry(folder) for folder in folders])


def part_of(*folders: Path) -> dict[str, Any]:
    (part,) = context(*folders)["datasets"]
    return part


def cells(part: dict[str, Any], label: str) -> dict[str, Any]:
    (row,) = [row for row in part["rows"] if row["label"] == label]
    header = [name for name in part["header"][1:] if name != "seeds"]
    return dict(zip(header, row["cells"], strict=True))


def pair(make_run: MakeRun, host: list[float], fog: list[float], **more: Any) -> list[Path]:
    folders = [make_run("gcn", seed, test) for seed, test in enumerate(host)]
    return folders + [make_run("gcn+fog", seed, test, **more) for seed, test in enumerate(fog)]


# The comparison


@pytest.mark.parametrize(
    ("host", "fog", "words"),
    [
        ([50, 51, 52], [55, 56.1, 57], "gcn+fog is better than gcn"),
        ([55, 56.1, 57], [50, 51, 52], "gcn+fog is worse than gcn"),
        ([50, 51, 52], [49, 51, 55], "There is no clear difference between gcn+fog and gcn"),
        ([50], [55], "gcn+fog was better than gcn with the one seed of both"),
        ([55], [50], "gcn+fog was not better than gcn with the one seed of both"),
        ([50, 51], [55, 56.1], "gcn+fog was better than gcn with the two seeds of both"),
        ([50, 51], [49, 52], "There is no clear difference between gcn+fog and gcn"),
    ],
)
def test_the_interval_decides(
    make_run: MakeRun, host: list[float], fog: list[float], words: str
) -> None:
    made = context(*pair(make_run, host, fog))
    assert made["summary"].startswith(words)
    assert made["title"] == "gcn and gcn+fog on CLUSTER"
    assert ("One or two seeds decide nothing" in made["summary"]) == (len(host) < 3)
    assert ("95 % interval" in made["summary"]) == (len(host) > 1)


def test_the_difference_is_that_of_common_seeds(make_run: MakeRun) -> None:
    """Differences 1, 2, 3: mean 2, and 4.3027 is the table's t for 2 and 95 %."""
    part = part_of(*pair(make_run, [50, 50, 50, 10], [51, 52, 53]))
    fog, host = cells(part, "gcn+fog"), cells(part, "gcn")
    difference = fog["FOG\u00a0−\u00a0host"]
    assert (difference.text, difference.note) == ("+2.000", "to gcn, 3 seeds")
    assert fog["95 % interval"].text == "[−0.484, +4.484]"
    assert host["FOG\u00a0−\u00a0host"].text == "–"
    assert fog["test balanced accuracy (%)"].text == "52.000 ± 1.000"
    assert host["parameters"].text == "100,000"
    assert (host["epochs"].text, host["s an epoch"].text) == ("4", "2.00")
    assert [[run["seed"] for run in row["runs"]] for row in part["rows"]] == [
        ["0", "1", "2", "3"],
        ["0", "1", "2"],
    ]


def test_no_seed_in_common(make_run: MakeRun) -> None:
    made = context(make_run("gcn", 0, 50.0), make_run("gcn+fog", 1, 55.0))
    assert made["summary"].startswith("gcn+fog and gcn have no seed in common")


def test_an_unfair_comparison_is_said_and_shown(make_run: MakeRun) -> None:
    fair, unfair = (
        part_of(*pair(make_run, [50.0], [55.0], values=values))
        for values in ({}, {"training.lr": 0.001, "model.dropout": 0.5})
    )
    said = "The comparison is not of the networks alone: gcn+fog and gcn also differ in "
    assert not any(said in sentence for sentence in fair["findings"])
    (sentence,) = [sentence for sentence in unfair["findings"] if said in sentence]
    assert "training.lr (0.001 and 0.01)" in sentence
    assert "model.dropout (0.5 and 0.0)" in sentence
    assert unfair["more"]["names"] == ["gcn", "gcn+fog"]
    assert ["training.lr", "0.01", "0.001"] in unfair["more"]["differing"]
    assert ["model.h1", "–", "12"] in fair["more"]["differing"]
    assert ["training.batch_size", "128"] in fair["more"]["same"]
    names = [row[0] for row in fair["more"]["differing"] + fair["more"]["same"]]
    assert "seed" not in names


def test_of_several_hosts_the_one_with_the_same_settings(make_run: MakeRun) -> None:
    hosts = [
        make_run("gcn", 0, 50.0 + k, values={"training.lr": lr})
        for k, lr in enumerate((1e-3, 5e-3))
    ]
    part = part_of(*hosts, make_run("gcn+fog", 0, 55.0, values={"training.lr": 5e-3}))
    labels = [row["label"] for row in part["rows"]]
    assert labels == ["gcn (training.lr 0.001)", "gcn (training.lr 0.005)", "gcn+fog"]
    difference = cells(part, "gcn+fog")["FOG\u00a0−\u00a0host"]
    assert (difference.text, difference.note.partition(",")[0]) == (
        "+4.000",
        "to gcn (training.lr 0.005)",
    )


def test_where_lower_is_better(make_run: MakeRun) -> None:
    folders = [
        make_run(model, seed, test, "zinc", val=(0.9, 0.5))
        for model, tests in {"gat": (0.5, 0.51, 0.52), "gat+fog": (0.4, 0.41, 0.43)}.items()
        for seed, test in enumerate(tests)
    ]
    summary = context(*folders)["summary"]
    assert summary.startswith("gat+fog is better than gat: MAE 0.4133 against 0.5100 (lower is")


def test_two_rows_that_are_no_pair_are_compared(make_run: MakeRun) -> None:
    folders = [
        make_run("gcn", seed, test + seed / 10, values={"training.lr": lr})
        for lr, test in ((0.001, 50.0), (0.01, 55.0))
        for seed in (0, 1, 2)
    ]
    made = context(*folders)
    assert made["summary"].startswith(
        "gcn (training.lr 0.01) is better than gcn (training.lr 0.001)"
    )
    assert "difference" in made["datasets"][0]["header"]


def test_three_rows_without_a_pair_are_only_listed(make_run: MakeRun) -> None:
    made = context(*(make_run(model, 0, 50.0) for model in ("gcn", "gat", "gin")))
    assert made["summary"] == "3 runs on CLUSTER."
    assert made["title"] == "gcn, gat and gin on CLUSTER"
    assert "95 % interval" not in made["datasets"][0]["header"]


def test_one_network_alone(make_run: MakeRun) -> None:
    made = context(make_run("gcn", 0, 50.0), make_run("gcn", 1, 51.0))
    assert made["summary"] == "2 runs on CLUSTER."
    assert cells(made["datasets"][0], "gcn")["test balanced accuracy (%)"].text == "50.500 ± 0.707"
    assert made["datasets"][0]["more"]["differing"] == []


def test_datasets_are_not_mixed(make_run: MakeRun) -> None:
    made = context(make_run("gcn", 0, 50.0), make_run("gcn+fog", 0, 0.4, "zinc"))
    assert [part["title"] for part in made["datasets"]] == [
        "CLUSTER, balanced accuracy",
        "ZINC, MAE",
    ]
    assert made["summary"] == "2 runs on CLUSTER and ZINC."
    names = [figure.name for figure in made["figures"]]
    assert len(set(names)) == len(names) == 6


def test_curves_of_the_loss_and_of_the_metric(make_run: MakeRun) -> None:
    (pair_,) = part_of(*pair(make_run, [50.0], [55.0]))["curves"]
    captions = [figure.caption for figure in pair_["figures"]]
    assert [caption.partition(" of ")[0] for caption in captions] == [
        *("Training loss", "Validation loss", "Validation balanced accuracy"),
    ]


def test_many_networks_are_drawn_one_pair_at_a_time(make_run: MakeRun) -> None:
    models = ["gcn", "gcn+fog", "gat", "gat+fog", "gin", "graphsage", "gatedgcn"]
    folders = [
        make_run(model, 0, 50.0, values={"model.norm": "sym"} if model == "gcn" else None)
        for model in models
    ]
    curves = part_of(*folders)["curves"]
    titles = [pair_["title"] for pair_ in curves]
    assert titles == ["gcn and gcn+fog", "gat and gat+fog", "gin", "graphsage", "gatedgcn"]
    assert [pair_["chosen"] for pair_ in curves] == [True, *[False] * 4]


def test_the_cost(make_run: MakeRun) -> None:
    def said(**result: Any) -> str:
        return part_of(*pair(make_run, [50.0], [55.0], result=result))["findings"][-1]

    slower = said(parameters=101_000, seconds_per_epoch=3.0)
    assert (
        slower == "gcn+fog has 101,000 parameters, gcn 100,000; an epoch takes 1.50 times as long."
    )
    assert "120,000 parameters, gcn 100,000 (+20 %);" in said(parameters=120_000)
    assert "times as long" not in said(threads=1)


def test_times_of_a_busy_machine_are_not_trusted(make_run: MakeRun) -> None:
    folders = pair(make_run, [50.0], [55.0])
    file = folders[1] / "metrics.csv"
    # Two of four epochs took 8 seconds, and two of them 2.
    file.write_text(file.read_text().replace("1.5,0.5", "7.5,0.5", 2))
    assert part_of(*folders)["findings"][-1].endswith(
        "(not reliable: epochs of the same run differ 4.0-fold in time)."
    )


def test_notes(make_run: MakeRun) -> None:
    (few,) = part_of(
        make_run("gcn", 0, 50.0, values={"data.fraction": 0.15}, val=(1.0, 2.0)),
        make_run("gcn+fog", 0, 50.0, values={"data.fraction": 0.15}, result={"threads": 1}),
    )["notes"]
    for sentence in (
        "One seed has no standard deviation and no interval.",
        "Only 15 % of each split was used.",
        "The last epoch was the best validation epoch of a run of gcn: longer training may help.",
        "their times cannot be compared.",
    ):
        assert sentence in few
    (good,) = part_of(*pair(make_run, [50.0, 51.0], [55.0, 56.0]))["notes"]
    assert good == "A click on a seed opens its run."
    other = pair(make_run, [50.0], [55.0], result={"fingerprint": "ffff0000"})
    assert "their fingerprints differ" in part_of(*other)["notes"][0]


def test_without_a_test_split_the_validation_is_shown(make_run: MakeRun) -> None:
    part = part_of(*pair(make_run, [None], [None]))
    assert cells(part, "gcn")["validation balanced accuracy (%)"].text == "40.800"


def test_the_same_run_twice(make_run: MakeRun) -> None:
    with pytest.raises(ValueError, match=r"runs must not contain a run twice, got .*gcn-seed0"):
        context(make_run("gcn", 0, 50.0), make_run("gcn", 0, 51.0))


# The files


class Cells(HTMLParser):
    """All tables of a page, as lists of rows of text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        self.inside = tag in ("td", "th", "a", "small")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside and self.tables and self.tables[-1]:
            self.tables[-1][-1][-1] += data


def test_report(make_run: MakeRun, tmp_path: Path) -> None:
    folders = pair(make_run, [50.0, 51.0], [55.0, 56.5])
    page = build_run_report(folders, tmp_path / "new" / "report")
    assert page == tmp_path / "new" / "report" / "index.html"
    text = page.read_text(encoding="utf-8")
    assert "http" not in text
    results, differing, same, facts = Cells(text).tables
    assert [row[0] for row in results[1:]] == ["gcn", "gcn+fog"]
    assert ["model.name", "gcn", "gcn+fog"] in differing
    assert ["training.batch_size", "128"] in same
    assert ["commit", "b6506b8" * 5] in facts
    assert ["torch", "2.13.0"] in facts
    commands = re.search(r"<pre>(.*?)</pre>", text, re.DOTALL)
    assert commands
    assert len(unescape(commands[1]).split("\n")) == 4
    pages = sorted(page.parent.glob("runs/other/*.html"))
    assert len(pages) == 4
    assert "gcn+fog on CLUSTER, seed 1" in pages[1].read_text(encoding="utf-8")
    # Nothing of the site of the paper.
    assert {path.name for path in page.parent.glob("*.html")} == {"index.html"}
    assert "PATTERN" not in text
    # Again, in the same place.
    assert build_run_report(folders[:1], page.parent) == page
    assert len(list(page.parent.glob("runs/other/*.html"))) == 1


def test_text_of_others_is_escaped(make_run: MakeRun, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    folder = make_run("gcn", 0, 50.0, result={"commit": evil, "machine": {"cpu": evil}})
    page = build_run_report([folder], tmp_path / "report")
    for path in page.parent.rglob("*.html"):
        assert "<script>alert" not in path.read_text(encoding="utf-8")


def test_wrong_folders_write_nothing(make_run: MakeRun, tmp_path: Path) -> None:
    output, run = tmp_path / "report", make_run("gcn", 0, 50.0)
    with pytest.raises(ValueError, match="build_run_report: runs must name at least one"):
        build_run_report([], output)
    with pytest.raises(ValueError, match="nothing"):
        build_run_report([run, tmp_path / "nothing"], output)
    with pytest.raises(ValueError, match=r"build_run_report: output must be .*run0"):
        build_run_report([run], run)
    (run / "result.json").unlink()
    with pytest.raises(ValueError, match=r"run0.* is not a finished run"):
        build_run_report([run], output)
    assert not output.exists()


def test_the_site_shows_other_runs_on_a_page(make_run: MakeRun, tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_ledger(results, "zinc", ["gcn"], ours=False)
    site = build_site(results, tmp_path / "site").parent
    assert not (site / "runs.html").exists()
    assert "Other runs" not in (site / "index.html").read_text(encoding="utf-8")
    for folder in pair(make_run, [50.0], [55.0]):
        Ledger(results / "runs.jsonl").add(run_entry(folder))
    build_site(results, site)
    text = (site / "runs.html").read_text(encoding="utf-8")
    assert "<h1>Runs that are in no table</h1>" in text
    assert "gcn+fog was better than gcn with the one seed of both" in text
    assert len(list(site.glob("runs/other/*.html"))) == 2
    front = (site / "index.html").read_text(encoding="utf-8")
    assert '<a href="runs.html">Other runs</a>' in front
    assert "Runs that are in no table: 2" in front

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from site_example import make_entry, write_ledger

from fognn.paper.tables import TABLES, plan
from fognn.report.site_measurements import (
    host_of,
    metric_of,
    name_of,
    read_measurements,
    run_link,
    run_page,
)


def test_only_ledgers_are_read(tmp_path: Path) -> None:
    (tmp_path / "kernels.json").write_text("not of the paper")
    (tmp_path / "other.jsonl").write_text("not of the paper")
    entries = write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 2, ours=False)
    found = read_measurements(tmp_path)
    assert list(found.tables) == list(TABLES)
    assert [len(lines) for lines in found.tables.values()] == [11, 11, 13, 13, 6, 8, 10]
    assert {entry.key for entry in found.entries()} == {entry.key for entry in entries}


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="results must be a folder with ledgers"):
        read_measurements(tmp_path / "nowhere")


def test_rows_are_found_by_their_path(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn*"])
    write_ledger(tmp_path, "zinc", ["gcn"], 2, ours=False, fraction=0.1)
    found = read_measurements(tmp_path)
    line = found.find("zinc/ZINC/GCN")
    assert (line.variant, line.changed, len(line.entries)) == ("", (), 1)
    assert found.find("widths/ZINC/GCN+FOG/25847").paper.params == 25847
    for wrong in ("widths/ZINC/GCN+FOG", "zinc/ZINC/GNN", "nothing/ZINC/GCN", "zinc/TSP/GCN"):
        with pytest.raises(ValueError, match="path must name one row"):
            found.find(wrong)


def test_a_searched_row_stands_for_the_papers_if_there_is_no_other(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn"], ours=False, values={"training.lr": 0.0005})
    assert read_measurements(tmp_path).find("zinc/ZINC/GCN").changed == ("training.lr=0.0005",)


def test_a_host_is_the_one_that_was_subtracted(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn*"])
    lines = read_measurements(tmp_path).tables["zinc"]
    for line in lines:
        host = host_of(line, lines)
        if line.entries and line.paper.model == "GCN+FOG":
            assert host is not None
            assert host.label == ("GCN" if line.variant == "norm=mean" else "GCN (norm=sym)")
        else:
            assert host is None


def test_names_and_metrics() -> None:
    for table, names, metric in (
        ("zinc", {"GCN+FOG"}, "MAE"),
        ("widths", {"GCN+FOG, C=158", "GCN+FOG, C=76"}, "MAE"),
        ("limits", {"GatedGCN+FOG"}, "MAE"),
        ("cluster", {"GCN"}, "balanced accuracy"),
        ("few-shot", {"GNN", "GNN+FOG"}, "accuracy"),
    ):
        lines = read_measurements(Path(__file__).parent).tables[table]
        assert names <= {name_of(line) for line in lines}
        assert metric_of(lines[0]).label == metric


def test_a_run_has_a_page_whose_address_survives_a_plus() -> None:
    (planned,) = plan("zinc", ["gcn+fog"], ours=False)
    entry = make_entry(planned, 0.3)
    assert run_page(entry) == "runs/zinc/gcn+fog-seed0.html"
    assert run_link(entry) == "runs/zinc/gcn%2Bfog-seed0.html"


@given(st.sampled_from(["../x", "zinc/../x", "zinc/a/b", "zinc/.x", "tsp/x", "zinc/", "zinc/<a>"]))
def test_a_key_cannot_leave_the_site(key: str) -> None:
    (planned,) = plan("zinc", ["gcn"], ours=False)
    with pytest.raises(ValueError, match="the ledger's key"):
        run_page(dataclasses.replace(make_entry(planned, 0.3), key=key))

from pathlib import Path

from site_example import write_ledger

from fognn.report.site_measurements import read_measurements
from fognn.report.site_runs import run_context


def test_a_run_says_all_that_is_known(tmp_path: Path) -> None:
    (entry,) = write_ledger(tmp_path, "zinc", ["gcn+fog"], ours=False)
    line = read_measurements(tmp_path).find("zinc/ZINC/GCN+FOG")
    made = run_context(line, line.entries[0])
    assert made["title"] == "GCN+FOG on ZINC, seed 0"
    score = entry.result["test"]["last"]["batches"]
    assert made["summary"].startswith(f"MAE {score:.4f}, as the table shows it, after 60 epochs")
    assert "the learning rate fell below its end" in made["summary"]
    settings = dict(made["settings"])
    assert (settings["training.lr"], settings["model.h1"]) == ("0.01", "12")
    assert settings["data.fold"] == "–"
    facts = dict(made["facts"])
    assert facts["commit"] == entry.result["commit"]
    assert facts["torch"] == "2.13.0"
    rows = made["results"]["rows"]
    assert [row[0] for row in rows] == [
        *("training", "training", "validation", "validation", "test", "test"),
    ]
    assert rows[4] == [
        *("test", "last, 60", f"{entry.result['test']['last']['loss']:.5g}"),
        *(f"{score * 1.001:.5g}", f"{score:.5g}"),
    ]


def test_a_run_over_folds_shows_each(tmp_path: Path) -> None:
    write_ledger(tmp_path, "limits", ["gin-imdb-multi"], ours=False)
    line = read_measurements(tmp_path).find("limits/IMDB-MULTI/GIN")
    made = run_context(line, line.entries[0])
    names = [row[0] for row in made["results"]["rows"]]
    assert names[:4] == ["training", "training", "validation", "validation"]
    assert names[4:] == [f"validation, fold {fold}" for fold in range(1, 11)]
    assert "accuracy" in made["summary"]
    assert " %" in made["summary"]

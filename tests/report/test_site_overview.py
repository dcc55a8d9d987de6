from pathlib import Path

from site_example import by_model, write_ledger

from fognn.report.site_claims import claims
from fognn.report.site_measurements import read_measurements
from fognn.report.site_overview import overview_context


def test_nothing_measured(tmp_path: Path) -> None:
    made = overview_context(read_measurements(tmp_path))
    assert made["summary"] == f"Of {len(claims())} claims of the paper, 19 are not measured yet."
    assert made["claims"] == []
    assert made["made"] == ""
    assert [line["runs"] for line in made["tables"]] == [0] * 7
    assert made["waiting"][0]["rows"][0][4] == "not measured yet"


def test_claims_are_counted_and_shown(tmp_path: Path) -> None:
    values = {"GCN": [0.45, 0.46, 0.47], "GCN+FOG": [0.30, 0.31, 0.32]}
    values |= {"GIN": [0.40], "GIN+FOG": [0.38]}
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, by_model(values), ours=False)
    write_ledger(tmp_path, "zinc", ["gin", "gin+fog"], 1, by_model(values), ours=False)
    made = overview_context(read_measurements(tmp_path))
    shown = {claim["text"]: claim for claim in made["claims"]}
    helps = shown["On ZINC, FOG helps GCN"]
    assert (helps["kind"], helps["verdict"]) == ("holds", "Holds here.")
    assert helps["rows"] == [
        ["GCN+FOG", "GCN", "+0.1500", "[+0.1500, +0.1500]", "3 seeds", "+0.1520"]
    ]
    gin = shown["On ZINC, FOG makes GIN worse"]
    assert gin["kind"] == "against"
    assert gin["rows"] == [["GIN", "GIN+FOG", "−0.0200", "–", "1 seed: no interval", "+0.0140"]]
    assert len(made["claims"]) + len(made["waiting"]) == len(claims())
    assert "2 hold here" in made["summary"]
    assert "1 was seen once the other way" in made["summary"]
    zinc = made["tables"][2]
    assert (zinc["measured"], zinc["rows"], zinc["runs"]) == (4, 13, 8)
    assert (zinc["most"], zinc["fewest"]) == (3, 0)
    assert made["made"].startswith("It rests on 8 finished runs (2026-11-16; 0.4 hours")
    assert "from commit 4ad1a90" in made["made"]

"""The measurements, the claims and their verdicts."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from site_example import by_model, make_entry, write_ledger

from fognn.experiments import rows
from fognn.experiments.comparison import compare
from fognn.experiments.tables import TABLES, plan
from fognn.report.claims import Claim, Judgement, claims, judge
from fognn.report.measurements import (
    Measurements,
    host_of,
    name_of,
    read_measurements,
    run_link,
    run_page,
)
from fognn.report.metric import METRICS, metric_of
from fognn.report.tables import report_table

# --- measurements ---


def test_only_ledgers_are_read(tmp_path: Path) -> None:
    (tmp_path / "kernels.json").write_text("not of the paper")
    (tmp_path / "other.jsonl").write_text("not of the paper")
    entries = write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 2, ours=False)
    found = read_measurements(tmp_path)
    assert list(found.tables) == list(TABLES)
    assert [len(lines) for lines in found.tables.values()] == [
        11,
        11,
        13,
        13,
        6,
        8,
        10,
        3,
        5,
        37,
        4,
    ]
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


# --- claims ---


NOTHING = Measurements({table: compare(table, []) for table in TABLES})


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.text)
def test_the_printed_means_agree_with_the_claim(claim: Claim) -> None:
    """If they did not, the claim would not be the paper's."""
    assert TABLES[claim.table].number is not None
    for one, other in claim.pairs:
        better, than = NOTHING.find(one), NOTHING.find(other)
        assert metric_of(better) == metric_of(than)
        assert metric_of(better).advantage(better.paper.mean, than.paper.mean) > 0, (one, other)


def test_every_table_has_a_claim_and_no_claim_stands_twice() -> None:
    printed = {name for name, table in TABLES.items() if table.number is not None}
    assert {claim.table for claim in claims()} == printed
    assert len({claim.text for claim in claims()}) == len(claims())
    for claim in claims():
        assert len(set(claim.pairs)) == len(claim.pairs)


def test_who_is_best_is_compared_with_all_others() -> None:
    (claim,) = [c for c in claims() if c.text == "On ZINC, GatedGCN-E+FOG is the best of all"]
    others = {row.model for row in rows(table=3)} - {"GatedGCN-E+FOG"}
    assert {than.rpartition("/")[2] for _, than in claim.pairs} == others
    assert min(rows(table=3), key=lambda row: row.mean).model == "GatedGCN-E+FOG"
    assert not METRICS["mae"].higher_is_better


# --- verdicts ---


HELPS = Claim("helps", "", (("zinc/ZINC/GCN+FOG", "zinc/ZINC/GCN"),))
BOTH = Claim("both", "", (*HELPS.pairs, ("zinc/ZINC/GAT+FOG", "zinc/ZINC/GAT")))


def judged(results: Path, claim: Claim, **values: list[float]) -> Judgement:
    """``GCN=[0.4, 0.5]``: the MAE of GCN with seeds 0 and 1; ``_FOG`` stands for ``+FOG``."""
    results.mkdir(exist_ok=True)
    for name, own in values.items():
        model = name.replace("_", "+")
        seeds = [seed for seed, value in enumerate(own) if value > 0]
        if seeds:
            write_ledger(results, "zinc", [model], seeds, by_model({model: own}), ours=False)
    return judge(claim, read_measurements(results))


@pytest.mark.parametrize(
    ("host", "fog", "verdict"),
    [
        ([], [], "missing"),
        ([0.4], [], "missing"),
        ([0.4, 0], [0, 0.3], "missing"),  # no seed in common
        ([0.4], [0.3], "seen"),
        ([0.40, 0.41], [0.30, 0.311], "seen"),  # two seeds decide nothing
        ([0.30, 0.311], [0.40, 0.41], "against"),
        ([0.3], [0.4], "against"),
        ([0.3], [0.3], "against"),  # the paper says better, and it is not
        ([0.40, 0.41, 0.42], [0.30, 0.31, 0.33], "holds"),
        ([0.30, 0.31, 0.33], [0.40, 0.41, 0.42], "fails"),
        ([0.40, 0.41, 0.42], [0.30, 0.40, 0.43], "unclear"),
        ([0.4, 0.41, 0, 0.42], [0.3, 0.31, 0.9, 0.33], "holds"),  # seed 2 has no partner
    ],
)
def test_one_comparison(tmp_path: Path, host: list[float], fog: list[float], verdict: str) -> None:
    judgement = judged(tmp_path, HELPS, GCN=host, GCN_FOG=fog)
    assert judgement.verdict == verdict
    (comparison,) = judgement.comparisons
    assert comparison.printed == pytest.approx(0.459 - 0.307)
    common = [pair for pair in zip(host, fog, strict=False) if all(pair)]
    assert (comparison.interval is None) == (len(common) < 2)


def test_an_interval_is_students(tmp_path: Path) -> None:
    """Differences 1, 2, 3 tenths: mean 0.2, and 4.3027 is the table's t for 2 and 95 %."""
    (comparison,) = judged(
        tmp_path, HELPS, GCN=[0.4, 0.5, 0.6], GCN_FOG=[0.3, 0.3, 0.3]
    ).comparisons
    assert comparison.advantage == pytest.approx(0.2)
    half = 4.302653 * 0.1 / 3**0.5
    assert comparison.interval == pytest.approx((0.2 - half, 0.2 + half), abs=1e-6)


def test_all_must_hold_and_one_is_enough_to_fail(tmp_path: Path) -> None:
    good = {"GCN": [0.40, 0.41, 0.42], "GCN_FOG": [0.30, 0.31, 0.33]}
    half = judged(tmp_path / "half", BOTH, **good)
    assert (half.verdict, half.text) == ("partly", "holds where measured")
    rates = "unequal learning rates in"
    assert half.sure == f"1 of 2 comparisons measured, 3 seeds each; {rates} 1."
    once = judged(tmp_path / "once", BOTH, **good, GAT=[0.4], GAT_FOG=[0.3])
    assert (once.verdict, once.text) == ("seen", "seen, not sure")
    assert once.sure == f"2 of 2 comparisons measured, 1 to 3 seeds each; {rates} 2."
    sure = {"GAT": [0.4, 0.41, 0.4], "GAT_FOG": [0.3, 0.312, 0.3]}
    whole = judged(tmp_path / "whole", BOTH, **good, **sure)
    assert (whole.verdict, whole.text) == ("holds", "holds here")
    bad = judged(tmp_path / "bad", BOTH, **good, GAT=[0.3, 0.31, 0.3], GAT_FOG=[0.4, 0.42, 0.41])
    assert bad.verdict == "fails"
    assert bad.sure.endswith("The other way round: GAT+FOG against GAT.")


def test_where_more_is_better(tmp_path: Path) -> None:
    values = {"GCN": [53.0, 53.2, 53.1], "GCN+FOG": [60.0, 60.5, 60.1]}
    write_ledger(tmp_path, "cluster", ["gcn", "gcn+fog"], 3, by_model(values), ours=False)
    pair = ("cluster/CLUSTER/GCN+FOG", "cluster/CLUSTER/GCN")
    measured = read_measurements(tmp_path)
    assert judge(Claim("", "", (pair,)), measured).verdict == "holds"
    assert judge(Claim("", "", (pair[::-1],)), measured).verdict == "fails"


@pytest.mark.parametrize(("fog", "verdict"), [(90.0, "seen"), (10.0, "against")])
def test_folds_of_one_seed_are_never_sure(tmp_path: Path, fog: float, verdict: str) -> None:
    values = {"GIN": [50.0], "GIN+FOG": [fog]}
    models = ["gin-imdb-multi", "gin+fog-imdb-multi"]
    write_ledger(tmp_path, "limits", models, 1, by_model(values), ours=False)
    pairs = (("limits/IMDB-MULTI/GIN+FOG", "limits/IMDB-MULTI/GIN"),)
    judgement = judge(Claim("", "", pairs), read_measurements(tmp_path))
    assert judgement.comparisons[0].interval is not None
    assert judgement.verdict == verdict
    assert "10 folds of one seed each" in judgement.sure


def test_our_variants_and_other_settings_decide_nothing(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn-sym", "gcn+fog-mean"], 3)
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, ours=False, epochs=5)
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, ours=False, epochs=5, fraction=0.1)
    assert judge(HELPS, read_measurements(tmp_path)).verdict == "missing"


@pytest.mark.parametrize(("fog", "verdict"), [(0.3, "seen"), (0.5, "against")])
def test_a_fraction_of_the_data_is_never_sure(tmp_path: Path, fog: float, verdict: str) -> None:
    for fraction, host in ((0.1, 0.9), (0.2, 0.4)):
        values = by_model({"GCN": [host] * 3, "GCN+FOG": [fog] * 3})
        write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, values, ours=False, fraction=fraction)
    write_ledger(tmp_path, "zinc", ["gcn+fog"], 3, by_model({"GCN+FOG": [0.1] * 3}), ours=False)
    judgement = judge(BOTH, read_measurements(tmp_path))
    # The largest fraction that both have; all of the data only one of them has.
    assert judgement.comparisons[0].advantage == pytest.approx(0.4 - fog)
    assert judgement.verdict == verdict
    assert judgement.text.endswith(", not sure, on 20 % of the data")
    assert "GCN [data.fraction=0.2]" in judgement.comparisons[0].than.label
    gat = judged(tmp_path, BOTH, GAT=[0.4], GAT_FOG=[0.3])
    assert gat.text.endswith(", not sure, in part on 20 % of the data")
    whole = judged(tmp_path, BOTH, GCN=[0.4, 0.4, 0.4])
    assert "%" not in whole.text


def test_the_host_of_the_same_norm_on_a_fraction(tmp_path: Path) -> None:
    values = by_model({"GCN": [0.4], "GCN+FOG": [0.3]})
    write_ledger(tmp_path, "zinc", ["gcn-sym", "gcn+fog"], 1, values, fraction=0.1)
    (comparison,) = judge(HELPS, read_measurements(tmp_path)).comparisons
    assert comparison.than.label == "GCN (norm=sym) [data.fraction=0.1]"
    assert comparison.advantage == pytest.approx(0.1)
    # Not a network on all of the data and one on a fraction.
    write_ledger(tmp_path, "zinc", ["gat"], 1, ours=False, fraction=0.1)
    write_ledger(tmp_path, "zinc", ["gin"], 1, ours=False)
    other = Claim("", "", (("zinc/ZINC/GAT", "zinc/ZINC/GIN"),))
    assert judge(other, read_measurements(tmp_path)).verdict == "missing"


def test_like_is_compared_with_like(tmp_path: Path) -> None:
    worse = by_model({"GCN": [0.2] * 3, "GCN+FOG": [0.3] * 3})
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, worse, ours=False)
    assert judge(HELPS, read_measurements(tmp_path)).comparisons[0].than.label == "GCN"
    # The paper's GCN+FOG is the symmetric one: so is the GCN that decides.
    write_ledger(tmp_path, "zinc", ["gcn-sym"], 3, by_model({"GCN": [0.4] * 3}))
    judgement = judge(HELPS, read_measurements(tmp_path))
    assert judgement.comparisons[0].than.label == "GCN (norm=sym)"
    assert judgement.verdict == "holds"


# --- the table of claims ---


def test_the_table_has_every_claim_with_its_verdict(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gin", "gin+fog"], 3)
    text = report_table("claims", tmp_path, "markdown")
    found = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines()}
    measurements = read_measurements(tmp_path)
    for claim in claims():
        _, table, here, measured = found[claim.text].strip(" |").split(" | ")
        judgement = judge(claim, measurements)
        assert int(table) == TABLES[claim.table].number
        assert (here, measured) == (judgement.text, judgement.measured or "–")
    measured = "1 of 1 comparison measured, 3 seeds each; unequal learning rates in 1 |"
    assert measured in found["On ZINC, FOG makes GIN worse"]
    assert found["On ZINC, FOG helps GCN"].endswith("| not measured yet | – |")

from pathlib import Path

import pytest
from site_example import by_model, write_ledger

from fognn.report.site_claims import Claim
from fognn.report.site_measurements import read_measurements
from fognn.report.site_verdicts import Judgement, judge

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
        ([0.4], [0.3], "once"),
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
    assert (comparison.interval is None) == (verdict in ("missing", "once", "against"))


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
    assert (half.verdict, half.text) == ("holds", "holds here, so far")
    assert half.sure == "1 of 2 comparisons measured, 3 seeds each."
    once = judged(tmp_path / "once", BOTH, **good, GAT=[0.4], GAT_FOG=[0.3])
    assert (once.verdict, once.text) == ("once", "seen once, not sure")
    assert once.sure == "2 of 2 comparisons measured, 1 to 3 seeds each."
    whole = judged(tmp_path / "whole", BOTH, **good, GAT=[0.4, 0.41], GAT_FOG=[0.3, 0.312])
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


@pytest.mark.parametrize(("fog", "verdict"), [(90.0, "once"), (10.0, "against")])
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
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, ours=False, fraction=0.1)
    assert judge(HELPS, read_measurements(tmp_path)).verdict == "missing"


def test_like_is_compared_with_like(tmp_path: Path) -> None:
    worse = by_model({"GCN": [0.2] * 3, "GCN+FOG": [0.3] * 3})
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, worse, ours=False)
    assert judge(HELPS, read_measurements(tmp_path)).comparisons[0].than.label == "GCN"
    # The paper's GCN+FOG is the symmetric one: so is the GCN that decides.
    write_ledger(tmp_path, "zinc", ["gcn-sym"], 3, by_model({"GCN": [0.4] * 3}))
    judgement = judge(HELPS, read_measurements(tmp_path))
    assert judgement.comparisons[0].than.label == "GCN (norm=sym)"
    assert judgement.verdict == "holds"

import pytest

from fognn.paper import rows
from fognn.paper.comparison import compare
from fognn.paper.tables import TABLES
from fognn.report.metric import METRICS
from fognn.report.site_claims import Claim, claims
from fognn.report.site_measurements import Measurements, metric_of

NOTHING = Measurements({table: compare(table, []) for table in TABLES})


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.text)
def test_the_printed_means_agree_with_the_claim(claim: Claim) -> None:
    """If they did not, the claim would not be the paper's."""
    assert claim.table in TABLES
    for one, other in claim.pairs:
        better, than = NOTHING.find(one), NOTHING.find(other)
        assert metric_of(better) == metric_of(than)
        assert metric_of(better).advantage(better.paper.mean, than.paper.mean) > 0, (one, other)


def test_every_table_has_a_claim_and_no_claim_stands_twice() -> None:
    assert {claim.table for claim in claims()} == set(TABLES)
    assert len({claim.text for claim in claims()}) == len(claims())
    for claim in claims():
        assert len(set(claim.pairs)) == len(claim.pairs)


def test_who_is_best_is_compared_with_all_others() -> None:
    (claim,) = [c for c in claims() if c.text == "On ZINC, GatedGCN-E+FOG is the best of all"]
    others = {row.model for row in rows(table=3)} - {"GatedGCN-E+FOG"}
    assert {than.rpartition("/")[2] for _, than in claim.pairs} == others
    assert min(rows(table=3), key=lambda row: row.mean).model == "GatedGCN-E+FOG"
    assert not METRICS["mae"].higher_is_better

from itertools import product

from fognn.training.seeds import step_seed


def test_every_step_has_a_seed_of_its_own() -> None:
    places = list(product(range(3), range(20), range(20), range(2)))
    assert len({step_seed(*place) for place in places}) == len(places)


def test_the_seed_of_a_step_never_changes() -> None:
    # Written down once: a run must go on under a later version as it began.
    assert step_seed(0, 0, 0) == 8219916410250766383
    assert 0 <= step_seed(2**64 - 1, 10**6, 10**6, 99) < 2**63

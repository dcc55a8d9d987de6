from dataclasses import dataclass, field

import pytest

from fognn.training.values import as_mapping, assignments, flat, make, unknown


@dataclass
class Thing:
    size: int
    rate: float = 0.5
    name: str | None = None
    rest: dict[str, int] = field(default_factory=dict)


def test_assignments_are_read_as_yaml() -> None:
    texts = ["model.h1=8", "a.b=x=y", "training.lr = 0.5", "f=true", "n=null", "s='8'"]
    assert assignments(texts) == {
        "model.h1": 8,
        "a.b": "x=y",
        "training.lr": 0.5,
        "f": True,
        "n": None,
        "s": "8",
    }


@pytest.mark.parametrize("text", ["model.h1", "=3", " =3"])
def test_what_is_no_assignment(text: str) -> None:
    with pytest.raises(ValueError, match="set must be NAME=VALUE"):
        assignments([text])


def test_a_broken_value() -> None:
    with pytest.raises(ValueError, match="the value of a must be YAML"):
        assignments(["a=["])


def test_values_become_what_their_fields_want() -> None:
    assert make(Thing, {"size": 3, "rate": 2}, "") == Thing(3, 2.0)
    assert type(make(Thing, {"size": 3, "rate": 2}, "").rate) is float
    assert make(Thing, {"size": 3, "rate": "1e-3", "name": "x"}, "") == Thing(3, 1e-3, "x")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "at size must be given"),
        ({"size": "3"}, "at size must be of type int, got '3'"),
        ({"size": True}, "at size must be of type int, got True"),
        ({"size": 3, "rate": False}, "at rate must be of type float, got False"),
        ({"size": 3, "rate": [1]}, "at rate must be of type float"),
        ({"size": 3, "name": 4}, "at name must be of type str, got 4"),
        ({"size": 3, "siez": 4}, "at 'siez' is no setting; did you mean 'size'"),
    ],
)
def test_wrong_values(values: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(Thing, values, "at ")


def test_far_off_names_get_the_whole_list() -> None:
    assert unknown("zzz", ["size", "rate"]) == "config: 'zzz' is no setting; known: size, rate"


def test_flat() -> None:
    assert flat({"a": {"b": {"c": 1}, "d": 2}, "e": 3}) == {"a.b.c": 1, "a.d": 2, "e": 3}


@pytest.mark.parametrize("content", [None, [1], {1: 2}])
def test_no_mapping(content: object) -> None:
    with pytest.raises(ValueError, match="there must be a mapping"):
        as_mapping(content, "there")

import json
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fognn.report.page import colours
from fognn.report.site_figure import (
    COLOURS,
    axis,
    colour,
    figure,
    graph_objects,
    log_scale,
    window,
)


def test_a_figure_is_safe_inside_a_script_element() -> None:
    trace = graph_objects().Scatter(x=[1], y=[2], text=["</script><script>alert(1)</script>"])
    made = figure("name", "caption", [trace], 300, xaxis=axis("x"))
    assert "<" not in made.json
    content = json.loads(made.json)
    assert content["data"][0]["text"] == ["</script><script>alert(1)</script>"]
    assert content["layout"]["xaxis"]["title"]["text"] == "x"


def test_all_colours_are_the_pages() -> None:
    made = figure("name", "caption", [], 300, xaxis=axis("x"), yaxis=axis("y"))
    named = set(re.findall(r"var\(--([a-z0-9-]+)\)", made.json + json.dumps(COLOURS)))
    assert named
    for dark in (False, True):
        assert named <= set(re.findall(r"--([a-z0-9-]+):", colours(dark)))


@pytest.mark.parametrize(
    ("model", "kind"),
    [("FOG", "FOG alone"), ("GCN", "host"), ("GCN+FOG", "with FOG"), ("GNN", "host")],
)
def test_colours_say_where_fog_is(model: str, kind: str) -> None:
    assert colour(model) == kind
    assert kind in COLOURS


finite = st.floats(-1e6, 1e6)


@settings(max_examples=50)
@given(st.lists(finite, min_size=1), st.lists(st.one_of(st.none(), st.tuples(finite, finite))))
def test_a_window_shows_all_values(
    values: list[float], intervals: list[tuple[float, float] | None]
) -> None:
    low, high = window(values, intervals)
    assert low < min(values) <= max(values) < high


def test_a_window_shows_intervals_that_leave_room_for_the_values() -> None:
    assert window([0.0, 1.0], [(-0.5, 1.5)])[0] < -0.5
    low, high = window([0.0, 1.0], [(-50, 50), None])
    assert (low, high) == pytest.approx((-0.08, 1.08))


def test_a_scale_is_logarithmic_only_if_it_must_and_can() -> None:
    assert log_scale([1.0, None, 100.0])
    assert not log_scale([1.0, 20.0])
    assert not log_scale([-1.0, 100.0])
    assert not log_scale([None])


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ImportError, match=r"report needs plotly.*fognn\[report\]"):
        graph_objects()

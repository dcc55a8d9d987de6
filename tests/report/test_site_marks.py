from pathlib import Path

import pytest
from site_example import write_ledger

from fognn.report.site_marks import (
    error_bars,
    hover,
    mean_bars,
    paper_marks,
    rows_axis,
    rows_height,
    run_points,
)
from fognn.report.site_measurements import read_measurements


def test_rows_have_their_names_and_say_what_was_changed(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn", "gcn-sym"])
    write_ledger(tmp_path, "zinc", ["gcn"], ours=False, fraction=0.1, epochs=3)
    lines = read_measurements(tmp_path).tables["zinc"][:5]
    axis = rows_axis(lines)
    texts = ["FOG", "GCN", "GCN<br>[2 settings changed]", "GCN<br>(norm=sym)", "GCN+FOG"]
    assert axis["ticktext"] == texts
    assert axis["tickvals"] == [0, -1, -2, -3, -4]
    low, high = axis["range"]
    assert low < -4
    assert high > 0
    assert rows_axis(lines, room=0.5)["range"] == [low, high + 0.5]
    assert rows_height(40) > rows_height(20) > 0


def test_marks_stand_where_they_are_put() -> None:
    paper = paper_marks([0.3, 0.4], [0.01, None], [0.0, -1.0], ["a", "b"], "paper")
    assert paper.error_x.array == (0.01, 0)
    assert paper_marks([0.3], None, [0.0], ["a"], "paper").error_x.array is None
    points = run_points([(0.3, 0.0, "a", "a.html"), (0.4, -1.0, "b", "b.html")], "host", "seed")
    assert (points.x, points.y) == ((0.3, 0.4), (0.0, -1.0))
    assert points.customdata == ("a.html", "b.html")
    (means,) = mean_bars([(0.3, (0.2, 0.4), 0.0, "a")])
    assert means.error_x.array == pytest.approx([0.1])
    assert mean_bars([]) == []
    assert error_bars([None], "red")["array"] == [0]
    assert hover("%{x}") == "%{text}<br>%{x}<extra></extra>"

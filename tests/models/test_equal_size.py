import pytest

from fognn.experiments import get_row
from fognn.experiments.rows import model_settings, name_of
from fognn.models import TASKS, count_parameters, create_model, equal_size
from fognn.nn.fog_controls import FOG_KINDS

HOSTS = ("wider", "deeper", "film", "gatv2", "pna")
CASES = [
    (table, row, control)
    for table in ("zinc", "pattern", "cluster")
    for row in ("gcn+fog", "gin+fog", "fog")
    for control in (*FOG_KINDS, *HOSTS)
    # The hosts of PyG depend only on the number, and FOG alone has no host.
    if control in FOG_KINDS or row == "gcn+fog" or (row == "gin+fog" and "er" in control)
]


@pytest.mark.parametrize(("table", "row", "control"), CASES)
def test_controls_have_the_number_of_the_papers_row(table: str, row: str, control: str) -> None:
    paper, task = get_row(f"{table}/{row}"), TASKS[table]
    settings = model_settings(paper)
    name, own = equal_size(control, name_of(paper), task, **settings)
    size = count_parameters(create_model(name, task, **own))
    assert abs(size - paper.params) <= 0.01 * paper.params
    if control in FOG_KINDS:
        changed = {key for key in own if own[key] != settings.get(key)}
        assert changed <= {"fog_kind", "h1", "h2"}
        assert name == row
        if control.startswith("kron"):
            assert (own["h1"], own["h2"], size) == (paper.h1, paper.h2, paper.params)
        elif control == "hadamard":
            assert own["h1"] == own["h2"]
        else:
            assert own["h2"] / own["h1"] == pytest.approx(paper.h2 / paper.h1, rel=0.15)
    else:
        assert name == (control if control in HOSTS[2:] else row.removesuffix("+fog"))
        assert own["layers"] == (8 if control == "deeper" else 4)
        assert own.get("norm") == (paper.norm if name == "gcn" else None)
        assert not {"h1", "h2", "fog_channels"} & own.keys()


def test_settings_of_the_other_host_and_defaults() -> None:
    name, own = equal_size("pna", "gcn+fog", TASKS["zinc"], norm="mean", degrees=[0, 5, 7])
    assert (name, own["degrees"]) == ("pna", [0, 5, 7])
    assert "norm" not in own
    wanted = count_parameters(create_model("gcn+fog", "zinc"))
    _, own = equal_size("concat", "gcn+fog", TASKS["zinc"])
    size = count_parameters(create_model("gcn+fog", "zinc", **own))
    assert abs(size - wanted) <= 0.01 * wanted


@pytest.mark.parametrize(
    ("control", "name", "settings", "message"),
    [
        ("sum", "gcn+fog", {}, "unknown control 'sum'"),
        ("wider", "fog", {}, "unknown control 'wider'"),
        ("wider", "gcn", {}, "unknown name 'gcn'; did you mean 'gcn.fog'"),
        ("wider", "gcn+fog", {"h1": 0}, "h1 must be .*, got 0"),
        ("concat", "gcn+fog", {"num_layers": 4}, "no setting 'num_layers'; known: .*layers"),
        ("wider", "gnc+fog", {}, "unknown name 'gnc.fog'"),
        ("hadamard", "gcn+fog", {"channels": 4}, "within 1 %; the nearest is"),
    ],
)
def test_bad_arguments(control: str, name: str, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        equal_size(control, name, TASKS["zinc"], **settings)

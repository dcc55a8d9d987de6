import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fognn.training import Config, DataConfig, MachineConfig, ModelConfig, TrainingConfig
from fognn.training.config import SECTIONS, assignments, setting_help, setting_name

BASE = Config(DataConfig("ZINC"), ModelConfig("gcn", {"channels": 8}), TrainingConfig("l1", "mae"))


@given(
    fraction=st.floats(1e-6, 1),
    lr=st.floats(1e-12, 1e6),
    seed=st.integers(0, 2**63),
    settings=st.dictionaries(
        st.sampled_from(["h1", "norm", "dropout"]), st.one_of(st.integers(), st.text(max_size=5))
    ),
    fold=st.none() | st.integers(1, 10),
)
def test_yaml_gives_the_same_run_back(
    fraction: float, lr: float, seed: int, settings: dict[str, Any], fold: int | None
) -> None:
    config = Config(
        DataConfig("IMDB-MULTI", fraction=fraction, fold=fold),
        ModelConfig("gcn", settings),
        TrainingConfig("cross_entropy", "accuracy", lr=lr),
        seed,
        machine=MachineConfig(threads=3),
    )
    assert Config.from_dict(yaml.safe_load(config.to_yaml())) == config
    assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_setting_by_its_dotted_name_or_its_last_part() -> None:
    config = BASE.with_values({"model.h1": 8, "training.lr": "1e-3", "fold": 2, "seed": 4})
    assert config.model.settings == {"channels": 8, "h1": 8}
    assert config.training.lr == 1e-3
    assert (config.data.fold, config.seed) == (2, 4)
    assert BASE.model.settings == {"channels": 8}, "the first one must not change"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"training.rate": 1}, r"unknown setting 'training\.rate'; did you mean 'training\."),
        ({"zzz": 1}, "unknown setting 'zzz'"),
        ({"name": "x"}, "unknown setting 'name'"),
        ({"model": {}}, "unknown setting 'model'"),
        ({"channels": 8}, r"'model\.channels'"),
        ({"training.lr": 0}, r"^config: training\.lr: .*greater than 0, got 0$"),
        ({"training.lr": float("nan")}, r"training\.lr: .*got nan"),
        ({"training.lr": "fast"}, r"training\.lr: .*got 'fast'"),
        ({"training.epochs": 1.5}, r"training\.epochs: .*got 1\.5"),
        ({"training.epochs": True}, r"training\.epochs: .*got True"),
        ({"training.factor": 2}, r"training\.factor: .*got 2"),
        ({"training.loss": "l3"}, r"training\.loss: .*'l1'.*got 'l3'"),
        ({"training.loss": "cross_entropy"}, r"training\.metric must fit loss"),
        ({"training.warmup": 2}, r"training\.warmup must be 0"),
        ({"data.fold": 0}, r"data\.fold: .*got 0"),
        ({"data.name": None}, r"data\.name: .*got None"),
        ({"data.skip_bad": 3}, r"data\.skip_bad: .*got 3"),
        ({"data.neighbors": "15,x"}, r"data\.neighbors: .*'x'"),
        ({"seed": -1}, "seed: .*got -1"),
        ({"machine.device": "tpu"}, r"machine\.device: .*got 'tpu'"),
        ({"machine.ranks": 3}, r"training\.batch_size must be a multiple of machine\.ranks"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BASE.with_values(values)


def test_what_makes_a_run_this_run() -> None:
    elsewhere = BASE.with_values({"machine.threads": 7, "data.folder": "/elsewhere"})
    assert elsewhere.digest() == BASE.digest()
    assert not elsewhere.differences(BASE)
    other = BASE.with_values({"training.lr": 0.5, "model.h1": 3})
    assert other.digest() != BASE.digest()
    expected = {"model.h1: None and 3", "training.lr: 0.001 and 0.5"}
    assert set(BASE.differences(other)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "must be a mapping"),
        ("data: 3", "data must be a mapping"),
        ("data: {name: ZINC}", "model: Field required"),
        ("data: {name: ZINC, colour: red}", r"data\.colour: Unexpected"),
        ("a: [", "must be a YAML file"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        Config.read(path)
    assert str(path) in str(error.value)


def test_every_setting_has_a_name_and_a_description() -> None:
    for section, kind in SECTIONS.items():
        for field in dataclasses.fields(kind):
            if section != "model":
                assert setting_name(f"{section}.{field.name}") == f"{section}.{field.name}"
                assert setting_help(f"{section}.{field.name}")
    assert setting_name("lr") == "training.lr"
    assert setting_name("seed") == "seed", "that of the run, not that of the data"


def test_a_number_that_yaml_takes_for_a_text() -> None:
    values = assignments(["model.fog_eps=1e-2", "model.norm=sym", "data.target=1e3"])
    assert values == {"model.fog_eps": 0.01, "model.norm": "sym", "data.target": "1e3"}


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
    for text in ("model.h1", "=3", " =3"):
        with pytest.raises(ValueError, match="set must be NAME=VALUE"):
            assignments([text])
    with pytest.raises(ValueError, match="the value of a must be YAML"):
        assignments(["a=["])

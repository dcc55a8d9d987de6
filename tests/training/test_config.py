import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fognn.training import Config, DataConfig, MachineConfig, ModelConfig, TrainingConfig
from fognn.training.config import SECTIONS, assignments, field_help, flat, setting_name

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
        ({"model.": 1}, r"unknown setting 'model\.'"),
        ({"training.lr": 0}, r"training\.lr .* above 0, got 0"),
        ({"training.lr": float("nan")}, r"training\.lr .*got nan"),
        ({"training.lr": float("inf")}, r"training\.lr .*got inf"),
        ({"training.lr": "fast"}, r"training\.lr .*a number.*got 'fast'"),
        ({"training.lr": True}, r"training\.lr .*a number.*got True"),
        ({"training.epochs": 1.5}, r"training\.epochs .*an int.*got 1\.5"),
        ({"training.epochs": True}, r"training\.epochs .*an int.*got True"),
        ({"training.epochs": 0}, r"training\.epochs .*at least 1, got 0"),
        ({"training.weight_decay": -1}, r"training\.weight_decay .*at least 0, got -1"),
        ({"training.factor": 2}, r"training\.factor .*above 0 and at most 1, got 2"),
        ({"training.loss": "l3"}, r"training\.loss must be one of 'l1'.*got 'l3'"),
        ({"training.loss": "cross_entropy"}, r"training\.metric must fit training\.loss"),
        ({"training.schedule": "cyclic"}, r"training\.schedule must be one of 'plateau'.*'cyclic'"),
        ({"data.fraction": 1.1}, r"data\.fraction .*above 0 and at most 1, got 1\.1"),
        ({"data.fold": 0}, r"data\.fold .*at least 1, got 0"),
        ({"data.fold": "first"}, r"data\.fold .*an int.*got 'first'"),
        ({"data.name": None}, r"data\.name must be given"),
        ({"data.target": 3}, r"data\.target .*a str, got 3"),
        ({"data.skip_bad": 3}, r"data\.skip_bad .*a bool, got 3"),
        ({"seed": -1}, "seed .*at least 0, got -1"),
        ({"precision": "8"}, "precision must be one of '32-true'"),
        ({"machine.device": "tpu"}, r"machine\.device must be one of 'auto'.*got 'tpu'"),
        ({"machine.ranks": 3}, r"training\.batch_size must be a multiple of machine\.ranks"),
        ({"machine.threads": 0}, r"machine\.threads .*at least 1, got 0"),
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


def test_the_digest_does_not_know_settings_at_their_default() -> None:
    # A version that adds a setting must find the folders that were made before.
    assert BASE.digest() == BASE.with_values({"training.patience": 10}).digest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "must be a mapping"),
        ("data: 3", "data must be a mapping"),
        ("data: {name: ZINC}", "model must be given"),
        ("data: {}\nmodel: {name: gcn}\ntraining: {loss: l1, metric: mae}", "data.name must be"),
        ("data: {name: ZINC}\nmodel: {}\ntraining: {loss: l1, metric: mae}", "model.name must be"),
        ("data: {name: ZINC, colour: red}", r"unknown setting 'data\.colour'"),
        ("a: [", "must be a YAML file"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        Config.read(path)
    assert str(path) in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no\.yaml does not exist"):
        Config.read(tmp_path / "no.yaml")


def test_a_section_raises_in_the_same_words() -> None:
    with pytest.raises(ValueError, match=r"^config: training\.lr must be .*above 0, got -1$"):
        TrainingConfig("l1", "mae", lr=-1)
    with pytest.raises(ValueError, match=r"unknown setting 'training\.rate'"):
        TrainingConfig("l1", "mae", rate=1)
    with pytest.raises(ValueError, match=r"training\.metric must be given"):
        TrainingConfig("l1")


def test_every_setting_has_a_name_and_a_description() -> None:
    for section, kind in SECTIONS.items():
        for field in dataclasses.fields(kind):
            if section != "model":
                assert setting_name(f"{section}.{field.name}") == f"{section}.{field.name}"
                assert field_help(kind, field.name).endswith(".")
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


def test_flat() -> None:
    assert flat({"a": {"b": {"c": 1}, "d": 2}, "e": 3}) == {"a.b.c": 1, "a.d": 2, "e": 3}


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "&a [*a]",
        "[" * 10_000,
        "seed: !!int x",
        "seed: 2021-99-99",
        "seed: !!timestamp 1",
        "seed: " + "9" * 5000,
        "a: " + "x" * 2_000_000,
        "seed: !!python/object/apply:os.mkdir [x]",
        "a: \0",
    ],
    ids=["bomb", "cycle", "deep", "tag", "date", "time", "digits", "long", "python", "NUL"],
)
def test_hostile_yaml_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"config\.yaml") as error:
        Config.read(path)
    assert len(str(error.value)) < 1000

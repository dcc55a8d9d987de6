"""Files that are broken, as seen by whoever reads the folder."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fognn.report.run_folder import read_run

MakeRun = Callable[..., Path]


def change(file: str, old: str, new: str) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))

    return act


def remove(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


def write(file: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / file).write_bytes(content) and None


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (remove("config.yaml"), r"must be the folder of a run, it has no file config\.yaml"),
        (remove("metrics.csv"), r"must be the folder of a run, it has no file metrics\.csv"),
        (write("config.yaml", b"\xff\xfe"), r"config\.yaml must be a text file in UTF-8"),
        (write("config.yaml", b"a: [1"), r"config\.yaml is no YAML file of settings"),
        (write("config.yaml", b"a: &x {b: *x}"), r"config\.yaml is no YAML file of settings"),
        (write("config.yaml", b"[1, 2]"), r"config\.yaml must name data\.name"),
        (write("config.yaml", b""), r"config\.yaml must name data\.name"),
        (change("config.yaml", "name: gcn", "nam: gcn"), r"config\.yaml must name model\.name"),
        (change("config.yaml", "seed: 0", "seed: zero"), r"seed must be an int, got 'zero'"),
        (write("metrics.csv", b""), r"metrics\.csv must have a header, it is empty"),
        (change("metrics.csv", "val_accuracy_items", "val_items"), r"exactly one of the columns"),
        (change("metrics.csv", "train_loss", "loss"), r"must have one column train_loss, got 0"),
        (change("metrics.csv", "lr", "epoch"), r"must have one column epoch, got 2"),
        (change("metrics.csv", "\n2,", "\n3,"), r"line 3: epoch must be 2, got '3'"),
        (change("metrics.csv", "\n2,", "\n"), r"line 3: must have 10 fields, got 9"),
        (change("metrics.csv", "\n2,0.01", "\n2,high"), r"line 3: lr must be a number, got 'high'"),
        (write("result.json", b"{"), r"result\.json is no JSON file"),
        (write("result.json", b"[" * 100_000), r"result\.json is no JSON file"),
        (write("result.json", b"[]"), r"result\.json must hold an object, got list"),
        (change("result.json", '"accuracy"', '"f1"'), r"metric must be 'accuracy'.*got 'f1'"),
        (change("result.json", '"epochs": 2', '"epochs": 3'), r"is of 3 epochs, but .* has 2"),
        (change("result.json", '"epochs": 2', '"epochs": "2"'), r"epochs must be an int, got '2'"),
        (change("result.json", "100000", "true"), r"parameters must be an int, got True"),
        (change("result.json", '"best_epoch": 2', '"best_epoch": 3'), r"best_epoch must be in 1"),
        (change("result.json", '"best_epoch": 2', '"best_epoch": 0'), r"best_epoch must be in 1"),
        (change("result.json", '"seconds_per_epoch"', '"s"'), r"seconds_per_epoch must be"),
        (change("result.json", '"val"', '"valid"'), r"val\.last\.loss must be a number, got None"),
        (change("result.json", '"test"', '"tested"'), r"test\.last\.loss must be a number"),
        (change("result.json", '"items": 1.5', '"items": []'), r"test\.last\.items .*, got \[\]"),
    ],
)  # fmt: skip
def test_bad_folders(make_run: MakeRun, spoil: Callable[[Path], None], message: str) -> None:
    folder = make_run("a", "gcn", [1.0, 2.0], (2.5, 2.5, 1.5, 1.5), metric="accuracy")
    read_run(folder)
    spoil(folder)
    with pytest.raises(ValueError, match=message) as error:
        read_run(folder)
    assert str(folder) in str(error.value)


GOOD = {
    "config.yaml": "data: {name: X}\nmodel: {name: gcn}\nseed: 0\n",
    "metrics.csv": "epoch,lr,train_loss,train_f1_batches,train_f1_items,val_loss,val_f1_batches,"
    "val_f1_items,train_seconds,val_seconds\n1,1,1,1,1,1,1,1,1,1\n",
    "result.json": json.dumps(
        {"metric": "f1", "parameters": 1, "epochs": 1, "best_epoch": 1, "seconds_per_epoch": 1,
         "test": None}
        | {split: {when: {"loss": 1, "items": 1, "batches": 1} for when in ("last", "best")}
           for split in ("train", "val")}
    ),
}  # fmt: skip


@given(
    st.sampled_from(list(GOOD)),
    st.integers(0, 400),
    st.integers(0, 30),
    st.binary(max_size=12) | st.sampled_from([b"1e400", b"nan", b"{", b'"', b"\n", b"9" * 5000]),
)
def test_whatever_is_in_a_file(file: str, place: int, cut: int, put: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        for known, text in GOOD.items():
            (Path(name) / known).write_text(text)
        assert read_run(name).epochs == 1
        content = (Path(name) / file).read_bytes()
        (Path(name) / file).write_bytes(content[:place] + put + content[place + cut :])
        message = ""
        try:
            run = read_run(name)
        except ValueError as error:
            message = str(error)
        if message:
            assert name in message
        else:
            assert run.epochs == len(run.curve("val"))
            assert run.best_epoch is None or 1 <= run.best_epoch <= run.epochs

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import tiny

from fognn.models import TASKS
from fognn.training import networks as module
from fognn.training.networks import (
    read_checkpoint,
    rebuild,
    untrained_model,
    write_checkpoint,
)
from fognn.utils.errors import FileError

TASK = TASKS["cluster"]


class Malicious:
    """An object that runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def written(path: Path, **values: Any) -> Path:
    config = tiny(**values)
    net = untrained_model(config, TASK)
    if config.precision == "64-true":
        net.double()
    write_checkpoint(path, config, TASK, {"model": net.state_dict(), "epoch": 7})
    return path


def test_weights_come_from_the_seed_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first = untrained_model(tiny(seed=1), TASK).state_dict()
    assert torch.equal(torch.rand(2), expected), "the caller's random numbers are as they were"
    second, third = (
        untrained_model(tiny(seed=1), TASK).state_dict(),
        untrained_model(tiny(seed=2), TASK).state_dict(),
    )
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], third[name]) for name in first)


@pytest.mark.parametrize(
    ("precision", "dtype"), [("32-true", torch.float32), ("64-true", torch.float64)]
)
def test_roundtrip(tmp_path: Path, precision: str, dtype: torch.dtype) -> None:
    path = written(tmp_path / "new" / "last.ckpt", precision=precision, seed=4)
    content = read_checkpoint(path)
    assert content["epoch"] == 7
    net, config, task = rebuild(content)
    assert config == tiny(precision=precision, seed=4)
    assert task == TASK
    assert not net.training
    assert next(net.parameters()).dtype == dtype
    for name, value in net.state_dict().items():
        assert torch.equal(value, content["model"][name])
    x, edge_index = torch.randint(0, 7, (5,)), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    batch = torch.zeros(5, dtype=torch.long)
    assert net(x, edge_index, None, batch, 1).dtype == dtype


@pytest.mark.parametrize("form", ["torch", "old torch", "plain pickle"])
def test_a_malicious_file_is_refused_and_not_run(tmp_path: Path, form: str) -> None:
    path, mark = tmp_path / "last.ckpt", tmp_path / "hacked"
    content = {"format": module.FORMAT, "model": Malicious(mark)}
    if form == "plain pickle":
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "torch")
    with pytest.raises(FileError, match=r"last\.ckpt is truncated or corrupt"):
        read_checkpoint(path)
    assert not mark.exists()
    # The file is what it is meant to be: a reader that trusts it runs the command.
    if form == "torch":
        torch.load(path, weights_only=False)
        assert mark.exists()


@pytest.mark.parametrize("damage", ["half", "empty", "picture", "text", "other zip"])
def test_damage(tmp_path: Path, damage: str) -> None:
    path = written(tmp_path / "last.ckpt")
    whole = path.read_bytes()
    if damage == "other zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("hello.txt", "hello")
    else:
        texts = {"half": whole[: len(whole) // 2], "empty": b"", "picture": b"GIF89a"}
        path.write_bytes(texts.get(damage, b"hello world\n"))
    with pytest.raises(FileError, match=r"last\.ckpt is truncated or corrupt"):
        read_checkpoint(path)


def test_one_flipped_bit_in_the_weights_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path / "it.ckpt")
    with zipfile.ZipFile(path) as parts:
        largest = max(parts.infolist(), key=lambda part: part.file_size)
        assert largest.compress_type == zipfile.ZIP_STORED
    content = bytearray(path.read_bytes())
    content[largest.header_offset + 30 + len(largest.filename) + largest.file_size // 2 + 64] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(FileError, match="corrupt"):
        read_checkpoint(path)

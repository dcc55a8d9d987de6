import json
import shutil
from pathlib import Path

import pytest
import torch
from torch.nn import Linear

from fognn.models.hub_folder import check_folder, load_weights, move_into

OURS = {
    "library": "fognn", "version": "1", "name": "gcn", "task": None, "settings": {},
    "parameters": 3,
}  # fmt: skip


class Copy:
    """A file with it in copies a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return shutil.copyfile, (__file__, str(self.path))


def test_names_are_those_of_pyg() -> None:
    from torch_geometric.nn import model_hub

    from fognn.models import hub_folder

    assert model_hub.CONFIG_NAME == hub_folder.CONFIG
    assert model_hub.MODEL_WEIGHTS_NAME == hub_folder.WEIGHTS


def test_move_into_replaces_all_but_the_card(tmp_path: Path) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        for name in ("config.json", "model.pth", "README.md"):
            (tmp_path / folder / name).write_text(folder)
    move_into(tmp_path / "old", tmp_path / "new")
    words = {path.name: path.read_text() for path in (tmp_path / "old").iterdir()}
    assert words == {"config.json": "new", "model.pth": "new", "README.md": "old"}


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_move_that_is_cut_off_leaves_the_old_network_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    import os

    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(json.dumps(OURS | {"version": folder}))
        (tmp_path / folder / "model.pth").write_text(folder)
    (tmp_path / "new" / "README.md").write_text("new")
    moves, replace = [], os.replace

    def cut_off(*paths):
        moves.append(paths)
        if len(moves) > at:
            raise KeyboardInterrupt
        replace(*paths)

    monkeypatch.setattr(os, "replace", cut_off)
    with pytest.raises(KeyboardInterrupt):
        move_into(tmp_path / "old", tmp_path / "new")
    with pytest.raises(ValueError, match=r"must hold config\.json"):
        check_folder(tmp_path / "old")


@pytest.mark.parametrize("missing", ["config.json", "model.pth"])
def test_a_missing_file(tmp_path: Path, missing: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(OURS))
    (tmp_path / "model.pth").touch()
    check_folder(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(ValueError, match=f"must hold {missing}, as save_pretrained.*fognn.load"):
        check_folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no whole JSON file"),
        (json.dumps(OURS)[:-4], "is no whole JSON file"),
        ("\x00\xff", "is no whole JSON file"),
        ("[1, 2]", r"is not of fognn: it must have .*, got \[\]"),
        ('{"model_type": "bert", "hidden_size": 768}', r"got \['hidden_size', 'model_type'\]"),
        (json.dumps(OURS | {"library": "other"}), "is not of fognn"),
        (json.dumps(OURS | {"token": "x"}), "is not of fognn: .*, got .*'token'"),
        (json.dumps(OURS | {"settings": []}), "settings and task must be JSON objects"),
        (json.dumps(OURS | {"task": "zinc"}), "settings and task must be JSON objects"),
    ],
)
def test_a_config_of_another_program(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin1")
    (tmp_path / "model.pth").touch()
    with pytest.raises(ValueError, match=rf"config\.json.*{message}"):
        check_folder(tmp_path)


def weights() -> dict[str, torch.Tensor]:
    return {"weight": torch.ones(3, 2), "bias": torch.full((3,), 2.0)}


def test_weights(tmp_path: Path) -> None:
    net = Linear(2, 3)
    torch.save(weights(), tmp_path / "model.pth")
    load_weights(net, tmp_path / "model.pth")
    assert net(torch.ones(1, 2)).tolist() == [[4.0, 4.0, 4.0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"weight": torch.ones(3, 2)}, "missing bias; extra none; of another shape none"),
        (weights() | {"gate": torch.ones(1)}, "missing none; extra gate; of another shape none"),
        (weights() | {"bias": torch.ones(4)}, r"of another shape bias \[4\], not \[3\]"),
        (weights() | {str(i): torch.ones(1) for i in range(5)}, "extra 0, 1, 2 and 2 more"),
        ({}, "missing weight, bias; extra none"),
        ([torch.ones(3)], "must hold a dict of tensors, got list"),
        ({"weight": 3}, "must hold a dict of tensors, got dict"),
        (Linear(2, 3), r"no whole file of weights \(the file names torch\.nn.*Linear\)"),
    ],
)
def test_weights_of_another_network(tmp_path: Path, content: object, message: str) -> None:
    net = Linear(2, 3)
    before = net.weight.clone()
    torch.save(content, tmp_path / "model.pth")
    with pytest.raises(ValueError, match=rf"model\.pth.*{message}"):
        load_weights(net, tmp_path / "model.pth")
    assert torch.equal(net.weight, before)


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_weights_that_are_cut_off(tmp_path: Path, keep: float) -> None:
    torch.save(weights(), tmp_path / "model.pth")
    whole = (tmp_path / "model.pth").read_bytes()
    cut = whole[: int(keep * len(whole)) if isinstance(keep, float) else keep]
    (tmp_path / "model.pth").write_bytes(cut)
    with pytest.raises(ValueError, match=r"model\.pth is no whole file of weights"):
        load_weights(Linear(2, 3), tmp_path / "model.pth")


def test_weights_run_nothing(tmp_path: Path) -> None:
    torch.save({"weight": Copy(tmp_path / "made")}, tmp_path / "model.pth")
    with pytest.raises(ValueError, match=r"the file names shutil\.copyfile"):
        load_weights(Linear(2, 3), tmp_path / "model.pth")
    assert not (tmp_path / "made").exists()

import re
import shutil
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pickle import UnpicklingError

import pytest
import torch
from torch.serialization import get_safe_globals
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData

from fognn.utils.torch_files import RefusedNameError, load_torch


class Call:
    """An object that calls a function when it is unpickled."""

    def __init__(self, function, *args) -> None:
        self.call = function, args

    def __reduce__(self):
        return self.call


def test_tensors_and_plain_python(tmp_path: Path) -> None:
    content = OrderedDict(a=torch.arange(3), b=[1, 2.5, "c", None, (True, {"d": torch.ones(1)})])
    torch.save(content, tmp_path / "a.pt")
    found = load_torch(tmp_path / "a.pt")
    assert torch.equal(found["a"], content["a"])
    assert found["b"] == content["b"]
    assert load_torch(tmp_path / "a.pt", map_location="meta")["a"].is_meta


def test_names_are_refused_unless_they_are_given(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save([Call(Data)], path)
    with pytest.raises(RefusedNameError, match=r"names torch_geometric\.data\.data\.Data") as info:
        load_torch(path)
    assert info.value.name == "torch_geometric.data.data.Data"
    assert type(load_torch(path, [Data])[0]) is Data


def test_a_file_runs_nothing(tmp_path: Path) -> None:
    path, made = tmp_path / "a.pt", tmp_path / "made"
    torch.save([Call(shutil.copyfile, __file__, str(made))], path)
    with pytest.raises(RefusedNameError, match=r"shutil\.copyfile"):
        load_torch(path)
    assert not made.exists()
    torch.load(path, weights_only=False)
    assert made.exists()  # so the file does what the test is about


def test_a_file_has_pyg_run_no_second_file(tmp_path: Path) -> None:
    path, made = tmp_path / "a.pt", tmp_path / "made"
    (tmp_path / "part_1").mkdir()
    torch.save(Call(shutil.copyfile, __file__, str(made)), tmp_path / "part_1" / "metis.pt")
    graph = Call(Data, torch.ones(2, 1), torch.tensor([[0], [1]]))
    torch.save(Call(ClusterData, graph, 1, False, str(tmp_path)), path)
    # PyG holds both names for safe, and with torch.load(path, weights_only=True) PyG 2.8.1 runs it.
    assert {ClusterData, Data} <= set(get_safe_globals())
    with pytest.raises(RefusedNameError, match=r"torch_geometric\.loader\.cluster\.ClusterData"):
        load_torch(path)
    assert not made.exists()


def test_a_file_that_is_no_file_of_torch(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(b"PK")
    with pytest.raises(UnpicklingError, match="Unsupported operand 80") as caught:
        load_torch(tmp_path / "a.pt")
    assert "weights_only" not in str(caught.value), "torch's advice runs the file's code"
    with pytest.raises(FileNotFoundError):
        load_torch(tmp_path / "b.pt")


def test_a_damaged_file_in_the_old_form(tmp_path: Path) -> None:
    torch.save([torch.ones(3)], tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    content = (tmp_path / "a.pt").read_bytes()
    *_, key = re.finditer(rb"\d{8,}", content)  # the name of the tensor's storage
    at = key.start()
    (tmp_path / "a.pt").write_bytes(content[:at] + b"x" + content[at + 1 :])
    with pytest.raises(UnpicklingError, match=r"storage key '.*' not found"):
        load_torch(tmp_path / "a.pt")


def test_torchs_own_list_is_as_before(tmp_path: Path) -> None:
    torch.save([torch.ones(1)], tmp_path / "good.pt")
    torch.save([Call(Data)], tmp_path / "bad.pt")
    before = set(get_safe_globals())

    def load(name: str) -> int | None:
        try:
            return len(load_torch(tmp_path / name))
        except RefusedNameError:
            return None

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(load, ["good.pt", "bad.pt"] * 40)) == [1, None] * 40
    assert set(get_safe_globals()) == before
    assert Data in before

import sys
from pathlib import Path

import pytest

import fognn
from fognn.models.hosts import HOSTS
from fognn.utils.own_code import asked, import_asked, import_file

LAYERS = """
from torch_geometric.nn import TAGConv
from fognn.models import register_host

@register_host("imported")
def layer(in_channels, out_channels):
    return TAGConv(in_channels, out_channels, K=1)
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOGNN_IMPORT", "")
    monkeypatch.setitem(HOSTS, "imported", HOSTS["gcn"])
    monkeypatch.delitem(HOSTS, "imported")
    for name in [name for name in sys.modules if name.startswith("fognn_import_")]:
        monkeypatch.delitem(sys.modules, name)


def test_a_file_is_imported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_layers.py").write_text(LAYERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert asked() is None
    import_asked()
    assert "imported" not in HOSTS
    import_file("my_layers.py")
    assert "imported" in HOSTS
    assert asked() == str(tmp_path / "my_layers.py")
    import_asked()  # a second time, register_host would raise
    fognn.create_model("imported+fog", "zinc", channels=8)
    assert [path.name for path in tmp_path.iterdir()] == ["my_layers.py"]


@pytest.mark.parametrize("name", ["not_there.py", "layers.txt", "."])
def test_no_python_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "layers.txt").write_text(LAYERS)
    with pytest.raises(ValueError, match=rf"import must name a Python file .*{name}'"):
        import_file(tmp_path / name)


@pytest.mark.parametrize("code", ["1 / 0", "def", "import not_a_module", "raise SystemExit(3)"])
def test_a_file_that_raises(tmp_path: Path, code: str) -> None:
    (tmp_path / "layers.py").write_text(code)
    with pytest.raises(ValueError, match=r"layers\.py' must not raise, got \w+Err|got SystemExit"):
        import_file(tmp_path / "layers.py")
    assert asked() is None

"""The code of docs/data.md runs as it stands, from top to bottom."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("with_data", [True, False])
def test_the_code_of_the_page(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    with_data: bool,
) -> None:
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    if with_data:
        monkeypatch.setenv("FOGNN_DATA", str(request.getfixturevalue("real_data")))
    else:
        monkeypatch.delenv("FOGNN_DATA", raising=False)
    assert len(BLOCKS) == 6
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "docs/data.md", "exec"), names)

import json
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from wcag import contrast

import fognn.report.site_assets as site_assets
from fognn.report.site_assets import write_assets


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "assets"
    write_assets(folder)
    return folder


def test_all_is_there_and_small_enough(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert names == {"plotly.min.js", "tables.js", "tables.css", "site.css", "site.js", "theme.js"}
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8e6
    assert "plotly.js v" in (folder / "plotly.min.js").read_text(encoding="utf-8")[:200]


def test_nothing_is_loaded_from_elsewhere(folder: Path) -> None:
    for name in ("site.css", "tables.css"):
        text = (folder / name).read_text(encoding="utf-8")
        assert not re.findall(r"@import|url\(\s*['\"]?(?:https?:)?//", text), name


def test_the_module_of_tables_is_whole(folder: Path) -> None:
    text = (folder / "tables.js").read_text(encoding="utf-8")
    start, end = text.index("[") + 1, text.rindex("]")
    module = json.loads(text[start:end])
    assert module.encode() == site_assets._file("itables", "itables/html/dt_bundle.js")
    assert re.search(r"export\s*\{[^}]*as default", module)


@pytest.mark.parametrize("dark", [False, True])
def test_links_can_be_read(folder: Path, dark: bool) -> None:
    light_part, dark_part = (folder / "site.css").read_text(encoding="utf-8").split("@media", 1)
    part = dark_part.split("}")[0] if dark else light_part
    found = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-fA-F]{6});", part))
    assert contrast(found["link"], found["paper"]) > 4.5


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ImportError, match=r"itables .* has no itables/html/nothing\.js"):
        site_assets._file("itables", "itables/html/nothing.js")

    def none(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(site_assets, "distribution", none)
    with pytest.raises(ImportError, match=r"report needs plotly.*fognn\[report\]"):
        write_assets(tmp_path / "assets")

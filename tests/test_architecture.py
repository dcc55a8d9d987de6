"""The house of DESIGN.md: a room imports only from rooms above it."""

import ast
from pathlib import Path

import pytest

import fognn

PACKAGE = Path(fognn.__file__).parent
ROOMS = [
    "ops", "nn", "models", "datasets", "loader", "training", "paper", "sweep", "report", "cli",
]  # fmt: skip
# Above all rooms in the list, a room may name the ones that DESIGN.md forbids it by its contents:
FORBIDDEN = {
    "datasets": {"nn", "models"},  # a dataset knows no model
    "loader": {"nn", "models", "datasets"},  # the loader knows no dataset
    "models": {"datasets"},
}


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            pytest.fail(f"{path}: relative imports hide the room")
        if isinstance(node, ast.ImportFrom) and node.module == "fognn":
            found |= {alias.name for alias in node.names if alias.name in ROOMS}
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found |= {name.split(".")[1] for name in names if name.startswith("fognn.")}
    return found


FILES = sorted(p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE or p.stem in ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_imports_only_from_above(path: Path) -> None:
    room = room_of(path)
    assert room in ROOMS, f"{room} is no room of the house"
    above = set(ROOMS[: ROOMS.index(room) + 1]) - FORBIDDEN.get(room, set())
    below = imported_rooms(path) - above
    assert not below, f"{path.relative_to(PACKAGE)} imports {sorted(below)}"


def test_the_test_sees_a_wrong_import(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import fognn.models.registry\nfrom fognn import paper\nimport torch\n")
    assert imported_rooms(wrong) == {"models", "paper"}


def test_every_file_of_code_has_a_file_of_tests() -> None:
    tests = Path(__file__).parent
    missing = [
        str(path.relative_to(PACKAGE))
        for path in FILES
        if path.stem != "__init__"
        and not (tests / path.relative_to(PACKAGE).parent / f"test_{path.stem}.py").exists()
    ]
    assert not missing

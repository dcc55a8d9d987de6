"""A subpackage imports only from those above it, and has tests."""

import ast
from pathlib import Path

import pytest

import fognn

PACKAGE = Path(fognn.__file__).parent
SUBPACKAGES = [
    "utils", "ops", "nn", "models", "data", "training", "experiments", "report", "cli",
]  # fmt: skip
# Subpackages further up that must not be imported all the same:
FORBIDDEN = {"data": {"nn", "models"}}  # a dataset knows no model


def subpackage_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_subpackages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            pytest.fail(f"{path}: relative imports hide the subpackage")
        if isinstance(node, ast.ImportFrom) and node.module == "fognn":
            found |= {alias.name for alias in node.names if alias.name in SUBPACKAGES}
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found |= {name.split(".")[1] for name in names if name.startswith("fognn.")}
    return found


FILES = sorted(p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE or p.stem in SUBPACKAGES)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_subpackage_imports_only_from_above(path: Path) -> None:
    own = subpackage_of(path)
    assert own in SUBPACKAGES, f"{own} is not in the list of subpackages"
    above = set(SUBPACKAGES[: SUBPACKAGES.index(own) + 1]) - FORBIDDEN.get(own, set())
    below = imported_subpackages(path) - above
    assert not below, f"{path.relative_to(PACKAGE)} imports {sorted(below)}"


def test_a_wrong_import_is_seen(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import fognn.models.registry\nfrom fognn import report\nimport torch\n")
    assert imported_subpackages(wrong) == {"models", "report"}


@pytest.mark.parametrize("name", SUBPACKAGES)
def test_every_subpackage_has_tests(name: str) -> None:
    tests = Path(__file__).parent
    assert [*tests.glob(f"{name}/**/test_*.py"), *tests.glob(f"test_{name}.py")]

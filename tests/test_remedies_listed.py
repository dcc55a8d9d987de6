"""Each message of fognn that names a remedy is listed in ``remedies.yaml``, with the test that
follows the remedy or the reason why none does. A new message fails until it is listed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import fognn

TESTS = Path(__file__).parent
LISTED: dict[str, dict[str, list[str]]] = yaml.safe_load((TESTS / "remedies.yaml").read_text())
VERBS = (
    "remove|get|name|set|use|make|write|save|copy|put|give|take|try|train|resume|call|install|"
    "pip install|download|move|end|check|free|complete|number|clone|import|read|restore|unpack|"
    "start|pass|see|compare with|add|run|rename|replace|choose|lower"
)
# A verb at the beginning of a part of a sentence, an option, a command or a variable.
REMEDY = re.compile(
    rf"(?:^|[:;,] |\b(?:or|and|then) )(?:{VERBS})\b(?!: | (?:must|of|is|are|to line)\b)"
    r"|to resume|--[a-z]+[ )-]|: fognn |FOGNN_[A-Z]+[ =]"
)
# Texts that only say what an argument must be, and texts of pages, help and catalogs.
OTHER = re.compile(
    r"must .*got [^:;]*$|^--\S+ (?:must|is 0)|is (?:not )?set\)$|\n|^ZINC: free|:func:"
    r"|see (?:below|docs)|^The test split"
)


def texts(source: str) -> Iterator[str]:
    """All texts of a program but its docstrings and the help of its options."""
    tree = ast.parse(source)
    skip: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skip.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            skip |= {part for part in ast.walk(node) if part is not node}
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.startswith("typer.") and name != "typer.BadParameter":
                skip |= set(ast.walk(node))
    for node in set(ast.walk(tree)) - skip:
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def remedies(source: str) -> set[str]:
    return {
        f"^{text}$"
        for text in texts(source)
        if text.count(" ") > 1 and REMEDY.search(text) and not OTHER.search(text)
    }


def test_each_remedy_is_listed() -> None:
    files = Path(fognn.__file__).parent.rglob("*.py")
    found = set().union(*(remedies(path.read_text()) for path in files))
    lines = [line for tests in LISTED.values() for some in tests.values() for line in some]
    wrong = [line for line in lines if sum(line in text for text in found) != 1]
    assert wrong == [], "each must be a part of one message"
    new = sorted(text for text in found if not any(line in text for line in lines))
    assert new == [], "follow the remedy in a test, and list it in remedies.yaml"


@pytest.mark.parametrize("file", sorted(LISTED.keys() - {"not followed"}))
def test_each_test_is_there(file: str) -> None:
    text = (TESTS / file).read_text()
    assert [name for name in LISTED[file] if f"def {name}(" not in text] == []


def test_what_is_found() -> None:
    source = '''
def load(path):
    """Remove the file and try again."""
    if path:
        raise ValueError(f"{path} is damaged: remove it and try again")
    warnings.warn("it is slow, and --threads 1 may be faster")
    raise ValueError(f"path must be a file, got {path!r}")
'''
    assert remedies(source) == {
        "^{} is damaged: remove it and try again$",
        "^it is slow, and --threads 1 may be faster$",
    }

"""The documentation: its code runs, its commands exist, its links hold, and it builds strictly."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import SkipTest

import pytest
import typer
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser
from typer.testing import CliRunner

from fognn.cli import app
from fognn.training.config import setting_name

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "docs" / "api" / "index.md",
]
COMMAND = typer.main.get_command(app)
USAGE_ERROR = typer.BadParameter.__base__  # click's, or that of the click that typer brings
QUICK = [
    "fognn data",
    "fognn info",
    "fognn models '*fog*'",
    "fognn table claims",
    "fognn table rates",
    "fognn table zinc",
    "fognn table zinc --markdown --at best",
]


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


# Python blocks


def run_python(path: Path, slow: bool) -> None:
    """Runs the python blocks of a page in order, in one namespace."""
    document = Sybil([PythonCodeBlockParser(), SkipParser()]).parse(path)
    document.namespace["slow"] = slow
    for example in document.examples():
        try:
            example.evaluate()
        except SkipTest:
            continue


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Downloads, whole datasets: with the slow tests.
LARGE = {"docs/data.md"}


@pytest.mark.parametrize(
    "path", [path for path in PAGES if page_id(path) not in LARGE], ids=page_id
)
@pytest.mark.usefixtures("empty_folder")
def test_python_blocks_run(path: Path) -> None:
    run_python(path, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=page_id)
@pytest.mark.usefixtures("real_data")
def test_all_python_blocks_run(path: Path, empty_folder: Path) -> None:
    lines = ["smiles,solubility", *(f"{'C' * n}O,{n / 10}" for n in range(1, 21))]
    (empty_folder / "my_molecules.csv").write_text("\n".join(lines) + "\n")
    run_python(path, slow=True)


# Commands


def commands(path: Path) -> Iterator[str]:
    """The lines of the bash blocks of a page, without comments."""
    document = Sybil([CodeBlockParser(language="bash", evaluator=lambda _: None)]).parse(path)
    for example in document.examples():
        # A line that ends in a backslash goes on in the next one.
        for line in example.parsed.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield shlex.join(words)


def check_command(line: str) -> None:
    """Raises if a command of ours does not exist, or does not have these arguments."""
    words = shlex.split(line.partition(" '>' ")[0])
    while words and "=" in words[0]:  # VARIABLE=value fognn ...
        words.pop(0)
    if words[:1] == ["torchrun"]:
        words = words[words.index("-m") + 1 :]
    program, *arguments = words
    if program == "fognn":
        check_arguments(COMMAND, "fognn", arguments)
    elif program == "make":
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert {word for word in arguments if "=" not in word} <= targets, line
    elif program.endswith("python") and arguments[0] != "-m":
        assert (ROOT / arguments[0]).is_file(), line
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for asked in re.findall(r"\[(.+?)\]", line):
            assert set(asked.split(",")) <= extras["optional-dependencies"].keys(), line


def check_arguments(command: Any, name: str, arguments: list[str]) -> None:
    context = command.make_context(name, arguments.copy())
    for change in context.params.get("change") or ():  # --set model.h1=8
        setting_name(change.partition("=")[0])
    if hasattr(command, "resolve_command"):  # a group
        rest = [*context._protected_args, *context.args]
        sub_name, sub, sub_arguments = command.resolve_command(context, rest)
        assert sub is not None
        check_arguments(sub, f"{name} {sub_name}", sub_arguments)


COMMANDS = sorted({line for path in PAGES for line in commands(path)})


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_docs_exists(line: str) -> None:
    check_command(line)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("fognn trian zinc gcn", "trian"),
        ("fognn train zinc gcn --lerning-rate 1", "--lerning-rate"),
        ("fognn reproduce zinc --seeds many", "integer"),
    ],
)
def test_a_wrong_command_is_seen(line: str, match: str) -> None:
    with pytest.raises(USAGE_ERROR, match=match):
        check_command(line)


def test_a_wrong_setting_is_seen() -> None:
    with pytest.raises(ValueError, match=r"training\.rate"):
        check_command("fognn train zinc gcn --set training.rate=1")


@pytest.mark.parametrize("line", QUICK)
def test_a_quick_command_runs(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert line in COMMANDS
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output


# Links

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """As GitHub and mkdocs make them, of headings without formatting."""
    found = HEADING.findall(path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in found}


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(path.read_text(encoding="utf-8")):
        if link.startswith(("http:", "https:")):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), f"{page_id(path)}: {link}"
        if anchor and target.parent.name != "api":  # those come from docstrings: mkdocs checks them
            assert anchor in anchors(target), f"{page_id(path)}: {link}"


def test_no_page_names_a_path_of_a_machine() -> None:
    for path in [*PAGES, *(ROOT / "docs" / "tutorials").glob("*.ipynb")]:
        assert not re.search(r"/(home|root|work|Users)/", path.read_text(encoding="utf-8")), path


# The hooks


def hook(name: str) -> ModuleType:
    spec = spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PATHS = {"FOG": "fognn.nn.FOG", "train": "fognn.experiments.train"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":obj:`FOG`", "`FOG`"),
        (":class:`~fognn.nn.FOG`", "[`FOG`][fognn.nn.FOG]"),
        (":func:`fognn.train`", "`fognn.train`"),
        (":class:`~torch.nn.Module`", "`Module`"),
        (":math:`C_{h1}\n    \\otimes b`", r"$C_{h1} \otimes b$"),
        ("``x = 1``", "`x = 1`"),
        (
            ".. math::\n    a &= b\n\n    c &= d\n\nMore.\n",
            "\n$$\n\\begin{split} a &= b \\\\ c &= d \\end{split}\n$$\n\nMore.\n",
        ),
        (
            "Example::\n\n    x = 1\n\n    y = 2\n",
            "Example:\n\n```python\nx = 1\n\ny = 2\n```\n\n",
        ),
    ],
)
def test_sphinx_roles_become_markdown(text: str, expected: str) -> None:
    assert hook("sphinx_roles").to_markdown(text, PATHS) == expected


def test_latex_becomes_mathml() -> None:
    to_mathml = hook("mathematics").to_mathml
    inline = to_mathml('<p>a <span class="arithmatex">\\(x &lt; \\tilde{h}\\)</span> b</p>')
    assert inline.startswith("<p>a <math")
    assert 'display="inline"' in inline
    assert "&lt;" in inline.replace("&#x0003C;", "&lt;")
    assert 'display="block"' in to_mathml('<div class="arithmatex">\\[\na\n\\]</div>')
    assert to_mathml("<p>plain</p>") == "<p>plain</p>"
    for unknown in (r"\begin{aligned} a &= b \end{aligned}", r"\nonsense{x}"):
        with pytest.raises(ValueError, match="latex2mathml does not know"):
            to_mathml(f'<div class="arithmatex">\\[{unknown}\\]</div>')


# The site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Not with --quiet: warnings that are not printed are not counted, and --strict has no effect.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_builds_strictly(site: Path) -> None:
    for name in ("index", "how_fog_works", "results", "api/nn", "tutorials/cora", "contributing"):
        assert (site / f"{name}.html").is_file()


def test_the_site_fetches_nothing(site: Path) -> None:
    fetched = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(https?:)?//[^"]*"')
    for page in site.rglob("*.html"):
        assert not fetched.search(page.read_text(encoding="utf-8")), page.relative_to(site)


def test_the_api_pages_have_all_public_names(site: Path) -> None:
    import fognn.experiments
    import fognn.nn
    import fognn.ops

    for package in (fognn.nn, fognn.ops, fognn.experiments):
        page = (site / "api" / f"{package.__name__.rpartition('.')[2]}.html").read_text()
        for name in filter(lambda name: callable(getattr(package, name)), package.__all__):
            assert f'id="{package.__name__}.{name}"' in page
    assert not re.search(r":(class|obj|func|meth|math):", page)


def test_formulas_are_mathml(site: Path) -> None:
    for name in ("how_fog_works", "api/nn"):
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert "<math" in page
        assert "arithmatex" not in page

"""``fognn predict --support DIR --query IMAGE``, as a user runs it."""

import shutil
from functools import partial
from pathlib import Path

import pytest
from command_line import Run
from own_images import untrained_few_shot, write_image, write_support

pytest.importorskip("PIL.Image")
IMAGES = ["--support", "support", "--query", "queries"]
NAMES = ("a bird", "bear", "cat", "dog", "fish")


@pytest.fixture
def run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """In a folder with a network, a support set and queries."""
    monkeypatch.chdir(tmp_path)
    untrained_few_shot(tmp_path / "net.ckpt")
    write_support(tmp_path / "support", dict.fromkeys(NAMES, 1))
    for name in ("2.png", "3.jpg", "1.webp"):
        write_image(tmp_path / "queries" / name, 50)
    return partial(run, "predict", "net.ckpt")


def files() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


def test_a_line_for_each_query(run: Run) -> None:
    before = files()
    done = run(*IMAGES)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["1.webp", "2.png", "3.jpg"]
    places = [lines[0].index(name) for name in NAMES]
    assert places == sorted(places)
    for line in lines[2:]:
        assert sum(map(float, line.split()[-5:])) == pytest.approx(1, abs=0.01)
    assert files() == before


def test_files_are_written(run: Run) -> None:
    before = files()
    done = run(*IMAGES, "-o", "new/answers.csv")
    assert done.returncode == 0, done.stderr
    assert sorted(files()) == sorted([*before, "new/answers.csv"])
    lines = Path("new/answers.csv").read_text().splitlines()
    assert lines[0] == ",".join(["query", "class", *(f"probability_{name}" for name in NAMES)])


def test_one_image_and_fewer_classes_than_in_the_training(run: Run) -> None:
    shutil.rmtree("support/fish")
    done = run("--support", "support", "--query", "queries/2.png")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize(
    "arguments", [[], IMAGES[:2], IMAGES[2:], ["graphs.npz", *IMAGES]], ids=" ".join
)
def test_wrong_usage(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--support" in done.stderr


def text_file() -> None:
    Path("support/cat/notes.txt").write_text("a cat\n")


def broken() -> None:
    path = Path("support/dog/0.png")
    path.write_bytes(path.read_bytes()[:60])


def empty() -> None:
    Path("support/fish/0.png").unlink()


def no_queries() -> None:
    shutil.rmtree("queries")
    Path("queries/deeper").mkdir(parents=True)


def missing() -> None:
    shutil.rmtree("support")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (text_file, "support/cat/notes.txt"),
        (broken, "support/dog/0.png"),
        (empty, "support"),
        (no_queries, "query"),
        (missing, "support"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(run: Run, change, message: str) -> None:
    change()
    before = files()
    done = run(*IMAGES, "-o", "answers.csv")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fognn: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert files() == before


def test_graphs_for_a_few_shot_network(run: Run) -> None:
    Path("m.csv").write_text("smiles\nCCO\n")
    done = run("m.csv", "-o", "a.csv")
    assert (done.returncode, done.stdout) == (1, "")
    assert "few-shot" in done.stderr
    assert not Path("a.csv").exists()

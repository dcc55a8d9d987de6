"""``fognn predict --support DIR --query IMAGE``, as a user runs it."""

import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from command_line import Run
from own_images import untrained_few_shot, write_image, write_support
from tiny_runs import molecules

from fognn.experiments import protocol
from fognn.training import fit

pytest.importorskip("PIL.Image")
IMAGES = ["--support", "support", "--query", "queries"]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with networks of images and of graphs, a support set and queries."""
    folder = tmp_path_factory.mktemp("few-shot")
    untrained_few_shot(folder / "net.ckpt")
    write_support(folder / "support", {"cat": 1, "dog": 1, "bird 10": 1, "bird 9": 1, "fish": 1})
    for name in ("2.png", "10.jpg", "1.webp"):
        write_image(folder / "queries" / name, 50)
    torch.save(molecules(12), folder / "graphs.pt")
    values = {"training.epochs": 1, "model.channels": 8, "machine.threads": 1}
    fit(protocol(str(folder / "graphs.pt"), "gcn", 0, values), folder / "graphs", quiet=True)
    return folder


@pytest.fixture
def run(run: Run, once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    shutil.copytree(once, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return partial(run, "predict")


def files() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


def test_a_line_for_each_query(run: Run) -> None:
    before = files()
    done = run("net.ckpt", *IMAGES)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split("  ")[0] == "query"
    assert [line.split()[0] for line in lines[2:]] == ["1.webp", "2.png", "10.jpg"]
    places = [lines[0].index(name) for name in ("bird 9", "bird 10", "cat", "dog", "fish")]
    assert places == sorted(places)
    for line in lines[2:]:
        assert sum(map(float, line.split()[-5:])) == pytest.approx(1, abs=0.01)
    assert files() == before


def test_files_are_written(run: Run) -> None:
    before = files()
    done = run("net.ckpt", *IMAGES, "-o", "new/answers.csv", "--html", "answers.html")
    assert done.returncode == 0, done.stderr
    ends = ["new/answers.csv: 3 predictions", "answers.html: 3 predictions"]
    assert done.stdout.splitlines()[-2:] == ends
    assert sorted(files()) == sorted([*before, "new/answers.csv", "answers.html"])
    lines = Path("new/answers.csv").read_text().splitlines()
    names = ("bird 9", "bird 10", "cat", "dog", "fish")
    assert lines[0] == ",".join(["query", "class", *(f"probability_{name}" for name in names)])
    assert [line.split(",")[0] for line in lines[1:]] == [
        *("queries/1.webp", "queries/2.png", "queries/10.jpg")
    ]
    assert Path("answers.html").read_text().count("<figure>") == 3


def test_one_image_and_what_differs_from_the_training(run: Run) -> None:
    shutil.rmtree("support/fish")
    write_image(Path("support/cat/more.png"), 5)
    done = run("net.ckpt", "--support", "support", "--query", "queries/2.png")
    assert done.returncode == 0
    first, second, *table = done.stdout.splitlines()
    assert first.startswith("trained for 5 classes, got 4: ")
    assert second.startswith("trained with 1 image of each class, got 1 to 2: ")
    assert len(table) == 3


def test_graphs_as_before(run: Run) -> None:
    done = run("graphs", "graphs.pt", "-o", "out.csv")
    assert done == (0, "out.csv: 12 predictions\n", "")
    assert len(Path("out.csv").read_text().splitlines()) == 13


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.ckpt"], "INPUT must be given for graphs, --support and --query for images"),
        (["graphs"], "INPUT must be given for graphs, --support and --query for images"),
        (["graphs", "graphs.pt"], "--output must be given for graphs"),
        (["net.ckpt", "--support", "support"], "--query must be given for images"),
        (["net.ckpt", "--query", "queries"], "--support must be given for images"),
        (["net.ckpt", "--html", "a.html"], "--support must be given for images"),
        (["net.ckpt", "graphs.pt", *IMAGES], "INPUT is for graphs"),
        (["graphs", "graphs.pt", "-o", "a.csv", "--html", "a.html"], "INPUT is for graphs"),
        (["net.ckpt", *IMAGES, "--skip-bad"], "--skip-bad is for graphs"),
        (["net.ckpt", *IMAGES, "--smiles-column", "x"], "--smiles-column is for graphs"),
    ],
)
def test_wrong_usage(run: Run, arguments: list[str], message: str) -> None:
    before = files()
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert files() == before


def text_file() -> None:
    Path("support/cat/notes.txt").write_text("a cat\n")


def text_query() -> None:
    Path("queries/notes.txt").write_text("a cat\n")


def broken() -> None:
    path = Path("support/dog/0.png")
    path.write_bytes(path.read_bytes()[:60])


def empty() -> None:
    Path("support/fish/0.png").unlink()


def one_class() -> None:
    for path in Path("support").iterdir():
        if path.name != "cat":
            shutil.rmtree(path)


def loose() -> None:
    write_image(Path("support/loose.png"))


def no_classes() -> None:
    shutil.rmtree("support")
    Path("support").mkdir()


def no_queries() -> None:
    shutil.rmtree("queries")
    Path("queries/deeper").mkdir(parents=True)


def missing() -> None:
    shutil.rmtree("support")


def more_classes() -> None:
    write_support(Path("support"), {"cow": 1})


def page_is_a_folder() -> None:
    Path("answers.html").mkdir()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (text_file, "support/cat/notes.txt must be an image"),
        (text_query, "queries/notes.txt must be an image"),
        (broken, "support/dog/0.png is not a whole image"),
        (empty, "support/fish must hold the images of its class"),
        (one_class, "support must have 2 to 20 classes, one subfolder for each, got 1 in"),
        (loose, "support/loose.png is not in the subfolder of a class"),
        (no_classes, "support must hold one subfolder for each class, support has none"),
        (no_queries, "query must hold images, queries has none (its subfolders are not read)"),
        (missing, "support must name an existing folder, got 'support'"),
        (more_classes, "support must have at most 5 classes"),
        (page_is_a_folder, "html must be a file to write, got the folder 'answers.html'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(run: Run, change, message: str) -> None:
    change()
    before = files()
    done = run("net.ckpt", *IMAGES, "-o", "answers.csv", "--html", "answers.html")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fognn: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert files() == before


def test_a_network_of_another_kind(run: Run) -> None:
    done = run("graphs", *IMAGES)
    assert done.returncode == 1
    assert "run must be of a few-shot network, which takes support and query" in done.stderr
    done = run("net.ckpt", "graphs.pt", "-o", "a.csv")
    assert done.returncode == 1
    assert "run must not be of a few-shot network, which classifies images" in done.stderr
    assert not Path("a.csv").exists()

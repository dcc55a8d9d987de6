from pathlib import Path

import pytest
import torch
from own_images import untrained_few_shot, write_image, write_support
from tiny_runs import tiny

from fognn.data import read_image
from fognn.training import fit, load, predict_images
from fognn.utils.errors import FileError

Image = pytest.importorskip("PIL.Image")
FIVE = {"a": 2, "b": 2, "c": 2, "d": 2, "e": 2}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a network for 5 classes of 2 images, a support set and queries."""
    folder = tmp_path_factory.mktemp("images")
    untrained_few_shot(folder / "net.ckpt", data__k_shot=2)
    write_support(folder / "support", FIVE)
    for number in range(7):
        write_image(folder / "queries" / f"{number}.png", 100 + number)
    return folder


def by_hand(
    run: Path, support: Path, labels: dict[str, int], query: Path, size: int = 32, channels: int = 3
) -> torch.Tensor:
    """The logits of the network alone, with one query."""
    net = load(run)
    dtype = next(net.parameters()).dtype
    files = [path for name in labels for path in sorted((support / name).iterdir())]
    images = torch.stack([read_image(path, size, channels) for path in files]).to(dtype) / 255
    numbers = torch.tensor([labels[path.parent.name] for path in files])
    with torch.no_grad():
        image = read_image(query, size, channels).to(dtype) / 255
        return net(images[None], numbers[None], image[None])[0]


def test_as_the_network_says_image_by_image(place: Path) -> None:
    found = predict_images(place / "net.ckpt", place / "support", place / "queries", batch_size=3)
    assert found.names == tuple(FIVE)
    queries = [place / "queries" / f"{number}.png" for number in range(7)]
    assert found.places == {"query": list(map(str, queries))}
    labels = {name: number for number, name in enumerate(FIVE)}
    for at, query in enumerate(queries):
        expected = by_hand(place / "net.ckpt", place / "support", labels, query).softmax(0)
        torch.testing.assert_close(
            torch.tensor(found.probabilities[at]), expected, rtol=1e-4, atol=1e-5
        )
        assert found.values[at] == found.names[int(expected.argmax())]
    assert found.probabilities.std(0).max() > 1e-3, "an answer that is always the same"


def test_fewer_classes_than_trained_for(place: Path, tmp_path: Path) -> None:
    write_support(tmp_path, {"x": 2, "y": 2, "z": 2})
    found = predict_images(place / "net.ckpt", tmp_path, place / "queries")
    assert found.probabilities.shape == (7, 3)
    torch.testing.assert_close(torch.tensor(found.probabilities.sum(1)), torch.ones(7))
    logits = by_hand(
        place / "net.ckpt", tmp_path, {"x": 0, "y": 1, "z": 2}, place / "queries" / "0.png"
    )
    assert logits.shape == (5,)
    torch.testing.assert_close(
        torch.tensor(found.probabilities[0]), logits[:3].softmax(0), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("images", [[1, 2, 4, 2, 2], [1] * 5])
def test_other_numbers_of_images(place: Path, tmp_path: Path, images: list[int]) -> None:
    write_support(tmp_path, dict(zip(FIVE, images, strict=True)))
    found = predict_images(place / "net.ckpt", tmp_path, place / "queries" / "0.png")
    labels = {name: number for number, name in enumerate(FIVE)}
    expected = by_hand(place / "net.ckpt", tmp_path, labels, place / "queries" / "0.png")
    torch.testing.assert_close(
        torch.tensor(found.probabilities[0]), expected.softmax(0), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("classes", [1, 7])
def test_another_number_of_classes(place: Path, tmp_path: Path, classes: int) -> None:
    write_support(tmp_path, {str(number): 1 for number in range(classes)})
    with pytest.raises(ValueError, match=rf"support must have 2 to 5 .*n_way.* got {classes}"):
        predict_images(place / "net.ckpt", tmp_path, place / "queries")


def test_wrong_arguments(place: Path, tmp_path: Path) -> None:
    run, support, queries = place / "net.ckpt", place / "support", place / "queries"
    with pytest.raises(ValueError, match=r"batch_size must be .* got 0"):
        predict_images(run, support, queries, batch_size=0)
    with pytest.raises(ValueError, match=r"device must be one that this machine has .* got 'tpu'"):
        predict_images(run, support, queries, device="tpu")
    with pytest.raises(ValueError, match="threads"):
        predict_images(run, support, queries, threads=0)
    with pytest.raises(ValueError, match="run must be a run folder or a checkpoint"):
        predict_images(tmp_path, support, queries)
    with pytest.raises(FileError, match=r"support must name a folder .*none"):
        predict_images(run, tmp_path / "none", queries)
    with pytest.raises(FileError, match=r"query must name .*none"):
        predict_images(run, support, tmp_path / "none")
    fit(tiny(training__epochs=1), tmp_path / "graphs", quiet=True)
    with pytest.raises(ValueError, match=r"run must be of a few-shot network.*got '.*graphs'"):
        predict_images(tmp_path / "graphs", support, queries)

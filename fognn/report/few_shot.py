r"""The answers of a few-shot network for a user's own images: a table, a csv file and a page."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from fognn.experiments.wording import pluralize
from fognn.report.pages import save_page
from fognn.report.text import shortened, text_table
from fognn.training.few_shot_prediction import FewShotPrediction
from fognn.utils.files import user_path, write_whole

__all__ = ["prediction_table", "write_prediction"]

_LONGEST = 40  # characters of a name that are shown
_SHOWN = 10  # images of a class


def prediction_table(found: FewShotPrediction) -> str:
    r"""Returns a table of plain text with a line for each query: the file, its class, and the
    probability of each class."""
    header = ["query", "class", *(shortened(name, _LONGEST) for name in found.classes)]
    rows = [
        [shortened(path.name, _LONGEST), best, *(f"{value:.3f}" for value in values)]
        for path, best, values in _answers(found)
    ]
    return text_table(header, rows, right=range(2, len(header)))


def write_prediction(
    found: FewShotPrediction, csv: str | Path | None = None, html: str | Path | None = None
) -> None:
    r"""Writes the answers to files.

    Args:
        found (FewShotPrediction): The answers.
        csv (str, optional): The csv file. (default: none)
        html (str, optional): The page, which shows each query beside its support set, as the
            network got them, and needs no other file. (default: none)
    """
    paths = {name: user_path(p) for name, p in (("csv", csv), ("html", html)) if p is not None}
    given = {path.resolve() for path in (*found.queries, *found.support)}
    for name, path in paths.items():
        if path.resolve() in given:
            raise ValueError(f"{name} must be another file than the images, got {str(path)!r}")
    if "csv" in paths:
        with write_whole(paths["csv"]) as temporary:
            temporary.write_text(found.to_csv(), encoding="utf-8", newline="")
    if "html" in paths:
        save_page(paths["html"], "few_shot", **_context(found))


def _answers(found: FewShotPrediction) -> Iterator[tuple[Path, str, list[float]]]:
    return zip(found.queries, found.predicted, found.probabilities.tolist(), strict=True)


def _context(found: FewShotPrediction) -> dict[str, object]:
    supports = []
    for label, name in enumerate(found.classes):
        chosen = (found.support_labels == label).nonzero().flatten().tolist()
        images = [_data(found.support_images[at]) for at in chosen[:_SHOWN]]
        supports.append({"name": name, "images": images, "more": len(chosen) - len(images)})
    queries = [
        {
            "file": path.name,
            "best": best,
            "image": _data(image),
            "rows": list(zip(found.classes, values, strict=True)),
        }
        for (path, best, values), image in zip(_answers(found), found.query_images, strict=True)
    ]
    counts = f"{pluralize(len(queries), 'image')} and {len(supports)} classes"
    return {
        "title": "Classified images",
        "notes": [f"{counts}, as the network got them.", *found.notes],
        "supports": supports,
        "queries": queries,
    }


def _data(image: Tensor) -> str:
    from PIL import Image

    # Of a drawing, ink is 255; it is shown dark.
    pixels = 255 - image[0] if image.size(0) == 1 else image.permute(1, 2, 0).contiguous()
    out = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(out, "PNG")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode('ascii')}"

r"""The answers of a few-shot network for a user's own images: a table, a csv file and a page."""

import base64
import io
from collections.abc import Iterator
from contextlib import ExitStack
from html import escape
from pathlib import Path

from torch import Tensor

from fognn.data.few_shot import image_module
from fognn.data.image_files import printable
from fognn.report.drawings.page import page
from fognn.report.text import capital, many, shortened, text_table
from fognn.training.few_shot_prediction import FewShotPrediction
from fognn.utils.files import user_path, write_whole

__all__ = ["prediction_page", "prediction_table", "write_prediction"]

_LONGEST = 40  # characters of a name that are shown
_SHOWN = 10  # images of a class
_STYLE = """
.image { display: inline-block; background-size: 100% 100%; width: 3rem; height: 3rem;
         border: 1px solid var(--rule); print-color-adjust: exact; }
.query { width: 8rem; height: 8rem; }
.panels figure { display: flex; flex-wrap: wrap; gap: 1rem; align-items: start; }
.panels figure > div:first-child { width: 8rem; overflow-wrap: anywhere; }
.answer th, .answer td { vertical-align: middle; text-align: left; padding: .2rem .8rem .2rem 0; }
.answer td { white-space: normal; max-width: 18rem; overflow-wrap: anywhere; }
.answer td:last-child { text-align: right; white-space: nowrap; padding-right: 0; }
.answer tr:last-child td { border: 0; }
.answer td:nth-child(3) { width: 8rem; }
.bar { height: .8rem; background: var(--line-0); print-color-adjust: exact; }
.answer .best { font-weight: bold; }
@media (max-width: 40rem) { .answer td:nth-child(3) { width: 20%; } }
"""


def prediction_table(found: FewShotPrediction) -> str:
    r"""Returns a table of plain text with a line for each query: the file, its class, and the
    probability of each class."""
    header = ["query", "class", *(shortened(name, _LONGEST) for name in found.classes)]
    rows = [
        [_name(path), shortened(best, _LONGEST), *(f"{value:.3f}" for value in values)]
        for path, best, values in _answers(found)
    ]
    return text_table(header, rows, right=range(2, len(header)))


def _answers(found: FewShotPrediction) -> Iterator[tuple[Path, str, list[float]]]:
    return zip(found.queries, found.predicted, found.probabilities.tolist(), strict=True)


def _name(path: Path) -> str:
    return shortened(printable(path.name), _LONGEST)


def write_prediction(
    found: FewShotPrediction, csv: str | Path | None = None, html: str | Path | None = None
) -> None:
    r"""Writes the answers to files: both whole, or none.

    Args:
        found (FewShotPrediction): The answers.
        csv (str, optional): The csv file. (default: none)
        html (str, optional): The page. (default: none)
    """
    paths = {name: user_path(p) for name, p in (("csv", csv), ("html", html)) if p is not None}
    given = {path.resolve() for path in (*found.queries, *found.support)}
    for name, path in paths.items():
        if path.is_dir():
            raise ValueError(f"{name} must be a file to write, got the folder {str(path)!r}")
        if path.resolve() in given:
            raise ValueError(f"{name} must be another file than the images, got {str(path)!r}")
    if len({path.resolve() for path in paths.values()}) < len(paths):
        raise ValueError(f"html must be another file than csv, got {str(html)!r}")
    makers = {"csv": found.to_csv, "html": lambda: prediction_page(found)}
    texts = {path: makers[name]() for name, path in paths.items()}
    with ExitStack() as stack:
        for path, text in texts.items():
            temporary = stack.enter_context(write_whole(path))
            temporary.write_text(text, encoding="utf-8", newline="")


def prediction_page(found: FewShotPrediction) -> str:
    r"""Returns the text of a page that shows each query beside its support set: the images as the
    network got them, and the probability of each class. The page needs no other file."""
    style = [_STYLE]
    supports = [_support(found, number, name, style) for number, name in enumerate(found.classes)]
    figures = []
    images = zip(_answers(found), found.query_images, strict=True)
    for (path, best, values), image in images:
        rows = "".join(
            f"<tr{' class=best' * (name == best)}><td>{escape(shortened(name, _LONGEST))}</td>"
            f'<td>{shown}</td><td><div class="bar" style="width: {value:.1%}"></div></td>'
            f"<td>{value:.1%}</td></tr>\n"
            for name, shown, value in zip(found.classes, supports, values, strict=True)
        )
        caption = escape(printable(path.name))
        figures.append(
            f'<figure><div><img class="image query" alt="{caption}" src="{_data(image)}">'
            f"<figcaption>{caption}: <strong>{escape(best)}</strong></figcaption></div>\n"
            f'<table class="answer"><tbody>\n{rows}</tbody></table></figure>\n'
        )
    queries, classes = many(len(found.queries), "image"), len(found.classes)
    note = f"{queries}, each beside the images of the {classes} classes, as the network got them."
    notes = "".join(f" {capital(text)}." for text in found.notes)
    return page("Classified images", note + notes, "", figures, "".join(style))


def _support(found: FewShotPrediction, number: int, name: str, style: list[str]) -> str:
    r"""Returns the images of a class in HTML, and adds them to the style sheet, so that they are
    in the page only once."""
    chosen = (found.support_labels == number).nonzero().flatten().tolist()
    shown = ""
    for at in chosen[:_SHOWN]:
        style.append(f".s{at} {{ background-image: url({_data(found.support_images[at])}); }}\n")
        title = escape(f"{name}: {printable(found.support[at].name)}")
        shown += (
            f'<span class="image s{at}" role="img" aria-label="{title}" title="{title}"></span>'
        )
    more = len(chosen) - _SHOWN
    return shown + (f" and {more} more" if more > 0 else "")


def _data(image: Tensor) -> str:
    pillow = image_module("prediction_page")
    # Of a drawing, ink is 255; it is shown dark.
    drawing = image.size(0) == 1
    pixels = 255 - image[0] if drawing else image.permute(1, 2, 0).contiguous()
    out = io.BytesIO()
    kind, options = ("png", {"optimize": True}) if drawing else ("jpeg", {"quality": 90})
    pillow.fromarray(pixels.numpy()).save(out, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode('ascii')}"

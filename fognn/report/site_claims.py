r"""The claims of the paper's text, as data."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["Claim", "claims"]


@dataclass(frozen=True)
class Claim:
    r"""Something that the paper says and a measurement can contradict.

    A network is named by its path: ``"zinc/ZINC/GCN+FOG"``, and with the number of its parameters
    where a table has it more than once, ``"widths/ZINC/GCN+FOG/25847"``.

    Args:
        text (str): The claim.
        quote (str): The paper's words.
        pairs (tuple): Networks that the paper says are better, each with the one that it is
            better than.
    """

    text: str
    quote: str
    pairs: tuple[tuple[str, str], ...]

    @property
    def table(self) -> str:
        r"""The table that it is about."""
        return self.pairs[0][0].partition("/")[0]


@cache
def claims() -> tuple[Claim, ...]:
    r"""All claims, in the order of the paper's tables."""
    text = files("fognn.report").joinpath("site_claims.toml").read_text(encoding="utf-8")
    return tuple(_claim(entry) for entry in tomllib.loads(text)["claim"])


def _claim(entry: dict[str, Any]) -> Claim:
    pairs = tuple(
        (_path(where, better), _path(where, than))
        for where in entry["where"]
        for better, than in entry["pairs"]
    )
    return Claim(entry["text"], entry["quote"], pairs)


def _path(where: str, name: str) -> str:
    r"""A whole path begins with a table's name, which no network has."""
    return name if name.count("/") > 1 else f"{where}/{name}"

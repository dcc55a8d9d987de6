r"""Words put together to sentences."""

from collections.abc import Sequence

__all__ = ["capital", "joined", "many"]


def capital(text: str) -> str:
    r"""The text with a capital letter at its beginning; the others stay as they are."""
    return text[:1].upper() + text[1:]


def joined(words: Sequence[str]) -> str:
    r"""``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def many(number: int, what: str) -> str:
    r"""``1 epoch``, ``2 epochs``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"

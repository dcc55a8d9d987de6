r"""Words and numbers of sentences, and tables of plain text."""

from collections.abc import Iterable, Sequence

__all__ = [
    "NONE",
    "capital",
    "joined",
    "many",
    "mebibytes",
    "number",
    "percents",
    "shortened",
    "text_table",
]

NONE = "–"  # shown where there is no value


def capital(text: str) -> str:
    r"""The text with its first letter in upper case; the others stay as they are."""
    return text[:1].upper() + text[1:]


def joined(words: Sequence[str]) -> str:
    r"""``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def many(count: int, what: str) -> str:
    r"""``1 epoch``, ``2 epochs``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def mebibytes(size: int | None) -> str:
    r"""A number of bytes as ``412 MiB``; a dash for :obj:`None`."""
    return NONE if size is None else f"{size / 2**20:,.0f} MiB"


def number(value: float, digits: int = 4) -> str:
    r"""An :obj:`int` in groups of three digits, a :obj:`float` with :obj:`digits` decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def percents(fractions: Iterable[float]) -> str:
    r"""``2 % and 20 %``: fractions in ascending order, each once."""
    return joined([f"{100 * fraction:g} %" for fraction in sorted(set(fractions))])


def shortened(text: str, most: int) -> str:
    r"""The text with at most as many characters; what is left out in the middle is an ellipsis."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> str:
    r"""A table of plain text whose columns are as wide as their longest cell.

    Args:
        header (sequence of str): The names of the columns.
        rows (sequence): The rows.
        right (sequence of int, optional): The columns that are aligned to the right.
            (default: none)
    """
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )

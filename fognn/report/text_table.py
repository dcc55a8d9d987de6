r"""Tables of plain text, and numbers as they are printed."""

from collections.abc import Sequence

__all__ = ["number", "text_table"]


def number(value: float, digits: int = 4) -> str:
    r"""Whole numbers in groups of three, others with :obj:`digits` behind the point."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> str:
    r"""Columns side by side, as wide as they need to be.

    Args:
        header (sequence of str): The names of the columns.
        rows (sequence): The rows.
        right (sequence of int, optional): Columns that are aligned at their right end.
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

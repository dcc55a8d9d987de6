r"""The list of networks."""

from fognn.experiments.row_net import name_of
from fognn.experiments.rows import rows
from fognn.models import list_models
from fognn.report.text import text_table

__all__ = ["report_models"]


def report_models(pattern: str = "*") -> str:
    r"""A table of the networks, with the number of parameters of each in the paper's tables.

    Args:
        pattern (str, optional): A shell pattern for their names. (default: :obj:`"*"`)
    """
    names = list_models(pattern)
    if not names:
        raise ValueError(f"pattern must match a network, got {pattern!r}; see fognn models")
    lines = []
    for name in names:
        sizes: dict[str, int] = {}
        for row in rows():
            if name_of(row) == name and row.params is not None:
                # Of a network that stands in two tables, the first counts.
                sizes.setdefault(row.dataset, row.params)
        text = ", ".join(f"{data} {size:,}" for data, size in sizes.items())
        lines.append((name, text or "no row"))
    return text_table(("network", "parameters in the paper"), lines)

"""A table of a network's layers."""

from collections.abc import Iterator

from torch.nn import Module


def count_parameters(module: Module) -> int:
    """Returns the number of trainable parameters."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def summary(model: Module) -> str:
    r"""Returns a table of a network's layers: names, indented by depth, shapes (channels in and
    out) and numbers of parameters, inner layers included."""
    rows = [("layer", "shape", "parameters"), *_rows(model, "", 0)]
    rows.append(("total", "", f"{count_parameters(model):,}"))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])


def _is_ours(module: Module) -> bool:
    return type(module).__module__.startswith("fognn.")


def _rows(module: Module, prefix: str, depth: int) -> Iterator[tuple[str, str, str]]:
    for name, child in module.named_children():
        name = prefix + name
        inner = any(_is_ours(m) for m in child.modules() if m is not child)
        if not _is_ours(child) and inner:  # a list of ours: its name goes before theirs
            yield from _rows(child, f"{name}.", depth)
        elif count_parameters(child):
            label = f"{'  ' * depth}{name}: {type(child).__name__}"
            yield label, _shape(child), f"{count_parameters(child):,}"
            if inner:
                yield from _rows(child, "", depth + 1)


def _shape(module: Module) -> str:
    inner = getattr(module, "channels", None)
    ends = [getattr(module, f"{end}_channels", inner) for end in ("in", "out")]
    known = [str(end) for end in ends if end is not None]
    return " -> ".join(known)

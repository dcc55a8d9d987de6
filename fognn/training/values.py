r"""Plain values to dataclasses and back, with errors that name the value."""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, get_args, get_origin, get_type_hints

import yaml

__all__ = ["as_mapping", "assignments", "flat", "make", "unknown"]


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    r"""``["model.h1=8"]`` as ``{"model.h1": 8}``: values are read as in YAML."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals:
            raise ValueError(f"set must be NAME=VALUE, as model.h1=8, got {text!r}")
        try:
            values[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"set: the value of {name} must be YAML, got {value!r}") from error
    return values


def as_mapping(content: Any, where: str) -> Mapping[str, Any]:
    r"""Refuses what is no mapping with names as keys."""
    if not isinstance(content, Mapping) or not all(isinstance(key, str) for key in content):
        raise ValueError(f"{where} must be a mapping of names to values, got {content!r}")
    return content


def make(kind: Any, values: dict[str, Any], prefix: str) -> Any:
    r"""Makes a dataclass of values by name; unknown, missing and wrong ones are errors."""
    known = {entry.name: entry for entry in dataclasses.fields(kind)}
    for name in values:
        if name not in known:
            raise ValueError(unknown(name, list(known), prefix))
    for name, entry in known.items():
        no_default = entry.default is entry.default_factory is dataclasses.MISSING
        if no_default and values.get(name) is None:
            raise ValueError(f"{prefix}{name} must be given")
    hints = get_type_hints(kind)
    return kind(**{name: _typed(prefix + name, hints[name], v) for name, v in values.items()})


def _typed(name: str, hint: Any, value: Any) -> Any:
    r"""The value as its field wants it, if it can be that without loss."""
    kinds = get_args(hint) or (hint,)
    if value is None and type(None) in kinds:
        return None
    if dataclasses.is_dataclass(hint) or get_origin(hint) is dict:
        return value  # checked by whoever uses it
    kind = next(kind for kind in kinds if kind is not type(None))
    if kind is float:
        # An int is a float, too; and YAML 1.1 reads 1e-3, without a point, as a string.
        with suppress(ValueError, TypeError):
            value = value if isinstance(value, bool) else float(value)
    if type(value) is not kind:
        raise ValueError(f"{name} must be of type {kind.__name__}, got {value!r}")
    return value


def unknown(name: str, known: list[str], prefix: str = "config: ") -> str:
    r"""Says that there is no such setting, and which one may have been meant."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return f"{prefix}{name!r} is no setting; {hint}"


def flat(content: Mapping[str, Any]) -> dict[str, Any]:
    r"""Nested mappings as one, with dotted names."""
    entries: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            entries |= {f"{key}.{name}": inner for name, inner in flat(value).items()}
        else:
            entries[key] = value
    return entries

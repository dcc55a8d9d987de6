r"""Settings as text and as nested dicts."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    r"""Parses ``["model.h1=8"]`` to ``{"model.h1": 8}``; values are YAML."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not name or not equals:
            raise ValueError(f"set must be NAME=VALUE, such as model.h1=8, got {text!r}")
        try:
            parsed = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"set: the value of {name} must be YAML, got {value!r}") from error
        # YAML takes 1e-2 for a text. Fields of other sections have a type, which converts it.
        if name.startswith("model.") and re.fullmatch(r"\d+e[-+]?\d+", str(parsed)):
            parsed = float(parsed)
        values[name] = parsed
    return values


def flat(content: Mapping[str, Any]) -> dict[str, Any]:
    r"""Flattens nested mappings into one dict with dotted names."""
    entries: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            entries |= {f"{key}.{name}": inner for name, inner in flat(value).items()}
        else:
            entries[key] = value
    return entries

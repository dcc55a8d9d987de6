r"""Sections of a configuration: pydantic dataclasses with one-line errors of the form
``config: training.lr must be a number above 0, got -1``."""

import difflib
import functools
import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_args, get_origin

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

__all__ = [
    "AtLeastZero",
    "Count",
    "Index",
    "Number",
    "Positive",
    "as_mapping",
    "assignments",
    "field_help",
    "flat",
    "load_yaml",
    "section",
    "unknown_setting",
]

_LONGEST, _MOST = 1_000_000, 10_000  # characters and values of YAML

Section = TypeVar("Section", bound=type)


def _number(value: Any) -> Any:
    # YAML 1.1 reads 1e-3, without a point, as a string.
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Positive = Annotated[Number, Field(gt=0)]
AtLeastZero = Annotated[Number, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Index = Annotated[int, Field(ge=0)]


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def section(cls: Section) -> Section:
    r"""Turns a class into a frozen, validated dataclass. The string below a field is its
    description, and the help text of its command line option."""
    settings = ConfigDict(
        extra="forbid", strict=True, use_attribute_docstrings=True, arbitrary_types_allowed=True
    )
    made: Any = dataclass(frozen=True, config=settings)(cls)
    validated = made.__init__

    @functools.wraps(validated)
    def init(self: Any, *args: Any, **values: Any) -> None:
        try:
            validated(self, *args, **values)
        except ValidationError as error:
            raise ValueError(_message(made, error)) from None

    made.__init__ = init
    return made


def field_help(kind: Any, name: str) -> str:
    r"""Returns the description of a field of a section."""
    return kind.__pydantic_fields__[name].description or ""


def _message(kind: Any, error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "value_error":  # raised in __post_init__, with a complete message
        return str(first["ctx"]["error"])
    name, fields = str(first["loc"][0]), kind.__pydantic_fields__
    prefix = "" if kind.__name__ == "Config" else f"{_section_name(kind)}."
    if first["type"] == "unexpected_keyword_argument":
        return unknown_setting(f"{prefix}{name}", [f"{prefix}{known}" for known in fields])
    if first["type"] == "missing" or (first["input"] is None and fields[name].is_required()):
        return f"config: {prefix}{name} must be given"
    return (
        f"config: {prefix}{name} must be {_requirement(fields[name])}, got {_short(first['input'])}"
    )


def _short(value: Any) -> str:
    # repr() raises for an int of more than 4,300 digits.
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"an int of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]} ..."


def _section_name(kind: Any) -> str:
    return str(kind.__name__).removesuffix("Config").lower()


def _requirement(field: FieldInfo) -> str:
    r"""Describes the valid values of a field: ``"an int of at least 1"``, ``"one of 'a', 'b'"``."""
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    union = get_origin(field.annotation) not in (Literal, dict) and kinds
    annotation: Any = kinds[0] if union else field.annotation
    metadata = list(field.metadata)
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        metadata += [m for part in inner for m in (getattr(part, "metadata", None) or [part])]
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(map(repr, get_args(annotation)))
    names = {int: "an int", float: "a number", bool: "a bool", str: "a str", dict: "a mapping"}
    limit_names = {"gt": "above", "ge": "of at least", "le": "and at most", "lt": "and below"}
    limits = [
        f"{name} {getattr(part, key)}"
        for key, name in limit_names.items()
        for part in metadata
        if getattr(part, key, None) is not None
    ]
    kind = names.get(annotation, names.get(get_origin(annotation), ""))
    return " ".join([kind or f"a {getattr(annotation, '__name__', annotation)}", *limits])


def unknown_setting(name: str, known: list[str]) -> str:
    r"""Returns the error message for an unknown setting, with the most similar known one."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return f"config: unknown setting {name!r}; {hint}"


def as_mapping(content: Any, where: str) -> Mapping[str, Any]:
    r"""Returns ``content``; raises unless it is a mapping with strings as keys."""
    if not isinstance(content, Mapping) or not all(isinstance(key, str) for key in content):
        raise ValueError(
            f"{where} must be a mapping of names to values, got {reprlib.repr(content)}"
        )
    return content


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    r"""Parses ``["model.h1=8"]`` to ``{"model.h1": 8}``; values are YAML."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals:
            raise ValueError(f"set must be NAME=VALUE, such as model.h1=8, got {text!r}")
        try:
            parsed = load_yaml(value)
        except (yaml.YAMLError, RecursionError) as error:
            raise ValueError(f"set: the value of {name} must be YAML, got {value!r}") from error
        # YAML takes 1e-2 for a text. Fields of other sections have a type, which converts it.
        if name.strip().startswith("model.") and isinstance(parsed, str):
            parsed = float(parsed) if re.fullmatch(r"\d+e[-+]?\d+", parsed) else parsed
        values[name.strip()] = parsed
    return values


def load_yaml(text: str) -> Any:
    r"""Parses YAML of at most a few thousand values, without any object of Python.

    Raises:
        yaml.YAMLError: If the text is not YAML.
        ValueError: If it is too large, or repeats its parts so often that its content is.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"YAML must have at most {_LONGEST:,} characters, got {len(text):,}")
    try:
        content = yaml.safe_load(text)
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        # PyYAML parses "!!int x" and dates with functions that raise these.
        raise yaml.YAMLError(f"a value cannot be read ({type(error).__name__}: {error})") from error
    count, left = 0, [content]
    while left:  # an alias counts each time: all of it would be copied and printed
        thing = left.pop()
        count += 1
        if count > _MOST:
            raise ValueError(f"YAML must have at most {_MOST:,} values")
        if isinstance(thing, Mapping):
            left += thing.values()
        elif isinstance(thing, list | tuple | set):
            left += thing
    return content


def flat(content: Mapping[str, Any]) -> dict[str, Any]:
    r"""Flattens nested mappings into one dict with dotted names."""
    entries: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            entries |= {f"{key}.{name}": inner for name, inner in flat(value).items()}
        else:
            entries[key] = value
    return entries

r"""Extension of griffe that turns the Sphinx markup of docstrings into Markdown.

The docstrings are written as PyG's are, for ``help()`` and for editors. mkdocstrings reads their
sections (``Args:`` ...), but leaves roles (``:class:`FOG```) and directives (``.. math::``) as
they are.
"""

import re
import textwrap
from pathlib import Path
from typing import Any

import griffe

_API = Path(__file__).parents[1] / "api"

_ROLE = re.compile(r":(?P<role>[a-z]+):`(?P<text>[^`]+)`", re.DOTALL)
_LITERAL = re.compile(r"(?<!`)``([^`]+)``(?!`)")
_DIRECTIVE = re.compile(
    r"^(?P<indent> *)\.\. (?P<name>math|code-block)::.*\n(?P<body>(?:(?P=indent) +.*\n?|\s*\n)+)",
    re.MULTILINE,
)
_LITERAL_BLOCK = re.compile(
    r"^(?P<indent> *)(?P<lead>.*\S)::\n\n?(?P<body>(?:(?P=indent) +.*\n?|\s*\n)+)", re.MULTILINE
)


def to_markdown(text: str, paths: dict[str, str]) -> str:
    r"""Turns Sphinx markup into Markdown.

    Args:
        text (str): The docstring.
        paths (dict): The path of each documented object, by its name: where links go.
    """
    text = _DIRECTIVE.sub(_directive, text)
    text = _LITERAL_BLOCK.sub(_literal_block, text)
    text = _ROLE.sub(lambda match: _role(match["role"], match["text"], paths), text)
    return _LITERAL.sub(r"`\1`", text)


def _directive(match: re.Match[str]) -> str:
    body, indent = textwrap.dedent(match["body"]).strip(), match["indent"]
    if match["name"] == "math":
        # Sphinx makes one line of an equation of each paragraph, aligned at &.
        lines = [" ".join(part.split()) for part in re.split(r"\n\s*\n", body)]
        latex = lines[0]
        if len(lines) > 1 or "&" in latex:
            latex = r"\begin{split} " + r" \\ ".join(lines) + r" \end{split}"
        block = f"$$\n{latex}\n$$"
    else:
        block = f"```python\n{body}\n```"
    return "\n" + textwrap.indent(block, indent) + "\n\n"


def _literal_block(match: re.Match[str]) -> str:
    body, indent = textwrap.dedent(match["body"]).strip(), match["indent"]
    block = textwrap.indent(f"```python\n{body}\n```", indent)
    return f"{indent}{match['lead']}:\n\n{block}\n\n"


def _role(role: str, text: str, paths: dict[str, str]) -> str:
    text = " ".join(text.split())
    if role == "math":
        return f"${text}$"
    name = text.removeprefix("~")
    shown = name.rpartition(".")[2] if text.startswith("~") else name
    path = name if name in paths.values() else paths.get(name.rpartition(".")[2])
    if path and role != "obj" and (name == path or path.endswith(f".{name}") or "." not in name):
        return f"[`{shown}`][{path}]"
    return f"`{shown}`"


class SphinxRoles(griffe.Extension):
    r"""Rewrites all docstrings of a package when it has been read."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        modules = _modules(pkg)
        for module in modules:
            _resolve(module)
        for module in modules:
            _show_functions(module)
        paths = public_paths(pkg)
        for module in modules:
            _rewrite(module, paths)


def public_paths(package: griffe.Module) -> dict[str, str]:
    r"""The path of each function and class that has a place in the API reference, by its name."""
    paths = {}
    for module in package.modules.values():
        if (_API / f"{module.name}.md").is_file():
            for name in map(str, module.exports or ()):
                member = module.members.get(name)
                if member and (member.is_function or member.is_class) and member.has_docstring:
                    paths[name] = f"{module.path}.{name}"
    return paths


def _modules(module: griffe.Module) -> list[griffe.Module]:
    found = [module]
    for inner in module.modules.values():
        found += _modules(inner)
    return found


def _resolve(module: griffe.Module) -> None:
    for name in module.exports or ():
        member = module.members.get(str(name))
        if isinstance(member, griffe.Alias) and member.target_path.startswith("fognn."):
            member.resolve_target()


def _show_functions(module: griffe.Module) -> None:
    r"""Puts functions in the place of the modules that they come from, where both have one name:
    of ``fognn.ops.spmm``, griffe sees the module, and Python the function."""
    for name in module.exports or ():
        member = module.members.get(str(name))
        if isinstance(member, griffe.Module):
            inner = member.members[str(name)]
            module.members[str(name)] = griffe.Alias(str(name), inner, parent=module)


def _rewrite(thing: griffe.Object, paths: dict[str, str]) -> None:
    if thing.docstring:
        thing.docstring.value = to_markdown(thing.docstring.value, paths)
    for member in thing.members.values():
        if not member.is_alias and not member.is_module:
            _rewrite(member, paths)  # type: ignore[arg-type]

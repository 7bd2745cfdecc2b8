"""Docstrings in numpydoc's form, taken apart, and what is missing from the docstring of a public name."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References", "Examples")


def sections(text: str) -> dict[str, str]:
    """The sections of a docstring by their names; what comes before the first is under ""."""
    found, name = {"": ""}, ""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        below = lines[i + 1] if i + 1 < len(lines) else ""
        if line in SECTIONS and re.fullmatch("-{3,}", below):
            name = line
            found[name] = ""
        elif not (re.fullmatch("-{3,}", line) and lines[i - 1] == name):
            found[name] += line + "\n"
    return found


def entries(section: str) -> dict[str, str]:
    """What a section lists: each name, and the text below it."""
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line and not line.startswith(" "):
            name = line.partition(" : ")[0].strip()
            found[name] = ""
        elif name:
            found[name] += line.strip()
    return found


def taken(thing: object) -> list[str]:
    """The names of the parameters that a caller can give, with their stars; of a class, those of its own `__init__`."""
    written = isinstance(thing, type) and inspect.isfunction(thing.__init__)
    try:
        thing = thing.__init__ if written else thing  # type: ignore[misc]
        parameters = list(inspect.signature(thing).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):  # built into Python, such as an exception's own constructor
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in parameters if p.name not in ("self", "cls")]


def wrong_defaults(section: str, thing: object) -> Iterator[str]:
    """Parameters whose line says ``default X`` where the signature says something else, each with both."""
    try:
        parameters = inspect.signature(thing.__init__ if isinstance(thing, type) else thing).parameters  # type: ignore[misc, arg-type]
    except (TypeError, ValueError):
        return
    for parameter, told in re.findall(r"^(\w+) : .*?, default (.+)$", section, re.MULTILINE):
        if parameter in parameters:
            try:
                value = ast.literal_eval(told)
            except (SyntaxError, ValueError):
                yield f"{parameter} = {told}, which is no value"
                continue
            if value != (real := parameters[parameter].default):
                yield f"{parameter} = {told}, not {real}"


def missing(name: str, thing: object, own: str | None = None) -> Iterator[str]:
    """What is missing from the docstring of a function or a class, one sentence each; `own` is the text where it is not `thing`'s."""
    text = inspect.cleandoc(own if own is not None else getattr(thing, "__doc__", None) or "")
    found = sections(text)
    if not text or not found[""].strip():
        yield f"{name} has no docstring"
        return
    first = found[""].splitlines()[0]
    if not first.rstrip().endswith((".", "?", ":")) or not found[""].startswith(first) or [*found[""].splitlines(), ""][1].strip():
        yield f"{name} does not begin with one line that ends in a full stop"
    listed = entries(found.get("Parameters", ""))
    wanted = taken(thing)
    for parameter in listed:
        if parameter not in wanted:
            yield f"{name} describes a parameter {parameter}, which it does not have"
    for told in wrong_defaults(found.get("Parameters", ""), thing):
        yield f"{name} tells a wrong default: {told}"
    for section in found.keys() & {"Parameters", "Attributes"}:
        for each, words in entries(found[section]).items():
            if not words:
                yield f"{name}: nothing is said of {each} under {section}"


def has_example(thing: object) -> bool:
    """Whether the docstring has an example under its own heading."""
    return ">>>" in sections(inspect.cleandoc(getattr(thing, "__doc__", None) or "")).get("Examples", "")


def members(cls: type, package: str) -> Iterator[tuple[str, object]]:
    """The public methods and properties of a class that are written in this package, inherited ones too."""
    for name in dir(cls):
        if name.startswith("_"):
            continue
        home = next((base for base in cls.__mro__ if name in vars(base)), cls)
        member = inspect.getattr_static(cls, name)
        made = isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member)
        if home.__module__.startswith(package) and made and name not in getattr(cls, "_fields", ()) and not generated(home, name):
            yield name, member


def generated(home: type, name: str) -> bool:
    """Whether a member was made by `NamedTuple` itself."""
    return hasattr(home, "_fields") and name in ("count", "index")


def missing_of_class(name: str, cls: type, package: str, documented: frozenset[type] = frozenset()) -> Iterator[str]:
    """What is missing from the docstring of a class and from those of its members.

    A class that takes what a documented class above it takes, such as a warning, need not have an example.
    """
    above = [base for base in cls.__mro__[1:] if base in documented and taken(base) == taken(cls)]
    if above:
        if not inspect.cleandoc(cls.__doc__ or "").strip() or cls.__doc__ == above[0].__doc__:
            yield f"{name} has no docstring of its own"
    elif not_made(cls) or (issubclass(cls, Exception) and not inspect.isfunction(cls.__init__)):
        if not inspect.cleandoc(cls.__doc__ or "").strip():
            yield f"{name} has no docstring"
    else:
        yield from missing(name, cls)
    if not above and not has_example(cls):
        yield f"{name} has no example"
    for each, member in members(cls, package):
        if isinstance(member, property):
            if not (member.__doc__ or "").strip():
                yield f"{name}.{each} has no docstring"
            continue
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        yield from missing(f"{name}.{each}", function)


def not_made(cls: type) -> bool:
    """Whether a class is a protocol or the shape of a dictionary: nobody calls it."""
    return bool(getattr(cls, "_is_protocol", False)) or hasattr(cls, "__total__")

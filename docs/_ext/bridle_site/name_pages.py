"""The pages of public names, in the order of `tools/public_names.py`, from their docstrings."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from bridle_site import rst
from bridle_site.docstrings import plain_line

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import public_names


def write(folder: Path) -> None:
    """Write the pages, and the list of them."""
    for page in public_names.PAGES:
        rst.write(folder / "api" / f"{page.slug}.rst", written(page))
    rst.write(folder / "api" / "index.rst", index())


def index() -> list[str]:
    """Every public name, on which page it is."""
    rows = [
        [
            f":doc:`{page.title} <{page.slug}>`",
            ", ".join(f":py:obj:`{name} <{module}.{name}>`" for module, name in public_names.names_of(page)),
        ]
        for page in public_names.PAGES
    ]
    return [
        *rst.heading("Names", "="),
        "Every public name, by what it is for. What is not here is not public, and may change without notice.",
        "",
        *rst.table(("page", "names"), rows, (25, 75)),
        *rst.directive("toctree", "", {"hidden": ""}, [page.slug for page in public_names.PAGES]),
    ]


def written(page: public_names.Page) -> list[str]:
    """A page: what is on it, then each name in full."""
    names = list(public_names.names_of(page))
    rows = [[f":py:obj:`{name} <{home(module, name)}>`", first_line(module, name)] for module, name in names]
    text = [*rst.heading(page.title, "="), plain_line(page.about), "", *rst.table(("name", "what"), rows, (30, 70))]
    for module, name in names:
        text += entry(module, name)
    return text


HOMES: dict[type, str] = {}
"""The full name under which a class is documented: the first, where several pages have it."""


def home(module: str, name: str) -> str:
    """The full name under which what has this one is documented."""
    found, full = getattr(importlib.import_module(module), name), f"{module}.{name}"
    return HOMES.setdefault(found, full) if inspect.isclass(found) else full


def first_line(module: str, name: str) -> str:
    """The first sentence of a name's docstring."""
    doc = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""
    found = getattr(importlib.import_module(module), name)
    return plain_line(" ".join(doc.split("\n\n")[0].split())) if callable(found) else "A constant."


def entry(module: str, name: str) -> list[str]:
    """One name in full."""
    found: Any = getattr(importlib.import_module(module), name)
    full = f"{module}.{name}"
    heading = rst.heading(name)
    if home(module, name) != full:
        return [*heading, f"It is :py:obj:`{home(module, name)}`.", ""]
    if inspect.isclass(found):
        members = documented_members(found)
        kind = "autoexception" if issubclass(found, BaseException) else "autoclass"
        options = {"members": ", ".join(members)} if members else {"no-members": ""}
        return [*heading, *rst.directive(kind, full, options)]
    return [*heading, *rst.directive("autofunction" if callable(found) else "autodata", full)]


def documented_members(owner: type) -> list[str]:
    """The public methods and properties that bridle defines, with a docstring of its own or of a class that it keeps to."""
    return [name for name in dir(owner) if not name.startswith("_") and _is_ours(owner, name)]


def _is_ours(owner: type, name: str) -> bool:
    for base in owner.__mro__:
        if name in vars(base):
            value = vars(base)[name]
            inner = getattr(value, "fget", None) or getattr(value, "__func__", None) or getattr(value, "func", None) or value
            doc, home = getattr(inner, "__doc__", None), getattr(inner, "__module__", None) or base.__module__
            if not (inspect.isfunction(inner) and home.startswith("bridle")):
                return False
            if doc:
                return True
    return False

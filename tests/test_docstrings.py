"""Every public name says what it is and shows how it is used; what it says of its parameters is true."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import bridle
from helpers.docstrings import entries, has_example, members, missing, missing_of_class, sections, taken

ROOT = Path(__file__).parents[1]


def tool(name: str) -> ModuleType:
    """A file of `tools`, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def public() -> dict[str, object]:
    """Every public name, with what it stands for."""
    names = tool("public_names")
    return {f"{module}.{name}": getattr(sys.modules[module], name) for page in names.PAGES for module, name in names.names_of(page)}


def complaints(things: dict[str, object]) -> Iterator[str]:
    """What is missing from the docstrings of all of these."""
    classes = frozenset(thing for thing in things.values() if isinstance(thing, type))
    for name, thing in things.items():
        if isinstance(thing, type):
            yield from missing_of_class(name, thing, "bridle", classes - {thing})
        elif callable(thing):
            yield from missing(name, thing)
            if not has_example(thing):
                yield f"{name} has no example"


def test_every_public_name_is_documented_in_full():
    assert list(complaints(public())) == []


def test_what_is_counted_is_what_is_public():
    """So that the test above cannot pass because nothing was looked at."""
    things = public()
    classes = {name: thing for name, thing in things.items() if isinstance(thing, type)}
    functions = {name: thing for name, thing in things.items() if not isinstance(thing, type) and callable(thing)}
    methods = [f"{name}.{each}" for name, cls in classes.items() for each, _ in members(cls, "bridle")]
    parameters = sum(len(taken(thing)) for thing in things.values() if callable(thing))
    found = {name.rpartition(".")[2] for name in things}
    assert set(bridle.__all__) - {"potentials"} <= found
    assert {
        "bridle.Session.observe",
        "bridle.Session.price",
        "bridle.Gate.close",
        "bridle.adapters.torch.WrappedOptimizer.weighted",
    } <= set(methods)
    assert (len(functions) > 80, len(classes) > 75, len(methods) > 130, parameters > 400) == (True,) * 4


class Half(NamedTuple):
    """Two numbers.

    Parameters
    ----------
    a : float
        One.
    c : float
        There is none.
    """

    a: float
    b: float

    def added(self, more: float) -> float:
        """The sum"""
        return self.a + self.b + more


def test_what_is_missing_is_named():
    assert sorted(missing_of_class("Half", Half, __name__)) == [
        "Half describes a parameter c, which it does not have",
        "Half has no example",
        "Half.added does not begin with one line that ends in a full stop",
    ]


def documented(x: float, *rest: float, **more: float) -> float:
    """One line.

    Parameters
    ----------
    x : float
        A number.
    *rest : float
        Others.
    **more : float
    """
    return x + sum(rest) + sum(more.values())


def test_a_name_without_a_word_is_missing():
    assert list(missing("f", documented)) == ["f: nothing is said of **more under Parameters"]
    assert list(missing("g", lambda x: x)) == ["g has no docstring"]


def with_defaults(a: float = 1.0, b: int = 2, c: str = "x") -> None:
    """One line.

    Parameters
    ----------
    a : float, default 1.5
        Another.
    b : int, default 2
        That one.
    c : str, default something
        No value.
    """


def test_a_default_that_is_told_is_the_one_that_is_taken():
    assert list(missing("f", with_defaults)) == [
        "f tells a wrong default: a = 1.5, not 1.0",
        "f tells a wrong default: c = something, which is no value",
    ]


def test_sections_and_entries_are_taken_apart():
    text = inspect.cleandoc(documented.__doc__ or "")
    assert list(sections(text)) == ["", "Parameters"]
    assert entries(sections(text)["Parameters"]) == {"x": "A number.", "*rest": "Others.", "**more": ""}


def test_the_package_shows_its_public_names_alone():
    shown = [name for name in dir(bridle) if not name.startswith("__")]
    assert sorted(shown) == sorted({*bridle.__all__, "adversaries", "rules"})
    assert all(hasattr(bridle, name) for name in shown)


def test_the_package_says_where_to_begin():
    """The first screen of `help(bridle)`: names that are there, by task."""
    text = inspect.getdoc(bridle) or ""
    assert len(text.splitlines()) <= 40
    named = {word for word in re.findall(r"(?<!`)`([\w.]+)`(?!`)", text)}
    assert named >= {"play", "policy", "problem", "Session", "compare", "advise"}
    for name in named:
        assert attrgetter(name)(bridle) is not None, name


@pytest.mark.parametrize("name", ["policy", "policy_for", "problem"])
def test_what_is_made_by_name_says_where_its_parameters_are(name):
    assert "NAME" in inspect.getdoc(getattr(bridle, name))

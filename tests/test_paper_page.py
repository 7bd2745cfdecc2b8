"""The page that goes through the paper line by line: every item has a function that can be imported and a test that is there."""

from __future__ import annotations

import ast
import importlib
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

from bridle import policies

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "paper.md"


class Item(NamedTuple):
    """A row of the page: what it is about, in bridle, and the tests."""

    keys: tuple[str, ...]
    said: str
    names: tuple[str, ...]
    tests: tuple[str, ...]


def ticked(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


@lru_cache
def items() -> tuple[Item, ...]:
    rows = [line.strip("|").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert all(len(row) == 4 for row in rows), [row[0] for row in rows if len(row) != 4]
    return tuple(Item(ticked(keys), said, ticked(names), ticked(tests)) for keys, said, names, tests in rows)


def listed() -> dict[str, list[str]]:
    """The page's own list: a kind of item, and the items of it."""
    block = PAGE.read_text().split("## The items")[1].split("```text\n")[1].split("```")[0]
    return {
        kind.strip(): names.split() for kind, names in (line.split(":", 1) for line in re.sub(r"\n +", " ", block).strip().splitlines())
    }


@lru_cache
def defined_in(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def found(name: str) -> object:
    """What a dotted name stands for: the longest part of it that is a module, and the attributes after it."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError as missing:
            if not missing.name or not name.startswith(missing.name):
                raise  # a library that the module needs
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise ModuleNotFoundError(name)


def test_no_item_is_missing_and_none_is_there_twice():
    rows = [key for item in items() for key in item.keys]
    named = [key for kind, keys in listed().items() if kind != "headings" for key in keys]
    assert len(rows) == len(set(rows)), [key for key in rows if rows.count(key) > 1]
    assert sorted(rows) == sorted(named), sorted(set(rows) ^ set(named))
    assert not set(rows) & set(listed()["headings"])


def test_the_items_come_in_the_order_of_the_paper():
    """Of each kind: the list is in the paper's order, and the rows keep to it."""
    place = {key: number for number, item in enumerate(items()) for key in item.keys}
    for kind, keys in listed().items():
        if kind != "headings":
            assert [place[key] for key in keys] == sorted(place[key] for key in keys), kind


@pytest.mark.parametrize("item", items(), ids=lambda item: item.keys[0])
def test_an_item_has_a_function_and_a_test(item):
    dotted = [name for name in item.names if name.startswith("bridle.")]
    assert dotted, "what is it in bridle?"
    for name in dotted:
        assert found(name) is not None, name
    assert item.said.strip()
    assert item.tests, "what tries to break it?"
    for test in item.tests:
        path, _, function = test.partition("::")
        assert function.startswith("test_"), test
        assert function in defined_in(ROOT / path), test


def test_every_row_of_the_papers_table_is_a_registered_policy():
    """Fifteen rows, of which Theorem 2 has two: the same as those that `test_policies` compares with the entries."""
    tree = ast.parse((ROOT / "tests" / "policies" / "test_policies.py").read_text())
    table = next(node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TABLE")
    compared = [row.elts[0].value for row in table.elts]
    rows = [key.removeprefix("table-") for key in listed()["table"]]
    theirs = [name for name in rows if not name.startswith("this-")]
    assert theirs == compared[:12]
    assert set(theirs) <= set(policies.names())
    assert compared[12:] == ["sinha2024", "sinha2024-strong", "sinha2024-strong"]
    assert [name for name in rows if name.startswith("this-")] == ["this-convex", "this-strong", "this-nonnegative"]


def test_a_name_that_is_not_there_is_found_out():
    with pytest.raises(AttributeError):
        found("bridle.policies._sinha2024.theorem9")
    with pytest.raises(ModuleNotFoundError):
        found("bridel.policies")
    assert found("bridle.policies._sinha2024.Lyapunov.update").__name__ == "update"

"""The plan of the house: rooms that can be found, and documents that name what is there."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bridle"


def found_in(folder: Path, pattern: str) -> list[str]:
    """What a pattern finds in the Python files of a folder, as text: to parse them takes seconds."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]
    return [found for text in texts for found in re.findall(pattern, text, re.MULTILINE)]


def test_docstrings_can_be_read_without_their_neighbours():
    assert found_in(PACKAGE, r'^\s*r?"""The same.*') == []


def test_the_ground_floor_is_small():
    ground = [path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert len(ground) <= 12, ground


PLAN = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_plan_shows_every_room():
    tree = PLAN.partition("src/bridle/\n")[2].partition("```")[0]
    shown = set(re.findall(r"^ +(\w+)(?:/|\.py) ", tree, flags=re.M))
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert shown == rooms | {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")} | {"codegen"}


def test_the_plan_shows_the_layers_of_the_contract():
    drawing = PLAN.partition("## The layers")[2].partition("```\n")[2].partition("```")[0]
    contract = next(
        contract["layers"]
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    assert [line.split() for line in drawing.splitlines()] == [layer.split() for layer in contract]
    assert len(contract) <= 16


DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(page for room in (".", "tutorials", "guides", "explanation") for page in (ROOT / "docs" / room).glob("*.md")),
]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_documents_name_what_is_there(page):
    """A dotted name under `bridle.` in a document is a module or an attribute of one."""
    text = page.read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"\bbridle(?:\.[a-z_][A-Za-z0-9_]*)+(?:\.[A-Z]\w*)?", text))):
        if page.name == "CHANGELOG.md" or re.search(r"\.(toml|json|py|npz|db)$", name):
            continue  # what was once so, and names of files
        parts = name.split(".")
        try:
            place = importlib.import_module("bridle")
            for i, part in enumerate(parts[1:], 2):
                try:  # a module goes before a function of its name
                    place = importlib.import_module(".".join(parts[:i]))
                except ModuleNotFoundError as missing:
                    if not (missing.name or "").startswith("bridle"):
                        break  # a package of an extra that is not installed here
                    place = getattr(place, part)
        except AttributeError:
            pytest.fail(f"{page.name} names {name}, which is not there")


def test_no_test_imports_another():
    assert found_in(ROOT / "tests", r"^\s*from [\w.]*\btest_\w+ import|^\s*import .*\btest_\w+") == []


def test_tests_mirror_the_rooms():
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()} - {
        "__pycache__",
        "helpers",
        "browser",
        "postgres",
        "faults",
    } == rooms


def test_a_test_has_a_name_that_can_be_read():
    names = found_in(ROOT / "tests", r"^\s*def (test_\w+)")
    assert len(names) > 3_000
    assert [name for name in names if len(name) > 75] == []

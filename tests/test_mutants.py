"""Mutation testing itself: it finds what a weak test lets through and nothing where tests are strong; its lists name what is there."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOY = '''
from functools import cache
from typing import NamedTuple

SHARE = 0.5


class Disk(NamedTuple):
    radius: float

    @property
    def area(self):
        return 3.0 * self.radius**2


def bound(a, b):
    """At most the sum, and at most four."""
    return min(a + b, 4.0)


def half(a):
    if a < 0.0:
        raise ValueError("a must be 0 or above")
    return SHARE * a


def count(n):
    total = 0
    while n > 0:
        total += n
        n -= 1
    return total


def times(k):
    def product(x):
        return k * x

    return product


DOUBLE = times(2.0)


@cache
def larger(a, b):
    return a if a > b else b


def forgotten(a):
    return a + 1.0
'''
STRONG = """
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toy import DOUBLE, Disk, bound, count, forgotten, half, larger, times


@pytest.mark.parametrize(("radius", "area"), [(1.0, 3.0), (2.0, 12.0), (3.0, 27.0)])
def test_area(radius, area):
    assert Disk(radius).area == area


def test_bound():
    assert [bound(1.0, 2.0), bound(3.0, 1.5), bound(2.0, 0.5)] == [3.0, 4.0, 2.5]


@given(st.integers(0, 10**6))
def test_half(a):
    assert half(a) + half(a) == a


def test_half_refuses():
    with pytest.raises(ValueError):
        half(-1.0)
    assert half(0.5) == 0.25


def test_count():
    assert [count(n) for n in range(4)] == [0, 1, 3, 6]


def test_times():
    assert [times(3.0)(5.0), DOUBLE(7.0)] == [15.0, 14.0]


def test_larger():
    assert [larger(1, 2), larger(2, 1)] == [2, 2]


def test_forgotten():
    assert forgotten(2.0) == 3.0


def test_that_cannot_be_followed():
    assert sys.gettrace() is None
"""
FROZEN = """
import gc


def pytest_collection_finish():
    gc.freeze()
"""
WEAK = """
from toy import Disk, bound


def test_signs():
    assert Disk(1.0).area > 0.0
    assert bound(1.0, 1.0) > 0.0
"""
PLAN = """
root = "."
source = "src"
grace = 0.3
options = ["-p", "no:randomly"]

[groups.toy]
what = "a toy"
goal = 0.9
modules = ["toy.py"]
functions = '{functions}'
tests = ["{tests}"]
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A package with strong tests and weak tests, which freezes what it has collected, as this one does."""
    folder = tmp_path_factory.mktemp("toy")
    files = {
        "src/toy.py": TOY,
        "strong/test_strong.py": STRONG,
        "weak/test_weak.py": WEAK,
        "conftest.py": FROZEN,
        "pytest.ini": "[pytest]\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def mutants(folder: Path, tests: str, *arguments: str, functions: str = "", more: str = "") -> tuple[int, str, str]:
    (folder / "mutants.toml").write_text(PLAN.format(functions=functions, tests=tests) + textwrap.dedent(more))
    command = [sys.executable, ROOT / "tools" / "mutants.py", "--plan", folder / "mutants.toml", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr


EQUIVALENT = [
    "toy:count: while n > 0 => while n >= 0",
    "toy:larger: return a if a > b else b => return a if a >= b else b",
]
"""Mutants of the toy that do what the toy does."""


@pytest.mark.slow
def test_strong_tests_kill_all_but_what_changes_nothing(toy):
    """Also numbers with a name, properties of records, closures made at import, cached functions, and loops that do not end."""
    status, out, err = mutants(toy, "strong")
    assert status == 0, out + err
    survivors = [line for line in out.splitlines() if line.startswith("  +")]
    assert survivors == ["  + while n >= 0", "  + return a if a >= b else b"]
    reasons = '[[accepted]]\nwhere = "toy:{}"\nreason = "adds nothing"\nmutants = ["{}"]\n'
    accepted = "".join(reasons.format(name.split(":")[1], name.split(": ")[1]) for name in EQUIVALENT)
    status, out, err = mutants(toy, "strong", more=accepted)
    assert status == 0, out + err
    assert "known from before" in out
    assert "2 survive, 0 of them without a reason" in out


@pytest.mark.slow
def test_a_number_is_tried_by_the_tests_of_the_modules_that_use_it(tmp_path):
    files = {
        "src/shop/__init__.py": "",
        "src/shop/rates.py": "RATE = 3.0\n",
        "src/shop/prices.py": "from shop.rates import RATE\n\n\ndef price(a):\n    return RATE * a\n",
        "tests/test_price.py": "from shop.prices import price\n\n\ndef test_price():\n    assert price(2.0) == 6.0\n",
        "pytest.ini": "[pytest]\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    more = PLAN.replace('modules = ["toy.py"]', 'modules = ["shop/*.py"]').format(functions="", tests="tests")
    (tmp_path / "mutants.toml").write_text(more)
    command = [sys.executable, ROOT / "tools" / "mutants.py", "--plan", tmp_path / "mutants.toml", "--only", "shop.rates"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "toy: 2 of 2 killed" in done.stdout


@pytest.mark.slow
def test_weak_tests_let_formulas_through(toy):
    status, out, err = mutants(toy, "weak", "--workers", "2", functions="bound|area|forgotten")
    assert status == 1, out + err
    for change in ("return a + b", "return 3.0 * self.radius", "return 6.0 * self.radius ** 2"):
        assert f"  + {change}\n" in out
    assert "  + return min(a - b, 4.0)" not in out  # 0 is not above 0
    assert "  + return a - 1.0\n  no test runs it" in out
    assert "  + return None\n  no test runs it" in out
    assert out.count("return None") == 1  # the others are noticed


@pytest.mark.slow
def test_a_mutant_with_a_name_must_die(toy):
    named = """
    [[named]]
    name = "the cap dropped"
    where = "toy:bound"
    mutant = "return min(a + b, 4.0) => return a + b"
    """
    status, out, _ = mutants(toy, "weak", "--named", more=named)
    assert (status, "the cap dropped" in out) == (1, True)
    status, out, _ = mutants(toy, "strong", "--named", more=named)
    assert (status, "1 of 1 killed" in out) == (0, True)
    status, _, err = mutants(toy, "strong", "--named", more=named.replace("a + b", "a + c"))
    assert status != 0
    assert "the source has no mutant toy:bound: return min(a + c, 4.0) => return a + c" in err


@pytest.mark.slow
def test_tests_that_fail_anyway_are_told_and_nothing_is_tried(toy):
    (toy / "red").mkdir()
    (toy / "red" / "test_red.py").write_text("from toy import half\n\n\ndef test_red():\n    assert half(2.0) == 3.0\n")
    status, out, err = mutants(toy, "red")
    assert status == 2
    assert "red/test_red.py::test_red" in err
    assert "killed" not in out


def test_a_sample_is_the_same_for_the_same_seed(toy):
    one, again, other = (mutants(toy, "weak", "--list", "--sample", "5", "--seed", seed)[1] for seed in ("1", "1", "2"))
    assert one == again != other
    assert one.count("  + ") == 5


def test_a_factor_of_one_an_axis_and_what_is_raised_are_no_formulas(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    operators = importlib.import_module("mutation_operators")
    (tmp_path / "ones.py").write_text("def f(a, b):\n    return (1.0 * a, b / 1.0, 1.0 / a, list(zip(a, b.sum(-1), strict=True)))\n")
    found = {mutant.after for mutant in operators.Source("ones", tmp_path / "ones.py").mutants()}
    plain = "return ({}, {}, {}, list(zip(a, b.sum(-1), strict=True)))"
    assert found == {
        "return None",
        "return (1.0 * a, b / 1.0, 1.0 / a, list(zip(a, b.sum(-2), strict=True)))",
        *(plain.format(part, "b / 1.0", "1.0 / a") for part in ("1.0 / a", "1.0", "2.0 * a", "0.5 * a")),
        *(plain.format("1.0 * a", part, "1.0 / a") for part in ("b / 2.0", "b / 0.5")),
        *(plain.format("1.0 * a", "b / 1.0", part) for part in ("1.0 * a", "1.0", "2.0 / a", "0.5 / a")),
    }


PLANNED = ROOT / "tools" / "mutants.toml"


@pytest.fixture
def plan(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("mutation_plan").Plan.read(PLANNED)


def test_every_mutant_that_may_survive_is_in_the_source(plan):
    modules = {name.partition(":")[0] for name in plan.accepted}
    there = {
        mutant.name
        for group in plan.groups
        for source in plan.sources(group)
        if source.module in modules
        for mutant in source.mutants()
        if group.has(mutant.function)
    }
    assert [name for name in plan.accepted if name not in there] == []


def test_every_mutant_with_a_name_is_in_the_source(plan):
    plans = importlib.import_module("mutation_plan")
    assert sum(map(len, plans.named_mutants(plan).values())) == len(plan.named) >= 9


def test_every_group_mutates_something_with_tests_that_are_there(plan):
    for group in plan.groups:
        assert any(group.has(mutant.function) for source in plan.sources(group) for mutant in source.mutants()), group.name
        assert all((ROOT / path).exists() for path in plan.tests(group)), group.name


def test_tests_that_are_not_there_are_told(toy):
    assert mutants(toy, "stron*", "--list")[0] == 0  # a pattern
    status, _, err = mutants(toy, "gone/test_*.py")
    assert (status, err.strip()) == (1, "the tests of toy are not there: gone/test_*.py")


def test_the_documentation_shows_the_figures_and_every_survivor(plan):
    text = importlib.import_module("mutants").page(plan, json.loads(plan.figures.read_text(encoding="utf-8")))
    assert plan.page.read_text(encoding="utf-8").endswith(f"\n## What survives\n\n{text}"), "run python tools/mutants.py --page"


def test_the_figures_reach_the_goals(plan):
    figures = json.loads(plan.figures.read_text(encoding="utf-8"))
    goals = {group.name: group.goal for group in plan.groups}
    assert figures.keys() <= goals.keys()
    assert {name for name, found in figures.items() if found["killed"] < goals[name] * found["tried"]} == set()

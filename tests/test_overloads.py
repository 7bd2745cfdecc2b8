"""What an editor and mypy know of `bridle.policy("anytime", ...)`: generated, up to date, and right."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bridle
from bridle.policies import names, parameters, policy
from bridle.problems import problem_facts, problem_names
from helpers.typed_calls import BAD, GOOD

ROOT = Path(__file__).parents[1]
STUBS = {room: ROOT / "src" / "bridle" / room / "overloads.pyi" for room in ("policies", "game", "problems")}


def test_the_overloads_are_what_the_registry_says():
    spec = importlib.util.spec_from_file_location("overloads", ROOT / "tools" / "overloads.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    stale = [path.name for path, text in tool.stubs().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run python tools/overloads.py"
    assert set(tool.stubs()) == set(STUBS.values())


def test_there_is_one_for_every_name_with_every_parameter():
    text = STUBS["policies"].read_text(encoding="utf-8")
    for name in names():
        one = text.partition(f'name: Literal["{name}"],')[2].partition(") -> Configured")[0]
        taken = set(re.findall(r"^    (\w+): ", one, flags=re.M))
        maps = set() if name in ("bandit1", "bandit2") else {"rules", "rules_per", "features"}  # which try points of the domain itself
        assert taken - {"domain"} == {p.name for p in parameters(name)} | maps
    text = STUBS["problems"].read_text(encoding="utf-8")
    for name in problem_names():
        one = text.partition(f'name: Literal["{name}"],')[2].partition(") -> Problem")[0]
        assert {p["name"] for p in problem_facts(name)["parameters"]} == set(re.findall(r"^    (\w+): ", one, flags=re.M))


@pytest.mark.parametrize("name", names())
def test_the_choices_of_a_name_are_taken(name):
    """A value in a Literal is one that the policy takes, with whatever else it needs then; no other is."""
    text = STUBS["policies"].read_text(encoding="utf-8").partition(f'name: Literal["{name}"],')[2].partition(") -> Configured")[0]
    needed = {p.name: 2.0 for p in parameters(name) if p.required}
    domain = bridle.Simplex(2) if policy_domains(name) == ("simplex",) else bridle.Simplex(3)
    for parameter, listed in re.findall(r"^    (\w+): Literal\[(.*?)\]", text, flags=re.M):
        if parameter == "rules_per":
            continue
        for value in re.findall('"(.*?)"', listed):
            more = {"value": {"lipschitz": 1.0}, "self-bounding": {"smoothness": 1.0}}.get(value, {}) if name == "anytime" else {}
            place = bridle.L1Ball(3) if value == "p-norm" else domain
            assert policy(name, place, **needed, **more, **{parameter: value}).parameters[parameter] == value
        with pytest.raises(bridle.InputError, match="sideways"):
            policy(name, domain, **needed, **{parameter: "sideways"})


def policy_domains(name: str) -> tuple[str, ...]:
    return bridle.policies.entry(name).domains


@pytest.mark.slow
def test_mypy_passes_good_calls_and_refuses_bad_ones(tmp_path):
    file = tmp_path / "calls.py"
    file.write_text(GOOD + "\n".join(BAD.values()) + "\n")
    first = len(file.read_text().splitlines()) - len(BAD) + 1
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(file)]  # with the project's own settings: lint's cache serves it too
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    complained = {int(line) for line in re.findall(r"calls\.py:(\d+): error", done.stdout)}
    wrong = {what: line for line, what in enumerate(BAD, first)}
    assert {line for line in complained if line < first} == set(), done.stdout
    assert [what for what, line in wrong.items() if line not in complained] == [], done.stdout


def test_the_types_are_shipped():
    assert (ROOT / "src" / "bridle" / "py.typed").exists()

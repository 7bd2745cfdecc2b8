"""Policies and problems are functions: what an editor, mypy and `help` know of them is what the registry knows."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import bridle
from bridle import policies, problems
from helpers.typed_calls import BAD, GOOD

ROOT = Path(__file__).parents[1]

THROUGH = ["rules", "rules_per", "features"]


@pytest.mark.parametrize("name", policies.names())
def test_a_policy_is_the_function_of_its_name(name):
    function = getattr(policies, name.replace("-", "_"))
    told = {p.name: 2.0 for p in policies.parameters(name) if p.required}
    domain = bridle.Simplex(3)
    one, other = function(domain, **told), bridle.policy(name, domain, **told)
    assert (one.name, one.parameters, repr(one.record)) == (name, other.parameters, repr(other.record))
    assert isinstance(one, policies.Configured)
    shared = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD]
    assert shared == ([] if policies.entry(name).tries_points else ["through"])
    assert [p.name for p in policies.shared_parameters(name)] == [each for each in THROUGH if shared]


@pytest.mark.parametrize("name", problems.problem_names())
def test_a_problem_is_the_function_of_its_name(name, tmp_path):
    function = getattr(problems, name.replace("-", "_"))
    assert [p.name for p in problems.problem_facts(name).parameters] == list(inspect.signature(function).parameters)
    if name == "auctions":  # which needs a file
        return
    one, other = function(50, seed=3), bridle.problem(name, 50, seed=3)
    assert (one.name, one.parameters, one.constants.keys()) == (name, other.parameters, other.constants.keys())
    assert one.factory.args == other.factory.args


@pytest.mark.parametrize("name", policies.names())
def test_the_choices_in_its_signature_are_taken(name):
    """A value in a Literal is one that the policy takes, with whatever else it needs then; no other is."""
    function = inspect.unwrap(getattr(policies, name.replace("-", "_")))
    needed = {p.name: 2.0 for p in policies.parameters(name) if p.required}
    domain = bridle.Simplex(3)
    for parameter, kind in get_type_hints(function).items():
        choices = [each for part in (kind, *get_args(kind)) if get_origin(part) is Literal for each in get_args(part)]
        for value in choices:
            more = {"value": {"lipschitz": 1.0}, "self-bounding": {"smoothness": 1.0}}.get(value, {}) if name == "anytime" else {}
            place = bridle.L1Ball(3) if value == "p-norm" else domain
            assert bridle.policy(name, place, **needed, **more, **{parameter: value}).parameters[parameter] == value
        if choices:
            with pytest.raises(bridle.InputError, match="sideways"):
                bridle.policy(name, domain, **needed, **{parameter: "sideways"})


def test_a_parameter_that_went_is_refused_with_what_to_use_instead():
    ball = bridle.Ball(2)
    for name, given, instead in (
        ("anytime", {"geometry": "entropy"}, "anytime-entropy"),
        ("anytime", {"hold": True}, "hold"),
        ("anytime", {"predictable": True}, "bandit2"),
        ("sinha2024", {"horizon": 9, "lipschitz": 1.0, "delay": 3}, "ticket"),
    ):
        with pytest.raises(bridle.InputError, match=f"policy {name} no longer has a parameter .*{instead}"):
            bridle.policy(name, ball, **given)


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

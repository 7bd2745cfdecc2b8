"""`explain`: the source with what every argument is and where every statement comes from; what is compiled knows nothing of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import bridle
from bridle import records
from bridle.engines import explain
from helpers.written_sources import catch_sources

PACKAGE = Path(bridle.__file__).parent
NOTE = re.compile(r"  # (?P<file>[\w/]+\.py):(?P<line>\d+) \((?P<function>[\w.<>]+)\)$")


@pytest.fixture(scope="module")
def game():
    problem = bridle.problem("halfspaces", horizon=50, dim=3)
    return bridle.policy_for("sinha2024", problem), problem


def function_at(file: str, line: int) -> str:
    """The name of the innermost function or method of the package around a line."""
    found = ""

    def visit(node: ast.AST, name: str) -> None:
        nonlocal found
        for child in ast.iter_child_nodes(node):
            inside = name
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inside = f"{name}.{child.name}" if name else child.name
                if child.lineno <= line <= (child.end_lineno or 0):
                    found = inside
            visit(child, inside)

    visit(ast.parse((PACKAGE / file).read_text()), "")
    return found


def loop_of(text: str) -> list[str]:
    """The statements of the loop over rounds, without the heads of inner loops."""
    lines = text.splitlines()
    inside = lines[lines.index("    for t in range(rounds):") + 1 :]
    return [line for line in inside if line.startswith("        ") and not line.rstrip().endswith(":")]


def test_every_statement_of_algorithm_1_names_its_line(game):
    statements = loop_of(explain(*game))
    assert len(statements) > 30
    for statement in statements:
        note = NOTE.search(statement)
        assert note, statement
        assert function_at(note["file"], int(note["line"])) == note["function"], statement
    files = {NOTE.search(statement)["file"] for statement in statements}
    assert {"policies/_sinha2024.py", "functions/affine.py", "domains/closed_form.py"} <= files


@pytest.mark.parametrize("target", ["compiled", "jax"])
def test_every_argument_is_called_by_its_leaf(game, target):
    policy, problem = game
    text = explain(policy, problem, engine=target)
    for name in records.leaves(policy.record):
        assert f"policy.{name}\n" in text
    for leaf in ("adversary.point", "state.policy.Q", "state.policy.learner.x", "draw.cost.a"):
        assert f"{leaf}\n" in text


def test_the_equations_name_their_lines(game):
    lines = [line for line in explain(*game, engine="jax").splitlines() if " = " in line]
    assert len(lines) > 30
    assert all(NOTE.search(line) for line in lines)


def test_what_is_compiled_has_no_notes(game, monkeypatch):
    """A line that moves must not change the name that compiled code is kept under."""
    sources = catch_sources(monkeypatch)
    bridle.play(*game, engine="compiled")
    (source,) = sources
    assert ".py:" not in source.text()
    assert ".py:" in source.function(lambda origin: "policies/_sinha2024.py:1")


def test_rounds_that_were_there_before_are_explained_too():
    problem = bridle.problem("portfolio", horizon=20)
    assert "state.policy" in explain(bridle.policy_for("anytime", problem), problem)


def test_a_sweep_is_explained_by_its_first_run(game):
    policy, problem = game
    sweep = bridle.policy_for("sinha2024", problem, lam=[1e-3, 1e-2])
    assert explain(sweep, problem) == explain(policy, problem)


def test_the_python_engine_has_nothing_to_show(game):
    with pytest.raises(bridle.InputError, match="calls the policy's own methods"):
        explain(*game, engine="python")
    with pytest.raises(bridle.InputError, match="unknown engine"):
        explain(*game, engine="fortran")


def test_what_calls_a_solver_is_refused():
    problem = bridle.problem("halfspaces", horizon=10, dim=2)
    with pytest.raises(bridle.InputError, match="engine 'python' only"):
        explain(bridle.policy_for("steiner", problem), problem)

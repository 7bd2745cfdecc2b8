"""`bridle new policy NAME` and `bridle new problem NAME`: what they write works as it is, on every engine and in parallel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bridle
from bridle import cli, compare
from bridle.cli import new
from bridle.policies import own, registry

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_LOADED", {})
    monkeypatch.chdir(tmp_path)


def make(*words: str) -> None:
    cli.app(["new", *words], standalone_mode=False)


def failure(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(["new", *words])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def run(*words: str) -> str:
    there = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(bridle.__file__).parents[1]), os.environ.get("PYTHONPATH")])),
    }
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, env=there, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.compiles
@pytest.mark.slow
def test_a_new_policy_plays_on_every_engine_and_in_parallel(capsys):
    make("policy", "careful")
    said = capsys.readouterr().out
    assert "bridle compare halfspaces --policies anytime,./careful.py" in said
    problem = bridle.problem("halfspaces", horizon=400, seed=2, constraints=2)
    policy = bridle.policy_for(own.load_one("./careful.py").name, problem)
    ccvs = [bridle.ccv(bridle.play(policy, problem, engine=engine)) for engine in ("python", "jax", "compiled")]
    assert max(ccvs) - min(ccvs) <= 1e-9 * max(ccvs)
    rows = compare(["halfspaces", "fixed", "violation-seeking"], ["anytime", "./careful.py"], [400], 2, "o", jobs=2)
    mine = [row for row in rows if row["policy"] == "careful"]
    assert len(mine) == 6
    assert all(row["regret_bound_holds"] and row["ccv_bound_holds"] for row in mine)


@pytest.mark.compiles
@pytest.mark.slow
def test_what_is_written_is_tested_typed_and_clean():
    longest = "a" * new.LONGEST
    for kind, name in (("policy", "ab"), ("policy", longest), ("problem", "machine"), ("problem", "b" * new.LONGEST)):
        make(kind, name)
    files = [str(path) for path in sorted(Path().glob("*.py"))]
    assert len(files) == 8
    assert " passed" in run(
        "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules", "ab.py", "test_ab.py", "machine.py", "test_machine.py"
    )
    run("ruff", "check", "--isolated", "--select", "E,F,I,B,UP,SIM,D1", "--ignore", "D102,D103", *files)
    run("ruff", "format", "--isolated", "--check", *files)
    settings = [
        "--strict",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--cache-dir",
        str(ROOT.joinpath(".mypy_cache")),
    ]  # as `make lint` does
    run("mypy", *settings, "ab.py", "test_ab.py", "machine.py", "test_machine.py")


@pytest.mark.parametrize("price", [0.3, 4.0])
@pytest.mark.parametrize("step", [0.01, 0.5])
def test_the_bound_of_the_template_is_a_theorem(price, step):
    """Against B(t) in another form, and on streams that answer the decisions."""
    make("policy", "careful")
    name = own.load_one("./careful.py").name
    for problem in ("violation-seeking", "tempting", "alternating"):
        source = bridle.problem(problem, horizon=300, seed=1)
        trace = bridle.play(bridle.policy_for(name, source, price=price, step=step), source)
        regret, (G, D) = bridle.regret(trace), (source.constants["lipschitz"], source.constants["diameter"])
        B = sum(0.5 * (1.0 + price) ** 2 * G**2 * step / t**0.5 for t in range(1, 301)) + D**2 * 300**0.5 / (2.0 * step)
        assert regret + price * bridle.ccv(trace) <= B
        bound = trace.policy.bound({**source.constants, "regret": regret}, 300)
        assert regret <= bound.regret
        assert bridle.ccv(trace) <= bound.ccv
        before = trace.policy.bound(source.constants, 300)  # with nothing measured
        assert bound.ccv <= before.ccv
        slack = (
            (1.0 + price) ** 2 * G**2 * step * (300**0.5 - 0.5 * sum(t**-0.5 for t in range(1, 301)))
        )  # sums of 1/sqrt(t) are rounded up
        assert before.regret == pytest.approx(min(B + slack, G * D * 300))


def test_a_new_problem_can_be_played_as_it_is(capsys):
    make("problem", "machine")
    capsys.readouterr()
    cli.app(["play", "./machine.py", "--policy", "anytime", "--horizon", "300", "--set", "dim=3", "--json", "-"], standalone_mode=False)
    facts = json.loads(capsys.readouterr().out)
    assert facts["dim"] == 3
    assert facts["regret_bound_holds"]
    assert facts["ccv_bound_holds"]


REFUSED = [
    ("Careful", "NAME must be small letters, digits and _"),
    ("1st", "NAME must be small letters, digits and _"),
    ("class", "NAME must be small letters, digits and _"),
    ("../careful", "NAME must be small letters, digits and _"),
    ("a" * 21, "NAME must be small letters, digits and _"),
    ("", "NAME must be small letters, digits and _"),
    ("ogd", "NAME must be new, and ogd is a registered policy"),
    ("array", "NAME must be another: the file has something else that is called Array"),
    ("validate", "NAME must be another: the file has something else that is called validate"),
    ("json", "NAME must not be that of a module that Python finds already, as json is"),
]


@pytest.mark.parametrize(("name", "message"), REFUSED)
def test_a_bad_name_writes_nothing(capsys, name, message):
    assert message in failure(capsys, "policy", name)
    assert not list(Path().iterdir())


def test_no_file_is_overwritten(capsys):
    Path("test_careful.py").write_text("mine")
    assert "test_careful.py exists already, and is not overwritten" in failure(capsys, "policy", "careful")
    assert [path.name for path in Path().iterdir()] == ["test_careful.py"]
    assert Path("test_careful.py").read_text() == "mine"
    assert "--out must name a folder that exists, not 'nowhere'" in failure(capsys, "problem", "machine", "--out", "nowhere")
    Path("there").mkdir()
    make("problem", "machine", "--out", "there")
    assert "bridle play there/machine.py" in capsys.readouterr().out
    assert sorted(path.name for path in Path("there").iterdir()) == ["machine.py", "test_machine.py"]

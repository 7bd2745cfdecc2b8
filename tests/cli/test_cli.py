"""The command line: what it prints, what it writes for programs, and that everything wrong is one line and exit status 2."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bridle
from bridle import policies
from bridle.cli import output
from bridle.cli.listing import sentences
from bridle.comparisons import tables
from bridle.engines import ENGINES
from bridle.functions import AffineFunction
from bridle.game.summary import summary
from bridle.problems import problem_names
from bridle.problems._paper import Fixed
from bridle.showing import number
from helpers.instances import SIMULATED, strict

PLAY_KEYS = {
    "problem", "policy", "horizon", "seed", "engine", "cost", "regret", "ccv", "regret_bound", "ccv_bound", "us_per_round",
    "regret_bound_paper", "ccv_bound_paper", "interval_violation", "interval_bound", "bound_why", "warnings", "parameters",
}  # fmt: skip
PARAMETER_KEYS = {"name", "required", "default", "help", "unit", "values", "absent", "type"}
TIMES = ("us_per_round", "seconds")


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The installed program, as a user runs it."""
    there = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | environment
    bridle_ = Path(sys.executable).with_name("bridle")
    return subprocess.run([str(bridle_), *arguments], capture_output=True, text=True, env=there, check=False)


# --- what goes well -------------------------------------------------------------------------------------------------------------------


def test_it_says_which_version_it_is(run):
    assert run("--version") == (0, f"bridle {bridle.__version__}\n", "")


@pytest.mark.parametrize(
    ("size", "message"),
    [("1KB", "memory must be at least .* bytes for a block of this game, not 1000"), ("much", "memory must be a number of bytes such as")],
)
def test_a_limit_on_memory_that_will_not_do_is_one_line(run, size, message):
    status, out, err = run("play", "halfspaces", "--memory", size)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert re.search(message, err)


def test_alone_it_shows_its_help(run):
    status, out, err = run()
    assert (status, err) == (0, "")
    assert out.startswith("Usage: bridle [OPTIONS] COMMAND [ARGS]...")
    assert run("--help")[1] == out
    for command in ("policies", "problems", "play", "demo"):
        assert re.search(rf"^  {command} ", out, re.MULTILINE)
        status, more, err = run(command, "--help")
        assert (status, err) == (0, "")
        assert "--json" in more


@pytest.mark.parametrize("command", ["play", "demo", "compare", "fraud"])
def test_every_engine_is_named_where_one_can_be_chosen(run, command):
    said = " ".join(run(command, "--help")[1].split())
    assert "python, jax or compiled" in said
    assert all(name in said for name in ENGINES)


def test_a_terminal_is_shown_how_far_it_is(run, tmp_path, monkeypatch, capsys):
    """The bar goes to standard error, and what is printed stays the same."""
    plain = run("play", "fixed", "--horizon", 50, "--json", "-")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True, raising=False)
    status, out, err = run("play", "fixed", "--horizon", 50, "--json", "-")
    assert (status, list(strict(out))) == (0, list(strict(plain[1])))
    assert (plain[2], "playing" in err) == ("", True)
    status, out, err = run("compare", "fixed", "--policies", "ogd", "--horizons", 50, "--seeds", 2, "--jobs", 1, "--out", tmp_path)
    assert status == 0
    assert "2 of 2 cells" in err
    with output.progress("reading") as tell:
        tell(1, 2)
        tell(2, 2, "seed 1")
    assert "seed 1" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["policies", "problems"])
def test_lists_show_every_name_and_parameter(run, command):
    status, out, err = run(command)
    assert (status, err) == (0, "")
    status, text, err = run(command, "--json", "-")
    assert (status, err) == (0, "")
    rows = strict(text)
    assert [row["name"] for row in rows] == (policies.names() if command == "policies" else problem_names())
    for row in rows:
        assert row["name"] in out
        assert all(set(p) == PARAMETER_KEYS for p in row["parameters"])
        for p in row["parameters"]:
            assert p["help"]
            assert re.search(rf"\b{p['name']}\b", out)
    if command == "policies":
        assert {"regret", "violation", "per_round", "reference", "needs", "strongly_convex", "slater", "constraints"} <= set(rows[0])
        assert "O(sqrt(T) log T)" in out
        assert "Sinha & Vaze, NeurIPS 2024" in out


@pytest.mark.parametrize("name", policies.names())
def test_one_policy_is_told_in_full(run, name):
    """Every parameter with its meaning, default and unit; what every policy can be told; and what sessions can say."""
    status, out, err = run("policies", name)
    assert (status, err) == (0, "")
    row = strict(run("policies", name, "--json", "-")[1])
    listed = next(each for each in strict(run("policies", "--json", "-")[1]) if each["name"] == name)
    assert row.items() >= listed.items()
    assert [p["name"] for p in row["parameters"]] == [p.name for p in policies.parameters(name)]
    record = eval(row["python"][0], {"bridle": bridle}).record
    tries = hasattr(record, "points")
    assert [p["name"] for p in row["maps"]] == ([] if tries else ["rules", "rules_per", "features"])
    hint = ["hint"] * hasattr(record, "hinted")
    assert [p["name"] for p in row["session"]] == (["points"] if tries else ["rules", "features", "known", *hint, "played"])
    words = " ".join(out.replace("│", " ").split())
    for p in [*row["parameters"], *row["maps"], *row["session"]]:
        assert set(p) == PARAMETER_KEYS
        assert p["help"], p
        assert p["name"] in words
        assert p["required"] == (p["required"] and "Must be given." in words)
    for p in [*row["parameters"], *row["maps"]]:
        assert p["values"], f"{p['name']} needs its values"
        assert p["required"] or p["default"] is not None or p["absent"], f"{p['name']}: what happens where it is not given?"
        assert sentences(p) in words
    assert row["title"] in words
    assert row["reference"] in words
    assert "Guarantee:" in row["theory"]
    assert row["command"] in words
    for line in row["python"]:
        assert line in words
        assert eval(line, {"bridle": bridle}).name == name
    assert bool(row["command"]) != row["rewards"], "every policy but the one for rewards has a registered problem"
    assert not row["command"] or run(*row["command"].split()[1:], "--horizon", 20)[0] == 0


def test_what_known_limits_do_is_told_as_it_is(run):
    """Of every policy: whether its state moves, as a session does it."""
    for name, moves in (("anytime", True), ("adagrad", True), ("sinha2024", True), ("yi2021", False), ("mlpoly", False), ("rate", False)):
        known = next(p for p in strict(run("policies", name, "--json", "-")[1])["session"] if p["name"] == "known")
        assert ("the theorem stays" in known["help"], "the way there is charged" in known["help"]) == (moves, not moves)


@pytest.mark.parametrize("name", problem_names())
def test_one_problem_is_told_in_full(run, name):
    status, out, err = run("problems", name)
    assert (status, err) == (0, "")
    row = strict(run("problems", name, "--json", "-")[1])
    assert row["name"] == name
    words = " ".join(out.replace("│", " ").split())
    for p in row["parameters"]:
        assert set(p) == PARAMETER_KEYS
        assert p["help"], p
        assert p["values"], f"{p['name']} needs its values"
        assert p["required"] or p["default"] is not None or p["absent"], f"{p['name']}: what happens where it is not given?"
        assert sentences(p) in words
    assert row["command"] in words
    assert all(line in words for line in row["python"])
    assert row["summary"] in words


def test_a_problem_of_ones_own_is_told_too(run, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import bridle\n\ndef problem(horizon=10, seed=0, cut=0.5):\n"
        '    """Mine.\n\n    x is mine.\n\n    Parameters\n    ----------\n    cut\n        A cut. Values: above 0. Unit: action.\n'
        '    """\n    return bridle.problem("fixed", horizon=horizon, seed=seed)\n'
    )
    status, out, err = run("problems", path, "--json", "-")
    assert (status, err) == (0, "")
    row = strict(out)
    assert (row["summary"], row["about"]) == ("Mine.", "x is mine.")
    assert [(p["name"], p["default"], p["help"], p["unit"]) for p in row["parameters"]] == [
        ("horizon", 10, "", ""), ("seed", 0, "", ""), ("cut", 0.5, "A cut", "action")
    ]  # fmt: skip


@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize("policy", ["sinha2024", "sinha2024-ocs"])
def test_a_game_tells_the_same_in_its_table_and_its_json(run, tmp_path, name, policy):
    path = tmp_path / "facts.json"
    status, out, err = run("play", name, "--policy", policy, "--horizon", 60, "--seed", 3, "--json", path)
    assert (status, err) == (0, "")
    assert f"{policy} on {name}: T = 60" in out
    assert out.endswith(f"facts written to {path}\n")
    facts = strict(path.read_text())
    assert set(facts) >= PLAY_KEYS
    assert (facts["problem"], facts["policy"], facts["horizon"], facts["seed"], facts["engine"]) == (name, policy, 60, 3, "python")
    for key in ("cost", "regret", "ccv", "interval_violation"):
        assert f" {number(facts[key])} " in out
    assert ("regret: not known, no action of the domain satisfies every constraint" in out) == (facts["regret"] is None)
    problem = bridle.problem(name, horizon=60, seed=3)
    trace = bridle.play(bridle.policy_for(policy, problem), problem)
    assert facts["cost"] == float(trace.totals.cost)
    assert facts["ccv"] == bridle.ccv(trace)
    regret = None if problem.constants["feasible"] is None else bridle.regret(trace)
    assert facts["regret"] == (None if regret is None else pytest.approx(regret, abs=1e-9))
    bound = trace.policy.bound({**problem.constants, "regret": regret}, 60)
    assert (facts["regret_bound"], facts["ccv_bound"], facts["interval_bound"]) == (bound.regret, bound.ccv, bound.interval)
    assert facts["us_per_round"] > 0.0
    for key in ("regret_bound_holds", "ccv_bound_holds", "interval_bound_holds"):
        assert facts[key] in (True, None)


def test_dash_writes_pure_json(run):
    for arguments in (["policies"], ["problems"], ["play", "fixed", "--horizon", 20], ["demo", "--horizon", 10]):
        status, out, err = run(*arguments, "--json", "-")
        assert (status, err) == (0, "")
        assert out[0] in "[{"
        strict(out)


def test_settings_reach_the_policy_and_the_problem(run):
    def facts(*more: Any) -> dict[str, Any]:
        status, out, err = run("play", "halfspaces", "--policy", "sinha2024", "--horizon", 30, *more, "--json", "-")
        assert (status, err) == (0, "")
        return strict(out)

    given = facts("--set", "preset=practice", "--set", "V=0.5", "--set", "dim=4", "--set", "constraints=3", "--set", "domain=simplex")
    assert given["parameters"] == {"horizon": 30, "lipschitz": 1.0, "constraints": 3, "preset": "practice", "V": 0.5}
    assert given["problem_parameters"] == {"horizon": 30, "seed": 0, "dim": 4, "constraints": 3, "domain": "simplex"}
    assert (given["dim"], given["constraints"], len(given["ccv_each"])) == (4, 3, 3)
    assert facts("--dim", 4, "--set", "constraints=3")["dim"] == 4
    assert facts("--set", "learner=ftpl", "--set", "samples=10", "--set", "seed=7")["parameters"]["seed"] == 7
    assert facts("--policy", "sinha2024-ocs", "--set", "constraints=2")["parameters"]["constraints"] == 2
    strong = facts("--policy", "sinha2024-strong", "--modulus", 0.5)
    assert strong["parameters"]["modulus"] == strong["constants"]["modulus"] == 0.5
    assert facts("--policy", "sinha2024-strong", "--set", "modulus=0.5")["cost"] == strong["cost"]
    assert facts("--set", "lipschitz=1e1")["parameters"]["lipschitz"] == 10.0


def test_a_seed_or_horizon_that_is_set_goes_where_it_is_known(run):
    """The policy's own where it has one, else the game's; it is never dropped."""
    seeded = strict(
        run("play", "halfspaces", "--horizon", 20, "--policy", "sinha2024-strong", "--modulus", 1, "--set", "seed=9", "--json", "-")[1]
    )
    assert seeded["seed"] == 9
    longer = strict(run("play", "halfspaces", "--horizon", 20, "--policy", "sinha2024-ocs", "--set", "horizon=25", "--json", "-")[1])
    assert longer["horizon"] == 25
    short = strict(run("play", "halfspaces", "--policy", "sinha2024", "--horizon", 20, "--set", "horizon=5", "--json", "-")[1])
    assert (short["horizon"], short["parameters"]["horizon"]) == (20, 5)
    assert (short["regret_bound"], short["ccv_bound"], short["regret_bound_paper"], short["ccv_bound_paper"]) == (None,) * 4
    assert "past the policy's horizon of 5" in short["bound_why"]
    assert len(short["warnings"]) == 1


def test_notes_say_why_there_is_no_bound(run):
    out = run("play", "halfspaces", "--policy", "sinha2024", "--horizon", 20, "--set", "horizon=5")[1]
    assert "no bound: round 20 is past the policy's horizon of 5\n" in out
    assert "warning: the policy was made for 5 rounds and played 20" in out
    out = run("play", "halfspaces", "--policy", "sinha2024", "--horizon", 20, "--set", "preset=practice")[1]
    assert "paper's bound: none, the preset is practice, not the theorem's\n" in out


@pytest.mark.compiles
def test_the_engines_tell_the_same(run):
    one, two = (strict(run("play", "halfspaces", "--horizon", 50, "--engine", engine, "--json", "-")[1]) for engine in ("python", "jax"))
    assert (one["engine"], two["engine"]) == ("python", "jax")
    for key in ("cost", "regret", "ccv"):
        assert one[key] == pytest.approx(two[key], abs=1e-9)


def test_the_same_seed_gives_the_same_facts_and_another_does_not(run):
    def facts(seed: int) -> dict[str, Any]:
        told = strict(run("play", "minimax", "--horizon", 40, "--seed", seed, "--json", "-")[1])
        return {key: value for key, value in told.items() if key not in TIMES}

    assert facts(5) == facts(5)
    assert facts(5)["cost"] != facts(6)["cost"]


@pytest.mark.parametrize("setting", ["lipschitz=1e300", "diameter=1e300", "V=1e300", "V=1e-300", "beta=1e-300", "horizon=1.7e308"])
def test_json_has_no_nan_or_infinity(run, setting):
    status, out, err = run("play", "fixed", "--horizon", 5, "--set", setting, "--json", "-")
    if status:  # too extreme to compute at all
        assert re.fullmatch(r"bridle: .*\n", err)
    else:
        assert err == ""
        assert strict(out)["ccv_bound_paper"] is None or setting != "horizon=1.7e308"  # sqrt(T) ln(2 + 4T), and 4T is no float


def test_a_regret_that_is_not_known_is_null_with_the_reason():
    a = np.array([1.0, 0.0])
    impossible = bridle.Round(AffineFunction(a, 0.0), (AffineFunction(0.1 * a, 2.0),))
    problem = bridle.Problem(bridle.Ball(2), Fixed(impossible), {"lipschitz": 1.0, "diameter": 2.0}, "mine")
    policy = bridle.policy("sinha2024", problem.domain, horizon=20, lipschitz=1.0)
    facts = summary(bridle.play(policy, problem))
    assert facts["regret"] is None
    assert "no action of the domain satisfies every constraint" in facts["regret_why"]
    assert (facts["regret_bound"], facts["ccv_bound"], facts["regret_bound_holds"]) == (None, None, None)
    assert tables.game_notes(facts)[:2] == [
        f"regret: not known, {facts['regret_why']}",
        "no bound: no action is known to satisfy every constraint",
    ]


# --- the demonstration and how tables look --------------------------------------------------------------------------------------------


def test_the_demonstration_shows_every_game(run, tmp_path):
    path = tmp_path / "demo.json"
    status, out, err = run("demo", "--horizon", 50, "--json", path)
    assert (status, err) == (0, "")
    rows = strict(path.read_text())
    assert len(rows) == 16
    games = [row for row in rows if not row.get("does_not_apply")]
    assert all(set(row) >= PLAY_KEYS for row in games)
    for row in games:
        for bound in ("regret_bound_holds", "ccv_bound_holds", "interval_bound_holds"):
            assert row[bound] in (True, None)
    refused = [row for row in rows if row.get("does_not_apply")]
    assert [(row["problem"], row["policy"]) for row in refused] == [("lower-bound", "sinha2024-strong")]
    assert "does not apply" in out
    assert "sinha2024-strong does not apply to lower-bound: its costs are absolute values, which are not strongly convex\n" in out
    for row in games:
        assert number(row["regret"]) in out
        assert number(row["ccv"]) in out
    assert max(map(len, out.splitlines())) <= 200


@pytest.mark.parametrize("columns", [60, 80, 100, 140, 200])
def test_tables_fit_the_terminal_and_cut_nothing(run, monkeypatch, columns):
    """No line is longer than the terminal is wide, and every number and name is there whole."""
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in (["policies"], ["problems"], ["play", "halfspaces", "--horizon", 50], ["demo", "--horizon", 50]):
        status, out, err = run(*arguments)
        assert (status, err) == (0, "")
        assert max(map(len, out.splitlines())) <= columns
        assert "…" not in out
    words = set(re.findall(r"[^\s│┃]+", out))
    status, text, err = run("demo", "--horizon", 50, "--json", "-")
    for row in strict(text):
        if columns >= 80:
            assert row["policy"] in words
        if not row.get("does_not_apply"):
            for key in ("regret", "regret_bound", "ccv", "ccv_bound", "ccv_bound_paper", "interval_bound"):
                assert number(row[key]) in words


def test_a_broken_bound_is_marked(run):
    """It must not happen; if it does, nobody should overlook it."""
    facts = strict(run("play", "fixed", "--horizon", 20, "--json", "-")[1])
    broken = {**facts, "label": "mine", "ccv": 1e9, "ccv_bound_holds": False}
    from rich.console import Console

    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(tables.comparison_table([broken], "t"))
    console.print(tables.game_table(broken))
    console.file.close()
    text = console.export_text()
    assert "1,000,000,000 !" in text
    assert re.search(r"CCV .* NO ", text)
    assert tables.comparison_notes([broken]) == ["!: above its bound, which must not happen"]


def test_a_policy_that_is_not_registered_can_be_summarised():
    problem = bridle.problem("halfspaces", horizon=20, dim=3)
    doubling = bridle.Doubling(lambda T: bridle.policy("sinha2024", problem.domain, horizon=T, lipschitz=1.0))
    facts = summary(bridle.play(doubling, problem))
    assert facts["policy"] == "DoublingPolicy"
    assert facts["bound_why"] == "the policy is not registered"
    strict(json.dumps(facts, allow_nan=False))
    swept = summary(bridle.play(bridle.policy_for("sinha2024", problem, V=[0.1, 1.0]), problem))
    assert len(swept["regret"]) == len(swept["ccv"]) == len(swept["regret_bound"]) == 2
    strict(json.dumps(swept, allow_nan=False))


# --- what goes wrong ------------------------------------------------------------------------------------------------------------------

HALF = ("play", "halfspaces", "--policy", "sinha2024", "--horizon", "10")
WRONG = [
    (["nosuch"], "No such command 'nosuch'"),
    (["--nosuch"], "No such option.*--nosuch"),
    (["play"], "Missing argument"),
    (["policies", "extra"], "unknown policy 'extra'"),
    (["policies", "anytme"], r"unknown policy 'anytme'; did you mean anytime"),
    (["policies", "anytime", "soft"], "unexpected extra argument"),
    (["problems", "halfspace"], r"unknown problem 'halfspace'; did you mean halfspaces\?"),
    (["problems", "./nowhere.npz"], "nowhere.npz"),
    (["policies", "--jsn", "-"], "No such option.*--jsn"),
    (["policies", "--json"], "requires an argument"),
    ([*HALF, "more"], "unexpected extra argument"),
    ([*HALF, "--nosuch"], "No such option.*--nosuch"),
    ([*HALF, "--policy"], "requires an argument"),
    (["play", "halfspace"], r"unknown problem 'halfspace'; did you mean halfspaces\?"),
    (["play", "lowerbound"], r"unknown problem 'lowerbound'; did you mean lower-bound\?"),
    (["play", "xyz"], "unknown problem 'xyz'; known: .*fixed, .*halfspaces, .*lower-bound, minimax"),
    (["play", "HALFSPACES"], "unknown problem 'HALFSPACES'"),
    (["play", ""], "unknown problem ''"),
    ([*HALF, "--policy", "sinha"], "unknown policy 'sinha'; did you mean sinha2024"),
    ([*HALF, "--policy", "sinha2024-string"], "unknown policy 'sinha2024-string'; did you mean sinha2024-strong"),
    ([*HALF, "--engine", "jaxx"], r"unknown engine 'jaxx'; did you mean jax\?"),
    ([*HALF, "--engine", "fortran"], "unknown engine 'fortran'; known: auto, compiled, jax, python"),
    ([*HALF, "--engine", "cuda"], "engine 'cuda' was removed; use engine='jax', which uses a GPU where JAX sees one"),
    (["compare", "halfspaces", "--engine", "cuda"], "engine 'cuda' was removed; use engine='jax'"),
    (["fraud", "--engine", "cuda"], "engine 'cuda' was removed; use engine='jax'"),
    (["play", "halfspaces", "--horizon", "0"], "horizon must be 1 or above, not 0"),
    (["play", "halfspaces", "--horizon", "-5"], "horizon must be 1 or above, not -5"),
    (["play", "halfspaces", "--horizon", "1.5"], "Invalid value for '--horizon'"),
    (["play", "halfspaces", "--horizon", "ten"], "Invalid value for '--horizon'"),
    (["play", "lower-bound", "--horizon", "1000000000000"], "too large or too small to compute: Unable to allocate"),
    ([*HALF, "--seed", "-1"], "seed must be 0 or above, not -1"),
    ([*HALF, "--seed", "x"], "Invalid value for '--seed'"),
    ([*HALF, "--dim", "0"], "dim must be 1 or above, not 0"),
    ([*HALF, "--dim", "1000000000000"], "too large or too small to compute: Unable to allocate"),
    ([*HALF, "--modulus", "-1"], "modulus must be 0 or above, not -1"),
    ([*HALF, "--modulus", "nan"], "modulus must be finite, not nan"),
    ([*HALF, "--set", "V"], "--set takes NAME=VALUE, not 'V'"),
    ([*HALF, "--set", "=1"], "--set takes NAME=VALUE, not '=1'"),
    ([*HALF, "--set", ""], "--set takes NAME=VALUE, not ''"),
    ([*HALF, "--set", "lamda=1"], "unknown parameter of policy sinha2024 or problem halfspaces 'lamda'; did you mean lam"),
    ([*HALF, "--set", "qqq=1"], "unknown parameter of policy sinha2024 or problem halfspaces 'qqq'; known: V, beta"),
    ([*HALF, "--set", "family=3"], "unknown parameter of policy sinha2024 or problem halfspaces 'family'"),
    ([*HALF, "--set", "V=-1"], "V must be above 0, not -1"),
    ([*HALF, "--set", "V="], "V must be a number, not ''"),
    ([*HALF, "--set", "V=1,2"], "V must be a number, not '1,2'"),
    ([*HALF, "--set", "V=nan"], "V must be finite, not nan"),
    ([*HALF, "--set", "V=inf"], "V must be finite, not inf"),
    ([*HALF, "--set", "lipschitz=abc"], "lipschitz must be a number, not 'abc'"),
    ([*HALF, "--set", "preset=practise"], r"unknown preset 'practise'; did you mean practice\?"),
    ([*HALF, "--set", "learner=adagrd"], "unknown learner 'adagrd'; did you mean adagrad"),
    ([*HALF, "--set", "learner=3"], "learner must be a name or have a method `step`, not 3"),
    ([*HALF, "--set", "potential=cubic"], "unknown potential 'cubic'"),
    ([*HALF, "--set", "potential=power", "--set", "exponent=1"], "exponent must be 2 or above, not 1"),
    ([*HALF, "--set", "step=0.1"], "step is for learner='ogd' only"),
    ([*HALF, "--set", "domain=ring"], "unknown domain 'ring'"),
    ([*HALF, "--set", "domain=simplex", "--dim", "1"], "domain must hold more than one point"),
    ([*HALF, "--set", "constraints=2.5"], "constraints must be a whole number, not 2.5"),
    ([*HALF, "--set", "lipschitz=1e-308"], "is not finite in round|too large"),
    ([*HALF, "--policy", "sinha2024-strong"], "sinha2024-strong does not apply: the costs of problem halfspaces are not strongly convex"),
    (["play", "lower-bound", "--policy", "sinha2024-strong", "--horizon", "9"], "does not apply: the costs of problem lower-bound"),
    (["play", "lower-bound", "--horizon", "9", "--modulus", "1"], "modulus of problem lower-bound is 0"),
    (["play", "lower-bound", "--horizon", "9", "--dim", "3"], "dim of problem lower-bound is its horizon, 9, not 3"),
    ([*HALF, "--json", "/no/such/folder/x.json"], "cannot write /no/such/folder/x.json: there is no folder /no/such/folder"),
    ([*HALF, "--json", "/"], "cannot write /: it is a folder"),
    (["policies", "--json", "/dev"], "cannot write /dev: it is a folder"),
    (["demo", "--horizon", "0"], "horizon must be 1 or above, not 0"),
    (["demo", "--seed", "-1"], "seed must be 0 or above, not -1"),
    (["demo", "--horizon", "5", "--engine", "nope"], "unknown engine 'nope'"),
    (["demo", "--horizon", "5", "--json", "/dev/null/x"], "cannot write /dev/null/x: there is no folder /dev/null"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: " ".join(value)[-50:] if isinstance(value, list) else "")
def test_everything_wrong_is_one_line_and_status_2(run, arguments, message):
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert re.fullmatch(r"bridle: [^\n]+\n", err)
    assert re.search(message, err), err


def test_a_file_that_cannot_be_written_is_found_out_before_the_game(run, monkeypatch):
    monkeypatch.setattr("bridle.game.play", lambda *a, **k: pytest.fail("the game was played"))
    assert run(*HALF, "--json", "/no/such/folder/x.json")[0] == 2
    monkeypatch.setattr(os, "access", lambda *a: False)
    assert "permission denied" in run(*HALF, "--json", "x.json")[2]


def test_a_write_that_fails_in_the_end_prints_no_table(run, monkeypatch, tmp_path):
    path = tmp_path / "full.json"
    path.write_text("what was there before")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    status, out, err = run(*HALF, "--json", path)
    assert (status, out) == (2, "")
    assert err == f"bridle: cannot write {path}: No space left on device\n"
    assert path.read_text() == "what was there before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_is_one_line(run, monkeypatch):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("bridle.game.play", interrupted)
    assert run(*HALF) == (130, "", "bridle: interrupted; nothing was written\n")


def test_an_engine_that_is_not_installed_is_one_line(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "bridle.engines.jax", raising=False)
    status, out, err = run(*HALF, "--engine", "jax")
    assert (status, out) == (2, "")
    assert err == "bridle: engine 'jax' needs the package jax: pip install 'bridle-oco[jax]'\n"


# --- the program as it is installed ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_program_and_the_module_are_the_same():
    module = subprocess.run([sys.executable, "-m", "bridle", "problems", "--json", "-"], capture_output=True, text=True, check=False)
    installed = program("problems", "--json", "-")
    assert module.returncode == installed.returncode == 0
    assert module.stdout == installed.stdout
    assert module.stderr == installed.stderr == ""
    wrong = [subprocess.run([sys.executable, "-m", "bridle", "nosuch"], capture_output=True, text=True, check=False), program("nosuch")]
    for done in wrong:
        assert (done.returncode, done.stdout, done.stderr) == (2, "", "bridle: No such command 'nosuch'.\n")


def test_the_demonstration_runs_as_a_program():
    done = program("demo", "--horizon", "50")
    assert (done.returncode, done.stderr) == (0, "")
    assert "sinha2024 practice" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_terminal_without_unicode_gets_plain_characters():
    done = program("demo", "--horizon", "10", PYTHONIOENCODING="ascii", COLUMNS="50")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


def test_a_reader_that_goes_away_is_no_error():
    command = f"{Path(sys.executable).with_name('bridle')} demo --horizon 10 --json - | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")


def test_importing_bridle_is_light():
    """Nothing that takes long to import, and nothing optional, before it is used."""
    heavy = {"scipy.optimize", "scipy.linalg", "jax", "typer", "rich", "click", "daqp", "osqp"}
    own = {"bridle.engines.codegen", "bridle.data", "bridle.comparisons", "bridle.cli"}
    code = f"import sys, bridle; print(*sorted({heavy | own!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_help_needs_no_engine_and_no_solver():
    code = (
        "import sys\nfrom bridle.cli import main\ntry: main(['--help'])\nexcept SystemExit as e: assert not e.code\n"
        "assert not {'scipy.optimize', 'jax', 'daqp', 'rich.console'} & set(sys.modules), set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: bridle ")

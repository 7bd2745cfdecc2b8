"""The compiled engine: loops written from a trace compute what it says, agree with the Python engine, and are never old code."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import bridle
from bridle import engines, ops, policies
from bridle.engines import compiled as engine
from bridle.engines import machine
from bridle.engines.codegen.llvm import module
from bridle.engines.codegen.loops import lower
from bridle.engines.codegen.python_source import PREAMBLE
from bridle.engines.round import StepOutcome
from bridle.problems import problem_names
from helpers.compiled_games import PLACES, compilable_game, games_at, run_both_ways
from helpers.extent import WHOLE
from helpers.instances import make_domain, settings_of
from helpers.traced_operations import OPERATIONS

SIDE_BY_SIDE = PLACES if WHOLE else ("ball", "box")


@pytest.fixture
def plain(monkeypatch):
    """The engine without its compiler."""
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")


def agree(policy, problem, rounds: int, tolerance: float = 1e-12, **settings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = bridle.play(policy, problem, horizon=rounds, keep="decisions", **settings)
        two = bridle.play(policy, problem, horizon=rounds, keep="decisions", engine="compiled", **settings)
    for name in ("decisions", "costs", "values"):
        a, b = getattr(one, name), getattr(two, name)
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= tolerance * max(np.abs(a).max(), problem.domain.diameter()), name


@pytest.mark.slow
@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("place", PLACES)
def test_every_policy_is_written_out_right(place):
    counts = {where: (1, 3) if where in ("ball", "simplex") else (2,) for where in PLACES}
    played = 0
    for _, policy, problem in games_at(place, counts, 20, turn=1):
        agree(policy, problem, 20, 1e-9 if place == "spectrahedron" else 1e-12)
        played += 1
    assert played >= 4


@pytest.mark.compiles
@pytest.mark.parametrize(("place", "seeds"), [*((place, None) for place in PLACES), *((place, range(9)) for place in SIDE_BY_SIDE)])
def test_machine_code_decides_what_its_source_decides(place, seeds, monkeypatch):
    """To the bit, of every policy, alone and side by side: neither LLVM nor the processor has a say."""
    counts = {where: (1, 3) if where in ("ball", "simplex") else (2,) for where in PLACES}
    played = 0
    for name, policy, problem in games_at(place, counts, 20, turn=2):
        if seeds is not None and (getattr(policy, "runs", 1) is not None or name == "vaze2025"):
            continue
        ways = []
        for interpret in "01":
            monkeypatch.setenv("BRIDLE_INTERPRET", interpret)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ways.append(bridle.play(policy, problem, seed=seeds and list(seeds), engine="compiled", keep="decisions"))
        for part in ("decisions", "costs", "values"):
            np.testing.assert_array_equal(getattr(ways[0], part), getattr(ways[1], part), err_msg=name)
        played += 1
    assert played >= 4


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")
@pytest.mark.parametrize("place", ["box", "simplex"])
def test_a_run_is_the_same_to_the_bit_whatever_is_played_beside_it(place):
    """Of nine coordinates, so that sums have parts and a rest; the first point that a bandit tries is drawn by NumPy, in its own order."""
    played = 0
    for index, name in enumerate(policies.names()):
        game = compilable_game(name, place, 2, 20, dim=9) if WHOLE or index % 4 == len(place) % 4 else None
        if game is None or name in ("bandit1", "bandit2", "vaze2025"):
            continue
        beside = bridle.play(*game, seed=range(9), engine="compiled", keep="decisions")
        alone = bridle.play(*game, seed=4, engine="compiled", keep="decisions")
        np.testing.assert_array_equal(beside.decisions[:, 4], alone.decisions, err_msg=name)
        played += 1
    assert played >= 5


@pytest.mark.parametrize("text", ["memory[0] = surprise(memory[1])", "memory[0] = [1.0]", "n = 1\n    n = 1.5", "with memory: pass"])
def test_what_has_no_translation_is_refused_in_a_sentence(text):
    with pytest.raises(bridle.engines.CannotCompile, match=r"the compiled engine has no translation of .*; use engine 'python'"):
        module(f"def run(memory):\n    {text}\n", {"memory": (0,)})


class Mine(NamedTuple):
    """A policy of one's own, which has bridle's in it."""

    inner: Any

    def init(self, x1):
        return self.inner.init(x1)

    def decide(self, state):
        return self.inner.decide(state)

    def update(self, state, feedback):
        return self.inner.update(state, feedback)


@pytest.mark.compiles
def test_what_is_not_said_is_compiled_where_it_pays(monkeypatch):
    """The length of the game decides, not how many play beside it; records of one's own are left to Python unless one says otherwise."""
    problem = bridle.problem("halfspaces", horizon=20_000, dim=3)
    policy = bridle.policy_for("ogd", problem)
    assert [bridle.play(policy, problem, horizon=rounds).engine for rounds in (19_999, 20_000)] == ["python", "compiled"]
    assert bridle.play(policy, problem, horizon=3_000, seed=range(8)).engine == "python"
    alone, beside = bridle.play(policy, problem, seed=3), bridle.play(policy, problem, seed=[1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert alone.totals.cost == beside.totals.cost[2]
    monkeypatch.setattr(engines, "WORTH_COMPILING", 100)
    assert bridle.play(bridle.policy_for("steiner", problem), problem, horizon=100).engine == "python"
    assert bridle.play(Mine(policy.record), problem, horizon=100).engine == "python"
    assert bridle.play(policy, problem, horizon=100).engine == "compiled"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert bridle.play(policy, problem, horizon=100).engine == "python"


@pytest.mark.compiles
def test_what_turns_out_not_to_compile_is_played_in_python(monkeypatch):
    problem = bridle.problem("halfspaces", horizon=20_000, dim=4)
    policy = bridle.policy_for("adagrad", problem)
    monkeypatch.setattr(engine, "_COMPILED", {})
    monkeypatch.setenv("BRIDLE_COMPILED", "0")
    monkeypatch.setattr("bridle.engines.codegen.writer.formula", lambda *_: None)
    assert bridle.play(policy, problem).engine == "python"
    with pytest.raises(bridle.InputError, match="use engine 'jax'"):
        bridle.play(policy, problem, engine="compiled")


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("place", ["ball", "box", "simplex", "l1", "halfspace"])
def test_every_policy_is_written_out_right_on_a_line(place):
    games = [game for name in policies.names() if (game := compilable_game(name, place, 1, 20, dim=1)) is not None]
    assert len(games) >= (10 if place == "simplex" else 15)  # a simplex of one coordinate is a point
    for game in games:
        agree(*game, 20)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", [name for name in problem_names() if name != "lower-bound"])
def test_every_problem_is_written_out_right(name, tmp_path):
    problem = bridle.problem(name, horizon=20, **settings_of(name, tmp_path))
    agree(bridle.policy_for("anytime", problem), problem, 20)


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("name", "place", "constraints", "more"),
    [
        ("sinha2024", "ball", 1, {}),
        ("sinha2024", "simplex", 3, {"learner": "adaftrl"}),
        ("sinha2024", "box", 2, {"learner": "ftpl", "samples": 20}),
        ("sinha2024", "ball", 1, {"lam": [1e-3, 1e-2, 1e-1]}),
        ("anytime", "box", 1, {}),
        ("anytime", "ball", 3, {"form": "self-bounding", "smoothness": 1.0, "halfspace": False}),
        ("sinha2024-ocs", "l1", 2, {}),
        ("neely2017", "halfspace", 2, {}),
        ("guo2022", "box", 1, {}),
        ("yu2020", "cut-box", 1, {}),
        ("ogd", "spectrahedron", 1, {}),
    ],
)
def test_compiled_games_agree(name, place, constraints, more):
    domain = make_domain(place, 5, 1.0, np.random.default_rng(7))
    problem = bridle.problem("halfspaces", horizon=2_000, domain=domain, constraints=constraints, seed=3)
    agree(bridle.policy_for(name, problem, **more), problem, 2_000, 1e-9 if place == "spectrahedron" or name == "guo2022" else 1e-12)


@pytest.mark.compiles
def test_several_seeds_and_an_adaptive_adversary_agree():
    problem = bridle.problem("violation-seeking", horizon=500, dim=4)
    agree(bridle.policy_for("sinha2024", problem), problem, 500, seed=[1, 2])


@pytest.mark.compiles
def test_an_exponent_that_would_overflow_stays_finite():
    problem = bridle.problem("fixed", horizon=2_000, dim=3)
    agree(bridle.policy("sinha2024", problem.domain, horizon=2_000, lipschitz=1e-6, V=1e9), problem, 2_000, 1e-9)


def loops(body, *operands):
    """What a function of arrays gives when its trace is written out, one round, and what JAX makes of it."""
    with jax.enable_x64(True):
        trace = jax.make_jaxpr(body)(*operands)
        expected = [np.asarray(part) for part in jax.tree.leaves(body(*operands))]
    source = lower(trace, constants=len(operands), states=0)
    made = run_both_ways(source, 1, 1, tuple(np.asarray(each) for each in operands), [(1, *part.shape) for part in expected])
    for got, want in zip(made, expected, strict=True):
        np.testing.assert_allclose(got[0], want, rtol=1e-13, atol=1e-13)


@pytest.mark.compiles
@pytest.mark.parametrize("body", OPERATIONS)
def test_operations_are_written_out_right(body):
    loops(lambda one: jax.tree.map(lambda part: part + 0.0 * one, body()), np.float64(1.0))


@pytest.mark.compiles
@pytest.mark.parametrize(
    "body",
    [
        lambda v: jnp.concatenate([v[:0], v]) + v[:0].sum(),
        lambda v: jnp.pad(v[:0] * 2.0, (1, 1)) + v.sum(),
        lambda v: (jnp.zeros((0, 4)) @ v, v[:0] * 2.0),
        lambda v: jnp.zeros((3, 0)) @ jnp.zeros((0, 2)) + v[0],
    ],
)
def test_arrays_of_no_elements_are_left_alone(body):
    """Compiled loops do not look where an array ends."""
    loops(body, np.arange(1.0, 5.0))


@pytest.mark.compiles
def test_the_exponential_is_right_to_a_unit_in_the_last_place():
    rng, edges = np.random.default_rng(0), [709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412, -708.3964185322641]
    halves = (np.arange(-1075, 1025) + 0.5) * np.log(2.0)
    tiny = np.concatenate([np.geomspace(1e-320, 1.0, 500), -np.geomspace(1e-320, 1.0, 500)])
    x = np.concatenate(
        [rng.uniform(-746.0, 710.0, 50_000), rng.uniform(-1.0, 1.0, 20_000), rng.uniform(-746.0, -708.0, 20_000), halves, tiny]
    )
    x = np.concatenate([x, edges, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308]])
    with jax.enable_x64(True):
        source = lower(jax.make_jaxpr(jnp.exp)(x), constants=1, states=0)
    made = np.empty((1, len(x)))
    machine.rounds_of(engine.object_code(source))(1, 1, np.zeros(0, int), (x,), (made,))
    made = made[0]
    with np.errstate(over="ignore", under="ignore"):
        exact = np.exp(x.astype(np.longdouble))
        rounded = exact.astype(float)
    fine = np.isfinite(rounded)
    np.testing.assert_array_equal(made[~fine], rounded[~fine])
    assert (np.abs(made[fine] - exact[fine]) / np.spacing(rounded[fine])).max() < 1.0 + 1e-6
    alone: dict = {}
    exec(PREAMBLE, alone)
    assert np.isnan(alone["_exp"](np.float64(np.nan)))  # and no warning of a cast
    some = [*rng.choice(x, 2_000), *edges, 0.0, -0.0, np.inf, -np.inf]
    again = dict(zip(x.tolist(), made.tolist(), strict=True))
    with np.errstate(over="ignore", under="ignore"):
        assert [alone["_exp"](np.float64(each)) for each in some] == [again[float(each)] for each in some]


@pytest.mark.compiles
def test_what_it_does_not_know_is_named_with_the_line_it_comes_from():
    with pytest.raises(bridle.InputError, match=r"'erf' that .*test_compiled\.py:\d+ .* traces to; use engine 'jax'"):
        loops(lambda v: jax.scipy.special.erf(v), np.ones(2))
    with pytest.raises(bridle.InputError, match=r"'erf' that .*test_compiled\.py:\d+ .* traces to; use engine 'python'"):
        engine.compile_step(lambda constants, states, given: jax.scipy.special.erf(states), np.ones(2), np.ones(2), np.ones(2), 1e70)


@pytest.mark.compiles
def test_tracebacks_show_the_lines_of_what_runs_without_the_compiler():
    with jax.enable_x64(True):
        source = lower(jax.make_jaxpr(lambda x, v: x - v)(jnp.ones(3), jnp.ones(3)), constants=0, states=1)
    with pytest.raises(IndexError) as caught:
        source.interpreted()(1, 1, np.zeros(0, int), (np.ones(3), np.ones((1, 2))), (np.ones(3),))
    assert "a0[i0] - a1[t, i0]" in str(caught.traceback[-1].statement)


def test_a_game_can_be_played_without_the_compiler(monkeypatch):
    problem = bridle.problem("fixed", horizon=30, dim=2)
    policy = bridle.policy_for("ogd", problem)
    monkeypatch.setattr(engine, "_COMPILED", {})
    monkeypatch.setattr(machine, "compiled", None)  # which what is compiled could not do without
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    one, two = bridle.play(policy, problem, engine="compiled"), bridle.play(policy, problem)
    np.testing.assert_allclose(one.totals.cost, two.totals.cost, rtol=1e-12)
    monkeypatch.setenv("BRIDLE_INTERPRET", "0")
    monkeypatch.setenv("BRIDLE_COMPILED", "0")
    with pytest.raises(TypeError):
        bridle.play(policy, problem, engine="compiled")


@pytest.mark.compiles
def test_compiled_code_is_kept_under_the_hash_of_its_source(tmp_path, monkeypatch):
    """A second process would load it; another algorithm has another name, so that an old one is never served."""
    monkeypatch.setenv("BRIDLE_COMPILED", str(tmp_path))
    monkeypatch.setattr(engine, "_COMPILED", {})
    problem = bridle.problem("fixed", horizon=50, dim=2)
    policy = bridle.policy_for("ogd", problem)
    first = bridle.play(policy, problem, engine="compiled")
    (kept,) = tmp_path.glob("*.code")
    step = type(policy.record).update

    def slower(self, state, feedback):
        return step(self, state, feedback._replace(df=0.5 * feedback.df))

    monkeypatch.setattr(type(policy.record), "update", slower)
    monkeypatch.setattr(engine, "_COMPILED", {})
    second = bridle.play(policy, problem, engine="compiled")
    assert len(list(tmp_path.glob("*.code"))) == 2
    assert kept.exists()
    assert first.totals.cost != second.totals.cost
    np.testing.assert_allclose(second.totals.cost, bridle.play(policy, problem).totals.cost, rtol=1e-12)


def test_what_calls_a_solver_is_refused():
    problem = bridle.problem("halfspaces", horizon=10, dim=2)
    with pytest.raises(bridle.InputError, match="engine 'python' only"):
        bridle.play(bridle.policy_for("steiner", problem), problem, engine="compiled")


@pytest.mark.usefixtures("plain")
def test_arrays_without_numbers_are_neither_read_nor_written():
    def one(constants, states, given):
        whole = ops.join([given, states[0] * constants, states[0]], -1)
        return states[0] + 1.0, states[1] + whole.sum() + (states[0] * states[0]).sum()

    run, size = engine.compile_step(one, np.zeros(0), (np.zeros(0), 1.0), np.array([2.0, 3.0]), 1e70)
    memory = np.zeros(size)
    memory[:3] = [1.0, 2.0, 3.0]
    assert run(memory)() == StepOutcome.DONE
    assert memory[0] == 6.0

"""Sessions: the contract round by round, totals, saving and resuming bit for bit, and input that must leave everything as it was."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
import zipfile
from typing import Any, NamedTuple

import numpy as np
import pytest

import bridle
from bridle import policies, records
from bridle.policies import registry
from bridle.session import savefile
from bridle.session.certificates.clocks import ASSUMPTIONS_EVERY
from helpers.instances import make_domain
from helpers.save_files import edit
from helpers.sessions import BAD_NUMBERS, DIM, GOOD_RECORD, STRANGE_NUMBERS, assert_identical, make_policy, play_random_stream, snapshot

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.InfeasibleWarning")  # the random stream below is not feasible for long

OWN = [name for name in policies.names() if name.startswith("sinha2024")]
"""The paper's own; `check_policy` puts every registered policy through saving and loading."""


# --- the contract ---------------------------------------------------------------------------------------------------------------------


def test_the_contract_as_it_is_written(tmp_path):
    rng = np.random.default_rng(0)
    grad_f, grad_g = rng.standard_normal(30), rng.standard_normal(30)
    f = bridle.Affine(grad_f)
    g1, g2 = bridle.Affine(grad_g, 0.1), bridle.Affine(-grad_g, 0.2)
    path = tmp_path / "session.npz"

    domain = bridle.Ball(dim=30, radius=1.0)
    policy = bridle.policy("sinha2024", domain, horizon=10_000, lipschitz=1.0)
    session = bridle.Session(policy)
    x = session.decide()
    assert x.shape == (30,)
    assert x.dtype == float
    np.testing.assert_array_equal(x, domain.center())
    session.observe(f=0.3, df=grad_f, g=0.1, dg=grad_g)
    assert (session.rounds, session.ccv, session.cost) == (1, 0.1, 0.3)
    assert isinstance(session.state, tuple)
    session.save(path)
    again = bridle.Session.load(path)
    assert_identical(snapshot(session), snapshot(again))

    fresh = bridle.Session(policy)
    fresh.step(cost=f, constraints=[g1, g2])
    assert fresh.rounds == 1
    assert fresh.ccv == 0.2


def test_decide_is_a_copy_and_the_same_until_observe():
    session = bridle.Session(make_policy())
    play_random_stream(session, 5)
    x = session.decide()
    kept, before = x.copy(), snapshot(session)
    x += 1.0
    np.testing.assert_array_equal(session.decide(), kept)
    np.testing.assert_array_equal(session.decide(), session.decide())
    assert_identical(before, snapshot(session))
    play_random_stream(session, 1, start=5)
    assert not np.array_equal(session.decide(), kept)


def test_what_the_caller_gave_is_not_kept():
    """The caller may reuse its arrays for the next round, as a server does."""
    a, b = bridle.Session(make_policy()), bridle.Session(make_policy())
    df, g, dg = np.zeros(DIM), np.zeros(1), np.zeros((1, DIM))
    for t in range(10):
        rng = np.random.default_rng(t)
        df[:], g[:], dg[:] = rng.standard_normal(DIM), rng.standard_normal(1), rng.standard_normal((1, DIM))
        a.observe(0.1, df, g, dg)
        b.observe(0.1, df.copy(), g.copy(), dg.copy())
    assert_identical(snapshot(a), snapshot(b))
    x1 = np.full(DIM, 0.1)
    session = bridle.Session(make_policy(), x1)
    x1[:] = 7.0
    np.testing.assert_array_equal(session.decide(), np.full(DIM, 0.1))


@pytest.mark.parametrize("g", [0.1, np.float32(0.1), [0.1], np.array(0.1), np.array([0.1]), (0.1,)], ids=repr)
@pytest.mark.parametrize("dg", [[0.0, 1.0, 0.0], [[0.0, 1.0, 0.0]], np.array([0, 1, 0]), np.array([[0.0, 1.0, 0.0]])], ids=repr)
def test_one_constraint_in_every_form(g, dg):
    one, two = bridle.Session(make_policy()), bridle.Session(make_policy())
    one.observe(f=1, df=[1, 0, 0], g=g, dg=dg)
    two.observe(f=1.0, df=np.array([1.0, 0.0, 0.0]), g=np.array([float(np.reshape(g, ()))]), dg=np.array([[0.0, 1.0, 0.0]]))
    assert_identical(snapshot(one), snapshot(two))


def test_several_constraints_are_lifted_as_given():
    session = bridle.Session(make_policy("sinha2024-ocs", constraints=2))
    session.observe(f=0.0, df=np.zeros(DIM), g=[0.5, -0.25], dg=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(session.state.Q, [0.5, 0.0])
    assert session.ccv == 0.5
    np.testing.assert_array_equal(session.violations, [0.5, 0.0])


def test_running_totals_and_history_equal_what_was_observed():
    seen: list[dict[str, Any]] = []
    session = bridle.Session(make_policy(), history=seen.append)
    play_random_stream(session, 50, k=3)
    assert [entry["round"] for entry in seen] == list(range(1, 51))
    assert set(seen[0]) == {"round", "x", "f", "g", "violation", "cost", "ccv"}
    cost, hard = 0.0, np.zeros(3)
    for entry in seen:
        cost, hard = cost + entry["f"], hard + np.maximum(entry["g"], 0.0)
        assert entry["cost"] == cost
        assert entry["ccv"] == hard.max()
        np.testing.assert_array_equal(entry["violation"], np.maximum(entry["g"], 0.0))
    assert (session.rounds, session.cost, session.ccv) == (50, cost, hard.max())
    assert (type(session.rounds), type(session.cost), type(session.ccv)) == (int, float, float)
    before = snapshot(session)
    for entry in seen:  # what was handed out is the caller's
        entry["x"] += 9.0
        entry["g"] += 9.0
        entry["violation"] += 9.0
    assert_identical(before, snapshot(session))


def revealed(block, t):
    return records.transform(lambda leaf: float(leaf[t]) if leaf.ndim == 1 else leaf[t], block)


@pytest.mark.parametrize("name", ["halfspaces", "minimax", "fixed", "lower-bound"])
@pytest.mark.parametrize("how", ["observe", "step"])
def test_a_session_driven_by_a_problem_is_the_game(name, how):
    """The same rounds give the same trajectory, bit for bit, whether `play` or a caller drives."""
    problem = bridle.problem(name, horizon=200, seed=3)
    policy = bridle.policy_for("sinha2024", problem, preset="practice")
    trace = bridle.play(policy, problem, keep="decisions")
    session, t = bridle.Session(policy), 0
    for block in trace.blocks():
        for i in range(len(next(iter(records.leaves(block).values())))):
            chosen = revealed(block, i)
            np.testing.assert_array_equal(session.decide(), trace.decisions[t])
            if how == "step":
                session.step(chosen.cost, chosen.constraints)
            else:
                seen = chosen.reveal(session.decide())
                session.observe(seen.f, seen.df, seen.g, seen.dg)
            t += 1
    assert session.rounds == t == 200
    for p, q in zip(records.leaves(session.state).values(), records.leaves(trace.state).values(), strict=True):
        np.testing.assert_array_equal(p, q)
    assert session.cost == pytest.approx(float(trace.totals.cost), rel=1e-12)
    assert session.ccv == pytest.approx(bridle.ccv(trace), rel=1e-12)


# --- step: functions in every form ----------------------------------------------------------------------------------------------------

CENTER = np.array([0.3, -0.2, 0.5])
A = np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])


def by_jax(x):
    return ((x - CENTER) ** 2).sum()


COSTS = {
    "function": bridle.Quadratic(2.0, center=CENTER),
    "pair": (lambda x: float((x - CENTER) @ (x - CENTER)), lambda x: 2.0 * (x - CENTER)),
    "opaque": bridle.Callable(lambda x: float((x - CENTER) @ (x - CENTER)), lambda x: 2.0 * (x - CENTER)),
    "callable": by_jax,
}
LIMITS = {
    "function": [bridle.Affine(A[0], -0.1), bridle.Affine(A[1], 0.1)],
    "several": [bridle.Affine(A, [-0.1, 0.1])],
    "pair": [(lambda x, i=i: A[i] @ x + 0.2 * i - 0.1, lambda x, i=i: A[i]) for i in (0, 1)],
    "callable": [lambda x: x[0] - 0.1, lambda x: 0.6 * x[1] + 0.8 * x[2] + 0.1],
    "mixture": [bridle.Affine(A[0], -0.1), lambda x: 0.6 * x[1] + 0.8 * x[2] + 0.1],
    "tuple": (bridle.Affine(A[0], -0.1), (lambda x: A[1] @ x + 0.1, lambda x: A[1].tolist())),
}


@pytest.mark.compiles
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("limits", LIMITS)
def test_step_takes_functions_in_every_form(cost, limits):
    session, reference = bridle.Session(make_policy(lipschitz=4.0)), bridle.Session(make_policy(lipschitz=4.0))
    for _ in range(8):
        x = reference.decide()
        reference.observe(f=float((x - CENTER) @ (x - CENTER)), df=2.0 * (x - CENTER), g=A @ x + [-0.1, 0.1], dg=A)
        played = session.step(COSTS[cost], LIMITS[limits])
        np.testing.assert_allclose(played, x, rtol=0, atol=1e-13)
    assert session.rounds == 8
    assert session.cost == pytest.approx(reference.cost, rel=1e-12)
    np.testing.assert_allclose(session.violations, reference.violations, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(session.decide(), reference.decide(), rtol=0, atol=1e-13)


def test_step_takes_any_iterable_of_constraints():
    session = bridle.Session(make_policy())
    session.step(bridle.Affine([1.0, 0.0, 0.0]), (bridle.Affine(row) for row in A))
    assert len(session.violations) == 2


def test_a_function_that_changes_its_argument_changes_nothing_else():
    def rude(x):
        x += 5.0
        return 0.0

    session, polite = bridle.Session(make_policy()), bridle.Session(make_policy())
    for one, value in ((session, rude), (polite, lambda x: 0.0)):
        one.step((value, lambda x: np.ones(DIM)), [bridle.Affine([1.0, 0.0, 0.0], 0.5)])
    assert_identical(snapshot(session), snapshot(polite))


def test_a_round_may_have_no_cost_or_no_constraint():
    for policy in (make_policy(), make_policy("sinha2024-ocs", constraints=2)):
        some, full = bridle.Session(policy), bridle.Session(policy)
        k = 2 if policy.name == "sinha2024-ocs" else 1
        for session, nothing in ((some, {}), (full, {"g": np.zeros(k), "dg": np.zeros((k, DIM))})):
            session.observe(f=0.5, df=[1.0, 0.0, 0.0], **nothing)
        for session, nothing in ((some, {}), (full, {"f": 0.0, "df": np.zeros(DIM)})):
            session.observe(g=np.ones(k), dg=np.ones((k, DIM)), **nothing)
        some.step(bridle.Affine([1.0, 0.0, 0.0]))
        full.observe(f=float(full.decide()[0]), df=[1.0, 0.0, 0.0], g=np.zeros(k), dg=np.zeros((k, DIM)))
        assert_identical(snapshot(some), snapshot(full))
    with pytest.raises(bridle.InputError, match=r"df must be given with f = 0\.5"):
        some.observe(f=0.5, g=[0.1, 0.1], dg=np.ones((2, DIM)))


@pytest.mark.parametrize(
    ("cost", "limits", "message"),
    [
        (bridle.Affine([1.0, 0.0, 0.0]), None, "constraints must be a list of functions, not None"),
        (bridle.Affine([1.0, 0.0, 0.0]), 3.0, "constraints must be a list of functions, not 3.0"),
        (bridle.Affine([1.0, 0.0, 0.0]), bridle.Affine([1.0, 0.0, 0.0]), "constraints must be a list of functions, not Affine\\("),
        (bridle.Affine([1.0, 0.0, 0.0]), lambda x: 0.0, "constraints must be a list of functions, not <function"),
        (bridle.Affine([1.0, 0.0, 0.0]), ["abc"], r"constraints\[0\] must be a function or a pair .* not 'abc'"),
        (bridle.Affine([1.0, 0.0, 0.0]), [bridle.Affine(A[0]), None], r"constraints\[1\] must be a function or a pair .* not None"),
        (3.0, [bridle.Affine(A[0])], "cost must be a function or a pair .* not 3.0"),
        (None, [bridle.Affine(A[0])], "cost must be a function or a pair .* not None"),
        (bridle.Affine(A), [bridle.Affine(A[0])], r"the value of cost must be a number, not an array of shape \(2,\)"),
        ((lambda x: np.nan, lambda x: x), [bridle.Affine(A[0])], r"the value of cost must be finite, not nan"),
        ((lambda x: 0.0, lambda x: x[:2]), [bridle.Affine(A[0])], r"the gradient of cost must have shape \(3,\), not \(2,\)"),
        ((lambda x: 0.0, lambda x: [0.0, np.inf, 0.0]), [bridle.Affine(A[0])], "the gradient of cost must be finite, not inf at index 1"),
        ((lambda x: "abc", lambda x: x), [bridle.Affine(A[0])], "the value of cost must be an array of numbers, not 'abc'"),
        (bridle.Affine(A[0]), [(lambda x: -np.inf, lambda x: x)], r"the value of constraints\[0\] must be finite, not -inf"),
        (bridle.Affine(A[0]), [(lambda x: 0.0, lambda x: A)], r"the gradient of constraints\[0\] must have shape \(3,\), not \(2, 3\)"),
        (bridle.Affine(A[0]), [(lambda x: A, lambda x: A)], r"the value of constraints\[0\] must be a number, not an array of shape"),
        (bridle.Affine(A[0]), [(lambda x: [], lambda x: [])], r"the gradient of constraints\[0\] must have shape \(0, 3\)"),
        (bridle.Affine([1.0, 2.0]), [bridle.Affine(A[0])], None),  # a dimension that does not match is the function's own error
    ],
)
def test_step_names_what_is_wrong_and_changes_nothing(cost, limits, message):
    session = bridle.Session(make_policy())
    play_random_stream(session, 3)
    before = snapshot(session)
    with pytest.raises(bridle.InputError if message else ValueError, match=message):
        session.step(cost, limits)
    assert_identical(before, snapshot(session))


class Crash(Exception):
    pass


def crash(x):
    raise Crash("the sensor is gone")


@pytest.mark.parametrize("which", ["value", "gradient", "constraint", "callable"])
def test_an_exception_of_the_callers_function_passes_through(which):
    session = bridle.Session(make_policy())
    play_random_stream(session, 3)
    before = snapshot(session)
    good = bridle.Affine(A[0])
    cost = {"value": (crash, lambda x: x), "gradient": (lambda x: 0.0, crash), "callable": crash}.get(which, good)
    with pytest.raises(Crash, match="the sensor is gone"):
        session.step(cost, [good, (crash, crash)] if which == "constraint" else [good])
    assert_identical(before, snapshot(session))


def test_without_jax_a_single_callable_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "bridle.engines.jax", raising=False)
    session = bridle.Session(make_policy())
    with pytest.raises(bridle.InputError, match=r"cost is one callable, and its gradient needs JAX: pip install 'bridle-oco\[jax\]'"):
        session.step(lambda x: x @ x, [bridle.Affine(A[0])])
    assert session.rounds == 0


# --- bad numbers ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "name", "value"),
    [
        *((policy, *bad) for policy in ("sinha2024", "sinha2024-ocs") for bad in BAD_NUMBERS),
        *(("sinha2024", *bad) for bad in STRANGE_NUMBERS),
    ],
    ids=lambda v: " ".join(repr(v).split())[:40],
)
def test_bad_numbers_are_one_error_and_change_nothing(policy, name, value):
    called: list[Any] = []
    session = bridle.Session(make_policy(policy, constraints=2), history=called.append)
    for _ in range(3):
        session.observe(**GOOD_RECORD)
    before = snapshot(session)
    with pytest.raises(bridle.InputError) as wrong:
        session.observe(**{**GOOD_RECORD, name: value})
    message = str(wrong.value)
    assert message.startswith(f"{name} must ")
    assert "\n" not in message
    assert_identical(before, snapshot(session))
    assert len(called) == 3
    session.observe(**GOOD_RECORD)  # and it goes on
    assert session.rounds == 4


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("g", np.inf, "g must be finite, not inf at index 0"),
        ("dg", np.array([0.0, np.nan, 0.0]), "dg must be finite, not nan at index 0, 1"),
        ("df", np.array([0.0, 0.0, -np.inf]), "df must be finite, not -inf at index 2"),
    ],
)
def test_what_is_not_finite_is_named_by_constraint_and_coordinate(name, value, message):
    numbers = {"f": 1.0, "df": np.ones(3), "g": 0.0, "dg": np.ones(3)} | {name: value}
    with pytest.raises(bridle.InputError, match=f"^{message}$"):
        bridle.Session(bridle.policy("anytime", bridle.Ball(3))).observe(**numbers)


@pytest.mark.parametrize("size", [1.01e70, 1e200, 1.7e308, -1.7e308])
@pytest.mark.parametrize("name", [*GOOD_RECORD, "modulus"])
def test_numbers_whose_squares_overflow_are_refused(name, size):
    """One broken record must not stop the learner for good: the squares of such numbers are not finite."""
    value = {"f": size, "df": [0.0, size, 0.0], "g": [size, 0.0], "dg": [[0.0, 1.0, 0.0], [0.0, 0.0, size]], "modulus": abs(size)}[name]
    session = bridle.Session(make_policy())
    session.observe(**GOOD_RECORD)
    before = snapshot(session)
    with pytest.raises(bridle.InputError, match=re.escape(f"{name} must be at most 1e+70 in size, not {abs(size):.3g}")):
        session.observe(**{**GOOD_RECORD, name: value})
    assert_identical(before, snapshot(session))


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("inside", ["adagrad", "adaftrl", "ftpl", "ogd"])
def test_the_largest_numbers_that_are_taken_leave_a_session_that_goes_on(name, inside, tmp_path):
    session = bridle.Session(build(name, inside, bridle.Ball(DIM)))
    huge = {"f": 1e70, "df": [1e70, 0.0, -1e70], "g": [1e70, -1e70], "dg": [[1e70] * 3, [0.0, 1e70, 0.0]]}
    for feedback in (GOOD_RECORD, huge, GOOD_RECORD, huge, GOOD_RECORD):
        session.observe(**feedback)
        assert session.policy.domain.contains(session.decide())
    session.save(tmp_path / "a.npz")
    assert_identical(snapshot(session), snapshot(bridle.Session.load(tmp_path / "a.npz")))


class Broken(NamedTuple):
    """A policy whose second decision is `then`."""

    then: Any

    def init(self, x1):
        return (x1, 0.0)

    def decide(self, state):
        return state[0]

    def update(self, state, feedback):
        if self.then is None:
            return (state[0], state[1] + np.nan)
        return (np.array(self.then), state[1]) if np.ndim(self.then) else (state[0], self.then**1e5)


@pytest.mark.parametrize("then", [[np.nan, 0.0], [np.inf, 0.0], [0.0, 0.0, 0.0], [[0.0, 0.0]], None, 10.0])
def test_a_policy_that_breaks_down_is_stopped_before_its_state_is_kept(then):
    """A decision that is not finite or of another shape, a NaN in the state, an overflow in the policy's own arithmetic."""
    session = bridle.Session(Broken(then), x1=[0.0, 0.0])
    before = snapshot(session)
    with pytest.raises(bridle.InputError, match=r"^the policy's next decision cannot be used \(.*\); nothing was changed$"):
        session.observe(0.1, [0.0, 1.0], 0.1, [0.0, 1.0])
    assert_identical(before, snapshot(session))


def test_the_number_of_constraints_is_what_the_policy_was_made_for_or_free():
    free = bridle.Session(make_policy())
    free.observe(**{**GOOD_RECORD, "g": 0.1, "dg": [0.0, 1.0, 0.0]})
    free.observe(**{**GOOD_RECORD, "g": [0.2, 0.4]})
    np.testing.assert_allclose(free.violations, [0.3, 0.4])
    for policy in (make_policy(constraints=2), make_policy("sinha2024-strong", constraints=2)):
        with pytest.raises(bridle.InputError, match="g must hold 2 constraint values, not 1"):
            bridle.Session(policy).observe(**{**GOOD_RECORD, "g": 0.1, "dg": [0.0, 1.0, 0.0]})
    with pytest.raises(bridle.InputError, match="g must hold 3 constraint values, not 2"):
        bridle.Session(make_policy("sinha2024-ocs", constraints=3)).observe(**GOOD_RECORD)


@pytest.mark.parametrize(
    ("policy", "more", "message"),
    [
        (None, {}, "policy must have a method `init`; None has none"),
        (
            "sinha2024",
            {},
            r"policy must have a method `init`; 'sinha2024' has none; bridle.policy\('sinha2024', domain\) makes the policy of that name",
        ),
        (make_policy(), {"x1": [0.0, 0.0]}, r"x1 must have shape \(3,\), not \(2,\)"),
        (make_policy(), {"x1": [2.0, 0.0, 0.0]}, "x1 must lie in the domain"),
        (make_policy(), {"x1": [np.nan, 0.0, 0.0]}, "x1 must be finite, not nan at index 0"),
        (make_policy(), {"x1": "abc"}, "x1 must be an array of numbers, not 'abc'"),
        (make_policy(), {"x1": np.zeros((1, DIM))}, r"x1 must have shape \(3,\), not \(1, 3\)"),
        (make_policy(), {"history": 3}, "history must be callable, not 3"),
        (make_policy(lam=[0.1, 0.2]), {}, "policy stands for 2 runs; a session drives one"),
        (make_policy(lam=[0.1]), {}, "policy stands for 1 runs; a session drives one"),
    ],
)
def test_bad_arguments_of_a_session(policy, more, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.Session(policy, **more)


def test_a_sweep_is_refused_also_where_it_is_hidden():
    """The bare record does not say how many runs it stands for: its first update does."""
    session = bridle.Session(make_policy(lam=[0.1, 0.2, 0.3]).record)
    with pytest.raises(bridle.InputError, match=r"next decision cannot be used \(shape \(3, 3\)"):
        session.observe(0.1, [1.0, 0.0, 0.0], 0.1, [0.0, 1.0, 0.0])


# --- warnings -------------------------------------------------------------------------------------------------------------------------


def collect(session: bridle.Session, rounds: int, start: int = 0, **more) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        play_random_stream(session, rounds, start=start, **more)
    assert all(issubclass(w.category, bridle.BridleWarning) for w in caught)
    return [str(w.message) for w in caught if w.category is not bridle.InfeasibleWarning]


def test_past_the_horizon_it_goes_on_warns_once_and_has_no_bounds(tmp_path):
    session = bridle.Session(make_policy(horizon=20))
    facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(DIM)}
    assert collect(session, 20) == []
    assert session.policy.bound(facts, session.rounds).ccv is not None
    warned = collect(session, 200, start=20)
    assert warned == ["round 21 is past the policy's horizon of 20: it goes on, but its bounds do not hold any more"]
    assert session.rounds == 220
    for bound in (session.policy.bound(facts, session.rounds), session.policy.paper_bound(facts, session.rounds)):
        assert (bound.regret, bound.ccv, bound.interval) == (None, None, None)
        assert "past the policy's horizon of 20" in bound.why
    session.save(tmp_path / "a.npz")
    assert collect(bridle.Session.load(tmp_path / "a.npz"), 20, start=220) == []


def test_broken_assumptions_raise_one_alarm_each():
    for certify, kinds in ((False, ["AssumptionWarning"]), (True, ["InfeasibleWarning", "AssumptionWarning", "LipschitzWarning"])):
        session = bridle.Session(make_policy(lipschitz=1e-3, horizon=10_000), certify=certify)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(10 * ASSUMPTIONS_EVERY):
                session.observe(0.0, [0.0, 0.0, 0.0], 1.0, [0.0, 1.0, 0.0])  # no action satisfies it
        assert [w.category.__name__ for w in caught] == kinds
        assert all(w.filename == __file__ for w in caught)
        assert np.isfinite(session.decide()).all()
        assert any("which the theorem rules out" in str(w.message) for w in caught)


# --- saving and resuming --------------------------------------------------------------------------------------------------------------


def place(kind: str):
    """The domains of the support module, and nested ones."""
    rng = np.random.default_rng(7)
    if kind == "polyhedron":
        return bridle.Polyhedron(np.vstack([np.eye(2), -np.eye(2), [[1.0, 1.0]]]), [1.0, 1.0, 1.0, 1.0, 1.5])
    if kind == "osqp":
        return bridle.Polyhedron(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4), solver="osqp")
    if kind == "cut-polyhedron":
        return bridle.Halfspace([1.0, 2.0], 0.5, within=place("polyhedron"))
    if kind == "cut-simplex":
        return bridle.Halfspace([1.0, 0.0, 0.2], 0.4, within=bridle.Simplex(3))
    if kind == "nested":
        cut = bridle.Halfspace([1.0, 1.0], 0.1, within=bridle.Halfspace([1.0, 0.0], 0.5, within=bridle.L1Ball(2)))
        return bridle.Product(bridle.Product(cut, bridle.Spectrahedron(2)), bridle.Box([-1.0], [2.0]), place("polyhedron"))
    return make_domain(kind, 4, 1.0, rng)


PLACES = (
    "ball", "box", "simplex", "l1", "halfspace", "cut-box", "product", "spectrahedron", "polyhedron", "osqp", "cut-polyhedron",
    "cut-simplex", "nested",
)  # fmt: skip
INSIDE = {
    "adagrad": lambda domain: "adagrad",
    "adaftrl": lambda domain: "adaftrl",
    "ftpl": lambda domain: "ftpl",
    "ogd": lambda domain: "ogd",
    "decreasing": lambda domain: bridle.OGD(domain, step=0.5, decay="sqrt"),
    "strongly-convex": lambda domain: bridle.StronglyConvexOGD(domain, modulus=0.1),
    "fixed-ftpl": lambda domain: bridle.FTPL(domain, scale=2.0, samples=6, seed=3),
    "doubling": lambda domain: bridle.Doubling(lambda T: bridle.OGD(domain, step=1.0 / T**0.5), epochs=8),
}


def build(name: str, inside: str, domain):
    learner = INSIDE[inside](domain)
    few = {"samples": 6} if inside == "ftpl" and name != "sinha2024-strong" else {}
    if name != "sinha2024" and inside == "ogd":
        learner = bridle.OGD(domain, step=0.1)
    if name == "sinha2024-strong" and inside == "ftpl":
        learner = bridle.FTPL(domain, samples=6)
    return make_policy(name, domain, learner=learner, **few, **({"constraints": 2} if name == "sinha2024-ocs" else {}))


def resume(policy, path, k: int = 2, rounds: int = 24, cut: int = 11, again=None):
    """0 -> rounds at once, and with a save and a load in the middle: every decision, leaf and total must be the same."""
    whole, first = bridle.Session(policy), bridle.Session(policy)
    decisions = play_random_stream(whole, rounds, k=k)
    play_random_stream(first, cut, k=k)
    first.save(path)
    second = bridle.Session.load(path, policy=again)
    assert_identical(snapshot(first), snapshot(second))
    rest = play_random_stream(second, rounds - cut, k=k, start=cut)
    for x, y in zip(decisions[cut:], rest, strict=True):
        assert x.tobytes() == y.tobytes()
    assert_identical(snapshot(whole), snapshot(second))
    return second


@pytest.mark.slow
@pytest.mark.covering(3)
@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", OWN)
def test_every_registered_policy_resumes_bit_for_bit(name, where, tmp_path):
    domain = place(where)
    slow = where in ("polyhedron", "osqp", "cut-polyhedron", "nested")
    for inside in INSIDE:
        if slow and inside in ("doubling", "fixed-ftpl"):
            continue  # stacked stages are not for solvers, and one learner that solves many programs a round is enough
        rounds = 8 if slow and "ftpl" in inside else 24
        policy = build(name, inside, domain)
        session = resume(policy, tmp_path / "session.npz", rounds=rounds, cut=rounds // 2 - 1)
        assert session.policy.name == name
        assert session.policy.parameters.keys() == policy.parameters.keys()
        assert [type(node) for node in records.nodes(session.policy.record)] == [type(node) for node in records.nodes(policy.record)]


@pytest.mark.parametrize(
    "potential", ["exponential", "quadratic", "power", bridle.potentials.Exponential(0.02), bridle.potentials.Power(3.0)]
)
def test_every_potential_resumes_bit_for_bit(potential, tmp_path):
    resume(make_policy(potential=potential, preset="practice"), tmp_path / "a.npz", rounds=60, cut=33)


def test_parameters_come_back_as_they_were(tmp_path):
    given = {
        "horizon": 123.0,
        "lipschitz": 1 / 3,
        "preset": "tight",
        "V": np.float64(0.1),
        "learner": "ftpl",
        "samples": np.int64(8),
        "seed": 5,
    }
    policy = bridle.policy("sinha2024", bridle.Ball(2), **given)
    bridle.Session(policy, [0.1, 0.2]).save(tmp_path / "a.npz")
    loaded = bridle.Session.load(tmp_path / "a.npz")
    assert loaded.policy.parameters == policy.parameters
    assert {type(a) for a in loaded.policy.parameters.values()} == {float, str, int}
    for p, q in zip(records.leaves(policy.record).values(), records.leaves(loaded.policy.record).values(), strict=True):
        np.testing.assert_array_equal(p, q)


def test_a_session_that_has_seen_nothing_resumes_too(tmp_path):
    """Before the first round the number of constraints is open; it still is after loading. The starting point comes back."""
    session = bridle.Session(make_policy(), x1=[0.1, -0.2, 0.3])
    session.save(tmp_path / "a.npz")
    loaded = bridle.Session.load(tmp_path / "a.npz")
    assert_identical(snapshot(session), snapshot(loaded))
    loaded.observe(**GOOD_RECORD)
    assert len(loaded.violations) == 2


def test_the_number_of_constraints_is_remembered(tmp_path):
    session = bridle.Session(make_policy(constraints=2))
    session.observe(**GOOD_RECORD)
    session.save(tmp_path / "a.npz")
    with pytest.raises(bridle.InputError, match="g must hold 2 constraint values, not 1"):
        bridle.Session.load(tmp_path / "a.npz").observe(0.1, np.zeros(DIM), 0.1, np.zeros(DIM))


SCRIPT = """
import sys
sys.path[:0] = [sys.argv[1] + "/.."]
import bridle
from helpers.sessions import play_random_stream
session = bridle.Session.load(sys.argv[2])
play_random_stream(session, 13, k=2, start=11)
session.save(sys.argv[2] + ".done.npz")
"""


def test_resuming_in_a_fresh_process_is_bit_identical(tmp_path):
    whole = {}
    paths = []
    for where in ("nested", "spectrahedron"):
        policy = build("sinha2024", "adaftrl", place(where))
        whole[where], half = bridle.Session(policy), bridle.Session(policy)
        play_random_stream(whole[where], 24, k=2)
        play_random_stream(half, 11, k=2)
        paths.append(tmp_path / f"{where}.npz")
        half.save(paths[-1])
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, os.path.dirname(__file__), str(paths[-1])], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    for where, path in zip(whole, paths, strict=True):
        assert_identical(snapshot(whole[where]), snapshot(bridle.Session.load(f"{path}.done.npz")))


class MyState(NamedTuple):
    x: Any
    seen: Any
    notes: Any


class MyPolicy(NamedTuple):
    """A policy of a user's own, in one class: gradient descent on f + 3 (g)^+, with a step that falls."""

    low: Any
    rate: Any

    def init(self, x1):
        return MyState(x1, 0.0, (np.zeros((2, 2)), None))

    def decide(self, state):
        return state.x

    def update(self, state, feedback):
        seen = state.seen + 1.0
        grad = feedback.df + 3.0 * (feedback.g > 0.0) @ feedback.dg
        notes = (state.notes[0] * 0.5 + seen, None)
        return MyState(np.maximum(state.x - self.rate / seen * grad, self.low), seen, notes)


class MyLearner(NamedTuple):
    """A learner of a user's own for a registered policy."""

    domain: Any
    rate: Any

    scale_free = False

    def init(self, x1):
        return MyState(x1, 0.0, None)

    def decide(self, state):
        return state.x

    def step(self, state, grad, modulus=None):
        return MyState(self.domain.project(state.x - self.rate * grad), state.seen + 1.0, None)


class MyDomain(NamedTuple):
    """A domain of a user's own: the box [-1, 1]^d."""

    top: Any

    @property
    def dim(self):
        return len(self.top)

    def project(self, x):
        return np.clip(x, -self.top, self.top)

    def diameter(self):
        return float(2.0 * np.linalg.norm(self.top))

    def center(self):
        return 0.0 * self.top

    def contains(self, x, tolerance=1e-9):
        return bool((np.abs(x) <= self.top + tolerance).all())

    def linear_min(self, v):
        return -float(np.abs(v) @ self.top)

    def linear_argmin(self, v):
        return -np.sign(v) * self.top


def own(kind: str):
    ball = bridle.Ball(DIM)
    return {
        "doubling": lambda: bridle.Doubling(lambda T: make_policy(horizon=T), epochs=10),
        "short doubling": lambda: bridle.Doubling(lambda T: make_policy(horizon=T), epochs=3),  # its last epoch never ends
        "record": lambda: make_policy().record,
        "class": lambda: MyPolicy(-np.ones(DIM), 0.3),
        "learner": lambda: make_policy(learner=MyLearner(ball, 0.1)),
        "domain": lambda: make_policy("sinha2024", MyDomain(np.ones(DIM))),
    }[kind]()


@pytest.mark.parametrize("kind", ["doubling", "short doubling", "record", "class", "learner", "domain"])
def test_policies_that_are_not_registered_need_policy_to_resume(kind, tmp_path):
    """Given the policy, they resume bit for bit."""
    path = tmp_path / "own.npz"
    session = bridle.Session(own(kind), np.zeros(DIM))
    play_random_stream(session, 5, k=2)
    session.save(path)
    part = {"learner": "learner", "domain": "domain"}.get(kind)
    said = (
        "it holds a policy that is not registered \\(\\w+\\); give it"
        if part is None
        else f"has a part of your own, {part}; give the policy"
    )
    with pytest.raises(bridle.InputError, match=rf"own\.npz: .*{said} as policy=\.\.\.$"):
        bridle.Session.load(path)
    whole = bridle.Session(own(kind), np.zeros(DIM))
    play_random_stream(whole, 24, k=2)
    loaded = bridle.Session.load(path, policy=own(kind))
    assert_identical(snapshot(session), snapshot(loaded))
    play_random_stream(loaded, 19, k=2, start=5)
    assert_identical(snapshot(whole), snapshot(loaded))


def test_a_policy_registered_by_the_user_is_loaded_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    item = policies.entry("sinha2024-ocs")
    bridle.register(policies.Entry("mine", item.factory, "a copy", "nobody", "-", "-"))
    session = resume(bridle.policy("mine", bridle.Ball(2), constraints=2), tmp_path / "a.npz")
    assert session.policy.name == "mine"
    del registry._ENTRIES["mine"]
    with pytest.raises(bridle.InputError, match=r"a\.npz: unknown policy 'mine'"):
        bridle.Session.load(tmp_path / "a.npz")


def test_a_file_for_another_policy_is_refused(tmp_path):
    session = bridle.Session(make_policy())
    session.save(tmp_path / "a.npz")
    for other, message in (
        (make_policy("sinha2024-ocs", constraints=2), r"it does not fit this policy, leaf 'Q' has shape \(\), not \(2,\)"),
        (make_policy(learner="adaftrl"), "it does not fit this policy, leaf 'learner.S' is missing from the file"),
        (make_policy(domain=bridle.Ball(2)), r"x1 must have shape \(2,\), not \(3,\)"),
        (make_policy(lam=[0.1, 0.2]), "policy stands for 2 runs"),
        ("sinha2024", "policy must have a method `init`"),
    ):
        with pytest.raises(bridle.InputError, match=message) as wrong:
            bridle.Session.load(tmp_path / "a.npz", policy=other)
        assert str(tmp_path / "a.npz") in str(wrong.value)


def test_history_goes_on_after_loading(tmp_path):
    session = bridle.Session(make_policy())
    play_random_stream(session, 3)
    session.save(tmp_path / "a.npz")
    seen: list[dict[str, Any]] = []
    loaded = bridle.Session.load(tmp_path / "a.npz", history=seen.append)
    play_random_stream(loaded, 2, start=3)
    assert [entry["round"] for entry in seen] == [4, 5]


# --- the file itself ------------------------------------------------------------------------------------------------------------------


def test_a_save_file_holds_plain_arrays_and_a_readable_header(tmp_path):
    session = bridle.Session(build("sinha2024", "doubling", place("nested")))
    play_random_stream(session, 5, k=2)
    session.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    assert all(array.dtype.kind in "fU" for array in arrays.values())
    header = json.loads(str(arrays["header"]))
    assert (header["library"], header["schema"], header["policy"]) == ("bridle", savefile.SCHEMA, "sinha2024")
    assert header["parameters"]["horizon"] == {"value": 500}
    for name, leaf in records.leaves(session.state).items():
        np.testing.assert_array_equal(arrays[f"state.{name}"], leaf)


def test_the_name_is_used_as_it_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("plain", tmp_path / "path.npz", str(tmp_path / "with space.dat"), os.fsencode("bytes.npz")):
        session = bridle.Session(make_policy())
        session.save(path)
        assert_identical(snapshot(session), snapshot(bridle.Session.load(path)))
    assert sorted(os.listdir()) == ["bytes.npz", "path.npz", "plain", "with space.dat"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.npz").symlink_to(tmp_path / "real" / "file.npz")
    session = bridle.Session(make_policy())
    session.save(tmp_path / "link.npz")
    session.save(tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    assert (tmp_path / "real" / "file.npz").is_file()


def fails(error):
    def instead(*args, **kwargs):
        raise error

    return instead


def half_written(file, **arrays):
    file.write(b"PK\x03\x04 and then the disk is full")
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize(
    ("where", "what", "instead", "raised"),
    [
        (np, "savez", half_written, bridle.InputError),
        (np, "savez", fails(OSError("odd")), bridle.InputError),
        (np, "savez", fails(MemoryError()), MemoryError),
        (np, "savez", fails(KeyboardInterrupt()), KeyboardInterrupt),
        (os, "fsync", fails(OSError(5, "Input/output error")), bridle.InputError),
        (os, "replace", fails(OSError(13, "Permission denied")), bridle.InputError),
        (os, "replace", fails(KeyboardInterrupt()), KeyboardInterrupt),
    ],
)
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(where, what, instead, raised, exists, tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    session = bridle.Session(make_policy())
    play_random_stream(session, 4)
    if exists:
        session.save(path)
    old = path.read_bytes() if exists else None
    play_random_stream(session, 4, start=4)
    before = snapshot(session)
    monkeypatch.setattr(where, what, instead)
    with pytest.raises(raised) as wrong:
        session.save(path)
    monkeypatch.undo()
    if raised is bridle.InputError:
        assert str(wrong.value).startswith(f"cannot write {path}: ")
        assert "None" not in str(wrong.value)
    assert os.listdir(tmp_path) == (["a.npz"] if exists else [])
    if exists:
        assert path.read_bytes() == old
        assert bridle.Session.load(path).rounds == 4
    assert_identical(before, snapshot(session))


def test_places_that_cannot_be_written_are_one_error(tmp_path):
    session = bridle.Session(make_policy())
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "missing" / "a.npz", tmp_path / "folder", tmp_path / "file" / "a.npz", "", "a\0b", None, 3, 1.5):
        with pytest.raises(bridle.InputError, match=r"^(cannot write|path must be)") as wrong:
            session.save(path)
        assert "\n" not in str(wrong.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def refused(path, named=True) -> str:
    """Loading fails with exactly one InputError of one line that names the path."""
    with pytest.raises(bridle.InputError) as wrong:
        bridle.Session.load(path)
    message = str(wrong.value)
    assert "\n" not in message
    assert wrong.value.__cause__ is None
    assert wrong.value.__suppress_context__ or wrong.value.__context__ is None
    assert not named or str(path) in message
    return message


@pytest.fixture
def saved(tmp_path):
    session = bridle.Session(make_policy("sinha2024", bridle.Box(-np.ones(2), np.ones(2)), learner="adaftrl"))
    play_random_stream(session, 6, k=2)
    session.save(tmp_path / "saved.npz")
    return tmp_path / "saved.npz"


def test_files_that_are_not_save_files(tmp_path):
    assert "No such file" in refused(tmp_path / "missing.npz")
    assert "it is a folder, not a file" in refused(tmp_path)
    path = tmp_path / "a.npz"
    rng = np.random.default_rng(0)
    for content in (
        b"",
        b"\n",
        b"PK\x03\x04",
        b"PK\x05\x06" + bytes(18),
        b"\x93NUMPY",
        b"not a save file\n",
        rng.bytes(10),
        rng.bytes(5000),
    ):
        path.write_bytes(content)
        assert "truncated, damaged, or not a save file" in refused(path) or content.startswith(b"PK\x05")
    np.save(path.with_suffix(".npy"), np.ones(3))
    refused(path.with_suffix(".npy"))
    np.savez(path, a=np.ones(3), b=np.array("text"))
    assert "it was not written by this version of bridle" in refused(path)
    np.savez(path, header=np.array("{}"), start=np.zeros(2))
    assert "it was not written by this version of bridle" in refused(path)
    np.savez(path, header=np.array("[1, 2]"))
    assert "it was not written by this version of bridle" in refused(path)
    np.savez(path, header=np.ones(3))
    assert "it was not written by this version of bridle" in refused(path)
    np.savez(path, header=np.array([{"an": "object"}], dtype=object), allow_pickle=True)
    assert "truncated, damaged, or not a save file" in refused(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "hello")
    refused(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.npy", b"not an array")
    refused(path)
    for odd in (None, 3, object()):
        assert refused(odd, named=False).startswith("path must be the path of a file")


def test_a_truncated_file_is_refused_wherever_it_ends(saved):
    whole = saved.read_bytes()
    for length in sorted({*range(0, len(whole), 37), *range(len(whole) - 30, len(whole))}):
        saved.write_bytes(whole[:length])
        refused(saved)


@pytest.mark.slow
def test_a_file_with_a_flipped_byte_is_refused_or_the_flip_does_not_matter(saved):
    """A checksum guards every array, so what loads at all is what was saved."""
    whole, original = saved.read_bytes(), snapshot(bridle.Session.load(saved))
    refusals = []
    for place_, mask in [(p, 1 << (p % 8)) for p in range(0, len(whole), 5)] + [(p, 0xFF) for p in range(3, len(whole), 11)]:
        damaged = bytearray(whole)
        damaged[place_] ^= mask
        saved.write_bytes(damaged)
        try:
            loaded = bridle.Session.load(saved)
        except bridle.InputError as wrong:
            refusals.append(str(wrong))
        else:
            assert_identical(original, snapshot(loaded))
    assert len(refusals) > 100
    assert all(str(saved) in message and "\n" not in message for message in refusals)


def into(*keys, value):
    def change(header, arrays):
        inside = header
        for key in keys[:-1]:
            inside = inside[key]
        inside[keys[-1]] = value

    return change


def without(*keys):
    def change(header, arrays):
        inside = header
        for key in keys[:-1]:
            inside = inside[key]
        del inside[keys[-1]]

    return change


def array(name, value):
    def change(header, arrays):
        if value is None:
            del arrays[name]
        else:
            arrays[name] = value

    return change


EDITS = {
    "schema 2": (into("schema", value=2), "it has schema 2, and this version of bridle reads schema 5 alone"),
    "schema text": (into("schema", value="x"), "it has schema x"),
    "no schema": (without("schema"), "it was not written by this version of bridle"),
    "other library": (into("library", value="horse"), "it was not written by this version of bridle"),
    "unknown policy": (into("policy", value="sinha2025"), "unknown policy 'sinha2025'; did you mean sinha2024"),
    "policy a list": (into("policy", value=["sinha2024"]), "unknown policy .'sinha2024'.; did you mean sinha2024"),
    "no policy": (without("policy"), "give it as policy="),
    "no domain": (without("domain"), "header is damaged"),
    "no parameters": (without("parameters"), "header is damaged"),
    "parameters a list": (into("parameters", value=[]), "header is damaged"),
    "unknown parameter": (into("parameters", "steps", value={"value": 1.0}), "unknown parameter of policy sinha2024 'steps'"),
    "missing parameter": (without("parameters", "horizon"), "policy sinha2024 needs horizon"),
    "bad parameter": (into("parameters", "lipschitz", value={"value": -1.0}), "lipschitz must be above 0"),
    "nan parameter": (into("parameters", "lipschitz", value={"value": float("nan")}), "lipschitz must be finite"),
    "odd parameter": (into("parameters", "lipschitz", value={"odd": 1}), "header is damaged"),
    "parameter without array": (into("parameters", "V", value={"array": "parameters.V"}), "header is damaged"),
    "a foreign record": (into("domain", "record", value="os:path"), "it names a record 'os:path', which is not part of bridle"),
    "a foreign class": (into("domain", "record", value="Popen"), "it names a record 'Popen', which is not part of bridle"),
    "what a module imports": (into("domain", "record", value="np"), "it names a record 'np', which is not part of bridle"),
    "a factory": (into("domain", "record", value="Ball"), "it names a record 'Ball', which is not part of bridle"),
    "another domain": (into("domain", "record", value="BallSet"), "header is damaged"),
    "a domain of strings": (into("domain", "parts", "low", value={"value": "low"}), "header is damaged"),
    "a domain of another size": (array("domain.low", np.zeros(5)), "saved.npz"),
    "record a number": (into("domain", "record", value=3), "it names a record 3, which is not part of bridle"),
    "record a list": (into("domain", "record", value=["BoxSet"]), "header is damaged"),
    "no start": (array("start", None), "'start' is missing"),
    "start elsewhere": (array("start", np.array([7.0, 0.0])), "x1 must lie in the domain"),
    "start of another size": (array("start", np.zeros(3)), "x1 must have shape"),
    "start a matrix": (array("start", np.zeros((1, 2))), "x1 must have shape"),
    "start text": (array("start", np.array("abc")), "'start' must hold numbers, not array"),
    "no rounds": (array("totals.rounds", None), "'totals.rounds' is missing"),
    "half a round": (array("totals.rounds", np.array(1.5)), "totals.rounds in .* must be a whole number"),
    "negative rounds": (array("totals.rounds", np.array(-1.0)), "totals.rounds in .* must be 0 or above"),
    "rounds a vector": (array("totals.rounds", np.ones(2)), "totals.rounds in .* must be a number"),
    "cost nan": (array("totals.cost", np.array(np.nan)), "'totals.cost' must hold numbers, not array.nan"),
    "cost a vector": (array("totals.cost", np.ones(2)), "totals.cost in .* must be a number"),
    "hard a number": (array("totals.hard", np.array(0.0)), "totals.hard in .* must be a vector"),
    "leaf missing": (array("state.learner.total", None), "leaf 'learner.total' is missing from the file"),
    "leaf extra": (array("state.learner.more", np.zeros(2)), "leaf 'learner.more' is only in the file"),
    "leaf of another shape": (array("state.learner.total", np.zeros(3)), r"leaf 'learner.total' has shape \(3,\), not \(2,\)"),
    "leaf a vector": (array("state.Q", np.zeros(1)), r"leaf 'Q' has shape \(1,\), not \(\)"),
    "leaf nan": (array("state.learner.total", np.array([0.0, np.nan])), "'state.learner.total' must hold numbers, not array"),
    "cost inf": (array("totals.cost", np.array(np.inf)), "totals.cost in .* must be finite"),
    "start inf": (array("start", np.array([np.inf, 0.0])), "x1 must be finite"),
    "leaf whole": (array("state.Q", np.array(3)), "'state.Q' must hold numbers"),
    "leaf complex": (array("state.Q", np.array(3j)), "'state.Q' must hold numbers"),
    "leaf text": (array("state.Q", np.array("abc")), "'state.Q' must hold numbers, not array"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_file_is_refused_with_the_reason(name, saved):
    change, message = EDITS[name]
    edit(saved, change)
    said = refused(saved)
    assert re.search(message, said), said


def test_an_edit_that_says_the_same_still_loads(saved):
    before = snapshot(bridle.Session.load(saved))
    edit(saved, lambda header, arrays: arrays.update({"state.Q": arrays["state.Q"].astype(">f8")}))
    assert_identical(before, snapshot(bridle.Session.load(saved)))


def test_every_record_is_found_by_its_name():
    """Files name a record's type alone: no two types may share a name, and all that policies are made of are known."""
    kinds = [
        (kind, module.__name__)
        for room in savefile.ROOMS
        for module in savefile._modules(room)
        for kind in vars(module).values()
        if isinstance(kind, type) and hasattr(kind, "_fields") and kind.__module__ == module.__name__
    ]
    assert {module.split(".")[1] for _, module in kinds} == set(savefile.ROOMS)
    for kind, module in kinds:
        if "policies" not in module or kind.__name__ == "Lyapunov":  # a file names no other policy's record
            assert savefile._kinds()[kind.__name__] is kind
    for domain in map(place, PLACES):
        for inside in INSIDE.values():
            for node in records.nodes((domain, inside(domain))):
                assert savefile._kinds().get(type(node).__name__, tuple) is type(node)


@pytest.mark.compiles
@pytest.mark.parametrize("cost", [lambda x: float(x @ x), lambda x: np.dot(np.ones(DIM), x), lambda x: (x @ x, 2 * x)])
def test_what_jax_cannot_differentiate_is_one_clear_error(cost):
    session = bridle.Session(make_policy())
    before = snapshot(session)
    with pytest.raises(bridle.InputError, match=r"JAX cannot differentiate cost .* give a pair") as wrong:
        session.step(cost)
    assert "\n" not in str(wrong.value)
    assert_identical(before, snapshot(session))


@pytest.mark.parametrize("durable", [False, True])
def test_an_argument_that_is_gone_says_what_to_do_instead(durable, tmp_path):
    policy = bridle.policy("anytime", bridle.Ball(2))
    session = bridle.Session.open(f"sqlite:///{tmp_path}/run.db", "run", policy=policy) if durable else bridle.Session(policy)
    with pytest.raises(bridle.InputError, match=r"observe: context is gone: .*check_functions"):
        session.observe(f=0.0, context="shop 17")
    with pytest.raises(bridle.InputError, match="observe: partial is gone: keep the half that came first"):
        session.observe(f=0.0, partial=True)
    with pytest.raises(TypeError, match="observe: colour is not an argument of it"):
        session.observe(f=0.0, colour="red")
    assert session.rounds == 0
    if durable:
        session.close()

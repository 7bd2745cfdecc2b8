"""`anytime` with a window: it is the policy begun anew, keeps its bounds within each window, and follows what it could not."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Feedback

W = 40
KNOWN = {"lipschitz": 1.0, "diameter": 2.0, "convex": True, "feasible": np.zeros(3), "bound": 2.0}


def moving(seed, dim, windows, adaptive):
    """In each window another feasible action; costs of slope 1 and halfspaces through it, against the decision if adaptive."""
    rng = np.random.default_rng([seed, 3])
    domain = bridle.Ball(dim)
    for _ in range(windows):
        u = np.asarray(domain.project(2.0 * rng.standard_normal(dim)))

        def answer(x, u=u):
            away = x - u if adaptive and np.any(x != u) else rng.standard_normal(dim)
            n = away / np.linalg.norm(away)
            c = -n if rng.random() < 0.7 else rng.standard_normal(dim)
            c = c / np.linalg.norm(c)
            return c, n, float(n @ (x - u))

        yield u, answer


def shares(seed, adaptive, V, window, windows=5, **about):
    """The largest share of the bounds of each window, which hold after every round; None for V: the policy finds its own."""
    largest, D = 0.0, 2.0
    made = bridle.policy("anytime", bridle.Ball(3), window=window, **({} if V is None else {"V": V}), **about)
    state = made.record.init(np.zeros(3))
    for u, answer in moving(seed, 3, windows, adaptive):
        regret = squares = 0.0
        for t in range(1, window + 1):
            x = made.record.decide(state)
            c, n, g = answer(x)
            state = made.record.update(state, Feedback(x, float(c @ x), c, np.array([g]), n[None]))
            regret, squares, weight = regret + float(c @ (x - u)), squares + max(g, 0.0) ** 2, float(state.V)
            R = sqrt(2.0 * t) * D
            promised = R + 0.5 / weight, 4.0 * D * D * log(2.0 + 2.0 * weight * (R - min(regret, 0.0)))
            assert regret <= promised[0]
            assert squares <= promised[1]
            largest = max(largest, regret / promised[0], squares / promised[1])
    return largest


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("V", [0.05, 1.0, 50.0])
def test_every_window_keeps_the_bounds_from_its_beginning_on(adaptive, V, record_property):
    largest = max(shares(seed, adaptive, V, W) for seed in range(4))
    bound = bridle.policy("anytime", bridle.Ball(3), V=V, window=W).bound(KNOWN, W)
    assert bound.regret == pytest.approx(min(sqrt(2.0 * W) * 2.0 + 0.5 / V, 2.0 * W))
    record_property("largest share of a bound", round(float(largest), 3))
    assert largest > 0.1


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    adaptive=st.booleans(),
    V=st.none() | st.floats(1e-4, 1e4),
    window=st.integers(1, 60),
    about=st.sampled_from([{}, {"cuts": 0}, {"cuts": 3}, {"halfspace": False}]),
)
def test_no_window_is_found_that_breaks_its_bounds(seed, adaptive, V, window, about):
    shares(seed, adaptive, V, window, windows=3, **about)


@pytest.mark.parametrize("about", [{}, {"cuts": 3}, {"halfspace": False}])
def test_it_is_the_policy_begun_anew_where_it_stands(about):
    problem = bridle.problem("halfspaces", horizon=100, dim=3, constraints=2)
    plain = bridle.policy("anytime", problem.domain, V=2.0, **about)
    windowed = bridle.policy("anytime", problem.domain, V=2.0, window=30, **about)
    x, expected, rounds = None, [], list(recorded(problem))
    for start in range(0, 100, 30):
        state = plain.record.init(problem.domain.center() if x is None else x)
        for round_ in rounds[start : start + 30]:
            expected.append(np.array(plain.record.decide(state)))
            state = plain.record.update(state, round_.reveal(expected[-1]))
        x = plain.record.decide(state)
    found = bridle.play(windowed, problem, keep="decisions").decisions
    np.testing.assert_array_equal(found, np.array(expected))


def recorded(problem):
    """The rounds of a problem one by one."""
    from bridle import records

    trace = bridle.play(bridle.policy("adagrad", problem.domain), problem)
    for block in trace.blocks():
        for t in range(len(next(leaf for leaf in records.leaves(block).values()))):
            yield records.transform(lambda leaf, t=t: leaf[t], block)


def test_a_moving_demand_is_followed_down():
    """Capacity before demand: a peak in the beginning keeps the plain policy up for ever."""
    spent = {}
    for name, about in (("plain", {}), ("window", {"window": 50})):
        session, total = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 10.0, dim=1), **about)), 0.0
        for t in range(300):
            x, demand = session.decide(), 8.0 if t < 50 else 2.0
            session.observe(f=float(x[0]), df=[1.0], g=demand - float(x[0]), dg=[-1.0])
            total += float(x[0]) if t >= 150 else 0.0
        spent[name] = total / 150
    assert spent["window"] < 3.0
    assert spent["plain"] > 2.0 * spent["window"]


def test_over_several_windows_bounds_add_up():
    known = {**KNOWN, "V": 1.0}
    windowed, plain = (bridle.policy("anytime", bridle.Ball(3), V=1.0, **about) for about in ({"window": 100}, {}))
    one = plain.bound(known, 100)
    for t, begun in ((1, 1), (100, 1), (101, 2), (1000, 10)):
        found, alone = windowed.bound({**known, "regret": 0.0}, t), plain.bound(known, min(t, 100))
        assert found.regret == pytest.approx(begun * alone.regret)
        assert found.ccv == pytest.approx(begun * alone.ccv)
        assert found.squared == pytest.approx(begun * alone.squared)
    assert windowed.bound(known, 1000).regret == pytest.approx(10.0 * one.regret)
    problem = bridle.problem("halfspaces", horizon=400, dim=3)
    trace = bridle.play(bridle.policy("anytime", problem.domain, window=50), problem)
    bound = trace.policy.bound({**problem.constants, "V": float(trace.state.V)}, 400)
    assert bridle.regret(trace) <= bound.regret
    assert bridle.ccv(trace) <= bound.ccv


def test_it_goes_on_from_a_file_within_a_window(tmp_path):
    policy = bridle.policy("anytime", bridle.Ball(2), window=7)
    one, rng = bridle.Session(policy), np.random.default_rng(0)

    def observe(session, c, n):
        x = session.decide()
        session.observe(f=float(c @ x), df=c, g=float(n @ x) - 0.1, dg=n)
        return x

    moves = rng.standard_normal((40, 2, 2))
    for c, n in moves[:17]:
        observe(one, c, n)
    one.save(tmp_path / "s.npz")
    other = bridle.Session.load(tmp_path / "s.npz")
    for c, n in moves[17:]:
        np.testing.assert_array_equal(observe(one, c, n), observe(other, c, n))


@pytest.mark.compiles
def test_windows_on_engines_and_in_batches_agree():
    problem = bridle.problem("halfspaces", horizon=120, dim=3)
    made = bridle.policy("anytime", problem.domain, window=25)
    alone = bridle.play(made, problem, keep="decisions")
    np.testing.assert_allclose(bridle.play(made, problem, engine="jax", keep="decisions").decisions, alone.decisions, atol=1e-11)
    many = bridle.play(made, problem, seed=[0, 1], keep="decisions")
    np.testing.assert_allclose(many.decisions[:, 0], alone.decisions, atol=1e-11)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"window": 0}, "window must be 1 or above"),
        ({"window": 2.5}, "window must be"),
        ({"window": 5, "drift": 1.0}, "window goes without drift"),
        ({"window": 5, "modulus": 1.0}, "window goes without drift and modulus"),
    ],
)
def test_a_window_that_cannot_be_is_refused(given, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.policy("anytime", bridle.Ball(2), **given)

"""The bounds of a mixture of memories: each as another road to the same number, with every constant apart from 1."""

from __future__ import annotations

from math import expm1, log, sqrt

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.learners.track import track_regret
from bridle.policies.memories import WINDOWS, moving_bound, pieces

DIM = 3


@pytest.mark.parametrize("V", [None, 4.0])
def test_the_bound_is_what_the_proof_adds_up_to(V):
    """In another order than the code, every constant apart from 1, and t so large that no trivial bound is smaller."""
    t, G, D, M, m, moves = 1e14, 3.0, 0.5, 0.7, 3.0, 0.2
    windows = (*(10.0 * 3.0**k for k in range(31)), np.inf)
    N = 1.0 + 2.0 * (1.0 + 2.0 * 28.0)  # 28 of the windows are shorter than t
    assert pieces(t, m, windows) == pytest.approx(N, rel=1e-12)
    weight, theta, rho = 10.0 / (D * M) if V is None else V, 0.5 * 1.2**2, 5.0 * G * t**0.25
    R = sqrt(2.0) * 1.2 * D * G * sqrt(t)
    Q = 4.0 * D * D * log((1.0 + weight * (R + G * D * t)) / (1.0 - theta))
    ranges = t * (D * (G + rho)) ** 2
    begun, rounding = N * theta / weight, 2e-9 * G * D * t
    regret = R * sqrt(N) + begun + 2.0 * 9.0 * D * (G + rho) + rho * sqrt(t * N * Q) + track_regret(32, t, ranges, N - 1.0) + rounding
    told = {"lipschitz": G, "diameter": D, "parts": m, "moves": moves, "first": M, "windows": windows, "V": V, "toll": 5.0}
    found = moving_bound(t, **told)
    assert regret < G * D * t
    begun = begun * (1.0 if V is None else G / M)
    assert found.regret == pytest.approx(regret + begun - N * theta / weight, rel=1e-12)
    one = track_regret(32, t, t * (D * G) ** 2, N - 1.0)
    grown = (G * D * t + R * sqrt(N) + rounding + one) / (5.0 * t**0.25)
    level = grown + begun / 5.0 + 1.2 * 18.0 * G * D + G * sqrt(t * N * Q) + one
    assert found.ccv == pytest.approx(level * (1.0 + log(G / M * t**0.25)), rel=1e-12)
    free = moving_bound(t, **told, limits=False)
    assert free.regret == pytest.approx(R * sqrt(N) + begun + 18.0 * D * G + one + rounding, rel=1e-12)
    assert free.ccv == 0.0


def test_with_next_to_no_price_the_rounds_before_pieces_count():
    t, G, D, M, V, toll = 1e4, 3.0, 0.5, 0.7, 2.0, 1e-6
    windows = (*(10.0 * 3.0**k for k in range(8)), np.inf)
    N = 1.0 + 1.0 + 2.0 * 7.0
    assert pieces(t, 2.0, windows) == N
    R, rho = sqrt(2.0 * t) * G * D, toll * t**0.25
    Q = 4.0 * D * D * log((1.0 + V * (R + G * D * t)) / 0.5)
    one = track_regret(9, t, t * (D * G) ** 2, N - 1.0)
    before, begun = 9.0 * (1.0 + rho) * G * D, N * 0.5 / V * G / M
    regret = sqrt(N) * R + 2e-9 * G * D * t + begun + before + G * rho * sqrt(t * N * Q) + one * (1.0 + rho)
    assert regret < G * D * t
    told = {"lipschitz": G, "diameter": D, "first": M, "V": V, "toll": toll, "windows": windows}
    assert moving_bound(t, **told, parts=2.0).regret == pytest.approx(regret, rel=1e-12)


def test_with_so_small_a_weight_that_costs_hardly_count_squares_stay_small():
    t, G, D, M, V, toll = 1e6, 3.0, 0.5, 0.7, 1e-6, 1e9
    R = sqrt(2.0 * t) * G * D
    Q = 4.0 * D * D * log((1.0 + V * (R + G * D * t)) / 0.5)
    one = track_regret(2, t, t * (D * G) ** 2)
    level = (G * D * t + R + 2e-9 * G * D * t + one) / (toll * t**0.25) + 0.5 / V * G / M / toll + G * sqrt(t * Q) + one
    told = {"lipschitz": G, "diameter": D, "first": M, "V": V, "toll": toll, "windows": (10.0, np.inf)}
    assert moving_bound(t, **told).ccv == pytest.approx(level * (1.0 + log(G / M * t**0.25)), rel=1e-12)


def test_bounds_say_when_there_are_none_and_are_never_worse_than_nothing():
    assert moving_bound(10.0, lipschitz=3.0, diameter=0.5)[:2] == (15.0, 15.0)
    assert moving_bound(10.0, lipschitz=3.0, diameter=0.5, limits=False)[:2] == (15.0, 0.0)
    assert moving_bound(10.0, lipschitz=0.0, diameter=0.5)[:2] == (0.0, 0.0)
    assert "theta = 1.125 must be below 1" in moving_bound(1e6, lipschitz=1.0, diameter=2.0, moves=0.5).why
    known = {"lipschitz": 1.0, "diameter": 2.0, "convex": True, "feasible": np.zeros(DIM), "bound": 2.0}
    made = bridle.policy("anytime", bridle.Ball(DIM), window="auto")
    assert "first gradient" in made.bound(known, 100).why
    assert made.bound({**known, "first": 0.5}, 10**9) == moving_bound(10**9, lipschitz=1.0, diameter=2.0, first=0.5)
    assert "no action is known" in made.bound({**known, "feasible": None, "first": 0.5}, 100).why
    wide = bridle.policy("anytime", bridle.Ball(DIM), window="auto", diameter=1.0)
    assert "more than the policy was told" in wide.bound({**known, "first": 0.5}, 100).why
    careful = bridle.policy("anytime", bridle.Ball(DIM), window="auto", margin=0.1)
    assert "margin" in careful.bound({**known, "first": 0.5, "slater": 1.0}, 100).why
    steep = bridle.policy("anytime", bridle.Ball(DIM), window="auto", lam=0.3)
    assert "must be below 1" in steep.bound({**known, "first": 0.5}, 100).why


@pytest.mark.parametrize("told", [{}, {"V": 3.0}])
def test_after_a_game_regret_is_bounded_by_what_was_observed(told):
    problem = bridle.problem("halfspaces", horizon=300, dim=3)
    trace = bridle.play(bridle.policy("anytime", problem.domain, window="auto", **told), problem)
    facts, state = problem.constants, trace.state
    known = facts | {name: getattr(state, name) for name in ("V", "first", "observed_rounds", "observed_regret")}
    G, D, V = facts["lipschitz"], facts["diameter"], told.get("V", 10.0 / (facts["diameter"] * state.first))
    bound = trace.policy.bound(known, 300)
    assert bound.regret == pytest.approx(sqrt(600.0) * G * D + 0.5 / V + state.observed_regret)
    assert bridle.regret(trace) <= bound.regret < 0.7 * G * D * 300
    assert trace.policy.bound(known, 299).regret == G * D * 299  # what was observed is about round 300


@pytest.mark.parametrize("V", [None, 2.0])
def test_what_was_observed_takes_the_place_of_the_worst(V):
    made = bridle.policy("anytime", bridle.Ball(DIM, radius=0.25), window="auto", **({} if V is None else {"V": V}))
    known = {"lipschitz": 3.0, "diameter": 0.5, "convex": True, "feasible": np.zeros(DIM), "bound": 2.0, "first": 0.7}
    worst = moving_bound(1e4, lipschitz=3.0, diameter=0.5, first=0.7, V=V)
    assert made.bound(known, 1e4) == worst
    assert made.bound({**known, "observed_rounds": 1e4}, 1e4) == worst
    seen = {**known, "observed_regret": 5.0, "observed_rounds": 1e4}
    begun = 0.5 * 0.5 * 0.7 / 10.0 if V is None else 0.25
    assert made.bound(seen, 1e4) == worst._replace(regret=pytest.approx(sqrt(2e4) * 1.5 + begun + 5.0, rel=1e-12))
    assert made.bound({**seen, "observed_rounds": 9999.0}, 1e4) == worst
    assert made.bound({**seen, "observed_regret": 1e9}, 1e4) == worst
    assert made.bound({**known, "first": 0.0}, 1e4) == moving_bound(1e4, lipschitz=3.0, diameter=0.5, V=V)  # no cost had a slope
    steep = bridle.policy("anytime", bridle.Ball(DIM, radius=0.25), window="auto", lam=2.5)
    assert "theta = 1.25 must be below 1" in steep.bound(seen, 1e4).why


def test_pieces_are_counted_from_the_second_interval_on():
    windows = (10.0, 30.0, 90.0, np.inf)
    assert pieces(1e9, 1.0, windows) == 1.0
    assert pieces(10.0, 4.0, windows) == 4.0  # none is shorter
    assert pieces(11.0, 4.0, windows) == 1.0 + 3.0 * 3.0
    assert pieces(90.0, 4.0, windows) == 1.0 + 3.0 * 5.0
    assert pieces(91.0, 4.0, windows) == 1.0 + 3.0 * 5.0 + 1.0
    assert pieces(200.0, 2.0, windows) == 1.0 + 5.0 + 2.0
    assert (16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, np.inf) == WINDOWS


def test_defaults_of_the_bound_are_those_of_the_policy():
    t, G, D, M = 1e15, 3.0, 0.5, 0.7
    plain = moving_bound(t, lipschitz=G, diameter=D, first=M)
    assert plain.regret < G * D * t
    assert plain == moving_bound(t, lipschitz=G, diameter=D, first=M, lam=1.0, toll=4.0)  # lam = 1/(4 D^2) = 1
    assert moving_bound(t, lipschitz=G, diameter=D) == moving_bound(t, lipschitz=G, diameter=D, first=G)
    assert moving_bound(t, lipschitz=G, diameter=D) == moving_bound(t, lipschitz=G, diameter=D, first=5.0)  # no first is longer than all
    half = moving_bound(t, lipschitz=G, diameter=D, first=M, lam=0.5)
    assert half == moving_bound(t, lipschitz=G, diameter=D, first=M, lam=0.5, theta=0.25)
    assert "theta = 1 must be below 1" in moving_bound(t, lipschitz=G, diameter=D, theta=1.0).why
    assert moving_bound(t, lipschitz=G, diameter=D, theta=0.9).regret > plain.regret


def test_certified_regret_is_that_of_the_last_copy_and_of_the_mixture():
    mixture, rng = bridle.policy("anytime", bridle.Ball(DIM), window="auto", V=2.0).record, np.random.default_rng(5)
    state, charged = mixture.init(np.zeros(DIM)), 0.0
    for t in range(1, 41):
        x = mixture.decide(state)
        c, n = (v / np.linalg.norm(v) for v in rng.standard_normal((2, DIM)))
        g = float(n @ (x - 0.2)) + 0.1

        def far(y, x=x, n=n, g=g):
            return max(0.0, g + float(n @ (y - x)))

        charged += 4.0 * t**0.25 * (far(state.copies.x[-1]) - far(x))
        state = mixture.update(state, Feedback(x, float(c @ x), c, np.array([g]), n[None]))
    lost = charged + float(mixture.top.certified(state.top)) + 2e-9 * 2.0 * 40.0
    assert state.observed_regret == pytest.approx(lost, rel=1e-9)
    assert state.observed_rounds == 40.0
    S, Q = float(state.copies.S[-1, 0]), float(state.copies.Q[-1, 0])
    assert Q > 0.0
    assert mixture.certified_regret(state) == pytest.approx((sqrt(2.0) * 2.0 * sqrt(S) - 2.0 * expm1(Q / 16.0)) / 2.0 + lost, rel=1e-9)
    told = bridle.policy("anytime", bridle.Ball(DIM), window="auto", lam=0.05).record
    assert told.inner.squares_of(0.5)[0] == pytest.approx(2.25 * 8.0 * 0.05)
    assert told.inner.squares_of(0.5)[1] == 0.05

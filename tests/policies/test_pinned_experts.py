"""The updates of `experts` and `yi2021-dynamic` at fixed numbers: several runs at once, counted units, who is gone, and where it began."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.learners.adahedge import HedgeState
from bridle.policies._experts import ConstrainedExperts, experts_bound
from bridle.policies._yi2021_dynamic import count, several_steps_bound, steps_violation


def record_on(N: int, **told) -> ConstrainedExperts:
    return bridle.policy("experts", bridle.Simplex(N, mass=told.pop("mass", 1.0)), **told).record


def told(x: np.ndarray, df: np.ndarray, dg: np.ndarray, g: np.ndarray | None = None) -> Feedback:
    """Linear costs and constraints, whose values at x are g: 0 at 0 where that is not said."""
    return Feedback(x, (df * x).sum(axis=-1), df, (dg @ x[..., None])[..., 0] if g is None else g, dg)


def test_runs_at_once_are_the_runs_one_by_one():
    record, rng = record_on(3, V=2.0), np.random.default_rng(0)
    x1 = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    feedback = told(x1, rng.random((2, 3)), rng.random((2, 2, 3)), rng.random((2, 2)))
    together = record.update(record.init(x1), feedback)
    for i, x in enumerate(x1):
        alone = record.update(record.init(x), told(x, *(part[i] for part in (feedback.df, feedback.dg, feedback.g))))
        assert float(together.S[i, 0]) == pytest.approx(float(alone.S), rel=1e-14)
        assert float(together.Y[i, 0]) == pytest.approx(float(alone.Y), rel=1e-14)
        np.testing.assert_allclose(record.decide(together)[i], record.decide(alone), rtol=1e-14)


def test_below_is_the_largest_of_all_constraints_and_rounds():
    """At the corners: (2, -1, 0), half of 2 below; then (4, -1, 0), a quarter; then nothing. 1/2 stays."""
    record, x = record_on(3), np.full(3, 1 / 3)
    dg = np.array([[2.0, -1.0, 0.0], [4.0, -1.0, 0.0]])
    state = record.update(record.init(x), told(x, np.zeros(3), dg))
    assert float(state.below) == 0.5
    x = record.decide(state)
    assert float(record.update(state, told(x, np.zeros(3), 0.0 * dg)).below) == 0.5


def test_what_the_dropped_violate_counts_no_more():
    """Neither in S nor in Q, however much it is; where none is dropped it does."""
    x, c = np.array([0.5, 0.25, 0.25]), np.array([0.0, 2.0, 0.0])
    for drop, S, Q in ((True, 2.0, 0.25), (False, 6.0, None)):
        record = record_on(3, drop=drop)
        state = record.update(record.init(x), told(x, np.zeros(3), c[None]))
        state = record.update(state, told(record.decide(state), np.zeros(3), 3.0 * c[None]))
        assert float(state.S) == S
        assert Q is None or float(state.Q) == Q


def test_a_unit_of_exponent_divides_losses_costs_and_what_was_paid():
    """lam Q passes 64 ln 2, one unit, in this round: everything is divided by 2^64, and p is e^{lam Q - 64 ln 2}."""
    mass, unit, V = 2.5, 2.0**64, 0.7 * 2.0**64
    record = record_on(3, mass=mass, V=V, lam=1.0, drop=False)
    w, f, c = [0.5, 0.25, 0.25], np.array([0.3, 0.1, 0.9]), np.array([0.0, 1.0, 1.0])
    L, Delta = [0.2, 0.0, 0.4], 0.9  # after the division
    Z = sum(exp(-log(3) * each / Delta) / 3 for each in L)
    x = mass * np.array(w)
    before = HedgeState(x, unit * np.array(L), unit * Delta, unit * 0.8, log(Z), 0.0)
    state = record.init(x)._replace(learner=before, Q=64.0 * log(2.0) - 0.25, Y=3.0 * unit, S=1.0)
    state = record.update(state, told(x, f / mass, c[None] / mass))
    p = exp(0.25)  # of Q = 64 ln 2 + 0.25, as h = 1/2
    assert float(state.units) == 1.0
    assert float(state.Y) == pytest.approx(3.0 + 0.5 * p, rel=1e-12)
    loss = 0.7 * f + p * c
    after = [before + each for before, each in zip(L, loss, strict=True)]
    mix = -Delta / log(3) * log(sum(exp(-log(3) * each / Delta) / 3 for each in after) / Z)
    grown = Delta + float(np.dot(w, loss)) - mix
    raw = np.exp(-log(3) * np.array(after) / grown)
    assert float(state.learner.Delta) == pytest.approx(grown, rel=1e-9)
    np.testing.assert_allclose(record.decide(state), mass * raw / raw.sum(), rtol=1e-9)


def test_y_adds_up_what_violations_paid():
    """Y = sum p_s h_s over two rounds, with p = lam e^{lam Q}."""
    lam, x, c = 0.1, np.array([0.5, 0.5]), np.array([0.0, 0.4])
    record = record_on(2, lam=lam, V=1.0, drop=False)
    state = record.update(record.init(x), told(x, np.zeros(2), c[None]))
    x = record.decide(state)
    state = record.update(state, told(x, np.zeros(2), c[None]))
    assert float(state.Y) == pytest.approx(lam * exp(lam * 0.5) * 0.5 + lam * exp(lam * (0.5 + x[1])) * x[1], rel=1e-12)


def test_v_from_a_first_cost_that_is_all_but_flat_is_the_steepest():
    record, x = record_on(2), np.array([0.5, 0.5])
    assert float(record.update(record.init(x), told(x, np.array([0.0, 1e-90]), np.zeros((1, 2)))).V) == 1e80


def test_the_first_round_without_a_feasible_expert_is_the_one_that_is_told():
    record, x, c = record_on(2), np.array([0.5, 0.5]), np.array([[1.0, 1.0]])
    state = record.update(record.init(x), told(x, np.zeros(2), c))
    state = record.update(state, told(record.decide(state), np.zeros(2), c))
    assert float(state.infeasible) == 1.0
    some = state._replace(infeasible=np.array([[0.0], [3.0], [2.0]]))  # several runs
    assert record.alarm(some).text.startswith("after round 2 ")


def test_it_stays_where_it_began_if_nobody_there_is_gone():
    """While no cost has told experts apart: a third one that had no weight is dropped, and nothing moves."""
    record, x = record_on(3), np.array([0.7, 0.3, 0.0])
    state = record.update(record.init(x), told(x, np.zeros(3), np.array([[0.0, 0.0, 1.0]])))
    assert float(state.learner.Delta) == 0.0
    np.testing.assert_array_equal(record.decide(state), x)


def test_steps_of_runs_at_once_are_those_of_the_runs_one_by_one():
    """With two constraints, where every step of every expert is a small program."""
    record = bridle.policy("yi2021-dynamic", bridle.Box(-1.0, 1.0, dim=2), horizon=4, lipschitz=1.0, constraints=2).record
    x1 = np.array([[0.5, 0.4], [-0.3, 0.8]])
    df, dg = np.array([[0.6, -0.8], [1.0, 0.0]]), np.array([[[0.6, 0.8], [0.0, 1.0]], [[-1.0, 0.0], [0.8, 0.6]]])
    state = record.init(x1)
    assert state.top.x.shape == (2, count(4))
    together = record.update(state, told(x1, df, dg))
    for i, x in enumerate(x1):
        alone = record.update(record.init(x), told(x, df[i], dg[i]))
        np.testing.assert_allclose(together.experts.x[i], alone.experts.x, atol=1e-12)
        np.testing.assert_allclose(together.experts.q[i], alone.experts.q, atol=1e-12)
        np.testing.assert_array_equal(together.experts.t[i], alone.experts.t)
        np.testing.assert_array_equal(alone.experts.t, np.ones((count(4), 1)))
        np.testing.assert_allclose(together.top.L[i], alone.top.L, atol=1e-12)


def test_a_sweep_over_horizons_has_as_many_steps_as_the_longest_needs():
    record = bridle.policy("yi2021-dynamic", bridle.Ball(2), horizon=[10, 1000], lipschitz=1.0).record
    assert record.inner.alpha.shape == (2, count(1000), 1)
    assert len(record.mixed) == len(record.top.prior) == count(1000) == 7
    assert record.inner.modulus == 0.0


def test_what_is_taken_for_rounding_is_1e_12_of_mass_times_the_largest_slope():
    """mass 10 and slope -100: 1e-9. What is below that is no violation, what is above is one."""
    record, x = record_on(3, mass=10.0), np.array([0.0, 4.0, 6.0])
    for value, counted in ((5e-10, 0.0), (2e-9, 2e-9)):
        worst, _ = record.violations(told(x, np.zeros(3), np.array([[-100.0, 0.1 * value, 0.0]])))
        assert worst.tolist() == pytest.approx([0.0, counted, 0.0], rel=1e-12, abs=0.0)


def test_every_number_of_a_state_is_one_of_each_run():
    record, x1 = record_on(3, V=2.0, scale=0.5), np.full((4, 3), 1 / 3)
    state = record.init(x1)
    assert {np.shape(leaf)[0] for leaf in (*state[1:], *state.learner)} == {4}
    worst, below = record.violations(told(x1, np.zeros((4, 3)), np.zeros((4, 0, 3))))  # also in a round without constraints
    assert (worst.shape, below.shape) == ((4, 3), (4, 1))
    assert {float(state.V[0, 0]), float(state.S[0, 0])} == {2.0, 0.5}


FACTS = {"lipschitz": 1.0, "diameter": sqrt(2.0), "feasible": np.eye(4)[0], "spread": 0.5, "below": 0.0}


def test_regret_is_certified_while_no_units_are_counted():
    record, x = record_on(2, V=1.0), np.array([0.5, 0.5])
    state = record.update(record.init(x), told(x, np.array([0.0, 1.0]), np.zeros((1, 2))))
    assert record.certified_regret(state) == pytest.approx(0.5)
    assert record.certified_regret(state._replace(units=1.0)) is None


def test_the_bound_of_a_first_cost_that_is_all_but_flat_has_the_steepest_v():
    """R + (4/9) 1e-80: V is 1e80 at most, where the range of the costs is 1e-85; and in one round it is that range."""
    policy, flat = bridle.policy("experts", bridle.Simplex(4)), {**FACTS, "spread": 1e-85}
    assert policy.bound(flat, 1e9).regret == pytest.approx(sqrt((4.0 + log(4.0)) * 1e9) * 1e-85 + 4.0 / 9.0 * 1e-80, rel=1e-12, abs=0.0)
    assert policy.bound(FACTS, 1).regret == 0.5


def test_one_run_of_a_sweep_that_has_no_bound_leaves_none_to_the_others():
    policy = bridle.policy("experts", bridle.Simplex(4), lam=[0.05, 0.25 / (1.0 + log(4.0))])
    assert "too large for a proof" in experts_bound(policy, FACTS, 100).why
    assert "no feasible experts" in experts_bound(policy, {**FACTS, "below": np.array([0.0, 1.0])}, 100).why


def test_the_bounds_of_a_sweep_over_steps_are_those_of_its_runs():
    """Also after 2 rounds, the first after which queues count; and where one run was told too little, none has a bound."""
    facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2), "time_varying": False, "affine": True, "constraints": 1}
    swept = bridle.policy("yi2021-dynamic", bridle.Ball(2), horizon=700, lipschitz=[1.0, 1.7])
    for i, G in enumerate((1.0, 1.7)):
        alone = bridle.policy("yi2021-dynamic", bridle.Ball(2), horizon=700, lipschitz=G)
        assert swept.bound(facts, 700).regret[i] == pytest.approx(alone.bound(facts, 700).regret, rel=1e-12)
        queues = sum(2.0 * sqrt(a) * G * sqrt(2.0 + 0.5 * a + 4.0 / a) for a in (2.0**j * sqrt(8.0) / (G * sqrt(700.0)) for j in range(7)))
        for record, found in ((swept.record, i), (alone.record, ())):
            assert float(steps_violation(record, 1.0, 2.0, 2)[found]) == pytest.approx(queues, rel=1e-12)
    assert several_steps_bound(swept, {**facts, "lipschitz": 1.5}, 700).why == "the policy was told too small a Lipschitz constant"

"""What a policy proves of its own run, and the updates behind it, at fixed numbers: each worked out by hand beside it.

The formulas are those of the proofs in the policies' docstrings; states are made by playing few rounds whose numbers can be followed, or
put together field by field.
"""

from __future__ import annotations

import re
from math import exp, expm1, log, sqrt

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.learners.potentials import UNIT
from bridle.policies._sinha2024 import LyapunovState

BALL = bridle.Ball(2)


def feed(record, state, df=(0.0, 0.0), g=-1.0, dg=(0.0, 0.0), modulus=None):
    """The state after one round with one constraint."""
    x = np.asarray(record.decide(state), dtype=float)
    return record.update(state, Feedback(x, 0.0, np.array(df), np.array([g]), np.array([dg]), modulus))


def anytime(**settings):
    return bridle.policy("anytime", BALL, **settings).record


# --- anytime's own proof ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drift", [0.0, 3.0])
@pytest.mark.parametrize("told", [0.5, 2.0, 5.0])
def test_anytimes_own_regret(told, drift):
    """((W^2/W' + W')/sqrt(2) sqrt(S) - 2 (e^{lam Q} - 1))/V, W^2 = D^2 + 2DP and W' of the told D'; by hand for two rounds."""
    V = 2.0
    record = anytime(V=V, diameter=told, drift=drift)
    wide = sqrt(told**2 + 2 * told * drift)
    lam = 1 / (4 * wide**2)
    state = feed(record, record.init(np.zeros(2)), df=(0.3, 0.4))
    assert pytest.approx((V * 0.5) ** 2) == state.S
    dist = 0.2
    x = state.x
    state = feed(record, state, df=(0.0, 1.0), g=0.6, dg=(3.0, 0.0))  # 0.2 outside
    Q = dist**2
    v = np.array([2 * lam * exp(lam * Q) * dist, V])
    S = (V * 0.5) ** 2 + float(v @ v)
    assert pytest.approx((Q, S)) == (state.Q, state.S)
    factor = ((4.0 + 4.0 * drift) / wide + wide) / sqrt(2)
    assert record.certified_regret(state) == pytest.approx((factor * sqrt(S) - 2 * expm1(lam * Q)) / V)
    if told == 2.0 and drift == 0.0:
        assert factor == pytest.approx(sqrt(2) * 2.0)
    assert x.shape == (2,)


def test_anytimes_own_regret_in_its_other_forms():
    """c = 1/2 for self-bounding constraints (Y once), 1 for values; None with a modulus, a margin, or an exponent that ran over."""
    V, M = 2.0, 0.8
    record = anytime(V=V, form="self-bounding", smoothness=M)
    lam = 1 / (8 * 4.0 * M)
    state = feed(record, record.init(np.zeros(2)), df=(1.0, 0.0), g=0.5, dg=(0.0, 0.6))
    v = np.array([V, lam * exp(lam * 0.5) * 0.6])
    assert record.certified_regret(state) == pytest.approx((sqrt(2) * 2.0 * sqrt(float(v @ v)) - expm1(lam * 0.5)) / V)
    record = anytime(V=V, form="value", lipschitz=3.0)
    lam = 1 / (4 * 36.0)
    state = feed(record, record.init(np.zeros(2)), df=(1.0, 0.0), g=0.5, dg=(0.0, 0.6))
    v = np.array([V, 2 * 0.5 * lam * exp(lam * 0.25) * 0.6])
    assert record.certified_regret(state) == pytest.approx((sqrt(2) * 2.0 * sqrt(float(v @ v)) - 2 * expm1(lam * 0.25)) / V)
    for about in ({"modulus": 1.0}, {"margin": 0.1}):
        record = anytime(V=V, **about)
        assert record.certified_regret(record.init(np.zeros(2))) is None
    record = anytime(V=V)
    assert record.certified_regret(record.init(np.zeros(2))) == 0.0
    assert record.certified_regret(record.init(np.zeros(2))._replace(units=1.0)) is None


def test_anytimes_own_squares():
    """ln((1 + V (sqrt(2 squares) D + gain))/(1 - theta))/lam; theta = 2 D^2 lam."""
    V, D = 1.7, 2.0
    record = anytime(V=V)
    lam = 1 / (4 * D**2)
    theta = 2 * D**2 * lam
    state = record.init(np.zeros(2))
    for squares, gain in ((0.0, 0.0), (9.0, 4.0), (400.0, -10.0)):
        found = record.certified_squares(state, squares, gain)
        assert found == pytest.approx(log((1 + V * (sqrt(2 * squares) * D + gain)) / (1 - theta)) / lam)
    low = anytime(V=V, lam=0.02)
    theta = 2 * D**2 * 0.02
    assert low.certified_squares(state, 9.0, 4.0) == pytest.approx(log((1 + V * (sqrt(18.0) * D + 4.0)) / (1 - theta)) / 0.02)
    for about in ({"modulus": 1.0}, {"margin": 0.1}, {"form": "value", "lipschitz": 1.0}, {"lam": 0.125}, {"diameter": 1.9}):
        assert anytime(V=V, **about).certified_squares(state, 9.0, 4.0) is None
    assert anytime(V=V, lam=0.12).certified_squares(state, 9.0, 4.0) is not None


def test_anytimes_own_regret_is_attained_to_its_known_ratio():
    """One cost of length 1 from one end of the interval: regret D, and the proof says sqrt(2) D."""
    record = bridle.policy("anytime", bridle.Ball(1), V=1.0).record
    state = record.init(np.ones(1))
    state = record.update(state, Feedback(state.x, 1.0, np.ones(1), np.array([-1.0]), np.zeros((1, 1))))
    assert record.certified_regret(state) == pytest.approx(sqrt(2) * 2.0)


# --- anytime's updates that only its bounds would notice -------------------------------------------------------------------------------


def test_the_curved_step_of_anytime():
    """x - v / (V H + (2/D) sqrt(S)), S the squares of the constraint's part alone."""
    V, mu, D, told = 2.0, 0.5, 2.0, 2.5
    record = anytime(V=V, modulus=mu, halfspace=False, diameter=told)
    lam = 1 / (8 * told**2)
    state = feed(record, record.init(np.zeros(2)), df=(0.1, 0.0), g=0.3, dg=(0.0, 1.0))
    part = 2 * lam * exp(lam * 0.09) * 0.3
    step = 1 / (V * mu + 2 / told * part)
    assert state.x == pytest.approx(-step * np.array([V * 0.1, part]))
    assert pytest.approx((mu, part**2)) == (state.H, state.S)
    before = state.x
    state = feed(record, state, df=(0.0, 0.2))
    assert state.x == pytest.approx(before - np.array([0.0, V * 0.2]) / (2 * V * mu + 2 / told * part))
    assert BALL.diameter() == D


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_margin_counts_however_many_constraints_there_are(k):
    """The distance is g/|grad g| + r: a constraint met by less than r is violated, and the decision moves r inside."""
    r = 0.2
    record = anytime(V=1.0, margin=r)
    state = record.init(np.zeros(2))
    g, dg = np.full(k, -5.0), np.tile([0.0, 1.0], (k, 1))
    g[-1], dg[-1] = -0.05, [0.5, 0.0]  # met by 0.1
    state = record.update(state, Feedback(state.x, 0.0, np.zeros(2), g, dg))
    assert pytest.approx(0.1**2) == state.Q
    assert (*state.A[0], state.b[0]) == pytest.approx((1.0, 0.0, -0.1))
    assert state.x[0] <= -0.1
    flat = record.update(record.init(np.zeros(2)), Feedback(np.zeros(2), 0.0, np.zeros(2), np.full(k, -0.05), np.zeros((k, 2))))
    assert flat.Q == 0.0  # without a slope there is nothing to keep a distance from


def test_the_weight_of_the_cost_is_found_at_the_first_slope():
    record = anytime(diameter=2.5)
    state = feed(record, record.init(np.zeros(2)))
    assert state.V == 0.0
    state = feed(record, state, df=(0.3, 0.4))
    assert pytest.approx(10 / (2.5 * 0.5)) == state.V
    assert feed(record, state, df=(3.0, 4.0)).V == state.V


# --- Algorithm 1 -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("potential", "phi"), [("exponential", lambda q: expm1(0.3 * q)), ("quadratic", lambda q: q * q)])
def test_algorithm_1s_own_regret(potential, phi):
    """(c sqrt(S) - Phi(Q))/(beta V), c = (D^2/D' + D')/sqrt(2) of AdaGrad told D'."""
    about = {"lam": 0.3} if potential == "exponential" else {"potential": potential}
    record = bridle.policy("sinha2024", BALL, horizon=50, lipschitz=1.0, V=3.0, beta=0.5, diameter=3.0, **about).record
    state = feed(record, record.init(np.zeros(2)), df=(1.0, 0.0))
    state = feed(record, state, df=(0.0, 1.0), g=0.8, dg=(0.5, 0.0))
    Q = 0.5 * 0.8
    slope = 0.3 * exp(0.3 * Q) if potential == "exponential" else 2 * Q
    S = (3.0 * 0.5) ** 2 + (3.0 * 0.5) ** 2 + (slope * 0.5 * 0.5) ** 2
    c = (4.0 / 3.0 + 3.0) / sqrt(2)
    assert record.learner.squares(state.learner) == pytest.approx(S)
    assert record.certified_regret(state) == pytest.approx((c * sqrt(S) - phi(Q)) / (0.5 * 3.0))


def test_algorithm_1_proves_nothing_of_what_it_cannot():
    """No bound for a learner without one, for AdaGrad from another start, or after the exponent ran over."""
    for about in ({"learner": "ogd"}, {"learner": "ftpl"}, {"initial": 1.0}):
        record = bridle.policy("sinha2024", BALL, horizon=50, lipschitz=1.0, **about).record
        assert record.certified_regret(record.init(np.zeros(2))) is None
    record = bridle.policy("sinha2024", BALL, horizon=50, lipschitz=1.0, lam=0.5).record
    state = record.init(np.zeros(2))
    assert record.certified_regret(state) == 0.0
    assert record.certified_regret(LyapunovState(2.0 * UNIT * (1 - 1e-12), state.learner)) is not None
    assert record.certified_regret(LyapunovState(2.0 * UNIT, state.learner)) is None
    strong = bridle.policy("sinha2024-strong", BALL, horizon=50, lipschitz=1.0, modulus=1.0).record
    assert strong.certified_regret(strong.init(np.zeros(2))) is None


def test_algorithm_1_alarms_at_its_own_limit():
    """lam Q above 40 + ln(max(1, V)) contradicts the theorem."""
    for V, limit in ((1.0, 40.0), (0.01, 40.0), (exp(3.0), 43.0)):
        record = bridle.policy("sinha2024", BALL, horizon=50, lipschitz=1.0, lam=0.5, V=V).record
        state = record.init(np.zeros(2))
        assert record.alarm(state._replace(Q=2.0 * limit * (1 - 1e-9))) is None
        alarm = record.alarm(state._replace(Q=2.0 * limit * (1 + 1e-9)))
        assert alarm.voids_bound
        assert not alarm.infeasible
    quadratic = bridle.policy("sinha2024", BALL, horizon=50, lipschitz=1.0, potential="quadratic").record
    assert quadratic.alarm(quadratic.init(np.zeros(2))._replace(Q=1e9)) is None


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"learner": "ogd"}, "ConstantOGD has no proved regret bound"),
        ({"initial": 1.0}, "AdaGradFrom has no proved regret bound"),
        ({"lam": 0.5}, r"kappa\*lam\*sqrt\(t\) = .* must be below 1"),
        ({"potential": bridle.learners.potentials.Exponential(0.01)}, ""),
    ],
)
def test_algorithm_1_says_why_it_has_no_bound(about, words):
    facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2)}
    found = bridle.policy("sinha2024", BALL, horizon=900, lipschitz=1.0, **about).bound(facts, 900)
    if words:
        assert found.regret is None
        assert re.match(words, found.why), found.why
    else:
        assert found.why == ""


def test_a_potential_of_ones_own_has_no_bound():
    class Cubic:
        def value(self, q):
            return q**3

        def slope(self, q):
            return 3.0 * q * q

    facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2)}
    found = bridle.policy("sinha2024", BALL, horizon=900, lipschitz=1.0, potential=Cubic()).bound(facts, 900)
    assert found.why == "no bound is known for the potential Cubic"
    strong = bridle.policy("sinha2024-strong", BALL, horizon=900, lipschitz=1.0, modulus=1.0, potential=Cubic())
    assert strong.bound({**facts, "modulus": 1.0}, 900).why == "the learner or the potential was replaced"


# --- Polyak steps ----------------------------------------------------------------------------------------------------------------------


def test_polyak_steps_own_regret():
    """D^2/2 (sum of growth of 1/eta) + sum (eta |grad f|^2/2 - m^2/(2 eta)) + (rho/slater) D sum |grad f| + D sum of unseen |grad f|."""
    D, rho, slater, eta = 2.0, 0.2, 0.8, 0.01
    policy = bridle.policy("hutchinson2025", BALL, horizon=100, lipschitz=1.0, slater=slater, level=rho, step=eta, diameter=3.0)
    record = policy.record
    state = record.init(np.zeros(2))
    state = feed(record, state, df=(1.0, 0.0), g=-0.5, dg=(1.0, 0.0))
    state = feed(record, state, df=(0.0, -2.0), g=-0.1, dg=(0.0, 0.5))  # not below -rho: moved onto the halfspace
    y = 2.0 * eta
    move = (-0.1 + rho) / 0.5 + y
    state = feed(record, state, df=(0.0, 0.4), g=0.0)  # nothing seen: no step
    spent = 0.5 * eta * (1.0 + 4.0) - move**2 / (2 * eta)
    assert state.pull == pytest.approx(1 / eta)
    assert (state.spent, state.slopes, state.unseen) == pytest.approx((spent, 3.4, 0.4))
    assert record.certified_regret(state) == pytest.approx(D**2 / 2 / eta + spent + rho / slater * D * 3.4 + D * 0.4)

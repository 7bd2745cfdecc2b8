"""ML-Poly with own scales: its certificate for every corner and round, what Psi can be, and that absurd corners do no harm."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle import learners
from helpers.mixture_duels import CORNERS, OPPONENTS, SIZES, LossPicker, late_duel, mixture_duel

ROUNDING, TINY = 1e-12, 1e-300


@pytest.mark.parametrize("kind", OPPONENTS)
def test_regret_to_each_corner_is_within_its_own_bound(kind, record_property):
    shares = {"certificate": 0.0, "psi": 0.0}
    for K in CORNERS:
        for size, mass in SIZES:
            learner = bridle.MLPoly(bridle.Simplex(K, mass=mass), prior=None if mass == 1.0 else np.linspace(1.0, 3.0, K))
            pi, first = learner.prior, None
            for at in mixture_duel(learner, LossPicker(kind, K, K), size):
                slack, state = ROUNDING * at.paid + TINY, at.state
                assert np.abs(state.R - at.regrets).max() <= 1e-11 * at.paid
                assert learner.certified(state) == state.R.max()
                proved = learners.poly_regret(state.b, state.S, pi, state.Psi)
                assert np.all(state.R - slack <= proved), (K, at.t)
                shares["certificate"] = max(shares["certificate"], float((state.R / (proved + slack)).max()))
                potential = float((pi * np.maximum(state.R, 0.0) ** 2)[state.b > 0.0] @ (1.0 / (state.b**2 + state.S)[state.b > 0.0]))
                assert potential <= float(state.Psi) ** 2 * (1.0 + 1e-9)
                if first is None and state.b.max() > 0.0:
                    first = state.b
                if first is not None:
                    most = learners.poly_psi(first, state.b, state.S, pi)
                    assert state.Psi <= most
                    assert state.Psi >= at.before.Psi * (1.0 - 1e-9)  # r is rounded at the largest loss
                    shares["psi"] = max(shares["psi"], float(state.Psi) / most)
    for name, share in shares.items():
        record_property(name, float(share))


def test_the_certificate_is_attained():
    """One corner gains in the first round, and Psi is what it gained: the bound is an equality."""
    learner = bridle.MLPoly(bridle.Simplex(2))
    first = next(iter(mixture_duel(learner, LossPicker("leader", 2, 0))))
    state = first.state
    assert state.R.max() == pytest.approx(float(learners.poly_regret(state.b, state.S, learner.prior, state.Psi).max()), rel=1e-12)
    assert state.R.max() == 0.5


def test_the_weights_are_those_of_the_page():
    """R, S, b and the weights again from all losses at once; the floor of a scale is where it acts."""
    K, rng = 4, np.random.default_rng(2)
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    learner = bridle.MLPoly(bridle.Simplex(K), prior=prior)
    state, rows = learner.init(learner.domain.center()), []
    for t in range(50):
        w = learner.decide(state)
        losses = rng.standard_normal(K) * [1.0, 1e-9, 1.0, 10.0]
        if t < 5:
            losses[:] = [0.0, 0.0, 1e-3, 0.0]
        rows.append(w @ losses - losses)
        state = learner.step(state, losses)
        r = np.array(rows)
        b = np.abs(r).max(axis=0)
        b = np.maximum(b, 1e-6 * b.max())
        S, R = (r**2).sum(axis=0), r.sum(axis=0)
        np.testing.assert_allclose(state.R, R, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.b, b, rtol=1e-12)
        np.testing.assert_allclose(state.S, S, rtol=1e-12)
        expected = prior / (b**2 + S) * np.maximum(state.R, 0.0)
        np.testing.assert_allclose(
            learner.decide(state), expected / expected.sum() if expected.any() else learner.domain.center(), rtol=1e-9
        )


def test_with_no_regret_it_plays_where_it_started():
    learner = bridle.MLPoly(bridle.Simplex(3))
    x1 = np.array([0.0, 1.0, 0.0])
    state = learner.init(x1)
    for _ in range(3):
        state = learner.step(state, np.array([1.0, 0.0, 2.0]))  # the start is best
        np.testing.assert_array_equal(learner.decide(state), x1)
    state = learner.step(state, np.array([0.0, 100.0, 200.0]))
    np.testing.assert_array_equal(learner.decide(state), [1.0, 0.0, 0.0])


@pytest.mark.parametrize("delay", [1, 20])
@pytest.mark.parametrize("kind", ["noise", "blocks", "uneven", "exploding"])
def test_late_losses_are_charged_to_what_was_played(kind, delay):
    learner = bridle.MLPoly(bridle.Simplex(5))
    for state, regrets, paid in late_duel(learner, LossPicker(kind, 5, 2), delay):
        np.testing.assert_allclose(state.R, regrets, rtol=0.0, atol=1e-11 * paid)
        assert (regrets <= learners.poly_regret(state.b, state.S, learner.prior, state.Psi) + ROUNDING * paid).all()


def scaled_corner(times: float, own: bool) -> float:
    """What the mixture pays with one corner whose losses are noise so many times as large; with the published shared scale too."""
    K, T, rng = 6, 2000, np.random.default_rng(0)
    learner = bridle.MLPoly(bridle.Simplex(K))
    state, paid = learner.init(learner.domain.center()), 0.0
    for _ in range(T):
        losses = rng.random(K) + np.array([0.0, 0.2, 0.3, 0.3, 0.4, 0.3])
        losses[-1] = 0.5 + times * (rng.random() - 0.45)
        x = learner.decide(state)
        if not own:
            weight = np.maximum(state.R, 0.0) / (state.b.max() ** 2 + state.S) if state.b.any() else 1.0 + 0.0 * x
            x = weight / weight.sum() if weight.any() else x
        paid += float(x @ losses)
        state = learner.step_at(state, losses, x)
    return paid / T


def test_a_corner_of_absurd_size_does_little_harm_with_scales_of_their_own():
    plain, absurd, shared = scaled_corner(1.0, True), scaled_corner(100.0, True), scaled_corner(100.0, False)
    assert plain == pytest.approx(0.5, abs=0.02)
    assert absurd < shared


def test_the_bounds_at_fixed_numbers():
    np.testing.assert_allclose(learners.poly_regret([1.0, 2.0], [3.0, 5.0], [0.25, 0.75], 1.5), [6.0, sqrt(12.0) * 1.5])
    spread = 0.25 * log((4.0**2 + 20.0) / 0.5**2) + 0.75 * log((3.0**2 + 7.0) / 1.0)
    expected = sqrt(4.0 / log(5.0) * spread) + (1.0 + 3.0 + log(3.0) / log(2.0)) / sqrt(2.0)
    assert learners.poly_psi([0.5, 1.0], [4.0, 3.0], [20.0, 7.0], [0.25, 0.75]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("mass", [1.0, 3.0])
def test_the_policys_bound_is_the_theorem_with_the_psi_of_the_game(mass):
    policy = bridle.policy("mlpoly", bridle.Simplex(5, mass=mass))
    G, D, t = 1.7, mass * sqrt(2.0), 400
    facts = {"lipschitz": G, "diameter": D, "feasible": policy.domain.center()}
    assert "Psi" in policy.bound(facts, t).why
    assert policy.bound({**facts, "Psi": 0.3}, t).regret == pytest.approx(0.3 * G * D * sqrt(5.0 * (1.0 + t)), rel=1e-12)
    assert policy.bound({**facts, "Psi": 1e9}, t).regret == pytest.approx(G * D * t)
    grouped = bridle.policy("mlpoly", bridle.Product(bridle.Simplex(5), bridle.Simplex(5)))
    assert "several mixtures" in grouped.bound({**facts, "Psi": 0.3, "diameter": 2.0, "feasible": None}, t).why

"""Algorithm 1 with AdaHedge: regret against mixtures that keep the limits, violation, and the certificate, in every round."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.policies._sinha2024 import mixture_bound, reduction_bound
from helpers.limited_mixtures import KINDS, LimitedStream, limited_rounds

T = 250


@pytest.mark.parametrize("kind", KINDS)
def test_regret_and_violation_are_within_the_bound_in_every_round(kind, record_property):
    shares = {"regret": 0.0, "ccv": 0.0, "certificate": 0.0}
    for K, ranges in ((2, 1e-6), (6, 1.0), (30, 1e6)):
        policy = bridle.policy("sinha2024", bridle.Simplex(K), horizon=T, lipschitz=ranges / sqrt(2.0), learner="adahedge").record
        stream, state = LimitedStream(kind, K, 1, K), policy.init(policy.domain.center())
        behind, ccv = np.zeros(3), 0.0
        for t, x, (cost, limit, level) in limited_rounds(stream, lambda: policy.decide(state), T):  # noqa: B023
            cost, limit, level = ranges * cost, ranges * limit, ranges * level
            behind += float(cost @ x) - stream.kept @ cost
            g = float(limit @ x) - level
            ccv += max(g, 0.0)
            state = policy.update(state, Feedback(x, float(cost @ x), cost, np.array([g]), limit[None]))
            bound, certified = mixture_bound(K, ranges, t, T), policy.certified_regret(state)
            assert behind.max() <= bound.regret
            assert ccv <= bound.ccv
            assert behind.max() <= certified + 1e-9 * ranges * t
            shares["regret"] = max(shares["regret"], behind.max() / bound.regret)
            shares["ccv"] = max(shares["ccv"], ccv / bound.ccv)
            if certified > 1e-6 * ranges:  # below, a share means nothing
                shares["certificate"] = max(shares["certificate"], behind.max() / certified)
    for name, share in shares.items():
        record_property(name, float(share))


@pytest.mark.parametrize("K", [2, 7, 128])
def test_the_bound_is_that_of_the_reduction_with_ranges(K):
    T, t, ranges, c = 40_000_000, 31_000_000, 1.7, sqrt(4.0 + log(K))
    policy = bridle.policy("sinha2024", bridle.Simplex(K), horizon=T, lipschitz=ranges / sqrt(2.0), learner="adahedge")
    assert policy.record.beta == pytest.approx(1.0 / (sqrt(2.0) * c * ranges), rel=1e-12)
    assert policy.record.potential.lam == pytest.approx(0.5 / sqrt(T))
    regret = c * ranges * sqrt(t) * (1.0 + 0.5 / sqrt(T))
    ccv = 2.0 * sqrt(2.0) * c * ranges * sqrt(T) * log((1.0 + sqrt(t / 2.0) + t / (sqrt(2.0) * c)) / (1.0 - sqrt(t / (8.0 * T))))
    facts = {"lipschitz": ranges / sqrt(2.0), "diameter": sqrt(2.0), "feasible": policy.domain.center()}
    for bound in (mixture_bound(K, ranges, t, T), reduction_bound(policy.record, facts, t), policy.bound(facts, t)):
        assert bound.regret == pytest.approx(regret, rel=1e-12)
        assert bound.ccv == pytest.approx(ccv, rel=1e-9)
    few = mixture_bound(K, ranges, 3, T)
    assert few.regret == few.ccv == pytest.approx(3.0 * ranges)


def test_the_certificate_is_what_the_learner_has_proved_less_the_potential():
    policy = bridle.policy("sinha2024", bridle.Simplex(3), horizon=50, lipschitz=1.0, learner="adahedge", V=2.0).record
    state = policy.init(np.array([1.0, 0.0, 0.0]))
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = policy.decide(state)
        state = policy.update(state, Feedback(x, 0.0, rng.random(3), np.array([float(x[0])]), np.eye(3)[:1]))
    hedge = state.learner
    proved = hedge.Delta + hedge.before - (np.exp(policy.potential.lam * state.Q) - 1.0)
    assert policy.certified_regret(state) == pytest.approx(proved / (2.0 * policy.beta), rel=1e-12)


@pytest.mark.parametrize("learner", ["mlpoly", "track"])
def test_the_other_mixtures_play_under_it_too(learner):
    """ML-Poly without a theorem, Track with its own constant."""
    policy = bridle.policy("sinha2024", bridle.Simplex(4), horizon=100, lipschitz=1.0, learner=learner)
    session = bridle.Session(policy)
    for t in range(100):
        x = session.decide()
        session.observe(f=float(x[0]), df=np.eye(4)[0], g=float(x[1 + t % 2]) - 0.1, dg=np.eye(4)[1 + t % 2])
    facts = {"lipschitz": 1.0, "diameter": sqrt(2.0), "feasible": np.array([0.0, 0.0, 0.0, 1.0])}
    bound = policy.bound(facts, 100)
    if learner == "mlpoly":
        assert "MLPolyLearner has no proved regret bound of the form c*sqrt(sum of squared gradients)" in bound.why
    else:
        c = sqrt(2.0) * (sqrt(4.0 + log(4.0)) + sqrt(4.0 + log(9.0)))
        assert bound.regret == pytest.approx(min(c * sqrt(100.0) * (1.0 + 0.05), 100.0 * sqrt(2.0)), rel=1e-9)
    assert session.decide()[3] > 0.5


def test_an_unknown_learner_is_refused_with_the_names_there_are():
    with pytest.raises(bridle.InputError, match="known: adaftrl, adagrad, adahedge, ftpl, mlpoly, ogd, track"):
        bridle.policy("sinha2024", bridle.Simplex(3), horizon=10, lipschitz=1.0, learner="weights")
    with pytest.raises(bridle.InputError, match="domain must be a simplex for adahedge"):
        bridle.policy("sinha2024", bridle.Ball(3), horizon=10, lipschitz=1.0, learner="adahedge")

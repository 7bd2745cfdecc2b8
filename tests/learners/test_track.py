"""Track: against sequences of corners that switch, in every round; the copies' own certificates; against one corner as AdaHedge does."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle import learners, records
from bridle.learners.track import COPIES, share_rates, switching
from helpers.mixture_duels import OPPONENTS, SIZES, LossPicker, mixture_duel

ROUNDING, TINY = 1e-12, 1e-300


def best_path(losses: np.ndarray, switches: int) -> float:
    """The least that a sequence of corners with at most so many switches has paid, by dynamic programming over rounds."""
    K = losses.shape[1]
    paid = np.full((switches + 1, K), np.inf)
    paid[:, :] = 0.0
    for row in losses:
        arrive = np.minimum(paid, np.vstack([np.full(K, np.inf), np.repeat(paid[:-1].min(axis=1, keepdims=True), K, axis=1)]))
        paid = arrive + row
    return float(paid.min())


def test_the_best_path_is_the_least_of_all():
    """By hand: four rounds, two corners, every sequence tried."""
    losses = np.random.default_rng(0).random((6, 3))
    paths = [np.array(np.unravel_index(i, (3,) * 6)) for i in range(3**6)]
    for switches in range(4):
        allowed = [p for p in paths if np.count_nonzero(np.diff(p)) <= switches]
        assert best_path(losses, switches) == pytest.approx(min(losses[np.arange(6), p].sum() for p in allowed))


@pytest.mark.parametrize("kind", OPPONENTS)
def test_dynamic_regret_is_within_the_bounds(kind, record_property):
    share = {"track": 0.0, "copies": 0.0, "static": 0.0}
    for K, (size, mass) in zip((2, 5, 20), SIZES, strict=True):
        learner = bridle.Track(bridle.Simplex(K, mass=mass))
        rates, rows, mine, copies = share_rates(K), [], [], []
        for at in mixture_duel(learner, LossPicker(kind, K, K), size):
            shares = learner.played(at.before.x, at.before.w, at.before.Delta) / mass
            rows.append(at.losses - at.losses.min())
            mine.append(at.w @ rows[-1])
            copies.append(shares @ rows[-1])
            slack, state = ROUNDING * at.paid + TINY, at.state
            assert learner.squares(state) == pytest.approx(at.squared_ranges / (2.0 * mass**2), rel=1e-9)
            certificate = learner.certified(state)
            assert at.regrets.max() <= certificate + slack
            assert certificate <= learner.adaptivity(sqrt(2.0)) * sqrt(0.5 * at.squared_ranges) + slack
            assert at.regrets.max() <= learners.track_regret(K, at.t, at.squared_ranges) + slack
            share["static"] = max(share["static"], at.regrets.max() / (certificate + slack))
            if at.t % 10 and at.t > 3:  # a program over all rounds so far
                continue
            for P in (0, 1, 4, 20):
                path = best_path(np.array(rows), P)
                regret = sum(mine) - path
                bound = learners.track_regret(K, at.t, at.squared_ranges, P)
                assert regret <= bound + slack, (K, P, at.t)
                share["track"] = max(share["track"], regret / (bound + slack))
                for j in range(COPIES):
                    proved = learners.share_regret(rates[j], float(state.Delta[j, 0]), float(state.before[j, 0]), K, at.t, P)
                    regret = sum(row[j] for row in copies) - path
                    assert regret <= proved + slack, (K, P, j, at.t)
                    share["copies"] = max(share["copies"], regret / (proved + slack))
    for name, value in share.items():
        record_property(name, float(value))


def test_the_copies_certificate_is_attained():
    """From a corner that loses in round 1: regret 1, and Delta is that."""
    learner = bridle.Track(bridle.Simplex(2))
    at = next(iter(mixture_duel(learner, LossPicker("leader", 2, 0), x1=np.array([1.0, 0.0]))))
    assert at.regrets.max() == 1.0
    assert learners.share_regret(3.0, float(at.state.Delta[4, 0]), float(at.state.before[4, 0]), 2, 1) == 1.0


def test_it_follows_switches_that_adahedge_does_not():
    """Ten corners, the best of which is 0.3 better and changes every 200 rounds."""
    K, T, rng = 10, 1200, np.random.default_rng(1)
    losses = rng.random((T, K))
    best = (np.arange(T) // 200) % K
    losses[np.arange(T), best] -= 0.3
    paid = {}
    for make in (bridle.Track, bridle.AdaHedge):
        learner = make(bridle.Simplex(K))
        paid[make] = sum(float(at.w @ at.losses) for at in mixture_duel(learner, lambda w, t: losses[t - 1], rounds=T))
    dynamic = paid[bridle.Track] - losses[np.arange(T), best].sum()
    assert dynamic < 0.4 * (paid[bridle.AdaHedge] - losses[np.arange(T), best].sum())
    assert dynamic <= learners.track_regret(K, T, float((np.ptp(losses, axis=1) ** 2).sum()), 5)


def test_its_copies_share_as_the_page_says():
    """The weights of one copy again from its own losses, with Delta in another arithmetic."""
    K, rng = 4, np.random.default_rng(3)
    learner = bridle.Track(bridle.Simplex(K))
    state, j = learner.init(learner.domain.center()), 2
    c, w, Delta = 16.0 * log(K), np.full(K, np.longdouble(1.0) / K), np.longdouble(0.0)
    for t in range(1, 60):
        losses = rng.standard_normal(K) * (1.0 + t % 3)
        state = learner.step(state, losses)
        shifted = losses - losses.min()
        if Delta > 0:
            e = np.exp(-c * shifted / Delta)
            delta = w @ shifted + np.log(w @ e) * Delta / c
            w = w * e / (w @ e)
        else:
            delta = w @ shifted
        Delta, a = Delta + delta, 1.0 / (t + 1.0)
        w = (1.0 - a) * w + a / K
        np.testing.assert_allclose(state.w[j], w.astype(float), rtol=1e-10)
        assert float(state.Delta[j, 0]) == pytest.approx(float(Delta), rel=1e-11)
        assert (state.w >= 1.0 / (K * (t + 1.0)) * (1.0 - 1e-12)).all()


@pytest.mark.parametrize("lead", [(), (3,)])
def test_several_runs_and_mixtures_are_each_on_its_own(lead):
    K, groups, rng = 3, 2, np.random.default_rng(5)
    one, both = bridle.Track(bridle.Simplex(K)), bridle.Track(bridle.Product(*[bridle.Simplex(K)] * groups))
    starts = rng.dirichlet(np.ones(K), (*lead, groups))
    together = both.init(starts.reshape(*lead, groups * K))
    apart = [[one.init(start) for start in row] for row in starts.reshape(-1, groups, K)]
    for _ in range(25):
        p = rng.standard_normal((*lead, groups, K))
        factor = 0.7 if not lead else rng.uniform(0.5, 2.0, (*lead, 1))
        together = both.step(both.rescale(together, factor), p.reshape(*lead, groups * K))
        for r, row in enumerate(apart):
            for i in range(groups):
                scale = factor if not lead else float(factor[r, 0])
                row[i] = one.step(one.rescale(row[i], scale), p.reshape(-1, groups, K)[r, i])
        found = both.decide(together).reshape(-1, groups, K)
        np.testing.assert_allclose(found, [[one.decide(state) for state in row] for row in apart], rtol=1e-11, atol=1e-13)
    assert not hasattr(both, "step_at")


def test_its_state_rescales_and_ignores_offsets():
    learner, rng = bridle.Track(bridle.Simplex(4)), np.random.default_rng(0)
    plain = scaled = moved = learner.init(learner.domain.center())
    for t in range(40):
        losses = rng.integers(-64, 64, 4) / 64.0
        scaled = learner.rescale(scaled, 2.0**20) if t == 10 else scaled
        plain, scaled = learner.step(plain, losses), learner.step(scaled, (2.0**20 if t >= 10 else 1.0) * losses)
        moved = learner.step(moved, losses + 512.0)
        for name, leaf in records.leaves(plain).items():
            np.testing.assert_array_equal(leaf, records.leaves(moved)[name], err_msg=name)
        np.testing.assert_array_equal(learner.decide(plain), learner.decide(scaled))


def test_one_corner_and_equal_losses_leave_the_start():
    for K in (1, 3):
        learner = bridle.Track(bridle.Simplex(K, mass=2.0))
        state = learner.init(2.0 * np.eye(K)[0])
        for value in (3.0, -1e6):
            state = learner.step(state, np.full(K, value))
            np.testing.assert_array_equal(learner.decide(state), 2.0 * np.eye(K)[0])


def test_the_bounds_at_fixed_numbers():
    K, t, P = 7, 90, 3
    C = 4.0 * log(630.0) + log(90.0)
    assert switching(K, t, P) == pytest.approx(C, rel=1e-14)
    c = log(7.0) * 4.0 ** np.arange(8)
    np.testing.assert_allclose(share_rates(7), c, rtol=1e-14)
    best = min((1.0 + C / each) * sqrt(1.0 + each / 4.0) for each in c)
    assert learners.track_regret(K, t, 5.0, P) == pytest.approx((best + sqrt(4.0 + log(9.0))) * sqrt(5.0), rel=1e-12)
    assert best <= 2.0 * sqrt(1.0 + C)
    static = (sqrt(4.0 + log(7.0)) + sqrt(4.0 + log(9.0))) * sqrt(5.0)
    assert learners.track_regret(K, t, 5.0) == pytest.approx(static, rel=1e-12)
    for few in (1, 2):  # ln 2 at least
        assert learners.track_regret(few, t, 5.0) == pytest.approx((sqrt(4.0 + log(2.0)) + sqrt(4.0 + log(9.0))) * sqrt(5.0), rel=1e-12)
    assert learners.share_regret(3.0, 2.0, 1.5, K, t, P) == pytest.approx(2.0 + 0.5 * C, rel=1e-12)
    simplex = bridle.Simplex(7, mass=3.0)
    learner = bridle.Track(simplex)
    assert learner.adaptivity(simplex.diameter()) == pytest.approx(3.0 * sqrt(2.0) * static / sqrt(5.0), rel=1e-12)
    policy = bridle.policy("track", simplex)
    facts = {"lipschitz": 0.1, "diameter": simplex.diameter(), "feasible": simplex.center()}
    assert policy.bound(facts, 1000).regret == pytest.approx(0.1 * 3.0 * sqrt(2.0) * static / sqrt(5.0) * sqrt(1000.0), rel=1e-12)

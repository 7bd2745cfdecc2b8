"""PlayedHedge: its certificate and bounds in every round, against opponents that see the weights; where they are attained; units."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from bridle import learners
from bridle.core import InputError
from helpers.mixture_duels import OPPONENTS, LossPicker

ROUNDS, SWITCHES = 90, 3


def duel(K, kind, size=1.0, curved=False, rounds=ROUNDS):
    """Every round of a duel: the hedge, the state after it, what was paid, the least with P switches, the sum and largest of the ranges.

    Losses are linear in the weights; where `curved`, what is paid lies below that, as a convex loss of the mean does.
    """
    hedge, opponent = learners.PlayedHedge(K), LossPicker(kind, K, K)
    state, rng, least = hedge.init(), np.random.default_rng(1), np.zeros((SWITCHES + 1, K), dtype=np.longdouble)
    paid, squares, largest, sizes = np.longdouble(0.0), 0.0, 0.0, 0.0
    for t in range(1, rounds + 1):
        v = hedge.decide(state)
        assert v.min() >= (1.0 - 1e-12) / (K * t)
        assert v.sum() == pytest.approx(1.0, rel=1e-12)
        losses = size * opponent(v, t)
        cost = float(v @ losses) - (rng.random() * float(np.ptp(losses)) if curved else 0.0)
        state = hedge.learn(state, losses, cost)
        for P in range(SWITCHES, 0, -1):
            least[P] = np.minimum(least[P], least[P - 1].min())
        least, paid = least + losses, paid + cost
        s = float(np.ptp(losses))
        squares, largest, sizes = squares + s * s, max(largest, s), sizes + float(np.abs(losses).max())
        yield hedge, state, t, [float(paid - row.min()) for row in least], squares, largest, 1e-12 * sizes


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("kind", OPPONENTS)
def test_regret_and_gap_are_within_their_bounds_in_every_round(kind, curved):
    for K, size in ((1, 1.0), (2, 1e6), (7, 1e-6), (40, 1e6 if curved else 1e-6)):
        for hedge, state, t, regrets, squares, largest, slack in duel(K, kind, size, curved):
            assert regrets[0] <= hedge.certified(state) + slack, (K, t)
            for P, regret in enumerate(regrets):
                assert regret <= learners.played_regret(K, t, state.Delta, state.before, P) + slack, (K, t, P)
            assert hedge.certified(state) == pytest.approx(learners.played_regret(K, t, state.Delta, state.before))
            assert state.before <= state.Delta <= learners.played_gap(K, squares, largest) + slack


def test_the_bound_on_regret_is_attained_in_each_of_its_terms():
    """Delta = 1 from round 1 on; then one expert costs nothing and the others much: what is paid is the mix loss, which is the worst."""
    K, rounds, far = 400, 2000, 1e9
    hedge = learners.PlayedHedge(K)
    c, state, paid, kept = log(K), hedge.learn(hedge.init(), np.zeros(K), 1.0), 1.0, 0
    for t in range(2, rounds + 1):
        kept = 0 if t < rounds else 1  # at the very end another expert is best
        mixed = log(1.0 / state.v[kept]) / c
        state, paid = hedge.learn(state, far * (1.0 - np.eye(K)[kept]), mixed), paid + mixed
        assert state.Delta == pytest.approx(1.0, abs=1e-9)
        bound = learners.played_regret(K, t, state.Delta, state.before, switches=kept)
        assert paid <= bound
        assert t < rounds - 1 or paid >= 0.95 * bound


def test_the_gap_comes_near_its_bound():
    """Two experts of which the heavier loses: Delta grows by what Hoeffding's lemma has, up to its higher orders."""
    *_, (_, state, _, _, squares, largest, _) = duel(2, "leader", rounds=2000)
    assert 0.9 * (learners.played_gap(2, squares, largest) - largest) <= state.Delta


def test_bounds_at_fixed_numbers():
    assert learners.played_regret(5, 40.0, 3.0, 2.5, 2.0) == pytest.approx(3.0 + 2.5 * (1.0 + np.log(40.0 * 200.0**2) / np.log(5.0)))
    assert learners.played_regret(5, 40.0, 3.0, 2.5, c=0.7) == pytest.approx(3.0 + 2.5 * np.log(200.0) / 0.7)
    assert learners.played_gap(9, 1e4, 2.0) == pytest.approx(2.0 + 50.0 * sqrt(np.log(9.0)))
    assert learners.played_gap(9, 4.0, 2.0) == pytest.approx(2.0 * sqrt(1.0 + np.log(9.0) / 4.0))
    assert learners.played_gap(1, 1.0, 1.0) == pytest.approx(sqrt(1.0 + np.log(2.0) / 4.0))


def test_weights_and_mix_losses_are_those_of_the_page():
    """Everything again with plain powers and logarithms in longer arithmetic, from the page's first form."""
    K, rng = 5, np.random.default_rng(3)
    hedge = learners.PlayedHedge(K)
    state, v, Delta, c = hedge.init(), np.full(K, np.longdouble(1.0) / K), np.longdouble(0.0), np.log(np.longdouble(K))
    for t in range(1, 80):
        losses = rng.standard_normal(K) * (1.0 + t % 4) if t > 3 else np.full(K, 2.0)
        paid = float(v @ losses) - 0.1 * (t > 3) * rng.random()
        state = hedge.learn(state, losses, paid)
        if Delta > 0:
            eta = c / Delta
            kept = v * np.exp(-eta * losses)
            mix = -np.log(kept.sum()) / eta
            after = Delta + max(paid - mix, np.longdouble(0.0))
            kept = (kept / kept.sum()) ** (Delta / after)
        else:
            after = Delta + max(paid - losses.min(), np.longdouble(0.0))
            kept = np.exp(-c / after * losses) if after > 0 else v
        v, Delta = (1.0 - np.longdouble(1.0) / (t + 1)) * kept / kept.sum() + np.longdouble(1.0) / (t + 1) / K, after
        np.testing.assert_allclose(state.v, v.astype(float), rtol=1e-10)
        assert float(state.Delta) == pytest.approx(float(Delta), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("factor", [1e-6, 1e6, 1e-250, 1e250])
def test_the_unit_of_losses_does_not_matter(factor):
    hedge, rng = learners.PlayedHedge(7), np.random.default_rng(0)
    one, other = hedge.init(), hedge.init()
    for _ in range(300):
        losses = rng.exponential(size=7)
        paid = 0.9 * float(one.v @ losses)
        one, other = hedge.learn(one, losses, paid), hedge.learn(other, factor * losses, factor * paid)
        np.testing.assert_allclose(one.v, other.v, rtol=1e-10)


def test_a_round_that_counts_for_nothing_changes_nothing():
    hedge, rng = learners.PlayedHedge(4), np.random.default_rng(0)
    state = hedge.init()
    for _ in range(20):
        state = hedge.learn(state, rng.random(4), 0.6)
    after = hedge.learn(state, np.zeros(4), 0.0, counts=0.0)
    np.testing.assert_allclose(after.v, state.v, rtol=1e-14)
    assert (after.Delta, after.t) == (state.Delta, state.t)


def test_experts_that_are_alike_stay_alike():
    hedge, rng = learners.PlayedHedge(5), np.random.default_rng(0)
    state = hedge.init()
    for _ in range(50):
        loss = rng.standard_normal()
        state = hedge.learn(state, np.full(5, loss), loss)
        np.testing.assert_allclose(state.v, 0.2, rtol=1e-14)
    assert state.Delta == 0.0
    assert hedge.certified(state) == 0.0


def test_after_a_long_calm_it_changes_its_mind_within_few_rounds():
    hedge = learners.PlayedHedge(2)
    state = hedge.learn(hedge.init(), np.array([0.0, 1.0]), 0.5)
    for _ in range(6_000):
        state = hedge.learn(state, np.array([0.0, 1.0]), float(state.v[1]))
    rounds = 0
    while state.v[1] < 0.9:
        state, rounds = hedge.learn(state, np.array([1.0, 0.0]), float(state.v[0])), rounds + 1
    assert rounds < 100
    with pytest.raises(InputError, match="experts must be 1 or above, not 0"):
        learners.PlayedHedge(0)

"""AdaHedge: its certificate and its bound in every round, against opponents that see the weights; units, offsets, priors and starts."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle import learners, records
from helpers.mixture_duels import CORNERS, OPPONENTS, SIZES, LossPicker, late_duel, mixture_duel

ROUNDING, TINY = 1e-12, 1e-300


@pytest.mark.parametrize("kind", OPPONENTS)
def test_regret_is_within_certificate_and_bound_in_every_round(kind, record_property):
    shares = {"certificate": 0.0, "bound": 0.0, "variance": 0.0, "Delta": 0.0}
    for K in CORNERS:
        for size, mass in SIZES:
            learner = bridle.AdaHedge(bridle.Simplex(K, mass=mass))
            for at in mixture_duel(learner, LossPicker(kind, K, K), size):
                regret, slack = at.regrets.max(), ROUNDING * at.paid + TINY
                values = {
                    "certificate": learner.certified(at.state),
                    "bound": learners.hedge_regret(K, at.squared_ranges),
                    "variance": learners.hedge_variance_regret(K, at.variances, at.largest),
                }
                for name, value in values.items():
                    assert regret <= value + slack, (name, K, at.t)
                    shares[name] = max(shares[name], regret / (value + slack))
                Delta = sqrt(1.0 + log(max(K, 2)) / 4.0) * sqrt(at.squared_ranges)
                assert at.before.Delta <= at.state.Delta <= Delta + slack
                shares["Delta"] = max(shares["Delta"], float(at.state.Delta) / (Delta + slack))
                assert learner.squares(at.state) == pytest.approx(at.squared_ranges / (2.0 * mass**2), rel=1e-9)
    for name, share in shares.items():
        record_property(name, float(share))


def test_where_certificate_and_bound_are_attained():
    """From a corner that loses: regret 1 = Delta in round 1, the certificate, and the bounds but for the factors that later rounds need."""
    learner = bridle.AdaHedge(bridle.Simplex(2))
    first = next(iter(mixture_duel(learner, LossPicker("leader", 2, 0), x1=np.array([1.0, 0.0]))))
    assert first.regrets.max() == first.state.Delta == learner.certified(first.state) == 1.0
    assert learners.hedge_regret(2, first.squared_ranges) == pytest.approx(sqrt(4.0 + log(2.0)))
    middle = next(iter(mixture_duel(learner, LossPicker("leader", 2, 0))))
    assert middle.regrets.max() == pytest.approx(0.5) == pytest.approx(float(learner.certified(middle.state)))


def test_the_mix_losses_and_weights_are_those_of_the_page():
    """Everything again with logarithms of sums in another arithmetic, from all losses and not from the state."""
    K, rng = 5, np.random.default_rng(3)
    prior = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    learner = bridle.AdaHedge(bridle.Simplex(K), prior=2.0 * prior)
    state, L, Delta, c = learner.init(learner.domain.center()), np.zeros(K, dtype=np.longdouble), np.longdouble(0.0), log(K)
    for t in range(60):
        w = learner.decide(state)
        if Delta > 0:
            e = prior * np.exp(-c / Delta * (L - L.min()))
            np.testing.assert_allclose(w, (e / e.sum()).astype(float), rtol=1e-11, atol=1e-300)
        losses = rng.standard_normal(K) * (1.0 + t % 4)
        state = learner.step(state, losses)
        if Delta > 0:
            mix = [-np.log((prior * np.exp(-c / Delta * (S - L.min()))).sum()) * Delta / c for S in (L, L + losses)]
            Delta = Delta + w @ losses - (mix[1] - mix[0])
        else:
            Delta = w @ losses - ((L + losses).min() - L.min())
        L = L + losses
        assert float(state.Delta) == pytest.approx(float(Delta), rel=1e-10)


@pytest.mark.parametrize("kind", ["noise", "against", "leader", "uneven"])
def test_with_a_prior_regret_to_each_corner_is_in_its_own_logarithm(kind):
    K, prior = 6, np.array([0.5, 0.3, 0.1, 0.05, 0.049, 0.001])
    learner = bridle.AdaHedge(bridle.Simplex(K), prior=prior)
    c = log(K)
    for at in mixture_duel(learner, LossPicker(kind, K, 4)):
        proved = at.state.Delta + at.before.Delta * np.log(1.0 / prior) / c
        assert (at.regrets <= proved + ROUNDING * at.paid).all()
        assert learner.certified(at.state) == pytest.approx(proved.max())
        assert at.regrets.max() <= learners.hedge_regret(K, at.squared_ranges, prior.min()) + ROUNDING * at.paid


@pytest.mark.parametrize("kind", OPPONENTS)
def test_it_may_start_anywhere(kind):
    """One corner only, an edge, nearly one corner: certificate and bound are those of the middle."""
    K = 4
    learner = bridle.AdaHedge(bridle.Simplex(K))
    for x1 in (np.eye(K)[2], np.array([0.5, 0.0, 0.5, 0.0]), np.array([0.97, 0.01, 0.01, 0.01])):
        for at in mixture_duel(learner, LossPicker(kind, K, 1), x1=x1):
            if at.t == 1:
                np.testing.assert_array_equal(at.w, x1)
            slack = ROUNDING * at.paid
            assert at.regrets.max() <= learner.certified(at.state) + slack
            assert at.regrets.max() <= learners.hedge_regret(K, at.squared_ranges) + slack
            if at.state.Delta == 0.0:
                np.testing.assert_array_equal(learner.decide(at.state), x1)
                assert (at.state.L[x1 > 0.0] == 0.0).all()


@pytest.mark.parametrize("delay", [1, 7])
@pytest.mark.parametrize("kind", ["noise", "blocks", "uneven", "leader"])
def test_late_losses_at_what_was_played_are_within_the_certificate(kind, delay):
    learner = bridle.AdaHedge(bridle.Simplex(5))
    for state, regrets, paid in late_duel(learner, LossPicker(kind, 5, 2), delay):
        assert regrets.max() <= learner.certified(state) + ROUNDING * paid


@pytest.mark.parametrize("make", [bridle.AdaHedge, bridle.MLPoly])
@pytest.mark.parametrize("power", [-40, 3, 60])
def test_rescaled_states_go_on_bit_for_bit(make, power):
    factor, rng = 2.0**power, np.random.default_rng(0)
    for domain in (bridle.Simplex(6), bridle.Product(*[bridle.Simplex(3)] * 2)):
        learner = make(domain)
        plain = learner.init(domain.center())
        scaled = learner.init(domain.center())
        for t in range(40):
            p = rng.standard_normal(6)
            plain = learner.step(plain, p)
            scaled = learner.step(learner.rescale(scaled, factor) if t == 20 else scaled, (factor if t >= 20 else 1.0) * p)
            np.testing.assert_array_equal(learner.decide(plain), learner.decide(scaled))
        back = records.leaves(learner.rescale(scaled, 1.0 / factor))
        for name, leaf in records.leaves(plain).items():
            np.testing.assert_array_equal(leaf, back[name], err_msg=name)
        np.testing.assert_array_equal(learner.certified(scaled), factor * learner.certified(plain))


@pytest.mark.parametrize("make", [bridle.AdaHedge, bridle.MLPoly])
def test_a_constant_added_to_all_losses_changes_nothing(make):
    learner, rng = make(bridle.Simplex(5)), np.random.default_rng(1)
    plain, moved = learner.init(learner.domain.center()), learner.init(learner.domain.center())
    for t in range(50):
        losses = rng.integers(-64, 64, 5) / 64.0  # so that the sums are exact
        plain, moved = learner.step(plain, losses), learner.step(moved, losses + 1024.0 * (-1.0) ** t)
        for name, leaf in records.leaves(plain).items():
            np.testing.assert_array_equal(leaf, records.leaves(moved)[name], err_msg=name)


@pytest.mark.parametrize("make", [bridle.AdaHedge, bridle.MLPoly])
def test_one_corner_and_equal_losses_leave_everything_as_it_is(make):
    for K in (1, 3):
        learner = make(bridle.Simplex(K, mass=3.0))
        x1 = 3.0 * np.eye(K)[0]
        state = learner.init(x1)
        for value in (1.0, -1e6, 0.1):
            state = learner.step(state, np.full(K, value))
            np.testing.assert_array_equal(learner.decide(state), x1)
            assert float(learner.certified(state)) == 0.0


@pytest.mark.parametrize("make", [bridle.AdaHedge, bridle.MLPoly])
def test_several_mixtures_side_by_side_are_each_on_its_own(make):
    K, groups, rng = 4, 3, np.random.default_rng(5)
    one, all_of_them = make(bridle.Simplex(K, mass=2.0)), make(bridle.Product(*[bridle.Simplex(K, mass=2.0)] * groups))
    for lead in ((), (2,)):
        starts = np.broadcast_to(2.0 * rng.dirichlet(np.ones(K), groups), (*lead, groups, K)).copy()
        apart, together = one.init(starts), all_of_them.init(starts.reshape(*lead, groups * K))
        for _ in range(30):
            p = rng.standard_normal((*lead, groups, K))
            factor = rng.uniform(0.5, 2.0, (*lead, 1)) if lead else 0.7
            apart = one.step(one.rescale(apart, factor[..., None] if lead else factor), p)
            together = all_of_them.step(all_of_them.rescale(together, factor), p.reshape(*lead, groups * K))
            np.testing.assert_array_equal(all_of_them.decide(together), one.decide(apart).reshape(*lead, groups * K))
        np.testing.assert_allclose(
            all_of_them.certified(together), one.certified(apart).sum(axis=-2) if lead else one.certified(apart).sum()
        )
    assert hasattr(all_of_them, "adaptivity") == hasattr(all_of_them, "squares") == (make is bridle.AdaHedge)


def test_the_constant_of_several_mixtures_is_that_of_all_their_squares():
    K, groups, rng = 4, 3, np.random.default_rng(6)
    domain = bridle.Product(*[bridle.Simplex(K)] * groups)
    learner = bridle.AdaHedge(domain)
    assert learner.adaptivity(domain.diameter()) == pytest.approx(sqrt(2.0 * groups * (4.0 + log(K))))
    state, total, ranges = learner.init(domain.center()), 0.0, 0.0
    regrets = np.zeros((groups, K))
    for _ in range(100):
        x = learner.decide(state).reshape(groups, K)
        p = rng.standard_normal((groups, K)) * [[1.0], [10.0], [0.1]] - x
        state = learner.step(state, p.reshape(-1))
        regrets += (x * p).sum(axis=1, keepdims=True) - p
        ranges += float((np.ptp(p, axis=1) ** 2).sum())
        total = regrets.max(axis=1).sum()
        assert learner.squares(state) == pytest.approx(0.5 * ranges)
        assert total <= learner.certified(state) + 1e-9
        assert learner.certified(state) <= learner.adaptivity(domain.diameter()) * sqrt(learner.squares(state))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bridle.AdaHedge(bridle.Ball(3)), r"domain must be a simplex for adahedge, such as bridle.Simplex\(3\), .*not Ball\(3\)"),
        (lambda: bridle.MLPoly(bridle.Product(bridle.Simplex(2), bridle.Simplex(3))), "domain must be a simplex for mlpoly"),
        (lambda: bridle.AdaHedge(bridle.Product(bridle.Simplex(2), bridle.Simplex(2, mass=2.0))), "or equal simplices side by side"),
        (lambda: bridle.AdaHedge(bridle.Simplex(3), prior=[1.0, 2.0]), r"prior must have shape \(3,\), not \(2,\)"),
        (lambda: bridle.AdaHedge(bridle.Simplex(2), prior=[1.0, 0.0]), r"prior must be above 0 for every corner, not \[1.0, 0.0\]"),
        (lambda: bridle.MLPoly(bridle.Simplex(2), prior=[1.0, np.nan]), r"prior must be finite, not nan at index 1"),
    ],
)
def test_bad_input_names_the_argument_and_the_value(call, message):
    with pytest.raises(bridle.InputError, match=message):
        call()


def test_garbage_leaves_a_session_as_it_was():
    for name in ("adahedge", "mlpoly"):
        session = bridle.Session(bridle.policy(name, bridle.Simplex(3)))
        session.observe(f=0.0, df=[1.0, 0.0, 2.0])
        state, x = session.state, session.decide()
        for bad in ([np.nan, 0.0, 0.0], [1.0, 2.0], [np.inf, 0.0, 0.0], "losses"):
            with pytest.raises(bridle.InputError):
                session.observe(f=0.0, df=bad)
        assert session.rounds == 1
        np.testing.assert_array_equal(session.decide(), x)
        assert all(
            np.array_equal(a, b) for a, b in zip(records.leaves(state).values(), records.leaves(session.state).values(), strict=True)
        )


def test_the_bound_at_fixed_numbers():
    """2 sqrt(1 + ln(7)/4) sqrt(3); with a prior, 1 + ln(1/pi)/ln 7 in place of 2; one corner has no regret."""
    assert learners.hedge_regret(7, 3.0) == pytest.approx(sqrt(4.0 + log(7.0)) * sqrt(3.0), rel=1e-14)
    assert learners.hedge_regret(7, 3.0, 0.01) == pytest.approx((1.0 + log(100.0) / log(7.0)) * sqrt(1.0 + log(7.0) / 4.0) * sqrt(3.0))
    assert learners.hedge_regret(1, 3.0) == 0.0
    assert learners.hedge_variance_regret(7, 3.0, 5.0) == pytest.approx(2.0 * sqrt(3.0 * log(7.0)) + 5.0 * (4.0 / 3.0 * log(7.0) + 2.0))
    simplex = bridle.Simplex(7, mass=3.0)
    assert bridle.AdaHedge(simplex).adaptivity(simplex.diameter()) == pytest.approx(3.0 * sqrt(2.0 * (4.0 + log(7.0))), rel=1e-14)
    prior = np.array([0.01, 0.24, 0.25, 0.25, 0.05, 0.1, 0.1])
    c = bridle.AdaHedge(simplex, prior=prior).adaptivity(simplex.diameter())
    assert c * sqrt(0.5) == pytest.approx(3.0 * learners.hedge_regret(7, 1.0, 0.01), rel=1e-12)


def test_no_corner_is_ever_out_of_reach():
    """The least part of its prior that a corner keeps is e^-690, the smallest that floats can still multiply."""
    hedge = bridle.AdaHedge(bridle.Simplex(3), prior=np.array([0.5, 0.3, 0.2]))
    each, total = hedge.masses(np.array([0.0, 1e9, 600.0 / hedge.c]), 1.0)
    np.testing.assert_allclose(each, [0.5, 0.3 * np.exp(-690.0), 0.2 * np.exp(-600.0)], rtol=1e-9)
    assert total == 0.5


@pytest.mark.parametrize("make", [bridle.AdaHedge, bridle.MLPoly])
def test_a_late_loss_of_several_mixtures_is_each_ones_own(make):
    simplex, rng = bridle.Simplex(3), np.random.default_rng(8)
    one, both = make(simplex), make(bridle.Product(simplex, simplex))
    starts = rng.dirichlet(np.ones(3), 2)
    together, apart = both.init(starts.ravel()), [one.init(start) for start in starts]
    for _ in range(5):
        p, x = rng.standard_normal((2, 3)), rng.dirichlet(np.ones(3), 2)
        together = both.step_at(together, p.ravel(), x.ravel())
        apart = [one.step_at(state, p[i], x[i]) for i, state in enumerate(apart)]
        np.testing.assert_allclose(both.decide(together), np.concatenate([one.decide(state) for state in apart]), rtol=1e-12)

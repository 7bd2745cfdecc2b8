"""Where the assumptions of every theorem end, at fixed numbers, and what is said beyond; and the sums that bounds are made of.

As in `test_pinned_bounds`, nothing here calls the code that it is compared with but to ask for the bound.
"""

from __future__ import annotations

from math import e, log, sqrt

import numpy as np
import pytest

import bridle
from bridle.policies import _sinha2024_ocs as ocs
from helpers.pinned_theorems import BALL, D_, FACTS, G_, MU_, D, F, G, T, bound, same, t

SIMPLEX = bridle.Simplex(4)


def ends_at(least, name, words, key="step", **settings):
    """Just below this value of a setting there is a bound, and just above it there is none."""
    assert bound(name, **{**settings, key: least * (1 - 1e-6)}).why == ""
    found = bound(name, **{**settings, key: least * (1 + 1e-6)})
    assert found.regret is None
    assert words in found.why


@pytest.mark.parametrize("k", [1, 3])
def test_the_longest_step_of_primal_dual_policies(k):
    """mahdavi2012: (k+1) eta G^2 + 2 mu theta^2 <= theta; mirror-prox: 2 eta mu k G^2 <= 1; sun2017: mu (L^2 + theta^2) <= theta/2."""
    eta = D_ * sqrt((2 * G_**2 - G**2) / (8 * (k + 1))) / G_**2
    facts = {"constraints": k}
    ends_at(eta, "mahdavi2012", "(k+1) eta G^2 + 2 mu theta^2", constraints=k, facts=facts)
    fixed = {**facts, "time_varying": False}
    ends_at(D_ / (G * sqrt(2 * k)), "mahdavi2012", "2 eta mu k G^2", constraints=k, form="mirror-prox", facts=fixed)
    L, L_ = G * D_, G_ * D_
    ends_at(sqrt((2 * L_**2 - L**2) / 16) / L_**2, "sun2017", "mu (L^2 + theta^2)")
    ends_at(1 / ((D**2 / D_ + D_) / sqrt(2) * 0.1 * G * sqrt(t)), "sinha2024", "must be below 1", key="lam", beta=0.1)


def test_told_constants_may_be_exact():
    for step in (None, 0.3):
        assert bound("jenatton2016", facts={"lipschitz": G_}, step=step).why == ""
        assert "above the one the policy was told" in bound("jenatton2016", facts={"lipschitz": 2.01}, step=step).why
    fixed = {"slater": 1.1, "time_varying": False, "lipschitz": G_, "diameter": D_}
    assert bound("hutchinson2025", slater=1.1, facts=fixed).why == ""
    assert bound("anytime", facts={"diameter": D_}, lipschitz=None, bound=None, V=1.0).why == ""


def test_bounds_that_do_not_gain_or_do_not_apply():
    from bridle.policies.common import unmet

    assert bound("neely2017", facts={"slater": 1e-4}) == bound("neely2017")
    longer = {"feasible": None, "window": T + 1}
    assert bound("liakopoulos2019", facts=longer).why == f"the window of {T + 1} rounds is longer than the horizon"
    assert bound("liakopoulos2019", facts={**longer, "window": T}).why == ""
    assert bound("liakopoulos2019", facts={**longer, "excess": 1.0}).why == ""
    assert bound("liakopoulos2019", facts={"bound": None}).why == "the largest |g| is not known"
    rewards = {"diameter": sqrt(2), "feasible": None, "rewards": 0.8, "constraints": 4}
    assert bound("banditq", domain=SIMPLEX, bound=1.0, facts=rewards).why == "no action is known to satisfy every constraint"
    few = bound("banditq", 2, domain=SIMPLEX, bound=1.0, facts={**rewards, "feasible": SIMPLEX.center()})
    assert (few.regret, few.interval) == pytest.approx((1.6, 1.6))
    facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2)}
    assert unmet(facts, strong=True) == unmet(facts, modulus=0.1) == "the costs are not strongly convex"
    assert unmet({**facts, "modulus": 0.1}, strong=True) == ""
    assert "less than the 0.3" in unmet({**facts, "modulus": 0.2}, modulus=np.array([[0.1], [0.3]]))
    assert unmet({**facts, "time_varying": False}, fixed=True) == ""
    assert unmet(facts, fixed=True) == "the constraints change from round to round"


def test_printed_theorems_say_why_they_do_not_apply():
    convex, strong = (
        bridle.policy(name, BALL, horizon=T, lipschitz=G_, **more)
        for name, more in (("sinha2024", {}), ("sinha2024-strong", {"modulus": MU_}))
    )
    plain = {**FACTS, "diameter": 2.0}
    same(convex.paper_bound(plain, t), regret=2 * G_ * 2 * (sqrt(t) + 1), ccv=4 * G_ * 2 * log(2 * (1 + 2 * T)) * sqrt(T))
    L = log(e * T)
    same(strong.paper_bound(plain, t), regret=G_**2 / MU_ * (1 + log(t)), ccv=4 * G_ * sqrt(G_ * 2 * t * L / MU_) + 4 * G_**2 * L / MU_)
    for policy in (convex, strong):
        assert policy.paper_bound({**plain, "convex": False}, t).why == "a cost or a constraint is not convex"
        assert "Lipschitz constant is 2.1" in policy.paper_bound({**plain, "lipschitz": 2.1}, t).why
        assert "diameter is 2.2" in policy.paper_bound(FACTS, t).why
    assert "modulus is 0.5" in strong.paper_bound({**plain, "modulus": 0.5}, t).why
    policy = bridle.policy("sinha2024-ocs", BALL)
    none = {"lipschitz": G, "diameter": D, "bound": F}
    assert policy.paper_bound(none, 300).why == "neither a feasible action, nor a window, nor the least static violation is known"
    assert policy.paper_bound({**none, "bound": None, "feasible": np.zeros(2)}, 300).why == "the largest |g| is not known"
    one = policy.paper_bound({**none, "diameter": 2.0, "window": 3}, 300)
    assert one.interval == pytest.approx(ocs.theorem4(G, 2.0, F, 1, 3, 300))


def test_the_first_queue_bound_of_algorithm_2_and_queues_without_gradients():
    a, k, P, T = 60.0, 1, 900.0, 60
    c = 2 * k * P * F
    first = (a * sqrt(T) + sqrt(a**2 * T + 4 * c * T)) / 2
    b = a * sqrt(T) + sqrt(k) * P
    assert first < (b + sqrt(b**2 + 2 * c * T)) / 2
    assert ocs.queue_bound(a, F, k, P, T) <= first * (1 + 1e-12)
    for P in (0.3, 0.0):  # a = 0: z^2 = c T (T + 1) / 2, Q^2 = c T; or half the square with U <= (F t + Q) / 2
        c = 2 * P * F
        b = P
        expected = min(sqrt(c * 900), (b + sqrt(b * b + 2 * c * 900)) / 2)
        assert ocs.queue_bound(0.0, F, 1, P, 900) == pytest.approx(expected)


def test_short_sums_are_taken_term_by_term():
    from bridle.policies.common import climb, harmonic, smooth_sum
    from bridle.policies.common import powers as sum_of_powers

    assert smooth_sum(lambda s: s**0.5, 2.0, 7.0) == pytest.approx(sum(s**0.5 for s in range(2, 8)))
    assert smooth_sum(lambda s: s**0.5, 3.0, 2.0) == 0.0
    assert climb(9, 0.5, 0.3) == pytest.approx(sum((s**0.5 - (s - 1) ** 0.5) * s**-0.3 for s in range(1, 10)))
    assert climb(1, 0.5, 0.3) == 1.0
    for last in (1, 31, 32, 33, 40, 3000):
        assert float(sum_of_powers(last, 0.7)) == pytest.approx(sum(s**-0.7 for s in range(1, last + 1)), rel=1e-13)
    assert harmonic(5) == pytest.approx(1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5)
    assert float(sum_of_powers(0.0, 1.0)) == 0.0
    for last in (600, 5000):
        assert smooth_sum(lambda s: s**-1.5, 1.0, last) == pytest.approx(sum(s**-1.5 for s in range(1, last + 1)), rel=2e-11)

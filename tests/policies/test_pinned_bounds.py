"""Every theorem at fixed numbers: the right-hand side written out again from its statement, with sums taken term by term.

Nothing here calls the code that it is compared with, but to ask for the bound. What the policy is told differs from what is true in every
constant, so that no two of them can stand for each other; `t` is below the horizon. A case is played where the bound is below the trivial
G D a round, and `test_the_trivial_bound_is_never_exceeded` where it is not.
"""

from __future__ import annotations

from math import e, log, pi, sqrt

import numpy as np
import pytest

import bridle
from bridle.policies import _sinha2024 as paper
from bridle.policies import _sinha2024_ocs as ocs
from helpers.pinned_theorems import BALL, D_, F_, FACTS, G_, MU_, D, F, G, T, bound, powers, same, t, total


def queue_terms(alpha, V, k, C, P=0.0, at=t):
    """E, W of the drift-plus-penalty proof: Regret <= W / V."""
    each = k * C**2 / 2 + V**2 * G**2 / (4 * alpha)
    return each, alpha * D**2 + (each + k * P * F) * at


def best_queue(far, gain, fall, climb, slater):
    """The least over whole n of far/(slater n) + gain/slater + fall (n-1)/2 + climb n."""
    return min(far / (slater * n) + gain / slater + fall * (n - 1) / 2 + climb * n for n in range(1, 20_000))


def moved(Q, alpha, V, k, at=t):
    return Q + G * at / (2 * alpha) * (V * G + G * sqrt(k) * Q)


# --- Algorithm 1 and 2 -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "kappa", "nu"), [("theory", sqrt(2), 0.5), ("tight", 1.0, 0.9), ("practice", 1.0, 0.9)])
def test_algorithm_1_with_its_presets(preset, kappa, nu):
    """beta = 1/(kappa c G), c = sqrt(2) D, lam = nu/sqrt(T), V = 1 (practice: lam). s = c beta G sqrt(t):
    Regret <= (s/beta)(1 + lam/V), CCV <= ln((1 + V (s + beta G D t)) / (1 - s lam)) / (beta lam)."""
    c_, lam = sqrt(2) * D_, nu / sqrt(T)
    beta, V = 1 / (kappa * c_ * G_), lam if preset == "practice" else 1.0
    s = (D**2 / D_ + D_) / sqrt(2) * beta * G * sqrt(t)
    ccv = log((1 + V * (s + beta * G * D * t)) / (1 - s * lam)) / (beta * lam)
    same(bound("sinha2024", preset=preset), regret=s / beta * (1 + lam / V), ccv=ccv)


def test_algorithm_1_with_adaftrl():
    """c = D^2/(2a) + 2.75 a + 3.5 D, a = D'/sqrt(5.5)."""
    a = D_ / sqrt(5.5)
    T, t = 5_000_000, 4_000_000
    c, c_, lam = D**2 / (2 * a) + 2.75 * a + 3.5 * D, D_**2 / (2 * a) + 2.75 * a + 3.5 * D_, 0.5 / sqrt(T)
    beta = 1 / (sqrt(2) * c_ * G_)
    s = c * beta * G * sqrt(t)
    same(bound("sinha2024", t, learner="adaftrl", horizon=T), t, regret=s / beta * (1 + lam),
         ccv=log((1 + s + beta * G * D * t) / (1 - s * lam)) / (beta * lam))  # fmt: skip


@pytest.mark.parametrize(("potential", "n"), [("quadratic", 2.0), ("power", 3.0)])
def test_algorithm_1_with_powers(potential, n):
    """Phi = q^n, V = (n-1)^(n-1) (T/2)^((n-1)/2), 1 for the quadratic: Regret <= (s + (n-1)^(n-1) s^n / V) / beta and
    CCV <= (n s + (V (s + beta G D t))^(1/n)) / beta."""
    about = {"potential": potential} | ({"exponent": 3.0} if potential == "power" else {})
    beta = 1 / (sqrt(2) * sqrt(2) * D_ * G_)
    s = (D**2 / D_ + D_) / sqrt(2) * beta * G * sqrt(t)
    V = (n - 1) ** (n - 1) * (T / 2) ** ((n - 1) / 2)
    same(
        bound("sinha2024", **about),
        regret=(s + (n - 1) ** (n - 1) * s**n / V) / beta,
        ccv=(n * s + (V * (s + beta * G * D * t)) ** (1 / n)) / beta,
    )


def test_algorithm_1_that_is_doubled():
    """The sum over epochs of 1, 2, 4, ... rounds of Algorithm 1 made for the epoch; the last one is cut off."""
    facts, rounds, left, epoch, regret, ccv = FACTS, 2_000_000, 2_000_000, 1, 0.0, 0.0
    while left > 0:
        part = bridle.policy("sinha2024", BALL, horizon=epoch, lipschitz=G_).bound(facts, min(epoch, left))
        regret, ccv, left, epoch = regret + part.regret, ccv + part.ccv, left - epoch, 2 * epoch
    same(paper.doubling_bound(BALL, facts, rounds, lipschitz=G_), rounds, regret=regret, ccv=ccv)
    assert paper.doubling_bound(BALL, {**facts, "convex": False}, rounds).why == "a cost or a constraint is not convex"
    assert paper.doubling_bound(BALL, facts, rounds).ccv < ccv  # by default it is told the true constant
    assert paper.doubling_bound(BALL, facts, 3, lam=0.3).why == ""
    assert "must be below 1" in paper.doubling_bound(BALL, facts, 300, lam=0.3).why  # the last epochs are too long for that


def test_algorithm_1_strong_that_is_squared():
    """The sum over epochs of 2, 4, 16, ... rounds of Algorithm 1 for strongly convex costs; the horizon's factor stays logarithmic."""
    regret = ccv = 0.0
    facts = {**FACTS, "modulus": MU_}
    for epoch, rounds in ((2, 2), (4, 4), (16, 16), (256, 256), (65_536, 30_000)):
        part = bridle.policy("sinha2024-strong", BALL, horizon=epoch, lipschitz=G_, modulus=MU_).bound(facts, rounds)
        regret, ccv = regret + part.regret, ccv + part.ccv
    T = 2 + 4 + 16 + 256 + 30_000
    same(paper.doubling_bound(BALL, facts, T, "square", lipschitz=G_, modulus=MU_), T, regret=regret, ccv=ccv)
    known = paper.doubling_bound(BALL, {**facts, "regret": 0.0}, T, "square", lipschitz=G_, modulus=MU_)
    assert known.ccv == pytest.approx(ccv)  # regret over all epochs says nothing of one
    assert "not strongly convex" in paper.doubling_bound(BALL, {**FACTS, "modulus": 0.0}, T, "square", modulus=MU_).why
    with pytest.raises(bridle.InputError, match="growth"):
        paper.doubling_bound(BALL, facts, T, "cube")


def test_the_remark_after_theorem_2_leaves_no_jump():
    """A regret of -1e-9 has the violation bound of regret 0, nearly; one of -ln T has a logarithmic one, and below -GDt it ends."""
    policy = bridle.policy("sinha2024-strong", BALL, horizon=T, lipschitz=G_, modulus=MU_)
    for of in (policy.bound, policy.paper_bound):
        at = [of({**FACTS, "lipschitz": G_, "modulus": MU_, "diameter": 2.0, "regret": r}, t).ccv for r in (0.0, -1e-9, -log(T), -1e12)]
        assert at[1] == pytest.approx(at[0], rel=1e-9)
        assert at[0] < at[2] < 2.0 * at[0]
        assert at[3] == pytest.approx(of({**FACTS, "lipschitz": G_, "modulus": MU_, "diameter": 2.0}, t).ccv)
        assert at[3] > at[2]


def test_algorithm_1_strong():
    """V = 8 G^2 ln(eT)/mu, c = G^2 harm(t)/(2 mu V): Regret <= c V/(1 - 4c), and Q the root of Q^2 - V G D t = c (V + 2Q)^2."""
    V = 8 * G_**2 * log(e * T) / MU_
    c = G**2 * powers(1.0) / (2 * MU_ * V)
    Q = (2 * c * V + sqrt(c * V**2 + (1 - 4 * c) * V * G * D * t)) / (1 - 4 * c)
    assert Q**2 - V * G * D * t == pytest.approx(c * (V + 2 * Q) ** 2)
    same(bound("sinha2024-strong"), regret=c * V / (1 - 4 * c), ccv=Q)
    beta, V = 0.4, 900.0
    c = beta * G**2 * powers(1.0) / (2 * MU_ * V)
    Q = (2 * c * V + sqrt(c * V**2 + (1 - 4 * c) * V * beta * G * D * t)) / (1 - 4 * c)
    same(bound("sinha2024-strong", beta=beta, V=V), regret=c * V / (beta * (1 - 4 * c)), ccv=Q / beta)
    flat = V * sqrt(c) / (1 - 2 * sqrt(c)) / beta  # where regret is not negative
    same(bound("sinha2024-strong", beta=beta, V=V, facts={"regret": 3.0}), regret=c * V / (beta * (1 - 4 * c)), ccv=flat)


def test_the_printed_theorems():
    assert paper.theorem1(1.5, 2.0, 300, 500)[:2] == pytest.approx((2 * 1.5 * 2 * (sqrt(300) + 1), 4 * 1.5 * 2 * log(2 * 1001) * sqrt(500)))
    L, R = log(e * 500), 1.5**2 / 0.7 * (1 + log(300))
    ccv = 4 * 1.5 * sqrt(1.5 * 2 * 300 * L / 0.7) + 4 * 1.5**2 * L / 0.7
    assert paper.theorem2(1.5, 2.0, 0.7, 300, 500)[:2] == pytest.approx((R, ccv))
    V = 8 * 1.5**2 * L / 0.7
    for least, behind in ((5.0, 0.0), (0.0, 0.0), (-7.0, 7.0), (-50.0, 50.0)):
        assert paper.theorem2(1.5, 2.0, 0.7, 300, 500, least)[:2] == pytest.approx((R, sqrt(2 * V * (R + behind))))
    assert paper.theorem2(1.5, 2.0, 0.7, 300, 500, -1e9).ccv == pytest.approx(ccv)
    assert (paper.theorem3(400), paper.theorem3(400, sharp=False)) == (5.0, 2.5)


def test_theorem_4_is_the_root_of_its_own_inequalities():
    """Z^2 = c1 T Z + c2 S T^2 + c4 S^2 T and Q^2 = c1 Z + c2 S T + c4 S^2, c1 = 2 sqrt(2k) G D, c2 = c4 = 4 k F^2."""
    k, S = 3, 5.0
    c1, c2 = 2 * sqrt(2 * k) * G * D, 4 * k * F**2
    Z = (c1 * T + sqrt((c1 * T) ** 2 + 4 * (c2 * S * T**2 + c2 * S**2 * T))) / 2
    assert pytest.approx(c1 * T * Z + c2 * S * T**2 + c2 * S**2 * T) == Z**2
    assert ocs.theorem4(G, D, F, k, S, T) ** 2 == pytest.approx(c1 * Z + c2 * S * T + c2 * S**2)
    rise = [ocs.theorem4(G, D, F, k, S, T) for S in (1, 2, 8, 64)]
    assert rise == sorted(rise)
    assert ocs.theorem4(0.0, D, 1.0, 1, 4.0, 100.0) == pytest.approx(sqrt(4 * 4 * 100 + 4 * 16))  # c1 = 0


def test_theorem_5():
    assert ocs.theorem5(G, D, F, 3, 8.0, T) == pytest.approx(2 * sqrt(2) * G * D * sqrt(3 * T) + F * sqrt(6) * 2.0 * T ** (2 / 3))
    assert ocs.theorem5(G, D, F, 3, -1.0, T) == pytest.approx(2 * sqrt(2) * G * D * sqrt(3 * T))


@pytest.mark.parametrize(("T", "P"), [(1, 0.3), (90, 0.0), (90, 0.3), (90, 40.0), (400, 0.3), (900, 0.3), (900, 1e-3), (2000, 0.0)])
def test_the_three_queue_bounds_of_algorithm_2(T, P):
    """Each by itself: two quadratics, and the recursion z = a/2 + sqrt(a^2/4 + z^2 + c t), Q = sqrt(a z + c T), c = 2kPF."""
    a, k = 3.1, 2
    c = 2 * k * P * F
    first = (a * sqrt(T) + sqrt(a**2 * T + 4 * c * T)) / 2
    b = a * sqrt(T) + sqrt(k) * P
    second = (b + sqrt(b**2 + 2 * c * T)) / 2
    z = 0.0
    for s in range(1, T + 1):
        z = a / 2 + sqrt(a**2 / 4 + z**2 + c * s)
    third = sqrt(a * z + c * T)
    found = ocs.queue_bound(a, F, k, P, T)
    assert found == pytest.approx(min(first, second, third)) if T <= 400 else min(first, second, third) <= found * (1 + 1e-12)
    if T > 400:  # from round n = 400 on: w_t = w_n + lam (t - n) + kappa (1/n + ... + 1/(t-1))
        z, lam = 0.0, a / 4 + sqrt(a**2 / 16 + c / 2)
        for s in range(1, 401):
            z = a / 2 + sqrt(a**2 / 4 + z**2 + c * s)
        w = max(z, lam * 400) + lam * (T - 400) + (a**2 / 8 + c / 2) / lam * sum(1 / s for s in range(400, T))
        assert found == pytest.approx(min(first, second, sqrt(a * w + c * T)))
        assert found <= 1.02 * min(first, second, third)


def test_algorithm_2():
    """a = 2 c G sqrt(k), c of AdaGrad, and P = 0, F floor(S/2) or `excess`."""
    a = 2 * (D**2 / D_ + D_) / sqrt(2) * G * sqrt(2)
    two = {"constraints": 2}
    for facts, P in (({}, 0.0), ({"feasible": None, "window": 5}, F * 2), ({"feasible": None, "excess": 7.5}, 7.5)):
        found = bound("sinha2024-ocs", facts={**two, **facts}, constraints=2)
        assert found[:5] == (None, None, pytest.approx(ocs.queue_bound(a, F, 2, P, t)), None, None)
        assert found.why == "Algorithm 2 has no costs and bounds violation over intervals"
    known = {**FACTS, "constraints": 2, "feasible": None}
    policy = bridle.policy("sinha2024-ocs", BALL, constraints=2, diameter=D_)
    assert policy.paper_bound({**known, "window": 5}, 300).interval == pytest.approx(ocs.theorem4(G, D_, F, 2, 5, 300))
    assert policy.paper_bound({**known, "feasible": np.zeros(2)}, 300).interval == pytest.approx(ocs.theorem4(G, D_, F, 2, 1, 300))
    assert policy.paper_bound({**known, "excess": 7.6}, 300).interval == pytest.approx(ocs.theorem5(G, D_, F, 2, 4.0, 300))


# --- primal-dual policies and queues ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clip", "k"), [(False, 1), (False, 3), (True, 1), (True, 2)])
def test_mahdavi2012(clip, k):
    """C = D^2/(2 eta) + (k+1) eta G^2 t/2 + k mu F^2 t, mu = eta/D'^2, theta = 2(k+1) G'^2 eta; as below."""
    size = min(F_ / (G_ * D_), 1.0) if clip else F_ / (G_ * D_)
    eta = D_ / G_ * min(((k + 1 + 2 * k * size**2) * T) ** -0.5, (8 * (k + 1)) ** -0.5)
    mu, theta, most = eta / D_**2, 2 * (k + 1) * G_**2 * eta, min(F, G * D) if clip else F
    C = D**2 / (2 * eta) + (k + 1) * eta * G**2 * t / 2 + k * mu * most**2 * t
    violation = sqrt(2 * (1 / mu + theta * t) * (G * D * t + C))
    assert violation < G * D * t
    same(bound("mahdavi2012", constraints=k, clip=clip, facts={"constraints": k}), regret=C, **{"ccv" if clip else "soft": violation})


@pytest.mark.parametrize("k", [1, 2])
def test_mahdavi2012_mirror_prox(k):
    """eta = (D'/G') min(T^(-1/3), (2k)^(-1/2)), mu = eta/D'^2: C = D^2/(2 eta) + eta G^2 t, violation sqrt(2 (GDt + C)/mu)."""
    eta = D_ / G_ * min(T ** (-1 / 3), (2 * k) ** -0.5)
    C = D**2 / (2 * eta) + eta * G**2 * t
    fixed = {"constraints": k, "time_varying": False}
    found = bound("mahdavi2012", form="mirror-prox", constraints=k, facts=fixed)
    same(found, regret=C, soft=sqrt(2 / (eta / D_**2) * (G * D * t + C)))
    assert bound("mahdavi2012", form="mirror-prox", constraints=k, facts={**fixed, "affine": False}).why == "the constraints are not affine"
    assert "2 eta mu k G^2" in bound("mahdavi2012", form="mirror-prox", constraints=k, facts=fixed, step=9.0).why


@pytest.mark.parametrize(("clip", "b"), [(False, 0.5), (True, 0.5), (False, 0.7)])
def test_jenatton2016(clip, b):
    """eta_s = (D'/G') s^-b, theta_s = 6 G'^2 eta_s, mu_s = 1/(theta_s (s+1)): C = D^2/(2 eta_t) + G^2 sum eta + F^2 sum mu."""
    step, most = D_ / G_, min(F, G * D) if clip else F
    theta = 6 * G_**2 * step
    C = D**2 * t**b / (2 * step) + G**2 * total(lambda s: step * s**-b) + most**2 * total(lambda s: s**b / (theta * (s + 1)))
    violation = sqrt(2 * (theta + total(lambda s: theta * s**-b)) * (G * D * t + C))
    name = "ccv" if clip else "soft"
    same(bound("jenatton2016", clip=clip, exponent=b), regret=C, **{name: min(violation, G * D * t)})


@pytest.mark.parametrize("clip", [False, True])
def test_sun2017(clip):
    """Euclidean: B = D^2/(2 D'^2), L = G D'; entropic: B = ln d, L = G mass. mu = sqrt(B'/(T (F'^2 + L'^2))), theta = 4 L'^2 mu;
    C = B/mu + mu (L^2 + F^2) t, violation sqrt(2 (1/mu + theta t)(GDt + C))."""
    most, told, name = min(F, G * D) if clip else F, min(F_, G_ * D_) if clip else F_, "ccv" if clip else "soft"
    mu = min(sqrt(0.5 / (T * (told**2 + (G_ * D_) ** 2))), 0.25 / (G_ * D_))
    theta, B, L = 4 * (G_ * D_) ** 2 * mu, 0.5 * (D / D_) ** 2, G * D_
    C = B / mu + mu * (L**2 + most**2) * t
    same(bound("sun2017", clip=clip), regret=C, **{name: sqrt(2 * (1 / mu + theta * t) * (G * D * t + C))})
    mass, wide, d = 1.3, 1.3 * sqrt(2), 4
    most, told = min(F, G * wide) if clip else F, min(F_, G_ * D_) if clip else F_
    mu = min(sqrt(log(d) / (T * (told**2 + (G_ * mass) ** 2))), 0.25 / (G_ * mass))
    theta, L = 4 * (G_ * mass) ** 2 * mu, G * mass
    C = log(d) / mu + mu * (L**2 + most**2) * t
    facts = {"diameter": wide, "feasible": np.full(4, mass / 4)}
    found = bound("sun2017", clip=clip, mirror="entropic", domain=bridle.Simplex(4, mass=mass), facts=facts)
    same(found, regret=C, **{name: sqrt(2 * (1 / mu + theta * t) * (G * wide * t + C))})
    assert "mu (L^2 + theta^2)" in bound("sun2017", step=5.0).why


@pytest.mark.parametrize(("clip", "k", "slater"), [(False, 1, None), (False, 2, None), (True, 2, None), (False, 1, 0.6), (False, 2, 0.9)])
def test_neely2017(clip, k, slater):
    """alpha = k C'^2 T/(2 D'^2), V = sqrt(2) k C'^2 sqrt(T)/(G' D'), C = F + GD (GD clipped): Regret W/V, queue sqrt(2 (V G D t + W))."""
    C_, C = G_ * D_ + (0.0 if clip else F_), G * D + (0.0 if clip else F)
    alpha, V = k * C_**2 * T / (2 * D_**2), sqrt(2) * k * C_**2 * sqrt(T) / (G_ * D_)
    each, W = queue_terms(alpha, V, k, C)
    Q = sqrt(2 * (V * G * D * t + W))
    if slater:
        sharper = best_queue(alpha * D**2, V * G * D + each, sqrt(k) * C, sqrt(k) * F, slater)
        assert sharper < Q
        Q = sharper
    found = bound("neely2017", clip=clip, constraints=k, facts={"constraints": k, "slater": slater})
    same(found, regret=W / V, **{"ccv" if clip else "soft": min(moved(Q, alpha, V, k), G * D * t)})
    assert moved(Q, alpha, V, k) < G * D * t or not slater
    steady = bound("neely2017", clip=clip, constraints=k, V=50.0, step=1e-6, facts={"constraints": k})
    each, W = queue_terms(0.5e6, 50.0, k, C)
    Q = sqrt(2 * (50.0 * G * D * t + W))
    same(steady, regret=W / 50.0, **{"ccv" if clip else "soft": moved(Q, 0.5e6, 50.0, k)})


def test_the_queue_of_a_slater_point_is_the_least_over_its_free_number():
    from bridle.policies._neely2017 import slater_queue

    for far, gain, fall, climb, slater in [(900.0, 7.0, 3.0, 2.0, 0.5), (1.0, 7.0, 3.0, 2.0, 0.5), (9e6, 70.0, 0.3, 5.0, 0.01)]:
        assert slater_queue(far, gain, fall, climb, slater) == pytest.approx(best_queue(far, gain, fall, climb, slater))
        for more in ((2 * far, gain, fall, climb, slater), (far, 2 * gain, fall, climb, slater), (far, gain, fall, 2 * climb, slater)):
            assert slater_queue(*more) > slater_queue(far, gain, fall, climb, slater)


@pytest.mark.parametrize(("facts", "P"), [({}, 0.0), ({"feasible": None, "window": 7}, 3 * F), ({"feasible": None, "excess": 2.5}, 2.5)])
@pytest.mark.parametrize("k", [1, 2])
def test_liakopoulos2019(facts, P, k):
    """V = sqrt(2) k C'^2 sqrt(K T)/(G'D'), alpha = k C'^2 max(T, v sqrt(T))/(2 D'^2), v = V G'D'/(sqrt(2) k C'^2); P against F t."""
    K, size = 9.0, k * (G_ * D_ + F_) ** 2
    V = sqrt(2) * size * sqrt(K * T) / (G_ * D_)
    alpha = size * max(T, sqrt(K * T) * sqrt(T)) / (2 * D_**2)
    _, W = queue_terms(alpha, V, k, G * D + F, P)
    Q = sqrt(2 * (V * G * D * t + W))
    found = bound("liakopoulos2019", window=K, constraints=k, facts={"constraints": k, **facts})
    same(found, regret=min(W / V, G * D * t), soft=min(moved(Q, alpha, V, k), F * t))
    assert G * D * t > W / V


@pytest.mark.parametrize("slater", [None, 0.8])
@pytest.mark.parametrize(("k", "sigma"), [(1, 0.0), (2, 0.0), (2, 0.4)])
def test_soft_with_a_horizon(k, sigma, slater):
    """neely2017 with F + sigma for F, v V for V, and sigma sqrt(k t) more; with noise no gain from a Slater point."""
    v, size = 0.25, k * (G_ * D_ + F_ + sigma) ** 2
    V, alpha, C, F2 = sqrt(2) * v * size * sqrt(T) / (G_ * D_), size * T / (2 * D_**2), G * D + F + sigma, F + sigma
    each, W = queue_terms(alpha, V, k, C)
    Q = sqrt(2 * (V * G * D * t + W))
    if slater and not sigma:
        Q = min(Q, best_queue(alpha * D**2, V * G * D + each, sqrt(k) * C, sqrt(k) * F2, slater))
    soft = min(moved(Q, alpha, V, k) + sigma * sqrt(k * t), G * D * t)
    found = bound("soft", constraints=k, noise=sigma, facts={"constraints": k, "slater": slater})
    numbers = {"regret": W / V, "soft": soft} | ({} if sigma else {"interval": soft})
    same(found._replace(why=""), **numbers)
    assert found.why == ("in expectation over errors of mean 0, against an action fixed in advance" if sigma else "")


@pytest.mark.parametrize("slater", [None, 0.8])
@pytest.mark.parametrize("k", [1, 2])
def test_soft_without_a_horizon(k, slater):
    """V sqrt(s), alpha s: r = D^2 alpha/V + V G^2/(2 alpha) + k C^2/V, Q = sqrt(2V (GD t^1.5 + r t)); the queues' sum |Q_s|/s."""
    v, size = 0.25, k * (G_ * D_ + F_) ** 2
    V, alpha, C = sqrt(2) * v * size / (G_ * D_), size / (2 * D_**2), G * D + F
    r = D**2 * alpha / V + V * G**2 / (2 * alpha) + k * C**2 / V
    Q = sqrt(2 * V * (G * D * t**1.5 + r * t))
    queues = sqrt(2 * V * G * D) * powers(0.25) + sqrt(2 * V * r) * powers(0.5)
    if slater:
        far, each, h = alpha * D**2, k * C**2 / 2 + V**2 * G**2 / (4 * alpha), sqrt(k) * (C / 2 + F)
        Q = min(Q, best_queue(far * t, V * sqrt(t) * G * D + each, sqrt(k) * C, sqrt(k) * F, slater))
        roomy = (2 * sqrt(far * h / slater) + V * G * D / slater) * powers(0.5) + (h + each / slater) * powers(1.0)
        assert roomy < queues
        queues = roomy
    soft = min(Q + G**2 / (2 * alpha) * (V * powers(0.5) + sqrt(k) * queues), G * D * t)
    same(
        bound("soft", horizon=None, constraints=k, facts={"constraints": k, "slater": slater}), regret=r * sqrt(t), soft=soft, interval=soft
    )
    capped = bound("soft", horizon=None, constraints=k, cap=2.0, facts={"constraints": k})
    assert capped.regret == pytest.approx(r * sqrt(t))
    assert (capped.soft, capped.interval, capped.why) == (None, None, "a capped price need not hold its limit, so no violation is bounded")


@pytest.mark.parametrize("V", [None, 30.0])
def test_banditq(V):
    """F = r mass, q = 2F sqrt(t) + sqrt(6F^2 t + 2VFt + 4FV sqrt(Nt)), Regret 2F sqrt(Nt) + (F^2 t + 2Fq sqrt(t))/V; V = F' sqrt(T)."""
    N, mass, rewards = 4, 1.3, 0.8
    F, weight = rewards * mass, 1.9 * sqrt(T) if V is None else V
    q = 2 * F * sqrt(t) + sqrt(6 * F**2 * t + 2 * weight * F * t + 4 * F * weight * sqrt(N * t))
    regret = 2 * F * sqrt(N * t) + (F**2 * t + 2 * F * q * sqrt(t)) / weight
    domain = bridle.Simplex(N, mass=mass)
    facts = {"diameter": mass * sqrt(2), "feasible": domain.center(), "rewards": rewards, "constraints": N}
    same(bound("banditq", domain=domain, bound=1.9, V=V, facts=facts), regret=min(regret, F * t), interval=min(q, F * t))
    none = bound("banditq", domain=domain, bound=1.9, facts={**facts, "rewards": None})
    assert none.why == "the problem is not known to have costs -<r, x> and constraints lam_i - r_i x_i (constant `rewards`)"


# --- without constraints, nested sets, feasibility steps -------------------------------------------------------------------------------


def test_unconstrained_policies():
    step = D_ / (G_ * sqrt(T))
    same(bound("ogd"), regret=D**2 / (2 * step) + step * G**2 * t / 2)
    step = D_ / (sqrt(2) * G_)
    same(bound("ogd", horizon=None), regret=D**2 * sqrt(t) / (2 * step) + step * G**2 / 2 * (2 * sqrt(t) - 1))
    same(bound("adagrad"), regret=(D**2 / D_ + D_) / sqrt(2) * G * sqrt(t))
    c = D_ / sqrt(5.5)
    same(bound("adaftrl"), regret=(D**2 / (2 * c) + 2.75 * c) * G * sqrt(t) + 3.5 * D * G)
    policy = bridle.policy("ftpl", BALL, samples=10)
    assert policy.bound(FACTS, t).why == "the theorem is for the exact expectation, not for the mean of 10 draws"
    same(policy.paper_bound(FACTS, t), regret=(2 * (2 / pi) ** 0.25 + 2 + sqrt(2)) * D * G * sqrt(t))
    for name in ("ogd", "adagrad", "adaftrl"):
        assert bound(name, facts={"lipschitz": None}).why == "the problem's Lipschitz constant or diameter is not known"
        assert bound(name, facts={"feasible": None}).why == ""
    assert policy.paper_bound({**FACTS, "convex": False}, t).why == "a cost or a constraint is not convex"


@pytest.mark.parametrize("strong", [False, True])
def test_vaze2025(strong):
    """W = D^2 + sum (2 eta_s G D + eta_s^2 G^2), CCV G (G sum eta + sqrt(t W)); eta = D'/(G' sqrt(s)), or 1/(mu s)."""
    eta = (lambda s: 1 / (MU_ * s)) if strong else (lambda s: D_ / (G_ * np.sqrt(s)))
    steps, squares = total(eta), total(lambda s: eta(s) ** 2)
    regret = G**2 * steps / 2 + (0.0 if strong else D**2 / (2 * eta(t)))
    ccv = G * (G * steps + sqrt(t * (D**2 + 2 * G * D * steps + G**2 * squares)))
    assert ccv < G * D * t
    same(bound("vaze2025-strong" if strong else "vaze2025"), regret=regret, ccv=ccv)


@pytest.mark.parametrize("preset", ["theory", "practice"])
def test_hutchinson2025(preset):
    """rho and eta of the presets; a = (slater - rho)/(G'D'); Regret D^2/(2 eta) + eta G^2 t/2 + (rho/slater) G D t; CCV 2 G s_1/a^2."""
    eps, fixed = 1.1, {"slater": 1.1, "time_varying": False}
    if preset == "practice":
        rho, eta = min(eps / 2, G_ * D_ / sqrt(T)), D_ / (G_ * sqrt(T))
    else:
        b = min(1.0, eps / 2 / (G_ * D_))
        rho = min(eps / 2, D_ / b * sqrt(2 * G_ / ((b**2 / (8 * G_) + D_ / eps) * T)))
    a = min(1.0, (eps - rho) / (G_ * D_))
    least = a**2 * (rho / G_) / (2 * (1 + a))
    if preset == "theory":
        eta = min(D_ / (G_ * sqrt(T)), least / G_)
    ccv = 2 * G * (D - rho / G_) / a**2
    regret = D**2 / (2 * eta) + eta * G**2 * t / 2 + rho / eps * G * D * t
    found = bound("hutchinson2025", slater=eps, preset=preset, facts=fixed)
    if preset == "theory":
        same(found, regret=min(regret, G * D * t), ccv=ccv)
        same(bound("hutchinson2025", slater=eps, facts={**fixed, "first": 1.2, "unseen": 5.0}),
             regret=min(regret + D * 5.0, G * D * t), ccv=2 * G * max(0.0, 1.2 - rho / G_) / a**2)  # fmt: skip
        low = bound("hutchinson2025", slater=eps, level=0.01, step=5e-5, facts=fixed)
        a = (eps - 0.01) / (G_ * D_)
        same(low, regret=D**2 / 1e-4 + 5e-5 * G**2 * t / 2 + 0.01 / eps * G * D * t, ccv=2 * G * (D - 0.01 / G_) / a**2)
        assert low.regret < G * D * t
    else:
        assert found.regret is None
        assert found.ccv == pytest.approx(ccv)
        assert found.why.startswith("the step is longer than the proof of the regret bound allows")
    whys = [
        ({"lipschitz": 2.1}, "the Lipschitz constant is 2.1, more than"),
        ({"diameter": 2.6}, "the domain's diameter is 2.6, more than"),
        ({"slater": 1.0}, "(slater = 1)"),
        ({"slater": None}, "(slater = 0)"),
        ({"time_varying": True}, "change from round to round"),
    ]
    for facts, why in whys:
        assert why in bound("hutchinson2025", slater=eps, preset=preset, facts={**fixed, **facts}).why


@pytest.mark.parametrize("d", [1, 2])
def test_steiner(d):
    """G D min(d/2, sqrt(d ln(2t)/2))."""
    facts = {"feasible": np.zeros(d)}
    for at in (1, 2, 10, 500):
        found = bound("steiner", at, facts=facts, domain=bridle.Ball(d), horizon=500)
        same(found, ccv=G * D * min(d / 2, sqrt(d * log(2 * at) / 2)))
    if d == 2:
        crowded = bound("steiner", 500, facts={**facts, "constraints": 2}, domain=bridle.Ball(2), horizon=500)
        assert "may have no room for all of them" in crowded.why
        alone = bridle.policy("steiner", bridle.Ball(2), horizon=500).bound({"lipschitz": G, "diameter": D, **facts}, 500)
        same(alone, ccv=G * D)  # where nobody says how many there are it is one a round
        assert (
            bound("steiner", 500, facts=facts, domain=bridle.Box([-1.0, -1.0], [1.0, 1.0]), horizon=500).why
            == "the policy's domain is not the problem's"
        )
    three = bound("steiner", 500, facts={"feasible": np.zeros(3)}, domain=bridle.Ball(3), horizon=500)
    assert three.why == "the distance travelled is bounded for the exact Steiner point, not for the mean over 40 directions"


# --- what holds for all of them --------------------------------------------------------------------------------------------------------

ON_A_SIMPLEX = [name for name in bridle.policies.names() if bridle.policies.entry(name).domains == ("simplex",)]
ALL = [name for name in bridle.policies.names() if name not in (*ON_A_SIMPLEX, "steiner", "ftpl", "rate")]


def anything(name):
    """Settings that every policy needs, where it needs them."""
    wanted = {parameter.name for parameter in bridle.policies.parameters(name)}
    given = {"slater": 1.1, "window": 1.0} if name in ("hutchinson2025", "liakopoulos2019") else {}
    given = {key: value for key, value in given.items() if key in wanted}
    if name == "anytime":
        given = {"lipschitz": None, "bound": None}
    if name == "ons":
        given = {"exp_concavity": 0.2}
    fixed = name in ("hutchinson2025", "yi2021", "yi2021-dynamic", "yu2020")
    return given, {
        "time_varying": not fixed,
        "slater": 1.1 if name == "hutchinson2025" else None,
        "V": 3.0,
        "shortfall": 0.0,
        "below": 0.0,
        "observed_cost": 0.0,
    }


@pytest.mark.parametrize("name", ALL)
def test_the_trivial_bound_is_never_exceeded(name):
    given, facts = anything(name)
    most = G * (BALL.diameter() if name in ("bandit1", "bandit2") else D)  # these two take the domain's own diameter
    for at in (1, 2, 3):
        found = bound(name, at, facts=facts, **given)
        for number in (found.regret, found.ccv, found.soft):
            assert number is None or number <= most * at * (1 + 1e-12)
    assert bound(name, 1, facts=facts, **given).why in ("", "Algorithm 2 has no costs and bounds violation over intervals")
    one = bound(name, 1, facts=facts, **given)
    if name not in ("sinha2024-ocs", "sinha2024-strong", "guo2022-strong", "vaze2025-strong"):  # whose first round is better than that
        assert one.regret == pytest.approx(most)
    if name not in ("liakopoulos2019", "yu2020", "bandit1"):  # never above F
        assert all(number == pytest.approx(most) for number in (one.ccv, one.soft) if number is not None)
    else:
        assert (one.ccv, one.soft) == ((pytest.approx(F_), None) if name == "bandit1" else (None, pytest.approx(F)))


@pytest.mark.parametrize("name", ALL)
def test_a_bound_grows_with_rounds_and_constants(name):
    given, facts = anything(name)

    def numbers(**more):
        at = more.pop("at", t)
        found = bound(name, at, facts={**facts, **more}, **given)
        return [value for value in (found.regret, found.ccv, found.soft, found.interval) if value is not None]

    base = numbers()
    assert base
    for more in ({"at": t + 5000}, {"lipschitz": 1.6}, {"diameter": 2.2}):
        assert all(b >= a * (1 - 1e-12) for a, b in zip(base, numbers(**more), strict=True)), more


@pytest.mark.parametrize(
    "name", [name for name in ALL if name not in ("ogd", "adagrad", "adaftrl", "ons", "sinha2024-ocs", "liakopoulos2019")]
)
def test_every_theorem_says_which_assumption_fails(name):
    given, facts = anything(name)
    whys = {
        "a cost or a constraint is not convex": {"convex": False},
        "the problem's Lipschitz constant or diameter is not known": {"lipschitz": None},
        "no action is known to satisfy every constraint": {"feasible": None},
    }
    for why, broken in whys.items():
        found = bound(name, facts={**facts, **broken}, **given)
        assert found == bridle.core.Bound(why=why)
    unknown = bound(name, facts={**facts, "diameter": None}, **given)
    assert unknown.why == "the problem's Lipschitz constant or diameter is not known"
    if bridle.policies.entry(name).strongly_convex:
        assert bound(name, facts={"modulus": 0.5}, **given).why == "the costs' modulus is 0.5, less than the 0.6 the policy was told"
        assert bound(name, facts={"modulus": 0.0}, **given).why == "the costs are not strongly convex"
        assert bound(name, facts={"modulus": 0.6}, **given).why == ""
    if "horizon" in {parameter.name for parameter in bridle.policies.parameters(name)}:
        assert bound(name, T + 1, facts=facts, **given).why == f"round {T + 1} is past the policy's horizon of {T}"
        assert "horizon" not in bound(name, T, facts=facts, **given).why


def test_the_constants_of_a_window():
    """excess: 0, F floor(K/2), the given one (not below 0); and what is missing, in words."""
    from bridle.policies.common import excess

    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": 1.5}
    assert excess({**facts, "feasible": np.zeros(2), "window": 9}) == 0.0
    assert [excess({**facts, "window": K}) for K in (1, 2, 3, 10)] == [0.0, 1.5, 1.5, 7.5]
    assert (excess({**facts, "excess": 0.7, "window": 9}), excess({**facts, "excess": -0.7})) == (0.7, 0.0)
    assert excess(facts) == "neither a feasible action, nor a window, nor the least static violation is known"
    assert excess({"lipschitz": 1.0, "diameter": 2.0}) == "the largest |g| is not known"
    assert excess({**facts, "convex": False}) == "a cost or a constraint is not convex"

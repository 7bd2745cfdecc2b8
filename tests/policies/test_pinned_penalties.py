"""The theorems of penalties, proximal steps and `anytime` at fixed numbers, as in `test_pinned_bounds`, also with a session's costs.

Step sizes are arrays over the rounds, and every sum of a proof is taken over them: by parts where the proof does. What the policy is told
(G_, D_, MU_) differs from what is true.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle.core import Curvature

G, D, F, MU = 1.5, 2.2, 1.9, 0.7
G_, D_, MU_ = 2.0, 2.5, 0.6
T, t = 40_000, 30_000
S = np.arange(1.0, t + 1.0)
BALL = bridle.Ball(2)
FACTS = {
    "lipschitz": G, "diameter": D, "bound": F, "constraints": 1, "convex": True, "affine": True, "time_varying": True,
    "feasible": np.zeros(2), "modulus": MU, "slater": None,
}  # fmt: skip
REGULAR = Curvature(t, 0.0, t, 0.0, 1.0)
VARIED = Curvature(20_000.0, 300.0, 15_000.0, 14_000.0, 0.6)
"""Of 30,000 rounds 20,000 had a cost, 300 others a violation; moduli add up to 15,000 times the told one, at least to 0.6 a cost."""


def bound(name, facts=None, at=t, **settings):
    return bridle.policy(name, BALL, **settings).bound({**FACTS, **(facts or {})}, at)


def same(found, at=t, **expected):
    """Every number of the bound is the expected one, there are no others, and none is the trivial one."""
    assert found.why == ""
    numbers = {key: float(value) for key, value in found._asdict().items() if key != "why" and value is not None}
    assert numbers == pytest.approx(expected, rel=1e-9)
    assert all(number < 0.999 * G * D * at for key, number in numbers.items() if key != "squared")


def by_parts(E, steps):
    """The sum of steps_s (E_s - E_{s-1}), E_0 = 0."""
    return float(np.sum(np.diff(E, prepend=0.0) * steps))


# --- penalties -------------------------------------------------------------------------------------------------------------------------


def penalty(eta, sigma, k, strong, slater=None, behind=None):
    """Base = m sum eta + D^2/(2 eta_t), m = (k+1) G^2/2, a = 1 - m/sigma, E = GDt + Base; CCV sqrt(sigma sum eta E/a), squares A/a."""
    m = (k + 1) * G**2 / 2
    a = 1 - m / sigma
    base = m * np.cumsum(eta) + (0.0 if strong else D**2 / (2 * eta))
    E = (G * D * S if behind is None else behind) + base
    A = sigma * by_parts(E, eta)
    ccv = sqrt(sigma * eta.sum() * E[-1] / a)
    return {"regret": base[-1], "ccv": ccv if slater is None else min(ccv, A / slater), "squared": A / a}


@pytest.mark.parametrize("slater", [None, 0.9])
@pytest.mark.parametrize("k", [1, 3])
def test_yuan2018(k, slater):
    """sigma = (k+1) G'^2; eta = D'/(G' sqrt(k+1)) T^-b, or 1/(mu s)."""
    facts, sigma = {"constraints": k, "slater": slater}, (k + 1) * G_**2
    told = {"lipschitz": G_, "constraints": k}
    for b in (0.5, 0.6):
        eta = np.full(t, D_ / (G_ * sqrt(k + 1) * T**b))
        same(bound("yuan2018", facts, horizon=T, diameter=D_, exponent=b, **told), **penalty(eta, sigma, k, False, slater))
    same(bound("yuan2018", facts, horizon=T, step=0.01, **told), **penalty(np.full(t, 0.01), sigma, k, False, slater))
    strong = penalty(1 / (MU_ * S), sigma, k, True, slater)
    same(bound("yuan2018-strong", facts, modulus=MU_, **told), **strong)
    assert slater is None or strong["ccv"] < penalty(1 / (MU_ * S), sigma, k, True)["ccv"]


def test_yuan2018_says_what_it_needs():
    why = bound("yuan2018", horizon=T, lipschitz=1.0).why  # m/sigma = 1.5^2 / 2 above 1
    assert why == "the true Lipschitz constant is 1.5: too far above the one the policy was told"
    assert bound("yuan2018", {"lipschitz": 1.4}, horizon=T, lipschitz=1.0).why == ""  # 1.4^2 / 2 below 1


@pytest.mark.parametrize("slater", [None, 0.9])
def test_yi2023(slater):
    """k = 1, sigma = 2 G'^2; alpha_s = D'/(2 G' s^c), D'/(sqrt(2) G' T^c), or 1/(mu s)."""
    facts, sigma = {"slater": slater}, 2 * G_**2
    told = {"lipschitz": G_, "diameter": D_}
    for c in (0.5, 0.3):
        same(bound("yi2023", facts, exponent=c, **told), **penalty(D_ / (2 * G_ * S**c), sigma, 1, False, slater))
        alpha = np.full(t, D_ / (sqrt(2) * G_ * T**c))
        same(bound("yi2023", facts, exponent=c, horizon=T, **told), **penalty(alpha, sigma, 1, False, slater))
    same(bound("yi2023", facts, step=0.7, **told), **penalty(0.7 / np.sqrt(S), sigma, 1, False, slater))
    same(bound("yi2023-strong", facts, modulus=MU_, lipschitz=G_), **penalty(1 / (MU_ * S), sigma, 1, True, slater))


def prox(alpha, sigma, strong):
    """R = (G^2/2) sum alpha + D^2/alpha_t, E = GDs + R_s, squares 2 sigma sum alpha_s (E_s - E_{s-1}), CCV sqrt(t squares)."""
    R = G**2 / 2 * np.cumsum(alpha) + (0.0 if strong else D**2 / alpha)
    squared = min(2 * sigma * by_parts(G * D * S + R, alpha), (G * D) ** 2 * t)
    return {"regret": R[-1], "ccv": sqrt(t * squared), "squared": squared}


def test_yi2023_prox():
    """sigma = G'^2; alpha_s = D'/(G' s^c), sqrt(2) D'/(G' T^c), or 2/(mu s)."""
    told = {"lipschitz": G_, "form": "prox"}
    same(bound("yi2023", {"slater": 0.9}, diameter=D_, exponent=0.6, **told), **prox(D_ / (G_ * S**0.6), G_**2, False))
    alpha = np.full(t, sqrt(2) * D_ / (G_ * T**0.6))
    same(bound("yi2023", horizon=T, diameter=D_, exponent=0.6, **told), **prox(alpha, G_**2, False))
    same(bound("yi2023-strong", modulus=MU_, **told), **prox(2 / (MU_ * S), G_**2, True))
    assert bound("yi2023", lipschitz=1.4, form="prox").why == "the policy was told too small a Lipschitz constant"
    assert bound("yi2023", lipschitz=1.5, form="prox").why == ""


@pytest.mark.parametrize("kappa", [0.5, 0.7])
def test_yi2022(kappa):
    """S = G^2 sum alpha, R = S/2 + (GD)^2 sum gamma + D^2/(2 alpha_t), CCV S + sqrt(2 (S + sum beta)(GDt + R)); gamma_0 = 1/(G'D')."""
    told, gamma = {"lipschitz": G_, "diameter": D_, "exponent": kappa}, 1 / (G_ * D_) * S ** (kappa - 1)
    beta = G_ * D_ * S**-kappa
    for alpha, strong in ((D_ / (G_ * S**kappa), False), (1 / (MU_ * S), True), (0.4 / S**kappa, False)):
        A = G**2 * alpha.sum()
        R = A / 2 + (G * D) ** 2 * gamma.sum() + (0.0 if strong else D**2 / (2 * alpha[-1]))
        ccv = A + sqrt(2 * (A + beta.sum()) * (G * D * t + R))
        about = {"modulus": MU_} if strong else {"step": 0.4} if alpha[0] == 0.4 else {}
        same(bound("yi2022", **told, **about), regret=R, ccv=ccv)
    found = bound("yi2022", {"curvature": VARIED}, modulus=MU_, **told)
    A = G**2 * float(np.sum(1 / (MU_ * S)))
    R = A / 2 + (G * D) ** 2 * gamma.sum() + MU_ * D**2 / 2 * 14_000
    E = G * D * 20_000 + MU_ * D**2 / 2 * 15_000 + R
    same(found, regret=R, ccv=A + sqrt(2 * (A + beta.sum()) * E))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("c", "mu"), [(0.5, 0.0), (0.8, 0.0), (0.0, 0.0), (1.0, MU_)])
def test_yi2021(c, mu, k):
    """R = (G^2/2) sum alpha + D^2/alpha_t, U = sqrt(2 (GDs + R_s)), 1/gamma_{s+1} = sqrt(2k) G' sqrt(alpha_s);
    CCV = sum_{s<t-1} U_s (1/gamma_{s+1} - 1/gamma_{s+2}) + U_{t-1}/gamma_t."""
    about = {"modulus": mu} if mu else {"exponent": c, "diameter": D_}
    alpha = 2 / (mu * S) if mu else sqrt(2) * D_ / (G_ * S**c)
    R = G**2 / 2 * np.cumsum(alpha) + (0.0 if mu else D**2 / alpha)
    U, inverse = np.sqrt(2 * (G * D * S + R)), sqrt(2 * k) * G_ * np.sqrt(alpha)
    ccv = float(np.sum(U[: t - 2] * (inverse[: t - 2] - inverse[1 : t - 1]))) + U[t - 2] * inverse[t - 2]
    fixed = {"time_varying": False, "constraints": k}
    found = bound("yi2021", fixed, lipschitz=G_, constraints=k, **about)
    if c == 0.0:
        assert found.ccv == pytest.approx(min(ccv, G * D * t))
    else:
        same(found, regret=R[-1], ccv=ccv)
    one = bound("yi2021", {**fixed, "bound": None}, 1, lipschitz=G_, constraints=k, **about)
    assert one.ccv == pytest.approx(min(sqrt(k) * G * D, G * D))
    two = bound("yi2021", fixed, 2, lipschitz=G_, constraints=k, **about)
    assert two.ccv == pytest.approx(min(U[0] * inverse[0], 2 * G * D))


def test_yi2021_with_a_sessions_costs():
    alpha, fixed = 2 / (MU_ * S), {"time_varying": False, "curvature": VARIED}
    half = MU_ * D**2 / 2
    R = G**2 / 2 * np.cumsum(alpha) + half * 14_000
    U, inverse = np.sqrt(2 * (G * D * S + half * 15_000 + R)), sqrt(2) * G_ * np.sqrt(alpha)
    ccv = float(np.sum(U[: t - 2] * (inverse[: t - 2] - inverse[1 : t - 1]))) + U[t - 2] * inverse[t - 2]
    same(bound("yi2021", fixed, lipschitz=G_, modulus=MU_), regret=R[-1], ccv=ccv)


def test_yi2021_says_what_it_needs():
    fixed = {"time_varying": False}
    assert bound("yi2021", lipschitz=G_).why == "the constraints change from round to round"
    assert bound("yi2021", {**fixed, "affine": False}, lipschitz=G_).why == "a constraint is not affine: the bound needs form='function'"
    assert bound("yi2021", {**fixed, "affine": False}, lipschitz=G_, form="function").why == ""
    assert bound("yi2021", fixed, lipschitz=1.49).why == "the policy was told too small a Lipschitz constant"
    assert bound("yi2021", fixed, lipschitz=1.5).why == ""


def recoo(alpha, initial, e, pull):
    """R = sum G^2/(4 alpha) + pull, E = GDs + R_s; after = sum (E_s - E_{s-1}) / (initial s^(1+e)),
    CCV = after + G sqrt(2 (E_t + sum G^2/(4 alpha)) sum 1/alpha)."""
    quarter = np.cumsum(G**2 / (4 * alpha))
    R = quarter + pull
    E = G * D * S + R
    after = by_parts(E, 1 / (initial * S ** (1 + e)))
    return R[-1], after, after + G * sqrt(2 * (E[-1] + quarter[-1]) * np.sum(1 / alpha))


@pytest.mark.parametrize(("initial", "e"), [(1.0, 0.5), (3.0, 0.2)])
def test_guo2022(initial, e):
    """alpha_s = sqrt(s)/(2 step), step = D'/(sqrt(2) G'), D^2 alpha_t paid; or mu s/2 and nothing. Fixed: G D + after."""
    about = {"initial": initial, "exponent": e, "diameter": D_}
    cases = {"guo2022": np.sqrt(S) * G_ / (sqrt(2) * D_), "guo2022-strong": MU_ * S / 2}
    for name, alpha in cases.items():
        told = {"modulus": MU_} if name == "guo2022-strong" else {"lipschitz": G_}
        R, after, ccv = recoo(alpha, initial, e, 0.0 if name == "guo2022-strong" else D**2 * alpha)
        same(bound(name, **told, **about), regret=R, ccv=ccv)
        same(bound(name, {"time_varying": False}, **told, **about), regret=R, ccv=G * D + after)
        same(bound(name, {"time_varying": False, "affine": False}, **told, **about), regret=R, ccv=ccv)
        same(bound(name, {"time_varying": False, "affine": False}, form="function", **told, **about), regret=R, ccv=G * D + after)
    assert bound("guo2022", lipschitz=G_, step=0.5).regret == pytest.approx(recoo(np.sqrt(S), 1.0, 0.5, D**2 * np.sqrt(S))[0])


@pytest.mark.parametrize(("clip", "k"), [(False, 1), (False, 2), (True, 2)])
def test_yu2020(clip, k):
    """rho = 2 alpha - gamma^2 k G^2, Regret t G^2/(2 rho) + alpha D^2; Q^2 = 2 ((t-1)(GD + G^2/(2 rho)) + alpha D^2) + k (gamma F)^2,
    with a Slater point (theta + gamma sqrt(k) F)^2 + 2 alpha D^2 + 2c, theta = c/(slater gamma), c = GD + G^2/(2 rho); it is Q/gamma."""
    told_rho = G_ * sqrt(T) / (sqrt(2) * D_)
    alpha, gamma = told_rho, sqrt(told_rho / k) / G_
    rho, most = 2 * alpha - gamma**2 * k * G**2, min(F, G * D) if clip else F
    c = G * D + G**2 / (2 * rho)
    Q = sqrt(2 * ((t - 1) * c + alpha * D**2) + k * (gamma * most) ** 2)
    regret, name = t * G**2 / (2 * rho) + alpha * D**2, "ccv" if clip else "soft"
    fixed, about = (
        {"time_varying": False, "constraints": k},
        {"horizon": T, "lipschitz": G_, "diameter": D_, "constraints": k, "clip": clip},
    )
    same(bound("yu2020", fixed, **about), regret=regret, **{name: Q / gamma})
    theta = c / (0.9 * gamma)
    sharp = sqrt((theta + gamma * sqrt(k) * F) ** 2 + 2 * alpha * D**2 + 2 * c)
    assert sharp < Q
    same(bound("yu2020", {**fixed, "slater": 0.9}, **about), regret=regret, **{name: (Q if clip else sharp) / gamma})
    if not clip:
        same(bound("yu2020", {**fixed, "bound": None}, **about), regret=regret)
        one = bound("yu2020", fixed, 1, **about)
        assert one.soft == pytest.approx(min(sqrt(2 * alpha * D**2 + k * (gamma * F) ** 2) / gamma, F, G * D))
    hand = bound("yu2020", fixed, **{**about, "beta": 3.0, "step": 0.02})
    assert hand.regret == pytest.approx(t * G**2 / (2 * (50 - 9 * k * G**2)) + 25 * D**2)
    assert "beta^2 k G^2 must be below 1 / step; 1 / step - beta^2 k G^2 is -" in bound("yu2020", fixed, **{**about, "beta": 30.0}).why


# --- costs of a session ----------------------------------------------------------------------------------------------------------------


def inverse(seen, p, told=MU_):
    """The sum over the costs of 1/(share mu n)^p."""
    return float(np.sum(1 / (seen.share * told * np.arange(1.0, seen.costs + 1)) ** p))


@pytest.mark.parametrize("slater", [None, 0.9])
@pytest.mark.parametrize("seen", [REGULAR, VARIED])
def test_penalties_with_a_sessions_costs(seen, slater):
    m, sigma = G**2, 2 * G_**2
    a, half = 1 - m / sigma, MU_ * D**2 / 2
    pull = half if seen is VARIED else 0.0
    R = m * inverse(seen, 1) + pull
    moduli = 1 + log(15_000) if seen is VARIED else float(np.sum(1 / S))
    E = G * D * seen.costs + half * seen.moduli + R
    A = sigma * (G * D * inverse(seen, 1) + D**2 / 2 * moduli + m * inverse(seen, 2) + pull / MU_)
    ccv = sqrt(sigma * (inverse(seen, 1) + seen.struck / MU_) * E / a)
    expected = {"regret": R, "ccv": ccv if slater is None else min(ccv, A / slater), "squared": A / a}
    for name in ("yuan2018-strong", "yi2023-strong"):
        same(bound(name, {"curvature": seen, "slater": slater}, lipschitz=G_, modulus=MU_), **expected)


@pytest.mark.parametrize("seen", [REGULAR, VARIED])
def test_the_proximal_penalty_with_a_sessions_costs(seen):
    half = MU_ * D**2 / 2
    pull, moduli = (half, 1 + log(15_000)) if seen is VARIED else (0.0, float(np.sum(1 / S)))
    R = G**2 * inverse(seen, 1) + pull
    squared = 2 * G_**2 * (2 * G * D * inverse(seen, 1) + D**2 * moduli + G**2 / 2 * 4 * inverse(seen, 2) + 2 * pull / MU_)
    same(
        bound("yi2023-strong", {"curvature": seen}, form="prox", lipschitz=G_, modulus=MU_),
        regret=R,
        ccv=sqrt(t * squared),
        squared=squared,
    )


@pytest.mark.parametrize("seen", [REGULAR, VARIED])
def test_guo2022_with_a_sessions_costs(seen):
    q, initial, half = 1.3, 2.0, MU_ * D**2 / 2
    n = np.arange(1.0, seen.costs + 1)
    pull = half if seen is VARIED else 0.0
    quarter = G**2 / 2 * inverse(seen, 1)
    moduli = 1 + (1 - 15_000 ** (1 - q)) / (q - 1) if seen is VARIED else float(np.sum(S**-q))
    after = np.sum((G * D + G**2 / (2 * MU_ * seen.share * n)) / (seen.share * n) ** q) + pull + half * moduli
    E = G * D * seen.costs + half * seen.moduli + 2 * quarter + pull
    ccv = after / initial + G * sqrt(2 * E * 2 * (inverse(seen, 1) + seen.struck / MU_))
    same(bound("guo2022-strong", {"curvature": seen}, modulus=MU_, initial=initial, exponent=q - 1), regret=quarter + pull, ccv=ccv)


@pytest.mark.parametrize("seen", [REGULAR, VARIED])
def test_vaze2025_with_a_sessions_costs(seen):
    steps, squares = inverse(seen, 1), inverse(seen, 2)
    R = G**2 / 2 * steps + (MU_ * D**2 / 2 if seen is VARIED else 0.0)
    W = D**2 + 2 * G * D * steps + G**2 * squares
    same(bound("vaze2025-strong", {"curvature": seen}, modulus=MU_), regret=R, ccv=G * (G * steps + sqrt((seen.costs + seen.struck) * W)))


@pytest.mark.parametrize("seen", [REGULAR, VARIED._replace(struck=3.0)])
def test_algorithm_1_with_a_sessions_costs(seen):
    """Q^2 + V beta Regret <= c (V + 2Q)^2 + 4 b Q^2 + V beta P: its largest regret, and its largest Q where Regret >= -r."""
    beta, V, half = 0.4, 2000.0, MU_ * D**2 / 2
    c, b = beta * G**2 * inverse(seen, 1) / (2 * V), beta * G**2 * seen.struck / (2 * MU_ * V)
    P = 0.0 if seen is REGULAR else half
    r = G * D * seen.costs + half * seen.moduli
    found = bound("sinha2024-strong", {"curvature": seen}, horizon=T, lipschitz=G_, modulus=MU_, beta=beta, V=V)
    Q = found.ccv * beta
    assert Q**2 - V * beta * r == pytest.approx(c * (V + 2 * Q) ** 2 + 4 * b * Q**2 + V * beta * P)
    trial = np.linspace(0.0, 2000.0, 2_000_001)
    most = np.max(c * (V + 2 * trial) ** 2 + 4 * b * trial**2 + V * beta * P - trial**2) / (V * beta)
    assert found.regret == pytest.approx(most, rel=1e-7)
    assert found.ccv < G * D * t
    crowded = seen._replace(struck=1e4, short=1.0)
    assert (
        "V = 2e+03 is too small"
        in bound("sinha2024-strong", {"curvature": crowded}, horizon=T, lipschitz=G_, modulus=MU_, beta=beta, V=V).why
    )


# --- anytime ---------------------------------------------------------------------------------------------------------------------------


def anytime(R, V, lam, theta, c=1.0, behind=G * D * t, scale=G * G):
    """Regret R + c theta/V; Q = ln((1 + V (R + behind)/c)/(1 - theta))/lam, squares scale Q, CCV sqrt(t squares)."""
    Q = log((1 + V * (R + behind) / c) / (1 - theta)) / lam
    return {"regret": R + c * theta / V, "ccv": sqrt(t * scale * Q), "squared": scale * Q}


@pytest.mark.parametrize("V", [0.3, 40.0])
def test_anytime(V):
    """kappa = 2 D'^2, lam = 1/(2 kappa), theta = 1/2, R = sqrt(2t) D' G."""
    lam, R = 1 / (4 * D_**2), sqrt(2 * t) * D_ * G
    same(bound("anytime", V=V, diameter=D_), **anytime(R, V, lam, 0.5))
    same(bound("anytime", {"V": V}, diameter=D_), **anytime(R, V, lam, 0.5))
    same(bound("anytime", {"regret": 2.0}, V=V, diameter=D_), **anytime(R, V, lam, 0.5, behind=0.0))
    same(bound("anytime", {"regret": -7.0}, V=V, diameter=D_), **anytime(R, V, lam, 0.5, behind=7.0))
    same(bound("anytime", V=V, diameter=D_, lam=0.03), **anytime(R, V, 0.03, 2 * D_**2 * 0.03))
    P = 3.0
    wide = sqrt(D_**2 + 2 * D_ * P)
    same(bound("anytime", V=V, diameter=D_, drift=P), **anytime(sqrt(2 * t) * wide * G, V, 1 / (4 * wide**2), 0.5))
    same(bound("anytime", V=V, diameter=D_, form="value", lipschitz=G_),
         **anytime(R, V, 1 / (4 * (D_ * G_) ** 2), 0.5, scale=1.0))  # fmt: skip


def test_anytime_with_a_modulus():
    """R = G^2 (1 + ln t)/mu, theta twice kappa lam, lam = 1/(4 kappa)."""
    V, lam = 7.0, 1 / (8 * D_**2)
    R = G**2 * (1 + log(t)) / MU_
    same(bound("anytime", V=V, diameter=D_, modulus=MU_), **anytime(R, V, lam, 0.5))
    part = bound("anytime", at=t - 0.5, V=V, diameter=D_, modulus=MU_)  # a part of a round counts as one
    assert part.regret == pytest.approx(R + 0.5 / V, rel=1e-9)
    half = MU_ * D**2 / 2
    same(bound("anytime", {"curvature": REGULAR}, V=V, diameter=D_, modulus=MU_),
         **anytime(R, V, lam, 0.5, behind=(G * D + half) * t))  # fmt: skip
    for H, before in ((15_000 * MU_, 0.0), (14_990 * MU_, 10.0)):
        R = G**2 * (1 + log(20_000)) * (1 + before) / (0.6 * MU_) + half
        same(bound("anytime", {"curvature": VARIED, "H": H}, V=V, diameter=D_, modulus=MU_),
             **anytime(R, V, lam, 0.5, behind=G * D * 20_000 + half * 15_000))  # fmt: skip


def test_anytime_with_a_margin():
    """w = r G/slater costs w G D a round; the CCV is at most G Q/(4 r), or sqrt(t G^2 Q); regret cannot be known ahead."""
    V, r, slater, lam, R = 2.0, 0.3, 0.9, 1 / (4 * D_**2), sqrt(2 * t) * D_ * G
    for about in ({}, {"regret": 5.0}):
        found = bound("anytime", {"slater": slater, **about}, V=V, diameter=D_, margin=r)
        plain = anytime(R, V, lam, 0.5)
        Q = plain["squared"] / G**2
        assert found.regret == pytest.approx(min(R + r * G / slater * G * D * t + 0.5 / V, G * D * t))
        assert found.ccv == pytest.approx(G * Q / (4 * r))
        assert found.squared == pytest.approx(plain["squared"])
        assert found.ccv < plain["ccv"]
    small = bound("anytime", {"slater": slater}, V=V, diameter=D_, margin=1e-5)
    assert small.ccv == pytest.approx(anytime(R, V, lam, 0.5)["ccv"])
    assert small.regret == pytest.approx(R + 1e-5 * G / slater * G * D * t + 0.5 / V)
    why = "no action is known to satisfy every constraint by the margin times the Lipschitz constant (slater = 0.4)"
    assert bound("anytime", {"slater": 0.4}, V=V, diameter=D_, margin=r).why == why
    assert bound("anytime", {"slater": 0.45}, V=V, diameter=D_, margin=r).why == ""


def test_anytime_with_a_margin_where_nothing_has_a_slope():
    """G = 0: no action is better or worse than another, and no Slater point is needed."""
    found = bound("anytime", {"lipschitz": 0.0}, V=2.0, diameter=D_, margin=0.3)
    assert (found.regret, found.ccv, found.squared, found.why) == (0.0, 0.0, 0.0, "")


def test_anytime_with_self_bounding_constraints():
    """c = 1/2, kappa = 4 D'^2 M, and Q itself bounds the CCV."""
    V, M = 3.0, 0.8
    lam, R = 1 / (8 * D_**2 * M), sqrt(2 * t) * D_ * G
    Q = log((1 + V * (R + G * D * t) / 0.5) / 0.5) / lam
    same(bound("anytime", {"smoothness": 0.7}, V=V, diameter=D_, form="self-bounding", smoothness=M), regret=R + 0.25 / V, ccv=Q)
    why = "the constraints are not known to be self-bounding with the smoothness the policy was told"
    assert bound("anytime", V=V, diameter=D_, form="self-bounding", smoothness=M).why == why
    assert bound("anytime", {"smoothness": 0.81}, V=V, diameter=D_, form="self-bounding", smoothness=M).why == why
    assert bound("anytime", {"smoothness": M}, V=V, diameter=D_, form="self-bounding", smoothness=M).why == ""
    assert bound("anytime", {"smoothness": M}, 1, V=V, diameter=D_, form="self-bounding", smoothness=M).ccv == G * D  # Q alone is 186


def test_anytime_before_V_is_known():
    """Without V: Regret R + D' G/20, as V >= 10/(D' G); no bound on the CCV. V = 0: no cost had a slope, nothing is proved."""
    found = bound("anytime", diameter=D_)
    assert found.regret == pytest.approx(sqrt(2 * t) * D_ * G + 0.5 * D_ * G / 10)
    assert (found.ccv, found.why) == (None, "the violation bound depends on V, which the policy takes from the first gradient")
    parted = bound("anytime", at=90, diameter=D_, window=40)
    assert parted.regret == pytest.approx(3 * (sqrt(2 * 40) * D_ * G + 0.5 * D_ * G / 10))
    assert (parted.ccv, parted.squared, parted.why) == (None, None, found.why)
    none = bound("anytime", {"V": 0.0}, diameter=D_)
    assert none.regret == G * D * t
    assert bound("anytime", V=1.0, diameter=2.1).why == "the domain's diameter is 2.2, more than the policy was told"
    assert (
        bound("anytime", V=1.0, diameter=D_, form="value", lipschitz=1.4).why
        == "the Lipschitz constant is 1.5, more than the policy was told"
    )
    assert bound("anytime", {"diameter": 2.0}, V=1.0, lam=0.2).why == "lam = 0.2 is too large for a proof: kappa*lam = 1.6 must be below 1"
    assert (
        bound("anytime", {"diameter": 2.0}, V=1.0, lam=0.07, modulus=MU_).why
        == "lam = 0.07 is too large for a proof: kappa*lam = 1.12 must be below 1"
    )
    assert bound("anytime", {"diameter": 2.0}, V=1.0, lam=0.07).why == ""
    assert "kappa*lam = 1 must be below 1" in bound("anytime", {"diameter": 2.0}, V=1.0, lam=0.125).why
    assert bound("anytime", {"modulus": 0.5}, V=1.0, diameter=D_, modulus=MU_).why.startswith(
        "the costs' modulus is 0.5, less than the 0.6"
    )
    assert bound("anytime", V=1.0, diameter=D, form="value", lipschitz=G).why == ""


def test_anytime_with_few_costs():
    """No cost at all counts as one; without H all moduli may have come before the first gradient; H above them changes nothing."""
    V, half = 7.0, MU_ * D**2 / 2
    for costs, H, before in ((0.0, 3.0, 0.0), (1.0, 3.0, 0.0), (2.0, 3.0, 0.0), (2.0, None, 1.5), (2.0, 9.0, 0.0)):
        seen = Curvature(costs, 5.0, 1.5, 4.0, 0.8)
        R = G**2 * (1 + log(max(costs, 1.0))) * (1 + before) / (0.8 * MU_) + half
        known = {"curvature": seen} | ({} if H is None else {"H": H * MU_})
        assert bound("anytime", known, V=V, diameter=D_, modulus=MU_).regret == pytest.approx(R + 0.5 / V)


def test_squares_are_at_most_those_of_the_trivial_bound():
    for name, about in (("yi2023", {"form": "prox"}), ("yi2023", {}), ("yuan2018", {"horizon": T})):
        one = bound(name, at=1, lipschitz=G_, **about)
        assert (one.ccv, one.squared) == pytest.approx((G * D, (G * D) ** 2))

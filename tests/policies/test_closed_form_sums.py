"""Sums in closed form: never below the sum they stand for, hardly above it, and no work however many terms there are."""

from __future__ import annotations

import time
import tracemalloc
from math import fsum, sqrt

import numpy as np
import pytest

import bridle
from bridle import policies
from bridle.policies import _sinha2024_ocs as sinha2024_ocs
from bridle.policies.common import climb, harmonic, powers, smooth_sum
from bridle.policies.entry import GIVEN

TIMES = (1, 2, 3, 31, 32, 33, 100, 511, 512, 513, 514, 2_000, 30_001, 100_000)
FINE = 1e-9
"""How far above the true sum a bound may be, relatively."""


def sums(terms) -> dict[int, float]:
    """The sum of the first t terms, exactly, for every t of TIMES."""
    values = list(terms(np.arange(1.0, TIMES[-1] + 1.0)))
    found, total, before = {}, 0.0, 0
    for t in TIMES:
        total, before = fsum([total, *values[before:t]]), t
        found[t] = total
    return found


def check(found: float, true: float, strict: bool, above: float = FINE) -> None:
    """Few terms are summed as they are, to rounding; what stands for many is not below them at all."""
    assert true * (1.0 if strict else 1.0 - 1e-14) <= found <= true * (1.0 + above)


@pytest.mark.parametrize("c", [0.0, 1e-9, 0.1, 0.5, 0.75, 0.999999, 1.0, 1.0000001, 1.5, 2.0, 7.0, 60.0])
def test_sums_of_powers(c):
    for t, true in sums(lambda s: s**-c).items():
        check(float(powers(t, c)), true, t > 32, 1e-12)
        if c == 1.0:
            assert harmonic(t) == powers(t, c)
    several = powers(np.array(TIMES), c)
    np.testing.assert_allclose(several, [powers(t, c) for t in TIMES], rtol=1e-15)
    assert powers(0, c) == 0.0


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_climb_divided_by_powers(p, q):
    true = sums(lambda s: np.concatenate([[1.0], -np.expm1(p * np.log1p(-1.0 / s[1:])) * s[1:] ** (p - q)]))
    for t in TIMES:
        check(climb(t, p, q), true[t], t > 513 and p > 0.0)


def test_a_smooth_sum_between_regimes():
    """A sum of powers whose largest changes on the way, a root of it, and a start that is not 1."""

    def f(s):
        return np.sqrt(1e-3 * s + 30.0 * s**0.25 + 5.0 / s) / (1.0 + s)

    true = sums(f)
    for t in TIMES:
        check(smooth_sum(f, 1.0, t), true[t], t > 512)
    assert smooth_sum(f, 3.0, 2.0) == 0.0
    assert true[100_000] - true[100] <= smooth_sum(f, 101.0, 1e5) <= (true[100_000] - true[100]) * (1 + FINE)


# --- the bounds, against the sums of their proofs


def rounds(t: int):
    """1, ..., t, in a precision in which adding up a hundred thousand of them does not show."""
    return np.arange(1, t + 1, dtype=np.longdouble)


def abel(E, w) -> float:
    """sum_{t<T} E_t (1/w_t - 1/w_{t+1}) + E_T / w_T."""
    return float(np.sum(E[:-1] * (1.0 / w[:-1] - 1.0 / w[1:])) + E[-1] / w[-1])


def gains(rising, mu: float):
    rise = np.diff(rising, prepend=0.0)
    return np.cumsum(np.where(rise > 0.5 * mu * (1.0 + 1e-12), rise - 0.5 * mu, 0.0))  # the rounding of 2 / mu is no gain


def yi2021(record, G, D, k, t):
    s = rounds(t)
    alpha = record.alpha / s**record.power
    R = 0.5 * G * G * np.cumsum(alpha) + D * D * gains(1.0 / alpha, record.modulus or 0.0)
    after = record.gamma / np.sqrt(alpha)
    gamma = np.concatenate([after[:1], after[:-1]])
    q = np.concatenate([gamma[:1] * sqrt(k) * G * D, np.sqrt(2.0 * (G * D * s + R))[:-1]])
    return float(R[-1]), abel(q, gamma)


def guo2022(record, G, D, k, t):
    s = rounds(t)
    alpha = record.alpha * s**record.power
    inverse = np.cumsum(1.0 / alpha)
    R = 0.25 * G * G * inverse + D * D * gains(alpha, record.modulus or 0.0)
    E = G * D * s + R
    after = abel(E, record.initial * s ** (1.0 + record.exponent))
    return float(R[-1]), after + G * sqrt(2.0 * (E[-1] + 0.25 * G * G * inverse[-1]) * inverse[-1])


def yi2023(record, G, D, k, t):
    s = rounds(t)
    alpha = record.step / s**record.decay
    R = 0.5 * G * G * np.cumsum(alpha) + D * D * gains(1.0 / alpha, record.modulus or 0.0)
    return float(R[-1]), sqrt(t * min(abel(2.0 * (G * D * s + R), 1.0 / (record.sigma * alpha)), (G * D) ** 2 * t))


def jenatton2016(record, G, D, k, t):
    s = rounds(t)
    eta, theta = record.step / s**record.exponent, record.theta / s**record.exponent
    C = D * D / (2.0 * eta[-1]) + np.sum(eta * G * G) + np.sum((G * D) ** 2 / (theta * (s + 1.0)))
    return float(C), sqrt(2.0 * (theta[0] + np.sum(theta)) * (G * D * t + C))


def penalty(record, G, D, k, t):
    """yuan2018 and the projection form of yi2023, with Slater's condition where it is told."""
    s = rounds(t)
    strong, m = record.decay == 1.0, 0.5 * (k + 1.0) * G * G
    eta = record.step / s**record.decay
    base = m * np.cumsum(eta) + (0.0 if strong else 0.5 * D * D / eta)
    E = G * D * s + base
    plain = sqrt(record.sigma * np.sum(eta) * E[-1] / (1.0 - m / record.sigma))
    return float(base[-1]), min(plain, abel(E, 1.0 / (record.sigma * eta)) / SLATER)


SLATER = 0.3
EXPONENTS = (0.1, 0.5, 0.9)
CASES = [
    *(("yi2021", yi2021, {"exponent": c, "step": step}) for c in (0.0, *EXPONENTS, 1.0) for step in (None, 30.0)),
    ("yi2021", yi2021, {"constraints": 3}),
    ("yi2021", yi2021, {"modulus": 0.7}),
    *(("guo2022", guo2022, {"exponent": e}) for e in (0.01, 0.5, 3.0)),
    ("guo2022", guo2022, {"step": 0.01, "initial": 40.0}),
    *(("guo2022-strong", guo2022, {"exponent": e, "modulus": 0.7}) for e in (0.01, 0.5, 3.0)),
    *(("yi2023", yi2023, {"exponent": c, "form": "prox"}) for c in EXPONENTS),
    ("yi2023", yi2023, {"horizon": TIMES[-1], "form": "prox"}),
    ("yi2023-strong", yi2023, {"modulus": 0.7, "form": "prox"}),
    *(("jenatton2016", jenatton2016, {"exponent": b, "clip": True}) for b in EXPONENTS),
    *(("yi2023", penalty, {"exponent": c}) for c in EXPONENTS),
    ("yi2023", penalty, {"horizon": TIMES[-1]}),
    ("yi2023-strong", penalty, {"modulus": 0.7}),
    ("yuan2018", penalty, {"horizon": TIMES[-1], "exponent": 0.3, "constraints": 2}),
    ("yuan2018-strong", penalty, {"modulus": 0.7, "constraints": 2}),
]


@pytest.mark.parametrize(("name", "proof", "given"), CASES, ids=lambda part: part if isinstance(part, str) else "")
def test_a_bound_is_its_proofs_sum_and_not_below(name, proof, given):
    G, D = 1.3, 2.0
    known = {"lipschitz": G, "horizon": TIMES[-1]}
    needed = {p.name: known[p.name] for p in policies.parameters(name) if p.required and p.name in known}
    policy = bridle.policy(name, bridle.Ball(2), **{**needed, **given})
    k = len(getattr(policy.record, "each", (1,)))
    facts = {
        "lipschitz": G, "diameter": D, "feasible": np.zeros(2), "convex": True, "affine": True, "constraints": k, "modulus": 0.7,
        "time_varying": name != "yi2021", "slater": SLATER if proof is penalty else None,
    }  # fmt: skip
    informative = 0
    for t in TIMES:
        bound = policy.bound(facts, t)
        assert not bound.why
        for found, true in zip((bound.regret, bound.ccv), proof(policy.record, G, D, k, t), strict=True):
            check(found, min(true, G * D * t), False)
            informative += true < G * D * t
    assert informative > 2, "the trivial bound G D t must not hide what is compared"


@pytest.mark.parametrize(("P", "F", "k"), [(0.0, 1.0, 1), (0.02, 0.5, 2), (3.0, 1.0, 1), (100.0, 1.0, 3), (1e4, 3.0, 2)])
@pytest.mark.parametrize("a", [0.01, 1.0, 100.0])
def test_the_queue_bound_is_its_recursion_and_not_below(a, P, F, k):
    c, z = 2.0 * k * P * F, 0.0
    for t in range(1, TIMES[-1] + 1):
        z = a / 2.0 + sqrt(a * a / 4.0 + z * z + c * t)
        if t in TIMES:
            b = a * sqrt(t) + sqrt(k) * P
            true = min(0.5 * (a * sqrt(t) + sqrt(a * a * t + 4.0 * c * t)), 0.5 * (b + sqrt(b * b + 2.0 * c * t)), sqrt(a * z + c * t))
            assert true * (1 - 1e-14) <= sinha2024_ocs.queue_bound(a, F, k, P, t) <= true * (1 + 2e-4)
    assert sinha2024_ocs.queue_bound(0.0, F, k, 0.0, 1000) == 0.0


@pytest.mark.parametrize("name", policies.names())
def test_a_bound_after_a_billion_rounds_takes_no_time_and_no_memory(name):
    item = policies.entry(name)
    about = {"dim": 2, "domain": "simplex" if item.domains == ("simplex",) else "box", "modulus": 0.5 * item.strongly_convex}
    any_value = {"horizon": 10**9, "lipschitz": 2.0, "bound": 2.0}
    variants = [variant for variant in item.variants if "domains" not in variant.changes]
    told = [{each.parameter: any_value[each.parameter] if each.value is GIVEN else each.value} for each in variants]
    for given in ({}, *told):
        if not item.with_settings(given).time_varying:
            problem = bridle.problem("fixed", horizon=50, **about)
        else:
            problem = bridle.problem("halfspaces", horizon=50, constraints=2 if item.rewards else 1, **about)
        # A polygon has room for as many corners as there are rounds: its bound is asked for where it was made for.
        t = 50 if name == "steiner" else 10**9
        policy = bridle.policy_for(name, problem, **given, **({"horizon": t} if "horizon" in item.needs else {}))
        policy.bound(problem.constants, t)
        tracemalloc.start()
        began = time.perf_counter()
        shown = {
            "observed_rounds": t,
            "observed_regret": 3.0,
            "observed_violation": 2.0,
            "shortfall": 0.1,
            "below": 0.0,
            "observed_cost": 1.0,
        }  # where a bound is about what a run shows
        bound = policy.bound({**problem.constants, "rewards": 1.0, "Psi": 1.0, "first": 0.5, **shown}, t)
        seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert any(value is not None for value in bound[:-1]) or name in ("ftpl", "rate") or item.with_settings(given).regret == "-"
        assert peak < 200_000
        assert seconds < 0.1, "which is a hundred times what it takes"

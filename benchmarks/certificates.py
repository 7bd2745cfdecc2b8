"""Tries to break the certificates, and shows how tight they are.

Random streams, a third of them infeasible in the end, some only in the last round, in 1 to 1,000 dimensions: certificates asked for at
random rounds are held against exact programs (`parts.certified_streams`). None may be wrong.

Random trajectories (every kind of domain, sizes and scales from 1e-3 to 1e3, adaptive opponents, streams with one feasible point) must
never show a certified regret below the true regret of a feasible action, nor a contradiction. Planted contradictions must be proved
within 100 rounds.

    python benchmarks/certificates.py [streams] [trajectories] [contradictions] [first seed of the streams]
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import bridle
from bridle.functions import AffineFunction, RoundQuadratic
from parts import certified_streams
from parts.toy import size

KINDS = ("ball", "box", "simplex", "l1", "cut ball", "cut box", "product", "spectrahedron")
POLICIES = ("anytime", "plain", "sinha2024", "practice", "adagrad")


def domain_of(kind: str, d: int, size: float, rng: np.random.Generator):
    middle = size * rng.standard_normal(d)
    a = rng.standard_normal(d)
    return {
        "ball": lambda: bridle.Ball(radius=size, center=middle),
        "box": lambda: bridle.Box(middle - size * rng.uniform(0.1, 1.0, d), middle + size * rng.uniform(0.1, 1.0, d)),
        "simplex": lambda: bridle.Simplex(max(d, 2), mass=size),
        "l1": lambda: bridle.L1Ball(radius=size, center=middle),
        "cut ball": lambda: bridle.Halfspace(a, float(a @ middle) + 0.3 * size, within=bridle.Ball(radius=size, center=middle)),
        "cut box": lambda: bridle.Halfspace(a, float(a @ middle) + 0.2 * size, within=bridle.Box(middle - size, middle + size)),
        "product": lambda: bridle.Product(bridle.Ball(d, radius=size), bridle.Simplex(2, mass=size)),
        "spectrahedron": lambda: bridle.Spectrahedron(2, trace=size),
    }[kind]()


def policy_of(name: str, domain, G: float, T: int):
    if name in ("anytime", "plain"):
        return bridle.policy("anytime", domain, halfspace=name == "anytime")
    if name == "adagrad":
        return bridle.policy("adagrad", domain)
    return bridle.policy("sinha2024", domain, horizon=T, lipschitz=G, preset="practice" if name == "practice" else "theory")


def limit_at(x, u, G: float, D: float, tight: bool, rng: np.random.Generator):
    """A constraint that u satisfies: with `tight` it goes through u."""
    away, a = x - u, rng.standard_normal(len(x))
    if rng.random() < 0.4 and away.any():
        a = away
    if rng.random() < 0.2:
        return RoundQuadratic(G / D, u, np.zeros(len(x)), -(0.0 if tight else 0.01 * G * D * rng.random()))
    a = G * 10.0 ** rng.uniform(-4.0, 0.0) * a / np.linalg.norm(a)
    return AffineFunction(a, -float(a @ u) - (0.0 if tight else float(np.linalg.norm(a)) * D * rng.exponential(0.03)))


def trajectory(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    size, G, T, k = 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-3, 3), int(rng.integers(2, 120)), int(rng.integers(1, 4))
    domain = domain_of(str(rng.choice(KINDS)), int(rng.integers(1, 12)), size, rng)
    D, tight = domain.diameter(), rng.random() < 0.3
    u = domain.project(domain.center() + D * rng.standard_normal(domain.dim) * rng.choice([0.0, 0.1, 1.0]))
    session = bridle.Session(policy_of(str(rng.choice(POLICIES)), domain, G, T))
    seen = []
    for _ in range(T):
        x = session.decide()
        c = rng.standard_normal(domain.dim) if rng.random() < 0.5 or not (x - u).any() else rng.choice([-1.0, 1.0]) * (x - u)
        c *= G * 10.0 ** rng.uniform(-2.0, 0.0) / np.linalg.norm(c)
        cost = AffineFunction(c, 0.0) if rng.random() < 0.8 else RoundQuadratic(G / D, domain.project(x + c), np.zeros(len(x)), 0.0)
        limits = [limit_at(x, u, G, D, tight, rng) for _ in range(k)]
        session.observe(float(cost.value(x)), cost.grad(x), [float(g.value(x)) for g in limits], [g.grad(x) for g in limits])
        seen.append((x, cost, limits))
    others = [domain.project(u + D * 10.0 ** rng.uniform(-4, 0) * rng.standard_normal(len(u))) for _ in range(10)]
    comparators = [u, *(v for v in others if all(g.value(v) <= 0.0 for _, _, limits in seen for g in limits))]
    truth = max(sum(float(cost.value(x)) - float(cost.value(v)) for x, cost, _ in seen) for v in comparators)
    found = session.certificate()
    unit = G * D * T
    if found.conflict is not None:
        return {"contradiction": 1.0, "margin": found.conflict.margin / D, "below": 0.0, "gap": 0.0, "loose": 0.0}
    # The largest cost difference of a quadratic is more than its tangent shows, so only the sign of the gap is a law.
    return {
        "contradiction": 0.0, "below": float(found.regret < truth), "gap": (found.regret - truth) / unit,
        "loose": (found.regret_any - truth) / unit,
    }  # fmt: skip


def contradiction(seed: int) -> int:
    """How many rounds after it was planted a contradiction is proved; -1: before it was planted."""
    rng = np.random.default_rng([seed, 1])
    d, T, planted = int(rng.integers(1, 31)), 500, int(rng.integers(0, 300))
    domain = bridle.Ball(d) if rng.random() < 0.5 else bridle.Box(-1.0, 1.0, dim=d) if rng.random() < 0.5 else bridle.Simplex(d + 1)
    D, n = domain.diameter(), domain.dim
    middle, kind, margin = domain.center(), str(rng.choice(["pair", "family"])), 10.0 ** rng.uniform(-3, -0.7)
    normals = rng.standard_normal((2 if kind == "pair" else n + 1, n))
    normals -= normals.mean(axis=0) if kind == "family" else 0.0
    if kind == "pair":
        normals[1] = -normals[0]
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    session = bridle.Session(policy_of(str(rng.choice(POLICIES)), domain, 1.0, T))
    for t in range(1, T + 1):
        x = session.decide()
        a, b = rng.standard_normal(n), -0.05 * D
        a /= np.linalg.norm(a)
        if t > planted:
            a, b = normals[t % len(normals)], margin * D
        c = rng.standard_normal(n)
        session.observe(0.0, c / np.linalg.norm(c), float(a @ (x - middle)) + b, a)
        ledger = session.read(lambda _, state: state.slow.ledger)
        if ledger is not None and ledger.conflict is not None:
            return t - planted if t > planted else -1
    return T


SIZES = size((10_000, 10_000, 500, 0), (12, 5, 2, 0))


def main() -> None:
    streams, many, planted, first = (int(sys.argv[i]) if len(sys.argv) > i else full for i, full in enumerate(SIZES, 1))
    warnings.simplefilter("ignore", bridle.BridleWarning)
    begun = time.perf_counter()
    outcomes = certified_streams.many(range(first, first + streams), size(1000, 20))
    print(certified_streams.table(outcomes) + f"\n  {time.perf_counter() - begun:.0f} s")
    begun = time.perf_counter()
    rows = [trajectory(seed) for seed in range(many)]
    gaps, loose = (np.array([row[name] for row in rows if not row["contradiction"]]) for name in ("gap", "loose"))
    below, claimed = (int(sum(row[name] for row in rows)) for name in ("below", "contradiction"))
    print(f"{many} trajectories of feasible streams, {time.perf_counter() - begun:.0f} s")
    print(f"  certified regret below the truth: {below}; contradictions claimed: {claimed}")
    print(f"  above the truth, in units of G D T: least {gaps.min():.2e}, median {np.median(gaps):.2e}")
    print(f"  the same without the constraints: median {np.median(loose):.2e}")
    begun = time.perf_counter()
    delays = np.array([contradiction(seed) for seed in range(planted)])
    print(f"{planted} planted contradictions, {time.perf_counter() - begun:.0f} s")
    print(f"  proved before they were there: {(delays < 0).sum()}; later than 100 rounds after: {(delays > 100).sum()}")
    print(f"  rounds until the proof: median {np.median(delays):.0f}, most {delays.max()}")
    if below or claimed or (delays < 0).any() or any(each.wrong for each in outcomes):
        sys.exit("a certificate was wrong")


if __name__ == "__main__":
    main()

"""Games for testing a policy's theorem: an instance inside its assumptions, an opponent that adapts, and what came out.

`outcome(policy, stage)` plays a `bridle.policy(...)` on a stage and gives regret against the stage's feasible point and the violation in
every sense; `ratios(policy, stage)` divides them by `policy.bound(stage.constants, T)`: each must stay at or below 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import bridle
from bridle.core import Round
from bridle.functions import AffineFunction, RoundQuadratic
from helpers.instances import cost_at, moves

SLACK = 0.25
"""Constraints may be slack at the feasible point by up to this times G D (beyond the Slater margin)."""


@dataclass(frozen=True)
class Stage:
    """A domain, a feasible point, k constraints a round (fixed or fresh), linear or strongly convex costs, and true constants."""

    domain: Any
    feasible: np.ndarray
    G: float
    k: int
    T: int
    seed: int
    fixed: bool = False
    slater: float = 0.0
    modulus: float = 0.0
    constants: dict[str, Any] = field(default_factory=dict)


def stage(
    kind: str, d: int, k: int, T: int, seed: int, *, fixed: bool = False, slater: float = 0.0, modulus: float = 0.0, G: float = 1.0
) -> Stage:
    """`slater` and `modulus` are in units of G D and G / D; constraints are affine with gradients of length G."""
    rng = np.random.default_rng([seed, d, k, T])
    middle = 0.3 * rng.standard_normal(d)
    domain = bridle.Ball(radius=0.7, center=middle) if kind == "ball" else bridle.Box(middle - 0.5, middle + rng.uniform(0.2, 0.8, d))
    D = domain.diameter()
    inside = domain.project(middle + D * rng.standard_normal(d))
    feasible = domain.center() + rng.uniform(0.0, 0.8) * (inside - domain.center())
    epsilon, alpha = slater * G * D, modulus * G / D
    constants = {
        "lipschitz": G, "diameter": D, "bound": (1.0 + SLACK) * G * D + epsilon, "modulus": alpha, "constraints": k,
        "convex": True, "affine": True, "feasible": feasible, "slater": epsilon or None, "time_varying": not fixed,
    }  # fmt: skip
    return Stage(domain, feasible, G, k, T, seed, fixed, epsilon, alpha, constants)


def _normal(x: np.ndarray, at: Stage, rng: np.random.Generator, move: str) -> np.ndarray:
    away = x - at.feasible
    length = float(np.linalg.norm(away))
    if move == "violate" and length > 0:
        return at.G * away / length
    a = rng.standard_normal(len(x))
    return at.G * a / np.linalg.norm(a)


def outcome(policy: Any, at: Stage, rng: np.random.Generator | None = None) -> dict[str, float]:
    """Play T rounds; every decision must be admissible."""
    rng = np.random.default_rng([at.seed, 7]) if rng is None else rng
    D = at.domain.diameter()
    record = getattr(policy, "record", policy)
    state = record.init(at.domain.center())
    rows: tuple[Any, ...] | None = None
    regret, values = 0.0, []
    for t, (cost_move, move) in enumerate(moves(rng, at.T), 1):
        x = record.decide(state)
        assert at.domain.contains(x, 1e-7), f"{getattr(policy, 'name', policy)} left the domain in round {t}"
        if rows is None or not at.fixed:
            normals = [_normal(x, at, rng, move if not at.fixed else "violate" if i == 0 else "random") for i in range(at.k)]
            levels = [at.slater + (rng.uniform(0.0, SLACK) * at.G * D if move == "random" else 0.0) for _ in normals]
            rows = tuple(AffineFunction(a, -float(a @ at.feasible) - level) for a, level in zip(normals, levels, strict=True))
        if at.modulus > 0.0:
            push = {"violate": 1.0, "regret": -1.0}.get(cost_move)
            target = at.domain.project(x + push * (x - at.feasible) if push else at.domain.center() + D * rng.standard_normal(len(x)))
            cost: Any = RoundQuadratic(at.modulus, target, np.zeros(len(x)), 0.0)
        else:
            cost = cost_at(cost_move, x, at.feasible, at.G, t, rng)
        feedback = Round(cost, rows).reveal(x)
        state = record.update(state, feedback)
        regret += float(cost.value(x) - cost.value(at.feasible))
        values.append(feedback.g)
    g = np.array(values)
    hard = np.maximum(g, 0.0)
    sums = np.concatenate([np.zeros((1, at.k)), np.cumsum(g, axis=0)])
    return {
        "regret": regret,
        "ccv": float(hard.sum(axis=0).max()),
        "worst": float(hard.max(axis=1).sum()),
        "soft": float(max(0.0, g.sum(axis=0).max())),
        "squared": float((hard * hard).sum(axis=0).max()),
        "interval": float((sums - np.minimum.accumulate(sums, axis=0)).max()),
    }


def ratios(policy: Any, at: Stage) -> dict[str, float]:
    """Measured over bound for everything the policy's theorem bounds on this stage; the theorem must apply."""
    bound = policy.bound(at.constants, at.T)
    assert not bound.why, f"{policy.name}: {bound.why}"
    seen = outcome(policy, at)
    found = {
        name: seen[name] / limit for name in ("regret", "ccv", "soft", "squared", "interval") if (limit := getattr(bound, name)) is not None
    }
    assert found, f"{policy.name} bounds nothing"
    return found

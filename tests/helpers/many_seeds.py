"""Games of a policy that draws at random, over many seeds at once: means, their standard errors, and the bounds on expectations.

The adversary adapts: every round it sees the decision, and not the points that are tried around it; its functions are affine, and one
point satisfies every constraint. Which way it turns is drawn anew each round, from moves that hurt regret, violation, or both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle.core import Round, revealed
from bridle.functions import AffineFunction, AffineRows


class Attack(NamedTuple):
    """A domain, a point that stays feasible, k constraints with slopes of length G, and so many rounds."""

    domain: Any
    feasible: np.ndarray
    G: float
    k: int
    T: int
    constants: dict[str, Any]
    moves: tuple[float, ...]


MOVES = (0.5, 0.3, 0.1)
"""Shares of the rounds in which the cost pushes outwards, inwards, or anywhere; where it is not said otherwise."""


def stage_of(kind: str, d: int, k: int, T: int, scale: float = 1.0, seed: int = 0, moves: tuple[float, ...] = MOVES) -> Attack:
    """An attack on a domain of this kind and dimension; `scale` is that of costs and constraints, and its inverse that of actions."""
    rng = np.random.default_rng([seed, d, k, T])
    size, middle = 1.0 / scale, 0.3 * rng.standard_normal(d) / scale
    if kind == "ball":
        domain: Any = bridle.Ball(radius=0.7 * size, center=middle)
    elif kind == "simplex":
        domain = bridle.Simplex(d, mass=size)
    else:
        domain = bridle.Box(middle - 0.5 * size, middle + size * rng.uniform(0.3, 0.8, d))
    far = domain.project(domain.center() + domain.diameter() * rng.standard_normal(d))
    feasible = domain.center() + rng.uniform(0.2, 0.9) * (far - domain.center())
    facts = {"lipschitz": scale, "diameter": domain.diameter(), "bound": 2.0 * scale * domain.diameter(), "constraints": k, "convex": True,
             "feasible": feasible}  # fmt: skip
    return Attack(domain, feasible, scale, k, T, facts, moves)


def in_expectation(name: str, at: Attack, seeds: Any, **settings: Any) -> dict[str, tuple[float, float, float]]:
    """For everything that the policy's theorem bounds: the mean over these seeds, its standard error, and the bound."""
    seeds = list(seeds)
    needed = {p.name for p in bridle.policies.parameters(name)}
    told = {key: at.constants[key] for key in ("lipschitz", "bound") if key in needed}
    policy = bridle.policy(name, at.domain, horizon=at.T, seed=seeds, **told, **settings)
    record, B, d = policy.record, len(seeds), at.domain.dim
    rng = np.random.default_rng([B, at.T, d])
    state = record.init(np.broadcast_to(at.domain.center(), (B, d)).copy())
    regret, hard, squared = np.zeros(B), np.zeros((B, at.k)), np.zeros(B)
    for _ in range(at.T):
        x = record.decide(state)
        away = x - at.feasible
        length = np.linalg.norm(away, axis=1, keepdims=True)
        unit = np.divide(away, length, out=np.zeros_like(away), where=length > 0.0)
        wild = rng.standard_normal((at.k + 1, d))
        wild /= np.linalg.norm(wild, axis=1, keepdims=True)
        turn = rng.random()
        out, back, anywhere = np.cumsum(at.moves)
        c = at.G * (-unit if turn < out else unit if turn < back else np.broadcast_to(wild[-1], x.shape) if turn < anywhere else 0.0 * unit)
        A = at.G * np.stack([unit if i == 0 and rng.random() < 0.8 else np.broadcast_to(wild[i], x.shape) for i in range(at.k)], axis=1)
        chosen = Round(AffineFunction(c, np.zeros((B, 1))), (AffineRows(A, -(A @ at.feasible)),))
        tried = revealed(record, state, x, chosen)
        regret += (np.asarray(tried.f) - c @ at.feasible[:, None])[:, 0]
        over = np.maximum(tried.g if tried.g.ndim == 3 else tried.g[:, None], 0.0)
        hard, squared = hard + over.mean(axis=1), squared + (over.max(axis=2) ** 2).mean(axis=1)
        state = record.update(state, tried)
    costs = {"observed_cost": float(np.mean(state.observed_cost))} if hasattr(state, "observed_cost") else {}
    bound = bridle.policy(name, at.domain, horizon=at.T, seed=0, **told, **settings).bound(at.constants | costs, at.T)
    assert not bound.why, bound.why
    seen = {"regret": regret, "ccv": hard.max(axis=1), "squared": squared}
    return {
        key: (float(seen[key].mean()), float(seen[key].std(ddof=1) / B**0.5), float(limit))
        for key in seen
        if (limit := getattr(bound, key)) is not None
    }

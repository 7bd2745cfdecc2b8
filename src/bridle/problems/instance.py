"""What random instances are made of: domains by name, random directions and actions, halfspaces, and costs that drift."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bridle import domains, validate
from bridle.core import Domain, InputError
from bridle.domains.closed_form import BallSet, BoxSet
from bridle.domains.facets import corners
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.ops import Array, Scalar

Cost: TypeAlias = AffineFunction | RoundQuadratic
"""A cost of a random instance: linear, or equally curved in every direction where `modulus` is above 0."""


def begin(seed: int, dim: int, modulus: float, domain: str | Domain) -> tuple[np.random.Generator, Domain, float]:
    """What every random instance begins with. The instance has its own stream, apart from the one its rounds are dealt from."""
    if isinstance(domain, str):
        d = validate.whole("dim", dim)
        shapes: dict[str, Callable[[], Domain]] = {
            "ball": lambda: domains.Ball(d),
            "box": lambda: domains.Box(-1.0 / np.sqrt(d), 1.0 / np.sqrt(d), dim=d),
            "simplex": lambda: domains.Simplex(d),
            "l1": lambda: domains.L1Ball(d),
        }
        validate.one_of("domain", domain, shapes)
        domain = shapes[domain]()
    if not isinstance(domain, Domain):
        raise validate.refused("domain must be a name or a domain such as bridle.Ball(dim=2)", domain)
    if domain.diameter() == 0.0:
        raise InputError(f"domain must hold more than one point; dim = {domain.dim} gives a single one")
    return np.random.default_rng([seed, 1]), domain, validate.nonnegative("modulus", modulus)


def random_directions(rng: np.random.Generator, rows: int, dim: int) -> Array:
    """Random rows of length 1."""
    return normalised(rng.standard_normal((rows, dim)))


def normalised(rows: Array) -> Array:
    """The rows, each made 1 long."""
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def random_action(rng: np.random.Generator, domain: Domain) -> Array:
    """A random action inside the domain, away from its centre and from its boundary."""
    far = domain.project(domain.center() + domain.diameter() * rng.standard_normal(domain.dim))
    return np.asarray(domain.center() + rng.uniform(0.3, 0.7) * (far - domain.center()))


def quarter_cut(domain: Domain, direction: Array) -> tuple[Array, float]:
    """The halfspace <a, x> <= b, a along `direction`, that holds at the centre and a quarter of the way from there to the boundary."""
    a = direction / np.linalg.norm(direction)
    middle = float(a @ domain.center())
    return a, middle + 0.25 * (-float(domain.linear_min(-a)) - middle)


def largest_gap(domain: Domain, a: Array, b: float) -> float:
    """The largest |<a, x> - b| on the domain."""
    return max(-float(domain.linear_min(-a)) - b, b - float(domain.linear_min(a)))


def best_across(domain: Domain, direction: Array, modulus: float, a: Array, b: float) -> tuple[Cost, Array, float]:
    """A cost that pulls along `direction`, the best action where <a, x> <= b, and a Lipschitz constant of both functions.

    The cost is linear with slope 1, or (modulus/2) |x - z|^2 with z the action farthest along `direction`; a is 1 long.
    """
    allowed = domains.Halfspace(a, b, within=domain)
    if modulus > 0.0:
        target = domain.linear_argmin(-direction)
        cost = RoundQuadratic(modulus, target, np.zeros(domain.dim), 0.0)
        return cost, allowed.project(target), max(1.0, modulus * reach(domain, target))
    return AffineFunction(-direction, 0.0), allowed.linear_argmin(-direction), 1.0


def reach(domain: Domain, point: Array) -> float:
    """The largest distance from `point`, which may lie anywhere, to an action of the domain; at most that for domains without a formula."""
    if isinstance(domain, BallSet):
        return float(np.linalg.norm(point - domain.middle) + domain.radius)
    if isinstance(domain, BoxSet):
        return float(np.linalg.norm(np.maximum(abs(point - domain.low), abs(point - domain.high))))
    if (ends := corners(domain)) is not None:
        return float(np.linalg.norm(ends - point, axis=1).max())
    return float(domain.diameter() + (0.0 if domain.contains(point) else np.linalg.norm(point - domain.project(point))))


def drifting(domain: Domain, drift: Array, modulus: Scalar, rng: np.random.Generator, rounds: int) -> Cost:
    """Random costs that favour the direction `drift`: linear with slopes of length 1, or (modulus/2) |x - z_t|^2, z_t in the domain."""
    d = len(drift)
    noise = rng.standard_normal((rounds, d))
    if modulus > 0.0:
        targets = domain.project(domain.center() + domain.diameter() * (0.4 * drift + 0.3 * noise / np.sqrt(d)))
        return RoundQuadratic(np.full(rounds, float(modulus)), targets, np.zeros((rounds, d)), np.zeros(rounds))
    return AffineFunction(normalised(-2.0 * drift + noise / np.sqrt(d)), np.zeros(rounds))

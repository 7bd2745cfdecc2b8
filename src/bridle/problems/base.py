"""What a problem is, and what the factories of problems share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bridle import domains, validate
from bridle.core import Domain, InputError
from bridle.domains.closed_form import BallSet, BoxSet
from bridle.domains.facets import corners
from bridle.functions import AffineFunction, RoundQuadratic

HELP = {
    "horizon": "T, how many rounds",
    "seed": "seed of the instance and of its stream",
    "dim": "d, coordinates of a decision",
    "modulus": "0: linear costs; above 0: quadratic costs with this strong convexity",
    "constraints": "k, constraints a round reveals",
    "slater": "by how much one action satisfies every constraint",
    "family": "m, how many linear costs the adversary chooses from",
    "domain": "ball, box, simplex, l1, or a domain",
    "data": "name of a data set that `bridle data list` shows",
    "lookback": "how many of the latest rows of the data a limit is computed from",
    "risk": "allowed variance, as a multiple of that of an equal share in every asset",
    "budget": "share of what it costs on average to bid what impressions are worth",
    "tolerance": "largest covariance of score and sex that is allowed",
    "radius": "largest length of the weights",
    "window": "S: over every so many rounds in a row, and over no fewer, an action satisfies the constraints in total",
    "level": "by how much the best action violates a constraint in a bad round",
    "P_T": "what the best action violates over its worst interval, in units of F (the largest |g|); below the horizon",
    "conflict": "0: one weight vector serves all tasks; above 0: by how much every one fails a task in every round",
    "period": "rounds between one change of sides, or one constraint, and the next",
    "noise": "largest error of a constraint's value",
    "adaptive": "0: scales are drawn at random; 1: the farther a decision is from the feasible action, the larger they are",
}


@dataclass(frozen=True)
class Problem:
    """A domain, an adversary, and constants under the parameter names.

    `lipschitz`, `diameter`, `bound`, `modulus` and `constraints` are numbers that hold for every round; `convex` and `affine` (which `play`
    reads off the first round) and `time_varying` say of what kind the functions are; `feasible` is an action that satisfies every
    constraint (None where it is known that there is none), and `slater` a margin by which some action does; `optimum` is the best feasible
    action over the whole horizon and `optimal_cost` its total cost, where they are known in advance; `least_regret` is what no policy can
    do better than; `rounds` is how many rounds there are at most. Where no action is feasible, `benchmark` is the one that comes closest:
    over every `window` rounds in a row its constraints sum to 0 or less, and over any interval to `excess` or less; no action has a
    smaller window or a smaller excess. `factory`, called with `parameters`, makes the problem again.
    """

    domain: Any
    adversary: Any
    constants: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    factory: Callable[..., Problem] | None = None

    @property
    def horizon(self) -> int | None:
        """How many rounds the problem was made for, if it was."""
        return self.parameters.get("horizon")

    @property
    def seed(self) -> int:
        """The seed of the instance, 0 where none was given."""
        return int(self.parameters.get("seed", 0))

    def with_seed(self, seed: int) -> Problem:
        """The same problem drawn from another seed; one made without a factory has only its stream drawn anew."""
        parameters = {**self.parameters, "seed": seed}
        if self.factory is None:
            return replace(self, parameters=parameters)
        made = self.factory(**parameters)
        return replace(made, name=self.name, parameters=parameters, factory=self.factory)


def start(seed: int, dim: Any, modulus: Any, domain: Any) -> tuple[np.random.Generator, Any, float]:
    """What every random instance begins with. The instance has its own stream, apart from the one its rounds are dealt from."""
    if isinstance(domain, str):
        d = validate.whole("dim", dim)
        shapes: dict[str, Callable[[], Any]] = {
            "ball": lambda: domains.Ball(d),
            "box": lambda: domains.Box(-1.0 / np.sqrt(d), 1.0 / np.sqrt(d), dim=d),
            "simplex": lambda: domains.Simplex(d),
            "l1": lambda: domains.L1Ball(d),
        }
        if domain not in shapes:
            raise validate.unknown("domain", domain, shapes)
        domain = shapes[domain]()
    if not isinstance(domain, Domain):
        raise InputError(f"domain must be a name or a domain such as bridle.Ball(dim=2), not {validate.show(domain)}")
    if domain.diameter() == 0.0:
        raise InputError(f"domain must hold more than one point; dim = {domain.dim} gives a single one")
    return np.random.default_rng([validate.whole("seed", seed, 0), 1]), domain, validate.nonnegative("modulus", modulus)


def facts(domain: Any, **facts: Any) -> dict[str, Any]:
    """The constants of a problem: what is usually so, unless `facts` say otherwise."""
    return {"diameter": domain.diameter(), "convex": True, "affine": True, **facts}


def units(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    """Random rows of length 1."""
    draws = rng.standard_normal((rows, dim))
    return np.asarray(draws / np.linalg.norm(draws, axis=1, keepdims=True))


def cut(domain: Any, direction: np.ndarray) -> tuple[np.ndarray, float]:
    """The halfspace <a, x> <= b, a along `direction`, that holds at the centre and a quarter of the way from there to the boundary."""
    a = direction / np.linalg.norm(direction)
    middle = float(a @ domain.center())
    return a, middle + 0.25 * (-float(domain.linear_min(-a)) - middle)


def largest(domain: Any, a: np.ndarray, b: float) -> float:
    """The largest |<a, x> - b| on the domain."""
    return max(-float(domain.linear_min(-a)) - b, b - float(domain.linear_min(a)))


def best_across(domain: Any, direction: np.ndarray, modulus: float, a: np.ndarray, b: float) -> tuple[Any, np.ndarray, float]:
    """A cost that pulls along `direction`, the best action where <a, x> <= b, and a Lipschitz constant of both functions.

    The cost is linear with slope 1, or (modulus/2) |x - z|^2 with z the action farthest along `direction`; a is 1 long.
    """
    allowed = domains.Halfspace(a, b, within=domain)
    if modulus > 0.0:
        target = domain.linear_argmin(-direction)
        cost = RoundQuadratic(modulus, target, np.zeros(domain.dim), 0.0)
        return cost, allowed.project(target), max(1.0, modulus * reach(domain, target))
    return AffineFunction(-direction, 0.0), allowed.linear_argmin(-direction), 1.0


def somewhere(rng: np.random.Generator, domain: Any) -> np.ndarray:
    """A random action inside the domain, away from its centre and from its boundary."""
    far = domain.project(domain.center() + domain.diameter() * rng.standard_normal(domain.dim))
    return np.asarray(domain.center() + rng.uniform(0.3, 0.7) * (far - domain.center()))


def reach(domain: Any, point: np.ndarray) -> float:
    """The largest distance from `point`, which may lie anywhere, to an action of the domain; at most that for domains without a formula."""
    if isinstance(domain, BallSet):
        return float(np.linalg.norm(point - domain.middle) + domain.radius)
    if isinstance(domain, BoxSet):
        return float(np.linalg.norm(np.maximum(abs(point - domain.low), abs(point - domain.high))))
    if (ends := corners(domain)) is not None:
        return float(np.linalg.norm(ends - point, axis=1).max())
    return float(domain.diameter() + (0.0 if domain.contains(point) else np.linalg.norm(point - domain.project(point))))


def unit(rows: np.ndarray) -> np.ndarray:
    """The rows, each made 1 long."""
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def drifting(domain: Any, drift: np.ndarray, modulus: Any, rng: np.random.Generator, rounds: int) -> Any:
    """Random costs that favour the direction `drift`: linear with slopes of length 1, or (modulus/2) |x - z_t|^2, z_t in the domain."""
    d = len(drift)
    noise = rng.standard_normal((rounds, d))
    if modulus > 0.0:
        targets = domain.project(domain.center() + domain.diameter() * (0.4 * drift + 0.3 * noise / np.sqrt(d)))
        return RoundQuadratic(np.full(rounds, float(modulus)), targets, np.zeros((rounds, d)), np.zeros(rounds))
    return AffineFunction(unit(-2.0 * drift + noise / np.sqrt(d)), np.zeros(rounds))

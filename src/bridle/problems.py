"""Named problems: a domain, an adversary, and the constants that are true of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridle import domains, validate
from bridle.adversaries import CoinPerCoordinate, Fixed, Minimax, RandomHalfspaces, deal_blocks
from bridle.core import Domain, InputError, Round
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
}


@dataclass(frozen=True)
class Problem:
    """A domain, an adversary, and constants under the parameter names.

    `lipschitz`, `diameter`, `bound`, `modulus` and `constraints` are numbers that hold for every round; `convex` and `affine` (which `play`
    reads off the first round) and `time_varying` say of what kind the functions are; `feasible` is an action that satisfies every
    constraint, and `slater` a margin by which some action does; `optimum` is the best feasible action over the whole horizon and
    `optimal_cost` its total cost, where they are known in advance.
    """

    domain: Any
    adversary: Any
    constants: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def horizon(self) -> int | None:
        """How many rounds the problem was made for, if it was."""
        return self.parameters.get("horizon")

    @property
    def seed(self) -> int:
        """The seed of the instance, 0 where none was given."""
        return int(self.parameters.get("seed", 0))

    def with_seed(self, seed: int) -> Problem:
        """The same problem drawn from another seed; one that is not registered has only its stream drawn anew."""
        if self.name in _PROBLEMS:
            return problem(self.name, **{**self.parameters, "seed": seed})
        return Problem(self.domain, self.adversary, self.constants, self.name, {**self.parameters, "seed": seed})


def problem(name: str, horizon: int, seed: int = 0, **given: Any) -> Problem:
    """The problem registered as `name`.

    >>> problem("halfspaces", horizon=100, dim=3).constants["lipschitz"]
    1.0
    """
    if name not in _PROBLEMS:
        raise validate.unknown("problem", name, _PROBLEMS)
    known = inspect.signature(_PROBLEMS[name]).parameters
    for key in given:
        if key not in known:
            raise validate.unknown(f"parameter of problem {name}", key, known)
    given = {key: value for key, value in given.items() if value is not None}
    parameters = {"horizon": validate.whole("horizon", horizon), "seed": validate.whole("seed", seed, 0), **given}
    made = _PROBLEMS[name](**parameters)
    return Problem(made.domain, made.adversary, made.constants, name, parameters)


def problem_names() -> list[str]:
    """The registered problem names.

    >>> problem_names()
    ['lower-bound', 'minimax', 'fixed', 'halfspaces']
    """
    return list(_PROBLEMS)


def problem_facts(name: str) -> dict[str, Any]:
    """What the command line tells about a problem: its summary and its parameters."""
    if name not in _PROBLEMS:
        raise validate.unknown("problem", name, _PROBLEMS)
    factory = _PROBLEMS[name]
    parameters = [
        {"name": p.name, "required": p.default is p.empty, "default": None if p.default is p.empty else p.default, "help": HELP[p.name]}
        for p in inspect.signature(factory).parameters.values()
    ]
    return {"name": name, "summary": (factory.__doc__ or "").splitlines()[0], "parameters": parameters}


def lower_bound(horizon: int, seed: int = 0, dim: int | None = None, modulus: float = 0.0) -> Problem:
    """Theorem 3's instance: no policy keeps both regret and CCV below sqrt(T)/4 here; d = T."""
    if dim not in (None, horizon):
        raise InputError(f"dim of problem lower-bound is its horizon, {horizon}, not {dim}")
    if modulus != 0.0:
        raise InputError(f"modulus of problem lower-bound is 0 (its costs are absolute values), not {validate.show(modulus)}")
    side = 1.0 / np.sqrt(horizon)
    domain = domains.Box(np.zeros(horizon), np.full(horizon, side))
    # Each constraint is x_t <= side/4 or x_t >= 3 side/4, so |g| is at most 3 side/4; the targets together are a feasible action of cost 0.
    constants = _constants(domain, lipschitz=1.0, bound=0.75 * side, modulus=0.0, constraints=1, time_varying=True)
    targets = _targets(seed, side, horizon)
    constants |= {"feasible": targets, "optimum": targets, "optimal_cost": 0.0}
    return Problem(domain, CoinPerCoordinate(0.25 * side, 0.75 * side), constants)


def minimax(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, family: int = 8, domain: Any = "ball") -> Problem:
    """The worst, at the decision, of a finite family of linear costs; one fixed halfspace."""
    rng, domain, alpha = _start(seed, dim, modulus, domain)
    costs = _units(rng, validate.whole("family", family), domain.dim)
    pull = costs.mean(axis=0)
    a, b = _cut(domain, -(pull if pull.any() else costs[0]))  # in one dimension the costs may cancel
    G = 1.0 + alpha * domain.diameter()  # the quadratic is centred in the domain
    constants = _constants(domain, lipschitz=G, bound=_largest(domain, a, b), modulus=alpha, constraints=1, time_varying=False)
    constants |= {"feasible": domain.center(), "slater": b - float(domain.linear_min(a))}
    return Problem(domain, Minimax(costs, alpha, domain.center(), a, -b), constants)


def fixed(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, domain: Any = "ball") -> Problem:
    """One cost and one halfspace that cuts off its minimiser, the same every round."""
    rng, domain, alpha = _start(seed, dim, modulus, domain)
    direction, aside = _units(rng, 2, domain.dim)
    a, b = _cut(domain, direction + 0.5 * aside)
    allowed = domains.Halfspace(a, b, within=domain)
    if alpha > 0.0:
        target = domain.linear_argmin(-direction)
        cost: Any = RoundQuadratic(alpha, target, np.zeros(domain.dim), 0.0)
        best, G = allowed.project(target), max(1.0, alpha * domain.diameter())
    else:
        cost = AffineFunction(-direction, 0.0)
        best, G = allowed.linear_argmin(-direction), 1.0
    constants = _constants(domain, lipschitz=G, bound=_largest(domain, a, b), modulus=alpha, constraints=1, time_varying=False)
    constants |= {"feasible": best, "optimum": best, "optimal_cost": horizon * float(cost.value(best))}
    constants["slater"] = b - float(domain.linear_min(a))
    return Problem(domain, Fixed(Round(cost, (AffineFunction(a, -b),))), constants)


def halfspaces(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, constraints: int = 1, slater: float = 0.1, domain: Any = "ball"
) -> Problem:
    """Fresh random halfspaces every round, all satisfied at one known action, pulling against the costs."""
    rng, domain, alpha = _start(seed, dim, modulus, domain)
    drift = _units(rng, 1, domain.dim)[0]
    far = domain.project(domain.center() + domain.diameter() * rng.standard_normal(domain.dim))
    point = domain.center() + rng.uniform(0.3, 0.7) * (far - domain.center())
    k = validate.whole("constraints", constraints)
    G = max(1.0, alpha * domain.diameter())
    # Unit normals, and levels at a point of the domain between -2 margin and -margin: |g(x)| <= |x - point| + 2 margin.
    margin = validate.nonnegative("slater", slater)
    constants = _constants(domain, lipschitz=G, bound=domain.diameter() + 2.0 * margin, modulus=alpha, constraints=k)
    constants |= {"feasible": point, "slater": margin, "time_varying": True}
    return Problem(domain, RandomHalfspaces(domain, point, drift, alpha, margin, np.ones(k)), constants)


_PROBLEMS: dict[str, Callable[..., Problem]] = {
    "lower-bound": lower_bound,
    "minimax": minimax,
    "fixed": fixed,
    "halfspaces": halfspaces,
}


def _start(seed: int, dim: Any, modulus: Any, domain: Any) -> tuple[np.random.Generator, Any, float]:
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


def _constants(domain: Any, **facts: Any) -> dict[str, Any]:
    return {"diameter": domain.diameter(), "convex": True, "affine": True, **facts}


def _units(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    draws = rng.standard_normal((rows, dim))
    return np.asarray(draws / np.linalg.norm(draws, axis=1, keepdims=True))


def _cut(domain: Any, direction: np.ndarray) -> tuple[np.ndarray, float]:
    """The halfspace <a, x> <= b, a along `direction`, that holds at the centre and a quarter of the way from there to the boundary."""
    a = direction / np.linalg.norm(direction)
    middle = float(a @ domain.center())
    return a, middle + 0.25 * (-float(domain.linear_min(-a)) - middle)


def _largest(domain: Any, a: np.ndarray, b: float) -> float:
    """The largest |<a, x> - b| on the domain."""
    return max(-float(domain.linear_min(-a)) - b, b - float(domain.linear_min(a)))


def _targets(seed: int, side: float, horizon: int) -> Any:
    """The feasible action of the lower bound: each coordinate at the target its coin will pick."""
    coins = np.concatenate(list(deal_blocks(CoinPerCoordinate(0.0, 0.0), seed, horizon, dim=horizon)))
    return side * (0.25 + 0.5 * coins)

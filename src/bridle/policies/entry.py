"""What the registry knows of a policy, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bridle.core import Bound

PARAMETERS = {
    "horizon": "T, how many rounds will be played",
    "lipschitz": "G, a Lipschitz constant of every cost and constraint on the domain",
    "diameter": "D, the domain's Euclidean diameter (default: the domain's own)",
    "modulus": "strong convexity of the costs",
    "constraints": "k, how many constraints a round reveals",
    "bound": "F, the largest |g| on the domain",
    "slater": "margin by which some action satisfies every constraint",
    "window": "K or S: over every so many rounds in a row constraints sum to 0 or less",
    "learner": "the OCO algorithm inside: a name (adagrad, adaftrl, ftpl, ogd) or a learner",
    "potential": "the Lyapunov function: exponential, quadratic, power, or a potential",
    "V": "weight of the cost against the potential's slope",
    "beta": "scale of the constraints in the queue (sinha2024: of costs and constraints alike)",
    "lam": "rate of the exponential potential",
    "exponent": "the exponent of the step sizes t^-c, or n of the power potential q^n",
    "step": "step size",
    "initial": "starting value, or lowest level, of an accumulator",
    "clip": "feed the positive part of the constraints",
    "mirror": "the mirror map: euclidean or entropic",
    "form": "which form of the algorithm to run",
    "samples": "how many draws the Monte-Carlo mean uses",
    "preset": "theory (the theorem's constants), tight (the sharper ones) or practice (reacts at realistic horizons)",
    "seed": "seed of the policy's own randomness",
    "smoothness": "M of self-bounding constraints: |grad g|^2 <= 2 M g",
    "drift": "P, how far in all the feasible action may move",
    "margin": "r, the distance to keep from every constraint",
    "predictable": "weigh a round's constraint by what was seen before it",
    "halfspace": "project on the revealed halfspaces",
    "hold": "how many rounds to hold a decision before moving",
    "cuts": "how many of the last violated halfspaces to keep",
    "delay": "how many other rounds may be waiting when late feedback is fed in",
}
"""One name for each parameter everywhere: in Python, in --set and in the JSON."""


def _none(policy: Any, constants: Any, t: float) -> Bound:
    return Bound(why="no bound is stated")


def _order_only(policy: Any, constants: Any, t: float) -> Bound:
    return Bound(why="only its order is quoted, see `bridle policies`")


@dataclass(frozen=True)
class Entry:
    """A policy's name, how to make it, its theorem, and what it assumes.

    `bound(configured, constants, t)` is the sharpest proved form, `paper` the paper's own. `reduces` says how k constraints are treated:
    "max" (the worst one), "max-distance" or "all".
    """

    name: str
    factory: Callable[..., Any]
    title: str
    reference: str
    regret: str
    violation: str
    bound: Callable[..., Bound] = _none
    paper: Callable[..., Bound] = _order_only
    reduces: str = "max"
    metric: str = "ccv"
    time_varying: bool = True
    strongly_convex: bool = False
    slater: str = "no"  # or "sharper" (the violation bound improves with a Slater point) or "required"
    feedback: str = "value and gradient"
    cost: str = "1 projection"
    needs: tuple[str, ...] = field(default_factory=tuple)

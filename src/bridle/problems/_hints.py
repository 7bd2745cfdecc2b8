"""Problems whose adversary gives hints: before every decision it predicts the round's gradients, as well or as badly as it is told.

| problem | adversary | what it does |
|---|---|---|
| `hints` | `Hinting` | predicts the gradients of random halfspaces and costs |

`with_hints` makes any problem one with hints. A hint is made from what the round would reveal at the decision that the policy has in mind
before it is told. A policy that takes no hints plays as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Adversary, Domain, Hint, InputError, Round
from bridle.engines.round import answer
from bridle.ops import Array, Scalar, norm, sqrt
from bridle.problems import _paper
from bridle.problems.base import Problem
from bridle.problems.registry import registered


class HintDraw(NamedTuple):
    """What the adversary inside was dealt, and the noise of the hints: of the cost's gradient and of every constraint's."""

    inner: object
    cost: Array
    limits: Array


class Hinting(NamedTuple):
    """An adversary that predicts each round's gradients p as truth p + error |p| z, z random with squares that add up to 1 on average."""

    inner: Adversary[Any]
    truth: Scalar
    error: Scalar
    each: Array  # (k, d), for its shape: how many constraints a round has, and how many coordinates a decision

    @property
    def oblivious(self) -> bool:
        return bool(getattr(self.inner, "oblivious", False))

    def init(self) -> object:
        return self.inner.init()

    def deal(self, rng: np.random.Generator, rounds: int) -> HintDraw:
        """The draws of the adversary inside are those that it has without hints; the noise has a generator of its own."""
        noise = rng.spawn(1)[0].standard_normal((rounds, 1 + self.each.shape[-2], self.each.shape[-1]))
        inner = self.inner.deal(rng, rounds) if hasattr(self.inner, "deal") else None
        return HintDraw(inner, noise[:, 0], noise[:, 1:])

    def answer(self, state: object, x: Array, draw: HintDraw) -> tuple[object, Round]:
        return answer(self.inner, state, x, draw.inner)

    def hint(self, state: object, x: Array, draw: HintDraw) -> Hint:
        """What is predicted of the round, from what it would reveal at x."""
        seen = answer(self.inner, state, x, draw.inner)[1].reveal(x)
        share = self.error / sqrt(float(x.shape[-1]))
        lengths = sqrt((seen.dg * seen.dg).sum(axis=-1))[..., None]
        df = self.truth * seen.df + share * norm(seen.df) * draw.cost
        return Hint(df, seen.g, self.truth * seen.dg + share * lengths * draw.limits, x)


def with_hints(problem: Problem, truth: float = 1.0, error: float = 0.0) -> Problem:
    """A problem whose adversary predicts the gradients of every round before the decision.

    Returns the problem with hints. Policies that take none play it as they play `problem`.

    Parameters
    ----------
    problem : Problem
        The problem, whose rounds stay as they are.
    truth : float, default 1.0
        What a hint has of the true gradients: 1 is all, 0 nothing, -1 the opposite.
    error : float, default 0.0
        How long the noise in it is, on average, as a multiple of the gradient's length, 0 or above.

    Examples
    --------
    >>> import bridle
    >>> problem = bridle.with_hints(bridle.problem("halfspaces", horizon=500, dim=3), error=0.1)
    >>> trace = bridle.play(bridle.policy("optimistic", problem.domain), problem)
    >>> bool(bridle.regret(trace) <= trace.policy.bound(problem.constants, 500).regret)
    True
    """
    if not isinstance(problem, Problem):
        raise validate.refused("problem must be a Problem, such as bridle.problem('halfspaces', horizon=100)", problem)
    if hasattr(problem.adversary, "replay") or getattr(problem.adversary, "foretold", False):
        raise InputError("problem must be one whose rounds are drawn: those of this one are recorded, or known before the decision")
    scale, noise = validate.number("truth", truth), validate.nonnegative("error", error)
    k = problem.constants.get("constraints", 1)
    adversary = Hinting(problem.adversary, scale, noise, np.zeros((k, problem.domain.dim)))
    again = None if problem.factory is None else partial(_foretold, problem.factory, scale, noise)
    return replace(problem, adversary=adversary, name="", factory=again)


def _foretold(make: Callable[..., Problem], truth: float, error: float, **parameters: object) -> Problem:
    return with_hints(make(**parameters), truth, error)


@registered
def hints(
    horizon: int,
    seed: int = 0,
    dim: int = 10,
    modulus: float = 0.0,
    constraints: int = 1,
    slater: float = 0.1,
    truth: float = 1.0,
    error: float = 0.0,
    domain: str | Domain = "ball",
) -> Problem:
    """The problem `halfspaces` with hints: before every decision somebody predicts the round's gradients.

    x is any action, f and g are those of `halfspaces`. A hint of a gradient p is truth p + error |p| z with random z: exact by default.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    modulus
        0: linear costs; above 0: quadratic costs with this strong convexity. Values: 0 or above. Unit: cost per
        squared unit of action.
    constraints
        k, constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    slater
        By how much one action satisfies every constraint. Values: 0 or above. Unit: constraint.
    truth
        What a hint has of the true gradients: 1 is all, 0 nothing, -1 the opposite. Values: a number.
    error
        How long the noise in a hint is, on average, as a multiple of the gradient's length. Values: 0 or above.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    return with_hints(_paper.halfspaces(horizon, seed, dim, modulus, constraints, slater, domain), truth, error)

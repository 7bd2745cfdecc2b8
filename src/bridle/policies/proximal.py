"""The proximal step of a policy, from the round's feedback: `OneHinge`, `SumOfHinges` and `FunctionHinge`.

The steps themselves are in `bridle.solvers.hinge_prox` (constraints read as affine) and `bridle.solvers.function_prox` (constraints as
the functions they are).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from bridle import ops, validate
from bridle.core import Domain, Feedback, Function, InputError
from bridle.functions import AFFINE_FUNCTIONS, AffineFunction
from bridle.ops import Array, Scalar, dot
from bridle.solvers.function_prox import hinge_of, hinges_of, weighted
from bridle.solvers.hinge_prox import hinge, hinges


class OneHinge(NamedTuple):
    """One constraint, read as affine from its value and gradient at the decision: exact where it is affine, else a cutting plane."""

    domain: Domain

    def step(self, feedback: Feedback, v: Array, c: Scalar, alpha: Scalar) -> Array:
        """The proximal step from v, for one weight c."""
        g, a = ops.worst(feedback.g, feedback.dg)
        return hinge(self.domain, v, a, dot(a, feedback.x) - g, c, alpha)

    def sum(self, feedback: Feedback, v: Array, c: Array, alpha: Scalar) -> Array:
        """The proximal step from v, for a weight of each constraint."""
        return self.step(feedback, v, ops.first(c) if c.ndim == 1 else c, alpha)

    def values(self, feedback: Feedback, x: Array) -> Array:
        """The round's constraints at another decision."""
        return _affine_values(feedback, x)


class SumOfHinges(NamedTuple):
    """Several constraints, read as affine; a quadratic program each round, so it runs on the Python engine only."""

    domain: Domain

    @property
    def compiled(self) -> bool:
        """No: it calls a solver."""
        return False

    def step(self, feedback: Feedback, v: Array, c: Scalar, alpha: Scalar) -> Array:
        """The proximal step from v on c times the positive part of the largest constraint."""
        return self._solve(feedback, v, c, alpha, True)

    def sum(self, feedback: Feedback, v: Array, c: Array, alpha: Scalar) -> Array:
        """The proximal step from v on the sum of the constraints' positive parts, weighted by c."""
        return self._solve(feedback, v, c, alpha, False)

    def values(self, feedback: Feedback, x: Array) -> Array:
        return _affine_values(feedback, x)

    def _solve(self, feedback: Feedback, v: Array, c: Scalar, alpha: Scalar, joint: bool) -> Array:
        level = (feedback.dg @ feedback.x[..., None])[..., 0] - feedback.g
        if v.ndim == 1:
            return hinges(self.domain, v, feedback.dg, level, c, float(alpha), joint)
        rows = np.broadcast_to(feedback.dg, (*level.shape, v.shape[-1]))
        prices, alphas = np.broadcast_to(c, (len(v), np.shape(c)[-1] if np.ndim(c) else 1)), np.broadcast_to(alpha, (len(v), 1))
        each = zip(v, rows, level, prices, alphas, strict=True)
        return np.array([hinges(self.domain, p, A, b, w[0] if joint else w, float(s[0]), joint) for p, A, b, w, s in each])


class FunctionHinge(SumOfHinges):
    """The constraints as the functions they are, from the round itself."""

    __slots__ = ()

    def values(self, feedback: Feedback, x: Array) -> Array:
        return np.array([float(g.value(x)) for g in constraint_functions(feedback)])

    def linear(self, feedback: Feedback, v: Array, w: Array, alpha: Scalar) -> Array:
        """The proximal step from v on the sum of the functions themselves, weighted by w."""
        return weighted(self.domain, v, list(zip(w.tolist(), constraint_functions(feedback), strict=True)), float(alpha))

    def _solve(self, feedback: Feedback, v: Array, c: Scalar, alpha: Scalar, joint: bool) -> Array:
        functions = constraint_functions(feedback)
        if len(functions) == 1:
            return hinge_of(self.domain, v, functions[0], float(np.ravel(c)[0]), float(alpha))
        affine = [g for g in functions if isinstance(g, AffineFunction)]
        if len(affine) < len(functions):
            return hinges_of(self.domain, v, functions, c, float(alpha), joint)
        A, b = np.array([g.a for g in affine]), -np.array([g.b for g in affine])
        return hinges(self.domain, v, A, b, c, float(alpha), joint)


ProximalStep: TypeAlias = OneHinge | SumOfHinges | FunctionHinge
"""What takes a policy's proximal step: on the largest of the constraints (`step`), or on a weighted sum of them (`sum`)."""


def prox_for(domain: Domain, form: str, constraints: int) -> ProximalStep:
    """The record for a policy with this `form` ("affine" or "function") and number of constraints."""
    validate.one_of("form", form, ("affine", "function"))
    if form == "function":
        return FunctionHinge(domain)
    return OneHinge(domain) if constraints == 1 else SumOfHinges(domain)


def constraint_functions(feedback: Feedback) -> list[Function]:
    """The round's constraints as separate functions."""
    if feedback.round is None:
        raise InputError("form='function' needs the functions themselves, and this feedback comes without its round")
    if feedback.x.ndim != 1:
        raise InputError("form='function' plays one run at a time; seeds, sweeps and starting points must be single")
    functions: list[Function] = []
    for g in feedback.round.constraints:
        if isinstance(g, AFFINE_FUNCTIONS):
            origin = np.zeros_like(feedback.x)
            rows, levels = np.atleast_2d(g.grad(origin)), np.atleast_1d(g.value(origin))
            functions += [AffineFunction(a, float(b)) for a, b in zip(rows, levels, strict=True)]
        elif not getattr(g, "several", False):
            functions.append(g)
        else:
            raise InputError(f"form='function' needs constraints one by one, not {type(g).__name__}")
    return functions


def _affine_values(feedback: Feedback, x: Array) -> Array:
    away = x - feedback.x
    return feedback.g + (feedback.dg @ away if away.ndim == 1 else (feedback.dg @ away[..., None])[..., 0])

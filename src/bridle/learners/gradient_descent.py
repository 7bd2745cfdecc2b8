"""Projected online gradient descent with a step that is constant, falls with the rounds, or follows strong convexity.

The paper's Algorithm 3. D is the diameter of the domain, p_t are the gradients, and regret is against every action of the domain.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops, showing, validate
from bridle.core import Domain
from bridle.learners.base import Iterate, Setting
from bridle.ops import Array, Scalar, ratio, scalar


@showing.shown("OGD", step_size="step")
class ConstantOGD(NamedTuple):
    """x_{t+1} = P_X(x_t - step * p_t)."""

    domain: Domain
    step_size: Scalar

    @property
    def scale_free(self) -> bool:
        return False

    def init(self, x1: Array) -> Iterate:
        return Iterate(x1, scalar(x1))

    def decide(self, state: Iterate) -> Array:
        return state.x

    def move(self, state: Iterate, x: Array) -> Iterate:
        """The state with x in place of its next decision."""
        return Iterate(x, state.seen)

    def step(self, state: Iterate, grad: Array, modulus: Scalar | None = None) -> Iterate:
        return Iterate(self.domain.project(state.x - self.step_size * grad), state.seen + 1.0)


@showing.shown("DecreasingOGD")
class DecreasingOGD(ConstantOGD):
    """x_{t+1} = P_X(x_t - (step / sqrt t) * p_t)."""

    __slots__ = ()

    def step(self, state: Iterate, grad: Array, modulus: Scalar | None = None) -> Iterate:
        t = state.seen + 1.0
        return Iterate(self.domain.project(state.x - self.step_size / ops.sqrt(t) * grad), t)


def OGD(domain: Domain, step: Setting, decay: str = "none") -> ConstantOGD | DecreasingOGD:
    """Projected online gradient descent with a constant or a shrinking step.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    step : float or list of float
        The step size, above 0, in units of action per unit of gradient.
    decay : {"none", "sqrt"}, default "none"
        Whether the step stays, or is ``step / sqrt(t)`` in round t.

    Notes
    -----
    Guarantee: `bridle.learners.ogd_regret` and `bridle.learners.decreasing_ogd_regret`.

    Reference: Zinkevich 2003.

    Examples
    --------
    >>> import bridle
    >>> learner = OGD(bridle.Ball(2), step=0.5)
    >>> learner.decide(learner.step(learner.init(np.zeros(2)), np.array([1.0, 0.0])))
    array([-0.5,  0. ])
    """
    validate.one_of("decay", decay, ("none", "sqrt"))
    kind = ConstantOGD if decay == "none" else DecreasingOGD
    return kind(domain, validate.setting("step", step))


def ogd_regret(D: float, G: float, step: float, T: float) -> float:
    """Constant step, gradients at most G long: D^2 / (2 step) + step G^2 T / 2.

    >>> ogd_regret(2.0, 1.0, 2.0 / 10.0, 100)  # G D sqrt(T) at step = D / (G sqrt(T))
    20.0
    """
    return D * D / (2.0 * step) + 0.5 * step * G * G * T


def decreasing_ogd_regret(D: float, G: float, step: float, T: float) -> float:
    """Step / sqrt(t): D^2 sqrt(T) / (2 step) + (step G^2 / 2)(2 sqrt(T) - 1)."""
    return D * D * sqrt(T) / (2.0 * step) + 0.5 * step * G * G * (2.0 * sqrt(T) - 1.0)


@showing.shown("StronglyConvexOGD")
class CurvedOGD(NamedTuple):
    """x_{t+1} = P_X(x_t - p_t / (H_1 + ... + H_t)), H_s the modulus of strong convexity of the loss that is fed in (Theorem 6, part 2)."""

    domain: Domain
    modulus: Scalar

    @property
    def scale_free(self) -> bool:
        return False

    def init(self, x1: Array) -> Iterate:
        return Iterate(x1, scalar(x1))

    def decide(self, state: Iterate) -> Array:
        return state.x

    def move(self, state: Iterate, x: Array) -> Iterate:
        """The state with x in place of its next decision."""
        return Iterate(x, state.seen)

    def step(self, state: Iterate, grad: Array, modulus: Scalar | None = None) -> Iterate:
        H = state.seen + (self.modulus if modulus is None else modulus)
        return Iterate(self.domain.project(state.x - ratio(1.0, H) * grad), H)


def StronglyConvexOGD(domain: Domain, modulus: Setting) -> CurvedOGD:
    """Projected online gradient descent for strongly convex costs, with steps 1 / (sum of the moduli so far).

    Returns the learner: ``init(x1)``, ``decide(state)`` and ``step(state, grad, modulus=None)``.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    modulus : float or list of float
        The strong convexity of the costs, above 0, in cost per squared unit of action. A round may have its own: ``step(...,
        modulus=...)``.

    Notes
    -----
    Guarantee: `bridle.learners.strongly_convex_regret`.

    Reference: Hazan, Agarwal, Kale 2007; the paper's Theorem 6, part 2.

    Examples
    --------
    >>> import bridle
    >>> learner = StronglyConvexOGD(bridle.Ball(1), modulus=2.0)
    >>> learner.decide(learner.step(learner.init(np.zeros(1)), np.array([1.0])))
    array([-0.5])
    """
    return CurvedOGD(domain, validate.setting("modulus", modulus))


def strongly_convex_regret(lengths: ArrayLike, moduli: ArrayLike) -> float:
    """Half the sum of |p_t|^2 / (H_1 + ... + H_t), given the lengths |p_t| and the moduli H_t round by round."""
    p, H = np.broadcast_arrays(np.asarray(lengths, dtype=float), np.asarray(moduli, dtype=float))
    return float(0.5 * np.sum(p * p / np.cumsum(H)))

"""Projected gradient descent with the scalar AdaGrad step: no constant has to be known but the diameter of the domain."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from bridle import ops, showing, validate
from bridle.core import Domain
from bridle.learners.base import Iterate, Setting, diameter_or_own
from bridle.ops import Array, Scalar, dot, ratio, scalar


def adaptive_step(diameter: Scalar, S: Scalar) -> Scalar:
    """D / sqrt(2 S), and 0 while S = 0: with S the sum of squared gradients so far, regret is at most sqrt(2) D sqrt(S)."""
    return ratio(diameter, ops.sqrt(2.0 * S))


@showing.shown("AdaGrad")
class AdaGradNorm(NamedTuple):
    """x_{t+1} = P_X(x_t - D / sqrt(2 S_t) * p_t), S_t = sum of |p_s|^2 (Theorem 6, part 1); stays while S_t = 0."""

    domain: Domain
    diameter: Scalar

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> Iterate:
        return Iterate(x1, scalar(x1))

    def decide(self, state: Iterate) -> Array:
        return state.x

    def move(self, state: Iterate, x: Array) -> Iterate:
        """The state with x in place of its next decision."""
        return Iterate(x, state.seen)

    def step(self, state: Iterate, grad: Array, modulus: Scalar | None = None) -> Iterate:
        S = state.seen + dot(grad, grad)
        return Iterate(self.domain.project(ops.descend(state.x, adaptive_step(self.diameter, S), grad)), S)

    def rescale(self, state: Iterate, factor: Scalar) -> Iterate:
        return Iterate(state.x, state.seen * factor * factor)

    def adaptivity(self, diameter: Scalar) -> Scalar:
        """sqrt(2) D when the learner was told the true diameter; what the same proof gives when it was told another."""
        return (diameter * diameter / self.diameter + self.diameter) / sqrt(2.0)

    def squares(self, state: Iterate) -> Scalar:
        """The sum of the squared lengths of the gradients so far."""
        return state.seen


@showing.shown("AdaGrad")
class AdaGradFrom(NamedTuple):
    """`AdaGradNorm` whose S_t starts at `initial` instead of 0, which shortens the first steps; no bound is stated for it."""

    domain: Domain
    diameter: Scalar
    initial: Scalar

    @property
    def scale_free(self) -> bool:
        return True  # rescaling multiplies all of S_t, its start included, so that decisions stay as they are

    def init(self, x1: Array) -> Iterate:
        return Iterate(x1, scalar(x1) + self.initial)

    def decide(self, state: Iterate) -> Array:
        return state.x

    def move(self, state: Iterate, x: Array) -> Iterate:
        """The state with x in place of its next decision."""
        return Iterate(x, state.seen)

    def step(self, state: Iterate, grad: Array, modulus: Scalar | None = None) -> Iterate:
        return AdaGradNorm(self.domain, self.diameter).step(state, grad)

    def rescale(self, state: Iterate, factor: Scalar) -> Iterate:
        return AdaGradNorm(self.domain, self.diameter).rescale(state, factor)


def AdaGrad(domain: Domain, diameter: Setting | None = None, initial: Setting = 0.0) -> AdaGradNorm | AdaGradFrom:
    """Projected gradient descent with the scalar AdaGrad step D / sqrt(2 * sum of squared gradient lengths).

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    diameter : float or list of float, optional
        D, above 0, in units of action. Default: the domain's own diameter.
    initial : float or list of float, default 0.0
        What the sum starts from, 0 or above, in units of squared gradient. No guarantee is stated above 0.

    Notes
    -----
    Guarantee: `bridle.learners.adagrad_regret`, for every t, without knowing any constant but the diameter.

    Reference: Duchi, Hazan, Singer 2011; the paper's Theorem 6, part 1.

    Examples
    --------
    >>> import bridle
    >>> learner = AdaGrad(bridle.Ball(1, radius=10.0))
    >>> learner.decide(learner.step(learner.init(np.zeros(1)), np.array([1e-9]))).round(3)
    array([-10.])
    """
    D, start = diameter_or_own(domain, diameter), validate.setting("initial", initial, zero=True)
    return AdaGradFrom(domain, D, start) if np.any(start > 0.0) else AdaGradNorm(domain, D)


class AdaGradSteps(NamedTuple):
    """What steps D / sqrt(2 S) are made of: D, and S so far."""

    diameter: Scalar
    squares: Scalar


def adagrad_movement(D: Scalar, t: float, S: Scalar, first: Scalar) -> Scalar:
    """D sqrt((t/2) (1 + ln(S / S_1))): how far t steps D / sqrt(2 S) can lead in all, S_1 (`first`) the first sum above 0; 0 without one.

    >>> float(adagrad_movement(3.0, 8.0, 5.0, 5.0))
    6.0
    """
    first = np.asarray(first)
    growth = np.log(np.maximum(ratio(np.asarray(S), first), 1.0))
    return np.asarray(D * np.sqrt(0.5 * t * (1.0 + growth)) * (first > 0.0))


def adagrad_regret(D: float, S: float) -> float:
    """sqrt(2) D sqrt(S), S the sum of |p_t|^2."""
    return sqrt(2.0) * D * sqrt(S)

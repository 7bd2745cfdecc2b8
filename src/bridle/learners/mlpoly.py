"""ML-Poly on a simplex, each corner with a scale of its own: the default for mixtures of rules.

A decision is x = mass w with w a probability vector over K corners; l = mass p is the vector of the corners' losses where p is the
gradient, min(l) subtracted first. What was paid beyond each corner's loss is its regret R. With the prior pi (1/K each):

    r  = <w, l> - l,      R += r,      S += r^2,      b = max(b, |r|),      b = max(b, 1e-6 max_j b_j),      eta = 1 / (b^2 + S)
    w ~ pi eta R^+        (x_1 while no R is above 0)

A corner whose losses are absurdly large enters the regret against the others only through logarithms: b and S are its own (the published
form has max_j b_j in place of b). Psi^2 is an upper bound on sum pi eta (R^+)^2, kept along:

    Psi = min( sqrt(Psi^2 + sum pi eta (((R + r)^+)^2 - (R^+)^2)) with the eta of the round before,      Psi + sqrt(sum pi eta (r^+)^2) )

Guarantee: `poly_regret` with the Psi that has come out, for every t and every corner; `poly_psi` is what Psi can be at most. R itself is
    the regret so far, and `MLPolyLearner.certified` the largest.
Reference: P. Gaillard, G. Stoltz, T. van Erven. A Second-order Bound with Excess Losses. COLT 2014. Scales of one's own, Psi and the proof
    are bridle's (this file).

Proof. Phi = sum pi eta (R^+)^2 <= Psi^2 by induction. With the old eta the first form is Phi exactly, and eta never grows; where the
weights are the learner's own, sum pi eta R^+ r = 0, and Phi grows by sum pi eta r^2 at most. For the second, (R + r)^+ <= R^+ + r^+, and
Minkowski in l2(pi). Then pi_i eta_i R_i^2 <= Phi. A priori: in a round in which all |r| <= 2 b use the first: z = eta r^2 <= 4, so that
z <= (4 / ln 5) ln(1 + z), which telescopes in ln(b^2 + S). Elsewhere use the second, with eta r^2 <= 1/2; that is the first round that has
an r, and at most log2(b_t / b_1) others for each corner, as its b doubles.

>>> import bridle, numpy as np
>>> learner = MLPoly(bridle.Simplex(3))
>>> state = learner.init(learner.domain.center())
>>> for _ in range(20):
...     state = learner.step(state, np.array([0.0, 1.0, 1.0]))
>>> learner.decide(state).round(3), round(float(learner.certified(state)), 3)
(array([1., 0., 0.]), 0.667)
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops, showing
from bridle.core import Domain
from bridle.domains.closed_form import SimplexSet
from bridle.learners.base import VANISHED, Grouped, on_simplices, prior_of
from bridle.ops import Array, Scalar, along, dot, maximum, minimum, pos, ratio, scalar

FINEST = 1e-6
"""No corner's scale is a smaller part of the largest: below that its losses are taken for nothing."""


class PolyState(NamedTuple):
    """The decision, and the one to start from; of each corner the regret, the sum of its squares and the scale; Psi."""

    x: Array
    x1: Array
    R: Array
    S: Array
    b: Array
    Psi: Scalar


@showing.shown("MLPoly")
class MLPolyLearner(NamedTuple):
    """ML-Poly over the corners of `domain`, each with its own scale."""

    domain: SimplexSet
    prior: Array

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> PolyState:
        return PolyState(x1, x1, 0.0 * x1, 0.0 * x1, 0.0 * x1, scalar(x1))

    def decide(self, state: PolyState) -> Array:
        return state.x

    def step(self, state: PolyState, grad: Array, modulus: Scalar | None = None) -> PolyState:
        return self.step_at(state, grad, state.x)

    def step_at(self, state: PolyState, grad: Array, x: Array) -> PolyState:
        """The state after a gradient that belongs to the decision `x`, which may be an earlier one."""
        losses = self.domain.mass * grad
        losses = losses - along(losses, "min")
        r = dot(x, losses) / self.domain.mass - losses
        R, S = state.R + r, state.S + r * r
        old, new, gain = pos(state.R), pos(R), pos(r)
        grown = self.prior * precision(state.b, state.S) * ((new - old) * (new + old))
        first = ops.sqrt(pos(state.Psi * state.Psi + along(grown, "sum")))
        b = maximum(state.b, abs(r))
        b = maximum(b, FINEST * along(b, "max"))
        weight = self.prior * precision(b, S)
        second = state.Psi + ops.sqrt(along(weight * gain * gain, "sum"))
        Psi = ops.where(along(state.b, "max") > 0.0, minimum(first, second), second)
        weight = weight * new
        total = along(weight, "sum")
        x = ops.where(total > 0.0, ratio(self.domain.mass, total) * weight, state.x1)
        return PolyState(x, state.x1, R, S, b, Psi)

    def rescale(self, state: PolyState, factor: Scalar) -> PolyState:
        return state._replace(R=factor * state.R, S=factor * factor * state.S, b=factor * state.b)

    def certified(self, state: PolyState) -> Scalar:
        """The regret against the best corner, as it is: the gradients' own sum."""
        return along(state.R, "max")


def precision(b: Array, S: Array) -> Array:
    """eta = 1 / (b^2 + S); 0 where that is 0."""
    size = b * b + S
    return ratio(1.0, size * (size > VANISHED))


def MLPoly(domain: Domain, prior: ArrayLike | None = None) -> MLPolyLearner | Grouped:
    """A polynomial mixture of the corners of a simplex, each with a learning rate of its own (ML-Poly).

    Parameters
    ----------
    domain : Domain
        A simplex, or equal simplices side by side.
    prior : array_like of shape (dim,), optional
        The weight of each corner before the first round, above 0. Default: all alike.

    Notes
    -----
    Guarantee: `bridle.learners.poly_regret` and `bridle.learners.poly_psi`.

    Reference: Gaillard, Stoltz, van Erven 2014.

    Examples
    --------
    >>> import bridle
    >>> learner = MLPoly(bridle.Simplex(2))
    >>> learner.decide(learner.step(learner.init(np.array([0.5, 0.5])), np.array([0.0, 1e-9])))
    array([1., 0.])
    """
    return on_simplices("mlpoly", domain, lambda simplex: MLPolyLearner(simplex, prior_of(simplex, prior)))


def poly_regret(b: ArrayLike, S: ArrayLike, prior: ArrayLike, Psi: float) -> Array:
    """sqrt((b_i^2 + S_i) / pi_i) Psi: the regret against each corner, with its own scale and squares, is no larger.

    >>> poly_regret(3.0, 16.0, 0.25, 0.5)
    array(5.)
    """
    squares = np.asarray(b, dtype=float) ** 2 + np.asarray(S, dtype=float)
    return np.asarray(np.sqrt(squares / np.asarray(prior, dtype=float)) * Psi)


def poly_psi(first: ArrayLike, last: ArrayLike, S: ArrayLike, prior: ArrayLike) -> float:
    """sqrt((4 / ln 5) sum pi_j ln((b_j^2 + S_j) / b_{j,1}^2)) + (1 + sum log2(b_j / b_{j,1})) / sqrt(2): Psi is at most this.

    `first` are the scales after the first round that had an r, `last` and `S` those now; the learner must have been fed with losses at its
    own decisions.
    """
    start, scale, squares = (np.asarray(value, dtype=float) for value in (first, last, S))
    logarithms = np.asarray(prior) * np.log((scale**2 + squares) / start**2)
    return sqrt(4.0 / log(5.0) * float(np.sum(logarithms))) + (1.0 + float(np.sum(np.log2(scale / start)))) / sqrt(2.0)

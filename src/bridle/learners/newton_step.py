"""The online Newton step: regret of order log T for exp-concave costs, such as the log-wealth of a portfolio (exp-concavity 1).

exp(-alpha f) is concave, alpha being the costs' exp-concavity. With p the gradient at the decision x (on a simplex less the mean of its
entries, which changes no product with a difference of actions), n how many directions the domain has and D its diameter:

    B  = max over the domain of <p, x - u>,      1 / gamma = 1 / alpha + 2 B / 3
    M += gamma p p',      A = eps I + M,      eps = n / (alpha D^2)
    x_next minimises  <p, z - x> + |z - x|_A^2 / 2  over the domain

So curvature is taken from each round's own B, and only alpha must be known; with alpha = 0, eps = sqrt(2 S) / D with S the sum of |p|^2,
which is AdaGrad. The minimum is found by accelerated gradient steps, which need no more than the domain's own projection, until the gap

    delta = max over the domain of <p + A (z - x), z - u>

is at most `SOLVED` of what z gains, m = <p, x - z> - |z - x|_A^2 / 2, or `MOST_STEPS` have been taken; what is left of the gap is charged.
Each of them costs of the order of d^2 operations, and on daily prices it takes ten.

Guarantee: `NewtonStep.certified`: regret is at most  eps D^2 / 2 + sum (m_t + delta_t)  after every round, for every sequence of costs of
    that exp-concavity; `ons_regret` is what that can be at most, of the order n log t / alpha.
Reference: E. Hazan, A. Agarwal, S. Kale. Logarithmic Regret Algorithms for Online Convex Optimization. Machine Learning 2007; for
    portfolios A. Agarwal, E. Hazan, S. Kale, R. Schapire. ICML 2006. The form of gamma, B of each round and the charge are bridle's.

Proof. exp(-alpha f) lies below its tangent at x: with r = <p, x - u>,  f(x) - f(u) <= ln(1 + alpha r) / alpha <= r - gamma r^2 / 2,  as
(z - ln(1 + z)) / z^2 falls in z, is at least 1 / (2 + 4 z / 3) from 0 on, and r <= B. From <p + A (z - x), u - z> >= -delta follows
|z - u|_A^2 <= |x - u|_A^2 - 2 r + 2 m + 2 delta. Summed up, that A grows by gamma p p' adds  sum gamma r^2 / 2,  and all of its eps I at
most eps D^2 / 2. A decision that is replaced by the point nearest to it in the norm of A, of a convex set that holds u, is no farther from
u in that norm. A priori m <= <p, A^-1 p> / 2 and <gamma p, A^-1 p> = 1 - det(A - gamma p p') / det A: all m sum up to at most
ln(det A / eps^n) / (2 gamma) with the smallest gamma, and det A <= (eps + alpha S / n)^n.

>>> import bridle, numpy as np
>>> learner = ONS(bridle.Simplex(2), exp_concavity=1.0)
>>> state = learner.init(np.array([1.0, 0.0]))
>>> for day in range(300):  # one asset doubles and halves, the other is cash: half of each is best
...     relatives = np.array([2.0 if day % 2 else 0.5, 1.0])
...     state = learner.step(state, -relatives / (relatives @ learner.decide(state)))
>>> learner.decide(state).round(2), bool(learner.certified(state) < 4.0)
(array([0.5, 0.5]), True)
"""

from __future__ import annotations

from math import log1p, sqrt
from typing import NamedTuple

import numpy as np

from bridle import ops, showing, validate
from bridle.core import Domain
from bridle.domains.closed_form import ProductSet, SimplexSet
from bridle.domains.half_space_cut import iterate
from bridle.learners.base import Setting, diameter_or_own
from bridle.ops import Array, Flag, Scalar, along, combine, dot, norm, pos, ratio, scalar
from bridle.records import choose

SOLVED = 1e-6
"""A step is solved where the gap is at most this part of what it gains."""

ROUNDING = 1e-14
"""A gap that is at most this part of the products that it is the difference of is rounding."""

MOST_STEPS = 2000
"""After so many gradient steps the one that has been found is played, and its gap charged."""


class NewtonState(NamedTuple):
    """The decision, M and S; the sum of what steps gained and of their gaps; by how much gaps were larger than `SOLVED` says."""

    x: Array
    M: Array
    S: Scalar
    spent: Scalar
    shortfall: Scalar


@showing.shown("ONS", alpha="exp_concavity")
class NewtonStep(NamedTuple):
    """The online Newton step for costs of exp-concavity `alpha`; `ridge` is eps, where that is above 0."""

    domain: Domain
    alpha: Scalar
    diameter: Scalar
    ridge: Scalar

    @property
    def scale_free(self) -> bool:
        return False

    @property
    def exp_concavity(self) -> Scalar:
        """What it was told of its costs."""
        return self.alpha

    def init(self, x1: Array) -> NewtonState:
        return NewtonState(x1, 0.0 * (x1[..., :, None] * x1[..., None, :]), scalar(x1), scalar(x1), scalar(x1))

    def decide(self, state: NewtonState) -> Array:
        return state.x

    def move(self, state: NewtonState, x: Array) -> NewtonState:
        """The state with x in place of its next decision: the nearest point of a set in the norm of `metric`."""
        return state._replace(x=x)

    def metric(self, state: NewtonState) -> Array:
        """A: the proof measures distances to the comparator in its norm."""
        return self._eps(state.S) * np.eye(state.x.shape[-1]) + state.M

    def step(self, state: NewtonState, grad: Array, modulus: Scalar | None = None) -> NewtonState:
        x, p = state.x, along_domain(self.domain, grad)
        reach = pos(dot(p, x) - self.domain.linear_min(p))
        gamma = self.alpha / (1.0 + self.alpha * reach / 1.5)
        M = state.M + (gamma * p)[..., :, None] * p[..., None, :]
        S = state.S + dot(p, p)
        eps = self._eps(S)
        z, gain, gap = self._nearest(x, p, M, eps, reach)
        return NewtonState(z, M, S, state.spent + gain + gap, state.shortfall + pos(gap - SOLVED * gain))

    def certified(self, state: NewtonState) -> Scalar:
        """The upper bound on regret that the proof gives for the gradients so far."""
        D = self.domain.diameter()
        return 0.5 * self._eps(state.S) * (D * D) + state.spent

    def _eps(self, S: Scalar) -> Scalar:
        return ops.where(self.alpha > 0.0, self.ridge, ops.sqrt(2.0 * S) / self.diameter)

    def _nearest(self, x: Array, p: Array, M: Array, eps: Scalar, reach: Scalar) -> tuple[Array, Scalar, Scalar]:
        """The z that minimises <p, z - x> + |z - x|_A^2 / 2, what it gains, and its gap."""
        steepest = eps + along(abs(M).sum(axis=-1), "max")  # no eigenvalue is above the largest row sum
        step, rounding = ratio(1.0, steepest), ROUNDING * (reach + steepest * self.diameter * (self.diameter + norm(x)))
        low, high = ops.sqrt(eps), ops.sqrt(steepest)
        momentum = ratio(high - low, high + low)  # Nesterov's, for eigenvalues between the two

        def judged(z: Array, pull: Array) -> tuple[Scalar, Scalar]:
            slope, away = p + pull, z - x
            return -dot(p, away) - 0.5 * dot(away, pull), pos(dot(slope, z) - self.domain.linear_min(slope))

        def solved(at: _Descent) -> Flag:
            return at.gap <= SOLVED * at.gain + rounding

        def descend(at: _Descent) -> _Descent:
            z = self.domain.project(at.ahead - step * (p + at.ahead_pull))
            pull = eps * (z - x) + combine(z - x, M)
            new = _Descent(z, pull, z + momentum * (z - at.z), pull + momentum * (pull - at.pull), *judged(z, pull))
            return choose(solved(at), at, new)

        begin = _Descent(x, 0.0 * x, x, 0.0 * x, *judged(x, 0.0 * x))
        end = iterate(descend, begin, MOST_STEPS, x, solved)
        return end.z, end.gain, end.gap


class _Descent(NamedTuple):
    """The point z, and A (z - x); the same of the point ahead, to which momentum leads; what z gains, and its gap."""

    z: Array
    pull: Array
    ahead: Array
    ahead_pull: Array
    gain: Scalar
    gap: Scalar


def along_domain(domain: Domain, p: Array) -> Array:
    """The part of a gradient that matters to differences of actions: on a simplex less the mean of its entries."""
    if isinstance(domain, SimplexSet):
        level: Array = p - along(p, "sum") / p.shape[-1]
        return level
    if isinstance(domain, ProductSet):
        ends = np.cumsum([part.dim for part in domain.domains]).tolist()
        return ops.join([along_domain(part, p[..., end - part.dim : end]) for part, end in zip(domain.domains, ends, strict=True)], -1)
    return p


def directions(domain: Domain) -> int:
    """How many independent directions there are between actions, or at most are."""
    if isinstance(domain, ProductSet):
        return sum(directions(part) for part in domain.domains)
    return domain.dim - 1 if isinstance(domain, SimplexSet) else domain.dim


def ONS(domain: Domain, exp_concavity: Setting, diameter: Setting | None = None) -> NewtonStep:
    """The online Newton step, for exp-concave costs such as the log-wealth of a portfolio.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    exp_concavity : float or list of float
        alpha, 0 or above, in 1 / cost: ``exp(-alpha f)`` is concave for every cost f. The log-wealth of a portfolio has 1; a cost of
        modulus mu
        with gradients at most G long has mu / G^2. With 0 costs are merely convex, and the learner is AdaGrad.
    diameter : float or list of float, optional
        D, above 0, in units of action. Default: the domain's own diameter.

    Notes
    -----
    Guarantee: `bridle.learners.ons_regret`, and ``certified(state)`` with what has happened.

    Reference: Hazan, Agarwal, Kale 2007.

    Examples
    --------
    >>> import bridle
    >>> learner = ONS(bridle.Box(-1.0, 1.0, dim=1), exp_concavity=0.5)  # eps = 1 / (0.5 * 2^2); 1 / gamma = 1 / 0.5 + 2 * 0.3 / 3
    >>> learner.decide(learner.step(learner.init(np.zeros(1)), np.array([0.3]))).round(9) == round(-0.3 / (0.5 + 0.09 / 2.2), 9)
    array([ True])
    """
    D, alpha = diameter_or_own(domain, diameter), validate.setting("exp_concavity", exp_concavity, zero=True)
    ridge = ratio(float(directions(domain)), alpha * D * D)
    return NewtonStep(domain, alpha, D, ridge)


def ons_regret(n: float, alpha: float, D: float, B: float, S: float, told: float | None = None, shortfall: float = 0.0) -> float:
    """n / (2 alpha) + (n/2) (1/alpha + 2 B / 3) ln(1 + (alpha D / n)^2 S), and sqrt(2 S) D where alpha = 0.

    n is the number of directions, B the largest <p_t, x_t - u>, no more than G D, S the sum of |p_t|^2, `told` the diameter that the
    learner was told where it is not D. `SOLVED` of what steps gain is added for their gaps, and the `shortfall` of those that stop early.

    >>> round(ons_regret(1.0, 1.0, 1.0, 0.75, 10_000.0), 3)
    7.408
    """
    own = D if told is None else told
    if alpha == 0.0:
        eps, gained = sqrt(2.0 * S) / own, own * sqrt(0.5 * S)
    else:
        eps = n / (alpha * own * own)
        gained = 0.5 * n * (1.0 / alpha + B / 1.5) * log1p(alpha * S / (n * eps))
    return 0.5 * eps * D * D + (1.0 + SOLVED) * gained + shortfall

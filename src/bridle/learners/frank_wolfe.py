"""Online Frank-Wolfe: one linear minimisation a round, and no projection.

With q_t = |p_t|, N_t = q_1^{4/3} + ... + q_t^{4/3} and R_t = (c/D) N_t^{3/4}, c = 3/4, the aim after round t is the regularised leader

    F_t(x) = <p_1 + ... + p_t, x> + R_t |x - x_1|^2

and the decision takes one step of Frank and Wolfe's method towards it, as long as is best:

    v = argmin over X of <grad F_t(x_t), v>,      sigma = min(1, <grad F_t(x_t), x_t - v> / (2 R_t |v - x_t|^2))
    x_{t+1} = x_t + sigma (v - x_t)

The regulariser grows with the gradients, so that no horizon and no length of gradients is known beforehand, and multiplying all gradients
by a number changes nothing.

Guarantee: `frank_wolfe_regret`: at most (13/4) D (q_1^{4/3} + ... + q_t^{4/3})^{3/4}, so at most (13/4) D t^{3/4} max q, for every t.
Reference: E. Hazan, S. Kale. Projection-free online learning. ICML 2012: steps t^{-1/2} towards a leader whose weight is set by the horizon
    and the Lipschitz constant. Line search, weights and proof are this file's.

Proof. Write x*_t for the minimiser of F_{t-1} (x*_1 = x_1), h_t = (F_{t-1}(x_t) - F_{t-1}(x*_t)) / R_{t-1}, u_t = sqrt(h_t) / D and
e_t = |x*_{t+1} - x*_t|. F_{t-1} is 2 R_{t-1}-strongly convex: |x_t - x*_t| <= D u_t, also at most D.
(1) Leaders. R does not fall, so  sum <p_s, x*_s - u> <= R_t |u - x_1|^2 + sum (q_s e_s - R_{s-1} e_s^2).  And <p_s, x_s - x*_s> <=
    q_s D u_s. A round's terms together are at most q_s D, and at most q_s D u_s + q_s^2 / (4 R_{s-1}).
(2) Gap. With dR = R_t - R_{t-1} and m = q_t + 2 D dR,  F_t(x_t) - F_t(x*_{t+1}) <= R_{t-1} (h_t - e_t^2) + m (D u_t + e_t)
    <= R_{t-1} (D u_t + m / (2 R_{t-1}))^2  =: R_t D^2 w^2. The step with the best sigma leaves at most min over sigma in [0, 1] of
    (1 - sigma) w^2 + sigma^2 of it, in units of R_t D^2:  u_{t+1}^2 <= w^2 - w^4/4  where w^2 <= 2, else 1.
(3) In units of N_{t-1}: let nu = q_t^{4/3} / N_{t-1} and r = (1 + nu)^{3/4} = R_t / R_{t-1}. Then q_t / (R_{t-1} D) = nu^{3/4} / c,
    w^2 = (u_t + delta)^2 / r,  delta = nu^{3/4} / (2c) + r - 1.  With k = 1/5 and K = 5/2, for every nu > 0 and u in [0, 1],

        min(nu^{3/4}, nu^{3/4} u + nu^{3/2} / (4c)) + k (r u_{t+1}^2 - u^2) <= K (r - 1).                                             (*)

    Summed, with N_{t-1}^{3/4} D as the unit: the terms of (1) add up to at most K D N_t^{3/4}, and regret to (c + K) D N_t^{3/4}. (In
    round 1, where R_0 = 0: q e - R_1 e^2 <= D N_1^{3/4} / (4c) = 1/3, and k u_2^2 <= k / (4c^2) < 1/10, together less than K.)
(4) (*) Let z = u + delta and w^2 <= 2. Its left side is at most  (nu^{3/4} + 2 k delta) z - k z^4 / (4r) - nu^{3/4} delta +
    nu^{3/2} / (4c) - k delta^2;  the largest over z is (3/4) (r/k)^{1/3} (nu^{3/4} + 2 k delta)^{4/3} for the first two terms. What is
    left has one variable: divided by r - 1 it is 2.35 for nu -> 0 and at most 2.4949, near nu = 0.018. For nu >= 1 the left side is at
    most nu^{3/4} + k r, less than 2 (r - 1). Where w^2 > 2, nu is above 0.37, and between 0.24 and 1 the left side is below 2.3 (r - 1) for
    every u. `tests/learners/test_frank_wolfe.py` encloses both, cell by cell.
With a larger c, (*) holds all the more: so it does where D is told too small, with c D'/D in place of c, D' the true one.

>>> import bridle, numpy as np
>>> learner = FrankWolfe(bridle.Simplex(3))
>>> learner.decide(learner.step(learner.init(np.full(3, 1 / 3)), np.array([0.0, 1.0, 2.0]))).round(3)
array([0.755, 0.123, 0.123])
"""

from __future__ import annotations

from typing import NamedTuple

from bridle import showing
from bridle.core import Domain
from bridle.learners.base import Setting, diameter_or_own
from bridle.ops import Array, Scalar, dot, maximum, minimum, norm, pos, ratio, scalar

WEIGHT = 0.75
"""c of the regulariser: the best for the proof, up to two digits."""

GAP = 2.5
"""K of the proof."""

POWER = 0.75
"""The exponent of the rounds in the regret bound."""


class FrankWolfeState(NamedTuple):
    """Where it started, where it is, the sum of the gradients, N, and what has been paid: the sum of <p_s, x_s>."""

    x1: Array
    x: Array
    total: Array
    N: Scalar
    paid: Scalar


@showing.shown("FrankWolfe")
class FrankWolfeLearner(NamedTuple):
    """One step of Frank and Wolfe's method a round, towards the regularised leader."""

    domain: Domain
    diameter: Scalar

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> FrankWolfeState:
        return FrankWolfeState(x1, x1, 0.0 * x1, scalar(x1), scalar(x1))

    def decide(self, state: FrankWolfeState) -> Array:
        return state.x

    def step(self, state: FrankWolfeState, grad: Array, modulus: Scalar | None = None) -> FrankWolfeState:
        total, N = state.total + grad, state.N + norm(grad) ** (1.0 / POWER)
        R = WEIGHT / self.diameter * N**POWER
        slope = total + 2.0 * R * (state.x - state.x1)
        ahead = self.domain.linear_argmin(slope) - state.x
        sigma = minimum(1.0, pos(ratio(-dot(slope, ahead), 2.0 * R * dot(ahead, ahead))))
        return FrankWolfeState(state.x1, state.x + sigma * ahead, total, N, state.paid + dot(grad, state.x))

    def rescale(self, state: FrankWolfeState, factor: Scalar) -> FrankWolfeState:
        N, paid = state.N * factor ** (1.0 / POWER), state.paid * factor
        return FrankWolfeState(state.x1, state.x, factor * state.total, N, paid)

    @property
    def power(self) -> float:
        """3/4: regret is at most `steadiness` times t^{3/4} times the longest gradient."""
        return POWER

    def steadiness(self, diameter: Scalar) -> Scalar:
        """C of the regret bound C N^{3/4}, for a domain of this diameter: (13/4) D where that is what the learner was told."""
        D = maximum(diameter, self.diameter)
        return WEIGHT * D * D / self.diameter + GAP * D

    def certified(self, state: FrankWolfeState) -> Scalar:
        """What was paid less what the best action would have: the regret on the gradients themselves."""
        return state.paid - self.domain.linear_min(state.total)


def FrankWolfe(domain: Domain, diameter: Setting | None = None) -> FrankWolfeLearner:
    """Online Frank-Wolfe: follow the regularised leader by one linear minimisation a round, and no projection.

    For domains on which linear functions are easy to minimise and projections are not, such as `bridle.Spectrahedron`, `bridle.Paths`,
    `bridle.Matchings` and `bridle.SpanningTrees`. It needs no horizon and no length of gradients.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    diameter : float or list of float, optional
        D, above 0, in units of action. Default: the domain's own diameter.

    Notes
    -----
    Guarantee: `bridle.learners.frank_wolfe_regret`.

    Reference: Hazan, Kale 2012; line search, weights and proof are this library's.

    Examples
    --------
    >>> import bridle, numpy as np
    >>> learner = FrankWolfe(bridle.Box([-1.0], [1.0]))
    >>> learner.decide(learner.step(learner.init(np.zeros(1)), np.array([1e-9]))).round(6)
    array([-1.])
    """
    return FrankWolfeLearner(domain, diameter_or_own(domain, diameter))


def frank_wolfe_regret(D: float, N: float) -> float:
    """(13/4) D N^{3/4}, N the sum of |p_t|^{4/3}.

    >>> round(frank_wolfe_regret(2.0, 10_000 * 3.0 ** (4 / 3)), 6)  # 3.25 G D T^{3/4}
    19500.0
    """
    return float((WEIGHT + GAP) * D * N**POWER)

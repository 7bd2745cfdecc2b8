"""A learner for gradients that arrive late and in any order.

The steps of `LateAdaGrad` follow the gradients and the waiting. Of the n-th gradient to arrive, let a_n be how many have arrived since
the decision that it was taken at, and o_n how many other rounds wait when it arrives:

    x_{n+1} = P_X(x_n - D / sqrt(2 S_n) p_n),     S_n = sum over j <= n of (1 + a_j + o_j) |p_j|^2

Guarantee: `late_adagrad_regret`: sqrt(2) D sqrt(S) + D sqrt(A L / 2) with A = sum a_j |p_j|^2 and L = sum o_j |p_j|^2 / S_j, which is at
    most 1 + ln(S_N / S_1). Where nothing is late that is AdaGrad's; with m others always waiting it is O(D sqrt(m sum |p|^2 log)).
Reference: bridle (this file); adaptive steps for delays are those of McMahan and Streeter 2014, and Joulani, Gyorgy and Szepesvari 2016,
    who weigh products of outstanding gradients, not counts.

Proof. Let z_n be the decision just before the n-th gradient p_n arrives, and x the one that it was taken at. With
eta_n = D / sqrt(2 S_n), ordinary descent gives  sum <p_n, z_n - u> <= D^2 / (2 eta_N) + sum eta_n |p_n|^2 / 2 <= sqrt(2) D
sqrt(S_N), as |p_n|^2 <= S_n - S_{n-1}. From x to z_n there are the a_n steps that arrived meanwhile, the j-th of length at most
eta_j |p_j|, and step j lies between the two for o_j gradients. Over all such pairs (j, n), by Cauchy and Schwarz,  sum <p_n, x - z_n> <=
sum |p_n| eta_j |p_j| <= sqrt(sum a_n |p_n|^2) sqrt(sum o_j eta_j^2 |p_j|^2) = sqrt(A) D sqrt(L / 2).  And o_j |p_j|^2 <= S_j - S_{j-1}, so
L <= 1 + ln(S_N / S_1), S_1 the first above 0.

>>> import bridle, numpy as np
>>> learner = LateAdaGrad(bridle.Ball(2), delay=4)
>>> learner.decide(learner.step(learner.init(np.zeros(2)), np.array([3.0, 0.0])))
array([-0.47140452,  0.        ])
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from bridle import ops, showing, validate
from bridle.core import Domain
from bridle.learners.adagrad import adaptive_step
from bridle.learners.base import Setting
from bridle.ops import Array, Scalar, dot, ratio, scalar


class LateAdaGradState(NamedTuple):
    """The decision, how many gradients have arrived, the sums S, A and L, and what they prove of the regret so far."""

    x: Array
    observed_rounds: Scalar
    S: Scalar
    waited: Scalar
    shared: Scalar
    observed_regret: Scalar


@showing.shown("LateAdaGrad")
class AdaGradLate(NamedTuple):
    """The learner; `delay` is how many rounds are taken to wait, and to have come in between, where `step` is not told."""

    domain: Domain
    diameter: Scalar
    delay: Scalar

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> LateAdaGradState:
        zero = scalar(x1)
        return LateAdaGradState(x1, zero, zero, zero, zero, zero)

    def decide(self, state: LateAdaGradState) -> Array:
        return state.x

    def step(self, state: LateAdaGradState, grad: Array, modulus: Scalar | None = None) -> LateAdaGradState:
        return self.step_late(state, grad, self.delay, self.delay)

    def step_late(self, state: LateAdaGradState, grad: Array, since: Scalar, others: Scalar) -> LateAdaGradState:
        """The step for a gradient since whose decision so many have arrived, while so many others wait."""
        square = dot(grad, grad)
        S, waited = state.S + (1.0 + since + others) * square, state.waited + since * square
        shared = state.shared + ratio(others * square, S)
        x = self.domain.project(state.x - adaptive_step(self.diameter, S) * grad)
        own = self.domain.diameter()
        proved = (own * own / self.diameter + self.diameter) * ops.sqrt(0.5 * S) + self.diameter * ops.sqrt(0.5 * waited * shared)
        return LateAdaGradState(x, state.observed_rounds + 1.0, S, waited, shared, proved)

    def rescale(self, state: LateAdaGradState, factor: Scalar) -> LateAdaGradState:
        S, waited = state.S * factor * factor, state.waited * factor * factor
        return state._replace(S=S, waited=waited, observed_regret=state.observed_regret * factor)

    def certified(self, state: LateAdaGradState) -> Scalar:
        """`late_adagrad_regret` with what has arrived, also where the learner was told another diameter than the domain's."""
        return state.observed_regret


def LateAdaGrad(domain: Domain, delay: Setting = 0.0, diameter: Setting | None = None) -> AdaGradLate:
    """AdaGrad for gradients that arrive late and out of order, with steps that follow the gradients and the waiting.

    Returns the learner: ``init(x1)``, ``decide(state)``, ``step(state, grad)`` and ``step_late(state, grad, since,
    others)``.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    delay : float or list of float, default 0.0
        How many other rounds wait when a gradient arrives, at most, where nobody counts them, 0 or above. ``step_late`` is told.
    diameter : float or list of float, optional
        D, above 0, in units of action. Default: the domain's own diameter.

    Examples
    --------
    >>> import bridle, numpy as np
    >>> learner = LateAdaGrad(bridle.Ball(1))
    >>> late = learner.step_late(learner.init(np.zeros(1)), np.array([1e-9]), since=3.0, others=4.0)
    >>> learner.decide(late), learner.decide(learner.step(learner.init(np.zeros(1)), np.array([1e-9])))
    (array([-0.5]), array([-1.]))
    """
    D = validate.setting("diameter", domain.diameter() if diameter is None else diameter)
    return AdaGradLate(domain, D, validate.setting("delay", delay, zero=True))


def late_adagrad_regret(D: float, S: float, waited: float = 0.0, shared: float = 0.0) -> float:
    """sqrt(2) D sqrt(S) + D sqrt(A L / 2), A and L what was `waited` and `shared`.

    >>> late_adagrad_regret(2.0, 50.0), late_adagrad_regret(2.0, 50.0, 9.0, 2.0)
    (20.0, 26.0)
    """
    return D * (sqrt(2.0 * S) + sqrt(0.5 * waited * shared))

"""Learners for gradients that arrive late and in any order.

`LateOGD` is told how many may be outstanding at once:

    x_{n+1} = P_X(x_n - D / (M_n sqrt(n (1 + 2 delay))) p_n),     M_n the longest of the first n gradients

The n-th gradient to arrive, p_n, was taken at the decision of its own round. `delay` is the largest number of *other* rounds that are
still waiting when one arrives; how long each waits does not matter.

Guarantee: `late_regret`.
Reference: bridle (this file); the double count over outstanding pairs is that of Joulani, Gyorgy and Szepesvari 2013 and 2016.

Proof. Let z_n be the decision just before p_n arrives, x the one p_n was taken at, b = M_N and eta_n = D / (M_n sqrt(n (1 + 2 delay))),
which does not increase. Ordinary descent gives  sum <p_n, z_n - u> <= D^2 / (2 eta_N) + sum eta_n |p_n|^2 / 2
<= D b sqrt(N (1 + 2 delay)) / 2 + D b sqrt(N) / sqrt(1 + 2 delay).  From x to z_n the learner took the steps that arrived meanwhile,
each of length at most D / sqrt(j (1 + 2 delay)). Step j lies between the two for at most `delay` gradients n, those that were waiting when
it came, so  sum <p_n, x - z_n> <= b delay sum_j D / sqrt(j (1 + 2 delay)) <= 2 delay D b sqrt(N) / sqrt(1 + 2 delay).  Together
1.5 D b sqrt(N (1 + 2 delay)).

`LateAdaGrad` need not be told, and its steps follow the gradients themselves. Of the n-th gradient to arrive, let a_n be how many have
arrived since the decision that it was taken at, and o_n how many other rounds wait when it arrives:

    x_{n+1} = P_X(x_n - D / sqrt(2 S_n) p_n),     S_n = sum over j <= n of (1 + a_j + o_j) |p_j|^2

Guarantee: `late_adagrad_regret`: sqrt(2) D sqrt(S) + D sqrt(A L / 2) with A = sum a_j |p_j|^2 and L = sum o_j |p_j|^2 / S_j, which is at
    most 1 + ln(S_N / S_1). Where nothing is late that is AdaGrad's; with m others always waiting it is O(D sqrt(m sum |p|^2 log)).
Reference: bridle (this file); adaptive steps for delays are those of McMahan and Streeter 2014, and Joulani, Gyorgy and Szepesvari 2016,
    who weigh products of outstanding gradients, not counts.

Proof. With eta_n = D / sqrt(2 S_n), ordinary descent gives  sum <p_n, z_n - u> <= D^2 / (2 eta_N) + sum eta_n |p_n|^2 / 2 <= sqrt(2) D
sqrt(S_N), as |p_n|^2 <= S_n - S_{n-1}. From x to z_n there are the a_n steps that arrived meanwhile, the j-th of length at most
eta_j |p_j|, and step j lies between the two for o_j gradients. Over all such pairs (j, n), by Cauchy and Schwarz,  sum <p_n, x - z_n> <=
sum |p_n| eta_j |p_j| <= sqrt(sum a_n |p_n|^2) sqrt(sum o_j eta_j^2 |p_j|^2) = sqrt(A) D sqrt(L / 2).  And o_j |p_j|^2 <= S_j - S_{j-1}, so
L <= 1 + ln(S_N / S_1), S_1 the first above 0.

>>> import bridle, numpy as np
>>> learner = LateOGD(bridle.Ball(2), delay=4)
>>> learner.decide(learner.step(learner.init(np.zeros(2)), np.array([3.0, 0.0])))
array([-0.66666667,  0.        ])
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from bridle import ops, showing, validate
from bridle.core import Domain
from bridle.learners.adagrad import adaptive_step
from bridle.learners.base import Setting
from bridle.ops import Array, Scalar, dot, maximum, norm, ratio, scalar


class LateState(NamedTuple):
    """The decision, how many gradients have arrived, and the longest of them."""

    x: Array
    seen: Scalar
    longest: Scalar


@showing.shown("LateOGD")
class LateGradient(NamedTuple):
    """The learner; the scale of the gradients does not matter."""

    domain: Domain
    diameter: Scalar
    delay: Scalar

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> LateState:
        return LateState(x1, scalar(x1), scalar(x1))

    def decide(self, state: LateState) -> Array:
        return state.x

    def step(self, state: LateState, grad: Array, modulus: Scalar | None = None) -> LateState:
        seen, longest = state.seen + 1.0, maximum(state.longest, norm(grad))
        size = ratio(self.diameter, longest * ops.sqrt(seen * (1.0 + 2.0 * self.delay)))
        return LateState(self.domain.project(state.x - size * grad), seen, longest)

    def rescale(self, state: LateState, factor: Scalar) -> LateState:
        return LateState(state.x, state.seen, state.longest * factor)

    def steadiness(self, diameter: Scalar) -> Scalar:
        """The constant c of the regret bound  c max |p_s| sqrt(t),  also where the learner was told another diameter than the true one."""
        root = (1.0 + 2.0 * self.delay) ** 0.5
        return (0.5 * diameter * diameter / self.diameter + self.diameter) * root


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


def LateOGD(domain: Domain, delay: Setting, diameter: Setting | None = None) -> LateGradient:
    """Online gradient descent for gradients that arrive late and out of order.

    Returns the learner: ``init(x1)``, ``decide(state)``, ``step(state, grad)`` and ``step_at(state, grad, x)``.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    delay : float or list of float
        The most other rounds that may be waiting when a gradient arrives, 0 or above.
    diameter : float or list of float, optional
        D, above 0, in units of action. Default: the domain's own diameter.

    Examples
    --------
    >>> import bridle, numpy as np
    >>> learner = LateOGD(bridle.Ball(1), delay=0.0)
    >>> learner.decide(learner.step(learner.init(np.zeros(1)), np.array([1e-9])))
    array([-1.])
    """
    D = validate.setting("diameter", domain.diameter() if diameter is None else diameter)
    return LateGradient(domain, D, validate.setting("delay", delay, zero=True))


def late_regret(D: float, longest: float, t: float, delay: float) -> float:
    """1.5 D max |p_s| sqrt(t (1 + 2 delay)), for t gradients that have arrived.

    >>> late_regret(2.0, 1.0, 100, 4)
    90.0
    """
    return 1.5 * D * longest * sqrt(t * (1.0 + 2.0 * delay))

"""A learner for gradients that arrive late and in any order, at most so many outstanding at once.

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
from bridle.learners.base import Setting
from bridle.ops import Array, Scalar, maximum, norm, ratio, scalar


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


def LateOGD(domain: Domain, delay: Setting, diameter: Setting | None = None) -> LateGradient:
    """Online gradient descent for gradients that arrive late and out of order.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    delay : float or list of float
        The most other rounds that may be waiting when a gradient arrives, 0 or above.
    diameter : float or list of float, optional
        D, above 0, in units of action. Default: the domain's own diameter.

    Returns
    -------
    LateGradient
        The learner: ``init(x1)``, ``decide(state)``, ``step(state, grad)`` and ``step_at(state, grad, x)``.

    Raises
    ------
    InputError
        A value is out of range.

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

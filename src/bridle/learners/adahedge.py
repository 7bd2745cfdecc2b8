"""AdaHedge on a simplex: exponential weights whose rate follows what they have cost so far. No range and no horizon has to be known.

A decision is x = mass w with w a probability vector over K corners; l = mass p is the vector of the corners' losses where p is the
gradient, min(l) subtracted first, and s = max l - min l its range. With the prior pi (1/K each) and c = ln max(K, 2):

    w      = pi e^{-c L / Delta} / Z(L),      Z(L) = sum pi e^{-c L / Delta},      L the losses so far, min(L) subtracted
    m_t    = min(L + l) - (ln Z(L + l - min(L + l)) - ln Z(L)) Delta / c            (the mix loss; the last term is 0 while Delta = 0)
    Delta += max(0, <w, l> - m_t)

While Delta = 0 it plays x_1, whatever that is: nothing in the proof asks where it starts.

Guarantee: `hedge_regret`, for every t; and `Hedge.certified`, the same with what has happened, also where the losses are those of other
    weights than the learner's own (`step_at`: late feedback).
Reference: S. de Rooij, T. van Erven, P. Grunwald, W. Koolen. Follow the Leader If You Can, Hedge If You Must. JMLR 2014. The bound in
    sqrt(sum s^2), and the start, are bridle's (this file).

Proof. The rate eta_t = c / Delta_{t-1} does not grow, so the mix losses add up to at most <L_t, u> + KL(u || pi) / eta_t for every u; what
was paid beyond them adds up to at most Delta_t. So  Regret_t(u) <= Delta_t + Delta_{t-1} KL(u || pi) / c,  whichever weights were played.
For the learner's own, Hoeffding's lemma has <w, l> - m <= min(s, eta s^2 / 8): Delta_t^2 - Delta_{t-1}^2 = delta^2 + 2 delta Delta_{t-1} <=
s^2 + (c/4) s^2, hence Delta_t <= sqrt(1 + c/4) sqrt(sum s^2). While Delta = 0 every corner that x_1 holds has had the least loss in every
round, so that min(L + l) - min(L) <= <x_1, l> there, and the difference is at most s.

>>> import bridle, numpy as np
>>> learner = AdaHedge(bridle.Simplex(3))
>>> state = learner.init(learner.domain.center())
>>> for _ in range(20):
...     state = learner.step(state, np.array([0.0, 1.0, 1.0]))
>>> learner.decide(state).round(3), round(float(learner.certified(state)), 3)
(array([1., 0., 0.]), 1.724)
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

from numpy.typing import ArrayLike

from bridle import ops, showing
from bridle.core import Domain
from bridle.domains.closed_form import SimplexSet
from bridle.learners.base import VANISHED, Grouped, on_simplices, prior_of
from bridle.ops import Array, Scalar, along, dot, exp, minimum, pos, ratio, scalar

FARTHEST = 690.0
"""No weight is smaller than e^-690 of the largest: below that arithmetic is slow, and a little further there is nothing."""


def rate(c: Scalar, Delta: Scalar) -> Scalar:
    """eta = c / Delta; 0 while Delta is, or is so small that the rate would be none."""
    return ratio(c, Delta * (Delta > VANISHED))  # type: ignore[arg-type]


class HedgeState(NamedTuple):
    """The decision; the losses so far, the least of them 0; Delta now and before the last round; ln Z; the sum of squared ranges."""

    x: Array
    L: Array
    Delta: Scalar
    before: Scalar
    log_mass: Scalar
    squared_ranges: Scalar


@showing.shown("AdaHedge")
class Hedge(NamedTuple):
    """AdaHedge over the corners of `domain`."""

    domain: SimplexSet
    prior: Array
    c: Scalar

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> HedgeState:
        zero = scalar(x1)
        return HedgeState(x1, 0.0 * x1, zero, zero, zero, zero)

    def decide(self, state: HedgeState) -> Array:
        return state.x

    def step(self, state: HedgeState, grad: Array, modulus: Scalar | None = None) -> HedgeState:
        return self.step_at(state, grad, state.x)

    def step_at(self, state: HedgeState, grad: Array, x: Array) -> HedgeState:
        """The state after a gradient that belongs to the decision `x`, which may be an earlier one."""
        charged = self.charged(state, grad, x)
        return self.moved(charged, charged.L, charged.Delta)

    def charged(self, state: HedgeState, grad: Array, x: Array) -> HedgeState:
        """The state with a round's losses and what they cost at `x`, before the decision after them."""
        losses = self.domain.mass * grad
        losses = losses - along(losses, "min")
        L, s = state.L + losses, along(losses, "max")
        least = along(L, "min")
        L = L - least
        _, total = self.masses(L, state.Delta)
        mixed = least - (ops.log(total) - state.log_mass) * state.Delta / self.c
        Delta = state.Delta + pos(dot(x, losses) / self.domain.mass - mixed)
        return state._replace(L=L, Delta=Delta, before=state.Delta, squared_ranges=state.squared_ranges + s * s)

    def masses(self, L: Array, Delta: Scalar) -> tuple[Array, Scalar]:
        """pi e^{-c L / Delta} and its sum Z; pi itself while Delta = 0."""
        each = self.prior * exp(-minimum(rate(self.c, Delta) * L, FARTHEST))
        return each, along(each, "sum")

    def moved(self, state: HedgeState, L: Array, Delta: Scalar) -> HedgeState:
        """The state with other losses so far and another Delta, and the decision that goes with them."""
        each, total = self.masses(L, Delta)
        x = ops.where(Delta > 0.0, self.domain.mass / total * each, state.x)
        return state._replace(x=x, L=L, Delta=Delta, log_mass=ops.log(total))

    def tilted(self, state: HedgeState, losses: Array) -> HedgeState:
        """The state with these losses added and charged at the decision after them: what `certified` says includes them.

        Their mix loss is no less than what that decision pays (it is concave in their size), so that Delta stays.
        """
        L = state.L + losses
        return self.moved(state, L - along(L, "min"), state.Delta)._replace(before=state.Delta)

    def rescale(self, state: HedgeState, factor: Scalar) -> HedgeState:
        return state._replace(
            L=factor * state.L,
            Delta=factor * state.Delta,
            before=factor * state.before,
            squared_ranges=factor * factor * state.squared_ranges,
        )

    def certified(self, state: HedgeState) -> Scalar:
        """Delta_t + Delta_{t-1} max_u KL(u || pi) / c: regret is no larger, whichever decisions were played."""
        return state.Delta + state.before * self._spread

    def adaptivity(self, diameter: Scalar) -> Scalar:
        """sqrt(4 + ln K) D with the uniform prior: D = sqrt(2) mass, and a range is at most sqrt(2) times the gradient's length."""
        return diameter * ((1.0 + self._spread) * ops.sqrt(1.0 + self.c / 4.0))

    def squares(self, state: HedgeState) -> Scalar:
        """Half the sum of the gradients' squared ranges: no more than that of their squared lengths, and enough for `adaptivity`."""
        return state.squared_ranges / (2.0 * self.domain.mass**2)

    @property
    def _spread(self) -> Scalar:
        """max_u KL(u || pi) / c: 1 with the uniform prior."""
        return -ops.log(along(self.prior, "min")) / self.c


def AdaHedge(domain: Domain, prior: ArrayLike | None = None) -> Hedge | Grouped:
    """Exponential weights on a simplex, with a learning rate that adapts to the losses.

    Parameters
    ----------
    domain : Domain
        A simplex, or equal simplices side by side.
    prior : array_like of shape (dim,), optional
        The weight of each corner before the first round, above 0. Default: all alike.

    Notes
    -----
    Guarantee: `bridle.learners.hedge_regret`.

    Reference: de Rooij, van Erven, Grunwald, Koolen 2014.

    Examples
    --------
    >>> import bridle, numpy as np
    >>> learner = AdaHedge(bridle.Simplex(2))
    >>> learner.decide(learner.step(learner.init(np.array([0.5, 0.5])), np.array([0.0, 1e-9]))).round(3)
    array([0.8, 0.2])
    """
    return on_simplices("adahedge", domain, lambda simplex: Hedge(simplex, prior_of(simplex, prior), log(max(simplex.dim, 2))))


def hedge_regret(K: int, squared_ranges: float, least_prior: float | None = None) -> float:
    """sqrt(4 + ln K) sqrt(sum s^2), s the range of a round's losses; with a prior (1 + ln(1/min pi)/c) sqrt(1 + c/4) sqrt(sum s^2).

    >>> round(hedge_regret(55, 1.0), 3)
    2.83
    """
    if K == 1:
        return 0.0
    c = log(K)
    spread = 1.0 if least_prior is None else -log(least_prior) / c
    return (1.0 + spread) * sqrt(1.0 + c / 4.0) * sqrt(squared_ranges)


def hedge_variance_regret(K: int, variances: float, largest: float) -> float:
    """2 sqrt(ln K sum Var_w(l)) + max s (4/3 ln K + 2) with the uniform prior: small where the weights soon agree (de Rooij et al.)."""
    return 2.0 * sqrt(log(K) * variances) + largest * (4.0 / 3.0 * log(K) + 2.0)

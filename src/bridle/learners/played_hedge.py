"""Hedge over experts that are played as one point: AdaHedge with the gap of what was *played*, and a share of 1/t for every expert.

Where experts propose points w_k and their mean w = sum_k v_k w_k is played, a convex loss at w is at most the mean of their losses. Only
what is really paid, L, counts here. With l_k what expert k would have paid, s = max l - min l, and c = ln max(K, 2):

    m_t    = min l - (Delta / c) ln sum_k v_k e^{-(c / Delta) (l_k - min l)}         (the mix loss; min l while Delta = 0)
    Delta' = Delta + (L - m_t)^+
    v^_k   ~ v_k^{Delta / Delta'} e^{-(c / Delta') (l_k - min l)}                    (the new rate c / Delta' on all losses so far)
    v_k    = (1 - a) v^_k + a / K,      a = 1 / (t + 1)

v is 1/K each at first, and stays so while Delta = 0. No rate, range, horizon or unit: losses times a constant give the same weights. The
share lets it change its mind after any length of calm. Losses that count for nothing (`counts` = 0, with equal l_k) leave the state as it
is.

Guarantee: `PlayedExperts.certified`, for every t, every expert and any L_t and l_t at all; `played_regret` is the same as a function,
    also against a sequence of experts with so many switches. Where every L_t is at most sum_k v_k l_t,k, as it is where the loss is
    convex and w is played, Delta is at most `played_gap`.
Reference: bridle (this file). S. de Rooij, T. van Erven, P. Grunwald, W. Koolen. Follow the Leader If You Can, Hedge If You Must. JMLR
    2014; for the share N. Cesa-Bianchi, P. Gaillard, G. Lugosi, G. Stoltz. Mirror Descent Meets Fixed Share (and Feels No Regret).
    NeurIPS 2012.

Proof. Let e_t = c / Delta_{t-1} and Phi_t(k) = ln(1 / v_t,k) / e_t, which is 0 while Delta = 0. *A round.* With v~ the weights v e^{-e_t
l}, normalised, m_t - l_k = (ln(1/v_k) - ln(1/v~_k)) / e_t. v^ is v~^q, normalised, with q = e_{t+1} / e_t <= 1, and sum v~^q <= K^{1-q}:
so ln(1/v^_k) / e_{t+1} <= ln(1/v~_k) / e_t + (1/e_{t+1} - 1/e_t) ln K. While Delta = 0, m_t <= l_k; where it ends, Phi_{t+1} <= l_k - min
l + ln K / e_{t+1} before the share, which is that line again. The share adds ln(1/(1-a_t)) / e_{t+1}, and ln(1/(1-a_1)) + ... +
ln(1/(1-a_{t-1})) = ln t. *Their sum*, with the last round taken to v~ alone, for one expert: sum m - l_k <= (ln K + ln t) Delta_{t-1} /
c. A change of the expert from i to j adds Phi(j) - Phi(i), at most ln(K t) Delta_{t-1} / c, as v_t >= 1/(K t). What was paid beyond the
mix losses is at most Delta_t. *Delta.* Hoeffding's lemma has sum v l - m <= min(s, s^2 c / (8 Delta)), so that Delta'^2 - Delta^2 = gap^2
+ 2 gap Delta <= s gap + c s^2 / 4. Summed up, Delta^2 <= max s Delta + (c/4) sum s^2; and gap^2 <= s^2 in place of s gap gives (1 + c/4)
sum s^2.

>>> import numpy as np
>>> hedge = PlayedHedge(3)
>>> state = hedge.init()
>>> for t in range(100):  # experts propose -1, 0 and 1; the squared distance to 1 is paid
...     w = float(hedge.decide(state) @ np.array([-1.0, 0.0, 1.0]))
...     state = hedge.learn(state, np.array([4.0, 1.0, 0.0]), (w - 1.0) ** 2)
>>> hedge.decide(state).round(3), bool(hedge.certified(state) < 7.0)
(array([0.003, 0.005, 0.992]), True)
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from bridle import ops, showing, validate
from bridle.learners.adahedge import FARTHEST, rate
from bridle.ops import Array, Scalar, along, exp, maximum, minimum, pos, ratio


class PlayedHedgeState(NamedTuple):
    """The weights v; Delta now and one round before; how many rounds counted."""

    v: Array
    Delta: Scalar
    before: Scalar
    t: Scalar


@showing.shown("PlayedHedge")
class PlayedExperts(NamedTuple):
    """The weights of as many experts as `start` has entries; `c` is at least ln K, and above 0."""

    start: Array
    c: Scalar

    def init(self) -> PlayedHedgeState:
        return PlayedHedgeState(self.start, 0.0, 0.0, 0.0)

    def decide(self, state: PlayedHedgeState) -> Array:
        """What each expert weighs in the point that is played."""
        return state.v

    def learn(self, state: PlayedHedgeState, losses: Array, paid: Scalar, counts: Scalar = 1.0) -> PlayedHedgeState:
        """The state after a round in which `paid` was paid where the experts would have paid `losses`."""
        least = along(losses, "min")
        above = losses - least
        total = along(state.v * exp(-minimum(rate(self.c, state.Delta) * above, FARTHEST)), "sum")
        mixed = least - ops.log(total) * state.Delta / self.c
        Delta = state.Delta + pos(paid - mixed)
        kept = exp(ratio(state.Delta, Delta) * ops.log(state.v) - minimum(rate(self.c, Delta) * above, FARTHEST))
        t = state.t + counts
        share = counts / (t + 1.0)
        v = (1.0 - share) / along(kept, "sum") * kept + share * self.start
        return PlayedHedgeState(v, Delta, state.Delta, t)

    def certified(self, state: PlayedHedgeState) -> Scalar:
        """Delta_t + Delta_{t-1} (ln K + ln t) / c: the regret against every expert is no larger."""
        return state.Delta + state.before * (log(self.start.shape[-1]) + ops.log(maximum(state.t, 1.0))) / self.c


def PlayedHedge(experts: int) -> PlayedExperts:
    """The weights of so many experts, all alike at first.

    Guarantee: `played_regret`, `played_gap`.
    Reference: this file; de Rooij, van Erven, Grunwald, Koolen 2014; Cesa-Bianchi, Gaillard, Lugosi, Stoltz 2012.

    >>> PlayedHedge(2).decide(PlayedHedge(2).init())
    array([0.5, 0.5])
    """
    K = validate.whole("experts", experts)
    return PlayedExperts(np.full(K, 1.0 / K), log(max(K, 2)))


def played_regret(K: int, t: float, Delta: float, before: float, switches: float = 0.0, c: float | None = None) -> float:
    """Delta_t + Delta_{t-1} (ln K + ln t + P ln(K t)) / c, against every sequence of experts with P switches; c = ln max(K, 2) by default.

    >>> round(played_regret(7, 1000.0, 2.0, 1.9), 3), round(played_regret(7, 1000.0, 2.0, 1.9, switches=3), 3)
    (10.645, 36.579)
    """
    return Delta + before * (log(K) + log(t) + switches * log(K * t)) / (log(max(K, 2)) if c is None else c)


def played_gap(K: int, squared_ranges: float, largest: float) -> float:
    """sqrt((c/4) sum s^2) + max s, and sqrt((1 + c/4) sum s^2) where that is less: Delta is no larger where the loss is convex.

    >>> round(played_gap(7, 100.0, 1.0), 3), round(played_gap(7, 1.0, 1.0), 3)
    (7.975, 1.219)
    """
    c = log(max(K, 2))
    return min(sqrt(c / 4.0 * squared_ranges) + largest, sqrt((1.0 + c / 4.0) * squared_ranges))

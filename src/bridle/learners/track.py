"""Track on a simplex: for a world in which now one corner is best and now another. No range, no horizon, no number of switches.

J + 1 copies are mixed by an AdaHedge over them: one is AdaHedge itself (`bridle.learners.adahedge`, whose letters are used here), and J
"share": AdaHedge with c_j = 4^j ln K, j = 0, ..., J - 1, that after round t gives a part of all weight back to every corner:

    w~ = w e^{-c_j l / Delta} / sum of that,      w = (1 - a) w~ + a / K,      a = 1 / (t + 1)
    m_t = -ln(sum w e^{-c_j l / Delta}) Delta / c_j,      Delta += max(0, <w, l> - m_t)

While its Delta = 0, a copy plays x_1. A corner of absurd size spoils it, as every corner keeps some weight: `mlpoly` bears those.

Guarantee: `track_regret`, against every sequence of corners with P switches, for every t; `share_regret` for each copy.
Reference: bridle (this file); sharing is that of M. Herbster, M. Warmuth. Tracking the Best Expert. Machine Learning 1998.

Proof. For a copy and corner i, m_t - l_t(i) <= (Delta_{t-1} / c) [ln 1/w_t(i) - ln 1/w~_{t+1}(i)], also while Delta = 0, when m_t = min l.
Mixing costs ln 1/(1 - a_t), which add up to ln t, and keeps ln 1/w_t <= ln(K t): that is what a switch costs at most. As Delta does not
fall, summing by parts leaves  regret <= Delta_t + (Delta_{t-1} / c) C,  C = (1 + P) ln(K t) + ln t;  and Delta_t <= sqrt(1 + c/4)
sqrt(sum s^2) as for AdaHedge. The mixture of the copies loses sqrt(4 + ln(J + 1)) sqrt(sum s^2) to any of them: its losses <w_j, l> have no
larger range. Where C <= c_{J-1}, the copy with C <= c < 4 C has Delta (1 + C/c) <= 2 sqrt(1 + C) sqrt(sum s^2).

>>> import bridle, numpy as np
>>> learner = Track(bridle.Simplex(3))
>>> state, paid = learner.init(learner.domain.center()), 0.0
>>> for t in range(900):
...     losses = 1.0 - np.eye(3)[t // 300]  # each of three corners is best for a while
...     paid, state = paid + float(learner.decide(state) @ losses), learner.step(state, losses)
>>> paid < 20.0  # the best corner throughout pays 600
True
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from bridle import domains, ops, showing
from bridle.core import Domain
from bridle.domains.closed_form import SimplexSet
from bridle.learners.adahedge import FARTHEST, AdaHedge, Hedge, HedgeState, rate
from bridle.learners.base import Grouped, on_simplices
from bridle.ops import Array, Scalar, along, combine, exp, minimum, pos, vector

COPIES = 8
"""How many copies share: enough for C up to 4^7 ln K, that is, for a switch every few rounds of a million."""


class TrackState(NamedTuple):
    """The decision; AdaHedge's state; of the copies that share the weights, Delta now and one round before; the mixture; the rounds."""

    x: Array
    plain: HedgeState
    w: Array
    Delta: Array
    before: Array
    top: HedgeState
    t: Scalar


@showing.shown("Track")
class Tracking(NamedTuple):
    """The copies and their mixture; `rates` are the c of those that share, ``(J, 1)``."""

    domain: SimplexSet
    plain: Hedge
    rates: Array
    top: Hedge

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> TrackState:
        Delta = vector(x1, self.rates[:, 0])[..., None]
        w = Delta + 0.0 * x1[..., None, :] + 1.0 / x1.shape[-1]
        top = self.top.init(vector(x1, self.top.prior) + self.top.prior)
        return TrackState(x1, self.plain.init(x1), w, Delta, Delta, top, 0.0 * along(x1, "sum"))

    def decide(self, state: TrackState) -> Array:
        return state.x

    def step(self, state: TrackState, grad: Array, modulus: Scalar | None = None) -> TrackState:
        mass = self.domain.mass
        losses = mass * grad
        losses = losses - along(losses, "min")
        plain = self.plain.step(state.plain, grad)
        each = losses[..., None, :]
        paid = (self.played(state.x, state.w, state.Delta) * each).sum(axis=-1) / mass
        paid_plain = (state.plain.x * losses).sum(axis=-1)[..., None] / mass
        top = self.top.step(state.top, ops.join([paid_plain, paid], -1))
        kept = state.w * exp(-minimum(rate(self.rates, state.Delta) * each, FARTHEST))
        total = kept.sum(axis=-1)[..., None]
        Delta = state.Delta + pos(paid[..., None] + ops.log(total) * state.Delta / self.rates)
        t = state.t + 1.0
        a = 1.0 / (t + 1.0)
        a = a if isinstance(t, float) or t.ndim == 0 else a[..., None]  # type: ignore[index]
        w = (1.0 - a) * (kept / total) + a / losses.shape[-1]
        mixed = top.x[..., :1] * plain.x + combine(top.x[..., 1:], self.played(state.x, w, Delta))
        # All copies that share begin to move in the same round, as until then they play the same.
        moved = along(Delta[..., 0], "max") > 0.0
        return TrackState(ops.where(moved, mixed, state.x), plain, w, Delta, state.Delta, top, t)

    def played(self, x: Array, w: Array, Delta: Array) -> Array:
        """The decisions of the copies that share: the start, which is x as long as none has moved, while Delta = 0."""
        return ops.where(Delta > 0.0, self.domain.mass * w, x[..., None, :])

    def rescale(self, state: TrackState, factor: Scalar) -> TrackState:
        plain, top = self.plain.rescale(state.plain, factor), self.top.rescale(state.top, factor)
        each = factor if np.ndim(factor) == 0 else factor[..., None]  # type: ignore[index]
        return state._replace(plain=plain, top=top, Delta=each * state.Delta, before=each * state.before)

    def certified(self, state: TrackState) -> Scalar:
        """What is proved of the regret against one corner: AdaHedge's own, and the mixture's against it."""
        return self.plain.certified(state.plain) + self.top.certified(state.top)

    def adaptivity(self, diameter: Scalar) -> Scalar:
        """(sqrt(4 + ln K) + sqrt(4 + ln(J + 1))) D."""
        return self.plain.adaptivity(diameter) + self.top.adaptivity(diameter)

    def squares(self, state: TrackState) -> Scalar:
        """Half the sum of the gradients' squared ranges, as AdaHedge counts them."""
        return self.plain.squares(state.plain)


def Track(domain: Domain) -> Tracking | Grouped:
    """A mixture of the corners of a simplex that follows the corner which is best at the time.

    Parameters
    ----------
    domain : Domain
        A simplex, or equal simplices side by side.

    Notes
    -----
    Guarantee: `bridle.learners.track_regret`.

    Reference: bridle; Herbster, Warmuth 1998.

    Examples
    --------
    >>> import bridle
    >>> Track(bridle.Simplex(2)).decide(Track(bridle.Simplex(2)).init(np.array([0.0, 1.0])))
    array([0., 1.])
    """
    return on_simplices("track", domain, _tracking)


def _tracking(simplex: SimplexSet) -> Tracking:
    plain, top = AdaHedge(simplex), AdaHedge(domains.Simplex(COPIES + 1))
    return Tracking(simplex, plain, share_rates(simplex.dim)[:, None], top)  # type: ignore[arg-type]


def share_rates(K: int, copies: int = COPIES) -> Array:
    """The c of the copies that share: ln max(K, 2) times 1, 4, 16, ...

    >>> (share_rates(2) / log(2)).tolist()[:3]
    [1.0, 4.0, 16.0]
    """
    return np.asarray(log(max(K, 2)) * 4.0 ** np.arange(copies))


def switching(K: int, t: float, switches: float) -> float:
    """C = (1 + P) ln(K t) + ln t: what following a sequence of corners with P switches costs in t rounds, in units of Delta / c."""
    return (1.0 + switches) * log(K * t) + log(t)


def share_regret(c: float, Delta: float, before: float, K: int, t: float, switches: float = 0.0) -> float:
    """Delta_t + (Delta_{t-1} / c) C: a copy's regret against every sequence of corners with so many switches is no larger."""
    return Delta + before / c * switching(K, t, switches)


def track_regret(K: int, t: float, squared_ranges: float, switches: float = 0.0, copies: int = COPIES) -> float:
    """[min_j (1 + C / c_j) sqrt(1 + c_j / 4) + sqrt(4 + ln(J + 1))] sqrt(sum s^2); without a switch sqrt(4 + ln K) if that is less.

    The first is at most 2 sqrt(1 + C) as long as C <= 4^{J-1} ln K.

    >>> round(track_regret(10, 8000, 8000.0, switches=15))
    1481
    """
    c = share_rates(K, copies)
    best = float(np.min((1.0 + switching(K, t, switches) / c) * np.sqrt(1.0 + c / 4.0)))
    if switches == 0.0:
        best = min(best, sqrt(4.0 + log(max(K, 2))))
    return (best + sqrt(4.0 + log(copies + 1.0))) * sqrt(squared_ranges)

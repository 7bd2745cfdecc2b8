"""The learner without constants: seven linear models that learn side by side and are played as one weight vector.

A row is a = (1, the scaled and squashed features: `bridle.adapters.scaling.squashed`), of length p, with |a_i| <= 2; its target, and its
weight om >= 0. Expert k has weights w_k and scores s_k = <w_k, a>; l is the loss of a score, with derivative l' and curvature at most
kappa (1/4 for the logistic loss). All weights are in units of the first one above 0. With `pull` = lam grad g(w) what limits ask for at
the played w:

    played      w = sum_k v_k w_k, one weight vector; v by `bridle.learners.played_hedge`, from the losses
                l_k = om l(s_k) + <pull, w_k>,   and what was paid, the same at w
    gradients   G_k = om l'(s_k) a + pull: each expert's own
    1-3 descent    w_k -= (c_k / kappa) G_k / mu,      c = 1, 1/4, 1/16;   mu the mean of om |a|^2 so far: steps of 1/L, 1/4L, 1/16L
    4-6 AdaGrad    S_k += G_k^2,   w_k -= r_k G_k / sqrt(S_k), each coordinate for itself,      r = 1, 1/4, 1/16;   S_k is 1 at first
    7 Newton       P^-1 += om h a a',   w_7 -= P G_7,      h = l'' at s_7, at least 0.02;   P is I at first; only while p <= 64

(Where slopes are unbounded, as those of the squared loss, the descent's mu is at least this row's om |a|^2: no step can overshoot.) There
is no step size, radius, horizon or unit to choose. A row of weight 0 with no pull changes nothing. A feature that comes later than others
starts with weight 0, S = 1 and P_ii = 1, which is what it would have had if it had been 0 in every row before (`Mixture.grown`).

Guarantee: for every stream, `Mixture.certified`: what was paid is at most that more than what each expert would have paid, the limits'
    pull included. Of the experts themselves: descent's and AdaGrad's regret against u is `descent_regret` and `adagrad_distance_regret`
    of what was seen, with no bound on weights needed but the largest distance from u; the Newton step has no worst-case bound and needs
    none.
Reference: bridle (this file); J. Duchi, E. Hazan, Y. Singer. JMLR 2011 (AdaGrad by coordinate). M. Zinkevich. ICML 2003 (descent). A
    mixture of learners with gradients of their own: T. van Erven, W. Koolen. MetaGrad. NeurIPS 2016, in spirit.

Proof of the experts' bounds. Descent with steps e_t = b / mu_t: 2 e_t <G_t, w_t - u> = |w_t - u|^2 - |w_{t+1} - u|^2 + e_t^2 |G_t|^2.
Divided by 2 e_t and summed by parts, |w_t - u| <= D: D^2 (mu_1 + sum (mu_t - mu_{t-1})^+) / (2b) + (b/2) sum |G_t|^2 / mu_t. AdaGrad: the
same for each coordinate with step r / sqrt(S_t), which falls: D_i^2 sqrt(S_T) / (2r) + (r/2) sum G^2 / sqrt(S_t), and the last sum is at
most 2 sqrt(S_T).

>>> import numpy as np
>>> learner = mixture(features=2)
>>> state, rng = learner.init(), np.random.default_rng(0)
>>> for _ in range(500):
...     a = np.append(1.0, rng.uniform(-2.0, 2.0, 2))
...     state = learner.learn(state, a, 1.0 if a[1] + 0.1 * rng.standard_normal() > 0.0 else -1.0, 1.0, None)
>>> w = learner.weights(state)
>>> bool(w[1] > 5.0 * abs(w[0])), bool(w[1] > 5.0 * abs(w[2]))
(True, True)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import ops, records, validate
from bridle.adapters.rows import padded
from bridle.core import InputError
from bridle.functions.predictions import ScoreLoss, score_loss
from bridle.learners.played_hedge import PlayedExperts, PlayedHedge, PlayedHedgeState
from bridle.ops import Array, Scalar, combine, dot, maximum, ratio

MOST_NEWTON = 64
"""The Newton expert costs of the order p^2 a row: beyond so many weights it is left out."""

STEPS = np.array([1.0, 0.25, 0.0625])
"""c of the descents, in units of 1/L, and r of AdaGrad."""

EXPERTS = ("descent 1/L", "descent 1/4L", "descent 1/16L", "adagrad 1", "adagrad 1/4", "adagrad 1/16", "newton")
"""The experts' names, in the order of their weights."""


class NewtonExpert(NamedTuple):
    """Its weights and P."""

    w: Array
    P: Array


class MixtureState(NamedTuple):
    """The experts' weights and sums, and what they are worth; the first weight of a row, the sum of om |a|^2 and how many rows it is of."""

    descent: Array  # (3, p)
    adagrad: Array  # (3, p)
    squares: Array  # (3, p)
    newton: NewtonExpert | None
    hedge: PlayedHedgeState
    unit: Scalar
    sizes: Scalar
    rows: Scalar


class Mixture(NamedTuple):
    """The experts over as many weights as `blank` has entries (all 0), for one loss."""

    blank: Array
    loss: ScoreLoss
    hedge: PlayedExperts
    steps: Array

    def init(self) -> MixtureState:
        """The state before the first row."""
        p, none = self.blank.shape[-1], np.zeros((len(self.steps), self.blank.shape[-1]))
        newton = NewtonExpert(self.blank, np.eye(p)) if p <= MOST_NEWTON else None
        return MixtureState(none, none, none + 1.0, newton, self.hedge.init(), 0.0, 0.0, 0.0)

    def weights(self, state: MixtureState) -> Array:
        """The weights that are played, the intercept's first."""
        n, v = len(self.steps), state.hedge.v
        w = combine(v[:n], state.descent) + combine(v[n : 2 * n], state.adagrad)
        return w if state.newton is None else w + v[2 * n] * state.newton.w

    def learn(self, state: MixtureState, a: Array, target: Scalar, weight: Scalar, pull: Array | None) -> MixtureState:
        """The state after a row; `pull` is the sum of lam grad g at the played weights over all limits, None without any."""
        unit = ops.where(state.unit > 0.0, state.unit, weight)
        om = ratio(weight, unit)
        scores = self._products(state, a)
        losses, paid = om * self.loss.value(scores, target), om * self.loss.value(dot(state.hedge.v, scores), target)
        slopes = om * self.loss.slope(scores, target)
        counts = weighed = ops.where(om > 0.0, 1.0, 0.0)
        if pull is not None:
            pull = ratio(pull, unit)
            pulls = self._products(state, pull)
            losses, paid = losses + pulls, paid + dot(state.hedge.v, pulls)
            counts = ops.where(dot(pull, pull) > 0.0, 1.0, weighed)
        n, size, rows = len(self.steps), om * dot(a, a), state.rows + weighed
        sizes = state.sizes + size
        mu = ratio(sizes, rows)
        if not self.loss.bounded:
            mu = maximum(mu, size)
        G = self._gradients(slopes[:n], a, pull)
        descent = state.descent - (ratio(1.0 / self.loss.curvature, mu) * self.steps)[:, None] * G
        G = self._gradients(slopes[n : 2 * n], a, pull)
        squares = state.squares + G * G
        adagrad = state.adagrad - self.steps[:, None] * G / ops.sqrt(squares)
        newton = None
        if state.newton is not None:
            newton = _newton_step(state.newton, a, slopes[2 * n], om * self.loss.bend(scores[2 * n], target), pull)
        return MixtureState(descent, adagrad, squares, newton, self.hedge.learn(state.hedge, losses, paid, counts), unit, sizes, rows)

    def certified(self, state: MixtureState) -> Scalar:
        """What was paid so far is at most this more than what every expert would have paid."""
        return state.unit * self.hedge.certified(state.hedge)

    def grown(self, state: MixtureState) -> MixtureState:
        """The state of a mixture of fewer features as this one's, as if the others had been 0 in every row so far.

        Where the Newton expert becomes too large it is left out: what it weighed goes to the others in their proportions, which only lowers
        the bound on the regret against them.
        """
        start, p = self.init(), state.descent.shape[-1]
        if len(self.blank) < p:
            raise InputError(f"a mixture of {p - 1} features cannot become one of {len(self.blank) - 1}")
        if start.newton is None and state.newton is not None:
            v = state.hedge.v[:-1]
            state = state._replace(newton=None, hedge=state.hedge._replace(v=v / v.sum()))
        return records.transform(padded, state, start)

    def _products(self, state: MixtureState, a: Array) -> Array:
        """<w_k, a> of every expert."""
        parts = [state.descent @ a, state.adagrad @ a]
        if state.newton is not None:
            parts.append((state.newton.w * a).sum(axis=-1, keepdims=True))
        return ops.join(parts, -1)

    def _gradients(self, slopes: Array, a: Array, pull: Array | None) -> Array:
        G = slopes[:, None] * a
        return G if pull is None else G + pull


def _newton_step(expert: NewtonExpert, a: Array, slope: Scalar, bend: Scalar, pull: Array | None) -> NewtonExpert:
    """w - P G with P^-1 one row further, by the formula of Sherman and Morrison."""
    u = combine(a, expert.P)  # P is symmetric
    part = 1.0 / (1.0 + bend * dot(a, u))
    w = expert.w - (slope * part) * u
    if pull is not None:
        w = w - combine(pull, expert.P) + (bend * part * dot(u, pull)) * u
    return NewtonExpert(w, expert.P - ((bend * part) * u)[:, None] * u)


def mixture(features: int, loss: str = "logistic", level: float = 0.5) -> Mixture:
    """The mixture over so many features and the intercept; `loss` is "logistic", "squared" or "quantile" (of this `level`).

    Targets are +1 or -1 for the logistic loss. Those of the others should be scaled to a deviation of about 1.
    """
    p = validate.whole("features", features, 0) + 1
    experts = len(EXPERTS) - (p > MOST_NEWTON)
    hedge = PlayedHedge(experts)._replace(c=PlayedHedge(len(EXPERTS)).c)  # one c, whichever experts there are, so that a mixture can grow
    return Mixture(np.zeros(p), score_loss(loss, level), hedge, STEPS)


def descent_regret(distance: float, mu: Array, squared: Array, b: float) -> float:
    """D^2 (mu_1 + sum (mu_t - mu_{t-1})^+) / (2b) + (b/2) sum |G_t|^2 / mu_t, D the largest |w_t - u|, for steps b / mu_t.

    >>> descent_regret(2.0, np.array([1.0, 2.0, 1.5]), np.array([1.0, 4.0, 3.0]), 0.5)
    9.25
    """
    upward = mu[0] + np.maximum(np.diff(mu), 0.0).sum()
    return float(distance**2 * upward / (2.0 * b) + b / 2.0 * (squared / mu).sum())


def adagrad_distance_regret(distances: Array, sums: Array, r: float) -> float:
    """sum_i (D_i^2 / (2r) + r) sqrt(S_i), D_i the largest |w_i - u_i|, S_i what the sum of squared gradients has come to.

    >>> adagrad_distance_regret(np.array([2.0, 1.0]), np.array([4.0, 9.0]), 0.5)
    13.5
    """
    return float(((distances**2 / (2.0 * r) + r) * np.sqrt(sums)).sum())

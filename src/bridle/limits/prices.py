"""Limits held on average: what one weighs is found from what was seen, with nothing told; in a row (`Averages`) or a step (`Duals`).

A row reveals the gradient of its loss, df, and of every limit a value g_i (0 or below is met) and its gradient dg_i, at the played
weights. A limit speaks of some rows only (`MissLoss` of its class): those are counted, the others leave it as it is.

    q_i  <- (q_i + g_i / N_i)^+,   N_i = sqrt(sum g_i^2)                  the multiplier in natural units: no scale of g_i matters
    pi_i  = sqrt(sum |df|^2 / sum |dg_i|^2)                               what one natural unit is worth in cost
    lam_i = pi_i (q_i + kappa h_i)^+,   h_i = g_i / rms_i, cut to +-1      rms_i = sqrt(mean g_i^2); the values before this row

and `pull` = sum_i lam_i dg_i is what the learner adds to its gradients. A multiplier alone circles around its limit; h is the damping,
and kappa that of `bridle.policies.soft_free`, whose natural prices these are, without its queue (which falls where units grow, so that a
limit is approached from above). lam is settled before the row's own value is seen: errors of mean 0 in the values bias nothing. The price
is the mean of lam.

In the steps that somebody else's optimiser takes (`Duals`) no gradient is kept. Every step reveals a cost f and limits g_i; one that says
nothing of a limit (no row of the batch is of its class) does not count for it. The optimiser then goes down  wf f + sum_i wg_i g_i,  and
the weights are

    q_i  as above
    pi_i = sqrt(sum |grad f|^2 / sum |grad g_i|^2)                       what one natural unit is worth in cost; counted steps below
    h_i  = (q_i + kappa g_i / rms_i, the quotient cut to +-1)^+          rms_i = sqrt(mean g_i^2), this step's value among them
    wf = 1 / (1 + sum_i h_i),   wg_i = wf pi_i h_i

so that the weighted gradient is about as long as the cost's own, whatever q is, and a limit that is never near leaves the cost as it is. A
multiplier alone circles around its limit for ever, and the more so the slower the optimiser follows: kappa is the damping. It reads this
step's value, since a step is many rows and steps are few.
The lengths of gradients take a backward pass for each function; they are taken in the counted steps 1, 2, 4, 8, ... of a limit alone, each
for the steps since the last. That pi is known no better only scales what the limits weigh.

Guarantee: over any counted rows in a row up to the last, the values of limit i add up to at most N_i q_i (`NaturalMultipliers.bound`),
    whatever the learner, the stream, pi and kappa. So the mean is above 0 by at most q_i sqrt(mean g_i^2 / n) (`average_excess`): it
    comes down to 0 where q grows slower than sqrt(n). Of steps the same: it needs nothing of pi, of the damping, of who takes the steps,
    nor that anything is convex.
Reference: bridle (this file).

Proof. q_t >= q_{t-1} + g_t / N_t, so that g_t <= N_t (q_t - q_{t-1}). Summed from s + 1 to t by parts this is N_t q_t - N_{s+1} q_s -
sum_{s+1 <= r < t} q_r (N_{r+1} - N_r), and N does not fall. Equality holds from s = 0 on where q was never cut at 0 and all values after
the first are 0.

>>> limits = Averages(np.ones(1))
>>> state = limits.start()
>>> for value in (0.5, 1.0, -0.25):
...     state, pull = limits.weigh(state, np.array([value]), np.array([[0.0, 2.0]]), np.array([1.0, 0.0]), np.ones(1))
>>> bool(state.multipliers.total[0] <= state.multipliers.bound[0])
True
>>> limits.price(state).round(3), pull.round(3)
(array([0.649]), array([0.   , 2.394]))

>>> duals = Duals.start(1)
>>> for value in (1.0, 1.0, -0.5):
...     g = np.array([value])
...     duals = duals.measured(duals.due(g), 4.0, np.array([1.0])).observed(g)
>>> duals.multipliers.bound.round(3)  # of the values, whose sum is 1.5
array([2.061])
>>> weights = duals.weigh(np.array([0.0]))  # of the cost, and of the limits: the cost's gradient is twice as long
>>> (weights.limits / weights.cost / duals.multipliers.q).round(3)
array([2.])
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridle import ops
from bridle.ops import Array, Scalar, combine, dot, maximum, minimum, pos, ratio
from bridle.policies.soft_free import DAMPING

Flags = NDArray[np.bool_]
"""Yes or no, for every limit."""


class NaturalMultipliers(NamedTuple):
    """Of every limit: q, the sums of g and of g^2, and how many rows counted."""

    q: Array
    total: Array
    squares: Array
    counted: Array

    def observed(self, g: Array, counts: Array) -> NaturalMultipliers:
        """After a row with these values, of the limits for which `counts` is 1."""
        value = counts * g
        squares = self.squares + value * value
        return NaturalMultipliers(pos(self.q + ratio(value, ops.sqrt(squares))), self.total + value, squares, self.counted + counts)

    @property
    def bound(self) -> Array:
        """N q: the counted values up to now, from any row on, add up to at most this."""
        return ops.sqrt(self.squares) * self.q

    @property
    def mean(self) -> Array:
        """The mean of the counted values: 0 or below where the limit has been kept on average."""
        return ratio(self.total, self.counted)


def none_counted(limits: int) -> NaturalMultipliers:
    """Before the first row, with so many limits."""
    return NaturalMultipliers(*[np.zeros(limits)] * 4)


class AverageState(NamedTuple):
    """The multipliers; of every limit h, the sum of |dg|^2 and that of lam over its rows; the sum of |df|^2."""

    multipliers: NaturalMultipliers
    near: Array
    slopes: Array
    paid: Array
    cost_slopes: Scalar


class Averages(NamedTuple):
    """Limits on average, as many as `each` has entries."""

    each: Array

    def start(self) -> AverageState:
        """What is known before the first row."""
        none = none_counted(len(self.each))
        return AverageState(none, none.q, none.q, none.q, 0.0)

    def weigh(self, state: AverageState, g: Array, dg: Array, df: Array, counts: Array) -> tuple[AverageState, Array]:
        """What is known after a row, and the limits' pull in it; `counts` is 1 for each limit that speaks of the row, else 0."""
        counted = counts[:, None] * dg
        cost_slopes, slopes = state.cost_slopes + dot(df, df), state.slopes + (counted * counted).sum(axis=-1)
        lam = ratio(ops.sqrt(cost_slopes), ops.sqrt(slopes)) * pos(state.multipliers.q + DAMPING * state.near)
        multipliers = state.multipliers.observed(g, counts)
        near = ratio(g * ops.sqrt(multipliers.counted), ops.sqrt(multipliers.squares))
        near = ops.where(counts > 0.0, maximum(minimum(near, 1.0), -1.0), state.near)
        return AverageState(multipliers, near, slopes, state.paid + counts * lam, cost_slopes), combine(lam, counted)

    def price(self, state: AverageState) -> Array:
        """The mean of lam over the rows that each limit counts: what one more unit of it seems to be worth in cost."""
        return ratio(state.paid, state.multipliers.counted)


def average_excess(q: float, squares: float, counted: float) -> float:
    """q sqrt(sum g^2) / n: the mean of n counted values is at most this.

    >>> average_excess(3.0, 16.0, 24.0)
    0.5
    """
    return q * sqrt(squares) / counted


# --- steps that somebody else's optimiser takes -------------------------------------------------------------------------------------------


class StepWeights(NamedTuple):
    """What the cost and every limit weigh in a step."""

    cost: float
    limits: Array


class Duals(NamedTuple):
    """The multipliers, how many steps there were, and of every limit the sums of squared gradients and when they were measured last.

    `last` is in steps that counted, `last_step` in all steps: a limit that few steps speak of pulls in those for all.
    """

    multipliers: NaturalMultipliers
    steps: float
    cost_slopes: Array
    slopes: Array
    last: Array
    last_step: Array

    @classmethod
    def start(cls, k: int) -> Duals:
        """Before the first step, with k limits."""
        none = np.zeros(k)
        return cls(none_counted(k), 0.0, none, none, none, none)

    @property
    def natural(self) -> Array:
        """pi: 1 where no gradient of the cost was seen (any positive number gives the same steps), 0 where none of the limit was."""
        return np.where(self.cost_slopes > 0.0, ops.ratio(np.sqrt(self.cost_slopes), np.sqrt(self.slopes)), 1.0 * (self.slopes > 0.0))

    @property
    def prices(self) -> Array:
        """pi q: what one more unit of each limit seems to be worth in cost."""
        return self.natural * self.multipliers.q

    def weigh(self, g: Array) -> StepWeights:
        """The weights of a step with these values."""
        value, known = np.nan_to_num(g), self.multipliers
        near = np.clip(ops.ratio(value * np.sqrt(known.counted + 1.0), np.sqrt(known.squares + value * value)), -1.0, 1.0)
        natural = self.natural
        h = ops.pos(known.q + DAMPING * near) * (natural > 0.0)  # a limit whose gradient was never seen takes nothing from the cost
        cost = 1.0 / (1.0 + float(h.sum()))
        return StepWeights(cost, cost * (natural * h))

    def due(self, g: Array) -> Flags:
        """Which limits' gradients are to be measured in a step with these values (nan: it says nothing of the limit)."""
        return ~np.isnan(g) & (self.multipliers.counted + 1.0 >= 2.0 * self.last)

    def measured(self, due: Flags, df: float, dg: Array) -> Duals:
        """With the squared lengths of the gradients of the cost and of the limits that were due; what is 0 or not finite is due again."""
        seen = due & (dg > 0.0) & np.isfinite(df + dg)
        now, step = self.multipliers.counted + 1.0, self.steps + 1.0
        return self._replace(
            cost_slopes=self.cost_slopes + (step - self.last_step) * np.where(seen, df, 0.0),
            slopes=self.slopes + (now - self.last) * np.where(seen, dg, 0.0),
            last=np.where(seen, now, self.last),
            last_step=np.where(seen, step, self.last_step),
        )

    def observed(self, g: Array) -> Duals:
        """After a step with these values."""
        return self._replace(multipliers=self.multipliers.observed(np.nan_to_num(g), 1.0 * ~np.isnan(g)), steps=self.steps + 1.0)

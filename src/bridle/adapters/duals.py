"""Weights of limits that hold on average, for steps that somebody else's optimiser takes: no constant is told, no gradient kept.

Every step reveals a cost f and limits g_i (0 or below is met); one that says nothing of a limit (no row of the batch is of its class) does
not count for it. The optimiser then goes down  wf f + sum_i wg_i g_i,  and the weights are

    q_i  as in `bridle.adapters.averages`: (q_i + g_i / N_i)^+           the multiplier in natural units: no scale of g_i matters
    pi_i = sqrt(sum |grad f|^2 / sum |grad g_i|^2)                       what one natural unit is worth in cost; counted steps below
    h_i  = (q_i + kappa g_i / rms_i, the quotient cut to +-1)^+          rms_i = sqrt(mean g_i^2), this step's value among them
    wf = 1 / (1 + sum_i h_i),   wg_i = wf pi_i h_i

so that the weighted gradient is about as long as the cost's own, whatever q is, and a limit that is never near leaves the cost as it is. A
multiplier alone circles around its limit for ever, and the more so the slower the optimiser follows: kappa is the damping. It reads this
step's value, since a step is many rows and steps are few.
The lengths of gradients take a backward pass for each function; they are taken in the counted steps 1, 2, 4, 8, ... of a limit alone, each
for the steps since the last. That pi is known no better only scales what the limits weigh.

Guarantee: that of `bridle.adapters.averages`, which needs nothing of pi, of the damping or of who takes the steps: over any steps in a row
    up to the last, the counted values of limit i add up to at most N_i q_i, whatever the model, the optimiser and the data, convex or not.
Reference: bridle (this file).

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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridle import ops
from bridle.adapters.averages import NaturalMultipliers, none_counted
from bridle.ops import Array
from bridle.policies.soft_free import DAMPING

Flags = NDArray[np.bool_]
"""Yes or no, for every limit."""


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

"""Liakopoulos, Destounis, Paschos, Spyropoulos, Mertikopoulos 2019: long-term budgets, against actions feasible over windows of K rounds.

The recursion is that of `neely2017`, without the clip; only the parameters differ:

    V = sqrt(2) k C^2 v / (G D),   alpha = k C^2 max(T, v sqrt(T)) / (2 D^2),   C = F + G D,   K <= v <= T

and v = sqrt(K T) by default (K is `window`; with K = 1 the policy is `neely2017`). Where lengths and values are measured so that these
constants are 1, that is the paper's alpha = max(T, V sqrt(T)). Update and parameters as commonly stated; the bound is proved for exactly
this update.

Guarantee: `liakopoulos_bound`: against every action whose constraints sum to 0 or less over every window of K rounds (the problem's
    ``window``), regret O(K T/v + sqrt(T)) and soft violation O(sqrt(v T)).
Reference: N. Liakopoulos, A. Destounis, G. Paschos, T. Spyropoulos, P. Mertikopoulos. Cautious Regret Minimization: Online Optimization
    with Long-Term Budget Constraints. ICML 2019.

>>> import bridle
>>> policy = bridle.policy("liakopoulos2019", bridle.Ball(2), horizon=500, lipschitz=1.0, bound=2.2, window=5)
>>> trace = bridle.play(policy, "halfspaces")
>>> bridle.soft_violation(trace) <= policy.bound(trace.problem.constants, 500).soft
True
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain
from bridle.policies._neely2017 import VirtualQueues, queue_bounds, units
from bridle.policies.common import excess, flat
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import Through, registered


def liakopoulos_bound(policy: Configuration[VirtualQueues], constants: Constants, t: float) -> Bound:
    """`queue_bounds` with P = F floor(K/2), which an action has that is feasible over windows of K <= T rounds (`common.excess`)."""
    P, F, K = excess(constants), constants.get("bound"), constants.get("window")
    if isinstance(P, str) or F is None:
        return Bound(why=P if isinstance(P, str) else "the largest |g| is not known")
    if constants.get("feasible") is None and constants.get("excess") is None and K is not None and policy.parameters["horizon"] < K:
        return Bound(why=f"the window of {K:g} rounds is longer than the horizon")
    regret, soft = queue_bounds(policy.record, constants, F, t, P, None)
    trivial = constants["lipschitz"] * constants["diameter"] * t
    return Bound(flat(np.minimum(regret, trivial)), soft=flat(np.minimum(soft, F * t)))


@registered(
    reference="Liakopoulos et al., ICML 2019",
    regret="O(K T/V + sqrt(T))",
    violation="soft O(sqrt(V T))",
    bound=liakopoulos_bound,
    reduces="all",
    metric="soft",
    needs=("horizon", "lipschitz", "diameter", "bound", "window"),
)
def liakopoulos2019(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    bound: Setting,
    window: Setting = 1,
    diameter: Setting | None = None,
    constraints: int = 1,
    V: Setting | None = None,
    step: Setting | None = None,
    **through: Unpack[Through],
) -> VirtualQueues:
    """Virtual queues against a K-round benchmark.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    bound
        F, the largest |g| on the domain. Values: above 0. Unit: constraint.
    window
        K: over every K rounds in a row constraints sum to 0 or less. Values: from 1 to the horizon. Unit: rounds.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    V
        The weight of the cost against the queues. Default: the value of the theorem. Values: above 0. Unit: squared
        constraint per cost.
    step
        The step size. Default: that of the theorem, for this window. Values: above 0. Unit: action per unit of
        weighted gradient.
    """
    T, K, k = validate.setting("horizon", horizon), validate.setting("window", window), constraints
    if np.any(K < 1.0) or np.any(K > T):
        raise validate.refused("window must be between 1 and the horizon", window)
    GD, size, D = units(domain, lipschitz, bound, diameter, k, 0.0)
    V = validate.setting("V", 2.0**0.5 * size * (K * T) ** 0.5 / GD if V is None else V)
    v = V * GD / (2.0**0.5 * size)
    step = validate.setting("step", D**2 / (size * np.maximum(T, v * T**0.5)) if step is None else step)
    return VirtualQueues(domain, V, step, 0.0, np.ones(k))

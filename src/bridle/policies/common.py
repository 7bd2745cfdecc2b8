"""What several policies share: reading a feedback, the assumptions of a theorem, and sums over step-size sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridle.core import Constants, Feedback
from bridle.ops import Array, minimum


def clipped(feedback: Feedback, clip: Array) -> tuple[Array, Array]:
    """The constraints' values and gradients; with clip = 1 those of their positive parts, whose gradient is zero where g <= 0."""
    g, dg = feedback.g, feedback.dg
    return g - clip * minimum(g, 0.0), (1.0 - clip * (g <= 0.0))[..., None] * dg


def unmet(constants: Constants, *, fixed: bool = False, strong: bool = False) -> str:
    """Which assumption the problem breaks, in words; empty when none.

    Always: convexity, a known Lipschitz constant, an action that satisfies every constraint. `fixed`: the same constraints every round.
    `strong`: strongly convex costs.
    """
    if not constants.get("convex", True):
        return "a cost or a constraint is not convex"
    if constants.get("feasible") is None:
        return "no action is known to satisfy every constraint"
    if constants.get("lipschitz") is None or constants.get("diameter") is None:
        return "the problem's Lipschitz constant or diameter is not known"
    if fixed and constants.get("time_varying", True):
        return "the constraints change from round to round"
    if strong and not constants.get("modulus", 0.0) > 0.0:
        return "the costs are not strongly convex"
    return ""


def flat(value: Any) -> Any:
    """A float for one run, a vector for several."""
    array = np.asarray(value, dtype=float)
    return float(array) if array.ndim == 0 else array.reshape(-1)


def harmonic(t: float) -> float:
    """1 + 1/2 + ... + 1/t (past a million rounds the upper bound ln t + gamma + 1/(2t), which is off by less than 1e-13).

    >>> harmonic(4)
    2.083333333333333
    """
    if t > 1e6:
        return float(np.log(t) + 0.5772156649015329 + 0.5 / t)
    return float(np.sum(1.0 / np.arange(1.0, t + 1.0)))


def abel(E: Any, w: Any) -> float:
    """The bound that partial sums give on a sum: if sum_{s<=t} w_s a_s <= E_t for every t, a_s >= 0 and w is non-decreasing, then
    sum a_t <= sum_{t<T} E_t (1/w_t - 1/w_{t+1}) + E_T / w_T.

    >>> abel([1.0, 2.0], [1.0, 2.0])
    1.5
    """
    E, w = np.asarray(E, dtype=float), np.asarray(w, dtype=float)
    return float(np.sum(E[:-1] * (1.0 / w[:-1] - 1.0 / w[1:])) + E[-1] / w[-1])

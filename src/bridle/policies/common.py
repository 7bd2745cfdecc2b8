"""What several policies share: reading a feedback, the assumptions of a theorem, and sums over step-size sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Feedback, InputError
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


def switch(name: str, value: Any) -> float:
    """A yes or no as the factor 1 or 0."""
    if not (isinstance(value, (bool, np.bool_, int, float)) and value in (0, 1)):
        raise InputError(f"{name} must be true or false, not {validate.show(value)}")
    return float(value)


def settle(regret: Any, violation: Any, trivial: Any, clip: float, t: float) -> Bound:
    """A bound on regret and on violation: hard with the clip, soft without. A constraint that holds somewhere is nowhere above G D."""
    regret, violation = flat(np.minimum(regret, trivial * t)), flat(np.minimum(violation, trivial * t))
    return Bound(regret, ccv=violation) if clip else Bound(regret, soft=violation)


def largest(constants: Constants, clip: float) -> Any:
    """The largest |g| that the policy is fed; None where it is not known."""
    F, limit = constants.get("bound"), constants["lipschitz"] * constants["diameter"]
    return (limit if F is None else min(F, limit)) if clip else F


def fraction(name: str, value: Any) -> Any:
    """A number above 0 and below 1, or one for each run."""
    result = validate.setting(name, value)
    if np.any(np.asarray(result) >= 1.0):
        raise InputError(f"{name} must be below 1, not {validate.show(value)}")
    return result


def powers(t: float, c: Any, exact: int = 100_000) -> Any:
    """1 + 2^-c + ... + t^-c for c >= 0; the terms past `exact` are replaced by the integral above them.

    >>> float(powers(3, 1.0)), float(powers(4, 0.0))
    (1.8333333333333333, 4.0)
    """
    c, n = np.asarray(c, dtype=float), min(int(t), exact)
    head = np.sum(np.arange(1.0, n + 1.0) ** -c[..., None], axis=-1)
    if t <= n:
        return head
    rate, span = np.where(c == 1.0, 1.0, 1.0 - c), np.log(t / n)
    return head + np.where(c == 1.0, span, float(n) ** (1.0 - c) * np.expm1(rate * span) / rate)


def weighted_sum(E: Any, w: Any) -> Any:
    """`abel` along the last axis: a number for one run, one of each for several."""
    E, w = np.broadcast_arrays(E, w)
    return abel(E, w) if E.ndim == 1 else np.array([abel(*pair) for pair in zip(E, w, strict=True)])

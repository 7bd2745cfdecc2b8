"""What several policies share: reading a feedback, the assumptions of a theorem, and sums over step-size sequences."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log
from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import Bound, Constants, Curvature, Domain, Feedback, InputError
from bridle.ops import Array, Scalar, maximum, minimum, where

Default = TypeVar("Default")


def clipped(feedback: Feedback, clip: Scalar) -> tuple[Array, Array]:
    """The constraints' values and gradients; with clip = 1 those of their positive parts, whose gradient is zero where g <= 0."""
    g, dg = feedback.g, feedback.dg
    return g - clip * minimum(g, 0.0), (1.0 - clip * (g <= 0.0))[..., None] * dg


def unsized(constants: Constants) -> str:
    """Why no theorem applies: the problem is not convex, or its Lipschitz constant or diameter is unknown. Empty if one may apply."""
    if not constants.get("convex", True):
        return "a cost or a constraint is not convex"
    if constants.get("lipschitz") is None or constants.get("diameter") is None:
        return "the problem's Lipschitz constant or diameter is not known"
    return ""


def exp_concavity_of(constants: Constants) -> float | None:
    """What is known of the costs' exp-concavity: as the problem says, else modulus / G^2; None where neither is known."""
    known, modulus, G = constants.get("exp_concavity"), constants.get("modulus"), constants.get("lipschitz")
    return known if known is not None else None if modulus is None or not G else modulus / (G * G)


def unmet(constants: Constants, *, fixed: bool = False, strong: bool = False, modulus: Scalar | None = None) -> str:
    """The assumption that the problem breaks, in words; empty if it breaks none.

    Always: convexity, a known Lipschitz constant, an action that satisfies every constraint. `fixed`: the same constraints every round.
    `strong`: strongly convex costs. `modulus`: costs at least as strongly convex as this, which the policy was told, unless 0 or None.
    """
    if why := unsized(constants):
        return why
    if constants.get("feasible") is None:
        return "no action is known to satisfy every constraint"
    if fixed and constants.get("time_varying", True):
        return "the constraints change from round to round"
    told, true = float(np.max(0.0 if modulus is None else modulus)), constants.get("modulus", 0.0)
    if (strong or told > 0.0) and not true > 0.0:
        return "the costs are not strongly convex"
    if told > true * (1.0 + 1e-12):
        return f"the costs' modulus is {true:.4g}, less than the {told:.4g} the policy was told"
    return ""


def excess(constants: Constants) -> float | str:
    """The least violation of a fixed action over any interval of rounds, or why it is not known.

    0 where an action satisfies every constraint; F floor(K/2) where one does so summed over every window of K rounds: take whole windows,
    each worth 0 or less, out of an interval; r < K rounds are left, worth at most F r, and at most F (K - r) because they are part of a
    window. Or what ``excess`` says.
    """
    if why := unsized(constants):
        return why
    if constants.get("feasible") is not None:
        return 0.0
    if constants.get("bound") is None:
        return "the largest |g| is not known"
    if constants.get("excess") is not None:
        return max(float(constants["excess"]), 0.0)
    if constants.get("window") is not None:
        return float(constants["bound"]) * (int(constants["window"]) // 2)
    return "neither a feasible action, nor a window, nor the least static violation is known"


STATE_CONSTANTS = (
    "V", "H", "first", "unseen", "Psi", "shortfall", "below", "observed_rounds", "observed_regret", "observed_violation",
    "observed_cost", "cost_error", "limit_error",
)  # fmt: skip
"""The fields of a policy's state that its bound may be about: a game's own constants."""


def constants_from(state: object) -> Constants:
    """What the state of a game says to the policy's bound, under the names of `STATE_CONSTANTS`."""
    fields = {name: flat(value) for name in STATE_CONSTANTS if (value := getattr(state, name, None)) is not None}
    return cast(Constants, fields)


# --- costs that are told to be strongly convex: as they were, round by round -----------------------------------------------------------
#
# A policy that was told a modulus mu takes steps 1/H_s, H_s the sum of the moduli so far: mu for a cost of which nothing else is said, 0
# for a round without a cost. The first round counts as at least mu (it pays in advance), so that H_s >= mu always. One step and strong
# convexity give, for a feasible u,  (terms at x_s) <= (H_s/2) (|x_s - u|^2 - |x_{s+1} - u|^2) - (mu_s/2) |x_s - u|^2,  and H_s - H_{s-1} =
# mu_s after the first round: summed by parts no more than (mu/2) D^2 is left, and nothing where the first cost has modulus mu or more.
# That is all that a smaller modulus, or none, changes in a proof; the sums of 1/H_s are then those over the rounds in which the step moves
# at all: rounds with a cost, and others in which a constraint is violated.


def rounds_by_modulus(t: Scalar, modulus: Scalar | None, told: Scalar | None) -> Scalar:
    """H_s / mu of the next round, where it is t so far: `modulus` is that of its cost where it is not as `told`; rounds where none was."""
    if modulus is None or told is None:
        return t + 1.0
    share = modulus / told
    return where(t > 0.0, t + share, maximum(share, 1.0))


def curvature_of(constants: Constants, t: float) -> Curvature:
    """What t rounds have shown of their costs: of a game, that all were as the policy was told."""
    return constants.get("curvature") or Curvature(t, 0.0, t, 0.0, 1.0)


def in_advance(curvature: Curvature) -> float:
    """1 where the first round may have had to count for more than its cost's modulus, so that (mu/2) D^2 are left; else 0."""
    return 0.0 if curvature.regular else 1.0


def over_costs(curvature: Curvature, power: Scalar) -> Array:
    """The sum of (mu/H_s)^power over the rounds with a cost, or more: the n-th of them has H_s >= share mu n."""
    return powers(curvature.costs, power) / np.asarray(curvature.share) ** power


def over_moduli(curvature: Curvature, power: Scalar) -> Array:
    """The sum of (mu_s/mu) (mu/H_s)^power over all rounds, for a power of 1 or above: where moduli vary, by the integral of h^-power."""
    if curvature.regular and curvature.moduli == curvature.costs:
        return powers(curvature.costs, power)
    grown, rate = log(max(curvature.moduli, 1.0)), np.asarray(power) - 1.0
    return 1.0 + np.where(rate > 0.0, -np.expm1(-rate * grown) / np.where(rate > 0.0, rate, 1.0), grown)


def most_behind(constants: Constants, t: float, modulus: Scalar = 0.0) -> Scalar:
    """The most that a feasible action can be behind what was played, after t rounds: its regret is at least minus this.

    G D for each cost, with G its Lipschitz constant on the domain. Of a session only the gradients at the decisions are known. There the
    proof is about the costs f_s(x_s) + <grad f_s(x_s), u - x_s> + (mu_s/2) |u - x_s|^2, which are no larger, lead to the same decisions and
    have the same upper bounds on regret; at u they may be larger than at x_s by G D + (mu_s/2) D^2.
    """
    G, D, seen = constants["lipschitz"], constants["diameter"], constants.get("curvature")
    return G * D * t if seen is None else G * D * seen.costs + 0.5 * modulus * D * D * seen.moduli


def at_least(constants: Constants, behind: Scalar) -> Scalar:
    """`behind`, or less where ``constants["regret"]`` says how far the feasible action of least regret is behind at this round."""
    known = constants.get("regret")
    return behind if known is None else np.minimum(behind, np.maximum(-np.asarray(known), 0.0))


def weight_of(V: Scalar | None, constants: Constants) -> Scalar | None:
    """The policy's weight of the cost, or the one that the game has found where it was not told; None while that is not known."""
    return constants.get("V") if V is None else flat(V)


def require_single_run(policy: str, x1: Array) -> None:
    """Refuse to start several runs: the policy plays one at a time."""
    if x1.ndim > 1:
        raise InputError(f"{policy} plays one run at a time")


def diameter_of(domain: Domain, diameter: object) -> Scalar:
    """The diameter that the policy was told, or the domain's own."""
    return validate.setting("diameter", domain.diameter() if diameter is None else diameter)


def told(name: str, given: object, default: Default) -> Scalar | Default:
    """The number, or the numbers of a sweep, that the policy was told under this name; else the default."""
    return default if given is None else validate.setting(name, given)


def flat(value: ArrayLike) -> Scalar:
    """A float for one run, a vector for several."""
    array = np.asarray(value, dtype=float)
    return float(array) if array.ndim == 0 else array.reshape(-1)


def switch(name: str, value: object) -> float:
    """A switch as the factor 1.0 or 0.0."""
    if not (isinstance(value, (bool, np.bool_, int, float)) and value in (0, 1)):
        raise validate.refused(f"{name} must be true or false", value)
    return float(value)


def capped_bound(regret: Scalar, violation: Scalar, trivial: Scalar, clip: Scalar, t: float) -> Bound:
    """The bound on regret and on violation (hard with the clip, soft without), each at most `trivial` = G D a round.

    A constraint that holds somewhere in the domain is nowhere above G D.
    """
    regret, violation = flat(np.minimum(regret, trivial * t)), flat(np.minimum(violation, trivial * t))
    return Bound(regret, ccv=violation) if clip else Bound(regret, soft=violation)


def largest(constants: Constants, clip: Scalar) -> float | None:
    """The largest |g| that the policy is fed; None where it is not known."""
    F, limit = constants.get("bound"), constants["lipschitz"] * constants["diameter"]
    return (limit if F is None else min(F, limit)) if clip else F


def fraction(name: str, value: object) -> Scalar:
    """A number above 0 and below 1, or one for each run."""
    result = validate.setting(name, value)
    if np.any(np.asarray(result) >= 1.0):
        raise validate.refused(f"{name} must be below 1", value)
    return result


# --- sums over step-size sequences: to rounding, never below, and at once however many terms there are --------------------------------

ROUNDING = 1.0 + 2.0**-45
"""The factor that rounds a sum of powers up, so that it is not below the true sum: some hundred roundings."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
"""Nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""


def powers(t: Scalar, c: Scalar, exact: int = 32) -> Array:
    """1 + 2^-c + ... + t^-c for c >= 0; of one c for several t too, and from `exact` on for t between whole numbers.

    The terms past `exact` are those of Euler and Maclaurin's formula. The derivatives of s^-c alternate in sign, so that what is left out
    after its third correction has the sign of the fourth, which is negative, and is smaller: here less than 1e-14 of the sum.

    >>> float(powers(3, 1.0)), float(powers(4, 0.0))
    (1.8333333333333333, 4.0)
    """
    t, c = np.asarray(t, dtype=float), np.asarray(c, dtype=float)
    few = np.cumsum(np.arange(1.0, exact + 1.0) ** -c[..., None], axis=-1)
    late = (few[..., -1] + _between(float(exact), np.maximum(t, exact), c)) * ROUNDING
    if t.ndim == 0 and t > exact:
        return late
    early = few[..., np.minimum(t, exact).astype(int) - 1] * (t >= 1.0)
    return np.where(t > exact, late, early)


def _between(n: float, t: Array, c: Array) -> Scalar:
    """(n+1)^-c + ... + t^-c, or a little more."""
    rate = 1.0 - c + 1e-300 * (c == 1.0)  # so small that the integral is the logarithm, and not 0/0
    third = c * (c + 1.0) * (c + 2.0) / 720.0
    fifth = third * (c + 3.0) * (c + 4.0) / 42.0

    def corrections(s: Scalar) -> Scalar:
        square = s * s
        return s**-c * (0.5 - (c / 12.0 - (third - fifth / square) / square) / s)

    return n**rate * np.expm1(rate * np.log(t / n)) / rate + corrections(t) - corrections(n)  # type: ignore[no-any-return]


def harmonic(t: float) -> float:
    """1 + 1/2 + ... + 1/t.

    >>> harmonic(4)
    2.083333333333333
    """
    return float(powers(t, 1.0))


def smooth_sum(f: Callable[[Array], Array], first: float, last: float, exact: int = 512) -> float:
    """f(first) + ... + f(last), or up to 1e-11 of it more, for f > 0 made of powers of s, their sums and roots.

    Past `exact` terms it is the integral from half a step before the first one left to half a step after the last, less the first
    correction of Euler and Maclaurin's formula. Such an f is analytic for Re s > 0 and its derivatives shrink as f/s, f/s^2, ..., so the
    next correction, less than 0.003 of the third derivative, is below 1e-12 of the terms before; and as a function of log s it is
    analytic at a distance of pi/2, so that 16 nodes on every stretch of length 2 leave less than 3^-32 of the integral. The result is
    rounded up by more than both.

    >>> bool(abs(smooth_sum(lambda s: s**-0.5, 1, 10**6) - powers(10**6, 0.5)) < 1e-7)
    True
    """
    n = first + exact - 1.0
    if last <= n:
        return float(np.sum(f(np.arange(first, last + 1.0))))
    low, high = log(n + 0.5), log(last + 0.5)
    panels = ceil(0.5 * (high - low))
    half = 0.5 * (high - low) / panels
    s = np.exp(low + half * (2.0 * np.arange(panels)[:, None] + 1.0 + NODES)).ravel()
    values = f(np.concatenate([np.arange(first, n + 1.0), [n + 1.0, last, last + 1.0], s]))
    terms, (after, end, beyond), nodes = np.split(values, [exact, exact + 3])
    integral = half * np.sum((s * nodes).reshape(panels, -1) @ WEIGHTS)
    return float((np.sum(terms) + integral - ((beyond - end) - (after - terms[-1])) / 24.0) * (1.0 + 1e-11))


def climb(t: float, p: Scalar, q: Scalar) -> float:
    """The sum of (s^p - (s-1)^p) s^-q over s = 1, ..., t, for 0 <= p <= 1 and q >= 0: a climb of s^p, each step divided by s^q.

    >>> climb(3, 1.0, 0.0), climb(3, 0.0, 1.0)
    (3.0, 1.0)
    """
    return 1.0 + smooth_sum(lambda s: -np.expm1(p * np.log1p(-1.0 / s)) * s ** (p - q), 2.0, t)

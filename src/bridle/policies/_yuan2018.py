"""Yuan & Lamperski 2018: clipped constraints, multipliers that are maximised exactly each round.

With h_i = (g_{t,i}(x_t))^+ and its gradient dh_i (zero where h_i is), every one of the k constraints by itself,

    lam_i   = h_i / (sigma eta_t)
    x_{t+1} = P_X(x_t - eta_t (grad f_t(x_t) + sum_i lam_i dh_i))

sigma = (k+1) G^2. Convex costs: one step eta = D / (G sqrt(k+1)) T^-b (b = 1/2 by default). Costs of strong convexity H: eta_t = 1 / (H t),
where the paper has 1 / (H (t+1)); in a session, 1 over the sum of the moduli of the costs there were.
The paper has fixed constraints; its argument only needs (g_t)^+ = 0 at the benchmark, so constraints may change from round to round.
Update and parameters as commonly stated; the bound is proved for exactly this update.

Guarantee: `penalty_bound`. Convex: regret O(T^max(b, 1-b)), sum of squared violations O(T^(1-b)), CCV O(T^(1-b/2)). Strongly convex:
    O(log T), O(log T), O(sqrt(T log T)).
Reference: J. Yuan, A. Lamperski. Online Convex Optimization for Cumulative Constraints. NeurIPS 2018.

>>> import bridle
>>> problem = bridle.problem("fixed", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy_for("yuan2018", problem), problem)
>>> bool(bridle.ccv(trace) <= trace.policy.bound(problem.constants, 500).ccv)
True
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback
from bridle.ops import Array, Scalar, combine, pos, scalar
from bridle.policies.common import (
    capped_bound,
    climb,
    curvature_of,
    diameter_of,
    flat,
    fraction,
    in_advance,
    most_behind,
    over_costs,
    over_moduli,
    powers,
    rounds_by_modulus,
    told,
    unmet,
)
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import Through, registered


class PenaltyState(NamedTuple):
    """The decision, and the rounds so far."""

    x: Array
    t: Scalar


class PenaltyEach(NamedTuple):
    """x_{t+1} = P_X(x_t - eta_t (grad f_t + sum_i h_i dh_i / (sigma eta_t))), eta_t = step / t^decay.

    With a modulus t counts costs by their moduli.
    """

    domain: Domain
    step: Scalar
    decay: Scalar
    sigma: Scalar
    modulus: Scalar | None
    each: Array  # (k,): its length is the number of constraints

    def init(self, x1: Array) -> PenaltyState:
        return PenaltyState(x1, scalar(x1))

    def decide(self, state: PenaltyState) -> Array:
        return state.x

    def update(self, state: PenaltyState, feedback: Feedback) -> PenaltyState:
        t = rounds_by_modulus(state.t, feedback.modulus, self.modulus)
        eta = self.step / t**self.decay
        multipliers = pos(feedback.g) / (self.sigma * eta)
        return PenaltyState(self.domain.project(state.x - eta * (feedback.df + combine(multipliers, feedback.dg))), t)


def penalty_bound(record: Any, constants: Constants, t: float, k: int) -> Bound:
    """Any step eta_s = step / s^c (0 <= c < 1; c = 1 and step = 1/H for strongly convex costs) and sigma > (k+1) G^2 / 2, for every t.

    Write m = (k+1) G^2 / 2, so that |grad f + sum lam_i dh_i|^2 <= 2m (1 + sum lam_i^2), and a = 1 - m/sigma. One projected step and
    convexity (<dh_i, x_t - u> >= h_i where g_i(u) <= 0), summed with lam_i = h_i / (sigma eta_s), give for every t

        Regret_t + a sum_s sum_i h_i^2 / (sigma eta_s) <= Base_t = m sum_s eta_s + D^2 / (2 eta_t),

    the last term for convex costs only (the moduli cancel it otherwise). Regret_t >= -GDt, so with E_t = GDt + Base_t:
    CCV^2 <= sum sigma eta_s * sum h^2 / (sigma eta_s) <= sigma sum eta_s * E_t / a (Cauchy-Schwarz), and, summing by parts over all s <= t,
    sum h^2 <= A/a, A = sigma sum_s eta_s (E_s - E_{s-1}). If an action has every g_i <= -eps, then <dh_i, x_t - u> >= h_i + eps wherever
    h_i > 0, hence eps sum h / (sigma eta_s) <= E_t and CCV <= A / eps.

    In a session a round may have no cost, or one of another modulus H_s: eta_s is then 1 over the sum of the moduli, the first sum in
    Base_t and in A over the rounds with a cost, D^2 H/2 more where moduli were smaller than told (see `bridle.policies.common`), and E_t
    grows by GD + H_s D^2/2 with each cost, as gradients are known at the decisions alone. Rounds without a cost and without violation
    change nothing.
    """
    step, c, sigma, strong = record.step, record.decay, record.sigma, record.modulus is not None
    if why := unmet(constants, modulus=record.modulus):
        return Bound(why=why)
    G, D, slater = constants["lipschitz"], constants["diameter"], constants.get("slater")
    m = 0.5 * (k + 1.0) * G * G
    a = 1.0 - m / sigma
    if np.any(a <= 0.0):
        return Bound(why=f"the true Lipschitz constant is {G:.4g}: too far above the one the policy was told")
    if strong:
        seen, half = curvature_of(constants, t), 0.5 * D * D / step
        steps, squares, pull = step * over_costs(seen, 1.0), step * step * over_costs(seen, 2.0), half * in_advance(seen)
        base, total, behind = m * steps + pull, steps + step * seen.struck, most_behind(constants, t, record.modulus or 0.0)
        curved = half * over_moduli(seen, 1.0) if "curvature" in constants else 0.0
        A = sigma * (G * D * steps + m * squares + step * (curved + pull))
    else:
        pull, total, behind = 0.5 * D * D / step, step * powers(t, c), G * D * t
        base = m * total + pull * t**c
        A = sigma * (G * D * total + step * (m * step * powers(t, 2.0 * c) + pull * climb(t, c, c)))
    ccv = np.sqrt(sigma * total * (behind + base) / a)
    if slater:
        ccv = np.minimum(ccv, A / slater)
    squared = np.minimum(A / a, k * (G * D) ** 2 * t)
    return capped_bound(base, ccv, G * D, 1.0, t)._replace(squared=flat(squared))


def _bound(policy: Configuration[PenaltyEach], constants: Constants, t: float) -> Bound:
    return penalty_bound(policy.record, constants, t, len(policy.record.each))


_REFERENCE = "Yuan & Lamperski, NeurIPS 2018"


@registered(
    reference=_REFERENCE,
    regret="O(T^max(b,1-b)), b = exponent",
    violation="O(T^(1-b/2))",
    bound=_bound,
    reduces="all",
    paper_constraints="fixed",
    slater="sharper",
    needs=("horizon", "lipschitz", "diameter"),
)
def yuan2018(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    constraints: int = 1,
    diameter: Setting | None = None,
    exponent: Setting = 0.5,
    step: Setting | None = None,
    **through: Unpack[Through],
) -> PenaltyEach:
    """Clipped penalty, convex costs.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    exponent
        b, the exponent of the step sizes t^-b. Values: above 0 and below 1.
    step
        The step size. Default: D / (G sqrt(k + 1) T^b). Values: above 0. Unit: action per unit of gradient.
    """
    T, G, k = validate.rounds("horizon", horizon), validate.setting("lipschitz", lipschitz), constraints
    D, b = diameter_of(domain, diameter), fraction("exponent", exponent)
    eta = told("step", step, D / (G * (k + 1.0) ** 0.5 * T**b))
    return PenaltyEach(domain, eta, 0.0, (k + 1.0) * G * G, None, np.ones(k))


@registered(
    reference=_REFERENCE,
    regret="O(log T)",
    violation="O(sqrt(T log T))",
    bound=_bound,
    reduces="all",
    paper_constraints="fixed",
    strongly_convex=True,
    slater="sharper",
    needs=("lipschitz", "modulus"),
)
def yuan2018_strong(
    domain: Domain,
    *,
    lipschitz: Setting,
    modulus: Setting,
    constraints: int = 1,
    **through: Unpack[Through],
) -> PenaltyEach:
    """Clipped penalty, strongly convex costs.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    modulus
        Strong convexity of the costs. Values: above 0. Unit: cost per squared unit of action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    """
    G, H, k = validate.setting("lipschitz", lipschitz), validate.setting("modulus", modulus), constraints
    return PenaltyEach(domain, 1.0 / H, 1.0, (k + 1.0) * G * G, H, np.ones(k))

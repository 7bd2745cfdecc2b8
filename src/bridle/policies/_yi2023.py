"""Yi et al. 2023, one node: a penalty on the worst constraint that grows as the steps shrink, and pays off under Slater's condition.

Projection form, with h = (max_i g_{t,i}(x_t))^+ and its gradient dh (zero where h is):

    gamma_t = 1 / (2 G^2 alpha_t)
    x_{t+1} = P_X(x_t - alpha_t (grad f_t(x_t) + gamma_t h dh))

Convex costs: alpha_t = D / (2 G t^c), or, where the horizon is given, alpha = D / (sqrt(2) G T^c) throughout (c = 1/2 by default). Costs of
strong convexity mu: alpha_t = 1 / (mu t), or 1 over the sum of the moduli of the costs there were. The paper's alpha_t = t^-c is `step=1`;
its penalty is gamma_t = gamma_0 / alpha_t with gamma_0 at most 1 / (4 G^2), here 1 / (2 G^2), which the proof below allows.

Proximal form (``form="prox"``): the penalty is minimised with the worst constraint, not linearised. With gamma_t = 1 / (G^2 alpha_t):

    x_{t+1} = argmin over X of  <grad f_t(x_t), x> + gamma_t h (max_i g_{t,i}(x))^+ + |x - x_t|^2 / alpha_t

alpha_t = step / t^decay: constant sqrt(2) D / (G T^c) for a known horizon, D / (G t^c) without one, 2 / (mu t) for costs of strong
convexity mu. A constraint is read from its value and gradient at x_t, exactly where it is affine and as a cutting plane otherwise: the
bound holds for both. It must know how many `constraints` a round reveals: one compiles, several are a quadratic program each round, on
the Python engine only.

Update and parameters of both forms as commonly stated; the bounds are proved for exactly these updates.

Guarantee: `bridle.policies._yuan2018.penalty_bound` with k = 1. Convex: regret O(T^max(c, 1-c)), CCV O(T^(1-c/2)), and O(T^(1-c)) where an
    action satisfies every constraint with room to spare. Strongly convex: O(log T), O(sqrt(T log T)), and O(log T). Of the proximal form
    `prox_bound`, with no gain where there is room to spare.
Reference: X. Yi, X. Li, T. Yang, L. Xie, Y. Hong, T. Chai, K. H. Johansson. Distributed Online Convex Optimization with Adversarial
    Constraints: Reduced Cumulative Constraint Violation Bounds under Slater's Condition. arXiv:2306.00149, 2023.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3, slater=0.1)
>>> trace = bridle.play(bridle.policy_for("yi2023", problem), problem)
>>> bool(bridle.ccv(trace) <= trace.policy.bound(problem.constants, 500).ccv)
True
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback
from bridle.ops import Array, Scalar, pos, scalar, worst
from bridle.policies._yuan2018 import PenaltyState, penalty_bound
from bridle.policies.common import (
    capped_bound,
    climb,
    curvature_of,
    diameter_of,
    flat,
    fraction,
    in_advance,
    over_costs,
    over_moduli,
    powers,
    rounds_by_modulus,
    told,
    unmet,
)
from bridle.policies.entry import Configuration, Setting, Variant
from bridle.policies.proximal import ProximalStep, prox_for
from bridle.policies.registry import Through, registered


class PenaltyWorst(NamedTuple):
    """x_{t+1} = P_X(x_t - alpha_t (grad f_t + gamma_t h dh)), alpha_t = step / t^decay, gamma_t = 1 / (sigma alpha_t).

    With a modulus t counts costs by their moduli.
    """

    domain: Domain
    step: Scalar
    decay: Scalar
    sigma: Scalar
    modulus: Scalar | None

    def init(self, x1: Array) -> PenaltyState:
        return PenaltyState(x1, scalar(x1))

    def decide(self, state: PenaltyState) -> Array:
        return state.x

    def update(self, state: PenaltyState, feedback: Feedback) -> PenaltyState:
        g, dg = worst(feedback.g, feedback.dg)
        t = rounds_by_modulus(state.t, feedback.modulus, self.modulus)
        alpha = self.step / t**self.decay
        gamma = 1.0 / (self.sigma * alpha)
        return PenaltyState(self.domain.project(state.x - alpha * (feedback.df + gamma * pos(g) * dg)), t)


class ProximalPenalty(NamedTuple):
    """The proximal form, with gamma_t = 1 / (sigma alpha_t)."""

    prox: ProximalStep
    step: Scalar
    decay: Scalar
    sigma: Scalar
    modulus: Scalar | None
    each: Array  # (k,): its length is the number of constraints

    @property
    def domain(self) -> Domain:
        return self.prox.domain

    def init(self, x1: Array) -> PenaltyState:
        return PenaltyState(x1, scalar(x1))

    def decide(self, state: PenaltyState) -> Array:
        return state.x

    def update(self, state: PenaltyState, feedback: Feedback) -> PenaltyState:
        g, _ = worst(feedback.g, feedback.dg)
        t = rounds_by_modulus(state.t, feedback.modulus, self.modulus)
        alpha = self.step / t**self.decay
        price = pos(g) / (self.sigma * alpha)
        return PenaltyState(self.prox.step(feedback, state.x - (0.5 * alpha) * feedback.df, price, 1.0 / alpha), t)


def _proximal_penalty(
    domain: Domain, lipschitz: Scalar, step: Scalar, decay: Scalar, constraints: int, modulus: Scalar | None = None
) -> ProximalPenalty:
    prox = prox_for(domain, "affine", constraints)
    return ProximalPenalty(prox, step, decay, lipschitz * lipschitz, modulus, np.ones(constraints))


def _is_proximal(form: str) -> bool:
    validate.one_of("form", form, ("projection", "prox"))
    return form == "prox"


def prox_bound(record: ProximalPenalty, constants: Constants, t: float) -> Bound:
    """Regret_t <= R_t := (G^2/2) sum alpha_s + D^2 sum (1/alpha_s - 1/alpha_{s-1} - mu/2)^+, and  sum gamma_s h_s^2 <= 2 (GDt + R_t).

    Proof. The step gives, for u with g_s(u) <= 0 and z = x_{s+1}, y = x_s: f_s(y) - f_s(u) + gamma h g_s(z)^+ <= <grad f_s, y - z> - |z -
    y|^2 / alpha plus terms in |u - y|^2 that telescope to the second sum. g_s(z)^+ >= h - G |z - y|, so gamma h g_s(z)^+ >= gamma h^2 / 2
    - gamma G^2 |z - y|^2 / 2 >= gamma h^2 / 2 - |z - y|^2 / (2 alpha), and the rest is at most alpha G^2 / 2. (A cutting plane at y lies
    below g_s, is h at y and G-Lipschitz: the same.) Regret_t >= -GDt gives the squares, weighted by the growing gamma_s, and
    by parts sum h_s^2 <= 2 sum (E_s - E_{s-1}) / gamma_s, E_s = GDs + R_s; Cauchy and Schwarz the CCV. No gain from Slater's condition is
    proved for this form. Rounds of a session without a cost, or with one of another modulus, are as in `penalty_bound`: 1/alpha_s is half
    the sum of the moduli, the sums of alpha_s are over the rounds with a cost, and D^2 mu/2 are added where moduli were smaller than told.
    """
    if why := unmet(constants, modulus=record.modulus):
        return Bound(why=why)
    G, D, step, c = constants["lipschitz"], constants["diameter"], record.step, record.decay
    if np.any(np.asarray(record.sigma) * (1.0 + 1e-12) < G * G):
        return Bound(why="the policy was told too small a Lipschitz constant")
    if record.modulus is None:
        pull, total = D * D / step, step * powers(t, c)
        R = 0.5 * G * G * total + pull * t**c
        squared = 2.0 * record.sigma * (G * D * total + step * (0.5 * G * G * step * powers(t, 2.0 * c) + pull * climb(t, c, c)))
    else:  # a modulus of 2 / step pays for all that 1 / alpha_s grows
        seen = curvature_of(constants, t)
        total, pull = step * over_costs(seen, 1.0), 0.5 * record.modulus * D * D * in_advance(seen)
        R = 0.5 * G * G * total + pull
        curved = 0.5 * record.modulus * D * D * over_moduli(seen, 1.0) if "curvature" in constants else 0.0
        squares = step * step * over_costs(seen, 2.0)
        squared = 2.0 * record.sigma * (G * D * total + 0.5 * G * G * squares + step * (pull + curved))
    squared = np.minimum(squared, (G * D) ** 2 * t)
    return capped_bound(R, np.sqrt(t * squared), G * D, 1.0, t)._replace(squared=flat(squared))


def _bound(policy: Configuration[PenaltyWorst | ProximalPenalty], constants: Constants, t: float) -> Bound:
    if isinstance(policy.record, ProximalPenalty):
        return prox_bound(policy.record, constants, t)
    return penalty_bound(policy.record, constants, t, 1)


_REFERENCE = "Yi et al., arXiv 2023"
_COST = "1 projection (hinge prox for form=prox)"
_PROXIMAL = Variant("form", "prox", {"slater": "no", "cost": "hinge prox"})


@registered(
    reference=_REFERENCE,
    regret="O(T^max(b,1-b)), b = exponent",
    violation="O(T^(1-b/2)), O(T^(1-b)) with Slater",
    bound=_bound,
    slater="sharper",
    cost=_COST,
    needs=("lipschitz", "diameter"),
    variants=(_PROXIMAL,),
)
def yi2023(
    domain: Domain,
    *,
    lipschitz: Setting,
    horizon: Setting | None = None,
    diameter: Setting | None = None,
    exponent: Setting = 0.5,
    step: Setting | None = None,
    form: Literal["projection", "prox"] = "projection",
    constraints: int = 1,
    **through: Unpack[Through],
) -> PenaltyWorst | ProximalPenalty:
    """Growing penalty, convex costs.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    horizon
        T, how many rounds will be played. Default: steps shrink as t^-exponent; given, the step is constant.
        Values: a whole number, 1 or above. Unit: rounds.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    exponent
        c: steps shrink as t^-c, or are proportional to T^-c where the horizon is given. Values: above 0 and below
        1.
    step
        The step size. Default: that of the theorem: proportional to D / G. Values: above 0. Unit: action per unit
        of gradient.
    form
        How the penalty is minimised. Values: projection (a gradient step) or prox (exactly).
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    """
    G, c = validate.setting("lipschitz", lipschitz), fraction("exponent", exponent)
    D = diameter_of(domain, diameter)
    if _is_proximal(form):
        if horizon is None:
            return _proximal_penalty(domain, G, told("step", step, D / G), c, constraints)
        T = validate.rounds("horizon", horizon)
        return _proximal_penalty(domain, G, told("step", step, 2.0**0.5 * D / (G * T**c)), 0.0, constraints)
    sigma = 2.0 * G * G
    if horizon is None:
        return PenaltyWorst(domain, told("step", step, D / (2.0 * G)), c, sigma, None)
    T = validate.rounds("horizon", horizon)
    return PenaltyWorst(domain, told("step", step, D / (2.0**0.5 * G * T**c)), 0.0, sigma, None)


@registered(
    reference=_REFERENCE,
    regret="O(log T)",
    violation="O(sqrt(T log T)), O(log T) with Slater",
    bound=_bound,
    strongly_convex=True,
    slater="sharper",
    cost=_COST,
    needs=("lipschitz", "modulus"),
    variants=(_PROXIMAL,),
)
def yi2023_strong(
    domain: Domain,
    *,
    lipschitz: Setting,
    modulus: Setting,
    form: Literal["projection", "prox"] = "projection",
    constraints: int = 1,
    **through: Unpack[Through],
) -> PenaltyWorst | ProximalPenalty:
    """Growing penalty, strongly convex costs.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    modulus
        Strong convexity of the costs. Values: above 0. Unit: cost per squared unit of action.
    form
        How the penalty is minimised. Values: projection (a gradient step) or prox (exactly).
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    """
    G, mu = validate.setting("lipschitz", lipschitz), validate.setting("modulus", modulus)
    if _is_proximal(form):
        return _proximal_penalty(domain, G, 2.0 / mu, 1.0, constraints, mu)
    return PenaltyWorst(domain, 1.0 / mu, 1.0, 2.0 * G * G, mu)

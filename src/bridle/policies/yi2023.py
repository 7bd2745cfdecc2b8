"""Yi et al. 2023, one node: a penalty on the worst constraint that grows as the steps shrink, and pays off under Slater's condition.

Projection form, with h = (max_i g_{t,i}(x_t))^+ and its gradient dh (zero where h is):

    gamma_t = 1 / (2 G^2 alpha_t)
    x_{t+1} = P_X(x_t - alpha_t (grad f_t(x_t) + gamma_t h dh))

Convex costs: alpha_t = D / (2 G t^c), or, where the horizon is given, alpha = D / (sqrt(2) G T^c) throughout (c = 1/2 by default). Costs of
strong convexity mu: alpha_t = 1 / (mu t). The paper's alpha_t = t^-c is `step=1`.
``form="prox"`` is the proximal form of `bridle.policies.yi2023_prox`, which must know how many `constraints` a round reveals.
Update and parameters as commonly stated; the bound is proved for exactly this update.

Guarantee: `bridle.policies.yuan2018.penalty_bound` with k = 1. Convex: regret O(T^max(c, 1-c)), CCV O(T^(1-c/2)), and O(T^(1-c)) where an
    action satisfies every constraint with room to spare. Strongly convex: O(log T), O(sqrt(T log T)), and O(log T).
Reference: X. Yi, X. Li, T. Yang, L. Xie, Y. Hong, T. Chai, K. H. Johansson. Distributed Online Convex Optimization with Adversarial
    Constraints: Reduced Cumulative Constraint Violation Bounds under Slater's Condition. arXiv:2306.00149, 2023.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3, slater=0.1)
>>> trace = bridle.play(bridle.policy_for("yi2023", problem), problem)
>>> bool(bridle.ccv(trace) <= trace.policy.bound(problem.constants, 500).ccv)
True
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from bridle import validate
from bridle.core import Bound, Constants, Feedback
from bridle.ops import Array, pos, scalar, worst
from bridle.policies.common import diameter_of, fraction
from bridle.policies.entry import Entry, Variant
from bridle.policies.yi2023_prox import ProximalPenalty, prox_bound, proximal
from bridle.policies.yuan2018 import PenaltyState, penalty_bound


class PenaltyWorst(NamedTuple):
    """x_{t+1} = P_X(x_t - alpha_t (grad f_t + gamma_t h dh)), alpha_t = step / t^decay, gamma_t = 1 / (sigma alpha_t)."""

    domain: Any
    step: Array
    decay: Array
    sigma: Array

    def init(self, x1: Array) -> PenaltyState:
        return PenaltyState(x1, scalar(x1))

    def decide(self, state: PenaltyState) -> Array:
        return state.x

    def update(self, state: PenaltyState, feedback: Feedback) -> PenaltyState:
        g, dg = worst(feedback.g, feedback.dg)
        t = state.t + 1.0
        alpha = self.step / t**self.decay
        gamma = 1.0 / (self.sigma * alpha)
        return PenaltyState(self.domain.project(state.x - alpha * (feedback.df + gamma * pos(g) * dg)), t)


def yi2023(
    domain: Any,
    lipschitz: Any,
    horizon: Any = None,
    diameter: Any = None,
    exponent: Any = 0.5,
    step: Any = None,
    form: str = "projection",
    constraints: int = 1,
) -> PenaltyWorst | ProximalPenalty:
    """Convex costs: steps that shrink as t^-exponent, or one constant step where the horizon is given."""
    G, c = validate.setting("lipschitz", lipschitz), fraction("exponent", exponent)
    D = diameter_of(domain, diameter)
    if _proximal(form):
        if horizon is None:
            return proximal(domain, G, D / G if step is None else validate.setting("step", step), c, constraints)
        T = validate.rounds("horizon", horizon)
        return proximal(domain, G, 2.0**0.5 * D / (G * T**c) if step is None else validate.setting("step", step), 0.0, constraints)
    sigma = 2.0 * G * G
    if horizon is None:
        return PenaltyWorst(domain, D / (2.0 * G) if step is None else validate.setting("step", step), c, sigma)
    T = validate.rounds("horizon", horizon)
    return PenaltyWorst(domain, D / (2.0**0.5 * G * T**c) if step is None else validate.setting("step", step), 0.0, sigma)


def yi2023_strong(
    domain: Any, lipschitz: Any, modulus: Any, form: str = "projection", constraints: int = 1
) -> PenaltyWorst | ProximalPenalty:
    """Strongly convex costs; the horizon need not be known."""
    G, mu = validate.setting("lipschitz", lipschitz), validate.setting("modulus", modulus)
    if _proximal(form):
        return proximal(domain, G, 2.0 / mu, 1.0, constraints, mu)
    return PenaltyWorst(domain, 1.0 / mu, 1.0, 2.0 * G * G)


def _proximal(form: str) -> bool:
    if form not in ("projection", "prox"):
        raise validate.unknown("form", form, ("projection", "prox"))
    return form == "prox"


def _bound(policy: Any, constants: Constants, t: float, strong: bool = False) -> Bound:
    if isinstance(policy.record, ProximalPenalty):
        return prox_bound(policy.record, constants, t)
    return penalty_bound(policy.record, constants, t, 1, strong)


_REFERENCE = "Yi et al., arXiv 2023"
_COST = "1 projection (hinge prox for form=prox)"
_PROXIMAL = Variant("form", "prox", {"slater": "no", "cost": "hinge prox"})
ENTRIES = (
    Entry(
        "yi2023", yi2023, "growing penalty, convex costs", _REFERENCE, "O(T^max(b,1-b)), b = exponent",
        "O(T^(1-b/2)), O(T^(1-b)) with Slater", bound=_bound, slater="sharper", cost=_COST, needs=("lipschitz", "diameter"),
        variants=(_PROXIMAL,),
    ),
    Entry(
        "yi2023-strong", yi2023_strong, "growing penalty, strongly convex costs", _REFERENCE, "O(log T)",
        "O(sqrt(T log T)), O(log T) with Slater", bound=partial(_bound, strong=True), strongly_convex=True, slater="sharper",
        cost=_COST, needs=("lipschitz", "modulus"), variants=(_PROXIMAL,),
    ),
)  # fmt: skip

"""Jenatton, Huang, Archambeau 2016: a regularised Lagrangian with steps that need no horizon.

One multiplier for the worst of the constraints, everything at (x_t, lam_t):

    x_{t+1} = P_X(x_t - eta_t (grad f_t(x_t) + lam grad g_t(x_t)))         eta_t   = (D/G) t^-beta
    lam    <- (lam + mu_t (g_t(x_t) - theta_t lam))^+                      theta_t = 6 G^2 eta_t,  mu_t = 1 / (theta_t (t+1))

`exponent` is beta, between 0 and 1; `step` takes the place of D/G. The paper is about constraints that stay the same; the proof does not
need it. Update and parameters as commonly stated; the bound is proved for exactly this update.

Guarantee: `jenatton_bound`: regret O(T^max(beta, 1-beta)), violation O(T^{1-beta/2}), at every round.
Reference: R. Jenatton, J. Huang, C. Archambeau. Adaptive Algorithms for Online Convex Optimization with Long-term Constraints. ICML 2016.

>>> import bridle
>>> trace = bridle.play(bridle.policy("jenatton2016", bridle.Ball(2), lipschitz=1.0), "halfspaces", horizon=500)
>>> bridle.soft_violation(trace) <= trace.policy.bound(trace.problem.constants, 500).soft
True
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback
from bridle.ops import Array, Scalar, pos, scalar, worst
from bridle.policies.common import capped_bound, clipped, diameter_of, fraction, largest, powers, smooth_sum, switch, unmet
from bridle.policies.entry import CLIPPED, Configuration, Setting
from bridle.policies.registry import Through, registered


class PolynomialStepsState(NamedTuple):
    """The decision, the multiplier and the rounds so far."""

    x: Array
    lam: Scalar
    t: Scalar


class PolynomialSteps(NamedTuple):
    """Steps step / t^exponent in x, regulariser theta / t^exponent, dual step 1 / ((t+1) regulariser)."""

    domain: Domain
    step: Scalar
    theta: Scalar
    exponent: Scalar
    clip: Scalar

    def init(self, x1: Array) -> PolynomialStepsState:
        return PolynomialStepsState(x1, scalar(x1), scalar(x1))

    def decide(self, state: PolynomialStepsState) -> Array:
        return state.x

    def update(self, state: PolynomialStepsState, feedback: Feedback) -> PolynomialStepsState:
        g, dg = worst(*clipped(feedback, self.clip))
        t = state.t + 1.0
        decay = t**self.exponent
        theta = self.theta / decay
        lam = pos(state.lam + (g - theta * state.lam) / (theta * (t + 1.0)))
        return PolynomialStepsState(self.domain.project(state.x - self.step / decay * (feedback.df + state.lam * dg)), lam, t)


def jenatton_bound(policy: Configuration[PolynomialSteps], constants: Constants, t: float) -> Bound:
    """Regret_t <= C_t and violation <= sqrt(2 (theta_1 + sum theta_s)(G D t + C_t)), C_t = D^2/(2 eta_t) + sum eta_s G^2 + sum mu_s F^2.

    As for constant steps, with |grad_x|^2 <= 2 G^2 (1 + lam_s^2). The squares (lam_s - lam)^2 come with 1/mu_s - 1/mu_{s-1} - theta_s =
    s (theta_s - theta_{s-1}) <= 0 for s >= 2 and with theta_1 for s = 1, where lam_1 = 0; the lam_s^2 with eta_s G^2 + theta_s/(s+1)
    - theta_s/2 <= 0 for s >= 2, since theta_s >= 6 eta_s G^2.
    """
    record, why = policy.record, unmet(constants)
    F = None if why else largest(constants, record.clip)
    if F is None:
        return Bound(why=why or "the largest |g| is not known")
    G, D, beta = constants["lipschitz"], constants["diameter"], record.exponent
    if np.any(6.0 * G**2 * record.step > record.theta * (1.0 + 1e-12)):
        return Bound(why=f"the true Lipschitz constant is {G:.4g}, above the one the policy was told")
    falling, rising = powers(t, beta), smooth_sum(lambda s: s**beta / (s + 1.0), 1.0, t)
    C = D**2 * t**beta / (2.0 * record.step) + G**2 * record.step * falling + F**2 * rising / record.theta
    return capped_bound(C, np.sqrt(2.0 * record.theta * (1.0 + falling) * (G * D * t + C)), G * D, record.clip, t)


@registered(
    reference="Jenatton, Huang & Archambeau, ICML 2016",
    regret="O(T^max(b,1-b)), b = exponent",
    violation="soft O(T^(1-b/2))",
    bound=jenatton_bound,
    metric="soft",
    paper_constraints="fixed",
    needs=("lipschitz", "diameter"),
    variants=(CLIPPED,),
)
def jenatton2016(
    domain: Domain,
    *,
    lipschitz: Setting,
    diameter: Setting | None = None,
    exponent: Setting = 0.5,
    clip: bool = False,
    step: Setting | None = None,
    **through: Unpack[Through],
) -> PolynomialSteps:
    """Regularised Lagrangian without a horizon.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    exponent
        b of the step sizes t^-b: larger means less regret and more violation. Values: above 0 and below 1.
    clip
        Feed the positive part of the constraints.
    step
        The first step. Default: D / G. Values: above 0. Unit: action per unit of gradient.
    """
    G, beta = validate.setting("lipschitz", lipschitz), fraction("exponent", exponent)
    D = diameter_of(domain, diameter)
    step = validate.setting("step", D / G if step is None else step)
    return PolynomialSteps(domain, step, 6.0 * G**2 * step, beta, switch("clip", clip))

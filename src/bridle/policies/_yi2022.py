"""Yi et al. 2022, one node: primal-dual steps on the clipped constraint with a multiplier that is pulled back to zero.

With h = (max_i g_{t,i}(x_t))^+, its gradient dh (zero where h is) and kappa in (0, 1):

    x_{t+1} = P_X(x_t - alpha_t (grad f_t(x_t) + q_t dh))
    q_{t+1} = ((1 - beta_t gamma_t) q_t + gamma_t (h + <dh, x_{t+1} - x_t>))^+,      q_1 = 0

gamma_t = gamma_0 / t^(1-kappa) and beta_t = 1 / (gamma_0 t^kappa), so that beta_t gamma_t = 1/t; gamma_0 = 1 / (G D). Convex costs:
alpha_t = D / (G t^kappa). Costs of strong convexity mu (where `modulus` is given): alpha_t = 1 / (mu t). In units where G = D = 1 these are
the usual t^-kappa and t^-(1-kappa); ``lipschitz=1, diameter=1`` gives them in any units.
Update and parameters as commonly stated; the bound is proved for exactly this update.

Guarantee: `regularised_bound`. Regret O(T^max(kappa, 1-kappa)), or O(T^kappa) for strongly convex costs; CCV O(T^(1-kappa/2)).
Reference: X. Yi, X. Li, T. Yang, L. Xie, T. Chai, K. H. Johansson. Regret and Cumulative Constraint Violation Analysis for Distributed
    Online Constrained Convex Optimization. IEEE Transactions on Automatic Control, 2022.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy_for("yi2022", problem), problem)
>>> bool(bridle.ccv(trace) <= trace.policy.bound(problem.constants, 500).ccv)
True
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback
from bridle.ops import Array, Scalar, dot, pos, scalar, worst
from bridle.policies.common import capped_bound, curvature_of, diameter_of, fraction, most_behind, powers, told, unmet
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import Through, registered


class RegularisedState(NamedTuple):
    """The decision, the multiplier, and the rounds so far."""

    x: Array
    q: Scalar
    t: Scalar


class Regularised(NamedTuple):
    """alpha_t = step / t^decay, gamma_t = gamma / t^(1-kappa), beta_t gamma_t = 1/t; `modulus` is None for convex costs."""

    domain: Domain
    step: Scalar
    decay: Scalar
    gamma: Scalar
    kappa: Scalar
    modulus: Scalar | None

    def init(self, x1: Array) -> RegularisedState:
        return RegularisedState(x1, scalar(x1), scalar(x1))

    def decide(self, state: RegularisedState) -> Array:
        return state.x

    def update(self, state: RegularisedState, feedback: Feedback) -> RegularisedState:
        g, dg = worst(feedback.g, feedback.dg)
        h, dh = pos(g), (g > 0.0) * dg
        t = state.t + 1.0
        x = self.domain.project(state.x - self.step / t**self.decay * (feedback.df + state.q * dh))
        gamma = self.gamma / t ** (1.0 - self.kappa)
        return RegularisedState(x, pos((1.0 - 1.0 / t) * state.q + gamma * (h + dot(dh, x - state.x))), t)


def regularised_bound(policy: Configuration[Regularised], constants: Constants, t: float) -> Bound:
    """For any step and gamma_0, at every t.

    Let v = x_{t+1} - x_t and b = h + <dh, v>; |b| <= GD, as the linearisation lies below h. The projected step and convexity give, for u
    with g(u) <= 0,  f(x_t) - f(u) + q_t b <= (|x_t-u|^2 - |x_{t+1}-u|^2 - |v|^2) / (2 alpha_t) + G|v|  (less mu/2 |x_t-u|^2). The
    multiplier's step gives, for lam >= 0,
    (lam - q_t) b <= ((q_t-lam)^2 - (q_{t+1}-lam)^2) / (2 gamma_t) + beta_t q_t (lam - q_t) + gamma_t b^2 + gamma_t beta_t^2 q_t^2.
    There beta q (lam - q) = (beta/2)(lam^2 - q^2 - (q-lam)^2): its last term cancels the telescoping one, as
    1/gamma_t - 1/gamma_{t-1} <= beta_t (for t = 1, 1/gamma_1 = beta_1), and -(beta/2) q^2 takes gamma beta^2 q^2 = beta q^2 / t for t > 1,
    while q_1 = 0. With lam b >= lam h - lam G|v| and (1+lam) G|v| - |v|^2 / (2 alpha) <= (1+lam)^2 alpha G^2 / 2, and S = G^2 sum alpha,

        Regret_t + lam CCV_t <= [D^2 / (2 alpha_t)] + (GD)^2 sum gamma + (1+lam)^2 S / 2 + lam^2 sum beta / 2,

    the bracket for convex costs only. lam = 0 bounds the regret by R; Regret_t >= -GDt and the best lam give
    CCV_t <= S + sqrt(2 (S + sum beta) (GDt + R)).

    In a session a round may have no cost, or one of a modulus below mu. The steps stay as they are (the multiplier's proof needs them), and
    mu_s/2 |x_t-u|^2 no longer pays for all that 1/alpha grows: (D^2/2) sum (mu - mu_s)^+ is added to R. Regret_t is at least minus the sum
    of GD + (mu_s/2) D^2 over the costs, as gradients are known at the decisions alone (`bridle.policies.common.most_behind`).
    """
    record = policy.record
    strong = record.modulus is not None
    if why := unmet(constants, modulus=record.modulus):
        return Bound(why=why)
    G, D, kappa = constants["lipschitz"], constants["diameter"], record.kappa
    S = G * G * record.step * powers(t, record.decay)
    regret = 0.5 * S + (G * D) ** 2 * record.gamma * powers(t, 1.0 - kappa) + (0.0 if strong else 0.5 * D * D * t**kappa / record.step)
    if record.modulus is not None:
        regret = regret + 0.5 * record.modulus * D * D * curvature_of(constants, t).short
    behind = most_behind(constants, t, record.modulus or 0.0)
    ccv = S + np.sqrt(2.0 * (S + powers(t, kappa) / record.gamma) * (behind + regret))
    return capped_bound(regret, ccv, G * D, 1.0, t)


@registered(
    reference="Yi et al., IEEE TAC 2022",
    regret="O(T^max(b,1-b)), b = exponent; O(T^b) strongly convex",
    violation="O(T^(1-b/2))",
    bound=regularised_bound,
    needs=("lipschitz", "diameter"),
)
def yi2022(
    domain: Domain,
    *,
    lipschitz: Setting,
    modulus: Setting | None = None,
    diameter: Setting | None = None,
    exponent: Setting = 0.5,
    step: Setting | None = None,
    **through: Unpack[Through],
) -> Regularised:
    """Primal-dual with a regularised multiplier.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    modulus
        Strong convexity of the costs. Default: costs are merely convex. Values: above 0. Unit: cost per squared
        unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    exponent
        Kappa of the step sizes t^-kappa. Values: above 0 and below 1.
    step
        The first step, for convex costs. Default: D / G. Values: above 0. Unit: action per unit of gradient.
    """
    G, kappa = validate.setting("lipschitz", lipschitz), fraction("exponent", exponent)
    D = diameter_of(domain, diameter)
    if modulus is None:
        return Regularised(domain, told("step", step, D / G), kappa, 1.0 / (G * D), kappa, None)
    if step is not None:
        raise validate.refused("step is for convex costs only; with modulus it is 1/modulus", step)
    mu = validate.setting("modulus", modulus)
    return Regularised(domain, 1.0 / mu, 1.0, 1.0 / (G * D), kappa, mu)

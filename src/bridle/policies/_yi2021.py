"""Yi et al. 2021: proximal steps on the clipped constraints with growing weights; for constraints that stay the same.

With h_t = g(x_t)^+, for each of the k constraints, and q_0 = 0:

    q_t     = q_{t-1} + gamma_t h_t
    x_{t+1} = argmin over X of  <grad f_t(x_t), x> + sum_i gamma_{t+1} (q_t + gamma_t h_t)_i g_i(x)^+ + |x - x_t|^2 / alpha_t

(the last term counts twice on purpose). gamma_{t+1} = gamma_0 / sqrt(alpha_t), gamma_1 = gamma_2, gamma_0 = 1 / (sqrt(2k) G); the paper
has gamma_t = gamma_0 / sqrt(alpha_t), one round earlier. Convex costs: alpha_t = step / t^c, step = sqrt(2) D / G (the paper's is 1),
c = `exponent`; with `exponent=0` the step is constant. With a `modulus` mu of strong convexity: alpha_t = 2 / (mu t).

With ``form="affine"`` a constraint is read from its value and gradient at x_t, which is exact for affine ones: others need
``form="function"``. One affine constraint is plain arithmetic and compiles; several are a quadratic program each round and run on the
Python engine only, as does ``form="function"``, which takes convex functions as they are.

Guarantee: `growing_weights_bound`. Update and parameters as commonly stated; the bound is proved for exactly this update.
Reference: X. Yi, X. Li, T. Yang, L. Xie, T. Chai, K. H. Johansson. Regret and Cumulative Constraint Violation Analysis for Online Convex
    Optimization with Long Term Constraints. ICML 2021.

>>> import bridle
>>> problem = bridle.problem("fixed", horizon=200, dim=3)
>>> trace = bridle.play(bridle.policy_for("yi2021", problem), problem)
>>> bool(bridle.ccv(trace) <= trace.policy.bound(problem.constants, 200).ccv)
True
"""

from __future__ import annotations

from math import sqrt
from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import records, validate
from bridle.core import Bound, Constants, Domain, Feedback, InputError
from bridle.ops import Array, Scalar, maximum, pos, scalar, vector
from bridle.policies.common import capped_bound, diameter_of, powers, smooth_sum, told, unmet
from bridle.policies.entry import READ_AS_AFFINE, Configuration, Setting
from bridle.policies.proximal import FunctionHinge, ProximalStep, prox_for
from bridle.policies.registry import Through, registered


class WeightState(NamedTuple):
    """The decision, the weighted violation of each constraint, and the rounds seen."""

    x: Array
    q: Array
    t: Scalar


class GrowingWeights(NamedTuple):
    """The update above with alpha_t = alpha / t^power."""

    prox: ProximalStep
    alpha: Scalar
    power: Scalar
    gamma: Scalar  # gamma_0
    modulus: Scalar  # 0 where the costs need not be strongly convex
    each: Array  # (k,): its length is the number of constraints

    @property
    def domain(self) -> Domain:
        return self.prox.domain

    def init(self, x1: Array) -> WeightState:
        return WeightState(x1, vector(x1, self.each), scalar(x1))

    def decide(self, state: WeightState) -> Array:
        return state.x

    def update(self, state: WeightState, feedback: Feedback) -> WeightState:
        t = state.t + 1.0
        alpha = self.alpha / t**self.power
        now = self.gamma * (maximum(t - 1.0, 1.0) ** self.power / self.alpha) ** 0.5
        following = self.gamma / alpha**0.5
        h = now * pos(feedback.g)
        q = state.q + h
        x = self.prox.sum(feedback, state.x - (0.5 * alpha) * feedback.df, following * (q + h), 1.0 / alpha)
        return WeightState(x, q, t)


def growing_weights_bound(policy: Configuration[GrowingWeights], constants: Constants, t: float) -> Bound:
    """Regret_t <= R_t := (G^2/2) sum alpha_s + D^2 sum (1/alpha_s - 1/alpha_{s-1} - mu/2)^+, and, with U_s = sqrt(2 (GDs + R_s)),
    CCV_t <= sum_{s<t-1} U_s (1/gamma_{s+1} - 1/gamma_{s+2}) + U_{t-1} / gamma_t,  CCV_1 <= sqrt(k) GD.

    Proof. Write a_s = gamma_s h_s. The queue drifts by |q_{s+1}|^2 / 2 - |q_s|^2 / 2 = q_s.a_{s+1} + |a_{s+1}|^2 / 2. The proximal step
    gives, for u with g(u) <= 0, f_s(x_s) - f_s(u) + (q_s + a_s).a_{s+1} <= <grad f_s, x_s - x_{s+1}> - |x_{s+1} - x_s|^2 / alpha_s plus
    terms in |u - x_s|^2 that telescope to the second sum. Added up, a-terms |a_{s+1}|^2 / 2 - a_s.a_{s+1} = |a_{s+1} - a_s|^2 / 2 -
    |a_s|^2 / 2 are left, at most gamma_{s+1}^2 |h_{s+1} - h_s|^2 + ((r - 1)^2 - 1/2) |a_s|^2 with r = gamma_{s+1} / gamma_s, and at most
    gamma_0^2 k G^2 |x_{s+1} - x_s|^2 / alpha_s <= |x_{s+1} - x_s|^2 / (2 alpha_s) where r <= 1 + 1/sqrt(2) and gamma_0^2 k G^2 <= 1/2; in
    the first round r = 1, and -|a_1|^2 / 2 pays for |q_1|^2 / 2. The rest is <grad f, x_s - x_{s+1}> - |.|^2 / (2 alpha) <= alpha G^2 /
    2. So Regret_t + |q_{t+1}|^2 / 2 <= R_t, hence |q_{t+1}| <= U_t; sum gamma_s h_s = q_t, summed by parts, is the CCV (gamma_1 =
    gamma_2, so that q_1 <= gamma_1 sqrt(k) GD matters for t = 1 only). Needs the same g at x_s and in the step.

    Where a session's costs have smaller moduli mu_s, or rounds none, (D^2/2) sum (mu - mu_s)^+ is added to R_t, and GDs is the sum of
    GD + (mu_s/2) D^2 (`bridle.policies.common.most_behind`), both as of round t at every s: the steps stay as they are.
    """
    record = policy.record
    if why := unmet(constants, fixed=True, modulus=record.modulus) or curved(record.prox, constants):
        return Bound(why=why)
    G, D, k, alpha, c = constants["lipschitz"], constants["diameter"], len(record.each), record.alpha, record.power
    if np.any(record.gamma**2 * k * G * G > 0.5 * (1.0 + 1e-12)):
        return Bound(why="the policy was told too small a Lipschitz constant")
    pull = D * D / alpha * (0.5 * record.modulus * alpha < 1.0 - 1e-12)  # a modulus of 2 / alpha pays for all that 1 / alpha_s grows

    seen = constants.get("curvature")
    less = 0.0 if seen is None else 0.5 * record.modulus * D * D * seen.short
    more = 0.0 if seen is None else 0.5 * record.modulus * D * D * seen.moduli

    def R(s: Scalar) -> Scalar:
        return 0.5 * G * G * alpha * powers(s, c) + pull * s**c + less

    def U(s: Scalar) -> Array:
        return np.sqrt(2.0 * (G * D * s + more + R(s)))

    ccv: Scalar = sqrt(k) * G * D
    last = t - 1.0
    if last > 0.0:
        falls = smooth_sum(lambda s: -np.expm1(-0.5 * c * np.log1p(1.0 / s)) * s ** (-0.5 * c) * U(s), 1.0, last - 1.0)
        ccv = sqrt(alpha) / record.gamma * (falls + U(last) * last ** (-0.5 * c))
    return capped_bound(R(t), ccv, G * D, 1.0, t)


def curved(prox: object, constants: Constants) -> str:
    """What is wrong with reading constraints as affine, where the problem says that they are not."""
    if constants.get("affine", False) or any(isinstance(node, FunctionHinge) for node in records.nodes(prox)):
        return ""
    return "a constraint is not affine: the bound needs form='function'"


@registered(
    reference="Yi et al., ICML 2021",
    regret="O(T^max(b,1-b)), b = exponent; O(log T) strongly convex",
    violation="O(T^((1-b)/2)), O(log T) strongly convex",
    bound=growing_weights_bound,
    reduces="all",
    time_varying=False,
    paper_constraints="fixed",
    feedback="function (value and gradient where affine)",
    cost="hinge prox",
    needs=("lipschitz", "diameter"),
    variants=(READ_AS_AFFINE,),
)
def yi2021(
    domain: Domain,
    *,
    lipschitz: Setting,
    diameter: Setting | None = None,
    modulus: Setting | None = None,
    constraints: int = 1,
    exponent: Setting | None = None,
    step: Setting | None = None,
    form: Literal["affine", "function"] = "affine",
    **through: Unpack[Through],
) -> GrowingWeights:
    """Proximal steps with growing weights.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    modulus
        Strong convexity of the costs. Default: costs are merely convex. Values: 0 or above. Unit: cost per squared
        unit of action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    exponent
        c of the step sizes t^-c, for convex costs. Default: 1/2. Values: between 0 and 1.
    step
        The first step, for convex costs. Default: sqrt(2) D / G. Values: above 0. Unit: action per unit of
        gradient.
    form
        How a constraint is read from its feedback. Values: affine or function (a convex function as it is).
    """
    G, k = validate.setting("lipschitz", lipschitz), constraints
    D = diameter_of(domain, diameter)
    if modulus is not None and (step is not None or exponent is not None):
        raise InputError("modulus sets the steps to 2 / (modulus t): it goes with neither step nor exponent")
    mu = validate.setting("modulus", 0.0 if modulus is None else modulus, zero=True)
    convex = not np.any(np.asarray(mu) > 0.0)
    if not convex and np.any(np.asarray(mu) == 0.0):
        raise validate.refused("modulus must be above 0 in every run of a sweep, or in none", modulus)
    c = validate.setting("exponent", 0.5 if exponent is None else exponent, zero=True) if convex else 1.0
    if np.any(np.asarray(c) > 1.0):
        raise validate.refused("exponent must be between 0 and 1", exponent)
    alpha = told("step", step, sqrt(2.0) * D / G) if convex else 2.0 / mu
    return GrowingWeights(prox_for(domain, form, k), alpha, c, 1.0 / (sqrt(2.0 * k) * G), mu, np.ones(k))

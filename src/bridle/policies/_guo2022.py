"""Guo, Liu, Wei, Ying 2022: RECOO, a rectified queue and a proximal step on the round's constraint (convex and strongly convex costs).

    Q_t     = max(Q_{t-1}, eta_t)
    x_{t+1} = argmin over X of  <grad f_t(x_t), x> + Q_t gamma_t g_t(x)^+ + alpha_t |x - x_t|^2
    Q_t     = Q_t + beta gamma_t g_t(x_{t+1})^+          (round t's constraint at the new point; what is paid is g_t(x_t)^+)

with eta_t = initial sqrt(t), gamma_t = t^{1/2 + e}, e = `exponent`, and alpha_t = sqrt(t) / (2 step), step = D / (sqrt(2) G), for convex
costs; alpha_t = modulus t / 2 for strongly convex ones (in a session, half the sum of the moduli of the costs there were). beta = 1 / (GD)
makes the queue a pure number, and so does beta = 1 / (modulus D^2) of the strongly convex form, which is this library's; beta = 1 and
step = 1/2 are the paper's own. Of k constraints the largest counts.

With ``form="affine"`` a constraint is read from its value and gradient at x_t: exact for affine ones, a cutting plane otherwise. For one
constraint that is plain arithmetic and compiles; for several it is a quadratic program each round, on the Python engine only, as is
``form="function"``, which takes convex functions as they are.

Guarantee: `recoo_bound`. Update as in the paper with beta = 1; the parameters as commonly stated; the bound is proved for exactly this
    update.
Reference: H. Guo, X. Liu, H. Wei, L. Ying. Online Convex Optimization with Hard Constraints: Towards the Best of Two Worlds and Beyond.
    NeurIPS 2022.

>>> import bridle
>>> trace = bridle.play(bridle.policy("guo2022", bridle.Ball(2), lipschitz=1.0), "halfspaces", horizon=200)
>>> bool(bridle.ccv(trace) <= trace.policy.bound(trace.problem.constants, 200).ccv)
True
"""

from __future__ import annotations

from math import sqrt
from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback
from bridle.ops import Array, Scalar, maximum, pos, scalar, worst
from bridle.policies.common import (
    capped_bound,
    climb,
    curvature_of,
    diameter_of,
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
from bridle.policies.proximal import FunctionHinge, ProximalStep, prox_for
from bridle.policies.registry import Through, registered


class RecooState(NamedTuple):
    """The decision, the queue, and the rounds seen."""

    x: Array
    Q: Scalar
    t: Scalar


class Recoo(NamedTuple):
    """The update above with alpha_t = alpha t^power; with a modulus t counts costs by their moduli."""

    prox: ProximalStep
    alpha: Scalar
    power: Scalar
    initial: Scalar
    exponent: Scalar
    beta: Scalar
    modulus: Scalar | None
    each: Array  # (k,): its length is the number of constraints

    @property
    def domain(self) -> Domain:
        return self.prox.domain

    def init(self, x1: Array) -> RecooState:
        return RecooState(x1, scalar(x1), scalar(x1))

    def decide(self, state: RecooState) -> Array:
        return state.x

    def update(self, state: RecooState, feedback: Feedback) -> RecooState:
        t = rounds_by_modulus(state.t, feedback.modulus, self.modulus)
        alpha, gamma = self.alpha * t**self.power, t ** (0.5 + self.exponent)
        Q = maximum(state.Q, self.initial * t**0.5)
        x = self.prox.step(feedback, state.x - feedback.df / (2.0 * alpha), Q * gamma, alpha)
        g, _ = worst(self.prox.values(feedback, x), feedback.dg)
        return RecooState(x, Q + self.beta * gamma * pos(g), t)


def _recoo(
    domain: Domain,
    alpha: Scalar,
    power: float,
    modulus: Scalar | None,
    constraints: int,
    initial: Setting,
    exponent: Setting,
    beta: Setting,
    form: str,
) -> Recoo:
    inside = prox_for(domain, form, constraints)
    initial, e, beta = validate.setting("initial", initial), validate.setting("exponent", exponent), validate.setting("beta", beta)
    return Recoo(inside, alpha, power, initial, e, beta, modulus, np.ones(constraints))


def recoo_bound(policy: Configuration[Recoo], constants: Constants, t: float) -> Bound:
    """Regret_t <= sum G^2 / (4 alpha_s) + D^2 sum (alpha_s - alpha_{s-1} - modulus / 2)^+ =: R_t, that is sqrt(2) G D sqrt(t) by default.

    Proof. The step minimises a 2 alpha-strongly convex function, so for u with g_s(u) <= 0, z = x_{s+1} and y = x_s f_s(y) - f_s(u) + Q
    gamma g_s(z)^+ <= <grad f_s, y - z> - alpha |z - y|^2 + (alpha - modulus/2) |u - y|^2 - alpha |u - z|^2, and the first two terms are
    at most G^2 / (4 alpha), or G^2 / (2 alpha) - (alpha / 2) |z - y|^2. Sum, drop the queue: regret. With Regret_t >= -GDt and Q >= eta:
    sum eta gamma g_s(x_{s+1})^+ <= E_t = GDt + R_t, so by parts sum g_s(x_{s+1})^+ <= sum (E_s - E_{s-1}) / (eta_s gamma_s) = O(1/e).
    Fixed constraints pay g(x_1)^+ <= GD and then these. Others pay g_s(x_s)^+ <= g_s(x_{s+1})^+ + G |x_{s+1} - x_s|, and sum (alpha_s / 2)
    |x_{s+1} - x_s|^2 is at most E'_t = E_t + sum G^2 / (4 alpha_s): by Cauchy and Schwarz the moves sum to at most sqrt(2 E'_t sum 1 /
    alpha_s). The latter also holds for cutting planes, which lie below g_s and touch it at x_s.

    In a session a round may have no cost, or one of another modulus: alpha_s is half the sum of the moduli, eta_s and gamma_s the powers of
    that sum in units of `modulus`. Sums of G-terms are then over the rounds with a cost, D^2 modulus / 2 is added where moduli were smaller
    than told, and E_t grows by GD + (modulus_s / 2) D^2 with each cost (see `bridle.policies.common`). In a round without a cost and
    without violation x stays where it is.
    """
    record = policy.record
    if why := unmet(constants, modulus=record.modulus):
        return Bound(why=why)
    G, D, alpha, power, q = constants["lipschitz"], constants["diameter"], record.alpha, record.power, 1.0 + record.exponent
    behind = most_behind(constants, t, record.modulus or 0.0)
    if record.modulus is None:
        pull, inverse = D * D * alpha, powers(t, power) / alpha
        R, every = 0.25 * G * G * inverse + pull * t**power, inverse
        after = (G * D * powers(t, q) + 0.25 * G * G / alpha * powers(t, power + q) + pull * climb(t, power, q)) / record.initial
    else:  # a modulus of 2 alpha pays for all that alpha_s grows
        seen = curvature_of(constants, t)
        inverse, pull = over_costs(seen, 1.0) / alpha, D * D * alpha * in_advance(seen)
        R, every = 0.25 * G * G * inverse + pull, inverse + seen.struck / alpha
        curved = D * D * alpha * over_moduli(seen, q) if "curvature" in constants else 0.0
        after = (G * D * over_costs(seen, q) + 0.25 * G * G / alpha * over_costs(seen, 1.0 + q) + pull + curved) / record.initial
    ccv = after + G * np.sqrt(2.0 * (behind + R + 0.25 * G * G * inverse) * every)
    exact = isinstance(record.prox, FunctionHinge) or constants.get("affine", False)
    if not constants.get("time_varying", True) and exact:
        ccv = np.minimum(ccv, G * D + after)
    return capped_bound(R, ccv, G * D, 1.0, t)


@registered(
    reference="Guo, Liu, Wei & Ying, NeurIPS 2022",
    regret="O(sqrt(T))",
    violation="O(T^3/4), O(1) fixed",
    bound=recoo_bound,
    feedback="function (value and gradient where affine)",
    cost="hinge prox",
    needs=("lipschitz", "diameter"),
)
def guo2022(
    domain: Domain,
    *,
    lipschitz: Setting,
    diameter: Setting | None = None,
    constraints: int = 1,
    step: Setting | None = None,
    initial: Setting = 1.0,
    exponent: Setting = 0.5,
    beta: Setting | None = None,
    form: Literal["affine", "function"] = "affine",
    **through: Unpack[Through],
) -> Recoo:
    """RECOO, a rectified queue with proximal steps.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    step
        The step size. Default: D / (sqrt(2) G). Values: above 0. Unit: action per unit of gradient.
    initial
        How fast the queue's lowest level grows: initial sqrt(t). Values: above 0.
    exponent
        e: constraints of round t are scaled by t^(1/2 + e). Values: above 0.
    beta
        The scale of the constraints in the queue. Default: 1 / (G D); the paper has 1. Values: above 0. Unit: 1 /
        constraint.
    form
        How a constraint is read from its feedback. Values: affine or function (a convex function as it is).
    """
    G = validate.setting("lipschitz", lipschitz)
    D = diameter_of(domain, diameter)
    step = told("step", step, D / (sqrt(2.0) * G))
    beta = 1.0 / (G * D) if beta is None else beta
    return _recoo(domain, 0.5 / step, 0.5, None, constraints, initial, exponent, beta, form)


@registered(
    reference="Guo, Liu, Wei & Ying, NeurIPS 2022",
    regret="O(log T)",
    violation="O(sqrt(T log T)), O(1) fixed",
    bound=recoo_bound,
    strongly_convex=True,
    feedback="function (value and gradient where affine)",
    cost="hinge prox",
    needs=("modulus", "diameter"),
)
def guo2022_strong(
    domain: Domain,
    *,
    modulus: Setting,
    diameter: Setting | None = None,
    constraints: int = 1,
    initial: Setting = 1.0,
    exponent: Setting = 0.5,
    beta: Setting | None = None,
    form: Literal["affine", "function"] = "affine",
    **through: Unpack[Through],
) -> Recoo:
    """RECOO for strongly convex costs.

    Parameters
    ----------
    modulus
        Strong convexity of the costs. Values: above 0. Unit: cost per squared unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    initial
        How fast the queue's lowest level grows: initial sqrt(t). Values: above 0.
    exponent
        e: constraints of round t are scaled by t^(1/2 + e). Values: above 0.
    beta
        The scale of the constraints in the queue. Default: 1 / (modulus D^2); the paper has 1. Values: above 0.
        Unit: 1 / constraint.
    form
        How a constraint is read from its feedback. Values: affine or function (a convex function as it is).
    """
    mu = validate.setting("modulus", modulus)
    D = diameter_of(domain, diameter)
    beta = 1.0 / (mu * D * D) if beta is None else beta
    return _recoo(domain, 0.5 * mu, 1.0, mu, constraints, initial, exponent, beta, form)

"""Yu, Neely 2020: a queue that looks one step back, for constraints that stay the same.

With the k queues Q_0 = 0, each round, componentwise:

    Q_t     = max(-gamma g(x_t), Q_{t-1} + gamma g(x_t))
    x_{t+1} = argmin over X of  <grad f_t(x_t), x> + <w_t, g(x)> + alpha |x - x_t|^2,   w_t = gamma (Q_t + gamma g(x_t)) >= 0

which for affine constraints is the projection P_X(x_t - (grad f_t(x_t) + sum_i w_{t,i} grad g_i) / (2 alpha)). gamma = `beta`, alpha = 1
/ (2 step). By default alpha = rho = G sqrt(T) / (sqrt(2) D) and gamma^2 = rho / (k G^2); the paper's own are gamma = T^{1/4}, alpha = (k
G^2 + 1) sqrt(T) / 2.

With `clip` every g is g^+: a proximal step on a sum of hinges, and the hard violation is bounded instead of the soft one. One constraint is
then plain arithmetic and compiles; several are a quadratic program each round and run on the Python engine only.
A constraint that is not affine needs ``form="function"``, which takes the functions as they are, on the Python engine only.

Guarantee: `backward_queue_bound`. Update and parameters as commonly stated; the bound is proved for exactly this update.
Reference: H. Yu, M. J. Neely. A Low Complexity Algorithm with O(sqrt(T)) Regret and O(1) Constraint Violations for Online Convex
    Optimization with Long Term Constraints. JMLR 2020.

>>> import bridle
>>> problem = bridle.problem("fixed", horizon=200, dim=3)
>>> trace = bridle.play(bridle.policy_for("yu2020", problem), problem)
>>> bool(trace.totals.soft.max() <= trace.policy.bound(problem.constants, 200).soft)
True
"""

from __future__ import annotations

from math import sqrt
from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback
from bridle.ops import Array, Scalar, combine, maximum, minimum, vector
from bridle.policies._neely2017 import VirtualQueueState
from bridle.policies._yi2021 import curved
from bridle.policies.common import capped_bound, diameter_of, flat, largest, switch, unmet
from bridle.policies.entry import CLIPPED, READ_AS_AFFINE, Configuration, Setting, Variant
from bridle.policies.proximal import FunctionHinge, ProximalStep, prox_for
from bridle.policies.registry import Through, registered


class Projected(NamedTuple):
    """Constraints read as affine, not clipped: the proximal step of their weighted sum is a projection."""

    domain: Domain

    def sum(self, feedback: Feedback, v: Array, w: Array, alpha: Scalar) -> Array:
        return self.domain.project(v - combine(w, feedback.dg) / (2.0 * alpha))


class Unclipped(NamedTuple):
    """The functions as they are, not clipped: the proximal step of their weighted sum is a program."""

    functions: FunctionHinge

    @property
    def domain(self) -> Domain:
        return self.functions.domain

    def sum(self, feedback: Feedback, v: Array, w: Array, alpha: Scalar) -> Array:
        return self.functions.linear(feedback, v, w, alpha)


class BackwardQueue(NamedTuple):
    """The update above for g, or for g^+ where `clip` is 1; `prox` takes the step on their weighted sum."""

    prox: ProximalStep | Projected | Unclipped
    alpha: Scalar
    gamma: Scalar
    clip: Scalar
    each: Array  # (k,): its length is the number of constraints

    @property
    def domain(self) -> Domain:
        return self.prox.domain

    def init(self, x1: Array) -> VirtualQueueState:
        return VirtualQueueState(x1, vector(x1, self.each))

    def decide(self, state: VirtualQueueState) -> Array:
        return state.x

    def update(self, state: VirtualQueueState, feedback: Feedback) -> VirtualQueueState:
        g = self.gamma * (feedback.g - self.clip * minimum(feedback.g, 0.0))
        Q = maximum(-g, state.Q + g)
        v = state.x - feedback.df / (2.0 * self.alpha)
        return VirtualQueueState(self.prox.sum(feedback, v, self.gamma * (Q + g), self.alpha), Q)

    def price(self, state: VirtualQueueState) -> Array | None:
        """gamma Q: what a unit of each limit weighs in units of cost where limits are met; none with the clip, as in `neely2017`."""
        return None if self.clip else self.gamma * state.Q


def backward_queue_bound(policy: Configuration[BackwardQueue], constants: Constants, t: float) -> Bound:
    """Regret_t <= t G^2 / (2 rho) + alpha D^2, rho = 2 alpha - gamma^2 k G^2 > 0; violation <= |Q_t| / gamma; for every t.

    Proof. Write a_s = gamma g(x_s); Q_s, Q_s + a_s and |Q_s| - |a_s| are >= 0, and |Q_{s+1}|^2 / 2 - |Q_s|^2 / 2 <= Q_s.a_{s+1} +
    |a_{s+1}|^2. The proximal step gives, for u in X, f_s(x_s) - f_s(u) + (Q_s + a_s).(a_{s+1} - gamma g(u)) <= <grad f_s, x_s - x_{s+1}>
    - alpha |x_{s+1} - x_s|^2 plus alpha |u - x_s|^2 - alpha |u - x_{s+1}|^2. Add: |a_{s+1}|^2 - a_s.a_{s+1} is |a_{s+1}|^2 / 2 - |a_s|^2
    / 2 + |a_{s+1} - a_s|^2 / 2, the last at most gamma^2 k G^2 |x_{s+1} - x_s|^2 / 2, and <grad f, .> - (rho / 2) |.|^2 <= G^2 / (2 rho).
    So with L_s = |Q_s|^2 / 2 - |a_s|^2 / 2 + alpha |u - x_s|^2, which is alpha |u - x_1|^2 at first since Q_1 = |a_1|,

        f_s(x_s) - f_s(u) + L_{s+1} <= L_s + G^2 / (2 rho) + gamma (Q_s + a_s).g(u).

    g(u) <= 0, summed: the regret; and with Regret >= -GD(t - 1), |Q_t|^2 <= 2 (GD(t-1) + (t-1) G^2 / (2 rho) + alpha D^2) + (gamma F)^2,
    F >= |g|. sum gamma g(x_s) <= Q_t. Slater, g(u) <= -eps: L grows by at most c = GD + G^2 / (2 rho) a round, and only while sum_i (Q +
    a)_i < theta = c / (eps gamma), when L <= theta^2 / 2 + theta gamma F + alpha D^2: so |Q_t|^2 <= (theta + gamma F)^2 + 2 alpha D^2 + 2
    c, which is O(gamma^2).
    """
    record = policy.record
    if why := unmet(constants, fixed=True) or curved(record.prox, constants):
        return Bound(why=why)
    G, D, k, alpha, gamma = constants["lipschitz"], constants["diameter"], len(record.each), record.alpha, record.gamma
    rho = 2.0 * alpha - gamma * gamma * k * G * G
    if np.any(rho <= 0.0):
        return Bound(why=f"beta^2 k G^2 must be below 1 / step; 1 / step - beta^2 k G^2 is {float(np.min(rho)):.3g}")
    regret, most = t * G * G / (2.0 * rho) + alpha * D * D, largest(constants, record.clip)
    if most is None:
        return Bound(flat(np.minimum(regret, G * D * t)))
    F = sqrt(k) * most
    Q = np.sqrt(2.0 * ((t - 1.0) * (G * D + G * G / (2.0 * rho)) + alpha * D * D) + (gamma * F) ** 2)
    slater = constants.get("slater")
    if not record.clip and slater:
        c = G * D + G * G / (2.0 * rho)
        theta = c / (slater * gamma)
        Q = np.minimum(Q, np.sqrt((theta + gamma * F) ** 2 + 2.0 * alpha * D * D + 2.0 * c))
    return capped_bound(regret, np.minimum(Q / gamma, most * t), G * D, record.clip, t)


@registered(
    reference="Yu & Neely, JMLR 2020",
    regret="O(sqrt(T))",
    violation="soft O(T^1/4), O(1) with Slater",
    bound=backward_queue_bound,
    reduces="all",
    metric="soft",
    time_varying=False,
    paper_constraints="fixed",
    feedback="value and gradient (affine), else function",
    cost="1 projection; clipped: hinge prox",
    slater="sharper",
    needs=("horizon", "lipschitz", "diameter"),
    variants=(Variant("clip", True, {**CLIPPED.changes, "cost": "hinge prox"}), READ_AS_AFFINE),
)
def yu2020(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    diameter: Setting | None = None,
    constraints: int = 1,
    beta: Setting | None = None,
    step: Setting | None = None,
    clip: bool = False,
    form: Literal["affine", "function"] = "affine",
    **through: Unpack[Through],
) -> BackwardQueue:
    """A queue that looks one step back.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    beta
        The scale of the constraints in the queue. Default: that of the theorem: (G sqrt(T) / (sqrt(2) D k))^(1/2) /
        G. Values: above 0. Unit: 1 / constraint.
    step
        The step size. Default: D / (sqrt(2) G sqrt(T)). Values: above 0. Unit: action per unit of gradient.
    clip
        Feed the positive part of the constraints.
    form
        How a constraint is read from its feedback. Values: affine or function (a convex function as it is).
    """
    T, G, k = validate.setting("horizon", horizon), validate.setting("lipschitz", lipschitz), constraints
    D, positive, hinges = diameter_of(domain, diameter), switch("clip", clip), prox_for(domain, form, k)
    inside: ProximalStep | Projected | Unclipped = hinges
    if not positive:
        inside = Unclipped(hinges) if isinstance(hinges, FunctionHinge) else Projected(domain)
    rho = G * T**0.5 / (sqrt(2.0) * D)
    alpha = rho if step is None else 0.5 / validate.setting("step", step)
    gamma = validate.setting("beta", (rho / k) ** 0.5 / G if beta is None else beta)
    return BackwardQueue(inside, alpha, gamma, positive, np.ones(k))

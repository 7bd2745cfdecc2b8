"""Mahdavi, Jin, Yang 2012: gradient steps on a regularised Lagrangian, and mirror-prox for fixed affine constraints.

``form="gradient"``, with one multiplier for each constraint, everything at (x_t, lam_t):

    x_{t+1}   = P_X(x_t - eta (grad f_t(x_t) + sum_i lam_i grad g_i(x_t)))
    lam_i    <- (lam_i + mu (g_i(x_t) - theta lam_i))^+                    theta = delta eta,  delta = 2 (k+1) G^2

``form="mirror-prox"``, for g(x) = A x - b that stays the same; the decision is the prediction x_t, not z_t:

    lam_t     = (m_t + mu (A z_t - b))^+                                   z_1 = x_1,  m_1 = 0
    z_{t+1}   = P_X(z_t - eta (grad f_t(x_t) + A^T lam_t)),  m_{t+1} = (m_t + mu (A x_t - b))^+
    x_{t+1}   = P_X(z_{t+1} - eta A^T m_{t+1})

The dual step is mu = eta / D^2: the paper has mu = eta, for lengths measured so that D = 1. By default eta is the paper's for the problem
in units where G = D = 1: 1 / sqrt((k + 1 + 2 k F^2) T), or T^{-1/3} for mirror-prox (capped where the proof needs it; its delta is 0). The
paper's own constants are ``step`` (eta) together with ``diameter=1``. Any mu may be had that way: mirror-prox with step = D / (G sqrt(2T))
and diameter = D sqrt(k/T) has regret sqrt(2T) G D and violation O(T^{1/4}). Update and parameters as commonly stated; the bound is proved
for exactly this update. It does not need the constraints to stay the same, except for mirror-prox.

Guarantee: `gradient_bound`, `mirror_prox_bound`: regret O(sqrt(T)) and violation O(T^{3/4}); both O(T^{2/3}) for mirror-prox.
Reference: M. Mahdavi, R. Jin, T. Yang. Trading Regret for Efficiency: Online Convex Optimization with Long Term Constraints. JMLR 2012.

>>> import bridle
>>> trace = bridle.play(bridle.policy("mahdavi2012", bridle.Ball(2), horizon=500, lipschitz=1.0, bound=2.2), "halfspaces")
>>> bridle.soft_violation(trace) <= trace.policy.bound(trace.problem.constants, 500).soft
True
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback, InputError
from bridle.ops import Array, Scalar, combine, pos, vector
from bridle.policies.common import capped_bound, clipped, diameter_of, largest, switch, unmet
from bridle.policies.entry import CLIPPED, Configuration, Setting, Variant
from bridle.policies.registry import Through, registered


class PrimalDualState(NamedTuple):
    """The decision and the multiplier of every constraint."""

    x: Array
    lam: Array


class PrimalDual(NamedTuple):
    """The gradient form: a descent step in x and a regularised ascent step in the multipliers, at the same time."""

    domain: Domain
    step: Scalar
    dual: Scalar
    theta: Scalar
    clip: Scalar
    each: Array  # (k,): its length is the number of constraints

    def init(self, x1: Array) -> PrimalDualState:
        return PrimalDualState(x1, vector(x1, self.each))

    def decide(self, state: PrimalDualState) -> Array:
        return state.x

    def update(self, state: PrimalDualState, feedback: Feedback) -> PrimalDualState:
        g, dg = clipped(feedback, self.clip)
        grad = feedback.df + combine(state.lam, dg)
        lam = pos(state.lam + self.dual * (g - self.theta * state.lam))
        return PrimalDualState(self.domain.project(state.x - self.step * grad), lam)


class MirrorProxState(NamedTuple):
    """The decision, and the pair that the extragradient steps start from."""

    x: Array
    z: Array
    m: Array


class MirrorProx(NamedTuple):
    """The mirror-prox form. A is what the round reveals as gradients; A z - b follows from the values, as g is affine."""

    domain: Domain
    step: Scalar
    dual: Scalar
    each: Array  # (k,)

    def init(self, x1: Array) -> MirrorProxState:
        return MirrorProxState(x1, x1, vector(x1, self.each))

    def decide(self, state: MirrorProxState) -> Array:
        return state.x

    def update(self, state: MirrorProxState, feedback: Feedback) -> MirrorProxState:
        g, A = feedback.g, feedback.dg
        at_z = g + (A @ (state.z - feedback.x)[..., None])[..., 0]
        lam = pos(state.m + self.dual * at_z)
        z = self.domain.project(state.z - self.step * (feedback.df + combine(lam, A)))
        m = pos(state.m + self.dual * g)
        return MirrorProxState(self.domain.project(z - self.step * combine(m, A)), z, m)


def gradient_bound(policy: Configuration[PrimalDual | MirrorProx], constants: Constants, t: float) -> Bound:
    """Regret_t <= C_t and violation <= sqrt(2 (1/mu + theta t)(G D t + C_t)), C_t = D^2/(2 eta) + (k+1) eta G^2 t/2 + k mu F^2 t.

    For u that satisfies every constraint and any lam >= 0, the descent inequalities in x and in lam, with
    |grad_x|^2 <= (k+1) G^2 (1 + |lam_t|^2), |grad_lam|^2 <= 2kF^2 + 2 theta^2 |lam_t|^2 and
    theta <lam_t - lam, lam_t> >= theta (|lam_t|^2 - |lam|^2)/2, add up to
    Regret_t(u) + <lam, sum g> <= C_t + |lam|^2 (1/mu + theta t)/2 + sum |lam_s|^2 ((k+1) eta G^2/2 + mu theta^2 - theta/2).
    The last sum is not positive if (k+1) eta G^2 + 2 mu theta^2 <= theta. Then lam = 0 for the regret; the best lam on one constraint, and
    Regret_t >= -G D t, for the violation.
    """
    record, why = policy.record, unmet(constants)
    if why:
        return Bound(why=why)
    if isinstance(record, MirrorProx):
        return mirror_prox_bound(record, constants, t)
    F = largest(constants, record.clip)
    if F is None:
        return Bound(why="the largest |g| is not known")
    G, D, k, eta, mu, theta = constants["lipschitz"], constants["diameter"], len(record.each), record.step, record.dual, record.theta
    if np.any((k + 1.0) * eta * G**2 + 2.0 * mu * theta**2 > theta * (1.0 + 1e-12)):
        return Bound(why="the step is too large: (k+1) eta G^2 + 2 mu theta^2 must not be above theta")
    C = D**2 / (2.0 * eta) + (k + 1.0) * eta * G**2 * t / 2.0 + k * mu * F**2 * t
    return capped_bound(C, np.sqrt(2.0 * (1.0 / mu + theta * t) * (G * D * t + C)), G * D, record.clip, t)


def mirror_prox_bound(record: MirrorProx, constants: Constants, t: float) -> Bound:
    """Regret_t <= C_t and violation <= sqrt(2 (G D t + C_t)/mu), C_t = D^2/(2 eta) + eta G^2 t, if eta mu |A|^2 <= 1/2 (|A|^2 <= k G^2).

    The two extragradient inequalities add up to  <grad f_t, x_t - u> - <lam_t, Au - b> + <lam, Ax_t - b> <= (telescoping terms) + R_t,
    R_t = <grad f_t + A^T(lam_t - m_t), x_t - z_{t+1}> - <A(x_t - z_t), lam_t - m_{t+1}> - (|x_t - z_t|^2 + |x_t - z_{t+1}|^2)/(2 eta)
    - (|lam_t - m_t|^2 + |lam_t - m_{t+1}|^2)/(2 mu) <= eta G^2: half of |x_t - z_{t+1}|^2 pays for grad f_t, the rest for A. Then as above.
    The constraints must be affine, which no constant but ``affine`` = False denies.
    """
    why = unmet(constants, fixed=True)
    if why or not constants.get("affine", False):
        return Bound(why=why or "the constraints are not affine")
    G, D, eta, mu = constants["lipschitz"], constants["diameter"], record.step, record.dual
    if np.any(2.0 * eta * mu * len(record.each) * G**2 > 1.0 + 1e-12):
        return Bound(why="the step is too large: 2 eta mu k G^2 must not be above 1")
    C = D**2 / (2.0 * eta) + eta * G**2 * t
    return capped_bound(C, np.sqrt(2.0 / mu * (G * D * t + C)), G * D, 0.0, t)


@registered(
    reference="Mahdavi, Jin & Yang, JMLR 2012",
    regret="O(sqrt(T))",
    violation="soft O(T^3/4)",
    bound=gradient_bound,
    reduces="all",
    metric="soft",
    paper_constraints="fixed",
    cost="1 projection (2 for mirror-prox)",
    needs=("horizon", "lipschitz", "diameter", "bound"),
    variants=(CLIPPED, Variant("form", "mirror-prox", {"time_varying": False, "affine": True, "cost": "2 projections"})),
)
def mahdavi2012(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    bound: Setting,
    diameter: Setting | None = None,
    constraints: int = 1,
    form: Literal["gradient", "mirror-prox"] = "gradient",
    clip: bool = False,
    step: Setting | None = None,
    **through: Unpack[Through],
) -> PrimalDual | MirrorProx:
    """Regularised Lagrangian; mirror-prox for fixed affine constraints.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    bound
        F, the largest |g| on the domain. Values: above 0. Unit: constraint.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    form
        Which of the paper's two algorithms. Values: gradient or mirror-prox.
    clip
        Feed the positive part of the constraints, with form='gradient'.
    step
        The step size. Default: the step of the theorem, from lipschitz and the diameter. Values: above 0. Unit:
        action per unit of gradient.
    """
    T, G, F = validate.setting("horizon", horizon), validate.setting("lipschitz", lipschitz), validate.setting("bound", bound)
    D = diameter_of(domain, diameter)
    k, positive = constraints, switch("clip", clip)
    validate.one_of("form", form, ("gradient", "mirror-prox"))
    if form == "mirror-prox":
        if positive:
            raise InputError("clip is for form='gradient' only: the positive part of an affine constraint is not affine")
        eta = D / G * np.minimum(T ** (-1.0 / 3.0), (2.0 * k) ** -0.5) if step is None else step
        eta = validate.setting("step", eta)
        return MirrorProx(domain, eta, eta / D**2, np.ones(k))
    size = np.minimum(F / (G * D), 1.0) if positive else F / (G * D)
    eta = D / G * np.minimum(((k + 1.0 + 2.0 * k * size**2) * T) ** -0.5, (8.0 * (k + 1.0)) ** -0.5) if step is None else step
    eta = validate.setting("step", eta)
    return PrimalDual(domain, eta, eta / D**2, 2.0 * (k + 1.0) * G**2 * eta, positive, np.ones(k))

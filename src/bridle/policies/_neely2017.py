"""Neely, Yu 2017: virtual queues, fed with linearised constraints at the new decision.

    x_{t+1} = P_X(x_t - (1/(2 alpha)) (V grad f_t(x_t) + sum_i Q_i grad g_{t,i}(x_t)))          with the old Q
    Q_i    <- (Q_i + g_{t,i}(x_t) + <grad g_{t,i}(x_t), x_{t+1} - x_t>)^+

By default alpha = k C^2 T / (2 D^2) and V = sqrt(2) k C^2 sqrt(T) / (G D), C = F + G D the largest change of a queue (G D with the clip):
then units do not matter and regret is at most sqrt(2) G D sqrt(T). The paper's V = sqrt(T) and alpha = T are ``V`` and
``step`` = 1/(2 alpha).

The same policy serves stochastic constraints (Yu, Neely, Wei 2017: g_t independent and identically distributed, satisfied by an action on
average only). Q is then independent of g_t, so that E <Q, g_t(u)> <= 0, and the regret bound and the violation bound without Slater's
condition hold in expectation; O(sqrt(T)) violation under Slater's condition on average is their theorem, not restated here.

Guarantee: `neely_bound`: regret O(sqrt(T)); violation O(sqrt(T)/slater) where an action satisfies every constraint with room to spare
    (the problem's ``slater``), O(T^{3/4}) otherwise, and with the clip, which leaves no room to spare.
Reference: M. J. Neely, H. Yu. Online Convex Optimization with Time-Varying Constraints. arXiv:1702.04783, 2017. H. Yu, M. J. Neely, X. Wei.
    Online Convex Optimization with Stochastic Constraints. NeurIPS 2017. The bounds are proved here for exactly this update.

>>> import bridle
>>> trace = bridle.play(bridle.policy("neely2017", bridle.Ball(2), horizon=500, lipschitz=1.0, bound=2.2), "halfspaces")
>>> bridle.soft_violation(trace) <= trace.policy.bound(trace.problem.constants, 500).soft
True
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback
from bridle.ops import Array, Scalar, combine, pos, vector
from bridle.policies.common import capped_bound, clipped, diameter_of, largest, switch, unmet
from bridle.policies.entry import CLIPPED, Configuration, Setting
from bridle.policies.registry import Through, registered


class VirtualQueueState(NamedTuple):
    """The decision and the queue of every constraint."""

    x: Array
    Q: Array


class VirtualQueues(NamedTuple):
    """Drift plus penalty: a gradient step weighed by the old queues, then the queues at the new decision. `step` is 1/(2 alpha)."""

    domain: Domain
    V: Scalar
    step: Scalar
    clip: Scalar
    each: Array  # (k,): its length is the number of constraints

    def init(self, x1: Array) -> VirtualQueueState:
        return VirtualQueueState(x1, vector(x1, self.each))

    def decide(self, state: VirtualQueueState) -> Array:
        return state.x

    def update(self, state: VirtualQueueState, feedback: Feedback) -> VirtualQueueState:
        g, dg = clipped(feedback, self.clip)
        x = self.domain.project(state.x - self.step * (self.V * feedback.df + combine(state.Q, dg)))
        return VirtualQueueState(x, pos(state.Q + g + (dg @ (x - feedback.x)[..., None])[..., 0]))

    def price(self, state: VirtualQueueState) -> Array | None:
        """Q/V: what a unit of each limit weighs in units of cost; none with the clip, where it weighs in violated rounds only."""
        return None if self.clip else state.Q / self.V


def units(
    domain: Domain, lipschitz: Setting, bound: Setting, diameter: Setting | None, k: int, clip: float
) -> tuple[Scalar, Scalar, Scalar]:
    """What the default parameters are made of: G D, k C^2 and D."""
    G, F = validate.setting("lipschitz", lipschitz), validate.setting("bound", bound)
    D = diameter_of(domain, diameter)
    return G * D, k * (G * D + (0.0 if clip else F)) ** 2, D


def neely_bound(policy: Configuration[VirtualQueues], constants: Constants, t: float) -> Bound:
    """`queue_bounds` for an action that satisfies every constraint."""
    record, why = policy.record, unmet(constants)
    F = None if why else largest(constants, record.clip)
    if F is None:
        return Bound(why=why or "the largest |g| is not known")
    slater = None if record.clip else constants.get("slater")
    regret, violation = queue_bounds(record, constants, F, t, 0.0, slater)
    return capped_bound(regret, violation, constants["lipschitz"] * constants["diameter"], record.clip, t)


def queue_bounds(record: VirtualQueues, constants: Constants, F: float, t: float, P: float, slater: float | None) -> tuple[Scalar, Scalar]:
    """Regret and violation after t rounds, against an action u whose violation is at most P over every interval.

    C = F + G D, or G D with the clip. A queue changes by b_i in [-C, F] before the positive part (the linearisation is below g). Drift,
    and the prox inequality of the projection, give for every u, with E = k C^2/2 + V^2 G^2/(4 alpha),
        V <grad f_t, x_t - u> + (|Q_{t+1}|^2 - |Q_t|^2)/2 <= E + alpha (|u - x_t|^2 - |u - x_{t+1}|^2) + <Q_t, g_t(u)>.
    The sum of <Q_s, g_s(u)> is at most k P F t: the rounds with Q_i above a level are a union of intervals, each costs at most P, and
    their number integrated over all levels is the total climb of Q_i, at most F t. So with W = alpha D^2 + (E + k P F) t:
    Regret_t <= W/V, and |Q| <= sqrt(2 (V G D t + W)), or `slater_queue` if g(u) <= -slater. Last, g_{t,i}(x_t) <= b_i + G |x_{t+1} - x_t|,
    so that  violation <= |Q| + (G t/(2 alpha)) (V G + G sqrt(k) |Q|).
    """
    G, D, k, V, alpha = constants["lipschitz"], constants["diameter"], len(record.each), record.V, 0.5 / record.step
    C = G * D + (0.0 if record.clip else F)  # the positive part is between 0 and G D
    each = 0.5 * k * C**2 + V**2 * G**2 / (4.0 * alpha)
    W = alpha * D**2 + (each + k * P * F) * t
    Q = np.sqrt(2.0 * (V * G * D * t + W))
    if slater:
        Q = np.minimum(Q, slater_queue(alpha * D**2, V * G * D + each, np.sqrt(k) * C, np.sqrt(k) * F, slater))
    return W / V, Q + G**2 * t / (2.0 * alpha) * (V + np.sqrt(k) * Q)


def slater_queue(far: Scalar, gain: Scalar, fall: Scalar, climb: Scalar, slater: float) -> Scalar:
    """The longest that Q gets where g(u) <= -slater: far = alpha D^2, gain = V G D + E, fall = sqrt(k) C, climb = sqrt(k) F.

    Over any n rounds that begin with |Q| at least B = far/(slater n) + gain/slater + fall (n-1)/2 the length of Q does not grow, as it
    falls by no more than `fall` a round; it climbs by no more than `climb`, so that |Q| <= B + n climb always; n is free. Where V and
    alpha grow, the last ones stand for all before: V G D + E is largest then, and (Abel) so is what alpha adds to the sum over n rounds.
    """
    best, Q = np.sqrt(far / (slater * (0.5 * fall + climb))), np.asarray(np.inf)
    for n in (np.maximum(np.floor(best), 1.0), np.floor(best) + 1.0):
        Q = np.minimum(Q, far / (slater * n) + gain / slater + (0.5 * fall + climb) * n - 0.5 * fall)
    return Q


@registered(
    reference="Neely & Yu, arXiv 2017; Yu, Neely & Wei, NeurIPS 2017",
    regret="O(sqrt(T))",
    violation="soft O(sqrt(T)) with Slater, O(T^3/4)",
    bound=neely_bound,
    reduces="all",
    metric="soft",
    slater="sharper",
    needs=("horizon", "lipschitz", "diameter", "bound"),
    variants=(CLIPPED,),
)
def neely2017(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    bound: Setting,
    diameter: Setting | None = None,
    constraints: int = 1,
    clip: bool = False,
    V: Setting | None = None,
    step: Setting | None = None,
    **through: Unpack[Through],
) -> VirtualQueues:
    """Virtual queues; adversarial or stochastic constraints.

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
    clip
        Feed the positive part of the constraints.
    V
        The weight of the cost against the queues. Default: the value of the theorem. Values: above 0. Unit: squared
        constraint per cost.
    step
        The step size. Default: D^2 over the horizon and the squared size of g. Values: above 0. Unit: action per
        unit of weighted gradient.
    """
    T, k, positive = validate.setting("horizon", horizon), constraints, switch("clip", clip)
    GD, size, D = units(domain, lipschitz, bound, diameter, k, positive)
    V = validate.setting("V", 2.0**0.5 * size * T**0.5 / GD if V is None else V)
    return VirtualQueues(domain, V, validate.setting("step", D**2 / (size * T) if step is None else step), positive, np.ones(k))

"""Limits held on average, and noisy constraint values: with nothing told, or, told constants, drift plus penalty.

Told nothing, `soft` is the policy of `bridle.policies.soft_free`. Told `lipschitz` and `bound` it is the one of this file, with or without
a horizon: its worst-case bound on regret is sharper, O(sqrt(T)) always, but it answers only once its worst case could have come.

For budgets ("spend at most so much a round, on average") and for constraint values that are measured with noise, where no policy can keep
hard violation small: a policy that must answer every positive reading answers the noise. A queue adds the readings up, signs and all, and
the noise cancels. The update is the recursion of `neely2017`, its parameters those of a horizon T, or, without one, of a growing t:

    x_{t+1} = P_X(x_t - (1/(2 alpha_t)) (V_t grad f_t(x_t) + sum_i Q_i grad g_{t,i}(x_t)))
    Q_i    <- min((Q_i + g_{t,i}(x_t) + <grad g_{t,i}(x_t), x_{t+1} - x_t>)^+, cap V_t)
    V_t = sqrt(2) v k C^2 sqrt(tau) / (G D),    alpha_t = k C^2 tau / (2 D^2),    tau = T, or t without a horizon;   C = F + sigma + G D

What `neely2017` (v = 1) lacks: it must be told T; it knows no noise sigma (`noise`), no weight v (`weight`), no cap. The regret bound is
best near v = 1. But a limit with price p is overspent by about p V in all before its queue has grown to that, so that v = 1/4 is the
default: limits four times closer, for a regret bound about twice as large. The price is Q/V, in units of cost per unit of constraint.

Noise. What is revealed may be g_t(x_t) + xi_t and grad g_t + zeta_t, whose errors have mean 0 whatever came before (and sigma >= the
standard deviation of xi; `lipschitz` holds for the gradients as revealed). Or constraints may be drawn anew each round, and an action is
feasible if E g_t(u) <= 0. Then the bounds are on expectations, against an action fixed in advance.

Guarantee: `soft_bound`: regret G D sqrt(T/2) (1/v + v) with a horizon, G D sqrt(t) (1.07/v + 1.42 v) without; soft violation, and that of
    any interval of rounds, O(sqrt(v) T^{3/4} + sigma sqrt(T)); O(sqrt(T)/slater) without noise where an action has room to spare. With a
    `cap` the regret bound stays; limits are not held any more once the cap is reached, which the session warns of.
Reference: bridle (this file), on the recursion of Neely & Yu 2017; the proof is below.

Proof. For one round, with b = g + <grad g, x_{t+1} - x_t> as it was revealed: x_{t+1} minimises <V grad f + sum Q_i grad g_i, y> +
alpha |y - x_t|^2 over X, which is 2 alpha-strongly convex, and cutting at 0 and at the cap moves Q + b no farther from 0. So for u in X

    V <grad f, x_t - u> + (|Q_{t+1}|^2 - |Q_t|^2)/2 <= alpha (|u - x_t|^2 - |u - x_{t+1}|^2) + V^2 |grad f|^2/(4 alpha) + |b|^2/2
                                                       + <Q_t, g(x_t) + <grad g, u - x_t>>,

and the last term is at most <Q_t, g_t(u)> <= 0; with noise that holds on average, because Q_t was settled before the round. Divide by V_t
and add up. 1/V_t does not grow and alpha_t/V_t does not fall, so that (Abel) the pathwise line, tested on every trajectory, is

    Regret_t(u) + |Q_{t+1}|^2/(2 V_t) <= D^2 alpha_t/V_t + sum_s V_s |grad f_s|^2/(4 alpha_s) + sum_s |b_s|^2/(2 V_s).

E b_i^2 <= C^2 (Minkowski), and the sum of s^{-1/2} is at most 2 sqrt(t): the regret. As Regret_t >= -G D t, E |Q_{t+1}|^2 <= 2 V_t (G D t
+ the right side). Last, g_s(x_s) <= b_s + G |x_{s+1} - x_s| - xi_s, the move is at most (V_s G + sqrt(k) G |Q_s|)/(2 alpha_s), the b_s of
an interval add up to at most the queue at its end, and E |sum xi| <= sigma sqrt(k t). (With noise this is about an interval fixed in
advance, or all rounds: not about the worst one in hindsight.)

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> known = {name: problem.constants[name] for name in ("lipschitz", "bound")}
>>> trace = bridle.play(bridle.policy("soft", problem.domain, **known), problem)
>>> bridle.soft_violation(trace) <= trace.policy.bound(problem.constants, 500).soft
True
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback, InputError
from bridle.ops import Array, Scalar, minimum, norm, pos, scalar, sqrt
from bridle.policies._neely2017 import VirtualQueues, VirtualQueueState, queue_bounds, slater_queue, units
from bridle.policies.common import capped_bound, diameter_of, flat, largest, powers, told, unmet
from bridle.policies.entry import GIVEN, Configuration, Setting, Variant
from bridle.policies.registry import Through, registered
from bridle.policies.soft_free import DAMPING, SMALLEST_PART, WEIGHT, NaturalPrices, capped_alarm

EXPECTED = "in expectation over errors of mean 0, against an action fixed in advance"


class SoftState(NamedTuple):
    """The decision and the queues, how many rounds there were, and in how many of them the cap held a queue back."""

    queues: VirtualQueueState
    rounds: Scalar
    capped: Scalar


class Soft(NamedTuple):
    """The recursion with V sqrt(tau) and step/tau: tau = 1 throughout where `growth` is 0, and 1, 2, 3, ... where it is 1."""

    queues: VirtualQueues
    growth: Scalar
    cap: Scalar  # the largest price

    @property
    def domain(self) -> Domain:
        return self.queues.domain

    @property
    def each(self) -> Array:
        return self.queues.each

    def init(self, x1: Array) -> SoftState:
        return SoftState(self.queues.init(x1), 0.0, scalar(x1))  # all runs count their rounds together

    def decide(self, state: SoftState) -> Array:
        return self.queues.decide(state.queues)

    def update(self, state: SoftState, feedback: Feedback) -> SoftState:
        now = self.at(state)
        after, most = now.update(state.queues, feedback), self.cap * now.V
        held = norm(pos(after.Q - most)) > 0.0
        return SoftState(VirtualQueueState(after.x, minimum(after.Q, most)), state.rounds + 1.0, state.capped + 1.0 * held)  # type: ignore[arg-type]

    def move(self, state: SoftState, x: Array) -> SoftState:
        """The state with x in place of its next decision: no farther from u, the proof's line holds for the steps from it."""
        return state._replace(queues=state.queues._replace(x=x))

    def at(self, state: SoftState) -> VirtualQueues:
        """The recursion of the coming round."""
        first, tau = self.queues, 1.0 + self.growth * state.rounds
        return VirtualQueues(first.domain, first.V * sqrt(tau), first.step / tau, first.clip, first.each)

    def price(self, state: SoftState) -> Array | None:
        """Q/V, as of the coming round."""
        return self.at(state).price(state.queues)

    def alarm(self, state: SoftState) -> Alarm | None:
        """That the cap held a queue back; None while it has not."""
        # `soft_bound` bounds no violation where there is a cap at all.
        return capped_alarm(state.capped, "the bound on violation is suspended (that on regret is not)")


TOLD_WEIGHT = 0.25
"""The weight of the form with constants, where none is given."""


def soft_bound(policy: Configuration[NaturalPrices | Soft], constants: Constants, t: float) -> Bound:
    """The theorem of either form; with noise it is about expectations."""
    sigma = policy.parameters.get("noise", 0.0)
    if isinstance(policy.record, NaturalPrices):
        return free_bound(constants, t, EXPECTED if np.any(np.asarray(sigma) > 0.0) else "")
    return told_bound(policy.record, sigma, constants, t)


def free_bound(constants: Constants, t: float, expected: str) -> Bound:
    """What was observed of a run of t rounds, which is all that this theorem is about; the violation needs no assumption."""
    regret, violation = constants.get("observed_regret"), constants.get("observed_violation")
    if regret is None or violation is None or np.any(np.asarray(constants.get("observed_rounds")) != t):
        return Bound(why="its theorem is about what a run shows: it is stated at the end of a game, and by a session at any time")
    why = "" if constants.get("convex", True) else "a cost or a constraint is not convex, so no regret is bounded"
    if not why and constants.get("feasible") is None:
        why = "no action is known to satisfy every constraint, so no regret is bounded"
    G, D = constants.get("lipschitz"), constants.get("diameter")
    most = np.inf if G is None or D is None else G * D * t  # what any action could lose
    words = "; ".join(text for text in (why, expected) if text)
    return Bound(None if why else flat(np.minimum(regret, most)), soft=flat(pos(violation)), why=words)


def told_bound(record: Soft, sigma: float, constants: Constants, t: float) -> Bound:
    """The module's theorem with the record's own V and step; with noise it is about expectations."""
    why = unmet(constants)
    F = None if why else largest(constants, 0.0)
    if F is None:
        return Bound(why=why or "the largest |g| is not known")
    slater = constants.get("slater") if sigma == 0.0 else None
    regret, violation = (
        growing_bounds(record.queues, constants, F + sigma, t, slater)
        if record.growth
        else queue_bounds(record.queues, constants, F + sigma, t, 0.0, slater)
    )
    spread = sigma * np.sqrt(len(record.each) * t)
    bound = capped_bound(regret, violation + spread, constants["lipschitz"] * constants["diameter"], 0.0, t)
    bound, words = (bound._replace(interval=bound.soft), []) if sigma == 0.0 else (bound, [EXPECTED])
    if record.cap < np.inf:
        bound = bound._replace(soft=None, interval=None)
        words.append("a capped price need not hold its limit, so no violation is bounded")
    return bound._replace(why="; ".join(words))


def growing_bounds(first: VirtualQueues, constants: Constants, F: float, t: float, slater: float | None) -> tuple[Scalar, Scalar]:
    """Regret and violation after t rounds with V_s = V sqrt(s) and alpha_s = alpha s: regret <= r sqrt(t), and

    |Q_{s+1}| <= sqrt(2 V (G D s^{3/2} + r s)) <= sqrt(2 V G D) s^{3/4} + sqrt(2 V r s). What the moves add is the sum of G^2 (V sqrt(s) +
    sqrt(k) |Q_s|)/(2 alpha s), where |Q_s| <= the bound of |Q_{s+1}|. With room to spare there is `slater_queue`, which with its n
    rounded up is at most  2 sqrt(alpha s D^2 h/slater) + h + (V sqrt(s) G D + E)/slater,  h = sqrt(k) (C/2 + F).
    """
    G, D, k, V, alpha = constants["lipschitz"], constants["diameter"], len(first.each), first.V, 0.5 / first.step
    C, halves = F + G * D, powers(t, 0.5)
    r = D**2 * alpha / V + V * G**2 / (2.0 * alpha) + k * C**2 / V
    Q = np.sqrt(2.0 * V * (G * D * t**1.5 + r * t))
    queues = np.sqrt(2.0 * V * G * D) * powers(t, 0.25) + np.sqrt(2.0 * V * r) * halves  # the sum of |Q_s| / s
    if slater:
        far, each, h = alpha * D**2, 0.5 * k * C**2 + V**2 * G**2 / (4.0 * alpha), np.sqrt(k) * (0.5 * C + F)
        Q = np.minimum(Q, slater_queue(far * t, V * np.sqrt(t) * G * D + each, np.sqrt(k) * C, np.sqrt(k) * F, slater))
        with_room = (2.0 * np.sqrt(far * h / slater) + V * G * D / slater) * halves + (h + each / slater) * powers(t, 1.0)
        queues = np.minimum(queues, with_room)
    return r * np.sqrt(t), Q + G**2 / (2.0 * alpha) * (V * halves + np.sqrt(k) * queues)


TOLD = {
    "regret": "O(sqrt(T))",
    "violation": "soft O(T^3/4 + noise sqrt(T)), O(sqrt(T)) with Slater",
    "needs": ("lipschitz", "diameter", "bound"),
}


@registered(
    reference="The bridle developers, This library 2026; Neely & Yu, arXiv 2017",
    regret="O(T^3/4), O(sqrt(T) log T) with Slater",
    violation="soft O(T^3/4), O(sqrt(T log T)) with Slater",
    bound=soft_bound,
    reduces="all",
    metric="soft",
    slater="sharper",
    needs=("diameter",),
    variants=tuple(Variant(name, GIVEN, TOLD) for name in ("lipschitz", "bound", "horizon")),
)
def soft(
    domain: Domain,
    *,
    lipschitz: Setting | None = None,
    bound: Setting | None = None,
    horizon: Setting | None = None,
    noise: Setting = 0.0,
    weight: Setting | None = None,
    cap: Setting | None = None,
    diameter: Setting | None = None,
    constraints: int | None = None,
    damping: Setting | None = None,
    **through: Unpack[Through],
) -> NaturalPrices | Soft:
    """Limits held on average; noisy constraint values.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Default: the policy learns the scale;
        given, bound must be given too. Values: above 0. Unit: cost and constraint per unit of action.
    bound
        F, the largest |g| on the domain. Default: the policy learns the scale; given, lipschitz must be given too.
        Values: above 0. Unit: constraint.
    horizon
        T, how many rounds will be played; goes with lipschitz and bound. Default: the policy plays on without end.
        Values: a whole number, 1 or above. Unit: rounds.
    noise
        sigma, the largest standard deviation of the error in constraint values. Values: 0 or above. Unit:
        constraint.
    weight
        v: how much costs weigh against limits; below 1 keeps limits closer and costs more. Default: 1, or 1/4 where
        lipschitz and bound are given. Values: above 0.
    cap
        The largest price of a unit of constraint; guarantees on limits end where it is reached. Default: prices
        have no cap. Values: above 0. Unit: cost per unit of constraint.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    constraints
        k, how many constraints a round reveals. Default: the first round says how many; 1 where lipschitz is given.
        Values: a whole number, 1 or above. Unit: constraints.
    damping
        kappa: how far ahead a price looks, without lipschitz; at 0 decisions circle the limit. Default: 1/2.
        Values: 0 or above.
    """
    sigma, most = validate.setting("noise", noise, zero=True), told("cap", cap, np.inf)
    if lipschitz is None and bound is None:
        if horizon is not None:
            raise InputError(f"horizon = {validate.show(horizon)} must be given with lipschitz and bound; told nothing, soft needs none")
        c, kappa = (
            told("weight", weight, WEIGHT),
            DAMPING if damping is None else validate.setting("damping", damping, zero=True),
        )
        each = None if constraints is None else np.ones(constraints)
        return NaturalPrices(domain, diameter_of(domain, diameter), c, kappa, SMALLEST_PART, most, each)
    if lipschitz is None or bound is None:
        given, missing = ("bound", "lipschitz") if lipschitz is None else ("lipschitz", "bound")
        raise InputError(f"{missing} must be given with {given}: policy soft is told both, or nothing")
    if damping is not None:
        raise InputError(f"damping = {validate.show(damping)} is of the form without constants: leave out lipschitz and bound")
    k, v = 1 if constraints is None else constraints, TOLD_WEIGHT if weight is None else weight
    v, tau = validate.setting("weight", v), told("horizon", horizon, 1.0)
    GD, size, D = units(domain, lipschitz, validate.setting("bound", bound) + sigma, diameter, k, 0.0)
    queues = VirtualQueues(domain, 2.0**0.5 * v * size * tau**0.5 / GD, D**2 / (size * tau), 0.0, np.ones(k))
    return Soft(queues, 1.0 if horizon is None else 0.0, most)

"""Constrained experts: mixtures of N experts whose violation grows with ln N ln t, whatever the dimension and the horizon.

A decision x is mass times the weights w of N experts, the corners of a simplex. An expert that keeps every limit has exactly 0 there:
constraints are not below 0 anywhere, so that actions that keep them mix such experts alone. With c_t,i >= 0 what round t's
constraints, linearised at x_t, are at corner i (of several the largest, 0 where it would be below), S_t the largest of these so far (at
least `scale`, where that is given), l = ln max(N, 2), lam = 16 / (81 (1 + l)) and V = 1 / (10 ranges of the first cost), or any other:

    h_t = <w_t, c_t> / S_t,      Q_t = Q_{t-1} + h_t,      p_t = lam e^{lam Q_t}
    AdaHedge steps on the losses  V f_t(corners, linearised) + p_t c_t / S_t
    then experts with c_t,i > 0 are dropped for good (``drop=False``: they stay), unless none would be left

Nothing has to be told: no horizon, and no range of costs or constraints. An expert drawn from w_t in place of the mixture violates as much
in expectation where constraints are linear. What it loses: an expert that violates once, by however little, never comes back, and actions
that keep a limit only as mixtures, because one expert makes up for another, are no comparators here; `anytime` has these.

Guarantee: `experts_bound`; for every t and every feasible u, with F_s the range of round s's cost over the corners, R = sqrt(4 + l)
sqrt(sum F_s^2) and B_t = sum (f_s(u) - f_s(x_s)),

    Regret_t(u) <= R + 4/(9V),      CCV_t <= S_t (81/16) (1 + l) ln(5 + 9 V (R + B_t)) = O(S ln N ln t).
Reference: the constrained experts are those of A. Sinha, R. Vaze. Beyond O(sqrt(T)) Constraint Violation for Online Convex Optimization
    with Adversarial Constraints. NeurIPS 2025 (arXiv 2505.06709), whose policy has regret O(sqrt(T ln N) + T^b) and CCV O(T^(1-b) ln N).
    This policy and its proof are bridle's (this file).

Proof. Let B = p c / S >= 0 be the constraint's part of the losses and V F the range of the cost's. With the rate eta = l / Delta,
AdaHedge's gap is delta = (1/eta) ln E_w e^{-eta (loss - E_w loss)}. Hoelder's inequality parts the sum of two losses: delta is at most
eta (q a + q' b) for all 1/q + 1/q' = 1, with a = V^2 F^2 / 8 (Hoeffding) and b = E_w B^2 / 2 (e^{-y} <= 1 - y + y^2/2 for y >= 0). The best
q makes it (eta/2) (V F / 2 + sqrt(E_w B^2))^2. Also delta <= V F + E_w B <= V F + sqrt(E_w B^2), since no mix loss is below the least loss;
that holds while Delta = 0 too. And E_w B^2 <= p^2 h, as c / S <= 1. So Delta_t^2 - Delta_{t-1}^2 = 2 delta Delta_{t-1} + delta^2 is at
most l (V F / 2 + p sqrt(h))^2 + (V F + p sqrt(h))^2, and by Minkowski's inequality, Y = sum p_s h_s, p not decreasing,

    2 Delta_t <= sqrt(4 + l) V sqrt(sum F_s^2) + 2 sqrt((1 + l) p_t Y).

AdaHedge's regret is at most Delta_t + Delta_{t-1} (`bridle.learners.adahedge`), and V Regret_t(u) + Y or more, since a feasible u has
<u, c_s> = 0. To drop experts is to feed them a loss without end between two rounds: the weights after it pay nothing of it, u neither, and
its mix loss is 0 or more. With theta = sqrt((1 + l) lam), 2 sqrt((1 + l) p_t Y) <= theta Y + theta e^{lam Q_t}, and Y >= e^{lam Q_t} - 1
(a right-endpoint sum of an increasing function):

    V Regret_t(u) + (1 - 2 theta) e^{lam Q_t} <= V R + 1 - theta,

theta = 4/9 by default. Leave out e^{lam Q} >= 1 for the regret; use Regret_t >= -B_t for Q_t; and CCV_t <= S_t Q_t, because the mixture's
(g_s)^+ is at most S_s h_s and S grows. (Values that rounding may have left are taken for 0: 1e-12 G D t more of violation.)

>>> import bridle
>>> problem = bridle.problem("experts", horizon=500, dim=50)
>>> trace = bridle.play(bridle.policy("experts", problem.domain), problem)
>>> trace.warnings, bool(bridle.ccv(trace) < 0.1 * bridle.ccv(bridle.play(bridle.policy_for("sinha2024", problem), problem)))
((), True)
"""

from __future__ import annotations

from typing import NamedTuple, Unpack, cast

import numpy as np

from bridle import validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback
from bridle.domains.closed_form import SimplexSet
from bridle.learners import AdaHedge, Hedge
from bridle.learners.adahedge import HedgeState
from bridle.learners.potentials import UNIT, ExponentialPotential
from bridle.ops import Array, Scalar, absolute, along, dot, exp, maximum, minimum, pos, ratio, scalar, where
from bridle.policies.anytime_forms import STEEPEST, TOUCH
from bridle.policies.common import at_least, flat, switch, told, unmet, weight_of
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import Through, registered

THETA = 4.0 / 9.0
"""sqrt((1 + l) lam): nearer to 1/2 the violation bound has a smaller factor and a larger logarithm; near the best for t up to 10^7."""

FIRST = 0.1
"""V times the range of the first cost: a tenth costs at most 4.4 such ranges of regret, and saves ln 10 / lam of violation."""

ROUNDING = 1e-12
"""Times mass and the largest coordinate of a constraint's gradient: values of this size are taken for 0."""

NEVER = 1e250
"""The loss of an expert that was dropped: its weight is 0 at any rate."""


class ExpertsState(NamedTuple):
    """AdaHedge's state; Q, Y, V and the units of exponent that Y and all losses are divided by; S; and whether each expert is gone.

    `below` is how far, at most, an expert was below 0 in a constraint that another violates, over what that one violates it by.
    `infeasible` is the first round after which no expert had kept every limit, 0 if there was none.
    """

    learner: HedgeState
    Q: Scalar
    Y: Scalar
    V: Scalar
    units: Scalar
    S: Scalar
    below: Scalar
    gone: Array
    rounds: Scalar
    infeasible: Scalar


class ConstrainedExperts(NamedTuple):
    """The policy; `V` is None where it is taken from the first cost, and `drop` is 1 or 0."""

    learner: Hedge
    potential: ExponentialPotential
    V: Scalar | None
    scale: Scalar
    drop: Scalar

    @property
    def domain(self) -> Domain:
        return self.learner.domain

    def init(self, x1: Array) -> ExpertsState:
        zero = scalar(x1)
        V = zero if self.V is None else self.V + zero
        return ExpertsState(self.learner.init(x1), zero, zero, V, zero, self.scale + zero, zero, 0.0 * x1, zero, zero)

    def decide(self, state: ExpertsState) -> Array:
        return self.learner.decide(state.learner)

    def violations(self, feedback: Feedback) -> tuple[Array, Scalar]:
        """What the experts violate, each its worst constraint, by the linearisations; and `below` of this round."""
        mass = self.learner.domain.mass
        levels = feedback.g - (feedback.dg @ feedback.x[..., None])[..., 0]
        worst: Array = 0.0 * feedback.x
        below = scalar(feedback.x)
        for i in range(feedback.g.shape[-1]):
            level = levels[..., i : i + 1] if levels.ndim > 1 else levels[i]
            each = mass * feedback.dg[..., i, :] + level
            # What rounding leaves of a limit that is met exactly is no violation: S has no scale of its own, and would take it for one.
            each = each * (absolute(each) > ROUNDING * mass * along(absolute(feedback.dg[..., i, :]), "max"))
            largest, least = along(each, "max"), along(each, "min")
            worst = maximum(worst, each)
            below = maximum(below, ratio(pos(-least), pos(largest)))
        return worst, below

    def update(self, state: ExpertsState, feedback: Feedback) -> ExpertsState:
        before = self.drop * state.gone
        violated, below = self.violations(feedback)
        violated = violated * (1.0 - before)
        S = maximum(state.S, along(violated, "max"))
        c = ratio(1.0, S) * violated
        h = dot(feedback.x, c) / self.learner.domain.mass
        Q = state.Q + h
        units = self.potential.units(Q)
        p, shrink = self.potential.slope(Q, units), exp(UNIT * (state.units - units))
        ranges = self.learner.domain.mass * (along(feedback.df, "max") - along(feedback.df, "min"))
        V = where(state.V > 0.0, state.V, minimum(ratio(FIRST, ranges), STEEPEST))
        v = V * exp(-UNIT * units) * feedback.df + (p / self.learner.domain.mass) * c
        rounds = state.rounds + 1.0
        found = maximum(state.gone, 1.0 * (c > TOUCH))  # type: ignore[arg-type]
        none_left = along(found, "min") > 0.0
        gone: Array = where(none_left, state.gone, found)
        infeasible = where(state.infeasible > 0.0, state.infeasible, none_left * rounds)  # type: ignore[arg-type]
        learner = self._without(self.learner.rescale(state.learner, shrink), v, feedback.x, self.drop * gone)
        Y = shrink * state.Y + p * h
        return ExpertsState(learner, Q, Y, V, units, S, maximum(state.below, below), gone, rounds, infeasible)

    def _without(self, state: HedgeState, grad: Array, x: Array, gone: Array) -> HedgeState:
        """AdaHedge's state after a gradient at x, and then without the experts that are gone."""
        hedge, keep = self.learner, 1.0 - gone
        charged = hedge.charged(state, grad, x)
        L: Array = where(gone > 0.0, NEVER + 0.0 * gone, charged.L)
        # While Delta = 0 it stays where it began, unless someone is gone from there.
        somebody, left = dot(gone, charged.x) > 0.0, hedge.domain.mass / along(keep, "sum") * keep
        start: Array = where(somebody, left, charged.x)
        moved = hedge.moved(charged._replace(x=start), L - along(L, "min"), charged.Delta)
        return moved._replace(x=keep * moved.x)

    def certified_regret(self, state: ExpertsState) -> float | None:
        """The proof's own upper bound on the regret so far: (AdaHedge's - Y) / V, against every mixture of experts that kept all limits.

        None where experts make up for one another in some constraint: then there are other feasible actions too.
        """
        if state.units > 0.0 or state.below > TOUCH:
            return None
        return float(ratio(float(self.learner.certified(state.learner)) - float(state.Y), float(state.V)))

    def alarm(self, state: ExpertsState) -> Alarm | None:
        """That every expert has violated a limit."""
        rounds = np.asarray(state.infeasible)
        if not rounds.any():
            return None
        text = (
            f"after round {rounds[rounds > 0.0].min():g} no expert had kept every limit: those that did so longest stay, and no bound holds"
        )
        return Alarm(text, voids_bound=True)


def most_violation(V: Scalar, gain: Scalar, lam: Scalar, theta: Scalar) -> Scalar:
    """ln((1 - theta + V gain) / (1 - 2 theta)) / lam, with `gain` = R + B_t: Q_t is no more.

    >>> float(most_violation(3.0, 5.0, 0.1, 0.25)) == float(10.0 * np.log(31.5))
    True
    """
    value: Scalar = np.log((1.0 - theta + V * gain) / (1.0 - 2.0 * theta)) / lam
    return value


def experts_bound(policy: Configuration[ConstrainedExperts], constants: Constants, t: float) -> Bound:
    """The proof above for any V and lam < 1 / (4 (1 + l)).

    Ranges are at most ``constants["spread"]``, where that is known, and G D. So is S_t, unless the policy was told more: a constraint that
    is not below 0 and holds somewhere is 0 at some corner. Where V was not given, the game's is in ``constants["V"]``.
    """
    if why := unmet(constants):
        return Bound(why=why)
    below = constants.get("below")
    if below is None:
        return Bound(why="it is not known whether constraints are nowhere below 0, so that feasible actions mix feasible experts alone")
    if np.any(np.asarray(below) > TOUCH):
        return Bound(why="a constraint is below 0 at some corner and above at another: actions are feasible that mix no feasible experts")
    record = policy.record
    lam, l = flat(record.potential.lam), record.learner.c
    theta = np.sqrt((1.0 + l) * lam)
    if np.any(theta >= 0.5):
        return Bound(why=f"lam = {float(np.max(lam)):.4g} is too large for a proof: it must be below {0.25 / (1.0 + l):.4g}")
    widest = min(constants["lipschitz"] * constants["diameter"], constants.get("spread", np.inf))
    R, trivial = np.sqrt((4.0 + l) * t) * widest, widest * t
    V = weight_of(record.V, constants)
    if V is None:
        regret = np.minimum(R + theta * max(widest / FIRST, 1.0 / STEEPEST), trivial)
        return Bound(flat(regret), why="the violation bound depends on V, which the policy takes from the first cost")
    V = np.asarray(V)
    regret = R + theta * np.where(V > 0.0, 1.0 / np.where(V > 0.0, V, 1.0), np.inf)
    behind = at_least(constants, trivial)
    Q = np.maximum(flat(record.scale), widest) * most_violation(V, R + behind, lam, theta)
    unseen = ROUNDING * constants["lipschitz"] * constants["diameter"] * t
    return Bound(flat(np.minimum(regret, trivial)), ccv=flat(np.minimum(Q + unseen, trivial)))


@registered(
    reference="Sinha & Vaze, NeurIPS 2025",
    regret="O(sqrt(T log N))",
    violation="O(log N log T)",
    bound=experts_bound,
    only_limits=True,
    reduces="max",
    domains=("simplex",),
    cost="2 N exponentials",
)
def experts(
    domain: Domain,
    *,
    V: Setting | None = None,
    lam: Setting | None = None,
    scale: Setting | None = None,
    drop: bool = True,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> ConstrainedExperts:
    """Exponential weights on experts, some of which never violate.

    Parameters
    ----------
    V
        The weight of the cost against violations. Default: 1 / (10 ranges of the first cost). Values: above 0.
        Unit: 1 / cost.
    lam
        How fast the weight of violations grows. Default: 16 / (81 (1 + ln N)). Values: above 0. Unit: 1 / largest
        violation.
    scale
        The least that counts as the largest violation there is of an expert. Default: the largest one seen so far.
        Values: above 0. Unit: constraint.
    drop
        Drop experts that have violated a limit.
    constraints
        k, how many constraints a round reveals; only checked. Default: any number. Values: a whole number, 1 or
        above. Unit: constraints.
    """
    if not isinstance(domain, SimplexSet):
        raise validate.refused("domain must be a simplex for experts, such as bridle.Simplex(3)", domain)
    learner = cast(Hedge, AdaHedge(domain))
    rate = told("lam", lam, THETA * THETA / (1.0 + learner.c))
    known = told("scale", scale, 0.0)
    weight = told("V", V, None)
    return ConstrainedExperts(learner, ExponentialPotential(rate), weight, known, switch("drop", drop))

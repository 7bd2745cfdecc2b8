"""Optimistic play: predictions of the gradients, for the cost and for the constraints; what is lost is how wrong they were.

Before round t somebody may predict its cost's gradient, m_t, and the unit normal n'_t of the constraint that the decision will violate
(0 where none is expected). H_t is the halfspace that the violated constraint, linearised at x_t, leaves, dist_t the distance from x_t to
it, and n_t its unit normal (0 where nothing is violated). With c = 1 + sqrt(5)/2, D the diameter, lam = 1/(8 D) and V = 10 / (D |first
gradient|), or any other:

    x_t = P_X(y_t - eta_t (V m_t + w_t n'_t)),      w_t = lam P_{t-1},      eta_t = D / sqrt(S_{t-1})
    z = P_X(y_t - eta_t (V grad f_t(x_t) + w_t n_t)),      y_{t+1} = P_X(z projected on H_t, then on the last 20 violated halfspaces)
    S_t = S_{t-1} + |V (grad f_t - m_t) + w_t (n_t - n'_t)|^2,      W_t = W_{t-1} + w_t^2 |n_t - n'_t|^2,      W_0 = lam^2
    P_t = P_{t-1} + w_t dist_t - c D (sqrt(W_t) - sqrt(W_{t-1})),      P_0 = 1

While S is 0 the step is 0 and both predictions are 0. Predictions are not trusted blindly. m_t is shortened to the longest gradient so far.
It is used, instead of 0, while its squared errors so far are no more than those of 0 would have been; and so is n'_t, by its own errors.
Where somebody predicts a constraint's value and gradient at some action, n'_t is its normal if what would be decided for the predicted cost
alone, read off affinely, violates it. Where nobody predicts anything, the last round is the prediction (``hint="last"``), or there is none
(``hint="none"``). A caller predicts with ``session.decide(hint=...)``; a game's adversary may, too (`bridle.with_hints`).

Guarantee: `optimistic_bound`; for every t and every feasible u, with E_f = sum |grad f_s - m_s|^2 and E_n = sum |n_s - n'_s|^2 of the
    predictions as they were used, R = c D sqrt(E_f), F_t = sum (f_s(u) - f_s(x_s)) and B = 1 + c/8 + V (R + F_t), F_t as large as it ever
    was,

    Regret_t(u) <= R + (1 + c/8) / V,      CCV_t <= G D (8.5 ln B + 1.61 sqrt(E_n ln(1 + E_n B^2))).

    With right predictions regret is O(1) and CCV is O(log t); without any they are O(sqrt(t)) and O(sqrt(t log t)), as those of `anytime`
    are. Predictions that were given cost no more than twice their errors or those of none: E_f <= 2 min(E_given, sum |grad f|^2) + 4 G^2,
    and E_n <= 2 min(E_given, violated rounds) + 4. E_given is that of the predictions as given, m_t shortened, and 0 while S is 0.
Reference: J. Lekeufack, M. I. Jordan. An Optimistic Algorithm for Online Convex Optimization with Adversarial Constraints. arXiv
    2412.08060, which has O(sqrt(E_f)) and O(log T (sqrt(E_g) + 1)). The update with P, the constants, what guards against bad predictions
    and the proof are this file's; the two-step update is Rakhlin and Sridharan's.

Proof. (1) Let v_t and v'_t be the two directions that eta_t multiplies above, and e_t = |v_t - v'_t|. Projections on sets that hold u only
bring y closer to it, and the usual three-point inequalities for x_t and z give

    <v_t, x_t - u> <= (|y_t - u|^2 - |y_{t+1} - u|^2) / (2 eta_t) + <v_t - v'_t, x_t - z> - |x_t - z|^2 / (2 eta_t).

The last two terms are at most D min(e_t, e_t^2 / (2 sqrt(S_{t-1}))), and that is at most phi D (sqrt(S_t) - sqrt(S_{t-1})) with phi = (1 +
sqrt(5))/2: in units of sqrt(S_{t-1}) their ratio grows with e_t up to e_t = 2, where it is 2 / (sqrt(5) - 1) = phi, and falls from there.
If S_{t-1} = 0, then v'_t = 0, so <v_t, x_t - u> <= D |v_t| = D e_t = D sqrt(S_t). As eta_t does not grow, sum <v_s, x_s - u> <= (1/2 + phi)
D sqrt(S_t) = c D sqrt(S_t).
(2) u lies in H_s, so <n_s, x_s - u> >= dist_s. By Minkowski sqrt(S_t) <= V sqrt(E_f) + sqrt(W_t - W_0). So V Regret_t + sum w_s dist_s <=
c D (V sqrt(E_f) + sqrt(W_t)). The sum is P_t - 1 + c D (sqrt(W_t) - sqrt(W_0)) by the definition of P:

    V Regret_t + P_t <= 1 + c D lam + c D V sqrt(E_f).

(3) Let r_s = c D (sqrt(W_s) - sqrt(W_{s-1})) / w_s. It is at most c D |n_s - n'_s| <= 2 c D, so that P_s = P_{s-1} (1 + lam (dist_s - r_s))
>= P_{s-1} (1 + lam dist_s) (1 - lam r_s) > 0. That is the regret bound. The logarithm is concave, lam dist_s <= 1/8 and lam r_s <= c/4, so
ln P_t >= lam (a sum dist_s - b sum r_s) with a = 8 ln(9/8) and b = -(4/c) ln(1 - c/4).
(4) r_s = c D |n_s - n'_s| (w_s |n_s - n'_s| / (sqrt(W_s) + sqrt(W_{s-1}))). The square of the bracket is (q - 1) / (q + 1) <= (ln q) / 2
with q = sqrt(W_s / W_{s-1}), so by Cauchy and Schwarz sum r_s <= (c D / 2) sqrt(E_n ln(W_t / W_0)). By (2) no P_s is above B, so W_t <=
lam^2 (1 + B^2 E_n). With P_t <= B in (3) that makes  sum dist_s <= (D / a) (8 ln B + (b c / 2) sqrt(E_n ln(1 + B^2 E_n))).
A constraint that is violated by less than 1e-9 D counts as satisfied, which adds at most that much to each dist_s: on the boundary,
rounding alone would decide.
(5) Of two predictors, follow the one with the smaller sum of errors so far: the other's sum never falls behind by more than one error, so
what was paid to each is at most the smaller sum in the end plus one error, and to one of them no more than its own: 2 min + the largest.
No shortened m_t is off by more than 2 G. Shortening itself adds at most G to sqrt(E_given), the sum of what gradients grow beyond the
longest so far, squared.

>>> import bridle
>>> problem = bridle.with_hints(bridle.problem("halfspaces", horizon=2000, dim=3))
>>> regrets = [bridle.regret(bridle.play(bridle.policy("optimistic", problem.domain, hint="none"), each)) for each in
...            (problem, bridle.problem("halfspaces", horizon=2000, dim=3))]
>>> bool(regrets[0] < regrets[1])
True
"""

from __future__ import annotations

from math import log, sqrt
from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import ops, validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback, Hint
from bridle.learners.potentials import UNIT, ExponentialPotential
from bridle.ops import Array, Scalar, dot, exp, maximum, minimum, norm, ratio, scalar, where
from bridle.policies.anytime_forms import STEEPEST, TOUCH, Distance, linearised, missed_alarm, none_kept, onto_halfspaces, slots_for
from bridle.policies.common import at_least, diameter_of, flat, most_behind, told, unmet, weight_of
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import Through, registered

SPREAD = 1.0 + sqrt(5.0) / 2.0
"""c: the regret on surrogate costs is at most c D times the root of the summed squared errors."""

RATE = 0.125
"""lam D."""

TIE = 1.0 + 1e-9
"""Predictions are believed while their errors are at most so many times those of none: sums of equal squares must not tie by rounding."""


class OptimisticState(NamedTuple):
    """The base action y, Q = ln(P)/lam, the sums S and W, and V; the next prediction as told, and what all were off by.

    S and W are kept divided by e^{2 UNIT units}, so that e^{lam Q} never overflows. `told_cost` and `told_limits` are the summed squared
    errors of the predictions, `plain_cost` and `plain_limits` those of 0, `cost_error` and `limit_error` (E_f and E_n) those of what was
    used. A and b are the halfspaces kept, `slot` the place of the next. `infeasible` is the first round whose constraint no action of the
    domain satisfies, 0 if there was none.
    """

    y: Array
    Q: Scalar
    S: Scalar
    W: Scalar
    V: Scalar
    units: Scalar
    df: Array
    normal: Array
    longest: Scalar
    told_cost: Scalar
    plain_cost: Scalar
    told_limits: Scalar
    plain_limits: Scalar
    cost_error: Scalar
    limit_error: Scalar
    A: Array | None
    b: Array | None
    slot: Scalar | None
    rounds: Scalar
    infeasible: Scalar


class Foresight(NamedTuple):
    """What is expected of a round: gradient and normal, as told and as used; the surrogate's gradient, and its step size."""

    told_df: Array
    told_normal: Array
    df: Array
    normal: Array
    gradient: Array
    step: Scalar


class Optimistic(NamedTuple):
    """The policy; `last` is None where the last round is no prediction; `slots` is None without halfspaces."""

    domain: Domain
    potential: ExponentialPotential
    diameter: Scalar
    span: Scalar  # beyond which a halfspace misses the domain: its own diameter where the policy was told a smaller D
    V: Scalar | None
    last: Scalar | None
    slots: Array | None

    def init(self, x1: Array) -> OptimisticState:
        zero = scalar(x1)
        W, V, none = self.potential.lam**2 + zero, zero if self.V is None else self.V + zero, 0.0 * x1
        sums = (zero, zero, zero, zero, zero, zero, zero)
        return OptimisticState(x1, zero, zero, W, V, zero, none, none, *sums, *none_kept(x1, self.slots), zero, zero)

    def hinted(self, state: OptimisticState, hint: Hint) -> OptimisticState:
        """The state with this prediction of the next round; what it leaves open stays as it is."""
        state = state if hint.df is None else state._replace(df=hint.df + 0.0 * state.y)
        if hint.g is None or hint.dg is None:
            return state
        # What would be decided if only the cost's gradient were predicted, and which of the predicted constraints that would violate.
        expected = self.foresee(state)
        x = self.domain.project(state.y - expected.step * self.weights(state)[0] * expected.df)
        g = hint.g if hint.x is None else hint.g + (hint.dg @ (x - hint.x)[..., None])[..., 0]
        cut, _, _ = linearised(x, Feedback(x, 0.0, x, g, hint.dg), Distance(), 0.0, self.span)
        return state._replace(normal=1.0 * (cut.far > TOUCH * self.diameter) * cut.normal + 0.0 * state.y)

    def foresee(self, state: OptimisticState) -> Foresight:
        """What is expected of the next round, as far as it is believed."""
        moves = 1.0 * (state.S > 0.0)  # without a step, a prediction would be charged less than the round can cost: (1) needs 0
        told_df = moves * minimum(ratio(state.longest, norm(state.df)), 1.0) * state.df
        told_normal = moves * state.normal
        df = 1.0 * (state.told_cost <= TIE * state.plain_cost) * told_df
        normal = 1.0 * (state.told_limits <= TIE * state.plain_limits) * told_normal
        cost, limits = self.weights(state)
        return Foresight(told_df, told_normal, df, normal, cost * df + limits * normal, ratio(self.diameter, ops.sqrt(state.S)))

    def weights(self, state: OptimisticState) -> tuple[Scalar, Scalar]:
        """V and w_t, divided by e^{UNIT units}."""
        return state.V * exp(-UNIT * state.units), self.potential.slope(state.Q, state.units)

    def decide(self, state: OptimisticState) -> Array:
        expected = self.foresee(state)
        return self.domain.project(state.y - expected.step * expected.gradient)

    def update(self, state: OptimisticState, feedback: Feedback) -> OptimisticState:
        D, df, expected = self.diameter, feedback.df, self.foresee(state)
        cut, others, missed = linearised(feedback.x, feedback, Distance(), 0.0, self.span)
        violated: Scalar = where(cut.far > TOUCH * D, 1.0, 0.0)
        dist, normal = minimum(violated * cut.far, D), violated * cut.normal
        V = where(state.V > 0.0, state.V, minimum(ratio(10.0, D * norm(df)), STEEPEST))
        cost, limits = self.weights(state._replace(V=V))
        y = self.domain.project(state.y - expected.step * (cost * df + limits * normal))
        y, kept = onto_halfspaces(y, (state.A, state.b, state.slot), cut, others, violated > 0.0)
        y = y if self.slots is None else self.domain.project(y)
        off, turned = df - expected.df, normal - expected.normal
        error, limit_error = cost * off + limits * turned, dot(turned, turned)
        S, W = state.S + dot(error, error), state.W + limits * limits * limit_error
        paid = SPREAD * D * limits * ratio(limit_error, ops.sqrt(W) + ops.sqrt(state.W))
        lam = self.potential.lam
        Q = state.Q + ops.log(1.0 + lam * (dist - paid)) / lam
        units = maximum(self.potential.units(Q), 0.0)
        shrink = exp(2.0 * UNIT * (state.units - units))
        wrong, unforeseen, rounds = df - expected.told_df, normal - expected.told_normal, state.rounds + 1.0
        after = OptimisticState(
            y, Q, S * shrink, W * shrink, V, units, 0.0 * df, 0.0 * normal,
            maximum(state.longest, norm(df)),
            state.told_cost + dot(wrong, wrong), state.plain_cost + dot(df, df),
            state.told_limits + dot(unforeseen, unforeseen), state.plain_limits + dot(normal, normal),
            state.cost_error + dot(off, off), state.limit_error + limit_error,
            *kept, rounds, where(state.infeasible > 0.0, state.infeasible, missed * rounds),  # type: ignore[arg-type]
        )  # fmt: skip
        return after if self.last is None else self.hinted(after, Hint(df, feedback.g, feedback.dg, feedback.x))

    def certified_regret(self, state: OptimisticState) -> float | None:
        """(2) with S as it is: (c D sqrt(S_t) - (P_t - 1) - c D (sqrt(W_t) - sqrt(W_0))) / V."""
        if state.units > 0.0 or self.diameter < self.domain.diameter() * (1.0 - 1e-12):
            return None
        lam, reach = self.potential.lam, SPREAD * self.diameter
        surplus = reach * (sqrt(state.S) - sqrt(state.W) + lam) - np.expm1(lam * state.Q)
        return float(ops.ratio(surplus, float(state.V)))

    def alarm(self, state: OptimisticState) -> Alarm | None:
        """That one constraint misses the whole domain; None while none does."""
        return missed_alarm(state.infeasible)


HINTS = ("last", "none")


def optimistic_bound(policy: Configuration[Optimistic], constants: Constants, t: float) -> Bound:
    """The proof above, with |grad f_s| <= G; E_f and E_n are those of the game where it has found them, else what (5) leaves of them.

    Where V was not given, the one that the game found is in ``constants["V"]``; the regret bound needs only that it is at least 10/(D G).
    Regret_t >= -GDt, or what ``constants["regret"]`` says of round t, if that is less negative.
    """
    if why := unmet(constants):
        return Bound(why=why)
    record = policy.record
    G, D = constants["lipschitz"], constants["diameter"]
    if float(record.diameter) < D * (1.0 - 1e-12):
        return Bound(why=f"the domain's diameter is {D:.4g}, more than the policy was told")
    trivial, D, most = G * D * t, float(record.diameter), TIE * (2.0 * t + 4.0)
    E_f = np.minimum(np.asarray(constants.get("cost_error", np.inf)), most * G * G)
    E_n = np.minimum(np.asarray(constants.get("limit_error", np.inf)), most)
    R, start = SPREAD * D * np.sqrt(E_f), 1.0 + SPREAD * RATE
    V = weight_of(record.V, constants)
    if V is None:
        regret = flat(np.minimum(R + start * max(D * G / 10.0, 1.0 / STEEPEST), trivial))
        return Bound(regret, why="the violation bound depends on V, which the policy takes from the first gradient")
    inverse = ratio(1.0, V) if V > 0.0 else np.inf
    behind = most_behind(constants, t)
    B, last = (start + V * (R + each) for each in (behind, at_least(constants, behind)))
    a, b = log(1.0 + RATE) / RATE, -log(1.0 - 2.0 * SPREAD * RATE) / (2.0 * SPREAD * RATE)
    far = TOUCH * D * t + D / a * (np.log(last) / RATE + 0.5 * b * SPREAD * np.sqrt(E_n * np.log1p(E_n * B * B)))
    return Bound(flat(np.minimum(R + start * inverse, trivial)), ccv=flat(np.minimum(G * far, trivial)))


@registered(
    reference="Lekeufack & Jordan, arXiv 2024",
    regret="O(sqrt(E_f)), E_f the squared errors of predicted gradients",
    violation="O(sqrt(E_n log T) + log T), E_n those of predicted normals",
    bound=optimistic_bound,
    reduces="max-distance",
    cost="3 projections, 1 halfspace, 20 checked",
)
def optimistic(
    domain: Domain,
    *,
    diameter: Setting | None = None,
    V: Setting | None = None,
    hint: Literal["last", "none"] = "last",
    halfspace: bool = True,
    cuts: int | None = None,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> Optimistic:
    """Predictions of gradients (hints): what is lost is how wrong they were.

    Parameters
    ----------
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    V
        The weight of the cost against violations. Default: 10 / (D |first gradient|). Values: above 0. Unit: 1 /
        cost.
    hint
        What is expected of a round of which nobody has given a prediction. Values: last (the gradients of the last
        round) or none.
    halfspace
        Project on the revealed halfspaces.
    cuts
        How many of the last violated halfspaces to keep. Default: 20. Values: a whole number, 0 or above. Unit:
        halfspaces.
    constraints
        k, how many constraints a round reveals. Default: any number. Values: a whole number, 1 or above. Unit:
        constraints.
    """
    validate.one_of("hint", hint, HINTS)
    D = diameter_of(domain, diameter)
    potential, weight = ExponentialPotential(RATE / D), told("V", V, None)
    return Optimistic(
        domain, potential, D, np.maximum(D, domain.diameter()), weight, 1.0 if hint == "last" else None, slots_for(halfspace, cuts)
    )

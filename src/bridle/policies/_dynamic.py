"""Supantha, Sinha 2025: regret against every path of actions at once, where no action has to keep the limits of all rounds.

What round t reveals, linearised at x_t, is a halfspace H_t (of several limits one each; d(x), the distance to the farthest, is their
measure), and with it the set X cap H_t, which holds every action that the round allows. Let M_t = max_{s <= t} |grad f_s| (at least
`lipschitz`, where that is given), d_t = d(x_t), z_t the point of X cap H_t nearest to x_t, r_t = |x_t - z_t|, m_t = (x_t - z_t) / r_t,
and q_t = d_t / r_t (1 where r_t = 0). The surrogate

    phi_t(x) = <grad f_t + 2 M_t (1 - q_t^2) m_t, x> + 2 M_t q_t d(x)

is convex and known once the round is over. K learners follow it, each from its own point with a step of its own; AdaHedge
(`bridle.learners.adahedge`) mixes their points by the surrogate's values:

    x^i <- P_X(x^i - theta_i v^i / sqrt(sum |v^i|^2), projected on the halfspaces of the round),      v^i = grad phi_t(x^i)
    x   =  sum_i w_i x^i,      w fed with phi_t(x^i) - phi_t(x_t),      theta_i = 2^i D / sqrt(2), i = -8, ..., 17

Nothing has to be told: no horizon, no path, no Lipschitz constant. Units do not matter. (While no cost has had a slope, M_t = 1; with the
first that has, what was learned is put into its unit.) The proof needs no step below D / sqrt(2); those are for domains that are larger
than they need be.

Guarantee: `dynamic_bound`. For every T, any adversary and every path u_1, ..., u_T of actions, each of which keeps the limits of its own
    round, with P = sum |u_{t+1} - u_t|,

    sum f_t(x_t) - f_t(u_t) + 2 sum M_t r_t <= D sqrt(sum L_t^2) (1.5 sqrt(1 + 2 P/D) + sqrt(4 + ln K)),    L_t <= |grad f_t| + 2.5 M_t.

    So regret is O(G sqrt(D (D + P) T)), the order of which no policy can beat. Violation: let P* be the path of the best actions of each
    round, argmin f_t over X cap H_t. With one limit a round, and no cost steeper between x_t and z_t than M_t (always with `lipschitz`
    told, or affine costs),

    sum r_t <= 3.5 D sqrt(T) (1.5 sqrt(1 + 2 P*/D) + sqrt(4 + ln K)) (1 + ln(M_T / M_1)),      CCV <= max |grad g| sum r_t,

    without the logarithm where `lipschitz` is told. An affine limit has X cap H_t = X_t, what the round allows: P* is then the stream's
    own. Of a curved one the cut is all that numbers tell, and P* is the path on the sets that were revealed. With several limits z_t may
    break another: let c r_t be the most that x_t is away from what the round reveals. Then P* is the path on those sets, and c below 2 is
    enough, with 1 / (2 - c) as a factor; nothing is proved of violation where c is 2 or more, but that 2 sum M_t r_t is at most the right
    side above less the regret against any path.
Reference: S. Supantha, A. Sinha. Universal Dynamic Regret and Constraint Violation Bounds for Constrained Online Convex Optimization. ALT
    2026. The distance with twice the slope, and the reduction, are theirs; that sets are read from numbers, the learned M_t, the steps, the
    mixture by values and the constants are this file's. Many steps: L. Zhang, S. Lu, Z.-H. Zhou. Adaptive Online Learning in Dynamic
    Environments. NeurIPS 2018.

Proof. (1) The surrogate. u_t lies in X cap H_t, so <m_t, x_t - u_t> >= r_t and d(u_t) = 0: phi_t(x_t) - phi_t(u_t) >= <grad f_t, x_t - u_t>
+ 2 M_t (1 - q_t^2) r_t + 2 M_t q_t d_t, where the last two are 2 M_t r_t, as d_t = q_t r_t. Its slope is at most |grad f_t| + 2 M_t (1 -
q^2 + q) <= |grad f_t| + 2.5 M_t.
(2) A learner. Projections on sets that hold u_t only bring it closer. |x_{t+1} - u_{t+1}|^2 <= |x_{t+1} - u_t|^2 + 2 D |u_{t+1} - u_t|, and
the step does not grow; so sum phi_t(x^i_t) - phi_t(u_t) <= (D^2/2 + D P) / step_T + sum step_t |v_t|^2 / 2 <= sqrt(sum |v|^2) ((D^2/2 + D
P) / theta_i + theta_i). For the i with theta_i nearest to sqrt(D^2/2 + D P) this is 1.5 D sqrt(1 + 2 P/D) sqrt(sum |v|^2) or less: that
root is at most D sqrt(T), which theta_17 reaches for T < 1e10, and (sqrt(2) + 1/sqrt(2)) / sqrt(2) = 1.5.
(3) The mixture. phi_t(x_t) <= sum_i w_i phi_t(x^i), and AdaHedge loses sqrt(4 + ln K) sqrt(sum s_t^2) to any learner, s_t <= D L_t the
range of the values. (2) and (3) make the first line, for every path, as nothing in the policy depends on it.
(4) Violation. f_t(x_t) >= f_t(z_t) - M_t r_t >= f_t(u_t) - M_t r_t for the best u_t of X cap H_t. (With c and several limits: for the best
u_t of what the round reveals, with c M_t r_t.) So A_t = sum_{s <= t} M_s r_s is at most the right side of the first line, which is M_t k(t)
with k as in the second, and by parts sum r_t = A_T / M_T + sum_{t < T} (A_t / M_t) (1 - M_t / M_{t+1}) <= k(T) (1 + ln(M_T / M_1)). At last
g_t(x_t)^+ <= |grad g_t| d_t <= |grad g_t| r_t.
Without 2 M_t r_t the proof breaks: then the best path may be ahead by all that violations have saved.
(Values within 1e-9 D M_t of 0 are taken for 0, and a learner within 1e-9 D of a halfspace for one inside, lest rounding decide: 4e-9 D
M_t T more on the right side.)

>>> import bridle
>>> session = bridle.Session(bridle.policy("dynamic", bridle.Box(0.0, 10.0, dim=1)))
>>> for t in range(600):
...     x, demand = session.decide(), 8.0 if t % 200 < 50 else 2.0  # a peak now and then
...     session.observe(f=float(x[0]), df=[1.0], g=demand - float(x[0]), dg=[-1.0])
>>> x.round(1)
array([2.])
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple, Unpack

import numpy as np

from bridle import domains, ops
from bridle.core import Alarm, Bound, Constants, Domain, Feedback
from bridle.domains.half_space_cut import sweep
from bridle.learners import AdaHedge, hedge_regret
from bridle.ops import Array, Scalar, combine, dot, maximum, minimum, norm, pos, ratio, scalar, where, worst
from bridle.policies.anytime_forms import SLACK, TOUCH, missed_alarm
from bridle.policies.common import at_least, diameter_of, flat, told, unsized
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import Through, registered
from bridle.solvers.hinge_prox import hinge

STEPS = 2.0 ** np.arange(-8.0, 18.0)[:, None] / sqrt(2.0)
"""theta_i / D: each step is twice as long as the last, the longest enough for 10^10 rounds."""

TOLL = 2.0
"""What a distance outside costs, in units of the steepest cost: above 1, or leaving could pay."""

STEEPER = 1.25
"""The most of 1 - q^2 + q, at q = 1/2: the slope of both parts of the toll together."""

FARTHEST_PUSH = 2e6
"""Times D: half as far the search for the nearest allowed point goes along the cut's normal."""


class DynamicState(NamedTuple):
    """The learners' points and sums of squares, one a row; the mixture; the rounds; the length of the first cost gradient that had one,
    and of the longest; what distances outside were charged in all; the first round that no action of the domain satisfies, or 0."""

    points: Array
    squares: Array
    top: Any
    rounds: Scalar
    first: Scalar
    steepest: Scalar
    charged: Scalar
    infeasible: Scalar


class Dynamic(NamedTuple):
    """The policy; `steps` is ``(K, 1)``: theta_i / D; `floor` is what M_t is at least, 0 where nothing was told."""

    domain: Domain
    steps: Array
    top: Any  # AdaHedge over the learners
    reach: Scalar  # D
    floor: Scalar

    @property
    def mixed(self) -> tuple[str, ...]:
        """The names of what is mixed."""
        return tuple(f"step {step:.3g} D" for step in np.asarray(self.steps)[:, 0])

    def init(self, x1: Array) -> DynamicState:
        zero, none = scalar(x1), ops.vector(x1, self.steps[:, 0])
        points, top = none[..., None] + x1[..., None, :], self.top.init(none + 1.0 / none.shape[-1])
        return DynamicState(points, none[..., None], top, zero, zero, self.floor + zero, zero, zero)

    def decide(self, state: DynamicState) -> Array:
        return combine(self.weights(state), state.points)

    def weights(self, state: DynamicState) -> Array:
        """What each learner is worth at present."""
        weights: Array = self.top.decide(state.top)
        return weights

    def update(self, state: DynamicState, feedback: Feedback) -> DynamicState:
        x, df, length, rounds = feedback.x, feedback.df, norm(feedback.df), state.rounds + 1.0
        lengths = ops.sqrt((feedback.dg * feedback.dg).sum(axis=-1))
        normals, far = ratio(1.0, lengths)[..., None] * feedback.dg, ratio(feedback.g, lengths)
        missed = (feedback.g > lengths * (self.reach * SLACK)).any(axis=-1, keepdims=feedback.g.ndim > 1)
        steepest = maximum(state.steepest, length)
        # While no cost has had a slope, distances are charged in units of 1; the first that has one puts what was learned into its own.
        unit = where(steepest > 0.0, steepest, 1.0)
        factor = where(state.steepest > 0.0, 1.0, unit)

        # The surrogate: `slope` is its linear part, `toll` the price of the distance to the farthest halfspace.
        dist, normal = worst(far, normals)
        level = dot(normal, x) - dist
        dist = minimum(pos(dist), self.reach)
        out = x - hinge(self.domain, x, normal, level, FARTHEST_PUSH * self.reach, 1.0)
        outside = where(dist > TOUCH * self.reach, maximum(norm(out), dist), dist)
        q = where(outside > 0.0, ratio(dist, outside), 1.0)
        slope = df + TOLL * unit * (1.0 - q * q) * ratio(1.0, outside) * out
        toll = TOLL * unit * q

        away = state.points - x[..., None, :]
        each, levels = normals[..., None, :, :], (normals @ x[..., None])[..., 0] - far
        own: Array
        own, row = worst(far[..., None, :] + away @ ops.namespace(normals).swapaxes(normals, -1, -2), each)  # type: ignore[assignment]
        losses = (away @ slope[..., None])[..., 0] + toll * (minimum(pos(own[..., 0]), self.reach) - dist)
        # Learners that agree up to rounding have lost the same: the weights have no scale of their own, and would learn from rounding.
        losses = losses * (ops.absolute(losses) > TOUCH * unit * self.reach)
        v = slope[..., None, :] + _each(toll) * (own > TOUCH * _each(self.reach)) * row
        squares = _each(factor * factor) * state.squares + (v * v).sum(axis=-1, keepdims=True)
        points = state.points - ratio(_each(self.reach) * self.steps, ops.sqrt(squares)) * v
        return DynamicState(
            self.domain.project(sweep(each, levels[..., None, :], points)),
            squares,
            self.top.step(self.top.rescale(state.top, factor), losses),
            rounds,
            where(state.first > 0.0, state.first, length),
            steepest,
            factor * state.charged + TOLL * unit * outside,
            where(state.infeasible > 0.0, state.infeasible, missed * rounds),
        )

    def certified_regret(self, state: DynamicState) -> float:
        """The proof's own upper bound on the regret so far against any action that keeps all limits, from what has happened.

        D is the domain's own where the policy was told a smaller one.
        """
        D, theta = self.domain.diameter(), np.asarray(self.reach * self.steps)[:, 0]
        learner = (np.sqrt(np.asarray(state.squares)[:, 0]) * (0.5 * D * D / theta + theta)).min()
        unit = state.steepest if state.steepest > 0.0 else 1.0
        return float(self.top.certified(state.top) + learner - state.charged + (2.0 + TOLL) * TOUCH * state.rounds * unit * self.reach)

    def alarm(self, state: DynamicState) -> Alarm | None:
        return missed_alarm(state.infeasible)


def _each(value: Scalar) -> Scalar:
    """A scalar of a run as one of each of its learners."""
    return value if np.ndim(value) == 0 else value[..., None]  # type: ignore[index]


def spread(path: float) -> float:
    """min over i of (1/2 + P/D) / theta_i + theta_i, in units of D, for paths of `path` = P/D: at most 1.5 sqrt(1 + 2 P/D) within reach.

    >>> round(spread(0.0), 4), round(spread(100.0), 3), round(1.5 * 201.0**0.5, 3)
    (1.4142, 20.197, 21.266)
    """
    return float(((0.5 + path) / STEPS + STEPS).min())


def right_side(t: float, lipschitz: float, diameter: float, path: float, told: float = 0.0) -> float:
    """The right side of the inequality, for gradients of at most `lipschitz`; M_t is no larger than that, or what the policy was `told`.

    >>> round(right_side(10_000, 1.0, 2.0, 0.0))
    2876
    """
    G, D, M = lipschitz, diameter, max(lipschitz, told)
    return D * ((G + TOLL * STEEPER * M) * sqrt(t) * (spread(path / D) + hedge_regret(len(STEPS), 1.0)) + (2.0 + TOLL) * TOUCH * M * t)


def dynamic_bound(
    t: float,
    *,
    lipschitz: float,
    diameter: float,
    path: float = 0.0,
    best_path: float | None = None,
    first: float | None = None,
    told: float = 0.0,
    steep: float | None = None,
) -> Bound:
    """What is proved after t rounds: regret against every path of length `path`, violation where that of the best actions is `best_path`.

    `lipschitz` is the longest gradient of a cost or a limit, `first` that of the first cost with a slope (default: `lipschitz`), `told`
    what the policy was told. `steep` is the c of the violation bound, times how much steeper a cost is between a decision and what is
    allowed than every gradient so far: 1 for affine costs and one limit a round. Its default is for one limit: G / M_1, at least 1.

    >>> bound = dynamic_bound(10_000, lipschitz=1.0, diameter=2.0, path=10.0, best_path=10.0, told=1.0)
    >>> round(bound.regret), round(bound.ccv)
    (5227, 5227)
    """
    G, D = lipschitz, diameter
    if G == 0.0:
        return Bound(0.0, ccv=0.0)

    regret = min(right_side(t, G, D, path, told), G * D * t)
    if best_path is None:
        return Bound(regret, why="the violation bound depends on the path of the best actions of each round, which is not known")
    most, least = max(told / G, 1.0), max(1.0 if first is None else min(first / G, 1.0), told / G)
    share = 0.0 if least == 0.0 else TOLL - (1.0 / least if steep is None else steep)
    if share <= 0.0:
        return Bound(regret, why=STEEP)
    return Bound(regret, ccv=min(right_side(t, G, D, best_path, told) / (share * most) * (1.0 + log(most / least)), G * D * t))


NOT_SHARED = "no action is known to satisfy every constraint"
PATHS_ALONE = f"{NOT_SHARED}, so that regret is bounded against paths alone (`dynamic_bound`)"
STEEP = "a cost may be steeper where it was not seen than twice the first gradient: with `lipschitz` told violation is bounded"


def bound_of(policy: Configuration[Dynamic], constants: Constants, t: float) -> Bound:
    """`dynamic_bound` for one action that keeps every limit, where there is one, and for the best actions of each round.

    How far those move is ``constants["path"]``, where the problem knows it. Violation: by that path where limits are affine, one a round;
    else, and where that is less, by the regret of the game itself: 2 M_1 sum r_t <= right side - Regret.
    """
    if why := unsized(constants):
        return Bound(why=why)
    record, G, D = policy.record, constants["lipschitz"], constants["diameter"]
    if np.any(np.asarray(record.reach) < D * (1.0 - 1e-12)):
        return Bound(why=f"the domain's diameter is {D:.4g}, more than the policy was told")
    path = constants.get("path")
    known = path if constants.get("affine") and constants.get("constraints", 1) == 1 else None
    shared = constants.get("feasible") is not None
    behind = at_least(constants, G * D * t) if shared else np.inf

    def one(reach: float, told: float, first: float, behind: float) -> tuple[float, float, float, str]:
        """Regret, against the path too, CCV (infinite: not bounded) and why, of one run."""
        bound = dynamic_bound(t, lipschitz=G, diameter=reach, best_path=known, first=first, told=told)
        ccv, least = np.inf if bound.ccv is None else float(bound.ccv), max(told, first)
        ccv = ccv if least == 0.0 else min(ccv, G * (right_side(t, G, reach, 0.0, told) + behind) / (TOLL * least))
        against = min(right_side(t, G, reach, path or 0.0, told), G * D * t)
        return min(float(bound.regret or 0.0), G * D * t), against, min(ccv, G * D * t) if np.isfinite(ccv) else ccv, bound.why

    given = (flat(value) for value in (record.reach, record.floor, constants.get("first", 0.0), behind))
    regret, against, ccv, whys = (np.array(part) for part in np.vectorize(one, otypes=[float, float, float, object])(*given))
    bounded = bool(np.all(np.isfinite(ccv)))
    why = str(whys.flat[0]) if shared else PATHS_ALONE if bounded else NOT_SHARED
    return Bound(
        flat(regret) if shared else None,
        ccv=flat(ccv) if bounded else None,
        dynamic=None if path is None else flat(against),
        why="" if shared and bounded else why,
    )


@registered(
    reference="Supantha & Sinha, ALT 2026",
    regret="O(sqrt((1 + P) T)) against every path of length P",
    violation="O(sqrt((1 + P*) T)), P* of each round's best actions",
    bound=bound_of,
    reduces="max-distance",
    cost="26 projections, 26 halfspaces, 1 nearest point",
)
def dynamic(
    domain: Domain,
    *,
    lipschitz: Setting | None = None,
    diameter: Setting | None = None,
    **through: Unpack[Through],
) -> Dynamic:
    """Regret against every path at once; no action has to be feasible for long.

    Parameters
    ----------
    lipschitz
        The steepest that a cost is anywhere on the domain. Default: the steepest that was seen so far. Values:
        above 0. Unit: cost per unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    """
    floor = told("lipschitz", lipschitz, 0.0)
    return Dynamic(domain, STEPS, AdaHedge(domains.Simplex(len(STEPS))), diameter_of(domain, diameter), floor)

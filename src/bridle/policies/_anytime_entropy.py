"""`anytime` on a simplex with entropy in place of Euclid's distance: ln K in place of K, for mixtures of many rules.

The domain is a simplex, or several equal ones side by side. A gradient p has the length |p| = mass sqrt(sum of (max p_i - min p_i)^2 over
the simplices). c^2 is the sum of 4 + ln K over the simplices, lam = 1/(2 c^2), and V is 10 over the length of the first gradient. With
dist_t = (g_t)^+ / |grad g_t| (of several constraints the largest) and n_t = grad g_t / |grad g_t|:

    Q_t = Q_{t-1} + dist_t^2,      v_t = V grad f_t(x_t) + 2 lam e^{lam Q_t} dist_t n_t

AdaHedge steps on v_t. Then its losses grow by mu n_t, with the largest mu for which it still is on or outside the halfspace
<n_t, x> <= <n_t, x_t> - g_t / |grad g_t|; then likewise for those of the last 20 violated halfspaces that it still violates, the
farthest first.

Between limits it goes back to the cheapest corner sooner than projections do: where limits are rare and strong, Euclid's form violates
less.

Guarantee: `entropic_bound`; for every t and every feasible u, with R = c sqrt(sum |grad f_s|^2) and F_t = sum (f_s(u) - f_s(x_s)),

    Regret_t(u) <= R + 1/(2V),      sum dist_s^2 <= 2 c^2 ln(2 + 2 V (R + F_t)),      CCV_t <= max |grad g_s| sqrt(t sum dist_s^2).
Reference: bridle (this file).

Proof. Every feasible u has <n_s, x_s - u> >= dist_s, and one AdaHedge for each simplex has regret at most c sqrt(sum |v_s|^2) in all
(Cauchy and Schwarz over the simplices). |.| is a seminorm and |n_s| = 1, so the proof of `bridle.policies._anytime` holds with c^2 in place
of 2 D^2:  V Regret_t + (1 - c^2 lam) e^{lam Q_t} - 1 <= V R.  The halfspace step is an item z = mu n that AdaHedge is fed between two
rounds and that is charged at the weights w' after it. As a function of s, the mix loss of s z is concave, is 0 at 0, and has slope <w', z>
at 1: so it is <w', z> or more, and Delta need not grow. And <z, x' - u> >= 0, because x' is still on or outside a halfspace that holds u.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=300, dim=8, domain="simplex")
>>> trace = bridle.play(bridle.policy("anytime-entropy", problem.domain), problem)
>>> trace.warnings, bool(bridle.ccv(trace) < 0.1 * bridle.ccv(bridle.play(bridle.policy_for("sinha2024", problem), problem)))
((), True)
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple, TypeVar, Unpack, cast

import numpy as np

from bridle import ops, records
from bridle.core import Alarm, Bound, Constants, Domain, Feedback
from bridle.domains.half_space_cut import iterate
from bridle.learners import AdaHedge, Hedge
from bridle.learners.base import over_groups
from bridle.learners.potentials import UNIT, ExponentialPotential
from bridle.ops import Array, Flag, Scalar, along, dot, exp, minimum, pos, ratio, scalar, where, worst
from bridle.policies.anytime_forms import SLACK, STEEPEST, TOUCH, missed_alarm, none_kept, remembered, slots_for
from bridle.policies.common import at_least, flat, most_behind, told, unmet, weight_of
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import Through, registered

R = TypeVar("R")
"""A record that a loop goes on with."""

MOST = 1000.0
"""A halfspace step changes no ratio of two weights by more than e to this."""

CLOSE = 1e-10
"""A halfspace step ends no farther outside than this."""

TRIES = 60
"""Newton's steps need six or so; half of what is left, where they lead outside of it, as many as this at most."""


class EntropicState(NamedTuple):
    """AdaHedge's state, Q, V, the units of exponent that all its losses are divided by, and what `AnytimeState` has of halfspaces."""

    learner: Any
    Q: Scalar
    V: Scalar
    units: Scalar
    A: Array | None
    b: Array | None
    slot: Scalar | None
    rounds: Scalar
    infeasible: Scalar


class TiltBracket(NamedTuple):
    """The exponent of a halfspace step: at `low` it is `over` outside, at `high` inside or as far as it may be; and what to try next."""

    low: Scalar
    high: Scalar
    over: Scalar
    guess: Scalar


class Passes(NamedTuple):
    """AdaHedge's state, and how far the farthest halfspace is away, with its row and level."""

    learner: Any
    over: Scalar
    row: Array
    level: Scalar


class EntropicAnytime(NamedTuple):
    """The policy; `slots` is None where there is no halfspace step."""

    learner: Any  # a Hedge, or several of them Grouped
    potential: ExponentialPotential
    V: Scalar | None
    slots: Array | None

    @property
    def domain(self) -> Domain:
        domain: Domain = self.learner.domain
        return domain

    @property
    def spread(self) -> float:
        """c^2: 4 + ln K for each simplex."""
        hedge = self._hedge
        return float(self.domain.dim // hedge.domain.dim * (4.0 + hedge.c))

    def init(self, x1: Array) -> EntropicState:
        zero = scalar(x1)
        V, kept = zero if self.V is None else self.V + zero, none_kept(x1, self.slots)
        return EntropicState(self.learner.init(x1), zero, V, zero, *kept, zero, zero)

    def decide(self, state: EntropicState) -> Array:
        x: Array = self.learner.decide(state.learner)
        return x

    def length(self, p: Array) -> Scalar:
        """|p|, by ranges."""
        parts = self._apart(p)
        s = along(parts, "max") - along(parts, "min")
        return self._hedge.domain.mass * (s if isinstance(self.learner, Hedge) else ops.sqrt(over_groups(cast(Array, s * s))))

    def update(self, state: EntropicState, feedback: Feedback) -> EntropicState:
        normals, distances, levels, missed = self.linearise(feedback)
        far, normal, level = self._farthest(distances, normals, levels)
        dist = minimum(pos(far), self._most)
        Q = state.Q + dist * dist
        units = self.potential.units(Q)
        V = where(state.V > 0.0, state.V, minimum(ratio(10.0, self.length(feedback.df)), STEEPEST))
        v = V * exp(-UNIT * units) * feedback.df + (2.0 * self.potential.slope(Q, units) * dist) * normal
        learner = self.learner.step(self.learner.rescale(state.learner, exp(UNIT * (state.units - units))), v)
        A, b, slot = state.A, state.b, state.slot
        if A is not None and b is not None and slot is not None:
            kept = (ops.join([normals, A], -2), ops.join([levels, b], -1)) if b.shape[-1] else (normals, levels)
            learner = self.sweep(learner, *kept, (normal, level))
            if b.shape[-1]:
                A, b, slot = remembered(A, b, slot, normal, level, far > TOUCH)
        rounds = state.rounds + 1.0
        infeasible = where(state.infeasible > 0.0, state.infeasible, missed * rounds)  # type: ignore[arg-type]
        return EntropicState(learner, Q, V, units, A, b, slot, rounds, infeasible)

    def linearise(self, feedback: Feedback) -> tuple[Array, Array, Array, Flag]:
        """Every constraint as <normal, x> <= level with a normal of length 1, how far it is away; and whether one misses the domain."""
        parts = self._apart(feedback.dg)
        mass, s = self._hedge.domain.mass, parts.max(-1) - parts.min(-1) if isinstance(parts, np.ndarray) else _ranges(parts)
        lengths, widest = (mass * s, mass * s) if isinstance(self.learner, Hedge) else (mass * ops.sqrt((s * s).sum(-1)), mass * s.sum(-1))
        distances, normals = ratio(feedback.g, lengths), ratio(1.0, lengths)[..., None] * feedback.dg
        levels = (normals @ feedback.x[..., None])[..., 0] - distances
        missed = (feedback.g > widest * SLACK).any(-1)
        return normals, distances, levels, missed if feedback.g.ndim == 1 else missed[..., None]

    def onto(self, learner: Any, normal: Array, level: Scalar) -> Any:
        """AdaHedge's state moved up to the halfspace <normal, x> <= level, or as far as it may be, from outside; else as it is."""
        outside = dot(normal, self.learner.decide(learner)) > level
        unit, may = self._unit(learner)

        def moved(exponent: Scalar) -> Any:
            return self.learner.tilted(learner, exponent * unit * self._hedge.domain.mass * normal)

        def tried(at: TiltBracket) -> TiltBracket:
            here = moved(at.guess)
            over = dot(normal, self.learner.decide(here)) - level
            still = over >= 0.0
            low, high = where(still, at.guess, at.low), where(still, at.high, at.guess)
            newton = at.guess + ratio(over - 0.5 * CLOSE, self._steepness(here, normal))
            within = (newton > low) & (newton < high)
            next_one = TiltBracket(low, high, where(still, over, at.over), where(within, newton, 0.5 * (low + high)))
            return _unless(done(at), at, next_one)

        def done(at: TiltBracket) -> Flag:
            return (at.over <= CLOSE) | (at.high <= at.low)

        zero = 0.0 * unit
        high = where(outside, cast(Scalar, MOST * may) + zero, zero)
        start = TiltBracket(zero, high, where(outside, 1.0 + zero, zero), zero)
        found = iterate(tried, start, TRIES, normal, done)
        return moved(found.low)

    def sweep(self, learner: Any, A: Array, b: Array, first: tuple[Array, Scalar] | None = None) -> Any:
        """AdaHedge's state moved onto the `first` halfspace, then onto the farthest of A x <= b until none is violated, or so often."""

        def looked(learner: Any) -> Passes:
            x = self.learner.decide(learner)
            far, row = worst((A @ x[..., None])[..., 0] - b, A)
            return Passes(learner, far, row, dot(row, x) - far)

        def once(at: Passes) -> Passes:
            return _unless(at.over <= TOUCH, at, looked(self.onto(at.learner, at.row, at.level)))

        start = looked(learner)
        if first is not None:
            row, level = first
            over = dot(row, self.learner.decide(learner)) - level
            mine = over > TOUCH
            start = Passes(learner, where(mine, over, start.over), where(mine, row, start.row), where(mine, level, start.level))
        return iterate(once, start, A.shape[-2] + 1, A, lambda at: at.over <= TOUCH).learner

    def halfspace(self, feedback: Feedback) -> tuple[Array, Scalar] | None:
        """The halfspace of a violated round, for others to `steer` by; None where it is not violated."""
        if self.slots is None:
            return None
        normals, distances, levels, _ = self.linearise(feedback)
        far, normal, level = self._farthest(distances, normals, levels)
        return (normal, level) if far > TOUCH else None

    def steer(self, state: EntropicState, A: Array, b: Array) -> EntropicState:
        """The state before its next decision, moved onto halfspaces found elsewhere: all hold every feasible action."""
        return state._replace(learner=self.sweep(state.learner, A, b))

    def certified_regret(self, state: EntropicState) -> float | None:
        """The proof's own upper bound on the regret so far: (AdaHedge's - 2 (e^{lam Q_t} - 1)) / V."""
        if state.units > 0.0:
            return None
        return float(ratio(float(self.learner.certified(state.learner)) - 2.0 * np.expm1(self.potential.lam * state.Q), float(state.V)))

    def certified_squares(self, state: EntropicState, squares: float, gain: float) -> float | None:
        """The most that Euclid's squared distances can add up to, with sum of squared lengths of cost gradients = `squares`.

        |p| is at most sqrt(2) mass times Euclid's length, so his distances are at most that times these.
        """
        theta = self.spread * self.potential.lam
        if np.any(theta >= 1.0):
            return None
        wide = 2.0 * self._hedge.domain.mass**2
        return float(wide * squared_distances(float(state.V), sqrt(self.spread * wide * squares) + gain, self.potential.lam, theta))

    def alarm(self, state: EntropicState) -> Alarm | None:
        return missed_alarm(state.infeasible)

    @property
    def _hedge(self) -> Hedge:
        hedge: Hedge = self.learner if isinstance(self.learner, Hedge) else self.learner.inner
        return hedge

    @property
    def _most(self) -> float:
        """The largest distance there is where some action is feasible: 1 for one simplex."""
        return sqrt(self.domain.dim // self._hedge.domain.dim)

    def _apart(self, p: Array) -> Array:
        parts: Array = p if isinstance(self.learner, Hedge) else self.learner.apart(p)
        return parts

    def _unit(self, learner: Any) -> tuple[Scalar, Flag]:
        """The loss that changes a ratio of weights by e, or less; and whether every simplex has such a one yet."""
        if isinstance(self.learner, Hedge):
            return learner.Delta / self._hedge.c, learner.Delta > 0.0
        largest, least = learner.Delta.max(-2), learner.Delta.min(-2)
        single = largest.ndim == 1
        return (largest[0] if single else largest) / self._hedge.c, (least[0] if single else least) > 0.0

    def _steepness(self, learner: Any, normal: Array) -> Scalar:
        """By how much <normal, x> falls with the exponent of a halfspace step: the variance of the normal under the weights."""
        x, n = self._apart(self.learner.decide(learner)), self._apart(normal)
        first = along(x * n, "sum")
        variance = pos(self._hedge.domain.mass * along(x * n * n, "sum") - first * first)
        if isinstance(self.learner, Hedge):
            return variance
        return over_groups(variance * ratio(learner.Delta.max(-2)[..., None], learner.Delta))

    def _farthest(self, distances: Array, normals: Array, levels: Array) -> tuple[Scalar, Array, Scalar]:
        far, normal = worst(distances, normals)
        _, row = worst(distances, levels[..., None])
        return far, normal, (row if distances.ndim > 1 else ops.first(row))


def _unless(done: Flag, old: R, new: R) -> R:
    """The new record, but of the runs that are done the old one. A single run is not asked again once it is done."""
    if isinstance(done, (bool, np.bool_)) or done.ndim == 0:
        return new
    return records.transform(lambda a, b: ops.where(done if a.ndim == done.ndim else done[..., None], a, b), old, new)


def _ranges(parts: Array) -> Array:
    xp = ops.namespace(parts)
    spread: Array = (xp.max(parts, axis=-1, keepdims=True) - xp.min(parts, axis=-1, keepdims=True))[..., 0]
    return spread


def squared_distances(V: Scalar, gain: Scalar, lam: Scalar, theta: Scalar) -> Scalar:
    """ln((1 + V gain) / (1 - theta)) / lam, with `gain` = R + F_t and theta = c^2 lam: sum dist^2 is no more.

    >>> float(squared_distances(3.0, 5.0, 0.1, 0.5)) == float(10.0 * np.log(32.0))
    True
    """
    value: Scalar = np.log((1.0 + V * gain) / (1.0 - theta)) / lam
    return value


def entropic_bound(policy: Configuration[EntropicAnytime], constants: Constants, t: float) -> Bound:
    """The proof above for any V and lam < 1/c^2; |p| <= sqrt(2) mass G. Where V was not given, the game's is in ``constants["V"]``."""
    if why := unmet(constants):
        return Bound(why=why)
    record = policy.record
    lam, theta = flat(record.potential.lam), flat(record.spread * record.potential.lam)
    if np.any(np.asarray(theta) >= 1.0):
        return Bound(why=f"lam = {float(np.max(lam)):.4g} is too large for a proof: c^2*lam = {float(np.max(theta)):.4g} must be below 1")
    longest, trivial = sqrt(2.0) * record._hedge.domain.mass * constants["lipschitz"], constants["lipschitz"] * constants["diameter"] * t
    R = sqrt(record.spread * t) * longest
    V = weight_of(record.V, constants)
    if V is None:
        regret = R + theta * max(longest / 10.0, 1.0 / STEEPEST)
        return Bound(
            flat(np.minimum(regret, trivial)), why="the violation bound depends on V, which the policy takes from the first gradient"
        )
    V = np.asarray(V)
    regret = R + theta * np.where(V > 0.0, 1.0 / np.where(V > 0.0, V, 1.0), np.inf)
    Q = squared_distances(V, R + at_least(constants, most_behind(constants, t)), lam, theta)
    ccv, squared = np.minimum(longest * np.sqrt(t * Q), trivial), np.minimum(longest**2 * Q, trivial**2 / t)
    return Bound(flat(np.minimum(regret, trivial)), ccv=flat(ccv), squared=flat(squared))


@registered(
    reference="The bridle developers, This library 2026",
    regret="O(sqrt(T log K))",
    violation="O(sqrt(T log T log K)), squared O(log T log K)",
    bound=entropic_bound,
    only_limits=True,
    reduces="max-distance",
    cost="2 softmax, 1 halfspace by bisection, 20 checked",
    domains=("simplex",),
)
def anytime_entropy(
    domain: Domain,
    *,
    V: Setting | None = None,
    lam: Setting | None = None,
    halfspace: bool = True,
    cuts: int | None = None,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> EntropicAnytime:
    """The default policy for mixtures of many corners: entropy in place of distances.

    Parameters
    ----------
    V
        The weight of the cost against violations. Default: 10 / |first gradient|. Values: above 0. Unit: 1 / cost.
    lam
        How fast the weight of violations grows. Default: 1 / (2 c^2), c^2 the sum of 4 + ln K over the simplices. Values: above 0.
    halfspace
        Step onto the revealed halfspaces.
    cuts
        How many of the last violated halfspaces to keep. Default: 20. Values: a whole number, 0 or above. Unit: halfspaces.
    constraints
        k, how many constraints a round reveals; only checked. Default: any number. Values: a whole number, 1 or above.
        Unit: constraints.
    """
    slots = slots_for(halfspace, cuts)
    record = EntropicAnytime(AdaHedge(domain), ExponentialPotential(1.0), told("V", V, None), slots)
    rate = told("lam", lam, 0.5 / record.spread)
    return record._replace(potential=ExponentialPotential(rate))

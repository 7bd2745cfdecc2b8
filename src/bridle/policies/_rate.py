"""Limits on how often: at most a share eps_i of the counted rounds violates g_i <= 0.

A learner mixes rules, and a level for each limit (`levels`) says how much caution to add, so that the share comes out as asked on every
stream. The rules are the user's, or those of `trackers`. y = A w is their mixture (the base action), m the levels, J the rows grad g_i last
revealed, s the scales of the limits:

    x    = P_X(y - J^+ (phi(m) s)),   phi(m) = m for |m| <= 1, sign(m) e^{|m|-1} beyond;   from the highest level M on: x = the safe action
    e_i  = g_i(x) + <grad g_i(x), y - x>                                                      the limits, linearised, at the base action
    the learner gets  A' (grad f + sum_i (pi_i/eps_i) [e_i > 0] grad g_i)                     at y, not at x
    m_i <- m_i + eta ([g_i > 0] - eps_i)                           g_i at what was played; see `levels` for its floor and its freeze
    s_i <- 0.95 s_i + 0.05 |e_i|,     pi = argmin_{pi >= 0} |grad f + sum_i pi_i grad g_i|^2  from running means, >= 0.1 |grad f|/|grad g_i|

With the price pi the pinball slope pi/eps makes the learner's own rate come out near eps, and the level corrects the rest. (Where not every
round is counted, the slope is pi/eps times all rounds over the counted ones.) The learner must be fed at y: fed at x, learner and level
would be two integrators of one error, and fight. phi grows so fast that M = 8 is 1096 scales: nothing has to be known of the size of the
box. A level that could not lower the action any further does not fall, so that what comes after a quiet time finds it where it can answer.
A limit whose value and gradient are both 0 was not revealed in that round, and is not counted. With ``form="any"`` one level is for the
rounds in which any limit is violated.

Guarantee: `levels.most_violations`, for each limit, whatever the stream does: with the defaults at most eps n + 80 + (1 - eps) violations
    in n counted rounds, plus 1 - eps for each in which even the safe action violated; and the identity in whole numbers at every time.
    Without a safe action the identity alone. Cost: `Rate.cost_gap`. That the cost comes near the cheapest with this rate cannot be
    promised on every stream (S. Mannor, J. Tsitsiklis, J. Y. Yu, JMLR 2009).
Reference: bridle (this file and `levels`); I. Gibbs, E. Candes, NeurIPS 2021, for the level; P. Gaillard, G. Stoltz, T. van Erven, COLT
    2014, for the learner.

Cost. <grad f, A w> + sum_i (pi_i/eps_i) (e_i(A w))^+ is convex in w, and its gradient at the weights that were played is what the learner
is fed. So with b = x - y, and f convex, for every fixed mixture u of the rules

    sum f(x) - [f(x) + <grad f, A u + b - x>]  <=  sum_i (pi_i/eps_i) [(e_i(A u))^+ - (e_i(y))^+]  +  Regret(u):

the pinball regret against every mixture that is moved by the same margins. `cost_gap` is the largest Regret(u), as it is. If rounds are
alike and pi is the limits' multiplier, the least of the pinball is the cheapest mixture with the rate asked for, and the level stays near
0.

>>> import bridle
>>> session = bridle.Session(bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=0.05, safe=[40.0]))
>>> for demand in 10.0 + np.random.default_rng(0).standard_normal(2000):
...     x = session.decide()
...     session.observe(f=float(x[0]), df=[1.0], g=float(demand - x[0]), dg=[-1.0])
>>> bool(abs(session.rates[0].measured - 0.05) < 0.005)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np

from bridle import domains, learners, ops, showing, validate
from bridle.core import Bound, Constants, Domain, Feedback, InputError
from bridle.ops import Array, Scalar, along, combine, dot, maximum, norm, pos, ratio, scalar, vector, where
from bridle.policies.entry import Configuration, Setting
from bridle.policies.levels import Level, LevelState, Tally, make_level, most_violations, zero_or_one
from bridle.policies.registry import Through, registered
from bridle.policies.round_maps import RuleMixture
from bridle.policies.trackers import Trackers, TrackerState, each_row, entry_of, make_trackers, shift

STEP, TOP, BOTTOM = 0.1, 8.0, -3.0
"""eta, M and the floor of the level."""

MEMORY = 0.05
"""The weight of a round in running means."""

LEAST_PRICE = 0.1
"""The price is at least this part of |grad f| / |grad g|."""

SWEEPS = 3
"""Of coordinate descent on the prices, each round from where the last one ended."""

STEEPEST = 40.0
"""phi grows no further from this level on: only where no safe action is known can a level come there."""

STILL = 1e-6
"""An action did not follow a step where it moved by no more than this part of it."""

FORMS = ("each", "any")
"""Whether each limit has a share of its own, or one share is for the rounds in which any is violated."""


class Prices(NamedTuple):
    """Running means of <dg_i, dg_j>, of -<dg_i, df> and of |df|^2, and the prices that fit them best."""

    gram: Array
    pull: Array
    length: Scalar
    best: Array

    def update(self, df: Array, dg: Array) -> Prices:
        """With one more round: coordinate descent on |GF + sum_i pi_i DG_i|^2 over pi >= 0, from the last prices."""
        k = self.pull.shape[-1]
        products = ops.join([each_row(dg, dg[..., i, :])[..., None, :] for i in range(k)], -2)
        gram = (1.0 - MEMORY) * self.gram + MEMORY * products
        pull = (1.0 - MEMORY) * self.pull - MEMORY * each_row(dg, df)
        length = (1.0 - MEMORY) * self.length + MEMORY * dot(df, df)
        best = [entry_of(self.best, i) for i in range(k)]
        for _ in range(1 if k == 1 else SWEEPS):
            for i in range(k):
                off = entry_of(pull, i)
                for j in range(k):
                    off = off - gram[..., i, j : j + 1] * best[j]
                best[i] = pos(best[i] + ratio(off, gram[..., i, i : i + 1]))
        return Prices(gram, pull, length, ops.join(best, -1))

    @property
    def value(self) -> Array:
        """The prices, none of them too small to be felt."""
        own = ops.join([self.gram[..., i, i : i + 1] for i in range(self.pull.shape[-1])], -1)
        return maximum(self.best, LEAST_PRICE * ops.sqrt(ratio(self.length, own)))


class RateState(NamedTuple):
    """What a round is played from, and what was seen.

    `learner` weighs the `proposals` of the rules, one a row, and `base` is their mixture; the levels; the last rows of the limits, their
    scales and prices; how many rounds there were; and what the built-in rules go by (None with the user's).
    """

    learner: Any  # of the learner's own type
    proposals: Array
    base: Array
    level: LevelState
    rows: Array
    scale: Array
    prices: Prices
    rounds: Scalar
    tracks: TrackerState | None


class Made(NamedTuple):
    """What a decision was made of: the weights of the rules, what they proposed, and their mixture."""

    weights: Array
    proposals: Array
    base: Array


@showing.shown("Rate")
class Rate(NamedTuple):
    """A mixture of rules under levels.

    `safe` is None where no safe action is known; `any` is 1 where one level is for all limits together; `trackers` are the built-in rules,
    None where the user has some; `start` are the weights of the rules to begin with.
    """

    domain: Domain
    learner: learners.MLPolyLearner | learners.Grouped
    level: Level
    safe: Array | None
    any: Scalar
    trackers: Trackers | None
    start: Array

    @property
    def each(self) -> Array:
        return self.level.q

    def init(self, x1: Array) -> RateState:
        zero = vector(x1, self.each)
        learner = self.learner.init(vector(x1, self.start) + self.start)
        proposals = (vector(x1, self.rules)[..., :, None] + 1.0) * x1[..., None, :]
        prices = Prices(zero[..., :, None] * zero[..., None, :], zero, scalar(x1), zero)
        tracks = None if self.trackers is None else self.trackers.init(x1, zero)
        return RateState(
            learner, proposals, x1, self.level.init(x1), zero[..., :, None] * x1[..., None, :], zero, prices, scalar(x1), tracks
        )

    @property
    def rules(self) -> Array:
        """As long as there are rules."""
        groups = self.start.shape[-1] // self.domain.dim if self.apart else self.start.shape[-1]
        return self.start[..., :groups]

    @property
    def apart(self) -> bool:
        """Whether every coordinate has a mixture of its own."""
        return isinstance(self.learner, learners.Grouped)

    def decide(self, state: RateState) -> Array:
        x = self.domain.project(state.base - shift(state.rows, phi(self.level.of(state.level)) * state.scale))
        if self.safe is None:
            return x
        forced = along(self.level.at_top(state.level), "max") > 0.0
        return where(ops.concrete(forced), self.safe + 0.0 * x, x)

    def update(self, state: RateState, feedback: Feedback) -> RateState:
        return self.learn(state, feedback, self.learner.decide(state.learner))

    def update_played(self, state: RateState, feedback: Feedback, played: Array) -> RateState:
        """The state after a round in which something else was played: what counts are the values of the limits there."""
        return self.learn(state, feedback, self.learner.decide(state.learner), played)

    def learn(self, state: RateState, feedback: Feedback, weights: Array, played: Array | None = None) -> RateState:
        """The state after a round in which the rules had these weights; its proposals and base action are the state's.

        `played` are the values of the limits at what was played, where that was not the decision: they say what was violated.
        """
        x, df, g, dg = feedback.x, feedback.df, feedback.g, feedback.dg
        prices, e = state.prices.update(df, dg), g + each_row(dg, state.base - x)
        sloped = (dg * dg).sum(-1) > 0.0
        known = zero_or_one(sloped | (g != 0.0), g)
        safe = False if self.safe is None else norm(x - self.safe) == 0.0
        over = zero_or_one((g if played is None else played) > 0.0, g)
        counted, violated, stuck = self.together(known, over, self.stuck(state, x))
        level, rounds = self.level.move(state.level, violated, counted, safe, stuck), state.rounds + 1.0
        grad = df + combine(self.slopes(prices, level, rounds) * (e > 0.0), dg)
        learner: Any = self.learner.step_at(state.learner, self.losses(state.proposals, grad), weights)
        rows = where(sloped[..., None], dg, state.rows)
        tracks, proposals = state.tracks, state.proposals
        if self.trackers is not None and tracks is not None:
            tracks = self.trackers.update(tracks, self.domain, x, g, dg, grad)
            proposals = self.trackers.propose(tracks, self.domain, rows)
        return RateState(
            learner,
            proposals,
            self.mix(self.learner.decide(learner), proposals),
            level,
            rows,
            state.scale + known * where(state.scale > 0.0, MEMORY, 1.0) * (abs(e) - state.scale),
            prices,
            rounds,
            tracks,
        )

    def slopes(self, prices: Prices, level: LevelState, rounds: Scalar) -> Array:
        """The pinball's slope of each limit: pi/eps, times as many rounds as there are for each that is counted.

        The cost is paid in all rounds, and the limit felt in those alone.
        """
        return prices.value * ratio(rounds, level.counted) / self.level.share

    def made(self, state: RateState) -> Made:
        """What the decision of this round is made of."""
        return Made(self.learner.decide(state.learner), state.proposals, state.base)

    def update_late(self, state: RateState, feedback: Feedback, made: Made, others: float, played: Array | None = None) -> RateState:
        """The state after feedback on a decision that was made some time ago, while `others` more wait; `played` is as for `learn`."""
        level = state.level._replace(open=maximum(state.level.open, others))
        after = self.learn(state._replace(proposals=made.proposals, base=made.base, level=level), feedback, made.weights, played)
        return after if self.trackers is not None else self.propose(after, state.proposals)

    def begin(self, state: RateState, weights: Array) -> RateState:
        """Before the first round: with these weights of the rules."""
        return state._replace(learner=self.learner.init(weights))

    def weights(self, state: RateState) -> Array:
        """What each rule is worth at present."""
        return self.learner.decide(state.learner)

    def propose(self, state: RateState, proposals: Array) -> RateState:
        """With what the user's rules propose for the coming round, one a row."""
        return state._replace(proposals=proposals, base=self.mix(self.weights(state), proposals))

    def mix(self, w: Array, proposals: Array) -> Array:
        """The mixture of what is proposed."""
        if not self.apart:
            return combine(w, proposals)
        columns = ops.namespace(proposals).swapaxes(proposals, -1, -2)
        mixture: Array = (w.reshape(columns.shape) * columns).sum(-1)
        return mixture

    def losses(self, proposals: Array, grad: Array) -> Array:
        """The linearised losses of the rules: the gradient with respect to their weights."""
        if not self.apart:
            return each_row(proposals, grad)
        columns = ops.namespace(proposals).swapaxes(proposals, -1, -2)
        losses: Array = (columns * grad[..., None]).reshape((*grad.shape[:-1], self.start.shape[-1]))
        return losses

    def together(self, counted: Array, violated: Array, stuck: Array) -> tuple[Array, Array, Array]:
        """Which limits a round counts for, which it violates, and which are stuck; the same for all where one level is for all."""
        own = 1.0 - self.any
        return (
            own * counted + self.any * along(counted, "max"),
            own * violated + self.any * along(violated * counted, "max"),
            own * stuck + self.any * along(stuck, "min"),
        )

    def stuck(self, state: RateState, x: Array) -> Array:
        """For each limit 1 where a lower level would not move the action: its step, from x, ends at x again."""
        parts = []
        for i in range(self.each.shape[-1]):
            row = state.rows[..., i, :]
            step = ratio(self.level.step * entry_of(state.scale, i), dot(row, row)) * row
            far, length = norm(self.domain.project(x + step) - x), norm(step)
            parts.append((far <= STILL * length) * (length > 0.0) + 0.0 * entry_of(state.scale, i))
        return ops.join(parts, -1)

    def cost_gap(self, state: RateState) -> Scalar:
        """The regret of the mixture against the best fixed one, in linearised pinball cost: what the line on cost has at the most."""
        return self.learner.certified(state.learner)

    def tally(self, state: RateState) -> Tally:
        """What a session reports of the limits."""
        part = slice(0, 1) if self.any else slice(None)
        level, share = state.level, self.level.share
        if self.safe is None:
            most = np.full(np.shape(share), np.inf)
        else:
            top = self.level.top * (1.0 + level.open)
            most = np.asarray(most_violations(share, level.counted, top, 0.0, level.open, level.unavoidable))
        counts = (share, level.violated, level.counted, level.unavoidable, most, self.level.identity(level))
        asked, violated, counted, unavoidable, allowed, identity = (np.asarray(each)[..., part] for each in counts)
        return Tally(asked, violated, counted, unavoidable, allowed, identity, bool(self.any))


def phi(m: Array) -> Array:
    """m for |m| <= 1, sign(m) e^{|m| - 1} beyond.

    >>> phi(np.array([0.5, 1.0, -3.0])).round(3)
    array([ 0.5  ,  1.   , -7.389])
    """
    size = abs(m)
    return where(size <= 1.0, m, where(m > 0.0, 1.0, -1.0) * ops.exp(ops.minimum(size, STEEPEST) - 1.0))


def rate_of_rules(domain: Domain, through: RuleMixture, **settings: Any) -> Rate:
    """The policy on rules of the user's own."""
    record: Rate = rate(domain, **settings).record
    return record._replace(learner=learners.MLPoly(through.inner), trackers=None, start=through.inner.center())


def rate_bound(policy: Configuration[Rate], constants: Constants, t: float) -> Bound:
    """None on sums of any kind: what is proved is how often a limit is violated, `levels.most_violations`."""
    return Bound(why="its limits are on how often, not on how much: session.rates has what is proved of them, and no cost is bounded")


@registered(
    reference="The bridle developers, This library 2026; Gibbs & Candes, NeurIPS 2021",
    regret="-",
    violation="-",
    bound=rate_bound,
    reduces="all",
    cost="3 projections, one of them of 20 points",
    vectors=("at_most", "safe"),
    actions=("safe",),
    mixed=rate_of_rules,
)
def rate(
    domain: Domain,
    *,
    at_most: float | Sequence[float] = 0.05,
    safe: Sequence[float] | None = None,
    constraints: int | None = None,
    step: Setting = STEP,
    form: Literal["each", "any"] = "each",
    **through: Unpack[Through],
) -> Rate:
    """Limits on how often: a share of rounds.

    Parameters
    ----------
    at_most
        The share of rounds that may violate a limit: one number, or one for each limit. Values: between 0 and 1.
        Unit: share of rounds.
    safe
        An action that keeps every limit whatever comes, to fall back on. Default: no fallback. Values: an action of
        the domain. Unit: action.
    constraints
        k, how many constraints a round reveals. Default: as many as at_most has numbers. Values: a whole number, 1
        or above. Unit: constraints.
    step
        How far one violation moves the level of caution. Values: above 0. Unit: levels a violation.
    form
        What counts as a violation. Values: each (every limit has its share) or any (limits share one).
    """
    shares = validate.array("at_most", at_most).reshape(-1)
    k = len(shares) if constraints is None else constraints
    if len(shares) not in (1, k):
        raise validate.refused(f"at_most must be one share, or one for each of the {k} constraints", at_most)
    validate.one_of("form", form, FORMS)
    if form == "any" and len(set(shares.tolist())) > 1:
        raise validate.refused("at_most must be one share with form='any'", at_most)
    fallback = None if safe is None else validate.vector("safe", safe, domain.dim)
    if fallback is not None and not domain.contains(fallback):
        raise InputError(f"safe must lie in the domain; {validate.show(safe)} does not")
    level = make_level(np.broadcast_to(shares, k), TOP, BOTTOM, validate.positive("step", step))
    trackers = make_trackers(domain, k)
    simplex = domains.Simplex(trackers.size)
    return Rate(domain, learners.MLPoly(simplex), level, fallback, 1.0 if form == "any" else 0.0, trackers, simplex.center())

"""The sums of a run: `add` is one round, `accumulate` its closed form over a block of rounds that an engine returned."""

from __future__ import annotations

from typing import Generic, NamedTuple, cast

import numpy as np

from bridle.core import Feedback, Hint, Hintable, Policy, S, TriesPoints, capability
from bridle.ops import Array, Scalar, along, maximum, pos, scalar, vector


class RunningTotals(NamedTuple):
    """The sums that a session keeps: of the costs, of every constraint's violation, and of its values with their sign."""

    cost: Scalar
    hard: Array
    signed: Array

    def add(self, f: Scalar, g: Array, violation: Array | None = None) -> RunningTotals:
        """The sums after one more round with as many constraints; `violation` is (g)^+ where the caller has it already."""
        hard = self.hard + (pos(g) if violation is None else violation)
        return RunningTotals(self.cost + f, hard, self.signed + g)

    def padded(self, k: int) -> RunningTotals:
        """The sums of at least k constraints: those not seen so far have zeros."""
        more = k - len(self.hard)
        if more <= 0:
            return self
        return RunningTotals(self.cost, np.pad(self.hard, (0, more)), np.pad(self.signed, (0, more)))


class Totals(NamedTuple):
    """All sums of a game after so many rounds. Shapes: ``()`` and ``(k,)`` for one run, ``(B,)`` and ``(B, k)`` for B runs.

    Over the rounds so far: `cost` of f; `hard` of (g_i)^+; `soft` of g_i; `squared` of ((g_i)^+)^2; `worst` of (max_i g_i)^+. `queue` is
    the largest sum of g_i over an interval that ends now, `interval` over any interval (the empty one counts 0). `moved` is how far the
    decision has moved from round to round, where that is kept; its price, where there is one, is in `cost`.
    """

    rounds: Array
    cost: Array
    hard: Array
    soft: Array
    squared: Array
    worst: Array
    queue: Array
    interval: Array
    moved: Array | None = None

    def add(self, f: Scalar, g: Array) -> Totals:
        """The totals after one more round; `rounds` stops before the first round that makes a sum infinite or NaN."""
        axes, violation = self.queue.ndim, pos(g)
        worst, squared = along(violation, "max"), charged(violation * violation, axes)
        if violation.ndim > axes:
            worst = charged(cast(Array, worst), axes)
            worst = worst if axes > 1 else worst[0]
        g, violation = charged(g, axes), charged(violation, axes)
        queue = pos(self.queue + g)  # Lindley's recursion Q_t = (Q_{t-1} + g_t)^+
        cost, hard, soft = RunningTotals(self.cost, self.hard, self.soft).add(f, g, violation)
        finite = 0.0 * (cost + soft.sum(axis=-1, keepdims=soft.ndim > 1)) == 0.0  # a sum that is not finite stays so
        return Totals(
            self.rounds + finite * 1.0,
            cast(Array, cost),
            hard,
            soft,
            self.squared + squared,
            self.worst + worst,
            queue,
            maximum(self.interval, queue),
        )


def charged(values: Array, axes: int) -> Array:
    """What a round is charged: the values themselves, or, with an axis more than there should be, their average over several points.

    That axis is the one before the last.
    """
    return values if values.ndim <= axes else values.mean(axis=-2)


def moves(decisions: Array, last: Array | None) -> Array:
    """How far the decision moved to each of a block of rounds, from `last` to the first of them; in the first round of a game it does not.

    >>> moves(np.array([[0.0, 0.0], [3.0, 4.0]]), None)
    array([0., 5.])
    """
    steps = np.diff(decisions, axis=0, prepend=decisions[:1] if last is None else last[None])
    return np.asarray(np.sqrt((steps * steps).sum(axis=-1)))


def accumulate(before: Totals, f: Array, g: Array, steps: Array | None = None, price: float = 0.0) -> Totals:
    """`Totals.add` over a block of rounds at once: the totals after each of them, every field with a leading time axis.

    Where several points were played in a round, an axis of `g` before the last, the round is charged the average over them. `steps` is how
    far the decision moved to each round, where that is kept, and `price` what a unit of it costs.
    """

    def sums(start: Array, terms: Array) -> Array:
        terms = terms.copy()
        terms[0] += start
        return np.cumsum(terms, axis=0)

    moved = None if steps is None else sums(np.zeros(()) if before.moved is None else before.moved, steps)
    f = f if steps is None or not price else f + price * steps
    axes = before.hard.ndim + 1
    violation, g = np.maximum(g, 0.0), charged(g, axes)
    hard, drift = charged(violation, axes), np.cumsum(g, axis=0)
    # Lindley's recursion in closed form.
    queue = drift + np.maximum(before.queue, np.maximum.accumulate(-drift, axis=0))
    return Totals(
        before.rounds + np.arange(1.0, len(f) + 1.0),
        sums(before.cost, f),
        sums(before.hard, hard),
        sums(before.soft, g),
        sums(before.squared, charged(violation * violation, axes)),
        sums(before.worst, charged(violation.max(axis=-1, keepdims=True), axes)[..., 0]),
        queue,
        np.maximum(before.interval, np.maximum.accumulate(queue, axis=0)),
        moved,
    )


class SummingState(NamedTuple, Generic[S]):
    """The state of a policy, and the totals of its game."""

    policy: S
    sums: Totals


class Summing(NamedTuple, Generic[S]):
    """A policy that also keeps the totals of its game, for an engine that returns no rounds."""

    policy: Policy[S]
    each: Array  # (k,)

    def init(self, x1: Array) -> SummingState[S]:
        zero, each = cast(Array, scalar(x1)), vector(x1, self.each)
        return SummingState(self.policy.init(x1), Totals(zero, zero, each, each, each, zero, each, each))

    def decide(self, state: SummingState[S]) -> Array:
        return self.policy.decide(state.policy)

    def hinted(self, state: SummingState[S], hint: Hint) -> SummingState[S]:
        """The state with this hint, where the policy takes any."""
        told = capability(self.policy, Hintable)
        return state if told is None else state._replace(policy=told.hinted(state.policy, hint))

    def update(self, state: SummingState[S], feedback: Feedback) -> SummingState[S]:
        sums = state.sums.add(feedback.f, feedback.g)
        return SummingState(self.policy.update(state.policy, feedback), sums)


class SummingTried(Summing[S]):
    """`Summing` of a policy that tries points."""

    def points(self, state: SummingState[S]) -> Array:
        return cast(TriesPoints, self.policy).points(state.policy)


def summing(policy: Policy[S], each: Array) -> Summing[S]:
    """The policy with the totals of its game, `each` as long as a round has constraints."""
    return Summing(policy, each) if capability(policy, TriesPoints) is None else SummingTried(policy, each)


def empty(shape: tuple[int, ...], k: int) -> Totals:
    """The totals of no rounds."""
    zero, each = np.zeros(shape), np.zeros((*shape, k))
    return Totals(np.zeros(()), zero, each, each, each, zero, each, each)


def curve_rounds(rounds: int) -> Array:
    """The log-spaced rounds at which a game of so many rounds keeps its totals."""
    return np.unique(np.concatenate([[1.0, rounds], np.round(np.geomspace(1, rounds, 20 * len(str(rounds))))]))

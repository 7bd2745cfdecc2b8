"""Wrappers that turn any learner or policy into one for delayed feedback, or for an unknown horizon.

Both are records themselves, so they run on every engine and can be put under or over anything else: `Delayed(AdaGrad(...), 5)` is a
learner, `Delayed(policy, 5)` a policy, `Doubling(lambda T: ...)` whichever its argument makes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, log2
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from bridle import ops, records, showing, validate
from bridle.core import Domain, Feedback, InputError, Learner, Policy
from bridle.ops import Array, Scalar


class InnerLearner(Learner[object], Protocol):
    """A learner under a wrapper, which passes its state on without looking at it. One that is not scale-free need not have `rescale`."""

    @property
    def domain(self) -> Domain: ...

    @property
    def scale_free(self) -> bool: ...

    def rescale(self, state: object, factor: Scalar) -> object: ...


class InnerPolicy(Policy[object], Protocol):
    """A policy under a wrapper, which passes its state on without looking at it."""

    @property
    def domain(self) -> Domain: ...


class DelayedState(NamedTuple):
    """The inner state, what is still on its way (oldest first), and how many items have been sent."""

    inner: object
    waiting: Array | Feedback
    sent: Scalar


@showing.shown("Delayed")
class DelayedLearner(NamedTuple):
    """The gradient of round s reaches the inner learner after round s + delay; the delay is the length of `slots`."""

    inner: InnerLearner
    slots: Array

    @property
    def domain(self) -> Domain:
        return self.inner.domain

    @property
    def scale_free(self) -> bool:
        return self.inner.scale_free

    def init(self, x1: Array) -> DelayedState:
        return DelayedState(self.inner.init(x1), ops.namespace(x1).zeros((self.slots.shape[-1], *x1.shape)), 0.0)

    def decide(self, state: DelayedState) -> Array:
        return self.inner.decide(state.inner)

    def step(self, state: DelayedState, grad: Array, modulus: Scalar | None = None) -> DelayedState:
        _refuse(modulus)
        return _exchange(state, grad, self.inner.step)

    def rescale(self, state: DelayedState, factor: Scalar) -> DelayedState:
        gradients: Array = state.waiting  # type: ignore[assignment]
        return DelayedState(self.inner.rescale(state.inner, factor), factor * gradients, state.sent)


@showing.shown("Delayed")
class DelayedPolicy(NamedTuple):
    """The feedback of round s reaches the inner policy after round s + delay; the delay is the length of `slots`."""

    inner: InnerPolicy
    slots: Array
    each: Array  # (k,): its length is the number of constraints

    @property
    def domain(self) -> Domain:
        return self.inner.domain

    def init(self, x1: Array) -> DelayedState:
        lead, d, k = x1.shape[:-1], x1.shape[-1], self.each.shape[-1]
        shapes = ((*lead, d), (*lead, 1) if lead else (), (*lead, d), (*lead, k), (*lead, k, d))  # of x, f, df, g, dg
        zeros = [ops.namespace(x1).zeros((self.slots.shape[-1], *shape)) for shape in shapes]
        return DelayedState(self.inner.init(x1), Feedback(*zeros), 0.0)

    def decide(self, state: DelayedState) -> Array:
        return self.inner.decide(state.inner)

    def update(self, state: DelayedState, feedback: Feedback) -> DelayedState:
        _refuse(feedback.modulus)
        return _exchange(state, feedback._replace(modulus=None, round=None), self.inner.update)


def _refuse(modulus: Scalar | None) -> None:
    """Refuse a modulus; 0, which stands for a round without a cost, is passed on as a cost without a slope."""
    if modulus is not None and np.any(np.asarray(modulus) != 0.0):
        raise InputError(f"modulus cannot be given with delayed feedback (only gradients are queued), got {validate.show(modulus)}")


def _exchange(state: DelayedState, new: Array | Feedback, apply: Callable[..., object]) -> DelayedState:
    """Queue what is new, and apply what has waited long enough."""

    def shifted(leaf: Array, last: Scalar) -> Array:
        xp = ops.namespace(leaf, last)
        queue: Array = xp.concatenate([leaf[1:], xp.broadcast_to(xp.asarray(last), leaf.shape[1:])[None]])
        return queue

    def head(leaf: Array) -> Scalar:  # a float comes back as a float: the fast path of `ops` is chosen by type
        return float(leaf[0]) if isinstance(leaf, np.ndarray) and leaf.ndim == 1 else leaf[0]

    slots = next(iter(records.leaves(state.waiting).values())).shape[0]
    inner = records.choose(state.sent >= float(slots), apply(state.inner, records.transform(head, state.waiting)), state.inner)
    return DelayedState(inner, records.transform(shifted, state.waiting, new), state.sent + 1.0)


class DoublingState(NamedTuple):
    """The epoch, the rounds left in it, and the state of the epoch's algorithm."""

    epoch: Scalar
    left: Scalar
    inner: object


@showing.shown("Doubling")
class DoublingLearner(NamedTuple):
    """Epoch m runs the learner made for a horizon of lengths[m], from where epoch m - 1 stopped; the last epoch never ends."""

    stages: InnerLearner  # the learners of all epochs: each leaf with a leading axis over epochs
    lengths: Array

    @property
    def scale_free(self) -> bool:
        return False  # a restart forgets the scale

    @property
    def domain(self) -> Domain:
        return records.take(self.stages, 0.0).domain

    def init(self, x1: Array) -> DoublingState:
        return DoublingState(0.0, records.take(self.lengths, 0.0), records.take(self.stages, 0.0).init(x1))

    def decide(self, state: DoublingState) -> Array:
        return records.take(self.stages, state.epoch).decide(state.inner)

    def step(self, state: DoublingState, grad: Array, modulus: Scalar | None = None) -> DoublingState:
        return _next(self, state, records.take(self.stages, state.epoch).step(state.inner, grad, modulus))


@showing.shown("Doubling")
class DoublingPolicy(NamedTuple):
    """Epoch m runs the policy made for a horizon of lengths[m], from where epoch m - 1 stopped; the last epoch never ends."""

    stages: InnerPolicy  # the policies of all epochs, likewise
    lengths: Array

    @property
    def domain(self) -> Domain:
        return records.take(self.stages, 0.0).domain

    def init(self, x1: Array) -> DoublingState:
        return DoublingState(0.0, records.take(self.lengths, 0.0), records.take(self.stages, 0.0).init(x1))

    def decide(self, state: DoublingState) -> Array:
        return records.take(self.stages, state.epoch).decide(state.inner)

    def update(self, state: DoublingState, feedback: Feedback) -> DoublingState:
        return _next(self, state, records.take(self.stages, state.epoch).update(state.inner, feedback))


def _next(self: DoublingLearner | DoublingPolicy, state: DoublingState, inner: object) -> DoublingState:
    """The state after a round whose inner state is `inner`: in the same epoch, or at the start of the next."""
    left = state.left - 1.0
    over = left <= 0.0
    epoch: Scalar = state.epoch + 1.0 * over  # type: ignore[assignment]
    fresh = records.take(self.stages, epoch).init(records.take(self.stages, state.epoch).decide(inner))
    return DoublingState(epoch, ops.where(over, records.take(self.lengths, epoch), left), records.choose(over, fresh, inner))


def Delayed(inner: object, delay: int, constraints: int = 1) -> Any:
    """Run a learner or a policy on feedback that arrives a fixed number of rounds late.

    Parameters
    ----------
    inner : Learner or Policy
        What is run.
    delay : int
        How many rounds late feedback arrives, 0 or above; 0 gives `inner` back.
    constraints : int, default 1
        Of a policy: how many constraints a round reveals, 1 or above.

    Notes
    -----
    Guarantee: `bridle.learners.wrappers.delayed_ogd_regret`, for a learner with constant steps.

    Reference: Joulani, Gyorgy, Szepesvari 2016 for the setting.

    Examples
    --------
    >>> import bridle
    >>> learner = Delayed(bridle.OGD(bridle.Ball(1), step=0.5), delay=1)
    >>> state = learner.step(learner.init(np.zeros(1)), np.array([1.0]))
    >>> learner.decide(state), learner.decide(learner.step(state, np.array([0.0])))
    (array([0.]), array([-0.5]))
    """
    delay = validate.whole("delay", delay, 0)
    k = validate.whole("constraints", constraints)
    algorithm = _algorithm("inner", inner)
    if delay == 0:
        return algorithm
    if not hasattr(algorithm, "update"):  # (a policy may have a number called `step`)
        return DelayedLearner(cast(InnerLearner, algorithm), np.zeros(delay))
    return DelayedPolicy(cast(InnerPolicy, algorithm), np.zeros(delay), np.zeros(k))


def Doubling(make: Callable[[int], object], growth: str = "double", epochs: int = 40) -> DoublingLearner | DoublingPolicy:
    """Restart an algorithm on epochs that grow, so that no horizon has to be known.

    Parameters
    ----------
    make : callable
        Takes a horizon, a whole number of rounds, and gives a learner or a policy for it.
    growth : {"double", "square"}, default "double"
        Epochs of 1, 2, 4, ... rounds; or of 2, 4, 16, 256, ..., which keeps logarithmic regret logarithmic.
    epochs : int, default 40
        How many epochs are prepared, 1 or above.

    Notes
    -----
    Guarantee: `bridle.policies._sinha2024.doubling_bound`, for Algorithm 1 and both kinds of growth; `squaring_regret`, for "square" and
    whatever has logarithmic regret.

    Reference: the standard doubling trick, named in the paper's section 2.2.

    Examples
    --------
    >>> import bridle
    >>> ball = bridle.Ball(2)
    >>> policy = Doubling(lambda T: bridle.policy("sinha2024", ball, horizon=T, lipschitz=1.0))
    >>> bridle.Session(policy).decide()
    array([0., 0.])
    """
    validate.one_of("growth", growth, ("double", "square"))
    count = validate.whole("epochs", epochs)
    count = count if growth == "double" else min(count, SQUARES)
    lengths = [epoch_length(m, growth) for m in range(count)]
    if not callable(make):
        raise InputError(f"make must be callable with a horizon, not {validate.show(make)}")
    stages = [_algorithm(f"make({length})", make(length)) for length in lengths]
    if len({tuple(map(type, records.nodes(stage))) for stage in stages}) > 1:
        raise InputError("make must give one kind of algorithm for every horizon, made of the same parts")
    every_stage, ends = records.stack(stages), np.array([*lengths[:-1], np.inf])
    if not hasattr(stages[0], "update"):
        return DoublingLearner(cast(InnerLearner, every_stage), ends)
    return DoublingPolicy(cast(InnerPolicy, every_stage), ends)


def _algorithm(name: str, algorithm: object) -> object:
    """The record of a learner or a policy, also of one made by `bridle.policy`."""
    record = getattr(algorithm, "record", algorithm)
    if not (hasattr(record, "step") or hasattr(record, "update")):
        raise InputError(f"{name} must be a learner or a policy, not {validate.show(algorithm)}")
    return record


def delayed_ogd_regret(D: float, G: float, step: float, T: float, delay: float) -> float:
    """Constant step and delay: D^2 / (2 step) + step G^2 T (1/2 + delay).

    Proof. <p_s, x_s - u> = <p_s, x_{s+delay} - u> + <p_s, x_s - x_{s+delay}>; the first is an ordinary descent step, and between the two
    points lie `delay` steps of length at most step * G each.
    """
    return D * D / (2.0 * step) + step * G * G * T * (0.5 + delay)


SQUARES = 6
"""How many epochs of 2, 4, 16, ... rounds there are: the sixth has 2^32, and nobody outlives it."""


def epoch_length(m: int, growth: str) -> int:
    """How many rounds epoch m = 0, 1, ... is made for.

    >>> [epoch_length(m, "double") for m in range(4)], [epoch_length(m, "square") for m in range(4)]
    ([1, 2, 4, 8], [2, 4, 16, 256])
    """
    return int(2**m if growth == "double" else 2 ** (2**m))


def doubling_epochs(T: int, growth: str = "double") -> list[tuple[int, int]]:
    """The epochs of T rounds: (horizon the epoch was made for, rounds played in it).

    >>> doubling_epochs(6), doubling_epochs(30, "square")
    ([(1, 1), (2, 2), (4, 3)], [(2, 2), (4, 4), (16, 16), (256, 8)])
    """
    epochs: list[tuple[int, int]] = []
    left = int(T)
    while left > 0:
        length = epoch_length(len(epochs), growth)
        last = growth == "square" and len(epochs) == SQUARES - 1
        epochs.append((length, left if last else min(length, left)))
        left -= epochs[-1][1]
    return epochs


def squaring_regret(c: float, T: int) -> float:
    """Epochs of 2, 4, 16, 256, ... rounds, regret at most c (1 + ln n) after n rounds of each: c (3 ln T + log2 log2 T + 2 - ln 2) in all.

    Proof. Epoch m = 0, 1, ... has 2^(2^m) rounds. Let M be the one that round T lies in. Where M = 0, T <= 2, all is in one epoch: c (1 +
    ln T). Else epoch M - 1 is over, so T > 2^(2^(M-1)): 2^M ln 2 < 2 ln T and M < 1 + log2 log2 T. The epochs before M have had
    c (1 + 2^m ln 2) each, c (M + (2^M - 1) ln 2) together; epoch M at most c (1 + ln T). Epochs of 1, 2, 4, ... rounds would have
    c (ln T)^2 / ln 4 or so: that is what squares are for. Up to the end of the sixth epoch, for T <= 2^32.

    >>> round(squaring_regret(1.0, 1000), 2)
    25.35
    """
    if T <= 2:
        return c * (1.0 + log(T))
    return c * (3.0 * log(T) + log2(log2(T)) + 2.0 - log(2.0))

"""A wrapper that turns any learner or policy into one for an unknown horizon.

It is a record itself, so it runs on every engine and can be put under or over anything else: `Doubling(lambda T: ...)` is a learner or a
policy, whichever its argument makes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, log2
from typing import Any, NamedTuple

import numpy as np

from bridle import ops, records, showing, validate
from bridle.core import Domain, Feedback, InputError
from bridle.ops import Array, Scalar


class DoublingState(NamedTuple):
    """The epoch, the rounds left in it, and the state of the epoch's algorithm."""

    epoch: Scalar
    left: Scalar
    inner: object


@showing.shown("Doubling")
class Epochs(NamedTuple):
    """Epoch m runs what was made for a horizon of lengths[m], from where epoch m - 1 stopped; the last epoch never ends."""

    stages: Any  # the learners or the policies of all epochs: each leaf with a leading axis over epochs
    lengths: Array

    @property
    def domain(self) -> Domain:
        domain: Domain = records.take(self.stages, 0.0).domain
        return domain

    def init(self, x1: Array) -> DoublingState:
        return DoublingState(0.0, records.take(self.lengths, 0.0), records.take(self.stages, 0.0).init(x1))

    def decide(self, state: DoublingState) -> Array:
        x: Array = records.take(self.stages, state.epoch).decide(state.inner)
        return x


class DoublingLearner(Epochs):
    """Epochs of a learner."""

    __slots__ = ()

    @property
    def scale_free(self) -> bool:
        return False  # a restart forgets the scale

    def step(self, state: DoublingState, grad: Array, modulus: Scalar | None = None) -> DoublingState:
        return _next(self, state, records.take(self.stages, state.epoch).step(state.inner, grad, modulus))


class DoublingPolicy(Epochs):
    """Epochs of a policy."""

    __slots__ = ()

    def update(self, state: DoublingState, feedback: Feedback) -> DoublingState:
        return _next(self, state, records.take(self.stages, state.epoch).update(state.inner, feedback))


def _next(self: Epochs, state: DoublingState, inner: object) -> DoublingState:
    """The state after a round whose inner state is `inner`: in the same epoch, or at the start of the next."""
    left = state.left - 1.0
    over = left <= 0.0
    epoch: Scalar = state.epoch + 1.0 * over  # type: ignore[assignment]
    fresh = records.take(self.stages, epoch).init(records.take(self.stages, state.epoch).decide(inner))
    return DoublingState(epoch, ops.where(over, records.take(self.lengths, epoch), left), records.choose(over, fresh, inner))


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
        raise validate.refused("make must be callable with a horizon", make)
    stages = [_algorithm(f"make({length})", make(length)) for length in lengths]
    if len({tuple(map(type, records.nodes(stage))) for stage in stages}) > 1:
        raise InputError("make must give one kind of algorithm for every horizon, made of the same parts")
    every_stage, ends = records.stack(stages), np.array([*lengths[:-1], np.inf])
    return DoublingPolicy(every_stage, ends) if hasattr(stages[0], "update") else DoublingLearner(every_stage, ends)


def _algorithm(name: str, algorithm: object) -> object:
    """The record of a learner or a policy, also of one made by `bridle.policy`."""
    record = getattr(algorithm, "record", algorithm)
    if not (hasattr(record, "step") or hasattr(record, "update")):
        raise validate.refused(f"{name} must be a learner or a policy", algorithm)
    return record


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

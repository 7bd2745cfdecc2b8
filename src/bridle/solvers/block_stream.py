"""A stream of rounds in blocks that are each evaluated at one action in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

import numpy as np

from bridle import records
from bridle.core import Function, InputError, Round
from bridle.ops import Array

Blocks = Callable[[], Iterable[Round]]
"""A function that gives the rounds of a stream anew whenever it is called, in blocks: each a Round with a leading time axis."""

KEPT_BYTES = 2**28
"""Bytes of a stream that are kept; a longer one is replayed whenever it is needed."""


class NoComparator(InputError):
    """There is no best fixed feasible action, or none could be found. The message says why.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), bridle.problem("contradiction", horizon=50, dim=2))
    >>> bridle.regret(trace)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    bridle.solvers.block_stream.NoComparator: no action of the domain satisfies every constraint of the stream: ...
    """


class BlockStream:
    """The blocks of a stream, ready to be evaluated; kept in memory where they fit. It can be read again and again, as `blocks` can."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks, self.rounds, self.fits = blocks, 0, True
        self.stored: list[Round] = []
        self.nbytes = 0
        for block in map(batch, blocks()):
            if not block.convex:
                raise NoComparator("no best fixed action is sought: a cost or a constraint of the stream is not convex")
            leaves = [leaf for leaf in records.leaves(block).values() if isinstance(leaf, np.ndarray)]
            self.rounds += len(leaves[0]) if leaves else 1
            self.nbytes += sum(leaf.nbytes for leaf in leaves)
            self.fits = self.nbytes <= KEPT_BYTES
            self.stored.append(block)
            if not self.fits:
                self.stored.clear()
        self.stored = list(_merged(self.stored))
        if not self.rounds:
            raise InputError("blocks must give at least one round, not an empty stream")

    def __iter__(self) -> Iterator[Round]:
        return iter(self.stored) if self.fits else map(batch, self.blocks())

    __call__ = __iter__

    def total(self, x: Array) -> tuple[Array, Array]:
        """The value (1,) and gradient (1, d) of the total cost at x."""
        values, slopes = zip(*((np.sum(block.cost.value(x)), np.sum(block.cost.grad(x), axis=0)) for block in self), strict=True)
        return np.sum(values, keepdims=True), np.sum(slopes, axis=0)[None]

    def rounding(self, x: Array) -> float:
        """What the gradient of the total cost at x may be off by for having been added up."""
        return float(np.finfo(float).eps * sum(np.linalg.norm(block.cost.grad(x), axis=-1).sum() for block in self))


def batch(block: Round) -> Round:
    """A block that can be evaluated at one action in one call; a single round without a time axis is a block too, and so is a batch."""
    if all(np.ndim(leaf) for leaf in records.leaves(block).values()):
        return records.widen(records.transform(np.asarray, block), 1)
    return Round(_lift(block.cost), tuple(map(_lift, block.constraints)))


def _lift(function: Function) -> Function:
    """One function as a sequence of one."""
    if isinstance(function, SingleFunction):
        return function
    numbers = all(isinstance(leaf, (float, int, np.ndarray)) for leaf in records.leaves(function).values())
    return records.widen(records.stack([function]), 1) if numbers else SingleFunction(function)


def _merged(blocks: list[Round]) -> Iterator[Round]:
    """The rounds in fewer blocks: neighbours of one structure are joined."""

    def form(block: Round) -> tuple[list[type], list[object]]:
        leaves: list[object] = [leaf.shape[1:] if isinstance(leaf, np.ndarray) else id(leaf) for leaf in records.leaves(block).values()]
        return [type(node) for node in records.nodes(block)], leaves

    for _, same in groupby(blocks, form):
        alike = list(same)
        yield alike[0] if len(alike) == 1 else records.join(alike)


def constraint_values(block: Round, x: Array) -> Array:
    """Constraint values (n, k)."""
    parts = [np.asarray(constraint.value(x)) for constraint in block.constraints]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(np.asarray(block.cost.value(x))), 0))


def constraint_slopes(block: Round, x: Array) -> Array:
    """Constraint gradients (n, k, d)."""
    rows = [np.asarray(constraint.grad(x)) for constraint in block.constraints]
    parts = [row if row.ndim == 3 else row[:, None] for row in rows]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(np.asarray(block.cost.value(x))), 0, len(x)))


class SingleFunction:
    """A function that knows no time axis, as a sequence of one."""

    def __init__(self, function: Function) -> None:
        self.function = function

    @property
    def convex(self) -> bool:
        return self.function.convex

    def value(self, x: Array) -> Array:
        return np.reshape(self.function.value(x), (1, -1))

    def grad(self, x: Array) -> Array:
        return np.asarray(self.function.grad(x))[None]

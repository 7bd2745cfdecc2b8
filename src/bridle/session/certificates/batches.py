"""What certificates add up, a batch of rounds at a time: running sums, counts, and the halfspaces worth keeping.

None of it is needed before somebody asks. So a round is only written down, and a batch of rounds is read at once: in a few array
operations by NumPy, or compiled by an engine. How many rounds a batch has depends on the shape of a round alone (`length`).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple, Protocol

import numpy as np

from bridle import ops
from bridle.ops import Array, Scalar
from bridle.session.certificates.clocks import BATCH_ROUNDS
from bridle.session.certificates.feasibility import FLOOR, MOST_NUMBERS, NEAR, CenteredDomain

EACH = 4
"""Of a round with several constraints at most this many halfspaces are kept."""


def length(dim: int, k: int) -> int:
    """How many rounds with k constraints are read at once, a power of two: at most `BATCH_ROUNDS` halfspaces, and 3 MB of numbers."""
    rounds = BATCH_ROUNDS
    while rounds > 1 and (rounds * min(k, EACH) > BATCH_ROUNDS or rounds * width(dim, k) > MOST_NUMBERS):
        rounds //= 2
    return rounds


def width(dim: int, k: int) -> int:
    """How many numbers of a round are written down: decision, gradient of the cost, constraint values and gradients."""
    return 2 * dim + k * (dim + 1)


class Sums(NamedTuple):
    """Running sums over the observed rounds.

    `c` of <grad f, x>; `a` of grad f; `lengths` of |grad f|; `squares` of |grad f|^2. `cost` and `constraint` are the longest gradients,
    `scale` the largest constraint value, or slope times reach.
    """

    rounds: float
    c: float
    a: np.ndarray
    lengths: float
    squares: float
    cost: float
    constraint: float
    scale: float


class ViolatedSums(NamedTuple):
    """Running sums over the violated rounds, each with the constraint that is farthest away; its halfspace is <n, u> <= level.

    `A` of the unit normals n, `b` of the levels, `weight` how many, `sizes` of |level|, `distances` of dist^2. `violated` counts the
    rounds.
    """

    A: np.ndarray
    b: float
    weight: float
    sizes: float
    distances: float
    violated: float


class CurvedSums(NamedTuple):
    """Running sums over the rounds whose cost was said to have a modulus mu, with y its decision from the domain's middle.

    `modulus` of mu, `pull` of mu y, `squares` of mu |y|^2 / 2: an action at v from the middle has sum mu/2 |y - v|^2 =
    modulus/2 |v|^2 - <pull, v> + squares.
    """

    modulus: float
    pull: np.ndarray
    squares: float

    def add(self, moduli: np.ndarray, y: np.ndarray) -> CurvedSums:
        """The sums with more rounds."""
        pull = moduli.dot(y)
        squares = 0.5 * float(moduli.dot(np.einsum("ij,ij->i", y, y)))
        return CurvedSums(self.modulus + float(moduli.sum()), self.pull + pull, self.squares + squares)


class Counted(NamedTuple):
    """The sums, how many rounds have a violation between two levels, and the largest size of a constraint value."""

    sums: Sums
    limits: ViolatedSums
    between: Array
    largest: Scalar


class BatchFindings(NamedTuple):
    """What was found in a batch: some halfspaces <normal, u> <= level of every round, and 1 for each that is worth keeping (`chosen`).

    `lines` has the normal, the level, which of the round's constraints it is, and 1 where the round has a violation beyond rounding.
    `ruled` is 1 where one of them rules out the witness. `alone` is 1 for rounds that may prove by themselves that nothing is feasible,
    `proof` where there are such; `scales` is what rounding was measured by.
    """

    chosen: Array
    lines: Array
    ruled: Scalar
    proof: Scalar
    alone: Array
    scales: Array


class BatchReading(NamedTuple):
    """What comes of reading a batch."""

    counted: Counted
    findings: BatchFindings


class BatchMemory(Protocol):
    """What a reader has made of a batch, in memory of its own; good until the batch after the next is read."""

    @property
    def findings(self) -> BatchFindings:
        """What was found in the batch."""
        ...

    def settle(self) -> Counted:
        """What was counted up to this batch, as a record."""
        ...


class Parked(NamedTuple):
    """Halfspaces of a batch, as `BatchFindings` has them, and their rounds."""

    lines: Array
    rounds: Array


class BatchesRead(NamedTuple):
    """What reading a batch changes, mostly: what was counted, for how many rounds to pass over those that are nearly violated, how many
    rounds were read, and the halfspaces that wait to be kept. It is replaced by one assignment.
    """

    counted: Counted | BatchMemory
    idle: int
    rounds: int
    parked: tuple[Parked, ...] = ()


class FullBatch(NamedTuple):
    """A full batch as it was read: what a reader made of it, and the halfspaces that are worth keeping, if there are any."""

    memory: BatchMemory
    found: Parked | None


class BatchReader(Protocol):
    """Reads full batches faster than NumPy does."""

    def read(self, rows: Array, near: float, witness: Array | None, before: Counted | BatchMemory) -> BatchMemory | None:
        """What comes of a batch after what was counted before, which stays as it is; None where that is left to `read`."""
        ...


class Frame(NamedTuple):
    """What a batch is read with: the domain's sizes, the levels of violations to count, an action that has met every halfspace (NaN where
    none is known), and how far inside a halfspace a decision may be for it to be worth keeping, as a distance below zero.
    """

    place: CenteredDomain
    levels: Array
    witness: Array
    near: Scalar


def nothing(dim: int, levels: int) -> Counted:
    """The sums of no round."""
    none = np.zeros(dim)
    return Counted(
        Sums(0.0, 0.0, none, 0.0, 0.0, 0.0, 0.0, 0.0), ViolatedSums(none, 0.0, 0.0, 0.0, 0.0, 0.0), np.zeros(levels + 1), 0.0
    )  # fmt: skip


def unread(dim: int, k: int, levels: int) -> BatchReading:
    """Numbers in the shapes that reading a full batch gives."""
    n, e = length(dim, k), min(k, EACH)
    each, one = np.zeros((n, e)), np.zeros(n)
    return BatchReading(nothing(dim, levels), BatchFindings(each, np.zeros((n, e, dim + 3)), 0.0, 0.0, one, one))


def parts(rows: Array, dim: int) -> tuple[Array, Array, Array, Array]:
    """Decisions, gradients of the costs, constraint values and gradients of rounds that were written down."""
    n, k = rows.shape[0], (rows.shape[1] - 2 * dim) // (dim + 1)
    return rows[:, :dim], rows[:, dim : 2 * dim], rows[:, 2 * dim : 2 * dim + k], rows[:, 2 * dim + k :].reshape(n, k, dim)


def read(frame: Frame, before: Counted, rows: Array) -> BatchReading:
    """The sums with the rounds of a batch, and what was found in them; every choice of halfspaces is valid."""
    xp, where, (sums, limits, between, largest) = ops.namespace(rows), frame.place, before
    x, df, g, dg = parts(rows, len(sums.a))
    n, tiny = rows.shape[0], FLOOR * where.tolerance
    squares, slopes = _product(df, df), xp.sqrt(_product(dg, dg))
    lengths = xp.sqrt(squares)
    sizes, steepest = _most(abs(g)), _most(slopes)
    scales = xp.maximum(ops.running_max(xp.maximum(sizes, steepest * where.reach)), sums.scale)
    floors = tiny * scales  # what is below is rounding
    added = Sums(
        sums.rounds + float(n), sums.c + _product(df, x).sum(), sums.a + df.sum(0), sums.lengths + lengths.sum(),
        sums.squares + squares.sum(), xp.maximum(sums.cost, lengths.max()), xp.maximum(sums.constraint, steepest.max()), scales[-1],
    )  # fmt: skip
    sloped = slopes > 0.0
    safe = xp.where(sloped, slopes, 1.0)
    normals = dg / safe[..., None]
    far = xp.where(sloped, (g - floors[:, None]) / safe, -inf)
    levels = _product(normals, x[:, None, :]) - far
    usable, apart = xp.isfinite(levels), far  # not usable where there is no slope
    far, levels = xp.where(usable, far, -inf), xp.where(usable, levels, 0.0)
    worst = _most(g)
    violated = worst - floors > 0.0
    # The sums over violated rounds take the constraint that is farthest away.
    normal, level, away = _pick(far, normals, levels, far)
    outside = violated & (away > 0.0)
    off, level = xp.minimum(xp.where(outside, away, 0.0), where.diameter), xp.where(outside, level, 0.0)
    limits = ViolatedSums(
        limits.A + xp.where(outside[:, None], normal, 0.0).sum(0), limits.b + level.sum(), limits.weight + 1.0 * outside.sum(),
        limits.sizes + abs(level).sum(), limits.distances + (off * off).sum(), limits.violated + 1.0 * violated.sum(),
    )  # fmt: skip
    place = (frame.levels[None, :] < worst[:, None]).sum(-1)
    here = (place[:, None] == xp.arange(len(frame.levels) + 1)[None, :]) & violated[:, None]
    # Worth keeping: what is violated or nearly so, or rules out the action that met all others.
    beyond = _product(normals, frame.witness[None, None, :]) - levels
    there = xp.where(beyond > far, beyond, far)
    chosen = usable & (violated[:, None] | (there > frame.near))
    ruled = (usable & (beyond > NEAR * where.diameter)).any()
    alone = xp.where(sloped, apart > where.diameter, g > where.tolerance * xp.maximum(scales, 1.0)[:, None]).any(-1)
    counted = Counted(added, limits, between + 1.0 * here.sum(0), xp.maximum(largest, sizes.max()))
    kinds, flags = 0.0 * g + xp.arange(float(g.shape[1])), 0.0 * g + violated[:, None]
    lines = xp.concatenate([normals, levels[..., None], kinds[..., None], flags[..., None]], axis=-1)
    return BatchReading(counted, BatchFindings(*_choose(chosen, there, lines), 1.0 * ruled, 1.0 * alone.any(), alone * 1.0, scales))


def read_next(frame: Frame, before: BatchReading, rows: Array) -> BatchReading:
    """`read` as a step from one reading to the next, of constant shape, which engines can compile."""
    return read(frame, before.counted, rows)


def _product(a: Array, b: Array) -> Array:
    """Inner products over the last axis."""
    product: Array = np.einsum("...i,...i->...", a, b) if isinstance(a, np.ndarray) else (a * b).sum(-1)
    return product


def _most(values: Array) -> Array:
    """The largest entry of every round."""
    return values[:, 0] if values.shape[1] == 1 else values.max(-1)


def _pick(values: Array, *arrays: Array) -> list[Array]:
    """Of every round the entries at the place of its largest value; the lowest place on ties."""
    if values.shape[1] == 1:
        return [array[:, 0] for array in arrays]
    rounds, j = ops.namespace(values).arange(len(values)), values.argmax(-1)
    return [array[rounds, j] for array in arrays]


def _choose(chosen: Array, there: Array, lines: Array) -> tuple[Array, Array]:
    """Of every round at most `EACH` of those chosen, the farthest away at the decision or at the witness, and whether each counts."""
    if there.shape[1] <= EACH:
        return chosen * 1.0, lines
    xp = ops.namespace(there)
    left, places = xp.where(chosen, there, -inf), xp.arange(there.shape[1])
    flags, picked = [], []
    for _ in range(EACH):
        flags.append((left.max(-1) > -inf) * 1.0)
        picked += _pick(left, lines)
        left = xp.where(places == left.argmax(-1)[:, None], -inf, left)
    return xp.stack(flags, 1), xp.stack(picked, 1)

"""A set cut by a half-space: {x in X : <a, x> <= b}, for any X with a projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bridle import ops
from bridle.core import Domain
from bridle.domains.closed_form import EPS, BallSet, BoxSet, all_of, margin, surely
from bridle.domains.facets import Facets, facets, peeled
from bridle.ops import Array, Flag, Scalar, absolute, dot, namespace, norm, pos
from bridle.records import choose
from bridle.showing import call

S = TypeVar("S", bound=tuple[Any, ...])
SHOWN_CUTS = 2
"""A domain with at most so many cuts shows each of them."""

_Index: TypeAlias = int | NDArray[np.integer[Any]]


class BallCut(NamedTuple):
    """{x : |x - middle| <= radius, <a, x - middle> <= height}, with `a` of unit length and -radius < height < radius."""

    middle: Array
    radius: float
    a: Array
    height: float

    def __repr__(self) -> str:
        return call("Halfspace", self.a, self.height + dot(self.a, self.middle), within=BallSet(self.middle, self.radius))

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        # Either the ball's projection is below the cut, or the nearest point is in the disk where the cut meets the ball.
        onto = BallSet(self.middle, self.radius).project(x)
        below = dot(self.a, onto - self.middle) <= self.height
        if surely(below):
            return onto
        return ops.where(below, onto, self.on_disk(x - self.middle))

    def on_disk(self, away: Array) -> Array:
        """The nearest point to middle + away in the disk where the cut meets the ball."""
        along, rim = self._along(away), self._rim(self.height)
        return self._disk(along * ops.ratio(rim, ops.maximum(norm(along), rim)))  # 0 where the disk is a point

    def diameter(self) -> float:
        if self.dim == 1:
            return self.radius + self.height
        return 2.0 * self._rim(ops.minimum(self.height, 0.0))

    def center(self) -> Array:
        """The centre of the largest ball inside."""
        return self.middle + (0.5 * (self.height - self.radius)) * self.a

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the ball and below the cut, up to `tolerance` times the ball's (diameter + |centre|)."""
        away, slack = x - self.middle, margin(BallSet(self.middle, self.radius), tolerance)
        return all_of(norm(away) <= self.radius + slack) and all_of(dot(self.a, away) <= self.height + slack)

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        lowest = BallSet(self.middle, self.radius).linear_argmin(v)
        along = self._along(v)
        below = dot(self.a, lowest - self.middle) <= self.height
        return ops.where(below, lowest, self._disk(-along * ops.ratio(self._rim(self.height), norm(along))))

    def facets(self) -> Facets:
        return BallSet(self.middle, self.radius).facets().cut(self.a, float(self.height + self.a @ self.middle))

    def peeled(self) -> tuple[Domain, Array]:
        return BallSet(self.middle, self.radius), np.append(self.a, self.height + self.a @ self.middle)[None]

    def _along(self, u: Array) -> Array:
        """The part of `u` along the cut; taken twice, so that rounding at the scale of a far point does not show."""
        u = u - dot(self.a, u) * self.a
        return u - dot(self.a, u) * self.a

    def _rim(self, height: float) -> float:
        """The radius of the disk at `height`: 0 where the cut touches the ball, on whichever side rounding has put it."""
        return ops.sqrt(ops.pos((self.radius - height) * (self.radius + height)))

    def _disk(self, along: Array) -> Array:
        return self.middle + self.height * self.a + along


class DomainCut(NamedTuple):
    """{x in `within` : <a, x> <= b}, with `a` of unit length; `bottom` is the lowest point of `within` along a, `room` above it is left."""

    within: Domain
    a: Array
    b: float
    bottom: Array
    room: float
    middle: Array

    def __repr__(self) -> str:
        inside, cuts = self.within, 1
        while isinstance(inside, (BallCut, DomainCut)):
            inside, cuts = inside.within if isinstance(inside, DomainCut) else BallSet(inside.middle, inside.radius), cuts + 1
        return call("Halfspace", self.a, self.b, within=self.within) if cuts <= SHOWN_CUTS else f"<{inside!r} cut by {cuts} half-spaces>"

    @property
    def dim(self) -> int:
        return int(self.within.dim)

    def project(self, x: Array) -> Array:
        # Where the projection P(x) is above the cut, the nearest point is P(x - s a) for the s > 0 that brings it down to the cut.
        onto = self.within.project(x)
        over = ops.pos(dot(self.a, onto) - self.b)
        below = over <= 0.0
        if surely(below):
            return onto
        return ops.where(below, onto, self.crossing(x, onto, over))

    def diameter(self) -> float:
        """Of the smallest box that holds what is left of a box; else that of the domain that is cut."""
        if not isinstance(self.within, BoxSet):
            return self.within.diameter()
        sides, steep = self.within.high - self.within.low, abs(self.a)
        return norm(ops.where(steep * sides > self.room, ops.ratio(self.room, steep), sides))  # type: ignore[return-value]

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in `within` and below the cut, up to `tolerance` times its (diameter + |centre|)."""
        slack = margin(self.within, tolerance)
        return bool(self.within.contains(x, tolerance)) and all_of(dot(self.a, x) <= self.b + slack)

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        # Bisect the dual's one multiplier; where it changes sides, mix the minimisers on both sides so that they meet the cut.
        within, a, b = self.within, self.a, self.b
        free = within.linear_argmin(v)
        below = dot(a, free) <= b
        if surely(below):
            return free
        bottom = free + (self.bottom - free)  # one for each run
        start = _Ends(ops.scalar(free), ops.pos(dot(v, bottom - free)) / self.room, free, bottom)

        def halve(at: _Ends) -> _Ends:
            s = 0.5 * (at.low + at.high)
            point = within.linear_argmin(v + s * a)
            return choose(dot(a, point) > b, _Ends(s, at.high, point, at.beneath), _Ends(at.low, s, at.above, point))

        end = iterate(halve, start, 64, v, lambda at: at.high - at.low <= EPS * at.high)
        return ops.where(below, free, _meet(end.above, end.beneath, a, b))

    def facets(self) -> Facets | None:
        whole = facets(self.within)
        return None if whole is None else whole.cut(self.a, self.b)

    def peeled(self) -> tuple[Domain, Array]:
        base, cuts = peeled(self.within)
        return base, np.vstack([cuts, np.append(self.a, self.b)])

    def crossing(self, x: Array, onto: Array, over: Scalar) -> Array:
        """The nearest point to x, whose projection `onto` the set is `over` above the cut."""
        project, a, b = self.within.project, self.a, self.b
        if isinstance(self.within, BoxSet):
            return crossing_in_box(self.within, a, b, x, onto, over)

        # The height <a, P(x - s a)> - b falls at a rate of at most |a|^2 = 1, so s is `over` or more: that, where nothing is in the way.
        least = over * (1.0 + 4.0 * EPS)
        point = project(x - least * a)
        height = dot(a, point) - b
        met = height <= 0.0
        if surely(met):
            return point

        # By duality s is at most (|y - x|^2 - |onto - x|^2) / (2 (b - <a, y>)) for any y below the cut: one from onto towards bottom.
        down = self.bottom - onto
        share = ops.minimum(1.0, 2.0 * over / (over + self.room))
        most = (ops.pos(dot(onto - x, down)) + 0.5 * share * dot(down, down)) * ops.maximum(2.0 / (over + self.room), 1.0 / self.room)
        most = ops.where(met, least, ops.maximum(most, least))

        def tried(at: _Bracket, s: Scalar) -> _Bracket:
            point = project(x - s * a)
            height, reach = dot(a, point) - b, 0.6 * at.reach
            lower, upper = _Bracket(s, height, at.high, at.beneath, at.point, reach), _Bracket(at.low, at.above, s, height, point, reach)
            return choose(height > 0.0, lower, upper)

        def narrow(at: _Bracket) -> _Bracket:
            # A step of the ITP method (Oliveira and Takahashi 2020): the secant's point, pulled a little towards the middle so that both
            # ends move, and no farther from the middle than lets the width fall as 0.6^n. (Their 0.5^n turns into bisection for good
            # once its slack is spent, which functions with steps, those of far points, do at once.)
            half = 0.5 * (at.high - at.low)
            middle = at.low + half
            s = at.low + 2.0 * half * ops.ratio(at.above, at.above - at.beneath)
            s = s + _clip(middle - s, ops.maximum(0.8 * half * half / width, 2.0 * EPS * at.high))
            return tried(at, middle + _clip(s - middle, at.reach - half))

        # Where the set is thin the bounds can be many powers of ten apart: agree on the power first.
        lowest = project(x - most * a)
        at = _Bracket(least, height, most, dot(a, lowest) - b, lowest, most)
        at = iterate(lambda at: tried(at, ops.sqrt(at.low * at.high)), at, 5, x, lambda at: at.high <= 16.0 * at.low)
        width = ops.where(at.high > at.low, at.high - at.low, 1.0)
        at = at._replace(reach=at.high - at.low)
        return iterate(narrow, at, 72, x, lambda at: (at.high - at.low <= 4.0 * EPS * at.high) | (at.beneath == 0.0)).point


def slide_in_box(box: BoxSet, a: Array, b: Scalar, x: Array, onto: Array, over: Scalar) -> tuple[Scalar, Array, Flag]:
    """Two Newton steps towards the s with <a, P(x - s a)> = b, from s = 0, where P(x) = `onto` is `over` above the cut.

    It returns s, the point there, and whether that is the answer up to rounding. It is, unless coordinates meet or leave sides of the box
    again and again on the way.
    """
    s, point, height, zero = ops.scalar(x), onto, over, 4.0 * EPS * (norm(onto) + absolute(b))
    for _ in range(2):
        s = s + ops.ratio(height, dot(a, a * ((point > box.low) & (point < box.high))))
        point = box.project(x - s * a)
        height = dot(a, point) - b
        settled = absolute(height) <= zero
        if surely(settled):
            break
    return s, point, settled


def crossing_in_box(box: BoxSet, a: Array, b: Scalar, x: Array, onto: Array, over: Scalar) -> Array:
    """The point P(x - s a) of the box with <a, P(x - s a)> = b, where P(x) is `onto` and `over` above; where that is 0, any point."""
    _, point, settled = slide_in_box(box, a, b, x, onto, over)
    if surely(settled):
        return point

    def search(at: _Spot) -> _Spot:
        # <a, P(x - s a)> falls piecewise linearly in s; its kinks are where a coordinate meets a side of the box. Search the sorted kinks
        # for the piece that crosses b, then interpolate between its ends: that is exact, and stays in the box.
        y = x + 0.0 * at.point  # a compiler would move what no step changes out of the loop, and do it always
        xp, steep = ops.namespace(y, a), ops.where(a == 0.0, 1.0, a)
        kinks = (1.0 + 4.0 * EPS) * xp.sort(ops.pos(ops.join([0.0 * y[..., :1], (y - box.low) / steep, (y - box.high) / steep], -1)))
        last, each = kinks.shape[-1] - 1, BoxSet(box.low[..., None, :], box.high[..., None, :])
        k, span = (0 if y.ndim == 1 else xp.zeros((*y.shape[:-1], 1), dtype="int32")), last
        while span > 0:  # as many kinks at a time as make a matrix of a few thousand numbers
            some = min(span, max(1, 4096 // y.shape[-1]))
            stride = -(-span // (some + 1))
            tried = _pick(kinks, ops.minimum(k + stride * np.arange(1, some + 1), last))
            higher = (each.project(y[..., None, :] - tried[..., None] * a[..., None, :]) @ a[..., None])[..., 0] > b
            k = k + stride * (higher.sum() if y.ndim == 1 else higher.sum(axis=-1, keepdims=True))
            span = max(stride - 1, span - some * stride)
        above = box.project(y - _pick(kinks, k) * a)
        beneath = box.project(y - _pick(kinks, ops.minimum(k + 1, last)) * a)
        return at._replace(point=ops.where(settled, point, _meet(above, beneath, a, b)))

    # A loop of at most one step is how a compiler is told to do this only where it is needed.
    end = iterate(search, _Spot(point, settled | (over <= 0.0)), 1, x, lambda at: at.settled)
    return end.point


class _Spot(NamedTuple):
    """A point, and whether it is the answer."""

    point: Array
    settled: Flag


class _Bracket(NamedTuple):
    """Multipliers `low` and `high` with a height `above` and `beneath` zero, the point at the latter, and how wide it may still be."""

    low: Scalar
    above: Scalar
    high: Scalar
    beneath: Scalar
    point: Array
    reach: Scalar


class _Ends(NamedTuple):
    """Multipliers `low` and `high`, and the linear minimisers there: one above the cut, one beneath."""

    low: Scalar
    high: Scalar
    above: Array
    beneath: Array


def _meet(above: Array, beneath: Array, a: Array, b: Scalar) -> Array:
    """The point between the two with <a, x> = b."""
    bottom = dot(a, beneath)
    return beneath + ops.ratio(b - bottom, dot(a, above) - bottom) * (above - beneath)


def iterate(body: Callable[[S], S], state: S, n: int, like: Array, done: Callable[[S], Flag]) -> S:
    """`body` applied up to `n` times to the record `state`, until all runs are `done`; `body` must not change runs that are done.

    A compiler's namespace may offer ``bridle_loop(n, body, state, done)``; without one the loop is unrolled.
    """
    xp = ops.namespace(like, state[0])
    if xp is not np and hasattr(xp, "bridle_loop"):
        final: S = xp.bridle_loop(n, body, state, done)
        return final
    for _ in range(n):
        if surely(done(state)):
            break
        state = body(state)
    return state


def _clip(x: Scalar, size: Scalar) -> Scalar:
    return ops.maximum(-size, ops.minimum(x, size))


def _pick(sequence: Array, k: _Index) -> Array:
    """Element k of each run's sequence, or elements k."""
    picked: Array = sequence[k] if sequence.ndim == 1 else ops.namespace(sequence, k).take_along_axis(sequence, k, axis=-1)
    return picked


def sweep(A: Array, b: Array, y: Array) -> Array:
    """`y` projected on the halfspaces <A_i, y> <= b_i one after the other; rows of `A` have length 1 or 0.

    All are checked in one product, so that a point which violates none costs little.

    >>> import numpy as np
    >>> sweep(np.eye(3), np.array([1.0, 5.0, 1.0]), np.array([2.0, 2.0, 2.0]))
    array([1., 2., 1.])
    """
    if isinstance(A, np.ndarray) and isinstance(y, np.ndarray) and y.ndim == 1:
        over = A.dot(y) - b
        outside = int(np.count_nonzero(over > 0.0))
        if outside == 0:
            return y
        if outside > 2 and len(A) <= _FEW:
            moved: Array = y - _moves(A, over).dot(A)
            return moved
        start = int((over > 0.0).argmax())
        while True:
            y = y - float(over[start]) * A[start]
            rest = A[start + 1 :]
            over[start + 1 :] = rest.dot(y) - b[start + 1 :]
            later = over[start + 1 :] > 0.0
            if not later.any():
                return y
            start += 1 + int(later.argmax())

    def one(i: int, y: Array) -> Array:
        row, level = A[..., i, :], b[..., i] if b.ndim == 1 else b[..., i, None]
        return y - pos(dot(row, y) - level) * row

    each = getattr(namespace(A, b, y), "bridle_each", None)
    if each is not None:
        swept: Array = each(A.shape[-2], one, y)
        return swept
    for i in range(A.shape[-2]):
        y = one(i, y)
    return y


_FEW = 64
"""Up to this many halfspaces all inner products are computed at once: they tell what a projection on one does to the others."""


def _moves(A: Array, over: Array) -> Array:
    """How far a point moves along each row when it is projected on one after the other; it lies `over` outside of them."""
    products, left, moves = A.dot(A.T).tolist(), over.tolist(), np.zeros(len(A))
    for i in range(len(left)):
        if (far := left[i]) > 0.0:
            moves[i], row = far, products[i]
            for j in range(i + 1, len(left)):
                left[j] -= far * row[j]
    return moves

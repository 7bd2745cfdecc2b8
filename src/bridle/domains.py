"""Sets of admissible decisions: projections, linear minimisers, sizes.

Each is a NamedTuple of arrays, and every method works along the last axis: on one decision, on one per run, on any leading axes. All but
`Polyhedron` are plain arithmetic and compile. Three rules hold throughout: a point inside comes back bit for bit; a projection is in the
set up to rounding at the *set's* scale, however far the point; nothing branches on data inside a compiler. The public names are factories
that check what they are given.

>>> Ball(dim=2, radius=1.0).project(np.array([3.0, 4.0]))
array([0.6, 0.8])
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt, sqrt
from typing import Any, NamedTuple

import numpy as np

from bridle import ops, validate
from bridle.core import Domain, InputError
from bridle.ops import Array, dot, norm
from bridle.polyhedron import Polyhedron, PolyhedronSet
from bridle.records import choose

__all__ = ["Ball", "Box", "Halfspace", "L1Ball", "Polyhedron", "Product", "Simplex", "Spectrahedron"]

EPS = 2.0**-52


class BallSet(NamedTuple):
    """{x : |x - middle| <= radius}."""

    middle: Array
    radius: Array

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        away = x - self.middle
        distance = norm(away)
        return ops.where(distance <= self.radius, x, self.middle + away * (self.radius / ops.maximum(distance, self.radius)))

    def diameter(self) -> Array:
        return 2.0 * self.radius

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the ball, up to `tolerance` times (diameter + |centre|)."""
        return _all(norm(x - self.middle) <= self.radius + _slack(self, tolerance))

    def linear_min(self, v: Array) -> Array:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        return self.middle - v * ops.ratio(self.radius, norm(v))


class BoxSet(NamedTuple):
    """{x : low <= x <= high}."""

    low: Array
    high: Array

    @property
    def dim(self) -> int:
        return int(self.low.shape[-1])

    def project(self, x: Array) -> Array:
        return ops.minimum(ops.maximum(x, self.low), self.high)

    def diameter(self) -> Array:
        return norm(self.high - self.low)

    def center(self) -> Array:
        return 0.5 * self.low + 0.5 * self.high

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the box, up to `tolerance` times (diameter + |centre|) in each coordinate."""
        slack = _slack(self, tolerance)
        return _all((self.low - slack <= x) & (x <= self.high + slack))

    def linear_min(self, v: Array) -> Array:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        return ops.where(v > 0.0, self.low, self.high)


class SimplexSet(NamedTuple):
    """{x >= 0 : sum of x = mass}."""

    mass: Array
    middle: Array

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        top, level = _water(x, self.mass)
        # Where the sum is right up to rounding there is nothing to spread: leave what is not negative as it is.
        return ops.where(abs(top + level) <= 8.0 * EPS * self.mass, ops.pos(x), ops.pos((x - top) - level))

    def diameter(self) -> Array:
        return _across(self.mass, self.dim)

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the simplex, up to `tolerance` times (diameter + |centre|) in each coordinate and in the sum."""
        slack = _slack(self, tolerance)
        return _all(x >= -slack) and _all(abs(_each(x, "sum") - self.mass) <= slack)

    def linear_min(self, v: Array) -> Array:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        return self.mass * ops.onehot(v.argmin(axis=-1)[..., None], v)


class L1BallSet(NamedTuple):
    """{x : sum of |x - middle| <= radius}."""

    middle: Array
    radius: Array

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        away = x - self.middle
        sizes = abs(away)
        inside = _each(sizes, "sum") <= self.radius
        if _surely(inside):
            return x
        top, level = _water(sizes, self.radius)
        onto = self.middle + ops.namespace(away).copysign(ops.pos((sizes - top) - level), away)
        return ops.where(inside, x, onto)

    def diameter(self) -> Array:
        return 2.0 * self.radius

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the ball, up to `tolerance` times (diameter + |centre|) in the sum of |x - centre|."""
        return _all(_each(abs(x - self.middle), "sum") <= self.radius + _slack(self, tolerance))

    def linear_min(self, v: Array) -> Array:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        steepest = ops.onehot(abs(v).argmax(axis=-1)[..., None], v)
        return self.middle - self.radius * steepest * ops.namespace(v).sign(v)


class SpectrahedronSet(NamedTuple):
    """The positive semidefinite matrices of a given trace, each flattened to a vector row by row."""

    trace: Array
    middle: Array

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        matrix = _square(x)
        mirror = _transposed(matrix)
        values, vectors = ops.namespace(x).linalg.eigh(0.5 * (matrix + mirror))
        top, level = _water(values, self.trace)
        there = (abs(top + level) <= 8.0 * EPS * self.trace) & (values[..., :1] >= 0.0) & (matrix == mirror).all(axis=(-2, -1))[..., None]
        onto = (vectors * ops.pos((values - top) - level)[..., None, :]) @ _transposed(vectors)
        return ops.where(there, x, (0.5 * (onto + _transposed(onto))).reshape(x.shape))

    def diameter(self) -> Array:
        return _across(self.trace, isqrt(self.dim))

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the set, up to `tolerance` times (diameter + |centre|) in symmetry, eigenvalues and trace."""
        slack = _slack(self, tolerance)
        matrix = _square(np.asarray(x))
        if not (_all(np.isfinite(matrix)) and _all(abs(matrix - _transposed(matrix)) <= slack)):
            return False
        values = np.linalg.eigvalsh(0.5 * (matrix + _transposed(matrix)))
        return _all(values >= -slack) and _all(abs(values.sum(axis=-1) - self.trace) <= slack)

    def linear_min(self, v: Array) -> Array:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        matrix = _square(v)
        lowest = ops.namespace(v).linalg.eigh(0.5 * (matrix + _transposed(matrix)))[1][..., 0]
        return self.trace * (lowest[..., :, None] * lowest[..., None, :]).reshape(v.shape)


class ProductSet(NamedTuple):
    """The decisions whose consecutive parts are in one domain each."""

    domains: tuple[Any, ...]

    @property
    def dim(self) -> int:
        return sum(domain.dim for domain in self.domains)

    def project(self, x: Array) -> Array:
        return ops.join([domain.project(part) for domain, part in self._parts(x)], -1)

    def diameter(self) -> Array:
        return ops.sqrt(sum(domain.diameter() ** 2 for domain in self.domains))

    def center(self) -> Array:
        return ops.join([domain.center() for domain in self.domains], -1)

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every part of every row is in its domain, up to `tolerance` times that domain's scale."""
        return all(domain.contains(part, tolerance) for domain, part in self._parts(x))

    def linear_min(self, v: Array) -> Array:
        return sum(domain.linear_min(part) for domain, part in self._parts(v))

    def linear_argmin(self, v: Array) -> Array:
        return ops.join([domain.linear_argmin(part) for domain, part in self._parts(v)], -1)

    def _parts(self, x: Array) -> list[tuple[Any, Array]]:
        parts, start = [], 0
        for domain in self.domains:
            parts.append((domain, x[..., start : start + domain.dim]))
            start += domain.dim
        return parts


class BallCut(NamedTuple):
    """{x : |x - middle| <= radius, <a, x - middle> <= height}, with `a` of unit length and height above -radius."""

    middle: Array
    radius: Array
    a: Array
    height: Array

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        # Either the ball's projection is below the cut, or the nearest point is in the disk where the cut meets the ball.
        onto = BallSet(self.middle, self.radius).project(x)
        below = dot(self.a, onto - self.middle) <= self.height
        if _surely(below):
            return onto
        along, rim = self._along(x - self.middle), self._rim(self.height)
        return ops.where(below, onto, self._disk(along * ops.ratio(rim, ops.maximum(norm(along), rim))))

    def diameter(self) -> Array:
        if self.dim == 1:
            return self.radius + ops.minimum(self.height, self.radius)
        return 2.0 * self._rim(ops.minimum(self.height, 0.0))

    def center(self) -> Array:
        """The centre of the largest ball inside."""
        return self.middle + (0.5 * (ops.minimum(self.height, self.radius) - self.radius)) * self.a

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the set, up to `tolerance` times (diameter + |centre|)."""
        away, slack = x - self.middle, _slack(self, tolerance)
        return _all(norm(away) <= self.radius + slack) and _all(dot(self.a, away) <= self.height + slack)

    def linear_min(self, v: Array) -> Array:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        lowest = BallSet(self.middle, self.radius).linear_argmin(v)
        along = self._along(v)
        below = dot(self.a, lowest - self.middle) <= self.height
        return ops.where(below, lowest, self._disk(-along * ops.ratio(self._rim(self.height), norm(along))))

    def _along(self, u: Array) -> Array:
        """The part of `u` along the cut; taken twice, so that rounding at the scale of a far point does not show."""
        u = u - dot(self.a, u) * self.a
        return u - dot(self.a, u) * self.a

    def _rim(self, height: Array) -> Array:
        """The radius of the disk at `height`."""
        return ops.sqrt(ops.pos((self.radius - height) * (self.radius + height)))

    def _disk(self, along: Array) -> Array:
        return self.middle + self.height * self.a + along


class DomainCut(NamedTuple):
    """{x in `within` : <a, x> <= b}, with `a` of unit length; `bottom` is the lowest point of `within` along a, `room` above it is left."""

    within: Any
    a: Array
    b: Array
    bottom: Array
    room: Array
    middle: Array

    @property
    def dim(self) -> int:
        return int(self.within.dim)

    def project(self, x: Array) -> Array:
        # Where the projection P(x) is above the cut, the nearest point is P(x - s a) for the s > 0 that brings it down to the cut.
        onto = self.within.project(x)
        over = ops.pos(dot(self.a, onto) - self.b)
        below = over <= 0.0
        if _surely(below):
            return onto
        return ops.where(below, onto, self._crossing_in_box(x) if isinstance(self.within, BoxSet) else self._crossing(x, onto, over))

    def diameter(self) -> Array:
        """Of the smallest box that holds what is left of a box; else that of the domain that is cut."""
        if not isinstance(self.within, BoxSet):
            return self.within.diameter()
        sides, steep = self.within.high - self.within.low, abs(self.a)
        return norm(ops.where(steep * sides > self.room, ops.ratio(self.room, steep), sides))

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the domain that is cut and below the cut, up to `tolerance` times its (diameter + |centre|)."""
        slack = _slack(self.within, tolerance)
        return bool(self.within.contains(x, tolerance)) and _all(dot(self.a, x) <= self.b + slack)

    def linear_min(self, v: Array) -> Array:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        # Bisect the dual's one multiplier; where it changes sides, mix the minimisers on both sides so that they meet the cut.
        within, a, b = self.within, self.a, self.b
        free = within.linear_argmin(v)
        below = dot(a, free) <= b
        if _surely(below):
            return free
        bottom = free + (self.bottom - free)  # one for each run
        start = _Ends(ops.scalar(free), ops.pos(dot(v, bottom - free)) / self.room, free, bottom)

        def halve(at: _Ends) -> _Ends:
            s = 0.5 * (at.low + at.high)
            point = within.linear_argmin(v + s * a)
            ends: _Ends = choose(dot(a, point) > b, _Ends(s, at.high, point, at.beneath), _Ends(at.low, s, at.above, point))
            return ends

        end = _iterate(halve, start, 64, v, lambda at: at.high - at.low <= EPS * at.high)
        return ops.where(below, free, _meet(end.above, end.beneath, a, b))

    def _crossing_in_box(self, x: Array) -> Array:
        # <a, P(x - s a)> falls piecewise linearly in s; its kinks are where a coordinate meets a side of the box. Search the sorted
        # kinks for the piece that crosses b, then interpolate between its ends: that is exact, and stays in the box.
        box, a, b = self.within, self.a, self.b
        kinks = ops.join([0.0 * x[..., :1], ops.pos(ops.ratio(x - box.low, a)), ops.pos(ops.ratio(x - box.high, a))], -1)
        kinks = ops.namespace(kinks).sort(kinks)
        last = kinks.shape[-1] - 1
        k = 0 if x.ndim == 1 else ops.namespace(kinks).zeros((*kinks.shape[:-1], 1), dtype="int32")
        for step in (2**e for e in reversed(range(last.bit_length()))):
            ahead = ops.minimum(k + step, last)
            k = ops.where(dot(a, box.project(x - _pick(kinks, ahead) * a)) > b, ahead, k)
        above = box.project(x - _pick(kinks, k) * a)
        beneath = box.project(x - _pick(kinks, ops.minimum(k + 1, last)) * a)
        return _meet(above, beneath, a, b)

    def _crossing(self, x: Array, onto: Array, over: Array) -> Array:
        project, a, b = self.within.project, self.a, self.b

        # The height <a, P(x - s a)> - b falls at a rate of at most |a|^2 = 1, so s is `over` or more: that, where nothing is in the way.
        least = over * (1.0 + 4.0 * EPS)
        point = project(x - least * a)
        height = dot(a, point) - b
        met = height <= 0.0
        if _surely(met):
            return point

        # By duality s is at most (|y - x|^2 - |onto - x|^2) / (2 (b - <a, y>)) for any y below the cut: one from onto towards bottom.
        down = self.bottom - onto
        share = ops.minimum(1.0, 2.0 * over / (over + self.room))
        most = (ops.pos(dot(onto - x, down)) + 0.5 * share * dot(down, down)) * ops.maximum(2.0 / (over + self.room), 1.0 / self.room)
        most = ops.where(met, least, ops.maximum(most, least))

        def tried(at: _Bracket, s: Array) -> _Bracket:
            point = project(x - s * a)
            height, reach = dot(a, point) - b, 0.6 * at.reach
            lower, upper = _Bracket(s, height, at.high, at.beneath, at.point, reach), _Bracket(at.low, at.above, s, height, point, reach)
            kept: _Bracket = choose(height > 0.0, lower, upper)
            return kept

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
        at = _iterate(lambda at: tried(at, ops.sqrt(at.low * at.high)), at, 5, x, lambda at: at.high <= 16.0 * at.low)
        width = ops.where(at.high > at.low, at.high - at.low, 1.0)
        at = at._replace(reach=at.high - at.low)
        return _iterate(narrow, at, 72, x, lambda at: (at.high - at.low <= 4.0 * EPS * at.high) | (at.beneath == 0.0)).point


class _Bracket(NamedTuple):
    """Multipliers `low` and `high` with a height `above` and `beneath` zero, the point at the latter, and how wide it may still be."""

    low: Array
    above: Array
    high: Array
    beneath: Array
    point: Array
    reach: Array


class _Ends(NamedTuple):
    """Multipliers `low` and `high`, and the linear minimisers there: one above the cut, one beneath."""

    low: Array
    high: Array
    above: Array
    beneath: Array


def _meet(above: Array, beneath: Array, a: Array, b: Array) -> Array:
    """The point between the two with <a, x> = b."""
    bottom = dot(a, beneath)
    return beneath + ops.ratio(b - bottom, dot(a, above) - bottom) * (above - beneath)


def _iterate(body: Callable[[Any], Any], state: Any, n: int, like: Array, done: Callable[[Any], Array]) -> Any:
    """`body` applied `n` times to the record `state`; NumPy stops when all runs are `done`, which `body` must then leave as they are.

    A compiler's namespace may offer ``bridle_loop(n, body, state)``; without one the loop is unrolled.
    """
    xp = ops.namespace(like, state[0])
    if xp is not np and hasattr(xp, "bridle_loop"):
        return xp.bridle_loop(n, body, state)
    for _ in range(n):
        if _surely(done(state)):
            break
        state = body(state)
    return state


def _water(x: Array, mass: Array) -> tuple[Array, Array]:
    """How far to lower x until its positive part sums to `mass`, as two addends: the largest of x, and the rest.

    The rest is at least -mass, whatever the size of x: subtracting the two one after the other cancels nothing.
    """
    top = _each(x, "max")
    x = x - top
    xp = ops.namespace(x)
    level = _each((xp.cumsum(xp.sort(x)[..., ::-1], axis=-1) - mass) / xp.arange(1.0, x.shape[-1] + 1.0), "max")
    if x.shape[-1] > 32:  # the running sums of a long vector are far larger than mass, and so is their rounding: correct for it
        left = ops.pos(x - level)
        level = level + (_each(left, "sum") - mass) / ops.maximum(_each(left > 0.0, "sum"), 1.0)
    return top, level


def _each(x: Array, reduction: str) -> Array:
    """The reduction of the last axis, a scalar of each run."""
    return getattr(x, reduction)() if x.ndim == 1 else getattr(x, reduction)(axis=-1, keepdims=True)


def _clip(x: Array, size: Array) -> Array:
    return ops.maximum(-size, ops.minimum(x, size))


def _pick(sequence: Array, k: Array) -> Array:
    """Element k of each run's sequence."""
    return sequence[k] if sequence.ndim == 1 else ops.namespace(sequence, k).take_along_axis(sequence, k, axis=-1)


def _square(x: Array) -> Array:
    size = isqrt(x.shape[-1])
    return x.reshape(*x.shape[:-1], size, size)


def _transposed(matrix: Array) -> Array:
    return matrix.swapaxes(-1, -2)


def _across(mass: Array, corners: int) -> Array:
    """The distance between two corners of a simplex."""
    return sqrt(2.0) * mass if corners > 1 else 0.0 * mass


def _slack(domain: Any, tolerance: float) -> Array:
    return tolerance * (domain.diameter() + norm(domain.center()))


def _all(flag: Array) -> bool:
    return bool(np.all(flag))


def _surely(flag: Array) -> bool:
    """Whether the flag is known to hold for every run: never inside a compiler's trace."""
    return bool(flag.all()) if isinstance(flag, np.ndarray) else isinstance(flag, (bool, np.bool_)) and bool(flag)


def Ball(dim: int | None = None, radius: float = 1.0, center: Any = None) -> BallSet:
    """The Euclidean ball around `center`, or around the origin of a space of `dim` dimensions.

    >>> Ball(radius=2.0, center=[1.0, 0.0]).project(np.array([5.0, 0.0]))
    array([3., 0.])
    """
    return BallSet(_middle(dim, center), validate.positive("radius", radius))


def Box(low: Any, high: Any, dim: int | None = None) -> BoxSet:
    """low <= x <= high in every coordinate; numbers stand for all coordinates.

    >>> Box(0.0, 1.0, dim=3).project(np.array([-1.0, 0.5, 2.0]))
    array([0. , 0.5, 1. ])
    """
    lows, highs = validate.array("low", low), validate.array("high", high)
    if dim is None and lows.ndim == 0 and highs.ndim == 0:
        raise InputError("dim must be given where low and high are numbers")
    size = max(lows.size, highs.size) if dim is None else validate.whole("dim", dim)
    lows = validate.vector("low", np.full(size, lows) if lows.ndim == 0 else lows, size)
    highs = validate.vector("high", np.full(size, highs) if highs.ndim == 0 else highs, size)
    for i in np.flatnonzero(lows > highs):
        raise InputError(f"the box is empty: low is {lows[i]:.6g}, above high {highs[i]:.6g}, in coordinate {i}")
    return BoxSet(lows, highs)


def Simplex(dim: int, mass: float = 1.0) -> SimplexSet:
    """The vectors without negative entries that sum to `mass`: with 1, the probability vectors.

    >>> Simplex(3).project(np.array([1.0, 1.0, -5.0]))
    array([0.5, 0.5, 0. ])
    """
    d, total = validate.whole("dim", dim), validate.positive("mass", mass)
    return SimplexSet(total, np.full(d, total / d))


def L1Ball(dim: int | None = None, radius: float = 1.0, center: Any = None) -> L1BallSet:
    """The points whose coordinates differ from those of `center` by at most `radius` in all.

    >>> L1Ball(dim=2).project(np.array([2.0, -1.5]))
    array([ 0.75, -0.25])
    """
    return L1BallSet(_middle(dim, center), validate.positive("radius", radius))


def Spectrahedron(size: int, trace: float = 1.0) -> SpectrahedronSet:
    """The positive semidefinite `size` x `size` matrices of that trace, as vectors of size * size entries.

    >>> Spectrahedron(2).project(np.array([2.0, 0.0, 0.0, -1.0]))
    array([1., 0., 0., 0.])
    """
    n, total = validate.whole("size", size), validate.positive("trace", trace)
    return SpectrahedronSet(total, (np.eye(n) * (total / n)).ravel())


def Product(*domains: Any) -> ProductSet:
    """Several domains side by side: a decision is one decision for each, one after the other.

    >>> Product(Box(0.0, 1.0, dim=1), Simplex(2)).project(np.array([3.0, 1.0, 1.0]))
    array([1. , 0.5, 0.5])
    """
    if not domains:
        raise InputError("domains must hold at least one domain, not ()")
    for i, domain in enumerate(domains):
        _domain(f"domains[{i}]", domain)
    return ProductSet(tuple(domains))


def Halfspace(a: Any, b: float, within: Any) -> Any:
    """The points x of the domain `within` that have <a, x> <= b: more than a touching point, and the domain itself where that is all of it.

    >>> Halfspace([1.0, 1.0], 1.0, within=Box(0.0, 1.0, dim=2)).project(np.array([1.0, 1.0]))
    array([0.5, 0.5])
    """
    _domain("within", within)
    normal, length = validate.vector("a", a, within.dim), float(np.linalg.norm(a))
    if length == 0.0:
        raise InputError(f"a must not be zero, not {validate.show(a)}")
    limit = validate.number("b", b)
    bottom, rounding = within.linear_argmin(normal), 1e-12 * length * (within.diameter() + norm(within.center()))
    least, most = float(normal @ bottom), -float(within.linear_min(-normal))
    if limit >= most - rounding:
        return within
    if limit <= least + rounding:
        state = "misses the domain" if limit < least else "only touches the domain"
        raise InputError(f"the half-space {state}: b is {limit:.6g}, and the least <a, x> over within is {least:.6g}")
    if isinstance(within, PolyhedronSet):
        solver = type(within.solver).__name__.lower()
        return Polyhedron(np.vstack([within.A, normal]), np.append(within.b, limit), solver=solver)
    normal, limit, room = normal / length, limit / length, (limit - least) / length
    if isinstance(within, BallSet):
        return BallCut(within.middle, within.radius, normal, limit - float(normal @ within.middle))
    # Half of the way up from the bottom to the cut, on the line to the domain's centre; or the centre itself, where it is no higher.
    up = within.center() - bottom
    middle = bottom + min(1.0, float(ops.ratio(0.5 * room, float(normal @ up)))) * up
    return DomainCut(within, normal, limit, bottom, room, middle)


def _middle(dim: Any, center: Any) -> np.ndarray:
    if dim is None and center is None:
        raise InputError("dim or center must be given")
    d = None if dim is None else validate.whole("dim", dim)
    return np.zeros(d or 0) if center is None else validate.vector("center", center, d)


def _domain(name: str, value: Any) -> None:
    if not isinstance(value, Domain):
        raise InputError(f"{name} must be a domain, not {validate.show(value)}")

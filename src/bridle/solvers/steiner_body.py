"""What cuts <a, y> <= b leave of a domain, and its Steiner point: the mean of the farthest points over all directions.

`Plane` is for intervals and for plane sets bounded by straight edges and arcs of one circle; its Steiner points are exact. `Sampled` knows
a set by its farthest points in fixed directions and takes their mean: `FlatBody` finds them in polyhedra, `RoundBody` in balls.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from bridle.backends import linear_program
from bridle.domains.closed_form import EPS
from bridle.ops import Array

CUT_SLACK = 1e-12
"""Times the domain's scale: every cut leaves this much more than it says, so that rounding, which is far less, never takes a point that
all cuts allow. Cuts that would take off no more than this change nothing."""

MISS_TOLERANCE = 1e-9
"""Times the domain's scale: a cut that misses the set by no more than this is taken to touch it, for rounding in its numbers."""

CORNER_TOLERANCE = 4.0 * EPS
"""Times the domain's scale: corners closer than this are one."""


class Outline(NamedTuple):
    """`used` corners counter-clockwise (or the ends of an interval), then zeros; `arcs` is 1 where an arc leads to the next corner.

    No arc is longer than a quarter of its circle.
    """

    corners: Array
    arcs: Array
    used: float


def outline(corners: Array, arcs: Array, room: int) -> Outline:
    """The outline, with room for as many corners."""
    full, flags = np.zeros((room, corners.shape[1])), np.zeros(room)
    full[: len(corners)], flags[: len(corners)] = corners, arcs
    return Outline(full, flags, float(len(corners)))


class Plane(NamedTuple):
    """Sets whose outline has arcs of one circle, if any; `start` has room for the corners to come."""

    start: Outline
    scale: float
    middle: Array
    radius: float

    def cut(self, shape: Outline, a: Array, b: float) -> Outline | None:
        """The shape below the cut; None where nothing is, or where there is no room for it."""
        corners, arcs = shape.corners[: int(shape.used)], shape.arcs[: int(shape.used)]
        kept = self.clip(corners, arcs, a, b)
        if kept is None or len(kept[0]) > len(shape.corners):
            return None
        return shape if kept[0] is corners else outline(*kept, len(shape.corners))

    def clip(self, corners: Array, arcs: Array, a: Array, b: float) -> tuple[Array, Array] | None:
        """The corners and arcs below the cut: the same arrays where those are all, None where there are none."""
        fine, over, flags, points = CUT_SLACK * self.scale, corners @ a - b, arcs, corners
        if arcs.any():
            # A cut that meets one arc twice has no corner on the arc's side of it: put one where the arc goes farthest.
            for ahead in (a, -a) if over.min() > 0.0 else (a,):
                i = self._arc_towards(points, flags, ahead)
                if i >= 0:
                    tip = self.middle + self.radius * ahead
                    points = np.concatenate([points[:i], tip[None], points[i:]])
                    flags, over = (np.concatenate([old[:i], [new], old[i:]]) for old, new in ((flags, 1.0), (over, float(tip @ a) - b)))
        low, n = float(over.min()), len(over)
        if low > MISS_TOLERANCE * self.scale:
            return None
        higher = max(0.0, low) + fine
        over = over - higher
        top = int(over.argmax())
        if over[top] <= fine:
            return corners, arcs
        # What is above the cut is one run of corners around the highest, rounding aside: the rest is kept, between two new corners.
        order = np.arange(top, top + n) % n
        inside = np.flatnonzero(over[order] <= 0.0)
        first, last = int(inside[0]), int(inside[-1])
        kept = order[first : last + 1]
        enters = self._crossing(points, flags, over, int(order[first - 1]), a, b + higher, 1.0)
        leaves = self._crossing(points, flags, over, int(order[last]), a, b + higher, -1.0)
        outer = np.concatenate([enters[None], points[kept], leaves[None]])
        edges = np.concatenate([flags[order[first - 1], None], flags[kept], [0.0]])
        # Of corners that are one the last stays, and with it the edge that is left.
        apart = np.abs(outer - np.roll(outer, -1, axis=0)).max(axis=1) > CORNER_TOLERANCE * self.scale
        if not apart.any():
            apart[0] = True
        return outer[apart], edges[apart]

    def _arc_towards(self, corners: Array, arcs: Array, a: Array) -> int:
        """Where a corner goes that splits the arc whose normals include `a`; -1 where none does."""
        spokes = corners - self.middle
        left = spokes[:, 0] * a[1] - spokes[:, 1] * a[0]
        after = np.roll(left, -1)
        split = np.flatnonzero((arcs > 0.0) & (left >= 0.0) & (after <= 0.0) & (spokes @ a > 0.0))
        return int(split[0]) + 1 if len(split) else -1

    def _crossing(self, corners: Array, arcs: Array, over: Array, i: int, a: Array, b: float, side: float) -> Array:
        """Where the edge from corner i meets the cut: a line and a circle meet on two sides of `a`."""
        j = (i + 1) % len(corners)
        if arcs[i] == 0.0:
            return np.asarray(corners[i] + over[i] / (over[i] - over[j]) * (corners[j] - corners[i]))
        height = b - float(a @ self.middle)
        along = side * sqrt(max(0.0, (self.radius - height) * (self.radius + height)))
        return np.asarray(self.middle + height * a + along * np.array([-a[1], a[0]]))

    def point(self, shape: Outline) -> Array:
        """The Steiner point, 1 / (2 pi) times the integral of the farthest point over the angle of the direction.

        That is a corner while the direction turns from one edge's normal to the next, and on an arc from p to q the integral of
        middle + radius u is the angle times the middle, plus q - p turned clockwise. Nothing here is clipped at zero: where rounding turns
        a short edge, what its two corners get wrong cancels, up to its length.
        """
        corners, arcs = shape.corners[: int(shape.used)], shape.arcs[: int(shape.used)]
        if len(corners) == 1 or corners.shape[1] == 1:
            return np.asarray(corners.mean(axis=0))
        spokes = corners - self.middle
        edges = np.roll(spokes, -1, axis=0) - spokes
        start = end = np.arctan2(edges[:, 1], edges[:, 0])
        total = np.zeros(2)
        if arcs.any():
            tangent = np.arctan2(spokes[:, 0], -spokes[:, 1])
            start, end = np.where(arcs, tangent, start), np.where(arcs, np.roll(tangent, -1), end)
            total = arcs @ edges
            total = np.array([total[1], -total[0]])
        turns = (start - np.roll(end, 1) + 0.5 * pi) % (2.0 * pi) - 0.5 * pi  # between 0 and pi, rounding aside
        return np.asarray(self.middle + (turns @ spokes + total) / (2.0 * pi))


class Sample(NamedTuple):
    """The farthest point in each direction, with `used` rows (a, b) of cuts <a, y> <= b, then zeros."""

    corners: Array
    rows: Array
    used: float


class Sampled(NamedTuple):
    """Sets by their farthest point in each of the `directions`: a cut asks for new ones only where it cuts the old ones off."""

    start: Sample
    scale: float
    directions: Array
    whole: FlatBody | RoundBody

    def cut(self, shape: Sample, a: Array, b: float) -> Sample | None:
        """The shape below the cut; None where nothing is, or where there is no room for it."""
        fine, over = CUT_SLACK * self.scale, shape.corners @ a - b
        if over.max() <= 2.0 * fine:  # it may cut elsewhere, but the decision satisfies it, now and until other cuts move a corner there
            return shape
        rows, i = shape.rows[: int(shape.used)], int(over.argmin())
        lowest, low = shape.corners[i], float(over[i])
        if low > 0.0:
            lowest = self.whole.farthest(-a[None], rows, lowest[None])[0]
            low = float(lowest @ a) - b
        if low > MISS_TOLERANCE * self.scale:
            return None
        higher = max(0.0, low) + fine
        beyond = over > higher
        if not beyond.any():
            return shape
        if len(rows) == len(shape.rows):
            rows = rows[[self._matters(rows, i, lowest) for i in range(len(rows))]]
            if len(rows) == len(shape.rows):
                return None
        rows = np.vstack([rows, np.append(a, b + higher)])
        between = (higher - low) / (over[beyond, None] - low)  # where the way from the lowest point to a corner meets the cut
        corners, full = shape.corners.copy(), np.zeros_like(shape.rows)
        corners[beyond] = self.whole.farthest(self.directions[beyond], rows, lowest + between * (shape.corners[beyond] - lowest))
        full[: len(rows)] = rows
        return Sample(corners, full, float(len(rows)))

    def point(self, shape: Sample) -> Array:
        return np.asarray(shape.corners.mean(axis=0))

    def _matters(self, rows: Array, i: int, start: Array) -> bool:
        """Whether the set would be larger without this cut."""
        a, b = rows[i, :-1], rows[i, -1]
        return bool(self.whole.farthest(a[None], np.delete(rows, i, 0), start[None])[0] @ a > b + CUT_SLACK * self.scale)


class FlatBody(NamedTuple):
    """The polyhedron {A y <= b}."""

    A: Array
    b: Array
    middle: Array
    scale: float

    def farthest(self, directions: Array, rows: Array, starts: Array) -> Array:
        """The farthest point below the rows in each of the directions, all in one linear program; `starts` where there is no answer."""
        from scipy.sparse import identity, kron

        A, b = np.vstack([self.A, rows[:, :-1]]), np.append(self.b, rows[:, -1])
        room = np.minimum((b - A @ self.middle) / self.scale, 10.0)  # HiGHS stops at absolute tolerances: make the data of the order of 1
        n = len(directions)
        answer = linear_program(-directions.ravel(), kron(identity(n), A, format="csr"), np.tile(room, n), method="highs-ds")
        return starts if answer is None else np.asarray(self.middle + self.scale * answer.x.reshape(n, -1))


class RoundBody(NamedTuple):
    """The ball with the cuts {A y <= b}, whose rows have unit length."""

    A: Array
    b: Array
    middle: Array
    radius: float

    def farthest(self, directions: Array, rows: Array, starts: Array) -> Array:
        """The farthest point below the rows in each of the unit directions; `starts` are points there to start from."""
        A = np.vstack([self.A, rows[:, :-1]])
        room = (np.append(self.b, rows[:, -1]) - A @ self.middle) / self.radius
        points = [farthest_in_ball(u, A, room, y) for u, y in zip(directions, (starts - self.middle) / self.radius, strict=True)]
        return np.asarray(self.middle + self.radius * np.array(points))


def farthest_in_ball(u: Array, A: Array, room: Array, y: Array) -> Array:
    """The y that maximises <u, y> with |y| <= 1 and A y <= room, from a y that has both; `u` and the rows have unit length.

    An active-set method. With the rows that hold it, the answer is known: Q base is the point nearest to the middle where they hold, and
    from there it is as far along the rest of u as the ball allows. Go there, until another row is in the way and holds too; once there,
    let go of a row that pushes the wrong way. Every such stop is farther than the one before, so there is an end.

    >>> farthest_in_ball(np.array([1.0, 0.0]), np.array([[0.8, 0.6]]), np.array([0.6]), np.zeros(2)).round(9)
    array([ 0.96, -0.28])
    """
    held: list[int] = []
    for _ in range(10 * (len(room) + len(u))):  # an end that rounding can put off
        Q, R = np.linalg.qr(A[held].T)
        base, share = np.linalg.solve(R.T, room[held]), Q.T @ u
        along = u - Q @ share
        along -= Q @ (Q.T @ along)
        length = float(np.linalg.norm(along)) if len(held) < len(u) else 0.0
        s = sqrt(max(0.0, 1.0 - float(base @ base))) / length if length > 1e-13 else 0.0
        step = Q @ base + s * along - y if s > 0.0 else 0.0 * y
        rates = A @ step
        rates[held] = 0.0
        ahead = np.flatnonzero(rates > 1e-14)
        reach = np.maximum(0.0, room[ahead] - A[ahead] @ y) / rates[ahead]
        if len(reach) and reach.min() < 1.0:
            y = y + reach.min() * step
            held.append(int(ahead[reach.argmin()]))
            continue
        y = y + step
        pull = np.linalg.solve(R, s * share - base if s > 0.0 else share)
        if pull.min(initial=0.0) >= -1e-12 * pull.max(initial=1.0):
            break
        del held[int(pull.argmin())]
    return y

"""The nearest point of a domain below many affine constraints, and which of them can be left out: on the Python engine only.

Everything is about rows <a, x - middle> <= b with a of unit length and `middle` the domain's centre. `WithFaces` is for domains with faces,
`InBall` for balls, `ByProjection` for L1 balls, which have too many faces to list. Quadratic programs go to DAQP
(``pip install 'bridle-oco[qp]'``).

`nearest` solves with few rows at a time: the nearest point below some of the rows that happens to be below all of them is the nearest point
below all. So it begins with those that held the last answer and those that are violated most, and adds others while some are violated.

>>> from bridle.domains import Ball
>>> projector = projector_for(Ball(2))
>>> nearest(projector, np.array([2.0, 1.0]), np.eye(2), np.array([0.6, 0.9]), [])[0].round(9)
array([0.6, 0.8])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bridle import validate
from bridle.backends import UNBOUNDED, Band, least_distance, quadratic_in_bands, redundant_rows, stacked
from bridle.core import Domain
from bridle.domains.closed_form import BallSet, L1BallSet
from bridle.domains.facets import faces, one_sided, peeled
from bridle.ops import Array, absolute, norm

ROW_TOLERANCE = 1e-11
"""Times the domain's scale: a row counts as met if it is exceeded by no more than this; the programs are solved to a tenth of it."""

ROW_SLACK = 1e-9
"""Times the domain's scale: how much more a row is taken to allow than it says. Else rounding could leave no point where rows meet."""

ROUGH_TOLERANCE = 1e-6
"""Times the domain's scale: the tolerance where rows nearly touch at an angle. Rounding moves the point where two opposite rows meet whose
directions differ by a billionth."""

MOST_FACES = 500
"""How many faces of a domain are asked for at most, one projection each."""

BATCH = 8
"""How many of the rows violated most are added at a time."""


class WithFaces(NamedTuple):
    """A domain with faces, low <= rows (x - middle) <= high; the rows have unit length."""

    domain: Domain
    middle: Array
    scale: float
    rows: Array
    low: Array
    high: Array

    def solve(self, v: Array, A: Array, b: Array) -> tuple[Array | None, Array]:
        """The point nearest to v, and the multipliers of the rows; None where there is no point at all."""
        unit, away = max(self.scale, float(norm(v - self.middle))), v - self.middle
        own = self.rows @ away
        sides = (self.rows, np.maximum((self.low - own) / unit, -UNBOUNDED), np.minimum((self.high - own) / unit, UNBOUNDED))
        y, pull = _least([(A, None, (b - A @ away) / unit), sides])
        return (None if y is None else np.asarray(self.domain.project(v + unit * y))), pull[: len(A)]

    def reach(self) -> float:
        """No point of the domain is farther from the middle."""
        return float(self.domain.diameter())

    def shell(self) -> tuple[Array, Array]:
        """Rows and levels of a polyhedron that holds the domain."""
        return one_sided(self.rows, self.low, self.high)


class InBall(NamedTuple):
    """A ball, with the rows that may cut it."""

    domain: Domain
    middle: Array
    scale: float
    radius: float
    rows: Array
    levels: Array

    def solve(self, v: Array, A: Array, b: Array) -> tuple[Array | None, Array]:
        """The point nearest to v, and the multipliers of the rows; None where there is no point at all.

        A multiplier l of the ball makes it the nearest point to s v, s = 1 / (1 + l), below the rows, whose length does not fall with s: so
        s is searched for where that point is on the sphere. With the rows that hold it, it is base + s along; Newton's method for the s
        where that has length 1 ends when the same rows hold it again.
        """
        z, none = (v - self.middle) / self.radius, np.zeros(len(A))
        rows, room = np.vstack([A, self.rows]), np.append(b, self.levels) / self.radius

        def below(s: float) -> tuple[Array | None, Array]:
            y, pull = _least([(rows, None, room - s * (rows @ z))])
            return (None if y is None else s * z + y), np.maximum(pull, 0.0)

        def answer(y: Array) -> Array:
            return np.asarray(self.domain.project(self.middle + self.radius * y))

        y, pull = below(1.0)
        if y is None:
            return None, none
        s, short, long = 1.0, -1.0, 1.0  # too short a point at s = short, too long a one at s = long; s = 0 not looked at yet
        for _ in range(100):
            if (s == 1.0 and norm(y) <= 1.0) or absolute(norm(y) - 1.0) <= 1e-15:
                return answer(y), pull[: len(A)]
            short, long = (s, long) if norm(y) < 1.0 else (short, s)
            held = pull > 1e-12 * pull.max(initial=0.0)
            base = np.linalg.lstsq(rows[held], room[held], rcond=None)[0]
            along = z - np.linalg.lstsq(rows[held], rows[held] @ z, rcond=None)[0]
            s = float(np.sqrt(max(0.0, 1.0 - base @ base)) / max(norm(along), 1e-300))
            if not max(short, 0.0) < s < long:
                s = 0.0 if short < 0.0 else 0.5 * (short + long)
            before, (y, pull) = held, below(s)
            if y is None:
                return None, none
            if s == 0.0 and norm(y) >= 1.0:
                return (answer(y), pull[: len(A)]) if norm(y) <= 1.0 + ROUGH_TOLERANCE else (None, none)
            if np.array_equal(before, pull > 1e-12 * pull.max(initial=0.0)) and absolute(norm(y) - 1.0) <= ROW_TOLERANCE:
                return answer(y), pull[: len(A)]
            if long - max(short, 0.0) <= 1e-15:
                return answer(y), pull[: len(A)]
        return answer(y), pull[: len(A)]

    def reach(self) -> float:
        """No point of the domain is farther from the middle."""
        return float(self.radius)

    def shell(self) -> tuple[Array, Array]:
        """Rows and levels of a polyhedron that holds the domain."""
        rows, levels = _cube(len(self.middle), self.radius)
        return np.vstack([rows, self.rows]), np.append(levels, self.levels)


class ByProjection(NamedTuple):
    """A domain with too many faces to list: a point outside, with the nearest one inside, tells the face between them."""

    domain: Domain
    middle: Array
    scale: float

    def solve(self, v: Array, A: Array, b: Array) -> tuple[Array | None, Array]:
        """The point nearest to v, and the multipliers of the rows; None where there is no point at all."""
        unit, away, rows, room = max(self.scale, float(norm(v - self.middle))), v - self.middle, A, b
        y, pull = _least([(rows, None, (room - rows @ away) / unit)])
        for _ in range(MOST_FACES):
            if y is None:
                return None, np.zeros(len(A))
            point = v + unit * y
            inside = np.asarray(self.domain.project(point))
            gap = float(norm(point - inside))
            if gap <= ROW_TOLERANCE * self.scale:
                break
            normal = (point - inside) / gap
            rows, room = np.vstack([rows, normal]), np.append(room, float(normal @ (inside - self.middle)))
            y, pull = _least([(rows, None, (room - rows @ away) / unit)])
        return inside, pull[: len(A)]

    def reach(self) -> float:
        """No point of the domain is farther from the middle."""
        return float(self.domain.diameter())

    def shell(self) -> tuple[Array, Array]:
        """Rows and levels of a polyhedron that holds the domain."""
        return _cube(len(self.middle), self.reach())


def _least(bands: list[Band]) -> tuple[Array | None, Array]:
    """The shortest y with low <= rows y <= high for every part, and the multipliers; less exactly where nothing else is to be had."""
    d = bands[0][0].shape[1]
    looser: tuple[dict[str, float], ...] = ({}, {"sing_tol": 1e-16}, {"primal_tol": 1e-10})  # rows that are nearly opposed look singular
    for settings in looser:
        y, pull = quadratic_in_bands(np.eye(d), np.zeros(d), bands, **settings)
        if y is not None:
            return y, pull
    return _least_by_squares(bands)


def _least_by_squares(bands: list[Band]) -> tuple[Array | None, Array]:
    """`_least` by least squares (`least_distance`), which rows that are nearly opposite do not upset."""
    rows, low, high = stacked(bands)
    above, below = np.flatnonzero(high < UNBOUNDED), np.flatnonzero(low > -UNBOUNDED)
    A, b, pull = np.vstack([rows[above], -rows[below]]), np.append(high[above], -low[below]), np.zeros(len(rows))
    try:
        u, rest = least_distance(A, b, 100 * len(b))
    except RuntimeError:  # it has not come to an end
        return None, pull
    if not rest[-1] < 0.0:
        return None, pull
    y = -rest[:-1] / rest[-1]
    if not float((A @ y - b).max(initial=0.0)) <= ROUGH_TOLERANCE:
        return None, pull
    np.add.at(pull, np.append(above, below), np.append(u[: len(above)], -u[len(above) :]) / -rest[-1])
    return y, pull


def _cube(d: int, half: float) -> tuple[Array, Array]:
    return np.vstack([np.eye(d), -np.eye(d)]), np.full(2 * d, float(half))


CutProjector: TypeAlias = WithFaces | InBall | ByProjection
"""A domain, ready to be asked for nearest points below rows."""


def projector_for(domain: Domain) -> CutProjector:
    """The domain, ready to be asked for nearest points."""
    middle = np.asarray(domain.center())
    scale = float(domain.diameter() + 1e-4 * norm(middle))  # far from the origin, rounding is all that the distance adds
    base, cuts = peeled(domain)
    if isinstance(base, BallSet):
        return InBall(domain, np.asarray(base.middle), scale, float(base.radius), cuts[:, :-1], cuts[:, -1] - cuts[:, :-1] @ base.middle)
    if isinstance(base, L1BallSet):
        return ByProjection(domain, middle, scale)
    sides = faces(domain)
    if sides is None:
        raise validate.refused("domain must be a ball or have faces (box, simplex, L1 ball, polyhedron)", domain)
    rows, low, high = sides
    lengths, own = np.sqrt((rows * rows).sum(axis=1)), rows @ middle
    return WithFaces(
        domain, middle, scale, rows / lengths[:, None],
        np.where(low > -UNBOUNDED, (low - own) / lengths, -UNBOUNDED), np.where(high < UNBOUNDED, (high - own) / lengths, UNBOUNDED),
    )  # fmt: skip


def nearest(projector: CutProjector, v: Array, A: Array, b: Array, hint: Iterable[int]) -> tuple[Array | None, list[int]]:
    """The point of the domain below all rows that is nearest to v, and the rows that hold it; None where there is none.

    `hint` are rows that probably hold it.
    """
    x, fine = np.asarray(projector.domain.project(v)), ROW_TOLERANCE * projector.scale
    over = A @ (x - projector.middle) - b
    if over.max(initial=-1.0) <= fine:
        return x, []
    some: list[int] = sorted(set(hint))
    more = _worst(over, fine)
    if len(more) == 1:  # it may be all there is to it
        a, i = A[more[0]], more[0]
        onto = v - max(0.0, float(a @ (v - projector.middle)) - float(b[i])) * a
        x = np.asarray(projector.domain.project(onto))
        if norm(x - onto) <= 0.1 * fine and (A @ (x - projector.middle) - b).max() <= fine:
            return x, more
    while True:
        some += [i for i in more if i not in some]
        point, pull = projector.solve(v, A[some], b[some])
        if point is None:
            return None, []
        x, over = point, A @ (point - projector.middle) - b
        if over[some].max() > ROUGH_TOLERANCE * projector.scale:  # more than rounding: the solver has failed without knowing
            return None, []
        over[some] = 0.0
        more = _worst(over, fine)
        if not more:
            return x, [i for i, one in zip(some, pull, strict=True) if one > 0.0]


def _worst(over: Array, fine: float) -> list[int]:
    """The rows exceeded most, worst first."""
    beyond = np.flatnonzero(over > fine)
    return [int(i) for i in beyond[np.argsort(-over[beyond])[:BATCH]]]


def redundant(projector: CutProjector, A: Array, b: Array) -> NDArray[np.bool_]:
    """Which rows the others imply, on the domain: left out together, they change the set by no more than rounding.

    DAQP's reduction of a polyhedron nominates them. Each is then proved against the rows that stay: it is implied if there is no point
    below those and, by 4e-11 of the domain's scale, above it.
    """
    rows, levels = projector.shell()
    rows, levels = np.vstack([A, rows]), np.append(b, levels) / projector.scale
    named = redundant_rows(rows, levels)[: len(A)]
    stay = np.append(~named, np.full(len(rows) - len(A), True))
    others, room = rows[stay], levels[stay]
    zero, identity = np.zeros(A.shape[1]), np.eye(A.shape[1])
    for i in np.flatnonzero(named):
        above = (np.vstack([others, -rows[i]]), None, np.append(room, -(levels[i] + 4.0 * ROW_TOLERANCE)))
        named[i] = quadratic_in_bands(identity, zero, [above], primal_tol=ROW_TOLERANCE, sing_tol=1e-16)[0] is None
    return named

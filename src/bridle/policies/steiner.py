"""Nested convex body chasing by the Steiner point: constraints only, the costs are ignored.

Every constraint, read at the decision, cuts off what it rules out, and the next decision is the Steiner point of what is left:

    K_t     = K_{t-1} with g_{t,i}(x_t) + <grad g_{t,i}(x_t), y - x_t> <= 0 for every i,      K_0 = X
    x_{t+1} = s(K_t),      s(K) = E[argmax_{y in K} <u, y>],  u uniform on the unit sphere

Exact in one dimension (the middle of an interval) and in two (the vertices of a polygon, weighed by their exterior angles). From three on,
the mean over fixed random pairs of directions +-u, by linear programs, in which cuts that took off no corner do not take part; the pairs
make it exact for boxes as long as the cuts are parallel to the axes. A cut that would leave nothing is left out and counted: then no action
satisfies every constraint. The domain must be a polyhedron, unless it has one dimension. The first decision is s(X), wherever the game
starts.

Guarantee: `steiner_bound`, for the exact point: the total violation of every constraint is at most G times the distance travelled.
Reference: S. Bubeck, B. Klartag, Y. T. Lee, Y. Li, M. Sellke. Chasing Nested Convex Bodies Nearly Optimally. SODA 2020. The reduction of
    constraints to it: A. Sinha, R. Vaze, NeurIPS 2024. Update as commonly stated; the bound is proved for exactly this update.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, domain=bridle.Box(-1.0, 1.0, dim=2))
>>> trace = bridle.play(bridle.policy_for("steiner", problem), problem)
>>> bool(bridle.ccv(trace) <= trace.policy.bound(problem.constants, 500).ccv)
True
"""

from __future__ import annotations

from itertools import product
from math import log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Feedback, InputError
from bridle.cuts import DomainCut
from bridle.ops import Array
from bridle.policies.common import unmet
from bridle.policies.entry import Entry
from bridle.polyhedron import PolyhedronSet
from bridle.sets import BoxSet, L1BallSet, SimplexSet

FINE = 1e-12
"""Times the domain's scale: cuts shallower than this change nothing, and points closer than this are one."""

EMPTY = 1e-9
"""Times the domain's scale: a set that a cut misses by no more than this is down to a point, by rounding."""

ROWS = 200
"""How many cuts are kept from three dimensions on; when there are more, those that rule out nothing any more are dropped."""


class Shape(NamedTuple):
    """What is left of the domain: `used` corners of a polygon (or both ends of an interval), the rest of the array zeros; or the corner in
    each direction, with `used` rows (a, b) of cuts <a, y> <= b.
    """

    corners: Array
    rows: Array | None
    used: Array


class SteinerState(NamedTuple):
    """The decision, the set it is the Steiner point of, and how many cuts had to be left out."""

    x: Array
    shape: Shape
    left_out: Array


class Polygon(NamedTuple):
    """Intervals and polygons, by their corners in counter-clockwise order; `start` has room for those to come."""

    start: Shape
    scale: Array

    def cut(self, shape: Shape, a: np.ndarray, b: float) -> Shape | None:
        """The shape below the cut; None where nothing is, or where there is no room for it."""
        corners = shape.corners[: int(shape.used)]
        over = corners @ a - b
        if over.max() <= FINE * self.scale:
            return shape
        if over.min() > EMPTY * self.scale:
            return None
        kept = _clip(corners, over, FINE * self.scale)
        if len(kept) > len(shape.corners):
            return None
        full = np.zeros_like(shape.corners)
        full[: len(kept)] = kept
        return Shape(full, None, float(len(kept)))

    def point(self, shape: Shape) -> np.ndarray:
        corners = shape.corners[: int(shape.used)]
        return np.asarray(_angles(corners) @ corners)


class Sampled(NamedTuple):
    """Polyhedra {A y <= b} by their corner in each of the `directions`: a cut asks for new corners only where it cuts the old ones off."""

    start: Shape
    scale: Array
    directions: Array
    A: Array
    b: Array
    middle: Array

    def cut(self, shape: Shape, a: np.ndarray, b: float) -> Shape | None:
        """The shape below the cut; None where nothing is, or where there is no room for it."""
        beyond = shape.corners @ a - b > FINE * self.scale
        if not beyond.any():  # it may cut elsewhere, but then the decision satisfies it, now and until other cuts move a corner there
            return shape
        room, rows = np.asarray(shape.rows), np.asarray(shape.rows)[: int(shape.used)]
        if len(rows) == len(room):
            rows = rows[[self._matters(rows, i) for i in range(len(rows))]]
            if len(rows) == len(room):
                return None
        rows = np.vstack([rows, np.append(a, b)])
        found = self.farthest(self.directions[beyond], rows)
        if found is None:
            return None
        corners = shape.corners.copy()
        corners[beyond] = found
        full = np.zeros_like(room)
        full[: len(rows)] = rows
        return Shape(corners, full, float(len(rows)))

    def point(self, shape: Shape) -> np.ndarray:
        return np.asarray(shape.corners.mean(axis=0))

    def farthest(self, directions: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """The farthest point in each of the directions, all in one linear program; None where the set is empty."""
        from scipy.optimize import linprog
        from scipy.sparse import identity, kron

        A, b = np.vstack([self.A, rows[:, :-1]]), np.append(self.b, rows[:, -1])
        room = np.minimum((b - A @ self.middle) / self.scale, 10.0)  # HiGHS stops at absolute tolerances: make the data of the order of 1
        exact: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        n = len(directions)
        apart: Any = kron(identity(n), A, format="csr")
        result = linprog(-directions.ravel(), A_ub=apart, b_ub=np.tile(room, n), bounds=(None, None), method="highs-ds", options=exact)
        return None if result.x is None else self.middle + self.scale * result.x.reshape(n, -1)

    def _matters(self, rows: np.ndarray, i: int) -> bool:
        """Whether the set would be larger without this cut."""
        a, b = rows[i, :-1], rows[i, -1]
        found = self.farthest(a[None], np.delete(rows, i, 0))
        return found is None or float(a @ found[0]) > b + FINE * self.scale


class Steiner(NamedTuple):
    """Play the Steiner point of what the constraints so far have left."""

    domain: Any
    body: Any

    @property
    def compiled(self) -> bool:
        """No: sets of growing size, and linear programs."""
        return False

    def init(self, x1: Array) -> SteinerState:
        if x1.ndim > 1:
            raise InputError("steiner plays one run at a time")
        return SteinerState(self._point(self.body.start), self.body.start, 0.0)

    def decide(self, state: SteinerState) -> Array:
        return state.x

    def update(self, state: SteinerState, feedback: Feedback) -> SteinerState:
        shape, left_out = state.shape, state.left_out
        for g, dg in zip(feedback.g, feedback.dg, strict=True):
            length = sqrt(float(dg @ dg))
            if length == 0.0:
                left_out += float(g > 0.0)
                continue
            a = dg / length
            after = self.body.cut(shape, a, float(a @ feedback.x) - float(g) / length)
            left_out += float(after is None)
            shape = shape if after is None else after
        return SteinerState(state.x if shape is state.shape else self._point(shape), shape, left_out)

    def _point(self, shape: Shape) -> Array:
        return self.domain.project(self.body.point(shape))  # where rounding is all that it can change

    def alarm(self, state: SteinerState) -> str:
        """What the state says about the assumptions, in words; empty when nothing is wrong."""
        if state.left_out == 0.0:
            return ""
        return f"{state.left_out:g} constraints were left out: no action satisfies them together with those before, or there was no room"


def steiner(domain: Any, horizon: Any, constraints: Any = 1, samples: Any = 40, seed: Any = 0) -> Steiner:
    """The Steiner point of what is left.

    `horizon` and `constraints` say how much room a polygon may need; `samples` and `seed` are for the directions, from three dimensions on.
    """
    d, middle = domain.dim, domain.center()
    scale = domain.diameter() + float(np.linalg.norm(middle))
    T, k, n = validate.whole("horizon", horizon), validate.whole("constraints", constraints), validate.whole("samples", samples, 2)
    if d == 1:
        ends = np.array([domain.linear_argmin(np.array([v])) for v in (1.0, -1.0)])
        return Steiner(domain, Polygon(Shape(ends, None, 2.0), scale))
    rows = _rows(domain)
    if d == 2:
        outline = _outline(domain, rows, scale)
        room = np.zeros((len(outline) + T * k, 2))  # a cut takes off at least one corner, and puts on at most two
        room[: len(outline)] = outline
        return Steiner(domain, Polygon(Shape(room, None, float(len(outline))), scale))
    half = np.random.default_rng(validate.whole("seed", seed, 0)).standard_normal(((n + 1) // 2, d))
    directions = np.vstack([half, -half]) / np.linalg.norm(np.vstack([half, half]), axis=1, keepdims=True)
    corners = np.array([domain.linear_argmin(-u) for u in directions])
    start = Shape(corners, np.zeros((min(ROWS, T * k), d + 1)), 0.0)
    return Steiner(domain, Sampled(start, scale, directions, rows[:, :-1], rows[:, -1], middle))


def _rows(domain: Any) -> np.ndarray:
    """The rows (a, b) with <a, x> <= b on the domain, for those that are polyhedra."""
    eye = np.eye(domain.dim)
    if isinstance(domain, BoxSet):
        found = [np.c_[eye, domain.high], np.c_[-eye, -domain.low]]
    elif isinstance(domain, SimplexSet):
        ones = np.ones(domain.dim)
        found = [np.c_[-eye, 0.0 * ones], np.append(ones, domain.mass), np.append(-ones, -domain.mass)]
    elif isinstance(domain, L1BallSet) and domain.dim <= 8:
        signs = np.array(list(product((1.0, -1.0), repeat=domain.dim)))
        found = [np.c_[signs, domain.radius + signs @ domain.middle]]
    elif isinstance(domain, PolyhedronSet):
        found = [np.c_[domain.A, domain.b]]
    elif isinstance(domain, DomainCut):
        found = [_rows(domain.within), np.append(domain.a, domain.b)]
    else:
        raise InputError(
            "domain of policy steiner must be a box, a simplex, an L1 ball of at most 8 dimensions, one of these with a cut, a Polyhedron, "
            f"or have one dimension, not {validate.show(domain)}"
        )
    return np.vstack(found)


def _outline(domain: Any, rows: np.ndarray, scale: float) -> np.ndarray:
    """The corners of a polygon, counter-clockwise."""
    if isinstance(domain, SimplexSet):
        return np.asarray(domain.mass * np.eye(2))
    if isinstance(domain, DomainCut):
        corners, rows = _outline(domain.within, _rows(domain.within), scale), rows[-1:]
    else:
        corners = domain.center() + domain.diameter() * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    for row in rows:
        corners = _clip(corners, corners @ row[:-1] - row[-1], FINE * scale)
    return corners


def _clip(corners: np.ndarray, over: np.ndarray, fine: float) -> np.ndarray:
    """The part of a polygon where `over`, affine and given at the corners, is 0 or below; the lowest corner where there is none."""
    found: list[np.ndarray] = []
    for i in range(len(corners)):
        here, before = over[i], over[i - 1]
        if (here > 0.0) != (before > 0.0):
            found.append(corners[i - 1] + before / (before - here) * (corners[i] - corners[i - 1]))
        if here <= 0.0:
            found.append(corners[i])
    found = found or [corners[int(np.argmin(over))]]
    apart = [p for i, p in enumerate(found) if np.abs(p - found[i - 1]).max() > fine]
    return np.array(apart or found[:1])


def _angles(corners: np.ndarray) -> np.ndarray:
    """The exterior angles of a convex polygon as parts of a full turn; one half at each end of a segment."""
    if len(corners) < 3:
        return np.full(len(corners), 1.0 / len(corners))
    edges = np.roll(corners, -1, axis=0) - corners
    course = np.arctan2(edges[:, 1], edges[:, 0])
    turns = (course - np.roll(course, 1) + 0.5) % (2.0 * pi) - 0.5  # between 0 and pi, and a little more by rounding
    turns = np.maximum(turns, 0.0)
    return np.asarray(turns / turns.sum())


def steiner_bound(policy: Any, constants: Constants, t: float) -> Bound:
    """Hard CCV <= G D min(d/2, sqrt(d ln(2t) / 2)), where the Steiner point is exact: in one and two dimensions.

    x_{s+1} satisfies the cut of round s, so g_s(x_s) <= <grad g_s(x_s), x_s - x_{s+1}> <= G |x_s - x_{s+1}|: the violation is at most G
    times the distance travelled. With the support function h_K, also s(K) = d E[h_K(u) u]. For K' inside K let f = h_K - h_K' >= 0 and
    m = E f; over time these m add up to W = E[h_X - h_{K_t}] <= D/2, half the loss of mean width. A step is d |E[f(u) u]| <= d m, which
    gives d D / 2. And for a unit vector v, E[f <u, v>] = m E_q<u, v> with dq = f/m du, which is at most m sqrt(2 KL(q) / d), since <u, v>
    is sub-Gaussian with variance 1/d; f <= D makes KL(q) <= ln(D/m). So a step is at most m sqrt(2 d ln(D/m)), and t of them, by
    Cauchy-Schwarz and the concavity of m ln(D/m), at most W sqrt(2 d ln(D t / W)), which grows with W up to D/2.
    """
    d, shape = policy.domain.dim, policy.record.body.start
    if why := unmet(constants):
        return Bound(why=why)
    if d > 2:
        return Bound(why=f"the bound is for the exact Steiner point, not for the mean over {len(shape.corners)} directions")
    if d == 2 and len(shape.corners) - shape.used < t * constants.get("constraints", 1):
        return Bound(why="the policy was made for fewer constraints a round, and may have no room for all of them")
    G, D = constants["lipschitz"], constants["diameter"]
    return Bound(ccv=G * D * min(d / 2.0, sqrt(d * log(2.0 * t) / 2.0)))


ENTRIES = (
    Entry(
        "steiner", steiner, "Steiner point of what the constraints leave, costs ignored", "Bubeck, Klartag, Lee, Li & Sellke, SODA 2020",
        "-", "O(min(d, sqrt(d log T)))", bound=steiner_bound, reduces="all", needs=("horizon",),
        domains=("box", "simplex", "l1", "polyhedron"),
        cost="1 polygon clipped; some linear programs from three dimensions on",
    ),
)  # fmt: skip

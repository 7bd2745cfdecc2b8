"""Nested convex body chasing by the Steiner point: constraints only, the costs are ignored.

Every constraint, read at the decision, cuts off what it rules out, and the next decision is the Steiner point of what is left:

    K_t     = K_{t-1} with g_{t,i}(x_t) + <grad g_{t,i}(x_t), y - x_t> <= 0 for every i,      K_0 = X
    x_{t+1} = s(K_t),      s(K) = E[argmax_{y in K} <u, y>],  u uniform on the unit sphere

Exact in one dimension (the middle of an interval) and in two, where what is left is bounded by straight edges and, if the domain is a ball,
arcs of its circle: a corner counts by its exterior angle, an arc by an integral in closed form. From three on it is the mean over fixed
random pairs of directions +-u, with linear programs in polyhedra and an active-set method in balls (`bridle.solvers.steiner_body`); cuts
that take off no farthest point do not take part. The pairs make it exact for boxes while cuts are parallel to the axes, and for balls until
a cut takes part. A cut that would leave nothing is left out and counted: then no action satisfies every constraint. The first decision is
s(X), wherever the game starts.

Guarantee: the total violation of every constraint is at most G times the distance travelled (up to 1e-12 a round, times the domain's
    scale). Where the point is exact, in one and two dimensions, `steiner_bound` bounds that distance; for the mean over fixed directions
    no bound on it is proved, and none is given.
Reference: S. Bubeck, B. Klartag, Y. T. Lee, Y. Li, M. Sellke. Chasing Nested Convex Bodies Nearly Optimally. SODA 2020. The reduction of
    constraints to it: A. Sinha, R. Vaze, NeurIPS 2024. Update as commonly stated; the bound is proved for exactly this update.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, domain=bridle.Ball(2))
>>> trace = bridle.play(bridle.policy_for("steiner", problem), problem)
>>> bool(bridle.ccv(trace) <= trace.policy.bound(problem.constants, 500).ccv)
True
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple, Protocol, TypeVar, Unpack

import numpy as np

from bridle import showing, validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback, InputError
from bridle.domains.closed_form import BallSet, ProductSet, SimplexSet
from bridle.domains.facets import halfspaces, peeled
from bridle.ops import Array
from bridle.policies.common import require_single_run, unmet
from bridle.policies.entry import Configuration
from bridle.policies.registry import Through, registered
from bridle.solvers.steiner_body import FlatBody, Plane, RoundBody, Sample, Sampled, outline

ROWS = 200
"""How many cuts are kept from three dimensions on; when there are more, those that rule out nothing any more are dropped."""


Shape = TypeVar("Shape")
"""What is left of the domain."""


class Body(Protocol[Shape]):
    """A way to keep what is left: how it begins, what a cut leaves of it (None: nothing), and its Steiner point."""

    @property
    def start(self) -> Shape: ...

    def cut(self, shape: Shape, a: Array, b: float) -> Shape | None: ...

    def point(self, shape: Shape) -> Array: ...


class SteinerState(NamedTuple):
    """The decision, the set it is the Steiner point of, and how many cuts had to be left out."""

    x: Array
    shape: object
    left_out: float


@showing.shown("Steiner")
class Steiner(NamedTuple):
    """Play the Steiner point of what the constraints so far have left."""

    domain: Domain
    body: Body[Any]

    @property
    def compiled(self) -> bool:
        """No: sets of growing size, and programs to solve."""
        return False

    def init(self, x1: Array) -> SteinerState:
        require_single_run("steiner", x1)
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

    def _point(self, shape: object) -> Array:
        return self.domain.project(self.body.point(shape))  # where rounding is all that it can change

    def most_travelled(self, t: float) -> float | None:
        """How far t decisions can lead in all, where the Steiner point is exact; bodies stay nested, also where a cut is left out."""
        return steiner_distance(self.domain.dim, self.domain.diameter(), t) if self.domain.dim <= 2 else None

    def alarm(self, state: SteinerState) -> Alarm | None:
        """That cuts were left out; None while none was."""
        if state.left_out == 0.0:
            return None
        text = f"{state.left_out:g} constraints were left out: no action satisfies them together with those before, or there was no room"
        # `steiner_bound` needs the next decision to satisfy every cut of the round. One that was left out need not be satisfied, whatever
        # the reason; and that it was for lack of room the state does not tell, so it is no proof that nothing is feasible.
        return Alarm(text, voids_bound=True)


def _plane(base: Domain, rows: Array, scale: float, cuts: int) -> Plane:
    """What the rows leave of a domain in the plane, with room for more cuts."""
    ball, quarters = isinstance(base, BallSet), np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    middle, radius = base if isinstance(base, BallSet) else (base.center(), 0.0)
    if isinstance(base, SimplexSet):
        corners = base.mass * np.eye(2)
    elif ball:
        corners = middle + radius * quarters
    else:
        corners = middle + 2.0 * base.diameter() * quarters
    arcs = np.full(len(corners), float(ball))
    body = Plane(outline(corners, arcs, len(corners)), scale, middle, radius)
    for row in rows:
        corners, arcs = body.clip(corners, arcs, row[:-1], row[-1]) or (corners, arcs)  # (never None: a domain is not empty)
    # A cut puts on two corners, and takes off one or more unless it takes a piece out of an arc.
    return body._replace(start=outline(corners, arcs, len(corners) + (2 if ball else 1) * cuts))


def _rows(domain: Domain) -> Array:
    """The rows (a, b) with <a, x> <= b on the domain, for those that are polyhedra."""
    rows = None if isinstance(domain, ProductSet) else halfspaces(domain)
    if rows is None:
        raise InputError(
            "domain of policy steiner must be a ball, a box, a simplex, an L1 ball of at most 8 dimensions, one of these with cuts, "
            f"a Polyhedron, or have one dimension, not {validate.show(domain)}"
        )
    return rows


def steiner_distance(d: int, D: float, t: float) -> float:
    """D min(d/2, sqrt(d ln(2t) / 2)): how far the Steiner points of t nested bodies are apart in all; the proof is `steiner_bound`'s.

    >>> steiner_distance(2, 3.0, 1000), steiner_distance(8, 1.0, 0.5)
    (3.0, 0.0)
    """
    return D * min(d / 2.0, sqrt(d * log(2.0 * t) / 2.0))


def steiner_bound(policy: Configuration[Steiner], constants: Constants, t: float) -> Bound:
    """Hard CCV <= G D min(d/2, sqrt(d ln(2t) / 2)), where the Steiner point is exact: in one and two dimensions, on every domain.

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
        return Bound(
            why=f"the distance travelled is bounded for the exact Steiner point, not for the mean over {len(shape.corners)} directions"
        )
    if d == 2 and len(shape.corners) - shape.used < (2.0 if shape.arcs.any() else 1.0) * t * constants.get("constraints", 1):
        return Bound(why="the policy was made for fewer constraints a round, and may have no room for all of them")
    return Bound(ccv=constants["lipschitz"] * steiner_distance(d, constants["diameter"], t))


@registered(
    reference="Bubeck, Klartag, Lee, Li & Sellke, SODA 2020",
    regret="-",
    violation="O(min(d, sqrt(d log T)))",
    bound=steiner_bound,
    reduces="all",
    needs=("horizon",),
    domains=("ball", "box", "simplex", "l1", "polyhedron"),
    cost="1 outline clipped; a small program for some directions from three dimensions on",
)
def steiner(
    domain: Domain,
    *,
    horizon: int,
    constraints: int = 1,
    samples: int = 40,
    seed: int = 0,
    **through: Unpack[Through],
) -> Steiner:
    """Steiner point of what the constraints leave, costs ignored.

    Parameters
    ----------
    horizon
        T, how many rounds will be played: how much room the outline may need. Values: a whole number, 1 or above.
        Unit: rounds.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    samples
        How many directions are drawn, from three dimensions on. Values: a whole number, 2 or above. Unit:
        directions.
    seed
        The seed of the policy's own randomness. Values: a whole number, 0 or above.
    """
    d, middle = domain.dim, domain.center()
    scale = domain.diameter() + float(np.linalg.norm(middle))
    T, k, n = validate.whole("horizon", horizon), constraints, validate.whole("samples", samples, 2)
    rng = np.random.default_rng(validate.whole("seed", seed, 0))
    if d == 1:
        ends = np.array([domain.linear_argmin(np.array([v])) for v in (1.0, -1.0)])
        return Steiner(domain, Plane(outline(ends, np.zeros(2), 2), scale, middle, 0.0))
    base, cuts = peeled(domain)
    ball = isinstance(base, BallSet)
    rows = cuts if ball else np.vstack([_rows(base), cuts])
    if d == 2:
        return Steiner(domain, _plane(base, rows, scale, T * k))
    half = rng.standard_normal(((n + 1) // 2, d))
    directions = np.vstack([half, -half]) / np.linalg.norm(np.vstack([half, half]), axis=1, keepdims=True)
    corners = np.array([domain.linear_argmin(-u) for u in directions])
    start = Sample(corners, np.zeros((min(ROWS, T * k), d + 1)), 0.0)
    A, b = rows[:, :-1], rows[:, -1]
    return Steiner(
        domain, Sampled(start, scale, directions, RoundBody(A, b, *base) if isinstance(base, BallSet) else FlatBody(A, b, middle, scale))
    )

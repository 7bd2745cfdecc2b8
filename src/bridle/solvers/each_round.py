"""The best action of each round: argmin f_t over {x in X : g_t(x) <= 0}, for a whole stream.

There is a formula where a round has at most one affine constraint and a cost that is affine or equally curved in every direction: the
lowest, or the nearest, point of the domain below one cut. Other rounds are convex programs, one each. Where several actions of a round are
equally good, it is one of them.

>>> from bridle.domains import Ball
>>> costs = AffineFunction(np.array([[0.6, -0.8], [-1.0, 0.0]]), np.zeros(2))
>>> limits = AffineFunction(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([-0.6, -0.6]))
>>> found = best_of_each_round(lambda: [Round(costs, (limits,))], Ball(2))
>>> found.path.round(6).tolist(), round(found.cost, 6)
([[-0.8, 0.6], [1.0, 0.0]], -1.96)
"""

from __future__ import annotations

import numpy as np

from bridle import records
from bridle.core import Domain, Round
from bridle.domains.closed_form import BallSet
from bridle.domains.half_space_cut import BallCut, DomainCut
from bridle.domains.polyhedron import PolyhedronSet
from bridle.functions import AffineFunction, AffineRows, Coordinate, RoundQuadratic
from bridle.ops import Array, dot, norm, ratio, where
from bridle.solvers.block_stream import Blocks, NoComparator, batch
from bridle.solvers.hindsight import best_fixed
from bridle.solvers.hinge_prox import hinge
from bridle.solvers.paths import BestPath, gradients_along, length_of, limits_along, rounds_in, values_along

MOST_PROGRAMS = 1_000
"""The most rounds that are solved as programs of their own."""

FARTHEST = 1e8
"""Times the diameter: so far the search for the nearest point below a cut goes along its normal."""

EXACT = 1e-7
"""Times the diameter: how far an answer of a formula may be above its cut for rounding."""

FIRST = 1e8
"""What a cut's normal weighs against the cost's slope where the cut only touches the domain: the limit is met before costs count."""


def best_of_each_round(blocks: Blocks, domain: Domain) -> BestPath:
    """The path of the best actions; raises NoComparator where a round allows none, and where too many rounds have no formula."""
    middle, programs = np.asarray(domain.center(), dtype=float), 0
    parts: list[Array] = []
    costs: list[Array] = []
    worst = 0.0
    for block in map(batch, blocks()):
        n = rounds_in(block, middle)
        path = _by_formula(block, domain, np.tile(middle, (n, 1)))
        if path is None:
            programs += n
            if programs > MOST_PROGRAMS:
                raise NoComparator(f"no formula tells the best action of a round, and programs are solved for {MOST_PROGRAMS} at most")
            each = [block] if n == 1 else [records.cut(block, i, i + 1) for i in range(n)]
            path = np.array([best_fixed(lambda one=one: [one], domain).x for one in each])  # type: ignore[misc]
        parts.append(path)
        costs.append(values_along(block.cost, path).sum(axis=1))
        worst = max(worst, float(limits_along(block, path)[0].max(initial=0.0)))
    found, cost = np.concatenate(parts), float(np.concatenate(costs).sum())
    return BestPath(found, cost, length_of(found), worst, cost)


def _by_formula(block: Round, domain: Domain, middles: Array) -> Array | None:
    """The best actions of a block's rounds; None where there is no formula."""
    affine = all(isinstance(limit, (AffineFunction, AffineRows, Coordinate)) for limit in block.constraints)
    if not affine or not isinstance(block.cost, (AffineFunction, RoundQuadratic)) or isinstance(domain, PolyhedronSet):
        return None
    values, rows = limits_along(block, middles)
    if values.shape[1] > 1:
        return None
    if values.shape[1] == 0:
        values, rows = np.full((len(middles), 1), -1.0), np.zeros((len(middles), 1, middles.shape[1]))
    lengths = np.linalg.norm(rows[:, 0], axis=1, keepdims=True)
    normals, levels = ratio(rows[:, 0], lengths), dot(ratio(rows[:, 0], lengths), middles) - ratio(values, lengths)
    room = where(lengths > 0.0, levels - domain.linear_min(normals), -values)
    if (missed := np.asarray(room < -EXACT * domain.diameter())[:, 0]).any():
        raise NoComparator(f"no action of the domain satisfies the constraint of {int(missed.sum())} rounds")
    if isinstance(block.cost, RoundQuadratic) and np.any(np.asarray(block.cost.curvature) != 0.0):
        if not (np.asarray(block.cost.curvature) > 0.0).all():
            return None
        targets = block.cost.c - ratio(block.cost.a, block.cost.curvature)
        path = _nearest(domain, np.broadcast_to(targets, middles.shape), normals, levels)
    else:
        path = _lowest(domain, gradients_along(block.cost, middles), normals, levels, room)
    return path if float((dot(normals, path) - levels).max(initial=0.0)) <= EXACT * domain.diameter() else None


def _nearest(domain: Domain, targets: Array, normals: Array, levels: Array) -> Array:
    """The nearest points to the targets below the cuts."""
    far = FARTHEST * (domain.diameter() + float(norm(targets - domain.center()).max()))  # type: ignore[union-attr]
    return np.asarray(hinge(domain, targets, normals, levels, 2.0 * far, 1.0))


def _lowest(domain: Domain, slopes: Array, normals: Array, levels: Array, room: Array) -> Array:
    """The points with the least <slope, x> below the cuts."""
    free = np.asarray(domain.linear_argmin(slopes)) + 0.0 * slopes
    crossed = (dot(normals, free) > levels) & (room > 0.0)
    if isinstance(domain, BallSet):
        heights = np.clip(where(crossed, levels - dot(normals, domain.middle + 0.0 * normals), 0.0), -domain.radius, domain.radius)
        cut = BallCut(domain.middle, domain.radius, normals, heights)  # type: ignore[arg-type]
        return where(crossed, cut.linear_argmin(slopes), _onto_touched(domain, slopes, free, normals, levels, room))
    bottom = np.asarray(domain.linear_argmin(normals)) + 0.0 * normals
    tops = where(crossed, levels, dot(normals, free) + 1.0)
    cut = DomainCut(domain, normals, tops, bottom, where(crossed, room, 1.0), free)  # type: ignore[assignment,arg-type]
    return where(crossed, cut.linear_argmin(slopes), _onto_touched(domain, slopes, free, normals, levels, room))


def _onto_touched(domain: Domain, slopes: Array, free: Array, normals: Array, levels: Array, room: Array) -> Array:
    """The free minimisers; where a cut only touches the domain, the best of the points where it does: of a box that is a face."""
    touching = np.asarray(domain.linear_argmin(FIRST * normals + ratio(slopes, norm(slopes))))
    return where((room <= 0.0) & (dot(normals, free) > levels), touching, free)

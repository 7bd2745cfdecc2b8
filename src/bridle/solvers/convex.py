"""Which solver takes a convex program: HiGHS, the interior point, or a splitting around the domain's projection.

Linear programs go to HiGHS, other ones to a primal-dual interior point. A domain that is known only by its projection is split off from
the rest of the program.
"""

from __future__ import annotations

import numpy as np

from bridle.backends import linear_program
from bridle.core import Domain
from bridle.functions import RoundQuadratic
from bridle.ops import Array
from bridle.solvers.interior_point import FULL_ACCURACY, cost_unit, interior
from bridle.solvers.program import ConvexProgram, Solution, evaluate, length


def solve(program: ConvexProgram, domain: Domain, accuracy: float = FULL_ACCURACY) -> Solution:
    """The best answer to be had; how good it is, `lower_bound` tells."""
    if not program.region.known:
        return split(program, domain, accuracy)
    return (linear(program) if program.linear else None) or interior(program, accuracy)


def linear(program: ConvexProgram) -> Solution | None:
    """A linear program by HiGHS; None where it finds no solution."""
    region, n = program.region, program.region.N.shape[1]
    slope = sum((np.asarray(part.grad(region.origin)).sum(axis=0) for part in program.sums), np.zeros(len(region.origin))) @ region.N
    levels, rows = evaluate((*program.top, *program.limits), region.origin)
    highest = sum(length(part, region.origin) for part in program.top)
    A, b = np.concatenate([rows @ region.N, region.A]), np.concatenate([-levels, region.b])
    size = np.linalg.norm(A, axis=1)
    size[size == 0.0] = 1.0
    # Rows of length 1, and costs in units of their slope: the tolerances of HiGHS are absolute.
    unit = max(float(np.linalg.norm(slope)), float(size[:highest].max(initial=0.0))) or 1.0
    above = np.where(np.arange(len(b)) < highest, -unit, 0.0)
    answer = linear_program(
        np.append(slope / unit, 1.0 if program.top else 0.0),
        np.column_stack([A, above]) / size[:, None],
        b / size,
        [(None, None)] * n + [(None, None) if program.top else (0.0, 0.0)],
    )
    if answer is None or not answer.optimal:
        return None
    weights = np.maximum(0.0, -unit * answer.marginals / size)
    return Solution(region.origin + region.N @ answer.x[:n], [], weights[:highest], weights[highest : len(levels)])


def split(program: ConvexProgram, domain: Domain, accuracy: float, steps: int = 1000) -> Solution:
    """Douglas-Rachford splitting between the domain, by its projection, and the rest of the program, by the interior point.

    Anderson's extrapolation from the last steps makes it fast; where that does not bring the two closer together, the plain step is taken,
    which always converges.
    """
    region, unit = program.region._replace(known=True), float(domain.diameter()) or 1.0
    pull = np.full((1, 1), 2.0 * cost_unit(program._replace(region=region)) / unit**2)
    zero = np.zeros((1, len(region.origin)))

    def apart(z: Array) -> tuple[Array, Solution]:
        p = np.asarray(domain.project(z))
        near = RoundQuadratic(pull, (2.0 * p - z)[None], zero, zero[:, :1])
        solution = interior(program._replace(region=region, sums=(*program.sums, near)), max(1e-12, 1e-3 * accuracy))
        return solution.x - p, solution._replace(x=p)

    z = region.origin
    move, solution = apart(z)
    points: list[Array] = []
    moves: list[Array] = []
    while (length := float(np.linalg.norm(move))) > max(accuracy, 1e-10) * unit and (steps := steps - 1) > 0:
        points, moves = [*points[-10:], z], [*moves[-10:], move]
        if len(moves) > 2:
            dz, dm = np.diff(points, axis=0), np.diff(moves, axis=0)
            guess = z + move - np.linalg.lstsq(dm.T, move, rcond=1e-10)[0] @ (dz + dm)
            if np.linalg.norm(guess - z) <= 10.0 * unit:
                further, there = apart(guess)
                if np.linalg.norm(further) <= length:
                    z, move, solution = guess, further, there
                    continue
            points, moves = points[-3:], moves[-3:]
        z = z + move
        move, solution = apart(z)
    return solution

"""Solvers for the programs of `programs`: HiGHS, an interior point, a splitting around a projection, and cutting planes.

Linear programs go to HiGHS, other ones to a primal-dual interior point. A domain that is known only by its projection is split off from
the rest of the program, and a function known only by values and gradients is replaced by its cutting planes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bridle.backends import linear_program
from bridle.core import Domain
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.solvers.interior_point import EXACT, cost_unit, interior
from bridle.solvers.program import Program, Solution, evaluate, inside, lower_bound, shares


def solve(program: Program, domain: Domain, accuracy: float = EXACT) -> Solution:
    """The best answer to be had; how good it is, `lower_bound` tells."""
    if not program.shape.known:
        return split(program, domain, accuracy)
    return (linear(program) if program.linear else None) or interior(program, accuracy)


def linear(program: Program) -> Solution | None:
    """A linear program by HiGHS; None where it finds no solution."""
    shape, n = program.shape, program.shape.N.shape[1]
    slope = sum((np.asarray(part.grad(shape.origin)).sum(axis=0) for part in program.sums), np.zeros(len(shape.origin))) @ shape.N
    levels, rows = evaluate((*program.top, *program.limits), shape.origin)
    highest = sum(len(part.value(shape.origin)) for part in program.top)
    A, b = np.concatenate([rows @ shape.N, shape.A]), np.concatenate([-levels, shape.b])
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
    return Solution(shape.origin + shape.N @ answer.x[:n], [], weights[:highest], weights[highest : len(levels)])


def split(program: Program, domain: Domain, accuracy: float, steps: int = 1000) -> Solution:
    """Douglas-Rachford splitting between the domain, by its projection, and the rest of the program, by the interior point.

    Anderson's extrapolation from the last steps makes it fast; where that does not bring the two closer together, the plain step is taken,
    which always converges.
    """
    shape, unit = program.shape._replace(known=True), float(domain.diameter()) or 1.0
    pull = np.full((1, 1), 2.0 * cost_unit(program._replace(shape=shape)) / unit**2)
    zero = np.zeros((1, len(shape.origin)))

    def apart(z: np.ndarray) -> tuple[np.ndarray, Solution]:
        p = np.asarray(domain.project(z))
        near = RoundQuadratic(pull, (2.0 * p - z)[None], zero, zero[:, :1])
        found = interior(program._replace(shape=shape, sums=(*program.sums, near)), max(1e-12, 1e-3 * accuracy))
        return found.x - p, found._replace(x=p)

    z = shape.origin
    move, found = apart(z)
    points: list[np.ndarray] = []
    moves: list[np.ndarray] = []
    while (length := float(np.linalg.norm(move))) > max(accuracy, 1e-10) * unit and (steps := steps - 1) > 0:
        points, moves = [*points[-10:], z], [*moves[-10:], move]
        if len(moves) > 2:
            dz, dm = np.diff(points, axis=0), np.diff(moves, axis=0)
            guess = z + move - np.linalg.lstsq(dm.T, move, rcond=1e-10)[0] @ (dz + dm)
            if np.linalg.norm(guess - z) <= 10.0 * unit:
                further, there = apart(guess)
                if np.linalg.norm(further) <= length:
                    z, move, found = guess, further, there
                    continue
            points, moves = points[-3:], moves[-3:]
        z = z + move
        move, found = apart(z)
    return found


Oracle = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Values (m,) and gradients (m, d) at x of tangents to a convex function, the highest of which touches it there."""


class Cuts:
    """A convex function that is known only by its tangents, minimised by the level method.

    Each step takes the lowest value the tangents allow, and goes to the nearest point where they are not much above it. Tangents hold
    everywhere, so they are kept from one program to the next.
    """

    def __init__(self, oracle: Oracle, x: np.ndarray) -> None:
        self.oracle, self.slopes, self.levels = oracle, np.zeros((0, len(x))), np.zeros((0, 1))
        self.add(x)

    def add(self, x: np.ndarray) -> float:
        """The value at x, after its tangents have been added."""
        values, slopes = self.oracle(x)
        self.slopes, self.levels = np.concatenate([self.slopes, slopes]), np.concatenate([self.levels, (values - slopes @ x)[:, None]])
        return float(values.max())

    def minimise(self, program: Program, domain: Domain, tolerance: float, steps: int = 500) -> tuple[Program, Solution]:
        """The minimum over the program's domain and limits: the program in tangents, and its solution."""
        upper, x = np.inf, program.shape.origin
        while True:
            model = program._replace(top=(AffineFunction(self.slopes, self.levels),))
            found = solve(model, domain)
            lower = lower_bound(model, domain, found.x, found)
            for step in (0, 1):
                point = found.x if step == 0 else self._lowered(program, domain, x, lower + 0.3 * (upper - lower))
                point = inside(domain, point)
                value = self.add(point)
                if value < upper and all(shares(part, point, domain).max(initial=0.0) <= 1e-9 for part in program.limits):
                    upper, x = value, point
                if upper == np.inf:  # no point meets the limits, or none was found: there is nothing to improve
                    return model, found
                if upper - lower <= tolerance or (steps := steps - 1) < 0:
                    return model, found._replace(x=x)

    def _lowered(self, program: Program, domain: Domain, x: np.ndarray, level: float) -> np.ndarray:
        """The point nearest to x where the tangents are not above the level."""
        near = RoundQuadratic(np.ones((1, 1)), x[None], np.zeros((1, len(x))), np.zeros((1, 1)))
        below = AffineFunction(self.slopes, self.levels - level)
        return solve(program._replace(sums=(near,), limits=(*program.limits, below)), domain).x

"""Cutting planes: a convex function known only by values and gradients is minimised by way of its tangents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bridle.core import Domain
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.ops import Array
from bridle.solvers.convex import solve
from bridle.solvers.program import ConvexProgram, Solution, inside, lower_bound, shares

Oracle = Callable[[Array], tuple[Array, Array]]
"""Values (m,) and gradients (m, d) at x of tangents to a convex function, the highest of which touches it there."""


class Tangents:
    """A convex function that is known only by its tangents, minimised by the level method.

    Each step takes the lowest value the tangents allow, and goes to the nearest point where they are not much above it. Tangents hold
    everywhere, so they are kept from one program to the next.
    """

    def __init__(self, oracle: Oracle, x: Array) -> None:
        self.oracle, self.slopes, self.levels = oracle, np.zeros((0, len(x))), np.zeros((0, 1))
        self.add(x)

    def add(self, x: Array) -> float:
        """The value at x, after its tangents have been added."""
        values, slopes = self.oracle(x)
        self.slopes, self.levels = np.concatenate([self.slopes, slopes]), np.concatenate([self.levels, (values - slopes @ x)[:, None]])
        return float(values.max())

    def minimise(self, program: ConvexProgram, domain: Domain, tolerance: float, steps: int = 500) -> tuple[ConvexProgram, Solution]:
        """The minimum over the program's domain and limits: the program in tangents, and its solution."""
        upper, x = np.inf, program.region.origin
        while True:
            model = program._replace(top=(AffineFunction(self.slopes, self.levels),))
            solution = solve(model, domain)
            lower = lower_bound(model, domain, solution.x, solution)
            for step in (0, 1):
                point = solution.x if step == 0 else self._lowered(program, domain, x, lower + 0.3 * (upper - lower))
                point = inside(domain, point)
                value = self.add(point)
                if value < upper and all(shares(part, point, domain).max(initial=0.0) <= 1e-9 for part in program.limits):
                    upper, x = value, point
                if upper == np.inf:  # no point meets the limits, or none was found: there is nothing to improve
                    return model, solution
                if upper - lower <= tolerance or (steps := steps - 1) < 0:
                    return model, solution._replace(x=x)

    def _lowered(self, program: ConvexProgram, domain: Domain, x: Array, level: float) -> Array:
        """The point nearest to x where the tangents are not above the level."""
        near = RoundQuadratic(np.ones((1, 1)), x[None], np.zeros((1, len(x))), np.zeros((1, 1)))
        below = AffineFunction(self.slopes, self.levels - level)
        return solve(program._replace(sums=(near,), limits=(*program.limits, below)), domain).x

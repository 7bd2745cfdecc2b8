"""Convex programs over a domain, proximal steps and nearest points: numbers in, numbers out; no rounds, no policies.

A `ConvexProgram` over the `region` of a domain is handed to `solve`; `lower_bound` proves how good the answer is.

>>> import numpy as np
>>> from bridle.domains import Ball
>>> from bridle.functions import AffineFunction
>>> ball, slope = Ball(2), AffineFunction(np.array([[3.0, 4.0]]), np.zeros((1, 1)))
>>> program = ConvexProgram(region(ball), sums=(slope,))
>>> answer = solve(program, ball)
>>> answer.x.round(6), round(lower_bound(program, ball, answer.x, answer), 6)
(array([-0.6, -0.8]), -5.0)
"""

from bridle.solvers.convex import solve
from bridle.solvers.program import ConvexProgram, Solution, lower_bound, region

__all__ = ["ConvexProgram", "Solution", "lower_bound", "region", "solve"]

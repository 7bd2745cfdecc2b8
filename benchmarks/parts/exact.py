"""Exact programs over a domain and halfspaces, by HiGHS (linear costs) and Clarabel (curved costs, balls); certificates use neither's word.

An action is  shift + size E y,  with y in a ball of radius 1 (E has orthonormal columns), or y >= 0 in a polyhedron: boxes, simplices
and L1 balls. So all numbers that a solver sees are of the order of 1, as its tolerances take them to be.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from bridle.domains.closed_form import BallSet, BoxSet, L1BallSet, SimplexSet


class Program:
    """The actions of a domain that meet A u <= b; the rows of A need not have length 1, but not 0."""

    def __init__(self, domain, A, b) -> None:
        lengths = np.linalg.norm(A, axis=1)
        A, b, d = A / lengths[:, None], b / lengths, domain.dim
        self.round, self.rows, self.levels, self.equal = isinstance(domain, BallSet), np.zeros((0, d)), np.zeros(0), None
        if isinstance(domain, BallSet):
            self.shift, self.size = np.array(domain.middle), float(domain.radius)
            self.E = np.zeros((d, 0))  # found when the cost is known: only what rows and cost span matters
        elif isinstance(domain, BoxSet):
            low, high = np.broadcast_to(domain.low, (d,)), np.broadcast_to(domain.high, (d,))
            self.shift, self.size, self.E = np.array(low), float((high - low).max()), np.eye(d)
            self.rows, self.levels = np.eye(d), (high - low) / self.size
        elif isinstance(domain, SimplexSet):
            self.shift, self.size, self.E = np.zeros(d), float(domain.mass), np.eye(d)
            self.equal = (np.ones((1, d)), np.ones(1))
        else:
            assert isinstance(domain, L1BallSet)
            self.shift, self.size, self.E = np.array(domain.middle), float(domain.radius), np.hstack([np.eye(d), -np.eye(d)])
            self.rows, self.levels = np.ones((1, 2 * d)), np.ones(1)
        self.A, self.b = A, (b - A @ self.shift) / self.size

    def depth(self) -> float:
        """How far the best action is outside of the halfspace that it is farthest outside of; below 0 if it is inside of all."""
        if not len(self.b):
            return -np.inf
        E = self._basis(np.zeros(self.A.shape[1]))
        n = E.shape[1]
        rows = np.hstack([self.A @ E, -np.ones((len(self.b), 1))])  # y, then s, the distance
        return self.size * float(self._solve(np.append(np.zeros(n), 1.0), 0.0, rows, n)[-1])

    def best(self, q, M: float):
        """The action with the least <q, u> + M/2 |u|^2."""
        slope, curve = self.size * (q + M * self.shift), M * self.size * self.size
        E = self._basis(slope)
        unit = max(np.abs(slope).max(), curve, 1e-300)
        return self.shift + self.size * (E @ self._solve(E.T @ slope / unit, curve / unit, self.A @ E, E.shape[1], E))

    def _basis(self, slope):
        if not self.round:
            return self.E
        left, sizes, _ = np.linalg.svd(np.vstack([self.A, slope[None] / max(np.linalg.norm(slope), 1e-300)]).T, full_matrices=False)
        return left[:, sizes > 1e-12 * sizes.max()]

    def _solve(self, cost, curve, rows, n, E=None):
        """The y of the least  cost'y + curve/2 |E y|^2  where rows y <= b and the first n of y are in the domain; others are free."""
        more = len(cost) - n
        own, levels = np.hstack([self.rows, np.zeros((len(self.rows), more))])[:, : len(cost)], self.levels
        if self.round:
            inside = np.zeros((n + 1, len(cost)))
            inside[1:, :n] = -np.eye(n)
            A, b = np.vstack([rows, inside]), np.concatenate([self.b, [1.0], np.zeros(n)])
            return _clarabel(
                curve * np.eye(len(cost)), cost, A, b, [clarabel.NonnegativeConeT(len(rows)), clarabel.SecondOrderConeT(n + 1)]
            )
        A, b = np.vstack([rows, own]), np.concatenate([self.b, levels])
        equal = None if self.equal is None else (np.hstack([self.equal[0], np.zeros((1, more))]), self.equal[1])
        if curve == 0.0:
            return _highs(cost, A, b, equal, [(0.0, None)] * n + [(None, None)] * more)
        A, b, cones = np.vstack([A, -np.eye(n)]), np.concatenate([b, np.zeros(n)]), [clarabel.NonnegativeConeT(len(b) + n)]
        if equal is not None:
            A, b, cones = np.vstack([equal[0], A]), np.concatenate([equal[1], b]), [clarabel.ZeroConeT(1), *cones]
        return _clarabel(curve * (E.T @ E), cost, A, b, cones)


def _highs(cost, A, b, equal, bounds):
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    A_eq, b_eq = (None, None) if equal is None else equal
    answer = linprog(cost, A_ub=A, b_ub=b, A_eq=A_eq, b_eq=b_eq, bounds=bounds, method="highs", options=tight)
    if answer.x is None:
        raise RuntimeError(answer.message)
    return answer.x


def _clarabel(P, q, A, b, cones):
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = False, 1e-10, 1e-10, 1e-10
    solver = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(P)), q, sparse.csc_matrix(A), b, cones, settings)
    answer = solver.solve()
    if "Solved" not in str(answer.status):
        raise RuntimeError(str(answer.status))
    return np.array(answer.x)

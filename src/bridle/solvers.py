"""Solvers for the programs of `programs`: HiGHS, an interior point, a splitting around a projection, and cutting planes.

Linear programs go to HiGHS, other ones to a primal-dual interior point. A domain that is known only by its projection is split off from
the rest of the program, and a function known only by values and gradients is replaced by its cutting planes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bridle.core import Domain
from bridle.functions import AffineFunction, LogisticLoss, RoundQuadratic
from bridle.programs import AFFINE, Program, Solution, evaluate, lower_bound, curvature

EXACT = 1e-11
"""The residuals at which the interior point stops, in units where the domain and the cost's variation over it are of the order of 1."""


def solve(program: Program, domain: Domain, accuracy: float = EXACT, start: np.ndarray | None = None) -> Solution:
    """The best answer to be had; how good it is, `lower_bound` tells."""
    if not program.shape.known:
        return split(program, domain, accuracy, start)
    return (linear(program) if program.linear else None) or interior(program, accuracy)


def linear(program: Program) -> Solution | None:
    """A linear program by HiGHS; None where it finds no solution."""
    from scipy.optimize import linprog

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
    answer = linprog(
        np.append(slope / unit, 1.0 if program.top else 0.0),
        A_ub=np.column_stack([A, above]) / size[:, None],
        b_ub=b / size,
        bounds=[(None, None)] * n + [(None, None) if program.top else (0.0, 0.0)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.status != 0:
        return None
    weights = np.maximum(0.0, -unit * answer.ineqlin.marginals / size)
    return Solution(shape.origin + shape.N @ answer.x[:n], [], weights[:highest], weights[highest : len(levels)])


class _Rows:
    """All inequalities of a program at once: c(y) (m,) and its Jacobian (m, n), those that belong to a maximum first.

    What is affine is laid out once. `starts` are the first rows of the maxima and `sizes` their lengths. Everything is in units in which a
    limit varies by about 1 over the domain, and so does the cost.
    """

    def __init__(self, program: Program) -> None:
        shape = self.shape = program.shape
        self.sums, self.places = program.sums, []
        at, sizes = 0, []
        for group in program.maxima:
            rounds, width = len(group[0].value(shape.origin)), len(group)
            self.places += [(slice(at + j, at + rounds * width, width), piece) for j, piece in enumerate(group)]
            sizes += [width] * rounds
            at += rounds * width
        for parts in (program.top, (*program.limits, *shape.curved)):
            for part in parts:
                self.places.append((slice(at, at := at + len(part.value(shape.origin))), part))
            if parts is program.top:
                sizes += [at - sum(sizes)] if parts else []
                self.owned = at
        self.sizes = np.array(sizes, dtype=int)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.limits = at - len(shape.curved)  # where the rows of the program end and those of the domain begin
        self.curved = [place for place in self.places if not isinstance(place[1], AFFINE)]
        self.c, self.J = np.concatenate([np.zeros(at), -shape.b]), np.concatenate([np.zeros((at, shape.N.shape[1])), shape.A])
        for place, part in self.places:
            self.c[place], self.J[place] = np.asarray(part.value(shape.origin))[:, 0], part.grad(shape.origin) @ shape.N
        self.unit = 1.0
        _, slope, bend = self.cost(np.zeros(shape.N.shape[1]))
        lengths = np.linalg.norm(self.J, axis=1)
        most = float(np.maximum.reduceat(lengths[: self.owned], self.starts).sum()) if self.owned else 0.0
        self.unit = max(float(np.linalg.norm(slope)), float(np.abs(bend).max(initial=0.0)), most) or 1.0
        lengths = np.maximum(lengths, np.abs(self.c))
        lengths[: self.owned] = self.unit
        self.scale = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
        self.c, self.J = self.c * self.scale, self.J * self.scale[:, None]
        self.fixed = self.J.copy() if self.curved else self.J
        for place, _ in self.curved:
            self.fixed[place] = 0.0

    def cost(self, y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The smooth part of the cost at y: value, gradient, Hessian."""
        x, N = self.shape.origin + self.shape.N @ y, self.shape.N
        value, slope, bend = 0.0, np.zeros(len(x)), np.zeros((len(x), len(x)))
        for part in self.sums:
            values = np.asarray(part.value(x))[:, 0]
            value += float(values.sum())
            slope = slope + np.asarray(part.grad(x)).sum(axis=0)
            bend = bend + curvature(part, x, np.ones(len(values)))
        return value / self.unit, slope @ N / self.unit, N.T @ bend @ N / self.unit

    def at(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and Jacobian at y; the Jacobian is one array, overwritten by the next call."""
        c = self.c + self.fixed @ y
        x = self.shape.origin + self.shape.N @ y
        for place, part in self.curved:
            c[place] = self.scale[place] * np.asarray(part.value(x))[:, 0]
            self.J[place] = self.scale[place][:, None] * (part.grad(x) @ self.shape.N)
        return c, self.J

    def bend(self, y: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        """The Hessian of the inequalities, weighted."""
        x, N = self.shape.origin + self.shape.N @ y, self.shape.N
        hessian = np.zeros((len(x), len(x)))
        for place, part in self.curved:
            hessian += curvature(part, x, multipliers[place] * self.scale[place])
        return np.asarray(N.T @ hessian @ N)

    # Sums and maxima over the rows of each maximum, and values of each maximum back on its rows (0 on the rows of none).

    def sum(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.add.reduceat(values[: self.owned], self.starts, axis=0)) if self.owned else values[:0]

    def most(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum.reduceat(values[: self.owned], self.starts)) if self.owned else values[:0]

    def spread(self, values: np.ndarray) -> np.ndarray:
        wide = np.repeat(values, self.sizes, axis=0)
        return np.concatenate([wide, np.zeros((len(self.c) - self.owned, *values.shape[1:]))])


def interior(program: Program, accuracy: float = EXACT, iterations: int = 150) -> Solution:
    """Mehrotra's predictor-corrector from an infeasible start, with a slack for every inequality.

    The variable that lies above each maximum is eliminated round by round, so a step costs what a least-squares fit to the rows costs.
    """
    rows = _Rows(program)
    bent = bool(rows.curved) or any(isinstance(part, LogisticLoss) for part in program.sums)
    owned = np.arange(len(rows.c)) < rows.owned
    y = np.zeros(rows.J.shape[1])
    c, J = rows.at(y)
    _, slope, H = rows.cost(y)
    s = rows.most(c)
    s = s + np.maximum(s - rows.sum(c) / rows.sizes, (0.1 * np.abs(s).sum() + 1e-3) / max(len(s), 1))
    z = np.where(owned, rows.spread(s) - c, np.maximum(-c, 0.1))
    lam = rows.spread(1.0 / rows.sizes)
    lam = np.where(owned, lam, (float(lam @ z) / rows.owned if rows.owned else 0.1) / z)

    best, least, idle = (y, lam), np.inf, 0
    for _ in range(iterations):
        dual, balance, primal = slope + lam @ J, 1.0 - rows.sum(lam), c - rows.spread(s) + z
        gap = float(lam @ z)
        error = max(_size(dual), _size(balance), _size(primal))
        idle += 1
        if max(error, gap) < 0.9 * least:
            best, least, idle = (y, lam), max(error, gap), 0
        if least <= accuracy or idle > (12 if least > 1e-9 else 3) or not np.isfinite(error) or not len(z):
            break
        newton = _Newton(rows, H + rows.bend(y, lam), J, lam, z)
        dy, ds, dlam, dz = newton(dual, balance, primal, lam * z)
        reach = min(_reach(z, dz), _reach(lam, dlam))
        ahead = float((lam + reach * dlam) @ (z + reach * dz)) / gap
        dy, ds, dlam, dz = newton(dual, balance, primal, lam * z + dlam * dz - min(1.0, ahead**3) * gap / len(z))
        reach = min(1.0, min(max(0.9, 1.0 - 10.0 * gap), 0.9999) * min(_reach(z, dz), _reach(lam, dlam)))
        for _ in range(8):
            y_, s_, lam_, z_ = y + reach * dy, s + reach * ds, lam + reach * dlam, z + reach * dz
            c, J = rows.at(y_)
            _, slope, H = rows.cost(y_)
            if not bent:
                break
            room = rows.spread(s_) - c  # a bent row takes back its slack at once where the step left it satisfied
            z_ = np.where(room > 0.1 * z_, room, z_)
            left = max(_size(slope + lam_ @ J), _size(1.0 - rows.sum(lam_)), _size(z_ - room)) + float(lam_ @ z_)
            if left <= (1.0 - 1e-3 * reach) * (error + gap):
                break
            reach *= 0.5
        y, s, lam, z = y_, s_, lam_, z_
    y, lam = best
    weights, maxima, at = lam * rows.scale * rows.unit, [], 0
    for group in program.maxima:
        length = len(group) * len(group[0].value(rows.shape.origin))
        maxima.append(weights[at : at + length].reshape(-1, len(group)))
        at += length
    return Solution(rows.shape.origin + rows.shape.N @ y, maxima, weights[at : rows.owned], weights[rows.owned : rows.limits])


class _Newton:
    """The Newton step of the interior point at one iterate, factored once for predictor and corrector.

    With D = lam / z a maximum contributes sum_j D_j (h_j - m)(h_j - m)', where m is the D-weighted mean of its gradients h_j: written so,
    nothing cancels when one piece has nearly all the weight.
    """

    def __init__(self, rows: _Rows, H: np.ndarray, J: np.ndarray, lam: np.ndarray, z: np.ndarray) -> None:
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        self.rows, self.lam, self.z = rows, lam, z
        self.D = lam / z
        self.weight = rows.sum(self.D)
        self.middle = rows.sum(self.D[:, None] * J) / self.weight[:, None]
        self.K = J - rows.spread(self.middle) if rows.owned else J
        M = H + (self.K * self.D[:, None]).T @ self.K
        units = np.sqrt(np.maximum(np.diag(M), 1e-300))
        M = M / units / units[:, None]
        for extra in (1e-15, 1e-12, 1e-9, 1e-6, 1e-3):
            try:
                factor = cho_factor(M + extra * np.eye(len(M)))
                break
            except LinAlgError:
                continue
        self.solve: Callable[[np.ndarray], np.ndarray] = lambda v: cho_solve(factor, v / units) / units

    def __call__(self, dual: np.ndarray, balance: np.ndarray, primal: np.ndarray, product: np.ndarray) -> tuple[np.ndarray, ...]:
        """The changes of y, of the variables above the maxima, of multipliers and of slacks that would zero the residuals."""
        e = (self.lam * primal - product) / self.z
        dy = self.solve(-(dual + e @ self.K + balance @ self.middle))
        lift = (self.rows.sum(e) - balance) / self.weight
        rise = self.K @ dy - self.rows.spread(lift)
        return dy, lift + self.middle @ dy, e + self.D * rise, -primal - rise


def _size(residual: np.ndarray) -> float:
    return float(np.abs(residual).max(initial=0.0))


def _reach(values: np.ndarray, change: np.ndarray) -> float:
    """The longest step, at most 1, that keeps `values` from becoming negative."""
    falling = change < 0.0
    return min(1.0, float((values[falling] / -change[falling]).min(initial=1.0)))


def split(program: Program, domain: Domain, accuracy: float, start: np.ndarray | None = None, steps: int = 1000) -> Solution:
    """Douglas-Rachford splitting between the domain, by its projection, and the rest of the program, by the interior point.

    Anderson's extrapolation from the last steps makes it fast; where that does not bring the two closer together, the plain step is taken,
    which always converges.
    """
    shape, unit = program.shape._replace(known=True), float(domain.diameter()) or 1.0
    pull = np.full((1, 1), 2.0 * _Rows(program._replace(shape=shape)).unit / unit**2)
    zero = np.zeros((1, len(shape.origin)))

    def apart(z: np.ndarray) -> tuple[np.ndarray, Solution]:
        p = np.asarray(domain.project(z))
        near = RoundQuadratic(pull, (2.0 * p - z)[None], zero, zero[:, :1])
        found = interior(program._replace(shape=shape, sums=(*program.sums, near)), min(1e-12, accuracy))
        return found.x - p, found._replace(x=p)

    z = shape.origin if start is None else start
    move, found = apart(z)
    points: list[np.ndarray] = []
    moves: list[np.ndarray] = []
    while (length := float(np.linalg.norm(move))) > accuracy * unit and (steps := steps - 1) > 0:
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

    def minimise(self, program: Program, domain: Domain, tolerance: float, steps: int = 2000) -> tuple[Program, Solution]:
        """The minimum over the program's domain and limits: the program in tangents, and its solution."""
        upper, x = np.inf, program.shape.origin
        while True:
            model = program._replace(top=(AffineFunction(self.slopes, self.levels),))
            found = solve(model, domain)
            lower = lower_bound(model, domain, found.x, found)
            if x is program.shape.origin:
                x = found.x
            value = self.add(found.x)
            if value < upper:
                upper, x = value, found.x
            if upper - lower <= tolerance or (steps := steps - 1) < 0:
                return model, found._replace(x=x)
            near = RoundQuadratic(np.ones((1, 1)), x[None], np.zeros((1, len(x))), np.zeros((1, 1)))
            below = AffineFunction(self.slopes, self.levels - (lower + 0.3 * (upper - lower)))
            there = solve(program._replace(sums=(near,), limits=(*program.limits, below)), domain).x
            value = self.add(there)
            if value < upper:
                upper, x = value, there

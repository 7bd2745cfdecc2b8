"""Polyhedra: projections by a quadratic program, sizes by linear programs.

A solver is another program, so these domains run on the Python engine only. Their numbers are made safe here: points inside are returned
untouched, every program is shifted and scaled before it is solved, and the diameter is certified by weak duality whatever the solver's
own tolerances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops, validate
from bridle.backends import UNBOUNDED, linear_program, package, quadratic_program
from bridle.core import InputError
from bridle.domains.facets import Facets, Slab
from bridle.ops import Array, Scalar
from bridle.showing import call


class Daqp(NamedTuple):
    """The dual active-set solver DAQP: exact up to rounding, and fast up to some hundred variables."""

    def nearest(self, A: Array, room: Array) -> list[tuple[Array, Array]]:
        """For each row r of `room`: the y of least length with A y <= r, and its multipliers."""
        identity, zero = np.eye(A.shape[1]), np.zeros(A.shape[1])  # (H=None would mean the identity too, but leaves the multipliers unset)
        moves = []
        for r in room:
            y, multipliers, flag = quadratic_program(identity, zero, A, r, need=_NEED["daqp"])
            if flag != 1:
                raise RuntimeError(f"daqp stopped with exit flag {flag} while projecting onto a polyhedron; try solver='osqp'")
            moves.append((y, multipliers))
        return moves


class Osqp(NamedTuple):
    """The operator-splitting solver OSQP: for polyhedra with very many rows."""

    def nearest(self, A: Array, room: Array) -> list[tuple[Array, Array]]:
        """For each row r of `room`: the y of least length with A y <= r, and its multipliers."""
        osqp = package("osqp", _NEED["osqp"])
        from scipy import sparse

        identity, zero = sparse.eye(A.shape[1], format="csc"), np.zeros(A.shape[1])
        solver = osqp.OSQP()
        solver.setup(
            identity, zero, sparse.csc_matrix(A), np.full(len(A), -np.inf), room[0], verbose=False, polishing=True, max_iter=200_000
        )
        moves = []
        for r in room:
            solver.update(u=r)
            for tolerance in (1e-8, 1e-11, 1e-14):  # until the rows that hold the point are known: polishing is then exact
                solver.update_settings(eps_abs=tolerance, eps_rel=tolerance)
                result = solver.solve(raise_error=False)
                if result.info.status_polish == 1:
                    break
            if result.info.status_val not in (1, 2):
                raise RuntimeError(f"osqp stopped with '{result.info.status}' while projecting onto a polyhedron; try solver='daqp'")
            moves.append((result.x, result.y))
        return moves


_SOLVERS: dict[str, Daqp | Osqp] = {"daqp": Daqp(), "osqp": Osqp()}
_NEED = {name: f"a Polyhedron with solver={name!r} needs" for name in _SOLVERS}


class PolyhedronSet(NamedTuple):
    """{x : A x <= b}, bounded, with rows of unit length; `middle` is its Chebyshev centre, `span` at least its diameter."""

    A: Array
    b: Array
    middle: Array
    span: float
    solver: Daqp | Osqp

    def __repr__(self) -> str:
        return call("Polyhedron", self.A, self.b)

    @property
    def compiled(self) -> bool:
        """No: it calls a solver, and runs on the Python engine only."""
        return False

    @property
    def dim(self) -> int:
        return int(self.A.shape[-1])

    def project(self, x: Array) -> Array:
        rows = x.reshape(-1, self.dim)
        over = rows @ self.A.T - self.b
        outside = ~(over <= 0.0).all(axis=-1)
        if not outside.any():
            return x
        if not np.isfinite(x).all():
            raise validate.refused("x must be finite to be projected onto a polyhedron", x)
        # The move y = P(x) - x is what is solved for, in units of the distance to go, so that tolerances are relative.
        units = np.maximum(over[outside].max(axis=-1, keepdims=True), 1e-4 * abs(over[outside]).max(axis=-1, keepdims=True))
        moves = self.solver.nearest(self.A, -over[outside] / units)
        result = rows.copy()
        result[outside] = [self._refine(v + unit * y, pull) for v, unit, (y, pull) in zip(rows[outside], units, moves, strict=True)]
        return result.reshape(x.shape)

    def _refine(self, x: Array, pull: Array) -> Array:
        """`x` put back onto the rows that hold it: rounding at the scale of a far point has left it a little off them."""
        held = pull > 1e-10 * pull.max()
        off = self.A[held] @ x - self.b[held]
        if not (abs(off) > 1e-14 * self.span).any():
            return x
        better = x - np.linalg.lstsq(self.A[held], off, rcond=None)[0]
        return better if (self.A @ better - self.b).max() <= (self.A @ x - self.b).max() else x

    def diameter(self) -> float:
        return float(self.span)

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is at most `tolerance` times (diameter + |centre|) beyond a face."""
        slack = tolerance * (self.span + ops.norm(self.middle))
        return bool(np.all(x @ self.A.T <= self.b + slack))

    def linear_min(self, v: Array) -> Scalar:
        return ops.dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        rows = v.reshape(-1, self.dim)
        room = self.b - self.A @ self.middle
        lowest: Array = self.middle + np.array([_program(row, self.A, room)[0] for row in rows])
        return lowest.reshape(v.shape)

    def facets(self) -> Facets:
        return Facets(self.dim, (Slab(self.A, np.full(len(self.b), -UNBOUNDED), self.b),))


@validate.computed
def Polyhedron(A: ArrayLike, b: ArrayLike, solver: str = "daqp") -> PolyhedronSet:
    """All points x with ``A x <= b``, a bounded set that is not empty.

    It needs a solver of quadratic programs, which the extra `qp` installs. Projections call that solver, so only the Python engine runs it.
    The diameter is that of a certified bounding box: never too small, and at most sqrt(dim) times too large.

    Parameters
    ----------
    A : array_like of shape (m, dim)
        One row for each inequality.
    b : array_like of shape (m,)
        The right-hand sides, in units of `A` times an action.
    solver : {"daqp", "osqp"}, default "daqp"
        Which solver projects.

    Examples
    --------
    >>> triangle = Polyhedron([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0])
    >>> triangle.project(np.array([1.0, 1.0])).round(9)
    array([0.5, 0.5])
    """
    validate.one_of("solver", solver, _SOLVERS)
    package(solver, _NEED[solver])
    rows = validate.array("A", A)
    if rows.ndim != 2 or rows.size == 0:
        raise InputError(f"A must be a matrix with a row for each constraint, not an array of shape {rows.shape}")
    offsets = validate.vector("b", b, len(rows))
    lengths = np.sqrt((rows * rows).sum(axis=1))
    for i in np.flatnonzero((lengths == 0.0) & (offsets < 0.0)):
        raise InputError(f"the polyhedron is empty: row {i} of A is zero and b[{i}] is {offsets[i]:.6g}")
    kept = lengths > 0.0
    if not kept.any():
        raise InputError("the polyhedron is unbounded: every row of A is zero")
    rows, offsets = rows[kept] / lengths[kept, None], offsets[kept] / lengths[kept]
    middle = _chebyshev(rows, offsets)
    return PolyhedronSet(rows, offsets, middle, _span(rows, offsets - rows @ middle), _SOLVERS[solver])


def _program(cost: Array, A: Array, room: Array) -> tuple[Array, Array]:
    """The x that minimises <cost, x> subject to A x <= room, and the multipliers of the rows."""
    size, weight = float(abs(room).max()) or 1.0, float(abs(cost).max()) or 1.0  # to make the data of the order of 1
    answer = linear_program(cost / weight, A, room / size)
    if answer is None:  # every program here starts from a set known not to be empty
        raise InputError(f"the polyhedron is unbounded: it has no least <v, x> for v = {validate.show(cost.tolist())}")
    return size * answer.x, -weight * answer.marginals


def _chebyshev(A: Array, b: Array) -> Array:
    """The centre of the largest ball inside {x : A x <= b}, whose rows have unit length."""
    ball = np.hstack([A, np.ones((len(A), 1))])  # <a_i, x> + radius <= b_i; a negative radius is how far the rows are from meeting
    cost = np.append(np.zeros(A.shape[1]), -1.0)
    x = np.zeros(A.shape[1])
    for _ in range(2):  # the second time around the first answer: a small set far from the origin then loses no digits
        try:
            x = x + _program(cost, ball, b - A @ x)[0][:-1]
        except InputError:
            raise InputError("the polyhedron is unbounded: A x <= b holds balls of any radius") from None
    beyond = A @ x - b
    excess = float(beyond.max())
    if excess > 1e-9 * float(abs(beyond).max()) + 1e-14 * float(abs(b).max()):  # what the solver's tolerance and rounding can explain
        raise InputError(f"the polyhedron is empty: every point is {excess:.3g} or more beyond some row of A x <= b")
    return x


def _span(A: Array, room: Array) -> float:
    """An upper bound on the diameter of {x : A x <= room}, which holds the origin: the diagonal of a bounding box.

    For multipliers y >= 0, however they were found, every x of the set has x_j <= <room, y> + <e_j - A'y, x>. Where all residuals
    e_j - A'y have a 1-norm of at most rho < 1, the largest |x_j| is at most max <room, y> / (1 - rho): so the set is bounded, and the
    residuals' share of each side of the box is known.
    """
    d = A.shape[1]
    room = np.maximum(room, 0.0)  # rounding may have put the centre of a flat set a hair outside; this can only widen the set
    sides, residuals = np.empty(2 * d), np.empty(2 * d)
    for k, direction in enumerate(np.vstack([np.eye(d), -np.eye(d)])):
        y = np.maximum(_program(-direction, A, room)[1], 0.0)
        sides[k], residuals[k] = float(room @ y), float(abs(direction - y @ A).sum()) + 1e-15 * float(y.sum() + 1.0) * d
    rho = float(residuals.max())
    if not rho < 1.0:
        raise InputError(f"the polyhedron cannot be shown to be bounded: its bounding box has a dual residual of {rho:.2g}")
    reach = sides + residuals * (sides.max() / (1.0 - rho))
    return float(np.sqrt(((reach[:d] + reach[d:]) ** 2).sum())) * (1.0 + 1e-15 * len(A))

"""The solvers of other libraries, each called in one place: HiGHS, DAQP, least squares with weights >= 0, matchings, trees, eigenvectors.

Everything above decides what to solve and what an answer is worth; here is only how each library is called, and to which tolerances.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bridle.core import Unavailable
from bridle.ops import Array

if TYPE_CHECKING:
    from scipy import sparse

UNBOUNDED = 1e30
"""A limit that is not there: what DAQP takes for infinity."""

Side: TypeAlias = tuple[float | None, float | None]
"""The least and the largest value of a variable; None for none."""

SEVERAL = "several constraints in one step need"
"""Why a quadratic program needs DAQP, as its error begins, unless the caller has a better reason."""


class LinearAnswer(NamedTuple):
    """What HiGHS found: a point, whether it is the best, and the change of the least cost per unit of each row's limit, 0 or below."""

    x: Array
    optimal: bool
    marginals: Array


def linear_program(
    cost: Array,
    A: Array | sparse.csr_matrix,
    b: Array,
    bounds: Side | Sequence[Side] = (None, None),
    method: Literal["highs", "highs-ds"] = "highs",
) -> LinearAnswer | None:
    """The x with the least <cost, x> where A x <= b, by HiGHS; None where it gives no point.

    HiGHS stops at absolute tolerances: the caller makes its data of the order of 1.

    >>> linear_program(np.array([-1.0, -1.0]), np.array([[1.0, 2.0]]), np.array([2.0]), (0.0, 1.0)).x
    array([1. , 0.5])
    """
    from scipy.optimize import linprog

    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    result = linprog(cost, A_ub=A, b_ub=b, bounds=bounds, method=method, options=exact)
    return None if result.x is None else LinearAnswer(result.x, result.status == 0, result.ineqlin.marginals)


class QuadraticAnswer(NamedTuple):
    """What DAQP found: a point, a multiplier for each row, and its exit flag: 1 for an optimum, 2 for one with soft constraints."""

    x: Array
    multipliers: Array
    flag: int


def quadratic_program(
    H: Array,
    f: Array,
    rows: Array,
    high: Array,
    low: Array | None = None,
    sense: NDArray[np.int32] | None = None,
    need: str = SEVERAL,
    **settings: float,
) -> QuadraticAnswer:
    """The x with the least  x'Hx/2 + f'x  where low <= rows x <= high, by DAQP, to 1e-12; `settings` are DAQP's own."""
    exact = _EXACT | settings if settings else _EXACT
    x, _, flag, info = package("daqp", need).solve(H, f, rows, high, low, sense, **exact)
    return QuadraticAnswer(x, info["lam"], flag)


_EXACT: dict[str, float] = {"primal_tol": 1e-12, "dual_tol": 1e-12, "iter_limit": 10_000}
"""The settings of DAQP unless the caller says otherwise."""


Band: TypeAlias = tuple[Array, Array | None, Array | None]
"""Rows with a lower and an upper limit for each; None where there is no such limit."""


def quadratic_in_bands(H: Array, f: Array, bands: Sequence[Band], eps_prox: float = -1e-6, **settings: float) -> tuple[Array | None, Array]:
    """The x with the least  x'Hx/2 + f'x  where low <= rows x <= high in every band, if DAQP finds it, and the multipliers of all rows."""
    rows, low, high = stacked(bands)
    sense = np.where(low == high, 5, 0).astype(np.int32)
    answer = quadratic_program(H, f, np.ascontiguousarray(rows), high, low, sense, SEVERAL, eta_prox=1e-13, eps_prox=eps_prox, **settings)
    return (answer.x if answer.flag >= 1 else None), answer.multipliers


def stacked(bands: Sequence[Band]) -> tuple[Array, Array, Array]:
    """Bands one below the other as one, with `UNBOUNDED` for limits that are not there."""
    rows = np.vstack([rows for rows, _, _ in bands])
    low = np.concatenate([np.full(len(rows), -UNBOUNDED) if low is None else low for rows, low, _ in bands])
    high = np.concatenate([np.full(len(rows), UNBOUNDED) if high is None else high for rows, _, high in bands])
    return rows, low, high


def redundant_rows(rows: Array, levels: Array) -> NDArray[np.bool_]:
    """Which of the rows of {x : rows x <= levels} DAQP takes to be implied by the others; its word is no proof."""
    return np.asarray(package("daqp", SEVERAL).minrep(np.ascontiguousarray(rows), levels), dtype=bool)


def least_distance(A: Array, b: Array, iterations: int | None = None) -> tuple[Array, Array]:
    """The weights u >= 0 of the rows that hold the shortest y with A y <= b, and a positive multiple of (y, -1), 0 if there is no y.

    Lawson and Hanson's least distance programming (1974): u minimises |A'u|^2 + (b'u + 1)^2, and what is left of that is the multiple.
    RuntimeError where `iterations` are not enough.

    >>> u, rest = least_distance(np.array([[-1.0, 0.0]]), np.array([-2.0]))
    >>> -rest[:-1] / rest[-1]
    array([2., 0.])
    """
    from scipy.optimize import nnls

    system, aim = np.vstack([-A.T, -b]), np.append(np.zeros(A.shape[1]), 1.0)
    weights: Array = nnls(system, aim, maxiter=iterations)[0]
    return weights, system @ weights - aim


def cheapest_matching(costs: Array) -> Array:
    """Which column each row takes, as a matrix of 0 and 1, at the least cost in all: by SciPy's `linear_sum_assignment`.

    >>> cheapest_matching(np.array([[1.0, 2.0], [0.0, 4.0]]))
    array([[0., 1.],
           [1., 0.]])
    """
    from scipy.optimize import linear_sum_assignment

    chosen = np.zeros(costs.shape)
    chosen[linear_sum_assignment(costs)] = 1.0
    return chosen


def cheapest_tree(ranks: Array, ends: NDArray[np.int_]) -> Array:
    """Which edges the cheapest spanning tree has, as 0 and 1, by SciPy's `minimum_spanning_tree`.

    The costs of the m edges are the numbers 1 to m in some order: SciPy takes a cost of 0 for no edge, and a rank says which edge it is.

    >>> cheapest_tree(np.array([3.0, 1.0, 2.0]), np.array([[0, 1, 0], [1, 2, 2]]))
    array([0., 1., 1.])
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    n = int(ends.max()) + 1
    tree = minimum_spanning_tree(csr_array((ranks, (ends[0], ends[1])), shape=(n, n)))
    return np.isin(ranks, tree.data).astype(np.float64)


def lowest_eigenvector(matrix: Array) -> Array:
    """A unit vector of a symmetric matrix's least eigenvalue alone, by LAPACK's `syevr`: for large matrices far cheaper than all of them.

    >>> abs(lowest_eigenvector(np.diag([2.0, -1.0, 3.0])))
    array([0., 1., 0.])
    """
    from scipy.linalg import eigh

    vectors: Array = eigh(matrix, subset_by_index=[0, 0], driver="evr")[1]
    return vectors[:, 0]


def package(name: str, need: str) -> ModuleType:
    """A package of the extra "qp"; `need` begins the error where it is not installed."""
    module = sys.modules.get(name)
    if module is not None:
        return module
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unavailable(f"{need} the package {name}: pip install 'bridle-oco[qp]'") from None

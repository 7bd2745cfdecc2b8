"""Sets of admissible decisions: projections, linear minimisers, sizes.

The public names are factories that check their arguments and return a record of `closed_form`, `half_space_cut`, `polyhedron` or
`combinatorial`. All but those of the last two are plain arithmetic and compile.

>>> Ball(dim=2, radius=1.0).project(np.array([3.0, 4.0]))
array([0.6, 0.8])
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops, validate
from bridle.core import Domain, InputError
from bridle.domains.closed_form import BallSet, BoxSet, L1BallSet, ProductSet, SimplexSet, SpectrahedronSet
from bridle.domains.combinatorial import MatchingSet, PathSet, SpanningTreeSet, graph, network
from bridle.domains.half_space_cut import BallCut, DomainCut
from bridle.domains.polyhedron import Polyhedron, PolyhedronSet
from bridle.ops import Array, norm

__all__ = [
    "Ball", "Box", "Halfspace", "L1Ball", "Matchings", "Paths", "Polyhedron", "Product", "Simplex", "SpanningTrees", "Spectrahedron",
]  # fmt: skip


@validate.computed
def Ball(dim: int | None = None, radius: float = 1.0, center: ArrayLike | None = None) -> BallSet:
    """The Euclidean ball: all points within a distance of a centre.

    Parameters
    ----------
    dim : int, optional
        How many coordinates an action has, 1 or above. May be left out where `center` is given.
    radius : float, default 1.0
        The distance, above 0, in units of action.
    center : array_like of shape (dim,), optional
        The middle of the ball. Default: the origin.

    Examples
    --------
    >>> Ball(radius=2.0, center=[1.0, 0.0]).project(np.array([5.0, 0.0]))
    array([3., 0.])
    """
    return BallSet(_middle(dim, center), validate.positive("radius", radius))


@validate.computed
def Box(low: ArrayLike, high: ArrayLike, dim: int | None = None) -> BoxSet:
    """All points with ``low <= x <= high`` in every coordinate.

    Parameters
    ----------
    low : float or array_like of shape (dim,)
        The smallest value of each coordinate, in units of action. A number stands for all coordinates.
    high : float or array_like of shape (dim,)
        The largest value of each coordinate; nowhere below `low`.
    dim : int, optional
        How many coordinates an action has, 1 or above. Must be given where `low` and `high` are both numbers.

    Examples
    --------
    >>> Box(0.0, 1.0, dim=3).project(np.array([-1.0, 0.5, 2.0]))
    array([0. , 0.5, 1. ])
    """
    lows, highs = validate.array("low", low), validate.array("high", high)
    if dim is None and lows.ndim == 0 and highs.ndim == 0:
        raise InputError("dim must be given where low and high are numbers")
    size = max(lows.size, highs.size) if dim is None else validate.whole("dim", dim)
    lows = validate.vector("low", np.full(size, lows) if lows.ndim == 0 else lows, size)
    highs = validate.vector("high", np.full(size, highs) if highs.ndim == 0 else highs, size)
    for i in np.flatnonzero(lows > highs):
        raise InputError(f"the box is empty: low is {lows[i]:.6g}, above high {highs[i]:.6g}, in coordinate {i}")
    return BoxSet(lows, highs)


@validate.computed
def Simplex(dim: int, mass: float = 1.0) -> SimplexSet:
    """All vectors without negative entries that sum to `mass`; with mass 1, the probability vectors.

    Parameters
    ----------
    dim : int
        How many coordinates an action has, 1 or above.
    mass : float, default 1.0
        The sum of the entries, above 0, in units of action.

    Examples
    --------
    >>> Simplex(3).project(np.array([1.0, 1.0, -5.0]))
    array([0.5, 0.5, 0. ])
    """
    d, total = validate.whole("dim", dim), validate.positive("mass", mass)
    return SimplexSet(total, np.full(d, total / d))


@validate.computed
def L1Ball(dim: int | None = None, radius: float = 1.0, center: ArrayLike | None = None) -> L1BallSet:
    """All points whose coordinates differ from those of a centre by at most `radius` in total.

    Parameters
    ----------
    dim : int, optional
        How many coordinates an action has, 1 or above. May be left out where `center` is given.
    radius : float, default 1.0
        The largest sum of absolute differences, above 0, in units of action.
    center : array_like of shape (dim,), optional
        The middle. Default: the origin.

    Examples
    --------
    >>> L1Ball(dim=2).project(np.array([2.0, -1.5]))
    array([ 0.75, -0.25])
    """
    return L1BallSet(_middle(dim, center), validate.positive("radius", radius))


@validate.computed
def Spectrahedron(size: int, trace: float = 1.0) -> SpectrahedronSet:
    """All positive semidefinite matrices with a given trace, as vectors of their entries.

    Parameters
    ----------
    size : int
        Rows and columns of a matrix, 1 or above. An action has ``size * size`` coordinates.
    trace : float, default 1.0
        The sum of the diagonal entries, above 0, in units of action.

    Examples
    --------
    >>> Spectrahedron(2).project(np.array([2.0, 0.0, 0.0, -1.0]))
    array([1., 0., 0., 0.])
    """
    n, total = validate.whole("size", size), validate.positive("trace", trace)
    return SpectrahedronSet(total, (np.eye(n) * (total / n)).ravel())


@validate.computed
def Paths(edges: Iterable[tuple[Hashable, Hashable]], source: Hashable, target: Hashable) -> PathSet:
    """The paths of a network from one node to another, and their mixtures: the unit flows.

    A coordinate is an edge, in the order in which they are given: 1 where the path takes it, or the share of paths that do. The network has
    no cycle; where a node may be reached at several steps, give it once for each. A path with the mean `x` is drawn by
    ``bridle.round_randomly(x, rng, to=domain)``. The centre is the mean over all paths, and the diameter is exact.

    Returns the domain; ``linear_argmin(v)`` is the cheapest path with costs `v`, which may be negative.

    Parameters
    ----------
    edges : iterable of (node, node)
        Where each edge begins and where it ends; nodes are numbers or names. Two edges may join the same nodes.
    source : node
        Where every path begins.
    target : node
        Where every path ends.

    Examples
    --------
    >>> roads = Paths([("home", "bridge"), ("home", "tunnel"), ("bridge", "work"), ("tunnel", "work")], "home", "work")
    >>> roads.linear_argmin(np.array([3.0, 1.0, 1.0, 2.0]))
    array([0., 1., 0., 1.])
    """
    return network(edges, source, target)


@validate.computed
def Matchings(rows: int, columns: int | None = None) -> MatchingSet:
    """The ways to give each row a column of its own, and their mixtures.

    A coordinate is a pair of a row and a column, row by row: 1 where they are matched, or how often they are. With as many columns as rows
    the mixtures are the doubly stochastic matrices. A matching with the mean `x` is drawn by ``bridle.round_randomly(x, rng, to=domain)``.

    Parameters
    ----------
    rows : int
        How many rows there are, 1 or above: each is matched.
    columns : int, optional
        How many columns there are, no fewer than `rows`. Default: as many as rows.

    Examples
    --------
    >>> Matchings(2).linear_argmin(np.array([1.0, 2.0, 0.0, 4.0]))
    array([0., 1., 1., 0.])
    """
    m = validate.whole("rows", rows)
    n = m if columns is None else validate.whole("columns", columns)
    if n < m:
        raise InputError(f"columns must be {m} or above, one for each row, not {n}")
    return MatchingSet(np.full((m, n), 1.0 / n))


@validate.computed
def SpanningTrees(edges: Iterable[tuple[Hashable, Hashable]]) -> SpanningTreeSet:
    """The spanning trees of a graph, and their mixtures.

    A coordinate is an edge, in the order in which they are given: 1 where the tree has it, or the share of trees that do. A tree with the
    mean `x` is drawn by ``bridle.round_randomly(x, rng, to=domain)``. The centre is the mean over all spanning trees; the diameter is an
    upper bound, exact where two trees share no edge but those that all have.

    Returns the domain; ``linear_argmin(v)`` is the cheapest spanning tree with costs `v`, which may be negative.

    Parameters
    ----------
    edges : iterable of (node, node)
        The nodes that each edge joins, numbers or names; no edge comes twice.

    Examples
    --------
    >>> SpanningTrees([("a", "b"), ("b", "c"), ("c", "a")]).linear_argmin(np.array([3.0, 1.0, -2.0]))
    array([0., 1., 1.])
    """
    return graph(edges)


@validate.computed
def Product(*domains: Domain) -> ProductSet:
    """Several domains side by side: an action is one action of each, one after the other.

    Parameters
    ----------
    *domains : Domain
        The parts, at least one, in the order of their coordinates.

    Examples
    --------
    >>> Product(Box(0.0, 1.0, dim=1), Simplex(2)).project(np.array([3.0, 1.0, 1.0]))
    array([1. , 0.5, 0.5])
    """
    if not domains:
        raise InputError("domains must hold at least one domain, not ()")
    for i, domain in enumerate(domains):
        _domain(f"domains[{i}]", domain)
    return ProductSet(tuple(domains))


@validate.computed
def Halfspace(a: ArrayLike, b: float, within: Domain) -> Domain:
    """The part of a domain on one side of a plane: all its points x with ``<a, x> <= b``.

    Returns the part that is left; `within` itself where the plane cuts nothing off.

    Parameters
    ----------
    a : array_like of shape (dim,)
        The plane's normal; one entry at least is not 0.
    b : float
        The largest value of ``<a, x>``, in units of `a` times an action.
    within : Domain
        The domain that is cut.

    Examples
    --------
    >>> Halfspace([1.0, 1.0], 1.0, within=Box(0.0, 1.0, dim=2)).project(np.array([1.0, 1.0]))
    array([0.5, 0.5])
    """
    _domain("within", within)
    normal = validate.vector("a", a, within.dim)
    length = float(np.linalg.norm(normal))
    if length == 0.0:
        raise InputError(f"a must have an entry that is not zero, and {validate.show(a)} has none")
    limit = validate.number("b", b)
    bottom, rounding = within.linear_argmin(normal), 1e-12 * length * (within.diameter() + norm(within.center()))
    least, most = float(normal @ bottom), -float(within.linear_min(-normal))
    if limit >= most - rounding:
        return within
    if limit <= least + rounding:
        state = "misses the domain" if limit < least else "only touches the domain"
        raise InputError(f"the half-space {state}: b is {limit:.6g}, and the least <a, x> over within is {least:.6g}")
    if isinstance(within, PolyhedronSet):
        solver = type(within.solver).__name__.lower()
        return Polyhedron(np.vstack([within.A, normal]), np.append(within.b, limit), solver=solver)
    normal, limit, room = normal / length, limit / length, (limit - least) / length
    if isinstance(within, BallSet):
        return BallCut(within.middle, within.radius, normal, limit - float(normal @ within.middle))
    # Half of the way up from the bottom to the cut, on the line to the domain's centre; or the centre itself, where it is no higher.
    up = within.center() - bottom
    middle = bottom + min(1.0, float(ops.ratio(0.5 * room, float(normal @ up)))) * up
    return DomainCut(within, normal, limit, bottom, room, middle)


def _middle(dim: int | None, center: ArrayLike | None) -> Array:
    if dim is None and center is None:
        raise InputError("dim or center must be given")
    d = None if dim is None else validate.whole("dim", dim)
    return np.zeros(d or 0) if center is None else validate.vector("center", center, d)


def _domain(name: str, value: object) -> None:
    if not isinstance(value, Domain):
        raise validate.refused(f"{name} must be a domain", value)

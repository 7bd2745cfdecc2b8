"""Domains whose corners are combinatorial actions: paths of a network, matchings, spanning trees.

A coordinate stands for an edge, and an action says of every edge how much of it is used: a path, a matching or a tree is a corner, of 0
and 1, and a decision is a mixture of corners: the mean of one that is drawn at random (``bridle.round_randomly(x, rng, to=domain)``).
There are far too many corners to list, but the one of least total cost is found at once: the linear minimiser is a pass over the network's
nodes in their order for paths, and SciPy's solvers for matchings and trees. Projections are possible too, by a quadratic program where
DAQP is installed and the inequalities are few, else by many linear minimisations (`bridle.domains.vertex_mixtures`); policies that need
none are ``"ftpl"`` and ``"wang2025"``. All of them run on the Python engine only.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from functools import lru_cache
from heapq import heappop, heappush
from importlib.util import find_spec
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridle import validate
from bridle.backends import UNBOUNDED, cheapest_matching, cheapest_tree, quadratic_in_bands
from bridle.core import InputError
from bridle.domains.closed_form import all_of, margin
from bridle.domains.facets import Facets, Slab, facets
from bridle.domains.vertex_mixtures import VertexMixture, nearest_mixture
from bridle.ops import Array, Scalar, dot
from bridle.showing import call

Indices = NDArray[np.int_]


class PathSet(NamedTuple):
    """Unit flows from the first node of a network without cycles to its last: node numbers grow along every edge."""

    tails: Array
    heads: Array
    middle: Array
    span: float
    named: Array | None = None  # what the nodes are called (`spelled`); None: by their numbers

    def __repr__(self) -> str:
        names = read(self.named, self.nodes)
        edges = [(names[int(a)], names[int(b)]) for a, b in zip(self.tails, self.heads, strict=True)]
        return call("Paths", edges, names[0], names[-1])

    @property
    def compiled(self) -> bool:
        """No: its linear minimiser follows a network, and runs on the Python engine only."""
        return False

    @property
    def dim(self) -> int:
        return int(self.tails.shape[-1])

    @property
    def nodes(self) -> int:
        """How many nodes the network has."""
        return int(self.heads.max()) + 1

    def project(self, x: Array) -> Array:
        return _project(self, x)

    def diameter(self) -> float:
        return float(self.span)

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is a unit flow, up to `tolerance` times (diameter + |centre|) on every edge and at every node."""
        slack = margin(self, tolerance)
        rows, supply = _conservation(self)
        return all_of(x >= -slack) and all_of(abs(x @ rows.T - supply) <= slack)

    def mixture(self, x: Array) -> VertexMixture:
        """Paths whose mean is the point of the set that is nearest to x."""
        return _mixture(self, x)

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        costs = v.reshape(-1, self.dim)
        each, into = np.arange(len(costs)), _incoming(self.heads.tobytes())
        tails = self.tails.astype(int)
        least = np.zeros((len(costs), self.nodes))
        last = np.zeros((len(costs), self.nodes), dtype=int)
        for node in range(1, self.nodes):
            edges = into[node]
            through = least[:, tails[edges]] + costs[:, edges]
            best = through.argmin(axis=1)
            least[:, node], last[:, node] = through[each, best], edges[best]
        flow, here = np.zeros(costs.shape), np.full(len(costs), self.nodes - 1)
        while (on := here > 0).any():
            edge = last[each[on], here[on]]
            flow[each[on], edge] = 1.0
            here[on] = tails[edge]
        return flow.reshape(v.shape)

    def gibbs(self, v: Array) -> Array:
        """The mean path where each has the weight e^{-<v, path>}: all are weighed at once, node by node (Takimoto and Warmuth 2003)."""
        costs = v.reshape(-1, self.dim)
        into, tails = _incoming(self.heads.tobytes()), self.tails.astype(int)
        weight = np.zeros((len(costs), self.nodes))  # of all paths to a node, as a logarithm
        share = np.zeros(costs.shape)  # of an edge among those into its head
        for node in range(1, self.nodes):
            edges = into[node]
            each = weight[:, tails[edges]] - costs[:, edges]
            top = each.max(axis=1, keepdims=True)
            each = np.exp(each - top)
            total = each.sum(axis=1, keepdims=True)
            weight[:, node], share[:, edges] = (top + np.log(total))[:, 0], each / total
        arriving, flow = np.zeros(weight.shape), np.zeros(costs.shape)
        arriving[:, -1] = 1.0
        for node in range(self.nodes - 1, 0, -1):
            for edge in into[node]:
                flow[:, edge] = share[:, edge] * arriving[:, node]
                arriving[:, tails[edge]] += flow[:, edge]
        return flow.reshape(v.shape)

    @property
    def log_corners(self) -> float:
        """The logarithm of the number of paths."""
        return log(_counts(self.tails.astype(int), self.heads.astype(int), 0, self.nodes - 1)[1][0])

    def facets(self) -> Facets:
        rows, supply = _conservation(self)
        d = self.dim
        return Facets(d, (Slab(np.eye(d), np.zeros(d), np.full(d, UNBOUNDED)), Slab(rows, supply, supply)))


class MatchingSet(NamedTuple):
    """Matrices >= 0, flattened row by row, whose rows each sum to 1 and whose columns to at most 1 (to 1, where there are no more)."""

    middle: Array  # a matrix

    def __repr__(self) -> str:
        rows, columns = self.middle.shape
        return call("Matchings", rows) if rows == columns else call("Matchings", rows, columns)

    @property
    def compiled(self) -> bool:
        """No: its linear minimiser calls a solver, and runs on the Python engine only."""
        return False

    @property
    def dim(self) -> int:
        return int(self.middle.size)

    def project(self, x: Array) -> Array:
        return _project(self, x)

    def diameter(self) -> float:
        """Two matchings that share no edge: they are there from two columns on."""
        rows, columns = self.middle.shape
        return float(np.sqrt(2.0 * rows)) if columns > 1 else 0.0

    def center(self) -> Array:
        return self.middle.flatten()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is a mixture of matchings, up to `tolerance` times (diameter + |centre|) in every entry and sum."""
        slack = margin(self, tolerance)
        matrix = x.reshape(*x.shape[:-1], *self.middle.shape)
        rows, columns = matrix.sum(axis=-1), matrix.sum(axis=-2)
        lowest = 1.0 if rows.shape[-1] == columns.shape[-1] else 0.0
        sums = all_of(abs(rows - 1.0) <= slack) and all_of(columns >= lowest - slack) and all_of(columns <= 1.0 + slack)
        return sums and all_of(matrix >= -slack)

    def mixture(self, x: Array) -> VertexMixture:
        """Matchings whose mean is the point of the set that is nearest to x."""
        return _mixture(self, x)

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        return np.array([cheapest_matching(row) for row in v.reshape(-1, *self.middle.shape)]).reshape(v.shape)

    def facets(self) -> Facets:
        rows, columns = self.middle.shape
        of_rows: Array = np.kron(np.eye(rows), np.ones(columns)).astype(np.float64)
        of_columns: Array = np.kron(np.ones(rows), np.eye(columns)).astype(np.float64)
        if rows == columns:  # the last column's sum follows from the others
            of_columns = of_columns[:-1]
        least = 1.0 if rows == columns else -UNBOUNDED
        sums = Slab(of_rows, np.ones(rows), np.ones(rows)), Slab(of_columns, np.full(len(of_columns), least), np.ones(len(of_columns)))
        return Facets(self.dim, (Slab(np.eye(self.dim), np.zeros(self.dim), np.full(self.dim, UNBOUNDED)), *sums))


class SpanningTreeSet(NamedTuple):
    """Mixtures of the spanning trees of a connected graph; `span` is at least the diameter."""

    ends: Array  # (2, edges): the nodes that each edge joins
    middle: Array
    span: float
    named: Array | None = None  # what the nodes are called (`spelled`); None: by their numbers

    def __repr__(self) -> str:
        names = read(self.named, int(self.ends.max()) + 1)
        return call("SpanningTrees", [(names[int(a)], names[int(b)]) for a, b in self.ends.T])

    @property
    def compiled(self) -> bool:
        """No: its linear minimiser calls a solver, and runs on the Python engine only."""
        return False

    @property
    def dim(self) -> int:
        return int(self.ends.shape[-1])

    def project(self, x: Array) -> Array:
        return _project(self, x)

    def diameter(self) -> float:
        return float(self.span)

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is at most `tolerance` times (diameter + |centre|) away from a mixture of trees."""
        slack = margin(self, tolerance)
        if not (all_of(np.isfinite(x)) and all_of(abs(x - self.middle) <= self.span + slack)):  # then it is far away
            return False
        rows = x.reshape(-1, self.dim)
        return all_of(np.linalg.norm(rows - _project(self, rows), axis=-1) <= slack)

    def mixture(self, x: Array) -> VertexMixture:
        """Trees whose mean is the point of the set that is nearest to x."""
        return _mixture(self, x)

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        # Which tree is the cheapest depends on the order of the costs alone: with 1, 2, 3, ... for costs none is 0, and none is rounded.
        ends = self.ends.astype(int)
        ranks = v.reshape(-1, self.dim).argsort(axis=-1, kind="stable").argsort(axis=-1) + 1.0
        return np.array([cheapest_tree(row, ends) for row in ranks]).reshape(v.shape)

    def gibbs(self, v: Array) -> Array:
        """The mean tree where each has the weight e^{-<v, tree>}, by Kirchhoff's theorem."""
        ends = self.ends.astype(int)
        return np.array([_tree_means(row, ends)[0] for row in v.reshape(-1, self.dim)]).reshape(v.shape)

    @property
    def log_corners(self) -> float:
        """The logarithm of the number of trees."""
        return _tree_means(np.zeros(self.dim), self.ends.astype(int))[1]


Combinatorial = PathSet | MatchingSet | SpanningTreeSet
"""A domain whose corners are combinatorial actions."""


NEAR = 1e3
"""Points are projected by a quadratic program up to this many times the domain's scale away: its tolerances are absolute."""


def _project(domain: Combinatorial, x: Array) -> Array:
    rows = x.reshape(-1, domain.dim)
    if not np.isfinite(rows).all():
        raise validate.refused("x must be finite to be projected", x)
    onto = np.array([_nearest(domain, row) for row in rows])
    stays = np.linalg.norm(onto - rows, axis=-1, keepdims=True) <= margin(domain, 1e-12)
    return np.where(stays, rows, onto).reshape(x.shape)


def _nearest(domain: Combinatorial, x: Array) -> Array:
    """By DAQP over the inequalities, where there are some and it is installed and finds it; else as a mixture of vertices."""
    sides = facets(domain)
    slab = None if sides is None else sides.bands()
    if slab is not None and np.abs(x).max() <= NEAR and find_spec("daqp") is not None:
        found, _ = quadratic_in_bands(np.eye(domain.dim), -x, [slab])
        if found is not None:
            return found
    return _mixture(domain, x).mean


def _mixture(domain: Combinatorial, x: Array) -> VertexMixture:
    return nearest_mixture(x, domain.linear_argmin, domain.diameter() + float(np.linalg.norm(domain.center())))


# --- networks -------------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _incoming(heads: bytes) -> list[Indices]:
    """The edges that lead into each node."""
    into = np.frombuffer(heads).astype(int)
    return [np.flatnonzero(into == node) for node in range(into.max() + 1)]


def _conservation(paths: PathSet) -> tuple[Array, Array]:
    """A row for every node but the last, whose flow follows from the others: what leaves it less what comes in, and how much that is."""
    each = np.arange(paths.nodes - 1.0)[:, None]
    rows = (each == paths.tails) * 1.0 - (each == paths.heads)
    return rows, (np.arange(paths.nodes - 1) == 0) * 1.0


def spelled(labels: list[object]) -> Array | None:
    """The labels as the bytes of their Python text: a record holds numbers alone. None where they are their places, or no literals."""
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    text = repr(plain)
    try:
        literal = literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return None if literal != plain or plain == list(range(len(plain))) else np.array(list(text.encode()), dtype=float)


def read(named: Array | None, nodes: int) -> list[object]:
    """The labels of so many nodes, from what `spelled` has made of them."""
    return list(range(nodes)) if named is None else list(literal_eval(bytes(named.astype(int).tolist()).decode()))


def numbered(
    name: str, edges: object, check: Callable[[object], tuple[object, object]]
) -> tuple[list[tuple[object, object]], list[object]]:
    """The edges as pairs of labels, checked, and the labels in the order in which they appear."""
    if isinstance(edges, (str, bytes)) or not hasattr(edges, "__iter__"):
        raise validate.refused(f"{name} must be pairs of nodes", edges)
    pairs = [check(edge) for edge in edges]
    if not pairs:
        raise validate.refused(f"{name} must hold at least one pair of nodes", edges)
    return pairs, list(dict.fromkeys(label for pair in pairs for label in pair))


def pair_of(edge: object) -> tuple[object, object]:
    """An edge as a pair of labels."""
    if isinstance(edge, np.ndarray):
        edge = edge.tolist()
    if not (isinstance(edge, (tuple, list)) and len(edge) == 2):
        raise InputError(f"edges must be pairs of nodes, such as (0, 1), and {validate.show(edge)} is none")
    try:
        hash(tuple(edge))
    except TypeError:
        raise InputError(f"edges must be pairs of numbers or names, and {validate.show(edge)} is none") from None
    return edge[0], edge[1]


def network(edges: object, source: object, target: object) -> PathSet:
    """The paths of a network, checked."""
    pairs, labels = numbered("edges", edges, pair_of)
    for name, node in (("source", source), ("target", target)):
        if node not in labels:
            raise InputError(f"{name} must be a node of edges, and {validate.show(node)} is none")
    if source == target:
        raise validate.refused("target must be another node than source", target)
    order = _in_order(pairs, labels)
    place = {label: i for i, label in enumerate(order)}
    tails, heads = (np.array([place[pair[side]] for pair in pairs]) for side in (0, 1))
    before, after = _counts(tails, heads, place[source], place[target])
    for tail, head, pair in zip(tails, heads, pairs, strict=True):
        if not (before[tail] and after[head]):
            raise InputError(
                f"edges must all lie on a path from {validate.show(source)} to {validate.show(target)}, and {validate.show(pair)} "
                "does not: leave it out"
            )
    # Every node is on such a path now, so that the source is the only one without an edge into it, and stands first.
    share = np.array([before[tail] * after[head] / after[place[source]] for tail, head in zip(tails, heads, strict=True)])
    return PathSet(tails.astype(float), heads.astype(float), share, _widest(tails, heads) ** 0.5, spelled(order))


def _in_order(pairs: list[tuple[object, object]], labels: list[object]) -> list[object]:
    """The nodes, each after all from which an edge leads to it; of several that may come next, the one that was named first."""
    place = {label: i for i, label in enumerate(labels)}
    leaving: list[list[int]] = [[] for _ in labels]
    waiting = [0] * len(labels)
    for tail, head in pairs:
        leaving[place[tail]].append(place[head])
        waiting[place[head]] += 1
    order: list[object] = []
    ready = [i for i, count in enumerate(waiting) if not count]
    while ready:
        node = heappop(ready)
        order.append(labels[node])
        for head in leaving[node]:
            waiting[head] -= 1
            if not waiting[head]:
                heappush(ready, head)
    if len(order) < len(labels):
        stuck = next(label for label, count in zip(labels, waiting, strict=True) if count)
        raise InputError(
            f"edges must have no cycle, and one runs through {validate.show(stuck)}, or leads to it: "
            "give each node once for every step at which it may be reached"
        )
    return order


def _counts(tails: Indices, heads: Indices, source: int, target: int) -> tuple[list[int], list[int]]:
    """How many paths lead from the source to each node, and from each node to the target: whole numbers, however large."""
    n = max(int(tails.max()), int(heads.max())) + 1
    before, after = [int(node == source) for node in range(n)], [int(node == target) for node in range(n)]
    for edge in np.argsort(tails, kind="stable"):
        before[heads[edge]] += before[tails[edge]]
    for edge in np.argsort(-heads, kind="stable"):
        after[tails[edge]] += after[heads[edge]]
    return before, after


def _widest(tails: Indices, heads: Indices) -> int:
    """The most edges that one of two paths has and the other has not: their squared distance.

    Both are followed at once, always from the node that comes first. So they stand at one node at the same time wherever both pass it, and
    an edge that both take is seen to be one.
    """
    leaving: dict[int, list[int]] = {}
    for edge, tail in enumerate(tails.tolist()):
        leaving.setdefault(tail, []).append(edge)
    last = int(heads.max())
    best: list[dict[int, int]] = [{} for _ in range(last + 1)]  # best[u][v]: one at u, the other at v >= u
    best[0][0] = 0
    for u in range(last):
        for v, apart in best[u].items():
            for first in leaving[u]:
                for second in leaving[u] if v == u else (None,):
                    ahead = int(heads[first])
                    other, more = (v, 1) if second is None else (int(heads[second]), 0 if first == second else 2)
                    low, high = min(ahead, other), max(ahead, other)
                    best[low][high] = max(best[low].get(high, 0), apart + more)
    return best[last][last]


# --- graphs ---------------------------------------------------------------------------------------------------------------------------


def graph(edges: object) -> SpanningTreeSet:
    """The spanning trees of a graph, checked."""
    pairs, labels = numbered("edges", edges, pair_of)
    place = {label: i for i, label in enumerate(labels)}
    ends = np.array([sorted((place[a], place[b])) for a, b in pairs]).T
    for column, pair in zip(ends.T, pairs, strict=True):
        if column[0] == column[1]:
            raise InputError(f"edges must join two nodes each, and {validate.show(pair)} joins one to itself")
    seen: set[tuple[int, int]] = set()
    for column, pair in zip(ends.T, pairs, strict=True):
        if tuple(column) in seen:
            raise InputError(f"edges must differ, and {validate.show(pair)} is there twice: keep the cheaper of two edges yourself")
        seen.add(tuple(column))
    n, m = len(labels), len(pairs)
    joined: list[list[int]] = [[] for _ in range(n)]
    for a, b in ends.T.tolist():
        joined[a].append(b)
        joined[b].append(a)
    reached, left = {0}, [0]
    while left:
        beyond = [node for node in joined[left.pop()] if node not in reached]
        reached.update(beyond)
        left += beyond
    if len(reached) < n:
        apart = next(label for i, label in enumerate(labels) if i not in reached)
        raise InputError(f"edges must join all nodes, and no way leads from {validate.show(labels[0])} to {validate.show(apart)}")
    share, _ = _tree_means(np.zeros(m), ends)  # of all trees alike, those that have the edge; a bridge is in all of them
    bridges = int((share > 1.0 - 1e-9).sum())
    # Two trees differ in no bridge, and neither has an edge that the other lacks beyond the m - n + 1 that are left over.
    return SpanningTreeSet(ends.astype(float), share, (2.0 * min(n - 1 - bridges, m - n + 1)) ** 0.5, spelled(labels))


def _tree_means(costs: Array, ends: Indices) -> tuple[Array, float]:
    """The share of each edge in spanning trees that weigh e^{-cost of the tree}, and the logarithm of the weight of all (Kirchhoff).

    The edges are conductances e^{-cost}. A node is taken out by joining its neighbours to each other (star-mesh transform); the weight of
    all trees is the product of what each node was joined by when it was taken out. Then the nodes are put back, and with them their
    effective resistances to all others; conductance times resistance is the share. All numbers are logarithms, so that costs may have any
    size, and no difference of nearly equal numbers is taken.
    """
    n = int(ends.max()) + 1
    joined = np.full((n, n), -np.inf)
    joined[ends[0], ends[1]] = joined[ends[1], ends[0]] = -costs
    by, shares = np.zeros(n), np.full((n, n), -np.inf)
    for node in range(n - 1, 0, -1):
        row = joined[node, :node]
        by[node] = np.logaddexp.reduce(row)
        shares[node, :node] = row - by[node]
        joined[:node, :node] = np.logaddexp(joined[:node, :node], row[:, None] + shares[node, :node])
        np.fill_diagonal(joined, -np.inf)
    far = np.full((n, n), -np.inf)  # effective resistances: of a mixture of the neighbours, less half of what these are from each other
    for node in range(1, n):
        p = shares[node, :node]
        mixed = np.logaddexp.reduce(far[:node, :node] + p, axis=1)
        within = np.logaddexp.reduce(mixed + p)
        near = np.logaddexp(-by[node], mixed)
        far[node, :node] = far[:node, node] = near + np.log1p(-0.5 * np.exp(within - near))
    return np.minimum(np.exp(far[ends[0], ends[1]] - costs), 1.0), float(by[1:].sum())

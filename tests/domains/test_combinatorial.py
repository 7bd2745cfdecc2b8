"""Paths, matchings and spanning trees: against all corners listed, independent solvers, known numbers, and what must be refused."""

from __future__ import annotations

from itertools import combinations, permutations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import bellman_ford

import bridle
from bridle import records
from bridle.checks import check_domain
from bridle.core import Domain
from bridle.domains.facets import facets, halfspaces
from bridle.domains.vertex_mixtures import nearest_mixture

DIAMOND = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]


def grid(k):
    """The network of a k x k grid: right and down."""
    down = [((i, j), (i + 1, j)) for i in range(k - 1) for j in range(k)]
    return down + [((i, j), (i, j + 1)) for i in range(k) for j in range(k - 1)]


def random_network(rng, n):
    """A random network without cycles, in which every edge leads from 0 to n - 1, named and ordered at random."""
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.4]
    names = rng.permutation(100)[:n].tolist()
    return [(names[a], names[b]) for a, b in (edges[i] for i in rng.permutation(len(edges)))], names[0], names[-1]


def random_graph(rng, n):
    edges = [(i, j) for j in range(n) for i in range(j) if i == j - 1 or rng.random() < 0.5]
    return [edges[i] for i in rng.permutation(len(edges))]


def all_paths(edges, source, target):
    """The paths as rows of 0 and 1, by following every edge."""
    found = []

    def follow(node, taken):
        if node == target:
            found.append([float(i in taken) for i in range(len(edges))])
        for i, (tail, head) in enumerate(edges):
            if tail == node:
                follow(head, [*taken, i])

    follow(source, [])
    return np.array(found)


def all_matchings(m, n):
    return np.array([np.eye(n)[list(columns)].ravel() for columns in permutations(range(n), m)])


def all_trees(edges):
    """The spanning trees as rows of 0 and 1: of n - 1 edges, those that join everything."""
    n, found = len({node for edge in edges for node in edge}), []
    for chosen in combinations(range(len(edges)), n - 1):
        group = {node: {node} for edge in edges for node in edge}
        for i in chosen:
            joined = group[edges[i][0]] | group[edges[i][1]]
            group |= dict.fromkeys(joined, joined)
        if len(group[edges[0][0]]) == n:
            found.append([float(i in chosen) for i in range(len(edges))])
    return np.array(found)


K4 = list(combinations(range(4), 2))
SMALL = {
    "diamond": (bridle.Paths(DIAMOND, "s", "t"), all_paths(DIAMOND, "s", "t")),
    "grid": (bridle.Paths(grid(3), (0, 0), (2, 2)), all_paths(grid(3), (0, 0), (2, 2))),
    "two roads": (bridle.Paths([(0, 1), (0, 1), (1, 2)], 0, 2), np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])),
    "square": (bridle.Matchings(3), all_matchings(3, 3)),
    "wide": (bridle.Matchings(2, 4), all_matchings(2, 4)),
    "one row": (bridle.Matchings(1, 3), np.eye(3)),
    "complete": (bridle.SpanningTrees(K4), all_trees(K4)),
    "bridged": (bridle.SpanningTrees([(0, 1), (1, 2), (2, 0), (2, 3)]), all_trees([(0, 1), (1, 2), (2, 0), (2, 3)])),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_combinatorial_domain_against_all_its_corners(name):
    domain, corners = SMALL[name]
    check_domain(domain, points=12)
    rng = np.random.default_rng(0)
    costs = np.vstack([rng.normal(size=(40, domain.dim)), rng.integers(-1, 2, (20, domain.dim)), np.zeros((1, domain.dim))])
    chosen = domain.linear_argmin(costs)
    assert all((corners == row).all(axis=1).any() for row in chosen)  # an action, not only a mixture of some
    np.testing.assert_allclose(domain.linear_min(costs)[:, 0], (costs @ corners.T).min(axis=1), atol=1e-12)
    np.testing.assert_allclose(domain.center(), corners.mean(axis=0), atol=1e-12)  # all actions alike
    widest = np.linalg.norm(corners[:, None] - corners, axis=-1).max()
    assert domain.diameter() == pytest.approx(widest, rel=1e-12)
    assert not domain.compiled
    assert isinstance(domain, Domain)
    assert all(
        leaf.dtype == np.float64 if isinstance(leaf, np.ndarray) else isinstance(leaf, float) for leaf in records.leaves(domain).values()
    )


@settings(max_examples=15)
@given(st.integers(3, 6), st.integers(0, 10**6))
def test_random_networks_and_graphs_against_all_their_corners(n, seed):
    rng = np.random.default_rng(seed)
    network, graph = random_network(rng, n), random_graph(rng, min(n, 5))
    for domain, corners in ((bridle.Paths(*network), all_paths(*network)), (bridle.SpanningTrees(graph), all_trees(graph))):
        costs = rng.normal(size=(10, domain.dim)) * 10.0 ** rng.integers(-6, 7)
        np.testing.assert_allclose(domain.linear_min(costs)[:, 0], (costs @ corners.T).min(axis=1), rtol=1e-12)
        np.testing.assert_allclose(domain.center(), corners.mean(axis=0), atol=1e-9)
        widest = np.linalg.norm(corners[:, None] - corners, axis=-1).max()
        if isinstance(domain, type(SMALL["grid"][0])):
            assert domain.diameter() == pytest.approx(widest)
        assert domain.diameter() >= widest - 1e-12


def test_the_cheapest_path_is_that_of_scipy():
    rng, edges = np.random.default_rng(1), grid(7)
    nodes = {node: i for i, node in enumerate(sorted({node for edge in edges for node in edge}))}
    domain, costs = bridle.Paths(edges, (0, 0), (6, 6)), rng.normal(size=(20, len(edges)))
    for row, least in zip(costs, domain.linear_min(costs)[:, 0], strict=True):
        ends = [nodes[a] for a, _ in edges], [nodes[b] for _, b in edges]
        graph = csr_array((row, ends), shape=(len(nodes), len(nodes)))
        assert least == pytest.approx(bellman_ford(graph, indices=0)[nodes[6, 6]])


@pytest.mark.parametrize("name", ["diamond", "grid", "square", "wide", "complete"])
def test_a_projection_by_vertices_is_that_of_a_quadratic_program(name):
    domain, corners = SMALL[name]
    rng = np.random.default_rng(2)
    for size in (0.3, 1.0, 30.0):
        v = domain.center() + size * rng.normal(size=domain.dim)
        w = cp.Variable(len(corners), nonneg=True)
        cp.Problem(cp.Minimize(cp.sum_squares(corners.T @ w - v)), [cp.sum(w) == 1]).solve(cp.CLARABEL)
        np.testing.assert_allclose(domain.project(v), corners.T @ w.value, atol=1e-5)
        if facets(domain) is not None:
            x = cp.Variable(domain.dim)
            rows = halfspaces(domain)
            cp.Problem(cp.Minimize(cp.sum_squares(x - v)), [rows[:, :-1] @ x <= rows[:, -1]]).solve(cp.CLARABEL)
            np.testing.assert_allclose(domain.project(v), x.value, atol=1e-5)  # the inequalities say the same set


def test_a_point_is_a_mixture_of_few_actions_and_drawn_without_bias():
    rng = np.random.default_rng(3)
    for domain in (bridle.Paths(grid(5), (0, 0), (4, 4)), bridle.Matchings(5), bridle.SpanningTrees(list(combinations(range(6), 2)))):
        x = domain.linear_argmin(rng.normal(size=(50, domain.dim))).mean(axis=0)
        points, weights = domain.mixture(x)
        assert len(weights) <= domain.dim + 1  # Caratheodory's number
        assert weights.min() > 0.0
        np.testing.assert_allclose([weights.sum(), *(weights @ points)], [1.0, *x], atol=1e-12)
        draws = np.array([bridle.round_randomly(x, rng, to=domain) for _ in range(10)])
        assert set(np.unique(draws)) == {0.0, 1.0}
        assert domain.contains(draws)
    few = np.array([bridle.round_randomly([0.25, 0.75, 0.75, 0.25], rng, to=bridle.Matchings(2))[0] for _ in range(2000)])
    assert abs(few.mean() - 0.25) < 4.0 * (0.25 * 0.75 / 2000) ** 0.5


def test_the_nearest_mixture_of_a_far_point_is_a_corner():
    corners = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    mixture = nearest_mixture(np.array([1e9, -1e9]), lambda v: corners[(corners @ v).argmin()], 1.0)
    np.testing.assert_array_equal(mixture.points, corners[:1])
    np.testing.assert_array_equal(mixture.weights, [1.0])


def test_what_is_in_a_combinatorial_domain_by_how_much():
    roads = bridle.Paths(DIAMOND, "s", "t")
    slack = 1e-9 * (roads.diameter() + np.linalg.norm(roads.center()))
    path = np.array([1.0, 0.0, 0.0, 1.0, 0.0])
    for moved in (np.array([0.0, 0.0, 1.0, 0.0, 0.0]), np.array([-1.0, 1.0, -1.0, 0.0, 0.0])):  # lost at a node; less than 0
        assert roads.contains(path + 0.99 * slack * moved)
    assert not roads.contains(path + 1.01 * slack * np.array([0.0, 0.0, 1.0, 0.0, 0.0]))
    assert not roads.contains(np.array([1.0, 0.0, -2.0 * slack, 1.0 + 2.0 * slack, -2.0 * slack]))
    pairs = bridle.Matchings(2, 3)
    slack = 1e-9 * (pairs.diameter() + np.linalg.norm(pairs.center()))
    matching = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    assert pairs.contains(matching + 0.99 * slack * np.eye(6)[0])
    for far in (1.01 * slack * np.eye(6)[0], 1.01 * slack * (np.eye(6)[3] - np.eye(6)[4]), 1.01 * slack * (np.eye(6)[0] - np.eye(6)[1])):
        assert not pairs.contains(matching + far)
    assert not bridle.Matchings(2).contains(np.array([0.9, 0.1, 0.9, 0.1]))  # columns
    assert bridle.Matchings(1, 2).contains(np.array([1.0, 0.0]))
    trees = bridle.SpanningTrees(K4)
    assert not trees.contains(np.array([1.0, 1.0, 0.0, 1.0, 0.0, 0.0]))  # a triangle: as many edges as a tree, within [0, 1]
    assert not trees.contains(np.full(6, np.nan))
    assert not trees.contains(np.full(6, 1e6))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bridle.Paths([], 0, 1), "edges must hold at least one pair of nodes, not []"),
        (lambda: bridle.Paths("ab", 0, 1), "edges must be pairs of nodes, not 'ab'"),
        (lambda: bridle.Paths(3, 0, 1), "edges must be pairs of nodes, not 3"),
        (lambda: bridle.Paths([(0, 1, 2)], 0, 1), "edges must be pairs of nodes, such as (0, 1), and (0, 1, 2) is none"),
        (lambda: bridle.Paths([([0], 1)], 0, 1), "edges must be pairs of numbers or names, and ([0], 1) is none"),
        (lambda: bridle.Paths([(0, 1)], 5, 1), "source must be a node of edges, and 5 is none"),
        (lambda: bridle.Paths([(0, 1)], 0, "x"), "target must be a node of edges, and 'x' is none"),
        (lambda: bridle.Paths([(0, 1)], 0, 0), "target must be another node than source, not 0"),
        (lambda: bridle.Paths([(0, 1), (1, 2), (2, 1), (2, 3)], 0, 3), "edges must have no cycle, and one runs through 1"),
        (lambda: bridle.Paths([(0, 1), (0, 2)], 0, 1), "edges must all lie on a path from 0 to 1, and (0, 2) does not"),
        (lambda: bridle.Paths([(0, 1), (2, 1)], 0, 1), "edges must all lie on a path from 0 to 1, and (2, 1) does not"),
        (lambda: bridle.Matchings(0), "rows must be 1 or above, not 0"),
        (lambda: bridle.Matchings(3, 2), "columns must be 3 or above, one for each row, not 2"),
        (lambda: bridle.SpanningTrees([(0, 1), (2, 3)]), "edges must join all nodes, and no way leads from 0 to"),
        (lambda: bridle.SpanningTrees([(0, 1), (1, 0)]), "edges must differ, and (1, 0) is there twice"),
        (lambda: bridle.SpanningTrees([(0, 0)]), "edges must join two nodes each, and (0, 0) joins one to itself"),
        (lambda: bridle.Matchings(2).project(np.full(4, np.nan)), "x must be finite to be projected"),
        (lambda: bridle.round_randomly([1.0, 0.0, 1.0, 0.0], np.random.default_rng(0), to=bridle.Matchings(2)), "x must be a mixture of"),
        (lambda: bridle.round_randomly([1.0], np.random.default_rng(0), to=bridle.Matchings(2)), "x must"),
    ],
)
def test_what_is_no_combinatorial_domain_is_refused(make, message):
    with pytest.raises(bridle.InputError) as refused:
        make()
    assert str(refused.value).startswith(message)


def test_a_combinatorial_domain_says_how_it_is_made():
    roads = bridle.Paths([("s", "a"), ("a", "t"), ("s", "t")], "s", "t")
    assert repr(roads) == "Paths([('s', 'a'), ('a', 't'), ('s', 't')], 's', 't')"
    grid = bridle.Paths([((0, 0), (0, 1)), ((0, 1), np.int64(7))], (0, 0), 7)
    assert repr(grid) == "Paths([((0, 0), (0, 1)), ((0, 1), 7)], (0, 0), 7)"
    assert repr(bridle.Paths([(0, 1), (1, 2)], 0, 2)) == "Paths([(0, 1), (1, 2)], 0, 2)"
    assert repr(bridle.Paths([(5, 3), (3, 4)], 5, 4)) == "Paths([(5, 3), (3, 4)], 5, 4)"
    nowhere = object()  # no text stands for it: its place does
    assert repr(bridle.Paths([("s", nowhere), (nowhere, "t")], "s", "t")) == "Paths([(0, 1), (1, 2)], 0, 2)"
    trees = bridle.SpanningTrees([("c", "b"), ("a", "b"), ("é", "c")])
    assert repr(trees) == "SpanningTrees([('c', 'b'), ('b', 'a'), ('c', 'é')])"
    for domain in (roads, grid, trees):
        assert records.same(eval(repr(domain), {"Paths": bridle.Paths, "SpanningTrees": bridle.SpanningTrees}), domain)
    assert repr(bridle.Matchings(3)) == "Matchings(3)"
    assert repr(bridle.Matchings(2, 4)) == "Matchings(2, 4)"


def test_a_saved_session_knows_the_names_of_nodes(tmp_path):
    roads = bridle.Paths([("home", "bridge"), ("bridge", "work"), ("home", "work")], "home", "work")
    bridle.Session(bridle.policy("wang2025-squared", roads, horizon=10)).save(tmp_path / "s.json")
    assert repr(bridle.Session.load(tmp_path / "s.json").policy.domain) == repr(roads)


@pytest.mark.parametrize("name", ["diamond", "wide", "bridged"])
def test_the_perturbed_leader_plays_with_linear_minimisers_alone(name, tmp_path):
    domain, corners = SMALL[name]
    rng = np.random.default_rng(4)
    costs = rng.normal(size=(24, domain.dim))
    session = bridle.Session(bridle.policy("ftpl", domain, samples=20, seed=1))
    Z = np.random.default_rng(1).standard_normal((10, domain.dim))
    Z, paid = np.concatenate([Z, -Z]), 0.0
    for t, c in enumerate(costs):
        x = session.decide()
        total = costs[:t].sum(axis=0)
        scale = (np.pi * domain.dim) ** -0.25 * np.sqrt((costs[:t] ** 2).sum()) if t else 1.0
        by_hand = corners[((total + scale * Z) @ corners.T).argmin(axis=1)].mean(axis=0)
        np.testing.assert_allclose(x, by_hand, atol=1e-12)
        paid += float(c @ x)
        session.observe(f=float(c @ x), df=c)
        if t == 10:
            session.save(tmp_path / "ftpl.npz")
            session = bridle.Session.load(tmp_path / "ftpl.npz")
    best = float(domain.linear_min(costs.sum(axis=0)))
    assert paid - best <= bridle.learners.adaptive_ftpl_regret(domain.diameter(), domain.dim, float((costs**2).sum()))


@pytest.mark.parametrize("name", ["diamond", "square", "wide"])
def test_projections_without_a_quadratic_program_are_the_same(name, monkeypatch):
    domain, _ = SMALL[name]
    points = domain.center() + np.random.default_rng(6).normal(size=(5, domain.dim))
    by_program = domain.project(points)
    monkeypatch.setattr("bridle.domains.combinatorial.find_spec", lambda package: None)
    np.testing.assert_allclose(domain.project(points), by_program, atol=1e-10)
    check_domain(domain, points=8)


K4 = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
GRAPHS = {
    "triangle": [(0, 1), (1, 2), (2, 0)],
    "triangle and a bridge": [(0, 1), (1, 2), (2, 0), (2, 3)],
    "two triangles and a bridge": [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)],
    "cycle": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "all of four": K4,
    "all of four and two bridges": [*K4, (3, 4), (4, 5)],
    "a tree": [(0, 1), (1, 2), (1, 3)],
}


@pytest.mark.parametrize("name", GRAPHS)
def test_how_many_trees_there_are_and_how_far_apart_by_counting(name):
    """Trees as sets of edges that join all nodes; two of them are sqrt(2 k) apart where each has k edges that the other has not."""
    edges = GRAPHS[name]
    n = 1 + max(map(max, edges))

    def joins(some):
        reached = {0}
        for _ in range(n):
            reached |= {b for edge in some for a, b in (edge, edge[::-1]) if a in reached}
        return len(reached) == n

    trees = [frozenset(some) for some in combinations(edges, n - 1) if joins(some)]
    domain = bridle.SpanningTrees(edges)
    assert domain.log_corners == pytest.approx(np.log(len(trees)), abs=1e-12)
    assert domain.diameter() == pytest.approx(max(np.sqrt(2.0 * len(one - other)) for one in trees for other in trees), rel=1e-12)


def test_how_many_paths_there_are_and_how_far_matchings_are_apart():
    assert bridle.Paths(DIAMOND, "s", "t").log_corners == pytest.approx(np.log(3.0))
    assert bridle.Paths(grid(4), (0, 0), (3, 3)).log_corners == pytest.approx(np.log(20.0))
    assert bridle.Paths([("s", "a"), ("a", "t")], "s", "t").log_corners == 0.0
    assert [bridle.Matchings(n, n).diameter() for n in (1, 2, 3)] == pytest.approx([0.0, 2.0, np.sqrt(6.0)])

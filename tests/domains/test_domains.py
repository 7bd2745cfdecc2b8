"""Domains: every one through `check_domain`, known answers, an independent solver, JAX, and what must be refused."""

from __future__ import annotations

import itertools
import sys

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from bridle import domains, records
from bridle.checks import check_domain
from bridle.core import Domain, InputError
from bridle.domains import Ball, Box, Halfspace, L1Ball, Polyhedron, Product, Simplex, Spectrahedron, polyhedron
from helpers.extent import examples


def cut(domain, rng, share):
    """`domain` below a random half-space that leaves that share of its width."""
    a = rng.normal(size=domain.dim)
    low, high = float(domain.linear_min(a)), -float(domain.linear_min(-a))
    return Halfspace(a, low + share * (high - low), within=domain)


def polytope(rng, d, scale, solver="daqp"):
    """A random polytope around a point off the origin: a box, and random half-spaces through it."""
    A = np.vstack([np.eye(d), -np.eye(d), rng.normal(size=(2 * d, d))])
    return Polyhedron(A, scale * (rng.uniform(0.3, 1.5, 4 * d) + A @ rng.normal(size=d)), solver=solver)


MAKERS = {
    "ball": lambda rng, d, s: Ball(radius=s, center=3.0 * s * rng.normal(size=d)),
    "box": lambda rng, d, s: Box(*np.sort(s * rng.normal(size=(2, d)), axis=0)),
    "flat box": lambda rng, d, s: Box(s * np.r_[np.ones(d), 0.0], s * np.r_[np.ones(d), 1.0]),
    "simplex": lambda rng, d, s: Simplex(d, mass=s),
    "l1 ball": lambda rng, d, s: L1Ball(radius=s, center=3.0 * s * rng.normal(size=d)),
    "spectrahedron": lambda rng, d, s: Spectrahedron(1 + d // 6, trace=s),
    "product": lambda rng, d, s: Product(Ball(d, radius=s), Box(s, 2.0 * s, dim=1), Simplex(1 + d // 2, mass=s)),
    "product of products": lambda rng, d, s: Product(L1Ball(d, radius=s), Product(Spectrahedron(2, trace=s), Simplex(1, mass=s))),
}
MAKERS |= {
    f"{name}, cut": lambda rng, d, s, make=make: cut(make(rng, d, s), rng, rng.choice([0.02, 0.3, 0.6, 0.98]))
    for name, make in MAKERS.items()
}
MAKERS |= {
    "ball, cut twice": lambda rng, d, s: cut(cut(MAKERS["ball"](rng, d, s), rng, 0.7), rng, 0.5),
    "box, cut twice": lambda rng, d, s: cut(cut(MAKERS["box"](rng, d, s), rng, 0.7), rng, 0.5),
    "simplex, cut twice": lambda rng, d, s: cut(cut(MAKERS["simplex"](rng, min(d, 8), s), rng, 0.6), rng, 0.5),
    "polyhedron": lambda rng, d, s: polytope(rng, min(d, 12), s),
    "polyhedron, cut": lambda rng, d, s: cut(polytope(rng, min(d, 12), s), rng, 0.5),
    "product with a polyhedron, cut": lambda rng, d, s: cut(Product(polytope(rng, min(d, 4), s), Ball(2, radius=s)), rng, 0.4),
}
COMPILED = [name for name in MAKERS if "polyhedron" not in name]


def make(name, seed=0, dim=5, scale=1.0):
    return MAKERS[name](np.random.default_rng(seed), dim, scale)


# --- every domain satisfies what a domain must


SLOW = "product with a polyhedron, cut"  # a linear program in every step of a bisection


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MAKERS if name != SLOW])
def test_check_domain(name):
    @settings(max_examples=3 if "polyhedron" in name or "twice" in name else 8)
    @given(st.integers(1, 30), st.sampled_from([1e-3, 1.0, 37.0, 1e3]), st.integers(0, 10**6))
    def check(dim, scale, seed):
        check_domain(make(name, seed, dim, scale), seed=seed, points=12)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_check_domain_at_more_points(name):
    few = 4 if name == SLOW else 12 if "polyhedron" in name else 100
    check_domain(make(name, seed=1, dim=4), points=examples(few, 2 * few))


def test_osqp_domain():
    check_domain(polytope(np.random.default_rng(3), 3, 1.0, solver="osqp"), points=20)


@pytest.mark.parametrize(
    "domain",
    [
        Simplex(200, mass=10.0),
        Halfspace(np.sin(np.arange(100.0)), 0.01, within=Simplex(100)),  # long running sums
        Halfspace([1e-9, 1.0, 1.0], 0.5, within=Simplex(3)),
        Halfspace([1e-9, 1.0, 1.0], 0.5, within=Box(0.0, 1.0, dim=3)),
        Halfspace(np.arange(5.0), 1e-9, within=Simplex(5)),  # hardly anything left
        Halfspace(np.ones(5), -5.0 + 1e-6, within=Box(-1.0, 1.0, dim=5)),
        Halfspace(np.ones(5), -np.sqrt(5.0) + 1e-6, within=Ball(5)),
        Halfspace([1.0, 0.0, 0.0], 0.5, within=Product(Box(0.0, 1.0, dim=1), Box(3.0, 3.0, dim=2))),
        Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, -1.0, 1.0, 1.0]),  # flat
        Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1000.001, -1000.0, 0.001, 0.0]),  # small and far
        Polyhedron(
            np.vstack([np.eye(2), -np.eye(2), np.eye(2), [[0.0, 0.0]]]), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0]
        ),  # rows twice, a zero row
    ],
    ids=lambda domain: f"{type(domain).__name__}{domain.dim}",
)
def test_hard_domains(domain):
    check_domain(domain, points=30)


@pytest.mark.parametrize("name", MAKERS)
def test_records(name):
    domain = make(name)
    assert isinstance(domain, Domain)
    for leaf in records.leaves(domain).values():
        assert isinstance(leaf, float) or (isinstance(leaf, np.ndarray) and leaf.dtype == np.float64)
    assert isinstance(domain.dim, int)
    assert isinstance(domain.diameter(), float)
    assert isinstance(domain.linear_min(np.ones(domain.dim)), float)
    assert getattr(domain, "compiled", True) == (name not in ("polyhedron", "polyhedron, cut"))


# --- known answers


@pytest.mark.parametrize(
    ("domain", "x", "expected"),
    [
        (Ball(2), [3.0, 4.0], [0.6, 0.8]),
        (Ball(center=[1.0, 1.0], radius=0.5), [1.0, 5.0], [1.0, 1.5]),
        (Box(0.0, [1.0, 2.0]), [-1.0, 5.0], [0.0, 2.0]),
        (Simplex(3), [1.0, 1.0, -5.0], [0.5, 0.5, 0.0]),
        (Simplex(2, mass=4.0), [1e6, 1e6 + 2.0], [1.0, 3.0]),
        (Simplex(1, mass=2.0), [-7.0], [2.0]),
        (L1Ball(2), [2.0, -1.5], [0.75, -0.25]),
        (L1Ball(center=[1.0, 0.0]), [3.0, 3.0], [1.0, 1.0]),
        (Product(Ball(1), Simplex(2)), [-3.0, 2.0, 0.0], [-1.0, 1.0, 0.0]),
        (Spectrahedron(2), [3.0, 4.0, 2.0, 3.0], [0.5, 0.5, 0.5, 0.5]),  # not symmetric
        (Halfspace([0.0, 2.0], 0.0, within=Ball(2)), [2.0, 3.0], [1.0, 0.0]),  # the rim
        (Halfspace([0.0, 2.0], 0.0, within=Ball(2)), [0.25, 3.0], [0.25, 0.0]),  # the disk
        (Halfspace([0.0, 2.0], 0.0, within=Ball(2)), [0.0, -3.0], [0.0, -1.0]),  # the ball
        (Halfspace([1.0, 1.0], 1.0, within=Box(0.0, 1.0, dim=2)), [3.0, 1.0], [1.0, 0.0]),
        (Halfspace([1.0, 1.0], 1.0, within=Box(0.0, 1.0, dim=2)), [0.75, 0.75], [0.5, 0.5]),
        (Halfspace([1.0, 0.0, 0.0], 0.25, within=Simplex(3)), [1.0, 0.0, 0.0], [0.25, 0.375, 0.375]),
        (Halfspace([1.0, 0.0], 0.5, within=L1Ball(2)), [9.0, 0.25], [0.5, 0.25]),
        (Polyhedron([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 0.0, 0.0]), [1.0, 1.0], [0.5, 0.5]),
    ],
)
def test_known_projections(domain, x, expected):
    np.testing.assert_allclose(domain.project(np.array(x)), expected, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize(
    ("domain", "diameter"),
    [
        (Ball(3, radius=2.0), 4.0),
        (Box(0.0, [3.0, 4.0]), 5.0),
        (Simplex(3, mass=2.0), np.sqrt(8.0)),
        (Simplex(1), 0.0),
        (L1Ball(2, radius=3.0), 6.0),
        (Spectrahedron(2, trace=2.0), np.sqrt(8.0)),
        (Spectrahedron(1), 0.0),
        (Product(Box(0.0, 3.0, dim=1), Ball(2, radius=2.0)), 5.0),
        (Halfspace([3.0], 0.0, within=Ball(1)), 1.0),
        (Halfspace([3.0, 0.0], 0.3, within=Ball(2)), 2.0),  # a diameter is left
        (Halfspace([1.0, 0.0], -0.6, within=Ball(2)), 1.6),  # less than half of the ball is left: its rim
        (Halfspace([1.0, 1.0], 1.0, within=Box(0.0, [4.0, 0.5])), np.sqrt(1.25)),
    ],
)
def test_known_diameters(domain, diameter):
    assert domain.diameter() == pytest.approx(diameter, rel=1e-14)


def test_a_half_space_that_holds_the_domain_changes_nothing():
    simplex = Simplex(3)
    assert Halfspace(np.ones(3), 1.0, within=simplex) is simplex
    assert Halfspace([1.0, 0.0, 0.0], 7.0, within=simplex) is simplex


def test_centres_are_well_inside():
    assert Halfspace([1.0, 0.0], -0.5, within=Ball(2)).center() == pytest.approx([-0.75, 0.0])
    for name in COMPILED:
        domain = make(name, seed=2)
        if not name.startswith(("simplex", "spectrahedron", "product", "flat")):  # which have no inside
            assert domain.contains(domain.center(), tolerance=-1e-3), name


@given(st.sampled_from(["ball", "box", "l1 ball", "ball, cut", "box, cut", "l1 ball, cut"]), st.integers(1, 30), st.integers(0, 10**6))
def test_interior_points_come_back_bit_for_bit(name, dim, seed):
    domain, rng = make(name, seed, dim), np.random.default_rng(seed)
    edge = domain.project(domain.center() + 10.0 * domain.diameter() * rng.normal(size=(20, dim)))
    inside = domain.center() + rng.uniform(0.0, 0.999, (20, 1)) * (edge - domain.center())
    inside = inside * (1.0 + 1e-9 * rng.normal(size=inside.shape))  # all digits in use
    assert np.array_equal(domain.project(inside), inside)
    assert all(np.array_equal(domain.project(row), row) for row in inside)


@given(st.integers(1, 30), st.floats(1e-3, 1e3), st.integers(0, 10**6))
def test_simplex_returns_its_own_points_bit_for_bit(dim, mass, seed):
    simplex, rng = Simplex(dim, mass), np.random.default_rng(seed)
    weights = rng.exponential(size=dim)
    x = mass * weights / weights.sum()
    assert np.array_equal(simplex.project(x), x)
    assert np.array_equal(simplex.project(simplex.center()), simplex.center())


def test_long_simplex_keeps_its_mass_up_to_rounding():
    rng, simplex = np.random.default_rng(0), Simplex(3000)
    x = simplex.project(simplex.center() + np.array([[1e-4], [1e-2], [1.0], [1e6]]) * rng.normal(size=(4, 3000)) + np.eye(1, 3000))
    assert abs(x.sum(axis=-1) - 1.0).max() <= 2e-15
    assert np.array_equal(simplex.project(x), x)


def test_contains_is_relative_to_the_scale():
    for scale in (1e-3, 1e3):
        for domain in (Ball(2, scale), Box(0.0, scale, dim=2), L1Ball(2, scale), Halfspace([1.0, 1.0], 0.0, within=Ball(2, scale))):
            edge = domain.linear_argmin(np.array([1.0, 0.5]))
            out = edge - domain.center()
            assert domain.contains(edge + 1e-10 * out)
            assert not domain.contains(edge + 1e-7 * out)
            assert domain.contains(edge + 1e-7 * out, tolerance=1e-6)
            assert not domain.contains(np.full(2, np.nan))
            assert not domain.contains(np.stack([edge, edge + out]))
    assert not Spectrahedron(2).contains(np.array([0.5, 0.1, -0.1, 0.5]))
    assert not Spectrahedron(2).contains(np.full(4, np.nan))
    assert not Simplex(2).contains(np.array([0.5, 0.5001]))


# --- against an independent solver


def described(domain, x):
    """The constraints that put the cvxpy variable `x` in the domain, written from the definitions."""
    match domain:
        case domains.BallSet(middle, radius):
            return [cp.norm(x - middle) <= radius]
        case domains.BoxSet(low, high):
            return [x >= low, x <= high]
        case domains.SimplexSet(mass, _):
            return [x >= 0, cp.sum(x) == mass]
        case domains.L1BallSet(middle, radius):
            return [cp.norm1(x - middle) <= radius]
        case domains.SpectrahedronSet(trace, _):
            n = round(domain.dim**0.5)
            matrix = cp.Variable((n, n), PSD=True)
            return [cp.trace(matrix) == trace, cp.vec(matrix, order="C") == x]
        case domains.ProductSet(parts):
            ends = np.cumsum([0] + [part.dim for part in parts])
            return [c for part, i, j in zip(parts, ends[:-1], ends[1:], strict=True) for c in described(part, x[i:j])]
        case domains.BallCut(middle, radius, a, height):
            return [cp.norm(x - middle) <= radius, a @ (x - middle) <= height]
        case domains.DomainCut(within, a, b):
            return [*described(within, x), a @ x <= b]
        case polyhedron.PolyhedronSet(A, b):
            return [A @ x <= b]
    raise TypeError(domain)


def solved(domain, objective):
    """The minimiser, its value, and how far off it may be: at the tightest tolerances the solver sometimes gives up early, and says so."""
    x = cp.Variable(domain.dim)
    problem = cp.Problem(cp.Minimize(objective(x)), described(domain, x))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-11)
    return x.value, problem.value, 1e-6 if problem.status == cp.OPTIMAL else 1e-4


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", MAKERS)
def test_against_an_independent_solver(name):
    for seed in range(3):
        domain, rng = make(name, seed, dim=[2, 5, 9][seed]), np.random.default_rng(seed)
        scale = domain.diameter() + np.linalg.norm(domain.center())
        v = domain.center() + scale * rng.normal(size=domain.dim)
        nearest, _, error = solved(domain, lambda x, v=v: cp.sum_squares(x - v))
        mine = domain.project(v)
        np.testing.assert_allclose(mine, nearest, rtol=0.0, atol=error * scale)
        assert np.linalg.norm(v - mine) <= np.linalg.norm(v - nearest) + 1e-9 * scale
        w = rng.normal(size=domain.dim)
        _, least, error = solved(domain, lambda x, w=w: w @ x)
        assert domain.linear_min(w) == pytest.approx(least, abs=error * scale)


def test_osqp_agrees_with_daqp():
    rng = np.random.default_rng(5)
    one = polytope(rng, 6, 1.0)
    other = one._replace(solver=polyhedron.Osqp())
    v = one.center() + np.array([[0.5], [1.0], [3.0], [100.0]]) * rng.normal(size=(4, 6))
    np.testing.assert_allclose(other.project(v), one.project(v), rtol=0.0, atol=1e-10)
    nearest, _, error = solved(other, lambda x: cp.sum_squares(x - v[1]))
    np.testing.assert_allclose(other.project(v[1]), nearest, rtol=0.0, atol=error)


@settings(max_examples=20)
@given(st.integers(2, 8), st.integers(0, 10**6))
def test_linear_minimiser_of_a_cut_box_and_simplex_is_exact(dim, seed):
    rng = np.random.default_rng(seed)
    w = np.round(rng.normal(size=dim), 1)  # with ties
    for name, equal in (("box, cut", None), ("simplex, cut", np.ones((1, dim)))):
        domain = make(name, seed, dim)
        bounds = (0.0, None) if equal is not None else list(zip(domain.within.low, domain.within.high, strict=True))
        found = linprog(w, domain.a[None], [domain.b], equal, None if equal is None else [1.0], bounds)
        assert domain.linear_min(w) == pytest.approx(found.fun, abs=1e-9)
        assert domain.contains(domain.linear_argmin(w), 1e-13)


# --- JAX


@pytest.fixture
def engine():
    pytest.importorskip("jax")
    import bridle.engines.jax  # noqa: F401  (registers JAX's arrays)


@pytest.mark.compiles
@pytest.mark.parametrize("name", COMPILED)
def test_jax_agrees(name, engine):
    import jax
    import jax.numpy as jnp

    domain, rng = make(name, seed=4, dim=6), np.random.default_rng(4)
    scale = domain.diameter() + np.linalg.norm(domain.center())
    sizes = np.array([[0.1], [1.0], [1.0], [3.0], [100.0], [1e6]])
    v = domain.center() + scale * sizes * rng.normal(size=(6, domain.dim))
    limit = 1e-12 * (scale + np.linalg.norm(v, axis=-1, keepdims=True))
    with jax.enable_x64(True):
        traced = records.transform(jnp.asarray, domain)
        x = jnp.asarray(v)
        project = jax.jit(lambda domain, x: domain.project(x))
        batch, least = jax.jit(lambda domain, x: (domain.project(x), domain.linear_min(x)))(traced, x)
        one = np.array([project(traced, row) for row in x])
        inside = project(traced, jnp.asarray(domain.center()))
    expected = domain.project(v)
    assert batch.dtype == np.float64
    assert (abs(np.asarray(batch) - expected) <= limit).all()
    assert (abs(one - expected) <= limit).all()
    assert (abs(np.asarray(least) - domain.linear_min(v)) <= limit * scale).all()
    np.testing.assert_allclose(inside, domain.center(), rtol=0.0, atol=1e-15 * scale)


@pytest.mark.parametrize("name", COMPILED)
def test_one_domain_per_run(name):
    """A record whose leaves carry a leading axis of runs is one domain for each run."""
    domain, rng = make(name, seed=6, dim=4), np.random.default_rng(6)
    v = domain.center() + 2.0 * domain.diameter() * rng.normal(size=(3, domain.dim))
    spread = records.spread(domain, 3)
    np.testing.assert_allclose(spread.project(v), domain.project(v), rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(spread.linear_min(v), domain.linear_min(v), rtol=0.0, atol=1e-12)


# --- polyhedra


def corners(domain):
    """All vertices, by solving every square subsystem."""
    found = []
    for rows in itertools.combinations(range(len(domain.A)), domain.dim):
        square = domain.A[list(rows)]
        if abs(np.linalg.det(square)) > 1e-9:
            x = np.linalg.solve(square, domain.b[list(rows)])
            if (domain.A @ x <= domain.b + 1e-9).all():
                found.append(x)
    return np.array(found)


def widest(points):
    return max(np.linalg.norm(points - x, axis=1).max() for x in points)


@settings(max_examples=15)
@given(st.integers(1, 3), st.sampled_from([1e-3, 1.0, 1e3]), st.integers(0, 10**6))
def test_polyhedron_against_its_vertices(dim, scale, seed):
    domain, rng = polytope(np.random.default_rng(seed), dim, scale), np.random.default_rng(seed)
    vertices = corners(domain)
    assert widest(vertices) <= domain.diameter() <= np.sqrt(dim) * widest(vertices) * (1.0 + 1e-6)
    w = rng.normal(size=dim)
    assert domain.linear_min(w) == pytest.approx((vertices @ w).min(), abs=1e-9 * scale)
    radius = (domain.b - domain.A @ domain.center()).min()
    assert radius > 0.0
    for _ in range(20):  # no other centre has a larger ball
        y = domain.project(domain.center() + 0.1 * scale * rng.normal(size=dim))
        assert (domain.b - domain.A @ y).min() <= radius + 1e-9 * scale


@pytest.mark.parametrize("solver", ["daqp", "osqp"])
def test_far_points_land_on_a_polyhedron_up_to_rounding_at_its_own_scale(solver):
    domain, rng = polytope(np.random.default_rng(1), 5, 1.0, solver=solver), np.random.default_rng(1)
    x = domain.project(1e6 * rng.normal(size=(5, 5)))
    assert (x @ domain.A.T - domain.b).max() <= 1e-14


@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_the_diameter_is_certified_whatever_the_solver_says(noise, monkeypatch):
    rng, exact = np.random.default_rng(0), polyhedron._program

    def sloppy(cost, A, room):
        x, y = exact(cost, A, room)
        return x, y * (1.0 - noise) + noise * rng.uniform(-0.1, 0.1, y.shape)

    monkeypatch.setattr(polyhedron, "_program", sloppy)
    for seed in range(5):
        domain = polytope(np.random.default_rng(seed), 2, 1.0)
        assert widest(corners(domain)) <= domain.diameter() <= 10.0


def test_a_missing_solver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "daqp", None)
    with pytest.raises(InputError, match=r"daqp.*pip install 'bridle\[qp\]'"):
        Polyhedron([[1.0], [-1.0]], [1.0, 1.0])


# --- bad input

SQUARE = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Ball(), "dim or center"),
        (lambda: Ball(0), "dim must be 1 or above, not 0"),
        (lambda: Ball(2.5), "dim must be a whole number, not 2.5"),
        (lambda: Ball(2, radius=0.0), "radius must be above 0, not 0.0"),
        (lambda: Ball(2, radius=-1.0), "radius must be above 0, not -1.0"),
        (lambda: Ball(2, radius=np.nan), "radius must be finite, not nan"),
        (lambda: Ball(2, radius="big"), "radius must be a number, not 'big'"),
        (lambda: Ball(2, center=[0.0, 1.0, 2.0]), r"center must have shape \(2,\), not \(3,\)"),
        (lambda: Ball(center=[0.0, np.inf]), "center must be finite, not inf at index 1"),
        (lambda: Ball(center=[]), "center must be a vector"),
        (lambda: Box(0.0, 1.0), "dim must be given"),
        (lambda: Box([0.0, 2.0, 0.0], 1.0), "the box is empty: low is 2, above high 1, in coordinate 1"),
        (lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]), r"low must have shape \(3,\), not \(2,\)"),
        (lambda: Box(-np.inf, 0.0, dim=2), "low must be finite, not -inf"),
        (lambda: Box([], []), "low must be a vector"),
        (lambda: Simplex(0), "dim must be 1 or above, not 0"),
        (lambda: Simplex(3, mass=0.0), "mass must be above 0, not 0.0"),
        (lambda: L1Ball(3, radius=-2.0), "radius must be above 0, not -2.0"),
        (lambda: Spectrahedron(0), "size must be 1 or above, not 0"),
        (lambda: Spectrahedron(2, trace=-1.0), "trace must be above 0, not -1.0"),
        (lambda: Product(), "at least one domain"),
        (lambda: Product(Ball(2), 3), r"domains\[1\] must be a domain, not 3"),
        (lambda: Halfspace([1.0], 0.0, within="ball"), "within must be a domain, not 'ball'"),
        (lambda: Halfspace([1.0], 0.0, within=Ball(2)), r"a must have shape \(2,\), not \(1,\)"),
        (lambda: Halfspace([0.0, 0.0], 1.0, within=Ball(2)), r"a must have an entry that is not zero, and \[0.0, 0.0\] has none"),
        (lambda: Halfspace([1.0, 0.0], np.nan, within=Ball(2)), "b must be finite, not nan"),
        (lambda: Halfspace([1.0, 0.0], -3.0, within=Ball(2)), "misses the domain: b is -3, and the least <a, x> over within is -1"),
        (lambda: Halfspace([1.0, 0.0], 0.0, within=Simplex(2)), "only touches the domain: b is 0, and the least <a, x> over within is 0"),
        (lambda: Halfspace([1.0, 1.0], -0.1, within=Box(0.0, 1.0, dim=2)), "misses the domain"),
        (lambda: Polyhedron([1.0, 2.0], [1.0]), r"A must be a matrix with a row for each constraint, not an array of shape \(2,\)"),
        (lambda: Polyhedron(SQUARE, [1.0]), r"b must have shape \(4,\), not \(1,\)"),
        (lambda: Polyhedron(SQUARE, [1.0, 1.0, np.nan, 1.0]), "b must be finite, not nan at index 2"),
        (lambda: Polyhedron(SQUARE, [1.0, -2.0, 1.0, 1.0]), "the polyhedron is empty"),
        (lambda: Polyhedron([*SQUARE, [0.0, 0.0]], [1.0, 1.0, 1.0, 1.0, -1.0]), "the polyhedron is empty: row 4 of A is zero"),
        (lambda: Polyhedron(SQUARE[:3], [1.0, 1.0, 1.0]), "the polyhedron is unbounded"),
        (lambda: Polyhedron(SQUARE[:1], [1.0]), "the polyhedron is unbounded"),
        (lambda: Polyhedron([[0.0, 0.0]], [1.0]), "the polyhedron is unbounded"),
        (lambda: Polyhedron([[1.0, 1e-9], [-1.0, 0.0]], [1.0, 1.0]), "the polyhedron"),
        (lambda: Polyhedron(SQUARE, np.ones(4), solver="dapq"), "unknown solver 'dapq'; did you mean daqp"),
        (lambda: Polyhedron(SQUARE, np.ones(4)).project(np.array([np.nan, 0.0])), "x must be finite"),
    ],
)
def test_bad_input(build, message):
    with pytest.raises(InputError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)

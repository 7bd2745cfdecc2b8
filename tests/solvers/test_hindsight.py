"""Hindsight against an independent solver, brute force, and its own certificates."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import (
    Ball,
    Box,
    Halfspace,
    InputError,
    L1Ball,
    NoComparator,
    Polyhedron,
    Product,
    Round,
    Simplex,
    Spectrahedron,
    functions,
    records,
)
from bridle.solvers import block_stream
from bridle.solvers.hindsight import best_fixed, interval_excess, smallest_window, static_violation, total_cost, values_at
from bridle.solvers.program import ConvexProgram, Solution, lower_bound, objective, pieces, region
from helpers.extent import examples

# --- Instances: streams and domains for bridle, and the same in cvxpy ---


def polyhedron(d):
    rng = np.random.default_rng(5)
    return Polyhedron(np.vstack([rng.standard_normal((3 * d, d)), np.eye(d), -np.eye(d)]), np.concatenate([np.ones(3 * d), np.ones(2 * d)]))


def in_ball(x, domain):
    return [cp.norm(x - domain.middle) <= domain.radius]


def in_box(x, domain):
    return [x >= domain.low, x <= domain.high]


def in_simplex(x, domain):
    return [x >= 0, cp.sum(x) == domain.mass]


def psd(x, domain):
    X = cp.Variable((3, 3), PSD=True)
    return [x == cp.vec(X, order="C"), cp.trace(X) == domain.trace]


DOMAINS = {
    "box": (Box(-1.0, 2.0, dim=6), in_box),
    "ball": (Ball(radius=2.0, center=[3.0, -1.0, 0.0, 1.0, 2.0, 0.5]), in_ball),
    "simplex": (Simplex(6, mass=2.0), in_simplex),
    "l1": (L1Ball(radius=1.5, center=np.ones(6)), lambda x, domain: [cp.norm1(x - domain.middle) <= domain.radius]),
    "ball-cut": (Halfspace(np.ones(6), 0.3, within=Ball(6)), lambda x, domain: [cp.norm(x) <= 1.0, cp.sum(x) <= 0.3]),
    "box-cut": (Halfspace(np.ones(6), 1.0, within=Box(0.0, 1.0, dim=6)), lambda x, domain: [x >= 0, x <= 1, cp.sum(x) <= 1.0]),
    "l1-cut": (Halfspace(np.ones(6), 0.1, within=L1Ball(6)), lambda x, domain: [cp.norm1(x) <= 1.0, cp.sum(x) <= 0.1]),
    "polyhedron": (polyhedron(6), lambda x, domain: [domain.A @ x <= domain.b]),
    "product": (
        Product(Ball(2), Simplex(3), L1Ball(2), Box(0.0, 1.0, dim=1)),
        lambda x, domain: [cp.norm(x[:2]) <= 1, x[2:5] >= 0, cp.sum(x[2:5]) == 1, cp.norm1(x[5:7]) <= 1, x[7:] >= 0, x[7:] <= 1],
    ),
    "psd": (Spectrahedron(3, trace=2.0), psd),
}


class OnlyProjection:
    """A user's own domain, about which nothing is known but its methods."""

    def __init__(self, domain):
        self.domain = domain

    def __getattr__(self, name):
        return getattr(self.domain, name)


def costs(kind, T, d, rng, middle):
    a, b = rng.standard_normal((T, d)), rng.standard_normal(T)
    label, weight = np.sign(b), rng.uniform(0.5, 2.0, T)
    if kind == "linear":
        return functions.AffineFunction(a, b), lambda x: cp.sum(a @ x + b)
    if kind == "round-quadratic":
        c = middle + a

        def total(x):
            return sum(0.5 * w * cp.sum_squares(x - z) + p @ x + q for w, z, p, q in zip(weight, c, a, b, strict=True))

        return functions.RoundQuadratic(weight, c, a, b), total
    if kind == "quadratic-form":
        L = rng.standard_normal((T, d, 2))
        P = L @ L.transpose(0, 2, 1)
        return functions.QuadraticForm(P, a, b), lambda x: 0.5 * cp.quad_form(x, cp.psd_wrap(P.sum(0))) + a.sum(0) @ x + b.sum()
    if kind == "logistic":
        return functions.LogisticLoss(a, label, weight), lambda x: weight @ cp.logistic(cp.multiply(-label, a @ x))
    if kind == "hinge":
        return functions.HingeLoss(a, label, np.ones(T), weight), lambda x: weight @ cp.pos(1 - cp.multiply(label, a @ x))
    if kind == "deviation":
        return functions.Deviation(a, b), lambda x: cp.sum(cp.abs(a @ x - b))
    if kind == "maximum":
        c, flat = rng.standard_normal((T, d)), np.zeros((T, d))
        parts = (functions.AffineFunction(a, b), functions.RoundQuadratic(weight, c, flat, np.zeros(T)), functions.Deviation(c, b))

        def total(x):
            quadratic = [0.5 * w * cp.sum_squares(x - z) for w, z in zip(weight, c, strict=True)]
            return sum(cp.maximum(a[t] @ x + b[t], quadratic[t], cp.abs(c[t] @ x - b[t])) for t in range(T))

        return functions.MaximumOf(parts), total
    if kind == "coordinates":
        j, target = rng.integers(0, d, T), rng.uniform(-1, 1, T)
        return functions.CoordinateDeviation(j.astype(float), target), lambda x: cp.sum(cp.abs(x[j] - target))
    raise AssertionError(kind)


COSTS = ["linear", "round-quadratic", "quadratic-form", "logistic", "hinge", "deviation", "maximum", "coordinates"]


def constraints(kind, k, T, rng, point, reach):
    """Constraints that hold at `point` with a little room."""
    d = len(point)
    room = 0.05 * reach * rng.uniform(0, 1, (T, k))
    if kind == "affine":
        A = rng.standard_normal((T, k, d))
        b = -A @ point - room
        limits = (functions.AffineFunction(A[:, 0], b[:, 0]),) if k == 1 else (functions.AffineRows(A, b),)
        return limits, lambda x: [A.reshape(-1, d) @ x + b.reshape(-1) <= 0]
    if kind == "quadratic":
        away = rng.standard_normal((T, k, d))
        centers, radii = point + away, np.linalg.norm(away, axis=-1) + room
        flat, one = np.zeros((T, d)), np.ones(T)
        limits = tuple(functions.RoundQuadratic(one, centers[:, i], flat, -0.5 * radii[:, i] ** 2) for i in range(k))
        return limits, lambda x: [cp.norm(x - z) <= r for z, r in zip(centers.reshape(-1, d), radii.reshape(-1), strict=True)]
    raise AssertionError(kind)


def instance(name, cost, constraint, k, T=24, seed=0):
    rng = np.random.default_rng([seed, COSTS.index(cost), k])
    domain, within = DOMAINS[name]
    middle, reach = domain.center(), domain.diameter()
    point = 0.6 * middle + 0.4 * domain.project(middle + reach * rng.standard_normal(domain.dim))
    f, total = costs(cost, T, domain.dim, rng, middle)
    g, holds = constraints(constraint, k, T, rng, point, reach)
    rounds = Round(f, g)
    x = cp.Variable(domain.dim)
    reference = cp.Problem(cp.Minimize(total(x)), within(x, domain) + holds(x))
    return domain, lambda: (records.cut(rounds, i, i + 7) for i in range(0, T, 7)), reference


def exact(problem):
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status in ("optimal", "optimal_inaccurate")
    return float(problem.value)


def check(best, blocks, domain, tolerance=1e-9):
    """What holds of every answer."""
    f, g = values_at(blocks, best.x)
    assert domain.contains(best.x)
    assert best.rounds == len(f)
    assert best.cost == pytest.approx(f.sum(), rel=1e-12, abs=1e-12)
    assert best.violation == pytest.approx(max(0.0, g.max(initial=0.0)), abs=1e-15)
    assert best.violation <= 1e-8 * (1.0 + np.abs(g).max(initial=0.0))
    assert best.lower <= best.cost


# --- The best fixed action ---


@pytest.mark.slow
@pytest.mark.covering(8)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("constraint", ["affine", "quadratic"])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", DOMAINS)
def test_agrees_with_clarabel(name, cost, constraint, k):
    domain, blocks, reference = instance(name, cost, constraint, k)
    best = best_fixed(blocks, domain)
    check(best, blocks, domain)
    value = exact(reference)
    scale = max(1.0, abs(value))
    assert abs(best.cost - value) <= 1e-6 * scale
    assert best.lower >= best.cost - 1e-7 * scale


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("cost", ["linear", "round-quadratic", "logistic", "hinge"])
@pytest.mark.parametrize("name", ["ball", "simplex", "psd"])
def test_a_projection_is_enough(name, cost):
    domain, blocks, reference = instance(name, cost, "affine", 1, T=12)
    best = best_fixed(blocks, OnlyProjection(domain))
    check(best, blocks, domain)
    value = exact(reference)
    assert abs(best.cost - value) <= 1e-6 * max(1.0, abs(value))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("constraint", ["affine", "quadratic"])
@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("swing", [0.01, 0.9])
def test_the_best_constant_portfolio_agrees_with_clarabel(d, constraint, swing):
    """Logarithms of wealth on the simplex: for the daily moves of a market, and for moves that nearly ruin an asset."""
    T, rng, domain = 300, np.random.default_rng(d), Simplex(d)
    returns = rng.uniform(1.0 - swing, 1.0 + swing, (T, d))
    g, holds = constraints(constraint, 1, T, rng, domain.project(domain.center() + 0.2 * rng.standard_normal(d)), domain.diameter())
    x = cp.Variable(d)
    reference = cp.Problem(cp.Minimize(-cp.sum(cp.log(returns @ x))), [x >= 0, cp.sum(x) == 1, *holds(x)])
    rounds = Round(functions.LogWealthLoss(returns, returns.min(axis=1)), g)
    best = best_fixed(lambda: [rounds], domain)
    check(best, lambda: [rounds], domain)
    value = exact(reference)
    assert best.cost == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert best.lower >= best.cost - 1e-7 * max(1.0, abs(value))


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 6])
def test_callables_agree_with_records(d):
    rng = np.random.default_rng(d)
    centers = rng.standard_normal((15, d))

    def rounds(opaque):
        for c in centers:
            f, g = functions.Quadratic(2.0, c), functions.Quadratic(2.0, c, offset=-((np.linalg.norm(c) + 0.3) ** 2))
            if opaque:
                f, g = bridle.Callable(f.value, f.grad), bridle.Callable(g.value, g.grad)
            yield Round(f, (g, functions.Affine(c, -1.0)))

    known, opaque = (best_fixed(lambda which=which: rounds(which), Ball(d)) for which in (False, True))
    assert opaque.cost == pytest.approx(known.cost, rel=1e-6)
    assert opaque.violation <= 1e-8


def test_rounds_one_by_one_are_a_stream_too():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((30, 3)), rng.uniform(-1.0, 0.0, 30)
    block = Round(functions.AffineFunction(-a, 0.0 * b), (functions.AffineFunction(a, b),))
    apart = [Round(functions.Affine(-row), (functions.Affine(row, level),)) for row, level in zip(a, b, strict=True)]
    together, single = best_fixed(lambda: [block], Ball(3)), best_fixed(lambda: apart, Ball(3))
    assert single.cost == pytest.approx(together.cost, abs=1e-9)
    assert single.rounds == together.rounds == 30


@pytest.mark.parametrize("cost", COSTS)
def test_a_stream_too_long_to_keep_is_replayed(cost, monkeypatch):
    domain, blocks, _ = instance("ball", cost, "affine", 3)
    kept = best_fixed(blocks, domain)
    monkeypatch.setattr(block_stream, "KEPT_BYTES", 0)
    replayed = best_fixed(blocks, domain)
    check(replayed, blocks, domain)
    assert replayed.cost == pytest.approx(kept.cost, rel=1e-6, abs=1e-6)


def test_costs_far_from_the_origin_lose_no_digits():
    rng = np.random.default_rng(0)
    c = 1e6 + rng.standard_normal((50, 3))
    best = best_fixed(
        lambda: [Round(functions.RoundQuadratic(np.ones(50), c, np.zeros((50, 3)), np.full(50, 1e3)), ())],
        Ball(radius=5.0, center=[1e6] * 3),
    )
    assert best.x == pytest.approx(c.mean(axis=0), rel=1e-12)
    assert best.cost - best.lower <= 1e-6


@pytest.mark.parametrize("domain", [Ball(2), Box(-1.0, 1.0, dim=2), OnlyProjection(Ball(2))], ids=["ball", "box", "projection"])
def test_no_constraints_at_all(domain):
    costs = functions.RoundQuadratic(np.ones(2), np.array([[3.0, 0.0], [1.0, 0.0]]), np.zeros((2, 2)), np.zeros(2))
    best = best_fixed(lambda: [Round(costs, ())], domain)
    assert best.x == pytest.approx([1.0, 0.0], abs=1e-8)
    assert best.violation == 0.0
    assert static_violation(lambda: [Round(costs, ())], domain, bound=1.0)[0] == 0.0


def test_a_stream_without_costs():
    a = np.random.default_rng(0).standard_normal((40, 4))
    best = best_fixed(
        lambda: [Round(functions.AffineFunction(0.0 * a, np.zeros(40)), (functions.AffineFunction(a, -0.1 * np.ones(40)),))], Ball(4)
    )
    assert best.cost == 0.0
    assert best.violation <= 1e-9


@pytest.mark.parametrize("modulus", [0.0, 1.0])
@pytest.mark.parametrize("domain", ["ball", "box", "simplex", "l1"])
def test_a_single_feasible_action_is_found(domain, modulus):
    """Thousands of halfspaces through one point leave nothing but that point: no interior, and every constraint active."""
    problem = bridle.problem("halfspaces", slater=0.0, horizon=4000, dim=5, constraints=2, domain=domain, modulus=modulus)
    block = problem.adversary.deal(np.random.default_rng(0), 4000)
    best = best_fixed(lambda: [block], problem.domain)
    f, _ = values_at(lambda: [block], problem.constants["feasible"])
    assert best.cost == pytest.approx(f.sum(), rel=1e-8)
    assert best.x == pytest.approx(problem.constants["feasible"], abs=1e-7)


def test_domains_without_an_inside():
    cost = functions.AffineFunction(np.ones((3, 2)), np.zeros(3))
    limit = functions.AffineFunction(-np.ones((3, 2)), np.full(3, 1.5))
    for domain in (Box([1.0, 0.0], [1.0, 2.0]), Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, -1.0, 2.0, 0.0])):
        for f in (cost, functions.RoundQuadratic(np.ones(3), np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(3))):
            best = best_fixed(lambda f=f: [Round(f, (limit,))], domain)
            assert best.x == pytest.approx([1.0, 0.5], abs=1e-6)
    lone = best_fixed(lambda: [Round(cost._replace(a=np.ones((3, 1))), ())], Simplex(1))
    assert lone.cost == 3.0


def test_a_polyhedron_needs_no_package_here(monkeypatch):
    def missing(name, need):
        raise InputError(f"{name} is not installed")

    domain, blocks, _ = instance("polyhedron", "hinge", "affine", 3)
    best = best_fixed(blocks, domain)
    monkeypatch.setattr("bridle.backends.package", missing)
    assert best_fixed(blocks, domain).cost == pytest.approx(best.cost, rel=1e-9)


@pytest.mark.parametrize("cost", ["linear", "round-quadratic", "logistic", "hinge"])
@pytest.mark.parametrize("name", DOMAINS)
def test_infeasible_streams_are_recognised(name, cost):
    domain, _ = DOMAINS[name]
    d, rng = domain.dim, np.random.default_rng(1)
    f, _ = costs(cost, 10, d, rng, domain.center())
    a = rng.standard_normal(d)
    highest = -float(domain.linear_min(-a))
    A = np.vstack([rng.standard_normal((9, d)), -a])
    b = np.append(-A[:9] @ domain.center() - 1.0, highest + 0.25)  # the last one asks for <a, x> >= highest + 1/4
    with pytest.raises(NoComparator, match="no action of the domain satisfies every constraint") as failure:
        best_fixed(lambda: [Round(f, (functions.AffineFunction(A, b),))], domain)
    assert float(str(failure.value).split()[-1]) >= 0.249  # more where the other constraints stand in the way


def test_constraints_that_contradict_each_other():
    unit = np.eye(3)[[0, 0]] * [[1.0], [-1.0]]
    for domain in (Ball(3), Box(-1.0, 1.0, dim=3), OnlyProjection(Ball(3))):
        with pytest.raises(NoComparator, match=r"at least 0\.2"):
            best_fixed(
                lambda: [Round(functions.AffineFunction(unit, np.zeros(2)), (functions.AffineFunction(unit, np.full(2, 0.2)),))], domain
            )


def test_what_cannot_be_used_is_refused():
    hill = bridle.Callable(lambda x: -float(x @ x), lambda x: -2.0 * x, convex=False)
    with pytest.raises(NoComparator, match="not convex"):
        best_fixed(lambda: [Round(hill, (functions.Affine([1.0, 0.0]),))], Ball(2))
    with pytest.raises(InputError, match="at least one round"):
        best_fixed(lambda: [], Ball(2))
    with pytest.raises(InputError, match="tolerance"):
        best_fixed(lambda: [], Ball(2), tolerance=0.0)


@pytest.mark.parametrize("cost", ["linear", "round-quadratic", "hinge"])
def test_a_solver_that_lies_is_found_out(cost, monkeypatch):
    """Wrong points or wrong multipliers end in an error, never in a wrong number."""
    from bridle.solvers import convex, program_batch

    honest, batched = convex.interior, program_batch.interior_batch

    def lazy(program, accuracy=0.0):
        answer = honest(program, 0.3)
        return answer._replace(x=program.region.origin, limits=0.0 * answer.limits)

    domain, blocks, _ = instance("ball", cost, "affine", 1)
    monkeypatch.setattr(convex, "interior", lazy)
    monkeypatch.setattr(program_batch, "interior_batch", lambda *asked: tuple(0.0 * part for part in batched(*asked)))
    with pytest.raises(NoComparator):
        best_fixed(blocks, domain)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(DOMAINS)), st.sampled_from(COSTS), st.integers(0, 2**32 - 1))
def test_the_bound_holds_for_any_weights(name, cost, seed):
    """The certificate is sound by itself: from any point and any multipliers, no feasible action is below it."""
    rng = np.random.default_rng(seed)
    domain, _ = DOMAINS[name]
    d, T = domain.dim, 5
    f, _ = costs(cost, T, d, rng, domain.center())
    point = domain.project(domain.center() + domain.diameter() * rng.standard_normal(d))
    g, _ = constraints("affine", 1, T, rng, point, domain.diameter())
    parts, limits = pieces(records.widen(f, 1)), (records.widen(g[0], 1),)
    smooth = len(parts) == 1
    program = ConvexProgram(region(domain), sums=parts if smooth else (), maxima=() if smooth else (parts,), limits=limits)
    weights = [] if smooth else [rng.uniform(1e-6, 1.0, (T, len(parts)))]
    claim = Solution(point, weights, np.zeros(0), rng.uniform(0.0, 3.0, T))
    x = domain.center() + rng.standard_normal(d)
    value = objective(program, point)
    assert lower_bound(program, domain, x, claim) <= value + 1e-9 * (1.0 + abs(value) + np.abs(x).max() ** 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cost", "domain"),
    [
        ("linear", Box(-1.0, 1.0, dim=30)),
        ("linear", Ball(30)),
        ("round-quadratic", L1Ball(30)),
        ("logistic", Simplex(30)),
        ("logistic", Ball(30)),
        ("hinge", Ball(10)),
        ("deviation", Box(-1.0, 1.0, dim=10)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_twenty_thousand_rounds(cost, domain):
    """Of logistic costs, each of which takes as long as a hundred others, five thousand: two blocks are enough to be joined."""
    T, d, rng = examples(5_000, 20_000) if cost == "logistic" else 20_000, domain.dim, np.random.default_rng(0)
    f, _ = costs(cost, T, d, rng, domain.center())
    point = domain.project(0.3 * rng.standard_normal(d) / np.sqrt(d))
    g, _ = constraints("affine", 2, T, rng, point, domain.diameter())

    def blocks():
        return (records.cut(Round(f, g), i, i + 4096) for i in range(0, T, 4096))

    best = best_fixed(blocks, domain)
    check(best, blocks, domain)
    assert best.cost - best.lower <= 1e-7 * max(1.0, abs(best.cost))
    assert best.cost <= total_cost(blocks, point) + 1e-6


# --- Values at an action ---


def test_values_at_an_action():
    domain, blocks, _ = instance("box", "maximum", "quadratic", 3)
    x = domain.center()
    f, g = values_at(blocks, x)
    each = [one.reveal(x) for block in blocks() for one in records.unstack(block, len(block.constraints[0].b))]
    assert f == pytest.approx([feedback.f for feedback in each])
    assert g == pytest.approx(np.array([feedback.g for feedback in each]))
    assert total_cost(blocks, x) == pytest.approx(f.sum())


def test_values_of_coordinates_and_of_nothing():
    limits = functions.Coordinate(np.array([1.0, 2.0]), np.ones(2), np.zeros(2))
    block = Round(functions.CoordinateDeviation(np.array([0.0, 2.0]), np.array([1.0, 1.0])), (limits,))
    f, g = values_at(lambda: [block], [0.0, 5.0, 3.0])
    assert f.tolist() == [1.0, 2.0]
    assert g.tolist() == [[5.0], [3.0]]
    assert values_at(lambda: [], [0.0])[0].shape == (0,)
    with pytest.raises(InputError, match="x must be"):
        values_at(lambda: [block], [np.nan, 0.0, 0.0])


# --- Windows and intervals ---

tables = st.integers(1, 3).flatmap(lambda k: st.lists(st.lists(st.integers(-4, 4), min_size=k, max_size=k), min_size=1, max_size=25))


@settings(max_examples=300, deadline=None)
@given(tables)
def test_smallest_window_by_brute_force(rows):
    g = np.array(rows, dtype=float)
    T = len(g)
    fits = [S for S in range(1, T + 1) if all((g[t : t + S].sum(axis=0) <= 0).all() for t in range(T - S + 1))]
    assert smallest_window(g) == (fits[0] if fits else None)


@settings(max_examples=300, deadline=None)
@given(tables)
def test_interval_excess_by_brute_force(rows):
    g = np.array(rows, dtype=float)
    T = len(g)
    assert interval_excess(g) == max([0.0, *(g[a:b].sum(axis=0).max() for a in range(T) for b in range(a + 1, T + 1))])


def test_windows_are_not_monotone_in_their_length():
    g = np.tile([3.0, -1.0, -1.0, -1.0], 5)
    assert smallest_window(g) == 4
    assert smallest_window(np.r_[g, 3.0]) == 4  # 5 fails, 8 holds
    assert smallest_window(np.zeros((6, 2))) == 1
    assert smallest_window(-0.1 * np.ones(7) + 1e-17) == 1
    assert smallest_window(0.1 * np.tile([1.0, 2.0, -3.0], 4)) == 3  # sums to zero up to rounding
    long = np.random.default_rng(0).standard_normal((20_000, 3)) - 0.02
    S = smallest_window(long)
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(long, axis=0)])
    assert S is not None
    assert (sums[S:] - sums[:-S]).max() <= 1e-9
    assert (sums[S - 1 :] - sums[: -(S - 1)]).max() > 0.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", ["affine", "quadratic"])
@pytest.mark.parametrize("name", ["box", "ball", "simplex", "l1", "psd"])
def test_static_violation_against_all_intervals(name, kind, k):
    T, rng = 10, np.random.default_rng(7)
    domain, within = DOMAINS[name]
    d, middle = domain.dim, domain.center()
    A = rng.standard_normal((T, k, d))
    b = 0.3 - A @ middle + 0.2 * rng.standard_normal((T, k))
    bend = 0.4 if kind == "quadratic" else 0.0
    limits = (functions.AffineRows(A, b),)
    if bend:
        limits = tuple(functions.RoundQuadratic(np.full(T, bend), np.tile(middle, (T, 1)), A[:, i], b[:, i]) for i in range(k))
    block = Round(functions.AffineFunction(np.zeros((T, d)), np.zeros(T)), limits)
    P, x = static_violation(lambda: [records.cut(block, 0, 4), records.cut(block, 4, T)], domain, bound=2.0)
    assert domain.contains(x)
    reached = 2.0 * P
    assert reached == pytest.approx(interval_excess(values_at(lambda: [block], x)[1]), abs=1e-9)
    y, level = cp.Variable(d), cp.Variable(nonneg=True)
    sums = [
        A[s:e, i].sum(axis=0) @ y + b[s:e, i].sum() + (e - s) * 0.5 * bend * cp.sum_squares(y - middle) <= level
        for i in range(k)
        for s in range(T)
        for e in range(s + 1, T + 1)
    ]
    value = exact(cp.Problem(cp.Minimize(level), within(y, domain) + sums))
    assert reached == pytest.approx(value, abs=2e-6 * max(1.0, value))


def test_static_violation_is_zero_where_an_action_is_feasible():
    a = np.random.default_rng(0).standard_normal((200, 3))
    blocks = [Round(functions.AffineFunction(a, np.zeros(200)), (functions.AffineFunction(a, -np.abs(a @ [0.2, 0.1, 0.0])),))]
    P, x = static_violation(lambda: blocks, Ball(3), bound=1.0)
    assert P <= 1e-7
    assert interval_excess(values_at(lambda: blocks, x)[1]) <= 1e-7

"""What cuts leave: exact Steiner points in the plane, exact farthest points in a ball, and never a point lost that all cuts allow."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import bridle
from bridle.policies._steiner import steiner
from bridle.solvers.steiner_body import CUT_SLACK, MISS_TOLERANCE, Plane, farthest_in_ball

TURN = np.linspace(0.0, 2.0 * np.pi, 20_000, endpoint=False) + 1e-4
CIRCLE = np.c_[np.cos(TURN), np.sin(TURN)]


def unit(rng, d):
    a = rng.normal(size=d)
    return a / np.linalg.norm(a)


def after(body, rows):
    """The shape after all cuts; none may be refused."""
    shape = body.start
    for row in rows:
        shape = body.cut(shape, row[:-1], float(row[-1]))
        assert shape is not None
    return shape


def integral(ball, rows):
    """1/pi times the integral of h(u) u over the circle, with h from all points where two boundaries meet, and where none is in the way."""
    A, b = rows[:, :2], rows[:, 2]
    meet = [np.linalg.solve(A[[i, j]], b[[i, j]]) for i in range(len(b)) for j in range(i) if abs(np.linalg.det(A[[i, j]])) > 1e-12]
    for a, height in zip(A, b - A @ ball.middle, strict=True):
        if abs(height) <= ball.radius:
            along = np.sqrt(ball.radius**2 - height**2) * np.array([-a[1], a[0]])
            meet += [ball.middle + height * a + along, ball.middle + height * a - along]
    points = np.array(meet).reshape(-1, 2)
    points = points[np.linalg.norm(points - ball.middle, axis=1) <= (1.0 + 1e-11) * ball.radius]
    points = points[(points @ A.T - b).max(axis=1, initial=-1.0) <= 1e-11 * ball.radius]
    rim = ball.middle + ball.radius * CIRCLE
    free = (rim @ A.T - b).max(axis=1, initial=-1.0) <= 0.0
    h = np.where(free, (rim * CIRCLE).sum(axis=1), (CIRCLE @ points.T).max(axis=1, initial=-np.inf))
    return 2.0 * (h[:, None] * CIRCLE).mean(axis=0)


def chosen_cuts(rng, ball, n):
    """Cuts of a disc that spare one point: random, hardly biting, hardly missing that point, and repeated."""
    spared = ball.middle + ball.radius * rng.uniform(0.0, 1.0) * unit(rng, 2)
    rows = np.zeros((0, 3))
    for _ in range(n):
        a = unit(rng, 2)
        kind = rng.integers(4)
        if kind == 0 and len(rows):
            row = rows[rng.integers(len(rows))]
        elif kind == 1:
            row = np.append(a, max(a @ spared, a @ ball.middle + ball.radius * (1.0 - 10.0 ** rng.uniform(-14, -3))))
        else:
            row = np.append(a, a @ spared + (10.0 ** rng.uniform(-12, 0) if kind == 2 else rng.exponential(0.3)))
        rows = np.vstack([rows, row])
    return rows


# --- the plane


@pytest.mark.parametrize("seed", range(60))
def test_a_disc_with_cuts_agrees_with_the_integral(seed):
    rng = np.random.default_rng(seed)
    ball = bridle.Ball(radius=rng.uniform(0.3, 2.0), center=rng.normal(size=2))
    rows = chosen_cuts(rng, ball, int(rng.integers(0, 15)))
    body = steiner(ball, horizon=20).record.body
    shape = after(body, rows)
    assert shape.used <= len(shape.corners)
    np.testing.assert_allclose(body.point(shape), integral(ball, rows), atol=1e-7)


def test_the_test_of_the_integral_can_fail(monkeypatch):
    monkeypatch.setattr(Plane, "point", lambda self, shape: shape.corners[: int(shape.used)].mean(axis=0))
    with pytest.raises(AssertionError):
        test_a_disc_with_cuts_agrees_with_the_integral(1)


@pytest.mark.parametrize("half", [1e-5, 1e-3, 0.1, 0.7, np.pi / 2, 2.0, 3.0, np.pi - 1e-3, np.pi - 1e-5])
def test_a_cap_of_a_disc_has_a_closed_form(half):
    """A cap whose arc has normals within `half` of u: radius / pi (sin half + (pi - half) cos half) along u."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        ball, u = bridle.Ball(radius=rng.uniform(0.5, 3.0), center=rng.normal(size=2)), unit(rng, 2)
        body = steiner(ball, horizon=5).record.body
        shape = body.cut(body.start, -u, float(-u @ ball.middle - ball.radius * np.cos(half)))
        expected = ball.middle + ball.radius / np.pi * (np.sin(half) + (np.pi - half) * np.cos(half)) * u
        np.testing.assert_allclose(body.point(shape), expected, atol=2.0 * CUT_SLACK * (2.0 * ball.radius + 3.0))
        assert body.cut(shape, -u, float(-u @ ball.middle - ball.radius * np.cos(half))) is shape


def test_a_cut_that_does_not_bite_changes_nothing():
    ball = bridle.Ball(radius=2.0, center=[1.0, -3.0])
    body = steiner(ball, horizon=5).record.body
    for angle in np.linspace(0.0, 7.0, 50):
        a = np.array([np.cos(angle), np.sin(angle)])
        for gap in (1.0, 1e-6, 0.0):  # 0 is tangent from outside
            assert body.cut(body.start, a, float(a @ ball.middle) + ball.radius + gap) is body.start
        touching = body.cut(body.start, a, float(a @ ball.middle) - ball.radius)  # tangent from the other side: one point
        np.testing.assert_allclose(body.point(touching), ball.middle - ball.radius * a, atol=1e-9)
        assert body.cut(body.start, a, float(a @ ball.middle) - ball.radius - 2.0 * MISS_TOLERANCE * body.scale) is None
    np.testing.assert_allclose(body.point(body.start), ball.middle, atol=1e-15)


@pytest.mark.parametrize("sides", [3, 4, 5, 12])
def test_a_disc_without_arcs_is_a_polygon(sides):
    """Cuts within the inscribed polygon leave no arc; the same body as a Polyhedron."""
    angle = 0.3 + 2.0 * np.pi * np.arange(sides) / sides + np.random.default_rng(sides).uniform(-0.1, 0.1, sides)
    A = np.c_[np.cos(angle), np.sin(angle)]
    rows = np.c_[A, np.full(sides, 0.4)]
    disc, polygon = steiner(bridle.Ball(2), horizon=50).record.body, steiner(bridle.Polyhedron(A, rows[:, 2]), horizon=50).record.body
    shape = after(disc, rows)
    assert not shape.arcs.any()
    assert shape.used == sides
    np.testing.assert_allclose(disc.point(shape), polygon.point(polygon.start), atol=1e-11)


@pytest.mark.parametrize("within", [bridle.Ball(2), bridle.Box(-1.0, 1.0, dim=2)], ids=["disc", "square"])
def test_a_domain_with_cuts_is_the_domain_after_these_cuts(within):
    rows = np.array([[0.6, 0.8, 0.5], [-0.8, 0.6, 0.3], [1.0, 0.0, 0.7]])
    domain = within
    for row in rows:
        domain = bridle.Halfspace(row[:2], row[2], within=domain)
    body, whole = steiner(domain, horizon=5).record.body, steiner(within, horizon=5).record.body
    np.testing.assert_allclose(body.point(body.start), whole.point(after(whole, rows)), atol=1e-11)


# --- the ball


def cone(u, A, room, y):
    """How far u is from the cone of the normals at y, of the rows that hold it and of the ball: 0 if and only if y is the farthest."""
    normals = A[A @ y >= room - 1e-9]
    normals = np.vstack([normals, y]) if y @ y >= 1.0 - 1e-9 else normals
    return nnls(normals.T, u)[1] if len(normals) else 1.0


@pytest.mark.parametrize("seed", range(40))
def test_the_farthest_point_is_the_one_clarabel_finds(seed):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 8)), int(rng.integers(0, 25))
    A = np.array([unit(rng, d) for _ in range(n)]).reshape(n, d)
    inside = rng.uniform(0.0, 0.95) * unit(rng, d)
    room = A @ inside + rng.exponential(10.0 ** rng.uniform(-3, 0), n)
    for u in [unit(rng, d) for _ in range(3)]:
        y = farthest_in_ball(u, A, room, inside)
        assert np.linalg.norm(y) <= 1.0 + 1e-14
        assert (A @ y - room).max(initial=0.0) <= 1e-13
        assert cone(u, A, room, y) <= 1e-9
        x = cp.Variable(d)
        program = cp.Problem(cp.Maximize(u @ x), [cp.norm(x) <= 1.0, *([A @ x <= room] if n else [])])
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        assert float(u @ y) == pytest.approx(program.value, abs=1e-7)


def test_the_test_of_the_cone_can_fail():
    A, room = np.array([[1.0, 0.0]]), np.array([0.5])
    right = farthest_in_ball(np.array([0.8, 0.6]), A, room, np.zeros(2))
    np.testing.assert_allclose(right, [0.5, np.sqrt(0.75)])
    assert cone(np.array([0.8, 0.6]), A, room, right) <= 1e-12
    assert cone(np.array([0.8, 0.6]), A, room, np.array([0.5, 0.8])) > 0.1


@pytest.mark.parametrize("d", [3, 5])
def test_farthest_points_after_many_cuts(d):
    """One cut at a time, from the points before, against all cuts at once."""
    rng = np.random.default_rng(d)
    ball = bridle.Ball(radius=2.0, center=rng.normal(size=d))
    body = steiner(ball, horizon=100).record.body
    rows = np.array([np.append(a, a @ ball.middle + rng.uniform(0.8, 1.9)) for a in [unit(rng, d) for _ in range(40)]])
    shape = after(body, rows)
    kept = shape.rows[: int(shape.used)]
    assert all(np.abs(rows - row).max(axis=1).min() <= 2.0 * CUT_SLACK * body.scale for row in kept)
    A, room = kept[:, :-1], (kept[:, -1] - kept[:, :-1] @ ball.middle) / ball.radius
    for u, corner in zip(body.directions, shape.corners, strict=True):
        y = (corner - ball.middle) / ball.radius
        assert np.linalg.norm(y) <= 1.0 + 1e-14
        assert (A @ y - room).max() <= 1e-13
        assert cone(u, A, room, y) <= 1e-9


# --- every set so far


@st.composite
def games(draw):
    """A domain, a point of it that stays, and how many rounds."""
    d, round_ = draw(st.sampled_from([(1, True), (2, True), (2, True), (2, False), (3, True), (5, True)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, middle = 10.0 ** rng.uniform(-2, 2), rng.normal(size=d) * 10.0 ** rng.uniform(-2, 3)
    domain = bridle.Ball(radius=size, center=middle) if round_ else bridle.Box(middle - size * rng.uniform(0.1, 1.0, d), middle + size)
    stays = domain.project(middle + draw(st.sampled_from([0.0, 0.5, 1.0 - 1e-9, 1.0])) * size * unit(rng, d))
    return domain, stays, int(draw(st.integers(1, 60))), rng


@pytest.mark.slow
@settings(max_examples=120)
@given(games())
def test_the_point_is_below_every_cut_and_what_stays_is_never_lost(game):
    """Cuts through the point that stays, through the decision, nearly parallel, opposite, or nearly tangent to either."""
    domain, stays, T, rng = game
    policy, d = bridle.policy("steiner", domain, horizon=T).record, domain.dim
    body, state = policy.body, policy.init(domain.center())
    shape, x, a = body.start, state.x, unit(rng, d)
    scale, rows = body.scale, []
    for _ in range(T):
        kind = rng.integers(5)
        a = {0: x - stays, 1: x - stays, 2: -a + 10.0 ** rng.uniform(-9, -3) * rng.normal(size=d)}.get(int(kind), rng.normal(size=d))
        if not np.linalg.norm(a) > 0.0:
            continue
        a = a / np.linalg.norm(a)
        a = -a if kind != 2 and a @ (x - stays) < 0.0 else a
        b = float(a @ stays) + (0.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-15, -1) * scale)
        rows.append(np.append(a, b))
        shape = body.cut(shape, a, b)
        assert shape is not None
        x = domain.project(body.point(shape))
        assert domain.contains(x, 1e-12)
        over = np.array(rows) @ np.append(x, -1.0)
        assert (over if d <= 2 else over[-1:]).max() <= 4.0 * CUT_SLACK * scale  # the sampled point answers to the last round

"""Proximal steps solved again, by cvxpy and Clarabel: what the library's own solvers are compared with."""

from __future__ import annotations

import copy
import warnings

import cvxpy as cp
import numpy as np

import bridle
from helpers.instances import make_domain

KINDS = ("ball", "box", "simplex", "l1", "halfspace", "cut-box", "product", "polyhedron")
PROGRAMS = 200
"""How many random programs a comparison solves."""

ZOOM = 1e-3
"""How much closer the second look is."""


def place(kind: str, dim: int = 4, seed: int = 7):
    if kind == "polyhedron":
        return bridle.Polyhedron([[-1.0, 0.0, 0.2], [0.0, -1.0, 0.1], [0.3, 0.0, -1.0], [1.0, 1.0, 1.0]], [0.1, 0.2, 0.0, 1.0])
    return make_domain(kind, dim, 1.0, np.random.default_rng(seed))


def inside(domain, x, near=None) -> list:
    """The domain as constraints on a cvxpy variable; with a `Zoom` on x = x_0 + ZOOM y, balls as quadratics in y without cancellation."""
    name = type(domain).__name__
    if name == "BallSet":
        return [cp.norm(x - domain.middle) <= domain.radius] if near is None else [near.ball(domain)]
    if name == "BoxSet":
        return [x >= domain.low, x <= domain.high]
    if name == "SimplexSet":
        return [x >= 0, cp.sum(x) == domain.mass]
    if name == "L1BallSet":
        return [cp.norm1(x - domain.middle) <= domain.radius]
    if name == "BallCut":
        return [*inside(bridle.Ball(radius=domain.radius, center=domain.middle), x, near), domain.a @ (x - domain.middle) <= domain.height]
    if name == "DomainCut":
        return [*inside(domain.within, x, near), domain.a @ x <= domain.b]
    if name == "PolyhedronSet":
        return [domain.A @ x <= domain.b]
    parts, start = [], 0
    for part in domain.domains:
        parts += inside(part, x[start : start + part.dim], None if near is None else near.at(start, part.dim))
        start += part.dim
    return parts


class Zoom:
    """x = x_0 + ZOOM y. An interior-point method finds x to 1e-5 only; started again around that, to 1e-8."""

    def __init__(self, dim: int):
        self.x0, self.y, self.start, self.dim, self.balls = cp.Parameter(dim), cp.Variable(dim), 0, dim, []

    def at(self, start: int, dim: int) -> Zoom:
        part = copy.copy(self)
        part.start, part.dim = start, dim
        return part

    def ball(self, ball):
        away, room, part = cp.Parameter(self.dim), cp.Parameter(), slice(self.start, self.start + self.dim)
        self.balls.append((away, room, part, ball))
        return 2 * away @ self.y[part] + ZOOM * cp.sum_squares(self.y[part]) <= room

    def aim(self, x) -> None:
        self.x0.value = x
        for away, room, part, ball in self.balls:
            away.value = x[part] - ball.middle
            room.value = (ball.radius**2 - float(away.value @ away.value)) / ZOOM


class Program:
    """min |x - v|^2 + sum_i p_i (<a_i, x> - b_i)^+ , or + p (max_i)^+ , compiled once and solved for many numbers."""

    def __init__(self, domain, k: int, joint: bool):
        self.x, self.v, self.domain = cp.Variable(domain.dim), cp.Parameter(domain.dim), domain
        self.A, self.b, self.joint = cp.Parameter((k, domain.dim)), cp.Parameter(k), joint
        self.problem = cp.Problem(cp.Minimize(cp.sum_squares(self.x - self.v) + self.hinge(self.x)), inside(domain, self.x))
        self.near = Zoom(domain.dim)
        y, constraints = self.near.y, inside(domain, self.near.x0 + ZOOM * self.near.y, self.near)
        self.again = cp.Problem(cp.Minimize(ZOOM * cp.sum_squares(y) + 2 * self.v @ y + self.hinge(y)), constraints)

    def hinge(self, x):
        over = self.A @ x - self.b
        return cp.pos(cp.max(over)) if self.joint else cp.sum(cp.pos(over))

    def solve(self, v, A, b, price, guess) -> np.ndarray:
        """`guess` decides how much work is done, not what comes out: where the first answer is near it, no closer look is taken."""
        scale = np.reshape(price, (-1, 1)) * np.ones((len(A), 1))
        self.v.value, self.A.value, self.b.value = v, scale * A, scale[:, 0] * b
        x = solved(self.problem, self.x)
        for _ in range(2):
            if np.abs(x - guess).max() <= 1e-6:
                break
            x = self.domain.project(x)
            self.near.aim(x)
            self.v.value, self.b.value = x - v, scale[:, 0] * (b - A @ x) / ZOOM
            try:
                x = x + ZOOM * solved(self.again, self.near.y)
            except AssertionError:
                break
        return x


def solved(problem, x) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for tolerance in (1e-12, 1e-10, 1e-9, 1e-8):
            try:
                problem.solve(solver="CLARABEL", tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
            except cp.error.SolverError:
                continue
            if x.value is not None:
                return x.value
    raise AssertionError("the reference solver failed")


def objective(x, v, A, b, price, joint) -> float:
    over = A @ x - b
    return float((x - v) @ (x - v)) + float(price * max(0.0, over.max()) if joint else (price * np.maximum(over, 0.0)).sum())


def same(domain, mine, theirs, cost) -> bool:
    """Whether it is the same point up to 1e-6; if not, it must be one no more than 1e-4 away that costs no more.

    (The solver stops short in a few programs with a ball; the cost is strongly convex, so the better point is the nearer one.)
    """
    assert domain.contains(mine, 1e-9)
    far = float(np.abs(mine - theirs).max())
    assert far <= 1e-6 or (far <= 1e-4 and cost(mine) <= cost(domain.project(theirs))), f"{far:.2g} apart"
    return far <= 1e-6


# --- constraints that are not affine ----------------------------------------------------------------------------------------------------

SHAPES = ("round", "form", "logistic", "affine")


def shape(kind: str, anchor: np.ndarray, slack: float, rng):
    """A random function g of this kind that is -slack at the anchor, and  g(x + unit y) / unit  in cvxpy, of x, unit and y."""
    d = len(anchor)
    z, a = anchor + rng.standard_normal(d) / np.sqrt(d), 2.0 * rng.standard_normal(d) / np.sqrt(d)
    M = rng.standard_normal((d, d)) / np.sqrt(d)
    M = M.T @ M
    plain = {
        "round": bridle.Quadratic(2.0, center=z),
        "form": bridle.Quadratic(M, center=z),
        "logistic": bridle.Logistic(a, 1),
        "affine": bridle.Affine(a),
    }[kind]
    offset = float(plain.value(anchor)) + slack
    written = {
        "round": lambda x, unit, y: (((x - z) ** 2).sum() - offset) / unit + 2.0 * (x - z) @ y + unit * cp.sum_squares(y),
        "form": lambda x, unit, y: (
            (0.5 * (x - z) @ M @ (x - z) - offset) / unit + (x - z) @ M @ y + unit * cp.quad_form(y, cp.psd_wrap(M)) / 2
        ),
        "logistic": lambda x, unit, y: (cp.logistic(-(a @ x) - unit * a @ y) - offset) / unit,
        "affine": lambda x, unit, y: (a @ x - offset) / unit + a @ y,
    }[kind]
    if kind == "logistic":
        return bridle.Callable(lambda x: plain.value(x) - offset, plain.grad), written
    return plain._replace(b=plain.b - offset), written


def several(domain, k: int, rng, shapes=SHAPES, slack: float = 0.05):
    """A point, k functions that one point of the domain satisfies or nearly so, the same in cvxpy, and a curvature."""
    anchor = domain.project(domain.center() + 0.3 * domain.diameter() * rng.standard_normal(domain.dim) / domain.dim**0.5)
    found = [shape(rng.choice(shapes), anchor, slack * rng.uniform(-0.5, 1.0), rng) for _ in range(k)]
    v = domain.center() + rng.choice([0.3, 1.0]) * domain.diameter() * rng.standard_normal(domain.dim)
    return v, [g for g, _ in found], [written for _, written in found], 10.0 ** rng.uniform(-1.0, 1.0)


def by_clarabel(domain, v, written, weights, joint, guess) -> np.ndarray:
    """min |x - v|^2 + sum_i w_i g_i(x)^+ , or + w (max_i)^+ ; looked at again from where the first answer is, as `Program` does."""

    def hinges(x, unit, y):
        over = cp.hstack([of(x, unit, y) for of in written])
        return weights * cp.pos(cp.max(over)) if joint else weights @ cp.pos(over)

    x = cp.Variable(domain.dim)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - v) + hinges(np.zeros(domain.dim), 1.0, x)), inside(domain, x))
    found = solved(problem, x)
    for _ in range(2):
        if np.abs(found - guess).max() <= 1e-6:
            break
        near, found = Zoom(domain.dim), domain.project(found)
        constraints = inside(domain, found + ZOOM * near.y, near)
        near.aim(found)
        cost = ZOOM * cp.sum_squares(near.y) + 2.0 * (found - v) @ near.y + hinges(found, ZOOM, near.y)
        found = found + ZOOM * solved(cp.Problem(cp.Minimize(cost), constraints), near.y)
    return found

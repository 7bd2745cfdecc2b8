"""Known limits that are convex functions, and policies whose proof measures distances in the norm of a matrix."""

from __future__ import annotations

from math import log1p

import numpy as np
import pytest

import bridle
from bridle import validate
from bridle.core import Unavailable
from bridle.functions import QuadraticForm
from bridle.session import prior as module
from bridle.solvers import nearest_in_norm
from helpers.sessions import assert_identical, snapshot

SPACES = {
    "simplex": bridle.Simplex(4),
    "box": bridle.Box([-1.0, 0.0, -1.0], [1.0, 0.5, 2.0]),
    "ball": bridle.Ball(3, radius=1.2),
    "l1": bridle.L1Ball(3),
    "cut": bridle.Halfspace([1.0, 1.0, 0.0], 0.2, within=bridle.Box(-1.0, 1.0, dim=3)),
    "spectrahedron": bridle.Spectrahedron(2),
}


def ellipsoid(domain, rng, keeper, room=0.1):
    """A convex quadratic that `keeper` keeps with some room, of rank d - 1."""
    root = rng.standard_normal((domain.dim, domain.dim - 1))
    P = root @ root.T
    return QuadraticForm(P, np.zeros(domain.dim), -0.5 * float(keeper @ P @ keeper) - room)


def worst_product(domain, limits, slope, z, keepers):
    """The most that <slope, z - u> is over actions that keep the limits: what a nearest point has at 0 or below."""
    kept = [u for u in keepers if all(one.value(u) <= 0.0 for one in limits)]
    assert len(kept) > 5
    return max(float(slope @ (z - u)) for u in kept)


@pytest.mark.parametrize("solver", ["quadratic programs", "interior point"])
@pytest.mark.parametrize("name", SPACES)
def test_the_nearest_point_in_a_norm_has_no_better_direction(name, solver, monkeypatch):
    if solver == "interior point":
        monkeypatch.setattr(nearest_in_norm, "package", _not_installed)
    domain, rng = SPACES[name], np.random.default_rng(5)
    moved = 0
    for _ in range(6):
        keeper = domain.project(0.3 * rng.standard_normal(domain.dim))
        limits = (ellipsoid(domain, rng, keeper), bridle.Affine(rng.standard_normal(domain.dim)))
        limits = (limits[0], bridle.Affine(limits[1].a, -float(limits[1].a @ keeper) - 0.1))
        root = rng.standard_normal((domain.dim, domain.dim))
        metric = root @ root.T + 0.1 * np.eye(domain.dim)
        x = domain.project(2.0 * rng.standard_normal(domain.dim))
        parts = tuple(part for one in limits for part in nearest_in_norm.sequences(one))
        z = nearest_in_norm.nearest_where(domain, x, parts, metric)
        assert all(one.value(z) <= 0.0 for one in limits)
        assert domain.contains(z)
        around = domain.project(keeper + rng.uniform(0.0, 0.6, (400, 1)) * rng.standard_normal((400, domain.dim)))
        ahead = z + rng.uniform(0.0, 1.0, (400, 1)) * (around - z)
        product = worst_product(domain, limits, metric @ (z - x), z, [*around, *ahead, keeper])
        assert product <= 1e-7 * float(np.linalg.norm(metric)) * domain.diameter() ** 2
        moved += bool((z != x).any())
        np.testing.assert_array_equal(nearest_in_norm.nearest_where(domain, z, parts, metric), z)
    assert moved >= 3


def _not_installed(name, need):
    raise Unavailable(f"{need} {name}")


def test_no_point_is_found_where_there_is_none():
    far = QuadraticForm(2.0 * np.eye(3), np.zeros(3), -0.1)  # |x|^2 <= 0.1, and 1/3 at least on the simplex
    assert nearest_in_norm.nearest_where(bridle.Simplex(3), np.array([1.0, 0.0, 0.0]), nearest_in_norm.sequences(far), np.eye(3)) is None
    edge = QuadraticForm(2.0 * np.eye(3), np.zeros(3), -1.0 / 3.0)  # one point keeps it
    found = nearest_in_norm.nearest_where(bridle.Simplex(3), np.array([1.0, 0.0, 0.0]), nearest_in_norm.sequences(edge), np.eye(3))
    np.testing.assert_allclose(found, 1.0 / 3.0, atol=1e-4)


@pytest.mark.parametrize("policy", ["adagrad", "anytime", "ons", "adaftrl"])
def test_a_session_keeps_a_quadratic_limit(policy):
    """Also where the state cannot move: then the way there is charged."""
    domain, rng = bridle.Simplex(4), np.random.default_rng(1)
    session = bridle.Session(bridle.policy(policy, domain, **({"exp_concavity": 1.0} if policy == "ons" else {})))
    binding = 0
    for _ in range(60):
        limit = ellipsoid(domain, rng, domain.project(rng.standard_normal(4)), 0.01)
        want, x = session.decide(), session.decide(known=limit)
        assert limit.value(x) <= 0.0
        assert domain.contains(x)
        binding += bool(limit.value(want) > 0.0)
        relatives = rng.uniform(0.5, 1.5, 4)
        session.observe(f=-float(np.log(relatives @ x)), df=-relatives / (relatives @ x))
    assert binding > 10
    assert (session.certificate().moved is None) == (policy != "adaftrl")


@pytest.mark.parametrize("seed", range(4))
def test_the_newton_steps_certificate_holds_for_what_keeps_the_known_limits(seed, record_property):
    """Opponents that look at the action; comparators that keep every known limit; costs whose exp(-f) is affine."""
    rng = np.random.default_rng(seed)
    domain = [bridle.Simplex(3), bridle.Box(-0.5, 0.5, dim=2), bridle.Ball(3, radius=0.5), bridle.Simplex(6)][seed]
    keeper, share = domain.project(domain.center() + 0.2 * rng.standard_normal(domain.dim)), 0.0
    session, regret = bridle.Session(bridle.policy("ons", domain, exp_concavity=1.0)), 0.0
    for t in range(120):
        A = rng.standard_normal((2, domain.dim))
        known = (A, A @ keeper + rng.uniform(0.0, 0.05, 2)) if t % 2 else ellipsoid(domain, rng, keeper, 1e-3)
        x = session.decide(known=known)
        p = x - keeper + 0.1 * rng.standard_normal(domain.dim)
        p = p if p @ (x - keeper) > 0.0 else -p
        p *= 0.9 / max(-float(domain.linear_min(-p)) - p @ x, 1e-9) * rng.random()
        r = float(p @ (x - keeper))
        regret += log1p(r)
        session.observe(f=log1p(r), df=p)
        own = session.certificate().regret_algorithm
        assert regret <= own
        share = max(share, regret / own)
    assert regret <= session.bound().regret
    record_property("share", share)


def test_the_euclidean_nearest_point_may_be_farther_from_the_comparator():
    """Why the norm matters: A stretches one axis, and the Euclidean projection moves away from a point of the set in that norm."""
    domain = bridle.Box(-1.0, 1.0, dim=2)
    metric, x, u = np.diag([100.0, 1.0]), np.array([0.0, 1.0]), np.array([0.1, -0.9])
    known = (np.array([[1.0, 1.0]]), np.array([-0.8]))
    near = module.nearest_kept(domain, *known, x, module.projector(domain))
    own = module.nearest_kept(domain, *known, x, None, (), metric)

    def distance(z):
        return float((z - u) @ metric @ (z - u))

    assert distance(near) > 5.0 * distance(x)
    assert distance(own) <= distance(x)
    np.testing.assert_allclose(own, [-0.0, -0.8], atol=0.02)


@pytest.mark.parametrize(
    ("name", "told"), [("ons", {"exp_concavity": 1.0}), ("sinha2024-strong", {"modulus": 1.0, "horizon": 9, "lipschitz": 3.0})]
)
def test_a_proof_by_curvature_says_nothing_of_other_points_than_its_own(name, told):
    """Costs read at a decision that was not played are affine there: what curvature would gain is not there."""
    session = bridle.Session(bridle.policy(name, bridle.Box(-1.0, 1.0, dim=1), **told))
    for played in (None, None, [0.3]):
        x = session.decide() if played is None else np.array(played)
        session.observe(f=float(0.5 * x @ x), df=x, played=played)
        own, bound = session.certificate().regret_algorithm, session.bound()
        if played is not None:
            assert own is None
            assert "curved" in bound.why
        elif name == "ons":
            assert own is not None
            assert bound.why == ""


def test_what_cannot_be_kept_or_read_is_refused_and_nothing_changes():
    domain = bridle.Simplex(3)
    session = bridle.Session(bridle.policy("ons", domain, exp_concavity=1.0))
    session.decide()
    before = snapshot(session)
    far = QuadraticForm(2.0 * np.eye(3), np.zeros(3), -0.1)
    refused = {
        "no action|none was found with QuadraticForm": far,
        "3 numbers": bridle.Quadratic(np.eye(2)),
        "convex function made of numbers": bridle.functions.Callable(lambda x: 0.0, lambda x: x),
        r"pair \(A, b\)": 7.0,
        "known": [far, "nothing"],
    }
    for words, known in refused.items():
        with pytest.raises(bridle.InputError, match=words):
            session.decide(known=known)
        assert_identical(snapshot(session), before)
    mixed = bridle.Session(bridle.policy("adagrad", domain, rules=2))
    with pytest.raises(bridle.InputError, match=r"halfspaces \(A, b\) with rules"):
        mixed.decide(rules=np.eye(3)[:2], known=QuadraticForm(np.eye(3), np.zeros(3), -1.0))
    assert validate.show(session.decide()) == validate.show(domain.center())

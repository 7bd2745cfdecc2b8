"""The regularised leader in other geometries: minimisers against a solver, constants by hand, regret under attack, engines and runs."""

from __future__ import annotations

from math import log, sqrt

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import learners
from bridle.learners.structured import Sizes, usual_exponent
from helpers.learner_duels import OPPONENTS, Opponent

KINDS = {
    "simplex": (bridle.Simplex(5, mass=2.0), "entropy", None),
    "l1": (bridle.L1Ball(radius=1.5, center=[1.0, 0.0, -2.0]), "entropy", None),
    "spectrahedron": (bridle.Spectrahedron(3, trace=2.0), "entropy", None),
    "paths": (bridle.Paths([("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")], "s", "t"), "entropy", None),
    "trees": (bridle.SpanningTrees([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0)]), "entropy", None),
    "p-norm": (bridle.L1Ball(radius=1.5, center=[1.0, 0.0, -2.0, 0.5]), "p-norm", 1.3),
    "p-norm 2": (bridle.L1Ball(3, radius=0.5), "p-norm", 2.0),
    "p-norm usual": (bridle.L1Ball(12), "p-norm", None),
}


def make(kind):
    domain, geometry, exponent = KINDS[kind]
    return bridle.AdaFTRL(domain, geometry=geometry, exponent=exponent)


def regulariser(kind, learner, x):
    """R at a point or of a solver's variable, from the table of the module."""
    domain, c = learner.domain, learner.geometry.c
    if kind == "simplex":
        return c * (cp.sum(cp.rel_entr(x / 2.0, 0.2 * np.ones(5))))
    w = (x - domain.center()) / domain.radius
    return c / 2.0 * cp.pnorm(w, learner.geometry.p, approx=False) ** 2


@pytest.mark.parametrize("kind", ["simplex", "p-norm", "p-norm 2", "p-norm usual"])
def test_the_leader_is_the_minimiser(kind):
    learner, rng = make(kind), np.random.default_rng(0)
    domain, state = learner.domain, learner.init(learner.domain.center())
    total, S = np.zeros(domain.dim), 0.0
    q = np.inf if kind == "simplex" else learner.geometry.p / (learner.geometry.p - 1.0)
    for step, size in enumerate((0.01, 1.0, 1.0, 1.0, 3.0)):
        p = size * rng.standard_normal(domain.dim) + (size if step > 2 else 0.0) * np.eye(domain.dim)[0]
        state, total = learner.step(state, p), total + p
        S += (0.5 * np.ptp(p)) ** 2 if kind == "simplex" else np.linalg.norm(p, q) ** 2
        x = cp.Variable(domain.dim)
        inside = [x >= 0, cp.sum(x) == 2.0] if kind == "simplex" else [cp.norm1(x - domain.center()) <= domain.radius]
        cp.Problem(cp.Minimize(total @ x + sqrt(S) * regulariser(kind, learner, x)), inside).solve(cp.CLARABEL)
        np.testing.assert_allclose(learner.decide(state), x.value, atol=2e-4)
        assert domain.contains(learner.decide(state))


def test_an_l1_ball_is_a_simplex_with_two_corners_a_coordinate():
    learner, rng = make("l1"), np.random.default_rng(1)
    state, total, S = learner.init(np.zeros(3)), np.zeros(3), 0.0
    for _ in range(4):
        p = rng.standard_normal(3)
        state, total, S = learner.step(state, p), total + p, S + np.abs(p).max() ** 2
        theta = 1.5 * total / (learner.geometry.c * sqrt(S))
        mass = np.exp(-theta).sum() + np.exp(theta).sum()
        np.testing.assert_allclose(state.x, [1.0, 0.0, -2.0] + 1.5 * (np.exp(-theta) - np.exp(theta)) / mass, atol=1e-12)
    assert pytest.approx(S) == state.S


def test_a_spectrahedron_is_the_simplex_of_its_eigenvalues():
    matrix, simplex = (
        bridle.AdaFTRL(bridle.Spectrahedron(3, trace=2.0), geometry="entropy"),
        bridle.AdaFTRL(bridle.Simplex(3, 2.0), geometry="entropy"),
    )
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
    one, two = matrix.init(matrix.domain.center()), simplex.init(simplex.domain.center())
    skew = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])  # no matrix of the domain notices it
    for p in ([1.0, 0.0, 2.0], [-1.0, 0.5, 0.0], [0.1, 0.1, 0.1]):
        one, two = matrix.step(one, (turn @ np.diag(p) @ turn.T + skew).ravel()), simplex.step(two, np.array(p))
        np.testing.assert_allclose(one.x.reshape(3, 3), turn @ np.diag(two.x) @ turn.T, atol=1e-12)
        assert pytest.approx(two.S) == one.S


@pytest.mark.parametrize("kind", ["paths", "trees"])
def test_exponential_weights_over_all_actions(kind):
    """Against all of them listed, at costs of any size."""
    learner, rng = make(kind), np.random.default_rng(5)
    domain = learner.domain
    corners = np.unique(domain.linear_argmin(rng.standard_normal((400, domain.dim))), axis=0)
    assert len(corners) == {"paths": 3, "trees": 8}[kind] == round(np.exp(domain.log_corners))
    state, total, S, c = learner.init(domain.center()), np.zeros(domain.dim), 0.0, 1.0 / sqrt(2.0 * log(len(corners)))
    for size in (0.0, 1.0, 0.1, 5.0):
        p = size * rng.standard_normal(domain.dim)
        losses = corners @ p
        state, total, S = learner.step(state, p), total + p, S + (0.5 * np.ptp(losses)) ** 2
        w = np.exp(-corners @ total / (c * sqrt(S or 1.0)))
        np.testing.assert_allclose(state.x, w @ corners / w.sum(), atol=1e-12)
        assert pytest.approx(S) == state.S
    for size in (30.0, 1e3, 1e6):
        v = size * rng.standard_normal(domain.dim)
        w = np.exp(-(corners @ v - (corners @ v).min()))
        np.testing.assert_allclose(domain.gibbs(v), w @ corners / w.sum(), rtol=1e-9, atol=1e-200)
    sizes, half = learner.geometry.sizes(), sqrt(log(len(corners)) / 2)
    assert (sizes.most, 0.5 / sizes.modulus) == pytest.approx((half, half))
    assert (sizes.diameter, sizes.share) == (2.0, pytest.approx(domain.diameter() ** 2 / 4))


def test_the_constants_at_fixed_numbers():
    assert learners.structured_regret(1.3, 0.4, 2.5, 7.0) == pytest.approx((1.3 + 1.25 + sqrt(1.25**2 + 2.5**2)) * sqrt(7.0))
    m, r = 2.0, 1.5
    expected = {
        "simplex": (m * sqrt(log(5) / 2), 2 * m, 0.5),
        "l1": (r * sqrt(log(6) / 2), 2 * r, 1.0),
        "spectrahedron": (m * sqrt(log(3) / 2), 2 * m, 0.5),
        "p-norm": (r / (2 * sqrt(0.3)), 2 * r, 1.0),
        "p-norm 2": (0.25, 1.0, 1.0),
        "p-norm usual": (0.5 * sqrt(2 * log(12) - 1), 2.0, 1.0),
    }
    for kind, (half, B, share) in expected.items():
        learner = make(kind)
        sizes = learner.geometry.sizes()
        assert sizes.most == pytest.approx(half), kind  # c is where the first two terms are alike
        assert 0.5 / sizes.modulus == pytest.approx(half)
        assert (sizes.diameter, sizes.share) == (B, share)
        assert learner.adaptivity(9.9) == pytest.approx((2 * half + sqrt(half**2 + B**2)) * sqrt(share))
        state = learner.step(learner.init(learner.domain.center()), np.ones(learner.domain.dim) * np.arange(learner.domain.dim))
        assert learner.squares(state) == pytest.approx(state.S / share)
        shrunk = learner.rescale(state, 0.5)
        assert (shrunk.S, shrunk.total.tolist()) == (pytest.approx(state.S / 4), (0.5 * state.total).tolist())
    assert usual_exponent(100) == pytest.approx(2 * log(100) / (2 * log(100) - 1))
    assert Sizes(0.0, 0.5, 0.0, 1.0).regret() == 2.0


def test_the_steps_of_the_proof_meet_where_it_says():
    """min(a nu, B sqrt(nu)) / (sqrt(1 + nu) - 1) is largest at sqrt(nu) = B/a."""
    nu = np.exp(np.linspace(-20.0, 20.0, 400_001))
    for a, B in ((1.3, 0.7), (0.2, 5.0)):
        ratio = np.minimum(a * nu, B * np.sqrt(nu)) / np.expm1(0.5 * np.log1p(nu))
        assert ratio.max() == pytest.approx(a + sqrt(a * a + B * B), rel=1e-4)
        assert sqrt(nu[ratio.argmax()]) == pytest.approx(B / a, rel=1e-3)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from(list(KINDS)), st.sampled_from(OPPONENTS), st.integers(-6, 6), st.integers(0, 10**6))
def test_the_regret_in_the_geometry_is_below_its_bound(kind, opponent, decade, seed):
    learner = make(kind)
    domain, sizes = learner.domain, learner.geometry.sizes()
    against, state, paid, total = Opponent(opponent, domain, np.random.default_rng(seed)), learner.init(domain.center()), 0.0, 0.0
    for t in range(40):
        x = learner.decide(state)
        assert domain.contains(x)
        p = 10.0**decade * against(x, t)
        state, paid, total = learner.step(state, p), paid + float(p @ x), total + p
        bound = learners.structured_regret(sizes.most, sizes.modulus, sizes.diameter, state.S)
        regret = paid - float(domain.linear_min(total))
        assert regret <= bound * (1.0 + 1e-9) + 1e-12 * 10.0**decade
        assert bound <= learner.adaptivity(1.0) * np.sqrt(learner.squares(state)) * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_runs_at_once_are_runs_one_by_one_and_scale_is_nothing(kind):
    learner, rng = make(kind), np.random.default_rng(3)
    d = learner.domain.dim
    states, wide, far = [learner.init(np.zeros(d)) for _ in range(3)], learner.init(np.zeros((3, d))), learner.init(np.zeros(d))
    for t in range(5):
        p = rng.standard_normal((3, d)) * (t != 2)
        wide, far = learner.step(wide, p), learner.step(far, 1e-7 * p[0])
        states = [learner.step(state, row) for state, row in zip(states, p, strict=True)]
        np.testing.assert_allclose(wide.x, [state.x for state in states], atol=1e-12)
        np.testing.assert_allclose(far.x, states[0].x, atol=1e-9)
    np.testing.assert_array_equal(learner.init(np.ones(d)).x, learner.domain.center())


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.parametrize("kind", ["simplex", "p-norm"])
def test_the_engines_agree_in_other_geometries(kind):
    domain, geometry, exponent = KINDS[kind]
    game = bridle.Problem(domain, bridle.problem("halfspaces", horizon=300, dim=domain.dim).adversary, {})
    policy = bridle.policy("adaftrl", domain, geometry=geometry, exponent=exponent)
    one, two = (bridle.play(policy, game, horizon=300, engine=engine, keep="decisions") for engine in ("python", "jax"))
    np.testing.assert_allclose(one.decisions, two.decisions, atol=1e-9)


def test_the_bound_of_the_policy_and_what_is_refused():
    simplex = bridle.Simplex(5, mass=2.0)
    policy = bridle.policy("adaftrl", simplex, geometry="entropy")
    half = 2.0 * sqrt(log(5) / 2)
    facts = {"lipschitz": 1.7, "diameter": simplex.diameter(), "convex": True}
    assert policy.bound(facts, 400).regret == pytest.approx((2 * half + sqrt(half**2 + 16.0)) * sqrt(0.5) * 1.7 * 20.0)
    assert bridle.policy("sinha2024", simplex, horizon=100, lipschitz=1.0, learner=bridle.AdaFTRL(simplex, geometry="entropy")).bound(
        {**facts, "lipschitz": 1.0, "feasible": simplex.center()}, 100
    ).regret > 0.0  # fmt: skip
    for make_it, message in (
        (lambda: bridle.AdaFTRL(simplex, geometry="round"), "unknown geometry 'round'"),
        (lambda: bridle.AdaFTRL(bridle.Ball(2), geometry="entropy"), "domain must be a simplex, an L1 ball, a spectrahedron, paths"),
        (lambda: bridle.AdaFTRL(bridle.Matchings(3), geometry="entropy"), "domain cannot be Matchings for geometry='entropy'"),
        (lambda: bridle.AdaFTRL(simplex, geometry="p-norm"), "domain must be an L1 ball (l1) for geometry='p-norm'"),
        (lambda: bridle.AdaFTRL(simplex, 1.0, geometry="entropy"), "diameter is for geometry='euclidean' only"),
        (lambda: bridle.AdaFTRL(simplex, geometry="entropy", exponent=1.5), "exponent is for geometry='p-norm' only, not for 'entropy'"),
        (lambda: bridle.AdaFTRL(simplex, exponent=1.5), "exponent is for geometry='p-norm' only, not for 'euclidean'"),
        (lambda: bridle.AdaFTRL(bridle.L1Ball(3), geometry="p-norm", exponent=1.0), "exponent must be above 1 and at most 2, not 1.0"),
        (lambda: bridle.AdaFTRL(bridle.L1Ball(3), geometry="p-norm", exponent=2.1), "exponent must be above 1 and at most 2, not 2.1"),
    ):
        with pytest.raises(bridle.InputError) as refused:
            make_it()
        assert message in str(refused.value)


# --- where numbers that are alike elsewhere differ --------------------------------------------------------------------------------------

ONE_PATH = bridle.Paths([("s", "a"), ("a", "t")], "s", "t")
TRIANGLE = bridle.SpanningTrees([(0, 1), (1, 2), (2, 0)])
"""Trees of two edges that share one: sqrt(2) apart."""


def test_the_sizes_of_a_mass_and_a_trace_of_three():
    for domain, n in ((bridle.Simplex(5, mass=3.0), 5), (bridle.Spectrahedron(4, trace=3.0), 4)):
        geometry = bridle.AdaFTRL(domain, geometry="entropy").geometry
        c = 3.0 / sqrt(2.0 * log(n))
        assert geometry.sizes() == pytest.approx((c * log(n), c / 9.0, 6.0, 0.5))
    geometry = bridle.AdaFTRL(TRIANGLE, geometry="entropy").geometry
    assert geometry.sizes().share == pytest.approx(TRIANGLE.diameter() ** 2 / 4.0) == pytest.approx(0.5)
    assert float(geometry.dual(np.array([5.0, 1.0, 2.0]))) == 0.5 * (7.0 - 3.0)  # half of what trees differ by


def test_domains_of_one_action_and_of_two():
    """Entropy has no size where there is one action: c is then that of two."""
    for domain, c in (
        (bridle.Simplex(1, mass=3.0), 3.0 / sqrt(2.0 * log(2.0))),
        (bridle.Simplex(2, mass=3.0), 3.0 / sqrt(2.0 * log(2.0))),
        (bridle.Spectrahedron(1, trace=3.0), 3.0 / sqrt(2.0 * log(2.0))),
        (bridle.Spectrahedron(2, trace=3.0), 3.0 / sqrt(2.0 * log(2.0))),
        (ONE_PATH, 1.0 / sqrt(2.0 * log(2.0))),
    ):
        learner = bridle.AdaFTRL(domain, geometry="entropy")
        assert float(learner.geometry.c) == pytest.approx(c)
        assert learner.scale_free
        assert learner.init(np.zeros((3, domain.dim))).total.shape == (3, domain.dim)


@pytest.mark.parametrize("p", [1.2, 1.5, 1.9])
@pytest.mark.parametrize("total", [[-3.0, 2.7, 0.5, -0.01], [2.0, -1.0, 0.0, 0.3], [0.2, 0.2, -0.2, 0.1]])
@pytest.mark.parametrize("scale", [0.3, 3.0, 40.0])
def test_a_leader_in_a_power_norm_has_one_multiplier(p, total, scale):
    """|P_i| - (c / (scale r)) |w|^(2-p) |w_i|^(p-1) is the multiplier of sum |w_i| <= 1 where w_i is not 0."""
    r, total = 1.5, np.array(total)
    geometry = bridle.AdaFTRL(bridle.L1Ball(4, radius=r), geometry="p-norm", exponent=p).geometry
    w = geometry.leader(total, scale) / r
    assert (w * total <= 0.0).all()
    taken = abs(w) > 0.0
    slope = geometry.c / (scale * r) * np.sum(abs(w) ** p) ** ((2.0 - p) / p) * abs(w) ** (p - 1.0)
    left = abs(total) - slope
    multiplier = float(left[taken].mean())
    np.testing.assert_allclose(left[taken], multiplier, rtol=0.0, atol=1e-12 * abs(total).max())
    assert (abs(total)[~taken] <= multiplier + 1e-13).all()
    assert multiplier >= -1e-13
    assert abs(w).sum() == pytest.approx(1.0, abs=1e-9) if multiplier > 1e-9 else abs(w).sum() <= 1.0 + 1e-12

"""The policy without horizon or Lipschitz constant: its invariant along every trajectory, its bounds, and what its switches do."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Feedback, Round
from bridle.domains.half_space_cut import sweep
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.game.summary import summary
from helpers.adversarial_games import ratios, stage
from helpers.extent import examples
from helpers.instances import constraint_at, cost_at, instances, moves, rounding

SWITCHES = st.fixed_dictionaries({}, optional={"halfspace": st.just(False), "form": st.just("value")})


@pytest.mark.slow
@settings(max_examples=examples(20, 250))
@given(instances(), SWITCHES, st.integers(1, 3), st.floats(-6.0, 6.0) | st.none(), st.sampled_from([0, 1, 20]), st.floats(0.05, 0.95))
def test_the_invariant_holds_in_every_round(instance, switches, k, scale, cuts, theta):
    """V Regret + (1 - theta) e^{lam Q} - 1 <= sqrt(2) V D sqrt(sum |grad f|^2), for every V, theta and feasible action."""
    domain, feasible, G, rng = instance
    D = domain.diameter()
    given = dict(switches)
    if given.get("form") == "value":
        given["lipschitz"] = G
    if given.get("halfspace", True):
        given["cuts"] = cuts
    kappa = 2.0 * D * D * (G * G if "form" in given else 1.0)
    given["lam"] = theta / kappa
    V = None if scale is None else 10.0**scale / (G * D)
    record = bridle.policy("anytime", domain, V=V, **given).record
    state = record.init(domain.center())
    regret = squares = size = 0.0
    for t, (cost_move, constraint_move) in enumerate(moves(rng, 80), 1):
        x = record.decide(state)
        assert domain.contains(x)
        cost = cost_at(cost_move, x, feasible, G, t, rng)
        constraints = [constraint_at(constraint_move, x, feasible, G, D, t, rng) for _ in range(k)]
        feedback = Round(cost, tuple(constraints)).reveal(x)
        state = record.update(state, feedback)
        squares += float(feedback.df @ feedback.df)
        at_x, at_feasible = float(cost.value(x)), float(cost.value(feasible))
        regret += at_x - at_feasible
        size += abs(at_x) + abs(at_feasible)
        growth = exp(record.potential.lam * state.Q)
        left, right = state.V * regret + (1.0 - theta) * growth - 1.0, sqrt(2.0) * state.V * D * sqrt(squares)
        # A feasible point is at distance 0 up to the rounding of its own coordinates, which the constraint's weight carries.
        blur = (
            growth
            * record.potential.lam
            * 4.0
            * D
            * rounding(t, float(np.abs(feasible).sum()), D)
            * (1.0 if "form" not in given else G * G)
        )
        assert left <= right + rounding(t, right, state.V * size, growth, 1.0) + t * blur
    assert state.infeasible == 0.0
    assert record.alarm(state) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ball", "box"])
@pytest.mark.parametrize("d", [1, 2, 5, 20])
@pytest.mark.parametrize("k", [1, 3])
def test_regret_and_violation_stay_under_their_bounds(kind, d, k, record_property):
    largest = 0.0
    variants = [
        {},
        {"cuts": 0},
        {"halfspace": False},
        {"drift": 0.5},
    ]
    for seed, about in enumerate([*variants, {"form": "value", "lipschitz": 1.0, "halfspace": False}]):
        for V in (0.05, 1.0, 50.0):
            at = stage(kind, d, k, T=300, seed=seed)
            found = ratios(bridle.policy("anytime", at.domain, V=V, **about), at)
            assert set(found) == {"regret", "ccv", "squared"}
            assert max(found.values()) <= 1.0, (about, V, found)
            largest = max(largest, *found.values())
    at = stage(kind, d, k, T=300, seed=1, modulus=0.5)
    for about in ({}, {"halfspace": False}):
        found = ratios(bridle.policy("anytime", at.domain, V=2.0, modulus=at.modulus, **about), at)
        assert max(found.values()) <= 1.0, (about, found)
        largest = max(largest, *found.values())
    at = stage(kind, d, k, T=300, seed=2, slater=0.1)
    for margin in (0.02, 0.1):
        found = ratios(bridle.policy("anytime", at.domain, V=2.0, margin=margin * at.domain.diameter()), at)
        assert max(found.values()) <= 1.0, found
        largest = max(largest, *found.values())
    record_property("largest share of a bound", round(largest, 3))


@settings(max_examples=examples(20, 60))
@given(st.integers(0, 10**6), st.integers(1, 6), st.booleans())
def test_self_bounding_constraints_have_logarithmic_violation(seed, d, halfspace):
    """g = ((<a, x> - b)^+)^2 is self-bounding with M = 2 |a|^2: V Regret + ((1 - theta) e^{lam Q} - 1) / 2 <= V R in every round."""
    rng = np.random.default_rng(seed)
    domain = bridle.Ball(d, radius=10.0 ** rng.uniform(-2, 2))
    D, length = domain.diameter(), 10.0 ** rng.uniform(-2, 2)
    feasible = domain.project(D * rng.standard_normal(d))
    record = bridle.policy("anytime", domain, form="self-bounding", smoothness=2.0 * length**2, halfspace=halfspace, V=1.0 / D).record
    theta = 0.5
    state, regret, squares, ccv = record.init(domain.center()), 0.0, 0.0, 0.0
    for _ in range(150):
        x = record.decide(state)
        away = x - feasible if rng.random() < 0.7 and np.any(x != feasible) else rng.standard_normal(d)
        a = length * away / np.linalg.norm(away)
        over = max(0.0, float(a @ (x - feasible)))
        c = -a / length if rng.random() < 0.7 else rng.standard_normal(d)
        state = record.update(state, Feedback(x, float(c @ x), c, np.array([over * over]), 2.0 * over * a[None]))
        regret, squares, ccv = regret + float(c @ (x - feasible)), squares + float(c @ c), ccv + over * over
        left = regret / D + 0.5 * ((1.0 - theta) * exp(record.potential.lam * state.Q) - 1.0)
        assert left <= sqrt(2.0 * squares) * (1.0 + 1e-9)
        assert abs(state.Q - ccv) <= 1e-9 * ccv
    largest = sqrt(squares / 150)  # stands in for G: the bound is then about this very sum
    bound = log((1.0 + 2.0 * (sqrt(2.0 * 150) * largest + 150.0 * largest)) / (1.0 - theta)) / record.potential.lam
    assert ccv <= bound * (1.0 + 1e-9)


@settings(max_examples=examples(20, 60))
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.2, 2.0, 20.0]), st.booleans())
def test_a_moving_feasible_action_costs_what_its_path_says(seed, drift, halfspace):
    """Regret against u_1, u_2, ... with path P, every u_t feasible in its own round: D^2 + 2 D P takes the place of D^2."""
    rng = np.random.default_rng(seed)
    domain, D = bridle.Ball(3), 2.0
    record = bridle.policy("anytime", domain, drift=drift, halfspace=halfspace, V=0.5).record
    u, left, state, regret, squares = domain.project(rng.standard_normal(3)), drift, record.init(domain.center()), 0.0, 0.0
    wide = sqrt(D * D + 2.0 * D * drift)
    for _ in range(200):
        x = record.decide(state)
        away = x - u if rng.random() < 0.7 and np.any(x != u) else rng.standard_normal(3)
        a = away / np.linalg.norm(away)
        c = -a if rng.random() < 0.5 else rng.standard_normal(3)
        state = record.update(state, Round(AffineFunction(c, 0.0), (AffineFunction(a, -float(a @ u)),)).reveal(x))
        regret, squares = regret + float(c @ (x - u)), squares + float(c @ c)
        assert 0.5 * regret + 0.5 * exp(record.potential.lam * state.Q) - 1.0 <= 0.5 * sqrt(2.0) * wide * sqrt(squares) + 1e-9
        step = rng.standard_normal(3) * min(left, drift / 50.0) / 2.0
        moved = domain.project(u + step)
        left -= float(np.linalg.norm(moved - u))
        u = moved if left >= 0.0 else u
        left = max(left, 0.0)


def adaptive(record, T):
    """The stream that pulls straight out of the feasible side, chosen after every decision: unit ball, feasible at (-0.3, 0)."""
    u, state, regret, ccv, squares = np.array([-0.3, 0.0]), record.init(np.zeros(2)), 0.0, 0.0, 0.0
    for _ in range(T):
        x = record.decide(state)
        away = x - u
        a = away / np.linalg.norm(away) if away.any() else np.array([1.0, 0.0])
        g = float(a @ away)
        state = record.update(state, Feedback(x, 0.0, -a, np.array([g]), a[None]))
        regret, ccv, squares = regret - g, ccv + max(g, 0.0), squares + max(g, 0.0) ** 2
    return regret, ccv, squares


def test_known_figures_on_the_stream_that_pulls_out():
    """An independent implementation of the plain form, at lam = 1/(32 D^2) and V = 1/2, had these after 20,000 rounds."""
    plain = bridle.policy("anytime", bridle.Ball(2), V=0.5, lam=1.0 / 128.0, halfspace=False).record
    regret, ccv, squares = adaptive(plain, 20_000)
    assert (round(regret, 1), round(ccv, 1), round(squares, 1)) == (-2462.9, 2462.9, 810.7)
    assert round(adaptive(bridle.policy("anytime", bridle.Ball(2), V=0.5, lam=1.0 / 128.0, cuts=0).record, 2_000)[1], 1) == 0.3


@pytest.mark.parametrize("cost_scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("constraint_scale", [1e-6, 1e6])
def test_decisions_do_not_depend_on_the_units_of_costs_or_constraints(cost_scale, constraint_scale):
    rng = np.random.default_rng(3)
    record = bridle.policy("anytime", bridle.Ball(4)).record
    one, two = record.init(np.zeros(4)), record.init(np.zeros(4))
    for _ in range(200):
        c, a, b = rng.standard_normal(4), rng.standard_normal(4), float(rng.uniform(0.0, 0.3))
        one = record.update(one, Round(AffineFunction(c, 0.0), (AffineFunction(a, -b),)).reveal(one.x))
        scaled = Round(AffineFunction(cost_scale * c, 0.0), (AffineFunction(constraint_scale * a, -constraint_scale * b),))
        two = record.update(two, scaled.reveal(two.x))
        np.testing.assert_allclose(one.x, two.x, atol=1e-11)


def test_the_scale_comes_from_the_first_gradient_that_is_not_zero():
    record = bridle.policy("anytime", bridle.Ball(2, radius=2.0)).record
    state = record.init(np.zeros(2))
    quiet = Round(AffineFunction(np.zeros(2), 0.0), (AffineFunction(np.array([1.0, 0.0]), 0.5),))
    state = record.update(state, quiet.reveal(state.x))
    assert state.V == 0.0
    assert state.x[0] <= -0.5  # the halfspace is met all the same
    state = record.update(state, Round(AffineFunction(np.array([0.0, 5.0]), 0.0), quiet.constraints).reveal(state.x))
    assert state.V == 10.0 / (4.0 * 5.0)
    later = record.update(state, Round(AffineFunction(np.array([0.0, 500.0]), 0.0), quiet.constraints).reveal(state.x))
    assert later.V == state.V


def test_the_last_violated_halfspaces_are_kept_and_met():
    record = bridle.policy("anytime", bridle.Ball(3), cuts=2).record
    state = record.init(np.zeros(3))
    axes = np.eye(3)
    for i, level in enumerate([0.1, 0.2, 0.3]):
        state = record.update(state, Round(AffineFunction(0.0 * axes[0], 0.0), (AffineFunction(axes[i], level),)).reveal(state.x))
    assert state.A.tolist() == [axes[2].tolist(), axes[1].tolist()]  # the first was the oldest of three
    np.testing.assert_allclose(state.b, [-0.3, -0.2])
    pulled = record.update(state, Round(AffineFunction(np.array([0.0, -9.0, -9.0]), 0.0), (AffineFunction(axes[0], -9.0),)).reveal(state.x))
    assert pulled.x[1] <= -0.2 + 1e-12
    assert pulled.x[2] <= -0.3 + 1e-12
    assert pulled.slot == state.slot  # a constraint that holds is not kept


def test_of_several_constraints_the_farthest_counts_and_all_are_met():
    record = bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2)).record
    state = record.init(np.zeros(2))
    rows = (
        AffineFunction(np.array([100.0, 0.0]), 1.0),
        AffineFunction(np.array([0.0, 0.1]), 0.05),
    )  # values 1 and 0.05, distances 0.01 and 0.5
    state = record.update(state, Round(AffineFunction(np.zeros(2), 0.0), rows).reveal(state.x))
    assert abs(state.Q - 0.25) <= 1e-12
    assert state.x[0] <= -0.01 + 1e-12
    assert state.x[1] <= -0.5 + 1e-12


@pytest.mark.parametrize("about", [{}, {"halfspace": False}, {"modulus": 1.0}, {"form": "value", "lipschitz": 1.0}])
def test_contradictory_constraints_neither_overflow_nor_stop_the_policy(about):
    policy = bridle.policy("anytime", bridle.Ball(2), **about)
    session = bridle.Session(policy)

    def go_on(rounds):
        for _ in range(rounds):
            x = session.decide()
            session.observe(f=float(x[0]), df=[1.0, 0.0], g=5.0 if session.rounds >= 2 else -1.0, dg=[1e-3, 0.0])

    with pytest.warns(bridle.BridleWarning, match="no action of the domain satisfies the constraint of round 3"):
        go_on(3000)
    assert np.isfinite(session.decide()).all()
    assert "no action of the domain" in policy.record.alarm(session.state).text


def test_a_constant_constraint_above_zero_is_seen_as_infeasible():
    """It does no harm."""
    record = bridle.policy("anytime", bridle.Ball(2)).record
    state = record.update(record.init(np.zeros(2)), Feedback(np.zeros(2), 0.0, np.ones(2), np.array([1.0]), np.zeros((1, 2))))
    assert state.infeasible == 1.0
    assert np.isfinite(state.x).all()


def test_the_strongly_convex_step_starts_when_the_scale_is_known():
    record = bridle.policy("anytime", bridle.Ball(1), modulus=2.0, halfspace=False).record
    state = record.init(np.array([0.5]))
    quiet, no = AffineFunction(np.array([1.0]), -9.0), np.zeros(1)
    for _ in range(5):
        state = record.update(state, Round(RoundQuadratic(2.0, np.array([0.5]), no, 0.0), (quiet,)).reveal(state.x))
    assert state.H == 0.0
    state = record.update(state, Round(RoundQuadratic(2.0, np.array([0.25]), no, 0.0), (quiet,)).reveal(state.x))
    assert state.x[0] == pytest.approx(0.25)  # the step is 1 / modulus, as in round 1


VARIANTS = [
    {}, {"cuts": 3}, {"halfspace": False}, {"modulus": 1.0}, {"margin": 0.05},
    {"form": "value", "lipschitz": 1.0}, {"form": "self-bounding", "smoothness": 1.0}, {"drift": 1.0},
]  # fmt: skip


@pytest.mark.compiles
@pytest.mark.parametrize(("about", "k"), [*((about, 1) for about in VARIANTS), ({}, 3)], ids=str)
def test_engines_and_batches_agree(about, k):
    problem = bridle.problem("halfspaces", horizon=300, dim=4, constraints=k, modulus=about.get("modulus", 0.0))
    made = bridle.policy("anytime", problem.domain, **about)
    alone = bridle.play(made, problem, keep="decisions")
    compiled = bridle.play(made, problem, engine="jax", keep="decisions")
    np.testing.assert_allclose(compiled.decisions, alone.decisions, atol=1e-11)
    many = bridle.play(made, problem, seed=[0, 1, 2], keep="decisions")
    np.testing.assert_allclose(many.decisions[:, 0], alone.decisions, atol=1e-11)
    swept = bridle.play(bridle.policy("anytime", problem.domain, V=[0.1, 1.0], **about), problem, keep="decisions")
    one = bridle.play(bridle.policy("anytime", problem.domain, V=1.0, **about), problem, keep="decisions")
    np.testing.assert_allclose(swept.decisions[:, 1], one.decisions, atol=1e-11)


def test_far_less_violation_than_algorithm_1_at_no_more_regret_than_its_bound():
    problem = bridle.problem("halfspaces", horizon=5000, dim=10)
    ours, theirs = (bridle.play(bridle.policy_for(name, problem), problem) for name in ("anytime", "sinha2024"))
    assert 50.0 * bridle.ccv(ours) <= bridle.ccv(theirs)
    assert bridle.regret(ours) <= ours.policy.bound(problem.constants, 5000).regret


def test_bounds_without_a_given_scale_use_the_one_the_game_found():
    problem = bridle.problem("halfspaces", horizon=400, dim=3)
    facts = summary(bridle.play(bridle.policy("anytime", problem.domain), problem))
    assert all(facts[f"{bound}_holds"] for bound in ("regret_bound", "ccv_bound", "squared_bound"))
    before = bridle.policy("anytime", problem.domain).bound(problem.constants, 400)
    assert before.ccv is None
    assert before.regret >= facts["regret_bound"] * (1.0 - 1e-12)
    assert "first gradient" in before.why


def test_without_any_cost_violation_is_bounded_all_the_same():
    problem = bridle.problem("nested-bodies", horizon=300, dim=2)
    facts = summary(bridle.play(bridle.policy("anytime", problem.domain), problem))
    D, G = problem.constants["diameter"], problem.constants["lipschitz"]
    assert facts["squared_bound"] == pytest.approx(4.0 * D * D * G * G * log(2.0))
    assert facts["squared_bound_holds"]
    assert facts["ccv_bound_holds"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"form": "cube"}, "unknown form 'cube'"),
        ({"form": "value"}, "form='value' needs lipschitz"),
        ({"lipschitz": 1.0}, "lipschitz is for form='value' only, not for 'distance'"),
        ({"form": "self-bounding"}, "form='self-bounding' needs smoothness"),
        ({"form": "value", "lipschitz": 1.0, "margin": 0.1}, "margin is a distance, for form='distance' only"),
        ({"drift": 1.0, "cuts": 5}, "cuts must be 0 where the feasible action moves"),
        ({"drift": 1.0, "modulus": 1.0}, "drift must be 0 with modulus"),
        ({"halfspace": False, "cuts": 5}, "cuts must be 0 with halfspace=False"),
        ({"margin": -0.1}, "margin must"),
        ({"drift": float("nan")}, "drift must"),
        ({"cuts": 1.5}, "cuts must"),
        ({"V": 0.0}, "V must"),
        ({"lam": -1.0}, "lam must"),
    ],
)
def test_bad_parameters_are_named(given, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.policy("anytime", bridle.Ball(2), **given)


@pytest.mark.parametrize(
    ("given", "constants", "why"),
    [
        ({"lam": 1.0}, {}, "lam = 1 is too large for a proof"),
        ({"diameter": 0.5}, {}, "the domain's diameter is 2"),
        ({"margin": 0.5}, {"slater": 0.1}, "no action is known to satisfy every constraint by the margin"),
        ({"modulus": 1.0}, {"modulus": 0.5}, "the costs' modulus is 0.5"),
        ({"form": "value", "lipschitz": 0.5}, {}, "the Lipschitz constant is 1"),
        ({"form": "self-bounding", "smoothness": 1.0}, {}, "not known to be self-bounding"),
        ({}, {"feasible": None}, "no action is known"),
    ],
)
def test_no_bound_where_an_assumption_is_broken(given, constants, why):
    known = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2), "modulus": 0.0, **constants}
    bound = bridle.policy("anytime", bridle.Ball(2), V=1.0, **given).bound(known, 100)
    assert bound.regret is None
    assert why in bound.why


def test_a_small_told_diameter_is_no_proof_that_nothing_is_feasible():
    """A halfspace farther away than the told D but within the domain's own can be satisfied: no alarm; beyond the domain, there is one."""
    domain = bridle.Ball(2, radius=5.0)
    for far, alarmed in ((3.0, False), (10.5, True)):
        policy = bridle.policy("anytime", domain, diameter=1.0, V=1.0)
        state = policy.update(policy.init(domain.center()), Feedback(np.zeros(2), 0.0, np.ones(2), np.array([far]), np.array([[1.0, 0.0]])))
        assert bool(policy.record.alarm(state)) is alarmed


@pytest.mark.parametrize("rows", [0, 1, 3, 20, 64, 65, 200])
def test_a_sweep_projects_on_one_halfspace_after_the_other(rows):
    """Whichever way it takes: few violated, many, more rows than are handled at once, rows of length 0."""
    rng = np.random.default_rng(rows)
    for spread in (0.01, 0.5, 2.0):
        A = rng.standard_normal((rows, 4))
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        A[::7] = 0.0
        b, y = spread * rng.standard_normal(rows) + (A == 0.0).all(axis=1), rng.standard_normal(4)
        expected = y.copy()
        for row, level in zip(A, b, strict=True):
            expected = expected - max(0.0, row @ expected - level) * row
        before = y.copy()
        np.testing.assert_allclose(sweep(A, b, y), expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(y, before)

"""Polyak feasibility steps: no violation at all from a Slater point, a constant one from anywhere, and regret under its bounds."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.adversaries import Fixed
from bridle.core import Feedback, InputError, Round
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.game.summary import summary
from helpers.adversarial_games import ratios, stage
from helpers.extent import examples
from helpers.instances import cost_at, instances, moves, rounding

SHAPES = ("affine", "round", "several")


def fixed(shape, domain, point, G, margin, rng):
    """G-Lipschitz convex constraints, each satisfied at the point by the margin or more, the first of them by no more."""
    d, D = domain.dim, domain.diameter()

    def direction():
        a = rng.standard_normal(d)
        return a / np.linalg.norm(a)

    if shape == "round":
        middle = domain.project(point + D * rng.standard_normal(d))
        curve = RoundQuadratic(0.5 * G / D, middle, 0.5 * G * direction(), 0.0)
        return (curve._replace(b=-float(curve.value(point)) - margin),)
    lengths = G * (np.ones(1) if shape == "affine" else np.append(1.0, rng.uniform(0.1, 1.0, 3)))
    rows = [size * direction() for size in lengths]
    extra = np.append(0.0, rng.exponential(0.1 * G * D, len(rows) - 1))
    return tuple(AffineFunction(a, -float(a @ point) - margin - more) for a, more in zip(rows, extra, strict=True))


def worst(constraints, x):
    values = [(float(g.value(x)), g.grad(x)) for g in constraints]
    return max(values, key=lambda pair: pair[0])


@pytest.mark.slow
@settings(max_examples=examples(20, 120))
@given(instances(), st.sampled_from(SHAPES), st.floats(-2.5, -0.3), st.sampled_from(["theory", "practice", "long"]), st.integers(1, 4))
def test_the_constraint_is_never_violated(instance, shape, margin, preset, pull):
    """In no round, whatever the costs; and regret is below what the theorem and the run itself say, for every feasible action."""
    domain, point, G, rng = instance
    D, T = domain.diameter(), 120
    slater = 10.0**margin * G * D
    constraints = fixed(shape, domain, point, G, slater, rng)
    given = {"preset": "practice", "step": 50.0 * D / G} if preset == "long" else {"preset": preset}
    policy = bridle.policy("hutchinson2025", domain, horizon=T, lipschitz=G, slater=slater, **given)
    record, state = policy.record, policy.init(point)
    others = [domain.project(point + D * rng.standard_normal(domain.dim)) for _ in range(20)]
    rivals = [point, *(u for u in others if worst(constraints, u)[0] <= 0.0)]
    regrets, size = np.zeros(len(rivals)), 0.0
    blur = rounding(1, G * D, G * float(np.abs(point).sum()), slater)
    for t, (move, _) in enumerate(moves(rng, T), 1):
        x = record.decide(state)
        assert domain.contains(x)
        value, slope = worst(constraints, x)
        assert value <= blur, f"round {t}"
        steep = float(np.linalg.norm(slope))
        # Every so often straight out of the feasible set, as steep as a cost may be.
        cost = cost_at(move, x, point, G, t, rng) if t % pull or not steep else AffineFunction(-G / steep * slope, 0.0)
        state = record.update(state, Round(cost, constraints).reveal(x))
        assert state.far <= record.near * (1.0 + 1e-12), "which is what the next decision's feasibility rests on"
        regrets += [float(cost.value(x)) - float(cost.value(u)) for u in rivals]
        size += G * (D + float(np.abs(x).sum()))
    assert record.alarm(state) is None
    assert state.first == 0.0
    assert regrets.max() <= record.certified_regret(state) + rounding(T, size)
    facts = {
        "lipschitz": G, "diameter": D, "slater": slater, "feasible": point, "time_varying": False, "first": state.first,
        "constraints": len(constraints),
    }  # fmt: skip
    bound = policy.bound(facts, T)
    assert bound.ccv == 0.0
    assert (bound.regret is None) == bool(bound.why) == (record.step * G > record.least * (1.0 + 1e-12))
    if preset == "theory":
        assert regrets.max() <= bound.regret * (1.0 + 1e-9) + rounding(T, size)
        assert record.certified_regret(state) <= bound.regret * (1.0 + 1e-9) or bound.regret == G * D * T


@pytest.mark.slow
@settings(max_examples=examples(20, 60))
@given(instances(), st.sampled_from(SHAPES), st.floats(-1.5, -0.3), st.sampled_from(["theory", "practice"]))
def test_from_anywhere_the_violation_is_a_constant(instance, shape, margin, preset):
    domain, point, G, rng = instance
    D, T = domain.diameter(), 150
    slater = 10.0**margin * G * D
    constraints = fixed(shape, domain, point, G, slater, rng)
    policy = bridle.policy("hutchinson2025", domain, horizon=10 * T, lipschitz=G, slater=slater, preset=preset)
    away = [domain.project(point + D * rng.standard_normal(domain.dim)) for _ in range(10)]
    start = max(away, key=lambda x: worst(constraints, x)[0])
    state, ccv, met = policy.init(start), 0.0, False
    blur = rounding(T, G * D, G * float(np.abs(point).sum()), slater)
    facts = {"lipschitz": G, "diameter": D, "slater": slater, "feasible": point, "time_varying": False}
    for t, (move, _) in enumerate(moves(rng, T), 1):
        x = policy.decide(state)
        value, slope = worst(constraints, x)
        ccv += max(value, 0.0)
        assert not (met and value > blur), "it had been feasible for good"
        cost = AffineFunction(-G * slope / np.linalg.norm(slope), 0.0) if t % 2 and slope.any() else cost_at(move, x, point, G, t, rng)
        state = policy.update(state, Round(cost, constraints).reveal(x))
        met = met or state.far <= policy.record.near
        assert ccv <= policy.bound({**facts, "first": state.first}, t).ccv + blur
        assert policy.bound({**facts, "first": state.first}, t).ccv <= policy.bound(facts, t).ccv
    assert policy.record.alarm(state) is None


@pytest.mark.parametrize("seed", range(12))
def test_the_distance_that_is_tracked_is_not_below_the_true_one(seed):
    """To {g <= -rho}, which for an affine g is a domain of its own; and the certificate is the sum that (5) of the proof says."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    domain = bridle.Ball(d, radius=2.0) if seed % 2 else bridle.Box(-np.ones(d), rng.uniform(0.5, 2.0, d))
    D, G, slater = domain.diameter(), 3.0, 0.2 * 3.0 * domain.diameter()
    (wall,) = fixed("affine", domain, domain.center(), G, slater, rng)
    policy = bridle.policy("hutchinson2025", domain, horizon=200, lipschitz=G, slater=slater, preset="practice", step=2.0 * D / G)
    record, state = policy.record, policy.init(domain.linear_argmin(-wall.a))
    inner = bridle.Halfspace(wall.a, -float(wall.b) - record.level, within=domain)
    proof, before, slopes, shortened = 0.0, 0.0, 0.0, 0
    for t in range(150):
        x = record.decide(state)
        assert float(np.linalg.norm(x - inner.project(x))) <= state.far + 1e-9 * D
        c = G * (-wall.a / G if t % 3 else rng.standard_normal(d) / np.sqrt(d)) * rng.uniform(0.1, 1.0)
        feedback = Round(AffineFunction(c, 0.0), (wall,)).reveal(x)
        after = record.update(state, feedback)
        eta = 1.0 / after.inverse
        move = max(0.0, float(feedback.g[0]) + record.level - eta * float(wall.a @ c)) / G
        proof += 0.5 * D * D * max(0.0, 1.0 / eta - before) + 0.5 * (eta * float(c @ c) - move**2 / eta)
        slopes, shortened, before, state = slopes + float(np.linalg.norm(c)), shortened + (eta < record.step), 1.0 / eta, after
    assert shortened > 10
    assert record.certified_regret(state) == pytest.approx(proof + record.level / slater * D * slopes)


@pytest.mark.parametrize("kind", ["ball", "box"])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_several_fixed_constraints_from_the_centre(kind, d):
    for seed in range(4):
        at = stage(kind, d, 3, T=300, seed=seed, fixed=True, slater=0.2)
        policy = bridle.policy("hutchinson2025", at.domain, horizon=at.T, lipschitz=at.G, slater=at.slater)
        found = ratios(policy, at)
        assert set(found) == {"regret", "ccv"}
        assert max(found.values()) <= 1.0


def game(x1=None, **given):
    problem = bridle.problem("fixed", horizon=400, dim=3)
    return bridle.play(bridle.policy_for("hutchinson2025", problem, **given), problem, x1=x1)


def test_a_game_reports_zero_and_its_bound():
    """The start's own distance is known to the bound once the game has been played, and not before."""
    trace = game()
    facts = summary(trace)
    assert facts["ccv"] == facts["ccv_bound"] == 0.0
    assert facts["regret"] <= facts["regret_bound"] < 1.0 * 2.0 * 400
    assert trace.policy.bound(trace.problem.constants, 400).ccv > 0.0
    corner = trace.problem.adversary.round.constraints[0].grad(np.zeros(3))
    outside = game(x1=corner / np.linalg.norm(corner))
    facts = summary(outside)
    assert 0.0 < facts["ccv"] <= facts["ccv_bound"] < 100.0
    assert outside.warnings == ()


def test_practice_has_less_regret_and_no_bound_on_it_in_advance():
    theory, practice = game(), game(preset="practice")
    assert bridle.regret(practice) < 0.5 * bridle.regret(theory)
    assert bridle.ccv(practice) == 0.0
    found = summary(practice)
    assert found["regret_bound"] is None
    assert found["ccv_bound"] == 0.0
    assert bridle.regret(practice) <= practice.policy.record.certified_regret(practice.state)


def test_steps_that_could_lead_outside_are_shortened():
    """A cost a thousand times as steep as promised does not make a decision infeasible."""
    domain, wall = bridle.Ball(2), AffineFunction(np.array([1.0, 0.0]), -0.5)
    policy = bridle.policy("hutchinson2025", domain, horizon=100, lipschitz=1.0, slater=1.5, preset="practice", level=0.1)
    state = policy.init(np.array([-1.0, 0.0]))
    for _ in range(200):
        state = policy.update(state, Round(AffineFunction(np.array([-1000.0, 30.0]), 0.0), (wall,)).reveal(policy.decide(state)))
        assert float(wall.value(policy.decide(state))) <= 0.0
    assert policy.decide(state)[0] > 0.2, "and it gets near the wall all the same"


def test_a_session_says_zero_and_notices_a_broken_promise():
    domain, wall = bridle.Ball(2), bridle.Affine([1.0, 0.0], -0.2)
    policy = bridle.policy("hutchinson2025", domain, horizon=500, lipschitz=1.0, slater=1.2)
    session = bridle.Session(policy, x1=[-1.0, 0.0])
    for _ in range(130):
        session.step(bridle.Affine([-0.9, 0.1]), [wall])
    assert session.ccv == session.bound().ccv == 0.0
    proved = session.certificate()
    assert proved.regret_algorithm is not None
    assert 0.0 < proved.regret <= proved.regret_algorithm <= session.bound().regret
    session = bridle.Session(policy, x1=[-1.0, 0.0])
    for t in range(1, 192):
        session.step(bridle.Affine([-0.9, 0.1]), [wall if t <= 130 else bridle.Affine([-1.0, 0.0], 0.9)])
    with pytest.warns(bridle.AssumptionWarning, match="in round 131 the constraint was not what the policy was promised"):
        session.step(bridle.Affine([-0.9, 0.1]), [bridle.Affine([-1.0, 0.0], 0.9)])  # the next look at the state


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"time_varying": True}, "the constraints change from round to round"),
        ({"slater": 0.1}, "no action is known to satisfy the constraint by what the policy was told"),
        ({"slater": None}, "no action is known to satisfy the constraint by what the policy was told"),
        ({"lipschitz": 2.0}, "the Lipschitz constant is 2"),
        ({"convex": False}, "not convex"),
        ({"feasible": None}, "no action is known"),
    ],
)
def test_no_bound_where_an_assumption_is_broken(change, why):
    domain = bridle.Ball(2)
    policy = bridle.policy("hutchinson2025", domain, horizon=100, lipschitz=1.0, slater=0.5)
    facts = {"lipschitz": 1.0, "diameter": 2.0, "slater": 0.5, "feasible": np.zeros(2), "time_varying": False}
    assert policy.bound(facts, 100).why == ""
    bound = policy.bound({**facts, **change}, 100)
    assert why in bound.why
    assert bound.regret is None
    assert bound.ccv is None


def test_changing_constraints_are_warned_of():
    problem = bridle.problem("halfspaces", horizon=50, dim=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        trace = bridle.play(bridle.policy_for("hutchinson2025", problem), problem)
    assert "is for constraints that stay the same" in trace.warnings[0]
    assert "not what the policy was promised" in trace.warnings[1]


def test_a_constraint_without_a_slater_point_is_noticed():
    """|x - 2|^2 is nowhere 0 on the ball: the gradient step comes to rest, and the promise is known to be false."""
    disc = RoundQuadratic(2.0, np.array([2.0, 0.0]), np.zeros(2), 0.0)
    problem = bridle.Problem(
        bridle.Ball(2),
        Fixed(Round(AffineFunction(np.zeros(2), 0.0), (disc,))),
        {"time_varying": False, "slater": 1.0},
        parameters={"horizon": 99},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        trace = bridle.play(bridle.policy("hutchinson2025", problem.domain, horizon=99, lipschitz=6.0, slater=1.0), problem)
    assert any("not what the policy was promised" in note for note in trace.warnings)


@pytest.mark.parametrize("given", [{"level": 0.5}, {"level": -1.0}, {"preset": "tight"}, {"step": 0.0}, {"slater": 0.0}])
def test_what_makes_no_sense_is_refused(given):
    with pytest.raises(InputError, match=next(iter(given))):
        bridle.policy("hutchinson2025", bridle.Ball(2), **{"horizon": 100, "lipschitz": 1.0, "slater": 0.5, **given})


def test_the_defaults_are_those_of_the_proof():
    policy = bridle.policy("hutchinson2025", bridle.Ball(2), horizon=10**6, lipschitz=1.0, slater=0.5)
    a0 = 0.5 / (2.0 * 2.0)
    assert policy.record.level == pytest.approx(((2.0 * 4.0 / a0**2) / ((a0**2 / 8.0 + 2.0 / 0.5) * 10**6)) ** 0.5)
    assert a0**2 * policy.record.level / 4.0 <= policy.record.step <= policy.record.least * (1.0 + 1e-12)
    bounds = [
        bridle.policy("hutchinson2025", bridle.Ball(2), horizon=T, lipschitz=1.0, slater=0.5).bound(
            {"lipschitz": 1.0, "diameter": 2.0, "slater": 0.5, "feasible": np.zeros(2), "time_varying": False}, T
        ).regret
        for T in (10**6, 10**8)
    ]  # fmt: skip
    assert bounds[1] == pytest.approx(10.0 * bounds[0], rel=0.05), "it grows as sqrt(T)"


def test_a_zero_gradient_with_a_satisfied_constraint_moves_nothing():
    policy = bridle.policy("hutchinson2025", bridle.Ball(2), horizon=100, lipschitz=1.0, slater=0.5)
    state = policy.init(np.zeros(2))
    after = policy.update(state, Feedback(np.zeros(2), 0.0, np.zeros(2), np.array([-1.0]), np.zeros((1, 2))))
    np.testing.assert_array_equal(after.x, np.zeros(2))
    assert policy.record.alarm(after) is None


def test_the_examples_of_the_documentation_run():
    page = (Path(__file__).parents[2] / "docs" / "zero-violation.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, {})


def test_rounds_without_news_of_the_constraint_break_no_promise():
    """They move nothing either."""
    policy = bridle.policy("hutchinson2025", bridle.Ball(2), horizon=600, lipschitz=1.0, slater=0.5)
    session, regret = bridle.Session(policy, x1=[-0.7, 0.0]), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", bridle.core.EmptyPromiseWarning)  # so few rounds, and less room in a third of them
        for t in range(600):
            x = session.decide()
            assert x[0] + 0.2 <= 0.0
            regret -= x[0] + 0.2
            limit = {} if t % 3 else {"g": x[0] + 0.2, "dg": [1.0, 0.0]}
            session.observe(f=-x[0], df=[-1.0, 0.0], **limit)
            if t % 3:
                np.testing.assert_array_equal(session.decide(), x)
    found = session.certificate()
    assert found.ccv == 0.0 == found.bound.ccv
    assert regret <= found.regret_algorithm
    assert regret <= found.bound.regret

"""The Steiner point: exact where it says so, inside every set so far, and never farther travelled than the theorem allows."""

from __future__ import annotations

import warnings
from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle import policies
from bridle.checks import check_policy
from bridle.core import Feedback, InputError
from bridle.policies import _steiner as steiner
from bridle.solvers.steiner_body import Plane
from helpers import adversarial_games


def cut(policy, state, a, b):
    """The state after the single constraint <a, y> <= b."""
    a, x = np.asarray(a, dtype=float), policy.decide(state)
    return policy.update(state, Feedback(x, 0.0, np.zeros(len(x)), np.array([float(a @ x) - b]), a[None]))


def start(domain, horizon=100, **more):
    policy = bridle.policy("steiner", domain, horizon=horizon, **more)
    return policy, policy.init(domain.center())


def polygon(rng, cuts):
    """A policy and its state after random cuts of a box that spare one point."""
    low = rng.normal(size=2)
    domain = bridle.Box(low, low + rng.uniform(0.5, 2.0, 2))
    policy, state = start(domain)
    point = rng.uniform(domain.low, domain.high)
    for _ in range(cuts):
        a = rng.normal(size=2) * 10.0 ** rng.uniform(-3, 3)
        state = cut(policy, state, a, float(a @ point) + np.linalg.norm(a) * rng.exponential(0.2))
    return policy, state


# --- exactness


def test_known_points():
    policy, state = start(bridle.Box([-1.0, 2.0], [3.0, 4.0]))
    np.testing.assert_allclose(policy.decide(state), [1.0, 3.0], atol=1e-15)
    np.testing.assert_allclose(policy.decide(start(bridle.Ball(1, center=[2.0]))[1]), [2.0])
    np.testing.assert_allclose(policy.decide(start(bridle.Simplex(2))[1]), [0.5, 0.5])
    np.testing.assert_allclose(policy.decide(start(bridle.L1Ball(center=[1.0, 2.0]))[1]), [1.0, 2.0], atol=1e-15)
    right = start(bridle.Polyhedron([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0]))[1]
    # Exterior angles: a quarter turn at the right angle, three eighths at the others.
    np.testing.assert_allclose(right.x, [0.375, 0.375], atol=1e-12)
    half = start(bridle.Halfspace([1.0, 1.0], 1.0, within=bridle.Box(0.0, 1.0, dim=2)))[1]
    np.testing.assert_allclose(half.x, [0.375, 0.375], atol=1e-11)
    # Of the half of a disc that u points to: the integral of cos over it, less that of |sin| cos over the other half, is 1/pi.
    u = np.array([0.6, -0.8])
    bowl = start(bridle.Halfspace(-u, -float(u @ [2.0, 5.0]), within=bridle.Ball(radius=3.0, center=[2.0, 5.0])))[1]
    np.testing.assert_allclose(bowl.x, [2.0, 5.0] + 3.0 / np.pi * u, atol=1e-11)
    for d in (1, 2, 3, 5):
        np.testing.assert_allclose(start(bridle.Ball(radius=3.0, center=np.arange(d)))[1].x, np.arange(d), atol=1e-14)


def test_an_interval_is_halved():
    policy, state = start(bridle.Box([0.0], [8.0]))
    for b, middle in ((4.0, 2.0), (6.0, 2.0), (3.0, 1.5)):
        state = cut(policy, state, [2.0], 2.0 * b)
        assert policy.decide(state) == pytest.approx(middle)
    state = cut(policy, state, [-1.0], -1.0)
    assert policy.decide(state) == pytest.approx(2.0)
    state = cut(policy, state, [-1.0], -3.0)  # one point is left
    assert policy.decide(state) == pytest.approx(3.0)


@pytest.mark.parametrize("seed", range(20))
def test_polygons_agree_with_the_integral(seed):
    """s(K) = (1/pi) times the integral of h_K(u) u over the circle, and the mean of the farthest corner over random directions."""
    rng = np.random.default_rng(seed)
    policy, state = polygon(rng, cuts=int(rng.integers(0, 12)))
    corners = state.shape.corners[: int(state.shape.used)]
    angle = np.linspace(0.0, 2.0 * np.pi, 100_000, endpoint=False)
    u = np.c_[np.cos(angle), np.sin(angle)]
    integral = 2.0 * ((u @ corners.T).max(axis=1, keepdims=True) * u).mean(axis=0)
    np.testing.assert_allclose(policy.decide(state), integral, atol=1e-6)
    draws = rng.normal(size=(40_000, 2))
    farthest = corners[np.argmax(draws @ corners.T, axis=1)]
    assert np.all(abs(farthest.mean(axis=0) - policy.decide(state)) <= 5.0 * farthest.std(axis=0) / 200.0 + 1e-12)


def test_the_test_of_the_integral_can_fail(monkeypatch):
    monkeypatch.setattr(Plane, "point", lambda self, shape: shape.corners[: int(shape.used)].mean(axis=0))
    with pytest.raises(AssertionError):
        test_polygons_agree_with_the_integral(1)


@pytest.mark.parametrize("seed", range(3))
def test_the_corners_are_those_of_all_cuts_so_far(seed):
    """Clipping one cut at a time against all pairs of lines at once."""
    rng = np.random.default_rng(seed)
    domain = bridle.Box([-1.0, -1.0], [1.0, 1.0])
    policy, state = start(domain)
    rows = [np.append(a, 1.0) for a in (*np.eye(2), *-np.eye(2))]
    for _ in range(15):
        a = rng.normal(size=2)
        rows.append(np.append(a, rng.exponential(0.5)))  # the origin stays
        state = cut(policy, state, a, rows[-1][-1])
    A, b = np.array(rows)[:, :2], np.array(rows)[:, 2]
    found = []
    for i in range(len(b)):
        for j in range(i):
            if abs(np.linalg.det(A[[i, j]])) > 1e-9:
                point = np.linalg.solve(A[[i, j]], b[[i, j]])
                if (A @ point <= b + 1e-9).all():
                    found.append(point)
    corners = state.shape.corners[: int(state.shape.used)]
    assert len({tuple(np.round(point, 6)) for point in found}) == len(corners)
    assert all(np.abs(corners - point).max(axis=1).min() < 1e-9 for point in found)


def test_the_sampled_point_is_exact_for_boxes_and_near_for_prisms():
    domain = bridle.Box([-1.0, 0.0, 0.0], [1.0, 2.0, 4.0])
    policy, state = start(domain)
    np.testing.assert_allclose(policy.decide(state), [0.0, 1.0, 2.0], atol=1e-12)
    state = cut(policy, cut(policy, state, [0.0, 0.0, 2.0], 4.0), [-3.0, 0.0, 0.0], 0.0)
    np.testing.assert_allclose(policy.decide(state), [0.5, 1.0, 1.0], atol=1e-9)
    # Steiner points add up over sums of sets: of a prism it is that of its base and the middle of its height.
    flat, base = start(bridle.Box([-1.0, 0.0], [1.0, 2.0]))
    policy, state = start(domain, samples=4_000, seed=3)
    for a, b in (([1.0, 2.0], 2.0), ([-2.0, 1.0], 1.5)):
        base = cut(flat, base, a, b)
        state = cut(policy, state, [*a, 0.0], b)
    np.testing.assert_allclose(policy.decide(state), [*flat.decide(base), 2.0], atol=0.03)


def test_the_sampled_point_is_exact_for_balls_until_a_cut_bites():
    """For half a ball it is near the exact one."""
    u = np.array([2.0, -1.0, 2.0]) / 3.0
    domain = bridle.Ball(radius=2.0, center=[1.0, 0.0, 3.0])
    policy, state = start(domain, samples=4_000, seed=3)
    state = cut(policy, cut(policy, state, u, float(u @ domain.middle) + 2.0), -u, 9.0)
    np.testing.assert_allclose(policy.decide(state), domain.middle, atol=1e-13)
    state = cut(policy, state, u, float(u @ domain.middle))
    # s = 3 E[h(v) v] for v on the sphere, where <v, u> is uniform: 3/2 times the integral of c over [0, 1], less c sqrt(1 - c^2), is 1/4.
    np.testing.assert_allclose(policy.decide(state), domain.middle - 0.25 * 2.0 * u, atol=0.03)


# --- the theorem


@pytest.mark.parametrize("kind", ["box", "ball"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("d", [1, 2])
def test_the_bound_holds(d, k, kind, record_property):
    worst = 0.0
    for T in (1, 2, 50, 400):
        for seed in range(10):
            at = adversarial_games.stage(kind, d, k, T, seed)
            policy = bridle.policy("steiner", at.domain, horizon=T, constraints=k)
            worst = max(worst, *adversarial_games.ratios(policy, at).values())
    record_property("largest ccv / bound", worst)
    assert worst <= 1.0


@pytest.mark.parametrize("d", [3, 5])
def test_the_sampled_point_stays_within_the_bound_of_the_exact_one(d):
    """No game was found where it does not. Nothing is proved for it: the policy gives no number."""
    for T, k in ((1, 1), (50, 3), (150, 1)):
        for seed in range(2):
            at = adversarial_games.stage("ball", d, k, T, seed)
            policy = bridle.policy("steiner", at.domain, horizon=T, constraints=k)
            assert policy.bound(at.constants, T).ccv is None
            assert adversarial_games.outcome(policy, at)["ccv"] <= distance(d, T) * at.G * at.domain.diameter()


def distance(d, T):
    """What the exact point travels at most, in diameters."""
    return min(d / 2.0, sqrt(d * log(2.0 * T) / 2.0))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "d"), [("box", 1), ("box", 2), ("ball", 1), ("ball", 2), ("ball", 3), ("ball", 5)])
def test_deep_cuts_travel_no_farther_than_the_bound(kind, d, record_property):
    """Every cut goes through the decision itself (or as near as the point that must stay allows), in the direction that is worst or any."""
    worst = 0.0
    for seed in range(40 if d < 3 else 12):
        rng = np.random.default_rng(seed)
        size = 10.0 ** rng.uniform(-2, 2)
        domain = bridle.Ball(radius=size, center=0.3 * size * rng.normal(size=d))
        if kind == "box":
            domain = bridle.Box(-size * rng.uniform(0.1, 1.0, d), size * rng.uniform(0.1, 1.0, d))
        stays, T = domain.project(domain.center() + size * rng.uniform(-1.0, 1.0, d)), int(rng.integers(1, 60))
        policy, state = start(domain, T)
        travelled = violated = 0.0
        for _ in range(T):
            x = policy.decide(state)
            away = x - stays
            a = away / (np.linalg.norm(away) or 1.0) if rng.random() < 0.5 else rng.normal(size=d) / np.sqrt(d)
            a = a if a @ away >= 0.0 else -a
            if not a.any():
                break
            a /= np.linalg.norm(a)
            b = float(a @ (stays if rng.random() < 0.5 else x - 1e-3 * float(a @ away) * a))
            violated += max(0.0, float(a @ x) - b)
            state = cut(policy, state, a, b)
            travelled += float(np.linalg.norm(policy.decide(state) - x))
        assert state.left_out == 0.0
        assert violated <= travelled + 1e-9 * size
        if d < 3:
            constants = {"feasible": stays, "lipschitz": 1.0, "diameter": domain.diameter(), "constraints": 1}
            assert policy.bound(constants, T).ccv == pytest.approx(distance(d, T) * domain.diameter())
        worst = max(worst, travelled / domain.diameter() / distance(d, T))
    record_property("largest distance travelled / bound", worst)
    assert 0.2 < worst <= 1.0 + 1e-12  # in one dimension it is attained


PLACES = {
    "segment": lambda: bridle.Ball(1),
    "box": lambda: bridle.Box([-1.0, 0.0], [0.5, 3.0]),
    "triangle": lambda: bridle.Polyhedron([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0]),
    "disc": lambda: bridle.Ball(radius=2.0, center=[3.0, -1.0]),
    "cap": lambda: bridle.Halfspace([1.0, 0.5], 0.2, within=bridle.Ball(2)),
    "wedge": lambda: bridle.Halfspace([-1.0, 0.5], 0.1, within=bridle.Halfspace([1.0, 0.5], 0.2, within=bridle.Ball(2))),
    "box3": lambda: bridle.Box(-1.0, 2.0, dim=3),
    "ball3": lambda: bridle.Ball(radius=2.0, center=[3.0, -1.0, 0.5]),
    "ball5": lambda: bridle.Ball(5, radius=0.1),
    "wedge4": lambda: bridle.Halfspace(-np.ones(4), 0.1, within=bridle.Halfspace([1.0, 0.5, 0.0, 0.0], 0.2, within=bridle.Ball(4))),
    "simplex5": lambda: bridle.Simplex(5, mass=2.0),
    "l1": lambda: bridle.L1Ball(4, radius=3.0),
    "cut": lambda: bridle.Halfspace([1.0, 1.0, 0.0], 0.5, within=bridle.Box(0.0, 1.0, dim=3)),
    "polyhedron": lambda: bridle.Polyhedron(np.vstack([np.eye(3), -np.eye(3), np.ones((1, 3))]), np.append(np.ones(6), 1.5)),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_decision_satisfies_all_that_was_seen(place):
    domain = PLACES[place]()
    problem = bridle.problem("halfspaces", horizon=60, domain=domain, constraints=2, slater=0.02)
    policy = bridle.policy_for("steiner", problem)
    trace = bridle.play(policy, problem, keep="decisions")
    assert domain.contains(trace.decisions)
    assert not trace.warnings
    assert trace.state.left_out == 0.0
    (block,) = trace.blocks()
    (rows,) = block.constraints
    for t in range(1, 60):
        over = rows.A[:t] @ trace.decisions[t] + rows.b[:t]
        assert (over if domain.dim <= 2 else over[-1]).max() <= 1e-8 * domain.diameter()  # the sampled point answers to the last round
    distance = np.linalg.norm(np.diff(trace.decisions, axis=0), axis=1).sum()
    assert np.maximum(trace.values[:-1], 0.0).sum(axis=0).max() <= distance + 1e-8


# --- what does not fit


def test_a_contradiction_is_left_out_and_said():
    policy, state = start(bridle.Box([0.0, 0.0], [1.0, 1.0]))
    state = cut(policy, state, [1.0, 0.0], 0.5)
    before = policy.decide(state)
    state = cut(policy, state, [-1.0, 0.0], -0.75)
    assert state.left_out == 1.0
    np.testing.assert_array_equal(policy.decide(state), before)
    flat = policy.update(state, Feedback(before, 0.0, np.zeros(2), np.array([1.0]), np.zeros((1, 2))))
    assert flat.left_out == 2.0
    assert "2 constraints were left out" in policy.record.alarm(flat).text
    assert policy.record.alarm(policy.init(before)) is None


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_a_cut_that_misses_the_ball_is_left_out(d):
    a = np.ones(d) / np.sqrt(d)
    policy, state = start(bridle.Ball(d))
    for b, kept in ((-1.0 - 1e-6, False), (-0.5, True), (-0.75, True)):
        before, state = state, cut(policy, state, a, b)
        assert (state.left_out == before.left_out) == kept
        assert kept or np.array_equal(state.x, before.x)
    state = cut(policy, state, -a, 0.75 - 1e-6)  # the other side of what is left
    assert state.left_out == 2.0
    state = cut(policy, state, -a, 0.75)  # what is left is where both hold
    assert state.left_out == 2.0
    assert float(a @ state.x) == pytest.approx(-0.75, abs=1e-9)


def test_a_full_memory_drops_what_rules_out_nothing(monkeypatch):
    monkeypatch.setattr(steiner, "ROWS", 4)
    policy, state = start(bridle.Box(-1.0, 1.0, dim=3))
    for b in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4):
        state = cut(policy, state, [1.0, 0.1, 0.0], b)
    assert state.left_out == 0.0
    assert policy.decide(state) @ [1.0, 0.1, 0.0] <= 0.4
    assert state.shape.rows.shape == (4, 4)
    for v in ([0.0, 1.0, 0.1], [0.0, -1.0, 0.1], [0.1, 0.0, 1.0], [0.1, 0.0, -1.0], [-1.0, 0.1, 0.1]):
        state = cut(policy, state, v, 0.6)
    assert state.left_out > 0.0
    late, state = start(bridle.Box(-1.0, 1.0, dim=2), horizon=1)
    for angle in np.linspace(0.1, 6.0, 12):
        state = cut(late, state, [np.cos(angle), np.sin(angle)], 0.95)
    assert state.left_out > 0.0


def test_a_full_memory_of_a_ball_drops_what_rules_out_nothing(monkeypatch):
    monkeypatch.setattr(steiner, "ROWS", 3)
    policy, state = start(bridle.Ball(3))
    for b in (0.9, 0.8, 0.7, 0.6, 0.5):
        state = cut(policy, state, [0.6, 0.8, 0.0], b)
    assert state.left_out == 0.0
    assert state.x @ [0.6, 0.8, 0.0] <= 0.5
    for v in ([0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]):
        state = cut(policy, state, v, 0.4)
    assert state.left_out == 1.0


@pytest.mark.parametrize("kind", ["box", "ball"])
def test_an_outline_has_room_for_its_horizon(kind):
    """Cuts that each take a piece out of an arc, or a corner off, where no other cut does: all of the room is used."""
    T = 152
    policy, state = start(bridle.Ball(2) if kind == "ball" else bridle.Box(-1.0, 1.0, dim=2), T)
    for t in np.random.default_rng(0).permutation(T):
        angle = 2.0 * np.pi * (t + 0.5) / T
        state = cut(policy, state, [np.cos(angle), np.sin(angle)], np.cos(0.3 * np.pi / T))
    assert state.left_out == 0.0
    assert state.shape.used == len(state.shape.corners) == 4 + (2 if kind == "ball" else 1) * T


def test_where_nothing_is_proved_there_is_no_number():
    box = bridle.Box(-1.0, 1.0, dim=3)
    problem = bridle.problem("halfspaces", horizon=20, domain=box)
    assert "mean over 40 directions" in bridle.policy_for("steiner", problem).bound(problem.constants, 20).why
    ball = bridle.problem("halfspaces", horizon=20, domain=bridle.Ball(3))
    assert "mean over 40 directions" in bridle.policy_for("steiner", ball).bound(ball.constants, 20).why
    disc = bridle.problem("halfspaces", horizon=20, domain=bridle.Ball(2), constraints=3)
    assert bridle.policy_for("steiner", disc).bound(disc.constants, 20).ccv == pytest.approx(2.0 * disc.constants["lipschitz"])
    assert "fewer constraints" in bridle.policy("steiner", disc.domain, horizon=20).bound(disc.constants, 20).why
    flat = bridle.problem("halfspaces", horizon=20, domain=bridle.Box(-1.0, 1.0, dim=2), constraints=3)
    assert bridle.policy_for("steiner", flat).bound(flat.constants, 20).ccv > 0.0
    narrow = bridle.policy("steiner", flat.domain, horizon=20)
    assert "fewer constraints" in narrow.bound(flat.constants, 20).why
    assert "satisfy" in narrow.bound({**flat.constants, "feasible": None}, 5).why
    assert "horizon" in narrow.bound(flat.constants, 21).why


def test_bad_input_is_one_clear_error():
    box = bridle.Box(-1.0, 1.0, dim=2)
    for domain in (bridle.Product(bridle.Ball(2), bridle.Ball(1)), bridle.Spectrahedron(2), bridle.L1Ball(9)):
        with pytest.raises(InputError, match="domain of policy steiner must be a ball, a box, a simplex"):
            bridle.policy("steiner", domain, horizon=5)
    for given, complaint in (
        ({"horizon": 0}, "horizon"),
        ({"horizon": 5, "samples": 1}, "samples"),
        ({"horizon": 5, "constraints": 1.5}, "constraints"),
    ):
        with pytest.raises(InputError, match=complaint):
            bridle.policy("steiner", box, **given)
    policy = bridle.policy("steiner", box, horizon=5)
    with pytest.raises(InputError, match="one run at a time"):
        bridle.play(policy, "halfspaces", seed=[1, 2])
    with pytest.raises(InputError, match="Steiner runs on engine 'python' only"):
        bridle.play(policy, "halfspaces", engine="jax")


def test_a_session_that_keeps_contradicting_warns_once():
    session = bridle.Session(bridle.policy("steiner", bridle.Box(-1.0, 1.0, dim=2), horizon=200))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(130):
            session.observe(0.0, [0.0, 0.0], 1.0, [0.0, 0.0])
    said = [str(w.message).split(":")[0] for w in caught]
    assert said == ["no action of the domain satisfies the constraint of round 1", "64 constraints were left out"]


@pytest.mark.compiles
def test_it_keeps_the_contract_on_discs_and_caps():
    places = {place: PLACES[place]() for place in ("disc", "cap", "wedge", "wedge4")}
    report = check_policy("steiner", places, [2], scale_free=True)
    assert {line.split(",")[0] for line in report if ": decisions, repetition, purity, state, session, resume" in line} == set(places)


def test_it_is_registered():
    assert "steiner" in policies.names()

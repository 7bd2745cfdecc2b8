"""One point a round: `bandit1` and `banditq` with bandit feedback against exact expectations, their proofs, and attack."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import bridle
from bridle.core import InputError, Round, Tried, Values
from bridle.functions import AffineFunction, AffineRows
from bridle.policies._bandit1 import OnePoint
from bridle.policies.sinha2023_arms import PulledArms
from helpers.inside import proved
from helpers.many_seeds import in_expectation, stage_of


def seen(x: np.ndarray, f: float, g: np.ndarray) -> Tried:
    return Tried((Values(x, f, np.atleast_1d(np.asarray(g, dtype=float))),))


def spread(tree, step, rounds: int) -> list:
    """Every path of a game, with its chance: `step(state, t)` gives the states that may follow, each with its chance."""
    paths = [(1.0, tree)]
    for t in range(rounds):
        paths = [(chance * share, after) for chance, state in paths for share, after in step(state, t)]
    return paths


# --- bandit1: on a line there are two directions, and every game can be played out -----------------------------------------------------

T_EXACT = 9
AT = 0.25
"""The action that is feasible in every round."""


def line(**more) -> OnePoint:
    told = {"horizon": T_EXACT, "lipschitz": 1.0, "bound": 1.6} | more
    return bridle.policy("bandit1", bridle.Box([-1.0], [1.0]), **told).record


def adversary(x: float, t: int) -> tuple[float, float, float]:
    """The slope of the cost, and slope and offset of the constraint, by what x is: pushing out, or forbidding it."""
    side = 1.0 if x > AT else -1.0
    return (-side if t % 3 else side), side, -side * AT


@pytest.mark.parametrize("settings", [{}, {"V": 2.0}, {"delta": 0.3}, {"delta": 0.9, "V": 0.3}])
def test_every_direction_played_out_keeps_the_proof(settings):
    """The expectation over all 2^T games, with nothing sampled: lines (2), (3) and (4) of the proof, and the bound. No cost is above 1."""
    record = line(**settings)

    def step(node, t):
        state, smooth, played, weighted, squares = node
        x = float(record.decide(state)[0])
        c, a, b = adversary(x, t)
        y = (1.0 - record.delta) * AT  # c = 0, r = 1
        w = record.lam * math.exp(record.lam * (state.Q + record.largest))
        out = []
        for u in (1.0, -1.0):
            now = state._replace(u=np.array([u]))
            z = float(record.points(now)[0, 0])
            assert z == pytest.approx(x + record.delta * u)
            over = max(a * z + b, 0.0)
            after = record.update(now, seen(np.array([z]), c * z, a * z + b))
            v = (record.V * c * z + w * over) / record.delta * u
            assert after.learner.seen - state.learner.seen == pytest.approx(v * v)
            node = (after, smooth + c * (x - y), played + c * (z - AT), weighted + w * over, squares + v * v)
            out.append((0.5, node))
        return out

    start = record.init(np.zeros(1))
    paths = spread((start, 0.0, 0.0, 0.0, 0.0), step, T_EXACT)
    assert len(paths) == 2**T_EXACT
    mean = lambda value: sum(chance * value(*node) for chance, node in paths)  # noqa: E731
    V, lam, F, delta, T, D, r = record.V, record.lam, record.largest, record.delta, T_EXACT, 2.0, 1.0
    K, B = math.sqrt(2.0) * D * F * math.sqrt(T) / delta, T * delta * (D / r + 0.5)
    assert lam == pytest.approx(0.5 / (K + B + F))
    regret, Q = mean(lambda s, smooth, *_: smooth), mean(lambda s, *_: s.Q)
    top = mean(lambda s, *_: lam * math.exp(lam * (s.Q + F)))
    on_costs = K / F
    assert mean(lambda s, *_: s.observed_cost) <= 1.0
    assert V * regret + mean(lambda s, a, b, weighted, d: weighted) <= V * on_costs + top * (K + B)
    assert V * regret + 0.5 * mean(lambda s, *_: math.exp(lam * s.Q)) <= 1.0 + V * on_costs
    charged = mean(lambda s, a, played, *_: played)
    assert charged <= regret + T * delta * (1.0 + D / r) + 1e-12
    policy = bridle.policy("bandit1", bridle.Box([-1.0], [1.0]), horizon=T, lipschitz=1.0, bound=1.6, **settings)
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": 1.3, "observed_cost": 1.0, "feasible": np.array([AT]), "convex": True}
    bound = policy.bound(facts, T)
    assert charged <= bound.regret
    assert bound.ccv >= Q


def test_the_estimate_of_one_point_is_the_slope_of_the_mean():
    """d = 2, by quadrature over the circle: n/delta E f(x + delta u) u is the gradient of the mean over the disk."""
    angles = 2.0 * np.pi * (np.arange(720) + 0.5) / 720
    u, delta, x = np.stack([np.cos(angles), np.sin(angles)], axis=1), 0.2, np.array([0.1, -0.3])
    f = lambda z: (z**2).sum(axis=-1) + 0.7 * z[..., 0]  # noqa: E731
    record = bridle.policy("bandit1", bridle.Ball(2), horizon=100, lipschitz=1.0, bound=1.0, delta=delta, V=1.0).record
    state = record.init(x)
    total = np.zeros(2)
    for each in u:
        z = record.points(state._replace(u=each))[0]
        after = record.update(state._replace(u=each), seen(z, float(f(z)), -1.0))
        length = math.sqrt(after.learner.seen)
        total += np.sign(f(z)) * length * each
    assert np.allclose(total / len(u), 2.0 * x + [0.7, 0.0], atol=1e-9)


def one_point_transcription(T: int, G: float, F: float, r: float, D: float, n: int, f, g, u: np.ndarray) -> list[np.ndarray]:
    """The update in plain arithmetic, on a ball around 0 of radius r = D/2."""
    delta = min(math.sqrt(math.sqrt(2) * D * n * F / (G * (1 + D / r))) * T**-0.25, r / 2)
    K, B = math.sqrt(2) * D * n * F * math.sqrt(T) / delta, T * delta * G * (D / r + 1 / (n + 1))
    lam = V = 1 / (2 * (K + B + F))
    x, Q, S, out = np.zeros(n), 0.0, 0.0, []
    for t in range(len(u)):
        z = x + delta * u[t]
        out.append(z)
        over = max(0.0, max(g(t, z)))
        v = n / delta * (V * f(t, z) + lam * math.exp(lam * (Q + F)) * over) * u[t]
        Q, S, share = Q + over, S + v @ v, 1 - delta / r
        y = x - share * D / math.sqrt(2 * S) * v if S > 0 else x
        x = y * min(1.0, share * r / np.linalg.norm(y)) if np.linalg.norm(y) > 0 else y
    return out


@pytest.mark.parametrize("T", [40, 400_000])
def test_the_one_point_update_is_the_one_in_the_docstring(T):
    d, rng = 3, np.random.default_rng(4)
    c, A, b = rng.standard_normal((40, d)), rng.standard_normal((40, 2, d)), 0.2 * rng.standard_normal((40, 2)) + 0.3
    policy = bridle.policy("bandit1", bridle.Ball(d, radius=1.5), horizon=T, lipschitz=4.0, bound=7.0, seed=9)
    session, played, directions = bridle.Session(policy), [], []
    for t in range(40):
        directions.append(session.state.u)
        played.append(session.decide())
        session.observe(f=c[t] @ played[-1] + 0.1, g=A[t] @ played[-1] + b[t])
    wanted = one_point_transcription(
        T, 4.0, 7.0, 1.5, 3.0, d, lambda t, z: c[t] @ z + 0.1, lambda t, z: A[t] @ z + b[t], np.array(directions)
    )
    assert np.abs(np.array(played) - np.array(wanted)).max() < 1e-11


def test_the_one_point_bound_at_fixed_numbers():
    policy = bridle.policy("bandit1", bridle.Ball(3), horizon=10_000, lipschitz=3.0, bound=5.0)
    facts = {"lipschitz": 3.0, "diameter": 2.0, "bound": 5.0, "observed_cost": 4.0, "feasible": np.zeros(3), "convex": True}
    delta = math.sqrt(math.sqrt(2.0) * 2.0 * 3.0 * 5.0 / (3.0 * 3.0)) / 10.0
    assert policy.record.delta == pytest.approx(delta)
    K, B, F, T = math.sqrt(2.0) * 2.0 * 3.0 * 5.0 * 100.0 / delta, 1e4 * delta * 3.0 * 2.25, 5.0, 1e4
    bound = policy.bound(facts, 10_000)
    assert bound.regret == pytest.approx(min(0.8 * K + 2.0 * (K + B + F) + T * delta * 9.0, 6.0 * T))
    assert bound.ccv == pytest.approx(min(2.0 * (K + B + F) * math.log(2.0 + (0.8 * K + 6.0 * T) / (K + B + F)), 5.0 * T))
    long = bridle.policy("bandit1", bridle.Ball(3), horizon=10**12, lipschitz=3.0, bound=0.5)
    delta = math.sqrt(math.sqrt(2.0) * 2.0 * 3.0 * 0.5 / 9.0) * 10**-3.0
    K, B, T = math.sqrt(2.0) * 2.0 * 3.0 * 0.5 * 10**6 / delta, 1e12 * delta * 3.0 * 2.25, 1e12
    for cost in (0.0, 0.25, 2.0):  # known from the game alone, below the largest constraint and above
        bound = long.bound({**facts, "bound": 0.5, "observed_cost": cost}, 10**12)
        assert bound.regret == pytest.approx(2.0 * cost * K + 2.0 * (K + B + 0.5) + T * delta * 9.0)
        assert bound.ccv == pytest.approx(2.0 * (K + B + 0.5) * math.log(2.0 + (2.0 * cost * K + 6.0 * T) / (K + B + 0.5)))
        assert bound.regret < 1.0 * T  # they say something
        assert bound.ccv < 0.5 * T
    several = long.bound({**facts, "bound": 0.5, "observed_cost": np.array([0.0, 2.0])}, 10**12)
    assert several.regret[1] - several.regret[0] == pytest.approx(4.0 * K)


def test_the_one_point_bound_is_void_where_it_must_be():
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": 1.0, "observed_cost": 0.0, "feasible": np.zeros(2), "convex": True}
    make = lambda **more: bridle.policy("bandit1", bridle.Ball(2), **{"horizon": 100, "lipschitz": 1.0, "bound": 1.0} | more)  # noqa: E731
    assert not make().bound(facts, 100).why
    assert "more than the policy was told" in make(bound=0.5).bound(facts, 100).why
    assert "the largest |g| is not known" in make().bound({k: v for k, v in facts.items() if k != "bound"}, 100).why
    assert "shows in a game only" in make().bound({k: v for k, v in facts.items() if k != "observed_cost"}, 100).why
    assert make().bound({**facts, "convex": False}, 100).why == "a cost or a constraint is not convex"
    assert "the Lipschitz constant is 9" in make().bound({**facts, "lipschitz": 9.0}, 100).why
    huge = make(V=1e50).bound(facts, 100)
    assert huge.ccv is None
    assert "V is so large" in huge.why
    one_of_two = make().bound({**facts, "observed_cost": np.array([0.0, 1e60])}, 100)  # the exponent may stop in one run of two
    assert one_of_two.ccv is None
    assert "V is so large" in one_of_two.why
    session = bridle.Session(make())
    session.observe(f=-70.0, g=[-3.0, 0.8])
    assert proved(session).alarms == []
    session.observe(f=0.9, g=[0.1, 1.5])
    assert (session.state.observed_cost, session.state.worst) == (70.0, 1.5)
    assert "a constraint's value of 1.5 was seen, and the policy was told 1" in proved(session).alarms[0].text
    with pytest.raises(InputError, match="delta must be below 1"):
        make(delta=1.5)


def test_the_one_point_bound_on_a_small_ball():
    """r = 0.2, where D/r, D r and D differ; G D below F and above it, so that each trivial bound is met."""
    facts = {"lipschitz": 2.0, "diameter": 0.4, "bound": 0.6, "observed_cost": 0.3, "feasible": np.zeros(2), "convex": True}
    policy = bridle.policy("bandit1", bridle.Ball(2, radius=0.2), horizon=10**14, lipschitz=2.0, bound=0.6)
    T, delta = 1e14, math.sqrt(math.sqrt(2.0) * 0.4 * 2.0 * 0.6 / (2.0 * 3.0)) * 10**-3.5
    K, B = math.sqrt(2.0) * 0.4 * 2.0 * 0.6 * 1e7 / delta, T * delta * 2.0 * (2.0 + 1.0 / 3.0)
    bound = policy.bound(facts, 10**14)
    assert bound.regret == pytest.approx(0.5 * K + 2.0 * (K + B + 0.6) + T * delta * 2.0 * 3.0)
    assert bound.ccv == pytest.approx(2.0 * (K + B + 0.6) * math.log(2.0 + (0.5 * K + 0.8 * T) / (K + B + 0.6)))
    few = bridle.policy("bandit1", bridle.Ball(2, radius=0.2), horizon=10, lipschitz=2.0, bound=3.0).bound({**facts, "bound": 3.0}, 10)
    assert (few.regret, few.ccv) == (pytest.approx(8.0), pytest.approx(8.0))  # G D a round
    few = bridle.policy("bandit1", bridle.Ball(2, radius=0.2), horizon=10, lipschitz=2.0, bound=0.3).bound({**facts, "bound": 0.3}, 10)
    assert (few.regret, few.ccv) == (pytest.approx(8.0), pytest.approx(3.0))  # G D and F a round


def test_the_one_point_bound_ends_where_the_proof_does():
    """The largest Lipschitz constant for which lam e^{lam F} (K + B) <= 1/2."""
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": 1.0, "observed_cost": 0.0, "feasible": np.zeros(2), "convex": True}
    policy = bridle.policy("bandit1", bridle.Ball(2), horizon=4, lipschitz=1.0, bound=1.0)
    lam, delta = policy.record.lam, policy.record.delta
    K, per = math.sqrt(2.0) * 2.0 * 2.0 * 2.0 / delta, 4.0 * delta * (2.0 + 1.0 / 3.0)
    most = (0.5 / (lam * math.exp(lam)) - K) / per
    assert most > 1.0
    assert not policy.bound({**facts, "lipschitz": most * (1.0 - 1e-9)}, 4).why
    assert "more than the policy was told" in policy.bound({**facts, "lipschitz": most * (1.0 + 1e-9)}, 4).why
    assert not policy.bound({**facts, "bound": 1.0 + 0.5e-9}, 4).why
    assert policy.bound({**facts, "bound": 1.0 + 2e-9}, 4).why


def test_a_value_that_is_too_large_is_remembered():
    make = lambda bound: bridle.policy("bandit1", bridle.Ball(2), horizon=9, lipschitz=1.0, bound=bound).record  # noqa: E731
    record = make(2.0)
    state = record.init(np.zeros(2))
    for f, g, largest in ((0.5, -9.0, (0.5, 0.0)), (-4.5, 0.1, (4.5, 0.1)), (0.2, 1.8, (4.5, 1.8)), (0.0, 0.0, (4.5, 1.8))):
        state = record.update(state, seen(np.zeros(2), f, g))
        assert (state.observed_cost, state.worst) == largest
        assert record.alarm(state) is None
    for size, broken in ((2.0, False), (2.0 * (1.0 + 0.5e-9), False), (2.0 * (1.0 + 2e-9), True), (1.999, False)):
        assert (record.alarm(state._replace(worst=size)) is not None) == broken
    assert record.alarm(state._replace(worst=3.0)).voids_bound
    swept = make([2.0, 3.0])
    assert swept.alarm(state._replace(worst=np.array([[2.5], [1.0]]))) is not None


@pytest.mark.parametrize("name", ["bandit1", "bandit2"])
def test_the_exponent_stops(name):
    """However large the violation so far, weights stay finite: at lam e^100."""
    told = {"bound": 1.0} if name == "bandit1" else {}
    record = bridle.policy(name, bridle.Ball(1), horizon=100, lipschitz=1.0, **told).record
    sums = []
    for Q in (1e9, 1e12):
        state = record.init(np.zeros(1))._replace(Q=Q)
        points = record.points(state)
        after = record.update(state, Tried(tuple(Values(z, 0.0, np.array([0.5 + z[0]])) for z in points)))
        sums.append(after.learner.seen)
    assert sums[0] == sums[1]
    assert 0.0 < sums[0] < 1e100
    over = [0.5 + z[0] for z in points]
    slope = over[0] / record.delta if name == "bandit1" else (over[0] ** 2 - over[1] ** 2) / (2.0 * record.delta)
    assert sums[0] == pytest.approx((record.lam * math.exp(100.0) * slope) ** 2)


@pytest.mark.parametrize(("kind", "d", "scale"), [("ball", 1, 1.0), ("simplex", 4, 1e6), ("box", 6, 1e-6)])
def test_the_one_point_bound_holds_in_expectation(kind, d, scale):
    for name, (mean, error, limit) in in_expectation("bandit1", stage_of(kind, d, 2, 300, scale), range(48)).items():
        assert mean + 5.0 * error < limit, name


def test_a_session_of_one_point_decides_what_is_played():
    session = bridle.Session(bridle.policy("bandit1", bridle.Ball(2), horizon=100, lipschitz=1.0, bound=1.0))
    x = session.decide()
    assert (x == session.decide()).all()
    ticket = session.ask(points=1)
    assert (ticket.x == x).all()
    session.observe(0.4, g=[0.2, -0.1], ticket=ticket)
    assert (session.rounds, session.cost, session.ccv) == (1, 0.4, 0.2)
    assert (session.decide() != x).any()
    assert (session.step(lambda z: z @ z, [lambda z: z[0]]) != session.decide()).any()
    with pytest.raises(InputError, match="g must hold a number or one number for each constraint"):
        bridle.Session(session.policy, names=["a", "b"]).observe(0.4, g=[[0.2], [0.3]])
    with pytest.raises(InputError, match="points must be 1 for policy bandit1, which tries 1 point a round, not 2"):
        session.ask(points=2)


# --- banditq with bandit feedback ---------------------------------------------------------------------------------------------------------

RATES = np.array([0.15, 0.25])
FAIR = np.array([0.45, 0.55])
"""Rewards are at least RATES / FAIR, so that FAIR keeps every rate in every round."""


def rewards_for(x: np.ndarray, t: int) -> np.ndarray:
    """Rewards that adapt: the arm that is pulled more pays little, now and then."""
    least, most = RATES / FAIR, np.ones_like(x)
    return np.where((x < x.mean()) == (t % 4 > 0), most, least)


def test_every_arm_played_out_keeps_the_proof():
    """The expectation over all 2^T sequences of arms: the estimates' means, the drift, and the bound."""
    T = 9
    policy = bridle.policy("banditq", bridle.Simplex(2), horizon=T, feedback="bandit")
    record = policy.record
    assert isinstance(record, PulledArms)

    def step(node, t):
        state, regret, total, soft, drift = node
        p, Q = record.weights(state), state.Q
        r = rewards_for(p, t)
        top = 1.0 * (record.V + Q.max())
        loss, found = top - (record.V + Q) * r, np.zeros(2)
        eta = math.sqrt(math.log(2.0) / (2.0 * state.squares))
        weights = np.exp(-eta * state.losses)
        assert np.allclose(p, weights / weights.sum())
        out = []
        for i in range(2):
            arm = np.eye(2)[i]
            now = state._replace(arm=arm)
            assert (record.points(now)[0] == arm).all()
            g = RATES - r * arm
            after = record.update(now, seen(arm, -float(r @ arm), g))
            found += p[i] * (after.losses - state.losses)
            assert np.allclose(after.Q, np.maximum(Q + g, 0.0))
            assert after.squares - state.squares == pytest.approx((record.V + after.Q.max()) ** 2)
            node = (after, regret + r @ FAIR - r[i], total + after.losses[i], soft + g, drift + 1.0 + Q @ (r * (FAIR - p)))
            out.append((float(p[i]), node))
        assert np.allclose(found, loss)
        assert (loss >= 0.0).all()
        return out

    paths = spread((record.init(np.full(2, 0.5)), 0.0, 0.0, np.zeros(2), 0.0), step, T)
    mean = lambda value: sum(chance * value(*node) for chance, node in paths)  # noqa: E731
    assert sum(chance for chance, _ in paths) == pytest.approx(1.0)
    energy, regret = mean(lambda s, *_: 0.5 * float(s.Q @ s.Q)), mean(lambda s, regret, *_: regret)
    assert energy <= mean(lambda s, a, b, c, drift: drift) + 1e-12
    spent = mean(lambda s, *_: math.sqrt(2.0 * math.log(2.0) * (s.squares - (record.V + s.Q.max()) ** 2)))
    assert energy + record.V * regret <= T + 2.0 * spent + 1e-9
    facts = {"lipschitz": 2.0, "diameter": math.sqrt(2.0), "feasible": FAIR, "rewards": 1.0, "convex": True, "constraints": 2}
    bound = policy.bound(facts, T)
    assert regret <= bound.regret
    assert mean(lambda s, a, b, soft, d: float(soft.max())) <= bound.soft


def test_the_arms_bound_at_fixed_numbers():
    N, mass, rewards, T = 4, 1.3, 0.8, 10**8
    facts = {"lipschitz": 2.0, "diameter": mass * math.sqrt(2), "feasible": np.full(N, mass / N), "rewards": rewards, "constraints": N}
    policy = bridle.policy("banditq", bridle.Simplex(N, mass=mass), horizon=T, bound=1.1, V=2e4, feedback="bandit")
    F, V = 1.1, 2e4
    b = 2.0 * F * math.sqrt(4.0 * math.log(4.0) * T)
    Z = b + math.sqrt(b * b + 2.0 * (F * F * T + V * F * T + V * b))
    bound = policy.bound(facts, T)
    assert bound.soft == pytest.approx(Z)
    assert bound.regret == pytest.approx(F * F * T / V + b * (1.0 + Z / V))
    assert bound.regret < F * T
    few = policy.bound(facts, 2)
    assert (few.regret, few.soft) == (2.0 * F, 2.0 * F)
    told_less = bridle.policy("banditq", bridle.Simplex(N, mass=mass), horizon=T, bound=1.0, feedback="bandit")
    assert pytest.approx(1e4) == told_less.record.V
    assert "more than the policy was told" in told_less.bound(facts, T).why
    assert "not known to have costs" in policy.bound({**facts, "rewards": None}, T).why
    assert policy.bound({**facts, "convex": False}, T).why == "a cost or a constraint is not convex"
    with pytest.raises(InputError, match="unknown feedback 'half'"):
        bridle.policy("banditq", bridle.Simplex(2), horizon=10, feedback="half")


def test_a_pull_at_fixed_numbers():
    """Mass 2.5, F = 2, V = 7, queues up to 4: C = (2/2.5) (7 + 4) = 8.8, and the second arm, of reward 0.6, loses 8.8 - 11 * 0.6 = 2.2."""
    record = bridle.policy("banditq", bridle.Simplex(3, mass=2.5), horizon=100, bound=2.0, V=7.0, feedback="bandit").record
    start = record.init(np.full(3, 2.5 / 3.0))
    assert start.squares == pytest.approx(5.6**2)  # of C_1 = 0.8 V
    state = start._replace(Q=np.array([1.0, 4.0, 2.0]), losses=np.array([10.0, 30.0, 1.0]), squares=900.0, arm=np.array([0.0, 1.0, 0.0]))
    assert record.points(state).tolist() == [[0.0, 2.5, 0.0]]
    eta = math.sqrt(math.log(3.0) / (3.0 * 900.0))
    raw = [math.exp(-eta * loss) for loss in (10.0, 30.0, 1.0)]
    after = record.update(state, seen(np.array([0.0, 2.5, 0.0]), -1.5, np.array([0.2, -1.2, -9.0])))
    np.testing.assert_allclose(after.losses, [10.0, 30.0 + 2.2 * sum(raw) / raw[1], 1.0], rtol=1e-12)
    np.testing.assert_allclose(after.Q, [1.2, 2.8, 0.0], atol=1e-12)
    assert after.squares == pytest.approx(900.0 + (0.8 * (7.0 + 2.8)) ** 2)
    far = record.weights(state._replace(losses=1e7 + state.losses))  # what all have lost does not matter
    np.testing.assert_allclose(far, np.array(raw) / sum(raw), rtol=1e-6)
    short = record._replace(below=np.zeros((3, 3)))  # as if rounding had left the sum of all chances short of the number that was drawn
    assert short._drawn(state).arm.tolist() == [0.0, 0.0, 1.0]


def test_a_round_of_which_nothing_is_told_uses_up_its_direction():
    record = bridle.policy("bandit1", bridle.Ball(2), horizon=9, lipschitz=1.0, bound=1.0).record
    state = record.init(np.zeros(2))
    passed = record.passed_over(state)
    told = record.update(state, seen(np.zeros(2), 0.3, 0.1))
    assert (passed.u == told.u).all()
    assert (passed.u != state.u).any()
    assert (passed.stream.a2 == told.stream.a2).all()
    assert passed._replace(u=state.u, stream=state.stream) == state


def test_arms_are_pulled_as_often_as_they_weigh():
    record = bridle.policy("banditq", bridle.Simplex(3, mass=2.0), horizon=100, bound=2.0, feedback="bandit", seed=range(20_000)).record
    state = record.init(np.full((20_000, 3), 2.0 / 3.0))
    state = record._drawn(state._replace(losses=np.broadcast_to(np.array([0.0, 40.0, 90.0]), state.losses.shape)))
    assert (state.arm.sum(axis=1) == 1.0).all()
    p = record.weights(state)[0]
    assert p.min() > 0.02
    assert np.abs(state.arm.mean(axis=0) - p).max() < 5.0 * math.sqrt(0.25 / 20_000)
    assert np.allclose(record.decide(state)[0], 2.0 * p)
    again = record.passed_over(state)
    assert (again.losses == state.losses).all()
    assert 0.2 < (again.arm != state.arm).any(axis=1).mean() < 0.9


def test_the_arms_bound_holds_in_expectation_under_attack():
    N, T, B = 3, 400, 64
    rates, fair = np.array([0.1, 0.15, 0.2]), np.array([0.3, 0.3, 0.4])
    record = bridle.policy("banditq", bridle.Simplex(N), horizon=T, feedback="bandit", seed=range(B)).record
    state = record.init(np.full((B, N), 1.0 / N))
    rng, regret, soft = np.random.default_rng(0), np.zeros(B), np.zeros((B, N))
    for t in range(T):
        x = record.decide(state)
        most, least = np.ones((B, N)), np.broadcast_to(rates / fair, (B, N))
        kind = t // 40 % 3
        r = np.where(x < fair, most, least) if kind == 0 else np.where(x == x.max(axis=1, keepdims=True), least, most)
        r = r if kind < 2 else np.maximum(rng.random((B, N)), least)
        chosen = Round(AffineFunction(-r, np.zeros((B, 1))), (AffineRows(-r[:, :, None] * np.eye(N), np.broadcast_to(rates, (B, N))),))
        tried = chosen.tried_at(record.points(state))
        regret, soft = regret + r @ fair + tried.f[:, 0], soft + tried.g
        state = record.update(state, tried)
    facts = {"lipschitz": 2.0, "diameter": math.sqrt(2.0), "feasible": fair, "rewards": 1.0, "convex": True, "constraints": N}
    bound = bridle.policy("banditq", bridle.Simplex(N), horizon=T, feedback="bandit").bound(facts, T)
    for values, limit in ((regret, bound.regret), (soft.max(axis=1), bound.soft)):
        assert values.mean() + 5.0 * values.std(ddof=1) / math.sqrt(B) < limit


def test_pulling_an_arm_is_a_session_of_one_point():
    policy = bridle.policy("banditq", bridle.Simplex(3), horizon=100, feedback="bandit")
    assert policy.entry.feedback == "value at the arm pulled"
    assert bridle.policy("banditq", bridle.Simplex(3), horizon=100).entry.feedback == "value and gradient"
    session = bridle.Session(policy)
    for _ in range(5):
        arm = session.decide()
        assert sorted(arm) == [0.0, 0.0, 1.0]
        session.observe(f=-0.5, g=0.2 - 0.5 * arm)
    with pytest.raises(InputError, match="g must hold 3 constraint values a point, not 2"):
        session.observe(f=-0.5, g=[0.1, 0.1])
    for seeds in itertools.combinations(range(3), 1):
        problem = bridle.problem("halfspaces", horizon=20, domain=bridle.Simplex(3), constraints=3, seed=seeds[0])
        assert bridle.policy_for("banditq", problem, feedback="bandit").parameters["seed"] == seeds[0]
        assert "seed" not in bridle.policy_for("banditq", problem).parameters

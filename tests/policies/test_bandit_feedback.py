"""Values alone: the two-point policy against exact expectations, its proof line by line, and its bound under adaptive attack."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import bridle
from bridle.core import InputError, Round, Tried, Values
from bridle.functions import AffineFunction, AffineRows
from bridle.game.totals import Totals, accumulate, empty
from bridle.policies import _bandit2 as two
from helpers.many_seeds import in_expectation, stage_of

TRYING = ("bandit2", "bandit1")
"""The policies that see values alone, at the points that they try."""

# --- the estimate and the proof, against exact expectations -----------------------------------------------------------------------------


def circle(count: int = 720) -> np.ndarray:
    angles = 2.0 * np.pi * (np.arange(count) + 0.5) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def disk(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Points of the unit disk, and the weights of their mean."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    radius, weight = 0.5 * (nodes + 1.0), 0.5 * weights
    points = (radius[:, None, None] * circle(360)[None]).reshape(-1, 2)
    share = np.repeat(weight * radius, 360)
    return points, share / share.sum()


def pieces(rng: np.random.Generator, d: int, count: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of length at most 1 and offsets of the largest of some affine functions: a kinked convex function."""
    a = rng.standard_normal((count, d))
    return a / np.maximum(1.0, np.linalg.norm(a, axis=1, keepdims=True)), 0.3 * rng.standard_normal(count)


def record_of(d: int, T: int = 100, **more) -> two.TwoPoint:
    return bridle.policy("bandit2", bridle.Ball(d), horizon=T, lipschitz=1.0, **more).record


def estimate(record: two.TwoPoint, state: two.TwoPointState, u: np.ndarray, f, g) -> tuple[np.ndarray, float]:
    """The gradient that the learner is given for a direction, read off the sum of squares and the step; and q."""
    state = state._replace(u=u)
    points = record.points(state)
    after = record.update(state, Tried(tuple(Values(z, float(f(z)), np.atleast_1d(g(z))) for z in points)))
    S = after.learner.seen - state.learner.seen
    return S, after.Q - state.Q


def test_the_estimate_is_a_central_difference_on_a_line():
    """d = 1: both directions give the same two points, and the same estimate: the slope of the mean over the interval."""
    record = record_of(1, V=0.7)
    for x, Q in itertools.product((-0.4, 0.2, 0.55), (0.0, 1.3)):
        state = record.init(np.array([x]))._replace(Q=Q)
        f, g = (lambda z: z[0] ** 2), (lambda z: abs(z[0]) - 0.1)
        p = record.lam * math.exp(record.lam * (Q + record.largest))
        low, high = x - record.delta, x + record.delta
        psi = lambda z, p=p: 0.7 * z * z + p * max(abs(z) - 0.1, 0.0) ** 2  # noqa: E731
        slope = (psi(high) - psi(low)) / (2.0 * record.delta)
        for u in (1.0, -1.0):
            S, q = estimate(record, state, np.array([u]), f, g)
            assert pytest.approx(slope * slope, rel=1e-9) == S
            assert q == pytest.approx(0.5 * (max(abs(high) - 0.1, 0.0) ** 2 + max(abs(low) - 0.1, 0.0) ** 2))


def test_the_estimate_is_unbiased_and_as_long_as_proved():
    """d = 2, by quadrature: E v is the gradient of the mean over the disk, and (1), (3), (4) of the proof hold."""
    rng, delta, G, around = np.random.default_rng(1), 0.05, 1.0, circle()
    inside, share = disk()
    w, n = two.dimension_factor(2.0), 2.0
    for _ in range(12):
        a, b = pieces(rng, 2)
        x = 0.5 * rng.standard_normal(2)
        g = lambda z, a=a, b=b: (z @ a.T + b).max(axis=-1)  # noqa: E731
        h = lambda z, g=g: np.maximum(g(z), 0.0) ** 2  # noqa: E731
        for function, slope in ((g, lambda z, a=a, b=b: a[(z @ a.T + b).argmax(axis=-1)]), (h, None)):
            difference = function(x + delta * around) - function(x - delta * around)
            v = n / (2.0 * delta) * difference[:, None] * around
            if slope is None:
                z = x + delta * inside
                gradient = 2.0 * np.maximum(g(z), 0.0)[:, None] * a[(z @ a.T + b).argmax(axis=-1)]
            else:
                gradient = slope(x + delta * inside)
            assert np.abs(v.mean(axis=0) - share @ gradient).max() < 0.02
        q = 0.5 * (h(x + delta * around) + h(x - delta * around))
        vf = n / (2.0 * delta) * (g(x + delta * around) - g(x - delta * around))
        vh = n / (2.0 * delta) * (h(x + delta * around) - h(x - delta * around))
        assert (vf**2).mean() <= w * G * G + 1e-9
        assert (vh**2).mean() <= 4.0 * w * G * G * q.mean() + 1e-9
        m, z = math.sqrt(share @ h(x + delta * inside)), delta * G * math.sqrt(2.0 / ((n + 1.0) * (n + 2.0)))
        assert math.sqrt(q.mean()) <= m + z + 1e-6
        assert g(x + delta * around).mean() <= share @ g(x + delta * inside) + delta * G / (n + 1.0) + 1e-6
        e = max(float(g(x + np.array(y)).max()) for y in np.eye(2))
        assert 2 * m * m - 2 * e * m >= two.KEPT * q.mean() - ((e + two.KEPT * z) ** 2 / (2 - two.KEPT) + two.KEPT * z * z) - 1e-9


def test_in_many_dimensions_the_estimate_is_as_long_as_sqrt_n():
    """The second moment of a two-point estimate is at most n^2 / (n - 1), of a linear function exactly n: far below n^2."""
    rng = np.random.default_rng(2)
    for n in (2, 5, 20):
        u = rng.standard_normal((40000, n))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        for a, b in (pieces(rng, n), (np.eye(n)[:1], np.zeros(1))):
            g = lambda z, a=a, b=b: (z @ a.T + b).max(axis=-1)  # noqa: E731
            squares = (n / 2.0 * (g(u) - g(-u))) ** 2  # delta = 1 at x = 0
            assert squares.mean() <= two.dimension_factor(n) + 5.0 * squares.std() / 200.0
        assert squares.mean() == pytest.approx(n, abs=5.0 * squares.std() / 200.0)
    assert [two.dimension_factor(n) for n in (1.0, 2.0, 3.0, 11.0)] == [1.0, 4.0, 4.5, 12.1]


def transcription(points: np.ndarray, T: int, G: float, r: float, D: float, f, g, u: np.ndarray, n: int) -> list[np.ndarray]:
    """The update in plain arithmetic on a ball around 0 of radius r = D/2."""
    delta, V = r * D / (4 * (D + r) * math.sqrt(T)), 1 / (G * D * math.sqrt(T))
    w = n * n / max(1, n - 1)
    lam = 1 / (12 * w * G * G * D * D)
    x, Q, S, out = points, 0.0, 0.0, []
    for t in range(len(u)):
        out.append(x)
        up, down = x + delta * u[t], x - delta * u[t]
        hu, hd = max(0.0, max(g(t, up))) ** 2, max(0.0, max(g(t, down))) ** 2
        p = lam * math.exp(lam * (Q + G * G * D * D))
        v = n / (2 * delta) * ((V * f(t, up) + p * hu) - (V * f(t, down) + p * hd)) * u[t]
        Q, S = Q + (hu + hd) / 2, S + v @ v
        share = 1 - delta / r
        y = x - share * D / math.sqrt(2 * S) * v if S > 0 else x
        x = y * min(1.0, share * r / np.linalg.norm(y)) if np.linalg.norm(y) > 0 else y
    return out


def test_the_update_is_the_one_in_the_docstring():
    T, d, rng = 60, 3, np.random.default_rng(4)
    c, A, b = rng.standard_normal((T, d)), rng.standard_normal((T, 2, d)), 0.2 * rng.standard_normal((T, 2)) + 0.3
    record = bridle.policy("bandit2", bridle.Ball(d, radius=1.5), horizon=T, lipschitz=4.0, seed=9).record
    state, decisions, directions = record.init(np.zeros(d)), [], []
    for t in range(T):
        decisions.append(record.decide(state))
        directions.append(state.u)
        assert np.allclose(record.points(state), [decisions[-1] + record.delta * state.u, decisions[-1] - record.delta * state.u])
        state = record.update(state, Round(AffineFunction(c[t], 0.1), (AffineRows(A[t], b[t]),)).tried_at(record.points(state)))
    wanted = transcription(
        np.zeros(d), T, 4.0, 1.5, 3.0, lambda t, z: c[t] @ z + 0.1, lambda t, z: A[t] @ z + b[t], np.array(directions), d
    )
    assert np.abs(np.array(decisions) - np.array(wanted)).max() < 1e-11
    assert np.abs(np.diff(directions, axis=0)).max(axis=1).min() > 0.0


# --- the bound ------------------------------------------------------------------------------------------------------------------------


def test_the_bound_at_fixed_numbers():
    """Evaluated by hand: D = 2, G = 3, T = 400, three dimensions, the unit ball."""
    policy = bridle.policy("bandit2", bridle.Ball(3), horizon=400, lipschitz=3.0)
    constants = {"lipschitz": 3.0, "diameter": 2.0, "feasible": np.zeros(3), "convex": True}
    bound = policy.bound(constants, 400)
    w, G, D, T = 4.5, 3.0, 2.0, 400.0
    assert policy.record.delta == pytest.approx(1.0 * D / (4.0 * 3.0 * 20.0))
    steps = 2.0 * G * D * math.sqrt(w * T)
    assert bound.regret == pytest.approx(steps + 0.875 * G * D * 20.0 + G * D * 20.0 / 4.0)
    squared = 12.0 * w * 36.0 * math.log(2.0 + 4.0 / (1.75 * G * D * 20.0) * (steps + G * D * T))
    assert bound.squared == pytest.approx(squared)
    assert bound.ccv == pytest.approx(math.sqrt(T * squared))
    few = policy.bound(constants, 4)
    assert (few.regret, few.squared, few.ccv) == (24.0, 144.0, 24.0)  # G D a round
    again = bridle.policy("bandit2", bridle.Ball(3), horizon=400, lipschitz=3.0, V=0.005, delta=0.001).bound(constants, 400)
    assert again.regret == pytest.approx(steps + 0.875 / 0.005 + 400 * 0.001 * 3.0 * 3.0)
    assert again.squared == pytest.approx(12.0 * w * 36.0 * math.log(2.0 + 0.02 / 1.75 * (steps + G * D * T)))
    cube, facts = bridle.Box(0.0, 1.0, dim=3), {**constants, "diameter": math.sqrt(3.0), "feasible": np.full(3, 0.5)}  # r = 1/2
    inside = bridle.policy("bandit2", cube, horizon=400, lipschitz=3.0, V=0.005, delta=0.001).bound(facts, 400)
    assert inside.regret == pytest.approx(2.0 * 3.0 * math.sqrt(3.0 * 4.5 * 400.0) + 0.875 / 0.005 + 1.2 * (1.0 + 2.0 * math.sqrt(3.0)))


def test_where_there_is_no_bound_it_says_why():
    constants = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2), "convex": True}
    make = lambda **more: bridle.policy("bandit2", bridle.Ball(2), **{"horizon": 100, "lipschitz": 1.0} | more)  # noqa: E731
    assert "more than the policy was told" in make(lipschitz=0.5).bound(constants, 100).why
    assert "too large for 100 rounds" in make(delta=0.4).bound(constants, 100).why
    assert not make(delta=0.4 / 100).bound(constants, 100).why
    assert "not convex" in make().bound({**constants, "convex": False}, 100).why
    assert "past the policy's horizon" in make().bound(constants, 101).why
    huge = make(V=1e45).bound(constants, 100)
    assert huge.ccv is None
    assert huge.regret == pytest.approx(2.0 * 2.0 * math.sqrt(4.0 * 100.0) + 100.0 / 60.0 * 3.0)
    assert make(V=1e45).bound(constants, 1).regret == 2.0  # G D
    assert "V is so large" in huge.why
    for delta in (1.0, [0.1, 1.5]):
        with pytest.raises(InputError, match="delta must be below 1, the radius"):
            make(delta=delta)


@pytest.mark.parametrize(("n", "r"), [(1, 0.5), (2, 0.3), (5, 2.0)])
def test_the_bound_ends_where_the_proof_does(n, r):
    """The largest delta for which (8 w G^2 D^2 / k + C T) lam e^{lam G^2 D^2} <= k/4, solved for by hand."""
    G, T, k, D = 0.1, 50, 1.75, 2.0 * r
    w, lam = n * n / max(1, n - 1), 1.0 / (12.0 * n * n / max(1, n - 1) * (G * D) ** 2)
    room = k / 4.0 / (lam * math.exp(1.0 / (12.0 * w))) - 8.0 * w * (G * D) ** 2 / k
    z = math.sqrt(2.0 / ((n + 1) * (n + 2)))
    C = 4.0 * (D / r + k * z) ** 2 + k * z * z  # of delta = 1 and G = 1
    delta = math.sqrt(room / (C * T)) / G
    facts = {"lipschitz": G, "diameter": D, "feasible": np.zeros(n), "convex": True}
    make = lambda delta: bridle.policy("bandit2", bridle.Ball(n, radius=r), horizon=T, lipschitz=G, delta=delta)  # noqa: E731
    assert not make(delta * (1.0 - 1e-6)).bound(facts, T).why
    assert "too large for 50 rounds" in make(delta * (1.0 + 1e-6)).bound(facts, T).why
    assert not make(delta * (1.0 - 1e-6)).bound({**facts, "lipschitz": 0.9 * G}, T).why
    assert "more than the policy was told" in make(0.5 * delta).bound({**facts, "lipschitz": 1.001 * G}, T).why


def test_the_constants_of_the_proof_leave_room():
    """(5): for every dimension and shape, the factor of E e^{lam Q} is at most k/4 with the policy's own delta and lam."""
    for n, r, T in itertools.product((1, 2, 3, 30), (0.01, 0.2, 0.5), (1, 10, 10**6)):
        D, G, k = 1.0, 1.0, two.KEPT
        w, delta = two.dimension_factor(n), r * D / (4 * (D + r) * math.sqrt(T))
        e, z = delta * G * D / r, delta * G * math.sqrt(2 / ((n + 1) * (n + 2)))
        C, lam = (e + k * z) ** 2 / (2 - k) + k * z * z, 1 / (12 * w)
        assert (8 * w / k + C * T) * lam * math.exp(lam) <= k / 4


@pytest.mark.parametrize(("kind", "d", "scale"), [("ball", 1, 1.0), ("box", 3, 1e6), ("ball", 8, 1e-6)])
def test_the_bound_holds_in_expectation_under_attack(kind, d, scale):
    at = stage_of(kind, d, 2, 300, scale)
    for name, (mean, error, limit) in in_expectation("bandit2", at, range(48)).items():
        assert mean + 5.0 * error < limit, name


# --- games and sessions ---------------------------------------------------------------------------------------------------------------


def test_a_game_charges_the_average_of_both_points():
    problem = bridle.problem("halfspaces", horizon=40, dim=2, constraints=3)
    policy = bridle.policy_for("bandit2", problem)
    trace = bridle.play(policy, problem, keep="decisions")
    record, rounds, state = policy.record, [each for block in trace.blocks() for each in bridle.records.unstack(block, 40)], None
    state, cost, hard, worst, squared, soft = record.init(problem.domain.center()), 0.0, 0.0, 0.0, 0.0, 0.0
    for t, one in enumerate(rounds):
        points = record.points(state)
        f = [one.cost.value(z) for z in points]
        g = np.array([one.reveal(z).g for z in points])
        assert np.allclose(trace.values[t], g)
        assert trace.costs[t] == pytest.approx(np.mean(f))
        assert np.allclose(trace.decisions[t], points.mean(axis=0))
        over = np.maximum(g, 0.0)
        cost, hard, worst = cost + np.mean(f), hard + over.mean(axis=0), worst + over.max(axis=1).mean()
        squared, soft = squared + (over**2).mean(axis=0), soft + g.mean(axis=0)
        state = record.update(state, one.tried_at(points))
    totals = trace.totals
    for found, wanted in ((totals.cost, cost), (totals.hard, hard), (totals.worst, worst), (totals.squared, squared), (totals.soft, soft)):
        assert np.allclose(found, wanted)


@pytest.mark.parametrize("runs", [None, 4])
def test_a_round_with_two_points_is_charged_alike_alone_and_in_a_block(runs):
    rng, shape = np.random.default_rng(3), () if runs is None else (runs,)
    f, g = rng.standard_normal((30, *shape)), rng.standard_normal((30, *shape, 2, 3))
    block = accumulate(empty(shape, 3), f, g)
    zero, each = np.zeros(() if runs is None else (runs, 1)), np.zeros((*shape, 3))
    sums = Totals(zero, zero, each, each, each, zero, each, each)
    for t in range(30):
        sums = sums.add(f[t] if runs is None else f[t][:, None], g[t])
        for name in ("cost", "hard", "soft", "squared", "worst", "queue", "interval"):
            one = np.asarray(getattr(sums, name))
            assert np.allclose(one[..., 0] if runs is not None and one.shape == (runs, 1) else one, getattr(block, name)[t]), name
    over = np.maximum(g, 0.0)
    assert np.allclose(block.worst[-1], over.max(axis=-1).mean(axis=-1).sum(axis=0))
    assert np.allclose(block.hard[-1], over.mean(axis=-2).sum(axis=0))


@pytest.mark.compiles
@pytest.mark.parametrize("name", TRYING)
def test_every_engine_draws_and_charges_alike(name, monkeypatch):
    problem = bridle.problem("halfspaces", horizon=60, domain=bridle.Simplex(3), constraints=2)
    alone = [bridle.play(bridle.policy_for(name, problem, seed=seed), problem) for seed in range(3)]
    policy = bridle.policy_for(name, problem, seed=[0, 1, 2])
    traces = [bridle.play(policy, problem, engine=engine) for engine in ("python", "jax")]
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")  # the generated source, as it stands
    traces.append(bridle.play(policy, problem, engine="compiled"))
    for trace in traces:
        for field in ("cost", "hard", "soft", "squared", "worst", "interval"):
            one_by_one = np.array([getattr(each.totals, field) for each in alone])
            assert np.allclose(getattr(trace.totals, field), one_by_one, rtol=1e-10, atol=1e-10)
    for part in ("a2", "b2"):  # the stream is whole numbers: the same bits everywhere
        streams = [getattr(trace.state.stream, part) for trace in traces]
        assert all((stream == streams[0]).all() for stream in streams)


def test_the_problem_gives_a_policy_that_draws_its_seed():
    problems = [bridle.problem("halfspaces", horizon=30, dim=2, seed=seed) for seed in (0, 7)]
    assert [bridle.policy_for("bandit2", each).parameters["seed"] for each in problems] == [0, 7]
    assert "seed" not in bridle.policy_for("ftpl", problems[1]).parameters


def session_of(**more) -> bridle.Session:
    return bridle.Session(bridle.policy("bandit2", bridle.Ball(2), horizon=50, lipschitz=1.0, seed=2), **more)


def test_a_session_is_the_game(tmp_path):
    problem = bridle.problem("halfspaces", horizon=50, dim=2, constraints=2)
    policy, told = bridle.policy_for("bandit2", problem), []
    trace = bridle.play(policy, problem, keep="rounds")
    session = bridle.Session(policy, history=told.append)
    for t, one in enumerate(each for block in trace.blocks() for each in bridle.records.unstack(block, 50)):
        if t == 20:
            session.save(tmp_path / "s.npz")
            session = bridle.Session.load(tmp_path / "s.npz", history=told.append)
        if t % 3:
            ticket = session.ask(points=2)
            session.observe([one.cost.value(z) for z in ticket.x], g=[one.reveal(z).g for z in ticket.x], ticket=ticket)
        else:
            points = session.step(one.cost, one.constraints)
            assert points.shape == (2, 2)
    assert session.cost == pytest.approx(trace.totals.cost)
    assert np.allclose(session.violations, trace.totals.hard)
    assert np.allclose(session.balances, trace.totals.soft)
    assert told[-1]["x"].shape == (2, 2)
    assert told[-1]["violation"].shape == (2, 2)
    assert told[-1]["ccv"] == session.ccv


def test_a_session_has_no_bound_of_its_own():
    session = session_of()
    session.observe(f=[0.1, 0.2], g=[0.0, 0.1])
    assert session.bound().why.startswith("values alone do not show how steep functions are")


def test_a_saved_ticket_goes_on_bit_for_bit(tmp_path):
    session = session_of()
    ticket = session.ask(points=2)
    session.save(tmp_path / "s.npz")
    other = bridle.Session.load(tmp_path / "s.npz")
    for each in (session, other):
        each.observe([0.3, -0.2], g=[[0.1], [-0.4]], ticket=ticket.id)
    assert session.ask(points=2).x.tobytes() == other.ask(points=2).x.tobytes()
    assert (session.cost, session.ccv) == (other.cost, other.ccv) == (0.3 / 2 - 0.2 / 2, 0.05)


def test_a_round_that_is_forgotten_is_not_played_again():
    session = session_of()
    first = session.ask(points=2)
    session.forget(first)
    second = session.ask(points=2)
    assert np.allclose(first.x.mean(axis=0), second.x.mean(axis=0))
    assert np.abs(first.x - second.x).max() > 1e-4
    assert session.dropped == 1


@pytest.mark.parametrize("name", ["bandit1", "bandit2"])
def test_while_a_round_waits_no_other_is_shown_or_evaluated(name):
    n = 1 if name == "bandit1" else 2
    more = {"bound": 2.0} if n == 1 else {}
    session, asked = bridle.Session(bridle.policy(name, bridle.Ball(2), horizon=50, lipschitz=1.0, **more)), []
    ticket = session.ask(points=n)
    for verb in (session.decide, lambda: session.step(lambda x: asked.append(x) or 0.1)):
        with pytest.raises(InputError, match=f"policy {name} plays one round at a time: ticket 1 waits, observe it first"):
            verb()
    assert not asked
    session.observe(f=[0.1] * n, g=[[0.2]] * n, ticket=ticket)
    session.step(lambda x: asked.append(x) or 0.1)
    assert (session.rounds, len(asked)) == (2, n)


REFUSED = {
    "policy bandit2 tries 2 points a round: begin it with ask": lambda s: s.decide(),
    "points must be 2 for policy bandit2, which tries 2 points a round, not 1": lambda s: s.ask(),
    "points must be a number": lambda s: s.ask(points="two"),
    "f must be 2 numbers, one for each point": lambda s: s.observe(f=1.0),
    "g must hold 2 rows, one for each point": lambda s: s.observe(f=[0.0, 1.0], g=[[1.0, 2.0]]),
    "f must be finite": lambda s: s.observe(f=[0.0, np.nan]),
    "g must be at most 1e": lambda s: s.observe(f=[0.0, 1.0], g=[1e71, 0.0]),
    "df cannot be given: policy bandit2 sees values alone": lambda s: s.observe(f=[0.0, 1.0], df=[1.0, 0.0]),
    "dg cannot be given": lambda s: s.observe(f=[0.0, 1.0], g=[0.0, 0.0], dg=[[1.0, 0.0]]),
    "played cannot be given": lambda s: s.observe(f=[0.0, 1.0], played=[0.0, 0.0]),
    "modulus cannot be given": lambda s: s.observe(f=[0.0, 1.0], modulus=1.0),
    "known cannot be given": lambda s: s.step(bridle.Affine([1.0, 0.0]), known=([[1.0, 0.0]], [0.5])),
    "the value of cost must be a number": lambda s: s.step(lambda x: x),
    "cost must be a function": lambda s: s.step(3.0),
    "plays one round at a time": lambda s: (s.ask(points=2), s.ask(points=2)),
    "ticket must be given": lambda s: (s.ask(points=2), s.observe(f=[0.0, 1.0])),
    "sees values alone, and no gradients: this session keeps no certificates": lambda s: s.certificate(),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(message):
    session = session_of()
    session.observe(f=[0.1, 0.2], g=[0.0, 0.1])
    with pytest.raises(InputError, match=message):
        REFUSED[message](session)
    assert (session.rounds, session.ccv) == (1, 0.05)


def test_nothing_else_tries_points(tmp_path):
    other = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    with pytest.raises(InputError, match="points must be 1 for policy anytime, which plays its decision, not 2"):
        other.ask(points=2)
    with pytest.raises(InputError, match="dg must be given with g"):
        other.observe(f=0.0, g=0.1)
    assert other.ask(points=1).x.shape == (2,)
    policy = bridle.policy("bandit2", bridle.Ball(2), horizon=50, lipschitz=1.0)
    with pytest.raises(InputError, match="engine must be 'python' in a session of policy bandit2"):
        bridle.Session(policy, engine="compiled")
    with bridle.Session.open(f"sqlite:///{tmp_path}/s.db", "a", policy=bridle.policy("anytime", bridle.Ball(2))) as durable:
        with pytest.raises(InputError, match="points must be 1 for policy anytime, which plays its decision, not 2"):
            durable.ask(points=2)
        assert durable.ask(points=1).x.shape == (2,)
    with pytest.raises(InputError, match="rules cannot be given: policy bandit2 tries points of the domain itself"):
        bridle.policy("bandit2", bridle.Ball(2), horizon=50, lipschitz=1.0, rules=3)

"""`anytime` with ``window="auto"``: a mixture of memories that follows what moves, and what is proved of it."""

from __future__ import annotations

from itertools import pairwise
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.checks import check_policy
from bridle.core import Feedback
from bridle.learners.track import track_regret
from bridle.policies.memories import WINDOWS, Memories, memories, moving_bound, pieces

DIM = 3


def stream(seed, parts, adaptive, limits=True, stay=40):
    """For each interval its length, an action that keeps its limits, and what answers a decision: (df, g, dg).

    Costs of slope 1 and halfspaces through the action; adaptive ones look at the decision: what is forbidden is cheap.
    """
    rng = np.random.default_rng([seed, 7])
    for _ in range(parts):
        u = np.asarray(bridle.Ball(DIM).project(2.0 * rng.standard_normal(DIM)))

        def answer(x, u=u):
            away = x - u if adaptive and np.any(x != u) else rng.standard_normal(DIM)
            n = away / np.linalg.norm(away)
            c = -n if rng.random() < 0.6 else rng.standard_normal(DIM)
            c = (n if adaptive and not limits else c) * (0.2 + 0.8 * rng.random())
            return c / max(1.0, np.linalg.norm(c)), np.array([float(n @ (x - u)) if limits else -1.0]), n[None] * limits

        yield int(rng.integers(stay // 2, 2 * stay)), u, answer


def played(policy, *parts):
    """Every round of these intervals: the state before and after it, the decision, the action of the interval and the answer."""
    state = policy.init(np.zeros(DIM))
    for length, u, answer in parts:
        for _ in range(length):
            x = policy.decide(state)
            df, g, dg = answer(x)
            after = policy.update(state, Feedback(x, float(df @ x), df, g, dg))
            yield state, after, x, u, (df, g, dg)
            state = after


def far(x, u, df, g, dg, played):
    """The distance from x to the halfspace that was seen at what was played."""
    length = float(np.linalg.norm(dg))
    return max(0.0, float(g[0] + dg[0] @ (x - played))) / length if length else 0.0


# --- the update -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adaptive", [False, True])
def test_it_is_a_mixture_of_windows_each_fed_its_own_reading(adaptive):
    windows = (3.0, 12.0, np.inf)
    mixture = memories(bridle.policy("anytime", bridle.Ball(DIM)).record, windows)
    made = [bridle.policy("anytime", bridle.Ball(DIM), **({"window": int(W)} if np.isfinite(W) else {})).record for W in windows]
    states, top, steepest = [each.init(np.zeros(DIM)) for each in made], mixture.top, 0.0
    weights = top.init(np.full(3, 1.0 / 3.0))
    for t, (before, _, x, u, (df, g, dg)) in enumerate(played(mixture, *stream(1, 3, adaptive)), 1):
        own = np.array([each.decide(state) for each, state in zip(made, states, strict=True)])
        np.testing.assert_allclose(x, top.decide(weights) @ own, atol=1e-12)
        np.testing.assert_allclose(before.copies.x, own, atol=1e-12)
        steepest = max(steepest, float(np.linalg.norm(df)))
        outside = np.array([far(y, u, df, g, dg, x) for y in (*own, x)])
        losses = (own - x) @ df + 4.0 * t**0.25 * steepest * (outside[:-1] - outside[-1])
        weights = top.step(weights, np.where(abs(losses) > 1e-9 * 2.0 * steepest, losses, 0.0))
        states = [each.update(state, Feedback(y, 0.0, df, g + dg @ (y - x), dg)) for each, state, y in zip(made, states, own, strict=True)]


def test_copies_that_agree_teach_the_weights_nothing():
    """All copies meet the limit alike; what rounding leaves between them is no reason to prefer one."""
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 10.0, dim=2), window="auto"))
    for _ in range(40):
        x = session.decide()
        session.observe(f=float(x.sum()), df=[1.0, 1.0], g=np.array([8.0, 3.0]) - x, dg=-np.eye(2))
    np.testing.assert_array_equal(session.weights, np.full(len(WINDOWS), 1.0 / len(WINDOWS)))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("of", ["costs", "limits", "actions"])
def test_units_do_not_matter(scale, of):
    def decisions(cost, limit, action):
        domain, out = bridle.Box(-action, action, dim=2), []
        session, rng = bridle.Session(bridle.policy("anytime", domain, window="auto"), certify=False), np.random.default_rng(4)
        for t in range(120):
            x = session.decide() / action
            u, n = np.array([0.4, -0.3]) * (1 if t < 50 else -1), rng.standard_normal(2)
            c = rng.standard_normal(2) * (t > 9)  # limits come first
            g = float(n @ (x - u)) - 0.1
            session.observe(f=cost * float(c @ x), df=cost / action * c, g=limit * g, dg=limit / action * n)
            out.append(x)
        return np.array(out)

    asked = {"cost": 1.0, "limit": 1.0, "action": 1.0} | {of[:-1]: scale}
    np.testing.assert_allclose(decisions(**asked), decisions(1.0, 1.0, 1.0), atol=1e-9)


# --- the proof, line by line ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("V", [0.1, 5.0])
def test_a_copy_keeps_its_line_against_an_action_that_moves(V, record_property):
    """V Regret + (1 - theta) e^{lam Q} - 1 <= V sqrt(2) (D + P) sqrt(sum |grad f|^2), theta = 2 (D + P)^2 lam, after every round."""
    largest, D, lam = 0.0, 2.0, 1.0 / 16.0
    for seed in range(6):
        record, rng = bridle.policy("anytime", bridle.Ball(DIM), V=V, cuts=0).record, np.random.default_rng([seed, 9])
        state, u, P = record.init(np.zeros(DIM)), np.array([0.5, 0.0, 0.0]), 0.0
        regret = squares = Q = 0.0
        for t in range(150):
            x = record.decide(state)
            n = x - u if np.any(x != u) and seed % 2 == 0 else rng.standard_normal(DIM)
            n = n / np.linalg.norm(n)
            c, g = (n, -1.0) if seed < 2 else (-n, float(n @ (x - u)))
            state = record.update(state, Feedback(x, float(c @ x), c, np.array([g]), n[None]))
            regret, squares, Q = regret + float(c @ (x - u)), squares + 1.0, Q + max(g, 0.0) ** 2
            theta = 2.0 * (D + P) ** 2 * lam
            left, right = V * regret + (1.0 - theta) * exp(lam * Q) - 1.0, V * sqrt(2.0 * squares) * (D + P)
            assert left <= right
            largest = max(largest, left / right)
            step = -np.sign(t % 2 - 0.5) * 0.1 * n if P < 0.35 * D else 0.0 * n  # away from where it stands
            moved = np.asarray(bridle.Ball(DIM).project(u + step))
            P, u = P + float(np.linalg.norm(moved - u)), moved
    record_property("largest share of the line", round(largest, 3))
    assert largest > 0.1


@settings(max_examples=25, deadline=None)
@given(
    starts=st.lists(st.integers(1, 3000), min_size=1, max_size=4, unique=True),
    horizon=st.integers(1, 3000),
    windows=st.sampled_from([(16.0, 64.0, 256.0, 1024.0, np.inf), (2.0, 6.0, 18.0, np.inf), (5.0, np.inf)]),
)
def test_intervals_fall_into_as_many_pieces_as_are_counted(starts, horizon, windows):
    edges = sorted({0, horizon, *(start for start in starts if start < horizon)})
    total = 0
    for begin, end in pairwise(edges):
        cut = divided(begin, end, windows)
        assert all(begin <= a < b <= end and (a % W == 0 and b - a <= W if np.isfinite(W) else a == 0) for a, b, W in cut)
        assert sum(b - a for a, b, _ in cut) >= end - begin - (windows[0] - 1.0)
        total += len(cut)
    assert total <= pieces(float(horizon), len(edges) - 1, windows)


def divided(begin, end, windows):
    """(first round, end, window) of every piece of an interval: on each, the copy of that window has just begun."""
    if begin == 0:
        return [(0, end, np.inf)]
    lengths, at, cut, level = windows[:-1], int(-(-begin // windows[0]) * windows[0]), [], 0
    while at < end:
        while level + 1 < len(lengths) and at % lengths[level + 1] == 0 and lengths[level] < end - begin:
            level += 1
        cut.append((at, min(end, at + int(lengths[level])), lengths[level]))
        at = cut[-1][1]
    return cut


def shares(seed, parts, adaptive, limits, windows=(4.0, 16.0, 64.0, np.inf), stay=40, **told):
    """Line (3) of the proof for the copies of the pieces, the sum by parts of (4), the bounds and the certificate, after every round.

    The largest shares of them that were measured.
    """
    largest = dict.fromkeys(("line", "regret", "distances", "certificate"), 0.0)
    mixture = memories(bridle.policy("anytime", bridle.Ball(DIM), **told).record, windows)
    stretches = list(stream(seed, parts, adaptive, limits, stay))
    edges = np.cumsum([0, *(length for length, _, _ in stretches)])
    used = {t: windows.index(W) for ends in pairwise(edges) for a, b, W in divided(*ends, windows) for t in range(a, b)}
    left = right = regret = paid = outside = squared = steepest = behind = start = first = 0.0
    switches, last = 0, len(windows) - 1
    for t, (before, after, x, u, (df, g, dg)) in enumerate(played(mixture, *stretches)):
        own = before.copies.x
        steepest, first = max(steepest, float(np.linalg.norm(df))), first or float(np.linalg.norm(df))
        rho = 4.0 * (t + 1.0) ** 0.25 * steepest
        start = start or rho
        each = np.array([rho * far(y, u, df, g, dg, x) for y in own])
        j = used.get(t, last)  # before a piece begins any copy will do
        switches, last = switches + (j != last), j
        here = rho * far(x, u, df, g, dg, x)
        assert here <= float(mixture.weights(before) @ each) + 1e-12
        left, right = left + float(df @ x) + here, right + float(df @ own[j]) + each[j]
        squared += float(np.ptp(own @ df + each)) ** 2
        track = track_regret(len(windows), t + 1.0, squared, switches)
        assert left - right <= track + 1e-9
        regret, paid, outside = regret + float(df @ (x - u)), paid + here, outside + here / rho
        behind = max(behind, paid / rho)
        assert outside <= behind * (1.0 + log(rho / start)) + 1e-12
        many = 1 + int(np.searchsorted(edges[1:], t, side="right"))
        about = {"lipschitz": steepest, "diameter": 2.0, "first": first, "windows": windows, "limits": limits, "V": told.get("V")}
        bound = moving_bound(t + 1.0, parts=many, **about)
        assert regret <= bound.regret + 1e-9
        assert outside * steepest <= bound.ccv + 1e-9
        found = {"line": (left - right) / track if track else 0.0, "regret": regret / bound.regret}
        found["distances"] = outside * steepest / bound.ccv if limits else 0.0
        if many == 1:
            proved = mixture.certified_regret(after)
            assert regret <= proved + 1e-9
            found["certificate"] = regret / proved
        largest |= {name: max(largest[name], float(share)) for name, share in found.items()}
    return largest


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("adaptive", [False, True])
def test_mixtures_lose_no_more_than_is_proved(adaptive, limits, record_property):
    found = [shares(seed, 3, adaptive, limits) for seed in range(3)]
    largest = {name: round(max(each[name] for each in found), 3) for name in found[0]}
    record_property("largest shares of the bounds", str(largest))
    print(largest)
    assert largest["regret"] > 0.1


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    parts=st.integers(1, 5),
    adaptive=st.booleans(),
    limits=st.booleans(),
    windows=st.sampled_from([(2.0, 8.0, 32.0, np.inf), (5.0, 15.0, 45.0, np.inf), (16.0, np.inf)]),
    V=st.none() | st.floats(1e-4, 1e4),
)
def test_no_stream_is_found_that_breaks_what_is_proved(seed, parts, adaptive, limits, windows, V):
    shares(seed, parts, adaptive, limits, windows, stay=20, **({} if V is None else {"V": V}))


# --- in use -----------------------------------------------------------------------------------------------------------------------------


def capacity(session, demand):
    """Costs and violations of capacity that is provided before demand is seen."""
    cost = violation = 0.0
    for need in demand:
        x = session.decide()
        session.observe(f=float(x.sum()), df=np.ones(len(x)), g=need - x, dg=-np.eye(len(x)))
        cost, violation = cost + float(x.sum()), violation + float(np.maximum(need - x, 0.0).max())
    return cost, violation


@pytest.mark.slow
def test_it_follows_what_moves_and_keeps_what_stands_still():
    rng, box, found = np.random.default_rng(3), bridle.Box(0.0, 1.0, dim=1), {}
    noise = rng.uniform(-0.1, 0.1, (900, 1))
    level = np.where(np.arange(900) % 450 < 225, 0.75, 0.25)[:, None]
    for kind, demand in (("moving", level + noise), ("still", 0.5 + noise)):
        for window in (None, "auto", 16):
            session = bridle.Session(bridle.policy("anytime", box, window=window), certify=False)
            found[kind, window] = capacity(session, demand)
    assert found["moving", "auto"][0] < 0.85 * found["moving", None][0]
    assert found["moving", "auto"][1] < 0.7 * found["moving", 16][1]
    assert found["still", "auto"][0] < 1.001 * found["still", None][0]
    assert found["still", "auto"][1] < 0.5 * found["still", 16][1]


def test_a_session_says_which_memories_carry_the_mixture(tmp_path):
    policy, demand = bridle.policy("anytime", bridle.Box(0.0, 10.0, dim=1), window="auto"), np.array([[8.0]] * 30 + [[2.0]] * 90)
    session = bridle.Session(policy)
    assert session.policy.record.mixed[0] == "memory of 16 rounds"
    assert session.policy.record.mixed[-1] == "memory of all rounds"
    np.testing.assert_array_equal(session.weights, np.full(8, 0.125))
    capacity(session, demand[:80])
    assert session.weights[0] > 0.5 > session.weights[-1]
    assert "Rules: memory of 16 rounds" in session.report()
    proof = session.certificate()
    assert proof.rules == policy.record.mixed
    np.testing.assert_array_equal(proof.weights, session.weights)
    assert proof.regret_algorithm is not None
    assert session.bound().regret <= 80 * 10.0
    session.save(tmp_path / "s.npz")
    other = bridle.Session.load(tmp_path / "s.npz")
    assert capacity(session, demand[80:]) == capacity(other, demand[80:])
    np.testing.assert_array_equal(session.weights, other.weights)


def test_feedback_may_come_late_and_rules_go_with_memories():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 10.0, dim=2), window="auto"))
    for t in range(60):
        tickets = [session.ask() for _ in range(3)]
        for ticket in tickets[::-1]:
            need = np.array([3.0, 5.0]) if t < 30 else np.array([5.0, 1.0])
            session.observe(f=float(ticket.x.sum()), df=np.ones(2), g=need - ticket.x, dg=-np.eye(2), ticket=ticket)
    assert abs(session.decide() - [5.0, 1.0]).max() < 0.5
    assert session.weights.shape == (8,)
    mixed = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 10.0, dim=1), window="auto", rules=["low", "high"]))
    x = mixed.decide(rules=[[1.0], [9.0]])
    mixed.observe(f=float(x[0]), df=[1.0], g=4.0 - float(x[0]), dg=[-1.0])
    assert mixed.weights.shape == (2,)  # those of the rules
    plain = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 10.0, dim=1)))
    with pytest.raises(bridle.InputError, match="weights: the policy of this session was made without rules= and features="):
        _ = plain.weights


def test_runs_side_by_side_are_the_loop_over_runs():
    problem = bridle.problem("halfspaces", horizon=60, dim=3, constraints=2)
    for sweep in ({"V": [0.5, 5.0]}, {"lam": [0.01, 0.05]}, {"diameter": [2.0, 3.0]}, {"margin": [0.01, 0.1]}):
        (name, values), *_ = sweep.items()
        many = bridle.play(bridle.policy("anytime", problem.domain, window="auto", **sweep), problem, keep="decisions").decisions
        for i, value in enumerate(values):
            alone = bridle.play(bridle.policy("anytime", problem.domain, window="auto", **{name: value}), problem, keep="decisions")
            np.testing.assert_allclose(many[:, i], alone.decisions, atol=1e-11)


@pytest.mark.parametrize(
    "domain",
    [
        bridle.Box(-1.0, 1.0, dim=DIM),
        bridle.Simplex(DIM),
        bridle.L1Ball(DIM),
        bridle.Polyhedron(np.vstack([np.eye(DIM), -np.eye(DIM)]), np.ones(2 * DIM)),
        bridle.Product(bridle.Ball(2), bridle.Box(0.0, 1.0, dim=1)),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_copies_stay_in_every_kind_of_domain(domain):
    mixture, rng = bridle.policy("anytime", domain, window="auto").record, np.random.default_rng(0)
    state, u = mixture.init(domain.center()), domain.project(rng.standard_normal(DIM))
    for _ in range(40):
        x, (c, n) = mixture.decide(state), rng.standard_normal((2, DIM))
        assert domain.contains(x)
        assert domain.contains(state.copies.x)
        state = mixture.update(state, Feedback(x, float(c @ x), c, np.array([float(n @ (x - u))]), n[None]))
    assert np.ptp(state.copies.x, axis=0).max() > 1e-6


@pytest.mark.slow
@pytest.mark.compiles
def test_it_keeps_the_contract_of_a_policy():
    report = check_policy("anytime", {"here": bridle.Ball(2)}, constraints=[2], rounds=30, window="auto")
    assert any(line.endswith(": engines") for line in report)


@pytest.mark.slow
@pytest.mark.compiles
def test_memories_in_compiled_loops_decide_alike(monkeypatch):
    """As Python, line by line: the generated source."""
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    problem = bridle.problem("halfspaces", horizon=40, dim=2)
    policy = bridle.policy("anytime", problem.domain, window="auto", cuts=2)
    ends = [bridle.play(policy, problem, engine=engine, keep="decisions").decisions for engine in ("python", "compiled")]
    np.testing.assert_allclose(ends[1], ends[0], rtol=0.0, atol=1e-11)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"window": "automatic"}, "unknown window 'automatic'"),
        ({"window": "auto", "drift": 1.0}, "window goes without drift"),
        ({"window": "auto", "modulus": 1.0}, "window goes without drift and modulus"),
        ({"window": "auto", "form": "value", "lipschitz": 1.0}, "window='auto' is for form='distance' only, not for 'value'"),
    ],
)
def test_settings_that_do_not_go_with_memories_are_refused(given, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.policy("anytime", bridle.Ball(2), **given)


def test_no_limit_and_no_cost_are_rounds_too():
    mixture = bridle.policy("anytime", bridle.Ball(DIM), window="auto").record
    assert isinstance(mixture, Memories)
    state = mixture.init(np.zeros(DIM))
    for _ in range(20):
        state = mixture.update(state, Feedback(mixture.decide(state), 0.0, np.zeros(DIM), np.zeros(1), np.zeros((1, DIM))))
    np.testing.assert_array_equal(mixture.decide(state), np.zeros(DIM))
    assert mixture.alarm(state) is None

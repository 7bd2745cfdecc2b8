"""`dynamic`: its update against a transcription, its inequality along every path, and what is proved of violation."""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
import bridle.policies._dynamic as dynamic_file
from bridle.core import Feedback
from bridle.policies._dynamic import dynamic_bound, spread

# --- the update -------------------------------------------------------------------------------------------------------------------------


class Transcribed:
    """The docstring's update with loops, on a box: it shares no code with the policy but the box's corners."""

    def __init__(self, low, high, x1, told=0.0):
        self.low, self.high, self.D = low, high, float(np.linalg.norm(high - low))
        self.thetas = [2.0**i * self.D / sqrt(2.0) for i in range(-8, 18)]
        self.points, self.squares = [x1.copy() for _ in self.thetas], [0.0 for _ in self.thetas]
        self.L, self.Delta, self.M = np.zeros(26), 0.0, told

    def weights(self):
        if self.Delta == 0.0:
            return np.full(26, 1.0 / 26.0)
        w = np.exp(-log(26.0) * (self.L - self.L.min()) / self.Delta)
        return w / w.sum()

    def decide(self):
        return sum(w * x for w, x in zip(self.weights(), self.points, strict=True))

    def nearest(self, x, n, b):
        """The nearest point of the box below the cut, by halving its multiplier."""
        low, high = 0.0, 1e6 * self.D
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if n @ np.clip(x - middle * n, self.low, self.high) > b else (low, middle)
        return np.clip(x - high * n, self.low, self.high)

    def update(self, df, g, dg):
        x, w = self.decide(), self.weights()
        lengths = np.linalg.norm(dg, axis=1)
        normals = dg / lengths[:, None]
        levels = normals @ x - g / lengths
        seen = max(self.M, float(np.linalg.norm(df)))
        M = seen if seen > 0.0 else 1.0
        if self.M == 0.0 and seen > 0.0:  # what was learned in units of 1 is put into those of the first slope
            self.squares, self.L, self.Delta = [M * M * s for s in self.squares], M * self.L, M * self.Delta
        self.M = seen

        def far(y):
            return max(0.0, float((normals @ y - levels).max()))

        d, linear, toll = far(x), df.astype(float), 2.0 * M
        if d > 1e-9 * self.D:
            i = int((normals @ x - levels).argmax())
            out = x - self.nearest(x, normals[i], levels[i])
            r = max(float(np.linalg.norm(out)), d)
            q = d / r
            linear, toll = df + 2.0 * M * (1.0 - q * q) * out / r, 2.0 * M * q
        losses = np.array([linear @ (y - x) + toll * (far(y) - d) for y in self.points])
        losses[abs(losses) <= 1e-9 * self.D * M] = 0.0
        mix = (
            (losses + self.L).min() - self.L.min()
            if self.Delta == 0.0
            else -self.Delta / log(26.0) * log(float(w @ np.exp(-log(26.0) * losses / self.Delta)))
        )
        for i, y in enumerate(self.points):
            v = linear + (toll * normals[int((normals @ y - levels).argmax())] if far(y) > 1e-9 * self.D else 0.0)
            self.squares[i] += float(v @ v)
            if self.squares[i] > 0.0:
                y = y - self.thetas[i] / sqrt(self.squares[i]) * v
            for n, b in zip(normals, levels, strict=True):
                y = y - max(0.0, float(n @ y - b)) * n
            self.points[i] = np.clip(y, self.low, self.high)
        self.L, self.Delta = self.L + losses, self.Delta + max(0.0, float(w @ losses) - mix)


@pytest.mark.covering(2)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("told", [None, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_update_is_what_the_docstring_says(k, scale, seed, told):
    rng = np.random.default_rng([seed, k])
    low, high = -rng.uniform(0.2, 1.0, 3), rng.uniform(0.2, 1.0, 3)
    given = {} if told is None else {"lipschitz": told * scale}
    policy = bridle.policy("dynamic", bridle.Box(low, high), **given).record
    mine, state = Transcribed(low, high, np.zeros(3), 0.0 if told is None else told * scale), policy.init(np.zeros(3))
    for t in range(60):
        x = policy.decide(state)
        np.testing.assert_allclose(x, mine.decide(), atol=1e-7)
        df = scale * rng.standard_normal(3) * (t >= 3)  # no slope at first
        dg = rng.standard_normal((k, 3))
        g = dg @ (x - rng.uniform(low, high)) * 0.7
        state = policy.update(state, Feedback(x, 0.0, df, g, dg))
        mine.update(df, g, dg)


def test_a_limit_that_misses_the_domain_is_an_alarm():
    """One of two is enough; one that only touches is none, and neither is the first round's alarm forgotten."""
    record = bridle.policy("dynamic", bridle.Box(0.0, 1.0, dim=2)).record
    state, x, rows = record.init(np.zeros(2)), np.zeros(2), np.eye(2)
    state = record.update(state, Feedback(x, 0.0, np.ones(2), np.array([sqrt(2.0), -1.0]), rows))
    assert record.alarm(state) is None
    for _ in range(2):
        state = record.update(state, Feedback(record.decide(state), 0.0, np.ones(2), np.array([1.5, -1.0]), rows))
        assert "the constraint of round 2" in record.alarm(state).text


def test_what_is_mixed_has_names():
    record = bridle.policy("dynamic", bridle.Ball(2)).record
    assert record.mixed[0] == "step 0.00276 D"
    assert record.mixed[8:10] == ("step 0.707 D", "step 1.41 D")
    assert len(record.mixed) == len(record.weights(record.init(np.zeros(2)))) == 26


def test_in_a_corner_the_distance_to_the_halfspace_alone_would_not_do():
    """Leaving along the circle pays 1 a unit and costs 2 sin(0.1) of distance to the halfspace: only the distance within X stops it."""

    def violation(record):
        state, total = record.init(np.zeros(2)), 0.0
        for _ in range(800):
            x = record.decide(state)
            g = float(np.cos(0.1) - x[0])
            total += max(g, 0.0)
            state = record.update(state, Feedback(x, 0.0, np.array([0.0, -1.0]), np.array([g]), np.array([[-1.0, 0.0]])))
        return total, x

    record = bridle.policy("dynamic", bridle.Ball(2)).record
    total, x = violation(record)
    assert total < 1.5
    np.testing.assert_allclose(x, [np.cos(0.1), np.sin(0.1)], atol=3e-3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dynamic_file, "hinge", lambda domain, x, n, level, c, alpha: x - max(0.0, float(n @ x) - level) * n)
        total, x = violation(record)
    assert total > 60.0
    np.testing.assert_allclose(x, [2.0 / sqrt(5.0), 1.0 / sqrt(5.0)], atol=1e-2)  # where the pull along the circle is twice that of the cut


# --- the inequality of the proof --------------------------------------------------------------------------------------------------------


def games(seed, d, scale, T, moves, path):
    """A game against an opponent that looks at decisions: rounds (x, df, u), the sum of 2 M r, and the final state.

    `moves` is how often the feasible action u jumps; "attack" pulls out of what is allowed, "random" does anything.
    """
    rng = np.random.default_rng([seed, d])
    domain = bridle.Ball(d) if seed % 2 else bridle.Box(-1.0, 1.0, dim=d)
    policy = bridle.policy("dynamic", domain).record
    state, u = policy.init(domain.center()), np.asarray(domain.project(rng.standard_normal(d)))
    rounds = []
    for _ in range(T):
        if rng.random() < moves:
            u = np.asarray(domain.project(u + path * rng.standard_normal(d)))
        x = policy.decide(state)
        away = x - u if rng.random() < 0.7 and np.any(x != u) else rng.standard_normal(d)
        n = away / np.linalg.norm(away)
        slack = 0.0 if rng.random() < 0.7 else rng.uniform(0.0, 0.5)
        c = -n + 0.5 * rng.standard_normal(d) if rng.random() < 0.6 else n
        df = scale * c / max(1.0, np.linalg.norm(c))
        state = policy.update(state, Feedback(x, 0.0, df, np.array([n @ (x - u) - slack]), n[None]))
        rounds.append((x, df, u.copy()))
    return domain, policy, state, rounds


def right_side(domain, path, squares, t, M):
    D = domain.diameter()
    return D * sqrt(squares) * (spread(path / D) + sqrt(4.0 + log(26.0))) + 4e-9 * D * M * t


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    d=st.sampled_from([1, 2, 5, 30]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    moves=st.sampled_from([0.0, 0.02, 0.3]),
    path=st.sampled_from([0.1, 3.0]),
)
def test_the_inequality_holds_against_every_path(seed, d, scale, moves, path):
    domain, policy, state, rounds = games(seed, d, scale, 150, moves, path)
    lengths = [float(np.linalg.norm(df)) for _, df, _ in rounds]
    M = np.maximum.accumulate(lengths)
    squares = sum((length + 2.5 * m) ** 2 for length, m in zip(lengths, M, strict=True))
    linear = sum(float(df @ (x - u)) for x, df, u in rounds)
    P = sum(float(np.linalg.norm(b[2] - a[2])) for a, b in pairwise(rounds))
    left = linear + float(state.charged)
    assert left <= right_side(domain, P, squares, len(rounds), M[-1])
    if moves == 0.0:  # one action: the certificate is the same with what has happened
        assert linear <= policy.certified_regret(state) * (1.0 + 1e-9)
    bound = dynamic_bound(len(rounds), lipschitz=scale, diameter=domain.diameter(), path=P)
    assert linear <= bound.regret * (1.0 + 1e-12)


def violations(domain, script, told=None):
    """Distances within X and CCV of a game whose rounds `script(t, x)` gives (df, n, b); the length of the path of the best actions."""
    policy = bridle.policy("dynamic", domain, **({} if told is None else {"lipschitz": told})).record
    state, ccv, P, last, M = policy.init(domain.center()), 0.0, 0.0, None, []
    T = 200
    for t in range(T):
        x = policy.decide(state)
        df, n, b = script(t, x)
        ccv += max(0.0, float(n @ x) - b)
        best = np.asarray(bridle.Halfspace(n, b, within=domain).linear_argmin(df))
        P, last = P + (0.0 if last is None else float(np.linalg.norm(best - last))), best
        M.append(float(np.linalg.norm(df)))
        state = policy.update(state, Feedback(x, 0.0, df, np.array([n @ x - b]), n[None]))
    return ccv, P, M, T


@pytest.mark.covering(2)
@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("told", [None, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_violation_is_bounded_by_the_path_of_the_best_actions(d, told, seed):
    rng = np.random.default_rng([seed, d, 5])
    domain, u = (bridle.Ball(d) if seed else bridle.Box(-1.0, 1.0, dim=d)), np.zeros(d)

    def script(t, x):
        nonlocal u
        if t % 40 == 0:
            u = np.asarray(domain.project(2.0 * rng.standard_normal(d)))
        away = x - u + 1e-3 * rng.standard_normal(d)
        n = away / np.linalg.norm(away)
        return -n * rng.uniform(0.3, 1.0), n, float(n @ u) + 1e-6

    ccv, P, M, T = violations(domain, script, told)
    bound = dynamic_bound(T, lipschitz=1.0, diameter=domain.diameter(), best_path=P, first=M[0], told=told or 0.0, steep=1.0)
    assert 0.0 < ccv <= bound.ccv


def evolved(seed, T=120, generations=12, moving=True):
    """The worst measured / bound that evolution finds in one dimension: scripts of slopes and limits, and paths that keep them."""
    rng = np.random.default_rng([seed, 9])

    def play(genes):
        policy = bridle.policy("dynamic", bridle.Box(-1.0, 1.0, dim=1)).record
        state, linear = policy.init(np.zeros(1)), []
        for slope, side, level in genes:
            x = policy.decide(state)
            df, n = np.array([slope]), np.array([[1.0 if side > 0 else -1.0]])
            state = policy.update(state, Feedback(x, 0.0, df, np.array([n[0, 0] * x[0] - abs(level)]), n))
            u = np.clip(-np.sign(slope), -abs(level) if side <= 0 else -1.0, abs(level) if side > 0 else 1.0)
            linear.append((slope, float(x[0]), float(u)))
        slopes, xs, us = (np.array(column) for column in zip(*linear, strict=True))
        if not moving:  # the best one action that keeps all limits: 0 always does
            low = max([-1.0, *(-abs(level) for _, side, level in genes if side <= 0)])
            high = min([1.0, *(abs(level) for _, side, level in genes if side > 0)])
            us = np.full(T, low if slopes.sum() > 0 else high)
        P = float(abs(np.diff(us)).sum())
        bound = dynamic_bound(T, lipschitz=float(abs(slopes).max()), diameter=2.0, path=P).regret
        return float((slopes * (xs - us)).sum()) / bound

    def mutate(genes):
        child = genes.copy()
        where = rng.random(child.shape) < 0.1
        child[where] = rng.uniform(-1.0, 1.0, int(where.sum()))
        return child

    pool = [rng.uniform(-1.0, 1.0, (T, 3)) for _ in range(6)]
    scores = [play(genes) for genes in pool]
    for _ in range(generations):
        parent = pool[int(np.argmax(scores))]
        child = mutate(parent)
        score, i = play(child), int(np.argmin(scores))
        if score > scores[i]:
            pool[i], scores[i] = child, score
    return max(scores)


@pytest.mark.parametrize("moving", [True, False])
def test_evolution_finds_no_script_above_the_bound(moving):
    assert 0.0 < evolved(3, moving=moving) <= 1.0


def test_without_a_feasible_action_regret_is_bounded_against_paths():
    problem = bridle.problem("jumping-limits", horizon=1000, dim=2)
    bound = bridle.policy("dynamic", problem.domain, lipschitz=1.0).bound(problem.constants, 1000)
    assert bound.regret is None
    assert bound.ccv is not None
    assert bound.why.endswith("regret is bounded against paths alone (`dynamic_bound`)")

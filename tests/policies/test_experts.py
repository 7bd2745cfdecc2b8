"""Constrained experts: the proof's own line in every round, under attack; who is dropped; and where the theorem does not apply."""

from __future__ import annotations

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
import pytest

import bridle
from bridle.core import Feedback, InputError
from bridle.policies._experts import experts_bound, most_violation

KINDS = ("random", "tempt", "heaviest", "all", "one by one", "late", "evolved")


class Stay(NamedTuple):
    """Plays its first action for ever."""

    def init(self, x1: np.ndarray) -> np.ndarray:
        return x1

    def decide(self, state: np.ndarray) -> np.ndarray:
        return state

    def update(self, state: np.ndarray, feedback: Feedback) -> np.ndarray:
        return state


class Stream:
    """Costs of range up to `cost` and violations up to `limit`; the experts `kept` never violate. Answers look at the weights."""

    def __init__(self, kind: str, N: int, seed: int, cost: float, limit: float, moves: np.ndarray | None = None) -> None:
        self.kind, self.N, self.rng, self.cost, self.limit, self.moves = kind, N, np.random.default_rng(seed), cost, limit, moves
        self.kept = np.arange(N) < max(1, N // 5)

    def answer(self, w: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        """The costs and the violations of the experts."""
        careless, rng = 1.0 - self.kept, self.rng
        f, c = rng.random(self.N), careless * rng.random(self.N)
        if self.kind in ("tempt", "late"):
            f = 1.0 - careless * rng.uniform(0.5, 1.0)
        if self.kind == "heaviest":
            f, c = f + self.kept, careless * (w >= 0.5 * (careless * w).max())
        if self.kind == "all":
            f, c = 1.0 * self.kept, careless
        if self.kind == "one by one":
            f, c = 1.0 * self.kept, careless * (np.arange(self.N) == np.argmax(careless * w * rng.uniform(0.5, 1.0, self.N)))
        if self.kind == "late" and t < 100:
            c = 0.0 * c
        if self.kind == "evolved" and self.moves is not None:
            a, b, d, e = self.moves[t % len(self.moves)]
            f, c = np.where(w > a / self.N, b, 1.0 - b) + d * self.kept, careless * (w > e / self.N)
        return self.cost * f / max(1.0, np.ptp(f)), self.limit * c


class Shares:
    """The largest share of a bound that was reached."""

    def __init__(self) -> None:
        self.found: dict[str, float] = {}

    def add(self, name: str, measured: float, proved: float, slack: float = 0.0) -> None:
        assert measured <= proved + slack, (name, measured, proved)
        self.found[name] = max(self.found.get(name, 0.0), measured / proved if proved > 0.0 else 0.0)


def attack(stream: Stream, rounds: int, shares: Shares, mass: float = 1.0, **told) -> float:
    """Play, and hold every line of the proof against every expert that keeps the limits; gives the violation over its bound."""
    N, l = stream.N, log(max(stream.N, 2))
    policy = bridle.policy("experts", bridle.Simplex(N, mass=mass), **told)
    record, state = policy.record, policy.record.init(policy.domain.center())
    lam = told.get("lam", 16.0 / (81.0 * (1.0 + l)))
    theta = sqrt((1.0 + l) * lam)
    paid, ranges, ccv, Q, largest, ratio, V = np.zeros(N), 0.0, 0.0, 0.0, told.get("scale", 0.0), 0.0, told.get("V", 0.0)
    for t in range(1, rounds + 1):
        x = record.decide(state)
        assert policy.domain.contains(x, 1e-9)
        w = x / mass
        f, c = stream.answer(w, t)
        ranges, ccv = ranges + np.ptp(f) ** 2, ccv + float(w @ c)
        largest = max(largest, float(c[(x > 0.0) | (told.get("drop") is False)].max(initial=0.0)))
        Q += float(w @ c) / largest if largest else 0.0
        V = V or (0.1 / np.ptp(f) if np.ptp(f) else 0.0)
        paid += float(w @ f) - f
        state = record.update(state, Feedback(x, float(w @ f), f / mass, np.array([w @ c]), c[None] / mass))
        if V == 0.0:
            continue
        R, regret, behind = sqrt((4.0 + l) * ranges), float(paid[stream.kept].max()), max(0.0, float((-paid[stream.kept]).min()))
        rounding = 1e-9 * stream.cost * t
        assert float(state.V) == pytest.approx(V, rel=1e-12)
        assert float(state.Q) == pytest.approx(Q, rel=1e-9, abs=1e-12)
        line = V * regret + (1.0 - 2.0 * theta) * exp(lam * Q)
        shares.add("line", line, V * R + 1.0 - theta, 1e-9 * (1.0 + V * stream.cost * t))
        shares.add("regret", regret, R + theta / V, rounding)
        certified = record.certified_regret(state)
        assert certified is not None
        shares.add("certificate", regret, certified, rounding + 1e-9 * abs(certified))
        proved = largest * log((1.0 - theta + V * (R + behind)) / (1.0 - 2.0 * theta)) / lam
        shares.add("violation", ccv, proved, 1e-9 * largest)
        ratio = ccv / proved if proved else 0.0
    assert record.alarm(state) is None
    assert float(state.below) < 1e-9
    return ratio


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_the_line_of_the_proof_in_every_round(kind, record_property):
    shares = Shares()
    for i, (N, cost, limit, mass, told) in enumerate(
        [
            (2, 1.0, 1.0, 1.0, {}), (5, 1e-6, 1e6, 1.0, {"drop": False}), (30, 1e6, 1e-6, 2.5, {}), (30, 1.0, 1.0, 1.0, {"drop": False}),
            (7, 1.0, 0.3, 1e-3, {"V": 50.0, "scale": 1.0}), (12, 1.0, 1.0, 1.0, {"lam": 0.05, "V": 1e-3, "drop": False}),
        ]
    ):  # fmt: skip
        attack(Stream(kind, N, i, cost, limit), 120, shares, mass, **told)
    for name, value in shares.found.items():
        record_property(name, float(value))


@pytest.mark.parametrize("drop", [True, False])
def test_an_evolved_adversary_stays_under_the_bound(drop, record_property):
    """Moves against two experts that are bred for violation over its bound, and for regret."""
    rng, shares = np.random.default_rng(5), Shares()

    def worth(moves: np.ndarray, aim: str) -> float:
        own = Shares()
        ratio = attack(Stream("evolved", 3, 1, 1.0, 1.0, moves), 60, own, drop=drop)
        for name, value in own.found.items():
            shares.found[name] = max(shares.found.get(name, 0.0), value)
        return ratio if aim == "violation" else own.found["regret"]

    for aim in ("violation", "regret"):
        best = rng.random((5, 4))
        value = worth(best, aim)
        first = value
        for _ in range(40):
            other = np.clip(best + rng.standard_normal(best.shape) * (rng.random(best.shape) < 0.4), 0.0, 3.0)
            found = worth(other, aim)
            best, value = (other, found) if found >= value else (best, value)
        assert value >= first
    for name, share in shares.found.items():
        record_property(f"{drop} {name}", float(share))


def transcribed(rounds: list[tuple[np.ndarray, np.ndarray]], N: int, V: float, lam: float, drop: bool) -> list[np.ndarray]:
    """The update as its formulas say, with plain lists: no log-weights, no shared code."""
    l, L, Delta, Q, S, alive, played = log(N), [0.0] * N, 0.0, 0.0, 0.0, [True] * N, []
    for f, c in rounds:
        if Delta > 0.0:
            raw = [exp(-l * (L[i] - min(L[j] for j in range(N) if alive[j])) / Delta) if alive[i] else 0.0 for i in range(N)]
        else:
            raw = [1.0 if alive[i] else 0.0 for i in range(N)]
        w = [r / sum(raw) for r in raw]
        played.append(np.array(w))
        limits = [c[i] if alive[i] else 0.0 for i in range(N)]
        S = max(S, *limits)
        h = sum(w[i] * limits[i] for i in range(N)) / S if S else 0.0
        Q += h
        loss = [V * f[i] + (lam * exp(lam * Q) * limits[i] / S if S else 0.0) for i in range(N)]
        if Delta > 0.0:
            mix = -Delta / l * log(sum(w[i] * exp(-l * loss[i] / Delta) for i in range(N)))
        else:
            mix = min(L[i] + loss[i] for i in range(N) if alive[i]) - min(L[i] for i in range(N) if alive[i])
        Delta += max(0.0, sum(w[i] * loss[i] for i in range(N)) - mix)
        L = [L[i] + loss[i] for i in range(N)]
        left = [alive[i] and not limits[i] > 1e-9 * S for i in range(N)]
        alive = left if drop and any(left) else alive
    return played


@pytest.mark.parametrize("drop", [True, False])
def test_the_update_is_its_formulas(drop):
    N, V, lam, rng = 6, 0.7, 0.05, np.random.default_rng(2)
    rounds = [(rng.random(N), rng.random(N) * (rng.random(N) < 0.15) * (np.arange(N) > 1) * (t > 3)) for t in range(40)]
    for wanted, got in zip(transcribed(rounds, N, V, lam, drop), weights(rounds, N, V=V, lam=lam, drop=drop), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-15)


def weights(rounds: list[tuple[np.ndarray, np.ndarray]], N: int, start: np.ndarray | None = None, **told) -> list[np.ndarray]:
    record = bridle.policy("experts", bridle.Simplex(N), **told).record
    state, played = record.init(np.full(N, 1.0 / N) if start is None else start), []
    for f, c in rounds:
        x = record.decide(state)
        played.append(x)
        state = record.update(state, Feedback(x, float(f @ x), f, np.array([c @ x]), c[None]))
    return [*played, record.decide(state)] if start is not None else played


def test_who_is_dropped_has_no_weight_ever_after():
    """Also where all that it began on are dropped before any cost has told experts apart."""
    c = np.array([0.0, 1.0, 0.0, 0.0])
    for cost, mass in ((0.0, 1.0), (3.0, 1.0), (3.0, 2.5)):  # in the first case Delta is above 0 after the round, in the others 0
        record = bridle.policy("experts", bridle.Simplex(4, mass=mass), V=1.0).record
        x = mass * np.array([0.0, 1.0, 0.0, 0.0])
        state = record.update(record.init(x), Feedback(x, 0.0, cost * (c == 0.0), np.array([mass]), c[None]))
        assert (float(state.learner.Delta) > 0.0) == (cost == 0.0)
        np.testing.assert_allclose(record.decide(state), mass * np.array([1 / 3, 0.0, 1 / 3, 1 / 3]))
    cheap = np.array([1.0, 0.0, 1.0, 1.0])
    played = weights([(cheap, 0.0 * c)] * 50 + [(cheap, 1e-6 * c)] + [(cheap, 0.0 * c)] * 200, 4)
    assert played[50][1] > 0.99
    assert all(w[1] == 0.0 for w in played[51:])
    np.testing.assert_allclose(played[-1], [1 / 3, 0.0, 1 / 3, 1 / 3], atol=1e-12)  # far behind the one that is gone, and told apart still


def test_the_last_to_violate_stay_and_it_is_told():
    record = bridle.policy("experts", bridle.Simplex(3)).record
    state = record.init(np.full(3, 1 / 3))
    for c in ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.2, 0.2, 0.2]):
        x = record.decide(state)
        state = record.update(state, Feedback(x, 0.0, np.zeros(3), np.array([np.dot(c, x)]), np.array([c])))
    assert np.asarray(record.decide(state)) == pytest.approx([0.0, 0.5, 0.5])
    alarm = record.alarm(state)
    assert alarm is not None
    assert alarm.voids_bound
    assert alarm.text.startswith("after round 2 no expert had kept every limit")


def test_limits_that_experts_keep_only_together_void_the_bound():
    """2 x_1 - 1 <= 0 holds at (1/2, 1/2) and at no corner but the second: regret is not certified, and no bound is given."""
    policy = bridle.policy("experts", bridle.Simplex(2), V=1.0)
    record, x = policy.record, np.array([0.5, 0.5])
    state = record.update(record.init(x), Feedback(x, 0.0, np.array([0.0, 1.0]), np.array([0.0]), np.array([[2.0, 0.0]])))
    assert float(state.below) == 1.0
    assert record.certified_regret(state) is None
    facts = {"lipschitz": 2.0, "diameter": sqrt(2.0), "feasible": np.array([0.0, 1.0])}
    assert "no feasible experts" in policy.bound({**facts, "below": 1.0}, 100).why
    assert "not known" in policy.bound(facts, 100).why
    # A constraint that every expert keeps with room to spare is no such limit.
    kept = record.update(record.init(x), Feedback(x, 0.0, np.array([0.0, 1.0]), np.array([-3.0]), np.array([[2.0, 0.0]])))
    assert float(kept.below) == 0.0
    assert record.certified_regret(kept) is not None


@pytest.mark.parametrize("slope", [0.3, 7.0, 1e3])
@pytest.mark.parametrize("N", [3, 10])
def test_rounding_at_a_limit_that_all_meet_drops_nobody(slope, N):
    # slope (x_1 + ... + x_N - 1) is 0 on the simplex; computed, it is some 1e-16 of the slope, of either sign.
    session, rng, left = bridle.Session(bridle.policy("experts", bridle.Simplex(N))), np.random.default_rng(0), 0.0
    for _ in range(60):
        x, df = session.decide(), rng.normal(size=N)
        g = slope * x.sum() - slope
        left = max(left, abs(g))
        session.observe(f=df @ x, df=df, g=g, dg=np.full(N, slope))
    assert left > 0.0  # there was rounding
    assert session.state.infeasible == 0.0
    assert session.state.S == 0.0
    assert session.state.below == 0.0
    assert session.bound().regret is not None


def test_several_constraints_count_by_each_experts_worst():
    record = bridle.policy("experts", bridle.Simplex(3), drop=False).record
    x = np.full(3, 1 / 3)
    dg = np.array([[0.0, 0.6, 0.0], [0.0, 0.0, 0.3]])
    state = record.update(record.init(x), Feedback(x, 0.0, np.zeros(3), dg @ x, dg))
    assert float(state.S) == pytest.approx(0.6)
    assert float(state.Q) == pytest.approx((0.6 + 0.3) / 3 / 0.6)
    assert np.asarray(state.gone).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("told", [{}, {"lam": 0.03}, {"scale": 4.0}])
def test_the_bound_at_fixed_numbers(told):
    N, V, t, F = 20, 0.3, 40_000, 1.7
    policy = bridle.policy("experts", bridle.Simplex(N, mass=2.0), V=V, **told)
    facts = {"lipschitz": 9.0, "diameter": 2.0 * sqrt(2.0), "feasible": np.eye(N)[0] * 2.0, "spread": F, "below": 0.0}
    l = log(N)
    lam = told.get("lam", 16.0 / 81.0 / (1.0 + l))
    theta, R = sqrt((1.0 + l) * lam), sqrt(4.0 + l) * sqrt(t * F**2)
    bound, unseen = policy.bound(facts, t), 1e-12 * 9.0 * 2.0 * sqrt(2.0) * t  # what is taken for rounding
    assert bound.regret == pytest.approx(R + theta / V, rel=1e-12)
    Q = log((1.0 - theta + V * (R + F * t)) / (1.0 - 2.0 * theta)) / lam
    assert bound.ccv == pytest.approx(max(F, told.get("scale", 0.0)) * Q + unseen, rel=1e-12)
    if not told:
        assert bound.ccv == pytest.approx(F * 81 / 16 * (1 + l) * log(5 + 9 * V * (R + F * t)) + unseen, rel=1e-12)
    assert policy.bound({**facts, "regret": -7.0}, t).ccv == pytest.approx(
        max(F, told.get("scale", 0.0)) * log((1.0 - theta + V * (R + 7.0)) / (1.0 - 2.0 * theta)) / lam + unseen, rel=1e-12
    )
    few = policy.bound(facts, 1)
    assert few.regret == few.ccv == pytest.approx(F)
    without = {key: value for key, value in facts.items() if key != "spread"}
    assert policy.bound(without, t).regret == pytest.approx(sqrt((4.0 + l) * t) * 9.0 * 2.0 * sqrt(2.0) + theta / V, rel=1e-12)


def test_a_bound_without_a_v_and_with_too_large_a_lam():
    policy, l = bridle.policy("experts", bridle.Simplex(4)), log(4)
    facts = {"lipschitz": 1.0, "diameter": sqrt(2.0), "feasible": np.eye(4)[0], "spread": 0.5, "below": 0.0}
    bound = policy.bound(facts, 10_000)
    assert bound.regret == pytest.approx(sqrt(4 + l) * 100 * 0.5 + 4 / 9 * 0.5 * 10, rel=1e-12)
    assert bound.ccv is None
    assert "V" in bound.why
    assert policy.bound({**facts, "V": 2.0}, 10_000).ccv > 0.0
    assert policy.bound({**facts, "V": 0.0}, 10_000).regret == 5000.0
    wild = bridle.policy("experts", bridle.Simplex(4), lam=0.25 / (1 + l))
    assert "too large" in wild.bound(facts, 10).why
    assert experts_bound(policy, {**facts, "convex": False}, 10).why == "a cost or a constraint is not convex"
    assert most_violation(2.0, 5.0, 0.1, 0.3) == pytest.approx(10 * log(10.7 / 0.4))


def test_certified_regret_is_adahedges_less_what_violations_paid():
    """Two experts, one round, by hand: mix loss min(l) = 0 while Delta = 0, so Delta_1 = <w, l> and Delta_0 = 0."""
    V, lam, w, f, c = 2.0, 0.1, np.array([0.5, 0.5]), np.array([0.0, 3.0]), np.array([0.0, 0.4])
    record = bridle.policy("experts", bridle.Simplex(2), V=V, lam=lam).record
    state = record.update(record.init(w), Feedback(w, 1.5, f, np.array([0.2]), c[None]))
    p = lam * exp(lam * 0.5)
    assert float(state.Y) == pytest.approx(p * 0.5, rel=1e-12)
    assert record.certified_regret(state) == pytest.approx((0.5 * (V * 3.0 + p) - p * 0.5) / V, rel=1e-12)


def test_it_plays_under_a_session_and_goes_on_after_a_save(tmp_path):
    rng = np.random.default_rng(4)
    rounds = [(rng.random(5), rng.random(5) * (np.arange(5) > 1) * (rng.random(5) < 0.2)) for _ in range(60)]
    policy = bridle.policy("experts", bridle.Simplex(5))
    session = bridle.Session(policy)
    for t, (f, c) in enumerate(rounds):
        x = session.decide()
        session.observe(f=float(f @ x), df=f, g=[float(c @ x)], dg=[c])
        if t == 30:
            session.save(tmp_path / "half")
            session = bridle.Session.load(tmp_path / "half", policy)
    np.testing.assert_array_equal(session.decide(), weights(rounds, 5, start=np.full(5, 0.2))[-1])
    certificate = session.certificate()
    totals = np.cumsum([f for f, _ in rounds], axis=0)[-1]
    assert certificate.regret <= certificate.regret_algorithm
    assert certificate.ccv <= certificate.bound.ccv
    assert certificate.cost - totals[:2].min() <= certificate.regret_algorithm


@pytest.mark.parametrize(
    ("domain", "given", "message"),
    [
        (bridle.Ball(3), {}, "domain must be a simplex for experts"),
        (bridle.Simplex(3), {"scale": 0.0}, "scale"),
        (bridle.Simplex(3), {"V": -1.0}, "V"),
        (bridle.Simplex(3), {"drop": 0.5}, "drop must be true or false"),
        (bridle.Simplex(3), {"constraints": 0}, "constraints"),
    ],
)
def test_bad_settings_are_refused(domain, given, message):
    with pytest.raises(InputError, match=message):
        bridle.policy("experts", domain, **given)


@pytest.mark.parametrize("adaptive", [0, 1])
def test_the_problem_of_experts_with_limits(adaptive):
    """The optimum is what it says, to rounding; the policy's bound holds on it, and Algorithm 1 violates more."""
    problem = bridle.problem("experts", horizon=600, dim=40, adaptive=adaptive)
    trace = bridle.play(bridle.policy_for("experts", problem), problem, engine="python")
    assert trace.warnings == ()
    bound = trace.policy.bound({**problem.constants, "V": float(trace.state.V)}, 600)
    assert bridle.regret(trace) <= bound.regret
    assert 0.0 < bridle.ccv(trace) <= bound.ccv
    plain = bridle.play(bridle.policy_for("sinha2024", problem), problem, engine="python")
    assert bridle.ccv(trace) < 0.5 * bridle.ccv(plain)
    best = bridle.play(Stay(), problem, engine="python", x1=problem.constants["optimum"])
    assert bridle.ccv(best) == 0.0
    assert bridle.regret(best) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("given", [{"share": 0.0}, {"share": 1.0}, {"dim": 1}, {"adaptive": 2}])
def test_the_problem_refuses_what_it_cannot_be(given):
    with pytest.raises(InputError, match=next(iter(given))):
        bridle.problem("experts", horizon=10, **given)

"""Limits on how often: the update against a transcription, the share on every stream, units, boxes, several limits, and late feedback."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import BridleWarning, Feedback, InputError
from bridle.domains.closed_form import BoxSet
from bridle.policies._rate import phi
from bridle.policies.levels import most_violations
from bridle.policies.trackers import shift
from helpers.demand import Rules, demand

ONE, DOWN = np.ones(1), np.array([[-1.0]])


def capacity(top=60.0, **settings):
    return bridle.policy("rate", bridle.Box(0.0, top, dim=1), **{"at_most": 0.05, "safe": [top], **settings})


def serve(session, values, rules=None):
    """Choose a capacity before each demand; what was chosen."""
    chosen = []
    for value in values:
        x = session.decide() if rules is None else session.decide(rules=rules.propose())
        session.observe(f=float(x[0]), df=ONE, g=float(value - x[0]), dg=-ONE)
        chosen.append(float(x[0]))
        if rules is not None:
            rules.see(value)
    return np.array(chosen)


# --- the update


class Transcription:
    """One coordinate, one limit g = d - x with costs x, K rules; the page in plain floats."""

    def __init__(self, K, eps, low, high, safe):
        self.w, self.R, self.S, self.b = np.full(K, 1 / K), np.zeros(K), np.zeros(K), np.zeros(K)
        self.start, self.eps, self.low, self.high, self.safe = self.w, eps, low, high, safe
        self.m = self.s = self.gram = self.pull = self.length = 0.0
        self.known = False

    def decide(self, a):
        self.a, self.y = a, float(self.w @ a)
        size = abs(self.m)
        margin = (self.m if size <= 1 else np.sign(self.m) * np.exp(size - 1)) * self.s
        self.x = min(max(self.y + margin / 2.0 * self.known, self.low), self.high)
        if self.m >= 8 - 1e-12:
            self.x = self.safe
        return self.x

    def observe(self, d, unit):
        # costs `unit` x, limits 2 (d - x)
        g, e = 2.0 * (d - self.x), 2.0 * (d - self.y)
        self.gram, self.pull = 0.95 * self.gram + 0.05 * 4.0, 0.95 * self.pull + 0.05 * 2.0 * unit
        price = max(self.pull / self.gram, 0.1 * unit / 2.0)
        grad = unit - 2.0 * price / self.eps * (e > 0)
        losses = self.a * grad
        r = self.w @ losses - losses
        self.R, self.S, self.b = self.R + r, self.S + r * r, np.maximum(self.b, abs(r))
        self.b = np.maximum(self.b, 1e-6 * self.b.max())
        eta = np.divide(1.0, self.b**2 + self.S, out=np.zeros_like(self.S), where=self.b > 0)
        weights = eta * np.maximum(self.R, 0)
        self.w = weights / weights.sum() if weights.sum() > 0 else self.start
        violated, before = g > 0, self.m
        self.m += 0.1 * (violated - self.eps)
        corner = self.known and self.s > 0 and self.x <= self.low
        if not violated and corner:
            self.m = before
        if before >= 8 - 1e-12 and violated and self.x == self.safe:
            self.m = before
        self.m = max(self.m, -3.0)
        self.s = abs(e) if self.s == 0 else 0.95 * self.s + 0.05 * abs(e)
        self.known = True


@pytest.mark.parametrize("kind", ["plain", "corner", "hopeless"])
def test_it_is_the_page(kind):
    rng = np.random.default_rng(3)
    low, high = (0.0, 30.0) if kind != "hopeless" else (0.0, 5.0)
    session = bridle.Session(bridle.policy("rate", bridle.Box(low, high, dim=1), at_most=0.1, safe=[high], rules=3), certify=False)
    script, corners, forced = None, 0, 0
    for t in range(900):
        base = 10.0 + 3.0 * np.sin(t / 7.0)
        a = np.clip(np.array([0.3 * base, base, 2.0 * base]), low, high)
        x = session.decide(rules=a[:, None])
        if script is None:
            script = Transcription(3, 0.1, low, high, high)
            script.w = script.start = np.array([0.0, 1.0, 0.0])  # the medoid
        expected = script.decide(a)
        assert x[0] == pytest.approx(expected, rel=1e-9, abs=1e-9), t
        d = {"plain": rng.gamma(3.0, base / 3.0), "corner": -1.0 if t % 400 < 300 else 12.0, "hopeless": 7.0}[kind]
        script.x = x[0]  # so that rounding cannot decide differently
        session.observe(f=3.0 * x[0], df=[3.0], g=2.0 * (d - x[0]), dg=[-2.0])
        script.observe(d, 3.0)
        corners, forced = corners + (x[0] == low), forced + (script.m >= 8 - 1e-12)
    limit = session.rates[0]
    assert limit.exact
    assert kind != "corner" or corners > 100
    assert kind != "hopeless" or (forced > 500 and limit.unavoidable > 500)


def test_phi_is_continuous_and_reaches_a_thousand():
    assert phi(np.array([1.0, -1.0, 8.0])).tolist() == pytest.approx([1.0, -1.0, np.exp(7.0)])
    assert phi(np.array([0.75, -0.75, 1.5, -1.5])).tolist() == pytest.approx([0.75, -0.75, np.exp(0.5), -np.exp(0.5)])
    assert np.isfinite(phi(np.array([1e6])))[0]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_shifts_are_least_norm_or_enough(d, k, seed):
    rng = np.random.default_rng(seed)
    rows, margins = rng.standard_normal((k, d)), rng.standard_normal(k)
    z = shift(rows, margins)
    sines = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True), compute_uv=False)
    if k <= d and sines.min() > 0.35:
        assert z == pytest.approx(np.linalg.pinv(rows) @ margins, abs=1e-7 * (1.0 + abs(z).max()))
    same = shift(np.tile(rows[:1], (k, 1)), margins)
    assert rows[0] @ same == pytest.approx(margins.max())


# --- the share


@pytest.mark.parametrize("kind", ["iid", "seasonal", "bursts", "shift"])
@pytest.mark.parametrize("at_most", [0.05, 0.2])
def test_the_share_comes_out(kind, at_most):
    session = bridle.Session(capacity(at_most=at_most), certify=False)
    values = demand(kind, 1_200)
    chosen = serve(session, values)
    limit = session.rates[0]
    assert limit.violated == (values > chosen).sum()
    assert (limit.counted, limit.open, limit.exact, limit.unavoidable) == (1_200, 0, True, int((values > 60.0).sum() and limit.unavoidable))
    assert limit.measured == limit.violated / 1_200
    assert abs(limit.measured - at_most) < 0.012
    assert limit.proved == pytest.approx((at_most * 1_200 + 80.0 + (1.0 - at_most) * (1.0 + limit.unavoidable)) / 1_200)


@given(st.integers(0, 10_000), st.sampled_from([0.02, 0.1, 0.5]), st.integers(1, 3), st.booleans())
@settings(max_examples=15, deadline=None)
def test_whatever_comes_no_more_than_proved(seed, at_most, k, safe):
    """Demand just above the action whenever the opponent likes, gradients that turn, rounds without limits."""
    rng = np.random.default_rng(seed)
    record = bridle.policy("rate", bridle.Box(-1.0, 1.0, dim=2), at_most=at_most, safe=[1.0, 1.0] if safe else None, constraints=k).record
    state = record.init(np.zeros(2))
    for t in range(250):
        x = record.decide(state)
        dg = -rng.uniform(0.0 if rng.random() < 0.1 else 0.5, 1.0, (k, 2))
        at_safe = (x == 1.0).all()
        g = np.where(at_safe & (rng.random(k) < 0.98), -0.1, rng.exponential(1.0, k) ** 4 * (1.0 if t % 90 < 60 else -1.0))
        none = rng.random(k) < 0.1
        g, dg = np.where(none, 0.0, g), np.where(none[:, None], 0.0, dg)
        state = record.update(state, Feedback(x, 0.0, rng.standard_normal(2) ** 3, g, dg))
        tally = record.tally(state)
        assert (tally.identity == 0.0).all()
        assert (tally.violated <= tally.most).all()


def test_an_opponent_that_is_never_satisfied_gets_close_to_the_bound():
    """Demand just above whatever is chosen, as long as that is not everything."""
    session = bridle.Session(capacity(top=1e12), [10.0], certify=False)
    for _ in range(1_500):
        x = session.decide()
        session.observe(f=float(x[0]), df=ONE, g=1e-3 if x[0] < 1e12 else -1.0, dg=-ONE)
    limit = session.rates[0]
    assert limit.exact
    assert 0.6 < limit.measured / limit.proved <= 1.0


def test_without_a_safe_action_the_identity_alone():
    session = bridle.Session(capacity(safe=None), certify=False)
    assert (session.rates[0].proved, session.rates[0].measured) == (None, None)
    serve(session, demand("iid", 400))
    limit = session.rates[0]
    assert limit.exact
    assert limit.proved is None
    assert "no safe action" in limit.why
    assert abs(limit.measured - 0.05) < 0.03


def test_after_a_quiet_time_it_answers():
    """Nothing is asked for in the first half: the level must not sink while the action is at its corner."""
    session = bridle.Session(capacity(top=1e4, safe=[1e4]), certify=False)
    values = np.concatenate([demand("iid", 300), np.full(1_500, -5.0), demand("iid", 100, 1)])
    chosen = serve(session, values)
    assert (chosen[500:1_800] == 0.0).all()
    assert (values > chosen)[-100:].sum() <= 20


def test_units_do_not_matter():
    """Actions, limits and costs in other units: the same decisions in these units, and the same counts."""
    values, found = demand("seasonal", 400), []
    for x_unit, g_unit, f_unit in ((1.0, 1.0, 1.0), (1e-3, 1e3, 1e-3), (1e3, 1e-3, 1e3)):
        for mine in (False, True):
            rules = Rules(60.0) if mine else None
            session = bridle.Session(capacity(top=60.0 * x_unit, **({"rules": Rules.SIZE} if mine else {})), certify=False)
            chosen = []
            for value in values:
                x = session.decide(**({"rules": x_unit * rules.propose()} if mine else {})) / x_unit
                session.observe(
                    f=float(f_unit * x[0]), df=f_unit / x_unit * ONE, g=float(g_unit * (value - x[0])), dg=-g_unit / x_unit * ONE
                )
                chosen.append(x[0])
                if mine:
                    rules.see(value)
            found.append(np.array(chosen))
    for plain, mixed in zip(found[2::2], found[3::2], strict=True):
        assert plain == pytest.approx(found[0], rel=1e-8)
        assert mixed == pytest.approx(found[1], rel=1e-8)


@pytest.mark.slow
def test_a_box_that_is_far_too_large_costs_little():
    """10,000 rounds, alike and seasonal, rules with "all there is" among them: boxes 10 and 100 times too large, all runs at once."""
    kinds, boxes, rounds = ("iid", "seasonal"), (1.0, 10.0, 100.0), 10_000
    tops = np.tile(60.0 * np.array(boxes), 2)
    values = np.array([demand(kind, rounds) for kind in kinds for _ in boxes])
    rules = [Rules(top) for top in tops]
    record = capacity(rules=Rules.SIZE).record
    record = record._replace(domain=BoxSet(np.zeros((6, 1)), tops[:, None]), safe=tops[:, None])
    state, totals, violated = record.init(np.full((6, 1), 10.0)), np.zeros(6), np.zeros(6)
    df, dg = np.ones((6, 1)), -np.ones((6, 1, 1))
    for t in range(rounds):
        state = record.propose(state, np.array([rule.propose() for rule in rules]))
        x = record.decide(state)
        g = values[:, t : t + 1] - x
        state = record.update(state, Feedback(x, x, df, g, dg))
        totals, violated = totals + x[:, 0], violated + (g[:, 0] > 0.0)
        for rule, value in zip(rules, values[:, t], strict=True):
            rule.see(value)
    costs = (totals / values.sum(axis=1)).reshape(2, 3)
    assert np.abs(violated / rounds - 0.05).max() < 0.002
    assert (np.abs(costs / costs[:, :1] - 1.0) < 0.05).all(), costs
    assert costs[1, 0] < 1.55  # the season is worth something: the best constant pays 1.89


def test_its_own_rules_do_not_know_how_large_the_box_is():
    values = demand("iid", 700)
    small, large = (serve(bridle.Session(capacity(top=top), [10.0], certify=False), values) for top in (1e3, 1e6))
    assert large == pytest.approx(small, rel=1e-6)


# --- cost


@pytest.mark.parametrize("seed", range(3))
def test_the_line_on_cost_holds_against_every_mixture(seed):
    """sum <df, y> + (pi/eps) e(y)^+ is at most that of any fixed mixture, moved alike, plus the gap that the state says."""
    rng, K = np.random.default_rng(seed), 4
    record = bridle.policy("rate", bridle.Box(0.0, 1.0, dim=2), at_most=[0.1, 0.3], safe=[1.0, 1.0], rules=K).record
    state, mixtures = record.init(np.full(2, 0.5)), np.vstack([np.eye(K), rng.dirichlet(np.ones(K), 20)])
    own, others = 0.0, np.zeros(len(mixtures))
    for _ in range(400):
        A = rng.uniform(0.0, 1.0, (K, 2))
        state = record.propose(state, A)
        x, y = record.decide(state), state.base
        df, dg = rng.uniform(0.0, 1.0, 2), -rng.uniform(0.2, 1.0, (2, 2))
        g = rng.uniform(-0.5, 0.5, 2)
        e = g + dg @ (y - x)
        after = record.update(state, Feedback(x, float(df @ x), df, g, dg))
        slope = record.slopes(after.prices, after.level, after.rounds)
        own += df @ y + slope @ np.maximum(e, 0.0)
        others += mixtures @ A @ df + np.maximum(g + (mixtures @ A - x) @ dg.T, 0.0) @ slope
        state = after
        assert (own <= others + record.cost_gap(state) + 1e-9 * abs(own)).all()
    assert (own - others).max() > 0.0  # without the gap the line would not hold


def test_prices_are_the_multipliers_of_the_costs():
    """grad f = -sum pi_i grad g_i, also where gradients are not at right angles, and none below 0."""
    record = bridle.policy("rate", bridle.Box(0.0, 9.0, dim=3), constraints=2).record
    state, dg = record.init(np.full(3, 5.0)), -np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    for df, best in (([1.0, 1.6, 1.0], [13 / 15, 13 / 15]), ([1.0, 0.5, 0.0], [0.75, 0.0])):
        df = np.array(df)
        for _ in range(300):
            x = record.decide(state)
            state = record.update(state, Feedback(x, 0.0, df, np.array([0.5, -0.5]), dg))
        assert state.prices.best == pytest.approx(best, abs=1e-6)
    assert state.prices.value[1] == pytest.approx(0.1 * np.linalg.norm([1.0, 0.5, 0.0]) / np.sqrt(2.0), rel=1e-6)


# --- several limits


def test_each_limit_has_its_share():
    rng = np.random.default_rng(5)
    session = bridle.Session(bridle.policy("rate", bridle.Box(0.0, 50.0, dim=2), at_most=[0.1, 0.3], safe=[50.0, 50.0]), certify=False)
    for _ in range(1_500):
        x, d = session.decide(), rng.gamma(4.0, 2.5, 2)
        session.observe(f=float(x.sum()), df=np.ones(2), g=d - x, dg=-np.eye(2))
    assert [limit.name for limit in session.rates] == ["limit 0", "limit 1"]
    assert [limit.at_most for limit in session.rates] == [0.1, 0.3]
    assert [abs(limit.measured - limit.at_most) < 0.015 for limit in session.rates] == [True, True]


def test_two_limits_on_one_number_are_both_kept():
    """Rows point the same way: the tighter one decides, and neither is forgotten."""
    rng = np.random.default_rng(6)
    session = bridle.Session(capacity(at_most=[0.3, 0.05], safe=[60.0]), certify=False)
    for _ in range(1_000):
        x, d = session.decide(), rng.gamma(4.0, 2.5)
        session.observe(f=float(x[0]), df=ONE, g=[d - x[0], d - 2.0 - x[0]], dg=[[-1.0], [-1.0]])
    first, second = session.rates
    assert abs(second.measured - 0.05) < 0.015
    assert first.measured < 0.3


def test_one_share_for_any_limit():
    rng = np.random.default_rng(7)
    session = bridle.Session(
        bridle.policy("rate", bridle.Box(0.0, 50.0, dim=2), at_most=0.1, safe=[50.0, 50.0], constraints=2, form="any"), certify=False
    )
    any_of_them = 0
    for _ in range(1_000):
        x, d = session.decide(), rng.gamma(4.0, 2.5, 2)
        any_of_them += bool((d > x).any())
        session.observe(f=float(x.sum()), df=np.ones(2), g=d - x, dg=-np.eye(2))
    (limit,) = session.rates
    assert (limit.name, limit.violated, limit.exact) == ("any limit", any_of_them, True)
    assert abs(limit.measured - 0.1) < 0.015


def test_a_limit_that_is_not_revealed_is_not_counted():
    rng = np.random.default_rng(8)
    session = bridle.Session(capacity(at_most=0.1), certify=False)
    positives = 0
    for _ in range(900):
        x, d, positive = session.decide(), rng.gamma(4.0, 2.5), rng.random() < 0.4
        positives += positive
        session.observe(f=float(x[0]), df=ONE, **({"g": float(d - x[0]), "dg": -ONE} if positive else {}))
    limit = session.rates[0]
    assert limit.counted == positives
    assert abs(limit.measured - 0.1) < 0.03


# --- late feedback


@pytest.mark.parametrize("mine", [False, True])
def test_late_feedback_in_any_order(mine, tmp_path):
    """The counts of what has arrived, whatever the order; saved and loaded in between it goes on bit for bit."""
    rng, values = np.random.default_rng(9), demand("iid", 500)
    more = {"rules": 3} if mine else {}
    session, open_rounds, violated = bridle.Session(capacity(at_most=0.1, **more), certify=False), [], 0
    for t, value in enumerate(values):
        R = np.array([[5.0], [10.0 + t % 7], [30.0]])
        ticket = session.ask(**({"rules": R} if mine else {}))
        open_rounds.append((ticket, value))
        while len(open_rounds) > rng.integers(1, 9):
            waiting, late = open_rounds.pop(rng.integers(len(open_rounds)))
            violated += late > waiting.x[0]
            given = {"f": float(waiting.x[0]), "df": ONE, "g": float(late - waiting.x[0]), "dg": -ONE}
            session.observe(**given, ticket=waiting)
        if t == 250:
            session.save(tmp_path / "run.npz")
            other = bridle.Session.load(tmp_path / "run.npz")
            for waiting, late in open_rounds:
                given = {"f": float(waiting.x[0]), "df": ONE, "g": float(late - waiting.x[0]), "dg": -ONE}
                other.observe(**given, ticket=int(waiting))
            assert other.rates[0].counted == 251
            assert other.rates[0].exact
    limit, state = session.rates[0], session.state
    assert (limit.counted, limit.open, limit.violated, limit.exact) == (500 - len(open_rounds), len(open_rounds), violated, True)
    assert state.level.open == 8.0
    expected = most_violations(0.1, limit.counted, 80.0 * 9.0, 0.0, 8.0)
    assert limit.proved == pytest.approx(min(1.0, expected / limit.counted))
    assert abs(limit.measured - 0.1) < 0.06


def test_a_file_between_late_rounds_goes_on_bit_for_bit(tmp_path):
    session = bridle.Session(capacity(rules=2), certify=False)
    R = np.array([[4.0], [20.0]])

    def answer(which, ticket):
        x = float(ticket.x[0])
        which.observe(f=x, df=ONE, g=9.0 - x, dg=-ONE, ticket=int(ticket))

    tickets = [session.ask(rules=R + i) for i in range(6)]
    answer(session, tickets[3])
    session.save(tmp_path / "run.npz")
    other = bridle.Session.load(tmp_path / "run.npz")
    for ticket in (tickets[5], tickets[0], tickets[4]):
        answer(session, ticket)
        answer(other, ticket)
        assert session.decide(rules=R).tobytes() == other.decide(rules=R).tobytes()
        assert session.rates == other.rates


def test_copies_add_their_bounds():
    session = bridle.Session(capacity(at_most=0.1), certify=False, late="copies")
    for value in demand("iid", 60):
        first, second = session.ask(), session.ask()
        for ticket in (second, first):
            x = float(ticket.x[0])
            session.observe(f=x, df=ONE, g=float(value - x), dg=-ONE, ticket=ticket)
    limit = session.rates[0]
    assert (limit.counted, limit.exact) == (120, True)
    assert limit.proved == 1.0  # two copies, 80.9 violations each


# --- sessions


def test_a_session_says_what_is_proved():
    session = bridle.Session(capacity(top=30.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", BridleWarning)  # limits that no action keeps always are no alarm
        serve(session, demand("iid", 400) + 10.0)
    proof, limit = session.certificate(), session.rates[0]
    assert proof.rates == session.rates
    assert proof.conflict is None
    assert (proof.regret, proof.bound.regret, proof.bound.ccv) == (None, None, None)
    assert "on how often" in proof.why
    assert "session.rates" in session.bound().why
    lines = [line for line in session.report().splitlines() if line.startswith("Rate: ")]
    assert len(lines) == 1
    assert f"{limit.violated} of 400 counted rounds" in lines[0]
    assert f"more than {100.0 * limit.proved:.4g} %" in lines[0]
    assert ("even the safe action" in lines[0]) == (limit.unavoidable > 0)


def test_other_policies_have_no_rates():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    with pytest.raises(InputError, match="policy anytime keeps no limits on how often; policy rate does"):
        _ = session.rates
    assert session.certificate().rates == ()


def test_rules_of_ones_own_are_mixed():
    values, rules = demand("seasonal", 600), Rules(60.0)
    session = bridle.Session(capacity(rules=[f"rule {i}" for i in range(Rules.SIZE)]))
    serve(session, values, rules)
    assert session.weights.shape == (Rules.SIZE,)
    assert session.weights.sum() == pytest.approx(1.0)
    assert session.weights[1] < 0.05  # "all there is"
    assert "Rules: " in session.report()
    assert abs(session.rates[0].measured - 0.05) < 0.01


def test_rules_must_be_told_and_may_sleep():
    session = bridle.Session(capacity(rules=2), certify=False)
    with pytest.raises(InputError, match="rules must be given"):
        session.decide()
    assert session.decide(rules=[[8.0], [np.nan]]) == pytest.approx([8.0])
    session.observe(f=8.0, df=ONE, g=-1.0, dg=-ONE)
    with pytest.raises(InputError, match="rules must be given"):
        session.decide()
    assert session.state.learner.R[1] == 0.0


def test_a_mixture_for_each_coordinate():
    rng = np.random.default_rng(11)
    policy = bridle.policy("rate", bridle.Box(0.0, 50.0, dim=2), at_most=[0.1, 0.1], safe=[50.0, 50.0], rules=3, rules_per="coordinate")
    session = bridle.Session(policy, certify=False)
    for _ in range(600):
        R = np.array([[4.0, 40.0], [15.0, 15.0], [40.0, 4.0]])
        x, d = session.decide(rules=R), rng.gamma([4.0, 4.0], [1.0, 6.0])
        session.observe(f=float(x.sum()), df=np.ones(2), g=d - x, dg=-np.eye(2))
    assert session.weights.shape == (3, 2)
    assert session.weights.sum(axis=0) == pytest.approx([1.0, 1.0])
    assert all(abs(limit.measured - 0.1) < 0.03 for limit in session.rates)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"at_most": 0.0}, "at_most must be a share"),
        ({"at_most": [0.1, 2.0]}, "at_most must be a share"),
        ({"at_most": "often"}, "at_most must be"),
        ({"at_most": [[0.1]]}, "at_most must be a number or a list"),
        ({"at_most": [0.1, 0.2], "constraints": 3}, "one for each of the 3 constraints"),
        ({"safe": [100.0]}, "safe must lie in the domain"),
        ({"safe": [1.0, 2.0]}, r"safe must have shape \(1,\)"),
        ({"form": "all"}, "unknown form 'all'"),
        ({"form": "any", "at_most": [0.1, 0.2]}, "at_most must be one share with form='any'"),
        ({"step": 0.0}, "step must be above 0"),
    ],
)
def test_what_cannot_be_used_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        capacity(**settings)


@pytest.mark.compiles
def test_compiled_it_is_the_same():
    problem = bridle.problem("halfspaces", 300, 0, domain=bridle.Box([-0.5], [1.0]))
    policy = bridle.policy_for("rate", problem, safe=[0.0])
    python, compiled = (bridle.play(policy, problem, engine=engine, keep="decisions") for engine in ("python", "compiled"))
    assert np.asarray(compiled.decisions) == pytest.approx(np.asarray(python.decisions), abs=1e-12)
    assert compiled.state.level.violated == python.state.level.violated

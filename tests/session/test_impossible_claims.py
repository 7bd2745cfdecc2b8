"""No certificate and no bound says what cannot be: below what any action can have lost, or below what is on the counter already."""

from __future__ import annotations

import warnings
from dataclasses import fields
from math import cos, isnan, pi, sin
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import policies
from bridle.core import DoesNotApply, Feedback
from bridle.session.certificates import clocks
from bridle.session.certificates.ledger import Ledger
from helpers.extent import WHOLE
from helpers.inside import proved
from helpers.instances import make_domain

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")


def told(certificate: Any) -> list[Any]:
    return [(f.name, v.tobytes() if isinstance(v := getattr(certificate, f.name), np.ndarray) else repr(v)) for f in fields(certificate)]


def sound(session: bridle.Session, lengths: float, curvature: float = 0.0) -> Any:
    """The certificate, if nothing in it is impossible; `lengths` is the sum of |grad f|, `curvature` that of the moduli."""
    found, D = session.certificate(), session.plan.domain.diameter()
    rounding = 1e-9 * D * lengths + 1e-9 * abs(found.ccv)
    numbers = (found.regret, found.regret_any, found.regret_algorithm, found.squared, found.squared_bound, *found.bound[:3])
    assert not any(isinstance(number, float) and isnan(number) for number in numbers)
    for regret in (found.regret, found.regret_algorithm):
        assert regret is None or regret >= -D * lengths - 0.5 * curvature * D * D - rounding
    assert found.regret is None or found.regret <= found.regret_any
    assert found.squared_bound is None or found.squared <= found.squared_bound * (1.0 + 1e-6) + 1e-12 * D * D
    assert found.bound.ccv is None or found.ccv <= found.bound.ccv + rounding
    assert found.bound == session.bound()
    if found.conflict is not None:
        assert found.regret is found.regret_algorithm is found.squared_bound is found.witness is None
        assert found.bound.regret is found.bound.ccv is found.bound.soft is None
        assert found.conflict.margin > 0.0
        assert "no action satisfies" in found.why
        assert found.bound.why
    return found


@pytest.mark.slow
def test_halfspaces_all_around_that_are_met_a_few_at_a_time():
    """The few that are kept always have an action in common; all of them together have none, and their sum is in every certificate."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    noticed, alarmed = [], []
    for t in range(2000):
        a, x, c = 2.0 * pi * t / 2000.0, session.decide(), np.array([1.0 if t % 2 else -1.0, 0.0])
        normal = np.array([cos(a), sin(a)])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session.observe(f=float(c @ x), df=c, g=float(normal @ x) + 0.5, dg=normal)
        alarmed += [t + 1] * any(w.category is bridle.InfeasibleWarning for w in caught)
        if alarmed and t > alarmed[0] + 100:
            break
        if t % 100 == 0 or t > 1400:
            noticed += [t + 1] * (sound(session, t + 1.0).conflict is not None)
    assert len(alarmed) == 1
    assert noticed[0] > 1400
    assert noticed[0] <= alarmed[0] <= noticed[0] + clocks.ASSUMPTIONS_EVERY
    found = session.certificate()
    assert found.regret is None
    assert (found.conflict.rounds, found.conflict.found) == ((), alarmed[0])
    assert "the constraints of all violated rounds together: every action is" in session.report()


@pytest.mark.parametrize(("dim", "k", "rounds"), [(600, 12, 40), pytest.param(5_000, 1, 80, marks=pytest.mark.slow)])
def test_many_dimensions_between_looks(dim, k, rounds):
    """No programs are solved there: the sums alone must show it."""
    rng, session, lengths = np.random.default_rng(0), bridle.Session(bridle.policy("anytime", bridle.Ball(dim))), 0.0
    first = None
    for t in range(1, rounds + 1):
        x, c = session.decide(), rng.standard_normal(dim) / np.sqrt(dim)
        A = rng.standard_normal((k, dim)) if t % 2 else -A  # noqa: F821
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        session.observe(f=float(c @ x), df=c, g=A @ x + 0.3, dg=A)
        lengths += float(np.linalg.norm(c))
        if sound(session, lengths).conflict is not None and first is None:
            first = t
    assert first is not None
    assert first < clocks.CONTRADICTION_EVERY  # before the session itself has looked
    assert proved(session).ledger.conflict.found <= 2 * clocks.CONTRADICTION_EVERY


SHAPES = ("ball", "box", "simplex", "l1", "cut-box", "product")


def stream(seed: int, kind: str) -> tuple[Any, Any, np.random.Generator]:
    """A domain, and limits that contradict each other sooner or later, as a function of the round and the decision."""
    rng = np.random.default_rng(seed)
    domain = make_domain(kind, int(rng.integers(1, 6)), 10.0 ** rng.uniform(-3.0, 3.0), rng)
    D, middle, d = domain.diameter(), domain.center(), domain.dim
    habit, size, turn = int(rng.integers(5)), 10.0 ** rng.uniform(-8.0, -0.3) * D, rng.uniform(0.02, 1.0)
    base = rng.standard_normal((2, d))

    def limit(t: int, x: np.ndarray) -> tuple[float, np.ndarray]:
        if habit == 0:  # two that face each other
            a = base[0] * (1.0 if t % 2 else -1.0)
        elif habit == 1:  # one that turns
            a = cos(turn * t) * base[0] + sin(turn * t) * base[1]
        elif habit == 2:  # whatever, around the middle
            a = rng.standard_normal(d)
        elif habit == 3:  # the worst at this decision
            a = x - middle + 1e-3 * D * rng.standard_normal(d)
        else:  # all but the same, again and again
            a = base[0] * (1.0 if t % 2 else -1.0) + 1e-7 * rng.standard_normal(d)
        a = a * 10.0 ** rng.uniform(-6.0, 2.0) / np.linalg.norm(a)
        return float(a @ (x - middle)) + size * float(np.linalg.norm(a)), a

    return domain, limit, rng


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**31), st.sampled_from(SHAPES), st.sampled_from(["anytime", "plain", "sinha2024", "adagrad"]), st.booleans())
def test_no_certificate_of_an_infeasible_stream_is_impossible(seed, kind, name, curved):
    domain, limit, rng = stream(seed, kind)
    G = 10.0 ** rng.uniform(-3.0, 3.0)
    given = {"plain": {"halfspace": False}, "sinha2024": {"horizon": 100, "lipschitz": G}}.get(name, {})
    session = bridle.Session(bridle.policy("anytime" if name == "plain" else name, domain, **given))
    lengths = moduli = 0.0
    for t in range(1, 81):
        x, c = session.decide(), rng.standard_normal(domain.dim) * G
        g, dg = limit(t, x)
        modulus = G / domain.diameter() * rng.random() if curved and rng.random() < 0.7 else None
        session.observe(f=float(c @ x), df=c, g=g, dg=dg, modulus=modulus)
        lengths, moduli = lengths + float(np.linalg.norm(c)), moduli + (modulus or 0.0)
        if rng.random() < 0.15 or t == 80:
            sound(session, lengths, moduli)


def make(name: str, domain: Any) -> Any:
    """A registered policy on a domain, told what it must know; None where it does not accept the domain."""
    problem = bridle.problem("halfspaces", horizon=150, domain=domain)
    given = {"modulus": 1.0, "slater": 0.1, "bound": 4.0, "constraints": 1}
    wanted = {key: value for key, value in given.items() if key in policies.entry(name).needs}
    try:
        return bridle.policy_for(name, problem, **wanted)
    except (DoesNotApply, bridle.InputError):
        return None


@pytest.mark.slow
@pytest.mark.parametrize("name", policies.names())
def test_no_policy_promises_less_than_is_on_the_counter(name):
    """Under limits that contradict each other, at every round, between looks too."""
    domains = (bridle.Box(0.0, 1.0, dim=1), bridle.Ball(2), bridle.Box(-1.0, 1.0, dim=3), bridle.Simplex(3))
    games = [(seed, domain, policy) for seed, domain in enumerate(domains) if (policy := make(name, domain)) is not None]
    assert games
    for seed, domain, policy in games if WHOLE or len(games) == 1 else games[policies.names().index(name) % 2 :: 2]:
        rng, D, middle = np.random.default_rng(seed), domain.diameter(), domain.center()
        session, lengths, k = bridle.Session(policy), 0.0, len(getattr(policy.record, "each", (1,)))
        for t in range(1, 101):
            c, a = rng.standard_normal(domain.dim) / 2.0, np.eye(domain.dim)[0] * (1.0 if t % 2 else -1.0)
            if t > 60:
                a = rng.standard_normal(domain.dim)
                a /= np.linalg.norm(a)
            if hasattr(policy.record, "points"):  # it sees values alone, at the points that it tries
                session.step(lambda x, c=c: float(c @ x), [lambda x, a=a: float(a @ (x - middle)) + 0.2 * D])  # noqa: B023
            else:
                x = session.decide()
                session.observe(f=float(c @ x), df=c, g=[float(a @ (x - middle)) + 0.2 * D] * k, dg=[a] * k)
            lengths += float(np.linalg.norm(c))
            found = session.bound()
            assert found.ccv is None or found.ccv >= session.ccv * (1.0 - 1e-9)
            assert found.soft is None or found.soft >= session.balances.max() * (1.0 - 1e-9) - 1e-9
            if t % 9 == 0 and not hasattr(policy.record, "points"):  # there are no certificates of values alone
                sound(session, lengths)


def test_asking_changes_nothing_and_the_next_look_finds_it_by_itself():
    quiet, asked = (bridle.Session(bridle.policy("adagrad", bridle.Ball(700))) for _ in range(2))
    rng = np.random.default_rng(1)
    first = None
    for t in range(1, 100):
        a, c = rng.standard_normal((2, 700)) / 30.0
        a = np.eye(700)[0] * (1.0 if t % 2 else -1.0) + 0.1 * a
        for session in (quiet, asked):
            session.observe(f=float(c @ session.decide()), df=c, g=float(a @ session.decide()) + 0.4, dg=a)
        found = asked.certificate()
        asked.report(), asked.bound()
        if found.conflict is not None and first is None:
            first = t
            assert proved(asked).ledger.conflict is None  # it is the certificate's own
            assert proved(asked).ledger.witness is not None
    assert told(quiet.certificate()) == told(asked.certificate())
    assert first < quiet.alarms["InfeasibleWarning"] == quiet.certificate().conflict.found <= first + clocks.ASSUMPTIONS_EVERY


# --- the policy's own proof -----------------------------------------------------------------------------------------------------------


def there_and_back(rounds: int, told_drift: float, **more: Any) -> tuple[bridle.Session, list[Any]]:
    """Limits that allow one end of a segment, then the other one; the costs pull away from what is allowed."""
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=1), drift=told_drift, **more))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for t in range(2 * rounds):
            x, back = float(session.decide()[0]), t >= rounds
            sign = -1.0 if back else 1.0
            session.observe(f=sign * x, df=[sign], g=x if back else 1.0 - x, dg=[1.0 if back else -1.0])
    return session, [w.message for w in caught]


@pytest.mark.parametrize(("rounds", "more"), [(15, {}), (30, {"V": 1.0}), (300, {})])
def test_an_action_that_moves_may_lose_in_every_round(rounds, more):
    """So what it gains is not what the best fixed one does: no bound below what has happened, no alarm, and no NaN."""
    session, alarms = there_and_back(rounds, 1.0, **more)
    found = session.certificate()
    assert alarms == []
    assert found.squared == pytest.approx(1.25, abs=1e-9)
    policy, state = session.plan.record, session.state
    assert found.squared_bound == policy.certified_squares(state, 2.0 * rounds, 2.0 * rounds)  # D sum |grad f|
    assert found.squared <= found.squared_bound
    assert found.regret_algorithm is not None


class Boastful:
    """A policy whose proof allows next to nothing; `regret` and `squares` are what it says."""

    def __init__(self, regret: float | None, squares: float | None) -> None:
        self.domain, self.regret, self.squares = bridle.Ball(2), regret, squares

    def init(self, x1):
        return (x1,)

    def decide(self, state):
        return state[0]

    def update(self, state, feedback):
        return state

    def certified_regret(self, state):
        return self.regret

    def certified_squares(self, state, squares, gain):
        return self.squares


@pytest.mark.parametrize(
    ("regret", "squares", "stands"),
    [
        (-101.0, 5.0, False), (-100.0, 5.0, True), (3.0, 4.0, True), (3.0, 3.9, False), (3.0, float("nan"), False), (None, 4.0, True),
        (None, None, True),
    ],
)  # fmt: skip
def test_a_proof_that_the_run_contradicts_is_not_passed_on(regret, squares, stands):
    """100 rounds at 0 of cost x_1, so that no action can have lost more than 100; 16 violations by 1/2 make squares of 4."""
    session = bridle.Session(Boastful(regret, squares))
    for t in range(100):
        session.observe(f=0.0, df=[1.0, 0.0], g=0.5 if t < 16 else -1.0, dg=[0.0, 1.0])
    found = session.certificate()
    assert found.squared == pytest.approx(4.0)
    assert (found.regret_algorithm, found.squared_bound) == ((regret, squares) if stands else (None, None))
    parts = proved(session).complete()
    assert (parts.absurd() is None) == stands
    assert found.regret is not None
    if not stands:
        expected = {"regret": -101.0, "least": pytest.approx(-100.0)} if regret == -101.0 else {"squared": pytest.approx(4.0)}
        assert expected.items() <= parts.absurd().figures.items()


def test_a_theorem_whose_proof_the_run_contradicts_is_void(monkeypatch):
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    for _ in range(20):
        session.observe(f=0.0, df=[1.0, 0.0], g=-1.0, dg=[0.0, 1.0])
    assert session.bound().regret is not None
    record = type(session.plan.record)
    monkeypatch.setattr(record, "certified_regret", lambda *_: -1e6)
    found = session.certificate()
    assert found.regret_algorithm is None
    assert found.bound == session.bound()
    assert found.bound.regret is found.bound.ccv is None
    assert "by the policy's own proof regret is at most -1e+06, while no action can have lost more than" in found.bound.why
    assert "no action satisfies every constraint" in found.bound.why


# --- the sum of all violated rounds ---------------------------------------------------------------------------------------------------


def feed(ledger: Ledger, *rounds: tuple[list[float], float]) -> Ledger:
    """Rounds at the middle, each violated by a distance along a normal; no costs."""
    for t, (normal, far) in enumerate(rounds, 1):
        n = np.array([normal])
        ledger.take(Feedback(ledger.domain.middle, 0.0, np.zeros(len(normal)), far * np.linalg.norm(n, axis=1), n), t)
    return ledger.complete()


def test_the_depth_of_the_sum_is_what_it_is_said_to_be():
    """In the unit disk, <n, u> <= -far for three unit normals n: their mean is at least -|mean n|, so its depth is mean far - |mean n|."""
    full = feed(Ledger(bridle.Ball(2), 2), ([1.0, 0.0], 0.4), ([-2.0, 0.0], 0.1), ([0.0, 3.0], 0.5))
    assert full._depth_of_sum() == pytest.approx(1.0 / 3.0 - 1.0 / 3.0, abs=1e-8)
    assert full._depth_of_sum() < 0.0  # rounding is allowed for
    full.add_up(7)
    assert full.conflict is None
    deeper = feed(Ledger(bridle.Ball(2), 2), ([1.0, 0.0], 0.4), ([-2.0, 0.0], 0.1), ([0.0, 3.0], 0.5 + 3e-7))
    assert deeper._depth_of_sum() == pytest.approx(1e-7, rel=0.1)
    deeper.add_up(7)
    assert deeper.conflict == ((), (), (), deeper._depth_of_sum(), 7)
    assert deeper.witness is None
    found = deeper.conflict
    deeper.add_up(9)
    assert deeper.conflict is found  # the first proof stays


@pytest.mark.parametrize("dim", [1, 3, 30])
def test_a_certificate_searches_to_the_end_and_the_session_in_its_own_time(dim):
    """Two limits that face each other, with others before and between: named at once, and in the session's own look."""
    session, quiet = (bridle.Session(bridle.policy("adagrad", bridle.Box(-1.0, 1.0, dim=dim))) for _ in range(2))
    for t in range(1, 71):
        x, a = session.decide(), np.eye(dim)[t % dim]
        g = {5: x[0] + 0.5, 9: 0.5 - x[0]}.get(t, float(a @ x) - 1.5)
        dg = {5: np.eye(dim)[0], 9: -np.eye(dim)[0]}.get(t, a)
        for each in (session, quiet):
            each.observe(f=float(x[0]), df=np.eye(dim)[0], g=g, dg=dg)
        found = sound(session, float(t))
        assert (found.conflict is not None) == (t >= 9)
        own = proved(quiet).ledger.conflict
        assert own is None or t >= clocks.CONTRADICTION_EVERY
    assert found.conflict.rounds == (5, 9)
    assert found.conflict.found == own.found == clocks.CONTRADICTION_EVERY
    assert found.conflict.margin == pytest.approx(0.5, abs=1e-6)
    assert told(session.certificate()) == told(quiet.certificate())


def test_limits_that_may_move_are_not_searched():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2), drift=1.0))
    for sign in (1.0, -1.0) * 20:
        session.observe(f=0.0, df=[1.0, 0.0], g=0.5 + sign * session.decide()[1], dg=[0.0, sign])
    assert session.certificate().conflict is None
    assert session.bound().regret is not None


def test_a_bound_that_weights_cannot_save_is_a_proof(monkeypatch):
    """Where no search is at hand, the bound on regret finds by itself that its weights are a proof: x_1 >= 1/2 in a ball of radius 1/4."""
    ledger = Ledger(bridle.Ball(2, radius=0.25), 2)
    ledger.take(Feedback(np.zeros(2), 0.0, np.array([1.0, 0.0]), np.array([0.5]), np.array([[-1.0, 0.0]])), 1)
    full = ledger.complete()
    monkeypatch.setattr(Ledger, "_depth_of_sum", lambda self: -1.0)
    regret, every, why = full.regret(7)
    assert (regret, every) == (None, pytest.approx(0.25, abs=1e-6))
    assert why == "no action satisfies every constraint, so there is none to compare with"
    assert (full.conflict[:3], full.conflict.found) == (((), (), ()), 7)
    assert full.conflict.margin == pytest.approx(0.25, abs=1e-6)
    assert full.witness is None

"""Feedback that comes late, in any order, in parts, or never: guarantees, totals, what is charged, and what changes nothing."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import warnings
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import records
from bridle.session.late import ROUNDS, SHARED, round_of
from helpers.inside import proved, state
from helpers.instances import constraint_at, cost_at, instances, moves
from helpers.sessions import assert_identical, snapshot

COST = {"f": 0.3, "df": [1.0, 0.0]}
LIMIT = {"g": 0.1, "dg": [0.0, 1.0]}


def start(name: str = "", dim: int = 2, **more: Any) -> bridle.Session:
    name = name or ("adagrad" if more.get("late") == "pool" else "anytime")
    given = {"sinha2024": {"horizon": 5000, "lipschitz": 1.0}, "anytime": {}, "adagrad": {"delay": 0}}[name]
    own = {key: more.pop(key) for key in ("halfspace",) if key in more}
    return bridle.Session(bridle.policy(name, bridle.Ball(dim), **given, **own), **more)


def saved(session: bridle.Session, folder: Any) -> dict[str, bytes]:
    """Everything there is, as it would be written, but for the name of the run and the part of tickets' numbers that is drawn anew."""
    session.save(folder / "now.npz")
    with np.load(folder / "now.npz") as file:
        arrays = {re.sub(r"(?<=made\.)\d+", lambda found: str(round_of(int(found[0]))), name): file[name] for name in file.files}
    arrays["header"] = np.array(re.sub(r'"(run|digest)": "\w+"', "", str(arrays["header"])))
    arrays["late.waiting"][:, 0] %= ROUNDS
    return {name: array.tobytes() for name, array in arrays.items() if "digest" not in name}


# --- tickets --------------------------------------------------------------------------------------------------------------------------


def test_a_ticket_is_a_number_and_a_decision():
    session = start()
    first, second = session.ask(), session.ask()
    assert (first.id, int(second), list("abc")[first]) == (1, 2, "b")
    np.testing.assert_array_equal(first.x, [0.0, 0.0])
    assert first == bridle.Ticket(1, second.x, first.run)
    assert len({first, second, first}) == 2
    first.x[:] = 9.0  # it is the caller's
    session.observe(**COST, **LIMIT, ticket=int(second))
    session.observe(**COST, ticket=np.int64(1))
    assert (session.rounds, session.pending) == (2, 0)
    assert session.cost == 0.6
    assert session.ccv == 0.1


@pytest.mark.parametrize("late", ["copies", "pool"])
def test_a_round_that_is_asked_for_and_observed_at_once_is_a_plain_one(late):
    plain, asked = start(late=late), start(late=late)
    rng = np.random.default_rng(0)
    for _ in range(100):
        c, a = rng.uniform(-0.7, 0.7, (2, 2))
        x = plain.decide()
        plain.observe(float(c @ x), c, float(a @ x), a)
        ticket = asked.ask()
        np.testing.assert_array_equal(ticket.x, x)
        asked.observe(float(c @ x), c, float(a @ x), a, ticket=ticket)
    states = [state(session).copies[0].state for session in (plain, asked)]
    for p, q in zip(records.leaves(states[0]).values(), records.leaves(states[1]).values(), strict=True):
        assert np.asarray(p).tobytes() == np.asarray(q).tobytes()
    assert (plain.rounds, plain.cost, plain.ccv) == (asked.rounds, asked.cost, asked.ccv)
    assert plain.certificate().regret == asked.certificate().regret


def test_late_feedback_is_about_the_decision_of_its_own_ticket():
    for late in ("copies", "pool"):
        session = start(late=late)
        old = session.ask()
        for _ in range(10):
            session.observe(0.0, [1.0, 0.0], -1.0, [0.0, 1.0])
        assert not np.array_equal(session.decide(), old.x)
        seen: list[Any] = []
        session.history = seen.append
        session.observe(0.5, [0.0, 1.0], 0.25, [0.0, 1.0], ticket=old)
        np.testing.assert_array_equal(seen[0]["x"], old.x)
        assert (seen[0]["ticket"], seen[0]["round"], seen[0]["f"]) == (1, 11, 0.5)
        # The halfspace that the certificate keeps is the one at the old decision: x_2 <= -1/4.
        normals, levels = proved(session).ledger.complete().halfspaces.lines
        i = int(np.argmax(normals @ [0.0, 1.0]))
        assert levels[i] == pytest.approx(-0.25, abs=1e-9)


@pytest.mark.parametrize("bad", [0, 3, -1, "1", 1.0, 1.5, None.__class__, True, [1], np.array([1, 2])])
@pytest.mark.parametrize("what", ["observe", "forget"])
def test_tickets_that_are_none_are_one_error(bad, what):
    session = start()
    session.ask(), session.ask()
    with pytest.raises(bridle.InputError, match=r"^ticket ") as wrong:
        session.observe(**COST, ticket=bad) if what == "observe" else session.forget(bad)
    assert "\n" not in str(wrong.value)
    assert (session.rounds, session.pending) == (0, 2)


def test_a_ticket_is_used_once():
    session = start()
    ticket = session.ask()
    session.observe(**COST, ticket=ticket)
    for again in (lambda: session.observe(**COST, ticket=ticket), lambda: session.forget(ticket)):
        with pytest.raises(bridle.InputError, match="ticket 1 is closed: it was observed, forgotten or dropped"):
            again()
    assert session.rounds == 1


def test_a_record_without_a_part_says_that_there_is_none():
    session = start()
    session.observe(**COST, ticket=session.ask())
    session.observe(**LIMIT, ticket=session.ask())
    session.observe(ticket=session.ask())
    assert (session.rounds, session.dropped) == (3, 0)


# --- what never comes -----------------------------------------------------------------------------------------------------------------


def test_what_is_forgotten_is_charged():
    session = start("sinha2024")
    first, second, third = session.ask(), session.ask(), session.ask()
    session.observe(0.3, [0.6, 0.0], ticket=second)
    before = session.bound()
    session.forget(first)
    session.forget(third)
    assert (session.rounds, session.pending, session.dropped) == (1, 0, 2)
    found = session.certificate()
    assert found.charge.declared
    assert (found.charge.regret, found.charge.ccv) == (4.0, 4.0)  # G D = 2 each
    after = session.bound()
    assert before.regret is not None
    alone = session.policy.bound({"lipschitz": 0.6, "diameter": 2.0, "feasible": np.zeros(2)}, 1.0)
    assert (after.regret, after.ccv) == (alone.regret + 4.0, alone.ccv + 4.0)
    assert "Dropped: the feedback of 2 rounds never came" in session.report()
    assert "the Lipschitz constant given" in session.report()


def test_without_a_lipschitz_constant_the_charge_says_that_it_is_a_guess():
    session = start()
    session.observe(0.1, [3.0, 0.0], -1.0, [0.0, 0.5])
    session.forget(session.ask())
    found = session.certificate()
    assert (found.charge.regret, found.charge.ccv, found.charge.declared) == (6.0, 1.0, False)
    assert "if those missing are no longer" in session.report()


def test_a_copy_that_was_forgotten_plays_again():
    session = start()
    for _ in range(50):
        session.forget(session.ask())
    assert len(state(session).copies) <= 2


def test_the_oldest_makes_way_when_too_many_wait():
    session = start(pending=3)
    tickets = [session.ask() for _ in range(3)]
    with pytest.warns(bridle.DroppedWarning, match="ticket 1 was dropped: too many rounds were waiting") as caught:
        tickets += [session.ask() for _ in range(4)]
    assert len(caught) == 1
    assert caught[0].message.ticket == 1
    assert (session.pending, session.dropped) == (3, 4)
    for ticket in tickets[:4]:
        with pytest.raises(bridle.InputError, match="is closed"):
            session.observe(**COST, ticket=ticket)
    for ticket in tickets[4:]:
        session.observe(**COST, **LIMIT, ticket=ticket)
    assert session.rounds == 3


@pytest.mark.filterwarnings("ignore::bridle.core.DroppedWarning")
def test_what_waits_too_long_is_dropped():
    session = start(timeout=2)
    first = session.ask()
    session.ask()
    session.ask()  # two further rounds have begun: the first may still be observed
    session.observe(**COST, ticket=first)
    late = session.ask()
    for _ in range(3):
        session.ask()
    with pytest.raises(bridle.InputError, match=f"ticket {late.id} is closed"):
        session.observe(**COST, ticket=late)
    assert session.pending == 3


@pytest.mark.parametrize("given", [{"pending": 0}, {"pending": 1.5}, {"timeout": -1}, {"timeout": "a"}, {"late": "never"}])
def test_bad_settings_are_named(given):
    with pytest.raises(bridle.InputError, match=next(iter(given))):
        start(**given)


# --- guarantees -----------------------------------------------------------------------------------------------------------------------


def delayed(
    session: bridle.Session, domain: Any, feasible: np.ndarray, G: float, rng: np.random.Generator, rounds: int, delay: int, k: int = 1
) -> dict[str, float]:
    """Play an adaptive opponent whose feedback comes 0 to `delay` rounds later, in any order; all of it arrives in the end."""
    due: dict[int, list[Any]] = {}
    regret = ccv = 0.0
    for t, (cost_move, move) in enumerate(moves(rng, rounds), 1):
        ticket = session.ask()
        x = ticket.x
        assert domain.contains(x)
        cost = cost_at(cost_move, x, feasible, G, t, rng)
        limits = [constraint_at(move, x, feasible, G, domain.diameter(), t, rng) for _ in range(k)]
        regret += float(cost.value(x)) - float(cost.value(feasible))
        ccv += max(0.0, *(float(g.value(x)) for g in limits))
        due.setdefault(t + int(rng.integers(0, delay + 1)), []).append((ticket, cost, limits))
        arrived = due.pop(t, []) if t < rounds else [item for key in sorted(due) for item in due[key]]
        rng.shuffle(arrived)
        for old, f, gs in arrived:
            session.observe(
                float(f.value(old.x)), f.grad(old.x), [float(g.value(old.x)) for g in gs], [g.grad(old.x) for g in gs], ticket=old
            )
    assert session.pending == 0
    assert session.rounds == rounds
    return {"regret": regret, "ccv": ccv}


@pytest.mark.slow
@settings(max_examples=25)
@given(instances(), st.sampled_from([0, 5, 50]), st.integers(1, 2), st.booleans())
def test_copies_of_anytime_keep_the_sum_of_their_bounds(instance, delay, k, halfspace):
    """Regret <= sqrt(2) D G sqrt(m T) + sum of 1/(2V) for m copies; squared violation at most m times that of one."""
    domain, feasible, G, rng = instance
    T, D = 250, domain.diameter()
    session = bridle.Session(bridle.policy("anytime", domain, halfspace=halfspace))
    seen = delayed(session, domain, feasible, G, rng, T, delay, k)
    found = session.certificate()
    played = [copy for copy in state(session).copies if copy.updates]
    m = len(played)
    assert m <= delay + 1
    assert sum(copy.updates for copy in played) == T
    bound = session.bound()
    assert seen["regret"] <= bound.regret * (1.0 + 1e-9)
    assert seen["regret"] <= found.regret
    assert found.regret_algorithm is None or seen["regret"] <= found.regret_algorithm + 1e-6 * G * D
    assert bound.regret <= sqrt(2.0 * m * T) * D * G * (1.0 + 1e-9) + sum(0.5 / copy.state.V for copy in played if copy.state.V)
    assert found.squared <= found.squared_bound * (1.0 + 1e-9)
    assert bound.ccv is None or seen["ccv"] <= bound.ccv
    if delay == 0:
        assert m == 1


@pytest.mark.slow
@settings(max_examples=15)
@given(instances(), st.sampled_from([0, 5, 50]), st.sampled_from(["theory", "practice"]))
def test_copies_of_sinha2024_keep_the_sum_of_their_bounds(instance, delay, preset):
    domain, feasible, G, rng = instance
    session = bridle.Session(bridle.policy("sinha2024", domain, horizon=250, lipschitz=G, preset=preset))
    seen = delayed(session, domain, feasible, G, rng, 250, delay)
    bound = session.bound()
    assert seen["regret"] <= bound.regret * (1.0 + 1e-9)
    assert seen["ccv"] <= bound.ccv * (1.0 + 1e-9)
    assert seen["regret"] <= session.certificate().regret


@pytest.mark.slow
@settings(max_examples=25)
@given(instances(), st.sampled_from([0, 5, 50]), st.integers(1, 2))
def test_one_pool_of_adagrad_keeps_the_bound_of_what_it_has_seen(instance, delay, k):
    """It counts who waits, so that its bound is about any delay."""
    domain, feasible, G, rng = instance
    session = bridle.Session(bridle.policy("adagrad", domain, delay=0))
    seen = delayed(session, domain, feasible, G, rng, 250, delay, k)
    assert len(state(session).copies) == 1
    for most in (session.bound().regret, session.certificate().regret_algorithm, session.certificate().regret):
        assert seen["regret"] <= most * (1.0 + 1e-9)


def test_a_pool_is_refused_to_a_policy_that_is_not_made_for_it():
    with pytest.raises(bridle.InputError, match=r"late must be 'copies', not 'pool': .* is not made for late feedback"):
        start("sinha2024", late="pool")


def test_the_delay_is_a_parameter_like_any_other(tmp_path):
    ball = bridle.Ball(2)
    with pytest.raises(bridle.InputError, match="delay must be 0 or above"):
        bridle.policy("adagrad", ball, delay=-1)
    session = bridle.Session(bridle.policy("adagrad", ball, delay=3))
    first, second = session.ask(), session.ask()
    session.observe(**COST, **LIMIT, ticket=second)
    session.save(tmp_path / "a.npz")
    loaded = bridle.Session.load(tmp_path / "a.npz")
    assert_identical(snapshot(session), snapshot(loaded))
    for each in (session, loaded):
        each.observe(**COST, **LIMIT, ticket=first.id)
    assert session.decide().tobytes() == loaded.decide().tobytes()
    assert session.bound() == loaded.bound()
    assert session.bound().regret is not None


@pytest.mark.compiles
def test_the_late_learner_runs_on_every_engine_and_in_sweeps():
    problem = bridle.problem("halfspaces", horizon=300, dim=3)
    policy = bridle.policy("adagrad", problem.domain, delay=7)
    one, two = (bridle.play(policy, problem, engine=engine) for engine in ("python", "jax"))
    np.testing.assert_allclose(policy.decide(one.state), policy.decide(two.state), rtol=0, atol=1e-12)
    wide = bridle.policy("adagrad", problem.domain, delay=[0, 7])
    np.testing.assert_allclose(wide.decide(bridle.play(wide, problem).state)[1], policy.decide(one.state), rtol=0, atol=1e-12)


class Alone:
    """A policy's record without what lets its copies learn from each other."""

    def __init__(self, record: Any) -> None:
        self.init, self.decide, self.update, self.domain = record.init, record.decide, record.update, record.domain


def test_copies_share_the_halfspaces_they_find():
    """Copies that each had to find every limit by themselves would break each of them as many times."""

    def play(share: bool) -> float:
        record = bridle.policy("anytime", bridle.Ball(5)).record
        session = bridle.Session(record if share else Alone(record), certify=False, domain=record.domain)
        rng, waiting = np.random.default_rng(0), []
        for t in range(1000):
            a = rng.standard_normal(5)
            a[0] = abs(a[0])
            waiting.append((session.ask(), a / np.linalg.norm(a)))
            while len(waiting) > 50 or (t == 999 and waiting):
                ticket, a = waiting.pop(0)
                session.observe(-float(ticket.x[0]), [-1.0, 0, 0, 0, 0], float(a @ ticket.x) - 0.1, a, ticket=ticket)
        return session.ccv

    assert play(True) <= 0.5 * play(False)


# --- order ----------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["anytime", "sinha2024"]))
def test_between_two_asks_the_order_of_arrival_does_not_matter_to_copies(seed, name):
    """Every copy gets its own feedback only, and what they share is sorted by round: decisions and bounds are the same bit for bit."""
    rng = np.random.default_rng(seed)
    sessions = [start(name, dim=3) for _ in range(2)]
    waiting: list[list[Any]] = [[], []]
    for _ in range(40):
        new = int(rng.integers(1, 6))
        for session, mine in zip(sessions, waiting, strict=True):
            mine.extend(session.ask() for _ in range(new))
        np.testing.assert_array_equal(*[[ticket.x for ticket in mine] for mine in waiting])
        c, a, b = rng.uniform(-0.5, 0.5, (2, len(waiting[0]), 3)), rng.uniform(-0.5, 0.5, (len(waiting[0]), 3)), -0.05
        chosen = rng.permutation(len(waiting[0]))[: int(rng.integers(0, len(waiting[0]) + 1))]
        for which, (session, mine) in enumerate(zip(sessions, waiting, strict=True)):
            for i in chosen if which == 0 else rng.permutation(chosen):
                x = mine[i].x
                session.observe(float(c[0, i] @ x), c[0, i], float(a[i] @ x) + b, a[i], ticket=mine[i])
            mine[:] = [ticket for i, ticket in enumerate(mine) if i not in set(chosen.tolist())]
    one, two = sessions
    for p, q in zip(state(one).copies, state(two).copies, strict=True):
        for v, w in zip(records.leaves(p.state).values(), records.leaves(q.state).values(), strict=True):
            assert np.asarray(v).tobytes() == np.asarray(w).tobytes()
    assert (one.rounds, one.pending) == (two.rounds, two.pending)
    assert one.cost == pytest.approx(two.cost, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(one.violations, two.violations, rtol=1e-12, atol=1e-12)
    assert one.certificate().regret_any == pytest.approx(two.certificate().regret_any, rel=1e-9, abs=1e-6)
    assert len(state(one).slow.late.shared) <= SHARED


def test_decide_between_tickets_is_what_ask_would_give():
    session = start(dim=3)
    rng, waiting = np.random.default_rng(0), []
    for t in range(200):
        x = session.decide()
        np.testing.assert_array_equal(session.decide(), x)
        if rng.random() < 0.3:
            a = rng.uniform(-0.5, 0.5, 3)
            session.observe(0.0, a, float(a @ x) - 0.01, a)
            continue
        waiting.append(session.ask())
        np.testing.assert_array_equal(waiting[-1].x, x)
        if t % 3 == 0:
            ticket = waiting.pop(int(rng.integers(len(waiting))))
            a = rng.uniform(-0.5, 0.5, 3)
            session.observe(0.0, a, float(a @ ticket.x) - 0.01, a, ticket=ticket)


# --- saving ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "late"), [("anytime", "copies"), ("sinha2024", "copies"), ("adagrad", "pool")])
@pytest.mark.filterwarnings("ignore::bridle.core.DroppedWarning")
def test_rounds_that_wait_are_saved_and_go_on_bit_for_bit(name, late, tmp_path):
    def go_on(session: bridle.Session, waiting: list[int], rng: np.random.Generator, rounds: int) -> None:
        for _ in range(rounds):
            waiting.append(session.ask().id)
            while len(waiting) > 12:
                number = waiting.pop(int(rng.integers(len(waiting))))
                if number not in state(session).slow.late.waiting:
                    continue
                x, a, c = state(session).slow.late.waiting[number].x, rng.uniform(-0.5, 0.5, 3), rng.uniform(-0.5, 0.5, 3)
                parts: list[dict[str, Any]] = [{"f": float(c @ x), "df": c}, {"g": [float(a @ x) - 0.02, -1.0], "dg": [a, c]}]
                if rng.random() < 0.3:
                    session.observe(**parts[0], ticket=number)
                elif rng.random() < 0.1:
                    session.forget(number)
                else:
                    session.observe(**parts[0], **parts[1], ticket=number)

    def fresh() -> bridle.Session:
        return start(name, dim=3, late=late, pending=20, timeout=40)

    whole, first = fresh(), fresh()
    waiting: list[int] = []
    rng = np.random.default_rng(4)
    go_on(whole, waiting, rng, 60)
    again, other = [], np.random.default_rng(4)
    go_on(first, again, other, 30)
    before = saved(first, tmp_path)
    assert first.pending > 0
    second = bridle.Session.load(tmp_path / "now.npz")
    assert saved(second, tmp_path) == before
    assert_identical(snapshot(first), snapshot(second))
    go_on(second, again, other, 30)
    assert [round_of(number) for number in again] == waiting
    assert saved(second, tmp_path) == saved(whole, tmp_path)
    assert second.report() == whole.report()


# --- garbage --------------------------------------------------------------------------------------------------------------------------

ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(-(10**3), 10**3), st.text(max_size=3), st.just(1j), st.just(10**400), st.just(1e200),
    st.lists(st.floats(), max_size=4), st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=2), max_size=3),
    st.just([1.0, 0.0]), st.just([[1.0, 0.0]]), st.just([0.5]), st.just(object()), st.just(np.ones((2, 2))), st.just(np.array(["a"])),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "f": ANYTHING, "df": ANYTHING, "g": ANYTHING, "dg": ANYTHING, "modulus": ANYTHING, "ticket": ANYTHING,
        },
    ),
    st.sampled_from(["copies", "pool"]),
)  # fmt: skip
def test_any_record_that_is_refused_leaves_everything_as_it_was(tmp_path_factory, record, late):
    folder = tmp_path_factory.mktemp("garbage")
    session = start(late=late)
    session.observe(**COST, **LIMIT)
    tickets = [session.ask() for _ in range(3)]
    session.observe(**COST, ticket=tickets[0])
    before, message = saved(session, folder), None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bridle.BridleWarning)
            session.observe(**record)
    except bridle.InputError as wrong:
        message = str(wrong)
    assert message is None or ("\n" not in message and saved(session, folder) == before)
    session.observe(**COST, **LIMIT, ticket=session.ask())  # and it goes on
    assert np.isfinite(session.decide()).all()


def test_a_policy_that_breaks_down_on_late_feedback_leaves_the_round_waiting(tmp_path):
    session = start(late="copies")
    ticket = session.ask()
    before = saved(session, tmp_path)
    real = session.plan.record

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def update(self, state: Any, feedback: Any) -> Any:
            return state._replace(Q=float("nan"))

    object.__setattr__(session.plan, "record", Broken())
    with pytest.raises(bridle.InputError, match="cannot be used"):
        session.observe(**COST, **LIMIT, ticket=ticket)
    object.__setattr__(session.plan, "record", real)
    assert saved(session, tmp_path) == before
    session.observe(**COST, **LIMIT, ticket=ticket)
    assert session.rounds == 1


# --- whose ticket it is -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_number", [False, True])
def test_a_ticket_that_was_lost_in_a_crash_is_refused(as_number, tmp_path):
    session = start()
    kept = session.ask()
    session.save(tmp_path / "now.npz")
    lost = session.ask()  # after the save: a crash forgets it
    for _ in range(3):
        loaded = bridle.Session.load(tmp_path / "now.npz")
        other = loaded.ask()
        assert other.id != lost.id
        before = saved(loaded, tmp_path / "..")
        with pytest.raises(bridle.InputError, match=f"ticket {lost.id} was given out after the file was saved") as refused:
            loaded.observe(**COST, ticket=lost.id if as_number else lost)
        assert not refused.value.counted
        assert saved(loaded, tmp_path / "..") == before
        loaded.observe(**COST, ticket=kept.id if as_number else kept)
        loaded.observe(**COST, ticket=other.id if as_number else other)
        assert loaded.rounds == 2
        lost = loaded.ask()  # of a session that was loaded, and is lost too
        loaded = bridle.Session.load(tmp_path / "now.npz")
        with pytest.raises(bridle.InputError, match=f"ticket {lost.id} is not known"):
            loaded.observe(**COST, ticket=lost.id if as_number else lost)
        lost = session.ask()


def test_a_ticket_of_another_run_is_refused():
    one, two = start(), start()
    ticket = one.ask()
    two.ask()
    for refused in (two.observe, two.forget):
        with pytest.raises(bridle.InputError, match="ticket 1 is of another run"):
            refused(ticket=ticket)
    assert two.pending == 1
    one.observe(**COST, ticket=ticket)
    assert one.rounds == 1


def test_a_ticket_with_another_decision_is_refused():
    session = start()
    twin = copy.deepcopy(session)
    for each, f in ((session, 1.0), (twin, -1.0)):
        each.ask()
        each.observe(f=f, df=[f, 0.5], g=0.1, dg=[0.0, f], ticket=next(iter(state(each).slow.late.waiting)))
    mine, theirs = session.ask(), twin.ask()
    made_up = dataclasses.replace(theirs, id=mine.id, run=mine.run)
    with pytest.raises(bridle.InputError, match="has another decision than the round that waits"):
        session.observe(**COST, ticket=made_up)
    mine.x[:] = 9.0  # it is the caller's
    session.observe(**COST, ticket=mine)


def test_copies_of_a_session_give_out_numbers_of_their_own():
    session = start()
    first = session.ask()
    twin, pickled = copy.deepcopy(session), pickle.dumps(session)
    others = [twin, pickle.loads(pickled), pickle.loads(pickled)]
    numbers = {int(each.ask()) for each in (session, *others)}
    assert len(numbers) == 4
    for each in others:
        each.observe(**COST, ticket=first)  # given out before
        assert each.rounds == 1

"""A round is counted or it is not: wherever a call is broken off, the session stands as before the round or after it, and says which."""

from __future__ import annotations

import copy
import random
import signal
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import bridle
from bridle import records
from bridle.session.compiled_round import CompiledRound
from bridle.session.late import round_of
from bridle.session.stepper import CompiledStepper
from helpers.inside import own_ledger, state
from helpers.interrupts import alarms, interrupted_everywhere

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")

Call = Callable[[bridle.Session], object]


@pytest.fixture
def plain(monkeypatch):
    """The engine without its compiler: what it writes is run as it stands, and counts as one step."""
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")


def record(t: int, k: int = 1, d: int = 2) -> dict[str, Any]:
    """What is observed in round t; now and then the constraints are violated, and nothing is feasible in the end."""
    rng = np.random.default_rng(t)
    df, dg = rng.standard_normal(d), rng.standard_normal((k, d))
    return {"f": float(rng.standard_normal()), "df": df, "g": rng.standard_normal(k) - 0.5, "dg": dg}


def everything(session: bridle.Session) -> dict[str, Any]:
    """All that a save file holds of a session, bit for bit."""
    stands = state(session)
    late, ledger = stands.slow.late, stands.ledger()
    numbers: dict[str, Any] = {"start": stands.slow.start, "rounds": stands.now.rounds, "x": session.decide()}
    numbers |= {"log": sorted(session.alarms.items()), "idle": late.idle, "lost": late.lost, "begun": stands.now.begun}
    numbers |= {f"totals.{name}": leaf for name, leaf in records.leaves(stands.now.totals).items()}
    numbers |= {
        f"shared.{i}.{name}": leaf for i, each in enumerate(late.shared) for name, leaf in records.leaves(each).items() if name != "number"
    }
    numbers["waiting"] = [(round_of(number), each.copy, each.x.tobytes()) for number, each in late.waiting.items()]
    for i, each in enumerate(stands.copies):
        numbers |= {f"copies.{i}.{name}": leaf for name, leaf in records.leaves(each).items()}
    if ledger is not None:
        arrays, facts = ledger.saved()
        numbers |= {f"ledger.{name}": value for name, value in arrays.items()} | {f"facts.{name}": fact for name, fact in facts.items()}
    return {name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in numbers.items()}


def different(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    return [name for name in sorted(a.keys() | b.keys()) if a.get(name, "-") != b.get(name, "-")]


SILENT = 50
"""So many bytecodes of a call, most of them its first, are outside of what it guards: an exception there tells nothing. They are between
instructions where CPython looks whether a signal has come, so that only a tracer such as the tests' can raise one."""


TORN = 10
"""After so many the session is left taken: they are those that end its `with` statement, where no signal comes either."""


def check(
    make: Callable[[], bridle.Session], call: Call, go_on: Call, *, every: int = 1, long: int = 50, in_steps: bool = False
) -> tuple[int, int]:
    """Break a call off everywhere: the session is as before it or after it, says which, and goes on as if nothing had been.

    One in `long` goes on for as long as `go_on` says. `in_steps`: the call does other things first, each of which it may end with. How
    often it was not counted, and how often it was.
    """
    twin = make()
    rounds, before = twin.rounds, everything(twin)
    call(twin)
    stands = {False: (rounds, before), True: (twin.rounds, everything(twin))}
    go_on(twin)
    later, seen, silent, torn = everything(twin), [0, 0], 0, 0
    for i, (session, raised, step, steps) in enumerate(interrupted_everywhere(make, call, every=every)):
        if session._lock._is_owned():  # type: ignore[attr-defined]
            torn += 1
            session._lock.release()
            session._owner = 0
        where, found = f"step {step} of {steps}", everything(session)
        if hasattr(raised, "counted"):
            counted = raised.counted
        else:
            counted, silent = different(found, stands[True][1]) == [], silent + 1
        seen[counted] += 1
        if in_steps and not counted:
            call(session)
            counted, found = True, everything(session)
        assert session.rounds == stands[counted][0], where
        assert different(found, stands[counted][1]) == [], where
        if i % long == 0:
            if not counted:
                call(session)
            go_on(session)
            assert different(everything(session), later) == [], where
    assert silent <= SILENT
    assert torn <= TORN
    return seen[0], seen[1]


def played(rounds: int, k: int = 1, name: str = "anytime", **more: Any) -> bridle.Session:
    """A session after so many rounds; with the compiled engine the last of them are still in the compiled round's memory."""
    settings = {"horizon": 50, "lipschitz": 1.0} if name == "sinha2024" else {}
    session = bridle.Session(bridle.policy(name, bridle.Ball(2), **settings), **more)
    for t in range(1, rounds + 1):
        session.observe(**record(t, k))
    return session


def prepared(session: bridle.Session, *last: Call) -> Callable[[], bridle.Session]:
    """Copies of a session, each of which then makes some last calls."""

    def make() -> bridle.Session:
        other = copy.deepcopy(session)
        for call in last:
            call(other)
        return other

    return make


def observe(t: int, k: int = 1, **more: Any) -> Call:
    return lambda session: session.observe(**record(t, k), **more)


def several(first: int, last: int, k: int = 1) -> Call:
    def play(session: bridle.Session) -> None:
        for t in range(first, last):
            session.observe(**record(t, k))

    return play


@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("t", "k", "certify"), [(5, 1, True), (6, 3, True), (33, 1, True), (5, 2, False)])
def test_a_round_in_python_is_counted_or_not(t, k, certify, every):
    missed, counted = check(prepared(played(t - 1, k, certify=certify)), observe(t, k), several(t + 1, t + 40, k), every=every)
    assert missed > 20
    assert counted >= 1


@pytest.mark.parametrize("every", [1999, pytest.param(61, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("t", "k", "name"), [(32, 1, "anytime"), (64, 1, "anytime"), (8, 3, "anytime"), (51, 1, "sinha2024")])
def test_a_round_with_a_look_is_counted_or_not(t, k, name, every):
    missed, _ = check(prepared(played(t - 1, k, name)), observe(t, k), several(t + 1, t + 40, k), every=every)
    assert missed >= 1  # the look belongs to the round


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("part", [40, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("t", "k", "name", "steps"), [(5, 1, "anytime", 400), (32, 1, "anytime", 80_000), (8, 3, "anytime", 4000), (51, 1, "sinha2024", 4000)]
)
def test_a_compiled_round_is_counted_or_not(t, k, name, steps, part):
    make = prepared(played(t - 3, k, name, engine="compiled"), observe(t - 2, k), observe(t - 1, k))
    assert make()._stepper.at[1] is not None
    missed, counted = check(make, observe(t, k), several(t + 1, t + 40, k), every=max(1, steps // part))
    assert missed >= 1
    assert counted >= 1


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.parametrize("k", [1, 3])
def test_rounds_that_are_really_compiled_are_counted_or_not(k):
    make = prepared(played(62, k, engine="compiled"), observe(63, k))
    missed, counted = check(make, observe(64, k), several(65, 110, k), every=41)
    assert missed >= 1
    assert counted > 50


@pytest.mark.usefixtures("plain")
def test_between_compiled_rounds_and_others():
    session = played(20, 1, engine="compiled")
    first = prepared(session)  # nothing is compiled yet in a copy
    check(first, observe(21), several(22, 60), every=503)
    taking_over = prepared(session, observe(21))
    check(taking_over, observe(22, 2), several(23, 60), every=503)
    check(taking_over, lambda session: session.ask(), several(23, 60), every=503)


def late_session(late: str, engine: str = "python") -> tuple[bridle.Session, list[int]]:
    policy = bridle.policy("adagrad", bridle.Ball(2), delay=0) if late == "pool" else bridle.policy("anytime", bridle.Ball(2))
    session = bridle.Session(policy, late=late, pending=4, engine=engine)
    tickets = []
    for t in range(1, 40):
        tickets.append(session.ask().id)
        if len(tickets) > 3:
            session.observe(**record(t), ticket=tickets.pop(t % 3))
    return session, tickets


@pytest.mark.parametrize("late", ["copies", "pool"])
@pytest.mark.parametrize("what", ["ask", "ask too many", "whole", "cost alone", "forget", "plain"])
def test_late_feedback_is_counted_or_not(late, what):
    session, tickets = late_session(late)
    if what == "ask too many":
        while session.pending < 4:
            session.ask()
    now = record(90)
    calls: dict[str, Call] = {
        "ask": lambda session: session.ask(),
        "ask too many": lambda session: session.ask(),
        "whole": lambda session: session.observe(**now, ticket=tickets[0]),
        "cost alone": lambda session: session.observe(f=now["f"], df=now["df"], ticket=tickets[2]),
        "forget": lambda session: session.forget(tickets[0]),
        "plain": lambda session: session.observe(**now),
    }
    check(prepared(session), calls[what], several(100, 140), every=47, in_steps=what == "ask too many")


def test_a_step_is_counted_or_not():
    cost, limit = bridle.Affine([1.0, 0.5]), bridle.Affine([0.3, -1.0], 0.2)
    step: Call = lambda session: session.step(cost, [limit])  # noqa: E731
    check(prepared(played(4)), step, several(6, 40), every=31)


@pytest.mark.parametrize("engine_name", ["python", "compiled"])
@pytest.mark.usefixtures("plain")
def test_an_exception_of_history_says_that_the_round_was_counted(engine_name):
    def refuse(entry: Any) -> None:
        raise OSError("the disk is full")

    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), history=refuse, engine=engine_name)
    for t in range(1, 70):
        with pytest.raises(OSError, match="the disk is full") as caught:
            session.observe(**record(t))
        assert caught.value.counted
        assert caught.value.__notes__ == ["(the round was counted: do not give it again)"]
        assert session.rounds == t
    quiet = played(69, engine=engine_name)
    assert different(everything(session), everything(quiet)) == []


@pytest.mark.parametrize("engine_name", ["python", "compiled"])
@pytest.mark.usefixtures("plain")
def test_an_alarm_made_an_error_says_that_the_round_was_counted(engine_name):
    session, told = bridle.Session(bridle.policy("sinha2024", bridle.Ball(2), horizon=50, lipschitz=0.1), engine=engine_name), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in range(1, 200):
            counted = False
            while not counted:
                try:
                    session.observe(**record(t))
                    counted = True
                except bridle.BridleWarning as alarm:
                    told.append((type(alarm).__name__, *alarm.__notes__))
                    counted = alarm.counted
            assert session.rounds == t
    assert sorted(name for name, _ in told) == sorted(session.alarms)
    assert ("HorizonWarning", "(the round was counted: do not give it again)") in told
    assert len(told) > 1


def test_what_is_refused_says_that_nothing_was_counted():
    session = played(3)
    for call in (
        partial(session.observe, f=np.nan), partial(session.observe, ticket=9), partial(session.forget, 9),
        partial(session.step, lambda x: 1 / 0, ()),
    ):  # fmt: skip
        with pytest.raises((bridle.InputError, ZeroDivisionError)) as caught:
            call()
        assert caught.value.counted is False
    assert session.rounds == 3


def test_one_exception_that_comes_twice_says_the_truth_each_time():
    same = OSError("again")

    def refuse(entry: Any) -> None:
        raise same

    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), history=refuse)
    with pytest.raises(OSError, match="again"):
        session.observe(**record(1))
    assert same.counted

    def cost(x: Any) -> float:
        raise same

    with pytest.raises(OSError, match="again"):
        session.step((cost, cost), ())
    assert not same.counted
    assert same.__notes__ == ["(the round was not counted: it can be given again)"]


def test_a_look_that_fails_is_heard_of_and_costs_no_round(monkeypatch):
    def fail(*_: Any) -> None:
        raise KeyError("a mistake in somebody's domain")

    session = played(63)
    monkeypatch.setattr("bridle.session.step.search_witness", fail)
    with pytest.raises(KeyError) as caught:
        session.observe(**record(64))
    assert caught.value.counted
    for t in range(65, 70):
        session.observe(**record(t))
    assert session.rounds == 69


@pytest.mark.compiles
def test_an_alarm_of_a_look_that_a_reading_ends_is_heard(monkeypatch):
    def break_off(*_: Any) -> None:
        raise KeyboardInterrupt

    session, row = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine="compiled"), np.array([1.0, 0.0])
    contradiction = {"g": np.array([0.5, 0.5]), "dg": np.array([row, -row])}
    monkeypatch.setattr("bridle.session.step.check_assumptions", break_off)
    for _ in range(31):
        session.observe(**contradiction)
    with pytest.raises(KeyboardInterrupt) as caught:
        session.observe(**contradiction)  # after 32 rounds there is a look
    assert caught.value.counted  # type: ignore[attr-defined]
    monkeypatch.undo()
    with pytest.warns(bridle.core.InfeasibleWarning):
        session.certificate()


@pytest.mark.compiles
def test_what_is_saved_between_a_round_and_its_look_can_be_loaded(monkeypatch, tmp_path):
    session, look, saved = played(1, 2, engine="compiled"), CompiledStepper._look, []

    def save_and_look(self: CompiledStepper) -> Any:
        saved.append(tmp_path / f"{session.rounds}.npz")
        session.save(saved[-1])
        return look(self)

    monkeypatch.setattr(CompiledStepper, "_look", save_and_look)
    for t in range(2, 80):
        session.observe(**record(t, 2))
    assert len(saved) > 2
    for path in saved:
        loaded = bridle.Session.load(path)
        for t in range(loaded.rounds + 1, 80):
            loaded.observe(**record(t, 2))
        assert (loaded.decide() == session.decide()).all()
        assert loaded.certificate().violated == session.certificate().violated


def out_of_step(rounds: int) -> bridle.Session:
    """A session on compiled rounds whose second round had another number of constraints, so that batches end between two looks."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine="compiled")
    for t in range(1, rounds + 1):
        session.observe(**record(t, 1 if t == 2 else 2))
    return session


@pytest.mark.compiles
def test_a_look_in_the_middle_of_a_batch_is_done_or_not(monkeypatch):
    """The session stands with what the look found, and is broken off before the compiled rounds know where to write on."""
    session, t, counted, resume = out_of_step(20), 21, False, CompiledRound.resume

    def break_off(self: CompiledRound, at: int) -> None:
        if self.row != len(self._order):  # the batch is not full
            raise KeyboardInterrupt
        resume(self, at)

    monkeypatch.setattr(CompiledRound, "resume", break_off)
    while not counted:
        try:
            session.observe(**record(t, 2))
        except KeyboardInterrupt as broken:
            counted = broken.counted  # type: ignore[attr-defined]
        t += 1
    monkeypatch.undo()
    ledger, rounds = own_ledger(session), session.rounds
    assert ledger is not None
    assert 0 < ledger.rounds_read < rounds
    for t in range(rounds + 1, rounds + 200):
        session.observe(**record(t, 2))
    assert different(everything(session), everything(out_of_step(session.rounds))) == []


class Alarm(BaseException):
    """What the handler of a signal raises. (Where it is an Exception, a look that it breaks off is given up, and the round counts.)"""


PATIENCE = 200
"""So many rounds are played for each bell: at some 10 microseconds each it rings in them."""


@pytest.mark.slow
@pytest.mark.parametrize("engine_name", ["python", pytest.param("compiled", marks=pytest.mark.compiles)])
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_signals_at_random_leave_no_half_round(engine_name, tmp_path):
    """A tight loop is interrupted again and again; whoever trusts what the exception says ends up where nobody was interrupted.

    Everything is compiled before: an alarm that falls into JAX's own tracing leaves JAX itself half set up.
    """
    begun, most = 200, 30_000
    rng, session, t, broken = random.Random(0), played(begun, 1, engine=engine_name), begun + 1, 0
    records_of = {t: record(t) for t in range(1, most + 1)}
    with alarms(Alarm) as set_timer:
        while broken < 100 and t <= most:
            before = session.rounds
            try:
                set_timer(rng.uniform(2e-5, 4e-4))
                last = min(t + PATIENCE, most)  # a bell that rings in somebody's clean-up is not heard: it is rung again soon
                while t <= last:
                    session.observe(**records_of[t])
                    t += 1
            except Alarm:
                broken += 1
                assert session.rounds >= before
                t = session.rounds + 1
            finally:
                set_timer(0.0)
    assert broken >= 20  # on a busy machine the bell rings while others are at work
    assert different(everything(session), everything(played(session.rounds, 1, engine=engine_name))) == []

"""Threads and interrupts, a fixed number of times: nothing is lost, nothing is counted twice, nothing is spent that is not there."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import bridle
from bridle.core import InputError
from helpers.interrupts import alarms

pytestmark = pytest.mark.slow

THREADS = 4
SESSIONS = ["python", "compiled"]


@contextmanager
def switching_often() -> Iterator[None]:
    """Let threads take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def all_at_once(work: Callable[[int], int], threads: int = THREADS) -> list[int]:
    """What each of some threads did, which all begin together; an exception in one is raised here."""
    gate, done, problems = threading.Barrier(threads), [0] * threads, []

    def run(i: int) -> None:
        gate.wait()
        try:
            done[i] = work(i)
        except BaseException as problem:
            problems.append(problem)

    crowd = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    with switching_often():
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
    if problems:
        raise problems[0]
    return done


@pytest.mark.parametrize("trial", range(15))
def test_threads_cannot_overspend_a_gate(trial):
    gate = bridle.Gate(20.0)

    def spend(i: int) -> int:
        cents = 0
        while True:
            amount = 1 + (i + trial) % 7
            try:
                gate.pay(amount / 100.0)
            except InputError:
                return cents
            cents += amount

    spent = sum(all_at_once(spend))
    assert spent <= 2000
    assert round(gate.spent * 100) == spent


@pytest.mark.parametrize("trial", range(5))
def test_threads_cannot_overspend_a_pacer_or_lose_a_round(trial):
    pacer = bridle.Pacer(budget=20.0, rounds=4000, value=1.0, spend=0.07, plan=[1.0, 2.0, 1.0])

    def spend(i: int) -> int:
        rounds = 0
        for _ in range(1000):
            amount = min((1 + (i + trial) % 7) / 100.0, pacer.left)
            try:
                pacer.pay(amount)
            except InputError:
                continue  # another was faster
            rounds += 1
        return rounds

    rounds = sum(all_at_once(spend))
    assert pacer.played == rounds
    assert pacer.spent <= 20.0
    assert pacer.planned <= 20.0 + 1e-9


@pytest.mark.parametrize("engine", SESSIONS)
@pytest.mark.parametrize("trial", range(5))
def test_threads_in_one_session_lose_nothing(engine, trial):
    """Each call is taken in or refused in words; what was taken in is in the totals, the state and the certificates."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine=engine)
    df, dg = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    session.observe(f=1.0, df=df, g=-1.0, dg=dg)

    def play(i: int) -> int:
        taken = 0
        for t in range(300):
            try:
                session.observe(f=1.0, df=df, g=-1.0, dg=dg)
                taken += 1
            except InputError:
                pass
            if t % 50 == i:
                session.certificate()
            if t % 70 == trial:
                session.decide()
        return taken

    taken = 1 + sum(all_at_once(play))
    assert session.rounds == taken
    assert session.cost == taken
    assert session.balances.tolist() == [-taken]
    assert session.certificate().rounds == taken
    assert session.state.rounds == taken
    assert session.certificate().regret_any == pytest.approx(alone(engine, taken).certificate().regret_any, rel=1e-12)


def alone(engine: str, rounds: int) -> bridle.Session:
    """The same rounds without threads."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine=engine)
    for _ in range(rounds):
        session.observe(f=1.0, df=np.array([1.0, 0.0]), g=-1.0, dg=np.array([0.0, 1.0]))
    return session


class Alarm(Exception):
    """What a handler raises."""


@pytest.mark.parametrize("engine", SESSIONS)
def test_interrupted_sessions_count_a_round_or_do_not(engine):
    """Six hundred interrupts of a tight loop; each leaves the old round or the new one, and says which."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine=engine)
    df, dg, rng = np.array([1.0, 0.0]), np.array([0.0, 1.0]), random.Random(0)
    session.observe(f=1.0, df=df, g=-1.0, dg=dg)
    taken = interrupts = 0
    for _ in range(600):
        end, said = time.monotonic() + 0.05, None
        try:
            with alarms(Alarm) as set_timer:
                set_timer(rng.uniform(1e-5, 0.002))
                while time.monotonic() < end:
                    session.observe(f=1.0, df=df, g=-1.0, dg=dg)
                    taken += 1
        except Alarm as alarm:
            interrupts += 1
            said = getattr(alarm, "counted", None)  # None: it came between two calls
        more = session.rounds - 1 - taken
        assert more in ((0, 1) if said is None else (int(said),)), f"it says {said}, and {more} was counted"
        taken += more
        assert session.cost == session.rounds == session.state.rounds
    assert interrupts > 500
    assert session.balances.tolist() == [-session.rounds]
    assert session.certificate().regret_any == pytest.approx(alone(engine, session.rounds).certificate().regret_any, rel=1e-9)


def test_interrupted_payments_count_or_do_not():
    gate, rng, interrupts = bridle.Gate(10_000_000.0), random.Random(1), 0
    cents = 0
    for _ in range(400):
        end = time.monotonic() + 0.05
        try:
            with alarms(Alarm) as set_timer:
                set_timer(rng.uniform(1e-5, 0.001))
                while time.monotonic() < end:
                    gate.pay(0.01)
                    cents += 1
        except Alarm:
            interrupts += 1
        assert cents <= round(gate.spent * 100) <= cents + 1
        cents = round(gate.spent * 100)
    assert interrupts > 300


def test_an_interrupted_pacer_is_between_two_rounds():
    pacer, rng = bridle.Pacer(budget=1e6, rounds=10**6, value=1.0, spend=1.0), random.Random(2)
    for _ in range(400):
        end = time.monotonic() + 0.05
        try:
            with alarms(Alarm) as set_timer:
                set_timer(rng.uniform(1e-5, 0.001))
                while time.monotonic() < end:
                    pacer.pay(0.5)
        except Alarm:
            pass
        assert pacer.spent == 0.5 * pacer.played
        assert pacer.planned == pytest.approx(float(pacer.played), rel=1e-9)

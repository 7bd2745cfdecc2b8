"""Several threads in one session: no round is lost or counted twice; and calls from inside of a call."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridle
from helpers.inside import proved, state

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")

RECORD: dict[str, Any] = {"f": 1.0, "df": np.array([1.0, 0.0]), "g": 0.25, "dg": np.array([0.0, 1.0])}
ENGINES = ["python", pytest.param("compiled", marks=[pytest.mark.compiles, pytest.mark.slow])]


@pytest.fixture
def restless():
    """Python turns from thread to thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], None]) -> None:
    """Run these at the same time; the first failure is raised."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as wrong:
            failures.append(wrong)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def start(engine: str, **more: Any) -> bridle.Session:
    return bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine=engine, **more)


def check(session: bridle.Session, rounds: int) -> None:
    """All agree on how many rounds there were, to the last bit."""
    assert session.rounds == rounds
    assert session.cost == rounds
    assert session.ccv == 0.25 * rounds
    assert session.certificate().rounds == rounds
    ledger = proved(session).ledger.complete()
    assert ledger.counted.sums.rounds == rounds
    assert ledger.counted.limits.violated == rounds
    assert sum(each.updates for each in state(session).copies) == rounds


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("engine", ENGINES)
def test_no_observation_is_lost_between_threads(engine):
    session, each = start(engine), 400

    def observe() -> None:
        for _ in range(each):
            session.observe(**RECORD)

    together(*[observe] * 4)
    check(session, 4 * each)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("engine", ENGINES)
def test_history_is_told_of_each_round_once_and_as_it_was(engine):
    log: list[Any] = []
    session = start(engine, history=log.append)

    def observe(value: float) -> Callable[[], None]:
        def run() -> None:
            for _ in range(300):
                session.observe(**{**RECORD, "f": value, "g": np.array([value])})

        return run

    together(*[observe(value) for value in (1.0, 2.0, 3.0)])
    assert sorted(entry["round"] for entry in log) == list(range(1, 901))
    assert all(entry["f"] == entry["g"][0] for entry in log)
    total = 0.0
    for entry in sorted(log, key=lambda entry: entry["round"]):
        total += entry["f"]
        assert entry["cost"] == entry["ccv"] == total


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("engine", ENGINES)
def test_tickets_go_to_their_own_threads(engine):
    session, numbers = start(engine), []

    def serve() -> None:
        for _ in range(100):
            ticket = session.ask()
            numbers.append(ticket.id)
            session.observe(**RECORD, ticket=ticket)

    together(*[serve] * 3)
    assert len(set(numbers)) == 300
    assert session.pending == 0
    check(session, 300)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("engine", ENGINES)
def test_readers_see_whole_rounds(engine, tmp_path):
    session, done = start(engine), threading.Event()

    def observe() -> None:
        try:
            for _ in range(300):
                session.observe(**RECORD)
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            proof = session.certificate()
            assert proof.cost == proof.rounds
            assert proof.ccv == 0.25 * proof.rounds
            assert session.decide().shape == (2,)

    def save() -> None:
        while not done.is_set():
            session.save(tmp_path / "a.npz")
            loaded = bridle.Session.load(tmp_path / "a.npz", engine="python")
            assert loaded.cost == loaded.rounds

    together(observe, read, save)
    check(session, 300)


def test_history_may_read_the_session_and_change_nothing(tmp_path):
    def note(entry: Any) -> None:
        session.save(tmp_path / "a.npz")
        assert session.rounds == session.certificate().rounds == entry["round"]
        for call in (lambda: session.observe(**RECORD), session.ask, lambda: session.decide(known=([[1.0, 0.0]], [0.5]))):
            with pytest.raises(bridle.InputError, match="in the middle of another call of this thread"):
                call()

    session = start("python", history=note)
    for _ in range(20):
        session.observe(**RECORD)
    check(session, 20)
    assert bridle.Session.load(tmp_path / "a.npz").rounds == 20


def test_a_call_from_inside_of_a_call_may_read_and_change_nothing(tmp_path):
    """As a signal's handler would, at every place where one can come up."""
    steps, turn = [0], [0]

    def trace(frame: Any, event: str, _: Any) -> Any:
        if "bridle/session/verbs.py" not in frame.f_code.co_filename or frame.f_code.co_name not in ("observe", "_take"):
            return None
        frame.f_trace_opcodes = True
        return step

    def step(frame: Any, event: str, _: Any) -> Any:
        if event == "opcode":
            steps[0] += 1
            if steps[0] % 61 == turn[0]:
                sys.settrace(None)
                busy, rounds = session._inside, session.rounds
                session.save(tmp_path / "b.npz")
                assert bridle.Session.load(tmp_path / "b.npz").cost == rounds
                if busy:
                    with pytest.raises(bridle.InputError, match="in the middle of another call of this thread"):
                        session.observe(**RECORD)
                    with pytest.raises(bridle.InputError, match="in the middle of another call of this thread"):
                        session.ask()
                sys.settrace(trace)
        return step

    before = sys.gettrace()
    for turn[0] in (1, 23):
        session = start("python")
        for _ in range(30):
            session.observe(**RECORD)
        for t in range(31, 34):  # the second with a look
            steps[0] = 0
            sys.settrace(trace)
            try:
                session.observe(**RECORD)
            finally:
                sys.settrace(before)
            check(session, t)


def test_copies_and_pickles_are_sessions_of_their_own():
    session = start("python")
    for _ in range(40):
        session.observe(**RECORD)
    others = [copy.copy(session), copy.deepcopy(session), pickle.loads(pickle.dumps(session))]
    for _ in range(30):
        session.observe(**RECORD)
    for other in others:
        check(other, 40)
        other.observe(**RECORD)
        check(other, 41)
    check(session, 70)

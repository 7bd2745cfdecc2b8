"""A commit that fails, or is broken off anywhere, leaves a session that is rebuilt from what its journal has."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from contextlib import closing, nullcontext
from functools import partial

import numpy as np
import pytest

import bridle
from bridle.core import InputError
from bridle.database import Fenced, StoreError
from helpers.durable_runs import assert_same, crash, everything, journal, url_of
from helpers.interrupts import Interrupt, alarms
from helpers.sessions import play_random_stream

RECORD = {"f": 0.3, "df": [1.0, 0.0], "g": 0.1, "dg": [0.0, 1.0]}


@pytest.fixture
def session(tmp_path):
    session = bridle.Session.open(
        url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2)), gates={"money": bridle.Gate(10.0)}
    )
    yield session
    crash(session)


def plain_after(rounds):
    plain = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    for _ in range(rounds):
        plain.observe(**RECORD)
    return plain


class Failing:
    """The store's `append`, which fails once: before it has written, or after."""

    def __init__(self, session, problem, after):
        self.store, self.problem, self.after = session.journal.store, problem, after
        self.append = self.store.append
        self.store.append = self

    def __call__(self, lease, rows):
        del self.store.append
        if self.after:
            self.append(lease, rows)
        raise self.problem


@pytest.mark.parametrize("after", [False, True], ids=["not written", "written"])
@pytest.mark.parametrize(
    "problem",
    [StoreError("no space left", True), StoreError("the connection was lost", False), KeyboardInterrupt(), MemoryError()],
    ids=repr,
)
def test_a_commit_that_fails_is_read_again_from_the_journal(session, problem, after):
    session.observe(**RECORD)
    Failing(session, problem, after)
    with pytest.raises(type(problem)) as said:
        session.observe(**RECORD, key="second")
    if isinstance(problem, StoreError):
        unknown = any("is not known" in note for note in getattr(said.value, "__notes__", ()))
        assert unknown is not problem.certain
    assert session.rounds == 1 + after  # what is on the disk, and nothing else
    assert_same(plain_after(1 + after), session)
    session.observe(**RECORD, key="second")  # asked again it counts once, whatever had become of it
    assert session.rounds == 2
    assert_same(plain_after(2), session)


@pytest.mark.parametrize("verb", ["ask", "forget", "decide", "pay", "together", "change"])
def test_every_event_that_fails_is_undone(session, verb):
    ticket = session.ask()
    acts = {
        "ask": lambda: session.ask(),
        "forget": lambda: session.forget(ticket),
        "decide": lambda: session.decide(known=([[1.0, 0.0]], [-0.5])),
        "pay": lambda: session.gate("money").pay(4.0),
        "together": lambda: session.observe(**RECORD, ticket=ticket, pay={"money": 4.0}),
        "change": lambda: session.change_limit(0, offset=0.5),
    }
    before = everything(session)
    Failing(session, StoreError("no space left"), after=False)
    with pytest.raises(StoreError, match="no space left"):
        acts[verb]()
    assert session.gate("money").spent == 0.0
    after = everything(session)
    assert after.pop("header") == before.pop("header")
    assert all(np.asarray(value).tobytes() == np.asarray(before[name]).tobytes() for name, value in after.items())
    acts[verb]()
    assert session.durable[0] == session.durable[1] == 2 + (verb == "together")
    assert session.gate("money").spent == (4.0 if verb in ("pay", "together") else 0.0)


def test_an_interrupt_anywhere_leaves_memory_as_the_journal_is(session):
    """A tracer raises at every line of the library in turn, as a signal's handler may: what was acknowledged is there, and nothing else."""
    acknowledged, done, at = 0, False, 0

    def tracer(frame, event, _):
        nonlocal left
        if "bridle/session" not in frame.f_code.co_filename and "bridle/database" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return tracer

    while not done:
        at += 1
        left, done = at, True
        sys.settrace(tracer)
        try:
            session.observe(**RECORD)
        except KeyboardInterrupt:
            done = False
        finally:
            sys.settrace(None)
        rows = len(journal(session))
        assert acknowledged + done <= rows <= acknowledged + 1
        acknowledged = rows
        assert session.rounds == rows
    assert at > 150  # so many lines are passed
    assert_same(plain_after(acknowledged), session)


def test_a_warning_that_is_an_error_comes_after_the_round_is_durable(tmp_path):
    policy = bridle.policy("sinha2024", bridle.Ball(2), horizon=3, lipschitz=1.0)
    session = bridle.Session.open(url_of(tmp_path), "run", policy=policy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = 0
        for _ in range(6):
            try:
                session.observe(**RECORD)
            except bridle.BridleWarning:
                told += 1
                assert len(journal(session)) == session.journal.seq
    assert told
    assert session.rounds == 6
    crash(session)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # they were given
        with bridle.Session.open(url_of(tmp_path), "run") as session:
            assert session.rounds == 6


def test_history_hears_of_rounds_that_are_durable(tmp_path):
    heard = []

    def history(entry):
        heard.append((entry["round"], len(journal(session))))

    session = bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2)), history=history)
    for _ in range(3):
        session.observe(**RECORD)
    crash(session)
    assert heard == [(1, 1), (2, 2), (3, 3)]
    session = bridle.Session.open(url_of(tmp_path), "run", history=history)
    session.observe(**RECORD)
    assert heard[3:] == [(4, 4)]
    session.close()


def test_history_hears_of_no_round_twice_after_a_failed_commit(tmp_path, monkeypatch):
    heard = []
    policy = bridle.policy("rate", bridle.Box(0.0, 1.0, dim=2), at_most=0.2, safe=[1.0, 1.0])
    with bridle.Session.open(url_of(tmp_path), "run", policy=policy, history=lambda entry: heard.append(entry["round"])) as session:
        session.observe(**RECORD)
        session.change_limit(0, at_most=0.1)  # a new session takes the place of the old
        session.observe(**RECORD)
        with monkeypatch.context() as patch:
            patch.setattr(session.journal.store, "append", refusing)
            with pytest.raises(StoreError):
                session.observe(**RECORD)
        session.observe(**RECORD)
    assert heard == [1, 2, 3]


def refusing(*_):
    raise StoreError("the disk is full")


def test_a_session_that_was_taken_over_answers_no_more(session, tmp_path):
    from bridle import database

    session.observe(**RECORD)
    owner = session.journal.store.owner
    other = database.open_store(url_of(tmp_path), owner=None)
    other.owner = owner  # as if the first had been taken for dead
    other.take(session.journal.found)
    with pytest.raises(Fenced, match="has another owner now"):
        session.observe(**RECORD)
    with pytest.raises(bridle.InputError, match=r"session 'run' has another owner now.*open it again"):
        session.decide()
    other.close()


class Slow:
    """A gradient whose first conversion is broken off, as by a signal's handler that raises."""

    def __init__(self):
        self.asked = 0

    def __array__(self, dtype=None, copy=None):
        self.asked += 1
        if self.asked == 1:
            raise TimeoutError
        return np.array([1.0, 0.0])


def test_an_event_that_could_not_be_written_down_with_its_key_does_not_count(tmp_path):
    policy, gates = bridle.policy("anytime", bridle.Ball(2)), {"ads": bridle.Gate(10.0)}
    with bridle.Session.open(url_of(tmp_path), "run", policy=policy, gates=gates) as session:
        for df in (Slow(), [1.0, 0.0], [1.0, 0.0]):
            with pytest.raises(InputError, match="df") if isinstance(df, Slow) else nullcontext():
                session.observe(f=1.0, df=df, pay={"ads": 4.0}, key="order 1")
        assert (session.rounds, session.gate("ads").spent) == (1, 4.0)


def test_a_signal_while_a_commit_waits_leaves_no_transaction_open(tmp_path):
    """What is acknowledged later must not be part of a transaction that nobody commits."""
    policy, gates = bridle.policy("anytime", bridle.Ball(2)), {"ads": bridle.Gate(10.0)}
    session = bridle.Session.open(url_of(tmp_path), "run", policy=policy, gates=gates)
    session.observe(**RECORD)
    paid = partial(session.observe, **RECORD, pay={"ads": 1.0})
    with closing(sqlite3.connect(tmp_path / "run.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        end = threading.Timer(0.4, other.execute, ["ROLLBACK"])
        end.start()
        with alarms() as set_timer:
            set_timer(0.2)
            with pytest.raises(Interrupt):
                paid()
        end.join()
    for _ in range(3):
        session.observe(**RECORD)
    rounds, spent = session.rounds, session.gate("ads").spent
    crash(session)
    with bridle.Session.open(url_of(tmp_path), "run") as session:
        assert (session.rounds, session.gate("ads").spent) == (rounds, spent)
        assert rounds == 4 + round(spent)


def test_threads_wait_for_each_other(session):
    def work():
        for _ in range(20):
            session.observe(**RECORD)
            session.certificate()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert session.rounds == 60
    assert_same(plain_after(60), session)


def test_a_call_from_inside_of_a_call_is_refused(session):
    said = []

    def handler(*_):
        for call in (lambda: session.observe(**RECORD), lambda: session.cost):
            with pytest.raises(bridle.InputError, match="in the middle of another call of this thread") as wrong:
                call()
            said.append(wrong.value)

    store = session.journal.store
    append = store.append

    def meanwhile(lease, rows):
        handler()
        append(lease, rows)

    store.append = meanwhile
    session.observe(**RECORD)
    del store.append
    assert len(said) == 2
    assert session.rounds == 1


SCRIPT = """
import sys, warnings, numpy as np, bridle
warnings.simplefilter("ignore")
url, engine = sys.argv[1:]
policy = bridle.policy("anytime", bridle.Ball(3))
session = bridle.Session.open(url, "run", policy=policy, engine=engine, snapshot_every=25, wait=20.0,
                              gates={"money": bridle.Gate(100.0)})
while True:
    t = session.rounds
    rng = np.random.default_rng([0, t])
    x = session.decide()
    df, A = rng.standard_normal(3), rng.standard_normal((1, 3))
    df, A = df / np.linalg.norm(df), A / np.linalg.norm(A, axis=1, keepdims=True)
    session.observe(f=float(df @ x), df=df, g=A @ x + 0.3 * rng.standard_normal(1), dg=A, pay={"money": 0.01})
    sys.stdout.write(f"{session.rounds} {session.gate('money').spent}\\n")
    sys.stdout.flush()
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bridle.BridleWarning")
def test_killed_again_and_again_it_goes_on_where_it_was(tmp_path):
    """Every kill comes after some acknowledged rounds: none is lost, none is doubled, money is paid once, and the bits are the twin's."""
    acknowledged = 0
    for kill in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, url_of(tmp_path), "python"], stdout=subprocess.PIPE, text=True, cwd=tmp_path
        )
        first, last = True, acknowledged
        for line in process.stdout:
            rounds, spent = line.split()
            assert float(spent) == pytest.approx(0.01 * int(rounds))
            if first:
                assert acknowledged < int(rounds) <= acknowledged + 2  # one may have been written and not answered
                first = False
            last = int(rounds)
            if last >= acknowledged + 11 + 5 * kill:
                process.send_signal(signal.SIGKILL)
                break
        last = max([last, *(int(line.split()[0]) for line in process.stdout)])
        process.wait()
        process.stdout.close()
        acknowledged = last
    with bridle.Session.open(url_of(tmp_path), "run", wait=20.0) as session:
        assert acknowledged <= session.rounds <= acknowledged + 1
        plain = bridle.Session(bridle.policy("anytime", bridle.Ball(3)), engine="python")
        play_random_stream(plain, session.rounds)
        assert_same(plain, session)
        assert session.gate("money").left == pytest.approx(100.0 - 0.01 * session.rounds)

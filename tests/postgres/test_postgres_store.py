"""A store in PostgreSQL does what every store must; takeovers, and a database that goes away."""

from __future__ import annotations

import os
import socket
import threading
import time

import psycopg
import pytest

from bridle.core import InputError
from bridle.database import Event, Fenced, Owned, Snapshot, StoreError, open_store, postgres
from helpers import store_contract
from helpers.scripts import script
from helpers.store_contract import event


@pytest.mark.parametrize("must", store_contract.ALWAYS, ids=lambda must: must.__name__)
def test_it_does_what_every_store_must(must, database):
    must(database)


@pytest.mark.parametrize(
    "must",
    [
        *store_contract.PRESSED,
        store_contract.survives_owners_that_respect_nobody,
    ],
    ids=lambda must: must.__name__,
)
def test_it_does_what_every_store_must_also_when_pressed(must, database, monkeypatch):
    must(database, monkeypatch)


# --- takeover ---------------------------------------------------------------------------------------------------------------------------

WAITING = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
ONE = postgres.STATEMENTS["append"].text
MANY = postgres.APPEND_MANY
TAKE = postgres.STATEMENTS["standing"]


def values(statement, lease):
    """The values of a statement that appends event 1."""
    sent = (*event(1), 0)
    return (
        (*sent, *lease) if statement.count("unnest") == 0 else ([lease.session], [lease.epoch], [lease.session], *([each] for each in sent))
    )


def missed(database, monkeypatch, statement, take=TAKE.text):
    """A has inserted and not yet committed; B takes the session and reads its journal; then A commits. Whether B missed an event that A
    acknowledged, and whether B had to wait."""
    monkeypatch.setitem(postgres.STATEMENTS, "standing", TAKE._replace(text=take))
    monkeypatch.setattr(postgres.PostgresStore, "_lives", lambda self, run, owner: False)  # A's time has run out
    with open_store(database, owner="a") as a, open_store(database, owner="b") as b:
        found = a.create("shop", b"")
        lease, seen = a.take(found), []
        with psycopg.connect(database) as connection, psycopg.connect(database, autocommit=True) as looking:
            connection.execute(statement, values(statement, lease))

            def take_over() -> None:
                b.take(found)
                seen.append(b.head(found.id))

            taking = threading.Thread(target=take_over)
            taking.start()
            waited = False
            while not seen and not waited:
                waited = bool(looking.execute(f"SELECT count(*) {WAITING}").fetchone()[0])
            connection.commit()  # and A answers
        taking.join()
        assert a.head(found.id) == 1, "A's event is there"
        with pytest.raises(Fenced):
            a.append(lease, [event(2)])
        with pytest.raises(Fenced):
            a.append(lease, [event(2), event(3)])
        return seen == [0], waited


@pytest.mark.parametrize("statement", [ONE, MANY], ids=["one", "many"])
def test_a_takeover_waits_for_an_insert_under_way_and_sees_it(statement, database, monkeypatch):
    assert missed(database, monkeypatch, statement) == (False, True)


@pytest.mark.parametrize("lock", ["FOR KEY SHARE", ""])
@pytest.mark.parametrize("statement", [ONE, MANY], ids=["one", "many"])
def test_a_weaker_lock_would_let_it_miss_an_event(statement, lock, database, monkeypatch):
    """Which proves that the test above can fail. A takeover locks so strongly that even a weak lock of the insert holds it up; with the
    lock that an update takes by itself it does not."""
    weak = statement.replace("FOR SHARE OF session", lock and f"{lock} OF session").replace("FOR SHARE", lock)
    assert weak != statement
    assert missed(database, monkeypatch, weak, TAKE.text.replace("FOR UPDATE", "FOR NO KEY UPDATE")) == (True, False)


@pytest.fixture
def short_leases(monkeypatch):
    for name, seconds in {"LEASE": 1.5, "RENEWED": 0.2, "MARGIN": 0.5}.items():
        monkeypatch.setattr(postgres, name, seconds)


def test_a_dead_owner_is_followed_when_its_time_has_run_out(database, short_leases):
    """And has stopped answering before that by its own clock, also for what it only reads."""
    with open_store(database, owner="a", at="http://a") as a, open_store(database, owner="b") as b:
        taken, left = a.create("taken", b""), a.create("left", b"")
        lease, other = a.take(taken), a.take(left)
        a.append(lease, [event(1)])
        time.sleep(2.0)  # it is renewed all the while
        assert a.holds(lease)
        with pytest.raises(Owned, match="owned by a at http://a"):
            b.take(taken)
        a._stop.set()  # as if the process were stopped, or cut off from the database
        a._thread.join()
        held = []

        def follow() -> None:
            new = b.take(taken, wait=10.0)
            held.append(a.holds(lease))
            b.append(new, [event(2)])

        following = threading.Thread(target=follow)
        following.start()
        following.join()
        assert held == [False]
        assert not a.holds(other)
        with pytest.raises(Fenced):
            a.append(lease, [event(2)])
        a.renew()  # it is back, too late
        assert not a.holds(lease), "somebody else has it"
        assert a.holds(other), "nobody else had it"
        a.append(other, [event(1)])
        assert [each.seq for each in b.tail(taken.id)] == [1, 2]


def test_a_second_store_of_one_name_ends_the_first(database, short_leases):
    first = open_store(database, owner="server")
    lease = first.take(first.create("shop", b""))
    with open_store(database, owner="server") as second:
        new = second.take(second.find("shop"))  # at once: it was its own
        with pytest.raises(Fenced):
            first.append(lease, [event(1)])
        with pytest.raises(StoreError, match="another store has its name"):
            first.renew()
        with pytest.raises(StoreError, match="another store has its name"):
            first.names()
        first.close()
        assert second.holds(new), "closing the first gives back nothing of the second"
        second.renew()
        second.append(new, [event(1)])


# --- a database that goes away ----------------------------------------------------------------------------------------------------------


def test_a_restarted_database_is_found_again(cluster, database):
    with open_store(database) as store:
        lease = store.take(store.create("shop", b""))
        store.append(lease, [event(1)])
        cluster.stop("immediate")
        with pytest.raises(StoreError, match="cannot reach") as told:
            store.append(lease, [event(2)])
        assert told.value.certain
        with pytest.raises(StoreError, match="cannot reach"):
            store.head(lease.session)
        with pytest.raises(StoreError, match="cannot reach"):
            store.renew()
        cluster.start()
        assert store.head(lease.session) == 1
        store.append(lease, [event(2)])
        store.put_snapshot(lease, Snapshot(2, "1", "here", b"", b""))
        store.renew()
        cluster.restart()
        store.append(lease, [event(3), event(4)])
        assert [each.seq for each in store.tail(lease.session)] == [1, 2, 3, 4]


def test_nothing_is_lost_or_doubled_while_the_database_crashes(cluster, database):
    """Three owners append as fast as they can, one by one and in groups, while the database crashes and starts again: after an error each
    reads the head and goes on from there, as a session does."""
    acknowledged, errors, failed, stop = {}, [], [], threading.Event()

    def own(number: int) -> None:
        try:
            with open_store(database, owner=f"owner-{number}") as store:
                lease, seq = store.take(store.create(f"shop-{number}", b"")), 0
                while not stop.is_set():
                    group = [event(seq + i, body=b"%d" % (seq + i)) for i in range(1, 2 + seq % 3)]
                    try:
                        store.append(lease, group)
                        seq += len(group)
                        acknowledged[lease.session] = seq
                    except StoreError as problem:
                        errors.append(problem)
                        while not stop.is_set():
                            try:
                                head = store.head(lease.session)
                                break
                            except StoreError:
                                time.sleep(0.05)
                        if head not in ((seq,) if problem.certain else (seq, seq + len(group))):
                            raise AssertionError(f"the head is {head} after {seq} and {len(group)} more") from problem
                        seq = head
        except BaseException as problem:
            failed.append(problem)

    owners = [threading.Thread(target=own, args=(number,)) for number in range(3)]
    for thread in owners:
        thread.start()
    for mode in ("immediate", "fast"):
        while len(acknowledged) < 3:
            time.sleep(0.05)
        time.sleep(0.3)
        cluster.restart(mode)
        before = dict(acknowledged)
        until = time.monotonic() + 20.0
        while any(acknowledged[session] == before[session] for session in before) and not failed:
            assert time.monotonic() < until, "they do not go on"
            time.sleep(0.05)
    stop.set()
    for thread in owners:
        thread.join()
    assert failed == []
    assert errors, "nobody noticed"
    with open_store(database) as store:
        for session, seq in acknowledged.items():
            there = [int(each.body) for each in store.tail(session)]
            assert there == list(range(1, len(there) + 1))
            assert seq <= len(there) <= seq + 3


def test_a_connection_that_breaks_while_writing_leaves_no_verdict(database):
    """Then the head says whether it is there."""
    with open_store(database) as store, psycopg.connect(database) as other:
        lease = store.take(store.create("shop", b""))
        other.execute("SELECT 1 FROM session FOR UPDATE")  # the append waits for this
        outcome = []

        def append() -> None:
            try:
                store.append(lease, [event(1)])
            except StoreError as problem:
                outcome.append(problem)

        appending = threading.Thread(target=append)
        appending.start()
        ended = 0
        while not ended:
            ended = other.execute(f"SELECT count(pg_terminate_backend(pid)) {WAITING}").fetchone()[0]
        appending.join()
        assert not outcome[0].certain
        other.rollback()
        assert store.head(lease.session) == 0
        store.append(lease, [event(1)])
        assert store.head(lease.session) == 1


def test_what_the_database_is_still_at_work_on_is_ended_before_the_head_is_read(database):
    """The network breaks while an event is written, and the database does not notice: what is read next must stay so."""
    with open_store(database) as store, psycopg.connect(database) as other:
        lease = store.take(store.create("shop", b""))
        other.execute("SELECT 1 FROM session FOR UPDATE")  # the append waits for this
        outcome = []

        def append() -> None:
            try:
                store.append(lease, [event(1)])
            except StoreError as problem:
                outcome.append(problem)

        appending = threading.Thread(target=append)
        appending.start()
        while not other.execute(f"SELECT count(*) {WAITING}").fetchone()[0]:
            time.sleep(0.01)
        with socket.socket(fileno=os.dup(store._writer.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)
        appending.join()
        assert not outcome[0].certain
        assert other.execute(f"SELECT count(*) {WAITING}").fetchone()[0] == 1, "the database is still at it"
        head = store.head(lease.session)
        other.rollback()
        assert other.execute(f"SELECT count(*) {WAITING}").fetchone()[0] == 0
        time.sleep(0.2)
        assert store.head(lease.session) == head == 0
        store.append(lease, [event(1)])
        assert store.head(lease.session) == 1


def test_a_locked_database_is_one_sentence_and_nothing_is_written(database, monkeypatch):
    monkeypatch.setattr(postgres, "SETTINGS", ("lock_timeout = '100ms'",))
    with open_store(database) as store, psycopg.connect(database) as other:
        lease = store.take(store.create("shop", b""))
        other.execute("SELECT 1 FROM session FOR UPDATE")
        for group in ([event(1)], [event(1), event(2)]):
            with pytest.raises(StoreError, match="another connection has it locked") as told:
                store.append(lease, group)
            assert told.value.certain
        other.rollback()
        store.append(lease, [event(1)])


def test_a_read_only_database_is_one_sentence_and_nothing_is_written(database):
    with open_store(database) as store, psycopg.connect(database, autocommit=True) as other:
        lease = store.take(store.create("shop", b""))
        end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        other.execute("ALTER DATABASE tests SET default_transaction_read_only = on")
        other.execute(end)
        with pytest.raises(StoreError, match="it is read-only") as told:
            store.append(lease, [event(1)])
        assert told.value.certain
        other.execute("SET default_transaction_read_only = off")
        other.execute("ALTER DATABASE tests SET default_transaction_read_only = off")
        other.execute(end)
        store.append(lease, [event(1)])
        assert store.head(lease.session) == 1


def test_a_row_that_was_changed_is_noticed(database):
    with open_store(database) as store, psycopg.connect(database, autocommit=True) as other:
        lease = store.take(store.create("shop", b""))
        for seq in (1, 2, 3):
            store.append(lease, [Event(seq, 1, None, None, None, b"body %d" % seq)])
        other.execute("UPDATE event SET body = 'bodx 2' WHERE seq = 2")
        with pytest.raises(StoreError, match="event 2 of session 'shop' is not what was written"):
            list(store.tail(lease.session))
        other.execute("DELETE FROM event WHERE seq = 2")
        with pytest.raises(StoreError, match="event 2 of session 'shop' is missing"):
            list(store.tail(lease.session))


def test_a_database_that_does_not_sync_is_told_of(cluster, database):
    with open_store(database) as store:
        assert store.check() == []
        with psycopg.connect(database, autocommit=True) as other:
            other.execute("ALTER DATABASE tests SET synchronous_commit = off")
    try:
        with open_store(database) as store, store._alone() as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",), "a store does not answer before it is on the disk"
    finally:
        with psycopg.connect(database, autocommit=True) as other:
            other.execute("ALTER DATABASE tests RESET synchronous_commit")


def test_a_database_without_tables_cannot_be_read(database):
    with pytest.raises(InputError, match="holds no sessions"):
        open_store(database, readonly=True)


def test_the_benchmark_measures_what_was_written(database, monkeypatch):
    durable = script("benchmarks/durable.py")
    for name, value in {"BLOCK": 4, "BLOCKS": 2, "GROUP": 5}.items():
        monkeypatch.setattr(durable, name, value)
    lines = durable.in_postgres(database)
    assert [line.goal for line in lines] == ["1.2", "5"]
    with open_store(database) as store:
        assert store.head(store.find("shop").id) == (1 + 2) * (4 + (5 + 1) * 2), "warm-up and two blocks of each side"

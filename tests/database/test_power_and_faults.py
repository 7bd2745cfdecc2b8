"""The power fails, the disk fills up or breaks, the file is locked, read-only or damaged: nothing acknowledged is lost, and all is told."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from pathlib import Path

import apsw
import pytest

from bridle.database import Damaged, Event, Snapshot, StoreError, open_store, owners, sqlite
from bridle.database.store import unpacked
from helpers.forgetful_disk import ForgetfulDisk


def event(seq, size=700):
    return Event(seq, 1, b"key %d" % seq, None, None, bytes([seq % 251]) * size)


@pytest.fixture
def url(tmp_path):
    (tmp_path / "own").mkdir()
    return f"sqlite:///{tmp_path}/own/run.db"


@pytest.fixture
def disk(monkeypatch):
    """What stores do goes to a disk that forgets."""
    made = ForgetfulDisk()
    monkeypatch.setattr(sqlite.SqliteStore, "_connect", lambda self, mode: made.connect(self.path, mode))
    yield made
    made.close()


# --- power ------------------------------------------------------------------------------------------------------------------------------


def found_after(image, folder):
    """The numbers of the events in what a power cut has left; None where it is not even a database."""
    for path in folder.glob("run.db*"):
        path.unlink()
    for path, data in image.items():
        (folder / path.rpartition("/")[2]).write_bytes(data)
    connection = sqlite3.connect(folder / "run.db")
    try:
        sound = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT seq, kind, key, request, answer, body FROM event ORDER BY seq") if sound else []
        return [each.seq for row in rows for each in unpacked(Event(*row))] if sound else None
    except sqlite3.DatabaseError:
        return None
    finally:
        connection.close()


def lost_at_a_cut(url, disk, folder, level):
    """Cut the power at random moments while a journal is written, checkpointed and gets snapshots: what is lost that was acknowledged."""
    rng, acknowledged, lost, cuts = random.Random(3), [0], [], [0]

    def cut(share):
        if rng.random() < share:
            for image in disk.images(rng):
                cuts[0] += 1
                there = found_after(image, folder)
                if there is None or there != list(range(1, len(there) + 1)):
                    lost.append("all of it")
                elif len(there) < acknowledged[0]:
                    lost.append(acknowledged[0] - len(there))

    with open_store(url) as store:
        lease = store.take(store.create("shop", b""))
        for pragma in (f"synchronous = {level}", "wal_autocheckpoint = 12"):  # a checkpoint every few events
            store._connection.execute(f"PRAGMA {pragma}")
        disk.when = lambda: cut(0.05)
        seq = 0
        while seq < 40:
            group = [event(seq + 1 + i) for i in range(1 + seq % 2)]
            if seq % 4 > 1:
                group = [each._replace(key=None, request=None, answer=None) for each in group]  # several of these are one row
            store.append(lease, group)
            seq += len(group)
            acknowledged[0] = seq
            cut(0.5)
            if seq % 10 == 0:
                store.put_snapshot(lease, Snapshot(seq, "1", "here", b"", bytes(5000)))
        disk.when = lambda: None
    assert cuts[0] > 50
    return lost


@pytest.mark.slow
def test_what_was_acknowledged_survives_the_power(url, disk, tmp_path):
    assert lost_at_a_cut(url, disk, tmp_path, "FULL") == []


@pytest.mark.slow
@pytest.mark.parametrize("level", ["NORMAL", "OFF"])
def test_without_a_sync_at_each_commit_it_would_not(level, url, disk, tmp_path):
    """Which a kill cannot show, since the system's memory outlives the process; and which proves that the test above can fail."""
    assert lost_at_a_cut(url, disk, tmp_path, level)


def test_a_store_syncs_before_it_answers(url, disk):
    with open_store(url) as store:
        lease = store.take(store.create("shop", b""))
        for seq in range(1, 6):
            before = disk.syncs
            store.append(lease, [event(seq)])
            assert disk.syncs > before
            assert not disk.pending[f"{store.path}-wal"]
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


# --- a disk that breaks -----------------------------------------------------------------------------------------------------------------

FAULTS = {"full": (apsw.FullError, "the disk is full", True), "broken": (apsw.IOError, "disk I/O error", False)}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("many", [1, 3])
def test_a_disk_that_cannot_be_written_is_told_and_the_journal_goes_on(kind, many, url, disk):
    fault, said, certain = FAULTS[kind]
    with open_store(url) as store:
        lease = store.take(store.create("shop", b""))
        store.append(lease, [event(1)])
        disk.broken = lambda what, path: fault("disk I/O error") if what == "write" and path.endswith("-wal") else None
        with pytest.raises(StoreError, match=said) as told:
            store.append(lease, [event(2 + i) for i in range(many)])
        assert told.value.certain == certain
        with pytest.raises(StoreError, match=said) as told:
            store.append(lease, [event(2 + i) for i in range(many)])
        assert told.value.certain
        disk.broken = lambda what, path: None
        assert store.head(lease.session) == 1
        store.append(lease, [event(2)])
        assert list(store.tail(lease.session)) == [event(1), event(2)]
        assert store.check() == []


@pytest.mark.parametrize("many", [1, 3])
def test_a_sync_that_fails_leaves_no_verdict_until_the_disk_works(many, url, disk, tmp_path):
    """What was written may be in the system's memory and not on the disk, and a second sync would say nothing of it. So nobody may read
    it before it has been written once more, into the database itself."""
    with open_store(url) as store:
        lease = store.take(store.create("shop", b""))
        store.append(lease, [event(1)])
        disk.broken = lambda what, path: apsw.IOError("disk I/O error") if what == "sync" else None
        with pytest.raises(StoreError, match="disk I/O error") as told:
            store.append(lease, [event(2 + i) for i in range(many)])
        assert not told.value.certain
        with pytest.raises(StoreError, match="disk I/O error"):
            store.head(lease.session)
        with pytest.raises(StoreError, match="disk I/O error") as told:
            store.append(lease, [event(2)])
        assert told.value.certain
        disk.broken = lambda what, path: None
        disk.forget(f"{store.path}-wal")
        head = store.head(lease.session)
        assert head in (1, 1 + many)
        assert len(found_after(next(iter(disk.images(random.Random(0)))), tmp_path)) == head, "what can be read is on the disk"
        store.append(lease, [event(head + 1)])
        assert list(store.tail(lease.session)) == [event(seq) for seq in range(1, head + 2)]
        assert store.check() == []


def test_a_full_database_is_told_and_goes_on_when_there_is_room(url):
    with open_store(url) as store:
        lease, seq = store.take(store.create("shop", b"")), 0
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        told = None
        while told is None:
            try:
                store.append(lease, [event(seq + 1, 3000)])
                seq += 1
            except StoreError as problem:
                told = problem
        assert "the disk is full, or the database has reached its largest size" in str(told)
        assert told.certain
        with pytest.raises(StoreError, match="the disk is full"):
            store.append(lease, [event(seq + 1, 3000), event(seq + 2, 3000)])
        with pytest.raises(StoreError, match="the disk is full"):
            store.put_snapshot(lease, Snapshot(seq, "1", "here", b"", bytes(30_000)))
        assert store.snapshots(lease.session) == []
        assert store.head(lease.session) == seq > 0
        assert store.holds(lease)
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store.append(lease, [event(seq + 1, 3000), event(seq + 2, 3000)])
        assert [each.seq for each in store.tail(lease.session)] == list(range(1, seq + 3))


def test_a_read_only_database_is_told_and_goes_on_when_it_is_not(url):
    with open_store(url) as store:
        lease = store.take(store.create("shop", b""))
        store._connection.execute("PRAGMA query_only = ON")
        for group in ([event(1)], [event(1), event(2)]):
            with pytest.raises(StoreError, match="it is read-only") as told:
                store.append(lease, group)
            assert told.value.certain
        assert store.head(lease.session) == 0
        store._connection.execute("PRAGMA query_only = OFF")
        store.append(lease, [event(1)])
        assert store.head(lease.session) == 1


def test_a_locked_database_is_told_and_goes_on_when_it_is_free(url, monkeypatch):
    """Locked by a tool that knows nothing of us, and by another store that is writing."""
    monkeypatch.setattr(owners, "PATIENCE", 0.05)
    with open_store(url) as store:
        lease = store.take(store.create("shop", b""))
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for group in ([event(1)], [event(1), event(2)]):
            with pytest.raises(StoreError, match="another process has it locked") as told:
                store.append(lease, group)
            assert told.value.certain
        assert store.head(lease.session) == 0, "one can still read"
        other.execute("ROLLBACK")
        other.close()
        store.append(lease, [event(1)])
        beside = owners.OwnerLock(store.path, "beside")
        with beside.turn(), pytest.raises(StoreError, match="another process writes to it, and does not stop"):
            store.append(lease, [event(2)])
        beside.close()
        store.append(lease, [event(2)])
        assert store.head(lease.session) == 2


def test_no_two_stores_write_at_the_same_instant(url):
    """SQLite before 3.51.3 can damage a file when two connections write or checkpoint together."""
    inside, most, failed = [0], [0], []

    def write(number):
        try:
            with open_store(url) as store:
                lease = store.take(store.create(f"shop-{number}", b""))
                begin, end = store._lock.begin, store._lock.end

                def begun():
                    begin()
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])

                def ended():
                    inside[0] -= 1
                    end()

                store._lock.begin, store._lock.end = begun, ended
                for seq in range(1, 40):
                    store.append(lease, [event(seq)])
        except BaseException as problem:
            failed.append(problem)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    assert failed == []
    assert most == [1]


# --- damage, and the clock --------------------------------------------------------------------------------------------------------------


def filled(url, events=60):
    with open_store(url) as store:
        lease = store.take(store.create("shop", b"spec"))
        store.append(lease, [event(seq) for seq in range(1, events + 1)])
        path = store.path
    return path, lease.session


def test_a_changed_byte_of_an_event_is_told_with_its_number(url):
    path, session = filled(url)
    data = bytearray(Path(path).read_bytes())
    at = data.index(bytes([33]) * 700) + 350
    data[at] ^= 1
    Path(path).write_bytes(data)
    with open_store(url) as store:
        tail = store.tail(session)
        assert [next(tail) for _ in range(32)] == [event(seq) for seq in range(1, 33)]
        with pytest.raises(Damaged, match="event 33 of session 'shop' is not what was written; restore a backup"):
            next(tail)
        with pytest.raises(Damaged, match="event 33"):
            store.answer(session, b"key 33")
        assert store.answer(session, b"key 34") == event(34)


def test_a_changed_byte_of_a_row_of_several_events_is_told(url):
    with open_store(url) as store:
        lease = store.take(store.create("shop", b"spec"))
        store.append(lease, [Event(seq, 1, None, None, None, bytes([seq]) * 700) for seq in range(1, 41)])
        path = store.path
    data = bytearray(Path(path).read_bytes())
    data[data.index(bytes([33]) * 300) + 150] ^= 1
    Path(path).write_bytes(data)
    with open_store(url) as store, pytest.raises(Damaged, match="the row up to event 40 of session 'shop' is not what was written"):
        list(store.tail(lease.session))


@pytest.mark.parametrize("page", [0, 1, 2, 4, 8, 12])
def test_a_page_of_rubbish_is_told(page, url):
    """It is told when it is met, or found by `check`; never taken for what was written."""
    path, session = filled(url)
    data = bytearray(Path(path).read_bytes())
    data[page * 4096 : (page + 1) * 4096] = random.Random(page).randbytes(4096)
    Path(path).write_bytes(data)
    told, there = [], []
    try:
        with open_store(url) as store:
            told += store.check()
            there += store.tail(session)
    except StoreError as problem:
        told.append(str(problem))
    assert told
    assert there in ([], [event(seq) for seq in range(1, 61)]), "what is read is what was written"


def test_a_missing_event_is_told(url):
    path, session = filled(url)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM event WHERE seq = 20")
    connection.close()
    with pytest.raises(Damaged, match="it has lost 1 of its event rows"):
        open_store(url)
    Path(f"{url.removeprefix('sqlite:///')}-mark").unlink()
    with open_store(url) as store, pytest.raises(Damaged, match="event 20 of session 'shop' is missing"):
        list(store.tail(session))


def test_the_clock_of_the_machine_plays_no_part(url, monkeypatch):
    """It may be set back or stand still: a store never asks."""

    def asked():
        raise AssertionError("somebody asked what time it is")

    for name in ("time", "time_ns", "localtime", "gmtime"):
        monkeypatch.setattr(time, name, asked)
    monkeypatch.setattr(time, "strftime", lambda form: "1970-01-01 00:00:00")  # for people, in the file of a lock
    with open_store(url) as store:
        lease = store.take(store.create("shop", b""))
        store.append(lease, [event(1)])
        store.renew()
        assert store.holds(lease)

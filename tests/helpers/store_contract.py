"""What a store must do, whatever database it is; the tests of each kind call these with a URL of an empty one."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import Any

import pytest

from bridle.core import InputError
from bridle.database import AccessKey, Event, Fenced, Owned, Snapshot, StoreError, Taken, open_store


def event(seq: int, key: bytes | None = None, body: bytes = b"body") -> Event:
    return Event(seq, 1, key, None, None, body)


def keeps_events(url: str) -> None:
    """In order, by their identity, once."""
    with open_store(url) as store:
        lease = store.take(store.create("shop", b"spec"))
        events = [
            Event(n, n % 3, b"k%d" % n if n % 2 else None, b"asked", None if n % 5 else b"", bytes([n % 256]) * 50) for n in range(1, 2502)
        ]
        assert store.head(lease.session) == 0
        store.append(lease, events[:1])
        store.append(lease, events[1:])
        assert list(store.tail(lease.session)) == events
        assert list(store.tail(lease.session, after=2400)) == events[2400:]
        assert store.head(lease.session) == 2501
        assert store.answer(lease.session, b"k7") == events[6]
        assert store.answer(lease.session, b"k8") is None
        for again in ([event(2501)], [event(2502, b"k7")], [event(2502), event(2503, b"k7")]):
            with pytest.raises(Taken, match="number or key is there already"):
                store.append(lease, again)
        assert store.head(lease.session) == 2501
        store.append(lease, [event(2502, b"")])
        assert store.answer(lease.session, b"") == event(2502, b"")
    with open_store(url, readonly=True) as reader:
        assert list(reader.tail(lease.session, after=2500)) == [events[2500], event(2502, b"")]
        with pytest.raises(StoreError, match="reading only"):
            reader.append(lease, [event(2503)])


def packs_events(url: str) -> None:
    """Events that nobody looks up share rows, and are read as they were written, from any of them on; none is taken twice."""
    plain = [Event(n, n % 3, None, None, None, bytes([n % 256]) * (n % 90)) for n in range(1, 1301)]
    events = [each._replace(key=b"k%d" % each.seq) if each.seq in (1, 700, 701, 1300) else each for each in plain]
    events[9] = events[9]._replace(body=bytes(300_000))
    events[11] = events[11]._replace(answer=b"")
    with open_store(url) as store:
        lease = store.take(store.create("shop", b"spec"))
        for begin, end in ((0, 40), (40, 41), (41, 43), (43, 1300)):
            store.append(lease, events[begin:end])
        for after in (0, 1, 8, 9, 10, 39, 40, 41, 42, 699, 700, 1299, 1300):
            assert list(store.tail(lease.session, after)) == events[after:]
        assert store.head(lease.session) == 1300
        assert store.answer(lease.session, b"k701") == events[700]
        for again in (events[41:42], events[41:43], events[500:505], events[20:21]):
            with pytest.raises(Taken, match="number or key is there already"):
                store.append(lease, again)
        (outcome,) = store.append_many([(lease, events[50:60])])
        assert isinstance(outcome, Taken)
        lease = store.take(store.find("shop"))
        with pytest.raises(Taken):
            store.append(lease, events[500:505])
        store.append(lease, [event(1301)])
    with open_store(url, readonly=True) as reader:
        assert list(reader.tail(lease.session)) == [*events, event(1301)]


def fences_off_the_last_owner(url: str) -> None:
    """Whoever had a session before writes nothing any more, neither events nor snapshots."""
    with open_store(url, owner="first", at="http://first") as store, open_store(url) as other:
        found = store.create("shop", b"spec")
        old = store.take(found)
        store.append(old, [event(1)])
        with pytest.raises(Owned, match="owned by first at http://first") as told:
            other.take(found, wait=0.1)
        assert (told.value.by, told.value.url) == ("first", "http://first")
        assert other.owners() == {"shop": "first"}
        assert other.living() == {"first": "http://first", other.owner: ""}
        assert f"process{os.getpid()}_" in other.owner, "an owner says where it is"
        assert store.holds(old)
        store.release(old)
        assert not store.holds(old)
        new = other.take(found)
        assert new.epoch == old.epoch + 1
        for group in ([event(2)], [event(2), event(3)]):
            with pytest.raises(Fenced, match="another owner"):
                store.append(old, group)
        with pytest.raises(Fenced):
            store.put_snapshot(old, Snapshot(1, "1", "here", b"", b""))
        store.release(old)  # of no effect
        assert other.holds(new)
        other.append(new, [event(2)])
        assert store.head(found.id) == 2
        assert store.snapshots(found.id) == []
        assert store.find("shop").owner == other.owner
        again = other.take(found)
        assert not other.holds(new), "the same store has taken it once more"
        assert other.holds(again)
    with open_store(url) as third:
        assert third.find("shop").owner is None, "a store that is closed gives back what it owns"
        assert third.owners() == {"shop": None}


def groups_commit_together(url: str) -> None:
    """One commit over several sessions: those whose lease is lost, or whose events are there already, stay out alone."""
    with open_store(url) as store:
        leases = [store.take(store.create(f"shop-{i}", b"")) for i in range(4)]
        stale = leases[1]
        leases[1] = store.take(store.find("shop-1"))
        outcomes = store.append_many([(lease, [event(1), event(2)]) for lease in (leases[0], stale, leases[2])])
        assert [type(outcome) for outcome in outcomes] == [type(None), Fenced, type(None)]
        assert [store.head(lease.session) for lease in leases] == [2, 0, 2, 0]
        sent = [(leases[0], [event(3)]), (leases[2], [event(2)]), (leases[0], [event(4)]), (leases[3], [event(1)]), (stale, [event(1)])]
        outcomes = store.append_many(sent)
        assert [type(outcome) for outcome in outcomes] == [type(None), Taken, type(None), type(None), Fenced]
        assert [store.head(lease.session) for lease in leases] == [4, 0, 2, 1]
        assert store.append_many([]) == []


def keeps_two_snapshots(url: str) -> None:
    with open_store(url) as store:
        lease, other = (store.take(store.create(name, b"")) for name in ("shop", "other"))
        store.put_snapshot(other, Snapshot(1, "1", "here", b"d", b"other"))
        for seq in (10, 20, 30, 30):
            store.put_snapshot(lease, Snapshot(seq, "1.0", "here", b"d%d" % seq, bytes(100_000)))
        assert [each.seq for each in store.snapshots(lease.session)] == [30, 20]
        assert store.snapshots(lease.session)[0] == Snapshot(30, "1.0", "here", b"d30", bytes(100_000))
        assert [each.body for each in store.snapshots(other.session)] == [b"other"]


def keeps_keys_refusals_and_what_was_done(url: str) -> None:
    with open_store(url) as store:
        found = store.create("shop", b"")
        with pytest.raises(InputError, match="name 'shop' is taken"):
            store.create("shop", b"other")
        for name in ("", "a\0b", "a\ud800b", "x" * 201, None):
            with pytest.raises(InputError, match="name must be a text"):
                store.create(name, b"")
        assert store.names() == ["shop"]
        assert store.find("nobody") is None
        for odd in ("a\0b", "a\ud800b"):
            assert store.find(odd) is None
            assert store.keys.find(odd) is None
            assert not store.keys.revoke(odd, 0.0)
            store.quarantine(77, 0.0, odd, b"")
            store.audit(odd, odd, odd, 0.0)
        assert {each.reason for each in store.quarantined(77)} == {each.who for each in store.audits()} == {"a\ufffdb", "a?b"}
        for i in range(5):
            store.quarantine(found.id, float(i), f"reason {i}", b"request")
        store.quarantine(0, 9.0, "no session", b"")
        assert [(each.number, each.reason) for each in store.quarantined(found.id, limit=2, offset=1)] == [(4, "reason 3"), (3, "reason 2")]
        assert store.counts() == {found.id: 5, 0: 1, 77: 2}
        assert len(store.quarantined(found.id, limit=10**30)) == 5
        assert store.quarantined(found.id, offset=10**30) == store.audits(offset=2**63) == []
        for limit, offset in ((-1, 0), (1, -1)):
            with pytest.raises(InputError, match="must not be negative"):
                store.quarantined(found.id, limit, offset)
        key = AccessKey("id", "till", "decide,read", b"salt", b"hash", "{}", 1.5, None)
        store.keys.add(key)
        with pytest.raises(InputError, match="id 'id' is taken"):
            store.keys.add(key)
        assert store.keys.find("id") == key
        assert store.keys.find("none") is None
        assert store.keys.revoke("id", 2.5)
        assert not store.keys.revoke("id", 3.5)
        assert store.keys.list() == [key._replace(revoked=2.5)]
        store.audit("till", "created", "shop", 1.0)
        store.audit("admin", "revoked id", None, 2.0)
        assert [(each.who, each.what, each.session, each.when) for each in store.audits(limit=2)] == [
            ("admin", "revoked id", None, 2.0), ("till", "created", "shop", 1.0),
        ]  # fmt: skip


def counts_refusals_that_it_no_longer_keeps(url: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("bridle.database.store.KEPT_REFUSALS", 3)
    with open_store(url) as store:
        for i in range(7):
            store.quarantine(1, float(i), "", b"")
        assert [each.number for each in store.quarantined(1)] == [7, 6, 5]
        assert store.counts() == {1: 7}


def refuses_tables_of_another_version(url: str, monkeypatch: Any) -> None:
    """Tables are made whole or not at all; those of another version are refused, for reading too, and stay as they are."""
    from bridle.database import tables

    with pytest.raises(InputError):
        open_store(url, readonly=True)
    creation = tables.creation

    def broken(dialect: Any) -> Any:
        yield "CREATE TABLE half (id INTEGER)"
        yield "this is no statement"

    with monkeypatch.context() as changed:
        changed.setattr(tables, "creation", broken)
        with pytest.raises(StoreError):
            open_store(url)
        changed.setattr(tables, "creation", creation)
        with open_store(url) as store:
            store.create("shop", b"spec")
            assert not rows_of(store, "half"), "tables that failed left something behind"
    with monkeypatch.context() as changed:
        changed.setattr(tables, "VERSION", tables.VERSION + 1)
        for readonly in (False, True):
            with pytest.raises(
                InputError, match=r"its tables have version 2, and this version of bridle reads version 3 alone; open it with"
            ):
                open_store(url, readonly=readonly)
    with open_store(url) as store:
        assert store.find("shop").spec == b"spec"


def rows_of(store: Any, table: str) -> bool:
    """Whether a database has a table of this name."""
    query = (
        "SELECT count(*) FROM sqlite_master WHERE name = ?"
        if hasattr(store, "path")
        else "SELECT count(*) FROM pg_tables WHERE tablename = %s"
    )
    with store._alone() as connection:
        return bool(connection.execute(query, (table,)).fetchone()[0])


def serves_many_threads(url: str) -> None:
    """Whatever they do at the same time, each finds what it has done."""
    with open_store(url) as store:
        leases = [store.take(store.create(f"shop-{i}", b"")) for i in range(6)]
        failed: list[BaseException] = []

        def work(number: int) -> None:
            try:
                lease = leases[number]
                for seq in range(1, 25):
                    store.append(lease, [event(seq, b"%d" % seq, b"%d of %d" % (seq, number))])
                    assert store.head(lease.session) == seq
                    assert store.answer(lease.session, b"%d" % seq).body == b"%d of %d" % (seq, number)
                    if seq % 8 == 0:
                        store.put_snapshot(lease, Snapshot(seq, "1", "here", b"", b"%d" % number))
                        store.quarantine(lease.session, 0.0, "", b"")
                        store.audit(str(number), "worked", None, 0.0)
                assert [each.body for each in store.tail(lease.session)] == [b"%d of %d" % (seq, number) for seq in range(1, 25)]
            except BaseException as problem:
                failed.append(problem)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert store.counts() == {lease.session: 3 for lease in leases}
        assert [[each.seq for each in store.snapshots(lease.session)] for lease in leases] == [[24, 16]] * 6
        assert len(store.audits()) == 18


def survives_owners_that_respect_nobody(url: str, monkeypatch: Any, rounds: int = 60) -> None:
    """Three owners take one session from each other at any time, as if leases never held anybody back: fencing alone must do.

    Each event has a digest of all before it, as its owner knew them. What was acknowledged is there, once, on top of what its owner knew.
    """
    with open_store(url) as store:
        found = store.create("shop", b"")
    monkeypatch.setattr(f"{type(store).__module__}.{type(store).__name__}._lives", lambda self, run, owner: False)
    acknowledged: dict[int, bytes] = {}
    doubled, fenced, failed = [], [], []

    def own(name: str) -> None:
        try:
            with open_store(url, owner=name) as mine:
                for turn in range(rounds):
                    lease = mine.take(found)
                    known = hashlib.sha256()
                    for each in mine.tail(found.id):
                        known.update(each.body)
                    head = mine.head(found.id)
                    for seq in range(head + 1, head + 4):
                        group = [event(seq, body=known.digest() + name.encode())]
                        try:
                            mine.append(lease, group)
                        except (Fenced, Taken):
                            fenced.append(seq)
                            break
                        if seq in acknowledged:
                            doubled.append(seq)
                        acknowledged[seq] = group[0].body
                        known.update(group[0].body)
                    if turn % 7 == 0:
                        mine.release(lease)
        except BaseException as problem:
            failed.append(problem)

    owners = [threading.Thread(target=own, args=(name,)) for name in ("one", "two", "three")]
    for thread in owners:
        thread.start()
    for thread in owners:
        thread.join()
    assert failed == []
    assert doubled == []
    with open_store(url) as store:
        there = list(store.tail(found.id))
    assert {each.seq: each.body for each in there} == acknowledged
    known = hashlib.sha256()
    for each in there:
        assert each.body[:32] == known.digest(), f"event {each.seq} rests on something else than what is before it"
        known.update(each.body)
    assert len({each.body[32:] for each in there}) == 3
    assert fenced, "they never met"


ALWAYS = (
    keeps_events,
    packs_events,
    fences_off_the_last_owner,
    groups_commit_together,
    keeps_two_snapshots,
    keeps_keys_refusals_and_what_was_done,
    serves_many_threads,
)
"""What every store must do."""

PRESSED = (counts_refusals_that_it_no_longer_keeps, refuses_tables_of_another_version)
"""What it must do where a test changes its limits; `survives_owners_that_respect_nobody` is one more, and slow."""

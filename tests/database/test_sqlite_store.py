"""A store in a SQLite file: what was appended is there, in order, once; one owner at a time."""

from __future__ import annotations

import pytest

from bridle.core import InputError
from bridle.database import Event, Fenced, Owned, Snapshot, Taken, open_store


def event(seq, key=None, body=b"body"):
    return Event(seq, 1, key, None, None, body)


@pytest.fixture
def store(tmp_path):
    with open_store(f"sqlite:///{tmp_path}/run.db") as opened:
        yield opened


def test_events_come_back_in_order_and_by_their_identity(store):
    lease = store.take(store.create("shop", b"spec"))
    events = [Event(seq, seq % 3, b"k%d" % seq if seq % 2 else None, b"asked", None, bytes([seq % 256]) * 50) for seq in range(1, 2502)]
    store.append(lease, events[:1])
    store.append(lease, events[1:])
    assert list(store.tail(lease.session)) == events
    assert list(store.tail(lease.session, after=2400)) == events[2400:]
    assert store.head(lease.session) == 2501
    assert store.answer(lease.session, b"k7") == events[6]
    assert store.answer(lease.session, b"k8") is None
    with pytest.raises(Taken):
        store.append(lease, [event(2501)])
    with pytest.raises(Taken):
        store.append(lease, [event(2502, b"k7")])
    assert store.head(lease.session) == 2501


def test_whoever_had_a_session_before_is_fenced_off(store, tmp_path):
    found = store.create("shop", b"spec")
    old = store.take(found)
    store.append(old, [event(1)])
    with open_store(f"sqlite:///{tmp_path}/run.db") as other:
        with pytest.raises(Owned, match=f"owned by {store.owner}"):
            other.take(other.find("shop"))
        store.release(old)
        new = other.take(other.find("shop"))
        assert new.epoch == old.epoch + 1
        for group in ([event(2)], [event(2), event(3)]):
            with pytest.raises(Fenced):
                store.append(old, group)
        with pytest.raises(Fenced):
            store.put_snapshot(old, Snapshot(1, "1", "here", b"", b""))
        other.append(new, [event(2)])
    assert store.head(found.id) == 2
    assert store.snapshots(found.id) == []


def test_a_name_is_given_once(store):
    store.create("shop", b"spec")
    with pytest.raises(InputError, match="name 'shop' is taken"):
        store.create("shop", b"other")
    assert store.find("shop").spec == b"spec"
    assert store.names() == ["shop"]

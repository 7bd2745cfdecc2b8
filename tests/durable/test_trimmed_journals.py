"""Journals whose oldest events were dropped: the session goes on as ever, and what is gone is said to be."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

import bridle
from bridle.core import InputError, Observation
from bridle.database import open_store
from bridle.durable import inspection
from bridle.durable.journal import open_journal


def observe(session, t, **key):
    session.observe(*seen(t), **key)


def seen(t):
    rng = np.random.default_rng([5, t])
    return Observation(float(t % 3), rng.standard_normal(3), 0.1 * (t % 4) - 1.0, 0.1 * rng.standard_normal(3))[:4]


def policy():
    return bridle.policy("anytime", bridle.Ball(3))


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/run.db"


def played(url, rounds=45, **options):
    """A session with so many events and snapshots after 40 and at the end; some have keys, others share rows. Its twin has no journal."""
    twin = bridle.Session(policy())
    with bridle.Session.open(url, "shop", policy=policy(), snapshot_every=10, **options) as session:
        for t in range(rounds):
            observe(session, t, **({"key": f"order {t}"} if t % 4 == 0 else {}))
            observe(twin, t)
    return twin


def played_in_groups(url):
    """As `played`, by an owner that appends ten events at a time, as the service does: those without keys share a row."""
    twin, waiting = bridle.Session(policy()), []
    with open_store(url) as store:
        core = open_journal(store, "shop", policy(), snapshot_every=10)
        for t in range(45):
            waiting += core.apply(Observation(*seen(t)), f"order {t}" if t % 4 == 0 else None).rows
            observe(twin, t)
            if len(waiting) == 10 or t == 44:
                store.append(core.lease, waiting)
                core.committed(waiting.pop().seq)
                waiting.clear()
                store.put_snapshot(core.lease, core.snapshot())
        core.close()
    return twin


@pytest.mark.parametrize("play", [played, played_in_groups])
def test_a_trimmed_session_goes_on_as_its_twin(play, url):
    twin = play(url)
    with open_store(url) as store:
        first, was = inspection.trim(store, "shop")
        assert was == 1
        assert 1 < first <= 40
        assert store.head(1) == 45
        assert inspection.trim(store, "shop") == (first, first)
    with bridle.Session.open(url, "shop") as session:
        observe(session, 44, key="order 44")  # it has had that one
        assert session.rounds == 45
        for t in range(45, 70):
            observe(session, t)
            observe(twin, t)
            assert session.decide().tobytes() == twin.decide().tobytes()
        assert session.cost == twin.cost
        assert session.certificate().regret == twin.certificate().regret
    with open_store(url, readonly=True) as store:
        said = inspection.verify(store, "shop")
        assert (said.events, said.snapshots, said.wrong) == (70, 2, [])


def test_what_was_dropped_is_said_to_be(url):
    played(url)
    with open_store(url) as store:
        inspection.trim(store, "shop", before=40)
        said = inspection.verify(store, "shop")
        assert (said.events, said.snapshots, said.wrong) == (45, 2, [])
        assert inspection.at_round(store, "shop", 42).session.rounds == 42
        with pytest.raises(InputError, match="round must be at least 40: the journal of session 'shop' was trimmed, not 12"):
            inspection.at_round(store, "shop", 12)
        entries = []
        inspection.rounds(store, "shop", entries.append)
        assert [entry["round"] for entry in entries] == [41, 42, 43, 44, 45]
        assert store.answer(1, b"\1order 44") is not None
        assert store.answer(1, b"\1order 0") is None, "an identity goes with its event"


def test_a_session_at_its_last_snapshot_keeps_its_last_event(url):
    played(url)
    with open_store(url) as store:
        assert inspection.trim(store, "shop", before=45) == (45, 1)
        assert (store.head(1), store.first(1)) == (45, 45)
        with pytest.raises(InputError, match="round must be at least 45"):
            inspection.at_round(store, "shop", 44)
    with bridle.Session.open(url, "shop") as session:
        observe(session, 45)
        assert session.rounds == 46


def test_what_cannot_be_trimmed_is_refused(url):
    with open_store(url) as store, pytest.raises(InputError, match="has no session 'shop'"):
        inspection.trim(store, "shop")
    session = bridle.Session.open(url, "shop", policy=policy())
    observe(session, 0)
    with open_store(url) as store:
        with pytest.raises(InputError, match="cannot be trimmed: it has no snapshot yet"):
            inspection.trim(store, "shop")
        session.close()
        with pytest.raises(InputError, match="before must be the number of a snapshot of session 'shop', 1, not 7"):
            inspection.trim(store, "shop", before=7)
        with pytest.raises(InputError, match="before must be the number of a snapshot of session 'shop', not 7"):
            store.trim(1, 7)


def test_a_damaged_journal_is_not_trimmed(url, tmp_path):
    played(url)
    with sqlite3.connect(tmp_path / "run.db") as raw:
        raw.execute("DELETE FROM event WHERE seq = 3")
    raw.close()
    (tmp_path / "run.db-mark").unlink()  # it would tell sooner
    with open_store(url) as store:
        with pytest.raises(InputError, match=r"session 'shop' is not trimmed: .* event 3 of session 'shop' is missing"):
            inspection.trim(store, "shop")
        assert store.first(1) == 1


def test_long_journals_are_dropped_piece_by_piece(url, monkeypatch):
    monkeypatch.setattr("bridle.database.store.TRIMMED", 7)
    played(url)
    with open_store(url) as store:
        assert inspection.trim(store, "shop", before=40) == (40, 1)


@pytest.mark.parametrize("before", [40, 45])
def test_a_trimmed_session_is_drawn_as_far_back_as_its_journal_goes(url, before):
    twin, seen = bridle.Session(policy()), {}
    for t in range(45):
        observe(twin, t)
        seen[twin.rounds] = twin.ccv
    played(url)
    with open_store(url) as store:
        inspection.trim(store, "shop", before=before)
    with bridle.Session.open(url, "shop") as session:
        curve = inspection.curve(session.journal)
    assert before <= curve.rounds[0]
    assert curve.rounds[-1] == 45
    assert curve.ccv == [seen[t] for t in curve.rounds]

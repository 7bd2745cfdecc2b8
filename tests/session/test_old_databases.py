"""A database whose tables are of version 1, as bridle 0.1.0 wrote it: its session goes on, with its keys, tickets, budgets and journal."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

import bridle
from bridle.database import open_store
from bridle.session import inspection
from bridle.session.durable import KeyConflict
from bridle.session.session import Session

WRITTEN = gzip.decompress((Path(__file__).parent / "saved" / "journal.sql.gz").read_bytes()).decode()
ORDER = {"f": 3.0, "df": [1.0, -0.5], "g": [-0.1], "dg": [[0.5, -1.0]], "pay": {"march": 1.5}}


@pytest.fixture
def url(tmp_path):
    with sqlite3.connect(tmp_path / "run.db") as raw:
        raw.executescript(WRITTEN)
    raw.close()
    return f"sqlite:///{tmp_path}/run.db"


def version(url):
    with sqlite3.connect(url.removeprefix("sqlite:///")) as raw:
        ((found,),) = raw.execute("SELECT version FROM schema_version")
    raw.close()
    return found


def stands(session):
    return session.rounds, session.pending, session.cost, session.ccv, session.decide().tolist()


THEN = (12, 2, 20.5, 0.7000000000000001, [0.0, 1.0])
"""What 0.1.0 said of it when it closed it."""


def test_who_only_reads_leaves_the_tables_as_they_are(url):
    with open_store(url, readonly=True) as store:
        assert [event.seq for event in store.tail(1)] == list(range(1, 19))
        core = inspection.reader(store, "shop", Session._restored)
        core.rebuild()
        assert stands(core.session) == THEN
    assert version(url) == 1


def test_a_session_of_an_earlier_version_goes_on(url):
    with bridle.Session.open(url, "shop") as session:
        assert stands(session) == THEN
        assert session.gate("march").left == 45.5
        session.observe(**ORDER, key="order 12")  # it has had that one
        with pytest.raises(KeyConflict):
            session.observe(**ORDER | {"f": 4.0}, key="order 12")
        assert stands(session) == THEN
        assert session.gate("march").left == 45.5
        session.observe(g=[0.2], dg=[[1.0, 0.0]], ticket=13)  # the other half of its feedback
        session.observe(f=1.0, df=[0.5, 0.5], g=[0.2], dg=[[1.0, 0.0]], ticket=14)
        for _ in range(5):
            session.observe(f=1.0, df=[0.5, 0.5], g=[0.2], dg=[[1.0, 0.0]])
        assert (session.rounds, session.pending) == (19, 0)
    assert version(url) == 2
    with bridle.Session.open(url, "shop") as session:
        assert (session.rounds, session.pending, session.gate("march").left) == (19, 0, 45.5)
    with open_store(url, readonly=True) as store:
        assert [event.seq for event in store.tail(1)] == list(range(1, 26))

"""A store in a SQLite file does what every store must; and what is special about a file."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest

from bridle.core import InputError, Unavailable
from bridle.database import Owned, StoreError, open_store
from helpers import store_contract


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/run.db"


@pytest.mark.parametrize("must", store_contract.ALWAYS, ids=lambda must: must.__name__)
def test_it_does_what_every_store_must(must, url):
    must(url)


@pytest.mark.parametrize(
    "must",
    [
        *store_contract.PRESSED,
        pytest.param(store_contract.survives_owners_that_respect_nobody, marks=pytest.mark.slow),
    ],
    ids=lambda must: must.__name__,
)
def test_it_does_what_every_store_must_also_when_pressed(must, url, monkeypatch):
    must(url, monkeypatch)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "url must name a file"),
        ("sqlite:///:memory:", "url must name a file"),
        ("sqlite:///run.db?mode=ro", "url must name a file"),
        ("mysql://host/base", "url must begin with sqlite: or postgresql:"),
        ("postgresql+psycopg2://host/base", "not postgresql\\+psycopg2:"),
        ("run.db", "this one cannot be read"),
        (None, "url must be the address"),
        ("sqlite:////nowhere/at/all/run.db", "no folder"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_error(url, said):
    with pytest.raises(InputError, match=said):
        open_store(url)


def test_the_password_of_a_url_is_in_no_error():
    with pytest.raises(InputError) as told:
        open_store("postgresql://me:geheim@127.0.0.1:1/base")
    assert "geheim" not in str(told.value)
    assert isinstance(told.value, StoreError)


@pytest.mark.parametrize("owner", ["", "a b", "../x", "x" * 65])
def test_the_name_of_an_owner_is_plain(owner, url):
    with pytest.raises(InputError, match="owner must be"):
        open_store(url, owner=owner or "\n")


def test_a_library_that_is_missing_is_one_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy.engine", None)
    with pytest.raises(Unavailable, match=r"pip install 'bridle-oco\[durable\]'"):
        open_store("sqlite:///run.db")


def test_psycopg_that_is_missing_is_one_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "bridle.database.postgres", raising=False)
    with pytest.raises(Unavailable, match=r"pip install 'bridle-oco\[postgres\]'"):
        open_store("postgresql://host/base")


def test_every_statement_is_one_that_sqlite_understands(url):
    from bridle.database.sqlite import STATEMENTS

    with open_store(url) as store, store._alone() as connection:
        for statement in STATEMENTS.values():
            connection.execute(f"EXPLAIN {statement.text}", (None,) * len(statement.order))


CHILD = """
import sys
from bridle.database import open_store
store = open_store(sys.argv[1], owner="child")
lease = store.take(store.find("shop"))
print(lease.epoch, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_the_session_of_a_killed_process_can_be_had_at_once(url, tmp_path):
    with open_store(url) as store:
        found = store.create("shop", b"")
        child = subprocess.Popen([sys.executable, "-c", CHILD, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"1\n"
        with pytest.raises(Owned, match="owned by child"):
            store.take(found)
        with pytest.raises(InputError, match="process"):
            open_store(url, owner="child")  # one name is one owner
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
        assert store.owners() == {"shop": None}
        assert store.take(found).epoch == 2
    open_store(url).close()
    assert sorted(path.name for path in tmp_path.iterdir() if ".lock" in path.name) == [], "the lock of a dead owner is left"


def test_a_lock_that_cannot_be_opened_counts_as_held(url, monkeypatch):
    """It may be another user's, who is at work; a lock that may be read tells whether it is held."""
    own, allowed = os.open, []

    def opened(path, flags, *rest, **named):
        if str(path).endswith(".first.lock") and flags & os.O_ACCMODE not in allowed:
            raise PermissionError(13, "Permission denied", path)
        return own(path, flags, *rest, **named)

    with open_store(url) as store:
        found = store.create("shop", b"")
        dead = open_store(url, owner="first")
        dead.take(found)
        dead._lock.drop()  # as if it were killed
        monkeypatch.setattr(os, "open", opened)
        with pytest.raises(Owned, match="owned by first"):
            store.take(found)
        assert "first" in store.living()
        with open_store(url) as other:
            assert other.owners() == {"shop": "first"}
        allowed.append(os.O_RDONLY)
        assert store.take(found).epoch == 2


def test_a_store_belongs_to_the_process_that_opened_it(url):
    """A forked child cannot use it, and does not hold what its parent owns."""
    with open_store(url) as store:
        found = store.create("shop", b"")
        store.take(found)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads that some library has: the child does not use them
            pid = os.fork()
        if pid == 0:
            status = 1
            try:
                store.names()
            except StoreError as problem:
                status = 0 if "each must open a store of its own" in str(problem) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert store.names() == ["shop"]


def test_a_closed_store_says_so(url):
    store = open_store(url)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="it is closed"):
        store.names()
    with pytest.raises(StoreError, match="it is closed"):
        store.create("shop", b"")

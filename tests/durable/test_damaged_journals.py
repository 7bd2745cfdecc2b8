"""A journal that has lost its last commits is refused: no session continues with fewer rounds, and none begins in its place."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

import bridle
from bridle.core import InputError
from bridle.database import Damaged, StoreError, mark, open_store
from bridle.storage import Disk
from helpers.extent import WHOLE

CHILD = """
import os, signal, sys
import bridle
url, rounds, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
policy = bridle.policy("anytime", bridle.Ball(2))
for name in ("shop", "other"):
    session = bridle.Session.open(url, name, policy=policy, gates={"budget": bridle.Gate(1000.0)}, snapshot_every=every)
    for i in range(rounds):
        session.observe(f=0.1 * i, df=[1.0, 0.0], g=0.1, dg=[0.0, 1.0], pay={"budget": 1.0})
os.kill(os.getpid(), signal.SIGKILL)
"""
ROUNDS = 12

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[10_000, 5], ids=["no snapshot", "snapshots"])
def killed(request, tmp_path_factory):
    """The files that a killed process has left: two sessions, of which each acknowledged `ROUNDS` rounds, all of them in the log."""
    folder = tmp_path_factory.mktemp("killed")
    done = subprocess.run([sys.executable, "-c", CHILD, f"sqlite:///{folder}/run.db", str(ROUNDS), str(request.param)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert os.path.getsize(folder / "run.db-wal") > 10_000
    return folder


@pytest.fixture
def put_back(killed, tmp_path):
    """Put these files into a folder, again and again; each time a new one."""
    numbers = count()

    def put():
        return Path(shutil.copytree(killed, tmp_path / str(next(numbers))))

    return put


def opened(folder, name="shop"):
    """The rounds of a session that was opened, or None where that was refused. Where none is found, it would be made anew."""
    policy = bridle.policy("anytime", bridle.Ball(2))
    try:
        with bridle.Session.open(f"sqlite:///{folder}/run.db", name, policy=policy, gates={"budget": bridle.Gate(1000.0)}) as session:
            assert session.gate("budget").left == 1000.0 - session.rounds
            return session.rounds
    except StoreError:
        return None


def contents(folder):
    """What the files that matter hold, those that hold anything."""
    found = {name: folder / name for name in ("run.db", "run.db-wal", "run.db-mark")}
    return {name: path.read_bytes() for name, path in found.items() if path.exists() and path.stat().st_size}


def test_what_is_whole_opens(put_back):
    folder = put_back()
    assert (opened(folder), opened(folder, "other")) == (ROUNDS, ROUNDS)
    assert (opened(folder), opened(folder, "other")) == (ROUNDS, ROUNDS)


def test_a_flipped_bit_in_the_log_is_noticed_or_makes_no_difference(put_back):
    folder, rng, refused = put_back(), random.Random(5), 0
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    flips = 1000 if WHOLE else 100
    for _ in range(flips):
        data = bytearray(kept["run.db-wal"])
        bit = rng.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        for path in folder.iterdir():
            path.unlink()
        for name, content in (kept | {"run.db-wal": bytes(data)}).items():
            (folder / name).write_bytes(content)
        before = contents(folder)
        found = opened(folder, rng.choice(["shop", "other"]))
        assert found in (None, ROUNDS), f"bit {bit}"
        if found is None:
            refused += 1
            assert contents(folder) == before, "what is left is not touched"
    assert refused > 0.8 * flips


def test_a_log_that_is_cut_short_is_noticed(put_back):
    size = os.path.getsize(put_back() / "run.db-wal")
    for left in (0, 32, size // 3, size // 2):
        folder = put_back()
        os.truncate(folder / "run.db-wal", left)
        assert (opened(folder), opened(folder, "other")) == (None, None), left


@pytest.mark.parametrize("gone", [["run.db-wal"], ["run.db-wal", "run.db-shm"], ["run.db", "run.db-wal", "run.db-shm"]])
def test_a_log_or_a_database_that_is_not_there_is_noticed(gone, put_back):
    folder = put_back()
    for name in gone:
        (folder / name).unlink()
    before = contents(folder)
    assert opened(folder) is None
    assert opened(folder, "a third") is None, "nor is a session made over one that is lost"
    if "run.db" not in gone:
        with pytest.raises(Damaged, match="lost"):
            open_store(f"sqlite:///{folder}/run.db", readonly=True)
    assert contents(folder) == before, "what is left is not touched"
    (folder / "run.db-mark").unlink()  # as the error says
    assert opened(folder) == 0


@pytest.mark.parametrize("name", ["shop", "other"])
@pytest.mark.parametrize("last", [1, 7])
def test_deleted_rows_are_noticed(name, last, put_back):
    """Those of a session that others have written after, too."""
    folder = put_back()
    with sqlite3.connect(folder / "run.db") as raw:
        raw.execute(
            "DELETE FROM event WHERE session = (SELECT id FROM session WHERE name = ?1) AND seq > "
            "(SELECT max(seq) FROM event WHERE session = (SELECT id FROM session WHERE name = ?1)) - ?2",
            (name, last),
        )
    raw.close()
    assert (opened(folder), opened(folder, "other")) == (None, None)


@pytest.mark.parametrize("name", ["shop", "other"])
def test_a_deleted_session_is_noticed(name, put_back):
    folder = put_back()
    with sqlite3.connect(folder / "run.db") as raw:
        raw.execute("DELETE FROM session WHERE name = ?", (name,))
    raw.close()
    with pytest.raises(Damaged, match="it has lost 1 of its 2 sessions"):
        bridle.Session.open(f"sqlite:///{folder}/run.db", name, policy=bridle.policy("anytime", bridle.Ball(2)))


def test_an_older_copy_is_noticed(put_back):
    folder = put_back()
    url = f"sqlite:///{folder}/run.db"
    assert opened(folder) == ROUNDS
    shutil.copy(folder / "run.db", folder / "older.db")
    with bridle.Session.open(url, "shop") as session:
        session.observe(f=0.0, df=[1.0, 0.0])
    shutil.copy(folder / "run.db", folder / "newer.db")
    os.replace(folder / "older.db", folder / "run.db")
    with pytest.raises(Damaged, match=r"lost its last 1 of .* event rows.*to continue with what is left, delete .*run\.db-mark"):
        bridle.Session.open(url, "shop")
    shutil.copy(folder / "newer.db", folder / "run.db")
    assert opened(folder, "other") == ROUNDS, "the newer one is fine"


@pytest.mark.parametrize("command", ["list", "verify"])
def test_the_command_line_refuses_it_too(command, put_back, run):
    folder = put_back()
    assert run("sessions", command, "--db", f"sqlite:///{folder}/run.db")[0] == 0
    with sqlite3.connect(folder / "run.db") as raw:
        raw.execute("DELETE FROM event WHERE id = (SELECT max(id) FROM event)")
    raw.close()
    status, _, said = run("sessions", command, "--db", f"sqlite:///{folder}/run.db")
    assert status != 0
    assert "it has lost its last 1 of" in said


def test_trimmed_sessions_open(tmp_path):
    url = f"sqlite:///{tmp_path}/run.db"
    policy = bridle.policy("anytime", bridle.Ball(2))
    with bridle.Session.open(url, "shop", policy=policy, snapshot_every=5) as session:
        for i in range(23):
            session.observe(f=0.1 * i, df=[1.0, 0.0])
    for _ in range(2):
        with open_store(url) as store:
            store.trim(1, store.snapshots(1)[-1].seq)
        with bridle.Session.open(url, "shop") as session:
            assert session.rounds == 23
    with sqlite3.connect(tmp_path / "run.db") as raw:
        raw.execute("DELETE FROM event WHERE seq = 22")
    raw.close()
    with pytest.raises(Damaged, match="it has lost 1 of its event rows"):
        bridle.Session.open(url, "shop")


def test_a_database_without_a_mark_opens_and_gets_one(put_back):
    folder = put_back()
    (folder / "run.db-mark").unlink()
    with open_store(f"sqlite:///{folder}/run.db", readonly=True):
        assert not (folder / "run.db-mark").exists()
    assert opened(folder) == ROUNDS
    with sqlite3.connect(folder / "run.db") as raw:
        raw.execute("DELETE FROM event WHERE id = (SELECT max(id) FROM event)")
    raw.close()
    assert opened(folder) is None


def test_what_is_made_next_to_a_database_belongs_to_whom_it_does(put_back):
    """Else a command of root's would shut out the service, which has a user of its own."""
    folder, beside = put_back(), ("run.db-mark", "run.db.writing")
    for name in beside:
        (folder / name).unlink()
    if os.geteuid() == 0:
        os.chown(folder / "run.db", 1234, 1234)
    os.chmod(folder / "run.db", 0o640)
    assert opened(folder) == ROUNDS
    wanted = os.stat(folder / "run.db")
    for name in beside:
        found = os.stat(folder / name)
        assert (found.st_uid, found.st_gid, found.st_mode) == (wanted.st_uid, wanted.st_gid, wanted.st_mode)


def test_a_mark_that_is_damaged_is_one_error(put_back):
    folder = put_back()
    whole = (folder / "run.db-mark").read_bytes()
    for data in (b"", whole[:-1], whole + b"\n", whole.replace(b"events", b"evants"), b"events 0" + whole[8:], bytes(len(whole))):
        (folder / "run.db-mark").write_bytes(data)
        with pytest.raises(Damaged, match=r"run\.db-mark is damaged"):
            bridle.Session.open(f"sqlite:///{folder}/run.db", "shop")


def test_the_mark_is_written_before_an_answer_and_after_its_commit(tmp_path, monkeypatch):
    """Where the process dies between the two, the mark is behind, and that is no loss."""
    url = f"sqlite:///{tmp_path}/run.db"
    session = bridle.Session.open(url, "shop", policy=bridle.policy("anytime", bridle.Ball(2)))
    for seq in range(1, 6):
        session.observe(f=0.0, df=[1.0, 0.0])
        assert session.journal.store._mark.read().events == seq
    monkeypatch.setattr(mark.HighWaterMark, "note", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        session.observe(f=0.0, df=[1.0, 0.0])
    monkeypatch.undo()
    assert session.journal.store._mark.read().events == 5
    with open_store(url, readonly=True) as store:
        assert store.head(1) == 6
    assert session.rounds == 6, "it reads its journal again"
    assert session.journal.store._mark.read().events == 6, "nobody is told of a round that is not marked"
    session.close()


@pytest.mark.parametrize("what", ["write", "sync_data"])
def test_a_mark_that_cannot_be_written_is_told_and_the_session_goes_on(what, tmp_path, monkeypatch):
    monkeypatch.setattr(mark, "SYNCED", 0.0)
    session = bridle.Session.open(f"sqlite:///{tmp_path}/run.db", "shop", policy=bridle.policy("anytime", bridle.Ball(2)))
    session.observe(f=0.0, df=[1.0, 0.0])

    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Disk, what, staticmethod(broken))
    with pytest.raises(StoreError, match=r"run\.db-mark: Input/output error") as told:
        session.observe(f=0.0, df=[1.0, 0.0])
    assert not told.value.certain
    monkeypatch.undo()
    assert session.rounds == 2
    session.observe(f=0.0, df=[1.0, 0.0])
    session.close()
    with bridle.Session.open(f"sqlite:///{tmp_path}/run.db", "shop") as again:
        assert again.rounds == 3


def test_two_stores_on_one_database_share_its_mark(tmp_path):
    url = f"sqlite:///{tmp_path}/run.db"
    policy = bridle.policy("anytime", bridle.Ball(2))
    with bridle.Session.open(url, "one", policy=policy) as one, bridle.Session.open(url, "two", policy=policy) as two:
        for session in (one, two, two, one):
            session.observe(f=0.0, df=[1.0, 0.0])
        assert one.journal.store._mark.read() == mark.Marked(4, 2, 0)
    with pytest.raises(InputError):
        bridle.Session.open(url, "three")
    with bridle.Session.open(url, "two") as session:
        assert session.rounds == 2

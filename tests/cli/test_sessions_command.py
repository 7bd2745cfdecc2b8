"""`bridle sessions`: what a database holds, from the shell; nothing is changed but by `import`, and everything wrong is one line."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest

import bridle
from helpers.durable_runs import assert_same, everything, url_of
from helpers.sessions import play_random_stream


@pytest.fixture
def database(tmp_path):
    """A database with two sessions, one of them owned; its address, and the decisions of the first."""
    url = url_of(tmp_path)
    policy = bridle.policy("anytime", bridle.Ball(3))
    with bridle.Session.open(url, "shop", policy=policy, snapshot_every=10, gates={"money": bridle.Gate(5.0)}, names=["a"]) as session:
        seen = play_random_stream(session, 25)
        session.gate("money").pay(1.5)
        session.change_limit("a", offset=0.25)
        ticket = session.ask()
        session.observe(f=0.1, df=[1.0, 0.0, 0.0], ticket=ticket)
        seen += [ticket.x, session.decide()]
    bridle.Session.open(url, "idle", policy=bridle.policy("soft", bridle.Box(0.0, 1.0, dim=2)), certify=False).close()
    return url, seen


pytestmark = pytest.mark.filterwarnings("ignore::bridle.BridleWarning")


@pytest.mark.parametrize("words", [["--db", "URL", "list"], ["list", "--db", "URL"], ["--db", "URL"]])
def test_the_sessions_are_listed(run, database, words):
    status, out, err = run("sessions", *(database[0] if word == "URL" else word for word in words))
    assert (status, err) == (0, "")
    assert "shop" in out
    assert "anytime" in out
    assert "idle" in out


def test_facts_of_a_list(run, database):
    status, out, _ = run("sessions", "list", "--db", database[0], "--json", "-")
    assert status == 0
    idle, shop = json.loads(out)
    assert (idle["name"], idle["policy"], idle["dimension"], idle["events"]) == ("idle", "soft", 2, 0)
    assert (shop["name"], shop["engine"], shop["events"], shop["snapshots"], shop["owner"]) == ("shop", "auto", 29, [29, 20], None)


def test_show_says_where_a_session_stands(run, database):
    status, out, _ = run("sessions", "--db", database[0], "show", "shop", "--json", "-")
    facts = json.loads(out)
    assert status == 0
    assert (facts["rounds"], facts["certificate"]["rounds"], facts["pending"]) == (26, 26, 0)
    assert facts["decision"] == database[1][-1].tolist()
    assert facts["budgets"]["money"]["facts"] == {"unit": 0.01, "budget": 500, "spent": 150}
    assert facts["changes"] == [{"round": 25, "limit": 0, "offset": 0.25}]
    status, out, _ = run("sessions", "show", "shop", "--db", database[0])
    assert "26 rounds were observed" in out
    assert "1.5 spent of 5" in out
    status, out, _ = run("sessions", "show", "idle", "--db", database[0])
    assert (status, "keeps no certificates" in out) == (0, True)


@pytest.mark.parametrize("round", [0, 1, 11, 24])
def test_replay_goes_to_any_round(run, database, round):
    status, out, _ = run("sessions", "replay", "shop", "--to", round, "--db", database[0], "--json", "-")
    facts = json.loads(out)
    assert (status, facts["rounds"], facts["decision"]) == (0, round, database[1][round].tolist())


def test_what_is_verified_and_what_is_not(run, database, tmp_path):
    status, out, err = run("sessions", "verify", "--db", database[0], "--json", "-")
    assert (status, err) == (0, "")
    facts = json.loads(out)
    assert facts["database"] == []
    assert [(each["name"], each["events"], each["snapshots"], each["wrong"]) for each in facts["sessions"]] == [
        ("idle", 0, 0, []), ("shop", 29, 2, []),
    ]  # fmt: skip
    raw = sqlite3.connect(tmp_path / "run.db")
    (body,) = raw.execute("SELECT body FROM snapshot WHERE seq = 20").fetchone()
    raw.execute("UPDATE snapshot SET body = ? WHERE seq = 20", (body[:-400] + bytes([body[-400] ^ 1]) + body[-399:],))
    (body,) = raw.execute("SELECT body FROM event WHERE seq = 3").fetchone()
    raw.execute("UPDATE event SET body = ? WHERE seq = 3", (body[:-1] + bytes([body[-1] ^ 1]),))
    raw.commit()
    raw.close()
    status, out, err = run("sessions", "verify", "shop", "--db", database[0])
    assert (status, err.count("\n")) == (2, 1)
    assert "event 3" in err


def test_a_snapshot_that_is_another_session_is_found(run, tmp_path):
    url = url_of(tmp_path)
    with bridle.Session.open(url, "run", policy=bridle.policy("anytime", bridle.Ball(3)), snapshot_every=5) as session:
        play_random_stream(session, 5)
        core = session.journal
        session.observe(f=1.0, df=[1.0, 0.0, 0.0])
        core.store.put_snapshot(core.lease, core.snapshot()._replace(seq=5))
    status, _, err = run("sessions", "verify", "--db", url)
    assert status == 2
    assert "session 'run': snapshot 5 is not what the events before it lead to" in err


def test_a_session_goes_out_and_comes_back(run, database, tmp_path):
    url, seen = database
    status, out, _ = run("sessions", "export", "shop", tmp_path / "shop.npz", "--db", url)
    assert (status, out) == (0, f"session shop after 26 rounds written to {tmp_path / 'shop.npz'}\n")
    loaded = bridle.Session.load(tmp_path / "shop.npz")
    assert np.array_equal(loaded.decide(), seen[-1])
    status, out, _ = run("sessions", "import", tmp_path / "shop.npz", "again", "--db", url)
    assert (status, out) == (0, "session again begins after 26 rounds\n")
    with bridle.Session.open(url, "again") as session:
        assert_same(loaded, session)
        assert session.ask().id > 2**31  # no ticket of the first comes again
        play_random_stream(session, 5, start=26)
        before = everything(session)["totals.cost"]
    with bridle.Session.open(url, "again") as session:
        assert everything(session)["totals.cost"] == before
    status, _, err = run("sessions", "import", tmp_path / "shop.npz", "again", "--db", url)
    assert (status, "name 'again' is taken" in err) == (2, True)


def test_old_events_are_dropped(run, database):
    status, out, _ = run("sessions", "trim", "shop", "--before", 20, "--db", database[0])
    assert (status, out) == (0, "session shop: events 1 to 19 are dropped; its journal begins with event 20\n")
    status, out, _ = run("sessions", "trim", "shop", "--before", 20, "--db", database[0])
    assert (status, out) == (0, "session shop: nothing is dropped; its journal begins with event 20\n")
    status, _, err = run("sessions", "trim", "shop", "--before", 3, "--db", database[0])
    assert (status, err.count("\n")) == (2, 1)
    assert "before must be the number of a snapshot of session 'shop', 20 or 29, not 3" in err
    status, _, err = run("sessions", "replay", "shop", "--to", 2, "--db", database[0])
    assert (status, "was trimmed" in err) == (2, True)


def test_rounds_go_to_a_table(run, database, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    status, out, _ = run("sessions", "export", "shop", tmp_path / "rounds.parquet", "--db", database[0])
    assert (status, out.startswith("26 rounds")) == (0, True)
    rows = parquet.read_table(tmp_path / "rounds.parquet").to_pylist()
    assert [row["round"] for row in rows] == list(range(1, 27))
    assert rows[7]["x"] == database[1][7].tolist()
    assert rows[25]["ticket"] == 26


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list"], "--db must be given"),
        (["show", "nobody", "--db", "URL"], "has no session 'nobody'; it has: 'idle', 'shop'"),
        (["replay", "shop", "--to", "99", "--db", "URL"], "round must be at most 26"),
        (["replay", "shop", "--to", "-1", "--db", "URL"], "--to must be 0 or above"),
        (["export", "shop", "shop.csv", "--db", "URL"], "FILE must end in .npz or .parquet"),
        (["import", "none.npz", "x", "--db", "URL"], "cannot read none.npz"),
        (["list", "--db", "sqlite:///none.db"], "none.db"),
        (["list", "--db", "ftp://x"], "url must"),
    ],
)
def test_what_is_wrong_is_one_line(run, database, words, said):
    status, out, err = run("sessions", *(database[0] if word == "URL" else word for word in words))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_reading_leaves_the_owner_alone(run, database):
    url, _ = database
    with bridle.Session.open(url, "shop") as session:
        play_random_stream(session, 1, start=26)
        assert run("sessions", "show", "shop", "--db", url)[0] == 0
        assert run("sessions", "verify", "--db", url)[0] == 0
        play_random_stream(session, 1, start=27)
        assert session.rounds == 28

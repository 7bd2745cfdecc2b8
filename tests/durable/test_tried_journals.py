"""Policies that see values alone, in a journal: every value is written down, and what is resumed is what was broken off."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import bridle
from bridle.cli import app
from bridle.core import Observation
from bridle.database import open_store
from bridle.durable import commands, inspection
from bridle.durable.journal import KeyConflict
from bridle.session.step import standing
from helpers.durable_runs import assert_same, crash, journal, rebuilt, url_of

pytestmark = pytest.mark.filterwarnings("ignore::bridle.BridleWarning")

BOX, ARMS = bridle.Box(-1.0, 1.0, dim=3), bridle.Simplex(3)
MADE = {
    "bandit1": lambda: bridle.policy("bandit1", BOX, horizon=300, lipschitz=3.0, bound=2.0),
    "bandit2": lambda: bridle.policy("bandit2", BOX, horizon=300, lipschitz=3.0),
    "banditq": lambda: bridle.policy("banditq", ARMS, horizon=300, bound=2.0, feedback="bandit"),
}
POINTS = {"bandit1": 1, "bandit2": 2, "banditq": 1}


def values(t, name, x):
    """What is seen of round t at the points that are tried, as `observe` takes it."""
    rng = np.random.default_rng(t)
    a, A = rng.standard_normal(3), rng.standard_normal((3, 3))
    f, g = [float(a @ z) for z in np.atleast_2d(x)], [A @ z - 0.2 for z in np.atleast_2d(x)]
    return {"f": f, "g": g} if POINTS[name] > 1 else {"f": f[0], "g": g[0]}


def drive(session, name, start, stop):
    """Rounds of every form: with a ticket, given up, of functions, and, for one point, of decide and observe."""
    for t in range(start, stop):
        if t % 3 == 0:
            ticket = session.ask(points=POINTS[name])
            if t % 9 == 6:
                session.forget(ticket)
            else:
                session.observe(**values(t, name, ticket.x), ticket=ticket)
        elif t % 3 == 1 and POINTS[name] == 1:
            session.observe(**values(t, name, session.decide()))
        else:
            one = np.random.default_rng(t).standard_normal((4, 3))
            session.step(lambda x, one=one: float(one[0] @ x), [lambda x, one=one: one[1:] @ x])


@pytest.mark.parametrize("name", MADE)
def test_a_session_that_died_is_the_one_that_lived(tmp_path, name):
    twin = bridle.Session(MADE[name]())
    drive(twin, name, 0, 40)
    session = bridle.Session.open(url_of(tmp_path), "a", policy=MADE[name](), snapshot_every=7)
    drive(session, name, 0, 22)
    crash(session)
    with bridle.Session.open(url_of(tmp_path), "a", wait=30.0) as session:
        drive(session, name, 22, 40)
        assert_same(session, twin)
        ticket = session.ask(points=POINTS[name], key="waits")
        crash(session)
    with bridle.Session.open(url_of(tmp_path), "a", wait=30.0) as session, open_store(url_of(tmp_path), readonly=True) as store:
        again, own = session.ask(points=POINTS[name], key="waits"), twin.ask(points=POINTS[name])
        for each in (again, ticket):
            np.testing.assert_array_equal(each.x, own.x)
        for each, at in ((session, again), (twin, own)):
            each.observe(**values(40, name, at.x), ticket=at)
        assert_same(session, twin)
        assert inspection.verify(store, "a").wrong == []


@pytest.mark.parametrize("name", MADE)
def test_each_event_leads_where_it_did(tmp_path, name):
    twin = bridle.Session(MADE[name]())
    with bridle.Session.open(url_of(tmp_path), "a", policy=MADE[name]()) as session:
        for each in (twin, rebuilt(session)):
            drive(each, name, 0, 10)
        assert_same(session, twin)


@pytest.mark.parametrize("name", MADE)
def test_what_is_said_again_counts_once_and_limits_may_move(tmp_path, name):
    with bridle.Session.open(url_of(tmp_path), "a", policy=MADE[name]()) as session:
        ticket = session.ask(points=POINTS[name])
        seen = values(0, name, ticket.x)
        session.observe(**seen, ticket=ticket)
        session.observe(**seen, ticket=ticket)
        session.observe(**seen, key="second")
        n = len(journal(session))
        session.observe(**seen, key="second")
        assert (len(journal(session)), session.rounds) == (n, 2) == (3, 2)
        with pytest.raises(KeyConflict, match="with other numbers"):
            session.observe(**seen | {"f": np.multiply(seen["f"], 2.0)}, key="second")
        before = session.violations
        session.change_limit(1, offset=5.0)
        session.observe(**seen)
        g = np.atleast_2d(seen["g"]) + np.array([0.0, 5.0, 0.0])
        np.testing.assert_allclose(session.violations - before, np.maximum(g, 0.0).mean(axis=0))
        now = session.violations, session.cost
        crash(session)
    with bridle.Session.open(url_of(tmp_path), "a", wait=30.0) as session:
        np.testing.assert_array_equal(session.violations, now[0])
        assert session.cost == now[1]


REFUSED = {
    "points must be 2 for policy bandit2": lambda s: s.ask(key="k"),
    "f must be 2 numbers, one for each point": lambda s: s.observe(f=0.3, key="k"),
    "g must hold 2 rows, one for each point": lambda s: s.observe(f=[0.3, 0.1], g=[0.1]),
    "df cannot be given: policy bandit2 sees values alone": lambda s: s.observe(f=[0.3, 0.1], df=[1.0, 0.0, 0.0], key="k"),
    "known cannot be given": lambda s: s.step(lambda x: 0.0, known=([[1.0, 0.0, 0.0]], [0.5])),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_is_refused_and_not_written(tmp_path, message):
    with bridle.Session.open(url_of(tmp_path), "a", policy=MADE["bandit2"]()) as session:
        with pytest.raises(bridle.InputError, match=message):
            REFUSED[message](session)
        assert not journal(session)
        session.ask(points=2)
        with pytest.raises(bridle.InputError, match="plays one round at a time: ticket 1 waits"):
            session.step(lambda x: 1 / 0)
        assert len(journal(session)) == 1


def test_values_are_written_as_they_were_given():
    costs, rows = np.array([0.1, -0.2]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    read = commands.observed(commands.encode(Observation(costs, g=rows, ticket=7)))
    assert (read.f.tolist(), read.g.tolist()) == (costs.tolist(), rows.tolist())
    assert read[1:2] + read[3:] == (None, None, None, None, 7)
    assert commands.observed(commands.encode(Observation(costs)))[1:] == (None,) * 6


def test_the_commands_show_points_and_write_rounds(tmp_path):
    url = url_of(tmp_path)
    with bridle.Session.open(url, "a", policy=MADE["bandit2"]()) as session:
        drive(session, "bandit2", 0, 12)
        points = session.read(standing)
    run = CliRunner().invoke(app, ["sessions", "--db", url, "show", "a", "--json", str(tmp_path / "facts.json")])
    assert run.exit_code == 0, run.output
    assert json.loads((tmp_path / "facts.json").read_text())["decision"] == points.tolist()
    for command in (["replay", "a", "--to", "5"], ["export", "a", str(tmp_path / "a.npz")], ["import", str(tmp_path / "a.npz"), "b"]):
        run = CliRunner().invoke(app, ["sessions", "--db", url, *command])
        assert run.exit_code == 0, run.output
    with bridle.Session.open(url, "b") as session:
        drive(session, "bandit2", 12, 15)
        assert session.rounds == 14
    parquet = pytest.importorskip("pyarrow.parquet")
    run = CliRunner().invoke(app, ["sessions", "--db", url, "export", "a", str(tmp_path / "a.parquet")])
    assert run.exit_code == 0, run.output
    rows = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert [len(rows[-1][each]) for each in ("x", "g", "violation")] == [6, 6, 6]  # two points, one after the other
    assert rows[-1]["round"] == 11

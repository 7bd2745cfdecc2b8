"""A session that is read from its journal is the one that was never interrupted, bit for bit, whatever was said to it."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import numpy as np
import pytest

import bridle
from bridle.database import Damaged
from bridle.durable.replay import ReplayError
from helpers.durable_runs import assert_same, crash, journal, rebuilt, url_of
from helpers.said_streams import LEVELS, Case, make, play
from helpers.sessions import play_random_stream


def durable_twin(folder, plain, **more):
    options = {} if plain.plan.late == "copies" else {"late": "pool"}
    return bridle.Session.open(url_of(folder), "twin", policy=plain.policy, levels=LEVELS, **options, **more)


class Mine(NamedTuple):
    """A function that only its author has."""

    level: float
    convex = True

    def value(self, x):
        return x[..., 0] - self.level

    def grad(self, x):
        return np.array([1.0, 0.0])


CASES = [
    Case(1, "anytime", "none", known=False, played=False, late="no", feasible=True),
    Case(2, "anytime", "rules", known=True, played=True, late="copies", feasible=True),
    Case(3, "anytime", "features", known=True, played=True, late="no", feasible=False),
    Case(4, "soft", "none", known=True, played=True, late="copies", feasible=True),
    Case(5, "rate", "rules", known=False, played=True, late="pool", feasible=True),
    Case(6, "rate", "none", known=False, played=True, late="no", feasible=True),
    Case(7, "sinha2024", "coordinate", known=True, played=False, late="copies", feasible=False),
    Case(8, "adagrad", "none", known=True, played=True, late="copies", feasible=True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.policy}-{case.through}-{case.late}")
@pytest.mark.filterwarnings("ignore::bridle.BridleWarning")
def test_rebuilt_after_every_event_it_is_the_session_that_never_was(case, tmp_path):
    plain = make(case)
    play(case, plain)
    with rebuilt(durable_twin(tmp_path, plain, snapshot_every=7)) as twin:
        play(case, twin)
        assert_same(plain, twin)
        assert twin.report() == plain.report()


@pytest.mark.filterwarnings("ignore::bridle.BridleWarning")
@pytest.mark.parametrize("engine", ["python", "compiled"])
@pytest.mark.parametrize("name", ["anytime", "soft"])
def test_long_runs_that_are_resumed_are_those_that_went_on(name, engine, tmp_path):
    policy = bridle.policy(name, bridle.Ball(3))
    plain = bridle.Session(policy, engine=engine)
    play_random_stream(plain, 300, k=2)
    url = url_of(tmp_path)
    done = 0
    for rounds in (1, 1, 62, 1, 100, 135):  # around the rounds in which batches are full and looks are due
        session = bridle.Session.open(url, "run", policy=policy, engine=engine, snapshot_every=90)
        play_random_stream(session, rounds, k=2, start=done)
        done += rounds
        if rounds % 2:
            crash(session)
        else:
            session.close()
    with bridle.Session.open(url, "run") as session:
        assert session.rounds == done == 300
        assert_same(plain, session)
        assert np.array_equal(plain.decide(), session.decide())


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore::bridle.BridleWarning")
def test_compiled_rounds_among_late_ones_are_replayed(tmp_path):
    """Compiled, played in Python because a round waits, compiled again, of another number of constraints; warmed up before."""
    policy = bridle.policy("anytime", bridle.Ball(3))
    plain = bridle.Session(policy, engine="compiled")
    session = bridle.Session.open(url_of(tmp_path), "run", policy=policy, engine="compiled", snapshot_every=40)
    for each in (plain, session):
        each.warm_up(2)
        ticket = each.ask()
        for t in range(70):
            play_random_stream(each, 1, k=2 if t % 20 < 18 else 1, start=t)
        each.observe(f=0.1, df=[1.0, 0.0, 0.0], ticket=ticket)
        play_random_stream(each, 70, k=2, start=70)
    assert_same(plain, session)
    for seq in (0, 1, 2, 40, 72, 100):
        session.journal.rebuild(after=seq)
        assert_same(plain, session)
    session.close()


@pytest.mark.filterwarnings("ignore::bridle.BridleWarning")
def test_reading_changes_nothing_of_what_is_replayed(tmp_path):
    plain = bridle.Session(bridle.policy("anytime", bridle.Ball(3)))
    play_random_stream(plain, 130)
    session = bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(3)))
    for t in range(130):
        play_random_stream(session, 1, start=t)
        if t % 11 == 0:
            session.certificate()
            session.report()
    crash(session)
    with bridle.Session.open(url_of(tmp_path), "run") as session:
        assert_same(plain, session)


def test_moduli_and_records_in_any_form_are_as_they_were(tmp_path):
    policy = bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2), modulus=0.5)
    plain = bridle.Session(policy)
    session = rebuilt(bridle.Session.open(url_of(tmp_path), "run", policy=policy))
    for each in (plain, session):
        each.observe(1, [1, 0], 0.25, [0.0, 1.0])
        each.observe(g=[0.5, -0.5], dg=np.eye(2, dtype=np.float32))
        each.observe(f=np.float32(0.5), df=(0.0, 1.0), modulus=0.25)
        each.observe()
        each.observe(f=np.array(0.5), df=np.ones((4, 2))[1], g=np.ones(4)[::2], dg=np.ones((2, 4))[:, ::2])
        each.observe(0.0, None, [0.5], [[1.0, 0.0]])
    assert_same(plain, session)
    session.close()


def test_rules_that_the_session_asks_itself_are_asked_once_a_round(tmp_path):
    """Asking them is an event: what they say rests on what was observed until then."""
    box = bridle.Box(0.0, 1.0, dim=2)
    policy = bridle.policy("anytime", box, rules=[bridle.policy("ogd", box, lipschitz=2.0), bridle.policy("adagrad", box)])
    plain, rng = bridle.Session(policy), np.random.default_rng(0)
    session = rebuilt(bridle.Session.open(url_of(tmp_path), "run", policy=policy))
    for _ in range(12):
        c = rng.standard_normal(2)
        for each in (plain, session):
            late = each.ask()
            proposals = each.proposals
            each.observe(f=float(c @ late.x), df=c, ticket=late)
            assert np.array_equal(each.proposals, proposals)
            x = each.decide()
            each.observe(f=float(c @ x), df=c, g=float(x[0]) - 0.5, dg=[1.0, 0.0])
    assert_same(plain, session)
    session.close()


def test_functions_that_are_known_are_in_the_journal(tmp_path):
    policy = bridle.policy("anytime", bridle.Ball(2))
    known = [bridle.Quadratic(2.0 * np.eye(2), offset=-0.25)]
    limit = (lambda x: float(x[0]) - 0.5, lambda x: [1.0, 0.0])
    session = rebuilt(bridle.Session.open(url_of(tmp_path), "run", policy=policy))
    for _ in range(64):
        x = session.step(bridle.Affine([-1.0, 0.0]), [limit], known=known)
    assert float(x @ x) <= 0.25 + 1e-9
    crash(session)
    with bridle.Session.open(url_of(tmp_path), "run") as session:
        assert session.rounds == 64
        with pytest.raises(bridle.InputError, match=r"known must be halfspaces .* or functions of bridle in a durable session"):
            session.decide(known=[Mine(1.0)])


def test_a_decision_that_differs_in_replay_is_refused_by_its_number(tmp_path):
    policy = bridle.policy("anytime", bridle.Ball(2))
    session = bridle.Session.open(url_of(tmp_path), "run", policy=policy)
    play_random_stream(session, 9)
    rows = journal(session)
    crash(session)
    body = bytearray(rows[4].body)
    body[-3] ^= 1  # a gradient that is another by its last bits
    from bridle import database

    with database.open_store(url_of(tmp_path)) as store:
        lease = store.take(store.create("other", store.find("run").spec))
        store.append(lease, [row if row.seq != 5 else row._replace(body=bytes(body)) for row in rows])
        store.release(lease)
    with pytest.raises(
        ReplayError, match=r"event 5 \(observe\) leads to another decision now.*written by engine (?:python|auto), bridle .* on "
    ) as said:
        bridle.Session.open(url_of(tmp_path), "other")
    assert said.value.seq == 5
    with bridle.Session.open(url_of(tmp_path), "run") as session:
        assert session.rounds == 9


def test_a_damaged_snapshot_leaves_the_one_before_and_a_longer_tail(tmp_path):
    session = bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2)), snapshot_every=4)
    play_random_stream(session, 10)
    core = session.journal
    newest = core.store.snapshots(core.found.id)[0]
    assert newest.seq == 8
    core.store.put_snapshot(core.lease, newest._replace(body=newest.body[:200] + b"?" + newest.body[201:]))
    before = session.decide()
    core.rebuild()
    assert core.snapshot_at == 4
    assert np.array_equal(session.decide(), before)
    session.close()


def test_a_journal_that_ends_before_its_snapshot_is_refused(tmp_path):
    with bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2)), snapshot_every=4) as session:
        play_random_stream(session, 10)
    with sqlite3.connect(tmp_path / "run.db") as connection:
        connection.execute("DELETE FROM event WHERE seq > 8")
    connection.close()
    (tmp_path / "run.db-mark").unlink()  # it would tell sooner
    with pytest.raises(Damaged, match="'run' is damaged: events 9 to 10 are missing"):
        bridle.Session.open(url_of(tmp_path), "run")


def test_a_policy_that_is_not_registered_is_given_again(tmp_path):
    record = bridle.policy("anytime", bridle.Ball(2)).record
    with bridle.Session.open(url_of(tmp_path), "own", policy=record) as session:
        play_random_stream(session, 5)
        x = session.decide()
    with pytest.raises(bridle.InputError, match=r"session 'own': it holds a policy that is not registered"):
        bridle.Session.open(url_of(tmp_path), "own")
    with bridle.Session.open(url_of(tmp_path), "own", policy=record) as session:
        assert np.array_equal(session.decide(), x)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policy": ("soft", {})}, "policy must be anytime, as session 'run' was made with, not soft"),
        ({"policy": ("anytime", {"window": 50})}, "window must be None, as session 'run' was made with, not 50"),
        ({"domain": bridle.Ball(2, radius=2.0)}, r"domain must be BallSet \(.*radius 1.0.*\), as session 'run' was made with, not BallSet"),
        ({"engine": "compiled"}, "engine must be auto, as session 'run' was made with, not compiled"),
        ({"names": ["a"]}, "names must be None, as session 'run' was made with"),
        ({"x1": [0.5, 0.0]}, "x1 must be "),
        ({"gates": {"budget": bridle.Gate(1.0)}}, r"gates\['budget'\] must be None, as session 'run' was made with"),
    ],
)
def test_what_is_given_must_be_what_it_was_made_with(given, said, tmp_path):
    bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2))).close()
    name, parameters = given.pop("policy", ("anytime", {}))
    policy = bridle.policy(name, given.pop("domain", bridle.Ball(2)), **parameters)
    with pytest.raises(bridle.InputError, match=said):
        bridle.Session.open(url_of(tmp_path), "run", policy=policy, **given)
    with bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2)), certify=True) as session:
        assert session.rounds == 0


@pytest.mark.parametrize("name", [5, None, b"run", "", "a\0b"])
def test_the_name_of_a_session_is_a_text(name, tmp_path):
    with pytest.raises(bridle.InputError, match="name must be a text"):
        bridle.Session.open(url_of(tmp_path), name, policy=bridle.policy("anytime", bridle.Ball(2)))


def test_a_new_session_needs_a_policy_and_leaves_nothing_where_that_is_bad(tmp_path):
    with pytest.raises(bridle.InputError, match=r"policy must be given: .* has no session 'run' yet"):
        bridle.Session.open(url_of(tmp_path), "run")
    with pytest.raises(bridle.InputError, match="x1 must lie in the domain"):
        bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2)), x1=[3.0, 0.0])
    with pytest.raises(
        bridle.InputError, match="commit is no longer an argument: each call is committed; for grouped commits, use the service"
    ):
        bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2)), commit="group")
    from bridle import database

    with database.open_store(url_of(tmp_path)) as store:
        assert store.names() == []

"""The same event twice has the first answer, before and after a restart; another one under the same key is refused by its name."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.durable.journal import KeyConflict
from helpers.durable_runs import crash, everything, journal, url_of
from helpers.sessions import BAD_NUMBERS, GOOD_RECORD, STRANGE_NUMBERS

RECORD = {"f": 0.3, "df": [1.0, 0.0], "g": 0.1, "dg": [0.0, 1.0]}
OTHER = {**RECORD, "f": 0.4}


@pytest.fixture
def opened(tmp_path):
    """Open the session; the one before has crashed by then."""
    held = []

    def again(**options):
        while held:
            crash(held.pop())
        held.append(bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2)), **options))
        return held[0]

    yield again
    while held:
        crash(held.pop())


@pytest.mark.parametrize("restart", [False, True], ids=["at once", "after a crash"])
def test_an_observation_with_a_key_counts_once(opened, restart):
    session = opened()
    session.observe(**RECORD, key="order 1")
    session.observe(**RECORD, key="order 2")
    session.observe(**RECORD)
    session = opened() if restart else session
    before = everything(session)["totals.cost"]
    session.observe(**RECORD, key="order 1")
    session.observe(**{**RECORD, "df": np.array([1, 0]), "g": [0.1]}, key=b"order 1")  # the same numbers in another form
    assert session.rounds == 3
    with pytest.raises(KeyConflict, match=r"key 'order 1' was used before, by event 1 \(observe\) with other numbers"):
        session.observe(**OTHER, key="order 1")
    with pytest.raises(KeyConflict, match="key 'order 2' was used before"):
        session.ask(key="order 2")
    assert session.rounds == 3
    assert session.durable == (3, 3)
    assert everything(session)["totals.cost"] == before


@pytest.mark.parametrize("restart", [False, True], ids=["at once", "after a crash"])
def test_a_round_that_is_asked_for_twice_begins_once(opened, restart):
    session = opened()
    ticket = session.ask(key="visitor 1")
    session.observe(**RECORD)
    session = opened() if restart else session
    again = session.ask(key="visitor 1")
    assert (again.id, again.run, again.stamp) == (ticket.id, ticket.run, ticket.stamp)
    assert np.array_equal(again.x, ticket.x)
    assert session.pending == 1
    session.observe(**RECORD, ticket=again)
    assert session.ask(key="visitor 1") == ticket  # also once its round is over
    assert session.pending == 0


@pytest.mark.parametrize("restart", [False, True], ids=["at once", "after a crash"])
def test_a_ticket_is_an_identity_too(opened, restart):
    session = opened()
    one, two, three = session.ask(), session.ask(), session.ask()
    session.observe(f=0.3, df=[1.0, 0.0], ticket=one)
    session.observe(**RECORD, ticket=two)
    session.forget(three)
    session = opened() if restart else session
    n = len(journal(session))
    session.observe(f=0.3, df=[1.0, 0.0], ticket=one)
    session.observe(**RECORD, ticket=int(two))
    session.forget(three.id)
    assert len(journal(session)) == n == 6
    assert (session.rounds, session.pending, session.dropped) == (2, 0, 1)
    with pytest.raises(KeyConflict, match=f"ticket {two.id} was used before, by event 5"):
        session.observe(**OTHER, ticket=two)
    with pytest.raises(bridle.InputError, match=f"ticket {three.id} is closed"):
        session.observe(**RECORD, ticket=three)
    with pytest.raises(bridle.InputError, match=f"ticket {two.id} is closed"):
        session.forget(two)
    with pytest.raises(bridle.InputError, match="ticket 99 was never given out"):
        session.observe(**RECORD, ticket=99)
    assert len(journal(session)) == n


@pytest.mark.parametrize("restart", [False, True], ids=["at once", "after a crash"])
def test_a_change_with_a_key_counts_once(opened, restart):
    settings = {"gates": {"march": bridle.Gate(1.0)}}
    session = opened(**settings)

    def change() -> None:
        session.change_limit(0, offset=0.5, key="tighter")
        session.gate("march").set_budget(2.0, key="more")

    change()
    session.change_limit(0, offset=0.1, key="looser")
    session.gate("march").set_budget(3.0)
    n = len(journal(session))
    session = opened() if restart else session
    change()
    assert len(journal(session)) == n == 4
    assert session.gate("march").budget == 3.0
    with pytest.raises(KeyConflict, match="key 'tighter' was used before, by event 1"):
        session.change_limit(0, offset=0.6, key="tighter")
    with pytest.raises(KeyConflict, match="key 'more' was used before, by event 2"):
        session.gate("march").set_budget(5.0, key="more")
    session.decide()
    session.observe(**RECORD)
    assert session.violations == pytest.approx([RECORD["g"] + 0.1])


def test_tickets_go_on_with_their_numbers_after_a_crash(opened):
    session = opened()
    first = session.ask()
    session = opened()
    second = session.ask()
    assert (first.id, second.id, first.run) == (1, 2, second.run)
    session.observe(**RECORD, ticket=first)
    session.observe(**RECORD, ticket=second)
    assert session.rounds == 2


@pytest.mark.parametrize("key", ["", "x" * 201, 7, None.__class__, b""])
def test_a_key_is_a_text(opened, key):
    session = opened()
    with pytest.raises(bridle.InputError, match="key must be a text or bytes of 1 to 200 bytes"):
        session.observe(**RECORD, key=key)
    assert session.durable == (0, 0)


def complaint_of(session, **record):
    """What is said of a record that is refused; None where it is taken."""
    try:
        session.observe(**record)
    except bridle.InputError as wrong:
        return str(wrong)
    return None


@pytest.mark.parametrize("with_key", [False, True])
def test_what_is_refused_changes_nothing_in_memory_or_journal(tmp_path, with_key):
    session = bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(3)))
    session.observe(**GOOD_RECORD)
    before, rows = everything(session), journal(session)
    plain = bridle.Session(bridle.policy("anytime", bridle.Ball(3)))
    plain.observe(**GOOD_RECORD)
    refused = 0
    for i, (name, value) in enumerate(BAD_NUMBERS + STRANGE_NUMBERS):
        wrong = complaint_of(plain, **{**GOOD_RECORD, name: value})
        if wrong is None:
            plain = bridle.Session(bridle.policy("anytime", bridle.Ball(3)))
            plain.observe(**GOOD_RECORD)
            continue
        assert complaint_of(session, **{**GOOD_RECORD, name: value}, **({"key": f"record {i}"} if with_key else {})) == wrong
        refused += 1
    assert refused > 80
    after = everything(session)
    assert after.pop("header") == before.pop("header")
    assert all(np.asarray(value).tobytes() == np.asarray(before[name]).tobytes() for name, value in after.items())
    assert journal(session) == rows
    assert session.journal.stale == ""  # and nothing had to be read again
    session.observe(**GOOD_RECORD, key="record 1")  # a refused record has used up no key
    assert session.rounds == 2
    session.close()


def test_one_owner_at_a_time(opened, tmp_path):
    session = opened()
    with pytest.raises(bridle.InputError, match="session 'run' is owned by"):
        bridle.Session.open(url_of(tmp_path), "run")
    session.close()
    with pytest.raises(bridle.InputError, match="session 'run' is closed; open it again to go on"):
        session.decide()
    session.close()
    assert opened().rounds == 0

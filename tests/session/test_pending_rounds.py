"""The rounds that wait for feedback, by themselves: who plays, who is overdue, and what a file holds of them."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.core import Ask, Feedback
from bridle.session import late
from bridle.session.late import SHARED
from bridle.session.state import Plan, SessionState
from bridle.session.step import step
from helpers.inside import state

START = np.array([0.1, 0.2])


def begin(form: str = "copies", name: str = "anytime", **options: int) -> tuple[Plan, SessionState]:
    settings = {"anytime": {}, "adagrad": {"delay": 0}}.get(name, {"horizon": 100, "lipschitz": 1.0})
    session = bridle.Session(bridle.policy(name, bridle.Ball(2), **settings), START, late=form, **options)
    return session.plan, state(session)


def asked(plan: Plan, stands: SessionState, times: int) -> SessionState:
    for _ in range(times):
        stands, _, _ = step(plan, stands, Ask())
    return stands


def violated(x: np.ndarray, t: int) -> Feedback:
    angle = 0.1 * t
    normal = np.array([np.cos(angle), np.sin(angle)])
    return Feedback(x, 0.0, np.zeros(2), np.array([0.3]), normal[None])


def feed(plan: Plan, stands: SessionState, *numbers: int) -> SessionState:
    """Feed waiting rounds a violated constraint each."""
    for number in numbers or tuple(stands.slow.late.waiting):
        stands = late.received(plan, stands, number, violated(stands.slow.late.waiting[number].x, number), None)
    return stands


def test_a_round_that_begins_while_others_wait_is_played_by_another_copy():
    plan, stands = begin()
    tickets = []
    for _ in range(3):
        stands, ticket, _ = step(plan, stands, Ask())
        tickets.append(ticket.id)
    assert tickets == [1, 2, 3]
    assert [each.copy for each in stands.slow.late.waiting.values()] == [0, 1, 2]
    stands = late.closed(plan, stands, 2)
    assert late.front(plan, stands) == 1
    stands = asked(plan, stands, 1)
    assert (stands.slow.late.waiting[4].copy, len(stands.copies)) == (1, 3)


def test_a_pool_is_one_copy():
    plan, stands = begin("pool", "adagrad")
    stands = asked(plan, stands, 3)
    assert len(stands.copies) == 1
    assert {each.copy for each in stands.slow.late.waiting.values()} == {0}


@pytest.mark.parametrize(
    ("options", "left"),
    [({"pending": 3}, [2, 3]), ({"pending": 2}, [3]), ({"timeout": 1}, [3]), ({"timeout": 2}, [2, 3]), ({"timeout": 3}, [1, 2, 3])],
)
def test_who_is_overdue(options, left):
    plan, stands = begin()
    stands = asked(plan, stands, 3)
    plan = plan.changed(**options)
    after = late.dropped(plan, stands)
    assert [*after.slow.late.waiting] == left
    assert after.slow.late.lost == 3 - len(left)
    assert len(after.slow.log.alarms) == (len(left) < 3)  # one kind of warning is given once


@pytest.mark.parametrize("ticket", [True, 1.0, "1", None])
def test_what_is_no_ticket(ticket):
    with pytest.raises(bridle.InputError, match="ticket must be a ticket from ask"):
        late.find(begin()[1], ticket)


def test_a_ticket_is_unknown_open_or_closed():
    plan, stands = begin()
    stands, ticket, _ = step(plan, stands, Ask(run="a run"))
    assert late.find(stands, ticket) == late.find(stands, np.int64(1)) == 1
    with pytest.raises(bridle.InputError, match="ticket 2 was never given out"):
        late.find(stands, 2)
    with pytest.raises(bridle.InputError, match="ticket 1 is closed"):
        late.find(late.closed(plan, stands, 1), ticket)
    other, _, _ = step(plan, begin()[1], Ask(run="another"))
    with pytest.raises(bridle.InputError, match="ticket 1 is of another run"):
        late.find(other, ticket)


def test_copies_that_share_move_onto_each_others_halfspaces():
    plan, stands = begin()
    stands = feed(plan, asked(plan, stands, SHARED + 3))
    shared = stands.slow.late
    assert (len(shared.shared), shared.ever_shared) == (SHARED, SHARED + 3)
    front = late.front(plan, stands)
    before, after = stands.copies[front], late.ready(plan, stands)
    assert before.steered < after.steered == shared.ever_shared
    others = [each for each in shared.shared if each.copy != front]
    outside = [max(each.normal @ copy.x - each.level for each in others) for copy in (before, after)]
    assert outside[1] < outside[0]


def test_copies_that_cannot_share_are_left_alone():
    plan, stands = begin(name="sinha2024")
    assert not feed(plan, asked(plan, stands, 3)).slow.late.shared


def test_a_state_goes_on_as_it_was_whatever_came_after():
    """Nothing is changed in place: what an old state leads to is the same after others have gone on from it."""
    plan, stands = begin()
    stands = asked(plan, stands, 4)
    one = feed(plan, stands, 2, 3)
    feed(plan, stands, 1, 4, 3)
    two = feed(plan, stands, 2, 3)
    for a, b in zip(one.copies, two.copies, strict=True):
        np.testing.assert_array_equal(a.x, b.x)
    assert [*stands.slow.late.waiting] == [1, 2, 3, 4]


def test_what_a_file_holds_is_taken_back(tmp_path):
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), START)
    tickets = [session.ask() for _ in range(4)]
    session.observe(g=0.3, dg=[0.6, 0.8], ticket=tickets[1])
    session.save(tmp_path / "late.npz")
    one, two = state(session), state(bridle.Session.load(tmp_path / "late.npz"))
    assert (two.now.begun, two.slow.late.lost, [*two.slow.late.waiting], two.slow.late.idle) == (4, 0, [1, 3, 4], (1,))
    for a, b in zip(one.copies, two.copies, strict=True):
        assert (a.updates, a.steered) == (b.updates, b.steered)
        np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(late.ready(session.plan, one).x, late.ready(session.plan, two).x)


def test_what_was_said_to_a_copy_is_played_though_another_round_must_be_dropped():
    """The copy to which known limits were told plays, and the oldest round is dropped after it."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), pending=1)
    first = session.ask()
    for _ in range(2):
        session.observe(f=0.5, df=[0.3, 1.0], g=0.1, dg=[1.0, 0.0])
    x = session.decide(known=([[1.0, 0.0]], [-0.5]))
    with pytest.warns(bridle.DroppedWarning):
        ticket = session.ask()
    assert x[0] <= -0.5 + 1e-9
    np.testing.assert_array_equal(ticket.x, x)
    assert (session.pending, session.dropped) == (1, 1)
    session.observe(f=0.1, df=[0.2, 0.2], ticket=ticket)
    with pytest.raises(bridle.InputError, match="is closed"):
        session.observe(f=0.1, df=[0.2, 0.2], ticket=first)

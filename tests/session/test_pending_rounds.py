"""The rounds that wait for feedback, by themselves: who plays, who is overdue, and what a file holds of them."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.session.late_feedback import SHARED, PendingRounds

START = np.array([0.1, 0.2])


def waiting_rounds(late: str = "copies", limit: int = 100, timeout: int | None = None, name: str = "anytime") -> PendingRounds:
    settings = {"anytime": {}, "adagrad": {"delay": 0}}.get(name, {"horizon": 100, "lipschitz": 1.0})
    return PendingRounds(bridle.policy(name, bridle.Ball(2), **settings).record, START, late, limit, timeout)


def violated(x: np.ndarray, t: int) -> Feedback:
    angle = 0.1 * t
    normal = np.array([np.cos(angle), np.sin(angle)])
    return Feedback(x, 0.0, np.zeros(2), np.array([0.3]), normal[None])


def feed(pending: PendingRounds, number: int) -> None:
    """Feed a waiting round a violated constraint, and close it."""
    at = pending.waiting[number].copy
    copy, feedback = pending.copies[at], violated(pending.waiting[number].x, number)
    state = pending.record.update(copy.state, feedback)
    pending.feed(number, at, state, np.asarray(pending.record.decide(state)), feedback)
    pending.close(number)


def test_a_round_that_begins_while_others_wait_is_played_by_another_copy():
    pending = waiting_rounds()
    tickets = [pending.ask() for _ in range(3)]
    assert [ticket.id for ticket in tickets] == [1, 2, 3]
    assert [each.copy for each in pending.waiting.values()] == [0, 1, 2]
    pending.close(2)
    assert pending.front == 1
    pending.ask()
    assert (pending.waiting[4].copy, len(pending.copies)) == (1, 3)


def test_a_pool_is_one_copy():
    pending = waiting_rounds("pool", name="adagrad")
    for _ in range(3):
        pending.ask()
    assert len(pending.copies) == 1
    assert {each.copy for each in pending.waiting.values()} == {0}


@pytest.mark.parametrize(
    ("limit", "timeout", "overdue"), [(3, None, [1]), (2, None, [1, 2]), (100, 1, [1, 2]), (100, 2, [1]), (100, 3, [])]
)
def test_who_is_overdue(limit, timeout, overdue):
    pending = waiting_rounds(limit=limit, timeout=timeout)
    for _ in range(3):
        pending.ask()
    assert pending.overdue() == overdue


@pytest.mark.parametrize("ticket", [True, 1.0, "1", None])
def test_what_is_no_ticket(ticket):
    with pytest.raises(bridle.InputError, match="ticket must be a ticket from ask"):
        waiting_rounds().find(ticket)


def test_a_ticket_is_unknown_open_or_closed():
    pending = waiting_rounds()
    ticket = pending.ask()
    assert pending.find(ticket)[0] == pending.find(np.int64(1))[0] == 1
    with pytest.raises(bridle.InputError, match="ticket 2 was never given out"):
        pending.find(2)
    pending.close(1)
    with pytest.raises(bridle.InputError, match="ticket 1 is closed"):
        pending.find(ticket)


def test_copies_that_share_move_onto_each_others_halfspaces():
    pending = waiting_rounds()
    for _ in range(SHARED + 3):
        pending.ask()
    for number in list(pending.waiting):
        feed(pending, number)
    assert (len(pending.shared), pending.ever_shared) == (SHARED, SHARED + 3)
    before, after = pending.copies[pending.front], pending.ready
    assert before.steered < after.steered == pending.ever_shared
    others = [each for each in pending.shared if each.copy != pending.front]
    outside = [max(each.normal @ copy.x - each.level for each in others) for copy in (before, after)]
    assert outside[1] < outside[0]


def test_copies_that_cannot_share_are_left_alone():
    pending = waiting_rounds(name="sinha2024")
    for _ in range(3):
        pending.ask()
    for number in list(pending.waiting):
        feed(pending, number)
    assert not pending.shared


def test_what_a_file_holds_is_taken_back():
    pending = waiting_rounds()
    for _ in range(4):
        pending.ask()
    feed(pending, 2)
    again = waiting_rounds()
    again.restore(pending.arrays(), [copy.state for copy in pending.copies])
    assert (again.begun, again.lost, list(again.waiting), again.idle) == (4, 0, [1, 3, 4], [1])
    for one, two in zip(pending.copies, again.copies, strict=True):
        assert (one.updates, one.steered) == (two.updates, two.steered)
        np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(pending.ready.x, again.ready.x)

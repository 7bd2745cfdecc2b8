"""Rounds whose feedback comes late, in any order, or never: who waits for what, and which copy of the policy plays.

Two forms, both of any number of rounds at once:

copies   Each round that begins while others wait is played by a copy of the policy that waits for nothing; its feedback goes to that copy
         alone, so to every copy feedback comes at once. Regret and CCV are at most the sums of the copies' own bounds: with m copies,
         sqrt(m) times the bound of one for regret that grows as sqrt(t). It works for every policy whose bound holds at every round.
         Halfspaces that one copy of `anytime` finds are shared with the others before they play; they hold every feasible action, so the
         proof stays as it is. (Joulani, Gyorgy and Szepesvari 2013, who call it BOLD.)
pool     One policy is fed whatever arrives, with the gradient at the decision of its own round. Only for policies that are made for it:
         `rate` and `adagrad` with `delay`, which remember what each decision was made of (and are played so unless told otherwise).
"""

from __future__ import annotations

import operator
import secrets
from dataclasses import dataclass, field
from typing import TypeAlias
from zlib import crc32

import numpy as np

from bridle import showing, validate
from bridle.core import DroppedWarning, Feedback, InputError, TriesPoints, capability
from bridle.ops import Array
from bridle.session.feedback import is_sound
from bridle.session.state import Copy, Plan, SessionState, Shared, UnlikeTold, Waiting
from bridle.session.tried_points import as_asked, points_of

LATE_FORMS = ("copies", "pool")
"""How rounds whose feedback comes late are played."""

SHARED = 20
"""How many halfspaces the copies of a policy hold in common."""

ROUNDS = 2**31
"""A ticket's number is its round's, plus a multiple of this that is drawn anew whenever a session is made from a file or a copy: so the
numbers that were given out after a file was saved, and lost in a crash, never come again. Up to 2^53 they are whole floats, too."""

INCARNATIONS = 2**22 - 1
"""Among so many multiples it is drawn. It has no part in any result."""


def round_of(ticket: int) -> int:
    """The round of a ticket's number.

    >>> round_of(5 * ROUNDS + 17)
    17
    """
    return ticket % ROUNDS


@dataclass(frozen=True)
class Ticket:
    """A round that has begun: the number that stands for it, and its decision.

    Parameters
    ----------
    id : int
        The round's number.
    x : array of shape (d,), or (n, d)
        Its decision; the points to be tried, one a row, of a policy that tries several.
    run : str, default ""
        The run that it belongs to.
    stamp : int, default 0
        A checksum of the decision: `x` is the caller's, who may change it.

    Examples
    --------
    >>> int(Ticket(3, np.zeros(2)))
    3
    """

    id: int
    x: Array = field(compare=False)
    run: str = ""
    stamp: int = field(default=0, compare=False, repr=False)  # of the decision: `x` is the caller's, who may change it

    def __repr__(self) -> str:
        return showing.call("Ticket", self.id, x=self.x)

    def __index__(self) -> int:
        return self.id


TicketGiven: TypeAlias = Ticket | int | None
"""A ticket, or its number, or none."""


def reborn(begun: int) -> tuple[int, int]:
    """Other numbers for the tickets to come, after so many rounds: none that this run may have given out before, and lost."""
    return ROUNDS * (1 + secrets.randbelow(INCARNATIONS)), begun


# --- which copy plays -----------------------------------------------------------------------------------------------------------------


def front(plan: Plan, state: SessionState) -> int:
    """Which copy plays next: the first that waits for nothing, else one that is still to be made."""
    late = state.slow.late
    return 0 if plan.late == "pool" else late.idle[0] if late.idle else 1 + len(late.others)


def ready(plan: Plan, state: SessionState) -> Copy:
    """The copy that plays next, told of what the others have found."""
    now, late = state.now, state.slow.late
    if not late.others and not late.waiting:
        return now.copy
    at, copies = front(plan, state), state.copies
    new = at == len(copies)
    if not new and copies[at].steered >= late.ever_shared:
        return copies[at]
    last = plan.memo.get("ready")  # to tell it takes a solver
    if last is not None and last[0] is late and last[1] is now.copy:
        return last[2]  # type: ignore[no-any-return]
    copy = plan.fresh(now.copy.x) if new else copies[at]
    others = [each for each in late.shared if each.copy != at]
    if others and plan.shares is not None:
        told = plan.shares.steer(copy.state, np.array([each.normal for each in others]), np.array([each.level for each in others]))
        copy = copy._replace(state=told, x=plan.decided(told))
    copy = copy._replace(steered=late.ever_shared)
    plan.memo["ready"] = late, now.copy, copy
    return copy


def taken(plan: Plan, state: SessionState) -> tuple[SessionState, int]:
    """With the copy that plays next in its place, as it is to play; and that place."""
    at, copy = front(plan, state), ready(plan, state)
    new = at == len(state.copies)
    state = state.with_copy(at, copy)
    return (state.with_late(idle=(*state.slow.late.idle, at)) if new else state), at


def told(plan: Plan, state: SessionState, change: object) -> SessionState:
    """With another state of the copy that plays next."""
    state, at = taken(plan, state)
    return state.with_copy(at, state.copies[at]._replace(state=change, x=plan.decided(change)))


def learned(plan: Plan, state: SessionState) -> int | None:
    """How many constraints a record must have, as the first has told a policy that left it open; None where any number will do."""
    if not plan.learns:
        return None
    told = (plan.record.learned(copy.state) for copy in state.copies)  # type: ignore[attr-defined]
    return next((k for k in told if k is not None), None)


# --- feedback ---------------------------------------------------------------------------------------------------------------------------


def advance(
    plan: Plan, state: SessionState, copy: Copy, feedback: Feedback, made: object = None, played: Array | None = None
) -> tuple[object, Array]:
    """The state and the decision of a copy after this feedback. To be called where NumPy does not warn of overflow.

    `made` is what its decision was made of, where that was some time ago; `played` the values of the limits at what was played, where
    that was not the decision and the policy wants to know.
    """
    record, waiting = plan.record, state.slow.late.waiting
    try:
        if plan.remembers is not None and waiting:
            others = float(len(waiting) - (made is not None))
            made, counted = made or plan.remembers.made(copy.state), () if played is None else (played,)
            after = plan.remembers.update_late(copy.state, feedback, made, others, *counted)
        elif played is not None and plan.counts is not None:
            after = plan.counts.update_played(copy.state, feedback, played)
        else:
            after = record.update(copy.state, feedback)
        x = plan.decided(after)
        if x.shape != copy.x.shape or not is_sound(x, after):
            raise OverflowError(f"shape {x.shape}, values {validate.show(x)}")
    except OverflowError as wrong:
        raise InputError(f"the policy's next decision cannot be used ({wrong}); nothing was changed") from None
    return after, x


def costs(plan: Plan, copy: Copy, feedback: Feedback) -> UnlikeTold:
    """How the costs of a copy, with this round, differ from what the policy was told."""
    modulus = feedback.modulus
    if plan.modulus is None or modulus is None:
        return copy.costs
    cost = float(modulus) > 0.0 or bool(feedback.df.any())  # one of curvature 0 and without a slope is none
    return copy.costs.after(copy.updates, float(modulus) / plan.modulus, bool(feedback.g.max() > 0.0), cost)


def fed(plan: Plan, state: SessionState, at: int, number: int, after: tuple[object, Array], feedback: Feedback) -> SessionState:
    """With the state that the feedback of a round led copy `at` to; the halfspace that it found is passed on to the others."""
    copy = state.copies[at]
    state = state.with_copy(at, Copy(*after, copy.updates + 1, copy.steered, costs(plan, copy, feedback)))
    late = state.slow.late
    if plan.late == "pool" or not late.others or plan.shares is None or (found := plan.shares.halfspace(feedback)) is None:
        return state
    shared = sorted((*late.shared, Shared(number, at, *found)), key=lambda each: each.number)[-SHARED:]
    return state.with_late(shared=tuple(shared), ever_shared=late.ever_shared + 1)


def received(plan: Plan, state: SessionState, number: int | None, feedback: Feedback, played: Array | None) -> SessionState:
    """With the feedback of a round: that of a ticket's number, or of the round that is now."""
    if number is None:
        after = advance(plan, state, ready(plan, state), feedback, None, played)
        state, at = taken(plan, state)
        begun = state.now.begun + 1
        return fed(plan, SessionState(state.now._replace(begun=begun), state.slow), at, begun, after, feedback)
    waits = state.slow.late.waiting[number]
    after = advance(plan, state, state.copies[waits.copy], feedback, waits.made, played)
    return closed(plan, fed(plan, state, waits.copy, round_of(number), after, feedback), number)


def closed(plan: Plan, state: SessionState, number: int) -> SessionState:
    """Without a round that waited; its copy waits for nothing any more."""
    late = state.slow.late
    idle = late.idle if plan.late == "pool" else tuple(sorted((*late.idle, late.waiting[number].copy)))
    return state.with_late(waiting={n: each for n, each in late.waiting.items() if n != number}, idle=idle)


# --- tickets ------------------------------------------------------------------------------------------------------------------------------


def find(state: SessionState, ticket: object) -> int:
    """The number of a ticket whose round waits."""
    late = state.slow.late
    try:
        if isinstance(ticket, (bool, np.bool_)):
            raise TypeError
        number = operator.index(ticket)  # type: ignore[arg-type]
    except TypeError:
        raise validate.refused("ticket must be a ticket from ask(), or its number", ticket) from None
    if abs(number) > 2**200:  # it may be too long to be written out
        raise InputError(f"ticket {validate.show(number)} was never given out")
    waits = late.waiting.get(number)
    if isinstance(ticket, Ticket):
        if ticket.run not in ("", late.run):
            raise InputError(f"ticket {number} is of another run ({ticket.run}): its feedback is not for this one")
        if waits is not None and ticket.run and ticket.stamp != crc32(waits.x.tobytes()):
            raise InputError(f"ticket {number} has another decision than the round that waits under its number: it is of another run")
    if waits is not None:
        return number
    if number - round_of(number) not in (0, late.offset):
        raise InputError(f"ticket {number} is not known: its round is closed, or was lost before this session was loaded from a file")
    if number < ROUNDS and late.offset and number > late.since:
        raise InputError(f"ticket {number} was given out after the file was saved that this session was loaded from: its round is lost")
    known = 1 <= round_of(number) <= state.now.begun and number > 0
    raise InputError(f"ticket {number} " + ("is closed: it was observed, forgotten or dropped" if known else "was never given out"))


def asked(plan: Plan, state: SessionState, run: str, terms: Array | None, action: Array | None) -> tuple[SessionState, int]:
    """With one more round that waits, and its number."""
    state, at = taken(plan, state)
    copy, late, begun = state.copies[at], state.slow.late, state.now.begun + 1
    made = None if plan.remembers is None else plan.remembers.made(copy.state)
    waiting = {**late.waiting, late.offset + begun: Waiting(copy.x, at, terms, action, made)}
    state = SessionState(state.now._replace(begun=begun), state.slow)
    idle = late.idle if plan.late == "pool" else late.idle[1:]
    return state.with_late(waiting=waiting, idle=idle, run=late.run or run), late.offset + begun


def ticket_of(plan: Plan, state: SessionState, number: int, x: Array) -> Ticket:
    """The ticket of a round that waits, for which this is played."""
    late = state.slow.late
    waits = late.waiting[number]
    points = points_of(plan.record, state.copies[waits.copy].state)
    return Ticket(number, np.array(x) if points is None else as_asked(points), late.run, crc32(waits.x.tobytes()))


def given_up(plan: Plan, state: SessionState, number: int) -> SessionState:
    """Without a round whose feedback will never come, which is counted as lost."""
    at = state.slow.late.waiting[number].copy
    tries = capability(plan.record, TriesPoints)
    if tries is not None:  # what was played is known to whoever saw it, and is not played again
        copy = state.copies[at]
        state = state.with_copy(at, copy._replace(state=tries.passed_over(copy.state)))
    state = closed(plan, state, number)
    return state.with_late(lost=state.slow.late.lost + 1)


def dropped(plan: Plan, state: SessionState, more: int = 1) -> SessionState:
    """Without the rounds that have waited too long, or are the oldest of too many, once so many `more` have begun; the first time with a
    warning.
    """
    late, begun = state.slow.late, state.now.begun
    longest, many = begun if plan.timeout is None else plan.timeout, len(late.waiting) + more - plan.pending
    for number in [number for i, number in enumerate(late.waiting) if i < many or begun + more - round_of(number) > longest]:
        log = state.slow.log.clone()
        why = "too many rounds were waiting" if plan.timeout is None else "it waited too long, or too many did"
        message = f"ticket {number} was dropped: {why}; it is charged to the bounds, and so will be others"
        log.warn(DroppedWarning, message, begun, ticket=number)
        state = given_up(plan, state, number).with_slow(log=log)
    return state

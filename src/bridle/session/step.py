"""A session is a fold: `step` makes the next state of a command, its answer and the alarms of it, and changes nothing in place.

What a command leads to is worked out on values that nobody sees yet. So one assignment of the new state makes it happen: an exception or
an interrupt before leaves the session as it was. What is due after a round (a batch of rounds is read, assumptions are checked) belongs to
the round. Nothing is drawn here: the same commands lead to the same states.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from bridle import validate
from bridle.core import Ask, Command, Decide, Feedback, Forget, InputError, Observation, TriesPoints, capability
from bridle.game.totals import charged
from bridle.ops import Array
from bridle.session import actions, late
from bridle.session.alarms import check_assumptions, search_witness
from bridle.session.alarms import next_check as next_check_after
from bridle.session.certificates import clocks
from bridle.session.certificates.batches import FullBatch
from bridle.session.feedback import Numbers, checked_feedback
from bridle.session.late import Ticket
from bridle.session.proof import Proof
from bridle.session.state import Copy, Plan, RoundState, SessionState, SlowState, put
from bridle.session.tried_points import as_asked, checked_values, refuse_extras

Alarms: TypeAlias = tuple[Exception, ...]
"""The warnings of a command, and, at their end, what a look after a round failed with: the round counts all the same."""


class PlayedRound(NamedTuple):
    """The answer of an observation: what was seen, and the number of its ticket where it has one."""

    seen: Feedback
    ticket: int | None


def step(plan: Plan, state: SessionState, command: Command, mixed: bool = False) -> tuple[SessionState, Any, Alarms]:
    """The state after a command, its answer, and its alarms; an `InputError` where it is refused.

    `mixed`: compiled rounds are played in between, so that batches may end elsewhere.
    """
    if command.__class__ is Observation:
        return observe(plan, state, command, mixed)
    after, answer = VERBS[command.__class__](plan, state, command)
    return after, answer, after.slow.log.alarms[len(state.slow.log.alarms) :]


# --- a round ------------------------------------------------------------------------------------------------------------------------------


def observe(plan: Plan, state: SessionState, o: Observation, mixed: bool) -> tuple[SessionState, PlayedRound, Alarms]:
    """An observation taken in."""
    now, slow = state
    copy, begun, totals, rounds = now
    alone = not slow.late.others and not slow.late.waiting
    number = None if o.ticket is None else late.find(state, o.ticket)
    waits, said = None if number is None else slow.late.waiting[number], slow.said is not None and slow.said.begun == begun
    if slow.changes.offsets and o.g is not None:
        o = o._replace(g=raised_limits(o.g, slow.changes.offsets))
    seen, memory, counted = None, slow.memory, None
    with np.errstate(all="ignore"):  # what comes of it is looked at
        if plan.tries:
            feedback = tried(plan, state, o, number)
        elif plan.plain and o.played is None and (not said if waits is None else waits.action is None):
            x = waits.x if waits is not None else copy.x if alone else late.ready(plan, state).x
            feedback = checked_feedback(x, slow.limits, o.f, o.df, o.g, o.dg, o.modulus, seen=len(totals.hard) if rounds else None)
        else:
            reading = actions.read(plan, state, o, number)
            seen, memory = reading.seen, reading.memory
            counted = seen.g if reading.moved and plan.counts is not None else None
            x = late.ready(plan, state).x if waits is None else waits.x
            feedback = checked_feedback(x, slow.limits, *reading.read, o.modulus, seen=state.most_seen)
        if alone:
            after, x = late.advance(plan, state, copy, feedback, None, counted)
            costs = copy.costs if feedback.modulus is None else late.costs(plan, copy, feedback)
            copy, begun = Copy(after, x, copy.updates + 1, copy.steered, costs), begun + 1
        else:
            state = late.received(plan, state, number, feedback, counted)
            (copy, begun, *_), slow = state
    t, at, full, next_tick = rounds + 1, begun if number is None else late.round_of(number), False, slow.next_tick
    values, violation, ledger = feedback.g, None, slow.ledger
    if values.shape[-1] != len(totals.hard):
        more = [(0, 0)] * (values.ndim - 1) + [(0, max(0, len(totals.hard) - values.shape[-1]))]
        totals, values = totals.padded(values.shape[-1]), np.pad(values, more)
    if values.ndim > 1:  # several points were played: what they cost and violate on average is charged
        violation, values = charged(np.maximum(values, 0.0), 1), charged(values, 1)
    if ledger is not None:
        if not ledger.fits(len(feedback.g)):
            ledger = state.ledger()
            assert ledger is not None
            ledger.begin(len(feedback.g))
            next_tick = 0.0  # a batch was read
        row = rounds - ledger.rounds_read
        ledger.write(row, feedback, at)
        full = row + 1 == len(ledger.rows)
    if not rounds:
        slow = slow._replace(first=feedback.g.shape[-1])
    if ledger is not slow.ledger or memory is not slow.memory or next_tick != slow.next_tick:
        slow = slow._replace(ledger=ledger, memory=memory, next_tick=next_tick)
    played = put(RoundState, (copy, begun, totals.add(feedback.f, values, violation), t))
    if plan.learns and slow.limits.k is None:
        slow = learned(plan, SessionState(played, slow))
    answer, heard = put(PlayedRound, (feedback if seen is None else seen, number)), len(slow.log.alarms)
    failed: tuple[Exception, ...] = ()
    clock = mixed or t >= slow.next_check or t >= next_tick
    if clock or full:
        slow, failed = look(plan, SessionState(played, slow), clock=clock, mixed=mixed)
    return put(SessionState, (played, slow)), answer, (*slow.log.alarms[heard:], *failed)


def tried(plan: Plan, state: SessionState, o: Observation, number: int | None) -> Feedback:
    """What was observed at the points that a policy tries which sees values alone."""
    refuse_extras(plan.called, played=o.played, df=o.df, dg=o.dg, modulus=o.modulus)
    if number is None and not state.alone:
        raise InputError(f"ticket must be given: policy {plan.called} plays one round at a time, and that of a ticket waits")
    copy = state.now.copy if number is None else state.copies[state.slow.late.waiting[number].copy]
    return cast(Feedback, checked_values(points(plan, copy), state.slow.limits, o.f, o.g))  # what follows asks for f, g and modulus alone


def points(plan: Plan, copy: Copy) -> Array:
    """The points that a copy tries, of a policy that sees values alone."""
    return np.array(cast(TriesPoints, capability(plan.record, TriesPoints)).points(copy.state), dtype=float)


def learned(plan: Plan, state: SessionState) -> SlowState:
    """With records held to the number of constraints that the policy has learned of, once it has."""
    k = late.learned(plan, state)
    return state.slow if k is None else state.slow._replace(limits=state.slow.limits._replace(k=k))


def raised_limits(g: Numbers, offsets: Sequence[float]) -> Array:
    """The values of the limits as they stand since they were moved; where several points were tried, in the row of each."""
    values = validate.array("g", g)
    rows = np.atleast_1d(values)
    n = min(rows.shape[-1], len(offsets))
    rows[..., :n] += offsets[:n]
    return values


# --- what is due after it -----------------------------------------------------------------------------------------------------------------


def look(
    plan: Plan, state: SessionState, *, clock: bool = True, compiled: bool = False, mixed: bool = False, batch: FullBatch | None = None
) -> tuple[SlowState, tuple[Exception, ...]]:
    """Do what is due after a round: a full batch is read, a witness is searched for, assumptions are checked.

    `clock`: a look may be due although no batch is full. `compiled`: the round was; `batch` is then what was made of a full batch. Where a
    look fails, in somebody's domain for instance, that costs a proof: the exception is handed on, and the next look comes in its time.
    """
    now, slow = state
    t, due, ledger, looks = now.rounds, clocks.due(now.rounds), slow.ledger, False
    log, next_check, next_tick = slow.log, slow.next_check, slow.next_tick
    failed: tuple[Exception, ...] = ()
    if ledger is not None and not (ledger.rounds_read == t and ledger.at_rest):
        ledger = state.ledger()
        assert ledger is not None
        if 0 < ledger.open == len(ledger.rows):
            if not compiled:
                ledger.read_with(None)  # who ends a batch reads it: what comes of it is the same in a session that was loaded
            ledger.close(batch)
            looks = compiled and ledger.stirred
    stirred = ledger is not None and ledger.stirred
    if compiled or clock:
        if t >= next_check:
            looks = True
        elif not compiled and t >= next_tick:
            looks = due.contradiction or (due.witness and stirred)
    elif due.witness:  # a batch was read
        looks = stirred
    if not compiled:  # only a batch that is read can stir up anything; without a ledger there is nothing to search
        next_tick = inf if ledger is None else clocks.next_multiple(t, clocks.WITNESS_EVERY if stirred else clocks.CONTRADICTION_EVERY)
    if looks:
        fresh, proof = log.clone(), Proof(plan, state, ledger)
        try:
            if search_witness(proof, fresh, t, due):
                check_assumptions(proof, fresh, t, now.begun, due)
            log, next_check = fresh, next_check_after(proof, fresh, t)
        except Exception as wrong:
            next_check, failed = clocks.next_multiple(t, clocks.assumptions_every(t)), (wrong,)
    if mixed and clock and not compiled:
        next_check = 0.0  # batches may be out of step: the next compiled round sees
    return slow._replace(ledger=ledger, log=log, next_check=next_check, next_tick=next_tick), failed


# --- decide, ask, forget ------------------------------------------------------------------------------------------------------------------


def decide(plan: Plan, state: SessionState, command: Decide) -> tuple[SessionState, Array]:
    """The decision of this round, with what is said of it."""
    state = told(plan, state, command)
    return state, decision(plan, state)


def told(plan: Plan, state: SessionState, command: Decide | Ask) -> SessionState:
    """With what is said of this round; the session's own rules are asked, where nobody has to say anything."""
    silent = actions.is_silent(command.prior) and not actions.unsaid(plan, state)
    return state if silent else actions.say(plan, state, command.prior)


def decision(plan: Plan, state: SessionState) -> Array:
    """What is to be played in this round; the point to be tried, where it is one a round."""
    if not plan.tries:
        return np.array(actions.action(plan, state))
    here = points_to_try(plan, state)
    if plan.tries > 1:
        raise InputError(f"policy {plan.called} tries {plan.tries} points a round: begin it with ask(points={plan.tries})")
    return as_asked(here)


def points_to_try(plan: Plan, state: SessionState) -> Array:
    """The points to be tried in this round; refused while another round waits: a policy that sees values alone has none for it."""
    for number in state.slow.late.waiting:
        raise InputError(f"policy {plan.called} plays one round at a time: ticket {number} waits, observe it first")
    return points(plan, late.ready(plan, state))


def standing(plan: Plan, state: SessionState) -> Array:
    """What a session stands at: its decision before any map, or the points that it tries, also while they wait for their values."""
    return points(plan, state.now.copy) if plan.tries else late.ready(plan, state).x


def ask(plan: Plan, state: SessionState, command: Ask) -> tuple[SessionState, Ticket]:
    """A round begun whose feedback comes late: its ticket."""
    if plan.tries:
        points_to_try(plan, state)
    roomy = told(plan, late.dropped(plan, state), command)
    # Where another copy would play once there is room, but something was said to the one that was to play, that one plays.
    waits = actions.is_outdated(plan, roomy) and not actions.is_outdated(plan, state)
    state = state if waits else roomy
    said = actions.valid(plan, state)
    terms, instead = (None, None) if said is None else (said.terms, said.action)
    state, number = late.asked(plan, state, command.run, terms, instead)
    state = late.dropped(plan, state, 0) if waits else state
    return state, ticket(plan, state, number)


def ticket(plan: Plan, state: SessionState, number: int) -> Ticket:
    """The ticket of a round that waits."""
    waits = state.slow.late.waiting[number]
    return late.ticket_of(plan, state, number, actions.stands_for(plan, waits.x, waits.terms, waits.action))


def forget(plan: Plan, state: SessionState, command: Forget) -> tuple[SessionState, None]:
    """A round given up: it is charged to the bounds."""
    return late.given_up(plan, state, late.find(state, command.ticket)), None


VERBS: dict[type, Any] = {Decide: decide, Ask: ask, Forget: forget}

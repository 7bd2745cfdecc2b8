"""How a round gets a session further: what is worked out first, the one assignment that counts it, and what is due after it.

`Session` is the face of this: every call that comes in there is played out here, one at a time (`turns`), on where the session stands
(`standing`).

One call at a time: what keeps two threads, and a call inside a call, from meeting in a session; and what an exception tells.

A session's flag `_inside` says that a call is at work. Python's lock is what makes it safe: between the test of the flag and its setting
there is no call and no jump back, and only there may CPython turn to another thread or to a signal's handler. (A lock of its own would cost
7 % of a compiled round.) Another thread waits; this one, in a handler or a function that was called from the session, may read what stands
and change nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import NotRequired, TypeAlias, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import records, validate
from bridle.core import CountsRates, DroppedWarning, Feedback, InputError, Tried, capability
from bridle.game.totals import RunningTotals, charged
from bridle.ops import Array
from bridle.policies.registry import learns_constraints
from bridle.session import clocks
from bridle.session.alarms import WarningLog, check_assumptions, search_witness
from bridle.session.alarms import next_check as next_check_after
from bridle.session.batch_sums import FullBatch
from bridle.session.clocks import Due
from bridle.session.compiled_round import PLAYED, PLAYED_CHECK_NOW, REFUSED, WRONG_TYPES, CompiledRound, PlayOutcome
from bridle.session.feedback import Limits, Numbers, checked_feedback
from bridle.session.late_feedback import Copy, PendingRounds, TicketGiven, round_of
from bridle.session.parts import SessionParts
from bridle.session.standing import LOOK, NOTHING, READ, Kept, Played, Standing
from bridle.session.tried_points import checked_values, points_of, refuse_extras

ENTRANCES = frozenset({"observe", "ask", "forget", "decide", "_read"})
"""The calls that are at work in a session one at a time."""

T = TypeVar("T")
"""What is read of a session."""


class HistoryEntry(TypedDict):
    """What `history` is told of a round; `ticket` where it has one."""

    round: int
    x: Array
    f: float
    g: Array
    violation: Array
    cost: float
    ccv: float
    ticket: NotRequired[int]


Listener: TypeAlias = Callable[[HistoryEntry], object] | None
"""Whoever is told of every round, if anybody is."""


class SessionRounds:
    """Where a session stands, and the machinery that plays its rounds, in Python or compiled."""

    def __init__(self, parts: SessionParts, start: Array, limits: Limits, history: Listener, engine: str) -> None:
        self.history, self.engine = history, engine
        self._parts = parts  # as they were at the start: see `_settled`
        self._start = start
        each, declared = getattr(parts.record, "each", None), parts.parameter("constraints")
        self._k: int | None = len(each) if each is not None else None if declared is None else int(declared)
        if parts.names and self._k not in (None, len(parts.names)):
            many = f"{self._k} constraint{'s' if self._k != 1 else ''}"
            raise validate.refused(f"names must hold one name for each of the {many} of the policy", parts.names)
        self._k = len(parts.names) or self._k
        self._limits = limits._replace(k=self._k, names=parts.names)
        self._learns = learns_constraints(parts.record)  # until it has
        self._counts = capability(parts.record, CountsRates) is not None  # how often limits are violated by what is played
        tried = points_of(parts.record, parts.pending.copies[0].state)
        self._tries = 0 if tried is None else len(tried)  # how many points a round has, for a policy that sees values alone
        horizon = parts.parameter("horizon")
        self._horizon = inf if horizon is None else float(horizon)
        totals = RunningTotals(0.0, np.zeros(self._k or 1), np.zeros(self._k or 1))
        first = Played(parts.pending.copies[0], 0, totals, 0)
        self._now = Standing(first, Kept(parts.pending, parts.ledger, WarningLog()))
        self._compiled: CompiledRound | None = None
        # Compiled rounds have a cost, of the modulus that the policy was told, where it was told one.
        told_of = (getattr(node, "modulus", None) for node in records.nodes(parts.record))
        self._curved = any(modulus is not None and np.any(modulus) for modulus in told_of)
        self._live: CompiledRound | None = None  # the compiled rounds, while they are ahead of `_now`, or equal to it
        self._check_at = 0.0  # up to this round nothing is due after compiled ones; never above `next_check`
        self._failed = -1  # the last round after which a look failed
        self._inside = False  # whether a call is at work: see `turns`

    # --- where it stands -------------------------------------------------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """How many rounds have been observed."""
        fast = self._live
        return self._now.played.rounds if fast is None else fast.rounds

    @property
    def _log(self) -> WarningLog:
        return self._now.kept.log

    def _read(self, what: Callable[[bool], T]) -> T:
        """What is read of this session, while no other call is at work; it is told whether it is inside of a call of this thread."""
        nested = False
        while self._inside and not nested:
            nested = wait(self, ENTRANCES, reading=True)
        if nested:
            return what(True)
        self._inside = True
        try:
            return what(False)
        finally:
            self._inside = False

    def _stand(self, nested: bool = False) -> Standing:
        """Where this session stands: with what compiled rounds have played, and with nothing left to do.

        Inside of another call nothing is done to the session itself: what that call is about to do is done to a standing of its own.
        """
        fast = self._live
        if nested:
            now = self._now
            if self._broken_off():
                now = Standing(now.played, self._what_is_due(now, fast, clocks.due(self.rounds), apart=True))
            return now if fast is None else Standing(fast.played(now.played, now.kept.ledger), now.kept)
        if self._broken_off():
            self._follow_up()
        if fast is not None:
            self._now = Standing(fast.played(self._now.played, self._now.kept.ledger), self._now.kept)
            self._live = None
        return self._now

    def _settled(self, nested: bool = False) -> SessionParts:
        """The parts of this session as it stands."""
        return self._parts_of(self._stand(nested))

    def _parts_of(self, now: Standing) -> SessionParts:
        ledger = now.kept.ledger
        if ledger is not None and ledger.open != now.played.rounds - ledger.rounds_read:
            ledger = now.ledger()
        return self._parts._replace(pending=now.pending(), ledger=ledger)

    def _decision(self) -> Array:
        fast, now = self._live, self._now
        if fast is not None:
            return fast.x.copy()
        if self._tries:
            return self._point()
        pending = now.kept.pending
        if len(pending.copies) == 1 and not pending.waiting:  # as `now.alone` has it, which would cost a call
            return now.played.copy.x.copy()
        return now.pending().ready.x.copy()

    def _points(self) -> Array:
        """The points to be tried in this round, of a policy that sees values alone."""
        self._refuse_to_overlap()
        return self._tried_by(self._now.pending().ready)

    def _tried_by(self, copy: Copy) -> Array:
        points = points_of(self._parts.record, copy.state)
        assert points is not None
        return points

    def _stands_at(self) -> Array:
        """What a session stands at: its decision, or the points that it tries, also while they wait for their values."""
        return self._tried_by(self._now.pending().copies[0]) if self._tries else self._decision()

    def _refuse_to_overlap(self) -> None:
        """Refuse another round while one waits, of a policy that sees values alone: it has no points for it."""
        waiting = self._now.pending().waiting
        if waiting:
            raise InputError(f"policy {self._called} plays one round at a time: ticket {next(iter(waiting))} waits, observe it first")

    def _point(self) -> Array:
        """The point to be tried, where it is one a round."""
        points = self._points()
        if len(points) != 1:
            raise InputError(f"policy {self._called} tries {self._tries} points a round: begin it with ask(points={self._tries})")
        alone: Array = points[0]
        return alone

    @property
    def _called(self) -> str:
        """The policy's name."""
        configured = self._parts.configured
        return type(self._parts.record).__name__ if configured is None else configured.name

    def _tried(self, copy: Copy, f: ArrayLike, df: Numbers, g: Numbers, dg: Numbers, modulus: Numbers) -> Feedback:
        """What was observed at the points that this copy tries, checked."""
        refuse_extras(self._called, df=df, dg=dg, modulus=modulus)
        return cast(Feedback, checked_values(self._tried_by(copy), self._limits, f, g))  # what follows asks both for f, g and modulus alone

    # --- one observation ---------------------------------------------------------------------------------------------------------------

    def _hand_back(self) -> int:
        """`_begin` a call that is played in Python: whatever compiled rounds have played is taken over."""
        played, kept = self._now
        if self._live is None and played.due is NOTHING and not kept.log.unsent:
            return played.rounds
        self._stand()
        return self._begin()

    def _begin(self) -> int:
        """Do first what an earlier call was broken off in, and warn of what nobody has heard of; the rounds after which the call begins."""
        if self._broken_off():
            self._follow_up()
        log = self._now.kept.log
        if log.unsent:
            log.send()
        return self.rounds

    def _compile(self, k: int) -> CompiledRound:
        if self._learns:
            self._learn()
        (copy, _, totals, *_), kept = now = self._now
        fast = CompiledRound(self._parts.record, copy, kept.ledger, totals, self._limits.k or k, self._limits.largest)
        ledger = now.ledger()
        if ledger is not None:
            ledger.read_with(fast.reader)  # also batches that Python ends
            self._now = Standing(now.played, kept._replace(ledger=ledger))
        self._compiled = fast
        return fast

    def _play(self, f: ArrayLike, df: Numbers, g: Numbers, dg: Numbers) -> PlayOutcome:
        """Play a round of decide and observe in compiled code, in whatever form the numbers come."""
        fast = self._live
        if fast is None:
            fast = self._compiled
            if fast is None:
                feedback = self._checked(self._decision(), f, df, g, dg)
                fast = self._compile(len(feedback.g))
            now = self._now
            if not fast.fits(now):
                return REFUSED
            ledger = fast.follow(now)
            if ledger is not now.kept.ledger:
                self._now = Standing(now.played, now.kept._replace(ledger=ledger))
            self._check_at, self._live = now.kept.next_check, fast
        elif not self._check_at:
            self._step_in()  # perhaps: what is due was done, and broken off before these rounds were told
        outcome = fast.play(f, df, g, dg)  # type: ignore[arg-type]
        if outcome is WRONG_TYPES:
            feedback = self._checked(fast.x, f, df, g, dg)
            if not self.rounds and len(feedback.g) != fast.k:  # the first round decides, whatever `warm_up` was told
                fast = self._compile(len(feedback.g))
                self._live = None
                return self._play(f, df, g, dg)
            outcome = fast.play(float(feedback.f), feedback.df, feedback.g, feedback.dg)
        if outcome is PLAYED and fast.rounds >= self._now.kept.next_check:
            self._follow_up()
            return PLAYED_CHECK_NOW
        if outcome is PLAYED_CHECK_NOW:
            self._end_batch(fast)
            return PLAYED_CHECK_NOW
        if outcome is PLAYED:
            return PLAYED
        self._stand()
        return REFUSED

    def _learn(self) -> None:
        """Hold records to the number of constraints that the policy has learned of, once it has."""
        k = self._now.pending().learned()
        if k is not None:
            self._limits, self._learns = self._limits._replace(k=k), False
            if self._live is None and self._compiled is not None and self._compiled.k != k:
                self._compiled = None  # it was compiled for rounds without constraints

    def _checked(self, x: Array, f: ArrayLike, df: Numbers, g: Numbers, dg: Numbers) -> Feedback:
        if self._learns:
            self._learn()
        with np.errstate(all="ignore"):
            return checked_feedback(x, self._limits, f, df, g, dg, seen=self._most_seen())

    def _most_seen(self) -> int | None:
        """The most constraints that a record has had so far; None before the first."""
        played = self._now.played
        return len(played.totals.hard) if played.rounds or self._live is not None else None

    def _take(
        self,
        f: ArrayLike,
        df: Numbers,
        g: Numbers,
        dg: Numbers,
        modulus: Numbers,
        ticket: TicketGiven,
    ) -> HistoryEntry | None:
        """Take in an observation; what `history` is to be told of the round."""
        now = self._now
        if self._learns:
            self._learn()
        (copy, begun, totals, rounds, _), (pending, ledger, log, next_check, next_tick, done) = now
        number, waiting = (None, None) if ticket is None else now.pending().find(ticket)
        seen = len(totals.hard) if rounds else None
        alone = len(pending.copies) == 1 and not pending.waiting
        played = self._values_played() if self._counts else None
        if self._tries and number is None and not alone:
            raise InputError(f"ticket must be given: policy {self._called} plays one round at a time, and that of a ticket waits")
        with np.errstate(all="ignore"):  # what comes of it is looked at
            if alone:
                if self._tries:
                    feedback = self._tried(copy, f, df, g, dg, modulus)
                else:
                    feedback = checked_feedback(copy.x, self._limits, f, df, g, dg, modulus, seen=seen)
                state, x = pending.advance(copy, feedback, None, played)
                costs = copy.costs if feedback.modulus is None else pending.costs(copy, feedback)
                copy, begun = Copy(state, x, copy.updates + 1, copy.steered, costs), begun + 1
            else:
                pending = now.own_pending()
                if number is None or waiting is None:
                    ready = pending.ready
                    feedback = checked_feedback(ready.x, self._limits, f, df, g, dg, modulus, seen=seen)
                    pending.go_on(*pending.advance(ready, feedback, None, played), feedback)
                else:
                    if self._tries:
                        feedback = self._tried(pending.copies[waiting.copy], f, df, g, dg, modulus)
                    else:
                        feedback = checked_feedback(waiting.x, self._limits, f, df, g, dg, modulus, seen=seen)
                    pending.receive(number, feedback, played)
                copy, begun = pending.copies[0], pending.begun
        t, at, full = rounds + 1, begun if number is None else round_of(number), False
        values = feedback.g
        if values.shape[-1] != len(totals.hard):
            more = [(0, 0)] * (values.ndim - 1) + [(0, max(0, len(totals.hard) - values.shape[-1]))]
            totals, values = totals.padded(values.shape[-1]), np.pad(values, more)
        violation = None
        if values.ndim > 1:  # several points were played: what they cost and violate on average is charged
            violation, values = charged(np.maximum(values, 0.0), 1), charged(values, 1)
        if ledger is not None:
            if not ledger.fits(len(feedback.g)):
                ledger = now.ledger()
                assert ledger is not None
                ledger.begin(len(feedback.g))
                next_tick = 0  # a batch was read
            row = rounds - ledger.rounds_read
            ledger.write(row, feedback, at)
            full = row + 1 == len(ledger.rows)
        kept = now.kept
        if not alone or ledger is not kept.ledger:
            kept = Kept(pending, ledger, log, next_check, next_tick, done)
        clock = t >= next_check or t >= next_tick or self._compiled is not None
        due = LOOK if clock else READ if full else NOTHING
        self._now = Standing(Played(copy, begun, totals.add(feedback.f, values, violation), t, due), kept)
        if due:
            self._follow_up()
        return None if self.history is None else self._entry(feedback, number)

    # --- what is due after it ----------------------------------------------------------------------------------------------------------

    def _broken_off(self) -> bool:
        """Whether what was due after the last observation is still to be done."""
        now, fast = self._now, self._live
        if fast is None:
            return now.unfinished
        (_, ledger, _, next_check, _, done) = now.kept
        n = fast.rounds
        if n < next_check and (ledger is None or n - ledger.rounds_read != len(ledger.rows)):
            return False
        return done != n

    def _step_in(self) -> bool:
        """Show the compiled rounds the row to write in, where they were broken off before they knew; whether that is worth another try."""
        (_, ledger, _, next_check, _, _), fast = self._now.kept, self._live
        if fast is None or ledger is None or self._broken_off():
            return fast is not None and ledger is not None
        row = fast.rounds - ledger.rounds_read
        if fast.row == row:
            return False
        fast.resume(row)
        self._check_at = next_check
        return True

    def _end_batch(self, fast: CompiledRound) -> None:
        """A compiled round has filled a batch: read it, and look around if that is due."""
        ledger, read = self._now.kept.ledger, None
        if ledger is not None and not ledger.stirred:
            done, read = ledger.pass_over(functools.partial(fast.note, ledger, self._now.played))
            if done and fast.rounds < self._now.kept.next_check:
                fast.resume(0)
                return
        self._follow_up(read)

    def _follow_up(self, read: FullBatch | None = None) -> None:
        """Do what is due after the last observation; the session stands with it, or as before. `read`: what was made of a full batch.

        A look that fails is repeated before the next observation, and given up if it fails again; either failure is the caller's to hear.
        """
        fast, now = self._live, self._now
        t = now.played.rounds if fast is None else fast.rounds
        due = clocks.due(t)
        if fast is not None and (due.assumptions or t > self._horizon):
            self._now = now = Standing(fast.played(now.played, now.kept.ledger if read is None else None), now.kept)
        failure: Exception | None = None
        try:
            kept = self._what_is_due(now, fast, due, read)
        except Exception as wrong:
            if self._failed != t:
                self._failed = t
                raise
            kept, failure = self._what_is_due(now, fast, due, giving_up=True), wrong
        self._check_at = 0.0
        self._now = Standing(now.played, kept)
        if fast is not None:
            if kept.ledger is not None:
                fast.resume(t - kept.ledger.rounds_read)
            self._check_at = kept.next_check
        if failure is not None:
            raise failure

    def _what_is_due(
        self,
        now: Standing,
        fast: CompiledRound | None,
        due: Due,
        read: FullBatch | None = None,
        *,
        apart: bool = False,
        giving_up: bool = False,
    ) -> Kept:
        """What is kept once everything is done that is due after the last observation: a full batch is read, assumptions are checked.

        `fast` has played rounds beyond `now`. `read` is what was made of a full batch. `apart`: nothing of the session's own memory may be
        used; `giving_up`: without a look.
        """
        (_, _, _, t, to_do), (pending, ledger, log, next_check, next_tick, _) = now
        ahead, look = 0 if fast is None else fast.rounds - t, False
        t += ahead
        if ledger is not None and not (ledger.rounds_read == t and ledger.at_rest):
            ledger = now.ledger(ahead)
            assert ledger is not None
            if fast is not None and ahead and read is None:  # else it was done then
                fast.note(ledger, now.played)
            if apart:
                ledger.read_with(None)
            if 0 < ledger.open == len(ledger.rows):
                ledger.close(read)
                look = fast is not None and ledger.stirred
        if fast is not None or to_do is LOOK:
            if t >= next_check:
                look = True
            elif fast is None and t >= next_tick:
                look = due.contradiction or (due.witness and ledger is not None and ledger.stirred)
        elif due.witness and ledger is not None:  # a batch was read
            look = ledger.stirred
        if fast is None:  # only a batch that is read can stir up anything
            stirred = ledger is not None and ledger.stirred
            next_tick = clocks.next_multiple(t, clocks.WITNESS_EVERY if stirred else clocks.CONTRADICTION_EVERY)
            if ledger is None:
                next_tick = inf  # there is nothing to search
        if look and giving_up:
            next_check = clocks.next_multiple(t, clocks.assumptions_every(t))
        elif look:
            log, parts = log.clone(), self._parts._replace(pending=now.pending(), ledger=ledger)
            if search_witness(parts, log, t, due):
                check_assumptions(parts, log, t, now.played.begun + ahead, due)
            next_check = next_check_after(parts, log, t)
        if fast is None and self._compiled is not None and to_do is LOOK:
            next_check = 0.0  # batches may be out of step: the next compiled round sees
        return Kept(pending, ledger, log, next_check, next_tick, t)

    # --- rounds given up ---------------------------------------------------------------------------------------------------------------

    def _warn_of_dropping(self, number: int) -> None:
        now = self._now
        pending = now.pending()
        if now.kept.log.fresh(DroppedWarning):
            why = "too many rounds were waiting" if pending.timeout is None else "it waited too long, or too many did"
            message = f"ticket {number} was dropped: {why}; it is charged to the bounds, and so will be others"
            log = now.kept.log.clone()
            log.warn(DroppedWarning, message, pending.begun, ticket=number)
            self._now = Standing(now.played, now.kept._replace(log=log))
            log.send()

    def _give_up(self, number: int) -> None:
        """Give a round up."""
        pending = self._now.own_pending()
        pending.give_up(number)
        self._put(pending)

    def _put(self, pending: PendingRounds) -> None:
        """Stand with these pending rounds."""
        played, kept = self._now
        self._now = Standing(played._replace(copy=pending.copies[0], begun=pending.begun), kept._replace(pending=pending))

    # --- what is said of it ------------------------------------------------------------------------------------------------------------

    def _values_played(self) -> Array | None:
        """The values of the limits at what was played in the round that is being observed, where that was not the decision."""
        return None

    def _entry(self, feedback: Feedback, number: int | None) -> HistoryEntry:
        """What `history` is told of a round."""
        fast = self._live
        cost, _, hard = (self._now.played.totals.cost, None, self._now.played.totals.hard) if fast is None else (fast.cost, None, fast.hard)
        entry: HistoryEntry = {
            "round": self.rounds,
            "x": np.array(feedback.x) if self._tries < 2 else np.array([each.x for each in cast(Tried, feedback).each]),
            "f": feedback.f,  # type: ignore[typeddict-item]
            "g": feedback.g.copy(),
            "violation": np.maximum(feedback.g, 0.0),
            "cost": float(cost),
            "ccv": float(hard.max()),
        }
        if number is not None:
            entry["ticket"] = number
        return entry

    def _tell(self, entry: HistoryEntry | None) -> None:
        """Warn of what was found, and tell of the round: it is counted, and the session is free."""
        self._now.kept.log.send()
        if entry is not None and self.history is not None:
            self.history(entry)


COUNTED = "(the round was counted: do not give it again)"
NOT_COUNTED = "(the round was not counted: it can be given again)"

PAUSE = 2e-5
"""How many seconds a thread sleeps before it looks again whether the session is free."""


def wait(session: object, entrances: frozenset[str], reading: bool) -> bool:
    """Another call is at work in this session: give it time. True where it is this thread's own, and only `reading` is asked for."""
    frame, asking = sys._getframe(1), True  # a call that waits to come in is not at work
    while frame is not None:
        if frame.f_code.co_name in entrances and frame.f_locals.get("self") is session and not asking:
            if reading:
                return True
            raise InputError(
                "this session is in the middle of another call of this thread (a signal handler, or a function that the session calls, "
                "has called it): observe, ask and forget must wait until that has ended"
            )
        asking, frame = frame.f_code is wait.__code__, frame.f_back  # type: ignore[assignment]
    if threading.active_count() == 1:  # the call was torn out of its frame, as only a debugger can
        session._inside = False
    else:
        time.sleep(PAUSE)
    return False


def mark(wrong: BaseException, counted: bool) -> None:
    """Say on an exception that leaves a session whether the call had counted."""
    with suppress(AttributeError):  # an exception may have no room for it
        wrong.counted = counted  # type: ignore[attr-defined]
        notes = [note for note in getattr(wrong, "__notes__", ()) if note not in (COUNTED, NOT_COUNTED)]
        if counted or not isinstance(wrong, InputError):
            notes.append(COUNTED if counted else NOT_COUNTED)
        if notes or hasattr(wrong, "__notes__"):
            wrong.__notes__ = notes

"""Who steps a session: Python, or compiled code that runs ahead of the state in a memory of its own. Nobody outside can tell which.

A round is counted by one act that no signal can cut in two: Python's by the assignment of a state, a compiled one by one call into machine
code, which writes the policy's state, the totals, a row of the ledger and the count, or nothing.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any, Protocol, TypeAlias

import numpy as np

from bridle import engines
from bridle.core import Command, Decide, Feedback, Observation, Unavailable
from bridle.engines import AUTO
from bridle.engines.round import CannotCompile
from bridle.game.totals import RunningTotals
from bridle.ops import Array
from bridle.session import actions
from bridle.session.certificates import clocks
from bridle.session.certificates.batches import FullBatch
from bridle.session.compiled_round import PLAYED, PLAYED_CHECK_NOW, REFUSED, WRONG_TYPES, CompiledRound
from bridle.session.feedback import checked_feedback
from bridle.session.state import Copy, Memory, Plan, RoundState, SessionState, put
from bridle.session.step import Alarms, PlayedRound, decision, learned, look, raised_limits, standing, step

Outcome: TypeAlias = tuple[Any, Alarms]
"""The answer of a command, and its alarms."""

QUIET: Outcome = (None, ())

LONG_RUN = 255
"""After so many rounds a session is compiled, where nobody has said how it is to be played: the next may take a second or two for it.

Which round is played how depends on their number alone, so that a replay takes the same path.
"""


class Stepper(Protocol):
    """Takes a session from state to state. `telling`: the answer of an observation is wanted."""

    plan: Plan
    telling: bool

    def step(self, command: Command) -> Outcome:
        """Let a command happen."""
        ...

    def flush(self) -> SessionState:
        """Where the session stands, as a value: reading it changes nothing."""
        ...

    def settle(self) -> Alarms:
        """Do what an earlier call was broken off in; the alarms of that."""
        ...

    def mark(self) -> object:
        """Something to compare with later (`passed`)."""
        ...

    def passed(self, mark: Any, command: Command) -> bool:
        """Whether the command that began at this mark has happened."""
        ...

    def decision(self) -> Array:
        """What is to be played, where there is nothing more to say."""
        ...

    def standing(self) -> Array:
        """What the session stands at: see `bridle.session.step.standing`."""
        ...

    @property
    def rounds(self) -> int:
        """How many rounds were observed."""
        ...

    @property
    def totals(self) -> RunningTotals:
        """The sums of the decisions' rounds."""
        ...

    @property
    def memory(self) -> Memory:
        """What observations have left beside the policy's state."""
        ...

    @property
    def base(self) -> SessionState:
        """A state whose slow part is up to date but for the ledger and the memory: reading it is free."""
        ...


class PythonStepper:
    """Steps in Python."""

    def __init__(self, plan: Plan, state: SessionState) -> None:
        self.plan, self.base, self.telling = plan, state, True

    def step(self, command: Command) -> Outcome:
        self.base, answer, alarms = step(self.plan, self.base, command)  # this makes it happen
        return answer, alarms

    def flush(self) -> SessionState:
        return self.base

    def settle(self) -> Alarms:
        return ()

    def mark(self) -> object:
        return self.base

    def passed(self, mark: object, command: Command) -> bool:
        return self.base is not mark

    def decision(self) -> Array:
        now, slow = self.base
        if self.plan.plain and slow.said is None and not slow.late.others and not slow.late.waiting:
            return now.copy.x.copy()
        return decision(self.plan, self.base)

    def standing(self) -> Array:
        return standing(self.plan, self.base)

    @property
    def rounds(self) -> int:
        return self.base.now.rounds

    @property
    def totals(self) -> RunningTotals:
        return self.base.now.totals

    @property
    def memory(self) -> Memory:
        return self.base.slow.memory


class CompiledStepper:
    """Steps rounds of k constraints in compiled code, whatever else in Python.

    `at` is (base, fast, left), replaced as a whole: the state at which the compiled rounds began, with what was looked up since; these
    rounds, None while the state itself says how things stand; and what a round leaves beside their memory, in force once they are so many.
    `stop` only saves time: the round up to which there is nothing to do but play.
    """

    def __init__(self, plan: Plan, state: SessionState) -> None:
        self.plan, self.telling, self.stop = plan, False, 0.0
        self.first: float = LONG_RUN if plan.engine == AUTO else 0
        """After so many rounds they are compiled."""
        self.compiled: CompiledRound | None = None
        self.at: tuple[SessionState, CompiledRound | None, tuple[int, Memory] | None] = (state, None, None)

    # --- one command ------------------------------------------------------------------------------------------------------------------

    def step(self, command: Command) -> Outcome:
        fast = self.at[1]
        if command.__class__ is Observation:
            f, df, g, dg, modulus, played, ticket = command
            if modulus is None and ticket is None:
                plain = played is None and (df is not None or not self.plan.curved)
                if fast is not None and plain and fast.numbers[fast.rounds_at] + 1.0 < self.stop:
                    outcome = fast.play(f, df, g, dg)  # this counts it
                    if outcome is PLAYED:
                        return (PlayedRound(fast.feedback(), None), ()) if self.telling else QUIET
                    if outcome is PLAYED_CHECK_NOW:
                        return self._told(fast, self._look())
                    if outcome is REFUSED and not self._broken_off(fast):
                        return self._in_python(command)
                return self._slowly(command)
        elif command.__class__ is Decide and fast is not None:
            view = self._view()
            if actions.says_terms_alone(self.plan, view, command.prior):
                after, answer, alarms = step(self.plan, view, command)
                base, _, left = self.at
                self.stop = 0.0
                self.at = (base.with_slow(said=after.slow.said), fast, left)
                return answer, alarms
        return self._in_python(command)

    def _slowly(self, o: Observation) -> Outcome:
        """A round where something has to be done before it, to it, or after it."""
        early = self.settle()
        plan, (base, fast, left) = self.plan, self.at
        if o.df is None and plan.curved:
            return self._in_python(o)
        plain = o if not base.slow.changes.offsets or o.g is None else o._replace(g=raised_limits(o.g, base.slow.changes.offsets))
        if fast is None and (base.now.rounds < self.first or not self._follow(plain)):
            return self._in_python(o)
        base, fast, left = self.at
        assert fast is not None
        if left is not None and fast.rounds < left[0]:
            self.at = (base, fast, None)  # of a round that was refused
        seen: Feedback | None = None
        if o.played is not None or not plan.plain or self._is_said():
            view = self._view()
            reading = actions.read(plan, view, plain, None)
            if reading.moved and plan.counts is not None:
                return self._in_python(o)
            plain, seen = Observation(*reading.read), reading.seen
            if len(seen.g) != fast.k:
                return self._in_python(o)
            if reading.memory is not view.slow.memory:
                self.stop = 0.0
                self.at = (base.with_slow(memory=view.slow.memory), fast, (fast.rounds + 1, reading.memory))
        outcome = fast.play(*plain[:4])  # this counts it
        if outcome is WRONG_TYPES:
            feedback = self._checked(fast.x, plain)
            if len(feedback.g) != fast.k:
                if fast.rounds:
                    return self._in_python(o)
                self.compiled, self.at = None, (self.at[0], None, None)  # the first round decides, whatever `warm_up` was told
                return self._slowly(o)
            outcome = fast.play(float(feedback.f), feedback.df, feedback.g, feedback.dg)
        if outcome is not PLAYED and outcome is not PLAYED_CHECK_NOW:
            return self._in_python(o)
        if outcome is PLAYED_CHECK_NOW or fast.rounds >= base.slow.next_check:
            return self._told(fast, (*early, *self._look()), seen)
        self.stop = self._stop()
        return self._told(fast, early, seen)

    def _told(self, fast: CompiledRound, alarms: Alarms, seen: Feedback | None = None) -> Outcome:
        if not self.telling:
            return (None, alarms) if alarms else QUIET
        return PlayedRound(fast.feedback() if seen is None else seen, None), alarms

    def _in_python(self, command: Command) -> Outcome:
        early = self.settle()
        state, answer, alarms = step(self.plan, self._settled(), command, mixed=self.rounds >= self.first)
        self.at = (state, None, None)  # this makes it happen
        return answer, (*early, *alarms)

    def mark(self) -> object:
        base, fast, _ = self.at
        return base, base.now.rounds if fast is None else fast.numbers[fast.rounds_at]

    def passed(self, mark: tuple[SessionState, float], command: Command) -> bool:
        if command.__class__ is Observation:
            return self.rounds != mark[1]
        before, after = mark[0], self.at[0]
        if command.__class__ is Decide:
            return after.slow.said is not before.slow.said
        return after.now.begun != before.now.begun or after.slow.late.lost != before.slow.late.lost

    # --- ahead of the state -----------------------------------------------------------------------------------------------------------

    def compile(self, k: int) -> CompiledRound:
        """Compile the round for k constraints, unless it is; nothing else changes."""
        if self.compiled is None or self.compiled.k != k:
            now, slow = self.at[0]
            self.compiled = CompiledRound(self.plan.record, now.copy, slow.ledger, now.totals, k, slow.limits.largest)
        return self.compiled

    def _checked(self, x: Array, o: Observation) -> Feedback:
        base, fast, _ = self.at
        with np.errstate(all="ignore"):
            return checked_feedback(x, base.slow.limits, *o[:4], seen=base.most_seen if fast is None else fast.k if fast.rounds else None)

    def _follow(self, o: Observation) -> bool:
        """Have the compiled rounds begin at the state; whether the next can be played there."""
        plan, (base, _, left) = self.plan, self.at
        now, slow = base
        if not base.alone:
            return False
        k = slow.limits.k or slow.first
        if not now.rounds:
            if slow.limits.k is None:
                plain = o.played is None and plan.plain and not self._is_said()
                k = len(self._checked(now.copy.x, o).g if plain else actions.read(plan, base, o, None).seen.g)
            base = SessionState(now, slow := slow._replace(first=k))
        try:
            fast = self.compile(k)
        except (CannotCompile, Unavailable):
            if plan.engine != AUTO:
                raise
            self.first = inf
            return False
        ledger = slow.ledger
        if len(now.totals.hard) > fast.k or (ledger is not None and now.rounds > ledger.rounds_read and ledger.k != fast.k):
            return False  # Python ends an open batch where the round turns out to be of another kind
        fast.follow(now)
        if ledger is not None and fast.ring is not None:
            if ledger.rows is not fast.ring or ledger.reader is not fast.reader:
                ledger = base.ledger()
                assert ledger is not None
                ledger.read_with(fast.reader)
                if ledger.rows is not fast.ring:
                    ledger.begin(fast.k, fast.ring)
                base = SessionState(now, slow._replace(ledger=ledger))
            fast.resume(now.rounds - ledger.rounds_read)
        self.stop = 0.0
        self.at = (base, fast, left)
        return True

    def _is_said(self) -> bool:
        """Whether something was said of this round."""
        (now, slow), fast, _ = self.at
        return slow.said is not None and slow.said.begun == now.begun + (0 if fast is None else fast.rounds - now.rounds)

    def _stop(self) -> float:
        slow, left = self.at[0].slow, self.at[2]
        waits = left is not None and self.rounds < left[0]
        return 0.0 if waits or slow.changes.offsets or not self.plan.plain or self._is_said() else slow.next_check

    def _row(self) -> int:
        """The row of the open batch into which the next round is written."""
        (now, slow), fast, _ = self.at
        return 0 if slow.ledger is None else (now.rounds if fast is None else fast.rounds) - slow.ledger.rounds_read

    def _note(self, fast: CompiledRound) -> None:
        """Tell the ledger of which rounds its rows are."""
        now, slow = self.at[0]
        if slow.ledger is not None:
            fast.note(slow.ledger, now)

    def _full(self) -> bool:
        ledger = self.at[0].slow.ledger
        return ledger is not None and self._row() == len(ledger.rows)

    def _broken_off(self, fast: CompiledRound) -> bool:
        """Whether a look, or to tell the compiled rounds of one, was broken off."""
        base = self.at[0]
        look = fast.rounds > base.now.rounds and (fast.rounds >= base.slow.next_check or self._full())
        return look or fast.row != self._row()

    def settle(self) -> Alarms:
        base, fast, _ = self.at
        if fast is None or not self._broken_off(fast):
            return ()
        if fast.rounds > base.now.rounds and (self._full() or fast.rounds >= base.slow.next_check):
            return self._look()
        fast.resume(self._row())
        return ()

    def _look(self) -> Alarms:
        """Do what is due after a compiled round: a full batch is read in compiled code, and mostly that is all."""
        (now, slow), fast, _ = self.at
        assert fast is not None
        ledger = slow.ledger
        batch: FullBatch | None = None
        if ledger is not None and self._full() and not ledger.stirred:
            done, batch = ledger.pass_over(partial(fast.note, ledger, now))
            if done and fast.rounds < slow.next_check:
                fast.resume(0)
                return ()
        self._note(fast)
        whole = clocks.due(fast.rounds).assumptions or fast.rounds > self.plan.horizon or self.plan.learns
        state = self._settled() if whole else self._view()
        after, failed = look(self.plan, state, compiled=True, mixed=True, batch=batch)
        self.stop = 0.0
        self.at = (SessionState(state.now if whole else now, after), fast, None)
        fast.resume(self._row())
        self.stop = self._stop()
        return (*after.log.alarms[len(slow.log.alarms) :], *failed)

    # --- readings -------------------------------------------------------------------------------------------------------------------------

    def _view(self) -> SessionState:
        """The state but for the policy's own and the rows: enough to read an observation with. Its totals are the memory's."""
        (now, slow), fast, left = self.at
        if fast is None:
            return self.at[0]
        copy, begun, _, before = now
        rounds, totals = fast.rounds, put(RunningTotals, (fast.cost, fast.hard, fast.signed))
        copy = put(Copy, (copy.state, fast.x.copy(), copy.updates, copy.steered, copy.costs))
        now = put(RoundState, (copy, begun + rounds - before, totals, rounds))
        return SessionState(now, slow if left is None else slow._replace(memory=self.memory))

    def _settled(self) -> SessionState:
        """The state with what was played; its open rows are still the memory's, and its reader the compiled one."""
        (now, slow), fast, left = self.at
        if fast is None:
            return self.at[0]
        if left is not None:
            slow = slow._replace(memory=self.memory)
        self._note(fast)
        state = SessionState(fast.played(now), slow)
        return SessionState(state.now, learned(self.plan, state)) if self.plan.learns and slow.limits.k is None else state

    def flush(self) -> SessionState:
        state = self._settled()
        ledger = None if self.at[1] is None else state.ledger()
        if ledger is None:
            return state
        ledger.read_with(None)
        if 0 < ledger.open == len(ledger.rows):  # a handler asks in the middle of a call, and the look is still to come
            ledger.close()
        return state.with_slow(ledger=ledger)

    def decision(self) -> Array:
        base, fast, _ = self.at
        if fast is not None and self.stop:
            return fast.x.copy()
        if fast is None and self.plan.plain and base.slow.said is None and base.alone:
            return base.now.copy.x.copy()
        return decision(self.plan, base if fast is None else self._view())

    def standing(self) -> Array:
        base, fast, _ = self.at
        return standing(self.plan, base) if fast is None else fast.x

    @property
    def rounds(self) -> int:
        base, fast, _ = self.at
        return base.now.rounds if fast is None else int(fast.numbers[fast.rounds_at])

    @property
    def totals(self) -> RunningTotals:
        base, fast, _ = self.at
        return base.now.totals if fast is None else RunningTotals(float(fast.cost), fast.hard.copy(), fast.signed.copy())

    @property
    def memory(self) -> Memory:
        base, fast, left = self.at
        return left[1] if left is not None and fast is not None and fast.rounds >= left[0] else base.slow.memory

    @property
    def base(self) -> SessionState:
        return self.at[0]


def stepper_for(plan: Plan, state: SessionState) -> Stepper:
    """Who steps the sessions of this plan."""
    compiled = plan.engine == "compiled" or (plan.engine == AUTO and not plan.tries and engines.compiles(plan.record))
    return CompiledStepper(plan, state) if compiled else PythonStepper(plan, state)

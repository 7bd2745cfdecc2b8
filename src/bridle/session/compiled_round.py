"""A session's round in compiled code: the policy's update and the totals, from their own source.

`play_round` is the round; every engine could run it. `CompiledRound` mirrors a session's records in the memory of that function. For the
certificates the same call writes the round down; full batches of rounds are then read in compiled code too (`CompiledReader`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, cast

import numpy as np
from numpy import ndarray

from bridle.core import Feedback, Policy
from bridle.engines.mirror import Mirror, Ring
from bridle.engines.round import StepOutcome
from bridle.game.totals import RunningTotals
from bridle.ops import Array, Scalar
from bridle.policies.registry import with_room
from bridle.session.certificates.batches import BatchFindings, BatchMemory, Counted, Frame, length, read_next, unread
from bridle.session.certificates.ledger import Ledger
from bridle.session.feedback import floats
from bridle.session.state import Copy, RoundState


class PlayOutcome(IntEnum):
    """What came of playing a round in compiled code; at 0 and below nothing has changed."""

    WRONG_TYPES = -1  # not floats and arrays of floats: check and convert them first
    REFUSED = 0  # the numbers will not do, or what comes of them: Python finds out what is wrong, or copes
    PLAYED = 1
    PLAYED_CHECK_NOW = 2  # played, and the batch is full


WRONG_TYPES, REFUSED, PLAYED, PLAYED_CHECK_NOW = PlayOutcome  # names that are looked up faster

DONE = int(StepOutcome.DONE)  # plain numbers are compared faster


class CompiledState(NamedTuple):
    """What a round changes: the policy's state, its decision, the decision before, the totals, and how many rounds were observed.

    The last is how a round is counted: one call of compiled code changes them all, or none.
    """

    state: object
    x: Array
    played: Array
    totals: RunningTotals
    rounds: Scalar


class RoundNumbers(NamedTuple):
    """What is observed of a round."""

    f: Scalar
    df: Array
    g: Array
    dg: Array


def play_round(record: Policy[object], before: CompiledState, observed: RoundNumbers) -> CompiledState:
    """One round of a session: the policy's update and next decision, and the totals."""
    state = record.update(before.state, Feedback(before.x, *observed))
    return CompiledState(state, record.decide(state), before.x, before.totals.add(observed.f, observed.g), before.rounds + 1.0)


class BatchMirror(Mirror[Counted]):
    """One memory of a reader: what was counted, and what was found in the last batch."""

    def __init__(self, frame: Frame, k: int, rows: Array) -> None:
        like = unread(len(frame.witness), k, len(frame.levels))
        super().__init__(read_next, frame, like, rows, like.counted)
        self.rows, self.witness, self.near = (self.views[name] for name in ("given.", "constants.witness", "constants.near"))
        self.findings = BatchFindings(*(self.views[f"states.findings.{name}"] for name in BatchFindings._fields))
        self.seen: object = self  # the witness in the memory

    def settle(self) -> Counted:
        """What was counted up to the last batch."""
        if self.equal_to is None:
            self.equal_to = self.read()
        return self.equal_to


class CompiledReader:
    """Reads full batches of rounds with k constraints for a ledger; what it counts stays in its memories until somebody asks.

    There are two: while a batch is read into one, the other holds what was counted before, and the ledger goes from one to the other when
    the batch is counted in. A reading that is broken off is as if it had never begun.
    """

    def __init__(self, frame: Frame, k: int, rows: Array) -> None:
        self._memories = BatchMirror(frame, k, rows), BatchMirror(frame, k, rows)

    def read(self, rows: Array, near: float, witness: Array | None, before: Counted | BatchMemory) -> BatchMirror | None:
        """The memory with the batch counted in after `before`; None if it is no full batch, or too large to add up."""
        one, other = self._memories
        held, memory = (one, other) if before is one or before is one.equal_to else (other, one)
        if rows.shape != memory.rows.shape:
            return None
        memory.equal_to = None
        if before is held or before is held.equal_to:
            memory.take_over(held)
        else:
            memory.write(before.settle() if isinstance(before, BatchMirror) else cast("Counted", before))
            memory.equal_to = None
        if witness is not memory.seen:
            memory.seen = None
            memory.witness[:] = np.nan if witness is None else witness  # nothing is ever beyond NaN
            memory.seen = witness
        memory.rows[:], memory.near[()] = rows, near
        return memory if memory.run() else None


class CompiledRound(Mirror[CompiledState]):
    """The memory of a session's rounds with k constraints, which runs ahead of where the session stands.

    It is written from what was played (`follow`), and counts the rounds in `rounds_at` of `numbers`; a row of the ledger's open batch is
    written with each.
    """

    def __init__(self, record: Policy[object], copy: Copy, ledger: Ledger | None, totals: RunningTotals, k: int, largest: float) -> None:
        self.k, self._record, d = k, record, len(copy.x)
        # The totals may be of more constraints than there is room for: then nothing will be played here (`fits`).
        room = RunningTotals(0.0, np.zeros(k), np.zeros(k))
        state = CompiledState(with_room(record, copy.state, k), copy.x, copy.x, room, 0.0)
        observed = RoundNumbers(0.0, np.zeros(d), np.zeros(k), np.zeros((k, d)))
        # A row of the ring is laid out as `batches.parts` has it.
        ring = None if ledger is None else Ring(length(d, k), ("states.x", "given.df", "given.g", "given.dg"))
        super().__init__(play_round, record, state, observed, state, largest, ring)
        self._at_f, self._at_g = self.end, self.end + 1 + d  # as they follow each other in `RoundNumbers`
        self.rounds_at = self.end - 1  # the last of the states
        view = self.views
        self.x, self._played = view["states.x"], view["states.played"]
        self.cost, self.hard, self.signed = (view[f"states.totals.{name}"] for name in RunningTotals._fields)
        self._df, self._g, self._dg = view["given.df"], view["given.g"], view["given.dg"]
        self._shape, self._zeros = (d,), np.zeros(d)
        # Plain views of one axis take arrays faster than NumPy's do.
        self._slope, self._row = self.numbers[self.end + 1 : self._at_g], self.numbers[self._at_g + k : self._at_g + k + d]
        self._order = np.arange(0 if ring is None else ring.rows)
        self._copy: Copy | None = None
        self._totals: RunningTotals | None = None
        self.reader = None if ledger is None or self.ring is None else CompiledReader(ledger.frame(), k, self.ring)

    @property
    def rounds(self) -> int:
        """How many rounds were observed."""
        return int(self.numbers[self.rounds_at])

    @property
    def row(self) -> int:
        """In which row of the open batch the next round is written down."""
        return 0 if self.ring is None else int(self.numbers[self.cursor])

    def follow(self, now: RoundState) -> None:
        """Be as these rounds were played."""
        copy, _, totals, rounds = now
        if copy is not self._copy or totals is not self._totals:
            self._copy = self._totals = None
            state = with_room(self._record, copy.state, self.k)
            self.write(CompiledState(state, copy.x, copy.x, totals.padded(self.k), float(rounds)))
            self._copy, self._totals = copy, totals
        self.numbers[self.rounds_at] = float(rounds)

    def play(self, f: float, df: Array | None, g: Array | float | None, dg: Array | None) -> PlayOutcome:
        """Play a round with what was observed. The numbers themselves are checked by the compiled code, their types here."""
        if floats(self._shape, f, df, g, dg) != self.k:
            if df is None and isinstance(f, float) and f == 0.0:
                df = self._zeros
            if g is None and dg is None and self.k == 1:
                g, dg = 0.0, self._zeros
            if floats(self._shape, f, df, g, dg) != self.k:
                return WRONG_TYPES
        numbers = self.numbers
        if g.__class__ is ndarray:
            self._g[...] = g
        else:
            numbers[self._at_g] = g  # type: ignore[assignment]
        if dg.ndim == 1:  # type: ignore[union-attr]
            self._row[:] = dg  # type: ignore[call-overload]
        else:
            self._dg[...] = dg
        self._slope[:] = df  # type: ignore[call-overload]
        numbers[self._at_f] = f
        answer = self.step()
        if answer == DONE:
            return PLAYED
        return REFUSED if answer > DONE else PLAYED_CHECK_NOW

    def note(self, ledger: Ledger, before: RoundState) -> None:
        """Tell the ledger of which rounds the rows are that were written since `before` was played."""
        ahead = self.rounds - before.rounds
        old, new = max(0, before.rounds - ledger.rounds_read), self.rounds - ledger.rounds_read
        if new > old:
            np.add(self._order[old:new], before.begun + ahead - new + 1, out=ledger.numbers[old:new])
            ledger.moduli[old:new] = 0.0

    def resume(self, at: int) -> None:
        """Go on writing down in this row of the open batch."""
        if self.ring is not None:
            self.numbers[self.cursor] = at

    def feedback(self) -> Feedback:
        """What was observed of the round just played; its arrays are the memory's own, good until the next round."""
        return Feedback(self._played, self.numbers[self._at_f], self._df, self._g, self._dg)

    def played(self, before: RoundState) -> RoundState:
        """What was played as the memory has it; it was `before` when the memory began to follow."""
        state, x, _, totals, rounds = self.read()
        ahead = int(rounds) - before.rounds
        if not ahead:
            return before
        copy = before.copy._replace(state=state, x=x, updates=before.copy.updates + ahead)
        self._copy, self._totals = copy, totals
        return RoundState(copy, before.begun + ahead, totals, int(rounds))

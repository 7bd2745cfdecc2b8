"""A session's round in compiled code: the policy's update and the totals, from their own source.

`play_round` is the round; every engine could run it. `CompiledRound` mirrors a session's records in the memory of that function. For the
certificates the same call writes the round down; full batches of rounds are then read in compiled code too (`CompiledReader`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from bridle.core import Feedback, Policy
from bridle.engines.mirror import Mirror, Ring
from bridle.engines.round import StepOutcome
from bridle.game.totals import RunningTotals
from bridle.ops import Array, Scalar
from bridle.session.batch_sums import BatchFindings, Counted, Frame, length, read_next, unread
from bridle.session.feedback import LARGEST, floats
from bridle.session.late_feedback import Copy, PendingRounds
from bridle.session.ledger import Ledger


class PlayOutcome(IntEnum):
    """What came of playing a round in compiled code; at 0 and below nothing has changed."""

    WRONG_TYPES = -1  # not floats and arrays of floats: check and convert them first
    REFUSED = 0  # the numbers will not do, or what comes of them: Python finds out what is wrong, or copes
    PLAYED = 1
    PLAYED_CHECK_NOW = 2  # played, and there is something to look at


WRONG_TYPES, REFUSED, PLAYED, PLAYED_CHECK_NOW = PlayOutcome  # names that are looked up faster

DONE = int(StepOutcome.DONE)  # plain numbers are compared faster


class RoundState(NamedTuple):
    """What a round changes: the policy's state, its decision, the decision before, and the totals."""

    state: object
    x: Array
    played: Array
    totals: RunningTotals


class Observation(NamedTuple):
    """What is observed of a round."""

    f: Scalar
    df: Array
    g: Array
    dg: Array


def play_round(record: Policy[object], before: RoundState, observed: Observation) -> RoundState:
    """One round of a session: the policy's update and next decision, and the totals."""
    state = record.update(before.state, Feedback(before.x, *observed))
    return RoundState(state, record.decide(state), before.x, before.totals.add(observed.f, observed.g))


class CompiledReader(Mirror[Counted]):
    """Reads full batches of rounds with k constraints for a ledger; what it counts stays in its memory until somebody asks."""

    def __init__(self, frame: Frame, k: int, rows: Array) -> None:
        like = unread(len(frame.witness), k, len(frame.levels))
        super().__init__(read_next, frame, like, rows, like.counted)
        self._rows, self._witness, self._near = (self.views[name] for name in ("given.", "constants.witness", "constants.near"))
        self._findings = BatchFindings(*(self.views[f"states.findings.{name}"] for name in BatchFindings._fields))
        self._seen: object = self  # the witness in the memory

    def read(self, rows: Array, near: float, witness: Array | None, before: Counted) -> BatchFindings | None:
        """Count a batch in after `before`, or after what was counted in since; None if it is no full batch, or too large to add up.

        The findings are the memory's own, good until the next call.
        """
        if rows.shape != self._rows.shape:
            return None
        if not self.ahead and before is not self.equal_to:
            self.write(before)
        if witness is not self._seen:
            self._witness[:], self._seen = np.nan if witness is None else witness, witness  # nothing is ever beyond NaN
        self._rows[:], self._near[()] = rows, near
        return self._findings if self.run() else None


class CompiledRound(Mirror[RoundState]):
    """The memory of a session's rounds with k constraints, which runs ahead of the pending rounds, the totals and the ledger's batch."""

    def __init__(self, pending: PendingRounds, ledger: Ledger | None, totals: RunningTotals, k: int) -> None:
        self.pending, self.ledger, self.k = pending, ledger, k
        copy, d = pending.copies[0], len(pending.copies[0].x)
        # The totals may be of more constraints than there is room for: then nothing will be played here (`fits`).
        room = RunningTotals(0.0, np.zeros(k), None if totals.signed is None else np.zeros(k))
        state = RoundState(copy.state, copy.x, copy.x, room)
        observed = Observation(0.0, np.zeros(d), np.zeros(k), np.zeros((k, d)))
        # A row of the ring is laid out as `batch_sums.parts` has it.
        ring = None if ledger is None else Ring(length(d, k), ("states.x", "given.df", "given.g", "given.dg"))
        super().__init__(play_round, pending.record, state, observed, state, LARGEST, ring)
        self._at_f, self._at_g = self.end, self.end + 1 + d  # as they follow each other in `Observation`
        view = self.views
        self.x, self._played = view["states.x"], view["states.played"]
        self.cost, self.hard = view["states.totals.cost"], view["states.totals.hard"]
        self._df, self._g, self._dg = view["given.df"], view["given.g"], view["given.dg"]
        self._row, self._shape, self._zeros = self._dg[0], (d,), np.zeros(d)
        self._order = np.arange(0 if ring is None else ring.rows)
        self._copy: Copy | None = None
        self._totals = totals
        if ledger is not None and self.ring is not None:
            ledger.read_with(CompiledReader(ledger.frame(), k, self.ring))  # also batches that Python ends

    def fits(self, totals: RunningTotals) -> bool:
        """Whether the next round can be played here; the memory is then as the records are."""
        pending, ledger = self.pending, self.ledger
        if len(pending.copies) > 1 or pending.waiting or len(totals.hard) > self.k:
            return False
        if ledger is not None and ledger.open and ledger.k != self.k:
            return False  # Python ends that batch where the round turns out to be of another kind
        copy = pending.copies[0]
        if copy is not self._copy or totals is not self._totals:
            self.write(RoundState(copy.state, copy.x, copy.x, totals.padded(self.k)))
            self._copy, self._totals = copy, totals
        if ledger is not None:
            if ledger.rows is not self.ring:
                assert self.ring is not None
                ledger.begin(self.k, self.ring)
            self.resume()
        return True

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
        if isinstance(g, float):
            numbers[self._at_g] = g
        else:
            self._g[...] = g
        if dg.ndim == 1:  # type: ignore[union-attr]
            self._row[...] = dg
        else:
            self._dg[...] = dg
        self._df[...] = df
        numbers[self._at_f] = f
        answer = self.step(self.array)
        if answer > DONE:
            return REFUSED
        self.ahead += 1
        if answer == DONE:
            return PLAYED
        self.note()
        if self.ledger is None:
            return PLAYED
        try:
            self.ledger.close()  # its batch is full
        finally:  # where that is broken off, no round may be read twice
            self.resume()
        return PLAYED_CHECK_NOW if self.ledger.stirred else PLAYED

    def note(self) -> None:
        """Tell the ledger which rounds are written down."""
        ledger = self.ledger
        if ledger is not None:
            old, new = ledger.open, int(self.numbers[self.cursor])
            if new > old:
                ledger.numbers[old:new] = self._order[old:new] + (self.pending.begun + self.ahead - new + 1)
                ledger.moduli[old:new] = 0.0
                ledger.open = new

    def resume(self) -> None:
        """Go on writing down where the ledger stands."""
        if self.ledger is not None:
            self.numbers[self.cursor] = self.ledger.open

    def feedback(self) -> Feedback:
        """What was observed of the round just played; its arrays are the memory's own, good until the next round."""
        return Feedback(self._played, self.numbers[self._at_f], self._df, self._g, self._dg)

    def hand_back(self) -> RunningTotals:
        """The totals as the memory has them; the pending rounds and the ledger get what is theirs."""
        pending, ahead, old = self.pending, self.ahead, self.pending.copies[0]
        self.note()
        state, x, _, self._totals = self.settle()
        self._copy = pending.copies[0] = Copy(state, x, old.updates + ahead, old.steered, old.costs)
        pending.begun += ahead
        return self._totals

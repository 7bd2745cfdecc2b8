"""Where a session stands: everything that a round changes, in one value that is replaced by one assignment.

Whatever an observation leads to is worked out on values that nobody sees yet; then the session's standing is replaced, and the round is
counted. An interrupt leaves the old standing or the new one. What is due after a round (a batch of rounds is read, assumptions are checked)
replaces the standing a second time; where that is broken off, the next call does it first. So nothing here is ever changed in place, but
for rows of the ledger that the standing does not count yet.

Compiled rounds run ahead of the standing in a memory of their own (`compiled_round`), of which each call counts a round or leaves it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from bridle.game.totals import RunningTotals
from bridle.session.alarms import WarningLog
from bridle.session.late_feedback import Copy, PendingRounds
from bridle.session.ledger import Ledger


class FollowUp(IntEnum):
    """What is to be done after an observation."""

    NOTHING = 0
    READ = 1  # the batch is full
    LOOK = 2  # also whatever the clocks say


NOTHING, READ, LOOK = FollowUp  # names that are looked up faster


class Played(NamedTuple):
    """What every round changes: the first copy of the policy, how many rounds were begun, the totals, and how many rounds were observed.
    `due`: what is to be done after the last of them.
    """

    copy: Copy
    begun: int
    totals: RunningTotals
    rounds: int
    due: FollowUp = NOTHING


class Kept(NamedTuple):
    """What changes now and then. `pending` and `ledger` may be behind what was played: `Standing` brings them up to date.

    `next_check` is the round after which to look around at the latest, `next_tick` the one after which to ask whether to do so before;
    `done` is the last round after which everything that was due was done.
    """

    pending: PendingRounds
    ledger: Ledger | None
    log: WarningLog
    next_check: float = 0.0
    next_tick: float = 0
    done: int = 0


class Standing(NamedTuple):
    """Where a session stands."""

    played: Played
    kept: Kept

    @property
    def unfinished(self) -> bool:
        """Whether what was due after the last observation was broken off."""
        return self.played.due is not NOTHING and self.kept.done != self.played.rounds

    @property
    def alone(self) -> bool:
        """Whether one copy of the policy plays every round, and none waits: then `played` has all that a round changes."""
        pending = self.kept.pending
        return len(pending.copies) == 1 and not pending.waiting

    def pending(self) -> PendingRounds:
        """The pending rounds, up to date; to be changed by nobody else."""
        pending = self.kept.pending  # what is put right here is said by `played` alone, so that it does not matter who sees it
        pending.copies[0], pending.begun = self.played.copy, self.played.begun
        return pending

    def own_pending(self) -> PendingRounds:
        """The pending rounds, up to date; the caller's own."""
        pending = self.kept.pending.clone()
        pending.copies[0], pending.begun = self.played.copy, self.played.begun
        return pending

    def ledger(self, ahead: int = 0) -> Ledger | None:
        """The ledger, up to date; the caller's own. `ahead` more observations have been written down."""
        if self.kept.ledger is None:
            return None
        ledger = self.kept.ledger.clone()
        ledger.open = self.played.rounds + ahead - ledger.rounds_read
        return ledger

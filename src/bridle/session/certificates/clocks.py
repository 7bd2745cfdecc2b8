"""When a session does more than play the round: every clock it has, and what is due after which round.

`due(t)` is the only place that tests a number of rounds. The clocks nest: a round after which assumptions are checked is also one after
which a contradiction is searched for, and that is also one after which the witness is searched for.
"""

from __future__ import annotations

from typing import NamedTuple

from bridle.session.certificates.feasibility import RECENT

WITNESS_EVERY = 8
"""Every 8 rounds the witness, an action that meets every kept halfspace, is repaired by projections, if new halfspaces have come."""

CONTRADICTION_EVERY = 32
"""Every 32 rounds the open batch is read and the kept halfspaces are searched for a contradiction, if new ones have come."""

ASSUMPTIONS_EVERY = 64
"""Every 64 rounds the policy's assumptions are checked against what was observed, until round `SETTLED`."""

SETTLED, SETTLED_EVERY = 1024, 256
"""From round 1024 on they are checked every 256 rounds: a quarter of all rounds, as in the first 256, is soon enough."""

RANKING_EVERY = 8192
"""Every 8192 rounds, and at powers of four before, the halfspaces that the bound on regret rests on are found and protected."""

BATCH_ROUNDS = 32
"""A batch of rounds is read once it has this many rounds, or holds this many halfspaces (fewer rounds if they are large)."""

LONGEST_PAUSE = 64
"""Rounds that are nearly violated are passed over for at most this many rounds, while they bring no new halfspace."""

CROWDED = RECENT // 2
"""With more new halfspaces than this a contradiction is searched for with the witness: soon they would push out older ones."""


class Due(NamedTuple):
    """What is due after a round."""

    witness: bool
    contradiction: bool
    assumptions: bool
    ranking: bool


def due(t: int) -> Due:
    """What is due after round t.

    >>> due(8)
    Due(witness=True, contradiction=False, assumptions=False, ranking=False)
    >>> due(64)
    Due(witness=True, contradiction=True, assumptions=True, ranking=True)
    """
    power_of_four = t & (t - 1) == 0 and t.bit_length() % 2 == 1
    return Due(t % WITNESS_EVERY == 0, t % CONTRADICTION_EVERY == 0, t % assumptions_every(t) == 0, power_of_four or t % RANKING_EVERY == 0)


def assumptions_every(t: int) -> int:
    """How many rounds lie between checks of the assumptions, t rounds after the start."""
    return ASSUMPTIONS_EVERY if t < SETTLED else SETTLED_EVERY


def next_multiple(t: int, every: int) -> int:
    """The first multiple of `every` after round t."""
    return t - t % every + every


def next_check(t: int, *, unread: int, batch: int, stirred: bool, certified: bool) -> int:
    """The next round after which to look around; sooner if a batch of rounds is read.

    `unread` rounds of a batch of `batch` have been written down; `stirred`: there is something to search for now.
    """
    if stirred:
        return next_multiple(t, WITNESS_EVERY)
    ends_by_itself = batch > 0 and (t - unread) % batch == 0
    return next_multiple(t, assumptions_every(t) if not certified or ends_by_itself else CONTRADICTION_EVERY)

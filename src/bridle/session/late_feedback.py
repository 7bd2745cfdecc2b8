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
from bisect import insort
from collections.abc import Callable
from copy import copy as shallow
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias, TypeVar, cast
from zlib import crc32

import numpy as np

from bridle import records, showing, validate
from bridle.core import (
    CountsRates,
    Curvature,
    Feedback,
    InputError,
    LearnsLate,
    Policy,
    SharesCuts,
    TriesPoints,
    capability,
)
from bridle.ops import Array
from bridle.policies.registry import learns_constraints
from bridle.records import Arrays
from bridle.session.feedback import is_sound
from bridle.session.tried_points import as_asked, points_of

S_contra = TypeVar("S_contra", contravariant=True)
"""The state of a policy that is only read."""

LATE_FORMS = ("copies", "pool")
"""How rounds whose feedback comes late are played."""

ASLEEP = -1e300
"""What stands in a file for a rule that proposes nothing: files hold finite numbers."""

SHARED = 20
"""How many halfspaces the copies of a policy hold in common."""


ROUNDS = 2**31
"""A ticket's number is its round's, plus a multiple of this that is drawn anew whenever a session is made from a file or a copy: so the
numbers that were given out after a file was saved, and lost in a crash, never come again. Up to 2^53 they are whole floats, too."""

INCARNATIONS = 2**22 - 1
"""Among so many multiples it is drawn. It has no part in any result."""


def written(terms: Array) -> Array:
    """What a map is made of, as a file holds it."""
    return np.where(np.isnan(terms), ASLEEP, terms)


def unwritten(terms: Array) -> Array:
    """What `written` was given."""
    return np.where(terms == ASLEEP, np.nan, terms)


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


@dataclass(frozen=True)
class Waiting:
    """A round that waits: its decision, and the copy that played it.

    `terms` is what the map is made of through which it is played, where it is; `action` what is played in place of the decision; `made`
    what the decision was made of, where the policy must be told again.
    """

    x: Array
    copy: int
    terms: Array | None = None
    action: Array | None = None
    made: object | None = None


class UnlikeTold(NamedTuple):
    """How the costs of a copy's rounds differ from what the policy was told of their strong convexity; moduli in units of that one.

    `blank`: rounds without a cost; `struck`: those of them that violate a constraint. `lacking`: how far the moduli, the first counted as
    at least 1, add up to less than the number of costs. `short` and `share` are those of `Curvature`. Other rounds change none of it.
    """

    blank: float = 0.0
    struck: float = 0.0
    lacking: float = 0.0
    short: float = 0.0
    share: float = 1.0

    def after(self, updates: int, modulus: float, violated: bool, cost: bool) -> UnlikeTold:
        """With one more round, after `updates` of them, whose cost has this modulus; without a cost it is 0."""
        blank, costs = self.blank + (not cost), updates - self.blank + cost
        moduli = updates - self.blank - self.lacking + modulus if updates else max(modulus, 1.0)
        # The sum for each cost is least now, or after the next round that is as told, and then grows towards 1.
        least = min(moduli / costs if cost else 1.0, (moduli + 1.0) / (costs + 1.0))
        return UnlikeTold(
            blank,
            self.struck + (violated and not cost),
            costs - moduli,
            self.short + max(0.0, 1.0 - modulus),
            min(self.share, least),
        )

    def curvature(self, updates: int) -> Curvature:
        """What `updates` rounds have shown."""
        costs = updates - self.blank
        return Curvature(costs, self.struck, costs - self.lacking, self.short, self.share)


AS_TOLD = UnlikeTold()
"""Every cost so far was as strongly convex as the policy was told."""


class Copy(NamedTuple):
    """One copy of the policy: its state and next decision, how many updates it had, and how many shared halfspaces it knows of.

    `costs` says how its costs differ from what the policy was told of their curvature.
    """

    state: object
    x: Array
    updates: int
    steered: int
    costs: UnlikeTold = AS_TOLD


class Shared(NamedTuple):
    """The halfspace that a copy has found in a round."""

    number: int
    copy: int
    normal: Array
    level: float


class PendingRounds:
    """The copies of the policy and the rounds that wait for feedback.

    `begun` counts rounds begun; `lost` those whose feedback will never come. `modulus` is what the policy was told of its costs.
    """

    def __init__(
        self, record: Policy[object], start: Array, late: str, limit: int, timeout: int | None, modulus: float | None = None
    ) -> None:
        self.record, self.late, self.limit, self.timeout, self.modulus = record, late, limit, timeout, modulus
        self._sharing = capability(record, SharesCuts)
        self._remembering = capability(record, LearnsLate) if late == "pool" else None
        self.copies = [self._fresh(start)]
        self.idle = [0]  # a heap: the copies that wait for nothing, of which the first plays next
        self.waiting: dict[int, Waiting] = {}
        self.begun, self.lost = 0, 0
        self.shared: list[Shared] = []  # by the number of the round, so that it does not matter in which order they came
        self.ever_shared = 0  # halfspaces, those no longer kept too
        self._ready: Copy | None = None
        self.run = ""  # the name of the run, which its tickets carry: drawn with the first; no result depends on it
        self.offset, self.since = 0, 0  # what is added to a round's number to make its ticket's; how many were begun when it was drawn

    def reborn(self) -> None:
        """Never give out a number that an earlier session of this run may have given out, and lost."""
        self.offset, self.since = ROUNDS * (1 + secrets.randbelow(INCARNATIONS)), self.begun

    def clone(self) -> PendingRounds:
        """Pending rounds of their own that begin like these: what is done to them is not seen here."""
        other = shallow(self)
        other.copies, other.idle = self.copies.copy(), self.idle.copy()
        other.waiting, other.shared = self.waiting.copy(), self.shared.copy()
        return other

    def _decided(self, state: object) -> Array:
        return np.asarray(self.record.decide(state), dtype=float)

    def _fresh(self, start: Array) -> Copy:
        state = self.record.init(start)
        return Copy(state, self._decided(state), 0, 0)

    def begin_at(self, start: Array) -> None:
        """Start from another decision, before the first round."""
        self.copies = [self._fresh(start)]

    def tell(self, change: Callable[[object], object]) -> None:
        """Change the state of the copy that plays next, before it does."""
        at = self.front
        copy = self.take(at)
        state = change(copy.state)
        self.copies[at] = copy._replace(state=state, x=self._decided(state))
        self._ready = None

    def learned(self) -> int | None:
        """How many constraints a record must have, as the first has told a policy that left it open; None where any number will do."""
        if not learns_constraints(self.record):
            return None
        learned: Callable[[object], int | None] = self.record.learned  # type: ignore[attr-defined]
        states = (learned(copy.state) for copy in self.copies)
        return next((k for k in states if k is not None), None)

    @property
    def front(self) -> int:
        """Which copy plays next: the first that waits for nothing, else one that is still to be made."""
        return 0 if self.late == "pool" else self.idle[0] if self.idle else len(self.copies)

    @property
    def ready(self) -> Copy:
        """The copy that plays next, told of what the others have found."""
        if len(self.copies) == 1 and not self.waiting:
            return self.copies[0]
        front = self.front
        if self._ready is None and (front == len(self.copies) or self.copies[front].steered < self.ever_shared):
            copy = self._fresh(self.copies[0].x) if front == len(self.copies) else self.copies[front]
            others = [each for each in self.shared if each.copy != front]
            if others and self._sharing is not None:
                A, b = np.array([each.normal for each in others]), np.array([each.level for each in others])
                state = self._sharing.steer(copy.state, A, b)
                copy = copy._replace(state=state, x=self._decided(state))
            self._ready = copy._replace(steered=self.ever_shared)
        return self.copies[front] if self._ready is None else self._ready

    def find(self, ticket: object) -> tuple[int, Waiting]:
        """The round of a ticket, or of its number."""
        try:
            if isinstance(ticket, (bool, np.bool_)):
                raise TypeError
            number = operator.index(ticket)  # type: ignore[arg-type]
        except TypeError:
            raise validate.refused("ticket must be a ticket from ask(), or its number", ticket) from None
        if abs(number) > 2**200:  # it may be too long to be written out
            raise InputError(f"ticket {validate.show(number)} was never given out")
        waiting = self.waiting.get(number)
        if isinstance(ticket, Ticket):
            if ticket.run not in ("", self.run):
                raise InputError(f"ticket {number} is of another run ({ticket.run}): its feedback is not for this one")
            if waiting is not None and ticket.run and ticket.stamp != crc32(waiting.x.tobytes()):
                raise InputError(f"ticket {number} has another decision than the round that waits under its number: it is of another run")
        if waiting is not None:
            return number, waiting
        if number - round_of(number) not in (0, self.offset):
            raise InputError(f"ticket {number} is not known: its round is closed, or was lost before this session was loaded from a file")
        if number < ROUNDS and self.offset and number > self.since:
            raise InputError(f"ticket {number} was given out after the file was saved that this session was loaded from: its round is lost")
        closed = 1 <= round_of(number) <= self.begun and number > 0
        raise InputError(f"ticket {number} " + ("is closed: it was observed, forgotten or dropped" if closed else "was never given out"))

    def overdue(self) -> list[int]:
        """The rounds to give up so that another may begin: those that have waited too long, and the oldest of too many."""
        longest = self.begun if self.timeout is None else self.timeout
        many = len(self.waiting) + 1 - self.limit
        return [number for i, number in enumerate(self.waiting) if i < many or self.begun + 1 - round_of(number) > longest]

    def ask(self) -> Ticket:
        """Begin a round that waits."""
        at = self.front
        copy = self.take(at)
        self.begun += 1
        self.run, number = self.run or secrets.token_hex(8), self.offset + self.begun
        self.waiting[number] = Waiting(copy.x, at, made=None if self._remembering is None else self._remembering.made(copy.state))
        if self.late == "copies":
            heappop(self.idle)
            self._ready = None
        points = points_of(self.record, copy.state)
        return Ticket(number, np.array(copy.x) if points is None else as_asked(points), self.run, crc32(copy.x.tobytes()))

    def take(self, at: int) -> Copy:
        """The copy at this place, as it is to play."""
        if at == self.front:
            copy = self.ready
            if at == len(self.copies):
                self.copies.append(copy)
                heappush(self.idle, at)
            self.copies[at], self._ready = copy, None
        return self.copies[at]

    def go_on(self, state: object, x: Array, feedback: Feedback) -> int:
        """Give the copy that is ready the state that the feedback of a whole round led to; the number of the round."""
        self.begun += 1
        if len(self.copies) == 1 and not self.waiting:
            copy = self.copies[0]
            costs = copy.costs if feedback.modulus is None else self.costs(copy, feedback)
            self.copies[0] = Copy(state, x, copy.updates + 1, copy.steered, costs)
        else:
            self.feed(self.begun, self.front, state, x, feedback)
        return self.begun

    def feed(self, number: int, at: int, state: object, x: Array, feedback: Feedback) -> None:
        """Give copy `at` the state that the feedback of a round led to, and pass on the halfspace it found."""
        copy = self.take(at)
        self.copies[at] = Copy(state, x, copy.updates + 1, copy.steered, self.costs(copy, feedback))
        self._ready = None
        if self.late == "pool" or len(self.copies) == 1 or self._sharing is None:
            return
        halfspace = self._sharing.halfspace(feedback)
        if halfspace is not None:
            insort(self.shared, Shared(number, at, *halfspace), key=lambda each: each.number)
            del self.shared[:-SHARED]
            self.ever_shared += 1

    def costs(self, copy: Copy, feedback: Feedback) -> UnlikeTold:
        """How the costs of a copy, with this round, differ from what the policy was told."""
        told, modulus, before = self.modulus, feedback.modulus, copy.costs
        if told is None or modulus is None:
            return before
        cost = float(modulus) > 0.0 or bool(feedback.df.any())  # one of curvature 0 and without a slope is none
        return before.after(copy.updates, float(modulus) / told, bool(feedback.g.max() > 0.0), cost)

    def advance(self, copy: Copy, feedback: Feedback, made: object | None = None, played: Array | None = None) -> tuple[object, Array]:
        """The state and the decision after this feedback; nothing is changed. To be called where NumPy does not warn of overflow.

        `made` is what its decision was made of, where that was some time ago; `played` the values of the limits at what was played, where
        that was not the decision and the policy wants to know.
        """
        try:
            if self._remembering is not None and self.waiting:
                others = float(len(self.waiting) - (made is not None))
                made, counted = made or self._remembering.made(copy.state), () if played is None else (played,)
                state = self._remembering.update_late(copy.state, feedback, made, others, *counted)
            elif played is not None:
                state = cast(CountsRates, self.record).update_played(copy.state, feedback, played)
            else:
                state = self.record.update(copy.state, feedback)
            x = self._decided(state)
            if x.shape != copy.x.shape or not is_sound(x, state):
                raise OverflowError(f"shape {x.shape}, values {validate.show(x)}")
        except OverflowError as wrong:
            raise InputError(f"the policy's next decision cannot be used ({wrong}); nothing was changed") from None
        return state, x

    def receive(self, number: int, feedback: Feedback, played: Array | None = None) -> None:
        """Take in the feedback of a round that waits; `played` is as for `advance`."""
        waiting = self.waiting[number]
        copy = self.copies[waiting.copy]
        with np.errstate(all="ignore"):
            state, x = self.advance(copy, feedback, waiting.made, played)
        self.feed(round_of(number), waiting.copy, state, x, feedback)
        self.close(number)

    def give_up(self, number: int) -> None:
        """Count a round as lost."""
        waiting = self.waiting[number]
        tries = capability(self.record, TriesPoints)
        if tries is not None:  # what was played is known to whoever saw it, and is not played again
            copy = self.copies[waiting.copy]
            self.copies[waiting.copy] = copy._replace(state=tries.passed_over(copy.state))
        self.close(number)
        self.lost += 1

    def close(self, number: int) -> None:
        """Take a round off the list: what has not come of it will not."""
        waiting = self.waiting.pop(number)
        if self.late == "copies":
            heappush(self.idle, waiting.copy)
            self._ready = None

    # --- saving ----------------------------------------------------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """Everything but the states of the copies, as arrays."""
        numbers = [self.begun, self.lost, self.ever_shared]
        d, waiting = len(self.copies[0].x), self.waiting.items()
        saved = {
            "numbers": np.array(numbers, dtype=float),
            "copies": np.array([[copy.updates, copy.steered] for copy in self.copies], dtype=float),
            "costs": np.array([copy.costs for copy in self.copies], dtype=float),
            "shared": np.array([[each.number, each.copy, each.level, *each.normal] for each in self.shared]).reshape(-1, d + 3),
            "waiting": np.array([[number, each.copy, *each.x] for number, each in waiting], dtype=float).reshape(-1, d + 2),
        }
        for number, each in waiting:
            if each.terms is not None:
                saved[f"terms.{number}"] = written(each.terms)
            if each.action is not None:
                saved[f"action.{number}"] = each.action
            saved |= records.leaves(each.made, f"made.{number}")
        return saved

    def restore(self, saved: Arrays, states: list[object]) -> None:
        """Take back what `arrays` gave, and the states of the copies."""
        self.begun, self.lost, self.ever_shared = (int(value) for value in saved["numbers"])
        self.shared = [Shared(int(row[0]), int(row[1]), row[3:].copy(), float(row[2])) for row in saved["shared"]]
        rows = [UnlikeTold(*row) for row in saved["costs"].tolist()]
        self.copies = [
            Copy(
                state,
                self._decided(state),
                int(updates),
                int(steered),
                unlike,
            )
            for state, (updates, steered), unlike in zip(states, saved["copies"], rows, strict=True)
        ]
        for number, copy, *x in saved["waiting"].tolist():
            terms = saved.get(f"terms.{int(number)}")
            made = None
            if self._remembering is not None:
                made = records.filled(self._remembering.made(self.copies[int(copy)].state), saved, f"made.{int(number)}")
            whole = None if terms is None else unwritten(terms)
            self.waiting[int(number)] = Waiting(np.array(x), int(copy), terms=whole, action=saved.get(f"action.{int(number)}"), made=made)
        busy = {waiting.copy for waiting in self.waiting.values()}
        self.idle = [i for i in range(len(self.copies)) if i not in busy]
        self._ready = None

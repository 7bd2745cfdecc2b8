"""A session's round behind one flat array: the policy's update, the totals and the certificates' sums, compiled from their own source.

`one` is the round; every engine could run it. The numba engine traces it for a session's shapes and compiles it as a function of one array,
`memory`, in which constants, states and what is given of a round lie one after the other: numbers are written into their places, one
call, and the new states have taken the old ones' place. The session's records are made from the memory when somebody asks for them.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np

from bridle import records
from bridle.certificates import Edge, Ledger, Sums, edge, meet
from bridle.core import Feedback
from bridle.halfspaces import Place
from bridle.intake import LARGEST, floats
from bridle.ops import Array, pos
from bridle.tickets import Copy, Desk
from bridle.turns import load_engine


class Tally(NamedTuple):
    """What was observed, added up: costs, every constraint's violation, and its values, signs and all (None where they are not known)."""

    cost: Array
    hard: Array
    signed: Array | None

    def add(self, f: Array, g: Array) -> Tally:
        """The totals after one more round with as many constraints."""
        return Tally(self.cost + f, self.hard + pos(g), None if self.signed is None else self.signed + g)

    def padded(self, k: int) -> Tally:
        """The same for k constraints or more: those not seen so far have zeros."""
        more = k - len(self.hard)
        if more <= 0:
            return self
        return Tally(self.cost, np.pad(self.hard, (0, more)), None if self.signed is None else np.pad(self.signed, (0, more)))


class Fixed(NamedTuple):
    """What a round does not change: the policy, and for the certificates the domain's sizes and the action that has met everything."""

    record: Any
    place: Place | None
    witness: Array | None


class Notes(NamedTuple):
    """Of a round with one constraint: 1 where it matters, its slope, and its halfspace."""

    matters: Array
    slope: Array
    edge: Edge


class Held(NamedTuple):
    """What a round changes; `notes` is what the certificates need to know where they want more of the round than its sums."""

    state: Any
    x: Array
    played: Array  # the decision before
    tally: Tally
    sums: Sums | None
    idle: Array | None
    notes: Notes | None


class Given(NamedTuple):
    """What is observed of a round."""

    f: Array
    df: Array
    g: Array
    dg: Array


def one(fixed: Fixed, held: Held, given: Given) -> Held:
    """One round of a session: the policy's update and next decision, the totals, the certificates' sums."""
    feedback = Feedback(held.x, *given)
    state = fixed.record.update(held.state, feedback)
    sums, idle, notes = held.sums, held.idle, held.notes
    if sums is not None:
        assert fixed.place is not None
        assert idle is not None
        idle = idle - 1.0
        sums, matters, slope = meet(sums, fixed.place, feedback, idle, fixed.witness)
        notes = Notes(matters * 1.0, slope, edge(sums, fixed.place, feedback, slope))
    return Held(state, fixed.record.decide(state), held.x, held.tally.add(given.f, given.g), sums, idle, notes)


def engine() -> Any:
    """The module that compiles; where it cannot be had, the error says what to install."""
    load_engine("numba")
    return importlib.import_module("bridle.engines.numba")


class Compiled:
    """The memory of a session's rounds with k constraints, and the records it was last equal to.

    While `ahead` is 0 the records say how things stand; else the memory does, which is so many rounds ahead of them.
    """

    def __init__(self, desk: Desk, ledger: Ledger | None, tally: Tally, k: int) -> None:
        self.desk, self.ledger, self.k = desk, ledger, k
        copy, d = desk.copies[0], len(desk.copies[0].x)
        self.own = ledger if k == 1 else None  # the sums of rounds with several constraints are the ledger's own work
        own = self.own is not None
        place = self.own.place._replace(domain=None, box=None) if self.own is not None else None
        fixed = Fixed(desk.record, place, np.full(d, np.nan) if own else None)
        # The totals may be of more constraints than there is room for: then nothing will be played here (`fits`).
        room = Tally(0.0, np.zeros(k), None if tally.signed is None else np.zeros(k))
        self.held = self._held(copy, room)
        given = Given(0.0, np.zeros(d), np.zeros(k), np.zeros((k, d)))
        self.run = engine().step(one, fixed, self.held, given, LARGEST)
        sizes = [sum(np.size(leaf) for leaf in records.leaves(part).values()) for part in (fixed, self.held, given)]
        self.begin = sizes[0]
        self.memory = np.zeros(sum(sizes) + sizes[1])
        self._write(0, fixed)
        self.numbers: Any = self.memory.data  # single numbers come and go faster this way
        self.at_f, self.at_g = sizes[0] + sizes[1], sizes[0] + sizes[1] + 1 + d  # as they follow each other in Given
        view = self._views(fixed, self.held, given)
        self.x, self.played, self.cost, self.hard = view["x"], view["played"], view["tally.cost"], view["tally.hard"]
        self.f, self.df, self.g, self.dg = (view[name] for name in Given._fields)
        if self.own is not None:
            self.witness, self.idle, self.scale = view["witness"], view["idle"], view["sums.scale"]
            self.matters, self.slope = view["notes.matters"], view["notes.slope"]
            self.edge = tuple(view[f"notes.edge.{name}"] for name in Edge._fields)
        self.row, self.one, self.nothing = self.dg[0], (d,), np.zeros(d)
        self.copy: Copy | None = None
        self.tally, self.sums = tally, self.held.sums
        self.seen: np.ndarray | None = None
        self.ahead = 0

    def _held(self, copy: Copy, tally: Tally) -> Held:
        own = self.own
        certified = (None, None, None) if own is None else (own.sums, float(own.idle), Notes(0.0, 0.0, Edge(copy.x, 0.0, 0.0)))
        return Held(copy.state, copy.x, copy.x, tally.padded(self.k), *certified)

    def _write(self, begin: int, part: Any) -> None:
        for leaf in records.leaves(part).values():
            size = int(np.size(leaf))
            self.memory[begin : begin + size] = leaf if np.ndim(leaf) < 2 else np.ravel(leaf)
            begin += size

    def _views(self, *parts: Any) -> dict[str, np.ndarray]:
        """Where in the memory every leaf is, under the last part that has its name; a scalar as an array without axes."""
        begin, found = 0, {}
        for part in parts:
            for name, leaf in records.leaves(part).items():
                end = begin + int(np.size(leaf))
                found[name] = self.memory[begin:end].reshape(np.shape(leaf))
                begin = end
        return found

    def fits(self, tally: Tally) -> bool:
        """Whether the next round can be played here; the memory is then as the records are."""
        desk, own = self.desk, self.own
        if len(desk.copies) > 1 or desk.waiting or len(tally.hard) > self.k:
            return False
        copy = desk.copies[0]
        if copy is not self.copy or tally is not self.tally or (own is not None and own.sums is not self.sums):
            self.held = self._held(copy, tally)
            self._write(self.begin, self.held)
            self.copy, self.tally, self.sums = copy, tally, self.held.sums
        if own is not None:
            self.idle[()] = own.idle
        return True

    def step(self) -> bool:
        """Play the round that was put down; whether that went well. Where it did not, nothing has changed."""
        own = self.own
        if own is not None and own.witness is not self.seen:
            self.seen = own.witness
            self.witness[:] = np.nan if self.seen is None else self.seen  # nothing is ever beyond NaN
        if self.run(self.memory):
            return False
        self.ahead += 1
        if self.ledger is not None:
            self.certify(self.ledger)
        return True

    def put(self, f: Any, df: Any, g: Any, dg: Any) -> bool:
        """Write down what is given, where it comes as floats and arrays of floats, or not at all; whether it did.

        The numbers themselves are looked at by the compiled code.
        """
        if df is None and isinstance(f, float) and f == 0.0:
            df = self.nothing
        if g is None and dg is None and self.k == 1:
            g, dg = 0.0, self.nothing
        if floats(self.one, f, df, g, dg) != self.k:
            return False
        if dg.ndim == 2:
            self.dg[:] = dg
        else:
            self.row[:] = dg
        self.df[:], self.numbers[self.at_f] = df, f
        if isinstance(g, float):
            self.numbers[self.at_g] = g
        else:
            self.g[:] = g
        return True

    def feedback(self) -> Feedback:
        """What was given of the round just played; its arrays are the memory's own, good until the next round."""
        return Feedback(self.played, self.numbers[self.at_f], self.df, self.g, self.dg)

    def certify(self, ledger: Ledger) -> None:
        """Let the ledger have what it wants of the round just played."""
        if self.own is None:
            ledger.take(self.feedback(), self.desk.begun + self.ahead)
            return
        if (size := abs(self.numbers[self.at_g])) > ledger.largest:
            ledger.largest = size
        if self.matters:
            ledger.idle = int(self.idle)
            normal, level, far = self.edge
            found = Edge(normal, float(level), float(far))
            ledger.keep(self.feedback(), self.desk.begun + self.ahead, float(self.slope), float(self.scale), found)
            self.idle[()] = ledger.idle

    def settle(self) -> Tally:
        """The records as the memory has them; the desk and the ledger get theirs."""
        block, at = self.memory[self.begin : self.at_f].copy(), 0  # the arrays of the records are parts of it
        numbers = block.data

        def home(leaf: Any) -> Any:
            nonlocal at
            begin = at
            if isinstance(leaf, np.ndarray) and leaf.ndim:
                at += leaf.size
                return block[begin:at] if leaf.ndim == 1 else block[begin:at].reshape(leaf.shape)
            at += 1
            return numbers[begin]

        self.held = held = records.transform(home, self.held)
        desk, own, old = self.desk, self.own, self.desk.copies[0]
        self.copy = desk.copies[0] = Copy(held.state, held.x, old.updates + self.ahead, old.steered)
        desk.begun += self.ahead
        if own is not None:
            self.sums = own.sums = held.sums
            own.idle = int(held.idle)
        self.tally, self.ahead = held.tally, 0
        return self.tally

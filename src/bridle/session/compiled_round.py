"""A session's round behind one flat array: the policy's update and the totals, compiled from their own source.

`one` is the round; every engine could run it. The numba engine traces it for a session's shapes and compiles it as a function of one array,
the memory, in which constants, states and what is given of a round lie one after the other: numbers are written into their places, one
call, and the new states have taken the old ones' place. The session's records are made from the memory when somebody asks for them. For
the certificates the same call writes the round down; batches of rounds are then read in compiled code too (`Reader`).
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from bridle import engines, records
from bridle.core import Feedback
from bridle.ops import Array, pos
from bridle.session.batch_sums import Counted, Found, Frame, length, onward, unread
from bridle.session.feedback import LARGEST, floats
from bridle.session.late_feedback import Copy, Desk
from bridle.session.ledger import Ledger


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


class Held(NamedTuple):
    """What a round changes."""

    state: Any
    x: Array
    played: Array  # the decision before
    tally: Tally


class Given(NamedTuple):
    """What is observed of a round."""

    f: Array
    df: Array
    g: Array
    dg: Array


def one(record: Any, held: Held, given: Given) -> Held:
    """One round of a session: the policy's update and next decision, and the totals."""
    state = record.update(held.state, Feedback(held.x, *given))
    return Held(state, record.decide(state), held.x, held.tally.add(given.f, given.g))


def engine() -> Any:
    """The module that compiles; where it cannot be had, the error says what to install."""
    return engines.load("numba")


class Memory:
    """A compiled function ``states = one(constants, states, given)`` and the flat array it works on, with a view for every leaf."""

    def __init__(
        self, one: Any, constants: Any, states: Any, given: Any, largest: float = inf, ring: tuple[int, tuple[str, ...]] | None = None
    ) -> None:
        leaves = {part: records.leaves(record) for part, record in (("constants", constants), ("states", states), ("given", given))}
        sizes = {part: sum(int(np.size(leaf)) for leaf in found.values()) for part, found in leaves.items()}
        self.begin, self.end = sizes["constants"], sizes["constants"] + sizes["states"]
        begin, self.views = 0, {}
        places = {}
        for part, found in leaves.items():
            for name, leaf in found.items():
                places[f"{part}.{name}"] = (begin, begin + int(np.size(leaf)), np.shape(leaf))
                begin += int(np.size(leaf))
        begin += sizes["states"]  # room for the new ones
        kept = () if ring is None else tuple(places[name][:2] for name in ring[1])
        self.run, size = engine().compile_step(one, constants, states, given, largest, None if ring is None else (ring[0], kept))
        wide = sum(end - begin for begin, end in kept)
        self.array = np.zeros(size)
        self.numbers: Any = self.array.data  # single numbers come and go faster this way
        self.views = {name: self.array[begin:end].reshape(shape) for name, (begin, end, shape) in places.items()}
        self.cursor = begin
        self.ring = None if ring is None else self.array[begin + 1 : begin + 1 + ring[0] * wide].reshape(ring[0], wide)
        self.write(0, constants)

    def write(self, begin: int, part: Any) -> None:
        """Put the leaves of a record down from here on."""
        for leaf in records.leaves(part).values():
            size = int(np.size(leaf))
            self.array[begin : begin + size] = leaf if np.ndim(leaf) < 2 else np.ravel(leaf)
            begin += size

    def record(self, build: Any, size: int) -> Any:
        """The record that the states begin with, as `records.unflatten` builds it."""
        block = self.array[self.begin : self.begin + size].copy()
        return build(block, block.data)


class Reader:
    """Reads full batches of rounds with k constraints for a ledger, compiled; what it counts stays in its memory until somebody asks."""

    def __init__(self, frame: Frame, k: int, rows: np.ndarray) -> None:
        like = unread(len(frame.witness), k, len(frame.levels))
        self.memory = memory = Memory(onward, frame, like, rows)
        self.given, self.witness, self.near = (memory.views[name] for name in ("given.", "constants.witness", "constants.near"))
        self.found = Found(*(memory.views[f"states.found.{name}"] for name in Found._fields))
        self.build = records.unflatten(like.counted)
        self.seen: Any = self  # the witness in the memory
        self.counted: Counted | None = None  # what the memory was last equal to
        self.ahead = False

    def __call__(self, rows: np.ndarray, near: float, witness: np.ndarray | None, before: Counted) -> Found | None:
        """Count a batch in after `before`, unless something was counted in since; None where it is no full batch, or too large to add up.

        What is found is the memory's own, good until the next call.
        """
        if rows.shape != self.given.shape:
            return None
        memory = self.memory
        if not self.ahead and before is not self.counted:
            memory.write(memory.begin, before)
        if witness is not self.seen:
            self.witness[:], self.seen = np.nan if witness is None else witness, witness  # nothing is ever beyond NaN
        self.given[:], self.near[()] = rows, near
        if memory.run(memory.array):
            return None
        self.ahead = True
        return self.found

    def settle(self) -> Counted:
        """What was counted, as a record."""
        self.ahead, self.counted = False, self.memory.record(*self.build)
        return self.counted


class Compiled:
    """The memory of a session's rounds with k constraints, and the records it was last equal to.

    While `ahead` is 0 the records say how things stand; else the memory does, which is so many rounds ahead of them.
    """

    def __init__(self, desk: Desk, ledger: Ledger | None, tally: Tally, k: int) -> None:
        self.desk, self.ledger, self.k = desk, ledger, k
        copy, d = desk.copies[0], len(desk.copies[0].x)
        # The totals may be of more constraints than there is room for: then nothing will be played here (`fits`).
        room = Tally(0.0, np.zeros(k), None if tally.signed is None else np.zeros(k))
        held, given = Held(copy.state, copy.x, copy.x, room), Given(0.0, np.zeros(d), np.zeros(k), np.zeros((k, d)))
        ring = None if ledger is None else (length(d, k), ("states.x", "given.df", "given.g", "given.dg"))  # as `batches.parts` has them
        self.memory = memory = Memory(one, desk.record, held, given, LARGEST, ring)
        self.array, self.numbers, self.run, self.cursor = memory.array, memory.numbers, memory.run, memory.cursor
        self.at_f, self.at_g = memory.end, memory.end + 1 + d  # as they follow each other in Given
        view = memory.views
        self.x, self.played = view["states.x"], view["states.played"]
        self.cost, self.hard = view["states.tally.cost"], view["states.tally.hard"]
        self.df, self.g, self.dg = view["given.df"], view["given.g"], view["given.dg"]
        self.row, self.one, self.nothing = self.dg[0], (d,), np.zeros(d)
        self.build, self.order = records.unflatten(held), np.arange(0 if ring is None else ring[0])
        self.copy: Copy | None = None
        self.tally = tally
        self.ahead = 0
        if ledger is not None and memory.ring is not None:
            ledger.reader = Reader(ledger.frame(), k, memory.ring)  # also of batches that Python ends

    def fits(self, tally: Tally) -> bool:
        """Whether the next round can be played here; the memory is then as the records are."""
        desk, ledger, memory = self.desk, self.ledger, self.memory
        if len(desk.copies) > 1 or desk.waiting or len(tally.hard) > self.k:
            return False
        if ledger is not None and ledger.open and ledger.k != self.k:
            return False  # Python ends that batch where the round turns out to be of another kind
        copy = desk.copies[0]
        if copy is not self.copy or tally is not self.tally:
            memory.write(memory.begin, Held(copy.state, copy.x, copy.x, tally.padded(self.k)))
            self.copy, self.tally = copy, tally
        if ledger is not None:
            if ledger.rows is not memory.ring:
                assert memory.ring is not None
                ledger.begin(self.k, memory.ring)
            self.resume()
        return True

    def play(self, f: Any, df: Any, g: Any, dg: Any) -> int:
        """Play a round with what is given: 1 where that went well, 2 where there is something to look at now.

        Nothing has changed where it is 0, since the numbers will not do or Python is to cope with what comes of them, or -1, since they do
        not come as floats and arrays of floats (or not at all). The numbers themselves are looked at by the compiled code.
        """
        if floats(self.one, f, df, g, dg) != self.k:
            if df is None and isinstance(f, float) and f == 0.0:
                df = self.nothing
            if g is None and dg is None and self.k == 1:
                g, dg = 0.0, self.nothing
            if floats(self.one, f, df, g, dg) != self.k:
                return -1
        numbers = self.numbers
        if isinstance(g, float):
            numbers[self.at_g] = g
        else:
            self.g[...] = g
        if dg.ndim == 1:
            self.row[...] = dg
        else:
            self.dg[...] = dg
        self.df[...] = df
        numbers[self.at_f] = f
        answer = self.run(self.array)
        if answer > 0:
            return 0
        self.ahead += 1
        if answer == 0:
            return 1
        self.note()
        if self.ledger is None:
            return 1
        try:
            self.ledger.close()  # its batch is full
        finally:  # where that is broken off, no round may be read twice
            self.resume()
        return 2 if self.ledger.stirred else 1

    def note(self) -> None:
        """Tell the ledger which rounds are written down."""
        ledger = self.ledger
        if ledger is not None:
            old, new = ledger.open, int(self.numbers[self.cursor])
            if new > old:
                ledger.numbers[old:new] = self.order[old:new] + (self.desk.begun + self.ahead - new + 1)
                ledger.open = new

    def resume(self) -> None:
        """Go on writing down where the ledger stands."""
        if self.ledger is not None:
            self.numbers[self.cursor] = self.ledger.open

    def feedback(self) -> Feedback:
        """What was given of the round just played; its arrays are the memory's own, good until the next round."""
        return Feedback(self.played, self.numbers[self.at_f], self.df, self.g, self.dg)

    def settle(self) -> Tally:
        """The records as the memory has them; the desk and the ledger get theirs."""
        memory, desk, old = self.memory, self.desk, self.desk.copies[0]
        self.note()
        held = memory.record(*self.build)
        self.copy = desk.copies[0] = Copy(held.state, held.x, old.updates + self.ahead, old.steered)
        desk.begun += self.ahead
        self.tally, self.ahead = held.tally, 0
        return self.tally

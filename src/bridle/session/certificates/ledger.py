"""The ledger of a session: the running sums, the halfspaces kept, an action that meets them or the proof that there is none.

>>> import bridle
>>> x, df, g, dg = np.zeros(2), np.array([1.0, 0.0]), np.array([0.5]), np.array([[-1.0, 0.0]])
>>> ledger = Ledger(bridle.Ball(2), dim=2)
>>> ledger.take(bridle.Feedback(x, 0.0, df, g, dg), 1)
>>> round(ledger.complete().regret()[0], 6)  # a feasible action has u_1 >= 1/2
-0.5
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf, isfinite
from typing import TypedDict

import numpy as np

from bridle import records
from bridle.core import Domain, Feedback
from bridle.ops import Array, Scalar
from bridle.records import Arrays
from bridle.session.certificates.batches import (
    BatchesRead,
    BatchFindings,
    BatchMemory,
    BatchReader,
    Counted,
    CurvedSums,
    Frame,
    FullBatch,
    Parked,
    length,
    nothing,
    parts,
    read,
    width,
)
from bridle.session.certificates.certificate import Conflict, contradiction_alone, regret_bound, regret_of_any, slack
from bridle.session.certificates.clocks import BATCH_ROUNDS, LONGEST_PAUSE
from bridle.session.certificates.feasibility import NEAR, TOLERANCE, TOUCHING, KeptHalfspaces, calls_solver, centered, lower, project_onto
from bridle.session.certificates.search import (
    LOOK,
    Reduction,
    Search,
    Work,
    advance,
    begin,
    reduce,
    reducing,
    restored_reduction,
    restored_search,
)
from bridle.storage import Facts

LEVELS = tuple(10.0**e for e in range(-6, 4))
"""Violations above each of these are counted, unless the caller names others."""

FAILURES = (ArithmeticError, RuntimeError, ValueError, np.linalg.LinAlgError)
"""What a solver, the domain's or this library's, may fail with: that costs a proof, never a round."""


class LedgerFacts(TypedDict):
    """What a save file's header holds of a ledger."""

    levels: Sequence[float]
    tolerance: float
    largest: float
    idle: list[int]
    sure: bool
    told: bool
    between: list[int]
    conflict: Facts | None


class Ledger:
    """The certificates' own memory of a run.

    `witness`: an action that met every kept halfspace at the last search, or None. `sure`: whether that search succeeded. `conflict`: the
    proof that no action meets them all, after which no halfspace is kept. `told`: whether a look has seen that proof. `since`: how many
    rounds came before the first one in the sums. A `reader` reads full batches faster than NumPy does. `searching` is a search for such a
    proof that goes on, `reduction` a proof that is still made smaller: a look after a round takes either only as far as `LOOK` allows.
    """

    def __init__(
        self,
        domain: Domain | None,
        dim: int,
        levels: Sequence[float] = LEVELS,
        tolerance: float = TOLERANCE,
        reader: BatchReader | None = None,
    ) -> None:
        self.levels, self.tolerance = tuple(levels), tolerance
        self._batches = BatchesRead(nothing(dim, len(self.levels)), 0, 0)
        self.halfspaces = KeptHalfspaces(dim)
        self.domain = centered(domain, dim, tolerance)
        if calls_solver(domain):
            with suppress(*FAILURES):
                self.domain = self.domain.boxed()  # that many programs must not come in a round
        self.patience = 1  # for how many rounds to pass over those nearly violated the next time
        self.witness = self.domain.middle.copy() if self.domain.known else None
        self.sure = True
        self.conflict: Conflict | None = None
        self.told = False
        self.curved = CurvedSums(0.0, np.zeros(dim), 0.0)
        self.searching: Search | None = None
        self.reduction: Reduction | None = None
        # The open batch: its rounds' rows and their columns, the numbers of the rounds, how many there are, with how many constraints.
        self.rows, self.numbers, self.open, self.k = np.zeros((0, 0)), np.zeros(0, dtype=int), 0, 0
        self.moduli = np.zeros(0)  # of its costs, 0 where a round was not said to have one
        self.closed = 0  # how many rows had the batch that was read last
        self.columns: tuple[Array, ...] | None = None
        self._reader = reader

    def clone(self) -> Ledger:
        """A ledger of its own that begins like this one: what it does is not seen here, but for rows that this one does not count."""
        other = object.__new__(type(self))
        other.__dict__ = self.__dict__.copy()
        other.halfspaces = self.halfspaces.shared()
        return other

    def read_with(self, reader: BatchReader | None) -> None:
        """Read full batches with this reader from now on: it is made for as many constraints as the first round turns out to have."""
        self._batches = self._batches._replace(counted=self.counted)  # what another reader has counted
        self._reader = reader

    @property
    def reader(self) -> BatchReader | None:
        """What reads full batches faster."""
        return self._reader

    @property
    def counted(self) -> Counted:
        """What was added up of all observed rounds but those of the open batch."""
        counted, idle, rounds, parked = self._batches
        if counted.__class__ is not Counted:
            counted = counted.settle()  # type: ignore[union-attr]
            self._batches = BatchesRead(counted, idle, rounds, parked)
        return counted

    @property
    def idle(self) -> int:
        """For how many rounds to pass over those that are nearly violated."""
        return self._batches.idle

    @property
    def parked(self) -> tuple[Parked, ...]:
        """Halfspaces that wait to be kept."""
        return self._batches.parked

    @property
    def waiting(self) -> int:
        """How many they are."""
        return sum(len(each.rounds) for each in self._batches.parked)

    @property
    def rounds_read(self) -> int:
        """How many rounds were read in batches."""
        return self._batches.rounds

    @property
    def largest(self) -> float:
        """The largest size of a constraint value among these."""
        return float(self.counted.largest)

    def take(self, feedback: Feedback, t: int) -> None:
        """Take in what was observed of round t."""
        if not self.fits(len(feedback.g)):
            self.begin(len(feedback.g))
        self.write(self.open, feedback, t)
        self.open += 1
        if self.open == len(self.rows):
            self.close()

    def fits(self, k: int) -> bool:
        """Whether a round with k constraints can be written down in the open batch."""
        return k == self.k and self.columns is not None

    def write(self, at: int, feedback: Feedback, t: int) -> None:
        """Write down what was observed of round t, in row `at` of the open batch; it counts once `open` is beyond that row."""
        assert self.columns is not None
        x, df, g, dg = self.columns
        x[at], df[at], g[at], dg[at], self.numbers[at] = feedback.x, feedback.df, feedback.g, feedback.dg, t
        self.moduli[at] = feedback.modulus or 0.0

    def begin(self, k: int, rows: Array | None = None) -> None:
        """Begin a batch of rounds with k constraints, in `rows` where they are given; an open batch of as many goes on there."""
        if k != self.k:
            self.close()
        dim = len(self.domain.middle)
        rows = np.empty((length(dim, k), width(dim, k))) if rows is None else rows
        numbers, moduli, n = np.zeros(len(rows), dtype=int), np.zeros(len(rows)), self.open
        if n:
            rows[:n], numbers[:n], moduli[:n] = self.rows[:n], self.numbers[:n], self.moduli[:n]
        self.k, self.rows, self.numbers, self.moduli, self.columns, self.closed = k, rows, numbers, moduli, parts(rows, dim), 0

    def pass_over(self, note: Callable[[], None]) -> tuple[bool, FullBatch | None]:
        """Read the open batch, which is full; if there is nothing in it to keep at once, that is all, and it is done by one assignment.

        Else nothing is changed, and the batch as it was read is for `close`. `note` writes down the rows' rounds.
        """
        assert self._reader is not None
        counted, idle, rounds, parked = self._batches
        memory = self._reader.read(self.rows, self.near, self.witness, counted)
        if memory is None:
            return False, None
        findings = memory.findings
        keeps = self.conflict is None and (findings.proof or np.count_nonzero(findings.chosen))
        if keeps or np.count_nonzero(self.moduli):
            note()
            found = self._worth_keeping(findings)
            parked = parked if found is None else (*parked, found)
            if (keeps and (findings.proof or self._urgent(findings, parked))) or np.count_nonzero(self.moduli):
                return False, FullBatch(memory, found)
        self.closed = len(self.rows)
        self._batches = BatchesRead(memory, idle - len(self.rows), rounds + len(self.rows), parked)
        return True, None

    def close(self, read: FullBatch | None = None) -> None:
        """Read the open batch, unless it is given as it was `read`."""
        n = self.open
        if not n:
            return
        rows, moduli, self.closed = self.rows[:n], self.moduli[:n], n
        if read is None:
            counted, findings = self._read(rows)
            found = self._worth_keeping(findings)
        else:
            (counted, found), findings = read, read.memory.findings
        if np.count_nonzero(moduli):
            with np.errstate(all="ignore"):
                self.curved = self.curved.add(moduli, rows[:, : len(self.domain.middle)] - self.domain.middle)
        _, idle, rounds, parked = self._batches
        self._batches = BatchesRead(counted, idle - n, rounds + n, parked if found is None else (*parked, found))
        self.open = 0
        if found is not None and self._urgent(findings, self.parked):
            self._keep_parked(bool(findings.ruled) or not self.sure)
        for i in np.flatnonzero(findings.alone).tolist() if findings.proof and self.conflict is None else ():
            _, _, values, gradients = parts(rows[i : i + 1], len(self.domain.middle))
            self.conflict = self.conflict or contradiction_alone(
                self.domain, float(findings.scales[i]), values[0], gradients[0], int(self.numbers[i])
            )

    def _worth_keeping(self, findings: BatchFindings) -> Parked | None:
        """The halfspaces of the open batch that are worth keeping, if there are any: none where the proof is there."""
        if self.conflict is not None:
            return None
        rounds, places = findings.chosen.nonzero()
        return Parked(findings.lines[rounds, places], self.numbers[rounds]) if len(rounds) else None

    def _urgent(self, findings: BatchFindings, parked: tuple[Parked, ...]) -> bool:
        """Whether to keep what waits at once. There is no hurry while the witness meets them all: then there is no contradiction."""
        return bool(findings.ruled) or not self.sure or sum(len(each.rounds) for each in parked) >= BATCH_ROUNDS

    def _keep_parked(self, ruled: bool) -> None:
        """Keep the halfspaces that wait to be kept; `ruled` says that one of them may rule the witness out."""
        if not self.parked:
            return
        lines, rounds = self.parked[0] if len(self.parked) == 1 else map(np.concatenate, zip(*self.parked, strict=True))
        self._batches, fresh = BatchesRead(self._batches.counted, self.idle, self.rounds_read), self.halfspaces.fresh
        sources = np.empty((len(rounds), 2), dtype=int)
        sources[:, 0], sources[:, 1] = rounds, lines[:, -2]
        self.halfspaces = self.halfspaces.copy()  # a clone of this ledger may hold the same
        new = self.halfspaces.extend(lines[:, :-3], lines[:, -3], sources)
        if not ruled:
            self.halfspaces.fresh = fresh
        nearly = lines[:, -1] == 0.0
        if np.count_nonzero(nearly):  # perhaps round after round: look less often while nothing new comes of it
            self.patience = 1 if new[nearly].any() else min(self.patience << int(nearly.sum()), LONGEST_PAUSE)
            self._batches = self._batches._replace(idle=self.patience)

    @property
    def recent(self) -> tuple[Array, Array, Array, Array]:
        """Decisions, gradients of the costs, constraint values and gradients of the rounds that were read last; after `close`."""
        return parts(self.rows[: self.closed], len(self.domain.middle))

    @property
    def recent_values(self) -> Array:
        """The constraint values of these rounds."""
        d = len(self.domain.middle)
        return self.rows[: self.closed, 2 * d : 2 * d + self.k]

    @property
    def stirred(self) -> bool:
        """Whether to look: new halfspaces may rule out every action, or the proof that they do is there and no look has seen it."""
        return self.halfspaces.fresh > 0 if self.conflict is None else not self.told

    @property
    def at_rest(self) -> bool:
        """Whether there is nothing that a search could change: no halfspace is kept or waits, and no round of the open batch."""
        return not (self.open or self.parked or self.halfspaces.size or self.conflict is not None)

    @property
    def near(self) -> float:
        """How far outside of a halfspace the decision must be for it to be kept; below 0 where it may be inside."""
        return (NEAR if self.idle > 0 else -TOUCHING) * self.domain.diameter

    def frame(self) -> Frame:
        """What the next batch is read with."""
        where = self.domain
        witness = np.full(len(where.middle), np.nan) if self.witness is None else self.witness  # nothing is ever beyond NaN
        return Frame(where._replace(domain=None, box=None), np.array(self.levels), witness, self.near)

    def _read(self, rows: Array) -> tuple[Counted | BatchMemory, BatchFindings]:
        """What is counted with the rounds of a batch, and what is found in them."""
        memory = None if self._reader is None else self._reader.read(rows, self.near, self.witness, self._batches.counted)
        if memory is not None:
            return memory, memory.findings
        with np.errstate(all="ignore"):
            counted, findings = read(self.frame(), self.counted, rows)
        return records.transform(_as_float, counted), findings

    def complete(self) -> Ledger:
        """A ledger with every round read and every halfspace kept; this one stays as it is, so that asking changes nothing."""
        other = self.clone()
        other.close()
        other._keep_parked(False)
        return other

    @property
    def busy(self) -> bool:
        """Whether a proof is being looked for, or made smaller: then every look goes on with it."""
        return self.searching is not None or self.reduction is not None

    def repair_witness(self) -> None:
        """Move the witness onto the new halfspaces by a few projections, where that is enough and no search does it anyway."""
        if self.halfspaces.fresh and self.conflict is None and self.domain.known and self.witness is not None and not self.busy:
            self._keep_parked(False)  # what waits has been met by the old witness alone
            normals, levels = self.halfspaces.lines
            with suppress(*FAILURES):
                moved = project_onto(self.domain, normals, levels - normals.dot(self.domain.middle), self.witness, sweeps=10)
                if moved is not None:
                    self.witness, self.sure, self.halfspaces.fresh = moved, True, 0

    def search(self, now: int, *, ranking: bool) -> Conflict | None:
        """Search for a contradiction among the halfspaces in round `now`; with `ranking` also find those that the bound rests on."""
        self.close()
        if self.domain.known and (self.halfspaces.size or self.parked):
            with suppress(*FAILURES):
                if ranking:
                    self._keep_parked(False)
                    self._rank()
                if self.conflict is None and self.halfspaces.fresh and not self.busy:
                    self._begin_search()
        return self.go_on(now)

    def search_through(self, now: int) -> None:
        """Search the halfspaces to the end, which no round may be held up for: on a ledger of one's own (`complete`).

        A contradiction is then made smaller as far as one look may.
        """
        self.repair_witness()
        if self.domain.known and self.conflict is None:
            with suppress(*FAILURES):
                if self.halfspaces.fresh:
                    self._begin_search()  # also where another went on: it did not know of these
            self.go_on(now, inf)

    def go_on(self, now: int, most: float | None = None) -> Conflict | None:
        """Go on in round `now` with what is being looked for or made smaller, as far as one look may; the proof, if there is one.

        `most` is how much work may be done to find a proof, where it is not that of a look; that all violated rounds together are one is
        seen in any case, once nothing that names the rounds is being looked for.
        """
        work = Work(LOOK if most is None else most)
        if self.conflict is not None and self.conflict.rounds:
            self.searching = None  # one round has proved it by itself
        try:
            if self.busy:
                self.domain = self.domain.boxed()  # a file does not hold the box
            if self.searching is not None:
                self._search_on(self.searching, now, work)
            if self.reduction is not None:
                self._reduce_on(self.reduction, now, work if most is None else Work(LOOK))
        except FAILURES:  # a proof that was found stays as it is; halfspaces are searched again
            self.halfspaces.fresh = max(self.halfspaces.fresh, int(self.searching is not None))
            self.searching = self.reduction = None
        if not self.busy:
            self.add_up(now)
        return self.conflict

    def _begin_search(self) -> None:
        self._keep_parked(False)
        where, (normals, levels) = self.domain, self.halfspaces.lines
        sources = self.halfspaces.origins[: self.halfspaces.size].astype(float)
        self.searching = begin(where, normals, levels - normals.dot(where.middle), sources, self.witness)
        self.halfspaces.fresh, self.sure = 0, False  # the witness is out of date: whatever comes now is to be searched as well

    def _search_on(self, search: Search, now: int, work: Work) -> None:
        self.searching = search = advance(self.domain, search, work)
        if search.weights.any():  # those it rests on so far, unless others have taken their places
            there = [
                tuple(map(int, source)) == kept for source, kept in zip(search.sources.tolist(), self.halfspaces.sources, strict=False)
            ]
            self.halfspaces.tight = self.halfspaces.heaviest(search.weights * np.array(there))
        if not search.over:
            return
        self.searching, self.sure = None, search.witness is not None
        if search.witness is not None:
            self.witness = search.witness
        if search.depth > 0.0:
            self.reduction = reducing(search)
        if self.conflict is not None:
            self.witness = None

    def _reduce_on(self, found: Reduction, now: int, work: Work) -> None:
        found = reduce(self.domain, found, work)
        blamed = sorted((int(t), int(i), float(w)) for (t, i), w in zip(found.sources.tolist(), found.weights.tolist(), strict=True))
        rounds, kinds, shares = zip(*blamed, strict=True)
        self.conflict = Conflict(rounds, kinds, shares, found.depth, now if self.conflict is None else self.conflict.found)
        self.witness, self.reduction = None, None if found.over else found

    def _rank(self) -> None:
        """Find out which halfspaces the bound on regret rests on, so that they are kept."""
        if self.counted.sums.a.any():
            normals, levels = self.halfspaces.lines
            _, weights = lower(self.domain, self.counted.sums.a, normals, levels - normals.dot(self.domain.middle), programs=0)
            if weights.any():
                self.halfspaces.useful = self.halfspaces.heaviest(weights)

    def add_up(self, now: int) -> None:
        """See whether all violated rounds together, those no longer kept too, prove in round `now` that nothing is feasible."""
        if self.conflict is None and self.domain.known and self.counted.limits.weight > 0.0:
            limits = self.counted.limits
            if self.witness is not None and limits.A.dot(self.witness) <= limits.b:
                return  # it meets their sum
            with np.errstate(all="ignore"), suppress(*FAILURES):
                self._conclude(self._depth_of_sum(), now)

    def _conclude(self, margin: float, now: int) -> None:
        """Take a margin above 0 for the proof that nothing is feasible; which rounds contradict each other is not known."""
        if margin > 0.0:
            self.conflict, self.witness = Conflict((), (), (), margin, now), None

    def _depth_of_sum(self) -> float:
        """How far every action is outside the sum of all violated rounds."""
        where, limits = self.domain, self.counted.limits
        allowance = slack(where, self.counted.sums) * (limits.weight * where.reach + limits.sizes)
        return (where.least(limits.A) - (limits.b - float(limits.A.dot(where.middle))) - allowance) / limits.weight

    def met(self) -> Array | None:
        """An action that meets all the halfspaces kept, if one is known."""
        normals, levels = self.halfspaces.lines
        if self.witness is None or self.conflict is not None or not len(levels):
            return None
        over = normals.dot(self.witness) - levels
        return self.witness.copy() if over.max() <= 2.0 * NEAR * self.domain.diameter else None

    def above(self) -> tuple[tuple[float, int], ...]:
        """How many rounds had a violation above each level."""
        return tuple((level, int(self.counted.between[i + 1 :].sum())) for i, level in enumerate(self.levels))

    def regret(self, now: int = 0, *, apart: str = "") -> tuple[float | None, float | None, str]:
        """Upper bounds on the regret against every feasible action and against every action, and the reason where there is none.

        `apart` says why the constraints seen need not all hold for one action; then they are left out. What comes to light on the way, a
        proof that nothing is feasible, is kept as found in round `now`: to be called where that may change (`complete`).
        """
        if not self.domain.known:
            return None, None, "the domain does not say how low a linear function gets on it (linear_min)"
        if not apart:
            self.add_up(now)
        every, regret = inf, inf
        with np.errstate(all="ignore"), suppress(*FAILURES):
            every = regret_of_any(self.domain, self.counted.sums, self.curved)
            if self.conflict is None and not apart and isfinite(every):
                self.domain = self.domain.boxed()
                regret, margin = regret_bound(self.domain, self.counted.sums, self.curved, self.counted.limits, *self.halfspaces.lines)
                self._conclude(margin, now)
        if not isfinite(every):
            return None, None, "the domain's linear_min fails, or the numbers observed are too large to be added up"
        if apart:
            return None, every, apart
        if self.conflict is not None:
            return None, every, "no action satisfies every constraint, so there is none to compare with"
        return min(regret, every), every, ""  # where the domain fails now and then, the constraints are left out

    def behind(self) -> float:
        """The regret against the middle of the domain, by the linearised costs; `gain` is at least minus this."""
        sums = self.counted.sums
        return sums.c - float(sums.a.dot(self.domain.middle))

    def gain(self) -> float:
        """The most that any action loses against what was played, by the linearised costs: its regret is at least minus this."""
        if self.domain.known:
            with suppress(*FAILURES):
                sums = self.counted.sums
                least = self.behind() + self.domain.least(-sums.a)
                return slack(self.domain, sums) * sums.lengths * self.domain.reach - least
        return inf

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: what was compiled stays behind."""
        return {**vars(self), "_batches": self._batches._replace(counted=self.counted), "_reader": None, "columns": None}

    def saved(self) -> tuple[dict[str, Scalar], LedgerFacts]:
        """Everything, as arrays and as facts for the header of a file; `restore` takes both back."""
        arrays: dict[str, Scalar] = {
            **records.leaves((self.counted.sums, self.counted.limits)),
            **records.leaves(self.curved, "curved"),
            **{f"cuts.{name}": value for name, value in self.halfspaces.arrays().items()},
        }
        if self.open:
            arrays |= {"open.rows": self.rows[: self.open], "open.numbers": self.numbers[: self.open].astype(float)}
            arrays |= {"open.moduli": self.moduli[: self.open]}
        if self.parked:
            arrays |= {
                f"parked.{name}": np.concatenate(part) for name, part in zip(Parked._fields, zip(*self.parked, strict=True), strict=True)
            }
        if self.witness is not None:
            arrays["witness"] = self.witness
        arrays |= records.leaves(self.searching, "searching") | records.leaves(self.reduction, "reduction")
        return arrays, {
            "levels": self.levels,
            "tolerance": self.tolerance,
            "largest": self.largest,
            "idle": [self.idle, self.patience],
            "sure": self.sure,
            "told": self.told,
            "between": [int(count) for count in self.counted.between],
            "conflict": None if self.conflict is None else self.conflict._asdict(),
        }

    def restore(self, arrays: Arrays, facts: LedgerFacts, rounds: int) -> None:
        """Be as the ledger was that gave these after so many rounds."""
        sums, limits = records.filled((self.counted.sums, self.counted.limits), arrays)
        between = np.array([int(count) for count in facts["between"]], dtype=float)
        if between.shape != self.counted.between.shape:
            raise ValueError("between")
        counted = Counted(sums, limits, between, float(facts["largest"]))
        self.curved = records.filled(self.curved, arrays, "curved")
        if not (self.curved.modulus >= 0.0 and self.curved.squares >= 0.0):
            raise ValueError("curved")
        self.halfspaces.restore(records.under("cuts.", arrays))
        self.witness = arrays.get("witness")
        if self.witness is not None and self.witness.shape != sums.a.shape:
            raise ValueError("witness")
        idle, self.patience = map(int, facts["idle"])
        self._batches = BatchesRead(counted, idle, rounds - len(arrays.get("open.rows", ())))
        self.sure = bool(facts["sure"])
        self.told = bool(facts["told"])
        proof = facts["conflict"]
        if proof is not None:
            rounds_of, which, sizes, margin, found = (proof[name] for name in Conflict._fields)
            each = tuple(map(int, rounds_of)), tuple(map(int, which)), tuple(map(float, sizes))
            self.conflict = Conflict(*each, float(margin), int(found))
        self.searching = restored_search(records.under("searching.", arrays), len(sums.a))
        self.reduction = restored_reduction(records.under("reduction.", arrays), len(sums.a))
        if "parked.lines" in arrays:
            lines, numbers = arrays["parked.lines"], arrays["parked.rounds"].astype(int)
            if lines.shape != (len(numbers), len(sums.a) + 3):
                raise ValueError("parked")
            self._batches = self._batches._replace(parked=(Parked(lines, numbers),))
        if "open.rows" in arrays:
            rows, numbers = arrays["open.rows"], arrays["open.numbers"]
            self.begin((rows.shape[1] - 2 * len(sums.a)) // (len(sums.a) + 1))
            if len(rows) != len(numbers) or len(rows) >= len(self.rows) or self.k < 1:
                raise ValueError("open")
            moduli = arrays["open.moduli"]
            if moduli.shape != numbers.shape or (moduli < 0.0).any():
                raise ValueError("open.moduli")
            n = len(rows)
            self.rows[:n], self.numbers[:n], self.moduli[:n], self.open = rows, numbers.astype(int), moduli, n


def _as_float(leaf: Scalar) -> Scalar:
    """Numbers without axes as floats."""
    return leaf if leaf.__class__ is np.ndarray else float(leaf)

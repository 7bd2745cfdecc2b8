"""The ledger, step by step at numbers worked out by hand: what a batch adds, what waits, what is kept, how often, and what is searched."""

from __future__ import annotations

import copy
from math import inf
from typing import Any

import numpy as np
import pytest

import bridle
from bridle import records
from bridle.core import Feedback
from bridle.session.certificates import ledger as ledgers
from bridle.session.certificates.batches import BatchFindings, Counted, Frame, Sums, ViolatedSums, length, nothing, read, unread
from bridle.session.certificates.feasibility import centered
from bridle.session.certificates.ledger import Ledger

MIDDLE = np.array([3.0, 4.0])
LEFT, RIGHT, UP, DOWN = [-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]
PLAIN = centered(bridle.Ball(2, radius=2.0), 2, 0.0)._replace(domain=None)
"""A disk of diameter 4, with no allowance for rounding: edges are exact."""


def near(value: Any, **more: Any) -> Any:
    return pytest.approx(value, **({"rel": 1e-9, "abs": 1e-12} | more))


def disk(**more: Any) -> Ledger:
    """A ledger of the disk of radius 2 around (3, 4)."""
    return Ledger(bridle.Ball(radius=2.0, center=MIDDLE), 2, **more)


def seen(x: Any, g: Any, dg: Any, df: Any = (0.0, 0.0), modulus: float | None = None) -> Feedback:
    """A round at middle + x."""
    values, gradients = np.atleast_1d(np.asarray(g, dtype=float)), np.atleast_2d(np.asarray(dg, dtype=float))
    return Feedback(MIDDLE + np.asarray(x, dtype=float), 0.0, np.asarray(df, dtype=float), values, gradients, modulus)


def observe(ledger: Ledger, t: int, *given: Any, **more: Any) -> None:
    """One round, which is read at once."""
    ledger.take(seen(*given, **more), t)
    ledger.close()


# --- a batch ----------------------------------------------------------------------------------------------------------------------------


def batch(*rounds: tuple[Any, Any, Any, Any], before: Counted | None = None, place: Any = PLAIN, **more: Any) -> Any:
    """What comes of rounds of x, df, g and dg."""
    rows = np.array([np.concatenate([np.ravel(part) for part in each]) for each in rounds], dtype=float)
    frame = Frame(place, np.array([1.0]), np.full(2, np.nan), 0.25)._replace(**more)
    with np.errstate(all="ignore"):
        return read(frame, nothing(2, 1) if before is None else before, rows)


def test_the_longest_of_earlier_batches_stay_the_longest():
    before = Counted(
        Sums(9.0, 0.0, np.zeros(2), 0.0, 0.0, 50.0, 60.0, 70.0), ViolatedSums(np.zeros(2), 0.0, 0.0, 0.0, 0.0, 0.0), np.zeros(2), 80.0
    )  # fmt: skip
    after = batch(([0.0, 0.0], [3.0, 4.0], [-1.0], [0.0, 2.0]), before=before).counted
    assert (after.sums.cost, after.sums.constraint, after.sums.scale, after.largest) == (50.0, 60.0, 70.0, 80.0)
    larger = batch(([0.0, 0.0], [300.0, 400.0], [-900.0], [0.0, 200.0]), before=before).counted
    assert (larger.sums.cost, larger.sums.constraint, larger.sums.scale, larger.largest) == (500.0, 200.0, 900.0, 900.0)


def test_rounding_is_measured_by_the_largest_value_or_slope_times_reach():
    """The reach of the disk around the origin is 4."""
    found = batch(([0.0, 0.0], [0.0, 0.0], [-30.0], [0.0, 2.0]), ([0.0, 0.0], [0.0, 0.0], [1.0], [9.0, 0.0])).findings
    np.testing.assert_array_equal(found.scales, [30.0, 36.0])


def test_levels_on_both_sides_of_the_origin_add_up_in_size():
    """u_1 <= -1/2, at the origin, and u_1 <= 1/4, at (1, 0)."""
    limits = batch(([0.0, 0.0], [0.0, 0.0], [0.5], [1.0, 0.0]), ([1.0, 0.0], [0.0, 0.0], [1.5], [2.0, 0.0])).counted.limits
    assert (limits.b, limits.sizes, limits.weight, limits.distances) == (near(-0.25), near(0.75), 2.0, near(0.25 + 0.5625))


def test_a_round_that_no_sloped_constraint_is_outside_of_adds_no_halfspace():
    """A flat constraint is violated, and the decision is on the edge of the other."""
    limits = batch(([0.0, 0.0], [0.0, 0.0], [0.5, 0.0], [0.0, 0.0, 1.0, 0.0])).counted.limits
    assert (limits.violated, limits.weight, limits.A.tolist(), limits.b) == (1.0, 0.0, [0.0, 0.0], 0.0)


def test_what_is_just_as_near_as_may_be_is_passed_over():
    for g, kept in ((-0.25, 0.0), (-0.25 + 1e-12, 1.0)):
        assert batch(([0.0, 0.0], [0.0, 0.0], [g], [1.0, 0.0]), near=-0.25).findings.chosen[0, 0] == kept
    for out, ruled in ((1.0, 0.0), (1.001, 1.0)):  # u_1 <= 0 and a witness that is a ten millionth of the diameter outside
        found = batch(([0.0, 0.0], [0.0, 0.0], [0.0], [1.0, 0.0]), witness=np.array([out * 1e-7 * 4.0, 0.0])).findings
        assert (found.ruled, found.chosen[0, 0]) == (ruled, 0.0)


def test_a_halfspace_too_far_away_for_floats_is_not_counted():
    """1e300 over a slope of 1e-100: the other constraint, u_2 <= -1/2, is the farthest that there is a number for."""
    found = batch(([0.0, 0.0], [0.0, 0.0], [1e300, 0.5], [1e-100, 0.0, 0.0, 1.0]))
    limits = found.counted.limits
    assert (limits.A.tolist(), limits.b, limits.weight, limits.distances) == ([0.0, 1.0], -0.5, 1.0, 0.25)
    np.testing.assert_array_equal(found.findings.chosen, [[0.0, 1.0]])
    np.testing.assert_array_equal(found.findings.lines[0, 0, 2], 0.0)


def test_a_batch_of_just_three_megabytes_is_read_at_once():
    assert 16 * (3 * 8333 + 1) == 400_000
    assert (length(8333, 1), length(8334, 1)) == (16, 8)
    assert all(not np.any(leaf) for leaf in records.leaves(unread(3, 9, 4)).values())


# --- taking rounds in -------------------------------------------------------------------------------------------------------------------


def test_a_new_ledger():
    fresh = disk()
    assert (fresh.patience, fresh.idle, fresh.sure, fresh.conflict, fresh.rounds_read) == (1, 0, True, None, 0)
    assert (fresh.open, fresh.k, fresh.waiting, fresh.busy, fresh.stirred, fresh.at_rest) == (0, 0, 0, False, False, True)
    np.testing.assert_array_equal(fresh.witness, MIDDLE)
    fresh.witness[:] = 0.0
    np.testing.assert_array_equal(fresh.domain.middle, MIDDLE)
    assert fresh.domain.box is None
    assert Ledger(None, 2).witness is None
    assert fresh.levels == tuple(near(10.0**e) for e in range(-6, 4))
    walls = bridle.Polyhedron(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
    solved = Ledger(bridle.Product(walls, bridle.Ball(2)), 4)  # such a domain has its box made before the first round
    assert solved.domain.box is not None


def test_a_round_is_open_until_its_batch_is_full_or_constraints_change():
    ledger = disk()
    for t in range(1, 33):
        assert ledger.open == t - 1
        ledger.take(seen([0.0, 0.0], -1.0, RIGHT, df=[1.0, 0.0]), t)
        assert not ledger.at_rest or ledger.open == 0
    assert (ledger.open, ledger.rounds_read, ledger.counted.sums.rounds, ledger.idle) == (0, 32, 32.0, -32)
    for t in range(33, 36):
        ledger.take(seen([0.0, 0.0], -1.0, RIGHT, df=[1.0, 0.0]), t)
    assert (ledger.open, ledger.rounds_read, ledger.counted.sums.lengths) == (3, 32, 32.0)
    ledger.take(seen([0.0, 0.0], [-1.0, -7.0], [RIGHT, UP], df=[1.0, 0.0]), 36)
    assert (ledger.open, ledger.rounds_read, ledger.counted.sums.lengths, ledger.k, ledger.largest) == (1, 35, 35.0, 2, 1.0)
    whole = ledger.complete()
    assert (whole.rounds_read, whole.counted.sums.lengths, whole.largest, ledger.rounds_read) == (36, 36.0, 7.0, 35)


def test_moduli_are_added_up_from_the_middle():
    """mu y and mu |y|^2 / 2 at (1, 0) with mu = 2 and (0, 2) with mu = 1/2; a round without a modulus adds nothing."""
    ledger = disk()
    for t, (x, modulus) in enumerate(([[1.0, 0.0], 2.0], [[0.0, 2.0], 0.5], [[2.0, 0.0], None]), 1):
        ledger.take(seen(x, -1.0, RIGHT, modulus=modulus), t)
    modulus, pull, squares = ledger.complete().curved
    assert (modulus, pull.tolist(), squares) == (2.5, [2.0, 1.0], near(1.0 + 1.0))
    assert ledger.curved.modulus == 0.0  # not yet


def test_a_copy_goes_on_in_the_middle_of_a_batch():
    ledger = disk()
    for t in range(1, 6):
        ledger.take(seen([0.1 * t, 0.0], 0.2 * t, RIGHT, df=[t, 0.0]), t)
    twins = copy.deepcopy(ledger), ledger.clone()
    for other in twins:
        other.take(seen([0.0, 0.0], 0.1, UP, df=[0.0, 9.0]), 6)
        assert other.complete().counted.sums.lengths == 15.0 + 9.0
        assert other.complete().halfspaces.sources == [(5, 0), (6, 0)]
    assert (ledger.open, ledger.complete().counted.sums.lengths) == (5, 15.0)
    assert ledger.complete().halfspaces.sources == [(5, 0)]


class NumpyReader:
    """A reader of full batches as an engine is one, by `read`; `declines` leaves them to the ledger."""

    def __init__(self, ledger: Ledger, declines: bool = False) -> None:
        self.ledger, self.declines, self.settled = ledger, declines, 0

    def read(self, rows: Any, close: float, witness: Any, before: Any) -> Any:
        if self.declines:
            return None
        counted = before if isinstance(before, Counted) else before.settle()
        frame = self.ledger.frame()._replace(near=close)
        with np.errstate(all="ignore"):
            reading = read(frame, counted, rows)
        reader = self

        class Memory:
            findings: BatchFindings = reading.findings

            def settle(self) -> Counted:
                reader.settled += 1
                return reading.counted

        return Memory()


@pytest.mark.parametrize("declines", [False, True])
def test_a_reader_changes_nothing(declines):
    plain, read_for = disk(), disk()
    reader = NumpyReader(read_for, declines)
    read_for.read_with(reader)
    assert read_for.reader is reader
    rng = np.random.default_rng(0)
    for t in range(1, 100):
        x, g, dg, df = 0.5 * rng.standard_normal(2), 0.3 * rng.standard_normal(), rng.standard_normal(2), rng.standard_normal(2)
        for ledger in (plain, read_for):
            ledger.take(seen(x, g, dg, df=df), t)
    for one, other in ((plain, read_for), (plain.complete(), read_for.complete())):
        for a, b in zip(records.leaves(one.counted).values(), records.leaves(other.counted).values(), strict=True):
            np.testing.assert_array_equal(a, b)
        assert (one.idle, one.patience, one.waiting, one.rounds_read) == (other.idle, other.patience, other.waiting, other.rounds_read)
        assert one.halfspaces.sources == other.halfspaces.sources
    settled = reader.settled
    assert (settled > 0) == (not declines)
    assert read_for.counted is read_for.counted  # what was settled once is kept
    assert reader.settled == settled


def full(ledger: Ledger, *given: Any, first: int = 1, **more: Any) -> Ledger:
    """The ledger with a full batch of the same round, which is not read yet."""
    ledger.read_with(NumpyReader(ledger))
    ledger.begin(1)
    for at in range(len(ledger.rows)):
        ledger.write(at, seen(*given, **more), first + at)
    ledger.open = len(ledger.rows)
    return ledger


def test_a_batch_with_nothing_to_keep_is_passed_over_in_one_step():
    notes: list[int] = []
    quiet = full(disk(), [0.0, 0.0], -1.0, RIGHT, df=[1.0, 0.0])
    assert quiet.pass_over(lambda: notes.append(1))[0] is True
    assert (quiet.rounds_read, quiet.counted.sums.lengths, quiet.idle, quiet.waiting, notes) == (32, 32.0, -32, 0, [])
    waits = full(disk(), [1.0, 0.0], 0.5, RIGHT)  # u_1 <= 1/2 from the middle, which meets it: 32 of them are too many to wait
    waits.sure = True
    done, memory = waits.pass_over(lambda: notes.append(2))
    assert (done, notes, waits.rounds_read, waits.waiting) == (False, [2], 0, 0)
    waits.close(memory)
    assert (waits.rounds_read, waits.waiting, waits.halfspaces.sources, waits.stirred) == (32, 0, [(1, 0)], False)
    curved = full(disk(), [0.0, 0.0], -1.0, RIGHT, modulus=1.0)
    assert curved.pass_over(lambda: None)[0] is False
    alone = full(disk(), [0.0, 0.0], 9.0, RIGHT)  # farther than the disk is wide
    assert alone.pass_over(lambda: None)[0] is False
    some = disk()
    some.read_with(NumpyReader(some))
    some.begin(1)
    for at in range(32):
        some.write(at, seen([1.0, 0.0], 0.5 if at == 7 else -3.0, RIGHT), 1 + at)
    some.open = 32
    assert some.pass_over(lambda: notes.append(3))[0] is True
    assert (some.waiting, some.rounds_read, notes[-1], some.halfspaces.sources) == (1, 32, 3, [])
    assert some.parked[0].rounds.tolist() == [8]
    declined = full(disk(), [0.0, 0.0], -1.0, RIGHT)
    declined.read_with(NumpyReader(declined, declines=True))
    assert declined.pass_over(lambda: None) == (False, None)


# --- what waits, and what is kept -------------------------------------------------------------------------------------------------------


def test_halfspaces_that_the_witness_meets_wait():
    ledger = disk()
    observe(ledger, 1, [1.0, 0.0], 0.5, RIGHT)
    assert (ledger.waiting, ledger.halfspaces.sources, ledger.stirred, ledger.at_rest) == (1, [], False, False)
    assert ledger.complete().halfspaces.sources == [(1, 0)]
    assert ledger.complete().halfspaces.fresh == 0
    for t in range(2, 32):
        observe(ledger, t, [1.0, 0.0], 0.5 + 0.01 * t, RIGHT)
    assert (ledger.waiting, ledger.halfspaces.sources) == (31, [])
    observe(ledger, 32, [0.0, 1.0], 0.5, UP)
    assert (ledger.waiting, ledger.halfspaces.sources, ledger.halfspaces.fresh) == (0, [(31, 0), (32, 0)], 0)
    np.testing.assert_allclose(ledger.halfspaces.lines[1], [4.0 - 0.81, 5.0 - 0.5], atol=1e-7)
    assert ledger.met() is not None


def test_a_halfspace_that_rules_the_witness_out_is_kept_at_once():
    ledger = disk()
    observe(ledger, 1, [1.0, 0.0], 0.5, RIGHT)
    observe(ledger, 2, [1.0, 0.0], 1.5, RIGHT)  # u_1 <= -1/2 from the middle
    assert (ledger.waiting, ledger.halfspaces.sources, ledger.halfspaces.fresh, ledger.stirred) == (0, [(2, 0)], 2, True)
    assert ledger.met() is None
    ledger.repair_witness()
    assert (ledger.halfspaces.fresh, ledger.stirred, ledger.sure) == (0, False, True)
    np.testing.assert_allclose(ledger.witness, MIDDLE + np.array([-0.5004, 0.0]), atol=1e-6)
    np.testing.assert_array_equal(ledger.met(), ledger.witness)
    assert ledger.met() is not ledger.witness


def test_where_no_witness_is_sure_every_halfspace_is_looked_at():
    ledger = disk()
    ledger.sure = False
    observe(ledger, 1, [1.0, 0.0], 0.5, RIGHT)
    assert (ledger.waiting, ledger.halfspaces.fresh, ledger.stirred) == (0, 1, True)


def test_the_same_near_miss_is_looked_at_less_and_less():
    """Inside by 0.02, half a hundredth of the diameter: kept when it is new, then passed over for 2, 4, 8, ... rounds, 64 at the most."""
    ledger, t, pauses = disk(), 0, []
    for _ in range(9):
        ledger.sure = False  # so that it is kept at once
        t += 1
        observe(ledger, t, [0.0, 0.0], -0.02, RIGHT)
        pauses.append((ledger.patience, ledger.idle))
        while ledger.idle > 0:
            assert ledger.near == near(1e-7 * 4.0)
            t += 1
            observe(ledger, t, [0.0, 0.0], -0.02, RIGHT)  # nobody looks
        assert ledger.near == near(-1e-2 * 4.0)
    assert pauses == [(p, p) for p in (1, 2, 4, 8, 16, 32, 64, 64, 64)]
    assert ledger.halfspaces.sources == [(1, 0)]
    t += 1
    observe(ledger, t, [0.0, 0.0], -0.02, UP)  # a new one
    assert (ledger.patience, ledger.idle) == (1, 1)
    assert ledger.halfspaces.sources == [(1, 0), (t, 0)]
    observe(ledger, t + 1, [0.0, 0.0], -0.02, UP)
    for number in (t + 2, t + 3):  # two at once double the pause twice; a violation alone has no say in it
        ledger.take(seen([0.0, 0.0], -0.02, UP), number)
    ledger.sure = False
    ledger.close()
    assert (ledger.patience, ledger.idle) == (4, 4)
    observe(ledger, t + 4, [0.0, 0.0], 0.5, DOWN)
    assert (ledger.patience, ledger.idle) == (4, 3)


def test_the_witness_may_be_outside_by_two_ten_millionths_of_the_diameter():
    ledger = disk()
    observe(ledger, 1, [1.0, 0.0], 1.0, RIGHT)
    ledger = ledger.complete()
    level = float(ledger.halfspaces.lines[1][0])
    for out, met in ((1.9, True), (2.1, False)):
        ledger.witness = np.array([level + out * 1e-7 * 4.0, 4.0])
        assert (ledger.met() is not None) is met
    ledger.witness = None
    assert ledger.met() is None
    assert disk().met() is None  # nothing is kept


# --- searches ---------------------------------------------------------------------------------------------------------------------------


def contradiction(ledger: Ledger, first: int = 1, level: float = 0.5) -> None:
    """u_1 <= -level and u_1 >= level from the middle."""
    observe(ledger, first, [0.0, 0.0], level, RIGHT)
    observe(ledger, first + 1, [0.0, 0.0], level, LEFT)


def test_a_contradiction_is_found_and_named():
    ledger = disk()
    observe(ledger, 1, [0.0, 0.0], 0.1, UP)
    contradiction(ledger, 5)
    found = ledger.search(8, ranking=False)
    assert found is not None
    assert (found.rounds, found.constraints, found.found) == ((5, 6), (0, 0), 8)
    assert found.weights == near((0.5, 0.5), abs=1e-6)
    assert found.margin == near(0.5, abs=1e-6)
    assert (ledger.conflict, ledger.witness, ledger.searching, ledger.reduction) == (found, None, None, None)
    assert ledger.stirred
    assert not ledger.busy
    assert ledger.met() is None
    assert ledger.search(9, ranking=False) is found
    assert ledger.regret() == (None, near(0.0, abs=1e-6), "no action satisfies every constraint, so there is none to compare with")


def test_a_search_that_finds_an_action_makes_it_the_witness():
    """u_1 <= -1/2 and u_2 <= -1/2 from the middle: a sweep is enough, for the search as for the repair."""
    for repair in (False, True):
        ledger = disk()
        observe(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
        observe(ledger, 2, [0.0, 0.0], 0.5, UP)
        if repair:
            ledger.repair_witness()
        else:
            assert ledger.search(3, ranking=False) is None
        assert (ledger.sure, ledger.halfspaces.fresh, ledger.busy) == (True, 0, False)
        np.testing.assert_allclose(ledger.witness, MIDDLE - 0.5004, atol=1e-6)


def test_a_witness_is_not_repaired_where_that_would_say_nothing():
    for change in ("conflict", "busy", "unknown", "gone", "old"):
        ledger = disk()
        observe(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
        if change == "conflict":
            ledger.conflict = ledgers.Conflict((1,), (0,), (1.0,), 1.0, 1)
        elif change == "busy":
            ledger._begin_search()
            ledger.halfspaces.fresh = 1
        elif change == "unknown":
            ledger.domain = ledger.domain._replace(domain=None)
        elif change == "gone":
            ledger.witness = None
        else:
            ledger.halfspaces.fresh = 0
        before, fresh = ledger.witness, ledger.halfspaces.fresh
        ledger.repair_witness()
        assert ledger.witness is before
        assert ledger.halfspaces.fresh == fresh
    torn = disk()
    contradiction(torn)
    torn.repair_witness()
    assert (torn.halfspaces.fresh, torn.witness.tolist()) == (2, MIDDLE.tolist())


def test_a_search_goes_on_while_new_halfspaces_come(monkeypatch):
    """What was found before may rest on halfspaces whose places others have taken: those are not protected."""
    monkeypatch.setattr(ledgers, "LOOK", 1e-9)  # one step a look
    ledger = disk()
    contradiction(ledger)
    assert ledger.search(3, ranking=False) is None
    assert (ledger.busy, ledger.halfspaces.fresh, ledger.sure) == (True, 0, False)
    observe(ledger, 4, [0.0, 0.0], 0.3, UP)
    assert ledger.halfspaces.fresh == 1
    rounds, now = [], 4
    while ledger.conflict is None:
        now += 1
        ledger.go_on(now)
        rounds.append(now)
    assert len(rounds) > 30  # 30 sweeps, two halfspaces alone, a program
    assert (ledger.conflict.rounds, ledger.conflict.found) == ((1, 2), rounds[-1])
    assert ledger.halfspaces.tight == {0, 1}
    assert ledger.witness is None


def test_only_those_that_are_still_there_are_protected(monkeypatch):
    ledger = disk()
    contradiction(ledger)
    ledger._begin_search()
    ledger.halfspaces.origins[1] = (9, 0)  # another one has taken the place
    ledger.go_on(10)
    assert ledger.halfspaces.tight == {0}
    assert ledger.conflict.rounds == (1, 2)


def test_a_solver_that_fails_costs_the_search_alone(monkeypatch):
    ledger = disk()
    observe(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
    observe(ledger, 2, [0.0, 0.0], 0.5, UP)
    monkeypatch.setattr(ledgers, "advance", lambda *given: (_ for _ in ()).throw(ValueError))
    assert ledger.search(3, ranking=False) is None
    assert (ledger.busy, ledger.halfspaces.fresh, ledger.sure) == (False, 1, False)  # they are to be searched again
    monkeypatch.undo()
    assert ledger.search(4, ranking=False) is None
    assert (ledger.halfspaces.fresh, ledger.sure) == (0, True)


def test_a_round_that_is_a_proof_by_itself_ends_the_search():
    ledger = disk()
    observe(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
    ledger._begin_search()
    observe(ledger, 2, [0.0, 0.0], 9.0, RIGHT)
    assert (ledger.conflict.rounds, ledger.conflict.margin) == ((2,), near(5.0))
    assert ledger.go_on(3) is ledger.conflict
    assert ledger.searching is None


def test_a_search_to_the_end_is_on_a_ledger_of_ones_own():
    ledger = disk()
    contradiction(ledger)
    other = ledger.complete()
    other.search_through(7)
    assert (other.conflict.rounds, other.conflict.found) == ((1, 2), 7)
    assert ledger.conflict is None
    assert not ledger.busy
    calm = disk()
    observe(calm, 1, [0.0, 0.0], 0.5, RIGHT)
    calm.search_through(2)
    assert (calm.conflict, calm.halfspaces.fresh, calm.sure) == (None, 0, True)


def test_the_halfspaces_that_a_bound_rests_on_are_protected():
    """Costs that pull along -u_1 are held by u_1 >= -1/2 alone; those that have no slope by nothing."""
    ledger = disk()
    observe(ledger, 1, [-1.0, 0.0], 0.5, LEFT, df=[5.0, 0.0])
    observe(ledger, 2, [0.0, 1.0], 0.25, UP)
    ledger = ledger.complete()
    assert ledger.search(3, ranking=False) is None
    assert ledger.halfspaces.useful == set()
    ledger.search(3, ranking=True)
    assert ledger.halfspaces.useful == {0}
    still = disk()
    observe(still, 1, [-1.0, 0.0], 0.5, LEFT)
    still.search(2, ranking=True)
    assert still.halfspaces.useful == set()


def test_all_violated_rounds_together_may_be_the_proof():
    """Of the sum alone nobody knows which rounds contradict each other; a fifth of the radius more is none."""
    ledger = disk()
    contradiction(ledger, level=0.5)
    ledger.add_up(9)
    assert ledger.conflict[:3] == ((), (), ())
    assert (ledger.conflict.margin, ledger.conflict.found, ledger.witness) == (near(0.5, abs=1e-6), 9, None)
    quiet = disk()
    quiet.add_up(9)
    observe(quiet, 1, [0.0, 0.0], 0.5, RIGHT)
    quiet.add_up(9)
    assert (quiet.conflict, quiet.witness.tolist()) == (None, MIDDLE.tolist())


def test_the_words_of_a_ledger_that_has_no_bound():
    ledger = disk()
    observe(ledger, 1, [0.0, 0.0], 0.5, RIGHT, df=[1.0, 0.0])  # u_1 <= -1/2: regret is between 1/2 and 2
    regret, every, why = ledger.complete().regret()
    assert (regret, every, why) == (near(2.0, abs=1e-6), near(2.0, abs=1e-6), "")
    assert ledger.complete().regret(apart="they move") == (None, near(2.0, abs=1e-6), "they move")
    away = disk()
    observe(away, 1, [0.0, 0.0], 0.5, LEFT, df=[1.0, 0.0])  # u_1 >= 1/2
    assert away.complete().regret()[:2] == (near(-0.5, abs=1e-6), near(2.0, abs=1e-6))
    unknown = Ledger(None, 2)
    assert unknown.regret() == (None, None, "the domain does not say how low a linear function gets on it (linear_min)")
    huge = disk()
    observe(huge, 1, [0.0, 0.0], -1.0, LEFT, df=[1.0, 0.0])
    sums = huge.counted.sums._replace(c=inf)
    huge._batches = huge._batches._replace(counted=huge.counted._replace(sums=sums))
    assert huge.regret() == (None, None, "the domain's linear_min fails, or the numbers observed are too large to be added up")


def test_rounds_above_each_level_are_counted():
    ledger = disk(levels=(0.1, 0.2, 0.4))
    for t, g in enumerate((0.05, 0.15, 0.15, 0.3, 0.5, 0.6, -1.0), 1):
        observe(ledger, t, [1.0, 0.0], g, RIGHT)
    assert ledger.above() == ((0.1, 5), (0.2, 3), (0.4, 2))
    assert ledger.counted.limits.violated == 6.0

"""When a ledger looks for a proof and when it does not: what a look reads, keeps, ranks and begins."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.session.certificates import ledger as ledgers
from bridle.session.certificates.batches import Counted, read
from bridle.session.certificates.certificate import Conflict
from bridle.session.certificates.ledger import Ledger

MIDDLE = np.array([3.0, 4.0])
LEFT, RIGHT, UP = [-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]


def take(ledger: Ledger, t: int, x: Any, g: float, dg: Any, df: Any = (0.0, 0.0)) -> None:
    """A round at middle + x with one constraint."""
    ledger.take(Feedback(MIDDLE + np.array(x), 0.0, np.array(df), np.array([g]), np.array([dg])), t)


@pytest.fixture
def ledger():
    """A ledger of the disk of radius 2 around (3, 4)."""
    return Ledger(bridle.Ball(radius=2.0, center=MIDDLE), 2)


@pytest.fixture
def begun(monkeypatch):
    """The searches that were begun: how many halfspaces each had."""
    searches: list[int] = []
    begin = ledgers.begin
    monkeypatch.setattr(ledgers, "begin", lambda where, normals, *more: searches.append(len(normals)) or begin(where, normals, *more))
    return searches


def test_a_look_reads_the_open_batch_first(ledger, begun):
    take(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
    take(ledger, 2, [0.0, 0.0], 0.5, LEFT)
    assert (ledger.open, ledger.rounds_read) == (2, 0)
    found = ledger.search(3, ranking=False)
    assert (ledger.open, ledger.rounds_read, found.rounds, begun) == (0, 2, (1, 2), [2])


def test_a_halfspace_that_waits_is_ranked_and_not_searched(ledger, begun):
    """The middle meets u_1 >= -1/2: there is nothing to be found out about it but what it is good for."""
    take(ledger, 1, [-1.0, 0.0], 0.5, LEFT, df=[5.0, 0.0])
    assert ledger.search(2, ranking=False) is None
    assert (ledger.waiting, ledger.halfspaces.useful) == (1, set())
    assert ledger.search(3, ranking=True) is None
    assert (ledger.waiting, ledger.halfspaces.useful, ledger.halfspaces.fresh, begun) == (0, {0}, 0, [])


def test_ranks_are_about_levels_from_the_middle(ledger):
    """Costs along -u_1 are held by u_1 >= -1/2; 0.6 u_1 + 0.8 u_2 >= -1 holds there by far, from the middle."""
    take(ledger, 1, [-1.0, 0.0], 0.5, LEFT, df=[5.0, 0.0])
    take(ledger, 2, [-1.2, -1.2], 0.68, [-0.6, -0.8])
    ledger.search(3, ranking=True)
    assert ledger.halfspaces.sources == [(1, 0), (2, 0)]
    assert ledger.halfspaces.useful == {0}


def test_nothing_is_searched_once_there_is_a_proof_or_while_one_is_looked_for(ledger, begun, monkeypatch):
    take(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
    take(ledger, 2, [0.0, 0.0], 0.5, LEFT)
    proof = ledger.search(3, ranking=False)
    take(ledger, 4, [0.0, 0.0], 0.5, UP)
    assert ledger.search(5, ranking=True) is proof
    assert (ledger.halfspaces.fresh, ledger.halfspaces.size) == (0, 2)  # nor kept
    assert begun == [2]
    monkeypatch.setattr(ledgers, "LOOK", 1e-9)
    other = Ledger(bridle.Ball(radius=2.0, center=MIDDLE), 2)
    take(other, 1, [0.0, 0.0], 0.5, RIGHT)
    take(other, 2, [0.0, 0.0], 0.5, LEFT)
    other.search(3, ranking=False)
    take(other, 4, [0.0, 0.0], 0.5, UP)
    other.search(5, ranking=False)
    assert begun == [2, 2]
    assert other.halfspaces.fresh == 1


def test_a_proof_that_is_there_is_not_sought_again(ledger, begun):
    """It was about all violated rounds together: which of them contradict each other is looked for in looks alone."""
    take(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
    take(ledger, 2, [0.0, 0.0], 0.5, LEFT)
    ledger.close()
    ledger.conflict = proof = Conflict((), (), (), 0.1, 2)
    ledger.search_through(3)
    assert (ledger.conflict, begun) == (proof, [])
    ledger.conflict = None
    ledger.search_through(3)
    assert (ledger.conflict.rounds, begun) == ((1, 2), [2])


def test_the_work_of_a_look_and_of_a_certificate(ledger, monkeypatch):
    """A look does 16 units of work; a certificate searches to the end, and makes its proof smaller as far as a look may."""
    asked: list[tuple[str, float]] = []
    for name in ("advance", "reduce"):
        plain = getattr(ledgers, name)
        monkeypatch.setattr(
            ledgers, name, lambda where, what, work, name=name, plain=plain: asked.append((name, work.limit)) or plain(where, what, work)
        )
    take(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
    take(ledger, 2, [0.0, 0.0], 0.5, LEFT)
    ledger.close()
    own = ledger.complete()
    ledger.search(3, ranking=False)
    assert asked == [("advance", 16.0), ("reduce", 16.0)]
    asked.clear()
    own.search_through(3)
    assert asked == [("advance", inf), ("reduce", 16.0)]


def test_a_witness_that_projections_repair_needs_no_search(ledger, begun, monkeypatch):
    """By ten sweeps at most, on what waits too: the halfspace u_2 <= 1/2 that the middle meets."""
    asked: list[tuple[int, int]] = []
    plain = ledgers.project_onto
    monkeypatch.setattr(
        ledgers, "project_onto", lambda *given, sweeps: asked.append((len(given[1]), sweeps)) or plain(*given, sweeps=sweeps)
    )
    take(ledger, 1, [0.0, 1.0], 0.5, UP)
    ledger.close()
    assert (ledger.waiting, ledger.complete().halfspaces.fresh) == (1, 0)
    take(ledger, 2, [0.0, 0.0], 0.5, RIGHT)
    ledger.sure = True
    own = ledger.complete()
    own.halfspaces.fresh = 1
    own.search_through(3)
    assert (begun, asked, own.halfspaces.fresh, own.sure) == ([], [(2, 10)], 0, True)
    assert own.witness[0] <= MIDDLE[0] - 0.5


def test_a_proof_with_rounds_ends_a_search_and_one_without_does_not(ledger, monkeypatch):
    take(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
    take(ledger, 2, [0.0, 0.0], 0.5, LEFT)
    ledger.close()
    ledger._begin_search()
    assert ledger.domain.box is None
    other = ledger.clone()
    other.conflict = proof = Conflict((2,), (0,), (1.0,), 0.1, 2)
    monkeypatch.setattr(ledgers, "advance", lambda *given: pytest.fail("a search"))
    assert other.go_on(3) is proof
    assert other.searching is None
    monkeypatch.undo()
    ledger.conflict = Conflict((), (), (), 0.1, 2)
    assert ledger.go_on(3).rounds == (1, 2)
    assert ledger.domain.box is not None  # programs begin with a box that fits


def test_a_bound_on_regret_is_sought_in_a_box_that_fits(ledger):
    take(ledger, 1, [0.0, 0.0], -1.0, RIGHT, df=[1.0, 0.0])
    ledger.close()
    assert ledger.regret(apart="they move")[1] == pytest.approx(2.0, abs=1e-6)
    assert ledger.domain.box is None  # no halfspace counts
    assert ledger.regret()[0] == pytest.approx(2.0, abs=1e-6)
    np.testing.assert_allclose(ledger.domain.box, [(-0.5, 0.5)] * 2, atol=1e-8)


def test_ranks_take_no_programs(ledger, monkeypatch):
    asked: list[int] = []
    plain = ledgers.lower
    monkeypatch.setattr(ledgers, "lower", lambda *given, programs: asked.append(programs) or plain(*given, programs=programs))
    take(ledger, 1, [-1.0, 0.0], 0.5, LEFT, df=[5.0, 0.0])
    ledger.search(2, ranking=True)
    assert asked == [0]


def test_one_round_outside_a_square_is_a_proof_by_its_sum():
    """u_1 <= -3/2 misses the square by 1/2, and is no farther away than the square is wide."""
    ledger = Ledger(bridle.Box(-1.0, 1.0, dim=2), 2)
    ledger.take(Feedback(np.zeros(2), 0.0, np.zeros(2), np.array([1.5]), np.array([RIGHT])), 1)
    ledger.close()
    assert (ledger.conflict, ledger.counted.limits.weight) == (None, 1.0)
    ledger.add_up(4)
    assert (ledger.conflict.margin, ledger.conflict.found) == (pytest.approx(0.5, abs=1e-6), 4)


def test_what_a_proof_rests_on_is_kept_and_no_more(ledger):
    take(ledger, 1, [0.0, 0.0], 0.5, RIGHT)
    take(ledger, 2, [0.0, 0.0], 0.25, UP)
    take(ledger, 3, [0.0, 0.0], 0.5, LEFT)
    assert ledger.search(4, ranking=False).rounds == (1, 3)
    assert ledger.halfspaces.tight == {0, 2}


def test_an_unknown_domain_is_not_searched(begun):
    ledger = Ledger(None, 2)
    take(ledger, 1, [0.0, 0.0], 0.5, RIGHT, df=[1.0, 0.0])
    assert ledger.search(2, ranking=True) is None
    assert begun == []
    assert not ledger.halfspaces.useful


def test_a_ledger_is_busy_and_at_rest(ledger):
    assert ledger.at_rest
    ledger.take(Feedback(MIDDLE, 0.0, np.zeros(2), np.array([1.0]), np.zeros((1, 2))), 1)
    assert not ledger.at_rest
    ledger.close()  # a constraint without a slope that is violated is a proof, and no halfspace
    assert (ledger.conflict.rounds, ledger.halfspaces.sources, ledger.waiting) == ((1,), [], 0)
    assert not ledger.at_rest
    assert not ledger.busy
    ledger.reduction = object()  # type: ignore[assignment]
    assert ledger.busy
    ledger.reduction, ledger.searching = None, object()  # type: ignore[assignment]
    assert ledger.busy


@pytest.fixture
def reads(ledger):
    """How long the batches were that a reader of full batches has read; the first is full of rounds that violate u_1 <= -1/2."""
    lengths: list[int] = []

    class Reader:
        def read(self, rows: Any, near: float, witness: Any, before: Any) -> Any:
            lengths.append(len(rows))
            counted = before if isinstance(before, Counted) else before.settle()
            reading = read(ledger.frame(), counted, rows)

            class Memory:
                findings = reading.findings

                def settle(self) -> Counted:
                    return reading.counted

            return Memory()

    ledger.read_with(Reader())
    ledger.begin(1)
    for at in range(32):
        ledger.write(at, Feedback(MIDDLE + np.array([1.0, 0.0]), 0.0, np.zeros(2), np.array([1.5]), np.array([RIGHT])), at + 1)
    ledger.open = 32
    return lengths


def test_once_there_is_a_proof_a_full_batch_is_passed_over(ledger, reads):
    ledger.conflict = Conflict((1,), (0,), (1.0,), 0.1, 1)
    assert ledger.pass_over(lambda: pytest.fail("the rounds are not needed")) == (True, None)
    assert not isinstance(ledger._batches.counted, Counted)  # it is the reader's, until another takes over
    ledger.read_with(None)
    assert isinstance(ledger._batches.counted, Counted)
    assert (ledger.counted.sums.rounds, ledger.rounds_read, ledger.waiting, reads) == (32.0, 32, 0, [32])


def test_a_batch_is_read_once(ledger, reads):
    done, memory = ledger.pass_over(lambda: None)
    assert not done
    ledger.close(memory)
    assert reads == [32]
    assert (ledger.counted.sums.rounds, ledger.halfspaces.sources) == (32.0, [(1, 0)])

"""That effort does not depend on units, that one new halfspace among old ones counts, and that a proof outlives a search."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.session import feasibility
from bridle.session.certificate import Conflict
from bridle.session.feasibility import OuterPolyhedron, centered, lower
from bridle.session.ledger import Ledger

MIDDLE = np.array([3.0, 4.0])


def programs_for(size: float, radius: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many programs bound a cost of this size on a ball of this radius, cut by four halfspaces."""
    rng, solved = np.random.default_rng(3), []
    solve = feasibility.linear_program
    with monkeypatch.context() as patch:
        patch.setattr(feasibility, "linear_program", lambda *given: solved.append(1) or solve(*given))
        for _ in range(4):
            inside, normals = 0.3 * rng.standard_normal(4), rng.standard_normal((4, 4))
            normals /= np.linalg.norm(normals, axis=1, keepdims=True)
            where = centered(bridle.Ball(4, radius=radius), 4).boxed()
            lower(where, size * rng.standard_normal(4), normals, radius * (normals @ inside + 0.05))
    return len(solved)


def test_as_many_programs_are_solved_whatever_the_units(monkeypatch):
    counts = {programs_for(size, radius, monkeypatch) for size, radius in ((1.0, 1.0), (1e8, 1.0), (1e-8, 1.0), (1.0, 1e8), (1.0, 1e-8))}
    assert len(counts) == 1
    assert 8 < counts.pop() < 40


def near_miss(ledger: Ledger, t: int, *directions: list[float]) -> None:
    """Rounds at the middle that hold by half a hundredth of the diameter, in one batch that is looked at."""
    for i, direction in enumerate(directions):
        ledger.take(Feedback(MIDDLE, 0.0, np.zeros(2), np.array([-0.02]), np.array([direction])), t + i)
    ledger.sure = False
    ledger.close()


def test_one_new_near_miss_among_old_ones_is_news():
    ledger = Ledger(bridle.Ball(radius=2.0, center=MIDDLE), 2)
    near_miss(ledger, 1, [1.0, 0.0])
    near_miss(ledger, 2)
    ledger.take(Feedback(MIDDLE, 0.0, np.zeros(2), np.array([-1.0]), np.array([[0.0, 1.0]])), 3)
    ledger.close()
    near_miss(ledger, 4, [1.0, 0.0])
    assert (ledger.patience, ledger.idle) == (2, 2)
    for t in (5, 6):
        ledger.take(Feedback(MIDDLE, 0.0, np.zeros(2), np.array([-1.0]), np.array([[0.0, 1.0]])), t)
    ledger.close()
    near_miss(ledger, 7, [1.0, 0.0], [0.0, 1.0])
    assert (ledger.patience, ledger.idle) == (1, 1)


def test_a_search_that_ends_after_a_proof_leaves_no_witness():
    """All violated rounds together were the proof, while those that are kept still have an action in common."""
    ledger = Ledger(bridle.Ball(radius=2.0, center=MIDDLE), 2)
    ledger.take(Feedback(MIDDLE, 0.0, np.zeros(2), np.array([0.5]), np.array([[1.0, 0.0]])), 1)
    ledger.close()
    ledger._begin_search()
    proof = Conflict((), (), (), 0.1, 1)
    ledger.conflict = proof
    assert ledger.go_on(2) is proof
    assert (ledger.searching, ledger.witness) == (None, None)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_answer_that_is_not_finite_is_none(bad, monkeypatch):
    answer: Any = SimpleNamespace(x=np.array([0.0, bad]), marginals=np.zeros(1))
    monkeypatch.setattr(feasibility, "linear_program", lambda *given: answer)
    outer = OuterPolyhedron(centered(bridle.Ball(2), 2))
    assert outer.solve(np.ones(2), np.ones((1, 2)), np.zeros(1)) is None

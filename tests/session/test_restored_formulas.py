"""Searches and reductions as save files hold them, what does not fit there, and the edges of a search and of what a session is charged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import bridle
from bridle import records
from bridle.core import Bound
from bridle.session.certificates.feasibility import centered, depth
from bridle.session.certificates.search import (
    PROGRAMS,
    Reduction,
    Search,
    Work,
    advance,
    begin,
    domain_work,
    reduce,
    reducing,
    restored_reduction,
    restored_search,
)
from bridle.session.proof import Proof
from helpers.inside import proved, with_totals

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")

DISK = centered(bridle.Ball(radius=2.0, center=[3.0, 4.0]), 2, 0.01)
NORMALS, LEVELS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]), np.array([-0.5, -0.5, 0.25])
SOURCES = np.array([[4.0, 0.0], [7.0, 1.0], [9.0, 0.0]])


def saved(record: Any) -> dict[str, np.ndarray]:
    """The leaves as a file gives them back."""
    return {name: np.asarray(leaf) for name, leaf in records.leaves(record).items()}


def same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    for (name, a), (_, b) in zip(records.children(one), records.children(other), strict=True):
        if records.is_record(a):
            same(a, b)
            continue
        assert isinstance(a, float) == isinstance(b, float), name
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_array_equal(a, b, err_msg=name)


def searches() -> list[Search]:
    """At its beginning with and without a point, on its way, and at its ends: a witness, a proof."""
    start = begin(DISK, NORMALS, LEVELS, SOURCES, DISK.middle)
    witness = advance(DISK, begin(DISK, NORMALS[:1], LEVELS[:1], SOURCES[:1], DISK.middle), Work())
    cut = begin(DISK, *_two(), alone=False)
    return [start, begin(DISK, NORMALS, LEVELS, SOURCES), advance(DISK, start, Work(0.05)), advance(DISK, start, Work()), witness,
            advance(DISK, cut, Work(1e-9))]  # fmt: skip


def _two() -> tuple[np.ndarray, np.ndarray]:
    angles = np.deg2rad([10.0, 130.0])
    return np.column_stack([np.cos(angles), np.sin(angles)]), np.array([-1.5, -0.8])


@pytest.mark.parametrize("which", range(6))
def test_a_search_comes_back_as_it_was(which):
    search = searches()[which]
    same(restored_search(saved(search), 2), search)
    assert restored_search({}, 2) is None


def test_the_searches_are_at_every_stage():
    start, bare, going, proof, witness, cut = searches()
    assert (start.point is not None, bare.point) == (True, None)
    assert 0.0 < going.sweeps < start.sweeps
    assert (proof.over, proof.depth > 0.0, proof.witness) == (1.0, True, None)
    assert (witness.over, witness.depth) == (1.0, 0.0)
    assert witness.witness is not None
    assert len(cut.rows) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("normals", np.zeros((3, 3))), ("normals", np.zeros((2, 2))), ("levels", np.zeros(2)), ("levels", np.zeros((3, 1))),
        ("sources", np.zeros((3, 1))), ("weights", np.zeros(4)), ("rows", np.zeros((1, 2))), ("rows", np.zeros((0, 3))),
        ("point", np.zeros(3)), ("witness", np.zeros(1)), ("depth", np.zeros(1)), ("over", np.zeros(2)), ("sweeps", np.zeros((1, 1))),
        ("weights", None), ("sources", None),
    ],
)  # fmt: skip
def test_a_search_that_does_not_fit_is_refused(name, value):
    whole = saved(searches()[0]) | {"witness": np.zeros(2)}
    assert restored_search(whole, 2) is not None
    broken = {key: part for key, part in (whole | {name: value}).items() if part is not None}
    with pytest.raises(ValueError, match="normals" if name == "levels" and value.ndim == 1 else name):  # one of two that do not fit
        restored_search(broken, 2)


def reductions() -> list[Reduction]:
    """At its beginning, in the middle of an attempt, and over."""
    normals = np.array([[1.0, 0.0], [-1.0, 0.0], [0.8, 0.6], [-0.6, 0.8]])
    levels = np.array([-0.5, -0.5, -0.4, 0.1])
    weights = np.array([0.4, 0.35, 0.15, 0.1])
    search = begin(DISK, normals, levels, np.column_stack([np.arange(4.0), np.zeros(4)]))
    search = search._replace(weights=weights, depth=depth(DISK, normals, levels, weights), over=1.0)
    whole = reducing(search)
    attempt = begin(DISK, normals[:3], levels[:3], alone=False)
    return [whole, whole._replace(without=3.0, attempt=attempt), reduce(DISK, whole, Work())]


@pytest.mark.parametrize("which", range(3))
def test_a_reduction_comes_back_as_it_was(which):
    found = reductions()[which]
    same(restored_reduction(saved(found), 2), found)
    assert restored_reduction({}, 2) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("turns", np.zeros(3)), ("weights", np.zeros((4, 1))), ("normals", np.zeros((4, 3))), ("depth", np.zeros(1)), ("turns", None),
        ("without", np.array(4.0)), ("without", np.array(-1.0)), ("without", np.zeros(1)),
    ],
)  # fmt: skip
def test_a_reduction_that_does_not_fit_is_refused(name, value):
    broken = {key: part for key, part in (saved(reductions()[1]) | {name: value}).items() if part is not None}
    with pytest.raises(ValueError, match="attempt" if name == "without" and value.ndim == 0 else name):
        restored_reduction(broken, 2)


@pytest.mark.parametrize("count", [2, 4])
def test_an_attempt_is_about_all_halfspaces_but_one(count):
    found = reductions()[1]
    other = begin(DISK, np.vstack([NORMALS, UP])[:count], np.zeros(count), alone=False)
    with pytest.raises(ValueError, match="attempt"):
        restored_reduction(saved(found._replace(attempt=other)), 2)
    for without in (0.0, 3.0):
        assert restored_reduction(saved(found._replace(without=without)), 2) is not None


UP = np.array([[0.0, -1.0]])


# --- the edges of a search --------------------------------------------------------------------------------------------------------------


def test_a_shallow_proof_by_one_halfspace_needs_no_program():
    """v_1 <= -2.5 misses the disk of radius 2 by 1/2, less the tolerance."""
    search = advance(DISK, begin(DISK, np.array([[1.0, 0.0]]), np.array([-2.5])), Work())
    assert (search.over, search.programs) == (1.0, PROGRAMS)
    assert search.depth == pytest.approx(0.5 - 0.01 * 11.5)


def test_small_domains_are_searched_too():
    where = centered(bridle.Ball(2, radius=0.1), 2)
    assert begin(where, NORMALS, 0.1 * LEVELS).programs == PROGRAMS
    assert advance(where, begin(where, NORMALS[:2], 0.1 * LEVELS[:2], alone=False), Work()).depth == pytest.approx(0.05, abs=1e-7)


def test_the_work_of_a_domain_is_that_of_its_dimensions_at_least():
    class Cube(NamedTuple):
        side: float

    assert domain_work(Cube(2.0), 90) == pytest.approx(0.01 + 90.0 / 3000.0)  # type: ignore[arg-type]


# --- what is charged, and contradicted --------------------------------------------------------------------------------------------------


def parts_of(late: str = "copies", slope: float = 0.5) -> Proof:
    """A round on the unit disk with a violation of 3/4 and no cost, after one that was dropped."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), late=late)
    session.observe(f=0.0, df=[slope, 0.0], g=-0.5, dg=[0.0, 0.25])
    session.forget(session.ask())
    ticket = session.ask()
    session.observe(g=0.75, dg=[0.0, 1.0], ticket=ticket)
    parts: Proof = proved(session).complete()
    return parts


def test_short_gradients_are_charged_as_they_are():
    assert parts_of().charge()[:2] == pytest.approx((0.5 * 2.0, 1.0 * 2.0))


def test_a_session_without_a_domain_has_no_theorem():
    parts = parts_of()
    nowhere = parts._replace(plan=parts.plan.changed(domain=None))
    assert with_totals(nowhere, [0.0], [0.0]).bound() == Bound()

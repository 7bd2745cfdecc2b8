"""What is charged for what was played in place of decisions, and how often limits were violated, at numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.core import Bound, Feedback
from bridle.policies.levels import Tally
from bridle.session.actions import scales
from bridle.session.certificates.certificate import UNMOVED, Moved, padded
from bridle.session.proof import LEANS, Proof, _more, added
from bridle.session.rates import NO_SAFE_ACTION, RateLimit, rates_of
from bridle.session.state import Memory
from helpers.inside import proved, with_totals


def seen(f: float, *g: float) -> Feedback:
    """An observation with these values; where it was made does not matter."""
    return Feedback(np.zeros(1), f, np.zeros(1), np.array(g), np.zeros((len(g), 1)))


LEVELS = np.array([0.0, 0.5, 2.0])


def test_what_each_observation_adds_to_the_charge():
    """At what was played and as read at the decision: costs 5 and 3, then 1 and 4, then 2 and 2."""
    one = UNMOVED.after(seen(5.0, 1.0, -2.0), seen(3.0, -0.5, 0.25), LEVELS, 0.0)
    assert (one.rounds, one.cost, one.violated) == (1, 2.0, 0)  # both are violated
    assert (one.hard.tolist(), one.signed.tolist()) == ([1.0, -0.25], [1.5, -2.25])
    assert one.above.tolist() == [0.0, 1.0, 0.0]  # 1 is above 1/2, and 1/4 is not
    two = one.after(seen(1.0, 3.0), seen(4.0, -1.0), LEVELS, 0.0)
    assert (two.rounds, two.cost, two.violated) == (2, -1.0, 1)
    assert (two.hard.tolist(), two.signed.tolist()) == ([4.0, -0.25], [5.5, -2.25])
    assert two.above.tolist() == [1.0, 2.0, 1.0]
    three = two.after(seen(2.0, -1.0, -1.0, -1.0), seen(2.0, -1.0, 2.5, -1.0), LEVELS, 0.0)
    assert (three.rounds, three.cost, three.violated) == (3, -1.0, 0)
    assert (three.hard.tolist(), three.signed.tolist()) == ([4.0, -2.75, 0.0], [5.5, -5.75, 0.0])
    assert three.above.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(("played", "read", "more"), [(0.2, 0.1, 1), (0.1, 0.1, 0), (0.1, 0.2, -1), (0.2, 0.3, 0), (-1.0, 0.05, 0)])
def test_values_up_to_the_floor_are_rounding(played, read, more):
    assert UNMOVED.after(seen(0.0, played), seen(0.0, read), np.zeros(0), 0.1).violated == more


def test_a_value_at_a_level_is_not_above_it():
    assert UNMOVED.after(seen(0.0, 0.5), seen(0.0, -1.0), LEVELS, 0.0).above.tolist() == [1.0, 0.0, 0.0]
    assert UNMOVED.after(seen(0.0, 0.75), seen(0.0, 0.5), LEVELS, 0.0).above.tolist() == [0.0, 1.0, 0.0]


def test_constraints_that_are_not_there_count_zero():
    assert padded(np.array([1.0, 2.0]), 4).tolist() == [1.0, 2.0, 0.0, 0.0]
    assert padded(np.array([1.0, 2.0]), 1).tolist() == [1.0, 2.0]
    same = np.array([1.0])
    assert padded(same, 1) is same
    assert added(np.array([1.0]), np.array([2.0, 3.0])).tolist() == [3.0, 3.0]
    assert added(np.array([1.0, 5.0, 7.0]), np.array([2.0])).tolist() == [3.0, 5.0, 7.0]
    assert (_more(None, 2.0), _more(np.float64(1.5), 2.0)) == (None, 3.5)


CHARGE = Moved(2, 3.0, np.array([-1.0, 0.5]), np.array([0.25, -1.0]), -1, np.array([2.0, -1.0]))


def charged_with(charge: Moved, hard: tuple[float, ...] = (0.0,), modulus: float | None = None) -> Proof:
    """What is proved where so much is charged, of a policy that was told of curvature or not."""
    proof = proved(bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2), modulus=modulus)))
    return with_totals(Proof(proof.plan, proof.state.with_slow(memory=Memory(charge)), proof.ledger), hard, hard)


def test_a_theorem_is_charged_with_the_worst_constraint():
    bound = Bound(1.0, 2.0, soft=4.0, squared=5.0, why="so")
    assert charged_with(CHARGE).bound_as_played(bound) == Bound(4.0, 2.5, soft=4.25, squared=None, why="so")
    less = CHARGE._replace(hard=np.array([-1.0]), signed=np.array([-2.0]), cost=-0.5)  # a violation that was spared is no part of a theorem
    assert charged_with(less).bound_as_played(bound) == Bound(0.5, 2.0, soft=4.0, squared=None, why="so")
    assert charged_with(less).bound_as_played(Bound()) == Bound()
    assert charged_with(UNMOVED).bound_as_played(bound) is bound
    assert charged_with(CHARGE, modulus=1.0).bound_as_played(bound) == Bound(why=LEANS)


def test_a_certificate_is_charged_figure_by_figure():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2)), levels=[0.1, 0.2])
    session.observe(f=1.0, df=[1.0, 0.0], g=0.5, dg=[0.0, 1.0])
    proof = replace(session.certificate(), regret_algorithm=7.0, balance=np.array([0.5, 1.0]))
    hard = (0.5, 0.25)
    found = charged_with(CHARGE, hard)._as_played(proof)
    assert (found.cost, found.ccv, found.violated, found.above) == (proof.cost + 3.0, 0.75, 0, ((0.1, 3), (0.2, 0)))
    for name in ("regret", "regret_any", "regret_algorithm"):
        assert getattr(found, name) == pytest.approx(getattr(proof, name) + 3.0)
    assert (found.balance.tolist(), found.moved, found.bound) == (
        [0.75, 0.0],
        CHARGE,
        charged_with(CHARGE, hard).bound_as_played(proof.bound),
    )
    none = charged_with(CHARGE, hard)._as_played(replace(proof, balance=None, regret=None))
    assert (none.balance, none.regret) == (None, None)
    curved = charged_with(CHARGE, hard, modulus=1.0)._as_played(proof)
    assert (curved.regret_algorithm, curved.regret) == (None, found.regret)
    assert charged_with(UNMOVED, hard)._as_played(proof) is proof


def test_rounding_is_a_thousandth_of_the_tolerance_beside_values_and_slopes():
    ledger: Any = SimpleNamespace(levels=(0.5, 1.0), domain=SimpleNamespace(tolerance=0.01))
    seen = Feedback(np.array([-2.0, 1.0]), 0.0, np.zeros(2), np.array([-7.0, 1.0]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    for change, scale in (
        ({}, 10.0),  # a slope of 5 at a distance of 2
        ({"g": np.array([-17.0, 1.0])}, 17.0),
        ({"x": np.array([0.5, 0.0])}, 7.0),  # a distance of 1 at least
        ({"x": np.array([0.5, 0.0]), "g": np.zeros(2)}, 5.0),
    ):
        levels, floor = scales(ledger, seen._replace(**change))
        assert (levels.tolist(), floor) == ([0.5, 1.0], pytest.approx(1e-3 * 0.01 * scale, rel=1e-12))
    levels, floor = scales(None, seen)
    assert (len(levels), floor) == (0, 0.0)


class Telling:
    """A policy whose state is its tally."""

    def tally(self, state: Tally) -> Tally:
        return state


def counts(violated: list[float], counted: list[float], most: list[float], any: bool = False, off: float = 0.0) -> Tally:
    shares = [0.1, 0.25][: len(counted)]
    return Tally(*map(np.array, (shares, violated, counted, [1.0, 2.0][: len(counted)], most, [0.0, off][-len(counted) :])), any)


def test_rates_are_added_up_over_copies():
    """Of 10 + 30 rounds 3 + 5 violated; at most 4 + 8 could. A copy without rounds could not violate anything."""
    states = [counts([3.0, 1.0], [10.0, 8.0], [4.0, 6.0]), counts([5.0, 0.0], [30.0, 2.0], [8.0, 99.0], off=0.5)]
    first, second = rates_of(Telling(), [*states, counts([0.0, 0.0], [0.0, 0.0], [7.0, 7.0])], waiting=3)
    assert first == RateLimit("limit 0", 0.1, 8.0 / 40.0, 12.0 / 40.0, 40, 3, 8, 3, True)
    assert second == RateLimit("limit 1", 0.25, 0.1, 1.0, 10, 3, 1, 6, False)  # more than 1 is not proved, and the counts do not agree
    assert (first.why, second.why) == ("", "")


def test_rates_before_the_first_round_and_without_a_safe_action():
    assert rates_of(Telling(), [counts([0.0], [0.0], [2.0])], waiting=0) == (RateLimit("the limit", 0.1, None, 1.0, 0, 0, 0, 1, True),)
    (unsafe,) = rates_of(Telling(), [counts([1.0], [4.0], [np.inf], any=True)], waiting=1)
    assert unsafe == RateLimit("any limit", 0.1, 0.25, None, 4, 1, 1, 1, True, NO_SAFE_ACTION)
    assert rates_of(object(), [None], waiting=1) == ()

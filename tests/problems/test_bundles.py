"""The combinatorial auction: its limits are those of the bundles, each answers once a period, and its optimum is a linear program's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, milp

import bridle
from bridle import records
from bridle.problems import _bundles as bundles
from helpers.pinned_streams import figures

HALLS = [{}, {"bidders": 1, "items": 1, "bundles": 1, "constraints": 3}, {"bidders": 3, "items": 3, "bundles": 7, "constraints": 4}]


def parts(problem: bridle.Problem, given: dict[str, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The limits of items, of bidders and of budgets."""
    m, n = given.get("items", 8), given.get("bidders", 6)
    A = problem.adversary.stream.A
    assert len(A) == m + 2 * n
    return A[:m], A[m : m + n], A[m + n :]


@pytest.mark.parametrize("given", HALLS, ids=str)
def test_the_limits_are_those_of_items_bidders_and_budgets(given):
    problem = bridle.problem("bundle-auctions", horizon=30, seed=3, budget=0.7, **given)
    each, value = given.get("bundles", 4), problem.adversary.stream.value
    items, owners, budgets = parts(problem, given)
    assert set(np.unique(items)) <= {0.0, 1.0}
    assert (items.sum(axis=0) >= 1.0).all(), "no bundle is empty"
    for bidder, (owner, spends) in enumerate(zip(owners, budgets, strict=True)):
        own = np.arange(each * bidder, each * (bidder + 1))
        np.testing.assert_array_equal(np.flatnonzero(owner), own)
        np.testing.assert_array_equal(owner[own], 1.0)
        dearest = value[own].max()
        assert not np.delete(spends, own).any(), "nobody pays for others"
        np.testing.assert_allclose(spends[own] * 0.7 * dearest, value[own], rtol=1e-12)
        assert len({tuple(column) for column in items[:, own].T}) == each, "no bundle twice"
    assert value.mean() == pytest.approx(1.0)


def test_a_larger_bundle_is_worth_more_than_its_parts():
    """All bundles of three items: of each bidder the value of two items is 1.2 times the sum of their values alone, and so on."""
    problem = bridle.problem("bundle-auctions", horizon=10, seed=1, bidders=3, items=3, bundles=7)
    items, value = problem.adversary.stream.A[:3], problem.adversary.stream.value
    for bidder in range(3):
        own = range(7 * bidder, 7 * bidder + 7)
        worth = {frozenset(np.flatnonzero(items[:, b])): value[b] for b in own}
        for bundle, total in worth.items():
            alone = sum(worth[frozenset([item])] for item in bundle)
            assert total == pytest.approx(alone * (1.0 + bundles.SYNERGY * (len(bundle) - 1)), rel=1e-12)


@pytest.mark.parametrize("given", HALLS, ids=str)
def test_every_limit_answers_once_a_period(given):
    problem = bridle.problem("bundle-auctions", horizon=30, seed=4, **given)
    stream, k = problem.adversary.stream, given.get("constraints", 2)
    m = len(stream.A)
    length = int(np.ceil(m / k))
    assert stream.length == length
    seen = problem.adversary.replay(0, 3 * length).constraints[0]
    np.testing.assert_array_equal(seen.b, -1.0)
    orders = []
    for period in range(3):
        rows = seen.A[period * length : (period + 1) * length].reshape(-1, stream.A.shape[1])
        which = [int(np.flatnonzero((row == stream.A).all(axis=1))[0]) for row in rows]
        twins = len(np.unique(stream.A, axis=0))  # with one bidder and one item, two of the limits are the same
        assert len(set(which[:m])) == twins
        assert which[m:] == which[: len(which) - m]
        orders.append(tuple(which))
    assert m < 4 or len(set(orders)) == 3, "each period in an order of its own"


@pytest.mark.parametrize("given", HALLS, ids=str)
def test_the_constants_of_the_auction_are_attained(given):
    problem = bridle.problem("bundle-auctions", horizon=30, seed=2, **given)
    known, stream = problem.constants, problem.adversary.stream
    rounds = problem.adversary.replay(0, 400)
    slopes = max(np.linalg.norm(rounds.cost.a, axis=1).max(), np.linalg.norm(rounds.constraints[0].A, axis=2).max())
    assert 0.85 * known["lipschitz"] <= slopes <= known["lipschitz"]
    everything = rounds.constraints[0].value(np.ones((1, problem.domain.dim)))
    assert max(1.0, everything.max()) == pytest.approx(known["bound"], rel=1e-12)
    reported = -rounds.cost.a / stream.value
    assert 0.8 <= reported.min() < 0.82
    assert 1.18 < reported.max() <= 1.2
    np.testing.assert_allclose(reported.mean(), 1.0, atol=0.03)
    np.testing.assert_array_equal(rounds.constraints[0].value(known["safe"][None]), -1.0)


@pytest.mark.parametrize("seed", range(3))
def test_without_noise_the_optimum_is_the_relaxed_allocation(seed):
    """The linear program over all limits at once; no allocation of whole bundles is worth more."""
    problem = bridle.problem("bundle-auctions", horizon=50, seed=seed, noise=0.0)
    stream, x = problem.adversary.stream, problem.constants["optimum"]
    program = linprog(-stream.value, A_ub=stream.A, b_ub=np.ones(len(stream.A)), bounds=(0.0, 1.0), method="highs")
    assert problem.constants["optimal_cost"] == pytest.approx(50 * program.fun, rel=1e-9)
    assert (stream.A @ x <= 1.0 + 1e-9).all()
    whole = milp(-stream.value, constraints=(stream.A, -np.inf, 1.0), integrality=np.ones(len(x)), bounds=(0.0, 1.0))
    assert program.fun <= whole.fun < 0.0


def test_an_optimum_is_known_only_where_every_limit_has_answered():
    """Ten rounds make a period of the default auction: in nine of them one limit or two say nothing."""
    assert "optimum" not in bridle.problem("bundle-auctions", horizon=9, noise=0.0).constants
    assert "optimum" in bridle.problem("bundle-auctions", horizon=10, noise=0.0).constants
    assert "optimum" not in bridle.problem("bundle-auctions", horizon=1000).constants


def test_the_best_allocation_in_hindsight_is_that_of_a_linear_program():
    problem = bridle.problem("bundle-auctions", horizon=120, seed=6)
    trace = bridle.play(bridle.policy("anytime", problem.domain), problem)
    rounds, A = problem.adversary.replay(0, 120), problem.adversary.stream.A
    program = linprog(rounds.cost.a.sum(axis=0), A_ub=A, b_ub=np.ones(len(A)), bounds=(0.0, 1.0), method="highs")
    assert bridle.best_action(trace).cost == pytest.approx(program.fun, rel=1e-7)


@pytest.mark.parametrize("name", ["revenue", "navigation", "bundle-auctions"])
def test_rounds_of_a_computed_stream_are_the_same_however_they_are_asked_for(name):
    adversary = bridle.problem(name, horizon=10, seed=4).adversary
    whole = records.leaves(adversary.replay(0, 130))
    n = adversary.stream.length
    for start, stop in ((0, 1), (n - 1, n + 1), (n, 2 * n), (2 * n - 1, 130), (129, 130), (50, 50)):
        for leaf, part in records.leaves(adversary.replay(start, stop)).items():
            np.testing.assert_array_equal(part, whole[leaf][start:stop])


def test_the_proposals_of_a_seed_are_answered_so():
    constants, first, later = figures("bundle-auctions", 0, 60)
    assert constants == pytest.approx([8.308704607365893, 9.0, 0.0, 1.0], rel=1e-12)
    assert first == pytest.approx([-13.239254307971, -0.139642684192, 0.721739130435], rel=1e-10)
    assert later == pytest.approx([-13.379975929731, 0.95153599739, 2.204347826087], rel=1e-10)


def test_what_an_auction_cannot_have_is_refused_at_its_edge():
    made = [{"items": 2, "bundles": 3}, {"noise": 0.99}, {"constraints": 20}, {"bidders": 3, "constraints": 14}]
    for given in made:
        assert bridle.problem("bundle-auctions", horizon=5, **given).constants["time_varying"]
    for given in ({"items": 2, "bundles": 4}, {"noise": 1.0}, {"constraints": 21}, {"bidders": 3, "constraints": 15}):
        with pytest.raises(bridle.InputError, match=list(given)[-1]):
            bridle.problem("bundle-auctions", horizon=5, **given)


def test_nobody_gets_more_than_all_of_a_bundle():
    """With room in every limit the relaxed allocation is everything, once."""
    problem = bridle.problem("bundle-auctions", horizon=10, bidders=1, items=1, bundles=1, budget=5.0, noise=0.0)
    np.testing.assert_allclose(problem.constants["optimum"], 1.0)
    np.testing.assert_array_equal(problem.domain.high, 1.0)
    assert problem.constants["modulus"] == 0.0

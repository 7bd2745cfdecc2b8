"""How far decisions move: kept on every engine, priced where a problem says so, and bounded where the policy's steps are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest

import bridle
from bridle.game.metrics import _first_squares
from bridle.game.summary import bound_curves, bounds, summary
from bridle.game.totals import accumulate, empty, moves
from bridle.learners import AdaGradSteps, adagrad_movement
from bridle.policies._steiner import steiner_distance


def along(decisions):
    return float(np.linalg.norm(np.diff(decisions, axis=0), axis=1).sum())


@pytest.mark.parametrize("engine", ["python", pytest.param("jax", marks=pytest.mark.compiles)])
def test_movement_is_the_way_from_each_decision_to_the_next(engine):
    """Over several blocks of rounds, along the curve, and of several runs."""
    problem = bridle.problem("halfspaces", horizon=2500, dim=3)
    policy = bridle.policy("adagrad", problem.domain)
    whole = bridle.play(policy, problem, keep="decisions", engine=engine)
    assert bridle.movement(whole) == pytest.approx(along(whole.decisions), rel=1e-12)
    lean = bridle.play(policy, problem, keep="movement", engine=engine)
    assert lean.decisions is None
    assert lean.costs is None
    assert bridle.movement(lean) == pytest.approx(bridle.movement(whole), rel=1e-12)
    for t, moved in zip(lean.curve.rounds.astype(int), lean.curve.moved, strict=True):
        assert moved == pytest.approx(along(whole.decisions[:t]), rel=1e-12, abs=1e-12)
    several = bridle.play(bridle.policy("adagrad", problem.domain, diameter=[0.5, 2.0]), problem, keep="movement", engine=engine)
    assert bridle.movement(several)[1] == pytest.approx(bridle.movement(lean), rel=1e-12)
    assert bridle.movement(several)[0] < 0.5 * bridle.movement(lean)


def test_what_was_not_kept_is_not_made_up():
    problem = bridle.problem("halfspaces", horizon=20, dim=2)
    trace = bridle.play(bridle.policy("adagrad", problem.domain), problem)
    assert summary(trace)["movement"] is None
    with pytest.raises(bridle.InputError, match="movement was not kept: play the game with keep='movement'"):
        bridle.movement(trace)


def test_a_price_of_moving_is_in_cost_and_regret_and_not_in_the_rounds():
    problem = bridle.problem("halfspaces", horizon=1500, dim=3)
    policy = bridle.policy("anytime", problem.domain, halfspace=False)
    free, priced = (bridle.play(policy, bridle.with_switching(problem, price), keep="decisions") for price in (0.0, 0.7))
    moved = bridle.movement(free)
    np.testing.assert_array_equal(free.decisions, priced.decisions)
    np.testing.assert_array_equal(free.costs, priced.costs)
    assert bridle.movement(priced) == moved == pytest.approx(along(free.decisions), rel=1e-12)
    assert priced.totals.cost == pytest.approx(free.totals.cost + 0.7 * moved, rel=1e-12)
    assert bridle.regret(priced) == pytest.approx(bridle.regret(free) + 0.7 * moved, abs=1e-8)
    np.testing.assert_allclose(priced.curve.cost, free.curve.cost + 0.7 * free.curve.moved, atol=1e-10)
    path = np.tile([[0.1, 0.0, 0.0], [0.0, 0.0, 0.0]], (750, 1))
    assert bridle.regret(priced, path) == pytest.approx(bridle.regret(free, path) + 0.7 * (moved - 0.1 * 1499), abs=1e-8)
    again = priced.problem.with_seed(3)
    assert again.constants["switching"] == 0.7
    assert (again.constants["feasible"] != problem.constants["feasible"]).any()


def test_bounds_have_the_price_of_the_farthest_way_added():
    """For steps that are known; no bound on regret for others, and the bound on violation stays as it is."""
    problem = bridle.problem("halfspaces", horizon=800, dim=3)
    plain, cut = bridle.policy("anytime", problem.domain, halfspace=False), bridle.policy("anytime", problem.domain)
    free, priced = (bridle.play(plain, bridle.with_switching(problem, price)) for price in (0.0, 0.7))
    without, facts, most = summary(free), summary(priced), bridle.movement_bound(priced)
    assert facts["movement_bound"] == most
    assert facts["movement"] <= most
    assert facts["movement_bound_holds"] is True
    base = plain.bound({**problem.constants, "V": priced.state.V}, 800)
    assert facts["regret_bound"] == pytest.approx(base.regret + 0.7 * most)
    assert facts["ccv_bound"] == without["ccv_bound"]
    assert facts["regret_bound_paper"] is None
    assert bound_curves(priced) == ([None] * len(priced.curve.rounds), bound_curves(free)[1])
    facts = summary(bridle.play(cut, bridle.with_switching(problem, 0.7)))
    assert facts["movement_bound"] is None
    assert facts["regret_bound"] is None
    assert facts["ccv_bound"] is not None
    assert "how far this policy moves at most is not known" in facts["bound_why"]


def test_regret_without_the_price_is_what_sharpens_the_violation_bound():
    """A regret that is above 0 only because moving was dear says nothing of the costs."""
    problem = bridle.problem("halfspaces", horizon=300, dim=3)
    trace = bridle.play(bridle.policy("anytime", problem.domain, halfspace=False), bridle.with_switching(problem, 50.0))
    total = bridle.regret(trace)
    own = total - 50.0 * bridle.movement(trace)
    assert own < 0.0 < total
    assert bounds(trace, total)[0].ccv == bounds(trace)[0].ccv


@pytest.mark.parametrize("seed", range(4))
def test_the_farthest_way_is_that_of_the_lemma(seed):
    """From the gradients themselves: first above 0 in round 4, later ones of any size, on a ball and when told another diameter."""
    rng, told = np.random.default_rng(seed), [None, 3.0][seed % 2]
    rows = 10.0 ** rng.uniform(-2.0, 1.0, (60, 1)) * rng.standard_normal((60, 2))
    rows[:3] = 0.0
    rounds = bridle.Round(bridle.functions.AffineFunction(rows, np.zeros(60)), (bridle.functions.AffineFunction(0.0 * rows, -np.ones(60)),))
    problem = bridle.Problem(bridle.Ball(2), bridle.adversaries.Recorded(rounds), parameters={"horizon": 60})
    trace = bridle.play(bridle.policy("adagrad", problem.domain, diameter=told), problem, keep="movement")
    squares = (rows**2).sum(axis=1)
    expected = (told or 2.0) * sqrt(30.0 * (1.0 + log(squares.sum() / squares[3])))
    assert bridle.movement_bound(trace) == pytest.approx(expected, rel=1e-12)
    assert bridle.movement(trace) <= expected
    still = bridle.play(bridle.policy("adagrad", problem.domain), problem, horizon=3, keep="movement")
    assert bridle.movement(still) == bridle.movement_bound(still) == 0.0


def test_the_lemma_at_fixed_numbers():
    assert float(adagrad_movement(3.0, 8.0, 5.0 * np.e, 5.0)) == pytest.approx(3.0 * sqrt(8.0))
    assert float(adagrad_movement(3.0, 8.0, 0.0, 0.0)) == 0.0
    assert float(adagrad_movement(3.0, 8.0, 0.5 * np.e**3, 0.5)) == pytest.approx(12.0)
    np.testing.assert_allclose(adagrad_movement(1.0, 2.0, np.array([0.0, 0.2]), np.array([0.0, 0.2])), [0.0, 1.0])
    for n in (1, 2, 5, 9):  # equal gradients: the sum of D / sqrt(2 s)
        assert sum(2.0 / sqrt(2.0 * s) for s in range(1, n + 1)) <= float(adagrad_movement(2.0, n, float(n), 1.0))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_steiner_point_chases_nested_bodies_within_its_distance(dim):
    problem = bridle.problem("nested-bodies", horizon=150, dim=dim, switching=0.5)
    trace = bridle.play(bridle.policy_for("steiner", problem), problem)
    most, D = bridle.movement_bound(trace), problem.domain.diameter()
    assert trace.totals.cost == pytest.approx(0.5 * bridle.movement(trace))
    if dim == 3:
        assert most is None
        return
    assert most == steiner_distance(dim, D, 150) == D * min(dim / 2.0, sqrt(dim * log(300.0) / 2.0))
    assert 0.0 < bridle.movement(trace) <= most
    assert bridle.ccv(trace) <= bridle.movement(trace) + 1e-9


def test_the_distance_of_steiner_points_at_fixed_numbers():
    assert steiner_distance(8, 3.0, 5.0) == pytest.approx(3.0 * sqrt(4.0 * log(10.0)))
    assert steiner_distance(2, 3.0, 1.0) == pytest.approx(3.0 * sqrt(log(2.0)))
    assert steiner_distance(1, 3.0, 50.0) == 1.5


def test_a_price_that_makes_no_sense_is_refused():
    with pytest.raises(bridle.InputError, match="switching must be 0 or above, not -1"):
        bridle.problem("nested-bodies", horizon=10, dim=2, switching=-1.0)
    with pytest.raises(bridle.InputError, match="problem must be a Problem"):
        bridle.with_switching("fixed", 1.0)
    assert "switching" not in bridle.problem("nested-bodies", horizon=10, dim=2).constants


def test_steps_go_on_from_the_block_before():
    x = np.array([[0.0], [1.0], [4.0], [4.5]])
    np.testing.assert_array_equal(moves(x[2:], x[1]), [3.0, 0.5])
    first = accumulate(empty((), 1), np.ones(2), np.zeros((2, 1)), moves(x[:2], None), 2.0)
    np.testing.assert_array_equal(first.moved, [0.0, 1.0])
    np.testing.assert_array_equal(first.cost, [1.0, 4.0])
    last = type(first)(*(field[-1] for field in first))
    np.testing.assert_array_equal(accumulate(last, np.ones(2), np.zeros((2, 1)), moves(x[2:], x[1]), 2.0).cost, [11.0, 13.0])
    assert accumulate(empty((), 1), np.ones(2), np.zeros((2, 1))).moved is None


@dataclass(frozen=True)
class KnownGame:
    """A game whose sums of squares after 1, 2, ... rounds are known, in place of a schedule; `played` lists how far it was played."""

    sums: tuple[tuple[float, ...], ...]
    played: list[int]
    rounds: int = 0

    def advance(self, collect, memory):
        self.played.append(self.rounds)
        yield self.rounds, self.sums[self.rounds - 1], None


def first_of(*sums, played=None):
    """The first sums above 0, by `_first_squares`, of a game with these sums of each run after 1, 2, ... rounds."""
    game = KnownGame(sums, [] if played is None else played)
    trace = SimpleNamespace(schedule=lambda: game, rounds=len(sums), memory=0)
    found = _first_squares(trace, SimpleNamespace(adagrad_steps=lambda state: AdaGradSteps(1.0, np.array(state))))
    return None if found is None else found.tolist()


@pytest.mark.parametrize("first", range(1, 10))
def test_the_first_squares_are_those_of_the_first_round_above_zero(first):
    """And of a long game no more is played again than twice the rounds before."""
    for rounds in (9, 100):
        played: list[int] = []
        assert first_of(*((max(0.0, t - first + 1.0),) for t in range(1, rounds + 1)), played=played) == [1.0]
        assert max(played) <= max(1, 2 * (first - 1))


def test_the_first_squares_of_runs_are_given_where_all_begin_together():
    assert first_of((0.0, 0.0), (0.0, 0.0), (2.0, 3.0), (4.0, 5.0)) == [2.0, 3.0]
    assert first_of((0.0, 0.0), (0.0, 0.0)) == [0.0, 0.0]
    assert first_of((0.0, 0.0), (0.0, 0.0), (2.0, 0.0), (4.0, 5.0)) is None
    assert first_of((2.0, 0.0), (4.0, 5.0)) is None


def test_the_farthest_way_is_told_of_each_run_and_only_of_known_steps():
    problem = bridle.problem("halfspaces", horizon=20, dim=2)
    several = bridle.play(bridle.policy("adagrad", problem.domain, diameter=[0.5, 2.0]), problem, engine="python")
    each = [bridle.play(bridle.policy("adagrad", problem.domain, diameter=told), problem) for told in (0.5, 2.0)]
    assert bridle.movement_bound(several) == pytest.approx([bridle.movement_bound(trace) for trace in each], rel=1e-12)
    assert np.shape(bridle.movement_bound(several)) == (2,)
    assert bridle.movement_bound(replace(each[0], state=None)) is None
    assert bridle.movement_bound(bridle.play(bridle.policy_for("guo2022", problem), problem)) is None  # no AdaGrad

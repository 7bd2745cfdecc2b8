"""The airline and the bicycles: each is what its docstring says, and its constants are attained by attacks on them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import bridle
from bridle import records
from bridle.problems import _markets as markets
from bridle.problems import _revenue as revenue
from helpers.instances import real
from helpers.pinned_streams import figures

NETWORKS = [{}, {"spokes": 1, "load": 0.5}, {"spokes": 2, "load": 2.0, "fares": 1.0, "season": 0.0, "shock": 0.0}]
DAYS = 60 * markets.MONTH


def test_the_flights_of_a_network_are_those_on_a_map():
    """Three spokes, written down flight by flight: to the hub, from the hub, and through it."""
    journeys = [{0}, {1}, {2}, {3}, {4}, {5}, {0, 4}, {0, 5}, {1, 3}, {1, 5}, {2, 3}, {2, 4}]
    uses = revenue.flights(3)
    assert [set(np.flatnonzero(column)) for column in uses.T] == journeys
    assert revenue.flights(1).shape == (2, 2)


@pytest.mark.parametrize("given", NETWORKS, ids=str)
def test_requests_are_accepted_leg_by_leg(given):
    """Fares and passengers counted product by product."""
    problem = bridle.problem("revenue", horizon=60, seed=3, **given)
    airline, rng = problem.adversary.stream, np.random.default_rng(0)
    n, d = given.get("spokes", 3), problem.domain.dim
    assert d == 2 * n * (n + 1)
    days, half = problem.adversary.replay(0, 60), d // 2
    legs = [set(np.flatnonzero(column)) for column in revenue.flights(n).T]
    for t in (0, 27, 28, 59):
        day, x = records.take(days, float(t)), rng.random(d)
        asked = -day.cost.a / airline.fare
        passengers, paid = np.zeros(2 * n), 0.0
        for product in range(d):
            let_in = x[product] * asked[product]
            paid += let_in * airline.fare[product]
            for leg in legs[product % half]:
                passengers[leg] += let_in
        assert day.cost.value(x) == pytest.approx(-paid, rel=1e-12)
        np.testing.assert_allclose(day.constraints[0].value(x), passengers - 1.0, rtol=1e-12, atol=1e-12)
        assert (asked > 0.0).all()
    np.testing.assert_allclose(airline.fare[half:], given.get("fares", 3.0) * airline.fare[:half], rtol=1e-12)
    cheapest = revenue.FARES[0] * np.array([revenue.CHANGE if len(each) > 1 else 1.0 for each in legs])
    assert (airline.fare[:half] >= cheapest).all()
    assert (airline.fare[:half] <= revenue.FARES[1] / revenue.FARES[0] * cheapest).all()


@pytest.mark.parametrize("given", NETWORKS, ids=str)
def test_the_constants_of_the_network_are_nearly_attained(given):
    problem = bridle.problem("revenue", horizon=10, seed=2, **given)
    known, days = problem.constants, problem.adversary.replay(0, DAYS)
    A, everybody = days.constraints[0].A, np.ones(problem.domain.dim)
    slopes = max(np.linalg.norm(days.cost.a, axis=1).max(), np.linalg.norm(A, axis=2).max())
    assert 0.6 * known["lipschitz"] <= slopes <= known["lipschitz"]
    fullest = max(1.0, (A @ everybody).max() - 1.0)
    assert 0.5 * known["bound"] <= fullest <= known["bound"]
    airline, busy = problem.adversary.stream, 1.15 * 1.4 * (1.3 * 1.25 if given.get("season", 0.3) else 1.0)
    worst = revenue.rounds(airline.fare, airline.uses, busy * airline.mean[None])  # the busiest day that could be
    slopes = max(np.linalg.norm(worst.cost.a), np.linalg.norm(worst.constraints[0].A, axis=2).max())
    assert slopes == pytest.approx(known["lipschitz"], rel=1e-12)
    assert max(1.0, (worst.constraints[0].A @ everybody).max() - 1.0) == pytest.approx(known["bound"], rel=1e-12)
    np.testing.assert_array_equal(days.constraints[0].value(0.0 * everybody[None]), -1.0)
    assert known["slater"] == 1.0


def test_load_and_shares_of_fares_mean_what_they_say():
    problem = bridle.problem("revenue", horizon=10, load=1.4, shock=0.1)
    days = problem.adversary.replay(0, DAYS)
    passengers = days.constraints[0].value(np.ones((1, 24))).mean(axis=0) + 1.0
    assert passengers.mean() == pytest.approx(1.4, rel=0.03)
    asked = (-days.cost.a / problem.adversary.stream.fare).sum(axis=0)
    assert asked[:12].sum() / asked.sum() == pytest.approx(revenue.CHEAP, abs=0.005)
    by_day = days.constraints[0].A.sum(axis=(1, 2)).reshape(-1, markets.WEEK).mean(axis=0)
    np.testing.assert_allclose(by_day / by_day.mean(), 1.0 + 0.3 * np.cos(2.0 * np.pi * np.arange(7) / 7), atol=0.04)


@pytest.mark.parametrize("given", [{}, {"spokes": 1, "load": 0.3}], ids=str)
def test_the_best_shares_in_hindsight_are_those_of_a_linear_program(given):
    problem = bridle.problem("revenue", horizon=90, seed=1, **given)
    trace = bridle.play(bridle.policy("anytime", problem.domain), problem)
    days, d = problem.adversary.replay(0, 90), problem.domain.dim
    A = days.constraints[0].A.reshape(-1, d)
    program = linprog(days.cost.a.sum(axis=0), A_ub=A, b_ub=np.ones(len(A)), bounds=(0.0, 1.0), method="highs")
    best = bridle.best_action(trace)
    assert best.cost == pytest.approx(program.fun, rel=1e-7)
    if given:
        np.testing.assert_allclose(best.x, 1.0, atol=1e-6)  # where planes are never full, nobody is turned away
    else:
        assert best.x[12:].mean() > best.x[:12].mean() + 0.2, "the dear ones first"


def test_bicycles_are_the_riders_of_real_hours():
    table = real("bikes")
    problem = bridle.problem("revenue", horizon=8645, data="bikes", load=1.5, fares=2.0)
    hours, x = problem.adversary.replay(0, 8645), np.array([0.3, 0.9])
    fleet = table["bikers"].mean() / 1.5
    for t in (0, 1, 4321, 8644):
        hour, registered, casual = records.take(hours, float(t)), table["registered"][t], table["casual"][t]
        assert hour.cost.value(x) == pytest.approx(-(0.3 * registered + 0.9 * casual * 2.0) / fleet, rel=1e-12)
        np.testing.assert_allclose(hour.constraints[0].value(x), (0.3 * registered + 0.9 * casual) / fleet - 1.0, rtol=1e-12)
    A = hours.constraints[0].A[:, 0]
    assert max(np.linalg.norm(hours.cost.a, axis=1).max(), np.linalg.norm(A, axis=1).max()) == problem.constants["lipschitz"]
    assert A.sum(axis=1).max() - 1.0 == pytest.approx(problem.constants["bound"], rel=1e-12)
    program = linprog(hours.cost.a.sum(axis=0), A_ub=A, b_ub=np.ones(len(A)), bounds=(0.0, 1.0), method="highs")
    trace = bridle.play(bridle.policy("anytime", problem.domain), problem)
    assert bridle.best_action(trace).cost == pytest.approx(program.fun, rel=1e-7)
    assert bridle.ccv(trace) < 0.01 * bridle.ccv(bridle.play(bridle.policy_for("ogd", problem), problem))


def test_more_hours_than_the_year_had_are_refused():
    real("bikes")
    with pytest.raises(bridle.InputError, match="horizon must be at most 8645, the rounds that problem revenue on bikes has, not 9000"):
        bridle.problem("revenue", horizon=9000, data="bikes")


@pytest.mark.parametrize(("name", "value"), [("spokes", 5), ("season", 0.1), ("shock", 0.9)])
def test_what_only_the_simulated_network_has_is_refused_on_bikes(name, value):
    with pytest.raises(bridle.InputError, match=f"{name} cannot be given where data is bikes"):
        bridle.problem("revenue", horizon=10, data="bikes", **{name: value})


def test_the_days_of_a_seed_are_these():
    constants, first, later = figures("revenue", 0, 60)
    assert constants == pytest.approx([5.148886412778997, 2.5418876570975755, 0.0, 1.0], rel=1e-12)
    assert first == pytest.approx(
        [-5.726254437392, -0.594538691657, -0.376229420858, -0.194884390853, -0.223613702371, -0.281650075948, -0.401633445952], rel=1e-10
    )
    assert later == pytest.approx(
        [-4.843247506404, -0.682874312901, -0.462825826369, -0.317710283465, -0.312048447232, -0.498181074084, -0.55760531644], rel=1e-10
    )


def test_with_cheap_fares_the_longest_slope_is_a_flights():
    problem = bridle.problem("revenue", horizon=10, fares=0.01, spokes=1, load=0.2)
    airline = problem.adversary.stream
    most = 1.4 * 1.15 * 1.3 * 1.25 * airline.mean
    dearest, longest = np.linalg.norm(airline.fare * most), max(np.linalg.norm(row * most) for row in airline.uses)
    assert problem.constants["lipschitz"] == pytest.approx(max(dearest, longest), rel=1e-12)
    cheap = revenue.constants(problem.domain, 0.01 * airline.fare, airline.uses, most)
    assert cheap["lipschitz"] == pytest.approx(longest, rel=1e-12)
    assert longest > 0.01 * dearest
    assert cheap["bound"] == problem.constants["bound"] == 1.0
    assert cheap["modulus"] == 0.0
    assert cheap["time_varying"]
    assert cheap["constraints"] == 2


def test_with_few_riders_the_largest_value_is_that_of_an_idle_fleet():
    table = real("bikes")
    problem = bridle.problem("revenue", horizon=10, data="bikes", load=0.3, fares=0.001)
    riders = np.stack([table["registered"], table["casual"]], axis=1) * 0.3 / table["bikers"].mean()
    assert riders.sum(axis=1).max() < 2.0
    assert problem.constants["bound"] == 1.0
    assert problem.constants["lipschitz"] == pytest.approx(np.linalg.norm(riders, axis=1).max(), rel=1e-12)
    assert problem.constants["lipschitz"] > np.linalg.norm(riders * [1.0, 0.001], axis=1).max()
    assert problem.constants["constraints"] == 1
    np.testing.assert_array_equal(problem.domain.high, 1.0)

"""The applications: each is what its docstring says, its constants are true, and policies and the hindsight solver take it."""

from __future__ import annotations

import json
import warnings
from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import bridle
from bridle import cli, records
from bridle.problems import _applications as applications
from bridle.problems import portfolios, problem_facts
from helpers.instances import made_in, real

SETS = {"portfolio": "nyse-o", "capacity": "alibaba", "fair-classifier": "adult"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "portfolio": ("portfolio", {}),
    "portfolio-djia": ("portfolio", {"data": "djia", "lookback": 20, "risk": 1.0}),
    "portfolio-msci": ("portfolio", {"data": "msci", "risk": 3.0}),
    "capacity": ("capacity", {}),
    "capacity-google": ("capacity", {"data": "google", "modulus": 2.0}),
    "capacity-azure": ("capacity", {"data": "azure", "modulus": 0.3}),
    "capacity-electricity": ("capacity", {"data": "electricity"}),
    "ad-pacing": ("ad-pacing", {}),
    "ad-pacing-one": ("ad-pacing", {"dim": 1, "budget": 0.1}),
    "ad-pacing-rich": ("ad-pacing", {"dim": 3, "budget": 40.0}),
    "fair-classifier": ("fair-classifier", {}),
    "fair-classifier-strict": ("fair-classifier", {"lookback": 50, "tolerance": 1e-3, "radius": 1.5}),
}
MAIN = [case for case in CASES if case in made_in(applications)]


def make(case: str, horizon: int = 400, seed: int = 0) -> bridle.Problem:
    """The problem; skipped where its data are not here and cannot be reached."""
    name, given = CASES[case]
    if name in SETS:
        real(given.get("data", SETS[name]))
    return bridle.problem(name, horizon=horizon, seed=seed, **given)


def table(problem: bridle.Problem) -> bridle.Round:
    """Every round that there is (of the simulated one: of nine days), such that all can be evaluated at one decision in one call."""
    adversary = problem.adversary
    return records.widen(adversary.replay(0, 9 * applications.SLOTS if adversary.rounds == 2**53 else adversary.rounds), 1)


def points(domain: Any, rng: np.random.Generator, n: int = 6) -> np.ndarray:
    """Decisions: corners and other points of the boundary, inner ones, and the centre."""
    d = domain.dim
    edge = domain.project(domain.center() + 2.0 * domain.diameter() * rng.standard_normal((n, d)))
    corners = domain.linear_argmin(np.concatenate([rng.standard_normal((n, d)), np.eye(d), -np.eye(d), np.ones((1, d)), -np.ones((1, d))]))
    return np.vstack([edge, corners, domain.center() + rng.uniform(0.0, 1.0, (n, 1)) * (edge - domain.center()), domain.center()[None]])


def lengths(rows: np.ndarray) -> float:
    return float(np.linalg.norm(rows, axis=-1).max())


# --- constants ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_constants_are_true_in_every_round(case):
    problem, rng = make(case), np.random.default_rng(0)
    known, rounds, domain = problem.constants, table(problem), problem.domain
    (limits,) = rounds.constraints
    sample = rng.permutation(points(domain, rng))[:30]
    D = max(np.linalg.norm(sample - x, axis=1).max() for x in sample)
    assert 0.5 * known["diameter"] <= D <= known["diameter"] * (1 + 1e-12)
    for x in sample:
        assert lengths(rounds.cost.grad(x)) <= known["lipschitz"] * (1 + 1e-12)
        assert lengths(limits.grad(x)) <= known["lipschitz"] * (1 + 1e-12)
        assert np.abs(limits.value(x)).max() <= known["bound"] * (1 + 1e-12)
    assert limits.value(sample[0]).shape[-1] == known["constraints"]
    assert domain.contains(known["feasible"])
    assert limits.value(known["feasible"]).max() <= 1e-12
    assert known["convex"]
    assert known["time_varying"]
    assert max(np.ptp(limits.value(x), axis=0).max() for x in sample) > 0.0
    assert known["affine"] == all(np.array_equal(limits.grad(x), limits.grad(sample[0])) for x in sample)


@pytest.mark.parametrize("case", CASES)
def test_functions_are_convex_and_their_slopes_are_their_derivatives(case):
    problem, rng = make(case), np.random.default_rng(1)
    rounds, domain = table(problem), problem.domain
    alpha = problem.constants["modulus"]
    sample = rng.permutation(points(domain, rng, 3))[:6]
    inner = domain.center() + rng.uniform(0.2, 0.9, (len(sample), 1)) * (sample - domain.center())
    for function in (rounds.cost, *rounds.constraints):
        strong = alpha if function is rounds.cost else 0.0
        for x, y in pairwise(inner):
            s, apart = rng.random(), float((x - y) @ (x - y))
            middle, ends = function.value((1 - s) * x + s * y), (1 - s) * function.value(x) + s * function.value(y)
            assert (middle <= ends - 0.5 * strong * s * (1 - s) * apart + 1e-12 * (1 + np.abs(ends))).all()
            h, way = 1e-6, (y - x) / np.linalg.norm(y - x)
            rise = (function.value(x + h * way) - function.value(x - h * way)) / (2 * h)
            slope = function.grad(x) @ way
            np.testing.assert_allclose(rise.reshape(-1), slope.reshape(-1), rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("ad-pacing")])
def test_lipschitz_and_bound_are_not_larger_than_they_must_be(case):
    """An attack that knows the data attains them: so they were computed, not guessed."""
    problem = make(case)
    known, rounds, domain = problem.constants, table(problem), problem.domain
    (limits,) = rounds.constraints
    if case.startswith("fair"):
        size = np.linalg.norm(rounds.cost.a, axis=1)
        ways = rounds.cost.a[size.argmax()], limits.A[np.linalg.norm(limits.A[:, 0], axis=1).argmax(), 0]
        attacks = [sign * domain.radius * way / np.linalg.norm(way) for sign in (-1.0, 1.0) for way in ways]
    elif case.startswith("capacity"):
        attacks = [domain.low, domain.high]
    else:
        attacks = list(np.eye(domain.dim))
    steepest = max(max(lengths(rounds.cost.grad(x)), lengths(limits.grad(x))) for x in attacks)
    highest = max(float(np.abs(limits.value(x)).max()) for x in attacks)
    assert steepest == pytest.approx(known["lipschitz"], rel=1e-9)
    if case == "portfolio-msci":  # with so much risk allowed, g is largest in size where a day has none
        assert 0.8 * known["bound"] <= highest <= known["bound"]
    else:
        assert highest == pytest.approx(known["bound"], rel=1e-9)


@pytest.mark.parametrize("case", [case for case in CASES if case != "portfolio-djia"])
def test_the_slater_margin_is_there(case):
    problem = make(case)
    known = problem.constants
    (limits,) = table(problem).constraints
    witness = np.zeros(problem.domain.dim) if case.startswith("ad-pacing") else known["feasible"]
    assert -limits.value(witness).max() >= known["slater"] * (1 - 1e-9) > 0.0


def test_with_no_more_risk_than_the_market_there_is_no_margin_at_it():
    assert make("portfolio-djia").constants["slater"] is None


@pytest.mark.parametrize("case", ["capacity", "capacity-google", "capacity-azure", "capacity-electricity"])
def test_no_capacity_leaves_more_room_than_the_margin_says(case):
    """A linear program over x and the margin m: demand - x + m <= 0 in every round."""
    problem = make(case)
    (limits,) = table(problem).constraints
    d = problem.domain.dim
    peak = limits.b.max(axis=0)  # of rows with the same normal, the highest counts
    bounds = [*zip(problem.domain.low, problem.domain.high, strict=True), (None, None)]
    answer = linprog(np.append(np.zeros(d), -1.0), A_ub=np.column_stack([-np.eye(d), np.ones(d)]), b_ub=-peak, bounds=bounds)
    assert -answer.fun == pytest.approx(problem.constants["slater"], abs=1e-9)


# --- what the numbers mean ------------------------------------------------------------------------------------------------------------


def test_a_portfolio_is_wealth_and_predicted_variance():
    problem, returns = make("portfolio"), real("nyse-o").values
    rng, rounds = np.random.default_rng(2), problem.adversary.replay(0, 300)
    for t in (0, 17, 299):
        day, x = 60 + t, rng.dirichlet(np.ones(36))
        one = records.take(rounds, float(t))
        assert one.cost.value(x) == pytest.approx(-np.log(returns[day] @ x), rel=1e-12)
        before = returns[day - 60 : day]
        predicted = 252.0 * np.var(before @ x, ddof=1)
        market = 252.0 * np.var(before.mean(axis=1), ddof=1)
        assert one.constraints[0].value(x) == pytest.approx(predicted - 1.5 * market, rel=1e-9, abs=1e-12)
    trace = bridle.play(bridle.policy_for("ogd", problem), problem, horizon=300, keep="decisions")
    wealth = np.prod((trace.decisions * returns[60:360]).sum(axis=1))
    assert np.exp(-float(trace.totals.cost)) == pytest.approx(wealth, rel=1e-12)
    assert problem.constants["rounds"] == 5651 - 60


def test_capacity_is_a_price_and_unmet_demand():
    problem, trace = make("capacity"), real("alibaba")
    one = records.take(problem.adversary.replay(0, 50), 31.0)
    x = np.array([0.5, 0.25, 0.125, 1.0, 0.0])
    assert one.cost.value(x) == pytest.approx(1.875)
    np.testing.assert_allclose(one.constraints[0].value(x), trace.values[31] / 100.0 - x, rtol=0, atol=1e-15)
    assert problem.constants["rounds"] == 67242
    azure = make("capacity-azure")
    demand = real("azure").values / real("azure").values[:288].max(axis=0)
    one = records.take(azure.adversary.replay(0, 300), 299.0)
    np.testing.assert_allclose(one.constraints[0].value(np.ones(2)), demand[299] - 1.0, rtol=0, atol=1e-14)
    idle = np.ones(2) - demand[299]
    assert one.cost.value(np.ones(2)) == pytest.approx(2.0 + 0.15 * idle @ idle)


def test_the_known_optimum_of_capacity_is_the_best_in_hindsight():
    for case in ("capacity", "capacity-google", "capacity-azure"):
        problem = make(case, horizon=700, seed=3)
        trace = bridle.play(bridle.policy_for("sinha2024", problem), problem)
        best = bridle.best_action(trace)
        assert best.cost == pytest.approx(problem.constants["optimal_cost"], rel=1e-7)
        np.testing.assert_allclose(best.x, problem.constants["optimum"], atol=1e-5)
        assert bridle.regret(trace) == float(trace.totals.cost) - problem.constants["optimal_cost"]


def test_auctions_are_worth_and_cost_what_the_formulas_say():
    """Second-price auctions played out: a million competing bids against the closed forms of a slot."""
    rng = np.random.default_rng(0)
    for x, value, top in ((1.0, 1.3, 2.0), (0.4, 2.0, 2.0), (0.7, 0.9, 3.7)):
        against = rng.uniform(0.0, top, 1_000_000)
        won = against < x * value
        w = value**2 / top
        assert (won * value).mean() == pytest.approx(w * x, abs=5e-3)
        assert (won * against).mean() == pytest.approx(0.5 * w * x * x, abs=5e-3)
    problem = bridle.problem("ad-pacing", horizon=10, dim=6)
    adversary = problem.adversary
    w = -adversary.replay(0, 60 * applications.SLOTS).cost.a
    assert (w > 0.0).all()
    assert (w <= applications.LARGEST_WEIGHT * adversary.stream.rate).all()
    assert (w.max(axis=0) >= 0.75 * applications.LARGEST_WEIGHT * adversary.stream.rate).all()
    np.testing.assert_allclose(w.mean(axis=0), applications.MEAN_WEIGHT * adversary.stream.rate, rtol=0.02)
    day = w.reshape(60, applications.SLOTS, 6).mean(axis=0)  # the busiest slots of the day are around the peak
    phase = np.angle(day.T @ np.exp(2j * np.pi * np.arange(applications.SLOTS) / applications.SLOTS)) / (2 * np.pi)
    assert np.abs((phase - adversary.stream.peak + 0.5) % 1.0 - 0.5).max() < 0.02
    one, x = records.take(adversary.replay(5, 6), 0.0), np.linspace(0.0, 1.0, 6)
    assert one.cost.value(x) == pytest.approx(-w[5] @ x)
    assert one.constraints[0].value(x) == pytest.approx(0.5 * w[5] @ x**2 - problem.constants["slater"])
    assert problem.constants["slater"] == pytest.approx(0.5 * 0.5 * applications.MEAN_WEIGHT * adversary.stream.rate.sum())


def test_slots_are_the_same_however_they_are_asked_for():
    adversary = bridle.problem("ad-pacing", horizon=10, seed=4).adversary
    whole = adversary.replay(0, 1000).cost.a
    for start, stop in ((0, 1), (287, 289), (288, 576), (575, 1000), (999, 1000)):
        np.testing.assert_array_equal(adversary.replay(start, stop).cost.a, whole[start:stop])


def test_the_classifier_sees_loss_and_covariance():
    problem, people = make("fair-classifier"), real("adult")
    rounds, rng = problem.adversary.replay(0, 400), np.random.default_rng(0)
    x = rng.standard_normal(problem.domain.dim)
    for t in (0, 399):
        one, person = records.take(rounds, float(t)), 999 + t
        a = one.cost.a
        score = a @ x
        label = 1.0 if people.equals("income", ">50K")[person] else -1.0
        assert one.cost.value(x) == pytest.approx(np.log1p(np.exp(-label * score)), rel=1e-12)
        assert a[1] == people["age"][person] / 100.0
        assert a.sum() == pytest.approx(a[:6].sum() + 4.0 + people.equals("native-country", "United-States")[person])
    everyone = applications._census(2)[0].a  # all but the first
    window = everyone[399 : 399 + 1000] @ x
    man = people.equals("sex", "Male")[400:1400].astype(float)
    covariance = np.mean((man - man.mean()) * window)
    one = records.take(problem.adversary.replay(0, 401), 400.0)
    np.testing.assert_allclose(one.constraints[0].value(x), [covariance - 0.02, -covariance - 0.02], rtol=1e-9, atol=1e-12)
    assert everyone.min() == 0.0
    assert everyone.max() == 1.0


# --- streams --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MAIN)
def test_seed_zero_is_the_datas_order_and_others_begin_elsewhere(case):
    zero, one, two = (make(case, seed=seed) for seed in (0, 1, 2))
    leaves = [records.leaves(problem.adversary.replay(0, 400)) for problem in (zero, one, two, one.with_seed(0))]
    for name, leaf in leaves[0].items():
        np.testing.assert_array_equal(leaf, leaves[3][name])
    assert not any(np.array_equal(leaves[0]["cost.a"], other["cost.a"]) and case != "capacity" for other in leaves[1:3])
    longer = records.leaves(make(case, horizon=900, seed=1).adversary.replay(0, 400))
    for name, leaf in leaves[1].items():
        np.testing.assert_array_equal(leaf, longer[name])
    if case == "ad-pacing":
        return
    assert zero.adversary.first == 0.0
    assert len({problem.adversary.first for problem in (zero, one, two)}) == 3
    n = zero.adversary.rounds
    begin = int(one.adversary.first)
    last = one.adversary.replay(n - 1, n)
    for name, leaf in records.leaves(zero.adversary.replay(begin - 1, begin)).items():
        np.testing.assert_array_equal(leaf, records.leaves(last)[name])  # once round, no row twice
    # Constants do not depend on where the rounds begin, but for the best action over the horizon.
    for name in ("lipschitz", "bound", "slater", "rounds"):
        assert zero.constants[name] == one.constants[name]


POLICIES = ("sinha2024", "sinha2024-ocs", "ogd", "adagrad", "yu2020", "guo2022", "mahdavi2012", "neely2017", "yi2022", "yi2023")


@pytest.mark.parametrize("case", MAIN)
@pytest.mark.parametrize("name", POLICIES)
def test_policies_play_on_it_and_keep_their_bounds(case, name):
    problem = make(case, horizon=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        policy = bridle.policy_for(name, problem)
        trace = bridle.play(policy, problem, keep="decisions")
    assert problem.domain.contains(trace.decisions)
    assert np.isfinite(trace.costs).all()
    bound = policy.bound({**trace.problem.constants, "regret": bridle.regret(trace)}, 60)
    if bound.regret is not None:
        assert bridle.regret(trace) <= bound.regret
    if bound.ccv is not None:
        assert bridle.ccv(trace) <= bound.ccv


@pytest.mark.compiles
@pytest.mark.parametrize("case", MAIN)
@pytest.mark.parametrize("name", ["sinha2024", "adagrad"])
def test_engines_agree(case, name):
    problem = make(case, horizon=1100, seed=5)  # more than a block of rounds
    policy = bridle.policy_for(name, problem)
    one, two = (bridle.play(policy, problem, engine=engine, keep="decisions") for engine in ("python", "jax"))
    for field in ("costs", "values", "decisions"):
        np.testing.assert_allclose(getattr(one, field), getattr(two, field), rtol=1e-12, atol=1e-12)


@pytest.mark.compiles
@pytest.mark.parametrize("case", MAIN)
def test_several_seeds_play_at_once(case):
    problem = make(case, horizon=40)
    policy = bridle.policy_for("sinha2024", problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        for engine in ("python", "jax"):
            together = bridle.play(policy, problem, seed=[0, 7], engine=engine)
            for i, seed in enumerate((0, 7)):
                alone = bridle.play(policy, problem, seed=seed)
                assert together.totals.cost[i] == pytest.approx(float(alone.totals.cost), rel=1e-12)
                np.testing.assert_allclose(together.totals.hard[i], alone.totals.hard, rtol=1e-9, atol=1e-12)


# --- hindsight ------------------------------------------------------------------------------------------------------------------------


def reference(case: str, problem: bridle.Problem, T: int) -> float:
    """The cost of the best fixed action by another solver, from the raw numbers."""
    rounds, d = problem.adversary.replay(0, T), problem.domain.dim
    x = cp.Variable(d)
    (limits,) = rounds.constraints
    if case == "portfolio":
        total, within = -cp.sum(cp.log(rounds.cost.a @ x)), [x >= 0, cp.sum(x) == 1]
        roots = [np.linalg.cholesky(P + 1e-13 * np.eye(d)) for P in limits.P]
        holds = [cp.sum_squares(L.T @ x) / 2 <= -b for L, b in zip(roots, limits.b, strict=True)]
    elif case == "ad-pacing":
        total, within = cp.sum(rounds.cost.a @ x), [x >= 0, x <= 1]
        holds = [np.einsum("tii->ti", limits.P) @ cp.square(x) / 2 <= -limits.b]
    else:
        margins = cp.multiply(-rounds.cost.label, rounds.cost.a @ x)
        total, within = cp.sum(cp.logistic(margins)), [cp.norm(x) <= float(problem.domain.radius)]
        holds = [limits.A.reshape(-1, d) @ x + limits.b.reshape(-1) <= 0]
    program = cp.Problem(cp.Minimize(total), within + holds)
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("case", ["portfolio", "ad-pacing", "fair-classifier"])
def test_regret_is_against_the_best_fixed_action(case):
    T = 150
    problem = make(case, horizon=T, seed=2)
    trace = bridle.play(bridle.policy_for("sinha2024", problem, preset="practice"), problem)
    best = bridle.best_action(trace)
    value = reference(case, problem, T)
    assert best.cost == pytest.approx(value, rel=1e-5, abs=1e-5)
    assert best.violation <= 1e-7
    assert bridle.regret(trace) == pytest.approx(float(trace.totals.cost) - value, rel=1e-4, abs=2e-5)


def test_too_tight_a_risk_limit_is_found_to_be_that():
    real("djia")
    problem = bridle.problem("portfolio", horizon=100, data="djia", risk=0.05)
    assert "feasible" not in problem.constants
    trace = bridle.play(bridle.policy_for("sinha2024", problem), problem)
    with pytest.raises(bridle.NoComparator, match="no action of the domain satisfies every constraint of the stream"):
        bridle.regret(trace)


# --- arguments ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("portfolio", {"horizon": 5592}, "horizon must be at most 5591, the rounds that problem portfolio on nyse-o has, not 5592"),
        ("portfolio", {"data": "nyse"}, "unknown data 'nyse'; did you mean nyse-o or nyse-n"),
        ("portfolio", {"data": "adult"}, "unknown data 'adult'; known: djia, msci"),
        ("portfolio", {"data": 3}, "unknown data 3"),
        ("portfolio", {"data": "djia", "lookback": 507}, "lookback must be below 507, the days that djia has, not 507"),
        ("portfolio", {"lookback": 1}, "lookback must be 2 or above, not 1"),
        ("portfolio", {"risk": 0.0}, "risk must be above 0, not 0.0"),
        ("portfolio", {"seed": -1}, "seed must be 0 or above, not -1"),
        ("capacity", {"horizon": 67243}, "horizon must be at most 67242, the rounds that problem capacity on alibaba has, not 67243"),
        ("capacity", {"data": "gogle"}, r"unknown data 'gogle'; did you mean google\?"),
        ("capacity", {"modulus": -1.0}, "modulus must be 0 or above, not -1.0"),
        ("ad-pacing", {"budget": -0.5}, "budget must be above 0, not -0.5"),
        ("ad-pacing", {"dim": 0}, "dim must be 1 or above, not 0"),
        ("fair-classifier", {"lookback": 32561}, "lookback must be below 32561, the persons that adult has, not 32561"),
        ("fair-classifier", {"tolerance": 0}, "tolerance must be above 0, not 0"),
        ("fair-classifier", {"radius": np.inf}, "radius must be finite, not inf"),
    ],
)
def test_bad_arguments_are_one_clear_error(name, given, message):
    if name in SETS and "data" not in given:
        real(SETS[name])
    if given.get("data") == "djia":
        real("djia")
    with pytest.raises(bridle.InputError, match=message):
        bridle.problem(name, **{"horizon": 50, **given})


def test_longer_than_the_data_is_refused_by_the_game_too():
    problem = make("portfolio-djia")
    with pytest.raises(bridle.InputError, match="horizon must be at most 487, the rounds that problem portfolio has, not 500"):
        bridle.play(bridle.policy_for("sinha2024", problem), problem, horizon=500)


@pytest.mark.parametrize("name", made_in(applications))
def test_each_says_what_x_f_and_g_are(name):
    text = problem_facts(name).about
    assert text.startswith(("x is", "x holds", "x multiplies"))
    assert " f " in text
    assert " g is" in text or " g are " in text
    assert text.count(". ") <= 1
    assert text.endswith(".")
    assert all(parameter.help for parameter in problem_facts(name).parameters)


def test_data_that_cannot_be_had_are_one_line_on_the_command_line(capsys, tmp_path, monkeypatch):
    for name, value in {"BRIDLE_DATA": str(tmp_path / "cache"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    portfolios.of_data_set.cache_clear()
    with pytest.raises(SystemExit) as end:
        cli.main(["play", "portfolio", "--set", "data=tse"])
    out, err = capsys.readouterr()
    assert (end.value.code, out) == (2, "")
    assert err.startswith("bridle: data set tse could not be fetched: PyPI universal-portfolios 0.4.17: pip says: ")
    assert err.count("\n") == 1


def test_the_command_line_plays_it(capsys):
    real("msci")
    with pytest.raises(SystemExit) as end:
        cli.main(["play", "portfolio", "--set", "data=msci", "--set", "risk=2", "--horizon", "60", "--seed", "1", "--json", "-"])
    facts = json.loads(capsys.readouterr().out)
    assert not end.value.code
    assert facts["problem"] == "portfolio"
    assert isinstance(facts["regret"], float)
    assert facts["regret_bound_holds"]

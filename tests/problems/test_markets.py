"""The shop and the page: each is what its docstring says, convex to the last digit, and its constants are attained by attacks on them."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

import bridle
from bridle import records
from bridle.problems import _markets as markets
from helpers.instances import made_in, real

SHOPS = [{}, {"dim": 1}, {"dim": 3, "elasticity": 1.1, "substitution": 0.9, "stock": 2.0, "season": 0.6, "shock": 0.0}]
PAGES = [{}, {"dim": 2, "least": 1.0, "most": 1.0}, {"dim": 4, "least": 0.0, "most": 4.0}]
DAYS, HOURS = 40 * markets.MONTH, 60 * markets.HOURS


def rounds(problem: bridle.Problem, count: int) -> bridle.Round:
    return problem.adversary.replay(0, count)


def corners(problem: bridle.Problem) -> np.ndarray:
    d = problem.domain.dim
    if isinstance(problem.adversary.stream, markets.Page):
        return np.eye(d)
    return np.array(list(itertools.product(*zip(problem.domain.low, problem.domain.high, strict=True))))


# --- the shop -------------------------------------------------------------------------------------------------------------------------


def sales(problem: bridle.Problem, days: bridle.Round, x: np.ndarray) -> np.ndarray:
    """What is sold of each product on each day, read off the limits."""
    return days.constraints[0].A @ x + days.constraints[0].b + problem.adversary.stream.stock


@pytest.mark.parametrize("given", SHOPS, ids=str)
def test_revenue_is_price_times_sales_and_sales_are_linear(given):
    """Worked out product by product from the docstring, on days taken alone."""
    problem = bridle.problem("pricing", horizon=100, seed=3, **given)
    shop, rng = problem.adversary.stream, np.random.default_rng(0)
    d, c = problem.domain.dim, given.get("substitution", 0.2)
    days = rounds(problem, 100)
    free = sales(problem, days, np.zeros(d))
    for t in (0, 27, 28, 99):
        day, x = records.take(days, float(t)), rng.uniform(problem.domain.low, problem.domain.high)
        at_list = sales(problem, days, np.ones(d))[t]
        m = (free - sales(problem, days, np.eye(d)[0]))[t, 0] / shop.S[0, 0]  # what a price of 1 keeps away, over the elasticity
        v = at_list / m
        sold = [m * (v[i] + shop.S[i, i] * (1.0 - x[i]) - c * sum(shop.w[j] * (1.0 - x[j]) for j in range(d) if j != i)) for i in range(d)]
        np.testing.assert_allclose(day.constraints[0].value(x), np.array(sold) - shop.stock, rtol=1e-12, atol=1e-12)
        assert day.cost.value(x) == pytest.approx(-sum(shop.w[i] * x[i] * sold[i] for i in range(d)), rel=1e-12)
        assert abs(v - 1.0).max() <= 2.0 * markets.TASTE


@pytest.mark.parametrize("given", SHOPS, ids=str)
def test_revenue_is_concave_and_sales_are_never_negative(given):
    problem = bridle.problem("pricing", horizon=10, seed=1, **given)
    days = rounds(problem, DAYS)
    P = days.cost.P
    np.testing.assert_array_equal(P, P.swapaxes(1, 2))
    least = np.linalg.eigvalsh(P)[:, 0]
    assert least.min() >= problem.constants["modulus"] > 0.0
    assert least.min() <= 1.3 * problem.constants["modulus"], "a quiet day comes near the stated curvature"
    assert min(sales(problem, days, x).min() for x in corners(problem)) >= 0.0
    assert min(sales(problem, days, x).min() for x in corners(problem)) <= 0.25, "the highest price is no lower than it must be"


@pytest.mark.parametrize("given", SHOPS, ids=str)
def test_the_constants_of_the_shop_are_nearly_attained(given):
    problem = bridle.problem("pricing", horizon=10, seed=2, **given)
    known, days = problem.constants, rounds(problem, DAYS)
    steepest = max(np.linalg.norm(days.cost.P @ x + days.cost.a, axis=1).max() for x in corners(problem))
    steepest = max(steepest, np.linalg.norm(days.constraints[0].A, axis=2).max())
    highest = max(abs(days.constraints[0].A @ x + days.constraints[0].b).max() for x in corners(problem))
    assert 0.7 * known["lipschitz"] <= steepest <= known["lipschitz"]
    assert 0.8 * known["bound"] <= highest <= known["bound"] * (1.0 + 1e-12)
    room = -(sales(problem, days, problem.domain.high) - problem.adversary.stream.stock).max()
    assert known["slater"] <= room <= known["slater"] + 0.35 * problem.adversary.stream.stock
    np.testing.assert_array_equal(known["feasible"], problem.domain.high)


def test_elasticity_substitution_and_stock_mean_what_they_say():
    problem = bridle.problem("pricing", horizon=10, dim=4, elasticity=3.0, substitution=0.5, stock=1.2)
    days, one = rounds(problem, 4 * 13 * markets.MONTH), np.ones(4)
    before = sales(problem, days, one).mean(axis=0)
    np.testing.assert_allclose(before, 1.0, atol=0.03)  # averages at list prices
    assert -days.cost.value(one[None]).mean() == pytest.approx(1.0, abs=0.03)
    falls = [100.0 * (before - sales(problem, days, one + 0.01 * np.eye(4)[i]).mean(axis=0)) for i in range(4)]
    assert all(0.9 * 3.0 * 0.97 <= falls[i][i] <= 1.1 * 3.0 * 1.03 for i in range(4))
    rises = 100.0 * (sales(problem, days, one + 0.01 * (one - np.eye(4)[0])).mean(axis=0) - before)[0]
    assert 0.5 * 0.6 <= rises <= 0.5  # less than `substitution` by the product's own share of revenue
    assert problem.adversary.stream.w.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(days.constraints[0].value(one[None]).mean(axis=0), before - 1.2, rtol=1e-9)


def test_weeks_have_a_rhythm_and_months_jump():
    def traffic(**given: float) -> np.ndarray:
        problem = bridle.problem("pricing", horizon=10, dim=2, **given)
        S = problem.adversary.stream.S
        return -rounds(problem, DAYS).constraints[0].A[:, 0, 0] / S[0, 0]

    still, weekly, jumping = traffic(season=0.0, shock=0.0), traffic(season=0.5, shock=0.0), traffic(season=0.0, shock=0.5)
    assert abs(still - 1.0).max() <= markets.CHANCE
    by_day = weekly.reshape(-1, markets.WEEK).mean(axis=0)
    np.testing.assert_allclose(by_day, 1.0 + 0.5 * np.cos(2.0 * np.pi * np.arange(7) / 7), atol=0.03)
    by_month = jumping.reshape(-1, markets.MONTH).mean(axis=1)
    assert abs(by_month - 1.0).max() <= 0.5 * 1.1
    assert by_month.std() > 0.2 > 5.0 * still.reshape(-1, markets.MONTH).mean(axis=1).std()


def test_with_too_little_stock_nothing_is_claimed():
    problem = bridle.problem("pricing", horizon=200, stock=0.5)
    assert "feasible" not in problem.constants
    assert "slater" not in problem.constants
    trace = bridle.play(bridle.policy("soft", problem.domain), problem)
    with pytest.raises(bridle.NoComparator):
        bridle.regret(trace)


def test_the_best_prices_in_hindsight_are_those_of_another_solver():
    problem = bridle.problem("pricing", horizon=120, seed=2)
    trace = bridle.play(bridle.policy("anytime", problem.domain), problem)
    days, x = rounds(problem, 120), cp.Variable(5)
    root = np.linalg.cholesky(days.cost.P.sum(axis=0))
    cost = cp.sum_squares(root.T @ x) / 2 + days.cost.a.sum(axis=0) @ x
    holds = [days.constraints[0].A.reshape(-1, 5) @ x + days.constraints[0].b.reshape(-1) <= 0]
    program = cp.Problem(cp.Minimize(cost), [*holds, x >= problem.domain.low, x <= problem.domain.high])
    program.solve(solver=cp.CLARABEL)
    assert bridle.best_action(trace).cost == pytest.approx(program.value, rel=1e-7)


# --- the page -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", PAGES, ids=str)
def test_limits_are_shares_of_the_attention_of_the_hour(given):
    problem = bridle.problem("recommendation", horizon=50, seed=1, **given)
    page, d, rng = problem.adversary.stream, problem.domain.dim, np.random.default_rng(0)
    hours = rounds(problem, 50)
    for t in (0, 23, 24, 49):
        hour, x = records.take(hours, float(t)), rng.dirichlet(np.ones(d))
        v = (np.diag(hour.constraints[0].A[d:]) - np.diag(hour.constraints[0].A[:d])) / (2.0 - page.limits.cap - page.limits.floor)
        attention = v * x
        g = hour.constraints[0].value(x)
        np.testing.assert_allclose(g[:d], given.get("least", 0.4) / d * attention.sum() - attention, atol=1e-14)
        np.testing.assert_allclose(g[d:], attention - min(1.0, given.get("most", 2.4) / d) * attention.sum(), atol=1e-14)
        assert (v > 0.0).all()
        assert hour.cost.value(x) == pytest.approx(float(hour.cost.a @ x))
        assert (hour.cost.a < 0.0).all()


@pytest.mark.parametrize("given", PAGES, ids=str)
def test_the_constants_of_the_page_are_nearly_attained(given):
    problem = bridle.problem("recommendation", horizon=10, seed=2, **given)
    known, hours, d = problem.constants, rounds(problem, HOURS), problem.domain.dim
    A = hours.constraints[0].A
    assert not hours.constraints[0].b.any()
    steepest = max(np.linalg.norm(hours.cost.a, axis=1).max(), np.linalg.norm(A, axis=2).max())
    assert 0.6 * known["lipschitz"] <= steepest <= known["lipschitz"]
    assert 0.9 * known["bound"] <= abs(A).max() <= known["bound"]  # at corners a limit is an entry of its row
    room = -A.mean(axis=2).max()  # with even shares
    if given.get("most") == 1.0:
        assert room < 0.0
        assert "feasible" not in known
        return
    assert known["slater"] <= room <= known["slater"] + 0.3 / d
    np.testing.assert_array_equal(known["feasible"], problem.domain.center())


GROUPS = [{"dim": 5, "groups": 2}, {"dim": 7, "groups": 3, "least": 0.5, "most": 1.8}, {"dim": 4, "groups": 2, "most": 2.5}]


@pytest.mark.parametrize("given", GROUPS, ids=str)
def test_a_group_is_limited_as_a_whole_and_no_member_alone(given):
    """Counted provider by provider, with the sizes of the groups written down here."""
    problem = bridle.problem("recommendation", horizon=50, seed=1, **given)
    d, rng = problem.domain.dim, np.random.default_rng(0)
    groups = {5: [[0, 1, 2], [3, 4]], 7: [[0, 1, 2], [3, 4], [5, 6]], 4: [[0, 1], [2, 3]]}[d]
    alone, hours = rounds(bridle.problem("recommendation", horizon=50, seed=1, dim=d), 50), rounds(problem, 50)
    v = alone.constraints[0].A[:, d:, :].sum(axis=1) / (1.0 - d * min(1.0, 2.4 / d))
    np.testing.assert_array_equal(hours.cost.a, alone.cost.a)
    assert problem.constants["constraints"] == 2 * len(groups)
    for t in (0, 24, 49):
        x = rng.dirichlet(np.ones(d))
        attention, g = v[t] * x, records.take(hours, float(t)).constraints[0].value(x)
        for i, group in enumerate(groups):
            even = len(group) / d * attention.sum()
            assert g[i] == pytest.approx(given.get("least", 0.4) * even - attention[group].sum(), abs=1e-12)
            most = min(attention.sum(), given.get("most", 2.4) * even)
            assert g[len(groups) + i] == pytest.approx(attention[group].sum() - most, abs=1e-12)


@pytest.mark.parametrize("given", GROUPS, ids=str)
def test_the_constants_of_groups_are_nearly_attained(given):
    problem = bridle.problem("recommendation", horizon=10, seed=2, **given)
    known, hours = problem.constants, rounds(problem, HOURS)
    A = hours.constraints[0].A
    steepest = max(np.linalg.norm(hours.cost.a, axis=1).max(), np.linalg.norm(A, axis=2).max())
    assert 0.6 * known["lipschitz"] <= steepest <= known["lipschitz"]
    assert 0.9 * known["bound"] <= abs(A).max() <= known["bound"] * (1.0 + 1e-12)
    limits, high = problem.adversary.stream.limits, 1.0 + markets.PRESENT + markets.WANDER
    rows = limits.rounds(np.ones((1, problem.domain.dim)), np.full((1, problem.domain.dim), high)).constraints[0].A
    assert np.linalg.norm(rows, axis=2).max() == pytest.approx(high * limits.steepest, rel=1e-12)
    room = -A.mean(axis=2).max()
    assert known["slater"] <= room <= known["slater"] + 0.3 / problem.domain.dim * 3.0


def test_every_provider_in_a_group_of_its_own_is_what_it_is_without_groups():
    one, two = (bridle.problem("recommendation", horizon=10, seed=5, groups=groups) for groups in (None, 6))
    assert records.same(rounds(one, 100), rounds(two, 100))
    assert one.constants["lipschitz"] == two.constants["lipschitz"]


def test_clicks_and_attention_follow_the_readers_of_the_day():
    problem = bridle.problem("recommendation", horizon=10, dim=3)
    page, hours = problem.adversary.stream, rounds(problem, 300 * markets.HOURS)
    r = -hours.cost.a
    v = hours.constraints[0].A[:, 3:, :].sum(axis=1) / (1.0 - 3 * page.limits.cap)
    np.testing.assert_allclose(r.mean(axis=0), page.rate, rtol=0.05)
    np.testing.assert_allclose(v.mean(axis=0), 1.0, atol=0.01)
    turn = np.exp(2j * np.pi * np.arange(markets.HOURS) / markets.HOURS)
    for series in (r, v):
        day = series.reshape(-1, markets.HOURS, 3).mean(axis=0)
        phase = np.angle(day.T @ turn) / (2 * np.pi)
        assert abs((phase - page.peak + 0.5) % 1.0 - 0.5).max() < 0.02
    days = r.reshape(-1, markets.HOURS, 3).mean(axis=1) / page.rate  # news last for a day
    assert 0.45 < abs(days - 1.0).max() <= markets.NEWS
    assert abs(np.corrcoef(days[:-1, 0], days[1:, 0])[0, 1]) < 0.2
    assert ((markets.CLICKS[0] <= page.rate) & (page.rate <= markets.CLICKS[1])).all()


def test_the_best_shares_in_hindsight_are_those_of_another_solver():
    problem = bridle.problem("recommendation", horizon=150, seed=4)
    trace = bridle.play(bridle.policy("anytime", problem.domain), problem)
    hours, x = rounds(problem, 150), cp.Variable(6)
    holds = [hours.constraints[0].A.reshape(-1, 6) @ x <= 0, x >= 0, cp.sum(x) == 1]
    program = cp.Problem(cp.Minimize(hours.cost.a.sum(axis=0) @ x), holds)
    program.solve(solver=cp.CLARABEL)
    assert bridle.best_action(trace).cost == pytest.approx(program.value, rel=1e-7)


# --- real ratings -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_with_ratings_a_round_is_a_hundred_real_ones():
    """Counted rating by rating, from the files."""
    ratings, films = real("ratings"), real("films")
    problem = bridle.problem("recommendation", horizon=1000, data="ratings", least=0.3, most=2.0)
    rounds, page = problem.adversary.replay(0, 1000), problem.domain.dim
    year = {film: films.categories["release_year"][int(code)] for film, code in zip(films["item_id"], films["release_year"], strict=True)}
    order = np.argsort(ratings["timestamp"], kind="stable")
    x = np.array([0.3, 0.25, 0.2, 0.05, 0.15, 0.05])
    without = int(np.argmax((np.einsum("tii->ti", rounds.constraints[0].A[:, :6]) == 0.0).any(axis=1)))  # a film of some era
    for t in (0, 500, 999, without):
        asked, liked = np.zeros(page), np.zeros(page)
        for row in order[100 * t : 100 * t + 100]:
            name = year[ratings["item_id"][row]]
            born = int(name) if name.isdigit() else 1990
            era = 0 if born < 1970 else 1 if born < 1980 else 2 if born < 1990 else 3 if born < 1995 else 4 if born < 1997 else 5
            asked[era] += 1
            liked[era] += ratings["rating"][row] >= 4
        rate = np.array([liked[i] / asked[i] if asked[i] else liked.sum() / 100 for i in range(page)])
        one, v = records.take(rounds, float(t)), 6 * asked / 100
        assert one.cost.value(x) == pytest.approx(-100.0 * rate @ x, rel=1e-12)
        shares = v * x
        np.testing.assert_allclose(one.constraints[0].value(x)[:6], 0.3 / 6 * shares.sum() - shares, atol=1e-14)
        np.testing.assert_allclose(one.constraints[0].value(x)[6:], shares - 2.0 / 6 * shares.sum(), atol=1e-14)
    assert asked.min() == 0.0 < liked.sum()
    assert problem.constants["rounds"] == 1000


@pytest.mark.parametrize("groups", [None, 2])
def test_with_ratings_the_constants_are_attained(groups):
    real("ratings"), real("films")
    problem = bridle.problem("recommendation", horizon=10, data="ratings", groups=groups)
    rounds = problem.adversary.replay(0, 1000)
    corner = [abs(rounds.constraints[0].A @ x).max() for x in np.eye(6)]
    slopes = np.linalg.norm(rounds.cost.a, axis=1).max(), np.linalg.norm(rounds.constraints[0].A, axis=2).max()
    assert max(corner) == pytest.approx(problem.constants["bound"], rel=1e-12)
    assert max(slopes) == pytest.approx(problem.constants["lipschitz"], rel=1e-12)
    assert "feasible" not in problem.constants


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data": "ratings", "dim": 7}, "dim must be 6, the eras of films, where data is ratings, not 7"),
        ({"data": "rating"}, r"unknown data 'rating'; did you mean ratings\?"),
        (
            {"data": "ratings", "horizon": 1001},
            "horizon must be at most 1000, the rounds that problem recommendation on ratings has, not 1001",
        ),
    ],
)
def test_what_ratings_cannot_give_is_refused_in_words(given, message):
    real("ratings"), real("films")
    with pytest.raises(bridle.InputError, match=message):
        bridle.problem("recommendation", **{"horizon": 10, **given})


# --- both -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", made_in(markets))
def test_rounds_are_the_same_however_they_are_asked_for(name):
    adversary = bridle.problem(name, horizon=10, seed=4).adversary
    whole = records.leaves(adversary.replay(0, 100))
    n = adversary.stream.length
    for start, stop in ((0, 1), (n - 1, n + 1), (n, 2 * n), (2 * n - 1, 100), (99, 100), (50, 50)):
        for leaf, part in records.leaves(adversary.replay(start, stop)).items():
            np.testing.assert_array_equal(part, whole[leaf][start:stop])

"""Portfolios on prices from a file, with limits that are known before acting, and what their games are worth."""

from __future__ import annotations

import json
from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle import cli
from bridle.comparisons.analysis import ranking
from bridle.comparisons.cell import perform
from bridle.comparisons.spec import grid
from bridle.game.metrics import measures
from bridle.game.summary import summary
from bridle.problems import portfolios
from helpers.scripts import ROOT, script

DAYS, ASSETS = 160, 4


@pytest.fixture
def prices(tmp_path):
    """A file of prices with dates, and the price relatives that it holds."""
    rng = np.random.default_rng(4)
    relatives = np.exp(0.01 * rng.standard_normal((DAYS, ASSETS)) * [1.0, 2.0, 0.5, 3.0])
    table = 100.0 * np.cumprod(np.vstack([np.ones(ASSETS), relatives]), axis=0)
    lines = ["date,alpha,beta,gamma,delta", *(f"2020-01-{t},{','.join(map(repr, row))}" for t, row in enumerate(table.tolist()))]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, relatives


def test_a_file_of_prices_is_a_market(prices):
    path, relatives = prices
    problem = bridle.problem("portfolio", horizon=90, data=str(path), lookback=20)
    rounds = problem.adversary.replay(0, 90)
    np.testing.assert_allclose(rounds.cost.a, relatives[20:110], rtol=1e-12)
    seen = np.cov(relatives[:20].T) * 252.0
    np.testing.assert_allclose(rounds.constraints[0].P[0], 2.0 * seen, rtol=1e-9)
    assert rounds.constraints[0].b[0] == pytest.approx(-1.5 * seen.mean())
    assert problem.constants["rounds"] == DAYS - 20
    assert problem.constants["exp_concavity"] == 1.0
    same = path.with_name("relatives.csv")
    same.write_text("\n".join(["alpha,beta,gamma,delta", *(",".join(map(repr, row)) for row in relatives.tolist())]))
    again = bridle.problem("portfolio", horizon=90, data=str(same), lookback=20, relatives=True)
    np.testing.assert_allclose(again.adversary.replay(0, 90).cost.a, rounds.cost.a, rtol=1e-12)


def test_a_file_that_changes_is_read_again(prices):
    path, _ = prices
    before = bridle.problem("portfolio", horizon=20, data=str(path), lookback=20).constants["rounds"]
    path.write_text("\n".join(path.read_text().splitlines()[:100]) + "\n")
    assert bridle.problem("portfolio", horizon=20, data=str(path), lookback=20).constants["rounds"] == before - 62


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "its first line must name the columns"),
        ("a,b\n", "has no rows under its names"),
        ("1.0,2.0\n1.5,2.5\n", "must name its columns in the first line"),
        ("a\n1.0\n2.0\n", "must have columns of two assets or more, not of a alone"),
        ("a,b\n1.0,2.0\n1.0\n", "line 3: 1 fields stand under 2 names"),
        ("a,b\n1.0,2.0\n1.0,\n", "line 3: b must be a finite number, not ''"),
        ("a,b\n1.0,2.0\nnan,1.0\n", "line 3: a must be a finite number, not 'nan'"),
        ("a,b\n1.0,2.0\n1.0,-3\n", "line 3: the price of b must be above 0, not -3"),
        ("a,b\n1.0,2.0\n\n1.0,0\n", "line 4: the price of b must be above 0, not 0"),
        ("day,a,b\nmon,1.0,2.0\ntue,1.0,x7\n", "line 3: b must be a finite number, not 'x7'"),
        ("a,b\n1.0,2.0\n1.0,1e999\n", "line 3: b must be a finite number, not '1e999'"),
        ("a,b\n1.0,2.0\n1.1,2.1\n1.0,2.0\n", "lookback must be below 2, the days that mine.csv has, not 2"),
    ],
)
def test_a_bad_file_is_one_clear_error(text, words, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(bridle.InputError, match=words):
        bridle.problem("portfolio", horizon=1, data=str(path), lookback=2)


def test_what_is_wrong_with_the_arguments(prices, tmp_path):
    path, _ = prices
    for given, words in (
        ({"data": str(tmp_path / "none.csv")}, "there is no file"),
        ({"data": "djia", "relatives": True}, "relatives is for a file of prices only"),
        ({"data": str(path), "relatives": 2}, "relatives must be true or false"),
        ({"data": str(path), "known": "yes"}, "known must be true or false"),
        ({"data": "mine.txt"}, "unknown data"),
    ):
        with pytest.raises(bridle.InputError, match=words):
            bridle.problem("portfolio", horizon=10, **given)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00a,b\n")
    with pytest.raises(bridle.InputError, match=r"binary.csv cannot be read as CSV"):
        bridle.problem("portfolio", horizon=10, data=str(binary))


def test_measures_by_hand():
    """Two assets, three days, worked out on paper: half and half, then what the day before left is rebalanced."""
    relatives = np.array([[2.0, 1.0], [1.0, 1.0], [0.5, 1.0]])
    rounds = bridle.Round(bridle.functions.LogWealthLoss(relatives, relatives.min(axis=1)), ())
    decisions, costs = np.full((3, 2), 0.5), -np.log([1.5, 1.0, 0.75])
    found = portfolios.measures(rounds, decisions, costs, np.array([[0.1], [0.0], [-1.0]]))
    logs = np.array([log(1.5), 0.0, log(0.75)])
    assert found == pytest.approx(
        {
            "wealth": 1.125, "growth": 84.0 * log(1.125), "violated": 1.0 / 3.0,
            "volatility": sqrt(252.0 * (np.mean(logs**2) - np.mean(logs) ** 2)), "turnover": (2.0 / 3.0 - 0.5) / 3.0,
        }
    )  # fmt: skip


def test_a_game_says_what_it_is_worth(prices, capsys):
    problem = bridle.problem("portfolio", horizon=100, data=str(prices[0]), lookback=20)
    trace = bridle.play(bridle.policy_for("adagrad", problem), problem, keep="decisions")
    own = measures(trace)
    assert list(own) == ["wealth", "growth", "volatility", "turnover", "violated"]
    assert own["wealth"] == pytest.approx(np.exp(-trace.totals.cost))
    assert own["violated"] == np.mean(trace.values[:, 0] > 0.0)
    assert summary(trace)["measures"] == pytest.approx(own)
    several = bridle.play(bridle.policy_for("adagrad", problem), problem, keep="decisions", seed=[0, 3])
    assert measures(several)["wealth"][0] == pytest.approx(own["wealth"])
    assert measures(several)["wealth"].shape == (2,)
    bare = bridle.play(bridle.policy_for("adagrad", problem), problem)
    assert summary(bare)["measures"] == {}
    with pytest.raises(bridle.InputError, match="keep='decisions'"):
        measures(bare)
    with pytest.raises(SystemExit) as end:
        cli.main(["play", "portfolio", "--set", f"data={prices[0]}", "--set", "lookback=20", "--horizon", "100", "--json", "-"])
    facts = json.loads(capsys.readouterr().out)
    assert (end.value.code, set(facts["measures"])) == (0, set(own))


@pytest.mark.parametrize("policy", ["adagrad", "ons", "anytime", "adaftrl"])
def test_limits_that_are_known_are_kept_in_games(policy, prices):
    told = {"horizon": 120, "data": str(prices[0]), "lookback": 20, "risk": 1.02}
    free, kept = (bridle.problem("portfolio", **told, known=known) for known in (False, True))
    blind, seeing = (bridle.play(bridle.policy_for(policy, problem), problem, keep="decisions") for problem in (free, kept))
    assert bridle.ccv(seeing) == 0.0
    assert measures(seeing)["violated"] == 0.0
    if policy not in ("anytime", "adaftrl"):
        assert bridle.ccv(blind) > 0.0
    facts = summary(seeing)
    assert facts["regret"] is not None
    if policy == "adaftrl":
        assert "cannot follow" in facts["bound_why"]
    else:
        assert facts["regret_bound_holds"]


def test_a_known_game_is_the_session_that_is_told(prices):
    problem = bridle.problem("portfolio", horizon=60, data=str(prices[0]), lookback=20, risk=1.02, known=True)
    trace = bridle.play(bridle.policy_for("ons", problem), problem, keep="decisions")
    session = bridle.Session(bridle.policy_for("ons", problem))
    rounds = problem.adversary.replay(0, 60)
    for t in range(60):
        limit = bridle.Quadratic(rounds.constraints[0].P[t], offset=rounds.constraints[0].b[t])
        x, r = session.decide(known=limit), rounds.cost.a[t]
        np.testing.assert_allclose(x, trace.decisions[t], atol=1e-8)
        session.observe(f=-log(r @ x), df=-r / (r @ x), g=float(limit.value(x)), dg=limit.grad(x))
    assert session.certificate().moved is None


@pytest.mark.slow
def test_known_limits_run_in_python_one_run_at_a_time(prices):
    problem = bridle.problem("portfolio", horizon=30, data=str(prices[0]), lookback=20, known=True)
    policy = bridle.policy_for("adagrad", problem)
    with pytest.raises(bridle.InputError, match="one run at a time"):
        bridle.play(policy, problem, seed=[0, 1])
    with pytest.raises(bridle.InputError, match="engine 'python' only"):
        bridle.play(policy, problem, engine="jax")
    none = bridle.problem("portfolio", horizon=30, data=str(prices[0]), lookback=20, known=True, risk=1e-3)
    with pytest.raises(bridle.InputError, match="cannot be kept by any decision"):
        bridle.play(bridle.policy_for("adagrad", none), none)


def test_the_example_keeps_the_limit_and_its_promise(prices):
    example = script("examples/portfolio.py")
    for found in (example.main(days=160), example.main(str(prices[0]))):
        assert 0.05 < found["largest predicted volatility"] <= 0.15
        assert found["growth after costs"] < found["growth"]
        assert 0.0 < found["traded a day"] < 0.05
        assert found["proved: log-wealth behind the best portfolio that keeps every limit, at most"] < 5.0


def test_a_comparison_has_the_measures(prices):
    cells = grid([f"portfolio:data={prices[0]}:lookback=20:known=1"], ["adagrad", "ons"], horizons=[60], seeds=2).cells
    rows = [perform(cell)["row"] for cell in cells]
    assert all(set(json.loads(row["measures"])) == {"wealth", "growth", "volatility", "turnover", "violated"} for row in rows)
    for row in ranking(rows):
        games = [json.loads(one["measures"])["growth"] for one in rows if one["policy"] == row["policy"]]
        assert row["measures"]["growth"] == pytest.approx(np.median(games))


def test_the_page_shows_what_was_measured():
    benchmark, page = script("benchmarks/portfolio.py"), (ROOT / "docs" / "portfolio.md").read_text()
    rows = json.loads((ROOT / "benchmarks" / "portfolio.json").read_text())
    assert benchmark.markdown(rows) in page, "run benchmarks/portfolio.py"
    assert [row["data"] for row in rows] == list(portfolios.PRICES)


def test_moving_towards_least_variance_stops_at_the_limit():
    towards = script("benchmarks/portfolio.py").towards
    covariance, least = np.diag([4.0, 1.0]), np.array([0.2, 0.8])
    x = towards(np.array([1.0, 0.0]), least, covariance, 1.0)
    assert x @ covariance @ x == pytest.approx(1.0)
    assert x.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(towards(least, least, covariance, 0.81), least)
    np.testing.assert_array_equal(towards(np.array([0.5, 0.5]), least, covariance, 2.0), [0.5, 0.5])

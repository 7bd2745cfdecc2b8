"""Recorded auctions: the best choice in hindsight, a pacer's play, the problem for policies, files and the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import linprog

import bridle
from bridle import cli, records
from bridle.core import InputError
from bridle.problems._auctions import AuctionLog


def drawn(rounds: int = 500, seed: int = 0) -> AuctionLog:
    """Values and prices with heavy tails, some of them worth nothing and some free."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(rounds)
    values, prices = (
        np.exp(z) * (rng.random(rounds) > 0.05),
        np.exp(0.5 * z) * (rng.pareto(2.2, rounds) + 0.3) * (rng.random(rounds) > 0.02),
    )
    return AuctionLog(values, prices)


def pacer_for(log: AuctionLog, budget: float, auction: str = "second") -> bridle.Pacer:
    return bridle.Pacer(budget, log.rounds, goal="value", unit=log.unit, auction=auction)


def written(folder, log: AuctionLog, name: str = "auctions.csv") -> str:
    path = folder / name
    rows = "\n".join(f"{t // 3},{v!r},{p!r}" for t, (v, p) in enumerate(zip(log.values.tolist(), log.prices.tolist(), strict=True)))
    path.write_text(f"time,value,price\n{rows}\n")
    return str(path)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0, 5.0])
def test_the_best_choice_is_the_linear_programs(share):
    log = drawn(80)
    budget = share * log.cost
    program = linprog(-log.values, A_ub=log.prices[None], b_ub=[budget], bounds=(0.0, 1.0))
    assert log.best(budget) == pytest.approx(-program.fun, rel=1e-9)


@pytest.mark.parametrize("auction", ["second", "first"])
def test_a_pacer_plays_a_record_by_the_rules_of_its_auctions(auction):
    log = drawn()
    budget = 0.1 * log.cost
    found = log.play(pacer_for(log, budget, auction))
    pacer = pacer_for(log, budget, auction)
    value = paid = won = 0.0
    for worth, others in zip(log.values.tolist(), log.prices.tolist(), strict=True):
        bid = pacer.bid(worth)
        cost = bid if auction == "first" else others
        wins = bid > 0.0 and others <= bid and cost <= pacer.left
        value, paid, won = value + worth * wins, paid + cost * wins, won + wins
        pacer.pay(cost if wins else 0.0)
    assert (found.value, found.won) == (value, won)
    assert found.paid == pytest.approx(paid, rel=1e-3)  # a pacer counts in whole units, rounded up
    assert found.paid >= paid
    assert found.paid <= budget
    assert found.spent[-1] == found.paid
    assert (np.diff(found.spent) >= 0.0).all()
    assert found.share <= 1.0
    assert found.share > (0.75 if auction == "second" else 0.4)


def test_nothing_is_bought_in_first_price_auctions_for_less_than_the_bid():
    log = AuctionLog(np.full(200, 2.0), np.full(200, 0.5))
    second, first = (log.play(pacer_for(log, 20.0, auction)) for auction in ("second", "first"))
    assert second.paid / second.won == pytest.approx(0.5, rel=1e-3)
    assert first.paid / first.won > 0.5


@pytest.mark.parametrize("auction", ["second", "first"])
@pytest.mark.parametrize("levels", [2, 9])
def test_the_problem_is_what_it_says(auction, levels, tmp_path):
    log = drawn(120)
    problem = bridle.problem("auctions", horizon=120, data=written(tmp_path, log), share=0.2, auction=auction, levels=levels)
    stream, multipliers, rate = problem.adversary.replay(0, 120), log.multipliers(levels), 0.2 * log.cost / 120
    assert multipliers[0] == 0.0
    rng = np.random.default_rng(1)
    for t, (cost, spend) in enumerate(zip(records.unstack(stream.cost, 120), records.unstack(stream.constraints[0], 120), strict=True)):
        x = rng.dirichlet(np.ones(levels))
        gained = paid = 0.0
        for probability, multiplier in zip(x, multipliers, strict=True):
            bid = multiplier * log.values[t]
            if bid > 0.0 and log.prices[t] <= bid:
                gained += probability * log.values[t]
                paid += probability * (bid if auction == "first" else log.prices[t])
        assert float(cost.value(x)) == pytest.approx(-gained, abs=1e-12)
        assert float(spend.value(x)) == pytest.approx(paid - rate, abs=1e-12)
    known = problem.constants
    gradients = [np.linalg.norm(rows.a, axis=1).max() for rows in (stream.cost, stream.constraints[0])]
    assert known["lipschitz"] == pytest.approx(max(gradients), rel=1e-12)
    corners = stream.constraints[0].a + stream.constraints[0].b[:, None]  # an affine function is largest at a corner
    assert known["bound"] == pytest.approx(np.abs(corners).max(), rel=1e-12)
    for action in (known["safe"], known["feasible"]):
        assert action.tolist() == [1.0] + [0.0] * (levels - 1)
    assert known["slater"] == pytest.approx(rate)


def test_each_multiplier_wins_about_equally_many_more_and_the_last_one_all():
    log = drawn(1000)
    worth = log.values > 0.0
    wins = [int(((log.prices <= m * log.values) & worth & (m > 0.0)).sum()) for m in log.multipliers(11)]
    assert wins[-1] == worth.sum()
    assert np.diff(wins) == pytest.approx(worth.sum() / 10, abs=25)  # those that are free come with the first


def test_units_do_not_matter():
    log = drawn()
    large = AuctionLog(1e3 * log.values, 1e-3 * log.prices)
    one, two = (each.play(pacer_for(each, 0.1 * each.cost)) for each in (log, large))
    assert two.won == one.won
    assert two.share == pytest.approx(one.share, rel=1e-9)
    np.testing.assert_allclose(large.multipliers(5), 1e-6 * log.multipliers(5), rtol=1e-12)


def test_policies_play_it_and_a_rate_limit_knows_what_is_safe(tmp_path):
    problem = bridle.problem("auctions", horizon=300, data=written(tmp_path, drawn(300)), share=0.2)
    for name in ("soft", "anytime", "rate"):
        policy = bridle.policy_for(name, problem)
        trace = bridle.play(policy, problem)
        assert float(trace.totals.cost) < 0.0
    assert policy.parameters["safe"][0] == 1.0


BAD = {
    "value\n1\n": "must have a column price; its columns are value",
    "value,price\n1,-2\n": "prices must be 0 or above, not -2 in auction 1",
    "value,price\n1,2\n-1,2\n": "values must be 0 or above, not -1 in auction 2",
    "time,value,price\n2,1,1\n1,1,1\n": "time must not go back, as from 2.0 to 1.0 in row 2",
    "date,value,price\n2026-02-01,1,1\n2026-01-31,1,1\n": "date must not go back, as from 2026-02-01 to 2026-01-31 in row 2",
    "value,price\n0,1\n": "value must be above 0 in some auction",
    "value,price\n1,0\n": "price must be above 0 in some auction",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_record_is_one_error_that_names_the_place(text, tmp_path):
    path = tmp_path / "auctions.csv"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        bridle.problem("auctions", horizon=1, data=str(path))
    assert str(raised.value).startswith(f"data: {path}")
    assert BAD[text] in str(raised.value)


def test_what_else_can_be_wrong_is_named(tmp_path):
    path = written(tmp_path, drawn(20))
    for given, message in (
        ({"data": None}, "data must be a file of recorded auctions, .csv or .npz, with columns value and price, not None"),
        ({"data": "google"}, "not 'google'"),
        ({"data": path, "auction": "third"}, "third"),
        ({"data": path, "share": 0.0}, "share must be above 0, not 0.0"),
        ({"data": path, "levels": 1}, "levels must be 2 or above, not 1"),
        ({"data": path, "horizon": 21}, "horizon must be at most 20, the rounds that problem auctions on"),
    ):
        with pytest.raises(InputError) as raised:
            bridle.problem("auctions", **{"horizon": 10, **given})
        assert message in str(raised.value), given
    for call, message in (
        (lambda: AuctionLog([1.0], [1.0, 2.0]), "prices must have shape (1,), not (2,)"),
        (lambda: AuctionLog([0.0], [1.0]).multipliers(3), "values must be above 0 in some auction"),
        (lambda: drawn().best(-1.0), "budget must be 0 or above, not -1.0"),
    ):
        with pytest.raises(InputError) as raised:
            call()
        assert message in str(raised.value)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["pace", *words])
    return int(ended.value.code or 0)


def test_the_command_line_paces_a_record(tmp_path, capsys):
    log = drawn()
    path = written(tmp_path, log)
    assert run(path, "--share", "0.1", "--json", "-") == 0
    facts = json.loads(capsys.readouterr().out)
    found = log.play(pacer_for(log, 0.1 * log.cost))
    assert (facts["value"], facts["won"], facts["auctions"]) == (found.value, found.won, 500)
    assert facts["share_of_best"] == pytest.approx(found.share)
    assert facts["spent"] <= facts["budget"]
    assert run(path, "--budget", str(0.1 * log.cost), "--auction", "first") == 0
    shown = capsys.readouterr().out
    assert "best choice in hindsight" in shown
    assert "independent draws" not in shown  # of first-price auctions nothing is proved


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "one of --budget and --share must be given, not neither"),
        (("--budget", "3", "--share", "0.1"), "one of --budget and --share must be given, not --budget 3 and --share 0.1"),
        (("--budget", "-1"), "--budget must be above 0, not -1.0"),
        (("--share", "0.1", "--auction", "third"), "third"),
        (("--share", "0.1", "--goal", "fame"), "fame"),
    ],
)
def test_the_command_line_says_what_is_wrong_in_one_line(words, message, tmp_path, capsys):
    assert run(written(tmp_path, drawn(20)), *words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1

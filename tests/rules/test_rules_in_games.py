"""Rules in games: a policy with rules plays a problem as a session does, and what cannot be played so is named."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle import rules
from bridle.core import InputError
from bridle.game.summary import summary


def problem_of(folder, rounds=120):
    t, rng = np.arange(rounds), np.random.default_rng(0)
    np.savez(
        folder / "demand.npz", a=10.0 + 4.0 * np.sin(2.0 * np.pi * t / 24) + rng.standard_normal(rounds), b=rng.gamma(2.0, 3.0, rounds)
    )
    return bridle.problem("capacity", horizon=rounds, data=str(folder / "demand.npz"))


@pytest.mark.parametrize("per", ["round", "coordinate"])
def test_a_game_is_what_a_session_plays(per, tmp_path):
    problem = problem_of(tmp_path)
    policy = bridle.policy_for("rate", problem, at_most=0.1, rules=rules.demand_rules(problem.domain, day=24), rules_per=per)
    trace = bridle.play(rules.playing(policy), problem, keep="decisions")
    session = bridle.Session(policy, certify=False)
    for x, demand in zip(trace.decisions, problem.adversary.replay(0, 120).constraints[0].b, strict=True):
        np.testing.assert_array_equal(session.decide(), x)
        session.observe(f=float(x.sum()), df=np.ones(2), g=demand - x, dg=-np.eye(2))
    found = bridle.violation_rates(trace)
    assert found.measured.tolist() == [limit.measured for limit in session.rates]
    assert found.proved.tolist() == [limit.proved for limit in session.rates]
    assert summary(trace)["rates"] == found.measured.tolist()
    assert rules.playing(policy).name == "rate with 31 rules"


def test_what_cannot_be_played_with_rules_is_named(tmp_path):
    problem = problem_of(tmp_path, 20)
    own = rules.demand_rules(problem.domain)
    for policy, message in (
        (bridle.policy_for("rate", problem), "policy must be one that mixes rules by itself, such as rate made with rules=, not"),
        (bridle.policy("anytime", problem.domain, rules=own), "policy must be one that mixes rules by itself"),
        (bridle.policy_for("rate", problem, rules=[*own, "forecast"]), "in a game nobody speaks for forecast"),
        (bridle.policy_for("rate", problem, rules=[*own, lambda past: None]), "in a game nobody speaks for <lambda> 21"),
    ):
        with pytest.raises(InputError) as raised:
            rules.playing(policy)
        assert message in str(raised.value)
    with pytest.raises(InputError, match="plays one run at a time, not 2: play the seeds one after the other"):
        bridle.play(rules.playing(bridle.policy_for("rate", problem, rules=own)), problem, seed=[0, 1])

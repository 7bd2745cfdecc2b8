"""The facts of a game: `summary` gives exactly these."""

from __future__ import annotations

import json

import pytest

import bridle
from bridle.game.summary import BOUNDED, summary


def game(name: str = "sinha2024", **parameters) -> bridle.Trace:
    problem = bridle.problem("halfspaces", horizon=30, dim=3)
    return bridle.play(bridle.policy_for(name, problem, **parameters), problem)


KINDS = {
    **dict.fromkeys(
        (
            "problem",
            "policy",
            "engine",
            "regret_why",
            "dynamic_why",
            "bound_why",
            "paper_why",
        ),
        str,
    ),
    **dict.fromkeys(
        (
            "cost",
            "regret",
            "ccv",
            "ccv_max",
            "soft_violation",
            "interval_violation",
            "squared_ccv",
            "dynamic_regret",
            "path_length",
            "movement",
            "regret_bound",
            "ccv_bound",
            "interval_bound",
            "soft_bound",
            "squared_bound",
            "dynamic_bound",
            "movement_bound",
            "regret_bound_paper",
            "ccv_bound_paper",
            "interval_bound_paper",
            "us_per_round",
            "seconds",
        ),
        (float, type(None)),
    ),
    **dict.fromkeys(
        (
            "horizon",
            "seed",
            "dim",
            "constraints",
        ),
        int,
    ),
    **dict.fromkeys(
        (
            "regret_bound_holds",
            "ccv_bound_holds",
            "interval_bound_holds",
            "soft_bound_holds",
            "squared_bound_holds",
            "dynamic_bound_holds",
            "movement_bound_holds",
        ),
        (bool, type(None)),
    ),
    **dict.fromkeys(("warnings",), list),
    **dict.fromkeys(
        (
            "ccv_each",
            "rates_asked",
            "rates",
            "rates_proved",
        ),
        list,
    ),
    **dict.fromkeys(
        (
            "parameters",
            "problem_parameters",
            "constants",
            "measures",
        ),
        dict,
    ),
}
"""The facts, and of what type each is for a single run."""


@pytest.mark.parametrize("name", ["sinha2024", "ogd"])
def test_a_summary_has_these_facts_of_these_kinds(name):
    made = summary(game(name))
    assert set(made) == set(KINDS)
    for fact, value in made.items():
        assert isinstance(value, KINDS[fact]), fact
    assert json.loads(json.dumps(made, allow_nan=False)) == made


def test_a_flag_says_whether_its_bound_held():
    made = summary(game())
    for measured, bound in BOUNDED:
        assert made[f"{bound}_holds"] == (None if made[bound] is None else made[measured] <= made[bound])
    assert made["ccv_bound_holds"] is True


def test_several_runs_have_a_figure_each():
    made = summary(game(beta=[0.1, 0.2]))
    measured = ("cost", "regret", "ccv", "ccv_max", "soft_violation", "interval_violation", "squared_ccv")
    figures = [made[fact] for fact in measured]
    assert [len(each) for each in figures] == [2] * len(figures)

"""The facts of a game: every list of them is read off `GameFacts`, and `summary` gives exactly these."""

from __future__ import annotations

import json

import pytest

import bridle
from bridle.game import summary as facts
from bridle.game.summary import GameFacts, summary


def game(name: str = "sinha2024", **parameters) -> bridle.Trace:
    problem = bridle.problem("halfspaces", horizon=30, dim=3)
    return bridle.play(bridle.policy_for(name, problem, **parameters), problem)


def test_lists_of_facts():
    assert facts.MEASURED == ("cost", "regret", "ccv", "ccv_max", "soft_violation", "interval_violation", "squared_ccv", "movement")
    assert facts.BOUNDED == (
        ("regret", "regret_bound"), ("ccv", "ccv_bound"), ("interval_violation", "interval_bound"), ("soft_violation", "soft_bound"),
        ("squared_ccv", "squared_bound"), ("dynamic_regret", "dynamic_bound"), ("movement", "movement_bound"),
    )  # fmt: skip
    assert tuple((measured, f"{bound}_paper") for measured, bound in facts.BOUNDED[:3]) == facts.PAPER_BOUNDED
    assert tuple((bound, f"{bound}_holds") for _, bound in facts.BOUNDED) == facts.HELD
    assert list(facts.FACT_KINDS) == list(GameFacts.__annotations__)
    named = {*facts.MEASURED, *(bound for _, bound in (*facts.BOUNDED, *facts.PAPER_BOUNDED))}
    assert {name for name, kind in facts.FACT_KINDS.items() if kind == "number"} == named | {
        "us_per_round",
        "seconds",
        "dynamic_regret",
        "path_length",
    }
    assert {name for name, kind in facts.FACT_KINDS.items() if kind == "flag"} == {name for _, name in facts.HELD}


KINDS = {
    "text": str, "number": (float, type(None)), "whole": int, "flag": (bool, type(None)), "texts": list, "numbers": list, "settings": dict,
}  # fmt: skip


@pytest.mark.parametrize("name", ["sinha2024", "ogd"])
def test_a_summary_has_these_facts_of_these_kinds(name):
    made = summary(game(name))
    assert list(made) == list(GameFacts.__annotations__)
    for fact, value in made.items():
        assert isinstance(value, KINDS[facts.FACT_KINDS[fact]]), fact
    assert json.loads(json.dumps(made, allow_nan=False)) == made


def test_a_flag_says_whether_its_bound_held():
    made = summary(game())
    for (measured, bound), (_, held) in zip(facts.BOUNDED, facts.HELD, strict=True):
        assert made[held] == (None if made[bound] is None else made[measured] <= made[bound])
    assert made["ccv_bound_holds"] is True


def test_several_runs_have_a_figure_each():
    made = summary(game(beta=[0.1, 0.2]))
    figures = [made[fact] for fact in facts.MEASURED if fact != "movement"]  # which is not kept here
    assert [len(each) for each in figures] == [2] * len(figures)


def test_marks_of_different_kinds_differ():
    """`typing` of some Pythons makes one annotation of equal marks, and the bounds of the paper then lose theirs."""
    marks = [facts.Measured(), facts.BoundOn("regret"), facts.PaperBoundOn("regret"), facts.HoldsFor("regret")]
    assert len(set(marks)) == 4

"""Exponents, bands and rankings against cases worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.comparisons import analysis

ROUNDS = [1, 3, 10, 31, 100, 316, 1000]


def game(policy, regret, ccv, seed=0, **more):
    row = {"problem": "p", "policy": policy, "horizon": 100, "seed": seed, "cost": 50.0, "regret": regret, "ccv": ccv}
    return row | {"us_per_round": 10.0} | more


def ranks(games):
    return {row["label"]: (row["rank"], row["pareto"]) for row in analysis.ranking(games)}


# --- exponents ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.0, 0.25, 0.5, 0.75, 1.0, -0.5])
def test_a_power_has_its_exponent_whatever_its_scale(power):
    for scale in (1e-6, 1.0, 1e6):
        assert analysis.exponent(ROUNDS, [scale * t**power for t in ROUNDS]) == pytest.approx(power, abs=1e-12)


def test_only_rounds_from_the_root_of_the_last_one_count():
    # sqrt(1000) = 31.6: rounds 100, 316 and 1000 count, the four before them do not
    late = [100.0**0.5, 316.0**0.5, 1000.0**0.5]
    assert analysis.exponent(ROUNDS, [9.0, -1.0, None, 0.0, *late]) == pytest.approx(0.5)
    # the root of 10,000 is a round itself and counts: slope through (100, 1), (1000, 1), (10000, 100) is half of 2 decades over 2
    assert analysis.exponent([1, 10, 100, 1000, 10000], [7.0, 7.0, 1.0, 1.0, 100.0]) == pytest.approx(1.0)
    assert analysis.exponent([1, 10, 100, 1000, 10000], [7.0, 7.0, None, 1.0, 100.0]) is None


def test_the_fitted_line_goes_through_the_curve():
    law = analysis.power_law(ROUNDS, [3.0 * t**0.75 for t in ROUNDS])
    assert (law.first, law.last) == (100.0, 1000.0)
    assert law.at(500.0) == pytest.approx(3.0 * 500.0**0.75)


def test_since_moves_where_the_fit_begins():
    assert analysis.exponent([10, 100, 1000], [1.0, 10.0, 1000.0], since=1) == pytest.approx(1.5)
    assert analysis.exponent([10, 100, 1000], [1.0, 10.0, 1000.0], since=100) == pytest.approx(2.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, None, float("nan"), float("inf")])
def test_no_exponent_where_a_late_value_is_not_above_zero_or_not_known(bad):
    assert analysis.exponent([1, 10, 100, 1000], [1.0, 2.0, bad, 4.0]) is None


@pytest.mark.parametrize("rounds", [[], [1], [1, 100], [1, 5, 100]])
def test_no_exponent_from_fewer_than_two_late_rounds(rounds):
    assert analysis.exponent(rounds, [2.0] * len(rounds)) is None


# --- bands ----------------------------------------------------------------------------------------------------------------------------


def test_a_band_is_the_median_between_two_quantiles():
    values = [1.0, 2.0, 4.0, 8.0, 100.0]
    found = analysis.band([{"curve_rounds": [1, 2], "curve_regret": [0.0, value]} for value in values])
    assert found.rounds == [1, 2]
    assert found.median == [0.0, 4.0]
    # between order statistics: 0.1 * 4 = 0.4 of the way from 1 to 2, and 3.6: from 8 to 100
    assert found.low == [0.0, pytest.approx(1.4)]
    assert found.high == [0.0, pytest.approx(8.0 + 0.6 * 92.0)]
    assert found.runs == 5


def test_a_band_of_one_seed_is_its_curve():
    found = analysis.band([{"curve_rounds": [1, 2], "curve_ccv": [3.0, None]}], "ccv")
    assert found == ([1, 2], [3.0, None], [3.0, None], [3.0, None], 1)


def test_seeds_without_a_curve_do_not_count_and_only_shared_rounds_are_kept():
    rows = [
        {"curve_rounds": [1, 2, 4], "curve_regret": [1.0, 2.0, 3.0]},
        {"curve_rounds": [1, 3, 4], "curve_regret": [3.0, 9.0, float("nan")]},
        {"curve_rounds": [1, 4], "curve_regret": None},
        {"curve_rounds": [1, 4], "curve_regret": [None, None]},
        {"curve_rounds": None, "does_not_apply": "no"},
    ]
    found = analysis.band(rows)
    assert (found.rounds, found.median, found.runs) == ([1, 4], [2.0, 3.0], 2)
    assert analysis.band(rows, "ccv") == ([], [], [], [], 0)


# --- rankings -------------------------------------------------------------------------------------------------------------------------


def test_the_score_is_the_larger_of_two_in_rounds_of_the_worst_kind():
    """Ties go to the smaller violation, then to the smaller regret."""
    pairs = (("a", 10.0, 20.0), ("b", 20.0, 10.0), ("c", 40.0, 5.0), ("d", 40.0, 4.0), ("e", 0.0, 0.0), ("f", 39.0, 20.0))
    found = analysis.ranking([game(*pair, cost_range=2.0, violation_range=0.5) for pair in pairs])
    expected = [("e", 1, 0.0), ("d", 2, 20.0), ("c", 3, 20.0), ("b", 4, 20.0), ("a", 5, 40.0), ("f", 6, 40.0)]
    assert [(row["label"], row["rank"], row["score"]) for row in found] == expected
    assert (found[-1]["regret_lost"], found[-1]["ccv_lost"]) == (19.5, 40.0)
    assert [row["pareto"] for row in found] == [True, False, False, False, False, False]
    assert [row["label"] for row in analysis.ranking([game(*pair) for pair in pairs])] == ["e", "b", "a", "f", "d", "c"]  # nothing known
    half = [game(*pair, **({"cost_range": 2.0} if pair[0] == "a" else {})) for pair in pairs]
    assert [row["score"] for row in analysis.ranking(half)] == [0.0, 20.0, 20.0, 39.0, 40.0, 40.0]  # one unit for all, or none


def test_no_violation_goes_before_much_of_it():
    """What was seen the other way round: a regret of 28, of a bound of 63, with no violation, behind a CCV of 213.6."""
    pair = [game("violates", 9.0, 213.6), game("keeps", 28.0, 0.0, regret_bound=63.0)]
    assert [row["label"] for row in analysis.ranking(pair)] == ["keeps", "violates"]
    others = [game("ignores", -1900.0, 2600.0), game("lazy", 300.0, 0.0), game("shy", 60.0, 0.5)]
    assert [row["label"] for row in analysis.ranking([*pair, *others])] == ["keeps", "shy", "violates", "lazy", "ignores"]


def test_minimax_is_ranked_as_people_would():
    """Regrets that are all alike do not hide violations that are not: medians of real games."""
    field = {
        "neely2017": (17.59, 97.9), "guo2022": (27.85, 1.8e-14), "anytime": (28.07, 6e-15), "sinha2024": (4.894, 258.1),
        "practice": (31.81, 3.45), "ogd": (12.18, 266.6),
    }  # fmt: skip
    found = analysis.ranking([game(name, *pair, cost_range=2.0, violation_range=1.25) for name, pair in field.items()])
    assert [row["label"] for row in found] == ["guo2022", "anytime", "practice", "neely2017", "sinha2024", "ogd"]


def test_a_hair_of_regret_does_not_outweigh_much_violation():
    games = [game("clean", 0.8, 0.0), game("bold", -30.0, 52.0), game("lazy", 1900.0, 0.0), game("wild", -1000.0, 1900.0)]
    assert [row["label"] for row in analysis.ranking(games)] == ["clean", "bold", "lazy", "wild"]


FIELDS = st.lists(st.tuples(st.floats(-1e4, 1e4), st.floats(0.0, 1e4)), min_size=1, max_size=7)
"""Regret and CCV of several policies."""


def field(pairs, units=(1.0, 1.0)):
    ranges = {"cost_range": 2.0 * units[0], "violation_range": 0.5 * units[1]}
    return [game(name, units[0] * r, units[1] * v, cost=units[0], **ranges) for name, (r, v) in zip("abcdefgh", pairs, strict=False)]


def order(games):
    return [(row["label"], row["rank"]) for row in analysis.ranking(games)]


@given(FIELDS)
def test_nobody_stands_above_one_that_is_as_good_in_both_and_better_in_one(pairs):
    found = analysis.ranking(field(pairs))
    losses = {row["label"]: (row["regret_lost"], row["ccv_lost"]) for row in found}
    for one in found:
        for other in found:
            mine, its = losses[one["label"]], losses[other["label"]]
            if mine[0] <= its[0] and mine[1] <= its[1] and mine != its:
                assert one["rank"] < other["rank"]
                assert not other["pareto"]
            assert (mine == its) == (one["rank"] == other["rank"])
    assert any(row["pareto"] for row in found if row["rank"] == 1)


POWERS = st.sampled_from([2.0**-9, 0.25, 8.0, 2.0**11])


@given(FIELDS, POWERS, POWERS)
def test_the_order_does_not_depend_on_units(pairs, cost_unit, violation_unit):
    """Of costs and of constraints, each; what is rounding is left out, since it has a unit."""
    clear = [(round(regret), round(ccv)) for regret, ccv in pairs]
    assert order(field(clear)) == order(field(clear, (cost_unit, violation_unit)))


@given(FIELDS, st.integers(0, 6))
def test_who_of_two_is_better_depends_on_nobody_else(pairs, left_out):
    games = field(pairs)
    without = [label for label, _ in order([row for i, row in enumerate(games) if i != left_out])]
    assert without == [label for label, _ in order(games) if label != "abcdefgh"[left_out]]


def test_regret_below_zero_counts_as_zero():
    # were -900 better than 0, reckless would be first by regret and on the front
    assert ranks([game("reckless", -900.0, 50.0), game("careful", 0.0, 1.0)]) == {"careful": (1, True), "reckless": (2, False)}
    assert analysis.ranking([game("reckless", -900.0, 50.0)])[0]["regret"] == -900.0


def test_equal_policies_share_a_rank():
    assert ranks([game("a", 1.0, 1.0), game("b", 1.0, 1.0), game("c", 2.0, 2.0)]) == {"a": (1, True), "b": (1, True), "c": (3, False)}


def test_rounding_is_no_difference():
    # CCV below 1e-9 a round, regret below 1e-6 of the cost: equal
    assert ranks([game("a", 1e-5, 1e-8), game("b", 0.0, 0.0)]) == {"a": (1, True), "b": (1, True)}
    assert ranks([game("a", 1e-3, 0.0), game("b", 0.0, 0.0)]) == {"a": (2, False), "b": (1, True)}


@pytest.mark.parametrize("units", [(1e-9, 1.0), (1.0, 1e-12), (1e9, 1e9)])
def test_small_units_are_no_rounding(units):
    pairs = [(9.0, 1.0), (1.0, 20.0), (5.0, 2.0)]
    assert order(field(pairs, units)) == order(field(pairs)) != order(field([(0.0, 0.0)] * 3))


def test_where_a_regret_is_not_known_all_are_ranked_by_cost():
    games = [game("a", 9.0, 1.0, cost=10.0), game("b", None, 2.0, cost=-5.0), game("c", 1.0, 3.0, cost=20.0)]
    # costs above the lowest: 15, 0, 25
    assert ranks(games) == {"a": (2, True), "b": (1, True), "c": (3, False)}
    ranked = analysis.ranking(games)
    assert {row["ranked_by"] for row in ranked} == {"cost"}
    assert analysis.cost_notes(ranked) == [f"p, T = 100: {analysis.BY_COST}"]
    assert analysis.cost_notes(analysis.ranking(games[::2])) == []


def test_where_dynamic_regret_is_known_and_regret_is_not_it_takes_its_place():
    """Who violates much is not first for what that saves."""
    moving = [("bold", -50.0, 74.0, -90.0), ("wise", 6.0, 1.0, 10.0), ("shy", 2.0, 16.0, 5.0)]
    games = [game(name, None, ccv, cost=cost, dynamic_regret=regret) for name, regret, ccv, cost in moving]
    assert ranks(games) == {"bold": (3, True), "wise": (1, True), "shy": (2, True)}
    ranked = analysis.ranking(games)
    assert {row["ranked_by"] for row in ranked} == {"dynamic regret"}
    assert {row["label"]: (row["score"], row["regret_lost"]) for row in ranked} == {
        "bold": (74.0, 0.0),
        "wise": (6.0, 6.0),
        "shy": (16.0, 2.0),
    }
    assert analysis.cost_notes(ranked) == [f"p, T = 100: {analysis.BY_PATH}"]
    known = [row | {"regret": 0.0} for row in games]  # then regret is what counts
    assert {row["ranked_by"] for row in analysis.ranking(known)} == {"regret"}
    one = [*games[:2], games[2] | {"dynamic_regret": None}]
    assert {row["ranked_by"] for row in analysis.ranking(one)} == {"cost"}


def test_medians_are_over_seeds_and_bounds_hold_where_they_hold_for_every_seed():
    held = {"regret_bound": 10.0, "regret_bound_holds": True}
    games = [game("a", float(r), float(v), seed, **held) for seed, (r, v) in enumerate([(1, 9), (2, 3), (30, 6)])]
    (row,) = analysis.ranking(games)
    assert (row["regret"], row["ccv"], row["runs"], row["regret_bound"]) == (2.0, 6.0, 3, 10.0)
    assert row["regret_bound_holds"] is True
    assert row["ccv_bound_holds"] is None
    games[1]["regret_bound_holds"] = False
    assert analysis.ranking(games)[0]["regret_bound_holds"] is False


def test_what_does_not_apply_comes_last_with_its_reason():
    reason = "costs are not strongly convex"
    games = [{"problem": "p", "policy": "n", "horizon": 100, "seed": s, "does_not_apply": reason} for s in (0, 1)]
    found = analysis.ranking([*games, game("a", 1.0, 1.0)])
    assert [(row["label"], row["rank"], row["does_not_apply"]) for row in found] == [("a", 1, None), ("n", None, reason)]
    assert (found[1]["runs"], found[1]["pareto"], found[1]["regret"]) == (0, False, None)


def test_problems_keep_their_order_and_horizons_are_sorted():
    games = [game("a", 1.0, 1.0, problem=p, problem_label=f"{p} dim=2", horizon=T) for p in ("z", "b") for T in (1000, 100)]
    found = analysis.ranking(games)
    assert [(row["problem"], row["problem_label"], row["horizon"]) for row in found] == [
        ("z", "z dim=2", 100), ("z", "z dim=2", 1000), ("b", "b dim=2", 100), ("b", "b dim=2", 1000),
    ]  # fmt: skip
    assert {row["rank"] for row in found} == {1}


def test_a_soft_policy_is_ranked_by_hard_violation_and_shows_its_own_beside():
    soft = game("neely2017", 0.0, 50.0, soft_violation=-1.0, soft_bound=7.0)
    found = analysis.ranking([soft, game("sinha2024", 0.0, 5.0, soft_violation=5.0)])
    assert [row["policy"] for row in found] == ["sinha2024", "neely2017"]
    assert [(row["metric"], row["native"], row["native_bound"]) for row in found] == [("ccv", 5.0, None), ("soft", -1.0, 7.0)]


def test_exponents_are_those_of_the_median_curve():
    curves = [{"curve_rounds": ROUNDS, "curve_ccv": [s * t**0.5 for t in ROUNDS], "curve_regret": None} for s in (1.0, 2.0, 5.0)]
    (row,) = analysis.ranking([game("a", 1.0, 1.0, seed) | curve for seed, curve in enumerate(curves)])
    assert row["ccv_exponent"] == pytest.approx(0.5)
    assert row["regret_exponent"] is None


def test_rounding_has_no_exponent():
    curve = {"curve_rounds": ROUNDS, "curve_ccv": [1e-15 * t for t in ROUNDS]}
    assert analysis.ranking([game("a", 0.0, 1e-12) | curve])[0]["ccv_exponent"] is None
    assert analysis.ranking([game("a", 0.0, 1e-3) | curve])[0]["ccv_exponent"] == pytest.approx(1.0)


def test_rankings_do_not_depend_on_the_order_of_games():
    rng = np.random.default_rng(0)
    games = [game(f"p{i}", float(rng.integers(4)), float(rng.integers(4)), seed) for i in range(6) for seed in range(3)]
    expected = ranks(games)
    for _ in range(5):
        assert ranks([games[i] for i in rng.permutation(len(games))]) == expected


def test_nothing_gives_nothing():
    assert analysis.ranking([]) == []


def test_where_no_policy_applies_nobody_has_a_rank():
    (row,) = analysis.ranking([{"problem": "p", "policy": "n", "horizon": 100, "seed": 0, "does_not_apply": "no"}])
    assert (row["rank"], row["ranked_by"], row["does_not_apply"]) == (None, None, "no")


def test_the_documentation_and_the_page_say_how_policies_are_ranked():
    text = " ".join((Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8").split())
    assert analysis.RANKING in text

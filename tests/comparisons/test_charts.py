"""The figures as data: what is in each, on which axis, and what is said where something cannot be drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bridle.comparisons import analysis, charts
from bridle.showing import marks, svg
from helpers import comparison_rows

ROUNDS = [1, 2, 4, 8, 16, 32, 64, 100]


def game(label, regret=None, ccv=None, seed=0, horizon=100, **more):
    """A game whose curves are given as functions of the round."""
    row = {"problem": "p", "policy": label, "horizon": horizon, "seed": seed, "cost": 10.0, "us_per_round": 5.0, "curve_rounds": ROUNDS}
    for name, curve in (("regret", regret), ("ccv", ccv)):
        row[f"curve_{name}"] = None if curve is None else [curve(t) for t in ROUNDS]
        row[name] = None if curve is None else curve(horizon)
    return row | more


def chart_of(rows, kind):
    (chart,) = (chart for chart in charts.all_charts(rows) if chart.kind == kind)
    return chart


def test_every_problem_and_horizon_has_its_figures():
    figures = charts.all_charts(comparison_rows.grid())
    each = ["regret", "ccv", "tradeoff", "pace"]
    assert [chart.kind for chart in figures] == (each * 2 + ["growth-regret", "growth-ccv"]) * 2
    assert [chart.horizon for chart in figures[:10]] == [100] * 4 + [300] * 4 + [None] * 2
    assert all(chart.x.title for chart in figures)
    assert all(chart.caption.endswith(".") for chart in figures)


def test_one_horizon_has_no_growth():
    assert [chart.kind for chart in charts.all_charts([game("a", lambda t: t, lambda t: t)])] == ["regret", "ccv", "tradeoff", "pace"]


def test_lines_are_bands_of_the_rows_with_bounds_and_fits():
    rows = [row for row in comparison_rows.grid() if row["problem"] == "halfspaces" and row["horizon"] == 300]
    chart = chart_of(rows, "ccv")
    for line in chart.marks:
        own = [row for row in rows if row["label"] == line.label]
        band, bound = analysis.band(own, "ccv"), analysis.band(own, "ccv_bound")
        assert (line.x, line.y, line.low, line.high) == (band.rounds, band.median, band.low, band.high)
        assert line.bound == (bound.median if bound.runs else [None] * len(line.x))
        assert line.law == analysis.power_law(band.rounds, band.median)
    assert {line.label for line in chart.marks} == {row["label"] for row in rows if not row["does_not_apply"]}


def test_regret_below_zero_is_said_and_gets_a_signed_axis():
    rows = [game("good", lambda t: 5.0 - t, np.sqrt), game("fine", lambda t: 3.0 - t, np.sqrt), game("bad", lambda t: 2.0 * t, np.sqrt)]
    rows += [game("below", lambda t: -1.0, np.sqrt)]
    chart = chart_of(rows, "regret")
    assert chart.y.scale == "symlog"
    assert chart.y.threshold == 1.0  # two decades below the power of ten of the largest, 200
    assert chart.notes == [
        "At or below zero at the end, bought with violation, or measured against a weak fixed action: good, fine, below."
    ]
    assert chart_of(rows[2:3], "regret").y.scale == "log"
    assert chart_of(rows[2:3], "regret").notes == []


def test_no_violation_is_said_and_the_axis_stays_logarithmic():
    rows = [game("clean", lambda t: t, lambda t: 1e-15 * t), game("other", lambda t: t, np.sqrt)]
    chart = chart_of(rows, "ccv")
    assert chart.y.scale == "log"
    assert chart.notes == ["At zero at the end, no violation but rounding: clean."]
    assert [line.law is None for line in chart.marks] == [True, False]
    assert chart_of([game("clean", lambda t: t, lambda t: 0.0)], "ccv").y.scale == "linear"


def test_what_is_not_known_is_said():
    rows = [game("a", None, np.sqrt), game("b", lambda t: t, np.sqrt), game("n", does_not_apply="no", curve_rounds=None)]
    assert chart_of(rows, "regret").notes == ["No curve of regret for a."]
    assert [point.label for point in chart_of(rows, "tradeoff").marks] == ["b"]
    alone = charts.all_charts(rows[:1])
    assert [(chart.kind, bool(chart.marks)) for chart in alone] == [("regret", False), ("ccv", True), ("tradeoff", False), ("pace", True)]
    assert alone[0].notes[-1] == "There is no regret to draw here."


def test_the_trade_off_draws_what_policies_are_ranked_by():
    rows = [game("a", None, np.sqrt, seed, dynamic_regret=regret) for seed, regret in enumerate((-4.0, 3.0, 20.0))]
    chart = chart_of([*rows, game("b", None, lambda t: 2.0 * t, dynamic_regret=-50.0)], "tradeoff")
    first, second = chart.marks
    assert (chart.title, chart.y.title) == ("Dynamic regret against CCV", "dynamic regret (units of total cost)")
    assert (first.label, first.x, first.y, first.rank, second.y) == ("a", 10.0, 3.0, 1, -50.0)
    assert first.seeds == [(10.0, -4.0), (10.0, 3.0), (10.0, 20.0)]
    assert "Dynamic regret below zero: b." in chart.notes
    assert chart_of([row | {"regret": 1.0} for row in rows], "tradeoff").title == "Regret against CCV"


def test_one_seed_has_no_band():
    one = chart_of([game("a", np.sqrt, np.sqrt)], "regret")
    assert one.marks[0].low == one.marks[0].high == one.marks[0].y
    assert "One seed" in one.caption
    two = chart_of([game("a", np.sqrt, np.sqrt, seed) for seed in (0, 1)], "regret")
    assert "Median over 2 seeds" in two.caption


def test_the_trade_off_has_medians_seeds_and_ranks():
    rows = [game("a", lambda t, s=s: s * t, lambda t, s=s: float(s), seed=s) for s in (1, 2, 9)]
    (point,) = chart_of(rows, "tradeoff").marks
    assert (point.x, point.y, point.rank, point.pareto) == (2.0, 200.0, 1, True)
    assert point.seeds == [(1.0, 100.0), (2.0, 200.0), (9.0, 900.0)]
    same = chart_of([game("a", np.sqrt, np.sqrt), game("b", np.sqrt, np.sqrt)], "tradeoff")
    assert same.notes == ["On one point: a, b."]


def test_the_trade_off_agrees_with_the_ranking():
    """Each step of the score has a corner, and who ranks before another never lies outside of a corner that holds the other."""
    rows = comparison_rows.grid()
    for chart in (chart for chart in charts.all_charts(rows) if chart.kind == "tradeoff"):
        assert chart.x.top / chart.x.threshold == pytest.approx(chart.y.top / chart.y.threshold)  # a corner of equal score is square
        ranked = [row for row in analysis.ranking(rows) if (row["problem_label"], row["horizon"]) == (chart.problem, chart.horizon)]
        scores = {row["label"]: row["score"] for row in ranked}
        sides = {p.label: max(p.x / chart.x.top, marks.drawn_regret(p.y, chart.y) / chart.y.top, 0.0) for p in chart.marks}
        order = sorted(chart.marks, key=lambda point: point.rank)
        assert [point.label for point in order] == [row["label"] for row in ranked if row["rank"]]
        for before, after in itertools.pairwise(order):
            assert sides[before.label] <= sides[after.label] + 1e-9
            assert sides[before.label] / sides[after.label] == pytest.approx(scores[before.label] / scores[after.label])
        below = [point.label for point in chart.marks if point.y < 0.0]
        assert any(all(label in note for label in below) for note in chart.notes) or not below


def test_circles_never_lie_on_each_other():
    rng = np.random.default_rng(0)
    for crowd in (1, 2, 3, 6, 9):
        places = [(140.0 + dx, 150.0 + dy) for dx, dy in rng.normal(0.0, 2.0, (crowd, 2))] + [(20.0, 20.0), (260.0, 280.0)]
        moved = svg._moved_apart(places)
        at = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(places, moved, strict=True)]
        assert moved[-1] == (0.0, 0.0)
        assert all(np.hypot(a[0] - b[0], a[1] - b[1]) > 21.0 for i, a in enumerate(at) for b in at[:i])
        assert all(10.0 <= x <= svg.NARROW - 10.0 and 10.0 <= y <= svg.HEIGHT - 10.0 for x, y in at)


def test_growth_is_of_final_values_and_fitted_to_all_horizons():
    rows = [game("a", lambda t: t**0.5, lambda t: t**0.75, horizon=T, ccv_bound=10.0 * T) for T in (100, 1000, 10000)]
    line = chart_of(rows, "growth-ccv").marks[0]
    assert (line.x, line.bound) == ([100, 1000, 10000], [1000.0, 10000.0, 100000.0])
    assert line.law.exponent == pytest.approx(0.75)


def test_rounding_is_drawn_as_no_violation():
    rows = [
        game(label, np.sqrt, ccv, horizon=T) for T in (100, 1000) for label, ccv in (("clean", lambda t: 1e-15 * t), ("other", np.sqrt))
    ]
    figures = charts.all_charts(rows)
    assert {chart.x.scale for chart in figures if chart.kind == "tradeoff"} == {"symlog"}  # a logarithmic one would span 13 decades
    (growth,) = (chart for chart in figures if chart.kind == "growth-ccv")
    assert [(line.label, line.law is None) for line in growth.marks] == [("clean", True), ("other", False)]
    clean = charts.all_charts([row for row in rows if row["policy"] == "clean"])
    assert {chart.y.scale for chart in clean if chart.kind.endswith("ccv")} == {"linear"}


def test_bars_are_sorted_by_time():
    rows = [game(label, np.sqrt, np.sqrt, us_per_round=us) for label, us in (("slow", 9.0), ("fast", 1.0), ("mid", 5.0))]
    assert [bar.label for bar in chart_of(rows, "pace").marks] == ["fast", "mid", "slow"]


def test_engines_are_told_apart():
    rows = [game("a", np.sqrt, np.sqrt, engine=engine, us_per_round=us) for engine, us in (("python", 9.0), ("jax", 1.0))]
    assert charts.legend(rows) == {"a (python)": 0, "a (jax)": 1}
    assert [bar.value for bar in chart_of(rows, "pace").marks] == [1.0, 9.0]
    assert charts.legend([row | {"engine": "jax"} for row in rows]) == {"a": 0}


def test_styles_differ_for_many_policies():
    styles = [marks.style(i) for i in range(24)]
    assert len(set(styles)) == 24
    assert len({style.colour for style in styles[:8]}) == 8
    assert "dash" not in {style.dash for style in styles}


@pytest.mark.parametrize(("palette", "paper"), [(marks.LIGHT, "#ffffff"), (marks.DARK, "#171b21")])
def test_colours_stay_apart_for_every_kind_of_vision_and_from_the_paper(palette, paper):
    assert min(contrast(colour, paper) for colour in palette) >= 3.0
    for vision in VISION:
        seen = [oklab(vision @ linear(colour)) for colour in palette]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 0.1


# Machado, Oliveira and Fernandes (2009): normal, protanopia, deuteranopia, tritanopia.
VISION = (
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
)


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    light, dark = sorted((float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def oklab(rgb):
    cones = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]) @ np.clip(rgb, 0.0, 1.0)
    return np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]) @ np.cbrt(cones)

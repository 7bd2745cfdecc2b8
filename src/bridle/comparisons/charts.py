"""The figures of a comparison as data: what the report page and the static files both draw.

For each problem and horizon: regret and CCV against the round, the trade-off between the two, and the time a round takes; for each
problem with several horizons also final regret and CCV against T.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bridle.comparisons import analysis
from bridle.comparisons.analysis import band, power_law
from bridle.comparisons.rows import GameRow, RankedRow, grouped, horizon_of, label_engines, label_of, number_of, problem_of
from bridle.showing.marks import NAMES, QUANTITIES, ROUNDS, TITLES, UNITS, Axis, Bar, Chart, Guide, Line, Point, Quantity, axis, line


def legend(rows: Iterable[GameRow]) -> dict[str, int]:
    """Every policy's place, in order of first appearance."""
    return {label: i for i, label in enumerate(grouped(label_engines(rows), label_of))}


def all_charts(rows: Iterable[GameRow], ranking: list[RankedRow] | None = None) -> list[Chart]:
    """Every figure, problem by problem and horizon by horizon; `ranking` is that of the rows where it is known already."""
    rows = label_engines(rows)
    places, ranked = legend(rows), grouped(analysis.ranking(rows) if ranking is None else ranking, problem_of)
    charts: list[Chart] = []
    for problem, games in grouped(rows, problem_of).items():
        medians = grouped(ranked[problem], horizon_of)
        for horizon, played in sorted(grouped(games, horizon_of).items()):
            runs = {label: [run for run in own if not run.get("does_not_apply")] for label, own in grouped(played, label_of).items()}
            charts += [_curves(what, problem, horizon, runs, places) for what in QUANTITIES]
            charts += [_tradeoff(problem, horizon, runs, medians[horizon], places), _pace(problem, horizon, medians[horizon], places)]
        if len(medians) > 1:
            charts += [_growth(what, problem, games, places) for what in QUANTITIES]
    return charts


MEANING = {
    "regret": "Total cost so far less that of the best fixed action that satisfies every constraint",
    "ccv": "Cumulative constraint violation: by how much a constraint was exceeded in each round, added up, for the worst constraint",
}


def _curves(what: Quantity, problem: str, horizon: int, runs: dict[str, list[GameRow]], places: dict[str, int]) -> Chart:
    lines, notes, below, none = [], [], [], []
    for label, own in runs.items():
        curve, bound = band(own, what), band(own, f"{what}_bound")
        if not curve.runs:
            none += [label] if own else []
            continue
        bounds = dict(zip(bound.rounds, bound.median, strict=True))
        allowed = [bounds.get(t) for t in curve.rounds]
        tiny = _vanishes(horizon, curve.median[-1])
        law = None if tiny else power_law(curve.rounds, curve.median)
        lines.append(line(places[label], label, curve.rounds, curve.median, low=curve.low, high=curve.high, bound=allowed, law=law))
        below += [label] * tiny
    if below:
        why = "bought with violation, or measured against a weak fixed action" if what == "regret" else "no violation but rounding"
        notes.append(f"At {'or below ' if what == 'regret' else ''}zero at the end, {why}: {', '.join(below)}.")
    if none:
        notes.append(f"No curve of {NAMES[what]} for {', '.join(none)}.")
    if not lines:
        notes.append(f"There is no {NAMES[what]} to draw here.")
    seeds = max((len(own) for own in runs.values()), default=0)
    caption = f"{MEANING[what]}. {_over(seeds)} Dashed: what the theorem allows. Dotted: the fitted power law."
    y = axis(UNITS[what], [value for line in lines for value in line.y], what == "ccv" or not below, 1e-9 * horizon)
    return Chart(what, problem, horizon, f"{TITLES[what]} against t", ROUNDS, y, lines, notes, caption)


def _growth(what: Quantity, problem: str, games: list[GameRow], places: dict[str, int]) -> Chart:
    """Final values against the horizon, each from a game of its own."""
    runs = {label: [*grouped(own, horizon_of).items()] for label, own in grouped(games, label_of).items()}
    lines = [drawn for label, own in runs.items() if (drawn := final_line(what, places[label], label, own)) is not None]
    for i, drawn in enumerate(lines):
        law = None if any(map(_vanishes, drawn.x, drawn.y)) else power_law(drawn.x, drawn.y, since=0.0)
        lines[i] = drawn._replace(law=law)
    caption = f"Final {NAMES[what]} of games played to different horizons, median over seeds. Dashed: what the theorem allows at each T."
    chart = final_chart(f"growth-{what}", what, problem, max(map(horizon_of, games)), "T", Axis("horizon T (rounds)", "log"), lines)
    return chart._replace(horizon=None, caption=caption)


def final_line(what: Quantity, place: int, label: str, runs: Iterable[tuple[float, list[GameRow]]]) -> Line | None:
    """A policy's final values over x: medians over the games that were played at each, with bands and bounds; None without any."""
    spreads = ((x, analysis.quantiles(number_of(row, what) for row in own), own) for x, own in sorted(runs, key=lambda pair: pair[0]))
    known = [(x, *spread, analysis.quantiles(number_of(row, f"{what}_bound") for row in own)[1]) for x, spread, own in spreads]
    known = [each for each in known if each[2] is not None]
    if not known:
        return None
    x, low, median, high, bound = map(list, zip(*known, strict=True))
    return line(place, label, x, median, low=low, high=high, bound=bound)


def final_chart(kind: str, what: Quantity, problem: str, horizon: int, against: str, x: Axis, lines: list[Line]) -> Chart:
    """Final regret or CCV of games of at most this horizon, against something else than the round."""
    values = [value for line in lines for value in line.y]
    below = any(value is not None and value <= 0.0 for value in values)
    y = axis(f"final {UNITS[what]}", values, what == "ccv" or not below, 1e-9 * horizon)
    title = f"Final {NAMES[what]} against {against}"
    notes = [] if lines else [f"There is no {NAMES[what]} to draw here."]
    return Chart(kind, problem, horizon, title, x, y, lines, notes, f"{title}; medians over seeds.")


def _tradeoff(problem: str, horizon: int, runs: dict[str, list[GameRow]], medians: list[RankedRow], places: dict[str, int]) -> Chart:
    points = []
    moving = any(row["ranked_by"] == "dynamic regret" for row in medians)
    lost, name = ("dynamic_regret", "dynamic regret") if moving else ("regret", "regret")
    for row in medians:
        median = number_of(row, lost)
        if median is None or row["ccv"] is None:
            continue
        each = [(number_of(run, "ccv"), number_of(run, lost)) for run in runs[row["label"]]]
        seeds = [(ccv, regret) for ccv, regret in each if ccv is not None and regret is not None]
        low, high = np.quantile([regret for _, regret in seeds], [analysis.LOW, analysis.HIGH]).tolist()
        points.append(Point(
            places[row["label"]], row["label"], row["ccv"], median, _band_of(row, "ccv"), (low, high), seeds, row["rank"], row["pareto"],
        ))  # fmt: skip
    caption = (
        f"Final {name} against final CCV of each policy, with its rank: the lower left is best. Both axes count rounds of the worst kind, "
        "as the ranking does, and each thin corner is one score: a policy inside of it ranks before one outside. Circles are medians over "
        "seeds, small dots single seeds. A ring: on the front, no other policy is as good in both and better in one. In the strip at the "
        "bottom regret is below zero: bought with violation, or measured against a weak fixed action; it counts as zero."
    )
    notes = [] if points else ["There is no pair of regret and CCV to draw here."]
    below = [point.label for point in points if point.y < -1e-9 * horizon]
    notes += [f"{name.capitalize()} below zero: {', '.join(below)}."] if below else []
    for same in grouped(points, lambda point: (point.x, point.y)).values():
        notes += [f"On one point: {', '.join(point.label for point in same)}."] if len(same) > 1 else []
    played = [row for row in medians if row["rank"] is not None]
    units = [analysis.unit(played, name) for name in ("violation_range", "cost_range")]
    pairs = [pair for point in points for pair in ((point.x, point.y), *point.seeds)]
    most = max((max(ccv / units[0], regret / units[1]) for ccv, regret in pairs), default=0.0)
    most = most if most > 1e-9 * horizon else 1.0
    (ccv, by_ccv), (regret, by_regret) = ((most * unit, DECADES_DOWN * most * unit) for unit in units)
    x = Axis(UNITS["ccv"], "symlog", by_ccv, ccv, -0.1 * by_ccv)
    y = Axis("dynamic " * moving + UNITS["regret"], "symlog", by_regret, regret, -by_regret)
    guides = [Guide([size * ccv] * 2 + [0.0], [0.0] + [size * regret] * 2) for size in (0.001, 0.01, 0.1, 1.0)]
    return Chart("tradeoff", problem, horizon, f"{name.capitalize()} against CCV", x, y, points, notes, caption, guides)


DECADES_DOWN = 1e-3
"""How far down the axes of the trade-off are logarithmic, as a share of their ends; below that they are linear, down to zero."""


def _pace(problem: str, horizon: int, medians: list[RankedRow], places: dict[str, int]) -> Chart:
    bars = [
        Bar(places[row["label"]], row["label"], pace, *_band_of(row, "us_per_round"))
        for row in medians if (pace := row["us_per_round"]) is not None
    ]  # fmt: skip
    bars.sort(key=lambda bar: bar.value)
    caption = "Time a round takes, policy and adversary together, on the machine that played; median and band over seeds."
    notes = [] if bars else ["There are no times to draw here."]
    return Chart("pace", problem, horizon, "Time a round", Axis("microseconds a round"), Axis(""), bars, notes, caption)


def _band_of(row: RankedRow, name: str) -> tuple[float, float]:
    """The band of a fact over seeds; there is one where there is a median."""
    return row[f"{name}_low"], row[f"{name}_high"]


def _vanishes(t: float, value: float | None) -> bool:
    """Whether a total over t rounds is at or below zero, but for rounding."""
    return value is not None and value <= 1e-9 * t


def _over(seeds: int) -> str:
    return f"Median over {seeds} seeds, band from the 10% to the 90% quantile." if seeds > 1 else "One seed, so no band."

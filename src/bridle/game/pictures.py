"""What a trace shows of itself: regret and CCV against the round, beside what the theorem allows; as a figure, and on a card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bridle.core import InputError
from bridle.game import metrics
from bridle.game.play import Trace
from bridle.game.summary import bound_curves
from bridle.ops import Array
from bridle.showing import cards, count, figures, number, short, spread
from bridle.showing.marks import NAMES, Chart, Line, Quantity, against_round, chosen, line
from bridle.solvers.block_stream import NoComparator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 6
"""So many runs of one trace have a line each; more are a median and a band."""

QUICK_ROUNDS = 5_000
"""A card finds the best action in hindsight of so many rounds; for longer games that takes too long for a glance."""


def plot_trace(trace: Trace, what: str | Sequence[str], ax: object, width: str | None) -> Figure:
    """The figure."""
    return figures.plot(curves(trace, chosen(what)), ax, width, title_of(trace))


def title_of(trace: Trace) -> str:
    """Who played what."""
    policy = getattr(trace.policy, "name", type(trace.policy).__name__)
    return f"{policy} on {trace.problem.name or 'a problem without a name'}, T = {trace.rounds:,}"


def trace_card(trace: Trace) -> str:
    """The trace on a card of a notebook."""
    if not trace.totals.hard.shape[-1]:
        return cards.card(repr(trace))
    quick = trace.rounds * (1 if trace.shared_stream else trace.runs or 1) <= QUICK_ROUNDS
    charts = curves(trace, ["regret", "ccv"] if quick else ["ccv"])
    last = [line.y[-1] for chart in charts if chart.kind == "regret" for line in chart.of(Line)]
    regret = [] if quick else ["Regret takes a while to find in a game this long: bridle.regret(trace), trace.plot()."]
    facts = {
        "policy": short(trace.policy),
        "problem": short(trace.problem),
        "rounds": f"{trace.rounds:,}" + ("" if trace.runs is None else f", {count(trace.runs, 'run')}"),
        "total cost": spread(trace.totals.cost),
        **({"regret": spread([value for value in last if value is not None])} if any(value is not None for value in last) else {}),
        "CCV": spread(metrics.ccv(trace)),
        "time": f"{number(trace.pace)} microseconds a round ({trace.engine})",
    }
    below = ["A regret below zero is no win: it can be bought with violations."] if any((value or 0.0) < 0.0 for value in last) else []
    return cards.card(f"Trace: {title_of(trace)}", facts, charts, [*regret, *below, *trace.warnings])


def curves(trace: Trace, what: Sequence[Quantity]) -> list[Chart]:
    """The charts of a trace that was played."""
    if not len(trace.curve.rounds) or not trace.totals.hard.shape[-1]:
        raise InputError("trace must be of a game that was played: this one has no rounds to draw")
    regrets, why = _regrets(trace) if "regret" in what else (None, "")
    bounds = bound_curves(trace, regrets) if trace.runs is None else (None, None)
    values: dict[Quantity, Array | None] = {"regret": regrets, "ccv": metrics.ccv_curve(trace)[1]}
    allowed = dict(zip(values, bounds, strict=True))
    return [_chart(trace, name, values[name], allowed[name], why) for name in what]


def _regrets(trace: Trace) -> tuple[Array | None, str]:
    try:
        return np.asarray(metrics.regret_curve(trace)[1]), ""
    except NoComparator as reason:
        return None, str(reason)


def _chart(trace: Trace, what: Quantity, values: Array | None, allowed: list[float | None] | None, why: str) -> Chart:
    lines = [] if values is None else _lines(trace, values.reshape(len(trace.curve.rounds), -1), allowed)
    notes = [f"There is no {NAMES[what]} to draw: {why}."] if values is None else []
    return against_round(what, trace.problem.name or "a problem", trace.rounds, lines, notes)


def _lines(trace: Trace, values: Array, allowed: list[float | None] | None) -> list[Line]:
    """A line for each run, or the median of many with a band between the 10 % and the 90 % quantile."""
    runs, name = values.shape[1], getattr(trace.policy, "name", type(trace.policy).__name__)
    rounds = [int(t) for t in trace.curve.rounds]
    if runs <= MOST_LINES:
        labels = [name] if runs == 1 else [_run_label(trace, i) for i in range(runs)]
        return [line(i, labels[i], rounds, own, bound=allowed) for i, own in enumerate(values.T.tolist())]
    low, median, high = np.quantile(values, [0.1, 0.5, 0.9], axis=1).tolist()
    return [line(0, f"{name}: median of {runs} runs", rounds, median, low=low, high=high)]


def _run_label(trace: Trace, i: int) -> str:
    """What tells a run from the others: its seed, or its values of what was swept."""
    swept = {
        key: value for key, value in getattr(trace.policy, "parameters", {}).items() if isinstance(value, np.ndarray) and value.ndim == 2
    }
    told = [f"{key}={short(float(value[i, 0]))}" for key, value in swept.items()]
    return ", ".join(told + ([f"seed {trace.seeds[i]}"] if len(trace.seeds) > 1 else [])) or f"run {i}"

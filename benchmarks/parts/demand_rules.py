"""Capacity chosen before demand: the rules that people use, their knobs chosen in hindsight, and as rules for a policy to mix.

Each family is a forecast and a spread, both known before the slot; its capacity is  forecast + k spread. Beside the choices of a grid (how
long a memory is) every family has the one continuous knob k, and the k chosen in hindsight is exact: the smallest that leaves as many slots
short as are allowed. So what a family costs here is the least that anybody could have got from it on this very stream.
"""

from __future__ import annotations

from math import ceil, log, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WINDOW = 500
"""In how many slots in a row the worst share is looked for."""


class Trace(NamedTuple):
    """Demands of one kind in order; `slot` counts time, missing slots included, `day` of them make a day; `top` is all there is.

    The first `past` of them are history: rules go by it, and nobody is judged on it.
    """

    name: str
    values: Array
    slot: NDArray[np.int64]
    day: int
    top: float
    past: int

    @property
    def judged(self) -> Array:
        """The demands that count."""
        return self.values[self.past :]


class Outcome(NamedTuple):
    """Capacity over demand, the share of slots that are short, the largest such share of any 500 in a row, and the knobs."""

    cost: float
    rate: float
    worst: float
    knobs: str = ""


class Family(NamedTuple):
    """A rule but for its k: what it proposes is  forecast + k spread."""

    knobs: str
    forecast: Array
    spread: Array


def outcome(trace: Trace, chosen: Array, knobs: str = "") -> Outcome:
    """What these capacities come to, of the slots that are judged."""
    short = trace.judged > chosen
    sums = np.cumsum(np.concatenate([[0], short]))
    length = min(WINDOW, len(short))
    worst = (sums[length:] - sums[:-length]).max() / length
    return Outcome(float(chosen.sum() / trace.judged.sum()), float(short.mean()), float(worst), knobs)


# --- what the rules go by -------------------------------------------------------------------------------------------------------------


def running(values: Array, memory: float) -> tuple[Array, Array]:
    """A running mean and standard deviation, each as it was before the slot."""
    means, spreads = np.zeros(len(values)), np.zeros(len(values))
    mean = square = 0.0
    for i, value in enumerate(values.tolist()):
        means[i], spreads[i] = mean, square**0.5
        weight = max(memory, 1.0 / (i + 1))
        if i:
            square += weight * ((value - mean) ** 2 - square)
        mean += weight * (value - mean)
    return means, spreads


def same_slot(trace: Trace, period: int, memory: float) -> tuple[Array, Array]:
    """A running mean of the same slot of the last periods, and the standard deviation of what it missed in the last of them.

    Where there is none yet, what was last seen.
    """
    known: dict[int, float] = {}
    means, spreads = np.zeros(len(trace.values)), np.zeros(len(trace.values))
    last = square = 0.0
    seen = 0
    for i, (slot, value) in enumerate(zip((trace.slot % period).tolist(), trace.values.tolist(), strict=True)):
        mean = known.get(slot, last)
        means[i], spreads[i] = mean, square**0.5
        if i:
            seen += 1
            square += max(0.02, 1.0 / seen) * ((value - mean) ** 2 - square)
        known[slot] = value if slot not in known else mean + memory * (value - mean)
        last = value
    return means, spreads


def highest(values: Array, length: int) -> Array:
    """The largest of the last so many, before the slot."""
    padded = np.concatenate([np.zeros(length), values[:-1]])
    return np.lib.stride_tricks.sliding_window_view(padded, length).max(axis=1)[: len(values)]


def quantiles(values: Array, length: int, levels: Array) -> Array:
    """The quantiles of the last so many, before the slot: one row for each level."""
    found = np.zeros((len(levels), len(values)))
    full = np.lib.stride_tricks.sliding_window_view(values, length)[:-1] if len(values) > length else np.empty((0, length))
    for start in range(0, len(full), 2000):
        part = np.sort(full[start : start + 2000], axis=1)
        at = levels * (length - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, length - 1)
        found[:, length + start : length + start + len(part)] = (part[:, low] + (at - low) * (part[:, high] - part[:, low])).T
    for i in range(1, min(length, len(values))):
        found[:, i] = np.quantile(values[:i], levels)
    return found


# --- families with their knobs in hindsight -------------------------------------------------------------------------------------------

MEMORIES = (1.0, 0.5, 0.2, 0.05, 0.01)


def moving(trace: Trace) -> list[Family]:
    """A running mean and k deviations; a memory of 1 is the last value."""
    return [Family(f"memory {memory:g}", *running(trace.values, memory)) for memory in MEMORIES]


def autoscaler(trace: Trace) -> list[Family]:
    """The highest of the last few slots over a target of use: 1 + k is one over the target."""
    tops = [(length, highest(trace.values, length)) for length in (1, 3, 12)]
    return [Family(f"highest of {length}", top, top) for length, top in tops]


def yesterday(trace: Trace) -> list[Family]:
    """The same slot of the last days and k deviations."""
    return [Family(f"memory {memory:g}", *same_slot(trace, trace.day, memory)) for memory in (1.0, 0.4, 0.1)]


def last_week(trace: Trace) -> list[Family]:
    """The same slot of the last weeks and k deviations."""
    return [Family(f"memory {memory:g}", *same_slot(trace, 7 * trace.day, memory)) for memory in (1.0, 0.4, 0.1)]


FAMILIES = {
    "EWMA + k sigma": moving,
    "autoscaler": autoscaler,
    "same slot of the day + k sigma": yesterday,
    "same slot of the week + k sigma": last_week,
}


def best_k(trace: Trace, family: Family, allowed: int) -> Outcome:
    """The family with the smallest k that leaves no more than `allowed` slots short."""
    forecast, spread = family.forecast[trace.past :], family.spread[trace.past :]
    gaps = trace.judged - forecast
    if np.count_nonzero((spread <= 0.0) & (gaps > 0.0)) > allowed:
        return Outcome(np.inf, 1.0, 1.0, "no k keeps the rate")
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(spread > 0.0, gaps / spread, np.where(gaps > 0.0, np.inf, -np.inf))
    k = float(np.sort(needed)[len(needed) - 1 - allowed])
    chosen = np.clip(forecast + (k * (1.0 + 1e-12 * np.sign(k)) + 1e-12) * spread, 0.0, trace.top)
    return outcome(trace, chosen, f"{family.knobs}, k {k:.3g}")


def last_quantile(trace: Trace, share: float, allowed: int) -> Outcome:
    """A quantile of the last N, N and the level in hindsight."""
    levels = 1.0 - share * np.concatenate([[0.0], np.arange(0.1, 1.6, 0.05)])
    found = []
    for length in sorted({12, 60, trace.day, 7 * trace.day}):
        rows = quantiles(trace.values, length, levels)[:, trace.past :]
        found += [outcome(trace, row, f"last {length}, level {level:.4g}") for row, level in zip(rows, levels, strict=True)]
    return cheapest(found, allowed / len(trace.judged))


STEPS = (0.003, 0.01, 0.03, 0.1, 0.3)


def controlled(trace: Trace, share: float, allowed: int, integral: bool) -> Outcome:
    """ACI, or PID with its integral (Angelopoulos, Candes, Tibshirani 2023): a forecast and a level that follows the rate.

    The forecast (a running mean, the last value, the same slot of the last weeks) and the step are chosen in hindsight.
    """
    forecasts = [running(trace.values, memory)[0] for memory in (1.0, 0.2, 0.05)] + [same_slot(trace, 7 * trace.day, 0.4)[0]]
    names = ["memory 1", "memory 0.2", "memory 0.05", "same slot of the week"]
    forecast = np.repeat(np.array(forecasts), len(STEPS), axis=0)
    steps = np.tile(STEPS, len(forecasts))
    T = len(trace.values)
    saturation = 2.0 / pi * (ceil(log(T) * 0.01) - 1.0 / log(T))
    level, total, largest = (np.zeros(len(steps)) for _ in range(3))
    chosen = np.empty((len(steps), T))
    for t in range(T):
        x, value = forecast[:, t] + level, trace.values[t]
        if integral:
            angle = np.clip(total * log(t + 2.0) / (saturation * (t + 2.0)), -pi / 2 + 1e-3, pi / 2 - 1e-3)
            x = x + largest * np.tan(angle)
        chosen[:, t] = x = np.clip(x, 0.0, trace.top)
        largest = np.maximum(largest, np.abs(value - forecast[:, t]))
        error = (value > x) - share
        level, total = level + steps * largest * error, total + error
    found = [
        outcome(trace, row, f"{name}, step {step:g}")
        for row, name, step in zip(chosen[:, trace.past :], np.repeat(names, len(STEPS)), steps.tolist(), strict=True)
    ]
    return cheapest(found, allowed / len(trace.judged))


def cheapest(found: list[Outcome], allowed: float) -> Outcome:
    """The cheapest of those that leave at most this share of slots short; where none does, the one that leaves the least."""
    kept = [each for each in found if each.rate <= allowed + 1e-12]
    return min(kept, key=lambda each: each.cost) if kept else min(found, key=lambda each: each.rate)


def in_hindsight(trace: Trace, share: float, allowed: int) -> dict[str, Outcome]:
    """Every family, with the knobs that turn out cheapest among those that leave at most `allowed` slots short."""
    found = {}
    for name, make in FAMILIES.items():
        found[name] = cheapest([best_k(trace, family, allowed) for family in make(trace)], allowed / len(trace.judged))
    found["quantile of the last N"] = last_quantile(trace, share, allowed)
    found["ACI"] = controlled(trace, share, allowed, integral=False)
    found["PID"] = controlled(trace, share, allowed, integral=True)
    return found


# --- the same as rules to be mixed, on a grid that is fixed ---------------------------------------------------------------------------

KS = (0.0, 1.0, 2.0, 4.0)
TARGETS = (0.95, 0.8, 0.6)


def proposals(trace: Trace, share: float) -> Array:
    """What each rule proposes for each slot that is judged, (slots, rules)."""
    columns = [0.0 * trace.values, trace.top + 0.0 * trace.values]
    forecasts = [running(trace.values, memory) for memory in (1.0, 0.2, 0.05)]
    forecasts += [same_slot(trace, trace.day, 0.4), same_slot(trace, 7 * trace.day, 0.4)]
    columns += [mean + k * spread for mean, spread in forecasts for k in KS]
    columns += [highest(trace.values, length) / target for length in (1, 3) for target in TARGETS]
    columns += list(quantiles(trace.values, trace.day, np.array([1.0 - share, 1.0])))
    return np.clip(np.array(columns).T[trace.past :], 0.0, trace.top)


NAMES = [
    "zero", "all",
    *(f"{name} + {k:g} sigma" for name in ("last", "EWMA 0.2", "EWMA 0.05", "same slot of the day", "same slot of the week") for k in KS),
    *(f"{name} / {target:g}" for name in ("last", "highest of 3") for target in TARGETS),
    "quantile of a day", "highest of a day",
]  # fmt: skip
"""Of the proposals, in their order."""

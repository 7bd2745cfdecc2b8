"""Capacity before demand, too little in at most a share of the rounds: policy `rate` beside the rules that people use, for docs/rates.md.

Cost is capacity over demand. Two of the rules track a rate by themselves (ACI: adaptive conformal inference; PID: its conformal form with
an integral). The others, a running mean + k deviations and a quantile of the last N, keep none: theirs is the cheapest of a grid of knobs,
chosen in hindsight among those that kept the rate on this very stream. `rate` has one setting for all.
"""

from __future__ import annotations

import json
import sys
from math import ceil, log, pi, tan
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bridle
from bridle.core import Feedback
from parts.toy import size, target

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from helpers.demand import Rules, demand

ROUNDS, WINDOW = size(4_000, 120), size(500, 40)
KINDS, SHARES, SEEDS = size(("iid", "seasonal", "bursts", "shift"), ("iid",)), size((0.05, 0.01), (0.1,)), size((0, 1), (0,))
TOP = 100.0
BEGIN, END = "<!-- measured by benchmarks/rates.py -->", "<!-- end -->"


class Outcome(NamedTuple):
    """Capacity over demand, the share of rounds with too little of it, and the largest share in any window."""

    cost: float
    rate: float
    worst: float


def outcome(values: np.ndarray, chosen: np.ndarray) -> Outcome:
    short = values > chosen
    sums = np.cumsum(np.concatenate([[0], short]))
    return Outcome(float(chosen.sum() / values.sum()), float(short.mean()), float((sums[WINDOW:] - sums[:-WINDOW]).max() / WINDOW))


def tracked(values: np.ndarray, memory: float) -> tuple[np.ndarray, np.ndarray]:
    """A running mean and mean deviation, each as it was before the round."""
    mean, spread, means, spreads = 0.0, 0.0, [], []
    for i, value in enumerate(values):
        means.append(mean)
        spreads.append(spread)
        weight = max(memory, 1.0 / (i + 1))
        spread += weight * (abs(value - mean) - spread) * (i > 0)
        mean += weight * (value - mean)
    return np.array(means), np.array(spreads)


def cheapest(values: np.ndarray, share: float, candidates: list[np.ndarray]) -> Outcome:
    """The cheapest of those that kept the rate, in hindsight."""
    found = [outcome(values, np.clip(each, 0.0, TOP)) for each in candidates]
    kept = [each for each in found if each.rate <= 1.02 * share]
    return min(kept or found, key=lambda each: each.cost if kept else each.rate)


def mean_and_deviations(values: np.ndarray, share: float) -> Outcome:
    pairs = [tracked(values, memory) for memory in (0.3, 0.05, 0.01)]
    return cheapest(values, share, [mean + k * spread for mean, spread in pairs for k in np.arange(0.5, 12.0, 0.1)])


def last_quantile(values: np.ndarray, share: float) -> Outcome:
    levels = 1.0 - share * np.arange(0.3, 1.25, 0.1)
    candidates: list[np.ndarray] = []
    for N in (50, 200, 1_000):
        past = [np.quantile(values[max(0, i - N) : i], levels) if i else np.full(len(levels), TOP) for i in range(len(values))]
        candidates += list(np.array(past).T)
    return cheapest(values, share, candidates)


def aci(values: np.ndarray, share: float) -> Outcome:
    """A forecast and a level on its error: steps of a tenth of the largest error so far."""
    forecast, _ = tracked(values, 0.05)
    level, largest, chosen = 0.0, 0.0, []
    for mean, value in zip(forecast, values, strict=True):
        chosen.append(min(max(mean + level, 0.0), TOP))
        largest = max(largest, abs(value - mean))
        level += 0.1 * largest * ((value > chosen[-1]) - share)
    return outcome(values, np.array(chosen))


def pid(values: np.ndarray, share: float) -> Outcome:
    """ACI with an integrator that saturates by a tangent (Angelopoulos, Candes, Tibshirani 2023), its constants as published."""
    forecast, _ = tracked(values, 0.05)
    T = len(values)
    saturation = 2.0 / pi * (ceil(log(T) * 0.01) - 1.0 / log(T))
    level, largest, total, chosen = 0.0, 0.0, 0.0, []
    for t, (mean, value) in enumerate(zip(forecast, values, strict=True), 1):
        angle = min(max(total * log(t + 1.0) / (saturation * (t + 1.0)), -pi / 2 + 1e-3), pi / 2 - 1e-3)
        chosen.append(min(max(mean + level + largest * tan(angle), 0.0), TOP))
        largest = max(largest, abs(value - mean))
        error = float(value > chosen[-1]) - share
        level, total = level + 0.1 * largest * error, total + error
    return outcome(values, np.array(chosen))


def rate(streams: np.ndarray, share: float, own: bool, times: float = 1.0) -> list[Outcome]:
    """The policy on all streams at once, with rules of one's own or without, in a box that is `times` as large."""
    runs, top = len(streams), times * TOP
    more = {"rules": Rules.SIZE} if own else {}
    record = bridle.policy("rate", bridle.Box(0.0, top, dim=1), at_most=share, safe=[top], **more).record
    state, rules = record.init(np.full((runs, 1), top / 2.0)), [Rules(top) for _ in streams]
    chosen, df, dg = np.empty_like(streams), np.ones((runs, 1)), -np.ones((runs, 1, 1))
    for t in range(streams.shape[1]):
        if own:
            state = record.propose(state, np.array([each.propose() for each in rules]))
        x = record.decide(state)
        state = record.update(state, Feedback(x, x, df, streams[:, t : t + 1] - x, dg))
        chosen[:, t] = x[:, 0]
        for each, value in zip(rules, streams[:, t], strict=True):
            each.see(value)
    return [outcome(values, row) for values, row in zip(streams, chosen, strict=True)]


SINGLE = {
    "mean + k deviations, k in hindsight": mean_and_deviations,
    "quantile of the last N, in hindsight": last_quantile,
    "ACI": aci,
    "PID": pid,
}
TOGETHER = {"`rate`": (False, 1.0), "`rate`, rules": (True, 1.0), "`rate`, rules, box x100": (True, 100.0)}


def measure() -> list[dict[str, object]]:
    """A row for each kind of stream and each share, with means over the seeds."""
    streams = np.array([demand(kind, ROUNDS, seed) for kind in KINDS for seed in SEEDS])
    rows = []
    for share in SHARES:
        found = {name: [rule(values, share) for values in streams] for name, rule in SINGLE.items()}
        found |= {name: rate(streams, share, *settings) for name, settings in TOGETHER.items()}
        for i, kind in enumerate(KINDS):
            part = slice(i * len(SEEDS), (i + 1) * len(SEEDS))
            means = {name: [float(mean) for mean in np.mean(results[part], axis=0)] for name, results in found.items()}
            rows.append({"stream": kind, "share": share, "found": means})
    return rows


def markdown(rows: list[dict[str, object]]) -> str:
    """The table of the documentation: cost @ rate / worst window."""
    names = [*SINGLE, *TOGETHER]
    lines = ["| stream | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for row in rows:
        cells = [f"{cost:.2f} @ {100 * share:.1f} / {100 * worst:.1f}" for cost, share, worst in (row["found"][name] for name in names)]
        lines.append(f"| {row['stream']}, {100 * row['share']:g} % | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    rows = measure()
    figures = target(Path(__file__).with_name("rates.json"))
    figures.write_text(json.dumps(rows, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "rates.md")
    text = page.read_text()
    page.write_text(f"{text[: text.index(BEGIN) + len(BEGIN)]}\n{markdown(rows)}\n{text[text.index(END) :]}")
    print(markdown(rows))


if __name__ == "__main__":
    main()

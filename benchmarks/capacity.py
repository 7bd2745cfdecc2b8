"""Capacity on real demand, too little in at most a share of the slots: policy `rate` beside rules that people use, for docs/capacity.md.

Cost is capacity over demand. Every family of rules gets the memory and the margin that turn out cheapest on this very stream among those
that leave at most the asked share of its slots short: the margin is exact, so nobody could have got less out of it. `rate` has one setting
for all, and is told how many slots a day and a week have where there are any. What is installed is twice the peak. ``--picture`` draws the
picture alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle import rules
from bridle.core import Feedback
from parts.toy import TOY, size, target

ROUNDS, SHARES = size(8_064, 150), size((0.05, 0.01), (0.1,))
DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- measured by benchmarks/capacity.py -->", "<!-- end -->"


class Demand(NamedTuple):
    """A stream, what is installed, and how many slots a day and a week have, None where there is no season."""

    name: str
    values: np.ndarray
    top: float
    day: int | None
    week: int | None


def every_hour(values: np.ndarray, hours: np.ndarray) -> np.ndarray:
    """One value for each hour; an hour that is missing has that of the day before."""
    first = int(hours[0])
    whole = np.full(int(hours[-1]) - first + 1, np.nan)
    whole[hours.astype(int) - first] = values
    for t in np.flatnonzero(np.isnan(whole)):
        whole[t] = whole[t - 24] if t >= 24 else np.nanmean(whole)
    return whole


def streams() -> list[Demand]:
    """Real demand: seasonal by day and week, with and without bursts, and one without a season; drawn ones at toy size."""
    if TOY:
        sys.path.append(str(Path(__file__).parents[1] / "tests"))
        from helpers.demand import demand

        return [Demand(kind, demand(kind, ROUNDS), 100.0, day, None) for kind, day in (("seasonal", 96), ("bursts", None))]
    from bridle.data import load

    grid, road, bikes, machines, disks = (load(name) for name in ("electricity", "traffic", "bikes", "google", "alibaba"))
    found = [
        Demand("electricity, megawatts by the hour", grid["PGE"], 0.0, 24, 168),
        Demand("cars on a road by the hour", every_hour(road["traffic_volume"], road["datetime"] / 3600.0), 0.0, 24, 168),
        Demand("bicycles by the hour", every_hour(bikes["bikers"], 24.0 * bikes["day"] + bikes["hr"]), 0.0, 24, 168),
        Demand("processors of a data centre, 5 minutes", machines["cpu_util_percent"], 0.0, 288, 2016),
        Demand("disks of a data centre, 10 seconds", disks["disk_io_percent"], 0.0, None, None),
    ]
    return [each._replace(values=each.values[:ROUNDS], top=2.0 * float(each.values[:ROUNDS].max())) for each in found]


# --- rules with the knob that was best ------------------------------------------------------------------------------------------------


def cheapest_margin(values: np.ndarray, forecast: np.ndarray, spread: np.ndarray, share: float) -> np.ndarray:
    """forecast + k spread with the smallest k that leaves at most this share short."""
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(spread > 0.0, (values - forecast) / spread, np.where(values > forecast, np.inf, -np.inf))
    k = np.sort(needed)[::-1][int(share * len(values))]
    return forecast + (k + 1e-9 * abs(k)) * spread if np.isfinite(k) else np.full(len(values), np.nan)


def families_of(stream: Demand) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Each family of rules: forecasts and what a unit of the margin adds to each, by the knobs that are tried."""
    box, slots = bridle.Box(0.0, stream.top, dim=1), [period for period in (stream.day, stream.week) if period is not None]
    pairs = {
        f"same slot{', moved' * moved} + k deviations": {
            f"period {period}, memory {memory:g}": [rules.same_slot(box, period, k, memory, moved) for k in (0.0, 1.0)]
            for period in slots for memory in (1.0, 0.5, 0.2)
        }
        for moved in (False, True)
    }  # fmt: skip
    pairs["EWMA + k deviations"] = {f"memory {m:g}": [rules.ewma(box, k, m) for k in (0.0, 1.0)] for m in (0.5, 0.3, 0.1, 0.03, 0.01)}
    pairs["autoscaler"] = {f"{n} slots": [rules.autoscaler(box, 1.0, n)] for n in (1, 3, 12, 48)}
    found: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    for family, knobs in pairs.items():
        for knob, made in knobs.items():
            proposed = rules.propose(made, stream.values[:, None])[:, :, 0]
            both = (proposed[:, 0], proposed[:, 1] - proposed[:, 0]) if len(made) > 1 else (0.0 * proposed[:, 0], proposed[:, 0])
            found.setdefault(family, {})[knob] = both
    return found


def last_quantiles(stream: Demand, share: float) -> dict[str, np.ndarray]:
    """The order statistics of the last N demands around the one that is asked for."""
    levels = 1.0 - share * np.array([1.1, 1.0, 0.9, 0.75, 0.6, 0.4, 0.2, 0.0])
    found: dict[str, np.ndarray] = {}
    for n in (24, 100, 400, 1_500):
        ordered = [np.sort(stream.values[max(0, t - n) : t]) for t in range(1, len(stream.values))]
        for level in levels:
            places = [past[max(int(np.ceil(level * len(past) - 1e-9)), 1) - 1] for past in ordered]
            found[f"N = {n}, {level:.4g}"] = np.array([stream.top, *places])
    return found


def tuned(
    stream: Demand, families: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]], share: float
) -> dict[str, tuple[float, float, str]]:
    """Of each family the cheapest in hindsight: its cost, its share of short slots, and its knobs."""
    candidates = {
        family: {knob: cheapest_margin(stream.values, *parts, share) for knob, parts in knobs.items()} for family, knobs in families.items()
    } | {"quantile of the last N": last_quantiles(stream, share)}
    best: dict[str, tuple[float, float, str]] = {}
    for family, knobs in candidates.items():
        for knob, wanted in knobs.items():
            chosen = np.clip(wanted, 0.0, stream.top)
            short, cost = float((stream.values > chosen).mean()), float(chosen.sum() / stream.values.sum())
            if short <= share and cost < best.get(family, (np.inf,))[0]:
                best[family] = cost, short, knob
    return best


# --- ours -----------------------------------------------------------------------------------------------------------------------------


def rated(stream: Demand, share: float, own: bool) -> np.ndarray:
    """What policy `rate` holds in each slot, with the stock of rules or with none."""
    box = bridle.Box(0.0, stream.top, dim=1)
    stock = rules.demand_rules(box, stream.day, stream.week)
    more = {"rules": len(stock)} if own else {}
    policy = bridle.policy("rate", box, at_most=share, safe=[stream.top], **more)
    record, values = policy.record, stream.values
    state, one = record.init(box.center()), np.ones(1)
    proposals = rules.propose(stock, values[:, None]) if own else None
    chosen = np.empty(len(values))
    for t, value in enumerate(values):
        if proposals is not None:
            state = record.begin(state, policy.through.first(proposals[0])) if t == 0 else state
            state = record.propose(state, proposals[t])
        x = record.decide(state)
        state = record.update(state, Feedback(x, float(x[0]), one, value - x, -one[None]))
        chosen[t] = x[0]
    return chosen


OURS = {"`rate`": False, "`rate`, stock rules": True}


def measure() -> list[dict[str, Any]]:
    """A row for each stream and share."""
    table = []
    for stream in streams():
        families = families_of(stream)
        for share in SHARES:
            row: dict[str, Any] = {"stream": stream.name, "share": share, "rules": tuned(stream, families, share), "ours": {}}
            for name, own in OURS.items():
                chosen = rated(stream, share, own)
                row["ours"][name] = float(chosen.sum() / stream.values.sum()), float((stream.values > chosen).mean())
            print(line(row), flush=True)
            table.append(row)
    return table


def line(row: dict[str, Any], names: list[str] | None = None) -> str:
    found = {**row["rules"], **row["ours"]}
    cells = [f"{found[n][0]:.3f} @ {100 * found[n][1]:.2g}" if n in found else "-" for n in [*(names or row["rules"]), *row["ours"]]]
    return f"| {row['stream']}, {100 * row['share']:g} % | " + " | ".join(cells) + " |"


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of the documentation: capacity over demand @ percent of slots with too little."""
    names = list(dict.fromkeys(name for row in rows for name in row["rules"]))
    head = ["demand", *(f"{name}, in hindsight" for name in names), *rows[0]["ours"]]
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *(line(row, names) for row in rows)])


# --- the picture ----------------------------------------------------------------------------------------------------------------------


def draw(path: Path) -> None:
    """A fortnight of demand and capacity; and the share of short slots so far, beside what was asked and what is proved."""
    from matplotlib.figure import Figure

    from bridle.comparisons.plots import save_figure
    from bridle.policies.levels import most_violations
    from bridle.showing.figures import SETTINGS, require_matplotlib

    stream, share = streams()[0], SHARES[0]
    chosen = rated(stream, share, own=True)
    values, T = stream.values, len(stream.values)
    with require_matplotlib().rc_context(SETTINGS):
        figure = Figure(figsize=(8.0, 5.4), layout="constrained")
        top, below = figure.subplots(2, 1, height_ratios=(3, 2))
        some = slice(T // 2, T // 2 + size(336, 60))
        hours = np.arange(len(values[some]))
        top.step(hours / 24.0, values[some] / 1e3, where="post", color="#1b1e24", linewidth=1.0, label="demand")
        top.step(hours / 24.0, chosen[some] / 1e3, where="post", color="#2166ac", linewidth=1.0, label="capacity held: rate, stock rules")
        short = np.flatnonzero(values[some] > chosen[some])
        top.plot((short + 0.5) / 24.0, values[some][short] / 1e3, "v", color="#b2182b", markersize=5, label="too little")
        top.set(title="Two weeks of electricity in California, 2018", xlabel="days", ylabel="gigawatts", ylim=(0, None))
        top.legend(loc="lower right", ncols=3, frameon=False)
        n = np.arange(1, T + 1)
        sofar = 100.0 * np.cumsum(values > chosen) / n
        most = 100.0 * np.minimum(1.0, np.array([most_violations(share, float(t), 80.0) for t in n]) / n)
        below.plot(n, most, color="#5c6370", linestyle="dashed", linewidth=1.2, label="proved: never more")
        below.plot(n, sofar, color="#2166ac", linewidth=1.4, label="slots with too little, so far")
        below.axhline(100.0 * share, color="#b2182b", linewidth=1.0, label="asked for")
        below.set(xscale="log", yscale="log", ylim=(1.0, 110.0), xlim=(10, T), xlabel="slots (hours)", ylabel="percent of slots")
        below.set_title(f"At most {100 * share:g} percent of the slots may have too little")
        below.set_yticks([1, 5, 10, 100], ["1", "5", "10", "100"])
        below.set_xticks([10, 100, 1_000, T], ["10", "100", "1,000", f"{T:,}"])
        top.set_xlim(0, len(hours) / 24.0)
        below.legend(loc="upper right", frameon=False)
        save_figure(figure, path)


def main() -> None:
    draw(target(DOCS / "capacity.png"))
    if "--picture" in sys.argv:
        return
    rows = measure()
    target(Path(__file__).with_name("capacity.json")).write_text(json.dumps(rows, indent=1) + "\n")
    page = target(DOCS / "capacity.md")
    text = page.read_text()
    start = text.index(BEGIN) + len(BEGIN)
    page.write_text(f"{text[:start]}\n{markdown(rows)}\n{text[text.index(END, start) :]}")
    print(markdown(rows))


if __name__ == "__main__":
    main()

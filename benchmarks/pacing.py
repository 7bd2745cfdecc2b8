"""`Pacer`, told nothing but budget and rounds, against pacing rules whose knobs are chosen in hindsight: docs/pacing.md.

Seeded auctions with heavy-tailed prices and drifting values (parts/auctions.py), first- and second-price, as one stream and in episodes of
1,000 rounds with a budget each, which is 1/32 of all prices. Figures are the value won over that of the best choice of auctions in
hindsight. The pacer's settings were chosen on CHOSEN_ON and are judged on JUDGED_ON: other seeds, and two kinds that were not looked at.
The others get, for each row, the start and the step that turn out best for that row. ``--picture`` draws the picture alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import bridle
from bridle.problems._auctions import AuctionLog
from parts.auctions import Auctions, paced, recorded, tuned
from parts.toy import size, target

ROUNDS, EPISODE = size(150_000, 400), size(1_000, 100)
CHOSEN_ON = {"kinds": ("still", "daily", "walk"), "seeds": (0, 1)}
JUDGED_ON = {"kinds": ("still", "daily", "walk", "jumps", "clicks"), "seeds": size((10, 11), (10,))}
OURS, CARRIED = "Pacer", "Pacer, price carried over"
UNITS = (1e-3, 1e3)
BEGIN, END = "<!-- measured by benchmarks/pacing.py -->", "<!-- end -->"


def measure(kind: str, auction: str, whole: bool) -> dict[str, Any]:
    """One row: what everybody wins of the best choice, and how far other units change what the pacer wins."""
    seeds = [recorded(kind, ROUNDS, seed) for seed in JUDGED_ON["seeds"]]
    streams = seeds if whole else [part for stream in seeds for part in stream.episodes(EPISODE)]
    best = sum(stream.best() for stream in streams)
    ours = [paced(stream, auction)[0] for stream in streams]
    rescaled = [paced(streams[0], auction, units)[0] for units in UNITS]
    row: dict[str, Any] = {"kind": kind, "auction": auction, "rounds": len(streams[0].values), "streams": len(streams)}
    row[OURS] = sum(ours) / best
    row["units"] = max(abs(other / ours[0] - 1.0) for other in rescaled)
    if not whole:
        row[CARRIED] = sum(carried(stream.episodes(EPISODE), auction) for stream in seeds) / best
    for name, (share, knobs) in tuned(streams, auction).items():
        row[name], row[f"{name}, knobs"] = share, knobs
    return row


def carried(episodes: list[Auctions], auction: str) -> float:
    """What the pacer wins if each episode starts from the price at which the last one ended."""
    price, total = None, 0.0
    for episode in episodes:
        won, pacer = paced(episode, auction, price=price)
        price, total = pacer.price, total + won
    return total


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of the documentation."""
    others = [name.removesuffix(", knobs") for name in rows[0] if name.endswith(", knobs")]
    columns = [OURS, CARRIED, *others]
    lines = ["| auctions | rounds | " + " | ".join(columns) + " |", "|---" * (2 + len(columns)) + "|"]
    for row in rows:
        cells = [f"{row[name]:.3f}" if name in row else "-" for name in columns]
        lines.append(f"| `{row['kind']}`, {row['auction']} price | {row['rounds']:,} | " + " | ".join(cells) + " |")
    means = {name: sum(row[name] for row in rows) / len(rows) for name in (OURS, *others)}
    lines += ["", "Mean: " + ", ".join(f"{name} {mean:.3f}" for name, mean in means.items()) + "."]
    apart = max(row["units"] for row in rows)
    return "\n".join([*lines, f"With all units 1e-3 or 1e3 times as large the pacer wins the same to {apart:.1g}."])


def draw(path: Path) -> None:
    """Money spent in one period by the pacer, and by who bids what it is worth; and periods: what the pacer certified, and what it won."""
    from matplotlib.figure import Figure

    from bridle.comparisons.plots import save_figure
    from bridle.showing.figures import SETTINGS, require_matplotlib

    stream = recorded("daily", size(20_000, 300), JUDGED_ON["seeds"][0])
    log, budget, T = AuctionLog(stream.values, stream.prices), stream.budget, len(stream.values)
    spent = log.play(bridle.Pacer(budget, T, goal="value", unit=log.unit)).spent
    unpaced = np.minimum(np.cumsum(np.where(stream.prices <= stream.values, stream.prices, 0.0)), budget)
    periods = []
    for part in recorded("still", size(100_000, 300), JUDGED_ON["seeds"][0]).episodes(EPISODE):
        own = AuctionLog(part.values, part.prices)
        pacer = bridle.Pacer(part.budget, own.rounds, goal="value", unit=own.unit)
        found = own.play(pacer)
        periods.append((found.value / (found.value + max(pacer.certified_loss or 0.0, 0.0)), found.share))
    certified, won = 100.0 * np.array(periods).T
    n, blue, red, grey, orange = np.arange(1, T + 1) / 1e3, "#2166ac", "#b2182b", "#5c6370", "#e08214"
    with require_matplotlib().rc_context(SETTINGS):
        figure = Figure(figsize=(9.2, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        left.axhline(100.0, color=red, linewidth=1.2, label="budget: never exceeded")
        left.plot(n, 100.0 * np.arange(1, T + 1) / T, color=grey, linestyle="dashed", linewidth=1.0, label="even plan")
        left.plot(n, 100.0 * unpaced / budget, color=orange, linewidth=1.3, label="bids what it is worth")
        left.plot(n, 100.0 * spent / budget, color=blue, linewidth=1.6, label="Pacer")
        left.set(title="Money spent, in a market that swings", xlabel="thousands of auctions", ylabel="percent of the budget")
        left.set(ylim=(0, 108), xlim=(0, T / 1e3))
        left.legend(loc="lower right", frameon=False)
        low = min(certified.min(), won.min()) - 2.0
        right.plot([low, 101.0], [low, 101.0], color=red, linewidth=1.2, label="certified, on average: dots lie above")
        right.plot(certified, won, "o", color=blue, markersize=3.5, alpha=0.6, label=f"a period of {EPISODE:,} auctions")
        right.plot(certified.mean(), won.mean(), "D", color="#1b1e24", markersize=7, label="mean of all")
        right.set(title="Value, in percent of the best choice", xlabel="certified by the pacer itself", ylabel="really won")
        right.set(xlim=(low, 101.0), ylim=(low, 101.0))
        right.legend(loc="lower right", frameon=False)
        save_figure(figure, path)


def main() -> None:
    draw(target(Path(__file__).parent.parent / "docs" / "pacing.png"))
    if "--picture" in sys.argv:
        return
    rows = [
        measure(kind, auction, whole) for whole in (True, False) for auction in ("second", "first") for kind in JUDGED_ON["kinds"]
    ]  # fmt: skip
    table = markdown(rows)
    sys.stdout.write(f"{table}\n")
    figures = target(Path(__file__).with_name("pacing.json"))
    figures.write_text(json.dumps(rows, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "pacing.md")
    text = page.read_text()
    start = text.index(BEGIN) + len(BEGIN)
    page.write_text(f"{text[:start]}\n{table}\n{text[text.index(END, start) :]}")
    sys.stdout.write(f"written to {page} and {figures}\n")


if __name__ == "__main__":
    main()

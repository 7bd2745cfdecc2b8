"""`Pacer`, told nothing but budget and rounds, against pacing rules whose knobs are chosen in hindsight: docs/budgets.md.

Seeded auctions with heavy-tailed prices and drifting values (parts/auctions.py), first- and second-price, as one stream and in episodes of
1,000 rounds with a budget each, which is 1/32 of all prices. Figures are the value won over that of the best choice of auctions in
hindsight. The pacer's settings were chosen on CHOSEN_ON and are judged on JUDGED_ON: other seeds, and two kinds that were not looked at.
The others get, for each row, the start and the step that turn out best for that row.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

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


def main() -> None:
    rows = [
        measure(kind, auction, whole) for whole in (True, False) for auction in ("second", "first") for kind in JUDGED_ON["kinds"]
    ]  # fmt: skip
    table = markdown(rows)
    sys.stdout.write(f"{table}\n")
    figures = target(Path(__file__).with_name("pacing.json"))
    figures.write_text(json.dumps(rows, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "budgets.md")
    text = page.read_text()
    start = text.index(BEGIN) + len(BEGIN)
    page.write_text(f"{text[:start]}\n{table}\n{text[text.index(END, start) :]}")
    sys.stdout.write(f"written to {page} and {figures}\n")


if __name__ == "__main__":
    main()

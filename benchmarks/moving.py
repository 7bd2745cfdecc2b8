"""A world that moves: `anytime` without a window, with each of a grid of windows, and with ``window="auto"``; and `dynamic`.

It writes the two tables of docs/moving.md.

Two tasks on four kinds of streams. Capacity is provided before demand is seen: it costs its price, and too little of it violates a limit.
A target pulls while halfspaces leave an action that moves with it. Settings are the policies' own for all; the best window is the one of
the grid, or none, with the least cost + PRICE times violation on this very stream, in hindsight.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bridle
from bridle.core import Feedback
from bridle.policies.memories import WINDOWS
from parts.toy import size, target

ROUNDS, SEEDS = size(10_000, 60), size((0, 1, 2), (0,))
KINDS = ("still", "drift", "jumps", "seasons")
GRID = size(tuple(int(W) for W in WINDOWS if W <= 16_384), (16,))
PRICES = (10.0, 100.0)
"""What a unit of violation is taken to be worth, in units of the cost of a unit of the action: for the best window in hindsight."""
DIM = 2
BEGIN, END = "<!-- measured by benchmarks/moving.py -->", "<!-- end -->"
BEGIN_DYNAMIC = "<!-- dynamic, measured by benchmarks/moving.py -->"
RESTART = "steps alone"
"""What the name of a window ends in where no old halfspaces are kept within it."""


class Answer(NamedTuple):
    """What is revealed to all streams at once: costs, their gradients, limits and theirs."""

    f: np.ndarray
    df: np.ndarray
    g: np.ndarray
    dg: np.ndarray


def levels(kind: str, seed: int) -> np.ndarray:
    """What moves, between 0.15 and 0.85 in each coordinate: nothing, one and a half slow waves, ten jumps or so, a day of 200 rounds."""
    rng, t = np.random.default_rng([seed, 1]), np.arange(ROUNDS)[:, None]
    phase = rng.uniform(0.0, 1.0, DIM)
    if kind == "still":
        return np.tile(rng.uniform(0.3, 0.7, DIM), (ROUNDS, 1))
    if kind == "jumps":
        many = max(2, ROUNDS // 1000)
        at = np.sort(rng.integers(1, ROUNDS, many))
        return rng.uniform(0.15, 0.85, (many + 1, DIM))[np.searchsorted(at, t[:, 0], side="right")]
    return 0.5 + 0.35 * np.sin(2.0 * np.pi * (phase + t / (200.0 if kind == "seasons" else ROUNDS / 1.5)))


def capacity(streams: list[tuple[str, int]]) -> tuple[bridle.Domain, Callable[[int, np.ndarray], Answer]]:
    """Each coordinate is provided before its demand is seen; a unit of it has a price of its own."""
    rngs = [np.random.default_rng([seed, 2]) for _, seed in streams]
    prices = np.array([rng.uniform(0.5, 1.5, DIM) for rng in rngs])
    demand = np.array([levels(*stream) + rng.uniform(-0.1, 0.1, (ROUNDS, DIM)) for stream, rng in zip(streams, rngs, strict=True)])
    rows = np.broadcast_to(-np.eye(DIM), (len(streams), DIM, DIM))

    def answer(t: int, x: np.ndarray) -> Answer:
        return Answer((prices * x).sum(axis=1, keepdims=True), prices, demand[:, t] - x, rows)

    return bridle.Box(0.0, 1.0, dim=DIM), answer


def pulled(streams: list[tuple[str, int]]) -> tuple[bridle.Domain, Callable[[int, np.ndarray], Answer]]:
    """The cost is the distance to a noisy target outside of what is allowed; random halfspaces leave an action, nearly touching it."""
    rngs = [np.random.default_rng([seed, 3]) for _, seed in streams]
    left = np.array([(2.0 * levels(*stream) - 1.0) / np.sqrt(DIM) for stream in streams])
    pull = np.array([rng.standard_normal(DIM) for rng in rngs])
    noise = np.array([rng.normal(0.0, 0.3, (ROUNDS, DIM)) for rng in rngs])
    goal = left + 0.3 * (pull / np.linalg.norm(pull, axis=1, keepdims=True))[:, None] + noise
    normals = np.array([rng.standard_normal((ROUNDS, DIM)) for rng in rngs])
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    slack = np.array([rng.exponential(0.05, ROUNDS) for rng in rngs])

    def answer(t: int, x: np.ndarray) -> Answer:
        away, n = x - goal[:, t], normals[:, t]
        far = np.linalg.norm(away, axis=1, keepdims=True)
        return Answer(far, away / far, (n * (x - left[:, t])).sum(axis=1, keepdims=True) - slack[:, t, None], n[:, None])

    return bridle.Ball(DIM), answer


TASKS = {"capacity": capacity, "pulled": pulled}


def play(record: object, answer: Callable[[int, np.ndarray], Answer], start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cost and violation a round of one policy on all streams at once, and the mean weights of its memories, where it mixes any."""
    state, totals, weights = record.init(start), np.zeros((len(start), 2)), 0.0
    for t in range(ROUNDS):
        x = record.decide(state)
        seen = answer(t, x)
        weights = weights + (record.weights(state) if hasattr(record, "weights") else 0.0)
        state = record.update(state, Feedback(x, *seen))
        totals += np.concatenate([seen.f, np.maximum(seen.g, 0.0).max(axis=1, keepdims=True)], axis=1)
    return totals / ROUNDS, np.asarray(weights) / ROUNDS


def measure() -> list[dict[str, object]]:
    """A row for each task and kind of stream, with means over the seeds."""
    streams, rows = [(kind, seed) for kind in KINDS for seed in SEEDS], []
    for task, make in TASKS.items():
        domain, answer = make(streams)
        start = np.tile(domain.center(), (len(streams), 1))
        told = {"without": {}, "auto": {"window": "auto"}} | {str(W): {"window": W} for W in GRID}
        told |= {f"{W}, {RESTART}": {"window": W, "cuts": 0} for W in GRID}
        found = {name: play(bridle.policy("anytime", domain, **each).record, answer, start) for name, each in told.items()}
        found["dynamic"] = play(bridle.policy("dynamic", domain).record, answer, start)
        for i, kind in enumerate(KINDS):
            part = slice(i * len(SEEDS), (i + 1) * len(SEEDS))
            means = {name: results[part].mean(axis=0).tolist() for name, (results, _) in found.items()}
            rows.append({"task": task, "stream": kind, "found": means, "weights": found["auto"][1][part].mean(axis=0).tolist()})
    return rows


def best(found: dict[str, list[float]], price: float) -> str:
    """The window, or none, that is best in hindsight at this price of violation."""
    windows = [name for name in found if name not in ("auto", "dynamic") and not name.endswith(RESTART)]
    return min(windows, key=lambda name: found[name][0] + price * found[name][1])


def best_of_all(found: dict[str, list[float]], price: float = 1.0) -> str:
    """The window, with or without old halfspaces, or none, that is best in hindsight."""
    grid = [name for name in found if name not in ("auto", "dynamic")]
    return min(grid, key=lambda name: found[name][0] + price * found[name][1])


def markdown(rows: list[dict[str, object]]) -> str:
    """The table of the documentation: cost / violation a round."""
    heads = ["task", "stream", "no window", "`window=16`", *(f"best window at price {price:g}" for price in PRICES), '`window="auto"`']
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        found = row["found"]

        def cell(name: str, found: dict[str, list[float]] = found) -> str:
            return f"{found[name][0]:.3f} / {found[name][1]:.4f}"

        chosen = [best(found, price) for price in PRICES]
        cells = [cell("without"), cell("16"), *(f"{cell(name)} ({name})" for name in chosen), cell("auto")]
        lines.append(f"| {row['task']} | {row['stream']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown_dynamic(rows: list[dict[str, object]]) -> str:
    """The table of `dynamic`: cost / violation a round, and its cost plus violation in units of that of the best of the grid."""
    heads = [
        "task",
        "stream",
        "best of windows and restarts",
        '`window="auto"`',
        "`dynamic`",
        "ratio",
        "ratio at price 10",
        "ratio at price 100",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        found = row["found"]
        if row["stream"] == "still":
            continue

        def ratio(price: float, found: dict[str, list[float]] = found) -> str:
            mine, other = found["dynamic"], found[best_of_all(found, price)]
            return f"{(mine[0] + price * mine[1]) / (other[0] + price * other[1]):.3f}"

        chosen = best_of_all(found)
        cells = [f"{found[name][0]:.3f} / {found[name][1]:.4f}" for name in (chosen, "auto", "dynamic")]
        cells[0] += f" ({chosen})"
        lines.append(f"| {row['task']} | {row['stream']} | " + " | ".join([*cells, ratio(1.0), ratio(10.0), ratio(100.0)]) + " |")
    return "\n".join(lines)


def filled(text: str, begin: str, table: str) -> str:
    """The page with this table between its marks."""
    start = text.index(begin) + len(begin)
    return f"{text[:start]}\n{table}\n{text[text.index(END, start) :]}"


def main() -> None:
    rows = measure()
    figures = target(Path(__file__).with_name("moving.json"))
    figures.write_text(json.dumps(rows, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "moving.md")
    page.write_text(filled(filled(page.read_text(), BEGIN, markdown(rows)), BEGIN_DYNAMIC, markdown_dynamic(rows)))
    print(markdown(rows), markdown_dynamic(rows), sep="\n\n")


if __name__ == "__main__":
    main()

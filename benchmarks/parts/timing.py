"""Sides that are timed beside each other: interleaved repeats, ratios to one of them within each repeat, and what they agree on."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Side(NamedTuple):
    """One way to play: `run` plays `rounds` rounds in all, of all its runs together."""

    name: str
    run: Callable[[], Any]
    rounds: int
    note: str = ""


def gathered(makers: dict[str, Callable[[], Any]]) -> tuple[dict[str, Any], list[str]]:
    """What could be made with the libraries that are here, by name, and of the rest, why not."""
    there: dict[str, Any] = {}
    skipped: list[str] = []
    for name, make in makers.items():
        try:
            there[name] = make()
        except ImportError as missing:
            skipped.append(f"{name}, which is not installed here ({missing})")
    return there, skipped


def interleaved(sides: list[Side], repeats: int) -> list[dict[str, Any]]:
    """Microseconds per run and round of every side, and its ratio to the first side: medians, smallest and largest over the repeats."""
    for side in sides:
        side.run()  # compiles, fills caches
    spent: dict[str, list[float]] = {side.name: [] for side in sides}
    for _ in range(repeats):
        for side in sides:
            begun = time.perf_counter()
            side.run()
            spent[side.name].append(1e6 * (time.perf_counter() - begun) / side.rounds)
    return [{"name": side.name, "note": side.note, **against(spent[side.name], spent[sides[0].name])} for side in sides]


def against(mine: list[float], base: list[float]) -> dict[str, float]:
    """The time itself, and as a multiple of what the base took in the same repeat."""
    ratios = [a / b for a, b in zip(mine, base, strict=True)]
    return {
        "us": statistics.median(mine), "us_low": min(mine), "us_high": max(mine),
        "ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios),
    }  # fmt: skip


def apart(ends: dict[str, np.ndarray], most: float) -> float:
    """How far the decisions of these sides are from those of the first, at most; an error where that is too far."""
    first = next(iter(ends.values()))
    far = {name: float(np.abs(end - first).max()) for name, end in ends.items()}
    worst = max(far, key=lambda name: far[name])
    if not far[worst] <= most:
        raise AssertionError(f"{worst} does not compute the same decisions: {far[worst]:.2g} apart")
    return far[worst]

"""How long it takes to refuse a wrong key: whether the time tells how near it came to a right one.

Keys of several kinds are refused in turns, in an order that is drawn anew each time, and their processor times compared in pairs of kinds
by Welch's t on what is left without the longest tenth, which other work on the machine has made long. With a comparison that stops at the
first difference, or without the work for an unknown name, t grows as the root of the number of looks and is in the hundreds soon.
"""

from __future__ import annotations

import math
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bridle.service import auth

LARGEST_T = 10.0
"""Beyond this, times are told apart. The machine itself makes t of 3 or 4: caches and branches are not the same for two texts."""

SMALLEST_SHARE = 0.02
"""And differences of a smaller part of the time are those of memory that is read, not of work that is left out."""

GROUP = 20
"""So many refusals are timed as one: the clock is coarse."""


@dataclass
class Timing:
    """How many times were taken, the largest t between two kinds of wrong keys, and what could be told apart."""

    looks: int
    largest: float
    wrong: list[str]


def compare(looks: int, seed: int = 0, recognise: Callable[..., object] = auth.recognise) -> Timing:
    """Refuse wrong keys so often, and compare how long the kinds take."""
    text, key = auth.make_key("timed", ["read"], 0.0)
    others = [auth.make_key(f"other {i}", ["read"], 0.0)[1] for i in range(20)]
    ring = {each.id: each for each in (*others, key)}
    name, _, secret = text.removeprefix(auth.PREFIX).partition("_")
    far = secrets.token_urlsafe(32)
    kinds = {
        "wrong in its last character": f"{auth.PREFIX}{name}_{secret[:-1]}{'A' if secret[-1] != 'A' else 'B'}",
        "wrong in its first character": f"{auth.PREFIX}{name}_{'A' if secret[0] != 'A' else 'B'}{secret[1:]}",
        "wrong altogether": f"{auth.PREFIX}{name}_{far}",
        "of a name that nobody has": f"{auth.PREFIX}{'0' * len(name)}_{far}",
    }
    assert all(recognise(each, ring) is None for each in kinds.values())
    rng, times = random.Random(seed), {kind: [] for kind in kinds}  # type: tuple[random.Random, dict[str, list[int]]]
    rounds = math.ceil(looks / GROUP / len(kinds))
    for _ in range(rounds):
        for kind in rng.sample(list(kinds), len(kinds)):
            shown = kinds[kind]
            begun = time.thread_time_ns()
            for _ in range(GROUP):
                recognise(shown, ring)
            times[kind].append(time.thread_time_ns() - begun)
    kept = {kind: np.sort(np.array(each, dtype=float))[: max(2, 9 * len(each) // 10)] for kind, each in times.items()}
    largest, wrong = 0.0, []
    for one, other in combinations(kept, 2):
        a, b = kept[one], kept[other]
        gap = a.mean() - b.mean()
        t = abs(gap) / math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b) + 1e-12)
        largest = max(largest, t)
        if t > LARGEST_T and abs(gap) > SMALLEST_SHARE * min(a.mean(), b.mean()):
            wrong.append(f"a key {one} and one {other} take {a.mean() / GROUP:.0f} and {b.mean() / GROUP:.0f} ns (t = {t:.1f})")
    return Timing(rounds * GROUP * len(kinds), float(largest), wrong)

"""Shared material for tests: domains to try, opponents that try to hurt, and what counts as rounding."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import bridle
from bridle import data
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.problems import problem_names

EPS = 2.0**-52

APPLICATIONS = ("portfolio", "capacity", "ad-pacing", "fair-classifier", "auctions")
SIMULATED = [name for name in problem_names() if name not in APPLICATIONS]
"""The problems that need no data: those of the applications have tests of their own, which may have to fetch some."""

THE_SEED_DOES_NOT_SHOW = {
    "lower-bound": "from the centre, both sides of every coin are worth the same",
    **dict.fromkeys(("tempting", "rare-constraint", "late-temptation", "uphill"), "nothing in it is drawn"),
}
"""Problems whose games from the centre are the same with every seed, and why."""


def made_in(module: ModuleType) -> list[str]:
    """The registered problems that a module defines."""
    return [name for name in problem_names() if name.replace("-", "_") in vars(module)]


CURVED = {"pricing": 4.0, "navigation": 30.0}
"""Problems whose costs are strongly convex by nature, not by a parameter, and how many times the stated modulus a few of them may show."""

OFFLINE: list[str] = []
LOADED: dict[str, data.Data] = {}


def real(name: str) -> data.Data:
    """A real data set, from the cache or downloaded. No network is the one reason to skip."""
    if OFFLINE and not data.facts(name)["cached"]:
        pytest.skip(OFFLINE[0])
    try:
        return LOADED.setdefault(name, LOADED.get(name) or data.load(name))
    except data.Unreachable as trouble:
        OFFLINE.append(f"no network: {trouble}")
        pytest.skip(OFFLINE[0])


PROGRAM = (
    sys.executable, "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from bridle.cli import main; main()",
)  # fmt: skip
"""The command line as a process that takes notice of Ctrl-C also where the tests run in the background, which ignores it."""


def rounding(t: int, *terms: float) -> float:
    """What t sums of numbers this large may be off by."""
    return 8.0 * EPS * (t + 16) * sum(abs(term) for term in terms)


def make_domain(kind: str, dim: int, size: float, rng: np.random.Generator):
    """A domain of this kind whose diameter is of the order of `size`, away from the origin where it can be."""
    middle = size * rng.standard_normal(dim)
    if kind == "ball":
        return bridle.Ball(radius=size, center=middle)
    if kind == "box":
        return bridle.Box(middle - size * rng.uniform(0.1, 1.0, dim), middle + size * rng.uniform(0.1, 1.0, dim))
    if kind == "simplex":
        return bridle.Simplex(max(dim, 2), mass=size)
    if kind == "l1":
        return bridle.L1Ball(radius=size, center=middle)
    if kind == "halfspace":
        a = rng.standard_normal(dim)
        return bridle.Halfspace(
            a, float(a @ middle) + 0.3 * size * float(np.linalg.norm(a)), within=bridle.Ball(radius=size, center=middle)
        )
    if kind == "cut-box":
        a = rng.standard_normal(dim)
        box = bridle.Box(middle - size, middle + size)
        return bridle.Halfspace(a, float(a @ middle) + 0.2 * size * float(np.abs(a).sum()), within=box)
    if kind == "product":
        return bridle.Product(bridle.Ball(dim, radius=size), bridle.Simplex(2, mass=size))
    if kind == "spectrahedron":
        return bridle.Spectrahedron(2, trace=size)
    raise ValueError(kind)


DOMAINS = ("ball", "box", "simplex", "l1", "halfspace", "cut-box", "product", "spectrahedron")
MOVES = ("random", "violate", "regret", "alternate", "curved", "quiet")


@st.composite
def instances(draw):
    """A domain, a feasible point in it, a Lipschitz constant and a generator: sizes and scales from 1e-3 to 1e3, dimensions 1 to 30."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = 10.0 ** draw(st.floats(-3.0, 3.0))
    domain = make_domain(draw(st.sampled_from(DOMAINS)), draw(st.integers(1, 30)), size, rng)
    inside = domain.project(domain.center() + domain.diameter() * rng.standard_normal(domain.dim))
    feasible = domain.center() + draw(st.sampled_from([0.0, 0.5, 1.0])) * (inside - domain.center())
    return domain, domain.project(feasible), 10.0 ** draw(st.floats(-3.0, 3.0)), rng


def constraint_at(move: str, x: np.ndarray, feasible: np.ndarray, G: float, D: float, t: int, rng: np.random.Generator):
    """A G-Lipschitz convex constraint, satisfied at the feasible point, chosen after seeing x."""
    d = len(x)
    away = x - feasible
    length = float(np.linalg.norm(away))
    unit = away / length if length > 0 else rng.standard_normal(d) / np.sqrt(d) / 4.0
    if move == "violate":
        return AffineFunction(G * unit, -G * float(unit @ feasible))
    if move == "curved":
        return RoundQuadratic(G / D, feasible, np.zeros(d), 0.0)
    if move == "quiet":
        return AffineFunction(np.zeros(d), -G * D)
    a = rng.standard_normal(d)
    a *= G / np.linalg.norm(a)
    if move == "alternate" and t % 2:
        a = -a
    slack = rng.exponential(0.1 * G * D) * (rng.random() < 0.5)
    return AffineFunction(a, -float(a @ feasible) - slack)


def cost_at(move: str, x: np.ndarray, feasible: np.ndarray, G: float, t: int, rng: np.random.Generator):
    """A G-Lipschitz linear cost chosen after seeing x."""
    d = len(x)
    away = x - feasible
    length = float(np.linalg.norm(away))
    if move == "regret" and length > 0:
        return AffineFunction(G * away / length, 0.0)
    if move == "violate":  # pull along the constraint's normal, out of the feasible side
        return AffineFunction(-G * away / length if length > 0 else np.zeros(d), 0.0)
    if move == "quiet":
        return AffineFunction(np.zeros(d), 0.0)
    c = rng.standard_normal(d)
    c *= G / np.linalg.norm(c)
    return AffineFunction(-c if move == "alternate" and t % 2 else c, 0.0)


def moves(rng: np.random.Generator, rounds: int) -> Iterator[tuple[str, str]]:
    """What the opponent does in each round: it keeps to one habit for a while, then changes."""
    cost, constraint = rng.choice(MOVES, size=2)
    for _ in range(rounds):
        if rng.random() < 0.05:
            cost, constraint = rng.choice(MOVES, size=2)
        yield str(cost), str(constraint)


def strict(text: str) -> Any:
    """JSON without the NaN and Infinity that Python's reader would let pass."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def settings_of(name: str, folder: Path) -> dict[str, str]:
    """What a problem cannot be made without, beside its horizon: of `auctions` a file, which is put into this folder."""
    if name != "auctions":
        return {}
    path = folder / "auctions.csv"
    path.write_text("value,price\n" + "\n".join(f"{1 + t % 3},{1 + t % 5}" for t in range(60)) + "\n")
    return {"data": str(path)}

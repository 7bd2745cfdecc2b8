"""Rows of a comparison for tests: real games on the registered problems, as a comparison keeps them."""

from __future__ import annotations

import json
import warnings
from functools import cache
from typing import Any

import bridle
from bridle.comparisons.cell import Cell, Instance, perform
from bridle.comparisons.rows import GameRow


def row(problem: str, policy: str, horizon: int, seed: int, settings: dict[str, Any] | None = None, **of_problem: Any) -> GameRow:
    """One game as a row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        return perform(Cell(Instance(problem, of_problem, horizon, seed), policy, settings or {}))["row"]


POLICIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sinha2024", {}),
    ("sinha2024", {"preset": "practice"}),
    ("sinha2024-strong", {}),
    ("sinha2024-ocs", {}),
    ("guo2022", {}),
    ("neely2017", {}),
    ("ogd", {}),
)


@cache
def _grid(problems: tuple[str, ...], horizons: tuple[int, ...], seeds: int) -> str:
    return json.dumps([
        row(problem, policy, horizon, seed, settings)
        for problem in problems for horizon in horizons for policy, settings in POLICIES for seed in range(seeds)
    ], allow_nan=False)  # fmt: skip


def grid(problems: tuple[str, ...] = ("halfspaces", "fixed"), horizons: tuple[int, ...] = (100, 300), seeds: int = 2) -> list[GameRow]:
    """Several policies on several problems: one that does not apply, negative regret, policies without bounds."""
    rows: list[GameRow] = json.loads(_grid(problems, horizons, seeds))
    return rows

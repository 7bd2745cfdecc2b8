"""Rows of a comparison for tests: real games on the registered problems, in the form a comparison keeps them."""

from __future__ import annotations

import json
import warnings
from functools import cache
from typing import Any

import numpy as np

import bridle
from bridle.game import metrics
from bridle.game.summary import summary

SCALARS = ("parameters", "problem_parameters", "constants", "ccv_each")


def row(problem: str, policy: str, horizon: int, seed: int, given: dict[str, Any] | None = None, **of_problem: Any) -> dict[str, Any]:
    """One game as a row."""
    told = [f"{key}={value}" for key, value in (given or {}).items()]
    about = {
        "key": f"{problem}-{policy}-{told}-{horizon}-{seed}", "problem": problem, "policy": policy, "horizon": horizon, "seed": seed,
        "problem_label": " ".join([problem, *(f"{key}={value}" for key, value in of_problem.items())]),
        "problem_settings": json.dumps(of_problem), "label": " ".join([policy, *told]), "settings": json.dumps(given or {}),
        "engine": "python", "does_not_apply": None, "bridle_version": bridle.__version__,
    }  # fmt: skip
    made = bridle.problem(problem, horizon, seed, **of_problem)
    try:
        chosen = bridle.policy_for(policy, made, **(given or {}))
    except bridle.InputError as reason:
        return about | {"does_not_apply": str(reason)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        trace = bridle.play(chosen, made)
    facts = {key: value for key, value in summary(trace).items() if key not in SCALARS}
    rounds = trace.curve.rounds
    bounds = [trace.policy.bound(trace.problem.constants, float(t)) for t in rounds]
    try:
        regrets: Any = metrics.regret_curve(trace)[1].tolist()
    except bridle.NoComparator:
        regrets = None
    curves = {
        "curve_rounds": [int(t) for t in rounds], "curve_cost": trace.curve.cost.tolist(),
        "curve_ccv": metrics.ccv_curve(trace)[1].tolist(), "curve_regret": regrets,
        "curve_regret_bound": [plain(bound.regret) for bound in bounds], "curve_ccv_bound": [plain(bound.ccv) for bound in bounds],
    }  # fmt: skip
    return json.loads(json.dumps(facts | about | curves, allow_nan=False))


def plain(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


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
        row(problem, policy, horizon, seed, given)
        for problem in problems for horizon in horizons for policy, given in POLICIES for seed in range(seeds)
    ])  # fmt: skip


def grid(
    problems: tuple[str, ...] = ("halfspaces", "fixed"), horizons: tuple[int, ...] = (100, 300), seeds: int = 2
) -> list[dict[str, Any]]:
    """Several policies on several problems: one that does not apply, negative regret, policies without bounds."""
    rows: list[dict[str, Any]] = json.loads(_grid(problems, horizons, seeds))
    return rows

"""Algorithm 1, which solves nothing, against a policy that solves a convex program each round, with that program given to cvxpy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import bridle
from parts.stream import recorded, shortened
from parts.timing import Side, interleaved

DIM = 30


def measure(quick: bool) -> dict[str, Any]:
    """guo2022 written around cvxpy (Clarabel), as `benchmarks/programs.py` has it, and sinha2024 on every engine, on one stream."""
    try:
        import programs
    except ImportError as missing:
        return {"skipped": [f"cvxpy, which is not installed here ({missing})"], "rows": []}
    warnings.simplefilter("ignore")  # cvxpy says when Clarabel stopped short of its tolerances
    few, many, long, repeats = (10, 2_000, 20_000, 3) if quick else (60, 20_000, 200_000, 5)
    problem = recorded(long, DIM)
    guo, sinha = bridle.policy_for("guo2022", problem), bridle.policy_for("sinha2024", problem)
    small = bridle.play(guo, problem, horizon=few, keep="decisions").decisions
    solves = {"parameters": programs.parametrised(problem.domain), "built anew": programs.rebuilt(problem.domain)}
    gap = max(float(np.abs(programs.through_cvxpy(shortened(problem, few), solve, few) - small).max()) for solve in solves.values())
    assert gap < 1e-4 * problem.domain.diameter(), f"cvxpy's decisions are {gap:.2g} away"
    sides = [
        Side(f"guo2022, cvxpy, {name}", lambda solve=solve: programs.through_cvxpy(shortened(problem, few), solve, few), few)
        for name, solve in solves.items()
    ]
    for policy, name in ((guo, "guo2022"), (sinha, "sinha2024")):
        for engine in ("python", "jax", "compiled"):
            n = many if engine == "python" else long
            sides.append(Side(f"{name}, engine {engine}", lambda p=policy, e=engine, n=n: bridle.play(p, problem, horizon=n, engine=e), n))
    return {"dim": DIM, "repeats": repeats, "cvxpy_rounds": few, "apart": gap, "rows": interleaved(sides, repeats), "skipped": []}

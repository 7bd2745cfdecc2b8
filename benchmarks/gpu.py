"""One GPU: the kernel that the cuda engine writes, the library's whole call, and the JAX engine's compiled loop on the same device.

``python benchmarks/gpu.py [--rows rows.npz] [--out gpu.json]`` checks that the engines agree, measures, prints the tables and writes
figures with the machine and the date; ``--page`` puts the tables of the JSON file into docs/gpu.md; ``--lanes`` prints what each number of
lanes to a run would take, for the choice in `bridle.engines.plans`. Rows are arrays `features` and `fraud` of the credit-card set
(`bridle data`); without them rows of the same shape are drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
import warnings
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import bridle
from bridle import records
from bridle.fraud import paper_model
from bridle.policies.registry import record_of

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX and CuPy share the card

HERE = Path(__file__).parent
RUNS = (1, 16, 256, 2_048, 16_384, 65_536)
HAND = {30: 0.12, 2_112: 0.28}
"""Seconds that a kernel written by hand for the fraud network took on an H200, one warp to a run."""

TRANSACTIONS = 284_807


@contextmanager
def kernel_seconds():
    """Collects the seconds that kernels take, with the device waited for before and after."""
    import cupy

    from bridle.engines import cuda

    spent, launch = [], cuda._launch

    def timed(*arguments: Any) -> None:
        cupy.cuda.Device().synchronize()
        begun = time.perf_counter()
        launch(*arguments)
        cupy.cuda.Device().synchronize()
        spent.append(time.perf_counter() - begun)

    cuda._launch = timed
    try:
        yield spent
    finally:
        cuda._launch = launch


def timed_game(policy: Any, problem: Any, repeats: int = 3, **settings: Any) -> tuple[float, float]:
    """Seconds of the kernel, and of the whole call; medians, once compiled."""
    kernels, calls = [], []
    for attempt in range(2 * repeats + 1):
        # Waiting for every kernel changes how long a call takes: the two are measured one after the other.
        if attempt % 2:
            begun = time.perf_counter()
            bridle.play(policy, problem, engine="cuda", **settings)
            calls.append(time.perf_counter() - begun)
        else:
            with kernel_seconds() as spent:
                bridle.play(policy, problem, engine="cuda", **settings)
            kernels.append(sum(spent))
    return median(kernels[1:]), median(calls)


def jax_loop(policy: Any, problem: Any, runs: int, start: Any = None, repeats: int = 3) -> float:
    """Seconds a round of the JAX engine's compiled loop on this device, nothing brought home."""
    import jax
    import jax.numpy as jnp

    from bridle.engines.jax import _run
    from bridle.engines.round import block_length
    from bridle.problems.dealing import deal_blocks, player

    record, foe, d = record_of(policy), player(problem.adversary), problem.domain.dim
    length = block_length(d)
    x = np.broadcast_to(problem.domain.center() if start is None else start, (runs, d)).copy()
    draws = next(iter(deal_blocks(problem.adversary, problem.seed, length, d)))
    with jax.enable_x64(True):
        given = records.transform(
            lambda leaf: jnp.asarray(leaf, dtype=float), (record, foe, record.init(x), records.spread(foe.init(), runs), draws)
        )
        spent = []
        for _ in range(repeats + 1):
            begun = time.perf_counter()
            jax.block_until_ready(_run(*given, length, length=length, collect=""))
            spent.append(time.perf_counter() - begun)
    return median(spent[1:]) / length


def largest_gap(policy: Any, problem: Any, rounds: int, **settings: Any) -> float:
    """The largest difference of decisions from the Python engine's, over the largest decision."""
    one = bridle.play(policy, problem, horizon=rounds, keep="decisions", **settings)
    two = bridle.play(policy, problem, horizon=rounds, keep="decisions", engine="cuda", **settings)
    three = bridle.play(policy, problem, horizon=rounds, engine="cuda", **settings)
    sums = max(
        float(np.abs(np.asarray(a) - np.asarray(b)).max() / max(1.0, np.abs(np.asarray(a)).max()))
        for a, b in zip(one.curve, three.curve, strict=True)
    )
    return max(sums, float(np.abs(one.decisions - two.decisions).max() / np.abs(one.decisions).max()))


def algorithm1(dim: int, runs: int, rounds: int) -> tuple[Any, Any]:
    problem = bridle.problem("halfspaces", horizon=rounds, dim=dim)
    return bridle.policy_for("sinha2024", problem, lam=list(np.geomspace(1e-4, 1e-1, runs))), problem


def fraud(rows: paper_model.Rows, runs: int) -> tuple[Any, Any, np.ndarray]:
    problem, start = paper_model.arrange(rows, "code", 0)
    return paper_model.policy_of(problem, "code", paper_model.grid(count=runs)), problem, start


def transactions(path: str | None) -> paper_model.Rows:
    if path is not None:
        found = np.load(path)
        return paper_model.Rows(found["features"].astype(float), found["fraud"].astype(float))
    rng = np.random.default_rng(0)
    return paper_model.Rows(rng.standard_normal((TRANSACTIONS, 29)), (rng.random(TRANSACTIONS) < 0.00173).astype(float))


def checks(rows: paper_model.Rows) -> dict[str, float]:
    few = paper_model.Rows(rows.features[:3_000], rows.fraud[:3_000])
    found = {}
    for name, dim in (("sinha2024", 30), ("sinha2024", 300), ("anytime", 30)):
        problem = bridle.problem("halfspaces", horizon=2_000, dim=dim)
        sweep = {"lam": [1e-3, 1e-2, 1e-1]} if name == "sinha2024" else {"V": [0.1, 1.0, 10.0]}
        found[f"{name}, d = {dim}"] = largest_gap(bridle.policy_for(name, problem, **sweep), problem, 2_000)
    problem = bridle.problem("halfspaces", horizon=2_000, dim=30)
    found["sinha2024, d = 30, a stream for every run"] = largest_gap(
        bridle.policy_for("sinha2024", problem), problem, 2_000, seed=list(range(40))
    )
    policy, problem, start = fraud(few, 5)
    found["fraud network"] = largest_gap(policy, problem, 2_000, x1=start)
    return found


def measure(rows: paper_model.Rows, real: bool) -> dict[str, Any]:
    import cupy

    warnings.simplefilter("ignore")
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    found: dict[str, Any] = {"machine": device, "date": date.today().isoformat(), "gaps": checks(rows), "algorithm1": [], "fraud": []}
    found["rows"] = "the credit-card set" if real else "rows drawn at random in the shape of the credit-card set"
    print(found["gaps"], flush=True)
    for dim in (30, 300):
        for runs in RUNS:
            rounds = 16_384 if dim == 300 and runs > 2_048 else 65_536
            policy, problem = algorithm1(dim, runs, rounds)
            kernel, call = timed_game(policy, problem)
            scan = jax_loop(policy, problem, runs)
            found["algorithm1"].append({"dim": dim, "runs": runs, "rounds": rounds, "kernel": kernel, "call": call, "jax": scan * rounds})
            print(found["algorithm1"][-1], flush=True)
    for runs in HAND:
        policy, problem, start = fraud(rows, runs)
        kernel, call = timed_game(policy, problem, x1=start)
        scan = jax_loop(policy, problem, runs, start)
        found["fraud"].append({"runs": runs, "rounds": problem.horizon, "kernel": kernel, "call": call, "jax": scan * problem.horizon})
        if runs == 30:
            found["fraud"][-1]["every_round"] = timed_game(policy, problem, x1=start, keep="rounds")[1]
        print(found["fraud"][-1], flush=True)
    return found


def sweep_lanes(rows: paper_model.Rows) -> None:
    """What each number of lanes to a run takes."""
    from bridle.engines import cuda

    warnings.simplefilter("ignore")
    print(checks(rows), flush=True)
    chosen = cuda.lanes_for
    games = [(f"d = {d}", runs, *algorithm1(d, runs, 4_096), None) for d in (30, 300) for runs in RUNS]
    games += [("fraud", runs, *fraud(paper_model.Rows(rows.features[:20_480], rows.fraud[:20_480]), runs)) for runs in HAND]
    for name, runs, policy, problem, start in games:
        default = chosen(runs, problem.domain.dim, 132)
        for lanes in (1, 2, 4, 8, 16, 32):
            if problem.domain.dim / lanes > 64.0:
                continue
            cuda.lanes_for = lambda *_, lanes=lanes: lanes
            kernel, _ = timed_game(policy, problem, 2, **({} if start is None else {"x1": start}))
            each = 1e6 * kernel / problem.horizon
            mark = " (chosen)" if lanes == default else ""
            print(
                f"{name}, {runs:,} runs, {lanes} lanes{mark}: kernel {each:.3f} us a round, {1e6 * runs / each:.3g} run-rounds a second",
                flush=True,
            )
    cuda.lanes_for = chosen


def markdown(found: dict[str, Any] | None) -> str:
    """The tables of docs/gpu.md."""
    if found is None:
        return "Not measured yet: `python benchmarks/gpu.py` on a machine with a GPU, then `python benchmarks/gpu.py --page`."
    lines = [f"Measured on one {found['machine']}, {found['date']}, in 64-bit floats.", ""]
    lines += [
        "| d | runs | rounds | kernel, us a round | whole call | run-rounds a second, kernel | call | JAX loop, us a round | kernel ahead |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for row in found["algorithm1"]:
        each = {name: 1e6 * row[name] / row["rounds"] for name in ("kernel", "call", "jax")}
        many = {name: row["runs"] * row["rounds"] / row[name] for name in ("kernel", "call")}
        game = f"{row['dim']} | {row['runs']:,} | {row['rounds']:,}"
        lines.append(
            f"| {game} | {each['kernel']:.2f} | {each['call']:.2f} | {many['kernel']:.2g} | {many['call']:.2g} | "
            f"{each['jax']:.1f} | {row['jax'] / row['kernel']:.0f} times |"
        )
    lines += ["", f"The fraud network of 311 weights, on {found['rows']}:", ""]
    lines += ["| lambdas | rounds | kernel | whole call | a kernel written by hand | JAX loop |", "|---|---|---|---|---|---|"]
    for row in found["fraud"]:
        hand = HAND[row["runs"]]
        lines.append(
            f"| {row['runs']:,} | {row['rounds']:,} | {row['kernel']:.3f} s | {row['call']:.3f} s | {hand:.2f} s | {row['jax']:.1f} s |"
        )
    return "\n".join(lines)


def page(found: dict[str, Any]) -> None:
    place = HERE.parent / "docs" / "gpu.md"
    text = place.read_text()
    place.write_text(re.sub(r"(?s)(<!-- tables -->\n).*(\n<!-- end -->)", lambda marks: f"{marks[1]}{markdown(found)}{marks[2]}", text))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows")
    parser.add_argument("--out", type=Path, default=HERE / "gpu.json")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--lanes", action="store_true")
    asked = parser.parse_args()
    if asked.page:
        page(json.loads(asked.out.read_text()))
    elif asked.lanes:
        sweep_lanes(transactions(asked.rows))
    else:
        made = measure(transactions(asked.rows), asked.rows is not None)
        print(markdown(made))
        asked.out.write_text(json.dumps(made, indent=1) + "\n")

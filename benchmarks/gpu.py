"""One GPU: the kernel that the cuda engine writes, the library's whole call, and the JAX engine's compiled loop on the same device.

``python benchmarks/gpu.py [--rows rows.npz] [--out gpu.json]`` checks that the engines agree, measures, prints the tables and writes
figures with the machine and the date; ``--page`` puts the tables of the JSON file into docs/gpu.md; ``--lanes`` prints what each number of
lanes to a run would take, for the choice in `bridle.engines.codegen.cuda_layout`; ``--toy`` does all of it at toy size and writes nothing,
on a machine without a GPU with its C++ compiler in place of one. Rows are arrays `features` and `fraud` of the credit-card set
(`bridle data`); without them rows of the same shape are drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle import records
from bridle.fraud import paper_model
from bridle.policies.registry import record_of

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX and CuPy share the card

HERE = Path(__file__).parent
HAND = {30: 0.12, 2_112: 0.28}
"""Seconds that a kernel written by hand for the fraud network took on an H200, one warp to a run."""


class Sizes(NamedTuple):
    """How much is measured."""

    dims: tuple[int, ...]
    runs: tuple[int, ...]
    rounds: int
    checked: int
    """Rounds of the games in which the engines are compared."""
    fraud_runs: tuple[int, ...]
    transactions: int
    repeats: int = 3


FULL = Sizes((30, 300), (1, 16, 256, 2_048, 16_384, 65_536), 65_536, 2_000, tuple(HAND), 284_807)
TOY = Sizes((3,), (1, 2), 40, 40, (2,), 40, repeats=1)


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

    from bridle.engines.jax import _compiled
    from bridle.engines.round import Collect, RunBatch, block_length
    from bridle.engines.runs import arrays_of, filled, layout_of
    from bridle.game.schedule import first_record
    from bridle.problems.dealing import deal_blocks, player

    record, foe, d = record_of(policy), player(problem.adversary), problem.domain.dim
    length = min(block_length(d), problem.horizon)
    x = np.broadcast_to(problem.domain.center() if start is None else start, (runs, d)).copy()
    draws = next(iter(deal_blocks(problem.adversary, problem.seed, length, d)))
    batch = RunBatch(record, first_record(policy, runs, problem), [foe], record.init(x), foe.init(), (draws,))
    layout = layout_of(batch)
    with jax.enable_x64(True):
        parts = zip(layout.single, arrays_of(layout, batch, range(runs)), strict=True)
        arrays = records.transform(lambda leaf: jnp.asarray(leaf, dtype=float), tuple(filled(like, part) for like, part in parts))
        spent = []
        for _ in range(repeats + 1):
            begun = time.perf_counter()
            jax.block_until_ready(_compiled()(*arrays, None, length, rows=length, collect=Collect.VALUES, own=layout.own))
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
        if b is not None  # how far decisions moved is kept with the decisions alone
    )
    return max(sums, float(np.abs(one.decisions - two.decisions).max() / np.abs(one.decisions).max()))


def algorithm1(dim: int, runs: int, rounds: int) -> tuple[Any, Any]:
    """Algorithm 1 with so many values of lambda."""
    problem = bridle.problem("halfspaces", horizon=rounds, dim=dim)
    return bridle.policy_for("sinha2024", problem, lam=list(np.geomspace(1e-4, 1e-1, runs))), problem


def fraud(rows: paper_model.PaperRows, runs: int) -> tuple[Any, Any, np.ndarray]:
    """The fraud network with so many values of lambda."""
    problem, start = paper_model.arrange(rows, "code", 0)
    return paper_model.policy_of(problem, "code", paper_model.lambda_grid(count=runs)), problem, start


def transactions(path: str | None, sizes: Sizes) -> paper_model.PaperRows:
    """The rows of a file, or drawn ones."""
    if path is not None:
        file = np.load(path)
        return paper_model.PaperRows(file["features"].astype(float), file["fraud"].astype(float))
    rng, count = np.random.default_rng(0), sizes.transactions
    return paper_model.PaperRows(rng.standard_normal((count, 29)), (rng.random(count) < 0.00173).astype(float))


def checks(rows: paper_model.PaperRows, sizes: Sizes) -> dict[str, float]:
    """How far decisions and totals are from those of the Python engine."""
    rounds, gaps = sizes.checked, {}
    for name, dim in [("sinha2024", dim) for dim in sizes.dims] + [("anytime", sizes.dims[0])]:
        problem = bridle.problem("halfspaces", horizon=rounds, dim=dim)
        sweep = {"lam": [1e-3, 1e-2, 1e-1]} if name == "sinha2024" else {"V": [0.1, 1.0, 10.0]}
        gaps[f"{name}, d = {dim}"] = largest_gap(bridle.policy_for(name, problem, **sweep), problem, rounds)
    problem = bridle.problem("halfspaces", horizon=rounds, dim=sizes.dims[0])
    gaps[f"sinha2024, d = {sizes.dims[0]}, a stream for every run"] = largest_gap(
        bridle.policy_for("sinha2024", problem), problem, rounds, seed=list(range(40))
    )
    few = paper_model.PaperRows(rows.features[: 3 * rounds // 2], rows.fraud[: 3 * rounds // 2])
    policy, problem, start = fraud(few, 5)
    gaps["fraud network"] = largest_gap(policy, problem, min(rounds, problem.horizon), x1=start)
    return gaps


def measure(rows: paper_model.PaperRows, real: bool, sizes: Sizes) -> dict[str, Any]:
    """All figures; each is printed as it comes."""
    import cupy

    warnings.simplefilter("ignore")
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    figures: dict[str, Any] = {"machine": device, "date": date.today().isoformat(), "algorithm1": [], "fraud": []}
    figures["gaps"] = checks(rows, sizes)
    figures["rows"] = "the credit-card set" if real else "rows drawn at random in the shape of the credit-card set"
    print(figures["gaps"], flush=True)
    for dim in sizes.dims:
        for runs in sizes.runs:
            rounds = sizes.rounds // 4 if dim == 300 and runs > 2_048 else sizes.rounds
            policy, problem = algorithm1(dim, runs, rounds)
            kernel, call = timed_game(policy, problem, sizes.repeats)
            scan = jax_loop(policy, problem, runs, repeats=sizes.repeats)
            figures["algorithm1"].append({"dim": dim, "runs": runs, "rounds": rounds, "kernel": kernel, "call": call, "jax": scan * rounds})
            print(figures["algorithm1"][-1], flush=True)
    for runs in sizes.fraud_runs:
        policy, problem, start = fraud(rows, runs)
        kernel, call = timed_game(policy, problem, sizes.repeats, x1=start)
        scan = jax_loop(policy, problem, runs, start, sizes.repeats)
        figures["fraud"].append({"runs": runs, "rounds": problem.horizon, "kernel": kernel, "call": call, "jax": scan * problem.horizon})
        if runs == 30:
            figures["fraud"][-1]["every_round"] = timed_game(policy, problem, sizes.repeats, x1=start, keep="rounds")[1]
        print(figures["fraud"][-1], flush=True)
    return figures


def sweep_lanes(rows: paper_model.PaperRows, sizes: Sizes) -> None:
    """What each number of lanes to a run takes."""
    from bridle.engines import cuda

    warnings.simplefilter("ignore")
    print(checks(rows, sizes), flush=True)
    chosen = cuda.lanes_for
    games = [(f"d = {d}", runs, *algorithm1(d, runs, sizes.rounds // 16), None) for d in sizes.dims for runs in sizes.runs]
    few = paper_model.PaperRows(rows.features[:20_480], rows.fraud[:20_480])
    games += [("fraud", runs, *fraud(few, runs)) for runs in sizes.fraud_runs]
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


def markdown(figures: dict[str, Any] | None) -> str:
    """The tables of docs/gpu.md."""
    if figures is None:
        return "Not measured yet: `python benchmarks/gpu.py` on a machine with a GPU, then `python benchmarks/gpu.py --page`."
    lines = [f"Measured on one {figures['machine']}, {figures['date']}, in 64-bit floats.", ""]
    lines += [
        "| d | runs | rounds | kernel, us a round | whole call | run-rounds a second, kernel | call | JAX loop, us a round | kernel ahead |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for row in figures["algorithm1"]:
        each = {name: 1e6 * row[name] / row["rounds"] for name in ("kernel", "call", "jax")}
        many = {name: row["runs"] * row["rounds"] / row[name] for name in ("kernel", "call")}
        game = f"{row['dim']} | {row['runs']:,} | {row['rounds']:,}"
        lines.append(
            f"| {game} | {each['kernel']:.2f} | {each['call']:.2f} | {many['kernel']:.2g} | {many['call']:.2g} | "
            f"{each['jax']:.1f} | {row['jax'] / row['kernel']:.0f} times |"
        )
    lines += ["", f"The fraud network of 311 weights, on {figures['rows']}:", ""]
    lines += ["| lambdas | rounds | kernel | whole call | a kernel written by hand | JAX loop |", "|---|---|---|---|---|---|"]
    for row in figures["fraud"]:
        hand = f"{HAND[row['runs']]:.2f} s" if row["runs"] in HAND else ""
        lines.append(f"| {row['runs']:,} | {row['rounds']:,} | {row['kernel']:.3f} s | {row['call']:.3f} s | {hand} | {row['jax']:.1f} s |")
    return "\n".join(lines)


def page(figures: dict[str, Any]) -> None:
    """Put the tables into docs/gpu.md."""
    place = HERE.parent / "docs" / "gpu.md"
    text = place.read_text()
    place.write_text(re.sub(r"(?s)(<!-- tables -->\n).*(\n<!-- end -->)", lambda marks: f"{marks[1]}{markdown(figures)}{marks[2]}", text))


def has_gpu() -> bool:
    """Whether CuPy is installed and finds a device."""
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # whatever is missing: the package, the driver or the device
        return False


def toy() -> None:
    """Every figure at toy size, on a GPU or on this machine's processor in place of one."""
    with tempfile.TemporaryDirectory() as folder:
        if not has_gpu():
            sys.path.insert(0, str(HERE.parent / "tests"))
            from helpers import fake_gpu

            if fake_gpu.COMPILER is None:
                print("no GPU here, and no C++ compiler to stand in for one: nothing was run")
                return
            sys.modules["cupy"] = fake_gpu.cupy(Path(folder))  # type: ignore[assignment]
        rows = transactions(None, TOY)
        print(markdown(measure(rows, False, TOY)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows")
    parser.add_argument("--out", type=Path, default=HERE / "gpu.json")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--lanes", action="store_true")
    parser.add_argument("--toy", action="store_true")
    options = parser.parse_args()
    if options.page:
        page(json.loads(options.out.read_text()))
    elif options.toy:
        toy()
    elif not has_gpu():
        sys.exit("no GPU here (or no CuPy): --toy runs on a machine without one")
    elif options.lanes:
        sweep_lanes(transactions(options.rows, FULL), FULL)
    else:
        figures = measure(transactions(options.rows, FULL), options.rows is not None, FULL)
        print(markdown(figures))
        options.out.write_text(json.dumps(figures, indent=1) + "\n")

"""Section 4 of the paper: the whole sweep of lambdas on the real transactions, beside the same update one row at a time in PyTorch.

The PyTorch loop is what one writes by hand: forward, backward on f + lambda exp(lambda Q) g, a scalar AdaGrad step, projection. It is timed
on the first rows of the stream, interleaved with whole sweeps of the library, and must give the same iterates (float64, 1e-6). The
figures go to benchmarks/fraud.json and docs/fraud.md.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import bridle
from bridle.fraud import paper_model
from parts.toy import size, target, transactions

ROWS, REPEATS, SEEDS, TEXT_SEEDS = size(2_000, 200), size(5, 1), size(5, 1), size(3, 1)
LAMBDAS = size(30, 3)
CHECKED = (0.01, 0.1, 1.0)
ENGINE = "compiled"
RESULTS = Path(__file__).with_suffix(".json")
DOCS = Path(__file__).parent.parent / "docs" / "fraud.md"


def torch_loop(features: np.ndarray, fraud: np.ndarray, start: np.ndarray, lam: float, keep: bool = False) -> np.ndarray:
    """The released code's update, one row at a time, D = 10, beta = V = 1, the sum of squares from 0.001; its decisions with `keep`."""
    import torch

    torch.set_num_threads(1)  # nothing here is large enough for two
    n, hidden = features.shape[1], paper_model.HIDDEN
    first, last = torch.nn.Linear(n, hidden, dtype=torch.float64), torch.nn.Linear(hidden, 1, dtype=torch.float64)
    network = torch.nn.Sequential(first, torch.nn.Sigmoid(), last, torch.nn.Sigmoid())
    weights = list(network.parameters())
    torch.nn.utils.vector_to_parameters(torch.tensor(start), weights)
    rows, labels = torch.tensor(features), torch.tensor(fraud)
    Q, S, decisions = 0.0, 0.001, []
    for a, y in zip(rows, labels, strict=True):
        if keep:
            decisions.append(torch.nn.utils.parameters_to_vector(weights).detach().numpy().copy())
        p = network(a).clamp(1e-7, 1.0 - 1e-7)[0]
        f, g = -(1.0 - y) * torch.log(1.0 - p), -y * torch.log(p)
        Q += g.item()
        network.zero_grad()
        (f + lam * np.exp(lam * Q) * g).backward()
        with torch.no_grad():
            S += sum((w.grad**2).sum() for w in weights).item()
            for w in weights:
                w -= 10.0 / np.sqrt(2.0 * S) * w.grad
            norm = sum((w**2).sum() for w in weights).item() ** 0.5
            if norm > 100.0:
                for w in weights:
                    w *= 100.0 / norm
    return np.array(decisions)


def check(rows: paper_model.PaperRows) -> float:
    """How far the iterates of the two sides are apart, at most; an error where that is more than 1e-6."""
    problem, start = paper_model.arrange(rows, "code", 0)
    table = problem.adversary.table
    policy = paper_model.policy_of(problem, "code", list(CHECKED))
    mine = bridle.play(policy, problem, horizon=ROWS, engine=ENGINE, x1=start, keep="decisions").decisions
    assert table.label[:ROWS].any(), "there is no fraud among the rows that are checked"
    apart = max(
        float(np.abs(mine[:, run] - torch_loop(table.a[:ROWS], table.label[:ROWS], start, lam, keep=True)).max())
        for run, lam in enumerate(CHECKED)
    )
    assert apart <= 1e-6, f"the two sides do not compute the same iterates: {apart:.2g} apart"
    return apart


def measure(rows: paper_model.PaperRows) -> dict[str, object]:
    """Times of both sides, interleaved, and what the seeds give."""
    apart = check(rows)
    problem, start = paper_model.arrange(rows, "code", 0)
    table, lambdas = problem.adversary.table, paper_model.lambda_grid(count=LAMBDAS)
    paper_model.play_seed(paper_model.PaperRows(rows.features[:3000], rows.fraud[:3000]), "code", lambdas, 0, ENGINE)  # compiles
    torch_us, sweep_s, found = [], [], []
    for seed in range(max(REPEATS, SEEDS)):
        begun = time.perf_counter()
        torch_loop(table.a[:ROWS], table.label[:ROWS], start, 0.05)
        torch_us.append(1e6 * (time.perf_counter() - begun) / ROWS)
        found.append(paper_model.play_seed(rows, "code", lambdas, seed, ENGINE))
        sweep_s.append(found[-1]["seconds"])
    runs = len(lambdas) * len(rows.fraud)
    ratios = [us * runs / 1e6 / s for us, s in zip(torch_us, sweep_s, strict=True)]
    return {
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}",
        "lambdas": len(lambdas), "rounds": len(rows.fraud), "torch_rows": ROWS, "apart": apart,
        "torch_us": statistics.median(torch_us), "sweep_s": statistics.median(sweep_s),
        "sweep_us": 1e6 * statistics.median(sweep_s) / runs,
        "ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios),
        "code": summary(found, lambdas),
    }  # fmt: skip


def summary(found: list[dict[str, Any]], lambdas: list[float]) -> dict[str, object]:
    """Areas of every seed, and means over seeds at some of the lambdas."""
    chosen = sorted({round(i) for i in np.linspace(0, len(lambdas) - 1, 7)})
    lines = []
    for i in chosen:
        own = [part["points"][i] for part in found]
        lines.append(
            {name: float(np.mean([p[name] for p in own])) for name in ("lambda", "fpr", "tpr", "cost", "ccv", "ccv_exponent", "norm")}
        )
    exponents = [p["ccv_exponent"] for part in found for p in part["points"]]
    return {
        "auc": [part["auc"] for part in found], "auc_without_corners": [part["auc_without_corners"] for part in found],
        "exponent_low": min(exponents), "exponent_high": max(exponents), "lines": lines,
    }  # fmt: skip


def markdown(result: dict) -> str:
    """The tables of docs/fraud.md."""
    parts = ["| variant | seeds | area with corners | without corners | CCV exponent over the second half |", "|---|---|---|---|---|"]
    for variant in ("code", "text"):
        own = result[variant]
        areas, bare = own["auc"], own["auc_without_corners"]
        parts.append(
            f"| `{variant}` | {len(areas)} | {np.mean(areas):.3f} ({min(areas):.3f} to {max(areas):.3f}) | {np.mean(bare):.3f} "
            f"| {own['exponent_low']:.2f} to {own['exponent_high']:.2f} |"
        )
    parts += [
        "",
        "| lambda (`code`) | FPR | TPR | total cost | CCV | CCV grows like | length of the weights |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in result["code"]["lines"]:
        parts.append(
            f"| {line['lambda']:.3g} | {line['fpr']:.4f} | {line['tpr']:.3f} | {line['cost']:,.0f} | {line['ccv']:,.0f} "
            f"| t^{line['ccv_exponent']:.2f} | {line['norm']:.1f} |"
        )
    return "\n".join(parts)


def speed(result: dict) -> str:
    """The sentence of docs/fraud.md about time."""
    return (
        f"{result['lambdas']} lambdas on {result['rounds']:,} rounds take {result['sweep_s']:.1f} s on two cores with the engine compiled, "
        f"{result['sweep_us']:.2f} us per run and round. The PyTorch loop takes {result['torch_us']:.0f} us a row on one core: "
        f"the sweep is {result['ratio']:,.0f} times faster ({result['ratio_low']:,.0f} to {result['ratio_high']:,.0f} over "
        f"{REPEATS} interleaved repeats). Both compute the same iterates, in float64, "
        f"{result['apart']:.0e} apart at most after {result['torch_rows']:,} rows."
    )


def main() -> None:
    played, figures, page = transactions(), target(RESULTS), target(DOCS)
    result = measure(paper_model.rows_of(played, "code"))
    rows, lambdas = paper_model.rows_of(played, "text"), paper_model.lambda_grid(count=LAMBDAS)
    result["text"] = summary([paper_model.play_seed(rows, "text", lambdas, seed, ENGINE) for seed in range(TEXT_SEEDS)], lambdas)
    before, text = json.loads(figures.read_text()), page.read_text()
    page.write_text(text.replace(markdown(before), markdown(result)).replace(speed(before), speed(result)))
    figures.write_text(json.dumps(result, indent=1) + "\n")
    table = Table(title=f"Section 4 of the paper, {result['machine']}, {REPEATS} interleaved repeats")
    for column in ("path", "us per run and round", "whole sweep"):
        table.add_column(column, justify="left" if column == "path" else "right")
    runs = result["lambdas"] * result["rounds"]
    table.add_row("PyTorch, one row at a time", f"{result['torch_us']:.4g}", f"{result['torch_us'] * runs / 3.6e9:.2f} h")
    table.add_row(f"play, engine {ENGINE}", f"{result['sweep_us']:.3g}", f"{result['sweep_s']:.2f} s")
    console = Console(width=120)
    console.print(table)
    console.print(speed(result), highlight=False)
    console.print(markdown(result), highlight=False)


if __name__ == "__main__":
    main()

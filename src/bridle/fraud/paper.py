"""Protocol `paper` as a command: every lambda on every seed, kept seed by seed; points, areas, figures, page and metrics.json."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

import bridle
from bridle import storage, validate
from bridle.comparisons.keys import digest, fingerprint, hash_file
from bridle.core import InputError
from bridle.data import load
from bridle.fraud import Facts, FraudProgress, Options, Outcome, figures, page, paper_model
from bridle.fraud.page import Job, check_packages, choose_engine, each_result, results_folder, sentence, write_json
from bridle.fraud.paper_model import POINT_COLUMNS, PaperRows
from bridle.showing import seed_range
from bridle.showing.marks import Chart
from bridle.showing.tables import TextTable

SEEDS = 3
"""How many seeds are played unless the user says."""

READING = {
    "Lambda": "How fast the weight of the constraint grows: lambda exp(lambda Q), Q the log-loss on frauds so far. Larger values catch "
    "more frauds and raise more false alarms.",
    "Soft rates": "FPR is the mean of the network's output over legitimate transactions, TPR over frauds, both as predicted online, before "
    "the label was seen, over the whole stream. No threshold is applied, and early mistakes count.",
    "Area": "Trapezoids under the points sorted by FPR. With corners, (0, 0) and (1, 1) belong to the curve: that is the honest version.",
    "CCV": "Cumulative constraint violation: the log-loss on frauds, added up. It would grow like t if nothing were learned.",
    "Grows like": "The exponent c of t^c fitted by least squares of log CCV on log round to the second half of the stream.",
    "Theorems": "The loss of a network is not convex in its weights, so no theorem of the paper applies to these runs.",
}


def command(options: Options, progress: FraudProgress | None = None) -> Outcome:
    """Play what is not in the folder yet, and write everything that is to be seen."""
    check_packages()
    variant = "code" if options.variant is None else options.variant
    validate.one_of("variant", variant, paper_model.VARIANTS)
    lambdas = parse_lambdas(options.lambdas)
    seeds = list(range(validate.whole("seeds", SEEDS if options.seeds is None else options.seeds)))
    engine = choose_engine(options.engine)
    out = results_folder(options.out)
    rows = paper_model.rows_of(load("creditcard", options.data), variant)
    results, there = _play(rows, variant, lambdas, seeds, engine, out, progress, options.command)
    facts = _facts(rows, variant, lambdas, engine, results)
    notes = [*_notes(facts), *_write_files(facts, results, out, options.command)]
    if there:
        notes.append(f"{there} of {len(seeds)} seeds were there already")
    return Outcome(points_table(facts), notes, facts)


def parse_lambdas(text: str | None) -> list[float]:
    """The lambdas of a list such as 0.01,0.1, or of LEAST:MOST:COUNT, which is geometric; in increasing order.

    >>> parse_lambdas("0.1,0.01"), parse_lambdas("0.01:1:3")
    ([0.01, 0.1], [0.01, 0.1, 1.0])
    """
    if text is None:
        return paper_model.lambda_grid()
    if text.count(":") == 2 and "," not in text:
        least, most, count = (validate.from_text(part.strip()) for part in text.split(":"))
        low, high, n = validate.positive("lambdas", least), validate.positive("lambdas", most), validate.whole("lambdas", count, 2)
        if not low < high:
            raise InputError(f"lambdas must go from a smaller to a larger one, as in 0.002:1:30, not {text!r}")
        if n > 10_000:
            raise InputError(f"lambdas must be at most 10,000, not {n}")
        return paper_model.lambda_grid(low, high, n)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"lambdas must hold at least one number, not {text!r}")
    chosen = sorted(validate.positive("lambdas", validate.from_text(part)) for part in parts)
    if len(set(chosen)) < len(chosen):
        raise InputError(f"lambdas must differ from each other, not {text!r}")
    return chosen


# --- playing, seed by seed -------------------------------------------------------------------------------------------------------------


def _play(
    rows: PaperRows,
    variant: str,
    lambdas: list[float],
    seeds: list[int],
    engine: str,
    out: Path,
    progress: FraudProgress | None,
    typed: str,
) -> tuple[list[Facts], int]:
    """What every seed gives, in order, and how many were there already."""
    data = hashlib.sha256(rows.features.tobytes() + rows.fraud.tobytes()).hexdigest()
    sources = [fingerprint(), hash_file(paper_model.__file__)]
    question = {"sources": sources, "data": data, "variant": variant, "lambdas": lambdas, "engine": engine}

    def job(seed: int) -> Job:
        play = partial(paper_model.play_seed, rows, variant, lambdas, seed, engine)
        return Job(f"{variant}-{seed}", digest({**question, "seed": seed}), play)

    results, _, there = each_result({f"seed {seed}": job(seed) for seed in seeds}, out, "seeds", typed, progress)
    return list(results.values()), there


# --- what came of it -------------------------------------------------------------------------------------------------------------------


def _facts(rows: PaperRows, variant: str, lambdas: list[float], engine: str, results: list[Facts]) -> Facts:
    problem, _ = paper_model.arrange(rows, variant, results[0]["seed"])
    policy = paper_model.policy_of(problem, variant, lambdas)
    T, inputs = rows.features.shape
    seconds = sum(result["seconds"] for result in results)
    return {
        "protocol": "paper",
        "variant": variant,
        "about": paper_model.VARIANTS[variant].about,
        "engine": engine,
        "version": bridle.__version__,
        "rounds": T,
        "frauds": int(rows.fraud.sum()),
        "inputs": inputs,
        "hidden": paper_model.HIDDEN,
        "weights": problem.domain.dim,
        "settings": {
            "radius": paper_model.VARIANTS[variant].radius, "diameter": policy.record.learner.diameter,
            "initial": getattr(policy.record.learner, "initial", 0.0), "beta": policy.record.beta, "V": policy.record.V,
        },
        "lambdas": lambdas,
        "seeds": [result["seed"] for result in results],
        "auc": float(np.mean([result["auc"] for result in results])),
        "auc_without_corners": float(np.mean([result["auc_without_corners"] for result in results])),
        "auc_paper": paper_model.PAPER_AREA,
        "areas": [
            {"seed": one["seed"], "auc": one["auc"], "auc_without_corners": one["auc_without_corners"], "seconds": one["seconds"]}
            for one in results
        ],
        "points": [point for result in results for point in result["points"]],
        "seconds": seconds,
        "us_per_round": 1e6 * seconds / (T * len(lambdas) * len(results)),
        "bound_why": policy.bound(problem.constants, T).why,
    }  # fmt: skip


def averages(facts: Facts) -> list[dict[str, float | None]]:
    """For each lambda the mean over seeds of what its points hold; None where a seed has none."""
    lines = []
    for lam in facts["lambdas"]:
        own = [point for point in facts["points"] if point["lambda"] == lam]
        line: dict[str, float | None] = {"lambda": lam}
        for name in POINT_COLUMNS[2:]:
            values = [value for point in own if (value := point[name]) is not None]
            line[name] = None if len(values) < len(own) else float(np.mean(values))
        lines.append(line)
    return lines


HEAD = ("lambda", "FPR", "TPR", "total cost", "CCV", "CCV grows like", "|weights|")


def points_table(facts: Facts) -> TextTable:
    """The averages of every lambda."""
    rows = [
        [
            f"{line['lambda']:.4g}", f"{line['fpr']:.4f}", f"{line['tpr']:.4f}", f"{line['cost']:,.1f}", f"{line['ccv']:,.1f}",
            "-" if line["ccv_exponent"] is None else f"t^{line['ccv_exponent']:.2f}", f"{line['norm']:.2f}",
        ]
        for line in averages(facts)
    ]  # fmt: skip
    return TextTable(HEAD, rows, f"Section 4 of the paper, variant {facts['variant']}: means over {_seeds(facts)}", numeric=0)


def _seeds(facts: Facts) -> str:
    count = len(facts["seeds"])
    return f"{count} seeds" if count > 1 else "one seed"


def _notes(facts: Facts) -> list[str]:
    areas = [part["auc"] for part in facts["areas"]]
    spread = f", {min(areas):.4f} to {max(areas):.4f} over {len(areas)} seeds" if len(areas) > 1 else ""
    return [
        f"variant {facts['variant']}, {facts['about']}",
        f"area under the curve: {facts['auc']:.4f} with the corners (0, 0) and (1, 1){spread}; {facts['auc_without_corners']:.4f} without; "
        f"the paper reports {facts['auc_paper']:.2f}",
        f"{len(facts['points'])} runs of {facts['rounds']:,} rounds took {facts['seconds']:.1f} s on engine {facts['engine']}: "
        f"{facts['us_per_round']:.2f} us per run and round",
        f"no theorem applies: {facts['bound_why']}",
    ]


def _write_files(facts: Facts, results: list[Facts], out: Path, typed: str) -> list[str]:
    """The files of the experiment, and where they are."""
    curves: Facts = {
        "rounds": results[0]["curve_rounds"],
        "each": [
            {"lambda": point["lambda"], "seed": result["seed"], "ccv": curve}
            for result in results for point, curve in zip(result["points"], result["curves"], strict=True)
        ],
    }  # fmt: skip
    write_json(out / "metrics.json", {**facts, "curves": curves}, indent=1)
    text = io.StringIO()
    sheet = csv.DictWriter(text, POINT_COLUMNS, lineterminator="\n")
    sheet.writeheader()
    sheet.writerows(facts["points"])
    with storage.replacing(out / "points.csv") as file:
        file.write(text.getvalue().encode())
    charts = figures.paper_charts(facts, curves)
    drawn = figures.write_figures(charts, out)
    report = _write_page(facts, charts.values(), out / "report.html", typed)
    return [
        f"points: {out / 'points.csv'}; everything: {out / 'metrics.json'}", f"figures: {', '.join(map(str, drawn))}", f"report: {report}"
    ]  # fmt: skip


def _write_page(facts: Facts, charts: Iterable[Chart], path: Path, typed: str) -> Path:
    ran = {
        "Variant": facts["variant"], "Transactions": f"{facts['rounds']:,}", "Frauds": f"{facts['frauds']:,}",
        "Network": f"{facts['inputs']}-{facts['hidden']}-1, {facts['weights']} weights", "Lambdas": f"{len(facts['lambdas'])}",
        "Seeds": seed_range(facts["seeds"]), "Engine": facts["engine"], "Time in play": f"{facts['seconds']:,.1f} s",
    }  # fmt: skip
    ran |= {name: f"{value:.4g}" for name, value in facts["settings"].items()}
    about, area, _, theorem = map(sentence, _notes(facts))
    lead = (
        f"A network trained online by Algorithm 1 on {facts['rounds']:,} real card transactions, one pass, once for each lambda: "
        f"area under the ROC curve {facts['auc']:.3f}, in the paper {facts['auc_paper']:.2f}."
    )
    notes = [about, theorem]
    title = "Credit-card fraud, as in the paper"
    return page.write_fraud_page(path, page.Report(title, lead, ran, typed, area, notes, charts, points_table(facts), READING))

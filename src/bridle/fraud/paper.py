"""Protocol `paper` as a command: every lambda on every seed, kept seed by seed; points, areas, figures, page and metrics.json."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import bridle
from bridle import engines, storage, validate
from bridle.compare.cell import digest, fingerprint, hash_file
from bridle.compare.executors import require
from bridle.compare.html_report import span
from bridle.core import InputError, Interrupted
from bridle.data import load
from bridle.engines import ENGINES
from bridle.fraud import Options, Outcome, Progress, figures, page, paper_model

SEEDS = 3
POINT = ("lambda", "seed", "fpr", "tpr", "ccv", "cost", "norm", "ccv_exponent")

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


def command(options: Options, progress: Progress | None = None) -> Outcome:
    """Play what is not in the folder yet, and write everything that is to be seen."""
    for package in ("matplotlib", "rich"):
        require(package, "report")
    variant = "code" if options.variant is None else options.variant
    if variant not in paper_model.VARIANTS:
        raise validate.unknown("variant", variant, paper_model.VARIANTS)
    lambdas = parse_lambdas(options.lambdas)
    seeds = list(range(validate.whole("seeds", SEEDS if options.seeds is None else options.seeds)))
    engine = options.engine or next((name for name in ("numba", "jax") if importlib.util.find_spec(name)), "python")
    if engine not in ENGINES:
        raise validate.unknown("engine", engine, ENGINES)
    engines.load(engine)  # what is not installed is said before the data are read
    out = folder(options.out)
    rows = paper_model.rows(load("creditcard", options.data), variant)
    parts, known = _play(rows, variant, lambdas, seeds, engine, out, progress, options.command)
    facts = _facts(rows, variant, lambdas, engine, parts)
    notes = _write(facts, parts, out, options.command)
    if known:
        notes.append(f"{known} of {len(seeds)} seeds were there already")
    return Outcome(_table(facts), [*_notes(facts), *notes], facts)


def parse_lambdas(text: str | None) -> list[float]:
    """The lambdas of a list such as 0.01,0.1, or of LEAST:MOST:COUNT, which is geometric; in increasing order.

    >>> parse_lambdas("0.1,0.01"), parse_lambdas("0.01:1:3")
    ([0.01, 0.1], [0.01, 0.1, 1.0])
    """
    if text is None:
        return paper_model.grid()
    if text.count(":") == 2 and "," not in text:
        least, most, count = (validate.from_text(part.strip()) for part in text.split(":"))
        low, high, n = validate.positive("lambdas", least), validate.positive("lambdas", most), validate.whole("lambdas", count, 2)
        if not low < high:
            raise InputError(f"lambdas must go from a smaller to a larger one, as in 0.002:1:30, not {text!r}")
        if n > 10_000:
            raise InputError(f"lambdas must be at most 10,000, not {n}")
        return paper_model.grid(low, high, n)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"lambdas must hold at least one number, not {text!r}")
    chosen = sorted(validate.positive("lambdas", validate.from_text(part)) for part in parts)
    if len(set(chosen)) < len(chosen):
        raise InputError(f"lambdas must differ from each other, not {text!r}")
    return chosen


def folder(name: str) -> Path:
    """The folder for the results, made where it is missing."""
    if not name.strip():
        raise InputError("--out must name a folder, not an empty text")
    path = Path(name)
    try:
        (path / "seeds").mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot write to folder {path}: {problem.strerror or problem}") from None
    return path


# --- playing, seed by seed -------------------------------------------------------------------------------------------------------------


def _play(
    rows: paper_model.Rows,
    variant: str,
    lambdas: list[float],
    seeds: list[int],
    engine: str,
    out: Path,
    progress: Progress | None,
    typed: str,
) -> tuple[list[paper_model.Seed], int]:
    """What every seed gives, in order, and how many were there already."""
    data = hashlib.sha256(rows.features.tobytes() + rows.fraud.tobytes()).hexdigest()
    sources = [fingerprint(), hash_file(paper_model.__file__)]
    asked = {"sources": sources, "data": data, "variant": variant, "lambdas": lambdas, "engine": engine}
    keys = {seed: digest({**asked, "seed": seed}) for seed in seeds}
    found = {seed: _kept(out / "seeds" / f"{variant}-{seed}.json", keys[seed]) for seed in seeds}
    left = [seed for seed in seeds if found[seed] is None]
    known, rounds = len(seeds) - len(left), len(rows.fraud)
    try:
        for n, seed in enumerate(left):

            def told(at: int, _total: int, n: int = n, seed: int = seed) -> None:
                if progress is not None:
                    progress(n * rounds + at, len(left) * rounds, f"seed {seed}, {n + 1} of {len(left)}")

            made = paper_model.play_seed(rows, variant, lambdas, seed, engine, told)
            with storage.replacing(out / "seeds" / f"{variant}-{seed}.json") as file:
                file.write(json.dumps({"key": keys[seed], "found": made}, allow_nan=False).encode())
            found[seed] = made
    except KeyboardInterrupt:
        done = sum(part is not None for part in found.values())
        raise Interrupted(f"interrupted; {done} of {len(seeds)} seeds are done and kept in {out}; to go on: {typed}") from None
    return [part for part in found.values() if part is not None], known


def _kept(path: Path, key: str) -> paper_model.Seed | None:
    """What an earlier run has left of a seed, if it is whole and answers the same question."""
    try:
        kept = json.loads(path.read_text())
        return dict(kept["found"]) if kept["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


# --- what came of it -------------------------------------------------------------------------------------------------------------------


def _facts(rows: paper_model.Rows, variant: str, lambdas: list[float], engine: str, parts: list[paper_model.Seed]) -> dict[str, Any]:
    problem, _ = paper_model.arrange(rows, variant, parts[0]["seed"])
    policy = paper_model.policy_of(problem, variant, lambdas)
    T, inputs = rows.features.shape
    seconds = sum(part["seconds"] for part in parts)
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
        "seeds": [part["seed"] for part in parts],
        "auc": float(np.mean([part["auc"] for part in parts])),
        "auc_without_corners": float(np.mean([part["auc_without_corners"] for part in parts])),
        "auc_paper": paper_model.AREA,
        "areas": [{name: part[name] for name in ("seed", "auc", "auc_without_corners", "seconds")} for part in parts],
        "points": [point for part in parts for point in part["points"]],
        "seconds": seconds,
        "us_per_round": 1e6 * seconds / (T * len(lambdas) * len(parts)),
        "bound_why": policy.bound(problem.constants, T).why,
    }  # fmt: skip


def averages(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """For each lambda the mean over seeds of what its points hold; None where a seed has none."""
    made = []
    for lam in facts["lambdas"]:
        own = [point for point in facts["points"] if point["lambda"] == lam]
        line: dict[str, Any] = {"lambda": lam}
        for name in POINT[2:]:
            values = [point[name] for point in own]
            line[name] = None if None in values else float(np.mean(values))
        made.append(line)
    return made


HEAD = ("lambda", "FPR", "TPR", "total cost", "CCV", "CCV grows like", "|weights|")


def lines(facts: dict[str, Any]) -> list[list[str]]:
    """The averages as texts under `HEAD`."""
    return [
        [
            f"{line['lambda']:.4g}", f"{line['fpr']:.4f}", f"{line['tpr']:.4f}", f"{line['cost']:,.1f}", f"{line['ccv']:,.1f}",
            "-" if line["ccv_exponent"] is None else f"t^{line['ccv_exponent']:.2f}", f"{line['norm']:.2f}",
        ]
        for line in averages(facts)
    ]  # fmt: skip


def _table(facts: dict[str, Any]) -> Table:
    table = Table(title=f"Section 4 of the paper, variant {facts['variant']}: means over {_seeds(facts)}", title_justify="left")
    for name in HEAD:
        table.add_column(name, justify="right")
    for line in lines(facts):
        table.add_row(*line)
    return table


def _seeds(facts: dict[str, Any]) -> str:
    count = len(facts["seeds"])
    return f"{count} seeds" if count > 1 else "one seed"


def _notes(facts: dict[str, Any]) -> list[str]:
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


def _write(facts: dict[str, Any], parts: list[paper_model.Seed], out: Path, typed: str) -> list[str]:
    """The files of the experiment, and where they are."""
    curves = {
        "rounds": parts[0]["curve_rounds"],
        "each": [
            {"lambda": point["lambda"], "seed": part["seed"], "ccv": curve}
            for part in parts for point, curve in zip(part["points"], part["curves"], strict=True)
        ],
    }  # fmt: skip
    with storage.replacing(out / "metrics.json") as file:
        file.write((json.dumps({**facts, "curves": curves}, indent=1, allow_nan=False) + "\n").encode())
    text = io.StringIO()
    sheet = csv.DictWriter(text, POINT, lineterminator="\n")
    sheet.writeheader()
    sheet.writerows(facts["points"])
    with storage.replacing(out / "points.csv") as file:
        file.write(text.getvalue().encode())
    drawn = figures.write(facts, curves, out)
    report = _page(facts, drawn, out / "report.html", typed)
    return [
        f"points: {out / 'points.csv'}; everything: {out / 'metrics.json'}", f"figures: {', '.join(map(str, drawn))}", f"report: {report}"
    ]  # fmt: skip


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}."


def _page(facts: dict[str, Any], drawn: list[Path], path: Path, typed: str) -> Path:
    svg = {file.stem: file for file in drawn if file.suffix == ".svg"}
    captions = [
        ("ROC curve", f"One point for each lambda; bold: seed {facts['seeds'][0]}. The paper reports an area of {facts['auc_paper']:.2f}."),
        (
            "CCV against t",
            "Median over seeds, both axes logarithmic. Dotted: power law fitted to the second half. Dashed: growth like √t.",
        ),
    ]
    ran = {
        "Variant": facts["variant"], "Transactions": f"{facts['rounds']:,}", "Frauds": f"{facts['frauds']:,}",
        "Network": f"{facts['inputs']}-{facts['hidden']}-1, {facts['weights']} weights", "Lambdas": f"{len(facts['lambdas'])}",
        "Seeds": span(facts["seeds"]), "Engine": facts["engine"], "Time in play": f"{facts['seconds']:,.1f} s",
    }  # fmt: skip
    ran |= {name: f"{value:.4g}" for name, value in facts["settings"].items()}
    about, area, _, theorem = _notes(facts)
    return page.write(
        path,
        "Credit-card fraud, as in the paper",
        f"A network trained online by Algorithm 1 on {facts['rounds']:,} real card transactions, one pass, once for each lambda: "
        f"area under the ROC curve {facts['auc']:.3f}, in the paper {facts['auc_paper']:.2f}.",
        [
            page.section("run", "What was run", page.facts(ran, typed), page.paragraph(_sentence(about))),
            page.section(
                "results", "Results", page.paragraph(_sentence(area), "takeaway"), page.paragraph(_sentence(theorem), "note"),
                page.figures([(*text, svg[name]) for text, name in zip(captions, ("roc", "ccv"), strict=True)]),
                page.table(HEAD, lines(facts), f"Every lambda: means over {_seeds(facts)}."),
            ),
            page.section("reading", "How to read this page", page.reading(READING)),
        ],
    )  # fmt: skip

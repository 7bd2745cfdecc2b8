"""Protocol `stream` as a command: every contestant on the stream, kept one by one; a table, figures, a page and metrics.json."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

import bridle
from bridle import validate
from bridle.adapters import scaling
from bridle.comparisons.keys import digest, fingerprint, hash_file
from bridle.core import InputError
from bridle.fraud import Facts, FraudProgress, Options, Outcome, baselines, page, scores, stream_model
from bridle.fraud.baselines import RowProgress
from bridle.fraud.figures import stream_charts, write_figures
from bridle.fraud.page import Job, check_packages, choose_engine, each_result, results_folder, sentence, write_json
from bridle.fraud.stream_model import Contestant, Setting, StreamRows
from bridle.showing.tables import TextTable

Scorer: TypeAlias = Callable[[StreamRows, RowProgress], tuple[np.ndarray, Facts]]
"""Scores a stream: the scores, and what else is known."""

CHOSEN = "anytime, chosen setting"
"""The contestant that the others are compared with."""

HEAD = ("contestant", "AUC", "average precision", "unseen 80%: AUC", "AP", "recall at 0.1%", "at 1%", "miss loss", "us a row")

READING = {
    "AUC": "Area under the ROC curve: the chance that a fraud has a higher score than a legitimate row.",
    "Average precision": "Area under precision and recall. At one fraud in 579 rows it says more than the AUC.",
    "Unseen 80%": "The same two over the rows after the first fifth, on which the setting was chosen.",
    "Recall at": "The share of frauds among the 0.1% or 1% of rows with the highest scores.",
    "Miss loss": "CCV: what the log-loss of each fraud is above the tolerance, added up; what the constraint is about.",
    "Scores": "Every row is scored before it is learned, with features scaled by earlier rows alone; one pass, in time order.",
    "Theorems": "No weights bring the loss of every fraud below the tolerance, so no action is feasible and no theorem applies; the "
    "network's loss is not convex either. The scores are what was measured.",
}


def command(options: Options, progress: FraudProgress | None = None) -> Outcome:
    """Play what is not in the folder yet, and write everything that is to be seen."""
    check_packages()
    for name in ("variant", "lambdas"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name} is for protocol paper; protocol stream has no use for it")
    engine = choose_engine(options.engine)
    seeds = validate.whole("seeds", 1 if options.seeds is None else options.seeds)
    out = results_folder(options.out)
    rows = stream_model.load(options.data)
    setting, tried = stream_model.SETTING, None
    if options.choose:
        setting, tried = _choose(rows, engine, progress)
    lines, missing = _play(rows, contestants(setting, engine, options.baselines), out, engine, progress, options.command)
    chosen = next(line for line in lines if line["name"] == CHOSEN)
    facts: Facts = {
        "protocol": "stream",
        "version": bridle.__version__,
        "engine": engine,
        "rounds": len(rows.fraud),
        "frauds": int(rows.fraud.sum()),
        "setting": setting._asdict(),
        "chosen_on": int(stream_model.CHOICE * len(rows.fraud)),
        "auc": chosen["auc"],
        "average_precision": chosen["average_precision"],
        "us_per_row": chosen["us_per_row"],
        "contestants": lines,
        "missing": missing,
    }
    if tried is not None:
        facts["tried"] = tried
    idle = ["--seeds changes nothing here: the stream has one order, and what is drawn is drawn from seed 0"] if seeds > 1 else []
    return Outcome(contest_table(lines), [*_notes(facts), *idle, *_write_files(facts, out, options.command)], facts)


def _choose(rows: StreamRows, engine: str, progress: FraudProgress | None) -> tuple[Setting, list[dict[str, float]]]:
    """The best setting of the grid on the first rows, and every one that was tried."""
    first = stream_model.head(rows, stream_model.CHOICE)
    tried: list[dict[str, float]] = []
    merits: list[tuple[float, Setting]] = []
    total = float(np.prod([len(values) for values in stream_model.GRID]))
    for setting, auc, precision in stream_model.select(first, engine):
        merits.append((stream_model.merit(auc, precision), setting))
        tried.append({**setting._asdict(), "auc": auc, "average_precision": precision, "merit": merits[-1][0]})
        if progress is not None:
            progress(len(tried), total, "choosing on the first fifth")
    return max(merits, key=lambda pair: pair[0])[1], tried


# --- contestants -----------------------------------------------------------------------------------------------------------------------


def contestants(setting: Setting, engine: str, with_baselines: bool) -> dict[str, tuple[str, Scorer]]:
    """Everyone in the contest by name: what is said of it, and what scores the stream."""
    scorers = {each.name: (each.about, _ours(each, engine)) for each in stream_model.contestants(setting)}
    if not with_baselines:
        return scorers
    for variant in ("plain", "weighted", "under-sampled"):
        scorers[f"river, {variant}, all columns"] = ("StandardScaler | LogisticRegression", _river(variant, lambda rows: rows.raw))
        scorers[f"river, {variant}, without Time"] = ("StandardScaler | LogisticRegression", _river(variant, lambda rows: rows.raw[:, 1:]))
        scorers[f"river, {variant}, our features"] = (
            "LogisticRegression on the features that the chosen setting sees",
            _river(variant, lambda rows: stream_model.features(rows, setting.squash, setting.time)[:, :-1], scaled=True),
        )
    for variant in ("plain", "weighted"):
        scorers[f"scikit-learn, {variant}"] = ("StandardScaler, SGDClassifier(loss='log_loss'), in blocks of 100 rows", _sklearn(variant))
    return scorers


def _river(variant: str, columns: Callable[[StreamRows], np.ndarray], scaled: bool = False) -> Scorer:
    return lambda rows, progress: (baselines.river_scores(columns(rows), rows.fraud, variant, scaled=scaled, progress=progress), {})


def _sklearn(variant: str) -> Scorer:
    return lambda rows, progress: (baselines.sklearn_scores(rows.raw, rows.fraud, variant, progress=progress), {})


def _ours(who: Contestant, engine: str) -> Scorer:
    """The scores of one of ours, its violation, and the time of the rounds alone (without the first block, in which an engine compiles)."""

    def scored(rows: StreamRows, progress: RowProgress) -> tuple[np.ndarray, Facts]:
        trace = stream_model.play_contestant(rows, who, engine, progress)
        return stream_model.scores(trace, rows.fraud), {
            "ccv": float(trace.totals.hard[0]), "us_per_row": trace.pace, "notes": list(trace.warnings), "tolerance": who.tolerance,
            "policy": who.policy, "model": who.model, "parameters": who.parameters,
        }  # fmt: skip

    return scored


def _play(
    rows: StreamRows, everyone: dict[str, tuple[str, Scorer]], out: Path, engine: str, progress: FraudProgress | None, typed: str
) -> tuple[list[Facts], list[str]]:
    """What came of every contestant, and who could not take part."""
    data = hashlib.sha256(rows.raw.tobytes() + rows.fraud.tobytes()).hexdigest()
    sources = [fingerprint(), *(hash_file(module.__file__ or "") for module in (stream_model, scores, baselines, scaling))]

    def job(name: str, about: str, scorer: Scorer) -> Job:
        key = digest({"sources": sources, "data": data, "name": name, "about": about, "engine": engine})
        return Job("stream", key, partial(_contest, rows, name, about, scorer))

    jobs = {name: job(name, about, scorer) for name, (about, scorer) in everyone.items()}
    results, missing, _ = each_result(jobs, out, "contestants", typed, progress)
    return list(results.values()), missing


def _contest(rows: StreamRows, name: str, about: str, scorer: Scorer, progress: RowProgress) -> Facts:
    """One contestant on the stream."""
    begun = time.perf_counter()
    predictions, more = scorer(rows, progress)
    seconds = time.perf_counter() - begun
    chosen_on = int(stream_model.CHOICE * len(rows.fraud))
    return {
        "name": name, "about": about, **scores.judge(rows.fraud, predictions, chosen_on), "seconds": seconds,
        "us_per_row": 1e6 * seconds / len(rows.fraud), "ccv": None, **more, "alerts": scores.alerts_curve(rows.fraud, predictions),
    }  # fmt: skip


# --- what came of it -------------------------------------------------------------------------------------------------------------------


def contest_table(contestants: list[Facts]) -> TextTable:
    """The contestants, best first by the mean log-odds of both areas."""
    rows = [
        [
            line["name"], f"{line['auc']:.4f}", f"{line['average_precision']:.4f}", f"{line['auc_unseen']:.4f}",
            f"{line['average_precision_unseen']:.4f}", f"{line['recall_at_0.001']:.3f}", f"{line['recall_at_0.01']:.3f}",
            "-" if line["ccv"] is None else f"{line['ccv']:,.0f}", f"{line['us_per_row']:.3g}",
        ]
        for line in sorted(contestants, key=lambda line: -stream_model.merit(line["auc"], line["average_precision"]))
    ]  # fmt: skip
    return TextTable(HEAD, rows, "The fraud stream in time order: every row scored before it is learned", numeric=1)


def _notes(facts: Facts) -> list[str]:
    own = next(line for line in facts["contestants"] if line["name"] == CHOSEN)
    river = [line for line in facts["contestants"] if line["name"].startswith("river")]
    notes = [
        f"the chosen setting has AUC {own['auc']:.4f} and average precision {own['average_precision']:.4f}; it was chosen on the first "
        f"{facts['chosen_on']:,} rows and then fixed: {', '.join(f'{name} = {value:g}' for name, value in facts['setting'].items())}"
    ]
    if river:
        by_area, by_precision = max(river, key=lambda line: line["auc"]), max(river, key=lambda line: line["average_precision"])
        notes.append(
            f"of river's {len(river)} variants the best AUC is {by_area['auc']:.4f} ({by_area['name']}), the best average precision "
            f"{by_precision['average_precision']:.4f} ({by_precision['name']})"
        )
    notes.append("no theorem applies here: no weights bring the loss of every fraud below the tolerance")
    return [*notes, *(f"left out: {why}" for why in facts["missing"])]


def _write_files(facts: Facts, out: Path, typed: str) -> list[str]:
    """The files of the experiment, and where they are."""
    write_json(out / "metrics.json", facts, indent=1)
    charts = stream_charts(facts)
    drawn = write_figures(charts, out)
    ran = {"Transactions": f"{facts['rounds']:,}", "Frauds": f"{facts['frauds']}", "Engine": facts["engine"]}
    ran |= {name: f"{value:g}" for name, value in facts["setting"].items()}
    first, *more = [sentence(note) for note in _notes(facts)]
    lead = (
        f"{facts['rounds']:,} real card transactions, {facts['frauds']} of them frauds, each scored before its label was learned: AUC "
        f"{facts['auc']:.3f} and average precision {facts['average_precision']:.3f} with one setting, fixed in advance."
    )
    title, table = "Credit-card fraud, in time order", contest_table(facts["contestants"])
    shown = page.Report(title, lead, ran, typed, first, more, charts.values(), table, READING)
    report = page.write_fraud_page(out / "report.html", shown)
    return [f"everything: {out / 'metrics.json'}", f"figures: {', '.join(map(str, drawn))}", f"report: {report}"]

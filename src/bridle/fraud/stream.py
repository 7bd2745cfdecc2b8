"""Protocol `stream` as a command: every contestant on the stream, kept one by one; a table, figures, a page and metrics.json."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import bridle
from bridle import engines, storage, validate
from bridle.compare.cell import digest, fingerprint, hash_file
from bridle.compare.executors import require
from bridle.core import InputError, Interrupted, Unavailable
from bridle.engines import ENGINES
from bridle.fraud import Options, Outcome, Progress, baselines, page, stream_model
from bridle.fraud.figures import write_stream
from bridle.fraud.paper import folder
from bridle.fraud.scores import alerts_curve, judge

Scorer = Callable[[stream_model.Rows, Callable[[int, int], None]], tuple[np.ndarray, dict[str, Any]]]

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


def command(options: Options, progress: Progress | None = None) -> Outcome:
    """Play what is not in the folder yet, and write everything that is to be seen."""
    for package in ("matplotlib", "rich"):
        require(package, "report")
    for name in ("variant", "lambdas"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name} is for protocol paper; protocol stream has no use for it")
    engine = options.engine or next((name for name in ("numba", "jax") if importlib.util.find_spec(name)), "python")
    if engine not in ENGINES:
        raise validate.unknown("engine", engine, ENGINES)
    engines.load(engine)
    seeds = validate.whole("seeds", 1 if options.seeds is None else options.seeds)
    out = folder(options.out)
    rows = stream_model.load(options.data)
    setting, tried = stream_model.SETTING, None
    if options.choose:
        setting, tried = _choose(rows, engine, progress)
    lines, missing = _play(rows, contestants(setting, engine, options.baselines), out, engine, progress, options.command)
    chosen = next(line for line in lines if line["name"] == "anytime, chosen setting")
    facts = {
        "protocol": "stream",
        "version": bridle.__version__,
        "engine": engine,
        "rounds": len(rows.fraud),
        "frauds": int(rows.fraud.sum()),
        "setting": setting._asdict(),
        "chosen_on": int(stream_model.CHOICE * len(rows.fraud)),
        **{name: chosen[name] for name in ("auc", "average_precision", "us_per_row")},
        "contestants": lines,
        "missing": missing,
    }
    if tried is not None:
        facts["tried"] = tried
    idle = ["--seeds changes nothing here: the stream has one order, and what is drawn is drawn from seed 0"] if seeds > 1 else []
    return Outcome(_table(lines), [*_notes(facts), *idle, *_write(facts, out, options.command)], facts)


def _choose(rows: stream_model.Rows, engine: str, progress: Progress | None) -> tuple[stream_model.Setting, list[dict[str, Any]]]:
    """The best setting of the grid on the first rows, and every one that was tried."""
    first = stream_model.head(rows, stream_model.CHOICE)
    tried, total = [], float(np.prod([len(values) for values in stream_model.GRID.values()]))
    for setting, auc, precision in stream_model.select(first, engine):
        tried.append({**setting._asdict(), "auc": auc, "average_precision": precision, "merit": stream_model.merit(auc, precision)})
        if progress is not None:
            progress(len(tried), total, "choosing on the first fifth")
    best = max(tried, key=lambda each: each["merit"])
    return stream_model.Setting(**{name: best[name] for name in stream_model.Setting._fields}), tried


# --- contestants -----------------------------------------------------------------------------------------------------------------------


def contestants(setting: stream_model.Setting, engine: str, with_baselines: bool) -> dict[str, tuple[str, Scorer]]:
    """Everyone in the contest by name: what is said of it, and what scores the stream."""
    made: dict[str, tuple[str, Scorer]] = {}
    for each in stream_model.contestants(setting):
        made[each.name] = (each.about, lambda rows, told, each=each: _trained(rows, each, engine, told))  # type: ignore[misc]
    if not with_baselines:
        return made
    for variant in ("plain", "weighted", "under-sampled"):
        made[f"river, {variant}, all columns"] = ("StandardScaler | LogisticRegression", _river(variant, lambda rows: rows.raw))
        made[f"river, {variant}, without Time"] = ("StandardScaler | LogisticRegression", _river(variant, lambda rows: rows.raw[:, 1:]))
        made[f"river, {variant}, our features"] = (
            "LogisticRegression on the features that the chosen setting sees",
            _river(variant, lambda rows: stream_model.features(rows, setting.squash, setting.time)[:, :-1], scaled=True),
        )
    for variant in ("plain", "weighted"):
        made[f"scikit-learn, {variant}"] = ("StandardScaler, SGDClassifier(loss='log_loss'), in blocks of 100 rows", _sklearn(variant))
    return made


def _river(variant: str, columns: Callable[[stream_model.Rows], np.ndarray], scaled: bool = False) -> Scorer:
    return lambda rows, told: (baselines.river_scores(columns(rows), rows.fraud, variant, scaled=scaled, told=told), {})


def _sklearn(variant: str) -> Scorer:
    return lambda rows, told: (baselines.sklearn_scores(rows.raw, rows.fraud, variant, told=told), {})


def _trained(
    rows: stream_model.Rows, who: stream_model.Contestant, engine: str, told: Callable[[int, int], None]
) -> tuple[np.ndarray, dict[str, Any]]:
    """The scores of one of ours, its violation, and the time of the rounds alone (without the first block, in which an engine compiles)."""
    trace = stream_model.play_contestant(rows, who, engine, told)
    return stream_model.scores(trace, rows.fraud), {
        "ccv": float(trace.totals.hard[0]), "us_per_row": trace.pace, "notes": list(trace.warnings), "tolerance": who.tolerance,
        "policy": who.policy, "model": who.model, "parameters": who.parameters,
    }  # fmt: skip


def _play(
    rows: stream_model.Rows, everyone: dict[str, tuple[str, Scorer]], out: Path, engine: str, progress: Progress | None, typed: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """What came of every contestant, and who could not take part."""
    data = hashlib.sha256(rows.raw.tobytes() + rows.fraud.tobytes()).hexdigest()
    sources = [fingerprint(), *(hash_file(module.__file__ or "") for module in (stream_model, baselines))]
    chosen_on = int(stream_model.CHOICE * len(rows.fraud))
    done: list[dict[str, Any]] = []
    missing: list[str] = []
    try:
        for n, (name, (about, score)) in enumerate(everyone.items()):
            key = digest({"sources": sources, "data": data, "name": name, "about": about, "engine": engine})
            place = out / "seeds" / f"stream-{key[:16]}.json"
            if (kept := _kept(place)) is not None:
                done.append(kept)
                continue

            def told(at: int, total: int, n: int = n, name: str = name) -> None:
                if progress is not None:
                    progress(n + at / total, len(everyone), name)

            begun = time.perf_counter()
            try:
                scores, more = score(rows, told)
            except Unavailable as why:
                missing.append(f"{name}: {why}")
                continue
            seconds = time.perf_counter() - begun
            line = {
                "name": name, "about": about, **judge(rows.fraud, scores, chosen_on), "seconds": seconds,
                "us_per_row": 1e6 * seconds / len(rows.fraud), "ccv": None, **more, "alerts": alerts_curve(rows.fraud, scores),
            }  # fmt: skip
            with storage.replacing(place) as file:
                file.write(json.dumps(line, allow_nan=False).encode())
            done.append(line)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {len(done)} of {len(everyone)} are done and kept in {out}; to go on: {typed}") from None
    return done, missing


def _kept(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


# --- what came of it -------------------------------------------------------------------------------------------------------------------


def lines(facts: dict[str, Any]) -> list[list[str]]:
    """The contestants as texts under `HEAD`, best first by the mean log-odds of both areas."""
    return [
        [
            line["name"], f"{line['auc']:.4f}", f"{line['average_precision']:.4f}", f"{line['auc_unseen']:.4f}",
            f"{line['average_precision_unseen']:.4f}", f"{line['recall_at_0.001']:.3f}", f"{line['recall_at_0.01']:.3f}",
            "-" if line["ccv"] is None else f"{line['ccv']:,.0f}", f"{line['us_per_row']:.3g}",
        ]
        for line in sorted(facts["contestants"], key=lambda line: -stream_model.merit(line["auc"], line["average_precision"]))
    ]  # fmt: skip


def _table(contestants: list[dict[str, Any]]) -> Table:
    table = Table(title="The fraud stream in time order: every row scored before it is learned", title_justify="left")
    for name in HEAD:
        table.add_column(name, justify="left" if name == HEAD[0] else "right")
    for line in lines({"contestants": contestants}):
        table.add_row(*line)
    return table


def _notes(facts: dict[str, Any]) -> list[str]:
    own = next(line for line in facts["contestants"] if line["name"] == "anytime, chosen setting")
    river = [line for line in facts["contestants"] if line["name"].startswith("river")]
    said = [
        f"the chosen setting has AUC {own['auc']:.4f} and average precision {own['average_precision']:.4f}; it was chosen on the first "
        f"{facts['chosen_on']:,} rows and then fixed: {', '.join(f'{name} = {value:g}' for name, value in facts['setting'].items())}"
    ]
    if river:
        best = [max(river, key=lambda line, name=name: line[name]) for name in ("auc", "average_precision")]  # type: ignore[misc]
        said.append(
            f"of river's {len(river)} variants the best AUC is {best[0]['auc']:.4f} ({best[0]['name']}), the best average precision "
            f"{best[1]['average_precision']:.4f} ({best[1]['name']})"
        )
    said.append("no theorem applies here: no weights bring the loss of every fraud below the tolerance")
    return [*said, *(f"left out: {why}" for why in facts["missing"])]


def _write(facts: dict[str, Any], out: Path, typed: str) -> list[str]:
    with storage.replacing(out / "metrics.json") as file:
        file.write((json.dumps(facts, indent=1, allow_nan=False) + "\n").encode())
    drawn = write_stream(facts, out)
    svg = {file.stem: file for file in drawn if file.suffix == ".svg"}
    ran = {"Transactions": f"{facts['rounds']:,}", "Frauds": f"{facts['frauds']}", "Engine": facts["engine"]}
    ran |= {name: f"{value:g}" for name, value in facts["setting"].items()}
    said = [f"{note[0].upper()}{note[1:]}." for note in _notes(facts)]
    captions = {
        "areas": ("Both areas", "AUC and average precision of every contestant over the whole stream; up and right is better."),
        "alerts": ("Frauds caught", "The share of frauds among the rows with the highest scores, against how many rows are flagged."),
    }
    report = page.write(
        out / "report.html",
        "Credit-card fraud, in time order",
        f"{facts['rounds']:,} real card transactions, {facts['frauds']} of them frauds, each scored before its label was learned: AUC "
        f"{facts['auc']:.3f} and average precision {facts['average_precision']:.3f} with one setting, fixed in advance.",
        [
            page.section("run", "What was run", page.facts(ran, typed)),
            page.section(
                "results", "Results", page.paragraph(said[0], "takeaway"), *(page.paragraph(note, "note") for note in said[1:]),
                page.figures([(*text, svg[name]) for name, text in captions.items()]),
                page.table(HEAD, lines(facts), "Every contestant, best first by both areas."),
            ),
            page.section("reading", "How to read this page", page.reading(READING)),
        ],
    )  # fmt: skip
    return [f"everything: {out / 'metrics.json'}", f"figures: {', '.join(map(str, drawn))}", f"report: {report}"]

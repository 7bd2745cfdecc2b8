"""The learner without constants against river's logistic regression with the best of four optimisers in hindsight.

Its tables are in docs/explanation/adapters-measured.md.

Every row is scored by what was learned of the rows before it, then learned; every row counts, the first included. ``--timed`` measures the
time of a row alone, ``--tables`` nothing: the page is written again from what learners.json holds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

if "--toy" in sys.argv:
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # a few rows are sooner played than compiled

import numpy as np
from sklearn.metrics import roc_auc_score

from bridle import ops
from bridle.adapters import river as adapter
from bridle.adapters.mixture import EXPERTS, Mixture, MixtureState, mixture
from bridle.adapters.scaling import RunningScale, Scale, squashed
from bridle.engines.mirror import Mirror
from parts import learner_streams, river_models
from parts.learner_streams import LabelledStream
from parts.timing import Side, interleaved
from parts.toy import size, target

BAR = 0.003
"""What the default learner may be below river's best of four in AUC, and above it in log loss."""

CHECKED = size(500, 60)
"""So many rows of a stream are played by river itself, and by the estimator that users have: the same numbers must come out."""

WIDE = size((9, 29, 108), (9,))
"""The features of rows that are timed: 10, 30 and 109 weights."""

ROWS, REPEATS = size(1000, 20), size(9, 2)
BEGIN, END = "<!-- measured by benchmarks/learners.py -->", "<!-- end -->"
ONE = np.ones(1)
LIMITS = {
    "mean loss of those who earn over 50,000, at most 0.4": adapter.MissLoss(True, 0.4),
    "the same, mean loss at most 0.2": adapter.MissLoss(True, 0.2),
    "gap of mean scores between men and women, at most 0.1": adapter.GroupGap(0.1),
    "the same, at most 0.5": adapter.GroupGap(0.5),
}
SETTINGS: dict[str, dict[str, Any]] = {"learner without constants": {}, "policy `soft`, radius 5": {"policy": "soft", "scale": True}}


class Progress(NamedTuple):
    """What was learned, the weights that are played, the scale, and the score of the last row before it was learned."""

    mixture: MixtureState
    weights: np.ndarray
    scale: RunningScale
    score: float


class Row(NamedTuple):
    """One row and its class."""

    features: np.ndarray
    sign: float


def step(learner: Mixture, before: Progress, row: Row) -> Progress:
    a = ops.join([ONE, squashed(before.scale.apply(row.features))], -1)
    after = learner.learn(before.mixture, a, row.sign, 1.0, None)
    return Progress(after, learner.weights(after), before.scale.learn(row.features), ops.dot(before.weights, a))


def own_scores(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log-odds of every row, and what each expert weighs at the end."""
    learner = mixture(X.shape[1])
    start = Progress(learner.init(), learner.weights(learner.init()), Scale(X.shape[1]), 0.0)
    memory = Mirror(step, learner, start, Row(X[0], 1.0), start)
    memory.write(start)
    features, sign, score = (memory.views[name] for name in ("given.features", "given.sign", "states.score"))
    found = np.zeros(len(y))
    for t, (row, label) in enumerate(zip(X, np.where(y, 1.0, -1.0), strict=True)):
        features[...], sign[...] = row, label
        memory.run()
        found[t] = score
    return found, memory.settle().mixture.hedge.v


def estimator_difference(X: np.ndarray, y: np.ndarray, scores: np.ndarray) -> float:
    """The largest difference of a probability between the estimator with nothing set and `own_scores`, over the first rows."""
    model, largest = adapter.ConstrainedClassifier(), 0.0
    for row, label, score in zip(X[:CHECKED].tolist(), y[:CHECKED].tolist(), scores[:CHECKED], strict=True):
        named = dict(enumerate(row))
        p = model.predict_proba_one(named).get(True, 0.5)
        largest = max(largest, abs(p - float(ops.sigmoid(float(score)))))
        model.learn_one(named, bool(label))
    return largest


def quality(y: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """AUC, and the mean log loss."""
    return float(roc_auc_score(y, scores)), float(np.logaddexp(0.0, np.where(y, -scores, scores)).mean())


def standard_error(y: np.ndarray, one: np.ndarray, other: np.ndarray, draws: int = 400) -> float:
    """Of the difference of two AUCs on the same rows: its deviation over rows drawn anew."""
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, len(y), len(y)) for _ in range(draws)]
    return float(np.std([roc_auc_score(y[rows], one[rows]) - roc_auc_score(y[rows], other[rows]) for rows in drawn]))


def measured(stream: LabelledStream) -> dict[str, Any]:
    """Every learner on one stream: the means over its orders."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("bridle", *river_models.OPTIMISERS)}
    weights = []
    for X, y in stream.orders:
        scores, v = own_scores(X, y)
        weights.append(v)
        found["bridle"].append(quality(y, scores))
        for name in river_models.OPTIMISERS:
            found[name].append(quality(y, river_models.scores(name, X, y)))
    X, y = stream.orders[0]
    apart = {name: river_models.difference(name, X, y, CHECKED) for name in river_models.OPTIMISERS}
    apart["bridle"] = estimator_difference(X, y, own_scores(X[:CHECKED], y[:CHECKED])[0])
    assert max(apart.values()) < 1e-9, f"{stream.name}: what is measured is not what {max(apart, key=lambda name: apart[name])} does"
    means = {name: np.mean(pairs, axis=0) for name, pairs in found.items()}
    first = max(river_models.OPTIMISERS, key=lambda name: means[name][0])
    below = means["bridle"][0] - means[first][0] < -BAR
    return {
        "standard_error": standard_error(y, own_scores(X, y)[0], river_models.scores(first, X, y)) if below else None,
        "rows": len(y), "features": X.shape[1], "orders": len(stream.orders), "positives": float(y.mean()),
        "auc": {name: float(mean[0]) for name, mean in means.items()}, "log_loss": {name: float(mean[1]) for name, mean in means.items()},
        "weights": dict(zip(EXPERTS, np.mean(weights, axis=0).tolist(), strict=False)), "apart": max(apart.values()),
    }  # fmt: skip


def timed(features: int) -> list[dict[str, Any]]:
    """Microseconds a row: river's scaler and logistic regression, and ours as users have it, compiled."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, features)) * 10.0 ** rng.uniform(-2.0, 2.0, features)
    rows = [(dict(enumerate(row)), bool(row[0] > 0.0)) for row in X.tolist()]

    def learned(model: Any) -> Any:
        def go() -> None:
            for row, label in rows:
                model.learn_one(row, label)

        return go

    sides = [
        Side("river: StandardScaler, then LogisticRegression", learned(river_models.river_model("SGD 0.01")), ROWS),
        Side("bridle: ConstrainedClassifier(engine='compiled')", learned(adapter.ConstrainedClassifier(engine="compiled")), ROWS),
        Side("bridle: ConstrainedClassifier()", learned(adapter.ConstrainedClassifier()), ROWS),
    ]
    return interleaved(sides, REPEATS)


def limited(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """A limit on average on the census, by the estimator that users have: what came of it from the second quarter on, and what it cost."""
    X, y, men = learner_streams.people()
    limit = LIMITS[name]
    model, p = adapter.ConstrainedClassifier([limit], engine="compiled", **settings), np.zeros(len(y))
    for t, (row, label, group) in enumerate(zip(X.tolist(), y.tolist(), (1.0 * men).tolist(), strict=True)):
        named = dict(enumerate(row))
        p[t] = model.predict_proba_one(named)[True]
        model.learn_one(named, label, group=group)
    late = slice(len(y) // 4, None)
    scores, y, men = np.log(p[late]) - np.log1p(-p[late]), y[late], men[late]
    reached = float(np.logaddexp(0.0, -scores[y]).mean()) if "loss" in name else float(abs(scores[men].mean() - scores[~men].mean()))
    auc, loss = quality(y, scores)
    return {"asked": limit.at_most, "reached": reached, "auc": auc, "log_loss": loss, "price": model.limits_[0].price}


# --- the page -------------------------------------------------------------------------------------------------------------------------


def best(row: dict[str, Any]) -> tuple[str, str]:
    """Which of river's four has the best AUC, and which the best log loss."""
    names = tuple(river_models.OPTIMISERS)
    return max(names, key=lambda name: row["auc"][name]), min(names, key=lambda name: row["log_loss"][name])


def page(found: dict[str, Any]) -> str:
    """The tables as Markdown."""
    rows, streams = [], found["streams"]
    gains, losses = [], []
    for name, row in streams.items():
        first, second = best(row)
        gain, loss = row["auc"]["bridle"] - row["auc"][first], row["log_loss"]["bridle"] - row["log_loss"][second]
        gains, losses = [*gains, gain], [*losses, loss]
        orders = f", {row['orders']} orders" if row["orders"] > 1 else ""
        mark = "**" if gain < -BAR or loss > BAR else ""
        cells = (
            f"{mark}{name}{mark} ({row['rows']:,} x {row['features']}{orders})",
            f"{row['auc'][first]:.4f} ({first})", f"{row['auc']['bridle']:.4f}", f"{gain:+.4f}",
            f"{row['log_loss'][second]:.4f} ({second})", f"{row['log_loss']['bridle']:.4f}", f"{loss:+.4f}",
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    below = [
        f"{name} (by {-gain / streams[name]['standard_error']:.1f} standard errors)"
        for name, gain in zip(streams, gains, strict=True)
        if gain < -BAR
    ]
    above = [name for name, loss in zip(streams, losses, strict=True) if loss > BAR]
    always = "; ".join(
        f"{name} {np.mean([row['auc']['bridle'] - row['auc'][name] for row in streams.values()]):+.4f} and "
        f"{np.mean([row['log_loss']['bridle'] - row['log_loss'][name] for row in streams.values()]):+.4f}"
        for name in river_models.OPTIMISERS
    )
    text = [
        f"On {len(streams)} streams the AUC is {np.mean(gains):+.4f} on average and {min(gains):+.4f} at worst against the best of "
        f"river's four, chosen for each stream in hindsight; the log loss {np.mean(losses):+.4f} and {max(losses):+.4f}. "
        + (f"Below by more than {BAR} in AUC: {', '.join(below)}. " if below else f"Nowhere is it below by more than {BAR} in AUC. ")
        + (
            f"Above by more than {BAR} in log loss: {', '.join(above)}. "
            if above
            else f"Nowhere is it above by more than {BAR} in log loss. "
        )
        + f"Against one of the four throughout, AUC and log loss on average: {always}.",
        "",
        "| stream (rows x features) | river's best AUC | bridle | | river's best log loss | bridle | |",
        "|---|---|---|---|---|---|---|",
        *rows,
    ]
    text += ["", "| Adult, from the second quarter on | held by | reached | AUC | log loss | price |", "|---|---|---|---|---|---|"]
    for name, by in found["limits"].items():
        for which, row in by.items():
            price = "-" if row["price"] is None else f"{row['price']:.3g}"
            text.append(f"| {name} | {which} | {row['reached']:.3f} | {row['auc']:.4f} | {row['log_loss']:.4f} | {price} |")
    if found["timed"]:
        text += [
            "",
            "| time to learn a row, as a multiple of river's in the same run (median, least and most) | "
            + " | ".join(f"{d} features" for d in found["timed"])
            + " |",
        ]
        text.append("|---|" + "---|" * len(found["timed"]))
        for at, side in enumerate(next(iter(found["timed"].values()))):
            each = [sides[at] for sides in found["timed"].values()]
            cells = [f"{one['ratio']:.2f} ({one['ratio_low']:.2f} - {one['ratio_high']:.2f})" for one in each]
            text.append(f"| `{side['name']}` | " + " | ".join(cells) + " |")
    return "\n".join(text)


def main() -> None:
    figures = target(Path(__file__).with_name("learners.json"))
    place = target(Path(__file__).parent.parent / "docs" / "explanation" / "adapters-measured.md")
    known = "--tables" in sys.argv or "--timed" in sys.argv
    found: dict[str, Any] = json.loads(figures.read_text(encoding="utf-8")) if known else {"streams": {}, "limits": {}, "timed": {}}
    for stream in () if known else learner_streams.streams():
        begun = time.perf_counter()
        found["streams"][stream.name] = measured(stream)
        sys.stdout.write(f"{stream.name}: {time.perf_counter() - begun:.1f} s\n")
        sys.stdout.flush()
    if not known:
        found["limits"] = {name: {which: limited(name, settings) for which, settings in SETTINGS.items()} for name in LIMITS}
    if "--tables" not in sys.argv:
        found["timed"] = {str(features): timed(features) for features in WIDE}
        figures.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    made = page(found)
    text = place.read_text(encoding="utf-8")
    start = text.index(BEGIN) + len(BEGIN)
    place.write_text(f"{text[:start]}\n{made}\n{text[text.index(END, start) :]}", encoding="utf-8")
    sys.stdout.write(made + "\n")


if __name__ == "__main__":
    main()

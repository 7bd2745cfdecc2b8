"""Limits on rates on real and changing streams: what they keep, and what the other side of the trade-off is.

Its tables are in docs/explanation/adapters-measured.md.

Each limit is held on the scores of the learner without constants (`ConstrainedClassifier` with nothing set), row by row, each row scored
before it is learned. Beside it, on the same stream: a threshold moved by hand on river's best logistic regression, the best of four
optimisers by AUC in hindsight; `MissLoss` (for groups: `GroupGap`) under `anytime`; class weights in inverse proportion to the classes; and
a fixed threshold on the scores of the learner itself, known in hindsight. Nothing was chosen on these streams but what is said to be.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bridle import data
from bridle.adapters.linear import ModelSettings
from bridle.limits import EqualOpportunity, FalsePositiveRate, GroupGap, MissLoss, Recall
from bridle.limits.thresholds import thresholds
from parts import learner_streams, river_models
from parts.limited_scores import at_rate, best_groups, by_hand, groups_by_hand, limited, scores_of
from parts.toy import TOY, size, target

RECALL, FALSE_POSITIVES, GAP = 0.9, 0.01, 0.05
WINDOW = size(1000, 40)
BEGIN, END = "<!-- measured by benchmarks/limits.py -->", "<!-- end of what benchmarks/limits.py measured -->"
CLASSES = (False, True)
FREE = ModelSettings(CLASSES, None)
BEFORE = {"policy": "anytime", "radius": 5.0, "scale": True}
"""What estimators were made of before rates could be asked for."""


class GroupedStream(NamedTuple):
    """A table, its labels, and the group of each row."""

    name: str
    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray


def applicants() -> GroupedStream:
    """Applicants for credit, in one shuffled order: who is a bad risk, and who is a woman."""
    X, y = learner_streams.german()
    order = np.random.default_rng(0).permutation(len(y))
    return GroupedStream("German", X[order], y[order], data.load("german").equals("status-sex", "A92")[order])


def streams() -> list[GroupedStream]:
    """Real data with the groups that they have, and changing streams whose groups are the halves of the first feature."""
    changing = ("SEA, changing", "RBF, moving", "Friedman, changing", "Sine, changing", "Agrawal, changing", "Hyperplane, fast")
    names = size(("creditcard", *changing), changing[:1])
    makers = {name: make for name, make, _ in learner_streams.MAKERS}
    found = []
    for name in names:
        X, y = makers[name]()
        X, y = (X[:400], y[:400]) if TOY else (X, y)
        found.append(GroupedStream(name, X, y, X[:, 0] > np.median(X[:, 0])))
    if not TOY:
        found[1:1] = [GroupedStream("Adult", *learner_streams.people()), applicants()]
    return found


def worst_window(values: np.ndarray, asked: float) -> float | None:
    """How far the mean of any window of counted rounds after the first is from what was asked; None where there are too few."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    means = (sums[WINDOW:] - sums[:-WINDOW])[WINDOW:] / WINDOW
    return float(np.abs(means - asked).max()) if len(means) else None


def worst_gap(alarms: np.ndarray, groups: np.ndarray) -> float | None:
    """The largest gap in any window of counted rounds after the first; None where there are too few."""
    sums = [np.cumsum(np.concatenate([[0.0], part])) for part in (alarms * groups, 1.0 * groups, alarms * ~groups, 1.0 * ~groups)]
    one, ones, other, others = ((each[WINDOW:] - each[:-WINDOW])[WINDOW:] for each in sums)
    known = (ones > 0) & (others > 0) if len(ones) else np.zeros(0, dtype=bool)
    return float(np.abs(one[known] / ones[known] - other[known] / others[known]).max()) if known.any() else None


def rate_row(stream: GroupedStream, scores: dict[str, np.ndarray], kind: str) -> dict[str, object]:
    """One limit on one stream: pairs of the rate itself and of the other side."""
    y, lower = stream.y, kind == "recall"
    counted, asked = (y, RECALL) if lower else (~y, FALSE_POSITIVES)
    share = 1.0 - RECALL if lower else FALSE_POSITIVES
    model = thresholds([Recall(RECALL) if lower else FalsePositiveRate(FALSE_POSITIVES)])

    def pair(alarms: np.ndarray) -> list[float]:
        return [float(alarms[counted].mean()), float((~alarms[~y]).mean() if lower else alarms[y].mean())]

    ours, state = limited(model, scores["free"], y)
    violated = ~ours[counted] if lower else ours[counted]
    debt = model.rates[0].debt(state.rates[0])
    assert abs(violated.sum() - share * len(violated) - debt) < 1e-6, "the identity"
    loss = scores["MissLoss of positives" if lower else "MissLoss of negatives"]
    return {
        "stream": stream.name, "rows": len(y), "counted": int(counted.sum()), "asked": asked, "debt": float(debt),
        "window": worst_window(1.0 * ours[counted], asked),
        "ours": pair(ours),
        "river and this limit": pair(limited(model, scores["river"], y)[0]),
        "by hand": pair(by_hand(scores["river"], counted, share, lower)),
        "MissLoss": [*pair(loss > 0.0), pair(at_rate(loss, counted, share, lower))[1]],
        "class weights": [*pair(scores["class weights"] > 0.0), pair(at_rate(scores["class weights"], counted, share, lower))[1]],
        "hindsight": pair(at_rate(scores["free"], counted, share, lower)),
    }  # fmt: skip


def gap_row(stream: GroupedStream, scores: dict[str, np.ndarray]) -> dict[str, object]:
    """Equal opportunity on one stream: pairs of the gap and of accuracy."""
    y, groups = stream.y, stream.groups

    def pair(alarms: np.ndarray) -> list[float]:
        return [float(abs(alarms[y & groups].mean() - alarms[y & ~groups].mean())), float((alarms == y).mean())]

    model = thresholds([EqualOpportunity(GAP)])
    ours, state = limited(model, scores["free"], y, groups)
    level, held = model.gaps[0], state.gaps[0]
    targets, debts = held.targets / held.counted, np.abs(level.debts(held)) / held.counted
    assert pair(ours)[0] <= abs(targets[1] - targets[0]) + debts.sum() + 1e-9, "the identity"
    return {
        "stream": stream.name, "counted": [int(n) for n in held.counted], "targets apart": float(abs(targets[1] - targets[0])),
        "debts": [float(debt) for debt in debts],
        "window": worst_gap(ours[y], groups[y]), "untreated window": worst_gap(scores["free"][y] > 0.0, groups[y]),
        "ours": pair(ours), "untreated": pair(scores["free"] > 0.0), "by hand": pair(groups_by_hand(scores["river"], y, groups)),
        "GroupGap": pair(scores["GroupGap"] > 0.0), "hindsight": pair(best_groups(scores["free"], y, groups, GAP)),
    }  # fmt: skip


def all_scores(stream: GroupedStream) -> dict[str, np.ndarray]:
    """Every learner's scores of every row."""
    X, y = np.ascontiguousarray(stream.X), stream.y
    four = [river_models.scores(name, X, y) for name in river_models.OPTIMISERS]
    balanced = np.where(y, len(y) / (2.0 * max(1, y.sum())), len(y) / (2.0 * max(1, (~y).sum())))
    before = partial(ModelSettings, CLASSES, **BEFORE)
    return {
        "free": scores_of(FREE, X, y),
        "river": max(four, key=partial(auc, y=y)),
        "class weights": scores_of(FREE, X, y, balanced),
        "MissLoss of positives": scores_of(before(constraints=[MissLoss(True, 0.1)]), X, y),
        "MissLoss of negatives": scores_of(before(constraints=[MissLoss(False, 0.1)]), X, y),
        "GroupGap": scores_of(before(constraints=[GroupGap(0.1)]), X, y, None, stream.groups),
    }


def auc(scores: np.ndarray, y: np.ndarray) -> float:
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    positives = y.sum()
    return float((ranks[y].sum() - positives * (positives + 1) / 2) / (positives * (len(y) - positives)))


def measure() -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {"recall": [], "false positives": [], "equal opportunity": []}
    for stream in streams():
        scores = all_scores(stream)
        found["recall"].append(rate_row(stream, scores, "recall"))
        found["false positives"].append(rate_row(stream, scores, "false positives"))
        found["equal opportunity"].append(gap_row(stream, scores))
        print(stream.name, file=sys.stderr, flush=True)
    return found


def misses(rows: list[dict[str, object]], rate_first: str, other: str) -> str:
    """The streams on which the other side is more than .01 below the threshold by hand, with the rate that this one has."""
    below = [
        f"{row['stream']} {row['ours'][1] - row['by hand'][1]:+.3f} ({rate_first} by hand {row['by hand'][0]:.3f})"
        for row in rows
        if row["ours"][1] < row["by hand"][1] - 0.01
    ]
    return f"More than 0.01 below by hand in {other}: {'; '.join(below) or 'none'}."


def beaten(rows: list[dict[str, object]]) -> str:
    """The streams on which MissLoss or class weights, with a threshold in hindsight, are above."""
    above = [
        f"{row['stream']} ({name}, {row[name][2] - row['ours'][1]:+.3f})"
        for row in rows
        for name in ("MissLoss", "class weights")
        if row[name][2] > row["ours"][1]
    ]
    return (
        f"Where the others would be above at the same rate, had their threshold been known in hindsight: {'; '.join(above) or 'nowhere'}."
    )


def markdown(found: dict[str, list[dict[str, object]]]) -> str:
    """The tables of the documentation."""

    def number(value: float | None, digits: int = 3) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    parts = []
    for kind, title, digits in (
        ("recall", "`Recall(at_least=0.9)`: recall, specificity", 3),
        ("false positives", "`FalsePositiveRate(at_most=0.01)`: false positive rate, recall", 4),
    ):
        lines = [
            f"| {title} | counted | this limit | worst window | by hand | river and this limit | `MissLoss` | class weights | hindsight |",
            "|---" * 9 + "|",
        ]
        for row in found[kind]:
            pairs = [row[name] for name in ("ours", "by hand", "river and this limit", "MissLoss", "class weights", "hindsight")]
            ours, hand, river, loss, weights, best = (f"{number(pair[0], digits)}, {number(pair[1])}" for pair in pairs)
            loss, weights = (f"{text} ({number(pair[2])})" for text, pair in ((loss, pairs[3]), (weights, pairs[4])))
            cells = [row["stream"], f"{row['counted']:,}", f"**{ours}**", number(row["window"], digits), hand, river, loss, weights, best]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
        side = "specificity" if kind == "recall" else "recall"
        parts.append("\n".join([*lines, "", misses(found[kind], "rate", side), beaten(found[kind])]))
    lines = [
        "| `EqualOpportunity(gap=0.05)`: gap, accuracy | counted | this limit | worst window | targets apart, debts | untreated "
        "| by hand | `GroupGap` | hindsight |",
        "|---" * 9 + "|",
    ]
    for row in found["equal opportunity"]:
        pairs = [row[name] for name in ("ours", "untreated", "by hand", "GroupGap", "hindsight")]
        ours, plain, hand, gap, best = (f"{number(pair[0])}, {number(pair[1])}" for pair in pairs)
        debts = ", ".join(number(debt) for debt in row["debts"])
        counted = " and ".join(f"{n:,}" for n in row["counted"])
        inside = f"{number(row['targets apart'])}, {debts}"
        plain = f"{plain} ({number(row['untreated window'])})"
        cells = [row["stream"], counted, f"**{ours}**", number(row["window"]), inside, plain, hand, gap, best]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    parts.append("\n".join([*lines, "", misses(found["equal opportunity"], "gap", "accuracy")]))
    return "\n\n".join(parts)


def main() -> None:
    found = measure()
    target(Path(__file__).with_name("limits.json")).write_text(json.dumps(found, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "explanation" / "adapters-measured.md")
    text = page.read_text()
    page.write_text(f"{text[: text.index(BEGIN) + len(BEGIN)]}\n{markdown(found)}\n{text[text.index(END) :]}")
    print(markdown(found))


if __name__ == "__main__":
    main()

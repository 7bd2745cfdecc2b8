"""The figures of both protocols as charts: the ROC curve of the lambdas, CCV against the round, both areas, and frauds caught."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np

from bridle.comparisons.analysis import power_law
from bridle.comparisons.plots import save_figure
from bridle.fraud import Facts
from bridle.fraud.paper_model import PAPER_AREA
from bridle.showing.figures import sheet
from bridle.showing.marks import Axis, Chart, Guide, line

SHOWN = 5
"""How many of the lambdas have a curve of their own."""

FAMILIES = ("bridle, chosen setting", "river", "scikit-learn", "bridle, network", "bridle, other settings")
"""The contestants of protocol stream, in the order of their colours."""


def write_figures(charts: Mapping[str, Chart], folder: Path) -> list[Path]:
    """Write each chart as PNG and SVG to the folder, under its name; the paths, in order."""
    sheets = {name: sheet([chart]) for name, chart in charts.items()}
    return [save_figure(drawn, folder / f"{name}.{kind}") for name, drawn in sheets.items() for kind in ("png", "svg")]


def paper_charts(facts: Facts, curves: Facts) -> dict[str, Chart]:
    """The figures of section 4 of the paper, by name."""
    return {"roc": roc(facts), "ccv": ccv(facts, curves)}


def stream_charts(facts: Facts) -> dict[str, Chart]:
    """The figures of protocol stream, by name."""
    return {"areas": areas(facts), "alerts": alerts(facts)}


def roc(facts: Facts) -> Chart:
    """One point for each lambda; the curve of each seed through the corners, and what area the paper reports."""
    lines, guides = [], [Guide([0.0, 1.0], [0.0, 1.0]), Guide([0.58], [0.54], "chance, area 0.50")]
    for place, seed in enumerate(facts["areas"]):
        own = sorted((p["fpr"], p["tpr"], p["lambda"]) for p in facts["points"] if p["seed"] == seed["seed"])
        x, y = [0.0, *(p[0] for p in own), 1.0], [0.0, *(p[1] for p in own), 1.0]
        lines.append(line(place, f"seed {seed['seed']}, area {seed['auc']:.3f}", x, y))
        if not place:
            guides += [
                Guide([fpr + 0.02], [tpr - 0.08], f"λ = {lam:.2g}")
                for fpr, tpr, lam in sorted({own[i * (len(own) - 1) // 3] for i in range(4)})
            ]
    area = f"area {facts['auc']:.3f}, without the corners {facts['auc_without_corners']:.3f}; the paper reports {PAPER_AREA:.2f}"
    caption = f"One point for each lambda, and the corners: {area}."
    x_axis, y_axis = (
        Axis(f"{name} positive rate: mean output on {rows}", top=1.0, bottom=0.0)
        for name, rows in (("false", "legitimate transactions"), ("true", "frauds"))
    )
    return Chart("roc", f"variant {facts['variant']}", None, "ROC curve", x_axis, y_axis, lines, [], caption, guides)


def ccv(facts: Facts, curves: Facts) -> Chart:
    """CCV against the round for some of the lambdas, with the power law of the second half, beside growth like sqrt(t)."""
    own = {lam: median_curve(curves, lam) for lam in shown(facts["lambdas"])}
    begin = next((i for i, at in enumerate(zip(*own.values(), strict=True)) if min(at) > 0.0), 0)
    rounds = curves["rounds"][begin:]
    lines = [
        line(place, f"λ = {lam:.2g}", rounds, curve[begin:], law=power_law(rounds, curve[begin:], since=rounds[-1] / 2.0))
        for place, (lam, curve) in enumerate(own.items())
    ]
    top, last = max(curve[-1] for curve in own.values()), float(rounds[-1])
    root = Guide([last / 30.0, last], [1.9 * top / 30.0**0.5, 1.9 * top], "√t")
    caption = "Median over seeds, both axes logarithmic. Dotted: the power law fitted to the second half, and growth like √t."
    x, y = Axis("round t (transactions seen)", "log"), Axis("CCV: log-loss on frauds so far, added up", "log", top=4.0 * top)
    return Chart("ccv", f"variant {facts['variant']}", rounds[-1], "CCV against t", x, y, lines, [], caption, [root])


def shown(lambdas: list[float]) -> list[float]:
    """The lambdas that have a curve: the ends and some evenly between."""
    return [lambdas[i] for i in sorted({round(i) for i in np.linspace(0, len(lambdas) - 1, SHOWN)})]


def median_curve(curves: Facts, lam: float) -> list[float]:
    """The median over seeds of the CCV of one lambda, at each round."""
    return [float(value) for value in np.median([curve["ccv"] for curve in curves["each"] if curve["lambda"] == lam], axis=0)]


def by_family(contestants: list[Facts]) -> dict[str, list[Facts]]:
    """The contestants of each family, best first by average precision."""
    families: dict[str, list[Facts]] = {name: [] for name in FAMILIES}
    for each in sorted(contestants, key=lambda each: -each["average_precision"]):
        name = each["name"]
        found = [family for family in FAMILIES[1:4] if name.startswith(family.removeprefix("bridle, "))] or [FAMILIES[4]]
        families[FAMILIES[0] if "chosen" in name else found[0]].append(each)
    return {name: own for name, own in families.items() if own}


def areas(facts: Facts) -> Chart:
    """Both areas of every contestant, one mark for each."""
    inside = [each for each in facts["contestants"] if min(each["auc"], each["average_precision"]) > 0.5]
    lines = []
    for name, own in by_family(inside).items():
        x, y = [each["auc"] for each in own], [each["average_precision"] for each in own]
        lines.append(line(FAMILIES.index(name), name, x, y, joined=False))
    chosen = lines[0]
    ends = [[end(each[name] for each in inside) for end in (min, max)] for name in ("auc", "average_precision")]
    guides = [Guide([chosen.x[0]] * 2, ends[1]), Guide(ends[0], [cast(float, chosen.y[0])] * 2)]
    left = len(facts["contestants"]) - len(inside)
    notes = [f"{left} below 0.5 not shown."] * bool(left)
    caption = "AUC and average precision of every contestant over the whole stream; up and right is better."
    x_axis, y_axis = Axis("area under the ROC curve"), Axis("average precision")
    return Chart("areas", "fraud stream", None, "Both areas", x_axis, y_axis, lines, notes, caption, guides)


def alerts(facts: Facts) -> Chart:
    """The share of frauds caught against the share of rows flagged, for the chosen setting and the best of the others."""
    lines = []
    for family, (best, *_) in by_family(facts["contestants"]).items():
        name = best["name"] if best["name"].startswith((family, "anytime")) else f"{family.split(',')[0]}: {best['name']}"
        share = [100.0 * each for each in best["alerts"]["share"]]
        lines.append(line(FAMILIES.index(family), name, share, best["alerts"]["recall"]))
    frauds = 100.0 * facts["frauds"] / facts["rounds"]
    guide = Guide([frauds, frauds], [0.95, 0.0], "as many alerts as frauds")
    caption = "The best of each family by average precision: the share of frauds among the rows with the highest scores."
    x, y = Axis("rows flagged, percent of all", "log"), Axis("share of frauds among them", top=1.0, bottom=0.0)
    return Chart("alerts", "fraud stream", facts["rounds"], "Frauds caught", x, y, lines, [], caption, [guide])

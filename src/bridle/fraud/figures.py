"""The two figures of section 4 of the paper, as PNG and SVG: the ROC curve of the lambdas, and CCV against the round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bridle.comparisons import charts
from bridle.comparisons.analysis import PowerLaw, power_law
from bridle.comparisons.charts import Axis
from bridle.comparisons.static_figures import save_figure
from bridle.fraud.facts import ContestantFacts, PaperCurves, PaperFacts, StreamFacts
from bridle.fraud.paper_model import PAPER_AREA
from bridle.showing.figures import INK, SETTINGS, SOFT, require_matplotlib, scale_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 5
"""How many of the lambdas have a curve of their own."""


def write_paper_figures(facts: PaperFacts, curves: PaperCurves, folder: Path) -> list[Path]:
    """Write roc.png, roc.svg, ccv.png and ccv.svg to the folder; the paths, in order."""
    return _write_sheets({"roc": lambda: roc(facts), "ccv": lambda: ccv(facts, curves)}, folder)


def write_stream_figures(facts: StreamFacts, folder: Path) -> list[Path]:
    """Write areas and alerts, each as PNG and SVG, to the folder; the paths, in order."""
    return _write_sheets({"areas": lambda: areas(facts), "alerts": lambda: alerts(facts)}, folder)


def _write_sheets(draw: Mapping[str, Callable[[], Figure]], folder: Path) -> list[Path]:
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(SETTINGS):
        sheets = {name: make() for name, make in draw.items()}
        return [save_figure(sheet, folder / f"{name}.{kind}") for name, sheet in sheets.items() for kind in ("png", "svg")]


def _sheet() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(5.6, 4.4), dpi=160, layout="constrained")
    return sheet, sheet.subplots()


def roc(facts: PaperFacts) -> Figure:
    """One point for each lambda; the curve of each seed through the corners, and what area the paper reports."""
    sheet, panel = _sheet()
    for place, seed in enumerate(facts["areas"]):
        own = sorted((p["fpr"], p["tpr"], p["lambda"]) for p in facts["points"] if p["seed"] == seed["seed"])
        x, y = [0.0, *(p[0] for p in own), 1.0], [0.0, *(p[1] for p in own), 1.0]
        first = place == 0
        panel.plot(x, y, color=charts.LIGHT[0], linewidth=1.6 if first else 0.8, alpha=1.0 if first else 0.45, zorder=3)
        panel.scatter(
            x[1:-1],
            y[1:-1],
            s=20 if first else 7,
            color=charts.LIGHT[0],
            alpha=1.0 if first else 0.45,
            linewidths=0,
            zorder=4,
            clip_on=False,
        )
        if first:
            _name_some(panel, sorted((lam, fpr, tpr) for fpr, tpr, lam in own))
    panel.plot([0.0, 1.0], [0.0, 1.0], color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    panel.annotate("chance, area 0.50", (0.62, 0.585), rotation=38, fontsize=8, color=SOFT)
    areas = [seed["auc"] for seed in facts["areas"]]
    spread = f" ({min(areas):.3f} to {max(areas):.3f} over {len(areas)} seeds)" if len(areas) > 1 else ""
    text = f"area with corners {facts['auc']:.3f}{spread}\npaper: {PAPER_AREA:.2f}\nwithout corners {facts['auc_without_corners']:.3f}"
    panel.text(0.98, 0.06, text, ha="right", va="bottom", transform=panel.transAxes, fontsize=9, color=INK, linespacing=1.5)
    panel.set_title(f"ROC curve, one point for each λ (variant {facts['variant']})", loc="left")
    panel.set_xlabel("false positive rate: mean output on legitimate transactions")
    panel.set_ylabel("true positive rate: mean output on frauds")
    panel.set_xlim(-0.02, 1.02)
    panel.set_ylim(-0.02, 1.02)
    return sheet


def _name_some(panel: Axes, points: list[tuple[float, float, float]]) -> None:
    """The lambdas of the ends and of two points between, where their texts do not lie on each other."""
    named: list[tuple[float, float]] = []
    for i in dict.fromkeys((0, len(points) - 1, len(points) // 3, 2 * len(points) // 3)):
        lam, x, y = points[i]
        if all(abs(x - a) > 0.2 or abs(y - b) > 0.06 for a, b in named):
            named.append((x, y))
            left = x > 0.75
            shift, side = (-8 if left else 9, 3 if y < 0.4 else -14), "right" if left else "left"
            panel.annotate(f"λ = {lam:.2g}", (x, y), xytext=shift, textcoords="offset points", fontsize=8, color=SOFT, ha=side)


def shown(lambdas: list[float]) -> list[float]:
    """The lambdas that have a curve: the ends and some evenly between."""
    return [lambdas[i] for i in sorted({round(i) for i in np.linspace(0, len(lambdas) - 1, SHOWN)})]


def ccv(facts: PaperFacts, curves: PaperCurves) -> Figure:
    """CCV against the round for some of the lambdas, with the power law of the second half, beside growth like sqrt(t)."""
    sheet, panel = _sheet()
    rounds = curves["rounds"]
    own = {lam: median_curve(curves, lam) for lam in shown(facts["lambdas"])}
    laws: dict[float, PowerLaw | None] = {lam: power_law(rounds, curve, since=rounds[-1] / 2.0) for lam, curve in own.items()}
    values = [value for curve in own.values() for value in curve if value > 0.0]
    begin = next((t for t, *at in zip(rounds, *own.values(), strict=True) if min(at) > 0.0), rounds[0])
    scale_axis(panel, "x", Axis("", "log"), [float(begin), float(rounds[-1])])
    scale_axis(panel, "y", Axis("", "log"), values)
    for place, (lam, curve) in enumerate(own.items()):
        law = laws[lam]
        grows = "" if law is None else f":  t^{law.exponent:.2f}"
        colour = charts.LIGHT[charts.style(place).colour]
        panel.plot(
            rounds, [value if value > 0.0 else np.nan for value in curve], color=colour, linewidth=1.7, label=f"λ = {lam:.2g}{grows}"
        )
        if law is not None:
            ends = np.array([law.first, law.last])
            panel.plot(ends, [law.at(t) for t in ends], color=INK, linewidth=1.8, linestyle="dotted", zorder=5)
    top = max(curve[-1] for curve in own.values())
    since = np.array([rounds[-1] / 30.0, float(rounds[-1])])
    root = 1.9 * top * (since / since[-1]) ** 0.5
    panel.plot(since, root, color=SOFT, linewidth=1.0, linestyle=(0, (4, 3)))
    panel.annotate("√t", (since[0], root[0]), xytext=(-4, 0), textcoords="offset points", ha="right", va="center", fontsize=9, color=SOFT)
    panel.plot([], [], color=INK, linewidth=1.8, linestyle="dotted", label="power law of the second half")
    panel.set_ylim(top=4.0 * top)
    panel.set_title(f"CCV against the round (variant {facts['variant']})", loc="left")
    panel.set_xlabel("round t (transactions seen)")
    panel.set_ylabel("CCV: log-loss on frauds so far, added up")
    panel.legend(loc="upper left", frameon=False, fontsize=8)
    return sheet


def median_curve(curves: PaperCurves, lam: float) -> list[float]:
    """The median over seeds of the CCV of one lambda, at each round."""
    return [float(value) for value in np.median([curve["ccv"] for curve in curves["each"] if curve["lambda"] == lam], axis=0)]


def _family(name: str) -> tuple[str, int, str]:
    """Which family a contestant belongs to, its colour and its mark."""
    if "chosen" in name:
        return "bridle, chosen setting", 0, "*"
    if name.startswith("river"):
        return "river", 1, "s"
    if name.startswith("scikit-learn"):
        return "scikit-learn", 2, "D"
    return ("bridle, network", 3, "^") if name.startswith("network") else ("bridle, other settings", 4, "o")


def areas(facts: StreamFacts) -> Figure:
    """Both areas of every contestant, one mark for each."""
    sheet, panel = _sheet()
    shown: set[str] = set()
    everyone = sorted(facts["contestants"], key=lambda line: "chosen" in line["name"])
    floor = min(line["auc"] for line in everyone if line["average_precision"] > 0.5)
    inside = [line for line in everyone if line["auc"] >= floor and line["average_precision"] > 0.5]
    for line in inside:
        family, colour, mark = _family(line["name"])
        label = None if family in shown else family
        shown.add(family)
        size = 150 if mark == "*" else 30
        panel.scatter(
            line["auc"], line["average_precision"], s=size, marker=mark, color=charts.LIGHT[colour], label=label, zorder=4, linewidths=0
        )
    own = inside[-1]
    panel.axvline(own["auc"], color=SOFT, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
    panel.axhline(own["average_precision"], color=SOFT, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
    left = len(everyone) - len(inside)
    panel.set_title("Both areas over the whole stream" + (f" ({left} below 0.5 not shown)" if left else ""), loc="left")
    panel.set_xlabel("area under the ROC curve")
    panel.set_ylabel("average precision")
    panel.legend(loc="best", frameon=False, fontsize=8)
    return sheet


def alerts(facts: StreamFacts) -> Figure:
    """The share of frauds caught against the share of rows flagged, for the chosen setting and the best of the others."""
    sheet, panel = _sheet()
    best: dict[str, ContestantFacts] = {}
    for line in facts["contestants"]:
        family = _family(line["name"])[0]
        if family not in best or line["average_precision"] > best[family]["average_precision"]:
            best[family] = line
    for family, line in sorted(best.items(), key=lambda item: -item[1]["average_precision"]):
        _, colour, mark = _family(line["name"])
        share, recall = line["alerts"]["share"], line["alerts"]["recall"]
        width = 2.2 if mark == "*" else 1.3
        label = line["name"] if line["name"].startswith((family, "anytime")) else f"{family.split(',')[0]}: {line['name']}"
        panel.plot([100.0 * each for each in share], recall, color=charts.LIGHT[colour], linewidth=width, label=label)
    scale_axis(panel, "x", Axis("", "log"), [0.01, 10.0])
    panel.axvline(100.0 * facts["frauds"] / facts["rounds"], color=SOFT, linewidth=0.8, linestyle=(0, (4, 3)))
    at = (100.0 * facts["frauds"] / facts["rounds"], 0.95)
    panel.annotate("as many alerts as frauds", at, xytext=(-4, 0), textcoords="offset points", ha="right", fontsize=8, color=SOFT)
    panel.set_title("Frauds caught, the best of each family by average precision", loc="left")
    panel.set_xlabel("rows flagged, percent of all")
    panel.set_ylabel("share of frauds among them")
    panel.set_ylim(0.0, 1.0)
    panel.legend(loc="lower right", frameon=False, fontsize=8)
    return sheet

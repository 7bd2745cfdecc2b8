"""The pictures of README.md that are no benchmark's: what a round is, a decision that meets a late constraint, and recall on a stream.

    python tools/pictures.py                 draw all of them into docs/pictures
    python tools/pictures.py late recall     some of them

`recall` reads the card transactions, which `bridle data fetch creditcard` brings.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import bridle
from bridle.comparisons.plots import save_figure
from bridle.showing.figures import SETTINGS, require_matplotlib

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BLUE, RED, GREEN, GREY, INK = "#2166ac", "#b2182b", "#1b7837", "#8a8f98", "#1b1e24"
ROUNDS = 10


def stream(seed: int = 4) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Rounds on the disc: a cost <c, x> that pulls to the right, a halfspace <a, x> <= b that keeps the left."""
    rng = np.random.default_rng(seed)
    found = []
    for t in range(ROUNDS):
        angle = 0.5 * np.sin(1.9 * t) + 0.25 * rng.standard_normal()
        found.append((np.array([-0.8, -0.35]), np.array([np.cos(angle), np.sin(angle)]), 0.2 + 0.1 * rng.random()))
    return found


def late(path: Path) -> None:
    """Two frames a round: the decision, then what is revealed; the regret and the CCV so far beside it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    session = bridle.Session(bridle.policy("anytime", bridle.Ball(dim=2, radius=1.0)))
    revealed, decisions, frames = [], [], []
    for c, a, b in stream():
        x = session.decide()
        decisions.append(x)
        frames.append((list(decisions), list(revealed), None))
        session.observe(f=float(c @ x), df=c, g=float(a @ x) - b, dg=a)
        revealed.append((c, a, b))
        frames.append((list(decisions), list(revealed), max(float(a @ x) - b, 0.0)))
    images = []
    with require_matplotlib().rc_context(SETTINGS):
        for decided, known, violation in frames:
            picture = BytesIO()
            canvas: Any = FigureCanvasAgg
            canvas(_frame(decided, known, violation)).print_png(picture, metadata={"Software": None})
            images.append(Image.open(picture).convert("RGB").quantize(96, dither=Image.Dither.NONE))
    lasting = [900, 1400] * len(decisions)
    lasting[-1] = 4000
    images[0].save(path, save_all=True, append_images=images[1:], duration=lasting, loop=0, optimize=True)


def _frame(decided: list[np.ndarray], known: list[tuple[np.ndarray, np.ndarray, float]], violation: float | None) -> Any:
    """The disc on the left, both sums on the right; `violation` is None before the round is revealed."""
    from matplotlib.figure import Figure

    t, shown = len(decided), violation is not None
    figure = Figure(figsize=(7.2, 3.5), dpi=100, layout="constrained")
    disc, sums = figure.subplots(1, 2, width_ratios=(1, 1.15))
    u, v = np.meshgrid(np.linspace(-1.1, 1.1, 331), np.linspace(-1.1, 1.1, 331))
    points = np.stack([u, v], axis=-1)
    inside = np.hypot(u, v) <= 1.0
    allowed = inside & np.all([points @ a <= b for _, a, b in known] or [inside], axis=0)
    disc.contourf(u, v, allowed.astype(float), levels=[0.5, 1.5], colors=["#d9ead3"])
    disc.contour(u, v, np.hypot(u, v), levels=[1.0], colors=GREY, linewidths=1.2)
    if shown:
        _, a, b = known[-1]
        along, side = np.array([-a[1], a[0]]), np.sqrt(1.0 - b * b)
        ends = np.array([b * a - side * along, b * a + side * along])
        disc.plot(ends[:, 0], ends[:, 1], color=RED, linewidth=2.0)
        disc.annotate("", xytext=b * a, xy=(b + 0.17) * a, arrowprops={"arrowstyle": "-|>", "color": RED})
    trail = np.array(decided)
    disc.plot(trail[:, 0], trail[:, 1], color=BLUE, linewidth=0.8, alpha=0.5)
    disc.plot(*decided[-1], "o", color=RED if shown and violation > 1e-9 else BLUE, markersize=9, zorder=5)
    if not shown:
        said = f"Round {t}: you act first"
    elif violation > 1e-9:
        said = f"Round {t}: the limit is revealed, broken by {violation:.2f}"
    else:
        said = f"Round {t}: the limit is revealed, and was met"
    disc.set_title(said, loc="left", fontsize=9.5)
    disc.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal", xticks=[], yticks=[])
    disc.grid(visible=False)
    for edge in disc.spines.values():
        edge.set_visible(False)
    disc.annotate(
        "cheaper",
        xytext=(-0.62, -0.5),
        xy=(-0.3, -0.36),
        arrowprops={"arrowstyle": "-|>", "color": GREY},
        fontsize=7.5,
        color=GREY,
        ha="center",
        va="top",
    )
    disc.text(0.0, -1.22, "green: what all limits so far allow; red: this round's limit", ha="center", fontsize=7.5, color=GREY)
    regret, violations = sums_so_far(decided[: len(known)], known)
    rounds = np.arange(1, len(known) + 1)
    sums.axhline(0.0, color=GREY, linewidth=0.8)
    sums.plot(rounds, violations, color=RED, marker="o", markersize=3.5, label="violation, summed (CCV)")
    sums.plot(rounds, regret, color=BLUE, marker="s", markersize=3.5, label="regret against the best fixed action")
    sums.set(xlim=(0.5, ROUNDS + 0.5), ylim=(-1.1, 1.3), xlabel="round", title="Both must stay small")
    sums.legend(loc="lower left", frameon=False, fontsize=8.0)
    return figure


def sums_so_far(decided: list[np.ndarray], known: list[tuple[np.ndarray, np.ndarray, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Regret and CCV after each round, the regret against the best fixed action that meets every limit of the whole stream."""
    from scipy.optimize import minimize

    whole = stream()
    total = np.sum([c for c, _, _ in whole], axis=0)
    limits = [{"type": "ineq", "fun": lambda z, a=a, b=b: b - a @ z} for _, a, b in whole]
    best = minimize(lambda z: total @ z, np.zeros(2), constraints=[*limits, {"type": "ineq", "fun": lambda z: 1.0 - z @ z}]).x
    costs = [float(c @ (x - best)) for x, (c, _, _) in zip(decided, known, strict=True)]
    broken = [max(float(a @ x) - b, 0.0) for x, (_, a, b) in zip(decided, known, strict=True)]
    return np.cumsum(costs), np.cumsum(broken)


def recall(path: Path) -> None:
    """Card fraud with `Recall(at_least=0.9)`: found frauds and false alarms so far, as the stream goes on."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter
    from river import linear_model, optim, preprocessing

    from bridle import data
    from bridle.adapters.river import ConstrainedClassifier, Recall

    table = data.load("creditcard")
    held = ConstrainedClassifier(constraints=[Recall(at_least=0.9)], engine="compiled")
    weighted = preprocessing.StandardScaler() | linear_model.LogisticRegression(loss=optim.losses.Log(weight_pos=100.0))
    labels, alarms = [], {"bridle, Recall(at_least=0.9)": [], "river, a fraud counts 100": []}
    for row in table.values.tolist():
        x, y = dict(zip(table.columns[1:-1], row[1:-1], strict=True)), row[-1] == 1.0
        labels.append(y)
        for model, said in zip((held, weighted), alarms.values(), strict=True):
            said.append(bool(model.predict_one(x)))
            model.learn_one(x, y)
    y = np.array(labels)
    n = np.arange(1, len(y) + 1)
    with require_matplotlib().rc_context(SETTINGS):
        figure = Figure(figsize=(7.2, 2.8), dpi=200, layout="constrained")
        left, right = figure.subplots(1, 2)
        for (name, said), colour in zip(alarms.items(), (BLUE, "#e08214"), strict=True):
            alarm = np.array(said)
            late_on = n > 20_000  # before that there are too few frauds for a share
            left.plot(n[late_on], (np.cumsum(alarm & y) / np.maximum(np.cumsum(y), 1))[late_on], color=colour, label=name)
            right.plot(n[late_on], (np.cumsum(alarm & ~y) / np.cumsum(~y))[late_on], color=colour, label=name)
        left.axhline(0.9, color=GREY, linestyle="dashed", linewidth=1.0, label="asked")
        left.set(title="Frauds found so far", ylim=(0.7, 1.0), xlabel="transactions")
        right.set(title="False alarms so far: the price", ylim=(0.0, None), xlabel="transactions")
        for axes in (left, right):
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        left.legend(loc="lower right", frameon=False, fontsize=8.0)
        save_figure(figure, path)


DRAWN = {"late": (late, "late-constraint.gif"), "recall": (recall, "recall.png")}


def main(names: list[str]) -> None:
    """Draw these pictures, or all."""
    PICTURES.mkdir(exist_ok=True)
    for name in names or DRAWN:
        draw, file = DRAWN[name]
        draw(PICTURES / file)
        print(PICTURES / file)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The picture of every policy and problem: games of a thousand rounds, played when the site is built.

What a game gave is kept in docs/_pictures under a key of the sources, so that pictures are drawn again only where something has changed.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import bridle
from bridle import policies
from bridle.core import InputError
from bridle.data import Unreachable
from bridle.game.summary import summary
from bridle.policies.common import constants_from
from bridle.problems import takes
from bridle.solvers.block_stream import NoComparator
from bridle.solvers.hindsight import values_at
from bridle_site import special_games

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "docs" / "_pictures"
ROUNDS = 1000
ACCENT, SOFT = "#3f45b5", "#5c6370"
COMPARED = {"anytime": ("#0b62a4", "-"), "sinha2024": ("#b34700", "--"), "adagrad": ("#5c6370", ":")}
"""Who plays every problem: bridle's own policy, the paper's, and one that ignores constraints."""

STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "bridle", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Arial"],
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": SOFT, "axes.labelcolor": "#1b1e24",
    "xtick.color": SOFT, "ytick.color": SOFT, "axes.titlesize": 9.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.grid": True, "grid.color": "#ecece8", "lines.linewidth": 1.8, "legend.frameon": False,
}  # fmt: skip
VIOLATIONS = {"ccv": "CCV", "soft": "soft violation", "interval": "interval violation"}


@dataclass(frozen=True)
class Picture:
    """A picture's file, its words for those who do not see it, what is written below it; of a problem also its constants and an example."""

    path: Path | None
    alt: str
    caption: str
    constants: dict[str, Any]
    example: list[str]


@cache
def sources_key() -> str:
    """A key of everything that a picture depends on."""
    digest = hashlib.sha256()
    for path in sorted([*(ROOT / "src" / "bridle").rglob("*.py"), Path(__file__), Path(special_games.__file__)]):
        if path.relative_to(ROOT).parts[2:3] not in (("service",), ("cli",), ("database",), ("compare",), ("adapters",), ("limits",)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def kept(name: str, make: Callable[[Path], Picture]) -> Picture:
    """The picture of this name, from before where nothing has changed."""
    facts = KEPT / f"{name}.{sources_key()}.json"
    path = KEPT / f"{name}.svg"
    if facts.exists() and (path.exists() or json.loads(facts.read_text())["path"] is None):
        told = json.loads(facts.read_text())
        return Picture(**{**told, "path": told["path"] and KEPT / told["path"]})
    KEPT.mkdir(parents=True, exist_ok=True)
    for old in KEPT.glob(f"{name}.*.json"):
        old.unlink()
    with warnings.catch_warnings(), np.errstate(all="ignore"), mpl.rc_context(STYLE):
        warnings.simplefilter("ignore")
        made = make(path)
    facts.write_text(json.dumps({**asdict(made), "path": made.path and made.path.name}, default=float))
    return made


def of_policy(name: str) -> Picture:
    """The regret and the violation of a policy in one game, beside its bounds."""
    special = special_games.POLICIES.get(name)
    return kept(f"policy-{name}", lambda path: special(path) if special else _policy_game(name, path))


def of_problem(name: str) -> Picture:
    """Three policies on a problem, and, in two dimensions, what is forbidden there."""
    return kept(f"problem-{name}", lambda path: _problem_game(name, path))


def problem_for(name: str) -> bridle.Problem:
    """A problem that the theorem of the policy speaks of."""
    item = policies.entry(name)
    settings: dict[str, object] = {"dim": 3}
    if item.strongly_convex:
        settings["modulus"] = 1.0
    if "simplex" in item.domains:
        settings["domain"] = "simplex"
    if name == "steiner":  # the bound is for the exact point
        settings["dim"] = 2
    return bridle.problem("halfspaces" if item.time_varying else "fixed", horizon=ROUNDS, seed=0, **settings)


def curves(trace: bridle.Trace) -> dict[str, Any]:
    """Regret and the policy's own kind of violation after log-spaced rounds, with their bounds where they have any."""
    try:
        rounds, regret = bridle.regret_curve(trace)
    except NoComparator:
        rounds, regret = np.asarray(trace.curve.rounds), None
    metric = policies.entry(trace.policy.name).metric
    sums = {"ccv": trace.curve.hard, "soft": np.maximum(trace.curve.soft, 0.0), "interval": trace.curve.interval}[metric]
    constants = {**trace.problem.constants, **constants_from(trace.state)}
    facts = summary(trace)
    told = None if facts["regret"] is None or facts["regret"] < 1e-6 else regret
    sure = [None] * len(rounds) if told is None else [value if value >= 1e-6 else None for value in told.tolist()]
    bounds = trace.policy.bound_curve(constants, rounds.astype(int).tolist(), sure)
    return {
        "rounds": rounds, "regret": regret, "metric": metric, "violation": np.max(sums, axis=-1),
        "regret_bound": [bound.regret for bound in bounds], "violation_bound": [getattr(bound, metric) for bound in bounds],
        "why": bounds[-1].why,
    }  # fmt: skip


def _policy_game(name: str, path: Path) -> Picture:
    problem = problem_for(name)
    trace = bridle.play(bridle.policy_for(name, problem), problem)
    found = curves(trace)
    figure, (left, right) = two_panels()
    ignores = name in special_games.UNCONSTRAINED
    draw(left, found["rounds"], found["regret"], found["regret_bound"], "Regret, in units of cost")
    draw(right, found["rounds"], found["violation"], found["violation_bound"], f"{VIOLATIONS[found['metric']]}, in units of the constraint")
    save(figure, path)
    measured = f"regret {number(found['regret'])} and {VIOLATIONS[found['metric']]} {number(found['violation'])}"
    bounds = [
        text
        for text, values in ((f"regret at most {number(found['regret_bound'])}", found["regret_bound"]),
                             (f"{VIOLATIONS[found['metric']]} at most {number(found['violation_bound'])}", found["violation_bound"]))
        if values[-1] is not None
    ]  # fmt: skip
    theorem = f"Dashed: the bound that is proved, {' and '.join(bounds)}." if bounds else f"No bound is drawn: {found['why']}."
    below = " Regret below zero is no win: it is bought with violation." if float(found["regret"][-1]) < 0.0 else ""
    looks = " The policy never looks at a constraint." if ignores else ""
    where = f":doc:`{problem.name} </reference/problems/{problem.name}>`"
    caption = f"{ROUNDS:,} rounds of {where} in {problem.domain.dim} dimensions: {measured}. {theorem}{below}{looks}"
    alt = f"Two charts over {ROUNDS} rounds of the problem {problem.name}. After the last one: {measured}."
    return Picture(path, alt, caption, {}, [])


def _problem_game(name: str, path: Path) -> Picture:
    settings = special_games.problem_settings(name)
    try:
        problem = bridle.problem(name, horizon=special_games.HORIZONS.get(name, ROUNDS), seed=0, **settings)
    except Unreachable:
        needs = f"The games of problem {name} need a data set that was not here when the site was built: `bridle data list` shows it."
        return Picture(None, "", needs, {}, [f'>>> problem = bridle.problem("{name}", horizon={ROUNDS})'])
    flat = _in_the_plane(name)
    figure, axes = three_panels() if flat else two_panels()
    if flat:
        draw_plane(axes[0], flat)
    ends: list[str] = []
    example: list[str] = []
    for rival, (color, dash) in COMPARED.items():
        try:
            trace = bridle.play(bridle.policy_for(rival, problem), problem)
        except InputError:
            continue
        found = curves(trace)
        hard = np.max(trace.curve.hard, axis=-1)
        if found["regret"] is not None:
            axes[-2].plot(found["rounds"], found["regret"], color=color, linestyle=dash, label=rival)
        axes[-1].plot(found["rounds"], hard, color=color, linestyle=dash, label=rival)
        ends.append(f"{rival}: regret {number(found['regret'])}, CCV {number(hard)}")
        example = example or special_games.example(name, settings, problem, trace)
    regret_panel, violation_panel = axes[-2], axes[-1]
    if not regret_panel.lines:
        regret_panel.text(
            0.5, 0.5, "no action keeps every constraint:\nregret is not defined", transform=regret_panel.transAxes, ha="center", color=SOFT
        )
    finish(regret_panel, "Regret, in units of cost")
    finish(violation_panel, "CCV, in units of the constraint")
    violation_panel.legend(loc="upper left", fontsize=8)
    save(figure, path)
    told = ", ".join(f"``{key}={value!r}``" for key, value in special_games.shown(settings).items())
    plane = " Left: in two dimensions; the darker, the more rounds forbid a point; dots are the decisions of anytime, from light to dark."
    played = f"{problem.horizon:,} rounds with {told}" if told else f"{problem.horizon:,} rounds"
    caption = f"{played}. {'; '.join(ends)}. adagrad ignores constraints.{plane if flat else ''}"
    constants = {key: value for key, value in problem.constants.items() if np.ndim(value) == 0}
    return Picture(path, f"Charts of regret and CCV over {problem.horizon} rounds. {'; '.join(ends)}.", caption, constants, example)


def _in_the_plane(name: str) -> dict[str, Any] | None:
    """What a problem forbids in two dimensions, and what anytime decides there; None where it cannot be had in two."""
    if not takes(name, "dim") or name in ("lower-bound",):
        return None
    settings = {key: value for key, value in special_games.problem_settings(name).items() if key != "dim"}
    try:
        problem = bridle.problem(name, horizon=200, seed=0, dim=2, **settings)
    except InputError:
        return None
    if type(problem.domain).__name__ != "BallSet":
        return None
    trace = bridle.play(bridle.policy_for("anytime", problem), problem, keep="decisions")
    centre, radius = np.asarray(problem.domain.center()), problem.domain.diameter() / 2.0
    side = np.linspace(-radius, radius, 31)
    x, y = np.meshgrid(centre[0] + side, centre[1] + side)
    share, rounds = np.zeros(x.shape), list(trace.blocks())
    for i, j in np.ndindex(x.shape):
        _, values = values_at(lambda: rounds, [x[i, j], y[i, j]])
        share[i, j] = np.mean(np.max(values, axis=-1) > 1e-9)
    return {"x": x, "y": y, "share": share, "decisions": np.asarray(trace.decisions), "centre": centre, "radius": radius}


def draw_plane(axes: Axes, found: dict[str, Any]) -> None:
    """What is forbidden, and where the decisions went."""
    shaded = axes.contourf(found["x"], found["y"], found["share"], levels=np.linspace(0.0, 1.0, 6), cmap="Oranges", vmin=0.0, vmax=1.6)
    shaded.set_clip_path(axes.add_patch(mpl.patches.Circle(found["centre"], found["radius"], fill=False, color=SOFT, linewidth=1.0)))
    path = found["decisions"][:: max(1, len(found["decisions"]) // 40)]
    axes.scatter(*path.T, c=np.linspace(0.25, 1.0, len(path)), cmap="Blues", vmin=0.0, vmax=1.0, s=9, zorder=3, edgecolors="none")
    axes.set(aspect="equal", xticks=[], yticks=[], title="In two dimensions")
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def two_panels() -> tuple[Figure, Sequence[Axes]]:
    """A figure with regret on the left and violation on the right."""
    figure = Figure(figsize=(7.6, 2.7))
    return figure, figure.subplots(1, 2, gridspec_kw={"left": 0.07, "right": 0.975, "bottom": 0.18, "top": 0.89, "wspace": 0.22})


def three_panels() -> tuple[Figure, Sequence[Axes]]:
    """A figure that has the plane on the left as well."""
    figure = Figure(figsize=(8.8, 2.7))
    room = {"left": 0.01, "right": 0.975, "bottom": 0.18, "top": 0.89, "wspace": 0.25, "width_ratios": (0.8, 1.0, 1.0)}
    return figure, figure.subplots(1, 3, gridspec_kw=room)


def draw(axes: Axes, rounds: Any, values: Any, bounds: Sequence[float | None], title: str) -> None:
    """One measured curve and its bound."""
    axes.plot(rounds, values, color=ACCENT, label="measured")
    pairs = [(t, bound) for t, bound in zip(rounds, bounds, strict=True) if bound is not None and np.isfinite(bound)]
    if pairs:
        axes.plot(*zip(*pairs, strict=True), color=SOFT, linestyle="--", linewidth=1.3, label="bound")
        axes.legend(fontsize=8, loc="best")
    finish(axes, title)


def finish(axes: Axes, title: str) -> None:
    """Axes that both charts of a picture have."""
    axes.set(title=title, xlabel="round")
    axes.axhline(0.0, color=SOFT, linewidth=0.7)
    axes.margins(x=0.02)


def save(figure: Figure, path: Path) -> None:
    """Write the picture, the same bytes for the same numbers."""
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def number(values: Any) -> str:
    """The last of some values as it is read."""
    if values is None or values[-1] is None:
        return "not defined"
    value = float(values[-1]) if abs(float(values[-1])) > 1e-9 else 0.0  # rounding
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"

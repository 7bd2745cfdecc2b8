"""Games of the policies and problems for which the usual one does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import bridle
from bridle import policies
from bridle.problems import problem_facts

UNCONSTRAINED = tuple(
    name for name in policies.names() if policies.entry(name).factory.__module__ == policies.entry("ogd").factory.__module__
)
HORIZONS = {"lower-bound": 200, "portfolio": 200, "fair-classifier": 200}
"""The first has as many coordinates as rounds; of the others the best action in hindsight takes long to find."""


def problem_settings(name: str) -> dict[str, Any]:
    """With what a problem is played for its picture."""
    parameters = {p.name: p for p in problem_facts(name).parameters}
    settings: dict[str, Any] = {}
    if "dim" in parameters and isinstance(parameters["dim"].default, int) and "domain" in parameters:
        settings["dim"] = 3
    if name == "auctions":
        settings["data"] = str(recorded_auctions())
    return settings


def shown(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as the reader would write them."""
    return {key: Path(value).name if key == "data" else value for key, value in settings.items()}


def example(name: str, settings: dict[str, Any], problem: bridle.Problem, trace: bridle.Trace) -> list[str]:
    """The game of `anytime` as lines that the reader can type, with what they give."""
    told = "".join(f", {key}={value!r}" for key, value in shown(settings).items())
    lines = [
        ">>> import bridle",
        f'>>> problem = bridle.problem("{name}", horizon={problem.horizon}{told})',
        f'>>> trace = bridle.play(bridle.policy_for("{trace.policy.name}", problem), problem)',
    ]
    try:
        lines += [">>> round(float(bridle.regret(trace)), 1), round(float(bridle.ccv(trace)), 1)"]
        lines += [str((round(float(bridle.regret(trace)), 1), round(float(bridle.ccv(trace)), 1)))]
    except bridle.NoComparator:
        lines[-1] = ">>> round(float(bridle.ccv(trace)), 1)"
        lines += [str(round(float(bridle.ccv(trace)), 1))]
    return lines


def recorded_auctions() -> Path:
    """A file of simulated auctions, as `auctions` reads them."""
    from bridle_site.pictures import KEPT

    path = KEPT / "auctions.csv"
    rng = np.random.default_rng(0)
    value, price = rng.lognormal(0.0, 0.5, 1000), rng.lognormal(-0.3, 0.6, 1000)
    KEPT.mkdir(parents=True, exist_ok=True)
    rows = "\n".join(f"{v:.6f},{p:.6f}" for v, p in zip(value, price, strict=True))
    path.write_text(f"value,price\n{rows}\n")
    return path


def rate_game(path: Path) -> Any:
    """Policy `rate`: the share of rounds that violate, beside the share that was asked for."""
    from bridle_site import pictures

    asked, rounds = 0.05, 2000
    session = bridle.Session(bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=asked, safe=[40.0]))
    demand = 10.0 + np.random.default_rng(0).standard_normal(rounds)
    decided = np.zeros(rounds)
    for t, wanted in enumerate(demand):
        decided[t] = session.decide()[0]
        session.observe(f=float(decided[t]), df=[1.0], g=float(wanted - decided[t]), dg=[-1.0])
    share = np.cumsum(demand > decided) / np.arange(1, rounds + 1)
    figure, (left, right) = pictures.two_panels()
    seen = np.arange(0, rounds, 16)
    left.plot(seen, demand[seen], color=pictures.SOFT, linestyle="none", marker=".", markersize=2, label="demand")
    left.plot(seen, decided[seen], color=pictures.ACCENT, label="decision")
    left.legend(fontsize=8, loc="lower right")
    pictures.finish(left, "Decision and demand")
    right.plot(np.arange(20, rounds, 10), share[20::10], color=pictures.ACCENT, label="measured")
    right.axhline(asked, color=pictures.SOFT, linestyle="--", label="asked for")
    right.legend(fontsize=8, loc="upper right")
    pictures.finish(right, "Share of rounds short of demand")
    pictures.save(figure, path)
    said = f"after {rounds:,} rounds {share[-1]:.3f} of them were short, where at most {asked} was asked for"
    caption = f"Capacity for a random demand: {said}. The limit is on how often, so no regret and no CCV is bounded."
    return pictures.Picture(path, f"Decisions over a random demand, and the share of rounds short of it: {said}.", caption, {}, [])


def banditq_game(path: Path) -> Any:
    """Policy `banditq`: what each arm earned, beside the rate that it was promised."""
    from bridle.core import Feedback
    from bridle_site import pictures

    rounds, rewards, rates = 2000, np.array([1.0, 0.8, 0.6]), np.array([0.1, 0.3, 0.2])
    record = bridle.policy("banditq", bridle.Simplex(3), horizon=rounds).record
    state, earned = record.init(np.full(3, 1.0 / 3.0)), np.zeros((rounds, 3))
    for t in range(rounds):
        x = record.decide(state)
        earned[t] = rewards * x
        state = record.update(state, Feedback(x, -rewards @ x, -rewards, rates - rewards * x, -np.diag(rewards)))
    means = np.cumsum(earned, axis=0) / np.arange(1, rounds + 1)[:, None]
    figure, (left, right) = pictures.two_panels()
    for i, (color, dash) in enumerate(pictures.COMPARED.values()):
        left.plot(np.arange(0, rounds, 10), means[::10, i], color=color, linestyle=dash, label=f"arm {i + 1}")
        left.axhline(rates[i], color=color, linewidth=0.8, linestyle=(0, (1, 3)))
    left.legend(fontsize=8, ncols=3, loc="upper right")
    pictures.finish(left, "Reward a round (dotted: promised)")
    right.plot(np.cumsum(np.maximum(rates - earned, 0.0).max(axis=1)), color=pictures.ACCENT)
    pictures.finish(right, "CCV, in units of reward")
    pictures.save(figure, path)
    said = ", ".join(f"arm {i + 1} earned {means[-1, i]:.2f} a round of the {rates[i]:g} that it was promised" for i in range(3))
    return pictures.Picture(
        path, f"What three arms earn: {said}.", f"Three arms with rewards 1, 0.8 and 0.6: {said}. The first is the most rewarding.", {}, []
    )


POLICIES = {"rate": rate_game, "banditq": banditq_game}

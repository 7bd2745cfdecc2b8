"""The applications that are new to policies: what each earns and how far its limits are broken, for docs/problems.md.

Policies have their own settings, and are told what `policy_for` tells them. `leader` is what people do who know no regret: every 50 rounds
they solve for the best fixed action of all rounds so far, with all limits so far, and keep to it. All of it is against the best fixed
action of the whole stream, which keeps every limit and which nobody knows in advance.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle import records
from parts.toy import size, target

ROUNDS, SEEDS, EVERY = size(2000, 60), size((1, 2, 3, 4, 5), (1,)), size(50, 30)
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "`revenue`": ("revenue", {}),
    "`revenue` on bikes": ("revenue", {"data": "bikes"}),
    "`recommendation`, 3 groups": ("recommendation", {"groups": 3, "least": 0.5, "most": 1.7}),
    "`navigation`": ("navigation", {}),
    "`bundle-auctions`": ("bundle-auctions", {}),
}
POLICIES = ("anytime", "vaze2025", "sinha2024", "soft", "ogd")
BEGIN, END = "<!-- measured by benchmarks/applications.py -->", "<!-- end -->"


class Outcome(NamedTuple):
    """What a game cost, and its violation in all."""

    cost: float
    violation: float


def by_policy(policy: str, problem: bridle.Problem) -> tuple[Outcome, bridle.Trace]:
    """The game of a policy, and its trace."""
    trace = bridle.play(bridle.policy_for(policy, problem), problem, keep="rounds")
    return Outcome(float(np.sum(trace.costs)), float(bridle.ccv(trace))), trace


def by_leader(problem: bridle.Problem) -> Outcome:
    """The best fixed action of what has been seen, found anew every so many rounds; the centre before there is anything."""
    cost, violation, x = 0.0, 0.0, problem.domain.center()
    for start in range(0, ROUNDS, EVERY):
        if start:
            seen = bridle.play(bridle.policy_for("ogd", problem), problem, horizon=start)
            x = bridle.best_action(seen).x
        for t in range(start, min(start + EVERY, ROUNDS)):
            one = records.take(problem.adversary.replay(t, t + 1), 0.0)
            cost += float(one.cost.value(x))
            violation += max(0.0, float(np.max(one.constraints[0].value(x))))
    return Outcome(cost, violation)


def measured(kind: str) -> dict[str, Any]:
    """What everybody makes of one problem, medians over the seeds: cost in parts of the best action's, and CCV."""
    name, given = KINDS[kind]
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in SEEDS:
        problem = bridle.problem(name, horizon=ROUNDS, seed=seed, **given)
        best = None
        for policy in POLICIES:
            outcome, trace = by_policy(policy, problem)
            best = best or float(bridle.best_action(trace).cost)
            found.setdefault(f"`{policy}`", []).append((outcome.cost / best, outcome.violation))
        outcome = by_leader(problem)
        found.setdefault("leader", []).append((outcome.cost / best, outcome.violation))
    return {"kind": kind, "found": {who: np.median(each, axis=0).tolist() for who, each in found.items()}}


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of the page."""
    names = list(rows[0]["found"])
    lines = ["| problem | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for row in rows:
        cells = [
            f"{100.0 * cost:.1f} / {violation:,.0f}" if violation >= 100.0 else f"{100.0 * cost:.1f} / {violation:.3g}"
            for cost, violation in row["found"].values()
        ]
        lines.append(f"| {row['kind']} | " + " | ".join(cells) + " |")
    return "\n".join([BEGIN, *lines, END])


def main() -> None:
    """Measure, and write figures and table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        rows = [measured(kind) for kind in KINDS]
    target(Path(__file__).with_name("applications.json")).write_text(json.dumps(rows, indent=1) + "\n")
    page = target(Path(__file__).parents[1] / "docs" / "problems.md")
    text = page.read_text()
    page.write_text(text[: text.index(BEGIN)] + markdown(rows) + text[text.index(END) + len(END) :])
    print(markdown(rows))


if __name__ == "__main__":
    main()

"""What a problem shows of itself in a notebook: its domain, its constants, and its first rounds at one action."""

from __future__ import annotations

import numpy as np

from bridle import records
from bridle.core import Round
from bridle.engines.round import answer
from bridle.problems.base import Problem
from bridle.problems.dealing import deal_blocks, first_round
from bridle.showing import cards, short
from bridle.showing.marks import Axis, Chart, line

FIRST = 100
"""So many rounds are drawn."""

CONSTANTS = {
    "lipschitz": "longest gradient", "bound": "largest |g|", "modulus": "strong convexity", "slater": "slack of a Slater point",
    "constraints": "constraints a round", "rounds": "rounds there are",
}  # fmt: skip


def problem_card(problem: Problem) -> str:
    """The problem on a card of a notebook."""
    known = {told: short(value) for name, told in CONSTANTS.items() if (value := problem.constants.get(name)) is not None}
    oblivious = getattr(problem.adversary, "oblivious", None)
    stream = (
        "the same whatever is decided" if oblivious else "the adversary adapts to the decisions" if oblivious is not None else "not known"
    )
    facts = {"call": repr(problem), "domain": f"{problem.domain!r}, {problem.domain.dim} coordinates", "stream": stream, **known}
    charts = _first_rounds(problem) if oblivious else []
    shown = "rounds at the action that costs least in the first; a constraint above 0 is violated."
    told = [f"The first {charts[0].horizon} {shown}"] if charts else []
    return cards.card(f"Problem {problem.name or '(without a name)'}", facts, charts, told)


def _first_rounds(problem: Problem) -> list[Chart]:
    """Cost and worst constraint of the first rounds, at the action that costs least in the first."""
    many = min(FIRST, problem.horizon or FIRST, int(problem.constants.get("rounds", FIRST)))
    try:
        first = first_round(problem.adversary, problem.seed, problem.domain.center()).round
        x = problem.domain.linear_argmin(np.asarray(first.cost.grad(problem.domain.center()), dtype=float))
        dealt = next(iter(deal_blocks(problem.adversary, problem.seed, many, problem.domain.dim)))
        state, seen = problem.adversary.init(), []
        for draw in records.unstack(dealt, many):
            if isinstance(draw, Round):
                chosen = draw
            else:
                state, chosen = answer(problem.adversary, state, x, draw)
            revealed = chosen.reveal(x)
            seen.append((float(revealed.f), float(np.max(revealed.g))))
    except Exception:  # a stream of the user's own may want more than is known here; the card does without
        return []
    rounds = list(range(1, len(seen) + 1))
    titles = {"cost": "Cost f(x)", "constraint": "Worst constraint g(x)"}
    return [
        Chart(name, problem.name or "problem", many, title, Axis("round t"), Axis(name, bottom=0.0), [line(0, name, rounds, values)])
        for (name, title), values in zip(titles.items(), zip(*seen, strict=True), strict=True)
    ]

"""Where a round's time goes: the pieces of a round of `play` and of a session, each timed alone, and the profiler's own list."""

from __future__ import annotations

import cProfile
import pstats
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import bridle
import rounds as by_hand
from bridle import records
from bridle.core import Round
from bridle.game.totals import Totals, accumulate
from bridle.session import feedback
from parts.stream import recorded

DIM, TOP = 30, 8
PLAY = ("the round out of its arrays", "decide", "the adversary's answer", "values and gradients", "update", "totals")
ADDRESS = re.compile(" at 0x[0-9a-f]+")
SESSION = ("the caller's arithmetic", "Session.decide", "checks of what is observed", "update", "certificates and alarms")


def best(pieces: dict[str, Callable[[], Any]], rounds: int, repeats: int) -> dict[str, float]:
    """Microseconds a round of every piece, the best of interleaved repeats."""
    found = dict.fromkeys(pieces, np.inf)
    for _ in range(repeats):
        for name, run in pieces.items():
            begun = time.perf_counter()
            run()
            found[name] = min(found[name], 1e6 * (time.perf_counter() - begun) / rounds)
    return found


def each(function: Callable[..., Any], given: Iterable[tuple[Any, ...]]) -> Callable[[], None]:
    """Calls the function with each of these arguments; the calls' own cost is a part of what it costs in a round."""
    kept = list(given)

    def run() -> None:
        for arguments in kept:
            function(*arguments)

    return run


def top(run: Callable[[], Any]) -> list[dict[str, Any]]:
    """The functions with the most time of their own, as shares of the whole."""
    profile = cProfile.Profile()
    profile.runcall(run)
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in stats.values())
    ranked = sorted(stats.items(), key=lambda item: -item[1][2])[:TOP]
    return [
        {"function": f"{Path(file).name}:{name}" if line else ADDRESS.sub("", name.strip("<>")), "calls": calls, "share": own / total}
        for (file, line, name), (_, calls, own, _, _) in ranked
    ]  # fmt: skip


def measure(quick: bool) -> dict[str, Any]:
    """The pieces, the rest, and the profile, on one core."""
    rounds, repeats = (1_000, 5) if quick else (4_096, 15)
    problem = recorded(rounds, DIM)
    policy = bridle.policy_for("sinha2024", problem, preset="practice")
    record, table, adversary = policy.record, problem.adversary.table, problem.adversary.player
    trace = bridle.play(policy, problem, keep="decisions")
    draws, states, state = list(records.unstack(table, rounds)), [], record.init(problem.domain.center())
    seen = []
    for draw in draws:
        states.append(state)
        seen.append(draw.reveal(record.decide(state)))
        state = record.update(state, seen[-1])
    nothing, one = np.zeros(()), np.zeros(1)
    zero = Totals(0.0, nothing, one, one, one, nothing, one, one)
    session, limits = bridle.Session(policy), feedback.Limits()
    lines = (table.cost.a, table.constraints[0].a, table.constraints[0].b, trace.decisions)
    found = best(
        {
            "play": lambda: bridle.play(policy, problem),
            "the round out of its arrays": lambda: list(records.unstack(table, rounds)),
            "decide": each(record.decide, ((state,) for state in states)),
            "the adversary's answer": each(adversary.answer, (((), one.x, draw) for one, draw in zip(seen, draws, strict=True))),
            "values and gradients": each(Round.reveal, ((draw, one.x) for draw, one in zip(draws, seen, strict=True))),
            "update": each(record.update, zip(states, seen, strict=True)),
            "totals": lambda: accumulate(zero, trace.costs, trace.values),
            "session": lambda: by_hand.session(problem, policy),
            "session without certificates": lambda: by_hand.session(problem, policy, certify=False),
            "the caller's arithmetic": each(lambda c, a, b, x: (float(c @ x), float(a @ x + b)), zip(*lines, strict=True)),
            "Session.decide": each(session.decide, (() for _ in range(rounds))),
            "checks of what is observed": each(
                feedback.checked_feedback, ((one.x, limits, one.f, one.df, float(one.g[0]), one.dg[0], None) for one in seen)
            ),
        },
        rounds, repeats,
    )  # fmt: skip
    found["certificates and alarms"] = found["session"] - found["session without certificates"]
    return {
        "dim": DIM, "rounds": rounds,
        "play": split(found, "play", PLAY), "play_top": top(lambda: bridle.play(policy, problem)),
        "session": split(found, "session", SESSION), "session_top": top(lambda: by_hand.session(problem, policy)),
    }  # fmt: skip


def split(found: dict[str, float], whole: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The whole round, its parts, and what is left of it."""
    parts = {name: found[name] for name in names}
    return {"us": found[whole], "parts": {**parts, "the rest": found[whole] - sum(parts.values())}}

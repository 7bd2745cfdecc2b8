"""A round that is broken off, wherever that is, was counted or was not, and the exception says which."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import bridle
from bridle.session.certificates.batches import length
from helpers import fingerprints
from helpers.faults import MOST_POINTS, Point, sweep
from helpers.inside import state

DIM = 3


def record(t: int, x: np.ndarray, k: int = 2) -> dict[str, Any]:
    """What is revealed in round t: half-spaces that the middle of the ball satisfies."""
    rng = np.random.default_rng([5, t, k])
    df, A = rng.standard_normal(DIM), rng.standard_normal((k, DIM))
    df, A = df / np.linalg.norm(df), A / np.linalg.norm(A, axis=1, keepdims=True)
    return {"f": float(df @ x), "df": df, "g": A @ x - 0.4 * rng.random(k), "dg": A}


class Situation(NamedTuple):
    """A session that has played some rounds, and what it is asked to do next."""

    rounds: int
    operate: Callable[[bridle.Session], object]
    engine: str = "python"
    late: str = "copies"
    asked: int = 0


def observe(session: bridle.Session) -> None:
    session.observe(**record(session.rounds, session.decide()))


def observe_another_number(session: bridle.Session) -> None:
    session.observe(**record(session.rounds, session.decide(), k=3))


def observe_late(session: bridle.Session) -> None:
    session.observe(**record(1000, np.zeros(DIM)), ticket=session.rounds + 2)


def observe_late_cost(session: bridle.Session) -> None:
    whole = record(1000, np.zeros(DIM))
    session.observe(f=whole["f"], df=whole["df"], ticket=session.rounds + 2)


def ask(session: bridle.Session) -> None:
    session.ask()


def forget(session: bridle.Session) -> None:
    session.forget(session.rounds + 1)


def settle(session: bridle.Session) -> None:
    session.balances  # noqa: B018


BATCH = length(DIM, 2)
SITUATIONS = {
    "plain": Situation(5, observe),
    "a batch ends": Situation(BATCH - 1, observe),
    "everything is due": Situation(63, observe),
    "another number of constraints": Situation(5, observe_another_number),
    "late": Situation(5, observe_late, asked=3),
    "a late cost": Situation(5, observe_late_cost, asked=3),
    "a late cost in a pool": Situation(5, observe_late_cost, late="pool", asked=3),
    "ask": Situation(5, ask, asked=1),
    "forget": Situation(5, forget, asked=2),
    "compiled": Situation(5, observe, "compiled"),
    "compiled, a batch ends": Situation(BATCH - 1, observe, "compiled"),
    "compiled, everything is due": Situation(63, observe, "compiled"),
    "compiled, another number of constraints": Situation(5, observe_another_number, "compiled"),
    "compiled, settled": Situation(5, settle, "compiled"),
}
MARKED = [pytest.param(name, marks=pytest.mark.compiles) if name.startswith("compiled") else name for name in SITUATIONS]
POLICY = bridle.policy("anytime", bridle.Ball(DIM))


def play(situation: Situation) -> bridle.Session:
    policy = bridle.policy("adagrad", bridle.Ball(DIM), delay=0) if situation.late == "pool" else POLICY
    session = bridle.Session(policy, engine="python", late=situation.late)
    for t in range(situation.rounds - 1):
        session.observe(**record(t, session.decide()))
    return session


def ready(before: bridle.Session, situation: Situation) -> bridle.Session:
    """The session as it stands before the operation: its compiled round is in use."""
    session = copy.deepcopy(before)
    session._begin(before.plan.changed(engine=situation.engine), state(session))
    session.number_tickets(0, 0)  # a copy draws where the numbers of its tickets begin: here they are those of the rounds
    session.observe(**record(session.rounds, session.decide()))
    for _ in range(situation.asked):
        session.ask()
    return session


def go_on(session: bridle.Session) -> None:
    """A few rounds more: what is hidden shows."""
    for _ in range(3):
        session.observe(**record(session.rounds, session.decide()))


FAULTS = {
    "no memory for a line": (Point.LINES, MemoryError),
    "no memory for a call": (Point.BEFORE_CALLS, MemoryError),
    "interrupt": (Point.AFTER_CALLS, KeyboardInterrupt),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MARKED)
@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_the_old_round_or_the_new_one_and_says_which(name, fault):
    situation, (point, strike) = SITUATIONS[name], FAULTS[fault]
    before = play(situation)
    old, new = ready(before, situation), ready(before, situation)
    situation.operate(new)
    was, becomes = (fingerprints.of_session(each, searched=False) for each in (old, new))
    go_on(new)
    later = fingerprints.of_session(new, searched=False)
    for at, session, raised in sweep(point, strike, lambda: ready(before, situation), situation.operate, MOST_POINTS):
        # Broken off before the call has begun, nobody could say anything: nothing was counted.
        counted = raised is None or getattr(raised, "counted", False)
        found = fingerprints.of_session(session, searched=False)
        if was != becomes:
            differs = fingerprints.differences(found, becomes if counted else was)
            assert not differs, f"point {at}: it was {'' if counted else 'not '}counted, and differs in {differs}"
        else:
            assert found == was
        if not counted:
            situation.operate(session)
        go_on(session)
        assert fingerprints.of_session(session, searched=False) == later, f"point {at}: it does not go on as it should"

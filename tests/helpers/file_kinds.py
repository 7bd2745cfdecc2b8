"""Every kind of file that bridle writes and reads back: how to make an older and a newer one, and what is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bridle
from helpers import fingerprints


class Kind(NamedTuple):
    """`make(n)` is what a file of this kind holds after n steps; `save` writes it, `load` reads it, `seen` is what can be told of it."""

    make: Callable[[int], Any]
    save: Callable[[Any, Path], object]
    load: Callable[[Path], Any]
    seen: Callable[[Any], Any]


def session(rounds: int, **settings: Any) -> bridle.Session:
    """A session after so many rounds, with a few that wait, one of them for a part, and names that came again."""
    made = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), **settings)
    for t in range(rounds):
        rng, x = np.random.default_rng(t % 2), made.decide()
        df, a = rng.standard_normal(2), rng.standard_normal(2)
        made.observe(f=float(df @ x), df=df, g=float(a @ x) - 0.2, dg=a, context="ab"[t % 2])
    first, _ = made.ask(), made.ask()
    made.observe(f=0.25, df=[0.5, 0.0], ticket=first, partial=True)
    return made


def plain_session(rounds: int) -> bridle.Session:
    """As small as a session's file gets."""
    made = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), certify=False)
    for t in range(rounds):
        made.observe(f=0.5, df=[1.0, float(t)])
    return made


def gate(payments: int) -> bridle.Gate:
    made = bridle.Gate(10.0)
    for _ in range(payments):
        made.pay(0.37)
    return made


def pacer(payments: int) -> bridle.Pacer:
    made = bridle.Pacer(budget=10.0, rounds=40, value=2.0, spend=1.0, plan=[1.0, 2.0])
    for _ in range(payments):
        made.pay(0.37)
    return made


KINDS = {
    "session": Kind(session, bridle.Session.save, bridle.Session.load, fingerprints.of_session),
    "plain session": Kind(plain_session, bridle.Session.save, bridle.Session.load, lambda it: fingerprints.of_session(it, certified=False)),
    "gate": Kind(gate, bridle.Gate.save, bridle.Gate.load, fingerprints.of_gate),
    "pacer": Kind(pacer, bridle.Pacer.save, bridle.Pacer.load, fingerprints.of_pacer),
}

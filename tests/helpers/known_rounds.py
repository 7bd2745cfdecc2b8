"""Rounds with limits that are known before acting, some of which nothing keeps: each is kept, or is an error that changes nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import bridle
from bridle.session.prior import CLOSE

DOMAINS = {
    "box": bridle.Box(-1.0, 1.0, dim=3),
    "ball": bridle.Ball(3),
    "simplex": bridle.Simplex(3),
    "box, rules": bridle.Box(-1.0, 1.0, dim=3),
    "box, features": bridle.Box(-1.0, 1.0, dim=3),
}
POLICIES = ("ogd", "soft", "mlpoly", "adagrad")


class Kept(NamedTuple):
    """How many rounds were played, how many were refused, by how much a limit was exceeded at the most, and how many rounds were wrong."""

    rounds: int
    refused: int
    worst: float
    wrong: int


def known_rounds(kind: str, seed: int, rounds: int) -> Kept:
    """Random rounds on one of the kinds of domain: one to three halfspaces, loose, touching in one action, or impossible."""
    domain, rng = DOMAINS[kind], np.random.default_rng([seed, list(DOMAINS).index(kind)])
    name = "mlpoly" if kind == "box, rules" else POLICIES[seed % 2] if kind != "box, features" else "adagrad"
    told = (
        {"lipschitz": 1.0}
        if name == "ogd"
        else {"rules": 4}
        if kind == "box, rules"
        else {"features": 2}
        if kind == "box, features"
        else {}
    )
    session = bridle.Session(bridle.policy(name, domain, **told), certify=False)
    refused, worst, wrong = 0, 0.0, 0
    for t in range(rounds):
        words = {"rules": np.array([domain.project(rng.standard_normal(3)) for _ in range(4)])} if "rules" in told else {}
        words |= {"features": rng.standard_normal(2)} if "features" in told else {}
        A = rng.standard_normal((int(rng.integers(1, 4)), 3)) * 10.0 ** rng.uniform(-6.0, 6.0, (1, 1))
        inside = domain.project(rng.standard_normal(3))
        room = 0.0 if t % 7 == 0 else rng.uniform(0.0, 0.5, len(A))
        b = A @ inside + room * np.abs(A).max()
        if t % 11 == 0:  # beyond what any action has
            b = np.array([float(domain.linear_min(row)) for row in A]) - 0.1 * np.abs(A).max()
            before = session.rounds, session.cost
            try:
                session.decide(**words, known=(A, b))
                wrong += 1
            except bridle.InputError as error:
                refused += 1
                wrong += "known cannot be kept" not in str(error) or (session.rounds, session.cost) != before
            continue
        x = session.decide(**words, known=(A, b))
        over = float(((A @ x - b) / np.linalg.norm(A, axis=1)).max())
        worst = max(worst, over)
        wrong += over > CLOSE * (1.0 + domain.diameter()) or not domain.contains(x)
        p = rng.standard_normal(3)
        session.observe(f=float(p @ x), df=p)
    return Kept(session.rounds, refused, worst, wrong)

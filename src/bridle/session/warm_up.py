"""What the first rounds of a process would pay for, done beforehand: solvers are loaded, and what is imported late is imported."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import numpy as np

from bridle.core import Feedback
from bridle.domains.closed_form import BallSet
from bridle.ops import Array
from bridle.session.ledger import FAILURES, Ledger
from bridle.session.parts import SessionParts

REHEARSED = 3
"""How many rounds of a session of the same kind are played beforehand."""


@cache
def load_solvers() -> None:
    """Load what certificates solve programs with, and prove a small contradiction; once in a process."""
    ledger, axis = Ledger(BallSet(np.zeros(2), 1.0), 2), np.eye(1, 2)
    for t in (1, 2):
        ledger.take(Feedback(np.zeros(2), 0.0, axis[0], np.array([0.1]), axis if t == 1 else -axis), t)
    ledger.complete().regret()
    while ledger.search(2, ranking=True) is None or ledger.busy:
        pass


def use_domain(parts: SessionParts) -> None:
    """Call the session's domain once in each way that a look after a round does: it may have a solver of its own."""
    if parts.ledger is not None and parts.ledger.domain.known and parts.domain is not None:
        where, axis = parts.ledger.domain, np.eye(1, len(parts.ledger.domain.middle))[0]
        with suppress(*FAILURES):
            where.least(axis)
            parts.domain.project(where.middle + where.diameter * axis)


def rehearse(decide: Callable[[], Array], observe: Callable[..., None], constraints: int) -> None:
    """Play some rounds, each with violated constraints, of a session that is then thrown away."""
    with warnings.catch_warnings(), suppress(*FAILURES):
        warnings.simplefilter("ignore")
        for _ in range(REHEARSED):
            axis = np.eye(1, len(decide()))
            observe(f=0.0, df=axis[0], g=np.full(constraints, 1e-3), dg=np.repeat(axis, constraints, axis=0))

"""What stands inside of a session: tests look there, users need not."""

from __future__ import annotations

from typing import Any

import numpy as np

import bridle
from bridle.session.proof import Proof
from bridle.session.state import Plan, SessionState


def proved(session: Any) -> Proof:
    """What is proved of a session as it stands, by a ledger of its own."""
    found: Proof = session.read(Proof.of)
    return found


def state(session: Any) -> SessionState:
    """Where a session stands."""
    found: SessionState = session.read(lambda _, state: state)
    return found


def own_ledger(session: bridle.Session) -> Any:
    """The ledger of a session itself, which a test may change."""
    session.read(lambda *_: None)
    return session._stepper.base.slow.ledger


class ToldPlan(Plan):
    """A plan whose policy counts as registered, whatever it is."""

    @property
    def configured(self) -> Any:
        return self.policy

    @property
    def through(self) -> None:
        return None


def told(proof: Proof, configured: Any, k: int | None = None) -> Proof:
    """The proof of a run whose policy is registered as this."""
    plan = object.__new__(ToldPlan)
    vars(plan).update(vars(proof.plan), policy=configured)
    if k is not None:
        vars(plan)["limits"] = plan.limits._replace(k=k)
    return proof._replace(plan=plan)


def with_totals(proof: Proof, hard: Any, signed: Any) -> Proof:
    """The proof of a run with these totals."""
    now, slow = proof.state
    totals = now.totals._replace(hard=np.array(hard), signed=np.array(signed))
    return proof._replace(state=SessionState(now._replace(totals=totals), slow))

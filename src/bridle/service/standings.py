"""Where a session stands: as an answer, and as figures for the metrics."""

from __future__ import annotations

from math import isfinite
from typing import cast

import numpy as np

from bridle.budgets import Gate, Pacer
from bridle.core import InputError
from bridle.policies.registry import Configured
from bridle.service.bodies import AlarmFacts, GateStands, SessionStands
from bridle.service.hosted import Hosted, next_decision
from bridle.service.metrics import SessionFigures
from bridle.session.durable import DurableCore
from bridle.session.rates import limit_names
from bridle.session.session import Session


def stands(budget: Gate | Pacer) -> GateStands:
    """Where a budget stands."""
    if isinstance(budget, Pacer):
        own = budget.gate
        return GateStands("pacer", budget.budget, budget.spent, budget.left, own.unit, budget.price, budget.played, budget.rounds)
    return GateStands("gate", budget.budget, budget.spent, budget.left, budget.unit)


def finite(value: float) -> float | None:
    """A number as JSON has it."""
    return value if isfinite(value) else None


def whole_session(core: DurableCore) -> Session:
    """The session of a core, to be looked at."""
    return cast(Session, core.session)


def alarms_of(hosted: Hosted, session: Session) -> list[AlarmFacts]:
    """Which warnings the session has given, in which round, and what they say."""
    return [AlarmFacts(kind, t, hosted.alarms.get(kind)) for kind, t in session._log.rounds.items()]


def parameters_of(session: Session) -> dict[str, object]:
    """What the policy was told, as JSON has it: a record by the name of its type."""
    configured = session.policy
    told = configured.recipe[1] if isinstance(configured, Configured) else {}
    return {name: _plain(value) for name, value in told.items()}


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__


def standing(hosted: Hosted, core: DurableCore) -> SessionStands:
    """Where a session stands."""
    session = whole_session(core)
    violations = session.violations.tolist()
    return SessionStands(
        name=hosted.name,
        policy=getattr(session.policy, "name", ""),
        parameters=parameters_of(session),
        dim=session._dim,
        engine=session.engine,
        names=list(session.names),
        round=session.rounds,
        x=next_decision(core),
        pending=session.pending,
        dropped=session.dropped,
        cost=finite(session.cost),
        ccv=finite(max(violations, default=0.0)),
        violations=violations,
        alarms=alarms_of(hosted, session),
        gates={name: stands(budget) for name, budget in core.purse.budgets.items()},
        quarantined=hosted.quarantined,
    )


def figures(hosted: Hosted, core: DurableCore) -> SessionFigures:
    """What is measured of a session."""
    session = whole_session(core)
    violations = session.violations.tolist()
    named = limit_names(len(violations), session.names)
    try:
        prices = dict(zip(limit_names(len(session.price), session.names), session.price.tolist(), strict=True))
    except InputError:  # the policy keeps none
        prices = {}
    return SessionFigures(
        name=hosted.name,
        rounds=session.rounds,
        pending=session.pending,
        cost=session.cost,
        quarantined=hosted.quarantined,
        violations=dict(zip(named, violations, strict=True)),
        prices=prices,
        certified_regret=hosted.certified[1],
        alarms=len(session._log.rounds),
        left={name: budget.left for name, budget in core.purse.budgets.items()},
    )

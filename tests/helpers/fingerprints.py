"""All that the public can see of a session, a gate or a pacer, as values that are equal where it is the same, bit for bit."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

import bridle
from bridle import records

SEARCHED = ("witness", "conflict", "regret", "why", "alarms", "bound", "squared_bound")
"""What a certificate holds that a search may have improved: it comes after the round, and may be broken off."""


def of_session(session: bridle.Session, *, certified: bool = True, searched: bool = True) -> dict[str, Any]:
    """Totals, decision, state, rounds that wait, and the certificate if it keeps one; without what rests on searches if asked."""
    found: dict[str, Any] = {f"state.{name}": np.array(leaf) for name, leaf in records.leaves(session.state).items()}
    found |= {
        "decision": session.decide(), "rounds": session.rounds, "cost": session.cost, "violations": session.violations,
        "balances": session.balances, "pending": session.pending, "dropped": session.dropped,
    }  # fmt: skip
    if certified:
        proof = session.certificate()
        found |= {f"certificate.{field.name}": getattr(proof, field.name) for field in fields(proof)}
    if not searched:
        found = {name: value for name, value in found.items() if name.removeprefix("certificate.") not in SEARCHED}
    return {name: as_bits(value) for name, value in found.items()}


def of_gate(gate: bridle.Gate) -> dict[str, Any]:
    """Budget and spending."""
    return {name: as_bits(getattr(gate, name)) for name in ("unit", "budget", "spent", "left")}


def of_pacer(pacer: bridle.Pacer) -> dict[str, Any]:
    """Budget, spending, plan and price."""
    names = ("rounds", "played", "price", "planned", "share", "bound", "certified_loss")
    return of_gate(pacer.gate) | {name: as_bits(getattr(pacer, name)) for name in names}


def as_bits(value: object) -> object:
    """Numbers as bytes, so that -0.0 is not 0.0 and NaN is itself; whatever holds them, as tuples."""
    if isinstance(value, (float, int, np.ndarray, np.generic)) and not isinstance(value, bool):
        array = np.asarray(value, dtype=float)
        return array.shape, array.tobytes()
    if isinstance(value, (tuple, list)):
        return tuple(map(as_bits, value))
    return value if value is None or isinstance(value, (str, bool)) else repr(value)


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """The names under which two of them differ."""
    return sorted(name for name in a.keys() | b.keys() if a.get(name, "missing") != b.get(name, "missing"))

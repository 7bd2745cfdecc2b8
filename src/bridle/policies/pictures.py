"""What a policy shows of itself in a notebook: what it is, what it promises and needs, and its theorem as a curve."""

from __future__ import annotations

from math import isfinite
from typing import cast

import numpy as np

from bridle.core import Constants
from bridle.policies.registry import Configured
from bridle.showing import cards, short
from bridle.showing.marks import QUANTITIES, ROUNDS, TITLES, UNITS, Chart, axis, line

FAR = 10_000
"""How far the theorem is drawn, where the policy has no horizon."""

ASSUMED: Constants = {"lipschitz": 1.0, "bound": 1.0, "modulus": 0.0, "constraints": 1, "convex": True, "affine": True}
"""What the curve is drawn for, where the policy was told nothing else."""


def policy_card(policy: Configured) -> str:
    """The policy on a card of a notebook."""
    entry = policy.entry
    facts = {
        "call": repr(policy),
        "what it is": entry.title,
        "regret": entry.regret,
        "violation": entry.violation,
        "constraints": entry.constraints,
        **({"must be told": ", ".join(entry.needs)} if entry.needs else {}),
        "reference": entry.reference,
    }
    charts, told = _theorem(policy)
    return cards.card(f"Policy {policy.name}", facts, charts, [told] if charts else [])


def _theorem(policy: Configured) -> tuple[list[Chart], str]:
    """What the theorem allows, against t; nothing where it states no numbers for these constants."""
    if policy.runs is not None:
        return [], ""
    given = {key: value for key, value in policy.parameters.items() if key in ASSUMED}
    shape = {"diameter": policy.domain.diameter(), "feasible": policy.domain.center(), "time_varying": policy.entry.time_varying}
    constants = cast("Constants", {**ASSUMED, **shape, **given})
    last = int(policy.parameters.get("horizon") or FAR)
    rounds = sorted({int(t) for t in np.geomspace(1.0, last, 24).round()})
    try:
        bounds = [policy.bound(constants, float(t)) for t in rounds]
    except Exception:  # a theorem may want what only a game knows
        return [], ""
    charts = []
    for name in QUANTITIES:
        values = [float(each) if (each := getattr(bound, name)) is not None and isfinite(each) else None for bound in bounds]
        if values[-1] is not None:
            y = axis(UNITS[name], values, True)
            charts.append(Chart(name, policy.name, last, f"{TITLES[name]} is at most", ROUNDS, y, [line(0, policy.name, rounds, values)]))
    return (
        charts,
        f"The theorem for gradients of length {short(constants['lipschitz'])} and a domain of diameter {short(constants['diameter'])}.",
    )

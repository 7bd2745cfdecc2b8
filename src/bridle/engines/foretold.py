"""A round whose limits are known before the decision: the decision is moved to the nearest one that keeps them.

Where the policy's state can move there too (`move`, in the norm of its `metric`), its proof stays as it is; elsewhere what is seen is read
at the decision that the policy made, as affine functions, as a session does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bridle.core import Adversary, Feedback, InputError, Movable, Policy, TriesPoints, capability
from bridle.engines.round import answer
from bridle.solvers.nearest_in_norm import nearest_where, sequences
from bridle.solvers.program import region


def keeping_turn(policy: Policy[Any]) -> Callable[[Policy[Any], Adversary[Any], Any, Any, object], tuple[Any, Any, Feedback]]:
    """`turn` for rounds whose limits are known: of one policy, whose domain is looked at once."""
    domain = getattr(policy, "domain", None)
    if capability(policy, TriesPoints):
        raise InputError("limits that are known before acting cannot be kept: the policy tries points at random around its decision")
    if domain is None:
        raise InputError("limits that are known before acting cannot be kept: the policy does not say what its domain is")
    where, straight, movable = region(domain), np.eye(domain.dim), capability(policy, Movable)

    def turn(policy: Policy[Any], adversary: Adversary[Any], state: Any, foe: Any, draw: object) -> tuple[Any, Any, Feedback]:
        x = policy.decide(state)
        if x.ndim > 1:
            raise InputError("limits that are known before acting are kept in one run at a time")
        foe, chosen = answer(adversary, foe, x, draw)
        limits = [sequences(constraint) for constraint in chosen.constraints]
        metric = None if movable is None else movable.metric(state)
        parts = tuple(part for limit in limits for part in limit or ())
        y = nearest_where(domain, x, parts, straight if metric is None else metric, where) if all(limits) else None
        if y is None:
            raise InputError("limits that are known before acting cannot be kept by any decision, or are not made of smooth functions")
        if y is not x and (moved := None if movable is None else movable.move(state, y)) is not None:
            state = moved
            x = policy.decide(state)
        seen = read = chosen.reveal(y)
        if (x != y).any():
            read = seen._replace(x=x, f=seen.f + float(seen.df @ (x - y)), g=seen.g + seen.dg @ (x - y), round=None)
        return policy.update(state, read), foe, seen

    return turn

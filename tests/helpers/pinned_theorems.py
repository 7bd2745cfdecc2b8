"""A bound at fixed numbers, asked and compared: what is true, what the policy is told, and sums taken term by term."""

from __future__ import annotations

import numpy as np
import pytest

import bridle

G, D, F = 1.5, 2.2, 1.9
"""True: the Lipschitz constant, the diameter (more than the ball's own, which is 2), the largest |g|."""
TOLD = {"lipschitz": 2.0, "diameter": 2.5, "bound": 2.2}
G_, D_, F_ = TOLD.values()
T, t = 40_000, 30_000
MU, MU_ = 0.7, 0.6
"""The true modulus, and the one that is told."""
FACTS = {
    "lipschitz": G, "diameter": D, "bound": F, "constraints": 1, "convex": True, "affine": True, "time_varying": True,
    "feasible": np.zeros(2), "modulus": MU, "slater": None,
}  # fmt: skip
BALL = bridle.Ball(2)


def total(term, last=t, first=1):
    """The sum of term(s) for s = first, ..., last."""
    s = np.arange(float(first), last + 1.0)
    return float(np.sum(np.broadcast_to(term(s), s.shape)))


def powers(c, last=t):
    return total(lambda s: s**-c, last)


def bound(name, at=t, facts=None, domain=BALL, **settings):
    """The policy's bound; it is told TOLD, the horizon and MU_ where it wants them and nothing else is given."""
    wanted = {parameter.name for parameter in bridle.policies.parameters(name)}
    given = {key: value for key, value in {**TOLD, "horizon": T}.items() if key in wanted}
    if bridle.policies.entry(name).strongly_convex:
        given["modulus"] = MU_
    settings = {key: value for key, value in {**given, **settings}.items() if value is not None}
    return bridle.policy(name, domain, **settings).bound({**FACTS, **(facts or {})}, at)


def same(found, at=t, **expected):
    """Every number of the bound is the expected one, and there are no others; none is the trivial one."""
    assert found.why == ""
    numbers = {key: float(value) for key, value in found._asdict().items() if key != "why" and value is not None}
    assert numbers == pytest.approx(expected, rel=1e-9)
    assert all(number < 0.999 * G * D * at for number in numbers.values()), "only the trivial bound is seen"

"""Demand as rules for capacity see it: the action nearest to the one played at which a round's limits, linearised, just hold."""

from __future__ import annotations

import numpy as np

from bridle import validate
from bridle.core import Domain, Feedback
from bridle.domains.closed_form import BoxSet
from bridle.ops import Array
from bridle.policies.trackers import shift


def demand_of(feedback: Feedback) -> Array | None:
    """The action nearest to the one played at which the limits, linearised, hold with equality; None where none was revealed.

    >>> demand_of(Feedback(np.array([3.0]), 3.0, np.ones(1), np.array([2.0]), np.array([[-1.0]])))
    array([5.])
    """
    g, dg = feedback.g, feedback.dg
    if len(g) == 1:  # nearly always, and this is asked for every rule in every round
        row = dg[0]
        square = float(row @ row)
        return feedback.x - (g[0] / square) * row if square > 0.0 else None
    products = dg @ dg.T
    squares = np.diag(products)
    if not (squares > 0.0).any():
        return None
    if np.count_nonzero(products) == np.count_nonzero(squares):  # no two limits pull at each other
        return np.asarray(feedback.x - (g * (squares > 0.0) / np.where(squares > 0.0, squares, 1.0)) @ dg)
    return np.asarray(feedback.x - shift(dg, g))


def within(domain: BoxSet, wanted: Array, seen: float) -> Array:
    """What a rule wants, within the box; all there is while it has seen nothing."""
    return np.minimum(np.maximum(wanted, domain.low), domain.high) if seen else domain.high + 0.0


def box_of(domain: Domain) -> BoxSet:
    """The domain, if it is a box."""
    if not isinstance(domain, BoxSet):
        raise validate.refused("domain must be a box, in which more is safer", domain)
    return domain


def share_of(name: str, value: float) -> float:
    """A share above 0, and at most 1."""
    share = validate.positive(name, value)
    if share > 1.0:
        raise validate.refused(f"{name} must be a share above 0, at most 1", value)
    return share

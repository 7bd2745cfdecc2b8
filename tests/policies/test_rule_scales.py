"""Why each rule has a scale of its own: an absurd one among them must not disturb the mixture of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import bridle
from bridle import ops
from bridle.core import Feedback
from bridle.domains.closed_form import BoxSet
from bridle.learners.mlpoly import MLPolyLearner, PolyState, precision
from bridle.ops import Array, Scalar, along, pos, ratio
from helpers.demand import PERIOD, Rules, demand

TOPS = 60.0 * np.array([1.0, 100.0, 1000.0])
"""All there is, which one of the rules proposes in every round: 6, 600 and 6000 times the mean demand."""


class SharedScale(NamedTuple):
    """ML-Poly as it was published: the largest scale of any rule in place of each rule's own."""

    own: MLPolyLearner

    def init(self, x1: Array) -> PolyState:
        return self.own.init(x1)

    def decide(self, state: PolyState) -> Array:
        return state.x

    def step_at(self, state: PolyState, grad: Array, x: Array) -> PolyState:
        after = self.own.step_at(state, grad, x)
        b = 0.0 * after.b + along(after.b, "max")
        weight = self.own.prior * precision(b, after.S) * pos(after.R)
        total = along(weight, "sum")
        return after._replace(b=b, x=ops.where(total > 0.0, ratio(1.0, total) * weight, state.x1))

    def certified(self, state: PolyState) -> Scalar:
        return self.own.certified(state)


def costs(shared: bool, rounds: int = 1500) -> np.ndarray:
    """Capacity over demand, 5 percent of the rounds short of it, for each of the boxes; all runs at once."""
    values, n = demand("iid", rounds), len(TOPS)
    rules = [Rules(top) for top in TOPS]
    for rule in rules:
        for value in demand("iid", PERIOD, seed=9):  # they have run for a day
            rule.see(value)
    policy = bridle.policy("rate", bridle.Box(0.0, TOPS.max(), dim=1), at_most=0.05, rules=Rules.SIZE)
    record = policy.record._replace(domain=BoxSet(np.zeros((n, 1)), TOPS[:, None]), safe=TOPS[:, None])
    record = record._replace(learner=SharedScale(record.learner)) if shared else record
    state = record.begin(record.init(np.full((n, 1), 10.0)), np.array([policy.through.first(rule.propose()) for rule in rules]))
    total, violated, df, dg = np.zeros(n), np.zeros(n), np.ones((n, 1)), -np.ones((n, 1, 1))
    for value in values:
        state = record.propose(state, np.array([rule.propose() for rule in rules]))
        x = record.decide(state)
        state = record.update(state, Feedback(x, x, df, value - x, dg))
        total, violated = total + x[:, 0], violated + (value > x[:, 0])
        for rule in rules:
            rule.see(value)
    assert np.abs(violated / rounds - 0.05).max() < 0.005
    return total / values.sum()


@pytest.mark.slow
def test_an_absurd_rule_disturbs_the_others_only_where_scales_are_shared():
    own, shared = costs(shared=False), costs(shared=True)
    assert np.abs(own / own[0] - 1.0).max() < 0.05
    assert shared[1] > 1.3 * shared[0]

"""Rules that are not there in every round: their weight goes to those that are, and what they would have lost is what the mixture lost.

With w normalised over those that are awake and l_i = <w, l> for those that sleep, the mixture's loss is that of the weights of all: every
certificate of a learner on a simplex holds, and its regret against a corner counts the rounds in which that was awake.

>>> import bridle
>>> learner, awake = bridle.MLPoly(bridle.Simplex(3)), np.array([True, True, False])
>>> state = learner.init(learner.domain.center())
>>> x = awake_weights(learner.decide(state), awake)
>>> state = learner.step_at(state, awake_losses(np.array([1.0, 0.0, np.nan]), x, awake), x)
>>> x, state.R
(array([0.5, 0.5, 0. ]), array([-0.5,  0.5,  0. ]))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridle import validate
from bridle.core import InputError
from bridle.ops import Array


def awake_weights(x: Array, awake: NDArray[np.bool_]) -> Array:
    """The decision `x` with all its mass on the corners that are awake; shared alike among them where they have none."""
    present = np.asarray(awake, dtype=bool)
    if present.shape != x.shape:
        raise InputError(f"awake must have shape {x.shape}, not {present.shape}")
    if not present.any():
        raise validate.refused("awake must hold at least one corner", awake)
    left = np.where(present, x, 0.0)
    total = left.sum()
    return np.asarray(x.sum() / total * left if total > 0.0 else np.where(present, x.sum() / np.count_nonzero(present), 0.0))


def awake_losses(losses: Array, x: Array, awake: NDArray[np.bool_]) -> Array:
    """The losses, those of sleeping corners as what `x`, the decision over the others, has lost for each unit of mass."""
    present = np.asarray(awake, dtype=bool)
    there = np.where(present, losses, 0.0)
    return np.where(present, there, float(there @ x) / x.sum())

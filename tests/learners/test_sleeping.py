"""Corners that sleep: regret counts their awake rounds, certificates hold, and somebody must be awake. And learners on tensors."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.learners.sleeping import awake_losses, awake_weights


@pytest.mark.parametrize("make", [bridle.AdaHedge, bridle.MLPoly])
@pytest.mark.parametrize("mass", [1.0, 3.0])
def test_regret_to_each_corner_counts_the_rounds_in_which_it_was_awake(make, mass):
    K, rng = 5, np.random.default_rng(0)
    learner = make(bridle.Simplex(K, mass=mass))
    state, regrets = learner.init(learner.domain.center()), np.zeros(K)
    for t in range(200):
        awake = rng.random(K) < 0.6
        awake[t % K] = True
        losses = rng.standard_normal(K) + np.linspace(0.0, 1.0, K)
        x = awake_weights(learner.decide(state), awake)
        assert learner.domain.contains(x)
        assert (x[~awake] == 0.0).all()
        state = learner.step_at(state, awake_losses(np.where(awake, losses, np.nan), x, awake), x)
        regrets += np.where(awake, float(x[awake] @ losses[awake]) - mass * losses, 0.0)
        assert regrets.max() <= learner.certified(state) + 1e-9
        if make is bridle.MLPoly:
            np.testing.assert_allclose(state.R, regrets, atol=1e-9)


def test_mass_goes_to_those_that_are_awake():
    np.testing.assert_allclose(awake_weights(np.array([0.2, 0.3, 0.5]), np.array([True, True, False])), [0.4, 0.6, 0.0])
    np.testing.assert_allclose(awake_weights(np.array([0.0, 0.0, 2.0]), np.array([True, True, False])), [1.0, 1.0, 0.0])
    for awake, message in ((np.zeros(3, bool), "awake must hold at least one corner"), (np.ones(2, bool), r"awake must have shape \(3,\)")):
        with pytest.raises(bridle.InputError, match=message):
            awake_weights(np.full(3, 1.0 / 3.0), awake)


@pytest.mark.parametrize("make", [bridle.AdaHedge, bridle.MLPoly, bridle.Track])
@pytest.mark.parametrize("groups", [1, 2])
def test_tensors_of_pytorch_are_decided_alike(make, groups):
    torch = pytest.importorskip("torch")
    import bridle.adapters.torch  # makes tensors known
    from bridle import records

    domain = bridle.Simplex(4) if groups == 1 else bridle.Product(*[bridle.Simplex(4)] * groups)
    learner = make(domain)
    told = records.transform(lambda leaf: torch.as_tensor(leaf) if isinstance(leaf, np.ndarray) else leaf, learner)
    state, other, rng = learner.init(domain.center()), told.init(torch.as_tensor(domain.center())), np.random.default_rng(1)
    for _ in range(30):
        p = rng.standard_normal(4 * groups)
        state, other = learner.step(state, p), told.step(other, torch.as_tensor(p))
        np.testing.assert_allclose(told.decide(other).numpy(), learner.decide(state), rtol=0.0, atol=1e-12)

"""What the states of learners hold: the sums that bounds are made of, in shapes that never change; how many samples, and epochs."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

import bridle
from bridle import records
from helpers.learner_duels import KINDS, make

LEADS = ((), (1,), (4,))


@pytest.mark.parametrize("kind", [*KINDS, "adagrad-from", "late"])
@pytest.mark.parametrize("lead", LEADS)
def test_a_state_has_its_final_shapes_from_the_start(kind, lead):
    domain, rng = bridle.Ball(3), np.random.default_rng(1)
    more = {"adagrad-from": lambda: bridle.AdaGrad(domain, initial=0.5), "late": lambda: bridle.LateAdaGrad(domain, 2.0)}
    learner = more[kind]() if kind in more else make(kind, domain)
    state = learner.init(np.zeros((*lead, 3)))
    for _ in range(2):
        after = learner.step(state, rng.standard_normal((*lead, 3)))
        assert {key: np.shape(leaf) for key, leaf in records.leaves(state).items()} == {
            key: np.shape(leaf) for key, leaf in records.leaves(after).items()
        }
        state = after


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("make_learner", [bridle.AdaGrad, bridle.AdaFTRL])
def test_squares_are_the_sum_of_squared_lengths(make_learner, lead):
    learner, rng = make_learner(bridle.Ball(3)), np.random.default_rng(2)
    p = rng.standard_normal((6, *lead, 3))
    state = learner.init(np.zeros((*lead, 3)))
    assert np.all(learner.squares(state) == 0.0)
    for row in p:
        state = learner.step(state, row)
    np.testing.assert_allclose(np.ravel(learner.squares(state)), np.ravel((p**2).sum(axis=(0, -1))), rtol=1e-12)


@pytest.mark.parametrize("scale", [None, 2.0])
def test_a_perturbed_leader_keeps_the_sums_too(scale):
    learner, p = bridle.FTPL(bridle.Ball(2), scale, samples=4), np.array([[3.0, 4.0], [0.0, 1.0], [2.0, 0.0]])
    state = learner.init(np.zeros(2))
    for row in p:
        state = learner.step(state, row)
    assert state.S == 30.0
    np.testing.assert_array_equal(state.total, [5.0, 5.0])


@pytest.mark.parametrize("samples", [2, 3, 4, 7, 100])
def test_samples_come_in_pairs_and_as_many_as_asked_for(samples):
    learner = bridle.FTPL(bridle.Ball(5), samples=samples)
    assert learner.Z.shape == (2 * ceil(samples / 2), 5)
    half = len(learner.Z) // 2
    np.testing.assert_array_equal(learner.Z[:half], -learner.Z[half:])
    assert len(np.unique(learner.Z, axis=0)) == 2 * half


def test_a_sum_that_starts_above_zero_in_one_run_of_several():
    """The runs that start at 0 play as AdaGrad does."""
    learner, p = bridle.AdaGrad(bridle.Ball(2), diameter=0.1, initial=[0.0, 11.0]), np.array([[3.0, 4.0], [3.0, 4.0]])
    assert learner.scale_free
    state = learner.step(learner.init(np.zeros((2, 2))), p)
    np.testing.assert_array_equal(state.seen, [[25.0], [36.0]])
    np.testing.assert_allclose(state.x, -p * 0.1 / np.sqrt([[50.0], [72.0]]), rtol=1e-12)


def test_an_exponent_of_two_in_one_run_of_several():
    np.testing.assert_array_equal(bridle.potentials.Power([2.0, 3.0]).slope(2.0).ravel(), [4.0, 12.0])


def settings_of(name: str) -> dict[str, float]:
    """What a policy must be told, as one that plays in a ball."""
    told = {
        "horizon": 8,
        "lipschitz": 1.0,
        "diameter": 6.0,
        "bound": 1.0,
        "modulus": 1.0,
        "smoothness": 1.0,
        "slater": 0.5,
        "capacities": 1.0,
    }
    return {setting: told[setting] for setting in bridle.policies.entry(name).needs if setting in told}


@pytest.mark.parametrize("name", ["anytime", "yuan2018", "sinha2024", "mahdavi2012", "yi2022"])
def test_a_policy_under_a_wrapper_is_a_policy_in_the_same_domain(name):
    """Also one with a `step` of its own, which is what learners have: a method of `anytime`, a size of others."""
    ball = bridle.Ball(2, radius=3.0)
    policy = bridle.Doubling(
        lambda T: bridle.policy(name, ball, **{**settings_of(name), **({"horizon": T} if "horizon" in settings_of(name) else {})})
    )
    np.testing.assert_array_equal(policy.domain.radius, 3.0)
    session = bridle.Session(policy)
    for _ in range(4):
        x = session.decide()
        session.observe(f=float(x[0]), df=[1.0, 0.0], g=float(x[1]) - 1.0, dg=[0.0, 1.0])
    assert policy.domain.contains(session.decide())
    assert session.decide()[0] < 0.0


def test_a_learner_under_a_wrapper_plays_in_the_same_domain():
    ball = bridle.Ball(2, radius=3.0)
    np.testing.assert_array_equal(bridle.Doubling(lambda T: bridle.OGD(ball, 1.0 / T)).domain.radius, 3.0)


def test_a_single_epoch_is_the_algorithm_for_ever():
    ball = bridle.Ball(2)
    learner = bridle.Doubling(lambda T: bridle.OGD(ball, 0.5 / T), epochs=1)
    policy = bridle.Doubling(lambda T: bridle.policy("sinha2024", ball, horizon=T, lipschitz=1.0), epochs=1)
    assert learner.domain.dim == policy.domain.dim == 2
    state, plain = learner.init(np.zeros(2)), bridle.OGD(ball, 0.5)
    expected = plain.init(np.zeros(2))
    for p in np.random.default_rng(0).standard_normal((6, 2)):
        state, expected = learner.step(state, p), plain.step(expected, p)
        np.testing.assert_array_equal(learner.decide(state), plain.decide(expected))
    np.testing.assert_array_equal(policy.decide(policy.init(np.zeros(2))), np.zeros(2))


@pytest.mark.parametrize(("epochs", "expected"), [(1, []), (3, [2, 4]), (40, [2, 4, 16, 256, 65536])])
def test_squared_epochs_are_as_many_as_asked_for_and_at_most_six(epochs, expected):
    learner = bridle.Doubling(lambda T: bridle.OGD(bridle.Ball(2), 1.0 / T), growth="square", epochs=epochs)
    assert [*expected, np.inf] == learner.lengths.tolist()

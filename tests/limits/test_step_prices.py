"""The weights of limits that hold on average: what they add up to is bounded on every stream, and no scale matters."""

from __future__ import annotations

import numpy as np
import pytest

from bridle.limits.prices import Duals


def played(streams, slopes=1.0, cost=1.0):
    """The states before and after each step of a stream of values, (T, k); nan does not count."""
    states = [Duals.start(streams.shape[1])]
    for g in streams:
        duals = states[-1]
        states.append(duals.measured(duals.due(g), cost, np.full(len(g), slopes)).observed(g))
    return states


def streams():
    rng = np.random.default_rng(7)
    yield "noise", rng.standard_normal((400, 3))
    yield "always broken", np.full((400, 1), 0.3)
    yield "scales that grow", (rng.standard_normal((400, 2)) + 0.2) * np.geomspace(1e-6, 1e6, 400)[:, None]
    yield "scales that fall", (rng.standard_normal((400, 2)) + 0.2) * np.geomspace(1e6, 1e-6, 400)[:, None]
    half = rng.standard_normal((400, 2))
    half[rng.random((400, 2)) < 0.7] = np.nan
    yield "rare", half
    yield "met for long, then broken", np.concatenate([np.full((300, 1), -1.0), np.full((100, 1), 2.0)])


@pytest.mark.parametrize(("name", "values"), list(streams()), ids=lambda x: x if isinstance(x, str) else "")
def test_values_of_any_steps_in_a_row_add_up_to_at_most_the_bound(name, values):
    for end, state in enumerate(played(values)):
        if end == 0:
            continue
        tails = np.cumsum(np.nan_to_num(values[:end])[::-1], axis=0)  # from any step up to this one
        assert np.all(tails.max(axis=0) <= state.multipliers.bound + 1e-9 * np.abs(tails).max()), (name, end)


def test_the_bound_is_reached():
    """One value alone, after any number that were met: N q is that value, so no smaller multiple would do."""
    state = played(np.array([[2.5]]))[-1]
    assert state.multipliers.bound[0] == 2.5
    steady = played(np.full((2000, 1), 0.4))[-1]  # q = sum 1/sqrt(t) = 2 sqrt(T) - 1.46, N = 0.4 sqrt(T): twice the sum
    assert steady.multipliers.bound[0] / (2000 * 0.4) == pytest.approx(2.0 - 1.46 / np.sqrt(2000.0), abs=1e-3)


def test_an_adversary_cannot_raise_the_mean_above_its_bound():
    """Values that are large while the multiplier is small: what is shown as proved still covers what happened."""
    rng, duals, total = np.random.default_rng(3), Duals.start(1), 0.0
    for _ in range(3000):
        g = np.array([rng.choice([1.0, 5.0]) if duals.multipliers.q[0] < 1.0 else -rng.random()])
        duals, total = duals.measured(duals.due(g), 1.0, np.ones(1)).observed(g), total + g[0]
        assert total <= duals.multipliers.bound[0] + 1e-9


def test_scales_of_cost_and_limits_do_not_matter():
    values = np.random.default_rng(1).standard_normal((60, 1)) + 0.3
    plain, scaled = played(values)[-1], played(1e5 * values, slopes=1e10, cost=1e-6)[-1]  # g times 1e5, f times 1e-3
    for now in (-0.1, 0.0, 0.7):
        mine, theirs = scaled.weigh(np.array([1e5 * now])), plain.weigh(np.array([now]))
        assert mine.cost == pytest.approx(theirs.cost, rel=1e-12)
        assert mine.limits[0] * 1e5 / 1e-3 == pytest.approx(theirs.limits[0], rel=1e-12)


def test_gradients_are_measured_at_powers_of_two_for_the_steps_since():
    duals, measured = Duals.start(1), []
    for t in range(1, 101):
        g = np.array([np.nan if t % 2 else 0.1])  # every second step counts
        due = duals.due(g)
        measured += [int(duals.multipliers.counted[0]) + 1] * bool(due[0])
        duals = duals.measured(due, 1.0, np.array([float(t)])).observed(g)
    assert measured == [1, 2, 4, 8, 16, 32]
    assert duals.slopes[0] == 2 * 1 + 4 * 1 + 8 * 2 + 16 * 4 + 32 * 8 + 64 * 16
    assert duals.cost_slopes[0] == 64.0  # all steps up to the last measured: the cost is there in each


def test_a_gradient_that_is_nothing_or_not_finite_is_measured_again():
    duals = Duals.start(2)
    for length in (0.0, np.inf, np.nan):
        g = np.array([1.0, -1.0])
        duals = duals.measured(duals.due(g), 1.0, np.array([length, 1.0])).observed(g)
        assert duals.due(g)[0]
        assert duals.weigh(g).cost == 1.0  # a limit of unknown slope takes nothing from the cost
    duals = duals.measured(duals.due(g), 4.0, np.array([1.0, 1.0])).observed(g)
    assert duals.natural.tolist() == [2.0, pytest.approx(np.sqrt((1.0 + 1.0 + 2.0 * 4.0) / 4.0))]


def test_without_a_cost_the_limits_are_all_that_counts():
    duals = Duals.start(1)
    g = np.array([1.0])
    duals = duals.measured(duals.due(g), 0.0, np.array([9.0])).observed(g)
    assert duals.weigh(np.zeros(1)).limits[0] == 0.5


def test_weights_follow_their_formula():
    """q = 1 + 1/sqrt(2) + 1/sqrt(3) after three values of 1; then a step at other values."""
    duals = played(np.ones((3, 1)), slopes=4.0)[-1]
    q = 1.0 + 2.0**-0.5 + 3.0**-0.5
    assert duals.multipliers.q[0] == pytest.approx(q, rel=1e-15)
    for g, near in ((2.0, 1.0), (-2.0, -1.0), (0.5, 0.5 / np.sqrt((3.0 + 0.25) / 4.0)), (np.nan, 0.0)):
        h = q + 0.5 * near
        found = duals.weigh(np.array([g]))
        assert found.cost == pytest.approx(1.0 / (1.0 + h), rel=1e-14)
        assert found.limits[0] == pytest.approx(0.5 * h / (1.0 + h), rel=1e-14)
    assert Duals.start(1).measured(np.array([True]), 1.0, np.ones(1)).weigh(np.array([-3.0])).cost == 1.0  # never below 0

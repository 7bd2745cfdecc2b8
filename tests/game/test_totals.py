"""Totals: adding rounds one by one, a block at once, and the part that sessions keep all say the same."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle import records
from bridle.game.totals import RunningTotals, Totals, accumulate, empty, summing

ADDED = ("rounds", "cost", "hard", "soft", "squared", "worst")  # sums of the rounds' terms in their order: equal to the last digit


def blocks(runs: int | None, k: int, whole: bool, seed: int = 0, rounds: int = 60):
    """Costs and constraint values of a game; whole numbers are added without rounding."""
    rng = np.random.default_rng(seed)
    shape = (rounds,) if runs is None else (rounds, runs)
    f, g = 3.0 * rng.standard_normal(shape), 3.0 * rng.standard_normal((*shape, k))
    return (np.round(f), np.round(g)) if whole else (f, g)


def one_by_one(f: np.ndarray, g: np.ndarray, runs: int | None) -> list[Totals]:
    """The totals after every round by `Totals.add`, with the numbers of several runs as a policy has them, ``(B, 1)``."""
    zero = empty((), g.shape[-1]) if runs is None else empty((runs,), g.shape[-1])
    now = zero if runs is None else zero._replace(rounds=np.zeros((runs, 1)), cost=zero.cost[:, None], worst=zero.worst[:, None])
    after = []
    for cost, values in zip(f if runs is None else f[..., None], g, strict=True):
        now = now.add(cost, values)
        after.append(now)
    return after


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("runs", [None, 2])
def test_a_block_at_once_is_its_rounds_one_by_one(runs, k, whole):
    f, g = blocks(runs, k, whole)
    start = empty(() if runs is None else (runs,), k)
    first = accumulate(start, f[:25], g[:25])
    second = accumulate(records.transform(lambda leaf: leaf[-1], first), f[25:], g[25:])
    singly = one_by_one(f, g, runs)
    for name in set(Totals._fields) - {"moved"}:
        block = np.concatenate([getattr(first, name), getattr(second, name)])
        single = np.array([getattr(totals, name) for totals in singly])
        if name == "rounds" and runs is not None:
            single = single[:, 0, 0]  # an engine counts them for every run, a block once
        if name in ADDED or whole:
            np.testing.assert_array_equal(block, single.reshape(block.shape), err_msg=name)
        else:
            np.testing.assert_allclose(block, single.reshape(block.shape), rtol=0.0, atol=1e-12, err_msg=name)


def test_a_session_keeps_a_part_of_the_same_sums():
    f, g = blocks(None, 3, False)
    session, game = RunningTotals(0.0, np.zeros(3), np.zeros(3)), accumulate(empty((), 3), f, g)
    for t, (cost, values) in enumerate(zip(f.tolist(), g, strict=True)):
        session = session.add(cost, values)
        assert session.cost == game.cost[t]
        np.testing.assert_array_equal(session.hard, game.hard[t])
        np.testing.assert_array_equal(session.signed, game.soft[t])


def test_new_constraints_begin_at_zero():
    wide = RunningTotals(1.0, np.ones(1), np.array([-1.0])).padded(3)
    assert (wide.hard.tolist(), wide.signed.tolist()) == ([1.0, 0.0, 0.0], [-1.0, 0.0, 0.0])
    assert wide.padded(2) is wide


@pytest.mark.parametrize("bad", ["f", "g"])
def test_the_count_stops_before_a_round_that_is_not_finite(bad):
    f, g = blocks(None, 2, False, rounds=5)
    (f if bad == "f" else g)[2] = np.nan
    with np.errstate(invalid="ignore"):
        assert [float(totals.rounds) for totals in one_by_one(f, g, None)] == [1.0, 2.0, 2.0, 2.0, 2.0]


def test_a_policy_that_sums_says_what_a_trace_says():
    problem = bridle.problem("halfspaces", horizon=40, dim=3)
    trace = bridle.play(bridle.policy_for("sinha2024", problem), problem)
    policy = summing(trace.policy.record, np.zeros(trace.totals.hard.shape[-1]))
    state = policy.init(trace.x1)
    for block in trace.blocks():
        for t in range(len(next(iter(records.leaves(block).values())))):
            chosen = records.take(block, float(t))
            state = policy.update(state, chosen.reveal(policy.decide(state)))
    for name in ADDED:
        np.testing.assert_array_equal(getattr(state.sums, name), getattr(trace.totals, name), err_msg=name)

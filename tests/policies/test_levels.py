"""Levels that keep a share of rounds: the identity in whole numbers, and the most violations there can be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bridle.core import InputError
from bridle.policies.levels import LevelState, fraction, make_level, most_violations

RUNS = 100
SHARES = [0.05, 0.01, 1 / 3, 0.123456]


class Opponent:
    """Decides after seeing the levels which limits are violated; by run: at random, always, patiently, in waves, teasing."""

    def __init__(self, seed, k):
        self.rng, self.modes = np.random.default_rng(seed), np.arange(RUNS)[:, None] % 5
        self.k, self.t = k, 0

    def answer(self, m, forced):
        self.t += 1
        noise = self.rng.random(m.shape)
        wave = np.full(m.shape, (self.t // 300) % 2 == 0)
        wants = np.choose(self.modes, [noise < 0.1, noise < 1.0, m < 4.0, wave, m > noise * 8.0 - 1.0])
        return wants & ~forced | (forced & (noise < 0.01)), noise


@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "late", "seed"), [(10_000, False, 0), (2_000, True, 1)])
def test_the_identity_is_exact_on_a_million_rounds(rounds, late, seed):
    """100 adaptive opponents for 10,000 rounds each: whole numbers throughout, and the bound after every round and in every window."""
    level, k = make_level(SHARES, 8.0, -3.0, 0.1), len(SHARES)
    state, opponent = level.init(np.zeros((RUNS, 1))), Opponent(seed, k)
    rng = np.random.default_rng([seed, 1])
    lowest = np.zeros((RUNS, k))  # the least of (level, in violations) - (violations) + eps n + excused, over all starts so far
    worst = 0.0
    for t in range(rounds):
        if late and t in (300, 900):
            state = state._replace(open=state.open + 3.0)
        forced = level.at_top(state).max(axis=-1, keepdims=True) > 0.0
        wants, noise = opponent.answer(level.of(state), forced)
        counted, stuck = (noise < 0.9) * 1.0, (rng.random((RUNS, k)) < 0.05) * 1.0
        state = level.move(state, wants * 1.0, counted, forced, stuck)
        if t % 1_000 == 999:
            assert_exact(level, state)
        n, V, excess = state.counted, state.violated, (1.0 - level.share) * state.unavoidable
        most = most_violations(level.share, n, level.top * (1.0 + state.open), 0.0, state.open, state.unavoidable)
        assert (most >= V).all()
        # Every window that ends here: its violations are at most eps n + (top - the level at its start) + (1 - eps) (1 + open) + excess.
        since = V - level.share * n - excess
        allowed = level.top * (1.0 + state.open) + (1.0 - level.share) * (1.0 + state.open)
        worst = max(worst, float(((since - lowest) / allowed).max()))
        lowest = np.minimum(lowest, since - state.units / level.q)
    assert worst <= 1.0 + 1e-9
    assert worst > (0.9 if not late else 0.5)
    assert state.unavoidable.sum() > 0
    assert state.raised.sum() > 0


def assert_exact(level, state):
    """The identity in Python's whole numbers."""
    assert (level.identity(state) == 0.0).all()
    for i, share in enumerate(map(Fraction, map(fraction, SHARES))):
        p, q = share.numerator, share.denominator
        for run in (0, 1, 2, 3, 4):
            u, V, n, raised, excused = (
                int(getattr(state, name)[run, i]) for name in ("units", "violated", "counted", "raised", "unavoidable")
            )
            assert q * V == p * n + u - raised + (q - p) * excused
            assert u == state.units[run, i]


@pytest.mark.parametrize("share", [0.05, 0.01, 0.3])
def test_always_violating_comes_to_the_bound(share):
    """Whoever violates whenever the safe action is not forced gets all that is allowed, to less than one violation."""
    level = make_level([share], 8.0, -3.0, 0.1)
    state, gap, ratios = level.init(np.zeros(1)), [], []
    for _ in range(4_000):
        forced = bool(level.at_top(state)[0])
        state = level.move(state, np.array([0.0 if forced else 1.0]), np.ones(1), forced, np.zeros(1))
        most = most_violations(share, state.counted[0], level.top)
        gap.append(most - state.violated[0])
        ratios.append(state.violated[0] / most)
    assert min(gap) >= -1e-9
    # The level is a whole number below the top, so that the last 1/q is never had: a constant smaller by more than that would fail.
    assert min(gap[200:]) == pytest.approx(1.0 / level.q[0])
    assert max(ratios) > 0.999


def test_any_window_gets_no_more_than_from_the_floor():
    """A quiet time sinks the level to its floor, and no further; then everything violates."""
    level = make_level([0.05], 8.0, -3.0, 0.1)
    state = level.init(np.zeros(1))
    for _ in range(3_000):
        state = level.move(state, np.zeros(1), np.ones(1), False, np.zeros(1))
    assert level.of(state)[0] == -3.0
    quiet, n, largest = state, 0, 0.0
    while n < 2_000:
        forced, n = bool(level.at_top(state)[0]), n + 1
        state = level.move(state, np.array([0.0 if forced else 1.0]), np.ones(1), forced, np.zeros(1))
        violated = state.violated[0] - quiet.violated[0]
        assert violated <= most_violations(0.05, n, level.top, level.bottom) + 1e-9
        largest = max(largest, violated - 0.05 * n)
    assert largest == pytest.approx(110.95 - 0.05)  # M/eta = 80, the floor 30 below, and all but the last 1/q
    assert (level.identity(state) == 0.0).all()


def test_a_level_that_is_stuck_does_not_sink():
    level = make_level([0.05], 8.0, -3.0, 0.1)
    state = level.init(np.zeros(1))
    for _ in range(500):
        state = level.move(state, np.zeros(1), np.ones(1), False, np.ones(1))
    assert (level.of(state)[0], state.raised[0], state.counted[0]) == (0.0, 500.0, 500.0)
    up = level.move(state, np.ones(1), np.ones(1), False, np.ones(1))
    assert up.units[0] == 19.0  # a violation moves it all the same: q - p


def test_what_is_not_counted_moves_nothing():
    level = make_level([0.05, 0.2], 8.0, -3.0, 0.1)
    state = level.move(level.init(np.zeros(1)), np.ones(2), np.array([1.0, 0.0]), False, np.zeros(2))
    assert state.units.tolist() == [19.0, 0.0]
    assert state.counted.tolist() == state.violated.tolist() == [1.0, 0.0]


def test_at_the_top_only_the_safe_action_is_excused():
    """What comes late of another action counts as it is; so do violations of the safe one below the top."""
    level = make_level([0.05], 8.0, -3.0, 0.1)
    start = level.init(np.zeros(1))
    top = start._replace(units=np.array([1600.0]))
    below = start._replace(units=np.array([1599.0]))
    one = np.ones(1)
    for state, safe, units, excused in ((top, True, 1600.0, 1.0), (top, False, 1619.0, 0.0), (below, True, 1618.0, 0.0)):
        after = level.move(state, one, one, safe, 0.0 * one)
        assert (after.units[0], after.unavoidable[0], after.violated[0]) == (units, excused, 1.0)


def test_more_open_rounds_make_steps_shorter_and_change_no_count():
    level = make_level([0.05], 8.0, -3.0, 0.1)
    state = level.move(level.init(np.zeros(1)), np.ones(1), np.ones(1), False, np.zeros(1))
    late = state._replace(open=3.0)
    assert level.of(state)[0] == pytest.approx(0.095)
    assert level.of(late)[0] == pytest.approx(0.095 / 4)
    assert (level.identity(late) == 0.0).all()
    assert not level.at_top(late._replace(units=np.array([6399.0])))[0]
    assert level.at_top(late._replace(units=np.array([6400.0])))[0]


def test_the_identity_at_fixed_numbers():
    """q V - p n - u + raised - (q - p) unavoidable, with a share of 3/10 and another number for each."""
    level = make_level([0.3], 8.0, -3.0, 0.1)
    state = LevelState(*(np.array([number]) for number in (2.0, 5.0, 11.0, 13.0, 3.0)), open=0.0)
    assert level.identity(state)[0] == 10.0 * 5.0 - 3.0 * 11.0 - 2.0 + 13.0 - 7.0 * 3.0


def test_the_most_violations_at_fixed_numbers():
    """eps n + (M - m)/eta + (1 - eps) (1 + open + unavoidable), each with another number."""
    assert most_violations(0.2, 50.0, 30.0, 7.0, 3.0, 5.0) == pytest.approx(10.0 + 23.0 + 0.8 * 9.0)
    assert most_violations(0.05, 1_000.0, 80.0) == pytest.approx(50.0 + 80.0 + 0.95)


@pytest.mark.parametrize(
    ("share", "exact"), [(0.05, "1/20"), (0.01, "1/100"), (1 / 3, "1/3"), (0.123456, "1929/15625"), (1e-6, "1/1000000")]
)
def test_shares_are_fractions(share, exact):
    assert str(fraction(share)) == exact


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1e-9, float("nan"), "much", 2])
def test_a_share_is_between_0_and_1(share):
    with pytest.raises(InputError, match="at_most must be"):
        fraction(share)


def test_highest_and_lowest_levels_are_whole_violations():
    level = make_level([0.05], 8.0, -3.0, 0.7)
    assert (level.top, level.bottom) == (12.0, -5.0)
    assert make_level([0.05], 8.0, -3.0, 0.1)[3:] == (80.0, -30.0)

"""Rates that a debt keeps: the identity, its bound on every stream, late labels, and the base that learns before them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.adapters.levels import (
    ALERTS,
    FALSE_POSITIVES,
    FIRST_RECALL,
    PRECISION,
    RECALL,
    TOP,
    least_debt,
    make_rate_level,
    most_debt,
    swing,
)
from bridle.adapters.rate_limits import AlertRate, FalsePositiveRate, Precision, Recall
from bridle.adapters.score_bases import Buffer
from bridle.adapters.thresholds import learn_batch, thresholds
from helpers.rate_streams import Scored, calibrated, hostile, play_rates

LIMITS = {
    "recall": Recall(0.9),
    "recall, buffer": Recall(0.9, base="buffer"),
    "first recall": Recall(0.7, label=0),
    "false positives": FalsePositiveRate(0.03),
    "alerts": AlertRate(0.02),
    "precision": Precision(0.6),
}


def counted_and_violated(name: str, alarms: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a limit counts and what violates it, said once more."""
    if name.startswith("recall"):
        return positive, positive & ~alarms
    if name in ("false positives", "first recall"):
        return ~positive, ~positive & alarms
    return (np.ones_like(alarms), alarms) if name == "alerts" else (alarms, alarms & ~positive)


@pytest.mark.parametrize("name", LIMITS)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 150), delay=st.integers(0, 40), own=st.booleans())
@settings(max_examples=12, deadline=None)
def test_the_identity_holds_on_every_stream_at_every_time(name, seed, rows, delay, own):
    stream = (calibrated if own else hostile)(rows, seed)
    delays = np.random.default_rng(seed).integers(0, delay + 1, rows)
    model = thresholds([LIMITS[name]])
    level, played = model.rates[0], play_rates(model, stream, delays)
    counted, violated = counted_and_violated(name, played.alarms, stream.signs > 0.0)
    final = played.state.rates[0].level
    assert (final.counted, final.violated) == (counted.sum(), violated.sum())
    assert abs(violated.sum() - level.share * counted.sum() - level.debt(played.state.rates[0])) < 1e-9
    most = most_debt(level.share, level.eta, delay)
    for earlier in played.states[:: max(1, rows // 7)]:
        before, after = earlier.rates[0], played.state.rates[0]
        n = after.level.counted - before.level.counted
        window = after.level.violated - before.level.violated - level.share * n
        assert abs(window - (level.debt(after) - level.debt(before))) < 1e-9
        assert least_debt(level.share, level.eta, delay) <= level.debt(before) <= most


@pytest.mark.parametrize(
    ("rate", "positive", "sd"), [(RECALL, 1.0, 1), (FALSE_POSITIVES, -1.0, -1), (FIRST_RECALL, -1.0, -1), (ALERTS, 1.0, -1)]
)
def test_an_adversary_reaches_the_bound_and_nothing_beyond(rate, positive, sd):
    """It violates whenever the level lets it, from the worst debt from which it can: 79.9 + 0.9."""
    level = make_rate_level(rate, 0.1)
    state, debts = level.start(), []
    for row in range(400):
        th = level.threshold(state)
        violate = row >= 2  # 89 * 0.9 - 2 * 0.1 = 79.9
        score = (0.0 if np.isinf(th) else th) + (-1.0 if violate == (sd > 0) else 1.0)
        alarm = 1.0 * (score > th)
        state, due = level.look(state, score, alarm, row)
        state = level.settle(state, score, alarm, due, positive, row)
        debts.append(level.debt(state))
    assert max(debts) == pytest.approx(80.8, abs=1e-9)
    assert most_debt(0.1, 0.05) - 0.2 < max(debts) <= most_debt(0.1, 0.05)


def test_the_other_side_is_reached_too():
    level = make_rate_level(RECALL, 0.9)
    state, debts = level.start(), []
    for row in range(400):
        th = level.threshold(state)
        score = (0.0 if np.isinf(th) else th) + 1.0
        alarm = 1.0 * (score > th)
        state, due = level.look(state, score, alarm, row)
        state = level.settle(state, score, alarm, due, 1.0, row)
        debts.append(level.debt(state))
    assert least_debt(0.9, 0.05) <= min(debts) < -TOP / 0.05


def test_open_rows_add_what_the_bound_says():
    """An adversary opens rows just below the top, which all turn out to violate."""
    level, waiting = make_rate_level(RECALL, 0.1), 30
    state = level.start()
    for row in range(2 + 89):  # to a debt of 79.9, as above
        score = level.threshold(state) + (1.0 if row < 2 else -1.0)
        alarm = 1.0 * (score > level.threshold(state))
        state, due = level.look(state, score, alarm, row)
        state = level.settle(state, score, alarm, due, 1.0, row)
    opened = []
    for row in range(waiting + 1):
        alarm = 1.0 * (level.threshold(state) < -60.0)  # the model is sure that it does not count, so that nothing is due
        state, due = level.look(state, -60.0, alarm, row)
        opened.append((alarm, due))
    for alarm, due in opened:
        state = level.settle(state, -60.0, alarm, due, 1.0, 0.0)
    assert state.waiting.most == waiting
    assert most_debt(0.1, 0.05, waiting) - 0.1 * waiting - 0.2 < level.debt(state) <= most_debt(0.1, 0.05, waiting)


def transcribed(scores, signs, eps, recall):
    """The update as it is written down, without anything that is due: floats alone, sharing no code."""
    b, sp, mu, W, D, sd, alarms = 0.0, 1.0, 0.0, 0.0, 0.0, (1.0 if recall else -1.0), []
    for s, y in zip(scores, signs, strict=True):
        x = 0.05 * D
        th = b - sd * sp * x * (1.0 + abs(x))
        if D >= 80.0:
            th = -sd * np.inf
        if D <= -80.0:
            th = sd * np.inf
        alarms.append(s > th)
        p = 1.0 / (1.0 + np.exp(-s))
        q = p if recall else 1.0 - p
        W += q
        violated = s <= b if recall else s > b
        b -= sd * sp * max(0.03, 3.0 / np.sqrt(1.0 + W)) * q * (violated - eps)
        weight = max(q / W, 0.01 * q)
        mu, sp = mu + weight * (s - mu), sp + weight * (abs(s - mu) - sp)
        if (y > 0) == recall:
            D += ((not alarms[-1]) if recall else alarms[-1]) - eps
    return np.array(alarms), D, b


@pytest.mark.parametrize("recall", [True, False])
def test_without_delay_it_is_the_written_update_row_by_row(recall):
    stream = calibrated(3000, 1)
    model = thresholds([Recall(0.9) if recall else FalsePositiveRate(0.05)])
    played = play_rates(model, stream)
    alarms, debt, base = transcribed(stream.scores.tolist(), stream.signs.tolist(), 0.1 if recall else 0.05, recall)
    assert np.array_equal(played.alarms, alarms)
    assert model.rates[0].debt(played.state.rates[0]) == pytest.approx(debt, abs=1e-9)
    assert played.state.rates[0].base.at == pytest.approx(base, abs=1e-9)
    assert played.state.rates[0].waiting == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("base", ["model", "buffer"])
def test_at_no_delay_what_is_due_changes_no_bit(base):
    """The level with open rows forgotten and the level with them are the same where each label comes before the next row."""
    stream, model = calibrated(600, 2), thresholds([Recall(0.9, base=base)])
    level, state, plain = model.rates[0], model.rates[0].start(), model.rates[0].start()
    for row, (score, sign) in enumerate(zip(stream.scores.tolist(), stream.signs.tolist(), strict=True)):
        assert level.threshold(state) == level.threshold(plain)
        alarm = 1.0 * (score > level.threshold(state))
        state, due = level.look(state, score, alarm, row)
        state = level.settle(state, score, alarm, due, sign, row)
        before = plain.waiting
        plain, due = level.look(plain, score, alarm, row)
        plain = level.settle(plain._replace(waiting=before), score, alarm, 0.0, sign, row)._replace(waiting=before)


def test_a_label_that_never_comes_can_be_dropped():
    model = thresholds([Recall(0.9)])
    state, seen = model.look(model.start(), 0.3)
    assert state.rates[0].waiting.due != 0.0
    after = model.drop(state, seen)
    assert after.rates[0].waiting == (0.0, 0.0, 0.0)
    assert after.rates[0].level == model.start().rates[0].level


@pytest.mark.slow
def test_late_labels_counted_in_advance_do_not_swing():
    """Where they are not, the threshold overshoots while it waits, and far more rows are alarms for the same recall."""
    stream, model, delay = calibrated(5000, 3, shift=0.5), thresholds([Recall(0.9)]), 1000
    at_once, late = play_rates(model, stream), play_rates(model, stream, delay)
    state, open_rows, alarms = model.start(), [], []
    for t in range(len(stream.scores)):  # the same with nothing due
        state, seen = model.look(state, float(stream.scores[t]))
        alarms.append(seen.alarm > 0.0)
        state = state._replace(rates=(state.rates[0]._replace(waiting=state.rates[0].waiting._replace(due=0.0)),))
        open_rows.append(seen._replace(rates=(0.0,)))
        if t >= delay:
            state = model.count(state, open_rows[t - delay], float(stream.signs[t - delay]))
            state = state._replace(rates=(state.rates[0]._replace(waiting=state.rates[0].waiting._replace(due=0.0)),))
    negative = stream.signs < 0.0
    false_alarms = [found[negative].mean() for found in (at_once.alarms, late.alarms, np.array(alarms))]
    assert abs(false_alarms[1] - false_alarms[0]) < 0.02
    recall = [found[~negative].mean() for found in (late.alarms, np.array(alarms))]
    assert abs(recall[0] - 0.9) < 0.01
    assert false_alarms[2] > false_alarms[0] + 0.1


@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_a_batch_is_decided_by_the_level_of_its_start(seed, sizes):
    stream, model, begin = hostile(sum(sizes), seed), thresholds([Recall(0.8)]), 0
    state, all_alarms = model.start(), []
    for size in sizes:
        part = slice(begin, begin + size)
        wanted = stream.scores[part] > model.threshold(state)
        state, alarms = learn_batch(model, state, stream.scores[part], stream.signs[part])
        assert np.array_equal(alarms > 0.0, wanted)
        all_alarms, begin = [*all_alarms, *(alarms > 0.0)], begin + size
    level, held, positive = model.rates[0], state.rates[0], stream.signs > 0.0
    assert held.level.violated == (positive & ~np.array(all_alarms)).sum()
    assert abs(held.level.violated - 0.2 * held.level.counted - level.debt(held)) < 1e-9
    assert held.waiting.most == max(sizes) - 1
    assert level.debt(held) <= most_debt(0.2, 0.05, max(sizes) - 1)


def test_where_all_labels_are_of_one_class_the_other_limit_has_no_debt():
    stream = calibrated(200, 5)._replace(signs=np.ones(200))
    model = thresholds([FalsePositiveRate(0.01)])
    assert model.rates[0].debt(play_rates(model, stream).state.rates[0]) == 0.0


@given(
    scores=st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0, 2.5, -1.0, 7.0]), st.booleans()), min_size=1, max_size=60),
    room=st.integers(1, 12),
    share=st.sampled_from([0.05, 0.1, 0.3, 0.5]),
    sd=st.sampled_from([1.0, -1.0]),
)
@settings(deadline=None)
def test_the_buffer_is_the_quantile_of_the_last_counted_scores(scores, room, share, sd):
    base, held = Buffer(room), []
    state = base.start()
    for score, counts in scores:
        state = base.settle(state, score, 1.0 * counts, share, sd)
        held = (held + [score] * counts)[-room:]
        if held:
            allowed = int(np.floor(share * len(held) + 1e-9))
            rank = max(1, allowed) if sd > 0.0 else len(held) - allowed
            assert base.place(state) == sorted(held)[rank - 1]
        else:
            assert base.place(state) == 0.0


def test_the_rate_comes_out_as_asked_with_the_other_side_near_the_best():
    stream = calibrated(4000, 4)
    positive = stream.signs > 0.0
    played = play_rates(thresholds([Recall(0.9)]), stream)
    best = (stream.scores[~positive] <= np.quantile(stream.scores[positive], 0.1)).mean()
    assert played.alarms[positive].mean() == pytest.approx(0.9, abs=0.005)
    assert (~played.alarms[~positive]).mean() > best - 0.02


def test_a_rate_that_nothing_can_reach_ends_in_the_safe_action():
    """Scores say nothing and are all the same: alarms for all rows, or for none, alternate so that the rate holds."""
    stream = Scored(np.full(4000, -3.0), np.ones(4000), np.full(4000, np.nan))
    played = play_rates(thresholds([Recall(0.9)]), stream)
    assert played.alarms.mean() == pytest.approx(0.9, abs=most_debt(0.1, 0.05) / 4000)


def test_the_map_of_the_debt_is_odd_and_grows():
    levels = np.linspace(-4.0, 4.0, 81)
    assert np.all(np.diff(swing(levels)) > 0.0)
    assert np.allclose(swing(levels), -swing(-levels))
    assert swing(4.0) == 20.0


def test_precision_counts_its_own_alarms():
    level = make_rate_level(PRECISION, 0.4)
    state = level.start()
    for alarm, sign in ((1.0, 1.0), (0.0, -1.0), (1.0, -1.0), (0.0, 1.0)):
        state, due = level.look(state, 1.0, alarm, 0.0)
        state = level.settle(state, 1.0, alarm, due, sign, 0.0)
    assert (state.level.counted, state.level.violated, level.debt(state)) == (2.0, 1.0, pytest.approx(0.2))

"""Rates that a debt keeps: the identity, its bound on every stream, late labels, and the base that learns before them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.core import InputError
from bridle.limits import AlertRate, DemographicParity, EqualOpportunity, FalsePositiveRate, Precision, Recall
from bridle.limits.debts import FLOOR, TOP, Seen, swing
from bridle.limits.rates import (
    ALERTS,
    FALSE_POSITIVES,
    FIRST_RECALL,
    PRECISION,
    RECALL,
    Buffer,
    least_debt,
    make_rate_level,
    most_debt,
)
from bridle.limits.report import LimitTable
from bridle.limits.thresholds import RateLimiter, learn_batch, thresholds
from helpers.extent import examples
from helpers.rate_streams import OwnRate, Scored, calibrated, easy, hostile, play_rates, quiet_positives

QUIET_POSITIVES = quiet_positives(0.2)

LIMITS = {
    "recall": Recall(0.9),
    "recall, buffer": Recall(0.9, base="buffer"),
    "first recall": Recall(0.7, label=0),
    "false positives": FalsePositiveRate(0.03),
    "alerts": AlertRate(0.02),
    "precision": Precision(0.6),
    "own": QUIET_POSITIVES,
}


def counted_and_violated(name: str, alarms: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a limit counts and what violates it, said once more."""
    if name.startswith("recall"):
        return positive, positive & ~alarms
    if name in ("false positives", "first recall"):
        return ~positive, ~positive & alarms
    if name == "own":
        return ~alarms, ~alarms & positive
    return (np.ones_like(alarms), alarms) if name == "alerts" else (alarms, alarms & ~positive)


def assert_contained(model, state):
    """Every interval that is stated has what was measured in it."""
    for report in model.report(state):
        if report.proved is None:
            assert report.why
        elif report.measured is not None:
            assert report.proved[0] - 1e-9 <= report.measured <= report.proved[1] + 1e-9, report


@pytest.mark.parametrize("name", LIMITS)
@given(
    seed=st.integers(0, 10**6),
    rows=st.one_of(st.integers(1, 150), st.integers(300, 700)),
    delay=st.integers(0, 40),
    make=st.sampled_from([calibrated, hostile, easy]),
)
@settings(max_examples=12, deadline=None)
def test_the_identity_holds_on_every_stream_at_every_time(name, seed, rows, delay, make):
    stream = make(rows, seed)
    delays = np.random.default_rng(seed).integers(0, delay + 1, rows)
    model = thresholds([LIMITS[name]])
    level, played = model.rates[0], play_rates(model, stream, delays)
    counted, violated = counted_and_violated(name, played.alarms, stream.signs > 0.0)
    final = played.state.rates[0].level
    assert (final.counted, final.violated) == (counted.sum(), violated.sum())
    assert level.level.identity(final) == 0.0
    q, most = level.level.q, most_debt(level.share, level.eta, delay)
    least = least_debt(level.share, level.eta, delay) if level.two_sided else FLOOR
    for earlier in played.states[:: max(1, rows // 7)]:
        before, after = earlier.rates[0], played.state.rates[0]
        n = after.level.counted - before.level.counted
        window = after.level.violated - before.level.violated - level.share * n + (after.level.raised - before.level.raised) / q
        assert abs(window - (level.debt(after) - level.debt(before))) < 1e-9
        assert least <= level.debt(before) <= most
        assert_contained(model, earlier)
    assert_contained(model, played.state)
    assert level.two_sided == (name not in ("precision", "own"))
    assert final.raised == 0.0 or not level.two_sided


OWN = QUIET_POSITIVES.levels((0, 1), False, False)[0].rate
ADVERSARIES = [  # a rate, the label of a row that violates it, and the label and the alarm of one that counts and does not
    (RECALL, 1.0, 1.0, 1.0),
    (FALSE_POSITIVES, -1.0, -1.0, 0.0),
    (FIRST_RECALL, -1.0, -1.0, 0.0),
    (ALERTS, 1.0, 1.0, 0.0),
    (PRECISION, -1.0, 1.0, 1.0),
    (OWN, 1.0, -1.0, 0.0),
]


def attack(level, labels, wanted):
    """The debts where each row is put on the side of the threshold that is wanted, as far as there is one; and the last state."""
    state, debts = level.start(), []
    for row, (label, alarm) in enumerate(zip(labels, wanted, strict=True)):
        th = level.threshold(state)
        score = (0.0 if np.isinf(th) else th) + (1.0 if alarm else -1.0)
        done = 1.0 * (score > th)
        state, due = level.look(state, Seen(score, done), done, row)
        state = level.settle(state, Seen(score, done), due, label, row)
        debts.append(level.debt(state))
    return debts, state


@pytest.mark.parametrize(("rate", "bad", "good", "fine"), ADVERSARIES)
def test_an_adversary_reaches_the_bound_and_nothing_beyond(rate, bad, good, fine):
    """It violates whenever the level lets it, from the worst debt from which it can: 79.9 + 0.9."""
    level = make_rate_level(rate, 0.1)
    worst = 0.0 if rate.sd > 0.0 else 1.0  # 89 * 0.9 - 2 * 0.1 = 79.9
    debts, _ = attack(level, [good] * 2 + [bad] * 398, [fine] * 2 + [worst] * 398)
    assert max(debts) == pytest.approx(80.8, abs=1e-9)
    assert most_debt(0.1, 0.05) - 0.2 < max(debts) <= most_debt(0.1, 0.05)


@pytest.mark.parametrize(("rate", "bad", "good", "fine"), ADVERSARIES)
def test_the_other_side_is_reached_too_or_has_a_floor(rate, bad, good, fine):
    """No row violates if the level lets it: -4/eta is reached if the opposite of the safe action always violates, else the floor."""
    level = make_rate_level(rate, 0.9)
    debts, state = attack(level, [good] * 400, [fine] * 400)
    if level.two_sided:
        assert least_debt(0.9, 0.05) <= min(debts) < -TOP / 0.05
        assert state.level.raised == 0.0
    else:
        assert min(debts) == FLOOR
        assert state.level.raised == pytest.approx((400 * 0.9 + FLOOR) * level.level.q)
    assert level.level.identity(state.level) == 0.0
    assert level.two_sided == (rate not in (PRECISION, OWN))


def test_true_alarms_do_not_pay_for_thousands_of_false_ones():
    """3,000 true alarms, then negatives at log-odds -6: at most (80 + 20)/0.5 of them are alarms, and one more."""
    model, rng = thresholds([Precision(0.5)]), np.random.default_rng(0)
    first = Scored(3.0 + rng.standard_normal(3000), np.ones(3000), np.full(3000, np.nan))
    state = play_rates(model, first).state
    [report] = model.report(state)
    assert (report.measured, report.seen["debt"]) == (1.0, FLOOR)
    assert report.proved == (pytest.approx(0.5 - 80.5 / 3000), 1.0)
    assert report.words == "at most 0.0268 below what was asked on every stream of 3,000 counted rows"
    false_alarms = 0.0
    for score in -6.0 + 0.3 * rng.standard_normal(3000):
        state, seen = model.look(state, float(score))
        state = model.count(state, seen, -1.0)
        false_alarms += seen.alarm
    assert false_alarms <= 201.0
    assert_contained(model, state)


def test_credit_in_advance_has_the_floor_too():
    """Rows that wait for their labels cannot bring the threshold further down than the floor does."""
    level = make_rate_level(PRECISION, 0.5)
    state = level.start()
    state = state._replace(waiting=state.waiting._replace(due=-500.0, now=1000.0, most=1000.0))
    assert level.threshold(state) == swing(0.05 * FLOOR)


@pytest.mark.parametrize("eta", [0.05, 0.2, 0.3, 0.6, 3.0, 8.0])
def test_a_limit_with_a_floor_never_takes_the_opposite_of_its_safe_action(eta):
    level = make_rate_level(PRECISION, 0.3, eta=eta)
    debts, state = attack(level, [1.0] * 300, [True] * 300)
    assert -TOP / eta < min(debts) == level.debt(state) == level.level.bottom
    assert np.isfinite(level.threshold(state))
    assert level.level.identity(state.level) == 0.0


def test_quiet_negatives_do_not_prove_a_least_share_of_positives():
    model, rng = thresholds([QUIET_POSITIVES]), np.random.default_rng(0)
    state = play_rates(model, Scored(-3.0 + rng.standard_normal(2000), -np.ones(2000), np.full(2000, np.nan))).state
    [report] = model.report(state)
    assert report.measured == report.proved[0] == 0.0
    assert report.proved[1] == pytest.approx(0.2 + 80.8 / report.counted)
    assert report.json()["proved"] == list(report.proved)


CELLS = [cells for cells in product((0.0, 1.0), repeat=4) if any(cells)]


@given(
    counts=st.sampled_from(CELLS),
    violates=st.sampled_from(CELLS),
    sd=st.sampled_from([-1.0, 1.0]),
    at_most=st.sampled_from([0.1, 0.5, 0.9]),
    others=st.lists(
        st.sampled_from([Recall(0.8), Precision(0.5), AlertRate(0.2), DemographicParity(0.1), EqualOpportunity(0.05)]), max_size=2
    ),
    priority=st.integers(0, 2),
    size=st.sampled_from([1, 7, 200]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=examples(20, 60), deadline=None)
def test_whatever_a_rate_of_ones_own_is_what_is_proved_holds(counts, violates, sd, at_most, others, priority, size, seed):
    """Any cells, either side, alone or among others, in batches: the interval contains what was measured, and the identity holds."""
    limits = [OwnRate(counts, violates, sd, at_most), *others]
    model, stream = thresholds(limits, min(priority, len(others))), (easy if seed % 3 else hostile)(400, seed)
    state = model.start()
    for begin in range(0, 400, size):
        part = slice(begin, begin + size)
        state, _ = learn_batch(model, state, stream.scores[part], stream.signs[part], stream.groups[part])
        for level, held in zip(model.rates, state.rates, strict=True):
            assert level.level.identity(held.level) == 0.0
        if size > 1 or begin % 50 == 49:
            assert_contained(model, state)


def test_a_safe_action_that_violates_proves_nothing():
    """Recall with the wrong sign: without alarms every positive is missed, and nobody promises anything."""
    model = thresholds([OwnRate((1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), -1.0, 0.1)])
    assert not model.rates[0].rate.capped
    state = play_rates(model, Scored(np.full(300, -3.0), np.ones(300), np.full(300, np.nan))).state
    [report] = model.report(state)
    assert report.measured == 1.0
    assert (report.proved, report.why) == (None, "not bounded, because even the safe action can violate it")
    assert report.words == report.why
    assert str(LimitTable([report])).splitlines()[1].split()[7] == "no"


def test_one_end_may_be_proved_without_the_other():
    """Every row violates whatever is done: no upper end, but the opposite of the safe action violates too."""
    model = thresholds([OwnRate((1.0,) * 4, (1.0,) * 4, 1.0, 0.1)])
    [report] = model.report(play_rates(model, easy(900, 0)).state)
    assert report.proved == (pytest.approx(0.1 - 80.1 / 900), 1.0)
    assert report.why


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("base", ["model", "buffer"])
def test_the_safe_action_does_not_depend_on_how_large_scores_are(base):
    limiter, rng = RateLimiter([Recall(0.9, base=base)]), np.random.default_rng(0)
    for _ in range(1000):
        limiter.learn(rng.choice([-1.7e308, 1.7e308], size=1), np.ones(1))
    report = limiter.limits_[0]
    assert report.proved[0] <= report.measured <= report.proved[1]


def test_the_rows_of_a_batch_are_open_to_a_limit_without_labels_too():
    """All 10,000 rows are alarms by the level of the batch's start: the interval allows for it."""
    limiter = RateLimiter([AlertRate(0.01)])
    limiter.learn(np.full(10_000, 10.0), np.ones(10_000))
    [report] = limiter.limits_
    assert report.measured == report.proved[1] == 1.0
    limiter = RateLimiter([AlertRate(0.01)])
    for _ in range(500):
        limiter.learn(np.full(20, 10.0), np.ones(20))
    [report] = limiter.limits_
    assert report.proved[1] == pytest.approx(0.01 + most_debt(0.01, 0.05, 19) / 10_000)
    assert report.measured <= report.proved[1]


@pytest.mark.parametrize(
    ("rate", "says"),
    [
        (
            OwnRate((2.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 1.0, 0.1),
            "counts must be 0 or 1 in every cell of the rate, got Cells(hit=2.0",
        ),
        (OwnRate((1.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0), 1.0, 0.1), "violates must be 0 or 1 in every cell of the rate, got Cells("),
        (OwnRate((1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), 2.0, 0.1), "sd must be 1 or -1, got 2.0"),
        (
            OwnRate((1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), 1.0, 0.1, None),
            "labels must be 1 for a rate whose cells depend on the label, got None",
        ),
    ],
)
def test_a_rate_that_the_proofs_do_not_cover_is_refused(rate, says):
    with pytest.raises(InputError) as trouble:
        thresholds([rate])
    assert says in str(trouble.value)


def test_a_violation_that_is_not_counted_is_none():
    [level] = OwnRate((1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 1.0, 1.0), 1.0, 0.1).levels((0, 1), False, False)
    assert level.rate.violates == RECALL.violates


def test_open_rows_add_what_the_bound_says():
    """An adversary opens rows just below the top, which all turn out to violate."""
    level, waiting = make_rate_level(RECALL, 0.1), 30
    state = level.start()
    for row in range(2 + 89):  # to a debt of 79.9, as above
        score = level.threshold(state) + (1.0 if row < 2 else -1.0)
        alarm = 1.0 * (score > level.threshold(state))
        state, due = level.look(state, Seen(score, alarm), alarm, row)
        state = level.settle(state, Seen(score, alarm), due, 1.0, row)
    opened = []
    for row in range(waiting + 1):
        alarm = 1.0 * (level.threshold(state) < -60.0)  # the model is sure that it does not count, so that nothing is due
        state, due = level.look(state, Seen(-60.0, alarm), alarm, row)
        opened.append((alarm, due))
    for alarm, due in opened:
        state = level.settle(state, Seen(-60.0, alarm), due, 1.0, 0.0)
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
        state, due = level.look(state, Seen(score, alarm), alarm, row)
        state = level.settle(state, Seen(score, alarm), due, sign, row)
        before = plain.waiting
        plain, due = level.look(plain, Seen(score, alarm), alarm, row)
        plain = level.settle(plain._replace(waiting=before), Seen(score, alarm), 0.0, sign, row)._replace(waiting=before)


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
        open_rows.append(seen._replace(kept=(0.0,)))
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
    base, held = Buffer(np.zeros(room)), []
    state = base.start()
    for score, counts in scores:
        state = base.settle(state, score, 1.0 * counts, share, sd)
        held = (held + [score] * counts)[-room:]
        if held:
            allowed = int(np.floor(share * len(held) + 1e-9))
            rank = max(1, allowed) if sd > 0.0 else len(held) - allowed
            assert state.at == sorted(held)[rank - 1]
        else:
            assert state.at == 0.0


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
        state, due = level.look(state, Seen(1.0, alarm), alarm, 0.0)
        state = level.settle(state, Seen(1.0, alarm), due, sign, 0.0)
    assert (state.level.counted, state.level.violated, level.debt(state)) == (2.0, 1.0, pytest.approx(0.2))

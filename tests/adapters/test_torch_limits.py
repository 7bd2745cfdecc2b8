"""Limits by name on a network's batches, and what is reported of them."""

from __future__ import annotations

import copy
import io
import json
import pickle

import numpy as np
import pytest
import torch

from bridle import InputError
from bridle.adapters.torch import (
    AlertBudget,
    ConstrainedOptimizer,
    EqualOpportunity,
    FalsePositiveRate,
    GroupGap,
    MissLoss,
    RateLimiter,
    Recall,
)

torch.set_num_threads(1)  # small batches: more threads only wait for each other


def network(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()


def batch(seed, rows=40):
    """Rows of two groups; the second class is rare, and the groups differ."""
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((rows, 3)), rng.integers(0, 2, rows)
    y = X[:, 0] + 1.6 * groups + 0.5 * rng.standard_normal(rows) > 2.2
    return torch.from_numpy(X), torch.from_numpy(y), torch.from_numpy(groups)


def trained(limits, steps=400, optimizer=None):
    model = network()
    optimizer = (optimizer or (lambda m: ConstrainedOptimizer(torch.optim.Adam(m.parameters(), lr=0.02), constraints=limits)))(model)
    for seed in range(steps):
        X, y, groups = batch(seed)
        out = model(torch.cat([X[:, :2], 0.1 * X[:, 2:] + groups[:, None]], dim=1))[:, 0]
        cost = torch.nn.functional.binary_cross_entropy_with_logits(out, y.double())
        optimizer.step(cost, optimizer.measure(out, y, groups))
    return model, optimizer


# --- what a limit is on a batch -----------------------------------------------------------------------------------------------------------


def test_a_miss_loss_is_the_mean_loss_of_its_class():
    optimizer = ConstrainedOptimizer(torch.optim.SGD(network().parameters(), lr=0.1), constraints=[MissLoss(1, 0.3), MissLoss(0, 0.2)])
    out, y = torch.tensor([2.0, -1.0, 0.5, -3.0]), torch.tensor([1, 0, 1, 0])
    p = 1.0 / (1.0 + np.exp(-out.numpy()))
    found, quiet = optimizer.measure(out, y)
    assert found.item() == pytest.approx(-np.log(p[[0, 2]]).mean() - 0.3, abs=1e-6)
    assert quiet.item() == pytest.approx(-np.log(1.0 - p[[1, 3]]).mean() - 0.2, abs=1e-6)
    for labels in (y.bool(), y.double(), y.tolist()):
        assert [value.item() for value in optimizer.measure(out[:, None], labels)] == [found.item(), quiet.item()]
    assert optimizer.measure(out, torch.ones(4))[1] is None
    assert optimizer.measure(out, torch.zeros(4))[0] is None


def test_of_several_classes_a_miss_loss_is_the_cross_entropy():
    optimizer = ConstrainedOptimizer(torch.optim.SGD(network().parameters(), lr=0.1), constraints=MissLoss(2, 0.3))
    out, y = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [0.5, 0.5, 0.0]]), torch.tensor([2, 1, 2])
    logs = torch.log_softmax(out, dim=1)
    assert optimizer.measure(out, y)[0].item() == pytest.approx(-(logs[0, 2] + logs[2, 2]).item() / 2.0 - 0.3)
    assert optimizer.measure(out, torch.zeros(3))[0] is None
    with pytest.raises(InputError, match=r"label must be one of the classes \[0, 1\], not 2"):
        optimizer.measure(out[:, :2], y)


def test_a_gap_is_between_the_mean_outputs_of_the_groups_both_ways():
    optimizer = ConstrainedOptimizer(torch.optim.SGD(network().parameters(), lr=0.1), constraints=[GroupGap(0.5), "mine"])
    out, groups = torch.tensor([2.0, 1.0, -1.0, 7.0]), torch.tensor([1.0, 1.0, 0.0, float("nan")])
    one, other, mine = optimizer.measure(out, torch.zeros(4), groups, mine=torch.tensor(9.0))
    assert (one.item(), other.item(), mine.item()) == (2.0, -3.0, 9.0)
    assert optimizer.measure(out, torch.zeros(4), torch.ones(4), mine=None) == [None, None, None]
    for arguments, own, said in [
        ((out, torch.zeros(4)), {"mine": out[0]}, "groups must be given with GroupGap"),
        ((out, torch.zeros(4), groups[:2]), {"mine": out[0]}, "groups must be a number for each of the 4 rows"),
        ((out, torch.zeros(3), groups), {"mine": out[0]}, "an output or a row of outputs for each label"),
        ((out, torch.zeros(4), groups), {}, "by name: mine; not none"),
        ((out, torch.zeros(4), groups), {"yours": out[0]}, "by name: mine; not yours"),
        ((torch.zeros(4, 3), torch.zeros(4), groups), {"mine": out[0]}, "GroupGap compares one output a row"),
    ]:
        with pytest.raises(InputError, match=said):
            optimizer.measure(*arguments, **own)


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ([], "at least one"),
        (["a", "a"], "names that differ"),
        ([3], "MissLoss"),
        ([Recall(0.9)], "a limit on a rate, which no gradient can hold.*RateLimiter"),
        (Recall(0.9), "a limit on a rate"),
        ("", "constraints must be"),
        (1.5, "constraints"),
    ],
)
def test_what_is_no_limit_on_a_loss_is_said(constraints, said):
    for make in (lambda m: torch.optim.Adam(m.parameters()), lambda m: m.parameters()):
        settings = {} if isinstance(make(network()), torch.optim.Optimizer) else {"radius": 2.0}
        with pytest.raises(InputError, match=said):
            ConstrainedOptimizer(make(network()), constraints=constraints, **settings)


# --- that they hold, and what is said of them ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_limits_by_name_hold_where_free_training_breaks_them():
    _, free = trained([MissLoss(1, 5.0), GroupGap(50.0)])
    _, held = trained([MissLoss(1, 0.4), GroupGap(0.2)])
    loss, gap = held.limits_
    assert free.limits_[0].recent > 0.55
    assert free.limits_[1].recent > 0.5
    assert abs(loss.recent - 0.4) < 0.05
    assert gap.recent < 0.25
    assert loss.measured <= loss.proved[1]
    assert gap.measured <= gap.proved[1]


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False], ids=["policy", "wrapped"])
def test_the_report_is_what_happened(own):
    """Values given by hand: means over all counted steps and the last thousand, since when it holds, what is proved."""
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    settings = {"constraints": ["mine"]}
    optimizer = (
        ConstrainedOptimizer([weight], radius=1.0, **settings)
        if own
        else ConstrainedOptimizer(torch.optim.SGD([weight], lr=0.0), **settings)
    )
    (nothing,) = optimizer.limits_
    assert (nothing.measured, nothing.counted, nothing.words) == (None, 0, "no row that it speaks of has come")
    values = np.concatenate([np.full(50, 1.0), np.full(200, -0.5), np.full(1200, -0.25)])
    taken = []
    for place, value in enumerate(values):
        if place % 10 == 9:
            optimizer.step(weight.sum(), [None])
        optimizer.step(weight.sum(), weight.sum() * 0.0 + float(value))
        taken.append(optimizer.rounds)
    (report,) = optimizer.limits_
    assert (report.name, report.sense, report.asked, report.counted) == ("mine", "at most", 0.0, 1450)
    assert report.measured == pytest.approx(values.mean())
    assert report.recent == pytest.approx(-0.25)
    assert report.held
    last = np.flatnonzero(np.cumsum(values) > 0.0)[-1]  # the last value after which the mean was above 0
    assert report.since == taken[last] + 1
    if own:
        assert (report.proved, report.price) == (None, None)
        assert "not convex" in report.why
    else:
        assert report.measured <= report.proved[1]
        assert report.price is not None
    assert "mine" in repr(optimizer)
    assert repr(optimizer.limits_) in repr(optimizer)
    json.dumps(optimizer.limits_.json())


@pytest.mark.parametrize("own", [True, False], ids=["policy", "wrapped"])
def test_reports_are_saved_and_copied(own):
    limits = [MissLoss(1, 0.5), GroupGap(0.2)]
    make = (lambda m: ConstrainedOptimizer(m.parameters(), radius=2.0, constraints=limits)) if own else None
    _, optimizer = trained(limits, 30, make)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    _, fresh = trained(limits, 0, make)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    for other in (fresh, copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert other.limits_ == optimizer.limits_
        assert other.limits_[0].counted > 10


def test_a_state_saved_before_there_were_reports_is_loaded():
    model = network()
    optimizer = ConstrainedOptimizer(model.parameters(), radius=2.0)
    optimizer.step(model(torch.ones(1, 3).double()).sum(), model.get_parameter("0.weight").sum())
    saved = optimizer.state_dict()
    del saved["bridle"]["tally"]
    fresh = ConstrainedOptimizer(network().parameters(), radius=2.0)
    fresh.load_state_dict(saved)
    assert (fresh.rounds, fresh.violations) == (1, optimizer.violations)
    assert fresh.limits_[0].counted == 0


# --- rates, beside the network -------------------------------------------------------------------------------------------------------


def test_a_rate_is_held_beside_a_network():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    limiter = RateLimiter([Recall(at_least=0.9)])
    hits = positives = 0
    for seed in range(300):
        X, y, _ = batch(seed)
        out = model(X)[:, 0]
        before = limiter.alarms(out)
        alarms = limiter.learn(out, y)
        assert np.array_equal(before, alarms)
        hits, positives = hits + int((alarms * y.numpy()).sum()), positives + int(y.sum())
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(out, y.double()).backward()
        optimizer.step()
    (report,) = limiter.limits_
    assert report.measured == pytest.approx(hits / positives)
    assert report.proved[0] <= report.measured <= report.proved[1]
    assert abs(report.measured - 0.9) < 0.02
    assert "recall" in repr(limiter)
    assert RateLimiter(Recall(0.9)).limits_ == RateLimiter([Recall(0.9)]).limits_


def test_a_limiter_says_what_it_cannot_read_and_changes_nothing():
    limiter = RateLimiter([EqualOpportunity(gap=0.05, groups=[1, 2]), FalsePositiveRate(0.1)], priority=1)
    limiter.learn([0.5, -0.5], [1, 0], [1, 2])
    before = limiter.limits_
    for arguments, said in [
        (([0.1, np.nan], [1, 0], [1, 2]), "scores must be a finite number for each row"),
        (([[0.1]], [1], [1]), "scores must be a finite number"),
        (([0.1, 0.2], [1, 2], [1, 2]), "labels must be 0 or 1 for each of the 2 scores"),
        (([0.1, 0.2], [1], [1, 2]), "labels must be 0 or 1 for each of the 2 scores"),
        (([0.1, 0.2], [1, 0]), "groups must be given"),
        (([0.1, 0.2], [1, 0], [1]), "groups must be a number for each of the 2 rows"),
        (([0.1, 0.2], [1, 0], [1, 2], [np.nan, 1]), "periods must be a finite number"),
        (([0.1, 0.2], [1, 0], [1, 3]), "group must be one of 1, 2"),
        ((["a", "b"], [1, 0], [1, 2]), "scores must be a finite number"),
    ]:
        with pytest.raises(InputError, match=said):
            limiter.learn(*arguments)
    assert limiter.limits_ == before
    with pytest.raises(InputError, match="limits on rates such as Recall"):
        RateLimiter([MissLoss(1, 0.3)])


def test_a_budget_of_alarms_is_never_overspent_in_a_period():
    limiter, rng, spent = RateLimiter([AlertBudget(5, per="period")]), np.random.default_rng(0), {}
    for day in range(20):
        for _ in range(4):
            scores = rng.normal(size=25)
            alarms = limiter.learn(scores, rng.random(25) < 0.3, periods=np.full(25, day))
            spent[day] = spent.get(day, 0.0) + alarms.sum()
    assert max(spent.values()) <= 5.0
    assert sum(spent.values()) > 50.0
    with pytest.raises(InputError, match="period must not go backward"):
        limiter.learn([0.1], [1], periods=[3])
    with pytest.raises(InputError, match="period must be given"):
        limiter.learn([0.1], [1])


def test_a_batch_is_told_the_alarms_that_are_counted_then():
    limiter, rng = RateLimiter([AlertBudget(3, per=10), Recall(0.9)]), np.random.default_rng(0)
    for _ in range(30):
        scores = rng.normal(0.0, 2.0, size=7)
        told = limiter.alarms(scores)
        assert told.tolist() == limiter.learn(scores, scores > 0.0).tolist()
    assert RateLimiter([AlertBudget(3, per=10)]).alarms(np.full(20, 9.0)).sum() <= 6.0

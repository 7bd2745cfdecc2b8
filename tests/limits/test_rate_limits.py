"""Limits in the user's words: what is refused, and how grids, copies and pickles see them."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest

from bridle import limits
from bridle.adapters import levels as old_levels
from bridle.adapters import limits as old_limits
from bridle.core import InputError
from bridle.limits import (
    AlertBudget,
    AlertRate,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRate,
    FalsePositiveRate,
    GroupGap,
    MissLoss,
    Precision,
    Quantile,
    Recall,
    WeightBudget,
    rates,
)
from bridle.limits.budgets import BudgetLevel
from bridle.limits.groups import GapLevel
from bridle.limits.rates import RateLevel
from bridle.limits.settings import named_parameters, with_parameters

ALL = (
    Recall(0.9, label="fraud", eta=0.03, base="buffer"), FalsePositiveRate(0.01), AlertRate(0.02), AlertBudget(50, 1000), AlertBudget(3),
    Precision(0.5), EqualOpportunity(0.05), DemographicParity(0.1, groups=[0, 1, 2]), EqualizedOdds(0.05),
)  # fmt: skip


KINDS = {
    **{name: [RateLevel] for name in ("Recall", "FalsePositiveRate", "AlertRate", "Precision")},
    "AlertBudget": [BudgetLevel],
    **{name: [GapLevel] for name in ("EqualOpportunity", "DemographicParity")},
    "EqualizedOdds": [GapLevel, GapLevel],
}
"""What keeps each."""


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Recall(1.2), "Recall: at_least must be a share of rows above 0 and below 1, not 1.2"),
        (lambda: Recall(0), "Recall: at_least must be a share of rows above 0 and below 1, not 0"),
        (lambda: Recall(1.0), "Recall: at_least must be a share of rows above 0 and below 1, not 1.0"),
        (lambda: Recall("all"), "Recall: at_least must be a number, not 'all'"),
        (lambda: Recall(0.9, base="guess"), "Recall: base"),
        (lambda: Recall(0.9, eta=0.0), "Recall: eta must be above 0, not 0.0"),
        (lambda: FalsePositiveRate(-0.1), "FalsePositiveRate: at_most must be a share of rows above 0 and below 1, not -0.1"),
        (lambda: AlertRate(eta=2.0), "AlertRate: eta must be at most 1"),
        (lambda: Precision(float("nan")), "Precision: at_least must be finite, not nan"),
        (lambda: AlertBudget(2.5, 100), "AlertBudget: at_most must be a whole number, not 2.5"),
        (lambda: AlertBudget(5, 0), "AlertBudget: per must be 1 or above, not 0"),
        (lambda: AlertBudget(5, "day"), "AlertBudget: per must be a number, not 'day'"),
        (lambda: EqualOpportunity(1.5), "EqualOpportunity: gap must be a difference of shares above 0 and at most 1, not 1.5"),
        (lambda: DemographicParity(0.1, groups=[1]), "DemographicParity: groups must be the different numbers of two groups or more"),
        (lambda: EqualizedOdds(0.1, groups=[1, 1]), "EqualizedOdds: groups must be the different numbers of two groups or more"),
        (lambda: Recall(0.9, label="x").levels(["a", "b"], False, False), "Recall: label must be one of the classes"),
        (lambda: Recall(0.9).set_params(at_least=2.0), "Recall: at_least must be a share"),
        (lambda: Recall(0.9).set_params(at_most=0.2), "at_most"),
        (lambda: with_parameters([Recall(0.9)], {"1__at_least": 0.5}), "constraints have no part '1__at_least'"),
    ],
)
def test_a_bad_limit_is_one_clear_sentence(make, says):
    with pytest.raises(InputError) as trouble:
        make()
    assert says in str(trouble.value)
    assert "\n" not in str(trouble.value)


@pytest.mark.parametrize("limit", ALL, ids=lambda limit: type(limit).__name__)
def test_a_limit_is_a_value(limit):
    assert pickle.loads(pickle.dumps(limit)) == limit == deepcopy(limit)
    assert type(limit)(**limit.get_params(deep=False)) == limit
    assert limit.set_params() == limit
    assert [type(level) for level in limit.levels(["fine", "fraud"], False, False)] == KINDS[type(limit).__name__]


@pytest.mark.parametrize("limit", ALL, ids=lambda limit: type(limit).__name__)
def test_scikit_learn_clones_it(limit):
    base = pytest.importorskip("sklearn.base")
    [copy] = base.clone([limit], safe=False)
    assert copy == limit
    assert type(copy) is type(limit)


def test_a_grid_names_the_settings_of_each_limit():
    limits = [Recall(0.9), DemographicParity(0.1), MissLoss("fraud", 0.3), GroupGap(0.2), WeightBudget(2.0)]
    named = named_parameters(limits)
    assert named["0"] is limits[0]
    assert (named["0__at_least"], named["1__gap"], named["2__label"], named["3__lookback"], named["4__at_most"]) == (
        0.9,
        0.1,
        "fraud",
        1000,
        2.0,
    )
    after = with_parameters(
        limits, {"1__gap": 0.2, "0": Recall(0.5), "0__eta": 0.03, "2__at_most": 0.4, "3__at_most": 0.5, "4__at_most": 1.0}
    )
    assert after == [Recall(0.5, eta=0.03), DemographicParity(0.2), MissLoss("fraud", 0.4), GroupGap(0.5), WeightBudget(1.0)]
    assert limits == [Recall(0.9), DemographicParity(0.1), MissLoss("fraud", 0.3), GroupGap(0.2), WeightBudget(2.0)]


def test_recall_of_the_first_class_is_its_own_false_alarms():
    [level] = Recall(0.95, label="fine").levels(["fine", "fraud"], False, False)
    [other] = FalsePositiveRate(0.05).levels(["fine", "fraud"], False, False)
    assert level.rate._replace(kind=0.0) == other.rate._replace(kind=0.0)
    assert level.share == pytest.approx(other.share)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (Recall(0.9), "Recall(at_least=0.9)"),
        (Recall(0.9, label=0, eta=0.03, base="buffer"), "Recall(at_least=0.9, label=0, eta=0.03, base='buffer')"),
        (AlertBudget(50, per=1000), "AlertBudget(at_most=50, per=1000)"),
        (EqualizedOdds(0.05, groups=[0, 1]), "EqualizedOdds(gap=0.05, groups=[0, 1])"),
        (MissLoss(True, 0.1), "MissLoss(label=True, at_most=0.1)"),
        (GroupGap(0.5, 50), "GroupGap(at_most=0.5, lookback=50)"),
        (Quantile(0.9), "Quantile(level=0.9)"),
        (ErrorRate(2.0, at_most=0.05), "ErrorRate(beyond=2, at_most=0.05)"),
    ],
)
def test_a_limit_is_printed_as_its_user_wrote_it(limit, text):
    assert repr(limit) == text


def test_a_regressors_limits_are_parameters_too():
    limits = [Quantile(0.9), ErrorRate(2.0)]
    assert with_parameters(limits, {"0__level": 0.8, "1__beyond": 3.0}) == [Quantile(0.8), ErrorRate(3.0)]


def test_limits_are_also_where_they_were():
    """Before they had a room of their own."""
    for place, home in ((old_limits, limits), (old_levels, rates)):
        assert all(getattr(place, name) is getattr(home, name) for name in place.__all__)

"""Gates and pacers in the journal of a session: money and decisions are on the disk together, and never overspent."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.durable.journal import KeyConflict
from helpers.durable_runs import crash, journal, rebuilt, url_of

RECORD = {"f": 0.3, "df": [1.0, 0.0], "g": 0.1, "dg": [0.0, 1.0]}


def opened(folder, **more):
    budgets = {"money": bridle.Gate(10.0), "pace": bridle.Pacer(budget=50.0, rounds=100)}
    return bridle.Session.open(url_of(folder), "run", policy=bridle.policy("anytime", bridle.Ball(2)), gates=budgets, **more)


def test_budgets_are_rebuilt_as_they_were(tmp_path):
    gate, pacer = bridle.Gate(10.0), bridle.Pacer(budget=50.0, rounds=100)
    session = rebuilt(opened(tmp_path, snapshot_every=5))
    rng = np.random.default_rng(0)
    for t in range(60):
        value, price = rng.uniform(0.0, 2.0, 2)
        bid = session.gate("pace").bid(value)
        assert bid == pacer.bid(value)
        won = price < bid
        session.gate("pace").pay(price if won else 0.0)
        pacer.pay(price if won else 0.0)
        assert session.gate("money").pay(0.013) == gate.pay(0.013) == 0.02
        if t == 30:
            session.gate("pace").set_budget(60.0, 120)
            pacer.set_budget(60.0, 120)
            session.gate("money").set_budget(9.0)
            gate.set_budget(9.0)
    core = session.journal
    assert core.budgets.find("pace").facts() == pacer.facts()
    assert core.budgets.find("money").facts() == gate.facts()
    assert session.gate("pace").certified_loss == pacer.certified_loss
    session.close()


def test_a_payment_that_does_not_fit_is_refused_and_nothing_changes(tmp_path):
    session = opened(tmp_path)
    session.gate("money").pay(9.5)
    for call in (
        lambda: session.gate("money").pay(0.51),
        lambda: session.observe(**RECORD, pay={"money": 0.51}),
        lambda: session.observe(**RECORD, pay={"money": 0.3, "pace": 0.1, "other": 1.0}),
        lambda: session.observe(f=np.nan, df=[1.0, 0.0], pay={"money": 0.3, "pace": 0.1}),
        lambda: session.observe(**RECORD, pay={"money": -1.0}),
        lambda: session.observe(**RECORD, pay=[1.0]),
    ):
        with pytest.raises(bridle.InputError):
            call()
        assert (session.gate("money").left, session.gate("pace").left, session.rounds, len(journal(session))) == (0.5, 50.0, 0, 1)
    session.observe(**RECORD, pay={"money": 0.5, "pace": 0.25})
    assert (session.gate("money").left, session.gate("pace").left, session.rounds, len(journal(session))) == (0.0, 49.75, 1, 4)
    crash(session)
    with opened(tmp_path) as session:
        assert (session.gate("money").left, session.gate("pace").left, session.rounds) == (0.0, 49.75, 1)


def test_a_payment_with_a_key_is_paid_once(tmp_path):
    session = opened(tmp_path)
    assert session.gate("money").pay(1.0, key="invoice 7") == 1.0
    session.observe(**RECORD, key="order 1", pay={"money": 2.0})
    crash(session)
    session = opened(tmp_path)
    assert session.gate("money").pay(1.0, key="invoice 7") == 1.0
    session.observe(**RECORD, key="order 1", pay={"money": 2.0})
    assert session.gate("money").spent == 3.0
    for call in (
        lambda: session.gate("money").pay(2.0, key="invoice 7"),
        lambda: session.gate("pace").pay(1.0, key="invoice 7"),
        lambda: session.observe(**RECORD, key="order 1", pay={"money": 3.0}),
        lambda: session.observe(**RECORD, key="order 1"),
    ):
        with pytest.raises(KeyConflict):
            call()
    assert session.gate("money").spent == 3.0
    session.close()


def test_what_a_budget_is_asked(tmp_path):
    gate = bridle.Gate(10.0)
    with bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("anytime", bridle.Ball(2)), gates={"money": gate}) as session:
        budget = session.gate("money")
        gate.pay(5.0)  # its own money, not the session's
        assert (budget.left, budget.allows(10.0), budget.budget, budget.unit) == (10.0, True, 10.0, 0.01)
        with pytest.raises(AttributeError, match="a budget in a journal has no save"):
            budget.save("file")
        with pytest.raises(bridle.InputError, match=r"gate must be the name of a budget of this session \('money'\), not 'time'"):
            session.gate("time")
    with pytest.raises(bridle.InputError, match=r"gates\['a'\] must be a Gate or a Pacer"):
        bridle.Session.open(url_of(tmp_path), "other", policy=bridle.policy("anytime", bridle.Ball(2)), gates={"a": 3.0})
    with (
        bridle.Gate.open(tmp_path / "gate.json", budget=1.0) as held,
        pytest.raises(bridle.InputError, match="is open on a file of its own"),
    ):
        bridle.Session.open(url_of(tmp_path), "other", policy=bridle.policy("anytime", bridle.Ball(2)), gates={"a": held})

"""What a session is told to expect: it changes the decision, counts as its last word, and is saved, journalled and replayed bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.core import Prior
from bridle.durable import commands
from helpers.durable_runs import crash, url_of


def policy(**given):
    return bridle.policy("optimistic", bridle.Ball(3), **given)


def drive(session, start, stop):
    """Rounds with a hint of every form, or none; the decisions."""
    out = []
    for t in range(start, stop):
        rng = np.random.default_rng(t)
        df, dg = rng.standard_normal(3), rng.standard_normal((2, 3))
        forms = (None, df + 0.1 * rng.standard_normal(3), {"df": df, "g": [0.1, -1.0], "dg": dg, "x": np.zeros(3)}, {"g": 0.2, "dg": dg[0]})
        x = session.decide(hint=forms[t % 4])
        np.testing.assert_array_equal(session.decide(), x)
        session.observe(f=float(df @ x), df=df, g=dg @ x - 0.5, dg=dg)
        out.append(x)
    return np.array(out)


def test_a_hint_moves_the_decision_and_the_last_word_counts():
    session = bridle.Session(policy(hint="none"))
    drive(session, 0, 6)
    plain = session.decide()
    there = session.decide(hint=[1.0, 0.0, 0.0])
    assert float((there - plain)[0]) < -0.1
    np.testing.assert_array_equal(session.decide(hint={"df": [1.0, 0.0, 0.0]}), there)
    np.testing.assert_array_equal(session.decide(hint=bridle.Hint(df=np.array([1.0, 0.0, 0.0]))), there)
    assert (session.decide(hint=[0.0, 1.0, 0.0]) != there).any()
    np.testing.assert_array_equal(session.decide(hint=np.zeros(3)), plain)
    record, state = session.policy.record, session.state
    session.decide(hint=[1.0, 0.0, 0.0])
    np.testing.assert_array_equal(record.decide(record.hinted(state, bridle.Hint(df=np.array([1.0, 0.0, 0.0])))), there)
    session.observe(f=0.0, df=[1.0, 0.0, 0.0])
    assert session.state.cost_error == pytest.approx(record.hinted(state, bridle.Hint(df=np.array([1.0, 0.0, 0.0]))).cost_error)


def test_a_step_and_a_ticket_take_hints_too():
    one, two = (bridle.Session(policy(hint="none")) for _ in range(2))
    for session in (one, two):
        session.step(bridle.Affine([0.0, 1.0, 0.0]))
    hint = {"df": [1.0, 0.0, 0.0]}
    x = one.step(bridle.Affine([1.0, 0.0, 0.0]), hint=hint)
    ticket = two.ask(hint=hint)
    np.testing.assert_array_equal(ticket.x, x)
    assert float(x[0]) < -0.1
    two.observe(f=float(x[0]), df=[1.0, 0.0, 0.0], ticket=ticket)
    assert two.rounds == 2


@pytest.mark.parametrize("engine", ["python", pytest.param("compiled", marks=pytest.mark.compiles)])
def test_a_session_with_hints_resumes_bit_for_bit(engine, tmp_path):
    made = policy(halfspace=engine == "python")  # fewer lines to compile
    whole = drive(bridle.Session(made, engine=engine), 0, 24)
    session = bridle.Session(made, engine=engine)
    first = drive(session, 0, 10)
    x = session.decide(hint=[3.0, -1.0, 0.5])
    session.save(tmp_path / "a.npz")
    resumed = bridle.Session.load(tmp_path / "a.npz")
    np.testing.assert_array_equal(resumed.decide(), x)
    np.testing.assert_array_equal(np.vstack([first, drive(resumed, 10, 24)]), whole)


def test_a_journal_has_every_hint(tmp_path):
    whole = drive(bridle.Session(policy()), 0, 24)
    with bridle.Session.open(url_of(tmp_path), "a", policy=policy(), snapshot_every=5) as session:
        first = drive(session, 0, 13)
    with bridle.Session.open(url_of(tmp_path), "a") as session:
        x = session.decide(hint={"df": [1.0, 2.0, 3.0]})
        crash(session)
    with bridle.Session.open(url_of(tmp_path), "a") as session:
        np.testing.assert_array_equal(session.decide(), x)
        np.testing.assert_array_equal(np.vstack([first, drive(session, 13, 24)]), whole)
        ticket = session.ask(hint=[0.0, 0.0, 1.0], key="one")
        np.testing.assert_array_equal(session.ask(hint=[0.0, 0.0, 1.0], key="one").x, ticket.x)


def test_a_hint_is_written_as_it_was_given():
    hint = {"df": np.array([1.0, -2.0]), "g": np.array([0.5]), "dg": np.array([[3.0, 4.0]]), "x": np.array([0.1, 0.2])}
    read = commands.said(commands.saying(Prior(features=[7.0], hint=hint)))._asdict()
    assert (read["rules"], read["known"], read["features"].tolist()) == (None, None, [7.0])
    assert list(read["hint"]) == ["df", "g", "dg", "x"]
    for name, values in hint.items():
        np.testing.assert_array_equal(read["hint"][name], values)
    assert commands.said(commands.saying(Prior(hint=[1.0, 2.0]))).hint["df"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ([1.0, 2.0], r"hint df must have shape \(3,\), not \(2,\)"),
        ({"slope": [1.0]}, "unknown part of hint 'slope'"),
        ({}, "hint must be a gradient of the cost, or a dict"),
        ({"g": 1.0}, "hint must have g and dg together"),
        ({"x": [0.0, 0.0, 0.0]}, "hint must have g and dg where it has x"),
        ([np.nan, 0.0, 0.0], "hint df must be finite"),
        ({"g": [1.0, 2.0], "dg": [1.0, 2.0, 3.0]}, r"hint dg must have shape \(2, 3\)"),
        ([1e71, 0.0, 0.0], "hint df must have numbers of size 1e\\+70 at most"),
        ("soon", "hint df must be an array of numbers"),
    ],
)
def test_a_hint_that_cannot_be_used_changes_nothing(hint, message):
    session = bridle.Session(policy())
    drive(session, 0, 3)
    x = session.decide()
    for verb in (session.decide, session.ask):
        with pytest.raises(bridle.InputError, match=message):
            verb(hint=hint)
    assert session.pending == 0
    np.testing.assert_array_equal(session.decide(), x)


def test_a_policy_that_takes_none_says_so():
    with pytest.raises(bridle.InputError, match="hint cannot be given: policy anytime takes no predictions"):
        bridle.Session(bridle.policy("anytime", bridle.Ball(2))).decide(hint=[1.0, 0.0])
    with pytest.raises(bridle.InputError, match="hint cannot be given: policy Anytime takes no predictions"):
        bridle.Session(bridle.policy("anytime", bridle.Ball(2)).record).decide(hint=[1.0, 0.0])
    ruled = bridle.Session(bridle.policy("optimistic", bridle.Box(0.0, 1.0, dim=2), rules=2))
    with pytest.raises(bridle.InputError, match="hint cannot be given with rules"):
        ruled.decide(rules=[[0.0, 1.0], [1.0, 0.0]], hint=[1.0, 0.0])

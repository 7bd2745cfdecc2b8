"""A session as a figure: from its journal, from its history, or where it stands."""

from __future__ import annotations

import numpy as np
import pytest

import bridle

ROUNDS = 60


def drive(session):
    """The same rounds every time; CCV and certified regret after each."""
    rng, seen = np.random.default_rng(3), {}
    for _ in range(ROUNDS):
        a = rng.normal(size=2)
        session.observe(f=float(-session.decide()[0]), df=[-1.0, 0.0], g=float(a @ session.decide()) - 0.3, dg=a)
        seen[session.rounds] = session.ccv, session.certificate().regret, session.bound().ccv
    return seen


def policy():
    return bridle.policy("anytime", bridle.Ball(2))


def line_of(panel):
    return next(each for each in panel.lines if each.get_marker() == "o")


def test_a_durable_session_is_drawn_from_its_journal(tmp_path):
    """What is drawn is what the session said in each of the rounds."""
    with bridle.Session.open(f"sqlite:///{tmp_path}/run.db", "shop", policy=policy(), snapshot_every=25) as session:
        seen = drive(session)
        regret, ccv = session.plot().axes
        assert session.rounds == ROUNDS
    rounds = line_of(ccv).get_xdata()
    assert rounds[0] == 1
    assert rounds[-1] == ROUNDS
    np.testing.assert_array_equal(line_of(ccv).get_ydata(), [seen[t][0] for t in rounds])
    np.testing.assert_array_equal(line_of(regret).get_ydata(), [seen[t][1] for t in rounds])
    bound = next(each for each in ccv.lines if each.get_alpha() == 0.75)
    np.testing.assert_array_equal(bound.get_ydata().astype(float), [seen[t][2] for t in rounds])


def test_a_history_is_found_where_it_is_a_list_or_given():
    log, elsewhere = [], []
    session, other = bridle.Session(policy(), history=log.append), bridle.Session(policy(), history=lambda entry: elsewhere.append(entry))
    seen = drive(session)
    drive(other)
    for figure in (session.plot("ccv"), other.plot("ccv", rounds=elsewhere)):
        line = line_of(figure.axes[0])
        np.testing.assert_array_equal(line.get_ydata(), [seen[t][0] for t in line.get_xdata()])
    regret, ccv = session.plot().axes
    assert regret.get_title(loc="left") == f"Regret after {ROUNDS} rounds"
    assert ccv.get_title(loc="left") == "CCV against t"


def test_without_rounds_it_shows_where_it_stands():
    session = bridle.Session(policy(), names=["latency"])
    seen = drive(session)
    regret, ccv = session.plot().axes
    assert [label.get_text() for label in ccv.get_yticklabels()] == ["latency", "theorem"]
    assert [bar.get_width() for bar in ccv.patches] == pytest.approx([seen[ROUNDS][0], seen[ROUNDS][2]])
    assert [bar.get_width() for bar in regret.patches] == pytest.approx([seen[ROUNDS][1], session.bound().regret])


def test_a_session_that_proves_nothing_is_drawn_all_the_same():
    session = bridle.Session(policy(), certify=False)
    session.observe(f=0.0, df=[1.0, 0.0], g=0.5, dg=[0.0, 1.0])
    regret, ccv = session.plot().axes
    assert regret.texts[0].get_text() == "Nothing is known of this session's regret."
    assert [bar.get_width() for bar in ccv.patches] == [0.5]
    assert "Session" in session._repr_html_()


def test_looking_changes_nothing_and_costs_no_round():
    looked, other = bridle.Session(policy()), bridle.Session(policy())
    for session in (looked, other):
        drive(session)
    looked.plot()
    assert looked._repr_html_()
    assert repr(looked) == repr(other)
    assert looked.certificate().json() == other.certificate().json()
    np.testing.assert_array_equal(looked.decide(), other.decide())


@pytest.mark.parametrize(
    ("rounds", "message"),
    [([], "rounds must hold what `history` was told of at least one round"), ([3], "rounds must hold what `history` was told, not 3")],
)
def test_what_is_no_history_is_one_error(rounds, message):
    session = bridle.Session(policy())
    with pytest.raises(bridle.InputError, match=message):
        session.plot(rounds=rounds)


def test_a_closed_session_shows_itself_and_says_so(tmp_path):
    with bridle.Session.open(f"sqlite:///{tmp_path}/run.db", "shop", policy=policy()) as session:
        session.observe(f=0.0, df=[1.0, 0.0], g=0.5, dg=[0.0, 1.0])
    assert repr(session).endswith("1 round, cost 0, CCV 0.5, closed")
    assert "closed" in session._repr_html_()
    with pytest.raises(bridle.InputError, match="is closed; open it again"):
        session.plot()

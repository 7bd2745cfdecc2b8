"""Two alarms: a limit that is violated for long while the action does not move towards it, and a promise that promises nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import bridle
from bridle import EmptyPromiseWarning, StuckWarning
from bridle.session import alarms

BOX = bridle.Box([0.0], [1000.0])
SLOW = {"lipschitz": 1.0, "bound": 1000.0}
"""True constants of a box that is 1000 times too large: the policy then hardly moves."""


def run(session, rounds, limit, cost=1.0, again=None):
    """The alarms of a run in which ``limit(t, x)`` gives the value and the gradient of the constraint."""
    heard = []
    for t in range(1, rounds + 1):
        if again is not None and t % 100 == 0:
            session = again(session)
        x = session.decide()
        g, dg = limit(t, x)
        with warnings.catch_warnings(record=True) as now:
            warnings.simplefilter("always")
            session.observe(f=cost * float(x[0]), df=np.array([cost, *[0.0] * (len(x) - 1)]), g=g, dg=dg)
        heard += [each.message for each in now if isinstance(each.message, (StuckWarning, EmptyPromiseWarning))]
    return heard, session


def short(t, x, demand=1.0):
    """A shortfall of at most 0.05."""
    return max(demand - float(x[0]), 0.0) - 0.05, np.array([-1.0 if x[0] < demand else 0.0])


@pytest.mark.slow
def test_a_limit_that_nothing_moves_towards_is_reported_once():
    heard, session = run(bridle.Session(bridle.policy("soft", BOX, **SLOW), x1=[0.0]), 700, short)
    (alarm,) = heard
    assert isinstance(alarm, StuckWarning)
    assert (alarm.limit, alarm.since, alarm.round) == (0, 64, 64 + alarms.LONG_VIOLATED)
    assert alarm.violation == pytest.approx(0.95, abs=0.01)
    assert alarm.gained < 0.05 * alarm.violation
    assert "moves of the action have lowered it by" in str(alarm)
    assert ("StuckWarning", 320) in session.certificate().alarms


def test_the_limit_that_is_meant_is_named():
    def limits(t, x):
        (value, slope), ahead = short(t, x), 0.3 + 0.01 * (t % 3)
        return np.array([-1.0, value, ahead - 1.1, 0.2 - 0.4 * (t % 2)]), np.array([[1.0], slope, [-0.01], [-1.0]])

    heard, _ = run(bridle.Session(bridle.policy("soft", BOX, constraints=4, **SLOW), x1=[0.0]), 330, limits)
    assert [alarm.limit for alarm in heard] == [1]  # the last one is violated every other round only


def test_it_is_the_same_in_pieces(tmp_path):
    def by_file(session):
        session.save(tmp_path / "watched.npz")
        return bridle.Session.load(tmp_path / "watched.npz")

    heard, _ = run(bridle.Session(bridle.policy("soft", BOX, **SLOW), x1=[0.0]), 600, short, again=by_file)
    assert [(alarm.round, alarm.since) for alarm in heard] == [(320, 64)]


@pytest.mark.compiles
@pytest.mark.slow
def test_it_is_the_same_where_rounds_are_compiled():
    session = bridle.Session(bridle.policy("neely2017", BOX, horizon=10_000, **SLOW), x1=[0.0], engine="compiled")
    heard, _ = run(session, 400, short)
    assert [(alarm.round, alarm.since) for alarm in heard] == [(320, 64)]


@pytest.mark.slow
def test_slow_progress_is_progress():
    """A policy that lowers the violation as t^(-1/4) is never told that it stands still, however long it takes."""

    class Slowly(type(bridle.policy("soft", BOX, **SLOW).record)):  # type: ignore[misc]
        power = 0.25

        def decide(self, state):
            return np.array([1.0 - (1.0 + state.rounds) ** -self.power])

    record = bridle.policy("soft", BOX, **SLOW).record
    for power, expected in ((0.25, 0), (0.05, 1)):
        slow = type("Slow", (Slowly,), {"power": power})(*record)
        heard, _ = run(bridle.Session(slow, domain=BOX), 3000, lambda t, x: (1.0 - float(x[0]), np.array([-1.0])))
        assert len(heard) == expected


@pytest.mark.parametrize("name", ["anytime", "soft", "ogd", "yi2022"])
def test_what_reacts_or_was_never_asked_to_is_left_alone(name):
    policy = bridle.policy_for(name, bridle.problem("fixed", horizon=400, domain=bridle.Box([0.0], [4.0])))
    assert run(bridle.Session(policy, x1=[0.0]), 400, short)[0] == []


def test_a_limit_that_cannot_be_met_is_for_another_alarm():
    def two(t, x):
        return np.array([0.5 - float(x[0]), float(x[0]) - 0.1]), np.array([[-1.0], [1.0]])

    session = bridle.Session(bridle.policy("soft", BOX, constraints=2, **SLOW), x1=[0.0])
    heard, session = run(session, 400, two)
    assert heard == []
    assert "InfeasibleWarning" in dict(session.certificate().alarms)


def test_a_promise_beyond_what_can_be_lost_is_reported():
    """Told a hundred times the gradients' true length, the theorem allows more regret than the whole box is worth."""
    policy = bridle.policy("soft", bridle.Box([0.0], [4.0]), lipschitz=100.0, bound=400.0)
    heard, session = run(bridle.Session(policy, x1=[3.0]), 300, lambda t, x: (-1.0, np.array([0.0])), cost=0.01)
    (alarm,) = heard
    assert isinstance(alarm, EmptyPromiseWarning)
    assert alarm.round == alarms.PROMISED_AFTER
    assert alarm.most == pytest.approx(0.01 * 4.0 * 256)
    assert alarm.promised >= alarm.most
    assert session.bound().regret is not None  # it is true, and empty
    true = bridle.policy("soft", bridle.Box([0.0], [4.0]), lipschitz=1.0, bound=4.0)
    assert run(bridle.Session(true, x1=[3.0]), 300, lambda t, x: (-1.0, np.array([0.0])))[0] == []


def test_a_promise_for_later_is_not_judged_now():
    """A horizon says for when a bound is meant; and who was told nothing promises no more than it must."""
    for horizon, expected in ((4000, []), (900, [EmptyPromiseWarning])):
        policy = bridle.policy("soft", bridle.Box([0.0], [4.0]), lipschitz=100.0, bound=400.0, horizon=horizon)
        heard, _ = run(bridle.Session(policy, x1=[3.0]), 300, lambda t, x: (-1.0, np.array([0.0])), cost=0.01)
        assert [type(alarm) for alarm in heard] == expected
    free = bridle.Session(bridle.policy("soft", bridle.Box([0.0], [4.0])), x1=[3.0])
    assert run(free, 300, lambda t, x: (-1.0, np.array([0.0])))[0] == []

"""What is changed on the way is in the journal, and what is proved afterwards is true: limits that move, and shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bridle
from bridle.policies.levels import LevelState, make_level, most_violations, with_shares
from bridle.session.changes import refuse_moving
from helpers.durable_runs import assert_same, crash, journal, rebuilt, url_of

BOX = bridle.Box(-1.0, 1.0, dim=2)


def opened(folder, name="anytime", domain=BOX, parameters=None, **options):
    return bridle.Session.open(url_of(folder), "run", policy=bridle.policy(name, domain, **(parameters or {})), **options)


def record(t, x, offset=0.0):
    """A linear cost, and the limits x_1 <= 1/2 and x_2 <= 1/2, moved by an offset."""
    rng = np.random.default_rng([5, t])
    c = np.array([-1.0, -0.5]) + 0.1 * rng.standard_normal(2)
    return {"f": float(c @ x), "df": c, "g": x - 0.5 + offset, "dg": np.eye(2)}


def test_a_limit_that_moves_is_a_stream_that_has_moved(tmp_path):
    session = rebuilt(opened(tmp_path, names=["left", "right"]))
    plain = bridle.Session(bridle.policy("anytime", BOX), names=["left", "right"])
    for t in range(60):
        if t == 20:
            session.change_limit("left", offset=0.25)
        if t == 40:
            session.change_limit(0, offset=0.0)
            session.change_limit("right", offset=-0.125)
        moved = np.array([0.25, 0.0] if 20 <= t < 40 else [0.0, -0.125] if t >= 40 else [0.0, 0.0])
        session.observe(**record(t, session.decide()))
        plain.observe(**record(t, plain.decide(), moved))
    assert_same(plain, session, but="changes")
    proof = session.certificate()
    # The best action that keeps each limit as it stood in its round: x_1 <= 1/4, x_2 <= 1/2.
    best = np.array([0.25, 0.5])
    cost = sum(float(record(t, best)["df"] @ best) for t in range(60))
    assert session.cost - cost <= proof.regret + 1e-9
    assert [(each["round"], each["limit"], each["offset"]) for each in session.changes] == [(20, 0, 0.25), (40, 0, 0.0), (40, 1, -0.125)]
    session.close()


def test_policies_for_limits_that_stay_do_not_allow_it(tmp_path):
    session = opened(tmp_path, "yu2020", parameters={"horizon": 100, "lipschitz": 1.0})
    with pytest.raises(bridle.InputError, match="offset cannot be given: policy yu2020 is for limits that stay the same"):
        session.change_limit(0, offset=-0.1)
    assert journal(session) == []
    assert session.journal.stale == ""
    session.close()


def test_a_policy_that_was_told_of_a_margin_allows_looser_limits_alone():
    told = replace(bridle.policy("anytime", BOX), parameters={"slater": 0.5})
    with pytest.raises(bridle.InputError, match=r"offset must be 0 or below for policy anytime, .* \(slater\)"):
        refuse_moving(told, tighter=True)
    refuse_moving(told, tighter=False)
    refuse_moving(bridle.policy("anytime", BOX), tighter=True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limit": "rihgt", "offset": 0.1}, r"limit must be the name of a limit \('left', 'right'\), not 'rihgt'"),
        ({"limit": 2, "offset": 0.1}, "limit must be below 2"),
        ({"limit": -1, "offset": 0.1}, "limit must be 0 or above"),
        ({"limit": 0}, "one of offset and at_most must be given"),
        ({"limit": 0, "offset": 0.1, "at_most": 0.1}, "one of offset and at_most must be given"),
        ({"limit": 0, "offset": np.nan}, "offset must be finite"),
        ({"limit": 0, "at_most": 0.1}, "at_most cannot be given: the policy of this session keeps no limits on how often"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(given, said, tmp_path):
    with opened(tmp_path, names=["left", "right"]) as session:
        with pytest.raises(bridle.InputError, match=said):
            session.change_limit(**given)
        assert session.durable == (0, 0)
        assert session.changes == ()


# --- limits on how often ------------------------------------------------------------------------------------------------------------------


def demand(session, t, rng):
    x = session.decide()
    need = 10.0 + 5.0 * rng.standard_normal()
    session.observe(f=float(x[0]), df=np.ones(1), g=need - x, dg=-np.ones((1, 1)))


def test_a_share_that_is_changed_is_kept_from_then_on(tmp_path):
    parameters = {"at_most": 0.2, "safe": [40.0]}
    session = opened(tmp_path, "rate", bridle.Box(0.0, 40.0, dim=1), parameters)
    rng = np.random.default_rng(3)
    for t in range(200):
        demand(session, t, rng)
    (before,) = session.rates
    session.change_limit(0, at_most=0.05)
    (after,) = session.rates
    assert (after.at_most, after.counted, after.violated, after.proved, after.exact) == (0.05, 0, 0, 1.0, True)
    for t in range(400):
        demand(session, t, rng)
        if t == 150:
            crash(session)
            session = bridle.Session.open(url_of(tmp_path), "run")
    (after,) = session.rates
    assert (after.at_most, after.counted, after.exact) == (0.05, 400, True)
    assert after.violated <= after.proved * 400
    assert after.measured == pytest.approx(0.05, abs=0.03)
    (listed,) = session.changes
    assert listed["before"]["violated"] == before.violated
    assert listed["before"]["counted"] == 200
    session.close()
    with bridle.Session.open(url_of(tmp_path), "run", policy=bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), **parameters)) as session:
        assert session.rates[0] == after  # the policy that it was made with is the one to give


@pytest.mark.parametrize("seed", range(20))
def test_the_most_violations_hold_from_any_level_on(seed):
    """Against the worst that can come: a limit that is violated whenever its level is below the top."""
    rng = np.random.default_rng(seed)
    old, new = (make_level([share], top=2.0, bottom=-3.0, step=0.5) for share in rng.uniform(0.02, 0.6, 2))
    state, one = old.init(np.zeros(1)), np.ones(1)
    for _ in range(int(rng.integers(0, 60))):
        safe = bool(old.at_top(state)[0])
        state = old.move(state, np.array([0.0 if safe else float(rng.random() < 0.5)]), one, safe, np.zeros(1))
    caution = old.of(state)
    state = with_shares(old, new, state)
    assert new.of(state) >= max(caution, 0.0) - 1e-12
    assert (new.identity(state) == 0.0).all()
    for n in range(1, 200):
        safe = bool(new.at_top(state)[0])
        state = new.move(state, np.array([0.0 if safe else 1.0]), one, safe, np.zeros(1))
        assert (new.identity(state) == 0.0).all()
        assert state.violated <= most_violations(new.share, n, new.top) + 1e-9


def test_limits_whose_share_stays_keep_their_counts():
    old, new = make_level([0.25, 0.1], 8.0, -3.0, 0.5), make_level([0.25, 0.2], 8.0, -3.0, 0.5)
    counts = [np.array([4.0, 7.0]), np.array([5.0, 2.0]), np.array([16.0, 13.0]), np.array([0.0, 0.0]), np.array([0.0, 0.0])]
    state = with_shares(old, new, LevelState(*counts, 0.0))
    assert state.violated.tolist() == [5.0, 0.0]
    assert state.counted.tolist() == [16.0, 0.0]
    assert state.units.tolist() == [4.0, 4.0]  # 7/10 of a violation is 3.5/5, rounded up
    assert state.raised.tolist() == [0.0, 4.0]

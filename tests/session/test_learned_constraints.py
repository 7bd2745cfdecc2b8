"""Sessions of a policy that is not told how many constraints a round has: the first record that has some tells it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import bridle
from bridle import InputError

BALL = bridle.Ball(3)


def records(rounds, k, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        yield {"f": 0.1, "df": rng.standard_normal(3), "g": rng.standard_normal(k) * 0.3 - 0.1, "dg": rng.standard_normal((k, 3))}


def played(session, blank=0, k=3, again=None, rounds=80):
    """The decisions of a run whose first rounds have no constraints; `again` makes the session anew before some rounds."""
    decisions = []
    for t, record in enumerate(records(rounds, k)):
        if again is not None and t in (0, 1, blank, blank + 1, 50):
            session = again(session)
        decisions.append(session.decide())
        session.observe(**({"f": record["f"], "df": record["df"]} if t < blank else record))
    return np.array(decisions), session


@pytest.fixture(scope="module")
def expected():
    """The decisions of sessions that were told, by how many rounds are blank."""
    return {blank: played(bridle.Session(bridle.policy("soft", BALL, constraints=3, noise=0.1)), blank)[0] for blank in (0, 3)}


@pytest.mark.parametrize("blank", [0, 3])
def test_it_decides_as_if_it_had_been_told(blank, expected, tmp_path):
    def by_file(session):
        session.save(tmp_path / "saved.npz")
        return bridle.Session.load(tmp_path / "saved.npz")

    ways = (None, by_file, copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session)))
    for again in ways:
        decisions, session = played(bridle.Session(bridle.policy("soft", BALL, noise=0.1)), blank, again=again)
        np.testing.assert_array_equal(decisions, expected[blank])
        assert session.price.shape == session.balances.shape == (3,)
        assert session.bound().soft >= session.balances.max()


@pytest.mark.compiles
@pytest.mark.slow
def test_compiled_rounds_learn_it_too(expected, tmp_path):
    def by_file(session):
        session.save(tmp_path / "saved.npz")
        return bridle.Session.load(tmp_path / "saved.npz")

    session = bridle.Session(bridle.policy("soft", BALL, noise=0.1), engine="compiled", certify=False)
    decisions, session = played(session, blank=3, again=by_file)  # the round is compiled for one constraint, then for three
    np.testing.assert_allclose(decisions, expected[3], rtol=0, atol=1e-12)
    with pytest.raises(InputError, match="g must hold 3 constraint values, not 2"):
        session.observe(**next(records(1, 2)))
    session.observe(f=0.1, df=np.ones(3))  # without constraints
    assert session.rounds == 81
    session = bridle.Session(bridle.policy("soft", BALL, noise=0.1), engine="compiled", certify=False)
    session.warm_up(constraints=1)  # what is said there does not bind the stream
    decisions, session = played(session)
    np.testing.assert_allclose(decisions, expected[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_every_later_record_has_as_many(k):
    _, session = played(bridle.Session(bridle.policy("soft", BALL, noise=0.1)), rounds=2)
    before, state = session.decide(), session.state
    if k != 3:
        with pytest.raises(InputError, match=f"g must hold 3 constraint values, not {k}"):
            session.observe(**next(records(1, k)))
    assert session.rounds == 2
    np.testing.assert_array_equal(session.decide(), before)
    assert bridle.records.same(session.state, state)
    session.observe(f=0.0, df=np.ones(3))  # one without constraints is fine
    assert session.rounds == 3


def test_a_refused_first_record_teaches_nothing():
    session = bridle.Session(bridle.policy("soft", BALL))
    with pytest.raises(InputError):
        session.observe(f=0.0, df=np.ones(3), g=[0.1, np.nan], dg=np.ones((2, 3)))
    session.observe(**next(records(1, 4)))
    assert session.price.shape == (4,)


def test_one_constraint_is_a_number_too():
    session = bridle.Session(bridle.policy("soft", BALL))
    session.observe(f=0.0, df=np.ones(3), g=0.2, dg=np.ones(3))
    with pytest.raises(InputError, match="g must hold 1 constraint value, not 2"):
        session.observe(**next(records(1, 2)))

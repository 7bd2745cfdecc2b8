"""Whatever a caller has told NumPy to do about floating-point errors, bridle raises what is its own, and computes the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import bridle
from bridle import learners, policies, validate
from bridle.adapters.scaling import past_scaled
from bridle.core import InputError
from bridle.game.summary import summary
from bridle.limits import GroupGap, MissLoss

SIZES = (1e-310, 1e-200, 1e-160, 1.0, 1e150, 1e300, 1.7e308)


def both(work):
    """What the work gives, or the complaint: the same where NumPy is told to raise as where it is told to be silent."""
    results = []
    for how in ("ignore", "raise"):
        with warnings.catch_warnings(), np.errstate(all=how):
            warnings.simplefilter("ignore")
            try:
                results.append(repr(work()))
            except InputError as wrong:
                results.append(str(wrong))
    assert results[0] == results[1]
    return results[0]


def played(name):
    problem = bridle.problem("halfspaces", horizon=40, dim=3)
    facts = summary(bridle.play(bridle.policy_for(name, problem), problem))
    return {key: value for key, value in facts.items() if key not in ("us_per_round", "seconds")}


def driven(name, size):
    problem = bridle.problem("halfspaces", horizon=40, dim=3)
    session = bridle.Session(bridle.policy_for(name, problem))
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = session.decide()
        with np.errstate(all="ignore"):
            a, b = size * rng.standard_normal(3), size * rng.standard_normal((1, 3))
            record = float(a @ x), a, b @ x - 0.1 * size, b
        session.observe(*record)
    return session.cost, session.ccv, session.decide(), session.certificate(), session.report(), session.bound()


@pytest.mark.parametrize("name", policies.names())
def test_games_and_sessions(name):
    both(lambda: played(name))
    for size in (1e-160, 1.0, 1e60):
        both(lambda size=size: driven(name, size))


@pytest.mark.parametrize("name", policies.names())
def test_policies_of_strange_settings(name):
    """Also what Python's own floats cannot compute is a complaint."""
    ball = bridle.Ball(2)
    for size in SIZES:
        needed = {p.name: 100 if p.name == "horizon" else size for p in policies.parameters(name) if p.required}
        both(lambda needed=needed: bridle.policy(name, ball, **needed))


MAKERS = {
    "Ball": lambda v: bridle.Ball(3, v),
    "Ball elsewhere": lambda v: bridle.Ball(center=[v, v]),
    "Box": lambda v: bridle.Box(-v, v, dim=3),
    "Simplex": lambda v: bridle.Simplex(3, v),
    "L1Ball": lambda v: bridle.L1Ball(3, v),
    "Spectrahedron": lambda v: bridle.Spectrahedron(3, v),
    "Halfspace": lambda v: bridle.Halfspace([v, v], v, within=bridle.Ball(2)),
    "Polyhedron": lambda v: bridle.Polyhedron([[v, 0.0], [-v, 0.0], [0.0, v], [0.0, -v]], [v, v, v, v]),
    "large Polyhedron": lambda v: bridle.Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [v, v, v, v]),
    "Affine": lambda v: bridle.Affine([v, v], v),
    "Quadratic": lambda v: bridle.Quadratic(v, center=[v, v]),
    "Quadratic of a matrix": lambda v: bridle.Quadratic(v * np.eye(2), center=[v, v]),
    "LogWealth": lambda v: bridle.LogWealth([v, v]),
    "OGD": lambda v: learners.OGD(bridle.Ball(2), v),
    "Gate": lambda v: bridle.Gate(v).fits(np.array([v, v])),
    "Pacer": lambda v: bridle.Pacer(10.0 * v, rounds=10, value=v, spend=v).choose([v, v], [v, v]),
    "pacing_bound": lambda v: bridle.pacing_bound(v, 10, v, v),
    "numbers": lambda v: validate.array("x", [np.longdouble(v) * np.longdouble(v), 1.0]),
}


@pytest.mark.parametrize("name", MAKERS)
def test_whatever_is_made_of_strange_numbers(name):
    for size in SIZES:
        both(lambda size=size: MAKERS[name](size))


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1.0, 1e30])
def test_adapters(size):
    pytest.importorskip("sklearn")
    pytest.importorskip("river")
    from bridle.adapters import river, sklearn

    X = np.random.default_rng(0).standard_normal((40, 3)) * size
    y, groups = X[:, 0] > 0.0, 1.0 * (X[:, 1] > 0.0)

    def table():
        model = sklearn.ConstrainedClassifier(constraints=[MissLoss(label=True, at_most=0.3), GroupGap(at_most=0.1)], scale=True)
        return model.fit(X, y, groups=groups).partial_fit(X, y, groups=groups).predict_proba(X).tolist()

    def rows(scale):
        model = river.ConstrainedClassifier(constraints=[MissLoss(label=True, at_most=0.3)], scale=scale)
        scores = []
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            model.learn_one(dict(enumerate(row)), label)
            scores.append(model.predict_proba_one(dict(enumerate(row))))
        return scores

    both(table)
    both(lambda: rows(True))
    both(lambda: rows(False))
    both(lambda: past_scaled(X).tolist())


def test_what_a_users_function_raises_is_the_users():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    with pytest.raises(ZeroDivisionError):
        session.step((lambda x: 1.0 / 0.0, lambda x: x))
    assert session.rounds == 0

"""Records beyond what a session was told to expect are refused, and change nothing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import bridle
from helpers.sessions import assert_identical, snapshot

GOOD: dict[str, Any] = {"f": 0.5, "df": np.array([0.3, -0.2]), "g": np.array([-0.1]), "dg": np.array([[0.1, 0.4]])}


@pytest.fixture(params=["python", "compiled"])
def engine_name(request, monkeypatch) -> str:
    """Both engines; the compiled one without its compiler."""
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    return str(request.param)


def start(engine_name: str, **more: Any) -> bridle.Session:
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine=engine_name, **more)
    for _ in range(3):
        session.observe(**GOOD)
    return session


@pytest.mark.parametrize("name", ["f", "df", "g", "dg", "modulus"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_record_beyond_the_largest_is_refused(name, sign, engine_name, tmp_path):
    if name == "modulus" and sign < 0.0:
        sign = 2.0
    session = start(engine_name, largest=10.0)
    session.save(tmp_path / "a.npz")
    for each in (session, bridle.Session.load(tmp_path / "a.npz")):
        before, size = snapshot(each), 10.5 * sign
        for bad in (size, 9e69 * sign):
            wrong = {**GOOD, name: np.full(np.shape(GOOD.get(name, 0.0)), bad) if name not in ("f", "modulus") else bad}
            with pytest.raises(bridle.InputError, match=f"{name} must be at most 10 in size, not"):
                each.observe(**wrong)
        assert_identical(snapshot(each), before)
        edge = {**GOOD, "f": 10.0, "df": np.array([10.0, -10.0])}  # each number counts by itself
        each.observe(**edge)
        assert each.rounds == 4


@pytest.mark.parametrize("largest", [0.0, -1.0, np.nan, np.inf, "many", 1e71])
def test_what_the_largest_may_be(largest):
    with pytest.raises(bridle.InputError, match="largest must be"):
        bridle.Session(bridle.policy("anytime", bridle.Ball(2)), largest=largest)


@pytest.mark.parametrize(("given", "first", "most"), [(None, 1, 1000), (None, 200, 2000), (5, 1, 5)])
def test_a_record_with_too_many_constraints_is_refused(given, first, most, engine_name, tmp_path):
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine=engine_name, most_constraints=given)

    def wide(k: int) -> dict[str, Any]:
        return {"f": 0.5, "df": np.ones(2), "g": np.full(k, -0.1), "dg": np.ones((k, 2))}

    session.observe(**wide(first))
    session.save(tmp_path / "a.npz")
    for each in (session, bridle.Session.load(tmp_path / "a.npz")):
        before = snapshot(each)
        for k in (most + 1, 300_000):
            with pytest.raises(bridle.InputError, match=f"g must hold at most {most} constraint values, not {k}"):
                each.observe(**wide(k))
        assert_identical(snapshot(each), before)
        each.observe(**wide(most))
        assert each.rounds == 2
        assert len(each.violations) == max(most, first)


def test_the_first_record_says_how_many_constraints_are_usual():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    session.observe(f=0.5, df=np.ones(2), g=np.full(5000, -0.1), dg=np.ones((5000, 2)))
    assert session.rounds == 1
    with pytest.raises(bridle.InputError, match="g must hold at most 10000 constraint values, not 300000"):
        bridle.Session(session.policy).observe(g=np.full(300_000, -0.1), dg=np.ones((300_000, 2)))
    bridle.Session(session.policy, most_constraints=300_000).observe(g=np.full(300_000, -0.1), dg=np.ones((300_000, 2)))
    with pytest.raises(bridle.InputError, match="most_constraints must be"):
        bridle.Session(bridle.policy("anytime", bridle.Ball(2)), most_constraints=0)


@pytest.mark.parametrize("engine", ["python", pytest.param("compiled", marks=pytest.mark.compiles)])
@pytest.mark.parametrize(
    ("part", "what"), [("df", "a gradient of a cost"), ("dg", "a gradient of a constraint"), ("g", "a constraint value")]
)
@pytest.mark.parametrize("factor", [1e5, 1e7])
def test_an_outlier_is_reported_once_and_taken_in(engine, part, what, factor, tmp_path):
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine=engine)
    usual = {"f": 1.0, "df": np.array([1.0, 0.0]), "g": np.array([-1.0]), "dg": np.array([[0.0, 1.0]])}
    told: list[warnings.WarningMessage] = []
    for t in range(1, 257):
        if t == 100:  # between two checks, and after a file
            session.save(tmp_path / "now.npz")
            session = bridle.Session.load(tmp_path / "now.npz")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            session.observe(**(usual | ({part: factor * usual[part]} if t in (101, 201) else {})))
        told += [each for each in heard if issubclass(each.category, bridle.OutlierWarning)]
    assert session.rounds == 256
    if factor < 1e6:
        assert not told
    else:
        (warning,) = told
        assert str(warning.message).startswith(f"{what} of size 1e+07 was seen by round 128, 1e+07 times the largest before")
        assert (warning.message.before, warning.message.observed, warning.message.round) == (1.0, 1e7, 128)

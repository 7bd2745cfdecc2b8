"""engine="auto": Python for the first rounds, compiled ones from then on, and which round is which depends on its number alone."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import bridle
from bridle.session import stepper
from bridle.session.stepper import LONG_RUN, CompiledStepper, PythonStepper
from helpers.durable_runs import assert_same

pytestmark = [pytest.mark.compiles, pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")]


def record(t: int, k: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng([7, t])
    return {
        "f": float(rng.standard_normal()),
        "df": rng.standard_normal(3),
        "g": rng.standard_normal(k) - 0.8,
        "dg": rng.standard_normal((k, 3)),
    }


def session(name: str = "anytime", **more: Any) -> bridle.Session:
    parameters = {"rate": {"at_most": [0.3, 0.3], "safe": [0.0, 0.0, 0.0]}}.get(name, {})
    return bridle.Session(bridle.policy(name, bridle.Ball(3), **parameters), **more)


def play(sessions: Any, first: int, last: int, tickets: bool = False) -> None:
    for t in range(first, last):
        for each in sessions:
            late = {"ticket": each.ask()} if tickets and t % 50 == 9 else {}
            each.observe(**record(t), **late)


@pytest.mark.parametrize("name", ["anytime", "soft", "rate"])
def test_rounds_are_python_s_first_and_compiled_then(name):
    auto, plain = session(name), session(name, engine="python")
    assert (auto.engine, plain.engine) == ("auto", "python")
    play((auto, plain), 1, LONG_RUN + 1)
    assert auto.decide().tobytes() == plain.decide().tobytes()
    assert isinstance(auto._stepper, CompiledStepper)
    assert auto._stepper.compiled is None
    play((auto, plain), LONG_RUN + 1, LONG_RUN + 60)
    assert auto._stepper.at[1] is not None
    np.testing.assert_allclose(auto.decide(), plain.decide(), rtol=1e-9, atol=1e-12)
    a, b = auto.certificate(), plain.certificate()
    assert (a.rounds, a.violated) == (b.rounds, b.violated)
    assert a.regret_any == pytest.approx(b.regret_any, rel=1e-9)


@pytest.mark.parametrize("stop", [100, LONG_RUN - 1, LONG_RUN, LONG_RUN + 1, LONG_RUN + 37])
def test_a_session_goes_on_bit_for_bit_wherever_it_is_saved_copied_or_pickled(stop, tmp_path):
    whole, other = session(), session()
    play((whole, other), 1, stop + 1, tickets=True)
    other.save(tmp_path / "run.npz")
    parts = [bridle.Session.load(tmp_path / "run.npz"), copy.deepcopy(other), pickle.loads(pickle.dumps(other))]
    play((whole, *parts), stop + 1, LONG_RUN + 90, tickets=True)
    for each in parts:
        assert each.decide().tobytes() == whole.decide().tobytes()
        assert each.certificate().json() == whole.certificate().json()


@pytest.mark.parametrize("stop", [LONG_RUN - 3, LONG_RUN, LONG_RUN + 20])
def test_a_journal_is_replayed_on_the_same_path(stop, tmp_path):
    url, twin = f"sqlite:///{tmp_path}/run.db", session()
    durable = bridle.Session.open(url, "run", policy=twin.policy)
    play((durable, twin), 1, stop + 1)
    durable.journal.store.close()  # as a killed process would
    with bridle.Session.open(url, "run") as again:
        assert again.decide().tobytes() == twin.decide().tobytes()
        play((again, twin), stop + 1, LONG_RUN + 40)
        assert_same(again, twin)


class Mine(NamedTuple):
    """A policy of the user's own."""

    step: float

    def init(self, x1: Any) -> Any:
        return (x1,)

    def decide(self, state: Any) -> Any:
        return state[0]

    def update(self, state: Any, feedback: Any) -> Any:
        return (state[0] - self.step * feedback.df,)


def test_what_is_not_bridle_s_own_is_played_in_python(monkeypatch):
    own = bridle.Session(Mine(1e-3), x1=np.zeros(3), domain=bridle.Ball(3))
    assert isinstance(own._stepper, PythonStepper)
    assert isinstance(
        bridle.Session(bridle.policy("bandit1", bridle.Ball(3), horizon=900, lipschitz=1.0, bound=1.0))._stepper, PythonStepper
    )
    monkeypatch.setattr("bridle.engines.compiles", lambda *parts: False)  # the extra is not installed
    assert isinstance(session()._stepper, PythonStepper)


def test_what_cannot_be_compiled_goes_on_in_python(monkeypatch):
    def refuse(*given: Any) -> None:
        raise stepper.CannotCompile("the compiler has no translation of this")

    auto, plain = session(), session(engine="python")
    monkeypatch.setattr(stepper, "CompiledRound", refuse)
    play((auto, plain), 1, LONG_RUN + 20)
    assert auto.decide().tobytes() == plain.decide().tobytes()
    told = session(engine="compiled")
    with pytest.raises(bridle.InputError, match="the compiler has no translation"):
        told.observe(**record(1))
    assert told.rounds == 0


def test_to_warm_up_changes_no_round():
    warm, cold = session(), session()
    warm.warm_up()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm.warm_up(2)
    assert warm._stepper.compiled is not None
    play((warm, cold), 1, LONG_RUN + 40)
    assert warm.certificate().json() == cold.certificate().json()

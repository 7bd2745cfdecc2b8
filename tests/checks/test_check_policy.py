"""`check_policy` rejects what breaks the contract of a policy, and says what is broken."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import bridle
from bridle import validate
from bridle.checks import check_policy
from bridle.core import Feedback, InputError
from bridle.ops import Array, dot, ratio, scalar, sqrt, worst


class State(NamedTuple):
    x: Array
    t: Array


class Good(NamedTuple):
    """x_{t+1} = P_X(x_t - step / sqrt(t) (grad f_t + grad (g_t)^+))."""

    domain: Any
    step: Array
    spare: Array

    def init(self, x1: Array) -> State:
        return State(x1, scalar(x1))

    def decide(self, state: State) -> Array:
        return state.x

    def grad(self, feedback: Feedback) -> Array:
        g, dg = worst(feedback.g, feedback.dg)
        return feedback.df + (g > 0.0) * dg

    def update(self, state: State, feedback: Feedback) -> State:
        t = state.t + 1.0
        return State(self.domain.project(state.x - self.step / sqrt(t) * self.grad(feedback)), t)


def factory(kind: Any = Good):
    def make(domain: Any, constraints: int = 1, lipschitz: float = 1.0) -> Any:
        return kind(domain, domain.diameter() / validate.setting("lipschitz", lipschitz), np.zeros(2))

    return make


@pytest.mark.compiles
def test_a_policy_of_ones_own_passes():
    report = check_policy(factory(), scale_free=True)
    assert report[0] == "ball, k = 1: decisions, repetition, purity, state, session, resume, refusal, batch, scale"
    assert not any("skipped" in line for line in report)
    assert {line.split(",")[0] for line in report if "," in line} == {"ball", "box", "segment", "simplex"}


class NoProjection(Good):
    def update(self, state, feedback):
        return State(state.x - self.step * self.grad(feedback), state.t + 1.0)


class TooFarAtHugeGradients(Good):
    def update(self, state, feedback):
        grad = self.grad(feedback)
        x = state.x - self.step * grad
        return State(x + (dot(grad, grad) < 1e8) * (self.domain.project(x) - x), state.t + 1.0)


class ChangesState(Good):
    def update(self, state, feedback):
        x = state.x
        x -= self.step * self.grad(feedback)
        x[...] = self.domain.project(x)
        return State(x, state.t + 1.0)


class ChangesFeedback(Good):
    def update(self, state, feedback):
        after = Good.update(self, state, feedback)
        feedback.dg[...] = 0.0
        return after


class ChangesItself(Good):
    def update(self, state, feedback):
        self.spare[0] += 1.0
        return Good.update(self, state, feedback)


class ChangesStateWhenAsked(Good):
    def decide(self, state):
        state.x[...] = self.domain.project(0.5 * state.x)
        return state.x.copy()


class Random(Good):
    def update(self, state, feedback):
        noise = np.random.default_rng().standard_normal(state.x.shape)
        return State(self.domain.project(state.x + noise), state.t + 1.0)


CALLS = [0]
SCRATCH: dict[int, np.ndarray] = {}
MEMORY: dict[str, Any] = {}


class CountsCalls(Good):
    def update(self, state, feedback):
        CALLS[0] += 1
        return State(self.domain.project(state.x - self.step / CALLS[0] * self.grad(feedback)), state.t + 1.0)


class ReusesItsAnswer(Good):
    def decide(self, state):
        room = SCRATCH.setdefault(state.x.shape[-1], np.zeros(state.x.shape[-1]))
        if state.x.ndim > 1:
            return state.x
        room[...] = state.x
        return room


class RemembersOutsideItsState(Good):
    """Momentum from a place that no state knows of; it starts anew at init, so whole runs repeat."""

    def init(self, x1):
        MEMORY["last"] = 0.0
        return Good.init(self, x1)

    def update(self, state, feedback):
        grad = self.grad(feedback) + 0.5 * MEMORY["last"]
        MEMORY["last"] = grad
        return State(self.domain.project(state.x - self.step / sqrt(state.t + 1.0) * grad), state.t + 1.0)


class Normalised(Good):
    def update(self, state, feedback):
        grad = self.grad(feedback)
        return State(self.domain.project(state.x - self.step * grad / sqrt(dot(grad, grad))), state.t + 1.0)


class QuietNaN(Good):
    def update(self, state, feedback):
        with np.errstate(all="ignore"):
            grad = self.grad(feedback)
            return State(self.domain.project(state.x - self.step * grad / np.sqrt((grad * grad).sum())), state.t + 1.0)


class NaNInsideTheState(Good):
    def update(self, state, feedback):
        after = Good.update(self, state, feedback)
        return after._replace(t=after.t + 0.0 * float("nan"))


class IntLeaf(Good):
    def init(self, x1):
        return State(x1, 0)


class BoolLeaf(Good):
    def update(self, state, feedback):
        return State(Good.update(self, state, feedback).x, np.bool_(True))


class SinglePrecision(Good):
    def init(self, x1):
        return State(x1.astype(np.float32), scalar(x1))

    def update(self, state, feedback):
        return State(Good.update(self, state, feedback).x.astype(np.float32), state.t + 1.0)


class GrowingState(Good):
    def init(self, x1):
        return State(x1, np.zeros(1))

    def update(self, state, feedback):
        x = self.domain.project(state.x - self.step * self.grad(feedback))
        return State(x, np.append(state.t, 1.0))


class LateLeaf(Good):
    def init(self, x1):
        return State(x1, None)

    def update(self, state, feedback):
        return State(self.domain.project(state.x - self.step * self.grad(feedback)), 1.0)


class OneNormForAllRuns(Good):
    def update(self, state, feedback):
        grad = self.grad(feedback)
        return State(self.domain.project(state.x - ratio(self.step, float(np.sqrt((grad * grad).sum()))) * grad), state.t + 1.0)


class MeanOverRuns(Good):
    def update(self, state, feedback):
        x = Good.update(self, state, feedback).x
        return State(x if x.ndim == 1 else 0.0 * x + x.mean(axis=0), state.t + 1.0)


class BranchesOnData(Good):
    def update(self, state, feedback):
        g, dg = worst(feedback.g, feedback.dg)
        grad = feedback.df + dg if g > 0.0 else feedback.df
        return State(self.domain.project(state.x - self.step * grad), state.t + 1.0)


class NumpyOnly(Good):
    def update(self, state, feedback):
        return State(self.domain.project(state.x - self.step / np.sqrt(state.t + 1.0) * self.grad(feedback)), state.t + 1.0)


class OtherCompiled(Good):
    def update(self, state, feedback):
        after = Good.update(self, state, feedback)
        return after if isinstance(after.x, np.ndarray) else after._replace(x=self.domain.project(after.x + 1e-6))


class FixedHorizon(Good):
    def update(self, state, feedback):
        steps = 1.0 / np.arange(1.0, 31.0)
        step = steps[int(np.max(state.t))]
        return State(self.domain.project(state.x - self.step * step * self.grad(feedback)), state.t + 1.0)


class WrongShape(Good):
    def decide(self, state):
        return state.x[None]


class ChokesInSessions(Good):
    def update(self, state, feedback):
        if feedback.round is None:
            raise KeyError("round")
        return Good.update(self, state, feedback)


class LosesDigitsOnDisk(Good):
    """Its state is not all there is: a leaf of another precision that the file does not keep."""

    def init(self, x1):
        return State(x1, np.longdouble(0.0))


class NotARecord:
    def __init__(self, domain, step, spare):
        self.inner = Good(domain, step, spare)
        self.init, self.decide, self.update = self.inner.init, self.inner.decide, self.inner.update


class NoUpdate(NamedTuple):
    domain: Any
    step: Array
    spare: Array

    def init(self, x1):
        return State(x1, scalar(x1))

    def decide(self, state):
        return state.x


BROKEN = [
    (NoProjection, "must be in the domain"),
    (TooFarAtHugeGradients, "must be in the domain"),
    (ChangesState, "must not change the state"),
    (ChangesFeedback, "must not change the feedback"),
    (ChangesItself, "must not change the policy itself"),
    (ChangesStateWhenAsked, "same decision when asked again|decide must not change the state"),
    (Random, "same inputs"),
    (CountsCalls, "same inputs"),
    (ReusesItsAnswer, "later rounds changed it"),
    (RemembersOutsideItsState, "repeated from round"),
    (Normalised, "update in round 1 raised"),
    (QuietNaN, "is NaN|must be finite"),
    (NaNInsideTheState, "'t' of the state is NaN"),
    (IntLeaf, "leaf 't' is of type int"),
    (BoolLeaf, "leaf 't' is of type bool"),
    (SinglePrecision, "leaf 'x' is of type ndarray float32"),
    (LosesDigitsOnDisk, "leaf 't' is of type longdouble"),
    (GrowingState, "'t' of the state must keep its shape"),
    (LateLeaf, "must keep its leaves"),
    (OneNormForAllRuns, "3 runs"),
    (MeanOverRuns, "3 runs at once must be the 3 runs one by one"),
    (BranchesOnData, "update of 3 runs in round 1 raised ValueError"),
    (NumpyOnly, "engine jax raised Tracer"),
    (OtherCompiled, "the engines must agree"),
    (FixedHorizon, "update in round 31 raised IndexError"),
    (WrongShape, "a decision must have shape"),
    (ChokesInSessions, "Session.observe raised KeyError"),
    (NotARecord, "must be a NamedTuple"),
    (NoUpdate, "must have the method `update`"),
]


COMPILE = {NumpyOnly, OtherCompiled}  # what is wrong with them shows in a compiled game alone


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [pytest.param(*pair, id=pair[0].__name__, marks=[pytest.mark.compiles] * (pair[0] in COMPILE)) for pair in BROKEN],
)
def test_check_policy_rejects(kind, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_policy(factory(kind))


@pytest.mark.compiles
def test_a_policy_whose_units_matter_is_rejected_only_where_it_promised():
    def make(domain, constraints=1, lipschitz=1.0):
        return Good(domain, 1.0, np.zeros(2))

    check_policy(make, {"disk": bridle.Ball(2)}, [1])
    with pytest.raises(AssertionError, match="1000 times as large must not change decisions"):
        check_policy(make, {"disk": bridle.Ball(2)}, [1], scale_free=True)


@pytest.mark.compiles
def test_a_factory_that_draws_lots_is_rejected():
    rng = np.random.default_rng(0)

    def make(domain, constraints=1):
        return Good(domain, float(rng.uniform()), np.zeros(2))

    with pytest.raises(AssertionError, match="made alike must decide alike"):
        check_policy(make)


@pytest.mark.compiles
def test_a_factory_may_refuse_but_not_everything_and_not_in_other_words():
    def only_for_the_simplex(domain, constraints=1):
        if type(domain) is not type(bridle.Simplex(2)):
            raise InputError("domain must be a simplex")
        if constraints != domain.dim:
            raise InputError(f"constraints must be {domain.dim}")
        return Good(domain, 1.0, np.zeros(2))

    report = check_policy(only_for_the_simplex)
    assert sum(line.startswith("skipped") for line in report) == 2 + 3 + 2 + 2  # the box has two coordinates, and so a third try
    assert any(line.startswith("simplex, k = 4: decisions") for line in report)
    with pytest.raises(AssertionError, match="must accept some domain: skipped disk"):
        check_policy(only_for_the_simplex, {"disk": bridle.Ball(2)})

    def chokes(domain, constraints=1):
        raise TypeError("no")

    with pytest.raises(AssertionError, match="the factory raised TypeError: no"):
        check_policy(chokes)


class NeedsFunctions(Good):
    @property
    def compiled(self):
        return False

    def update(self, state, feedback):
        if feedback.round is None:
            raise InputError("this policy needs the functions")
        return Good.update(self, state, feedback)


def test_what_does_not_apply_is_said():
    report = check_policy(factory(NeedsFunctions), {"disk": bridle.Ball(2)}, [1])
    assert report == [
        "skipped sessions on disk, k = 1: this policy needs the functions",
        "skipped batch on disk, k = 1: NeedsFunctions is not pure arithmetic",
        "disk, k = 1: decisions, repetition, purity, state",
        "skipped engines on disk: NeedsFunctions runs on engine python only",
    ]


def test_without_jax_the_engines_are_skipped(monkeypatch):
    monkeypatch.delitem(sys.modules, "bridle.engines.jax", raising=False)
    monkeypatch.setitem(sys.modules, "jax", None)
    report = check_policy(factory(), {"disk": bridle.Ball(2)}, [1])
    assert report[-1].startswith("skipped engines on disk: engine 'jax' needs the package")


@pytest.mark.compiles
def test_wrapped_policies_keep_the_contract():
    def doubling(domain, constraints=1):
        return bridle.Doubling(lambda T: bridle.policy("sinha2024", domain, horizon=T, lipschitz=1.0))

    check_policy(doubling, {"box": bridle.Box([-1.0, 0.0], [0.5, 3.0])}, [2])

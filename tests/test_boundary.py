"""What a caller may give for numbers: every kind of what is none, at every entrance, is one InputError that names the argument."""

from __future__ import annotations

import decimal
import fractions
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import bridle
from bridle import adversaries, learners, validate
from bridle.adapters.scaling import past_scaled
from bridle.comparisons.spec import grid
from bridle.core import InputError
from bridle.limits import GroupGap, MissLoss, WeightBudget
from helpers.strange_numbers import KINDS, NoText


@dataclass
class Entrance:
    """A call with the value in one place, the name that the error must say, and what must be as it was afterwards."""

    call: Callable[[object], object]
    name: str
    state: Callable[[], object] = lambda: None
    takes: tuple[str, ...] = ()
    """The kinds that are fine here."""


def _session(engine: str = "python") -> bridle.Session:
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine=engine)
    session.observe(0.5, [1.0, 0.0], [0.5], [[0.0, 1.0]])
    return session


def _state(session: bridle.Session) -> Callable[[], object]:
    return lambda: (session.rounds, session.cost, session.ccv, session.decide().tolist(), repr(session.state))


def _entrances() -> dict[str, Entrance]:
    ball, session, waiting = bridle.Ball(2), _session(), bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    ticket = waiting.ask()
    gate, pacer = bridle.Gate(100.0), bridle.Pacer(100.0, rounds=10, value=5.0, spend=5.0)

    def paced() -> object:
        return pacer.played, pacer.price, pacer.spent, pacer.left, pacer.planned

    learner_kinds = {"step": lambda v: learners.OGD(ball, v), "modulus": lambda v: learners.StronglyConvexOGD(ball, v)}
    found = {
        # sessions
        "observe f": Entrance(lambda v: session.observe(v, [1.0, 0.0], [0.5], [[0.0, 1.0]]), "f", _state(session)),
        "observe df": Entrance(lambda v: session.observe(0.5, v, [0.5], [[0.0, 1.0]]), "df", _state(session)),
        "observe g": Entrance(lambda v: session.observe(0.5, [1.0, 0.0], v, [[0.0, 1.0]]), "d?g", _state(session)),
        "observe dg": Entrance(lambda v: session.observe(0.5, [1.0, 0.0], [0.5], v), "dg", _state(session)),
        "observe modulus": Entrance(lambda v: session.observe(0.5, [1.0, 0.0], [0.5], [[0.0, 1.0]], v), "modulus", _state(session)),
        "observe a ticket's f": Entrance(lambda v: waiting.observe(v, [1.0, 0.0], ticket=ticket), "f", _state(waiting)),
        "step with a value": Entrance(lambda v: session.step((lambda x: v, lambda x: x)), "the value of cost", _state(session)),
        "step with a gradient": Entrance(lambda v: session.step((lambda x: 0.0, lambda x: v)), "the gradient of cost", _state(session)),
        "a Callable's value": Entrance(lambda v: session.step(bridle.Callable(lambda x: v, len)), "the value of", _state(session)),
        "its gradient": Entrance(lambda v: session.step(bridle.Callable(lambda x: 0.0, lambda x: v)), "the gradient of", _state(session)),
        "session x1": Entrance(lambda v: bridle.Session(bridle.policy("anytime", ball), v), "x1"),
        "session levels": Entrance(lambda v: bridle.Session(bridle.policy("anytime", ball), levels=v), "levels"),
        "session tolerance": Entrance(lambda v: bridle.Session(bridle.policy("anytime", ball), tolerance=v), "tolerance"),
        "session pending": Entrance(lambda v: bridle.Session(bridle.policy("anytime", ball), pending=v), "pending"),
        "session timeout": Entrance(lambda v: bridle.Session(bridle.policy("anytime", ball), timeout=v), "timeout"),
        "session late": Entrance(lambda v: bridle.Session(bridle.policy("anytime", ball), late=v), "late"),
        "session engine": Entrance(lambda v: bridle.Session(bridle.policy("anytime", ball), engine=v), "engine"),
        # domains
        "Ball dim": Entrance(bridle.Ball, "dim"),
        "Ball radius": Entrance(lambda v: bridle.Ball(2, v), "radius"),
        "Ball center": Entrance(lambda v: bridle.Ball(center=v), "center"),
        "Box low": Entrance(lambda v: bridle.Box(v, 1e9, dim=2), "low"),
        "Box high": Entrance(lambda v: bridle.Box(0.0, v, dim=2), "high"),
        "Simplex dim": Entrance(bridle.Simplex, "dim"),
        "Simplex mass": Entrance(lambda v: bridle.Simplex(2, v), "mass"),
        "L1Ball center": Entrance(lambda v: bridle.L1Ball(center=v), "center"),
        "Spectrahedron size": Entrance(bridle.Spectrahedron, "size"),
        "Spectrahedron trace": Entrance(lambda v: bridle.Spectrahedron(2, v), "trace"),
        "Product": Entrance(lambda v: bridle.Product(v, ball), "domain"),
        "Halfspace a": Entrance(lambda v: bridle.Halfspace(v, 0.5, within=ball), "a"),
        "Halfspace b": Entrance(lambda v: bridle.Halfspace([1.0, 0.0], v, within=ball), "b"),
        "Polyhedron A": Entrance(lambda v: bridle.Polyhedron(v, [1.0, 1.0]), "A"),
        "Polyhedron b": Entrance(lambda v: bridle.Polyhedron([[1.0], [-1.0]], v), "b"),
        # functions
        "Affine a": Entrance(bridle.Affine, "a"),
        "Affine b": Entrance(lambda v: bridle.Affine([1.0, 0.0], v), "b"),
        "Affine rows b": Entrance(lambda v: bridle.Affine([[1.0, 0.0], [1.0, 0.0]], v), "b"),
        "AbsoluteDeviation a": Entrance(lambda v: bridle.AbsoluteDeviation(v, 1.0), "a"),
        "Quadratic curvature": Entrance(lambda v: bridle.Quadratic(v, center=[0.0, 0.0]), "curvature"),
        "Quadratic center": Entrance(lambda v: bridle.Quadratic(1.0, center=v), "center"),
        "Quadratic linear": Entrance(lambda v: bridle.Quadratic(1.0, linear=v), "linear"),
        "Quadratic offset": Entrance(lambda v: bridle.Quadratic(1.0, center=[0.0], offset=v), "offset"),
        "Hinge features": Entrance(lambda v: bridle.Hinge(v, 1), "features"),
        "Hinge label": Entrance(lambda v: bridle.Hinge([1.0], v), "label"),
        "Hinge margin": Entrance(lambda v: bridle.Hinge([1.0], 1, margin=v), "margin"),
        "Logistic weight": Entrance(lambda v: bridle.Logistic([1.0], 1, weight=v), "weight"),
        "LogWealth returns": Entrance(bridle.LogWealth, "returns"),
        "LogWealth floor": Entrance(lambda v: bridle.LogWealth([1.0], floor=v), "floor"),
        "Network features": Entrance(lambda v: bridle.Network(v, 1.0), "features"),
        "Network label": Entrance(lambda v: bridle.Network([1.0], v), "label"),
        # learners and policies
        **{f"learner {name}": Entrance(call, name) for name, call in learner_kinds.items()},
        "AdaGrad diameter": Entrance(lambda v: learners.AdaGrad(ball, v), "diameter"),
        "FTPL samples": Entrance(lambda v: learners.FTPL(ball, samples=v), "samples"),
        "FTPL seed": Entrance(lambda v: learners.FTPL(ball, seed=v), "seed"),
        "LateAdaGrad delay": Entrance(lambda v: bridle.LateAdaGrad(ball, delay=v), "delay"),
        "policy horizon": Entrance(lambda v: bridle.policy("sinha2024", ball, horizon=v, lipschitz=1.0), "horizon"),
        "policy lipschitz": Entrance(lambda v: bridle.policy("sinha2024", ball, horizon=10, lipschitz=v), "lipschitz"),
        "policy lam": Entrance(lambda v: bridle.policy("sinha2024", ball, horizon=10, lipschitz=1.0, lam=v), "lam"),
        "policy preset": Entrance(lambda v: bridle.policy("sinha2024", ball, horizon=10, lipschitz=1.0, preset=v), "preset"),
        "policy name": Entrance(lambda v: bridle.policy(v, ball), "policy"),
        "policy domain": Entrance(lambda v: bridle.policy("anytime", v), "domain"),
        "policy_for setting": Entrance(lambda v: bridle.policy_for("ogd", bridle.problem("fixed", horizon=9), step=v), "step"),
        # problems and games
        "problem horizon": Entrance(lambda v: bridle.problem("fixed", horizon=v), "horizon"),
        "problem seed": Entrance(lambda v: bridle.problem("fixed", horizon=9, seed=v), "seed"),
        "problem dim": Entrance(lambda v: bridle.problem("fixed", horizon=9, dim=v), "dim"),
        "problem name": Entrance(lambda v: bridle.problem(v, horizon=9), "problem"),
        "recorded first": Entrance(lambda v: adversaries.Recorded([bridle.Round(bridle.Affine([1.0]), ())], v), "first"),
        "recorded rounds": Entrance(
            lambda v: adversaries.Recorded(bridle.Round(bridle.Affine([1.0])._replace(a=v, b=v), ())), "rounds"
        ),
        "play horizon": Entrance(lambda v: _play(horizon=v), "horizon"),
        "play seed": Entrance(lambda v: _play(seed=v), "seed"),
        "play x1": Entrance(lambda v: _play(x1=v), "x1"),
        "play engine": Entrance(lambda v: _play(engine=v), "engine"),
        "play keep": Entrance(lambda v: _play(keep=v), "keep"),
        "play memory": Entrance(lambda v: _play(memory=v), "memory"),
        "regret comparator": Entrance(lambda v: bridle.regret(_play(), v), "comparator"),
        # budgets
        "Gate budget": Entrance(bridle.Gate, "budget"),
        "Gate unit": Entrance(lambda v: bridle.Gate(100.0, v), "unit"),
        "Gate pay": Entrance(gate.pay, "amount", gate.facts),
        "Gate allows": Entrance(gate.allows, "amount", gate.facts),
        "Gate fits": Entrance(gate.fits, "amounts", gate.facts),
        "Gate set_budget": Entrance(gate.set_budget, "budget", gate.facts),
        "Pacer budget": Entrance(lambda v: bridle.Pacer(v, rounds=10, value=5.0, spend=5.0), "budget"),
        "Pacer rounds": Entrance(lambda v: bridle.Pacer(10.0, rounds=v, value=5.0, spend=5.0), "rounds"),
        "Pacer value": Entrance(lambda v: bridle.Pacer(10.0, rounds=10, value=v, spend=5.0), "value"),
        "Pacer goal": Entrance(lambda v: bridle.Pacer(10.0, rounds=10, value=5.0, spend=5.0, goal=v), "goal"),
        "Pacer plan": Entrance(lambda v: bridle.Pacer(10.0, rounds=2, value=5.0, spend=5.0, plan=v), "plan"),
        "Pacer bid": Entrance(pacer.bid, "value", paced),
        "Pacer pay": Entrance(pacer.pay, "amount", paced),
        "Pacer choose": Entrance(lambda v: pacer.choose(v, [1.0, 1.0]), "values", paced),
        "Pacer choose spends": Entrance(lambda v: pacer.choose([1.0, 1.0], v), "spends", paced),
        "pacing_bound": Entrance(lambda v: bridle.pacing_bound(v, 10, 1.0, 1.0), "budget"),
        # advice and comparisons
        "advise horizon": Entrance(lambda v: bridle.advise(horizon=v), "horizon"),
        "advise constraints": Entrance(lambda v: bridle.advise(constraints=v), "constraints"),
        "compare horizons": Entrance(lambda v: grid(["fixed"], ["ogd"], horizons=[v]), "horizon"),
        "compare seeds": Entrance(lambda v: grid(["fixed"], ["ogd"], seeds=v), "seeds?"),
        "compare sweep": Entrance(lambda v: grid(["fixed"], ["ogd"], sweep={"step": [v]}), "step"),
        # adapters' own
        "MissLoss": Entrance(lambda v: MissLoss(label=1, at_most=v), "at_most"),
        "GroupGap lookback": Entrance(lambda v: GroupGap(at_most=1.0, lookback=v), "lookback"),
        "WeightBudget": Entrance(WeightBudget, "at_most"),
        "past_scaled": Entrance(past_scaled, "X"),
    }  # fmt: skip
    return found


def _play(**changes: object) -> bridle.Trace:
    problem = bridle.problem("fixed", horizon=5, dim=2)
    return bridle.play(bridle.policy_for("ogd", problem), problem, **changes)


ENTRANCES = _entrances()


def refused(entrance: Entrance, value: object) -> str:
    """The error, in one short line that names the argument; nothing has changed."""
    before = entrance.state()
    with pytest.raises(InputError) as wrong:
        entrance.call(value)
    message = str(wrong.value)
    assert re.search(rf"(?<!\w)({entrance.name})(?!\w)", message), message
    assert "\n" not in message
    assert len(message) < 600
    assert entrance.state() == before
    return message


@pytest.mark.parametrize("name", ENTRANCES)
def test_what_is_no_number_is_refused_everywhere(name):
    """Every kind of it, whatever the caller has told NumPy to do about floating-point errors."""
    refused_in_every_kind(name, ENTRANCES[name])


def refused_in_every_kind(name: str, entrance: Entrance) -> None:
    for kind, make in KINDS.items():
        if kind not in entrance.takes:
            try:
                calm = refused(entrance, make())
                with np.errstate(all="raise"):
                    strict = refused(entrance, make())
            except BaseException as wrong:
                raise AssertionError(f"{name}, {kind}: {type(wrong).__name__}: {wrong}") from wrong
            if "0x" not in calm:  # an address
                assert strict == calm


def test_refused_records_leave_certificates_as_they_were():
    session = _session()
    for make in KINDS.values():
        with pytest.raises(InputError):
            session.observe(make(), [1.0, 0.0], [0.5], [[0.0, 1.0]])
    assert session.certificate().json() == _session().certificate().json()


@pytest.mark.compiles
@pytest.mark.parametrize("place", ["f", "df", "g", "dg"])
def test_the_compiled_session_refuses_the_same(place):
    pytest.importorskip("compiled")
    session = _session("compiled")
    record = {"f": 0.5, "df": [1.0, 0.0], "g": [0.5], "dg": [[0.0, 1.0]]}
    entrance = Entrance(lambda v: session.observe(**record | {place: v}), "d?g" if place == "g" else place, _state(session))
    refused_in_every_kind(f"observe {place}", entrance)
    assert session.certificate().json() == _session("compiled").certificate().json()


# --- adapters -----------------------------------------------------------------------------------------------------------------------


FEATURES = ("bool", "bools", "bool in a list", "bool as object", "tensor of bools", "bytearray")
"""In other libraries' tables True is 1, and bytes are small numbers."""

OTHERS_SAY = (
    "ragged", "endless", "too deep", "complex", "complex number", "huge", "too huge to write out", "huge in a list", "no text", "no float",
    "no array", "no array in a list", "nan", "nans", "inf", "long double", "dict", "set", "generator", "class", "None as object",
    "arrays as objects", "bool arrays in a list", "date of Python", "bytes",
)  # fmt: skip
"""What scikit-learn refuses in its own words, some of which its own checks ask for: a ValueError or a TypeError all the same."""


def test_river_rows_and_groups():
    pytest.importorskip("river")
    from bridle.adapters.river import ConstrainedClassifier

    model = ConstrainedClassifier(constraints=[GroupGap(at_most=1.0)], group="group")
    model.learn_one({"a": 1.0, "b": 2.0, "group": 1.0}, True)

    def state() -> object:
        return model.weights, model.intercept, repr([each.held for each in model._model.models]), list(model._order)

    for name, entrance in {
        "a feature": Entrance(lambda v: model.learn_one({"a": v, "b": 2.0, "group": 1.0}, True), r"x\['a'\]|'a'", state, ("bool",)),
        "a new feature": Entrance(lambda v: model.learn_one({"c": v, "a": 2.0, "group": 1.0}, True), r"x\['c'\]|'c'", state, ("bool",)),
        "the group": Entrance(
            lambda v: model.learn_one({"a": 1.0, "b": 2.0, "group": v}, True), "group", state, ("bool", "nan", "inf", "long double")
        ),
        "the class": Entrance(lambda v: model.learn_one({"a": 1.0, "b": 2.0, "group": 1.0}, v), "y", state, ("bool",)),
        "a row": Entrance(lambda v: model.learn_one(v, True), "x", state, ("dict",)),
        "a feature to score": Entrance(lambda v: model.predict_proba_one({"a": v, "b": 2.0}), r"x\['a'\]|'a'", state, ("bool",)),
        "radius": Entrance(lambda v: ConstrainedClassifier(radius=v), "radius"),
        "class_weight": Entrance(lambda v: ConstrainedClassifier(class_weight={True: v}), "class_weight"),
    }.items():
        refused_in_every_kind(name, entrance)
    model.learn_one({"a": True, "b": np.float32(2.0), "group": np.int64(0)}, np.True_)


def test_sklearn_tables():
    pytest.importorskip("sklearn")
    from bridle.adapters.sklearn import ConstrainedClassifier

    X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1])
    model = ConstrainedClassifier(constraints=[GroupGap(at_most=1.0)]).fit(X, y, groups=[0.0, 1.0])

    def state() -> object:
        return model.coef_.tolist(), model.intercept_.tolist(), repr([each.held for each in model.model_.models])

    def table(v: object) -> object:
        if not isinstance(v, np.ndarray) or not v.ndim:
            return [v, v]
        return (np.ma.stack if np.ma.isMA(v) else np.stack)([v, v])

    for name, entrance in {
        "groups": Entrance(lambda v: model.partial_fit(X, y, groups=v), "groups", state, ("nans", "bool", "bools", "bool in a list")),
        "sample_weight": Entrance(lambda v: model.partial_fit(X, y, groups=[0.0, 1.0], sample_weight=v), "sample_weight", state),
        "X": Entrance(lambda v: model.partial_fit(table(v), y, groups=[0.0, 1.0]), "X", state, FEATURES + OTHERS_SAY),
        "X to score": Entrance(lambda v: model.decision_function(table(v)), "X", state, FEATURES + OTHERS_SAY),
        "max_iter": Entrance(lambda v: ConstrainedClassifier(max_iter=v).fit(X, y), "max_iter"),
        "radius": Entrance(lambda v: ConstrainedClassifier(radius=v).fit(X, y), "radius"),
    }.items():
        refused_in_every_kind(name, entrance)
    for kind in OTHERS_SAY:
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(table(KINDS[kind]()), y, groups=[0.0, 1.0])
    with pytest.raises(InputError, match="y must be an array, not one with masked entries"):
        model.partial_fit(X, np.ma.array([0, 1], mask=[True, False]), groups=[0.0, 1.0])


def test_torch_values():
    torch = pytest.importorskip("torch")
    from bridle.adapters.torch import ConstrainedOptimizer

    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = ConstrainedOptimizer(model.parameters(), radius=3.0)
    weight = model.weight.sum()
    optimizer.step((weight - 2.0) ** 2, weight - 1.0)

    def state() -> object:
        return model.weight.tolist(), optimizer.rounds, optimizer.cost, optimizer.ccv, repr(optimizer.state_dict()["bridle"])

    fine = ("scalar tensor with a gradient", "class")  # a class can be called, and is then not what a closure returns
    for name, entrance in {
        "cost": Entrance(lambda v: optimizer.step(v, 0.0 * model.weight.sum()), "step|cost", state, fine),
        "constraints": Entrance(lambda v: optimizer.step(model.weight.sum(), v), "step|constraints", state, fine),
        "radius": Entrance(lambda v: ConstrainedOptimizer(model.parameters(), radius=v), "radius"),
    }.items():
        refused_in_every_kind(name, entrance)


# --- what is fine -------------------------------------------------------------------------------------------------------------------


@given(
    arrays.arrays(
        st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.int8, np.uint64]), st.sampled_from([(), (0,), (3,), (2, 3)])
    )
)
def test_numbers_of_any_width_are_taken_as_they_are(given_array):
    """In an array, as nested lists, as objects, and as a masked array without a mask; what comes out is a copy of its own."""
    if np.isfinite(given_array).all():
        forms = (given_array, given_array.tolist(), given_array.astype(object), np.ma.array(given_array), np.asfortranarray(given_array))
        for form in forms:
            result = validate.array("x", form)
            np.testing.assert_array_equal(result, given_array.astype(float).reshape(result.shape))
            assert result.dtype == float
            assert result.flags.c_contiguous
            assert not np.shares_memory(result, given_array)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3.0), (2**60, 2.0**60), (np.float32(0.5), 0.5), (np.array(2), 2.0), (decimal.Decimal("0.25"), 0.25),
        (fractions.Fraction(1, 4), 0.25),
        (np.array(7, dtype=object), 7.0), (np.ma.array(2.0), 2.0),
    ],
)  # fmt: skip
def test_a_number_may_come_in_many_forms(value, expected):
    assert validate.number("x", value) == expected
    assert type(validate.number("x", value)) is float
    np.testing.assert_array_equal(validate.array("x", [value, value]), [expected, expected])


def test_tensors_and_arrays_of_other_libraries_are_fine():
    torch = pytest.importorskip("torch")
    session, plain = _session(), _session()
    session.observe(torch.tensor(0.5), torch.tensor([1.0, 0.0]), torch.tensor([0.5]), torch.tensor([[0.0, 1.0]]))
    plain.observe(0.5, np.array([1.0, 0.0]), np.array([0.5]), np.array([[0.0, 1.0]]))
    assert _state(session)() == _state(plain)()
    loss = torch.tensor(0.5, requires_grad=True)
    with pytest.raises(InputError, match=r"f must be a number, not a tensor that carries a gradient: give its \.detach\(\)"):
        session.observe(loss, [1.0, 0.0], [0.5], [[0.0, 1.0]])


def test_memory_that_is_out_is_not_bad_input():
    class Full:
        def __array__(self, dtype=None, copy=None):
            raise MemoryError("no more")

    with pytest.raises(MemoryError):
        validate.array("x", Full())


def test_whatever_it_is_it_can_be_shown_in_one_short_line():
    for value in (NoText(), [NoText()], 10**5000, [10**5000], "x" * 1000, "two\nlines", *(make() for make in KINDS.values())):
        text = validate.show(value)
        assert len(text) <= 80
        assert "\n" not in text

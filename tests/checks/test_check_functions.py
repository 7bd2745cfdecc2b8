"""`check_functions` passes functions that are what they say, and finds each way in which they are not."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.checks import check_functions

BALL = bridle.Ball(2)
RIGHT = bridle.Quadratic(2.0, center=[0.5, -0.5])
PLACES = {
    "ball": bridle.Ball(3, radius=2.0),
    "box": bridle.Box([-1.0, 0.0, 5.0], [0.5, 3.0, 1e3]),
    "simplex": bridle.Simplex(3),
    "segment": bridle.Box([-0.5], [1.0]),
}

NOT_AT_THE_EDGE = (lambda x: float(x @ x), lambda x: 2.0 * x if x @ x < 0.99 else -2.0 * x)
NAN_BELOW_ZERO = (lambda x: float(x[0]) if x[0] > 0.0 else float("nan"), lambda x: np.array([1.0, 0.0]))
NAN_GRADIENT = (lambda x: float(x[0]), lambda x: np.array([1.0, float("nan")]))
WRONG = {
    "gradient wrong at the boundary": (NOT_AT_THE_EDGE, "its gradient at one end says .* or more at the other, not"),
    "NaN": (NAN_BELOW_ZERO, "the value of .* must be finite"),
    "NaN in the gradient": (NAN_GRADIENT, "the gradient of .* must be finite"),
    "gradient twice too long": ((lambda x: float(x[0]), lambda x: np.array([2.0, 0.0])), "its gradient at .* has the slope"),
    "gradient of the wrong sign": ((lambda x: float(x[1]), lambda x: np.array([0.0, -1.0])), "its gradient at .* has the slope"),
    "one coordinate off": ((lambda x: float(x @ x), lambda x: 2.0 * x + [0.0, 1e-2]), "its gradient at .* has the slope"),
    "not convex": ((lambda x: -float(x @ x), lambda x: -2.0 * x), "above its chord there, .*: it is not convex"),
    "not convex somewhere": (
        (lambda x: float(np.cos(40.0 * x[0])), lambda x: np.array([-40.0 * np.sin(40.0 * x[0]), 0.0])), "it is not convex",
    ),
    "infinite gradient": ((lambda x: float(x[0]), lambda x: np.array([np.inf, 0.0])), "the gradient of .* must be finite"),
    "a gradient of another shape": ((lambda x: float(x[0]), lambda x: np.array([1.0, 0.0, 0.0])), r"must have shape \(2,\), not \(3,\)"),
    "an exception": ((lambda x: 1.0 / 0.0, lambda x: x), "division by zero"),
    "no function": (3.0, "must be a function or a pair of functions"),
}  # fmt: skip


@pytest.mark.parametrize("what", ["cost", "constraints[1]"])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_and_named(name, what):
    function, message = WRONG[name]
    cost, constraints = (function, []) if what == "cost" else (RIGHT, [bridle.Affine([0.1, 0.2]), function])
    with pytest.raises(AssertionError, match=message) as wrong:
        check_functions(cost, constraints, BALL)
    assert str(wrong.value).startswith(f"{what}: ")


def test_values_of_another_shape_elsewhere_are_found():
    flexible = (lambda x: np.ones(1 if x[0] < 0.0 else 2), lambda x: np.zeros((1 if x[0] < 0.0 else 2, 2)))
    with pytest.raises(AssertionError, match=r"constraints\[0\]: its value has shape \(.,\) at .*, and \(.,\) elsewhere"):
        check_functions(RIGHT, [flexible], BALL)
    with pytest.raises(AssertionError, match="the value of cost must be a number"):
        check_functions((lambda x: x, lambda x: np.eye(2)), [], BALL)


def test_one_of_several_constraints_is_named():
    several = (lambda x: np.array([x[0], -x @ x]), lambda x: np.array([[1.0, 0.0], -2.0 * x]))
    with pytest.raises(AssertionError, match=r"^constraints\[0\]\[1\]: at .* it is not convex"):
        check_functions(RIGHT, [several], BALL)


def test_noise_is_found():
    rng = np.random.default_rng(0)
    noisy = (lambda x: float(x[0]) + 1e-6 * rng.standard_normal(), lambda x: np.array([1.0, 0.0]))
    with pytest.raises(AssertionError, match=r"constraints\[0\]: asked twice at .*, it gives .* and .*: it is noisy"):
        check_functions(RIGHT, [noisy], BALL)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("place", PLACES)
def test_right_functions_pass_also_with_kinks_and_at_every_scale(place, seed):
    domain = PLACES[place]
    d, rng = domain.dim, np.random.default_rng(seed)
    a = rng.standard_normal((4, d))
    kinks = (lambda x: float(np.abs(x).sum()) - 3.0, np.sign)
    largest = (lambda x: float((a @ x).max()), lambda x: a[(a @ x).argmax()])
    steep = (
        lambda x: float(np.exp(x[0] / domain.diameter())),
        lambda x: np.exp(x[0] / domain.diameter()) * np.eye(d)[0] / domain.diameter(),
    )
    for scale in (1.0, 1e-8, 1e8):
        scaled = [(lambda x, f=f, s=scale: s * f[0](x), lambda x, f=f, s=scale: s * f[1](x)) for f in (kinks, largest, steep)]
        limits = [*scaled, bridle.Affine(a, [1e6, 0.0, 0.0, 0.0]), bridle.Quadratic(1.0, center=a[0], offset=-5.0)]
        report = check_functions(bridle.Quadratic(scale, center=a[1]), limits, domain, seed=seed)
        assert report == [
            f"{name}: shapes, finiteness, repetition, gradients, convexity" for name in ["cost", *(f"constraints[{i}]" for i in range(5))]
        ]


def test_a_function_is_asked_in_the_domain_alone():
    def inside(x):
        assert BALL.contains(x, 1e-9)
        return float(x[0])

    check_functions((inside, lambda x: np.array([1.0, 0.0])), [], BALL)


def test_a_function_that_says_it_is_not_convex_is_not_asked_to_be():
    curved = bridle.Callable(lambda x: float(np.cos(3.0 * x[0])), lambda x: np.array([-3.0 * np.sin(3.0 * x[0]), 0.0]), convex=False)
    assert check_functions(curved, [], BALL) == [
        "cost: shapes, finiteness, repetition, gradients",
        "skipped convexity of cost: it says that it is not convex",
    ]
    wrong = bridle.Callable(lambda x: float(np.cos(3.0 * x[0])), lambda x: np.array([3.0, 0.0]), convex=False)
    with pytest.raises(AssertionError, match="cost: its gradient"):
        check_functions(wrong, [], BALL)


def test_values_may_be_told_to_be_less_exact():
    single = (lambda x: float(np.float32(x @ x)), lambda x: 2.0 * x)
    with pytest.raises(AssertionError):
        check_functions(single, [], BALL)
    assert check_functions(single, [], BALL, tolerance=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"domain": 3}, "domain must be a domain"),
        ({"constraints": RIGHT}, "constraints must be a list of functions"),
        ({"segments": 0}, "segments must be"),
        ({"seed": -1}, "seed must be"),
        ({"tolerance": 0.0}, "tolerance must be"),
    ],
)
def test_bad_arguments_are_named(wrong, message):
    with pytest.raises(bridle.InputError, match=message):
        check_functions(**{"cost": RIGHT, "constraints": [], "domain": BALL} | wrong)

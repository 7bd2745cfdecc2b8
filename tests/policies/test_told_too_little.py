"""What a policy proves of its own run holds whatever diameter or Lipschitz constant it was told: it is right, or there is none."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import bridle

TOLD = [0.01, 0.3, 0.9, 1.0, 3.0]
"""The diameter that is told, in units of the true one."""


def pulled(session, rounds, seed, limits=True, fixed=False):
    """Costs that turn against the decision, limits that a fixed action meets; the regret against the best such action on the line."""
    rng = np.random.default_rng(seed)
    paid, slopes, end = 0.0, 0.0, 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in range(rounds):
            x = float(session.decide()[0])
            c = float(rng.choice([1.0, -0.2, 0.3])) if seed % 2 else (1.0 if t < rounds // 2 else -1.0)
            about = {"g": (x - end) if limits else -1.0, "dg": [1.0 if limits else 0.0]}
            if fixed:
                about = {"g": x - end, "dg": [1.0]}
            session.observe(f=c * x, df=[c], **about)
            paid, slopes = paid + c * x, slopes + c
    return paid - min(slopes * u for u in (-1.0, end))


@pytest.mark.parametrize("share", TOLD)
@pytest.mark.parametrize("about", [{}, {"V": 2.0}, {"form": "value", "lipschitz": 1.0}, {"drift": 1.0}, {"halfspace": False}])
def test_anytime_proves_no_more_than_is_true(share, about):
    for seed in range(2):
        session = bridle.Session(bridle.policy("anytime", bridle.Ball(1), diameter=2.0 * share, **about), x1=[1.0])
        regret = pulled(session, 250, seed)
        certificate = session.certificate()
        assert regret <= certificate.regret_algorithm
        if share < 1.0:
            assert certificate.squared_bound is None
        assert certificate.squared_bound is None or certificate.squared <= certificate.squared_bound
        bound = session.bound()
        assert bound.regret is None if share < 1.0 else regret <= bound.regret


def test_a_diameter_of_a_hundredth_is_not_believed():
    """The reproduction: steps of a hundredth of the ball, costs that turn once."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(1), diameter=0.01))
    regret = 0.0
    for t in range(400):
        x = float(session.decide()[0])
        c = 1.0 if t < 20 else -1.0
        session.observe(f=c * x, df=[c])
        regret += c * (x - 1.0)
    own, S = session.certificate().regret_algorithm, 400.0
    V = session.state.V
    assert regret <= own == pytest.approx((4.0 / 0.01 + 0.01) / 2.0**0.5 * (V * V * S) ** 0.5 / V)
    assert "more than the policy was told" in session.bound().why


@pytest.mark.parametrize("share", TOLD)
@pytest.mark.parametrize("lipschitz", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("learner", ["adagrad", "adaftrl"])
def test_algorithm_1_proves_no_more_than_is_true(share, lipschitz, learner):
    settings = {"horizon": 400, "lipschitz": lipschitz, "diameter": 2.0 * share, "learner": learner}
    for seed in range(2):
        session = bridle.Session(bridle.policy("sinha2024", bridle.Ball(1), **settings), x1=[1.0])
        regret, certificate = pulled(session, 400, seed), session.certificate()
        assert certificate.regret_algorithm is None or regret <= certificate.regret_algorithm
        bound = session.bound()
        assert bound.why or (regret <= bound.regret and session.ccv <= bound.ccv)


@pytest.mark.parametrize("share", TOLD)
@pytest.mark.parametrize("preset", ["theory", "practice"])
def test_polyak_steps_prove_no_more_than_is_true(share, preset):
    settings = {"horizon": 400, "lipschitz": 1.0, "slater": 0.5, "diameter": 2.0 * share, "preset": preset}
    for seed in range(4):
        session = bridle.Session(bridle.policy("hutchinson2025", bridle.Ball(1), **settings), x1=[0.0])
        regret, certificate = pulled(session, 400, seed, fixed=True), session.certificate()
        assert regret <= certificate.regret_algorithm
        bound = session.bound()
        assert bound.why or regret <= bound.regret


SETTINGS = {"horizon": 300, "bound": 1.5, "modulus": 1.0, "slater": 0.4, "smoothness": 1.0, "window": 1, "exp_concavity": 0.4}


VALUES_ALONE = ("bandit1", "bandit2")
ON_A_BALL = [
    name
    for name in bridle.policies.names()
    if name not in ("steiner", *VALUES_ALONE) and bridle.policies.entry(name).domains != ("simplex",)
]


@pytest.mark.parametrize("name", VALUES_ALONE)
def test_a_session_that_sees_values_alone_proves_nothing(name):
    """It cannot see how steep a function is, so `session.bound()` has no number, and says so."""
    told = {"horizon": 300, "lipschitz": 1.0, "bound": 1.5}
    wanted = {parameter.name for parameter in bridle.policies.parameters(name)}
    session = bridle.Session(bridle.policy(name, bridle.Ball(1), **{key: value for key, value in told.items() if key in wanted}))
    session.step(cost=lambda x: 0.5 * x[0], constraints=[lambda x: x[0] - 0.5])
    bound = session.bound()
    assert bound.why
    assert all(value is None for value in bound[:-1])


@pytest.mark.covering(5)
@pytest.mark.parametrize("name", ON_A_BALL)
@pytest.mark.parametrize("share", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("lipschitz", [0.05, 0.5, 1.0, 20.0])
def test_no_theorem_leans_on_what_was_told(name, share, lipschitz):
    """Whatever diameter and Lipschitz constant the policy was told, `session.bound()` is right or says why there is none."""
    wanted = {parameter.name for parameter in bridle.policies.parameters(name)}
    told = {"diameter": 2.0 * share, "lipschitz": lipschitz, **SETTINGS}
    if name == "anytime":
        wanted -= {"lipschitz", "modulus", "smoothness"}
    if "modulus" in wanted and not bridle.policies.entry(name).strongly_convex:
        wanted -= {"modulus"}
    curved = "modulus" in wanted or "exp_concavity" in wanted  # slopes of at most 1.5: 1 / 1.5^2 is more than is told
    for seed in range(2):
        policy = bridle.policy(name, bridle.Ball(1), **{key: value for key, value in told.items() if key in wanted})
        session, rng = bridle.Session(policy, x1=[1.0]), np.random.default_rng(seed)
        paid, balance, total, linear = 0.0, 0.0, 0.0, 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for t in range(300):
                x = float(session.decide()[0])
                c = float(rng.choice([0.5, -0.5])) if seed else (0.5 if t < 200 else -0.5)
                q = 1.0 if curved else 0.0
                f, df = c * x + 0.5 * q * x * x, c + q * x
                session.observe(f=f, df=[df], g=x - 0.5, dg=[1.0])
                paid, balance, total, linear = paid + f, balance + x - 0.5, total + q, linear + c
            bound = session.bound()
        best = np.clip(-linear / total, -1.0, 0.5) if total else (-1.0 if linear > 0.0 else 0.5)
        regret = paid - (linear * best + 0.5 * total * best * best)
        assert bound.regret is None or regret <= bound.regret + 1e-9
        assert bound.ccv is None or session.ccv <= bound.ccv + 1e-9
        assert bound.soft is None or balance <= bound.soft + 1e-9
        assert bound.why or bound.regret is not None or bound.ccv is not None

"""The online Newton step: its certificate on exp-concave costs against adaptive opponents, its theorem, and the step itself."""

from __future__ import annotations

from math import log, log1p, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import learners, records
from bridle.game.summary import summary
from bridle.learners import newton_step
from helpers.instances import DOMAINS, instances, make_domain
from helpers.learner_duels import OPPONENTS, Opponent

SPACES = {
    "simplex": bridle.Simplex(4, mass=2.0),
    "box": bridle.Box([-1.0, 0.0, 2.0], [1.0, 0.5, 3.0]),
    "ball": bridle.Ball(3, radius=1.5),
    "pair": bridle.Product(bridle.Simplex(3), bridle.Box(0.0, 1.0, dim=1)),
}


def contest(domain, opponent, alpha: float, told: float, steepness: float, rounds: int = 80):
    """Costs whose exp(-alpha f) is affine: f(u) = -ln(1 - alpha <p, u - x>) / alpha, the least curved of that exp-concavity.

    Yields what is left after each round: the learner, its state, the regret against the best of many actions, B and S.
    """
    learner = bridle.ONS(domain, told)
    rng = np.random.default_rng(7)
    points = domain.project(domain.center() + domain.diameter() * rng.standard_normal((400, domain.dim)))
    points = np.concatenate([points, [domain.linear_argmin(v) for v in rng.standard_normal((100, domain.dim))]])
    state, regrets, B, S = learner.init(domain.linear_argmin(np.ones(domain.dim))), np.zeros(len(points)), 0.0, 0.0
    for t in range(1, rounds + 1):
        x = learner.decide(state)
        assert domain.contains(x)
        p = opponent(x, t)
        rise = -float(domain.linear_min(-p)) - p @ x  # the most that <p, u - x> can be
        p = p * steepness / max(alpha * rise, 1e-300) if rise * alpha > steepness else p  # so that the logarithm exists
        r = (x - points) @ p
        regrets = regrets + np.log1p(alpha * r) / alpha
        state = learner.step(state, p)
        flat = newton_step.along_domain(domain, p)
        B, S = max(B, float(p @ x - domain.linear_min(p))), S + flat @ flat
        yield learner, state, float(regrets.max()), B, S


@pytest.mark.parametrize("where", SPACES)
@pytest.mark.parametrize("kind", OPPONENTS)
def test_regret_is_within_the_certificate_and_that_within_the_theorem(kind, where, record_property):
    domain, shares = SPACES[where], {"certificate": 0.0, "theorem": 0.0}
    D, n = domain.diameter(), learners.directions(domain)
    for alpha in (0.05, 1.0, 20.0):
        opponent = Opponent(kind, domain, np.random.default_rng(3))
        for learner, state, regret, B, S in contest(domain, opponent, alpha, alpha, 0.9):
            proved = float(learner.certified(state))
            most = learners.ons_regret(n, alpha, D, B, S, shortfall=float(state.shortfall))
            assert regret <= proved + 1e-9
            assert proved <= most * (1.0 + 1e-9)
            assert float(state.S) == pytest.approx(S, rel=1e-9)
            assert state.shortfall <= 1e-9 * (1.0 + proved)
            shares["certificate"] = max(shares["certificate"], regret / proved)
            shares["theorem"] = max(shares["theorem"], proved / most)
    for name, share in shares.items():
        record_property(name, share)


def test_the_certificate_is_nearly_attained():
    """A single slope from end to end of an interval: regret ln(1 + z) / alpha, z = alpha p D; and the certificate at its own z."""
    alpha, D = 0.7, 2.0
    domain = bridle.Box(-1.0, 1.0, dim=1)
    best = 0.0
    for z in (0.5, 1.0, 1.5, 2.0):
        learner, p = bridle.ONS(domain, alpha), z / (alpha * D)
        state = learner.step(learner.init(np.ones(1)), np.array([p]))
        A = 1.0 / (alpha * D * D) + p * p / (1.0 / alpha + 2.0 * p * D / 3.0)
        assert learner.decide(state)[0] == pytest.approx(1.0 - p / A, rel=1e-6)
        assert learner.certified(state) == pytest.approx(0.5 / alpha + 0.5 * p * p / A, rel=1e-6)
        best = max(best, log1p(z) / alpha / float(learner.certified(state)))
    assert best > 0.88


def test_a_learner_that_was_told_too_much_breaks_its_certificate():
    """So the certificate's test can fail: curvature that is not there is counted as gained."""
    domain, broken = bridle.Box(-1.0, 1.0, dim=1), False
    for kind in OPPONENTS:
        duel = contest(domain, Opponent(kind, domain, np.random.default_rng(3)), 0.02, 8.0, 0.9, rounds=400)
        broken |= any(regret > learner.certified(state) for learner, state, regret, _, _ in duel)
    assert broken


@settings(max_examples=200)
@given(st.floats(1e-6, 1e6), st.floats(-1.0, 1.0))
def test_the_inequality_that_curvature_rests_on(z, share):
    """ln(1 + r) <= r - r^2 / (2 + 4 z / 3) for -1 < r <= z, and 4/3 is the smallest factor for which that is so."""
    r = share * z if share > 0.0 else 0.999999 * share
    assert log1p(r) <= r - r * r / (2.0 + 4.0 * z / 3.0) + 1e-15 * abs(r)
    assert log1p(0.01) > 0.01 - 0.01**2 / (2.0 + 1.3 * 0.01)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 5.0])
@settings(max_examples=25)
@given(instance=instances(), rounds=st.integers(1, 8), size=st.sampled_from([1e-2, 1.0, 30.0]))
def test_the_step_is_the_minimum_on_the_page(alpha, instance, rounds, size):
    """M and eps from all gradients at once, and no action improves on the decision by its first-order condition."""
    domain, x1, _, rng = instance
    if domain.diameter() == 0.0:
        return
    learner, D = bridle.ONS(domain, alpha), domain.diameter()
    n = domain.dim - 1 if isinstance(domain, bridle.domains.closed_form.SimplexSet) else learners.directions(domain)
    state, x, S = learner.init(x1), x1, 0.0
    A = np.zeros((domain.dim, domain.dim))
    for _ in range(rounds):
        p = newton_step.along_domain(domain, size * rng.standard_normal(domain.dim) / D)
        S += p @ p
        if alpha > 0.0:
            A += np.outer(p, p) / (1.0 / alpha + 2.0 * (p @ x - domain.linear_min(p)) / 3.0)
        eps = n / (alpha * D**2) if alpha > 0.0 else sqrt(2.0 * S) / D
        state = learner.step(state, p)
        z = learner.decide(state)
        slope = p + eps * (z - x) + A @ (z - x)
        gain = p @ (x - z) - 0.5 * (eps * (z - x) @ (z - x) + (z - x) @ A @ (z - x))
        scale = 1e-12 * (np.linalg.norm(p) + (eps + np.abs(A).sum(axis=1).max()) * D) * (D + np.linalg.norm(x))
        assert slope @ z - domain.linear_min(slope) <= 1.1e-6 * gain + scale
        np.testing.assert_allclose(learner.metric(state), eps * np.eye(domain.dim) + A, rtol=1e-9, atol=1e-12 * float(np.abs(A).max()))
        x = z


def test_without_curvature_it_is_adagrad():
    rng, domain = np.random.default_rng(1), bridle.Ball(3, radius=2.0)
    newton, plain = bridle.ONS(domain, 0.0), bridle.AdaGrad(domain)
    one, other = newton.init(domain.center()), plain.init(domain.center())
    for t in range(50):
        p = rng.standard_normal(3) * (t > 2)
        one, other = newton.step(one, p), plain.step(other, p)
        np.testing.assert_allclose(one.x, other.x, atol=1e-12)
        assert newton.certified(one) <= learners.adagrad_regret(4.0, float(other.seen)) * (1.0 + 1e-5) + 1e-12


def test_steps_that_stop_early_are_charged(monkeypatch):
    """Two gradient steps are far from the minimum: the certificate has their gaps, and still holds."""
    monkeypatch.setattr(newton_step, "MOST_STEPS", 2)
    domain = bridle.Ball(6)
    short = 0.0
    for learner, state, regret, B, S in contest(domain, Opponent("random", domain, np.random.default_rng(0)), 0.4, 0.4, 0.9, 200):
        assert regret <= learner.certified(state) + 1e-9
        assert learner.certified(state) <= learners.ons_regret(6, 0.4, 2.0, B, S, shortfall=state.shortfall) * (1.0 + 1e-9)
        short = state.shortfall
    assert short > 1e-3


@pytest.mark.parametrize("where", DOMAINS)
def test_many_runs_of_it_are_the_loop_over_runs(where):
    rng = np.random.default_rng(5)
    domain = make_domain(where, 3, 2.0, rng)
    for runs in (1, 2, domain.dim):
        X = domain.project(domain.center() + rng.standard_normal((runs, domain.dim)))
        alphas = rng.uniform(0.1, 2.0, runs)
        singles, wide = [bridle.ONS(domain, alpha) for alpha in alphas], bridle.ONS(domain, alphas)
        state, states = wide.init(X), [single.init(x) for single, x in zip(singles, X, strict=True)]
        shapes = {key: np.shape(leaf) for key, leaf in records.leaves(state).items()}
        for t in range(6):
            p = rng.standard_normal((runs, domain.dim)) * (t > 1)
            state = wide.step(state, p)
            states = [single.step(one, row) for single, one, row in zip(singles, states, p, strict=True)]
            assert {key: np.shape(leaf) for key, leaf in records.leaves(state).items()} == shapes
            np.testing.assert_allclose(
                wide.decide(state), [single.decide(one) for single, one in zip(singles, states, strict=True)], atol=1e-10
            )
            np.testing.assert_allclose(
                np.ravel(wide.certified(state)), [s.certified(o) for s, o in zip(singles, states, strict=True)], rtol=1e-9
            )


def test_what_all_directions_share_does_not_matter():
    """On a simplex the same number added to every entry of a gradient changes no decision and no certificate."""
    learner, rng = bridle.ONS(bridle.Simplex(5), 1.0), np.random.default_rng(2)
    one = other = learner.init(learner.domain.center())
    for _ in range(30):
        p = 0.1 * rng.standard_normal(5)
        one, other = learner.step(one, p), learner.step(other, p - 7.0)
        np.testing.assert_allclose(one.x, other.x, atol=1e-9)
    assert learner.certified(one) == pytest.approx(float(learner.certified(other)), rel=1e-6)
    assert learners.directions(SPACES["pair"]) == 3


def test_the_regret_bound_at_fixed_numbers():
    n, alpha, D, B, S = 3.0, 0.4, 1.7, 2.1, 50.0
    grown = log(1.0 + 0.4**2 * 1.7**2 * 50.0 / 9.0)
    expected = 3.0 / 0.8 + 1.000001 * 1.5 * (2.5 + 1.4) * grown
    assert learners.ons_regret(n, alpha, D, B, S) == pytest.approx(expected, rel=1e-12)
    assert learners.ons_regret(n, alpha, D, B, S, shortfall=0.25) == pytest.approx(expected + 0.25, rel=1e-12)
    told = 3.0 / 0.8 * (1.7 / 2.5) ** 2 + 1.000001 * 1.5 * (2.5 + 1.4) * log(1.0 + 0.4**2 * 2.5**2 * 50.0 / 9.0)
    assert learners.ons_regret(n, alpha, D, B, S, told=2.5) == pytest.approx(told, rel=1e-12)
    assert learners.ons_regret(n, 0.0, D, B, S) == pytest.approx(1.7 * 10.0 * (1.0 + 0.5e-6), rel=1e-12)
    assert learners.ons_regret(n, 0.0, D, B, S, told=2.5) == pytest.approx(5.0 * (1.7**2 / 2.5 + 1.000001 * 2.5), rel=1e-12)


def test_the_policys_bound():
    policy = bridle.policy("ons", bridle.Simplex(4), exp_concavity=0.5)
    G, D, t = 1.7, sqrt(2.0), 4000
    facts = {"lipschitz": G, "diameter": D, "feasible": policy.domain.center()}
    assert "shortfall" in policy.bound(facts, t).why
    facts["shortfall"] = 0.1
    expected = learners.ons_regret(3, 0.5, D, G * D, G * G * t, shortfall=0.1)
    assert policy.bound(facts, t).regret == pytest.approx(expected, rel=1e-12)
    assert policy.bound(facts, 1).regret == pytest.approx(G * D, rel=1e-12)
    assert policy.bound({**facts, "exp_concavity": 0.5}, t).regret == pytest.approx(expected, rel=1e-12)
    assert "0.4, less than the 0.5" in policy.bound({**facts, "exp_concavity": 0.4}, t).why
    assert "less than the 0.5" in policy.bound({**facts, "modulus": 0.0}, t).why
    assert policy.bound({**facts, "modulus": 0.5 * G * G}, t).regret == pytest.approx(expected, rel=1e-12)
    sweep = bridle.policy("ons", bridle.Simplex(4), exp_concavity=[0.5, 0.25])
    assert sweep.bound({**facts, "shortfall": np.array([0.1, 0.2])}, t).regret == pytest.approx(
        [expected, learners.ons_regret(3, 0.25, D, G * D, G * G * t, shortfall=0.2)], rel=1e-12
    )


@pytest.mark.parametrize("dim", [1, 6])
def test_the_bound_holds_on_strongly_convex_costs_that_are_told_nothing_else(dim):
    problem = bridle.problem("halfspaces", horizon=3000, dim=dim, modulus=1.0)
    policy = bridle.policy_for("ons", problem)
    assert policy.parameters["exp_concavity"] == pytest.approx(1.0 / problem.constants["lipschitz"] ** 2)
    trace = bridle.play(policy, problem)
    facts = summary(trace)
    assert facts["regret_bound_holds"]
    assert facts["regret_bound"] < bridle.policy_for("adagrad", problem).bound(problem.constants, 3000).regret


def test_it_is_refused_under_the_reduction():
    domain = bridle.Ball(2)
    for learner in ("ons", bridle.ONS(domain, 1.0)):
        for name, told in (("sinha2024", {"horizon": 100, "lipschitz": 1.0}), ("sinha2024-ocs", {})):
            with pytest.raises(bridle.InputError, match="exp-concave costs, and the surrogate costs"):
                bridle.policy(name, domain, learner=learner, **told)
    with pytest.raises(bridle.InputError, match="exp_concavity"):
        bridle.policy("ons", domain, exp_concavity=-1.0)


def test_gradient_steps_are_as_many_as_acceleration_needs(monkeypatch):
    """Eigenvalues a thousand apart: plain gradient steps would be thousands; and none are taken for what is rounding."""
    taken, iterate = [0], newton_step.iterate

    def counted(body, state, most, like, done):
        def once(at):
            taken[0] += 1
            return body(at)

        return iterate(once, state, most, like, done)

    monkeypatch.setattr(newton_step, "iterate", counted)
    learner, rng = bridle.ONS(bridle.Box(-1.0, 1.0, dim=6), 1.0), np.random.default_rng(0)
    state = learner.init(np.zeros(6))
    for _ in range(100):
        taken[0] = 0
        state = learner.step(state, rng.standard_normal(6) * [3.0, 1.0, 0.3, 0.1, 0.03, 0.01])
    sizes = np.linalg.eigvalsh(learner.metric(state))
    assert sizes[-1] > 1000.0 * sizes[0]
    assert 100 < taken[0] < 700
    taken[0] = 0
    after = learner.step(state, 1e-12 * np.ones(6))
    assert taken[0] == 0
    assert 0.0 < after.spent - state.spent < 1e-10
    taken[0] = 0
    learner.step(state, 1e-7 * np.ones(6))
    assert 100 < taken[0] < 700


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.parametrize("engine", ["jax", "compiled"])
def test_compiled_steps_are_the_python_ones(engine):
    problem = bridle.problem("halfspaces", horizon=200, dim=3, domain="simplex", modulus=2.0)
    policy = bridle.policy_for("ons", problem)
    plain, compiled = (bridle.play(policy, problem, engine=name, keep="decisions") for name in ("python", engine))
    np.testing.assert_allclose(compiled.decisions, plain.decisions, rtol=0.0, atol=1e-9)
    assert np.abs(np.diff(plain.decisions, axis=0)).max() > 1e-3
    for field in ("S", "spent", "shortfall"):
        assert getattr(compiled.state, field) == pytest.approx(getattr(plain.state, field), rel=1e-9, abs=1e-12)

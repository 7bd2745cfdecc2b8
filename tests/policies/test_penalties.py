"""Penalty and regularised primal-dual policies, BanditQ and the unconstrained learners: the page's update, within every bound."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Feedback, Round
from bridle.policies.common import powers
from helpers.adversarial_games import outcome, ratios, stage
from helpers.engine_agreement import agree
from helpers.extent import WHOLE
from helpers.instances import constraint_at, cost_at, instances, moves

# --- the update, against a transcription of the page that shares no code with the library ---------------------------------------------


def transcribed(kind: str, project, D: float, T: int, G: float, mu: float, c: float, k: int, x):
    """The updates as a reader would write them down; yields x_t and takes (f', g, g') of round t."""
    q, S, Q, t = 0.0, 0.0, np.zeros(k), 0
    while True:
        df, g, dg = yield x
        t += 1
        if kind in ("yuan2018", "yuan2018-strong"):
            eta = D / (G * sqrt((k + 1) * T)) if kind == "yuan2018" else 1 / (mu * t)
            move = df.copy()
            for i in range(k):
                if g[i] > 0:
                    move += g[i] / ((k + 1) * G**2 * eta) * dg[i]
            x = project(x - eta * move)
            continue
        j = int(np.argmax(g))
        h, dh = max(0.0, g[j]), dg[j] if g[j] > 0 else 0.0 * x
        if kind in ("yi2023", "yi2023-constant", "yi2023-strong"):
            alpha = {"yi2023": D / (2 * G) * t**-c, "yi2023-constant": D / (G * sqrt(2 * T)), "yi2023-strong": 1 / (mu * t)}[kind]
            x = project(x - alpha * (df + h / (2 * G**2 * alpha) * dh))
        elif kind in ("yi2022", "yi2022-strong"):
            alpha = D / G * t**-c if kind == "yi2022" else 1 / (mu * t)
            gamma, beta = t ** -(1 - c) / (G * D), G * D * t**-c
            new = project(x - alpha * (df + q * dh))
            q = max(0.0, (1 - beta * gamma) * q + gamma * (h + dh @ (new - x)))
            x = new
        elif kind == "banditq":
            reward = (Q + sqrt(T)) * -df
            Q = np.maximum(0.0, Q + g)
            S += reward @ reward
            x = project(x + D / sqrt(2 * S) * reward) if S > 0 else x
        else:
            x = project(x - (D / (G * sqrt(2 * t)) if kind == "ogd" else D / (G * sqrt(T))) * df)


def made(kind: str, domain, T: int, G: float, mu: float, c: float, k: int):
    return bridle.policy(
        kind.replace("-constant", "") if kind != "yi2022-strong" else "yi2022",
        domain,
        **{
            "yuan2018": {"horizon": T, "lipschitz": G, "constraints": k},
            "yuan2018-strong": {"lipschitz": G, "modulus": mu, "constraints": k},
            "yi2022": {"lipschitz": G, "exponent": c},
            "yi2022-strong": {"lipschitz": G, "modulus": mu, "exponent": c},
            "yi2023": {"lipschitz": G, "exponent": c},
            "yi2023-constant": {"lipschitz": G, "horizon": T},
            "yi2023-strong": {"lipschitz": G, "modulus": mu},
            "ogd": {"lipschitz": G},
            "ogd-constant": {"lipschitz": G, "horizon": T},
        }[kind],
    )


KINDS = ("yuan2018", "yuan2018-strong", "yi2022", "yi2022-strong", "yi2023", "yi2023-constant", "yi2023-strong", "ogd", "ogd-constant")
CONSTRAINED = KINDS[:7]


def differences(record, reader, domain, feasible, G, k, rng, T):
    """How far a record strays from a reader's transcription in the same game, relative to the domain's size."""
    D = domain.diameter()
    y, state, far = next(reader), record.init(domain.center()), 0.0
    for t, (cost_move, constraint_move) in enumerate(moves(rng, T), 1):
        x = record.decide(state)
        far = max(far, float(np.abs(x - y).max()) / (D + np.abs(domain.center()).max()))
        cost = cost_at(cost_move, x, feasible, G, t, rng)
        feedback = Round(cost, tuple(constraint_at(constraint_move, x, feasible, G, D, t, rng) for _ in range(k))).reveal(x)
        state, y = record.update(state, feedback), reader.send((feedback.df, feedback.g, feedback.dg))
    return far


@settings(max_examples=120)
@given(instances(), st.sampled_from(KINDS), st.sampled_from([0.3, 0.5, 0.8]), st.integers(1, 3))
def test_the_update_is_the_one_on_the_page(instance, kind, c, k):
    domain, feasible, G, rng = instance
    T, D, mu = 60, domain.diameter(), 0.7 * G / domain.diameter()
    reader = transcribed(kind, domain.project, D, T, G, mu, c, k, domain.center())
    assert differences(made(kind, domain, T, G, mu, c, k).record, reader, domain, feasible, G, k, rng, T) <= 1e-10


@pytest.mark.parametrize("kind", CONSTRAINED)
@pytest.mark.parametrize("field", ["step", "sigma"])
def test_the_transcription_notices_a_wrong_constant(kind, field):
    field = "gamma" if kind.startswith("yi2022") and field == "sigma" else field
    domain, rng = bridle.Ball(3, radius=2.0), np.random.default_rng(5)
    right = made(kind, domain, 60, 1.5, 0.4, 0.5, 2).record
    wrong = right._replace(**{field: 1.01 * getattr(right, field)})
    reader = transcribed(kind, domain.project, 4.0, 60, 1.5, 0.4, 0.5, 2, domain.center())
    assert differences(wrong, reader, domain, 0.3 * np.ones(3), 1.5, 2, rng, 60) > 1e-4


# --- the bounds -----------------------------------------------------------------------------------------------------------------------


class Shares:
    """Ratios of what was observed to its bound: each at most 1; the largest ones are a property of the test's report."""

    def __init__(self, name: str, record_property) -> None:
        self.name, self.largest = name, {}
        record_property("largest shares of the bounds", self.largest)

    def check(self, ratios: dict[str, float], T: int) -> None:
        for quantity, ratio in ratios.items():
            if T > 1:  # at T = 1 every bound is the trivial one, GD
                self.largest[quantity] = max(self.largest.get(quantity, 0.0), float(ratio))
            assert ratio <= 1.0 + 1e-9, f"{self.name}: {quantity} is {ratio:.4f} times its bound"


STAGES = [
    (kind, d, k, T, seed)
    for seed, (_, kind, d, k, T) in enumerate(
        product((1, 2) if WHOLE else (1,), ("box", "ball"), (1, 2, 5, 20), (1, 3), (1, 50, 400)), start=1
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONSTRAINED)
@pytest.mark.parametrize("about", ["plain", "slater", "fixed"])
def test_regret_and_violation_stay_within_the_bound(kind, about, record_property):
    shares = Shares(kind, record_property)
    strong = kind.endswith("-strong")
    for where, d, k, T, seed in STAGES:
        settled = {"fixed": about == "fixed", "slater": 0.1 if about == "slater" else 0.0, "modulus": 0.6 if strong else 0.0}
        at = stage(where, d, k, T, 10 * seed + len(about), G=(1.0, 20.0)[seed % 2], **settled)
        policy = made(kind, at.domain, T, at.G, at.modulus, (0.3, 0.5, 0.8)[seed % 3], k)
        found = ratios(policy, at)
        shares.check(found, T)
        assert set(found) == ({"regret", "ccv"} if kind.startswith("yi2022") else {"regret", "ccv", "squared"})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ogd", "ogd-constant", "adagrad", "adaftrl", "ftpl"])
def test_unconstrained_learners_stay_within_their_regret_bound(kind, record_property):
    shares = Shares(kind, record_property)
    for where, d, k, T, seed in STAGES:
        if kind == "ftpl" and (d > 5 or T > 50):
            continue
        at = stage(where, d, k, T, seed)
        policy = made(kind, at.domain, T, 1.0, 0.0, 0.5, k) if kind.startswith("ogd") else bridle.policy(kind, at.domain)
        bound = policy.paper_bound(at.constants, T) if kind == "ftpl" else policy.bound(at.constants, T)
        assert bound.ccv is None
        shares.check({"regret": outcome(policy, at)["regret"] / bound.regret}, T)


@settings(max_examples=60)
@given(instances(), st.sampled_from(CONSTRAINED), st.sampled_from([0.3, 0.5, 0.8]), st.integers(1, 3))
def test_the_inequality_of_the_proof_holds_along_every_game(instance, kind, c, k):
    """Regret plus what the penalty charged stays below the sum of the steps' terms, after every round and for every multiplier."""
    domain, feasible, G, rng = instance
    D = domain.diameter()
    mu = 0.5 * G / D if kind.endswith("-strong") else 0.0
    record = made(kind, domain, 60, G, mu or 1.0, c, k).record
    state, regret, charged, hard, steps, gammas, betas = record.init(domain.center()), *np.zeros(6)
    for t, (cost_move, move) in enumerate(moves(rng, 60), 1):
        x = record.decide(state)
        linear = cost_at(cost_move, x, feasible, 0.5 * G if mu else G, t, rng)
        feedback = Round(linear, tuple(constraint_at(move, x, feasible, G, D, t, rng) for _ in range(k))).reveal(x)
        df = feedback.df + mu * (x - feasible)  # the cost is that one plus mu/2 |x - feasible|^2
        state = record.update(state, feedback._replace(df=df))
        regret += float(linear.value(x) - linear.value(feasible)) + 0.5 * mu * float(np.sum((x - feasible) ** 2))
        step = record.step / t**record.decay
        steps += step
        pull = 0.0 if mu else 0.5 * D * D / step
        if kind.startswith("yi2022"):
            hard += max(0.0, float(feedback.g.max()))
            gammas, betas = gammas + t ** (c - 1.0) / (G * D), betas + G * D * t**-c
            for lam in (0.0, 0.1, 1.0, 10.0):
                right = pull + (G * D) ** 2 * gammas + 0.5 * (1.0 + lam) ** 2 * G * G * steps + 0.5 * lam**2 * betas
                assert regret + lam * hard <= right * (1.0 + 1e-9)
            continue
        h = np.maximum(feedback.g, 0.0) if kind.startswith("yuan2018") else np.maximum(feedback.g.max(), 0.0)
        charged += 0.5 * float(np.sum(h * h)) / (record.sigma * step)
        m = 0.5 * ((k if kind.startswith("yuan2018") else 1) + 1.0) * G * G
        assert regret + charged <= (m * steps + pull) * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", CONSTRAINED)
def test_bounds_follow_the_parameters_that_were_set(kind, record_property):
    """Steps and constants of the user's own: the bound is about the policy as it is, not as the paper has it."""
    shares = Shares(kind, record_property)
    for seed, factor in enumerate([0.05, 0.5, 4.0, 40.0]):
        at = stage("box", 3, 1, 200, seed, slater=0.05, modulus=0.5 if kind.endswith("-strong") else 0.0)
        right = made(kind, at.domain, 200, 1.3, 0.9 * at.modulus, 0.6, 1)
        if kind.endswith("-strong"):
            shares.check(ratios(right, at), at.T)
            continue
        more = {**right.parameters, "step": factor * right.record.step, "diameter": factor * at.domain.diameter()}
        shares.check(ratios(bridle.policy(right.name, at.domain, **more), at), at.T)


@pytest.mark.parametrize("kind", CONSTRAINED)
def test_a_wrong_constant_breaks_the_bound(kind):
    """The bounds are sharp enough to notice a penalty that is never charged, or steps that are a thousand times too long."""
    T, mu, domain = 3000, 0.25, bridle.Box([-1.0], [1.0])
    policy = made(kind, domain, T, 1.0, mu, 0.5, 1)
    record, curve = policy.record, mu if kind.endswith("-strong") else 0.0
    facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.array([-1.0]), "modulus": curve, "constraints": 1}
    bound = policy.bound(facts, T)

    def game(record, violate: bool) -> float:
        """CCV where the cost pulls up and x <= -1 is wanted, or regret against 0 where the cost punishes the side that was chosen."""
        state, total = record.init(np.zeros(1)), 0.0
        for _ in range(T):
            x = record.decide(state)
            slope = -0.5 if violate else 0.5 * (1.0 if x[0] > 0.0 else -1.0)
            g = x[0] + 1.0 if violate else -1.0
            state = record.update(state, Feedback(x, 0.0, slope + curve * x, np.array([g]), np.ones((1, 1))))
            total += max(g, 0.0) if violate else slope * x[0] + 0.5 * curve * x[0] ** 2
        return total

    lax = record._replace(**({"gamma": 1e-9} if kind.startswith("yi2022") else {"sigma": 1e9}))
    assert game(record, True) <= bound.ccv < game(lax, True)
    assert game(record, False) <= bound.regret < game(record._replace(step=1e3 * record.step), False)


def test_sums_of_powers_are_never_below_the_true_sum():
    for c in (0.0, 0.3, 1.0, 1.6):
        true = float(np.sum(np.arange(1.0, 5001.0) ** -c))
        assert float(powers(5000, c)) == pytest.approx(true, rel=1e-12)
        assert true * (1 - 1e-12) <= float(powers(5000, c, exact=50)) <= true * 1.03
    np.testing.assert_allclose(powers(3, np.array([[0.0], [1.0]])), [[3.0], [11.0 / 6.0]])


def test_the_bound_says_why_it_does_not_apply():
    at = stage("ball", 2, 1, 50, 0, modulus=0.5)
    facts = at.constants

    def why(kind, mu=at.modulus, G=1.0, k=1, **changed):
        bound = made(kind, at.domain, 50, G, mu, 0.5, k).bound({**facts, **changed}, 50)
        assert bound.regret is None
        assert bound.ccv is None
        return bound.why

    for kind in CONSTRAINED:
        assert why(kind, feasible=None) == "no action is known to satisfy every constraint"
        assert why(kind, convex=False) == "a cost or a constraint is not convex"
    for kind in ("yuan2018-strong", "yi2022-strong", "yi2023-strong"):
        assert why(kind, modulus=0.0) == "the costs are not strongly convex"
        assert "less than the" in why(kind, mu=2.0 * at.modulus)
    assert "too far above the one the policy was told" in why("yi2023", G=0.5)
    assert "made for 3 constraints" in why("yuan2018", k=3)
    assert why("ogd", lipschitz=None) == "the problem's Lipschitz constant or diameter is not known"
    assert "past the policy's horizon" in made("yi2023-constant", at.domain, 50, 1.0, 1.0, 0.5, 1).bound(facts, 51).why
    assert "exact expectation" in bridle.policy("ftpl", at.domain).bound(facts, 50).why


# --- one policy seen as another ---------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(instances(), st.sampled_from(["convex", "strong"]))
def test_yi2023_with_a_constant_step_is_yuan2018_for_one_constraint(instance, costs):
    domain, feasible, G, rng = instance
    D, mu = domain.diameter(), 0.4 * G / domain.diameter()
    one, two = (
        made(kind, domain, 60, G, mu, 0.5, 1).record
        for kind in (("yi2023-constant", "yuan2018") if costs == "convex" else ("yi2023-strong", "yuan2018-strong"))
    )
    a, b = one.init(domain.center()), two.init(domain.center())
    for t, (cost_move, move) in enumerate(moves(rng, 60), 1):
        x = one.decide(a)
        np.testing.assert_allclose(x, two.decide(b), rtol=0, atol=1e-10 * (D + np.abs(domain.center()).max()))
        feedback = Round(cost_at(cost_move, x, feasible, G, t, rng), (constraint_at(move, x, feasible, G, D, t, rng),)).reveal(x)
        a, b = one.update(a, feedback), two.update(b, feedback)


@pytest.mark.parametrize("kind", CONSTRAINED)
def test_without_violations_it_is_gradient_descent_with_its_steps(kind):
    rng, T, k = np.random.default_rng(3), 100, 2
    domain = bridle.Box(-1.0, 2.0, dim=4)
    D, G, mu = domain.diameter(), 2.0, 0.3
    steps = {
        "yuan2018": lambda t: D / (G * sqrt(3 * T)),
        "yi2022": lambda t: D / (G * t**0.4),
        "yi2023": lambda t: D / (2 * G * t**0.4),
        "yi2023-constant": lambda t: D / (G * sqrt(2 * T)),
    }.get(kind, lambda t: 1 / (mu * t))
    record = made(kind, domain, T, G, mu, 0.4, k).record
    state, x = record.init(domain.center()), domain.center()
    for t in range(1, T + 1):
        df = rng.standard_normal(4)
        state = record.update(state, Feedback(x, 0.0, df, np.zeros(k), rng.standard_normal((k, 4))))
        x = np.clip(x - steps(t) * df, -1.0, 2.0)
        np.testing.assert_allclose(record.decide(state), x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", CONSTRAINED)
def test_units_do_not_matter(kind):
    """Costs and constraints 1000 times as large, distances 100 times: the same game in other units."""
    found = []
    for G, size in ((1.0, 1.0), (1000.0, 100.0)):
        domain, rng = bridle.Ball(3, radius=size), np.random.default_rng(8)
        record = made(kind, domain, 100, G, 0.5 * G / size, 0.5, 1).record
        state = record.init(domain.center())
        for _ in range(100):
            a, c = rng.standard_normal((2, 3))
            x = record.decide(state)
            state = record.update(state, Feedback(x, 0.0, G * c / 3, G * np.array([a @ x / 3 - 0.1 * size]), G * a[None] / 3))
        found.append(record.decide(state) / size)
    np.testing.assert_allclose(*found, rtol=0, atol=1e-9)


# --- BanditQ ----------------------------------------------------------------------------------------------------------------------------


def bandit_game(policy, T: int, seed: int, top: float, habit: str):
    """Rewards between top/4 and top, rates that x* earns in every round; gives regret against x* and violation over intervals."""
    N, mass = policy.domain.dim, policy.domain.mass
    rng = np.random.default_rng(seed)
    best = mass * rng.dirichlet(np.ones(N))
    rates = 0.25 * top * best * rng.choice([0.5, 1.0], N)
    state, regret, queue, longest = policy.init(policy.domain.center()), 0.0, np.zeros(N), 0.0
    D = policy.domain.diameter()
    reader = transcribed("banditq", policy.domain.project, D, T, 0.0, 0.0, 0.0, N, policy.domain.center()) if top * mass == 1.0 else None
    y = None if reader is None else next(reader)
    for _ in range(T):
        x = policy.decide(state)
        if y is not None:
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-10)
        r = rng.uniform(0.25, 1.0, N)
        if habit == "regret":
            r = np.where(x > best, 0.25, 1.0)
        if habit == "violate":
            r = np.where(queue > 0.0, 0.25, 1.0)
        g = rates - top * r * x
        feedback = Feedback(x, -top * r @ x, -top * r, g, -top * np.diag(r))
        state = policy.update(state, feedback)
        if reader is not None:
            y = reader.send((feedback.df, g, feedback.dg))
        regret += top * r @ (best - x)
        queue = np.maximum(queue + g, 0.0)
        longest = max(longest, float(queue.max()))
    return regret, longest


@pytest.mark.parametrize("habit", ["random", "regret", "violate"])
def test_banditq_is_the_page_and_within_its_bound(habit, record_property):
    shares = Shares("banditq", record_property)
    for seed, (N, T, (top, mass), V) in enumerate(product((2, 5, 10), (1, 50, 500), ((1.0, 1.0), (5.0, 2.0)), (None, 3.0))):
        policy = bridle.policy("banditq", bridle.Simplex(N, mass=mass), horizon=T, bound=top * mass, V=V)
        if V is not None and top * mass == 1.0:
            continue  # the transcription has the default V
        facts = {"lipschitz": top * sqrt(N), "diameter": policy.domain.diameter(), "feasible": policy.domain.center(), "rewards": top}
        bound = policy.bound(facts, T)
        regret, interval = bandit_game(policy, T, seed, top, habit)
        shares.check({"regret": regret / bound.regret, "interval": interval / bound.interval}, T)


def test_banditq_is_for_reward_problems_on_a_simplex():
    with pytest.raises(bridle.InputError, match=r"domain must be a simplex for banditq, such as bridle.Simplex\(3\), not Ball"):
        bridle.policy("banditq", bridle.Ball(3), horizon=10)
    problem = bridle.problem("halfspaces", horizon=50, domain=bridle.Simplex(4), constraints=4)
    assert "not known to have costs -<r, x>" in bridle.policy_for("banditq", problem).bound(problem.constants, 50).why
    other = bridle.problem("halfspaces", horizon=50, domain=bridle.Simplex(4), constraints=3)
    with pytest.raises(bridle.InputError, match=r"constraints: the policy was made for 4, the problem reveals 3"):
        bridle.play(bridle.policy_for("banditq", other, bound=1.0), other)


# --- engines, sweeps, input -------------------------------------------------------------------------------------------------------------


def settled(name: str, problem, **more):
    if name == "yi2022-strong":
        return bridle.policy_for("yi2022", problem, modulus=problem.constants["modulus"], **more)
    if name == "yi2023-constant":
        return bridle.policy_for("yi2023", problem, horizon=problem.horizon, **more)
    if name == "ftpl":
        more = {"samples": 20, **more}
    return bridle.policy_for(name, problem, **more)


ON_A_SIMPLEX = ("banditq", "adahedge", "mlpoly", "track")
ALL = (*CONSTRAINED, "ogd", "adagrad", "adaftrl", "ftpl", *ON_A_SIMPLEX)
PLACES = {"ball": bridle.Ball(4), "box": bridle.Box(-1.0, 0.5, dim=4), "simplex": bridle.Simplex(4)}


@pytest.mark.compiles
@pytest.mark.covering(1)
@pytest.mark.filterwarnings("ignore:policy banditq is for costs")
@pytest.mark.parametrize(("name", "where"), [(n, w) for n, w in product(ALL, PLACES) if n not in ON_A_SIMPLEX or w == "simplex"])
def test_engines_agree(name, where):
    k = 4 if name == "banditq" else 3
    curved = {"modulus": 0.7} if name.endswith("-strong") else {}
    problem = bridle.problem("halfspaces", horizon=2_500, domain=PLACES[where], constraints=k, seed=3, **curved)
    agree(settled(name, problem), problem, rounds=2_500)


SWEEPS = [
    ("yuan2018", {"horizon": [100, 1000, 10_000], "lipschitz": [1.0, 2.0, 3.0]}),
    ("yuan2018", {"exponent": [0.2, 0.5, 0.8]}),
    ("yuan2018-strong", {"modulus": [0.1, 0.2, 0.5]}),
    ("yi2022", {"exponent": [0.2, 0.5, 0.8], "diameter": [1.0, 2.0, 4.0]}),
    ("yi2022", {"modulus": [0.1, 0.2, 0.5]}),
    ("yi2023", {"exponent": [0.2, 0.5, 0.8]}),
    ("yi2023", {"horizon": [100, 1000, 10_000], "step": [0.1, 0.2, 0.3]}),
    ("yi2023-strong", {"modulus": [0.1, 0.2, 0.5]}),
    ("ogd", {"step": [0.1, 0.2, 0.3]}),
    ("adagrad", {"diameter": [1.0, 2.0, 4.0]}),
    ("adaftrl", {"diameter": [1.0, 2.0, 4.0]}),
    ("banditq", {"V": [1.0, 10.0, 100.0]}),
]


@pytest.mark.filterwarnings("ignore:policy banditq is for costs")
@pytest.mark.parametrize(("name", "swept"), SWEEPS)
def test_a_sweep_is_the_loop_over_its_values(name, swept):
    k, domain = (4, PLACES["simplex"]) if name == "banditq" else (2, PLACES["ball"])
    problem = bridle.problem("halfspaces", horizon=90, domain=domain, constraints=k, modulus=0.5)
    policy = bridle.policy_for(name, problem, **swept)
    together = bridle.play(policy, problem, keep="decisions")
    bounds = policy.bound({**problem.constants, "rewards": 1.0}, 90)
    for i in range(3):
        single = bridle.policy_for(name, problem, **{key: values[i] for key, values in swept.items()})
        alone = bridle.play(single, problem, keep="decisions")
        np.testing.assert_allclose(together.decisions[:, i], alone.decisions, rtol=0, atol=1e-12)
        for all_of_them, one in zip(bounds[:-1], single.bound({**problem.constants, "rewards": 1.0}, 90)[:-1], strict=True):
            assert (all_of_them is None) == (one is None)
            if one is not None:
                assert np.broadcast_to(all_of_them, 3)[i] == pytest.approx(one, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "given_parameters", "message"),
    [
        ("yuan2018", {"lipschitz": 1.0}, "policy yuan2018 needs horizon"),
        ("yuan2018", {"horizon": 10, "lipschitz": -1.0}, r"lipschitz must be above 0, not -1\.0"),
        ("yuan2018", {"horizon": 10, "lipschitz": 1.0, "exponent": 1.0}, r"exponent must be below 1, not 1\.0"),
        ("yuan2018", {"horizon": 10, "lipschitz": 1.0, "constraints": 0}, "constraints must be 1 or above, not 0"),
        ("yuan2018-strong", {"lipschitz": 1.0, "modulus": 0.0}, r"modulus must be above 0, not 0\.0"),
        ("yi2022", {"lipschitz": 1.0, "exponent": [0.5, 1.5]}, "exponent must be below 1"),
        ("yi2022", {"lipschitz": 1.0, "modulus": 1.0, "step": 0.1}, "step is for convex costs only"),
        ("yi2023", {"lipschitz": 1.0, "form": "mirror"}, "'mirror'"),
        ("yi2023-strong", {"lipschitz": 1.0, "modulus": 1.0, "form": 3}, "form"),
        ("yi2023", {"lipschitz": 1.0, "horizon": 0}, "horizon must be above 0, not 0"),
        ("yi2023", {"lipschitz": 1.0, "horizon": 9.5}, r"horizon must be a whole number, not 9\.5"),
        ("ogd", {"lipschitz": 1.0, "step": "big"}, "step must be a number, not 'big'"),
        ("ftpl", {"samples": 1}, "samples must be 2 or above, not 1"),
    ],
)
def test_bad_input_is_one_clear_error(name, given_parameters, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.policy(name, bridle.Ball(2), **given_parameters)


def test_constraints_kept_apart_are_counted():
    problem = bridle.problem("halfspaces", horizon=20, dim=2, constraints=3)
    assert len(bridle.policy_for("yuan2018", problem).record.each) == 3
    with pytest.raises(bridle.InputError, match="constraints: the policy was made for 2, the problem reveals 3"):
        bridle.play(bridle.policy_for("yuan2018", problem, constraints=2), problem)

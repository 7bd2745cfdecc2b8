"""The policies that take a proximal step every round: guo2022, yi2021, yu2020, yi2023 (prox).

Each round's program is solved again by cvxpy and Clarabel; queues and weights are transcribed here and share no code with the policies.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest

import bridle
from bridle.core import Round
from bridle.functions import AffineFunction, RoundQuadratic
from helpers.adversarial_games import outcome, ratios, stage
from helpers.cvxpy_reference import SHAPES, Program, by_clarabel, objective, place, same, shape

# --- the policies' rounds ---------------------------------------------------------------------------------------------------------------


class Transcript:
    """A policy's weights, from the formulas: `price(t, g)` before the step, `after(t, new)` with the constraints at the new point."""

    def __init__(self, G, D, T, k, mu):
        self.G, self.D, self.T, self.k, self.mu, self.Q, self.q = G, D, T, k, mu, 0.0, np.zeros(k)

    def after(self, t, new):
        pass


class Guo(Transcript):
    joint = True

    def price(self, t, g):
        self.alpha = self.mu * t / 2 if self.mu else self.G / (2**0.5 * self.D) * t**0.5
        self.Q = max(self.Q, t**0.5)
        return self.Q * t, self.alpha

    def after(self, t, new):
        self.Q += t * max(0.0, new.max()) / (self.mu * self.D**2 if self.mu else self.G * self.D)


class Yi21(Transcript):
    joint = False

    def alpha(self, t):
        return 2 / (self.mu * t) if self.mu else 2**0.5 * self.D / self.G / t**0.5

    def price(self, t, g):
        gamma_0 = 1 / (2 * self.k) ** 0.5 / self.G
        gamma, following = gamma_0 / self.alpha(max(t - 1, 1)) ** 0.5, gamma_0 / self.alpha(t) ** 0.5
        h = np.maximum(g, 0.0)
        self.q = self.q + gamma * h
        return following * (self.q + gamma * h), 1 / self.alpha(t)


class Yu20(Transcript):
    joint = False

    def price(self, t, g):
        alpha = self.G * self.T**0.5 / (2**0.5 * self.D)
        gamma = (alpha / (self.k * self.G**2)) ** 0.5
        h = np.maximum(g, 0.0)
        self.q = self.q + gamma * h
        return gamma * (self.q + gamma * h), alpha


class Yi23(Transcript):
    joint = True

    def price(self, t, g):
        alpha = 2 / (self.mu * t) if self.mu else self.D / self.G / t**0.5
        return max(0.0, g.max()) / (self.G**2 * alpha), 1 / alpha


ROUNDS = [
    ("guo2022", Guo, {}, 0.0), ("guo2022-strong", Guo, {}, 0.5), ("yi2021", Yi21, {}, 0.0), ("yi2021", Yi21, {}, 0.5),
    ("yu2020", Yu20, {"clip": True}, 0.0), ("yi2023", Yi23, {"form": "prox"}, 0.0), ("yi2023-strong", Yi23, {"form": "prox"}, 0.5),
]  # fmt: skip


def made(name, domain, k, mu, T, G=1.0, **given):
    wanted = {p.name for p in bridle.policies.parameters(name)}
    known = {"lipschitz": G, "constraints": k, "horizon": T if name == "yu2020" else None, "modulus": mu or None}
    return bridle.policy(name, domain, **{key: value for key, value in known.items() if key in wanted and value is not None}, **given)


def rounds_against_the_program(policy, script, domain, k, mu, T, seed=0, G=1.0):
    """Play T random rounds; solve each round's program again from the decision the policy was at."""
    rng = np.random.default_rng([seed, k])
    near, program = 0, Program(domain, k, script.joint)
    record = policy.record
    state = record.init(domain.center())
    anchor = domain.project(domain.center() + 0.3 * domain.diameter() * rng.standard_normal(domain.dim))
    for t in range(1, T + 1):
        x = record.decide(state)
        rows = rng.standard_normal((k, domain.dim))
        rows *= G / np.linalg.norm(rows, axis=1, keepdims=True)
        constraints = tuple(AffineFunction(a, -float(a @ anchor) - 0.05 * rng.uniform()) for a in rows)
        push = G * rng.standard_normal(domain.dim) / domain.dim**0.5
        cost = RoundQuadratic(mu, domain.project(anchor + push), np.zeros(domain.dim), 0.0) if mu else AffineFunction(push, 0.0)
        state = record.update(state, Round(cost, constraints).reveal(x))
        mine = record.decide(state)
        levels = np.array([-g.b for g in constraints])
        price, alpha = script.price(t, rows @ x - levels)
        v, weights = x - cost.grad(x) / (2 * alpha), np.asarray(price) / alpha
        theirs = program.solve(v, rows, levels, weights, mine)
        near += same(domain, mine, theirs, lambda at, v=v, A=rows, b=levels, p=weights: objective(at, v, A, b, p, script.joint))
        script.after(t, rows @ mine - levels)
    assert near >= 0.98 * T


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ball", "box"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("name", "script", "given", "mu"), ROUNDS)
def test_every_round_is_its_program(name, script, given, mu, k, kind):
    domain = place(kind)
    T = 200 if kind == "ball" else 60
    rounds_against_the_program(made(name, domain, k, mu, T, **given), script(1.0, domain.diameter(), T, k, mu), domain, k, mu, T)


@pytest.mark.parametrize(("name", "script", "given", "mu"), ROUNDS)
def test_wrong_parameters_do_not_pass_for_right(name, script, given, mu):
    domain = place("ball")
    policy = made(name, domain, 1, mu, 60, **given)
    field = "step" if "alpha" not in policy.record._fields else "alpha"
    wrong = policy.record._replace(**{field: 1.05 * getattr(policy.record, field)})
    with pytest.raises(AssertionError):
        rounds_against_the_program(
            bridle.policies.Configured(name, domain, {}, wrong, None), script(1.0, domain.diameter(), 60, 1, mu), domain, 1, mu, 60
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ball", "box"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("name", "script", "given"), [("guo2022", Guo, {}), ("yi2021", Yi21, {}), ("yu2020", Yu20, {"clip": True})])
def test_every_round_with_curved_constraints_is_its_program(name, script, given, k, kind):
    """form='function' with several constraints, quadratic, logistic and affine: 17 rounds each, 204 in all."""
    rng = np.random.default_rng([k, 21])
    domain, T = place(kind), 17
    record, writing = made(name, domain, k, 0.0, T, form="function", **given).record, script(1.0, domain.diameter(), T, k, 0.0)
    state = record.init(domain.center())
    anchor = domain.project(domain.center() + 0.3 * domain.diameter() * rng.standard_normal(domain.dim))
    seen = 0
    for t in range(1, T + 1):
        x, push = record.decide(state), rng.standard_normal(domain.dim) / domain.dim**0.5
        found = [shape(rng.choice(SHAPES), anchor, 0.05 * rng.uniform(), rng) for _ in range(k)]
        functions = tuple(g for g, _ in found)
        state = record.update(state, Round(AffineFunction(push, 0.0), functions).reveal(x))
        mine = record.decide(state)
        price, alpha = writing.price(t, np.array([g.value(x) for g in functions]))
        v, weights = x - push / (2 * alpha), np.asarray(price) / alpha
        assert np.abs(mine - by_clarabel(domain, v, [of for _, of in found], weights, writing.joint, mine)).max() <= 1e-6
        after = np.array([g.value(mine) for g in functions])
        writing.after(t, after)
        seen += sum(not isinstance(g, AffineFunction) and value > -1e-9 for g, value in zip(functions, after, strict=True))
    assert seen >= 3  # constraints that are not affine have held the step


@pytest.mark.parametrize("k", [1, 3])
def test_yu2020_is_its_recursion(k):
    """The affine form against plain NumPy, to rounding."""
    rng = np.random.default_rng(8)
    domain = place("box", 5)
    T, D = 300, domain.diameter()
    record = made("yu2020", domain, k, 0.0, T).record
    function = made("yu2020", domain, k, 0.0, T, form="function").record
    state, other = record.init(domain.center()), function.init(domain.center())
    alpha = T**0.5 / (2**0.5 * D)
    gamma = (alpha / k) ** 0.5
    x, Q = domain.center(), np.zeros(k)
    A = rng.standard_normal((k, 5))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = A @ domain.center() - 0.1
    for _ in range(T):
        df = rng.standard_normal(5)
        feedback = Round(AffineFunction(df, 0.0), tuple(AffineFunction(a, -float(e)) for a, e in zip(A, b, strict=True))).reveal(x)
        state, other = record.update(state, feedback), function.update(other, feedback)
        g = gamma * (A @ x - b)
        Q = np.maximum(-g, Q + g)
        x = np.clip(x - (df + gamma * (Q + g) @ A) / (2 * alpha), domain.low, domain.high)
        np.testing.assert_allclose(state.x, x, rtol=0, atol=1e-10 * D)
        np.testing.assert_allclose(other.x, x, rtol=0, atol=1e-10 * D)
        np.testing.assert_allclose(state.Q, Q, rtol=1e-10, atol=1e-10)
        assert (Q + g >= -1e-12).all()


# --- bounds -----------------------------------------------------------------------------------------------------------------------------

BOUNDS = {
    "guo2022": ("guo2022", {}, [{}, {"fixed": True}, {"slater": 0.1}]),
    "guo2022-strong": ("guo2022-strong", {}, [{"modulus": 0.5}, {"modulus": 0.5, "fixed": True}]),
    "yi2021": ("yi2021", {}, [{"fixed": True}]),
    "yi2021 constant": ("yi2021", {"exponent": 0.0, "step": 0.1}, [{"fixed": True}]),
    "yi2021 strong": ("yi2021", {}, [{"fixed": True, "modulus": 0.5}]),
    "yu2020": ("yu2020", {}, [{"fixed": True}, {"fixed": True, "slater": 0.1}]),
    "yu2020 clipped": ("yu2020", {"clip": True}, [{"fixed": True}]),
    "yi2023 prox": ("yi2023", {"form": "prox"}, [{}, {"fixed": True}]),
    "yi2023-strong prox": ("yi2023-strong", {"form": "prox"}, [{"modulus": 0.5}]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("label", list(BOUNDS))
def test_the_bounds_hold(label, record_property):
    name, given, settings = BOUNDS[label]
    largest: dict[str, float] = {}
    for kind, d, k, T, about in product(["box", "ball"], [1, 2, 5, 20], [1, 3], [1, 50, 200], settings):
        for seed in range(2 if k == 1 and T > 1 else 1):
            at = stage(kind, d, k, T, seed, **about)
            policy = made(name, at.domain, k, at.modulus, T, at.G, **given)
            for quantity, value in ratios(policy, at).items():
                key = f"{label} {quantity}"
                largest[key] = max(largest.get(key, 0.0), value)
                assert value <= 1.0 + 1e-9, f"{key} is {value:.3g} on {kind}, d={d}, k={k}, T={T}, {about}"
    record_property("largest shares of the bounds", largest)


def test_the_bounds_can_fail():
    """A policy that ignores the constraint, or takes far too long steps, is over them."""
    over = []
    for seed in range(3):
        at = stage("ball", 2, 1, 2000, seed, fixed=True)
        for name in ("guo2022", "yi2021", "yu2020"):
            policy = made(name, at.domain, 1, 0.0, 2000, **({"clip": True} if name == "yu2020" else {}))
            limit = policy.bound(at.constants, 2000)
            blind = bridle.policy("ogd", at.domain, lipschitz=1.0, horizon=2000)
            seen = outcome(blind, at)
            over.append(seen["ccv"] > limit.ccv)
    assert all(any(over[i::3]) for i in range(3))


def test_pathwise_inequalities():
    """What the proofs bound along the way, for every t, not only at the end: far tighter than the final bounds."""
    for seed, kind in product(range(4), ("ball", "box")):
        at = stage(kind, 3, 1, 300, seed)
        domain, D, rng = at.domain, at.domain.diameter(), np.random.default_rng(seed)
        for name in ("guo2022", "yi2023"):
            record = made(name, domain, 1, 0.0, 300, **({"form": "prox"} if name == "yi2023" else {})).record
            state, left, right, before, top = record.init(domain.center()), 0.0, 0.0, 0.0, 0.0
            for t in range(1, 301):
                x = state.x
                a = x - at.feasible if rng.random() < 0.7 else rng.standard_normal(3)
                a = a / (np.linalg.norm(a) or 1.0)
                df = -a if rng.random() < 0.6 else rng.standard_normal(3) / 3.0
                feedback = Round(AffineFunction(df, 0.0), (AffineFunction(a, -float(a @ at.feasible)),)).reveal(x)
                state = record.update(state, feedback)
                if name == "guo2022":
                    alpha = record.alpha * t**0.5
                    Q = max(before, t**0.5)
                    left += float(df @ (x - at.feasible)) + Q * t * max(0.0, float(a @ (state.x - at.feasible)))
                    right, before = right + float(df @ df) / (4 * alpha), state.Q
                    top = max(top, alpha)
                else:
                    alpha = record.step / t**0.5
                    left += float(df @ (x - at.feasible)) + 0.5 / alpha * max(0.0, float(feedback.g[0])) ** 2
                    right += 0.5 * alpha * float(df @ df)
                    top = 1 / alpha
                assert left <= right + top * D * D + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
def test_curved_fixed_constraints_as_functions(k):
    """form='function': constraints that are not affine, within the bounds; read as affine no bound is given."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        domain = bridle.Ball(3)
        round_, long = RoundQuadratic(0.5, np.zeros(3), np.array([0.3, 0.0, 0.0]), -0.1), bridle.Quadratic(np.diag([0.5, 0.1, 0.0]))
        constraints = (round_, long._replace(b=-0.05))[:k]
        constants = {
            "lipschitz": 1.0,
            "diameter": 2.0,
            "bound": 1.0,
            "feasible": np.zeros(3),
            "time_varying": False,
            "affine": False,
            "constraints": k,
        }
        for name in ("guo2022", "yi2021", "yu2020", "yu2020 clipped"):
            given = {"clip": True} if "clipped" in name else {}
            name = name.split()[0]
            policy = made(name, domain, k, 0.0, 200, form="function", **given)
            state, regret, values = policy.record.init(domain.center()), 0.0, []
            for t in range(200):
                df = rng.standard_normal(3) / 2 + [-0.5, 0.0, 0.0] if t % 3 else np.array([-1.0, 0.0, 0.0])
                df = df / max(1.0, np.linalg.norm(df))
                feedback = Round(AffineFunction(df, 0.0), constraints).reveal(state.x)
                regret += feedback.f
                values.append(feedback.g)
                state = policy.record.update(state, feedback)
            bound = policy.bound(constants, 200)
            assert regret <= bound.regret
            if bound.ccv is not None:
                assert np.maximum(values, 0.0).max(axis=1).sum() <= bound.ccv
            if bound.soft is not None:
                assert max(sum(values)) <= bound.soft
            plain = made(name, domain, k, 0.0, 200, **given).bound(constants, 200)
            assert "not affine" in plain.why or (name == "guo2022" and plain.ccv > bound.ccv)


# --- engines, sweeps, cross-checks ------------------------------------------------------------------------------------------------------

ONE = [
    ("guo2022", {}, 0.0), ("guo2022-strong", {}, 0.7), ("yi2021", {}, 0.0), ("yi2021", {}, 0.7), ("yu2020", {}, 0.0),
    ("yu2020", {"clip": True}, 0.0), ("yi2023", {"form": "prox"}, 0.0), ("yi2023-strong", {"form": "prox"}, 0.7),
]  # fmt: skip


def quiet_play(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # policies for fixed constraints say so
        return bridle.play(*args, **kwargs)


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("name", "given", "mu", "kind"),
    [(*ONE[i], kind) for i, kinds in enumerate(["ball box simplex", "box", "ball box simplex", "simplex", "ball", "box", "simplex", "ball"])
     for kind in kinds.split()],
)  # fmt: skip
def test_engines_agree(name, given, mu, kind):
    domain = place(kind, 5)
    problem = bridle.problem("halfspaces", horizon=2_000, domain=domain, modulus=mu, seed=3)
    policy = made(name, domain, 1, mu, 2_000, **given)
    one, two = (quiet_play(policy, problem, keep="decisions", engine=engine) for engine in ("python", "jax"))
    assert np.abs(one.decisions - two.decisions).max() <= 1e-9 * domain.diameter()
    np.testing.assert_allclose(one.totals.hard, two.totals.hard, rtol=1e-9, atol=1e-9)


@pytest.mark.compiles
@pytest.mark.parametrize("kind", ["l1", "halfspace", "cut-box", "product", "spectrahedron"])
def test_engines_agree_on_every_domain(kind):
    domain = place(kind, 4)
    problem = bridle.problem("halfspaces", horizon=400, domain=domain, seed=3)
    one, two = (bridle.play(made("guo2022", domain, 1, 0.0, 400), problem, keep="decisions", engine=engine) for engine in ("python", "jax"))
    assert np.abs(one.decisions - two.decisions).max() <= 1e-9 * domain.diameter()


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("name", "swept", "given"),
    [
        ("guo2022", {"step": [0.1, 1.0], "exponent": [0.2, 0.5]}, {}),
        ("yi2021", {"exponent": [0.3, 0.7]}, {}),
        ("yu2020", {"beta": [0.5, 2.0]}, {"clip": True}),
        ("yu2020", {"horizon": [100, 150]}, {}),
        ("yi2023", {"step": [0.1, 0.5]}, {"form": "prox"}),
    ],
)
def test_a_sweep_is_the_loop(name, swept, given):
    engine = "jax" if name == "guo2022" else "python"
    problem = bridle.problem("halfspaces", horizon=100, dim=4)
    together = bridle.policy_for(name, problem, **swept, **given)
    trace = quiet_play(together, problem, horizon=100, engine=engine, keep="decisions")
    for i in range(2):
        alone = bridle.policy_for(name, problem, **{key: value[i] for key, value in swept.items()}, **given)
        single = quiet_play(alone, problem, horizon=100, engine=engine, keep="decisions")
        np.testing.assert_allclose(trace.decisions[:, i], single.decisions, rtol=0, atol=1e-12)
        for field in ("regret", "ccv", "soft", "squared"):
            constants = {**problem.constants, "time_varying": False}
            many, one = (getattr(p.bound(constants, 100), field) for p in (together, alone))
            assert (many is None) == (one is None)
            assert many is None or np.broadcast_to(many, 2)[i] == pytest.approx(one, rel=1e-12)


def test_several_constraints_in_several_runs_are_the_loop():
    problem = bridle.problem("halfspaces", horizon=60, dim=3, constraints=3)
    for name, given in (("guo2022", {}), ("yi2021", {}), ("yu2020", {"clip": True}), ("yi2023", {"form": "prox"})):
        policy = bridle.policy_for(name, problem, **given)
        together = quiet_play(policy, problem, seed=[1, 2], keep="decisions")
        for i, seed in enumerate((1, 2)):
            np.testing.assert_allclose(
                together.decisions[:, i], quiet_play(policy, problem, seed=seed, keep="decisions").decisions, atol=1e-9
            )


@pytest.mark.parametrize("k", [1, 3])
def test_yu2020_clipped_with_constant_parameters_is_yi2021(k):
    domain = bridle.Box(-1.0, 1.0, dim=4)
    problem = bridle.Problem(domain, bridle.problem("halfspaces", horizon=500, domain=domain, constraints=k).adversary, {"constraints": k})
    alpha = 3.0
    one = bridle.policy("yi2021", domain, lipschitz=1.3, exponent=0.0, step=1.0 / alpha, constraints=k)
    gamma = alpha**0.5 / ((2.0 * k) ** 0.5 * 1.3)
    two = bridle.policy("yu2020", domain, lipschitz=1.3, horizon=500, step=0.5 / alpha, beta=gamma, clip=True, constraints=k)
    first, second = (quiet_play(p, problem, horizon=500, keep="decisions").decisions for p in (one, two))
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-9)
    assert np.ptp(first) > 0.1


@pytest.mark.parametrize(("name", "given", "mu"), ONE)
def test_without_violation_it_is_gradient_descent(name, given, mu):
    rng = np.random.default_rng(12)
    domain = bridle.Ball(3)
    D, T = 2.0, 100
    record = made(name, domain, 1, mu, T, **given).record
    steps = {
        "guo2022": lambda t: D / 2**0.5 / t**0.5, "guo2022-strong": lambda t: 1 / (mu * t), "yi2023": lambda t: D / (2 * t**0.5),
        "yi2023-strong": lambda t: 1 / (mu * t), "yi2021": lambda t: 1 / (mu * t) if mu else D / 2**0.5 / t**0.5,
        "yu2020": lambda t: D / (2 * T) ** 0.5,
    }  # fmt: skip
    state, x = record.init(domain.center()), domain.center()
    for t in range(1, T + 1):
        df = rng.standard_normal(3)
        state = record.update(state, Round(AffineFunction(df, 0.0), (AffineFunction(np.zeros(3), 0.0),)).reveal(x))
        x = domain.project(x - steps[name](t) * df)
        np.testing.assert_allclose(state.x, x, rtol=0, atol=1e-12)


def test_units_do_not_matter():
    """All costs and constraints times 1000, all lengths times 10: the same decisions, times 10."""
    rng = np.random.default_rng(13)
    feed = [(rng.standard_normal(3) / 3, rng.standard_normal(3) / 3, rng.uniform(-0.2, 0.1)) for _ in range(100)]
    for name, given, mu in ONE:
        ends = []
        for scale, length in ((1.0, 1.0), (1e3, 10.0)):
            domain = bridle.Ball(3, radius=length)
            record = made(name, domain, 1, mu * scale / length, 100, G=scale, **given).record
            state = record.init(domain.center())
            for df, a, b in feed:
                constraint = AffineFunction(scale * a, scale * length * b)
                state = record.update(state, Round(AffineFunction(scale * df, 0.0), (constraint,)).reveal(state.x))
            ends.append(state.x / length)
        np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-9)


# --- bad input --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("guo2022", {"lipschitz": 0.0}, r"lipschitz must be above 0, not 0.0"),
        ("guo2022", {"lipschitz": 1.0, "form": "affin"}, r"unknown form 'affin'; did you mean affine\?"),
        ("guo2022", {"lipschitz": 1.0, "constraints": 0}, r"constraints must be 1 or above, not 0"),
        ("guo2022-strong", {"modulus": -1.0}, r"modulus must be above 0, not -1.0"),
        ("yi2021", {"lipschitz": 1.0, "exponent": 2.0}, r"exponent must be between 0 and 1, not 2.0"),
        ("yi2021", {"lipschitz": 1.0, "modulus": 1.0, "step": 1.0}, r"it goes with neither step nor exponent"),
        ("yu2020", {"lipschitz": 1.0, "horizon": 10, "clip": 2}, r"clip must be true or false, not 2"),
        ("yu2020", {"lipschitz": 1.0}, r"policy yu2020 needs horizon"),
        ("yi2023", {"lipschitz": 1.0, "form": "proxy"}, r"unknown form 'proxy'; did you mean prox\?"),
    ],
)
def test_bad_input_is_one_clear_error(name, given, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.policy(name, bridle.Ball(2), **given)


def test_where_it_cannot_run_it_says_so():
    three = bridle.problem("halfspaces", horizon=10, dim=2, constraints=3)
    with pytest.raises(bridle.InputError, match="constraints: the policy was made for 1, the problem reveals 3"):
        bridle.play(bridle.policy("guo2022", three.domain, lipschitz=1.0), three)
    with pytest.raises(bridle.InputError, match="SumOfHinges runs on engine 'python' only"):
        bridle.play(bridle.policy_for("guo2022", three), three, engine="jax")
    record = bridle.policy("guo2022", bridle.Ball(2), lipschitz=1.0, form="function").record
    plain = Round(AffineFunction(np.ones(2), 0.0), (AffineFunction(np.ones(2), 0.0),)).reveal(np.zeros(2))
    with pytest.raises(bridle.InputError, match="comes without its round"):
        record.update(record.init(np.zeros(2)), plain._replace(round=None))


def test_a_bound_that_does_not_apply_says_why():
    at = stage("ball", 2, 1, 50, 0)
    assert "change from round to round" in made("yi2021", at.domain, 1, 0.0, 50).bound(at.constants, 50).why
    assert "change from round to round" in made("yu2020", at.domain, 1, 0.0, 50).bound(at.constants, 50).why
    fixed = stage("ball", 2, 1, 50, 0, fixed=True)
    assert "too small a Lipschitz" in made("yi2021", at.domain, 1, 0.0, 50, G=0.5).bound(fixed.constants, 50).why
    assert "too small a Lipschitz" in made("yi2023", at.domain, 1, 0.0, 50, G=0.5, form="prox").bound(fixed.constants, 50).why
    assert "beta" in made("yu2020", at.domain, 1, 0.0, 50, beta=1e3).bound(fixed.constants, 50).why
    assert "strongly convex" in made("guo2022-strong", at.domain, 1, 1.0, 50).bound(fixed.constants, 50).why
    assert "told" in made("guo2022-strong", at.domain, 1, 9.0, 50).bound({**fixed.constants, "modulus": 1.0}, 50).why

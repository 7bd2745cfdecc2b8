"""Every registered problem tells the truth about itself: its constants are attacked by sampling, by solvers and by brute force."""

from __future__ import annotations

import pickle
import re
import warnings
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

import bridle
from bridle import policies, problems, records
from bridle.cli import listing
from bridle.core import InputError, Round
from bridle.functions import AFFINE_FUNCTIONS
from bridle.game.summary import BOUNDED, summary
from bridle.problems import problem_facts, takes
from bridle.problems.base import adaptive, oblivious
from bridle.solvers import hindsight
from helpers.instances import CURVED, SIMULATED, THE_SEED_DOES_NOT_SHOW, made_in

ROUNDS = 60
OPPONENTS = ("sinha2024", "sinha2024-ocs", "ogd")
"""Policies to play a problem with: an adaptive opponent answers each with another stream. One is careful, one ignores the constraints."""

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "halfspaces": ({"constraints": 3, "domain": "simplex"}, {"slater": 0.0, "domain": "box"}),
    "minimax": ({"family": 1, "domain": "l1"},),
    "game": ({"dim": 2, "slater": 0.0}, {"family": 1}),
    "fixed-constraints": ({"constraints": 1, "domain": "simplex"}, {"domain": "l1", "dim": 3}),
    "s-feasible": ({"window": 1}, {"window": 2, "domain": "box"}, {"window": 7, "level": 0.1}, {"window": ROUNDS, "dim": 1}),
    "p-constrained": ({"P_T": 0.0}, {"P_T": 45.5, "domain": "simplex"}, {"P_T": 0.3, "dim": 2}),
    "multi-task": ({"conflict": 0.1}, {"conflict": 0.875, "constraints": 2, "dim": 2}, {"constraints": 1}),
    "nested-bodies": ({"slater": 0.05, "domain": "ball"}, {"dim": 1}),
    "violation-seeking": ({"slater": 0.0, "domain": "box"}, {"domain": "simplex", "dim": 3}),
    "regret-seeking": ({"dim": 2}, {"domain": "box"}),
    "alternating": ({"period": 7, "slater": 0.0}, {"domain": "simplex", "period": 3}),
    "late-constraint": ({"domain": "simplex"}, {"domain": "l1", "dim": 2}),
    "scales": ({"adaptive": 1}, {"adaptive": 1, "slater": 0.0, "domain": "box"}),
    "scattered": ({"dim": 1}, {"dim": 2}),
    "rare-constraint": ({"period": 3, "dim": 2},),
    "noisy": ({"noise": 0.5}, {"dim": 1}),
    "tangent": ({"noise": 0.8}, {"dim": 1}),
    "contradiction": ({"level": 0.75, "dim": 2},),
    "pricing": ({"dim": 1}, {"dim": 2, "elasticity": 1.2, "substitution": 0.9, "stock": 3.0, "season": 0.0, "shock": 0.6}),
    "recommendation": (
        {"dim": 2, "least": 0.1, "most": 1.5},
        {"dim": 9, "least": 0.0, "most": 9.0},
        {"dim": 7, "groups": 3, "least": 0.5, "most": 1.8},
    ),
    "revenue": ({"spokes": 1, "load": 0.5}, {"spokes": 2, "load": 2.0, "fares": 1.0, "season": 0.0, "shock": 0.0}),
    "navigation": ({"waypoints": 1, "constraints": 1}, {"waypoints": 3, "wind": 0.0, "slater": 0.0}, {"waypoints": 2, "wind": 30.0}),
    "bundle-auctions": (
        {"noise": 0.0},
        {"bidders": 1, "items": 1, "bundles": 1, "constraints": 3, "noise": 0.0},
        {"bidders": 3, "items": 3, "bundles": 7, "budget": 0.3, "constraints": 4},
    ),
    "experts": ({"adaptive": 1, "dim": 7}, {"share": 0.5, "dim": 2}),
}
"""Parameters to try beside the defaults, and beside `modulus` where there is one."""

DEPENDS_ON_THE_HORIZON = {
    "lower-bound": "d = T",
    "late-constraint": "it begins at T/2",
    "p-constrained": "P_T is spread over T rounds",
    "late-temptation": "it begins at T/2",
    "contradiction": "it begins at T/2",
    "experts": "careless experts are found out in round T",
}
"""Problems whose first rounds are others when they are made for more rounds, and why."""


class Case(NamedTuple):
    """A problem by name and parameters."""

    name: str
    given: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{key}={value}" for key, value in self.given)])

    def make(self, horizon: int = ROUNDS, seed: int = 0) -> bridle.Problem:
        return made(self.name, horizon, seed, **dict(self.given))


def made(name: str, horizon: int = ROUNDS, seed: int = 0, **given: Any) -> bridle.Problem:
    """The problem. Every test makes its problems here, so that those which need something more can be seen to in one place."""
    return bridle.problem(name, horizon=horizon, seed=seed, **given)


def cases() -> list[Case]:
    found = []
    for name in SIMULATED:
        found.append(Case(name))
        if takes(name, "modulus") and name != "lower-bound":
            found.append(Case(name, (("modulus", 0.5),)))
        found += [Case(name, tuple(given.items())) for given in VARIANTS.get(name, ())]
    return found


CASES = cases()
every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_problem = pytest.mark.parametrize("name", SIMULATED)


def play(policy: str, problem: bridle.Problem, **settings: Any) -> bridle.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        return bridle.play(bridle.policy_for(policy, problem), problem, **settings)


def attempt(policy: str, problem: bridle.Problem) -> tuple[bridle.Trace | None, str]:
    """The game, or why the policy refuses it."""
    try:
        return play(policy, problem), ""
    except InputError as refusal:
        return None, str(refusal)


class Wanderer(NamedTuple):
    """Goes from corner to corner, whatever it is told: an opponent that adapts must keep its promises there too."""

    corners: Any

    def init(self, x1: Any) -> Any:
        return 0.0

    def decide(self, state: Any) -> Any:
        return records.take(self.corners, state % len(self.corners))

    def update(self, state: Any, feedback: Any) -> Any:
        return state + 1.0


def wanderer(problem: bridle.Problem) -> Wanderer:
    rng, domain = np.random.default_rng(3), problem.domain
    ways = rng.standard_normal((20, domain.dim))
    ways[0] = problem.constants["feasible"] - domain.center()  # as far away from there as can be
    return Wanderer(np.concatenate([domain.linear_argmin(ways), [problem.constants["feasible"]]]))


@lru_cache
def streams(case: Case) -> tuple[bridle.Problem, list[Round]]:
    """The problem, and all rounds that it answers several policies with, as one sequence each."""
    problem = case.make()
    if problem.adversary.oblivious:
        traces = [play(OPPONENTS[0], problem)]
    else:
        traces = [*(play(policy, problem) for policy in OPPONENTS), bridle.play(wanderer(problem), problem)]
    return problem, [records.join(list(trace.blocks())) for trace in traces]


def widened(stream: Round) -> Round:
    return records.widen(stream, 1)


def functions(stream: Round) -> list[Any]:
    wide = widened(stream)
    return [wide.cost, *wide.constraints]


def points(problem: bridle.Problem, stream: Round, count: int = 12) -> np.ndarray:
    """Points of the domain: inside, on the boundary, and where some constraint or cost is at its extremes."""
    rng, domain = np.random.default_rng(5), problem.domain
    outside = domain.project(domain.center() + 3.0 * domain.diameter() * rng.standard_normal((count, domain.dim)))
    inside = domain.center() + rng.uniform(0.0, 0.9, (count, 1)) * (outside - domain.center())
    slopes = np.concatenate([np.reshape(f.grad(domain.center()), (-1, domain.dim)) for f in functions(stream)])
    slopes = slopes[rng.integers(0, len(slopes), count)]
    corners = [domain.linear_argmin(sign * slope) for slope in slopes for sign in (1.0, -1.0)]
    return np.concatenate([inside, outside, corners])


# --- constants ------------------------------------------------------------------------------------------------------------------------


@every_case
def test_every_gradient_keeps_to_the_lipschitz_constant(case):
    problem, seen = streams(case)
    G, largest = problem.constants["lipschitz"], 0.0
    for stream in seen:
        for x in points(problem, stream):
            largest = max([largest, *(float(np.linalg.norm(f.grad(x), axis=-1).max()) for f in functions(stream))])
    assert largest <= G * (1.0 + 1e-12)
    assert largest >= 0.3 * G, "far too large to be called the problem's"


@every_case
def test_gradients_are_the_slopes_of_values(case):
    problem, seen = streams(case)
    rng, D = np.random.default_rng(1), problem.domain.diameter()
    for stream in seen:
        for x in points(problem, stream, 4)[:4]:
            v = rng.standard_normal(len(x))
            h = 1e-5 * D / np.linalg.norm(v)
            for f in functions(stream):
                slope, scale = np.asarray(f.grad(x)) @ v, problem.constants["lipschitz"] * np.linalg.norm(v)
                rise = (np.asarray(f.value(x + h * v)) - np.asarray(f.value(x - h * v))) / (2.0 * h)
                np.testing.assert_allclose(rise.reshape(-1), slope.reshape(-1), rtol=1e-6, atol=1e-7 * scale)


@every_case
def test_functions_are_convex_and_costs_as_strongly_as_stated(case):
    problem, seen = streams(case)
    alpha, D = problem.constants["modulus"], problem.domain.diameter()
    usual = next((p.default for p in problem_facts(case.name).parameters if p.name == "modulus"), 0.0)
    assert alpha == dict(case.given).get("modulus", usual) if case.name not in CURVED else alpha > 0.0
    rounding = 1e-12 * (1.0 + problem.constants["lipschitz"] * D)
    least = np.inf
    for stream in seen:
        x = points(problem, stream)
        for a, b in pairwise(x):
            for part in (0.25, 0.5):
                middle = part * a + (1.0 - part) * b
                apart = 0.5 * part * (1.0 - part) * float((a - b) @ (a - b))
                for i, f in enumerate(functions(stream)):
                    gap = part * np.asarray(f.value(a)) + (1.0 - part) * np.asarray(f.value(b)) - np.asarray(f.value(middle))
                    assert np.all(gap >= (0.0 if i else alpha) * apart - rounding)
                    if i == 0 and apart > 1e-3 * D * D:
                        least = min(least, float(gap.min()) / apart)
    assert least <= alpha * CURVED.get(case.name, 1.0) + 1e-9, f"the costs are {least} strongly convex, more than stated"


@every_case
def test_no_constraint_exceeds_its_bound(case):
    problem, seen = streams(case)
    F, largest = problem.constants["bound"], 0.0
    for stream in seen:
        wide = widened(stream)
        for x in points(problem, stream):
            largest = max([largest, *(float(np.abs(g.value(x)).max()) for g in wide.constraints)])
    assert largest <= F * (1.0 + 1e-12)
    assert largest >= 0.3 * F, "far too large to be called the problem's"


@every_case
def test_the_diameter_is_the_domains_and_no_two_points_are_farther_apart(case):
    problem, seen = streams(case)
    D = problem.constants["diameter"]
    assert problem.domain.diameter() == D
    x = points(problem, seen[0])
    assert all(problem.domain.contains(point) for point in x)
    assert np.linalg.norm(x[:, None] - x, axis=-1).max() <= D * (1.0 + 1e-12)


@every_case
def test_the_kind_of_functions_is_as_stated(case):
    problem, seen = streams(case)
    known, k = problem.constants, set()
    varies = False
    for stream in seen:
        assert stream.convex == known["convex"]
        assert all(isinstance(g, AFFINE_FUNCTIONS) for g in stream.constraints) == known["affine"]
        k.add(sum(np.asarray(g.value(problem.domain.center())).shape[-1] for g in widened(stream).constraints))
        leaves = [leaf for g in stream.constraints for leaf in records.leaves(g).values()]
        varies = varies or any((leaf != leaf[:1]).any() for leaf in leaves)
    assert k == {known["constraints"]}
    assert varies == known["time_varying"]


@every_case
def test_claims_of_feasibility_hold_in_every_round_against_every_policy(case):
    problem, seen = streams(case)
    known = problem.constants
    assert "feasible" in known, "a problem says which action is feasible, or that none is"
    if known["feasible"] is None:
        assert not known.get("slater")
        assert problem.domain.contains(known["benchmark"])
        for stream in seen:
            assert unsatisfiable(problem.domain, *rows(stream, problem.domain.dim))
        return
    assert problem.domain.contains(known["feasible"])
    for stream in seen:
        _, g = hindsight.values_at(lambda stream=stream: [stream], known["feasible"])
        assert g.max() <= 1e-12 * known["bound"]


@every_case
def test_some_action_has_the_slater_margin(case):
    """The feasible action itself has it, or the one that goes as far as it can against all constraints together."""
    problem, seen = streams(case)
    margin = problem.constants.get("slater")
    for stream in seen if margin is not None else ():
        slopes = [np.reshape(g.grad(problem.domain.center()), (-1, problem.domain.dim)) for g in widened(stream).constraints]
        actions = problem.constants["feasible"], problem.domain.linear_argmin(np.concatenate(slopes).sum(axis=0))
        least = min(hindsight.values_at(lambda stream=stream: [stream], x)[1].max() for x in actions)
        assert -least >= margin - 1e-12 * problem.constants["bound"]


def rows(stream: Round, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Affine constraints of a stream, A (T, k, d) and b (T, k)."""
    wide, zero = widened(stream), np.zeros(d)
    A = [np.asarray(g.grad(zero)) for g in wide.constraints]
    b = [np.asarray(g.value(zero)) for g in wide.constraints]
    return np.concatenate([a if a.ndim == 3 else a[:, None] for a in A], axis=1), np.concatenate(b, axis=1)


def box_around(domain: Any) -> list[tuple[float, float]]:
    """The smallest box that holds the domain: what holds nowhere in it, holds nowhere in the domain."""
    axes = np.eye(domain.dim)
    return [(float(domain.linear_min(axis)), -float(domain.linear_min(-axis))) for axis in axes]


def unsatisfiable(domain: Any, A: np.ndarray, b: np.ndarray) -> bool:
    """Whether A x + b <= 0 is proved to have no solution in the domain, by a linear program in a box around it."""
    answer = linprog(np.zeros(domain.dim), A_ub=A.reshape(-1, domain.dim), b_ub=-b.reshape(-1), bounds=box_around(domain), method="highs")
    return answer.status == 2


WINDOWS = [case for case in CASES if takes(case.name, "window")]


@pytest.mark.parametrize("case", WINDOWS, ids=str)
def test_the_window_is_the_smallest_of_any_action(case):
    problem, (stream,) = streams(case)
    S, x = problem.constants["window"], problem.constants["benchmark"]
    _, g = hindsight.values_at(lambda: [stream], x)
    sums = {n: np.array([g[i : i + n].sum(axis=0) for i in range(ROUNDS - n + 1)]).max() for n in range(1, ROUNDS + 1)}
    fine = [n for n, most in sums.items() if most <= 1e-12 * n]
    assert fine[0] == S
    assert hindsight.smallest_window(np.where(abs(g) <= 1e-12, 0.0, g)) == S
    A, b = rows(stream, problem.domain.dim)
    for n in range(1, S):
        windows = [(A[i : i + n].sum(axis=0), b[i : i + n].sum(axis=0)) for i in range(ROUNDS - n + 1)]
        assert unsatisfiable(problem.domain, np.array([w[0] for w in windows]), np.array([w[1] for w in windows])), f"over {n} rounds"


EXCESSES = [case for case in CASES if takes(case.name, "window") or takes(case.name, "P_T") or dict(case.given).get("conflict")]


@pytest.mark.parametrize("case", EXCESSES, ids=str)
def test_the_least_static_violation_is_as_stated(case):
    """P_T F is what the benchmark violates over its worst interval, and a linear program over all intervals finds no better action."""
    problem, (stream,) = streams(case)
    excess, x, d = problem.constants["excess"], problem.constants["benchmark"], problem.domain.dim
    _, g = hindsight.values_at(lambda: [stream], x)
    worst = max(float(g[i:j].sum(axis=0).max()) for i in range(ROUNDS) for j in range(i + 1, ROUNDS + 1))
    assert max(worst, 0.0) == pytest.approx(excess, abs=1e-9)
    assert hindsight.interval_excess(g) == pytest.approx(excess, abs=1e-9)
    A, b = rows(stream, d)
    spans = [(i, j) for i in range(ROUNDS) for j in range(i + 1, ROUNDS + 1)]
    above = np.concatenate([A[i:j].sum(axis=0) for i, j in spans])
    answer = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.column_stack([above, -np.ones(len(above))]),
        b_ub=-np.concatenate([b[i:j].sum(axis=0) for i, j in spans]),
        bounds=[*box_around(problem.domain), (0.0, None)],
        method="highs",
    )
    assert answer.fun == pytest.approx(excess, abs=1e-7)
    if "P_T" in dict(case.given):
        assert excess / problem.constants["bound"] == pytest.approx(dict(case.given)["P_T"])
        trace = play("sinha2024-ocs", problem)
        assert bridle.static_violation(trace) == pytest.approx(dict(case.given)["P_T"], abs=1e-6)


@every_case
def test_a_known_optimum_is_the_best_in_hindsight(case):
    for seed in (0, 1):
        problem = case.make(seed=seed)
        if problem.constants.get("optimal_cost") is None:
            continue
        trace = play("sinha2024", problem)
        cost, optimum = problem.constants["optimal_cost"], problem.constants["optimum"]
        assert bridle.best_action(trace).cost == pytest.approx(cost, abs=1e-6)
        f, g = hindsight.values_at(trace.blocks, optimum)
        assert f.sum() == pytest.approx(cost, abs=1e-9)
        assert g.max() <= 1e-9
        assert problem.domain.contains(optimum)


ON_A_SIMPLEX = [name for name in policies.names() if policies.entry(name).domains == ("simplex",)]
CONVEX = [name for name in policies.names() if not policies.entry(name).strongly_convex and name not in ON_A_SIMPLEX]


@pytest.mark.parametrize("policy", CONVEX)
def test_no_policy_has_less_regret_than_the_least(policy):
    problem = bridle.problem("regret-seeking", horizon=100, dim=4)
    trace, refusal = attempt(policy, problem)
    if trace is None:  # it lives on other domains only, where no least regret is claimed
        assert "domain" in refusal
        assert "least_regret" not in bridle.problem("regret-seeking", horizon=100, domain="simplex").constants
        return
    assert problem.constants["least_regret"] == pytest.approx(2.5)
    assert bridle.regret(trace) >= problem.constants["least_regret"] - 1e-9


# --- streams --------------------------------------------------------------------------------------------------------------------------


def kept(problem: bridle.Problem, policy: str = "sinha2024", **settings: Any) -> np.ndarray:
    """Costs and constraint values of every round of a game, side by side."""
    trace = play(policy, problem, keep="rounds", **settings)
    return np.concatenate([np.asarray(trace.costs)[..., None], np.asarray(trace.values)], axis=-1)


@every_case
def test_the_same_seed_gives_the_same_rounds_and_another_seed_others(case):
    seen = kept(case.make(seed=1))
    np.testing.assert_array_equal(kept(case.make(seed=1)), seen)
    np.testing.assert_array_equal(kept(case.make(seed=0).with_seed(1)), seen)
    assert case.name in THE_SEED_DOES_NOT_SHOW or not np.array_equal(kept(case.make(seed=0)), seen)


@every_case
def test_a_longer_game_begins_with_the_same_rounds(case):
    policy = bridle.policy_for("ogd", case.make())
    whole = case.make()
    long, short = (bridle.play(policy, whole, horizon=T, keep="rounds").values for T in (ROUNDS, ROUNDS // 2))
    np.testing.assert_array_equal(long[: ROUNDS // 2], short)
    if case.name not in DEPENDS_ON_THE_HORIZON and dict(case.given).get("window", 0) <= ROUNDS // 2:
        half = case.make(ROUNDS // 2)
        np.testing.assert_array_equal(bridle.play(policy, half, horizon=ROUNDS // 2, keep="rounds").values, short)


KINDS = [case for case in CASES if not case.given or set(dict(case.given)) & {"modulus", "conflict", "adaptive"}]
"""The cases that are records of different kinds: what a compiler sees."""


@pytest.mark.compiles
@pytest.mark.parametrize("case", KINDS, ids=str)
def test_the_engines_agree(case):
    problem = case.make(200 if case.name != "lower-bound" else ROUNDS)
    one, two = (play("sinha2024", problem, engine=engine, keep="decisions") for engine in ("python", "jax"))
    scale = max(problem.constants["bound"], problem.constants["lipschitz"] * problem.domain.diameter())
    for name in ("decisions", "costs", "values"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=0.0, atol=1e-12 * scale)


ADAPTIVE = ("minimax", "game", "violation-seeking", "regret-seeking", "tempting", "rare-constraint", "late-temptation")


@every_case
def test_an_adversary_says_whether_it_looks_at_the_decisions(case):
    problem = case.make()
    assert problem.adversary.oblivious == (case.name not in ADAPTIVE and not dict(case.given).get("adaptive"))
    if problem.adversary.oblivious:
        one, two = (records.join(list(play(policy, problem).blocks())) for policy in OPPONENTS[1:])
        assert records.same(one, two)


@pytest.mark.parametrize(("name", "engine"), [*((name, "python") for name in SIMULATED), *((name, "jax") for name in ADAPTIVE)])
def test_runs_in_one_call_are_what_they_are_alone(name, engine):
    problem, seeds = made(name), (0, 3)
    policy = bridle.policy_for("sinha2024", problem, lipschitz=2.0 * max(1.0, problem.constants["lipschitz"]))  # that of others may differ
    together = bridle.play(policy, problem, seed=list(seeds), engine=engine, keep="rounds")
    alone = [bridle.play(policy, problem, seed=seed, engine=engine, keep="rounds") for seed in seeds]
    for i, one in enumerate(alone):
        np.testing.assert_allclose(together.costs[:, i], one.costs, rtol=0.0, atol=1e-11)
        np.testing.assert_allclose(together.values[:, i], one.values, rtol=0.0, atol=1e-11)
    if problem.constants["feasible"] is not None:
        np.testing.assert_allclose(bridle.regret(together), [bridle.regret(one) for one in alone], rtol=1e-6, atol=1e-5)


@every_problem
def test_a_sweep_meets_the_same_opponent(name):
    problem = made(name)
    lams = (0.01, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        swept = bridle.play(bridle.policy_for("sinha2024", problem, lam=list(lams)), problem, keep="rounds")
        alone = [bridle.play(bridle.policy_for("sinha2024", problem, lam=lam), problem, keep="rounds") for lam in lams]
    for i, one in enumerate(alone):
        np.testing.assert_allclose(swept.values[:, i], one.values, rtol=0.0, atol=1e-11)
    if problem.constants["feasible"] is not None:
        np.testing.assert_allclose(bridle.regret(swept), [bridle.regret(one) for one in alone], rtol=1e-6, atol=1e-5)


# --- theorems -------------------------------------------------------------------------------------------------------------------------

BEYOND_THE_SOLVER = {"guo2022", "guo2022-strong"}
"""Policies whose proximal step may give up, in words, where opposed constraints cannot both hold: their theorems do not cover that."""


@pytest.mark.slow
@pytest.mark.covering(8)
@pytest.mark.parametrize("policy", policies.names())
@every_problem
def test_no_theorem_is_refuted(name, policy):
    """Every policy on every problem: where a bound is stated, it holds; where the policy does not apply, it says so."""
    curved = policies.entry(policy).strongly_convex
    given: dict[str, Any] = {"modulus": 0.5} if curved and takes(name, "modulus") and name != "lower-bound" else {}
    if policy == "steiner" and takes(name, "dim") and name != "lower-bound":  # exact, and bounded, in two dimensions
        given |= {"dim": 2} | ({"domain": "box"} if takes(name, "domain") else {})
    if policy in ON_A_SIMPLEX and takes(name, "domain"):
        given |= {"domain": "simplex"} | ({"constraints": 10} if policy == "banditq" and takes(name, "constraints") else {})
    problem = made(name, 40 if name == "lower-bound" else 200, **given)  # there d = T
    trace, refusal = attempt(policy, problem)
    if trace is None:
        expected = ["strongly convex"] if curved and not given else ["domain", "constraints: the policy was made for"]
        if policy in BEYOND_THE_SOLVER and problem.constants["feasible"] is None:
            expected.append("no proximal step was found")
        if policy == "hutchinson2025" and not problem.constants.get("slater"):
            expected.append("slater")
        assert any(words in refusal for words in expected), refusal
        return
    facts = summary(trace)
    for measured, bound in BOUNDED:
        assert facts[f"{bound}_holds"] is not False, f"{measured} is {facts[measured]}, above {facts[bound]}"
    benchmark = problem.constants.get("benchmark")
    if benchmark is not None and facts["regret_bound"] is not None:
        assert bridle.regret(trace, comparator=benchmark) <= facts["regret_bound"]


def test_the_special_settings_have_their_theorems():
    """Theorems 4 and 5 are about streams without a feasible action: there they say something, and Theorem 1 does not."""
    for name in ("s-feasible", "p-constrained"):
        facts = summary(play("sinha2024-ocs", made(name, 500)))
        assert facts["interval_bound"] > facts["interval_violation"]
        assert facts["interval_bound_paper"] > facts["interval_violation"]
        assert summary(play("sinha2024", made(name, 500)))["ccv_bound"] is None


# --- what is told about them ----------------------------------------------------------------------------------------------------------


@every_problem
def test_it_says_what_it_is(name):
    facts = problem_facts(name)
    assert facts.summary.endswith((".", "; d = T."))
    assert facts.about.startswith("x is "), "the second paragraph says what x, f and g are"
    for symbol in ("f", "g"):
        assert f" {symbol}" in facts.about
    assert [p.name for p in facts.parameters][:2] == ["horizon", "seed"]
    assert all(p.help for p in facts.parameters)
    row = listing.problems_table([listing.problem_row(name)]).rows[0][1]
    assert facts.summary in row
    assert facts.about in row


@pytest.mark.parametrize(
    "module", ["_paper", "_special_settings", "_hostile", "_streams", "_applications", "_markets", "_revenue", "_navigation", "_bundles"]
)
def test_the_table_of_a_file_names_every_problem_and_its_opponent(module):
    module = getattr(problems, module)
    rows = [line.split("|") for line in module.__doc__.splitlines() if line.startswith("| `")]
    named = {name: re.findall(r"`(\w+)`", row[2]) for row in rows for name in re.findall(r"`([\w-]+)`", row[1])}
    assert sorted(named) == sorted(made_in(module))
    opponents = {name for row in named.values() for name in row}
    assert opponents <= set(vars(module))
    for name in named if module is not problems._applications else ["ad-pacing"]:  # the others need data
        adversary = bridle.problem(name, horizon=10).adversary
        assert type(getattr(adversary, "stream", adversary)).__name__ in named[name]


def test_an_opponent_with_its_mark_is_a_plain_record():
    @oblivious
    class Blind(NamedTuple):
        size: float

    @adaptive
    class Watchful(NamedTuple):
        size: float

    assert (Blind(1.0).oblivious, Watchful(1.0).oblivious) == (True, False)
    assert Blind._fields == ("size",)
    assert Blind(1.0)._replace(size=2.0) == (2.0,)
    assert records.leaves(Blind(1.0)) == {"size": 1.0}
    problem = bridle.problem("halfspaces", horizon=10)
    again = pickle.loads(pickle.dumps(problem.adversary))
    assert records.same(again, problem.adversary)  # of one type, too
    assert again.oblivious


WRONG = [
    ("s-feasible", {"window": 61}, "window must be at most the horizon, 60, not 61"),
    ("s-feasible", {"window": 0}, "window must be 1 or above, not 0"),
    ("s-feasible", {"level": 0.0}, "level must be above 0, not 0.0"),
    ("p-constrained", {"P_T": 60}, "P_T must be below the horizon, 60, not 60"),
    ("p-constrained", {"P_T": -1.0}, "P_T must be 0 or above, not -1.0"),
    ("multi-task", {"dim": 1}, "dim must be 2 or above for multi-task, not 1"),
    ("multi-task", {"conflict": 1.0}, "conflict must be at most 0.875, not 1.0"),
    ("multi-task", {"conflict": 0.1, "constraints": 1}, "constraints must be 2 or above for tasks to conflict, not 1"),
    ("regret-seeking", {"dim": 1}, "dim must be 2 or above for regret-seeking, not 1"),
    ("scales", {"adaptive": 2}, "adaptive must be 0 or 1, not 2"),
    ("scales", {"modulus": 1.0}, "unknown parameter of problem scales 'modulus'"),
    ("alternating", {"period": 0}, "period must be 1 or above, not 0"),
    ("game", {"dim": 1}, "domain must hold more than one point"),
    ("late-constraint", {"domain": "cube"}, "unknown domain 'cube'"),
    ("violation-seeking", {"slater": -0.1}, "slater must be 0 or above, not -0.1"),
    ("violation-seeking", {"modulus": -1.0}, "modulus must be 0 or above, not -1.0"),
    ("uphill", {"modulus": 0.0}, "modulus must be above 0, not 0.0"),
    ("uphill", {"dim": 2}, "unknown parameter of problem uphill 'dim'"),
    ("noisy", {"noise": -1.0}, "noise must be above 0, not -1.0"),
    ("tangent", {"noise": -1.0}, "noise must be 0 or above, not -1.0"),
    ("contradiction", {"level": 0.0}, "level must be above 0, not 0.0"),
    ("rare-constraint", {"period": 0.5}, "period must be a whole number, not 0.5"),
    ("pricing", {"stock": 0.0}, "stock must be above 0, not 0.0"),
    ("pricing", {"season": 1.0}, "season must be below 1, not 1: demand would vanish"),
    ("pricing", {"shock": 2}, "shock must be below 1, not 2: demand would vanish"),
    ("pricing", {"substitution": 1.8}, "substitution must be below 1.8 where elasticity is 2, not 1.8"),
    ("pricing", {"elasticity": 0.5, "substitution": 0.5}, "substitution must be below 0.45 where elasticity is 0.5, not 0.5"),
    ("pricing", {"elasticity": -1.0}, "elasticity must be above 0, not -1.0"),
    ("recommendation", {"dim": 1}, "dim must be 2 or above, not 1"),
    ("recommendation", {"least": 1.1}, "least must be at most 1, an even share, not 1.1"),
    ("recommendation", {"most": 0.9}, "most must be 1, an even share, or above, not 0.9"),
    ("recommendation", {"groups": 7}, "groups must be at most 6, the providers there are, not 7"),
    ("recommendation", {"groups": 1}, "groups must be 2 or above, not 1"),
    ("revenue", {"load": 0.0}, "load must be above 0, not 0.0"),
    ("revenue", {"fares": -1.0}, "fares must be above 0, not -1.0"),
    ("revenue", {"spokes": 0}, "spokes must be 1 or above, not 0"),
    ("revenue", {"shock": 1.0}, "shock must be below 1, not 1: demand would vanish"),
    ("revenue", {"data": "trains"}, "unknown data 'trains'"),
    ("navigation", {"waypoints": 0}, "waypoints must be 1 or above, not 0"),
    ("navigation", {"slater": 0.6}, "slater must be at most 0.5, the width beside the straight line, not 0.6"),
    ("navigation", {"wind": -1.0}, "wind must be 0 or above, not -1.0"),
    ("bundle-auctions", {"items": 2, "bundles": 4}, "bundles must be at most 3 where there are 2 items, not 4"),
    ("bundle-auctions", {"constraints": 21}, "constraints must be at most 20, the limits there are, not 21"),
    ("bundle-auctions", {"noise": 1.0}, "noise must be below 1, not 1: a bundle could be worth nothing"),
    ("bundle-auctions", {"budget": 0.0}, "budget must be above 0, not 0.0"),
    ("nested-body", {}, "unknown problem 'nested-body'; did you mean nested-bodies"),
]


@pytest.mark.parametrize(("name", "given", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_made_is_refused_in_words(name, given, message):
    with pytest.raises(InputError) as refusal:
        bridle.problem(name, horizon=60, **given)
    assert message in str(refusal.value)


def test_a_horizon_must_be_given_where_the_problem_has_none():
    with pytest.raises(InputError, match="horizon must be given: problem fixed does not say how many rounds it has"):
        bridle.problem("fixed")

"""The engines run one source: they agree on every policy x learner x domain, one run or many, and refuse what they cannot run."""

from __future__ import annotations

import sys
import warnings
from itertools import product

import numpy as np
import pytest

import bridle
from bridle import engines
from bridle.core import Unavailable
from bridle.engines.round import BlockRounds, BlockTotals, BlockValues, Collect, SingleRun
from bridle.game.totals import summing
from bridle.problems.dealing import deal_blocks, player
from helpers.engine_agreement import ROUNDS, agree
from helpers.instances import make_domain

PLACES = ("ball", "box", "simplex", "l1", "halfspace", "cut-box", "product", "spectrahedron")
LEARNERS = ("adagrad", "adaftrl", "ftpl", "ogd", "decreasing", "strongly-convex", "fixed-ftpl")


def place(kind: str, dim: int = 5):
    return make_domain(kind, dim, 1.0, np.random.default_rng(7))


def learner(kind: str, domain):
    """A learner by name, or a record for those that `learner=` takes only as such."""
    return {
        "decreasing": lambda: bridle.OGD(domain, step=0.5, decay="sqrt"),
        "strongly-convex": lambda: bridle.StronglyConvexOGD(domain, modulus=0.01),
        "fixed-ftpl": lambda: bridle.FTPL(domain, scale=3.0, samples=5),
    }.get(kind, lambda: kind)()


def convex(kind: str, domain, **more):
    more = {"samples": 5, **more} if kind == "ftpl" else more
    return bridle.policy("sinha2024", domain, horizon=ROUNDS, lipschitz=1.0, preset="practice", learner=learner(kind, domain), **more)


@pytest.mark.compiles
@pytest.mark.covering(1)
@pytest.mark.parametrize(("kind", "where"), list(product(LEARNERS, PLACES)))
def test_algorithm_1_agrees(kind, where):
    domain = place(where)
    rounds = 1_000 if "ftpl" in kind else ROUNDS  # each of its rounds solves several problems
    agree(convex(kind, domain), bridle.problem("halfspaces", horizon=ROUNDS, domain=domain, constraints=3, seed=3), rounds=rounds)


@pytest.mark.compiles
@pytest.mark.parametrize("where", PLACES)
def test_the_other_policies_agree(where):
    domain = place(where)
    curved = bridle.problem("halfspaces", horizon=ROUNDS, domain=domain, modulus=0.7, seed=1)
    agree(bridle.policy_for("sinha2024-strong", curved), curved)
    several = bridle.problem("halfspaces", horizon=ROUNDS, domain=domain, constraints=3, seed=2)
    agree(bridle.policy_for("sinha2024-ocs", several), several)


@pytest.mark.compiles
@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", ["adaftrl", "ftpl", "decreasing"])
@pytest.mark.parametrize("where", ["ball", "simplex", "cut-box"])
def test_the_other_policies_agree_with_other_learners(kind, where):
    domain = place(where)
    several = bridle.problem("halfspaces", horizon=2_000, domain=domain, constraints=3, seed=2)
    more, rounds = ({"samples": 5}, 500) if kind == "ftpl" else ({}, 2_000)
    agree(bridle.policy_for("sinha2024-ocs", several, learner=learner(kind, domain), **more), several, rounds=rounds)
    curved = bridle.problem("halfspaces", horizon=2_000, domain=domain, modulus=0.7, seed=1)
    agree(bridle.policy_for("sinha2024-strong", curved, learner=learner(kind, domain)), curved, rounds=rounds)


@pytest.mark.compiles
@pytest.mark.parametrize("potential", ["exponential", "quadratic", "power"])
def test_potentials_agree(potential):
    problem = bridle.problem("halfspaces", horizon=ROUNDS, dim=4)
    agree(bridle.policy_for("sinha2024", problem, potential=potential), problem)


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["lower-bound", "minimax", "fixed"])
@pytest.mark.parametrize("policy", ["sinha2024", "sinha2024-ocs"])
def test_problems_agree(name, policy):
    problem = bridle.problem(name, horizon=2_000)
    agree(bridle.policy_for(policy, problem), problem, rounds=2_000)


@pytest.mark.compiles
def test_wrapped_policies_agree():
    domain = place("ball")
    problem = bridle.problem("halfspaces", horizon=ROUNDS, domain=domain, constraints=2)
    doubling = bridle.Doubling(lambda T: bridle.policy("sinha2024", domain, horizon=T, lipschitz=1.0, preset="practice"))
    agree(doubling, problem)


@pytest.mark.compiles
def test_broken_assumptions_agree_where_the_exponent_would_overflow():
    """With a Lipschitz constant far too small e^{lam Q} passes 1e308; both engines stay finite and together, and say what is wrong."""
    problem = bridle.problem("fixed", horizon=3_000, dim=3)
    policy = bridle.policy("sinha2024", problem.domain, horizon=3_000, lipschitz=1e-6, V=1e9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agree(policy, problem, rounds=3_000, tolerance=1e-9)
    assert any("rules out" in str(w.message) for w in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        final = bridle.play(policy, problem).state
    assert policy.record.potential.lam * final.Q > 709.0  # e^{lam Q} itself would have overflowed


SWEEPS = [
    ("sinha2024", {"lam": [1e-3, 1e-2, 1e-1]}, {}),
    ("sinha2024", {"horizon": [100, 1000, 10_000], "V": [0.1, 1.0, 10.0]}, {}),
    ("sinha2024", {"learner": "adaftrl", "beta": [0.1, 0.2, 0.3]}, {}),
    ("sinha2024", {"learner": "ftpl", "samples": 5, "lam": [1e-3, 1e-2, 1e-1]}, {}),
    ("sinha2024", {"potential": "power", "exponent": [2.0, 3.0, 5.0]}, {}),
    ("sinha2024-strong", {"V": [1.0, 10.0, 100.0]}, {"modulus": 0.5}),
    ("sinha2024-ocs", {"diameter": [0.5, 2.0, 8.0]}, {}),
]


@pytest.mark.slow
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["python", "jax"])
@pytest.mark.parametrize(("name", "swept", "about"), SWEEPS)
def test_a_sweep_is_the_loop_over_its_values(engine, name, swept, about):
    """An array for a parameter plays all its values in one call, each as if alone; also against an adversary that adapts."""
    for problem_name in ("halfspaces", "minimax"):
        problem = bridle.problem(problem_name, horizon=300, dim=4, **about)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            together = bridle.play(bridle.policy_for(name, problem, **swept), problem, engine=engine, keep="decisions")
            for i in range(3):
                alone = {key: value[i] if isinstance(value, list) else value for key, value in swept.items()}
                single = bridle.play(bridle.policy_for(name, problem, **alone), problem, engine=engine, keep="decisions")
                np.testing.assert_allclose(together.decisions[:, i], single.decisions, rtol=0, atol=1e-12)
                assert bridle.regret(together)[i] == pytest.approx(bridle.regret(single), abs=1e-6)
                assert bridle.ccv(together)[i] == pytest.approx(bridle.ccv(single), abs=1e-9)


@pytest.mark.parametrize("engine", ["python", "jax"])
@pytest.mark.parametrize("name", ["lower-bound", "minimax", "fixed", "halfspaces"])
def test_many_seeds_are_the_loop_over_seeds(engine, name):
    def make(seed):
        return bridle.problem(name, horizon=300, seed=seed)

    seeds = [4, 0, 9]
    policy = bridle.policy_for("sinha2024", make(0), preset="practice")
    together = bridle.play(policy, make(0), seed=seeds, engine=engine, keep="decisions")
    for i, seed in enumerate(seeds):
        single = bridle.play(policy, make(seed), engine=engine, keep="decisions")
        np.testing.assert_allclose(together.decisions[:, i], single.decisions, rtol=0, atol=1e-12)
        assert bridle.regret(together)[i] == pytest.approx(bridle.regret(single), abs=1e-6)


def test_the_same_seed_gives_the_same_stream_whatever_the_horizon():
    short, long = (bridle.problem("halfspaces", horizon=T, seed=5, dim=3) for T in (1500, 4000))
    policy = bridle.policy("sinha2024", short.domain, horizon=4000, lipschitz=1.0)
    a, b = (bridle.play(policy, problem, keep="rounds") for problem in (short, long))
    np.testing.assert_array_equal(a.costs, b.costs[:1500])


def test_python_only_records_are_refused_by_name():
    square = bridle.Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], np.ones(4))
    policy = bridle.policy("sinha2024", square, horizon=10, lipschitz=1.0)
    assert bridle.play(policy, "halfspaces").rounds == 10
    with pytest.raises(bridle.InputError, match=r"PolyhedronSet runs on engine 'python' only"):
        bridle.play(policy, "halfspaces", engine="jax")


def test_an_unknown_engine_is_one_clear_error():
    with pytest.raises(bridle.InputError, match=r"unknown engine 'jaxx'; did you mean jax\?"):
        bridle.play(bridle.policy("sinha2024", bridle.Ball(2), horizon=10, lipschitz=1.0), "fixed", engine="jaxx")


OFFERS = {
    "python": (),
    "jax": (engines.PlaysManyRuns, engines.Differentiates),
    "compiled": (engines.PlaysManyRuns, engines.CompilesSteps),
}


@pytest.mark.parametrize("name", OFFERS)
def test_an_engine_offers_what_its_protocols_say(name):
    engine = engines.load(name)
    assert isinstance(engine, engines.Engine)
    for protocol in (engines.PlaysManyRuns, engines.CompilesSteps, engines.Differentiates):
        assert isinstance(engine, protocol) == (protocol in OFFERS[name]), protocol


def test_only_engines_are_loaded():
    """Modules beside the engines are none, and what is missing says what to install."""
    for name in ("round", "codegen", "fortran"):
        with pytest.raises(bridle.InputError, match=f"unknown engine '{name}'"):
            engines.load(name)


def test_a_missing_package_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "bridle.engines.jax", raising=False)
    with pytest.raises(Unavailable, match=r"engine 'jax' needs the package jax: pip install 'bridle-oco\[jax\]'"):
        engines.load("jax")


@pytest.mark.parametrize(
    ("name", "collect"),
    [("jax", collect) for collect in Collect] + [("python", collect) for collect in Collect if collect is not Collect.TOTALS],
)
def test_a_block_is_what_is_collected(name, collect):
    """The Python engine returns every round: it has no totals of its own."""
    problem, rounds = bridle.problem("halfspaces", horizon=7, dim=3, constraints=2), 7
    policy = bridle.policy_for("sinha2024", problem).record
    policy = summing(policy, np.zeros(2)) if collect is Collect.TOTALS else policy
    adversary, start, draws = player(problem.adversary), problem.domain.center(), next(deal_blocks(problem.adversary, 0, rounds, 3))
    marks = np.array([2, 7]) if collect is Collect.TOTALS else None
    run = SingleRun(policy, adversary, policy.init(start), adversary.init(), draws)
    _, _, block = engines.load(name).advance(run, rounds, collect, marks)
    if collect is Collect.ROUNDS:
        assert isinstance(block, BlockRounds)
        assert [part.constraints[0].value(start).shape for part in block.rounds] == [(7, 2)]
    elif collect is Collect.TOTALS:
        assert isinstance(block, BlockTotals)
        np.testing.assert_array_equal(block.sums.rounds, [2.0, 7.0])
    else:
        assert isinstance(block, BlockValues)
        assert (block.f.shape, block.g.shape) == ((7,), (7, 2))
        assert (None if block.x is None else block.x.shape) == ((7, 3) if collect is Collect.DECISIONS else None)

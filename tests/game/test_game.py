"""The game: what `play` takes and refuses, what a trace says, that streams replay, and that the problems' constants are true."""

from __future__ import annotations

import tracemalloc
import warnings
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest

import bridle
from bridle import ops, records
from bridle.engines.round import Collect
from bridle.functions import AffineFunction, AffineRows, RoundQuadratic
from bridle.game import schedule
from bridle.game.summary import summary
from bridle.problems.recorded import ComputedRounds, RecordedRounds
from helpers.instances import SIMULATED, THE_SEED_DOES_NOT_SHOW

ENGINES = ("python", "jax")
SHAPES = ("ball", "box", "simplex", "l1")


def policy(dim: int = 3, horizon: int = 100, **more):
    return bridle.policy("sinha2024", bridle.Ball(dim), horizon=horizon, lipschitz=1.0, **more)


def halfspaces(dim: int = 3, horizon: int = 50, **more):
    return bridle.problem("halfspaces", horizon=horizon, dim=dim, **more)


def rounds_of(block):
    """The rounds of a block one by one, each without its time axis."""
    for t in range(len(next(iter(records.leaves(block).values())))):
        yield records.transform(lambda leaf, t=t: float(leaf[t]) if leaf.ndim == 1 else leaf[t], block)


def stream(trace, run=None) -> list[Any]:
    return [chosen for block in trace.blocks(run) for chosen in rounds_of(block)]


# --- arguments ------------------------------------------------------------------------------------------------------------------------

SWEEP = policy(lam=[0.1, 0.2, 0.3])
REFUSED = [
    *[({"horizon": h}, "horizon must be") for h in (0, -1, 1.5, np.nan, np.inf, -np.inf, "abc", [], [10, 20], True, 1j, b"x", {})],
    *[({"seed": s}, "seed must be") for s in (-1, 1.5, np.nan, "abc", [1, -1], [1, "a"], [[1, 2]], {}, True)],
    ({"seed": []}, "seed must hold at least one seed, not an empty list"),
    ({"x1": [0.0, 0.0]}, r"x1 must have shape \(3,\), not \(2,\)"),
    ({"x1": np.zeros((2, 2, 3))}, r"x1 must have shape \(3,\), not \(2, 2, 3\)"),
    ({"x1": [2.0, 0.0, 0.0]}, r"x1 must lie in the domain; array\(\[2., 0., 0.\]\) does not"),
    ({"x1": np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]])}, "x1 must lie in the domain"),
    ({"x1": [np.nan, 0.0, 0.0]}, "x1 must be finite, not nan at index 0"),
    ({"x1": "abc"}, "x1 must be an array of numbers, not 'abc'"),
    ({"x1": [[1.0], [2.0, 3.0]]}, "x1 must be an array of numbers"),
    ({"engine": "pyton"}, r"unknown engine 'pyton'; did you mean python\?"),
    ({"engine": None}, "unknown engine None; known: auto, compiled, jax, python"),
    ({"engine": "cuda"}, "engine 'cuda' was removed; use engine='jax', which uses a GPU where JAX sees one"),
    ({"keep": "everything"}, "unknown keep 'everything'; known: decisions, movement, rounds, totals"),
    ({"keep": "round"}, r"unknown keep 'round'; did you mean rounds\?"),
    ({"problem": "halfspace"}, r"unknown problem 'halfspace'; did you mean halfspaces\?"),
    ({"problem": None}, "problem must be a Problem or a name, not None"),
    ({"problem": halfspaces(4)}, "policy decides in 3 dimensions, the problem in 4"),
    ({"problem": "lower-bound"}, "policy decides in 3 dimensions, the problem in 100"),
    ({"policy": None}, "policy must have a method `init`; None has none"),
    ({"policy": bridle.Ball(3)}, "policy must have a method `init`"),
    ({"policy": SWEEP, "seed": [1, 2]}, r"parameters \(3\), seeds \(2\) and starting points \(None\) must be equally many"),
    ({"policy": SWEEP, "x1": np.zeros((2, 3))}, r"parameters \(3\), seeds \(None\) and starting points \(2\) must be equally many"),
    ({"seed": [1, 2, 3], "x1": np.zeros((2, 3))}, r"seeds \(3\) and starting points \(2\) must be equally many"),
    (
        {"policy": bridle.policy("sinha2024-ocs", bridle.Ball(3), constraints=2), "horizon": 9},
        "constraints: the policy was made for 2, the problem reveals 1",
    ),
]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda v: " ".join(repr(v).split())[:50])
def test_bad_arguments_are_one_clear_error(change, message, named):
    given = {"policy": policy(), "problem": "halfspaces" if named else halfspaces(), **change}
    with pytest.raises(bridle.InputError, match=message) as wrong:
        bridle.play(given.pop("policy"), given.pop("problem"), **given)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("halfspacs", {}, r"unknown problem 'halfspacs'; did you mean halfspaces\?"),
        (None, {}, "unknown problem None"),
        ("halfspaces", {"horizon": 0}, "horizon must be 1 or above, not 0"),
        ("halfspaces", {"horizon": 2.5}, "horizon must be a whole number, not 2.5"),
        ("halfspaces", {"seed": -1}, "seed must be 0 or above, not -1"),
        ("halfspaces", {"dim": 0}, "dim must be 1 or above, not 0"),
        ("halfspaces", {"dim": 2.5}, "dim must be a whole number, not 2.5"),
        ("halfspaces", {"modulus": -1.0}, "modulus must be 0 or above, not -1.0"),
        ("halfspaces", {"modulus": np.nan}, "modulus must be finite, not nan"),
        ("halfspaces", {"constraints": 0}, "constraints must be 1 or above, not 0"),
        ("halfspaces", {"domain": "bal"}, r"unknown domain 'bal'; did you mean ball"),
        ("halfspaces", {"domain": 3}, "domain must be a name or a domain such as .* not 3"),
        ("halfspaces", {"domain": "simplex", "dim": 1}, "domain must hold more than one point; dim = 1 gives a single one"),
        ("halfspaces", {"family": 3}, "unknown parameter of problem halfspaces 'family'"),
        ("halfspaces", {"constraint": 3}, r"unknown parameter of problem halfspaces 'constraint'; did you mean constraints"),
        ("minimax", {"family": 0}, "family must be 1 or above, not 0"),
        ("lower-bound", {"dim": 3}, "dim of problem lower-bound is its horizon, 50, not 3"),
        ("lower-bound", {"modulus": 1.0}, r"modulus of problem lower-bound is 0 \(its costs are absolute values\), not 1.0"),
    ],
)
def test_bad_problems_are_one_clear_error(name, given, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.problem(name, **{"horizon": 50, **given})


def test_the_lower_bound_has_no_more_rounds_than_coordinates():
    problem = bridle.problem("lower-bound", horizon=16)
    made = bridle.policy_for("sinha2024", problem)
    with pytest.raises(bridle.InputError, match="horizon must be at most 16, the rounds that problem lower-bound has, not 17"):
        bridle.play(made, problem, horizon=17)
    assert bridle.regret(bridle.play(made, problem, horizon=7)) == pytest.approx(7 / 16)


def test_a_horizon_comes_from_the_call_the_problem_or_the_policy():
    class Anything(NamedTuple):
        def init(self, x1):
            return x1

        def decide(self, state):
            return state

        def update(self, state, feedback):
            return state

    assert bridle.play(policy(), halfspaces(), horizon=7).rounds == 7
    assert bridle.play(policy(), halfspaces()).rounds == 50
    assert bridle.play(policy(), "halfspaces").rounds == 100
    assert bridle.play(policy(horizon=[40, 40]), "halfspaces", seed=[1, 2]).rounds == 40
    assert bridle.play(policy(), "halfspaces", horizon=8.0).rounds == 8
    own = bridle.Problem(bridle.Ball(3), halfspaces().adversary)
    assert bridle.play(policy(), own).rounds == 100
    with pytest.raises(bridle.InputError, match="horizon must be given: neither the problem nor the policy says"):
        bridle.play(Anything(), own)
    with pytest.raises(bridle.InputError, match="horizon must be given: neither the policy nor the call says"):
        bridle.play(Anything(), "halfspaces")


def test_a_game_past_the_policys_horizon_warns_and_has_no_bounds():
    with pytest.warns(bridle.BridleWarning, match="was made for 20 rounds and played 50: past its horizon its bounds do not hold"):
        trace = bridle.play(policy(horizon=20), halfspaces())
    assert len(trace.warnings) == 1
    assert trace.policy.bound(trace.problem.constants, trace.rounds).ccv is None


def test_progress_is_told_of_every_block():
    told: list[tuple[int, int]] = []
    bridle.play(policy(horizon=3000), halfspaces(horizon=3000), engine="python", progress=lambda done, total: told.append((done, total)))
    assert told == [(1024, 3000), (2048, 3000), (3000, 3000)]


def recorded(rounds: int) -> bridle.Problem:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, rounds, 3))
    table = bridle.Round(AffineFunction(a[0], np.zeros(rounds)), (AffineFunction(a[1], rng.uniform(-1.0, 0.0, rounds)),))
    return bridle.Problem(bridle.Ball(3), RecordedRounds(table, 7.0), {"lipschitz": 5.0})


@pytest.mark.compiles
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("made", [recorded(2500), halfspaces(horizon=2500)], ids=["recorded", "drawn"])
def test_how_many_rounds_an_engine_is_given_at_a_time_changes_no_bit(made, several, monkeypatch):
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    least = schedule.Schedule.block_bytes
    policy = bridle.policy("anytime", made.domain, **({"V": [1.0, 2.0]} if several else {}))
    told: list[int] = []

    def played(memory: int | None) -> bridle.Trace:
        told.clear()
        return bridle.play(policy, made, horizon=2500, engine="compiled", memory=memory, progress=lambda done, of: told.append(done))

    whole = played(None)
    assert told == [2500]
    monkeypatch.setattr(schedule, "MOST_SUMMED", 1)
    blocks = played(least(whole.schedule(), Collect.TOTALS))
    assert told == [1024, 2048, 2500]
    assert records.same(whole.totals, blocks.totals)
    assert records.same(whole.curve, blocks.curve)
    assert records.same(whole.state, blocks.state)


class Periods(NamedTuple):
    """A stream that has the same rounds in every period."""

    table: Any

    @property
    def length(self) -> int:
        return 2500

    def period(self, number):
        return self.table


@pytest.mark.compiles
def test_only_rounds_that_are_in_memory_already_are_given_in_one_piece():
    table = recorded(2500).adversary.table
    for adversary, whole in ((RecordedRounds(table, 7.0), True), (ComputedRounds(Periods(table)), False)):
        made = bridle.Problem(bridle.Ball(3), adversary, {"lipschitz": 5.0})
        game = bridle.play(bridle.policy("anytime", made.domain), made, horizon=100, engine="compiled").schedule()
        taken = game.blocks_at_once(2**33, Collect.TOTALS) * game.block_bytes(Collect.TOTALS)
        assert (taken > 2**32) == whole
        assert whole or taken <= schedule.MOST_SUMMED


# --- what a trace says ----------------------------------------------------------------------------------------------------------------


def brute(costs: np.ndarray, values: np.ndarray) -> dict[str, Any]:
    """Every metric by its definition, for one run: costs (T,), values (T, k)."""
    hard = np.maximum(values, 0.0)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    interval = max(0.0, max(float((sums[i + 1 :] - sums[i]).max()) for i in range(len(values))))
    return {
        "cost": costs.sum(),
        "ccv": hard.sum(axis=0).max(),
        "ccv_each": hard.sum(axis=0),
        "ccv_max": np.maximum(values.max(axis=1), 0.0).sum(),
        "soft": max(0.0, values.sum(axis=0).max()),
        "interval": interval,
        "squared": (hard**2).sum(axis=0).max(),
    }


def metrics(trace) -> dict[str, Any]:
    return {
        "cost": trace.totals.cost, "ccv": bridle.ccv(trace), "ccv_each": bridle.ccv_each(trace), "ccv_max": bridle.ccv_max(trace),
        "soft": bridle.soft_violation(trace), "interval": bridle.interval_violation(trace), "squared": bridle.squared_ccv(trace),
    }  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["halfspaces", "minimax"])
@pytest.mark.parametrize("several", [False, True])
def test_every_metric_is_what_its_definition_says(engine, name, several):
    """From the kept rounds by brute force (the interval violation over all intervals), over more than one block."""
    more = {"constraints": 3} if name == "halfspaces" else {}
    problem = bridle.problem(name, horizon=1500, dim=4, seed=2, **more)
    made = bridle.policy_for("sinha2024", problem, preset="practice", **({"V": [0.01, 1.0]} if several else {}))
    trace = bridle.play(made, problem, engine=engine, keep="decisions")
    bare = bridle.play(made, problem, engine=engine)
    assert (bare.costs, bare.values, bare.decisions) == (None, None, None)
    k = more.get("constraints", 1)
    runs = (2,) if several else ()
    assert trace.costs.shape == (1500, *runs)
    assert trace.values.shape == (1500, *runs, k)
    assert trace.decisions.shape == (1500, *runs, 4)
    for said in (metrics(trace), metrics(bare)):
        for run in range(2) if several else [None]:
            pick = (lambda value, run=run: value[run]) if several else (lambda value: value)
            costs, values = (trace.costs[:, run], trace.values[:, run]) if several else (trace.costs, trace.values)
            for metric, expected in brute(costs, values).items():
                np.testing.assert_allclose(pick(said[metric]), expected, rtol=1e-11, atol=1e-11, err_msg=metric)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_curve_is_the_totals_after_fewer_rounds(engine):
    problem = halfspaces(horizon=2500, constraints=2)
    trace = bridle.play(bridle.policy_for("sinha2024", problem, preset="practice"), problem, engine=engine, keep="rounds")
    assert trace.decisions is None
    assert trace.curve.rounds[0] == 1
    assert trace.curve.rounds[-1] == 2500
    assert (np.diff(trace.curve.rounds) > 0).all()
    at = trace.curve.rounds.astype(int) - 1
    hard = np.cumsum(np.maximum(trace.values, 0.0), axis=0)
    np.testing.assert_allclose(trace.curve.cost, np.cumsum(trace.costs)[at], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(trace.curve.hard, hard[at], rtol=1e-12)
    np.testing.assert_allclose(trace.curve.soft, np.cumsum(trace.values, axis=0)[at], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(trace.curve.worst, np.cumsum(np.maximum(trace.values.max(axis=1), 0.0))[at], rtol=1e-12)
    rounds, violation = bridle.ccv_curve(trace)
    np.testing.assert_array_equal(rounds, trace.curve.rounds)
    np.testing.assert_allclose(violation, hard[at].max(axis=1), rtol=1e-12)
    for i in (3, len(at) // 2):
        expected = brute(trace.costs[: at[i] + 1], trace.values[: at[i] + 1])["interval"]
        assert trace.curve.interval[i].max() == pytest.approx(expected, rel=1e-11)
    for name in set(trace.totals._fields) - {"moved"}:  # which is not kept here
        np.testing.assert_array_equal(getattr(trace.curve, name)[-1], getattr(trace.totals, name))


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "horizons"), [("python", (10_000, 40_000)), ("compiled", (60_000, 120_000))])
def test_memory_does_not_grow_with_the_horizon(engine, horizons):
    """Beyond the blocks that an engine is given, some 50,000 rounds of a compiled one."""

    def peak(horizon: int) -> int:
        problem = bridle.problem("halfspaces", horizon=horizon, dim=30)
        made = bridle.policy_for("sinha2024", problem)
        tracemalloc.start()
        bridle.play(made, problem, engine=engine)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(2_000)
    short, long = map(peak, horizons)
    assert long <= 1.02 * short + 20_000, f"{short:,} bytes, {long:,} for as many rounds again"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kept", ["totals", "decisions"])
def test_a_run_is_a_game_of_its_own(engine, kept):
    problem = halfspaces(horizon=200, constraints=2)
    by_seed = bridle.play(bridle.policy_for("anytime", problem), problem, seed=[5, 0, 9], engine=engine, keep=kept)
    swept = bridle.play(bridle.policy("anytime", problem.domain, constraints=2, V=[1.0, 3.0]), problem, engine=engine, keep=kept)
    for several, run, settings, seed in ((by_seed, 0, {}, 5), (by_seed, 2, {}, 9), (swept, 1, {"V": 3.0}, 0)):
        alone = bridle.play(bridle.policy_for("anytime", problem, **settings), problem, seed=seed, engine=engine, keep=kept)
        mine = several.run(run)
        assert (mine.runs, mine.seeds, mine.rounds, mine.warnings) == (None, (seed,), 200, alone.warnings)
        assert bridle.regret(mine) == bridle.regret(several)[run]
        now, then = summary(mine), summary(alone)
        assert set(now) == set(then)
        for name in set(now) - {"us_per_round", "seconds"}:
            exact = not isinstance(then[name], (float, list, dict)) or name in ("parameters", "problem_parameters", "constants")
            assert now[name] == (then[name] if exact else pytest.approx(then[name], rel=1e-9, abs=1e-9)), name
        np.testing.assert_allclose(mine.curve.hard, alone.curve.hard, rtol=1e-9, atol=1e-12)
        if kept == "decisions":
            np.testing.assert_allclose(mine.decisions, alone.decisions, rtol=1e-9, atol=1e-9)
            assert mine.values.shape == alone.values.shape


def test_what_is_no_run_of_its_own_is_refused():
    problem = halfspaces()
    made = bridle.policy_for("anytime", problem)
    with pytest.raises(bridle.InputError, match="run must be one of the 2 runs, counted from 0, not 2"):
        bridle.play(made, problem, seed=[0, 1]).run(2)
    with pytest.raises(bridle.InputError, match="run must be 0 or above, not -1"):
        bridle.play(made, problem, seed=[0, 1]).run(-1)
    with pytest.raises(bridle.InputError, match="run must be one of the 0 runs"):
        bridle.play(made, problem).run(0)
    minimax = bridle.problem("minimax", horizon=20)
    with pytest.raises(bridle.InputError, match="problem minimax has no stream for each run: its adversary adapts to the decisions"):
        bridle.play(bridle.policy_for("anytime", minimax), minimax, seed=[0, 1]).run(0)
    swept = bridle.policy("anytime", problem.domain, V=[1.0, 3.0]).record
    with pytest.raises(bridle.InputError, match="parameters of one run cannot be told from the others'"):
        bridle.play(swept, problem).run(0)


# --- regret ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["halfspaces", "minimax", "fixed", "lower-bound"])
def test_regret_against_a_given_action_is_brute_force(engine, name):
    problem = bridle.problem(name, horizon=120, seed=1)
    made = bridle.policy_for("sinha2024", problem, preset="practice")
    trace = bridle.play(made, problem, engine=engine, keep="decisions")
    rng = np.random.default_rng(0)
    for _ in range(3):
        u = problem.domain.project(problem.domain.center() + problem.domain.diameter() * rng.standard_normal(problem.domain.dim))
        at_u = [float(chosen.cost.value(u)) for chosen in stream(trace)]
        assert bridle.regret(trace, comparator=u) == pytest.approx(float(trace.costs.sum() - sum(at_u)), abs=1e-9)
        rounds, curve = bridle.regret_curve(trace, comparator=u)
        np.testing.assert_allclose(curve, np.cumsum(trace.costs - at_u)[rounds.astype(int) - 1], atol=1e-9)
        assert curve[-1] == pytest.approx(bridle.regret(trace, comparator=u), abs=1e-9)
    rounds, curve = bridle.regret_curve(trace)
    assert curve[-1] == pytest.approx(bridle.regret(trace), abs=1e-5)
    best = bridle.best_action(trace)
    assert bridle.regret(trace, comparator=best.x) == pytest.approx(bridle.regret(trace), abs=1e-5)
    for chosen in stream(trace):
        assert (chosen.reveal(best.x).g <= 1e-7).all()


def test_regret_of_several_runs_is_that_of_each():
    problem = bridle.problem("minimax", horizon=80, dim=3)
    made = bridle.policy_for("sinha2024", problem, V=[0.1, 1.0, 10.0])
    trace = bridle.play(made, problem, keep="decisions")
    u = 0.1 * np.ones(3)
    for run in range(3):
        at_u = sum(float(np.reshape(chosen.cost.value(u), ())) for chosen in stream(trace, run))
        assert bridle.regret(trace, comparator=u)[run] == pytest.approx(float(trace.costs[:, run].sum()) - at_u, abs=1e-9)
    rounds, curve = bridle.regret_curve(trace)
    assert curve.shape == (len(rounds), 3)
    np.testing.assert_allclose(curve[-1], bridle.regret(trace), atol=1e-5)


@pytest.mark.parametrize("comparator", ["abc", [0.0, 0.0], [np.nan, 0.0, 0.0], np.zeros((1, 3)), 5.0])
def test_a_bad_comparator_is_one_clear_error(comparator):
    with pytest.raises(bridle.InputError, match="comparator must"):
        bridle.regret(bridle.play(policy(), halfspaces()), comparator=comparator)


# --- replay ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covering(4)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["halfspaces", "minimax", "fixed", "lower-bound"])
@pytest.mark.parametrize("how", ["one", "sweep", "seeds", "starts"])
def test_a_replay_is_the_stream_that_was_played(engine, name, how):
    """Each round of the replay, at the decision that was made, is worth what was seen: for one run and each of several."""
    T = 60 if name == "lower-bound" else 1100
    problem = bridle.problem(name, horizon=T, seed=4, **({"constraints": 2} if name == "halfspaces" else {}))
    center = problem.domain.center()
    far = problem.domain.project(center + 0.3 * problem.domain.diameter() * np.eye(problem.domain.dim)[0])
    made = bridle.policy_for("sinha2024", problem, preset="practice", **({"V": [0.01, 1.0]} if how == "sweep" else {}))
    more = {"seeds": {"seed": [4, 9]}, "starts": {"x1": np.stack([center, far])}}.get(how, {})
    trace = bridle.play(made, problem, engine=engine, keep="decisions", **more)
    for run in [None] if how == "one" else [0, 1]:
        x, f, g = ((a if run is None else a[:, run]) for a in (trace.decisions, trace.costs, trace.values))
        replayed = stream(trace, run)
        assert len(replayed) == T
        for t, chosen in enumerate(replayed):
            seen = chosen.reveal(x[t])
            assert float(np.reshape(seen.f, ())) == pytest.approx(f[t], abs=1e-12)
            np.testing.assert_allclose(seen.g, g[t], rtol=0, atol=1e-12)


def test_the_stream_of_a_seed_is_the_same_in_every_game():
    problem = halfspaces(horizon=20)
    one = stream(bridle.play(policy(), problem, seed=5))
    two = stream(bridle.play(policy(preset="practice"), problem, seed=[3, 5]), run=1)
    three = stream(bridle.play(policy(), halfspaces(horizon=20, seed=5)))
    for a, b, c in zip(one, two, three, strict=True):
        for p, q, r in zip(records.leaves(a).values(), records.leaves(b).values(), records.leaves(c).values(), strict=True):
            np.testing.assert_array_equal(p, q)
            np.testing.assert_array_equal(p, r)


# --- what users write themselves ------------------------------------------------------------------------------------------------------


class Chase(NamedTuple):
    """A two-argument adversary with a state: the cost pulls along the decision and turns, the constraint is a fixed halfspace."""

    a: Any
    b: Any

    def init(self):
        return 0.0

    def answer(self, state, x):
        turn = 1.0 - 2.0 * (state % 2.0)
        return state + 1.0, bridle.Round(AffineFunction(0.5 * turn * x - 0.3 * self.a, 0.1 * state), (AffineFunction(self.a, -self.b),))


class Drift(NamedTuple):
    """An oblivious one with draws: quadratic costs around random targets, two constraints in one record."""

    A: Any

    oblivious = True

    def init(self):
        return ()

    def deal(self, rng, rounds):
        return 0.3 * rng.standard_normal((rounds, self.A.shape[1]))

    def answer(self, state, x, draw):
        return state, bridle.Round(RoundQuadratic(1.0, draw, 0.0 * draw, 0.0), (AffineRows(self.A, -0.2 * self.A[:, 0] ** 2),))


def own_problem(kind: str):
    if kind == "chase":
        facts = {"lipschitz": 1.0, "diameter": 2.0, "constraints": 1, "feasible": np.zeros(2)}
        return bridle.Problem(bridle.Ball(2), Chase(np.array([0.6, 0.8]), 0.1), facts)
    facts = {"lipschitz": 3.0, "diameter": 2.0, "constraints": 2, "feasible": np.zeros(2), "modulus": 1.0}
    return bridle.Problem(bridle.Ball(2), Drift(np.array([[0.6, 0.8], [1.0, 0.0]])), facts)


@pytest.mark.compiles
@pytest.mark.parametrize("kind", ["chase", "drift"])
def test_a_users_own_problem_plays_on_both_engines(kind):
    problem = own_problem(kind)
    made = bridle.policy_for("sinha2024", problem, horizon=1500, preset="practice")
    one, two = (bridle.play(made, problem, engine=engine, keep="decisions") for engine in ENGINES)
    np.testing.assert_allclose(one.decisions, two.decisions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.costs, two.costs, rtol=1e-12, atol=1e-12)
    for trace in (one, two):
        best = bridle.best_action(trace)
        assert bridle.regret(trace) == pytest.approx(float(trace.totals.cost) - best.cost, abs=1e-6)
        assert bridle.regret(trace) <= made.bound(problem.constants, 1500).regret
        assert bridle.ccv(trace) <= made.bound(problem.constants, 1500).ccv
        for t, chosen in enumerate(stream(trace)):
            np.testing.assert_allclose(chosen.reveal(trace.decisions[t]).g, trace.values[t], atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["chase", "drift"])
def test_a_users_own_problem_plays_several_runs_at_once(kind, engine):
    problem = own_problem(kind)
    made = bridle.policy_for("sinha2024", problem, horizon=300, V=[0.1, 1.0, 10.0])
    together = bridle.play(made, problem, engine=engine, keep="decisions")
    for i, V in enumerate((0.1, 1.0, 10.0)):
        single = bridle.play(bridle.policy_for("sinha2024", problem, horizon=300, V=V), problem, engine=engine, keep="decisions")
        np.testing.assert_allclose(together.decisions[:, i], single.decisions, rtol=0, atol=1e-12)
        np.testing.assert_allclose(together.costs[:, i], single.costs, rtol=1e-11, atol=1e-12)
        u = np.array([0.2, -0.1])
        assert bridle.regret(together, comparator=u)[i] == pytest.approx(bridle.regret(single, comparator=u), abs=1e-9)
        assert bridle.regret(together)[i] == pytest.approx(bridle.regret(single), abs=1e-5)


class PlainAdversary:
    """Not a record at all, made of the public functions: the Python engine takes it."""

    def init(self):
        return 0

    def answer(self, state, x):
        return state + 1, bridle.Round(bridle.Affine([1.0, 0.0], 0.5), (bridle.Callable(lambda y: y[1] - 0.1, lambda y: [0.0, 1.0]),))


def test_an_adversary_of_plain_python_plays_on_the_python_engine():
    problem = bridle.Problem(bridle.Ball(2), PlainAdversary())
    trace = bridle.play(policy(dim=2), problem, keep="decisions")
    assert trace.rounds == 100
    np.testing.assert_allclose(trace.costs, trace.decisions[:, 0] + 0.5)
    np.testing.assert_allclose(trace.values[:, 0], trace.decisions[:, 1] - 0.1)


class Last(NamedTuple):
    x: Any
    rounds: Any


class Subgradient(NamedTuple):
    """A policy of a user's own in one class: a projected step on f + weight * (the worst constraint)^+."""

    domain: Any
    weight: Any

    def init(self, x1):
        return Last(x1, 0.0)

    def decide(self, state):
        return state.x

    def update(self, state, feedback):
        rounds = state.rounds + 1.0
        g, dg = ops.worst(feedback.g, feedback.dg)
        return Last(self.domain.project(state.x - rounds**-0.5 * (feedback.df + self.weight * (g > 0.0) * dg)), rounds)


@pytest.mark.compiles
def test_a_users_own_policy_plays_and_serves():
    problem = halfspaces(horizon=1200, constraints=2)
    own = Subgradient(problem.domain, 2.0)
    one, two = (bridle.play(own, problem, engine=engine, keep="decisions") for engine in ENGINES)
    np.testing.assert_allclose(one.decisions, two.decisions, rtol=0, atol=1e-12)
    assert np.isfinite(bridle.regret(one))
    session = bridle.Session(own)
    for x, chosen in zip(one.decisions, stream(one), strict=True):
        np.testing.assert_array_equal(session.step(chosen.cost, chosen.constraints), x)
    assert session.ccv == pytest.approx(bridle.ccv(one), rel=1e-12)


class Poison(NamedTuple):
    """Costs or constraints that stop being numbers in round `when`."""

    when: Any
    cost: Any
    limit: Any

    def init(self):
        return 1.0

    def answer(self, state, x):
        bad = (state == self.when) * 1.0
        cost, limit = ops.where(bad > 0.0, self.cost, 0.0), ops.where(bad > 0.0, self.limit, 0.0)
        return state + 1.0, bridle.Round(AffineFunction(0.1 + 0.0 * x, cost), (AffineFunction(0.1 + 0.0 * x, limit),))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("when", [1, 7, 1024, 1025])
@pytest.mark.parametrize(("cost", "limit"), [(np.nan, 0.0), (np.inf, 0.0), (-np.inf, 0.0), (0.0, np.nan), (0.0, -np.inf)])
def test_a_round_that_is_not_finite_is_named(engine, when, cost, limit):
    problem = bridle.Problem(bridle.Ball(2), Poison(float(when), cost, limit))
    with pytest.raises(bridle.InputError, match=f"the cost or a constraint is not finite in round {when} of the game"):
        bridle.play(policy(dim=2, horizon=2000), problem, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("when", [1, 1030])
def test_a_violation_that_is_not_finite_is_one_clear_error(engine, when):
    """Where Python's own floats overflow first, the block of rounds is named."""
    problem = bridle.Problem(bridle.Ball(2), Poison(float(when), 0.0, np.inf))
    block = "1 and 1024" if when == 1 else "1025 and 2000"
    with pytest.raises(bridle.InputError, match=f"not finite in round {when} of the game|too large for a float between rounds {block}"):
        bridle.play(policy(dim=2, horizon=2000), problem, engine=engine)


def test_a_potential_that_overflows_is_one_clear_error():
    problem = bridle.Problem(bridle.Ball(2), Poison(5.0, 0.0, 1e60))
    with pytest.raises(bridle.InputError, match="too large for a float between rounds 1 and 100: "):
        bridle.play(policy(dim=2, potential="power", exponent=12.0), problem)


# --- the problems ---------------------------------------------------------------------------------------------------------------------


def samples(domain, rng, n: int = 40) -> np.ndarray:
    """Points of a domain: inside, on its boundary, and its corners in random directions."""
    d = domain.dim
    edge = domain.project(domain.center() + 2.0 * domain.diameter() * rng.standard_normal((n, d)))
    corners = domain.linear_argmin(rng.standard_normal((n, d)))
    return np.vstack([edge, corners, domain.center() + rng.uniform(0.0, 1.0, (n, 1)) * (edge - domain.center()), domain.center()[None]])


CASES = [("lower-bound", "box", 0.0, 1)] + [
    (name, shape, modulus, dim)
    for name in ("minimax", "fixed", "halfspaces") for shape in SHAPES for modulus in (0.0, 0.2, 3.0) for dim in (1, 2, 7)
    if (shape, dim) != ("simplex", 1)  # a point
]  # fmt: skip


@pytest.mark.parametrize(("name", "shape", "modulus", "dim"), CASES)
def test_the_constants_of_a_problem_are_true(name, shape, modulus, dim):
    """On points of the domain: no gradient is longer than lipschitz, no |g| above bound; the feasible action is feasible in every round;
    no distance is above diameter; the costs are as strongly convex as modulus says."""
    rng = np.random.default_rng(0)
    for seed in (0, 5):
        about = {} if name == "lower-bound" else {"dim": dim, "domain": shape, "modulus": modulus}
        about |= {"constraints": 3} if name == "halfspaces" else {}
        problem = bridle.problem(name, horizon=25, seed=seed, **about)
        known = problem.constants
        trace = bridle.play(bridle.policy_for("sinha2024", problem), problem)
        points = samples(problem.domain, rng)
        assert np.linalg.norm(points[:, None] - points[None], axis=-1).max() <= known["diameter"] * (1 + 1e-12)
        assert problem.domain.contains(known["feasible"])
        for chosen in stream(trace):
            at_feasible = chosen.reveal(known["feasible"])
            assert (at_feasible.g <= 1e-12).all()
            assert len(at_feasible.g) == known["constraints"]
            for x in points[rng.permutation(len(points))[:12]]:
                seen = chosen.reveal(x)
                assert np.linalg.norm(seen.df) <= known["lipschitz"] * (1 + 1e-12)
                assert (np.linalg.norm(seen.dg, axis=-1) <= known["lipschitz"] * (1 + 1e-12)).all()
                assert (np.abs(seen.g) <= known["bound"] * (1 + 1e-12)).all()
                y = points[rng.integers(len(points))]
                gap = float(chosen.cost.value(y)) - float(seen.f) - float(seen.df @ (y - x))
                assert gap >= 0.5 * known["modulus"] * float((y - x) @ (y - x)) - 1e-12 * (1.0 + known["lipschitz"] * known["diameter"])
        assert known["modulus"] == (0.0 if name == "lower-bound" else modulus)


@pytest.mark.parametrize("modulus", [0.0, 0.2, 3.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_known_optimum_of_fixed_is_the_best_in_hindsight(shape, modulus):
    for seed in range(3):
        problem = bridle.problem("fixed", horizon=40, dim=5, domain=shape, modulus=modulus, seed=seed)
        trace = bridle.play(bridle.policy_for("sinha2024", problem), problem)
        best = bridle.best_action(trace)
        assert best.cost == pytest.approx(problem.constants["optimal_cost"], abs=1e-6)
        np.testing.assert_allclose(
            40 * problem.adversary.round.cost.value(problem.constants["feasible"]), problem.constants["optimal_cost"]
        )
        assert bridle.regret(trace) == float(trace.totals.cost) - problem.constants["optimal_cost"]
        shorter = bridle.play(bridle.policy_for("sinha2024", problem), problem, horizon=20)
        assert bridle.regret(shorter) == pytest.approx(float(shorter.totals.cost) - 0.5 * problem.constants["optimal_cost"], abs=1e-6)


def test_the_known_optimum_of_the_lower_bound_is_the_best_in_hindsight():
    problem = bridle.problem("lower-bound", horizon=36, seed=2)
    trace = bridle.play(bridle.policy_for("sinha2024", problem), problem)
    best = bridle.best_action(trace)
    assert best.cost == pytest.approx(0.0, abs=1e-6)
    assert sum(float(chosen.cost.value(problem.constants["feasible"])) for chosen in stream(trace)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("T", [16, 100, 900])
def test_the_lower_bound_is_attained_exactly_from_the_centre(T, engine):
    """Algorithm 1 learns nothing about a coordinate before its round: regret and CCV are sqrt(T)/4, whatever the coins."""
    for seed in (0, 1):
        problem = bridle.problem("lower-bound", horizon=T, seed=seed)
        for preset in ("theory", "practice"):
            trace = bridle.play(bridle.policy_for("sinha2024", problem, preset=preset), problem, engine=engine)
            assert bridle.regret(trace) == pytest.approx(sqrt(T) / 4.0, abs=1e-9)
            assert bridle.ccv(trace) == pytest.approx(sqrt(T) / 4.0, abs=1e-9)


@pytest.mark.parametrize("name", SIMULATED)
def test_problems_with_another_seed_are_other_problems(name):
    one, two = bridle.problem(name, horizon=30, seed=0), bridle.problem(name, horizon=30, seed=1)
    again = two.with_seed(0)
    made = bridle.policy_for("sinha2024", one, lipschitz=2.0 * one.constants["lipschitz"])  # that of another seed may be larger
    a, b, c = (bridle.play(made, problem, keep="rounds") for problem in (one, two, again))
    np.testing.assert_array_equal(a.costs, c.costs)
    np.testing.assert_array_equal(a.values, c.values)
    if name not in THE_SEED_DOES_NOT_SHOW:
        assert not np.array_equal(a.values, b.values)


# --- policy_for -----------------------------------------------------------------------------------------------------------------------


def test_policy_for_takes_what_it_needs_from_the_problem():
    problem = bridle.problem("halfspaces", horizon=321, dim=4, modulus=0.25, constraints=3)
    known = {"horizon": 321, "lipschitz": problem.constants["lipschitz"], "constraints": 3}
    assert bridle.policy_for("sinha2024", problem).parameters == known
    assert bridle.policy_for("sinha2024-strong", problem).parameters == {**known, "modulus": 0.25}
    assert bridle.policy_for("sinha2024-ocs", problem).parameters == {"constraints": 3}
    for name in ("sinha2024", "sinha2024-strong", "sinha2024-ocs"):
        made = bridle.policy_for(name, problem)
        assert made.domain is problem.domain
        assert bridle.play(made, problem).warnings == ()


def test_policy_for_prefers_what_it_is_given():
    problem = bridle.problem("halfspaces", horizon=321, dim=4, modulus=0.25)
    made = bridle.policy_for("sinha2024-strong", problem, horizon=1000, lipschitz=9.0, modulus=[0.1, 0.2])
    assert made.parameters["horizon"] == 1000
    assert made.parameters["lipschitz"] == 9.0
    assert made.runs == 2
    swept = bridle.policy_for("sinha2024-strong", problem, modulus=np.array([0.1, 0.2]))
    np.testing.assert_array_equal(swept.parameters["modulus"], [[0.1], [0.2]])


@pytest.mark.parametrize(
    ("name", "problem", "message"),
    [
        ("sinha2025", halfspaces(), r"unknown policy 'sinha2025'; did you mean sinha2024"),
        ("sinha2024", "halfspaces", "problem must be a Problem such as .* not 'halfspaces'"),
        ("sinha2024-strong", halfspaces(), r"sinha2024-strong does not apply: the costs of problem halfspaces are not strongly convex"),
        ("sinha2024-strong", bridle.problem("lower-bound", horizon=9), "does not apply: the costs of problem lower-bound"),
        ("sinha2024", own_problem("chase"), "policy sinha2024 needs horizon"),
        ("sinha2024", bridle.Problem(bridle.Ball(2), Chase(np.ones(2), 0.0), {}, "", {"horizon": 9}), "policy sinha2024 needs lipschitz"),
    ],
)
def test_policy_for_says_what_is_missing(name, problem, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.policy_for(name, problem)


def test_a_game_whose_assumptions_are_broken_says_so():
    wrong = bridle.policy("sinha2024", bridle.Ball(3), horizon=1000, lipschitz=1e-3, V=1e3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = bridle.play(wrong, halfspaces(horizon=1000))
    assert [str(w.message) for w in caught] == list(trace.warnings)
    assert len(caught) == 2
    assert "which the theorem rules out" in trace.warnings[0]
    assert trace.warnings[1] == "the policy was told a Lipschitz constant of 0.001; the problem's is 1"


def test_a_policy_that_was_misled_says_so():
    problem = halfspaces(horizon=30)
    with pytest.warns(bridle.BridleWarning, match="told that costs have modulus 5; the problem's have 0"):
        bridle.play(bridle.policy("yuan2018-strong", problem.domain, lipschitz=1.0, modulus=5.0), problem)
    with pytest.warns(bridle.BridleWarning, match="this form of policy mahdavi2012 is for constraints that stay the same"):
        bridle.play(bridle.policy_for("mahdavi2012", problem, form="mirror-prox"), problem)


def test_a_bound_is_for_the_policys_own_domain_and_constraints():
    problem = bridle.problem("fixed", horizon=200, dim=2)
    away = bridle.Ball(radius=0.02, center=-0.9 * problem.constants["optimum"])
    for name in ("yuan2018", "ogd", "guo2022", "sinha2024"):
        made = bridle.policy_for(name, problem)
        for domain in (away, bridle.Ball(2, radius=3.0)):
            other = bridle.policy(name, domain, **made.parameters)
            assert other.bound(problem.constants, 200).why == "the policy's domain is not the problem's"
        assert not made.bound(problem.constants, 200).why
    two = bridle.policy("mahdavi2012", problem.domain, horizon=200, lipschitz=1.0, bound=2.0, constraints=2)
    assert two.bound(problem.constants, 200).why == "the policy was made for 2 constraints, the problem reveals 1"


def test_no_bound_is_claimed_for_a_policy_on_another_domain():
    problem = bridle.problem("fixed", horizon=200, dim=3)
    for radius in (0.01, 50.0):
        with pytest.warns(bridle.BridleWarning, match="the policy's domain is not the problem's"):
            trace = bridle.play(bridle.policy("sinha2024", bridle.Ball(3, radius=radius), horizon=200, lipschitz=1.0), problem)
        facts = summary(trace)
        assert facts["bound_why"] == facts["paper_why"] == "the policy's domain is not the problem's"
        assert facts["regret_bound"] is facts["ccv_bound"] is facts["regret_bound_paper"] is facts["ccv_bound_paper"] is None


class Wavy(NamedTuple):
    """A cost that is not convex, and says so."""

    cost: Any

    def init(self):
        return ()

    def answer(self, state, x):
        return state, bridle.Round(self.cost, (bridle.Affine([1.0, 0.0], -5.0),))


def test_no_bound_is_claimed_for_functions_that_are_not_convex():
    constants = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2), "constraints": 1}
    wavy = bridle.Callable(lambda x: float(np.sin(3 * x[0]) / 3), lambda x: np.array([np.cos(3 * x[0]), 0.0]), convex=False)
    problem = bridle.Problem(bridle.Ball(2), Wavy(wavy), constants)
    facts = summary(bridle.play(bridle.policy_for("sinha2024", problem, horizon=50), problem, horizon=50))
    assert facts["regret"] is facts["regret_bound"] is facts["regret_bound_paper"] is None
    assert "not convex" in facts["bound_why"]


class Contrary(NamedTuple):
    """As many fixed rows as there may be runs, and a cost that pushes away from the decision."""

    A: Any

    def init(self):
        return ()

    def answer(self, state, x):
        cost = AffineFunction(-x, ops.scalar(x))
        return state, bridle.Round(cost, (AffineRows(self.A, -0.5 * np.ones(3)),))


@pytest.mark.parametrize("engine", ["python", "jax"])
def test_what_runs_share_is_told_from_what_they_do_not_by_the_adversary_itself(engine):
    """Three runs and three constraints: the shapes alone could not tell."""
    problem = bridle.Problem(bridle.Ball(2), Contrary(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])), {"constraints": 3})
    values = [0.01, 0.1, 0.3]
    together = bridle.play(bridle.policy("sinha2024", problem.domain, horizon=60, lipschitz=2.0, lam=values), problem, engine=engine)
    for i, lam in enumerate(values):
        alone = bridle.play(bridle.policy("sinha2024", problem.domain, horizon=60, lipschitz=2.0, lam=lam), problem, engine=engine)
        assert bridle.regret(together)[i] == pytest.approx(bridle.regret(alone), abs=1e-6)


def test_a_record_that_stands_for_several_runs_is_played_as_such():
    domain = bridle.Ball(3)
    record = bridle.Lyapunov(bridle.OGD(domain, step=[0.1, 0.2, 0.4]), bridle.potentials.Exponential(0.1), 1.0, 1.0)
    together = bridle.play(record, "halfspaces", horizon=40)
    assert together.runs == 3
    for i, step in enumerate((0.1, 0.2, 0.4)):
        alone = bridle.play(record._replace(learner=bridle.OGD(domain, step=step)), "halfspaces", horizon=40)
        assert bridle.ccv(together)[i] == pytest.approx(bridle.ccv(alone), abs=1e-12)

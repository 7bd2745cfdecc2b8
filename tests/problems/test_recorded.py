"""A recorded stream is played as it stands: the same rounds on every engine, in any horizon, in replays, and never handed over whole."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bridle
from bridle import records
from bridle.adversaries import Recorded
from bridle.core import Round
from bridle.engines import load
from bridle.engines.round import Collect, block_length
from bridle.functions import AffineFunction, AffineRows, LogisticLoss, QuadraticForm, RoundQuadratic
from bridle.problems.dealing import deal_blocks, player
from bridle.problems.recorded import Dealt

D = 3
BLOCK = block_length(D)


def table(n: int, kind: str = "affine", seed: int = 0) -> Round:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((n, D)), rng.standard_normal(n)
    costs = {
        "affine": AffineFunction(a, b),
        "round": RoundQuadratic(np.abs(b), a, 0.5 * a, b),
        "form": QuadraticForm(np.einsum("ti,tj->tij", a, a), a, b),
        "logistic": LogisticLoss(a, np.sign(b), np.ones(n)),
    }
    rows = AffineRows(rng.standard_normal((n, 2, D)), rng.standard_normal((n, 2)))
    return Round(costs[kind], (rows, AffineFunction(rng.standard_normal((n, D)), rng.standard_normal(n))))


def problem(n: int, kind: str = "affine", first: int = 0):
    return bridle.Problem(bridle.Ball(D), Recorded(table(n, kind), first), {"constraints": 3, "time_varying": True}, "table")


def policy(T: int = 100):
    return bridle.policy("sinha2024", bridle.Ball(D), horizon=T, lipschitz=8.0, constraints=3)


def same(a, b) -> None:
    for name, leaf in records.leaves(a).items():
        np.testing.assert_array_equal(leaf, records.leaves(b)[name], err_msg=name)


@given(n=st.integers(1, 9), first=st.integers(0, 8), cuts=st.lists(st.integers(0, 9), max_size=3))
def test_a_replay_goes_round_the_table_once(n, first, cuts):
    first, whole = first % n, table(n)
    adversary = Recorded(whole, first)
    order = [(first + t) % n for t in range(n)]
    edges = sorted({0, n, *(c for c in cuts if c < n)})
    parts = [adversary.replay(start, stop) for start, stop in pairwise(edges)]
    same(records.join(parts), records.transform(lambda leaf: leaf[order], whole))


@pytest.mark.compiles
@pytest.mark.parametrize("kind", ["affine", "round", "form", "logistic"])
def test_engines_agree_on_recorded_rounds(kind):
    n = BLOCK + 300
    made = problem(n, kind, first=700)
    traces = [bridle.play(policy(n), made, horizon=n, engine=engine, keep="decisions") for engine in ("python", "jax")]
    for field in ("costs", "values", "decisions"):
        a, b = (getattr(trace, field) for trace in traces)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("engine", ["python", "jax"])
def test_what_is_played_is_the_table(engine):
    n, first = BLOCK + 300, 1200
    trace = bridle.play(policy(n), problem(n, "round", first), horizon=n, engine=engine, keep="decisions")
    turned = records.transform(lambda leaf: np.roll(leaf, -first, axis=0), table(n, "round"))
    for t, one in enumerate(records.unstack(turned, n)):
        seen = one.reveal(trace.decisions[t])
        assert trace.costs[t] == pytest.approx(seen.f, rel=1e-12)
        np.testing.assert_allclose(trace.values[t], seen.g, rtol=1e-12, atol=1e-12)
    same(records.join(list(trace.blocks())), turned)
    assert trace.shared_stream


def test_a_longer_game_begins_with_the_same_rounds():
    made, n = problem(BLOCK + 50, first=40), BLOCK + 50
    long, short = (bridle.play(policy(n), made, horizon=h, keep="rounds") for h in (n, 90))
    assert long.costs[:90].tolist() == short.costs.tolist()
    same(next(iter(short.blocks())), records.cut(next(iter(long.blocks())), 0, 90))


@pytest.mark.parametrize("engine", ["python", "jax"])
def test_runs_from_several_rows_are_those_of_each(engine):
    n = 150

    def made(horizon, seed=0):
        return bridle.Problem(
            bridle.Ball(D), Recorded(table(n), 7 * seed), {"constraints": 3}, "", {"horizon": horizon, "seed": seed}, made
        )

    several = bridle.play(policy(120), made(120), seed=[0, 3, 11], engine=engine)
    for i, seed in enumerate((0, 3, 11)):
        alone = bridle.play(policy(120), made(120, seed), engine=engine)
        assert several.totals.cost[i] == pytest.approx(alone.totals.cost, rel=1e-12)
        np.testing.assert_allclose(several.totals.hard[i], alone.totals.hard, rtol=1e-12)
        same(records.join(list(several.blocks(i))), Recorded(table(n), 7 * seed).replay(0, 120))


def test_an_engine_is_handed_one_block_at_a_time(monkeypatch):
    n, seen = 3 * BLOCK, []
    advance = load("python").advance

    def spy(run, rounds, collect, marks):
        seen.append((sum(np.size(leaf) for leaf in records.leaves(run.adversary).values()), len(run.draws.cost.b)))
        return advance(run, rounds, collect)

    monkeypatch.setattr("bridle.engines.python.advance", spy)
    bridle.play(policy(n), problem(n), horizon=n, engine="python")
    assert seen == [(0, BLOCK)] * 3


def test_regret_of_a_recorded_stream_is_brute_force():
    made, n = problem(400, "round"), 400
    made = bridle.Problem(made.domain, Recorded(table(n, "round")._replace(constraints=(AffineFunction(np.ones((n, D)), -np.ones(n)),))))
    trace = bridle.play(bridle.policy("sinha2024", bridle.Ball(D), horizon=n, lipschitz=8.0), made)
    best = bridle.best_action(trace)
    costs = table(n, "round").cost
    total = sum(float(one.value(best.x)) for one in records.unstack(costs, n))
    assert best.cost == pytest.approx(total, rel=1e-12)
    assert bridle.regret(trace) == pytest.approx(trace.totals.cost - total, rel=1e-9)
    rng = np.random.default_rng(1)
    for x in bridle.Ball(D).project(rng.standard_normal((200, D))):
        if x.sum() <= 1.0:
            assert sum(float(one.value(x)) for one in records.unstack(costs, n)) >= total - 1e-6


def test_no_more_rounds_than_were_recorded():
    with pytest.raises(bridle.InputError, match="horizon must be at most 50, the rounds that problem table has, not 51"):
        bridle.play(policy(), problem(50), horizon=51)
    with pytest.raises(bridle.InputError, match="horizon must be at most 50, the rounds that were recorded, not 51"):
        list(deal_blocks(Recorded(table(50)), 0, 51, D))


def test_single_rounds_make_a_table():
    whole = table(5, "form")
    same(Recorded(records.unstack(whole, 5)).table, whole)
    assert player(Recorded(whole)).init() == ()
    mine = whole.cost.a.copy()
    made = Recorded(whole)
    whole.cost.a[:] = 0.0
    np.testing.assert_array_equal(made.table.cost.a, mine)  # what a caller does to their arrays later changes nothing


def bad(**change):
    return table(4)._replace(**change)


@pytest.mark.parametrize(
    ("rounds", "first", "message"),
    [
        ([], 0, "rounds must hold at least one round, not none"),
        ([3], 0, "rounds must be a Round or a sequence of them, not 3"),
        (Round(AffineFunction(np.zeros((4, D)), np.zeros(3)), ()), 0, "one leading time axis on every array"),
        (Round(AffineFunction(np.zeros(D), 0.0), ()), 0, "one leading time axis on every array"),
        (Round(AffineFunction(np.zeros((0, D)), np.zeros(0)), ()), 0, "one leading time axis on every array"),
        (Round(AffineFunction(np.full((4, D), np.nan), np.zeros(4)), ()), 0, "rounds: cost.a must be finite, not nan at index 0, 0"),
        (Round(bridle.Callable(sum, sum), ()), 0, "rounds must hold numbers alone: cost.of is a builtin_function_or_method"),
        (Round((), ()), 0, "rounds must hold numbers, not"),
        ([Round(bridle.Affine([1.0]), ()), Round(bridle.Affine([1.0, 2.0]), ())], 0, "rounds must all be of one kind"),
        ([Round(bridle.Affine([1.0]), ()), Round(bridle.AbsoluteDeviation([1.0]), ())], 0, "rounds must all be of one kind"),
        (table(4), 4, "first must be below 4, the rounds there are, not 4"),
        (table(4), -1, "first must be 0 or above, not -1"),
    ],
)
def test_what_is_no_table_is_one_clear_error(rounds, first, message):
    with pytest.raises(bridle.InputError, match=message):
        Recorded(rounds, first)


def test_a_game_can_be_advanced_again_from_its_start():
    trace = bridle.play(policy(), problem(60), horizon=60)
    ((_, _, block),) = trace.schedule().advance(Collect.ROUNDS, trace.memory)
    same(block.rounds[0], table(60))


@pytest.mark.compiles
def test_a_replay_of_too_few_rounds_is_refused_and_not_read_past_its_end():
    class Short(NamedTuple):
        table: Any

        @property
        def oblivious(self):
            return True

        @property
        def rounds(self):
            return 3000

        @property
        def player(self):
            return Dealt()

        def replay(self, start, stop):
            return records.cut(self.table, 0, 10)

        def init(self):
            return ()

        def answer(self, state, x, draw):
            return state, draw

    rng = np.random.default_rng(0)
    table = Round(AffineFunction(rng.standard_normal((10, 2)), np.zeros(10)), (AffineFunction(rng.standard_normal((10, 2)), np.zeros(10)),))
    problem = bridle.Problem(bridle.Ball(2), Short(table), {"constraints": 1})
    for engine in ("python", "jax", "compiled"):
        with pytest.raises(bridle.InputError, match=r"replay\(0, \d+\) must give \d+ rounds; cost\.a has 10"):
            bridle.play(bridle.policy("anytime", problem.domain), problem, horizon=3000, engine=engine)

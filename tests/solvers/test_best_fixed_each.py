"""The best actions of many streams, solved side by side, against each stream solved alone."""

from __future__ import annotations

import numpy as np
import pytest

from bridle import Ball, Box, Halfspace, L1Ball, NoComparator, Polyhedron, Product, Round, Simplex, functions
from bridle.solvers import hindsight, program_batch
from bridle.solvers.block_stream import BlockStream
from bridle.solvers.hindsight import Hindsight, best_fixed, best_fixed_each
from bridle.solvers.program import region

RNG = np.random.default_rng(5)
DOMAINS = {
    "ball": Ball(radius=2.0, center=[3.0, -1.0, 0.0, 1.0, 2.0]),
    "box": Box(-1.0, 2.0, dim=5),
    "flat-box": Box([0.0, 1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 2.0, 3.0]),
    "simplex": Simplex(5, mass=2.0),
    "l1": L1Ball(radius=1.5, center=np.ones(5)),
    "ball-cut": Halfspace(np.ones(5), 0.3, within=Ball(5)),
    "polyhedron": Polyhedron(np.vstack([RNG.standard_normal((15, 5)), np.eye(5), -np.eye(5)]), np.concatenate([np.ones(15), np.ones(10)])),
    "product": Product(Ball(2), Simplex(2), Box(0.0, 1.0, dim=1)),
}
COSTS = ["linear", "round-quadratic", "quadratic-form", "none"]
T, D = 60, 5


def stream(domain, cost, seed, k=2, slack=0.05, rounds=T):
    """A block of random rounds whose constraints leave one action of the domain."""
    rng = np.random.default_rng([seed, COSTS.index(cost)])
    a, b = rng.standard_normal((rounds, D)), rng.standard_normal(rounds)
    weight, L = rng.uniform(0.5, 2.0, rounds), rng.standard_normal((rounds, D, 2))
    f = {
        "linear": functions.AffineFunction(a, b),
        "round-quadratic": functions.RoundQuadratic(weight, domain.center() + a, a, b),
        "quadratic-form": functions.QuadraticForm(L @ L.transpose(0, 2, 1), a, b),
        "none": functions.AffineFunction(0.0 * a, 0.0 * b),
    }[cost]
    point = 0.6 * domain.center() + 0.4 * domain.project(domain.center() + domain.diameter() * rng.standard_normal(D))
    A = rng.standard_normal((rounds, k, D))
    room = slack * domain.diameter() * rng.uniform(0.0, 1.0, (rounds, k))
    limits = functions.AffineRows(A, -A @ point - room)
    return lambda: [Round(f, (limits,) if k else ())]


def each(streams, domain):
    return [found for _, found in best_fixed_each(streams, domain)]


def alone(blocks, domain):
    """By the solvers for a single stream."""
    kept = BlockStream(blocks)
    return hindsight._alone(kept, hindsight._TotalCost(kept, domain), domain, 1e-9)


def same(a, b):
    return (a.x == b.x).all() and a[1:] == b[1:]


@pytest.fixture
def left_over(monkeypatch):
    """The streams that were solved alone."""
    left = []
    by_itself = hindsight._alone
    monkeypatch.setattr(hindsight, "_alone", lambda *task: left.append(task[0]) or by_itself(*task))
    return left


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", DOMAINS)
def test_side_by_side_is_what_each_is_alone(name, cost, left_over):
    domain = DOMAINS[name]
    streams = [stream(domain, cost, seed) for seed in range(8)]
    together = each(streams, domain)
    assert len(left_over) <= 1, "the batch solves them"
    for blocks, found in zip(streams, together, strict=True):
        single, unit = alone(blocks, domain), T * domain.diameter()
        assert isinstance(found, Hindsight)
        assert isinstance(single, Hindsight)
        assert found.cost == pytest.approx(single.cost, rel=1e-9, abs=1e-8 * unit)
        assert found.lower <= min(found.cost, single.cost + 1e-9 * unit)
        assert found.cost - found.lower <= 1e-8 * unit
        assert domain.contains(found.x)
        assert found.violation <= 1e-8 * unit


@pytest.mark.parametrize("name", DOMAINS)
def test_the_company_changes_no_bit(name):
    domain = DOMAINS[name]
    streams = [stream(domain, "linear", seed) for seed in range(7)]
    together = dict(zip(streams, each(streams, domain), strict=True))
    for group in (streams[2:3], streams[1:4], streams[::-1]):
        assert all(same(found, together[blocks]) for blocks, found in zip(group, each(group, domain), strict=True))
    assert same(best_fixed(streams[0], domain), together[streams[0]])


@pytest.mark.parametrize("name", ["ball", "box", "simplex", "polyhedron"])
def test_an_infeasible_stream_is_recognised_and_the_others_are_solved(name, left_over):
    domain = DOMAINS[name]
    f = functions.AffineFunction(np.ones((T, D)), np.zeros(T))
    a = np.zeros((T, 2, D))
    a[:, 0, 0], a[:, 1, 0] = 1.0, -1.0
    apart = functions.AffineRows(a, np.full((T, 2), 0.25) + np.array([-1.0, 1.0]) * domain.center()[0])
    streams = [stream(domain, "linear", 0), lambda: [Round(f, (apart,))], stream(domain, "linear", 1)]
    first, second, third = each(streams, domain)
    assert isinstance(first, Hindsight)
    assert isinstance(third, Hindsight)
    assert isinstance(second, NoComparator)
    assert str(second) == str(alone(streams[1], domain))
    assert "no action of the domain satisfies every constraint of the stream: each exceeds one by at least 0.2" in str(second)
    assert len(left_over) == 2, "once in the batch, and once here"
    with pytest.raises(NoComparator, match=r"at least 0\.2"):
        best_fixed(streams[1], domain)


@pytest.mark.parametrize("cost", ["linear", "round-quadratic", "none"])
@pytest.mark.parametrize("name", DOMAINS)
def test_degenerate_streams(name, cost):
    """Zero rows, equal rows, rows without room, no rows."""
    domain = DOMAINS[name]
    (block,) = stream(domain, cost, 3)()
    (limits,) = block.constraints
    zero, equal = limits.A.copy(), limits.A.copy()
    zero[::2] = 0.0
    equal[:] = limits.A[:1]
    tight = stream(domain, cost, 4, slack=0.0)
    for blocks in (
        lambda: [block._replace(constraints=(functions.AffineRows(zero, np.where(zero.any(axis=-1), limits.b, -1.0)),))],
        lambda: [block._replace(constraints=(functions.AffineRows(zero, np.where(zero.any(axis=-1), limits.b, 0.0)),))],
        lambda: [block._replace(constraints=(functions.AffineRows(equal, np.broadcast_to(limits.b[:1], limits.b.shape)),))],
        tight,
        stream(domain, cost, 5, k=0),
    ):
        (found,), single, unit = each([blocks], domain), alone(blocks, domain), T * domain.diameter()
        assert isinstance(found, Hindsight)
        assert isinstance(single, Hindsight)
        assert found.cost == pytest.approx(single.cost, rel=1e-8, abs=1e-7 * unit)
    positive = functions.AffineRows(0.0 * zero, np.full(limits.b.shape, 0.5))
    (found,) = each([lambda: [block._replace(constraints=(positive,))]], domain)
    assert isinstance(found, NoComparator)


def test_streams_of_several_lengths_and_kinds_keep_their_order():
    domain = DOMAINS["ball"]
    hinge = functions.HingeLoss(RNG.standard_normal((9, D)), np.ones(9), np.ones(9), np.ones(9))
    streams = [
        stream(domain, "linear", 0), stream(domain, "linear", 1, rounds=20), lambda: [Round(hinge, ())],
        stream(domain, "linear", 2, rounds=20), stream(domain, "round-quadratic", 3),
    ]  # fmt: skip
    for blocks, found in zip(streams, each(streams, domain), strict=True):
        assert found.cost == pytest.approx(alone(blocks, domain).cost, rel=1e-9)


@pytest.mark.parametrize(
    "lie",
    [
        lambda y, weights: (0.0 * y, weights),
        lambda y, weights: (y, 0.0 * weights),
        lambda y, weights: (y, 0.9 * weights),
        lambda y, weights: (y + 1e-6, weights),
        lambda y, weights: (np.nan * y, weights),
    ],
)
@pytest.mark.parametrize("name", ["ball", "box", "simplex"])
def test_what_is_not_proved_is_solved_again(name, lie, left_over, monkeypatch):
    """A wrong point or a wrong multiplier shows in the gap, and never in the answer."""
    domain = DOMAINS[name]
    honest = program_batch.interior_batch
    streams = [stream(domain, "linear", seed) for seed in range(4)]
    right = [alone(blocks, domain) for blocks in streams]
    left_over.clear()
    monkeypatch.setattr(program_batch, "interior_batch", lambda *asked: lie(*honest(*asked)))
    found = each(streams, domain)
    assert len(left_over) == 4
    assert all(same(one, two) for one, two in zip(found, right, strict=True))


def test_no_more_streams_wait_than_fit_into_memory(monkeypatch):
    domain = DOMAINS["ball"]
    streams = [stream(domain, "linear", seed) for seed in range(5)]
    sizes = []
    solve = program_batch.solve_batch
    monkeypatch.setattr(program_batch, "solve_batch", lambda programs, *rest: sizes.append(len(programs.slope)) or solve(programs, *rest))
    whole = each(streams, domain)
    kept = hindsight._quadratic_task(BlockStream(streams[0]), hindsight._TotalCost(BlockStream(streams[0]), domain), region(domain))
    monkeypatch.setattr(hindsight, "KEPT_BYTES", 2 * kept.nbytes)
    assert all(same(one, two) for one, two in zip(each(streams, domain), whole, strict=True))
    monkeypatch.setattr(hindsight, "KEPT_BYTES", kept.nbytes - 1)
    each(streams[:1], domain)
    assert sizes == [5, 2, 2, 1]

"""`anytime-entropy`: the proof's own line in every round, with and without halfspaces, on one simplex and on several side by side."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle.checks import check_policy
from bridle.core import Feedback
from bridle.policies._anytime_entropy import CLOSE, squared_distances
from bridle.policies.anytime_forms import TOUCH
from helpers.limited_mixtures import KINDS, LimitedStream, limited_rounds

T = 60


def place(K: int, groups: int, mass: float = 1.0):
    simplex = bridle.Simplex(K, mass=mass)
    return simplex if groups == 1 else bridle.Product(*[simplex] * groups)


def length(p: np.ndarray, groups: int, mass: float) -> float:
    return mass * float(np.linalg.norm(np.ptp(p.reshape(groups, -1), axis=1)))


SETTINGS = [
    (2, 1, 1.0, None, {}), (7, 1, 1e-3, 1e-3, {"halfspace": False}), (60, 1, 1.0, 1.0, {"cuts": 0}), (30, 1, 1e6, 1e-6, {"cuts": 3}),
    (3, 4, 1.0, 1e3, {}), (5, 2, 2.5, None, {"cuts": 0}), (8, 3, 1.0, 1.0, {"halfspace": False}),
]  # fmt: skip
"""Corners, simplices, mass, V (times the mass), and what is told."""


@pytest.mark.parametrize("kind", KINDS)
def test_the_line_of_the_proof_in_every_round(kind, record_property):
    share = dict.fromkeys(("line", "regret", "squares", "ccv", "certificate"), 0.0)
    for K, groups, mass, V, told in SETTINGS:
        policy = bridle.policy("anytime-entropy", place(K, groups, mass), **({} if V is None else {"V": V / mass}), **told)
        record, stream = policy.record, LimitedStream(kind, K, groups, K)
        c2 = groups * (4.0 + log(K))
        assert record.spread == pytest.approx(c2, rel=1e-14)
        assert record.potential.lam == pytest.approx(0.5 / c2, rel=1e-14)
        state = record.init(policy.domain.center())
        behind, costs, ccv, squares, steepest, gained = np.zeros(3), 0.0, 0.0, 0.0, 0.0, 0.0
        for t, x, (cost, limit, level) in limited_rounds(stream, lambda: record.decide(state) / mass, T):  # noqa: B023
            x, g = mass * x, mass * (float(limit @ x) - level)
            gained += mass * float(np.ptp(cost.reshape(groups, -1), axis=1).sum())
            behind += float(cost @ x) - mass * stream.kept @ cost
            steepest, costs = max(steepest, length(limit, groups, mass)), costs + length(cost, groups, mass) ** 2
            far = max(g, 0.0) / length(limit, groups, mass)
            ccv, squares = ccv + max(g, 0.0), squares + far * far
            state = record.update(state, Feedback(x, float(cost @ x), cost, np.array([g]), limit[None]))
            if V is None and costs == length(cost, groups, mass) ** 2 > 0.0:  # the first that has a slope
                assert float(state.V) == pytest.approx(10.0 / length(cost, groups, mass))
            weight, R = float(state.V), sqrt(c2 * costs)
            if weight == 0.0:
                continue
            assert float(state.Q) == pytest.approx(squares, rel=1e-9, abs=1e-12)
            regret = float(behind.max())
            line = weight * regret + 0.5 * np.exp(0.5 / c2 * squares) - 1.0
            assert line <= weight * R * (1.0 + 1e-9)
            assert regret <= R + 0.5 / weight + 1e-12 * gained
            proved = 2.0 * c2 * log(2.0 + 2.0 * weight * (R + max(0.0, float((-behind).min()))))
            assert squares <= proved
            assert ccv <= steepest * sqrt(t * squares) * (1.0 + 1e-9)
            certified = record.certified_regret(state)
            assert regret <= certified + 1e-9 * (abs(certified) + gained)
            share["line"] = max(share["line"], line / (weight * R + 1e-300))
            share["regret"] = max(share["regret"], regret / (R + 0.5 / weight))
            share["squares"], share["ccv"] = max(share["squares"], squares / proved), max(share["ccv"], ccv / (steepest * sqrt(t * proved)))
            share["certificate"] = max(share["certificate"], regret / (abs(certified) + 1e-300))
    for name, value in share.items():
        record_property(name, float(value))


@pytest.mark.parametrize("groups", [1, 3])
def test_after_a_halfspace_step_it_stands_on_the_halfspace(groups):
    K, rng = 6, np.random.default_rng(1)
    record = bridle.policy("anytime-entropy", place(K, groups), cuts=0).record
    stream = LimitedStream("walls", K, groups, 2)
    state, reached = record.init(record.domain.center()), 0
    for t in range(1, 80):
        x = record.decide(state)
        round_ = stream.answer(x, t)
        g = float(round_.limit @ x) - round_.level
        feedback = Feedback(x, 0.0, rng.standard_normal(x.size), np.array([g]), round_.limit[None])
        plain = record._replace(slots=None).update(state._replace(A=None, b=None, slot=None), feedback)
        state = record.update(state, feedback)
        n = round_.limit / length(round_.limit, groups, 1.0)
        level = float(n @ x) - g / length(round_.limit, groups, 1.0)
        before, after = float(n @ record.decide(plain)), float(n @ record.decide(state))
        if before > level + TOUCH:
            reached += 1
            assert -1e-13 <= after - level <= CLOSE
            np.testing.assert_array_equal(state.learner.Delta, plain.learner.Delta)
            np.testing.assert_array_equal(state.learner.before, plain.learner.Delta)
            moved = np.asarray(state.learner.L - plain.learner.L).reshape(groups, K)
            tilt = np.asarray(n).reshape(groups, K)
            for row, along in zip(moved, tilt, strict=True):  # all losses grow by one multiple of the normal, up to a constant
                grown = row - row.mean()
                np.testing.assert_allclose(
                    grown, (grown @ (along - along.mean())) / np.sum((along - along.mean()) ** 2) * (along - along.mean()), atol=1e-9
                )
        else:
            assert after == pytest.approx(before, abs=1e-15)
    assert reached > 10


def test_the_step_is_cut_off_where_the_halfspace_is_only_touched():
    """A limit that only a corner keeps, which has no weight to speak of: as far as may be, and never beyond."""
    record = bridle.policy("anytime-entropy", bridle.Simplex(3), cuts=0).record
    state = record.init(record.domain.center())
    state = record.update(state, Feedback(record.decide(state), 0.0, np.array([0.0, 1.0, 2.0]), np.array([-1.0]), np.zeros((1, 3))))
    x = record.decide(state)
    state = record.update(state, Feedback(x, 0.0, np.zeros(3), np.array([1.0 - x[2]]), np.array([[0.0, 0.0, -1.0]])))
    after = record.decide(state)
    assert np.isfinite(after).all()
    assert after[2] > 0.999
    assert record.alarm(state) is None


@pytest.mark.parametrize("groups", [1, 2])
def test_a_limit_that_no_mixture_keeps_is_told(groups):
    """The most that a limit can fall by is the sum of its ranges."""
    record = bridle.policy("anytime-entropy", place(3, groups, 2.0)).record
    dg = np.tile([0.0, 0.5, 1.0], groups)[None]
    x = record.domain.center()
    for g, told in ((2.0 * groups, False), (2.0 * groups * (1.0 + 1e-6), True)):
        state = record.update(record.init(x), Feedback(x, 0.0, np.zeros(3 * groups), np.array([g]), dg))
        assert (record.alarm(state) is not None) == told
        if told:
            assert "no action of the domain satisfies the constraint of round 1" in record.alarm(state).text


def test_several_constraints_and_kept_halfspaces_are_met():
    """Three limits a round, one mixture keeps all: after a while every one of the last rounds is kept, nearly."""
    rng, u = np.random.default_rng(3), np.array([0.1, 0.2, 0.3, 0.4])
    policy = bridle.policy("anytime-entropy", bridle.Simplex(4))
    session = bridle.Session(policy)
    rows = rng.standard_normal((5, 3, 4))
    late = 0.0
    for t in range(200):
        x, dg = session.decide(), rows[t % 5]
        g = dg @ (x - u)
        late += max(float(g.max()), 0.0) if t >= 150 else 0.0
        session.observe(f=float(x[3]), df=np.eye(4)[3], g=g, dg=dg)
    assert late < 0.05
    certificate = session.certificate()
    assert certificate.regret <= certificate.regret_algorithm
    assert certificate.squared <= certificate.squared_bound
    assert certificate.ccv <= certificate.bound.ccv


def test_certified_squares_are_in_euclids_distances():
    mass, K = 2.0, 5
    record = bridle.policy("anytime-entropy", bridle.Simplex(K, mass=mass), V=3.0).record
    state, c2 = record.init(record.domain.center()), 4.0 + log(K)
    expected = 2.0 * mass**2 * 2.0 * c2 * log(2.0 + 6.0 * (sqrt(c2 * 2.0 * mass**2 * 7.0) + 11.0))
    assert record.certified_squares(state, 7.0, 11.0) == pytest.approx(expected, rel=1e-12)
    assert record._replace(potential=bridle.potentials.Exponential(1.0)).certified_squares(state, 7.0, 11.0) is None
    assert squared_distances(2.0, 5.0, 0.1, 0.2) == pytest.approx(10.0 * log(11.0 / 0.8))


@pytest.mark.parametrize(("groups", "told"), [(1, {}), (3, {}), (1, {"lam": 0.07})])
def test_the_bound_at_fixed_numbers(groups, told):
    K, mass, G, t, V = 6, 1.5, 0.4, 50_000, 0.3
    policy = bridle.policy("anytime-entropy", place(K, groups, mass), V=V, **told)
    D, c2 = mass * sqrt(2.0 * groups), groups * (4.0 + log(K))
    facts = {"lipschitz": G, "diameter": D, "feasible": policy.domain.center()}
    longest, lam = sqrt(2.0) * mass * G, told.get("lam", 0.5 / c2)
    R, theta = sqrt(c2 * t) * longest, c2 * lam
    Q = log((1.0 + V * (R + G * D * t)) / (1.0 - theta)) / lam
    bound = policy.bound(facts, t)
    assert bound.regret == pytest.approx(R + theta / V, rel=1e-12)
    assert bound.ccv == pytest.approx(longest * sqrt(t * Q), rel=1e-12)
    assert bound.squared == pytest.approx(longest**2 * Q, rel=1e-12)
    known = policy.bound({**facts, "regret": -7.0}, t)
    assert known.squared == pytest.approx(longest**2 * log((1.0 + V * (R + 7.0)) / (1.0 - theta)) / lam, rel=1e-12)
    few = policy.bound(facts, 1)
    assert few.regret == few.ccv == pytest.approx(G * D)
    assert few.squared == pytest.approx((G * D) ** 2)


def test_a_bound_without_a_v_and_with_too_large_a_lam():
    policy, facts = bridle.policy("anytime-entropy", bridle.Simplex(4)), {"lipschitz": 0.01, "diameter": sqrt(2.0)}
    facts["feasible"] = policy.domain.center()
    bound = policy.bound(facts, 10**6)
    assert bound.regret == pytest.approx(sqrt((4.0 + log(4.0)) * 10**6) * sqrt(2.0) * 0.01 + 0.5 * sqrt(2.0) * 0.001, rel=1e-12)
    assert bound.ccv is None
    assert "V" in bound.why
    assert policy.bound({**facts, "V": 2.0}, 10**6).ccv > 0.0
    wild = bridle.policy("anytime-entropy", bridle.Simplex(4), lam=0.2)
    assert "must be below 1" in wild.bound(facts, 10).why


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.parametrize(("groups", "k"), [(1, 1), (2, 3)])
def test_it_keeps_the_contract(groups, k):
    report = check_policy("anytime-entropy", {"here": place(4, groups)}, constraints=[k], rounds=36, scale_free=True)
    assert any(line.endswith(": engines") for line in report)
    assert not any(line.startswith("skipped") for line in report)


@pytest.mark.slow
@pytest.mark.compiles
def test_the_loops_that_are_compiled_decide_alike(monkeypatch):
    """As Python, line by line: the generated source."""
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    problem = bridle.problem("halfspaces", horizon=20, dim=4, domain="simplex", constraints=2)
    policy = bridle.policy("anytime-entropy", problem.domain, cuts=3)
    ends = [bridle.play(policy, problem, engine=engine, keep="decisions").decisions for engine in ("python", "compiled")]
    np.testing.assert_allclose(ends[1], ends[0], rtol=0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"modulus": 1.0}, "unknown parameter of policy anytime-entropy 'modulus'"),
        ({"halfspace": False, "cuts": 3}, "cuts must be 0 with halfspace=False, not 3"),
        ({"V": 0.0}, "V must be above 0, not 0.0"),
        ({"lam": [-1.0]}, "lam must be above 0"),
    ],
)
def test_bad_settings_are_refused(given, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.policy("anytime-entropy", bridle.Simplex(3), **given)


def test_it_is_for_simplices():
    with pytest.raises(bridle.InputError, match="domain must be a simplex for adahedge"):
        bridle.policy("anytime-entropy", bridle.Ball(3))

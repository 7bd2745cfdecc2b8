"""The learner for gradients that arrive late: its update and its constants, from the formulas alone."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.learners.late import late_adagrad_regret
from helpers.instances import instances

# --- AdaGrad for late gradients ---------------------------------------------------------------------------------------------------------


def late_rounds(learner, u, rng, rounds, most, size, order):
    """Gradients that arrive late, in some order, at most so many others outstanding: (a, o, p, decision, state after) of each arrival."""
    state, waiting, arrived = learner.init(learner.domain.center()), [], 0
    for t in range(rounds):
        x = learner.decide(state)
        p = rng.standard_normal(len(x)) if order == "random" else x - u + 1e-3 * rng.standard_normal(len(x))
        p = p * (size * 10.0 ** rng.uniform(-2.0, 0.0) / max(float(np.linalg.norm(p)), 1e-300)) * (rng.random() < 0.9)
        waiting.append((x, p, arrived))
        while len(waiting) > most or (waiting and t == rounds - 1):
            old, q, before = waiting.pop({"oldest": 0, "newest": -1}.get(order, int(rng.integers(len(waiting)))))
            since, others = float(arrived - before), float(len(waiting))
            state, arrived = learner.step_late(state, q, since, others), arrived + 1
            yield since, others, q, old, state


@settings(max_examples=40)
@given(instances(), st.integers(0, 12), st.sampled_from(["random", "oldest", "newest"]), st.sampled_from([None, 0.3, 4.0]))
def test_late_gradients_cost_what_the_proof_says(instance, most, order, told):
    """Whatever the order, the sizes and the diameter it was told: after every arrival, with sums taken here."""
    domain, u, G, rng = instance
    D = domain.diameter()
    learner = bridle.LateAdaGrad(domain, diameter=None if told is None else told * D)
    mine = D if told is None else told * D
    regret = S = A = L = first = 0.0
    for since, others, p, x, state in late_rounds(learner, u, rng, 120, most, G, order):
        square = float(p @ p)
        regret += float(p @ (x - u))
        S, A = S + (1.0 + since + others) * square, A + since * square
        L += others * square / S if S else 0.0
        first = first or S
        proved = (D * D / mine + mine) * sqrt(S / 2.0) + mine * sqrt(A * L / 2.0)
        assert learner.certified(state) == pytest.approx(proved, rel=1e-9, abs=1e-300)
        assert regret <= proved * (1.0 + 1e-9) + 1e-12 * G * (D + float(np.abs(u).sum()))
        assert 1.0 + (np.log(S / first) if first else 0.0) + 1e-12 >= L
        if told is None:
            assert late_adagrad_regret(D, S, A, L) == pytest.approx(proved, rel=1e-12)
        assert domain.contains(state.x)


def test_the_late_step_is_the_one_on_the_page():
    """Three arrivals in one dimension, by hand: S = 4 (1 + 2 + 3) = 24, then 24 + 9, then nothing."""
    learner = bridle.LateAdaGrad(bridle.Ball(1, radius=5.0), delay=2.0)
    state = learner.step_late(learner.init(np.zeros(1)), np.array([2.0]), 2.0, 3.0)
    assert state.x[0] == pytest.approx(-20.0 / sqrt(48.0))
    state = learner.step_late(state, np.array([-3.0]), 0.0, 0.0)
    assert state.x[0] == pytest.approx(-20.0 / sqrt(48.0) + 30.0 / sqrt(66.0))
    assert (state.S, state.waited, state.shared) == pytest.approx((33.0, 8.0, 0.5))
    assert learner.certified(state) == pytest.approx(late_adagrad_regret(10.0, 33.0, 8.0, 0.5))
    assert late_adagrad_regret(10.0, 33.0, 8.0, 0.5) == pytest.approx(10.0 * sqrt(66.0) + 10.0 * sqrt(2.0))
    still = learner.step_late(state, np.zeros(1), 5.0, 7.0)
    assert (still.S, still.waited, still.shared, still.observed_rounds) == pytest.approx((33.0, 8.0, 0.5, 3.0))
    told = learner.step(learner.init(np.zeros(1)), np.array([2.0]))
    assert (told.S, told.waited, told.shared) == pytest.approx((20.0, 8.0, 0.4))


def test_without_delay_it_is_adagrad_and_scale_free():
    rng, domain = np.random.default_rng(3), bridle.Box(-1.0, 2.0, dim=3)
    late, plain = bridle.LateAdaGrad(domain), bridle.AdaGrad(domain)
    a, b = late.init(domain.center()), plain.init(domain.center())
    assert late.scale_free
    for p in rng.standard_normal((30, 3)):
        a, b = late.step(a, p), plain.step(b, p)
        np.testing.assert_allclose(late.decide(a), plain.decide(b), atol=1e-14)
    assert late.certified(a) == pytest.approx(plain.adaptivity(domain.diameter()) * sqrt(b.seen))
    state = late.step_late(late.init(domain.center()), np.array([1.0, 2.0, 0.0]), 1.0, 2.0)
    state = late.step_late(state, np.array([0.0, 2.0, 5.0]), 2.0, 1.0)
    scaled, p = late.rescale(state, 1e5), np.array([1.0, 0.0, -3.0])
    np.testing.assert_allclose(late.step_late(scaled, 1e5 * p, 1.0, 1.0).x, late.step_late(state, p, 1.0, 1.0).x, atol=1e-12)
    assert late.certified(scaled) == pytest.approx(1e5 * late.certified(state))
    assert late.certified(late.step_late(scaled, 1e5 * p, 1.0, 1.0)) == pytest.approx(
        1e5 * late.certified(late.step_late(state, p, 1.0, 1.0))
    )


def test_fewer_waiting_rounds_are_worth_longer_steps():
    """It need not be told how many wait: where few do, it loses less than where it was told of many."""
    lost = {}
    for name, learner in (("told", bridle.LateAdaGrad(bridle.Ball(2), delay=40)), ("counts", bridle.LateAdaGrad(bridle.Ball(2)))):
        state, regret, u = learner.init(np.zeros(2)), 0.0, np.array([0.6, -0.8])
        for t in range(600):
            p = -u + np.array([0.0, 0.5 * (-1.0) ** t])
            regret += float(p @ (learner.decide(state) - u))
            state = learner.step(state, p) if name == "told" else learner.step_late(state, p, 0.0, 0.0)
        lost[name] = regret
    assert 0.0 < lost["counts"] < 0.7 * lost["told"]


def test_a_session_counts_who_waits(tmp_path):
    """Each gradient with how many came since its decision and how many wait: the certificate is the proof's, and covers the regret."""
    policy, rng = bridle.policy("adagrad", bridle.Ball(2), delay=0), np.random.default_rng(5)
    session, waiting, regret, u = bridle.Session(policy), [], 0.0, np.array([0.3, -0.9])
    learner = bridle.LateAdaGrad(bridle.Ball(2))
    twin, arrived = learner.init(np.zeros(2)), 0
    for t in range(90):
        ticket = session.ask()
        np.testing.assert_array_equal(ticket.x, learner.decide(twin))
        waiting.append((ticket, arrived))
        while len(waiting) > t % 7:
            ticket, before = waiting.pop(int(rng.integers(len(waiting))))
            p = ticket.x - u + 0.3 * rng.standard_normal(2)
            regret += float(p @ (ticket.x - u))
            session.observe(f=float(p @ ticket.x), df=p, ticket=ticket)
            twin, arrived = learner.step_late(twin, p, float(arrived - before), float(len(waiting))), arrived + 1
        if t == 50:
            session.save(tmp_path / "a.npz")
            session = bridle.Session.load(tmp_path / "a.npz")
    found = session.certificate()
    assert found.regret_algorithm == pytest.approx(learner.certified(twin))
    assert regret <= found.regret_algorithm
    assert found.bound.regret == pytest.approx(learner.certified(twin))
    assert "how many rounds waited" in policy.bound({"lipschitz": 1.0, "diameter": 2.0}, 10).why
    assert policy.bound({"lipschitz": 1.0, "diameter": 2.0, "observed_regret": 3.0, "observed_rounds": 10.0}, 10).regret == 3.0
    assert policy.bound({"lipschitz": 1.0, "diameter": 2.0, "observed_regret": 3.0, "observed_rounds": 10.0}, 11).regret is None

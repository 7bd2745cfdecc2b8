"""`soft` under limits that are known before acting: its state moves, and the theorem in observed quantities stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Feedback
from bridle.policies.soft_free import NaturalPrices, most_epochs

DOMAINS = {"box": bridle.Box(-1.0, 1.0, dim=3), "ball": bridle.Ball(3), "simplex": bridle.Simplex(3), "huge": bridle.Box(-1e4, 1e4, dim=3)}


def known_around(u, rng, tight):
    """Halfspaces that hold u, some with u on them."""
    A = rng.standard_normal((2, len(u)))
    return A, A @ u + (0.0 if tight else rng.uniform(0.0, 0.5, 2))


def game(session, u, rng, rounds, hostile):
    """Costs and limits around u, which keeps everything; gives the regret against it, and the largest share of the theorem."""
    regret, share, sums = 0.0, 0.0, np.zeros(2)
    for t in range(rounds):
        x = session.decide(known=known_around(u, rng, t % 5 == 0) if rng.random() < 0.8 else None)
        p, dg = rng.standard_normal(3), rng.standard_normal((2, 3))
        if hostile:  # what was played is always dearer than u, and violates
            p = p * np.sign(p @ (x - u) + 1e-300)
            dg *= np.sign(dg @ (x - u) + 1e-300)[:, None]
        g = dg @ (x - u) - rng.uniform(0.0, 0.1, 2) * (not hostile)
        session.observe(f=float(p @ x), df=p, g=g, dg=dg)
        regret, sums = regret + float(p @ (x - u)), sums + g
        state = session.state
        assert (sums <= state.observed_violation + 1e-9 * (1.0 + abs(sums))).all()
        assert regret <= state.observed_regret * (1.0 + 1e-9) + 1e-9
        share = max(share, regret / float(state.observed_regret))
    assert state.part.epochs + 1.0 <= most_epochs(rounds)
    return regret, share


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(list(DOMAINS)), st.booleans())
@settings(max_examples=20, deadline=None)
def test_the_theorem_stays_for_actions_that_keep_what_was_known(seed, name, hostile):
    domain, rng = DOMAINS[name], np.random.default_rng(seed)
    u = domain.project(domain.center() + 2.0 * rng.standard_normal(3))
    session = bridle.Session(bridle.policy("soft", domain))
    regret, share = game(session, u, rng, 100, hostile)
    proof = session.certificate()
    assert proof.moved is None, "the state moved: nothing is charged"
    assert regret <= proof.bound.regret * (1.0 + 1e-9) + 1e-9
    assert share <= 1.0


def test_the_theorem_is_felt():
    """One round across the domain, from a state that was moved: 1/sqrt(2) of the bound, so that it cannot be a third less."""
    session = bridle.Session(bridle.policy("soft", bridle.Box([-1.0, -1e-3], [1.0, 1e-3])), x1=[-1.0, 1e-3])
    x = session.decide(known=([[0.0, 1.0]], [-1e-3]))
    session.observe(f=float(-x[0]), df=[-1.0, 0.0])
    share = float(1.0 - x[0]) / float(session.state.observed_regret)
    assert 0.7 < share <= 1.0


def test_moving_the_decision_alone_would_be_wrong(monkeypatch):
    """Outside of the part in which steps are taken, its centre would pay for the move: the theorem would promise less than nothing."""

    def play():
        session = bridle.Session(bridle.policy("soft", bridle.Box(-1.0, 1.0, dim=1)))
        for _ in range(20):
            x = session.decide(known=([[-1.0]], [-0.9]))
            session.observe(f=float(x[0]), df=[1.0])
        return float(session.cost - 20 * 0.9), session.state

    regret, state = play()
    assert regret <= state.observed_regret
    assert state.part.s == 1.0
    monkeypatch.setattr(NaturalPrices, "move", lambda self, state, x: state._replace(x=x))
    regret, state = play()
    assert regret > state.observed_regret


def test_a_part_that_holds_what_is_known_stays():
    """Where its centre keeps the limits, nothing begins anew: a box that is far too large stays harmless."""
    session = bridle.Session(bridle.policy("soft", bridle.Box(-1e4, 1e4, dim=1)))
    for _ in range(25):
        x = session.decide(known=([[1.0]], [1e-3]))
        session.observe(f=float(-x[0]), df=[-1.0], g=-1.0, dg=[0.0])
    assert session.state.part.epochs == 0.0
    assert session.state.part.s < 0.01


@given(st.integers(0, 10**6), st.sampled_from(["box", "ball", "simplex"]), st.booleans(), st.booleans())
@settings(max_examples=10, deadline=None)
def test_told_constants_its_state_moves_too(seed, name, hostile, horizon):
    domain, rng = DOMAINS[name], np.random.default_rng(seed)
    u = domain.project(domain.center() + 2.0 * rng.standard_normal(3))
    told = {"lipschitz": 6.0, "bound": 6.0 * domain.diameter(), "constraints": 2} | ({"horizon": 80} if horizon else {})
    session = bridle.Session(bridle.policy("soft", domain, **told), certify=False)
    regret = 0.0
    for _ in range(80):
        x = session.decide(known=known_around(u, rng, False))
        p, dg = rng.standard_normal(3), rng.standard_normal((2, 3))
        p, dg = (each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (p, dg))
        if hostile:
            p = p * np.sign(p @ (x - u) + 1e-300)
        session.observe(f=float(p @ x), df=p, g=dg @ (x - u), dg=dg)
        regret += float(p @ (x - u))
        constants = {"lipschitz": 6.0, "diameter": domain.diameter(), "bound": told["bound"], "constraints": 2, "feasible": u}
        bound = session.policy.bound(constants, session.rounds)
        assert regret <= bound.regret
        assert session.balances.max() <= bound.soft


def test_the_line_of_the_proof_holds_where_its_state_moves():
    """Told constants: Regret + |Q|^2/(2V) <= D^2 alpha/V + the sums, every round, from states that were moved at random towards u."""
    rng, domain = np.random.default_rng(5), DOMAINS["box"]
    record = bridle.policy("soft", domain, lipschitz=2.0, bound=8.0).record
    u = np.array([0.3, -0.2, 0.9])
    state, left, right = record.init(domain.center()), 0.0, 0.0
    for _ in range(300):
        x = record.decide(state)
        nearer = domain.project(u + rng.uniform(0.0, 1.0) * (x - u))
        state = record.move(state, nearer)
        at = record.at(state)
        V, alpha = float(at.V), 0.5 / float(at.step)
        p, dg = rng.standard_normal(3), rng.standard_normal((1, 3))
        g = dg @ (nearer - u)
        after = record.update(state, Feedback(nearer, 0.0, p, g, dg))
        b = g + dg @ (record.decide(after) - nearer)
        left += float(p @ (nearer - u))
        right += V * float(p @ p) / (4.0 * alpha) + float(b @ b) / (2.0 * V)
        state = after
        Q = state.queues.Q
        assert left + float(Q @ Q) / (2.0 * V) <= domain.diameter() ** 2 * alpha / V + right + 1e-9


@pytest.mark.parametrize("told", [{}, {"lipschitz": 2.0, "bound": 4.0}])
def test_what_is_known_is_kept_and_nothing_is_charged(told):
    session = bridle.Session(bridle.policy("soft", bridle.Ball(2), **told))
    for t in range(60):
        x = session.decide(known=([[1.0, 1.0]], [0.5 * np.cos(t)]))
        assert x.sum() <= 0.5 * np.cos(t) + 1e-9
        session.observe(f=float(-x.sum()), df=[-1.0, -1.0], g=float(x[0]), dg=[1.0, 0.0])
    assert session.certificate().moved is None

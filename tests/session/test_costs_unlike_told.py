"""Rounds without a cost, and costs of other moduli than the policy was told: `session.bound()` is right, or says why there is none."""

from __future__ import annotations

import warnings
from math import log

import numpy as np
import pytest

import bridle
from bridle.core import Curvature, Feedback
from bridle.session.state import AS_TOLD, UnlikeTold
from helpers.curved_sessions import POLICIES, STYLES, game, policy_for
from helpers.inside import state

LINE = bridle.Box([-1.0], [1.0])

# What is told here is far from what comes, on purpose: alarms of that are right.
pytestmark = [pytest.mark.filterwarnings(f"ignore::bridle.{kind}") for kind in ("StuckWarning", "EmptyPromiseWarning")]


def slide(label, cost, gaps, *, told=1.0, rounds=1000, modulus=None, engine="python"):
    """Rounds without a cost, then (x + 1)^2 times cost / 2 from x = 1; the regret against -1 and the session."""
    session = bridle.Session(policy_for(label, LINE, told, 2.0 * cost, rounds + gaps), x1=[1.0], engine=engine)
    regret = 0.0
    for t in range(gaps + rounds):
        x = session.decide()
        if t < gaps:
            session.observe(g=-1.0, dg=np.zeros(1))
        else:
            f = 0.5 * cost * float(x[0] + 1.0) ** 2
            regret += f
            session.observe(f=f, df=cost * (x + 1.0), g=-1.0, dg=np.zeros(1), modulus=modulus)
    return regret, session


@pytest.mark.parametrize("label", POLICIES)
def test_rounds_without_a_cost_have_no_curvature(label):
    regret, session = slide(label, 1.0, gaps=3000, rounds=300)
    bound = session.bound()
    assert bound.why == ""
    assert regret <= bound.regret
    if not label.startswith("yi2022"):  # whose steps cannot wait
        plain = slide(label, 1.0, gaps=0, rounds=300)[1].bound()
        assert bound.regret <= 3.0 * plain.regret + 4.0  # as if those rounds had not been


@pytest.mark.parametrize("label", POLICIES)
def test_a_modulus_below_the_told_one_is_heard(label):
    regret, session = slide(label, 1e-3, gaps=0, rounds=3000, modulus=1e-3)
    bound = session.bound()
    if label == "sinha2024-strong":
        assert bound.regret is None
        assert "V = " in bound.why  # made for a modulus of 1, and too small for this one
        return
    assert regret <= bound.regret
    ignored = slide(label, 1e-3, gaps=0, rounds=3000)[1].bound()  # the costs are not what the policy is told: nobody can know
    assert ignored.regret < bound.regret


@pytest.mark.parametrize("label", POLICIES)
def test_gradients_at_the_decisions_do_not_bound_costs_elsewhere(label):
    """f_t = (x - x_t)^2 / 2 has no slope at x_t, and is lower there than at every other action."""
    T, box = 3000, bridle.Box([0.0], [1.0])
    session = bridle.Session(policy_for(label, box, 1.0, 1.0, T), x1=[1.0])
    for _ in range(T):
        x = session.decide()
        session.observe(f=0.0, df=[0.0], g=0.01 * x[0], dg=[0.01])
    bound = session.bound()
    assert bound.ccv is None or session.ccv <= bound.ccv
    assert bound.ccv is not None or "V" in bound.why


def test_the_ccv_bound_of_gradients_seen_is_the_stated_one():
    """yuan2018-strong by hand: E_t = sum (G D + mu D^2 / 2) + G^2 sum eta_s, and the CCV at most sqrt(sigma sum eta_s E_t / a)."""
    T, G, mu, D = 5000, 0.01, 1.0, 1.0
    session = bridle.Session(bridle.policy("yuan2018-strong", bridle.Box([0.0], [1.0]), lipschitz=1.0, modulus=mu), x1=[1.0])
    for _ in range(T):
        session.observe(f=0.0, df=[0.0], g=G * session.decide()[0], dg=[G])
    harm, sigma = sum(1.0 / s for s in range(1, T + 1)), 2.0
    E, a = (G * D + 0.5 * mu * D * D) * T + G * G * harm / mu, 1.0 - G * G / sigma
    assert session.bound().ccv == pytest.approx(min(G * D * T, (sigma * harm / mu * E / a) ** 0.5))
    assert 25.0 < session.ccv <= session.bound().ccv


@pytest.mark.parametrize("style", range(len(STYLES)))
@pytest.mark.parametrize("label", POLICIES)
def test_no_bound_of_a_curved_session_is_wrong(label, style):
    for seed in range(style, style + 3 * len(STYLES), len(STYLES)):
        outcome = game(label, seed, T=(60, 7, 150)[seed // len(STYLES)])
        assert not outcome.wrong, outcome


@pytest.mark.slow
@pytest.mark.parametrize("label", POLICIES)
def test_no_bound_is_wrong_in_many_curved_sessions(label):
    outcomes = [game(label, seed) for seed in range(100, 150)]
    assert not any(outcome.wrong for outcome in outcomes)
    assert sum(outcome.regret_bound is not None for outcome in outcomes) >= 40


# --- what the session keeps ------------------------------------------------------------------------------------------------------------


def brute(moduli):
    """`Curvature` by its definition, from the moduli in units of the told one; None is no cost (struck where it is nan)."""
    costs = struck = total = short = 0.0
    share = 1.0
    for t, m in enumerate(moduli):
        own = 0.0 if m is None or np.isnan(m) else m
        total = total + own if t else max(own, 1.0)
        costs, struck = costs + (m is not None and not np.isnan(m)), struck + (m is not None and np.isnan(m))
        short += max(0.0, 1.0 - own)
        share = min(share, total / costs) if costs and m is not None and not np.isnan(m) else share
    return Curvature(costs, struck, total, short, share)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_kept_of_the_moduli_is_their_definition(seed):
    rng = np.random.default_rng(seed)
    kinds = [1.0, 1.0, 1.0, None, np.nan, 0.0, 0.2, 3.0]
    moduli = [kinds[i] for i in rng.integers(0, len(kinds), 60)]
    if seed % 2:
        moduli[:10] = [kinds[3 + seed % 5]] * 10
    kept = AS_TOLD
    for t, m in enumerate(moduli):
        if m != 1.0:
            cost = m is not None and not np.isnan(m)
            kept = kept.after(t, m if cost else 0.0, m is not None and not cost, cost)
        found, true = kept.curvature(t + 1), brute(moduli[: t + 1])
        assert found[:4] == pytest.approx(true[:4])
        assert 0.0 < found.share <= true.share + 1e-12  # it may look one round ahead
        assert found.share >= min(brute([*moduli[: t + 1], *[1.0] * 80]).share, true.share) - 1e-12
        assert found.regular == (true.short == 0.0)


def test_a_round_without_a_cost_says_so_to_the_policy():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2), modulus=2.0, V=1.0))
    session.observe(f=0.5, df=[1.0, 0.0])
    assert session.state.H == 2.0
    session.observe(g=0.1, dg=[1.0, 0.0])
    assert session.state.H == 2.0
    session.observe(f=0.5, df=[1.0, 0.0], modulus=0.0)
    assert session.state.H == 2.0
    session.observe(f=0.5, df=[1.0, 0.0], modulus=0.25)
    assert session.state.H == 2.25
    with pytest.raises(bridle.InputError, match=r"modulus must be 0 or above, not -1\.0"):
        session.observe(f=0.5, df=[1.0, 0.0], modulus=-1.0)
    assert session.rounds == 4


def test_rounds_that_wait_say_what_they_lack(tmp_path):
    session = bridle.Session(bridle.policy("yuan2018-strong", bridle.Ball(2), lipschitz=3.0, modulus=2.0))
    first, second, third, fourth = (session.ask() for _ in range(4))
    session.observe(g=0.1, dg=[1.0, 0.0], ticket=first)
    session.observe(f=1.0, df=[1.0, 0.0], g=-0.1, dg=[1.0, 0.0], modulus=0.0, ticket=second)
    session.save(tmp_path / "half.npz")
    again = bridle.Session.load(tmp_path / "half.npz")
    for each in (session, again):
        for ticket, about in ((third, {"modulus": 0.5}), (fourth, {})):
            each.observe(f=1.0, df=[1.0, 0.0], g=-0.1, dg=[1.0, 0.0], ticket=ticket, **about)
        copies = [copy.costs for copy in state(each).copies]
        assert copies == [
            UnlikeTold(blank=1.0, struck=1.0, lacking=-1.0, short=1.0, share=1.0),
            UnlikeTold(lacking=0.0, short=1.0, share=1.0),
            UnlikeTold(lacking=0.0, short=0.75, share=1.0),
            AS_TOLD,
        ]


def varied(session, rounds, seed=3):
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        x = session.decide()
        about = [{}, {"modulus": 0.2}, {}, {"modulus": 0.0}, {}][t % 5]
        limits = {"g": float(x[0]) - 0.1, "dg": np.array([1.0, 0.0])}
        cost = {} if t % 3 == 2 else {"f": float(x @ x), "df": 2.0 * x - rng.uniform(-0.2, 0.2, 2), **about}
        session.observe(**cost, **limits)
    return session


@pytest.mark.parametrize("label", POLICIES)
def test_a_saved_session_knows_what_its_costs_were(label, tmp_path):
    session = varied(bridle.Session(policy_for(label, bridle.Ball(2), 2.0, 4.0, 200)), 60)
    session.save(tmp_path / "s.npz")
    again = bridle.Session.load(tmp_path / "s.npz")
    assert again.bound() == session.bound()
    assert varied(again, 40).bound() == varied(session, 40).bound()


@pytest.mark.parametrize("label", ["sinha2024-strong", "anytime", "guo2022-strong", "yuan2018-strong", "yi2023-strong", "yi2022"])
@pytest.mark.compiles
def test_compiled_sessions_know_what_their_costs_were(label):
    sessions = [
        varied(bridle.Session(policy_for(label, bridle.Ball(2), 2.0, 4.0, 200), engine=engine), 60) for engine in ("python", "compiled")
    ]
    plain, fast = sessions
    assert fast.decide() == pytest.approx(plain.decide(), rel=1e-9, abs=1e-12)
    assert fast.bound()[:2] == pytest.approx(plain.bound()[:2], rel=1e-9)
    assert state(fast).copies[0].costs == state(plain).copies[0].costs


def test_a_strong_learner_of_ones_own_says_that_moduli_varied():
    learner = bridle.StronglyConvexOGD(bridle.Ball(2), modulus=100.0)
    policy = bridle.policy("sinha2024-strong", bridle.Ball(2), horizon=100, lipschitz=2.0, modulus=1.0, learner=learner)
    session = bridle.Session(policy)
    session.observe(f=0.0, df=[1.0, 0.0])
    session.observe(g=-1.0, dg=[1.0, 0.0])
    assert "the learner was replaced" in session.bound().why


def test_a_cost_before_the_first_slope_is_not_counted_twice():
    """V is found at the first gradient; the moduli before it are not in H, and the bound must not lean on them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = bridle.Session(bridle.policy("anytime", LINE, modulus=1.0), x1=[1.0])
        for _ in range(200):
            session.observe(f=0.0, df=[0.0])
        for _ in range(200):
            session.observe(f=float(session.decide()[0]), df=[1.0], modulus=0.0)
    known = state(session).copies[0].costs.curvature(400)
    H = session.state.H
    assert (known.moduli, H) == (200.0, 1.0)
    V = session.state.V
    R = (1.0 + log(400.0)) * (1.0 + 199.0) / known.share + 0.5 * 4.0
    assert session.bound().regret == pytest.approx(min(R + 0.5 / V, 2.0 * 400))


def test_the_first_round_pays_in_advance():
    """H_1 is the told modulus where the first cost has less; then every modulus counts as it is."""
    record = bridle.policy("yuan2018-strong", bridle.Ball(1), lipschitz=1.0, modulus=2.0).record
    state, seen = record.init(np.zeros(1)), []
    for modulus in (0.5, None, 0.0, 3.0):
        state = record.update(state, Feedback(state.x, 0.0, np.zeros(1), np.array([-1.0]), np.zeros((1, 1)), modulus))
        seen.append(state.t)
    assert seen == [1.0, 2.0, 2.0, 3.5]

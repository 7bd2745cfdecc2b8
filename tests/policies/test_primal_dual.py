"""The primal-dual policies before the paper: faithful to their formulas, within their theorems, one source on both engines."""

from __future__ import annotations

import warnings
from itertools import product
from math import ceil, log, sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Feedback, Round
from bridle.functions import AffineFunction, AffineRows
from bridle.policies._neely2017 import VirtualQueues
from bridle.problems.base import StreamOpponent
from bridle.solvers.hindsight import interval_excess, smallest_window, values_at
from helpers import adversarial_games
from helpers.instances import constraint_at, cost_at, instances, make_domain, moves

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "mahdavi2012": ("mahdavi2012", {}),
    "mahdavi2012 mirror-prox": ("mahdavi2012", {"form": "mirror-prox"}),
    "jenatton2016": ("jenatton2016", {}),
    "jenatton2016 b=2/3": ("jenatton2016", {"exponent": 2 / 3}),
    "sun2017": ("sun2017", {}),
    "sun2017 entropic": ("sun2017", {"mirror": "entropic"}),
    "neely2017": ("neely2017", {}),
    "liakopoulos2019": ("liakopoulos2019", {"window": 3}),
}
CLIPPED = [form for form in FORMS if "prox" not in form and "liak" not in form]
PER_CONSTRAINT = ("mahdavi2012", "neely2017", "liakopoulos2019")


def make(form: str, domain, /, T: int, G: float, F: float, k: int = 1, **more: Any):
    """A policy by its form, with what its factory takes of the constants."""
    name, chosen = FORMS[form]
    known = {"horizon": T, "lipschitz": G, "bound": F, "constraints": k, **chosen, **more}
    takes = {parameter.name for parameter in bridle.policies.parameters(name)}
    return bridle.policy(name, domain, **{key: value for key, value in known.items() if key in takes})


def check_within(form: str, policy, at: adversarial_games.Stage) -> None:
    for quantity, ratio in adversarial_games.ratios(policy, at).items():
        label = f"{form}{' clipped' if getattr(policy.record, 'clip', 0.0) else ''} {quantity}"
        assert ratio <= 1.0, f"{label}: {ratio:.3f} of its bound (d = {at.domain.dim}, k = {at.k}, T = {at.T}, seed {at.seed})"


# --- the updates, against transcriptions that share no code with the library ----------------------------------------------------------


def transcribed(form: str, project, dim: int, D: float, T: int, G: float, F: float, k: int, clip: bool, mass: float):
    """The updates as a reader would write them down; yields x_t and takes (f', g, g') of round t."""
    name, chosen = FORMS[form]

    def positive(g, dg):
        return (np.maximum(g, 0.0), np.where((g > 0)[:, None], dg, 0.0)) if clip else (g, dg)

    def mahdavi(x):
        size = min(F, G * D) if clip else F
        eta = D * D / sqrt(((k + 1) * G * G * D * D + 2 * k * size * size) * T)
        eta = min(eta, D / (G * sqrt(8 * (k + 1))))
        delta, lam = 2 * (k + 1) * G * G, np.zeros(k)
        while True:
            df, g, dg = yield x
            g, dg = positive(g, dg)
            p, r = df + dg.T @ lam, g - delta * eta * lam
            x, lam = project(x - eta * p), np.maximum(0.0, lam + eta / D**2 * r)

    def mirror_prox(x):
        eta = min(D / G * T ** (-1 / 3), D / (G * sqrt(2 * k)))
        mu = eta / D**2
        z, m, lam = x, np.zeros(k), None
        while True:
            df, g, A = yield x
            b = A @ x - g
            if lam is None:
                lam = np.maximum(0.0, m + mu * (A @ z - b))
            z, m = project(z - eta * (df + A.T @ lam)), np.maximum(0.0, m + mu * (A @ x - b))
            x, lam = project(z - eta * A.T @ m), np.maximum(0.0, m + mu * (A @ z - b))

    def jenatton(x):
        beta, lam, t = chosen.get("exponent", 0.5), 0.0, 0
        while True:
            df, g, dg = yield x
            g, dg = positive(g, dg)
            j, t = int(np.argmax(g)), t + 1
            eta, theta = D / (G * t**beta), 6 * G * D / t**beta
            mu = 1 / (theta * (t + 1))
            x, lam = project(x - eta * (df + lam * dg[j])), max(0.0, lam + mu * (g[j] - theta * lam))

    def sun(x):
        entropic = "mirror" in chosen
        L, B = (G * mass, log(dim)) if entropic else (G * D, 0.5)
        size = min(F, G * D) if clip else F
        mu = min(sqrt(B / (T * (size**2 + L**2))), 1 / (4 * L))
        delta, lam = 4 * L * L, 0.0
        x = np.full(dim, mass / dim) if entropic else x
        while True:
            df, g, dg = yield x
            g, dg = positive(g, dg)
            j = int(np.argmax(g))
            p = df + lam * dg[j]
            if entropic:
                w = x * np.exp(-mu * mass * (p - p.min()))
                x = mass * w / w.sum()
            else:
                x = project(x - mu * D * D * p)
            lam = max(0.0, lam + mu * (g[j] - delta * mu * lam))

    def queues(x):
        C, v = (G * D if clip else F + G * D), sqrt(chosen.get("window", 1) * T)
        V, alpha = sqrt(2) * k * C * C * v / (G * D), k * C * C / (2 * D * D) * max(T, v * sqrt(T))
        Q = np.zeros(k)
        while True:
            df, g, dg = yield x
            g, dg = positive(g, dg)
            new = project(x - (V * df + sum(q * row for q, row in zip(Q, dg, strict=True))) / (2 * alpha))
            Q, x = np.maximum(0.0, Q + g + dg @ (new - x)), new

    if form.endswith("prox"):
        return mirror_prox
    return {"mahdavi2012": mahdavi, "jenatton2016": jenatton, "sun2017": sun}.get(name, queues)


def largest_gap(form: str, instance, k: int, clip: bool, doctor=lambda record: record) -> float:
    """The largest distance between the library's decisions and the transcription's, at the domain's scale."""
    domain, feasible, G, rng = instance
    if "entropic" in form:
        domain = make_domain("simplex", domain.dim, domain.diameter(), rng)
        feasible = domain.project(domain.center() + 0.3 * domain.diameter() * rng.standard_normal(domain.dim))
    T, D, mass = 80, domain.diameter(), float(getattr(domain, "mass", 1.0))
    F = 2.0 * G * D
    record = doctor(make(form, domain, T, G, F, k, **({"clip": clip} if form in CLIPPED else {})).record)
    reader = transcribed(form, domain.project, domain.dim, D, T, G, F, k, clip, mass)(domain.center())
    y, state, gap = next(reader), record.init(domain.center()), 0.0
    fixed: tuple[Any, ...] | None = None
    for t, (cost_move, constraint_move) in enumerate(moves(rng, T), 1):
        x = record.decide(state)
        gap = max(gap, float(np.abs(x - y).max()) / (D + np.abs(domain.center()).max()))
        if fixed is None or not form.endswith("prox"):
            move = "random" if form.endswith("prox") else constraint_move
            fixed = tuple(constraint_at(move, x, feasible, G, D, t, rng) for _ in range(k))
        feedback = Round(cost_at(cost_move, x, feasible, G, t, rng), fixed).reveal(x)
        state = record.update(state, feedback)
        y = reader.send((feedback.df, feedback.g, feedback.dg))
    return gap


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=15, deadline=None)
@given(instance=instances(), k=st.integers(1, 3), clip=st.booleans())
def test_the_update_is_the_one_on_the_page(form, instance, k, clip):
    assert largest_gap(form, instance, k, clip and form in CLIPPED) <= 1e-10


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_parameter_is_seen_by_the_transcription(form):
    """The test above can fail: a step or a weight that is off by a thousandth shows."""
    domain = bridle.Simplex(3) if "entropic" in form else bridle.Ball(3)
    for field in {"step", "dual", "theta", "V", "exponent"} & set(make(form, domain, 9, 1.0, 2.0).record._fields):
        instance = (domain, domain.project(np.array([0.2, 0.1, 0.0])), 1.0, np.random.default_rng(0))
        assert largest_gap(form, instance, 2, False, lambda r, field=field: r._replace(**{field: 1.001 * getattr(r, field)})) > 1e-8, field


# --- the theorems ---------------------------------------------------------------------------------------------------------------------


def stages(T: int, k: int, seeds: range, **more: Any):
    for kind, d, seed in product(("box", "ball"), (1, 2, 5, 20), seeds):
        yield adversarial_games.stage(kind, d, k, T, seed, **more)


@pytest.mark.slow
@pytest.mark.parametrize("form", [form for form in FORMS if "entropic" not in form])
@pytest.mark.parametrize("k", [1, 3])
def test_bounds_hold_against_adaptive_opponents(form, k):
    for (T, seeds), clip in product(((1, range(1)), (50, range(3)), (400, range(1))), (False, True) if form in CLIPPED else (False,)):
        for at in stages(T, k, seeds, fixed=form.endswith("prox"), G=3.0):
            more = {"clip": clip} if form in CLIPPED else {"window": min(3, T)} if "liak" in form else {}
            check_within(form, make(form, at.domain, T, at.G, at.constants["bound"], k, **more), at)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("k", [1, 3])
def test_bounds_hold_on_the_simplex(form, k):
    for d, seed, clip in product((2, 20), range(2), (False, True) if form in CLIPPED else (False,)):
        rng = np.random.default_rng([d, seed])
        domain, G, T = bridle.Simplex(d, mass=2.0), 0.5, 200
        feasible = domain.mass * rng.dirichlet(np.ones(d))
        D = domain.diameter()
        facts = {"lipschitz": G, "diameter": D, "bound": (1.0 + adversarial_games.SLACK) * G * D, "constraints": k, "feasible": feasible}
        fixed = form.endswith("prox")
        facts |= {"convex": True, "affine": True, "time_varying": not fixed}
        at = adversarial_games.Stage(domain, feasible, G, k, T, seed, fixed, constants=facts)
        check_within(form, make(form, domain, T, G, facts["bound"], k, **({"clip": clip} if form in CLIPPED else {})), at)


@pytest.mark.parametrize("slater", [0.02, 0.2, 1.0])
def test_room_to_spare_sharpens_the_violation_of_neely2017(slater):
    for k, T in ((1, 60), (3, 60), (1, 400)):
        for at in stages(T, k, range(1), slater=slater):
            check_within("neely2017 slater", policy := make("neely2017", at.domain, T, at.G, at.constants["bound"], k), at)
            assert policy.bound(at.constants, T).soft <= policy.bound({**at.constants, "slater": None}, T).soft
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": 2.0, "feasible": np.zeros(2)}
    with_room, without = [], []
    for T in (10**4, 10**8):
        policy = make("neely2017", bridle.Ball(2), T, 1.0, 2.0)
        with_room.append(policy.bound({**facts, "slater": 1.0}, T).soft)
        without.append(policy.bound(facts, T).soft)
    assert with_room[1] / with_room[0] == pytest.approx(100.0, rel=0.2)  # sqrt(T)
    assert without[1] / without[0] > 900.0  # T^{3/4}


def test_overridden_parameters_keep_a_bound_that_holds():
    """Bounds are evaluated with the parameters a record really has, the papers' own unit-dependent ones among them."""
    T = 300
    tries: dict[str, list[dict[str, Any]]] = {
        "mahdavi2012": [{"step": 0.01}, {"step": 0.02, "diameter": 1.0}, {"step": 0.001, "diameter": 0.3}],
        "mahdavi2012 mirror-prox": [{"step": 0.1, "diameter": 1.0}, {"step": 0.3 * T**-0.5, "diameter": 2.0 * T**-0.25}],
        "jenatton2016": [{"step": 3.0}, {"step": 0.1, "exponent": 0.3}, {"G": 5.0}],
        "sun2017": [{"step": 0.02, "diameter": 1.0}, {"step": 0.002}],
        "neely2017": [{"V": sqrt(T), "step": 0.5 / T}, {"V": 1.0}, {"step": 0.01}, {"F": 0.1}],
        "liakopoulos2019": [{"V": 40.0, "step": 0.5 / max(T, 40.0 * sqrt(T))}, {"V": 2.0, "window": 2}],
    }
    for form, overrides in tries.items():
        for override, d in product(overrides, (1, 5)):
            at = adversarial_games.stage("ball", d, 2, T, 3, fixed=form.endswith("prox"))
            check_within(
                form + " overridden", make(form, at.domain, **{"T": T, "G": at.G, "F": at.constants["bound"], "k": 2, **override}), at
            )


DOCTORED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mahdavi2012": ({"step": 1e-7}, {"dual": 1e-9}),
    "mahdavi2012 mirror-prox": ({"step": 1e-7}, {"dual": 1e-9}),
    "jenatton2016": ({"step": 1e-7}, {"theta": 1e9}),
    "sun2017": ({"step": 1e-7}, {"step": 1e-12}),  # the second with a mirror map that makes up for it
    "neely2017": ({"V": 0.0}, {"V": 1e9}),
    "liakopoulos2019": ({"V": 0.0}, {"V": 1e9}),
}
"""What keeps a policy from following its costs, and what keeps it from following its constraints."""


@pytest.mark.compiles
@pytest.mark.parametrize("form", DOCTORED)
def test_bounds_fail_for_policies_that_are_not_the_papers(form):
    """The bound tests can fail: a policy that ignores costs breaks the regret bound, one that ignores constraints the violation bound."""
    T = 100_000
    problem = bridle.problem("fixed", horizon=T, dim=3)
    policy = make(form, problem.domain, T, 1.0, problem.constants["bound"])
    bound = policy.bound({**problem.constants, "slater": None}, T)
    idle, blind = (policy.record._replace(**wrong) for wrong in DOCTORED[form])
    if form == "sun2017":
        blind = blind._replace(mirror=blind.mirror._replace(width=1e6))
    assert bridle.regret(bridle.play(idle, problem, horizon=T, engine="jax")) > bound.regret
    assert bridle.soft_violation(bridle.play(blind, problem, horizon=T, engine="jax")) > bound.soft
    right = bridle.play(policy, problem, horizon=T, engine="jax")
    assert bridle.regret(right) <= bound.regret
    assert bridle.soft_violation(right) <= policy.bound(problem.constants, T).soft


@pytest.mark.parametrize("name", ["lower-bound", "minimax", "fixed", "halfspaces"])
@pytest.mark.parametrize("form", [form for form in FORMS if "entropic" not in form])
def test_bounds_hold_on_every_problem_at_every_round(form, name):
    """At log-spaced rounds of one long game: the theorems are about every round up to the horizon."""
    if form.endswith("prox") and name in ("lower-bound", "halfspaces"):
        return  # constraints that change
    problem = bridle.problem(name, horizon=400)
    for clip in (False, True) if form in CLIPPED else (False,):
        facts = problem.constants
        policy = make(form, problem.domain, 400, facts["lipschitz"], facts["bound"], **({"clip": clip} if clip else {}))
        trace = bridle.play(policy, problem)
        regrets = bridle.regret_curve(trace)[1]
        for i, t in enumerate(trace.curve.rounds):
            bound = policy.bound(facts, t)
            assert regrets[i] <= bound.regret
            assert (trace.curve.hard[i].max() <= bound.ccv) if clip else (trace.curve.soft[i].max() <= bound.soft)


def closed_form(form: str, G: float, D: float, F: float, k: int, T: int) -> tuple[float, float]:
    """Regret and violation at t = T with the default parameters, from formulas written down on their own."""
    trivial = G * D * T
    if form == "mahdavi2012":
        a = sqrt((k + 1) * (G * D) ** 2 + 2 * k * F * F)  # lengths in units of D
        regret, delta = a * sqrt(T), 2 * (k + 1) * (G * D) ** 2
        soft = sqrt(2 * sqrt(T) * (delta / a + a) * (trivial + regret))
    elif form == "mahdavi2012 mirror-prox":
        eta = min(D / G * T ** (-1 / 3), D / (G * sqrt(2 * k)))
        regret = D * D / (2 * eta) + eta * G * G * T
        soft = sqrt(2 * D * D / eta * (trivial + regret))
    elif form == "jenatton2016":
        t = np.arange(1, T + 1)
        eta, theta = D / (G * np.sqrt(t)), 6 * G * D / np.sqrt(t)
        regret = D * D / (2 * eta[-1]) + G * G * eta.sum() + F * F * (1 / (theta * (t + 1))).sum()
        soft = sqrt(2 * (theta[0] + theta.sum()) * (regret + trivial))
    elif form == "sun2017":
        mu, delta = sqrt(0.5 / (T * (F * F + (G * D) ** 2))), 4 * (G * D) ** 2
        regret = 2 * sqrt(0.5 * T * (F * F + (G * D) ** 2))
        soft = sqrt(2 * (delta * mu * T + 1 / mu) * (trivial + regret))
    else:
        K = FORMS[form][1].get("window", 1)
        C, P, v = F + G * D, 0.0, sqrt(K * T)
        V, alpha = sqrt(2) * k * C * C * v / (G * D), k * C * C / (2 * D * D) * max(T, v * sqrt(T))
        W = alpha * D * D + 0.5 * k * C * C * T + T * V * V * G * G / (4 * alpha) + k * P * F * T
        Q = sqrt(2 * (V * trivial + W))
        regret, soft = W / V, Q + G * T / (2 * alpha) * (V * G + G * sqrt(k) * Q)
        assert form != "neely2017" or regret == pytest.approx(sqrt(2 * T) * G * D)
    return min(regret, trivial), min(soft, F * T if form == "liakopoulos2019" else trivial)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0), st.floats(1.0, 3.0), st.integers(1, 4), st.integers(9, 10**5))
def test_bounds_are_the_closed_forms(G, D, excess, k, T):
    ball, F = bridle.Ball(2, radius=D / 2), excess * G * D
    facts = {"lipschitz": G, "diameter": D, "bound": F, "feasible": np.zeros(2), "time_varying": False, "affine": True}
    for form in ("mahdavi2012", "mahdavi2012 mirror-prox", "jenatton2016", "sun2017", "neely2017", "liakopoulos2019"):
        bound = make(form, ball, T, G, F, k).bound(facts, T)
        assert (bound.regret, bound.soft) == pytest.approx(closed_form(form, G, D, F, k, T), rel=1e-9), form
    n = ceil(sqrt(T))
    policy = make("neely2017", ball, T, G, F, k)
    V, alpha, C, slater = policy.record.V, 0.5 / policy.record.step, F + G * D, 0.3 * F
    B0 = V * G * D + k * C * C / 2 + V * V * G * G / (4 * alpha)
    Q = alpha * D * D / (slater * n) + B0 / slater + sqrt(k) * C * n / 2 + 2 * n * sqrt(k) * C
    assert policy.bound({**facts, "slater": slater}, T).soft <= Q + G * T / (2 * alpha) * (V * G + G * sqrt(k) * Q)


def test_sums_past_a_million_rounds_are_bounded_by_integrals():
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": 2.0, "feasible": np.zeros(2)}
    policy = make("jenatton2016", bridle.Ball(2), 1, 1.0, 2.0)
    short, long = (policy.bound(facts, t) for t in (1_000_000, 1_000_001))
    assert short.regret < long.regret < 1.01 * short.regret
    assert short.soft < long.soft < 1.01 * short.soft


def test_bounds_say_why_where_a_theorem_is_void():
    ball = bridle.Ball(2)
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": 2.0, "feasible": np.zeros(2), "time_varying": False, "affine": True}
    for form in FORMS:
        policy = make(form, ball if "entropic" not in form else bridle.Simplex(3), 100, 1.0, 2.0)
        assert not policy.bound(facts, 100).why
        assert "not convex" in policy.bound({**facts, "convex": False}, 100).why
        assert "Lipschitz" in policy.bound({**facts, "lipschitz": None}, 100).why
        assert "feasible" in (why := policy.bound({**facts, "feasible": None}, 100).why) or "satisfy" in why
        if not form.endswith("prox"):
            assert "largest |g|" in policy.bound({**facts, "bound": None}, 100).why
        if "jenatton" not in form:
            assert "past the policy's horizon" in policy.bound(facts, 101).why
        if form in CLIPPED:
            clipped = make(form, policy.domain, 100, 1.0, 2.0, clip=True).bound({**facts, "bound": None}, 100)
            assert clipped.ccv > 0.0
            assert clipped.soft is None
    assert "step is too large" in make("mahdavi2012", ball, 100, 1.0, 2.0, step=1.0).bound(facts, 100).why
    assert "step is too large" in make("mahdavi2012", ball, 100, 0.1, 2.0).bound(facts, 100).why
    assert "step is too large" in make("mahdavi2012 mirror-prox", ball, 100, 1.0, 2.0, step=2.0).bound(facts, 100).why
    assert "step is too large" in make("sun2017", ball, 100, 1.0, 2.0, step=1.0).bound(facts, 100).why
    assert "above the one the policy was told" in make("jenatton2016", ball, 100, 0.5, 2.0).bound(facts, 100).why
    prox = make("mahdavi2012 mirror-prox", ball, 100, 1.0, 2.0)
    assert "change from round to round" in prox.bound({**facts, "time_varying": True}, 100).why
    assert "not affine" in prox.bound({**facts, "affine": False}, 100).why
    windows = make("liakopoulos2019", ball, 100, 1.0, 2.0)
    assert "longer than the horizon" in windows.bound({**facts, "feasible": None, "window": 101}, 100).why


# --- actions that are feasible over windows, and on average -----------------------------------------------------------------------------


class Lifted(NamedTuple):
    """Halfspaces through `point`, lifted by a pattern that repeats; costs push away from the feasible side."""

    point: np.ndarray
    pattern: np.ndarray  # (K, k)

    def deal(self, rng, rounds):
        K, k = self.pattern.shape
        A = 0.4 * rng.standard_normal((rounds, k, len(self.point))) + np.eye(len(self.point))[0]
        A /= np.linalg.norm(A, axis=-1, keepdims=True)
        level = self.pattern[np.arange(rounds) % K]
        costs = -A[:, 0] if rng.random() < 0.5 else A[:, 0]
        return Round(AffineFunction(costs, np.zeros(rounds)), (AffineRows(A, level - (A * self.point).sum(-1)),))


@pytest.mark.parametrize("K", [1, 2, 5, 16])
@pytest.mark.parametrize("k", [1, 3])
def test_liakopoulos2019_on_streams_that_are_feasible_only_over_windows(K, k):
    rng, ball, T = np.random.default_rng(10 * K + k), bridle.Ball(4), 1000
    point = np.array([0.3, -0.2, 0.0, 0.1])
    signs = np.repeat([1.0, -1.0], [K // 2, K - K // 2])
    pattern = np.zeros((1, k)) if K == 1 else np.stack([rng.permutation(signs) for _ in range(k)], axis=1)
    pattern = pattern - 1e-9  # so that rounding makes no window positive
    F = float(np.abs(pattern).max() + 1.0 + np.linalg.norm(point))
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": F, "constraints": k, "convex": True}
    for seed in range(3):
        problem = bridle.Problem(ball, StreamOpponent(Lifted(point, pattern)), facts, parameters={"seed": seed})
        policy = make("liakopoulos2019", ball, T, 1.0, F, k, window=K)
        trace = bridle.play(policy, problem, horizon=T)
        _, at_point = values_at(trace.blocks, point)
        window, excess = smallest_window(at_point), interval_excess(at_point)
        assert window is not None
        assert window <= K
        assert excess <= F * (K // 2) + 1e-9
        assert (K == 1) == bool((at_point <= 1e-12).all())
        regret, soft = bridle.regret(trace, comparator=point), bridle.soft_violation(trace)
        for known in ({"window": K}, {"excess": excess}):
            bound = policy.bound({**facts, **known}, T)
            for quantity, measured, limit in (("regret", regret, bound.regret), ("soft", soft, bound.soft)):
                label = f"liakopoulos2019 {next(iter(known))} {quantity}"
                assert measured <= limit, label
        assert policy.bound({**facts, "window": K + 2}, T).regret >= bound.regret
    assert "neither a feasible action" in policy.bound(facts, T).why


@pytest.mark.parametrize("K", [2, 6, 25])
def test_liakopoulos2019_against_opponents_that_adapt_within_windows(K):
    """Constraints aimed at the decision in the lifted half of each window, costs that seek regret or violation."""
    ball, G, T, k = bridle.Ball(3), 2.0, 1500 if K == 2 else 400, 2  # long enough for the bound to say something
    D, height = 2.0, 0.5 * G * 2.0
    lift = np.where(np.arange(T) % K < K // 2, height, -height)
    facts = {"lipschitz": G, "diameter": D, "bound": G * D + height, "constraints": k, "convex": True, "window": K}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        point = ball.project(rng.standard_normal(3))
        policy = make("liakopoulos2019", ball, T, G, facts["bound"], k, window=K)
        state, regret, total = policy.init(ball.center()), 0.0, np.zeros(k)
        for t, (cost_move, _) in enumerate(moves(rng, T)):
            x = policy.decide(state)
            cost = cost_at("regret" if seed == 0 else cost_move, x, point, G, t, rng)
            rows = tuple(
                AffineFunction(row.a, row.b + lift[t])
                for row in (constraint_at("violate" if lift[t] > 0 else "random", x, point, G, D, t, rng) for _ in range(k))
            )
            feedback = Round(cost, rows).reveal(x)
            state = policy.update(state, feedback)
            regret += float(cost.value(x) - cost.value(point))
            total += feedback.g
        bound = policy.bound(facts, T)
        for quantity, ratio in (("regret", regret / bound.regret), ("soft", float(total.max()) / bound.soft)):
            label = f"liakopoulos2019 adaptive window {quantity}"
            assert ratio <= 1.0, label


def test_neely2017_with_constraints_that_hold_on_average():
    """Independent constraints, satisfied at 0 in expectation only: regret and violation stay under the bound on average over the runs."""
    ball, T, runs = bridle.Ball(3), 400, 20
    totals = np.zeros(2)
    policy = make("neely2017", ball, T, 1.0, 2.0)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        state = policy.init(ball.center())
        for _ in range(T):
            x, a = policy.decide(state), np.array([0.8, 0.6, 0.0]) * rng.choice([0.5, 1.0])
            g, df = float(a @ x) + rng.choice([-1.0, 1.0]), -np.array([1.0, 0.0, 0.0])
            totals += [float(df @ x), g]
            state = policy.update(state, Feedback(x, 0.0, df, np.array([g]), a[None]))
    bound = policy.bound({"lipschitz": 1.0, "diameter": 2.0, "bound": 2.0, "feasible": np.zeros(3)}, T)
    assert totals[0] / runs <= bound.regret
    assert totals[1] / runs <= bound.soft


# --- cross-checks -----------------------------------------------------------------------------------------------------------------------


def replay(record, rounds: int, seed: int, k: int, quiet: bool = False, d: int = 3):
    """The decisions of a record on one stream of numbers; `quiet` never violates a constraint and never tells a gradient."""
    rng, state, xs = np.random.default_rng(seed), record.init(record.domain.center()), []
    for _ in range(rounds):
        x = record.decide(state)
        xs.append(x)
        df, g, dg = rng.standard_normal(d), rng.standard_normal(k), rng.standard_normal((k, d))
        state = record.update(state, Feedback(x, 0.0, df, *((0.0 * g, 0.0 * dg) if quiet else (g, dg))))
    return np.array(xs)


def test_liakopoulos2019_and_neely2017_are_one_recursion():
    ball = bridle.Ball(3)
    one, other = make("neely2017", ball, 100, 1.0, 2.0, 2), make("liakopoulos2019", ball, 100, 1.0, 2.0, 2, window=1)
    assert type(one.record) is type(other.record) is VirtualQueues
    np.testing.assert_array_equal(replay(one.record, 100, 0, 2), replay(other.record, 100, 0, 2))
    wider = make("liakopoulos2019", ball, 100, 1.0, 2.0, 2, window=4)
    assert (wider.record.V, wider.record.step) == pytest.approx((2.0 * one.record.V, 0.5 * one.record.step))


@pytest.mark.parametrize("clip", [False, True])
def test_sun2017_with_the_euclidean_mirror_is_mahdavi2012_with_one_constraint(clip):
    for T in (1, 7, 300):
        one, other = (make(form, bridle.Ball(3), T, 1.0, 3.0, clip=clip) for form in ("sun2017", "mahdavi2012"))
        np.testing.assert_allclose(replay(one.record, 200, 1, 1), replay(other.record, 200, 1, 1), rtol=0, atol=1e-12)


def test_the_worst_of_several_constraints_counts_for_one_multiplier():
    for form in ("jenatton2016", "sun2017"):
        record = make(form, bridle.Ball(3), 50, 1.0, 3.0).record
        rng, many = np.random.default_rng(0), record.init(np.zeros(3))
        one = many
        for _ in range(50):
            g, dg, df = rng.standard_normal(4), rng.standard_normal((4, 3)), rng.standard_normal(3)
            j, x = int(np.argmax(g)), record.decide(one)
            many = record.update(many, Feedback(x, 0.0, df, g, dg))
            one = record.update(one, Feedback(x, 0.0, df, g[j : j + 1], dg[j : j + 1]))
            np.testing.assert_array_equal(record.decide(many), record.decide(one))


@pytest.mark.parametrize("form", FORMS)
def test_without_constraints_it_is_descent_with_its_step_sizes(form):
    domain = bridle.Simplex(3) if "entropic" in form else bridle.Ball(3)
    record = make(form, domain, 60, 1.0, 2.0).record
    found = replay(record, 60, 2, 1, quiet=True)
    rng, x, weights = np.random.default_rng(2), domain.center(), np.ones(3)
    for t in range(1, 61):
        np.testing.assert_allclose(found[t - 1], x, rtol=0, atol=1e-12)
        df, _, _ = rng.standard_normal(3), rng.standard_normal(1), rng.standard_normal((1, 3))
        if "entropic" in form:
            weights *= np.exp(-record.step * df)
            x = weights / weights.sum()
            continue
        step = {
            "mahdavi2012": lambda: record.step,
            "jenatton2016": lambda t=t: 2.0 / t**record.exponent,
            "sun2017": lambda: 4.0 * record.step,
        }.get(FORMS[form][0], lambda: record.V * record.step)()
        x = domain.project(x - step * df)


def test_the_lower_bound_is_met_exactly_from_the_centre():
    """Each coordinate is used once there, so every policy that moves along gradients pays sqrt(T)/4 of both kinds."""
    problem = bridle.problem("lower-bound", horizon=100, seed=1)
    for form in FORMS:
        if "entropic" not in form and "mirror-prox" not in form:  # the one lives on the simplex, the other wants fixed constraints
            trace = bridle.play(make(form, problem.domain, 100, 1.0, problem.constants["bound"]), problem)
            assert (bridle.regret(trace), bridle.ccv(trace)) == pytest.approx((2.5, 2.5), rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_units_do_not_matter(form):
    """Values and lengths in other units give the same decisions in those units."""
    value, length, T = 37.0, 0.02, 120
    small, large = bridle.Ball(3), bridle.Ball(3, radius=length)
    if "entropic" in form:
        small, large = bridle.Simplex(3), bridle.Simplex(3, mass=length)
    D = small.diameter()
    one = make(form, small, T, 1.0, 1.7 * D).record
    two = make(form, large, T, value / length, 1.7 * value * D).record
    rng, s, u = np.random.default_rng(5), one.init(small.center()), two.init(large.center())
    for _ in range(T):
        x, y = one.decide(s), two.decide(u)
        np.testing.assert_allclose(y, length * x, rtol=0, atol=1e-12 * length)
        df, g, dg = rng.standard_normal(3), rng.standard_normal(1), rng.standard_normal((1, 3))
        s = one.update(s, Feedback(x, 0.0, df, g, dg))
        u = two.update(u, Feedback(y, 0.0, value / length * df, value * g, value / length * dg))


def test_the_papers_own_parameters_can_be_set():
    T, ball = 400, bridle.Ball(2)
    made = make("neely2017", ball, T, 1.0, 2.0, V=sqrt(T), step=0.5 / T).record
    assert (made.V, 0.5 / made.step) == pytest.approx((sqrt(T), T))
    bound = make("neely2017", ball, T, 1.0, 2.0, V=sqrt(T), step=0.5 / T).bound(
        {"lipschitz": 1.0, "diameter": 2.0, "bound": 2.0, "feasible": np.zeros(2)}, T
    )
    assert bound.regret == pytest.approx(sqrt(T) * (4.0 + 16.0 / 2 + 1 / 4))
    eta = 1 / sqrt(T)
    made = make("mahdavi2012", ball, T, 1.0, 2.0, step=eta, diameter=1.0).record
    assert (made.step, made.dual, made.theta) == pytest.approx((eta, eta, 4 * eta))
    made = make("sun2017", ball, T, 1.0, 2.0, step=eta, diameter=1.0).record
    assert (made.step, made.mirror.width) == (eta, 1.0)
    made = make("liakopoulos2019", ball, T, 1.0, 2.0, window=4, V=30.0, step=0.5 / (30 * sqrt(T))).record
    assert (made.V, 0.5 / made.step) == pytest.approx((30.0, 600.0))


def test_mirror_prox_with_its_dual_step_untied_has_the_better_rates():
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": 2.0, "feasible": np.zeros(2), "time_varying": False, "affine": True}
    bounds = []
    for T in (10**4, 10**8):
        policy = make("mahdavi2012 mirror-prox", bridle.Ball(2), T, 1.0, 2.0, 2, step=2.0 / sqrt(2 * T), diameter=2.0 * sqrt(2 / T))
        bounds.append(policy.bound(facts, T))
    assert bounds[0].regret == pytest.approx(2.0 * sqrt(2 * 10**4))
    assert bounds[1].soft / bounds[0].soft == pytest.approx(10.0, rel=0.05)  # T^{1/4}
    for seed, kind in product(range(3), ("ball", "box")):
        at = adversarial_games.stage(kind, 4, 2, 300, seed, fixed=True)
        D = at.constants["diameter"]
        more = {"step": D / (at.G * sqrt(600)), "diameter": D * sqrt(2 / 300)}
        check_within("mahdavi2012 mirror-prox untied", make("mahdavi2012 mirror-prox", at.domain, 300, at.G, 1.0, 2, **more), at)


# --- engines and sweeps -----------------------------------------------------------------------------------------------------------------


def problem_for(form: str, where: str, T: int, k: int = 1):
    if form.endswith("prox"):
        return bridle.problem("fixed", horizon=T, dim=5, domain=where)
    return bridle.problem("halfspaces", horizon=T, dim=5, domain=where, constraints=k, seed=3)


@pytest.mark.compiles
@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("form", "where"), [(f, w) for w in ("ball", "box", "simplex") for f in FORMS if "entr" not in f or w == "simplex"]
)
def test_both_engines_agree(form, where):
    T, k = 2_500, 1 if form.endswith("prox") else 3
    problem = problem_for(form, where, T, k)
    for clip in (False, True) if form in CLIPPED else (False,):
        policy = make(form, problem.domain, T, 1.0, problem.constants["bound"], k, **({"clip": clip} if clip else {}))
        one, two = (bridle.play(policy, problem, engine=engine, keep="decisions") for engine in ("python", "jax"))
        for name in ("decisions", "costs", "values"):
            a, b = getattr(one, name), getattr(two, name)
            assert np.abs(a - b).max() <= 1e-12 * max(np.abs(a).max(), problem.domain.diameter())


SWEEPS: list[tuple[str, dict[str, list[float]]]] = [
    ("mahdavi2012", {"step": [0.01, 0.02, 0.05]}),
    ("mahdavi2012", {"T": [300, 400, 500], "G": [1.0, 1.5, 2.0]}),
    ("mahdavi2012 mirror-prox", {"step": [0.01, 0.05, 0.1]}),
    ("jenatton2016", {"exponent": [0.3, 0.5, 0.8]}),
    ("sun2017", {"step": [0.005, 0.01, 0.02]}),
    ("sun2017 entropic", {"F": [1.0, 2.0, 4.0]}),
    ("neely2017", {"V": [1.0, 10.0, 100.0]}),
    ("liakopoulos2019", {"window": [1.0, 2.0, 7.0]}),
]


@pytest.mark.parametrize("engine", ["python", "jax"])
@pytest.mark.parametrize(("form", "swept"), SWEEPS)
def test_a_sweep_is_the_loop_over_its_values(engine, form, swept):
    T, k = 300, 1 if form.endswith("prox") else 2
    problem = problem_for(form, "simplex" if "entropic" in form else "ball", T, k)

    def chosen(values):
        return make(form, problem.domain, **{"T": T, "G": 1.0, "F": problem.constants["bound"], "k": k, **values})

    policy = chosen(swept)
    together = bridle.play(policy, problem, engine=engine, keep="decisions")
    bounds = policy.bound(problem.constants, T)
    for i in range(3):
        alone = chosen({name: values[i] for name, values in swept.items()})
        single = bridle.play(alone, problem, engine=engine, keep="decisions")
        np.testing.assert_allclose(together.decisions[:, i], single.decisions, rtol=0, atol=1e-12)
        one = alone.bound(problem.constants, T)
        assert (bounds.regret[i], bounds.soft[i]) == pytest.approx((one.regret, one.soft))


def test_many_seeds_are_the_loop_over_seeds():
    for form in FORMS:
        problem = problem_for(form, "simplex" if "entropic" in form else "ball", 100)
        policy = make(form, problem.domain, 100, 1.0, problem.constants["bound"])
        together = bridle.play(policy, problem, seed=[4, 0, 9], keep="decisions")
        for i, seed in enumerate((4, 0, 9)):
            single = bridle.play(policy, problem.with_seed(seed), keep="decisions")
            np.testing.assert_allclose(together.decisions[:, i], single.decisions, rtol=0, atol=1e-12)


def test_log_weights_neither_overflow_nor_vanish():
    """Weights that differ by e^5000 leave the simplex's corner again when the costs turn."""
    record = make("sun2017 entropic", bridle.Simplex(3), 10, 1.0, 1.0, step=1.0).record
    state = record.init(np.full(3, 1 / 3))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for sign in (1.0, -1.0, -1.0):
            df = sign * np.array([5000.0, 0.0, -5000.0])
            state = record.update(state, Feedback(record.decide(state), 0.0, df, np.zeros(1), np.zeros((1, 3))))
            assert record.decide(state).sum() == pytest.approx(1.0)
            if sign > 0:
                np.testing.assert_array_equal(record.decide(state), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(record.decide(state), [1.0, 0.0, 0.0])


# --- what users see ---------------------------------------------------------------------------------------------------------------------


def test_policies_are_made_for_a_problem_and_checked_against_it():
    problem = bridle.problem("halfspaces", horizon=50, dim=3, constraints=2)
    for name in ("mahdavi2012", "jenatton2016", "sun2017", "neely2017", "liakopoulos2019"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trace = bridle.play(bridle.policy_for(name, problem), problem)
        assert bridle.soft_violation(trace) <= trace.policy.bound(problem.constants, 50).soft
        if name in PER_CONSTRAINT:
            with pytest.raises(bridle.InputError, match="the policy was made for 5, the problem reveals 2"):
                bridle.play(bridle.policy_for(name, problem, constraints=5), problem)


@pytest.mark.parametrize(
    ("form", "parameters", "message"),
    [
        ("mahdavi2012", {"form": "dual"}, "unknown form 'dual'; known: gradient, mirror-prox"),
        ("mahdavi2012", {"clip": "yes"}, "clip must be true or false, not 'yes'"),
        ("mahdavi2012 mirror-prox", {"clip": True}, "clip is for form='gradient' only"),
        ("mahdavi2012", {"step": 0.0}, "step must be above 0, not 0.0"),
        ("mahdavi2012", {"k": 1.5}, "constraints must be a whole number, not 1.5"),
        ("jenatton2016", {"exponent": 1.0}, "exponent must be below 1, not 1.0"),
        ("jenatton2016", {"exponent": -0.5}, "exponent must be above 0, not -0.5"),
        ("sun2017", {"mirror": "kl"}, "unknown mirror 'kl'; known: entropic, euclidean"),
        ("sun2017", {"mirror": "entropic"}, "mirror 'entropic' is for the simplex, not for BallSet"),
        ("sun2017", {"F": float("nan")}, "bound must be finite, not nan"),
        ("neely2017", {"V": -1.0}, "V must be above 0, not -1.0"),
        ("neely2017", {"T": 0}, "horizon must be above 0, not 0"),
        ("neely2017", {"clip": 2}, "clip must be true or false, not 2"),
        ("liakopoulos2019", {"window": 0}, "window must be above 0, not 0"),
        ("liakopoulos2019", {"window": 0.5}, "window must be between 1 and the horizon, not 0.5"),
        ("liakopoulos2019", {"window": 11}, "window must be between 1 and the horizon, not 11"),
    ],
)
def test_bad_parameters_are_one_clear_error(form, parameters, message):
    with pytest.raises(bridle.InputError) as caught:
        make(form, bridle.Ball(2), **{"T": 10, "G": 1.0, "F": 2.0, **parameters})
    assert message in str(caught.value)

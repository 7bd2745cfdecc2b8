"""Certificates: never below the truth, never a contradiction that is not there; and alarms, each once."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Feedback
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.session.certificates import clocks, feasibility
from bridle.session.certificates import search as proof_search
from bridle.session.certificates.certificate import regret_bound, regret_of_any
from bridle.session.certificates.ledger import Ledger
from helpers.inside import proved
from helpers.instances import constraint_at, cost_at, instances, make_domain, moves
from helpers.save_files import contents, put_together

POLICIES = ("anytime", "plain anytime", "sinha2024", "practice", "adagrad")


def make(name: str, domain: Any, G: float, T: int) -> Any:
    given: dict[str, Any] = {"anytime": {}, "plain anytime": {"halfspace": False}, "adagrad": {}}.get(name, {"horizon": T, "lipschitz": G})
    if name == "practice":
        given["preset"] = "practice"
    return bridle.policy({"plain anytime": "anytime", "practice": "sinha2024"}.get(name, name), domain, **given)


def play(session: bridle.Session, domain: Any, feasible: np.ndarray, G: float, rng: np.random.Generator, rounds: int, k: int) -> list[Any]:
    """An opponent that adapts, and keeps every constraint satisfied at `feasible`; gives what was played: x, cost, constraints."""
    seen = []
    for t, (cost_move, move) in enumerate(moves(rng, rounds), 1):
        x = session.decide()
        cost: Any = cost_at(cost_move, x, feasible, G, t, rng)
        if cost_move == "curved":
            cost = RoundQuadratic(G / domain.diameter(), domain.project(x + rng.standard_normal(len(x))), np.zeros(len(x)), 0.0)
        limits = [constraint_at(move, x, feasible, G, domain.diameter(), t, rng) for _ in range(k)]
        session.observe(float(cost.value(x)), cost.grad(x), [float(g.value(x)) for g in limits], [g.grad(x) for g in limits])
        seen.append((x, cost, limits))
    return seen


def regrets(seen: list[Any], feasible: np.ndarray, domain: Any, rng: np.random.Generator) -> list[float]:
    """The true regret against the feasible point, and against others that satisfy every constraint of the stream."""
    others = [
        domain.project(feasible + 0.3 * domain.diameter() * rng.standard_normal(len(feasible)) * 10.0 ** rng.uniform(-3, 0))
        for _ in range(30)
    ]
    fine = [u for u in others if all(g.value(u) <= 0.0 for _, _, limits in seen for g in limits)]
    return [sum(float(cost.value(x)) - float(cost.value(u)) for x, cost, _ in seen) for u in (feasible, *fine)]


# --- regret ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=150)
@given(instances(), st.sampled_from(POLICIES), st.integers(1, 3), st.integers(1, 70))
def test_the_certified_regret_is_never_below_that_of_a_feasible_action(instance, name, k, rounds):
    """No tolerance: the certificate allows for rounding by itself."""
    domain, feasible, G, rng = instance
    session = bridle.Session(make(name, domain, G, rounds))
    seen = play(session, domain, feasible, G, rng, rounds, k)
    found = session.certificate()
    assert found.conflict is None
    assert proved(session).complete().absurd() is None
    for truth in regrets(seen, feasible, domain, rng):
        assert found.regret >= truth
        assert found.regret_any >= truth
        assert (
            found.regret_algorithm is None or found.regret_algorithm >= truth - 1e-9 * abs(truth) - 1e-12 * G * domain.diameter() * rounds
        )
    assert found.regret <= found.regret_any


def test_on_short_streams_the_certificate_is_below_the_bound_by_far():
    """What the certificates are for: regret is known almost exactly."""
    problem = bridle.problem("halfspaces", horizon=2000, seed=1, dim=5)
    policy = bridle.policy("anytime", problem.domain)
    session = bridle.Session(policy)
    trace = bridle.play(policy, problem)
    for block in trace.blocks():
        rows = zip(block.cost.a, block.cost.b, block.constraints[0].a, block.constraints[0].b, strict=True)
        for c, c0, a, a0 in rows:
            x = session.decide()
            session.observe(float(c @ x + c0), c, float(a @ x + a0), a)
    found, truth = session.certificate(), bridle.regret(trace)
    assert truth <= found.regret <= truth + 0.05 * abs(truth) + 2.0
    assert found.regret < 0.2 * found.bound.regret
    assert found.regret <= found.regret_algorithm
    assert found.bound.regret is not None
    assert found.ccv <= found.bound.ccv
    assert found.squared <= found.squared_bound


@pytest.mark.parametrize("kind", ["ball", "box", "simplex", "l1", "cut-box", "product", "spectrahedron", "polyhedron"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_and_places_do_not_matter(kind, scale):
    """The bound scales with the costs, for sets far from the origin too."""
    rng = np.random.default_rng(3)
    domain = bridle.Polyhedron(np.vstack([np.eye(3), -np.eye(3)]), np.ones(6)) if kind == "polyhedron" else make_domain(kind, 3, 1.0, rng)
    feasible = domain.project(domain.center() + 0.1 * rng.standard_normal(domain.dim))
    session = bridle.Session(make("anytime", domain, scale, 60))
    seen = play(session, domain, feasible, scale, rng, 60, 1)
    found = session.certificate().regret
    assert all(found >= truth for truth in regrets(seen, feasible, domain, rng))
    assert abs(found) <= 60.0 * scale * domain.diameter()


def test_the_sum_alone_already_bounds_regret():
    """Without kept halfspaces: the one-dimensional minimisation, checked against a fine grid."""
    rng, ledger, feasible = np.random.default_rng(0), Ledger(bridle.Ball(3), 3), np.array([-0.3, 0.0, 0.0])
    where = ledger.domain
    for t in range(1, 200):
        x = where.domain.project(rng.standard_normal(3))
        a, c = rng.standard_normal(3), rng.standard_normal(3) - np.eye(3)[0]
        ledger.take(Feedback(x, 0.0, c, np.array([a @ (x - feasible)]), a[None]), t)
    sums, limits, none = ledger.counted.sums, ledger.counted.limits, (np.zeros((0, 3)), np.zeros(0))
    grid = [sums.c + l * limits.b - where.least(sums.a + l * limits.A) for l in np.linspace(0.0, 10.0, 20_001)]
    found = regret_bound(where, sums, ledger.curved, limits, *none).regret
    assert found <= min(grid) + 1e-2 * abs(min(grid))
    assert min(grid) <= regret_of_any(where, sums, ledger.curved)


def test_without_a_linear_minimum_there_is_a_reason_and_no_number():
    class Vague:
        dim = 2

        def project(self, x):
            return np.clip(x, -1.0, 1.0)

        def diameter(self):
            return 8.0**0.5

        def center(self):
            return np.zeros(2)

        def contains(self, x, tolerance=1e-9):
            return True

    session = bridle.Session(bridle.policy("anytime", Vague()))
    session.observe(0.1, [1.0, 0.0], 0.2, [0.0, 1.0])
    found = session.certificate()
    assert found.regret is None
    assert "linear_min" in found.why
    assert found.violated == 1
    session.observe(0.1, [1.0, 0.0], 20.0, [0.0, 1.0])  # farther away than the domain is wide
    assert session.certificate().conflict.rounds == (2,)
    assert "linear_min" in session.report()


@pytest.mark.parametrize("what", ["linear_min", "project"])
def test_a_domain_whose_solver_fails_costs_a_certificate_and_no_round(what):
    class Moody:
        """A ball whose parts can be put out of order; the policy has one of its own."""

        ball = bridle.Ball(2)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.ball, name)

        def project(self, x: Any) -> Any:
            return self.ball.project(x)

        def linear_min(self, v: Any) -> Any:
            return self.ball.linear_min(v)

    def fail(*_: Any) -> Any:
        raise RuntimeError("the solver stopped")

    domain = Moody()
    session = bridle.Session(bridle.policy("sinha2024", bridle.Ball(2), horizon=300, lipschitz=1.0), domain=domain)
    setattr(domain, what, fail)
    for t in range(150):
        a = np.array([1.0, 0.0]) if t % 2 else np.array([-0.6, 0.8])
        session.observe(0.1, [0.0, 1.0], float(a @ session.decide()) + 0.1, a)
    assert session.rounds == 150
    found = session.certificate()
    assert (found.regret is None) == (what == "linear_min")
    assert session.report()


def test_numbers_too_large_to_add_up_give_a_reason():
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(2, radius=1e250)))
    for _ in range(3):
        session.observe(0.1, [1e70, 0.0], -1.0, [0.0, 1.0])
    found = session.certificate()
    assert found.regret is None
    assert "too large" in found.why


def test_what_a_variants_proof_does_not_bound_is_not_claimed():
    """Squared distances are bounded by the plain form alone; with a margin or curved steps the proof is about something else."""
    for about, squares, own in (
        ({}, True, True),
        ({"halfspace": False}, True, True),
        ({"form": "value", "lipschitz": 2.0}, False, True),
        ({"form": "self-bounding", "smoothness": 2.0}, False, True),
        ({"margin": 0.1}, False, False),
        ({"modulus": 1.0}, False, False),
    ):
        session = bridle.Session(bridle.policy("anytime", bridle.Ball(2), **about))
        for _ in range(5):
            session.observe(0.1, [1.0, 0.0], 0.01, [0.0, 1.0])
        found = session.certificate()
        assert (found.squared_bound is not None, found.regret_algorithm is not None) == (squares, own), about
        assert found.regret is not None


@pytest.mark.slow
def test_many_dimensions_need_little_room_and_no_programs(monkeypatch):
    monkeypatch.setattr(feasibility.OuterPolyhedron, "solve", lambda *_: pytest.fail("a program was solved"))
    dim = 20_000
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(dim)))
    for _ in range(70):
        x = session.decide()
        a = np.eye(1, dim, session.rounds % 30)[0]
        session.observe(float(x[0]), a, float(a @ x) + 0.01, a)
    assert proved(session).ledger.halfspaces.normals.nbytes <= 3_200_000
    assert len(proved(session).ledger.halfspaces.sources) == proved(session).ledger.halfspaces.room == 20
    found = session.certificate()
    assert found.regret <= found.regret_any
    assert found.conflict is None


def test_a_moving_feasible_action_is_not_compared_with():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2), drift=1.0))
    for t in range(200):
        sign = 1.0 if t % 2 else -1.0
        session.observe(0.0, [1.0, 0.0], 0.5 - sign * session.decide()[1], [0.0, -sign])  # contradictory, as it may be
    found = session.certificate()
    assert found.regret is None
    assert "drift" in found.why
    assert found.regret_any is not None
    assert found.conflict is None


# --- no effect on decisions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_certificates_have_no_effect_on_decisions(name):
    domain, rng = bridle.Ball(4), np.random.default_rng(0)
    both = [bridle.Session(make(name, domain, 1.0, 300), certify=certify) for certify in (True, False)]
    for t in range(300):
        a, c = rng.uniform(-0.5, 0.5, (2, 4))
        for session in both:
            x = session.decide()
            session.observe(float(c @ x), c, float(a @ x) - 0.05, a)
            if t % 50 == 0 and session is both[0]:
                session.certificate()
        assert both[0].decide().tobytes() == both[1].decide().tobytes()
    with pytest.raises(bridle.InputError, match="certify was False"):
        both[1].certificate()


# --- infeasibility --------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=60)
@given(instances(), st.sampled_from(POLICIES), st.integers(1, 3))
def test_a_feasible_stream_is_never_called_infeasible(instance, name, k):
    """Also where one point alone is feasible: every constraint of these moves goes right through it."""
    domain, feasible, G, rng = instance
    session = bridle.Session(make(name, domain, G, 200))
    for t in range(1, 130):
        x = session.decide()
        cost = cost_at(str(rng.choice(["random", "regret", "violate"])), x, feasible, G, t, rng)
        limits = [constraint_at(str(rng.choice(["violate", "curved"])), x, feasible, G, domain.diameter(), t, rng) for _ in range(k - 1)]
        a = rng.standard_normal(len(x))
        a *= G / np.linalg.norm(a) * 10.0 ** rng.uniform(-6.0, 0.0)
        limits.append(AffineFunction(a, -float(a @ feasible)))
        session.observe(float(cost.value(x)), cost.grad(x), [float(g.value(x)) for g in limits], [g.grad(x) for g in limits])
    found = session.certificate()
    assert found.conflict is None
    assert "InfeasibleWarning" not in dict(found.alarms)


@pytest.mark.parametrize("name", ["anytime", "sinha2024"])
def test_single_precision_is_no_contradiction_if_the_session_is_told(name):
    rng, feasible = np.random.default_rng(1), np.array([0.3, -0.2, 0.1])
    sessions = {precision: bridle.Session(make(name, bridle.Ball(3), 1.0, 400), tolerance=precision) for precision in (1e-9, 1e-5)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.InfeasibleWarning)
        for _ in range(400):
            a = rng.standard_normal(3)
            a = np.float32(a / np.linalg.norm(a) * 0.999)
            for session in sessions.values():
                x = np.float32(session.decide())
                session.observe(float(a[0] * x[0]), [float(a[0]), 0.0, 0.0], a @ x - a @ np.float32(feasible), a)
    assert sessions[1e-5].certificate().conflict is None
    assert sessions[1e-9].certificate().conflict is not None  # it takes seven digits for nine


def contradiction(kind: str, x: np.ndarray, t: int, D: float, rng: np.random.Generator) -> AffineFunction:
    """Halfspaces around the middle of a domain of diameter D that have no point in common, or none in the domain."""
    d = len(x)
    if kind == "pair":
        a = np.eye(d)[0] * (1.0 if t % 2 else -1.0)
        return AffineFunction(a, 0.1 * D)
    if kind == "corner":  # each meets the domain, and they meet each other, but not in it
        a = np.eye(d)[t % d]
        return AffineFunction(a, 0.45 * D)
    a = rng.standard_normal(d)  # all around: some d + 1 of them contradict each other
    return AffineFunction(a / np.linalg.norm(a), 0.1 * D)


def infeasible_by_an_independent_solver(domain: Any, lines: list[AffineFunction]) -> bool:
    import cvxpy as cp

    u, s = cp.Variable(domain.dim), cp.Variable()
    inside = [cp.norm(u - domain.middle) <= domain.radius] if hasattr(domain, "radius") else [u >= domain.low, u <= domain.high]
    program = cp.Problem(cp.Minimize(s), [*inside, *[line.a @ u + line.b <= s for line in lines]])
    program.solve(solver=cp.CLARABEL)
    return float(s.value) > 1e-7


@pytest.mark.parametrize("name", ["anytime", "plain anytime", "sinha2024", "practice"])
@pytest.mark.parametrize(("where", "kind"), [("ball", "pair"), ("ball", "corner"), ("ball", "around"), ("box", "pair"), ("box", "around")])
def test_a_planted_contradiction_is_proved_within_a_hundred_rounds(kind, name, where):
    """And nothing is proved before it is planted."""
    d, T, planted = 4, 400, 200
    domain = bridle.Ball(d) if where == "ball" else bridle.Box(-0.6, 0.6, dim=d)
    rng, D = np.random.default_rng(5), domain.diameter()
    session = bridle.Session(make(name, domain, 1.0, T))
    lines: dict[int, AffineFunction] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for t in range(1, T + 1):
            x = session.decide()
            if t <= planted:
                a = rng.standard_normal(d)
                line = AffineFunction(a / np.linalg.norm(a), -0.02 * D)
            else:
                line = contradiction(kind, x, t, D, rng)
            lines[t] = line
            c = rng.standard_normal(d) / 2.0
            session.observe(float(c @ x), c, float(line.value(x)), line.a)
            ledger = proved(session).ledger
            if ledger.conflict is not None and not ledger.busy:  # and made as small as it gets
                break
            assert t <= planted + 100
    found = session.certificate()
    assert planted < found.conflict.found <= planted + 100
    named = [lines[t] for t in found.conflict.rounds]
    assert infeasible_by_an_independent_solver(domain, named)
    for i in range(len(named)):
        assert not infeasible_by_an_independent_solver(domain, named[:i] + named[i + 1 :])
    assert len(named) <= d + 1
    assert abs(sum(found.conflict.weights) - 1.0) <= 1e-12
    assert found.regret is None
    assert "no action" in found.why
    mine = [w.message for w in caught if w.category is bridle.InfeasibleWarning]
    assert len(mine) == 1
    assert set(mine[0].rounds) >= set(found.conflict.rounds)  # it was made smaller since
    assert infeasible_by_an_independent_solver(domain, [lines[t] for t in mine[0].rounds])
    assert mine[0].margin > 0.0
    assert mine[0].round == found.conflict.found
    assert f"no action satisfies the constraints of rounds {found.conflict.rounds[0]}" in session.report()


def test_constraints_of_one_round_that_contradict_each_other_are_found():
    """Also where the policy always ends up on the same side, so that one of the two is never violated again."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), x1=[0.7, 0.0])

    def record(session, t):
        x = session.decide()
        session.observe(0.0, [0.0, 1.0], [x[0] + 0.5, 0.5 - x[0]], [[1.0, 0.0], [-1.0, 0.0]])

    (warning,) = alarms(session, 100, record)
    assert isinstance(warning, bridle.InfeasibleWarning)
    conflict = session.certificate().conflict
    assert sorted(set(conflict.constraints)) == [0, 1]
    assert conflict.margin == pytest.approx(0.5, abs=1e-6)


def test_a_constraint_that_no_action_can_satisfy_is_a_proof_by_itself():
    for g, dg in ((1.0, [0.0, 0.0]), (5.0, [1.0, 0.0])):
        session = bridle.Session(bridle.policy("adagrad", bridle.Ball(2)))
        session.observe(0.0, [1.0, 0.0], -1.0, [1.0, 0.0])
        session.observe(0.0, [1.0, 0.0], g, dg)
        assert session.certificate().conflict.rounds == (2,)
        assert "the constraint of round 2" in session.report()
        assert session.bound().regret is None
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(2)))
    session.observe(0.0, [1.0, 0.0], 0.1 + 0.2 - 0.3, [0.0, 0.0])  # rounding is not a violation
    assert session.certificate().conflict is None
    session.observe(0.0, [1.0, 0.0], [0.5, 0.1], [[1.0, 0.0], [0.0, 0.0]])  # beside another that is farther away
    assert (session.certificate().conflict.rounds, session.certificate().conflict.constraints) == ((2,), (1,))


def test_the_sum_of_all_violated_rounds_is_a_proof_too(monkeypatch):
    """Where too few halfspaces are kept to see a contradiction, all of them added up still show it."""
    monkeypatch.setattr(feasibility, "RECENT", 1)
    monkeypatch.setattr(feasibility, "ACTIVE", 0)
    ledger = Ledger(bridle.Ball(2), 2)
    for t in range(1, 200):
        sign = 1.0 if t % 2 else -1.0
        ledger.take(Feedback(np.zeros(2), 0.0, np.zeros(2), np.array([0.3]), sign * np.eye(1, 2)), t)
    found = ledger.search(200, ranking=False)
    assert found.rounds == ()
    assert 0.0 < found.margin <= 0.3


def test_witness_and_programs_agree_about_random_halfspaces():
    """A search proves a contradiction exactly where an independent solver finds none to meet them, up to a thin border."""
    rng, domain = np.random.default_rng(0), bridle.Ball(3)
    where, outcomes = feasibility.centered(domain, 3).boxed(), set()
    for _ in range(60):
        m = int(rng.integers(2, 12))
        N = rng.standard_normal((m, 3))
        N /= np.linalg.norm(N, axis=1, keepdims=True)
        levels = rng.uniform(-0.6, 0.2, m)
        begun = proof_search.begin(where, N, levels, start=None if rng.random() < 0.5 else domain.center())
        found = proof_search.advance(where, begun, proof_search.Work())
        empty = infeasible_by_an_independent_solver(domain, [AffineFunction(n, -b) for n, b in zip(N, levels, strict=True)])
        assert (found.depth > 0.0) == empty
        assert (found.witness is not None) == (not empty)
        if found.witness is not None:
            assert domain.contains(found.witness)
            assert (N @ found.witness - levels).max() <= 3e-7
        outcomes.add(empty)
    assert outcomes == {True, False}


# --- counts, saving, wording ----------------------------------------------------------------------------------------------------------


def test_violations_above_each_level_are_counted():
    values = [0.5, 0.05, 0.2, -1.0, 0.1, 3.0]
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(2, radius=10.0)), levels=[0.1, 1.0])
    for g in values:
        session.observe(0.0, [1.0, 0.0], g, [0.0, 1.0])
    found = session.certificate()
    assert found.above == ((0.1, 3), (1.0, 1))
    assert found.violated == 5
    assert found.squared == pytest.approx(sum(g * g for g in values if g > 0.0))
    assert "5 rounds violated a constraint (3 above 0.1, 1 above 1)" in session.report()
    for bad in ([0.0], [1.0, 0.5], ["a"], 3.0):
        with pytest.raises(bridle.InputError, match="levels must"):
            bridle.Session(bridle.policy("adagrad", bridle.Ball(2)), levels=bad)


def flat(certificate: Any) -> list[Any]:
    return [(f.name, v.tobytes() if isinstance(v := getattr(certificate, f.name), np.ndarray) else repr(v)) for f in fields(certificate)]


@pytest.mark.parametrize("contradictory", [False, True])
@pytest.mark.filterwarnings("ignore::bridle.core.InfeasibleWarning")
def test_certificates_are_saved_and_go_on_bit_for_bit(contradictory, tmp_path):
    rng = np.random.default_rng(2)
    stream = [
        (rng.standard_normal(3) / 2, rng.standard_normal(3) / 2, rng.uniform(-0.1, 0.3 if contradictory else 0.0)) for _ in range(300)
    ]
    whole, half = (bridle.Session(make("anytime", bridle.Ball(3), 1.0, 300), levels=[0.01, 0.3]) for _ in range(2))

    def feed(session, part):
        for c, a, b in part:
            x = session.decide()
            session.observe(float(c @ x), c, float(a @ x + b), a)

    feed(whole, stream)
    feed(half, stream[:150])
    half.save(tmp_path / "a.npz")
    loaded = bridle.Session.load(tmp_path / "a.npz")
    assert flat(loaded.certificate()) == flat(half.certificate())
    assert loaded.report() == half.report()
    feed(loaded, stream[150:])
    assert flat(loaded.certificate()) == flat(whole.certificate())
    assert (loaded.certificate().conflict is not None) == contradictory
    loaded.save(tmp_path / "b.npz")
    whole.save(tmp_path / "c.npz")
    with np.load(tmp_path / "b.npz") as b, np.load(tmp_path / "c.npz") as c:
        assert b.files == c.files
        assert all(b[name].tobytes() == c[name].tobytes() for name in b.files)


@pytest.mark.parametrize("name", ["ledger.0.c", "ledger.cuts.normals", "late.numbers", "late.copies", "late.shared"])
def test_a_file_whose_new_parts_are_damaged_is_refused(name, tmp_path):
    session = bridle.Session(make("anytime", bridle.Ball(2), 1.0, 100))
    session.observe(0.1, [1.0, 0.0], 0.1, [0.0, 1.0])
    session.save(tmp_path / "a.npz")
    header, arrays = contents(tmp_path / "a.npz")
    for change in (None, np.zeros((7, 7, 7))):
        broken = {key: value for key, value in arrays.items() if key != name} | ({} if change is None else {name: change})
        put_together(tmp_path / "b.npz", header, broken)
        with pytest.raises(bridle.InputError, match=r"b\.npz: it (is damaged|does not fit)") as wrong:
            bridle.Session.load(tmp_path / "b.npz")
        assert "\n" not in str(wrong.value)


def test_a_session_without_certificates_loads_without_them(tmp_path):
    session = bridle.Session(make("anytime", bridle.Ball(2), 1.0, 100), certify=False)
    session.observe(0.1, [1.0, 0.0], 0.1, [0.0, 1.0])
    session.save(tmp_path / "a.npz")
    with pytest.raises(bridle.InputError, match="certify was False"):
        bridle.Session.load(tmp_path / "a.npz").report()


def test_the_report_says_what_is_known():
    session = bridle.Session(make("anytime", bridle.Ball(2), 1.0, 100))
    assert "0 rounds were observed" in session.report()
    for _ in range(100):
        session.step(bridle.Affine([-1.0, 0.0]), [bridle.Affine([1.0, 0.0], -0.5)])
    said = session.report()
    assert "100 rounds were observed" in said
    assert "no feasible action would have saved more than 0.5" in said
    assert "Feasible: one action satisfies" in said
    assert "Promise: by the policy's theorem" in said
    session = bridle.Session(make("anytime", bridle.Ball(2), 1.0, 100))
    session.observe(0.0, [1.0, 0.0], 0.5, [-1.0, 0.0])
    assert "every feasible action would have cost at least 0.5 more" in session.report()


# --- alarms ---------------------------------------------------------------------------------------------------------------------------


def alarms(session: bridle.Session, rounds: int, record: Any) -> list[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for t in range(rounds):
            record(session, t)
    assert all(w.filename == __file__ for w in caught)
    return [w.message for w in caught]


def test_a_gradient_longer_than_declared_is_one_warning_with_its_figures():
    def record(session, t):
        session.observe(0.0, [2.0 if t > 3 else 0.5, 0.0], -1.0, [0.0, 1.0])

    session = bridle.Session(bridle.policy("sinha2024", bridle.Ball(2), horizon=1000, lipschitz=1.0))
    (warning,) = alarms(session, 5 * clocks.ASSUMPTIONS_EVERY, record)
    assert isinstance(warning, bridle.LipschitzWarning)
    assert isinstance(warning, bridle.BridleWarning)
    assert (warning.declared, warning.observed, warning.round) == (1.0, 2.0, clocks.ASSUMPTIONS_EVERY)
    assert warning.figures == {"declared": 1.0, "observed": 2.0}
    assert "length 2 was seen" in str(warning)
    assert ("LipschitzWarning", clocks.ASSUMPTIONS_EVERY) in session.certificate().alarms
    assert "Alarms: LipschitzWarning in round 64." in session.report()


def test_only_the_constraints_count_where_only_they_were_declared():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2), form="value", lipschitz=1.0))
    assert alarms(session, 100, lambda s, t: s.observe(0.0, [5.0, 0.0], -1.0, [0.0, 1.0])) == []
    (warning,) = alarms(session, 100, lambda s, t: s.observe(0.0, [5.0, 0.0], -1.0, [0.0, 1.5]))
    assert warning.observed == 1.5


def test_alarms_are_remembered_in_the_file(tmp_path):
    def record(session, t):
        session.observe(0.0, [2.0, 0.0], -1.0, [0.0, 1.0])

    session = bridle.Session(bridle.policy("sinha2024", bridle.Ball(2), horizon=1000, lipschitz=1.0))
    assert len(alarms(session, 100, record)) == 1
    session.save(tmp_path / "a.npz")
    assert alarms(bridle.Session.load(tmp_path / "a.npz"), 200, record) == []


class Boastful(NamedTuple):
    """A policy whose proof says that every feasible action was beaten by far more than any action can lose."""

    domain: Any

    def init(self, x1):
        return (x1,)

    def decide(self, state):
        return state[0]

    def update(self, state, feedback):
        return state

    def certified_regret(self, state):
        return -1e6


def test_a_run_that_contradicts_the_policys_own_proof_is_an_alarm():
    """A1: the proof's upper bound on regret is below the least that any action's regret can be."""
    (warning,) = alarms(bridle.Session(Boastful(bridle.Ball(2))), 200, lambda s, t: s.observe(0.0, [1.0, 0.0]))
    assert isinstance(warning, bridle.AssumptionWarning)
    assert (warning.regret, warning.round) == (-1e6, clocks.ASSUMPTIONS_EVERY)
    assert warning.least == pytest.approx(-clocks.ASSUMPTIONS_EVERY)


@pytest.mark.parametrize("policy", ["anytime", "sinha2024"])
def test_on_a_feasible_stream_nothing_is_alarming(policy):
    problem = bridle.problem("halfspaces", horizon=600, seed=0, dim=4)
    session = bridle.Session(bridle.policy_for(policy, problem))
    trace = bridle.play(session.policy, problem)

    def record(session, t):
        block = next(iter(trace.blocks()))
        x, a, b = session.decide(), block.constraints[0].a[t], block.constraints[0].b[t]
        session.observe(float(block.cost.a[t] @ x), block.cost.a[t], float(a @ x + b), a)

    assert alarms(session, 600, record) == []


def test_nothing_ever_comes_out_of_decide():
    """Whatever was fed, decide only gives a decision."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in range(200):
            session.observe(0.0, [1e60 if t % 7 else 0.0, 1.0], 10.0 ** (t % 60 - 30), [1e-20 if t % 3 else 0.0, 1e40])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(session.decide()).all()
        session.report()


def observed(session: bridle.Session, rounds: int, record: Any) -> list[Any]:
    """The alarms of rounds whose records are what `record` makes of the decision and the round."""
    return alarms(session, rounds, lambda session, t: session.observe(**record(session.decide(), t)))


def test_where_what_is_allowed_moves_one_impossible_round_is_an_alarm_too():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2), drift=1.0))
    found = observed(session, 200, lambda x, t: {"df": [0.0, 1.0], "g": 5.0 if t == 9 else -1.0, "dg": [1.0, 0.0]})
    assert [(type(each), each.rounds) for each in found] == [(bridle.InfeasibleWarning, (10,))]


def test_a_constraint_value_above_the_declared_bound_is_an_alarm(tmp_path):
    """The theorem then takes the larger value."""
    told, true = (bridle.Session(bridle.policy("soft", bridle.Ball(2), lipschitz=1.0, bound=F)) for F in (0.01, 1.9))
    record = lambda x, t: {"df": [0.0, 1.0], "g": x[0] + 0.9, "dg": [1.0, 0.0]}  # noqa: E731
    (found,) = observed(told, 128, record)
    assert isinstance(found, bridle.AssumptionWarning)
    assert (found.declared, found.observed) == (0.01, 0.9)
    assert observed(true, 128, record) == []
    assert told.bound() == told.policy.bound(told_facts(0.9), 128)._replace(interval=None)
    told.save(tmp_path / "run.npz")
    assert bridle.Session.load(tmp_path / "run.npz").bound() == told.bound()


def told_facts(largest: float) -> dict[str, Any]:
    return {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2), "bound": largest, "constraints": 1}


def test_the_report_says_what_a_proof_rests_on():
    """What rests on what the policy was told is not called proved by observation."""
    domain = bridle.Ball(2)  # g = 0.1 x_1 - 0.001 is never below -0.101, and the policy is told of an action at -0.3
    policy = bridle.policy("hutchinson2025", domain, horizon=3000, lipschitz=1.0, slater=0.3, preset="practice", level=0.09, step=1.0)
    session = bridle.Session(policy, x1=[-1.0, 0.0])
    assert not observed(session, 3000, lambda x, t: {"f": -x[0], "df": [-1.0, 0.0], "g": 0.1 * x[0] - 0.001, "dg": [0.1, 0.0]})
    found = session.certificate()
    assert found.regret_algorithm < session.cost + 0.01 * 3000 < found.regret  # so the policy's own proof is false here
    (line,) = (line for line in session.report().splitlines() if line.startswith("Regret"))
    assert "assumes only" not in line
    assert "what the policy was told is true" in line


@pytest.mark.parametrize("tiny", [1e-150, 1e-153, 1e-160, 1e-300])
def test_a_first_gradient_of_all_but_nothing_does_not_stop_the_policy(tiny):
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    for t in range(500):
        x, slope = session.decide(), tiny if t == 0 else 1.0 if t < 5 else -1.0
        session.observe(f=slope * x[0], df=[slope, 0.0])
    assert session.certificate().regret <= session.bound().regret

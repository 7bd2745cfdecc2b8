"""A proof of infeasibility is looked for in slices: bounded work in every round, and the same proofs in the end."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import records
from bridle.domains import polyhedron
from bridle.session.certificates import feasibility, ledger
from bridle.session.certificates.search import LOOK, Reduction, Work, advance, begin, domain_work, program_work, reduce, reducing
from helpers.inside import own_ledger, proved
from helpers.save_files import contents, put_together

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")

KINDS = ("ball", "box", "simplex", "cut", "polyhedron", "product")
STREAMS = ("feasible", "one point", "pair", "family", "around", "shallow", "same again")
DELAY = 21
"""For how many rounds a search goes on at the most, in 30 dimensions."""
SMALLEST = 280
"""After how many more rounds it is as small as it gets, in 30 dimensions."""


def make_domain(kind: str, d: int) -> Any:
    box = bridle.Box(-1.0, 1.0, dim=d)
    walls = np.vstack([np.eye(d), -np.eye(d)])
    return {
        "ball": lambda: bridle.Ball(d),
        "box": lambda: box,
        "simplex": lambda: bridle.Simplex(d + 1),
        "cut": lambda: bridle.Halfspace(np.ones(d), 0.3, within=box),
        "polyhedron": lambda: bridle.Polyhedron(walls, np.ones(2 * d)),
        "product": lambda: bridle.Product(bridle.Polyhedron(walls, np.ones(2 * d)), bridle.Ball(2)),
    }[kind]()


def opponent(kind: str, domain: Any, k: int, turn: int, margin: float, rng: np.random.Generator) -> Callable[[int, np.ndarray], Any]:
    """Constraints (values and gradients) of a round: feasible up to round `turn`, and then as `kind` says."""
    d, D, middle = domain.dim, domain.diameter(), domain.center()
    feasible = domain.project(middle + 0.1 * D * rng.standard_normal(d) / np.sqrt(d))
    family = rng.standard_normal((2 if kind == "pair" else d + 1, d))
    family -= family.mean(axis=0)
    family /= np.linalg.norm(family, axis=1, keepdims=True)

    def answer(t: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        A = rng.standard_normal((k, d))
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        values = A @ (x - feasible) - 0.03 * D * rng.random(k)
        if kind == "one point":
            values = A @ (x - feasible)
        elif t > turn and kind in ("pair", "family"):
            A = family[(k * t + np.arange(k)) % len(family)]
            values = A @ (x - feasible) + margin * D
        elif t > turn and kind == "around":
            values = A @ (x - middle) + 0.1 * D
        elif t > turn and kind == "shallow":
            values = A @ (x - feasible) + 0.1 * margin * D
        elif t > turn and kind == "same again":
            A = np.repeat(family[t % 2 : t % 2 + 1], k, axis=0)
            values = A @ (x - feasible) + margin * D * rng.random(k)
        return values, A

    return answer


def play(session: Any, answer: Callable[[int, np.ndarray], Any], rounds: range, rng: np.random.Generator) -> Iterator[int]:
    for t in rounds:
        x, c = session.decide(), rng.standard_normal(len(session.decide()))
        g, dg = answer(t, x)
        session.observe(float(c @ x), c, g, dg)
        yield t


def conflict_of(session: Any) -> Any:
    return proved(session).ledger.conflict


def flat(certificate: Any) -> list[Any]:
    return [(f.name, v.tobytes() if isinstance(v := getattr(certificate, f.name), np.ndarray) else repr(v)) for f in fields(certificate)]


class Meter:
    """Counts the work of all linear programs, whoever has them solved."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.programs: list[float] = []
        for module in (feasibility, polyhedron):
            patch.setattr(module, "linear_program", self._counting(module.linear_program))

    def _counting(self, solve: Callable[..., Any]) -> Callable[..., Any]:
        def counted(cost: Any, A: Any, *more: Any) -> Any:
            self.programs.append(program_work(*A.shape))
            return solve(cost, A, *more)

        return counted


# --- no look does more than it may ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from(KINDS), st.sampled_from(STREAMS), st.integers(1, 30), st.integers(1, 3), st.integers(0, 2**32), st.floats(1e-5, 0.1))
def test_no_round_solves_more_than_one_look_may(kind, stream, d, k, seed, margin):
    """Whatever comes; a single program that is larger is a look of its own. A look asks the domain itself a few things besides."""
    rng, domain = np.random.default_rng(seed), make_domain(kind, min(d, 12) if kind in ("polyhedron", "product") else d)
    session = bridle.Session(bridle.policy("adagrad", domain))
    answer = opponent(stream, domain, k, 40, margin, rng)
    own = 8.0 * domain_work(domain, domain.dim) if kind in ("polyhedron", "product") else 0.0
    with pytest.MonkeyPatch.context() as patch:
        meter = Meter(patch)
        for _ in play(session, answer, range(1, 121), rng):
            assert sum(meter.programs) <= max([LOOK, *meter.programs]) + own
            meter.programs.clear()


@pytest.mark.slow
def test_many_programs_wait_for_later_rounds():
    """A contradiction in 30 dimensions whose proof took 288 programs within one round."""
    rng, domain = np.random.default_rng(0), bridle.Ball(30)
    session = bridle.Session(bridle.policy("anytime", domain))
    with pytest.MonkeyPatch.context() as patch:
        meter, total, most = Meter(patch), 0, 0
        for _ in play(session, opponent("around", domain, 3, 40, 0.02, rng), range(1, 200), rng):
            total, most = total + len(meter.programs), max(most, len(meter.programs))
            meter.programs.clear()
    assert conflict_of(session) is not None
    assert not proved(session).ledger.busy
    assert total > 100
    assert most <= LOOK


@pytest.mark.slow
def test_a_step_that_is_larger_than_a_look_is_still_done():
    rng, domain = np.random.default_rng(0), bridle.Ball(120)  # one program has 120 x 121 numbers
    session = bridle.Session(bridle.policy("anytime", domain))
    with pytest.MonkeyPatch.context() as patch:
        meter, most = Meter(patch), 0
        for _ in play(session, opponent("around", domain, 3, 40, 0.02, rng), range(1, 120), rng):
            most = max(most, len(meter.programs))
            meter.programs.clear()
    assert conflict_of(session) is not None
    assert most >= 1


@pytest.mark.parametrize("kind", ["ball", "box", "simplex", "cut"])
def test_a_search_and_a_reduction_end_within_so_many_rounds(kind, monkeypatch):
    """In 30 dimensions, with as many halfspaces as are kept, by programs that never settle anything."""
    rng, domain = np.random.default_rng(0), make_domain(kind, 29 if kind == "simplex" else 30)
    where = feasibility.centered(domain, 30).boxed()
    far = rng.standard_normal(30)

    def unsettled(self: Any, cost: np.ndarray, A: np.ndarray, b: np.ndarray) -> Any:
        return np.append(far, 1.0), np.ones(len(A))

    monkeypatch.setattr(feasibility.OuterPolyhedron, "solve", unsettled)
    normals = rng.standard_normal((120, 30))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    search, looks = begin(where, normals, np.full(120, -1e-3), start=domain.center()), 0
    while not search.over:
        search, looks = advance(where, search, Work(LOOK)), looks + 1
    assert (search.programs, search.depth, search.witness) == (0.0, 0.0, None)
    assert 10 <= looks <= DELAY
    found, looks = reducing(search._replace(weights=np.repeat([1.0, 0.0], [31, 89]), depth=1.0)), 0
    while not found.over:
        found, looks = reduce(where, found, Work(LOOK)), looks + 1
    assert len(found.levels) == 31
    assert 100 <= looks <= SMALLEST


# --- the same in the end --------------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.sampled_from(KINDS[:4]), st.integers(1, 6), st.integers(1, 14), st.integers(0, 2**32), st.floats(0.5, 20.0), st.booleans())
def test_slices_and_one_go_give_the_same_bits(kind, d, m, seed, piece, started):
    rng, domain = np.random.default_rng(seed), make_domain(kind, d)
    where = feasibility.centered(domain, domain.dim).boxed()
    normals = rng.standard_normal((m, domain.dim))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    levels = rng.uniform(-0.4, 0.1, m) * where.diameter
    whole = sliced = begin(where, normals, levels, start=domain.center() if started else None)
    whole = advance(where, whole, Work())
    while not sliced.over:
        sliced = advance(where, sliced, Work(piece))
    assert records.same(whole, sliced)
    if whole.depth > 0.0:
        small = cut = reducing(whole)
        small = reduce(where, small, Work())
        while not cut.over:
            before, cut = cut, reduce(where, cut, Work(piece))
            assert_proved(domain, cut)
            assert len(cut.levels) <= len(before.levels)
        assert records.same(small, cut)


def assert_proved(domain: Any, found: Reduction) -> None:
    """By the weights alone: the least of the weighted normals over the domain is above the weighted levels."""
    level = float(found.weights @ (found.levels + found.normals @ domain.center()))
    assert found.depth > 0.0
    assert abs(found.weights.sum() - 1.0) <= 1e-12
    assert float(np.asarray(domain.linear_min(found.weights @ found.normals)).reshape(())) - level >= found.depth


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["pair", "family", "around", "shallow"])
@pytest.mark.parametrize("kind", ["ball", "box", "simplex"])
def test_new_halfspaces_every_round_do_not_put_a_proof_off(kind, stream, monkeypatch):
    """With three new halfspaces a round, in 20 dimensions: at most `DELAY` rounds later than without a limit."""
    found = {}
    for limit in (np.inf, LOOK):
        monkeypatch.setattr(ledger, "LOOK", limit)
        rng, domain = np.random.default_rng(3), make_domain(kind, 20)
        session = bridle.Session(bridle.policy("anytime", domain))
        for _ in play(session, opponent(stream, domain, 3, 100, 0.02, rng), range(1, 100 + 200), rng):
            if conflict_of(session) is not None:
                break
        found[limit] = conflict_of(session).found
    assert 100 < found[np.inf] <= found[LOOK] <= found[np.inf] + DELAY


@pytest.mark.slow
def test_a_proof_is_told_at_once_and_then_made_smaller():
    """In every round it is valid by itself, names no round that it did not name before, and was found when it was found."""
    rng, domain = np.random.default_rng(0), bridle.Ball(30)
    session = bridle.Session(bridle.policy("anytime", domain))
    seen: dict[int, Any] = {}

    def answer(t: int, x: np.ndarray) -> Any:
        seen[t] = (x, *hostile(t, x))
        return seen[t][1:]

    hostile, told, proofs = opponent("around", domain, 3, 40, 0.02, rng), [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for t in play(session, answer, range(1, 40 + DELAY + SMALLEST), rng):
            conflict, busy = conflict_of(session), proved(session).ledger.busy
            if conflict is not None:
                proofs.append(conflict)
                told.append((t, busy))
                assert session.certificate().conflict == conflict
    (warning,) = [each.message for each in caught if each.category is bridle.InfeasibleWarning]
    assert (warning.round, warning.rounds) == (told[0][0], proofs[0].rounds)
    assert told[0][1]
    assert not told[-1][1]
    assert len(proofs[-1].rounds) < len(proofs[0].rounds)
    assert {proof.found for proof in proofs} == {told[0][0]}
    for before, after in itertools.pairwise(proofs):
        assert set(zip(after.rounds, after.constraints, strict=True)) <= set(zip(before.rounds, before.constraints, strict=True))
    for proof in {proof.rounds: proof for proof in proofs}.values():
        push, level = np.zeros(30), 0.0
        for t, i, weight in zip(proof.rounds, proof.constraints, proof.weights, strict=True):
            x, values, rows = seen[t]
            slope = np.linalg.norm(rows[i])
            push, level = push + weight * rows[i] / slope, level + weight * (rows[i] @ x - values[i]) / slope
        assert -np.linalg.norm(push) - level >= proof.margin > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_a_search_is_saved_and_goes_on_bit_for_bit(engine, tmp_path):
    """Saved and loaded after every round, while a proof is looked for and while it is made smaller."""
    domain, turn, rounds = bridle.Ball(20), 60, range(1, 140)
    stages, certificates = set(), []
    for through_files in (False, True):
        rng = np.random.default_rng(1)
        session = bridle.Session(bridle.policy("anytime", domain), engine=engine)
        answer, told = opponent("family", domain, 3, turn, 0.02, rng), []
        for t in rounds:
            x, c = session.decide(), rng.standard_normal(20)
            session.observe(float(c @ x), c, *answer(t, x))
            own = proved(session).ledger
            stages.add(
                (own.searching is not None, own.reduction is not None, own.reduction is not None and own.reduction.attempt is not None)
            )
            told.append(flat(session.certificate()))
            if through_files and t > turn:
                session.save(tmp_path / "run.npz")
                session = bridle.Session.load(tmp_path / "run.npz")
        certificates.append(told)
    assert stages >= {(False, False, False), (True, False, False), (False, True, True)}
    assert certificates[0] == certificates[1]


def busy_session(domain: Any, *, reducing: bool) -> Any:
    rng = np.random.default_rng(1)
    session = bridle.Session(bridle.policy("anytime", domain))
    for _ in play(session, opponent("family", domain, 3, 40, 0.02, rng), range(1, 200), rng):
        own = proved(session).ledger
        if (own.reduction if reducing else own.searching) is not None:
            return session
    raise AssertionError("no search was ever interrupted")


@pytest.mark.parametrize("reducing", [False, True])
def test_a_file_with_a_search_that_does_not_fit_is_refused(reducing, tmp_path):
    session = busy_session(bridle.Ball(20), reducing=reducing)
    path, part = tmp_path / "run.npz", "ledger.reduction." if reducing else "ledger.searching."
    session.save(path)
    header, arrays = contents(path)
    names = [name for name in arrays if name.startswith(part)]
    assert len(names) >= 8
    for name in names:
        put_together(path, header, {**arrays, name: np.zeros((3, 7, 2)) if arrays[name].ndim else np.zeros(2)})
        with pytest.raises(bridle.InputError, match="it is damaged"):
            bridle.Session.load(path)


def test_a_file_from_before_searches_were_saved_still_loads(tmp_path):
    session = busy_session(bridle.Ball(20), reducing=False)
    own_ledger(session).searching = None
    session.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        assert not [name for name in file.files if "searching" in name or "reduction" in name]
    assert not proved(bridle.Session.load(tmp_path / "run.npz")).ledger.busy


# --- what comes in between ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reducing", [False, True])
def test_a_solver_that_fails_ends_a_search_and_no_round(reducing, monkeypatch):
    session = busy_session(bridle.Ball(20), reducing=reducing)
    before = conflict_of(session)

    def fail(*_: Any) -> Any:
        raise RuntimeError("the solver stopped")

    with monkeypatch.context() as broken:
        broken.setattr(feasibility, "linear_program", fail)
        session.observe(0.0, np.zeros(20))
        assert not proved(session).ledger.busy
        assert conflict_of(session) == before
    rng = np.random.default_rng(9)
    for _ in play(session, opponent("around", bridle.Ball(20), 3, 0, 0.02, rng), range(1, 64), rng):
        pass
    assert conflict_of(session) is not None


def test_a_round_that_proves_it_alone_ends_the_search(monkeypatch):
    monkeypatch.setattr(ledger, "LOOK", 0.1)  # one step a round, so that the search goes on
    session = busy_session(bridle.Ball(20), reducing=False)
    for _ in range(40):  # more than a batch
        session.observe(0.0, np.zeros(20), 5.0, np.eye(20)[0])
    assert len(session.certificate().conflict.rounds) == 1
    assert not proved(session).ledger.busy


def test_certificates_do_not_advance_a_search():
    session = busy_session(bridle.Ball(20), reducing=False)
    before = proved(session).ledger.searching
    session.certificate()
    session.report()
    session.bound()
    assert proved(session).ledger.searching is before


# --- warming up -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["python", "compiled"])
@pytest.mark.parametrize("kind", ["ball", "polyhedron"])
def test_warming_up_changes_nothing(engine, kind, tmp_path):
    if engine == "compiled" and kind == "polyhedron":
        kind = "cut"  # one that compiles
    runs = []
    for warm in (False, True):
        rng, domain = np.random.default_rng(4), make_domain(kind, 4)
        session = bridle.Session(bridle.policy("anytime", domain), engine=engine)
        answer, seen = opponent("around", domain, 2, 60, 0.02, rng), []
        for t in play(session, answer, range(1, 101), rng):
            if warm and t in (1, 50, 90):
                session.warm_up(2)
            seen.append(session.decide().tobytes())
        session.save(tmp_path / f"{warm}.npz")
        with np.load(tmp_path / f"{warm}.npz") as file:
            arrays = {name: file[name].tobytes() for name in file.files if name.startswith(("state", "totals", "ledger"))}
        runs.append((seen, flat(session.certificate()), arrays))
    assert runs[0] == runs[1]


def test_a_warm_session_that_is_new_has_no_round_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = bridle.Session(bridle.policy("sinha2024", bridle.Ball(3), horizon=2, lipschitz=1e-6))
        session.warm_up(2)
    assert (session.rounds, session.cost, session.ccv) == (0, 0.0, 0.0)
    assert session.certificate().rounds == 0


def test_warming_up_a_second_time_solves_nothing(monkeypatch):
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(3)))
    session.warm_up()
    meter = Meter(monkeypatch)
    session.warm_up()
    bridle.Session(bridle.policy("anytime", bridle.Ball(4))).warm_up()
    assert meter.programs == []


def test_a_policy_of_the_users_own_is_not_played_beforehand():
    class Mine:
        def init(self, x1: Any) -> Any:
            return (x1,)

        def decide(self, state: Any) -> Any:
            return state[0]

        def update(self, state: Any, feedback: Any) -> Any:
            raise AssertionError("nothing was observed")

    bridle.Session(Mine(), domain=bridle.Ball(2)).warm_up()


@pytest.mark.parametrize("bad", [0, -1, 1.5, "a", [2]])
def test_a_number_of_constraints_that_cannot_be_is_refused(bad):
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    with pytest.raises(bridle.InputError, match="constraints must"):
        session.warm_up(bad)


def test_a_policy_made_for_two_constraints_is_not_warmed_up_for_three():
    session = bridle.Session(bridle.policy("soft", bridle.Ball(2), lipschitz=1.0, bound=2.0, constraints=2))
    session.warm_up()
    session.warm_up(2)
    with pytest.raises(bridle.InputError, match="constraints must be 2, as the policy was made for, not 3"):
        session.warm_up(3)


@pytest.mark.compiles
def test_a_compiled_round_must_be_told_how_many_constraints_it_has():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine="compiled")
    with pytest.raises(bridle.InputError, match="constraints must be given"):
        session.warm_up()
    session.warm_up(2)
    first = session._stepper.compiled
    session.warm_up()
    session.observe(0.1, np.ones(2), np.zeros(2), np.eye(2))
    assert session._stepper.compiled is first
    assert session._stepper.at[1] is first
    assert first.rounds == 1


@pytest.mark.compiles
def test_the_first_round_decides_whatever_was_said_before():
    decisions = []
    for told in (None, 1, 2):
        session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), engine="compiled")
        if told is not None:
            session.warm_up(told)
        for t in range(20):
            session.observe(0.1, np.array([1.0, 0.3 * t]), np.array([0.1, -0.2 + 0.01 * t]), np.eye(2))
        assert session._stepper.compiled.k == 2
        assert session._stepper.at[1] is session._stepper.compiled
        decisions.append(session.decide().tobytes())
    assert len(set(decisions)) == 1

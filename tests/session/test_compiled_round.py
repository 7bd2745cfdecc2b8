"""Sessions in compiled code: the same decisions, totals, certificates, errors and files as in Python, and little Python in a round."""

from __future__ import annotations

import copy
import importlib
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import ops, policies, records
from bridle.core import Unavailable
from bridle.session.compiled_round import CompiledRound
from helpers.compiled_games import compilable_game
from helpers.inside import proved, state
from helpers.sessions import BAD_NUMBERS, GOOD_RECORD, STRANGE_NUMBERS, assert_identical, make_policy, play_random_stream, snapshot

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")  # random streams are not feasible for long


@pytest.fixture
def plain(monkeypatch):
    """The engine without its compiler: what it writes is run as it stands."""
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")


@pytest.fixture
def steps(monkeypatch) -> list[bool]:
    """Which rounds were handed to compiled code, and whether it took them."""
    seen: list[bool] = []
    play = CompiledRound.play

    def counted(self: CompiledRound, *given: Any) -> int:
        played = play(self, *given)
        if played >= 0:
            seen.append(played > 0)
        return played

    monkeypatch.setattr(CompiledRound, "play", counted)
    return seen


def pair(policy: Any, **more: Any) -> tuple[bridle.Session, bridle.Session]:
    return bridle.Session(policy, engine="python", **more), bridle.Session(policy, engine="compiled", **more)


def alike(one: bridle.Session, two: bridle.Session, tolerance: float = 1e-12) -> None:
    """Everything that a session tells, up to rounding."""
    a, b = snapshot(one), snapshot(two)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(b[name], a[name], rtol=1e3 * tolerance, atol=tolerance, err_msg=name)


def drive(sessions: tuple[bridle.Session, ...], rounds: int, k: int = 1, seed: int = 0) -> None:
    """The same feasible stream of halfspaces for each; decisions must agree."""
    for t in range(rounds):
        rng = np.random.default_rng([seed, t])
        xs = [session.decide() for session in sessions]
        for x in xs[1:]:
            np.testing.assert_allclose(x, xs[0], rtol=0, atol=1e-12)
        d = len(xs[0])
        df, A = rng.standard_normal(d) / d, rng.standard_normal((k, d)) / d
        for session in sessions:
            x = xs[0]
            session.observe(f=float(df @ x), df=df, g=A @ x - 0.02, dg=A)


# --- the same as in Python --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("place", ["ball", "box", "simplex", "product"])
def test_every_policy_plays_alike(place, steps):
    played = 0
    for name in policies.names():
        for k in (1, 3):
            game = compilable_game(name, place, k, 12)
            if game is None:
                continue
            if hasattr(game[0].record, "points"):
                with pytest.raises(bridle.InputError, match=r"engine must be 'python' in a session of policy \S+, which sees values alone"):
                    pair(game[0])
                continue
            sessions = pair(game[0])
            try:
                drive(sessions[:1], 1, k)
            except bridle.InputError as needs:  # a policy that needs the functions themselves cannot be driven by numbers
                with pytest.raises(bridle.InputError, match=re.escape(str(needs))):
                    drive(sessions[1:], 1, k)
                continue
            drive(sessions[1:], 1, k)
            drive(sessions, 10, k, seed=1)
            alike(*sessions)
            played += 1
    assert played >= 20
    assert all(steps)
    assert len(steps) == 11 * played


@pytest.mark.compiles
@pytest.mark.parametrize(("name", "k"), [("sinha2024", 1), ("anytime", 1), ("anytime", 2)])
def test_compiled_sessions_and_their_certificates_agree(name, k, steps):
    more = {"horizon": 600, "lipschitz": 1.0, "preset": "practice"} if name == "sinha2024" else {}
    one, two = pair(bridle.policy(name, bridle.Ball(4), **more))
    drive((one, two), 300, k)
    assert len(steps) == 300
    assert all(steps)
    alike(one, two)
    a, b = one.certificate(), two.certificate()
    assert b.violated > 3
    for field in ("rounds", "violated", "above", "pending", "dropped", "alarms", "why"):
        assert getattr(a, field) == getattr(b, field), field
    for field in ("cost", "ccv", "regret", "regret_any", "regret_algorithm", "squared"):
        np.testing.assert_allclose(getattr(a, field), getattr(b, field), rtol=1e-6, atol=1e-9, err_msg=field)
    for left, right in zip(proved(one).ledger.halfspaces.lines, proved(two).ledger.halfspaces.lines, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-9)
    assert proved(one).ledger.halfspaces.sources == proved(two).ledger.halfspaces.sources
    assert (proved(one).ledger.idle, proved(one).ledger.patience) == (proved(two).ledger.idle, proved(two).ledger.patience)


@pytest.mark.usefixtures("plain")
def test_a_contradiction_is_found_in_the_same_round():
    told = []
    for session in pair(bridle.policy("anytime", bridle.Ball(2))):
        found = None
        for t in range(1, 100):
            sign = 1.0 if t % 2 else -1.0
            x = session.decide()
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                session.observe(f=0.0, df=np.zeros(2), g=float(sign * x[0] + 0.25), dg=np.array([sign, 0.0]))
            if found is None and any(issubclass(each.category, bridle.InfeasibleWarning) for each in given):
                found = t
        told.append((found, session.certificate().conflict))
    assert told[0][0] is not None
    assert told[0][0] == told[1][0]
    assert told[0][1].rounds == told[1][1].rounds


@pytest.mark.compiles
@pytest.mark.usefixtures("plain")
def test_history_is_told_the_same():
    entries: tuple[list[dict[str, Any]], ...] = ([], [])
    one = bridle.Session(make_policy(), history=entries[0].append)
    two = bridle.Session(make_policy(), history=entries[1].append, engine="compiled")
    drive((one, two), 20)
    for a, b in zip(*entries, strict=True):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_allclose(a[name], b[name], atol=1e-12, err_msg=name)


@pytest.mark.compiles
@pytest.mark.usefixtures("plain")
def test_totals_are_current_between_rounds_and_belong_to_the_caller():
    session = bridle.Session(make_policy(), engine="compiled")
    for t in range(1, 4):
        session.observe(f=0.25, df=np.ones(3), g=0.5, dg=np.ones(3))
        assert (session.rounds, session.cost, session.ccv) == (t, 0.25 * t, 0.5 * t)
        session.decide()[:] = 9.0
        session.violations[:] = 9.0
        session.state.learner.x[:] = 9.0
    assert session.balances.tolist() == [1.5]
    assert np.abs(session.decide()).max() <= 1.0


# --- bad numbers, breakdowns ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plain")
def test_whatever_is_wrong_is_the_same_error_and_changes_nothing():
    """All the bad numbers that the Python session is tried with, and more in the form that is taken without a second look."""
    named = [
        ("df", np.array([0.0, np.nan, 0.0])), ("df", np.array([0.0, -1.7e308, 0.0])), ("dg", np.full((2, 3), 1.01e70)), ("f", np.nan),
        ("f", -1e300), ("g", np.array([np.inf, 0.0])), ("g", np.array([0.1, -1e71])), ("df", np.ones(3, dtype=complex)),
        ("df", np.ma.masked_array(np.ones(4))), ("f", True),
    ]  # fmt: skip
    arrays = {name: np.asarray(value) if name != "f" else value for name, value in GOOD_RECORD.items()}
    one, two = pair(make_policy(constraints=2))
    for session in (one, two):
        for _ in range(3):
            session.observe(**arrays)
    before = snapshot(two)
    for name, value in [*BAD_NUMBERS, *STRANGE_NUMBERS, *named]:
        messages = []
        for session in (one, two):
            with pytest.raises(bridle.InputError) as wrong:
                session.observe(**{**arrays, name: value})
            messages.append(str(wrong.value))
        assert messages[0] == messages[1]
        assert_identical(before, snapshot(two))
    two.observe(**arrays)
    assert two.rounds == 4


class Fragile(NamedTuple):
    """A policy that puts `broken` in its state when a cost above 1 comes."""

    broken: float

    def init(self, x1):
        return (x1, 0.0)

    def decide(self, state):
        return state[0]

    def update(self, state, feedback):
        return (state[0], ops.where(feedback.f > 1.0, self.broken, state[1] + 1.0))


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_number_that_stops_being_finite_is_left_to_python(broken, steps):
    sessions = pair(Fragile(broken), x1=np.zeros(2), domain=bridle.Ball(2), certify=False)
    told = []
    for session in sessions:
        for f in (0.5, 2.0, 0.5):
            try:
                session.observe(f=f, df=np.ones(2), g=0.1, dg=np.ones(2))
            except bridle.InputError as wrong:
                told.append(str(wrong))
    assert len(told) == (2 if np.isnan(broken) else 0)
    assert len(set(told)) <= 1
    assert steps == [True, False, True]  # once a number is infinite it may stay so
    alike(*sessions)


# --- saving, and rounds that are not for compiled code ----------------------------------------------------------------------------------


@pytest.mark.compiles
@pytest.mark.parametrize("certify", [True, False])
def test_a_compiled_session_resumes_bit_for_bit(certify, tmp_path, steps):
    whole, half = (bridle.Session(make_policy(), engine="compiled", certify=certify) for _ in range(2))
    play_random_stream(whole, 40)
    play_random_stream(half, 17)
    half.save(tmp_path / "a.npz")
    half = bridle.Session.load(tmp_path / "a.npz")
    assert half.engine == "compiled"
    play_random_stream(half, 23, start=17)
    assert_identical(snapshot(whole), snapshot(half))
    assert len(steps) == 80
    other = bridle.Session.load(tmp_path / "a.npz", engine="python")
    play_random_stream(other, 23, start=17)
    assert len(steps) == 80
    alike(other, half)


def act(session: bridle.Session, action: str, t: int, folder: Path) -> bridle.Session:
    """One of the calls of a session, with numbers that depend on t alone; gives the session to go on with."""
    rng = np.random.default_rng(t)
    df, A = rng.standard_normal(3), rng.standard_normal((2, 3))
    g, f = 0.3 * rng.standard_normal(2), float(rng.standard_normal())
    waiting = next(iter(state(session).slow.late.waiting), None) if action in ("late", "forget") else None
    if action == "save":
        session.save(folder / f"{session.engine}.npz")
        return bridle.Session.load(folder / f"{session.engine}.npz")
    calls: dict[str, Callable[[], Any]] = {
        "plain": lambda: session.observe(f, df, float(g[0]), A[0]),
        "several": lambda: session.observe(f, df, g, A),
        "lists": lambda: session.observe(1, df.tolist(), g[:1].tolist(), A[:1].tolist()),
        "cost": lambda: session.observe(f, df),
        "limit": lambda: session.observe(g=g[0], dg=A[0]),
        "modulus": lambda: session.observe(f, df, g[0], A[0], modulus=0.5),
        "ask": session.ask,
        "late": lambda: None if waiting is None else session.observe(f, df, g[0], A[0], ticket=waiting),
        "forget": lambda: None if waiting is None else session.forget(waiting),
        "read": lambda: (session.certificate(), session.bound(), session.balances),
    }
    calls[action]()
    return session


@pytest.mark.usefixtures("plain")
@settings(max_examples=25)
@given(
    st.lists(
        st.sampled_from(
            ["plain", "plain", "plain", "several", "lists", "cost", "limit", "ask", "late", "forget", "read", "save", "modulus"]
        ),
        min_size=5,
        max_size=80,
    ),
    st.sampled_from(["sinha2024", "anytime"]),
)
def test_any_order_of_calls_gives_the_same(tmp_path_factory, actions, name):
    folder = tmp_path_factory.mktemp("mixed")
    policy = make_policy() if name == "sinha2024" else bridle.policy("anytime", bridle.Ball(3))
    sessions = list(pair(policy))
    for t, action in enumerate(actions):
        sessions = [act(session, action, t, folder) for session in sessions]
    alike(*sessions, 1e-9)
    assert sessions[0].pending == sessions[1].pending
    assert state(sessions[0]).now.begun == state(sessions[1]).now.begun
    assert [copy.updates for copy in state(sessions[0]).copies] == [copy.updates for copy in state(sessions[1]).copies]
    for left, right in (
        [proved(session).ledger for session in sessions],
        [proved(session).ledger.complete() for session in sessions],
    ):
        for (name, a), b in zip(records.leaves(left.counted).items(), records.leaves(right.counted).values(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=name)
        assert (left.open, left.idle, left.patience, left.waiting) == (right.open, right.idle, right.patience, right.waiting)
        assert left.halfspaces.sources == right.halfspaces.sources


@pytest.mark.compiles
@pytest.mark.usefixtures("plain")
def test_rounds_with_another_number_of_constraints_are_played_in_python(steps):
    session = bridle.Session(make_policy(), engine="compiled")
    for k in (1, 2, 1, 1):
        session.observe(0.1, np.ones(3), np.full(k, 0.5), np.ones((k, 3)))
    assert session.violations.tolist() == [2.0, 0.5]
    assert steps == [True]  # there is no room for the second constraint's total


@pytest.mark.compiles
@pytest.mark.usefixtures("plain")
def test_a_loaded_session_with_totals_of_more_constraints_goes_on_in_python(tmp_path, steps):
    session = bridle.Session(make_policy())
    session.observe(0.1, np.ones(3), np.full(3, 0.5), np.ones((3, 3)))
    session.save(tmp_path / "a.npz")
    session = bridle.Session.load(tmp_path / "a.npz", engine="compiled")
    for k in (2, 1, 3):
        session.observe(0.1, np.ones(3), np.full(k, 0.5), np.ones((k, 3)))
    assert session.violations.tolist() == [2.0, 1.5, 1.0]
    assert steps == []


@pytest.mark.compiles
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_session_whose_records_differ_in_size_resumes_bit_for_bit(seed, tmp_path, steps):
    sizes, at = [1, *np.random.default_rng(seed).integers(1, 3, 60).tolist()], tmp_path / "a.npz"
    whole = bridle.Session(bridle.policy("optimistic", bridle.Ball(5)), engine="compiled")

    def play(session, t):
        rng = np.random.default_rng([seed, t])
        session.observe(0.1, rng.standard_normal(5), rng.standard_normal(sizes[t]), rng.standard_normal((sizes[t], 5)))

    for t in range(30):
        play(whole, t)
    whole.save(at)
    half, alone = bridle.Session.load(at), len(steps)
    for session in (whole, half):
        for t in range(30, 60):
            play(session, t)
    assert_identical(snapshot(whole), snapshot(half))
    assert len(steps) == alone


@pytest.mark.compiles
@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("again", [copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))])
def test_a_copy_goes_its_own_way(again):
    session = bridle.Session(make_policy(), engine="compiled")
    play_random_stream(session, 10)
    other = again(session)
    assert_identical(snapshot(session), snapshot(other))
    play_random_stream(other, 5, seed=1)
    play_random_stream(session, 5, start=10)
    whole = bridle.Session(make_policy(), engine="compiled")
    play_random_stream(whole, 15)
    assert_identical(snapshot(session), snapshot(whole))
    assert (session.decide() != other.decide()).any()


# --- what cannot be compiled ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["llvmlite", "jax"])
def test_without_a_compiler_the_error_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    for name in ("machine", "compiled"):
        monkeypatch.setattr(bridle.engines, name, None)  # and back again, whatever is imported meanwhile
        monkeypatch.delitem(sys.modules, f"bridle.engines.{name}")
    with pytest.raises(Unavailable, match=rf"engine 'compiled' needs the package {package}: pip install 'bridle-oco\[compiled\]'"):
        bridle.Session(make_policy(), engine="compiled")
    importlib.invalidate_caches()


@pytest.mark.parametrize(("name", "message"), [("jax", "unknown engine 'jax'; known: auto, compiled, python"), (3, "unknown engine 3")])
def test_engines_that_play_no_single_rounds(name, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.Session(make_policy(), engine=name)


def test_a_policy_that_calls_a_solver_is_refused_at_once():
    polyhedron = bridle.Polyhedron(np.vstack([np.eye(3), -np.eye(3), np.ones((1, 3))]), np.ones(7))
    with pytest.raises(bridle.InputError, match="runs on engine 'python' only"):
        bridle.Session(make_policy(domain=polyhedron), engine="compiled")


class Opaque(NamedTuple):
    """A policy that looks into its numbers, or whose state changes shape with the first update."""

    def init(self, x1):
        return (x1, 0.0)

    def decide(self, state):
        return state[0]

    def update(self, state, feedback):
        return (state[0], 1.0 if feedback.f > 0.0 else 0.0)


class Growing(Opaque):
    def decide(self, state):
        return state[0] if state[0].ndim == 1 else state[0][0]

    def update(self, state, feedback):
        return (feedback.dg, state[1])


@pytest.mark.parametrize(("record", "reason"), [(Opaque(), "traced array"), (Growing(), "changes the shape")])
def test_a_policy_that_cannot_be_traced_is_one_clear_error(record, reason):
    session = bridle.Session(record, x1=np.zeros(2), domain=bridle.Ball(2), engine="compiled")
    with pytest.raises(bridle.InputError, match=rf"^the policy cannot be compiled \(.*{reason}.*\); use engine 'python'$"):
        session.observe(0.1, np.ones(2), 0.1, np.ones(2))
    assert session.rounds == 0


# --- how much Python there is in a round, and in an import ------------------------------------------------------------------------------


def calls_a_round(session: bridle.Session, rounds: int = 256) -> float:
    """How many functions, of Python or of C, a round calls; a feasible stream that is never near violation."""
    c, a = np.full(30, 0.1), np.full(30, 0.01)
    for _ in range(64):
        session.observe(0.3, c, -0.9, a)
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        for _ in range(rounds):
            session.decide()
            session.observe(0.3, c, -0.9, a)
    finally:
        sys.setprofile(None)
    return count / rounds


@pytest.mark.parametrize(
    ("engine", "certify", "most"),
    [("compiled", False, 16), ("compiled", True, 21), ("python", False, 180), ("python", True, 200)],
)
def test_a_round_calls_few_functions(engine, certify, most):
    policy = bridle.policy("sinha2024", bridle.Ball(30), horizon=10_000, lipschitz=1.0)
    found = calls_a_round(bridle.Session(policy, engine=engine, certify=certify))
    assert found <= most


HEAVY = (
    "scipy", "jax", "llvmlite", "matplotlib", "plotly", "pyarrow", "pandas", "torch", "sklearn", "river", "joblib", "distributed", "dask",
    "cvxpy", "osqp", "daqp", "selenium", "rich", "typer", "asyncio", "multiprocessing", "http", "ssl",
)  # fmt: skip


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import bridle", ()),
        ("from bridle import cli", ("typer", "rich")),
        ("import sys; from bridle import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass", ("typer", "rich")),
        ("import bridle; s = bridle.Session(bridle.policy('anytime', bridle.Ball(2))); s.observe(1.0, [1.0, 0.0], 0.1, [0.0, 1.0])", ()),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code, allowed):
    heavy = [name for name in HEAVY if name not in allowed]
    code += f"\nimport sys; print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"

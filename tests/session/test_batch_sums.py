"""Certificates read rounds in batches: how rounds are split, who reads them, and when somebody asks must not matter."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import records
from bridle.core import Feedback
from bridle.session.certificates import batches as batch_sums
from bridle.session.certificates import search as proof_search
from bridle.session.certificates.batches import EACH, length, nothing, read
from bridle.session.certificates.clocks import BATCH_ROUNDS, CONTRADICTION_EVERY, WITNESS_EVERY
from bridle.session.certificates.feasibility import KeptHalfspaces
from bridle.session.certificates.ledger import Ledger
from helpers.inside import own_ledger, proved, state
from helpers.save_files import contents, put_together

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")  # random streams are not feasible for long


@pytest.fixture
def plain(monkeypatch):
    """The engine without its compiler: what it writes is run as it stands."""
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")


def observed(t: int, d: int, k: int, x: np.ndarray, seed: int = 0, level: float = 0.05) -> dict[str, Any]:
    """A round that depends on its number and the decision alone; now and then flat, tiny, huge, or the same as before."""
    rng = np.random.default_rng([seed, t])
    df, A = rng.standard_normal(d) / d, rng.standard_normal((k, d)) / d
    kind = rng.integers(12)
    if kind == 0:
        A[0] = 0.0
    elif kind == 1:
        A *= 10.0 ** rng.integers(-6, 6)
    elif kind == 2:
        A = np.ones((k, d)) / d
    g = A @ x - level * rng.random(k) * np.sqrt((A * A).sum(axis=1))
    return {"f": float(df @ x), "df": df, "g": g, "dg": A}


def play(sessions: Any, rounds: range, d: int, k: Any, seed: int = 0, level: float = 0.05) -> None:
    """The same rounds for every session, at the first one's decisions."""
    for t in rounds:
        x = sessions[0].decide()
        for session in sessions:
            session.observe(**observed(t, d, k(t) if callable(k) else k, x, seed, level))


def close(a: Any, b: Any, tolerance: float = 1e-9) -> None:
    for (name, left), right in zip(records.leaves(a).items(), records.leaves(b).values(), strict=True):
        np.testing.assert_allclose(right, left, rtol=tolerance, atol=tolerance * (1.0 + np.abs(left).max(initial=0.0)), err_msg=name)


def agree(one: bridle.Session, two: bridle.Session) -> None:
    """The ledgers of two sessions, as they are and when they have read everything."""
    for a, b in ((proved(one).ledger, proved(two).ledger), (proved(one).ledger.complete(), proved(two).ledger.complete())):
        close(a.counted, b.counted)
        assert (a.open, a.k, a.idle, a.patience, a.waiting) == (b.open, b.k, b.idle, b.patience, b.waiting)
        assert a.halfspaces.sources == b.halfspaces.sources
        close(a.halfspaces.lines, b.halfspaces.lines)
        assert a.numbers[: a.open].tolist() == b.numbers[: b.open].tolist()
        assert (a.conflict is None) == (b.conflict is None)
        if a.conflict is not None:
            assert a.conflict.rounds == b.conflict.rounds
            assert a.conflict.found == b.conflict.found
    assert one.alarms == two.alarms


def told(certificate: Any) -> list[Any]:
    return [(f.name, v.tobytes() if isinstance(v := getattr(certificate, f.name), np.ndarray) else repr(v)) for f in fields(certificate)]


def pair(d: int, **more: Any) -> tuple[bridle.Session, bridle.Session]:
    policy = bridle.policy("sinha2024", bridle.Ball(d), horizon=1000, lipschitz=1.0)
    return bridle.Session(policy, **more), bridle.Session(policy, engine="compiled", **more)


# --- one definition ---------------------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 5), st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_it_does_not_matter_how_rounds_are_split(seed, k, d, sizes):
    ledger, rows = Ledger(bridle.Ball(d), d), []
    for t in range(sum(sizes)):
        x = np.random.default_rng([seed, t, 1]).standard_normal(d)
        made = observed(t, d, k, x, seed)
        rows.append(np.concatenate([x, made["df"], made["g"], made["dg"].reshape(-1)]))
    table, frame = np.array(rows), ledger.frame()
    with np.errstate(all="ignore"):
        whole = read(frame, nothing(d, len(ledger.levels)), table)
        counted, parts = nothing(d, len(ledger.levels)), []
        for begin, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
            counted, found = read(frame, counted, table[begin : begin + size])
            parts.append(found)
    close(whole.counted, counted, 1e-12)
    for name in ("chosen", "lines", "alone", "scales"):
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole.findings, name), err_msg=name)
    assert whole.findings.ruled == max(part.ruled for part in parts)
    assert whole.findings.proof == whole.findings.alone.max()
    assert whole.findings.chosen.shape[1] == min(k, EACH)


def by_the_book(ledger: Ledger, rounds: list[Feedback]) -> tuple[float, ...]:
    """Some of the sums, one round and one constraint after the other."""
    violated = weight = distances = largest = scale = 0.0
    A, b = np.zeros(len(rounds[0].x)), 0.0
    for seen in rounds:
        slopes = np.linalg.norm(seen.dg, axis=1)
        largest = max(largest, np.abs(seen.g).max())
        scale = max(scale, np.abs(seen.g).max(), slopes.max() * ledger.domain.reach)
        beyond = seen.g - 1e-12 * scale
        if beyond.max() > 0.0:
            violated += 1
            far = np.array([value / slope if slope > 0.0 else -np.inf for value, slope in zip(beyond, slopes, strict=True)])
            j = int(far.argmax())
            if far[j] > 0.0:
                n = seen.dg[j] / slopes[j]
                A, b, weight, distances = A + n, b + n @ seen.x - far[j], weight + 1, distances + min(far[j], 2.0) ** 2
    return violated, weight, distances, largest, float(np.abs(A).sum()), b


@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_sums_are_what_they_are_said_to_be(k):
    ledger, rounds = Ledger(bridle.Ball(4), 4), []
    for t in range(1, 101):
        x = np.random.default_rng([t, 5]).standard_normal(4) / 4.0
        rounds.append(Feedback(x, **observed(t, 4, k, x)))
        ledger.take(rounds[-1], t)
        assert ledger.open == t % length(4, k)
    counted = ledger.complete().counted
    limits = counted.limits
    mine = (limits.violated, limits.weight, limits.distances, counted.largest, float(np.abs(limits.A).sum()), limits.b)
    np.testing.assert_allclose(mine, by_the_book(ledger, rounds), rtol=1e-9)
    assert counted.between.sum() == limits.violated > 10.0
    assert counted.sums.rounds == 100.0
    np.testing.assert_allclose(counted.sums.a, sum(seen.df for seen in rounds), atol=1e-12)


def test_a_batch_has_no_more_halfspaces_than_are_looked_at_and_little_room():
    assert [length(30, k) for k in (1, 2, 3, 4, 10)] == [32, 16, 8, 8, 8]
    assert length(10**6, 1) == 1
    for dim in (1, 30, 3_000, 50_000):
        for k in (1, 2, 7, 100):
            n = length(dim, k)
            assert CONTRADICTION_EVERY % n == 0
            assert n * min(k, EACH) <= BATCH_ROUNDS
            assert n == 1 or n * batch_sums.width(dim, k) <= batch_sums.MOST_NUMBERS


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 60), st.booleans(), st.booleans())
def test_many_halfspaces_are_kept_as_one_after_the_other(seed, d, count, protected, again):
    """With repetitions while there is room for all; without also where old ones make way."""
    rng = np.random.default_rng(seed)
    one, two = KeptHalfspaces(d), KeptHalfspaces(d)
    count = min(count, one.room // 4) if again else count
    for batch in range(4):
        normals = rng.standard_normal((count, d))
        normals[rng.random(count) < 0.2 * again] = 1.0
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        levels, sources = rng.standard_normal(count), np.array([(batch, i) for i in range(count)])
        new = one.extend(normals, levels, sources)
        rows = zip(normals, levels, sources, strict=True)
        assert new.tolist() == [two._add(normal, float(level), source) for normal, level, source in rows]
        assert one.sources == two.sources
        np.testing.assert_array_equal(one.lines[0], two.lines[0])
        np.testing.assert_array_equal(one.lines[1], two.lines[1])
        assert (one.fresh, one.next) == (two.fresh, two.next)
        if protected and batch == 1:
            kept = frozenset(rng.permutation(len(one.sources))[:20].tolist())
            one.tight, two.tight = kept, kept
            held = [one.sources[i] for i in sorted(kept)]
    if protected and not again:
        assert [one.sources[i] for i in sorted(kept)] == held


# --- engines ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
@pytest.mark.parametrize("k", [1, 3, 10])
def test_compiled_sessions_read_as_python_does(k):
    one, two = pair(6)
    play((one, two), range(1, 260), 6, k)
    agree(one, two)
    assert own_ledger(two)._reader is not None
    a, b = one.certificate(), two.certificate()
    assert a.violated == b.violated > 30
    assert a.above == b.above
    np.testing.assert_allclose([a.squared, a.regret_any], [b.squared, b.regret_any], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("plain")
@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 6), st.lists(st.tuples(st.integers(1, 40), st.integers(1, 6)), min_size=1, max_size=4))
def test_engines_agree_on_any_stream(seed, first, pieces):
    """Also where the number of constraints changes."""
    one, two = pair(3)
    t = 1
    for rounds, k in [(40, first), *pieces]:
        play((one, two), range(t, t + rounds), 3, k, seed)
        t += rounds
        agree(one, two)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("k", [1, 2, 10])
def test_bad_numbers_in_the_middle_of_a_batch_change_nothing(k):
    one, two = pair(3)
    play((one, two), range(1, 70), 3, k)
    for session in (one, two):
        before = [*told(session.certificate()), proved(session).ledger.open, proved(session).ledger.rows.copy().tobytes()]
        good = observed(70, 3, k, session.decide())
        for name, value in (("df", np.array([0.0, np.nan, 0.0])), ("f", np.inf), ("g", np.full(k, 1e71)), ("dg", np.full((k, 3), -np.inf))):
            with pytest.raises(bridle.InputError, match=f"^{name} "):
                session.observe(**{**good, name: value})
        assert [*told(session.certificate()), proved(session).ledger.open, proved(session).ledger.rows.copy().tobytes()] == before
    play((one, two), range(70, 100), 3, k)
    agree(one, two)


@pytest.mark.compiles
@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", ["python", "compiled"])
def test_asking_changes_nothing(name):
    quiet, asked = (session := pair(3)[name == "compiled"]), pair(3)[name == "compiled"]
    for t in range(1, 150):
        play((quiet, asked), range(t, t + 1), 3, 1 + t % 2 if t > 100 else 1)
        asked.certificate(), asked.report(), asked.bound(), asked.balances
    assert told(quiet.certificate()) == told(asked.certificate())
    assert proved(quiet).ledger.halfspaces.sources == proved(asked).ledger.halfspaces.sources
    assert proved(session).ledger.idle == proved(asked).ledger.idle


# --- contradictions, and when they are told ---------------------------------------------------------------------------------------------


def opposed(session: bridle.Session, t: int, k: int) -> list[type]:
    """A round with one limit that is met nowhere where that of the round before it is; gives the warnings."""
    sign, x = (1.0 if t % 2 else -1.0), session.decide()
    A = np.zeros((k, 2))
    A[:, 0] = sign
    A[1:, 1] = 1e-3 * np.arange(1, k)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        session.observe(f=0.0, df=np.zeros(2), g=A @ x + 0.25, dg=A)
    return [each.category for each in given]


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_a_contradiction_within_a_batch_is_told_at_its_end(k):
    found = []
    for session in pair(2):
        rounds = [t for t in range(1, 80) if bridle.InfeasibleWarning in opposed(session, t, k)]
        found.append((rounds, session.certificate().conflict.rounds))
    assert found[0][0] == found[1][0]
    for _, (one, other) in found:  # which of the rounds that say the same, the last bit of a decision may tell
        assert (one + other) % 2 == 1
    assert len(found[0][0]) == 1
    assert found[0][0][0] <= CONTRADICTION_EVERY
    assert len(set(found[0][1])) == 2


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("g", "dg", "margin"), [(5.0, [1.0, 0.0], 3.0), (0.5, [0.0, 0.0], np.inf), (1e60, [1e-290, 0.0], np.inf)])
def test_a_round_that_is_a_proof_by_itself_is_known_at_once(g, dg, margin):
    """The warning comes at the end of the batch."""
    for session in pair(2):
        alarmed = []
        for t in range(1, 70):
            mine = {"g": g, "dg": np.array(dg)} if t == 5 else {"g": -0.5, "dg": np.array([0.0, 1.0])}
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                session.observe(f=0.0, df=np.zeros(2), **mine)
            alarmed += [t] * any(each.category is bridle.InfeasibleWarning for each in given)
            conflict = session.certificate().conflict
            assert (conflict is not None) == (t >= 5)
            if conflict is not None:
                assert (conflict.rounds, conflict.found, conflict.constraints) == ((5,), 5, (0,))
                assert conflict.margin == pytest.approx(margin, rel=1e-6)
        assert alarmed == [CONTRADICTION_EVERY]


@pytest.mark.usefixtures("plain")
def test_a_contradiction_is_told_as_soon_where_every_round_ends_a_batch():
    """Of several halfspaces a round more than can wait for the next search have come by the next glance."""
    one, two = pair(3)
    play((one, two), range(1, CONTRADICTION_EVERY + 1), 3, 1, level=0.9)
    play((one, two), range(CONTRADICTION_EVERY + 1, 2 * CONTRADICTION_EVERY), 3, lambda t: 3 + t % 4, level=-0.9)
    agree(one, two)
    assert CONTRADICTION_EVERY < one.alarms["InfeasibleWarning"] <= CONTRADICTION_EVERY + 2 * WITNESS_EVERY


@pytest.mark.usefixtures("plain")
def test_rounds_that_wait_do_not_delay_alarms():
    """They are played in Python, and alarms come in time all the same."""
    for session in pair(2):
        for t in range(1, 8):
            session.observe(f=0.0, df=np.zeros(2), g=-1.0, dg=np.array([0.0, 1.0]), ticket=session.ask())
            first = session.ask()
            session.observe(f=0.1, df=np.array([0.1, 0.0]), g=-0.5, dg=np.array([0.0, 1.0]), ticket=first)
            assert proved(session).ledger.open == 2 * t
        assert session.rounds == 14
        told_at = [session.rounds for t in range(1, 80) if bridle.InfeasibleWarning in opposed(session, t, 1)]
        assert told_at == [CONTRADICTION_EVERY]


def limit(sessions: Any, *lines: tuple[list[float], float]) -> None:
    """A round with these limits <normal, u> <= level for each session, and three that say nothing."""
    for session in sessions:
        A, b = np.zeros((4, 2)), np.ones(4)
        for i, (normal, level) in enumerate(lines):
            A[i], b[i] = normal, level
        session.observe(f=0.0, df=np.zeros(2), g=A @ session.decide() - b, dg=A)


STRIP = ([1.0, 0.0], -0.5), ([-1.0, 0.0], 0.5 + 1e-5)
"""Too narrow for an action in it to be near at hand."""

CONTRARY = ([0.0, 1.0], 0.0), ([1.0, -1.0], 0.0), ([-1.0, -1.0], 0.0)
"""Met by the middle, and by nothing in the strip."""


@pytest.mark.usefixtures("plain")
def test_halfspaces_that_wait_to_be_kept_are_looked_at_before_the_witness_moves():
    for session in (sessions := pair(2)):
        session.observe(f=0.0, df=np.zeros(2), g=-np.ones(4), dg=np.zeros((4, 2)))
    for t in range(2, 200):
        limit(sessions, *{2: STRIP, 28: CONTRARY}.get(t, ()))
    agree(*sessions)
    for session in sessions:
        found = session.certificate().conflict
        assert found is not None
        assert (found.found, set(found.rounds)) == (CONTRADICTION_EVERY, {2, 28})


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("saved", [False, True])
def test_a_search_that_gave_up_is_taken_up_again(saved, monkeypatch, tmp_path):
    """After a search that gave up the next halfspaces are searched, whatever the old witness makes of them."""
    sessions = pair(2)
    with monkeypatch.context() as patch:
        patch.setattr(proof_search, "PROGRAMS", 0)
        for t in range(1, 41):
            limit(sessions, *{2: STRIP}.get(t, ()))
    if saved:
        for i, session in enumerate(sessions):
            session.save(tmp_path / f"{i}.npz")
        sessions = tuple(bridle.Session.load(tmp_path / f"{i}.npz") for i in range(2))
    for session in sessions:
        assert session.certificate().witness is None
    for t in range(41, 100):
        limit(sessions, *{50: CONTRARY}.get(t, ()))
    agree(*sessions)
    for session in sessions:
        assert session.certificate().conflict.found == 2 * CONTRADICTION_EVERY
        assert session.alarms["InfeasibleWarning"] == 2 * CONTRADICTION_EVERY


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("k", [1, 3, 10])
def test_a_warning_that_is_made_an_error_counts_no_round_twice(k):
    for session in pair(2):
        errors = 0
        for t in range(1, 150):
            sign, x = (1.0 if t % 2 else -1.0), session.decide()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    session.observe(f=0.0, df=np.zeros(2), g=np.full(k, sign * x[0] + 0.25), dg=np.tile([sign, 0.0], (k, 1)))
                except bridle.BridleWarning:
                    errors += 1
            assert session.rounds == t
            assert proved(session).ledger.complete().counted.sums.rounds == t
        assert errors >= 1
        assert session.certificate().conflict is not None


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("k", [1, 3])
def test_a_batch_whose_reading_is_broken_off_is_not_read_twice(k, monkeypatch):
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    for session in pair(3):
        play((session,), range(1, CONTRADICTION_EVERY), 3, k)
        with monkeypatch.context() as patch:
            patch.setattr(KeptHalfspaces, "extend", stop)
            with pytest.raises(KeyboardInterrupt):
                play((session,), range(CONTRADICTION_EVERY, 3 * CONTRADICTION_EVERY), 3, k)
        rounds = proved(session).ledger.complete().counted.sums.rounds
        assert rounds == state(session).now.begun
        play((session,), range(200, 250), 3, k)
        assert session.certificate().regret is not None or session.certificate().conflict is not None
        assert proved(session).ledger.complete().counted.sums.rounds == rounds + 50


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("again", [copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))], ids=["copied", "pickled"])
def test_a_copy_in_the_middle_of_a_batch_goes_its_own_way(again):
    for session in pair(3):
        play((session,), range(1, 50), 3, 1)
        other = again(session)
        play((other,), range(100, 120), 3, 1)
        play((session,), range(50, 90), 3, 1)
        whole = bridle.Session(session.policy, engine=session.engine)
        play((whole,), range(1, 90), 3, 1)
        assert told(session.certificate()) == told(whole.certificate())
        branched = bridle.Session(session.policy, engine=session.engine)
        play((branched,), range(1, 50), 3, 1)
        play((branched,), range(100, 120), 3, 1)
        assert told(other.certificate()) == told(branched.certificate())


# --- saving -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["python", "compiled"])
@pytest.mark.parametrize(("k", "at"), [(1, 45), (1, 64), (3, 77)])
def test_saved_in_the_middle_of_a_batch_it_goes_on_bit_for_bit(name, k, at, tmp_path):
    whole, half = (pair(3)[name == "compiled"] for _ in range(2))
    play((whole,), range(1, 150), 3, k)
    play((half,), range(1, at), 3, k)
    half.save(tmp_path / "a.npz")
    loaded = bridle.Session.load(tmp_path / "a.npz")
    assert told(loaded.certificate()) == told(half.certificate())
    assert (proved(loaded).ledger.open, proved(loaded).ledger.waiting) == (
        proved(half).ledger.open,
        proved(half).ledger.waiting,
    )
    play((loaded,), range(at, 150), 3, k)
    assert told(loaded.certificate()) == told(whole.certificate())
    other = bridle.Session.load(tmp_path / "a.npz", engine="python" if name == "compiled" else "compiled")
    play((other,), range(at, 150), 3, k)
    agree(whole, other)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("k", [1, 5])
def test_saved_in_the_middle_of_a_batch_that_python_ends_it_goes_on_bit_for_bit(k, tmp_path):
    for at in range(60, 64):
        whole = pair(3)[1]
        play((whole,), range(1, at), 3, k)
        whole.save(tmp_path / "a.npz")
        for session in (whole, loaded := bridle.Session.load(tmp_path / "a.npz")):
            for t in range(at, 70):
                session.observe(**observed(t, 3, k, session.decide()), modulus=0.1)
        assert [*map(np.ndarray.tobytes, map(np.asarray, records.leaves(proved(whole).ledger.counted).values()))] == [
            *map(np.ndarray.tobytes, map(np.asarray, records.leaves(proved(loaded).ledger.counted).values()))
        ]
        assert told(loaded.certificate()) == told(whole.certificate())


@pytest.mark.parametrize("name", ["ledger.open.rows", "ledger.open.numbers", "ledger.parked.lines", "ledger.parked.rounds"])
def test_a_file_whose_open_batch_is_damaged_is_refused(name, tmp_path):
    session = pair(3)[0]
    play((session,), range(1, 48), 3, 1)
    while not (proved(session).ledger.open and proved(session).ledger.parked):
        play((session,), range(session.rounds + 1, session.rounds + 2), 3, 1)
    session.save(tmp_path / "a.npz")
    header, arrays = contents(tmp_path / "a.npz")
    whole = arrays[name]
    for change in (np.zeros((7, 7, 7)), whole[:-1], np.concatenate([whole] * 40), np.zeros((0, *whole.shape[1:]))):
        put_together(tmp_path / "b.npz", header, {**arrays, name: change})
        with pytest.raises(bridle.InputError, match=r"b\.npz: it is damaged") as wrong:
            bridle.Session.load(tmp_path / "b.npz")
        assert "\n" not in str(wrong.value)

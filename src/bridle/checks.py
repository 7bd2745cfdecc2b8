"""What every domain and every policy must satisfy, as checks that raise AssertionError: for this library's own tests, and for authors."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bridle import domains, engines, policies, records
from bridle.core import BridleWarning, Feedback, InputError, Round
from bridle.functions import AffineFunction
from bridle.game.play import play, policy_for
from bridle.policies.registry import record_of
from bridle.problems import problem
from bridle.session.session import Session
from bridle.validate import show


def check_domain(domain: Any, seed: int = 0, points: int = 200, tolerance: float | None = None) -> None:
    """Try to refute, at `points` random, far, tied, boundary and interior points, that `domain` is what it says.

    Its projection must land inside, be idempotent, leave interior points alone bit for bit, be non-expansive and satisfy the variational
    inequality <v - Pv, y - Pv> <= 0 for every y of the set (which makes it *the* projection); a batch must give what a loop gives;
    `linear_argmin` must be in the set and attain `linear_min`; no two points may be farther apart than the diameter.

    With `scale` for the diameter plus the length of the centre: what concerns the set alone must hold to `tolerance` times scale,
    however far the point that was projected; where a point v comes in, its own rounding is of the order of |v|, so there it is
    `tolerance` times (scale + |v|). The default is 1e-12, some thousand roundings, and 1e-9 where a solver is called.

    >>> from bridle.domains import Simplex
    >>> check_domain(Simplex(3))
    """
    solver = any(not getattr(node, "compiled", True) for node in (domain, *records.nodes(domain)))
    tol = tolerance if tolerance is not None else 1e-9 if solver else 1e-12
    rng = np.random.default_rng(seed)

    d, center, diameter = domain.dim, domain.center(), domain.diameter()
    _require(isinstance(d, int) and d >= 1, f"dim must be a whole number above 0, not {show(d)}")
    _require(np.shape(center) == (d,), f"center() must have shape ({d},), not {np.shape(center)}")
    _require(isinstance(diameter, float) and 0.0 <= diameter < np.inf, f"diameter() must be a finite float, not {show(diameter)}")
    _require(domain.contains(center, tol), f"center() must be in the set, and {show(center)} is not")
    center += 1.0
    center = domain.center()
    _require(domain.contains(center, tol), "center() must return a fresh copy: changing what it returned changed the domain")
    scale = diameter + float(np.linalg.norm(center))
    _require(scale > 0.0, "a domain must not be the origin alone")
    ray = np.ones(d) / np.sqrt(d)
    _require(not domain.contains(center + (diameter + scale) * ray), "contains() must reject a point farther away than the diameter")

    # Projections: in a batch, one by one, and on two leading axes.
    v = _sample(rng, center, diameter or scale, scale, points)
    kept = v.copy()
    p = domain.project(v)
    _require(np.shape(p) == v.shape, f"project must keep the shape {v.shape}, not change it to {np.shape(p)}")
    _require(np.array_equal(v, kept), "project must not change its argument")
    reach = scale + np.linalg.norm(v, axis=1)
    one_by_one = np.array([domain.project(row) for row in v])
    _below(abs(one_by_one - p).max(axis=1), tol * reach, v, "project of a batch must equal project of each row")
    _below(abs(domain.project(v[None, :2]) - p[None, :2]).max(axis=(0, 2)), tol * reach[:2], v, "project must allow any leading axes")
    for a, b in zip(v, p, strict=True):
        _require(domain.contains(b, tol), f"project must land in the set: {show(a)} went to {show(b)}")
    _below(np.linalg.norm(domain.project(p) - p, axis=1), tol * scale, p, "project must leave its own results where they are")
    inner = center + rng.uniform(0.0, 0.9, (len(p), 1)) * (p - center)
    _below(np.linalg.norm(domain.project(inner) - inner, axis=1), tol * scale, inner, "project must leave points of the set where they are")
    for a in inner * (1.0 + 1e-9 * rng.normal(size=inner.shape)):  # all digits in use: sums with the centre would come back from anything
        if domain.contains(a, -1e-6):  # well inside; no point of a flat set is
            b = domain.project(a)
            _require(np.array_equal(a, b), f"project must return interior points bit for bit: {show(a)} became {show(b)}")

    # Linear minimisation.
    w = np.vstack([rng.normal(size=(points, d)), np.sign(rng.normal(size=(points // 4, d))), np.eye(d), -np.eye(d), np.zeros((1, d))])
    corner, least = domain.linear_argmin(w), domain.linear_min(w)
    _require(np.shape(corner) == w.shape, f"linear_argmin must keep the shape {w.shape}, not change it to {np.shape(corner)}")
    _require(np.shape(least) == (len(w), 1), f"linear_min must have shape ({len(w)}, 1) for a batch, not {np.shape(least)}")
    lengths = np.linalg.norm(w, axis=1)
    for a, b in zip(w, corner, strict=True):
        _require(domain.contains(b, tol), f"linear_argmin must be in the set: for {show(a)} it is {show(b)}")
    _below(abs((w * corner).sum(axis=1) - least[:, 0]), tol * lengths * scale, w, "linear_argmin must attain linear_min")
    single = np.array([float(domain.linear_min(row)) for row in w[:20]])
    _below(abs(single - least[:20, 0]), tol * lengths[:20] * scale, w, "linear_min of a batch must equal linear_min of each row")
    witnesses = np.vstack([p, inner, corner, center])
    _below(
        least[:, 0] - (w @ witnesses.T).min(axis=1), tol * lengths * scale, w, "linear_min must be no more than <v, x> anywhere in the set"
    )

    # The variational inequality: at its worst point, and at all others that are known, in case linear_argmin is wrong too.
    r = v - p
    slack = tol * np.linalg.norm(r, axis=1) * reach
    gaps = np.maximum((r * (domain.linear_argmin(-r) - p)).sum(axis=1), (r @ witnesses.T - (r * p).sum(axis=1, keepdims=True)).max(axis=1))
    _below(gaps, slack, v, "project must return the nearest point: <v - Pv, y - Pv> is above 0 for some y of the set")

    other = rng.permutation(len(v))
    growth = np.linalg.norm(p - p[other], axis=1) - np.linalg.norm(v - v[other], axis=1)
    _below(growth, tol * (reach + reach[other]), v, "project must not move points apart")
    some = witnesses[rng.permutation(len(witnesses))[:400]]
    widest = max(float(np.linalg.norm(some - y, axis=1).max()) for y in some)
    _require(widest <= diameter + tol * scale, f"diameter() is {diameter!r}, but two points of the set are {widest!r} apart")


def _sample(rng: np.random.Generator, center: np.ndarray, width: float, scale: float, points: int) -> np.ndarray:
    """Points around a set: near, at its size, far, a million times its scale away, and with many equal coordinates."""
    d = len(center)
    rays = rng.normal(size=(points, d)) / np.sqrt(d)
    lengths = np.resize([0.1 * width, 0.5 * width, width, 10.0 * width, 1e6 * scale], (points, 1))
    tied = np.resize([1.0, width, 1e6 * scale], (points // 4, 1)) * rng.integers(-1, 2, (points // 4, d))
    level = np.outer([0.0, width, -width, scale, 1e6 * scale, -1e6 * scale], np.ones(d))
    return np.vstack([center + lengths * rays, center + tied, tied, level, center + level])


# --- policies ------------------------------------------------------------------------------------------------------------------------

UNITS = ("lipschitz", "bound", "slater", "modulus", "noise")
"""The parameters that are multiplied by c when every cost and constraint is."""

SIZES = (1.0, 1e-6, 1.0, 1e6, 1e3, 1e-3)
"""How many times larger than promised the functions are, round by round."""


def check_policy(
    factory: Callable[..., Any] | str,
    places: Mapping[str, Any] | None = None,
    constraints: Sequence[int] = (1, 3),
    rounds: int = 90,
    seed: int = 0,
    scale_free: bool = False,
    **given: Any,
) -> list[str]:
    """Try to refute that what `factory` makes is a policy, and list what was checked; what did not apply starts with "skipped".

    `factory(domain, constraints=k)` gives a record or a `bridle.policy(...)`; a registered name stands for that policy with what it needs
    to know of a problem of `rounds` / 3 rounds, so that it plays past its horizon. `given` is handed on. `places` holds domains by name.

    On every domain, for every k: decisions are in the domain whatever comes (zeros, ties, functions from 1e-6 to 1e6 times as large as
    promised, constraints that nothing satisfies); the same inputs give the same bits, in any order and from any earlier state; nothing
    handed over is changed; a state holds floats and float64 arrays of constant shapes; nothing a caller does to a session's arrays
    reaches its state; a saved session goes on bit for bit; refused input changes nothing. Where the record can be compiled, B runs at once
    are the B runs one by one to 1e-12, and the engines agree to 1e-9 (on the first domain).

    With `scale_free`, costs, constraints and `lipschitz` times a constant give the same decisions; `factory` then takes `lipschitz` too.

    >>> check_policy("sinha2024", {"disk": domains.Ball(2)}, constraints=[2])[0]
    'disk, k = 2: decisions, repetition, purity, state, session, resume, refusal, batch'
    """
    make = _maker(factory, rounds, given)
    report: list[str] = []
    played = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BridleWarning)  # past its horizon, or its assumptions broken: that is meant here
        for name, domain in (_places() if places is None else places).items():
            fits = [k for k in constraints if _accepts(make, domain, k, name, report)]
            if not fits and domain.dim not in constraints:  # it may want one constraint for each coordinate
                fits = [k for k in (domain.dim,) if _accepts(make, domain, k, name, report)]
            for k in fits:
                case = _Case(f"{name}, k = {k}", make, domain, k, seed)
                report.append(f"{case.name}: {', '.join(_check_case(case, rounds, report) + _check_scale(case, scale_free))}")
            if fits and not played:  # compiling takes its time: once
                report.append(_check_engines(_Case(name, make, domain, fits[-1], seed)))
            played = played or bool(fits)
    _require(played, f"the policy must accept some domain: {'; '.join(report)}")
    return report


class _Case(NamedTuple):
    """One domain and one number of constraints, and how to make policies for them; `name` begins the messages."""

    name: str
    make: Callable[..., Any]
    domain: Any
    k: int
    seed: int

    def policy(self, scale: float | None = None) -> Any:
        return self.attempt("the factory", self.make, self.domain, self.k, scale)

    def require(self, holds: Any, message: str, *values: Any) -> None:
        if not holds:  # the values go into the message here only: printing arrays takes longer than checking them
            raise AssertionError(f"{self.name}: {message.format(*map(show, values)) if values else message}")

    def attempt(self, what: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """What the call gives; that it raises anything is a failure."""
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                return call(*given, **named)
        except Exception as wrong:
            raise AssertionError(f"{self.name}: {what} raised {type(wrong).__name__}: {wrong}") from wrong


def _places() -> dict[str, Any]:
    return {
        "ball": domains.Ball(radius=2.0, center=[1.0, -0.5, 0.25]),
        "box": domains.Box([-1.0, 0.0], [0.5, 3.0]),
        "segment": domains.Box([-0.5], [1.0]),
        "simplex": domains.Simplex(4),
    }


def _maker(factory: Any, rounds: int, given: dict[str, Any]) -> Callable[..., Any]:
    """How to make the policy for a domain and k constraints, with its units scaled where a scale is given."""
    if not isinstance(factory, str):
        return lambda domain, k, scale=None: factory(domain, constraints=k, **given, **({} if scale is None else {"lipschitz": scale}))

    def named(domain: Any, k: int, scale: float | None = None) -> Any:
        modulus = 1.0 if policies.entry(factory).strongly_convex else 0.0
        source = problem("halfspaces", max(1, rounds // 3), domain=domain, constraints=k, modulus=modulus)
        known = {**source.constants, **given}
        units = [p.name for p in policies.parameters(factory) if p.name in UNITS and (p.required or p.name in given)]
        return policy_for(factory, source, **{**given, **({} if scale is None else {name: scale * known[name] for name in units})})

    return named


def _accepts(make: Callable[..., Any], domain: Any, k: int, name: str, report: list[str]) -> bool:
    """Whether the policy can be made for this; a factory may refuse a domain or a k with an InputError, and with nothing else."""
    try:
        each = getattr(record_of(make(domain, k)), "each", None)
        if each is not None and len(each) != k:
            raise InputError(f"the policy is for {len(each)} constraints")
    except InputError as no:
        report.append(f"skipped {name}, k = {k}: {no}")
        return False
    except Exception as wrong:
        raise AssertionError(f"{name}, k = {k}: the factory raised {type(wrong).__name__}: {wrong}") from wrong
    return True


def _check_case(case: _Case, rounds: int, report: list[str]) -> list[str]:
    """Everything that concerns one policy by itself."""
    policy = case.policy()
    record = record_of(policy)
    case.require(records.is_record(record), f"a policy must be a NamedTuple, not {show(record)}")
    for method in ("init", "decide", "update"):
        case.require(hasattr(record, method), f"a policy must have the method `{method}`")
    stream = _rough(case, rounds)
    middle = case.domain.center()
    corner = case.domain.linear_argmin(np.linspace(1.0, 2.0, case.domain.dim))
    path = _walk(case, record, stream, middle)
    _walk(case, record, stream[::-1], corner)  # other inputs, before the same are repeated
    _same_path(case, path, _walk(case, record, stream, middle), "the same inputs must give the same decisions")
    _same_path(case, path, _walk(case, record_of(case.policy()), stream, middle), "policies made alike must decide alike")
    for t in np.random.default_rng(case.seed).permutation(len(stream)):
        again = case.attempt("update", record.update, path.states[t], path.feedbacks[t])
        case.require(
            _bits(again) == _bits(path.states[t + 1]), f"an update repeated from round {t + 1}'s state must give what it gave then"
        )
    done = ["decisions", "repetition", "purity", "state"]
    done += _check_session(case, policy, stream, report)
    if _python_only(record):
        report.append(f"skipped batch on {case.name}: {type(record).__name__} is not pure arithmetic")
        return done
    _check_batch(case, record)
    return [*done, "batch"]


class _Path(NamedTuple):
    decisions: list[np.ndarray]
    states: list[Any]
    feedbacks: list[Feedback]


def _walk(case: _Case, record: Any, stream: list[Round], x1: np.ndarray) -> _Path:
    """Play the rounds from x1, and look at every decision, every state, and whether anything that was handed over has changed."""
    own, start = _bits(record), x1.copy()
    state = case.attempt("init", record.init, x1)
    shapes = {name: np.shape(leaf) for name, leaf in records.leaves(state).items()}
    raw, path = [], _Path([], [state], [])
    for t, chosen in enumerate([*stream, None], 1):
        _check_state(case, state, shapes, t)
        kept = _bits(state)
        x = case.attempt("decide", record.decide, state)
        case.require(isinstance(x, np.ndarray) and x.dtype == float, "a decision must be a float64 array, not {}, in round {}", x, t)
        case.require(x.shape == x1.shape, "a decision must have shape {}, not {}, in round {}", x1.shape, x.shape, t)
        case.require(np.isfinite(x).all(), "a decision must be finite, not {}, in round {}", x, t)
        case.require(case.domain.contains(x), "a decision must be in the domain, and {} of round {} is not", x, t)
        case.require(x.tobytes() == record.decide(state).tobytes(), f"decide must give the same decision when asked again, in round {t}")
        case.require(_bits(state) == kept, f"decide must not change the state, in round {t}")
        raw.append(x)
        path.decisions.append(x.copy())
        if chosen is None:
            break
        feedback = chosen.reveal(x)
        given = _bits(feedback)
        after = case.attempt(f"update in round {t}", record.update, state, feedback)
        case.require(_bits(state) == kept, f"update must not change the state it is given, in round {t}")
        case.require(_bits(feedback) == given, f"update must not change the feedback, in round {t}")
        case.require(_bits(record) == own, f"update must not change the policy itself, in round {t}")
        state = after
        path.states.append(state)
        path.feedbacks.append(feedback)
    for t, (x, then) in enumerate(zip(raw, path.decisions, strict=True), 1):
        case.require(x.tobytes() == then.tobytes(), f"the decision of round {t} must stay as it was, and later rounds changed it")
    case.require(np.array_equal(x1, start), "init must not change x1, and no update may")
    return path


def _check_state(case: _Case, state: Any, shapes: dict[str, Any], t: int) -> None:
    case.require(records.is_record(state), "a state must be a NamedTuple or a tuple, not {}", state)
    found = records.leaves(state)
    case.require(found.keys() == shapes.keys(), f"a state must keep its leaves {sorted(shapes)}, not have {sorted(found)}, in round {t}")
    for name, leaf in found.items():
        fine = isinstance(leaf, float) or (isinstance(leaf, np.ndarray) and leaf.dtype == float)
        kind = f"{type(leaf).__name__} {leaf.dtype}" if isinstance(leaf, np.ndarray) else type(leaf).__name__
        case.require(fine, f"a state holds floats and float64 arrays; its leaf {name!r} is of type {kind} in round {t}")
        shape = np.shape(leaf)
        case.require(shape == shapes[name], f"leaf {name!r} of the state must keep its shape {shapes[name]}, not {shape}, in round {t}")
        case.require(not np.isnan(leaf).any(), f"leaf {name!r} of the state is NaN in round {t}")


def _check_session(case: _Case, policy: Any, stream: list[Round], report: list[str]) -> list[str]:
    """What a caller of a session can rely on."""
    start = case.domain.center()
    session = case.attempt("Session", Session, policy, start, domain=case.domain)
    half = len(stream) // 2
    if needs := _needs_functions(Session(policy, start, domain=case.domain), stream):
        report.append(f"skipped sessions on {case.name}: {needs}")
        return []
    start += 1.0
    for before in stream[:half]:
        _observe(case, session, before)
        kept, x = _bits(session.state), session.decide()
        x += 1.0
        case.require(_bits(session.state) == kept, "changing a decision that a session gave out must not change its state")
        case.require(case.domain.contains(session.decide()), "changing a decision that a session gave out must not change the next one")
    _check_refusals(case, session, stream[half])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "session.npz")
        session.save(path)
        registered = isinstance(policy, policies.Configured) and policy.name in policies.names()
        other = case.attempt("Session.load", Session.load, path, None if registered else policy)
    for t, chosen in enumerate([*stream[half:], None], half):
        alike = session.decide().tobytes() == other.decide().tobytes() and _bits(session.state) == _bits(other.state)
        case.require(alike, f"a session loaded after {half} rounds must go on bit for bit, and does not after {t}")
        if chosen is not None:
            _observe(case, session, chosen)
            _observe(case, other, chosen)
    _check_excess(case, other, stream[half])
    return ["session", "resume", "refusal"]


def _needs_functions(session: Session, stream: list[Round]) -> str:
    """Why the policy cannot go by values and gradients alone, though it could go by the functions; empty where it can."""
    for chosen in stream:
        feedback = chosen.reveal(session.decide())
        try:
            session.observe(feedback.f, feedback.df, feedback.g, feedback.dg)
        except InputError as no:
            return str(no)
        except Exception:  # a failure, and `_observe` will say so
            return ""
    return ""


def _observe(case: _Case, session: Session, chosen: Round) -> None:
    """One round of a session, whose arrays are overwritten right after it."""
    feedback = chosen.reveal(session.decide())
    df, g, dg = feedback.df.copy(), feedback.g.copy(), feedback.dg.copy()
    case.attempt("Session.observe", session.observe, feedback.f, df, g, dg)
    kept = _bits(session.state)
    for array in (df, g, dg):
        array += 7.0
    case.require(_bits(session.state) == kept, "changing the arrays that a session observed must not change its state")


def _check_refusals(case: _Case, session: Session, chosen: Round) -> None:
    """Input that cannot be used is an InputError and changes nothing."""
    feedback = chosen.reveal(session.decide())
    fine: dict[str, Any] = {"f": feedback.f, "df": feedback.df, "g": feedback.g, "dg": feedback.dg}
    for name, value in fine.items():
        for wrong in (np.asarray(value) * np.nan, np.asarray(value) + np.inf, "much", None, np.zeros((*np.shape(value), 2))):
            refused = _refuses(case, session, {**fine, name: wrong})
            case.require(refused, f"a session must refuse {name} = {show(wrong)}")


def _refuses(case: _Case, session: Session, given: dict[str, Any]) -> bool:
    kept = _bits(session.state), session.decide().tobytes(), session.rounds, session.cost
    try:
        session.observe(**given)
    except InputError:
        now = _bits(session.state), session.decide().tobytes(), session.rounds, session.cost
        case.require(now == kept, f"input that is refused must leave the session as it was: {show(given)}")
        return True
    except Exception as wrong:
        raise AssertionError(f"{case.name}: Session.observe raised {type(wrong).__name__}, not InputError, for {show(given)}") from wrong
    return False


def _check_excess(case: _Case, session: Session, chosen: Round) -> None:
    """What is far too large is refused, or the decision stays in the domain."""
    for name in ("f", "df", "g", "dg"):
        feedback = chosen.reveal(session.decide())
        given: dict[str, Any] = {"f": feedback.f, "df": feedback.df, "g": feedback.g, "dg": feedback.dg}
        if not _refuses(case, session, {**given, name: 1e60 * np.sign(given[name])}):
            case.require(case.domain.contains(session.decide()), f"a decision must be in the domain also when {name} has been 1e60")
    feedback = chosen.reveal(session.decide())
    _refuses(case, session, {"f": feedback.f, "df": feedback.df, "g": feedback.g, "dg": feedback.dg, "modulus": 0.5})
    case.require(case.domain.contains(session.decide()), "a decision must be in the domain also when the cost's modulus was told")


def _check_batch(case: _Case, record: Any) -> None:
    """Three runs with their own starting points and functions, at once and one by one."""
    rng = np.random.default_rng([case.seed, 1])
    starts = case.domain.project(case.domain.center() + case.domain.diameter() * rng.standard_normal((3, case.domain.dim)))
    streams = [_gentle(case, 40, run) for run in range(3)]
    together = [records.widen(records.stack(row), 1) for row in zip(*streams, strict=True)]
    state = case.attempt("init of 3 runs", record.init, starts.copy())
    alone = [_walk(case, record, stream, start) for stream, start in zip(streams, starts, strict=True)]
    scale = case.domain.diameter() + float(np.linalg.norm(case.domain.center()))
    for t, chosen in enumerate([*together, None], 1):
        x = case.attempt("decide of 3 runs", record.decide, state)
        case.require(
            np.shape(x) == starts.shape, f"the decisions of 3 runs must have shape {starts.shape}, not {np.shape(x)}, in round {t}"
        )
        off = float(np.max(np.abs(x - np.array([path.decisions[t - 1] for path in alone]))))
        case.require(off <= 1e-12 * scale, f"3 runs at once must be the 3 runs one by one; off by {off:.3g} in round {t}")
        if chosen is not None:
            state = case.attempt(f"update of 3 runs in round {t}", record.update, state, chosen.reveal(x))


def _check_scale(case: _Case, scale_free: bool) -> list[str]:
    if not scale_free:
        return []
    start, stream, size = case.domain.center(), _gentle(case, 60, 5), case.domain.diameter()
    plain = _walk(case, record_of(case.policy(1.0)), stream, start)
    for factor in (1000.0, 0.003):
        scaled = [records.transform(lambda leaf, factor=factor: factor * leaf, chosen) for chosen in stream]
        other = _walk(case, record_of(case.policy(factor)), scaled, start)
        off = np.abs(np.array(plain.decisions) - np.array(other.decisions)).max(axis=1)
        t = int(np.argmax(off > 1e-9 * size))
        case.require(
            off[t] <= 1e-9 * size, f"functions {factor:g} times as large must not change decisions; off by {off[t]:.3g} in round {t + 1}"
        )
    return ["scale"]


def _check_engines(case: _Case) -> str:
    policy = case.policy()
    if _python_only(record_of(policy)):
        return f"skipped engines on {case.name}: {type(record_of(policy)).__name__} runs on engine python only"
    try:
        engines.load("jax")
    except InputError as missing:
        return f"skipped engines on {case.name}: {missing}"
    source = problem("halfspaces", 200, case.seed, domain=case.domain, constraints=case.k)
    one, two = (
        case.attempt(f"engine {engine}", play, policy, source, engine=engine, keep="decisions").decisions for engine in ("python", "jax")
    )
    off = np.abs(one - two).max(axis=1)
    apart = ~(off <= 1e-9 * case.domain.diameter())
    case.require(not apart.any(), f"the engines must agree; off by {off.max():.3g}, and first in round {int(np.argmax(apart)) + 1}")
    return f"{case.name}: engines"


def _gentle(case: _Case, rounds: int, salt: int) -> list[Round]:
    """Fresh affine functions that keep the promises: unit gradients, and one point satisfies every constraint."""
    rng = np.random.default_rng([case.seed, 2, salt])
    d = case.domain.dim
    point = case.domain.project(case.domain.center() + 0.3 * case.domain.diameter() * rng.standard_normal(d))

    def unit() -> np.ndarray:
        a = rng.standard_normal(d)
        return np.asarray(a / np.linalg.norm(a))

    def constraint(a: np.ndarray) -> AffineFunction:
        return AffineFunction(a, -float(a @ point) - 0.1 * float(rng.exponential()))

    return [Round(AffineFunction(unit(), float(rng.normal())), tuple(constraint(unit()) for _ in range(case.k))) for _ in range(rounds)]


def _rough(case: _Case, rounds: int) -> list[Round]:
    """Affine functions of all sizes, with zeros and ties; first nothing at all, then what nobody can satisfy among the rest."""
    zero = AffineFunction(np.zeros(case.domain.dim), 0.0)
    stream = []
    for t, chosen in enumerate(_gentle(case, rounds, 3)):
        size = SIZES[t % len(SIZES)]
        cost, rows = records.transform(lambda leaf, size=size: size * leaf, chosen)
        kind = "nothing" if t < 2 else ("all", "all", "no cost", "no constraints", "tied", "all", "flat", "level", "all", "nothing")[t % 10]
        if kind in ("nothing", "no cost"):
            cost = zero
        if kind in ("nothing", "no constraints"):
            rows = (zero,) * case.k
        if kind == "tied":
            rows = (rows[0],) * case.k
        if kind == "flat":  # violated everywhere, and no direction helps
            rows = tuple(AffineFunction(zero.a, size) for _ in rows)
        if kind == "level":  # satisfied everywhere
            rows = tuple(AffineFunction(zero.a, -size) for _ in rows)
        stream.append(Round(cost, rows))
    return stream


def _same_path(case: _Case, one: _Path, two: _Path, message: str) -> None:
    for t, (a, b) in enumerate(zip(one.decisions, two.decisions, strict=True), 1):
        case.require(a.tobytes() == b.tobytes(), message + ", bit for bit; round {} gave {} and then {}", t, a, b)


def _bits(record: Any) -> dict[str, Any]:
    """The leaves of a record as bytes; what holds no numbers as itself."""
    return {
        name: np.asarray(leaf).tobytes() if isinstance(leaf, (float, int, np.ndarray, np.generic)) else leaf
        for name, leaf in records.leaves(record).items()
    }


def _python_only(record: Any) -> bool:
    return any(not getattr(node, "compiled", True) for node in records.nodes(record))


def _require(holds: Any, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _below(values: np.ndarray, limits: Any, at: np.ndarray, message: str) -> None:
    """Require values[i] <= limits[i] for each i (so no NaNs), and say at which point that fails worst."""
    limits = np.broadcast_to(limits, values.shape)
    wrong = ~(values <= limits)
    if wrong.any():
        i = int(np.argmax(np.where(wrong, np.nan_to_num(values - limits, nan=np.inf), -np.inf)))
        raise AssertionError(f"{message}; off by {values[i]:.3g}, where {limits[i]:.3g} is rounding, at {show(at[i])}")

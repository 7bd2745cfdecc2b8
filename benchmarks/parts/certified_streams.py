"""Random streams whose certificates are held against exact programs, at random rounds, between looks too.

A third of them are infeasible in the end: two limits that face each other, a family around a point, limits that turn round by round, one
that misses the whole domain; some of them only in the last round, by a margin from a third of the diameter down to a millionth.
"""

from __future__ import annotations

import warnings
from collections import Counter
from math import isnan
from typing import NamedTuple

import numpy as np

import bridle
from parts.exact import Program

DOMAINS = ("ball", "box", "simplex", "l1")
POLICIES = ("anytime", "plain", "sinha2024", "practice", "adagrad", "curved")
CONFLICTS = ("facing", "family", "turning", "outside")
THIN = 1e-8
"""Within this part of the diameter exact programs do not tell whether something is feasible."""


class Line(NamedTuple):
    """A limit <a, u> <= b."""

    a: np.ndarray
    b: float


class Stream(NamedTuple):
    """What a stream is drawn from; `planted` is the first round of the contradiction, 0 where there is none."""

    domain: object
    point: np.ndarray
    scale: float
    rounds: int
    constraints: int
    modulus: float
    tight: bool
    planted: int
    conflict: str
    margin: float


class Outcome(NamedTuple):
    """What came of a stream: what was wrong, by kind, of how many certificates; the first round after which nothing is feasible, the one in
    which the session found that by itself, and whether its last certificate says so; how far certified regret is above the exact one.
    """

    wrong: Counter
    asked: int
    since: int
    found: int
    certified: bool
    rounds: int
    gaps: list
    kind: str
    dim: int


def domain_of(kind: str, d: int, size: float, rng: np.random.Generator):
    middle = size * rng.standard_normal(d) / np.sqrt(d)
    if kind == "ball":
        return bridle.Ball(radius=size, center=middle)
    if kind == "box":
        return bridle.Box(middle - size * rng.uniform(0.1, 1.0, d), middle + size * rng.uniform(0.1, 1.0, d))
    return bridle.Simplex(max(d, 2), mass=size) if kind == "simplex" else bridle.L1Ball(radius=size, center=middle)


def draw(rng: np.random.Generator, most: int) -> Stream:
    """A stream in up to `most` dimensions; in many dimensions it is short."""
    d = int(min(most, int(rng.choice([8, 80, 1000], p=[0.88, 0.08, 0.04]))) ** rng.random() + 1e-9)
    domain = domain_of(str(rng.choice(DOMAINS)), d, 10.0 ** rng.uniform(-3, 3), rng)
    point = domain.project(domain.center() + domain.diameter() * rng.standard_normal(domain.dim) / np.sqrt(d) * rng.choice([0.0, 0.1, 1.0]))
    rounds = int(rng.integers(2, 40))
    modulus = 0.0 if rng.random() < 0.6 else 10.0 ** rng.uniform(-2, 1)
    infeasible, last = rng.random() < 1.0 / 3.0, rng.random() < 0.25
    planted = 0 if not infeasible else rounds if last else int(rng.integers(1, rounds + 1))
    conflict = str(rng.choice(CONFLICTS if planted < rounds else ("facing", "outside")))
    if infeasible and planted < rounds:
        rounds += int(rng.integers(0, 100 if rng.random() < 0.5 and d <= 50 else 20))  # time to be noticed
    margin = domain.diameter() * 10.0 ** rng.uniform(-6.0, -0.5)
    scale, k, tight = 10.0 ** rng.uniform(-3, 3), int(rng.integers(1, 4)), bool(rng.random() < 0.3)
    return Stream(domain, point, scale, rounds, k, modulus, tight, planted, conflict, margin)


class Limits:
    """Makes the limits of a stream, round by round: all hold at its point until the contradiction is planted."""

    def __init__(self, stream: Stream, rng: np.random.Generator) -> None:
        self.stream, self.rng, self.lines = stream, rng, []
        d, several = stream.domain.dim, min(stream.domain.dim, int(rng.integers(1, 9)))
        family = rng.standard_normal((several + 1, several))
        family -= family.mean(0)
        self.family = family @ np.linalg.qr(rng.standard_normal((d, several)))[0].T
        self.plane = np.linalg.qr(rng.standard_normal((d, 2 if d > 1 else 1)))[0].T
        self.turn = rng.uniform(0.05, 0.5)

    def next(self, t: int, x: np.ndarray) -> list[Line]:
        """The limits of round t at decision x."""
        stream = self.stream
        lines = [self._fair(x) for _ in range(stream.constraints)]
        if stream.planted and t >= stream.planted:
            lines[int(self.rng.integers(len(lines)))] = self._foul(t)
        self.lines += lines
        return lines

    def _fair(self, x: np.ndarray) -> Line:
        rng, stream = self.rng, self.stream
        away, a = x - stream.point, rng.standard_normal(stream.domain.dim)
        if rng.random() < 0.4 and np.linalg.norm(away) > 1e-9 * stream.domain.diameter():
            a = away  # the worst that is allowed
        a = a * (stream.scale * 10.0 ** rng.uniform(-3.0, 0.0) / np.linalg.norm(a))
        room = 0.0 if stream.tight else float(np.linalg.norm(a)) * stream.domain.diameter() * rng.exponential(0.03)
        return Line(a, float(a @ stream.point) + room)

    def _foul(self, t: int) -> Line:
        stream, rng = self.stream, self.rng
        size = stream.scale * 10.0 ** rng.uniform(-3.0, 0.0)
        if stream.conflict == "facing":
            old = self.lines[0] if self.lines else self._fair(stream.point)
            length = float(np.linalg.norm(old.a))
            return Line(-size * old.a / length, size * (-old.b / length - stream.margin))
        if stream.conflict == "family":
            a = self.family[t % len(self.family)]
        elif stream.conflict == "turning":
            a = np.array([np.cos(self.turn * t), np.sin(self.turn * t)])[: len(self.plane)] @ self.plane
        else:
            a = rng.standard_normal(len(stream.point))
        a = a / max(float(np.linalg.norm(a)), 1e-300)
        if stream.conflict == "outside":
            return Line(size * a, size * (float(stream.domain.linear_min(a)) - stream.margin))
        return Line(size * a, size * (float(a @ stream.point) - stream.margin))


def policy_of(stream: Stream, rng: np.random.Generator):
    name, domain = str(rng.choice(POLICIES)), stream.domain
    G = stream.scale * (1.0 + stream.modulus)
    if name == "curved":
        return bridle.policy(
            "anytime", domain, **({"modulus": stream.modulus * stream.scale / domain.diameter()} if stream.modulus else {})
        )
    if name in ("anytime", "plain"):
        return bridle.policy("anytime", domain, halfspace=name == "anytime")
    if name == "adagrad":
        return bridle.policy("adagrad", domain)
    return bridle.policy("sinha2024", domain, horizon=stream.rounds, lipschitz=G, preset="practice" if name == "practice" else "theory")


class Record:
    """What was played, in sums: enough for the exact regret of any action."""

    def __init__(self, stream: Stream) -> None:
        d = stream.domain.dim
        self.cost, self.q, self.M, self.offset, self.lengths = 0.0, np.zeros(d), 0.0, 0.0, 0.0
        self.where, self.lines = stream.domain, []

    def add(self, x, c, mu, y, lines) -> tuple[float, np.ndarray]:
        """The cost <c, u> + mu/2 |u - y|^2 of a round at x, and its gradient there."""
        f, df = float(c @ x) + 0.5 * mu * float((x - y) @ (x - y)), c + mu * (x - y)
        self.cost, self.q, self.M, self.offset = self.cost + f, self.q + c - mu * y, self.M + mu, self.offset + 0.5 * mu * float(y @ y)
        self.lengths += float(np.linalg.norm(df))
        self.lines += lines
        return f, df

    def regret(self, u) -> float:
        return self.cost - (float(self.q @ u) + 0.5 * self.M * float(u @ u) + self.offset)

    @property
    def least(self) -> float:
        """No action's regret can be certified to be below this."""
        D = self.where.diameter()
        return -D * self.lengths - 0.5 * self.M * D * D

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([line.a for line in self.lines]), np.array([line.b for line in self.lines])


def met(rows, levels, u, D: float) -> bool:
    """Whether an action meets every limit, to twelve digits."""
    return bool((rows @ u - levels <= 1e-12 * np.linalg.norm(rows, axis=1) * D).all())


def judge(found, record: Record, stream: Stream) -> tuple[list[str], bool, float | None]:
    """What is wrong with a certificate, whether something is feasible, and how far it is above the exact regret, in units of G D t."""
    domain, D, wrong = stream.domain, stream.domain.diameter(), []
    unit = D * max(record.lengths, 1e-300)
    rounding = 1e-12 * unit
    rows, levels = record.rows()
    program = Program(domain, rows, levels)
    numbers = (
        found.regret,
        found.regret_any,
        found.regret_algorithm,
        found.squared_bound,
        found.bound.regret,
        found.bound.ccv,
        found.squared,
    )
    if any(value is not None and isnan(value) for value in numbers):
        wrong.append("not a number")
    best = Program(domain, np.zeros((0, domain.dim)), np.zeros(0)).best(record.q, record.M)
    if found.regret_any is None or found.regret_any < record.regret(domain.project(best)) - rounding:
        wrong.append("regret_any below the regret of an action")
    for name, value in (("regret", found.regret), ("regret_algorithm", found.regret_algorithm)):
        if value is not None and value < record.least - rounding:
            wrong.append(f"{name} below what is possible")
    if found.squared_bound is not None and found.squared_bound < found.squared:
        wrong.append("squared_bound below what has happened")
    if found.bound.ccv is not None and found.bound.ccv < found.ccv * (1.0 - 1e-9):
        wrong.append("bound on violation below what has happened")
    if found.conflict is not None and not (
        found.regret is found.regret_algorithm is found.squared_bound is found.witness is found.bound.ccv is None
    ):
        wrong.append("a promise beside the proof that nothing is feasible")
    depth = -np.inf if met(rows, levels, stream.point, D) else program.depth()
    if found.conflict is not None:
        exact = program.depth()
        if depth <= -THIN * D or met(rows, levels, stream.point, D):
            wrong.append("a contradiction that is not there")
        elif exact < min(found.conflict.margin, D) - THIN * D:
            wrong.append("a margin that is not there")
        return wrong, False, None
    if depth > THIN * D:
        return wrong, False, None
    if depth > -THIN * D:
        return wrong, True, None  # too thin to tell
    # The exact program's answer, moved in a little until it meets every limit: an action that does, and what it would have cost.
    inner = stream.point if met(rows, levels, stream.point, D) else None
    gap = None
    try:
        answer = program.best(record.q, record.M)
    except RuntimeError:
        answer = None
    for share in (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1.0):
        if answer is None or (share > 0.0 and inner is None):
            break
        u = domain.project(answer if inner is None else (1.0 - share) * answer + share * inner)
        if met(rows, levels, u, D):
            truth = record.regret(u)
            if found.regret is None or found.regret < truth - rounding:
                wrong.append("regret below that of a feasible action")
            if found.regret_algorithm is not None and found.regret_algorithm < truth - 1e-9 * (abs(truth) + unit):
                wrong.append("regret_algorithm below that of a feasible action")
            if found.regret is not None:
                gap = (found.regret - truth) / unit
            break
    return wrong, True, gap


def play(seed: int, most: int = 1000) -> Outcome:
    """Play one stream, and judge its certificates at some random rounds and at the last."""
    rng = np.random.default_rng([seed, 14])
    stream = draw(rng, most)
    limits, record, session = Limits(stream, rng), Record(stream), bridle.Session(policy_of(stream, rng))
    T, d, D = stream.rounds, stream.domain.dim, stream.domain.diameter()
    ask = {T, *(int(t) for t in rng.integers(1, T + 1, 2))}
    wrong, gaps, since, last = Counter(), [], 0, None
    for t in range(1, T + 1):
        x = session.decide()
        c = (
            rng.standard_normal(d)
            if rng.random() < 0.5
            else rng.choice([-1.0, 1.0]) * (x - stream.point) + 1e-3 * D * rng.standard_normal(d)
        )
        c *= stream.scale * 10.0 ** rng.uniform(-2.0, 0.0) / np.linalg.norm(c)
        mu = stream.modulus * stream.scale / D * (rng.random() < 0.8)
        lines = limits.next(t, x)
        f, df = record.add(x, c, mu, stream.domain.project(x + D * rng.standard_normal(d) / np.sqrt(d)), lines)
        told = {"modulus": mu} if mu > 0.0 else {}
        session.observe(f, df, [float(line.a @ x) - line.b for line in lines], [line.a for line in lines], **told)
        if t in ask:
            last = session.certificate()
            faults, possible, gap = judge(last, record, stream)
            wrong.update(faults)
            gaps += [] if gap is None else [gap]
            if not possible and not since:
                since = _first(record, stream, t)
    own, kind = session.read(lambda _, state: state.slow.ledger).conflict, stream.conflict if stream.planted else ""
    return Outcome(wrong, len(ask), since, 0 if own is None else own.found, last.conflict is not None, T, gaps, kind, d)


def _first(record: Record, stream: Stream, t: int) -> int:
    """The first round after which nothing was feasible, by bisection."""
    rows, levels = record.rows()
    k, low, high = stream.constraints, 0, t
    while high - low > 1:
        middle = (low + high) // 2
        if Program(stream.domain, rows[: middle * k], levels[: middle * k]).depth() > THIN * stream.domain.diameter():
            high = middle
        else:
            low = middle
    return high


def table(outcomes: list[Outcome]) -> str:
    """What came of many streams, as text."""
    wrong = sum((each.wrong for each in outcomes), Counter())
    bad = [each for each in outcomes if each.since]
    gaps = np.array([gap for each in outcomes for gap in each.gaps])
    lines = [
        f"{len(outcomes)} streams in {min(each.dim for each in outcomes)} to {max(each.dim for each in outcomes)} dimensions, "
        f"{sum(each.asked for each in outcomes)} certificates held against exact programs",
        f"  wrong: {wrong.total()}" + "".join(f"; {what}: {count}" for what, count in wrong.items()),
    ]
    if len(gaps):
        lines.append(
            f"  certified regret above the exact one, in units of D sum |grad f|: median {np.median(gaps):.1e}, most {gaps.max():.1e}"
        )
    lines.append("  infeasible | streams | in the last certificate | found by the session itself | rounds until then: median, 95 %")
    groups = {
        "all": bad,
        "in the last round only": [each for each in bad if each.since == each.rounds],
        "for 64 rounds or more": [each for each in bad if each.rounds - each.since >= 64],
        **{f"{kind} limits": [each for each in bad if each.kind == kind] for kind in CONFLICTS},
    }
    for name, some in groups.items():
        if some:
            delays = np.array([each.found - each.since for each in some if each.found] or [np.nan])
            certified, found = (f"{np.mean(share):.1%}" for share in ([each.certified for each in some], [each.found > 0 for each in some]))
            later = f"{np.median(delays):.0f}, {np.quantile(delays, 0.95):.0f}"
            lines.append(f"  {name} | {len(some)} | {certified} | {found} | {later}")
    return "\n".join(lines)


def many(seeds, most: int = 1000) -> list[Outcome]:
    """Play a stream for every seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        return [play(seed, most) for seed in seeds]

"""Records of every strange kind, as a script of bytes says, into a session; and what must hold after each.

Five bytes are one record. They pick what is done (a round, a question for a ticket, late feedback, a round given up), in which form and
size the numbers come, and, every other time, one argument that is replaced by something strange. A refusal must be an `InputError` that
leaves everything as it was, bit for bit; what is accepted must leave finite numbers. A twin gets what was accepted and nothing else, and
must end up the same.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import fractions
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle import records
from bridle.core import BridleWarning, InputError
from helpers import fingerprints

BYTES = 5
DIM = 3
SIZES = (
    0.0,
    5e-324,
    1e-310,
    1e-160,
    1e-60,
    1e-9,
    1e-3,
    *(1.0,) * 12,
    7.0,
    1e3,
    1e9,
    1e30,
    1e60,
    9e69,
    1e70,
    1.1e70,
    1e77,
    1e154,
    1e155,
    1e300,
    1.7e308,
)
"""What a record's numbers are multiplied by: mostly 1, so that sessions get somewhere."""


class RaisesOnArray:
    """Something that NumPy asks for an array, and that fails."""

    def __array__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("no array today")


class RaisesOnFloat:
    def __float__(self) -> float:
        raise ZeroDivisionError("no float today")

    __index__ = None


class LiesAboutLength:
    """A sequence that says it is longer than it is."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> float:
        if i > 0:
            raise IndexError(i)
        return 1.0


class RaisesOnRepr(list):  # type: ignore[type-arg]
    """What cannot even be shown in a message."""

    def __repr__(self) -> str:
        raise ValueError("no words today")


def endless_list() -> list[Any]:
    """A list that holds itself."""
    inner: list[Any] = []
    inner.append(inner)
    return inner


def deep_list(depth: int = 200) -> list[Any]:
    """A list in a list in a list."""
    inner: list[Any] = [1.0]
    for _ in range(depth):
        inner = [inner]
    return inner


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


NEVER: tuple[Callable[[], Any], ...] = (
    lambda: "1.0", lambda: b"1.0", lambda: "", lambda: 1j, lambda: ..., dict, set, object, lambda: float, lambda: len, lambda: np.nan,
    lambda: np.inf, lambda: -np.inf, lambda: -np.nan, lambda: 10**400, lambda: -(10**400), lambda: 10**5000, lambda: [10**400, 0.0, 0.0],
    list, lambda: [[]], lambda: [np.nan], lambda: [None, 0.0, 0.0], lambda: ["a", "b", "c"], lambda: ["1", "2", "3"],
    lambda: [[1.0], [2.0, 3.0]], lambda: [0.0, np.inf, 0.0], lambda: np.full(DIM, -np.inf), lambda: np.full((2, DIM), np.nan),
    endless_list, deep_list, RaisesOnArray, RaisesOnFloat, lambda: RaisesOnRepr([None]), lambda: iter([1.0, 0.0, 0.0]),
    lambda: (x for x in (1.0, 0.0, 0.0)), lambda: np.ones(DIM, dtype=complex), lambda: np.array(["1", "2", "3"]),
    lambda: np.array([b"1", b"2", b"3"]), lambda: np.array([1.0, None, 2.0], dtype=object), lambda: np.array(["1", "2", "3"], dtype=object),
    lambda: np.array([True, False, True]), lambda: True, lambda: np.True_, lambda: [True, False, True], lambda: np.zeros((0, DIM)),
    lambda: np.zeros((DIM, 0)), lambda: np.zeros(0), lambda: np.ones((2, 2, DIM)), lambda: np.ones((1,) * 20),
    lambda: np.array(["2020-01-01"] * DIM, dtype="datetime64[D]"), lambda: np.ones(DIM, dtype="timedelta64[s]"),
    lambda: np.datetime64("NaT"), lambda: datetime.date(2020, 1, 1), lambda: datetime.timedelta(1),
    lambda: np.zeros(DIM, dtype=[("a", float)]), lambda: np.zeros((), dtype=[("a", float), ("b", int)]), lambda: np.void(b"12345678"),
    lambda: np.ma.masked, lambda: np.ma.array([1.0, 0.0, 0.0], mask=[False, True, False]), lambda: np.ma.array(1.0, mask=True),
    lambda: np.ma.array(np.ones((2, DIM)), mask=np.eye(2, DIM, dtype=bool)),
)  # fmt: skip
"""What no argument may ever be; each is made anew."""

ODD: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: -0.0, lambda: 0, lambda: 1, lambda: np.float32(0.5), lambda: np.float16(0.5), lambda: np.longdouble(0.5),
    lambda: np.int8(1), lambda: np.uint64(2**63), lambda: 2**80, lambda: np.array(0.5), lambda: np.array([0.5]), lambda: np.array([[0.5]]),
    lambda: [0.0, 1.0, 0.0], lambda: (0.0, 1.0, 0.0), lambda: range(DIM), lambda: np.ones(DIM, dtype=np.float32), lambda: np.arange(DIM),
    lambda: np.ones(DIM, dtype=">f8"), lambda: np.ones(2 * DIM)[::2], lambda: np.ones(DIM)[::-1], lambda: read_only(np.ones(DIM)),
    lambda: np.asfortranarray(np.ones((2, DIM))), lambda: np.ones((1, DIM)), lambda: np.ones((2, DIM)), lambda: np.ones((7, DIM)),
    lambda: np.ones(DIM + 1), lambda: np.ones((DIM, 2)), lambda: np.full(DIM, 5e-324), lambda: np.full(DIM, 1e308), lambda: 1e308,
    lambda: -1e308, lambda: np.full(DIM, -9e69), lambda: decimal.Decimal("0.5"), lambda: fractions.Fraction(1, 2),
    lambda: np.ma.array([1.0, 0.0, 0.0]), lambda: memoryview(np.ones(DIM)),
    lambda: bytearray(b"\x01\x02\x03"), lambda: np.matrix([[1.0] * DIM]),
    lambda: np.array([1.0, 2.0, 3.0], dtype=object), lambda: np.ones((2000, DIM)), lambda: np.ones(2000), lambda: "3", lambda: 2.5,
    LiesAboutLength,
)  # fmt: skip
"""What some argument may be, in some form."""

STRANGE = NEVER + ODD
ARGUMENTS = ("f", "df", "g", "dg", "modulus", "ticket")

_rng = np.random.default_rng(11)
COSTS, LIMITS = _rng.standard_normal((64, DIM)), _rng.standard_normal((64, 4, DIM))
VALUES = _rng.standard_normal((64, 5))
MARGINS = 0.5 * _rng.random((64, 4))


class Case(NamedTuple):
    """A session to torment: its policy by name, for how many constraints (0: any number), and how it is set up."""

    policy: str
    k: int = 0
    engine: str = "python"
    late: str = "copies"
    certify: bool = True

    def session(self) -> bridle.Session:
        domain = bridle.Simplex(DIM) if bridle.policies.entry(self.policy).domains == ("simplex",) else bridle.Ball(DIM)
        strong = 1.0 if bridle.policies.entry(self.policy).strongly_convex else 0.0
        source = bridle.problem("halfspaces", 50, domain=domain, constraints=self.k or 1, modulus=strong)
        policy = bridle.policy_for(self.policy, source)
        if not self.k:
            policy = bridle.policy(self.policy, domain, **{name: each for name, each in policy.parameters.items() if name != "constraints"})
        settings = {"engine": self.engine, "late": self.late, "certify": self.certify, "pending": 5}
        return bridle.Session(policy, **settings)


def play(case: Case, script: bytes) -> Counter[str]:
    """Play a script, and check after every record; how many there were of which kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BridleWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # of np.matrix
        return _Play(case).run(script)


class _Play:
    def __init__(self, case: Case) -> None:
        self.case, self.session, self.twin, self.stranger = case, case.session(), case.session(), case.session()
        self.tickets = [self.stranger.ask() for _ in range(4)]  # of another run, though their numbers may be due here
        self.own: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.k = case.k or 2

    def run(self, script: bytes) -> Counter[str]:
        before = self.seen()
        for at in range(0, len(script) - BYTES + 1, BYTES):
            act, arguments, hopeless = self.record(script[at : at + BYTES])
            self.counts["records"] += 1
            try:
                act(self.session, **arguments)
            except InputError as refusal:
                self.counts["refused"] += 1
                if self.seen() != before:
                    self.fail(act, arguments, f"was refused ({refusal}), and something changed")
                continue
            except Exception as problem:
                self.fail(act, arguments, f"raised {type(problem).__name__}: {problem}")
                continue
            self.counts["accepted"] += 1
            before = self.seen()
            if hopeless:
                self.fail(act, arguments, "was accepted")
            if not (np.isfinite(self.session.decide()).all() and np.isfinite(self.session.cost) and np.isfinite(self.session.ccv)):
                self.fail(act, arguments, "left a number that is not finite")
            if arguments.get("ticket") is not None:
                arguments["ticket"] = int(arguments["ticket"])  # the twin has its own
            act(self.twin, **arguments)
        found, other = (self.all_of(each) for each in (self.session, self.twin))
        if found != other:
            raise AssertionError(f"what was refused has left a trace: {fingerprints.differences(found, other)}")
        return self.counts

    def fail(self, act: Callable[..., object], arguments: dict[str, Any], what: str) -> None:
        raise AssertionError(f"{act.__name__}({describe(arguments)}) {what}")

    def all_of(self, session: bridle.Session) -> dict[str, Any]:
        return fingerprints.of_session(session, certified=self.case.certify)

    def seen(self) -> tuple[object, ...]:
        """What a refusal must not change, as cheaply as it can be had."""
        session = self.session
        seen: tuple[object, ...] = (
            session.rounds,
            session.cost,
            session.violations.tobytes(),
            session.decide().tobytes(),
            session.pending,
            session.dropped,
        )
        if self.case.engine != "python":
            return seen  # the twin shows the rest: to ask for the state would end the compiled rounds
        return (*seen, *(np.asarray(leaf, dtype=float).tobytes() for leaf in records.leaves(session.state).values()))

    def record(self, code: bytes) -> tuple[Callable[..., object], dict[str, Any], bool]:
        """What the bytes say: what to do, with what, and whether it must be refused."""
        what, form, which, size, strange = code
        t, scale = which % 64, SIZES[size % len(SIZES)]
        if what < 12:
            return self.ask, {}, False
        if what < 18:
            return self.forget, {"ticket": self.ticket(form)}, form % 8 == 7
        k = self.k if form % 16 else 1 + form // 16 % 4
        x = self.session.decide()
        with np.errstate(all="ignore"):
            df, A = COSTS[t] * scale, LIMITS[t, :k] * scale
            given: dict[str, Any] = {"f": float(df @ x), "df": df, "g": A @ x - MARGINS[t, :k] * scale, "dg": A}
        hopeless = False
        if form % 8 == 1:
            del given["f"], given["df"]
        elif form % 8 == 2:
            del given["g"], given["dg"]
        elif form % 8 == 3:
            given = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in given.items()}
        elif form % 8 == 4:
            given = {name: np.asarray(value, dtype=np.float32) for name, value in given.items()} if scale < 1e30 else given
        if what % 8 == 0:
            given["ticket"] = self.ticket(form)
            hopeless = form % 8 == 7
            if what % 16 == 0:
                for name in ("f", "df") if form % 2 else ("g", "dg"):
                    given.pop(name, None)
        elif what % 8 == 2:
            given["modulus"] = abs(scale)
        if strange % 2:
            name = ARGUMENTS[strange // 2 % len(ARGUMENTS)]
            value = STRANGE[(which + 256 * size) % len(STRANGE)]
            given = {name: value()} | {other: each for other, each in given.items() if other != name}  # the strange one is named first
            # A strange ticket stands in the place of the one that was hopeless: None is none.
            hopeless = (hopeless and name != "ticket") or (value in NEVER and name in ARGUMENTS[:5])
        return self.observe, given, hopeless

    def ticket(self, form: int) -> Any:
        """A ticket: mostly one that waits, else one that is closed, of another run, or a number."""
        if form % 8 == 7:
            return self.tickets[form // 8 % len(self.tickets)]
        if form % 8 == 6 or not self.own:
            return form
        return self.own[form % len(self.own)]

    def ask(self, session: bridle.Session) -> None:
        ticket = session.ask()
        if session is self.session:
            self.own = [*self.own[-6:], ticket]
        if session is self.twin:
            assert int(ticket) == int(self.own[-1])

    def forget(self, session: bridle.Session, ticket: Any) -> None:
        session.forget(ticket)

    def observe(self, session: bridle.Session, **given: Any) -> None:
        session.observe(**copy.copy(given))


def describe(arguments: dict[str, Any]) -> str:
    """Arguments in a message, also those that cannot be shown."""
    shown = []
    for name, value in arguments.items():
        try:
            shown.append(f"{name}={' '.join(repr(value).split())[:60]}")
        except Exception:
            shown.append(f"{name}=<{type(value).__name__}>")
    return ", ".join(shown)


SLOW = ("steiner", "vaze2025", "vaze2025-strong", "guo2022", "guo2022-strong", "yi2021", "yi2021-dynamic")
"""Policies that solve programs: one of their kind each."""


def cases(engine: str = "python") -> list[Case]:
    """Every registered policy, for fixed numbers of constraints and for any; some without certificates."""
    found = []
    for i, name in enumerate(bridle.policies.names()):
        for k in (2,) if name in SLOW else (1, 2, 3, 0):
            case = Case(name, k, engine, "pool" if name == "rate" else "copies", certify=i % 5 != 4)
            try:
                session = case.session()
            except InputError:
                continue
            if hasattr(session.policy.record, "points"):  # it takes values alone, and refuses everything that these records hold
                continue
            if k and session.policy.parameters.get("constraints", k) != k:
                continue
            found.append(case)
    return found

"""Save files: one `.npz` with the leaves under their dotted names and a JSON header; written atomically, never pickled.

A session in one piece of bytes, as a journal keeps it: what it was made from, and snapshots of it.

A capsule is a save file with a few facts before it that a save file does not have: the budgets, what was changed on the way, the evidence
of all events so far, and who made it on which machine. Its digest is of the facts and of every number; where a session was made from and
how it was played does not matter to it, only where it stands. So two sessions with one digest go on alike.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from struct import Struct
from types import ModuleType
from typing import Any, BinaryIO, NamedTuple, TypedDict, TypeVar, cast

import numpy as np

from bridle import policies, records, storage, validate
from bridle.core import InputError
from bridle.game.totals import RunningTotals
from bridle.ops import Array, Scalar
from bridle.policies.registry import Configured, with_room
from bridle.policies.round_maps import RuleMixture
from bridle.records import Arrays
from bridle.session.alarms import WarningLog, Watch
from bridle.session.boundary import Boundary, Memory
from bridle.session.feedback import LARGEST, Limits
from bridle.session.ledger import LedgerFacts
from bridle.session.parts import SessionParts
from bridle.session.purse import Budgets, Purse
from bridle.storage import Facts, StrPath

SCHEMA = 4
"""The version of the format: files of no other are read."""

MEMBERS = ("start", "state", "totals", "copies", "desk", "ledger", "boundary", "domain", "parameters")
"""What the names of a save file's arrays begin with, up to the first dot."""

FINITE = ("desk",)
"""Those that never hold an infinite number: what was given or decided."""

CLOSE = 1e-6
"""How far outside its domain a decision may lie, in the domain's own measure: solvers leave them there."""

ROOMS = ("domains", "functions", "learners", "policies", "rules")
"""The rooms that define the record types a file may name. Files name the type alone, so a type can move between their modules."""

R = TypeVar("R")


class SessionFacts(TypedDict):
    """What a save file's header holds of a session, beside its policy."""

    late: str
    pending: int
    timeout: int | None
    run: str
    largest: float | None
    most_constraints: int | None
    names: list[str]
    alarms: dict[str, int]
    sizes: Sequence[float]
    engine: str
    compiled: int | None
    ledger: LedgerFacts | None


class SessionOptions(TypedDict, total=False):
    """The arguments with which a session is made again."""

    certify: bool
    levels: Sequence[float]
    tolerance: float
    late: str
    pending: int
    timeout: int | None
    engine: str
    largest: float | None
    most_constraints: int | None
    names: list[str]


class SessionImage(NamedTuple):
    """Everything that a save file holds of a session; `compiled` is for how many constraints its round was compiled, if it was."""

    parts: SessionParts
    start: Array
    rounds: int
    totals: RunningTotals
    log: WarningLog
    engine: str
    compiled: int | None
    limits: Limits
    boundary: Boundary | None = None
    memory: Memory = Memory()


def save(path: StrPath, session: SessionImage) -> None:
    """Write a save file: the whole new one, or the old one stays."""
    members = packed(session)
    with storage.replacing(storage.named(path)) as file:
        write(file, members)


def write(file: BinaryIO, members: Arrays) -> None:
    """Write the members of a save file, one after the other."""
    try:
        np.savez(file, **members)  # type: ignore[arg-type]
    except ValueError as complaint:  # an archive that is broken off complains of that, over what broke it off
        raise complaint.__context__ or complaint from None


def packed(session: SessionImage) -> Arrays:
    """What a save file holds of a session: its arrays, and the header as text under its own name."""
    parts, pending = session.parts, session.parts.pending
    first, *others = pending.copies
    k = len(session.totals.hard)
    states = [records.leaves(with_room(parts.record, copy.state, k)) for copy in others]
    more: dict[str, Scalar] = {
        f"copies.{key}": np.stack([np.asarray(state[key], dtype=float) for state in states]) for key in (states or [{}])[0]
    }
    more |= {f"desk.{key}": value for key, value in pending.arrays().items()}
    facts: SessionFacts = {
        "late": pending.late,
        "pending": pending.limit,
        "timeout": pending.timeout,
        "alarms": session.log.rounds,
        "sizes": session.log.sizes,
        "engine": session.engine,
        "compiled": session.compiled,
        "run": pending.run,
        "largest": None if session.limits.largest == LARGEST else session.limits.largest,
        "most_constraints": session.limits.most,
        "names": list(parts.names),
        "ledger": None,
    }
    watch = session.log.watch
    if watch is not None:
        more |= records.leaves(watch, "ledger.watch")
    if parts.ledger is not None:
        arrays, facts["ledger"] = parts.ledger.saved()
        more |= {f"ledger.{key}": value for key, value in arrays.items()}
    if session.boundary is not None:
        more |= {
            f"boundary.{key}": value
            for key, value in session.boundary.saved(_with_room(session.boundary, session.memory, k), session.rounds, pending.front).items()
        }
    totals = {"totals.rounds": float(session.rounds), **records.leaves(session.totals, "totals")}
    return _sealed(parts, session.start, with_room(parts.record, first.state, k), totals, more, facts)


def _with_room(boundary: Boundary, memory: Memory, k: int) -> Memory:
    """A session's memory, with room for k constraints in the states of policies that are rules and have not learned yet how many."""
    players = boundary.through.players if isinstance(boundary.through, RuleMixture) else []
    states = (with_room(record, state, k) for (_, record), state in zip(players, memory.states, strict=True))
    return memory._replace(states=tuple(states))


class Unportable(Exception):
    """A value that only its author can rebuild."""


class RecordCode(TypedDict, total=False):
    """A value in a header: one of a plain value, the name of an array, a tuple, a record's type with its parts, or a policy's recipe."""

    value: bool | int | float | str | None
    array: str
    tuple: list[RecordCode]
    record: str
    parts: dict[str, RecordCode]
    policy: str
    domain: RecordCode
    parameters: dict[str, RecordCode]


class Header(TypedDict, total=False):
    """The JSON header of a save file; without `policy` its author must give the policy again, because of its part `own` if that is told."""

    library: str
    schema: int
    policy: str | None
    kind: str
    domain: RecordCode
    parameters: dict[str, RecordCode]
    own: str
    session: SessionFacts
    digest: str


@dataclass(frozen=True)
class Saved:
    """What a save file holds, checked."""

    path: str
    header: Header
    arrays: Arrays
    seal: str
    """Its digest."""

    @property
    def start(self) -> Array:
        """The decision of the first round."""
        return self.arrays["start"]

    @property
    def facts(self) -> SessionFacts:
        """What the session noted beside its numbers."""
        facts = self.header.get("session")
        if not isinstance(facts, dict):
            raise InputError(f"cannot load {self.path}: its header is damaged")
        return facts

    @property
    def options(self) -> SessionOptions:
        """With which arguments to make the session."""
        with self.checking():
            facts, options = self.facts, SessionOptions()
            for name in ("late", "pending", "timeout", "engine", "largest", "most_constraints"):
                options[name] = facts[name]
            if facts["names"]:
                options["names"] = facts["names"]
            ledger = facts["ledger"]
            options["certify"] = ledger is not None
            if ledger is not None:
                options["levels"], options["tolerance"] = ledger["levels"], ledger["tolerance"]
            return options

    def restore(self, fresh: SessionImage) -> SessionImage:
        """Put what was saved into the parts of a session just made; the numbers that it goes on with."""
        parts, pending, ledger, facts = fresh.parts, fresh.parts.pending, fresh.parts.ledger, self.facts
        rounds, cost, hard = self.totals
        template = with_room(parts.record, pending.ready.state, len(hard))
        state = self.fill(template)
        restored = fresh._replace(rounds=rounds, totals=RunningTotals(cost, hard, self.arrays["totals.signed"]), compiled=None)
        with self.checking():
            arrays = self.part("desk.")
            pending.run = str(facts["run"])
            pending.restore(arrays, [state, *(self.fill(template, "copies.", i) for i in range(len(arrays["copies"]) - 1))])
            fresh.log.rounds = {str(kind): int(t) for kind, t in facts["alarms"].items()}
            cost, constraint, value = facts["sizes"]
            fresh.log.sizes = (float(cost), float(constraint), float(value))
            if ledger is not None and facts["ledger"] is not None:
                ledger.restore(self.part("ledger."), facts["ledger"], rounds)
            if boundary := self.part("boundary."):
                before = self.fill(template, "boundary.before.") if any(name.startswith("before.") for name in boundary) else None
                edge = fresh.boundary or Boundary(None)
                states = _with_room(edge, edge.after, len(hard)).states
                restored = restored._replace(boundary=edge.restored(boundary, before, self.fill(states, "boundary.states.")))
            watch = self.part("ledger.watch.")
            if watch:
                since, x, limits = (watch[name] for name in Watch._fields)
                if x.shape != self.start.shape or limits.ndim != 1:
                    raise ValueError("watch")
                fresh.log.watch = Watch(int(since), x, limits)
            compiled = facts["compiled"]
            restored = restored._replace(compiled=None if compiled is None else int(compiled))
        self.check_decisions(parts)
        return restored

    def check_decisions(self, parts: SessionParts) -> None:
        """Refuse decisions that are not finite, and those of a registered policy that are not in its domain."""
        waiting = [each.x for each in parts.pending.waiting.values()]
        for x in [copy.x for copy in parts.pending.copies] + waiting:
            within = parts.domain is None or parts.configured is None or parts.domain.contains(x, CLOSE)
            if x.shape != self.start.shape or not np.isfinite(x).all() or not within:
                raise InputError(f"cannot load {self.path}: it is damaged (a decision must lie in the domain; {validate.show(x)} does not)")

    def part(self, prefix: str) -> Arrays:
        """The arrays whose names begin like this, without it."""
        return records.under(prefix, self.arrays)

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Blame the file for whatever goes wrong while its arrays are put back."""
        try:
            yield
        except (InputError, MemoryError):
            raise
        except Exception as wrong:
            raise InputError(f"cannot load {self.path}: it is damaged ({type(wrong).__name__}: {validate.show(str(wrong))})") from None

    @property
    def totals(self) -> tuple[int, float, Array]:
        """How many rounds, the total cost, and the violation of every constraint."""
        rounds = validate.whole(f"totals.rounds in {self.path}", self.arrays["totals.rounds"], 0)
        cost = validate.number(f"totals.cost in {self.path}", self.arrays["totals.cost"])
        return rounds, cost, validate.vector(f"totals.hard in {self.path}", self.arrays["totals.hard"])

    def make_policy(self) -> Configured:
        """The registered policy that was saved."""
        name, kind = self.header.get("policy"), self.header.get("kind")
        if name is None and "own" in self.header:
            own = str(self.header["own"]).removeprefix("parameters.")
            raise InputError(f"cannot load {self.path}: its policy ({kind}) has a part of your own, {own}; give the policy as policy=...")
        if name is None:
            raise InputError(f"cannot load {self.path}: it holds a policy that is not registered ({kind}); give it as policy=...")
        try:
            domain = decode_value(self.header["domain"], self.arrays)
            parameters = {name: decode_value(code, self.arrays) for name, code in self.header["parameters"].items()}
            return policies.policy(name, domain, **parameters)
        except InputError as wrong:
            raise InputError(f"cannot load {self.path}: {wrong}") from None
        except MemoryError:
            raise
        except Exception:  # only this library writes headers, so whatever else goes wrong was done to the file
            raise InputError(f"cannot load {self.path}: its header is damaged") from None

    def fill(self, template: R, prefix: str = "state.", place: int | None = None) -> R:
        """A state like `template` with the saved leaves, or with one of several saved; any difference in names or shapes is an error."""
        saved = self.part(prefix) if place is None else {name: value[place] for name, value in self.part(prefix).items()}
        wanted = records.leaves(template)
        if saved.keys() != wanted.keys():
            odd = sorted(saved.keys() ^ wanted.keys())[0]
            where = "missing from" if odd in wanted else "only in"
            raise InputError(f"cannot load {self.path}: it does not fit this policy, leaf {odd!r} is {where} the file")
        for name, leaf in wanted.items():
            if np.shape(leaf) != saved[name].shape:
                odd = f"leaf {name!r} has shape {saved[name].shape}, not {np.shape(leaf)}"
                raise InputError(f"cannot load {self.path}: it does not fit this policy, {odd}")
        return records.filled(template, saved)


def _sealed(
    parts: SessionParts,
    start: Array,
    state: object,
    totals: dict[str, Scalar],
    more: dict[str, Scalar],
    facts: SessionFacts,
) -> Arrays:
    arrays, policy = {"start": start}, parts.configured
    header: dict[str, object] = {"library": "bridle", "schema": SCHEMA, "policy": None, "kind": type(parts.record).__name__}
    header["session"] = facts
    if policy is not None:
        try:
            domain, parameters = policy.recipe
            codes = {key: encode_value(value, f"parameters.{key}", arrays) for key, value in parameters.items()}
            header |= {"domain": encode_value(domain, "domain", arrays), "parameters": codes, "policy": policy.name}
        except Unportable as own:
            arrays = {"start": start}  # a learner, potential, domain or rule of the user's own: loading needs policy=...
            header["own"] = str(own)
    given = {**{f"state.{key}": leaf for key, leaf in records.leaves(state).items()}, **totals, **more}
    arrays |= {key: np.asarray(value, dtype=float) for key, value in given.items()}
    return {"header": np.array(storage.sealed(header, arrays)), **arrays}


def read(path: StrPath) -> Saved:
    """Read a save file back, or say in one line what is wrong with it."""
    return parsed(storage.read_whole(path), storage.named(path))


def parsed(data: bytes, name: str) -> Saved:
    """A save file's bytes read back; `name` is what is to blame where they are damaged."""
    try:
        arrays = storage.unpack(data)
    except ValueError:
        raise InputError(f"cannot read {name}: it is truncated, damaged, or not a save file") from None
    try:
        header = cast(Facts, storage.parse(str(arrays.pop("header"))))
        if header["library"] != "bridle":
            raise KeyError("library")
        schema, seal = header["schema"], str(header["digest"])
    except (KeyError, ValueError, TypeError):
        raise InputError(f"cannot read {name}: it was not written by this version of bridle") from None
    if schema != SCHEMA:
        raise InputError(f"cannot read {name}: it has schema {schema}, and this version of bridle reads schema {SCHEMA} alone")
    try:
        storage.check(header, arrays)
    except ValueError as problem:
        raise InputError(f"cannot read {name}: {problem}") from None
    missing = {"start", "totals.rounds", "totals.cost", "totals.hard", "totals.signed"} - arrays.keys()
    if missing:
        raise InputError(f"cannot read {name}: {sorted(missing)[0]!r} is missing")
    for key, value in arrays.items():
        root = key.partition(".")[0]
        if root not in MEMBERS:
            raise InputError(f"cannot read {name}: it holds {validate.show(key)}, which is not part of a save file")
        if value.dtype.kind != "f" or not (np.isfinite(value) if root in FINITE else ~np.isnan(value)).all():
            raise validate.refused(f"cannot read {name}: {key!r} must hold numbers", value)
    return Saved(name, cast(Header, header), {key: np.array(value, dtype=float) for key, value in arrays.items()}, seal)


def encode_value(value: object, name: str, arrays: Arrays) -> RecordCode:
    """A JSON form of a value whose arrays go into `arrays` under dotted names."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if records.is_record(value):
        kind = type(value)
        if hasattr(value, "_fields") and _kinds().get(kind.__name__) is not kind:
            raise Unportable(name)
        parts = {part: encode_value(inner, f"{name}.{part}", arrays) for part, inner in records.children(value)}
        return {"record": kind.__name__, "parts": parts} if hasattr(value, "_fields") else {"tuple": list(parts.values())}
    if isinstance(value, Configured):  # a policy that is a rule
        domain, parameters = value.recipe
        settings = {key: encode_value(inner, f"{name}.parameters.{key}", arrays) for key, inner in parameters.items()}
        return {"policy": value.name, "domain": encode_value(domain, f"{name}.domain", arrays), "parameters": settings}
    raise Unportable(name)


def decode_value(code: RecordCode, arrays: Arrays) -> Any:
    """What `encode_value` was given."""
    if "value" in code:
        return code["value"]
    if "array" in code:
        return arrays[code["array"]]
    if "tuple" in code:
        return tuple(decode_value(part, arrays) for part in code["tuple"])
    if "policy" in code:
        settings = {key: decode_value(inner, arrays) for key, inner in code["parameters"].items()}
        return policies.policy(code["policy"], decode_value(code["domain"], arrays), **settings)
    kind = _kinds().get(code["record"])
    if kind is None:
        raise InputError(f"it names a record {validate.show(code['record'])}, which is not part of bridle")
    return kind(**{part: decode_value(inner, arrays) for part, inner in code["parts"].items()})


@cache
def _kinds() -> dict[str, type]:
    """The record types that a file may name."""
    kinds = [kind for room in ROOMS for module in _modules(room) for kind in vars(module).values()]
    own = [kind for kind in kinds if isinstance(kind, type) and hasattr(kind, "_fields")]
    return {kind.__name__: kind for kind in own if kind.__module__.split(".")[:2] in [["bridle", room] for room in ROOMS]}


def _modules(room: str) -> list[ModuleType]:
    package = importlib.import_module(f"bridle.{room}")
    names = [found.name for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]
    return [package, *map(importlib.import_module, names)]


MAGIC, LENGTH = b"bridle-session-1\n", Struct("<I")


class Capsule(NamedTuple):
    """The facts of a capsule, and its save file."""

    facts: Facts
    saved: Saved
    digest: bytes


def sealed(facts: Facts, image: SessionImage) -> tuple[bytes, bytes]:
    """A capsule in bytes, and its digest."""
    members, file = packed(image), io.BytesIO()
    write(file, members)
    head = storage.canonical(facts).encode()
    seal = cast(Facts, storage.parse(str(members["header"])))["digest"]
    return b"".join((MAGIC, LENGTH.pack(len(head)), head, file.getvalue())), _digest(head, seal)


def opened(data: bytes, name: str) -> Capsule:
    """A capsule's bytes read back; `name` is what is to blame where they are damaged."""
    start = len(MAGIC) + LENGTH.size
    if not data.startswith(MAGIC) or len(data) < start:
        raise InputError(f"cannot read {name}: it was not written by this version of bridle, or is damaged")
    end = start + LENGTH.unpack_from(data, len(MAGIC))[0]
    try:
        facts = cast(Facts, storage.parse(data[start:end]))
    except ValueError:
        raise InputError(f"cannot read {name}: it is damaged") from None
    saved = parsed(data[end:], name)
    return Capsule(facts, saved, _digest(data[start:end], saved.seal))


def _digest(head: bytes, seal: str) -> bytes:
    return sha256(head + b"\n" + seal.encode()).digest()


# --- who made it --------------------------------------------------------------------------------------------------------------------------


@cache
def library(engine: str) -> str:
    """The versions on which the bits of a round depend."""
    names = ["numpy", "scipy", *(["llvmlite"] if engine == "compiled" else [])]
    own = getattr(sys.modules["bridle"], "__version__", "?")  # the whole package imports this file, not the other way round
    return ", ".join([f"engine {engine}", f"bridle {own}", *(f"{name} {_version(name)}" for name in names)])


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "?"


@cache
def machine() -> str:
    """The machine on which the bits of a round depend."""
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"


# --- the policy ---------------------------------------------------------------------------------------------------------------------------


def refuse_another_policy(policy: object, saved: Saved, name: str) -> None:
    """One error that says how a policy differs from the one that a session was made with; none where they are the same."""
    mine = policy if isinstance(policy, Configured) else None
    kind = type(policy.record if mine is not None else policy).__name__  # type: ignore[attr-defined]
    its = saved.header.get("policy")
    if its is None:  # nobody but its author can tell what it is
        if kind != saved.header["kind"]:
            raise _differs(name, "policy", saved.header["kind"], kind)
        return
    if mine is None or mine.name != its:
        raise _differs(name, "policy", its, kind if mine is None else mine.name)
    arrays: dict[str, Any] = {}
    domain, parameters = mine.recipe
    try:
        codes = {key: encode_value(value, f"parameters.{key}", arrays) for key, value in parameters.items()}
        given = {"domain": encode_value(domain, "domain", arrays), **{f"parameters.{key}": code for key, code in codes.items()}}
    except Unportable as odd:
        raise InputError(f"policy must be made of what bridle has to resume {name!r}; its {odd} is not") from None
    stored = {"domain": saved.header["domain"], **{f"parameters.{key}": code for key, code in saved.header["parameters"].items()}}
    for part in sorted(given.keys() | stored.keys()):
        one, other = (
            None
            if part not in codes
            else storage.digest({"code": codes[part]}, {key: value for key, value in found.items() if f"{key}.".startswith(f"{part}.")})
            for codes, found in ((given, {key: np.asarray(value, dtype=float) for key, value in arrays.items()}), (stored, saved.arrays))
        )
        if one != other:
            what = part.removeprefix("parameters.")
            raise _differs(name, what, _shown(stored.get(part), saved.arrays), _shown(given.get(part), arrays))


def refuse_other_options(given: Mapping[str, object], saved: Saved, name: str) -> None:
    """One error that names an option which differs from the one that a session was made with."""
    options: dict[str, Any] = dict(saved.options)
    for key, value in given.items():
        stored = list(saved.start) if key == "x1" else options.get(key)
        same = np.array_equal(np.asarray(value, dtype=float), saved.start) if key == "x1" else _plain(value) == _plain(stored)
        if not same:
            raise _differs(name, key, _plain(stored), _plain(value))


def refuse_other_budgets(gates: Budgets, made: Capsule, name: str) -> None:
    """One error that names a budget which is not as the session was made with."""
    if gates is None:
        return
    given, stored = Purse.checked(gates).facts(), made.facts["purse"]
    for budget in sorted(given.keys() | stored.keys()):
        if given.get(budget) != stored.get(budget):
            raise _differs(name, f"gates[{budget!r}]", stored.get(budget), given.get(budget))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, (tuple, list, np.ndarray)) else value


def _shown(code: Any, arrays: Mapping[str, Any]) -> object:
    if code is None:
        return None
    value = decode_value(code, dict(arrays))
    if not records.is_record(value):
        return value.tolist() if isinstance(value, np.ndarray) else value
    leaves = ", ".join(f"{key} {np.asarray(leaf).tolist()}" for key, leaf in records.leaves(value).items())
    return f"{type(value).__name__} ({leaves})"


def _differs(name: str, what: str, stored: object, given: object) -> InputError:
    shown, mine = (str(each) if isinstance(each, str) else validate.show(each) for each in (stored, given))
    short, long = (text if len(text) <= 120 else f"{text[:117]}..." for text in (shown, mine))
    return InputError(f"{what} must be {short}, as session {name!r} was made with, not {long}; leave it out to go on with it")

"""Save files: one `.npz` with the leaves under their dotted names and a JSON header; written atomically, never pickled."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, BinaryIO, TypedDict, TypeVar, cast

import numpy as np

from bridle import policies, records, storage, validate
from bridle.core import Feedback, InputError
from bridle.game.totals import RunningTotals
from bridle.ops import Array, Scalar
from bridle.policies.registry import Configured, with_room
from bridle.records import Arrays
from bridle.session import late
from bridle.session.actions import frozen
from bridle.session.certificates.certificate import Moved
from bridle.session.certificates.ledger import LedgerFacts
from bridle.session.feedback import LARGEST
from bridle.session.state import (
    Changes,
    Copy,
    Late,
    Memory,
    Past,
    Plan,
    RoundState,
    Said,
    SessionState,
    Shared,
    UnlikeTold,
    Waiting,
    WarningLog,
    Watch,
)
from bridle.session.step import learned
from bridle.storage import Facts, StrPath

SCHEMA = 5
"""The version of the format: files of no other are read."""

MEMBERS = ("start", "state", "totals", "copies", "late", "ledger", "said", "domain", "parameters")
"""What the names of a save file's arrays begin with, up to the first dot."""

FINITE = ("late",)
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
    first: int
    largest: float | None
    most_constraints: int | None
    names: list[str]
    alarms: dict[str, int]
    sizes: Sequence[float]
    engine: str
    ledger: LedgerFacts | None
    changes: list[Any]


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


def save(path: StrPath, plan: Plan, state: SessionState) -> None:
    """Write a save file: the whole new one, or the old one stays."""
    members = packed(plan, state)
    with storage.replacing(storage.named(path)) as file:
        write(file, members)


def write(file: BinaryIO, members: Arrays) -> None:
    """Write the members of a save file, one after the other."""
    try:
        np.savez(file, **members)  # type: ignore[arg-type]
    except ValueError as complaint:  # an archive that is broken off complains of that, over what broke it off
        raise complaint.__context__ or complaint from None


def packed(plan: Plan, state: SessionState) -> Arrays:
    """What a save file holds of a session: its arrays, and the header as text under its own name."""
    (_, _, totals, rounds), slow = state
    first, *others = state.copies
    k, ledger = len(totals.hard), state.ledger()
    states = [records.leaves(with_room(plan.record, copy.state, k)) for copy in others]
    more: dict[str, Scalar] = {
        f"copies.{key}": np.stack([np.asarray(state[key], dtype=float) for state in states]) for key in (states or [{}])[0]
    }
    more |= {f"late.{key}": value for key, value in _late_arrays(state).items()}
    more |= {f"said.{key}": value for key, value in _said_arrays(plan, state, _with_room(plan, slow.memory, k)).items()}
    facts: SessionFacts = {
        "late": plan.late,
        "pending": plan.pending,
        "timeout": plan.timeout,
        "alarms": slow.log.rounds,
        "sizes": slow.log.sizes,
        "engine": plan.engine,
        "run": slow.late.run,
        "first": slow.first,
        "largest": None if plan.limits.largest == LARGEST else plan.limits.largest,
        "most_constraints": plan.limits.most,
        "names": list(plan.names),
        "ledger": None,
        "changes": [list(slow.changes.offsets), list(slow.changes.listed)],
    }
    if slow.log.watch is not None:
        more |= records.leaves(slow.log.watch, "ledger.watch")
    if ledger is not None:
        arrays, facts["ledger"] = ledger.saved()
        more |= {f"ledger.{key}": value for key, value in arrays.items()}
    sums = {"totals.rounds": float(rounds), **records.leaves(totals, "totals")}
    return _sealed(plan, slow.start, with_room(plan.record, first.state, k), sums, more, facts)


def _with_room(plan: Plan, memory: Memory, k: int) -> Memory:
    """A session's memory, with room for k constraints in the states of policies that are rules and have not learned yet how many."""
    players = [] if plan.rules is None else plan.rules.players
    states = (with_room(record, state, k) for (_, record), state in zip(players, memory.states, strict=True))
    return memory._replace(states=tuple(states))


ASLEEP = -1e300
"""What stands in a file for a rule that proposes nothing: files hold finite numbers."""


def _awake(terms: Array) -> Array:
    return np.where(np.isnan(terms), ASLEEP, terms)


def _asleep(terms: Array) -> Array:
    return np.where(terms == ASLEEP, np.nan, terms)


def _late_arrays(state: SessionState) -> Arrays:
    """The copies of the policy but for their states, and the rounds that wait."""
    copies, late, d = state.copies, state.slow.late, len(state.now.copy.x)
    saved = {
        "numbers": np.array([state.now.begun, late.lost, late.ever_shared], dtype=float),
        "copies": np.array([[copy.updates, copy.steered] for copy in copies], dtype=float),
        "costs": np.array([copy.costs for copy in copies], dtype=float),
        "shared": np.array([[each.number, each.copy, each.level, *each.normal] for each in late.shared]).reshape(-1, d + 3),
        "waiting": np.array([[number, each.copy, *each.x] for number, each in late.waiting.items()], dtype=float).reshape(-1, d + 2),
    }
    for number, each in late.waiting.items():
        if each.terms is not None:
            saved[f"terms.{number}"] = _awake(each.terms)
        if each.action is not None:
            saved[f"action.{number}"] = each.action
        saved |= records.leaves(each.made, f"made.{number}")
    return saved


def _late_restored(plan: Plan, saved: Arrays, states: list[object], run: str) -> tuple[int, Copy, Late]:
    """How many rounds were begun, the first copy, and the others with the rounds that wait."""
    numbers = saved["numbers"]
    if numbers.shape != (3,) or not ((numbers >= 0.0) & (numbers <= 2.0**53)).all() or (numbers % 1.0).any():
        raise ValueError("late.numbers")
    begun, lost, ever_shared = map(int, numbers)
    rows = zip(states, saved["copies"], saved["costs"].tolist(), strict=True)
    first, *others = (
        Copy(state, plan.decided(state), int(updates), int(steered), UnlikeTold(*costs)) for state, (updates, steered), costs in rows
    )
    waiting = {}
    for number, copy, *x in saved["waiting"].tolist():
        terms, made = saved.get(f"terms.{int(number)}"), None
        if plan.remembers is not None:
            made = records.filled(plan.remembers.made([first, *others][int(copy)].state), saved, f"made.{int(number)}")
        terms = None if terms is None else _asleep(terms)
        waiting[int(number)] = Waiting(np.array(x), int(copy), terms, saved.get(f"action.{int(number)}"), made)
    busy = {each.copy for each in waiting.values()}
    idle = (0,) if plan.late == "pool" else tuple(i for i in range(len(states)) if i not in busy)
    shared = tuple(Shared(int(row[0]), int(row[1]), row[3:].copy(), float(row[2])) for row in saved["shared"])
    return begun, first, Late(tuple(others), idle, waiting, lost, shared, ever_shared, run)


def _said_arrays(plan: Plan, state: SessionState, memory: Memory) -> dict[str, Scalar]:
    """What was said of this round, and what observations have left beside the policy; nothing where all of that is empty."""
    rounds, cost, hard, signed, violated, above = memory.moved
    begun, terms, action, at, before, turn, front = state.slow.said or Said(-1)
    if plan.through is None and begun < 0 and not rounds and not state.slow.known:
        return {}
    untouched = before is not None and (turn, front) == (state.now.rounds, late.front(plan, state))
    arrays: dict[str, Scalar] = {
        "numbers": np.array([float(plan.free), begun, rounds, cost, violated, float(untouched), float(state.slow.known)])
    }
    arrays |= {"hard": hard, "signed": signed, "above": above}
    arrays |= {} if terms is None else {"terms": _awake(terms)}
    some = {"action": action, "at": at, "scale": memory.scale}
    arrays |= {name: value for name, value in some.items() if value is not None}
    if memory.past:
        arrays |= {f"past.{name}": value for name, value in _written_past(memory.past).items()}
    arrays |= {f"states.{name}": leaf for name, leaf in records.leaves(memory.states).items()}
    return arrays | (records.leaves(before, "before") if untouched else {})


def _written_past(past: Past) -> Arrays:
    """Observations as arrays, whatever number of constraints each had."""
    return {
        "rows": np.array([[len(each.g), float(each.f), *each.x, *each.df] for each in past]),
        "g": np.concatenate([each.g for each in past]),
        "dg": np.concatenate([each.dg for each in past]),
    }


def _unwritten_past(saved: Arrays) -> Past:
    """What `_written_past` was given."""
    past, at = [], 0
    for row in saved.get("rows", np.zeros((0, 2))):
        k, d = int(row[0]), (len(row) - 2) // 2
        past.append(frozen(Feedback(row[2 : 2 + d], float(row[1]), row[2 + d :], saved["g"][at : at + k], saved["dg"][at : at + k])))
        at += k
    return tuple(past)


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

    def restore(self, plan: Plan, fresh: SessionState) -> tuple[Plan, SessionState]:
        """The plan and the state that were saved, from those of a session just made."""
        facts, (rounds, cost, hard) = self.facts, self.totals
        template = with_room(plan.record, fresh.now.copy.state, len(hard))
        first, slow = self.fill(template), fresh.slow
        with self.checking():
            arrays = self.part("late.")
            states = [first, *(self.fill(template, "copies.", i) for i in range(len(arrays["copies"]) - 1))]
            begun, copy, waiting = _late_restored(plan, arrays, states, str(facts["run"]))
            log, (longest, steepest, value) = WarningLog(), facts["sizes"]
            log.rounds = {str(kind): int(t) for kind, t in facts["alarms"].items()}
            log.sizes = (float(longest), float(steepest), float(value))
            watch = self.part("ledger.watch.")
            if watch:
                since, x, limits = (watch[name] for name in Watch._fields)
                if x.shape != self.start.shape or limits.ndim != 1:
                    raise ValueError("watch")
                log.watch = Watch(int(since), x, limits)
            ledger = slow.ledger
            if ledger is not None and facts["ledger"] is not None:
                ledger.restore(self.part("ledger."), facts["ledger"], rounds)
            many = int(facts["first"])
            if not bool(rounds) <= many <= len(hard) * bool(rounds):
                raise ValueError("first")
            offsets, listed = facts["changes"]
            changes = Changes(tuple(map(float, offsets)), tuple(listed))
            totals = RunningTotals(cost, hard, self.arrays["totals.signed"])
            if totals.signed.shape != hard.shape or len(hard) < 1:
                raise ValueError("totals")
            slow = slow._replace(late=waiting, log=log, changes=changes, start=self.start, first=many)
            plan, state = self._said_restored(plan, SessionState(RoundState(copy, begun, totals, rounds), slow), template)
        self.check_decisions(plan, state)
        return plan, SessionState(state.now, learned(plan, state))

    def _said_restored(self, plan: Plan, state: SessionState, template: object) -> tuple[Plan, SessionState]:
        """With what was said of the round, and what observations had left."""
        saved = self.part("said.")
        if not saved:
            return plan, state
        free, begun, moved_rounds, cost, violated, untouched, known = saved["numbers"].tolist()
        moved = Moved(int(moved_rounds), cost, saved["hard"], saved["signed"], int(violated), saved["above"])
        levels = () if state.slow.ledger is None else state.slow.ledger.levels
        if moved.hard.shape != moved.signed.shape or moved.hard.size < 1 or moved.above.shape != ((len(levels),) if moved.rounds else (0,)):
            raise ValueError("said")
        states = _with_room(plan, state.slow.memory, len(state.now.totals.hard)).states
        past = _unwritten_past(records.under("past.", saved))
        memory = Memory(moved, past, self.fill(states, "said.states."), saved.get("scale"))
        said = None
        if begun >= 0.0:
            terms = _asleep(saved["terms"]) if "terms" in saved else None
            before = self.fill(template, "said.before.") if untouched else None
            turn, front = state.now.rounds, late.front(plan, state)
            said = Said(int(begun), terms, saved.get("action"), saved.get("at"), before, turn, front)
        return plan.changed(free=bool(free)), state.with_slow(memory=memory, said=said, known=bool(known))

    def check_decisions(self, plan: Plan, state: SessionState) -> None:
        """Refuse decisions that are not finite, and those of a registered policy that are not in its domain."""
        waiting = [each.x for each in state.slow.late.waiting.values()]
        for x in [copy.x for copy in state.copies] + waiting:
            within = plan.domain is None or plan.configured is None or plan.domain.contains(x, CLOSE)
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
    plan: Plan,
    start: Array,
    state: object,
    totals: dict[str, Scalar],
    more: dict[str, Scalar],
    facts: SessionFacts,
) -> Arrays:
    arrays, policy = {"start": start}, plan.configured
    header: dict[str, object] = {"library": "bridle", "schema": SCHEMA, "policy": None, "kind": type(plan.record).__name__}
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
        if not isinstance(value := code["value"], bool | int | float | str | None):
            raise ValueError("value")
        if isinstance(value, int):
            float(value)  # or it is too large to be a number of anything
        return value
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

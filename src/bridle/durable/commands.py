"""Commands as the bytes of a journal, and back again: every number bit for bit.

An event's body is a digest of eight bytes (`Evidence`) and a payload. The payload is

    observe          a head of forty bytes, then df, g, dg and played as they are in memory; by values alone,
                     the costs at the points that were tried, then the constraints' values at each
    decide, ask      one part for each of rules, features, known and hint: its name, its shape, its numbers
    all others       JSON, whose numbers Python writes such that they are read back as they were

>>> import numpy as np
>>> payload = encode(Observation(0.3, np.array([1.0, 0.0]), 0.1, np.array([0.0, 1.0])))
>>> len(payload), decode(OBSERVE, payload).g
(80, array([0.1]))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from struct import Struct
from typing import Any, NamedTuple, TypeAlias, cast
from zlib import crc32

import numpy as np

from bridle import validate
from bridle.core import Ask, ChangeLimit, Command, Decide, Forget, Function, InputError, Observation, Pay, Prior, SetBudget
from bridle.ops import Array
from bridle.records import Arrays
from bridle.session import savefile
from bridle.session.feedback import FLOAT, Numbers
from bridle.session.late import Ticket, TicketGiven
from bridle.session.prior import PARTS, parts_of
from bridle.storage import Facts

OBSERVE, ASK, FORGET, DECIDE, CHANGE_LIMIT, PAY, SET_BUDGET = 1, 2, 3, 4, 5, 7, 8

KINDS: dict[type, int] = {
    Observation: OBSERVE, Ask: ASK, Forget: FORGET, Decide: DECIDE, ChangeLimit: CHANGE_LIMIT, Pay: PAY, SetBudget: SET_BUDGET,
}  # fmt: skip
"""What can happen to a session; the numbers are those in databases, and stay."""

FACTS: dict[int, type[Any]] = {FORGET: Forget, CHANGE_LIMIT: ChangeLimit, PAY: Pay, SET_BUDGET: SetBudget}
"""Those that are a few facts, which are written as JSON."""


MONEY = frozenset({PAY, SET_BUDGET})
"""Those after which a budget stands elsewhere, and no decision."""


def kind_of(kind: int) -> str:
    """What an event is, in a word."""
    named = {
        FORGET: "forget",
        ASK: "ask",
        DECIDE: "decide",
        OBSERVE: "observe",
        CHANGE_LIMIT: "change_limit",
        PAY: "pay",
        SET_BUDGET: "set_budget",
    }
    return named.get(kind, f"of kind {kind}")


HEAD = Struct("<BBxxIIIqdd")
"""Of an observation: version, flags, dim of df, number of constraints, dim of played, ticket, f, modulus."""

DIGEST = Struct("<If")
"""What a body begins with: its `Evidence`."""

VERSION = 2
COST, LIMITS, PLAYED, TICKET, MODULUS, TRIED = (1 << i for i in range(6))
BOTH = COST | LIMITS


class Evidence(NamedTuple):
    """What stands after an event, in short: `bits` is a checksum of a decision, or of the facts of a budget, which is the same wherever
    arithmetic is the same; `outline` is a number that is nearly the same wherever the decision is.
    """

    bits: int
    outline: float = 0.0

    @classmethod
    def of(cls, standing: bytes, decision: bool = True) -> Evidence:
        """Of what stands now."""
        return cls(crc32(standing), _outline(np.frombuffer(standing)) if decision else 0.0)

    def agrees(self, other: Evidence, standing: bytes) -> bool:
        """Whether the decision that stands is the same up to rounding."""
        size = _outline(np.abs(np.frombuffer(standing)))
        return abs(self.outline - other.outline) <= ROUNDING * max(size, abs(other.outline))


ROUNDING = 1e-5
"""Decisions that differ by no more than this, relative to their size, are the same but for the arithmetic of the machine."""


def _outline(x: Array) -> float:
    """A sum of the numbers with weights that differ, in single precision."""
    return max(-MOST, min(MOST, float(np.float32(x.dot(_weights(len(x)))))))


MOST = float(np.finfo(np.float32).max)


@cache
def _weights(n: int) -> Array:
    weights: Array = 0.5 + np.arange(1.0, n + 1.0) * 0.6180339887498949 % 1.0
    return weights


# --- any command ------------------------------------------------------------------------------------------------------------------------


def encode(command: Command) -> bytes:
    """The payload of a command; one that no session would take may be an `InputError` here already."""
    if isinstance(command, Observation):
        return observation(*command)
    if isinstance(command, Decide | Ask):
        return saying(command.prior)
    if isinstance(command, Forget):
        return facts({"ticket": int(command.ticket)})
    return facts(command._asdict())


def decode(kind: int, payload: bytes, at: int = 0) -> Command:
    """What `encode` was given, from the payload that begins at `at`; the arrays of an observation are views, which nobody can change."""
    if kind == OBSERVE:
        return observed(payload, at)
    if kind == DECIDE:
        return Decide(said(payload, at))
    if kind == ASK:
        return Ask(said(payload, at))
    if kind not in FACTS:
        raise InputError(f"it is of kind {kind}, which this version of bridle does not know")
    found: Command = FACTS[kind](
        **{name: tuple(value) if isinstance(value, list) else value for name, value in read_facts(payload, at).items()}
    )
    return found


# --- observe ------------------------------------------------------------------------------------------------------------------------------


def observation(f: object, df: Numbers, g: Numbers, dg: Numbers, modulus: Numbers, played: Numbers, ticket: TicketGiven) -> bytes:
    """The payload of an observation. By values alone it has a cost for each point that was tried, and a row of constraints' values."""
    flags, number = 0, 0
    d = k = p = 0
    parts = [b""]
    if isinstance(f, np.ndarray) and f.ndim == 1 and df is None and (g is None or np.ndim(g) == 2):
        return _tried(f, None if g is None else np.asarray(g), ticket)
    if df is not None:
        slope = _floats("df", df)
        d, flags = slope.size, COST
        parts.append(slope.tobytes())
    cost = f if f.__class__ is float else validate.number("f", f)
    if g is not None or dg is not None:
        values, rows = _floats("g", g), _floats("dg", dg)
        k, flags = values.size, flags | LIMITS
        parts += (values.tobytes(), rows.tobytes())
    curved = 0.0
    if modulus is not None:
        curved, flags = validate.number("modulus", modulus), flags | MODULUS
    if played is not None:
        at = validate.array("played", played)
        p, flags = at.size, flags | PLAYED
        parts.append(at.tobytes())
    if ticket is not None:
        number, flags = int(ticket), flags | TICKET
    parts[0] = HEAD.pack(VERSION, flags, d, k, p, number, cost, curved)
    return b"".join(parts)


def _floats(name: str, values: Numbers) -> Array:
    return values if values.__class__ is np.ndarray and values.dtype is FLOAT else validate.array(name, values)


def _tried(costs: Array, g: Any, ticket: TicketGiven) -> bytes:
    """An observation by values alone; its head has the number of points in place of the dim of df."""
    flags = TRIED | (0 if g is None else LIMITS) | (0 if ticket is None else TICKET)
    head = HEAD.pack(VERSION, flags, len(costs), 0 if g is None else g.shape[1], 0, 0 if ticket is None else int(ticket), 0.0, 0.0)
    return head + costs.tobytes() + (b"" if g is None else g.tobytes())


def observed(payload: bytes, at: int = 0) -> Observation:
    """What `observation` was given."""
    version, flags, d, k, p, number, f, modulus = HEAD.unpack_from(payload, at)
    if version != VERSION:
        raise ValueError(f"it has version {version}, and this version of bridle reads {VERSION}")
    numbers: Array = np.frombuffer(payload, FLOAT, -1, at + HEAD.size)
    ticket, end = number if flags & TICKET else None, d
    if flags & TRIED:
        return Observation(numbers[:d], g=numbers[d:].reshape(d, k) if flags & LIMITS else None, ticket=ticket)
    df = g = dg = played = None
    if flags & COST:
        df = numbers[:d]
    if flags & LIMITS:
        rows = len(numbers) - p - k - d
        g, dg = numbers[d : d + k], numbers[d + k : d + k + rows].reshape(k, -1)
        end = d + k + rows
    if flags & PLAYED:
        played = numbers[end : end + p]
    return Observation(f, df, g, dg, modulus if flags & MODULUS else None, played, ticket)


def plain(f: object, df: object, g: object, dg: object) -> bytes | None:
    """The payload of an observation that is floats and arrays of floats, as a compiled round wants it; None for any other."""
    if df.__class__ is not np.ndarray or g.__class__ is not np.ndarray or dg.__class__ is not np.ndarray or f.__class__ is not float:
        return None
    if df.dtype is not FLOAT or g.dtype is not FLOAT or dg.dtype is not FLOAT:
        return None
    head = HEAD.pack(VERSION, BOTH, df.size, g.size, 0, 0, f, 0.0)
    return b"".join((head, df.tobytes(), g.tobytes(), dg.tobytes()))


# --- decide and ask -----------------------------------------------------------------------------------------------------------------------

PART = Struct("<BBI")
"""The name of a part, how many axes it has, and how many bytes of text come first; then an unsigned long for each axis."""

NAMES = ("rules", "features", "known.A", "known.b", "known", *(f"hint.{part}" for part in PARTS))


def saying(given: Prior) -> bytes:
    """The payload of what is said before a round."""
    rules, features, known, hint = given
    parts = []
    if rules is not None:
        parts.append(_part(0, validate.floats("rules", rules, "an array of numbers")))  # NaN is a rule that sleeps
    if features is not None:
        parts.append(_part(1, validate.array("features", features)))
    if known is not None:
        if isinstance(known, Function) or (isinstance(known, (tuple, list)) and known and all(isinstance(one, Function) for one in known)):
            arrays: Arrays = {}
            functions = (known,) if isinstance(known, Function) else tuple(known)
            try:
                code = savefile.encode_value(functions, "known", arrays)
            except savefile.Unportable:
                raise InputError(
                    f"known must be halfspaces (A, b) or functions of bridle in a durable session, which writes them down, "
                    f"not {validate.show(known)}"
                ) from None
            text = json.dumps({"code": code, "arrays": {name: [np.asarray(v).tolist(), np.shape(v)] for name, v in arrays.items()}})
            parts.append(PART.pack(4, 0, len(text.encode())) + text.encode())
        elif isinstance(known, (tuple, list)) and len(known) == 2:
            parts += [_part(2, validate.array("known[0]", known[0])), _part(3, validate.array("known[1]", known[1]))]
        else:
            raise validate.refused("known must be a pair (A, b) of limits A x <= b, or convex functions", known)
    if hint is not None:
        parts += [_part(NAMES.index(f"hint.{name}"), values) for name, values in parts_of(hint).items()]
    return b"".join(parts)


def said(payload: bytes, at: int = 0) -> Prior:
    """What `saying` was given."""
    given: dict[str, Any] = {}
    while at < len(payload):
        name, axes, length = PART.unpack_from(payload, at)
        at += PART.size
        if NAMES[name] == "known":
            text = json.loads(payload[at : at + length])
            arrays = {key: np.array(value, dtype=float).reshape(shape) for key, (value, shape) in text["arrays"].items()}
            given["known"] = savefile.decode_value(text["code"], arrays)
            at += length
            continue
        shape = Struct(f"<{axes}I").unpack_from(payload, at)
        at += 4 * axes
        values = np.frombuffer(payload, "<f8", int(np.prod(shape)), at).astype(float).reshape(shape)
        given[NAMES[name]] = values
        at += 8 * values.size
    if "known.A" in given:
        given["known"] = given.pop("known.A"), given.pop("known.b")
    if hint := {part: given.pop(f"hint.{part}") for part in PARTS if f"hint.{part}" in given}:
        given["hint"] = hint
    return Prior(**given)


def _part(name: int, values: Array) -> bytes:
    return PART.pack(name, values.ndim, 0) + Struct(f"<{values.ndim}I").pack(*values.shape) + values.tobytes()


# --- what is rare -------------------------------------------------------------------------------------------------------------------------


def facts(values: Mapping[str, object]) -> bytes:
    """The payload of an event that is a few facts."""
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


def read_facts(payload: bytes, at: int = 0) -> Facts:
    """What `facts` was given."""
    return cast(Facts, json.loads(payload[at:]))


# --- identity and answers -----------------------------------------------------------------------------------------------------------------

OWN = b"\0"
"""What the keys begin with that a session makes of tickets; a caller's begin with its opposite."""


Key: TypeAlias = str | bytes | None
"""The identity that a caller gives an event, or leaves out."""


def key_of(key: object) -> bytes | None:
    """The identity that a caller gives an event, as the journal has it: text or bytes, 1 to 200 of them; None where none is given."""
    if key is None:
        return None
    given = key.encode(errors="surrogatepass") if isinstance(key, str) else key
    if not isinstance(given, (bytes, bytearray)) or not 1 <= len(given) <= 200:
        raise validate.refused("key must be a text or bytes of 1 to 200 bytes", key)
    return b"\1" + bytes(given)


def shown_key(key: bytes) -> str:
    """A key, as a message names it."""
    if key[:1] == OWN:
        return f"ticket {int.from_bytes(key[1:9], 'little', signed=True)}"
    return f"key {validate.show(key[1:].decode(errors='replace'))}"


def ticket_key(number: int, kind: int) -> bytes:
    """The identity of what happens to a round that waits: its number, and whether it is observed or given up."""
    return OWN + number.to_bytes(8, "little", signed=True) + bytes([kind])


def request_of(kind: int, payload: bytes) -> bytes:
    """A hash of what was asked, so that one key is not used for two things."""
    return blake2b(payload, digest_size=16, key=bytes([kind])).digest()


TICKET_HEAD = Struct("<qqH")


def ticket_answer(ticket: Ticket) -> bytes:
    """A ticket as an answer."""
    run = ticket.run.encode()
    return TICKET_HEAD.pack(ticket.id, ticket.stamp, len(run)) + run + np.asarray(ticket.x, dtype=float).tobytes()


def answered_ticket(answer: bytes, points: int = 1) -> Ticket:
    """The ticket that was the answer; so many points are tried in its round."""
    number, stamp, length = TICKET_HEAD.unpack_from(answer)
    start = TICKET_HEAD.size + length
    x = np.frombuffer(answer, "<f8", -1, start).astype(float) if len(answer) > start else np.zeros(0)
    return Ticket(number, x if points == 1 else x.reshape(points, -1), answer[TICKET_HEAD.size : start].decode(), stamp)

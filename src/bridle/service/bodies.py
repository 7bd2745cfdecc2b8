"""What requests and answers look like: the structs that are decoded and encoded, from which the OpenAPI schema is made too.

Numbers that belong to a round are taken as they come and handed to the session, so that what is wrong with them is said in the same
sentence as in Python. JSON has no NaN; null in `rules` is one.

A name that is there twice in one object is refused, since who reads the first and who reads the last would see two requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import is_
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

LONGEST_KEY = 128
"""An identity has at most so many characters."""

Key = Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY, description="The identity of the event: the same key is played once.")]
Numbers = Annotated[Any, Meta(description="A number, or nested lists of numbers.", extra_json_schema={"type": ["number", "array", "null"]})]
Number = Annotated[Any, Meta(description="A number.", extra_json_schema={"type": "number"})]
Costs = Annotated[
    Any, Meta(description="A number; a list of one for each point that is tried.", extra_json_schema={"type": ["number", "array"]})
]
Points = Annotated[Any, Meta(description="The decision, or a list for each point to be tried.", extra_json_schema={"type": "array"})]
TicketNumber = Annotated[int, Meta(ge=0, le=2**53, description="The number of a round that was begun by `ask`.")]


class KnownRows(Struct, forbid_unknown_fields=True):
    """Limits A x <= b that are known before acting."""

    A: Numbers
    b: Numbers


class HintBody(Struct, forbid_unknown_fields=True):
    """What is expected of a round: gradients, and constraints' values, at the decision or at x."""

    df: Numbers = None
    g: Numbers = None
    dg: Numbers = None
    x: Numbers = None


class DecideBody(Struct, forbid_unknown_fields=True):
    """What is known of a round before acting; usually nothing."""

    rules: Numbers = None
    features: Numbers = None
    known: KnownRows | None = None
    hint: HintBody | None = None
    key: Key | None = None


class AskBody(DecideBody, forbid_unknown_fields=True):
    """What is known of a round before acting, where its feedback comes later; `points` is how many are tried, 1 unless said."""

    points: int | None = None


class ObserveBody(Struct, forbid_unknown_fields=True, gc=False):
    """What was revealed at the decision: cost and constraint values and their gradients."""

    f: Costs = 0.0
    df: Numbers = None
    g: Numbers = None
    dg: Numbers = None
    modulus: Numbers = None
    ticket: TicketNumber | None = None
    played: Numbers = None
    pay: dict[str, Number] | None = None
    key: Key | None = None


class ForgetBody(Struct, forbid_unknown_fields=True):
    """The round that is given up."""

    ticket: TicketNumber


class DecideEvent(DecideBody, forbid_unknown_fields=True, tag_field="kind", tag="decide"):
    """A decision asked for in a batch."""


class AskEvent(AskBody, forbid_unknown_fields=True, tag_field="kind", tag="ask"):
    """A round begun in a batch."""


class ObserveEvent(ObserveBody, forbid_unknown_fields=True, gc=False, tag_field="kind", tag="observe"):
    """Feedback in a batch."""


class ForgetEvent(ForgetBody, forbid_unknown_fields=True, tag_field="kind", tag="forget"):
    """A round given up in a batch."""


class BatchBody(Struct, forbid_unknown_fields=True):
    """Events that are played in order, each as if it came alone."""

    events: list[DecideEvent | AskEvent | ObserveEvent | ForgetEvent]
    key: Key | None = None


class CreateBody(Struct, forbid_unknown_fields=True):
    """What a session is made from; as `bridle.policy` and `bridle.Session` take it."""

    name: str
    policy: str
    domain: dict[str, Any]
    parameters: dict[str, Any] | None = None
    names: list[str] | None = None
    rules: int | list[str] | None = None
    rules_per: str | None = None
    features: int | None = None
    engine: str | None = None
    x1: Numbers = None
    certify: bool | None = None
    levels: Numbers = None
    tolerance: float | None = None
    late: str | None = None
    pending: int | None = None
    timeout: int | None = None
    largest: float | None = None
    most_constraints: int | None = None
    gates: dict[str, dict[str, Any]] | None = None


class LimitsBody(Struct, forbid_unknown_fields=True):
    """What is changed of a session from now on: where a limit stands, or how often it may be violated."""

    limit: str | int = 0
    offset: Number | UnsetType = UNSET
    at_most: Number | UnsetType = UNSET
    key: Key | None = None


class PayBody(Struct, forbid_unknown_fields=True):
    """A payment from one of the session's gates."""

    gate: str
    amount: Number = 0.0
    key: Key | None = None


class BidBody(Struct, forbid_unknown_fields=True):
    """What something is worth for which a pacer may bid."""

    gate: str
    value: Number


class BudgetBody(Struct, forbid_unknown_fields=True):
    """A new budget of one of the session's gates."""

    gate: str
    budget: Number
    rounds: Number = None
    key: Key | None = None


encode = msgspec.json.Encoder().encode

# --- answers ------------------------------------------------------------------------------------------------------------------------------


class DecisionAnswer(Struct):
    """A decision; `round` is how many rounds have been observed."""

    x: list[float]
    round: int


class TicketAnswer(Struct):
    """A round that was begun: its ticket, and its decision or the points to be tried."""

    ticket: int
    x: Points


class RoundAnswer(Struct, gc=False):
    """How many rounds have been observed, and the next decision; null where `decide` or `ask` comes first."""

    round: int
    next: list[float] | None


class Complaint(Struct):
    """What is wrong, in a sentence, and the id of the request."""

    error: str
    request: str | UnsetType = UNSET


class BatchAnswer(Struct):
    """The answers of a batch in order, those of refused events with `error`; how many were refused, and where the session stands."""

    answers: list[dict[str, Any]]
    refused: int
    round: int
    next: list[float] | None


class GateStands(Struct):
    """A gate, or a pacer, of a session: what may be spent, what was, what is left; a pacer's price and the rounds it has played."""

    kind: Literal["gate", "pacer"]
    budget: float
    spent: float
    left: float
    unit: float
    price: float | UnsetType = UNSET
    played: int | UnsetType = UNSET
    rounds: int | UnsetType = UNSET


class PaymentAnswer(Struct):
    """What was counted, what is left, and a pacer's price after it."""

    counted: float
    left: float
    price: float | UnsetType = UNSET


class BidAnswer(Struct):
    """What to bid, the price of money, and what is left of it."""

    bid: float
    price: float
    left: float


class AlarmFacts(Struct):
    """A warning that the session has given, the round, and what it says (null where this server was not there)."""

    kind: str
    round: int
    text: str | None = None


class SessionStands(Struct):
    """Where a session stands."""

    name: str
    policy: str
    parameters: dict[str, Any]
    dim: int
    engine: str
    names: list[str]
    round: int
    x: list[float] | None
    pending: int
    dropped: int
    cost: float | None
    ccv: float | None
    violations: list[float]
    alarms: list[AlarmFacts]
    gates: dict[str, GateStands]
    quarantined: int


class SessionElsewhere(Struct):
    """A session that is not open here: its name, and the address of the server that owns it, if one does."""

    name: str
    owner: str | None


def reader(body: type[Struct]) -> Callable[[bytes], Any]:
    """What reads the body of a route; a `msgspec.MsgspecError` says what is wrong with it.

    >>> reader(ForgetBody)(b'{"ticket": 17}')
    ForgetBody(ticket=17)
    >>> reader(ForgetBody)(b'{"ticket": 17, "ticket": 18}')
    Traceback (most recent call last):
        ...
    msgspec.ValidationError: `ticket` is there twice
    """
    decode = msgspec.json.Decoder(body).decode

    def read(raw: bytes) -> Any:
        found = decode(raw)
        if raw.count(b":") != members(found):
            NAMES.decode(raw.decode())
        return found

    return read


def members(body: Struct) -> int:
    """How many names the JSON of a body has, and so how many colons at least, those in its own objects and those of nulls aside."""
    values, defaults = msgspec.structs.astuple(body), body.__struct_defaults__
    left_out = sum(map(is_, values[len(values) - len(defaults) :], defaults))
    return len(values) - left_out + sum(1 + members(event) for event in getattr(body, "events", ()))  # 1: its kind


def _once(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise msgspec.ValidationError(f"`{name[:100]}` is there twice")
        seen.add(name)


NAMES = json.JSONDecoder(object_pairs_hook=_once, parse_float=len, parse_int=len, strict=False)
"""Reads nothing but names, and refuses one that is there twice in one object, which msgspec does not: the last would count."""

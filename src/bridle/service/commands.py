"""What is asked of a session's rounds: decide, ask, observe, forget, batches, changed limits, payments; each is one call of the durable
session.

A body whose numbers are plain is decoded straight into floats; any other is decoded as it is and handed on, so that the session itself
says what is wrong with it.

Making sessions and letting go of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any

import msgspec
import numpy as np
from starlette.responses import Response

from bridle.budgets import Gate, Pacer
from bridle.core import InputError
from bridle.database.rows import Event
from bridle.game.totals import charged
from bridle.ops import Array
from bridle.service.auth import may, who
from bridle.service.bodies import (
    AskBody,
    AskEvent,
    BidAnswer,
    Complaint,
    DecideBody,
    DecideEvent,
    DecisionAnswer,
    ForgetBody,
    ForgetEvent,
    ObserveBody,
    ObserveEvent,
    PaymentAnswer,
    PlainBatch,
    PlainBody,
    PlainEvent,
    RoundAnswer,
    TicketAnswer,
)
from bridle.service.calls import Call, Handler, encode, json_answer
from bridle.service.errors import FORBIDDEN, NOT_FOUND, TOO_LARGE, Turned
from bridle.service.hosted import Hosted, PlayedRound, VerbOutcome, averages, next_decision
from bridle.service.recipes import proposals
from bridle.service.standings import standing, stands
from bridle.session.durable import DurableCore
from bridle.session.tried_points import rows_of

Verb = Callable[[DurableCore], VerbOutcome]
"""What is done to a session, in its turn and by one thread at a time."""


# --- decisions ----------------------------------------------------------------------------------------------------------------------------


def before_acting(core: DurableCore, body: DecideBody) -> dict[str, Any]:
    """What a request says before a round, as the session takes it."""
    said: dict[str, Any] = {}
    if body.rules is not None:
        said["rules"] = proposals(body.rules, core.session._dim)
    if body.features is not None:
        said["features"] = body.features
    if body.known is not None:
        said["known"] = (body.known.A, body.known.b)
    if body.hint is not None:
        said["hint"] = {"df": body.hint.df, "g": body.hint.g, "dg": body.hint.dg, "x": body.hint.x}
    return said


def deciding(body: DecideBody, key: str | None, hosted: Hosted) -> Verb:
    """The decision of this round; with a key it is that of the round in which it was first asked for."""

    def verb(core: DurableCore) -> VerbOutcome:
        def answer(x: Array) -> bytes:
            return encode(DecisionAnswer(x.tolist(), core.session.rounds))

        applied = core.decide(**before_acting(core, body), key=key, answer=None if key is None else answer)
        if applied.again:
            return VerbOutcome(applied.answer or b"null", (), True)
        hosted.decided = applied.value.tolist()
        return VerbOutcome(applied.answer or answer(applied.value), applied.rows)

    return verb


def asking(body: AskBody, key: str | None, hosted: Hosted) -> Verb:
    """A round whose feedback comes later."""

    def verb(core: DurableCore) -> VerbOutcome:
        applied = core.ask(**before_acting(core, body), points=body.points, key=key)
        ticket, x = applied.value.id, applied.value.x
        if len(hosted.waiting) <= core.session.pending:
            hosted.waiting[ticket] = charged(x, 1).tolist()
        return VerbOutcome(encode(TicketAnswer(ticket, x.tolist())), applied.rows, applied.again)

    return verb


# --- feedback -----------------------------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A list of numbers as an array, where it is nothing but that; anything else as it came, for the session to judge."""
    if value.__class__ is not list or not value:
        return value
    first = value[0]
    if first.__class__ is list:
        even = all(row.__class__ is list and len(row) == len(first) and {*map(type, row)} == FLOATS for row in value)
    else:
        even = {*map(type, value)} == FLOATS
    return np.array(value, dtype=float) if even else value


FLOATS = {float}


def table(rows: Any) -> Any:
    """Floats, or lists of them, as an array, where they are equally long; else as they came, for the session to judge."""
    try:
        return np.array(rows)
    except ValueError:
        return rows


@lru_cache
def packer(count: int) -> Callable[..., bytes]:
    """Writes so many floats one behind the other, as they are in memory."""
    return Struct(f"<{count}d").pack


def arrays_of(event: PlainEvent) -> tuple[Any, Any, Any, bytes | None]:
    """df, g and dg of an event, and their bytes, where they are arrays of one dimension; else as they came, for the session to judge.

    To write the floats down, as the journal will have them, and to look at that as arrays takes half the time of making arrays.
    """
    df, g, dg = event.df, event.g, event.dg
    d, k = len(df), len(g)
    if not d or not k or {*map(len, dg)} != {d} or len(dg) != k:
        return np.array(df), np.array(g), table(dg), None
    whole = df + g
    for row in dg:
        whole += row
    written = packer(len(whole))(*whole)
    numbers = np.frombuffer(written)
    return numbers[:d], numbers[d : d + k], numbers[d + k :].reshape(k, d), written


def values_of(core: DurableCore, f: Any, g: Any) -> tuple[float, list[float], list[float] | None]:
    """The cost and the values of the constraints of a round that was observed, to be shown; and violations, where they are averages."""
    if core.session._tries:
        costs, g = rows_of(core.session._tries, f, g)
        f = costs.mean()
    values, violation = ([], None) if g is None else averages(np.asarray(g, dtype=float))
    return float(f), values, violation


def round_answer(core: DurableCore) -> bytes:
    """How many rounds were observed, and the next decision."""
    return encode(RoundAnswer(core.session.rounds, next_decision(core)))


class RoundNotes:
    """What is to be answered and remembered of rounds that are observed: `answer` is made of the session just after one."""

    __slots__ = ("core", "hosted", "x")

    def __init__(self, core: DurableCore, hosted: Hosted) -> None:
        self.core, self.hosted = core, hosted
        self.x: list[float] | None = None

    def answer(self, _: object = None) -> bytes:
        """`round_answer`, whose decision is noted."""
        self.x = next_decision(self.core)
        return encode(RoundAnswer(self.core.session.rounds, self.x))

    def keep(self, f: float, g: list[float], violation: list[float] | None, ticket: int | None = None, played: Any = None) -> None:
        """Remember the round."""
        self.hosted.remember(self.core, f, g, ticket, played if isinstance(played, list) else None, violation)
        self.hosted.decided = self.x

    def of_one(self, f: float, g: list[float]) -> RoundAnswer:
        """The answer of a round that was nothing but numbers, which is remembered."""
        session, hosted = self.core.session, self.hosted
        fast = session._live if session._boundary is None else None
        if fast is None:
            self.x = next_decision(self.core)
            self.keep(f, g, None)
            return RoundAnswer(session.rounds, self.x)
        count, x = fast.rounds, fast.x.tolist()
        hosted.rounds.append(PlayedRound(count, hosted.decided, f, g, float(fast.cost), fast.hard.copy(), None, None))
        hosted.decided = x
        return RoundAnswer(count, x)


def observing(body: ObserveBody | PlainBody, key: str | None, hosted: Hosted) -> Verb:
    """Feedback; the answer has the next decision."""

    def verb(core: DurableCore) -> VerbOutcome:
        read = table if isinstance(body, PlainBody) else plain  # the types of plain numbers are known
        notes, g = RoundNotes(core, hosted), read(body.g)
        applied = core.observe(
            body.f, read(body.df), g, read(body.dg), body.modulus,
            ticket=body.ticket, played=body.played, pay=body.pay, key=key,
            answer=None if key is None and body.ticket is None else notes.answer,
        )  # fmt: skip
        told = applied.answer or notes.answer()
        if not applied.again:
            notes.keep(*values_of(core, body.f, g), body.ticket, body.played)
            hosted.hear(core)
        return VerbOutcome(told, applied.rows, applied.again)

    return verb


def observing_many(events: Sequence[PlainEvent], hosted: Hosted, refused: list[tuple[int, str]]) -> Verb:
    """Feedback of many rounds that is nothing but numbers, and has no keys: each as if it came alone, the answers made at once."""

    def verb(core: DurableCore) -> VerbOutcome:
        session, observe, answer = core.session, core.observe_numbers, RoundNotes(core, hosted).of_one
        answers: list[RoundAnswer | Complaint] = []
        rows: list[Event] = []
        for i, event in enumerate(events):
            try:
                applied = observe(event.f, *arrays_of(event))
            except InputError as wrong:
                refused.append((i, str(wrong)))
                answers.append(Complaint(str(wrong)))
                continue
            rows.append(applied.rows[0])
            answers.append(answer(event.f, event.g))
        hosted.hear(core)
        return VerbOutcome(
            encode({"answers": answers, "refused": len(refused), "round": session.rounds, "next": next_decision(core)}), rows
        )

    return verb


def forgetting(body: ForgetBody | ForgetEvent, key: str | None, hosted: Hosted) -> Verb:
    """A round given up, which its ticket says: another `key` is not needed."""
    ticket = body.ticket

    def verb(core: DurableCore) -> VerbOutcome:
        applied = core.forget(ticket, answer=lambda _: round_answer(core))
        hosted.waiting.pop(ticket, None)
        return VerbOutcome(applied.answer or round_answer(core), applied.rows, applied.again)

    return verb


# --- handlers -----------------------------------------------------------------------------------------------------------------------------


def playing(make: Callable[[Any, str | None, Hosted], Verb]) -> Handler:
    """What answers a call by one verb of its session, made of the body and the identity."""

    async def handler(call: Call) -> bytes:
        hosted = await call.session()
        return await hosted.play(make(call.body, call.identity, hosted))

    return handler


decide, ask, observe, forget = playing(deciding), playing(asking), playing(observing), playing(forgetting)


async def batch(call: Call) -> bytes:
    """POST .../batch: the events in order, each as if it came alone; those that are refused are kept in the quarantine."""
    events, most = call.body.events, call.service.config.limits.batch
    if len(events) > most:
        raise Turned(TOO_LARGE, f"a batch may have at most {most} events, not {len(events)}")
    for scope, kinds in (("decide", (DecideEvent, AskEvent)), ("observe", (ObserveEvent, PlainEvent, ForgetEvent))):
        if not may(call.key, scope) and any(isinstance(event, kinds) for event in events):
            raise Turned(FORBIDDEN, f"the key {who(call.key)} lacks the scope {scope}, which events of this batch need")
    hosted, identity = await call.session(), call.identity
    refused: list[tuple[int, str]] = []
    if isinstance(call.body, PlainBatch) and identity is None and all(event.key is None for event in events):
        verb = observing_many(events, hosted, refused)
    else:
        verb = one_by_one([verb_of(event, identity, i, hosted) for i, event in enumerate(events)], refused)
    answer = await hosted.play(verb, max(1, len(events)))
    for i, sentence in refused:
        await call.service.quarantine(hosted, sentence, encode(events[i]))
    return answer


def verb_of(event: DecideEvent | AskEvent | ObserveEvent | PlainEvent | ForgetEvent, identity: str | None, i: int, hosted: Hosted) -> Verb:
    """What event i of a batch with this identity does."""
    key = getattr(event, "key", None) or (None if identity is None else f"{identity}.{i}")
    makers: dict[type, Callable[[Any, str | None, Hosted], Verb]] = {
        ObserveEvent: observing, PlainEvent: observing, ForgetEvent: forgetting, AskEvent: asking, DecideEvent: deciding,
    }  # fmt: skip
    return makers[type(event)](event, key, hosted)


def one_by_one(verbs: Sequence[Verb], refused: list[tuple[int, str]]) -> Verb:
    """The verbs of a batch in their order; those that are refused, and why, are noted."""

    def verb(core: DurableCore) -> VerbOutcome:
        answers: list[bytes] = []
        rows: list[Event] = []
        again = bool(verbs)
        for i, each in enumerate(verbs):
            try:
                outcome = each(core)
            except InputError as wrong:
                refused.append((i, str(wrong)))
                answers.append(encode(Complaint(str(wrong))))
                continue
            answers.append(outcome.answer)
            rows.extend(outcome.rows)
            again = again and outcome.again
        raw = [msgspec.Raw(answer) for answer in answers]
        whole = {"answers": raw, "refused": len(refused), "round": core.session.rounds, "next": next_decision(core)}
        if again and not refused:  # all of it had been asked: it ends as it did
            last = msgspec.json.decode(answers[-1])
            if "round" in last:
                whole |= {"round": last["round"], "next": last["next"] if "next" in last else last["x"]}
        return VerbOutcome(encode(whole), rows)

    return verb


async def change_limits(call: Call) -> bytes:
    """POST .../limits: a limit is another from now on."""
    body, key = call.body, call.identity
    hosted = await call.session()
    told = {name: getattr(body, name) for name in ("offset", "at_most") if getattr(body, name) is not msgspec.UNSET}

    def verb(core: DurableCore) -> VerbOutcome:
        applied = core.change_limit(body.limit, **told, key=key, answer=lambda _: round_answer(core))
        return VerbOutcome(applied.answer or round_answer(core), applied.rows, applied.again)

    return await change(call, hosted, verb, f"changed limit {body.limit}: {encode(told)[:500].decode()}")


async def change(call: Call, hosted: Hosted, verb: Verb, what: str) -> bytes:
    """Play a change, and note who made it; also of one that comes again, whose note may not have come that far."""
    outcome: list[VerbOutcome] = []

    def noted(core: DurableCore) -> VerbOutcome:
        outcome.append(verb(core))
        return outcome[-1]

    answer = await hosted.play(noted)
    await call.service.audit(who(call.key), call.name, what + (" (asked again: it counts once)" if outcome[-1].again else ""))
    return answer


# --- money --------------------------------------------------------------------------------------------------------------------------------


def budget_of(core: DurableCore, name: str) -> Gate | Pacer:
    """The budget of this name, or 404."""
    try:
        return core.purse.find(name)
    except InputError as wrong:
        raise Turned(NOT_FOUND, str(wrong)) from None


async def pay(call: Call) -> bytes:
    """POST .../pay: a payment that fits, or a refusal; what was paid is durable when it is answered."""
    body, key = call.body, call.identity

    def verb(core: DurableCore) -> VerbOutcome:
        budget = budget_of(core, body.gate)

        def answer(value: float | None) -> bytes:
            counted = value if value is not None else budget.gate.rounded(body.amount) if isinstance(budget, Pacer) else body.amount
            price = budget.price if isinstance(budget, Pacer) else msgspec.UNSET
            return encode(PaymentAnswer(counted, budget.left, price))

        applied = core.pay(body.gate, body.amount, key=key, answer=answer)
        told = applied.answer
        return VerbOutcome(told if told is not None and told.startswith(b"{") else answer(applied.value), applied.rows, applied.again)

    return await (await call.session()).play(verb)


async def bid(call: Call) -> bytes:
    """POST .../bid: what a pacer bids for something of this value; it may be paid next."""
    body = call.body

    def verb(core: DurableCore) -> VerbOutcome:
        budget = budget_of(core, body.gate)
        if not isinstance(budget, Pacer):
            raise InputError(f"gate must be the name of a pacer, which has a price; {body.gate!r} is a plain gate")
        return VerbOutcome(encode(BidAnswer(budget.bid(body.value), budget.price, budget.left)), ())

    return await (await call.session()).play(verb)


async def set_budget(call: Call) -> bytes:
    """POST .../budget: what may be spent in all is another from now on."""
    body, key = call.body, call.identity

    def verb(core: DurableCore) -> VerbOutcome:
        budget_of(core, body.gate)

        def answer(_: object = None) -> bytes:
            return encode(stands(budget_of(core, body.gate)))

        applied = core.set_budget(body.gate, body.budget, body.rounds, key=key, answer=answer)
        return VerbOutcome(applied.answer or answer(), applied.rows, applied.again)

    return await change(call, await call.session(), verb, f"changed the budget of {body.gate} to {body.budget}")


async def create(call: Call) -> Response:
    """POST /v1/sessions: 201 for a new one, 200 where there is one that was made from the same."""
    body = {name: value for name, value in msgspec.structs.asdict(call.body).items() if name != "name" and value is not None}
    hosted, fresh = await call.service.create(call.body.name, body, call.key.id)
    if fresh:
        await call.service.audit(who(call.key), call.body.name, f"made it: {encode(body)[:1000].decode(errors='replace')}")
    return json_answer(await hosted.read(lambda core: standing(hosted, core)), 201 if fresh else 200)


async def let_go(call: Call) -> bytes:
    """DELETE /v1/sessions/{name}: the lease is given back; the journal stays, and the session opens again when it is asked for."""
    await call.service.let_go(call.name)
    await call.service.audit(who(call.key), call.name, "let go of it")
    return encode({"name": call.name})

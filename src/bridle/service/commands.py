"""What changes a session: decide, ask, observe, forget, batches, changed limits, payments; making a session, and letting go of it.

What a request says of a round is handed on as it came, so that the session itself says what is wrong with it, as in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, TypeAlias

import msgspec
import numpy as np
from starlette.responses import Response

from bridle import validate
from bridle.budgets import Gate, Pacer
from bridle.core import Ask, Decide, Forget, InputError, Observation, Pay, Prior, SetBudget
from bridle.database.rows import Event
from bridle.durable.journal import Applied, Journal
from bridle.game.totals import charged
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
    RoundAnswer,
    TicketAnswer,
)
from bridle.service.calls import Call, Handler, encode, json_response
from bridle.service.errors import FORBIDDEN, NOT_FOUND, TOO_LARGE, HTTPError
from bridle.service.hosted import Hosted, Verb, next_decision, stands
from bridle.service.recipes import proposals
from bridle.session.session import change_command

EventMaker: TypeAlias = Callable[[Any, str | None, Hosted], Verb]
"""What a body, alone or in a batch, under this identity, does to a session."""


def answered(applied: Applied, answer: Callable[[], bytes]) -> Applied:
    """What came of a verb, with its answer where none was stored."""
    return applied if applied.answer is not None else Applied(applied.value, applied.seq, applied.rows, applied.again, answer())


def round_answer(core: Journal) -> bytes:
    """How many rounds were observed, and the next decision."""
    return encode(RoundAnswer(core.session.rounds, next_decision(core)))


# --- rounds -------------------------------------------------------------------------------------------------------------------------------


def before_acting(core: Journal, body: DecideBody) -> Prior:
    """What a request says before a round, as the session takes it."""
    known, hint = body.known, body.hint
    return Prior(
        None if body.rules is None else proposals(body.rules, core.session.dim),
        body.features,
        known and (known.A, known.b),
        hint and msgspec.structs.asdict(hint),
    )


def deciding(body: DecideBody, key: str | None, hosted: Hosted) -> Verb:
    """The decision of this round; with a key it is that of the round in which it was first asked for."""

    def verb(core: Journal) -> Applied:
        def answer(x: Any) -> bytes:
            return encode(DecisionAnswer(x.tolist(), core.session.rounds))

        applied = core.apply(Decide(before_acting(core, body)), key, None if key is None else answer)
        if applied.again:
            return answered(applied, lambda: b"null")
        hosted.decided = applied.value.tolist()
        return answered(applied, lambda: answer(applied.value))

    return verb


def asking(body: AskBody, key: str | None, hosted: Hosted) -> Verb:
    """A round whose feedback comes later."""

    def verb(core: Journal) -> Applied:
        core.session.refuse_other_points(body.points)
        applied = core.apply(Ask(before_acting(core, body)), key)
        ticket, x = applied.value.id, applied.value.x
        if len(hosted.waiting) <= core.session.pending:
            hosted.waiting[ticket] = charged(x, 1).tolist()
        return applied._replace(answer=encode(TicketAnswer(ticket, x.tolist())))

    return verb


def numbers(value: Any) -> Any:
    """A list of floats, or of lists of them, as an array, which is checked soonest; anything else as it came, for the session to judge."""
    if type(value) is not list or not value:
        return value
    try:
        return np.array(value) if {*map(type, chain(*value) if type(value[0]) is list else value)} == {float} else value
    except (TypeError, ValueError):  # rows that are none, or are not equally long
        return value


def observing(body: ObserveBody, key: str | None, hosted: Hosted) -> Verb:
    """Feedback; the answer has the next decision."""

    def verb(core: Journal) -> Applied:
        x: list[float] | None = None

        def answer(_: object = None) -> bytes:
            nonlocal x
            x = next_decision(core)
            return encode(RoundAnswer(core.session.rounds, x))

        seen = Observation(body.f, numbers(body.df), numbers(body.g), numbers(body.dg), body.modulus, body.played, body.ticket)
        applied = core.apply(seen, key, None if key is None and body.ticket is None else answer, body.pay)
        applied = answered(applied, answer)
        if not applied.again:
            hosted.remember(core, body.f, body.g, body.ticket, body.played)
            hosted.decided = x
        return applied

    return verb


def forgetting(body: ForgetBody, key: str | None, hosted: Hosted) -> Verb:
    """A round given up, which its ticket says: another `key` is not needed."""

    def verb(core: Journal) -> Applied:
        applied = core.apply(Forget(body.ticket), None, lambda _: round_answer(core))
        hosted.waiting.pop(body.ticket, None)
        return answered(applied, lambda: round_answer(core))

    return verb


def playing(make: EventMaker) -> Handler:
    """What answers a call by one verb of its session, made of the body and the identity."""

    async def handler(call: Call) -> bytes:
        hosted = await call.hosted()
        return await hosted.play(make(call.content, call.identity, hosted))

    return handler


decide, ask, observe, forget = playing(deciding), playing(asking), playing(observing), playing(forgetting)

# --- batches ------------------------------------------------------------------------------------------------------------------------------

EVENTS: dict[type, tuple[str, EventMaker]] = {
    DecideEvent: ("decide", deciding),
    AskEvent: ("decide", asking),
    ObserveEvent: ("observe", observing),
    ForgetEvent: ("observe", forgetting),
}
"""What a key must be allowed to do for each kind of event in a batch, and what it does."""


async def batch(call: Call) -> bytes:
    """POST .../batch: the events in order, each as if it came alone; those that are refused are kept in the quarantine."""
    events, most = call.content.events, call.service.config.limits.batch
    if len(events) > most:
        raise HTTPError(TOO_LARGE, f"a batch may have at most {most} events, not {len(events)}")
    for scope in sorted({EVENTS[type(event)][0] for event in events}):
        if not may(call.key, scope):
            raise HTTPError(FORBIDDEN, f"the key {who(call.key)} lacks the scope {scope}, which events of this batch need")
    hosted, identity = await call.hosted(), call.identity
    refused: list[tuple[int, str]] = []
    verbs = []
    for i, event in enumerate(events):
        key = getattr(event, "key", None) or (None if identity is None else f"{identity}.{i}")
        verbs.append(EVENTS[type(event)][1](event, key, hosted))
    answer = await hosted.play(in_order(verbs, refused), max(1, len(events)))
    for i, sentence in refused:
        await call.service.quarantine(hosted, sentence, encode(events[i]))
    return answer


def in_order(verbs: Sequence[Verb], refused: list[tuple[int, str]]) -> Verb:
    """The verbs of a batch in their order; those that are refused, and why, are noted."""

    def verb(core: Journal) -> Applied:
        answers: list[bytes] = []
        rows: list[Event] = []
        again = bool(verbs)
        for i, each in enumerate(verbs):
            try:
                applied = each(core)
            except InputError as wrong:
                refused.append((i, str(wrong)))
                answers.append(encode(Complaint(str(wrong))))
                continue
            answers.append(applied.answer or b"null")
            rows.extend(applied.rows)
            again = again and applied.again
        whole = {
            "answers": [*map(msgspec.Raw, answers)],
            "refused": len(refused),
            "round": core.session.rounds,
            "next": next_decision(core),
        }
        if again and not refused:  # all of it had been asked: it ends as it did
            last = msgspec.json.decode(answers[-1])
            if "round" in last:
                whole |= {"round": last["round"], "next": last["next"] if "next" in last else last["x"]}
        return Applied(None, core.seq, tuple(rows), again, encode(whole))

    return verb


# --- limits and budgets -------------------------------------------------------------------------------------------------------------------


async def change(call: Call, verb: Verb, what: str) -> bytes:
    """Play a change, and note who made it; also of one that comes again, whose note may not have come that far."""
    notes: list[str] = []

    def noted(core: Journal) -> Applied:
        applied = verb(core)
        notes.append(" (asked again: it counts once)" if applied.again else "")
        return applied

    answer = await (await call.hosted()).play(noted)
    await call.service.audit(who(call.key), call.name, what + notes[-1])
    return answer


async def change_limits(call: Call) -> bytes:
    """POST .../limits: a limit is another from now on."""
    body, key = call.content, call.identity
    told = {name: getattr(body, name) for name in ("offset", "at_most") if getattr(body, name) is not msgspec.UNSET}

    def verb(core: Journal) -> Applied:
        command = change_command(body.limit, told.get("offset"), told.get("at_most"))
        applied = core.apply(command, key, lambda _: round_answer(core))
        return answered(applied, lambda: round_answer(core))

    return await change(call, verb, f"changed limit {body.limit}: {encode(told)[:500].decode()}")


def budget_of(core: Journal, name: str) -> Gate | Pacer:
    """The budget of this name, or 404."""
    try:
        return core.budgets.find(name)
    except InputError as wrong:
        raise HTTPError(NOT_FOUND, str(wrong)) from None


async def pay(call: Call) -> bytes:
    """POST .../pay: a payment that fits, or a refusal; what was paid is durable when it is answered."""
    body, key = call.content, call.identity

    def verb(core: Journal) -> Applied:
        budget = budget_of(core, body.gate)
        pacer = budget if isinstance(budget, Pacer) else None

        def answer(value: float | None) -> bytes:
            counted = value if value is not None else body.amount if pacer is None else pacer.gate.rounded(body.amount)
            return encode(PaymentAnswer(counted, budget.left, msgspec.UNSET if pacer is None else pacer.price))

        applied = core.apply(Pay(body.gate, body.amount), key, answer)
        if applied.answer is not None and applied.answer.startswith(b"{"):
            return applied
        return applied._replace(answer=answer(applied.value))

    return await (await call.hosted()).play(verb)


async def bid(call: Call) -> bytes:
    """POST .../bid: what a pacer bids for something of this value; it may be paid next."""
    body = call.content

    def verb(core: Journal) -> Applied:
        budget = budget_of(core, body.gate)
        if not isinstance(budget, Pacer):
            raise InputError(f"gate must be the name of a pacer, which has a price; {body.gate!r} is a plain gate")
        return Applied(None, core.seq, answer=encode(BidAnswer(budget.bid(body.value), budget.price, budget.left)))

    return await (await call.hosted()).play(verb)


async def set_budget(call: Call) -> bytes:
    """POST .../budget: what may be spent in all is another from now on."""
    body, key = call.content, call.identity

    def verb(core: Journal) -> Applied:
        def answer(_: object = None) -> bytes:
            return encode(stands(budget_of(core, body.gate)))

        budget_of(core, body.gate)
        rounds = None if body.rounds is None else validate.whole("rounds", body.rounds)
        command = SetBudget(body.gate, validate.number("budget", body.budget), rounds)
        return answered(core.apply(command, key, answer), answer)

    return await change(call, verb, f"changed the budget of {body.gate} to {body.budget}")


# --- sessions -----------------------------------------------------------------------------------------------------------------------------


async def create(call: Call) -> Response:
    """POST /v1/sessions: 201 for a new one, 200 where there is one that was made from the same."""
    body = {name: value for name, value in msgspec.structs.asdict(call.content).items() if name != "name" and value is not None}
    hosted, fresh = await call.service.create(call.content.name, body, call.key.id)
    if fresh:
        await call.service.audit(who(call.key), hosted.name, f"made it: {encode(body)[:1000].decode(errors='replace')}")
    return json_response(await hosted.read(hosted.standing), 201 if fresh else 200)


async def let_go(call: Call) -> bytes:
    """DELETE /v1/sessions/{name}: the lease is given back; the journal stays, and the session opens again when it is asked for."""
    await call.service.let_go(call.name)
    await call.service.audit(who(call.key), call.name, "let go of it")
    return encode({"name": call.name})

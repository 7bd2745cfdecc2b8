"""What changes a session: decide, ask, observe, forget, batches, changed limits, payments; making a session, and letting go of it.

What a request says of a round is handed on as it came, so that the session itself says what is wrong with it, as in Python.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import asdict, astuple
from starlette.responses import Response

from bridle import validate
from bridle.budgets import Gate, Pacer
from bridle.core import Ask, Decide, Forget, InputError, Observation, Pay, Prior, SetBudget
from bridle.database.rows import Event
from bridle.durable.journal import Applied, Journal
from bridle.game.totals import charged
from bridle.ops import Array
from bridle.service.auth import may, who
from bridle.service.bodies import (
    AskBody,
    AskEvent,
    BatchBody,
    BidAnswer,
    BidBody,
    BudgetBody,
    Complaint,
    DecideBody,
    DecideEvent,
    DecisionAnswer,
    ForgetBody,
    ForgetEvent,
    LimitsBody,
    ObserveBody,
    ObserveEvent,
    PayBody,
    PaymentAnswer,
    RoundAnswer,
    TicketAnswer,
    encode,
)
from bridle.service.calls import Call, json_response
from bridle.service.errors import FORBIDDEN, NOT_FOUND, TOO_LARGE, HTTPError
from bridle.service.hosted import Hosted, next_decision, stands
from bridle.service.recipes import proposals
from bridle.session.session import change_command

Player: TypeAlias = Callable[[Journal, Hosted, Any, str | None], tuple[object, Applied]]
"""Lets what a body says, alone or in a batch, under this identity, happen to a session: the answer, to be encoded, and what came of it."""


def stored(applied: Applied) -> object:
    """The answer that is stored, or was."""
    return None if applied.answer is None else msgspec.Raw(applied.answer)


def round_answer(core: Journal) -> RoundAnswer:
    """How many rounds were observed, and the next decision."""
    return RoundAnswer(core.session.rounds, next_decision(core))


def playing(player: Player) -> Callable[[Call], Awaitable[bytes]]:
    """What answers a call by what one player does to its session."""

    async def handler(call: Call) -> bytes:
        hosted, body, identity = await call.hosted(), call.content, call.identity
        return await hosted.play(lambda core: player(core, hosted, body, identity))

    return handler


# --- rounds -------------------------------------------------------------------------------------------------------------------------------


def before_acting(core: Journal, body: DecideBody) -> Prior:
    """What a request says before a round, as the session takes it."""
    known, hint = body.known, body.hint
    return Prior(
        None if body.rules is None else proposals(body.rules, core.session.dim),
        body.features,
        known and (known.A, known.b),
        hint and asdict(hint),
    )


def deciding(core: Journal, hosted: Hosted, body: DecideBody, key: str | None) -> tuple[object, Applied]:
    """The decision of this round; with a key it is that of the round in which it was first asked for."""

    def answer(x: Array) -> DecisionAnswer:
        return DecisionAnswer(x.tolist(), core.session.rounds)

    applied = core.apply(Decide(before_acting(core, body)), key, None if key is None else lambda x: encode(answer(x)))
    if applied.again:
        return stored(applied), applied
    hosted.decided = applied.value.tolist()
    return answer(applied.value), applied


def asking(core: Journal, hosted: Hosted, body: AskBody, key: str | None) -> tuple[object, Applied]:
    """A round whose feedback comes later."""
    core.session.refuse_other_points(body.points)
    applied = core.apply(Ask(before_acting(core, body)), key)
    ticket, x = applied.value.id, applied.value.x
    if len(hosted.waiting) <= core.session.pending:
        hosted.waiting[ticket] = charged(x, 1).tolist()
    return TicketAnswer(ticket, x.tolist()), applied


def numbers(value: Any) -> Any:
    """A list of floats, or of lists of them, as an array, which is checked soonest; anything else as it came, for the session to judge."""
    if type(value) is not list or not value:
        return value
    try:
        return np.array(value) if {*map(type, chain(*value) if type(value[0]) is list else value)} == {float} else value
    except (TypeError, ValueError):  # rows that are none, or are not equally long
        return value


def observing(core: Journal, hosted: Hosted, body: ObserveBody, key: str | None) -> tuple[object, Applied]:
    """Feedback; the answer has the next decision."""
    f, df, g, dg, modulus, ticket, played, pay, _ = astuple(body)
    later = None if key is None and ticket is None else lambda _: encode(round_answer(core))
    applied = core.apply(Observation(f, numbers(df), numbers(g), numbers(dg), modulus, played, ticket), key, later, pay)
    answer = round_answer(core)
    if not applied.again:
        hosted.remember(core, answer.round, f, g, ticket, played)
        hosted.decided = answer.next
    return stored(applied) or answer, applied


def forgetting(core: Journal, hosted: Hosted, body: ForgetBody, key: str | None) -> tuple[object, Applied]:
    """A round given up, which its ticket says: another `key` is not needed."""
    applied = core.apply(Forget(body.ticket), None, lambda _: encode(round_answer(core)))
    hosted.waiting.pop(body.ticket, None)
    return stored(applied) or round_answer(core), applied


decide, ask, observe, forget = playing(deciding), playing(asking), playing(observing), playing(forgetting)

# --- batches ------------------------------------------------------------------------------------------------------------------------------

EVENTS: dict[type, tuple[str, Player]] = {
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
    for scope in sorted({EVENTS[kind][0] for kind in set(map(type, events))}):
        if not may(call.key, scope):
            raise HTTPError(FORBIDDEN, f"the key {who(call.key)} lacks the scope {scope}, which events of this batch need")
    hosted, identity = await call.hosted(), call.identity
    refused: dict[int, str] = {}
    answer = await hosted.play(lambda core: in_order(core, hosted, events, identity, refused), max(1, len(events)))
    told = msgspec.json.decode(call.raw, type=BatchBody).events if refused else ()  # as they came
    for i, sentence in refused.items():
        await call.service.quarantine(hosted, sentence, encode(told[i]))
    return answer


def in_order(core: Journal, hosted: Hosted, events: Sequence[Any], identity: str | None, refused: dict[int, str]) -> tuple[object, Applied]:
    """The events of a batch in their order; why one was refused is noted by its place."""
    answers: list[object] = []
    rows: list[Event] = []
    again = bool(events)
    for i, event in enumerate(events):
        key = getattr(event, "key", None) or (None if identity is None else f"{identity}.{i}")
        try:
            answer, applied = EVENTS[event.__class__][1](core, hosted, event, key)
        except InputError as wrong:
            refused[i] = str(wrong)
            answers.append(Complaint(str(wrong)))
            continue
        answers.append(answer)
        rows += applied.rows
        again = again and applied.again
    whole = {"answers": answers, "refused": len(refused), "round": core.session.rounds, "next": next_decision(core)}
    if again and not refused:  # all of it had been asked: it ends as it did
        last = msgspec.json.decode(encode(answers[-1])) or {}
        if "round" in last:
            whole |= {"round": last["round"], "next": last["next"] if "next" in last else last["x"]}
    return whole, Applied(None, core.seq, tuple(rows), again)


# --- limits and budgets -------------------------------------------------------------------------------------------------------------------


async def change(call: Call, player: Player, what: str) -> bytes:
    """Play a change, and note who made it; also of one that comes again, whose note may not have come that far."""
    again = False

    def noted(core: Journal, hosted: Hosted, body: Any, key: str | None) -> tuple[object, Applied]:
        nonlocal again
        answer, applied = player(core, hosted, body, key)
        again = applied.again
        return answer, applied

    answer = await playing(noted)(call)
    await call.service.audit(who(call.key), call.name, f"{what}{' (asked again: it counts once)' if again else ''}")
    return answer


async def change_limits(call: Call) -> bytes:
    """POST .../limits: a limit is another from now on."""
    body = call.content
    told = {name: getattr(body, name) for name in ("offset", "at_most") if getattr(body, name) is not msgspec.UNSET}

    def changing(core: Journal, hosted: Hosted, body: LimitsBody, key: str | None) -> tuple[object, Applied]:
        command = change_command(body.limit, told.get("offset"), told.get("at_most"))
        applied = core.apply(command, key, lambda _: encode(round_answer(core)))
        return stored(applied) or round_answer(core), applied

    return await change(call, changing, f"changed limit {body.limit}: {encode(told)[:500].decode()}")


def budget_of(core: Journal, name: str) -> Gate | Pacer:
    """The budget of this name, or 404."""
    try:
        return core.budgets.find(name)
    except InputError as wrong:
        raise HTTPError(NOT_FOUND, str(wrong)) from None


def paying(core: Journal, hosted: Hosted, body: PayBody, key: str | None) -> tuple[object, Applied]:
    """A payment that fits, or a refusal; what was paid is durable when it is answered."""
    budget = budget_of(core, body.gate)
    pacer = budget if isinstance(budget, Pacer) else None

    def answer(value: float | None) -> PaymentAnswer:
        counted = value if value is not None else body.amount if pacer is None else pacer.gate.rounded(body.amount)
        return PaymentAnswer(counted, budget.left, msgspec.UNSET if pacer is None else pacer.price)

    applied = core.apply(Pay(body.gate, body.amount), key, lambda value: encode(answer(value)))
    whole = applied.answer is not None and applied.answer.startswith(b"{")
    return stored(applied) if whole else answer(applied.value), applied


def bidding(core: Journal, hosted: Hosted, body: BidBody, key: str | None) -> tuple[object, Applied]:
    """What a pacer bids for something of this value; it may be paid next."""
    budget = budget_of(core, body.gate)
    if not isinstance(budget, Pacer):
        raise InputError(f"gate must be the name of a pacer, which has a price; {body.gate!r} is a plain gate")
    return BidAnswer(budget.bid(body.value), budget.price, budget.left), Applied(None, core.seq)


def budgeting(core: Journal, hosted: Hosted, body: BudgetBody, key: str | None) -> tuple[object, Applied]:
    """What may be spent in all is another from now on."""
    budget_of(core, body.gate)
    rounds = None if body.rounds is None else validate.whole("rounds", body.rounds)
    command = SetBudget(body.gate, validate.number("budget", body.budget), rounds)
    applied = core.apply(command, key, lambda _: encode(stands(budget_of(core, body.gate))))
    return stored(applied) or stands(budget_of(core, body.gate)), applied


pay, bid = playing(paying), playing(bidding)


async def set_budget(call: Call) -> bytes:
    """POST .../budget."""
    return await change(call, budgeting, f"changed the budget of {call.content.gate} to {call.content.budget}")


# --- sessions -----------------------------------------------------------------------------------------------------------------------------


async def create(call: Call) -> Response:
    """POST /v1/sessions: 201 for a new one, 200 where there is one that was made from the same."""
    body = {name: value for name, value in asdict(call.content).items() if name != "name" and value is not None}
    hosted, fresh = await call.service.create(call.content.name, body, call.key.id)
    if fresh:
        await call.service.audit(who(call.key), hosted.name, f"made it: {encode(body)[:1000].decode(errors='replace')}")
    return json_response(await hosted.read(hosted.standing), 201 if fresh else 200)


async def let_go(call: Call) -> bytes:
    """DELETE /v1/sessions/{name}: the lease is given back; the journal stays, and the session opens again when it is asked for."""
    await call.service.let_go(call.name)
    await call.service.audit(who(call.key), call.name, "let go of it")
    return encode({"name": call.name})

"""The client of the service: the verbs of a session over HTTP, waiting (`Client`) or to be awaited (`AsyncClient`).

Each verb is told once, as a conversation (see `remote`); a client drives it. An event gets its identity before it is first sent, so that a
lost answer, a restarted server and a session that has moved to another server never make it count twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import Domain, InputError, Unavailable
from bridle.ops import Array
from bridle.policies.registry import Configured
from bridle.service.remote import (
    Body,
    Conversation,
    Facts,
    Pause,
    Reply,
    SentPrior,
    ServiceLine,
    has_identity,
    identity,
    read_certificate,
    said,
    said_event,
    said_session,
    ticket_number,
)
from bridle.session.certificates.certificate import Certificate
from bridle.session.feedback import Numbers
from bridle.session.late import Ticket
from bridle.session.rates import RateLimit
from bridle.session.session import Decides, observed_at

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

RETRIES = 14
"""How often a request is sent again unless told: about 20 seconds of pauses, in which a server starts anew."""


def _require_httpx() -> None:
    try:
        import httpx  # noqa: F401  (only whoever talks to a service needs it)
    except ModuleNotFoundError as trouble:
        raise Unavailable(f"bridle.Client needs the package {trouble.name}: pip install 'bridle-oco[client]'") from None


class Waiting:
    """Drives conversations to their ends."""

    def _drive(self, talk: Conversation[T]) -> T:
        raise NotImplementedError


class Awaiting:
    """Drives conversations while others run."""

    async def _drive(self, talk: Conversation[T]) -> T:
        raise NotImplementedError


class Verb(Generic[P, T]):
    """A verb that is told as a conversation: of who waits it gives what comes of it, of who awaits something to be awaited."""

    def __init__(self, func: Callable[Concatenate[Any, P], Conversation[T]]) -> None:
        self.func, self.__doc__ = func, func.__doc__

    @overload
    def __get__(self, caller: None, owner: type) -> Callable[Concatenate[Any, P], Conversation[T]]: ...
    @overload
    def __get__(self, caller: Waiting, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, caller: Awaiting, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, caller: Any, owner: type) -> Any:
        return self.func if caller is None else update_wrapper(partial(_driven, caller, self.func), self.func)


def _driven(caller: Any, func: Callable[..., Conversation[T]], *given: Any, **named: Any) -> Any:
    return caller._drive(func(caller, *given, **named))


class Figure(Generic[T]):
    """A figure of a session, read from the service whenever it is looked at: of who awaits something to be awaited."""

    def __init__(self, func: Callable[[Any], Conversation[T]]) -> None:
        self.func, self.__doc__ = func, func.__doc__

    @overload
    def __get__(self, caller: None, owner: type) -> Figure[T]: ...
    @overload
    def __get__(self, caller: Waiting, owner: type) -> T: ...
    @overload
    def __get__(self, caller: Awaiting, owner: type) -> Awaitable[T]: ...
    def __get__(self, caller: Any, owner: type) -> Any:
        return self if caller is None else caller._drive(self.func(caller))


# --- sessions -----------------------------------------------------------------------------------------------------------------------------


def _array(value: object) -> Array:
    return np.array(value, dtype=np.float64)


def _fact(name: str, read: Callable[[Any], T], doc: str) -> Figure[T]:
    """One of the facts that the list of sessions shows."""

    def talk(self: SessionVerbs) -> Conversation[T]:
        return read((yield from self._look())[name])

    talk.__doc__ = doc
    return Figure(talk)


class SessionVerbs:
    """The verbs and figures of a session that a service keeps."""

    def __init__(self, client: Any, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"name must be that of a session, not {validate.show(name)}")
        self.name, self._client, self._line = name, client, client._line
        self._path = f"/v1/sessions/{quote(name, safe='')}"
        self._ahead: list[float] | None = None
        """The next decision, where the answer to an observation has brought it along."""
        self._seen: int | None = None
        """How many rounds had been observed by the last answer that was certainly a new one."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self._client.url})"

    def _look(self, what: str = "") -> Conversation[Facts]:
        return self._line.ask("GET", self._path + what, about=self.name)  # type: ignore[no-any-return]

    def _say(self, what: str, body: Body, key: str | None) -> Conversation[Facts]:
        return self._line.ask("POST", self._path + what, body, key=key, about=self.name)  # type: ignore[no-any-return]

    def _event(self, what: str, body: Body, key: str | None) -> Conversation[Facts]:
        self._ahead = None
        facts = yield from self._say(what, body, identity(key))
        # Under an identity of the caller's this may be the answer of long ago, with the decision of then.
        own, count = key is None and not has_identity(body), facts.get("round")
        if count is not None and (own or (self._seen is not None and count > self._seen)):
            self._ahead, self._seen = facts.get("next"), count
        return facts

    @Verb
    def decide(self, *, key: str | None = None, **prior: Unpack[SentPrior]) -> Conversation[Array]:
        """The decision of this round, as `Session.decide`; `known` is a pair (A, b).

        Without arguments it takes no request after an `observe` of this object, whose answer has brought it along. Where several clients
        observe in one session, each round belongs to a ticket: `ask`.
        """
        body = said(prior)
        if not body and key is None and self._ahead is not None:
            return _array(self._ahead)
        facts = yield from self._say("/decide", body, identity(key) if body or key is not None else None)  # a plain one is no event
        self._ahead = None  # the decision is this one now, for as long as the session says so
        if key is None:
            self._seen = facts["round"]
        return _array(facts["x"])

    @Verb
    def ask(self, *, points: int | None = None, key: str | None = None, **prior: Unpack[SentPrior]) -> Conversation[Ticket]:
        """Begin a round whose feedback comes later, as `Session.ask`: its ticket, with an `id` and the decision `x`, or points to try."""
        tried: Body = {} if points is None else {"points": validate.whole("points", points)}
        facts = yield from self._event("/ask", said(prior) | tried, key)
        return Ticket(int(facts["ticket"]), _array(facts["x"]))

    @Verb
    def observe(
        self,
        f: ArrayLike = 0.0,
        df: Numbers = None,
        g: Numbers = None,
        dg: Numbers = None,
        modulus: Numbers = None,
        *,
        ticket: Ticket | int | None = None,
        played: Numbers = None,
        pay: Mapping[str, float] | None = None,
        key: str | None = None,
    ) -> Conversation[None]:
        """What was revealed at the decision, as `Session.observe`. Once it returns the round is durable, and counts once.

        `pay` are payments from the session's budgets, by their names, that happen with it or not at all.
        """
        silent = df is None and isinstance(f, float) and f == 0.0  # no cost: it is left out there too
        values: Body = {"f": None if silent else f, "df": df, "g": g, "dg": dg, "modulus": modulus}
        yield from self._event("/observe", said(values | {"ticket": ticket, "played": played, "pay": pay}), key)

    @Verb
    def forget(self, ticket: Ticket | int, *, key: str | None = None) -> Conversation[None]:
        """Give a round up, as `Session.forget`."""
        yield from self._event("/forget", {"ticket": ticket_number(ticket)}, key)

    @Verb
    def batch(self, events: Iterable[Mapping[str, object]], *, key: str | None = None) -> Conversation[list[Facts]]:
        """Several events in one request, in their order: one answer each, which is ``{"error": sentence}`` for one that was refused.

        An event is a dict of the arguments of `observe`, or with a ``kind`` (observe, ask, forget, decide) those of that verb.
        """
        return (yield from self._event("/batch", {"events": [said_event(event) for event in events]}, key))["answers"]  # type: ignore[no-any-return]

    @Verb
    def step(self, cost: object, constraints: Sequence[object] = (), **prior: Unpack[SentPrior]) -> Conversation[Array]:
        """One whole round from functions, which are evaluated here, as `Session.step`."""
        x = yield from SessionVerbs.decide(self, **prior)
        yield from SessionVerbs.observe(self, **observed_at(x, cost, constraints))
        return x

    @Verb
    def change_limit(
        self, limit: str | int, *, offset: float | None = None, at_most: float | None = None, key: str | None = None
    ) -> Conversation[None]:
        """Change a limit from now on, as `DurableSession.change_limit`: where it stands, or how often it may be violated (scope admin)."""
        numbers = {"offset": offset, "at_most": at_most}
        told = {name: validate.number(name, value) for name, value in numbers.items() if value is not None}
        yield from self._event("/limits", {"limit": limit, **told}, key)

    @Verb
    def pay(self, gate: str, amount: float, *, key: str | None = None) -> Conversation[Facts]:
        """Pay from a gate or a pacer of the session: whether it counted, and what is left."""
        return self._say("/pay", {"gate": gate, "amount": validate.number("amount", amount)}, identity(key))

    @Verb
    def bid(self, gate: str, value: float) -> Conversation[Facts]:
        """What a pacer of the session bids for something of this value."""
        return self._say("/bid", {"gate": gate, "value": validate.number("value", value)}, None)

    @Verb
    def budget(self, gate: str, budget: float, rounds: int | None = None, *, key: str | None = None) -> Conversation[Facts]:
        """Change the budget of a gate or a pacer (scope admin)."""
        body: Body = {"gate": gate, "budget": validate.number("budget", budget)} | ({} if rounds is None else {"rounds": rounds})
        return self._say("/budget", body, identity(key))

    @Verb
    def certificate(self) -> Conversation[Certificate]:
        """What the observations prove, as `Session.certificate`."""
        return read_certificate((yield from self._look("/certificate")))

    @Verb
    def report(self) -> Conversation[str]:
        """The certificate in plain sentences."""
        return str((yield from self._look("/report"))["text"])

    @Verb
    def facts(self) -> Conversation[Facts]:
        """All that the list of sessions shows of this one."""
        return self._look()

    @Verb
    def last_rounds(self, last: int = 100) -> Conversation[list[Facts]]:
        """The last rounds that this server has played: round, x, f, g, violation, cost, ccv."""
        return (yield from self._look(f"/rounds?last={validate.whole('last', last)}"))["rounds"]  # type: ignore[no-any-return]

    @Verb
    def quarantine(self, limit: int = 100, offset: int = 0) -> Conversation[list[Facts]]:
        """Records that were refused: when, why, and what they were."""
        page = f"?limit={validate.whole('limit', limit)}&offset={validate.whole('offset', offset, 0)}"
        return (yield from self._look(f"/quarantine{page}"))["quarantine"]  # type: ignore[no-any-return]

    @Verb
    def close(self) -> Conversation[None]:
        """Let the server give the session back: its lease and its memory; the journal stays (scope admin)."""
        yield from self._line.ask("DELETE", self._path, about=self.name)
        self._ahead = None

    rounds = _fact("round", int, "How many rounds were observed.")
    cost = _fact("cost", float, "The total cost so far.")
    ccv = _fact("ccv", float, "The cumulative constraint violation so far.")
    violations = _fact("violations", _array, "The cumulative violation of every constraint.")
    names = _fact("names", tuple[str, ...], "The names of the limits.")
    pending = _fact("pending", int, "How many rounds wait for feedback.")
    dropped = _fact("dropped", int, "How many rounds were forgotten or dropped: their feedback never came.")

    @Figure
    def alarms(self) -> Conversation[list[Facts]]:
        """The warnings that were given: kind, round, and where it is known the text."""
        return (yield from self._look("/alarms"))["alarms"]  # type: ignore[no-any-return]

    @Figure
    def weights(self) -> Conversation[Array]:
        """What each rule is worth at present."""
        return _array((yield from self._look("/weights"))["weights"])

    @Figure
    def rates(self) -> Conversation[tuple[RateLimit, ...]]:
        """The limits on how often, one record each."""
        return tuple(RateLimit(**each) for each in (yield from self._look("/rates"))["rates"])

    @Figure
    def price(self) -> Conversation[Array]:
        """What one more unit of each limit seems to be worth at present."""
        return _array((yield from self._look("/prices"))["prices"])


class RemoteSession(SessionVerbs, Waiting):
    """A session that a service keeps: the verbs and figures of `Session`, each durable when it returns.

    Events take an identity too (``key=``), so that a caller who was itself broken off can say the same event again and have it count once.
    """

    def _drive(self, talk: Conversation[T]) -> T:
        return self._client._drive(talk)  # type: ignore[no-any-return]


class AsyncRemoteSession(SessionVerbs, Awaiting):
    """`RemoteSession` for asyncio: everything is awaited."""

    async def _drive(self, talk: Conversation[T]) -> T:
        return await self._client._drive(talk)  # type: ignore[no-any-return]


# --- clients ------------------------------------------------------------------------------------------------------------------------------


class Caller(Generic[S]):
    """What both clients have in common: the way to the service, and what is not about one session."""

    _session: Any

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = RETRIES,
        verify: bool | str = True,
        transport: Any = None,
    ) -> None:
        _require_httpx()
        self._line = ServiceLine(url, os.environ.get("BRIDLE_KEY") or None if key is None else key, retries)
        self.url, self.timeout, self.retries = self._line.url, validate.positive("timeout", timeout), self._line.retries
        self._connect(timeout=self.timeout, verify=verify, transport=transport, follow_redirects=False)

    def _connect(self, **settings: Any) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @Verb
    def sessions(self) -> Conversation[list[Facts]]:
        """All sessions of the service: of each its name, its policy, how many rounds it has."""
        return (yield from self._line.ask("GET", "/v1/sessions"))["sessions"]  # type: ignore[no-any-return]

    @Verb
    def create(
        self,
        /,
        name: str,
        policy: str | Configured,
        domain: Domain | Mapping[str, object] | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
        **options: object,
    ) -> Conversation[S]:
        """Make a session, or find the one that was made so. It needs a key of scope admin.

        Parameters
        ----------
        name : str
            What it will be called.
        policy : str or Configured
            A registered name with its `parameters`, or what `bridle.policy` gives.
        domain : Domain or dict, optional
            Where decisions are made; not needed where `policy` has one.
        parameters : dict, optional
            The parameters of the policy, where it is a name.
        **options : object
            Those of `Session` and of the service: names, engine, rules, rules_per, features, x1, certify, levels, tolerance, late, pending,
            timeout, largest, most_constraints, gates.
        """
        yield from self._line.ask("POST", "/v1/sessions", said_session(name, policy, domain, parameters, options))
        return self.session(name)

    def session(self, name: str) -> S:
        """The session of this name, with the verbs and figures of `Session`; nothing is sent yet.

        Parameters
        ----------
        name : str
            What it is called.
        """
        return self._session(self, name)  # type: ignore[no-any-return]


class Client(Caller[RemoteSession], Waiting):
    """A decision service at `url`, and its sessions by name.

    What was not answered, or answered with "later" (429, 503), is sent again, each event under its own identity, so that it counts once. It
    needs httpx, which the extra `client` installs.

    Parameters
    ----------
    url : str
        Where the service is, such as ``http://127.0.0.1:8711``.
    key : str, optional
        A key that ``bridle keys add`` has made. Default: the environment variable BRIDLE_KEY.
    timeout : float, default 10.0
        How long one attempt may take, above 0, in seconds.
    retries : int, default 14
        How often a request is sent again, 0 or above: 14 makes about 20 seconds of pauses, in which a server starts anew.
    verify : bool or str, default True
        Whether, or with which certificates, TLS is checked; as for httpx.
    transport : httpx.BaseTransport, optional
        As for httpx; an httpx.AsyncBaseTransport for `AsyncClient`.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8711", key="...")
    >>> client.session("shop-17")
    RemoteSession('shop-17' at http://127.0.0.1:8711)
    """

    _session = RemoteSession

    def _connect(self, **settings: Any) -> None:
        import httpx

        self._http = httpx.Client(**settings)

    def _drive(self, talk: Conversation[T]) -> T:
        import httpx

        came: Reply | None = None
        while True:
            try:
                step = talk.send(came)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                came = None
                continue
            try:
                answer = self._http.request(step.method, step.url, headers=step.headers, content=step.content)
                came = Reply(answer.status_code, answer.headers, answer.content)
            except httpx.TransportError as wrong:
                came = Reply(0, lost=f"{type(wrong).__name__}: {wrong}")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Caller[AsyncRemoteSession], Awaiting):
    """`Client` for asyncio: what asks the service is awaited, a session's figures too (``await session.cost``).

    Parameters
    ----------
    url : str
        Where the service is, such as ``http://127.0.0.1:8711``.
    key : str, optional
        A key that ``bridle keys add`` has made. Default: the environment variable BRIDLE_KEY.
    timeout : float, default 10.0
        How long one attempt may take, above 0, in seconds.
    retries : int, default 14
        How often a request is sent again, 0 or above.
    verify : bool or str, default True
        Whether, or with which certificates, TLS is checked; as for httpx.
    transport : httpx.AsyncBaseTransport, optional
        As for httpx.

    Examples
    --------
    >>> client = AsyncClient("http://127.0.0.1:8711", key="...")
    >>> client.session("shop-17")
    AsyncRemoteSession('shop-17' at http://127.0.0.1:8711)
    """

    _session = AsyncRemoteSession

    def _connect(self, **settings: Any) -> None:
        import httpx

        self._http = httpx.AsyncClient(**settings)

    async def _drive(self, talk: Conversation[T]) -> T:
        import asyncio  # here, as `import bridle` stays light

        import httpx

        came: Reply | None = None
        while True:
            try:
                step = talk.send(came)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                came = None
                continue
            try:
                answer = await self._http.request(step.method, step.url, headers=step.headers, content=step.content)
                came = Reply(answer.status_code, answer.headers, answer.content)
            except httpx.TransportError as wrong:
                came = Reply(0, lost=f"{type(wrong).__name__}: {wrong}")

    async def close(self) -> None:
        """Close the connections; to be awaited."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


if TYPE_CHECKING:

    def _decides(session: RemoteSession) -> Decides:
        return session

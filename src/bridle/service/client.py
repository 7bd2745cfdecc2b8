"""The client of the service: the verbs of a session over HTTP, waiting (`Client`) or to be awaited (`AsyncClient`).

What is said and how it is tried again stands once, in `talks` and `exchange`; here it is driven. An event gets its identity before it is
first sent, so that a lost answer, a restarted server and a session that has moved to another server never make it count twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, TypeVar

from bridle import validate
from bridle.core import Domain, Unavailable
from bridle.policies.registry import Configured
from bridle.service.remote import Body, Facts, Lost, Pause, Reply, ServiceLine, SessionTalks, Talk, said_session

if TYPE_CHECKING:
    import httpx

P = ParamSpec("P")
T = TypeVar("T")

RETRIES = 14
"""How often a request is sent again unless told: about 20 seconds of pauses, in which a server starts anew."""


def _httpx() -> None:
    try:
        import httpx  # noqa: F401  (only whoever talks to a service needs it)
    except ModuleNotFoundError as trouble:
        raise Unavailable(f"bridle.Client needs the package {trouble.name}: pip install 'bridle-oco[client]'") from None


class Caller:
    """What both clients have in common: the way to the service, and the conversations that are not about one session."""

    def __init__(self, url: str, key: str | None, timeout: float, retries: int) -> None:
        _httpx()
        self._line = ServiceLine(url, os.environ.get("BRIDLE_KEY") or None if key is None else key, retries)
        self.url, self.timeout, self.retries = self._line.url, validate.positive("timeout", timeout), self._line.retries

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _sessions(self) -> Talk[list[Facts]]:
        sessions: list[Facts] = (yield from self._line.ask("GET", "/v1/sessions"))["sessions"]
        return sessions

    def _create(self, body: Body) -> Talk[SessionTalks]:
        yield from self._line.ask("POST", "/v1/sessions", body)
        return SessionTalks(self._line, str(body["name"]))


class Client(Caller):
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
        As for httpx.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8711", key="...")
    >>> client.session("shop-17")
    RemoteSession('shop-17' at http://127.0.0.1:8711)
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = RETRIES,
        verify: bool | str = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, key, timeout, retries)
        import httpx

        self._http = httpx.Client(timeout=self.timeout, verify=verify, transport=transport, follow_redirects=False)

    def _drive(self, talk: Talk[T]) -> T:
        """Do what a conversation asks for, until it ends."""
        import httpx

        came: Reply | Lost | None = None
        while True:
            try:
                step = talk.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                came = None
                time.sleep(step.seconds)
                continue
            try:
                answer = self._http.request(step.method, step.url, headers=step.headers, content=step.content)
                came = Reply(answer.status_code, answer.headers, answer.content)
            except httpx.TransportError as wrong:
                came = Lost(f"{type(wrong).__name__}: {wrong}")

    def sessions(self) -> list[Facts]:
        """All sessions of the service.

        Returns facts of each: its name, its policy, how many rounds it has.
        """
        return self._drive(self._sessions())

    def create(
        self,
        name: str,
        policy: str | Configured,
        domain: Domain | Mapping[str, object] | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
        **options: object,
    ) -> RemoteSession:
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
            timeout,
            largest, most_constraints, gates.
        """
        return RemoteSession(self, self._drive(self._create(said_session(name, policy, domain, parameters, options))))

    def session(self, name: str) -> RemoteSession:
        """The session of this name; nothing is sent yet.

        Returns the verbs and figures of `Session`, each durable when it returns.

        Parameters
        ----------
        name : str
            What it is called.
        """
        return RemoteSession(self, SessionTalks(self._line, name))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Caller):
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

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = RETRIES,
        verify: bool | str = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, key, timeout, retries)
        import httpx

        self._http = httpx.AsyncClient(timeout=self.timeout, verify=verify, transport=transport, follow_redirects=False)

    async def _drive(self, talk: Talk[T]) -> T:
        """Do what a conversation asks for, until it ends."""
        import asyncio  # here, as `import bridle` stays light

        import httpx

        came: Reply | Lost | None = None
        while True:
            try:
                step = talk.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                came = None
                await asyncio.sleep(step.seconds)
                continue
            try:
                answer = await self._http.request(step.method, step.url, headers=step.headers, content=step.content)
                came = Reply(answer.status_code, answer.headers, answer.content)
            except httpx.TransportError as wrong:
                came = Lost(f"{type(wrong).__name__}: {wrong}")

    async def sessions(self) -> list[Facts]:
        """All sessions of the service, to be awaited.

        Returns facts of each: its name, its policy, how many rounds it has.
        """
        return await self._drive(self._sessions())

    async def create(
        self,
        name: str,
        policy: str | Configured,
        domain: Domain | Mapping[str, object] | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
        **options: object,
    ) -> AsyncRemoteSession:
        """Make a session, or find the one that was made so; to be awaited, otherwise as `Client.create`.

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
            As for `Client.create`.
        """
        return AsyncRemoteSession(self, await self._drive(self._create(said_session(name, policy, domain, parameters, options))))

    def session(self, name: str) -> AsyncRemoteSession:
        """The session of this name; nothing is sent yet.

        Returns the verbs and figures of `Session`, to be awaited.

        Parameters
        ----------
        name : str
            What it is called.
        """
        return AsyncRemoteSession(self, SessionTalks(self._line, name))

    async def close(self) -> None:
        """Close the connections; to be awaited."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Named:
    """A session of a service, by its name."""

    def __init__(self, client: Caller, talks: SessionTalks) -> None:
        self._client, self._talks, self.name = client, talks, talks.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self._client.url})"


def _waiting(verb: Callable[Concatenate[SessionTalks, P], Talk[T]]) -> Callable[Concatenate[RemoteSession, P], T]:
    @wraps(verb)
    def method(self: RemoteSession, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._client._drive(verb(self._talks, *args, **kwargs))

    return method


def _awaited(verb: Callable[Concatenate[SessionTalks, P], Talk[T]]) -> Callable[Concatenate[AsyncRemoteSession, P], Awaitable[T]]:
    @wraps(verb)
    async def method(self: AsyncRemoteSession, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._client._drive(verb(self._talks, *args, **kwargs))

    return method


class _Figure(Generic[T]):
    """A figure of a session, read from the service whenever it is looked at."""

    def __init__(self, talk: Callable[[SessionTalks], Talk[T]]) -> None:
        self._talk, self.__doc__ = talk, talk.__doc__

    def __get__(self, session: RemoteSession, owner: type[RemoteSession]) -> T:
        return self if session is None else session._client._drive(self._talk(session._talks))


class _AwaitedFigure(Generic[T]):
    """A figure of a session, to be awaited."""

    def __init__(self, talk: Callable[[SessionTalks], Talk[T]]) -> None:
        self._talk, self.__doc__ = talk, talk.__doc__

    def __get__(self, session: AsyncRemoteSession, owner: type[AsyncRemoteSession]) -> Awaitable[T]:
        return self if session is None else session._client._drive(self._talk(session._talks))


class RemoteSession(_Named):
    """A session that a service keeps: the verbs and figures of `Session`, each durable when it returns.

    Events take an identity too (``key=``), so that a caller who was itself broken off can say the same event again and have it count once.
    """

    _client: Client

    decide = _waiting(SessionTalks.decide)
    ask = _waiting(SessionTalks.ask)
    observe = _waiting(SessionTalks.observe)
    forget = _waiting(SessionTalks.forget)
    batch = _waiting(SessionTalks.batch)
    step = _waiting(SessionTalks.step)
    change_limit = _waiting(SessionTalks.change_limit)
    pay = _waiting(SessionTalks.pay)
    bid = _waiting(SessionTalks.bid)
    budget = _waiting(SessionTalks.budget)
    certificate = _waiting(SessionTalks.certificate)
    report = _waiting(SessionTalks.report)
    facts = _waiting(SessionTalks.facts)
    last_rounds = _waiting(SessionTalks.last_rounds)
    quarantine = _waiting(SessionTalks.quarantine)
    close = _waiting(SessionTalks.close)

    rounds = _Figure(SessionTalks.rounds)
    cost = _Figure(SessionTalks.cost)
    ccv = _Figure(SessionTalks.ccv)
    violations = _Figure(SessionTalks.violations)
    names = _Figure(SessionTalks.names)
    pending = _Figure(SessionTalks.pending)
    dropped = _Figure(SessionTalks.dropped)
    alarms = _Figure(SessionTalks.alarms)
    weights = _Figure(SessionTalks.weights)
    rates = _Figure(SessionTalks.rates)
    price = _Figure(SessionTalks.price)


class AsyncRemoteSession(_Named):
    """`RemoteSession` for asyncio: everything is awaited."""

    _client: AsyncClient

    decide = _awaited(SessionTalks.decide)
    ask = _awaited(SessionTalks.ask)
    observe = _awaited(SessionTalks.observe)
    forget = _awaited(SessionTalks.forget)
    batch = _awaited(SessionTalks.batch)
    step = _awaited(SessionTalks.step)
    change_limit = _awaited(SessionTalks.change_limit)
    pay = _awaited(SessionTalks.pay)
    bid = _awaited(SessionTalks.bid)
    budget = _awaited(SessionTalks.budget)
    certificate = _awaited(SessionTalks.certificate)
    report = _awaited(SessionTalks.report)
    facts = _awaited(SessionTalks.facts)
    last_rounds = _awaited(SessionTalks.last_rounds)
    quarantine = _awaited(SessionTalks.quarantine)
    close = _awaited(SessionTalks.close)

    rounds = _AwaitedFigure(SessionTalks.rounds)
    cost = _AwaitedFigure(SessionTalks.cost)
    ccv = _AwaitedFigure(SessionTalks.ccv)
    violations = _AwaitedFigure(SessionTalks.violations)
    names = _AwaitedFigure(SessionTalks.names)
    pending = _AwaitedFigure(SessionTalks.pending)
    dropped = _AwaitedFigure(SessionTalks.dropped)
    alarms = _AwaitedFigure(SessionTalks.alarms)
    weights = _AwaitedFigure(SessionTalks.weights)
    rates = _AwaitedFigure(SessionTalks.rates)
    price = _AwaitedFigure(SessionTalks.price)

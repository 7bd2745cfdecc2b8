"""How a request to the service is made, tried again and given up: one definition, for the client that waits and for the one that awaits.

A conversation is a generator. It yields what is to be done next, a `Request` to send or a `Pause` to make, is sent what came of it, and
returns the answer; who drives it does the waiting. It may begin again at any time, because an event carries an identity that was made
once for all attempts: an answer that was lost is fetched by it, and the event counts once.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Generator, Mapping
from hashlib import blake2b
from math import isfinite
from types import UnionType
from typing import Any, NamedTuple, TypeAlias, TypedDict, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import urljoin, urlsplit

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import Domain, InputError
from bridle.domains.closed_form import BallSet, BoxSet, L1BallSet, ProductSet, SimplexSet, SpectrahedronSet
from bridle.domains.combinatorial import MatchingSet, PathSet, SpanningTreeSet
from bridle.domains.polyhedron import PolyhedronSet
from bridle.ops import Array
from bridle.policies.registry import Configured
from bridle.session.certificates.certificate import Certificate
from bridle.session.feedback import Numbers
from bridle.session.prior import HintGiven, parts_of

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE, LONGEST_ORDER = 0.05, 2.0, 60.0
"""Seconds: the first pause between attempts, which doubles up to the second; and the most that a server's Retry-After is obeyed."""
MOST_REDIRECTIONS = 5
LARGEST_KEY = 128
"""Characters of an event's identity."""
TRY_AGAIN = frozenset({429, 500, 502, 503, 504})
"""Statuses after which an attempt with the same identity may succeed; the server or a proxy before it has them."""


class RefusedByServer(InputError):
    """The server refused a request, and nothing changed: the sentence is the server's own, `status` that of HTTP, `request` its number."""

    def __init__(self, sentence: str, status: int, request: str = "") -> None:
        super().__init__(sentence)
        self.status, self.request = status, request


class Unanswered(ConnectionError):
    """No answer came, however often it was asked: whether the event counts is not known.

    `key` is its identity: the same call with ``key=error.key`` fetches the answer if it counted, and plays it if it did not. `attempts` is
    how often it was sent.
    """

    def __init__(self, sentence: str, key: str, attempts: int) -> None:
        super().__init__(sentence)
        self.key, self.attempts = key, attempts


class Request(NamedTuple):
    """What is to be sent."""

    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None


class Pause(NamedTuple):
    """How long nothing is to be done, in seconds."""

    seconds: float


class Reply(NamedTuple):
    """What came back; with status 0 nothing did, and `lost` says why: the connection failed or broke, or it took too long."""

    status: int
    headers: Mapping[str, str] = {}
    content: bytes = b""
    lost: str = ""

    @property
    def facts(self) -> Facts | None:
        """The JSON object that came, if one did."""
        try:
            facts = json.loads(self.content)
        except ValueError:
            return None
        return facts if isinstance(facts, dict) else None

    @property
    def sentence(self) -> str:
        """What the server says of its refusal, or why there is no answer."""
        said = (self.facts or {}).get("error")
        return said if isinstance(said, str) and said else self.lost or f"the server answered with status {self.status}"

    def pause(self, otherwise: float) -> float:
        """How long the server asks to wait, in seconds."""
        told = self.headers.get("retry-after")
        try:
            return otherwise if told is None else min(LONGEST_ORDER, max(0.0, float(told)))
        except ValueError:  # a date
            return LONGEST_PAUSE


Conversation: TypeAlias = Generator[Request | Pause, Any, T]
"""A conversation with the server that ends in a T: a request is answered with a `Reply`, a pause with nothing."""
Facts: TypeAlias = dict[str, Any]
"""A JSON object that came."""
Body: TypeAlias = dict[str, object]
"""A JSON object to be sent."""


def identity(key: str | None) -> str:
    """The identity of an event: what the caller gave, or a new one."""
    if key is None:
        return secrets.token_hex(16)
    if not isinstance(key, str) or not 0 < len(key) <= LARGEST_KEY or not key.isascii() or not key.isprintable():
        raise InputError(f"key must be text of 1 to {LARGEST_KEY} printable ASCII characters, not {validate.show(key)}")
    return key


def pause_before(attempt: int, key: str) -> float:
    """Seconds before attempt 1, 2, ...: they double, and differ from event to event, so that clients do not come back all at once.

    >>> 0.025 <= pause_before(1, "a") <= 0.05, 1.0 <= pause_before(30, "a") <= 2.0, pause_before(1, "a") != pause_before(1, "b")
    (True, True, True)
    """
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt - 1, 30))
    share = int.from_bytes(blake2b(f"{key} {attempt}".encode(), digest_size=4).digest(), "big") / 2.0**32
    return longest * (0.5 + 0.5 * share)


class ServiceLine:
    """The way to one service: its address, the key, how patient to be, and which server owns which session as far as is known."""

    def __init__(self, url: str, key: str | None, retries: int) -> None:
        place = urlsplit(url) if isinstance(url, str) else None
        if place is None or place.scheme not in ("http", "https") or not place.netloc:
            raise InputError(f"url must be that of a service, such as http://127.0.0.1:8711, not {validate.show(url)}")
        if key is not None and not (isinstance(key, str) and key and key.isascii() and key.isprintable() and " " not in key):
            raise InputError("key must be one that `bridle keys add` has shown")  # and is not repeated in an error
        self.url = url.rstrip("/")
        self.retries = validate.whole("retries", retries, 0)
        self._headers = {"Accept": "application/json"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
        self._owners: dict[str, str] = {}

    def ask(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, key: str | None = None, about: str = ""
    ) -> Conversation[Facts]:
        """The answer to one request, as often as it takes. `key` makes it an event; `about` is the session it is for."""
        headers, content = dict(self._headers), None
        if body is not None:
            headers["Content-Type"], content = "application/json", json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
        if key is not None:
            headers["Idempotency-Key"] = key
        seed = key or secrets.token_hex(8)
        home, attempts, redirected, last = self.url, 0, 0, ""
        while True:
            base = self._owners.get(about, home)
            came: Reply = yield Request(method, base + path, headers, content)
            attempts += 1
            last = came.sentence
            if came.status in (307, 308):
                redirected += 1
                if redirected <= MOST_REDIRECTIONS:
                    self._owners[about] = self._elsewhere(base + path, path, came)
                    continue
                last = "it was sent from server to server"
            elif came.status and came.status not in TRY_AGAIN:
                facts = came.facts
                if not 200 <= came.status < 300:
                    raise RefusedByServer(last, came.status, str((facts or {}).get("request", "")))
                if facts is None:
                    raise RefusedByServer(f"what answers at {base} is no bridle service", came.status)
                return facts
            self._owners.pop(about, None)  # whoever owns it now, the first address knows
            redirected = 0
            if attempts > self.retries:
                times = "once" if attempts == 1 else f"{attempts} times"
                again = "" if key is None else f"; whether it counts is not known, and the same call with key={key!r} finds out"
                raise Unanswered(f"{method} {base + path} was sent {times} without an answer ({last}){again}", key or "", attempts)
            yield Pause(came.pause(pause_before(attempts, seed)))

    def _elsewhere(self, asked: str, path: str, came: Reply) -> str:
        """Where the session's owner is, from a redirection."""
        target = urljoin(asked, came.headers.get("location", ""))
        place = urlsplit(target)
        safe = place.scheme == "https" or (place.scheme == "http" and urlsplit(self.url).scheme == "http")
        if not safe or not place.netloc or not place.path.endswith(urlsplit(path).path):
            raise RefusedByServer(f"the server at {self.url} points to {validate.show(target)}, where the key is not sent", came.status)
        return target.partition("?")[0].removesuffix(urlsplit(path).path)


KnownHalfspaces = tuple[ArrayLike, ArrayLike] | None
"""Limits that are known before acting, as they can be sent: A x <= b."""


DOMAINS: dict[type, tuple[str, Callable[[Any], dict[str, object]]]] = {
    BoxSet: ("box", lambda box: {"low": box.low, "high": box.high}),
    BallSet: ("ball", lambda ball: {"center": ball.middle, "radius": ball.radius}),
    L1BallSet: ("l1ball", lambda ball: {"center": ball.middle, "radius": ball.radius}),
    SimplexSet: ("simplex", lambda simplex: {"dim": simplex.dim, "mass": simplex.mass}),
    SpectrahedronSet: ("spectrahedron", lambda each: {"size": round(each.dim**0.5), "trace": each.trace}),
    PolyhedronSet: ("polyhedron", lambda polyhedron: {"A": polyhedron.A, "b": polyhedron.b}),
    PathSet: ("paths", lambda each: {"edges": _edges(np.stack([each.tails, each.heads])), "source": 0, "target": each.nodes - 1}),
    SpanningTreeSet: ("spanningtrees", lambda trees: {"edges": _edges(trees.ends)}),
    MatchingSet: ("matchings", lambda each: dict(zip(("rows", "columns"), each.middle.shape, strict=True))),
    ProductSet: ("product", lambda product: {"domains": [said_domain(part) for part in product.domains]}),
}
"""The domains that the service knows: their names there, and their arguments."""


def _edges(ends: Array) -> Array:
    return ends.T.astype(int)


def said_domain(domain: Domain | Mapping[str, object]) -> Body:
    """A domain as the service reads it.

    >>> import bridle
    >>> said_domain(bridle.Box(0.0, 40.0, dim=1))
    {'kind': 'box', 'low': [0.0], 'high': [40.0]}
    """
    if isinstance(domain, Mapping):
        return dict(domain)
    if type(domain) not in DOMAINS:
        raise InputError(f"domain must be one that the service knows, or its description as a dict, not {validate.show(domain)}")
    kind, arguments = DOMAINS[type(domain)]
    return {"kind": kind} | {name: _plain(value, name) for name, value in arguments(domain).items()}


def said_session(
    name: str,
    policy: str | Configured,
    domain: Domain | Mapping[str, object] | None,
    parameters: Mapping[str, object] | None,
    options: Mapping[str, object],
) -> Body:
    """The body that makes a session."""
    settings = dict(parameters or {})
    if isinstance(policy, Configured):
        domain, own = (policy.recipe[0] if domain is None else domain), policy.recipe[1]
        policy, settings = policy.name, {**own, **settings}
    if domain is None:
        raise InputError("domain must be given, unless the policy has one")
    body: Body = {"name": name, "policy": policy, "domain": said_domain(domain)}
    for key in ("rules", "rules_per", "features"):  # the service has them beside the parameters
        if key in settings:
            body[key] = settings.pop(key)
    if settings:
        body["parameters"] = settings
    body |= {key: value for key, value in options.items() if value is not None}
    return {key: _plain(value, key) for key, value in body.items()}


def _plain(value: object, name: str) -> object:
    """A value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each, f"{name}.{key}".lstrip(".")) for key, each in value.items()}
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [_plain(each, name) for each in value]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value)):
        return value
    raise InputError(f"{name} must be something that JSON can hold, not {validate.show(value)}")


def _numbers(value: Numbers, name: str) -> object:
    """Numbers of a record: finite, as nested lists."""
    return validate.array(name, value).tolist()


def _proposals(rules: ArrayLike, name: str) -> object:
    """What rules propose; a row of NaN has nothing to say."""
    rows = np.asarray(rules, dtype=np.float64)
    quiet = np.isnan(rows)
    validate.array(name, np.where(quiet, 0.0, rows))
    if not quiet.any():
        return rows.tolist()
    return [None if np.isnan(row).all() else [None if each != each else each for each in row.tolist()] for row in np.atleast_2d(rows)]


def _known(known: object, name: str) -> object:
    """Halfspaces A x <= b."""
    if not isinstance(known, tuple) or len(known) != 2:
        raise InputError(f"{name} must be a pair (A, b) for A x <= b: functions cannot be sent; not {validate.show(known)}")
    return {each: _numbers(part, f"{name} {each}") for each, part in zip("Ab", known, strict=True)}


def ticket_number(ticket: object, name: str = "ticket") -> int:
    """The number that stands for a round which has begun."""
    if isinstance(ticket, bool) or not hasattr(ticket, "__index__"):
        raise InputError(f"{name} must be one that `ask` has given, or its number, not {validate.show(ticket)}")
    return int(ticket.__index__())


class SentPrior(TypedDict, total=False):
    """What may be said before a round, as `bridle.Session.decide` takes it; `known` is a pair (A, b)."""

    rules: Numbers
    features: Numbers
    known: KnownHalfspaces
    hint: HintGiven


FORMS: dict[str, Callable[[Any, str], object]] = {
    **dict.fromkeys(("f", "df", "g", "dg", "modulus", "played", "features"), _numbers),
    "rules": _proposals,
    "known": _known,
    "hint": lambda hint, _: {name: values.tolist() for name, values in parts_of(hint).items()},
    "ticket": ticket_number,
}
"""How what is said of a round is written down, where that is not plain."""


def said(given: Mapping[str, object]) -> Body:
    """What is said of a round, before it or after it, by its names; what is None is left out."""
    return {name: FORMS.get(name, _plain)(value, name) for name, value in given.items() if value is not None}


def said_event(event: Mapping[str, object]) -> Body:
    """An event of a batch, as it is sent: an observation unless its `kind` says something else."""
    if not isinstance(event, Mapping):
        raise InputError(f"an event must be a dict, such as {{'f': 1.0, 'df': [0.5]}}, not {validate.show(event)}")
    return {"kind": "observe"} | said(event)


def read_certificate(facts: Facts) -> Certificate:
    """The certificate that was sent as JSON; what was not finite is None there, and stays so."""
    return _read(Certificate, facts)  # type: ignore[no-any-return]


def _read(kind: Any, value: Any) -> Any:
    """A value of this type, from JSON: records by their fields, tuples and arrays from lists, a small tuple from its named parts too."""
    inner = get_args(kind)
    if value is None or not (isinstance(value, (dict, list))):
        return value
    if isinstance(kind, UnionType):
        return _read(inner[0], value)
    if get_origin(kind) is tuple:
        return tuple(value.values()) if isinstance(value, dict) else tuple(_read(inner[0], each) for each in value)
    if isinstance(value, list):
        return np.array(value, dtype=np.float64)
    return kind(**{name: _read(each, value[name]) for name, each in get_type_hints(kind).items()})


def has_identity(body: Body) -> bool:
    """Whether what is said, or one of several events, is the caller's to say again: under its key, or of its ticket.

    >>> has_identity({"f": 0.3}), has_identity({"events": [{"kind": "observe", "ticket": 7}]})
    (False, True)
    """
    events: list[Body] = body.get("events", [])  # type: ignore[assignment]
    return any(name in each for each in (body, *events) for name in ("key", "ticket"))

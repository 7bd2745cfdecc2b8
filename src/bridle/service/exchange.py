"""How a request to the service is made, tried again and given up: one definition, for the client that waits and for the one that awaits.

A conversation is a generator. It yields what is to be done next, a `Request` to send or a `Pause` to make, is sent what came of it, and
returns the answer; who drives it does the waiting. It may begin again at any time, because an event carries an identity that was made
once for all attempts: an answer that was lost is fetched by it, and the event counts once.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urljoin, urlsplit

from bridle import validate
from bridle.core import InputError

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
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Lost(NamedTuple):
    """Nothing came back: the connection failed or broke, or it took too long."""

    reason: str


Talk: TypeAlias = Generator[Request | Pause, Reply | Lost | None, T]
"""A conversation with the server that ends in a T."""
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
    ) -> Talk[Facts]:
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
            came = yield Request(method, base + path, headers, content)
            attempts += 1
            if isinstance(came, Reply) and came.status in (307, 308):
                redirected += 1
                if redirected <= MOST_REDIRECTIONS:
                    self._owners[about] = self._elsewhere(base + path, path, came)
                    continue
                last = "it was sent from server to server"
            elif isinstance(came, Reply) and came.status not in TRY_AGAIN:
                return _answer(came, base)
            else:
                last = came.reason if isinstance(came, Lost) else _sentence(came) if isinstance(came, Reply) else ""
            self._owners.pop(about, None)  # whoever owns it now, the first address knows
            redirected = 0
            if attempts > self.retries:
                raise Unanswered(_gave_up(method, base + path, attempts, last, key), key or "", attempts)
            yield Pause(_ordered(came) if isinstance(came, Reply) and "retry-after" in came.headers else pause_before(attempts, seed))

    def _elsewhere(self, asked: str, path: str, came: Reply) -> str:
        """Where the session's owner is, from a redirection."""
        target = urljoin(asked, came.headers.get("location", ""))
        place = urlsplit(target)
        safe = place.scheme == "https" or (place.scheme == "http" and urlsplit(self.url).scheme == "http")
        if not safe or not place.netloc or not place.path.endswith(urlsplit(path).path):
            raise RefusedByServer(f"the server at {self.url} points to {validate.show(target)}, where the key is not sent", came.status)
        return target.partition("?")[0].removesuffix(urlsplit(path).path)


def _answer(came: Reply, base: str) -> Facts:
    """The answer as it is, or the server's refusal."""
    facts = _facts(came)
    if 200 <= came.status < 300:
        if facts is None:
            raise RefusedByServer(f"what answers at {base} is no bridle service", came.status)
        return facts
    raise RefusedByServer(_sentence(came), came.status, str((facts or {}).get("request", "")))


def _facts(came: Reply) -> Facts | None:
    try:
        facts = json.loads(came.content)
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None


def _sentence(came: Reply) -> str:
    """What the server says of its refusal."""
    said = (_facts(came) or {}).get("error")
    return said if isinstance(said, str) and said else f"the server answered with status {came.status}"


def _ordered(came: Reply) -> float:
    """How long the server asks to wait."""
    try:
        return min(LONGEST_ORDER, max(0.0, float(came.headers["retry-after"])))
    except ValueError:  # a date
        return LONGEST_PAUSE


def _gave_up(method: str, url: str, attempts: int, last: str, key: str | None) -> str:
    times = "once" if attempts == 1 else f"{attempts} times"
    again = "" if key is None else f"; whether it counts is not known, and the same call with key={key!r} finds out"
    return f"{method} {url} was sent {times} without an answer ({last}){again}"

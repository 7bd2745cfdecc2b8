"""What a request can be answered with instead of what it asked for: a status, one sentence, and when to come again."""

from __future__ import annotations

BAD_FORM, NO_KEY, FORBIDDEN, NOT_FOUND, CONFLICT, TOO_LARGE, REFUSED, TOO_MANY, UNAVAILABLE = 400, 401, 403, 404, 409, 413, 422, 429, 503
ELSEWHERE = 307

RETRY_AFTER = 1
"""After how many seconds a client may try again, where nothing better is known."""


class HTTPError(Exception):
    """A request is turned away: with this status and sentence, and with these headers."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers or {}


def unavailable(sentence: str, seconds: int = RETRY_AFTER) -> HTTPError:
    """Not now: the client may try again, with the same key."""
    return HTTPError(UNAVAILABLE, sentence, {"Retry-After": str(seconds)})


def too_many(sentence: str, seconds: float = RETRY_AFTER) -> HTTPError:
    """Too fast, or too much at once."""
    return HTTPError(TOO_MANY, sentence, {"Retry-After": str(max(1, round(seconds)))})


def elsewhere(url: str) -> HTTPError:
    """Another server owns the session: its address, to which the same request may be sent (the path is added to it)."""
    return HTTPError(ELSEWHERE, f"this session is owned by the server at {url}", {"Location": url.rstrip("/")})

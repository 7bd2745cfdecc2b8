"""Structured logs: one JSON object a line, with the id of the request that it belongs to. No secret gets here: nobody hands one over."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from contextvars import ContextVar
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import TextIO

LOG = logging.getLogger("bridle.service")

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the request that is being answered."""

WRITTEN_EVERY = 0.1
"""Seconds between two times that lines of requests are written."""


def moment(seconds: float) -> str:
    """A time as text.

    >>> moment(1.25)
    '1970-01-01T00:00:01.250Z'
    """
    return f"{_second(int(seconds))}.{int(seconds * 1000.0) % 1000:03d}Z"


@lru_cache(2)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


class JsonLines(logging.Formatter):
    """A record of the log as one line of JSON: when, how bad, which request, what, and its figures."""

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, object] = {
            "time": moment(record.created),
            "level": record.levelname.lower(),
            "request": request_id.get(),
            "event": record.getMessage(),
        }
        facts |= getattr(record, "figures", {})
        if record.exc_info:
            facts["trace"] = self.formatException(record.exc_info)
        return json.dumps(facts, default=str)


def log(event: str, level: int = logging.INFO, **figures: object) -> None:
    """Log an event with its figures."""
    if LOG.isEnabledFor(level):
        LOG.log(level, event, extra={"figures": figures})


class AccessLog:
    """One line for each request; they are written together a few times a second, since to write each alone takes longer than to answer."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, mark: str, method: str, path: str, status: int, seconds: float, who: str) -> None:
        """A request was answered."""
        self.lines.append(
            f'{{"time": "{moment(time.time())}", "level": "info", "request": "{mark}", "event": "answered", "method": {quoted(method)}, '
            f'"path": {quoted(path)}, "status": {status}, "ms": {1e3 * seconds:.3f}, "who": {quoted(who)}}}'
        )
        if len(self.lines) == 1:
            asyncio.get_running_loop().call_later(WRITTEN_EVERY, self.flush)

    def flush(self) -> None:
        """Write what is there."""
        text, self.lines = "".join(f"{line}\n" for line in self.lines), []
        for handler in LOG.handlers if text else ():
            if isinstance(handler, logging.StreamHandler):
                handler.acquire()
                try:
                    handler.stream.write(text)
                    handler.flush()
                finally:
                    handler.release()


def set_up(stream: TextIO | None = None, level: str = "info") -> None:
    """Send the service's log, and what its server has to say, to this stream (standard error)."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines())
    for name in ("bridle.service", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())
    logging.getLogger("uvicorn.access").handlers[:] = []
    logging.getLogger("uvicorn.access").propagate = False

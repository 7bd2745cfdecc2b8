"""Reading the bodies of requests: JSON, decoded straight into the struct that a route takes.

What comes most, feedback that is four lists of numbers, has structs of its own that are read faster: they know that they hold floats and
nothing else. A name that is there twice in one object is refused, since who reads it first and who reads it last would see two requests.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import numpy as np

from bridle.service.schemas import BatchBody, ObserveBody, PlainBatch, PlainBody

NAME = re.compile(rb'"([^"]*)"\s*(:)?')
"""A text without escapes, and whether it is the name of something: no other text is followed by a colon."""


class Reader:
    """Reads the body of a route: the first of these structs that it is."""

    def __init__(self, body: type[msgspec.Struct]) -> None:
        self._whole = msgspec.json.Decoder(body).decode
        plain = PLAIN.get(body)
        self._plain = None if plain is None else msgspec.json.Decoder(plain).decode

    def __call__(self, raw: bytes) -> Any:
        """The body; a `msgspec.MsgspecError` says why there is none."""
        if self._plain is not None:
            try:
                plain = self._plain(raw)
            except msgspec.MsgspecError:
                pass  # it is something else, or wrong: the struct of the route says what is
            else:
                if quotes_in(raw) == plain.quotes() and b"\\" not in raw:
                    return plain
        body = self._whole(raw)
        refuse_twice(raw)
        return body


PLAIN: dict[type[msgspec.Struct], type[PlainBody] | type[PlainBatch]] = {ObserveBody: PlainBody, BatchBody: PlainBatch}


LONG = 10_000
"""From so many bytes on NumPy counts faster."""


def quotes_in(raw: bytes) -> int:
    """How many quotation marks there are.

    >>> quotes_in(b'{"f": 1.0}'), quotes_in(b'{"f": 1.0}' * 2000)
    (2, 4000)
    """
    return raw.count(b'"') if len(raw) < LONG else int(np.count_nonzero(np.frombuffer(raw, np.uint8) == ord('"')))


def refuse_twice(raw: bytes) -> None:
    """Refuse JSON in which one object has a name twice.

    >>> refuse_twice(b'{"f": 1, "known": {"A": 1, "b": 2}, "rules": [{"b": 3}]}')
    >>> refuse_twice(b'{"f": 1, "f": 2}')
    Traceback (most recent call last):
        ...
    msgspec.ValidationError: `f` is there twice
    """
    if b"\\" not in raw:
        names = [name for name, colon in NAME.findall(raw) if colon]
        if len({*names}) == len(names):
            return
    json.loads(raw, object_pairs_hook=_pairs)


def _pairs(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise msgspec.ValidationError(f"`{name[:100]}` is there twice")
        seen.add(name)

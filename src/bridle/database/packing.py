"""Several events in one row: what a group costs a database is its rows more than its bytes.

Only events that nobody looks up are packed: those without an identity, a request or an answer, whose numbers follow each other. The row has
the number of the last of them, so that the largest number of all rows is that of the last event. Its body is

    how many there are, then their kinds, then the lengths of their bodies, then the bodies

>>> row, = packed([Event(4, 1, None, None, None, b"one"), Event(5, 2, None, None, None, b"two")])
>>> row.seq, row.kind, [event.body for event in unpacked(row)]
(5, -1, [b'one', b'two'])
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from bridle.database.rows import Event

PACKED = -1
"""The kind of a row that holds several events; those of events are 0 and above."""

MOST_EVENTS, MOST_BYTES = 500, 1 << 18
"""What a row holds at most; a larger event has one of its own."""


def packed(events: Sequence[Event]) -> list[Event]:
    """These events in as few rows as may be."""
    rows: list[Event] = []
    waiting: list[Event] = []
    size = 0
    for event in events:
        seq, _, key, request, answer, body = event
        plain = key is None and request is None and answer is None
        size += len(body)
        if waiting and (not plain or seq != waiting[-1].seq + 1 or size > MOST_BYTES or len(waiting) == MOST_EVENTS):
            rows.append(_row(waiting))
            waiting, size = [], len(body)
        if plain:
            waiting.append(event)
        else:
            rows.append(event)
            size = 0
    if waiting:
        rows.append(_row(waiting))
    return rows


def _row(events: list[Event]) -> Event:
    if len(events) == 1:
        return events[0]
    number, bodies = len(events), [event.body for event in events]
    head = struct.pack(f"<I{number}h{number}I", number, *[event.kind for event in events], *map(len, bodies))
    return Event(events[-1].seq, PACKED, None, None, None, head + b"".join(bodies))


def unpacked(row: Event) -> Iterator[Event]:
    """The events of a row."""
    if row.kind != PACKED:
        yield row
        return
    body = row.body
    (number,) = struct.unpack_from("<I", body)
    found = struct.unpack_from(f"<{number}h{number}I", body, 4)
    seq, at = row.seq - number, 4 + 6 * number
    for kind, length in zip(found[:number], found[number:], strict=True):
        seq += 1
        yield Event(seq, kind, None, None, None, body[at : at + length])
        at += length

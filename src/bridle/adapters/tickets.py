"""Rows that were decided and wait for their classes: what is remembered of each, under the number of its ticket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from bridle import records, validate
from bridle.adapters.learning import known
from bridle.adapters.thresholds import Seen
from bridle.core import InputError
from bridle.ops import Array

MOST_OPEN = 100_000
"""So many rows may wait for their classes at the most."""


class OpenRow(NamedTuple):
    """A row that waits for its class: how it was seen, and its group."""

    seen: Seen | None
    group: float | None


class RowTicket(NamedTuple):
    """The answer about a row whose class is not known yet.

    Parameters
    ----------
    id : int
        The number to give back with the row's class.
    alarm : bool
        Whether the row is an alarm.
    probability : float
        The model's probability of the class that an alarm is about, between 0 and 1.
    label : object
        The class that is predicted.

    Examples
    --------
    >>> from bridle.adapters.tickets import RowTicket
    >>> RowTicket(0, True, 0.8, "fraud").alarm
    True
    """

    id: int
    alarm: bool
    probability: float
    label: object


class OpenRows:
    """The rows that wait, and how many were ever asked about."""

    def __init__(self) -> None:
        self.rows: dict[int, OpenRow] = {}
        self.asked = 0

    def demand_room(self) -> None:
        """Refuse one more where too many wait."""
        if len(self.rows) >= MOST_OPEN:
            raise InputError(f"{MOST_OPEN:,} rows wait for their classes already: give these, or forget some")

    def add(self, row: OpenRow) -> int:
        """One more row waits; the number of its ticket."""
        self.asked += 1
        self.rows[self.asked] = row
        return self.asked

    def close(self, number: int) -> OpenRow:
        """A row waits no longer."""
        return self.rows.pop(number)

    def number(self, ticket: object) -> int:
        """The number of a ticket whose row waits."""
        number = ticket.id if isinstance(ticket, RowTicket) else ticket
        if isinstance(number, (int, np.integer)) and int(number) in self.rows:
            return int(number)
        raise InputError(f"ticket must be one that waits for its class, not {validate.show(number)}")

    def answered(self, tickets: Sequence[object], count: int) -> tuple[list[int], Seen | None, Array | None]:
        """The numbers of the tickets, one for each row, how the rows were seen, and their groups."""
        numbers = [self.number(ticket) for ticket in tickets]
        if len(numbers) != count or len(set(numbers)) != count:
            raise InputError(f"tickets must be {count} different ones, one for each row, not {len(set(numbers))}")
        waiting = [self.rows[number] for number in numbers]
        seen = None if waiting[0].seen is None else records.stack([cast("Seen", row.seen) for row in waiting])
        named = any(row.group is not None for row in waiting)
        return numbers, seen, np.array([known(row.group) for row in waiting]) if named else None

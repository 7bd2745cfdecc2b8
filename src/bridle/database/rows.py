"""What a store holds and what it says when it cannot: records and errors, without any library.

>>> Event(seq=1, kind=2, key=b"ticket-1", request=None, answer=None, body=b"...").seq
1
"""

from __future__ import annotations

from typing import NamedTuple

from bridle.core import Unavailable


class Event(NamedTuple):
    """One thing that happened to a session, in its place: `seq` counts from 1 without gaps.

    `key` is its identity, where the caller gave one; `request` a hash of what was asked, so that one key is not used for two things;
    `answer` what was answered.
    """

    seq: int
    kind: int
    key: bytes | None
    request: bytes | None
    answer: bytes | None
    body: bytes


class Found(NamedTuple):
    """A session in the database: `spec` is what it was made from, `owner` who has it (None: nobody), `epoch` how often it was taken."""

    id: int
    name: str
    spec: bytes
    owner: str | None
    epoch: int


class Lease(NamedTuple):
    """The right to append to a session, until somebody else has taken it: then its epoch is another."""

    session: int
    epoch: int


class SnapshotRow(NamedTuple):
    """The whole state of a session after event `seq`, the versions and the machine that made it, and a digest of the state."""

    seq: int
    library: str
    platform: str
    digest: bytes
    body: bytes


class RefusedRequest(NamedTuple):
    """A request that was refused: its number in its session, when it came (seconds since 1970), why it was refused, and what it said."""

    number: int
    when: float
    reason: str
    request: bytes


class AccessKey(NamedTuple):
    """A key to the service, as far as the database knows it: never the key itself, only its salted hash."""

    id: str
    name: str
    scopes: str
    salt: bytes
    digest: bytes
    settings: str
    made: float
    revoked: float | None


class AuditEntry(NamedTuple):
    """Who did what, to which session (None: to none), and when (seconds since 1970)."""

    id: int
    when: float
    who: str
    what: str
    session: str | None


class StoreError(Unavailable):
    """The database did not do what it was asked.

    `certain` is True where nothing was written, and False where nobody can tell: then read `head` before you go on.
    """

    def __init__(self, message: str, certain: bool = True) -> None:
        super().__init__(message)
        self.certain = certain


class Fenced(StoreError):
    """The lease is not the latest any more: somebody else has taken the session. Nothing was written."""


class Taken(StoreError):
    """An event with this number or this key is there already. Nothing was written."""


class Damaged(StoreError):
    """What the database holds is not what was written."""


class Owned(StoreError):
    """Somebody else has the session and lives: `by` is its name, `url` where it can be reached ("" where it said nothing)."""

    def __init__(self, message: str, by: str, url: str = "") -> None:
        super().__init__(message)
        self.by, self.url = by, url

"""How the tables came to be: numbered steps, each in one transaction, and the row that says which of them a database has seen.

A step is never changed once it has been published: what it makes is what databases out there have. A change of the tables is a new step
at the end of `STEPS`, and the same change in `tables`, which says what they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from bridle.core import InputError

Step: TypeAlias = Callable[[Dialect], Iterator[str]]
"""What a step does: the statements that it runs, in order."""


def _number(name: str) -> Column[int]:
    """A column that numbers the rows by itself."""
    return Column(name, BigInteger().with_variant(Integer(), "sqlite"), Identity(), primary_key=True)


def _count(name: str, primary: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=primary, autoincrement=False, nullable=False)


def _text(name: str, primary: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=primary, nullable=False)


def _blob(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


def _time(name: str) -> Column[float]:
    """Seconds since 1970."""
    return Column(name, Double, nullable=False)


def first_tables(dialect: Dialect) -> Iterator[str]:
    """Sessions with their events and snapshots, who owns them, what was refused, keys, and who did what."""
    held = MetaData()
    Table("server", held, _text("id", primary=True), _text("url"), _text("token"), _time("until"))
    epoch = Column("epoch", BigInteger, nullable=False, server_default="0")
    Table("session", held, _number("id"), _text("name"), _blob("spec"), Column("owner", Text), epoch, UniqueConstraint("name"))
    event = Table(
        "event",
        held,
        _number("id"),
        *(_count("session"), _count("seq"), _count("epoch"), Column("kind", SmallInteger, nullable=False)),
        *(Column("key", LargeBinary), Column("request", LargeBinary), Column("answer", LargeBinary), _blob("body"), _count("checksum")),
        UniqueConstraint("session", "seq"),
    )
    with_key = event.c.key.is_not(None)
    Index("event_key", event.c.session, event.c.key, unique=True, sqlite_where=with_key, postgresql_where=with_key)
    of_session = (_count("session", primary=True), _count("seq", primary=True))
    Table("snapshot", held, *of_session, _text("library"), _text("platform"), _blob("digest"), _blob("body"))
    numbered = (_count("session", primary=True), _count("number", primary=True))
    Table("quarantine", held, *numbered, _time("at"), _text("reason"), _blob("request"))
    key = (_text("id", primary=True), _text("name"), _text("scopes"), _blob("salt"), _blob("digest"), _text("settings"))
    Table("api_key", held, *key, _time("made"), Column("revoked", Double))
    Table("audit", held, _number("id"), _time("at"), _text("who"), _text("what"), Column("session", Text))
    for made in held.sorted_tables:
        yield str(CreateTable(made).compile(dialect=dialect))
        for index in made.indexes:
            yield str(CreateIndex(index).compile(dialect=dialect))


def packed_rows(dialect: Dialect) -> Iterator[str]:
    """A row of the events may hold several of them (`packing`): versions that do not know it keep off. The columns stay as they are.

    Numbers cannot be made shorter: PostgreSQL is not to try.
    """
    if dialect.name == "postgresql":
        yield "ALTER TABLE event ALTER COLUMN body SET STORAGE EXTERNAL"


STEPS: Sequence[Step] = (first_tables, packed_rows)
"""Version n of the tables is what the first n steps make."""

VERSION_TABLE = "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)"
READ_VERSION = "SELECT max(version) FROM schema_version"


def steps_from(version: int, name: str) -> Sequence[Step]:
    """The steps that a database of this version has still to see; one error where it has seen more than there are."""
    if version > len(STEPS):
        raise InputError(
            f"cannot open {name}: its tables have version {version}, and this version of bridle knows them up to {len(STEPS)}; "
            "install the newer bridle that wrote it"
        )
    return STEPS[version:]


def record(version: int) -> Iterator[str]:
    """The statements that say that a database has this version now."""
    yield "DELETE FROM schema_version"
    yield f"INSERT INTO schema_version (version) VALUES ({int(version)})"

"""The statements that make the tables, and the row that says of which version they are: a change of them is a new version.

`tables` has the same tables as the statements on them need them.
"""

from __future__ import annotations

from collections.abc import Iterator

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

VERSION = 2
"""The version of the tables: those of no other are opened."""

VERSION_TABLE = "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)"
READ_VERSION = "SELECT max(version) FROM schema_version"


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


def creation(dialect: Dialect) -> Iterator[str]:
    """The statements that make the tables: sessions with their events and snapshots, owners, refusals, keys, and who did what.

    A row of the events may hold several of them (`packing`).
    """
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
    if dialect.name == "postgresql":  # numbers cannot be made shorter
        yield "ALTER TABLE event ALTER COLUMN body SET STORAGE EXTERNAL"
    yield f"INSERT INTO schema_version (version) VALUES ({VERSION})"


def refuse_another_version(version: int, name: str) -> None:
    """One error where a database has tables of another version."""
    if version != VERSION:
        raise InputError(
            f"cannot open {name}: its tables have version {version}, and this version of bridle reads version {VERSION} alone; "
            "open it with the bridle that wrote it"
        )

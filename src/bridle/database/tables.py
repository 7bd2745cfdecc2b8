"""The tables, the statements that make them, and every statement on them, compiled once for each kind of database.

Statements are written with SQLAlchemy and run as text on the driver's own cursor, with their values by position: that costs nothing
beside the commit, where a statement that SQLAlchemy runs itself costs half as much again. A row says of which version the tables are: a
change of them is a new version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, cast

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
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql import ClauseElement, Select
from sqlalchemy.sql.compiler import SQLCompiler

from bridle.core import InputError

Value: TypeAlias = int | float | str | bytes | None
"""What a column can hold."""

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


_HELD = MetaData()
SERVER = Table("server", _HELD, _text("id", primary=True), _text("url"), _text("token"), _time("until"))
SESSION = Table(
    "session", _HELD, _number("id"), _text("name"), _blob("spec"), Column("owner", Text),
    Column("epoch", BigInteger, nullable=False, server_default="0"), UniqueConstraint("name"),
)  # fmt: skip
EVENT = Table(
    "event", _HELD, _number("id"), _count("seq"), Column("kind", SmallInteger, nullable=False), Column("key", LargeBinary),
    Column("request", LargeBinary), Column("answer", LargeBinary), _blob("body"), _count("checksum"), _count("session"), _count("epoch"),
    UniqueConstraint("session", "seq"),
)  # fmt: skip
"""After its number, the columns of a row are in the order of an `Event`, its checksum, and the lease. A row may hold several events."""
_WITH_KEY = EVENT.c.key.is_not(None)
Index("event_key", EVENT.c.session, EVENT.c.key, unique=True, sqlite_where=_WITH_KEY, postgresql_where=_WITH_KEY)
SNAPSHOT = Table(
    "snapshot", _HELD, _count("session", primary=True), _count("seq", primary=True), _text("library"), _text("platform"),
    _blob("digest"), _blob("body"),
)  # fmt: skip
QUARANTINE = Table(
    "quarantine", _HELD, _count("session", primary=True), _count("number", primary=True), _time("at"), _text("reason"), _blob("request")
)
API_KEY = Table(
    "api_key", _HELD, _text("id", primary=True), _text("name"), _text("scopes"), _blob("salt"), _blob("digest"), _text("settings"),
    _time("made"), Column("revoked", Double),
)  # fmt: skip
AUDIT = Table("audit", _HELD, _number("id"), _time("at"), _text("who"), _text("what"), Column("session", Text))


def creation(dialect: Dialect) -> Iterator[str]:
    """The statements that make the tables: sessions with their events and snapshots, owners, refusals, keys, and who did what."""
    for made in _HELD.sorted_tables:
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


def _leased(*kept: str) -> tuple[list[str], Select[tuple[Value, ...]]]:
    """The columns of an insert, and the select that gives them only while the lease holds: `FOR SHARE` where a database has it.

    A weaker lock would let another owner read the journal while this insert is under way, and miss an event that is then acknowledged.
    """
    source = EVENT if "kind" in kept else SNAPSHOT
    values = [bindparam(name, type_=source.c[name].type) for name in kept]
    lease = (SESSION.c.id == bindparam("lease_session"), SESSION.c.epoch == bindparam("lease_epoch"))
    columns = (SESSION.c.id, SESSION.c.epoch) if source is EVENT else (SESSION.c.id,)
    names = ["session", "epoch"] if source is EVENT else ["session"]
    return [*names, *kept], select(*columns, *values).where(*lease).with_for_update(read=True)


_OF_SESSION = bindparam("session", type_=BigInteger)
_SHOWN_EVENT = tuple(EVENT.c[name] for name in ("seq", "kind", "key", "request", "answer", "body", "checksum"))
_SHOWN_SESSION = tuple(SESSION.c[name] for name in ("id", "name", "spec", "owner", "epoch"))
_LIMIT, _OFFSET = bindparam("limit", type_=BigInteger), bindparam("offset", type_=BigInteger)

STATEMENTS: dict[str, ClauseElement] = {
    "append": insert(EVENT).from_select(*_leased("seq", "kind", "key", "request", "answer", "body", "checksum")),
    "append_under_lock": insert(EVENT).values({each.name: bindparam(each.name) for each in (*EVENT.c,)[1:]}).inline(),
    "leased": select(SESSION.c.id).where(SESSION.c.id == _OF_SESSION, SESSION.c.epoch == bindparam("lease_epoch")),
    "tail": select(*_SHOWN_EVENT)
    .where(EVENT.c.session == _OF_SESSION, EVENT.c.seq > bindparam("after", type_=BigInteger))
    .order_by(EVENT.c.seq)
    .limit(_LIMIT),
    "head": select(func.max(EVENT.c.seq)).where(EVENT.c.session == _OF_SESSION),
    "trim_events": delete(EVENT).where(EVENT.c.session == _OF_SESSION, EVENT.c.seq < bindparam("before", type_=BigInteger)),
    "answer": select(*_SHOWN_EVENT).where(EVENT.c.session == _OF_SESSION, EVENT.c.key == bindparam("key", type_=LargeBinary)),
    "find": select(*_SHOWN_SESSION).where(SESSION.c.name == bindparam("name")),
    "called": select(SESSION.c.name).where(SESSION.c.id == _OF_SESSION),
    "create": insert(SESSION).values({name: bindparam(name) for name in ("name", "spec")}).inline(),
    "names": select(SESSION.c.name).order_by(SESSION.c.name),
    "names_with_owners": select(SESSION.c.name, SESSION.c.owner).order_by(SESSION.c.name),
    "servers": select(SERVER.c.id, SERVER.c.url),
    "standing": select(SESSION.c.owner, SESSION.c.epoch).where(SESSION.c.id == _OF_SESSION).with_for_update(),
    "own": update(SESSION).where(SESSION.c.id == _OF_SESSION).values(owner=bindparam("new_owner"), epoch=SESSION.c.epoch + 1),
    "release": update(SESSION).where(SESSION.c.id == _OF_SESSION, SESSION.c.epoch == bindparam("lease_epoch")).values(owner=None),
    "release_all": update(SESSION).where(SESSION.c.owner == bindparam("old_owner")).values(owner=None),
    "owned": select(SESSION.c.id, SESSION.c.epoch).where(SESSION.c.owner == bindparam("old_owner")),
    "server": select(SERVER.c.url).where(SERVER.c.id == bindparam("owner")),
    "drop_server": delete(SERVER).where(SERVER.c.id == bindparam("owner"), SERVER.c.token == bindparam("token")),
    "put_snapshot": insert(SNAPSHOT).from_select(*_leased("seq", "library", "platform", "digest", "body")),
    "drop_snapshot": delete(SNAPSHOT).where(SNAPSHOT.c.session == _OF_SESSION, SNAPSHOT.c.seq == bindparam("seq", type_=BigInteger)),
    "trim_snapshots": delete(SNAPSHOT).where(
        SNAPSHOT.c.session == _OF_SESSION,
        SNAPSHOT.c.seq.not_in(
            select(SNAPSHOT.c.seq)
            .where(SNAPSHOT.c.session == bindparam("kept_session", type_=BigInteger))
            .order_by(SNAPSHOT.c.seq.desc())
            .limit(_LIMIT)
        ),
    ),
    "snapshots": select(*(SNAPSHOT.c[name] for name in ("seq", "library", "platform", "digest", "body")))
    .where(SNAPSHOT.c.session == _OF_SESSION)
    .order_by(SNAPSHOT.c.seq.desc()),
    "refuse": insert(QUARANTINE).inline(),
    "refusals": select(*(QUARANTINE.c[name] for name in ("number", "at", "reason", "request")))
    .where(QUARANTINE.c.session == _OF_SESSION)
    .order_by(QUARANTINE.c.number.desc())
    .limit(_LIMIT)
    .offset(_OFFSET),
    "last_refusal": select(func.max(QUARANTINE.c.number)).where(QUARANTINE.c.session == _OF_SESSION),
    "refusal_counts": select(QUARANTINE.c.session, func.max(QUARANTINE.c.number)).group_by(QUARANTINE.c.session),
    "trim_refusals": delete(QUARANTINE).where(
        QUARANTINE.c.session == _OF_SESSION, QUARANTINE.c.number <= bindparam("last", type_=BigInteger)
    ),
    "add_key": insert(API_KEY).inline(),
    "keys": select(*API_KEY.c).order_by(API_KEY.c.made, API_KEY.c.id),
    "key": select(*API_KEY.c).where(API_KEY.c.id == bindparam("id")),
    "revoke": update(API_KEY).where(API_KEY.c.id == bindparam("key_id"), API_KEY.c.revoked.is_(None)).values(revoked=bindparam("when")),
    "audit": insert(AUDIT).values({name: bindparam(name) for name in ("at", "who", "what", "session")}).inline(),
    "audits": select(*AUDIT.c).order_by(AUDIT.c.id.desc()).limit(_LIMIT).offset(_OFFSET),
}
"""What is asked of a database, by name."""


class Compiled(NamedTuple):
    """A statement as text, the names of its values in the order in which it wants them, and those that are always the same."""

    text: str
    order: tuple[str, ...]
    fixed: dict[str, Value]

    def values(self, given: dict[str, Value]) -> tuple[Value, ...]:
        """The values in order."""
        return tuple([given[name] if name in given else self.fixed[name] for name in self.order])


def compiled(statement: ClauseElement, dialect: Dialect) -> Compiled:
    """A statement for this kind of database, whose values go by position."""
    made = cast(SQLCompiler, statement.compile(dialect=dialect))
    fixed = {name: bind.value for name, bind in made.binds.items() if not bind.required}
    return Compiled(str(made), tuple(made.positiontup or ()), fixed)


def compile_all(dialect: Dialect) -> dict[str, Compiled]:
    """Every statement for this kind of database."""
    return {name: compiled(statement, dialect) for name, statement in STATEMENTS.items()}

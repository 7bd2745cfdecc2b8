"""The option `--db` of the commands that open a database: before the command's name (`bridle keys --db URL add ...`) or after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bridle.database.store import EventStore

DbOption = Annotated[
    str | None, typer.Option("--db", metavar="URL", help="The database, such as sqlite:///bridle.db or postgresql://host/name.")
]


def opened(context: typer.Context, db: str | None, readonly: bool = True) -> EventStore:
    """The database that a command was told, or the group of commands that it belongs to; the nearest word counts."""
    from bridle import validate
    from bridle.core import InputError

    url = db if db is not None else context.obj
    if url is None:
        raise InputError("--db must be given: the address of the database, such as sqlite:///bridle.db")
    validate.require_package("sqlalchemy", "durable")
    from bridle.database import open_store

    return open_store(url, readonly=readonly)

"""The commands `bridle keys add`, `list` and `revoke`: who may use the service on a database."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from bridle.cli import output
from bridle.cli.databases import DbOption, opened

app = typer.Typer(
    rich_markup_mode=None,
    invoke_without_command=True,
    help="Make, list and revoke keys of the service. Each has a scope; the database keeps salted hashes.",
)


@app.callback()
def everything(context: typer.Context, db: DbOption = None) -> None:
    """Show the keys of a database, unless a command follows."""
    context.obj = db
    if context.invoked_subcommand is None:
        list_keys(context, db)


@app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Who or what it is for; shown in lists, logs and the audit.")],
    scope: Annotated[
        list[str], typer.Option("--scope", "--scopes", help="What it may do: decide, observe, read, admin; several with commas, or again.")
    ],
    db: DbOption = None,
) -> None:
    """Make a key, and show it once.

    It is kept nowhere: note it down.
    """
    from bridle.service.auth import make_key, who

    now = time.time()
    text, key = make_key(name, [each.strip() for given in scope for each in given.split(",")], now)
    with opened(context, db, readonly=False) as store:
        store.keys.add(key)
        store.audit("bridle keys", f"added key {who(key)} with {key.scopes}", None, now)
    typer.echo(text)
    typer.echo(f"key {key.id} of {key.name} may: {key.scopes.replace(' ', ', ')}. It is not shown again.", err=True)


@app.command("list")
def list_keys(context: typer.Context, db: DbOption = None, json_file: output.JsonOption = None) -> None:
    """List the keys.

    Each with who it is for, what it may do, and when it was made and revoked.
    """
    from bridle.showing.tables import TextTable

    with opened(context, db) as store:
        found = store.keys.list()
    lines = [[key.id, key.name, key.scopes, _time(key.made), "" if key.revoked is None else _time(key.revoked)] for key in found]
    table = TextTable(("id", "name", "scopes", "made", "revoked"), lines, "keys")
    facts = [
        {"id": key.id, "name": key.name, "scopes": key.scopes.split(), "made": key.made, "revoked": key.revoked} for key in found
    ]  # fmt: skip
    output.show(table, [] if found else ["no keys: `bridle keys add NAME --scope ...` makes one"], facts, json_file)


@app.command()
def revoke(
    context: typer.Context, id: Annotated[str, typer.Argument(help="The key's id, as `bridle keys list` shows it.")], db: DbOption = None
) -> None:
    """Revoke a key.

    It opens nothing any more; a server that runs notices within seconds.
    """
    from bridle.core import InputError

    now = time.time()
    with opened(context, db, readonly=False) as store:
        if not store.keys.revoke(id, now):
            raise InputError(f"there is no key {id!r} that could be revoked")
        store.audit("bridle keys", f"revoked key {id}", None, now)
    typer.echo(f"key {id} opens nothing any more")


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
